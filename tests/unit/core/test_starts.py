"""Since when a machine runs, and what a sweep teaches of that (rule 27)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from providers.model import AuditedInstance, AuditSweep, InstanceState
from reaperd.core import starts
from reaperd.core.starts import LearnedStarts, learn_starts, started
from tests.support.worlds import DEPLOYMENT, EAST, GCP, HOUR, MINUTE, NOW, SECOND, WEST, broken, ref, whole

DAY = 24 * HOUR
SEEN = (whole(EAST),)


def seen(instance_id: str = "i-1", **other: Any) -> AuditedInstance:
    """Return a running machine that was launched an hour ago."""
    facts: dict[str, Any] = {"state": InstanceState.RUNNING, "launched_at": NOW - HOUR}
    return AuditedInstance(ref=ref(instance_id, other.pop("at", EAST)), **(facts | other))


def learned(*machines: AuditedInstance, before: Any = None, coverage: Any = SEEN) -> LearnedStarts:
    return learn_starts(AuditSweep(instances=machines, coverage=coverage), before or {}, NOW)


# ---------------------------------------------------------------- since when it runs


def test_the_earliest_time_that_is_known_is_the_start():
    launched, attached, before = NOW - MINUTE, NOW - HOUR, NOW - DAY

    machine = seen(launched_at=launched, attached_at=attached)

    assert started(machine, NOW) == attached
    assert started(machine, NOW, before) == before
    assert started(seen(launched_at=None), NOW) is None


@pytest.mark.parametrize("odd", [datetime(1970, 1, 1, tzinfo=UTC), NOW + SECOND], ids=["zero", "in the future"])
def test_a_time_that_cannot_be_believed_starts_nothing(odd):
    assert started(seen(launched_at=odd, attached_at=odd), NOW) is None


def test_what_is_remembered_of_the_future_starts_nothing():
    assert started(seen(launched_at=None), NOW, NOW + SECOND) is None


# ---------------------------------------------------------------- what is noted


def test_a_new_machine_is_noted_with_the_earliest_time_that_the_cloud_tells():
    assert learned(seen(attached_at=NOW - DAY)).noted == {ref(): NOW - DAY}


def test_a_machine_that_nobody_gives_a_start_to_is_noted_as_seen_now():
    assert learned(seen(launched_at=None)).noted == {ref(): NOW}


def test_what_is_known_already_is_not_written_again():
    assert learned(seen(), before={ref(): NOW - HOUR}) == LearnedStarts()


def test_a_launch_time_that_was_reset_changes_nothing():
    assert learned(seen(launched_at=NOW - MINUTE), before={ref(): NOW - DAY}) == LearnedStarts()


@pytest.mark.parametrize("wrong", [NOW - MINUTE, NOW + DAY], ids=["too late", "in the future"])
def test_an_earlier_start_replaces_a_later_one(wrong):
    assert learned(seen(), before={ref(): wrong}).noted == {ref(): NOW - HOUR}


def test_our_own_machines_are_noted_too_so_that_a_lost_tag_makes_none_young():
    assert learned(seen(owner=DEPLOYMENT)).noted == {ref(): NOW - HOUR}


# ---------------------------------------------------------------- what is forgotten


def test_a_machine_that_a_complete_look_does_not_show_is_forgotten():
    assert learned(before={ref(): NOW - DAY}).forgotten == {ref()}


def test_a_terminated_machine_is_forgotten_and_not_noted():
    gone = seen(state=InstanceState.TERMINATED)

    assert learned(gone, before={ref(): NOW - DAY}) == LearnedStarts(forgotten=frozenset({ref()}))


@pytest.mark.parametrize("state", [state for state in InstanceState if not state.is_gone], ids=str)
def test_a_machine_in_every_other_state_is_remembered(state):
    assert learned(seen(state=state), before={ref(): NOW - DAY}) == LearnedStarts()


@pytest.mark.parametrize(
    "coverage", [(broken(EAST),), (whole(WEST),), (whole(GCP),), ()], ids=["failed", "elsewhere", "namesake", "nothing"]
)
def test_nothing_is_forgotten_of_a_scope_that_was_not_seen_whole(coverage):
    assert learned(before={ref(): NOW - DAY}, coverage=coverage) == LearnedStarts()


def test_a_scope_that_failed_keeps_no_other_from_forgetting():
    before = {ref("i-1", EAST): NOW - DAY, ref("i-2", WEST): NOW - DAY}

    lesson = learned(before=before, coverage=(broken(EAST), whole(WEST)))

    assert lesson.forgotten == {ref("i-2", WEST)}


# ---------------------------------------------------------------- the limit


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(starts, "REMEMBERED", 3)
    return 3


def test_beyond_the_limit_the_oldest_are_remembered(limit):
    crowd = [seen(f"i-{number}", launched_at=NOW - number * HOUR) for number in range(1, 6)]

    assert set(learned(*crowd).noted) == {ref("i-5"), ref("i-4"), ref("i-3")}
    assert len(learned(*crowd).noted) == limit


@pytest.mark.usefixtures("limit")
def test_beyond_the_limit_scopes_that_nobody_looks_at_any_more_go_first():
    dropped = {ref(f"i-{number}", GCP): NOW - DAY for number in range(3)}

    lesson = learned(seen(), before=dropped)

    assert lesson == LearnedStarts(noted={ref(): NOW - HOUR}, forgotten=frozenset(dropped))


@pytest.mark.usefixtures("limit")
def test_beyond_the_limit_a_machine_that_is_known_still_becomes_older():
    before = {ref(f"i-{number}"): NOW - MINUTE for number in range(3)}
    crowd = [seen(f"i-{number}") for number in range(3)]

    lesson = learned(*crowd, seen("i-9", launched_at=NOW - DAY), before=before)

    assert lesson.noted == dict.fromkeys(before, NOW - HOUR)
