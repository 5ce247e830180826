"""A running daemon, as a test sees it: its log, its probes, its metrics, what it tells the service manager."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes import PATIENCE, Result, Running, until
from tests.support.site import Site

LISTEN = "127.0.0.1:0"


@dataclass(slots=True)
class Daemon:
    """`reaperd run` on a site."""

    running: Running
    notes: Notes | None = None
    _address: tuple[str, int] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        return self.running.pid

    # ------------------------------------------------------------ what it logs

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """Return what it has logged so far, or the events of one name."""
        return [event for event in self.running.events() if name in {"", event["event"]}]

    def passes(self) -> list[dict[str, Any]]:
        """Return the last event of each reconcile pass that has ended."""
        return [event for event in self.events("pass_finished") if event["kind"] == "reconcile"]

    def last(self) -> dict[str, Any]:
        """Return the last event of the last reconcile pass; empty before the first."""
        return (self.passes() or [{}])[-1]

    def after_passes(self, more: int) -> None:
        """Wait until so many more passes have ended."""
        wanted = len(self.passes()) + more
        self.until(lambda: len(self.passes()) >= wanted)

    def until(self, happened: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Wait until something is true; a daemon that ended meanwhile fails with what it said."""

        def looked() -> Any:
            if happened():
                return True
            if self.running.ended():
                result = self.running.wait()
                message = f"the daemon ended with {result.code}: {result.err[-3000:]}"
                raise AssertionError(message)
            return False

        until(looked, seconds)

    # ------------------------------------------------------------ what it answers

    @property
    def address(self) -> tuple[str, int]:
        """Return where it listens; wait for that."""
        if self._address is None:
            self.until(lambda: self.events("http_listening"))
            event = self.events("http_listening")[0]
            self._address = (event["host"], event["port"])
        return self._address

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://{host}:{port}"

    def get(self, path: str, *, timeout: float = 10.0) -> tuple[int, str]:
        """Return status and body."""
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def healthy(self) -> bool:
        return self.get("/healthz")[0] == 200

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def status(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.get("/api/v1/status")[1])
        return document

    def metrics(self) -> dict[str, float]:
        """Return every sample of a scrape by its name with sorted labels: `name{a=1,b=2}`."""
        code, text = self.get("/metrics")
        assert code == 200, text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {_named(sample.name, sample.labels): sample.value for sample in samples}

    # ------------------------------------------------------------ its end

    def stop(self, number: int) -> tuple[Result, float]:
        """Send a signal; return what it left, and how many seconds that took."""
        self.running.kill(number)
        told_at = time.monotonic()
        result = self.running.wait()
        return result, time.monotonic() - told_at


def _named(name: str, labels: Mapping[str, str]) -> str:
    inside = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name


class Notes:
    """The service manager's end of the notify socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self._read: list[tuple[float, str]] = []

    def read(self) -> list[tuple[float, str]]:
        """Return every message so far, with the monotonic time at which it was read."""
        while True:
            try:
                text = self._socket.recv(65536).decode()
            except BlockingIOError:
                return list(self._read)
            self._read.append((time.monotonic(), text))

    def said(self, line: str) -> list[float]:
        """Return when a line was said."""
        return [at for at, text in self.read() if line in text.splitlines()]

    def close(self) -> None:
        self._socket.close()


@contextmanager
def daemon(
    site: Site, settings: Mapping[str, str] | None = None, *, env: Mapping[str, str] | None = None, cold: bool = False
) -> Iterator[Daemon]:
    """Run a daemon on a site until the block ends; it is killed then, if it still lives."""
    assert site.crew is not None
    start = site.crew.cold if cold else site.crew.warm
    variables = {**site.environment({"http.listen": LISTEN, "log.format": "json", **(settings or {})}), **(env or {})}
    running = start("run", "--config", str(site.config), env=variables, cwd=site.folder)
    try:
        yield Daemon(running)
    finally:
        if not running.ended():
            running.kill()
            running.wait()


@contextmanager
def notes(folder: Path) -> Iterator[Notes]:
    """Listen as the service manager does."""
    made = Notes(folder / "notify")
    try:
        yield made
    finally:
        made.close()
