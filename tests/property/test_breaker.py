"""The breaker lets all go or none, exactly on its limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from itertools import product

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from providers.model import Scope
from reaperd.core.model import Approval, BreakerLimits, Memory, OutcomeKind, Plan, Refusal, RefusalReason
from reaperd.core.reap import decide
from registry.model import WorkerState
from tests.property import oracle
from tests.property.strategies import good_worlds, limits
from tests.support.worlds import (
    EAST,
    HOUR,
    MINUTE,
    NOW,
    SCOPES,
    SECOND,
    WIDE,
    World,
    intent,
    look,
    machine,
    policy,
    row,
    sighting,
)


def opens(world: World) -> bool:
    decision = decide(world.seen, world.policy)
    return isinstance(decision, Refusal) and decision.reason is RefusalReason.BREAKER_OPEN


@given(good_worlds(), limits)
def test_all_go_or_none(world: World, drawn: BreakerLimits):
    free = {ref for ref, (call, _, _) in oracle.fates_of(world).items() if call == "terminate"}
    limited = world.wishing(breaker=drawn)

    decision = decide(limited.seen, limited.policy)

    event(f"{len(free)} candidates, {type(decision).__name__}")
    gone = {str(v.ref) for v in decision.terminations} if isinstance(decision, Plan) else set()
    assert gone in (free, set())


@given(good_worlds(), limits)
def test_it_opens_exactly_when_the_rules_say(world: World, drawn: BreakerLimits):
    limited = world.wishing(breaker=drawn)

    if oracle.standing(limited):
        assert not opens(limited)
    else:
        assert opens(limited) == oracle.breaker_opens(limited)


KINDS = ("orphan", "retired", "tracked", "protected", "retired, but its own row vanished")
REQUESTS = ("never", "long ago", "before it was tracked")


@dataclass(frozen=True, slots=True)
class Part:
    """One machine of a plan: what it is, when its end was requested, and whether a person approved it."""

    kind: str
    asked: str
    approved: bool
    at: Scope


SENT = tuple(NOW - ago for ago in (MINUTE, HOUR - SECOND, HOUR, HOUR + MINUTE))
PARTS = tuple(Part(*each) for each in product(KINDS, REQUESTS, (False, True), SCOPES))


@st.composite
def plans(draw: st.DrawFn) -> World:
    """Draw a plan of many machines, and limits close to its numbers."""
    parts = draw(st.lists(st.sampled_from(PARTS), min_size=2, max_size=12))
    machines, rows, known, asked = [], [], {}, {}
    for number, part in enumerate(parts):
        each = machine(f"i-{number}", worker=f"w-{number}", at=part.at, protect=part.kind == "protected")
        machines.append(each)
        if part.kind in {"retired", "tracked"}:
            state = WorkerState.RUNNING if part.kind == "tracked" else WorkerState.FAILED
            rows.append(row(f"w-{number}", f"i-{number}", at=part.at, state=state))
        if part.kind == "retired, but its own row vanished":
            rows.append(row(f"old-{number}", f"i-{number}", at=part.at, state=WorkerState.FAILED))
            known[each.ref] = sighting(tracked_at=NOW - 3 * HOUR, tracked_by=f"w-{number}")
        if part.asked != "never":
            asked[each.ref] = intent(OutcomeKind.FAILED, HOUR, each.ref)
        if part.asked == "before it was tracked":
            known[each.ref] = sighting(tracked_at=NOW - MINUTE, tracked_by=f"w-{number}")
    refs = frozenset(each.ref for each, part in zip(machines, parts, strict=True) if part.approved)
    remembered = Memory(
        sightings=known,
        intents=asked,
        requests=tuple(draw(st.lists(st.sampled_from(SENT), max_size=4))),
        approvals=(Approval(digest="sha256:a", refs=refs, expires_at=NOW + HOUR),),
    )
    breaker = draw(limits)
    if draw(st.booleans()):
        # So that the share alone decides.
        breaker = replace(breaker, max_per_pass=99, max_per_hour=99)
    wishes = policy(vanish_grace=timedelta(0), breaker=breaker)
    return World(look(machines, rows, memory=remembered), wishes)


@settings(max_examples=4 * settings.default.max_examples)
@given(plans())
def test_every_kind_of_machine_counts_as_the_rules_say(world: World):
    decision = decide(world.seen, world.policy)

    event(type(decision).__name__)
    assert {str(v.ref): v.terminates for v in decision.verdicts} == {
        ref: call == "terminate" for ref, (call, _, _) in oracle.fates_of(world).items()
    }
    assert opens(world) == oracle.breaker_opens(world)


def plain(lost: int, tracked: int, past: int, breaker: BreakerLimits) -> World:
    """Return a fleet of one region: so many orphans, so many tracked, so many requests in the last hour."""
    orphans = [machine(f"i-o{n}", worker=f"w-o{n}", at=EAST) for n in range(lost)]
    kept = [machine(f"i-t{n}", worker=f"w-t{n}", at=EAST) for n in range(tracked)]
    rows = [row(f"w-t{n}", f"i-t{n}", at=EAST) for n in range(tracked)]
    remembered = Memory(requests=tuple(NOW - n * SECOND for n in range(past)))
    return World(look([*orphans, *kept], rows, memory=remembered), policy(breaker=breaker))


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int, BreakerLimits]:
    """Draw a number of orphans, of tracked machines and of past requests, and limits close to them."""
    lost, tracked, past = draw(st.integers(0, 12)), draw(st.integers(0, 12)), draw(st.integers(0, 12))
    near = st.integers(-1, 1)
    breaker = BreakerLimits(
        max_per_pass=max(0, lost + draw(near)),
        max_per_hour=max(0, lost + past + draw(near)),
        max_fraction=draw(
            st.one_of(st.integers(0, 100).map(lambda n: n / 100), st.just(lost / max(lost + tracked, 1)))
        ),
        fraction_from=max(1, lost + tracked + draw(near)),
    )
    return lost, tracked, past, breaker


@given(counts())
def test_each_limit_is_exact(drawn: tuple[int, int, int, BreakerLimits]):
    lost, tracked, past, breaker = drawn

    opened = opens(plain(lost, tracked, past, breaker))

    share = Fraction(lost, lost + tracked) if lost + tracked else Fraction(0)
    limit = Fraction(breaker.max_fraction).limit_denominator(1000)
    over_share = lost + tracked >= breaker.fraction_from and share > limit
    over_numbers = lost > breaker.max_per_pass or past + lost > breaker.max_per_hour
    assert opened == (lost > 0 and (over_numbers or over_share or limit == 0))


@given(good_worlds(), limits, st.data())
def test_an_approval_exempts_exactly_its_machines(world: World, drawn: BreakerLimits, data: st.DataObject):
    assume(drawn.max_per_pass > 0 and drawn.max_per_hour > 0 and drawn.max_fraction > 0)
    world = world.wishing(breaker=drawn)
    fates = oracle.fates_of(world)
    candidates = sorted(
        each.ref
        for each in world.seen.instances
        if fates.get(str(each.ref), ("",))[0] == "terminate" and not fates[str(each.ref)][2]
    )
    approved = frozenset(ref for ref in candidates if data.draw(st.booleans(), label=f"approve {ref}"))
    approval = Approval(digest="sha256:a", refs=approved, expires_at=NOW + HOUR)
    with_it = world.remembering(approvals=(approval,))
    never_seen = world.but(
        instances=tuple(each for each in world.seen.instances if each.ref not in approved)
    ).remembering(approvals=())

    # A machine that is approved counts as if it were not there, unless others are judged by its being there.
    event(f"{len(approved)} of {len(candidates)} approved")
    if not oracle.standing(world):
        assert opens(with_it) == oracle.breaker_opens(with_it)
        if oracle.fates_of(never_seen) == {ref: f for ref, f in fates.items() if ref not in set(map(str, approved))}:
            assert oracle.standing(never_seen) or opens(with_it) == opens(never_seen)
    if approved == frozenset(candidates):
        assert not opens(with_it)


@given(good_worlds(), limits)
def test_an_approval_that_has_expired_exempts_nobody(world: World, drawn: BreakerLimits):
    everything = frozenset(each.ref for each in world.seen.instances)
    expired = Approval(digest="sha256:a", refs=everything, expires_at=NOW)
    world = world.wishing(breaker=drawn).remembering(approvals=())

    assert opens(world.remembering(approvals=(expired,))) == opens(world)


NEVER = (replace(WIDE, max_per_pass=0), replace(WIDE, max_per_hour=0), replace(WIDE, max_fraction=0))


@given(good_worlds(), st.sampled_from(NEVER))
def test_a_limit_of_zero_means_never(world: World, never: BreakerLimits):
    closed = world.wishing(breaker=never)

    decision = decide(closed.seen, closed.policy)

    assert not isinstance(decision, Plan) or decision.terminations == ()
