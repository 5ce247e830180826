"""What may not be sent to the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from reaperd.core.model import PassOutcome, RefusalReason
from tests.scenarios.evidence import Evidence
from tests.scenarios.laws.reading import group, numbered, owner, was_throttled
from tests.scenarios.registry_file import LIVE

_MAY_CHANGE = frozenset({"TerminateInstances", "CancelSpotInstanceRequests"})
_ATTEMPTS = 3
"""So often one terminate is sent before it is given up for this pass."""
_STUCK_AFTER = timedelta(minutes=30)
_GRACE = timedelta(minutes=15)
_PROTECT = "reaperd:protect"


def acts_while_a_region_is_unseen(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if one.changes and not all(entry.ok for entry in one.report.coverage):
            yield f"pass {number} changed something while a scope had failed"


def acts_on_a_refusal(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if one.report.outcome is PassOutcome.REFUSED and (one.changes or one.accepted):
            yield f"pass {number} was refused and changed something"


def acts_before_the_account_is_proved(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        proved = False
        for exchange in one.asked:
            if exchange.action == "GetCallerIdentity":
                proved = exchange.status == 200
            elif not proved:
                yield f"pass {number} sent {exchange.action} with no account proved"
        if one.reap and one.reap.reason == RefusalReason.WRONG_ACCOUNT and one.reap.verdicts:
            yield f"pass {number} judged machines of a wrong account"


def changes_more_than_it_may(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        yield from (f"pass {number} sent {e.action}" for e in one.changes if e.action not in _MAY_CHANGE)


def sends_a_change_in_a_rehearsal(evidence: Evidence) -> Iterator[str]:
    if evidence.rehearsing:
        for number, one in numbered(evidence):
            yield from (f"pass {number} rehearsed and sent {e.action}" for e in one.asked if e.request.mutating)


def sends_a_change_in_an_audit(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        if one.reap is None:
            yield from (f"sweep {number} sent {e.action}" for e in one.asked if e.request.mutating)


def names_two_machines_in_one_request(evidence: Evidence) -> Iterator[str]:
    yield from (f"{m.instance_id} was not asked for alone" for m in evidence.moments if m.named_along)


def sends_without_an_intent(evidence: Evidence) -> Iterator[str]:
    yield from (f"{m.instance_id} was asked for without an intent" for m in evidence.moments if not m.intent_on_disk)


def skips_the_last_look(evidence: Evidence) -> Iterator[str]:
    yield from (f"{m.instance_id} was asked for with a live row" for m in evidence.moments if m.live_row)
    for number, one in numbered(evidence):
        rows = {row["instance_id"] for row in one.after.rows if row["state"] in LIVE}
        yield from (f"pass {number} ended {name}, which has a live row" for name in one.accepted if name in rows)


def ends_a_protected_machine(evidence: Evidence) -> Iterator[str]:
    for moment in evidence.moments:
        if any(key.casefold() == _PROTECT for key in moment.machine.tags):
            yield f"{moment.instance_id} was asked for although it carries the protect tag"


def makes_a_group_relaunch(evidence: Evidence) -> Iterator[str]:
    yield from (f"{m.instance_id} of a group was asked for" for m in evidence.moments if group(m.machine))
    for number, one in numbered(evidence):
        new = {m.instance_id for m in one.after.machines} - {m.instance_id for m in one.before.machines}
        yield from (f"{name} was launched during pass {number}" for name in sorted(new))


def takes_no_time_for_old_age(evidence: Evidence) -> Iterator[str]:
    for moment in evidence.moments:
        launched = moment.machine.launched_at or ""
        known = moment.first_seen is not None and moment.now - moment.first_seen > _GRACE
        if launched < "2006" and not known:
            yield f"{moment.instance_id} was asked for although nobody knows it to be old"


def ends_what_nobody_owns(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        ours = {machine.instance_id for machine in one.before.machines if owner(machine) == evidence.owner}
        yield from (f"pass {number} ended {name}" for name in one.accepted if name not in ours)


def hammers_one_machine(evidence: Evidence) -> Iterator[str]:
    asked = [
        (e.request.at, name) for p in evidence.passes for e in p.terminates for name in e.request.listed("InstanceId")
    ]
    for name in sorted({name for _, name in asked}):
        times = [at for at, other in asked if other == name]
        soon = sum(1 for at in times if at - times[0] < _STUCK_AFTER)
        if soon > 1 and not was_throttled(evidence, name):
            yield f"{name} was asked for {soon} times within {_STUCK_AFTER}"
    if evidence.steps_left and evidence.passes:
        yield "the process ended"


def goes_on_after_a_throttle(evidence: Evidence) -> Iterator[str]:
    for number, one in numbered(evidence):
        codes = [exchange.error_code for exchange in one.terminates]
        if "RequestLimitExceeded" not in codes:
            continue
        first = codes.index("RequestLimitExceeded")
        names = {tuple(exchange.request.listed("InstanceId")) for exchange in one.terminates[first:]}
        if len(names) > 1 or len(codes) - first > _ATTEMPTS:
            yield f"pass {number} sent {len(codes) - first} requests for {len(names)} machines once it was throttled"
