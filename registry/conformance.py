"""The promises of the ports of `registry.base`, as tests that any registry can be put to.

Derive from the class and give it a registry: a reader and a writer of one empty registry, and the two things that a
test must be able to do behind their back.

    class TestAcmeRegistry(RegistryConformance):
        @pytest.fixture
        def registry(self, tmp_path):
            ...
            return RegistryUnderTest(reader=..., writer=..., set_now=..., rewind=...)

For readable failures put `pytest.register_assert_rewrite("registry.conformance")` in a conftest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from registry.base import RegistryReader, RegistryWriter
from registry.errors import RegistryWriteError, WorkerNotFoundError
from registry.model import SCHEMA_VERSION, Interest, Worker, WorkerState

NOON = datetime(2026, 1, 10, 12, tzinfo=UTC)
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)

FULL = Worker(
    worker_id="w-1",
    provider="aws",
    region="us-east-1",
    instance_id="i-1",
    state=WorkerState.RUNNING,
    zone="us-east-1a",
    model="llama",
    created_at=NOON - timedelta(hours=1),
    launched_at=NOON - timedelta(minutes=59),
    heartbeat_at=NOON - timedelta(microseconds=1),
    updated_at=NOON - timedelta(seconds=1),
)
LAUNCHING = Worker(worker_id="w-2", provider="aws", region="us-east-1", instance_id=None, state=WorkerState.LAUNCHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryUnderTest:
    """One empty registry of the deployment `prod`, and how a test moves its clocks."""

    reader: RegistryReader
    writer: RegistryWriter
    set_now: Callable[[datetime], None]
    """Sets the clock that gives the times of the rows; it begins at NOON."""
    rewind: Callable[[], None]
    """Sets the registry's own updated_at to LONG_AGO."""

    def epoch(self) -> int:
        """Return the epoch."""
        return self.reader.snapshot().identity.epoch

    def row(self, worker_id: str) -> Worker:
        """Return the row of this worker."""
        (row,) = (worker for worker in self.reader.snapshot().workers if worker.worker_id == worker_id)
        return row


class RegistryConformance:
    """The promises of `RegistryReader` and `RegistryWriter`."""

    @pytest.fixture
    def registry(self) -> RegistryUnderTest:
        """Return an empty registry, made anew for every test."""
        raise NotImplementedError

    def test_both_sides_are_there(self, registry: RegistryUnderTest) -> None:
        """They have the methods of the ports."""
        assert isinstance(registry.reader, RegistryReader)
        assert isinstance(registry.writer, RegistryWriter)

    def test_a_new_registry_is_usable_and_has_a_mark(self, registry: RegistryUnderTest) -> None:
        """Zero rows are an answer: the reaper exists for that."""
        snapshot = registry.reader.snapshot()

        assert snapshot.workers == ()
        assert snapshot.identity.deployment == "prod"
        assert snapshot.identity.registry_id
        assert snapshot.identity.schema_version == SCHEMA_VERSION
        assert snapshot.nonce
        assert snapshot.oldest_epoch == snapshot.identity.epoch

    def test_a_row_is_read_as_it_was_added(self, registry: RegistryUnderTest) -> None:
        """Every column, to the microsecond."""
        registry.writer.add(FULL)

        assert registry.reader.snapshot().workers == (FULL,)

    def test_what_is_not_known_stays_so_and_the_clock_fills_in_when(self, registry: RegistryUnderTest) -> None:
        """A launching row has no instance, no launch and no heartbeat."""
        registry.writer.add(LAUNCHING)

        assert registry.reader.snapshot().workers == (replace(LAUNCHING, created_at=NOON, updated_at=NOON),)

    def test_times_of_any_offset_are_kept_as_utc(self, registry: RegistryUnderTest) -> None:
        """The moment counts."""
        oslo = timezone(timedelta(hours=1))
        registry.writer.add(replace(FULL, created_at=datetime(2026, 1, 10, 13, tzinfo=oslo)))

        assert registry.row("w-1").created_at == NOON
        assert str(registry.row("w-1").created_at) == str(NOON)

    def test_every_row_is_read_whatever_their_number(self, registry: RegistryUnderTest) -> None:
        """There is no limit, no page, and one order."""
        for number in range(60):
            registry.writer.add(replace(FULL, worker_id=f"w-{number:02}", instance_id=f"i-{number}"))

        ids = [worker.worker_id for worker in registry.reader.snapshot().workers]
        assert ids == [f"w-{number:02}" for number in range(60)]

    def test_rows_that_nobody_asks_for_are_counted_and_not_given(self, registry: RegistryUnderTest) -> None:
        """A live row is never one of them, unless the names are all that is asked for."""
        for number, state in enumerate(WorkerState):
            registry.writer.add(replace(FULL, worker_id=f"w-{number}", instance_id=f"i-{number}", state=state))
        late = replace(FULL, worker_id="w-late", instance_id=None, state=WorkerState.FAILED, updated_at=NOON)
        registry.writer.add(late)
        whole = registry.reader.snapshot()

        def found(interest: Interest) -> list[str]:
            snapshot = registry.reader.snapshot(interest=interest)
            states = Counter(worker.state for worker in snapshot.workers) + Counter(snapshot.passed_over)
            assert states == Counter(worker.state for worker in whole.workers)
            assert snapshot.rows == whole.rows == len(whole.workers)
            return [worker.worker_id for worker in snapshot.workers]

        live, named = ["w-0", "w-1", "w-2"], frozenset({"w-3", "i-4"})
        assert found(Interest(names=frozenset())) == live
        assert found(Interest(names=named)) == [*live, "w-3", "w-4"]
        assert found(Interest(names=named, live=False)) == ["w-3", "w-4"]
        assert found(Interest(names=frozenset(), live=False, later_than=NOON)) == []
        before = NOON - timedelta(microseconds=1)
        assert found(Interest(names=frozenset(), live=False, later_than=before)) == ["w-late"]

    @pytest.mark.parametrize(
        "bad",
        [
            replace(FULL, worker_id=""),
            replace(FULL, worker_id=" w-1"),
            replace(FULL, provider="  "),
            replace(FULL, region="us-east-1\n"),
            replace(FULL, instance_id=""),
            replace(FULL, instance_id="i-\0001"),
            replace(FULL, created_at=datetime(2026, 1, 10)),  # noqa: DTZ001  # naive on purpose
            replace(FULL, unreadable=("created_at",)),
        ],
        ids=str,
    )
    def test_a_row_that_could_not_match_is_refused(self, registry: RegistryUnderTest, bad: Worker) -> None:
        """It would look like protection."""
        epoch = registry.epoch()

        with pytest.raises(RegistryWriteError):
            registry.writer.add(bad)

        assert registry.reader.snapshot().workers == ()
        assert registry.epoch() == epoch

    def test_a_worker_id_that_stands_already_is_refused(self, registry: RegistryUnderTest) -> None:
        """The first row stays as it is, and the epoch too."""
        registry.writer.add(FULL)
        epoch = registry.epoch()

        with pytest.raises(RegistryWriteError, match="w-1"):
            registry.writer.add(replace(FULL, instance_id="i-2"))

        assert registry.reader.snapshot().workers == (FULL,)
        assert registry.epoch() == epoch

    def test_the_launch_answer_makes_a_launching_row_run(self, registry: RegistryUnderTest) -> None:
        """It names its machine from then on."""
        registry.writer.add(LAUNCHING)
        registry.set_now(NOON + timedelta(seconds=9))

        registry.writer.set_instance("w-2", "i-2", launched_at=NOON + timedelta(seconds=3))

        row = registry.row("w-2")
        assert (row.instance_id, row.state) == ("i-2", WorkerState.RUNNING)
        assert (row.launched_at, row.updated_at) == (NOON + timedelta(seconds=3), NOON + timedelta(seconds=9))

    def test_without_a_launch_time_the_first_answer_is_it(self, registry: RegistryUnderTest) -> None:
        """A second answer does not move it."""
        registry.writer.add(LAUNCHING)
        registry.writer.set_instance("w-2", "i-2")
        registry.set_now(NOON + timedelta(hours=1))

        registry.writer.set_instance("w-2", "i-2")

        assert registry.row("w-2").launched_at == NOON

    def test_a_row_is_found_by_its_worker(self, registry: RegistryUnderTest) -> None:
        """Whoever launches has to know what became of the last attempt."""
        registry.writer.add(FULL)

        assert registry.writer.find("w-1") == FULL
        assert registry.writer.find("w-2") is None

    def test_a_launch_may_go_on_in_another_place(self, registry: RegistryUnderTest) -> None:
        """Where the first had no capacity; the row has its time anew."""
        registry.writer.add(LAUNCHING)
        before = registry.epoch()
        registry.set_now(NOON + timedelta(seconds=9))

        registry.writer.set_place("w-2", "gcp", "europe-north1")

        row = registry.row("w-2")
        assert (row.provider, row.region) == ("gcp", "europe-north1")
        assert (row.state, row.updated_at) == (WorkerState.LAUNCHING, NOON + timedelta(seconds=9))
        assert registry.epoch() > before

    def test_a_launch_that_goes_on_elsewhere_has_the_new_zone_or_none(self, registry: RegistryUnderTest) -> None:
        """The old one would lead to a place where nothing was asked for last."""
        registry.writer.add(replace(LAUNCHING, zone="us-east-1a"))

        registry.writer.set_place("w-2", "aws", "us-east-1", zone="us-east-1b")
        moved = registry.row("w-2")
        registry.writer.set_place("w-2", "aws", "us-east-1")

        assert (moved.region, moved.zone) == ("us-east-1", "us-east-1b")
        assert registry.row("w-2").zone is None

    def test_the_launch_answer_leaves_the_zone(self, registry: RegistryUnderTest) -> None:
        """A handle is made from the row."""
        registry.writer.add(replace(LAUNCHING, zone="us-east-1a"))

        registry.writer.set_instance("w-2", "i-2")

        assert registry.row("w-2").zone == "us-east-1a"

    def test_another_zone_alone_protects_nothing_else(self, registry: RegistryUnderTest) -> None:
        """So the epoch stays."""
        registry.writer.add(replace(LAUNCHING, zone="us-east-1a"))
        before = registry.epoch()

        registry.writer.set_place("w-2", "aws", "us-east-1", zone="us-east-1b")

        assert registry.epoch() == before

    @pytest.mark.parametrize("zone", ["", " ", "us-east-1a ", "us-east\t1a"])
    def test_a_zone_that_names_none_is_refused(self, registry: RegistryUnderTest, zone: str) -> None:
        """What is not known is None."""
        registry.writer.add(LAUNCHING)

        with pytest.raises(RegistryWriteError):
            registry.writer.set_place("w-2", "aws", "us-east-1", zone=zone)
        with pytest.raises(RegistryWriteError):
            registry.writer.add(replace(FULL, zone=zone))

        assert registry.row("w-2").zone is None

    @pytest.mark.parametrize("bad", [("", "us-east-1"), ("aws", " us-east-1")])
    def test_a_place_that_could_not_match_is_refused(self, registry: RegistryUnderTest, bad: tuple[str, str]) -> None:
        """It would look like protection."""
        registry.writer.add(LAUNCHING)

        with pytest.raises(RegistryWriteError):
            registry.writer.set_place("w-2", *bad)

        assert (registry.row("w-2").provider, registry.row("w-2").region) == ("aws", "us-east-1")

    @pytest.mark.parametrize(
        "placed",
        [FULL, *(replace(LAUNCHING, state=state) for state in WorkerState if state is not WorkerState.LAUNCHING)],
        ids=lambda worker: f"{worker.state}-{worker.instance_id}",
    )
    def test_a_row_that_is_not_launching_stays_where_it_is(self, registry: RegistryUnderTest, placed: Worker) -> None:
        """The machine that it names would lose its protection."""
        registry.writer.add(placed)
        epoch = registry.epoch()

        with pytest.raises(RegistryWriteError, match=placed.worker_id):
            registry.writer.set_place(placed.worker_id, "gcp", "europe-north1")

        assert registry.epoch() == epoch

    def test_a_draining_row_goes_on_draining(self, registry: RegistryUnderTest) -> None:
        """Only launching becomes running."""
        registry.writer.add(replace(FULL, state=WorkerState.DRAINING))

        registry.writer.set_instance("w-1", "i-1")

        assert registry.row("w-1").state is WorkerState.DRAINING

    def test_an_instance_id_is_never_exchanged(self, registry: RegistryUnderTest) -> None:
        """The machine that it named would lose its protection."""
        registry.writer.add(FULL)

        with pytest.raises(RegistryWriteError, match="i-1"):
            registry.writer.set_instance("w-1", "i-2")

        assert registry.reader.snapshot().workers == (FULL,)

    @pytest.mark.parametrize("state", [state for state in WorkerState if not state.is_live])
    def test_a_worker_that_was_given_up_gets_no_instance(self, registry: RegistryUnderTest, state: WorkerState) -> None:
        """A late launch answer brings nobody back to life."""
        registry.writer.add(replace(LAUNCHING, state=state))

        with pytest.raises(RegistryWriteError, match=state):
            registry.writer.set_instance("w-2", "i-2")

        assert registry.row("w-2").instance_id is None

    @pytest.mark.parametrize("instance_id", ["", " ", "i-1 ", "i-\t1"])
    def test_an_instance_id_that_names_none_is_refused(self, registry: RegistryUnderTest, instance_id: str) -> None:
        """It could match no machine."""
        registry.writer.add(LAUNCHING)

        with pytest.raises(RegistryWriteError):
            registry.writer.set_instance("w-2", instance_id)

        assert registry.row("w-2").instance_id is None

    @pytest.mark.parametrize("state", list(WorkerState))
    def test_every_state_can_be_set(self, registry: RegistryUnderTest, state: WorkerState) -> None:
        """And the row says when."""
        registry.writer.add(FULL)

        registry.writer.set_state("w-1", state)

        assert registry.row("w-1") == replace(FULL, state=state, updated_at=NOON)

    def test_a_heartbeat_is_now_unless_it_says_when(self, registry: RegistryUnderTest) -> None:
        """Nothing else of the row changes."""
        registry.writer.add(FULL)

        registry.writer.heartbeat("w-1")
        assert registry.row("w-1") == replace(FULL, heartbeat_at=NOON, updated_at=NOON)

        registry.writer.heartbeat("w-1", NOON - timedelta(seconds=2))
        assert registry.row("w-1").heartbeat_at == NOON - timedelta(seconds=2)

    def test_a_naive_time_is_refused(self, registry: RegistryUnderTest) -> None:
        """Nobody knows what it means."""
        registry.writer.add(FULL)

        with pytest.raises(RegistryWriteError):
            registry.writer.heartbeat("w-1", datetime(2026, 1, 10))  # noqa: DTZ001  # naive on purpose

    def test_a_removed_row_is_gone(self, registry: RegistryUnderTest) -> None:
        """The others stay."""
        registry.writer.add(FULL)
        registry.writer.add(LAUNCHING)

        registry.writer.remove("w-2")

        assert registry.reader.snapshot().workers == (FULL,)

    def test_an_unknown_worker_is_said_to_be_so(self, registry: RegistryUnderTest) -> None:
        """By every change, and none of them leaves a trace."""
        epoch = registry.epoch()

        with pytest.raises(WorkerNotFoundError):
            registry.writer.set_instance("w-9", "i-9")
        with pytest.raises(WorkerNotFoundError):
            registry.writer.set_place("w-9", "aws", "us-east-1")
        with pytest.raises(WorkerNotFoundError):
            registry.writer.set_state("w-9", WorkerState.FAILED)
        with pytest.raises(WorkerNotFoundError):
            registry.writer.heartbeat("w-9")
        with pytest.raises(WorkerNotFoundError):
            registry.writer.remove("w-9")

        assert registry.epoch() == epoch

    @pytest.mark.parametrize(
        "change",
        [
            lambda writer: writer.add(LAUNCHING),
            lambda writer: writer.remove("w-1"),
            lambda writer: writer.set_state("w-1", WorkerState.DRAINING),
        ],
        ids=["add", "remove", "set_state"],
    )
    def test_what_changes_protection_raises_the_epoch_with_a_new_mark(
        self, registry: RegistryUnderTest, change: Callable[[RegistryWriter], None]
    ) -> None:
        """The old mark stays known."""
        registry.writer.add(FULL)
        before = registry.reader.snapshot()

        change(registry.writer)

        after = registry.reader.snapshot(remembered_epoch=before.identity.epoch)
        assert after.identity.epoch > before.identity.epoch
        assert after.nonce
        assert after.nonce != before.nonce
        assert after.remembered_nonce == before.nonce

    def test_a_machine_that_becomes_known_raises_the_epoch(self, registry: RegistryUnderTest) -> None:
        """An answer that says it again does not."""
        registry.writer.add(LAUNCHING)
        before = registry.epoch()

        registry.writer.set_instance("w-2", "i-2")
        known = registry.epoch()
        registry.writer.set_instance("w-2", "i-2")

        assert before < known == registry.epoch()

    def test_a_heartbeat_raises_no_epoch_but_is_a_sign_of_life_of_the_registry(
        self, registry: RegistryUnderTest
    ) -> None:
        """Otherwise the marks of a busy fleet would be forgotten within a day."""
        registry.writer.add(FULL)
        before = registry.reader.snapshot()
        registry.rewind()

        registry.writer.heartbeat("w-1")

        after = registry.reader.snapshot()
        assert (after.identity.epoch, after.nonce) == (before.identity.epoch, before.nonce)
        assert after.identity.updated_at is not None
        assert after.identity.updated_at > LONG_AGO

    @pytest.mark.parametrize(
        "change",
        [
            lambda writer: writer.add(LAUNCHING),
            lambda writer: writer.remove("w-1"),
            lambda writer: writer.set_state("w-1", WorkerState.DRAINING),
            lambda writer: writer.set_state("w-1", WorkerState.RUNNING),
        ],
        ids=["add", "remove", "set_state", "the same state"],
    )
    def test_every_write_is_a_sign_of_life_of_the_registry(
        self, registry: RegistryUnderTest, change: Callable[[RegistryWriter], None]
    ) -> None:
        """Of the registry's own clock."""
        registry.writer.add(FULL)
        registry.rewind()

        change(registry.writer)

        updated_at = registry.reader.snapshot().identity.updated_at
        assert updated_at is not None
        assert updated_at > LONG_AGO

    def test_reading_is_no_write(self, registry: RegistryUnderTest) -> None:
        """Neither kind of reading leaves a trace."""
        registry.writer.add(FULL)
        registry.rewind()
        before = registry.reader.snapshot()

        registry.reader.lookup("i-1", "w-1")

        assert registry.reader.snapshot() == before
        assert before.identity.updated_at == LONG_AGO

    def test_a_mark_that_was_not_asked_for_or_never_was_is_none(self, registry: RegistryUnderTest) -> None:
        """None is not the mark of anything."""
        assert registry.reader.snapshot().remembered_nonce is None
        assert registry.reader.snapshot(remembered_epoch=registry.epoch() + 1).remembered_nonce is None
        assert registry.reader.snapshot(remembered_epoch=-1).remembered_nonce is None

    def test_a_lookup_finds_every_row_of_the_machine_or_of_the_worker(self, registry: RegistryUnderTest) -> None:
        """Of any place and any state: it is the last look before a termination."""
        elsewhere = replace(FULL, worker_id="w-3", provider="gcp", region="oslo", state=WorkerState.FAILED)
        registry.writer.add(FULL)
        registry.writer.add(LAUNCHING)
        registry.writer.add(elsewhere)
        registry.writer.add(replace(FULL, worker_id="w-4", instance_id="i-4"))

        def found(instance_id: str, worker_id: str | None) -> list[str]:
            return [worker.worker_id for worker in registry.reader.lookup(instance_id, worker_id).workers]

        assert found("i-1", None) == ["w-1", "w-3"]
        assert found("i-1", "w-2") == ["w-1", "w-2", "w-3"]
        assert found("i-9", "w-2") == ["w-2"]
        assert found("i-9", None) == []
        assert found("I-1", "W-1") == []
        # Read in another way it finds the live ones, too.
        loosely = registry.reader.lookup("I-1", "W-2", str.lower).workers
        assert [worker.worker_id for worker in loosely] == ["w-1", "w-2"]
        assert registry.reader.lookup("i-1", None).identity == registry.reader.snapshot().identity

    def test_a_lookup_of_many_finds_what_each_would_find_once(self, registry: RegistryUnderTest) -> None:
        """In one order, and with the identity of the one moment that all rows are of."""
        elsewhere = replace(FULL, worker_id="w-3", provider="gcp", region="oslo", state=WorkerState.FAILED)
        for worker in (elsewhere, LAUNCHING, FULL, replace(FULL, worker_id="w-4", instance_id="i-4")):
            registry.writer.add(worker)

        def found(*machines: tuple[str, str | None]) -> list[str]:
            return [worker.worker_id for worker in registry.reader.lookup_many(machines).workers]

        assert found(("i-1", "w-1"), ("i-9", "w-2")) == ["w-1", "w-2", "w-3"]
        assert found(("i-1", None), ("i-4", "w-1"), ("i-1", "w-4")) == ["w-1", "w-3", "w-4"]
        assert found(("i-9", None), ("I-1", "W-1")) == []
        assert found() == []
        assert registry.reader.lookup_many([("i-1", None)]).identity == registry.reader.snapshot().identity
