"""The past for a person, as JSON lines and as CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from reaperd.core.history import (
    EntryKind,
    EventKind,
    Told,
    ToldAct,
    ToldFinding,
    ToldOutcome,
    ToldPass,
    ToldVerdict,
    what_comes,
)
from reaperd.core.model import PassOutcome
from reaperd.report.document import Document, moment, place
from reaperd.report.paper import Paper
from reaperd.report.parts import many, span, told_time
from reaperd.report.sheet import sheet

SHOWN_MACHINES = 10
"""So many machines are shown of one pass."""

ANNOUNCED = str(EventKind.ANNOUNCED)
"""What stands in the column of the findings for what a cloud announces."""

COLUMNS = (
    "at",
    "kind",
    "pass_id",
    "mode",
    "outcome",
    "reason",
    "detail",
    "provider",
    "region",
    "instance_id",
    "worker_id",
    "state",
    "verdict",
    "verdict_reason",
    "age_seconds",
    "confirmations",
    "confirmations_needed",
    "termination",
    "termination_reason",
    "error_code",
    "by",
    "finding",
    "name",
    "instance_type",
)

_STYLES: Mapping[str, str] = {
    PassOutcome.COMPLETE: "green",
    PassOutcome.REFUSED: "bold yellow",
    PassOutcome.DEFERRED: "bold yellow",
    PassOutcome.ERROR: "bold red",
}


# ---------------------------------------------------------------- a table


def draw_history(newest_first: Sequence[Told], paper: Paper, *, more: bool) -> None:
    """Draw passes and acts, newest first."""
    if not newest_first:
        paper.line("Nothing of the kind is recorded.")
        return
    for told in newest_first:
        if isinstance(told, ToldAct):
            _act(told, paper)
        else:
            _pass(told, paper)
    if more:
        paper.line()
        paper.line("… older ones were left out: --limit 0 shows all, --until TIME goes on from there")


def _act(act: ToldAct, paper: Paper) -> None:
    why = f": {act.reason}" if act.reason else ""
    paper.line(f"{_time(act.at)}  {_named(act)} by {act.by}{why}", "bold")
    if act.data:
        paper.line(", ".join(f"{key} {value}" for key, value in sorted(act.data.items())), indent=2)


def _named(act: ToldAct) -> str:
    return act.act.replace("_", " ").upper()


def _pass(told: ToldPass, paper: Paper) -> None:
    reason = f": {told.reason}" if told.reason else ""
    also = f" (also: {', '.join(told.also)})" if told.also else ""
    which = (
        told.pass_id
        if told.since is None
        else f"{told.pass_id} and {told.passes - 1:,} before it since {_time(told.since)}"
    )
    head = f"{_time(told.at)}  {_what(told, f'{told.outcome}{reason}{also}')}"
    paper.line(head, _STYLES.get(told.outcome, ""))
    if told.detail:
        paper.line(told.detail, indent=2)
    paper.line(which, indent=2)
    rows = list(_machines(told))
    paper.rows(("",) * 4, rows[:SHOWN_MACHINES])
    if len(rows) > SHOWN_MACHINES:
        left = many(len(rows) - SHOWN_MACHINES, "machine")
        paper.line(f"… {left} more: --format json, or --instance ID", indent=2)


def _what(told: ToldPass, ended: str) -> str:
    if told.kind == EntryKind.AUDIT:
        none = "no leaks" if told.outcome == PassOutcome.COMPLETE else ""
        return ", ".join(part for part in (f"audit {ended}", many(told.leaks, "leak") if told.leaks else none) if part)
    quiet = not told.verdicts and not told.outcomes and not told.reason
    return f"{ended}, {told.mode}{', nothing changed' if quiet else ''}"


def _machines(told: ToldPass) -> Iterator[tuple[str, ...]]:
    """Yield one line a machine, those that go first."""
    outcomes = {outcome.ref: outcome for outcome in told.outcomes}
    for verdict in sorted(told.verdicts, key=_weight):
        became = _became(outcomes.pop(verdict.ref, None))
        ref = verdict.ref
        yield (ref.instance_id, verdict.name, became, str(ref.scope))
    for ref, outcome in sorted(outcomes.items()):
        yield (ref.instance_id, "-", _became(outcome), str(ref.scope))
    for found in told.findings:
        yield (found.ref.instance_id, str(found.finding), _looks(found), str(found.ref.scope))
    for heard in told.announcements:
        yield (heard.ref.instance_id, ANNOUNCED, heard.code, str(heard.ref.scope))


def _weight(verdict: ToldVerdict) -> tuple[bool, bool, object]:
    return (not verdict.name.startswith("terminate/"), verdict.name == "keep/tracked", verdict.ref)


def _became(outcome: ToldOutcome | None) -> str:
    if outcome is None:
        return "-"
    why = ": ".join(dict.fromkeys(part for part in (outcome.reason, outcome.error_code) if part))
    return f"{outcome.kind} ({why})" if why else outcome.kind


def _looks(found: ToldFinding) -> str:
    age = None if found.age_seconds is None else timedelta(seconds=found.age_seconds)
    return f"{found.name or '-'}, {span(age)}"


def _time(when: datetime) -> str:
    return told_time(when).removesuffix(" UTC")


# ---------------------------------------------------------------- JSON lines


def history_lines(newest_first: Iterable[Told]) -> str:
    """Return one JSON object a line, oldest first: a pass exactly as it was recorded, an act as it is kept."""
    lines = [_line(told) for told in newest_first]
    # DEL is the one control character that JSON leaves as it is.
    return "".join(f"{line}\n" for line in reversed(lines)).replace("\x7f", "\\u007f")


def _line(told: Told) -> str:
    if isinstance(told, ToldPass):
        return told.record
    return json.dumps(act_document(told), sort_keys=True, separators=(",", ":"))


def act_document(act: ToldAct) -> Document:
    """Return what an operator did."""
    return {
        "kind": str(EntryKind.ACT),
        "at": moment(act.at),
        "act": act.act,
        "by": act.by,
        "reason": act.reason,
        "data": dict(act.data),
    }


# ---------------------------------------------------------------- CSV


def history_sheet(newest_first: Iterable[Told]) -> str:
    """Return one line for every machine of a pass, one for a pass without any, and one for an act; oldest first."""
    return sheet(COLUMNS, (row for told in reversed(list(newest_first)) for row in _rows(told)))


def _rows(told: Told) -> Iterator[Mapping[str, object]]:
    if isinstance(told, ToldAct):
        document = act_document(told)
        yield {**document, "outcome": told.act, "detail": json.dumps(dict(told.data), sort_keys=True)}
        return
    front: Document = {
        "at": moment(told.at),
        "kind": told.kind,
        "pass_id": told.pass_id,
        "mode": told.mode,
        "outcome": told.outcome,
        "reason": told.reason,
        "detail": told.detail,
    }
    outcomes = {outcome.ref: outcome for outcome in told.outcomes}
    for verdict in told.verdicts:
        yield {**front, **_verdict(verdict), **_outcome(outcomes.pop(verdict.ref, None))}
    for outcome in outcomes.values():
        yield {**front, **place(outcome.ref), **_outcome(outcome)}
    for found in told.findings:
        yield {**front, **place(found.ref), **_finding(found)}
    for heard in told.announcements:
        yield {**front, **place(heard.ref), "finding": ANNOUNCED, "detail": f"{heard.code}: {what_comes(heard)}"}
    if not told.verdicts and not told.outcomes and not told.findings and not told.announcements:
        yield front


def _verdict(verdict: ToldVerdict) -> Document:
    call, _, reason = verdict.name.partition("/")
    return {
        **place(verdict.ref),
        "worker_id": verdict.worker_id,
        "state": verdict.state,
        "verdict": call,
        "verdict_reason": reason,
        "age_seconds": verdict.age_seconds,
        "confirmations": verdict.confirmations,
        "confirmations_needed": verdict.confirmations_needed,
    }


def _outcome(outcome: ToldOutcome | None) -> Document:
    if outcome is None:
        return {}
    return {
        "termination": outcome.kind,
        "termination_reason": outcome.reason,
        "error_code": outcome.error_code,
    }


def _finding(found: ToldFinding) -> Document:
    return {
        "finding": str(found.finding),
        "name": found.name,
        "instance_type": found.instance_type,
        "age_seconds": found.age_seconds,
    }
