"""A gate that is a small file: which clouds are off, since when and why.

    {"version": 1, "off": {"aws": {"since": "2026-01-10T12:00:00+00:00", "reason": "credentials leaked"}}}

A cloud that the file does not name is on. A file that is not there, is empty, or is not this, closes every cloud: it
says nothing, and a launch that somebody wanted to stop costs more than one that has to be asked for again.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from providers.errors import GateFileError
from providers.model import require_aware

VERSION = 1
_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """That a cloud is off."""

    since: datetime
    reason: str
    """Text of whoever switched it off. Escape it wherever it is shown."""

    def __post_init__(self) -> None:
        require_aware(self.since, "the time of a closure")


class FileGate:
    """Reads the file anew at every question; changes it whole or not at all."""

    def __init__(self, path: Path) -> None:
        """Keep the path. The file need not be there yet; until it is, every cloud is off."""
        self.path = path

    def provision_allowed(self, cloud: str) -> bool:
        """Return whether the file leaves this cloud on.

        Raises:
            GateFileError: if the file does not say.
        """
        return cloud not in self.closed()

    def closed(self) -> Mapping[str, Closure]:
        """Return the clouds that are off, by name.

        Raises:
            GateFileError: if the file does not say.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            msg = f"{self.path}: the gate has no file, so every cloud is off; make it with `reaperd gate on CLOUD`"
            raise GateFileError(msg) from error
        except (OSError, UnicodeError) as error:
            msg = f"{self.path}: the gate cannot be read, so every cloud is off: {error}"
            raise GateFileError(msg) from error
        return MappingProxyType(_parsed(text, self.path))

    def turn_off(self, cloud: str, *, reason: str, at: datetime) -> None:
        """Switch launches onto a cloud off. One that is off already keeps its time and reason.

        Raises:
            GateFileError: if the file could not be written; the cloud is then as it was.
        """
        with self._changing() as off:
            off.setdefault(_named(cloud), Closure(since=at, reason=reason))

    def turn_on(self, cloud: str) -> None:
        """Switch launches onto a cloud on, and make the file if there is none.

        Raises:
            GateFileError: if the file could not be written, or holds something else; the cloud is then as it was.
        """
        with self._changing() as off:
            off.pop(_named(cloud), None)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Closure]]:
        try:
            with _locked(self.path.resolve().parent):
                off = dict(self.closed()) if self.path.exists() else {}
                yield off
                _replace(self.path.resolve(), _rendered(off))
        except OSError as error:
            msg = f"{self.path}: the gate was not changed: {error}"
            raise GateFileError(msg) from error


def _named(cloud: str) -> str:
    if not cloud or cloud != cloud.strip():
        msg = f"{cloud!r} is no name of a cloud"
        raise ValueError(msg)
    return cloud


def _parsed(text: str, path: Path) -> dict[str, Closure]:
    try:
        told = json.loads(text)
        if told["version"] != VERSION:
            msg = f"version {told['version']!r}, not {VERSION}"
            raise ValueError(msg)  # noqa: TRY301 - one sentence for all that can be wrong with the text
        return {_named(cloud): _closure(each) for cloud, each in told["off"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = (
            f"{path}: this is no gate, so every cloud is off ({type(error).__name__}: {error}); "
            "put it right or remove it, then `reaperd gate on CLOUD`"
        )
        raise GateFileError(msg) from error


def _closure(told: Any) -> Closure:  # noqa: ANN401 - whatever the JSON holds
    return Closure(since=datetime.fromisoformat(told["since"]), reason=str(told["reason"]))


def _rendered(off: Mapping[str, Closure]) -> str:
    closures = {cloud: {"since": each.since.isoformat(), "reason": each.reason} for cloud, each in sorted(off.items())}
    return json.dumps({"version": VERSION, "off": closures}, indent=2, ensure_ascii=True) + "\n"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other writers of the folder waiting. The lock lies on the folder, because the file itself is replaced."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Put the text in the place of the file, so that a reader sees the old one or the new one, whole."""
    mode = path.stat().st_mode & 0o777 if path.exists() else _MODE
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(beside).unlink()
        raise
