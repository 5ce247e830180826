"""What is said of the host: its ledger, its registry, its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from reaperd.core.examined_host import (
    MUCH_TOO_FULL,
    TOO_FULL,
    Ground,
    Holder,
    HttpFacts,
    LedgerFacts,
    RegistryFacts,
    judge_host,
    judge_http,
    judge_ledger,
    judge_registry,
    judge_settings,
    size,
)
from reaperd.core.findings import Finding, Grade, Subject
from reaperd.core.model import Brake, RefusalReason
from reaperd.errors import HttpError
from tests.support.worlds import NOW, identity, registry, row


def ground(**other: Any) -> Ground:
    facts: dict[str, Any] = {
        "folder": "/var/lib/reaperd",
        "is_made": True,
        "owner": "reaperd",
        "mode": 0o700,
        "free_bytes": 20 * 10**9,
        "filesystem": "ext4",
        "is_network": False,
        "is_volatile": False,
    }
    return Ground(**(facts | other))


def facts(**other: Any) -> LedgerFacts:
    known: dict[str, Any] = {
        "path": "/var/lib/reaperd/ledger.db",
        "user": "reaperd",
        "ground": ground(),
        "exists": True,
        "schema": 1,
        "size_bytes": 110_592,
    }
    return LedgerFacts(**(known | other))


def of_the_ledger(**other: Any) -> list[Finding]:
    return [finding for finding in judge_ledger(facts(**other)) if finding.subject is Subject.LEDGER]


def of_the_ground(**other: Any) -> list[Finding]:
    return of_the_ledger(ground=ground(**other))


def last(findings: list[Finding]) -> Finding:
    return findings[-1]


# ---------------------------------------------------------------- the ledger


def test_a_good_ledger_is_told_with_its_place():
    (finding,) = of_the_ledger()

    assert finding.grade is Grade.OK
    assert finding.text == "schema 1, 110.6 kB; /var/lib/reaperd is reaperd's, mode 700, on ext4, 20.0 GB free"


def test_a_ledger_that_is_not_there_is_made_by_the_first_pass():
    (finding,) = of_the_ledger(exists=False, schema=None)

    assert (finding.grade, finding.text.startswith("not made yet; ")) == (Grade.OK, True)


def test_a_network_file_system_fails():
    (finding,) = of_the_ground(filesystem="nfs4", is_network=True)

    assert (finding.grade, finding.reason) == (Grade.FAILURE, RefusalReason.LEDGER_UNUSABLE)
    assert "nfs4" in finding.text


def test_a_volatile_file_system_is_a_warning_beside_the_rest():
    warned, fine = of_the_ground(filesystem="tmpfs", is_volatile=True)

    assert (warned.grade, fine.grade) == (Grade.WARNING, Grade.OK)


@pytest.mark.parametrize(
    ("free", "grade"),
    [
        (TOO_FULL, Grade.OK),
        (TOO_FULL - 1, Grade.WARNING),
        (MUCH_TOO_FULL, Grade.WARNING),
        (MUCH_TOO_FULL - 1, Grade.FAILURE),
        (0, Grade.FAILURE),
    ],
)
def test_a_disk_that_is_nearly_full_warns_and_then_fails(free: int, grade: Grade):
    assert of_the_ground(free_bytes=free)[0].grade is grade


@pytest.mark.parametrize(
    ("mode", "grade"),
    [(0o700, Grade.OK), (0o755, Grade.OK), (0o770, Grade.WARNING), (0o777, Grade.FAILURE), (0o1777, Grade.FAILURE)],
)
def test_a_folder_that_others_may_write_lets_them_take_the_brake_off(mode: int, grade: Grade):
    finding = of_the_ground(mode=mode)[0]

    assert finding.grade is grade
    assert ("take the brake off" in finding.text) is (grade is not Grade.OK)


def test_a_folder_above_may_be_anybodys_because_the_ledgers_own_will_not():
    assert [finding.grade for finding in of_the_ground(mode=0o1777, is_made=False)] == [Grade.OK]


def test_what_this_user_may_not_write_fails():
    (finding,) = of_the_ledger(unwritable=("/var/lib/reaperd", "/var/lib/reaperd/ledger.db"))

    assert (finding.grade, finding.reason) == (Grade.FAILURE, RefusalReason.LEDGER_UNUSABLE)
    assert finding.text == "the user reaperd may not write /var/lib/reaperd, /var/lib/reaperd/ledger.db"
    assert finding.commands == ("chown -R USER /var/lib/reaperd",)


def test_a_folder_that_this_user_may_not_make_is_to_be_made_for_it():
    (finding,) = of_the_ledger(exists=False, schema=None, unwritable=("/var",), ground=ground(is_made=False))

    assert finding.commands == ("install -d -m 700 -o USER /var/lib/reaperd",)


def test_asking_as_another_user_than_the_owner_is_a_warning():
    warned, fine = of_the_ledger(user="root")

    assert (warned.grade, fine.grade) == (Grade.WARNING, Grade.OK)
    assert warned.commands == ("sudo -u reaperd reaperd doctor{config}",)


def test_a_user_that_exists_only_while_its_service_runs_is_asked_through_the_service():
    warned, _ = of_the_ledger(user="root", ground=ground(folder="/var/lib/private/reaperd"))

    assert warned.commands[0] == "systemctl start reaperd-doctor"
    assert not [command for command in warned.commands if "sudo" in command]


def test_a_folder_of_root_above_a_ledger_that_is_not_made_says_nothing_of_users():
    (finding,) = of_the_ledger(exists=False, schema=None, ground=ground(owner="root"))

    assert finding.grade is Grade.OK


def test_a_ledger_that_cannot_be_used_fails_and_tells_nothing_else_of_it():
    (finding,) = judge_ledger(facts(trouble="its schema 9 is newer", remedy="upgrade", schema=None))

    assert (finding.grade, finding.text, finding.remedy) == (Grade.FAILURE, "its schema 9 is newer", "upgrade")
    assert finding.reason is RefusalReason.LEDGER_UNUSABLE


@pytest.mark.parametrize(("pid", "command"), [(7, "ps -fp 7"), (0, "fuser -v /var/lib/reaperd/ledger.db")])
def test_a_write_lock_that_is_not_let_go_of_fails(pid: int, command: str):
    (finding,) = of_the_ledger(locked_by=pid, path="/var/lib/reaperd/ledger.db")

    assert (finding.grade, finding.reason) == (Grade.FAILURE, RefusalReason.LEDGER_UNUSABLE)
    assert finding.commands == (command,)


def test_a_place_that_could_not_be_seen_is_not_spoken_of():
    (finding,) = of_the_ledger(ground=None)

    assert finding.text == "schema 1, 110.6 kB"


def test_a_path_with_blanks_can_be_copied():
    (finding,) = of_the_ledger(path="/srv/a b/ledger.db", unwritable=("/srv/a b",))

    assert finding.commands == ("chown -R USER '/srv/a b'",)


@pytest.mark.parametrize(("reason", "told"), [("drill", "drill"), ("", "no reason given")])
def test_the_brake_is_a_warning_with_its_reason(reason: str, told: str):
    findings = judge_ledger(facts(brake=Brake(since=NOW, by="ann@fleet", reason=reason)))

    (finding,) = [each for each in findings if each.subject is Subject.BRAKE]
    assert finding.grade is Grade.WARNING
    assert finding.text == f"on since 2026-01-10 12:00:00 UTC, by ann@fleet: {told}"
    assert finding.reason is RefusalReason.REAP_HOLD


@pytest.mark.parametrize(
    ("holder", "grade", "told"),
    [
        (None, Grade.OK, "does not run"),
        (Holder(pid=12, host="fleet", dead=False), Grade.OK, "process 12 on fleet holds the lease and acts"),
        (Holder(pid=12, host="fleet", dead=True), Grade.WARNING, "is dead"),
    ],
    ids=["nobody", "alive", "dead"],
)
def test_who_holds_the_lease_is_told(holder: Holder | None, grade: Grade, told: str):
    finding = last(list(judge_ledger(facts(holder=holder))))

    assert (finding.subject, finding.grade) == (Subject.DAEMON, grade)
    assert told in finding.text


# ---------------------------------------------------------------- the registry


def known(**other: Any) -> RegistryFacts:
    given: dict[str, Any] = {"path": "/var/lib/fleet/registry.db", "snapshot": registry(row()), "is_known": True}
    return RegistryFacts(**(given | other))


def test_a_good_registry_is_told_with_its_rows():
    (finding,) = judge_registry(known(), [])

    assert finding.grade is Grade.OK
    assert finding.text == "r-1 of deployment prod-a, epoch 7: 1 row, 1 live, last written 2026-01-10 11:59:59 UTC"


def test_a_registry_that_nobody_knows_yet_is_told_as_that():
    (finding,) = judge_registry(known(is_known=False), [])

    assert finding.text.endswith("; not known here yet: the first pass takes it")


def test_a_time_that_cannot_be_read_is_unknown():
    (finding,) = judge_registry(known(snapshot=registry(identity=identity(updated_at=None))), [])

    assert "last written unknown" in finding.text


def test_a_registry_that_cannot_be_used_fails_with_its_own_remedy():
    (finding,) = judge_registry(known(snapshot=None, trouble="there is no such file", remedy="Point it"), [])

    assert (finding.grade, finding.text, finding.remedy) == (Grade.FAILURE, "there is no such file", "Point it")
    assert finding.reason is RefusalReason.REGISTRY_UNUSABLE


def test_what_a_pass_would_hold_against_it_fails_and_leaves_no_good_word():
    standing = [(RefusalReason.REGISTRY_IDENTITY, "another"), (RefusalReason.REGISTRY_MISMATCH, "strangers")]

    findings = list(judge_registry(known(), standing))

    assert [(each.grade, each.reason, each.text) for each in findings] == [
        (Grade.FAILURE, reason, text) for reason, text in standing
    ]


def test_a_registry_on_a_network_file_system_is_a_warning():
    warned, fine = judge_registry(known(network="nfs4"), [])

    assert (warned.grade, fine.grade) == (Grade.WARNING, Grade.OK)
    assert "nfs4" in warned.text


# ---------------------------------------------------------------- the configuration and the host


def test_each_piece_of_advice_is_a_warning():
    right, advice = judge_settings("/etc/reaperd/reaperd.toml", "enforce", ["reconcile.interval: short"])

    assert (right.grade, right.text) == (Grade.OK, "right, mode enforce")
    assert (advice.grade, advice.text) == (Grade.WARNING, "reconcile.interval: short")


@pytest.mark.parametrize(("own", "told"), [("i-1", "this is i-1, which"), (None, "not EC2")])
def test_the_own_machine_is_told_or_said_not_to_be_known(own: str | None, told: str):
    finding = judge_host(own)

    assert (finding.grade, finding.text.startswith(told)) == (Grade.OK, True)


@pytest.mark.parametrize(
    ("number", "shown"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_500_000, "1.5 MB"), (84_600_000_000, "84.6 GB")],
)
def test_a_size_is_shown_for_a_person(number: int, shown: str):
    assert size(number) == shown


# ---------------------------------------------------------------- the HTTP server

RUNNING = Holder(pid=7, host="a", dead=False)


@pytest.mark.parametrize(
    ("facts", "running", "told"),
    [
        (HttpFacts(listen=""), None, "switched off: no probe and no metric is answered"),
        (HttpFacts(listen="[::1]:9745"), None, "[::1]:9745 can be had"),
        (
            HttpFacts(listen="127.0.0.1:9745", is_taken=True),
            RUNNING,
            "127.0.0.1:9745 is taken, by process 7 as it seems, which holds the lease",
        ),
    ],
)
def test_an_address_that_can_be_had_or_that_a_running_reaperd_has_is_fine(
    facts: HttpFacts, running: Holder | None, told: str
):
    (finding,) = judge_http(facts, running)

    assert (finding.subject, finding.grade, finding.text) == (Subject.HTTP, Grade.OK, told)


def test_an_address_that_somebody_else_has_fails():
    (finding,) = judge_http(HttpFacts(listen="127.0.0.1:9745", is_taken=True), None)

    assert (finding.grade, finding.commands) == (Grade.FAILURE, ("ss -ltnp 'sport = :9745'",))


def test_each_thing_that_keeps_the_server_from_its_start_fails_by_itself():
    troubles = (HttpError("/web.yml", "there is no such file", "Write it"), HttpError("http.listen a:1", "no", "Do"))

    findings = list(judge_http(HttpFacts(listen="a:1", troubles=troubles), None))

    assert [(each.grade, each.scope) for each in findings] == [
        (Grade.FAILURE, "/web.yml"),
        (Grade.FAILURE, "http.listen a:1"),
    ]
