"""A ledger that cannot be used says what is wrong, where, whose that is, and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reaperd.errors import LedgerUnusableError
from reaperd.ledger.ledger import open_ledger
from reaperd.ledger.place import Place, place_of, user_name
from tests.unit.ledger.conftest import NOW, open_at

NOBODY = 65_534


def trouble(path: Path) -> str:
    with pytest.raises(LedgerUnusableError) as error:
        open_at(path)
    return str(error.value)


# ---------------------------------------------------------------- rule 30


@pytest.mark.parametrize("filesystem", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_ledger_on_a_network_file_system_is_refused_before_anything_is_made(path: Path, filesystem: str):
    def remote(asked: Path) -> Place:
        return replace(place_of(asked), filesystem=filesystem, is_network=True)

    with pytest.raises(LedgerUnusableError, match="network file system") as error:
        open_ledger(path, deployment="prod-a", owner_tag="reaperd:owner", now=NOW, seeing=remote)

    assert filesystem in str(error.value)
    assert "Move state_dir to a local disk" in str(error.value)
    assert not path.parent.exists()


def test_a_place_that_cannot_be_seen_is_refused(path: Path):
    def blind(asked: Path) -> Place:
        raise PermissionError(13, "Permission denied", str(asked))

    with pytest.raises(LedgerUnusableError, match="may not be written") as error:
        open_ledger(path, deployment="prod-a", owner_tag="reaperd:owner", now=NOW, seeing=blind)

    assert "cannot be looked at" in str(error.value)


# ---------------------------------------------------------------- what stands in the way


def test_a_folder_in_the_place_of_the_file_is_named(path: Path):
    path.mkdir(parents=True)

    assert "a folder is in its place" in trouble(path)


@pytest.mark.parametrize("content", [b"no database " * 400, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_of_something_else_is_named(path: Path, content: bytes):
    path.parent.mkdir()
    path.write_bytes(content)

    told = trouble(path)

    assert "it is no ledger, or a damaged one" in told
    assert "Move it away, or use another state_dir." in told


def test_a_file_in_the_place_of_the_folder_is_told_with_all_that_is_known(tmp_path: Path):
    (tmp_path / "state").write_text("")

    told = trouble(tmp_path / "state" / "ledger.db")

    assert str(tmp_path / "state" / "ledger.db") in told
    assert f"owner {user_name(os.geteuid())}" in told


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user without privileges, if this one has them."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that everybody may look into; pytest's own are for its user alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_folder_that_we_may_not_write_is_told_with_its_owner_and_who_we_are(public: Path):
    (public / "state").mkdir(mode=0o555)
    (public / "state").chmod(0o555)

    with as_nobody():
        told = trouble(public / "state" / "ledger.db")
        us = user_name(os.geteuid())

    owner = user_name(os.geteuid())
    assert "it may not be written (unable to open database file)" in told
    assert f"folder {public / 'state'}: owner {owner}, mode 0555, " in told
    assert f"this is user {us}. Give the folder and what is in it to user {us}." in told


def test_a_folder_that_cannot_be_made_is_told_with_the_one_above(public: Path):
    public.chmod(0o555)

    with as_nobody():
        told = trouble(public / "state" / "ledger.db")

    assert "it may not be written" in told
    assert f"folder {public}: owner " in told


# ---------------------------------------------------------------- real file systems

PROGRAM = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from reaperd.errors import LedgerUnusableError
from reaperd.ledger.ledger import open_ledger
now = datetime(2026, 1, 10, tzinfo=UTC)
def fill(path):
    with open(path, "ab", buffering=0) as filler:
        while filler.write(b"x" * 512):
            pass
try:
    with open_ledger(Path(sys.argv[1]), deployment="prod-a", owner_tag="reaperd:owner", now=now) as ledger:
        try:
            fill(sys.argv[2])
        except OSError:
            ledger.self_test(now)
except LedgerUnusableError as error:
    print(error)
"""


def mounted(folder: Path, mounting: str, *arguments: str) -> str:
    """Return what the program said with something mounted for it alone."""
    script = f'mount {mounting} "$0" && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder), sys.executable]
    try:
        done = subprocess.run(
            [*command, "-c", PROGRAM, *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("nothing may be mounted here")
    assert done.stderr == ""
    return done.stdout


def test_a_read_only_file_system_is_named(tmp_path: Path):
    told = mounted(tmp_path, "-t tmpfs -o ro tmpfs", str(tmp_path / "ledger.db"))

    assert "its file system is read-only" in told
    assert f"folder {tmp_path}: owner root" in told
    assert "Mount it to be written, or use another state_dir." in told


def test_a_disk_that_is_really_full_is_named_with_the_room_that_is_left(tmp_path: Path):
    told = mounted(tmp_path, "-t tmpfs -o size=512k tmpfs", str(tmp_path / "ledger.db"), str(tmp_path / "filler"))

    assert "the disk is full" in told
    assert "0 bytes of 512 KiB free" in told
    assert "Make room there." in told
