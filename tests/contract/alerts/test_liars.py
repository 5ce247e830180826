"""The suite catches channels that break a promise."""

import inspect
from contextlib import closing, nullcontext

import pytest

from alerts.conformance import ChannelConformance, Conformance, LevelConformance
from alerts.errors import AlertError
from tests.contract.alerts import liars

FAILS = (
    AssertionError,
    pytest.fail.Exception,
    AlertError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,
    AttributeError,
    Warning,
)
STATUS = {"status": 404}

CAUGHT = {
    liars.Nameless: {"the_name_is_there_and_stable"},
    liars.SpeaksOfNothing: {"nothing_is_nothing"},
    liars.SendsTheFirst: {"each_is_delivered_once_and_in_order", "many_in_a_row_are_delivered_each"},
    liars.SendsTwice: {"each_is_delivered_once_and_in_order", "a_storm_is_one_message"},
    liars.SendsTheLastFirst: {"each_is_delivered_once_and_in_order"},
    liars.ForgetsDigests: {"every_kind_and_every_cause_can_be_told", "a_storm_is_one_message"},
    liars.CapsTheStorm: {"many_in_a_row_are_delivered_each"},
    liars.Swallows: {
        "a_refusal_is_permanent",
        "a_moment_of_weakness_is_not",
        "nobody_there_is_worth_another_try",
        "what_may_be_taken_later_is_not_refused_for_good",
    },
    liars.GivesUpForGood: {
        "a_moment_of_weakness_is_not",
        "a_timeout_is_worth_another_try",
        "nobody_there_is_worth_another_try",
        "what_may_be_taken_later_is_not_refused_for_good",
        "the_quiet_that_is_asked_for_is_told",
    },
    liars.NeverGivesUp: {"a_refusal_is_permanent", "a_redirect_is_not_followed"},
    liars.ForgetsWhatWasTaken: {"a_failure_tells_what_was_taken_before"},
    liars.ClaimsAll: {"a_failure_tells_what_was_taken_before", "a_timeout_is_worth_another_try"},
    liars.NamesTheAddress: {
        "no_secret_is_in_an_error_of_an_answer",
        "no_secret_is_in_an_error_without_an_answer",
    },
    liars.WaitsForEachByte: {"a_slow_receiver_is_given_up_in_time"},
    liars.FollowsRedirects: {"a_redirect_is_not_followed"},
    liars.SendsMarkup: {"hostile_text_harms_nobody"},
    liars.RaisesItsLibrarysErrors: {"what_may_be_taken_later_is_not_refused_for_good"},
    liars.HoldsTheFirst: {"a_storm_is_told_whole"},
    liars.HoldsWhatIsNew: {"everything_that_stands_is_told_each_time"},
    liars.HoldsNothingAloud: {"nothing_is_nothing"},
}
GIVEN = {
    "a_moment_of_weakness_is_not": {"status": 500},
    "the_quiet_that_is_asked_for_is_told": {"status": 503},
    "a_redirect_is_not_followed": {"status": 302},
    "a_slow_receiver_is_given_up_in_time": {"how": "drip"},
}
BY_OTHERS = {"it_is_a_channel"}
"""What a lie about is an error of its own in each test."""


def suite_of(liar) -> type[Conformance]:
    return LevelConformance if issubclass(liar, liars.HoldsThrough) else ChannelConformance


def passes(liar, sentence) -> bool:
    harness = liars.lying(liar)
    suite = suite_of(liar)()
    test = getattr(suite, f"test_{sentence}")
    wanted = inspect.signature(test).parameters
    given = {name: value for name, value in GIVEN.get(sentence, STATUS).items() if name in wanted}
    with closing(harness.receiver) if hasattr(harness, "receiver") else nullcontext():
        try:
            test(harness, **given)
        except FAILS:
            return False
    return True


@pytest.mark.parametrize("liar", CAUGHT, ids=lambda liar: liar.__name__)
def test_a_liar_is_caught(liar):
    passed = {sentence for sentence in CAUGHT[liar] if passes(liar, sentence)}

    assert passed == set()


@pytest.mark.parametrize("suite", [ChannelConformance, LevelConformance], ids=lambda suite: suite.__name__)
def test_there_is_a_liar_for_every_promise(suite):
    promises = {name.removeprefix("test_") for name in dir(suite) if name.startswith("test_")}

    assert promises - set().union(*CAUGHT.values()) - BY_OTHERS == set()
