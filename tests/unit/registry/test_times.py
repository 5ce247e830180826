"""Times of a registry: what is a time, what is none, and that the host's zone changes nothing."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.times import format_time, parse_time

ELEVEN = datetime(2026, 1, 10, 11, tzinfo=UTC)

OFFSETS = st.timedeltas(min_value=timedelta(hours=-23, minutes=-59), max_value=timedelta(hours=23, minutes=59)).map(
    lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
)
SECOND_YEAR = datetime(2, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""No offset leads out of the years that there are."""
LAST_YEAR = SECOND_YEAR.replace(year=9998)
MOMENTS = st.datetimes(min_value=SECOND_YEAR, max_value=LAST_YEAR, timezones=OFFSETS)


@pytest.fixture(params=["America/New_York", "Asia/Kathmandu", "UTC"])
def zone(request, monkeypatch):
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-10 11:00:00", ELEVEN),
        ("2026-01-10T11:00:00", ELEVEN),
        ("2026-01-10T11:00:00Z", ELEVEN),
        ("2026-01-10T13:00:00+02:00", ELEVEN),
        ("2026-01-10 13:00:00+0200", ELEVEN),
        ("2026-01-10 13:00:00+02", ELEVEN),
        ("2026-01-10T05:30:00-05:30", ELEVEN),
        ("2026-01-10T11:00:00-00:00", ELEVEN),
        ("2026-01-10T00:00:00+13:00", ELEVEN - timedelta(days=1)),
        ("2026-01-10T11:00:00.5Z", ELEVEN + timedelta(milliseconds=500)),
        ("2026-01-10T11:00:00.000001", ELEVEN + timedelta(microseconds=1)),
        ("2026-01-10T11:00:00.123456789Z", ELEVEN + timedelta(microseconds=123456)),
        # An hour that New York does not have, and one that it has twice.
        ("2026-03-08 02:30:00", datetime(2026, 3, 8, 2, 30, tzinfo=UTC)),
        ("2026-11-01 01:30:00", datetime(2026, 11, 1, 1, 30, tzinfo=UTC)),
    ],
)
def test_a_time(text, moment):
    read = parse_time(text)

    assert read == moment
    assert read is not None
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-01-10",
        "20260110",
        "20260110T110000",
        "2026-W02-6",
        "2026-01-10 11:00",
        "2026-01-10T11",
        "1768042800",
        "2026-01-10 11:00:00 UTC",
        "2026-01-10 11:00:00 +0000",
        "2026-01-10 11:00:00 +0000 UTC",
        "2026-01-10T11:00:00z",
        "2026-01-10t11:00:00Z",
        "2026-01-10  11:00:00",
        " 2026-01-10 11:00:00",
        "2026-01-10 11:00:00\n",
        "2026-01-10 11:00:00\0",
        "2026-01-10 11:00:00,5",
        "2026-01-10 11:00:00.",
        "2026-01-10 11:00:00.1234567890",
        "2026-01-10 24:00:00",
        "2026-01-10 11:60:00",
        "2026-01-10 11:00:60",
        "2026-02-30 11:00:00",
        "2026-13-01 11:00:00",
        "0000-01-01 00:00:00",
        "2026-01-10T11:00:00+24:00",
        "2026-01-10T11:00:00+01:60",
        "2026-01-10T11:00:00+1:00",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "26-01-10 11:00:00",
        "10/01/2026 11:00:00",
        "2026-01-1\N{ARABIC-INDIC DIGIT ONE} 11:00:00",
        "2026-01-10T11:00:00Zulu",
        "2026-01-10T11:00:00Z+01:00",
    ],
)
def test_no_time(text):
    assert parse_time(text) is None


@given(MOMENTS)
def test_what_was_written_is_read_again(moment):
    assert parse_time(format_time(moment)) == moment


@given(MOMENTS, MOMENTS)
def test_written_times_sort_as_text(one, other):
    assert (format_time(one) < format_time(other)) == (one < other)


@given(MOMENTS)
def test_the_iso_text_of_any_program_is_read_as_the_same_moment(moment):
    assert parse_time(moment.isoformat()) == moment
    assert parse_time(moment.isoformat(sep=" ")) == moment


@given(st.datetimes(min_value=SECOND_YEAR))
def test_text_without_a_zone_is_utc(moment):
    assert parse_time(moment.isoformat()) == moment.replace(tzinfo=UTC)


@given(st.text())
def test_any_text_is_a_time_in_utc_or_none(text):
    read = parse_time(text)

    assert read is None or read.tzinfo is UTC


@given(
    st.from_regex(
        r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})?\Z"
    )
)
def test_what_only_looks_like_a_time_raises_nothing(text):
    read = parse_time(text)

    assert read is None or read.tzinfo is UTC


def test_a_naive_time_is_not_written():
    with pytest.raises(ValueError, match="time zone"):
        format_time(SECOND_YEAR)


def test_a_time_out_of_range_in_utc_is_not_written():
    with pytest.raises(ValueError, match="out of range"):
        format_time(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
