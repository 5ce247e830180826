"""The operator's wishes, as the decisions need them."""

from __future__ import annotations

from providers.identity import loosely
from providers.model import Scope
from reaperd.config import AwsProviderTable, IgnoreTable, Settings
from reaperd.core.ignoring import IgnoreRule
from reaperd.core.leaks import AuditPolicy
from reaperd.core.model import BreakerLimits, ReapPolicy

_AUTO = "auto"
_PATTERNS = ("provider", "account", "region", "instance_id", "instance_type", "name")


def build_policy(settings: Settings, *, own_instance_id: str | None, confirmation_given: bool = False) -> ReapPolicy:
    """Return the operator's wishes as the decision needs them."""
    reconcile, registry = settings.reconcile, settings.registry
    return ReapPolicy(
        deployment=settings.deployment,
        scopes=named_scopes(settings),
        discovering=discovering(settings),
        launch_grace=reconcile.launch_grace,
        confirm_passes=reconcile.confirm_passes,
        look_spacing=reconcile.interval / 2,
        stuck_after=reconcile.stuck_after,
        never=frozenset(map(loosely, (*reconcile.never, *([own_instance_id] if own_instance_id else ())))),
        breaker=BreakerLimits(
            max_per_pass=reconcile.breaker.max_per_pass,
            max_fraction=reconcile.breaker.max_fraction,
            fraction_from=reconcile.breaker.fraction_from,
            max_per_hour=reconcile.breaker.max_per_hour,
        ),
        launching_ttl=registry.launching_ttl,
        vanish_grace=registry.vanish_grace,
        heartbeat_ttl=registry.heartbeat_ttl,
        max_silence=registry.max_silence,
        confirmation_given=confirmation_given,
        prices=settings.prices,
    )


def build_audit_policy(settings: Settings) -> AuditPolicy:
    """Return what counts as a leak."""
    audit = settings.audit
    return AuditPolicy(
        deployment=settings.deployment,
        tags=settings.tag_keys,
        max_age=audit.max_age,
        max_cost_per_hour=audit.max_cost_per_hour,
        min_age=audit.min_age,
        ignore=tuple(_rule(entry) for entry in audit.ignore),
        scopes=named_scopes(settings),
        discovering=discovering(settings),
        prices=settings.prices,
    )


def _rule(entry: IgnoreTable) -> IgnoreRule:
    given = {key: getattr(entry, key) for key in _PATTERNS}
    patterns = {key: pattern for key, pattern in given.items() if pattern is not None}
    return IgnoreRule(reason=entry.reason, until=entry.until, patterns=patterns, tags=dict(entry.tags))


def named_scopes(settings: Settings) -> frozenset[Scope]:
    """Return the scopes that the configuration names; a discovered one is not among them."""
    return frozenset(
        Scope(table.name, region)
        for table in settings.providers
        if isinstance(table, AwsProviderTable) and table.regions != _AUTO
        for region in table.regions
    )


def discovering(settings: Settings) -> frozenset[str]:
    """Return the providers whose scopes no configuration names."""
    return frozenset(table.name for table in settings.providers) - {s.provider for s in named_scopes(settings)}
