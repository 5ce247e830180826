"""How the daemon stands, for a person at 3 a.m.: drawn from the JSON that it answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from reaperd.core.model import KeepReason, Mode, PassKind, PassOutcome, RefusalReason
from reaperd.errors import UnreadableStatusError
from reaperd.report.paper import Paper
from reaperd.report.parts import many, span, told_time
from reaperd.report.remedies import ENDS_THE_HOLD, Whereabouts, remedy_of

Told = Mapping[str, object]

SHOWN = 20
"""So many scopes and conditions are shown; the JSON has more."""


def read_status(body: bytes) -> Told:
    """Return what an answer tells.

    Raises:
        UnreadableStatusError: if it is no table of JSON.
    """
    msg = "it is no table of JSON"
    try:
        told: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnreadableStatusError(msg) from error
    if not isinstance(told, dict):
        raise UnreadableStatusError(msg)
    return told


def draw_status(told: Told, paper: Paper, where: Whereabouts) -> None:
    """Draw how things stand, what stands in the way first.

    Raises:
        UnreadableStatusError: if something is not there, or not of the kind that a daemon of this version tells.
    """
    try:
        _draw(told, paper, where)
    except KeyError as error:
        msg = f"it tells no {error}"
        raise UnreadableStatusError(msg) from error
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"it tells something of another kind: {error}"
        raise UnreadableStatusError(msg) from error


def _draw(told: Told, paper: Paper, where: Whereabouts) -> None:
    now = datetime.fromisoformat(_text(told, "now"))
    _headline(told, paper)
    _in_the_way(told, paper, where)
    paper.line()
    _times(told, paper, now)
    _holds(told, paper)
    _scopes(told, paper)
    _conditions(told, paper)
    _alerts(told, paper)


def _headline(told: Told, paper: Paper) -> None:
    rehearsing = told["mode"] == Mode.DRY_RUN
    mode = "REHEARSING: nothing is terminated" if rehearsing else "ENFORCING"
    paper.line(f"{_text(told, 'deployment')}: {mode}", "bold yellow" if rehearsing else "bold red")
    holder = _table(told, "holder")
    if told["leader"]:
        paper.line("leader: this process acts", "green")
    elif holder:
        paper.line(f"STANDING BY: process {holder['pid']} on {holder['host']} acts", "bold yellow")
    else:
        paper.line("NO LEASE: neither this process nor another one is known to act", "bold red")
    for name, text in (("healthy", "health"), ("ready", "readiness")):
        if told[name]:
            paper.line(name, "green")
        else:
            paper.line(f"NOT {name.upper()}: {told[text]}", "bold red")
    if refused := told.get("reload_refused"):
        paper.line(f"THE LAST RELOAD WAS REFUSED, the settings before it are in force: {refused}", "bold yellow")


def _in_the_way(told: Told, paper: Paper, where: Whereabouts) -> None:
    """Say why the last pass did not act, and what resolves it."""
    last = _table(_table(told, "last"), PassKind.RECONCILE)
    if not last or last["outcome"] == PassOutcome.COMPLETE:
        return
    shown = _reasons(last)
    paper.line()
    paper.line(f"LAST PASS {str(last['outcome']).upper()}: {', '.join(shown) or last['detail']}", "bold red")
    if shown and last["detail"]:
        paper.line(str(last["detail"]), indent=2)
    brake = _table(told, "brake")
    # Where it is the first reason, the detail has said so.
    if brake and last["reason"] != RefusalReason.REAP_HOLD:
        paper.line(f"The brake is on since {brake['since']}, by {brake['by']}: {brake['reason']}")
    for remedy in dict.fromkeys(map(remedy_of, shown)):
        if remedy is None:
            continue
        paper.line()
        paper.line(remedy.stands)
        digest = told["plan_digest"]
        for command in remedy.typed(where, None if digest is None else str(digest)):
            paper.command(command)
        if remedy.advice:
            paper.line(remedy.advice)


def _reasons(last: Told) -> list[str]:
    return [str(reason) for reason in (last.get("reason"), *_list(last, "also")) if reason]


def _times(told: Told, paper: Paper, now: datetime) -> None:
    for kind in PassKind:
        last = _table(_table(told, "last"), kind)
        paper.labelled(str(kind), _ended(last, now) if last else "not run yet in this process")
        for label, key in (("look", "last_look"), ("complete", "last_complete")):
            at = _table(told, key).get(kind)
            paper.labelled(f"  {label}", "never" if at is None else _ago(datetime.fromisoformat(str(at)), now))


def _ended(last: Told, now: datetime) -> str:
    reason = f" ({last['reason']})" if last["reason"] else ""
    return f"{last['outcome']}{reason}, {_ago(datetime.fromisoformat(_text(last, 'finished_at')), now)}"


def _ago(at: datetime, now: datetime) -> str:
    return f"{told_time(at)}, {span(now - at)} ago"


def _holds(told: Told, paper: Paper) -> None:
    held = _table(told, "held")
    rows = [(reason, f"{number:,}", _ends(reason)) for reason, number in held.items() if reason != KeepReason.TRACKED]
    if rows:
        paper.line()
        paper.rows(("HELD FOR", "MACHINES", "WHAT ENDS IT"), rows, right=(1,))


def _ends(reason: str) -> str:
    return ENDS_THE_HOLD[KeepReason(reason)] if reason in set(KeepReason) else ""


def _scopes(told: Told, paper: Paper) -> None:
    scopes = [_as_table(entry) for entry in _list(told, "scopes")]
    if not scopes:
        return
    paper.line()
    keys = ("owned", "orphans", "would_terminate", "terminating", "missing")
    header = ("AT THE LAST LOOK", "OWNED", "ORPHANS", "TO GO", "GOING", "MISSING")
    rows = [(_text(entry, "scope"), *(f"{entry[key]:,}" for key in keys)) for entry in scopes[:SHOWN]]
    paper.rows(header, rows, right=(1, 2, 3, 4, 5))
    _more(len(scopes), paper)


def _conditions(told: Told, paper: Paper) -> None:
    """Draw what a person should look at, but for what was told as a reason of the last pass."""
    above = set(_reasons(_table(_table(told, "last"), PassKind.RECONCILE)))
    conditions = [entry for entry in map(_as_table, _list(told, "conditions")) if entry["key"] not in above]
    if not conditions:
        return
    paper.line()
    paper.line("A PERSON SHOULD LOOK AT", "bold", indent=2)
    for entry in conditions[:SHOWN]:
        # Keys are copied, into `reaperd mute`: never folded.
        paper.command(f"{_text(entry, 'severity'):8}  {_text(entry, 'key')}", indent=2)
        if data := _data(_table(entry, "data")):
            paper.line(data, indent=12)
    total = told.get("conditions_total")
    unheard = total - len(_list(told, "conditions")) if isinstance(total, int) else 0
    _more(len(conditions), paper, beyond=unheard)


def _alerts(told: Told, paper: Paper) -> None:
    """Draw how many alerts are open, and which channel does not take what it is sent."""
    alerts = _table(told, "alerts")
    failing = _table(alerts, "failing")
    if not alerts.get("open") and not failing:
        return
    paper.line()
    if number := alerts.get("open"):
        paper.line(f"{many(int(str(number)), 'open alert')}: `reaperd alerts list`")
    for name, trouble in sorted(failing.items()):
        paper.line(f"CHANNEL {name} FAILS: {trouble}", "bold red")


def _more(number: int, paper: Paper, *, beyond: int = 0) -> None:
    """Say how many there are more in the answer, and how many `beyond` it."""
    if number > SHOWN:
        paper.line(f"… {number - SHOWN:,} more: --format json", indent=2)
    if beyond > 0:
        paper.line(f"… and {beyond:,} less severe ones, which the daemon does not list: reaperd plan", indent=2)


def _data(data: Told) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(data.items()) if value not in (None, ""))


def _text(told: Told, key: str) -> str:
    return str(told[key])


def _table(told: Told, key: str) -> Told:
    return _as_table(told.get(key))


def _as_table(value: object) -> Told:
    return cast("Told", value) if isinstance(value, Mapping) else {}


def _list(told: Told, key: str) -> Sequence[object]:
    value = told.get(key)
    return value if isinstance(value, list) else ()
