"""AWS EC2 behind the ports of `providers.base`. The only package that imports boto3.

It does so once something is asked of a cloud: most commands only need to know that there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from providers.aws.launch_options import AwsLaunchOptions
from providers.aws.options import AwsOptions
from providers.base import Clock, Progress, Terminator

if TYPE_CHECKING:
    from providers.aws.account import AwsAccount
    from providers.aws.errors import MutatingRequestError
    from providers.aws.event_source import AwsEvents
    from providers.aws.examiner import AwsExaminer
    from providers.aws.launch import AwsLauncher
    from providers.aws.network import DefaultNetwork
    from providers.aws.organization import AwsOrganization
    from providers.aws.provider import AwsProvider
    from providers.aws.quote import AwsQuoter
    from providers.aws.terminator import AwsTerminator
    from providers.aws.typelist import AwsTypeLister

__all__ = [
    "AwsAccount",
    "AwsEvents",
    "AwsExaminer",
    "AwsLaunchOptions",
    "AwsLauncher",
    "AwsOptions",
    "AwsOrganization",
    "AwsProvider",
    "AwsQuoter",
    "AwsTerminator",
    "AwsTypeLister",
    "MutatingRequestError",
    "aws_event_source",
    "aws_examiner",
    "aws_launcher",
    "aws_lister",
    "aws_organization",
    "aws_provider",
    "aws_quoter",
    "aws_terminator",
    "aws_type_lister",
    "own_instance_id",
]


_HOMES = {
    "AwsAccount": "account",
    "AwsEvents": "event_source",
    "AwsExaminer": "examiner",
    "AwsLauncher": "launch",
    "AwsOrganization": "organization",
    "AwsProvider": "provider",
    "AwsQuoter": "quote",
    "AwsTerminator": "terminator",
    "AwsTypeLister": "typelist",
    "MutatingRequestError": "errors",
}
"""What is here under its name, and loaded when it is asked for."""


def __getattr__(name: str) -> object:
    """Load a class from its own module."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def aws_lister(
    options: AwsOptions,
    *,
    clock: Clock,
    progress: Progress | None = None,
    required_regions: Iterable[str] = (),
) -> AwsAccount:
    """Return what can list and audit one account, and nothing else. Nothing is sent yet.

    Raises:
        ProviderSetupError: if a required region has no region's name, or the SDK's own configuration makes no sense.
    """
    from providers.aws.account import AwsAccount  # noqa: PLC0415 - heavy
    from providers.aws.hooks import READ_ONLY  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy

    sessions = AwsSessions(options, allowed=READ_ONLY, clock=clock)
    return AwsAccount(options, sessions, clock=clock, progress=progress, required_regions=required_regions)


def aws_terminator(options: AwsOptions, *, clock: Clock, stopping: Callable[[], bool] = lambda: False) -> Terminator:
    """Return what can terminate machines of one account. Nothing is sent yet, nor anything again once it is stopping.

    Raises:
        ProviderSetupError: if no account is pinned, or the SDK's own configuration makes no sense.
    """
    from providers.aws.hooks import TERMINATING  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy
    from providers.aws.terminator import AwsTerminator  # noqa: PLC0415 - heavy

    return AwsTerminator(
        options, AwsSessions(options, allowed=TERMINATING, clock=clock), clock=clock, stopping=stopping
    )


def aws_examiner(options: AwsOptions, *, clock: Clock) -> AwsExaminer:
    """Return what can look over the set-up of one account. It can ask what it may terminate, and terminate nothing.

    Raises:
        ProviderSetupError: if the SDK's own configuration makes no sense.
    """
    from providers.aws.examiner import AwsExaminer  # noqa: PLC0415 - heavy
    from providers.aws.hooks import QUESTIONS, READ_ONLY  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy

    return AwsExaminer(options, AwsSessions(options, allowed=READ_ONLY, questions=QUESTIONS, clock=clock), clock=clock)


def aws_organization(options: AwsOptions, *, clock: Clock) -> AwsOrganization:
    """Return what can ask which other accounts there are, and nothing else. Nothing is sent yet.

    Raises:
        ProviderSetupError: if the SDK's own configuration makes no sense.
    """
    from providers.aws.hooks import ASKING_ORGANIZATIONS  # noqa: PLC0415 - heavy
    from providers.aws.organization import AwsOrganization  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy

    return AwsOrganization(options, AwsSessions(options, allowed=ASKING_ORGANIZATIONS, clock=clock), clock=clock)


def aws_quoter(options: AwsOptions, *, clock: Clock, how: AwsLaunchOptions | None = None) -> AwsQuoter:
    """Return what can ask one account for spot prices, and nothing else. Nothing is sent yet.

    Raises:
        ProviderSetupError: if the SDK's own configuration makes no sense.
    """
    from providers.aws.hooks import QUOTING  # noqa: PLC0415 - heavy
    from providers.aws.quote import AwsQuoter  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy

    return AwsQuoter(
        options, AwsSessions(options, allowed=QUOTING, clock=clock), clock=clock, how=how or AwsLaunchOptions()
    )


def aws_type_lister(options: AwsOptions, *, clock: Clock) -> AwsTypeLister:
    """Return what can ask one account which types of machine there are, and nothing else. Nothing is sent yet.

    Raises:
        ProviderSetupError: if the SDK's own configuration makes no sense.
    """
    from providers.aws.hooks import QUOTING  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy
    from providers.aws.typelist import AwsTypeLister  # noqa: PLC0415 - heavy

    return AwsTypeLister(options, AwsSessions(options, allowed=QUOTING, clock=clock), clock=clock)


def aws_event_source(options: AwsOptions, *, clock: Clock) -> AwsEvents:
    """Return what can ask one account what it announces for a machine, and nothing else. Nothing is sent yet.

    Raises:
        ProviderSetupError: if the SDK's own configuration makes no sense.
    """
    from providers.aws.event_source import AwsEvents  # noqa: PLC0415 - heavy
    from providers.aws.hooks import READ_ONLY  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy

    return AwsEvents(options, AwsSessions(options, allowed=READ_ONLY, clock=clock), clock=clock)


def aws_launcher(
    options: AwsOptions,
    *,
    clock: Clock,
    how: AwsLaunchOptions | None = None,
    fell_back: DefaultNetwork | None = None,
) -> AwsLauncher:
    """Return what can launch machines of one account and end none. Nothing is sent yet.

    `fell_back` is told when a launch goes into the default network.

    Raises:
        ProviderSetupError: if no account is pinned, an extra tag is one of ours, or the SDK's own configuration makes
            no sense.
    """
    from providers.aws.hooks import LAUNCHING  # noqa: PLC0415 - heavy
    from providers.aws.launch import AwsLauncher  # noqa: PLC0415 - heavy
    from providers.aws.network import told_nobody  # noqa: PLC0415 - heavy
    from providers.aws.session import AwsSessions  # noqa: PLC0415 - heavy

    # A launch compares more of a machine than is read here otherwise.
    sessions = AwsSessions(options, allowed=LAUNCHING, clock=clock, pages=None)
    return AwsLauncher(
        options, sessions, clock=clock, how=how or AwsLaunchOptions(), fell_back=fell_back or told_nobody
    )


def aws_provider(
    options: AwsOptions,
    *,
    clock: Clock,
    how: AwsLaunchOptions | None = None,
    fell_back: DefaultNetwork | None = None,
) -> AwsProvider:
    """Return the whole of one account, for a control plane. A reaper is built from its parts, without a launcher.

    Raises:
        ProviderSetupError: if no account is pinned, an extra tag is one of ours, or the SDK's own configuration makes
            no sense.
    """
    from providers.aws.provider import AwsProvider  # noqa: PLC0415 - heavy

    return AwsProvider(
        aws_lister(options, clock=clock),
        aws_terminator(options, clock=clock),
        aws_quoter(options, clock=clock, how=how),
        aws_launcher(options, clock=clock, how=how, fell_back=fell_back),
        aws_type_lister(options, clock=clock),
        aws_event_source(options, clock=clock),
    )


def own_instance_id() -> str | None:
    """Return the id of the machine that this runs on; None when that is not EC2, or it does not say."""
    from providers.aws import metadata  # noqa: PLC0415 - heavy

    return metadata.own_instance_id()
