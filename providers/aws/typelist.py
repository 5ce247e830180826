"""The price list of one AWS account: all instance types of all its regions, asked for side by side."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from providers.aws.account import ALL_REGIONS
from providers.aws.answers import Answer
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text
from providers.aws.options import AwsOptions
from providers.aws.prices import PRODUCT, pools_of
from providers.aws.proof import ProvedSessions
from providers.aws.rows import all_rows
from providers.aws.session import AwsSessions
from providers.aws.types import RegionTypes, hardware_of, lowest_of, offered_of, price_list
from providers.base import Clock
from providers.capacity import QuoteFailure
from providers.catalogue import InstanceType
from providers.errors import QuoteError
from providers.fanout import Answered, Late, Raised, ask_all
from providers.model import Scope

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        DescribeInstanceTypeOfferingsRequestTypeDef,
        DescribeInstanceTypesRequestTypeDef,
        DescribeSpotPriceHistoryRequestTypeDef,
    )

_TYPES_A_PAGE = 100
"""All that EC2 gives of DescribeInstanceTypes; of the others it gives ten times that."""
_PAGE = 1000


class AwsTypeLister:
    """Asks what types of machine there are. Its session can send nothing that changes anything.

    EC2 does not tell what a machine costs on demand, so the prices are those of spot machines at this moment: of each
    region the lowest of its zones. A type that has none is not sold as a spot machine there, or is not sold at all.
    """

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock) -> None:
        """Keep the options; nothing is sent."""
        self._options = options
        self._clock = clock
        self._sessions = ProvedSessions(options, sessions, clock=clock)

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        return self._options.name

    def list_instance_types(self) -> tuple[InstanceType, ...]:
        """Return every type that any region describes, by name, those that are offered nowhere, too.

        Raises:
            QuoteError: if a region did not say all that it has, within the time that a listing may take.
        """
        started = self._clock.monotonic()
        try:
            proved = self._sessions.current()
            # The clients here, one after the other: only using them is safe in several threads.
            clients = {region: proved.session.ec2(region).client for region in sorted(proved.regions)}
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            failed = [self._failure(region, error) for region in self._options.regions or (ALL_REGIONS,)]
            raise self._incomplete(failed) from error
        left = self._options.listing_timeout - timedelta(seconds=self._clock.monotonic() - started)
        calls = [partial(self._types, client, region) for region, client in clients.items()]
        answers = ask_all(calls, clock=self._clock, timeout=max(left, timedelta(0)))
        return self._judged(zip(clients, answers, strict=True))

    def _types(self, client: EC2Client, region: str) -> RegionTypes:
        prices = pools_of(all_rows(partial(self._priced, client), "SpotPriceHistory"), Scope(self.name, region), ())
        return RegionTypes(
            region=region,
            described=hardware_of(all_rows(partial(_described, client), "InstanceTypes")),
            offered=offered_of(all_rows(partial(_offered, client), "InstanceTypeOfferings")),
            prices=lowest_of(prices.offers),
        )

    def _priced(self, client: EC2Client, token: str | None) -> Answer:
        request: DescribeSpotPriceHistoryRequestTypeDef = {
            "ProductDescriptions": [PRODUCT],
            "StartTime": self._clock.now(),
            "MaxResults": _PAGE,
        }
        return client.describe_spot_price_history(**(request if token is None else {**request, "NextToken": token}))

    def _judged(self, answers: Iterable[tuple[str, Answered[RegionTypes] | Raised | Late]]) -> tuple[InstanceType, ...]:
        told: list[RegionTypes] = []
        failed: list[QuoteFailure] = []
        for region, answer in answers:
            match answer:
                case Answered(types):
                    told.append(types)
                case Late(waited):
                    detail = f"no answer within {waited.total_seconds():.0f} s"
                    late = QuoteFailure(scope=Scope(self.name, region), error_code="deadline", detail=detail)
                    failed.append(late)
                case Raised(error) if isinstance(error, (*CALL_ERRORS, BrokenAnswerError)):
                    failed.append(self._failure(region, error))
                case Raised(error):
                    # Whatever a cloud can answer is among the above: this is a defect of ours.
                    raise error
        if failed:
            raise self._incomplete(failed)
        return price_list(told)

    def _failure(self, region: str, error: Exception) -> QuoteFailure:
        return QuoteFailure(
            scope=Scope(self.name, region), error_code=error_code(error), detail=error_text(error), error=error
        )

    def _incomplete(self, failed: list[QuoteFailure]) -> QuoteError:
        self._sessions.forget()
        said = "; ".join(f"{failure}: {failure.detail}" for failure in failed)
        error = QuoteError(f"the instance types could not be had whole: {said}", failures=tuple(failed))
        causes = [failure.error for failure in failed if failure.error is not None]
        if causes:
            error.__cause__ = BaseExceptionGroup("regions without an answer", causes)
        return error


def _described(client: EC2Client, token: str | None) -> Answer:
    request: DescribeInstanceTypesRequestTypeDef = {"MaxResults": _TYPES_A_PAGE}
    return client.describe_instance_types(**(request if token is None else {**request, "NextToken": token}))


def _offered(client: EC2Client, token: str | None) -> Answer:
    request: DescribeInstanceTypeOfferingsRequestTypeDef = {"LocationType": "region", "MaxResults": _PAGE}
    return client.describe_instance_type_offerings(**(request if token is None else {**request, "NextToken": token}))
