"""The breaker and the brake."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reaperd.cli import operators
from reaperd.core.history import Look
from reaperd.core.memory import Learned
from reaperd.core.model import RefusalReason, RegistryPin, Sighting
from reaperd.ledger.connection import BUSY_TIMEOUT_SECONDS
from tests.support.worlds import SCOPES, look, machine, policy, whole
from tests.unit.cli import reports
from tests.unit.cli.running import person, run

NOT_ON = "THE BRAKE IS NOT ON; stop the service"


@pytest.fixture
def plan(place):
    report = reports.refused(RefusalReason.BREAKER_OPEN)
    place.make_ledger(report)
    return report.digest


def approvals(place):
    with place.open() as ledger:
        return ledger.recall(datetime.now(UTC)).approvals


def brake(place):
    with place.open() as ledger:
        return ledger.brake()


# ---------------------------------------------------------------- approve


def test_approve_lets_exactly_the_machines_of_the_plan_through_for_an_hour(place, plan, me):
    result = run("approve", plan, "--config", place.config, "--yes", "--reason", "fleet B ended")

    assert result.exit_code == 0
    (approval,) = approvals(place)
    assert {ref.instance_id for ref in approval.refs} == {"i-0bb22222222222222", "i-0cc33333333333333"}
    assert timedelta(minutes=59) < approval.expires_at - datetime.now(UTC) <= timedelta(hours=1)
    assert place.acts() == [("approve", me, "fleet B ended")]
    assert f"Approved by {me} for 1 hour, until" in result.stdout
    assert "exactly these 2 machines." in result.stdout


def test_approve_shows_the_machines_before_it_asks(place, plan):
    result = run("approve", plan, "--config", place.config, stdin=person("n"))

    assert result.exit_code == 1
    assert f"plan {plan}\n" in result.stdout
    assert "its pass    dry-run, refused: breaker_open" in result.stdout
    (line,) = (line.split() for line in result.stdout.splitlines() if "i-0bb22222222222222" in line)
    assert line == ["i-0bb22222222222222", "aws/us-east-1", "-", "2d", "2h", "-", "to", "go"]
    assert "    unregistered: no row; running, worker\n    transcode-" in result.stdout
    assert "[prices] in the configuration gives one to" in result.stdout
    assert "i-0aa11111111111111" not in result.stdout
    assert "Let 2 machines through the breaker for one hour?" in result.output
    assert "nothing was changed" in result.stderr
    assert approvals(place) == ()


def test_approve_shows_what_is_configured_by_now_where_nothing_was_recorded(place):
    report = reports.report(look([machine("i-1", instance_type="m5.large")]), policy())
    place.make_ledger(report)
    place.configure(more='[prices]\n"aws/m5.large" = 0.1')

    result = run("approve", report.digest, "--config", place.config, "--yes")

    assert "1 machine to go, $0.10 an hour\n" in result.stdout


def seen_since(place, report, **verdicts):
    """Let a complete look, a minute after the pass, list some of its machines with these verdicts."""
    at = report.started_at + timedelta(minutes=1)
    machines = {verdict.ref.instance_id: verdict.instance for verdict in report.verdicts}
    instances = tuple(machines[name.replace("_", "-")] for name in verdicts)
    sightings = {
        instance.ref: Sighting(first_seen_at=at, last_seen_at=at, verdict=text)
        for instance, text in zip(instances, verdicts.values(), strict=True)
    }
    lesson = Learned(
        sightings=sightings,
        forgotten=frozenset(),
        confirmed_gone=(),
        pin=RegistryPin(registry_id="r-1", epoch=1, nonce=None),
        listed=frozenset(),
        scopes=frozenset(SCOPES),
        look=Look(at=at, instances=instances, coverage=tuple(map(whole, SCOPES))),
    )
    with place.open() as ledger:
        ledger.learn(lesson, at)


def test_approve_lets_only_those_through_that_are_still_to_go(place):
    report = reports.report(look([machine(name) for name in ("i-1", "i-2", "i-3")]), policy(), outcomes=())
    place.make_ledger(report)
    seen_since(place, report, i_1="keep/tracked", i_2="terminate/unregistered")

    result = run("approve", report.digest, "--config", place.config, stdin=person("y"))

    assert result.exit_code == 0
    (approval,) = approvals(place)
    assert {ref.instance_id for ref in approval.refs} == {"i-2"}
    assert "Let 1 machine through the breaker for one hour?" in result.output
    assert "exactly this machine" in result.stdout
    assert "NOW tracked, as of 2026-01-10 12:01:00 UTC" in result.stdout
    assert "NOW not listed: it is gone, or it lost our tag" in result.stdout


def test_approve_of_a_plan_of_which_nothing_is_left_is_1_and_records_nothing(place):
    report = reports.report(look([machine("i-1"), machine("i-2")]), policy(), outcomes=())
    place.make_ledger(report)
    seen_since(place, report, i_1="keep/tracked")

    result = run("approve", report.digest, "--config", place.config, "--yes")

    assert result.exit_code == 1
    assert "NOW tracked" in result.stdout
    told = " ".join(result.stderr.split())
    assert "nothing was approved: no machine of this plan is still to go (not listed 1, tracked 1)." in told
    assert "newest recorded plan" not in told
    assert (approvals(place), place.acts()) == ((), [])


def test_approve_of_an_old_plan_names_the_newest(place):
    report = reports.report(look([machine("i-1")]), policy(), outcomes=())
    newer = replace(reports.report(look([machine("i-2")]), policy(), outcomes=()), pass_id="p-newer")
    place.make_ledger(report, newer)
    seen_since(place, newer)

    result = run("approve", report.digest, "--config", place.config, "--yes")

    assert result.exit_code == 1
    assert f"The newest recorded plan is {newer.digest}" in " ".join(result.stderr.split())
    assert approvals(place) == ()


def test_approve_believes_a_person_who_says_yes(place, plan):
    result = run("approve", plan, "--config", place.config, stdin=person("y"))

    assert result.exit_code == 0
    assert len(approvals(place)) == 1


def test_approve_asks_nobody_where_nobody_is(place, plan):
    result = run("approve", plan, "--config", place.config)

    assert result.exit_code == 2
    assert "add --yes" in result.stderr
    assert approvals(place) == ()


def test_approve_knows_recorded_plans_only_and_names_the_newest(place, plan):
    result = run("approve", "sha256:0", "--config", place.config, "--yes")

    assert result.exit_code == 1
    assert "no recorded pass had the plan sha256:0" in result.stderr
    assert plan in result.stderr
    assert approvals(place) == ()


def test_approve_says_how_a_plan_is_recorded_when_there_is_none(place):
    place.make_ledger()

    result = run("approve", "sha256:0", "--config", place.config, "--yes")

    assert result.exit_code == 1
    assert "`reaperd once --dry-run` records one" in result.stderr


def test_approve_says_what_will_keep_the_plan_from_being_carried_out(place, plan):
    run("hold", "--reason", "moving", "--config", place.config)

    result = run("approve", plan, "--config", place.config, "--yes")

    assert 'mode is "dry-run"' in result.stderr
    assert "the brake is on" in result.stderr


def test_approve_shows_what_strangers_wrote_harmlessly(place):
    report = reports.report(look([machine("i-\x1b[2J", worker="[red]w\n")]), policy())
    place.make_ledger(replace(report, pass_id="p-evil"))

    result = run("approve", report.digest, "--config", place.config, "--yes")

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert r"i-\x1b[2J" in result.stdout
    assert r"[red]w\n" in result.stdout


@pytest.mark.parametrize("words", [("approve", "sha256:0", "--yes"), ("resume",)])
def test_without_a_ledger_nothing_is_made_and_it_is_said(place, words):
    result = run(*words, "--config", place.config)

    assert result.exit_code == 1
    assert "there is no ledger" in result.stderr
    assert not place.ledger.parent.exists()


@pytest.mark.parametrize("words", [("approve", "sha256:0", "--yes"), ("resume",), ("hold", "--reason", "x")])
def test_the_ledger_of_another_deployment_is_left_alone(place, words):
    place.make_ledger()
    place.configure(deployment="staging-b")

    result = run(*words, "--config", place.config)

    assert result.exit_code == 1
    assert "belongs to deployment 'prod-a'" in result.stderr
    assert place.acts() == []


@pytest.mark.parametrize("words", [("approve", "sha256:0"), ("resume",), ("hold", "--reason", "x")])
def test_a_bad_configuration_is_78(place, words):
    result = run(*words, "--config", place.folder / "none.toml")

    assert result.exit_code == 78
    assert "there is no such file" in result.stderr


# ---------------------------------------------------------------- hold and resume


def test_hold_puts_the_brake_on_and_makes_the_ledger_if_need_be(place, me):
    result = run("hold", "--reason", "the registry moves", "--config", place.config)

    assert result.exit_code == 0
    assert "The brake is on. Nothing is terminated until `reaperd resume`." in result.stdout
    assert (brake(place).by, brake(place).reason) == (me, "the registry moves")
    assert "A running daemon uses another: check state_dir" in result.stderr.replace("\n", " ")
    assert NOT_ON not in result.stderr


def test_hold_keeps_the_first_reason_and_tells_it(place, me):
    run("hold", "--reason", "first", "--config", place.config)

    result = run("hold", "--reason", "second", "--config", place.config)

    assert result.exit_code == 0
    assert f"It was on already: {me} put it on at" in result.stdout
    assert "first" in result.stdout
    assert result.stderr == ""
    assert brake(place).reason == "first"


@contextmanager
def kept(path, seconds):
    """Keep the ledger to oneself for a while."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        end = threading.Timer(seconds, other.execute, ["ROLLBACK"])
        end.start()
        yield
        end.join()


@pytest.mark.slow
def test_hold_waits_for_a_look_that_keeps_the_ledger_for_longer_than_any_other_writer_would(place):
    place.make_ledger()

    with kept(place.ledger, BUSY_TIMEOUT_SECONDS + 2):
        result = run("hold", "--reason", "now", "--config", place.config)

    assert result.exit_code == 0
    assert "The brake is on." in result.stdout
    assert result.stderr == "reaperd: somebody else writes the ledger; trying for up to 20 s\n"


def test_hold_says_that_it_is_not_on_when_nobody_lets_go_of_the_ledger(place, monkeypatch):
    place.make_ledger()
    monkeypatch.setattr(operators, "PATIENCE_SECONDS", 0.3)

    with kept(place.ledger, 1.5):
        result = run("hold", "--reason", "now", "--config", place.config)

    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == NOT_ON
    assert "database is locked" in result.stderr
    assert brake(place) is None


@pytest.mark.parametrize("reason", ["", "  "])
def test_hold_with_a_blank_reason_is_not_on(place, reason):
    result = run("hold", "--reason", reason, "--config", place.config)

    assert result.exit_code == 2
    assert NOT_ON in result.stderr
    assert not place.ledger.exists()


def test_hold_that_cannot_write_says_so_in_capitals(place):
    place.ledger.parent.write_text("a file where the folder belongs")

    result = run("hold", "--reason", "x", "--config", place.config)

    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == NOT_ON
    assert result.stdout == ""


def test_hold_whose_place_is_taken_by_a_folder_says_so(place):
    place.ledger.mkdir(parents=True)

    assert run("hold", "--reason", "x", "--config", place.config).stderr.splitlines()[-1] == NOT_ON


@pytest.mark.parametrize("garbage", [b"", b"not a database, whatever it is called, and long enough" * 20])
def test_hold_on_a_file_that_is_no_ledger_is_on_or_says_that_it_is_not(place, garbage):
    place.ledger.parent.mkdir()
    place.ledger.write_bytes(garbage)

    result = run("hold", "--reason", "x", "--config", place.config)

    assert (result.exit_code == 0) == (NOT_ON not in result.stderr)
    if result.exit_code == 0:
        assert brake(place) is not None


def test_hold_with_a_bad_configuration_is_not_on(place):
    place.config.write_text("mode = 3")

    result = run("hold", "--reason", "x", "--config", place.config)

    assert result.exit_code == 78
    assert result.stderr.splitlines()[-1] == NOT_ON


def test_hold_without_a_reason_is_not_on(place):
    result = run("hold", "--config", place.config)

    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == NOT_ON
    assert not place.ledger.exists()


def test_resume_takes_the_brake_off_and_tells_whose_it_was(place, me):
    run("hold", "--reason", "moving", "--config", place.config)

    result = run("resume", "--reason", "moved", "--config", place.config)

    assert result.exit_code == 0
    assert f"The brake is off. {me} had put it on at" in result.stdout
    assert brake(place) is None
    assert place.acts() == [("hold", me, "moving"), ("resume", me, "moved")]


def test_resume_without_a_brake_says_so(place):
    place.make_ledger()

    result = run("resume", "--config", place.config)

    assert (result.exit_code, result.stdout) == (0, "The brake was not on.\n")


def test_whoever_called_sudo_is_named(place, monkeypatch):
    monkeypatch.setenv("SUDO_USER", "ada")

    run("hold", "--reason", "x", "--config", place.config)

    assert brake(place).by.startswith("ada@")


# ---------------------------------------------------------------- a configuration that is wrong elsewhere


def test_the_brake_does_not_depend_on_a_key_that_has_nothing_to_do_with_it(place):
    place.make_ledger()
    place.configure(more="[reconcile]\nconfirm_pases = 3")

    result = run("hold", "--config", str(place.config), "--reason", "an incident")

    assert result.exit_code == 0
    assert "The brake is on" in result.stdout
    assert "confirm_pases" in result.stderr
    assert place.acts()[-1][0] == "hold"


def test_without_a_ledger_a_wrong_configuration_puts_no_brake_on(place):
    place.configure(more="[reconcile]\nconfirm_pases = 3")

    result = run("hold", "--config", str(place.config), "--reason", "an incident")

    assert result.exit_code == 78
    assert "THE BRAKE IS NOT ON" in result.stderr
    assert not place.ledger.exists()
