"""`explain`: what is told of one machine, and from where; rendered, and as it is typed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from providers.locations import Gone, NotKnown, OnlyListed, There
from providers.model import InstanceRef, InstanceState
from reaperd.core.explain import Account, Dossier, explain
from reaperd.core.guards import Objection
from reaperd.core.history import Event, EventKind, ScopeRecord, ToldPass, ToldVerdict, Trace
from reaperd.core.memory import learn
from reaperd.core.model import (
    Brake,
    BreakerLimits,
    Intent,
    KeepReason,
    Memory,
    Observation,
    OutcomeKind,
    ReapPolicy,
    RefusalReason,
    RegistryTrouble,
    Sighting,
)
from reaperd.report.conditions import FACTS
from reaperd.report.explain import COLUMNS, dossier_document, dossier_sheet, draw_dossier
from reaperd.report.paper import Paper
from reaperd.report.remedies import Whereabouts
from reaperd.report.trail import record_of
from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from tests.support.worlds import EAST, HOUR, MINUTE, NOW, SECOND, WEST, broken, look, machine, policy, ref, row, whole
from tests.unit.cli import reports
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import run

ID = "i-0bb22222222222222"
REF = ref(ID)
WHERE = Whereabouts(config="/etc/fleet.toml")
EVIL = "\x1b[2J[red]x[/red]\r\nKEPT: tracked\u202e\x7f"


def event(minutes: int, name: str, kind: EventKind = EventKind.VERDICT, detail: str = "") -> Event:
    told = ToldVerdict(
        ref=REF, worker_id="w-2", state="running", name=name, age_seconds=600, confirmations=2, confirmations_needed=3
    )
    return Event(
        at=NOW + minutes * MINUTE,
        kind=kind,
        name=name,
        mode="enforce",
        pass_id=None if kind is EventKind.ACT else f"{minutes + 500:032x}",
        verdict=told if kind is EventKind.VERDICT else None,
        detail=detail,
    )


PAST = (
    event(-90, "keep/launch_grace"),
    event(-60, "terminate/unregistered"),
    event(-59, "denied", EventKind.OUTCOME, "UnauthorizedOperation"),
    event(-30, "approve", EventKind.ACT, "by ann@ops-1: fleet B was shut down"),
)
NEWEST = ToldPass(
    at=NOW - MINUTE,
    finished_at=NOW - 58 * SECOND,
    pass_id=f"{7:032x}",
    kind="reconcile",
    mode="enforce",
    outcome="complete",
    reason=None,
)
SEEN = Sighting(first_seen_at=NOW - 2 * HOUR, last_seen_at=NOW - MINUTE, verdict="keep/launch_grace")
SCOPES = (
    ScopeRecord(scope="aws/eu-west-1", failed=3, last_failed_at=NOW),
    ScopeRecord(scope="aws/us-east-1", whole=1_440, first_whole_at=NOW - 24 * HOUR, last_whole_at=NOW, failed=2),
)


def dossier(
    seen: Observation, wishes: ReapPolicy | None = None, standing: tuple[Objection, ...] = (), **other: object
) -> Dossier:
    """Return what is told of our machine in a world."""
    wishes = wishes or policy(confirm_passes=3)
    about = (*seen.registry.workers,) if hasattr(seen.registry, "workers") else ()
    trace = Trace(ref=REF, worker_id="w-2", sighting=SEEN, events=PAST)
    made = Dossier(
        asked=ID,
        now=seen.now,
        policy=wishes,
        owner_tag="reaperd:owner",
        enforcing=True,
        live=False,
        looked_at=NOW - MINUTE,
        newest=NEWEST,
        accounts=(Account(explanation=explain(seen, wishes, REF, standing), trace=trace, rows=about),),
    )
    return replace(made, **other)


def ours(**facts: object):
    facts = {"worker": "w-2", "account": "111111111111", "instance_type": "g5.xlarge"} | facts
    return machine(ID, **facts)


def drawn(told: Dossier, **paper: int) -> str:
    page = Paper(**paper)
    draw_dossier(told, page, WHERE)
    return page.text()


DENIED = Intent(
    intent_id=1,
    ref=REF,
    requested_at=NOW - 10 * MINUTE,
    outcome=OutcomeKind.DENIED,
    error_code="UnauthorizedOperation",
    first_requested_at=NOW - HOUR,
)
CONFIRMED = Memory(sightings={REF: replace(SEEN, confirmations=2, counted_at=NOW - MINUTE)})

TAKEN = Memory(intents={REF: replace(DENIED, outcome=OutcomeKind.REQUESTED, error_code=None)})
"""Its end was accepted."""

PAGES: dict[str, Dossier] = {
    "orphan": dossier(look([ours()], memory=CONFIRMED)),
    "orphan_in_rehearsal": dossier(look([ours()], memory=CONFIRMED), enforcing=False, live=True, looked_at=NOW),
    "young": dossier(
        look([ours(age=4 * MINUTE)]), newest=replace(NEWEST, outcome="refused", reason="breaker_open", mode="dry-run")
    ),
    "tracked": dossier(look([ours()], [row("w-2", ID, heartbeat_at=NOW - 12 * SECOND)])),
    "tracked_by_a_launch": dossier(
        look([ours()], [row("w-2", None, state=WorkerState.LAUNCHING, created_at=NOW - MINUTE)])
    ),
    "tracked_while_it_beats": dossier(
        look([ours()], [row("w-2", ID, heartbeat_at=NOW - 12 * SECOND)]), policy(heartbeat_ttl=10 * MINUTE)
    ),
    "breaker": dossier(look([ours()]), policy(breaker=BreakerLimits(max_per_pass=0))),
    "held": dossier(
        look(
            [ours(protect=True, managed_by="autoscaling:workers", registry_id="r-2", foreign_account=True)],
            memory=replace(
                CONFIRMED,
                intents={REF: DENIED},
                brake=Brake(since=NOW - HOUR, by="ann@ops-1", reason="deploy"),
                sightings={REF: replace(SEEN, tracked_at=NOW - HOUR)},
            ),
        ),
        policy(confirm_passes=3, never=frozenset({ID}), breaker=BreakerLimits(max_per_pass=0)),
    ),
    "gone": dossier(look([ours(state=InstanceState.TERMINATED)])),
    "absent": dossier(look()),
    "untagged": dossier(look(memory=TAKEN, located={REF: There(InstanceState.RUNNING)}), live=True, looked_at=NOW),
    "given_away": dossier(look(memory=TAKEN, located={REF: There(InstanceState.STOPPED, "prod-b")}), live=True),
    "not_proved_gone": dossier(look(memory=TAKEN)),
    "not_known": dossier(look(memory=TAKEN, located={REF: NotKnown("RequestLimitExceeded: no")}), live=True),
    "proved_gone": dossier(look(memory=TAKEN, located={REF: Gone()})),
    "not_ours": dossier(look([ours(owner="prod-b")])),
    "look_failed": dossier(
        look([ours()], memory=CONFIRMED),
        standing=((RefusalReason.LISTING_INCOMPLETE, "aws/eu-west-1 (AuthFailure)"),),
        trouble="listing_incomplete: aws/eu-west-1 (AuthFailure)",
    ),
    "no_registry": dossier(
        look([ours()], registry=RegistryTrouble(detail="registry.db: it is locked")),
        registry_trouble="registry.db: it is locked",
    ),
    "unknown": dossier(look(coverage=(whole(WEST), broken(EAST)))),
    "unconfirmed": dossier(look([ours()])),
    "waiting": dossier(
        look(
            [machine(ID, worker="w-2", age=4 * MINUTE)],
            memory=Memory(sightings={REF: replace(SEEN, first_seen_at=NOW)}),
        ),
        policy(confirm_passes=1),
    ),
    "never_seen": dossier(look(), accounts=(), scopes=SCOPES),
    "only_a_row": dossier(
        look([], [row("w-2", ID)]),
        accounts=(Account(explanation=explain(look(), policy(), REF), trace=Trace(ref=REF), rows=(row("w-2", ID),)),),
        scopes=SCOPES,
        newest=None,
    ),
    "a_launch_without_a_machine": dossier(
        look(), accounts=(), asked="w-5", rows=(row("w-5", None, state=WorkerState.LAUNCHING),), looked_at=None
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_tells_it_to_a_person(name: str):
    assert_golden(f"explain_{name}", drawn(PAGES[name]))


def test_every_reason_to_keep_has_its_figures():
    assert set(FACTS) == set(KeepReason)


@pytest.mark.parametrize("name", PAGES)
def test_every_condition_has_something_to_say_in_json_and_what_is_in_the_way_a_remedy(name: str):
    (*machines,) = dossier_document(PAGES[name], WHERE)["machines"]

    for told in machines:
        assert len(told["conditions"]) == 1 + len(KeepReason) + len(RefusalReason)
        for condition in told["conditions"]:
            if condition["met"] is False and condition["condition"] != "listed":
                assert condition["detail"]
                assert condition["remedy"]
            if condition["met"]:
                assert condition["remedy"] == ""


def test_json_says_what_it_is_judged_on_and_what_happened():
    document = dossier_document(PAGES["orphan"], WHERE)

    assert document["judged_on"] == {"source": "record", "listed_at": "2026-01-10T11:59:00Z", "trouble": ""}
    (told,) = document["machines"]
    assert told["would_terminate"] is True
    assert told["verdict"]["reason"] == "unregistered"
    assert told["first_seen_at"] == "2026-01-10T10:00:00Z"
    assert told["events"][0] == {
        "at": "2026-01-10T10:30:00Z",
        "kind": "verdict",
        "name": "keep/launch_grace",
        "mode": "enforce",
        "pass_id": f"{410:032x}",
        "age_seconds": 600,
        "confirmations": 2,
        "confirmations_needed": 3,
        "detail": "",
    }
    assert document["newest_pass"]["outcome"] == "complete"
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    ("name", "presence", "located"),
    [
        ("untagged", "unlisted", {"answer": "there", "state": "running", "owner": None, "detail": ""}),
        ("given_away", "unlisted", {"answer": "there", "state": "stopped", "owner": "prod-b", "detail": ""}),
        (
            "not_proved_gone",
            "unproved",
            {"answer": "not_known", "state": None, "owner": None, "detail": "it was not asked for by its id"},
        ),
        ("proved_gone", "absent", {"answer": "gone", "state": None, "owner": None, "detail": ""}),
        ("absent", "absent", None),
    ],
)
def test_json_says_what_was_said_of_its_id(name: str, presence: str, located: object):
    (told,) = dossier_document(PAGES[name], WHERE)["machines"]

    assert (told["presence"], told["located"]) == (presence, located)


def test_of_a_provider_that_cannot_be_asked_for_an_id_nothing_is_said():
    (told,) = dossier_document(dossier(look(memory=TAKEN, located={REF: OnlyListed()})), WHERE)["machines"]

    assert (told["presence"], told["located"]) == ("absent", None)


def test_json_of_a_name_that_was_never_seen_has_the_proof():
    document = dossier_document(PAGES["never_seen"], WHERE)

    assert (document["seen"], document["machines"]) == (False, [])
    assert document["scopes"][1] == {
        "scope": "aws/us-east-1",
        "whole": 1_440,
        "first_whole_at": "2026-01-09T12:00:00Z",
        "last_whole_at": "2026-01-10T12:00:00Z",
        "failed": 2,
        "last_failed_at": None,
    }


def test_csv_has_one_line_for_every_condition():
    rows = list(csv.DictReader(io.StringIO(dossier_sheet(PAGES["young"], WHERE))))

    assert list(rows[0]) == list(COLUMNS)
    unmet = {each["condition"]: each for each in rows if each["met"] == "False"}
    assert set(unmet) == {"launch_grace", "unconfirmed"}
    assert unmet["launch_grace"]["settles_at"] == "2026-01-10T12:11:00Z"


@pytest.mark.parametrize("width", [40, 80])
def test_text_of_strangers_is_spelled_out(width: int):
    evil = ours(worker=EVIL, managed_by=EVIL, instance_type=EVIL, account=EVIL, registry_id=EVIL)
    told = dossier(look([evil], [row(EVIL, ID)]), trouble=EVIL, asked=EVIL)

    page = drawn(told, width=width)

    assert page.replace("\n", "").isprintable()
    assert "\nKEPT: tracked\\" not in page


def test_of_a_long_past_the_newest_is_shown():
    long = tuple(event(-number, "keep/tracked") for number in range(30, 0, -1))
    account = PAGES["orphan"].accounts[0]
    told = replace(PAGES["orphan"], accounts=(replace(account, trace=replace(account.trace, events=long)),))

    page = drawn(told)

    assert "WHAT HAPPENED (30), the last 20" in page
    assert page.count("keep/tracked") == 20


def test_one_id_in_two_places_is_told_twice():
    first = PAGES["young"].accounts[0]
    elsewhere = InstanceRef("aws", "eu-west-1", ID)
    other = Account(explanation=explain(look(), policy(), elsewhere), trace=Trace(ref=elsewhere))

    page = drawn(replace(PAGES["young"], accounts=(first, other)))

    assert f"\n{REF}\n" in f"\n{page}"
    assert f"\n\n{elsewhere}\n" in page


# ---------------------------------------------------------------- as it is typed


@pytest.fixture
def fleet(place, monkeypatch):
    """Return a place whose ledger has one look: a tracked machine, a young one, and one that is protected."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    place.make_registry(rows=1)
    now = datetime.now(UTC)
    snapshot = SqliteRegistry(place.registry, timedelta(seconds=5)).snapshot()
    machines = (
        machine("i-0", worker="w-0"),
        machine("i-7", worker="w-7", age=None, launched_at=now - 5 * MINUTE),
        machine("i-8", worker="w-8", protect=True),
    )
    wishes = policy(scopes=frozenset({EAST}), confirm_passes=3)
    seen = look(machines, now=now - 40 * SECOND, coverage=(whole(EAST),), registry=snapshot)
    keep(place, seen, wishes)
    return place


def keep(place, seen: Observation, wishes: ReapPolicy, number: int = 1) -> None:
    report = reports.report(
        seen, wishes, pass_id=f"{number:032x}", started_at=seen.now, finished_at=seen.now + 2 * SECOND
    )
    learned = learn(seen, wishes)
    with place.open() as ledger:
        if learned is not None:
            ledger.learn(learned, seen.now)
        ledger.record(record_of(report, {}))


def asked(place, *words: object):
    return run("explain", *words, "--config", place.config)


def document(place, *words: object):
    return json.loads(asked(place, *words, "--format", "json").stdout)


def in_the_way(place, name: str) -> set[str]:
    (told,) = document(place, name)["machines"]
    return {each["condition"] for each in told["conditions"] if each["met"] is False}


def test_a_machine_is_explained_from_the_record_without_asking_a_cloud(fleet):
    result = asked(fleet, "i-7")

    assert result.exit_code == 0
    assert "KEPT: launch_grace, unconfirmed" in result.stdout
    assert "from the\n            record (--look asks the clouds now)" in result.stdout
    assert document(fleet, "i-7")["judged_on"]["source"] == "record"


@pytest.mark.parametrize("name", ["w-8", "aws/us-east-1/i-8"])
def test_a_machine_goes_by_its_worker_and_by_its_place(fleet, name):
    (told,) = document(fleet, name)["machines"]

    assert told["instance_id"] == "i-8"
    assert told["verdict"]["reason"] == "protect_tag"


def test_the_registry_is_read_at_this_moment(fleet):
    assert "tracked" in in_the_way(fleet, "i-0")

    assert run("registry", "remove", "w-0", "--path", fleet.registry).exit_code == 0

    assert "tracked" not in in_the_way(fleet, "i-0")
    assert "row_vanished" in in_the_way(fleet, "i-0")


def test_the_brake_of_this_moment_is_in_the_way(fleet):
    run("hold", "--reason", "deploy", "--config", fleet.config)

    assert "reap_hold" in in_the_way(fleet, "i-7")


def test_a_later_look_that_failed_is_in_the_way(fleet):
    torn = look(now=datetime.now(UTC) - SECOND, coverage=(broken(EAST),), registry=None)
    keep(fleet, torn, policy(scopes=frozenset({EAST})), number=2)

    assert "listing_incomplete" in in_the_way(fleet, "i-7")
    assert "the pass at " in asked(fleet, "i-7").stdout


def test_a_name_that_was_never_seen_is_answered_with_the_proof_and_1(fleet):
    result = asked(fleet, "i-nowhere")

    assert result.exit_code == 1
    assert "i-nowhere: NEVER SEEN" in result.stdout
    assert "aws/us-east-1             1" in result.stdout


def test_a_machine_that_only_a_row_names_was_never_seen_and_its_row_is_told(fleet):
    run("registry", "add", "w-5", "--provider", "aws", "--region", "us-east-1", "--path", fleet.registry)
    run("registry", "set-instance", "w-5", "i-5", "--path", fleet.registry)

    result = asked(fleet, "w-5")

    assert result.exit_code == 1
    assert "row         w-5, running: aws/us-east-1/i-5, never beat" in result.stdout


def test_the_proof_can_be_bounded(fleet):
    assert document(fleet, "i-nowhere", "--since", "1s")["scopes"] == []
    assert document(fleet, "i-nowhere", "--since", "1h")["scopes"][0]["whole"] == 1


def test_asking_writes_nothing(fleet):
    before = {each: each.read_bytes() for each in fleet.folder.rglob("*") if each.is_file()}

    asked(fleet, "i-7")
    asked(fleet, "i-nowhere")

    assert {each: each.read_bytes() for each in fleet.folder.rglob("*") if each.is_file()} == before


def test_without_a_ledger_it_says_so_and_makes_none(place, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    result = asked(place, "i-7")

    assert result.exit_code == 1
    assert "there is no ledger" in result.stderr
    assert not place.ledger.parent.exists()


def test_a_registry_that_cannot_be_read_is_told_and_nothing_is_judged(fleet):
    fleet.registry.unlink()

    result = asked(fleet, "i-7")

    assert result.exit_code == 0
    assert "KEPT: registry_unusable" in result.stdout
    assert "row         not known: the registry" in result.stdout
    assert "NOT JUDGED (17)" in result.stdout


def test_csv_is_written(fleet):
    rows = list(csv.DictReader(io.StringIO(asked(fleet, "i-8", "--format", "csv").stdout)))

    assert [each["condition"] for each in rows if each["met"] == "False"] == ["protect_tag", "unconfirmed"]
