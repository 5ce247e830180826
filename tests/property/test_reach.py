"""The worlds are rich: every reason really occurs in them, so that no law holds for want of a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from reaperd.core.memory import learn
from reaperd.core.model import KeepReason, Plan, Refusal, RefusalReason, Terminate, TerminateReason
from reaperd.core.reap import decide
from tests.property.strategies import TROUBLES, good_worlds, troubles
from tests.support.worlds import World

EXAMPLES = 300
ROUNDS = 12
"""Two were enough when this was written. What is not met in all of these is hardly ever tried by the laws."""


def happenings(world: World) -> Iterator[str]:
    """Yield what a law could be about in this world."""
    decision = decide(world.seen, world.policy)
    for verdict in decision.verdicts:
        yield verdict.name
        if isinstance(verdict.call, Terminate) and verdict.call.again:
            yield "sent again"
    if isinstance(decision, Refusal):
        yield from (f"refused/{reason}" for reason in (decision.reason, *decision.also))
    if isinstance(decision, Plan) and decision.terminations:
        yield "acted"
    learned = learn(world.seen, world.policy)
    if learned is not None and learned.confirmed_gone:
        yield "confirmed gone"
    listed = {each.ref for each in world.seen.instances}
    if learned is not None and world.seen.memory.intents.keys() - listed - {c.ref for c in learned.confirmed_gone}:
        yield "out of sight"


WANTED = {
    *(f"keep/{reason}" for reason in KeepReason),
    *(f"terminate/{reason}" for reason in TerminateReason),
    *(f"refused/{reason}" for reason in RefusalReason),
    *("sent again", "acted", "confirmed gone", "out of sight"),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_reason_occurs_in_the_worlds_that_are_drawn():
    met: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(good_worlds(), troubles())
    def gather(world: World, name: str) -> None:
        met.update(happenings(world))
        met.update(happenings(TROUBLES[name](world)))

    for number in range(ROUNDS):
        seed(number)(gather)()
        if set(met) >= WANTED:
            break

    assert sorted(WANTED - set(met)) == []
    assert met["acted"] > EXAMPLES / 20
