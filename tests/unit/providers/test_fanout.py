import threading
from datetime import UTC, datetime, timedelta

import pytest

from providers.fanout import Answered, Late, Raised, ask_all
from reaperd.clock import ManualClock, SystemClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def release():
    event = threading.Event()
    yield event
    event.set()


def test_answers_come_in_the_order_of_the_calls(clock):
    answers = ask_all([lambda n=n: n for n in range(50)], clock=clock)

    assert answers == tuple(Answered(n) for n in range(50))


def test_no_calls_have_no_answers(clock):
    assert ask_all([], clock=clock) == ()


def test_calls_are_made_side_by_side(clock):
    together = threading.Barrier(4, timeout=5)

    answers = ask_all([together.wait] * 4, clock=clock)

    assert {type(answer) for answer in answers} == {Answered}


def test_no_more_calls_run_at_once_than_there_are_workers(clock):
    lock = threading.Lock()
    running, highest = 0, 0

    def call():
        nonlocal running, highest
        with lock:
            running += 1
            highest = max(highest, running)
        with lock:
            running -= 1

    ask_all([call] * 20, clock=clock, workers=2)

    assert highest <= 2


def test_a_call_that_raises_takes_no_other_with_it(clock):
    error = ValueError("boom")

    def fails():
        raise error

    assert ask_all([fails, lambda: 1], clock=clock) == (Raised(error), Answered(1))


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError])
def test_a_call_that_dies_of_anything_at_all_is_answered_for(clock, kind):
    def dies():
        raise kind

    (answer,) = ask_all([dies], clock=clock)

    assert isinstance(answer, Raised)
    assert isinstance(answer.error, kind)


def test_a_call_that_hangs_is_late_and_the_others_are_not(release):
    answers = ask_all([release.wait, lambda: 1], clock=SystemClock(), timeout=timedelta(milliseconds=30))

    assert isinstance(answers[0], Late)
    assert answers[1] == Answered(1)


def test_a_clock_that_stands_still_does_not_make_the_wait_endless(clock, release):
    (answer,) = ask_all([release.wait], clock=clock, timeout=timedelta(milliseconds=30))

    assert isinstance(answer, Late)


def test_time_that_passes_only_by_the_clock_counts(clock, release):
    def hangs():
        clock.advance(timedelta(hours=1))
        release.wait()

    (answer,) = ask_all([hangs], clock=clock, timeout=timedelta(minutes=1))

    assert answer == Late(timedelta(hours=1))


def test_an_answer_that_comes_after_the_timeout_is_dropped(clock):
    def slow():
        clock.advance(timedelta(minutes=2))
        return 1

    (answer,) = ask_all([slow], clock=clock, timeout=timedelta(minutes=1))

    assert isinstance(answer, Late)


def test_a_call_whose_turn_comes_after_the_timeout_is_never_made(release):
    made = threading.Event()

    answers = ask_all([release.wait, made.set], clock=SystemClock(), timeout=timedelta(milliseconds=20), workers=1)
    release.set()

    assert [type(answer) for answer in answers] == [Late, Late]
    assert not made.wait(0.05)


def test_a_thread_that_hangs_does_not_keep_the_process_alive(clock, release):
    kinds = []

    def call():
        kinds.append(threading.current_thread().daemon)

    ask_all([call], clock=clock)

    assert kinds == [True]
