"""What names a machine compares by all of its name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.identity import InstanceRef, Scope

WORDS = st.sampled_from(["a", "b", "a/b", "b/a"])
REFS = st.builds(InstanceRef, provider=WORDS, region=WORDS, instance_id=WORDS)


@given(REFS, REFS)
def test_two_refs_are_equal_exactly_if_all_of_their_parts_are(one: InstanceRef, other: InstanceRef):
    parts = [(each.provider, each.region, each.instance_id) for each in (one, other)]

    assert (one == other) == (parts[0] == parts[1])
    assert (one != other) == (parts[0] != parts[1])
    assert (one < other) == (parts[0] < parts[1])
    assert one != other or hash(one) == hash(other)


@given(st.lists(REFS))
def test_a_set_of_refs_holds_each_machine_once(refs: list[InstanceRef]):
    assert len(set(refs)) == len({(each.provider, each.region, each.instance_id) for each in refs})


def test_a_ref_is_no_text_and_no_tuple():
    ref = InstanceRef("aws", "r", "i-1")

    assert ref != "aws/r/i-1"
    assert ref != ("aws", "r", "i-1")
    assert ref.scope == Scope("aws", "r")


def test_a_machine_without_an_id_has_no_name():
    with pytest.raises(ValueError, match="without an id"):
        InstanceRef("aws", "r", "")
