"""Everything that the registry may raise.

RegistryError
├── RegistryUnusableError     it cannot be read for what it is; nothing may be decided
├── RegistryImportError       another book cannot be taken over
├── RegistryWriteError        a writer's change was refused or could not be made
└── WorkerNotFoundError       no row of that worker id
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from registry.model import RegistryFault


class RegistryError(Exception):
    """Something about the registry went wrong."""


class RegistryUnusableError(RegistryError):
    """The registry cannot be read for what it is. It was neither created, nor repaired, nor changed."""

    def __init__(self, fault: RegistryFault, path: str, detail: str, remedy: str) -> None:
        """Keep the fault and the sentence that tells a person what to do."""
        self.fault = fault
        self.path = path
        self.detail = detail
        self.remedy = remedy
        super().__init__(f"{path}: {detail}. {remedy}")


class RegistryWriteError(RegistryError):
    """A change was refused (a constraint, a bad value) or the file could not be written. Nothing was changed."""


class RegistryImportError(RegistryError):
    """What was to be taken over cannot be read whole. Nothing was written. Carries every problem."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        """Keep the problems."""
        self.problems = problems
        super().__init__("; ".join(problems))


class WorkerNotFoundError(RegistryError):
    """No row has this worker id."""
