"""Which machines another registry leaves without a row."""

from datetime import timedelta

from reaperd.core.trusting import Left, succession
from registry.model import WorkerState
from tests.support.worlds import NOW, WEST, memory, ref, row, sighting

MINUTE = timedelta(minutes=1)


def tracked(by="w-1", at=NOW):
    return sighting(tracked_at=at, tracked_by=by)


def known(**sightings):
    return memory(sightings={ref(name.replace("_", "-")): each for name, each in sightings.items()}, looked_at=NOW)


def test_a_machine_that_no_live_row_names_is_left():
    before = known(i_1=tracked("w-1"), i_2=tracked("w-2"), i_3=tracked("w-3"))
    rows = [row("w-1", "i-1"), row("w-2", "i-2", state=WorkerState.COMPLETED)]

    then = succession(before, rows)

    assert then.tracked == 3
    assert then.left == (Left(ref("i-2"), "w-2"), Left(ref("i-3"), "w-3"))


def test_a_row_of_another_place_names_another_machine():
    then = succession(known(i_1=tracked()), [row("w-9", "i-1", at=WEST)])

    assert [each.ref for each in then.left] == [ref("i-1")]


def test_a_row_that_waits_for_its_machine_accounts_for_its_workers():
    waiting = row("w-1", None, state=WorkerState.LAUNCHING)

    assert succession(known(i_1=tracked("w-1")), [waiting]).left == ()
    assert succession(known(i_1=tracked("w-2")), [waiting]).left == (Left(ref("i-1"), "w-2"),)


def test_what_the_last_look_did_not_find_tracked_does_not_count():
    before = known(i_1=tracked(at=NOW - MINUTE), i_2=sighting())

    assert succession(before, []).tracked == 0


def test_the_order_is_by_place_and_id():
    before = known(i_3=tracked(), i_1=tracked(), i_2=tracked())

    assert [each.ref.instance_id for each in succession(before, []).left] == ["i-1", "i-2", "i-3"]
