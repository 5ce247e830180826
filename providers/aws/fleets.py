"""Which fleets relaunch what they lose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import CALL_ERRORS, BrokenAnswerError, error_code

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

_RELAUNCHES_NOTHING = frozenset({"instant", "request"})
_SPOT_FLEET = "sfr-"
_BATCH = 50
_UNKNOWN_ID = ("InvalidFleet", "InvalidSpotFleetRequest")

Ask = Callable[[Sequence[str]], Mapping[str, object]]
"""From ids to types."""


def harmless_fleets(client: EC2Client, ids: Iterable[str]) -> frozenset[str]:
    """Return those of the fleets that are proved to relaunch nothing.

    A fleet that cannot be read is not among them. Never raises for what AWS answers: this question may stay open
    without the listing being less whole.
    """
    wanted = sorted(set(ids))
    spot = [fleet for fleet in wanted if fleet.startswith(_SPOT_FLEET)]
    ec2 = [fleet for fleet in wanted if not fleet.startswith(_SPOT_FLEET)]
    return _harmless(spot, partial(_spot_fleets, client)) | _harmless(ec2, partial(_ec2_fleets, client))


def _harmless(ids: Sequence[str], ask: Ask) -> frozenset[str]:
    found: set[str] = set()
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        try:
            found |= _proved(batch, ask)
        except (*CALL_ERRORS, BrokenAnswerError):
            break
    return frozenset(found)


def _proved(batch: Sequence[str], ask: Ask) -> set[str]:
    """Return the harmless ones of the batch. One unknown id fails a whole request, so such a batch is halved."""
    try:
        types = ask(batch)
        return {fleet for fleet in batch if types.get(fleet) in _RELAUNCHES_NOTHING}
    except ClientError as error:
        if not error_code(error).startswith(_UNKNOWN_ID):
            raise
    if len(batch) == 1:
        return set()
    middle = len(batch) // 2
    return _proved(batch[:middle], ask) | _proved(batch[middle:], ask)


def _ec2_fleets(client: EC2Client, batch: Sequence[str]) -> Mapping[str, object]:
    # By id, because a fleet of type instant is not listed otherwise.
    answer = answer_of(lambda: client.describe_fleets(FleetIds=batch))
    return {str(row.get("FleetId")): row.get("Type") for row in _rows(answer, "Fleets")}


def _spot_fleets(client: EC2Client, batch: Sequence[str]) -> Mapping[str, object]:
    answer = answer_of(lambda: client.describe_spot_fleet_requests(SpotFleetRequestIds=batch))
    rows = _rows(answer, "SpotFleetRequestConfigs")
    return {str(row.get("SpotFleetRequestId")): _spot_fleet_type(row.get("SpotFleetRequestConfig")) for row in rows}


def _spot_fleet_type(config: object) -> object:
    return config.get("Type") if isinstance(config, Mapping) else None


def _rows(answer: Answer, key: str) -> list[Answer]:
    rows = answer.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
