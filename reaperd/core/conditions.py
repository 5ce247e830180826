"""What of a pass deserves a person's attention, whether or not an alert channel is configured. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from alerts.model import Cause, Condition, Datum, Severity
from providers.locations import Location, NotKnown, There
from providers.model import InstanceRef, Scope
from reaperd.core.model import (
    DeferReason,
    Intent,
    Keep,
    KeepReason,
    Observation,
    Outcome,
    OutcomeKind,
    Plan,
    ReapPolicy,
    Refusal,
    RefusalReason,
    Terminate,
    Verdict,
)
from reaperd.core.reap import Picture
from reaperd.core.tracking import heartbeats_work
from reaperd.core.whereabouts import locations
from registry.model import RegistrySnapshot, Worker

BLIND_FROM = 3
"""So many live rows whose machines are not seen, and none of ours is, or more than a share have vanished."""
VANISHED_SHARE = 0.2
"""Of the machines that live rows name and that were listed once: when more are gone at once, they may be out of sight.

A listing can prove everything but that a token in its middle was not lost.
"""

_AT_ONCE: Mapping[KeepReason, tuple[Cause, Severity]] = {
    KeepReason.FOREIGN_ACCOUNT: (Cause.FOREIGN_ACCOUNT, Severity.CRITICAL),
    KeepReason.AMBIGUOUS_WORKER: (Cause.AMBIGUOUS_WORKER, Severity.WARNING),
    KeepReason.FOREIGN_REGISTRY: (Cause.FOREIGN_REGISTRY, Severity.CRITICAL),
    KeepReason.PROTECTED: (Cause.TERMINATION_PROTECTED, Severity.WARNING),
    KeepReason.DENIED: (Cause.TERMINATION_DENIED, Severity.WARNING),
    KeepReason.INVALID_ID: (Cause.INVALID_ID, Severity.WARNING),
    KeepReason.FAILED: (Cause.TERMINATION_FAILED, Severity.WARNING),
}
"""Holds that a person must end."""

_WHEN_RIPE: Mapping[KeepReason, tuple[Cause, Severity]] = {
    KeepReason.PROTECT_TAG: (Cause.PROTECTED_ORPHAN, Severity.WARNING),
    KeepReason.MANAGED: (Cause.MANAGED_ORPHAN, Severity.WARNING),
}
"""Holds that matter only for a machine that would otherwise go."""

_OF_OUTCOME: Mapping[OutcomeKind, tuple[Cause, Severity]] = {
    OutcomeKind.PROTECTED: (Cause.TERMINATION_PROTECTED, Severity.WARNING),
    OutcomeKind.DENIED: (Cause.TERMINATION_DENIED, Severity.WARNING),
    OutcomeKind.INVALID_ID: (Cause.INVALID_ID, Severity.WARNING),
    OutcomeKind.FAILED: (Cause.TERMINATION_FAILED, Severity.WARNING),
}

_OF_REFUSAL: Mapping[RefusalReason, tuple[Cause, Severity]] = {
    RefusalReason.LEDGER_UNUSABLE: (Cause.LEDGER_UNUSABLE, Severity.CRITICAL),
    RefusalReason.CLOCK: (Cause.CLOCK, Severity.WARNING),
    RefusalReason.DEADLINE: (Cause.DEADLINE, Severity.WARNING),
    RefusalReason.WRONG_ACCOUNT: (Cause.WRONG_ACCOUNT, Severity.CRITICAL),
    RefusalReason.LISTING_INCOMPLETE: (Cause.LISTING_INCOMPLETE, Severity.WARNING),
    RefusalReason.REGISTRY_UNUSABLE: (Cause.REGISTRY_UNUSABLE, Severity.CRITICAL),
    RefusalReason.REGISTRY_IDENTITY: (Cause.REGISTRY_IDENTITY, Severity.CRITICAL),
    RefusalReason.REGISTRY_MISMATCH: (Cause.REGISTRY_MISMATCH, Severity.CRITICAL),
    RefusalReason.BREAKER_OPEN: (Cause.BREAKER_OPEN, Severity.CRITICAL),
}
"""A lease held elsewhere and a brake that somebody put on are nobody's fault."""

_OF_STOP: Mapping[DeferReason, tuple[Cause, Severity]] = {
    reason: _OF_REFUSAL[RefusalReason(reason.value)]
    for reason in DeferReason
    if reason.value in {refusal.value for refusal in _OF_REFUSAL}
}
"""What stops a pass at the door is told like what refuses one. A throttle is over by the next pass."""

_NO_ANSWER = frozenset({OutcomeKind.WOULD_TERMINATE, OutcomeKind.SPARED, OutcomeKind.DEFERRED})
"""Outcomes of which the cloud knows nothing."""

_MAY_BE_ENDING = frozenset({None, OutcomeKind.REQUESTED, OutcomeKind.UNKNOWN, OutcomeKind.ALREADY_GONE})
"""Answers after which a machine may be going. None: the process died before the answer."""

_JUDGED = frozenset({RefusalReason.REAP_HOLD, RefusalReason.BREAKER_OPEN})
"""Refusals by what was judged: what was seen of each machine is told all the same."""

_WAITS = frozenset({KeepReason.LAUNCH_GRACE, KeepReason.UNCONFIRMED, KeepReason.ROW_VANISHED})
"""Holds of a machine that only has to wait."""


def conditions(
    seen: Observation, policy: ReapPolicy, decision: Plan | Refusal, outcomes: Iterable[Outcome]
) -> tuple[Condition, ...]:
    """Return the conditions of one pass, one a key, in the order of their keys."""
    found: dict[str, Condition] = {}
    for condition in _all(seen, policy, decision, outcomes):
        found.setdefault(condition.key, condition)
    return tuple(found[key] for key in sorted(found))


def with_stop(told: Iterable[Condition], reason: DeferReason, detail: str) -> tuple[Condition, ...]:
    """Return the conditions of a pass that stopped while acting: those of its decision, and why it stopped."""
    found = {condition.key: condition for condition in told}
    if reason in _OF_STOP:
        cause, severity = _OF_STOP[reason]
        stop = Condition(cause=cause, severity=severity, data={"detail": detail})
        found.setdefault(stop.key, stop)
    return tuple(found[key] for key in sorted(found))


def missing(seen: Observation, policy: ReapPolicy) -> tuple[Worker, ...]:
    """Return the live rows whose machine a complete listing of its scope does not have. Reported, never acted on."""
    return Picture(seen, policy).missing


def _all(
    seen: Observation, policy: ReapPolicy, decision: Plan | Refusal, outcomes: Iterable[Outcome]
) -> Iterator[Condition]:
    told = tuple(outcomes)
    answered = frozenset(outcome.ref for outcome in told if outcome.kind not in _NO_ANSWER)
    for verdict in decision.verdicts:
        yield from _of_verdict(verdict, seen, policy)
        if verdict.ref not in answered:
            yield from _of_last_answer(verdict, seen)
    yield from _out_of_sight(seen, policy, decision)
    yield from _of_outcomes(told)
    if isinstance(decision, Refusal):
        yield from _of_refusal(decision)
    yield from _heartbeats(seen, policy)
    yield from _blind(seen, policy)


def _of_verdict(verdict: Verdict, seen: Observation, policy: ReapPolicy) -> Iterator[Condition]:
    yield from _stuck(verdict, seen, policy)
    if not isinstance(verdict.call, Keep):
        return
    reason = verdict.call.reason
    told = _AT_ONCE.get(reason) or (_WHEN_RIPE.get(reason) if verdict.ripe else None)
    if told is not None:
        yield _about(verdict.ref, told, _evidence(verdict))
    sure = verdict.confirmations >= policy.confirm_passes
    if reason is KeepReason.ROW_VANISHED and sure:
        yield _about(verdict.ref, (Cause.ROW_VANISHED, Severity.WARNING), _evidence(verdict))


def _stuck(verdict: Verdict, seen: Observation, policy: ReapPolicy) -> Iterator[Condition]:
    """Yield when a request was accepted, or may have been, long ago, and the machine is still there."""
    intent = seen.memory.intents.get(verdict.ref)
    if intent is None or intent.outcome not in _MAY_BE_ENDING:
        return
    if _is_stuck(intent, seen, policy):
        since: Mapping[str, Datum] = {"requested_at": intent.first_requested_at.isoformat()}
        yield _about(verdict.ref, (Cause.TERMINATION_STUCK, Severity.WARNING), since)


def _out_of_sight(seen: Observation, policy: ReapPolicy, decision: Plan | Refusal) -> Iterator[Condition]:
    """Yield what was asked to end, gets no verdict any more, and is not proved to be gone.

    At once for one that runs without our tag: nothing more will be done about it. Otherwise once it is stuck.
    """
    if isinstance(decision, Refusal) and decision.reason not in _JUDGED:
        return
    judged = {verdict.ref for verdict in decision.verdicts}
    for ref, location in locations(seen).items():
        intent, told = seen.memory.intents[ref], _whereabouts(location, policy)
        if told is None or ref in judged or intent.outcome not in _MAY_BE_ENDING:
            continue
        lost = isinstance(location, There) and location.state.exists and location.owner != policy.deployment
        if lost or _is_stuck(intent, seen, policy):
            data = {"requested_at": intent.first_requested_at.isoformat(), **told}
            yield _about(ref, (Cause.TERMINATION_STUCK, Severity.WARNING), data)


def _is_stuck(intent: Intent, seen: Observation, policy: ReapPolicy) -> bool:
    return seen.now - intent.first_requested_at >= policy.stuck_after


def _whereabouts(location: Location, policy: ReapPolicy) -> Mapping[str, Datum] | None:
    """Return what is to be told of a machine that no verdict speaks of; None when it is gone."""
    if isinstance(location, NotKnown):
        return {"state": None, "owner": None, "detail": f"not listed, and not proved to be gone: {location.detail}"}
    if not isinstance(location, There):
        return None
    ours = location.owner == policy.deployment
    detail = "it is there and not listed" if ours else "it does not carry our tag, so it is not asked again"
    return {"state": str(location.state), "owner": location.owner, "detail": detail}


def _of_last_answer(verdict: Verdict, seen: Observation) -> Iterator[Condition]:
    """Yield what the cloud answered last time, while the machine is due to be tried again but was not (rule 14).

    Otherwise the brake, a throttle or a rehearsal would resolve the alert although nothing has changed.
    """
    intent = seen.memory.intents.get(verdict.ref)
    due = isinstance(verdict.call, Terminate) or verdict.call.reason in _WAITS
    if intent is None or intent.outcome is None or not due:
        return
    told = _OF_OUTCOME.get(intent.outcome)
    if told is not None:
        yield _about(verdict.ref, told, _evidence(verdict))


def _of_outcomes(outcomes: Iterable[Outcome]) -> Iterator[Condition]:
    for outcome in outcomes:
        told = _OF_OUTCOME.get(outcome.kind)
        if told is not None:
            yield _about(outcome.ref, told, {"error_code": outcome.error_code, "detail": outcome.detail})


def _of_refusal(refusal: Refusal) -> Iterator[Condition]:
    for reason in (refusal.reason, *refusal.also):
        told = _OF_REFUSAL.get(reason)
        if told is not None:
            cause, severity = told
            data: dict[str, Datum] = {"detail": refusal.detail} if reason is refusal.reason else {}
            if reason is RefusalReason.BREAKER_OPEN and refusal.breaker is not None:
                reading = refusal.breaker
                data |= {"candidates": reading.candidates, "owned": reading.owned, "limit": reading.limit}
            yield Condition(cause=cause, severity=severity, data=data)


def _heartbeats(seen: Observation, policy: ReapPolicy) -> Iterator[Condition]:
    if policy.heartbeat_ttl is None or not isinstance(seen.registry, RegistrySnapshot):
        return
    live = sum(worker.state.is_live for worker in seen.registry.workers)
    if live and not heartbeats_work(seen.registry.workers, policy, seen.now):
        yield Condition(cause=Cause.HEARTBEATS_STOPPED, severity=Severity.WARNING, data={"live_rows": live})


def _blind(seen: Observation, policy: ReapPolicy) -> Iterator[Condition]:
    if not seen.coverage or not all(entry.ok for entry in seen.coverage):
        return
    there = {each.ref for each in seen.instances if each.owner == policy.deployment and not each.state.is_gone}
    # Nearly always nothing more has to be worked out.
    if there and len(seen.memory.listed - there) < BLIND_FROM:
        return
    unseen = [InstanceRef(row.provider, row.region, str(row.instance_id)) for row in missing(seen, policy)]
    data: dict[str, Datum] = {"missing_workers": len(unseen)}
    if there:
        # A machine that was never listed has not vanished: its row may be ahead of it.
        unseen = [ref for ref in unseen if ref in seen.memory.listed]
        dark = _dark(unseen, there)
        known = len(unseen) + len(there & seen.memory.listed)
        if not dark and len(unseen) <= VANISHED_SHARE * known:
            return
        data["missing_workers"] = len(unseen)
        if dark:
            data["scopes"] = ", ".join(sorted(map(str, dark)))
    if len(unseen) >= BLIND_FROM:
        yield Condition(cause=Cause.BLIND, severity=Severity.CRITICAL, data=data)


def _dark(vanished: Iterable[InstanceRef], there: Iterable[InstanceRef]) -> set[Scope]:
    """Return the scopes in which enough machines have vanished and none is left: a region, or a whole cloud."""
    gone = Counter((ref.provider, ref.region) for ref in vanished)
    suspects = {place for place, machines in gone.items() if machines >= BLIND_FROM}
    if not suspects:
        return set()
    lit = {(ref.provider, ref.region) for ref in there}
    return {Scope(*place) for place in suspects - lit}


def _about(ref: InstanceRef, told: tuple[Cause, Severity], data: Mapping[str, Datum]) -> Condition:
    cause, severity = told
    return Condition(cause=cause, subject=str(ref), severity=severity, data=data)


def _evidence(verdict: Verdict) -> Mapping[str, Datum]:
    # Beside an answer of the cloud, what the rows say of an orphan would be read as that answer.
    detail = verdict.detail if verdict.orphan is None else ""
    data: dict[str, Datum] = {"worker_id": verdict.instance.worker_id, "detail": detail}
    if verdict.instance.managed_by is not None:
        kind, _, name = verdict.instance.managed_by.partition(":")
        data |= {"manager": kind, "group": name}
    return data
