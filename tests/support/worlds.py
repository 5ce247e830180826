"""Small worlds for the tests of the core, with a default for everything that an example does not speak of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from providers.model import Coverage, InstanceRef, InstanceState, OwnedInstance, Scope, ScopeFailure
from reaperd.core.model import (
    BreakerLimits,
    Intent,
    Memory,
    Observation,
    OutcomeKind,
    ReapPolicy,
    RegistryPin,
    Sighting,
)
from registry.model import RegistryIdentity, RegistryRows, RegistrySnapshot, Worker, WorkerState

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
DEPLOYMENT = "prod-a"
REGISTRY = "r-1"
EPOCH = 7

EAST = Scope("aws", "us-east-1")
WEST = Scope("aws", "eu-west-1")
GCP = Scope("gcp", "us-east-1")
"""Named like a region of the other cloud, so that forgetting the provider shows."""

SCOPES = (EAST, WEST, GCP)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
WIDE = BreakerLimits(max_per_pass=1000, max_fraction=1.0, fraction_from=4, max_per_hour=1000)
"""A breaker that never opens."""


# ---------------------------------------------------------------- builders


def ref(instance_id: str = "i-1", at: Scope = EAST) -> InstanceRef:
    return InstanceRef(at.provider, at.region, instance_id)


def machine(
    instance_id: str = "i-1",
    *,
    at: Scope = EAST,
    worker: str | None = "w-1",
    age: timedelta | None = HOUR,
    **other: Any,
) -> OwnedInstance:
    """Return a running machine of ours that was launched `age` before NOW."""
    facts: dict[str, Any] = {"state": InstanceState.RUNNING, "owner": DEPLOYMENT} | other
    launched = NOW - age if age is not None else None
    return OwnedInstance(ref=ref(instance_id, at), worker_id=worker, **({"launched_at": launched} | facts))


def row(worker_id: str = "w-1", instance_id: str | None = "i-1", *, at: Scope = EAST, **other: Any) -> Worker:
    """Return a running worker's row, two hours old, that never beat."""
    facts: dict[str, Any] = {"state": WorkerState.RUNNING, "created_at": NOW - 2 * HOUR} | other
    return Worker(worker_id=worker_id, provider=at.provider, region=at.region, instance_id=instance_id, **facts)


def identity(**other: Any) -> RegistryIdentity:
    facts: dict[str, Any] = {
        "registry_id": REGISTRY,
        "deployment": DEPLOYMENT,
        "schema_version": 1,
        "epoch": EPOCH,
        "updated_at": NOW - SECOND,
    }
    return RegistryIdentity(**(facts | other))


def registry(*rows: Worker, **other: Any) -> RegistrySnapshot:
    facts: dict[str, Any] = {"identity": identity(), "nonce": "n-7", "oldest_epoch": 1, "remembered_nonce": "n-7"}
    return RegistrySnapshot(workers=tuple(rows), **(facts | other))


def rows_again(*rows: Worker, **other: Any) -> RegistryRows:
    """Return what a second look at the registry finds, just before the door."""
    return RegistryRows(identity=identity(**other), workers=tuple(rows))


def whole(scope: Scope, **other: Any) -> Coverage:
    return Coverage(scope=scope, **other)


def broken(scope: Scope, failure: ScopeFailure = ScopeFailure.LISTING, **other: Any) -> Coverage:
    return Coverage(scope=scope, failure=failure, **({"error_code": "AuthFailure"} | other))


def policy(**other: Any) -> ReapPolicy:
    """Return a policy that waits for one look only and whose breaker never opens."""
    facts: dict[str, Any] = {
        "deployment": DEPLOYMENT,
        "scopes": frozenset(SCOPES),
        "confirm_passes": 1,
        "breaker": WIDE,
    }
    return ReapPolicy(**(facts | other))


def look(machines: Iterable[OwnedInstance] = (), rows: Iterable[Worker] = (), **other: Any) -> Observation:
    """Return a complete look at NOW, with nothing remembered."""
    facts: dict[str, Any] = {
        "now": NOW,
        "instances": tuple(machines),
        "coverage": tuple(whole(scope) for scope in SCOPES),
        "registry": registry(*rows),
    }
    return Observation(**(facts | other))


def sighting(**other: Any) -> Sighting:
    """Return the sighting of a machine that was seen an hour ago, and never counted or tracked."""
    return Sighting(**({"first_seen_at": NOW - HOUR, "last_seen_at": NOW - MINUTE} | other))


def intent(outcome: OutcomeKind | None, ago: timedelta = MINUTE, of: InstanceRef | None = None, **other: Any) -> Intent:
    facts: dict[str, Any] = {"intent_id": 1, "ref": of or ref(), "requested_at": NOW - ago, "outcome": outcome}
    return Intent(**({"first_requested_at": NOW - ago} | facts | other))


def pin(**other: Any) -> RegistryPin:
    return RegistryPin(**({"registry_id": REGISTRY, "epoch": EPOCH, "nonce": "n-7"} | other))


def memory(*intents: Intent, **other: Any) -> Memory:
    return Memory(intents={each.ref: each for each in intents}, **other)


# ---------------------------------------------------------------- worlds


@dataclass(frozen=True, slots=True)
class World:
    """One pass: what it saw, and what its operator wishes."""

    seen: Observation
    policy: ReapPolicy

    @property
    def rows(self) -> tuple[Worker, ...]:
        assert isinstance(self.seen.registry, RegistrySnapshot)
        return self.seen.registry.workers

    def but(self, **changes: Any) -> World:
        """Return this world with some of what was seen replaced."""
        return World(replace(self.seen, **changes), self.policy)

    def wishing(self, **changes: Any) -> World:
        """Return this world under a changed policy."""
        return World(self.seen, replace(self.policy, **changes))

    def remembering(self, **changes: Any) -> World:
        """Return this world with some of its memory replaced."""
        return self.but(memory=replace(self.seen.memory, **changes))

    def with_rows(self, rows: Iterable[Worker]) -> World:
        """Return this world with other rows in the same registry."""
        assert isinstance(self.seen.registry, RegistrySnapshot)
        return self.but(registry=replace(self.seen.registry, workers=tuple(rows)))
