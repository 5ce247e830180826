"""What an audit finds (rules 8, 26, 27), each on its boundary."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from alerts.model import Cause, Severity
from providers.events import ProviderEvent
from providers.model import AuditedInstance, InstanceState, TagKeys
from reaperd.core.ignoring import IgnoreRule
from reaperd.core.leaks import AuditFindings, AuditPolicy, find_leaks, near_miss
from tests.support.worlds import DEPLOYMENT, EAST, HOUR, MINUTE, NOW, SECOND, WEST, ref

DAY = timedelta(hours=24)
KEYS = TagKeys()


def found(instance_id: str = "i-1", *, age: timedelta | None = 2 * DAY, **other: Any) -> AuditedInstance:
    """Return a running machine without an owner."""
    facts: dict[str, Any] = {"state": InstanceState.RUNNING, "launched_at": NOW - age if age is not None else None}
    return AuditedInstance(ref=ref(instance_id, other.pop("at", EAST)), **(facts | other))


def sweep(*machines: AuditedInstance, first_seen: dict[Any, datetime] | None = None, **wishes: Any) -> AuditFindings:
    facts: dict[str, Any] = {"deployment": DEPLOYMENT, "tags": KEYS, "max_age": DAY}
    return find_leaks(machines, AuditPolicy(**(facts | wishes)), NOW, first_seen or {})


def leaks(*args: Any, **kwargs: Any) -> list[str]:
    return [leak.instance.ref.instance_id for leak in sweep(*args, **kwargs).leaks]


# ---------------------------------------------------------------- what is a leak


def test_a_machine_that_nobody_owns_leaks_when_it_is_older_than_the_limit():
    assert leaks(found(age=DAY)) == []
    assert leaks(found(age=DAY + SECOND)) == ["i-1"]


@pytest.mark.parametrize("seen_for", [None, timedelta(0), HOUR, DAY], ids=["never", "now", "an hour", "a day"])
def test_a_machine_that_nobody_gives_a_start_to_is_of_unknown_age_until_it_was_seen_for_long_enough(seen_for):
    finding = sweep(found(age=None), first_seen={} if seen_for is None else {ref(): NOW - seen_for})

    assert (finding.leaks, finding.conditions) == ((), ())
    assert [(leak.instance.ref, leak.age) for leak in finding.unknown_age] == [(ref(), None)]


def test_a_machine_that_nobody_gives_a_start_to_leaks_once_it_was_seen_for_longer_than_the_limit():
    finding = sweep(found(age=None), first_seen={ref(): NOW - DAY - SECOND})

    assert [leak.age for leak in finding.leaks] == [DAY + SECOND]
    assert finding.unknown_age == ()


@pytest.mark.parametrize("seen_for", [HOUR, HOUR + SECOND])
def test_a_dear_machine_that_nobody_gives_a_start_to_leaks_as_soon_as_it_was_seen_for_its_least_age(seen_for):
    dear = found(age=None, cost_per_hour_usd=9.0)

    assert bool(leaks(dear, first_seen={ref(): NOW - seen_for}, **DEAR)) is (seen_for > HOUR)


def test_a_machine_of_unknown_age_that_is_going_or_ignored_is_not_told():
    rule = IgnoreRule(reason="known", patterns={"name": "bastion"})

    finding = sweep(
        found("i-1", age=None, state=InstanceState.SHUTTING_DOWN),
        found("i-2", age=None, name="bastion"),
        ignore=(rule,),
    )

    assert finding.unknown_age == ()


def test_our_own_machine_is_no_leak_however_old():
    finding = sweep(found(owner=DEPLOYMENT))

    assert finding.leaks == ()
    assert (finding.instances, finding.owned) == (1, 1)


@pytest.mark.parametrize("owner", ["prod-a-canary", "Prod-A", "", None])
def test_a_machine_of_any_other_owner_may_leak(owner):
    assert leaks(found(owner=owner)) == ["i-1"]


@pytest.mark.parametrize(
    ("state", "leaked"),
    [(state, state not in {InstanceState.TERMINATED, InstanceState.SHUTTING_DOWN}) for state in InstanceState],
    ids=str,
)
def test_a_machine_leaks_in_every_state_but_the_last_two(state, leaked):
    assert bool(leaks(found(state=state))) is leaked


def test_a_terminated_machine_is_not_counted():
    assert sweep(found(state=InstanceState.TERMINATED)).instances == 0


# ---------------------------------------------------------------- cost


DEAR = {"max_cost_per_hour": 5.0, "min_age": HOUR}


@pytest.mark.parametrize(
    ("cost", "age", "leaked"),
    [
        (5.01, HOUR + SECOND, True),
        (5.0, HOUR + SECOND, False),
        (5.01, HOUR, False),
        (None, HOUR + SECOND, False),
    ],
    ids=["dear and old", "at the limit", "dear and young", "of unknown price"],
)
def test_a_machine_leaks_before_its_age_when_it_is(cost, age, leaked):
    assert bool(leaks(found(age=age, cost_per_hour_usd=cost), **DEAR)) is leaked


def test_cost_says_nothing_unless_a_limit_is_set():
    assert leaks(found(age=2 * HOUR, cost_per_hour_usd=99.0)) == []


def test_a_price_of_the_operator_counts_where_the_cloud_gives_none():
    prices = {"p5.48xlarge": 98.0, "aws/us-east-1/p5.48xlarge": 55.0}
    machines = (
        found("i-1", age=2 * HOUR, instance_type="p5.48xlarge"),
        found("i-2", age=2 * HOUR, instance_type="p5.48xlarge", at=WEST),
        found("i-3", age=2 * HOUR, instance_type="p5.48xlarge", cost_per_hour_usd=9.0),
        found("i-4", age=2 * HOUR, instance_type="t3.nano"),
    )

    told = sweep(*machines, **DEAR, prices=prices).leaks

    assert {leak.instance.ref.instance_id: leak.instance.cost_per_hour_usd for leak in told} == {
        "i-1": 55.0,
        "i-2": 98.0,
        "i-3": 9.0,
    }


def test_a_stopped_machine_does_not_cost_its_price():
    stopped = found(age=2 * HOUR, cost_per_hour_usd=99.0, state=InstanceState.STOPPED)

    assert leaks(stopped, **DEAR) == []


# ---------------------------------------------------------------- stopped


@pytest.mark.parametrize(
    ("state", "severity"),
    [
        (state, Severity.INFO if state is InstanceState.STOPPED else Severity.WARNING)
        for state in InstanceState
        if state.exists
    ],
    ids=str,
)
def test_a_stopped_leak_wakes_nobody_at_first(state, severity):
    finding = sweep(found(state=state))

    assert finding.leaks[0].stopped is (state is InstanceState.STOPPED)
    assert [condition.severity for condition in finding.conditions] == [severity]


# ---------------------------------------------------------------- age


def test_a_nightly_stop_and_start_does_not_make_a_machine_young():
    nightly = found(age=HOUR, attached_at=NOW - 3 * DAY)

    assert sweep(nightly).leaks[0].age == 3 * DAY


def test_a_machine_that_was_seen_long_ago_is_old():
    known = {ref(): NOW - 2 * DAY}

    finding = sweep(found(age=HOUR), first_seen=known)

    assert finding.leaks[0].first_seen_at == NOW - 2 * DAY
    assert finding.leaks[0].age == 2 * DAY


def test_a_first_sight_in_the_future_gives_no_negative_age():
    assert [leak.age for leak in sweep(found(age=None), first_seen={ref(): NOW + HOUR}).unknown_age] == [None]


# ---------------------------------------------------------------- near misses


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ({KEYS.owner: DEPLOYMENT}, None),
        ({KEYS.owner: "Prod-A"}, "reaperd:owner=Prod-A"),
        ({KEYS.owner: " prod-a "}, "reaperd:owner= prod-a "),
        ({"Reaperd:Owner": DEPLOYMENT}, "Reaperd:Owner=prod-a"),
        ({"reaperd: owner ": DEPLOYMENT}, "reaperd: owner =prod-a"),
        ({KEYS.owner: "prod-a-canary"}, None),
        ({"owner": DEPLOYMENT}, None),
        ({}, None),
    ],
    ids=["exact", "case of value", "blanks of value", "case of key", "blanks of key", "longer", "other key", "none"],
)
def test_a_tag_that_is_ours_but_for_case_or_blanks_is_a_near_miss(tags, told):
    assert near_miss(tags, KEYS, DEPLOYMENT) == told


def test_a_near_miss_is_counted_young_or_old_and_marked_on_its_leak():
    finding = sweep(
        found("i-1", tags={KEYS.owner: "Prod-A"}), found("i-2", age=MINUTE, tags={KEYS.owner: "Prod-A"}), found("i-3")
    )

    assert [leak.instance.ref.instance_id for leak in finding.near_misses] == ["i-1", "i-2"]
    assert [condition.data["near_miss_tag"] for condition in finding.conditions] == ["reaperd:owner=Prod-A", None]


# ---------------------------------------------------------------- rules to ignore


FACTS = {
    "provider": ("aw*", "gcp"),
    "account": ("1234*", "9*"),
    "region": ("us-*", "eu-*"),
    "instance_id": ("i-?", "i-??"),
    "instance_type": ("t3.*", "m5.*"),
    "name": ("bastion-*", "Bastion-*"),
}
BASTION = found(account="123456789012", instance_type="t3.micro", name="bastion-1", tags={"team": "platform"})


@pytest.mark.parametrize("key", FACTS)
def test_a_rule_ignores_by_glob_on_each_attribute(key):
    fits, fails = FACTS[key]

    assert leaks(BASTION, ignore=(IgnoreRule(reason="known", patterns={key: fits}),)) == []
    assert leaks(BASTION, ignore=(IgnoreRule(reason="known", patterns={key: fails}),)) == ["i-1"]


@pytest.mark.parametrize("key", ["account", "instance_type", "name"])
def test_an_attribute_that_is_not_told_is_an_empty_text(key):
    assert leaks(found(), ignore=(IgnoreRule(reason="known", patterns={key: "x*"}),)) == ["i-1"]
    assert leaks(found(), ignore=(IgnoreRule(reason="known", patterns={key: "*"}),)) == []


@pytest.mark.parametrize(
    ("tags", "ignored"),
    [({"team": "plat*"}, True), ({"team": "x*"}, False), ({"other": "*"}, False)],
    ids=["fits", "another value", "not there"],
)
def test_a_rule_ignores_by_glob_on_tags(tags, ignored):
    assert (leaks(BASTION, ignore=(IgnoreRule(reason="known", tags=tags),)) == []) is ignored


def test_everything_that_a_rule_names_must_match():
    rule = IgnoreRule(reason="known", patterns={"name": "bastion-*", "region": "eu-*"}, tags={"team": "*"})

    assert leaks(BASTION, ignore=(rule,)) == ["i-1"]


def test_a_rule_that_names_nothing_ignores_nothing():
    assert leaks(BASTION, ignore=(IgnoreRule(reason="known"),)) == ["i-1"]


def test_a_rule_holds_to_the_end_of_its_last_day():
    def until(day: date) -> list[str]:
        return leaks(BASTION, ignore=(IgnoreRule(reason="known", until=day, patterns={"name": "*"}),))

    assert until(NOW.date()) == []
    assert until(NOW.date() - timedelta(days=1)) == ["i-1"]


def test_an_ignored_leak_is_told_with_the_reason_and_raises_nothing():
    finding = sweep(BASTION, ignore=(IgnoreRule(reason="the platform team's", patterns={"name": "bastion-*"}),))

    assert [(each.leak.instance, each.reason) for each in finding.ignored] == [(BASTION, "the platform team's")]
    assert finding.conditions == ()


# ---------------------------------------------------------------- what is told


def test_a_leak_is_told_with_its_evidence():
    finding = sweep(found(name="build", instance_type="m5.large"))

    (condition,) = finding.conditions
    assert (condition.key, condition.severity) == ("leak/aws/us-east-1/i-1", Severity.WARNING)
    assert dict(condition.data) == {
        "name": "build",
        "instance_type": "m5.large",
        "state": "running",
        "age_seconds": 172800,
        "near_miss_tag": None,
    }


def test_leaks_are_told_in_the_order_of_their_machines():
    assert [str(leak.instance.ref) for leak in sweep(found("i-2"), found("i-1"), found("i-9", at=WEST)).leaks] == [
        "aws/eu-west-1/i-9",
        "aws/us-east-1/i-1",
        "aws/us-east-1/i-2",
    ]


@pytest.mark.parametrize(
    ("owner", "scopes", "discovering", "told"),
    [
        (DEPLOYMENT, frozenset({WEST}), (), True),
        (DEPLOYMENT, frozenset({EAST}), (), False),
        (DEPLOYMENT, None, (), False),
        (DEPLOYMENT, frozenset({WEST}), ("aws",), False),
        (DEPLOYMENT, frozenset({WEST}), ("gcp",), True),
        ("prod-b", frozenset({WEST}), (), False),
    ],
    ids=["elsewhere", "here", "anywhere", "where it is found", "where another one's are found", "a stranger's"],
)
def test_our_own_machine_is_told_where_the_reaper_does_not_look(owner, scopes, discovering, told):
    finding = sweep(found(age=MINUTE, owner=owner), scopes=scopes, discovering=frozenset(discovering))

    assert finding.out_of_scope == ((ref(),) if told else ())
    keys = [condition.key for condition in finding.conditions]
    assert keys == ([f"{Cause.OWNED_OUT_OF_SCOPE}/aws/us-east-1/i-1"] if told else [])


# ---------------------------------------------------------------- what clouds announce


def test_what_is_announced_is_told_beside_its_machine_and_nothing_is_judged_by_it():
    going = ProviderEvent(ref=ref("i-1"), fault_code="marked-for-termination", marked_for_termination=True)
    machines = [found("i-1"), found("i-2"), found("i-3", age=HOUR, tags={"Reaperd:Owner": DEPLOYMENT})]
    policy = AuditPolicy(deployment=DEPLOYMENT, tags=KEYS, max_age=DAY)

    plain, told = find_leaks(machines, policy, NOW), find_leaks(machines, policy, NOW, events=[going])

    assert [(leak.instance.ref.instance_id, leak.event) for leak in told.leaks] == [("i-1", going), ("i-2", None)]
    assert [leak.event for leak in told.near_misses] == [None]
    assert told.conditions == plain.conditions
    assert replace(told, leaks=()) == replace(plain, leaks=())
