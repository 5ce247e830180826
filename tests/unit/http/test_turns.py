"""Threads that compute give way at once to those that answer, and not as soon to one another."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reaperd.http.turns import EAGER_NANOSECONDS, LONG_SECONDS, PATIENT_NANOSECONDS, SHORT_SECONDS, Turns
from tests.unit.http.conftest import Running

SLACK = "timerslack_ns"

on_linux = pytest.mark.skipif(
    not Path(f"/proc/self/{SLACK}").exists(), reason="the system tells of no thread how late its timers may be"
)


@pytest.fixture(autouse=True)
def _pythons_default() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def is_now(seconds: float) -> bool:
    return sys.getswitchinterval() == pytest.approx(seconds)


def own(proc: Path = Path("/proc")) -> Path:
    return proc / str(threading.get_native_id()) / SLACK


def slack() -> int:
    return int(own().read_text())


def in_a_new_thread(call: Callable[[], int]) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Where a system tells of this thread what Linux does."""
    own(tmp_path).parent.mkdir()
    own(tmp_path).write_text("50000\n")
    return tmp_path


def test_who_starts_the_server_waits_patiently_until_it_ends(proc: Path):
    before = sys.getswitchinterval()
    turns = Turns(proc)

    assert is_now(before)
    turns.begin()
    assert (is_now(SHORT_SECONDS), own(proc).read_text()) == (True, str(PATIENT_NANOSECONDS))
    turns.end()
    assert (is_now(before), own(proc).read_text()) == (True, "50000")


def test_who_answers_is_in_a_hurry(proc: Path):
    Turns(proc).hurry()

    assert own(proc).read_text() == str(EAGER_NANOSECONDS)


def test_where_timers_are_never_late_turns_are_not_as_short(tmp_path: Path):
    before = sys.getswitchinterval()
    turns = Turns(tmp_path)

    turns.begin()
    turns.hurry()

    assert is_now(LONG_SECONDS)
    turns.end()
    assert is_now(before)
    assert list(tmp_path.iterdir()) == []


def test_where_it_is_forbidden_turns_are_not_as_short(proc: Path):
    own(proc).unlink()
    own(proc).mkdir()

    Turns(proc).begin()

    assert is_now(LONG_SECONDS)


def test_turns_that_are_shorter_already_stay_so(proc: Path):
    sys.setswitchinterval(SHORT_SECONDS / 2)

    Turns(proc).begin()

    assert is_now(SHORT_SECONDS / 2)


@on_linux
def test_whatever_starts_after_the_server_is_as_patient(site: Running):
    assert slack() == PATIENT_NANOSECONDS
    assert in_a_new_thread(slack) == PATIENT_NANOSECONDS


@on_linux
def test_the_threads_that_answer_are_not(site: Running):
    seen: list[int] = []
    site.desk.before = lambda: seen.append(slack())

    assert site.ask("/metrics").status == 200

    assert seen == [EAGER_NANOSECONDS]


@on_linux
def test_after_its_end_everything_is_as_before(serve: Callable[..., Running]):
    before, seconds = slack(), sys.getswitchinterval()

    serve().server.stop()

    assert (slack(), sys.getswitchinterval()) == (before, seconds)
