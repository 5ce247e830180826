"""The same controls over HTTP: POST /_control {"do": "advance", "seconds": 300}."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from tests.support.ec2.faults import Rule
from tests.support.ec2.journal import Exchange
from tests.support.ec2.model import Machine, SpotRequest

VERBS = frozenset(
    {
        "add_access_key",
        "add_fleet",
        "add_image",
        "add_instance",
        "add_role",
        "add_security_group",
        "add_subnet",
        "add_type",
        "advance",
        "change",
        "change_spot_request",
        "clear_faults",
        "clear_requests",
        "configure",
        "dry_runs",
        "fault",
        "instances",
        "interrupt",
        "mutating_requests",
        "now",
        "remove",
        "remove_fault",
        "requests",
        "set_caller_account",
        "set_organization",
        "set_own_instance",
        "set_pages",
        "set_region",
        "set_spot_price",
        "set_state",
        "set_time",
        "settle",
        "spot_requests",
        "state_of",
        "terminate_requests",
        "terminated_ids",
    }
)


class Controls:
    """Calls the cloud's method of the name in `do` with the other fields."""

    def __init__(self, cloud: Any) -> None:
        self._cloud = cloud

    def __call__(self, command: dict[str, Any]) -> Any:
        """Do what is asked and return it as JSON can say it."""
        verb = command["do"]
        if verb not in VERBS:
            raise LookupError(verb)
        return plain(getattr(self._cloud, verb)(**{name: value for name, value in command.items() if name != "do"}))


def plain(value: Any) -> Any:
    """Return the value as JSON can say it; a rule as its number."""
    match value:
        case Exchange():
            said = value.as_json()
        case Rule():
            said = value.number
        case Machine() | SpotRequest():
            said = dataclasses.asdict(value)
        case datetime():
            said = value.isoformat()
        case list() | tuple():
            said = [plain(inner) for inner in value]
        case _:
            said = value
    return json.loads(json.dumps(said, default=sorted))


def control(url: str, do: str, **fields: Any) -> Any:
    """Tell a stand-alone cloud what to do; ValueError carries what it objects to."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("POST", "/_control", json.dumps({"do": do, **fields}))
        said = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if "error" in said:
        raise ValueError(said["error"])
    return said["result"]
