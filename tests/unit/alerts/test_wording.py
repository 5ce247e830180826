"""Every cause has its words, and a message fits everywhere."""

# ruff: noqa: RUF001 - characters that look like others are meant

from dataclasses import replace

import pytest

from alerts.conformance import HOSTILE, NOW, digest, every_kind, firing
from alerts.looks import DOMAINS
from alerts.model import Cause, Kind, Tally
from alerts.trial import trial_notice
from alerts.wording import LONGEST_BODY, MEANINGS, body, description, summary, title


def test_every_cause_has_words_and_somebody_who_looks():
    assert set(MEANINGS) == set(DOMAINS) == set(Cause)
    assert all(meaning.summary and meaning.next for meaning in MEANINGS.values())


def test_a_firing_leak_is_told_whole():
    assert title(firing(), "prod-eu") == (
        "reaperd prod-eu: warning: a machine that nobody owns runs for too long (aws/us-east-1/i-1)"
    )
    assert body(firing()).splitlines() == [
        "key: leak/aws/us-east-1/i-1",
        "since: 2026-01-10T12:00:00Z",
        "name: web-1",
        "age: 25h0m",
        "next: find its owner and end it, or list it under [[audit.ignore]] with the reason",
    ]


@pytest.mark.parametrize(
    ("kind", "words"),
    [(Kind.REMINDER, ": still: a "), (Kind.ESCALATED, ": raised: a "), (Kind.RESOLVED, ": resolved: a ")],
)
def test_the_title_says_what_kind_it_is(kind, words):
    assert words in title(replace(firing(), kind=kind), "prod-eu")


def test_a_trial_says_that_nothing_is_wrong():
    notice = trial_notice(NOW)

    assert notice.kind is Kind.TEST
    assert "a test, nothing is wrong: " in title(notice, "prod-eu")
    assert "detail: this is a test of the channel; there is no such machine" in body(notice)


def test_what_is_resolved_asks_for_nothing():
    told = body(replace(firing(), kind=Kind.RESOLVED))

    assert "resolved at: 2026-01-10T12:00:00Z" in told
    assert "next:" not in told


@pytest.mark.parametrize(("age", "shown"), [(None, "unknown"), (59, "0h0m"), (172_800, "2d0h"), (float("inf"), "inf")])
def test_an_age_is_readable_and_never_zero_when_unknown(age, shown):
    notice = firing()
    condition = replace(notice.condition, data={"age_seconds": age})

    assert f"age: {shown}" in body(replace(notice, condition=condition))


def test_a_digest_has_figures_and_the_first():
    told = body(digest(3_000))

    assert told.splitlines()[0] == "3000 × leak in aws/us-east-1"
    assert "- warning: leak/aws/us-east-1/i-9" in told
    assert told.splitlines()[-1] == "all of them: reaperd alerts list"


def test_a_digest_of_many_places_says_how_many_it_leaves_out():
    tallies = tuple(Tally(cause=Cause.LEAK, scope=f"aws/r-{n}", count=n + 1) for n in range(13))

    told = body(replace(digest(3), tallies=tallies))

    assert told.splitlines()[0] == "13 × leak in aws/r-12"
    assert "and 3 more causes and places" in told


@pytest.mark.parametrize("text", HOSTILE)
def test_no_message_is_longer_than_the_tightest_chat_takes(text):
    notice = firing(name=text)
    data = {f"field-{n}": text for n in range(50)}
    crowded = replace(notice, condition=replace(notice.condition, data=data))
    messages = [body(message) for message in (*every_kind(), crowded, notice)]

    assert max(len(message) for message in messages) <= LONGEST_BODY + 2
    assert all(line.isprintable() for message in messages for line in message.splitlines())


def test_a_body_that_is_cut_says_so():
    notice = firing()
    data = {f"field-{n}": "x" * 200 for n in range(50)}

    assert body(replace(notice, condition=replace(notice.condition, data=data))).endswith("\n…")


def test_annotations_are_one_line_each():
    condition = firing(name=HOSTILE[3]).condition

    assert summary(condition) == "a machine that nobody owns runs for too long: aws/us-east-1/i-1"
    assert description(condition).isprintable()
    assert description(replace(condition, data={})).startswith("Next: ")
