"""One AWS account with all its regions: proves who it is, finds its regions, looks at them side by side."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from providers.aws.answers import answer_of, caller_account
from providers.aws.errors import CALL_ERRORS, MALFORMED, BrokenAnswerError, error_code, error_text
from providers.aws.events import Heard
from providers.aws.hearing import PATIENCE, hear_everywhere
from providers.aws.locating import AwsLocator
from providers.aws.options import AwsOptions, is_region
from providers.aws.region import AwsRegion
from providers.aws.session import AwsSession, AwsSessions
from providers.base import Clock, Progress
from providers.errors import IncompleteListingError, ProviderSetupError
from providers.locations import Location
from providers.model import UNPROVEN, AuditSweep, Coverage, InstanceRef, Inventory, Scope, ScopeFailure
from providers.multiregion import MultiRegion
from providers.stragglers import Stragglers

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

ALL_REGIONS = "*"
"""The region of a failed coverage when not even the regions are known."""

WRONG_ACCOUNT = "wrong_account"
_NOT_ENABLED = "not-opted-in"


class AwsAccount:
    """Lists, audits and locates in one account. Holds nothing that could terminate, and a session that refuses to."""

    def __init__(
        self,
        options: AwsOptions,
        sessions: AwsSessions,
        *,
        clock: Clock,
        progress: Progress | None = None,
        required_regions: Iterable[str] = (),
    ) -> None:
        """Keep what to look at; nothing is sent.

        `required_regions` are those seen by an earlier process. They stay required, as do those seen by this one,
        since a list of regions can be partial, too; an explicit list in the options replaces them all.

        Raises:
            ProviderSetupError: if a required region has no region's name.
        """
        self._options = options
        self._clock = clock
        self._progress = progress
        self._sessions = sessions
        # Across passes, for which the regions get new clients: what hangs in one is not asked for in the next.
        self._stragglers = Stragglers()
        self._locator = AwsLocator(options, sessions, clock=clock)
        self._lock = threading.Lock()
        known = required_regions if options.regions is None else options.regions
        self._known = frozenset(known) - {ALL_REGIONS}
        odd = sorted(region for region in self._known if not is_region(region))
        if odd:
            msg = f"provider {options.name!r}: required regions: {odd} are not names"
            raise ProviderSetupError(msg)

    @property
    def name(self) -> str:
        """Return the routing key."""
        return self._options.name

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that every listing must cover, as far as they are known by now."""
        return tuple(sorted(self._known))

    def list_owned(self) -> Inventory:
        """Return the owned machines of all regions.

        Raises:
            IncompleteListingError: if a region was not listed whole, the regions could not be had, or the caller is
                not proved to be the pinned account.
        """
        try:
            return self._listed()
        except IncompleteListingError:
            self._sessions.forget()
            raise

    def audit_instances(self) -> AuditSweep:
        """Return everything that runs in every enabled region, also outside the regions of the options."""
        sweep = self._audited()
        if not all(entry.ok for entry in sweep.coverage):
            self._sessions.forget()
        return sweep

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        """Return where each of these machines is, whatever its tags. NotKnown outside the regions of the listing."""
        return self._locator.locate(refs, self.regions)

    def _listed(self) -> Inventory:
        started = self._clock.monotonic()
        try:
            visit = self._arrive()
            everywhere = self._spread(visit, self._required(visit), started)
        except _ClosedError as closed:
            raise IncompleteListingError(self._failed(closed)) from closed
        return everywhere.list_owned()

    def _audited(self) -> AuditSweep:
        started = self._clock.monotonic()
        try:
            visit = self._arrive()
            regions, holes = self._auditable(visit)
            if not regions:
                return AuditSweep(instances=(), coverage=holes)
            everywhere = self._spread(visit, regions, started)
        except _ClosedError as closed:
            return AuditSweep(instances=(), coverage=self._failed(closed))
        sweep = everywhere.audit_instances()
        heard = self._heard(visit, sweep, started)
        return replace(sweep, coverage=(*sweep.coverage, *holes), events=heard.events, unheard=heard.unheard)

    def _heard(self, visit: _Visit, sweep: AuditSweep, started: float) -> Heard:
        """Return what is announced where the sweep could look. A place that failed would most likely fail again."""
        clients = {entry.scope: visit.session.ec2(entry.scope.region).client for entry in sweep.coverage if entry.ok}
        spent = timedelta(seconds=self._clock.monotonic() - started)
        left = max(min(PATIENCE, self._options.listing_timeout - spent), timedelta(0))
        return hear_everywhere(clients, clock=self._clock, timeout=left, stragglers=self._stragglers)

    def _arrive(self) -> _Visit:
        """Return a session that is proved to be the pinned account's."""
        try:
            session = self._sessions.open()
            account = caller_account(session.sts())
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise _ClosedError(ScopeFailure.WRONG_ACCOUNT, UNPROVEN, _because(error)) from error
        if self._options.account not in (None, account):
            detail = f"the credentials belong to {account}, not to {self._options.account}"
            raise _ClosedError(ScopeFailure.WRONG_ACCOUNT, WRONG_ACCOUNT, detail)
        return _Visit(session, account)

    def _required(self, visit: _Visit) -> frozenset[str]:
        """Return the regions that a whole listing covers: those of the options, or all that were ever enabled."""
        if self._options.regions is not None:
            return self._known
        enabled = self._enabled(visit)
        with self._lock:
            self._known |= enabled
            return self._known

    def _auditable(self, visit: _Visit) -> tuple[frozenset[str], tuple[Coverage, ...]]:
        """Return the regions to audit, and the hole that there is when they may not be all."""
        try:
            return self._known | self._enabled(visit), ()
        except _ClosedError as closed:
            return self._known, (self._hole(ALL_REGIONS, closed),)

    def _enabled(self, visit: _Visit) -> frozenset[str]:
        try:
            return enabled_regions(visit.session.ec2(visit.session.home_region).client)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            code = error_code(error)
            raise _ClosedError(ScopeFailure.LISTING, code, f"regions: {error_text(error)}", visit.account) from error

    def _spread(self, visit: _Visit, regions: frozenset[str], started: float) -> MultiRegion:
        try:
            # The clients here, one after the other: only using them is safe in several threads.
            by_region = {region: self._region(visit, region) for region in sorted(regions)}
        except CALL_ERRORS as error:
            code = error_code(error)
            raise _ClosedError(ScopeFailure.LISTING, code, f"clients: {error_text(error)}", visit.account) from error
        spent = timedelta(seconds=self._clock.monotonic() - started)
        left = max(self._options.listing_timeout - spent, timedelta(0))
        return MultiRegion(self.name, by_region, clock=self._clock, timeout=left, stragglers=self._stragglers)

    def _region(self, visit: _Visit, region: str) -> AwsRegion:
        return AwsRegion(
            region,
            self._options,
            visit.session.ec2(region),
            account=visit.account,
            clock=self._clock,
            progress=self._progress,
        )

    def _failed(self, closed: _ClosedError) -> tuple[Coverage, ...]:
        return tuple(self._hole(region, closed) for region in self.regions or (ALL_REGIONS,))

    def _hole(self, region: str, closed: _ClosedError) -> Coverage:
        return Coverage(
            scope=Scope(self.name, region),
            account=closed.account,
            failure=closed.failure,
            error_code=closed.code,
            detail=closed.detail,
        )


def enabled_regions(client: EC2Client) -> frozenset[str]:
    """Return the regions that the account can use. Any status but a plain no counts as usable.

    Raises:
        BrokenAnswerError: if the answer names none, or one without a name.
        Exception: anything in CALL_ERRORS.
    """
    rows = answer_of(client.describe_regions).get("Regions")
    if not isinstance(rows, list):
        raise BrokenAnswerError(MALFORMED, "no list of Regions")
    names = {_region_name(row): row.get("OptInStatus") for row in rows if isinstance(row, Mapping)}
    enabled = frozenset(name for name, status in names.items() if status != _NOT_ENABLED)
    if not enabled:
        raise BrokenAnswerError(MALFORMED, "not one region is enabled")
    return enabled


def _region_name(row: Mapping[str, object]) -> str:
    name = row.get("RegionName")
    if not isinstance(name, str) or not is_region(name):
        raise BrokenAnswerError(MALFORMED, "a region without a name")
    return name


def _because(error: Exception) -> str:
    return f"{error_code(error)}: {error_text(error)}"


@dataclass(frozen=True, slots=True)
class _Visit:
    """One pass's session, and whom STS says it is."""

    session: AwsSession
    account: str


class _ClosedError(Exception):
    """The account as a whole cannot be looked at."""

    def __init__(self, failure: ScopeFailure, code: str, detail: str, account: str | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.failure = failure
        self.code = code
        self.detail = detail
        self.account = account
