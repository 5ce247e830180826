"""The judgement: what no request may do, whatever the daemon says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from tests.soak.card import Card
from tests.soak.fleet import Fleet
from tests.soak.gauges import MEBIBYTE, Gauges
from tests.soak.stage import MAX_PER_PASS, Stage
from tests.soak.victim import Told

THE_END, THE_PROCESS = "the end", "the process"
MOST_GROWTH = 20 * MEBIBYTE
MOST_NEW_THREADS = 0
MOST_NEW_DESCRIPTORS = 12
"""Which of the clients that are kept have a connection open just then is chance: two listers' and a terminator's."""
SLACK = timedelta(minutes=15)
"""So much older than its time a decision may become: the lease and the clock jump, and a refused pass may drop none."""
ROOM = 1.5
"""So many times what the ledger took in the first half of a long run is what it may take at most."""


MOST_OVERDUE = 20
"""So many passes may be too late for their card on a busy machine; they terminated nothing, whatever it was."""


class BrokenPromiseError(AssertionError):
    """A promise was broken; says when, and which."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


def named(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every machine that a request names, in its order."""
    numbered = {
        name.rpartition(".")[2]: value for name, value in request["params"].items() if name[:11] == "InstanceId."
    }
    return tuple(numbered[number] for number in sorted(numbered, key=int))


def all_named(requests: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return every machine that any of the requests names."""
    return {instance_id for request in requests for instance_id in named(request)}


class Oracle:
    """Knows what may go, from the fleet, and holds every request to it."""

    def __init__(self, host: Stage, fleet: Fleet) -> None:
        self._host = host
        self._fleet = fleet
        self._asked_before: set[str] = set()
        self._last_intent = 0
        self.began = host.now
        self.requests = 0
        self.accepted = 0
        self.overdue = 0
        """Passes that stood down because this machine was too busy to play the cloud in time."""

    def judge(self, number: int, card: Card | None, told: Told, late: set[str] | None) -> None:
        """Judge what was asked of the cloud in one pass.

        `late` are the machines of which it cannot be said that what was done at the door came before their turn; None
        when nothing was done there.
        """
        asked = self._host.cloud.asked()
        self.accepted += len(self._host.cloud.terminated_ids())
        self._host.cloud.clear_requests()
        self.requests += len(asked)
        where = f"pass {number}, {card.name if card else 'nothing wrong'}"
        self._judge_the_pass(where, card, told, asked)
        for position, request in enumerate(asked):
            for place, instance_id in enumerate(named(request)):
                # At the door, something was done to the first machine of the first request.
                first = position == place == 0
                self._judge_the_request(where, instance_id, first=first, excused=late or set(), card=card)
        if card is not None and card.stops_at_the_door and late == set() and len(asked) > 1:
            raise BrokenPromiseError(where, f"{len(asked) - 1} requests after the pass had to stop")
        self._judge_the_size(where, asked)
        self._judge_the_intents(where, asked)

    def _judge_the_pass(self, where: str, card: Card | None, told: Told, asked: list[dict[str, Any]]) -> None:
        if told.outcome == "error":
            raise BrokenPromiseError(where, "the pass ended with an error that nobody expected")
        if card is None or not card.stands_down:
            return
        if asked:
            raise BrokenPromiseError(where, f"requests for {sorted(all_named(asked))}")
        if (told.outcome, told.reason) == ("refused", "deadline") and self.overdue < MOST_OVERDUE:
            self.overdue += 1
            return
        if told.outcome != "refused" or told.reason not in card.stands_down:
            raise BrokenPromiseError(where, f"{told.outcome}: {told.reason} ({told.detail})")

    def _judge_the_request(
        self, where: str, instance_id: str, *, first: bool, excused: set[str], card: Card | None
    ) -> None:
        machine = self._fleet.machines.get(instance_id)
        if machine is None:
            # It vanished meanwhile, or is ending.
            return
        if instance_id in excused or (first and card is not None and card.at_the_door is not None):
            return
        reason = self._fleet.forbidden(machine)
        if reason:
            raise BrokenPromiseError(where, f"{instance_id} was to be terminated, and {reason}")

    def _judge_the_size(self, where: str, asked: list[dict[str, Any]]) -> None:
        """The breaker: not more machines that were never asked for, nor approved, than one pass may."""
        machines = all_named(asked)
        new = machines - self._asked_before - self._host.approved
        self._asked_before |= machines
        if len(new) > MAX_PER_PASS:
            raise BrokenPromiseError(where, f"{len(new)} new terminations in one pass: {sorted(new)}")

    def _judge_the_intents(self, where: str, asked: list[dict[str, Any]]) -> None:
        """Every machine that was asked for has an intent, written in this pass. Within one it may be asked twice."""
        if not asked:
            return
        written = self._host.rows(
            "SELECT intent_id, instance_id FROM intents WHERE intent_id > ? ORDER BY intent_id", self._last_intent
        )
        self._last_intent = max((number for number, _ in written), default=self._last_intent)
        missing = all_named(asked) - {one for _, one in written}
        if missing:
            raise BrokenPromiseError(where, f"requests without an intent: {sorted(missing)}")

    # ------------------------------------------------------------ the process

    def judge_the_process(self, gauges: Gauges, *, keep: timedelta, long: bool) -> None:
        """Judge what the process took."""
        assert gauges.warm is not None
        assert gauges.cold is not None
        threads = gauges.cold.threads - gauges.warm.threads
        descriptors = gauges.cold.descriptors - gauges.warm.descriptors
        ledgers = f"{gauges.ledger_by_half:,} to {gauges.most_ledger:,}"
        broken = {
            f"it grew by {gauges.grown / MEBIBYTE:.1f} MiB": gauges.grown > MOST_GROWTH,
            f"{threads} threads more than after the warm-up": threads > MOST_NEW_THREADS,
            f"{descriptors} descriptors more than after the warm-up": descriptors > MOST_NEW_DESCRIPTORS,
            f"series came or went: {sorted(gauges.changed_series)}": bool(gauges.changed_series),
            f"a decision of {gauges.oldest_decision} ago is kept": gauges.oldest_decision > keep + SLACK,
            f"the ledger grew from {ledgers} bytes": long and gauges.most_ledger > gauges.ledger_by_half * ROOM,
        }
        for what, is_so in broken.items():
            if is_so:
                raise BrokenPromiseError(THE_PROCESS, what)
