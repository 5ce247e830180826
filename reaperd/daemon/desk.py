"""What the daemon answers to whoever asks: probes, scrapes, `reaperd status`. Nothing here waits for anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from providers.base import Clock
from reaperd import __version__
from reaperd.core.model import PassKind, PassOutcome
from reaperd.daemon.leadership import Leadership
from reaperd.daemon.pulse import Pulse
from reaperd.daemon.standing import Standing
from reaperd.daemon.work import Work
from reaperd.delivery.office import Office
from reaperd.http import Probe
from reaperd.report.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Serves the HTTP server; see reaperd.http.Desk."""

    metrics_page: Metrics
    standing: Standing
    leadership: Leadership
    pulses: Mapping[PassKind, Pulse]
    clock: Clock
    office: Office
    work: Callable[[], Work]

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type."""
        return self.metrics_page.page(accept)

    def health(self) -> Probe:
        """Say whether the scheduler progresses: by monotonic time, never by what a cloud answers."""
        now = self.clock.monotonic()
        troubles = [f"{kind} {trouble}" for kind, pulse in self.pulses.items() if (trouble := pulse.stalled(now))]
        return Probe(ok=not troubles, text="; ".join(troubles) or "ok")

    def readiness(self) -> Probe:
        """Say whether the daemon does its work: everything proved and a first complete look, or standing by."""
        if not self.leads and self.leadership.holder is None:
            return Probe(ok=False, text="no lease: neither this process nor another one is known to act")
        obstacle = self.standing.readiness(standby=not self.leads)
        return Probe(ok=not obstacle, text=obstacle or ("ok" if self.leads else "standing by"))

    @property
    def leads(self) -> bool:
        """True while the lease is ours."""
        return self.leadership.lease is not None

    def status(self) -> Mapping[str, object]:
        """Return how things stand, as JSON data."""
        work, holder = self.work(), self.leadership.holder
        health, readiness = self.health(), self.readiness()
        return {
            "version": __version__,
            "pid": os.getpid(),
            "deployment": work.deployment,
            "mode": str(work.mode),
            "leader": self.leads,
            "holder": None if holder is None or self.leads else {"host": holder.host, "pid": holder.pid},
            "healthy": health.ok,
            "health": health.text,
            "ready": readiness.ok,
            "readiness": readiness.text,
            **self.standing.document(self.clock.now()),
            "alerts": self.office.standing(),
        }

    def sentence(self) -> str:
        """Return how things stand in one line, for `systemctl status`."""
        mode = str(self.work().mode)
        if not self.leads:
            known = self.leadership.holder is not None
            return f"{mode}: standing by, another process holds the lease" if known else f"{mode}: no lease"
        last = self.standing.last.get(PassKind.RECONCILE)
        if last is None:
            return f"{mode}: no pass yet"
        reason = "" if last.outcome is PassOutcome.COMPLETE or last.reason is None else f" ({last.reason})"
        return f"{mode}: last pass {last.outcome}{reason}"
