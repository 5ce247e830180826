"""Whether a pass would believe a registry, asked without a pass."""

from __future__ import annotations

from pathlib import Path

from reaperd.clock import SystemClock
from reaperd.config import Settings
from reaperd.core.guards import Objection, doubts_about
from reaperd.ledger.notebooks import peek
from reaperd.wiring.passes import PEEK_TIMEOUT
from reaperd.wiring.policy import build_policy
from registry.sqlite import SqliteRegistry


def doubts(settings: Settings, path: Path, clock: SystemClock) -> tuple[Objection, ...]:
    """Return what would speak against the registry at this path, given what the ledger knows. No cloud is asked.

    Raises:
        LedgerUnusableError: if there is a ledger that cannot be read.
        RegistryUnusableError: if the registry cannot be read.
    """
    now = clock.now()
    owner = settings.tag_keys.owner
    pin = peek(
        settings.ledger_path, deployment=settings.deployment, owner_tag=owner, busy_timeout=PEEK_TIMEOUT, now=now
    ).pin
    registry = SqliteRegistry(path, settings.registry.busy_timeout)
    snapshot = registry.snapshot(remembered_epoch=None if pin is None else pin.epoch)
    return doubts_about(snapshot, pin, build_policy(settings, own_instance_id=None), now)
