"""Worlds to try the laws on.

Few ids, few places and times on the boundaries, so that what is drawn collides as often as it can. Most of it comes
out of tables: one draw a fact keeps a world at some forty draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

from hypothesis import strategies as st

from providers.locations import Gone, Location, NotKnown, OnlyListed, There
from providers.model import Coverage, InstanceRef, InstanceState, OwnedInstance, Scope, ScopeFailure
from reaperd.core.model import (
    Approval,
    Brake,
    BreakerLimits,
    Intent,
    Memory,
    Observation,
    OutcomeKind,
    ReapPolicy,
    RegistryTrouble,
    Sighting,
)
from registry.model import RegistrySnapshot, Worker, WorkerState
from tests.support.worlds import (
    DEPLOYMENT,
    EPOCH,
    HOUR,
    MINUTE,
    NOW,
    REGISTRY,
    SCOPES,
    SECOND,
    WEST,
    WIDE,
    World,
    broken,
    identity,
    machine,
    pin,
    ref,
    registry,
    row,
    whole,
)

IDS = tuple(f"i-{number}" for number in range(1, 6))
WORKERS = tuple(f"w-{number}" for number in range(1, 6))

PLAIN: Mapping[str, Any] = {}
ODD_MACHINES: tuple[Mapping[str, Any], ...] = (
    *({"owner": owner} for owner in ("prod-a-canary", "eu-prod-a", "Prod-A", " prod-a", "", "staging-b")),
    *({"state": state} for state in InstanceState),
    *({"registry_id": registry_id} for registry_id in (REGISTRY, "r-2", "")),
    *({"launched_at": at} for at in (None, datetime(1, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC))),
    *({"launched_at": NOW + ahead} for ahead in (SECOND, HOUR)),
    {"protect": True},
    {"protect": True, "managed_by": "autoscaling:workers"},
    {"managed_by": "fleet:f-1"},
    {"foreign_account": True},
    {"foreign_account": True, "state": InstanceState.SHUTTING_DOWN},
)
"""What may be unusual about a machine; most have nothing."""

AGES = (timedelta(days=3), 2 * HOUR, 15 * MINUTE + SECOND, 15 * MINUTE, 15 * MINUTE - SECOND, MINUTE, timedelta(0))
MACHINES = tuple(
    {"state": InstanceState.RUNNING, "owner": DEPLOYMENT} | facts
    for facts in (
        *[{"launched_at": NOW - age} for age in AGES] * 6,
        *({"launched_at": NOW - HOUR} | o for o in ODD_MACHINES),
    )
)
TTL = 10 * MINUTE
"""The heartbeat ttl of the worlds that have one."""

_LIVE = (WorkerState.RUNNING, WorkerState.DRAINING, WorkerState.LAUNCHING)
_DEAD = (WorkerState.COMPLETED, WorkerState.FAILED, WorkerState.TERMINATED)


def _times(
    created: timedelta | None, beat: timedelta | None = None, touched: timedelta | None = None
) -> dict[str, Any]:
    at = {"created_at": created, "heartbeat_at": beat, "updated_at": touched}
    return {column: NOW - ago for column, ago in at.items() if ago is not None}


BEATING = row("w-0", None, heartbeat_at=NOW - SECOND)
"""A worker without a machine whose heartbeat proves that heartbeats work."""

ROW_TIMES: tuple[Mapping[str, Any], ...] = (
    _times(3 * HOUR),
    _times(MINUTE),
    _times(3 * HOUR, MINUTE),
    _times(3 * HOUR, TTL),
    _times(3 * HOUR, TTL + SECOND),
    _times(3 * HOUR, 2 * HOUR),
    _times(3 * HOUR, timedelta(0)),
    _times(3 * HOUR, 2 * HOUR, MINUTE),
    _times(HOUR),
    _times(HOUR - SECOND),
    _times(TTL),
    _times(TTL + SECOND),
    _times(None),
    _times(None, 2 * HOUR),
    _times(3 * HOUR, -SECOND),
    _times(3 * HOUR, 2 * HOUR, -SECOND),
    _times(3 * HOUR, 2 * HOUR, -MINUTE),
    _times(3 * HOUR, 2 * HOUR, -MINUTE - SECOND),
    _times(timedelta(days=-400), 2 * HOUR),
    {"unreadable": ("created_at",), "heartbeat_at": NOW - 2 * HOUR},
    {"created_at": NOW - 3 * HOUR, "launched_at": NOW - MINUTE},
)


def _remembered() -> Iterator[Sighting]:
    """Yield what may be remembered of a machine, boundaries first."""
    known = {"first_seen_at": NOW - 3 * HOUR, "last_seen_at": NOW - MINUTE}
    tracked = known | {"tracked_at": NOW - HOUR}
    for confirmations in (2, 1, 4):
        for ago in (MINUTE, 30 * SECOND, 29 * SECOND):
            yield Sighting(**known, confirmations=confirmations, counted_at=NOW - ago)
    for worker, confirmations in product((None, "w-1", "w-2"), (0, 2)):
        facts = tracked | {"tracked_by": worker, "confirmations": confirmations}
        counted = NOW - MINUTE if confirmations else None
        for vanished in (MINUTE, HOUR - SECOND, HOUR, 3 * HOUR):
            yield Sighting(**facts, vanished_at=NOW - vanished, counted_at=counted)
        yield Sighting(**facts, counted_at=counted)
    for first in (timedelta(0), MINUTE, 15 * MINUTE, 15 * MINUTE + SECOND, -MINUTE):
        yield Sighting(first_seen_at=NOW - first, last_seen_at=NOW - min(first, MINUTE))
    for last in (24 * HOUR, 24 * HOUR + SECOND, 50 * HOUR):
        yield Sighting(first_seen_at=NOW - 60 * HOUR, last_seen_at=NOW - last, tracked_at=NOW - last)


SIGHTINGS = tuple(_remembered())
_HOLDING = (OutcomeKind.PROTECTED, OutcomeKind.DENIED, OutcomeKind.INVALID_ID, OutcomeKind.FAILED)
ASKED = tuple(
    (outcome, NOW - latest, NOW - first)
    for outcome in (None, *OutcomeKind, *_HOLDING, *_HOLDING)
    for latest, first in (
        (MINUTE, MINUTE),
        (30 * MINUTE - SECOND, HOUR),
        (30 * MINUTE, 30 * MINUTE),
        (3 * HOUR, 3 * HOUR),
        (timedelta(0), 30 * MINUTE),
        (-HOUR, -HOUR),
    )
)
LOCATED: tuple[Location | None, ...] = (
    *(Gone(), Gone(), OnlyListed(), NotKnown("no answer in time"), None),
    *(There(InstanceState.RUNNING), There(InstanceState.RUNNING, DEPLOYMENT), There(InstanceState.STOPPED, "prod-b")),
    *(There(InstanceState.SHUTTING_DOWN), There(InstanceState.UNKNOWN, "Prod-A")),
)
"""What may be said of a machine that is asked for by its id. None: it was not asked for."""
REQUESTS = tuple(NOW - ago for ago in (MINUTE, HOUR - SECOND, HOUR, 3 * HOUR, -MINUTE))
LIMITS = tuple(
    BreakerLimits(max_per_pass=per_pass, max_fraction=share, fraction_from=start, max_per_hour=per_hour)
    for per_pass, share, start, per_hour in product(
        (4, 3, 2, 1, 0), (1.0, 2 / 3, 0.5, 0.29, 0.0), (1, 4, 6), (6, 4, 2, 0)
    )
)
"""Limits small enough to matter, 0 among them."""

POLICIES = tuple(
    ReapPolicy(
        deployment=DEPLOYMENT,
        scopes=frozenset(SCOPES),
        breaker=WIDE,
        launch_grace=grace,
        confirm_passes=passes,
        vanish_grace=vanish_grace,
        heartbeat_ttl=ttl,
        max_silence=silence,
        never=never,
        confirmation_given=given,
        discovering=discovering,
    )
    for discovering, given, never, silence, ttl, vanish_grace, passes, grace in product(
        (frozenset[str](), frozenset({"aws"})),
        (False, False, False, True),
        (frozenset[str](), frozenset({"i-5"})),
        (None, HOUR),
        (TTL, TTL, None),
        (HOUR, timedelta(0)),
        (1, 1, 2, 3),
        (15 * MINUTE, timedelta(0)),
    )
)


def one_in(times: int) -> st.SearchStrategy[bool]:
    """Draw True once in so many times; shrinks to False."""
    return st.sampled_from((False,) * (times - 1) + (True,))


_BOOL, _FOURTH, _EIGHTH = st.booleans(), one_in(4), one_in(8)
_WHERE = st.sampled_from(tuple(ref(instance_id, at) for at in SCOPES for instance_id in IDS))
_SOMEWHERE = st.lists(_WHERE, unique=True, min_size=1, max_size=6)
_MACHINE = st.sampled_from(MACHINES)
_TAG = st.sampled_from((*WORKERS, *WORKERS, *WORKERS, None, None, None, "W-1", "w-2 "))
_SCOPE = st.sampled_from(SCOPES)
_SOME_WORKERS = st.lists(st.sampled_from(WORKERS), unique=True, min_size=1, max_size=len(WORKERS))
_LINK = st.sampled_from(("id", "tag", "both", "id", "tag", None))
_NAMED = st.sampled_from((*[None] * len(IDS), *IDS, "I-1"))
_ROW = st.sampled_from(tuple({"state": s} | t for s, t in product((*_LIVE, *_LIVE, *_LIVE, *_DEAD), ROW_TIMES)))
_LAUNCH = st.sampled_from(
    tuple({"state": s} | t for s, t in product((*[WorkerState.LAUNCHING] * 4, *_LIVE, *_DEAD), ROW_TIMES))
)
_KNOWN = st.sampled_from((*[None] * len(SIGHTINGS), *SIGHTINGS))
_ENDED = st.sampled_from(ASKED)
_UNSEEN = st.sampled_from(((), (ref("i-8"),), (ref("i-8", WEST), ref("i-9"))))
_LOCATED = st.sampled_from(LOCATED)
_ASKED = st.sampled_from((*[None] * 3 * len(ASKED), *ASKED))
_REQUESTS = st.lists(st.sampled_from(REQUESTS), max_size=4)
_PIN = st.sampled_from((None, None, pin(), pin(epoch=EPOCH - 1), pin(mismatch_accepted=True)))
_EXPIRY = st.sampled_from((NOW + HOUR, NOW + SECOND, NOW, NOW - SECOND))
_POLICY = st.sampled_from(POLICIES)
_NUMBER = st.integers(0, 5)

limits = st.sampled_from(LIMITS)
"""Limits that may well open the breaker."""


def _machine(draw: st.DrawFn, where: InstanceRef) -> OwnedInstance:
    return OwnedInstance(ref=where, worker_id=draw(_TAG), **draw(_MACHINE))


def _worker(draw: st.DrawFn, worker_id: str, about: InstanceRef | None) -> Worker:
    at = about.scope if about else draw(_SCOPE)
    named = about.instance_id if about else draw(_NAMED)
    facts = draw(_ROW if named else _LAUNCH)
    return Worker(worker_id=worker_id, provider=at.provider, region=at.region, instance_id=named, **facts)


@st.composite
def machines(draw: st.DrawFn) -> OwnedInstance:
    """Draw one machine of a listing: mostly ours, mostly running, mostly with a worker tag."""
    return _machine(draw, draw(_WHERE))


@st.composite
def workers(draw: st.DrawFn, worker_id: str) -> Worker:
    """Draw one row: any state, any place, with and without a machine, with good and bad times."""
    return _worker(draw, worker_id, None)


def _rows(draw: st.DrawFn, fleet: tuple[OwnedInstance, ...]) -> tuple[Worker, ...]:
    """Draw rows, most of which are about a machine of the fleet: by its id, by its tag, or by both."""
    rows: dict[str, Worker] = {"w-0": BEATING} if draw(_BOOL) else {}
    for worker_id in [] if draw(_EIGHTH) else draw(_SOME_WORKERS):
        link = draw(_LINK) if fleet else None
        about = fleet[draw(_NUMBER) % len(fleet)] if link else None
        tag = about.worker_id if about and about.worker_id and link in {"tag", "both"} else worker_id
        drawn = _worker(draw, tag, about.ref if about and link in {"id", "both"} else None)
        rows.setdefault(tag, drawn)
    return tuple(rows.values())


def _intents(draw: st.DrawFn, refs: tuple[InstanceRef, ...]) -> Iterator[Intent]:
    """Draw intents: of these machines now and then, and of some that no listing has."""
    for each, intents in (*((each, _ASKED) for each in refs), *((each, _ENDED) for each in draw(_UNSEEN))):
        asked = draw(intents)
        if asked is not None:
            outcome, latest, first = asked
            yield Intent(intent_id=1, ref=each, requested_at=latest, outcome=outcome, first_requested_at=first)


def _memory(draw: st.DrawFn, fleet: tuple[OwnedInstance, ...]) -> Memory:
    """Draw what the ledger may remember of a fleet, and of a machine that may no longer be in it."""
    refs = tuple(dict.fromkeys((*(each.ref for each in fleet), draw(_WHERE))))
    known = {each: draw(_KNOWN) for each in refs}
    approved = frozenset(each for each in refs if draw(_BOOL)) if draw(_EIGHTH) else frozenset()
    return Memory(
        sightings={each: remembered for each, remembered in known.items() if remembered is not None},
        intents={each.ref: each for each in _intents(draw, refs)},
        requests=tuple(draw(_REQUESTS)),
        pin=draw(_PIN),
        listed=frozenset(refs[:1]) if draw(_FOURTH) else frozenset(),
        scopes=frozenset(SCOPES),
        approvals=(Approval(digest="sha256:a", refs=approved, expires_at=draw(_EXPIRY)),) if approved else (),
    )


@st.composite
def good_worlds(draw: st.DrawFn) -> World:
    """Draw a world in which everything can be judged: only the breaker and a mismatch can make it stand down."""
    fleet = tuple(_machine(draw, where) for where in ([] if draw(_EIGHTH) else draw(_SOMEWHERE)))
    remembered = _memory(draw, fleet)
    found = {each: draw(_LOCATED) for each in remembered.intents}
    seen = Observation(
        now=NOW,
        instances=fleet,
        coverage=tuple(whole(scope) for scope in SCOPES),
        registry=registry(*_rows(draw, fleet)),
        memory=remembered,
        located={each: where for each, where in found.items() if where is not None},
    )
    wishes = draw(_POLICY)
    return World(seen, replace(wishes, breaker=draw(limits)) if draw(_FOURTH) else wishes)


Trouble = Callable[[World], World]
"""What makes a good world one that must be refused, whatever is in it."""


def _coverage(world: World, entry: Coverage) -> World:
    return world.but(coverage=tuple(entry if each.scope == entry.scope else each for each in world.seen.coverage))


def _registry(world: World, **changes: Any) -> World:
    if not isinstance(world.seen.registry, RegistrySnapshot):
        return world
    return world.but(registry=replace(world.seen.registry, **changes))


LISTING_TROUBLES: Mapping[str, Trouble] = {
    **{
        f"{scope} {failure}": lambda world, scope=scope, failure=failure: _coverage(world, broken(scope, failure))
        for scope in SCOPES
        for failure in ScopeFailure
    },
    **{
        f"{scope} forgotten": lambda world, scope=scope: world.but(
            coverage=tuple(each for each in world.seen.coverage if each.scope != scope),
            instances=tuple(each for each in world.seen.instances if each.ref.scope != scope),
        )
        for scope in SCOPES
    },
    "a discovered scope is not discovered again": lambda world: world.wishing(
        discovering=frozenset({"gcp"})
    ).remembering(scopes=frozenset({Scope("gcp", "asia-east1")})),
    "a machine of a scope that was not asked": lambda world: world.but(
        instances=(*world.seen.instances, machine("i-9", at=Scope("aws", "sa-east-1")))
    ),
    "one account under two names": lambda world: world.but(
        coverage=tuple(replace(entry, account="111111111111") for entry in world.seen.coverage)
    ),
    "one machine twice": lambda world: world.but(instances=(*world.seen.instances, machine("i-8"), machine("i-8"))),
}

REGISTRY_TROUBLES: Mapping[str, Trouble] = {
    "not read": lambda world: world.but(registry=None),
    "cannot be read": lambda world: world.but(registry=RegistryTrouble(detail="registry.db: file is missing")),
    "silent for too long": lambda world: _registry(
        world.wishing(max_silence=HOUR), identity=identity(updated_at=NOW - HOUR - SECOND)
    ),
    "silent since nobody knows when": lambda world: _registry(
        world.wishing(max_silence=HOUR), identity=identity(updated_at=None)
    ),
    "written in the future": lambda world: _registry(
        world.wishing(max_silence=HOUR), identity=identity(updated_at=NOW + HOUR)
    ),
    "another deployment": lambda world: _registry(world, identity=identity(deployment="prod-b")),
    "another registry": lambda world: world.remembering(pin=pin(registry_id="r-0")),
    "an older copy": lambda world: world.remembering(pin=pin(epoch=EPOCH + 1)),
    "a copy that has moved on": lambda world: world.remembering(pin=pin(nonce="n-other")),
    "rows that name nothing listed": lambda world: _registry(
        world.remembering(pin=None).but(instances=(*world.seen.instances, machine("i-8"))),
        workers=tuple(row(f"w-9{number}", f"i-9{number}") for number in range(3)),
    ),
    "a mark that is not kept": lambda world: _registry(
        world.remembering(pin=pin()), remembered_nonce=None, oldest_epoch=None
    ),
}

OTHER_TROUBLES: Mapping[str, Trouble] = {
    "no ledger": lambda world: world.but(ledger_trouble="disk full"),
    "no lease": lambda world: world.but(leader=False),
    "the clock jumped": lambda world: world.but(clock_step=timedelta(seconds=61)),
    "the clock fell back": lambda world: world.but(clock_step=-timedelta(seconds=61)),
    "the clock is not the cloud's": lambda world: _coverage(world, whole(WEST, clock_skew=timedelta(seconds=61))),
    "too late": lambda world: world.but(late=True),
    "the brake": lambda world: world.remembering(brake=Brake(since=NOW, by="ann", reason="deploy")),
}

TROUBLES: Mapping[str, Trouble] = {**LISTING_TROUBLES, **REGISTRY_TROUBLES, **OTHER_TROUBLES}


HARMLESS: Mapping[str, Trouble] = {
    "the clock moved by a minute": lambda world: world.but(clock_step=MINUTE),
    "the clock fell back by a minute": lambda world: world.but(clock_step=-MINUTE),
    "the cloud's clock is a minute away": lambda world: _coverage(world, whole(WEST, clock_skew=MINUTE)),
    "silent for exactly as long as may be": lambda world: _registry(
        world if world.policy.max_silence else world.wishing(max_silence=HOUR), identity=identity(updated_at=NOW - HOUR)
    ),
    "written a minute ahead": lambda world: _registry(world, identity=identity(updated_at=NOW + MINUTE)),
    "two regions of one account": lambda world: world.but(
        coverage=tuple(replace(e, account="1" if e.scope.provider == "aws" else "2") for e in world.seen.coverage)
    ),
}
"""What stands exactly on a limit, and is no trouble."""


def troubles(among: Mapping[str, Trouble] = TROUBLES) -> st.SearchStrategy[str]:
    """Draw the name of a trouble, so that a failing example reads as a sentence."""
    return st.sampled_from(sorted(among))


_SOME_TROUBLES = st.lists(
    st.one_of(*map(troubles, (OTHER_TROUBLES, REGISTRY_TROUBLES, LISTING_TROUBLES))),
    min_size=1,
    max_size=3,
    unique=True,
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw any world: a good one, with up to three troubles now and then."""
    world = draw(good_worlds())
    if not draw(_FOURTH):
        return world
    for name in draw(_SOME_TROUBLES):
        world = TROUBLES[name](world)
    return world
