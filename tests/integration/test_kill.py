"""kill -9 at every step of a pass that acts: the next one goes on, asks nothing twice and loses nothing."""

from __future__ import annotations

import ast
import inspect
import json
import random
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

from reaperd.ledger.connection import immediate
from tests.integration.judging import complete, reasons
from tests.support.crash import some_of
from tests.support.ec2 import FaultyEc2
from tests.support.processes import ROOT, Crew, until
from tests.support.site import EAST, Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

KILLED = -9
DOOR = "reaperd/passes/act.py"
CONNECTION = "reaperd/ledger/connection.py"
WATCHED = (DOOR, "reaperd/passes/reconcile.py", "reaperd/ledger/ledger.py", CONNECTION, "reaperd/ledger/lease.py")
PARTS = 4
AT_A_TIME = 4
"""Cases that run side by side: a pass waits for its pace and for fsync more than it computes."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a process dies: when it is about to run this line for the n-th time."""

    place: str
    visit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A site with two orphans and a tracked machine."""

    site: Site
    orphans: tuple[str, str]
    tracked: str


@contextmanager
def scene(folder: Path, parent: Path, **cloud_settings: float) -> Iterator[Scene]:
    """Set the stage anew."""
    folder.mkdir()
    with FaultyEc2(**{"shutdown_s": 0, **cloud_settings}) as cloud, Crew(parent) as crew:
        site = Site(folder=folder, cloud=cloud, crew=crew)
        site.set_up()
        site.configure(regions=(EAST,))
        orphans = (site.orphan(worker="w-1", age_s=9000), site.orphan(worker="w-2"))
        yield Scene(site=site, orphans=orphans, tracked=site.tracked())


@pytest.fixture
def stage(tmp_path: Path, parent: Path) -> Iterator[Scene]:
    with scene(tmp_path / "site", parent) as made:
        yield made


# ---------------------------------------------------------------- at every line


@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_any_line_is_made_good_by_the_next_passes(part: int, tmp_path: Path, parent: Path):
    points = some_of(recorded_points(tmp_path, parent)[part::PARTS])

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        killed = list(pool.map(partial(dies_and_recovers, tmp_path, parent), points))

    survived = [point for point, was_killed in zip(points, killed, strict=True) if not was_killed]
    # How long it has to wait is chance, and so is which of two threads opens the ledger first. Nothing else is.
    assert [point for point in survived if point.place.startswith(DOOR) and point.place not in waits()] == []
    assert len(survived) <= len(points) // 10, survived


def test_every_line_of_the_door_that_a_good_pass_runs_is_a_point(tmp_path: Path, parent: Path):
    points = recorded_points(tmp_path, parent)

    places = {point.place for point in points}
    assert len({place for place in places if place.startswith(DOOR)}) >= 40
    assert {place.partition(":")[0] for place in places} == set(WATCHED)
    assert len([point for point in points if point.place in places_of_commits()]) >= 10


def recorded_points(folder: Path, parent: Path) -> list[Point]:
    """Run a pass to its end, and return where it can die.

    That is every line of the door and every other statement that it came by, the first time; the lines of the door
    the second time, too; and every begin and end of a transaction each time.
    """
    record = folder / "lines.json"
    with scene(folder / "recorded", parent) as stage:
        complete(stage.site.run("once", crash={"files": WATCHED, "record": str(record)}))
    visits: dict[str, int] = json.loads(record.read_text(encoding="utf-8"))
    commits = places_of_commits()
    points = [Point(place, 1) for place in visits if place.startswith(DOOR) or place in places_of_statements()]
    points += [Point(place, 2) for place, number in visits.items() if place.startswith(DOOR) and number > 1]
    points += [Point(place, visit) for place in commits for visit in range(2, visits[place] + 1)]
    return points


def places_of_commits() -> set[str]:
    """Return the lines that begin and end a transaction."""
    lines, first = inspect.getsourcelines(inspect.unwrap(immediate))
    return {f"{CONNECTION}:{first + n}" for n, line in enumerate(lines) if '"BEGIN' in line or '"COMMIT' in line}


@cache
def places_of_statements() -> frozenset[str]:
    """Return where statements begin: between the arguments of a call, nothing has happened yet."""
    return frozenset(
        f"{name}:{node.lineno}" for name in WATCHED for node in ast.walk(parsed(name)) if isinstance(node, ast.stmt)
    )


@cache
def parsed(name: str) -> ast.Module:
    """Return a module of ours as Python sees it."""
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


def waits() -> frozenset[str]:
    """Return the lines of the door that run only if there is something to wait for."""
    loops = [node for node in ast.walk(parsed(DOOR)) if isinstance(node, ast.While)]
    lines = {line for loop in loops for line in range(loop.lineno, (loop.end_lineno or 0) + 1)}
    sleeps = {n for n, text in enumerate((ROOT / DOOR).read_text("utf-8").splitlines(), 1) if "clock.sleep(" in text}
    return frozenset(f"{DOOR}:{line}" for line in lines | sleeps)


def dies_and_recovers(folder: Path, parent: Path, point: Point) -> bool:
    """Kill a pass at a point and hold what follows to the promises; return whether it came by there."""
    name = f"{point.place.rpartition('/')[2]}:{point.visit}".replace(":", "-")
    with scene(folder / name, parent) as stage:
        crash = {"files": WATCHED, "at": point.place, "visit": point.visit}
        code = stage.site.run("once", crash=crash).code
        assert code in {KILLED, 0}, point
        try:
            recovers(stage)
        except AssertionError as error:
            error.add_note(str(point))
            raise
        return code == KILLED


def recovers(stage: Scene) -> None:
    """Run passes until all is done, and raise AssertionError for a promise that was broken on the way."""
    site = stage.site
    reached = {orphan: len(site.cloud.terminate_requests(orphan)) for orphan in stage.orphans}
    begun = {row[0] for row in open_intents(site)}

    # The dead process had the lease: it is taken over at once. What was begun is not begun again.
    complete(site.run("once"))

    for orphan in stage.orphans:
        expected = reached[orphan] if orphan in begun else 1
        assert len(site.cloud.terminate_requests(orphan)) == expected
        assert reached[orphan] <= 1

    # Once it counts as stuck, a request that never arrived is sent again.
    until(lambda: complete(site.run("once", settings={"reconcile.stuck_after": "1s"})) and not open_intents(site))

    assert {site.cloud.state_of(orphan) for orphan in stage.orphans} == {"terminated"}
    assert site.cloud.state_of(stage.tracked) == "running"
    assert site.accepted() == sorted(stage.orphans)
    assert site.rows("PRAGMA integrity_check") == [("ok",)]
    assert {row[0] for row in site.intents()} == set(stage.orphans)


def open_intents(site: Site) -> list[tuple[str]]:
    """Return the machines with an open intent. None while there is no ledger, or a ledger without tables."""
    if not site.ledger_path.exists():
        return []
    with closing(sqlite3.connect(site.ledger_path)) as ledger:
        if not ledger.execute("SELECT 1 FROM sqlite_master WHERE name = 'intents'").fetchone():
            return []
        return ledger.execute("SELECT instance_id FROM intents WHERE closed_at IS NULL").fetchall()


# ---------------------------------------------------------------- at moments


def test_a_kill_during_the_listing_leaves_nothing_to_repair(stage: Scene):
    hang = stage.site.cloud.fault("hang", action="DescribeInstances")
    command = stage.site.start("once", cold=True)
    until(lambda: stage.site.cloud.requests("DescribeInstances"))

    command.kill()

    assert command.wait().code == KILLED
    hang.remove()
    assert open_intents(stage.site) == []
    recovers(stage)


def test_a_kill_while_the_answer_is_on_its_way_asks_for_nothing_twice(stage: Scene):
    hang = stage.site.cloud.fault("hang", action="TerminateInstances", applied=True)
    command = stage.site.start("once", cold=True)
    until(lambda: stage.site.cloud.terminate_requests())

    command.kill()

    assert command.wait().code == KILLED
    hang.remove()
    assert open_intents(stage.site) == [(stage.orphans[0],)]
    recovers(stage)


def test_a_request_that_never_arrived_is_sent_again_only_when_it_counts_as_stuck(stage: Scene):
    site, (first, second) = stage.site, stage.orphans
    hang = site.cloud.fault("hang", action="TerminateInstances")
    command = site.start("once")
    until(lambda: site.cloud.terminate_requests())
    command.kill()
    assert command.wait().code == KILLED
    hang.remove()
    site.cloud.clear_requests()

    soon = complete(site.run("once"))

    assert reasons(soon)[first] == "already_requested"
    assert site.accepted() == [second]
    time.sleep(1)
    late = complete(site.run("once", settings={"reconcile.stuck_after": "1s"}))
    assert reasons(late)[first] == "unregistered"
    assert site.accepted() == sorted([first, second])


def test_a_machine_that_does_not_move_yet_is_not_asked_for_again_by_the_next_process(stage: Scene):
    site, (first, second) = stage.site, stage.orphans
    unmoved = site.cloud.fault("ignored", action="TerminateInstances", instance_id=first, applied=True, delay_s=30)
    command = site.start("once")
    until(lambda: site.accepted() == [first])
    command.kill()
    assert command.wait().code == KILLED

    soon = complete(site.run("once"))

    assert reasons(soon)[first] == "already_requested"
    assert site.accepted() == [first, second]
    unmoved.remove()
    time.sleep(1)
    complete(site.run("once", settings={"reconcile.stuck_after": "1s"}))
    assert site.accepted() == [first, first, second]
    assert site.cloud.state_of(first) == "terminated"


def test_a_kill_at_twenty_moments_is_made_good_by_the_next_passes(tmp_path: Path, parent: Path):
    moments = random.Random(20).sample(range(1000), 20)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        codes = list(pool.map(partial(dies_at_a_moment, tmp_path, parent), moments))

    assert set(codes) <= {KILLED, 0}
    assert codes.count(KILLED) >= 5


def dies_at_a_moment(folder: Path, parent: Path, moment: int) -> int:
    """Kill a pass so many milliseconds after it first wrote anything, or was first heard of."""
    with scene(folder / str(moment), parent) as stage:
        command = stage.site.start("once")
        until(lambda: command.ended() or stage.site.state.exists() or stage.site.cloud.requests())
        time.sleep(moment / 1000)
        command.kill()
        code = command.wait().code
        recovers(stage)
        return code
