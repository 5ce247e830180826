"""Launches machines of one account. Can end none: who wants that needs a terminator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from providers.aws.account import WRONG_ACCOUNT
from providers.aws.capacity_errors import error_before_launch
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text
from providers.aws.images import NO_IMAGE, Images
from providers.aws.launch_options import AwsLaunchOptions
from providers.aws.launching import Launching
from providers.aws.network import DefaultNetwork, Networks, told_nobody
from providers.aws.options import AwsOptions
from providers.aws.proof import Proved, ProvedSessions
from providers.aws.run_request import Order, checked_order, require_own_tags_kept, run_request
from providers.aws.session import AwsSessions, Ec2
from providers.base import Clock
from providers.capacity import Offer, WorkerHandle, WorkerSpec
from providers.errors import (
    InvalidSpecError,
    LaunchDeferredError,
    LaunchDeniedError,
    LaunchRejectedError,
    ProviderSetupError,
)

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import RunInstancesRequestTypeDef


class AwsLauncher:
    """Launches machines of one account, one a request. Safe to use from several threads."""

    def __init__(
        self,
        options: AwsOptions,
        sessions: AwsSessions,
        *,
        clock: Clock,
        how: AwsLaunchOptions,
        fell_back: DefaultNetwork = told_nobody,
    ) -> None:
        """Keep the options; nothing is sent. `fell_back` is told of launches into the default network.

        Raises:
            ProviderSetupError: if no account is pinned, or an extra tag is one of ours.
        """
        if options.account is None:
            msg = f"provider {options.name!r}: account: must be set, or nothing can be launched"
            raise ProviderSetupError(msg)
        require_own_tags_kept(options, how)
        self._options = options
        self._how = how
        self._clock = clock
        self._sessions = ProvedSessions(options, sessions, clock=clock)
        self._images = Images(how, clock)
        self._networks = Networks(how, clock, fell_back=fell_back)

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        return self._options.name

    def launch(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> WorkerHandle:
        """Launch one machine, or return the handle of the one that this worker id has already in this region.

        The worker id is the token of the request. EC2 keeps tokens by zone: the same one in another zone or region is
        another machine. So this looks for a machine of the worker first, in the region of the offer; and nobody may ask
        for another offer before the outcome of the first is known.

        Raises:
            LaunchError: one of its subclasses. See the port.
        """
        started = self._clock.monotonic()
        order = self._order(worker_id, offer, spec)
        proved, ec2 = self._arrive(order)
        launching = Launching(
            order, self._options, ec2, proved.session.ec2_asking_once(offer.region).client, clock=self._clock
        )
        try:
            found = launching.found()
            if found is not None:
                return found
            request = self._request(order, ec2)
            return launching.run(request, until=started + self._how.launch_timeout.total_seconds())
        except LaunchDeferredError:
            self._sessions.forget()
            raise

    def _order(self, worker_id: str, offer: Offer, spec: WorkerSpec) -> Order:
        order = checked_order(worker_id, offer, spec)
        if offer.provider != self.name:
            msg = f"{order.place}: this is {self.name}"
            raise LaunchRejectedError(msg, error_code="unknown_provider")
        return order

    def _arrive(self, order: Order) -> tuple[Proved, Ec2]:
        """Return a session that is proved to be the pinned account's, and its client for the region."""
        try:
            proved = self._sessions.current()
            if order.offer.region in proved.regions:
                return proved, proved.session.ec2(order.offer.region)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            if error_code(error) == WRONG_ACCOUNT:
                msg = f"{order.place}: {error_text(error)}"
                raise LaunchDeniedError(msg, error_code=WRONG_ACCOUNT) from error
            raise error_before_launch(error, order.worker_id, order.offer, "identity") from error
        msg = f"{order.place}: covers {', '.join(sorted(proved.regions))}"
        raise LaunchRejectedError(msg, error_code="unknown_region")

    def _request(self, order: Order, ec2: Ec2) -> RunInstancesRequestTypeDef:
        try:
            image = self._images.image_for(order.spec, ec2.client, order.offer.region)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            if error_code(error) == NO_IMAGE:
                msg = f"{order.place}: {error_text(error)}"
                raise InvalidSpecError(msg, error_code=NO_IMAGE) from error
            raise error_before_launch(error, order.worker_id, order.offer, "image") from error
        network = self._networks.place_for(order.offer, ec2.client)
        return run_request(order, image=image, network=network, options=self._options, how=self._how)
