"""What a person reads when the registry is wrong: by `once`, and by the command that `once` names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from reaperd.cli import main
from registry.model import Worker, WorkerState
from registry.sqlite.admin import create
from registry.sqlite.writer import SqliteRegistryWriter
from tests.support.ec2.cloud import FaultyEc2
from tests.support.site import tree
from tests.unit.cli.golden import assert_golden
from tests.unit.registry.files import connected, rewrite, run

WIDE = 80
ROOT = Path(__file__).parents[3]
SHOWN = "/srv/examples-fleet-1"
"""As long as the real name, so that lines are folded alike."""

CONFIG = """\
deployment = "prod-a"
mode = "enforce"
state_dir = "{folder}/state"
[registry]
path = "{folder}/fleet/registry.db"
busy_timeout = "1s"
{more}
[reconcile]
confirm_passes = 1
[[providers]]
name = "aws"
type = "aws"
account = "111111111111"
regions = ["us-east-1"]
"""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A host with a registry that is about to go wrong."""

    folder: Path
    cloud: FaultyEc2

    @property
    def registry(self) -> Path:
        return self.folder / "fleet" / "registry.db"

    def configure(self, more: str = "") -> None:
        (self.folder / "reaperd.toml").write_text(CONFIG.format(folder=self.folder, more=more), encoding="utf-8")

    def add(self, number: int) -> None:
        self.writer().add(
            Worker(
                worker_id=f"w-{number}",
                provider="aws",
                region="us-east-1",
                instance_id=f"i-{number}",
                state=WorkerState.RUNNING,
            )
        )

    def writer(self) -> SqliteRegistryWriter:
        return SqliteRegistryWriter(self.registry, "prod-a")

    def commands(self) -> tuple[tuple[str, ...], ...]:
        config = ("--config", str(self.folder / "reaperd.toml"))
        return (("once", *config), ("registry", "verify", *config))

    def learn(self) -> None:
        """Run a pass that comes to know the registry."""
        assert CliRunner().invoke(main, self.commands()[0]).exit_code == 0


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """Give a fleet of two tracked machines, in a folder whose name is as long as SHOWN."""
    with tempfile.TemporaryDirectory(prefix="reaperd-", dir="/tmp") as name, FaultyEc2() as cloud:
        assert len(name) == len(SHOWN)
        made = Fleet(Path(name), cloud)
        for variable in [each for each in os.environ if each.startswith(("REAPERD_", "COLUMNS"))]:
            monkeypatch.delenv(variable)
        for variable, value in cloud.environment().items():
            monkeypatch.setenv(variable, value)
        made.configure()
        made.registry.parent.mkdir()
        create(made.registry, "prod-a", registry_id="r-1")
        for number in (1, 2):
            cloud.add_instance(instance_id=f"i-{number}", worker=f"w-{number}", owner="prod-a")
            made.add(number)
        yield made


# ---------------------------------------------------------------- the ways to be wrong


def missing(fleet: Fleet) -> None:
    fleet.registry.unlink()


def dangling_link(fleet: Fleet) -> None:
    fleet.registry.unlink()
    fleet.registry.symlink_to(fleet.folder / "fleet" / "moved.db")


def link_to_itself(fleet: Fleet) -> None:
    fleet.registry.unlink()
    fleet.registry.symlink_to(fleet.registry)


def folder(fleet: Fleet) -> None:
    fleet.registry.unlink()
    fleet.registry.mkdir()


def zero_bytes(fleet: Fleet) -> None:
    fleet.registry.write_bytes(b"")


def garbage(fleet: Fleet) -> None:
    fleet.registry.write_bytes(b"worker_id,instance_id\nw-1,i-1\n" * 200)


def truncated_header(fleet: Fleet) -> None:
    fleet.registry.write_bytes(fleet.registry.read_bytes()[:60])


def cut_off(fleet: Fleet) -> None:
    fleet.registry.write_bytes(fleet.registry.read_bytes()[:5000])


def sql(*statements: str) -> Callable[[Fleet], None]:
    return lambda fleet: run(fleet.registry, *statements)


def other_program(fleet: Fleet) -> None:
    fleet.registry.unlink()
    run(fleet.registry, "CREATE TABLE invoices (number INTEGER)")


def two_meta_rows(fleet: Fleet) -> None:
    rewrite(fleet.registry, "meta", "CHECK (id = 1)", "CHECK (id > 0)")
    run(fleet.registry, "INSERT INTO meta SELECT 2, 'r-2', deployment, schema_version, epoch, updated_at FROM meta")


def another(deployment: str, registry_id: str) -> Callable[[Fleet], None]:
    def replaced(fleet: Fleet) -> None:
        fleet.learn()
        fleet.registry.unlink()
        create(fleet.registry, deployment, registry_id=registry_id)

    return replaced


def older_copy(fleet: Fleet) -> None:
    shutil.copy(fleet.registry, fleet.folder / "copy.db")
    fleet.add(3)
    fleet.learn()
    shutil.copy(fleet.folder / "copy.db", fleet.registry)


def restored_and_moved_on(fleet: Fleet) -> None:
    older_copy(fleet)
    fleet.add(4)


def silent(fleet: Fleet) -> None:
    fleet.configure('max_silence = "1h"')
    run(fleet.registry, "UPDATE meta SET updated_at = '2026-01-10T02:30:00Z'")


def written_in_the_future(fleet: Fleet) -> None:
    fleet.configure('max_silence = "1h"')
    run(fleet.registry, "UPDATE meta SET updated_at = '2126-01-10T02:30:00Z'")


def two_names(fleet: Fleet) -> None:
    os.link(fleet.registry, fleet.folder / "other.db")


def bad_state(fleet: Fleet) -> None:
    run(
        fleet.registry,
        "PRAGMA ignore_check_constraints = ON",
        "UPDATE workers SET state = 'zombie' WHERE worker_id = 'w-1'",
    )


def blank_around_a_name(fleet: Fleet) -> None:
    run(fleet.registry, "UPDATE workers SET region = 'us-east-1 ' WHERE worker_id = 'w-1'")


def mismatch(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.cloud.remove(f"i-{number}")
    fleet.cloud.add_instance(instance_id="i-9", worker="w-9", owner="prod-a")
    fleet.add(3)


WRONG: dict[str, Callable[[Fleet], None]] = {
    "missing": missing,
    "dangling_link": dangling_link,
    "link_to_itself": link_to_itself,
    "folder": folder,
    "zero_bytes": zero_bytes,
    "garbage": garbage,
    "truncated_header": truncated_header,
    "cut_off": cut_off,
    "other_program": other_program,
    "no_workers_table": sql("DROP TABLE workers"),
    "no_meta_table": sql("DROP TABLE meta"),
    "no_meta_row": sql("DELETE FROM meta"),
    "two_meta_rows": two_meta_rows,
    "newer_schema": sql("UPDATE meta SET schema_version = 3"),
    "older_schema": sql("UPDATE meta SET schema_version = 0"),
    "trigger_dropped": sql("DROP TRIGGER workers_deleted"),
    "mark_missing": sql("DELETE FROM epochs"),
    "other_deployment": another("staging-b", "r-1"),
    "other_registry": another("prod-a", "r-2"),
    "older_copy": older_copy,
    "restored_and_moved_on": restored_and_moved_on,
    "silent": silent,
    "written_in_the_future": written_in_the_future,
    "two_names": two_names,
    "bad_state": bad_state,
    "blank_around_a_name": blank_around_a_name,
    "mismatch": mismatch,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_person_is_told_what_is_wrong_and_what_to_type(fleet: Fleet, name: str):
    WRONG[name](fleet)

    page = told(fleet, in_this_process)

    assert_golden(f"registry_{name}", page)
    # A mismatch is one with the clouds, and verify asks none.
    assert re.findall(r"^\[(\d+)\]$", page, re.MULTILINE) == ["5", "0" if name == "mismatch" else "1"]


def test_a_good_registry_is_accepted_by_both(fleet: Fleet):
    once, verify = fleet.commands()

    assert [in_this_process(command)[0] for command in (verify, once, verify)] == [0, 0, 0]


def test_verify_makes_no_ledger_and_changes_none(fleet: Fleet):
    _, verify = fleet.commands()

    in_this_process(verify)

    assert not (fleet.folder / "state").exists()
    fleet.learn()
    before = tree(fleet.folder)
    in_this_process(verify)
    assert tree(fleet.folder) == before


def test_verify_says_that_it_could_not_ask_the_ledger(fleet: Fleet):
    _, verify = fleet.commands()
    (fleet.folder / "state").mkdir()
    (fleet.folder / "state" / "ledger.db").write_bytes(b"not a database at all\n" * 400)

    code, out, err = in_this_process(verify)

    assert code == 0
    assert out.startswith(f"OK {fleet.registry}: ")
    assert "not compared with what the ledger knows" in err


def test_verify_of_a_named_file_asks_no_ledger(fleet: Fleet):
    older_copy(fleet)

    assert in_this_process(("registry", "verify", "--path", str(fleet.registry)))[0] == 0


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_person_is_told_who_to_look_for_when_it_is_locked(fleet: Fleet, journal: str):
    with connected(fleet.registry) as writer:
        writer.execute(f"PRAGMA journal_mode = {journal}")
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("BEGIN EXCLUSIVE")

        page = told(fleet, in_this_process)

    assert_golden("registry_locked", page)


def test_a_person_is_told_that_this_user_may_not_read_it(fleet: Fleet):
    fleet.registry.chmod(0o000)

    assert_golden("registry_unreadable", told(fleet, as_a_common_user))


def test_a_person_is_told_that_a_folder_may_not_be_searched(fleet: Fleet):
    fleet.registry.parent.chmod(0o600)

    page = told(fleet, as_a_common_user)

    fleet.registry.parent.chmod(0o700)
    assert_golden("registry_unsearchable", page)


def test_a_person_is_told_of_a_wal_that_was_left_over(fleet: Fleet):
    with connected(fleet.registry) as writer:
        writer.execute("UPDATE workers SET model = 'large'")
        kept = fleet.registry.with_name("registry.db-wal").read_bytes()
    fleet.registry.with_name("registry.db-wal").write_bytes(kept)
    for each in (*fleet.registry.parent.iterdir(), fleet.registry.parent):
        each.chmod(0o555 if each.is_dir() else 0o444)

    page = told(fleet, as_a_common_user)

    fleet.registry.parent.chmod(0o700)
    assert_golden("registry_leftover_wal", page)


def test_a_person_is_told_that_it_is_mounted_by_itself(fleet: Fleet):
    inside = fleet.folder / "fleet" / "inside.db"
    shutil.move(fleet.registry, inside)
    fleet.registry.touch()

    def mounted(command: tuple[str, ...]) -> tuple[int, str, str]:
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        there = ("unshare", "-rm", "sh", "-c", script, "_", str(inside), str(fleet.registry))
        return in_another(*there, sys.executable, "-m", "reaperd", *command)

    if "Operation not permitted" in mounted(("--version",))[2]:
        pytest.skip("this machine lets nobody mount in a namespace of their own")
    assert_golden("registry_mounted_alone", told(fleet, mounted))


# ---------------------------------------------------------------- how it is told


Runner = Callable[[tuple[str, ...]], tuple[int, str, str]]


def told(fleet: Fleet, runner: Runner) -> str:
    """Return what both commands print, with what differs from run to run made alike; no line is too long to read."""
    page = ""
    for command in fleet.commands():
        code, out, err = runner(command)
        # The log of a pass is for machines; errors are for people.
        errors = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("{"))
        page += f"$ reaperd {' '.join(command)}\n{out}{errors}[{code}]\n\n"
    assert fleet.cloud.mutating_requests() == []
    assert str(fleet.registry) in page
    assert [line for line in page.splitlines() if len(line) > WIDE and not only_to_be_copied(line)] == []
    return alike(page.replace(str(fleet.folder), SHOWN))


def only_to_be_copied(line: str) -> bool:
    """Say whether a line is a command, a name or what was typed: those are never folded."""
    return line.startswith(("$ ", "OK ", "reaperd: ")) or line.strip().startswith(("`", "reaperd "))


def alike(page: str) -> str:
    page = re.sub(r"\b[0-9a-f]{32}\b", "0" * 32, page)
    page = re.sub(r"\b2(?!026-01-10|126)\d{3}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-10 12:00:00", page)
    page = re.sub(r"(?m)^(  aws/us-east-1 .*) \d+\.\d$", r"\1 0.1", page)
    return re.sub(r"\b\d+\.\d s\b", "0.1 s", page)


def in_this_process(command: tuple[str, ...]) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, command, prog_name="reaperd")
    return result.exit_code, result.stdout, result.stderr


def as_a_common_user(command: tuple[str, ...]) -> tuple[int, str, str]:
    """Run a command to which the modes of files apply: root may read everything, whatever they say."""
    # In a namespace in which nobody is root: the owner of the files still, and no more than that.
    without_powers = ("unshare", "-U") if os.getuid() == 0 else ()
    code, out, err = in_another(*without_powers, sys.executable, "-m", "reaperd", *command)
    if "unshare failed" in err:
        pytest.skip("root cannot put its powers down here")
    return code, out, err


def in_another(*command: str) -> tuple[int, str, str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr
