"""The tables of the file. The string below a key is also its text on the reference page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from alerts.model import Severity
from providers.model import TagKeys
from reaperd.config.durations import format_duration
from reaperd.config.fields import (
    AbsolutePath,
    Account,
    Count,
    Day,
    Dollars,
    Duration,
    Fraction,
    Glob,
    HttpUrl,
    InstanceId,
    Interval,
    Label,
    LeaseTime,
    Listen,
    Name,
    PluginType,
    PositiveCount,
    PositiveDuration,
    Regions,
    RoleArn,
    Secret,
    SecretText,
    SecretUrl,
    Share,
    SplitRegions,
    TagKey,
    Text,
    Variable,
    address_of,
    is_http_url,
)
from reaperd.config.raw import list_or_none, table_or_none
from reaperd.config.schema import marks_of

MASK = "********"
_TAGS = TagKeys()


class LogFormat(StrEnum):
    """How log events are written."""

    AUTO = "auto"
    JSON = "json"
    CONSOLE = "console"


class ChannelType(StrEnum):
    """The kinds of alert channel."""

    LOG = "log"
    WEBHOOK = "webhook"
    ALERTMANAGER = "alertmanager"
    APPRISE = "apprise"


class Table(BaseModel):
    """A frozen table that refuses unknown keys and never shows a secret, its repr included."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True, validate_default=False
    )

    def masked(self) -> dict[str, object]:
        """Return plain values in the file's own spelling, secrets masked, unset keys left out."""
        shown: dict[str, object] = {}
        for name, info in type(self).model_fields.items():
            value: object = getattr(self, name)
            secret = any(isinstance(mark, Secret) for mark in marks_of(info))
            if value is not None:
                shown[name] = mask(str(value)) if secret else plain(value)
        return shown

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        return self.masked().items()


class TagsTable(Table):
    """The names of the tags that carry ownership. On clouds with labels, the adapter translates them."""

    owner: TagKey = _TAGS.owner
    """The tag whose value is the deployment. A machine with exactly this value is ours."""
    worker: TagKey = _TAGS.worker
    """The tag that holds the worker id."""
    model: TagKey = _TAGS.model
    """The tag that names what the worker serves. Shown, never judged by."""
    protect: TagKey = _TAGS.protect
    """A machine with this tag is never terminated, whatever the tag's value and the case of its key."""
    registry: TagKey = _TAGS.registry
    """The tag that holds the id of the registry. Optional on instances; another registry's id holds the machine."""

    @property
    def keys(self) -> TagKeys:
        """Return the names as the providers take them."""
        return TagKeys(
            owner=self.owner, worker=self.worker, model=self.model, protect=self.protect, registry=self.registry
        )


class RegistryTable(Table):
    """The control plane's record of its workers. The daemon only reads it."""

    path: AbsolutePath
    """The SQLite file. It must exist: the daemon never creates it (`reaperd registry init` does)."""
    busy_timeout: PositiveDuration = timedelta(seconds=5)
    """How long to wait for a writer's lock before the pass is refused."""
    max_silence: PositiveDuration | None = None
    """Refuse every pass when nobody has written the registry for longer. Without it, silence is no reason."""
    heartbeat_ttl: PositiveDuration | None = None
    """A live row protects nothing once its heartbeat is older. Without it, heartbeats are not judged."""
    launching_ttl: PositiveDuration = timedelta(hours=1)
    """How long a `launching` row without an instance id protects the machines that carry its worker id."""
    vanish_grace: PositiveDuration = timedelta(hours=1)
    """How long a machine is held whose row was there and is now absent."""


class BreakerTable(Table):
    """When a plan is too big to be true, none of it is carried out. A limit of 0 means: never terminate."""

    max_per_pass: Count = 5
    """The most terminations in one pass. 0 means never."""
    max_fraction: Fraction = 0.5
    """The largest share of the machines that may go at once: 0 means never, however few they are, 1 any share."""
    fraction_from: PositiveCount = 4
    """The share is judged from this many machines on, at least 1; below it, only the other two limits are."""
    max_per_hour: Count = 10
    """The most terminations in any 60 minutes, across restarts. 0 means never."""


class ReconcileTable(Table):
    """The pass that looks, decides and terminates."""

    interval: Interval = timedelta(seconds=60)
    """The time from one pass to the next, at least `"1s"`."""
    deadline: PositiveDuration = timedelta(minutes=4)
    """A pass that takes longer is ended and terminates nothing more."""
    launch_grace: Duration = timedelta(minutes=15)
    """An untracked machine is held until it is older. `"0s"` is allowed, with a warning."""
    confirm_passes: PositiveCount = 3
    """In how many complete looks in a row a machine must be untracked, at least 1."""
    stuck_after: PositiveDuration = timedelta(minutes=30)
    """A requested termination that is not done after this long is alerted and sent again."""
    terminate_pace: Share = 0.5
    """Our share of the rate at which a cloud takes terminations. The rest is for others who use the account."""
    never: Annotated[tuple[InstanceId, ...], Label("list of strings")] = ()
    """Ids of instances that are never terminated."""
    breaker: BreakerTable = BreakerTable()
    """The breaker."""


class LeaseTable(Table):
    """The lease that makes one process the actor."""

    ttl: LeaseTime = timedelta(seconds=30)
    """How long a holder that stopped renewing keeps others waiting, at most `"1h"`."""


class LedgerTable(Table):
    """The daemon's own memory."""

    keep: PositiveDuration = timedelta(days=30)
    """How long decisions stay readable by `reaperd history` and `reaperd explain`."""


class IgnoreTable(Table):
    """Unowned machines that are no leaks. All keys that are given must match; `*`, `?` and `[…]` are wildcards."""

    reason: Text
    """Why. Shown beside every machine that it ignores."""
    until: Day | None = None
    """The last day, in UTC, on which this entry counts. After it, the entry is told as one to take out."""
    provider: Glob | None = None
    """The name of the provider table."""
    account: Glob | None = None
    """The account."""
    region: Glob | None = None
    """The region."""
    instance_id: Glob | None = None
    """The instance id."""
    instance_type: Glob | None = None
    """The instance type."""
    name: Glob | None = None
    """The machine's name."""
    tags: Annotated[Mapping[TagKey, Glob], Label("table of globs")] = Field(default_factory=dict)
    """Tags, each with a pattern for its value: `tags = { team = "platform-*" }`."""


class AuditTable(Table):
    """The sweep over everything that runs, whoever owns it. It alerts and never terminates."""

    interval: Interval = timedelta(minutes=15)
    """The time from one sweep to the next, at least `"1s"`."""
    max_age: PositiveDuration = timedelta(hours=24)
    """An unowned machine that exists for longer is a leak, by the earliest time that any sweep knew of it."""
    max_cost_per_hour: Dollars | None = None
    """An unowned machine that costs more US dollars an hour is a leak as soon as it is older than `min_age`."""
    min_age: PositiveDuration = timedelta(hours=1)
    """Below this age, cost alone makes no leak."""
    realert_after: PositiveDuration = timedelta(hours=24)
    """The time to the reminder of an alert that still holds."""
    ignore: tuple[IgnoreTable, ...] = ()
    """What the sweep leaves out, with the reason. An entry that no machine matches is told after a complete sweep."""


class ChannelTable(Table):
    """One way to tell people."""

    type: ChannelType
    """The kind of channel."""
    name: Name | None = None
    """What metrics and logs call it; the type when not set. Must be unique."""
    url: SecretUrl | None = None
    """Where to. Not for `log`; for the others one of this, `url_file` and `url_env`."""
    url_file: AbsolutePath | None = None
    """A file that holds the URL, for URLs that are secrets."""
    url_env: Variable | None = None
    """A variable of the environment that holds the URL."""
    secret_file: AbsolutePath | None = None
    """A file with the secret that a webhook's requests are signed with; they are not signed without a secret."""
    secret_env: Variable | None = None
    """A variable of the environment with that secret."""
    min_severity: Severity = Severity.WARNING
    """What is less severe is not sent."""

    @property
    def label(self) -> str:
        """Return what metrics and logs call this channel."""
        return self.name or str(self.type)


class AlertsTable(Table):
    """Who is told, and how often."""

    digest_above: Count = 20
    """More new alerts than this in one sweep go out as one."""
    escalate_after: PositiveDuration = timedelta(hours=72)
    """The severity of an alert that holds for longer is raised."""
    ping_url_file: AbsolutePath | None = None
    """A file that holds a URL to call after each complete pass (a dead man's switch)."""
    runbook_url: HttpUrl | None = None
    """A page with a heading for each cause; an alert in Alertmanager links to its own: `…#leak`."""
    channels: tuple[ChannelTable, ...] = ()
    """The channels. Without one, alerts are still recorded and counted."""


class HttpTable(Table):
    """The daemon's own HTTP server: `/metrics`, `/healthz`, `/readyz`."""

    listen: Listen = "127.0.0.1:9745"
    """Where to listen, as host:port; port 0 takes any free one. `""` switches the server off."""
    web_config_file: AbsolutePath | None = None
    """TLS and basic auth, in the format of the Prometheus exporter toolkit."""

    @property
    def address(self) -> tuple[str, int] | None:
        """Return host and port; None when the server is switched off."""
        return address_of(self.listen)


class LogTable(Table):
    """The daemon's log, on stderr."""

    format: LogFormat = LogFormat.AUTO
    """`auto` is JSON unless stderr is a terminal."""


class AwsProviderTable(Table):
    """One AWS account. One table per account."""

    name: Name
    """The routing key, as the registry's rows spell it, and the `provider` label of the metrics."""
    type: Annotated[Literal["aws"], Label('`"aws"`')]
    """The kind of provider."""
    account: Account | None = None
    """The account that the credentials must prove to be. Required to enforce."""
    regions: Regions
    """The regions, or `"auto"` for the enabled ones. A region once seen stays required until a list drops it."""
    split_by_zone: SplitRegions | None = None
    """Regions with thousands of machines, whose availability zones are listed side by side."""
    profile: Text | None = None
    """The profile of the shared AWS files to take credentials from."""
    role_arn: RoleArn | None = None
    """A role to assume with those credentials."""
    external_id: SecretText | None = None
    """The external id that the role asks for."""
    endpoint_url: HttpUrl | None = None
    """Another address of the API, for private endpoints and tests."""

    def as_table(self) -> Mapping[str, object]:
        """Return the plain keys and values, secrets included, unset keys left out."""
        return MappingProxyType(self.model_dump(exclude_none=True))


class PluginProviderTable(Table):
    """A provider of an installed plug-in. It is given the whole table; reaperd itself reads only these two keys."""

    model_config = ConfigDict(extra="allow")

    name: Name
    """The routing key, as the registry's rows spell it, and the `provider` label of the metrics."""
    type: PluginType
    """The name of an entry point in the group `reaperd.providers`. Every further key is the plug-in's own."""

    def as_table(self) -> Mapping[str, object]:
        """Return the table as it stands in the file, secrets included."""
        return MappingProxyType(self.model_dump())

    def masked(self) -> dict[str, object]:
        """Return the table with every text masked of which we do not know that it is no secret."""
        extra = self.model_extra or {}
        return super().masked() | {key: plain(value) if _is_open(key, value) else MASK for key, value in extra.items()}


AWS = "<aws>"
PLUGIN = "<plugin>"


def _provider_kind(value: object) -> str:
    """Tell which model judges a table; one without a usable type is told what AWS needs."""
    table = table_or_none(value)
    kind: object = getattr(value, "type", "aws") if table is None else table.get("type", "aws")
    return AWS if kind == "aws" else PLUGIN


ProviderTable = Annotated[
    Annotated[AwsProviderTable, Tag(AWS)] | Annotated[PluginProviderTable, Tag(PLUGIN)], Discriminator(_provider_kind)
]

_OPEN_KEYS = frozenset({"account", "project", "region", "regions", "zone", "zones", "profile"})


def _is_open(key: str, value: object) -> bool:
    return key in _OPEN_KEYS or key.endswith("_file") or isinstance(value, bool)


def mask(text: str) -> str:
    """Return what of a secret may be shown: of an http URL the host, of anything else nothing."""
    if not is_http_url(text):
        return MASK
    parts = urlsplit(text)
    port = f":{parts.port}" if parts.port else ""
    bare = f"{parts.scheme}://{parts.hostname}{port}"
    return bare if text.rstrip("/") == bare else f"{bare}/{MASK}"


def plain(value: object) -> object:
    """Return the value as the file would spell it."""
    if isinstance(value, Table):
        return value.masked()
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, StrEnum | Path | date):
        return str(value)
    if (entries := list_or_none(value)) is not None:
        return [plain(entry) for entry in entries]
    if (table := table_or_none(value)) is not None:
        return {key: plain(inner) for key, inner in table.items()}
    return value
