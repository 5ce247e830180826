"""The answer to `explain`: for a person, as JSON and as CSV.

It always says what is from the record and what is of this moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from providers.locations import Gone, Location, NotKnown, OnlyListed, There
from reaperd.core.explain import Account, Dossier, Explanation, Presence, Requirement
from reaperd.core.history import (
    Event,
    EventKind,
    ScopeRecord,
    ToldAnnouncement,
    ToldPass,
    Trace,
    what_comes,
)
from reaperd.report.conditions import commands_of, detail_of, remedy_of
from reaperd.report.document import Document, moment, place, verdict_document
from reaperd.report.paper import Paper
from reaperd.report.parts import span, told_time
from reaperd.report.remedies import Whereabouts
from reaperd.report.sheet import sheet
from registry.model import Worker

SHORT = 8
"""So much of a pass's id is shown; `history --pass` takes it."""

SHOWN_EVENTS = 20

COLUMNS = ("provider", "region", "instance_id", "condition", "met", "settles_at", "detail", "remedy")

_HEADLINES: Mapping[Presence, str] = {
    Presence.GONE: "GONE: the cloud lists it as terminated",
    Presence.NOT_OURS: "NOT OURS: its ownership tag has another value",
    Presence.ABSENT: "NOT THERE: a complete listing does not have it",
    Presence.UNLISTED: "STILL THERE: its end was asked for, and it is not listed with our tag any more",
    Presence.UNPROVED: "NOT PROVED GONE: its end was asked for, and it is not listed any more",
    Presence.UNKNOWN: "UNKNOWN: its scope was not listed whole",
}
_ADVICE: Mapping[Presence, str] = {
    Presence.UNLISTED: "Nothing without our tag is ended: end it by hand, or put the tag back.",
    Presence.UNPROVED: "It may run without our tag: look for it in the cloud's console. `--look` asks for it now.",
}


# ---------------------------------------------------------------- for a person


def draw_dossier(dossier: Dossier, paper: Paper, where: Whereabouts) -> None:
    """Draw what is known of everything that goes by that name."""
    for number, account in enumerate(dossier.accounts):
        if number:
            paper.line()
        _Drawing(dossier, account, paper, where).draw()
    if not dossier.seen:
        _never_seen(dossier, paper)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """One machine, being drawn."""

    dossier: Dossier
    account: Account
    paper: Paper
    where: Whereabouts

    def draw(self) -> None:
        told = self.account.explanation
        self.paper.line(str(told.ref), "bold")
        self._headline(told)
        self.paper.line()
        self._facts(told)
        if told.presence in _ADVICE:
            self.paper.line()
            self.paper.line(_ADVICE[told.presence], "bold")
        if told.presence in {Presence.LISTED, Presence.UNKNOWN}:
            self._in_the_way(told)
        if told.presence is Presence.LISTED:
            self._not_in_the_way(told)
        self._events()

    def _headline(self, told: Explanation) -> None:
        paper = self.paper
        if told.presence is not Presence.LISTED:
            paper.line(_HEADLINES[told.presence], "bold yellow")
        elif told.terminates and told.judgement is not None:
            reason = told.judgement.verdict.call.reason
            if self.dossier.enforcing:
                paper.line(f"TERMINATED BY THE NEXT PASS: {reason}", "bold red")
            else:
                paper.line(f'WOULD BE TERMINATED: {reason}. mode is "dry-run", so nothing is sent', "bold red")
        else:
            reasons = [each.about for each in told.in_the_way if each.met is False]
            paper.line(f"KEPT: {', '.join(reasons)}", "bold green")
            paper.line(_when(told))

    # ------------------------------------------------------------ what is known

    def _facts(self, told: Explanation) -> None:
        dossier, paper, now = self.dossier, self.paper, self.dossier.now
        instance, trace = told.instance, self.account.trace
        worker = instance.worker_id if instance is not None else trace.worker_id
        paper.labelled("worker", worker or "none in its tag")
        if instance is not None:
            kind = f", {instance.instance_type}" if instance.instance_type else ""
            launched = f", launched {told_time(instance.launched_at)}" if instance.launched_at else ""
            paper.labelled("machine", f"{instance.state}{kind}{launched}")
        if trace.sighting is not None:
            first, last = trace.sighting.first_seen_at, trace.sighting.last_seen_at
            paper.labelled("first seen", f"{told_time(first)}, {span(now - first)} ago")
            paper.labelled("last seen", f"{told_time(last)}, {span(now - last)} ago: {trace.sighting.verdict}")
        if told.intent is not None and told.presence in _ADVICE:
            asked = told.intent.first_requested_at
            paper.labelled("its end", f"asked for at {told_time(asked)}, {span(now - asked)} ago, and not confirmed")
            paper.labelled("by its id", _located(told.location, dossier))
        if trace.announced is not None and trace.announced_at is not None:
            paper.labelled("announced", _announced(trace.announced, trace.announced_at, now))
        for row in self.account.rows:
            paper.labelled("row", _row(row, dossier))
        if not self.account.rows:
            paper.labelled("row", _no_row(dossier))
        _judged_on(dossier, paper)

    # ------------------------------------------------------------ the conditions

    def _in_the_way(self, told: Explanation) -> None:
        paper, policy = self.paper, self.dossier.policy
        unmet = [each for each in told.in_the_way if each.met is False]
        if unmet:
            paper.line()
            paper.line(f"IN THE WAY OF ITS TERMINATION ({len(unmet)})", "bold")
        for each in unmet:
            paper.line(f"{each.about}: {detail_of(each, told, policy)}", "bold", indent=2)
            self._remedy(each, told)
            if each.settles_at is not None:
                paper.line(f"time settles it {_at(each, told)}", indent=4)

    def _remedy(self, requirement: Requirement, told: Explanation) -> None:
        digest = _plan_with(told, self.dossier)
        commands = commands_of(requirement, self.where, digest)
        for command in commands:
            self.paper.command(command)
        remedy = remedy_of(requirement, self.where, digest)
        if remedy and not commands:
            self.paper.line(remedy, indent=4)

    def _not_in_the_way(self, told: Explanation) -> None:
        paper, policy = self.paper, self.dossier.policy
        unjudged = [each for each in told.in_the_way if each.met is None]
        if unjudged:
            paper.line()
            paper.line(f"NOT JUDGED ({len(unjudged)}): {', '.join(each.about for each in unjudged)}")
        met = [each for each in told.requirements if each.met]
        own = [each for each in met if detail_of(each, told, policy)]
        paper.line()
        paper.line(f"NOT IN THE WAY ({len(met)})", "bold")
        paper.rows(("CONDITION", "HOW IT STANDS"), [(each.about, detail_of(each, told, policy)) for each in own])
        rest = ", ".join(each.about for each in met if each not in own)
        if rest:
            paper.line(f"and nothing of: {rest}", indent=2)

    # ------------------------------------------------------------ what happened

    def _events(self) -> None:
        happened, paper = self.account.trace.events, self.paper
        paper.line()
        if not happened:
            paper.line("Nothing about it is recorded.")
            return
        shown = happened[-SHOWN_EVENTS:]
        left = len(happened) - len(shown)
        paper.line(f"WHAT HAPPENED ({len(happened)})" + (f", the last {len(shown)}" if left else ""), "bold")
        paper.rows(("WHEN (UTC)", "WHAT", "PASS", "EVIDENCE"), [_event(event) for event in shown])


def _when(told: Explanation) -> str:
    """Say when it will go if nobody does anything."""
    if told.settles_at is not None:
        at = told.settles_at
        return f"If nothing else changes, time settles it at {told_time(at)}, in {span(at - told.now)}."
    earliest = told.not_before
    if earliest is None:
        return "Time alone does not settle it."
    when = f", not before {told_time(earliest)}, in {span(earliest - told.now)}" if earliest > told.now else ""
    return f"If nothing else changes, further looks settle it{when}."


def _plan_with(told: Explanation, dossier: Dossier) -> str | None:
    """Return the name of the newest pass's plan, if this machine is in it: another cannot let it through."""
    newest = dossier.newest
    if newest is None:
        return None
    planned = any(verdict.ref == told.ref and verdict.terminates for verdict in newest.verdicts)
    return newest.plan_digest if planned else None


def _at(requirement: Requirement, told: Explanation) -> str:
    at = requirement.settles_at or told.now
    return f"at {told_time(at)}, in {span(at - told.now)}"


def _located(location: Location | None, dossier: Dossier) -> str:
    if isinstance(location, There):
        tag = dossier.owner_tag
        return f"{location.state}, " + (f"{tag} = {location.owner}" if location.owner else f"without the tag {tag}")
    why = location.detail if dossier.live and isinstance(location, NotKnown) else "the record keeps no such answer"
    return f"not known: {why}"


def _row(row: Worker, dossier: Dossier) -> str:
    names = f"{row.provider}/{row.region}/{row.instance_id or '(no instance id yet)'}"
    beat = f", heartbeat {span(dossier.now - row.heartbeat_at)} ago" if row.heartbeat_at else ", never beat"
    return f"{row.worker_id}, {row.state}: {names}{beat}"


def _no_row(dossier: Dossier) -> str:
    trouble = dossier.registry_trouble
    return f"not known: the registry cannot be read: {trouble}" if trouble else "none in the registry, read now"


def _judged_on(dossier: Dossier, paper: Paper) -> None:
    if dossier.trouble:
        paper.labelled("LOOK FAILED", f"{dossier.trouble}. What follows is from the record.", "bold red")
    if dossier.live:
        paper.labelled("judged on", "a look made now, which left no trace; registry and clock of this moment")
    elif dossier.looked_at is None:
        paper.labelled("judged on", "nothing: no complete look is recorded. --look asks the clouds now", "bold")
    else:
        ago = span(dossier.now - dossier.looked_at)
        text = f"the last complete look, {told_time(dossier.looked_at)}, {ago} ago, from the record (--look asks the "
        paper.labelled("judged on", f"{text}clouds now); the registry and the clock of this moment")
    if dossier.newest is not None:
        paper.labelled("newest pass", _newest(dossier.newest, dossier))


def _newest(newest: ToldPass, dossier: Dossier) -> str:
    reason = f": {newest.reason}" if newest.reason else ""
    return f"{told_time(newest.at)}, {span(dossier.now - newest.at)} ago: {newest.outcome}{reason}, {newest.mode}"


def _announced(heard: ToldAnnouncement, at: datetime, now: datetime) -> str:
    return f"{heard.code}: {what_comes(heard)}. Heard by the audit of {told_time(at)}, {span(now - at)} ago"


def _event(event: Event) -> tuple[str, str, str, str]:
    when = told_time(event.at).removesuffix(" UTC")
    name = event.name.upper() if event.kind is EventKind.ACT else event.name
    return (when, name, (event.pass_id or "")[:SHORT], _evidence(event))


def _evidence(event: Event) -> str:
    verdict = event.verdict
    if verdict is None:
        return event.detail
    age = None if verdict.age_seconds is None else timedelta(seconds=verdict.age_seconds)
    return f"{span(age)} old, {verdict.confirmations}/{verdict.confirmations_needed} looks"


def _never_seen(dossier: Dossier, paper: Paper) -> None:
    if dossier.accounts:
        paper.line()
    tag = f"{dossier.owner_tag} = {dossier.policy.deployment}"
    paper.line(f"{dossier.asked}: NEVER SEEN", "bold yellow")
    paper.line(f"No recorded look listed a machine or a worker of that name with our tag {tag}.")
    if not dossier.accounts:
        for row in dossier.rows:
            paper.labelled("row", _row(row, dossier))
        if not dossier.rows:
            paper.labelled("row", _no_row(dossier))
        _judged_on(dossier, paper)
    whole = [scope for scope in dossier.scopes if scope.whole]
    paper.line()
    if not whole:
        paper.line("No complete listing is recorded, so nothing is proved.")
    if dossier.scopes:
        paper.rows(
            ("SCOPE", "LISTED WHOLE", "FIRST (UTC)", "LAST (UTC)", "NOT WHOLE"),
            map(_scope, dossier.scopes),
            right=(1, 4),
        )
    if whole:
        paper.line()
        paper.line(
            "At those times it was not there, or it did not carry the tag. `reaperd audit` shows what runs without."
        )


def _scope(record: ScopeRecord) -> tuple[str, ...]:
    first, last = _minute(record.first_whole_at), _minute(record.last_whole_at)
    return (record.scope, f"{record.whole:,}", first, last, f"{record.failed:,}")


def _minute(when: datetime | None) -> str:
    return "-" if when is None else told_time(when)[:16]


# ---------------------------------------------------------------- JSON


def dossier_document(dossier: Dossier, where: Whereabouts) -> Document:
    """Return the answer as JSON data."""
    return {
        "kind": "explanation",
        "asked": dossier.asked,
        "at": moment(dossier.now),
        "mode": "enforce" if dossier.enforcing else "dry-run",
        "seen": dossier.seen,
        "judged_on": {
            "source": "look" if dossier.live else "record",
            "listed_at": None if dossier.looked_at is None else moment(dossier.looked_at),
            "trouble": dossier.trouble,
        },
        "newest_pass": None if dossier.newest is None else _newest_document(dossier.newest),
        "machines": [_account(account, dossier, where) for account in dossier.accounts],
        "rows": [_row_document(row) for row in dossier.rows],
        "scopes": [_scope_document(scope) for scope in dossier.scopes],
    }


def _account(account: Account, dossier: Dossier, where: Whereabouts) -> Document:
    told, trace = account.explanation, account.trace
    judged, sighting = told.judgement, trace.sighting
    needed = dossier.policy.confirm_passes
    return {
        **place(told.ref),
        "presence": str(told.presence),
        "located": _location_document(told.location),
        "would_terminate": told.terminates,
        "settles_at": None if told.settles_at is None else moment(told.settles_at),
        "verdict": None if judged is None else verdict_document(judged.verdict, needed),
        "conditions": [_condition(each, told, dossier, where) for each in told.requirements],
        "first_seen_at": None if sighting is None else moment(sighting.first_seen_at),
        "last_seen_at": None if sighting is None else moment(sighting.last_seen_at),
        "last_verdict": None if sighting is None else sighting.verdict,
        "announced": _announced_document(trace),
        "rows": [_row_document(row) for row in account.rows],
        "events": [_event_document(event) for event in trace.events],
    }


def _location_document(location: Location | None) -> Document | None:
    match location:
        case There(state, owner):
            return {"answer": "there", "state": str(state), "owner": owner, "detail": ""}
        case NotKnown(why):
            return {"answer": "not_known", "state": None, "owner": None, "detail": why}
        case Gone():
            return {"answer": "gone", "state": None, "owner": None, "detail": ""}
        case OnlyListed() | None:
            return None


def _announced_document(trace: Trace) -> Document | None:
    heard, at = trace.announced, trace.announced_at
    if heard is None or at is None:
        return None
    goes_at = None if heard.at is None else moment(heard.at)
    return {"code": heard.code, "ends": heard.ends, "at": goes_at, "heard_at": moment(at)}


def _condition(requirement: Requirement, told: Explanation, dossier: Dossier, where: Whereabouts) -> Document:
    return {
        "condition": requirement.about,
        "met": requirement.met,
        "settles_at": None if requirement.settles_at is None else moment(requirement.settles_at),
        "detail": detail_of(requirement, told, dossier.policy),
        "remedy": remedy_of(requirement, where, _plan_with(told, dossier)),
    }


def _event_document(event: Event) -> Document:
    verdict = event.verdict
    return {
        "at": moment(event.at),
        "kind": str(event.kind),
        "name": event.name,
        "mode": event.mode,
        "pass_id": event.pass_id,
        "age_seconds": None if verdict is None else verdict.age_seconds,
        "confirmations": None if verdict is None else verdict.confirmations,
        "confirmations_needed": None if verdict is None else verdict.confirmations_needed,
        "detail": event.detail,
    }


def _newest_document(newest: ToldPass) -> Document:
    return {
        "pass_id": newest.pass_id,
        "started_at": moment(newest.at),
        "mode": newest.mode,
        "outcome": newest.outcome,
        "reason": newest.reason,
    }


def _row_document(row: Worker) -> Document:
    return {
        "worker_id": row.worker_id,
        "provider": row.provider,
        "region": row.region,
        "instance_id": row.instance_id,
        "state": str(row.state),
        "heartbeat_at": None if row.heartbeat_at is None else moment(row.heartbeat_at),
    }


def _scope_document(record: ScopeRecord) -> Document:
    return {
        "scope": record.scope,
        "whole": record.whole,
        "first_whole_at": None if record.first_whole_at is None else moment(record.first_whole_at),
        "last_whole_at": None if record.last_whole_at is None else moment(record.last_whole_at),
        "failed": record.failed,
        "last_failed_at": None if record.last_failed_at is None else moment(record.last_failed_at),
    }


# ---------------------------------------------------------------- CSV


def dossier_sheet(dossier: Dossier, where: Whereabouts) -> str:
    """Return one line for every condition of every machine."""
    return sheet(COLUMNS, _conditions(dossier, where))


def _conditions(dossier: Dossier, where: Whereabouts) -> Iterable[Document]:
    for account in dossier.accounts:
        told = account.explanation
        for each in told.requirements:
            yield {**place(told.ref), **_condition(each, told, dossier, where)}
