"""What ships for Prometheus speaks of what is there, and every rule is told and tested."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
import yaml

from alerts.rulebook import Form, rulebook
from reaperd.report.series import ALL, CLOSED, Series
from tests.support.promql import bare, selectors

SEVERITIES = {"critical", "warning", "info", "none"}
OF_THE_TARGET = {"job", "instance", "namespace", "deployment"}
SERIES = {series.name: series for series in ALL}
FILES = ("reaperd.rules.test.yml", "reaperd.rules.week.test.yml")


def rules_of(text: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


RULES = rules_of(rulebook(Form.PROMETHEUS))
NAMES = sorted({rule["alert"] for rule in RULES})


def of_file(name: str) -> Iterator[dict[str, Any]]:
    """Yield what promtool is told to expect."""
    for case in yaml.safe_load(files("alerts").joinpath("rules", name).read_text())["tests"]:
        yield from case.get("alert_rule_test", ())


CASES = tuple(case for name in FILES for case in of_file(name))


def series_of(name: str) -> Series:
    return SERIES[name.removesuffix("_bucket")]


# ---------------------------------------------------------------- the rules


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_every_rule_says_how_bad_it_is_what_it_is_and_where_to_read_on(rule):
    told = rule["annotations"]

    assert rule["labels"]["severity"] in SEVERITIES
    assert set(told) == {"summary", "description", "runbook_url"}
    assert told["summary"].endswith(".")
    assert told["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_every_rule_speaks_of_one_job_and_of_series_that_are_there(rule):
    assert bare(rule["expr"]) == []
    assert [s for s in selectors(rule["expr"]) if ("job", "=", "reaperd") not in as_triples(s)] == []
    assert faults(rule["expr"]) == []


def as_triples(selector) -> list[tuple[str, str, str]]:
    return [(matcher.label, matcher.sign, matcher.value) for matcher in selector.matchers]


def faults(expr: str) -> list[str]:
    """Return what an expression names and nothing would ever match."""
    return [fault for selector in selectors(expr) for fault in wrong_with(selector)]


def wrong_with(selector) -> Iterator[str]:
    if selector.name == "up":
        return
    if selector.name not in SERIES:
        yield f"{selector.name}: no such series"
        return
    series = series_of(selector.name)
    for matcher in selector.matchers:
        if matcher.label not in {*series.labels, *OF_THE_TARGET}:
            yield f"{selector.name}: no label {matcher.label}"
        known = CLOSED.get((series, matcher.label))
        yield from (f"{matcher.label}: never {value}" for value in matcher.values if known and value not in known)


@pytest.mark.parametrize(
    ("expr", "fault"),
    [
        ('reaperd_lookout{job="reaperd"}', "reaperd_lookout: no such series"),
        ('reaperd_leader{job="reaperd", region="x"}', "reaperd_leader: no label region"),
        ('reaperd_mode{mode="dry_run"}', "mode: never dry_run"),
        ('reaperd_refusals_total{reason!~"not_leader|hold"}', "reason: never hold"),
    ],
)
def test_a_misspelt_name_would_be_found(expr, fault):
    assert faults(expr) == [fault]


# ---------------------------------------------------------------- their cases


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_has_a_case_in_which_it_fires(name):
    assert [case for case in CASES if case["alertname"] == name and case["exp_alerts"]] != []


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"ReaperdWatchdog"}))
def test_every_alert_has_a_case_in_which_it_stays_quiet(name):
    assert [case for case in CASES if case["alertname"] == name and not case["exp_alerts"]] != []


def test_every_severity_of_an_alert_has_a_case_in_which_it_fires():
    fired = {(case["alertname"], alert["exp_labels"]["severity"]) for case in CASES for alert in case["exp_alerts"]}

    assert {(rule["alert"], rule["labels"]["severity"]) for rule in RULES} == fired


def test_no_case_is_of_an_alert_that_is_not_there():
    assert {case["alertname"] for case in CASES} == set(NAMES)


# ---------------------------------------------------------------- other forms


def test_the_operators_resource_holds_the_same_rules():
    resource = yaml.safe_load(rulebook(Form.PROMETHEUS_RULE))

    assert (resource["apiVersion"], resource["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert resource["spec"] == yaml.safe_load(rulebook(Form.PROMETHEUS))


@pytest.mark.parametrize("form", [Form.PROMETHEUS, Form.PROMETHEUS_RULE, Form.MIXIN])
def test_another_job_and_another_runbook_stand_wherever_the_usual_ones_do(form):
    usual = rulebook(form)
    other = rulebook(form, job="fleet/reaperd", runbook="https://wiki.example.org/r")

    assert 'job="fleet/reaperd"' in other.replace("\\", "")
    assert "https://wiki.example.org/r" in other
    if form is not Form.MIXIN:
        assert usual.count('job="reaperd"') == other.count('job="fleet/reaperd"')
        assert 'job="reaperd"' not in other
        assert "docs/runbook.md#" not in other
