from datetime import UTC, datetime
from decimal import Decimal

import pytest

from providers.base import EventSource, Examiner, InstanceAuditor, InstanceTypeLister, Locator, Provider
from providers.capacity import Offer, Requirement, WorkerSpec
from providers.errors import GateClosedError, GateUnreadableError, LaunchError
from providers.fake import FakeAuditingProvider, FakeCloud, FakeMachine, FakeProvider
from providers.fanout import asks_permission
from providers.gated import gated
from providers.locations import There
from providers.model import Scope
from reaperd.clock import ManualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OFFER = Offer(provider="aws", instance_type="gpu", region="fake-1", price_per_hour=Decimal(1))
NEED = Requirement(model="m")


class Switch:
    """A gate that answers what it is told to, and counts."""

    def __init__(self, answer=True):
        self.answer = answer
        self.asked = []

    def provision_allowed(self, cloud):
        self.asked.append(cloud)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Lines:
    def __init__(self):
        self.written = []

    def warning(self, event, /, **fields):
        self.written.append((event, fields))


class OnlyLists:
    name = "aws"

    def list_owned(self):
        raise NotImplementedError


class Everything(FakeAuditingProvider):
    def examine(self):
        return "examined"

    def list_instance_types(self):
        return ("type",)


OFF = [False, OSError("no such file"), None, "off", object()]
OFF_IDS = ["off", "raises", "no answer", "a word", "not awaited"]


@pytest.fixture
def cloud():
    return FakeCloud("aws", clock=ManualClock(NOW))


@pytest.fixture
def log():
    return Lines()


@pytest.fixture
def inner(cloud):
    provider = FakeProvider(cloud)
    provider.set_offers("", [OFFER])
    return provider


def test_without_a_gate_the_provider_is_itself(inner, log):
    assert gated("aws", inner, None, log) is inner


def test_it_is_a_provider_with_the_name_and_the_regions_of_the_inner_one(inner, log):
    provider = gated("amazon", inner, Switch(), log)

    assert isinstance(provider, Provider)
    assert asks_permission(provider)
    assert (provider.name, provider.regions) == ("aws", ("fake-1",))


def test_an_open_gate_changes_nothing(inner, log):
    provider = gated("aws", inner, Switch(), log)

    assert tuple(provider.quote(NEED)) == (OFFER,)
    assert provider.launch("w-1", OFFER, WorkerSpec()).worker_id == "w-1"
    assert log.written == []


@pytest.mark.parametrize("answer", OFF, ids=OFF_IDS)
def test_a_closed_gate_offers_nothing_and_does_not_ask_the_cloud(inner, log, answer):
    inner.quote_err = AssertionError("asked")

    offers = gated("amazon", inner, Switch(answer), log).quote(NEED)

    assert len(offers) == 0
    ((event, fields),) = log.written
    assert (event, fields["cloud"], fields["provider"]) == ("quote_gated", "amazon", "aws")
    assert fields["reason"] == ("gate_closed" if answer is False else "gate_unreadable")


@pytest.mark.parametrize("answer", OFF, ids=OFF_IDS)
def test_a_closed_gate_launches_nothing_and_says_so(inner, cloud, log, answer):
    with pytest.raises(GateClosedError):
        gated("aws", inner, Switch(answer), log).launch("w-1", OFFER, WorkerSpec())

    assert cloud.mutations == ()


def test_a_gate_that_cannot_be_read_has_a_message_and_a_cause_of_its_own(inner, log):
    def refusal(answer):
        with pytest.raises(LaunchError) as caught:
            gated("aws", inner, Switch(answer), log).launch("w-1", OFFER, WorkerSpec())
        return caught.value

    broken = OSError("no such file")
    closed, unreadable = refusal(False), refusal(broken)

    assert not isinstance(closed, GateUnreadableError)
    assert "reaperd gate on aws" in str(closed)
    assert isinstance(unreadable, GateUnreadableError)
    assert "OSError: no such file" in str(unreadable)
    assert unreadable.__cause__ is broken


def test_the_gate_is_asked_anew_each_time_and_by_the_name_that_operators_use(inner, log):
    switch = Switch()
    provider = gated("amazon", inner, switch, log)

    provider.quote(NEED)
    switch.answer = False
    with pytest.raises(GateClosedError):
        provider.launch("w-1", OFFER, WorkerSpec())
    switch.answer = True
    provider.launch("w-1", OFFER, WorkerSpec())

    assert switch.asked == ["amazon"] * 3


@pytest.mark.parametrize("answer", OFF, ids=OFF_IDS)
def test_ending_listing_and_auditing_are_never_gated_and_the_gate_is_not_asked(cloud, log, answer):
    switch = Switch(answer)
    ours, theirs = cloud.add(), cloud.add(FakeMachine(owner=None))
    provider = gated("aws", FakeAuditingProvider(cloud), switch, log)

    assert [instance.ref for instance in provider.list_owned()] == [ours]
    assert {instance.ref for instance in provider.audit_instances().instances} == {ours, theirs}
    assert {type(found) for found in provider.locate([ours, theirs]).values()} == {There}
    provider.terminate(ours, permitted=lambda: True)

    assert cloud.live == (theirs,)
    assert switch.asked == []


def test_what_ends_a_machine_is_handed_on_whole(cloud, log):
    ref = cloud.add()
    (seen,) = cloud.lister().list_owned()
    cloud.change(ref, worker_id="taken")
    provider = gated("aws", FakeProvider(cloud), Switch(), log)

    for words in ({"seen": seen}, {"permitted": lambda: False}):
        with pytest.raises(Exception, match=str(ref)):
            provider.terminate(ref, **words)

    assert cloud.live == (ref,)


def test_what_the_inner_one_cannot_do_the_gated_one_cannot_either(inner, log):
    provider = gated("aws", inner, Switch(), log)

    assert isinstance(provider, EventSource)
    assert not isinstance(provider, InstanceAuditor | Examiner | InstanceTypeLister)


def test_what_cannot_look_for_single_machines_does_not_pretend_to_behind_a_gate(cloud, log):
    assert isinstance(gated("aws", FakeProvider(cloud), Switch(), log), Locator)
    assert not isinstance(gated("aws", OnlyLists(), Switch(), log), Locator)


def test_what_the_inner_one_can_do_the_gated_one_can_too(cloud, log):
    provider = gated("aws", Everything(cloud), Switch(False), log)

    assert all(isinstance(provider, port) for port in (InstanceAuditor, Examiner, InstanceTypeLister, EventSource))
    assert (provider.examine(), provider.list_instance_types()) == ("examined", ("type",))
    assert {entry.scope for entry in provider.audit_instances().coverage} == {Scope("aws", "fake-1")}
    assert provider.instance_event(cloud.add()) is None
