"""The dead man's switch: somebody elsewhere is called after each complete pass, and raises the alarm when it stops."""

from __future__ import annotations

import threading
from collections.abc import Callable

from alerts.errors import ChannelSetupError, DeliveryError
from alerts.text import visible
from reaperd.delivery.postman import LONGEST_ERROR
from reaperd.report.logs import Logger

Call = Callable[[], None]
"""Calls once. Raises ChannelSetupError or DeliveryError."""


class Pinger:
    """Calls from a thread of its own, once for any number of passes that ended meanwhile."""

    def __init__(self, log: Logger) -> None:
        """Nothing is called before there is a call to make."""
        self.call: Call | None = None
        """None: nobody is to be called."""
        self._log = log
        self._waking = threading.Event()
        self._ending = False
        self._fails = False
        self._thread = threading.Thread(target=self._run, name="alerts-ping", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ping(self) -> None:
        """Call soon. Returns at once."""
        self._waking.set()

    def stop(self) -> None:
        """Call no more. A call that hangs is left behind."""
        self._ending = True
        self._waking.set()

    def _run(self) -> None:
        while True:
            self._waking.wait()
            self._waking.clear()
            if self._ending:
                return
            if self.call is not None:
                self._tell(pinged(self.call))

    def _tell(self, trouble: str) -> None:
        # Whoever is called says that nobody called; the log says it once, and when it works again.
        if trouble and not self._fails:
            self._log.warning("ping_failed", detail=trouble)
        elif self._fails and not trouble:
            self._log.info("ping_works_again")
        self._fails = bool(trouble)


def pinged(call: Call) -> str:
    """Call; return what went wrong, empty when nothing did."""
    try:
        call()
    except (ChannelSetupError, DeliveryError) as error:
        return visible(str(error), LONGEST_ERROR)
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not silence the calls for ever: it is told
        return f"an error that nobody expected: {type(error).__name__}"
    return ""
