"""What a person does next about a registry that cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

from registry.errors import RegistryUnusableError
from registry.model import RegistryFault
from registry.sqlite_readonly import ReadOnlyOpenError


def unusable(path: Path, error: ReadOnlyOpenError) -> RegistryUnusableError:
    """Return the registry's own error for a file that could not be read."""
    # Neither raises, whatever became of the path.
    real = os.path.realpath(path) if os.path.islink(path) else path  # noqa: PTH114
    facts = {"path": path, "real": real}
    return RegistryUnusableError(error.fault, str(path), error.detail, _REMEDIES[error.fault].format_map(facts))


_POINT = "point registry.path at the file that the control plane writes"
_RESTORE = "restore it from a backup and run `reaperd registry trust`"

_REMEDIES = {
    RegistryFault.MISSING: "For a new fleet run `reaperd registry init --path {real}`; otherwise " + _POINT,
    RegistryFault.NOT_A_FILE: "Correct the configuration: " + _POINT,
    RegistryFault.PERMISSION: "Let the user of reaperd search every folder on its path, read it and read what "
    "stands beside it: `namei -l {path}` and `ls -l {path}*`; a -wal that is left over goes when the control plane is "
    "started once",
    RegistryFault.EMPTY_FILE: "For a new fleet remove it and run `reaperd registry init --path {path}`; "
    "otherwise " + _RESTORE,
    RegistryFault.NOT_A_DATABASE: f"Either {_POINT}, or {_RESTORE}",
    RegistryFault.DAMAGED: "Start the control plane, which finishes a write that broke off, then run "
    "`reaperd registry verify --path {path}`; if it still says so, " + _RESTORE,
    RegistryFault.NO_WORKERS_TABLE: f"Either {_POINT}, or {_RESTORE}",
    RegistryFault.NO_META_TABLE: f"Either {_POINT}, or {_RESTORE}",
    RegistryFault.NO_META_ROW: f"Either {_POINT}, or {_RESTORE}",
    RegistryFault.NEWER_SCHEMA: "Upgrade reaperd on this host: `reaperd --version` tells which one it is",
    RegistryFault.OTHER_SCHEMA: "Run `reaperd registry migrate --path {path}`; if it refuses, " + _RESTORE,
    RegistryFault.BAD_ROW: "Correct the row where it was written, or, once its machine is gone, take it out with "
    "`reaperd registry remove WORKER_ID --path {path}`",
    RegistryFault.LOCKED: "Find who holds it: `fuser -v {path}`; registry.busy_timeout is how long it was waited for",
    RegistryFault.CHANGED_WHILE_READ: "Ask again; a control plane that keeps its connection open avoids it",
    RegistryFault.ALONE: "Point registry.path at the name that the control plane opens: "
    "`find / -xdev -samefile {path}` lists its names. Into a container mount its folder, not the file alone",
}
