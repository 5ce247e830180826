"""Who asks while the registry is being read is answered by the next reading, together with all others who do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from reaperd.passes.readings import SharedReadings
from registry.errors import RegistryUnusableError
from registry.memory import MemoryRegistry
from registry.model import RegistryFault, RegistryRows, Worker, WorkerState
from tests.unit.passes.conftest import DEPLOYMENT, START

SECONDS = 60
"""A bound, not a pace: whatever waits goes on at once when it can."""


class Registry(MemoryRegistry):
    """Holds its first reading until it is let go."""

    def __init__(self) -> None:
        super().__init__(DEPLOYMENT, now=lambda: START)
        self.began = threading.Event()
        self.go_on = threading.Event()
        self.asked: list[set[str]] = []
        self.dies_of: Exception | None = None

    def lookup_many(self, machines, read=None) -> RegistryRows:
        wanted = tuple(machines)
        self.asked.append({instance_id for instance_id, _ in wanted})
        if len(self.asked) == 1:
            self.began.set()
            assert self.go_on.wait(SECONDS)
        elif self.dies_of is not None:
            error, self.dies_of = self.dies_of, None
            raise error
        return super().lookup_many(wanted, read)


class Question(list[tuple[str, str | None]]):
    """One machine, and whether somebody has taken the question."""

    def __init__(self, name: str) -> None:
        super().__init__([(name, None)])
        self.taken = threading.Event()

    def __iter__(self) -> Iterator[tuple[str, str | None]]:
        self.taken.set()
        return super().__iter__()


def worker(number: int) -> Worker:
    return Worker(
        worker_id=f"w-{number}",
        provider="fake",
        region="fake-1",
        instance_id=f"i-{number}",
        state=WorkerState.RUNNING,
    )


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=8) as made:
        yield made


def ask_while_it_is_read(registry: Registry, pool: ThreadPoolExecutor) -> list[Future[RegistryRows]]:
    """Ask once, then thrice while that is under way, and let go."""
    readings = SharedReadings(registry)
    answers = [pool.submit(readings.lookup_many, Question("i-0"))]
    assert registry.began.wait(SECONDS)
    for number in range(1, 4):
        question = Question(f"i-{number}")
        answers.append(pool.submit(readings.lookup_many, question))
        assert question.taken.wait(SECONDS)
    registry.add(worker(2))
    registry.go_on.set()
    return answers


def told(answer: Future[Any]) -> list[str]:
    return [each.worker_id for each in answer.result(SECONDS).workers]


def test_a_question_alone_is_read_alone(registry):
    registry.add(worker(1))
    registry.go_on.set()

    assert [each.worker_id for each in SharedReadings(registry).lookup_many([("i-1", None)]).workers] == ["w-1"]
    assert registry.asked == [{"i-1"}]


def test_all_that_is_asked_meanwhile_is_read_at_once_and_after_it_was_asked(registry, pool):
    answers = ask_while_it_is_read(registry, pool)

    assert ["w-2" in told(answer) for answer in answers[1:]] == [True] * 3
    assert registry.asked == [{"i-0"}, {"i-1", "i-2", "i-3"}]


def test_a_registry_that_cannot_be_read_is_so_for_all_who_asked(registry, pool):
    registry.dies_of = RegistryUnusableError(RegistryFault.LOCKED, "registry.db", "it is locked", "Wait.")

    answers = ask_while_it_is_read(registry, pool)

    assert told(answers[0]) == []
    for answer in answers[1:]:
        with pytest.raises(RegistryUnusableError, match="locked"):
            answer.result(SECONDS)
    assert len(registry.asked) == 2


def test_a_defect_of_one_is_not_taken_for_an_answer_by_the_others(registry, pool):
    registry.dies_of = RuntimeError("a defect")

    answers = ask_while_it_is_read(registry, pool)

    with pytest.raises(RuntimeError, match="a defect"):
        answers[1].result(SECONDS)
    assert "w-2" in told(answers[2])
    assert told(answers[3]) == []
    assert sorted(registry.asked[2:], key=str) == [{"i-2"}, {"i-3"}]
