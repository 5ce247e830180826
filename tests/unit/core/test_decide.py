"""The decision as a whole: which reason comes first, what a refusal carries, how a plan is named and ordered."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest

from providers.model import Scope, ScopeFailure
from reaperd.core.model import Brake, BreakerLimits, Memory, Observation, Plan, Refusal, RefusalReason
from reaperd.core.reap import decide, digest_of, judge
from tests.support.worlds import (
    EAST,
    GCP,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    WEST,
    broken,
    identity,
    look,
    machine,
    policy,
    ref,
    registry,
    row,
    whole,
)

BRAKE = Brake(since=NOW, by="ann", reason="a deploy")
STRANGE_ROWS = [row(f"w-{n}", f"i-{n}") for n in (7, 8, 9)]
ORDER = [
    "ledger_unusable",
    "not_leader",
    "clock",
    "deadline",
    "wrong_account",
    "listing_incomplete",
    "registry_unusable",
    "registry_identity",
    "registry_mismatch",
    "reap_hold",
]


def troubled(reasons: list[str]) -> Observation:
    """Return a look in which exactly these reasons to stand down apply."""
    failures = {"wrong_account": ScopeFailure.WRONG_ACCOUNT, "listing_incomplete": ScopeFailure.LISTING}
    west = next((broken(WEST, failures[each]) for each in reasons if each == "listing_incomplete"), whole(WEST))
    gcp = next((broken(GCP, failures[each]) for each in reasons if each == "wrong_account"), whole(GCP))
    found = identity(
        deployment="prod-b" if "registry_identity" in reasons else "prod-a",
        updated_at=NOW - 2 * HOUR if "registry_unusable" in reasons else NOW,
    )
    return look(
        [machine()],
        coverage=(whole(EAST), west, gcp),
        registry=registry(*(STRANGE_ROWS if "registry_mismatch" in reasons else []), identity=found),
        memory=Memory(brake=BRAKE if "reap_hold" in reasons else None),
        ledger_trouble="disk full" if "ledger_unusable" in reasons else None,
        leader="not_leader" not in reasons,
        clock_step=HOUR if "clock" in reasons else None,
        late="deadline" in reasons,
    )


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_first_reason_of_the_list_is_told_and_the_rest_go_along(place):
    decision = decide(troubled(ORDER[place:]), policy(max_silence=HOUR))

    assert isinstance(decision, Refusal)
    assert decision.reason == ORDER[place]
    assert list(decision.also) == ORDER[place + 1 :]


@pytest.mark.parametrize("reason", ORDER)
def test_each_reason_is_enough_alone(reason):
    decision = decide(troubled([reason]), policy(max_silence=HOUR))

    assert isinstance(decision, Refusal)
    assert (decision.reason, decision.also) == (RefusalReason(reason), ())


def test_the_list_is_that_of_the_rules_and_the_breaker_comes_last():
    assert [*ORDER, "breaker_open"] == [str(reason) for reason in RefusalReason]


NEVER_OPEN = BreakerLimits(max_per_pass=0)


@pytest.mark.parametrize(
    ("seen", "reasons"),
    [
        (look([machine()]), ["breaker_open"]),
        (look([machine()], memory=Memory(brake=BRAKE)), ["reap_hold", "breaker_open"]),
        (look([machine()], leader=False), ["not_leader", "breaker_open"]),
        (look([machine()], leader=False, memory=Memory(brake=BRAKE)), ["not_leader", "reap_hold", "breaker_open"]),
        (look([machine()], late=True), ["deadline"]),
    ],
    ids=["nothing else", "the brake", "no lease", "no lease and the brake", "a bad picture"],
)
def test_the_breaker_is_judged_when_the_picture_is_good(seen, reasons):
    decision = decide(seen, policy(breaker=NEVER_OPEN))

    assert isinstance(decision, Refusal)
    assert [decision.reason, *decision.also] == reasons


@pytest.mark.parametrize("reason", [each for each in ORDER if each != "reap_hold"])
def test_a_refusal_that_is_no_brake_and_no_breaker_carries_no_verdicts(reason):
    decision = decide(troubled([reason, "reap_hold"]), policy(max_silence=HOUR))

    assert isinstance(decision, Refusal)
    assert (decision.verdicts, decision.digest, decision.breaker) == ((), None, None)


def test_the_brake_shows_what_would_go():
    decision = decide(troubled(["reap_hold"]), policy())

    assert isinstance(decision, Refusal)
    assert [v.ref for v in decision.verdicts if v.terminates] == [ref()]
    assert decision.digest == digest_of("prod-a", [ref()])
    assert decision.breaker is not None
    assert decision.breaker.candidates == 1


# ---------------------------------------------------------------- the digest


def test_the_digest_is_the_hash_of_the_deployment_and_the_sorted_lines():
    text = "prod-a\naws/eu-west-1/i-1\naws/us-east-1/i-1\naws/us-east-1/i-10\naws/us-east-1/i-2\n"
    expected = "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    digest = digest_of("prod-a", [ref("i-2"), ref("i-10"), ref("i-1", WEST), ref("i-1")])

    assert digest == expected
    assert digest == "sha256:ff5811bea0023c3c72a30601fdea5b772ff328eff98c033d57ae2d547c2a3962"


def test_the_lines_are_sorted_as_text():
    refs = [ref("i-1", EAST), ref("i-2", EAST), ref("i-1", Scope("aws", "us-east-1-a"))]
    lines = sorted(["aws/us-east-1/i-1\n", "aws/us-east-1/i-2\n", "aws/us-east-1-a/i-1\n"])

    digest = digest_of("prod-a", refs)

    assert digest == "sha256:" + hashlib.sha256(("prod-a\n" + "".join(lines)).encode()).hexdigest()


def test_a_plan_that_terminates_nothing_has_no_digest():
    assert digest_of("prod-a", []) is None

    decision = decide(look([machine()], [row()]), policy())

    assert decision == Plan(verdicts=decision.verdicts, digest=None)


def test_the_digest_names_terminations_only():
    decision = decide(look([machine("i-1"), machine("i-2", worker="w-2")], [row("w-2", "i-2")]), policy())

    assert decision.digest == digest_of("prod-a", [ref("i-1")])


def test_the_digest_holds_no_age():
    young, old = decide(look([machine(age=HOUR)]), policy()), decide(look([machine(age=30 * HOUR)]), policy())

    assert young.digest == old.digest


# ---------------------------------------------------------------- the order


def test_terminations_go_by_region_oldest_first_then_by_id():
    machines = [
        machine("i-1", age=1 * HOUR),
        machine("i-2", age=3 * HOUR),
        machine("i-4", age=2 * HOUR),
        machine("i-3", age=2 * HOUR),
        machine("i-5", at=WEST, age=HOUR),
        machine("i-0", at=GCP, age=9 * HOUR),
    ]

    decision = decide(look(machines), policy())

    assert isinstance(decision, Plan)
    assert [str(v.ref) for v in decision.terminations] == [
        "aws/eu-west-1/i-5",
        "aws/us-east-1/i-2",
        "aws/us-east-1/i-3",
        "aws/us-east-1/i-4",
        "aws/us-east-1/i-1",
        "gcp/us-east-1/i-0",
    ]


def test_verdicts_are_told_in_the_order_of_their_machines():
    machines = [machine("i-2"), machine("i-1"), machine("i-1", at=WEST)]

    decision = decide(look(machines, [row()]), policy())

    assert [str(v.ref) for v in decision.verdicts] == ["aws/eu-west-1/i-1", "aws/us-east-1/i-1", "aws/us-east-1/i-2"]


def test_nothing_is_judged_without_a_registry():
    assert judge(look([machine()], registry=None), policy()) == ()


# ---------------------------------------------------------------- the registry's word against the launch


@pytest.mark.parametrize(
    ("age", "rows", "goes"),
    [
        (20 * SECOND, [], False),
        (10 * MINUTE, [], False),
        (20 * MINUTE, [], True),
        (20 * MINUTE, [row()], False),
    ],
    ids=["new", "young", "old", "old and tracked"],
)
def test_the_launch_race_of_case_a08(age: timedelta, rows, goes):
    decision = decide(look([machine(age=age)], rows), policy())

    assert isinstance(decision, Plan)
    assert bool(decision.terminations) is goes
