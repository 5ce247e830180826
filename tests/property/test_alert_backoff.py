"""Retries wait longer each time, never for ever, and no channel is flooded."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from alerts.backoff import LONGEST_QUIET, Backoff, may_send_at, next_try_at

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)

jitters = st.floats(0, 1, exclude_max=True)
attempts = st.integers(0, 10_000)
backoffs = st.builds(
    Backoff,
    first=st.timedeltas(SECOND, timedelta(hours=1)),
    cap=st.timedeltas(SECOND, timedelta(days=2)),
    per_minute=st.integers(1, 40),
)


@given(attempts, backoffs, jitters)
def test_a_retry_comes_after_now_and_within_the_cap(count, backoff, jitter):
    wait = next_try_at(count, NOW, backoff, jitter=jitter) - NOW

    assert timedelta(0) < wait <= backoff.cap


@given(attempts, backoffs, jitters)
def test_no_attempt_waits_for_less_than_the_one_before(count, backoff, jitter):
    waits = [next_try_at(n, NOW, backoff, jitter=jitter) for n in (count, count + 1)]

    assert waits == sorted(waits)


@given(backoffs, jitters)
def test_after_many_attempts_the_cap_is_reached_up_to_the_jitter(backoff, jitter):
    wait = next_try_at(100, NOW, backoff, jitter=jitter) - NOW

    assert wait >= backoff.cap / 2


def test_each_wait_is_twice_the_one_before_at_the_same_jitter():
    waits = [(next_try_at(n, NOW, Backoff(), jitter=0) - NOW).total_seconds() for n in range(1, 10)]

    assert waits == [2.5, 5, 10, 20, 40, 80, 160, 320, 450]


@given(attempts, backoffs, jitters, st.timedeltas(timedelta(0), timedelta(days=400)))
def test_the_quiet_that_was_asked_for_is_kept_within_a_day(count, backoff, jitter, asked):
    wait = next_try_at(count, NOW, backoff, jitter=jitter, retry_after=asked) - NOW

    assert wait >= min(asked, LONGEST_QUIET)
    assert wait <= max(backoff.cap, LONGEST_QUIET)


@given(backoffs, st.lists(st.timedeltas(timedelta(0), 10 * SECOND), max_size=150))
def test_in_no_minute_more_is_sent_than_allowed(backoff, gaps):
    now, sent = NOW, []
    for gap in gaps:
        now = may_send_at(sent, now + gap, backoff)
        sent.append(now)

    for start in sent:
        assert sum(start <= moment < start + MINUTE for moment in sent) <= backoff.per_minute


@given(backoffs, st.lists(st.timedeltas(-MINUTE, MINUTE), max_size=100).map(lambda gaps: [NOW + gap for gap in gaps]))
def test_the_wait_for_room_is_at_most_a_minute_and_none_when_there_is_room(backoff, sent):
    earliest = may_send_at(sent, NOW, backoff)

    assert NOW <= earliest <= NOW + MINUTE
    if len(sent) < backoff.per_minute:
        assert earliest == NOW
    assert may_send_at(reversed(sent), NOW, backoff) == earliest
    assert may_send_at(sent, earliest, backoff) == earliest or max(sent) > NOW
