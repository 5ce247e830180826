"""What a command gives a pass: the clock, the signals, and a line that moves on a terminal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from reaperd.cli.options import say
from reaperd.cli.progress import progress_line
from reaperd.clock import SystemClock

if TYPE_CHECKING:
    from reaperd.ledger.alarms import Announced
    from reaperd.wiring.passes import Surroundings


@contextmanager
def surroundings(announced: Callable[[Announced], None] | None = None) -> Iterator[Surroundings]:
    """Give what a pass needs; SIGTERM and SIGINT ask it to stop instead of ending it in the middle."""
    from reaperd.wiring.passes import Surroundings, unheard  # noqa: PLC0415 - heavy

    with patience() as asked, progress_line() as progress:
        yield Surroundings(
            clock=SystemClock(),
            stopping=asked.is_set,
            progress=progress,
            warn=say,
            announced=announced or unheard,
        )


@contextmanager
def patience() -> Iterator[threading.Event]:
    """Give what SIGTERM and SIGINT set, instead of ending the process."""
    asked = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        asked.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def onlooking() -> Iterator[Surroundings]:
    """Give what a sweep needs. It changes nothing anywhere, so a signal may end it where it is."""
    from reaperd.wiring.passes import Surroundings  # noqa: PLC0415 - heavy

    with progress_line() as progress:
        yield Surroundings(clock=SystemClock(), stopping=lambda: False, progress=progress, warn=say)
