"""What a rehearsal and an audit get of a plug-in: looking, in whatever ways it can, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime

from providers.base import InstanceAuditor, Lister, Locator, Terminator
from providers.fake import FakeAuditingProvider, FakeCloud
from providers.locations import There
from providers.model import InstanceState, Inventory
from reaperd.clock import ManualClock
from reaperd.wiring.clouds import look_only

NOW = datetime(2026, 1, 10, tzinfo=UTC)


class OnlyLists:
    name = "fake"

    def list_owned(self) -> Inventory:
        raise NotImplementedError


def test_of_a_whole_provider_only_looking_is_left():
    cloud = FakeCloud(clock=ManualClock(NOW), owner="prod-a")
    ref = cloud.add()
    left = look_only(FakeAuditingProvider(cloud))

    assert isinstance(left, Lister)
    assert isinstance(left, InstanceAuditor)
    assert isinstance(left, Locator)
    assert not isinstance(left, Terminator)
    assert [each.ref for each in left.list_owned()] == [ref]
    assert left.locate([ref]) == {ref: There(InstanceState.RUNNING, "prod-a")}


def test_one_that_cannot_look_for_single_machines_does_not_pretend_to():
    assert not isinstance(look_only(OnlyLists()), Locator)
