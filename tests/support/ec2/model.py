"""What the test cloud holds: machines, spot requests, fleets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
AUTOSCALING_TAG = "aws:autoscaling:groupName"
FLEET_TAG = "aws:ec2:fleet-id"


@dataclass(slots=True, kw_only=True)
class Machine:
    """An instance. Mutable: it is the world's own record."""

    instance_id: str
    region: str
    account: str
    """Whose listing shows it."""
    owner_id: str
    """What its reservation claims as the owner; another account's id makes a foreign machine."""
    serial: int
    """Order of appearance in listings."""
    reservation_id: str
    az: str
    state: str = "running"
    launched_at: str | None = None
    """As rendered, so that nonsense can be served too. None leaves it out. Moved by a start."""
    attached_at: str | None = None
    """When the primary network interface was attached: the first launch. Not moved by a start."""
    instance_type: str = "g5.xlarge"
    image_id: str = "ami-0b5eea76982371e91"
    tags: dict[str, str] = field(default_factory=dict)
    protected: bool = False
    spot_request_id: str | None = None
    operator: str | None = None
    """The AWS service that manages it, such as eks.amazonaws.com."""
    hidden: bool = False
    """Shown only to those who ask for managed resources."""
    client_token: str = ""
    missing_fields: frozenset[str] = frozenset()
    """Fields that the listing leaves out, in boto3's spelling."""
    user_data: str = ""
    """As the machine reads it: decoded once."""
    subnet_id: str | None = None
    groups: tuple[str, ...] = ()
    profile: str | None = None
    """The name or the ARN that the launch gave."""
    on_shutdown: str = "stop"
    """What happens when the machine shuts itself down: stop or terminate."""
    volume_tags: dict[str, str] = field(default_factory=dict)
    interface_tags: dict[str, str] = field(default_factory=dict)
    scheduled: tuple[tuple[str, str], ...] = ()
    """What AWS has planned for it: (code, not before)."""
    schedule_note: str = ""
    """How the description of that begins: `[Completed] ` once it is over."""

    @property
    def live(self) -> bool:
        """Whether it has not been told to end."""
        return self.state not in {"shutting-down", "terminated"}


@dataclass(slots=True, kw_only=True)
class SpotRequest:
    """A spot request. A persistent one launches again when its machine ends."""

    request_id: str
    region: str
    account: str
    kind: str
    """persistent or one-time."""
    state: str = "active"
    """open, active, disabled, closed, cancelled, failed."""
    instance_id: str | None = None
    created_at: str = ""
    status_code: str = "fulfilled"
    status_at: str = ""
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Fleet:
    """An EC2 fleet. One of type maintain launches again when a machine of it ends."""

    fleet_id: str
    region: str
    account: str
    kind: str = "maintain"
    """maintain, request or instant."""
    state: str = "active"
    created_at: str = ""
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrice:
    """What a pool costs an hour since its last change."""

    region: str
    az: str
    instance_type: str
    price: str
    """In dollars, as text: it is never a float on the wire."""
    since: str
    product: str = "Linux/UNIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """A kind of machine."""

    name: str
    vcpus: int
    memory_mib: int
    gpus: tuple[tuple[str, int], ...] = ()
    """Names, and how many of each."""
    described: frozenset[str]
    """The regions that tell what it has."""
    offered: frozenset[str]
    """The regions in which it can be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What machines are launched from."""

    image_id: str
    region: str
    account: str
    created_at: str
    state: str = "available"
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Zone:
    """A place in a region where machines run."""

    name: str
    kind: str = "availability-zone"
    state: str = "available"
    opted: str = "opt-in-not-required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A part of a network, in one zone."""

    subnet_id: str
    region: str
    account: str
    az: str
    vpc_id: str
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroup:
    """Who may talk to a machine of a network."""

    group_id: str
    region: str
    account: str
    vpc_id: str
    tags: dict[str, str] = field(default_factory=dict)


def timestamp(moment: datetime) -> str:
    """Return the time as EC2 writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
