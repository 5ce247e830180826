"""Holds the evidence against the expectations, leaf by leaf, and says of which leaves it can judge nothing yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from alerts.model import Condition
from reaperd.core.model import OutcomeKind, PassReport
from tests.scenarios.case import Leaf, Tree, Variant, leaves
from tests.scenarios.evidence import Evidence, Pass
from tests.scenarios.laws import EVERYWHERE, LAWS
from tests.scenarios.scraped import Reading

Path = tuple[str, ...]


class NotYetError(Exception):
    """Nothing that is built yet could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation that was really compared with what was seen."""

    path: Path
    leaf: Leaf
    expected: Any
    seen: Any

    @property
    def holds(self) -> bool:
        """Say whether it came as expected."""
        return self.expected == self.seen and type(self.expected) is type(self.seen)


def judge(variant: Variant, evidence: Evidence, expect: Tree | None = None) -> tuple[Check, ...]:
    """Return a check for every expectation that can be judged; `expect` stands in for the variant's own."""
    checks: list[Check] = []
    for path, value in leaves(variant.expect if expect is None else expect):
        try:
            seen = _FAMILIES.get(path[0], _not_yet)(evidence, path[1:])
        except NotYetError:
            continue
        expected, seen = _alike([] if path[0] == "never" else value, seen)
        checks.append(Check(path=path, leaf=variant.origin[path], expected=expected, seen=seen))
    return tuple(checks)


def breaches(evidence: Evidence) -> tuple[str, ...]:
    """Return what breaks a law that holds in every case."""
    return tuple(f"{law.__name__}: {breach}" for law in EVERYWHERE for breach in law(evidence))


# ---------------------------------------------------------------- what was seen, for each kind of expectation


def _not_yet(evidence: Evidence, path: Path) -> Any:
    raise NotYetError


def _terminate(evidence: Evidence, path: Path) -> Any:
    return sorted({name for one in evidence.passes for name in one.accepted})


def _exit(evidence: Evidence, path: Path) -> Any:
    return evidence.ended_with


def _outcome(evidence: Evidence, path: Path) -> Any:
    return _common(str(one.report.outcome) for one in evidence.passes)


def _reason(evidence: Evidence, path: Path) -> Any:
    return _common(one.report.reason for one in evidence.passes)


def _conditions(evidence: Evidence, path: Path) -> Any:
    return sorted({condition.key for _, condition in _told(evidence)})


def _alerts(evidence: Evidence, path: Path) -> Any:
    key, *rest = path
    found = [(moment, condition) for moment, condition in _told(evidence) if condition.key == key]
    match rest:
        case ["severity"]:
            return _common(str(condition.severity) for _, condition in found)
        case ["data", datum]:
            return _common(condition.data.get(datum) for _, condition in found)
        case ["first_at"]:
            return found[0][0] if found else None
        case ["sent"]:
            return evidence.sent.count(("firing", key))
        case _:
            raise NotYetError


def _failed_scopes(evidence: Evidence, path: Path) -> Any:
    codes = {str(entry.scope): entry.error_code for entry in evidence.passes[-1].report.coverage if not entry.ok}
    return codes.get(path[0])


def _pages(evidence: Evidence, path: Path) -> Any:
    return {str(entry.scope): entry.pages for entry in evidence.passes[-1].report.coverage}.get(path[0])


def _holds(evidence: Evidence, path: Path) -> Any:
    return _held(evidence.passes, path[0])


def _outcomes(evidence: Evidence, path: Path) -> Any:
    # In the order in which they came: a list of words, not a set of names.
    return tuple(
        f"{outcome.kind}/{outcome.reason}" if outcome.kind is OutcomeKind.SPARED else str(outcome.kind)
        for report in evidence.reaps
        for outcome in report.outcomes
        if outcome.ref.instance_id == path[0]
    )


def _plan(evidence: Evidence, path: Path) -> Any:
    return _common(_planned(report) for report in evidence.reaps)


def _requests(evidence: Evidence, path: Path) -> Any:
    return sum(e.request.names(path[0]) for one in evidence.passes for e in one.terminates)


def _intents(evidence: Evidence, path: Path) -> Any:
    return tuple(_intent_state(one, path[0]) for one in evidence.passes)


def _registry(evidence: Evidence, path: Path) -> Any:
    same = evidence.passes[0].before.files == evidence.passes[-1].after.files
    return "unchanged" if same else "changed"


def _registry_rows(evidence: Evidence, path: Path) -> Any:
    read = evidence.reaps[-1].registry
    return Counter(str(worker.state) for worker in read.workers)[path[0]] if read else None


def _bad_rows(evidence: Evidence, path: Path) -> Any:
    return sorted({worker.worker_id for report in evidence.reaps for worker in report.bad_rows})


def _readiness(evidence: Evidence, path: Path) -> Any:
    return _common(not one.unready for one in evidence.passes)


def _log(evidence: Evidence, path: Path) -> Any:
    """Return what a field says in every event of one name."""
    event, field = path
    told = (told for one in evidence.passes for told in one.events)
    return _common(fields.get(field) for fields in told if fields["event"] == event)


def _metrics(evidence: Evidence, path: Path) -> Any:
    series, *which = path
    match which:
        case []:
            pages = (evidence.passes[0].scraped[0], *(one.scraped[1] for one in evidence.passes))
            return Reading(series, pages)
        case [ordinal] if ordinal in _ORDINALS:
            return Reading(series, evidence.passes[_ORDINALS.index(ordinal)].scraped[1:])
        case _:
            raise NotYetError


_ORDINALS = ("first", "second", "third")


def _scrapes(evidence: Evidence, path: Path) -> Any:
    number, series = path
    return Reading(series, (evidence.scrapes[int(number) - 1],))


def _leaks(evidence: Evidence, path: Path) -> Any:
    sweeps = [one.report.findings for one in evidence.passes if one.reap is None]
    return _common(sorted(leak.instance.ref.instance_id for leak in found.leaks) for found in sweeps)


def _reaps(evidence: Evidence, path: Path) -> Any:
    number, what, *rest = path
    one = evidence.passes[int(number) - 1]
    report = one.reap
    match what, rest:
        case "accepted", []:
            return list(one.accepted)
        case "deferred", []:
            return sum(o.kind is OutcomeKind.DEFERRED for o in report.outcomes) if report else None
        case "outcome", []:
            return str(one.report.outcome)
        case "reason", []:
            return one.report.reason
        case "holds", [name]:
            return _held([one], name)
        case _:
            raise NotYetError


def _never(evidence: Evidence, path: Path) -> Any:
    law = LAWS.get(path[0])
    if law is None:
        raise NotYetError
    return tuple(law(evidence))


_FAMILIES: Mapping[str, Callable[[Evidence, Path], Any]] = {
    "alerts": _alerts,
    "conditions": _conditions,
    "exit": _exit,
    "failed_scopes": _failed_scopes,
    "holds": _holds,
    "intents": _intents,
    "leaks": _leaks,
    "log": _log,
    "metrics": _metrics,
    "never": _never,
    "outcome": _outcome,
    "outcomes": _outcomes,
    "pages": _pages,
    "plan": _plan,
    "readiness": _readiness,
    "reaps": _reaps,
    "reason": _reason,
    "registry": _registry,
    "registry_rows": _registry_rows,
    "requests": _requests,
    "rows_with_bad_times": _bad_rows,
    "scrapes": _scrapes,
    "terminate": _terminate,
}


# ---------------------------------------------------------------- reading the evidence


def _common(values: Iterable[Any]) -> Any:
    """Return what all of them are; all of them when they differ, None when there are none."""
    found = list(values)
    same = all(value == found[0] for value in found)
    return (found[0] if found else None) if same else tuple(found)


def _told(evidence: Evidence) -> list[tuple[int, Condition]]:
    """Return every condition with the second of the case at which it was told."""
    told: list[tuple[int, Condition]] = []
    for one in evidence.passes:
        conditions = one.reap.conditions if one.reap else one.report.findings.conditions
        second = int((one.report.started_at - evidence.began_at).total_seconds())
        told += [(second, condition) for condition in conditions]
    return told


def _held(passes: Iterable[Pass], name: str) -> Any:
    verdicts = [v for one in passes if one.reap for v in one.reap.verdicts if v.ref.instance_id == name]
    return _common(str(v.call.reason) if not v.terminates else "terminate" for v in verdicts)


def _planned(report: PassReport) -> list[str]:
    return sorted(o.ref.instance_id for o in report.outcomes if o.kind is OutcomeKind.WOULD_TERMINATE)


def _intent_state(one: Pass, name: str) -> str | None:
    rows = [intent for intent in one.after.intents if intent.instance_id == name]
    if not rows or one.reap is None:
        return None
    if rows[-1].closed_as is not None:
        return rows[-1].closed_as
    stuck = any(c.key.startswith("termination_stuck/") and c.key.endswith(f"/{name}") for c in one.reap.conditions)
    return "terminating (stuck)" if stuck else "terminating"


def _alike(expected: Any, seen: Any) -> tuple[Any, Any]:
    """Return both in one form: names in any order, words in theirs, and a number of names where only that is told."""
    if isinstance(seen, Reading):
        return expected, seen.told_like(expected)
    if isinstance(seen, list) and type(expected) is int:
        return expected, len(seen)
    if isinstance(seen, list) and isinstance(expected, list):
        return sorted(expected), sorted(seen)
    if isinstance(seen, tuple) and isinstance(expected, list):
        return tuple(expected), seen
    return expected, seen
