"""The evidence on one machine, put together: the ledger, the registry, and the clouds if they are to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from providers.aws import own_instance_id
from providers.model import InstanceRef
from reaperd.clock import SystemClock
from reaperd.config import Settings
from reaperd.core.explain import BLIND, Account, Dossier, explain
from reaperd.core.guards import Objection, objections
from reaperd.core.history import Recollection, Trace, Wanted
from reaperd.core.model import Memory, Observation, ReapPolicy, RefusalReason, RegistryTrouble
from reaperd.core.reap import owned
from reaperd.core.whereabouts import unlisted
from reaperd.ledger.history import LedgerFile, recollect
from reaperd.passes.aside import Patience, Unanswered
from reaperd.passes.observe import fair, list_clouds, locate, read_registry
from reaperd.passes.ports import Stopping
from reaperd.wiring.clouds import build_lister
from reaperd.wiring.passes import Surroundings, build_registry
from reaperd.wiring.policy import build_policy
from registry.model import RegistrySnapshot, Worker

_OF_THE_LOOK = frozenset({*BLIND, RefusalReason.CLOCK})
"""Refusals by what the clouds said: they stand until the clouds are asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What is judged on, and what speaks against it."""

    seen: Observation
    looked_at: datetime | None
    live: bool
    standing: tuple[Objection, ...] = ()
    trouble: str = ""


def ledger_file(settings: Settings) -> LedgerFile:
    """Return which ledger is asked, and whose it has to be."""
    return LedgerFile(path=settings.ledger_path, deployment=settings.deployment, owner_tag=settings.tag_keys.owner)


def explained(settings: Settings, asked: str, wanted: Wanted, clock: SystemClock) -> Dossier:
    """Explain a machine from the record and the registry. No cloud is asked, and nothing is written.

    Raises:
        LedgerUnusableError: if there is no ledger, or it cannot be read.
    """
    told = recollect(ledger_file(settings), asked, wanted, clock.now())
    policy = build_policy(settings, own_instance_id=own_instance_id())
    return _dossier(settings, asked, policy, told, _recorded(settings, told, clock.now(), _patience(settings, clock)))


def explained_live(settings: Settings, asked: str, wanted: Wanted, around: Surroundings) -> Dossier:
    """Explain a machine by a look that leaves no trace; by the record where the look is not complete.

    Raises:
        ProviderSetupError: if a provider cannot be built.
        LedgerUnusableError: if there is a ledger that cannot be read.
    """
    told = _recollected(settings, asked, wanted, around.clock)
    policy = build_policy(settings, own_instance_id=own_instance_id())
    now = around.clock.now()
    known, attempts = told.memory.scopes, around.attempts
    lister = build_lister(settings, around.clock, progress=around.progress, known=known, attempts=attempts)
    patience = _patience(settings, around.clock, around.stopping)
    listing = list_clouds(lister, patience)
    listed = Observation(
        now=now,
        instances=listing.instances,
        coverage=listing.coverage,
        registry=None,
        memory=told.memory,
        late=listing.late or listing.interrupted,
    )
    located = locate(lister, unlisted(listed), patience)
    evidence = _live(settings, told, policy, replace(listed, located=located), fair(patience))
    return _dossier(settings, asked, policy, told, evidence)


def _patience(settings: Settings, clock: SystemClock, stopping: Stopping = lambda: False) -> Patience:
    return Patience(clock, clock.monotonic() + settings.reconcile.deadline.total_seconds(), stopping)


def _recollected(settings: Settings, asked: str, wanted: Wanted, clock: SystemClock) -> Recollection:
    """Return what the ledger has; a look needs no ledger, so without one that is nothing."""
    if not settings.ledger_path.exists():
        return Recollection(memory=Memory())
    return recollect(ledger_file(settings), asked, wanted, clock.now())


# ---------------------------------------------------------------- what is judged on


def _recorded(settings: Settings, told: Recollection, now: datetime, patience: Patience) -> _Evidence:
    """Return the last complete look with the registry of this moment, and why later passes saw nothing."""
    look, newest = told.look, told.newest
    seen = Observation(
        now=now,
        instances=look.instances if look is not None else (),
        coverage=look.coverage if look is not None else (),
        registry=_registry(settings, told, patience),
        memory=told.memory,
    )
    looked_at = look.at if look is not None else None
    if newest is None or (looked_at is not None and newest.at <= looked_at):
        return _Evidence(seen=seen, looked_at=looked_at, live=False)
    at = f"the pass at {newest.at:%Y-%m-%d %H:%M:%S} UTC"
    reasons = [reason for reason in _OF_THE_LOOK if str(reason) in {newest.reason, *newest.also}]
    standing = tuple((r, f"{at}: {newest.detail}" if r == newest.reason else at) for r in reasons)
    return _Evidence(seen=seen, looked_at=looked_at, live=False, standing=standing)


def _live(
    settings: Settings, told: Recollection, policy: ReapPolicy, listed: Observation, patience: Patience
) -> _Evidence:
    # After the clouds, as in a pass.
    seen, now = replace(listed, registry=_registry(settings, told, patience)), listed.now
    standing = [each for each in objections(seen, policy, owned(seen.instances, policy)) if each[0] in BLIND]
    if not standing:
        return _Evidence(seen=seen, looked_at=now, live=True)
    trouble = "; ".join(f"{reason}: {text}" for reason, text in standing)
    recorded = _recorded(settings, told, now, patience)
    return replace(recorded, standing=tuple(standing), trouble=trouble)


def _registry(settings: Settings, told: Recollection, patience: Patience) -> RegistrySnapshot | RegistryTrouble:
    pin = told.memory.pin
    found = read_registry(build_registry(settings), pin.epoch if pin is not None else None, patience)
    return RegistryTrouble(detail="asked to stop while it was read") if isinstance(found, Unanswered) else found


# ---------------------------------------------------------------- the answer


def _dossier(settings: Settings, asked: str, policy: ReapPolicy, told: Recollection, evidence: _Evidence) -> Dossier:
    seen = evidence.seen
    workers = seen.registry.workers if isinstance(seen.registry, RegistrySnapshot) else ()
    traces = {trace.ref: trace for trace in told.traces}
    for ref in _found(asked, seen, workers):
        traces.setdefault(ref, Trace(ref=ref))
    accounts = []
    for ref, trace in sorted(traces.items()):
        explanation = explain(seen, policy, ref, evidence.standing)
        tag = explanation.instance.worker_id if explanation.instance is not None else trace.worker_id
        rows = tuple(w for w in workers if w.instance_id == ref.instance_id or (tag is not None and w.worker_id == tag))
        accounts.append(Account(explanation=explanation, trace=trace, rows=rows))
    return Dossier(
        asked=asked,
        now=seen.now,
        policy=policy,
        owner_tag=settings.tag_keys.owner,
        enforcing=settings.enforcing,
        live=evidence.live,
        trouble=evidence.trouble,
        registry_trouble=seen.registry.detail if isinstance(seen.registry, RegistryTrouble) else "",
        looked_at=evidence.looked_at,
        newest=told.newest,
        accounts=tuple(accounts),
        rows=tuple(w for w in workers if asked in {w.instance_id, w.worker_id}),
        scopes=told.scopes,
    )


def _found(asked: str, seen: Observation, workers: Iterable[Worker]) -> Iterator[InstanceRef]:
    """Yield the machines that go by that name in the listing and in the registry."""
    for instance in seen.instances:
        if asked in {instance.ref.instance_id, str(instance.ref), instance.worker_id}:
            yield instance.ref
    for worker in workers:
        if not worker.instance_id:
            continue
        ref = InstanceRef(worker.provider, worker.region, worker.instance_id)
        if asked in {ref.instance_id, str(ref), worker.worker_id}:
            yield ref
