"""A pass for a person: the summary and what to do first, then the machines that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from alerts.model import Condition
from providers.model import InstanceState
from reaperd.core.model import Mode, Outcome, OutcomeKind, PassOutcome, PassReport, Plan, RefusalReason, Verdict
from reaperd.report.paper import Paper
from reaperd.report.parts import SHOWN_SCOPES, counts, draw_coverage, draw_more, hourly, many, span, told_time
from reaperd.report.remedies import ENDS_THE_HOLD, Whereabouts, naming_its_configuration, remedy_of

SHOWN = 20
"""So many machines are shown unless all are asked for."""

SHOWN_ROWS = 5
"""So many registry rows are shown of those that are only worth a mention."""

_AS_PLANNED = frozenset(
    {OutcomeKind.WOULD_TERMINATE, OutcomeKind.REQUESTED, OutcomeKind.ALREADY_GONE, OutcomeKind.CONFIRMED_GONE}
)


_ABOUT_THE_REGISTRY = frozenset(
    {RefusalReason.REGISTRY_UNUSABLE, RefusalReason.REGISTRY_IDENTITY, RefusalReason.REGISTRY_MISMATCH}
)


def draw_pass(report: PassReport, paper: Paper, where: Whereabouts, *, everything: bool) -> None:
    """Draw one pass."""
    _headline(report, paper, where)
    _what_to_do(report, paper, where)
    paper.line()
    limit = None if everything else SHOWN
    draw_coverage(report.coverage, paper, None if everything else SHOWN_SCOPES)
    _summary(report, paper)
    _outcomes(report.outcomes, paper, limit)
    _machines(report, paper, limit)
    _rows(report, paper, None if everything else SHOWN_ROWS)


# ---------------------------------------------------------------- the headline


def _headline(report: PassReport, paper: Paper, where: Whereabouts) -> None:
    if report.mode is Mode.DRY_RUN:
        paper.line("REHEARSAL: nothing was terminated", "bold yellow")
    else:
        paper.line(f"ENFORCING: {_sent(report.outcomes)}", "bold red")
    if report.outcome is PassOutcome.COMPLETE:
        paper.line("complete", "green")
        return
    reason = f": {report.reason}" if report.reason else ""
    also = f" (also: {', '.join(report.also)})" if report.also else ""
    paper.line(f"{report.outcome.upper()}{reason}{also}", "bold red")
    if report.detail:
        paper.line(_with_its_file(report, where), indent=2)


def _with_its_file(report: PassReport, where: Whereabouts) -> str:
    """Return what is told, beginning with the registry's name where that is what it is about."""
    if report.reason not in _ABOUT_THE_REGISTRY:
        return report.detail
    told = naming_its_configuration(report.detail, where)
    return told if where.registry in told else f"{where.registry}: {told}"


def _sent(outcomes: Iterable[Outcome]) -> str:
    kinds = Counter(outcome.kind for outcome in outcomes)
    requested, unknown = kinds[OutcomeKind.REQUESTED], kinds[OutcomeKind.UNKNOWN]
    if not requested and not unknown:
        return "nothing was terminated in this pass"
    text = f"{many(requested, 'termination')} requested"
    return f"{text}, {unknown} of unknown result" if unknown else text


def _what_to_do(report: PassReport, paper: Paper, where: Whereabouts) -> None:
    reasons = (report.reason or "", *report.also) if report.outcome is not PassOutcome.COMPLETE else ()
    remedies = dict.fromkeys(map(remedy_of, reasons))
    for remedy in remedies:
        if remedy is None:
            continue
        paper.line()
        paper.line(remedy.stands)
        for command in remedy.typed(where, report.digest):
            paper.command(command)
        if remedy.advice:
            paper.line(remedy.advice)


# ---------------------------------------------------------------- the summary


def _summary(report: PassReport, paper: Paper) -> None:
    registry = report.registry
    if registry is None:
        paper.labelled("registry", "not read")
    else:
        live = sum(1 for worker in registry.workers if worker.state.is_live)
        known = registry.identity
        rows = f"{many(registry.rows, 'row')}, {live:,} live"
        paper.labelled("registry", f"{known.registry_id}, epoch {known.epoch}: {rows}")
    _verdicts(report, paper)
    if report.outcomes:
        paper.labelled("outcomes", counts(str(outcome.kind) for outcome in report.outcomes))
    for condition in report.conditions:
        if not condition.subject and str(condition.cause) not in {report.reason, *report.also}:
            paper.labelled(str(condition.severity), _told(condition), "bold")
    took = (report.finished_at - report.started_at).total_seconds()
    paper.labelled("pass", f"{told_time(report.started_at)}, {took:.1f} s, {report.pass_id}")
    if report.digest is not None:
        # On one line whatever the width: it is there to be copied.
        paper.command(f"plan {report.digest}", indent=0)


def _verdicts(report: PassReport, paper: Paper) -> None:
    if report.outcome is PassOutcome.REFUSED and not report.verdicts:
        paper.labelled("verdicts", "none: the pass stood down before any machine was judged")
        return
    for verb, going in (("terminate", True), ("keep", False)):
        chosen = [verdict for verdict in report.verdicts if verdict.terminates is going]
        told = _counted(len(chosen), (str(verdict.call.reason) for verdict in chosen))
        paper.labelled(verb, f"{told}{_cost(chosen) if going else ''}")


def _cost(verdicts: Iterable[Verdict]) -> str:
    """Return what they cost, as far as that is known. The price of a stopped one is not what it costs."""
    running = [verdict for verdict in verdicts if verdict.instance.state is not InstanceState.STOPPED]
    known = [verdict.cost_per_hour_usd for verdict in running if verdict.cost_per_hour_usd is not None]
    if not known:
        return ""
    unknown = len(running) - len(known)
    return f"; {hourly(known)}" + (f" and {unknown:,} of unknown price" if unknown else "")


def _told(condition: Condition) -> str:
    data = ", ".join(f"{key} {value}" for key, value in sorted(condition.data.items()))
    return f"{condition.cause}: {data}" if data else str(condition.cause)


def _counted(number: int, reasons: Iterable[str]) -> str:
    return f"{number:,}: {counts(reasons)}" if number else "0"


# ---------------------------------------------------------------- the machines


def _outcomes(outcomes: Sequence[Outcome], paper: Paper, limit: int | None) -> None:
    """Draw what did not go as planned."""
    odd = [outcome for outcome in outcomes if outcome.kind not in _AS_PLANNED]
    if not odd:
        return
    paper.line()
    paper.line(f"NOT AS PLANNED ({len(odd):,})", "bold red")
    rows = [(str(outcome.kind), outcome.ref.instance_id, str(outcome.ref.scope), _why(outcome)) for outcome in odd]
    paper.rows(("OUTCOME", "INSTANCE", "PLACE", "WHY"), rows[:limit])
    draw_more(len(odd), limit, paper)


def _why(outcome: Outcome) -> str:
    parts = dict.fromkeys(part for part in (outcome.reason, outcome.error_code, outcome.detail) if part)
    return ": ".join(parts)


def _machines(report: PassReport, paper: Paper, limit: int | None) -> None:
    left = limit
    for title, style, verdicts in _groups(report):
        if not verdicts:
            continue
        shown = verdicts[:left]
        if shown:
            paper.line()
            paper.line(f"{title} ({len(verdicts):,})", style)
            paper.rows(
                ("INSTANCE", "PLACE", "REASON", "AGE", "LOOKS", "WORKER"),
                [_machine(verdict, report.confirmations_needed) for verdict in shown],
                right=(3, 4),
            )
            if title == _HELD:
                _what_ends_them(shown, paper)
        left = None if left is None else left - len(shown)
    draw_more(len(report.verdicts), limit, paper)


_HELD = "HELD, A PERSON HAS TO DECIDE"


def _groups(report: PassReport) -> tuple[tuple[str, str, tuple[Verdict, ...]], ...]:
    """Return the machines in the order in which they matter."""
    told = {condition.subject for condition in report.conditions}
    going = Plan(verdicts=report.verdicts, digest=report.digest).terminations
    kept = [verdict for verdict in report.verdicts if not verdict.terminates]
    held = tuple(verdict for verdict in kept if str(verdict.ref) in told)
    others = sorted((v for v in kept if str(v.ref) not in told), key=lambda v: (v.orphan is None, v.ref))
    carried_out = report.mode is Mode.ENFORCE and report.outcome is not PassOutcome.REFUSED
    title = "TERMINATE" if carried_out else "WOULD TERMINATE"
    return ((title, "bold red", going), (_HELD, "bold yellow", held), ("KEPT", "bold", tuple(others)))


def _machine(verdict: Verdict, needed: int) -> tuple[str, ...]:
    return (
        verdict.ref.instance_id,
        str(verdict.ref.scope),
        str(verdict.call.reason),
        span(verdict.age),
        f"{verdict.confirmations}/{needed}" if verdict.orphan is not None else "-",
        verdict.instance.worker_id or "-",
    )


def _what_ends_them(verdicts: Iterable[Verdict], paper: Paper) -> None:
    reasons = {str(verdict.call.reason) for verdict in verdicts}
    for reason, text in ENDS_THE_HOLD.items():
        if reason in reasons:
            paper.line(f"{reason}: {text}.", indent=2)


def _rows(report: PassReport, paper: Paper, limit: int | None) -> None:
    """Draw what of the registry somebody should know. Nothing is done about it."""
    missing = [f"{w.worker_id} ({w.provider}/{w.region}/{w.instance_id})" for w in report.missing]
    bad = [f"{w.worker_id} ({', '.join(w.unreadable) or 'a time in the future'})" for w in report.bad_rows]
    about = (
        ("missing", missing, "tracked, but in no listing; only reported"),
        ("bad times", bad, "rows with a time that cannot be read or lies in the future; they protect"),
    )
    for label, entries, meaning in about:
        if not entries:
            continue
        paper.line()
        paper.line(f"{label.upper()} ({len(entries):,}): {meaning}", "bold")
        for entry in entries[:limit]:
            paper.line(entry, indent=2)
        draw_more(len(entries), limit, paper)
