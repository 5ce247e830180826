"""The page of a daemon that has seen everything at least once, through the project's own server."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from providers.parsers import Parser
from reaperd.clock import SystemClock
from reaperd.core.model import Brake, Outcome, OutcomeKind, PassKind
from reaperd.http import Probe
from reaperd.http.server import HttpServer
from reaperd.report.logs import build_logger
from reaperd.report.metrics import Metrics
from tests.support.worlds import HOUR, MINUTE, NOW, SCOPES, look, machine, memory, policy, ref, row, sighting
from tests.unit.report.scraping import INTERVALS, PROVIDERS, passed, stranger, swept


class LivelyDesk:
    """A desk with real metrics. Each scrape finds that something has happened since the last."""

    def __init__(self) -> None:
        self.metrics_page = Metrics(version="1.2.3", clock=SystemClock(), parser=Parser.LXML)
        self._happening = threading.Lock()
        self._begin()

    def metrics(self, accept: str) -> tuple[bytes, str]:
        with self._happening:
            self._happens()
        return self.metrics_page.page(accept)

    def health(self) -> Probe:
        return Probe(ok=True, text="ok")

    def readiness(self) -> Probe:
        return Probe(ok=True, text="ok")

    def status(self) -> Mapping[str, object]:
        return {}

    def _begin(self) -> None:
        page = self.metrics_page
        page.configured(mode="enforce", providers=PROVIDERS, scopes=SCOPES, intervals=INTERVALS, channels=["mail"])
        page.ledger_created(NOW - 9 * HOUR)
        page.leading(True)
        page.reloaded(successful=True, at=NOW)

    def _happens(self) -> None:
        page = self.metrics_page
        seen = look(
            [machine(), machine("i-2", worker="w-2"), machine("i-3", worker=None, protect=True)],
            [row(), row("w-9", "i-9")],
            memory=memory(sightings={ref(f"i-{n}"): sighting() for n in (1, 2, 3)}),
        )
        page.attempted(PassKind.RECONCILE, NOW)
        page.passed(passed(seen, policy(), Outcome(ref=ref("i-2"), kind=OutcomeKind.REQUESTED)))
        held = replace(seen, memory=replace(seen.memory, brake=Brake(since=NOW, by="ann", reason="a deploy")))
        page.passed(passed(held, policy()))
        page.attempted(PassKind.AUDIT, NOW)
        page.swept(swept(stranger(cost_per_hour_usd=2.5, tags={"reaperd:Owner": "prod-a"})))
        page.missed(PassKind.AUDIT)
        page.failed(PassKind.AUDIT, MINUTE.total_seconds())
        page.requested("aws", "list_owned", "ok")


@contextmanager
def served() -> Iterator[str]:
    """Serve such a page, and give its host and port."""
    log = build_logger(as_json=True, now=SystemClock().now, stream=io.StringIO())
    server = HttpServer("127.0.0.1:0", LivelyDesk(), None, log)
    server.start()
    try:
        host, port = server.address
        yield f"{host}:{port}"
    finally:
        server.stop()
