"""The look at the rows just before the door (rule 5)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from providers.model import OwnedInstance
from reaperd.core.model import Observation, ReapPolicy, SparedReason, Verdict
from reaperd.core.reap import judge, recheck
from registry.model import Worker, WorkerState
from tests.support.worlds import HOUR, MINUTE, NOW, SECOND, look, machine, policy, ref, row, rows_again

TTL = 10 * MINUTE


def planned(seen: Observation, wishes: ReapPolicy | None = None) -> Verdict:
    verdict = next(v for v, _ in judge(seen, wishes or policy()) if v.ref == ref())
    assert verdict.terminates
    return verdict


def spared(
    before: Iterable[Worker],
    after: Iterable[Worker],
    *,
    wishes: ReapPolicy | None = None,
    others: Iterable[OwnedInstance] = (),
) -> SparedReason | None:
    """Return what becomes of a termination that was planned on `before` when `after` is found at the door."""
    wishes = wishes or policy()
    seen = look([machine(), *others], before)
    return recheck(planned(seen, wishes), rows_again(*after), seen, wishes)


def test_a_termination_is_sent_when_the_rows_still_say_nothing():
    assert spared([], []) is None


def test_a_termination_is_sent_when_the_rows_still_say_the_same():
    retired = [row(state=WorkerState.COMPLETED)]

    assert spared(retired, retired) is None


@pytest.mark.parametrize("found", [row(), row("w-9"), row(instance_id=None)], ids=["named", "renamed", "by its tag"])
def test_a_machine_that_is_tracked_by_now_is_spared(found):
    assert spared([], [found]) is SparedReason.TRACKED_NOW


def test_a_machine_whose_row_was_restarted_is_spared():
    assert spared([row(state=WorkerState.FAILED)], [row(state=WorkerState.LAUNCHING)]) is SparedReason.TRACKED_NOW


def test_a_machine_whose_row_points_elsewhere_by_now_is_spared():
    assert spared([], [row("w-1", "i-2")]) is SparedReason.CHANGED


def test_a_machine_that_is_an_orphan_for_another_reason_by_now_is_spared():
    retired = [row(state=WorkerState.COMPLETED)]

    assert spared([], retired) is SparedReason.CHANGED
    assert spared(retired, []) is SparedReason.CHANGED


def test_a_superseded_machine_is_sent_while_the_other_holds_the_row():
    other = machine("i-2")

    assert spared([row("w-1", "i-2")], [row("w-1", "i-2")], others=[other]) is None
    assert spared([row("w-1", "i-2")], [row("w-1", "i-1")], others=[other]) is SparedReason.TRACKED_NOW


def test_a_worker_that_beats_again_is_spared():
    silent, beating = row(heartbeat_at=NOW - HOUR), row("w-2", "i-2", heartbeat_at=NOW)

    reason = spared([silent, beating], [row(heartbeat_at=NOW)], wishes=policy(heartbeat_ttl=TTL))

    assert reason is SparedReason.TRACKED_NOW


def test_a_worker_that_beat_a_moment_after_the_look_is_spared():
    silent, beating = row(heartbeat_at=NOW - HOUR), row("w-2", "i-2", heartbeat_at=NOW)

    reason = spared([silent, beating], [row(heartbeat_at=NOW + SECOND)], wishes=policy(heartbeat_ttl=TTL))

    assert reason is SparedReason.TRACKED_NOW


def test_the_few_rows_found_at_the_door_do_not_prove_that_heartbeats_stopped():
    silent, beating = row(heartbeat_at=NOW - HOUR), row("w-2", "i-2", heartbeat_at=NOW)

    assert spared([silent, beating], [silent], wishes=policy(heartbeat_ttl=TTL)) is None


def test_nothing_is_sent_on_an_observation_without_a_registry():
    verdict = planned(look([machine()]))

    assert recheck(verdict, rows_again(), look([machine()], registry=None), policy()) is SparedReason.CHANGED
