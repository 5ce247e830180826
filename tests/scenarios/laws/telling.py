"""What may not be told, or remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reaperd.core.model import OutcomeKind, PassOutcome, RefusalReason
from tests.scenarios.evidence import Evidence
from tests.scenarios.laws.reading import conditions, group, numbered, ours


def tells_other_than_the_cloud(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        told = {o.ref.instance_id: o.kind for o in one.reap.outcomes} if one.reap else {}
        for name, kind in told.items():
            if kind is OutcomeKind.REQUESTED and name not in one.accepted:
                yield f"pass {number} calls {name} requested, and the cloud accepted nothing"
        for name in one.accepted:
            if told.get(name) not in {OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN}:
                yield f"pass {number} calls {name} {told.get(name)}, and the cloud accepted its end"


def counts_one_end_twice(evidence: Evidence) -> Iterator[str]:
    for kind in (OutcomeKind.REQUESTED, OutcomeKind.CONFIRMED_GONE):
        told = Counter(o.ref.instance_id for r in evidence.reaps for o in r.outcomes if o.kind is kind)
        yield from (f"{name} is {kind} {times} times" for name, times in told.items() if times > 1)


def takes_accepted_for_gone(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        here = {m.instance_id for m in one.before.machines if m.state != "terminated"}
        gone = (
            [o.ref.instance_id for o in one.reap.outcomes if o.kind is OutcomeKind.CONFIRMED_GONE] if one.reap else []
        )
        gone += [intent.instance_id for intent in one.after.intents if intent.closed_as == OutcomeKind.CONFIRMED_GONE]
        yield from (f"pass {number} confirms that {name} is gone" for name in gone if name in here)


def learns_from_an_incomplete_look(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        whole = all(entry.ok for entry in one.report.coverage)
        closed = [intent for intent in one.after.intents if intent.closed_as and intent not in one.before.intents]
        confirmed = one.reap is not None and any(o.kind is OutcomeKind.CONFIRMED_GONE for o in one.reap.outcomes)
        if not whole and (closed or confirmed or one.after.first_seen != one.before.first_seen):
            yield f"pass {number} learned something although a scope had failed"


def lets_one_spoil_the_rest(evidence: Evidence) -> Iterator[str]:
    """Everything else that is to go goes in the first pass."""
    first = evidence.passes[0]
    bad = {OutcomeKind.PROTECTED, OutcomeKind.INVALID_ID, OutcomeKind.ALREADY_GONE}
    told = {o.ref.instance_id: o.kind for o in first.reap.outcomes} if first.reap else {}
    for verdict in first.reap.verdicts if first.reap else ():
        name = verdict.ref.instance_id
        if verdict.terminates and told.get(name) not in bad and name not in first.accepted:
            yield f"{name} lives on"


def blames_the_listing(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        failed = not all(entry.ok for entry in one.report.coverage)
        if failed or one.report.reason == RefusalReason.LISTING_INCOMPLETE:
            yield f"pass {number} says that the listing is incomplete"


def counts_an_end_that_was_undone(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        groups = {m.instance_id for m in one.before.machines if group(m)}
        told = {o.ref.instance_id for o in one.reap.outcomes} if one.reap else set()
        yield from (f"pass {number} tells of an end of {name}" for name in sorted(told & groups))


def speaks_of_a_gone_machine(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        gone = {m.instance_id for m in one.before.machines if m.state == "terminated"}
        told = {c.subject.rpartition("/")[2] for c in conditions(one)}
        told |= {v.ref.instance_id for v in one.reap.verdicts} if one.reap else set()
        yield from (f"pass {number} speaks of {name}, which is gone" for name in sorted(told & gone))


def calls_our_own_a_leak(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        leaks = {c.subject.rpartition("/")[2] for c in conditions(one) if c.cause == "leak"}
        yield from (f"pass {number} calls {name} a leak" for name in sorted(leaks & ours(evidence, one)))


def forgets_when_it_first_saw(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        for name, moment in one.before.first_seen.items():
            if one.after.first_seen.get(name, moment) != moment:
                yield f"pass {number} forgot that {name} was first seen at {moment}"
    for earlier, later in zip(evidence.passes, evidence.passes[1:], strict=False):
        if earlier.after.first_seen != later.before.first_seen:
            yield "between two passes it was forgotten what was seen when"


def leaves_intents_of_a_rehearsal(evidence: Evidence) -> Iterator[str]:
    if evidence.rehearsing and any(one.after.intents for one in evidence.passes):
        yield "there are intents in the ledger"


def touches_the_registry(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if not one.disturbed and one.before.files != one.after.files:
            yield f"pass {number} changed the registry's folder"


def dies_of_a_lock(evidence: Evidence) -> Iterator[str]:
    if evidence.steps_left:
        yield "the process ended"
    yield from (f"a pass ended as {r.outcome}" for r in evidence.reaps if r.outcome is PassOutcome.ERROR)
