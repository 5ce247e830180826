"""`explain`: the plan that it recommends to approve, and how it counts looks."""

from __future__ import annotations

import pytest

from providers.model import InstanceRef
from reaperd.core.history import ToldPass, ToldVerdict
from reaperd.core.model import BreakerLimits
from reaperd.report.explain import dossier_document
from tests.support.worlds import MINUTE, NOW, look, policy, ref, row
from tests.unit.cli.test_explain import CONFIRMED, REF, WHERE, dossier, drawn, ours

DIGEST = "sha256:" + "91ea" * 16
NEVER = policy(breaker=BreakerLimits(max_per_pass=0))


def newest(about: InstanceRef = REF, name: str = "terminate/unregistered", digest: str | None = DIGEST) -> ToldPass:
    told = ToldVerdict(
        ref=about, worker_id="w-2", state="running", name=name, age_seconds=600, confirmations=3, confirmations_needed=3
    )
    return ToldPass(
        at=NOW - MINUTE,
        finished_at=NOW - MINUTE,
        pass_id="p-1",
        kind="reconcile",
        mode="enforce",
        outcome="refused",
        reason="breaker_open",
        verdicts=(told,),
        plan_digest=digest,
    )


def remedy(told) -> str:
    document = dossier_document(told, WHERE)
    (condition,) = (one for one in document["machines"][0]["conditions"] if one["condition"] == "breaker_open")
    return condition["remedy"]


def test_the_recorded_plan_with_the_machine_in_it_is_named():
    told = dossier(look([ours()]), NEVER, newest=newest())

    assert f"    reaperd approve {DIGEST} --config /etc/fleet.toml\n" in drawn(told)
    assert remedy(told) == f"reaperd approve {DIGEST} --config /etc/fleet.toml"


@pytest.mark.parametrize(
    "other",
    [newest(ref("i-other")), newest(name="keep/tracked"), newest(digest=None), None],
    ids=["another machine's", "one that keeps it", "no plan", "no pass"],
)
def test_without_such_a_plan_the_pass_that_records_one_is_recommended(other: ToldPass | None):
    told = dossier(look([ours()]), NEVER, newest=other)

    text = drawn(told)
    assert "    reaperd once --dry-run --config /etc/fleet.toml\n" in text
    assert "reaperd approve" not in text
    assert remedy(told) == "reaperd once --dry-run --config /etc/fleet.toml"


def looks(told) -> str:
    document = dossier_document(told, WHERE)
    (condition,) = (one for one in document["machines"][0]["conditions"] if one["condition"] == "unconfirmed")
    return condition["detail"]


def test_looks_are_counted_in_words():
    tracked = look([ours()], [row("w-2", REF.instance_id)])

    assert looks(dossier(tracked, policy(confirm_passes=1))) == (
        "a live row accounts for it, or may, so no look counts; it takes 1 complete look without one"
    )
    assert looks(dossier(tracked, policy(confirm_passes=3))) == (
        "a live row accounts for it, or may, so no look counts; it takes 3 complete looks in a row without one"
    )
    assert looks(dossier(look([ours()]), policy(confirm_passes=3))) == (
        "1 complete look found it untracked, counting this moment; it takes 3: 2 more, at least 30s apart"
    )
    assert looks(dossier(look([ours()], memory=CONFIRMED), policy(confirm_passes=3))) == (
        "3 complete looks in a row found it untracked, counting this moment; it takes 3"
    )
