"""Text of strangers is text for whoever reads it."""

# ruff: noqa: RUF001 - characters that look like others are meant

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.conformance import HOSTILE
from alerts.text import LONGEST, identity, plain, visible

MARKUP = set("<>&@#*~`|[]{}\\!")


@given(st.text(max_size=400))
def test_what_people_are_shown_is_printable_bounded_and_without_markup(text):
    shown = plain(text)

    assert shown.isprintable()
    assert len(shown) <= LONGEST
    assert not MARKUP & set(shown)
    assert "://" not in shown


@given(st.text(st.characters(categories=["L", "N"], include_characters="-. :/=,'()"), max_size=150))
def test_harmless_text_stays_as_it_is(text):
    assert plain(text.replace("://", "")) == text.replace("://", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web_1", "web_1"),
        ("_web_", "＿web＿"),
        ("a__b", "a＿＿b"),
        ("<!here>", "‹ǃhere›"),
        ("http://evil.example/x", "http:∕∕evil.example/x"),
        ("two\nlines", "two＼nlines"),
        ("\u202eexe", "＼u202eexe"),
    ],
)
def test_what_becomes_of_it(text, shown):
    assert plain(text) == shown


def test_a_long_text_is_cut_where_it_can_be_seen():
    assert visible("x" * 10_000, 10) == "x" * 9 + "…"
    assert visible("x" * 10, 10) == "x" * 10
    assert len(visible("\n" * 10_000, 10)) == 10


@given(st.lists(st.text(min_size=1, max_size=300), unique=True, max_size=20))
def test_different_names_stay_different(names):
    shown = [identity(name) for name in names]

    assert len(set(shown)) == len(names)
    assert all(text.isprintable() and len(text) <= LONGEST for text in shown)


def test_long_names_that_differ_at_their_end_stay_different():
    assert identity("x" * 500 + "a") != identity("x" * 500 + "b")
    assert identity(HOSTILE[0]) == HOSTILE[0]
