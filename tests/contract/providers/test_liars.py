"""The suite catches providers that break a promise; there is one at least for every test of the suite."""

import pytest

from providers.conformance import (
    AuditorConformance,
    BatchTerminatorConformance,
    Conformance,
    ExaminerConformance,
    ListerConformance,
    LocatorConformance,
    ProviderConformance,
    TerminatorConformance,
)
from providers.errors import ProviderError
from tests.contract.providers import liars, lying_batches, lying_locators, lying_shops
from tests.contract.providers.fakes import FakeHarness, FakeProviderHarness

SUITES = (
    ListerConformance,
    TerminatorConformance,
    AuditorConformance,
    ExaminerConformance,
    LocatorConformance,
    BatchTerminatorConformance,
    ProviderConformance,
)
FAILS = (AssertionError, pytest.fail.Exception, ProviderError, LookupError, TypeError, ValueError, RuntimeError)

CAUGHT = {
    liars.ReturnsWhatItGot: {"a_broken_scope_breaks_the_listing", "a_listing_that_breaks_off_is_no_listing"},
    liars.ShowsOnlyWhatBroke: {"a_broken_scope_breaks_the_listing", "a_listing_that_breaks_off_is_no_listing"},
    liars.ReadsOnePage: {"all_pages_are_read"},
    liars.ForgetsWorkerless: {"machines_without_a_worker_tag_are_listed_each", "a_blank_worker_tag_is_no_worker"},
    liars.KeysByWorker: {"machines_without_a_worker_tag_are_listed_each"},
    liars.ForgetsStopped: {"a_stopped_machine_is_listed"},
    liars.ClaimsAll: {"the_owner_is_told_as_it_stands_on_the_machine"},
    liars.ProvesNothing: {"an_empty_fleet_is_proved_to_be_empty", "the_coverage_is_the_same_whatever_is_in_it"},
    liars.ReturnsAList: {"an_empty_fleet_is_proved_to_be_empty"},
    liars.CoversWhatItFound: {"an_empty_fleet_is_proved_to_be_empty", "the_coverage_is_the_same_whatever_is_in_it"},
    liars.ForgetsTheRegion: {"what_we_own_is_listed_in_every_scope", "the_coverage_is_the_same_whatever_is_in_it"},
    liars.ReadsTheValueOfProtect: {"a_protect_tag_is_seen_whatever_its_value"},
    liars.BelievesBlankWorkers: {"a_blank_worker_tag_is_no_worker"},
    liars.TellsNaiveTimes: {"times_carry_a_time_zone"},
    liars.RenamesItself: {"the_name_is_there_and_stable"},
    liars.TagsWhatItFinds: {"listing_changes_nothing"},
    liars.CanTerminate: {"the_lister_cannot_terminate"},
    liars.ListsAlone: {"listings_may_run_at_the_same_time"},
    liars.HasAnotherName: {"the_name_is_that_of_the_lister"},
    liars.EndsTheWorker: {"exactly_that_machine_ends"},
    liars.Pretends: {
        "exactly_that_machine_ends",
        "what_was_ended_is_no_longer_listed_as_existing",
        "an_unknown_machine_is_an_error",
        "there_is_no_fallback_to_another_place",
    },
    liars.IsStartledBySecond: {"a_second_request_does_no_harm"},
    liars.TakesNotFoundForSuccess: {"an_unknown_machine_is_an_error"},
    liars.FallsBack: {"there_is_no_fallback_to_another_place"},
    liars.ForgetsWhatWasSeen: {
        "another_worker_than_was_seen_is_spared",
        "another_launch_time_than_was_seen_is_spared",
        "a_machine_that_another_worker_took_is_spared",
    },
    liars.ComparesOnlyTheWorker: {"another_launch_time_than_was_seen_is_spared"},
    liars.NeverLooksAgain: {
        "a_machine_that_was_given_away_is_spared",
        "a_machine_that_was_protected_is_spared",
        "another_worker_than_was_seen_is_spared",
        "nothing_is_sent_for_a_machine_that_is_spared",
    },
    liars.LooksTooLate: {"nothing_is_sent_for_a_machine_that_is_spared"},
    liars.NeverAsks: {
        "what_is_no_longer_permitted_is_spared",
        "permission_is_asked_for_after_the_second_look",
        "a_permission_that_cannot_be_had_is_none",
    },
    liars.AsksTooEarly: {"permission_is_asked_for_after_the_second_look"},
    liars.AsksTooLate: {"nothing_is_sent_without_permission"},
    liars.TakesSilenceForYes: {"a_permission_that_cannot_be_had_is_none"},
    liars.TerminatesAlone: {"terminations_may_run_at_the_same_time"},
    liars.AuditsUnderAnotherName: {"the_name_is_that_of_the_lister"},
    liars.AuditsAndTerminates: {"the_auditor_cannot_terminate"},
    liars.KeepsQuietOnScopes: {"every_scope_is_covered_or_said_to_be_skipped"},
    liars.SeesOnlyOurs: {"what_is_not_ours_is_seen_as_such"},
    liars.SeesOnlyStrangers: {"all_that_is_listed_is_audited_too"},
    liars.AuditsOnePage: {"all_pages_are_read"},
    liars.RaisesOnAHole: {"a_broken_scope_is_told_and_spoils_no_other"},
    liars.GivesUpOnAHole: {"a_broken_scope_is_told_and_spoils_no_other"},
    liars.TagsWhatItAudits: {"auditing_changes_nothing"},
    liars.ExaminesUnderAnotherName: {"the_name_is_that_of_the_lister"},
    liars.ExaminesAndTerminates: {"the_examiner_cannot_terminate"},
    liars.ForgetsAScope: {"every_scope_is_examined"},
    liars.KeepsQuietOnOurs: {"what_is_ours_is_what_the_lister_lists"},
    liars.AsksAboutStrangers: {"only_our_machines_are_asked_about"},
    liars.RaisesOnABrokenScope: {"a_broken_scope_is_told_and_spoils_no_other"},
    liars.TriesItOut: {"examining_ends_no_machine", "examining_changes_nothing"},
    liars.TagsWhatItExamines: {"examining_changes_nothing"},
    lying_locators.LocatesUnderAnotherName: {"the_name_is_that_of_the_lister"},
    lying_locators.LocatesAndTerminates: {"the_locator_cannot_terminate"},
    lying_locators.TakesAllForGone: {"a_machine_that_is_there_is_there", "a_stopped_machine_is_there"},
    lying_locators.SpeaksOfOthers: {"nobody_is_asked_for_nothing"},
    lying_locators.LooksByTheTag: {
        "a_machine_that_lost_its_tags_is_there",
        "a_machine_that_was_given_away_is_there_under_its_new_owner",
        "a_place_that_is_not_covered_is_not_known",
    },
    lying_locators.ClaimsWhatItFinds: {
        "a_machine_that_lost_its_tags_is_there",
        "a_machine_that_was_given_away_is_there_under_its_new_owner",
    },
    lying_locators.TakesStoppedForGone: {"a_stopped_machine_is_there"},
    lying_locators.NeverSaysGone: {
        "a_machine_that_there_is_not_is_gone",
        "each_machine_is_answered_for_by_itself",
    },
    lying_locators.SeesTheDead: {"a_machine_that_was_ended_does_not_exist", "a_machine_that_there_is_not_is_gone"},
    lying_locators.GivesUpOnOneBadId: {"each_machine_is_answered_for_by_itself"},
    lying_locators.TakesSilenceForGone: {
        "a_place_that_is_not_covered_is_not_known",
        "what_cannot_be_known_is_not_known_and_spoils_no_other",
    },
    lying_locators.FallsBackToAnotherPlace: {"a_place_that_is_not_covered_is_not_known"},
    lying_locators.RaisesWhatItDoesNotKnow: {
        "a_place_that_is_not_covered_is_not_known",
        "what_cannot_be_known_is_not_known_and_spoils_no_other",
    },
    lying_locators.TagsWhatItLocates: {"locating_changes_nothing"},
    lying_locators.LocatesAlone: {"machines_may_be_located_at_the_same_time"},
    lying_batches.BatchesUnderAnotherName: {"it_can_end_several_under_the_name_of_the_lister"},
    lying_batches.EndsAnyNumberAnywhere: {"it_says_how_many_may_go_together_and_how_fast"},
    lying_batches.EndsTheWorkers: {"exactly_those_machines_end"},
    lying_batches.PretendsToEndMany: {
        "exactly_those_machines_end",
        "what_was_ended_is_no_longer_listed_as_existing",
        "every_machine_has_an_answer_of_its_own",
        "there_is_no_fallback_to_another_place",
    },
    lying_batches.AsksForNobody: {"of_no_machines_nothing_is_asked"},
    lying_batches.ForgetsTheRefused: {"a_second_request_does_no_harm", "there_is_no_fallback_to_another_place"},
    lying_batches.TakesThemAllForOne: {"every_machine_has_an_answer_of_its_own"},
    lying_batches.TakesTheChangedForEnded: {"what_is_not_a_yes_is_never_told_as_one"},
    lying_batches.IsSpoiledForGood: {"every_machine_has_an_answer_of_its_own"},
    lying_batches.FallsBackForMany: {"there_is_no_fallback_to_another_place"},
    lying_batches.TakesWhatItCan: {"what_cannot_be_one_request_is_refused_whole"},
    lying_batches.ForgetsWhatManyWere: {
        "one_of_another_worker_than_was_seen_is_spared",
        "one_of_another_launch_time_than_was_seen_is_spared",
        "one_that_another_worker_took_is_spared",
    },
    lying_batches.ComparesOnlyTheWorkers: {"one_of_another_launch_time_than_was_seen_is_spared"},
    lying_batches.LooksAtNobodyAgain: {
        "one_that_was_given_away_is_spared",
        "one_that_was_protected_is_spared",
        "one_of_another_worker_than_was_seen_is_spared",
        "permission_is_asked_after_the_look_and_for_exactly_those_that_would_be_named",
    },
    lying_batches.AsksAboutNobody: {
        "those_without_permission_are_spared",
        "permission_is_asked_after_the_look_and_for_exactly_those_that_would_be_named",
        "a_permission_that_cannot_be_had_is_none",
    },
    lying_batches.AsksAboutAllTooEarly: {
        "permission_is_asked_after_the_look_and_for_exactly_those_that_would_be_named"
    },
    lying_batches.TakesTheirSilenceForYes: {"a_permission_that_cannot_be_had_is_none"},
    lying_batches.PreparesBeforeItAsks: {"nothing_is_sent_without_permission"},
    lying_batches.EndsWhateverIsAnswered: {"permission_for_others_than_were_asked_about_is_none"},
    lying_batches.BatchesAlone: {"batches_may_go_at_the_same_time"},
    lying_shops.ShopsUnderAnotherName: {"it_is_a_whole_provider"},
    lying_shops.OffersNothing: {"offers_can_be_compared_and_launched_onto"},
    lying_shops.TellsFloats: {"offers_can_be_compared_and_launched_onto"},
    lying_shops.GivesThemAway: {"offers_can_be_compared_and_launched_onto"},
    lying_shops.IgnoresTypes: {"a_type_that_the_cloud_does_not_have_is_no_offer_and_no_error"},
    lying_shops.KnowsEveryType: {"a_type_that_the_cloud_does_not_have_is_no_offer_and_no_error"},
    lying_shops.IgnoresTheRegion: {"only_the_region_that_is_asked_for_is_quoted"},
    lying_shops.TagsWhatItQuotes: {"quoting_changes_nothing"},
    lying_shops.ForgetsTheSpec: {"a_handle_carries_all_that_was_given_and_what_the_cloud_said"},
    lying_shops.LaunchesAtNaiveTimes: {"a_handle_carries_all_that_was_given_and_what_the_cloud_said"},
    lying_shops.TagsLater: {"what_was_launched_is_listed_as_ours"},
    lying_shops.ForgetsTheModel: {"what_was_launched_is_listed_as_ours"},
    lying_shops.HasNoToken: {
        "the_same_worker_never_has_two_machines",
        "a_worker_that_is_launched_differently_has_no_second_machine",
        "launches_of_one_worker_at_the_same_time_give_one_machine",
    },
    lying_shops.HasATokenAnOffer: {"a_worker_that_is_launched_differently_has_no_second_machine"},
    lying_shops.LooksAndThenLaunches: {"launches_of_one_worker_at_the_same_time_give_one_machine"},
    lying_shops.LaunchesAlone: {"launches_may_run_at_the_same_time"},
    lying_shops.TakesAnyWorker: {"a_launch_without_a_worker_is_refused"},
    lying_shops.LaunchesWhereItIs: {"an_offer_of_another_place_is_refused"},
    lying_shops.SaysNoInOneWord: {"a_cloud_without_capacity_says_so"},
    lying_shops.TakesSilenceForNoCapacity: {"a_lost_answer_is_not_taken_for_a_refusal"},
    lying_shops.SaysThatItEnds: {"what_was_launched_can_be_ended"},
    lying_shops.IsStartledByTheSecond: {"ending_it_twice_does_no_harm"},
    lying_shops.StartsTheEndedAgain: {"a_worker_that_was_ended_gets_no_second_machine"},
    lying_shops.EndsWhatHasNoName: {"a_machine_without_an_id_cannot_be_ended"},
    lying_shops.EndsWithoutLeave: {"an_end_that_is_no_longer_permitted_does_not_come"},
    lying_shops.ListsWhatItLaunched: {"it_lists_what_its_lister_lists"},
    lying_shops.ListsWhatItGot: {"a_listing_that_is_not_whole_is_none"},
    lying_shops.AuditsWhatIsNotOurs: {"what_was_launched_is_audited_if_there_is_an_audit"},
}
PORTS = {
    **liars.PORTS,
    "locator": lying_locators.LocatesThrough,
    "batches": lying_batches.BatchesThrough,
    "provider": lying_shops.ShopsThrough,
}
METHODS = {"batches": "terminator"}
"""What of the harness gives an object of that port, if it is not called the same."""


def suite_of(liar) -> type[Conformance]:
    return next(suite for suite, base in zip(SUITES, PORTS.values(), strict=True) if issubclass(liar, base))


def lying(liar) -> FakeHarness:
    """Return a new harness with a liar in the place of what it pretends to be."""
    harness = FakeProviderHarness()
    port = next(port for port, base in PORTS.items() if issubclass(liar, base))
    method = METHODS.get(port, port)
    pretender = liar(harness, getattr(harness, method)())
    setattr(harness, method, lambda: pretender)
    return harness


def sentences(suite) -> set[str]:
    return {name.removeprefix("test_") for name in vars(suite) if name.startswith("test_")}


def passes(suite, sentence, harness) -> bool:
    try:
        getattr(suite(), f"test_{sentence}")(harness)
    except FAILS:
        return False
    return True


@pytest.mark.parametrize("liar", CAUGHT, ids=lambda liar: liar.__name__)
def test_a_liar_is_caught(liar):
    passed = {sentence for sentence in CAUGHT[liar] if passes(suite_of(liar), sentence, lying(liar))}

    assert passed == set()


@pytest.mark.parametrize("liar", [*PORTS.values()])
def test_what_only_passes_everything_through_is_no_liar(liar):
    suite = suite_of(liar)

    failed = {sentence for sentence in sentences(suite) if not passes(suite, sentence, lying(liar))}

    assert failed == set()


@pytest.mark.parametrize("suite", SUITES)
def test_every_sentence_of_the_suite_catches_somebody(suite):
    caught = {sentence for liar, found in CAUGHT.items() if suite_of(liar) is suite for sentence in found}

    assert caught == sentences(suite)


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_without_a_harness_does_not_pass(suite):
    with pytest.raises(NotImplementedError):
        suite.harness._fixture_function(suite())


def test_an_ability_that_is_neither_there_nor_declared_to_be_lacking_fails():
    members = {name: member for name, member in vars(FakeHarness).items() if name != "stop"}
    harness = type("Unable", (), members)()

    assert not passes(ListerConformance, "a_stopped_machine_is_listed", harness)
