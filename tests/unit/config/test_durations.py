"""Durations as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reaperd.config import format_duration, parse_duration
from reaperd.config.durations import LONGEST

_WHOLE_SECONDS = st.integers(min_value=0, max_value=int(LONGEST.total_seconds())).map(lambda s: timedelta(seconds=s))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172_800), ("1d1h1m1s", 90_061), ("0s", 0), ("0090s", 90)],
)
def test_a_duration_is_numbers_with_units(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@given(_WHOLE_SECONDS)
def test_what_is_written_is_read_back_as_the_same(duration):
    assert parse_duration(format_duration(duration)) == duration


@given(st.text(max_size=12))
def test_any_other_text_is_refused_and_nothing_else_is_raised(text):
    try:
        duration = parse_duration(text)
    except ValueError:
        return
    assert set(text) <= set("0123456789dhms")
    assert timedelta(0) <= duration <= LONGEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "60",
        "1.5h",
        "-5m",
        "+5m",
        "5 m",
        " 5m",
        "5m\n",
        "5M",
        "5min",
        "m",
        "30m1h",
        "5m5m",
        "1w",
        "1e3s",
        "\N{ARABIC-INDIC DIGIT FIVE}m",
        "5ms",
    ],
)
def test_garbage_is_no_duration(text):
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["3651d", "999999999d", "3650d1s"])
def test_a_duration_that_a_date_could_not_hold_is_refused(text):
    with pytest.raises(ValueError, match="is too long"):
        parse_duration(text)


def test_the_longest_duration_is_accepted():
    assert parse_duration("3650d") == LONGEST
