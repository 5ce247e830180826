"""The evidence for every rule of docs/safety.md: its words in the code, the tests that show it, the metrics it has.

The cases of the acceptance file stand here as `A01`; their tests are those of `tests/scenarios`. The rules themselves,
for people, are hand-written on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from alerts.model import Cause
from providers.model import InstanceState, ScopeFailure
from reaperd.core.model import (
    DeferReason,
    KeepReason,
    Mode,
    OutcomeKind,
    PassKind,
    RefusalReason,
    SparedReason,
    TerminateReason,
)
from registry.model import RegistryFault, WorkerState

_LAWS = "tests/property/test_never_over_kill.py"
_SECOND = "tests/property/test_second_reading.py"
_BREAKER = "tests/property/test_breaker.py"
_LEARNING = "tests/property/test_learning.py"
_GUARDS = "tests/unit/core/test_guards.py"
_HOLDS = "tests/unit/core/test_holds.py"
_TRACKING = "tests/unit/core/test_tracking.py"
_MEMORY = "tests/unit/ledger/test_memory.py"
_TERMINATOR = "tests/unit/providers/aws/test_terminator.py"
_DOOR = "tests/unit/passes/test_act.py"
_LANES = "tests/unit/passes/test_lanes_laws.py"
_MANY = "tests/unit/providers/aws/test_terminations_law.py"
_CASES = "tests/integration/test_cases.py"
_ALERTS = "tests/integration/test_alerts.py"
_APPROVE = "tests/integration/test_approve.py"
_SIGNALS = "tests/integration/test_signals.py"
_METRICS = "tests/unit/report/test_metrics.py"

_SUPERSEDED = "test_a_machine_is_superseded_when_its_workers_row_names_another_that_exists_and_carries_the_tag"

HELD, REFUSALS, TERMINATIONS = "reaperd_held_instances", "reaperd_refusals_total", "reaperd_terminations_total"
COMPLETE, LOOK = "reaperd_last_complete_timestamp_seconds", "reaperd_last_look_timestamp_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the repository knows of one rule."""

    members: tuple[StrEnum, ...] = ()
    """Its words in the code."""
    no_member: str = ""
    """Why it has no word of its own."""
    tests: tuple[str, ...]
    """`path::test` or `path::Class::test`."""
    cases: tuple[str, ...] = ()
    metrics: tuple[str, ...]


RULES: Mapping[int, Evidence] = {
    1: Evidence(
        no_member="what has no terminator has nothing to say",
        tests=(
            "providers/conformance/terminator.py::TerminatorConformance::test_exactly_that_machine_ends",
            "providers/conformance/lister.py::ListerConformance::test_the_lister_cannot_terminate",
            "providers/conformance/auditor.py::AuditorConformance::test_the_auditor_cannot_terminate",
            f"{_CASES}::test_a24_the_audit_tells_of_leaks_in_every_pass_and_changes_nothing",
        ),
        cases=("A20", "A24"),
        metrics=("reaperd_mode", TERMINATIONS),
    ),
    2: Evidence(
        members=(RefusalReason.LISTING_INCOMPLETE, Cause.LISTING_INCOMPLETE, ScopeFailure.LISTING),
        tests=(
            f"{_LAWS}::test_one_scope_that_is_not_whole_refuses_them_all",
            f"{_GUARDS}::test_a_scope_that_was_once_discovered_stays_required",
            "tests/unit/providers/aws/test_listing.py::test_an_empty_page_with_a_token_is_not_the_end",
        ),
        cases=("A01", "A02"),
        metrics=("reaperd_scope_up", REFUSALS, COMPLETE),
    ),
    3: Evidence(
        members=(
            RefusalReason.REGISTRY_UNUSABLE,
            RefusalReason.REGISTRY_IDENTITY,
            Cause.REGISTRY_UNUSABLE,
            Cause.REGISTRY_IDENTITY,
            *RegistryFault,
        ),
        tests=(
            f"{_LAWS}::test_any_trouble_with_the_registry_refuses_the_whole_pass",
            f"{_GUARDS}::test_the_epoch_and_its_mark_tell_a_restored_copy",
            "tests/unit/registry/test_broken_files.py::TestDamage::test_a_file_cut_off_anywhere_is_refused",
            "tests/unit/cli/test_wrong_registries.py::test_a_person_is_told_what_is_wrong_and_what_to_type",
        ),
        cases=("A05", "A06", "A27"),
        metrics=("reaperd_registry_up", "reaperd_registry_epoch", REFUSALS),
    ),
    4: Evidence(
        members=(RefusalReason.REGISTRY_MISMATCH, Cause.REGISTRY_MISMATCH, Cause.BLIND),
        tests=(
            f"{_LAWS}::test_a_registry_and_a_listing_that_do_not_belong_together_are_refused",
            f"{_GUARDS}::test_three_live_rows_whose_machines_were_never_listed_are_a_mismatch",
        ),
        metrics=("reaperd_registry_up", "reaperd_missing_workers", REFUSALS),
    ),
    5: Evidence(
        members=(
            SparedReason.TRACKED_NOW,
            SparedReason.CHANGED,
            OutcomeKind.SPARED,
            DeferReason.REGISTRY_UNUSABLE,
            DeferReason.REGISTRY_IDENTITY,
        ),
        tests=(
            f"{_LEARNING}::test_the_door_spares_whatever_became_tracked_or_changed",
            f"{_LANES}::test_nothing_is_named_that_is_needed_or_was_never_planned",
            "tests/unit/passes/test_reconcile.py::test_a_worker_that_registers_while_the_clouds_are_listed_is_seen",
            "tests/integration/test_once.py::test_a_row_that_comes_between_the_plan_and_the_request_spares_the_machine",
        ),
        cases=("A09",),
        metrics=(TERMINATIONS,),
    ),
    6: Evidence(
        members=(
            KeepReason.TRACKED,
            TerminateReason.UNREGISTERED,
            TerminateReason.ANONYMOUS,
            TerminateReason.RETIRED,
            TerminateReason.LAUNCH_ABANDONED,
            TerminateReason.HEARTBEAT_EXPIRED,
            Cause.HEARTBEATS_STOPPED,
            *WorkerState,
        ),
        tests=(
            f"{_LAWS}::test_a_tracked_machine_is_never_terminated",
            f"{_LAWS}::test_one_more_live_row_about_a_machine_saves_it_and_condemns_no_other",
            f"{_TRACKING}::test_no_row_expires_when_no_live_row_has_a_recent_heartbeat",
        ),
        cases=("A04", "A10", "A11"),
        metrics=("reaperd_registry_workers", "reaperd_orphan_instances", HELD),
    ),
    7: Evidence(
        members=(TerminateReason.SUPERSEDED, KeepReason.AMBIGUOUS_WORKER, Cause.AMBIGUOUS_WORKER),
        tests=(
            f"{_TRACKING}::test_a_machine_is_ambiguous_when_the_one_that_its_workers_row_names",
            f"{_TRACKING}::{_SUPERSEDED}",
            f"{_SECOND}::test_every_verdict_is_the_one_that_the_rules_give",
        ),
        metrics=(HELD,),
    ),
    8: Evidence(
        members=(KeepReason.FOREIGN_REGISTRY, Cause.FOREIGN_REGISTRY),
        tests=(
            f"{_LAWS}::test_a_machine_of_another_owner_never_gets_a_verdict",
            f"{_HOLDS}::test_the_owner_is_the_deployment_letter_by_letter",
            f"{_CASES}::test_a24_an_orphan_is_no_leak_and_a_near_miss_is_never_terminated",
        ),
        cases=("A12",),
        metrics=("reaperd_owned_instances", "reaperd_near_miss_tags", HELD),
    ),
    9: Evidence(
        members=(
            RefusalReason.WRONG_ACCOUNT,
            Cause.WRONG_ACCOUNT,
            ScopeFailure.WRONG_ACCOUNT,
            KeepReason.FOREIGN_ACCOUNT,
            Cause.FOREIGN_ACCOUNT,
        ),
        tests=(
            f"{_GUARDS}::test_an_account_that_is_not_the_pinned_one_refuses_the_pass",
            "tests/unit/providers/aws/test_account.py::test_every_pass_proves_the_account_anew",
            f"{_TERMINATOR}::test_an_unproven_account_terminates_nothing",
        ),
        cases=("A14",),
        metrics=(REFUSALS, "reaperd_scope_up", HELD),
    ),
    10: Evidence(
        members=(KeepReason.LAUNCH_GRACE,),
        tests=(
            f"{_LAWS}::test_a_machine_without_a_believable_age_is_held_at_first_sight",
            f"{_LAWS}::test_more_patience_never_adds_a_termination",
            f"{_HOLDS}::test_a_machine_exactly_as_old_as_the_grace_is_kept",
        ),
        cases=("A08", "A22", "A23"),
        metrics=(HELD, "reaperd_oldest_orphan_first_seen_timestamp_seconds"),
    ),
    11: Evidence(
        members=(KeepReason.UNCONFIRMED,),
        tests=(
            f"{_LEARNING}::test_a_count_grows_by_one_at_most_and_is_otherwise_kept_or_lost",
            "tests/unit/core/test_sightings.py::test_two_looks_closer_than_half_an_interval_count_as_one",
            "tests/integration/test_once.py::test_three_looks_are_three_looks_across_processes",
        ),
        metrics=(HELD, LOOK),
    ),
    12: Evidence(
        members=(KeepReason.ROW_VANISHED, Cause.ROW_VANISHED),
        tests=(
            f"{_HOLDS}::test_a_machine_whose_row_vanished_is_kept_until_the_grace_is_over",
            f"{_HOLDS}::test_the_wait_for_a_vanished_row_is_not_given_with_the_confirmation",
            f"{_SECOND}::test_every_verdict_is_the_one_that_the_rules_give",
        ),
        metrics=(HELD, "reaperd_orphan_instances"),
    ),
    13: Evidence(
        members=(KeepReason.IN_TRANSITION, *InstanceState),
        tests=(
            f"{_HOLDS}::test_a_machine_that_exists_goes_whatever_its_state",
            f"{_HOLDS}::test_a_machine_in_transition_is_never_sent_to_again",
            "tests/unit/providers/aws/test_translate.py::test_a_state_of_another_kind_counts_as_existing",
        ),
        cases=("A15",),
        metrics=("reaperd_owned_instances", "reaperd_terminating_instances"),
    ),
    14: Evidence(
        members=(
            KeepReason.NEVER_LIST,
            KeepReason.PROTECT_TAG,
            KeepReason.MANAGED,
            Cause.PROTECTED_ORPHAN,
            Cause.MANAGED_ORPHAN,
        ),
        tests=(
            f"{_LAWS}::test_what_stands_on_a_machine_holds_it",
            f"{_LAWS}::test_the_never_list_holds_whatever_stands_on_it",
            f"{_HOLDS}::test_the_first_hold_of_the_list_is_the_one_that_is_told",
            f"{_CASES}::test_a13_a_machine_that_is_tagged_after_the_listing_is_never_asked_for",
            f"{_CASES}::test_a21_what_would_be_launched_again_is_left_to_its_parent",
        ),
        cases=("A13", "A21"),
        metrics=(HELD,),
    ),
    15: Evidence(
        members=(RefusalReason.BREAKER_OPEN, Cause.BREAKER_OPEN),
        tests=(
            f"{_BREAKER}::test_all_go_or_none",
            f"{_BREAKER}::test_it_opens_exactly_when_the_rules_say",
            f"{_BREAKER}::test_an_approval_exempts_exactly_its_machines",
            f"{_APPROVE}::test_what_vanished_or_was_registered_meanwhile_is_left_out_and_the_rest_goes",
            f"{_APPROVE}::test_new_orphans_that_are_too_many_by_themselves_stop_the_approved_ones_too",
        ),
        cases=("A07",),
        metrics=("reaperd_breaker_open", REFUSALS),
    ),
    16: Evidence(
        members=(RefusalReason.CLOCK, Cause.CLOCK),
        tests=(
            f"{_LAWS}::test_any_other_trouble_refuses_the_whole_pass",
            f"{_LEARNING}::test_no_age_is_negative",
            f"{_GUARDS}::test_a_date_exactly_the_tolerance_outside_is_good_and_a_bit_more_is_not",
        ),
        metrics=(REFUSALS,),
    ),
    17: Evidence(
        members=(RefusalReason.REAP_HOLD, DeferReason.REAP_HOLD, SparedReason.REAP_HOLD),
        tests=(
            f"{_MEMORY}::test_no_intent_is_written_under_the_brake",
            "tests/integration/test_two_terminals.py::test_what_was_not_recorded_before_the_brake_is_not_sent",
            "tests/unit/cli/test_operators.py::test_hold_that_cannot_write_says_so_in_capitals",
        ),
        metrics=("reaperd_reap_hold", REFUSALS),
    ),
    18: Evidence(
        members=(RefusalReason.NOT_LEADER, DeferReason.NOT_LEADER, SparedReason.NOT_LEADER),
        tests=(
            f"{_MEMORY}::test_no_intent_is_written_on_a_lease_that_ran_out_although_nobody_took_it",
            f"{_SIGNALS}::test_a_frozen_holder_terminates_nothing_when_it_wakes",
            "tests/unit/ledger/test_lease.py::test_a_holder_that_died_on_this_host_is_taken_over_at_once",
        ),
        cases=("A30",),
        metrics=("reaperd_leader", REFUSALS),
    ),
    19: Evidence(
        members=(*Mode, OutcomeKind.WOULD_TERMINATE),
        tests=(
            "tests/unit/config/test_environment.py::test_no_variable_asks_for_terminations",
            f"{_DOOR}::test_what_enforcing_does_is_what_the_rehearsal_said",
            f"{_CASES}::test_a20_a_rehearsal_changes_neither_the_cloud_nor_the_registry",
        ),
        cases=("A20",),
        metrics=("reaperd_mode", "reaperd_would_terminate_instances"),
    ),
    20: Evidence(
        members=(RefusalReason.LEDGER_UNUSABLE, DeferReason.LEDGER_UNUSABLE, Cause.LEDGER_UNUSABLE),
        tests=(
            "tests/unit/ledger/test_opening.py::test_every_commit_is_on_the_disk_before_it_returns",
            f"{_DOOR}::test_no_request_is_sent_whose_intent_could_not_be_written",
            "tests/integration/test_refusals.py::test_a_full_disk_stops_everything_although_it_reads_well",
        ),
        cases=("A27",),
        metrics=(REFUSALS, "reaperd_ledger_created_timestamp_seconds"),
    ),
    21: Evidence(
        members=(
            OutcomeKind.PROTECTED,
            OutcomeKind.DENIED,
            OutcomeKind.INVALID_ID,
            OutcomeKind.FAILED,
            OutcomeKind.UNKNOWN,
            OutcomeKind.ALREADY_GONE,
            OutcomeKind.DEFERRED,
            KeepReason.PROTECTED,
            KeepReason.DENIED,
            KeepReason.INVALID_ID,
            KeepReason.FAILED,
            DeferReason.THROTTLED,
            DeferReason.CREDENTIALS_EXPIRED,
            Cause.TERMINATION_PROTECTED,
            Cause.TERMINATION_DENIED,
            Cause.INVALID_ID,
            Cause.TERMINATION_FAILED,
        ),
        tests=(
            f"{_TERMINATOR}::test_an_answer_to_the_request_is_understood",
            f"{_DOOR}::test_one_bad_answer_is_recorded_and_does_not_keep_the_others_alive",
            f"{_DOOR}::test_requests_to_one_scope_are_paced_below_what_the_cloud_documents",
            f"{_LANES}::test_what_is_told_is_what_was_done",
            f"{_MANY}::test_what_is_told_of_each_is_true_and_nothing_is_named_without_leave",
            f"{_CASES}::test_a16_a_protected_machine_stops_only_itself_whatever_its_zone",
        ),
        cases=("A16", "A17", "A18"),
        metrics=(TERMINATIONS, "reaperd_provider_requests_total", HELD),
    ),
    22: Evidence(
        members=(
            OutcomeKind.REQUESTED,
            OutcomeKind.CONFIRMED_GONE,
            KeepReason.ALREADY_REQUESTED,
            Cause.TERMINATION_STUCK,
        ),
        tests=(
            f"{_LEARNING}::test_only_a_machine_that_is_not_there_is_confirmed_gone",
            f"{_LEARNING}::test_that_it_is_not_listed_confirms_no_end",
            f"{_HOLDS}::test_an_answer_holds_until_stuck_after_and_is_then_asked_again",
            f"{_CASES}::test_a19_a_termination_is_confirmed_only_by_a_complete_look_that_does_not_show_the_machine",
            "tests/integration/test_lost_tag.py::test_a_machine_that_lost_our_tag_and_runs_on_is_not_told_to_be_gone",
        ),
        cases=("A19",),
        metrics=(TERMINATIONS, "reaperd_terminating_instances"),
    ),
    23: Evidence(
        no_member="an old intent holds its machine as `already_requested`, as a new one does",
        tests=(
            f"{_MEMORY}::test_an_intent_without_an_answer_is_recalled_as_such",
            "tests/integration/test_kill.py::test_a_kill_at_any_line_is_made_good_by_the_next_passes",
        ),
        cases=("A29",),
        metrics=("reaperd_terminating_instances", HELD),
    ),
    24: Evidence(
        no_member="`failed`, with the reason `spot_request_not_cancelled`: the words of rule 21",
        tests=(
            f"{_TERMINATOR}::test_a_persistent_spot_request_is_cancelled_first",
            f"{_TERMINATOR}::test_a_spot_request_that_stands_saves_its_machine",
        ),
        metrics=(TERMINATIONS,),
    ),
    25: Evidence(
        members=(DeferReason.STOPPING, SparedReason.STOPPING),
        tests=(
            f"{_SIGNALS}::test_a_pass_that_is_stopped_while_acting_records_what_it_asked_for_and_asks_no_more",
            "tests/unit/core/test_decide.py::test_terminations_go_by_region_oldest_first_then_by_id",
        ),
        cases=("A29",),
        metrics=("reaperd_passes_total",),
    ),
    26: Evidence(
        members=(*PassKind, Cause.LEAK, Cause.OWNED_OUT_OF_SCOPE),
        tests=(
            "providers/conformance/auditor.py::AuditorConformance::test_a_broken_scope_is_told_and_spoils_no_other",
            f"{_CASES}::test_a24_a_region_that_fails_is_named_and_the_leaks_of_the_others_are_told",
            f"{_METRICS}::test_a_scope_that_failed_keeps_what_was_known_of_it",
            (
                "tests/integration/test_sweeps.py"
                "::test_a_region_that_fails_keeps_its_gauges_and_its_memory_and_the_others_go_on"
            ),
        ),
        cases=("A24",),
        metrics=(
            "reaperd_scope_up",
            "reaperd_unowned_long_running_instances",
            "reaperd_unowned_stopped_instances",
            "reaperd_owned_out_of_scope_instances",
            "reaperd_audit_skipped",
            "reaperd_leak_cost_dollars_per_hour",
        ),
    ),
    27: Evidence(
        no_member="it is an age, and no reason",
        tests=(
            "tests/unit/core/test_leaks.py::test_a_nightly_stop_and_start_does_not_make_a_machine_young",
            "tests/property/test_sweeps.py::test_another_sweep_never_makes_a_machine_younger_while_it_is_there",
            (
                "tests/integration/test_sweeps.py"
                "::test_a_machine_that_is_restarted_all_the_time_becomes_a_leak_and_stays_one"
            ),
        ),
        cases=("A24",),
        metrics=("reaperd_unowned_oldest_launch_timestamp_seconds",),
    ),
    28: Evidence(
        no_member="every `Cause` is one; what is told is a matter of the channels",
        tests=(
            "tests/property/test_order.py::test_conditions_are_one_a_key_and_in_order",
            (
                "tests/unit/ledger/test_alarms.py"
                "::test_wherever_the_writing_breaks_off_nothing_is_told_and_the_next_look_tells_it_once"
            ),
            f"{_ALERTS}::test_a25_a_restart_sends_no_alert_again_and_silences_no_new_one",
            f"{_ALERTS}::test_a_channel_that_hangs_delays_neither_a_termination_nor_another_channel",
            f"{_ALERTS}::test_a_region_that_fails_neither_resolves_nor_tells_again",
        ),
        cases=("A25", "A30"),
        metrics=("reaperd_alerts_total",),
    ),
    29: Evidence(
        no_member="its words are the labels of the metrics: those of every other rule",
        tests=(
            f"{_METRICS}::test_every_counter_is_there_at_the_start_in_every_combination_with_0",
            f"{_METRICS}::test_before_the_first_look_no_scope_has_a_gauge_and_the_registry_none",
            f"{_METRICS}::test_the_names_of_machines_and_workers_change_nothing_on_the_page",
        ),
        cases=("A26",),
        metrics=(LOOK, COMPLETE, "reaperd_scope_up", "reaperd_passes_total"),
    ),
    30: Evidence(
        members=(RefusalReason.DEADLINE, DeferReason.DEADLINE, Cause.DEADLINE, Cause.LATE, ScopeFailure.DEADLINE),
        tests=(
            f"{_GUARDS}::test_a_pass_past_its_deadline_is_refused_although_everything_was_listed",
            "tests/unit/passes/test_reconcile.py::test_a_hung_listing_ends_at_the_deadline_and_its_late_answer_is_dropped",
            "tests/unit/test_scheduler.py::test_an_error_ends_neither_the_job_nor_the_rhythm",
            "tests/unit/config/test_masking.py::test_no_secret_is_printed",
        ),
        cases=("A03", "A28"),
        metrics=(
            REFUSALS,
            "reaperd_pass_duration_seconds",
            "reaperd_last_attempt_timestamp_seconds",
            "reaperd_pass_interval_seconds",
            "reaperd_scheduler_missed_runs_total",
            "reaperd_config_last_reload_successful",
            "reaperd_config_last_reload_timestamp_seconds",
        ),
    ),
}

OF_NO_RULE = frozenset(
    {
        "reaperd_build_info",
        "reaperd_collector_errors_total",
        "reaperd_listing_parser",
    }
)
"""Metrics that tell how the program is doing, whatever the rules."""


def table() -> str:
    """Return the table of rules with their words, tests and metrics."""
    lines = ["| Rule | Its words | Shown by | Told by |", "| --- | --- | --- | --- |"]
    lines += [f"| {' | '.join(_cells(number, evidence))} |" for number, evidence in RULES.items()]
    return "\n".join(lines) + "\n"


def _cells(number: int, evidence: Evidence) -> Iterator[str]:
    yield f"[{number}](#rule-{number})"
    # One word of the code may be a member of several enumerations.
    words = dict.fromkeys(str(member) for member in evidence.members)
    yield ", ".join(f"`{word}`" for word in words) or f"none: {evidence.no_member}"
    cases = f"cases {', '.join(evidence.cases)}" if evidence.cases else ""
    yield "<br>".join((*(f"`{test}`" for test in evidence.tests), *([cases] if cases else [])))
    yield ", ".join(f"`{metric}`" for metric in evidence.metrics)
