"""What may not go wrong between the clouds and the decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reaperd.core.model import PassOutcome, RefusalReason
from tests.scenarios.evidence import Evidence, Pass
from tests.scenarios.laws.reading import is_judged, numbered, ours, owner, why
from tests.scenarios.registry_file import LIVE


def stops_at_an_empty_page(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        asked = Counter(f"aws/{e.region}" for e in one.asked if "MaxResults" in e.request.params)
        for entry in one.report.coverage:
            if entry.ok and (
                entry.pages != asked[str(entry.scope)] or entry.instances != _listable(evidence, one, entry)
            ):
                yield f"pass {number} took {entry.instances} machines on {entry.pages} pages for {entry.scope}"


def _listable(evidence: Evidence, one: Pass, entry: object) -> int:
    scope = str(getattr(entry, "scope", ""))
    here = [m for m in one.before.machines if f"aws/{m.region}" == scope and m.state != "terminated"]
    return len(here) if one.reap is None else sum(1 for m in here if owner(m) == evidence.owner)


def overlooks_a_machine(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if one.reap is None or not is_judged(one.reap):
            continue
        judged = {v.ref.instance_id for v in one.reap.verdicts}
        yield from (f"pass {number} overlooked {name}" for name in sorted(ours(evidence, one) - judged))


def judges_what_is_not_ours(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        judged = {v.ref.instance_id for v in one.reap.verdicts} if one.reap else set()
        yield from (f"pass {number} judged {name}" for name in sorted(judged - ours(evidence, one)))


def reads_only_some_rows(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        read = one.reap.registry if one.reap else None
        if read is not None and not one.disturbed and len(read.workers) != len(one.before.rows):
            yield f"pass {number} read {len(read.workers)} of {len(one.before.rows)} rows"


def reads_the_registry_first(evidence: Evidence) -> Iterator[str]:
    """A row that is there before the first terminate, and was not before the pass, came during the listing."""
    for number, one in numbered(evidence):
        if one.reap is None or not one.disturbed:
            continue
        before = {row["instance_id"] for row in one.before.rows}
        new = {row["instance_id"] for row in one.after.rows if row["state"] in LIVE} - before
        for verdict in one.reap.verdicts:
            if verdict.ref.instance_id in new and why(verdict) != "keep/tracked":
                yield f"pass {number} did not see the row of {verdict.ref.instance_id}"


def tracks_without_a_live_row(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        live = [row for row in (*one.before.rows, *one.after.rows) if row["state"] in LIVE]
        by_id = {row["instance_id"] for row in live}
        unplaced = {row["worker_id"] for row in live if row["instance_id"] is None}
        for verdict in one.reap.verdicts if one.reap else ():
            accounted = verdict.ref.instance_id in by_id or verdict.instance.worker_id in unplaced
            if why(verdict) == "keep/tracked" and not accounted:
                yield f"pass {number} tracked {verdict.ref.instance_id}"


def unprotects_by_a_bad_time(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        bad = {worker.instance_id for worker in one.reap.bad_rows} if one.reap else set()
        for verdict in one.reap.verdicts if one.reap else ():
            if verdict.ref.instance_id in bad and why(verdict) != "keep/tracked":
                yield f"pass {number} did not let the row of {verdict.ref.instance_id} protect it"


def stumbles_over_a_naive_time(evidence: Evidence) -> Iterator[str]:
    if evidence.steps_left:
        yield "the process ended"
    yield from (f"a pass was {r.outcome}" for r in evidence.reaps if r.outcome is not PassOutcome.COMPLETE)


def gets_an_age_wrong(evidence: Evidence) -> Iterator[str]:
    for verdict in (v for report in evidence.reaps for v in report.verdicts):
        true = evidence.true_ages.get(verdict.ref.instance_id, verdict.age)
        if verdict.age != true:
            yield f"{verdict.ref.instance_id} is {true} old, not {verdict.age}"


def takes_the_first_few(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if one.reap and one.reap.reason == RefusalReason.BREAKER_OPEN and (one.changes or one.accepted):
            yield f"pass {number} ended {one.accepted} although the breaker was open"


def closes_the_breaker_itself(evidence: Evidence) -> Iterator[str]:
    reasons = [report.reason for report in evidence.reaps]
    if RefusalReason.BREAKER_OPEN in reasons:
        after = reasons[reasons.index(RefusalReason.BREAKER_OPEN) :]
        yield from (f"a later pass ended with {r}" for r in after if r != RefusalReason.BREAKER_OPEN)


def refuses_an_empty_registry(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if one.reap and not one.before.rows and one.report.outcome is PassOutcome.REFUSED:
            yield f"pass {number} was refused: {one.reap.reason}"


def takes_a_lock_for_an_empty_registry(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        read = one.reap.registry if one.reap else None
        if read is not None and len(read.workers) < len(one.before.rows):
            yield f"pass {number} read {len(read.workers)} of {len(one.before.rows)} rows"
