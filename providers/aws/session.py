"""Credentials and clients. The one place that talks to boto3's sessions.

The credentials are resolved anew for every pass, by a session of their own, because a long-lived one never reads a
rewritten credentials file again. Then they are *frozen*: whatever STS says of them is true of every later request of
the same session, which a refresh in the middle could change.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

import boto3.session
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoCredentialsError

from providers.aws.bodies import bound_answers
from providers.aws.errors import MALFORMED, BrokenAnswerError, error_text
from providers.aws.hooks import AllowList, DateMeter
from providers.aws.models import models
from providers.aws.options import AwsOptions
from providers.aws.pages import FASTEST, PageReader
from providers.base import Clock
from providers.errors import ProviderSetupError

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_sts import STSClient
    from mypy_boto3_sts.type_defs import AssumeRoleRequestTypeDef

DEFAULT_HOME = "us-east-1"
_MAX_CONNECTIONS = 4
_SESSION_NAME_LENGTH = 64


class OrganizationsClient(Protocol):
    """The one question that Organizations is asked."""

    def list_accounts(self, **request: str) -> Mapping[str, object]:
        """Return a page of the accounts."""
        ...


@dataclass(frozen=True, slots=True)
class Keys:
    """Credentials that no longer change. Never shown."""

    access_key: str
    secret_key: str
    token: str | None

    def __repr__(self) -> str:
        return "Keys(...)"


@dataclass(frozen=True, slots=True)
class Ec2:
    """The EC2 of one region, and the meter that watches its clock."""

    client: EC2Client
    dates: DateMeter


class AwsSessions:
    """Opens sessions, each with fresh credentials. Safe to use from several threads."""

    def __init__(
        self,
        options: AwsOptions,
        *,
        allowed: frozenset[str],
        questions: frozenset[str] = frozenset(),
        clock: Clock | None = None,
        pages: PageReader | None = FASTEST,
    ) -> None:
        """Read the SDK's configuration; nothing is sent. `allowed` are the requests that its clients may send.

        `questions` are those that they may send with DryRun only. By the clock, one answer takes no longer than a
        whole listing may, or a silence if that is longer; without one, what drips is waited for as long as it drips.
        `pages` reads the pages of DescribeInstances; None leaves them to the SDK, slow and with every field.

        Raises:
            ProviderSetupError: if the SDK cannot make sense of it, such as a profile that does not exist.
        """
        self.options = options
        self._allow_list = AllowList(allowed, questions)
        self._clock = clock
        self._pages = pages
        # Creating clients is not thread-safe; using them is.
        self._creating = threading.Lock()
        self._opening = threading.Lock()
        self._last: AwsSession | None = None
        try:
            self._boto = boto3.session.Session(botocore_session=_core(options.profile))
            region = self._boto.region_name
        except BotoCoreError as error:
            msg = f"provider {options.name!r}: {error_text(error)}"
            raise ProviderSetupError(msg) from error
        self.home_region: str = options.home_region or (options.regions or (region or DEFAULT_HOME,))[0]

    def open(self) -> AwsSession:
        """Return a session with credentials that were resolved, and if there is a role assumed, just now.

        With the same credentials it is the same session: making the clients of 17 regions takes half a second.

        Raises:
            Exception: anything in CALL_ERRORS, or BrokenAnswerError.
        """
        keys = _resolved(self.options.profile)
        if self.options.role_arn is not None:
            keys = _assumed(self.options, self.sts(keys))
        with self._opening:
            if self._last is None or not self._last.is_of(keys):
                self._last = AwsSession(self, keys)
            return self._last

    def forget(self) -> None:
        """Let the next session be a new one in any case.

        For after a failure: what is left of a client's retry quota, or waits in a hung connection, goes with it.
        """
        with self._opening:
            self._last = None

    def sts(self, keys: Keys) -> STSClient:
        """Return a client for identities, in the home region."""
        with self._creating:
            client = self._boto.client(
                "sts", region_name=self.home_region, config=self._config(None), **self._settings(keys)
            )
        self._guard(client)
        return client

    def ec2(self, keys: Keys, region: str, *, max_attempts: int | None = None) -> Ec2:
        """Return a client for one region, with as many attempts a request as the options say unless told."""
        with self._creating:
            client = self._boto.client(
                "ec2", region_name=region, config=self._config(max_attempts), **self._settings(keys)
            )
        self._guard(client)
        dates = DateMeter()
        dates.attach(client)
        if self._pages is not None:
            self._pages.attach(client)
        return Ec2(client, dates)

    def organizations(self, keys: Keys) -> OrganizationsClient:
        """Return a client for the one Organizations of the partition that the home region is in."""
        with self._creating:
            client = self._boto.client(
                "organizations", region_name=self.home_region, config=self._config(None), **self._settings(keys)
            )
        self._guard(client)
        return cast("OrganizationsClient", client)

    def _guard(self, client: BaseClient) -> None:
        self._allow_list.attach(client)
        if self._clock is not None:
            # Never less than a silence may take: a late answer to a terminate is worth more than none.
            bound_answers(client, self._clock, max(self.options.listing_timeout, self.options.read_timeout))

    def _settings(self, keys: Keys) -> dict[str, Any]:
        return {
            "endpoint_url": self.options.endpoint_url,
            "aws_access_key_id": keys.access_key,
            "aws_secret_access_key": keys.secret_key,
            "aws_session_token": keys.token,
        }

    def _config(self, max_attempts: int | None) -> Config:
        options = self.options
        return Config(
            retries={"mode": "standard", "total_max_attempts": max_attempts or options.max_attempts},
            connect_timeout=options.connect_timeout.total_seconds(),
            read_timeout=options.read_timeout.total_seconds(),
            max_pool_connections=_MAX_CONNECTIONS,
            user_agent_extra="reaperd",
        )


class AwsSession:
    """One set of frozen credentials, with the clients made from it, each once."""

    def __init__(self, sessions: AwsSessions, keys: Keys) -> None:
        """Keep the credentials; nothing is sent."""
        self._sessions = sessions
        self._keys = keys
        self._lock = threading.Lock()
        self._made: dict[tuple[str, int | None], Ec2] = {}
        self._sts: STSClient | None = None
        self.home_region = sessions.home_region

    def is_of(self, keys: Keys) -> bool:
        """Return whether these are the credentials of this session."""
        return self._keys == keys

    def sts(self) -> STSClient:
        """Return a client that can say whose credentials these are."""
        with self._lock:
            self._sts = self._sts or self._sessions.sts(self._keys)
            return self._sts

    def organizations(self) -> OrganizationsClient:
        """Return a new client that can say which accounts there are."""
        return self._sessions.organizations(self._keys)

    def ec2(self, region: str) -> Ec2:
        """Return a client that asks again where that helps."""
        return self._client(region, None)

    def ec2_asking_once(self, region: str) -> Ec2:
        """Return a client that sends each request once, so that each answer is known."""
        return self._client(region, 1)

    def _client(self, region: str, max_attempts: int | None) -> Ec2:
        with self._lock:
            made = self._made.get((region, max_attempts))
            if made is None:
                made = self._sessions.ec2(self._keys, region, max_attempts=max_attempts)
                self._made[region, max_attempts] = made
            return made


@cache
def known_instance_types() -> frozenset[str]:
    """Return the names of all instance types that the SDK knows. Nothing is sent."""
    model = models().load_service_model("ec2", "service-2")
    return frozenset(model["shapes"]["InstanceType"]["enum"])


def _core(profile: str | None) -> botocore.session.Session:
    core = botocore.session.Session(profile=profile)
    core.register_component("data_loader", models())
    return core


def _resolved(profile: str | None) -> Keys:
    credentials = _core(profile).get_credentials()
    if credentials is None:
        raise NoCredentialsError
    frozen = credentials.get_frozen_credentials()
    if not frozen.access_key or not frozen.secret_key:
        raise NoCredentialsError
    return Keys(frozen.access_key, frozen.secret_key, frozen.token)


def _assumed(options: AwsOptions, sts: STSClient) -> Keys:
    session_name = re.sub(r"[^\w+=,.@-]", "-", f"reaperd-{options.deployment}", flags=re.ASCII)[:_SESSION_NAME_LENGTH]
    request: AssumeRoleRequestTypeDef = {"RoleArn": options.role_arn or "", "RoleSessionName": session_name}
    if options.external_id is not None:
        request["ExternalId"] = options.external_id
    answer: dict[str, Any] = dict(sts.assume_role(**request))
    given = answer.get("Credentials", {})
    keys = Keys(given.get("AccessKeyId", ""), given.get("SecretAccessKey", ""), given.get("SessionToken"))
    if not (keys.access_key and keys.secret_key and keys.token):
        raise BrokenAnswerError(MALFORMED, "AssumeRole gave no credentials")
    return keys
