"""Which pages are generated, wholly or in part."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from alerts.rulebook import Form, rulebook
from reaperd.cli.manual import document as manual
from reaperd.cli.page import document as command_line
from reaperd.config.page import document as configuration
from reaperd.report.metrics_page import document as metrics
from tests.docs import alerting, policies, reasons, rules, schema

ROOT = Path(__file__).parents[2]

BLOCKS: Mapping[str, Callable[[], str]] = {
    "why a machine is kept": reasons.keep,
    "why a machine goes": reasons.terminate,
    "why a pass stands down": reasons.refuse,
    "why a pass stops half-way": reasons.defer,
    "why a termination was not sent": reasons.spare,
    "what became of a termination": reasons.outcome,
    "what the role may do": policies.shown,
    "what shows each rule": rules.table,
    "the tables of a registry": schema.tables,
    "the triggers of a registry": schema.triggers,
    "the alerts": alerting.listed,
}
"""What may stand between two comments of a hand-written page."""

_WHOLE: Mapping[str, Callable[[], str]] = {
    "docs/configuration.md": configuration,
    "docs/cli.md": command_line,
    "docs/man/reaperd.1": manual,
    "docs/metrics.md": metrics,
    "alerts/mixin.libsonnet": partial(rulebook, Form.MIXIN),
    "alerts/rules/reaperd.prometheusrule.yml": partial(rulebook, Form.PROMETHEUS_RULE),
    **{name: partial(policies.printed, role, form) for name, role, form in policies.files()},
    # Neither kustomize nor Helm reads a file outside of its own folder.
    "deploy/kubernetes/components/monitoring/prometheusrule.yaml": partial(rulebook, Form.PROMETHEUS_RULE),
    "deploy/helm/reaperd/files/prometheusrule.yaml": partial(rulebook, Form.PROMETHEUS_RULE),
}
_PARTLY = ("docs/safety.md", "docs/registry.md", "docs/monitoring.md")

_BLOCK = re.compile(r"(<!-- made by `make docs`: (?P<name>.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages(root: Path) -> Mapping[str, str]:
    """Return every generated page as it should be."""
    whole = {name: made() for name, made in _WHOLE.items()}
    partly = {name: filled((root / name).read_text(encoding="utf-8")) for name in _PARTLY}
    return {**whole, **partly}


def filled(text: str) -> str:
    """Return a hand-written page with its generated blocks made anew."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found['name']]()}\n{found[3]}", text)


def blocks_of(text: str) -> tuple[str, ...]:
    """Return the names of the generated blocks of a page."""
    return tuple(found["name"] for found in _BLOCK.finditer(text))
