"""`kill -9` at random moments of passes that terminate: the ledger is whole, no intent is lost or missing."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.soak.fleet import Fleet
from tests.soak.oracle import THE_END, BrokenPromiseError, all_named
from tests.soak.stage import EAST, REGIONS, WEST, Stage, stage
from tests.soak.victim import Victim

PASS = timedelta(minutes=3)
"""Longer than stuck_after: what a killed process had asked for without an answer is asked for again at once."""
LOAD = 5
"""So many orphans are launched before every pass."""
RATE = 4.0
"""The door waits a quarter of a second of its own between two requests to one region."""
MOST_ROWS = 12
LONGEST_SECONDS = 0.5
"""Until the kill, at most: about as long as a pass takes."""
ACTING = 0.6
"""Of the kills come when the pass has begun to terminate, and within the time that it takes for a few machines."""
LAST_PASSES = 40

WISHES = {
    "launch_grace": "0s",
    "confirm_passes": 1,
    "max_per_pass": 1000,
    "max_fraction": 1.0,
    "max_per_hour": 100_000,
    "stuck_after": "2m",
}


@dataclass(slots=True, kw_only=True)
class Toll:
    """What the kills came to."""

    kills: int = 0
    seconds: float = 0.0
    moments: Counter[str] = field(default_factory=Counter)
    """In the middle of what."""
    requests: int = 0
    intents: int = 0
    orphans: int = 0


class Killing:
    """One run."""

    def __init__(self, host: Stage, *, kills: int, seed: int) -> None:
        self.host = host
        self.kills = kills
        self.chance = random.Random(seed)
        self.fleet = Fleet(host, self.chance)
        self.toll = Toll()
        self._intents: dict[int, tuple[str, str]] = {}
        self._asked: Counter[str] = Counter()

    def run(self) -> Toll:
        """Run all of it."""
        began = time.monotonic()
        for region in (EAST, WEST):
            for number in range(4):
                worker = f"w-{region}-{number}"
                machine = self.fleet.launch(worker=worker, region=region, age=timedelta(hours=2))
                self.fleet.add_row(worker, region, machine)
        self._whole_pass()
        while self.toll.kills < self.kills:
            self._killed_pass()
        self._until_no_orphan_is_left()
        self.toll.seconds = time.monotonic() - began
        return self.toll

    # ------------------------------------------------------------ one process each

    def _killed_pass(self) -> None:
        victim = self._begin()
        acting = self.chance.random() < ACTING
        while acting and not (self.host.cloud.asked() or victim.done()):
            time.sleep(0.002)
        time.sleep(self.chance.uniform(0, LONGEST_SECONDS / (4 if acting else 1)))
        finished = victim.done()
        os.kill(victim.pid, signal.SIGKILL)
        code = victim.buried()
        if code != -signal.SIGKILL:
            raise BrokenPromiseError(self._where, f"the daemon ended by itself with {code}")
        self.toll.kills += 1
        self._judge("after the pass" if finished else "")

    def _whole_pass(self) -> None:
        victim = self._begin()
        victim.answer()
        self._judge(None)
        victim.kill()

    def _begin(self) -> Victim:
        """Start a process, and a pass in it."""
        self._churn()
        self.host.now += PASS
        self.host.cloud.set_time(self.host.now.isoformat())
        victim = self.host.start()
        victim.started()
        victim.begin("reconcile", at=self.host.now, rate=RATE, wrong_by=timedelta())
        return victim

    def _churn(self) -> None:
        """Launch orphans, and a machine with its row, and delete the oldest row."""
        self.fleet.counted()
        for _ in range(LOAD):
            self.fleet.launch(
                worker=self.fleet.worker_name(), region=self.chance.choice(REGIONS), age=timedelta(minutes=9)
            )
        self.toll.orphans += LOAD
        worker, region = self.fleet.worker_name(), self.chance.choice(REGIONS)
        tracked = self.fleet.launch(worker=worker, region=region, age=timedelta(minutes=9))
        self.fleet.add_row(worker, region, tracked)
        if len(self.fleet.rows) > MOST_ROWS:
            self.fleet.remove_row(next(iter(self.fleet.rows.values())))

    # ------------------------------------------------------------ the judgement

    def _judge(self, moment: str | None) -> None:
        """Judge what the cloud received and what the ledger has. `moment`: of the kill, empty in the middle."""
        asked = self.host.cloud.asked()
        self.host.cloud.clear_requests()
        if self.host.rows("PRAGMA integrity_check") != [("ok",)]:
            raise BrokenPromiseError(self._where, "the ledger is damaged")
        intents = {
            number: (one, at)
            for number, one, at in self.host.rows("SELECT intent_id, instance_id, requested_at FROM intents")
        }
        if lost := {number: one for number, one in self._intents.items() if intents.get(number) != one}:
            raise BrokenPromiseError(self._where, f"intents were lost: {lost}")
        new = Counter(one for number, (one, _) in intents.items() if number not in self._intents)
        machines = Counter(dict.fromkeys(all_named(asked), 1))
        if unrecorded := machines - new:
            raise BrokenPromiseError(self._where, f"requests without an intent: {sorted(unrecorded)}")
        for instance_id in machines:
            machine = self.fleet.machines.get(instance_id)
            reason = self.fleet.forbidden(machine) if machine else ""
            if reason:
                raise BrokenPromiseError(self._where, f"{instance_id} was to be terminated, and {reason}")
        self._intents = intents
        self.toll.requests += len(asked)
        self.toll.intents += len(new)
        if moment is not None:
            self.toll.moments[moment or self._moment(asked, new)] += 1

    @property
    def _where(self) -> str:
        return f"kill {self.toll.kills}"

    def _moment(self, asked: list[dict[str, Any]], new: Counter[str]) -> str:
        open_ones = self.host.rows("SELECT count(*) FROM intents WHERE outcome IS NULL")[0][0]
        if not new:
            return "before the first intent"
        if new.total() > len(asked):
            return "between an intent and its request"
        return "between a request and its answer" if open_ones else "between two machines"

    def _until_no_orphan_is_left(self) -> None:
        for _ in range(LAST_PASSES):
            self.fleet.counted()
            if not self.fleet.orphans():
                return
            self.host.now += PASS
            self.host.cloud.set_time(self.host.now.isoformat())
            victim = self.host.start()
            victim.started()
            victim.ask("reconcile", at=self.host.now, rate=RATE, wrong_by=timedelta())
            self._judge(None)
            victim.kill()
        left = [machine.instance_id for machine in self.fleet.orphans()]
        raise BrokenPromiseError(THE_END, f"orphans are left: {left}")


def kill(folder: Path, *, kills: int, seed: int) -> Toll:
    """Kill so many processes in a folder.

    Raises:
        BrokenPromiseError: for a promise that was broken; it names the seed.
    """
    with stage(folder, **WISHES) as host:
        run = Killing(host, kills=kills, seed=seed)
        try:
            return run.run()
        except AssertionError as error:
            error.add_note(f"seed {seed}, kill {run.toll.kills} of {kills}")
            raise
