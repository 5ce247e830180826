from __future__ import annotations

from typing import Any, cast

import pytest

from reaperd.wiring.daemon import OwnId


class Log:
    def __init__(self) -> None:
        self.events: list[str] = []

    def info(self, event: str, **_fields: object) -> None:
        self.events.append(event)


class Service:
    """A metadata service that answers from a certain question on; None: never."""

    def __init__(self, answers_from: int | None) -> None:
        self.asked = 0
        self._from = answers_from

    def __call__(self) -> str | None:
        self.asked += 1
        return "i-own" if self._from is not None and self.asked >= self._from else None


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_service_that_is_late_is_asked_again_by_the_next_pass(log: Log):
    own = OwnId(Service(3), cast("Any", log))

    assert [own() for _ in range(4)] == [None, None, "i-own", "i-own"]
    assert log.events == ["own_instance_unknown", "own_instance_found"]


def test_what_is_known_is_not_asked_for_again(log: Log):
    service = Service(1)
    own = OwnId(service, cast("Any", log))
    for _ in range(100):
        own()

    assert service.asked == 1


def test_where_there_is_none_the_tries_become_rare(log: Log):
    service = Service(None)
    own = OwnId(service, cast("Any", log))
    for _ in range(100_000):
        own()

    assert 10 < service.asked < 30
    assert log.events == ["own_instance_unknown"]
