"""docs/runbook.md has a section for whatever may wake somebody, and docs/monitoring.md a line."""

import re

import pytest

from alerts.model import Cause
from reaperd.core.model import KeepReason, OutcomeKind, RefusalReason
from tests.docs.alerting import alerts
from tests.docs.markdown import anchors, blocks, read

PAGE = read("docs/runbook.md")
NAMES = [*dict.fromkeys(rule["alert"] for rule in alerts())]
REASONS = {*RefusalReason, *KeepReason, *OutcomeKind}


def sections() -> dict[str, str]:
    """Return each section by its heading."""
    found = re.split(r"^### (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return {title: text.partition("\n## ")[0] for title, text in zip(found[::2], found[1::2], strict=True)}


def test_the_sections_stand_in_the_order_of_the_rules():
    assert [title for title in sections() if title.startswith("Reaperd")] == NAMES


@pytest.mark.parametrize("title", sections())
def test_every_section_says_what_it_means_what_it_costs_what_to_type_and_how_it_ends(title):
    points = re.findall(r"^\* (Meaning|Impact|Type|Resolves)\b", sections()[title], re.MULTILINE)

    assert points == ["Meaning", "Impact", "Type", "Resolves"]


@pytest.mark.parametrize("title", sections())
def test_every_section_shows_a_command(title):
    text = sections()[title]

    assert blocks(text, "console") or re.search(r"`(reaperd|df|aws|timedatectl) ", text)


@pytest.mark.parametrize("rule", [*alerts()], ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_the_link_of_every_rule_leads_to_its_section_and_its_severity_stands_there(rule):
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")

    assert anchor in anchors(read(page))
    # The watchdog has none: it is no trouble.
    assert rule["labels"]["severity"] == "none" or rule["labels"]["severity"] in sections()[rule["alert"]].lower()


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_a_line_in_the_table_and_an_anchor_in_the_section_that_it_names(cause):
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and f"`{cause}`" in line and "](#" in line]
    section = re.search(r"\[(.+?)\]\(#", lines[0])

    assert PAGE.count(f'<a id="{cause}"></a>') == 1
    assert section is not None
    assert f'<a id="{cause}"></a>' in sections()[section[1]]


def test_every_alert_has_a_line_on_the_page_on_monitoring():
    page = read("docs/monitoring.md")

    assert [name for name in NAMES if f"| [{name}](runbook.md#{name.lower()}) |" not in page] == []


@pytest.mark.parametrize("title", ["ReaperdRefusingToAct", "ReaperdOrphansHeld", "ReaperdTerminationsFailing"])
def test_every_reason_that_the_rule_lets_through_is_told(title):
    (rule,) = [rule for rule in alerts() if rule["alert"] == title]
    for wanted, named in re.findall(r'(?:reason|outcome)(=~|!~|=)"([^"]+)"', rule["expr"]):
        values = set(named.split("|"))
        expected = {reason for reason in RefusalReason if reason not in values} if wanted == "!~" else values

        assert expected <= REASONS
        assert [value for value in expected if f"`{value}`" not in sections()[title]] == []
