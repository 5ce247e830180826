"""The rules and the dashboard that ship in the wheel, in the forms that other tools take. Text in, text out."""

from __future__ import annotations

import json
from enum import StrEnum
from importlib.resources import files
from textwrap import indent

JOB = "reaperd"
"""The job that the rules speak of, unless another is given."""

RUNBOOK = "docs/runbook.md"
"""The page that each rule's `runbook_url` names a section of, unless another is given."""


class Form(StrEnum):
    """Who is to read it."""

    PROMETHEUS = "prometheus"
    """A rule file."""
    PROMETHEUS_RULE = "prometheusrule"
    """The resource of the Prometheus operator."""
    MIXIN = "mixin"
    """Jsonnet, to be imported by others; the dashboard is expected in `dashboards/` beside it."""
    DASHBOARD = "dashboard"
    """Grafana's JSON."""


def rulebook(form: Form, *, job: str = JOB, runbook: str = RUNBOOK) -> str:
    """Return the rules, or the dashboard, in one form, for the targets of one job."""
    rules = _shipped("rules/reaperd.rules.yml")
    match form:
        case Form.PROMETHEUS:
            return _spoken_of(rules, job, runbook)
        case Form.PROMETHEUS_RULE:
            return _PROMETHEUS_RULE + indent(_groups(_spoken_of(rules, job, runbook)), "  ")
        case Form.MIXIN:
            return _mixin(rules, job, runbook)
        case Form.DASHBOARD:
            return _shipped("dashboards/reaperd.json")


def _shipped(name: str) -> str:
    return files("alerts").joinpath(name).read_text(encoding="utf-8")


def _selector(job: str) -> str:
    return f'job="{job}"'


def _spoken_of(rules: str, job: str, runbook: str) -> str:
    return rules.replace(_selector(JOB), _selector(job)).replace(f"{RUNBOOK}#", f"{runbook}#")


def _groups(rules: str) -> str:
    """Return the rules without the remarks on the file."""
    return rules[rules.index("groups:\n") :]


_PROMETHEUS_RULE = """\
# Made from rules/reaperd.rules.yml by `make docs`, as `reaperd rules --format prometheusrule` prints it.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: reaperd
  labels:
    app.kubernetes.io/name: reaperd
spec:
"""

_MIXIN = """\
// Made from rules/reaperd.rules.yml by `make docs`, as `reaperd rules --format mixin` prints it.
{
  _config+:: {
    // The targets that the rules speak of, by one or more equalities.
    reaperdSelector: %(selector)s,
    // The page that has a section for each alert.
    reaperdRunbook: %(runbook)s,
  },

  local spokenOf(rule) = rule {
    expr: std.strReplace(rule.expr, %(usual_selector)s, $._config.reaperdSelector),
    annotations+: { runbook_url: $._config.reaperdRunbook + std.substr(super.runbook_url, %(usual_length)d, 99) },
  },

  prometheusAlerts+:: {
    groups+: [group { rules: std.map(spokenOf, group.rules) } for group in groups],
  },

  grafanaDashboards+:: {
    'reaperd.json': (import 'dashboards/reaperd.json'),
  },

  local groups = %(groups)s,
}
"""


def _mixin(rules: str, job: str, runbook: str) -> str:
    import yaml  # noqa: PLC0415 - heavy, and nothing else here needs it

    groups = json.dumps(yaml.safe_load(rules)["groups"], indent=2)
    return _MIXIN % {
        "selector": json.dumps(_selector(job)),
        "runbook": json.dumps(runbook),
        "usual_selector": json.dumps(_selector(JOB)),
        "usual_length": len(RUNBOOK),
        "groups": indent(groups, "  ").lstrip(),
    }
