"""What a scraper sees, from the start to the end of what there was."""

from __future__ import annotations

import io
import json
import socket
import threading
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families

from providers.instrumented import Operation, RequestResult
from providers.model import Coverage, InstanceRef, InstanceState, Scope, ScopeFailure, TagKeys
from providers.parsers import Parser
from reaperd.clock import ManualClock
from reaperd.core.leaks import AuditPolicy, find_leaks
from reaperd.core.model import (
    Brake,
    BreakerLimits,
    DeferReason,
    KeepReason,
    Memory,
    Outcome,
    OutcomeKind,
    PassKind,
    PassOutcome,
    RefusalReason,
    RegistryTrouble,
)
from reaperd.report.logs import build_logger
from reaperd.report.metrics import Metrics
from reaperd.report.negotiation import prefers_openmetrics
from reaperd.report.series import ALL, COUNTED_OUTCOMES, Delivery
from registry.model import WorkerState
from tests.property.strategies import good_worlds
from tests.support.worlds import (
    DEPLOYMENT,
    EAST,
    GCP,
    HOUR,
    MINUTE,
    NOW,
    SCOPES,
    WEST,
    World,
    broken,
    identity,
    intent,
    look,
    machine,
    memory,
    policy,
    ref,
    registry,
    row,
    sighting,
    whole,
)
from tests.unit.report.scraping import (
    OPENMETRICS,
    PROVIDERS,
    configure,
    fresh,
    ours,
    page,
    passed,
    place,
    scrape,
    series_of,
    stranger,
    swept,
    value,
    values_of,
)

BRAKE = Brake(since=NOW, by="ann", reason="a deploy")
SHUT = policy(breaker=BreakerLimits(max_per_pass=0))
INCOMPLETE = (whole(EAST), whole(GCP), broken(WEST))


# ---------------------------------------------------------------- the start


def counters(found):
    return {name: samples for name, samples in ours(found).items() if name.endswith("_total")}


def test_every_counter_is_there_at_the_start_in_every_combination_with_0():
    found = counters(scrape(fresh(channels=["mail"])))

    assert {tuple(sorted(dict(labels).values())) for labels in found["reaperd_passes_total"]} == {
        tuple(sorted(both)) for both in product(PassKind, PassOutcome)
    }
    assert len(found["reaperd_terminations_total"]) == len(PROVIDERS) * len(COUNTED_OUTCOMES)
    assert len(found["reaperd_provider_requests_total"]) == len(PROVIDERS) * len(Operation) * len(RequestResult)
    assert len(found["reaperd_refusals_total"]) == len(RefusalReason)
    assert len(found["reaperd_scheduler_missed_runs_total"]) == len(PassKind)
    assert len(found["reaperd_alerts_total"]) == 2
    assert {number for samples in found.values() for number in samples.values()} == {0.0}


def test_what_would_have_been_terminated_is_no_termination():
    metrics = fresh()

    metrics.passed(passed(look([machine()]), None, Outcome(ref=ref(), kind=OutcomeKind.WOULD_TERMINATE)))

    assert set(scrape(metrics)["reaperd_terminations_total"].values()) == {0.0}
    assert "would_terminate" not in values_of(scrape(metrics), "outcome")


def test_before_the_first_look_no_scope_has_a_gauge_and_the_registry_none():
    assert set(values_of(scrape(fresh()), "region")) == set()
    assert [value(fresh(), name) for name in ("registry_up", "registry_epoch", "breaker_open", "reap_hold")] == [
        None
    ] * 4


def test_nothing_tells_when_a_counter_was_created():
    assert "_created" not in page(fresh()).replace("reaperd_ledger_created_timestamp_seconds", "")
    assert "_created" not in page(fresh(), OPENMETRICS).replace("reaperd_ledger_created_timestamp_seconds", "")


def test_every_metric_has_a_line_of_help_and_those_of_the_process_stay():
    told = page(fresh())

    for series in ALL:
        assert f"# HELP {series.name} {series.meaning}" in told
    assert "process_cpu_seconds_total" in told
    assert "python_info" in told


# ---------------------------------------------------------------- settings and the process


def test_the_mode_is_1_and_the_other_is_0():
    metrics = fresh(mode="enforce")

    assert (value(metrics, "mode", mode="enforce"), value(metrics, "mode", mode="dry-run")) == (1, 0)


def test_the_version_and_the_intervals_are_told():
    metrics = fresh()

    assert value(metrics, "build_info", version="1.2.3") == 1
    assert value(metrics, "pass_interval_seconds", kind="audit") == 900


def test_the_first_settings_count_as_a_reload_that_worked():
    metrics = fresh()

    assert value(metrics, "config_last_reload_successful") == 1
    assert value(metrics, "config_last_reload_timestamp_seconds") == NOW.timestamp()


def test_a_refused_reload_is_told_until_one_works():
    metrics = fresh()

    metrics.reloaded(successful=False, at=NOW + HOUR)
    configure(metrics)

    assert value(metrics, "config_last_reload_successful") == 0
    assert value(metrics, "config_last_reload_timestamp_seconds") == (NOW + HOUR).timestamp()
    metrics.reloaded(successful=True, at=NOW + 2 * HOUR)
    assert value(metrics, "config_last_reload_successful") == 1


def test_what_the_ledger_remembers_is_told_before_the_first_pass():
    metrics = fresh()

    metrics.ledger_created(NOW - 9 * HOUR)
    metrics.restored(PassKind.RECONCILE, attempt=NOW, look=NOW - MINUTE, complete=NOW - HOUR)
    metrics.restored(PassKind.RECONCILE, attempt=None, look=None, complete=None)

    assert value(metrics, "ledger_created_timestamp_seconds") == (NOW - 9 * HOUR).timestamp()
    times = [
        value(metrics, f"last_{what}_timestamp_seconds", kind="reconcile") for what in ("attempt", "look", "complete")
    ]
    assert times == [NOW.timestamp(), (NOW - MINUTE).timestamp(), (NOW - HOUR).timestamp()]
    assert value(metrics, "last_look_timestamp_seconds", kind="audit") is None


def test_the_leader_says_so():
    metrics = fresh()

    assert value(metrics, "leader") == 0
    metrics.leading(True)
    assert value(metrics, "leader") == 1


# ---------------------------------------------------------------- passes


def test_a_complete_pass_moves_every_time():
    metrics = fresh()

    metrics.attempted(PassKind.RECONCILE, NOW)
    metrics.passed(passed(look()))

    for what in ("attempt", "look", "complete"):
        assert value(metrics, f"last_{what}_timestamp_seconds", kind="reconcile") == NOW.timestamp()
    assert value(metrics, "passes_total", kind="reconcile", outcome="complete") == 1
    assert value(metrics, "pass_duration_seconds_count", kind="reconcile") == 1
    assert value(metrics, "pass_duration_seconds_bucket", kind="reconcile", le="1.0") == 0
    assert value(metrics, "pass_duration_seconds_bucket", kind="reconcile", le="2.5") == 1
    assert value(metrics, "pass_duration_seconds_bucket", kind="reconcile", le="+Inf") == 1
    assert value(metrics, "pass_duration_seconds_sum", kind="reconcile") == pytest.approx(2.1)


@pytest.mark.parametrize(
    ("seen", "wishes", "reason"),
    [
        (look([machine()], memory=Memory(brake=BRAKE)), policy(), "reap_hold"),
        (look([machine()]), SHUT, "breaker_open"),
        (look([machine()], leader=False), policy(), "not_leader"),
    ],
)
def test_a_refused_look_is_a_look_and_not_complete(seen, wishes, reason):
    metrics = fresh()

    metrics.passed(passed(seen, wishes))

    assert value(metrics, "last_look_timestamp_seconds", kind="reconcile") == NOW.timestamp()
    assert value(metrics, "last_complete_timestamp_seconds", kind="reconcile") is None
    assert value(metrics, "refusals_total", reason=reason) == 1
    assert value(metrics, "passes_total", kind="reconcile", outcome="refused") == 1
    assert value(metrics, "orphan_instances", **place(EAST)) == 1
    assert value(metrics, "would_terminate_instances", **place(EAST)) == 1


def test_an_incomplete_look_leaves_the_gauges_as_they_were():
    metrics = fresh()
    metrics.passed(passed(look([machine()])))

    metrics.passed(passed(look([], coverage=INCOMPLETE), started_at=NOW + MINUTE, finished_at=NOW + MINUTE))

    assert value(metrics, "orphan_instances", **place(EAST)) == 1
    assert value(metrics, "last_look_timestamp_seconds", kind="reconcile") == NOW.timestamp()
    assert value(metrics, "scope_up", kind="reconcile", **place(WEST)) == 0
    assert value(metrics, "scope_up", kind="reconcile", **place(EAST)) == 1


def test_a_pass_that_got_no_answer_at_all_saw_no_scope():
    metrics = fresh()
    metrics.passed(passed(look()))

    metrics.passed(passed(look(coverage=(), late=True)))

    assert [value(metrics, "scope_up", kind="reconcile", **place(scope)) for scope in SCOPES] == [0, 0, 0]
    assert value(metrics, "refusals_total", reason="deadline") == 1


def test_a_pass_that_was_told_to_stop_says_nothing_of_scopes_and_registry():
    metrics = fresh()
    metrics.passed(passed(look()))

    stopped = {"outcome": PassOutcome.DEFERRED, "reason": str(DeferReason.STOPPING), "coverage": (), "registry": None}
    metrics.passed(passed(look(), census=None, **stopped))

    assert value(metrics, "scope_up", kind="reconcile", **place(EAST)) == 1
    assert value(metrics, "registry_up") == 1
    assert value(metrics, "passes_total", kind="reconcile", outcome="deferred") == 1


def test_a_pass_that_failed_is_counted_as_an_error():
    metrics = fresh()

    metrics.failed(PassKind.AUDIT, 0.2)

    assert value(metrics, "passes_total", kind="audit", outcome="error") == 1
    assert value(metrics, "pass_duration_seconds_bucket", kind="audit", le="0.25") == 1


def test_a_run_that_did_not_start_is_counted():
    metrics = fresh()

    metrics.missed(PassKind.RECONCILE)

    assert value(metrics, "scheduler_missed_runs_total", kind="reconcile") == 1


@pytest.mark.parametrize("outcome", Delivery)
def test_a_message_to_a_channel_is_counted(outcome):
    metrics = fresh(channels=["mail", "chat"])

    metrics.alerted("mail", outcome)

    assert value(metrics, "alerts_total", channel="mail", outcome=outcome) == 1
    assert sum(scrape(metrics)["reaperd_alerts_total"].values()) == 1


@pytest.mark.parametrize("kind", COUNTED_OUTCOMES)
def test_every_outcome_is_counted_by_its_provider(kind):
    metrics = fresh()

    metrics.passed(passed(look(), None, Outcome(ref=ref("i-1", GCP), kind=kind), Outcome(ref=ref("i-2"), kind=kind)))

    assert value(metrics, "terminations_total", provider="gcp", outcome=kind) == 1
    assert sum(scrape(metrics)["reaperd_terminations_total"].values()) == 2


# ---------------------------------------------------------------- a look


def test_a_look_tells_what_it_counted():
    metrics = fresh()
    fleet = [machine("i-1"), machine("i-2", worker="w-2"), machine("i-3", worker="w-3", protect=True)]
    known = {ref("i-2"): sighting(first_seen_at=NOW - 3 * HOUR)}
    going = intent(OutcomeKind.REQUESTED, of=ref("i-2"))

    metrics.passed(passed(look(fleet, [row("w-1", "i-1"), row("w-9", "i-9")], memory=memory(going, sightings=known))))

    here = place(EAST)
    assert value(metrics, "owned_instances", **here) == 3
    assert value(metrics, "orphan_instances", **here) == 2
    assert value(metrics, "terminating_instances", **here) == 1
    assert value(metrics, "missing_workers", **here) == 1
    assert value(metrics, "would_terminate_instances", **here) == 0
    assert value(metrics, "oldest_orphan_first_seen_timestamp_seconds", **here) == (NOW - 3 * HOUR).timestamp()
    assert value(metrics, "oldest_orphan_first_seen_timestamp_seconds", **place(WEST)) is None
    assert value(metrics, "held_instances", reason="protect_tag") == 1
    assert value(metrics, "registry_workers", state="running") == 2
    assert value(metrics, "registry_epoch") == 7
    assert len(scrape(metrics)["reaperd_held_instances"]) == len(KeepReason)
    assert len(scrape(metrics)["reaperd_registry_workers"]) == len(WorkerState)


def test_a_gauge_ends_with_what_it_tells_of():
    metrics = fresh()
    metrics.passed(passed(look([machine()])))

    metrics.passed(passed(look([machine()], [row()])))

    assert value(metrics, "orphan_instances", **place(EAST)) == 0
    assert value(metrics, "oldest_orphan_first_seen_timestamp_seconds", **place(EAST)) is None


@pytest.mark.parametrize(
    ("trouble", "up"),
    [
        ({}, 1),
        ({"registry": None}, 0),
        ({"registry": RegistryTrouble(detail="locked")}, 0),
        ({"registry": registry(identity=identity(deployment="prod-b"))}, 0),
        ({"registry": registry(identity=identity(deployment="prod-b")), "coverage": INCOMPLETE}, 0),
        ({"coverage": INCOMPLETE}, 1),
        ({"leader": False}, 1),
    ],
    ids=["good", "not read", "trouble", "another", "another, and no listing", "no listing", "not the leader"],
)
def test_the_registry_is_up_when_it_was_read_and_is_the_known_one(trouble, up):
    metrics = fresh()

    metrics.passed(passed(look(**trouble)))

    assert value(metrics, "registry_up") == up


def test_the_registry_is_down_when_it_broke_at_the_door():
    metrics = fresh()

    metrics.passed(passed(look(), outcome=PassOutcome.DEFERRED, reason=str(DeferReason.REGISTRY_UNUSABLE)))

    assert value(metrics, "registry_up") == 0


def test_the_breaker_stays_open_until_a_look_finds_it_closed():
    metrics = fresh()

    metrics.passed(passed(look([machine()]), SHUT))
    assert value(metrics, "breaker_open") == 1
    metrics.passed(passed(look([], coverage=INCOMPLETE), SHUT))
    assert value(metrics, "breaker_open") == 1
    metrics.passed(passed(look([machine()], [row()]), SHUT))
    assert value(metrics, "breaker_open") == 0


def test_the_brake_is_told_by_a_pass_and_by_whoever_watches_it():
    metrics = fresh()

    metrics.passed(passed(look(memory=Memory(brake=BRAKE))))
    assert value(metrics, "reap_hold") == 1
    metrics.braked(False)
    assert value(metrics, "reap_hold") == 0
    metrics.braked(True)
    metrics.passed(passed(look()))
    assert value(metrics, "reap_hold") == 0


# ---------------------------------------------------------------- scopes come and go


def test_a_scope_that_the_configuration_dropped_disappears_at_once():
    metrics = fresh()
    metrics.passed(passed(look([machine(at=WEST)])))
    metrics.swept(swept(stranger(at=GCP), coverage=(whole(GCP), whole(EAST))))

    configure(metrics, providers=["aws"], scopes=[EAST])

    assert set(values_of(scrape(metrics), "region")) == {EAST.region}
    regions = {
        labels for name, labels in series_of(scrape(metrics)) if ("provider", "gcp") in labels and "_total" not in name
    }
    assert regions == set()


def test_the_counters_of_a_dropped_provider_count_on():
    metrics = fresh()
    metrics.requested("gcp", "list_owned", "ok")

    configure(metrics, providers=["aws"], scopes=[EAST])
    metrics.requested("gcp", "list_owned", "ok")

    assert value(metrics, "provider_requests_total", provider="gcp", operation="list_owned", result="ok") == 2


def test_a_pass_of_the_old_settings_brings_no_dropped_scope_back():
    metrics = fresh()
    configure(metrics, providers=["aws"], scopes=[EAST])

    metrics.passed(passed(look([machine(at=WEST)])))

    assert set(values_of(scrape(metrics), "region")) == {EAST.region}


def test_a_provider_that_finds_its_scopes_is_told_wherever_it_looked():
    metrics = fresh(providers=["aws"], scopes=[])

    metrics.passed(passed(look([machine(at=WEST)])))

    assert value(metrics, "orphan_instances", **place(WEST)) == 1
    assert value(metrics, "orphan_instances", **place(GCP)) is None


def test_the_audit_is_told_outside_the_configured_scopes_too():
    metrics = fresh(providers=["aws"], scopes=[EAST])

    metrics.swept(swept(stranger(at=WEST)))

    assert value(metrics, "unowned_long_running_instances", **place(WEST)) == 1
    assert value(metrics, "scope_up", kind="audit", **place(WEST)) == 1


# ---------------------------------------------------------------- the audit


def test_a_leak_is_told_while_it_is_there_and_no_longer():
    metrics = fresh()

    metrics.swept(swept(stranger(cost_per_hour_usd=2.5, tags={"reaperd:Owner": "prod-a"})))
    here = place(EAST)
    assert value(metrics, "unowned_long_running_instances", **here) == 1
    assert value(metrics, "unowned_oldest_launch_timestamp_seconds", **here) == (NOW - 7 * HOUR).timestamp()
    assert value(metrics, "leak_cost_dollars_per_hour", **here) == 2.5
    assert value(metrics, "near_miss_tags", **here) == 1
    assert "i-9" not in page(metrics)

    metrics.swept(swept())
    assert value(metrics, "unowned_long_running_instances", **here) == 0
    assert value(metrics, "unowned_oldest_launch_timestamp_seconds", **here) is None
    assert value(metrics, "leak_cost_dollars_per_hour", **here) == 0
    assert value(metrics, "near_miss_tags", **here) == 0


def test_a_price_that_nobody_knows_is_not_told_as_0():
    metrics = fresh()

    metrics.swept(swept(stranger()))

    assert value(metrics, "leak_cost_dollars_per_hour", **place(EAST)) is None


def test_a_scope_that_failed_keeps_what_was_known_of_it():
    metrics = fresh()
    metrics.swept(swept(stranger("i-1"), stranger("i-2", at=WEST)))

    half = (broken(EAST), whole(WEST))
    metrics.swept(swept(coverage=half, outcome=PassOutcome.REFUSED, reason="listing_incomplete"))

    assert value(metrics, "unowned_long_running_instances", **place(EAST)) == 1
    assert value(metrics, "unowned_long_running_instances", **place(WEST)) == 0
    assert value(metrics, "scope_up", kind="audit", **place(EAST)) == 0
    assert value(metrics, "passes_total", kind="audit", outcome="refused") == 1
    assert sum(scrape(metrics)["reaperd_refusals_total"].values()) == 0


@pytest.mark.parametrize(
    "coverage",
    [(broken(EAST),), (whole(EAST), broken(Scope("aws", "*"))), (), (whole(GCP),)],
    ids=["credentials fail", "the list of regions fails", "nothing came back", "another provider"],
)
def test_a_scope_that_a_failed_sweep_does_not_even_name_keeps_what_was_known_of_it(coverage):
    metrics = fresh()
    metrics.swept(swept(stranger("i-1"), stranger("i-2", at=WEST)))

    metrics.swept(swept(coverage=coverage, outcome=PassOutcome.REFUSED, reason="listing_incomplete"))

    assert value(metrics, "unowned_long_running_instances", **place(WEST)) == 1


def test_under_a_clock_that_cannot_be_believed_everything_stays_as_it_was():
    metrics = fresh()
    metrics.swept(swept(stranger("i-1")))

    metrics.swept(swept(outcome=PassOutcome.REFUSED, reason="clock"))

    assert value(metrics, "unowned_long_running_instances", **place(EAST)) == 1
    assert value(metrics, "last_look_timestamp_seconds", kind="audit") == NOW.timestamp()


def test_stopped_leaks_are_counted_for_themselves():
    metrics = fresh()

    metrics.swept(swept(stranger(state=InstanceState.STOPPED, cost_per_hour_usd=2.5)))

    here = place(EAST)
    assert value(metrics, "unowned_long_running_instances", **here) == 0
    assert value(metrics, "unowned_stopped_instances", **here) == 1
    assert value(metrics, "unowned_oldest_launch_timestamp_seconds", **here) is None
    assert value(metrics, "leak_cost_dollars_per_hour", **here) == 0


def test_our_own_machines_where_the_reaper_does_not_look_are_counted():
    metrics = fresh()
    wishes = AuditPolicy(deployment=DEPLOYMENT, tags=TagKeys(), max_age=HOUR, scopes=frozenset({WEST}))

    metrics.swept(swept(findings=find_leaks([stranger(owner=DEPLOYMENT)], wishes, NOW)))

    assert value(metrics, "owned_out_of_scope_instances", **place(EAST)) == 1
    assert value(metrics, "owned_out_of_scope_instances", **place(WEST)) == 0


def test_a_provider_that_cannot_be_audited_is_told_from_the_first_sweep_on():
    metrics = fresh()
    assert value(metrics, "audit_skipped", provider="gcp") is None

    metrics.swept(swept(skipped=("gcp",)))
    assert (value(metrics, "audit_skipped", provider="aws"), value(metrics, "audit_skipped", provider="gcp")) == (0, 1)

    metrics.swept(swept(coverage=(), outcome=PassOutcome.REFUSED, reason="deadline"))
    assert value(metrics, "audit_skipped", provider="gcp") == 1


def test_a_scope_that_the_audit_no_longer_looks_at_disappears():
    metrics = fresh()
    metrics.swept(swept(stranger("i-1"), stranger("i-2", at=WEST)))

    metrics.swept(swept(coverage=(whole(EAST),)))

    assert value(metrics, "unowned_long_running_instances", **place(WEST)) is None


def test_a_scope_that_a_failed_sweep_does_not_name_is_told_as_not_seen():
    metrics = fresh(providers=["aws"], scopes=[EAST])
    metrics.swept(swept())

    metrics.swept(swept(coverage=(broken(EAST),), outcome=PassOutcome.REFUSED, reason="listing_incomplete"))

    assert value(metrics, "scope_up", kind="audit", **place(WEST)) == 0


def test_regions_that_could_not_be_had_are_told_until_they_can():
    metrics, nowhere = fresh(providers=["aws"], scopes=[EAST]), Scope("aws", "*")
    refused = {"outcome": PassOutcome.REFUSED, "reason": "listing_incomplete"}
    metrics.swept(swept(coverage=(whole(EAST), broken(nowhere)), **refused))
    assert value(metrics, "scope_up", kind="audit", **place(nowhere)) == 0

    metrics.swept(swept(coverage=(broken(EAST), whole(WEST)), **refused))

    assert value(metrics, "scope_up", kind="audit", **place(nowhere)) is None


def test_a_sweep_that_saw_nothing_forgets_nothing():
    metrics = fresh()
    metrics.swept(swept(stranger()))

    metrics.swept(swept(coverage=(), outcome=PassOutcome.REFUSED, reason="listing_incomplete"))

    assert value(metrics, "unowned_long_running_instances", **place(EAST)) == 1
    assert value(metrics, "scope_up", kind="audit", **place(EAST)) == 0


def test_only_a_whole_sweep_moves_the_times():
    metrics = fresh()

    metrics.swept(swept(outcome=PassOutcome.REFUSED, reason="listing_incomplete", coverage=(broken(EAST),)))
    assert value(metrics, "last_complete_timestamp_seconds", kind="audit") is None
    metrics.swept(swept())
    assert value(metrics, "last_complete_timestamp_seconds", kind="audit") == NOW.timestamp()
    assert value(metrics, "last_look_timestamp_seconds", kind="audit") == NOW.timestamp()


# ---------------------------------------------------------------- what cannot be told


def test_a_part_that_cannot_be_made_is_left_out_counted_and_told_once():
    stream = io.StringIO()
    log = build_logger(as_json=True, now=lambda: NOW, stream=stream)
    metrics = Metrics(version="1", clock=ManualClock(NOW), log=log)
    configure(metrics, intervals={PassKind.RECONCILE: "a minute"})

    first = scrape(metrics)
    metrics.leading(True)
    second = scrape(metrics)

    assert "reaperd_pass_interval_seconds" not in first
    assert first["reaperd_collector_errors_total"] == {frozenset(): 1}
    assert second["reaperd_collector_errors_total"] == {frozenset(): 2}
    assert first["reaperd_mode"]
    (told,) = map(json.loads, stream.getvalue().splitlines())
    assert (told["event"], told["metric"]) == ("metric_left_out", "reaperd_pass_interval_seconds")


def test_an_event_of_no_known_series_begins_no_counter_and_is_told():
    stream = io.StringIO()
    metrics = Metrics(
        version="1", clock=ManualClock(NOW), log=build_logger(as_json=True, now=lambda: NOW, stream=stream)
    )
    configure(metrics)
    before = series_of(counters(scrape(metrics)))

    metrics.requested("azure", "list_owned", "ok")

    assert series_of(counters(scrape(metrics))) == before
    assert value(metrics, "collector_errors_total") == 1
    assert "reaperd_provider_requests_total azure, list_owned, ok" in stream.getvalue()


def test_without_a_log_what_cannot_be_told_is_counted():
    metrics = fresh(intervals={PassKind.RECONCILE: None})

    assert value(metrics, "collector_errors_total") == 1


@pytest.mark.parametrize("region", ["\ud800", 'a"b\\c\nd', "é", "\x1b[31m"])
@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_a_region_of_any_text_does_not_break_the_page(region, accept):
    metrics = fresh(providers=["aws"], scopes=[])
    scope = Scope("aws", region)

    metrics.passed(passed(look(coverage=(whole(scope),)), policy(scopes=frozenset({scope}))))

    assert "reaperd_owned_instances{" in page(metrics, accept)
    assert value(metrics, "collector_errors_total") == 0


# ---------------------------------------------------------------- laws


@given(good_worlds(), st.lists(st.sampled_from(COUNTED_OUTCOMES), max_size=5))
def test_a_counter_is_there_before_it_counts(world: World, kinds):
    metrics = fresh()
    before = series_of(counters(scrape(metrics)))

    outcomes = [Outcome(ref=ref(f"i-{number}"), kind=kind) for number, kind in enumerate(kinds)]
    metrics.passed(passed(world.seen, world.policy, *outcomes))

    assert series_of(counters(scrape(metrics))) == before


def renamed(world: World) -> World:
    """Return the same world, in which every machine and worker has another name."""

    def of(where: InstanceRef) -> InstanceRef:
        return replace(where, instance_id=f"secret-{where.instance_id}")

    def named(worker_id: str | None) -> str | None:
        return worker_id and f"hushed-{worker_id}"

    seen, known = world.seen, world.seen.memory
    memory = replace(
        known,
        sightings={of(at): replace(each, tracked_by=named(each.tracked_by)) for at, each in known.sightings.items()},
        intents={of(at): replace(each, ref=of(at)) for at, each in known.intents.items()},
        listed=frozenset(of(at) for at in known.listed),
        approvals=tuple(replace(each, refs=frozenset(map(of, each.refs))) for each in known.approvals),
    )
    fleet = tuple(replace(each, ref=of(each.ref), worker_id=named(each.worker_id)) for each in seen.instances)
    rows = tuple(
        replace(
            each,
            worker_id=f"hushed-{each.worker_id}",
            instance_id=None if each.instance_id is None else f"secret-{each.instance_id}",
        )
        for each in world.rows
    )
    wishes = replace(world.policy, never=frozenset(f"secret-{each}" for each in world.policy.never))
    located = {of(at): found for at, found in seen.located.items()}
    return World(replace(seen, instances=fleet, memory=memory, located=located), wishes).with_rows(rows)


@given(good_worlds())
def test_the_names_of_machines_and_workers_change_nothing_on_the_page(world: World):
    metrics, other = fresh(), fresh()

    metrics.passed(passed(world.seen, world.policy))
    other.passed(passed(renamed(world).seen, renamed(world).policy))

    assert ours(scrape(other)) == ours(scrape(metrics))
    assert "secret" not in page(other)
    assert "hushed" not in page(other)


# ---------------------------------------------------------------- what reads


@pytest.mark.parametrize("parser", Parser)
def test_it_is_told_which_parser_reads(parser):
    metrics = Metrics(version="1", clock=ManualClock(NOW), parser=parser)

    told = scrape(metrics)["reaperd_listing_parser"]

    assert told == {frozenset({("parser", str(each))}): float(each is parser) for each in Parser}


def test_nothing_is_told_of_a_parser_where_nobody_said():
    assert "reaperd_listing_parser" not in scrape(Metrics(version="1", clock=ManualClock(NOW)))


# ---------------------------------------------------------------- formats


def filled() -> Metrics:
    metrics = fresh(channels=["mail"])
    metrics.ledger_created(NOW)
    metrics.attempted(PassKind.RECONCILE, NOW)
    metrics.leading(True)
    metrics.passed(passed(look([machine(), machine("i-2", worker="w-2")], [row()])))
    metrics.swept(swept(stranger(cost_per_hour_usd=1.0)))
    return metrics


def test_every_metric_is_on_a_page_that_knows_everything():
    assert {series.name for series in ALL} <= {name.removesuffix("_bucket") for name in scrape(filled())}


def test_both_formats_say_the_same():
    metrics = filled()

    families = list(openmetrics_families(page(metrics, OPENMETRICS)))
    told = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    plain = {(name, labels): number for name, samples in scrape(metrics).items() for labels, number in samples.items()}

    mine = {key: number for key, number in told.items() if key[0].startswith("reaperd_")}
    assert mine == {key: number for key, number in plain.items() if key[0].startswith("reaperd_")}


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ('Application/OpenMetrics-Text; Version="1.0.0"', True),
        ("application/openmetrics-text;version=0.0.1", False),
        ("application/openmetrics-text;version=9.9.9", False),
        ("application/openmetrics-text;version=1.0.0;q=0", False),
        ("application/openmetrics-text;q=0.1,text/plain;q=0.9", False),
        ("application/openmetrics-text;q=much", False),
        ("application/openmetrics-text;q=nan", False),
        ("application/openmetrics-text;q=7", False),
        (";,;=;q=,,", False),
        (PROMETHEUS_2, True),
        (PROMETHEUS_3, True),
    ],
)
def test_who_prefers_openmetrics_gets_it(accept, openmetrics):
    assert prefers_openmetrics(accept) is openmetrics
    assert fresh().page(accept)[1].startswith("application/openmetrics-text" if openmetrics else "text/plain")


@given(st.text(max_size=60))
def test_any_accept_header_gets_a_page(accept):
    assert prefers_openmetrics(accept) in (True, False)


# ---------------------------------------------------------------- threads


def test_a_scrape_does_not_wait_for_a_writer():
    metrics = fresh()
    entered, leave, done = threading.Event(), threading.Event(), threading.Event()

    class Slow(tuple):
        """A coverage that is still being read."""

        __slots__ = ()

        def __iter__(self):
            entered.set()
            leave.wait(30)
            return super().__iter__()

    writer = threading.Thread(target=lambda: metrics.swept(swept(coverage=Slow((whole(EAST),)))), daemon=True)
    writer.start()
    assert entered.wait(10)
    threading.Thread(target=lambda: (page(metrics), done.set()), daemon=True).start()

    assert done.wait(10)
    leave.set()
    writer.join(10)
    assert value(metrics, "passes_total", kind="audit", outcome="complete") == 1


def test_no_event_is_lost_between_threads():
    metrics = fresh()

    def count() -> None:
        for _ in range(200):
            metrics.requested("aws", "list_owned", "ok")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        page(metrics)
    for thread in threads:
        thread.join()

    assert value(metrics, "provider_requests_total", provider="aws", operation="list_owned", result="ok") == 800


def test_the_longest_pass_falls_into_the_last_bucket():
    metrics = fresh()

    metrics.failed(PassKind.RECONCILE, timedelta(hours=1).total_seconds())
    metrics.failed(PassKind.RECONCILE, 600.0)

    assert value(metrics, "pass_duration_seconds_bucket", kind="reconcile", le="600.0") == 1
    assert value(metrics, "pass_duration_seconds_bucket", kind="reconcile", le="+Inf") == 2


def test_a_scope_has_one_line_whoever_says_what_of_it():
    metrics = fresh()

    twice = (Coverage(scope=EAST), Coverage(scope=EAST, failure=ScopeFailure.LISTING, error_code="x"))
    metrics.swept(swept(coverage=twice, outcome=PassOutcome.REFUSED, reason="listing_incomplete"))

    assert len(scrape(metrics)["reaperd_scope_up"]) == 1


# ---------------------------------------------------------------- the process


@pytest.mark.parametrize(("later", "same"), [(timedelta(seconds=3), True), (timedelta(seconds=4), False)])
def test_how_the_process_is_doing_is_sampled_and_never_old(later: timedelta, *, same: bool):
    clock = ManualClock(NOW)
    metrics = Metrics(version="1", clock=clock)
    metrics.sample()
    opened = page(metrics)
    with socket.socket(), socket.socket(), socket.socket():
        clock.advance(later)
        found = page(metrics)

    assert "process_open_fds" in opened
    assert (descriptors(found) == descriptors(opened)) is same


def descriptors(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("process_open_fds "))
