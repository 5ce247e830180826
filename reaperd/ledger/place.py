"""Where a file lies: on which file system, whose it is, and how much room there is. Nothing is created or changed."""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

UNKNOWN = "unknown"
"""The file system where the kernel does not tell."""

NETWORK = frozenset(
    {
        "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "kafs",
        "lustre", "mfs", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb2", "smb3",
        "smbfs", "vboxsf", "virtiofs", "vmhgfs", "weka", "wekafs",
    }
)  # fmt: skip
"""File systems that other hosts can write too: their locks, and SQLite's shared memory, do not reach us."""

_FUSE = "fuse"
_LOCAL_FUSE = frozenset(
    {"bindfs", "encfs", "exfat", "fuse-overlayfs", "gocryptfs", "lxcfs", "mergerfs", "ntfs-3g", "zfs"}
)
"""Any other program behind FUSE may reach over a network, for all that the kernel knows."""

_VOLATILE = frozenset({"overlay", "ramfs", "tmpfs", "fuse.fuse-overlayfs"})

_MOUNT_ID, _FILE_SYSTEM = 0, 0
"""Fields of a line of /proc/self/mountinfo, before and after its ` - ` (proc(5))."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path, or as much of it as is there, and what it lies on."""

    path: Path
    """Without symbolic links. The nearest folder above, where the path itself is not there yet."""
    owner: str
    """The name of the user; the number of one without a name."""
    mode: int
    """The permission bits, without the kind of the file."""
    free_bytes: int
    """What a user who is not root can still write."""
    total_bytes: int
    filesystem: str
    """The kernel's word for it (`ext4`, `nfs4`, `fuse.sshfs`); `unknown` where it does not tell."""
    is_network: bool
    """True when other hosts may write it too. False when that is not known."""

    @property
    def is_volatile(self) -> bool:
        """True when what lies there goes with the container, or with the next boot."""
        return self.filesystem in _VOLATILE


def place_of(path: Path) -> Place:
    """Return where a path lies, or would lie once it is made.

    Raises:
        OSError: if that cannot be seen, such as in a folder that this user may not look into, or links in a circle.
    """
    # Not Path.resolve: which error it raises for links that go in a circle depends on the version of Python.
    found = Path(os.path.realpath(path))
    while not _is_there(found):
        found = found.parent
    with _pinned(found) as descriptor:
        about, room = os.fstat(descriptor), os.statvfs(found)
        filesystem = _mounted(descriptor)
    return Place(
        path=found,
        owner=user_name(about.st_uid),
        mode=stat.S_IMODE(about.st_mode),
        free_bytes=room.f_bavail * room.f_frsize,
        total_bytes=room.f_blocks * room.f_frsize,
        filesystem=filesystem,
        is_network=is_network(filesystem),
    )


def is_network(filesystem: str) -> bool:
    """Say whether other hosts may write a file system of this kind too."""
    kind, _, program = filesystem.partition(".")
    if kind == _FUSE:
        return program not in _LOCAL_FUSE
    return filesystem in NETWORK


def user_name(user_id: int) -> str:
    """Return what a user is called; the number of one without a name."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@contextmanager
def _pinned(path: Path) -> Iterator[int]:
    """Give a descriptor that names the file and opens nothing: one that is closed drops no lock of this process."""
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mounted(descriptor: int) -> str:
    """Return the file system behind a descriptor. By its mount: a path can lead through one that is mounted over."""
    try:
        about = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="utf-8")
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return UNKNOWN
    mount = re.search(r"^mnt_id:\s*(\d+)$", about, re.MULTILINE)
    return UNKNOWN if mount is None else filesystem_of(mounts, mount[1])


def filesystem_of(mounts: str, mount_id: str) -> str:
    """Return the kind of file system that a mount has, by the text of /proc/self/mountinfo."""
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        if separator and before.split()[_MOUNT_ID] == mount_id:
            return after.split()[_FILE_SYSTEM]
    return UNKNOWN
