"""What the registry says of one machine, in words, as it stands in every verdict."""

from __future__ import annotations

import pytest

from reaperd.core.model import ReapPolicy, Verdict
from reaperd.core.reap import judge
from registry.model import Worker, WorkerState
from tests.support.worlds import (
    EAST,
    HOUR,
    MINUTE,
    NOW,
    WEST,
    look,
    machine,
    memory,
    policy,
    ref,
    registry,
    row,
    sighting,
)

WRITTEN = "2026-01-10 11:59:00 UTC"


def verdict_on(*rows: Worker, wishes: ReapPolicy | None = None, **facts: object) -> Verdict:
    seen = look([machine(**facts)], rows)  # type: ignore[arg-type]
    return judge(seen, wishes or policy())[0][0]


def test_no_row_is_said_to_be_none():
    assert verdict_on().detail == "no row"
    assert verdict_on(row("w-2", "i-2")).detail == "no row"
    assert verdict_on(worker=None).detail == "no row, and no worker tag"


@pytest.mark.parametrize("state", ["completed", "failed", "terminated"])
def test_a_row_that_ended_is_named_with_its_state_and_its_last_write(state):
    ended = row(state=WorkerState(state), updated_at=NOW - MINUTE)

    assert verdict_on(ended).detail == f"row w-1 is {state}, last written at {WRITTEN}"


def test_a_row_without_a_time_of_writing_is_told_without():
    assert verdict_on(row(state=WorkerState.FAILED)).detail == "row w-1 is failed"


def test_an_abandoned_launch_is_told_with_its_last_write():
    launching = row(instance_id=None, state=WorkerState.LAUNCHING, updated_at=NOW - HOUR)

    told = verdict_on(launching).detail

    assert told == "row w-1 is launching and names no machine, last written at 2026-01-10 11:00:00 UTC"


def test_a_row_that_misspells_the_machine_is_told_as_it_is_spelt():
    assert verdict_on(row("w-9", "I-1")).detail == "row w-9 names aws/us-east-1/I-1"
    launching = row("W-1", None, state=WorkerState.LAUNCHING, updated_at=NOW - MINUTE)
    assert verdict_on(launching).detail == "row W-1 (launching) is its worker tag, but for case or blanks"


def test_a_silent_worker_is_told_with_its_last_heartbeat():
    alive = row("w-2", "i-2", heartbeat_at=NOW)
    wishes = policy(heartbeat_ttl=MINUTE)

    silent = verdict_on(row(heartbeat_at=NOW - HOUR), alive, wishes=wishes)
    never = verdict_on(row(), alive, wishes=wishes)

    assert silent.detail == "row w-1 is running and last beat at 2026-01-10 11:00:00 UTC"
    assert never.detail == "row w-1 is running and never beat"


def test_what_names_another_machine_is_told_with_the_machine():
    elsewhere = row("w-1", "i-2", at=WEST)

    doubtful = verdict_on(elsewhere)
    seen = look([machine(), machine("i-2", at=WEST)], [elsewhere])
    superseded = judge(seen, policy())[1][0]

    assert doubtful.detail == superseded.detail == "row w-1 names aws/eu-west-1/i-2"
    assert superseded.ref == ref("i-1", EAST)


def test_the_row_that_tracks_is_told_with_its_state():
    assert verdict_on(row(state=WorkerState.DRAINING)).detail == "row w-1 (draining)"


def test_a_verdict_knows_when_the_machine_was_first_seen_and_last_tracked():
    known = memory(sightings={ref(): sighting(first_seen_at=NOW - 3 * HOUR, tracked_at=NOW - HOUR)})

    ((before, _),) = judge(look([machine()], memory=known), policy())
    ((again, _),) = judge(look([machine()], [row()], memory=known), policy())
    ((new, _),) = judge(look([machine()], registry=registry()), policy())

    assert (before.first_seen_at, before.tracked_at) == (NOW - 3 * HOUR, NOW - HOUR)
    assert (again.first_seen_at, again.tracked_at) == (NOW - 3 * HOUR, NOW)
    assert (new.first_seen_at, new.tracked_at) == (NOW, None)
