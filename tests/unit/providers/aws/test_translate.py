"""Raw answers, read into our words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from providers.aws.translate import (
    MalformedAnswerError,
    Vantage,
    audited_instance,
    changed,
    managing_fleet,
    next_token,
    owned_instance,
    raw_instances,
    release_fleets,
)
from providers.model import AuditedInstance, InstanceRef, InstanceState, OwnedInstance, TagKeys

ACCOUNT = "123456789012"
LAUNCHED = datetime(2026, 11, 29, 10, tzinfo=UTC)
EARLIER = datetime(2026, 11, 1, 10, tzinfo=UTC)


def vantage(account: str | None = ACCOUNT) -> Vantage:
    return Vantage(provider="aws", region="eu-west-1", keys=TagKeys(), account=account)


def raw(**fields: Any) -> dict[str, Any]:
    return {"Reservations": [{"OwnerId": ACCOUNT, "Instances": [{"InstanceId": "i-1"} | fields]}]}


def tagged(**tags: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def owned(answer: dict[str, Any] | None = None, account: str | None = ACCOUNT, **fields: Any) -> OwnedInstance:
    (one,) = raw_instances(answer or raw(**fields))
    return owned_instance(one, vantage(account))


def audited(**fields: Any) -> AuditedInstance:
    (one,) = raw_instances(raw(**fields))
    return audited_instance(one, vantage())


def test_an_instance_is_read_whole() -> None:
    tags = {
        "reaperd:owner": "prod",
        "reaperd:worker-id": "w-1",
        "reaperd:model": "llama",
        "reaperd:registry-id": "reg",
        "Name": "x",
    }

    assert owned(
        State={"Name": "stopped", "Code": 80},
        Tags=tagged(**tags),
        LaunchTime=LAUNCHED,
        InstanceType="g5.xlarge",
        Placement={"AvailabilityZone": "eu-west-1a"},
        SpotInstanceRequestId="sir-1",
    ) == OwnedInstance(
        ref=InstanceRef("aws", "eu-west-1", "i-1"),
        state=InstanceState.STOPPED,
        owner="prod",
        worker_id="w-1",
        model="llama",
        registry_id="reg",
        launched_at=LAUNCHED,
        account=ACCOUNT,
        zone="eu-west-1a",
        instance_type="g5.xlarge",
        spot_request_id="sir-1",
        tags=tags,
    )


def test_an_instance_with_nothing_but_an_id_is_not_dropped() -> None:
    bare = owned()

    assert bare.state is InstanceState.UNKNOWN
    assert bare.state.exists
    assert bare.owner == ""
    assert bare.launched_at is None
    assert bare.tags == {}
    assert bare.managed_by is None


@pytest.mark.parametrize("odd", [None, "", "hibernating", ["running"], "unknown"])
def test_a_state_of_another_kind_counts_as_existing(odd: Any) -> None:
    assert owned(State={"Name": odd}).state is InstanceState.UNKNOWN


@pytest.mark.parametrize("state", [state for state in InstanceState if state is not InstanceState.UNKNOWN])
def test_every_state_of_ec2_is_known(state: InstanceState) -> None:
    assert owned(State={"Name": str(state)}).state is state


@pytest.mark.parametrize("odd", ["running", ["running"], 16])
def test_a_state_that_is_no_structure_counts_as_existing(odd: Any) -> None:
    assert owned(State=odd).state is InstanceState.UNKNOWN


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"Reservations": None},
        {"Reservations": {}},
        {"Reservations": ["x"]},
        {"Reservations": [{}]},
        {"Reservations": [{"Instances": {}}]},
        {"Reservations": [{"Instances": [{}]}]},
        {"Reservations": [{"Instances": [{"InstanceId": ""}]}]},
        {"Reservations": [{"Instances": [{"InstanceId": 7}]}]},
        {"Reservations": [{"Instances": [None]}]},
    ],
)
def test_a_page_of_another_form_is_malformed(page: dict[str, Any]) -> None:
    with pytest.raises(MalformedAnswerError):
        list(raw_instances(page))


@pytest.mark.parametrize(
    "tags",
    [
        {},
        None,
        "x",
        ["x"],
        [{"Value": "x"}],
        [{"Key": 1, "Value": "x"}],
        [{"Key": "x", "Value": ["y"]}],
        tagged(a="1") + tagged(a="2"),
    ],
)
def test_tags_that_cannot_be_read_are_malformed_since_one_may_protect(tags: Any) -> None:
    with pytest.raises(MalformedAnswerError):
        owned(Tags=tags)


@pytest.mark.parametrize("key", ["reaperd:protect", "Reaperd:Protect", "REAPERD:PROTECT", " reaperd:protect "])
@pytest.mark.parametrize("value", ["", "false", "true"])
def test_the_protect_tag_protects_whatever_its_value_and_case(key: str, value: str) -> None:
    assert owned(Tags=tagged(**{key: value})).protect


def test_a_tag_without_a_value_is_there() -> None:
    assert owned(Tags=[{"Key": "reaperd:protect"}]).protect


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_blank_worker_tag_is_none(blank: str) -> None:
    assert owned(Tags=tagged(**{"reaperd:worker-id": blank})).worker_id is None


def test_the_owner_stands_as_on_the_machine() -> None:
    assert owned(Tags=tagged(**{"reaperd:owner": " Prod"})).owner == " Prod"


@pytest.mark.parametrize(
    ("fields", "managed_by"),
    [
        ({"Tags": tagged(**{"aws:autoscaling:groupName": "web"})}, "autoscaling:web"),
        ({"Tags": tagged(**{"aws:eks:cluster-name": "k"})}, "eks:k"),
        ({"Tags": tagged(**{"aws:elasticmapreduce:job-flow-id": "j-1"})}, "elasticmapreduce:j-1"),
        ({"Tags": tagged(**{"aws:ec2:fleet-id": "fleet-1"})}, "fleet:fleet-1"),
        ({"Tags": tagged(**{"aws:ec2spot:fleet-request-id": "sfr-1"})}, "fleet:sfr-1"),
        (
            {"Tags": tagged(**{"aws:ec2:fleet-id": "fleet-1", "aws:ec2spot:fleet-request-id": "sfr-1"})},
            "fleet:fleet-1+sfr-1",
        ),
        (
            {"Tags": tagged(**{"aws:autoscaling:groupName": "web", "aws:ec2:fleet-id": "fleet-1"})},
            "autoscaling:web",
        ),
        ({"Operator": {"Managed": True, "Principal": "eks.amazonaws.com"}}, "operator:eks.amazonaws.com"),
        ({"Operator": {"Managed": True}}, "operator:unknown"),
        ({"Operator": {"Principal": "x"}}, "operator:x"),
        ({"Operator": "x"}, "operator:unknown"),
        ({"Operator": {"Managed": "yes"}}, "operator:unknown"),
        ({"Operator": {"Managed": False}}, None),
        ({"Operator": {}}, None),
        ({"Operator": None}, None),
        ({"Tags": tagged(**{"eks:cluster-name": "typed-by-a-person"})}, None),
    ],
)
def test_what_would_relaunch_manages(fields: dict[str, Any], managed_by: str | None) -> None:
    assert owned(**fields).managed_by == managed_by
    assert audited(**fields).managed_by == managed_by


def test_only_a_fleet_that_is_proved_harmless_is_released() -> None:
    def of(fleet: str) -> OwnedInstance:
        return owned(Tags=tagged(**{"aws:ec2:fleet-id": fleet}))

    grouped = owned(Tags=tagged(**{"aws:autoscaling:groupName": "fleet-1"}))

    released = release_fleets([of("fleet-1"), of("fleet-2"), grouped, owned()], frozenset({"fleet-1"}))

    assert [one.managed_by for one in released] == [None, "fleet:fleet-2", "autoscaling:fleet-1", None]
    assert managing_fleet(of("fleet-2")) == "fleet-2"
    assert managing_fleet(grouped) is None


def test_a_machine_of_another_account_is_foreign() -> None:
    assert not owned().foreign_account
    assert owned(account="999999999999").foreign_account
    assert not owned(account=None).foreign_account


def test_a_machine_of_no_account_is_foreign_where_one_is_pinned() -> None:
    answer = {"Reservations": [{"Instances": [{"InstanceId": "i-1"}]}]}

    assert owned(answer).foreign_account
    assert owned(answer).account is None
    assert not owned(answer, account=None).foreign_account


def test_a_time_without_a_zone_is_in_utc() -> None:
    assert owned(LaunchTime=LAUNCHED.replace(tzinfo=None)).launched_at == LAUNCHED


@pytest.mark.parametrize("odd", [None, "yesterday", 0])
def test_a_time_that_is_none_is_unknown(odd: Any) -> None:
    assert owned(LaunchTime=odd).launched_at is None


def test_the_audit_takes_the_attach_time_of_the_primary_interface() -> None:
    interfaces = [
        {"Attachment": {"DeviceIndex": 1, "AttachTime": LAUNCHED}},
        {"Attachment": {"DeviceIndex": 0, "AttachTime": EARLIER}},
    ]

    seen = audited(LaunchTime=LAUNCHED, NetworkInterfaces=interfaces, Tags=tagged(Name="bastion"))

    assert seen.attached_at == EARLIER
    assert seen.launched_at == LAUNCHED
    assert seen.name == "bastion"
    assert seen.owner is None


@pytest.mark.parametrize("odd", [None, "x", [], ["x"], [{}], [{"Attachment": {}}], [{"Attachment": None}]])
def test_odd_interfaces_tell_no_attach_time(odd: Any) -> None:
    assert audited(NetworkInterfaces=odd).attached_at is None


@pytest.mark.parametrize(("page", "token"), [({}, None), ({"NextToken": ""}, None), ({"NextToken": "t"}, "t")])
def test_the_explicit_end_is_no_token(page: dict[str, Any], token: str | None) -> None:
    assert next_token(page) == token


def test_a_token_that_is_no_text_is_malformed() -> None:
    with pytest.raises(MalformedAnswerError):
        next_token({"NextToken": ["t"]})


RUNNING = {"State": {"Name": "running"}, "LaunchTime": LAUNCHED}
OURS = {"reaperd:owner": "prod", "reaperd:worker-id": "w-1"}


def machine(state: str = "running", launched: datetime = LAUNCHED, **tags: str) -> OwnedInstance:
    given = {key.replace("_", "-"): value for key, value in tags.items()}
    pairs = OURS | {f"reaperd:{key}": value for key, value in given.items()}
    return owned(State={"Name": state}, LaunchTime=launched, Tags=tagged(**pairs))


def test_an_unchanged_machine_may_be_terminated() -> None:
    assert changed(machine(), deployment="prod", seen=machine()) is None
    assert changed(machine(), deployment="prod", seen=None) is None


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (machine(owner="prod "), "owner tag"),
        (machine(owner="Prod"), "owner tag"),
        (machine(state="shutting-down"), "shutting-down"),
        (machine(state="terminated"), "terminated"),
        (machine(protect="no"), "protect tag"),
        (owned(**RUNNING, Tags=tagged(**OURS, **{"aws:autoscaling:groupName": "g"})), "autoscaling:g"),
        (owned(**RUNNING, Tags=tagged(**OURS), account="999999999999"), "account"),
        (machine(worker_id="w-2"), "worker tag"),
        (machine(worker_id=""), "worker tag"),
        (machine(registry_id="other"), "registry tag"),
        (machine(launched=EARLIER), "launched"),
    ],
)
def test_a_changed_machine_is_told_from_the_one_that_was_seen(now: OwnedInstance, word: str) -> None:
    reason = changed(now, deployment="prod", seen=machine())

    assert reason is not None
    assert word in reason
