"""Everything that a provider may raise. No library's own error leaves an adapter.

ProviderError
├── IncompleteListingError        the picture is not whole: nothing may be decided on it
├── ProviderSetupError            the provider cannot be built from what it was given
├── GateFileError                 the file that says which clouds are off cannot be read or written
├── QuoteError                    nobody who was asked could say what there is
├── EventError                    what is announced for a machine cannot be known
├── LaunchError                   one launch that gave no machine
│   ├── CapacityError                 the cloud has none to give: another offer may be had
│   │   └── QuotaError                    the account may not have more of it
│   ├── OffersExhaustedError          not one of the offers could be had; it carries every cause
│   ├── InvalidSpecError              what was asked for cannot be launched
│   ├── LaunchDeniedError             we may not
│   ├── LaunchDeferredError           nothing was launched; the same call may go well later
│   ├── LaunchMismatchError           the worker id has another machine already
│   ├── LaunchEndedError              the worker id had a machine, and that is over
│   ├── UntaggedLaunchError           there is a machine, and it does not carry our tags
│   ├── LaunchRejectedError           any other refusal, the cloud's or our own
│   ├── GateClosedError               a person switched the cloud off: nothing was sent
│   │   └── GateUnreadableError           whether one did cannot be known: nothing was sent
│   └── UnknownLaunchError            the request was sent and its answer is not known: there may be a machine
└── TerminateError                one termination that was not accepted
    ├── InstanceNotFoundError         the cloud does not know the id
    ├── InvalidInstanceIdError        the id is not of the cloud's form
    ├── TerminationProtectedError     the machine is protected by its cloud
    ├── TerminationDeniedError        we may not
    ├── InstanceChangedError          the machine is no longer what the plan was made for
    │   └── TerminationWithdrawnError     it is, but whoever asked for its end takes that back
    ├── SpotRequestNotCancelledError  its persistent spot request stands: it would come back
    ├── ThrottledError                too fast: nothing was accepted; stop for this pass
    ├── CredentialsExpiredError       nothing was accepted; a new session next pass
    ├── UnknownResultError            the request was sent and its answer is not known
    ├── GoesAloneError                nothing was sent: it cannot go in one request with others
    ├── SpoiledBatchError             nothing was accepted: another machine of the same request was refused
    └── TerminateRejectedError        any other refusal, with the cloud's code
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from providers.capacity import QuoteFailure
    from providers.model import Coverage, InstanceRef


class ProviderError(Exception):
    """Something about a cloud went wrong."""


class ProviderSetupError(ProviderError):
    """A provider cannot be built: the message names the setting and what to do."""


class IncompleteListingError(ProviderError):
    """At least one scope was not listed whole. Carries the coverage of *every* scope, the healthy ones too."""

    def __init__(self, coverage: tuple[Coverage, ...]) -> None:
        """Keep the coverage and name the broken scopes."""
        self.coverage = coverage
        broken = [f"{e.scope} ({e.error_code or e.failure})" for e in coverage if not e.ok]
        super().__init__("incomplete listing: " + (", ".join(broken) or "no scope was listed"))


class GateFileError(ProviderError):
    """The file of a gate cannot be read or written: the message says what to type. Until then every cloud is off."""


class QuoteError(ProviderError):
    """Nobody who was asked could say what there is. An empty quote is none of these: it says that there is nothing."""

    def __init__(self, message: str, *, failures: tuple[QuoteFailure, ...] = ()) -> None:
        """Keep the reason of every place that was asked."""
        self.failures = failures
        super().__init__(message)


class EventError(ProviderError):
    """What a cloud announces for a machine cannot be known. It may be about to end, or not."""

    def __init__(self, ref: InstanceRef, message: str, *, error_code: str) -> None:
        """Keep whose announcements were asked for, and the cloud's own code, or ours in snake_case."""
        self.ref = ref
        self.error_code = error_code
        super().__init__(f"{ref}: {message}")


class LaunchError(ProviderError):
    """One launch gave no machine (or, for UnknownLaunchError, perhaps did)."""

    def __init__(self, message: str, *, error_code: str | None = None) -> None:
        """Keep the cloud's own code, or ours in snake_case when it was not the cloud that refused."""
        self.message = message
        self.error_code = error_code
        super().__init__(message)


class CapacityError(LaunchError):
    """The cloud has no such machine to give, or our quota there is used up. No machine; another offer may be had."""

    def __init__(self, code: str, message: str, region: str = "") -> None:
        """Keep what the cloud said, and where."""
        super().__init__(message, error_code=code)
        self.code = code
        self.region = region


class LaunchRejectedError(LaunchError):
    """The launch was refused for a reason that has no class of its own. No machine."""


class GateClosedError(LaunchError):
    """A person switched launches onto this cloud off. Nothing was sent."""


class GateUnreadableError(GateClosedError):
    """Whether launches onto this cloud are switched off cannot be known, so they are. Nothing was sent."""


class UnknownLaunchError(LaunchError):
    """A time-out, a lost connection or a 5xx after sending: there may be a machine.

    Ask for the same launch again with the same worker id, or leave the row of the worker as it is: never launch
    elsewhere for it.
    """


class QuotaError(CapacityError):
    """The account has as many as it may have. Another region, family or kind has a quota of its own."""


class OffersExhaustedError(LaunchError):
    """Not one offer could be launched onto. No machine."""

    def __init__(self, message: str, causes: Iterable[CapacityError]) -> None:
        """Keep one cause for each offer, in the order in which they were tried."""
        super().__init__(message, error_code="offers_exhausted")
        self.causes = tuple(causes)


class InvalidSpecError(LaunchError):
    """What was asked for cannot be launched: the message says what to change. No machine, here or elsewhere."""


class LaunchDeniedError(LaunchError):
    """The credentials, or the state of the account, do not allow it. No machine."""


class LaunchDeferredError(LaunchError):
    """A throttle, expired credentials, or a look before the launch that failed. No machine; later it may go well."""


class LaunchMismatchError(LaunchError):
    """The worker id has a machine already, and it is not what is asked for now: the message says what differs."""


class LaunchEndedError(LaunchError):
    """The worker id had a machine and that is over. A worker id is used once: take a new one."""


class UntaggedLaunchError(LaunchError):
    """A machine runs that does not carry our tags, so no reaper will ever end it: a person must."""

    def __init__(self, ref: InstanceRef, message: str) -> None:
        """Keep which machine it is."""
        super().__init__(message, error_code="untagged")
        self.ref = ref


class TerminateError(ProviderError):
    """One machine was not terminated by this request (or, for UnknownResultError, perhaps was)."""

    def __init__(self, ref: InstanceRef, detail: str = "", *, error_code: str | None = None) -> None:
        """Keep what the outcome record needs."""
        self.ref = ref
        self.detail = detail
        self.error_code = error_code
        super().__init__(": ".join(part for part in (str(ref), error_code or "", detail) if part))

    def about(self, ref: InstanceRef) -> TerminateError:
        """Return the same of another machine."""
        return type(self)(ref, self.detail, error_code=self.error_code)


class InstanceNotFoundError(TerminateError):
    """The cloud does not know this id in this region. A later complete look has to confirm that it is gone."""


class InvalidInstanceIdError(TerminateError):
    """The cloud says that this is not an id."""


class TerminationProtectedError(TerminateError):
    """The cloud's own termination protection is on. We never switch it off."""


class TerminationDeniedError(TerminateError):
    """The credentials may not terminate this machine."""


class InstanceChangedError(TerminateError):
    """The machine was looked at again and is no longer what the plan was made for: nothing was sent."""


class TerminationWithdrawnError(InstanceChangedError):
    """Asked once more, whoever wanted the machine ended no longer wants it: no terminate was sent."""


class SpotRequestNotCancelledError(TerminateError):
    """The persistent spot request could not be cancelled, so nothing was terminated: it would relaunch."""


class ThrottledError(TerminateError):
    """The cloud said slow down, after the client's own retries. Nothing was accepted."""


class CredentialsExpiredError(TerminateError):
    """The credentials are no longer valid. Nothing was accepted."""


class UnknownResultError(TerminateError):
    """A time-out, a lost connection or a 5xx after sending: to be treated as requested."""


class GoesAloneError(TerminateError):
    """Nothing was sent for this machine: it cannot go in one request with others, and has to be asked for alone."""


class SpoiledBatchError(TerminateError):
    """The request was refused because of another machine in it: nothing was accepted, and this one may go again."""


class TerminateRejectedError(TerminateError):
    """The cloud refused for a reason that has no class of its own."""
