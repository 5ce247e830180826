"""The promises, proved with one machine: an honest cloud keeps them, each liar is found out, and nothing is left."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.errors import CapacityError
from providers.fake import FakeProvider, ListingFault
from providers.proving import LAUNCH, Trial, Verdict, offers_to_try, prove
from tests.contract.providers import lying_shops
from tests.contract.providers.fakes import NO_ANSWER, FakeProviderHarness

FULL = CapacityError("InsufficientInstanceCapacity", "none is free", "north")


@pytest.fixture
def harness() -> FakeProviderHarness:
    return FakeProviderHarness()


def trial(harness, provider=None) -> Trial:
    shop = provider or harness.provider()
    return Trial(
        provider=shop,
        owner=harness.owner,
        spec=harness.spec,
        offers=offers_to_try(harness.provider(), harness.wanted),
        clock=harness.clock,
        patience=timedelta(minutes=3),
    )


def found(harness, provider=None) -> dict[str, Verdict]:
    return {proof.promise: proof.verdict for proof in prove(trial(harness, provider))}


def broken(verdicts) -> set[str]:
    return {promise for promise, verdict in verdicts.items() if verdict is Verdict.BROKEN}


def test_an_honest_provider_keeps_all_and_nothing_is_left(harness):
    harness.add_owned(harness.scopes[0], worker_id=None)
    before = harness.clouds[0].live

    verdicts = found(harness)

    assert set(verdicts.values()) == {Verdict.KEPT}
    assert harness.clouds[0].live == before
    assert sum(m.operation == "launch" for m in harness.clouds[0].mutations) == 1


def test_the_cheapest_that_has_capacity_is_launched_and_no_other(harness):
    shop = harness.provider()
    shop.launch_err = lambda offer: FULL if offer.instance_type == "small" else None

    found(harness, shop)

    (handle,) = harness.clouds[0].launches.within(("north", "south"))
    assert handle.offer.instance_type == "large"


@pytest.mark.parametrize(
    ("liar", "promise"),
    [
        (lying_shops.IgnoresTypes, "a type that it does not have is no offer and no error"),
        (lying_shops.KnowsEveryType, "a type that it does not have is no offer and no error"),
        (lying_shops.ForgetsTheSpec, LAUNCH),
        (lying_shops.LaunchesAtNaiveTimes, LAUNCH),
        (lying_shops.HasNoToken, "the same worker has one machine"),
        (lying_shops.ForgetsTheModel, "what was launched is listed as ours"),
        (lying_shops.AuditsWhatIsNotOurs, "what is listed is audited"),
        (lying_shops.EndsWhatHasNoName, "a machine without an id cannot be ended"),
        (lying_shops.EndsWithoutLeave, "what is no longer permitted is spared"),
        (lying_shops.EndsWithoutLeave, "another worker than was seen is spared"),
        (lying_shops.SaysThatItEnds, "what was launched can be ended, and is then gone"),
        (lying_shops.SaysThatItEnds, "another place than its own is refused"),
        (lying_shops.SaysThatItEnds, "nothing is left behind"),
        (lying_shops.IsStartledByTheSecond, "ending it twice does no harm"),
        (lying_shops.StartsTheEndedAgain, "a worker that was ended gets no second machine"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_liar_is_found_out(harness, liar, promise):
    assert promise in broken(found(harness, liar(harness, harness.provider())))


@pytest.mark.parametrize(
    "liar",
    [
        lying_shops.HasNoToken,
        lying_shops.StartsTheEndedAgain,
        lying_shops.EndsWithoutLeave,
        lying_shops.ForgetsTheModel,
    ],
)
def test_whatever_was_found_every_machine_of_the_run_is_ended(harness, liar):
    found(harness, liar(harness, harness.provider()))

    assert harness.clouds[0].live == ()


def test_without_capacity_what_needs_a_machine_is_not_tried(harness):
    shop = harness.provider()
    shop.launch_err = lambda _: FULL

    verdicts = found(harness, shop)

    assert verdicts[LAUNCH] is Verdict.NOT_TRIED
    assert verdicts["what was launched can be ended, and is then gone"] is Verdict.NOT_TRIED
    assert broken(verdicts) == set()


def test_a_launch_whose_answer_is_lost_is_ended_too(harness):
    shop = harness.provider()
    shop.on_launch = harness.lose

    verdicts = found(harness, shop)

    assert LAUNCH in broken(verdicts)
    assert verdicts["nothing is left behind"] is Verdict.KEPT
    assert harness.clouds[0].live == ()


def test_a_launch_that_nobody_saw_again_is_told(harness):
    shop = harness.provider()
    shop.launch_err = lambda _: NO_ANSWER

    assert "nothing is left behind" in broken(found(harness, shop))


def test_a_cloud_that_can_no_longer_be_listed_is_told_and_the_machine_ended(harness):
    shop = harness.provider()
    shop.on_launch = lambda _: harness.clouds[0].fail_listing("north", ListingFault(error_code="down"))

    verdicts = found(harness, shop)

    assert "nothing is left behind" in broken(verdicts)
    assert harness.clouds[0].live == ()


def test_whoever_stops_watching_leaves_no_machine(harness):
    proofs = prove(trial(harness))
    for proof in proofs:
        if proof.promise == LAUNCH:
            break

    proofs.close()

    assert harness.clouds[0].live == ()


def test_a_provider_that_cannot_audit_is_not_blamed(harness):
    plain = FakeProvider(harness.clouds[0])
    plain.set_offers("llama", harness.provider().quote(harness.wanted))

    verdicts = found(harness, plain)

    assert verdicts["what is listed is audited"] is Verdict.NOT_TRIED
    assert broken(verdicts) == set()
