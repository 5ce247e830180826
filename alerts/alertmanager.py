"""Alerts for Prometheus' Alertmanager, by its API v2.

It is told of everything that holds after each look, until a time soon after the look that follows. It drops what it
has, groups, silences, reminds, and resolves what is not told again; a lost request is made good by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from alerts.model import Cause, Condition, Level, Standing
from alerts.text import identity
from alerts.web import Address, Web
from alerts.wording import description, summary

PATH = "/api/v2/alerts"
BATCH = 500
"""Alerts in one request."""


class AlertmanagerChannel:
    """Holds alerts in one Alertmanager. Of a cluster, every member is a channel of its own."""

    def __init__(
        self, address: Address, web: Web, *, deployment: str, runbooks: str = "", name: str = "alertmanager"
    ) -> None:
        """Keep where the Alertmanager is. `runbooks` is a page with a heading for each cause; empty: none is named."""
        self._address = address.below(PATH)
        self._web = web
        self._deployment = deployment
        self._runbooks = runbooks
        self._name = name

    @property
    def name(self) -> str:
        """Return the name that metrics and logs use."""
        return self._name

    def hold(self, level: Level) -> None:
        """Post all that stands, and what ended.

        Raises:
            DeliveryError: as soon as one request is not taken.
        """
        # What ended goes first: with another severity it may stand again.
        alerts = [
            *(self._alert(standing, level.at) for standing in level.ended),
            *(self._alert(standing, level.until) for standing in level.standing),
        ]
        for batch in _batches(alerts):
            self._web.post(self._address, json.dumps(batch).encode("ascii"), {"Content-Type": "application/json"})

    def _alert(self, standing: Standing, until: datetime) -> Mapping[str, object]:
        condition = standing.condition
        annotations = {"summary": summary(condition), "description": description(condition)}
        if self._runbooks:
            annotations["runbook_url"] = f"{self._runbooks}#{condition.cause}"
        return {
            "labels": labels(condition, self._deployment),
            "annotations": annotations,
            # A clock that was set back must not make an alert end before it starts: the whole batch would be refused.
            "startsAt": min(standing.since, until).isoformat(),
            "endsAt": until.isoformat(),
        }


def alert_name(cause: Cause) -> str:
    """Return the alert's name: `ReaperdRegistryUnusable`."""
    return "Reaperd" + "".join(word.capitalize() for word in cause.split("_"))


def labels(condition: Condition, deployment: str) -> Mapping[str, str]:
    """Return what the alert is told apart by: nothing that changes while it holds, but its severity."""
    provider, region, instance_id = (*condition.subject.split("/", 2), "", "", "")[:3]
    told = {
        "alertname": alert_name(condition.cause),
        "cause": str(condition.cause),
        "severity": str(condition.severity),
        "deployment": deployment,
        "provider": identity(provider),
        "region": identity(region),
        "instance_id": identity(instance_id),
        "key": identity(condition.key),
    }
    # An empty label is none, for Alertmanager.
    return {name: value for name, value in told.items() if value}


def _batches(alerts: Sequence[Mapping[str, object]]) -> Iterator[Sequence[Mapping[str, object]]]:
    for start in range(0, len(alerts), BATCH):
        yield alerts[start : start + BATCH]
