"""Settings that are allowed and that somebody should think about again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path

from reaperd.config.durations import format_duration
from reaperd.config.settings import Settings
from reaperd.config.tables import AwsProviderTable, BreakerTable
from registry.model import RegistrySnapshot

_SHORT_PASS = timedelta(seconds=10)
_SHORT_SWEEP = timedelta(minutes=1)
_SHORT_MEMORY = timedelta(days=1)
FITS_UP_TO = 300
"""Live rows that the breaker's defaults fit (rule 15: fleets up to a few hundred)."""

_FLEETING = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run"))  # noqa: S108  named to warn of them


def warnings(settings: Settings) -> tuple[str, ...]:
    """Return one sentence for each, with the key in front."""
    return tuple(chain(_about_reconcile(settings), _about_breaker(settings), _about_the_rest(settings)))


def misfits(settings: Settings, snapshot: RegistrySnapshot) -> Iterator[str]:
    """Yield what of the settings does not fit a registry that is ours, with the key in front."""
    yield from _unknown_providers(settings, snapshot)
    yield from _small_breaker(settings, snapshot)


def _unknown_providers(settings: Settings, snapshot: RegistrySnapshot) -> Iterator[str]:
    live = Counter(worker.provider for worker in snapshot.workers if worker.state.is_live)
    for name in sorted(live.keys() - {table.name for table in settings.providers}):
        rows = "live row names" if live[name] == 1 else "live rows name"
        yield f"providers: {live[name]:,} {rows} the provider {name!r}, which no [[providers]] table has"


def _small_breaker(settings: Settings, snapshot: RegistrySnapshot) -> Iterator[str]:
    live = sum(1 for worker in snapshot.workers if worker.state.is_live)
    if live <= FITS_UP_TO:
        return
    limits, usual = settings.reconcile.breaker, BreakerTable()
    for key in ("max_per_pass", "max_per_hour"):
        limit = getattr(limits, key)
        if limit == getattr(usual, key):
            yield (
                f"reconcile.breaker.{key}: the default {limit} fits fleets of up to a few hundred, and the registry "
                f"has {live:,} live rows: the breaker may open on an ordinary day"
            )


def _about_reconcile(settings: Settings) -> Iterator[str]:
    reconcile = settings.reconcile
    if not reconcile.launch_grace:
        yield 'reconcile.launch_grace: with "0s" a machine can be terminated before its launcher has registered it'
    if reconcile.confirm_passes == 1:
        yield "reconcile.confirm_passes: with 1, a single look decides"
    if reconcile.interval < _SHORT_PASS:
        shown = format_duration(reconcile.interval)
        yield f"reconcile.interval: a listing of every region each {shown} may be throttled by the cloud"


def _about_breaker(settings: Settings) -> Iterator[str]:
    breaker = settings.reconcile.breaker
    limits = {"max_per_pass": breaker.max_per_pass, "max_fraction": breaker.max_fraction}
    for key, limit in (limits | {"max_per_hour": breaker.max_per_hour}).items():
        if settings.enforcing and limit == 0:
            yield f"reconcile.breaker.{key}: 0 means never, so enforcing terminates nothing"
    if breaker.max_fraction == 1:
        yield "reconcile.breaker.max_fraction: with 1, the share of the fleet never opens the breaker"


def _about_the_rest(settings: Settings) -> Iterator[str]:
    if any(settings.state_dir.is_relative_to(folder) for folder in _FLEETING):
        yield "state_dir: this folder can be emptied, and the ledger with it: first-seen times, requests and the brake"
    if settings.ledger.keep < _SHORT_MEMORY:
        yield 'ledger.keep: below "1d", a decision can hardly be explained the day after'
    if settings.audit.interval < _SHORT_SWEEP:
        shown = format_duration(settings.audit.interval)
        yield f"audit.interval: a sweep over every region each {shown} may be throttled by the cloud"
    for place, provider in enumerate(settings.providers):
        if isinstance(provider, AwsProviderTable) and provider.account is None:
            yield f"providers.{place}.account: not set, so whatever account the credentials open is looked at"
