"""The rules that leave machines out, and what becomes of them; with names that strangers chose."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from providers.model import AuditedInstance, InstanceState
from reaperd.core.ignoring import IgnoreRule, Ignoring, RuleState, RuleUse, match_rules
from tests.support.worlds import NOW, ref

YESTERDAY, TODAY = (NOW - timedelta(days=1)).date(), NOW.date()
LONG = "a" * 10_000


def named(name: str | None, instance_id: str = "i-1", **other: Any) -> AuditedInstance:
    return AuditedInstance(ref=ref(instance_id), state=InstanceState.RUNNING, name=name, **other)


def rule(glob: str = "*", **other: Any) -> IgnoreRule:
    return IgnoreRule(**({"reason": "known", "patterns": {"name": glob}} | other))


def matched(rules: list[IgnoreRule], *machines: AuditedInstance) -> Ignoring:
    return match_rules(rules, machines, NOW)


def means(glob: str, name: str) -> bool:
    by_name = matched([rule(glob)], named(name)).uses[0].matched == 1
    by_tag = matched([rule(patterns={}, tags={"key": glob})], named(None, tags={"key": name})).uses[0].matched == 1
    assert by_name is by_tag
    return by_name


# ---------------------------------------------------------------- what a glob means


@pytest.mark.parametrize(
    ("glob", "name", "meant"),
    [
        ("bastion-?", "bastion-1", True),
        ("bastion-?", "bastion-12", False),
        ("[ab]*", "b1", True),
        ("[!ab]*", "b1", False),
        ("[", "[", True),
        ("[a", "[a", True),
        ("[]", "[]", True),
        ("[[]x[]]", "[x]", True),
        ("[*]", "*", True),
        ("[*]", "x", False),
        ("a.c", "abc", False),
        ("(a|b)+$", "(a|b)+$", True),
        ("*", "", True),
        ("", "", True),
        ("", "x", False),
        ("x*", "x\nno leaks", True),
        ("<script>*", "<script>alert(1)</script>", True),
        ("Bastion", "bastion", False),
        ("größe-*", "größe-\U0001f9ca", True),
        ("*\u202e*", "a\u202eb", True),
        ("?", "\U0001f9ca", True),
        ("x\\*", "x*", False),
        ("*\x00*", "a\x00b", True),
    ],
)
def test_a_glob_means_what_it_says_whatever_a_stranger_wrote(glob, name, meant):
    assert means(glob, name) is meant


@pytest.mark.parametrize("glob", [LONG, "*" * 1_000 + "b", "a*" * 50 + "b", "[a-z]*" * 20 + "!"])
def test_a_name_of_ten_thousand_characters_takes_no_time(glob):
    began = time.thread_time()

    assert means(glob, LONG) is (glob == LONG)
    assert time.thread_time() - began < 2


# ---------------------------------------------------------------- which rule, and whether it is still good


def test_the_first_rule_in_force_gives_the_reason():
    rules = [
        rule(reason="over", until=YESTERDAY),
        rule("x*", reason="other"),
        rule(reason="first"),
        rule(reason="next"),
    ]

    found = matched(rules, named("bastion"))

    assert found.by_ref[ref()].reason == "first"
    assert [use.matched for use in found.uses] == [1, 0, 1, 1]


def test_a_machine_that_no_rule_means_is_left_alone():
    assert matched([rule("x*")], named("bastion")).by_ref == {}


@pytest.mark.parametrize(
    ("until", "count", "complete", "state"),
    [
        (None, 1, True, RuleState.IN_FORCE),
        (None, 0, True, RuleState.UNMATCHED),
        (None, 0, False, RuleState.IN_FORCE),
        (TODAY, 1, True, RuleState.IN_FORCE),
        (YESTERDAY, 1, True, RuleState.EXPIRED),
        (YESTERDAY, 0, True, RuleState.EXPIRED),
        (YESTERDAY, 1, False, RuleState.EXPIRED),
    ],
)
def test_a_rule_is_expired_or_unmatched_or_in_force(until, count, complete, state):
    (use,) = matched([rule(until=until)], *[named("x", f"i-{number}") for number in range(count)]).uses

    assert use.state(complete=complete) is state


def test_a_rule_that_names_nothing_means_nothing():
    assert matched([rule(patterns={})], named("x")).uses == (
        RuleUse(number=1, rule=rule(patterns={}), matched=0, expired=False),
    )


def test_many_rules_and_many_machines_take_no_time():
    rules = [rule(f"pattern-{number}-*") for number in range(300)]
    crowd = [named(f"pattern-{number}-x", f"i-{number}") for number in range(3_000)]
    began = time.thread_time()

    found = matched(rules, *crowd)

    assert len(found.by_ref) == 300
    assert time.thread_time() - began < 5
