"""What a pass needs from the rest of the application, as small Protocols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from providers.base import Clock
from providers.model import InstanceRef
from reaperd.core.memory import Learned
from reaperd.core.model import (
    DecisionRecord,
    DeferReason,
    Intent,
    Memory,
    Observation,
    Outcome,
    Plan,
    ReapPolicy,
    Verdict,
)
from reaperd.core.telling import Telling

__all__ = ["Acted", "Clock", "Errand", "Hands", "IntentBook", "Notebook", "Stopping"]


class Stopping(Protocol):
    """Says whether the process was asked to end. Checked between calls, never inside one."""

    def __call__(self) -> bool:
        """Return True once it was."""
        ...


class Notebook(Protocol):
    """The ledger as a pass sees it. Raises LedgerUnusableError."""

    @property
    def keeps(self) -> bool:
        """Return False when what is recorded goes nowhere: a record of all verdicts is not made for nothing."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Hold everybody else off, so that what is recalled is still true when the lesson is written."""
        ...

    def recall(self, now: datetime) -> Memory:
        """Return what is remembered."""
        ...

    def known_epoch(self) -> int | None:
        """Return the registry epoch whose mark is remembered; None without one."""
        ...

    def pending(self) -> Mapping[InstanceRef, Intent]:
        """Return the open intents: the machines whose end was asked for and is not confirmed."""
        ...

    def leads(self, now: datetime) -> bool:
        """Say whether this process holds the lease. A notebook without one always leads."""
        ...

    def learn(self, learned: Learned, now: datetime) -> None:
        """Remember what a look taught."""
        ...

    def record(self, decision: DecisionRecord, telling: Telling) -> None:
        """Keep the pass, and what people are to be told of it: both, or neither."""
        ...


class IntentBook(Protocol):
    """The ledger as the door sees it. Raises LedgerUnusableError."""

    def open_intent(self, verdict: Verdict, *, pass_id: str, approved: bool, now: datetime) -> int:
        """Write durably that a request is about to be sent.

        Raises:
            LeaseLostError: the lease is not ours.
            BrakeIsOnError: the brake is on.
        """
        ...

    def open_intents(self, planned: Sequence[tuple[Verdict, bool]], *, pass_id: str, now: datetime) -> tuple[int, ...]:
        """Write durably that one request is about to be sent for all of these: verdicts, and whether each was approved.

        All are written or none. Raises as open_intent does.
        """
        ...

    def check_leave(self, now: datetime) -> None:
        """Return if a request may still be sent under an intent that is written. From any thread.

        Raises:
            LeaseLostError: the lease is not ours any more.
            BrakeIsOnError: the brake is on.
        """
        ...

    def answer_intent(self, intent_id: int, outcome: Outcome, now: datetime) -> None:
        """Write what came of it."""
        ...

    def answer_intents(self, answered: Iterable[tuple[int, Outcome]], now: datetime) -> None:
        """Write what came of these, all of it or nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """What came of a plan."""

    outcomes: tuple[Outcome, ...]
    stopped: DeferReason | None = None
    """Why not everything was tried; None when all was."""
    detail: str = ""
    requests: int = 0
    """How many requests were begun."""


@dataclass(frozen=True, slots=True)
class Errand:
    """Which pass a plan is carried out for."""

    pass_id: str
    ends_at: float
    """On the monotonic clock: nothing is begun later."""


class Hands(Protocol):
    """Carries a plan out, or only says what it would do."""

    def carry_out(self, plan: Plan, seen: Observation, policy: ReapPolicy, errand: Errand) -> Acted:
        """Return one outcome for every termination of the plan."""
        ...
