"""Everything that a pass needs, looked over: the host, the ledger, the clouds, the registry. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from providers.aws import own_instance_id
from providers.errors import ProviderSetupError
from providers.examination import Examination, Organization, Trouble
from providers.fanout import Answered, Late, Raised, ask_all
from providers.model import Scope
from reaperd.clock import SystemClock
from reaperd.config import AwsProviderTable, ProviderTable, Settings, misfits, warnings
from reaperd.core.examined_clouds import (
    Wishes,
    broke_off,
    cannot_be_examined,
    judge_provider,
    listed_twice,
    no_longer_listed,
)
from reaperd.core.examined_host import (
    Holder,
    HttpFacts,
    RegistryFacts,
    judge_host,
    judge_http,
    judge_ledger,
    judge_registry,
    judge_settings,
)
from reaperd.core.examined_organization import judge_organizations
from reaperd.core.findings import Finding
from reaperd.core.guards import Objection, objections, required_scopes
from reaperd.core.model import Memory, Observation, ReapPolicy, RefusalReason, RegistryTrouble
from reaperd.core.reap import owned
from reaperd.errors import HttpError, PortTakenError, WebConfigError
from reaperd.http.server import prove_listening
from reaperd.http.web_config import read_web_config
from reaperd.ledger.inspection import inspect
from reaperd.ledger.place import place_of
from reaperd.ledger.write_lock import holder_of_the_write_lock
from reaperd.process import current
from reaperd.wiring.alerting import unreadable
from reaperd.wiring.clouds import build_examiner, organization_calls
from reaperd.wiring.explaining import ledger_file
from reaperd.wiring.policy import build_policy
from registry.errors import RegistryUnusableError
from registry.sqlite import SqliteRegistry

PATIENCE = timedelta(seconds=60)
"""For one provider, and a little more for all. A person waits for it; what takes longer than this is a finding."""
PATIENCE_WITH_ORGANIZATIONS = timedelta(seconds=20)
"""For all of them. It is good to know, and no pass needs it; from a closed network it cannot be had."""
ATTEMPTS = 3
"""Of one request: enough for a hiccup, and a region that is down is named before anybody gives up."""

_OF_THE_REGISTRY = frozenset(
    {RefusalReason.REGISTRY_UNUSABLE, RefusalReason.REGISTRY_IDENTITY, RefusalReason.REGISTRY_MISMATCH}
)


def examined(settings: Settings, source: Path, clock: SystemClock) -> tuple[Finding, ...]:
    """Return what is to be said of everything. `source` is the file that the settings are from.

    Creates nothing, takes no lease, writes no sighting, and sends no request that could change anything.
    """
    own = own_instance_id()
    policy = build_policy(settings, own_instance_id=own)
    ledger, memory = inspect(ledger_file(settings), clock.now())
    ledger = replace(ledger, locked_by=holder_of_the_write_lock(settings.ledger_path, clock))
    clouds = _ask(settings, clock)
    # After the clouds, as in a pass.
    registry = _registry(settings, memory)
    standing = _standing(clouds, registry, memory, policy, clock)
    advice = [*warnings(settings), *unreadable(settings)]
    advice += misfits(settings, registry.snapshot) if registry.snapshot is not None else ()
    return (
        *judge_settings(str(source), str(settings.mode), advice),
        judge_host(own),
        *judge_ledger(ledger),
        *judge_http(_http(settings), _running_here(ledger.holder)),
        *_judged(clouds, settings, policy),
        *judge_organizations(_organizations(settings, clock), _accounts(clouds)),
        *(no_longer_listed(scope) for scope in sorted(_dropped(clouds, memory, policy))),
        *(listed_twice(text) for text in _twice(clouds, standing)),
        *judge_registry(registry, [each for each in standing if each[0] in _OF_THE_REGISTRY]),
    )


# ---------------------------------------------------------------- the clouds


@dataclass(frozen=True, slots=True)
class _Cloud:
    """One provider table, and what came of it."""

    table: ProviderTable
    found: Examination | Finding
    """A Finding where there is no Examination, which says why."""


def _ask(settings: Settings, clock: SystemClock) -> tuple[_Cloud, ...]:
    """Examine all providers side by side."""
    calls = [partial(_examined, settings, table, clock) for table in settings.providers]
    answers = ask_all(calls, clock=clock, timeout=PATIENCE * 1.1)
    return tuple(
        _Cloud(table, _understood(table, answer)) for table, answer in zip(settings.providers, answers, strict=True)
    )


def _examined(settings: Settings, table: ProviderTable, clock: SystemClock) -> object:
    examiner = build_examiner(settings, table, clock, timeout=PATIENCE, attempts=ATTEMPTS)
    return cannot_be_examined(table.name, table.type) if examiner is None else examiner.examine()


def _understood(table: ProviderTable, answer: Answered[object] | Raised | Late) -> Examination | Finding:
    match answer:
        case Answered(Examination() | Finding() as found):
            return found
        case Answered(other):
            return broke_off(table.name, f"its plug-in answered with a {type(other).__name__}")
        case Raised(ProviderSetupError() as error):
            return broke_off(table.name, str(error))
        case Raised(error):
            return broke_off(table.name, f"{type(error).__name__}: {error}")
        case Late(waited):
            return broke_off(table.name, f"no answer within {waited.total_seconds():.0f} s")


def _judged(clouds: Sequence[_Cloud], settings: Settings, policy: ReapPolicy) -> Iterator[Finding]:
    for cloud in clouds:
        if isinstance(cloud.found, Finding):
            yield cloud.found
            continue
        wishes = Wishes(
            enforcing=settings.enforcing,
            discovering=cloud.table.name in policy.discovering,
            deployment=settings.deployment,
            owner_tag=settings.tag_keys.owner,
        )
        yield from judge_provider(cloud.found, wishes)


def _examinations(clouds: Sequence[_Cloud]) -> tuple[Examination, ...]:
    return tuple(cloud.found for cloud in clouds if isinstance(cloud.found, Examination))


def _dropped(clouds: Sequence[_Cloud], memory: Memory, policy: ReapPolicy) -> frozenset[Scope]:
    """Return the scopes that every pass must list, because one once did, and that their account has no more."""
    told = {found.name: found for found in _examinations(clouds) if found.enabled is not None}
    listed = {each.coverage.scope for found in told.values() for each in found.scopes}
    return frozenset(scope for scope in required_scopes(policy, memory) - listed if scope.provider in told)


# ---------------------------------------------------------------- the accounts around them


def _organizations(settings: Settings, clock: SystemClock) -> list[Organization | Trouble]:
    """Ask with all credentials, side by side, which other accounts there are."""
    calls = organization_calls(settings, clock, timeout=PATIENCE_WITH_ORGANIZATIONS)
    return [_told(answer) for answer in ask_all(calls, clock=clock, timeout=PATIENCE_WITH_ORGANIZATIONS)]


def _told(answer: Answered[Organization | Trouble] | Raised | Late) -> Organization | Trouble:
    match answer:
        case Answered(found):
            return found
        case Late(waited):
            return Trouble(code="deadline", detail=f"no answer within {waited.total_seconds():.0f} s")
        case Raised(ProviderSetupError() as error):
            return Trouble(code="setup", detail=str(error))
        case Raised(error):
            # Whatever a cloud can answer was caught where it was asked: this is a defect of ours.
            raise error


def _accounts(clouds: Sequence[_Cloud]) -> dict[str, str | None]:
    """Return the account of each AWS table: as it is pinned, as its role says, or as it was proved."""
    return {cloud.table.name: _account(cloud) for cloud in clouds if isinstance(cloud.table, AwsProviderTable)}


def _account(cloud: _Cloud) -> str | None:
    table, found = cloud.table, cloud.found
    if isinstance(table, AwsProviderTable) and (table.account or table.role_arn):
        return table.account or str(table.role_arn).split(":")[4]
    return found.account if isinstance(found, Examination) else None


# ---------------------------------------------------------------- what a pass would hold against it


def _standing(
    clouds: Sequence[_Cloud], registry: RegistryFacts, memory: Memory, policy: ReapPolicy, clock: SystemClock
) -> tuple[Objection, ...]:
    scopes = [each for found in _examinations(clouds) for each in found.scopes]
    whole = all(each.coverage.ok for each in scopes) and len(_examinations(clouds)) == len(clouds)
    seen = Observation(
        now=clock.now(),
        # As in a pass: a part of a listing proves nothing about the registry.
        instances=tuple(instance for each in scopes for instance in each.owned) if whole else (),
        coverage=tuple(each.coverage for each in scopes),
        registry=registry.snapshot or RegistryTrouble(detail=registry.trouble),
        memory=memory,
    )
    return objections(seen, policy, owned(seen.instances, policy))


def _twice(clouds: Sequence[_Cloud], standing: Sequence[Objection]) -> Iterator[str]:
    """Yield what two provider tables have in common, where that alone is wrong with the accounts."""
    if all(found.trouble is None for found in _examinations(clouds)):
        yield from (text for reason, text in standing if reason is RefusalReason.WRONG_ACCOUNT)


# ---------------------------------------------------------------- the HTTP server


def _http(settings: Settings) -> HttpFacts:
    """Try what the daemon does at its start: a file that is read, an address that is had for a moment."""
    facts = HttpFacts(listen=settings.http.listen)
    if not facts.listen:
        return facts
    troubles: list[HttpError] = []
    try:
        if settings.http.web_config_file is not None:
            read_web_config(settings.http.web_config_file)
    except WebConfigError as error:
        troubles.append(error)
    try:
        prove_listening(facts.listen)
    except PortTakenError:
        facts = replace(facts, is_taken=True)
    except HttpError as error:
        troubles.append(error)
    return replace(facts, troubles=tuple(troubles))


def _running_here(holder: Holder | None) -> Holder | None:
    """Return who holds the lease, if that is a living process of this host."""
    return holder if holder is not None and not holder.dead and holder.host == current().host else None


# ---------------------------------------------------------------- the registry


def _registry(settings: Settings, memory: Memory) -> RegistryFacts:
    path, pin = settings.registry.path, memory.pin
    facts = RegistryFacts(path=str(path), is_known=pin is not None, network=_network(path))
    try:
        registry = SqliteRegistry(path, settings.registry.busy_timeout)
        snapshot = registry.snapshot(remembered_epoch=None if pin is None else pin.epoch)
    except RegistryUnusableError as error:
        return replace(facts, trouble=error.detail, remedy=error.remedy)
    return replace(facts, snapshot=snapshot)


def _network(path: Path) -> str:
    try:
        place = place_of(path)
    except OSError:
        # Whoever may not look there is told so when the file is read.
        return ""
    return place.filesystem if place.is_network else ""
