"""The soak itself: passes, faults, and a judgement of every request that the cloud received."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.soak.card import EASY, Card, Hand
from tests.soak.deck import deck
from tests.soak.fleet import Fleet, Machine, Row, churn, clean_up
from tests.soak.gauges import Gauges, read
from tests.soak.oracle import THE_END, BrokenPromiseError, Oracle
from tests.soak.stage import Stage, scrape, stage
from tests.soak.victim import Told, Victim

PASS = timedelta(minutes=1)
WARM_UP, SHORTEST_WARM_UP = 0.25, 40
"""Of the passes, and so many at least, until what is measured has to hold still."""
AUDIT_EVERY, RELOAD_EVERY, BACK_UP_EVERY = 15, 50, 10
RARE_EVERY = 5
"""So many decks go by for one with the rare cards, which take ten seconds each."""
QUIET = 3
"""So many passes go by between two faults in a long run, at most; in a short one it is one."""
LONG = 1000
"""So many passes are a long run."""
PATIENCE_OF_OPERATOR = 2
"""So many passes the breaker stands open before somebody approves."""
LAST_PASSES = 150
"""So many passes after the last fault may go by until no orphan is left: the longest grace, and the retries."""
STRAGGLE_SECONDS = 40.0
"""Within this a look that was given up has ended: its last try, and the silence that it waits for."""
SETTLED_SECONDS = 60.0
"""Within this the threads of calls that hung have ended."""


@dataclass(slots=True, kw_only=True)
class Figures:
    """What a run came to."""

    passes: int = 0
    seconds: float = 0.0
    launched: int = 0
    requests: int = 0
    accepted: int = 0
    terminated: int = 0
    approvals: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    at_the_door: Counter[str] = field(default_factory=Counter)
    audits: Counter[str] = field(default_factory=Counter)
    last_passes: int = 0
    """How many passes it took after the last fault until no orphan was left."""
    gauges: Gauges = field(default_factory=Gauges)


class Soak:
    """One run. A broken promise is raised as BrokenPromiseError."""

    def __init__(
        self, host: Stage, *, passes: int, seed: int, keep: timedelta, progress: Callable[[int], None]
    ) -> None:
        self.host = host
        self._progress = progress
        self.passes = passes
        self._warm_at = max(int(passes * WARM_UP), SHORTEST_WARM_UP)
        self.keep = keep
        self.chance = random.Random(seed)
        self.fleet = Fleet(host, self.chance)
        self.victim: Victim = host.start()
        self.hand = Hand(stage=host, fleet=self.fleet, victim=self.victim)
        self.oracle = Oracle(host, self.fleet)
        self.figures = Figures()
        self._cards: list[Card] = []
        self._decks = 0
        self._digest: str | None = None
        self._late = False
        self._open_for = 0

    def run(self) -> Figures:
        """Run all of it."""
        began = time.monotonic()
        self.victim.started()
        self._populate()
        # A scope has its series from the first look at it.
        self.figures.audits[self.victim.ask("audit")] += 1
        backed_up, quiet = 0, QUIET if self.passes >= LONG else 1
        # Every fault once, however short the run is to be.
        while self.figures.passes < self.passes or self._decks < 1 or (self._decks == 1 and self._cards):
            if self.figures.passes - backed_up >= BACK_UP_EVERY:
                # Before a pass without a fault: the daemon has then seen more than there is in the backup.
                backed_up = self.figures.passes
                self.hand.back_up()
            for _ in range(self.chance.randint(1, quiet)):
                self._pass(None)
            self._play(self._dealt())
        self._until_no_orphan_is_left()
        self._settle("cold")
        self.figures.seconds = time.monotonic() - began
        self.figures.launched = self.fleet.launched
        self.figures.gauges.oldest_decision = self.host.age_of_decisions()
        self.oracle.judge_the_process(self.figures.gauges, keep=self.keep, long=self.passes >= LONG)
        return self.figures

    # ------------------------------------------------------------ the course of things

    def _populate(self) -> None:
        for number in range(20):
            worker = f"w-first-{number}"
            machine = self.fleet.launch(worker=worker, age=timedelta(hours=2))
            self.fleet.add_row(worker, self.fleet.machines[machine].region, machine)
        self.hand.back_up()

    def _dealt(self) -> Card:
        if not self._cards:
            self._decks += 1
            rare = self._decks % RARE_EVERY == 1
            self._cards = [card for card in deck() if rare or not card.rare]
            self.chance.shuffle(self._cards)
        return self._cards.pop()

    def _play(self, card: Card) -> None:
        play: Iterator[None] = iter(card.play(self.hand))
        next(play)
        self.figures.faults[card.name] += 1
        for _ in range(self.chance.randint(1, card.passes)):
            if self._pass(card):
                break
        next(play, None)
        self._wait_for_stragglers()
        if card.wrong_by:
            # The clock is set right again, which is one more step of it.
            self._pass(None)

    def _wait_for_stragglers(self) -> None:
        """Wait for looks that were given up: each holds its scope until it ends, and that takes real seconds.

        A minute of the soak takes a tenth of one, so without this hundreds of passes would be blind.
        """
        ends_at = time.monotonic() + STRAGGLE_SECONDS
        while self._late and time.monotonic() < ends_at:
            time.sleep(0.3)
            self._pass(None)

    def _pass(self, card: Card | None) -> bool:
        """Run one pass and judge it; return whether something was done at the door."""
        self.figures.passes += 1
        number = self.figures.passes
        if card is None:
            self._operate()
        churn(self.fleet, cloud=card is None or card.cloud, registry=card is None or card.registry)
        tracking = self.fleet.tracking()
        self._set_time()
        told, done = self._told(card)
        self._late = told.reason == "deadline"
        self.oracle.judge(number, card, told, done)
        self._note(card, told, tracking, done)
        self._periodic(number, card)
        return done is not None

    def _set_time(self) -> None:
        self.host.now += PASS
        self.host.cloud.set_time(self.host.now.isoformat())

    def _told(self, card: Card | None) -> tuple[Told, set[str] | None]:
        self.victim.begin(
            "reconcile",
            at=self.host.now,
            rate=EASY if card is None else card.rate,
            wrong_by=timedelta() if card is None else card.wrong_by,
        )
        done = None if card is None or card.at_the_door is None else self._at_the_door(card)
        told: Told = self.victim.answer()
        # Whole seconds, as a cloud tells them.
        self.host.now = max(self.host.now, told.now.replace(microsecond=0) + timedelta(seconds=1))
        return told, done

    def _at_the_door(self, card: Card) -> set[str] | None:
        """Do it while the first request is under way; return the machines that it cannot be said of in time."""
        assert card.at_the_door is not None
        while not self.victim.done(0.01):
            asked = self.host.cloud.asked()
            if asked:
                before = {machine.instance_id for machine in self.fleet.orphans()}
                if not card.at_the_door(self.hand, asked[0]["params"]["InstanceId.1"]):
                    return None
                in_time = self.host.cloud.asked()[0]["status"] is None
                self.figures.at_the_door[f"{card.name}{'' if in_time else ' (late)'}"] += 1
                return set() if in_time else before
        return None

    def _operate(self) -> None:
        """What the operator does: approves a plan that has waited for long enough."""
        if self._digest is not None and self._open_for >= PATIENCE_OF_OPERATOR:
            self.host.approve(self._digest)
            self.figures.approvals += 1
            self._open_for = 0

    def _note(self, card: Card | None, told: Told, tracking: list[Row], done: set[str] | None) -> None:
        name = told.outcome if told.reason is None else f"{told.outcome}: {told.reason}"
        self.figures.outcomes[name] += 1
        self.figures.requests, self.figures.accepted = self.oracle.requests, self.oracle.accepted
        if told.looked and (card is None or not card.name.startswith("listing")):
            self.fleet.looked_at(tracking)
        self._open_for = self._open_for + 1 if told.reason == "breaker_open" else 0
        self._digest = told.digest if told.reason == "breaker_open" else None
        self.figures.terminated += self.fleet.counted()

    def _periodic(self, number: int, card: Card | None) -> None:
        if number % AUDIT_EVERY == 0:
            self.figures.audits[self.victim.ask("audit")] += 1
        if card is None and number % RELOAD_EVERY == 0:
            self.victim.ask("reload")
        self._measure(number)
        self._progress(number)

    # ------------------------------------------------------------ the end

    def _until_no_orphan_is_left(self) -> None:
        host = self.host
        while orphans := self.fleet.orphans():
            if self.figures.last_passes == LAST_PASSES:
                told = [f"{machine.instance_id}: {self.last_verdict(machine)}" for machine in orphans]
                what = f"orphans are left {LAST_PASSES} passes after the last fault: {', '.join(told)}"
                raise BrokenPromiseError(THE_END, what)
            self._operate()
            # A row that names a machine which is gone keeps the one that it stands for in doubt.
            clean_up(self.fleet)
            tracking = self.fleet.tracking()
            self._set_time()
            told, _ = self._told(None)
            self.oracle.judge(self.figures.passes, None, told, None)
            self._note(None, told, tracking, None)
            self.figures.last_passes += 1
        assert not host.braked

    def last_verdict(self, machine: Machine) -> str:
        """Return what the last complete look said of a machine."""
        rows = self.host.rows("SELECT verdict FROM sightings WHERE instance_id = ?", machine.instance_id)
        return str(rows[0][0]) if rows else "never seen"

    # ------------------------------------------------------------ what the process takes

    def _measure(self, number: int) -> None:
        gauges = self.figures.gauges
        series = scrape(self.victim.address or ("", 0))
        if number == self._warm_at:
            self._settle("warm")
        if number >= self._warm_at:
            gauges.scraped(series)
            gauges.took(read(self.victim.pid))
        size = self.host.ledger_bytes()
        if number <= self.passes / 2:
            gauges.ledger_by_half = max(gauges.ledger_by_half, size)
        gauges.most_ledger = max(gauges.most_ledger, size)

    def _settle(self, name: str) -> None:
        """Read the gauges once nothing is under way any more."""
        self.victim.ask("collect")
        ends_at = time.monotonic() + SETTLED_SECONDS
        while time.monotonic() < ends_at and any(_is_call(thread) for thread in self.victim.ask("threads")):
            time.sleep(0.1)
        self.victim.ask("collect")
        setattr(self.figures.gauges, name, read(self.victim.pid))


def _is_call(thread: str) -> bool:
    return thread.startswith(("listing", "terminate", "providers-fanout"))


def soak(folder: Path, *, passes: int, seed: int, progress: Callable[[int], None]) -> Figures:
    """Run a soak in a folder; `progress` is told the number of each pass.

    Raises:
        BrokenPromiseError: for a promise that was broken; it names the seed and the pass.
    """
    # A day of minutes fits into a long run; a short one keeps decisions for an hour, so that some are dropped in it.
    keep = timedelta(days=1) if passes >= 3000 else timedelta(hours=1)
    with stage(folder, keep=f"{keep.total_seconds() / 3600:.0f}h") as host:
        run = Soak(host, passes=passes, seed=seed, keep=keep, progress=progress)
        try:
            return run.run()
        except AssertionError as error:
            error.add_note(f"seed {seed}, pass {run.figures.passes} of {passes}")
            for line in _last_words(run.victim):
                error.add_note(line)
            raise


def _last_words(victim: Victim) -> list[str]:
    try:
        lines: list[str] = victim.ask("said")
    except AssertionError:
        return []
    return lines[-40:]
