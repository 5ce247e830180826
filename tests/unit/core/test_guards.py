"""What makes a whole pass stand down (rules 2, 3, 4, 9, 16, 17, 18), each on its boundary."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.model import InstanceState, Scope, ScopeFailure
from reaperd.core.guards import required_scopes
from reaperd.core.model import (
    Brake,
    Memory,
    Observation,
    Plan,
    ReapPolicy,
    Refusal,
    RefusalReason,
    RegistryTrouble,
)
from reaperd.core.reap import decide
from registry.model import WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    EAST,
    EPOCH,
    GCP,
    HOUR,
    NOW,
    SCOPES,
    SECOND,
    WEST,
    broken,
    identity,
    look,
    machine,
    pin,
    policy,
    ref,
    registry,
    row,
    whole,
)

MINUTE_AND_A_BIT = timedelta(seconds=60, microseconds=1)


def refusal_of(seen: Observation, wishes: ReapPolicy | None = None) -> Refusal | None:
    decision = decide(seen, wishes or policy())
    return decision if isinstance(decision, Refusal) else None


def reason_of(seen: Observation, wishes: ReapPolicy | None = None) -> RefusalReason | None:
    refusal = refusal_of(seen, wishes)
    return refusal.reason if refusal else None


def covered(*entries: object, machines: tuple[object, ...] = ()) -> Observation:
    """Return a look whose coverage is the given one, and whole for all scopes that it does not name."""
    named = {entry.scope for entry in entries}  # type: ignore[attr-defined]
    rest = tuple(whole(scope) for scope in SCOPES if scope not in named)
    return look(machines, coverage=(*entries, *rest))  # type: ignore[arg-type]


def test_a_good_picture_is_refused_by_nobody():
    assert isinstance(decide(look([machine()]), policy()), Plan)


# ---------------------------------------------------------------- rule 2: complete or nothing


def test_a_failed_scope_refuses_the_pass_and_is_named_with_its_code():
    refusal = refusal_of(covered(broken(WEST, error_code="UnauthorizedOperation"), machines=(machine(at=EAST),)))

    assert refusal is not None
    assert refusal.reason is RefusalReason.LISTING_INCOMPLETE
    assert refusal.detail == "aws/eu-west-1 (UnauthorizedOperation)"


def test_a_configured_scope_that_was_not_listed_refuses_the_pass():
    refusal = refusal_of(look(coverage=(whole(EAST), whole(WEST))))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.LISTING_INCOMPLETE, "gcp/us-east-1 (not_listed)")


def test_a_pass_that_listed_no_scope_at_all_is_refused():
    refusal = refusal_of(look(coverage=()), policy(scopes=frozenset()))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.LISTING_INCOMPLETE, "no scope was listed")


def test_a_scope_that_was_once_discovered_stays_required():
    remembered = Memory(scopes=frozenset({Scope("aws", "ap-south-1")}))

    reason = reason_of(look(memory=remembered), policy(discovering=frozenset({"aws"})))

    assert reason is RefusalReason.LISTING_INCOMPLETE


def test_a_scope_of_an_explicit_list_is_required_until_the_configuration_drops_it():
    remembered = Memory(scopes=frozenset({Scope("aws", "ap-south-1")}))

    assert reason_of(look(memory=remembered), policy(discovering=frozenset({"gcp"}))) is None
    assert required_scopes(policy(), remembered) == frozenset(SCOPES)


def test_a_machine_of_a_scope_that_was_not_asked_refuses_the_pass():
    refusal = refusal_of(look([machine(at=Scope("aws", "sa-east-1"))]))

    assert refusal is not None
    assert refusal.reason is RefusalReason.LISTING_INCOMPLETE
    assert refusal.detail == "aws/sa-east-1/i-1 (out_of_scope)"


def test_a_machine_that_is_listed_twice_refuses_the_pass():
    refusal = refusal_of(look([machine(), machine()]))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (
        RefusalReason.LISTING_INCOMPLETE,
        "aws/us-east-1/i-1 (duplicate_instance)",
    )


def test_a_late_answer_of_one_scope_refuses_the_pass():
    refusal = refusal_of(covered(broken(WEST, ScopeFailure.DEADLINE)))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.DEADLINE, "no answer in time from aws/eu-west-1")


def test_a_pass_past_its_deadline_is_refused_although_everything_was_listed():
    refusal = refusal_of(look(late=True))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.DEADLINE, "no answer in time")


# ---------------------------------------------------------------- rule 9: which account


def test_an_account_that_is_not_the_pinned_one_refuses_the_pass():
    wrong = broken(WEST, ScopeFailure.WRONG_ACCOUNT, error_code="unproven", detail="sts: AccessDenied")

    refusal = refusal_of(covered(wrong))

    assert refusal is not None
    assert refusal.reason is RefusalReason.WRONG_ACCOUNT
    assert refusal.detail == "aws/eu-west-1: unproven: sts: AccessDenied"


@pytest.mark.parametrize(
    ("east", "gcp", "reason"),
    [
        ("1", "1", RefusalReason.WRONG_ACCOUNT),
        ("1", "2", None),
        ("1", None, None),
        (None, None, None),
    ],
    ids=["the same account", "two accounts", "one without an account", "none with an account"],
)
def test_one_region_of_one_account_under_two_names_refuses_the_pass(east, gcp, reason):
    assert reason_of(covered(whole(EAST, account=east), whole(GCP, account=gcp))) is reason


def test_two_regions_of_one_account_are_no_trouble():
    assert reason_of(covered(whole(WEST, account="1"), whole(GCP, account="1"))) is None


def test_a_refusal_for_an_account_under_two_names_says_which():
    refusal = refusal_of(covered(whole(EAST, account="1"), whole(GCP, account="1")))

    assert refusal is not None
    assert refusal.detail == "aws and gcp are the same account 1 in us-east-1"


# ---------------------------------------------------------------- rule 16: the clock


@pytest.mark.parametrize("sign", [1, -1], ids=["forward", "back"])
def test_a_clock_that_moved_by_exactly_the_tolerance_is_good_and_a_bit_more_is_not(sign):
    assert reason_of(look(clock_step=sign * timedelta(seconds=60))) is None
    assert reason_of(look(clock_step=sign * MINUTE_AND_A_BIT)) is RefusalReason.CLOCK


def test_the_first_pass_has_no_step_to_be_judged_by():
    assert reason_of(look(clock_step=None)) is None


@pytest.mark.parametrize("sign", [1, -1], ids=["later", "earlier"])
def test_a_date_exactly_the_tolerance_outside_is_good_and_a_bit_more_is_not(sign):
    assert reason_of(covered(whole(WEST, clock_skew=sign * timedelta(seconds=60)))) is None
    assert reason_of(covered(whole(WEST, clock_skew=sign * MINUTE_AND_A_BIT))) is RefusalReason.CLOCK


def test_a_refusal_by_the_clock_says_by_how_much():
    moved = refusal_of(look(clock_step=-timedelta(seconds=90)))
    skewed = refusal_of(covered(whole(WEST, clock_skew=timedelta(seconds=75))))

    assert moved is not None
    assert "moved by -90 s" in moved.detail
    assert skewed is not None
    assert "aws/eu-west-1 and this machine differ by 75 s" in skewed.detail


# ---------------------------------------------------------------- rule 3: the registry proves itself


def test_a_registry_that_was_not_read_refuses_the_pass():
    refusal = refusal_of(look(registry=None))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.REGISTRY_UNUSABLE, "it was not read")


def test_a_registry_that_cannot_be_read_refuses_the_pass_in_its_own_words():
    refusal = refusal_of(look(registry=RegistryTrouble(detail="it is empty")))

    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (RefusalReason.REGISTRY_UNUSABLE, "it is empty")


def test_a_valid_registry_without_rows_is_usable():
    decision = decide(look([machine()], []), policy())

    assert isinstance(decision, Plan)
    assert [v.ref for v in decision.terminations] == [ref()]


def test_a_registry_silent_for_exactly_the_longest_silence_is_usable_and_for_longer_is_not():
    def at(ago: timedelta) -> RefusalReason | None:
        found = registry(identity=identity(updated_at=NOW - ago))
        return reason_of(look(registry=found), policy(max_silence=HOUR))

    assert at(HOUR) is None
    assert at(HOUR + SECOND) is RefusalReason.REGISTRY_UNUSABLE


def test_a_registry_may_be_silent_for_ever_unless_told_otherwise():
    assert reason_of(look(registry=registry(identity=identity(updated_at=None)))) is None


def test_a_registry_whose_last_write_cannot_be_read_is_silent():
    found = registry(identity=identity(updated_at=None))

    refusal = refusal_of(look(registry=found), policy(max_silence=HOUR))

    assert refusal is not None
    assert refusal.reason is RefusalReason.REGISTRY_UNUSABLE
    assert "at a time that can be read" in refusal.detail


def test_a_write_in_the_future_proves_nothing():
    def at(ahead: timedelta) -> RefusalReason | None:
        found = registry(identity=identity(updated_at=NOW + ahead))
        return reason_of(look(registry=found), policy(max_silence=HOUR))

    assert at(timedelta(seconds=60)) is None
    assert at(MINUTE_AND_A_BIT) is RefusalReason.REGISTRY_UNUSABLE


def test_a_registry_of_another_deployment_is_refused_even_at_first_sight():
    found = registry(identity=identity(deployment="prod-b"))

    refusal = refusal_of(look(registry=found))

    assert refusal is not None
    assert refusal.reason is RefusalReason.REGISTRY_IDENTITY
    assert "'prod-b', not 'prod-a'" in refusal.detail


def test_another_registry_than_the_known_one_is_refused():
    assert reason_of(look(memory=Memory(pin=pin(registry_id="r-0")))) is RefusalReason.REGISTRY_IDENTITY


def test_the_first_registry_is_believed():
    assert reason_of(look(memory=Memory(pin=None))) is None


@pytest.mark.parametrize(
    ("known", "found", "reason"),
    [
        (pin(), {}, None),
        (pin(epoch=EPOCH + 1), {}, RefusalReason.REGISTRY_IDENTITY),
        (pin(epoch=EPOCH - 1, nonce="n-6"), {"remembered_nonce": "n-6"}, None),
        (pin(), {"remembered_nonce": "n-x"}, RefusalReason.REGISTRY_IDENTITY),
        (pin(epoch=EPOCH - 1, nonce="n-6"), {"remembered_nonce": "n-x"}, RefusalReason.REGISTRY_IDENTITY),
        (pin(), {"remembered_nonce": None}, RefusalReason.REGISTRY_IDENTITY),
        (pin(epoch=3), {"remembered_nonce": None, "oldest_epoch": 3}, RefusalReason.REGISTRY_IDENTITY),
        (pin(epoch=3), {"remembered_nonce": None, "oldest_epoch": 4}, None),
        (pin(epoch=3), {"remembered_nonce": None, "oldest_epoch": None}, RefusalReason.REGISTRY_IDENTITY),
        (pin(), {"remembered_nonce": None, "oldest_epoch": EPOCH + 1}, RefusalReason.REGISTRY_IDENTITY),
        (pin(nonce=None), {"remembered_nonce": "n-7"}, None),
    ],
    ids=[
        "the same epoch and mark",
        "a lower epoch",
        "a higher epoch that remembers ours",
        "the same epoch with another mark",
        "a higher epoch that remembers another mark of ours",
        "the same epoch without a mark",
        "the oldest epoch that is kept without its mark",
        "an epoch older than those kept",
        "no epoch kept at all",
        "the same epoch older than those kept",
        "no mark known",
    ],
)
def test_the_epoch_and_its_mark_tell_a_restored_copy(known, found, reason):
    seen = look(registry=registry(**found), memory=Memory(pin=known))

    assert reason_of(seen) is reason


# ---------------------------------------------------------------- rule 4: they must belong together


STRANGE_ROWS = [row(f"w-{n}", f"i-{n}") for n in (7, 8, 9)]


def test_three_live_rows_whose_machines_were_never_listed_are_a_mismatch():
    refusal = refusal_of(look([machine()], STRANGE_ROWS))

    assert refusal is not None
    assert refusal.reason is RefusalReason.REGISTRY_MISMATCH
    assert "aws (3 live rows)" in refusal.detail


def test_two_live_rows_whose_machines_were_never_listed_are_none():
    assert reason_of(look([machine()], STRANGE_ROWS[:2])) is None


def test_three_live_rows_are_three_although_they_name_two_machines():
    rows = [*STRANGE_ROWS[:2], row("w-6", "i-7")]

    assert reason_of(look([machine()], rows)) is RefusalReason.REGISTRY_MISMATCH


@pytest.mark.parametrize(
    "rows",
    [
        [*STRANGE_ROWS[:2], row("w-9", "i-9", state=WorkerState.COMPLETED)],
        [*STRANGE_ROWS[:2], row("w-9", None)],
        [*STRANGE_ROWS[:2], row("w-9", "i-9", at=GCP)],
        [*STRANGE_ROWS[:2], row("w-9", "i-9", at=Scope("aws", "ap-south-1"))],
    ],
    ids=["in a terminal state", "without a machine", "of another provider", "of a place that is not configured"],
)
def test_a_third_row_does_not_count_when_it_is(rows):
    assert reason_of(look([machine()], rows)) is None


def test_rows_of_all_places_of_one_provider_count_together():
    rows = [*STRANGE_ROWS[:2], row("w-9", "i-9", at=WEST)]

    assert reason_of(look([machine()], rows)) is RefusalReason.REGISTRY_MISMATCH


def test_an_empty_listing_is_no_mismatch():
    assert reason_of(look([], STRANGE_ROWS)) is None


def test_a_listing_of_another_provider_is_an_empty_one_for_this_provider():
    assert reason_of(look([machine(at=GCP)], STRANGE_ROWS)) is None


def test_a_listing_of_strangers_machines_is_an_empty_one():
    assert reason_of(look([machine(owner="prod-b")], STRANGE_ROWS)) is None


def test_one_machine_of_the_rows_in_the_listing_proves_that_they_belong_together():
    assert reason_of(look([machine("i-7")], STRANGE_ROWS)) is None


def test_a_terminated_machine_that_is_still_listed_proves_it_too():
    gone = machine("i-7", state=InstanceState.TERMINATED)

    assert reason_of(look([machine(), gone], STRANGE_ROWS)) is None


def test_one_machine_of_the_rows_that_was_once_listed_proves_it_too():
    remembered = Memory(listed=frozenset({ref("i-7")}))

    assert reason_of(look([machine()], STRANGE_ROWS, memory=remembered)) is None


def test_the_same_id_of_another_place_proves_nothing():
    assert reason_of(look([machine("i-7", at=WEST)], STRANGE_ROWS)) is RefusalReason.REGISTRY_MISMATCH


def test_one_matching_provider_does_not_excuse_the_other():
    rows = [*STRANGE_ROWS, row("w-1", "i-1", at=GCP)]

    refusal = refusal_of(look([machine(), machine(at=GCP)], rows))

    assert refusal is not None
    assert refusal.reason is RefusalReason.REGISTRY_MISMATCH


def test_a_mismatch_that_a_person_accepted_is_none():
    accepted = Memory(pin=pin(mismatch_accepted=True))

    assert reason_of(look([machine()], STRANGE_ROWS, memory=accepted)) is None
    assert reason_of(look([machine()], STRANGE_ROWS, memory=Memory(pin=pin()))) is RefusalReason.REGISTRY_MISMATCH


# ---------------------------------------------------------------- rules 17, 18, 20


def test_the_brake_refuses_and_says_who_put_it_on_and_why():
    brake = Brake(since=NOW, by="ann", reason="a deploy")

    refusal = refusal_of(look([machine()], memory=Memory(brake=brake)))

    assert refusal is not None
    assert refusal.reason is RefusalReason.REAP_HOLD
    assert refusal.detail == "held by ann since 2026-01-10 12:00:00 UTC: a deploy"


def test_a_process_without_the_lease_is_refused():
    assert reason_of(look(leader=False)) is RefusalReason.NOT_LEADER


@pytest.mark.parametrize("trouble", ["disk full", ""])
def test_a_ledger_in_trouble_refuses_the_pass(trouble):
    assert reason_of(look(ledger_trouble=trouble)) is RefusalReason.LEDGER_UNUSABLE


def test_the_deployment_of_the_tests_is_that_of_the_registry():
    assert identity().deployment == policy().deployment == DEPLOYMENT
