"""The table of the alerts, from the rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from alerts.rulebook import RUNBOOK, Form, rulebook


def alerts() -> Iterator[dict[str, Any]]:
    """Yield every rule, in the order of the file."""
    for group in yaml.safe_load(rulebook(Form.PROMETHEUS))["groups"]:
        yield from group["rules"]


def listed() -> str:
    """Return one line for each rule."""
    heads = "| Alert | Severity | After | It says |\n| --- | --- | --- | --- |\n"
    return heads + "".join(f"| {' | '.join(_cells(rule))} |\n" for rule in alerts())


def _cells(rule: dict[str, Any]) -> tuple[str, ...]:
    section = f"{RUNBOOK.removeprefix('docs/')}#{rule['alert'].lower()}"
    told = rule["annotations"]["summary"]
    return f"[{rule['alert']}]({section})", rule["labels"]["severity"], rule.get("for", "at once"), told
