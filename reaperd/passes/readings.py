"""One reading of the registry for several requests at once.

A reading proves the whole file. Sixteen scopes side by side would each read it, sixteen times as long and in sixteen
times the memory, while what was seen of their machines grows old.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from providers.identity import loosely
from registry.base import RegistryReader
from registry.errors import RegistryUnusableError
from registry.model import RegistryRows


@dataclass(slots=True)
class _Reading:
    """One that has not begun, or the one that is under way."""

    machines: list[tuple[str, str | None]] = field(default_factory=list)
    found: RegistryRows | RegistryUnusableError | None = None
    over: threading.Event = field(default_factory=threading.Event)


class SharedReadings:
    """Reads once at a time. Whoever asks while one is under way waits for the next, which is for all of them.

    So every answer is of a moment after its question. Waits as long as a reading takes, and the one before it.
    """

    def __init__(self, registry: RegistryReader) -> None:
        """Keep what is read."""
        self._registry = registry
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._next: _Reading | None = None

    def lookup_many(self, machines: Iterable[tuple[str, str | None]]) -> RegistryRows:
        """Return the rows about these machines, and perhaps about others that were asked for meanwhile.

        Raises:
            RegistryUnusableError: as RegistryReader.lookup_many.
        """
        with self._lock:
            is_first = self._next is None
            reading = self._next = self._next or _Reading()
            at = len(reading.machines)
            reading.machines.extend(machines)
            mine = reading.machines[at:]
        if is_first:
            self._read(reading)
        else:
            reading.over.wait()
        found = reading.found
        if isinstance(found, RegistryUnusableError):
            raise found
        # None: whoever read died of something else, which says nothing of the registry.
        return self._registry.lookup_many(mine, loosely) if found is None else found

    def _read(self, reading: _Reading) -> None:
        with self._turn:
            with self._lock:
                # From now on nobody joins: what they ask has to be read later.
                self._next = None
            try:
                reading.found = self._registry.lookup_many(reading.machines, loosely)
            except RegistryUnusableError as error:
                reading.found = error
            finally:
                reading.over.set()
