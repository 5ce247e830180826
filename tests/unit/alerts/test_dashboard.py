"""The dashboard is whole, can be imported anywhere, and asks for what is there."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from alerts.rulebook import Form, rulebook
from reaperd.report.series import ALL
from tests.support.promql import bare, selectors
from tests.unit.alerts.test_rules import SERIES, series_of

DASHBOARD = json.loads(rulebook(Form.DASHBOARD))
PANELS = DASHBOARD["panels"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel.get("targets", ())]
VARIABLES = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
OF_THE_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}


def test_it_has_an_identity_of_its_own_and_none_of_an_installation():
    assert (DASHBOARD["uid"], DASHBOARD["tags"]) == ("reaperd", ["reaperd"])
    assert "id" not in DASHBOARD
    assert {"datasource", "job", "deployment", "instance"} == VARIABLES


def test_every_panel_has_a_number_of_its_own_and_says_what_it_shows():
    numbers = [panel["id"] for panel in PANELS]

    assert len(set(numbers)) == len(numbers)
    assert [panel["title"] for panel in PANELS if not panel["title"]] == []
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)


def test_no_two_panels_overlap_and_none_sticks_out():
    taken = {panel["title"]: cells(panel["gridPos"]) for panel in PANELS}

    assert [pair for pair in combinations(taken, 2) if taken[pair[0]] & taken[pair[1]]] == []
    assert [panel["title"] for panel in PANELS if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24] == []


def cells(place: dict[str, int]) -> set[tuple[int, int]]:
    return {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}


def test_the_queries_of_a_panel_have_different_names():
    for panel in PANELS:
        names = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(names)) == len(names), panel["title"]
        assert all(names), panel["title"]


def test_everything_asks_the_data_source_that_was_chosen():
    asked = [panel.get("datasource") for panel in PANELS if panel["type"] != "row"]
    asked += [target["datasource"] for _, target in TARGETS]

    assert [source for source in asked if source != {"type": "prometheus", "uid": "${datasource}"}] == []


@pytest.mark.parametrize(("title", "target"), TARGETS, ids=[f"{title}-{target['refId']}" for title, target in TARGETS])
def test_every_query_asks_for_series_that_are_there_of_what_was_chosen(title, target):
    assert bare(target["expr"]) == []
    for selector in selectors(target["expr"]):
        if selector.name == "ALERTS":
            continue
        chosen = {matcher.label for matcher in selector.matchers if matcher.value.startswith("$")}
        assert chosen == {"job", "deployment", "instance"}, selector
        assert selector.name in OF_THE_PROCESS or series_of(selector.name).name in SERIES


def test_every_metric_is_on_it():
    shown = {selector.name.removesuffix("_bucket") for _, target in TARGETS for selector in selectors(target["expr"])}

    assert {series.name for series in ALL} - shown == set()
