"""What the configuration wishes, as the decisions get it."""

from __future__ import annotations

import pytest

from providers.model import Scope
from reaperd.core.model import Keep, KeepReason
from reaperd.core.reap import decide
from reaperd.wiring.policy import build_audit_policy, build_policy
from tests.support.worlds import look, machine, policy
from tests.unit.config.writing import AWS, file, loaded

FOUND = AWS.replace('["us-east-1"]', '"auto"')
PLUG_IN = '[[providers]]\nname = "acme"\ntype = "acme"\n'


@pytest.mark.parametrize(
    ("provider", "more", "named", "discovering"),
    [
        (AWS, "", {Scope("aws", "us-east-1")}, set()),
        (FOUND, "", set(), {"aws"}),
        (AWS, PLUG_IN, {Scope("aws", "us-east-1")}, {"acme"}),
    ],
    ids=["a list", "auto", "a list beside a plug-in"],
)
def test_the_reaper_and_the_audit_agree_on_where_the_reaper_looks(provider, more, named, discovering):
    settings = loaded(file(provider=provider, more=more))

    reaper, auditor = build_policy(settings, own_instance_id=None), build_audit_policy(settings)

    assert (reaper.scopes, reaper.discovering) == (named, discovering)
    assert (auditor.scopes, auditor.discovering) == (named, discovering)


def test_an_id_on_the_never_list_holds_however_it_is_spelt():
    never = build_policy(loaded(file(more='[reconcile]\nnever = ["I-0AA1"]')), own_instance_id="i-0bb2").never

    seen = look([machine("i-0aa1"), machine("i-0bb2"), machine("i-0cc3")])
    kept = {each.ref.instance_id: each.call for each in decide(seen, policy(never=never)).verdicts}
    assert kept["i-0aa1"] == kept["i-0bb2"] == Keep(KeepReason.NEVER_LIST)
    assert kept["i-0cc3"] != Keep(KeepReason.NEVER_LIST)


def test_the_reaper_and_the_audit_have_the_same_prices():
    settings = loaded(file(more='[prices]\n"m5.large" = 0.096'))

    reaper, auditor = build_policy(settings, own_instance_id=None), build_audit_policy(settings)

    assert reaper.prices == auditor.prices == {"m5.large": 0.096}
