"""A dead man's switch: somebody elsewhere is called while all is well, and raises the alarm when the calls stop."""

from __future__ import annotations

from alerts.text import visible
from alerts.web import Address, Web

LONGEST_NOTE = 1_000


class Ping:
    """Calls one address, as healthchecks.io and others want it."""

    def __init__(self, address: Address, web: Web) -> None:
        """Keep whom to call."""
        self._address = address
        self._web = web

    def __call__(self, note: str = "") -> None:
        """Call, with a line for whoever looks there.

        Raises:
            DeliveryError: if the call was not answered well.
        """
        if not note:
            self._web.get(self._address)
            return
        text = visible(note, LONGEST_NOTE).encode()
        self._web.post(self._address, text, {"Content-Type": "text/plain; charset=utf-8"})
