"""The registry in memory keeps the promises of the file."""

from dataclasses import replace
from datetime import timedelta

import pytest

from registry.conformance import FULL, LAUNCHING, LONG_AGO, NOON, RegistryConformance, RegistryUnderTest
from registry.errors import RegistryUnusableError
from registry.memory import MemoryRegistry
from registry.model import RegistryFault, WorkerState


class Clock:
    def __init__(self):
        self.now = NOON

    def set(self, now):
        self.now = now


def empty() -> tuple[MemoryRegistry, Clock]:
    clock = Clock()
    return MemoryRegistry("prod", now=lambda: clock.now), clock


class TestMemoryRegistry(RegistryConformance):
    @pytest.fixture
    def registry(self):
        memory, clock = empty()

        def rewind() -> None:
            memory.contents.updated_at = LONG_AGO

        return RegistryUnderTest(reader=memory, writer=memory, set_now=clock.set, rewind=rewind)


class TestItsSeams:
    @pytest.mark.parametrize("fault", list(RegistryFault))
    def test_a_fault_refuses_every_reading_until_it_is_taken_away(self, fault):
        memory, _ = empty()
        memory.add(FULL)
        memory.fault = fault

        with pytest.raises(RegistryUnusableError) as refused:
            memory.snapshot()
        with pytest.raises(RegistryUnusableError):
            memory.lookup("i-1", None)

        memory.fault = None
        assert refused.value.fault is fault
        assert memory.snapshot().workers == (FULL,)

    def test_a_row_can_be_changed_just_before_a_reading(self):
        memory, _ = empty()
        memory.add(LAUNCHING)
        memory.before_reading = lambda: memory.set_state("w-2", WorkerState.FAILED)

        (row,) = memory.lookup("i-9", "w-2").workers

        assert row.state is WorkerState.FAILED

    def test_a_backup_that_was_put_back_and_moved_on_is_told_by_its_mark(self):
        memory, clock = empty()
        memory.add(FULL)
        saved = memory.save()
        memory.add(LAUNCHING)
        remembered = memory.snapshot()

        memory.restore(saved)
        assert memory.snapshot().identity.epoch < remembered.identity.epoch

        clock.set(NOON + timedelta(days=1))
        memory.add(replace(LAUNCHING, worker_id="w-3"))
        moved_on = memory.snapshot(remembered_epoch=remembered.identity.epoch)
        assert moved_on.identity.epoch == remembered.identity.epoch
        assert moved_on.remembered_nonce != remembered.nonce
