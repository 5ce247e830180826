"""A second reading of the safety rules, straight and slow, written from their text and not from the code.

Everything is a plain word here, so that nothing of the core is shared but its values. Where the rules leave a
choice, the choice is written down at its place.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from providers.locations import There
from providers.model import InstanceRef, OwnedInstance, Scope
from registry.model import RegistrySnapshot, Worker
from tests.support.worlds import World

A_MINUTE = timedelta(seconds=60)
LIVE = ("launching", "running", "draining")
TERMINAL = ("completed", "failed", "terminated")
KEEP_ORDER = (
    *("foreign_account", "in_transition", "tracked", "ambiguous_worker", "foreign_registry", "never_list"),
    *("protect_tag", "managed", "already_requested", "protected", "denied", "invalid_id", "failed"),
    *("launch_grace", "unconfirmed", "row_vanished"),
)
REFUSE_ORDER = (
    *("ledger_unusable", "not_leader", "clock", "deadline", "wrong_account", "listing_incomplete"),
    *("registry_unusable", "registry_identity", "registry_mismatch", "reap_hold", "breaker_open"),
)
Fate = tuple[str, str, bool]
"""keep or terminate, the reason, and whether it repeats an earlier request."""


# ---------------------------------------------------------------- rules 6 and 7


def is_live(row: Worker) -> bool:
    return row.state.value in LIVE


def names(row: Worker, machine: OwnedInstance) -> bool:
    mine = (machine.ref.provider, machine.ref.region, machine.ref.instance_id)
    return (row.provider, row.region, row.instance_id) == mine


def means_by_tag(row: Worker, machine: OwnedInstance) -> bool:
    return row.instance_id is None and machine.worker_id is not None and row.worker_id == machine.worker_id


def times_of(row: Worker) -> list[datetime]:
    return [t for t in (row.created_at, row.launched_at, row.heartbeat_at, row.updated_at) if t is not None]


def lapsed(row: Worker, world: World) -> str | None:
    """Return why a live row about a machine protects it no longer."""
    if row.unreadable or any(t > world.seen.now for t in times_of(row)):
        return None
    # The choice: a launch in flight has its own limit, and only that one.
    if row.state.value == "launching" and row.instance_id is None:
        return "launch_abandoned" if is_abandoned(row, world) else None
    return "heartbeat_expired" if is_silent(row, world) else None


def is_abandoned(row: Worker, world: World) -> bool:
    times = times_of(row)
    return bool(times) and world.seen.now >= max(times) + world.policy.launching_ttl


def is_silent(row: Worker, world: World) -> bool:
    ttl = world.policy.heartbeat_ttl
    if ttl is None or not any(has_recent_heartbeat(each, world) for each in world.rows):
        return False
    since = row.created_at if row.heartbeat_at is None else row.heartbeat_at
    return since is not None and since + ttl < world.seen.now


def has_recent_heartbeat(row: Worker, world: World) -> bool:
    # The choice: a heartbeat up to a minute ahead was written during the look, and is one.
    beat = row.heartbeat_at
    if not is_live(row) or beat is None or world.policy.heartbeat_ttl is None:
        return False
    return world.seen.now - world.policy.heartbeat_ttl <= beat <= world.seen.now + A_MINUTE


def is_tracked(machine: OwnedInstance, world: World) -> bool:
    about = [row for row in world.rows if is_live(row) and (names(row, machine) or means_by_tag(row, machine))]
    return any(lapsed(row, world) is None for row in about)


def points_elsewhere(row: Worker, machine: OwnedInstance) -> bool:
    if not is_live(row) or row.instance_id is None or names(row, machine):
        return False
    if machine.worker_id is not None and row.worker_id == machine.worker_id:
        return True
    # The choice: a wrong row is more likely than two clouds that number alike, so no tag settles it.
    return row.instance_id == machine.ref.instance_id


def sounds_like(row: Worker, machine: OwnedInstance) -> bool:
    """Say whether only case or blanks keep a live row from accounting for the machine."""
    theirs, mine = row.instance_id, machine.ref.instance_id
    if theirs is None:
        theirs, mine = row.worker_id, machine.worker_id or ""
    return is_live(row) and theirs != mine and theirs.strip().lower() == mine.strip().lower()


def ours(world: World) -> list[OwnedInstance]:
    return [each for each in world.seen.instances if each.owner == world.policy.deployment]


def supersedes(row: Worker, machine: OwnedInstance, world: World) -> bool:
    """Say whether the machine that the row names is there and carries the row's worker id."""
    for other in ours(world):
        # The choice: under the same id it may be the same machine, listed twice.
        if names(row, other) and other.ref.instance_id != machine.ref.instance_id:
            is_there = other.state.value not in ("terminated", "shutting-down")
            return is_there and other.worker_id == row.worker_id == machine.worker_id
    return False


def is_ambiguous(machine: OwnedInstance, world: World) -> bool:
    if is_tracked(machine, world):
        return False
    if any(sounds_like(row, machine) and lapsed(row, world) is None for row in world.rows):
        return True
    return any(points_elsewhere(row, machine) and not supersedes(row, machine, world) for row in world.rows)


def orphaned_by(machine: OwnedInstance, world: World) -> str | None:
    """Return why a machine is an orphan; None when it is tracked or in doubt."""
    if is_tracked(machine, world) or is_ambiguous(machine, world):
        return None
    naming = [row for row in world.rows if names(row, machine)]
    tagged = [row for row in world.rows if means_by_tag(row, machine)]
    for row in [*naming, *tagged]:
        if is_live(row):
            return lapsed(row, world)
    if any(points_elsewhere(row, machine) for row in world.rows):
        return "superseded"
    if naming or tagged:
        return "retired"
    return "unregistered" if machine.worker_id is not None else "anonymous"


# ---------------------------------------------------------------- rules 10, 11, 12


def age_of(machine: OwnedInstance, world: World) -> timedelta | None:
    now = world.seen.now
    starts = []
    if machine.launched_at is not None and datetime(2006, 1, 1, tzinfo=UTC) <= machine.launched_at <= now:
        starts.append(machine.launched_at)
    if machine.ref in world.seen.memory.sightings:
        starts.append(world.seen.memory.sightings[machine.ref].first_seen_at)
    if not starts:
        return None
    return max(timedelta(0), now - min(starts))


def count_of(machine: OwnedInstance, world: World) -> int:
    """Return in how many consecutive looks, this one included, the machine was untracked."""
    if orphaned_by(machine, world) is None:
        return 0
    before = world.seen.memory.sightings.get(machine.ref)
    if before is None:
        return 1
    too_close = before.counted_at is not None and world.seen.now < before.counted_at + world.policy.look_spacing
    return before.confirmations if too_close else before.confirmations + 1


def vanished_since(machine: OwnedInstance, world: World) -> datetime | None:
    before = world.seen.memory.sightings.get(machine.ref)
    if before is None or before.tracked_at is None or orphaned_by(machine, world) is None:
        return None
    about = [r for r in world.rows if names(r, machine) or means_by_tag(r, machine) or points_elsewhere(r, machine)]
    # The choice: the row that tracked it must still be there, not some older worker's.
    if any(before.tracked_by in {None, row.worker_id} for row in about):
        return None
    return before.vanished_at or world.seen.now


# ---------------------------------------------------------------- rule 14


def holds_of(machine: OwnedInstance, world: World) -> set[str]:
    """Return every hold that applies."""
    now, wishes = world.seen.now, world.policy
    assert isinstance(world.seen.registry, RegistrySnapshot)
    ours_is = world.seen.registry.identity.registry_id
    age, since, answer = age_of(machine, world), vanished_since(machine, world), answered(machine, world)
    asked = world.seen.memory.intents.get(machine.ref)
    unsure = count_of(machine, world) < wishes.confirm_passes
    applies = {
        "foreign_account": machine.foreign_account,
        "in_transition": machine.state.value == "shutting-down",
        "tracked": is_tracked(machine, world),
        "ambiguous_worker": is_ambiguous(machine, world),
        "foreign_registry": machine.registry_id is not None and machine.registry_id != ours_is,
        "never_list": machine.ref.instance_id in wishes.never,
        "protect_tag": machine.protect,
        "managed": machine.managed_by is not None,
        "launch_grace": age is None or age <= wishes.launch_grace,
        "unconfirmed": unsure and not wishes.confirmation_given,
        "row_vanished": since is not None and now < since + wishes.vanish_grace,
    }
    if answer is not None and asked is not None:
        applies[answer] = now < asked.requested_at + wishes.stuck_after
    return {hold for hold, holds in applies.items() if holds}


def answered(machine: OwnedInstance, world: World) -> str | None:
    """Return the hold that the cloud's last answer means; None when it was never asked."""
    if machine.ref not in world.seen.memory.intents:
        return None
    outcome = world.seen.memory.intents[machine.ref].outcome
    if outcome is None or outcome.value in ("requested", "unknown", "already_gone"):
        return "already_requested"
    return outcome.value if outcome.value in ("protected", "denied", "invalid_id", "failed") else None


def fate_of(machine: OwnedInstance, world: World) -> Fate | None:
    """Return what becomes of one machine, if the pass may act; None when it gets no verdict."""
    if machine.owner != world.policy.deployment or machine.state.value == "terminated":
        return None
    holds = holds_of(machine, world)
    for reason in KEEP_ORDER:
        if reason in holds:
            return ("keep", reason, False)
    orphan = orphaned_by(machine, world)
    assert orphan is not None
    return ("terminate", orphan, repeats(machine, world))


def repeats(machine: OwnedInstance, world: World) -> bool:
    """Say whether this would repeat an earlier request; one that was tracked since is a new case."""
    if answered(machine, world) is None:
        return False
    before = world.seen.memory.sightings.get(machine.ref)
    asked = world.seen.memory.intents[machine.ref].requested_at
    return before is None or before.tracked_at is None or before.tracked_at <= asked


def fates_of(world: World) -> dict[str, Fate]:
    told = {str(machine.ref): fate_of(machine, world) for machine in world.seen.instances}
    return {ref: fate for ref, fate in told.items() if fate is not None}


# ---------------------------------------------------------------- rule 22


def is_proved_gone(ref: InstanceRef, world: World) -> bool:
    """Say whether a machine is gone for certain, and not only out of sight: it may have lost our tag."""
    listed = [machine.state.value for machine in world.seen.instances if machine.ref == ref]
    if listed:
        return listed == ["terminated"]
    # The choice: where nobody can be asked by id, the listing is all there is.
    return type(world.seen.located.get(ref)).__name__ in ("Gone", "OnlyListed")


def runs_without_us(ref: InstanceRef, world: World) -> bool:
    """Say whether a machine is known to run under a tag that is not ours, or under none."""
    for machine in world.seen.instances:
        if machine.ref == ref:
            exists = machine.state.value not in ("terminated", "shutting-down")
            return exists and machine.owner != world.policy.deployment
    told = world.seen.located.get(ref)
    return isinstance(told, There) and told.state.value != "shutting-down" and told.owner != world.policy.deployment


# ---------------------------------------------------------------- rules 2, 3, 4, 9, 16, 17, 18


def standing(world: World) -> list[str]:
    """Return every reason to stand down but the breaker, in order."""
    seen = world.seen
    steps = [seen.clock_step, *(entry.clock_skew for entry in seen.coverage)]
    failures = {str(entry.failure) for entry in seen.coverage if entry.failure is not None}
    applies = {
        "ledger_unusable": seen.ledger_trouble is not None,
        "not_leader": not seen.leader,
        "clock": any(step is not None and not -A_MINUTE <= step <= A_MINUTE for step in steps),
        "deadline": seen.late or "deadline" in failures,
        "wrong_account": "wrong_account" in failures or is_listed_twice(world),
        "listing_incomplete": "listing" in failures or not is_whole(world),
        "registry_unusable": is_unusable(world),
        "registry_identity": is_another_registry(world),
        "registry_mismatch": any(is_mismatch(provider, world) for provider in ("aws", "gcp")),
        "reap_hold": seen.memory.brake is not None,
    }
    return [reason for reason in REFUSE_ORDER if applies.get(reason)]


def asked_scopes(world: World) -> list[Scope]:
    return [entry.scope for entry in world.seen.coverage]


def needed_scopes(world: World) -> list[Scope]:
    discovered = [scope for scope in world.seen.memory.scopes if scope.provider in world.policy.discovering]
    return [*world.policy.scopes, *discovered]


def is_listed_twice(world: World) -> bool:
    """Say whether two providers list the same region of the same account."""
    places = {(e.account, e.scope.region, e.scope.provider) for e in world.seen.coverage if e.account is not None}
    return len({place[:2] for place in places}) < len(places)


def is_whole(world: World) -> bool:
    """Say whether every scope was asked, and nothing was listed that a whole listing cannot hold."""
    asked, refs = asked_scopes(world), [each.ref for each in world.seen.instances]
    possible = len(set(refs)) == len(refs) and all(each.scope in asked for each in refs)
    return bool(asked) and possible and all(scope in asked for scope in needed_scopes(world))


def is_unusable(world: World) -> bool:
    found, silence, now = world.seen.registry, world.policy.max_silence, world.seen.now
    if not isinstance(found, RegistrySnapshot):
        return True
    written = found.identity.updated_at
    if silence is None:
        return False
    # The choice: a write that lies in the future proves no life.
    return written is None or written + silence < now or written > now + A_MINUTE


def is_another_registry(world: World) -> bool:
    found, known = world.seen.registry, world.seen.memory.pin
    if not isinstance(found, RegistrySnapshot):
        return False
    identity = found.identity
    if identity.deployment != world.policy.deployment:
        return True
    if known is None:
        return False
    if identity.registry_id != known.registry_id or identity.epoch < known.epoch:
        return True
    kept = found.oldest_epoch is None or known.epoch >= found.oldest_epoch or known.epoch == identity.epoch
    return kept and known.nonce is not None and found.remembered_nonce != known.nonce


def is_mismatch(provider: str, world: World) -> bool:
    known = world.seen.memory.pin
    if not isinstance(world.seen.registry, RegistrySnapshot) or (known is not None and known.mismatch_accepted):
        return False
    scopes = [str(scope) for scope in (*needed_scopes(world), *asked_scopes(world))]
    rows = [row for row in world.rows if is_live(row) and row.provider == provider and row.instance_id is not None]
    named = [(row.region, row.instance_id) for row in rows if f"{provider}/{row.region}" in scopes]
    listed = [(each.ref.region, each.ref.instance_id) for each in ours(world) if each.ref.provider == provider]
    ever = listed + [(r.region, r.instance_id) for r in world.seen.memory.listed if r.provider == provider]
    return len(named) >= 3 and bool(listed) and not any(each in ever for each in named)


def may_be_judged(world: World) -> bool:
    """Say whether the pass is a look: the lease and the brake do not spoil the picture."""
    return all(reason in ("not_leader", "reap_hold") for reason in standing(world))


# ---------------------------------------------------------------- rule 15


def breaker_opens(world: World) -> bool:
    fates = fates_of(world)
    approved = {str(ref) for a in world.seen.memory.approvals if world.seen.now < a.expires_at for ref in a.refs}
    candidates = {
        ref: reason
        for ref, (call, reason, again) in fates.items()
        if call == "terminate" and not again and ref not in approved
    }
    tracked = [ref for ref, fate in fates.items() if fate[:2] == ("keep", "tracked")]
    limits = world.policy.breaker
    if limits.max_per_pass == 0 or limits.max_per_hour == 0 or limits.max_fraction == 0:
        # The choice: never is never, for a repetition and for an approved machine too.
        return any(call == "terminate" for call, _, _ in fates.values())
    if not candidates:
        return False
    in_the_hour = [t for t in world.seen.memory.requests if t > world.seen.now - timedelta(hours=1)]
    if len(candidates) > limits.max_per_pass or len(in_the_hour) + len(candidates) > limits.max_per_hour:
        return True
    # The choice: a retired machine whose own row vanished may be the sign of a lost registry.
    vanished = {str(m.ref) for m in world.seen.instances if vanished_since(m, world) is not None}
    lost = [ref for ref, reason in candidates.items() if reason != "retired" or ref in vanished]
    for start in ("", *{ref.partition("/")[0] + "/" for ref in candidates}):
        part = sum(ref.startswith(start) for ref in lost)
        whole = part + sum(ref.startswith(start) for ref in tracked)
        if part and whole >= limits.fraction_from and Fraction(part, whole) > _exact(limits.max_fraction):
            return True
    return False


def _exact(share: float) -> Fraction:
    """Return the fraction that somebody meant who wrote this number."""
    return Fraction(share).limit_denominator(10_000)


def refused_for(world: World) -> list[str]:
    """Return every reason for which the pass stands down, in order; empty when it acts."""
    reasons = standing(world)
    if may_be_judged(world) and breaker_opens(world):
        reasons.append("breaker_open")
    return reasons
