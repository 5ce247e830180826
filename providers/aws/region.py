"""One region of one account: lists what is owned, audits what runs. Cannot send a mutating request."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, cast

from providers.aws.answers import Answer
from providers.aws.errors import CALL_ERRORS, DEADLINE, MALFORMED, BrokenAnswerError
from providers.aws.fleets import harmless_fleets
from providers.aws.looks import Look, Seen, Tally
from providers.aws.options import AwsOptions
from providers.aws.pages import page_of
from providers.aws.reservations import INTERFACES
from providers.aws.session import Ec2
from providers.aws.translate import (
    MalformedAnswerError,
    RawInstance,
    Vantage,
    audited_instance,
    managing_fleet,
    next_token,
    owned_instance,
    release_fleets,
)
from providers.aws.zones import Part, only_in, parts_of
from providers.base import Clock, Progress
from providers.errors import IncompleteListingError
from providers.fanout import Answered, Raised, ask_all
from providers.model import AuditSweep, Inventory, OwnedInstance, Scope

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import DescribeInstancesRequestTypeDef

HIDDEN = "managed_resources_hidden"
"""The SDK is too old to ask for the machines that AWS services run for us: no audit is whole without them."""

UNDATED = "no_date"
"""EC2 dates every answer. Where a proxy takes that away, a wrong clock of this machine would go unnoticed."""

PARTS_AT_ONCE = 4
"""Of one region: as many as a client keeps connections."""


class AwsRegion:
    """Sees the machines of one region, through a client whose account was proved."""

    def __init__(
        self,
        region: str,
        options: AwsOptions,
        ec2: Ec2,
        *,
        account: str,
        clock: Clock,
        progress: Progress | None = None,
    ) -> None:
        """Keep a client made for this region, and the account that STS proved its credentials to be."""
        self._scope = Scope(options.name, region)
        self._options = options
        self._ec2 = ec2
        self._account = account
        self._clock = clock
        self._progress = progress
        # The proved one: without a pin, too, a reservation of another account is none of ours.
        self._vantage = Vantage(provider=options.name, region=region, keys=options.tags, account=account)

    @property
    def name(self) -> str:
        """Return the name of the account's provider."""
        return self._scope.provider

    def list_owned(self) -> Inventory:
        """Return every machine with our ownership tag that is not terminated.

        Raises:
            IncompleteListingError: if anything short of a proof that this is all of them came back.
        """
        look = self._look(self._owned_request(), lambda raw: owned_instance(raw, self._vantage), without=INTERFACES)
        coverage = look.coverage()
        if not coverage.ok:
            raise IncompleteListingError((coverage,)) from look.error
        return Inventory(self._without_harmless_fleets(look.existing), (coverage,))

    def audit_instances(self) -> AuditSweep:
        """Return every machine that is not terminated, whoever owns it, as far as it could be seen."""
        look = self._look(self._request(), lambda raw: audited_instance(raw, self._vantage))
        if look.error is None and not shows_managed(self._ec2):
            look.error = BrokenAnswerError(HIDDEN, "boto3 is too old to ask for managed resources")
        return AuditSweep(instances=look.existing, coverage=(look.coverage(),))

    def _request(self) -> DescribeInstancesRequestTypeDef:
        request: DescribeInstancesRequestTypeDef = {"MaxResults": self._options.page_size}
        if shows_managed(self._ec2):
            request["IncludeManagedResources"] = True
        return request

    def _owned_request(self) -> DescribeInstancesRequestTypeDef:
        return {
            **self._request(),
            # No filter by state: it would hide a machine in a state that is not known here.
            "Filters": [{"Name": f"tag:{self._options.tags.owner}", "Values": [self._options.deployment]}],
        }

    def _look(
        self,
        request: DescribeInstancesRequestTypeDef,
        read: Callable[[RawInstance], Seen],
        *,
        without: Collection[str] = (),
    ) -> Look[Seen]:
        question = _Question(request, read, without, Tally(self._scope, self._progress), self._over_at())
        if self._scope.region not in self._options.split_by_zone:
            return self._part(question, None)
        look: Look[Seen] = self._new_look()
        try:
            parts = parts_of(self._ec2.client, self._scope.region)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            look.error = error
        else:
            look.join(self._parts(question, parts))
        look.end()
        return look

    def _parts(self, question: _Question[Seen], parts: Sequence[Part]) -> list[Look[Seen]]:
        """Return a look at every part. None is let go of: each has its deadlines, and the region fails with any."""
        calls = [partial(self._part, question, part) for part in parts]
        looks: list[Look[Seen]] = []
        for answer in ask_all(calls, clock=self._clock, workers=PARTS_AT_ONCE):
            if isinstance(answer, Raised):
                raise answer.error
            # Without a timeout, none is late.
            looks.append(cast("Answered[Look[Seen]]", answer).value)
        return looks

    def _part(self, question: _Question[Seen], part: Part | None) -> Look[Seen]:
        look: Look[Seen] = self._new_look()
        try:
            for page in self._pages(question, part):
                question.tally.page(look.take(page, question.read, part))
        except MalformedAnswerError as error:
            look.error = BrokenAnswerError(MALFORMED, str(error))
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            look.error = error
        look.end()
        if look.error is None and look.undated:
            look.error = BrokenAnswerError(UNDATED, "no answer says when it was given, so no clock can be compared")
        return look

    def _new_look(self) -> Look[Seen]:
        return Look(self._scope, self._account, self._clock, self._ec2)

    def _over_at(self) -> float:
        return self._clock.monotonic() + self._options.listing_timeout.total_seconds()

    def _pages(self, question: _Question[Seen], part: Part | None) -> Iterator[Answer]:
        """Yield the pages up to the explicit end. An empty page with a token is not the end."""
        request: DescribeInstancesRequestTypeDef = {**question.request}
        if part is not None:
            request["Filters"] = [*request.get("Filters", ()), only_in(part)]
        tokens: set[str] = set()
        while True:
            page = page_of(self._ec2.client, request, without=question.without)
            if self._clock.monotonic() > question.over_at:
                raise BrokenAnswerError(DEADLINE, f"not listed within {self._options.listing_timeout}")
            yield page
            token = next_token(page)
            if token is None:
                return
            if token in tokens:
                code = "repeated_token"
                raise BrokenAnswerError(code, "the same page was announced twice")
            tokens.add(token)
            request["NextToken"] = token

    def _without_harmless_fleets(self, instances: tuple[OwnedInstance, ...]) -> tuple[OwnedInstance, ...]:
        fleets = {fleet for instance in instances if (fleet := managing_fleet(instance)) is not None}
        if not fleets:
            return instances
        return release_fleets(instances, harmless_fleets(self._ec2.client, fleets))


@dataclass(frozen=True, slots=True)
class _Question(Generic[Seen]):
    """What a region is asked, in one part or in several."""

    request: DescribeInstancesRequestTypeDef
    read: Callable[[RawInstance], Seen]
    without: Collection[str]
    tally: Tally
    over_at: float
    """By the monotonic clock."""


def shows_managed(ec2: Ec2) -> bool:
    """Return whether the SDK can ask for the machines that operators such as EKS hide from us."""
    shape = ec2.client.meta.service_model.operation_model("DescribeInstances").input_shape
    return shape is not None and "IncludeManagedResources" in shape.members
