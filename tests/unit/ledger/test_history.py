"""Asking the ledger about the past: what is found, what is proved, and that it leaves no trace."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from providers.events import ProviderEvent
from providers.model import Coverage, InstanceState, OwnedInstance
from reaperd.core.history import (
    EventKind,
    Finding,
    Look,
    ScopeRecord,
    Told,
    ToldAct,
    ToldAnnouncement,
    ToldPass,
    Wanted,
)
from reaperd.core.memory import learn
from reaperd.core.model import Brake, OutcomeKind, PassOutcome, PassReport, Sighting
from reaperd.core.reap import owned
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.chain import link
from reaperd.ledger.history import LedgerFile, history, recollect, verify
from reaperd.ledger.ledger import Ledger
from reaperd.report.trail import KEPT, record_of, record_of_sweep
from tests.support.worlds import EAST, HOUR, MINUTE, NOW, WEST, broken, look, machine, policy, ref, row, whole
from tests.unit.cli import reports
from tests.unit.cli.test_audit import BROKEN, MIXED, foreign, swept
from tests.unit.ledger.conftest import open_at
from tests.unit.ledger.test_memory import LESSON, requested

REF = ref("i-1")


@pytest.fixture
def file(path: Path) -> LedgerFile:
    return LedgerFile(path=path, deployment="prod-a", owner_tag="reaperd:owner")


def a_pass(minutes: int, report: PassReport | None = None, **other: object) -> PassReport:
    at = NOW + minutes * MINUTE
    quiet = report or reports.report(look([machine("i-9", worker="w-9")], [row("w-9", "i-9")]), policy())
    return replace(quiet, pass_id=f"p-{minutes:03}", started_at=at, finished_at=at + timedelta(seconds=2), **other)


def told_of(*names: str) -> PassReport:
    """Return a pass that sees orphans."""
    return reports.report(look([machine(name, worker=f"w-{name}") for name in names]), policy())


def keep(ledger: Ledger, *passes: PassReport) -> None:
    known = {ref("i-9"): Sighting(first_seen_at=NOW, last_seen_at=NOW, verdict="keep/tracked")}
    for report in passes:
        ledger.record(record_of(report, known))


def ids(told: tuple[Told, ...]) -> list[str]:
    return [each.pass_id if isinstance(each, ToldPass) else each.act for each in told]


def found(file: LedgerFile, **wanted: object) -> list[str]:
    return ids(history(file, Wanted(**wanted), limit=None, runs=False).told)  # type: ignore[arg-type]


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


# ---------------------------------------------------------------- the history


def test_the_newest_passes_come_first_and_it_is_said_when_older_ones_are_left_out(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0), a_pass(1), a_pass(2))

    page = history(file, Wanted(), limit=2, runs=False)
    everything = history(file, Wanted(), limit=3, runs=False)

    assert (ids(page.told), page.more) == (["p-002", "p-001"], True)
    assert (ids(everything.told), everything.more) == (["p-002", "p-001", "p-000"], False)


def test_a_pass_is_told_as_it_was_recorded(ledger: Ledger, file: LedgerFile):
    report = a_pass(0, reports.enforced())
    keep(ledger, report)

    (told,) = history(file, Wanted(), limit=1, runs=False).told

    assert isinstance(told, ToldPass)
    assert told.record == record_of(report, {}).record
    assert (told.at, told.finished_at) == (report.started_at, report.finished_at)
    assert [(each.kind, each.error_code) for each in told.outcomes] == [
        ("confirmed_gone", None),
        ("requested", None),
        ("denied", "UnauthorizedOperation"),
    ]
    assert {each.name for each in told.verdicts} >= {"terminate/unregistered", "terminate/anonymous"}
    assert told.scopes == {"aws/us-east-1", "aws/eu-west-1", "gcp/us-east-1"}


def test_runs_count_as_one_towards_the_limit(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0, told_of("i-1")), *(a_pass(minute) for minute in range(1, 6)))

    page = history(file, Wanted(), limit=2, runs=True)

    assert ids(page.told) == ["p-005", "p-000"]
    assert [each.passes for each in page.told if isinstance(each, ToldPass)] == [5, 1]
    assert not page.more


def test_what_operators_did_stands_in_its_place_in_time(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0))
    ledger.hold(Brake(since=NOW + timedelta(seconds=30), by="ann", reason="deploy"))
    keep(ledger, a_pass(1))
    ledger.resume("bob", "done", NOW + 2 * MINUTE)

    (resumed, *_) = history(file, Wanted(), limit=None, runs=False).told

    assert found(file) == ["resume", "p-001", "hold", "p-000"]
    assert resumed == ToldAct(at=NOW + 2 * MINUTE, act="resume", by="bob", reason="done", data={"was_on": True})


def test_each_filter_finds_its_passes_alone(ledger: Ledger, file: LedgerFile):
    refused = reports.report(
        look(coverage=(whole(EAST), broken(WEST))),
        policy(),
        outcome=PassOutcome.REFUSED,
        reason="listing_incomplete",
    )
    keep(ledger, a_pass(0), a_pass(1, told_of("i-1", "i-2")), a_pass(2, refused), a_pass(3, told_of("i-11")))
    ledger.hold(Brake(since=NOW, by="ann", reason="deploy"))

    assert found(file, since=NOW + MINUTE, until=NOW + 2 * MINUTE) == ["p-002", "p-001"]
    assert found(file, outcomes=frozenset({"refused"})) == ["p-002"]
    assert found(file, outcomes=frozenset({"would_terminate"})) == ["p-003", "p-001"]
    assert found(file, reasons=frozenset({"unregistered"})) == ["p-003", "p-001"]
    assert found(file, reasons=frozenset({"listing_incomplete"})) == ["p-002"]
    assert found(file, machines=frozenset({"i-1"})) == ["p-001"]
    assert found(file, machines=frozenset({"w-i-1"})) == ["p-001"]
    assert found(file, machines=frozenset({"aws/us-east-1/i-2"})) == ["p-001"]
    assert found(file, scopes=frozenset({"gcp"})) == ["p-003", "p-001", "p-000"]
    assert found(file, kinds=frozenset({"act"})) == ["hold"]
    assert found(file, kinds=frozenset({"audit"})) == []
    assert found(file, pass_id="p-00") == ["p-003", "p-002", "p-001", "p-000"]
    assert found(file, pass_id="p-002") == ["p-002"]
    assert found(file, pass_id="%") == []


def test_a_worker_whose_id_has_a_slash_is_found(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0, reports.report(look([machine("i-1", worker="team/ü")]), policy())))

    assert found(file, machines=frozenset({"team/ü"})) == ["p-000"]


def test_a_pass_is_narrowed_to_the_machine_that_was_asked_for(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0, told_of("i-1", "i-2")))

    (told,) = history(file, Wanted(machines=frozenset({"i-2"})), limit=None, runs=False).told

    assert isinstance(told, ToldPass)
    assert [each.ref.instance_id for each in (*told.verdicts, *told.outcomes)] == ["i-2", "i-2"]


def test_of_one_machine_only_the_approvals_are_told_that_it_is_in(ledger: Ledger, file: LedgerFile):
    ledger.hold(Brake(since=NOW, by="ann", reason="deploy"))
    ledger.approve("sha256:a", (REF,), "ann", "why", NOW)
    ledger.approve("sha256:b", (ref("i-2"),), "ann", "why", NOW)

    page = history(file, Wanted(machines=frozenset({"i-1"})), limit=None, runs=False)

    assert [each.data["digest"] for each in page.told if isinstance(each, ToldAct)] == ["sha256:a"]


@pytest.mark.parametrize("text", ["no JSON", "{}x", '{"verdicts": [{}]}', '{"verdicts": [1]}', '{"outcomes": 7}'])
def test_a_record_that_cannot_be_read_is_named_with_the_way_to_check_it(
    ledger: Ledger, file: LedgerFile, path: Path, text: str
):
    keep(ledger, a_pass(0))
    change(path, f"UPDATE passes SET record = '{text}'")

    with pytest.raises(LedgerUnusableError, match=r"p-000: .*reaperd history --verify"):
        history(file, Wanted(), limit=1, runs=True)


# ---------------------------------------------------------------- sweeps


def test_a_sweep_is_recorded_and_told_with_what_it_found(ledger: Ledger, file: LedgerFile):
    ledger.record(record_of_sweep(swept(*MIXED, coverage=BROKEN)))
    keep(ledger, a_pass(1))

    (told,) = history(file, Wanted(kinds=frozenset({"audit"})), limit=None, runs=False).told

    assert isinstance(told, ToldPass)
    assert (told.kind, told.mode, told.outcome, told.reason) == ("audit", "", "refused", "listing_incomplete")
    assert told.leaks == 3
    assert [(each.ref.instance_id, each.finding) for each in told.findings] == [
        ("i-0cc33333333333333", Finding.LEAK),
        ("i-0ab77777777777777", Finding.LEAK),
        ("i-0aa11111111111111", Finding.LEAK),
        ("i-0ee55555555555555", Finding.NEAR_MISS),
    ]
    assert told.scopes == {"aws/us-east-1", "aws/eu-west-1", "gcp/us-east-1"}
    assert found(file, machines=frozenset({"i-0cc33333333333333"})) == ["0" * 32]
    assert verify(file).broken == ()


def test_the_record_of_a_sweep_is_bounded_and_without_tags():
    crowd = [foreign(f"i-{number:017x}", hours=100 + number, tags={"password": "hunter2"}) for number in range(5_000)]
    ignored = [foreign(f"i-{number:08x}", name=f"bastion-{number}") for number in range(300)]
    record = record_of_sweep(swept(*crowd, *ignored, foreign("i-0ff66666666666666", at=WEST, owner="prod-a")))

    told = json.loads(record.record)

    assert len(record.record) < 30_000
    assert "hunter2" not in record.record
    assert (len(told["leaks"]), told["leaks_total"], told["near_misses_total"]) == (KEPT, 5_000, 0)
    assert told["leaks"][0]["age_seconds"] == 5_099 * 3600
    assert told["ignored_counts"] == {"the bastions": 300}
    assert "ignored" not in told


def test_an_empty_sweep_is_told_without_being_read(ledger: Ledger, file: LedgerFile):
    ledger.record(record_of_sweep(swept()))

    (told,) = history(file, Wanted(), limit=None, runs=True).told

    assert isinstance(told, ToldPass)
    assert (told.findings, told.leaks, told.outcome) == ((), 0, "complete")


# ---------------------------------------------------------------- whose, and no trace


def ask(file: LedgerFile) -> list[object]:
    return [
        history(file, Wanted(), limit=1, runs=True),
        verify(file),
        recollect(file, "i-1", Wanted(), NOW),
    ]


def test_asking_leaves_no_trace(path: Path, file: LedgerFile):
    with open_at(path) as ledger:
        keep(ledger, a_pass(0))
    before = {each: each.read_bytes() for each in path.parent.iterdir()}

    ask(file)

    assert {each: each.read_bytes() for each in path.parent.iterdir()} == before


def test_asking_where_nothing_is_makes_nothing(path: Path, file: LedgerFile):
    with pytest.raises(LedgerUnusableError, match="there is no ledger"):
        ask(file)

    assert not path.parent.exists()


def test_another_deployments_ledger_is_refused(ledger: Ledger, file: LedgerFile):
    other = replace(file, deployment="prod-b")

    for question in (
        lambda: history(other, Wanted(), limit=1, runs=True),
        lambda: verify(other),
        lambda: recollect(other, "i-1", Wanted(), NOW),
    ):
        with pytest.raises(LedgerUnusableError, match="prod-a"):
            question()


# ---------------------------------------------------------------- the chain


@pytest.fixture
def recorded(ledger: Ledger) -> None:
    keep(ledger, *(a_pass(minute) for minute in range(4)))
    ledger.hold(Brake(since=NOW, by="ann", reason="deploy"))
    ledger.resume("ann", "done", NOW)


def test_what_is_as_it_was_recorded_is_whole(recorded: None, file: LedgerFile):
    found = verify(file)

    assert (found.broken, found.passes, found.acts, found.since) == ((), 4, 2, NOW)
    assert len(found.newest_hash) == 64


def test_an_empty_ledger_is_whole(ledger: Ledger, file: LedgerFile):
    assert verify(file).broken == ()
    assert verify(file).newest_hash == ""


def test_passes_that_were_dropped_in_their_time_break_nothing(recorded: None, ledger: Ledger, file: LedgerFile):
    ledger.forget(timedelta(minutes=1), NOW + 3 * MINUTE)

    assert (verify(file).broken, verify(file).passes) == ((), 2)


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE passes SET record = replace(record, 'dry-run', 'enforce') WHERE seq = 2", "pass number 2: its text"),
        ("UPDATE passes SET hash = 'ab' WHERE seq = 2", "pass number 2: its text"),
        ("DELETE FROM passes WHERE seq = 2", "pass number 3: it does not follow"),
        ("UPDATE passes SET outcome = 'refused' WHERE seq = 2", "pass number 2: .* outcome "),
        ("UPDATE passes SET reason = 'clock' WHERE seq = 2", "pass number 2: .* reason "),
        ("UPDATE passes SET mode = 'enforce' WHERE seq = 2", "pass number 2: .* mode "),
        ("UPDATE passes SET pass_id = 'x' WHERE seq = 2", "pass number 2: .* pass_id "),
        ("UPDATE passes SET kind = 'audit' WHERE seq = 2", "pass number 2: .* kind "),
        ("UPDATE passes SET plan_digest = 'sha256:x' WHERE seq = 2", "pass number 2: .* plan_digest "),
        ("UPDATE passes SET scopes = '{}' WHERE seq = 2", "pass number 2: .* scopes "),
        ("UPDATE passes SET started_at = '2025-01-01T00:00:00.000000Z' WHERE seq = 2", "pass number 2: .*started_at "),
        ("UPDATE passes SET finished_at = '2027-01-01T00:00:00.000000Z' WHERE seq = 2", "pass number 2: .*finished_at"),
        ("UPDATE operator_acts SET by_whom = 'bob' WHERE seq = 1", "act number 1: its text"),
        ("DELETE FROM operator_acts WHERE seq = 1", "act number 2: it does not follow"),
    ],
)
def test_whatever_is_changed_breaks_the_chain_where_it_was_changed(
    recorded: None, path: Path, file: LedgerFile, statement: str, complaint: str
):
    change(path, statement)

    (broken_link,) = verify(file).broken

    assert re.match(complaint, broken_link), broken_link


@pytest.mark.parametrize("text", ["no JSON", "7", '{"coverage": [{}]}'])
def test_a_record_that_says_nothing_is_broken_whatever_its_hash(
    recorded: None, path: Path, file: LedgerFile, text: str
):
    with closing(sqlite3.connect(path)) as connection, connection:
        (previous,) = connection.execute("SELECT previous_hash FROM passes WHERE seq = 4").fetchone()
        forged = (text, link(previous, text))
        connection.execute("UPDATE passes SET record = ?, hash = ? WHERE seq = 4", forged)

    assert verify(file).broken[0].startswith("pass number 4: its record cannot be read")


def test_what_a_sweep_heard_is_told_of_its_machine_with_the_last_time(ledger: Ledger, file: LedgerFile):
    going = ProviderEvent(
        ref=REF, fault_code="marked-for-termination", marked_for_termination=True, termination_time=NOW + MINUTE
    )
    keep(ledger, a_pass(0, told_of("i-1")))
    for minutes in (1, 2):
        heard = replace(swept(events=[going]), pass_id=f"s-{minutes}", started_at=NOW + minutes * MINUTE)
        ledger.record(record_of_sweep(heard))
    ledger.record(record_of_sweep(replace(swept(), pass_id="s-3", started_at=NOW + 3 * MINUTE)))

    (trace,) = recollect(file, "i-1", Wanted(), NOW + HOUR).traces

    assert trace.announced == ToldAnnouncement(ref=REF, code="marked-for-termination", ends=True, at=NOW + MINUTE)
    assert trace.announced_at == NOW + 2 * MINUTE
    assert [(event.kind, event.pass_id) for event in trace.events][-1] == (EventKind.ANNOUNCED, "s-1")


def test_a_sweep_of_a_release_that_heard_nothing_is_read_as_one_that_was_told_nothing(ledger: Ledger, file: LedgerFile):
    record = record_of_sweep(swept(*MIXED))
    older = {key: value for key, value in json.loads(record.record).items() if key not in {"events", "unheard"}}
    ledger.record(replace(record, record=json.dumps(older, separators=(",", ":"))))

    (told,) = history(file, Wanted(), limit=None, runs=False).told

    assert isinstance(told, ToldPass)
    assert told.announcements == ()
    assert told.leaks == 3


def test_an_announcement_alone_is_read_of_an_otherwise_quiet_sweep(ledger: Ledger, file: LedgerFile):
    going = ProviderEvent(ref=REF, fault_code="marked-for-stop", marked_for_termination=False)
    ledger.record(record_of_sweep(swept(events=[going])))

    (told,) = history(file, Wanted(machines=frozenset({"i-1"})), limit=None, runs=False).told

    assert isinstance(told, ToldPass)
    assert [(each.code, each.at) for each in told.announcements] == [("marked-for-stop", None)]


# ---------------------------------------------------------------- one machine


FULL = OwnedInstance(
    ref=REF,
    state=InstanceState.STOPPED,
    owner="prod-a",
    worker_id="w-ü",
    registry_id="r-1",
    protect=True,
    managed_by="autoscaling:workers",
    launched_at=NOW - HOUR,
    account="111111111111",
    foreign_account=True,
    instance_type="g5.xlarge",
)


def test_the_last_look_is_kept_as_it_was_judged(ledger: Ledger, file: LedgerFile):
    coverage = (Coverage(scope=EAST, account="111111111111", instances=1, pages=2),)
    kept = Look(at=NOW, instances=(FULL, machine("i-2", worker=None, age=None)), coverage=coverage)
    ledger.learn(replace(LESSON, look=kept), NOW)
    ledger.learn(replace(LESSON, look=replace(kept, at=NOW + MINUTE)), NOW + MINUTE)

    assert recollect(file, "i-1", Wanted(), NOW).look == replace(kept, at=NOW + MINUTE)


def test_tags_are_not_kept(ledger: Ledger, path: Path):
    tagged = replace(FULL, tags={"password": "hunter2"})
    ledger.learn(replace(LESSON, look=Look(at=NOW, instances=(tagged,), coverage=())), NOW)

    with closing(sqlite3.connect(path)) as connection:
        assert "hunter2" not in "".join(connection.iterdump())


def test_a_look_is_kept_with_all_that_is_ours_and_nothing_else(ledger: Ledger, file: LedgerFile):
    seen = look([machine("i-2"), machine("i-1"), machine("i-3", owner="prod-b")], [row()])
    learned = learn(seen, policy())
    assert learned is not None
    ledger.learn(learned, NOW)

    kept = recollect(file, "i-1", Wanted(), NOW).look

    assert kept is not None
    assert set(kept.instances) == set(owned(seen.instances, policy()))
    assert {entry.scope for entry in kept.coverage} == {entry.scope for entry in seen.coverage}


def test_before_the_first_look_there_is_none(ledger: Ledger, file: LedgerFile):
    told = recollect(file, "i-1", Wanted(), NOW)

    assert (told.look, told.newest, told.traces, told.scopes) == (None, None, (), ())


def test_what_happened_to_a_machine_is_told_from_the_beginning(ledger: Ledger, file: LedgerFile):
    grace = reports.report(look([machine("i-1", age=MINUTE)]), policy())
    keep(ledger, a_pass(0, grace), a_pass(1), a_pass(2, told_of("i-1")), a_pass(3, told_of("i-1")))
    ledger.approve("sha256:a", (REF,), "ann", "why", NOW + 4 * MINUTE)

    (trace,) = recollect(file, "i-1", Wanted(), NOW).traces

    assert (trace.ref, trace.worker_id) == (REF, "w-i-1")
    assert [(event.name, event.pass_id) for event in trace.events] == [
        ("keep/launch_grace", "p-000"),
        ("terminate/unregistered", "p-002"),
        ("approve", None),
    ]
    assert trace.events[-1].kind is EventKind.ACT


def test_what_happened_can_be_bounded(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0, told_of("i-1")), a_pass(60, told_of("i-1")))

    told = recollect(file, "i-1", Wanted(since=NOW + HOUR), NOW)

    assert [event.pass_id for event in told.traces[0].events] == ["p-060"]
    assert {scope.whole for scope in told.scopes} == {1}


@pytest.mark.parametrize("name", ["i-1", "w-1", "aws/us-east-1/i-1"])
def test_a_machine_is_found_by_its_id_its_place_and_its_worker(ledger: Ledger, file: LedgerFile, name: str):
    ledger.learn(replace(LESSON, look=Look(at=NOW, instances=(machine("i-1"),), coverage=())), NOW)

    (trace,) = recollect(file, name, Wanted(), NOW).traces

    assert (trace.ref, trace.worker_id) == (REF, "w-1")
    assert trace.sighting == LESSON.sightings[REF]


def test_a_machine_of_which_only_a_request_is_left_is_found_by_its_worker(ledger: Ledger, file: LedgerFile):
    requested(ledger, OutcomeKind.REQUESTED)

    assert [trace.ref for trace in recollect(file, "w-1", Wanted(), NOW).traces] == [REF]
    assert [trace.ref for trace in recollect(file, "i-1", Wanted(), NOW).traces] == [REF]


def test_a_machine_of_which_only_its_end_is_recorded_is_found(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0, reports.enforced()))

    (trace,) = recollect(file, "i-0old999999999999", Wanted(), NOW).traces

    assert [event.name for event in trace.events] == ["confirmed_gone"]


def test_one_id_in_two_places_is_two_machines(ledger: Ledger, file: LedgerFile):
    both = reports.report(look([machine("i-1"), machine("i-1", at=WEST, worker="w-2")]), policy())
    keep(ledger, a_pass(0, both))

    traces = recollect(file, "i-1", Wanted(), NOW).traces

    assert [(str(trace.ref), trace.worker_id) for trace in traces] == [
        ("aws/eu-west-1/i-1", "w-2"),
        ("aws/us-east-1/i-1", "w-1"),
    ]


def test_how_often_each_scope_was_listed_whole_is_proved_with_its_times(ledger: Ledger, file: LedgerFile):
    torn = reports.report(look(coverage=(whole(EAST), broken(WEST))), policy(), outcome=PassOutcome.REFUSED)
    keep(ledger, a_pass(0), a_pass(1, torn), a_pass(2, torn), a_pass(3))

    scopes = {scope.scope: scope for scope in recollect(file, "i-x", Wanted(), NOW).scopes}

    def at(minutes: int) -> datetime:
        return NOW + minutes * MINUTE

    assert scopes["aws/us-east-1"] == ScopeRecord(
        scope="aws/us-east-1", whole=4, first_whole_at=at(0), last_whole_at=at(3)
    )
    assert scopes["aws/eu-west-1"] == ScopeRecord(
        scope="aws/eu-west-1", whole=2, first_whole_at=at(0), last_whole_at=at(3), failed=2, last_failed_at=at(2)
    )


def test_the_newest_pass_is_told(ledger: Ledger, file: LedgerFile):
    keep(ledger, a_pass(0), a_pass(1))

    newest = recollect(file, "i-1", Wanted(), NOW).newest

    assert newest is not None
    assert newest.pass_id == "p-001"
