"""One word, one spelling: the enums against the words of the contract and the rules, written out once more."""

from __future__ import annotations

from alerts.model import Cause
from reaperd.core.model import (
    DeferReason,
    KeepReason,
    OutcomeKind,
    PassOutcome,
    RefusalReason,
    SparedReason,
    TerminateReason,
)

KEEP = """foreign_account, in_transition, tracked, ambiguous_worker, foreign_registry, never_list, protect_tag, managed,
already_requested, protected, denied, invalid_id, failed, launch_grace, unconfirmed, row_vanished"""
TERMINATE = "unregistered, anonymous, retired, launch_abandoned, heartbeat_expired, superseded"
REFUSE = """ledger_unusable, not_leader, clock, deadline, wrong_account, listing_incomplete, registry_unusable,
registry_identity, registry_mismatch, reap_hold, breaker_open"""
OUTCOMES = """would_terminate, requested, unknown, spared, already_gone, confirmed_gone, protected, denied, invalid_id,
deferred, failed"""
SPARED = "tracked_now, changed, reap_hold, not_leader, stopping"
DEFERRED = "throttled, credentials_expired, stopping, not_leader, reap_hold, deadline, ledger_unusable"
OURS = ["registry_unusable", "registry_identity"]
"""Reasons to defer that the contract does not list: the registry was lost, or replaced, while acting."""
CAUSES = """leak, termination_failed, termination_protected, termination_denied, termination_stuck, invalid_id,
managed_orphan, protected_orphan, ambiguous_worker, foreign_registry, foreign_account, row_vanished,
owned_out_of_scope, heartbeats_stopped, breaker_open, registry_unusable, registry_identity, registry_mismatch,
wrong_account, listing_incomplete, ledger_unusable, clock, deadline, blind, late"""


def words(text: str) -> list[str]:
    return text.replace("\n", " ").replace(", ", " ").replace(",", " ").split()


def test_reasons_to_keep_are_spelled_and_ordered_as_in_rule_14():
    assert [str(each) for each in KeepReason] == words(KEEP)


def test_reasons_to_terminate_are_spelled_as_in_the_contract():
    assert [str(each) for each in TerminateReason] == words(TERMINATE)


def test_reasons_to_refuse_are_spelled_and_ordered_as_at_the_end_of_the_rules():
    assert [str(each) for each in RefusalReason] == words(REFUSE)


def test_outcomes_are_spelled_as_in_the_contract():
    assert [str(each) for each in OutcomeKind] == words(OUTCOMES)


def test_reasons_to_spare_are_spelled_as_in_the_contract():
    assert [str(each) for each in SparedReason] == words(SPARED)


def test_reasons_to_defer_are_spelled_as_in_the_contract_and_two_are_ours():
    assert [str(each) for each in DeferReason] == [*words(DEFERRED), *OURS]


def test_causes_are_spelled_as_in_the_contract():
    assert sorted(str(each) for each in Cause) == sorted(words(CAUSES))


def test_a_pass_ends_as_in_the_contract():
    assert [str(each) for each in PassOutcome] == ["complete", "refused", "deferred", "error"]
