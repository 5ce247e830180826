"""Where the machines are whose end was asked for (rule 22). Pure.

That a listing by our tag does not have one any more says that it is gone, or that it lost the tag and runs on. So it is
asked for by its id, and only what says that it is gone is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from providers.locations import Gone, Location, NotKnown, OnlyListed, There
from providers.model import InstanceRef, OwnedInstance
from reaperd.core.model import Intent, Observation

_NOT_ASKED = NotKnown("it was not asked for by its id")


def unlisted(seen: Observation) -> tuple[InstanceRef, ...]:
    """Return the machines with an open intent that a complete listing does not have: those to be asked for."""
    if seen.late or not all(entry.ok for entry in seen.coverage):
        return ()
    asked = _asked_before(seen)
    listed = {instance.ref for instance in (seen.instances if asked else ())}
    return tuple(ref for ref in asked if ref not in listed)


def locations(seen: Observation) -> Mapping[InstanceRef, Location]:
    """Return where each machine is whose end was asked for before this look began, in every scope that was looked at.

    The listing is believed where it has the machine. Who was not asked for is not known.
    """
    asked = _asked_before(seen)
    listed = {instance.ref: instance for instance in (seen.instances if asked else ())}
    return MappingProxyType(
        {ref: _of(listed[ref]) if ref in listed else seen.located.get(ref, _NOT_ASKED) for ref in asked}
    )


def is_proved_gone(location: Location) -> bool:
    """Say whether the machine is gone; of a provider that cannot look by id, the listing is the proof."""
    return isinstance(location, (Gone, OnlyListed))


def _asked_before(seen: Observation) -> Mapping[InstanceRef, Intent]:
    looked_at = {entry.scope for entry in seen.coverage if entry.ok}
    return {
        ref: intent
        for ref, intent in sorted(seen.memory.intents.items())
        if ref.scope in looked_at and intent.requested_at < seen.now
    }


def _of(instance: OwnedInstance) -> Location:
    return Gone() if instance.state.is_gone else There(instance.state, instance.owner or None)
