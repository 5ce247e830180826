"""What every test cloud has: a URL, clients, faults and the log."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.support.ec2.clients import Clients
from tests.support.ec2.clock import CloudClock
from tests.support.ec2.control import Controls
from tests.support.ec2.faults import Fault, FaultKind, Rule, make_fault
from tests.support.ec2.gateway import Backend, Gateway
from tests.support.ec2.journal import Exchange
from tests.support.ec2.protocol import ApiRequest
from tests.support.ec2.server import Server


class ServedCloud:
    """A cloud on a loopback port; use it in a `with` block. All methods are those of the control endpoint too."""

    def __init__(self, backend: Backend, clock: CloudClock, port: int) -> None:
        self.clock = clock
        self.gateway = Gateway(backend, clock)
        self.control = Controls(self)
        self.server = Server(self.gateway, self.control, port)
        self.clients = Clients(self.server.url)

    # -- running

    @property
    def url(self) -> str:
        """Return what goes into endpoint_url."""
        return self.server.url

    def start(self) -> Self:
        """Begin to serve."""
        self.server.start()
        return self

    def close(self) -> None:
        """End every connection and thread, and the clients that it made."""
        self.clients.close()
        self.server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def client(self, service: str = "ec2", region: str = "us-east-1", **options: Any) -> Any:
        """Return a boto3 client of this cloud, closed with it; see Clients.client."""
        return self.clients.client(service, region, **options)

    def environment(self, region: str = "us-east-1") -> dict[str, str]:
        """Return what a subprocess needs in its environment to talk to this cloud."""
        return self.clients.environment(region)

    def configure(self, **settings: Any) -> None:
        """Set `date_skew_s`, seconds added to the Date header of all answers; None sends none."""
        self.gateway.date_skew_s = settings.pop("date_skew_s", self.gateway.date_skew_s)
        if settings:
            raise AttributeError(min(settings))

    # -- faults

    def fault(self, kind: FaultKind | str | None = None, **fields: Any) -> Rule:
        """Put a fault in force: `make_fault`'s fields. The rule's `remove()`, or its `with` block, ends it."""
        fault = make_fault(kind, **fields)
        return self.gateway.faults.add(fault, self._snapshot_for(fault))

    def _snapshot_for(self, fault: Fault) -> Any:  # for clouds that play stale views
        return None

    def remove_fault(self, number: int) -> None:
        """End the fault with this number; an unknown one is already ended."""
        self.gateway.faults.remove(number)

    def clear_faults(self) -> None:
        """End all faults."""
        self.gateway.faults.clear()

    # -- the log

    def on(self, action: str | None, observer: Callable[[ApiRequest], None]) -> None:
        """Call the observer with each such request before it is answered, in the server's thread."""
        self.gateway.observers.append((action, observer))

    def requests(self, action: str | None = None, region: str | None = None) -> list[Exchange]:
        """Return what was asked, in order."""
        return self.gateway.journal.requests(action, region)

    def mutating_requests(self) -> list[Exchange]:
        """Return the requests that would change the cloud, those with DryRun not among them."""
        return self.gateway.journal.mutating_requests()

    def dry_runs(self) -> list[Exchange]:
        """Return the requests with DryRun."""
        return self.gateway.journal.dry_runs()

    def terminate_requests(self, instance_id: str | None = None) -> list[Exchange]:
        """Return the real terminates, answered or not, that name this id or any."""
        return self.gateway.journal.terminate_requests(instance_id)

    def clear_requests(self) -> None:
        """Forget what was asked."""
        self.gateway.journal.clear()
