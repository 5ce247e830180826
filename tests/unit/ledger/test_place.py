from __future__ import annotations

import os
import pwd
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from reaperd.ledger.place import UNKNOWN, filesystem_of, is_network, place_of, user_name

MOUNTS = """\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
28 27 0:52 / /var/lib/reaperd rw,relatime shared:7 master:2 - nfs4 files:/export/a\\040b rw,vers=4.2,proto=tcp
29 28 0:53 / /var/lib/reaperd rw,relatime - fuse.sshfs files:/ rw,user_id=0
"""


@pytest.mark.parametrize(("mount", "kind"), [("27", "ext4"), ("28", "nfs4"), ("29", "fuse.sshfs"), ("2", UNKNOWN)])
def test_the_mount_says_which_file_system_it_is(mount: str, kind: str):
    assert filesystem_of(MOUNTS, mount) == kind


def test_a_line_that_cannot_be_read_tells_of_no_file_system():
    assert filesystem_of("27 1 254:0 / / rw\n\n", "27") == UNKNOWN


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "ceph", "glusterfs", "fuse.glusterfs", "lustre", "afs"]
)
def test_a_file_system_that_other_hosts_can_write_is_a_network_one(kind: str):
    assert is_network(kind)


@pytest.mark.parametrize("kind", ["fuse", "fuse.", "fuse.something-new", "fuse.mount-s3"])
def test_a_program_behind_fuse_that_is_not_known_counts_as_a_network(kind: str):
    assert is_network(kind)


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs", "fuseblk", "fuse.fuse-overlayfs", "nfsd", UNKNOWN]
)
def test_a_file_system_of_this_host_is_none(kind: str):
    assert not is_network(kind)


def test_a_file_is_told_with_its_owner_its_mode_and_the_room_beside_it(tmp_path: Path):
    path = tmp_path / "ledger.db"
    path.touch()
    path.chmod(0o640)

    place = place_of(path)

    assert (place.path, place.owner, place.mode) == (path, pwd.getpwuid(os.getuid()).pw_name, 0o640)
    assert 0 < place.free_bytes <= place.total_bytes
    assert place.filesystem != UNKNOWN


@pytest.mark.parametrize(("path", "kind"), [("/proc/self/status", "proc"), ("/sys/kernel", "sysfs")])
def test_the_kernel_is_asked_for_the_file_system(path: str, kind: str):
    assert place_of(Path(path)).filesystem == kind


def test_a_path_that_is_not_there_lies_where_it_would_be_made(tmp_path: Path):
    place = place_of(tmp_path / "state" / "deep" / "ledger.db")

    assert place.path == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_link_lies_where_it_leads(tmp_path: Path):
    link = tmp_path / "ledger.db"
    link.symlink_to("/proc/self/status")

    assert place_of(link).filesystem == "proc"


def test_a_link_that_leads_nowhere_yet_lies_where_its_file_would_be_made(tmp_path: Path):
    link = tmp_path / "ledger.db"
    (tmp_path / "other").mkdir()
    link.symlink_to(tmp_path / "other" / "ledger.db")

    assert place_of(link).path == tmp_path / "other"


def test_links_in_a_circle_lead_nowhere(tmp_path: Path):
    link = tmp_path / "ledger.db"
    link.symlink_to(link)

    with pytest.raises(OSError, match="symbolic links"):
        place_of(link)


def test_what_lies_in_memory_is_volatile(tmp_path: Path):
    if not Path("/dev/shm").is_dir():
        pytest.skip("this host has no /dev/shm")

    place = place_of(Path("/dev/shm"))

    assert (place.filesystem, place.is_volatile, place.is_network) == ("tmpfs", True, False)


def test_a_user_without_a_name_is_told_by_number():
    assert user_name(987_654_321) == "987654321"


def test_looking_drops_no_lock_that_this_process_holds(tmp_path: Path):
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE lease (id)")
    connection.execute("BEGIN EXCLUSIVE")

    place_of(path)

    assert "locked" in _error_of_writing(path)
    connection.close()


def _error_of_writing(path: Path) -> str:
    """Return what another process is told: the locks of one process do not keep itself out."""
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('INSERT INTO lease VALUES (1)')"
    return subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False).stderr
