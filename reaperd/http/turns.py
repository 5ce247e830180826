"""How soon a thread has to let another one run, in the whole process.

Python's default is 5 ms, for each of the several times that a scrape waits for its turn: beside a pass that decides on
5,000 machines it took nine times as long as without. Turns as short as an answer needs them would cost a pass, whose
threads read many regions side by side, a sixth of its speed. So everybody else waits for a turn by a timer that may be
late (PR_SET_TIMERSLACK in prctl(2)): who answers is let in at once, and not soon interrupted. `bench/scrape.py`
measures it.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path

SHORT_SECONDS = 0.00001
LONG_SECONDS = 0.0001
"""Where no timer can be made late: what a scrape can live with, and a pass too."""
EAGER_NANOSECONDS = 1_000
PATIENT_NANOSECONDS = 1_000_000
"""Every other wait of the process ends that much later too, at the most: each is for something slower."""

_PROC = Path("/proc")


class Turns:
    """The length of a turn while the server runs."""

    def __init__(self, proc: Path = _PROC) -> None:
        """Change nothing yet. `proc` is where the system tells of threads."""
        self._proc = proc
        self._seconds_before = sys.getswitchinterval()
        self._slack_before = ""

    def begin(self) -> None:
        """Shorten it, and have this thread be patient, with all those that it starts from now on."""
        with suppress(OSError):
            self._slack_before = self._file().read_text(encoding="ascii").strip()
        seconds = SHORT_SECONDS if self._slack_before and self._wait_for(PATIENT_NANOSECONDS) else LONG_SECONDS
        sys.setswitchinterval(min(self._seconds_before, seconds))

    def hurry(self) -> None:
        """Have this thread, which answers, be let in at once."""
        self._wait_for(EAGER_NANOSECONDS)

    def end(self) -> None:
        """Make it again what it was before."""
        sys.setswitchinterval(self._seconds_before)
        if self._slack_before:
            self._wait_for(int(self._slack_before))

    def _wait_for(self, nanoseconds: int) -> bool:
        """Set how late the timers of this thread may be. False where the system has no such thing, or forbids it."""
        try:
            self._file().write_text(str(nanoseconds), encoding="ascii")
        except OSError:
            return False
        return True

    def _file(self) -> Path:
        return self._proc / str(threading.get_native_id()) / "timerslack_ns"
