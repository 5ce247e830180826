"""`explain`: what the clouds announced for a machine, as the last audit that heard it recorded it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from providers.events import ProviderEvent
from providers.model import InstanceRef
from reaperd.core.history import ToldAnnouncement
from reaperd.report.explain import dossier_document
from reaperd.report.trail import record_of, record_of_sweep
from tests.support.worlds import EAST, HOUR, MINUTE, NOW, SECOND, look, machine, policy, whole
from tests.unit.cli import reports
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import run
from tests.unit.cli.test_audit import swept
from tests.unit.cli.test_explain import PAGES, REF, WHERE, drawn

ENDS = ToldAnnouncement(ref=REF, code="marked-for-termination", ends=True, at=NOW + MINUTE)


def page(name: str, heard: ToldAnnouncement | None = ENDS):
    told = PAGES[name]
    account = told.accounts[0]
    at = None if heard is None else NOW - HOUR
    return replace(told, accounts=(replace(account, trace=replace(account.trace, announced=heard, announced_at=at)),))


def test_a_page_tells_what_is_announced_and_when_that_was_heard():
    assert_golden("explain_announced", drawn(page("young")))


def test_a_machine_that_is_gone_is_told_of_too():
    taken = replace(ENDS, code="instance-terminated-no-capacity")

    told = " ".join(drawn(page("absent", taken)).split())

    assert told.startswith(f"{REF} NOT THERE")
    assert "instance-terminated-no-capacity: the cloud ends it at about 2026-01-10 12:01 UTC" in told


def test_json_has_what_is_announced_or_nothing():
    (told,) = dossier_document(page("young"), WHERE)["machines"]
    (undated,) = dossier_document(page("young", replace(ENDS, at=None, ends=False)), WHERE)["machines"]
    (silent,) = dossier_document(page("young", None), WHERE)["machines"]

    assert told["announced"] == {
        "code": "marked-for-termination",
        "ends": True,
        "at": "2026-01-10T12:01:00Z",
        "heard_at": "2026-01-10T11:00:00Z",
    }
    assert (undated["announced"]["ends"], undated["announced"]["at"]) == (False, None)
    assert silent["announced"] is None


def test_nothing_is_judged_by_it():
    (told,) = dossier_document(page("orphan"), WHERE)["machines"]
    (silent,) = dossier_document(page("orphan", None), WHERE)["machines"]

    assert told["would_terminate"] == silent["would_terminate"]
    assert told["conditions"] == silent["conditions"]


def test_what_an_audit_heard_is_found_in_the_record(place, monkeypatch):
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    place.make_registry(rows=0)
    now = datetime.now(UTC)
    seen = look((machine("i-7", worker="w-7"),), now=now - 40 * SECOND, coverage=(whole(EAST),))
    wishes = policy(scopes=frozenset({EAST}))
    report = reports.report(seen, wishes, started_at=seen.now, finished_at=seen.now + 2 * SECOND)
    ref = InstanceRef("aws", "us-east-1", "i-7")
    going = ProviderEvent(
        ref=ref, fault_code="marked-for-termination", marked_for_termination=True, termination_time=now
    )
    sweep = replace(swept(events=(going,)), started_at=now - timedelta(minutes=5), finished_at=now)
    with place.open() as ledger:
        ledger.record(record_of(report, {}))
        ledger.record(record_of_sweep(sweep))

    told = run("explain", "i-7", "--config", place.config, "--format", "json")

    (of_it,) = json.loads(told.stdout)["machines"]
    assert of_it["announced"]["code"] == "marked-for-termination"
    assert ("announced", "marked-for-termination") in [(each["kind"], each["name"]) for each in of_it["events"]]
    assert "marked-for-termination: the cloud" in " ".join(
        run("explain", "i-7", "--config", place.config).stdout.split()
    )
