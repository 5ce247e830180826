"""What goes together in one request, and what is asked for once more. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from providers.errors import GoesAloneError, SpoiledBatchError, TerminateError
from providers.model import InstanceRef
from reaperd.core.model import Verdict

ROUNDS = 10
"""How often what others spoiled is tried together again, without those, before each goes alone."""

Answers = Mapping[InstanceRef, TerminateError | None]
"""Of a request: None for a machine whose end was accepted."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What goes in one request."""

    verdicts: tuple[Verdict, ...]
    rounds: int = 0
    """How often it was spoiled so far."""


def parcels(verdicts: Sequence[Verdict], size: int) -> Iterable[Parcel]:
    """Return what goes together: of one zone, oldest first, no more than so many."""
    open_: dict[str | None, list[Verdict]] = {}
    for verdict in verdicts:
        zone = open_.setdefault(verdict.instance.zone, [])
        zone.append(verdict)
        if len(zone) == size:
            yield Parcel(tuple(open_.pop(verdict.instance.zone)))
    for zone in open_.values():
        yield Parcel(tuple(zone))


def asked_again(parcel: Parcel, answers: Answers) -> list[Parcel]:
    """Return what is asked for once more: together without those that spoiled it, or each alone."""
    if len(parcel.verdicts) == 1:
        return []
    spoiled = tuple(v for v in parcel.verdicts if isinstance(answers.get(v.ref), SpoiledBatchError))
    alone = [Parcel((v,)) for v in parcel.verdicts if isinstance(answers.get(v.ref), GoesAloneError)]
    if len(spoiled) == len(parcel.verdicts) or parcel.rounds >= ROUNDS:
        # Nobody was taken out, or not enough: together it would come to the same.
        return [*(Parcel((verdict,)) for verdict in spoiled), *alone]
    return [Parcel(spoiled, parcel.rounds + 1), *alone] if spoiled else alone
