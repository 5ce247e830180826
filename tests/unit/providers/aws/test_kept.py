from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from providers.aws.kept import Kept
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def kept(clock: ManualClock) -> Kept[str, int]:
    return Kept(clock, timedelta(minutes=5))


@pytest.fixture
def numbers() -> Iterator[int]:
    return iter(range(9))


def test_a_value_is_asked_for_once_while_it_is_young(kept: Kept[str, int], clock: ManualClock, numbers: Iterator[int]):
    first = kept.get("a", lambda: next(numbers))
    clock.advance(timedelta(minutes=4, seconds=59))

    assert first == kept.get("a", lambda: next(numbers)) == 0


def test_a_value_is_as_old_as_the_question(kept: Kept[str, int], clock: ManualClock, numbers: Iterator[int]):
    def slowly() -> int:
        clock.advance(timedelta(minutes=3))
        return next(numbers)

    kept.get("a", slowly)
    clock.advance(timedelta(minutes=2))

    assert kept.get("a", lambda: next(numbers)) == 1


def test_each_key_has_its_own(kept: Kept[str, int], numbers: Iterator[int]):
    assert [kept.get(key, lambda: next(numbers)) for key in "abab"] == [0, 1, 0, 1]


def test_a_failure_is_not_kept(kept: Kept[str, int], numbers: Iterator[int]):
    def fail() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        kept.get("a", fail)

    assert kept.get("a", lambda: next(numbers)) == 0
