"""A plan that is to be approved: what is shown of each machine, at whatever width."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from providers.model import InstanceState
from reaperd.core.history import ToldPass, ToldVerdict
from reaperd.core.model import OutcomeKind
from reaperd.core.plans import RecordedPlan, Request
from reaperd.report.paper import Paper
from reaperd.report.parts import dollars
from reaperd.report.plan import draw_plan
from tests.support.worlds import EAST, HOUR, MINUTE, NOW, WEST, ref
from tests.unit.cli.golden import assert_golden

LATER = NOW + 30 * MINUTE
LONG = "transcode-7f3c2a10-3c1e-4f0a-9c55-0d2f6a1b9e77"
ROW = f"row {LONG} is completed, last written at 2026-01-10 11:00:00 UTC"


def verdict(instance_id: str, **facts: Any) -> ToldVerdict:
    made = ToldVerdict(
        ref=ref(instance_id),
        worker_id="w-1",
        state="running",
        name="terminate/unregistered",
        age_seconds=7800,
        confirmations=3,
        confirmations_needed=3,
        instance_type="m5.large",
        cost_per_hour_usd=0.096,
        first_seen_at=NOW - 2 * HOUR,
        detail="no row",
    )
    return replace(made, **facts)


FLEET = (
    verdict("i-0bb22222222222222"),
    verdict(
        "i-0cc33333333333333",
        ref=ref("i-0cc33333333333333", WEST),
        worker_id=LONG,
        name="terminate/retired",
        instance_type="p5.48xlarge",
        cost_per_hour_usd=98.32,
        last_tracked_at=NOW - HOUR,
        detail=ROW,
    ),
    verdict(
        "i-0dd44444444444444",
        worker_id=None,
        name="terminate/anonymous",
        instance_type="t3.nano",
        cost_per_hour_usd=0.0052,
        detail="no row, and no worker tag",
    ),
    verdict("i-0ee55555555555555", instance_type="g6.xlarge", cost_per_hour_usd=None),
    verdict("i-0ff66666666666666", state="stopped"),
)


def plan(*machines: ToldVerdict, **since: Any) -> RecordedPlan:
    told = ToldPass(
        at=NOW,
        finished_at=NOW,
        pass_id="p-1",
        kind="reconcile",
        mode="enforce",
        outcome="refused",
        reason="breaker_open",
        verdicts=machines,
    )
    return RecordedPlan(digest="sha256:" + "91ea" * 16, told=told, **since)


def drawn(shown: RecordedPlan, prices: dict[str, float] | None = None, width: int = 80) -> str:
    paper = Paper(width=width)
    draw_plan(shown, prices or {}, paper, NOW + HOUR)
    return paper.text()


def since() -> RecordedPlan:
    """Return the plan, of which one machine each is tracked, to go, not listed, gone and held."""
    tracked, to_go, _, gone, held = (machine.ref for machine in FLEET)
    listed = dict.fromkeys((tracked, to_go, held), InstanceState.RUNNING)
    asked = Request(
        requested_at=NOW, outcome=OutcomeKind.REQUESTED, closed_as=OutcomeKind.CONFIRMED_GONE, closed_at=LATER
    )
    return plan(
        *FLEET,
        looked_at=LATER,
        scopes=frozenset({EAST, WEST}),
        listed=listed,
        verdicts={tracked: "keep/tracked", to_go: "terminate/retired", held: "keep/protect_tag"},
        requests={gone: asked},
    )


@pytest.mark.parametrize(("name", "shown"), [("approve_new", plan(*FLEET)), ("approve_later", since())])
def test_a_plan_is_shown_with_costs_and_evidence(name: str, shown: RecordedPlan):
    text = drawn(shown)

    assert_golden(name, text)
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_is_cut_off_and_no_line_is_too_long_but_the_digest(width: int):
    text = drawn(since(), width=width)

    assert all(len(line) <= width or line.startswith("plan sha256:") for line in text.splitlines())
    joined = "".join(text.split())
    # A cell that is folded goes on below, among its neighbours.
    cells = ("p5.48xlarge", "i-0cc33333333333333") if width >= 80 else ()
    for part in (LONG, ROW, "98.32", "0.0052", "protect_tag", "last tracked 2026-01-10 11:00 UTC", *cells):
        assert "".join(part.split()) in joined


def foot(shown: RecordedPlan, prices: dict[str, float] | None = None) -> str:
    return " ".join(drawn(shown, prices).rstrip().rpartition("\n\n")[2].split())


def test_the_foot_has_the_sum_of_what_is_still_to_go():
    assert foot(plan(FLEET[0])) == "1 machine to go, $0.096 an hour"
    assert foot(plan(FLEET[0], verdict("i-2"))) == "2 machines to go, $0.192 an hour"
    assert foot(since()) == "1 of 5 machines to go, $98.32 an hour"


def test_the_foot_says_which_key_gives_the_prices_that_are_not_known():
    unpriced = verdict("i-3", cost_per_hour_usd=None)

    alone, beside = foot(plan(unpriced)), foot(plan(FLEET[0], unpriced))

    told = "1 of unknown price: [prices] in the configuration gives one to a type"
    assert alone == f"1 machine to go, {told}"
    assert beside == f"2 machines to go, $0.096 an hour, {told}"


def test_a_price_that_is_configured_by_now_counts():
    unpriced = verdict("i-3", cost_per_hour_usd=None)

    assert foot(plan(unpriced), {"m5.large": 2.0}) == "1 machine to go, $2.00 an hour"
    assert foot(plan(FLEET[0]), {"m5.large": 2.0}) == "1 machine to go, $0.096 an hour"


def test_what_is_stopped_does_not_cost_its_price():
    stopped = verdict("i-3", state="stopped")

    assert foot(plan(stopped)) == "1 machine to go, 1 stopped"
    assert "  -  to go" in drawn(plan(stopped))


def test_a_record_from_before_the_evidence_is_shown_as_it_is():
    old = verdict("i-3", instance_type=None, cost_per_hour_usd=None, first_seen_at=None, detail="", age_seconds=None)

    lines = drawn(plan(old)).splitlines()

    assert lines[5].split() == ["i-3", "aws/us-east-1", "-", "unknown", "-", "to", "go"]
    assert [line.strip() for line in lines[6:8]] == ["unregistered; running, worker w-1", "untracked in 3/3 looks"]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (
            Request(requested_at=NOW, outcome=None, closed_as=None, closed_at=None),
            "NOW requested: unknown, at 2026-01-10",
        ),
        (
            Request(requested_at=NOW, outcome=OutcomeKind.DENIED, closed_as=None, closed_at=None),
            "NOW kept: denied, as of 2026-01-10",
        ),
    ],
)
def test_an_answer_of_the_cloud_is_told(request_: Request, told: str):
    text = drawn(plan(FLEET[0], requests={FLEET[0].ref: request_}))

    assert told in text


def test_text_of_strangers_is_spelled_out():
    evil = "\x1b[2J[red]x\r\n"
    odd = verdict(evil, worker_id=evil, instance_type=evil, detail=evil)

    text = drawn(plan(odd))

    assert text.replace("\n", "").isprintable()
    assert r"\x1b[2J" in text


@pytest.mark.parametrize(
    ("cost", "told"),
    [(0.0, "0.00"), (0.0052, "0.0052"), (0.1, "0.10"), (98.32, "98.32"), (12345.5, "12,345.50")],
)
def test_an_amount_has_two_to_four_decimals(cost: float, told: str):
    assert dollars(cost) == told
