"""What stands in front of a whole pass (rules 2, 3, 4, 9, 15, 16, 17, 18). Pure.

Each guard says why it stands, in words that a person can act on, or nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from providers.model import Coverage, InstanceRef, OwnedInstance, Scope, ScopeFailure
from reaperd.core.model import (
    CLOCK_TOLERANCE,
    WINDOW,
    BreakerLimits,
    BreakerReading,
    Keep,
    KeepReason,
    Memory,
    Observation,
    ReapPolicy,
    RefusalReason,
    RegistryPin,
    RegistryTrouble,
    Terminate,
    TerminateReason,
    Verdict,
)
from registry.model import RegistrySnapshot

MISMATCH_FROM = 3
"""So many live rows with a machine in a configured scope, none of them listed, are no coincidence (rule 4)."""

Objection = tuple[RefusalReason, str]

_TRACKED = Keep(KeepReason.TRACKED)


def objections(seen: Observation, policy: ReapPolicy, ours: Sequence[OwnedInstance]) -> tuple[Objection, ...]:
    """Return every reason to stand down but the breaker's, first one first. Empty: the picture is good."""
    found = (
        _ledger(seen),
        _leader(seen),
        _clock(seen),
        _deadline(seen),
        _account(seen.coverage),
        _listing(seen, policy),
        *_registry(seen, policy, ours),
        _brake(seen.memory),
    )
    return tuple(objection for objection in found if objection is not None)


def picture_is_good(standing: Iterable[Objection]) -> bool:
    """Say whether the listing and the registry can be judged, although the pass may not act."""
    return all(reason in {RefusalReason.NOT_LEADER, RefusalReason.REAP_HOLD} for reason, _ in standing)


def clock_trouble(step: timedelta | None, coverage: Iterable[Coverage]) -> str | None:
    """Return why this machine's clock cannot be believed (rule 16); None when nothing speaks against it."""
    if step is not None and abs(step) > CLOCK_TOLERANCE:
        by = f"{step.total_seconds():+.0f} s"
        return f"this machine's clock moved by {by} since the last pass: check its time service"
    skewed = next((e for e in coverage if e.clock_skew is not None and abs(e.clock_skew) > CLOCK_TOLERANCE), None)
    if skewed is None or skewed.clock_skew is None:
        return None
    by = f"{abs(skewed.clock_skew).total_seconds():.0f} s"
    return f"{skewed.scope} and this machine differ by {by}: check this machine's time service"


def required_scopes(policy: ReapPolicy, memory: Memory) -> frozenset[Scope]:
    """Return what must be listed whole: a scope once seen stays required until the configuration drops it."""
    return policy.scopes | {scope for scope in memory.scopes if scope.provider in policy.discovering}


def _ledger(seen: Observation) -> Objection | None:
    return (RefusalReason.LEDGER_UNUSABLE, seen.ledger_trouble) if seen.ledger_trouble is not None else None


def _leader(seen: Observation) -> Objection | None:
    return None if seen.leader else (RefusalReason.NOT_LEADER, "another process holds the lease")


def _clock(seen: Observation) -> Objection | None:
    trouble = clock_trouble(seen.clock_step, seen.coverage)
    return None if trouble is None else (RefusalReason.CLOCK, trouble)


def _deadline(seen: Observation) -> Objection | None:
    late = [str(e.scope) for e in seen.coverage if e.failure is ScopeFailure.DEADLINE]
    if isinstance(seen.registry, RegistryTrouble) and seen.registry.late:
        late.append("the registry")
    if not seen.late and not late:
        return None
    return RefusalReason.DEADLINE, "no answer in time" + (f" from {', '.join(late)}" if late else "")


def _account(coverage: Sequence[Coverage]) -> Objection | None:
    wrong = [f"{e.scope}: {e.error_code}: {e.detail}" for e in coverage if e.failure is ScopeFailure.WRONG_ACCOUNT]
    wrong += _listed_twice(coverage)
    return (RefusalReason.WRONG_ACCOUNT, "; ".join(wrong)) if wrong else None


def _listed_twice(coverage: Iterable[Coverage]) -> list[str]:
    """Return the places that two providers both list: a row tracks a machine under one of the two names only."""
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in coverage:
        if entry.account is not None:
            names[entry.account, entry.scope.region].add(entry.scope.provider)
    return [
        f"{' and '.join(sorted(providers))} are the same account {account} in {region}"
        for (account, region), providers in sorted(names.items())
        if len(providers) > 1
    ]


def _listing(seen: Observation, policy: ReapPolicy) -> Objection | None:
    broken = [f"{e.scope} ({e.error_code})" for e in seen.coverage if e.failure is ScopeFailure.LISTING]
    listed = {e.scope for e in seen.coverage}
    broken += [f"{scope} (not_listed)" for scope in sorted(required_scopes(policy, seen.memory) - listed)]
    broken += _impossible(seen)
    if not seen.coverage and not broken:
        broken = ["no scope was listed"]
    return (RefusalReason.LISTING_INCOMPLETE, ", ".join(broken)) if broken else None


def _impossible(seen: Observation) -> list[str]:
    """Return what no whole listing can hold: a machine of a scope that was not asked, or one machine twice."""
    asked = {(entry.scope.provider, entry.scope.region) for entry in seen.coverage}
    refs = {instance.ref for instance in seen.instances}
    strays = [f"{ref} (out_of_scope)" for ref in sorted(r for r in refs if (r.provider, r.region) not in asked)]
    # Counted only if there is anything to count: there never is.
    doubled = seen.instances if len(refs) < len(seen.instances) else ()
    counted = Counter(instance.ref for instance in doubled)
    return strays + [f"{ref} (duplicate_instance)" for ref, times in sorted(counted.items()) if times > 1]


def _registry(seen: Observation, policy: ReapPolicy, ours: Sequence[OwnedInstance]) -> tuple[Objection | None, ...]:
    if seen.registry is None:
        return ((RefusalReason.REGISTRY_UNUSABLE, "it was not read"),)
    if isinstance(seen.registry, RegistryTrouble):
        return ((RefusalReason.REGISTRY_UNUSABLE, seen.registry.detail),)
    doubts = doubts_about(seen.registry, seen.memory.pin, policy, seen.now)
    return (*doubts, _mismatch(seen, seen.registry, policy, ours))


def doubts_about(
    registry: RegistrySnapshot, pin: RegistryPin | None, policy: ReapPolicy, now: datetime
) -> tuple[Objection, ...]:
    """Return what speaks against a registry that can be read, whatever the clouds list."""
    found = (_silence(registry, policy, now), _identity(registry, pin, policy))
    return tuple(objection for objection in found if objection is not None)


def _silence(registry: RegistrySnapshot, policy: ReapPolicy, now: datetime) -> Objection | None:
    if policy.max_silence is None:
        return None
    written = registry.identity.updated_at
    if written is not None and -CLOCK_TOLERANCE <= now - written <= policy.max_silence:
        return None
    if written is not None and written > now:
        ahead = f"{written:%Y-%m-%d %H:%M:%S} UTC"
        return RefusalReason.REGISTRY_UNUSABLE, f"its last write, {ahead}, lies in the future: check the clocks"
    since = f"since {written:%Y-%m-%d %H:%M:%S} UTC" if written else "at a time that can be read"
    return RefusalReason.REGISTRY_UNUSABLE, f"nobody wrote it {since} (registry.max_silence): is the control plane up?"


def _identity(registry: RegistrySnapshot, pin: RegistryPin | None, policy: ReapPolicy) -> Objection | None:
    identity = registry.identity
    if identity.deployment != policy.deployment:
        return _other(f"it belongs to deployment {identity.deployment!r}, not {policy.deployment!r}")
    if pin is None:
        return None
    if identity.registry_id != pin.registry_id:
        return _other(f"it is registry {identity.registry_id}, and the one known here is {pin.registry_id}")
    if identity.epoch < pin.epoch:
        return _other(f"its epoch fell from {pin.epoch} to {identity.epoch}: an older copy")
    if _forked(registry, pin):
        return _other(f"its epoch {pin.epoch} is not the one seen here: a restored copy that has moved on")
    return None


def _forked(registry: RegistrySnapshot, pin: RegistryPin) -> bool:
    if pin.nonce is None:
        return False
    oldest, current = registry.oldest_epoch, registry.identity.epoch
    outgrown = oldest is not None and pin.epoch < min(oldest, current)
    return registry.remembered_nonce != pin.nonce and not outgrown


def _other(what: str) -> Objection:
    return RefusalReason.REGISTRY_IDENTITY, what


def _mismatch(
    seen: Observation, registry: RegistrySnapshot, policy: ReapPolicy, ours: Sequence[OwnedInstance]
) -> Objection | None:
    if seen.memory.pin is not None and seen.memory.pin.mismatch_accepted:
        return None
    strange = strangers(registry, seen.memory, required_scopes(policy, seen.memory) | _scopes(seen), ours)
    if not strange:
        return None
    which = ", ".join(f"{provider} ({count} live rows)" for provider, count in strange)
    text = f"no machine of a live row was ever listed: {which}. Wrong account, registry or provider name?"
    return RefusalReason.REGISTRY_MISMATCH, text


def strangers(
    registry: RegistrySnapshot, memory: Memory, scopes: frozenset[Scope], ours: Sequence[OwnedInstance]
) -> tuple[tuple[str, int], ...]:
    """Return the providers whose rows and listing have nothing to do with each other, with the number of rows."""
    listed = {instance.ref for instance in ours}
    places = {(scope.provider, scope.region) for scope in scopes}
    # Of a provider whose rows name one machine that was listed, nothing more has to be known.
    suspects = {ref.provider for ref in listed}
    named: Counter[str] = Counter()
    for worker in registry.workers:
        if worker.provider not in suspects or not worker.state.is_live or not worker.instance_id:
            continue
        if (worker.provider, worker.region) not in places:
            continue
        ref = InstanceRef(worker.provider, worker.region, worker.instance_id)
        if ref in listed or ref in memory.listed:
            suspects.remove(worker.provider)
        named[worker.provider] += 1
    left = sorted(suspects & named.keys())
    return tuple((provider, named[provider]) for provider in left if named[provider] >= MISMATCH_FROM)


def _scopes(seen: Observation) -> frozenset[Scope]:
    return frozenset(entry.scope for entry in seen.coverage)


def _brake(memory: Memory) -> Objection | None:
    if memory.brake is None:
        return None
    brake = memory.brake
    text = f"held by {brake.by} since {brake.since:%Y-%m-%d %H:%M:%S} UTC: {brake.reason}"
    return RefusalReason.REAP_HOLD, text


# ---------------------------------------------------------------- the breaker


def read_breaker(verdicts: Sequence[Verdict], seen: Observation, limits: BreakerLimits) -> BreakerReading:
    """Judge the size of a plan (rule 15). All or none: it never lets the first few through."""
    approved = {ref for a in seen.memory.approvals if seen.now < a.expires_at for ref in a.refs}
    candidates = [v for v in verdicts if _is_candidate(v) and v.ref not in approved]
    if 0 in {limits.max_per_pass, limits.max_per_hour, limits.max_fraction}:
        # 0 means never: no approval and no retry passes it.
        candidates = [v for v in verdicts if v.terminates]
    in_window = sum(1 for moment in seen.memory.requests if moment > seen.now - WINDOW)
    tripped, limit = _tripped(candidates, verdicts, in_window, limits)
    owned = sum(1 for v in verdicts if v.instance.state.exists)
    return BreakerReading(candidates=len(candidates), owned=owned, in_window=in_window, tripped=tripped, limit=limit)


def _is_candidate(verdict: Verdict) -> bool:
    return isinstance(verdict.call, Terminate) and not verdict.call.again


def _tripped(
    candidates: Sequence[Verdict], verdicts: Sequence[Verdict], in_window: int, limits: BreakerLimits
) -> tuple[str, float]:
    number = len(candidates)
    if number == 0:
        return "", 0
    if number > limits.max_per_pass:
        limit = _limit("max_per_pass", limits.max_per_pass)
        return f"{number} to terminate in one pass ({limit})", limits.max_per_pass
    if in_window + number > limits.max_per_hour:
        past = f"{in_window} in the last hour and {number} now"
        return f"{past} ({_limit('max_per_hour', limits.max_per_hour)})", limits.max_per_hour
    if limits.max_fraction == 0:
        # However few they are: below fraction_from no share is judged, but never is never.
        return f"{number} to terminate ({_limit('max_fraction', 0)})", 0
    providers = sorted({v.ref.provider for v in candidates})
    for provider in (None, *providers):
        text = _over_fraction(candidates, verdicts, provider, limits)
        if text:
            return text, limits.max_fraction
    return "", 0


def _limit(name: str, value: int) -> str:
    return f"{name} {value}" if value else f"{name} 0: never, and no approval passes it"


def _over_fraction(
    candidates: Sequence[Verdict], verdicts: Sequence[Verdict], provider: str | None, limits: BreakerLimits
) -> str:
    """Return which share is too big, of everything (provider None) or of one provider; empty when none is."""
    of_it = [v for v in candidates if provider in {None, v.ref.provider}]
    # A worker that its own control plane retired is no sign of a lost registry.
    lost = sum(1 for v in of_it if v.orphan is not TerminateReason.RETIRED or v.row_vanished)
    tracked = sum(1 for v in verdicts if provider in {None, v.ref.provider} and v.call == _TRACKED)
    # Divided, not multiplied: 29 of 100 is 0.29 to a float, but 0.29 * 100 is a little less than 29.
    if lost == 0 or lost + tracked < limits.fraction_from or lost / (lost + tracked) <= limits.max_fraction:
        return ""
    where = f" of {provider}" if provider else ""
    return f"{lost} of {lost + tracked} machines{where} (max_fraction {limits.max_fraction})"
