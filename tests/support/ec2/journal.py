"""What was asked of the cloud."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from tests.support.ec2.protocol import ApiRequest


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request and what became of it. Mutable: the request is written down before it is answered."""

    request: ApiRequest
    status: int | None = None
    """Of the answer; None while there is none, and for ever when the connection is dropped or hangs."""
    error_code: str | None = None
    fault: str | None = None
    """The kind of the fault that hit it."""

    @property
    def action(self) -> str:
        """Return the action."""
        return self.request.action

    @property
    def region(self) -> str:
        """Return the region."""
        return self.request.region

    def as_json(self) -> dict[str, Any]:
        """Return it for the control endpoint."""
        request = self.request
        return {
            "number": request.number,
            "at": request.at.isoformat(),
            "region": request.region,
            "account": request.account,
            "action": request.action,
            "params": dict(request.params),
            "page": request.page,
            "mutating": request.mutating,
            "dry_run": request.dry_run,
            "status": self.status,
            "error_code": self.error_code,
            "fault": self.fault,
        }


class Journal:
    """All requests in the order in which they came. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._exchanges: list[Exchange] = []
        self._numbered = 0

    def number(self) -> int:
        """Return the number of the next request."""
        with self._lock:
            self._numbered += 1
            return self._numbered

    def open(self, request: ApiRequest) -> Exchange:
        """Write down a request."""
        exchange = Exchange(request=request)
        with self._lock:
            self._exchanges.append(exchange)
        return exchange

    def clear(self) -> None:
        """Forget what was asked."""
        with self._lock:
            self._exchanges.clear()

    def requests(self, action: str | None = None, region: str | None = None) -> list[Exchange]:
        """Return the requests, of one action or region if given."""
        with self._lock:
            return [e for e in self._exchanges if action in {None, e.action} and region in {None, e.region}]

    def mutating_requests(self) -> list[Exchange]:
        """Return the requests that would change the cloud, those with DryRun not among them."""
        return [e for e in self.requests() if e.request.mutating and not e.request.dry_run]

    def dry_runs(self) -> list[Exchange]:
        """Return the requests with DryRun."""
        return [e for e in self.requests() if e.request.dry_run]

    def terminate_requests(self, instance_id: str | None = None) -> list[Exchange]:
        """Return the real terminates, answered or not, that name this id or any."""
        real = [e for e in self.mutating_requests() if e.action == "TerminateInstances"]
        return [e for e in real if instance_id is None or e.request.names(instance_id)]
