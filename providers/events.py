"""What a cloud is about to do to a machine, as frozen values. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from providers.identity import InstanceRef, Scope, require_aware

SPOT_NOTICE = timedelta(minutes=2)
"""How long before the end EC2 says that it will come. It does not say when it said so: the end is a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEvent:
    """An interruption that a cloud announced, or has carried out."""

    ref: InstanceRef
    fault_code: str
    """The cloud's own word."""
    marked_for_termination: bool
    """True when the machine ends without anybody here doing anything."""
    termination_time: datetime | None = None
    """When it ends or stops, as far as can be known; often a guess. None when the cloud does not say."""

    def __post_init__(self) -> None:
        require_aware(self.termination_time, f"termination_time of {self.ref}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unheard:
    """A place whose announcements could not be had. What was seen of its machines is no less whole for that."""

    scope: Scope
    error_code: str
    detail: str = ""


class CheckpointReason(StrEnum):
    """Why a worker's state was written down: the word that goes with an event."""

    INSTANCE_TERMINATION = "instance_termination"
    JOB_TERMINATION = "job_termination"
    HEARTBEAT = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaState:
    """What a control plane notes when it writes a worker's state down."""

    checkpoint_reason: CheckpointReason
    event: ProviderEvent | None = None
    """None when no cloud had announced anything."""


_ENDS: Mapping[str, bool] = MappingProxyType(
    {
        "marked-for-termination": True,
        "marked-for-stop": False,
        "instance-terminated-by-price": True,
        "instance-terminated-no-capacity": True,
        "instance-terminated-capacity-oversubscribed": True,
        "instance-terminated-launch-group-constraint": True,
        "instance-stopped-by-price": False,
        "instance-stopped-no-capacity": False,
        "instance-stopped-capacity-oversubscribed": False,
    }
)
"""The status codes of an EC2 spot request that announce an interruption, and whether the machine then ends."""

_STOPS = frozenset({"instance-retirement", "instance-stop"})


def spot_event(ref: InstanceRef, status_code: str, *, updated_at: datetime | None = None) -> ProviderEvent | None:
    """Return what the status code of a spot request announces; None when it is no interruption.

    With the time of the status, an announced end is taken to come two minutes after it. A stopped machine still
    exists and bills: it is not marked for termination.
    """
    ends = _ENDS.get(status_code)
    if ends is None:
        return None
    announced = status_code.startswith("marked-")
    lead = SPOT_NOTICE if announced else timedelta(0)
    return ProviderEvent(
        ref=ref,
        fault_code=status_code,
        marked_for_termination=ends,
        termination_time=None if updated_at is None or not ends else updated_at + lead,
    )


def scheduled_event(ref: InstanceRef, code: str, *, not_before: datetime | None = None) -> ProviderEvent | None:
    """Return what EC2 has planned for a machine that goes away by it; None for a reboot or for maintenance.

    EC2 stops the machine. One whose disk lives on its host ends by that, but the plan does not say which one it is: so
    it is not marked for termination.
    """
    if code not in _STOPS:
        return None
    return ProviderEvent(ref=ref, fault_code=code, marked_for_termination=False, termination_time=not_before)
