"""What spot machines cost at this moment, in all regions of one account side by side."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, cast

from providers.aws.account import ALL_REGIONS
from providers.aws.answers import Answer
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text
from providers.aws.launch_options import AwsLaunchOptions
from providers.aws.options import AwsOptions
from providers.aws.prices import PRODUCT, Pools, pools_of
from providers.aws.proof import Proved, ProvedSessions
from providers.aws.rows import all_rows
from providers.aws.session import AwsSessions, known_instance_types
from providers.base import Clock
from providers.capacity import QuoteFailure, Quotes, Requirement
from providers.errors import QuoteError
from providers.fanout import Answered, Late, Raised, ask_all
from providers.model import Scope

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.literals import InstanceTypeType
    from mypy_boto3_ec2.type_defs import DescribeSpotPriceHistoryRequestTypeDef

_PAGE = 1000


class AwsQuoter:
    """Asks for the current spot prices of one account. Its session can send nothing else."""

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock, how: AwsLaunchOptions) -> None:
        """Keep the options; nothing is sent."""
        self._options = options
        self._clock = clock
        self._timeout = how.quote_timeout
        self._sessions = ProvedSessions(options, sessions, clock=clock)

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        return self._options.name

    def quote(self, requirement: Requirement) -> Quotes:
        """Return an offer for each type and zone that has a spot price now. A region that failed is named.

        Types that are not EC2's are left out; when there are only such, nothing is asked and nothing is offered. Nor in
        a region that this does not cover: a requirement is put to several clouds, and most are not there.

        Raises:
            QuoteError: if every region failed.
        """
        wanted = frozenset(requirement.instance_types) & known_instance_types()
        if (requirement.instance_types and not wanted) or self._is_elsewhere(requirement):
            return Quotes(())
        started = self._clock.monotonic()
        try:
            proved = self._sessions.current()
            regions = self._regions(requirement, proved)
            # The clients here, one after the other: only using them is safe in several threads.
            clients = {region: proved.session.ec2(region).client for region in regions}
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise self._closed(requirement, error) from error
        if not clients:
            return Quotes(())
        left = max(self._timeout - timedelta(seconds=self._clock.monotonic() - started), timedelta(0))
        calls = [partial(self._pools, client, region, wanted) for region, client in clients.items()]
        answers = ask_all(calls, clock=self._clock, timeout=left)
        return self._judged([self._part(region, answer) for region, answer in zip(regions, answers, strict=True)])

    def _is_elsewhere(self, requirement: Requirement) -> bool:
        """Return whether it is for a region that is none of ours, as far as that is known beforehand."""
        covered = self._options.regions
        return bool(requirement.region) and covered is not None and requirement.region not in covered

    def _regions(self, requirement: Requirement, proved: Proved) -> tuple[str, ...]:
        return tuple(sorted(each for each in proved.regions if requirement.region in ("", each)))

    def _closed(self, requirement: Requirement, error: Exception) -> QuoteError:
        """Return what is raised when no region could be asked, with the one reason for all of them."""
        self._sessions.forget()
        regions = (requirement.region,) if requirement.region else self._options.regions or (ALL_REGIONS,)
        return _nothing(tuple(self._failure(region, error) for region in sorted(regions)))

    def _pools(self, client: EC2Client, region: str, wanted: frozenset[str]) -> Pools:
        request: DescribeSpotPriceHistoryRequestTypeDef = {
            "ProductDescriptions": [PRODUCT],
            # What a pool costs since its last change before this moment, which is what it costs now.
            "StartTime": self._clock.now(),
            "MaxResults": _PAGE,
        }
        if wanted:
            request["InstanceTypes"] = cast("list[InstanceTypeType]", sorted(wanted))

        def ask(token: str | None) -> Answer:
            asked: DescribeSpotPriceHistoryRequestTypeDef = {**request}
            if token is not None:
                asked["NextToken"] = token
            return client.describe_spot_price_history(**asked)

        rows = all_rows(ask, "SpotPriceHistory")
        return pools_of(rows, Scope(self.name, region), wanted)

    def _part(self, region: str, answer: Answered[Pools] | Raised | Late) -> Quotes:
        match answer:
            case Answered(pools):
                return Quotes(pools.offers, unreadable=pools.unreadable)
            case Late(waited):
                detail = f"no answer within {waited.total_seconds():.0f} s"
                late = QuoteFailure(scope=Scope(self.name, region), error_code="deadline", detail=detail)
                return Quotes((), (late,))
            case Raised(error) if isinstance(error, (*CALL_ERRORS, BrokenAnswerError)):
                return Quotes((), (self._failure(region, error),))
            case Raised(error):
                # Whatever a cloud can answer is among the above: this is a defect of ours.
                raise error

    def _failure(self, region: str, error: Exception) -> QuoteFailure:
        return QuoteFailure(
            scope=Scope(self.name, region), error_code=error_code(error), detail=error_text(error), error=error
        )

    def _judged(self, parts: Iterable[Quotes]) -> Quotes:
        kept = tuple(parts)
        joined = Quotes.joined(kept)
        if joined.failures:
            self._sessions.forget()
        if len(joined.failures) == len(kept):
            raise _nothing(joined.failures)
        return joined


def _nothing(failures: tuple[QuoteFailure, ...]) -> QuoteError:
    said = "; ".join(f"{failure}: {failure.detail}" if failure.detail else str(failure) for failure in failures)
    error = QuoteError(f"no offers could be had: {said}", failures=failures)
    causes = list(dict.fromkeys(failure.error for failure in failures if failure.error is not None))
    if causes:
        error.__cause__ = BaseExceptionGroup("no region answered", causes)
    return error
