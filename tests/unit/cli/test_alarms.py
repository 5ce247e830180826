"""What is open, whether the channels work, and what nobody wants to hear for a while."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alerts.lifecycle import Audience, Policy
from alerts.looks import Domain, Look
from alerts.model import Cause, Condition, Severity
from reaperd.core.telling import Telling, Watch
from reaperd.ledger.lease import Lease
from reaperd.process import current
from tests.support.receiver import Receiver
from tests.unit.cli.running import Place, run

KEY = "leak/aws/us-east-1/i-0abc"
CHANNEL = '[[alerts.channels]]\ntype = "webhook"\nname = "{name}"\nurl = "{url}"\n'
NOBODY = "http://127.0.0.1:9/"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.configure()
    made.make_ledger()
    return made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as started:
        yield started


def tell(place: Place, *causes: tuple[Cause, str], channel: str = "hook") -> None:
    """Tell of these as a sweep and a pass would, and give the lease back."""
    now = datetime.now(UTC)
    watch = Watch(policy=Policy(audiences=(Audience(name=channel),)), providers=frozenset({"aws"}), scopes=frozenset())
    found = tuple(Condition(cause=cause, subject=subject, severity=_severity(cause)) for cause, subject in causes)
    scopes = frozenset({"aws/us-east-1"})
    with place.open() as ledger:
        lease = ledger.take_lease(current(), timedelta(seconds=30), now)
        assert isinstance(lease, Lease)
        for domain in (Domain.AUDIT, Domain.RECONCILE):
            mine = tuple(c for c in found if (c.cause is Cause.LEAK) is (domain is Domain.AUDIT))
            look = Look(domain=domain, at=now, scopes=scopes, complete=True)
            ledger.alarms.tell(Telling(conditions=mine, look=look), watch, lease=lease, now=now)
        ledger.release_lease(lease, now)


def _severity(cause: Cause) -> Severity:
    return Severity.CRITICAL if cause is Cause.BLIND else Severity.WARNING


# ---------------------------------------------------------------- list


def test_open_alerts_are_listed_the_most_severe_first_with_what_waits_and_mutes(place: Place):
    tell(place, (Cause.LEAK, "aws/us-east-1/i-0abc"), (Cause.BLIND, ""))
    run("mute", KEY, "--for", "2h", "--reason", "a load test", "--config", place.config)

    result = run("alerts", "list", "--config", place.config)

    assert result.exit_code == 0
    shown = result.stdout
    assert shown.index("blind") < shown.index(KEY)
    assert "2 alerts open" in shown
    assert "2 messages not delivered yet" in shown
    assert "a load test" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_long_list_is_cut_unless_all_is_asked_for(place: Place):
    tell(place, *((Cause.LEAK, f"aws/us-east-1/i-{number:017x}") for number in range(30)))

    few, every = (run("alerts", "list", *more, "--config", place.config).stdout for more in ((), ("--all",)))

    assert few.count("leak/aws") == 20
    assert "… 10 more" in few
    assert every.count("leak/aws") == 30


def test_the_json_has_everything_and_the_csv_a_line_for_each_alert(place: Place):
    tell(place, (Cause.LEAK, "aws/us-east-1/i-0abc"), (Cause.BLIND, ""))

    document = json.loads(run("alerts", "list", "--format", "json", "--config", place.config).stdout)
    sheet = run("alerts", "list", "--format", "csv", "--config", place.config).stdout

    assert [alert["key"] for alert in document["alerts"]] == ["blind", KEY]
    assert list(document["alerts"][0]["told"]) == ["hook"]
    assert [(one["channel"], one["attempts"]) for one in document["waiting"]] == [("hook", 0), ("hook", 0)]
    assert [line.split(",")[0] for line in sheet.splitlines()] == ["key", "blind", KEY]


def test_a_hostile_key_does_nothing_to_a_terminal(place: Place):
    tell(place, (Cause.LEAK, "aws/us-east-1/i-\x1b[2J"))

    assert "\x1b" not in run("alerts", "list", "--config", place.config).stdout


def test_nothing_open_is_said_and_is_no_failure(place: Place):
    result = run("alerts", "list", "--config", place.config)

    assert (result.exit_code, result.stdout) == (0, "No alert is open.\n")


def test_without_a_ledger_no_command_makes_one(tmp_path: Path):
    place = Place(tmp_path)
    place.configure()
    words = (
        ("alerts", "list"),
        ("alerts", "flush"),
        ("mute", KEY, "--for", "1h", "--reason", "x"),
        ("unmute", KEY),
    )

    codes = [run(*each, "--config", place.config).exit_code for each in words]

    assert codes == [1, 1, 1, 1]
    assert not place.ledger.exists()


# ---------------------------------------------------------------- test and flush


def test_a_test_says_of_each_channel_whether_it_took_it(place: Place, receiver: Receiver):
    place.configure(more=CHANNEL.format(name="hook", url=receiver.url) + CHANNEL.format(name="dead", url=NOBODY))

    result = run("alerts", "test", "--config", place.config)

    assert result.exit_code == 1
    assert "hook: took it" in result.stdout
    assert "dead: FAILED: http://127.0.0.1:9 cannot be reached" in result.stdout
    event = json.loads(receiver.requests[0].body)
    assert event["type"] == "io.reaperd.alert.test"
    assert "a test, nothing is wrong" in event["data"]["title"]


def test_one_channel_can_be_tried_alone_and_one_that_is_not_there_is_a_mistake(place: Place, receiver: Receiver):
    place.configure(more=CHANNEL.format(name="hook", url=receiver.url) + CHANNEL.format(name="dead", url=NOBODY))

    good = run("alerts", "test", "--channel", "hook", "--config", place.config)
    wrong = run("alerts", "test", "--channel", "hok", "--config", place.config)

    assert (good.exit_code, wrong.exit_code) == (0, 2)
    assert "there are: dead, hook" in wrong.stderr


def test_without_channels_there_is_nothing_to_try(place: Place):
    result = run("alerts", "test", "--config", place.config)

    assert result.exit_code == 1
    assert "[[alerts.channels]]" in result.stderr


def test_a_flush_sends_what_waits_and_says_what_still_does(place: Place, receiver: Receiver):
    place.configure(more=CHANNEL.format(name="hook", url=receiver.url))
    tell(place, (Cause.LEAK, "aws/us-east-1/i-0abc"), (Cause.BLIND, ""))
    receiver.answer(500)
    first = run("alerts", "flush", "--config", place.config)
    receiver.answer(200)

    second = run("alerts", "flush", "--config", place.config)

    assert (first.exit_code, second.exit_code) == (1, 0)
    assert "answers 500" in first.stdout
    assert "2 of 2 delivered" in second.stdout


# ---------------------------------------------------------------- mutes


def test_a_mute_is_kept_with_who_when_and_why_and_shown_in_the_history(place: Place):
    tell(place, (Cause.LEAK, "aws/us-east-1/i-0abc"))

    muted = run("mute", "leak/aws/us-east-1/*", "--for", "7d", "--reason", "a load test", "--config", place.config)
    ended = run("unmute", "leak/aws/us-east-1/*", "--reason", "it is over", "--config", place.config)
    told = run("history", "--kind", "act", "--config", place.config).stdout

    assert (muted.exit_code, ended.exit_code) == (0, 0)
    assert "hides 1 of the alerts" in muted.stdout
    assert [(act, why) for act, _, why in place.acts()] == [("mute", "a load test"), ("unmute", "it is over")]
    assert "MUTE by" in told
    assert "leak/aws/us-east-1/*" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("laek/aws/us-east-1/i-1", "--for", "1h", "--reason", "x"), "no key begins with 'laek'"),
        (("leak/*", "--for", "soon", "--reason", "x"), "is not a duration"),
        (("leak/*", "--for", "0s", "--reason", "x"), "hides nothing"),
        (("leak/*", "--for", "1h", "--reason", " "), "say why"),
        (("leak/*", "--for", "1h"), "--reason"),
        (("leak/*", "--reason", "x"), "--for"),
        (("leak/\x1b", "--for", "1h", "--reason", "x"), "printable"),
    ],
)
def test_a_mute_that_would_hide_nothing_or_for_ever_is_wrong_usage(place: Place, words: tuple[str, ...], said: str):
    result = run("mute", *words, "--config", place.config)

    assert result.exit_code == 2
    assert said in result.stderr
    assert place.acts() == []


@pytest.mark.parametrize("key", ["*", "le*", "leak*", "breaker_open", "leak/aws/us-east-1/i-1"])
def test_a_key_may_be_whole_or_its_beginning(place: Place, key: str):
    assert run("mute", key, "--for", "1h", "--reason", "x", "--config", place.config).exit_code == 0


def test_what_was_not_muted_cannot_be_unmuted(place: Place):
    result = run("unmute", KEY, "--config", place.config)

    assert result.exit_code == 1
    assert "reaperd alerts list" in result.stderr


def test_a_file_of_a_channel_that_cannot_be_read_is_named_when_the_configuration_is_checked(place: Place):
    place.configure(more='[[alerts.channels]]\ntype = "webhook"\nurl_file = "/nowhere/url"\n')

    result = run("check-config", "--config", place.config)

    assert result.exit_code == 0
    assert "alerts.channels.0.url_file: the secret in /nowhere/url cannot be read" in result.stderr


def test_an_address_that_is_none_is_bad_configuration(place: Place):
    place.configure(more=CHANNEL.format(name="hook", url="http://host/\u200b"))

    codes = [run(*words, "--config", place.config).exit_code for words in (("check-config",), ("once",), ("run",))]

    assert codes == [78, 78, 78]
