"""Ctrl-C, and once more if nothing came of it."""

from __future__ import annotations

import signal
import threading
from types import FrameType

AGAIN_SECONDS = 2.0
"""How long the first one has to take effect: what a command leaves behind is done in less."""

_told = threading.Event()
_NEVER = threading.Event()


def interrupt_surely() -> None:
    """Have SIGINT raise KeyboardInterrupt, as ever, and again every two seconds for as long as the process lives.

    Python raises it wherever the main thread happens to be. In a finalizer, or in a callback of the import system, it
    is only written down, and a command that waits for a cloud would go on waiting. Commands that end in their own way
    set a handler of their own, and this one has no part in it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def _interrupted(number: int, frame: FrameType | None) -> None:
    if not _told.is_set():
        _told.set()
        threading.Thread(target=_again, name="interrupt", daemon=True).start()
    signal.default_int_handler(number, frame)


def _again() -> None:
    main = threading.main_thread().ident
    while main is not None:
        _NEVER.wait(AGAIN_SECONDS)
        # To the thread, so that it ends the call that it waits in.
        signal.pthread_kill(main, signal.SIGINT)
