"""`quote`, `launch` and `gate`, on the cloud of examples/provider-plugin."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from registry.model import WorkerState
from registry.sqlite import SqliteRegistry
from tests.support.plugin import install
from tests.unit.cli.golden import assert_golden
from tests.unit.cli.running import Place, person, run

ACME = """\
[[providers]]
name = "acme"
type = "acme"
file = "{folder}/acme.json"
[[providers]]
name = "down"
type = "acme"
file = "/nonexistent/down.json"
"""


@pytest.fixture
def place(place: Place, monkeypatch) -> Place:
    """A folder with a configuration of two clouds that are on, the second without an inventory."""
    monkeypatch.syspath_prepend(install(place.folder / "plugin"))
    monkeypatch.delitem(sys.modules, "acme_reaperd", raising=False)
    settings = place.config.read_text()
    aws = settings[settings.index("[[providers]]") :]
    place.config.write_text(settings.replace(aws, ACME.format(folder=place.folder)))
    cloud(place, prices={"small": "0.02", "large": "0.16", "huge\x1b": "1.28"})
    place.make_registry()
    for name in ("acme", "down"):
        assert run("gate", "on", name, "--config", place.config).exit_code == 0
    return place


LISTER = """

class Lister:
    list_owned = AcmeProvider.list_owned

    def __init__(self, name):
        self.name = name


def lister_or_all(table):
    return Lister("down") if table["name"] == "down" else provider(table)
"""


def cloud(place: Place, **facts: object) -> None:
    facts = {"prices": {"small": "0.02", "large": "0.16"}, "free": 4, "machines": {}} | facts
    (place.folder / "acme.json").write_text(json.dumps(facts))


def machines(place: Place) -> dict[str, dict[str, object]]:
    return json.loads((place.folder / "acme.json").read_text())["machines"]


def rows(place: Place):
    return SqliteRegistry(place.registry).snapshot().workers


def command(place: Place, *words: object, stdin=None):
    return run(*words, "--config", place.config, stdin=stdin)


def shown(place: Place, text: str) -> str:
    return text.replace(str(place.folder), "DIR")


# ---------------------------------------------------------------- quote


def test_offers_come_cheapest_first_with_the_reasons_of_those_who_made_none(place):
    result = command(place, "quote")

    assert result.exit_code == 4
    assert_golden("quote_mixed", shown(place, result.stdout))


def test_only_the_type_and_region_that_are_asked_for_are_quoted(place):
    told = json.loads(command(place, "quote", "--type", "large", "--region", "oslo", "--format", "json").stdout)
    elsewhere = json.loads(command(place, "quote", "--region", "bergen", "--format", "json").stdout)

    assert [(offer["instance_type"], offer["price_per_hour"]) for offer in told["offers"]] == [("large", "0.16")]
    assert [(failure["provider"], bool(failure["error_code"])) for failure in told["failures"]] == [("down", True)]
    assert elsewhere["offers"] == []


def test_when_nobody_answers_there_is_nothing_to_show(place):
    (place.folder / "acme.json").unlink()

    result = command(place, "quote")

    assert result.exit_code == 1
    assert "acme" in result.stderr
    assert "down" in result.stderr


def test_a_sheet_has_a_line_an_offer(place):
    lines = command(place, "quote", "--format", "csv").stdout.splitlines()

    assert lines[0] == "price_per_hour,currency,kind,instance_type,provider,region,zone"
    assert lines[1] == "0.02,USD,spot,small,acme,oslo,"
    assert "\x1b" not in "".join(lines)


def without_launches(place: Place) -> None:
    """Make the plug-in one that serves the reaper alone."""
    module = place.folder / "plugin" / "acme_reaperd.py"
    module.write_text(module.read_text().replace("    def quote(", "    def no_quote("))


def test_a_plugin_that_cannot_launch_is_left_out_and_said_to_be(place):
    cloud(place)
    module = place.folder / "plugin" / "acme_reaperd.py"
    module.write_text(module.read_text() + LISTER)
    record = next((place.folder / "plugin").glob("*.dist-info")) / "entry_points.txt"
    record.write_text(record.read_text().replace("acme_reaperd:provider", "acme_reaperd:lister_or_all"))

    result = command(place, "quote")

    assert result.exit_code == 0, result.stderr
    assert "small" in result.stdout
    assert "provider 'down' of type 'acme' cannot quote and launch" in " ".join(result.stdout.split())


def test_when_no_plugin_can_launch_the_configuration_is_told_to_be_bad(place):
    without_launches(place)

    result = command(place, "launch", "--yes")

    assert result.exit_code == 78
    assert "it serves the reaper alone" in result.stderr
    assert rows(place) == ()


def test_more_than_the_cheapest_are_shown_when_asked_for(place):
    cloud(place, prices={f"t{number}": f"0.{number + 10}" for number in range(30)})

    assert "and 10 more" in command(place, "quote").stdout
    assert "t29" in command(place, "quote", "--all").stdout


# ---------------------------------------------------------------- launch


def test_a_launch_shows_what_it_costs_and_asks(place):
    result = command(place, "launch", stdin=person("n"))

    assert result.exit_code == 1
    assert "Launch one worker, for 0.02 USD an hour" in result.stderr
    assert (machines(place), rows(place)) == ({}, ())
    assert "small" in result.stdout


def test_where_nobody_can_be_asked_nothing_is_launched(place):
    assert command(place, "launch").exit_code == 2
    assert (machines(place), rows(place)) == ({}, ())


def test_a_worker_is_launched_and_its_row_names_the_machine(place):
    result = command(place, "launch", "--model", "llama", "--worker", "w-1", "--yes")

    (row,) = rows(place)
    ((name, machine),) = machines(place).items()
    assert result.exit_code == 0, result.stderr
    assert (row.worker_id, row.provider, row.instance_id, row.state) == ("w-1", "acme", name, WorkerState.RUNNING)
    assert machine["type"] == "small"
    assert machine["tags"]["reaperd:worker-id"] == "w-1"
    assert "worker w-1 has acme/oslo/acme-1" in result.stdout
    assert "It costs 0.02 USD an hour." in result.stdout


def test_data_is_data_and_the_offers_go_to_stderr(place):
    result = command(place, "launch", "--type", "large", "--yes", "--format", "json")

    told = json.loads(result.stdout)
    assert (told["kind"], told["instance_id"], told["offer"]["price_per_hour"]) == ("launch", "acme-1", "0.16")
    assert told["worker_id"] == rows(place)[0].worker_id
    assert "large" in result.stderr


def test_the_same_worker_again_is_the_same_machine(place):
    first, again = (command(place, "launch", "--worker", "w-1", "--yes", "--format", "csv") for _ in range(2))

    assert first.stdout == again.stdout
    assert len(machines(place)) == 1


def test_nothing_dearer_than_the_limit_is_taken(place):
    result = command(place, "launch", "--type", "large", "--max-price", "0.10", "--yes")

    assert result.exit_code == 1
    assert "the cheapest costs 0.16 USD" in result.stderr
    assert (machines(place), rows(place)) == ({}, ())


def test_without_capacity_the_row_is_failed_and_every_cause_is_told(place):
    cloud(place, free=0)

    result = command(place, "launch", "--worker", "w-1", "--yes")

    assert result.exit_code == 1
    assert "no small is free" in result.stderr
    assert [row.state for row in rows(place)] == [WorkerState.FAILED]


def test_without_a_registry_nobody_is_asked_for_anything(place):
    place.registry.unlink()

    result = command(place, "launch", "--yes")

    assert result.exit_code == 1
    assert "reaperd registry init" in result.stderr
    assert machines(place) == {}


@pytest.mark.parametrize(
    "words",
    [("--max-price", "cheap"), ("--max-price", "-1"), ("--max-price", "nan"), ("--env", "A"), ("--user-data", "none")],
)
def test_an_option_that_makes_no_sense_is_wrong_usage(place, words):
    assert command(place, "launch", *words, "--yes").exit_code == 2
    assert rows(place) == ()


# ---------------------------------------------------------------- gate


def test_a_cloud_that_is_off_is_neither_quoted_nor_launched_onto(place):
    off = command(place, "gate", "off", "acme", "--reason", "credentials leaked")

    quoted, launched = command(place, "quote"), command(place, "launch", "--yes")

    assert off.exit_code == 0
    assert quoted.exit_code == 4
    assert "small" not in quoted.stdout
    assert "`reaperd gate on acme` switches them on" in quoted.stdout
    assert launched.exit_code == 1
    assert (machines(place), rows(place)) == ({}, ())


def all_off(place: Place) -> None:
    for name in ("acme", "down"):
        assert command(place, "gate", "off", name, "--reason", "too dear").exit_code == 0


@pytest.mark.parametrize("format_", ["table", "json", "csv"])
def test_when_every_cloud_is_off_it_is_said_that_nobody_was_asked(place, format_):
    all_off(place)

    result = command(place, "quote", "--format", format_)

    assert result.exit_code == 5
    assert "every cloud is off, so none was asked. `reaperd gate list` tells since when" in " ".join(
        result.stderr.split()
    )
    told = result.stderr if format_ == "csv" else result.stdout
    for name in ("acme", "down"):
        assert f"`reaperd gate on {name}` switches them on" in " ".join(told.split())


def test_when_every_cloud_is_off_nothing_is_launched(place):
    all_off(place)

    result = command(place, "launch", "--yes")

    assert result.exit_code == 5
    assert "nothing was launched: every cloud is off" in result.stderr
    assert (machines(place), rows(place)) == ({}, ())


def test_a_cloud_that_answers_is_enough_to_have_asked(place):
    cloud(place)
    command(place, "gate", "off", "down")

    result = command(place, "quote", "--format", "csv")

    assert result.exit_code == 0
    assert "small" in result.stdout
    assert "`reaperd gate on down` switches them on" in result.stderr
    assert "every cloud is off" not in result.stderr


def test_a_cloud_that_cannot_quote_is_not_one_that_was_asked(place):
    cloud(place)
    module = place.folder / "plugin" / "acme_reaperd.py"
    module.write_text(module.read_text() + LISTER)
    record = next((place.folder / "plugin").glob("*.dist-info")) / "entry_points.txt"
    record.write_text(record.read_text().replace("acme_reaperd:provider", "acme_reaperd:lister_or_all"))
    command(place, "gate", "off", "acme")

    result = command(place, "quote")

    assert result.exit_code == 5
    assert "every cloud is off" in result.stderr


def test_a_switch_is_in_the_history_with_who_and_why(place, me):
    place.make_ledger()

    off = command(place, "gate", "off", "acme", "--reason", "credentials leaked")
    on = command(place, "gate", "on", "acme")

    assert (off.stderr, on.stderr) == ("", "")
    assert place.acts() == [("gate_off", me, "credentials leaked"), ("gate_on", me, "")]
    lines = [json.loads(line) for line in command(place, "history", "--format", "json").stdout.splitlines()]
    assert [(line["act"], line["data"]) for line in lines] == [
        ("gate_off", {"cloud": "acme"}),
        ("gate_on", {"cloud": "acme"}),
    ]
    table = command(place, "history").stdout
    assert f"GATE OFF by {me}: credentials leaked\n  cloud acme\n" in table
    assert f"GATE ON by {me}\n  cloud acme\n" in table
    assert command(place, "history", "--verify").exit_code == 0


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_switch_works_without_a_ledger_and_makes_none(place, switch):
    result = command(place, "gate", switch, "acme")

    assert (result.exit_code, result.stdout) == (0, f"acme is {switch}\n")
    assert "this is not in the history: " in result.stderr
    assert "there is no ledger" in result.stderr
    assert not place.ledger.exists()


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_switch_that_cannot_be_recorded_is_made_and_said_not_to_be(place, switch):
    place.ledger.write_text("garbage that is no database, whatever it is called " * 20)

    result = command(place, "gate", switch, "acme")

    assert (result.exit_code, result.stdout) == (0, f"acme is {switch}\n")
    assert "this is not in the history: " in result.stderr


def test_a_switch_that_was_not_made_is_not_in_the_history(place):
    place.make_ledger()
    (place.folder / "state" / "gate.json").write_text("garbage")

    result = command(place, "gate", "off", "acme")

    assert result.exit_code == 1
    assert place.acts() == []


def test_the_ledger_of_another_deployment_learns_of_no_switch(place):
    place.make_ledger()
    place.config.write_text(place.config.read_text().replace('deployment = "prod-a"', 'deployment = "staging-b"'))

    result = command(place, "gate", "off", "acme")

    assert result.exit_code == 0
    assert "belongs to deployment 'prod-a'" in result.stderr
    assert place.acts() == []


def test_a_cloud_that_is_on_again_is(place):
    command(place, "gate", "off", "acme")
    command(place, "gate", "on", "acme")

    assert "small" in command(place, "quote").stdout


def test_the_gates_are_listed_with_who_and_why(place, me):
    command(place, "gate", "off", "acme", "--reason", "leaked\x1b")

    told = json.loads(command(place, "gate", "list", "--format", "json").stdout)["clouds"]
    table = command(place, "gate", "list").stdout

    assert [(each["cloud"], each["on"], each["reason"]) for each in told] == [
        ("acme", False, f"leaked\x1b ({me})"),
        ("down", True, None),
    ]
    assert "\x1b" not in table
    assert "down   on" in table


def test_without_the_file_of_the_gates_every_cloud_is_off(place):
    (gates,) = Path(place.folder / "state").glob("gate.json")
    gates.unlink()

    result = command(place, "quote")

    assert "small" not in result.stdout
    assert "reaperd gate on" in result.stdout
    assert command(place, "gate", "list").exit_code == 1


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_gate_that_cannot_be_written_is_said_to_be_so(place, switch):
    gates = place.folder / "state" / "gate.json"
    gates.unlink()
    gates.parent.rmdir()
    gates.parent.write_text("a file where the folder should be")

    result = command(place, "gate", switch, "acme")

    assert result.exit_code == 1
    assert "the gate was not changed" in result.stderr


def test_a_gate_of_no_cloud_is_wrong_usage(place):
    result = command(place, "gate", "off", "acmee")

    assert result.exit_code == 2
    assert "acme, down" in result.stderr


# ---------------------------------------------------------------- conformance


def test_every_promise_is_proved_with_one_machine_that_is_ended(place):
    result = command(place, "conformance", "--provider", "acme", "--yes")

    assert result.exit_code == 0, result.stdout
    assert [machine["power"] for machine in machines(place).values()] == ["ending"]
    assert rows(place) == ()
    assert_golden("conformance_kept", shown(place, result.stdout))


def test_it_says_what_it_costs_and_asks(place):
    result = command(place, "conformance", "--provider", "acme", "--type", "large", stdin=person("n"))

    assert result.exit_code == 1
    assert "one large is launched in acme/oslo, at 0.16 USD an hour" in " ".join(result.stdout.split())
    assert "Launch one machine on acme for 0.16 USD an hour, and end it?" in result.stderr
    assert machines(place) == {}


def test_without_a_person_or_a_yes_nothing_is_launched(place):
    assert command(place, "conformance", "--provider", "acme").exit_code == 2
    assert machines(place) == {}


def test_a_broken_promise_is_named(place):
    module = place.folder / "plugin" / "acme_reaperd.py"
    module.write_text(module.read_text().replace("not permitted()", "False"))

    result = command(place, "conformance", "--provider", "acme", "--yes", "--format", "json")

    told = json.loads(result.stdout)
    broken = [each["promise"] for each in told["promises"] if each["verdict"] == "broken"]
    assert result.exit_code == 1
    assert broken == ["what is no longer permitted is spared"]
    assert [machine["power"] for machine in machines(place).values()] == ["ending"]


def test_without_capacity_nothing_is_proved(place):
    cloud(place, free=0)

    result = command(place, "conformance", "--provider", "acme", "--yes", "--format", "csv")

    assert result.exit_code == 1
    assert "not_tried" in result.stdout


def test_without_an_offer_there_is_nothing_to_prove_it_with(place):
    assert "has no offer" in command(place, "conformance", "--provider", "acme", "--type", "none", "--yes").stderr


def test_a_provider_that_is_not_configured_is_wrong_usage(place):
    result = command(place, "conformance", "--provider", "aws", "--yes")

    assert result.exit_code == 2
    assert "acme, down" in result.stderr
