"""What the ledger is to remember after a look (rules 3, 4, 10, 11, 22). Pure.

A look counts when the picture is good, whatever was decided on it: a pass that the breaker, the brake or the
lease stopped teaches as much as one that acted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.model import InstanceRef, Scope
from reaperd.core import guards
from reaperd.core.history import Look
from reaperd.core.model import Intent, Memory, Observation, ReapPolicy, RegistryPin, Sighting
from reaperd.core.reap import Picture, by_name, owned
from reaperd.core.sightings import absent
from reaperd.core.whereabouts import is_proved_gone, locations
from registry.model import RegistrySnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The changes that one look makes to the memory."""

    sightings: Mapping[InstanceRef, Sighting]
    """New and changed ones."""
    forgotten: frozenset[InstanceRef]
    confirmed_gone: tuple[Intent, ...]
    """Open intents whose machine this look proves gone."""
    pin: RegistryPin
    listed: frozenset[InstanceRef]
    scopes: frozenset[Scope]
    """All that stay known: a configuration that names its scopes drops the others."""
    look: Look | None = None
    """What was seen, for whoever asks later. No decision is made on it."""
    before: Memory | None = field(default=None, compare=False)
    """What was remembered when it was learned, so that what is so already need not be written.

    None: it has to be recalled for that.
    """


def learn(seen: Observation, policy: ReapPolicy) -> Learned | None:
    """Return what this look teaches; None when it is no look (the picture is not good)."""
    return learn_from(Picture(seen, policy))


def learn_from(picture: Picture) -> Learned | None:
    """Return what a picture teaches."""
    seen, policy, registry = picture.seen, picture.policy, picture.sound_registry
    if registry is None:
        return None
    current = {each.verdict.ref: each.sighting for each in picture.judgements}
    gone = {ref: absent(s, seen.now) for ref, s in seen.memory.sightings.items() if ref not in current}
    changed = {ref: s for ref, s in gone.items() if s is not None and s != seen.memory.sightings[ref]}
    return Learned(
        sightings={**current, **changed},
        forgotten=frozenset(ref for ref, sighting in gone.items() if sighting is None),
        confirmed_gone=confirmed_gone(seen),
        pin=_pin(seen, registry, policy),
        listed=_listed(picture),
        scopes=guards.required_scopes(policy, seen.memory) | {entry.scope for entry in seen.coverage},
        look=Look(
            at=seen.now,
            instances=tuple(sorted(picture.ours, key=by_name)),
            coverage=tuple(sorted(seen.coverage, key=lambda entry: entry.scope)),
        ),
        before=seen.memory,
    )


def confirmed_gone(seen: Observation) -> tuple[Intent, ...]:
    """Return the intents whose machine a look that began after the request proves gone.

    It is listed as gone; or it is not listed any more, and its cloud says of its id that it is gone. That it is not
    listed is a proof by itself only where the cloud cannot be asked by id: it may have lost its tag.
    """
    proved = (ref for ref, location in locations(seen).items() if is_proved_gone(location))
    return tuple(seen.memory.intents[ref] for ref in proved)


def _pin(seen: Observation, registry: RegistrySnapshot, policy: ReapPolicy) -> RegistryPin:
    before = seen.memory.pin
    accepted = before is not None and before.mismatch_accepted
    scopes = guards.required_scopes(policy, seen.memory) | {entry.scope for entry in seen.coverage}
    still = accepted and bool(guards.strangers(registry, seen.memory, scopes, owned(seen.instances, policy)))
    identity = registry.identity
    return RegistryPin(
        registry_id=identity.registry_id, epoch=identity.epoch, nonce=registry.nonce, mismatch_accepted=still
    )


def _listed(picture: Picture) -> frozenset[InstanceRef]:
    """Return the machines that were ever listed and that a live row names now."""
    ever = picture.seen.memory.listed.union(instance.ref for instance in picture.ours)
    return frozenset(ref for ref in ever if (ref.provider, ref.region, ref.instance_id) in picture.claimed)
