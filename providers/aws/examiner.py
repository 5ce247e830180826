"""One AWS account, looked over: who we are there, which regions it has, what we may end in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from providers.aws.account import enabled_regions
from providers.aws.answers import Caller, caller
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError
from providers.aws.options import AwsOptions
from providers.aws.probing import DryRunProber, trouble_of
from providers.aws.region import AwsRegion
from providers.aws.session import AwsSession, AwsSessions
from providers.base import Clock
from providers.errors import IncompleteListingError
from providers.examination import WRONG_ACCOUNT, Answer, Examination, LeftOut, Probe, ScopeExamination, Trouble
from providers.fanout import Answered, Late, Raised, ask_all
from providers.model import Coverage, OwnedInstance, Scope, ScopeFailure

SAMPLE = 20
"""So many machines of a region are asked about: the questions count against the same rate as the requests."""

_FOLLOWS = frozenset({Answer.ALLOWED, Answer.DENIED, Answer.PROTECTED, Answer.GONE})
"""After any other answer nothing more is asked: the next one would be no clearer, or would do harm."""

_UNKNOWN = "unknown"
_LAST = datetime.max.replace(tzinfo=UTC)


class AwsExaminer:
    """Examines one account. Holds nothing that could terminate, and a session that refuses to."""

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock, sample: int = SAMPLE) -> None:
        """Keep what to look at; nothing is sent."""
        self._options = options
        self._sessions = sessions
        self._clock = clock
        self._sample = sample

    @property
    def name(self) -> str:
        """Return the routing key."""
        return self._options.name

    def examine(self) -> Examination:
        """Return what was found. Takes no longer than a listing may."""
        ends_at = self._clock.monotonic() + self._options.listing_timeout.total_seconds()
        try:
            session = self._sessions.open()
            who = caller(session.sts())
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            return Examination(name=self.name, trouble=trouble_of(error))
        if self._options.account not in (None, who.account):
            detail = f"the credentials belong to {who.account} ({who.arn}), not to {self._options.account}"
            return Examination(
                name=self.name,
                account=who.account,
                caller=who.arn,
                trouble=Trouble(code=WRONG_ACCOUNT, detail=detail),
            )
        return self._toured(_Tour(session, who, ends_at))

    def _toured(self, tour: _Tour) -> Examination:
        """Look into every region."""
        enabled, trouble = _enabled(tour.session)
        known = enabled or frozenset()
        required = known if self._options.regions is None else frozenset(self._options.regions)
        found = self._looks(tour, {region: region in required for region in sorted(required | known)})
        return Examination(
            name=self.name,
            account=tour.who.account,
            caller=tour.who.arn,
            enabled=enabled,
            enabled_trouble=trouble,
            scopes=tuple(each for each in found if isinstance(each, ScopeExamination)),
            left_out=tuple(each for each in found if isinstance(each, LeftOut)),
        )

    def _looks(self, tour: _Tour, regions: Mapping[str, bool]) -> list[ScopeExamination | LeftOut]:
        """Look into all regions side by side; True for those that every pass must list."""
        calls: list[Callable[[], ScopeExamination | LeftOut]] = [
            partial(self._required if required else self._other, tour, region) for region, required in regions.items()
        ]
        left = timedelta(seconds=max(tour.ends_at - self._clock.monotonic(), 0))
        answers = ask_all(calls, clock=self._clock, timeout=left)
        return [
            self._told(region, answer, required=regions[region])
            for region, answer in zip(regions, answers, strict=True)
        ]

    def _told(
        self, region: str, answer: Answered[ScopeExamination | LeftOut] | Raised | Late, *, required: bool
    ) -> ScopeExamination | LeftOut:
        match answer:
            case Answered(found):
                return found
            case Late(waited):
                trouble = Trouble(code="deadline", detail=f"no answer within {waited.total_seconds():.0f} s")
                return self._failed(region, trouble, ScopeFailure.DEADLINE, required=required)
            case Raised(error):
                # Whatever a cloud can answer was caught where it was asked: this is a defect of ours.
                raise error

    def _failed(
        self, region: str, trouble: Trouble, failure: ScopeFailure, *, required: bool
    ) -> ScopeExamination | LeftOut:
        scope = Scope(self.name, region)
        if not required:
            return LeftOut(scope=scope, trouble=trouble)
        return ScopeExamination(
            coverage=Coverage(scope=scope, failure=failure, error_code=trouble.code, detail=trouble.detail)
        )

    def _required(self, tour: _Tour, region: str) -> ScopeExamination | LeftOut:
        """List a region as a pass does, and ask what may be ended in it."""
        try:
            listed = self._region(tour, region).list_owned()
            prober = DryRunProber(tour.session.ec2_asking_once(region).client)
        except IncompleteListingError as error:
            (coverage,) = error.coverage
            return ScopeExamination(coverage=coverage)
        except CALL_ERRORS as error:
            return self._failed(region, trouble_of(error), ScopeFailure.LISTING, required=True)
        (coverage,) = listed.coverage
        sample = sorted(filter(self._is_ours, listed), key=_oldest_first)[: self._sample]
        probes, trouble = self._probed(sample, prober, tour)
        spot = [each.spot_request_id for each in sample if each.spot_request_id is not None]
        return ScopeExamination(
            coverage=coverage,
            owned=listed.instances,
            probes=probes,
            trouble=trouble,
            # Not of a cloud that was not seen to heed DryRun, nor of one that is too slow or too busy already.
            shortfalls=tuple(prober.shortfalls(spot)) if probes and trouble is None else (),
        )

    def _other(self, tour: _Tour, region: str) -> ScopeExamination | LeftOut:
        """Look at whatever runs in a region that no pass looks into."""
        try:
            sweep = self._region(tour, region).audit_instances()
        except CALL_ERRORS as error:
            return self._failed(region, trouble_of(error), ScopeFailure.LISTING, required=False)
        (coverage,) = sweep.coverage
        trouble = None if coverage.ok else Trouble(code=coverage.error_code or _UNKNOWN, detail=coverage.detail)
        owned = sum(1 for each in sweep.instances if each.owner == self._options.deployment)
        return LeftOut(scope=coverage.scope, instances=len(sweep.instances), owned=owned, trouble=trouble)

    def _region(self, tour: _Tour, region: str) -> AwsRegion:
        ec2 = tour.session.ec2(region)
        return AwsRegion(region, self._options, ec2, account=tour.who.account, clock=self._clock)

    def _is_ours(self, instance: OwnedInstance) -> bool:
        ours = instance.owner == self._options.deployment and not instance.foreign_account
        return ours and instance.state.exists

    def _probed(
        self, sample: Sequence[OwnedInstance], prober: DryRunProber, tour: _Tour
    ) -> tuple[tuple[Probe, ...], Trouble | None]:
        """Ask about each machine of the sample, up to the first answer that says neither yes nor no."""
        if not sample:
            return (), None
        trouble = prober.unheeded()
        if trouble is not None:
            return (), trouble
        probes: list[Probe] = []
        for instance in sample:
            if self._clock.monotonic() > tour.ends_at:
                return tuple(probes), Trouble(code="deadline", detail="the time was up")
            probes.append(prober.ask(instance.ref))
            if probes[-1].answer not in _FOLLOWS:
                break
        return tuple(probes), None


@dataclass(frozen=True, slots=True)
class _Tour:
    """A session that is proved to be the pinned account's, and until when there is time."""

    session: AwsSession
    who: Caller
    ends_at: float


def _enabled(session: AwsSession) -> tuple[frozenset[str] | None, Trouble | None]:
    try:
        return enabled_regions(session.ec2(session.home_region).client), None
    except (*CALL_ERRORS, BrokenAnswerError) as error:
        return None, trouble_of(error)


def _oldest_first(instance: OwnedInstance) -> tuple[datetime, str]:
    return instance.launched_at or _LAST, instance.ref.instance_id
