"""The tables of reasons in docs/safety.md: every member of every enumeration, in the order of the code.

What a person can do about a reason stands in `reaperd.report.remedies`, and the program prints it too. What a reason
means, and which rule it comes from, stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum

from reaperd.cli.exits import code_of_once
from reaperd.core.model import (
    DeferReason,
    KeepReason,
    Mode,
    OutcomeKind,
    PassOutcome,
    PassReport,
    RefusalReason,
    SparedReason,
    TerminateReason,
)
from reaperd.report.remedies import DEFERRED, ENDS_THE_HOLD, REFUSED, Remedy, Whereabouts

KEEP: Mapping[KeepReason, tuple[int, str]] = {
    KeepReason.FOREIGN_ACCOUNT: (9, "Its reservation is another account's, although the listing showed it."),
    KeepReason.IN_TRANSITION: (13, "It is shutting down already. Never asked again, only told when it takes too long."),
    KeepReason.TRACKED: (6, "A live row accounts for it. What every healthy worker says."),
    KeepReason.AMBIGUOUS_WORKER: (
        7,
        "A live row speaks of its worker or id, but of another machine or place, or misspells it.",
    ),
    KeepReason.FOREIGN_REGISTRY: (8, "Its registry tag names another registry: two fleets share one deployment name."),
    KeepReason.NEVER_LIST: (14, "Its id stands in `reconcile.never`, or it is the machine that reaperd runs on."),
    KeepReason.PROTECT_TAG: (14, "It carries the protect tag. Any value will do, `false` too."),
    KeepReason.MANAGED: (14, "An Auto Scaling group, an operator or a maintained fleet would launch it again."),
    KeepReason.ALREADY_REQUESTED: (22, "Its end was asked for and is not confirmed, or its answer is not known."),
    KeepReason.PROTECTED: (21, "The cloud's own termination protection is on. reaperd never switches it off."),
    KeepReason.DENIED: (21, "The cloud did not allow the request."),
    KeepReason.INVALID_ID: (21, "The cloud says that its id is none."),
    KeepReason.FAILED: (21, "The cloud refused for another reason, or its spot request could not be cancelled."),
    KeepReason.LAUNCH_GRACE: (10, "It is not older than `reconcile.launch_grace`, or its age is not known."),
    KeepReason.UNCONFIRMED: (11, "It was not yet untracked in `reconcile.confirm_passes` looks in a row."),
    KeepReason.ROW_VANISHED: (12, "It was tracked, and its row is gone without a final state."),
}

TERMINATE: Mapping[TerminateReason, tuple[int, str]] = {
    TerminateReason.UNREGISTERED: (6, "No row of the registry is about it."),
    TerminateReason.ANONYMOUS: (6, "No row is about it, and it has no worker tag: a launch that broke off half-way."),
    TerminateReason.RETIRED: (6, "Its row says `completed`, `failed` or `terminated`, and the machine still exists."),
    TerminateReason.LAUNCH_ABANDONED: (6, "Its row is `launching`, names no instance, and is `launching_ttl` old."),
    TerminateReason.HEARTBEAT_EXPIRED: (6, "Its row is live and has not beaten for `heartbeat_ttl`. Off by default."),
    TerminateReason.SUPERSEDED: (7, "Its worker's row names another machine, which exists and carries the worker tag."),
}

REFUSE: Mapping[RefusalReason, int] = {
    RefusalReason.LEDGER_UNUSABLE: 20,
    RefusalReason.NOT_LEADER: 18,
    RefusalReason.CLOCK: 16,
    RefusalReason.DEADLINE: 30,
    RefusalReason.WRONG_ACCOUNT: 9,
    RefusalReason.LISTING_INCOMPLETE: 2,
    RefusalReason.REGISTRY_UNUSABLE: 3,
    RefusalReason.REGISTRY_IDENTITY: 3,
    RefusalReason.REGISTRY_MISMATCH: 4,
    RefusalReason.REAP_HOLD: 17,
    RefusalReason.BREAKER_OPEN: 15,
}

DEFER: Mapping[DeferReason, int] = {
    DeferReason.THROTTLED: 21,
    DeferReason.CREDENTIALS_EXPIRED: 21,
    DeferReason.STOPPING: 25,
    DeferReason.NOT_LEADER: 18,
    DeferReason.REAP_HOLD: 17,
    DeferReason.DEADLINE: 30,
    DeferReason.LEDGER_UNUSABLE: 20,
    DeferReason.REGISTRY_UNUSABLE: 5,
    DeferReason.REGISTRY_IDENTITY: 5,
}

SPARE: Mapping[SparedReason, tuple[int, str]] = {
    SparedReason.TRACKED_NOW: (5, "A row arrived between the look and the request. It protects."),
    SparedReason.CHANGED: (5, "The rows say something else by now, or the machine's tags, state or launch time do."),
    SparedReason.REAP_HOLD: (17, "Somebody put the brake on while the pass was acting."),
    SparedReason.NOT_LEADER: (18, "The lease was lost while the pass was acting."),
    SparedReason.STOPPING: (25, "The process was asked to stop."),
}

OUTCOME: Mapping[OutcomeKind, tuple[int, str]] = {
    OutcomeKind.WOULD_TERMINATE: (19, "A rehearsal. Nothing was sent."),
    OutcomeKind.REQUESTED: (22, "The cloud accepted the request. The machine may still run."),
    OutcomeKind.UNKNOWN: (21, "Sent, and the answer was lost or a server error. Treated as requested."),
    OutcomeKind.SPARED: (5, "Not sent, because something had changed by then. Judged anew in the next pass."),
    OutcomeKind.ALREADY_GONE: (21, "The cloud does not know the id. Believed only once a later look confirms it."),
    OutcomeKind.CONFIRMED_GONE: (22, "A later look shows it terminated, or no more, and its cloud says so of its id."),
    OutcomeKind.PROTECTED: (21, "Refused: termination protection. Tried again once per `reconcile.stuck_after`."),
    OutcomeKind.DENIED: (21, "Refused: no permission. The pass goes on with the next machine."),
    OutcomeKind.INVALID_ID: (21, "Refused: not an id. The pass goes on with the next machine."),
    OutcomeKind.DEFERRED: (21, "Not sent, or not accepted: the pass had to stop. Nothing is remembered against it."),
    OutcomeKind.FAILED: (21, "Refused for another reason; the error code is the cloud's own."),
}

_ANY_TIME = datetime(2026, 1, 10, 12, tzinfo=UTC)


def keep() -> str:
    """Return the reasons to keep one machine."""
    rows = ((reason, rule, text, ENDS_THE_HOLD[reason]) for reason, (rule, text) in KEEP.items())
    return _table(("Reason", "It means", "What ends it"), rows)


def terminate() -> str:
    """Return the reasons to terminate one machine."""
    return _table(("Reason", "It means"), _plain(TERMINATE))


def refuse() -> str:
    """Return the reasons of a refusal, with what to do and the exit code of `once`."""
    rows = ((reason, rule, *_told(REFUSED[reason]), str(_exit_code(reason))) for reason, rule in REFUSE.items())
    return _table(("Reason", "It means", "What to do", "Exit code"), rows)


def defer() -> str:
    """Return the reasons why a pass stops while it acts."""
    rows = ((reason, rule, *_told(DEFERRED[reason])) for reason, rule in DEFER.items())
    return _table(("Reason", "It means", "What to do"), rows)


def spare() -> str:
    """Return the reasons why a planned termination was not sent."""
    return _table(("Reason", "It means"), _plain(SPARE))


def outcome() -> str:
    """Return what can become of one termination."""
    return _table(("Outcome", "It means"), _plain(OUTCOME))


def _plain(told: Mapping[StrEnum, tuple[int, str]]) -> Iterable[tuple[StrEnum, int, str]]:
    return ((member, rule, text) for member, (rule, text) in told.items())


def _told(remedy: Remedy) -> tuple[str, str]:
    commands = ", ".join(f"`{command}`" for command in remedy.typed(Whereabouts(), "DIGEST"))
    return remedy.stands, f"{remedy.advice} {commands}".strip()


def _exit_code(reason: RefusalReason) -> int:
    refused = PassReport(
        pass_id="",
        mode=Mode.ENFORCE,
        started_at=_ANY_TIME,
        finished_at=_ANY_TIME,
        outcome=PassOutcome.REFUSED,
        reason=str(reason),
    )
    return int(code_of_once(refused))


def _table(heads: tuple[str, ...], rows: Iterable[tuple[StrEnum | int | str, ...]]) -> str:
    first, *others = heads
    lines = [(first, "Rule", *others), ("---",) * (len(heads) + 1)]
    lines += [(f"`{member}`", f"[{rule}](#rule-{rule})", *map(str, cells)) for member, rule, *cells in rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
