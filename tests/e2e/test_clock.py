"""A wall clock that is set back and forth under the running daemon, by libfaketime."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import daemon
from tests.support.processes import until
from tests.support.site import Site

pytestmark = pytest.mark.timeout(300)

LIBRARY = "faketime/libfaketimeMT.so.1"
STEP = 3600


class FakeTime:
    """How far the wall clock of a process is off."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.set(0)

    def set(self, seconds: int) -> None:
        # Replaced whole: half a line would be no offset.
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.rename(self._file)

    def environment(self) -> dict[str, str]:
        (library,) = (str(path) for path in Path("/usr/lib").glob(f"*/{LIBRARY}"))
        return {
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            # Otherwise the monotonic clock would jump with the wall's, and nothing would be shown.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
        }


@pytest.fixture
def wall(tmp_path: Path) -> Iterator[FakeTime]:
    return FakeTime(tmp_path)


@pytest.mark.parametrize("step", [-STEP, STEP])
def test_a_clock_that_is_set_wrong_stops_terminations_and_not_the_rhythm(site: Site, wall: FakeTime, step: int):
    first = site.orphan()
    with daemon(site, {"audit.interval": "1h"}, env=wall.environment(), cold=True) as running:
        until(lambda: site.accepted() == [first])
        wall.set(step)
        running.until(lambda: running.last().get("reason") == "clock")
        machine = site.orphan(worker="w-meanwhile")
        passes, began = len(running.passes()), time.monotonic()
        running.after_passes(4)
        took = time.monotonic() - began
        wrong = running.passes()[passes:]
        assert running.healthy()

        wall.set(0)
        until(lambda: machine in site.accepted())
        running.until(lambda: running.last().get("outcome") == "complete")

    assert {event["reason"] for event in wrong} == {"clock"}
    # Four intervals of a second, and not an hour.
    assert took < 15
