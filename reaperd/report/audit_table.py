"""A sweep for a person: what leaks first, then what somebody should correct."""

from __future__ import annotations

from collections.abc import Sequence

from providers.events import ProviderEvent, Unheard
from providers.model import InstanceState
from reaperd.core.ignoring import RuleState, RuleUse
from reaperd.core.leaks import AuditReport, Ignored, Leak, oldest_first
from reaperd.core.model import PassOutcome, RefusalReason
from reaperd.report.paper import Paper
from reaperd.report.parts import SHOWN_SCOPES, draw_coverage, draw_more, many, span, told_time
from reaperd.report.visible import clipped

SHOWN = 20
MINUTES = len("2026-01-10 12:00")
"""So much of a time is shown where the cloud itself only guesses."""
SHOWN_ASIDE = 5
"""So many machines are shown of those that are only worth a mention."""


def draw_audit(report: AuditReport, paper: Paper, *, everything: bool) -> None:
    """Draw one sweep."""
    found = report.findings
    _headline(report, paper)
    paper.line()
    draw_coverage(report.coverage, paper, None if everything else SHOWN_SCOPES, whose="in all")
    if report.skipped:
        paper.labelled("skipped", f"{', '.join(report.skipped)}: this kind of provider cannot be audited", "bold")
    if report.unheard:
        paper.labelled("unheard", _unheard(report.unheard), "bold")
    paper.labelled("machines", f"{found.instances:,} seen, {found.owned:,} of them ours")
    paper.labelled("leaks", _leaks_told(found.leaks), "bold red" if found.leaks else "")
    took = (report.finished_at - report.started_at).total_seconds()
    paper.labelled("sweep", f"{told_time(report.started_at)}, {took:.1f} s, {report.pass_id}")
    aside = None if everything else SHOWN_ASIDE
    many_shown = None if everything else SHOWN
    _leaks([leak for leak in found.leaks if not leak.stopped], "LEAKS", paper, many_shown)
    stopped = [leak for leak in found.leaks if leak.stopped]
    _leaks(stopped, "STOPPED LEAKS, which bill their disks", paper, many_shown)
    _unknown(found.unknown_age, paper, aside)
    _near_misses(found.near_misses, paper, aside)
    _announced(report.events, paper, aside)
    _out_of_scope(report, paper, aside)
    _ignored(found.ignored, paper, aside)
    _idle_rules(report.idle_rules, paper)


def _headline(report: AuditReport, paper: Paper) -> None:
    leaks = len(report.findings.leaks)
    if report.reason == RefusalReason.CLOCK:
        paper.line("NOT TO BE BELIEVED: the clock is wrong, and with it every age below", "bold red")
        paper.line(report.detail)
    elif report.outcome is not PassOutcome.COMPLETE:
        paper.line("INCOMPLETE: not everything was looked at; this is what the rest showed", "bold red")
        paper.line("End the error of what FAILED, and look again:")
        paper.command("reaperd audit")
    if leaks:
        paper.line(f"LEAKS: {many(leaks, 'machine')} that nobody owns", "bold red")
        paper.line(
            "An audit terminates nothing. Find whose they are and end them where they were launched; what is known "
            "and may stay gets an [[audit.ignore]] table with a reason."
        )
    elif report.outcome is PassOutcome.COMPLETE:
        paper.line("no leaks", "green")


def _leaks_told(leaks: Sequence[Leak]) -> str:
    """Return how many there are and what they cost. The price of a stopped one is not what it costs."""
    costs = [leak.instance.cost_per_hour_usd for leak in leaks if not leak.stopped]
    known = [cost for cost in costs if cost is not None]
    told = [f"{len(leaks):,}"]
    if known:
        told.append(f"${sum(known):,.2f} an hour")
        if len(known) < len(costs):
            told.append(f"and {len(costs) - len(known):,} of unknown price")
    if len(costs) < len(leaks):
        told.append(f"{len(leaks) - len(costs):,} of them stopped")
    return ", ".join(told)


def _leaks(leaks: Sequence[Leak], title: str, paper: Paper, limit: int | None) -> None:
    if not leaks:
        return
    priced = any(_price(leak) is not None for leak in leaks)
    header = ("INSTANCE", "PLACE", "TYPE", "AGE", *(("$/H",) if priced else ()), "NAME")
    shown = oldest_first(leaks)[:limit]
    paper.line()
    paper.line(f"{title} ({len(leaks):,})", "bold red")
    paper.rows(header, [_leak(leak, priced=priced) for leak in shown], right=(3, 4) if priced else (3,))
    draw_more(len(leaks), limit, paper)


def _leak(leak: Leak, *, priced: bool) -> tuple[str, ...]:
    instance = leak.instance
    cost = _price(leak)
    state = None if leak.stopped or instance.state is InstanceState.RUNNING else str(instance.state)
    aside = ", ".join(word for word in (state, None if leak.event is None else leak.event.fault_code) if word)
    return (
        instance.ref.instance_id,
        str(instance.ref.scope),
        instance.instance_type or "-",
        span(leak.age),
        *(("-" if cost is None else f"{cost:.2f}",) if priced else ()),
        clipped(instance.name or "-") + (f" ({clipped(aside)})" if aside else ""),
    )


def _price(leak: Leak) -> float | None:
    return None if leak.stopped else leak.instance.cost_per_hour_usd


def _unknown(leaks: Sequence[Leak], paper: Paper, limit: int | None) -> None:
    if not leaks:
        return
    paper.line()
    title = "AGE UNKNOWN"
    paper.line(f"{title} ({len(leaks):,}): a leak once it was seen by the daemon for longer than max_age", "bold")
    rows = [
        (leak.instance.ref.instance_id, str(leak.instance.ref.scope), clipped(leak.instance.name or "-"))
        for leak in leaks
    ]
    paper.rows(("INSTANCE", "PLACE", "NAME"), rows[:limit])
    draw_more(len(leaks), limit, paper)


def _near_misses(near: Sequence[Leak], paper: Paper, limit: int | None) -> None:
    if not near:
        return
    paper.line()
    paper.line(f"ALMOST OURS ({len(near):,}): correct the tag if they are ours; never terminated as they are", "bold")
    rows = [
        (leak.instance.ref.instance_id, str(leak.instance.ref.scope), clipped(leak.near_miss or ""))
        for leak in near[:limit]
    ]
    paper.rows(("INSTANCE", "PLACE", "TAG"), rows)
    draw_more(len(near), limit, paper)


def _unheard(unheard: Sequence[Unheard]) -> str:
    """Return where announcements could not be had. What runs there was seen all the same."""
    told = [f"{entry.scope} ({entry.error_code})" for entry in unheard[:SHOWN_ASIDE]]
    more = "" if len(unheard) == len(told) else f", and {len(unheard) - len(told):,} more"
    return f"what the cloud announces could not be had in {', '.join(told)}{more}"


def _announced(events: Sequence[ProviderEvent], paper: Paper, limit: int | None) -> None:
    if not events:
        return
    paper.line()
    paper.line(f"ANNOUNCED ({len(events):,}) by the clouds, also for machines that are gone", "bold")
    rows = [(event.ref.instance_id, str(event.ref.scope), _when(event), clipped(event.fault_code)) for event in events]
    paper.rows(("INSTANCE", "PLACE", "WHEN (UTC)", "WHAT"), rows[:limit])
    draw_more(len(events), limit, paper)


def _when(event: ProviderEvent) -> str:
    return "-" if event.termination_time is None else told_time(event.termination_time)[:MINUTES]


def _out_of_scope(report: AuditReport, paper: Paper, limit: int | None) -> None:
    found = [str(ref) for ref in report.findings.out_of_scope]
    if not found:
        return
    paper.line()
    paper.line(f"OURS, WHERE THE REAPER DOES NOT LOOK ({len(found):,}): add the region to [[providers]]", "bold")
    for subject in found[:limit]:
        paper.line(subject, indent=2)
    draw_more(len(found), limit, paper)


def _ignored(ignored: Sequence[Ignored], paper: Paper, limit: int | None) -> None:
    if not ignored:
        return
    paper.line()
    paper.line(f"IGNORED ({len(ignored):,}), by [[audit.ignore]]", "bold")
    rows = [
        (entry.leak.instance.ref.instance_id, str(entry.leak.instance.ref.scope), entry.reason) for entry in ignored
    ]
    paper.rows(("INSTANCE", "PLACE", "REASON"), rows[:limit])
    draw_more(len(ignored), limit, paper)


def _idle_rules(idle: Sequence[tuple[RuleUse, RuleState]], paper: Paper) -> None:
    if not idle:
        return
    paper.line()
    paper.line(f"RULES TO CORRECT ({len(idle):,}), of [[audit.ignore]] by their place in the file", "bold")
    paper.rows(("RULE", "WHY", "REASON"), [(f"{use.number}", _why(use, state), use.rule.reason) for use, state in idle])


def _why(use: RuleUse, state: RuleState) -> str:
    if state is RuleState.EXPIRED:
        again = f", {many(use.matched, 'machine')} told again" if use.matched else ""
        return f"ended {use.rule.until}{again}"
    return "no machine matches"
