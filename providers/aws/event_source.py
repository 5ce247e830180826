"""What EC2 announces for one machine, for whoever asks about it."""

from __future__ import annotations

from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code, error_text
from providers.aws.events import hear
from providers.aws.options import AwsOptions
from providers.aws.proof import ProvedSessions
from providers.aws.session import AwsSessions
from providers.base import Clock
from providers.errors import EventError
from providers.events import ProviderEvent
from providers.identity import InstanceRef


class AwsEvents:
    """Tells what is announced for a machine of one account. Its session can send nothing that changes anything."""

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock) -> None:
        """Keep the options; nothing is sent."""
        self._options = options
        self._sessions = ProvedSessions(options, sessions, clock=clock)

    @property
    def name(self) -> str:
        """Return the routing key, the same as the lister's."""
        return self._options.name

    def instance_event(self, ref: InstanceRef) -> ProviderEvent | None:
        """Return what is announced for this machine, or was carried out; None when nothing is.

        Raises:
            EventError: if that cannot be known, or the machine is none of a place that this covers.
        """
        if ref.provider != self.name:
            raise EventError(ref, f"this is {self.name}", error_code="unknown_provider")
        try:
            proved = self._sessions.current()
            if ref.region not in proved.regions:
                raise EventError(ref, f"{self.name} has {sorted(proved.regions)}", error_code="unknown_region")
            heard = hear(proved.session.ec2(ref.region).client, ref.scope, ref.instance_id)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            raise EventError(ref, error_text(error), error_code=error_code(error)) from error
        if heard.events:
            return heard.events[0]
        if heard.unheard:
            self._sessions.forget()
            missing = heard.unheard[0]
            raise EventError(ref, missing.detail, error_code=missing.error_code)
        return None
