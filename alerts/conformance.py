"""The promises of the ports of `alerts.base`, as tests that any channel can be put to.

Derive a class, and give it a harness (`alerts.harness`) around your channel and a receiver that your test controls:

    import pytest
    from alerts import harness
    from alerts.conformance import ChannelConformance

    class TestPager(ChannelConformance):
        # What the harness cannot do must be said; the tests that need it are skipped.
        lacks = (harness.Answers, harness.Vanishes, harness.Hangs, harness.Secret)

        @pytest.fixture
        def harness(self):
            return PagerHarness()

An ability that is neither there nor in `lacks` is a failure, so that nothing is skipped unseen. For readable failures
put `pytest.register_assert_rewrite("alerts.conformance")` in a conftest.
"""

# The abilities are Protocols, and are asked for by type.
# mypy: disable-error-code="type-abstract"

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, TypeVar

import pytest

from alerts.base import Channel
from alerts.errors import DeliveryError
from alerts.harness import Answers, ChannelHarness, Fails, Hangs, LevelHarness, Secret, Vanishes
from alerts.model import Cause, Condition, Digest, Kind, Level, Notice, Notification, Severity, Standing, Tally

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
MANY = 3_000
HOSTILE = (
    "<script>alert(1)</script>",
    "*bold* _it_ ~no~ `code` @channel <!here> <@U123> @everyone",
    "[click](https://evil.example) {{ .Labels }} ${HOME} %s %(x)s",
    "two\nlines\r\nand\x00\x1b[2Jmore",
    "\u202egnp.exe\u2066\u200b\ufeff\U000e0041",
    "\ud800 half a pair",
    "x" * 10_000,
)
"""What people have called machines, or could."""
ACTIVE = (
    "<script",
    "@channel",
    "<!here",
    "<@u",
    "@everyone",
    "](http",
    "https://evil",
    "\x00",
    "\x1b",
    "\u202e",
    "\u200b",
)
"""What of it must not reach a person as it is, unless a suite says that its receivers act on less."""
_GRACE = 2.0
"""Seconds for a slow machine, on top of the channel's timeout."""

Ability = TypeVar("Ability")


def firing(number: int = 1, *, name: str = "web-1") -> Notice:
    """Return a new alert."""
    condition = Condition(
        cause=Cause.LEAK,
        subject=f"aws/us-east-1/i-{number}",
        severity=Severity.WARNING,
        data={"name": name, "age_seconds": 90_000, "near_miss_tag": None},
    )
    return Notice(id=f"id-{number}", kind=Kind.FIRING, at=NOW, condition=condition, since=NOW)


def every_kind() -> tuple[Notification, ...]:
    """Return one notification of each kind, and one of each cause."""
    kinds = [kind for kind in Kind if kind is not Kind.DIGEST]
    causes = (replace(firing(50 + n), condition=_whole(cause)) for n, cause in enumerate(Cause))
    return (*(replace(firing(n), kind=kind) for n, kind in enumerate(kinds, start=1)), digest(5), *causes)


def digest(total: int) -> Digest:
    """Return a storm as one."""
    return Digest(
        id=f"id-digest-{total}",
        of=Kind.FIRING,
        at=NOW,
        severity=Severity.CRITICAL,
        tallies=(Tally(cause=Cause.LEAK, scope="aws/us-east-1", count=total),),
        first=tuple(firing(number) for number in range(min(total, 10))),
    )


class Conformance:
    """What the suites share."""

    lacks: ClassVar[tuple[type, ...]] = ()
    """The abilities, of `alerts.harness`, that the harness does not have."""
    acted_on: ClassVar[tuple[str, ...]] = ACTIVE
    """What the receivers would act on."""

    def ability(self, harness: object, wanted: type[Ability]) -> Ability:
        """Return the harness as what it is able to do; skip the test if that was declared to be lacking."""
        if wanted in self.lacks:
            pytest.skip(f"the harness lacks {wanted.__name__}")
        assert isinstance(harness, wanted), f"the harness has no {wanted.__name__}, and does not say so in `lacks`"
        return harness

    def deliver(self, harness: object, count: int = 1) -> None:
        """Let the channel deliver so many alerts."""
        raise NotImplementedError

    def failure(self, harness: object, count: int = 1) -> DeliveryError:
        """Return the error of a delivery that must fail."""
        with pytest.raises(DeliveryError) as caught:
            self.deliver(harness, count)
        assert str(caught.value).isprintable(), "an error must be one line that a terminal may show"
        return caught.value

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
    def test_a_refusal_is_permanent(self, harness: ChannelHarness | LevelHarness, status: int) -> None:
        """The same request will not pass."""
        self.ability(harness, Answers).answer(status)
        assert self.failure(harness).permanent

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
    def test_a_moment_of_weakness_is_not(self, harness: ChannelHarness | LevelHarness, status: int) -> None:
        """It is worth another try."""
        self.ability(harness, Answers).answer(status)
        assert not self.failure(harness).permanent

    @pytest.mark.parametrize("status", [429, 503])
    def test_the_quiet_that_is_asked_for_is_told(self, harness: ChannelHarness | LevelHarness, status: int) -> None:
        """Whoever retries has to know."""
        self.ability(harness, Answers).answer(status, headers=[("Retry-After", "120")])
        assert self.failure(harness).retry_after == timedelta(minutes=2)

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    def test_a_redirect_is_not_followed(self, harness: ChannelHarness | LevelHarness, status: int) -> None:
        """An alert goes where the operator wants it, and a redirect is no success."""
        self.ability(harness, Answers).answer(status, headers=[("Location", "http://192.0.2.1/elsewhere")])
        assert self.failure(harness).permanent
        assert len(harness.received()) == 1

    def test_what_may_be_taken_later_is_not_refused_for_good(self, harness: ChannelHarness | LevelHarness) -> None:
        """Of a failure that nobody explains, nobody knows that it will last."""
        self.ability(harness, Fails).fail()
        assert not self.failure(harness).permanent

    def test_nobody_there_is_worth_another_try(self, harness: ChannelHarness | LevelHarness) -> None:
        """Receivers are restarted."""
        self.ability(harness, Vanishes).vanish()
        assert not self.failure(harness).permanent

    @pytest.mark.parametrize("how", ["hang", "drip"])
    def test_a_slow_receiver_is_given_up_in_time(self, harness: ChannelHarness | LevelHarness, how: str) -> None:
        """A byte now and then buys it no more time than silence does."""
        slow = self.ability(harness, Hangs)
        (slow.hang if how == "hang" else slow.drip)()
        took = _seconds_of(lambda: self.failure(harness))
        assert took < slow.timeout.total_seconds() + _GRACE

    def test_a_timeout_is_worth_another_try(self, harness: ChannelHarness | LevelHarness) -> None:
        """Whether it was taken is not known, so it is sent again."""
        self.ability(harness, Hangs).hang()
        error = self.failure(harness)
        assert (error.permanent, error.delivered) == (False, ())

    @pytest.mark.parametrize("status", [302, 404, 500])
    def test_no_secret_is_in_an_error_of_an_answer(self, harness: ChannelHarness | LevelHarness, status: int) -> None:
        """Not even if the receiver repeats what it was asked."""
        secrets, answers = self.ability(harness, Secret).secrets, self.ability(harness, Answers)
        echo = " ".join(secrets)
        answers.answer(status, headers=[("Location", f"/{echo}")], text=f"cannot POST {echo}")
        assert _leaked(self.failure(harness), secrets) == []

    def test_no_secret_is_in_an_error_without_an_answer(self, harness: ChannelHarness | LevelHarness) -> None:
        """Libraries like to name the whole address."""
        secrets = self.ability(harness, Secret).secrets
        self.ability(harness, Vanishes).vanish()
        assert _leaked(self.failure(harness), secrets) == []


class ChannelConformance(Conformance):
    """The promises of `Channel`."""

    @pytest.fixture
    def harness(self) -> ChannelHarness:
        """Return a harness whose receiver has got nothing."""
        raise NotImplementedError

    def deliver(self, harness: object, count: int = 1) -> None:
        """Let the channel deliver so many alerts."""
        channel: Channel = harness.channel()  # type: ignore[attr-defined]
        channel.send([firing(number) for number in range(1, count + 1)])

    def test_the_name_is_there_and_stable(self, harness: ChannelHarness) -> None:
        """Metrics and the outbox use it."""
        assert harness.channel().name
        assert harness.channel().name == harness.channel().name

    def test_it_is_a_channel(self, harness: ChannelHarness) -> None:
        """It has the methods of the port."""
        assert isinstance(harness.channel(), Channel)

    def test_nothing_is_nothing(self, harness: ChannelHarness) -> None:
        """No message is sent that says nothing."""
        harness.channel().send([])
        assert harness.received() == []

    def test_each_is_delivered_once_and_in_order(self, harness: ChannelHarness) -> None:
        """And says which machine it is about."""
        harness.channel().send([firing(1), firing(2), firing(3)])
        got = harness.received()
        assert ["i-1" in got[0], "i-2" in got[1], "i-3" in got[2], len(got)] == [True, True, True, 3]

    def test_every_kind_and_every_cause_can_be_told(self, harness: ChannelHarness) -> None:
        """None of them is forgotten in a table."""
        harness.channel().send(every_kind())
        assert len(harness.received()) == len(every_kind())

    def test_a_storm_is_one_message(self, harness: ChannelHarness) -> None:
        """That says how many there are."""
        harness.channel().send([digest(MANY)])
        (got,) = harness.received()
        assert str(MANY) in got

    def test_many_in_a_row_are_delivered_each(self, harness: ChannelHarness) -> None:
        """Nothing is left out to save room."""
        harness.channel().send([firing(number) for number in range(200)])
        assert len(harness.received()) == 200

    def test_hostile_text_harms_nobody(self, harness: ChannelHarness) -> None:
        """It is delivered, and it is text."""
        harness.channel().send([firing(number, name=name) for number, name in enumerate(HOSTILE)])
        got = harness.received()
        assert len(got) == len(HOSTILE)
        assert [active for active in self.acted_on if any(active in text.lower() for text in got)] == []
        assert max(len(text) for text in got) < 8_000

    def test_a_failure_tells_what_was_taken_before(self, harness: ChannelHarness) -> None:
        """It need not be sent again."""
        self.ability(harness, Answers).answer(500, after=2)
        error = self.failure(harness, 4)
        assert error.delivered == ("id-1", "id-2")
        assert len(harness.received()) == 3


class LevelConformance(Conformance):
    """The promises of `LevelChannel`."""

    @pytest.fixture
    def harness(self) -> LevelHarness:
        """Return a harness whose receiver has got nothing."""
        raise NotImplementedError

    def deliver(self, harness: object, count: int = 1) -> None:
        """Let the channel hold so many alerts."""
        harness.channel().hold(level(count))  # type: ignore[attr-defined]

    def test_nothing_is_nothing(self, harness: LevelHarness) -> None:
        """No request is sent that says nothing."""
        harness.channel().hold(level(0))
        assert harness.received() == []

    def test_everything_that_stands_is_told_each_time(self, harness: LevelHarness) -> None:
        """The receiver keeps track."""
        for _ in range(2):
            harness.channel().hold(level(3))
        assert [sum(f'"i-{n}"' in text for text in harness.received()) for n in range(3)] == [2, 2, 2]

    def test_a_storm_is_told_whole(self, harness: LevelHarness) -> None:
        """Grouping is the receiver's work."""
        harness.channel().hold(level(MANY))
        assert len(harness.received()) == MANY

    def test_hostile_text_harms_nobody(self, harness: LevelHarness) -> None:
        """It is delivered, and it is text."""
        standing = [Standing(condition=firing(n, name=name).condition, since=NOW) for n, name in enumerate(HOSTILE)]
        harness.channel().hold(replace(level(0), standing=tuple(standing)))
        got = harness.received()
        assert len(got) == len(HOSTILE)
        assert [active for active in self.acted_on if any(active in text.lower() for text in got)] == []


def level(count: int) -> Level:
    """Return so many alerts that stand."""
    standing = tuple(Standing(condition=firing(number).condition, since=NOW) for number in range(count))
    return Level(at=NOW, until=NOW + timedelta(minutes=45), standing=standing)


def _whole(cause: Cause) -> Condition:
    return Condition(cause=cause, severity=Severity.CRITICAL, data={"detail": "aws/us-east-1"})


def _leaked(error: DeliveryError, secrets: Collection[str]) -> list[str]:
    """Return the secrets that the error shows, with all that led to it: a traceback is logged, too."""
    shown = "".join(traceback.format_exception(error))
    return [secret for secret in secrets if secret in shown]


def _seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()  # noqa: TID251 - real receivers, real time
    work()
    return time.monotonic() - began  # noqa: TID251
