"""What a person reads of a pass, at 80 columns."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.cells import cell_len

from alerts.model import Cause, Condition, Severity
from providers.model import InstanceState, ScopeFailure
from reaperd.core.model import DeferReason, Mode, PassOutcome, RefusalReason
from reaperd.report.paper import Paper
from reaperd.report.parts import span
from reaperd.report.remedies import Whereabouts
from reaperd.report.table import draw_pass
from tests.support.worlds import EAST, WEST, broken, look, machine, policy, ref, row, whole
from tests.unit.cli import reports
from tests.unit.cli.golden import assert_golden

EVIL = "\x1b[2J\x1b]0;owned\x07[red]x[/red]\r\nREHEARSAL\u202e\x7f\x9b31m"


def drawn(report, *, everything=False, where=None, **paper):
    page = Paper(**paper)
    draw_pass(report, page, where or Whereabouts(), everything=everything)
    return page.text()


COMPLETE = {
    "rehearsal": reports.rehearsal,
    "enforced": reports.enforced,
    "spared": reports.spared,
    "crowd": reports.crowd,
    "nothing_owned": lambda: reports.report(look(), policy()),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_pass_is_drawn_as_agreed(name):
    text = drawn(COMPLETE[name]())

    assert_golden(name, text)
    assert all(cell_len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("reason", RefusalReason)
def test_a_refusal_is_drawn_as_agreed(reason):
    assert_golden(f"refused_{reason}", drawn(reports.refused(reason), where=Whereabouts(recorded=False)))


@pytest.mark.parametrize("reason", DeferReason)
def test_a_deferred_pass_is_drawn_as_agreed(reason):
    assert_golden(f"deferred_{reason}", drawn(reports.deferred(reason)))


@pytest.mark.parametrize("reason", RefusalReason)
def test_nothing_but_a_command_is_wider_than_the_terminal(reason):
    wide = [line for line in drawn(reports.refused(reason)).splitlines() if cell_len(line) > 80]

    assert all(line.startswith("    reaperd ") for line in wide)


@pytest.mark.parametrize("mode", Mode)
def test_the_first_line_says_whether_anything_was_terminated(mode):
    first = drawn(replace(reports.rehearsal(), mode=mode, outcomes=())).splitlines()[0]

    nothing = {
        Mode.DRY_RUN: "REHEARSAL: nothing was terminated",
        Mode.ENFORCE: "ENFORCING: nothing was terminated in this pass",
    }
    assert first == nothing[mode]


@pytest.mark.parametrize("mode", Mode)
def test_a_refused_plan_is_never_called_carried_out(mode):
    text = drawn(replace(reports.refused(RefusalReason.BREAKER_OPEN), mode=mode))

    assert "\nWOULD TERMINATE (2)\n" in text


def test_all_machines_are_shown_when_they_are_asked_for():
    text = drawn(reports.crowd(100), everything=True)

    assert text.count("aws/us-east-1") == 100 + 1
    assert "more:" not in text


def test_every_reason_to_stand_down_is_resolved_and_none_twice():
    also = (str(RefusalReason.REAP_HOLD), str(RefusalReason.BREAKER_OPEN), str(RefusalReason.REAP_HOLD))
    text = drawn(replace(reports.refused(RefusalReason.CLOCK), also=also))

    assert "REFUSED: clock (also: reap_hold, breaker_open, reap_hold)" in text
    assert [line for line in text.splitlines() if line.startswith("    ")] == [
        "    timedatectl status",
        "    reaperd plan",
        "    reaperd resume",
        "    reaperd once --dry-run",
    ]


def test_a_command_names_the_configuration_that_was_given():
    where = Whereabouts(config="/etc/my fleet.toml")
    text = drawn(reports.refused(RefusalReason.REAP_HOLD), where=where)

    assert "    reaperd resume --config '/etc/my fleet.toml'\n" in text


def test_a_condition_of_the_whole_is_told_unless_it_is_the_refusal():
    conditions = (
        Condition(cause=Cause.BLIND, severity=Severity.CRITICAL, data={"missing_workers": 4}),
        Condition(cause=Cause.CLOCK, severity=Severity.WARNING),
    )
    text = drawn(replace(reports.refused(RefusalReason.CLOCK), conditions=conditions))

    assert "critical    blind: missing_workers 4\n" in text
    assert "warning" not in text


def test_failed_scopes_come_first_and_are_all_told():
    good = tuple(whole(type(EAST)("aws", f"region-{number:02}")) for number in range(20))
    bad = tuple(broken(scope, ScopeFailure.DEADLINE, error_code=None) for scope in (EAST, WEST))
    text = drawn(replace(reports.refused(RefusalReason.DEADLINE), coverage=(*good, *bad)))

    assert "20 of 22 listed whole" in text
    assert text.index("FAILED aws/us-east-1: deadline") < text.index("FAILED aws/eu-west-1") < text.index("region-00")
    assert "… 10 more" in text


def test_an_error_without_a_reason_is_drawn():
    text = drawn(replace(reports.rehearsal(), outcome=PassOutcome.ERROR, detail="it broke"))

    assert "\nERROR\n  it broke\n" in text


def test_text_of_strangers_cannot_command_the_terminal_or_draw():
    seen = look(
        [machine(f"i-1{EVIL}", worker=EVIL), machine("i-2", worker="w-2", managed_by=f"autoscaling:{EVIL}")],
        [row(f"w-{EVIL}", f"i-9{EVIL}")],
        coverage=(whole(EAST, account=EVIL), whole(WEST)),
    )
    report = replace(
        reports.report(seen, policy(scopes=frozenset({EAST, WEST}))),
        outcome=PassOutcome.REFUSED,
        reason="clock",
        detail=EVIL,
        coverage=(whole(EAST, account=EVIL), broken(WEST, error_code=EVIL, detail=EVIL)),
    )

    text = drawn(report)

    assert all(char == "\n" or char.isprintable() for char in text)
    assert text.count("\nREHEARSAL") == 0
    assert "[red]x[/red]" in text
    assert r"\x1b[2J\x1b]0;owned\x07" in text
    assert r"\u202e\x7f\x9b31m" in text


def test_colour_comes_only_with_a_terminal_and_changes_no_word():
    plain, coloured = drawn(reports.rehearsal()), drawn(reports.rehearsal(), colour=True)

    assert "\x1b" not in plain
    assert coloured.startswith("\x1b[1;33mREHEARSAL: nothing was terminated\x1b[0m\n")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_an_id_stays_whole_at_80_columns_whatever_the_worker_is_called():
    text = drawn(reports.report(look([machine("i-0123456789abcdef0", worker="w" * 200)]), policy()))

    assert "i-0123456789abcdef0  aws/us-east-1  unregistered" in text
    assert text[text.index("WORKER") :].count("w") == 200 + 1  # that of aws


def test_a_very_long_id_is_folded_and_not_cut():
    name = "subscriptions-" + "0123456789" * 20
    text = drawn(reports.report(look([machine(name)]), policy()))

    table, _, _ = text[text.index("  INSTANCE ") :].partition("\n\n")
    assert "".join(line.split()[0] for line in table.splitlines()[1:]) == name


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m 0s"), (3600, "1h 0m"), (7800, "2h 10m"), (86400, "1d 0h"), (273600, "3d 4h")],
)
def test_a_duration_has_two_units_at_most(seconds, text):
    assert span(timedelta(seconds=seconds)) == text


def test_an_unknown_age_is_called_unknown():
    text = drawn(reports.report(look([machine("i-1", age=None)]), policy()))

    assert span(None) == "unknown"
    assert re.search(r"i-1 .* launch_grace +unknown", text)


@pytest.mark.parametrize(
    ("machines", "told"),
    [
        ({"i-1": {}, "i-2": {}}, "2: unregistered 2; $0.192 an hour"),
        ({"i-1": {}, "i-2": {"instance_type": "odd"}}, "2: unregistered 2; $0.096 an hour and 1 of unknown price"),
        ({"i-1": {}, "i-2": {"state": InstanceState.STOPPED}}, "2: unregistered 2; $0.096 an hour"),
        ({"i-1": {"instance_type": "odd"}}, "1: unregistered 1"),
        ({"i-9": {}}, "0"),
    ],
    ids=["all known", "one unknown", "one stopped", "none known", "none to go"],
)
def test_what_is_to_go_is_told_with_what_it_costs(machines, told):
    fleet = [machine(name, **({"instance_type": "m5.large"} | facts)) for name, facts in machines.items()]
    tracked = row("w-9", "i-9")

    text = drawn(reports.report(look(fleet, [tracked]), policy(prices={"m5.large": 0.096})))

    assert f"terminate   {told}\n" in text


def test_outcomes_that_went_wrong_are_told_with_their_machine():
    text = drawn(reports.enforced())

    assert "NOT AS PLANNED (1)" in text
    assert str(ref("i-0cc33333333333333").instance_id) in text
