"""`reaperd rules` prints what ships."""

import pytest
import yaml

from alerts.rulebook import Form, rulebook
from tests.unit.cli.running import run


@pytest.mark.parametrize("form", Form)
def test_each_form_is_printed_as_it_ships(form):
    result = run("rules", "--format", form)

    assert (result.exit_code, result.stdout) == (0, rulebook(form))


def test_the_rule_file_is_what_is_printed_when_nothing_is_asked_for():
    assert run("rules").stdout == rulebook(Form.PROMETHEUS)


def test_the_rules_speak_of_the_job_and_link_to_the_runbook_that_are_given():
    printed = run("rules", "--job", "fleet/reaperd", "--runbook", "https://wiki.example.org/r?p=1").stdout
    first = yaml.safe_load(printed)["groups"][0]["rules"][0]

    assert 'absent(up{job="fleet/reaperd"})' in first["expr"]
    assert first["annotations"]["runbook_url"] == "https://wiki.example.org/r?p=1#reaperddown"


@pytest.mark.parametrize(("option", "value"), [("--job", 'a"} or up{job="b'), ("--runbook", "a b"), ("--job", "")])
def test_what_would_need_quotes_is_refused(option, value):
    result = run("rules", option, value)

    assert result.exit_code == 2
    assert "letters, digits" in result.stderr
