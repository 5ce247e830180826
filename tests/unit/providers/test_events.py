from datetime import UTC, datetime, timedelta

import pytest

from providers.events import CheckpointReason, MetaState, ProviderEvent, scheduled_event, spot_event
from providers.model import InstanceRef

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = InstanceRef("aws", "us-east-1", "i-1")


@pytest.mark.parametrize(
    ("code", "ends", "at"),
    [
        ("marked-for-termination", True, NOW + timedelta(minutes=2)),
        ("instance-terminated-no-capacity", True, NOW),
        ("instance-terminated-by-price", True, NOW),
        ("marked-for-stop", False, None),
        ("instance-stopped-no-capacity", False, None),
    ],
)
def test_an_interruption_says_whether_the_machine_ends_and_when(code, ends, at):
    event = spot_event(REF, code, updated_at=NOW)

    assert event == ProviderEvent(ref=REF, fault_code=code, marked_for_termination=ends, termination_time=at)


@pytest.mark.parametrize("code", ["fulfilled", "pending-evaluation", "instance-terminated-by-user", ""])
def test_what_is_no_interruption_announces_nothing(code):
    assert spot_event(REF, code, updated_at=NOW) is None


def test_an_end_without_a_time_has_none():
    event = spot_event(REF, "marked-for-termination")

    assert event is not None
    assert event.termination_time is None


@pytest.mark.parametrize("code", ["instance-retirement", "instance-stop"])
def test_a_plan_that_stops_the_machine_is_an_interruption_at_its_time(code):
    event = scheduled_event(REF, code, not_before=NOW)

    assert event == ProviderEvent(ref=REF, fault_code=code, marked_for_termination=False, termination_time=NOW)


@pytest.mark.parametrize("code", ["instance-reboot", "system-reboot", "system-maintenance", ""])
def test_a_plan_after_which_the_machine_is_there_announces_nothing(code):
    assert scheduled_event(REF, code, not_before=NOW) is None


def test_a_naive_time_is_refused():
    with pytest.raises(ValueError, match="no time zone"):
        ProviderEvent(ref=REF, fault_code="x", marked_for_termination=True, termination_time=NOW.replace(tzinfo=None))


def test_a_checkpoint_has_one_of_three_reasons_and_perhaps_an_event():
    event = spot_event(REF, "marked-for-termination", updated_at=NOW)
    state = MetaState(checkpoint_reason=CheckpointReason("instance_termination"), event=event)

    assert [str(each) for each in CheckpointReason] == ["instance_termination", "job_termination", "heartbeat"]
    assert (state.event, MetaState(checkpoint_reason=CheckpointReason.HEARTBEAT).event) == (event, None)
    with pytest.raises(ValueError, match="whim"):
        CheckpointReason("whim")
