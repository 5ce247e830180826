"""Everything that the application itself may raise, and what a process answers with.

ReaperdError
├── ConfigError               the settings are not usable: nothing was started
├── LedgerUnusableError       the daemon's own memory cannot be opened, read or written
├── DaemonUnreachableError    nobody answers where the daemon should listen
├── UnreadableStatusError     what answers there tells no status that we can read
├── LaunchError               a worker was not launched, or nobody can say whether it was
│   ├── NoCapacityError           every offer was refused for want of capacity: the row is failed
│   ├── LaunchPendingError        the answer was lost: the row stays launching
│   ├── LaunchNotRecordedError    there is a machine, and the row does not name it
│   └── WorkerTakenError          the worker id stands for something else: nothing was asked for
└── HttpError                 the HTTP server cannot be started: nothing listens
    ├── PortTakenError        another process listens there
    └── WebConfigError        the file of TLS and basic auth cannot be used

The libraries have trees of their own: `providers.errors`, `registry.errors`, `alerts.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command answers with. Scripts and systemd units hold on to these numbers."""

    OK = 0
    """Done; nothing found where finding is the point."""
    ERROR = 1
    """An error, a deferred pass, or a termination that did not go as it should."""
    USAGE = 2
    """The command line is wrong (click's own number)."""
    FINDINGS = 3
    """`plan` would terminate something, or `audit` found leaks."""
    INCOMPLETE = 4
    """A listing was incomplete."""
    SAFETY_STOP = 5
    """Any other refusal."""
    NOT_LEADER = 75
    """Another process holds the lease (EX_TEMPFAIL)."""
    CONFIG = 78
    """The configuration is bad or missing (EX_CONFIG): systemd must not restart on it."""


class ReaperdError(Exception):
    """Something about the application itself went wrong."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong with the settings. Never holds a value that could be a secret."""

    path: str
    """Where: `providers.0.regions`, the name of an environment variable, or empty for the file as a whole."""
    message: str
    """What is wrong and what to write instead."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(ReaperdError):
    """The settings cannot be used. Nothing was started or changed; on a reload the old settings stay in force.

    Carries every problem, not only the first.
    """

    def __init__(self, problems: tuple[Problem, ...], source: str = "") -> None:
        """Keep the problems and the name of the file that they were found in."""
        self.problems = problems
        self.source = source
        super().__init__(_listed(problems, source or "the configuration"))


class LedgerUnusableError(ReaperdError):
    """The ledger cannot be opened, read or written. What was not recorded must not be done: no request is sent."""

    def __init__(self, path: str, detail: str, remedy: str = "") -> None:
        """Keep the path and the sentence that tells a person what to do."""
        self.path = path
        self.detail = detail
        self.remedy = remedy
        super().__init__(f"{path}: {detail}. {remedy}".rstrip(". ") + ".")


class DaemonUnreachableError(ReaperdError):
    """No daemon answered. Whether one runs is not known."""

    def __init__(self, url: str, detail: str) -> None:
        """Keep the address that was asked."""
        self.url = url
        super().__init__(f"no daemon answers at {url}: {detail}. Is it running? systemctl status reaperd")


class UnreadableStatusError(ReaperdError):
    """Something answered, and not what a daemon of this version does. Whether one runs is not known."""


class LaunchError(ReaperdError):
    """One worker is not known to run. Its row, if there is one, says what the reaper makes of that."""

    def __init__(self, worker_id: str, detail: str) -> None:
        """Keep the worker, and tell of it."""
        self.worker_id = worker_id
        self.detail = detail
        super().__init__(f"worker {worker_id}: {detail}")


class NoCapacityError(LaunchError):
    """No offer had capacity, so there is no machine. The row, if one was written, is failed."""

    def __init__(self, worker_id: str, detail: str, causes: tuple[Exception, ...] = ()) -> None:
        """Keep what was answered for each offer, in the order in which they were tried."""
        self.causes = causes
        super().__init__(worker_id, detail)


class LaunchPendingError(LaunchError):
    """The request was sent and its answer is not known. The row stays launching, so a machine is protected for a time.

    To ask again with the same worker id is safe.
    """


class LaunchNotRecordedError(LaunchError):
    """The cloud launched a machine and the registry could not be told which. Its worker tag is all that protects it."""

    def __init__(self, worker_id: str, instance: str, detail: str) -> None:
        """Keep the machine that nobody else knows of."""
        self.instance = instance
        super().__init__(worker_id, detail)


class WorkerTakenError(LaunchError):
    """A row of this worker id stands for something that must not be launched again. Nothing was asked for."""


class HttpError(ReaperdError):
    """The HTTP server cannot be started. Nothing listens; whoever asked for it should not go on without."""

    def __init__(self, where: str, detail: str, remedy: str = "") -> None:
        """Keep the setting that it is about, and the sentence that tells a person what to do."""
        self.where = where
        self.detail = detail
        self.remedy = remedy
        super().__init__(f"{where}: {detail}. {remedy}".rstrip(". ") + ".")


class PortTakenError(HttpError):
    """Another process listens at the address: a second daemon, or somebody else's program."""


class WebConfigError(HttpError):
    """http.web_config_file, or a file that it names, cannot be used. A running server keeps what it has."""


def _listed(problems: tuple[Problem, ...], source: str) -> str:
    count = f"{len(problems)} problem" + ("" if len(problems) == 1 else "s")
    return "\n".join([f"{source}: {count}", *(f"  {problem}" for problem in problems)])
