"""What the SDK is told of EC2: the requests that we may send, and not seven hundred others.

The SDK makes a class for each client, with a method for each request that it was told of. For 17 regions that is most
of a process's memory, and half of its start. What is left out here cannot even be named by any of our clients.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import botocore.session
from botocore.loaders import Loader, create_loader

from providers.aws.hooks import LAUNCHING, QUESTIONS, QUOTING, READ_ONLY, TERMINATING

OPERATIONS = frozenset(
    name.removeprefix("ec2:")
    for name in READ_ONLY | TERMINATING | QUOTING | LAUNCHING | QUESTIONS
    if name.startswith("ec2:")
)
"""Every request to EC2 that any of our sessions may send."""

_EC2 = ("ec2", "service-2")
_INSIDE = ("member", "key", "value")

Model = Mapping[str, Any]


class Models(Loader):
    """Reads the SDK's descriptions of services where the SDK does. Safe to use from several threads."""

    def __init__(self, search_paths: Iterable[str]) -> None:
        """Look in these folders too."""
        super().__init__(extra_search_paths=list(search_paths))
        self._reading = threading.Lock()
        self._ec2: dict[str | None, dict[str, Any]] = {}

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:  # noqa: ANN401 - the SDK's own
        """Return a description. That of EC2 is what is left of it."""
        if (service_name, type_name) != _EC2:
            return super().load_service_model(service_name, type_name, api_version)
        with self._reading:
            if api_version not in self._ec2:
                # By another one, which remembers what it has read and goes.
                whole = Loader(extra_search_paths=list(self.search_paths), include_default_search_paths=False)
                self._ec2[api_version] = only(
                    OPERATIONS, whole.load_service_model(service_name, type_name, api_version)
                )
            return self._ec2[api_version]


@cache
def models() -> Models:
    """Return the reader, for the folders that the SDK's own configuration names. One for all sessions."""
    named = botocore.session.Session().get_config_variable("data_path")
    return Models(create_loader(named).search_paths if named else ())


def only(operations: frozenset[str], whole: Model) -> dict[str, Any]:
    """Return the description of a service without what no request of these needs.

    As a copy: what is left of something so large would keep the memory of all of it.
    """
    kept = {name: operation for name, operation in whole["operations"].items() if name in operations}
    shapes = {name: whole["shapes"][name] for name in sorted(_needed(kept.values(), whole["shapes"]))}
    copied: dict[str, Any] = json.loads(json.dumps({**whole, "operations": kept, "shapes": shapes}))
    return copied


def _needed(operations: Iterable[Model], shapes: Mapping[str, Model]) -> set[str]:
    """Return the names of all shapes that these requests and their answers are made of."""
    found: set[str] = set()
    waiting = [part["shape"] for operation in operations for part in _parts(operation)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            shape = shapes[name]
            inside = (*shape.get("members", {}).values(), *(shape[key] for key in _INSIDE if key in shape))
            waiting.extend(member["shape"] for member in inside)
    return found


def _parts(operation: Model) -> Iterable[Model]:
    yield from (operation[key] for key in ("input", "output") if key in operation)
    yield from operation.get("errors", ())
