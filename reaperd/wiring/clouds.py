"""Which adapter serves which `[[providers]]` table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from importlib.metadata import entry_points
from typing import cast

from providers.aws import AwsOptions, aws_examiner, aws_lister, aws_organization, aws_terminator
from providers.base import Clock, Examiner, InstanceAuditor, Lister, Locator, Progress, Terminator
from providers.errors import ProviderSetupError
from providers.examination import Organization, Trouble
from providers.fanout import asks_permission
from providers.instrumented import RequestObserver, instrumented_lister, instrumented_terminator
from providers.locating import locate_with
from providers.locations import Location
from providers.model import AuditSweep, InstanceRef, Inventory, Scope
from providers.multicloud import MultiCloud, MultiCloudTerminator
from reaperd.config import AwsProviderTable, PluginProviderTable, ProviderTable, Settings

PLUGINS = "reaperd.providers"
"""The entry-point group of provider plug-ins.

Each is a factory that takes its [[providers]] table, with the `deployment` and the names of the `tags` added.
"""


@dataclass(frozen=True, slots=True)
class LookOnly:
    """Any provider, with everything taken away but looking."""

    inner: Lister

    @property
    def name(self) -> str:
        """Return the provider's routing key."""
        return self.inner.name

    def list_owned(self) -> Inventory:
        """See Lister.list_owned."""
        return self.inner.list_owned()

    def audit_instances(self) -> AuditSweep:
        """See InstanceAuditor.audit_instances; one that cannot is skipped, and said so."""
        if isinstance(self.inner, InstanceAuditor):
            return self.inner.audit_instances()
        return AuditSweep(instances=(), coverage=(), skipped=(self.inner.name,))


@dataclass(frozen=True, slots=True)
class LookOnlyLocator(LookOnly):
    """The same of a provider that can look for single machines."""

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """See Locator.locate."""
        return locate_with(self.inner, refs)


def look_only(inner: Lister) -> LookOnly:
    """Return the provider with everything taken away but looking, in whatever ways it can."""
    return LookOnlyLocator(inner) if isinstance(inner, Locator) else LookOnly(inner)


def build_lister(
    settings: Settings,
    clock: Clock,
    *,
    progress: Progress | None = None,
    known: Iterable[Scope] = (),
    attempts: int | None = None,
    observer: RequestObserver | None = None,
) -> MultiCloud:
    """Return what sees every configured cloud. `known` are the scopes that were ever listed.

    `attempts` is how often one request is sent before it has failed; None leaves that to the adapter. `observer` is
    told of every operation.

    Raises:
        ProviderSetupError: if a provider cannot be built; the message names its table.
    """
    scopes = tuple(known)
    children = [_lister(settings, table, clock, progress, scopes, attempts) for table in settings.providers]
    if observer is not None:
        children = [instrumented_lister(child, observer, clock=clock) for child in children]
    # A little less than the pass has: what did not answer is then named, scope by scope.
    timeout = settings.reconcile.deadline * 0.9
    return MultiCloud("clouds", *children, clock=clock, timeout=timeout)


def build_terminator(
    settings: Settings,
    clock: Clock,
    *,
    attempts: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
    observer: RequestObserver | None = None,
) -> Terminator:
    """Return what can terminate on every configured cloud. `attempts` as for build_lister.

    No request is sent again once it is `stopping`.

    Raises:
        ProviderSetupError: if a provider cannot be built, or cannot terminate.
    """
    children = [_terminator(settings, table, clock, attempts, stopping) for table in settings.providers]
    if observer is not None:
        children = [instrumented_terminator(child, observer, clock=clock) for child in children]
    return MultiCloudTerminator("clouds", *children)


def build_examiner(
    settings: Settings, table: ProviderTable, clock: Clock, *, timeout: timedelta, attempts: int
) -> Examiner | None:
    """Return what can look over one provider; None for a plug-in without the ability.

    Raises:
        ProviderSetupError: if it cannot be built.
    """
    if isinstance(table, AwsProviderTable):
        options = aws_options(settings, table, attempts)
        return aws_examiner(replace(options, listing_timeout=min(timeout, options.listing_timeout)), clock=clock)
    made = plugin(settings, table)
    return made if isinstance(made, Examiner) else None


def organization_calls(
    settings: Settings, clock: Clock, *, timeout: timedelta
) -> list[Callable[[], Organization | Trouble]]:
    """Return a call for all credentials that the AWS tables use, those that assume a role too, each once.

    Which of them belong to an account that is told of the others is nobody's to know beforehand. A call raises
    ProviderSetupError if its credentials cannot be built.
    """
    found: dict[tuple[str | None, ...], AwsOptions] = {}
    for table in settings.providers:
        if isinstance(table, AwsProviderTable):
            options = replace(aws_options(settings, table, attempts=2), listing_timeout=timeout)
            for each in (options, replace(options, role_arn=None, external_id=None)):
                found.setdefault((each.profile, each.role_arn, each.endpoint_url), each)
    return [partial(_organization, options, clock) for options in found.values()]


def _organization(options: AwsOptions, clock: Clock) -> Organization | Trouble:
    return aws_organization(options, clock=clock).look()


# ---------------------------------------------------------------- one provider table


def _lister(
    settings: Settings,
    table: ProviderTable,
    clock: Clock,
    progress: Progress | None,
    known: tuple[Scope, ...],
    attempts: int | None,
) -> Lister:
    if isinstance(table, AwsProviderTable):
        seen = [scope.region for scope in known if scope.provider == table.name]
        options = aws_options(settings, table, attempts)
        return aws_lister(options, clock=clock, progress=progress, required_regions=seen)
    return look_only(plugin(settings, table))


def _terminator(
    settings: Settings, table: ProviderTable, clock: Clock, attempts: int | None, stopping: Callable[[], bool]
) -> Terminator:
    if isinstance(table, AwsProviderTable):
        return aws_terminator(aws_options(settings, table, attempts), clock=clock, stopping=stopping)
    made = plugin(settings, table)
    if not isinstance(made, Terminator):
        msg = f'provider {table.name!r} of type {table.type!r} cannot terminate: use mode = "dry-run"'
        raise ProviderSetupError(msg)
    if not asks_permission(made):
        what = "cannot be asked again before it sends (its terminate takes no `permitted`)"
        msg = f'provider {table.name!r} of type {table.type!r} {what}: update the plug-in, or use mode = "dry-run"'
        raise ProviderSetupError(msg)
    return made


def aws_options(settings: Settings, table: AwsProviderTable, attempts: int | None = None) -> AwsOptions:
    """Return what one AWS table says. `attempts` as for build_lister."""
    options = AwsOptions(
        name=table.name,
        deployment=settings.deployment,
        tags=settings.tag_keys,
        account=table.account,
        regions=None if isinstance(table.regions, str) else tuple(table.regions),
        split_by_zone=table.split_by_zone or (),
        profile=table.profile,
        role_arn=table.role_arn,
        external_id=table.external_id,
        endpoint_url=table.endpoint_url,
        listing_timeout=settings.reconcile.deadline * 0.85,
    )
    return options if attempts is None else replace(options, max_attempts=attempts)


def missing_plugins(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the dotted path of each provider type that nothing installed provides, and a sentence about it."""
    installed = {entry.name for entry in entry_points(group=PLUGINS)}
    for number, table in enumerate(settings.providers):
        if isinstance(table, PluginProviderTable) and table.type not in installed:
            yield f"providers.{number}.type", _no_plugin(table)


def _no_plugin(table: PluginProviderTable) -> str:
    installed = ", ".join(sorted(entry.name for entry in entry_points(group=PLUGINS))) or "none"
    return f"no plug-in provides type {table.type!r} (built in: aws; installed: {installed})"


def plugin(settings: Settings, table: PluginProviderTable) -> Lister:
    """Return what the plug-in of one table made of it.

    Raises:
        ProviderSetupError: if none is installed, or it made no Lister.
    """
    found = [entry for entry in entry_points(group=PLUGINS) if entry.name == table.type]
    if not found:
        msg = f"provider {table.name!r}: {_no_plugin(table)}"
        raise ProviderSetupError(msg)
    factory = cast("Callable[[object], object]", found[0].load())
    tags = {key: getattr(settings.tag_keys, key) for key in ("owner", "worker", "model", "protect", "registry")}
    made = factory({"deployment": settings.deployment, "tags": tags, **table.as_table()})
    if not isinstance(made, Lister):
        msg = f"provider {table.name!r}: what the plug-in {table.type!r} made has no name and list_owned"
        raise ProviderSetupError(msg)
    return made
