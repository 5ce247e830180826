"""The rules, the dashboard and the examples, judged by the real tools."""

from __future__ import annotations

import json
import re
import urllib.request
from importlib.resources import as_file, files

import pytest
import yaml

from alerts.rulebook import Form, rulebook
from tests.docs.markdown import files as files_on
from tests.docs.markdown import read
from tests.e2e import lively, prometheus
from tests.e2e.alertmanager import until
from tests.e2e.prometheus import run

pytestmark = pytest.mark.slow
DASHBOARD = json.loads(rulebook(Form.DASHBOARD))
QUERIES = {
    f"{panel['title']}-{target['refId']}": target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
}
CHOSEN = {"$job": "reaperd", "$deployment": ".*", "$instance": ".*", "$__rate_interval": "30s"}
FOUR_SCRAPES = 30.0
EXAMPLES = files_on(read("docs/monitoring.md"))


@pytest.fixture(scope="module")
def page():
    with lively.served() as address:
        yield address


@pytest.fixture(scope="module")
def scraping(page, tmp_path_factory):
    with prometheus.running(tmp_path_factory.mktemp("prometheus"), page) as started:
        until(lambda: started.series('count_over_time(reaperd_leader{job="reaperd"}[1m]) >= 4'), FOUR_SCRAPES)
        yield started


# ---------------------------------------------------------------- the rules


@pytest.mark.parametrize("name", ["reaperd.rules.test.yml", "reaperd.rules.week.test.yml"])
def test_every_case_of_the_rules_holds(name):
    with as_file(files("alerts").joinpath("rules")) as folder:
        assert "SUCCESS" in run("promtool", "test", "rules", folder / name)


@pytest.mark.parametrize("job", ["reaperd", "fleet/reaperd"])
def test_the_rules_are_rules(job, tmp_path):
    (tmp_path / "rules.yml").write_text(rulebook(Form.PROMETHEUS, job=job))

    assert "SUCCESS" in run("promtool", "check", "rules", tmp_path / "rules.yml")


@pytest.mark.parametrize("job", ["reaperd", "fleet/reaperd"])
def test_the_mixin_gives_the_same_rules_and_the_dashboard(job, tmp_path):
    book = {"job": job, "runbook": "https://wiki.example.org/r"}
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "dashboards" / "reaperd.json").write_text(rulebook(Form.DASHBOARD))
    (tmp_path / "mixin.libsonnet").write_text(rulebook(Form.MIXIN, **book))

    made = json.loads(run("jsonnet", "-e", _MANIFEST.format(tmp_path)))

    assert made["alerts"] == yaml.safe_load(rulebook(Form.PROMETHEUS, **book))
    assert made["dashboards"] == {"reaperd.json": DASHBOARD}


_MANIFEST = 'local m = import "{}/mixin.libsonnet"; {{ alerts: m.prometheusAlerts, dashboards: m.grafanaDashboards }}'


# ---------------------------------------------------------------- a page, scraped


def test_the_page_is_as_prometheus_wants_it(page):
    with urllib.request.urlopen(f"http://{page}/metrics") as answer:
        text = answer.read()

    assert b"reaperd_leader 1.0" in text
    run("promtool", "check", "metrics", given=text)


@pytest.mark.parametrize("name", QUERIES)
def test_every_query_of_the_dashboard_returns_a_series(scraping, name):
    assert asked(scraping, QUERIES[name]) != []


def test_a_query_for_what_is_not_there_would_be_found(scraping):
    assert asked(scraping, 'max(reaperd_lookout{job="$job"})') == []


@pytest.mark.parametrize("name", ["job", "deployment", "instance"])
def test_every_variable_of_the_dashboard_finds_its_values(scraping, name):
    (variable,) = [each for each in DASHBOARD["templating"]["list"] if each["name"] == name]
    selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()

    assert [series["metric"][label] for series in asked(scraping, selector)] != []


def test_the_rules_are_judged_and_the_watchdog_fires(scraping):
    until(lambda: scraping.series('ALERTS{alertname="ReaperdWatchdog", alertstate="firing"}'))

    assert scraping.series('ALERTS{alertname="ReaperdDown"}') == []


def asked(scraping, expr: str) -> list[dict]:
    for variable, value in CHOSEN.items():
        expr = expr.replace(variable, value)
    return scraping.series(expr)


# ---------------------------------------------------------------- the examples of docs/monitoring.md


@pytest.mark.parametrize("name", ["prometheus.yml", "prometheus-tls.yml"])
def test_a_scrape_of_the_page_is_a_configuration_of_prometheus(name, tmp_path):
    (tmp_path / name).write_text(EXAMPLES[name])

    assert "SUCCESS" in run("promtool", "check", "config", "--syntax-only", tmp_path / name)


def test_the_routes_of_the_page_wake_somebody_for_what_is_critical_only(tmp_path):
    (tmp_path / "alertmanager.yml").write_text(EXAMPLES["alertmanager.yml"])
    route = ("amtool", "config", "routes", "test", f"--config.file={tmp_path / 'alertmanager.yml'}")

    assert "SUCCESS" in run("amtool", "check-config", tmp_path / "alertmanager.yml")
    assert run(*route, "alertname=ReaperdBreakerOpen", "severity=critical").strip() == "pager"
    assert run(*route, "alertname=ReaperdBrakeForgotten", "severity=warning").strip() == "tickets"
    assert run(*route, "alertname=ReaperdWatchdog", "severity=none").strip() == "dead-mans-switch"


def test_the_pod_monitor_of_the_page_asks_for_the_port_and_the_job_of_the_rules():
    monitor = yaml.safe_load(EXAMPLES["podmonitor.yml"])

    assert monitor["spec"]["jobLabel"] in monitor["spec"]["selector"]["matchLabels"]
    assert monitor["spec"]["selector"]["matchLabels"][monitor["spec"]["jobLabel"]] == "reaperd"
