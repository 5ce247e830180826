"""Which machines another registry leaves without a row, judged as the next pass would."""

from datetime import timedelta

from reaperd.core.history import Look
from reaperd.core.model import TerminateReason
from reaperd.core.trusting import Left, Succession, succession
from registry.model import WorkerState
from tests.support.worlds import HOUR, NOW, WEST, machine, memory, policy, ref, row, sighting

MINUTE = timedelta(minutes=1)
FLEET = tuple(machine(f"i-{number}", worker=f"w-{number}") for number in (3, 1, 2))


def held(fleet):
    """Return what is remembered of a look, the last, that found every machine tracked by its own row."""
    of_its_own = {each.ref: sighting(tracked_at=NOW, tracked_by=each.worker_id) for each in fleet}
    return memory(sightings=of_its_own, looked_at=NOW)


def then(rows, fleet=FLEET, before=None, now=NOW + MINUTE):
    look = Look(at=NOW, instances=tuple(fleet), coverage=())
    return succession(look, held(fleet) if before is None else before, rows, policy(), now)


def test_a_machine_that_no_live_row_is_about_is_left():
    rows = [row("w-1", "i-1"), row("w-2", "i-2", state=WorkerState.COMPLETED)]

    assert then(rows) == Succession(
        held=3,
        left=(
            Left(ref("i-2"), "w-2", TerminateReason.RETIRED),
            Left(ref("i-3"), "w-3", TerminateReason.UNREGISTERED),
        ),
        doubtful=0,
        launching=0,
    )


def test_a_row_that_misspells_a_place_or_a_name_holds_in_doubt():
    rows = [row("w-1", "i-1", at=WEST), row("w-2", "I-2"), row("w-3", "i-3")]

    found = then(rows)

    assert (found.left, found.doubtful) == ((), 2)


def test_a_launch_without_a_machine_holds_its_worker_for_a_while_and_nobody_else():
    copy = [row("w-1", None, state=WorkerState.LAUNCHING, created_at=NOW)]
    fleet = (machine("i-1", worker="w-1"), machine("i-2", worker=None))

    soon, late = then(copy, fleet), then(copy, fleet, now=NOW + 2 * HOUR)

    assert (soon.launching, [each.ref for each in soon.left]) == (1, [ref("i-2")])
    assert [each.reason for each in late.left] == [TerminateReason.LAUNCH_ABANDONED, TerminateReason.ANONYMOUS]
    assert late.launching == 0


def test_a_machine_that_was_held_in_doubt_counts():
    doubted = memory(sightings={ref("i-1"): sighting(verdict="keep/ambiguous_worker")}, looked_at=NOW)

    found = then([], before=doubted)

    assert (found.held, [each.ref for each in found.left]) == (1, [ref("i-1")])


def test_what_the_last_look_did_not_find_held_does_not_count():
    known = {ref("i-1"): sighting(tracked_at=NOW - MINUTE), ref("i-2"): sighting(verdict="keep/unconfirmed")}

    assert then([], before=memory(sightings=known, looked_at=NOW)).held == 0


def test_the_order_is_by_place_and_id():
    assert [each.ref.instance_id for each in then([]).left] == ["i-1", "i-2", "i-3"]
