"""What the process tells the service manager: sd_notify(3), which is a datagram with lines of `KEY=VALUE`.

The variables are left in the environment. The only children of this process are credential helpers that the SDK
starts, and a unit with `NotifyAccess=main` does not listen to those.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import timedelta

_PATIENCE_SECONDS = 1.0
"""How long a message may wait for room in the manager's queue. While the manager restarts itself, nobody empties it."""

_LONGEST_STATUS = 400
"""In characters. A message may have 4096 bytes, and a person sees the status on one line of `systemctl status`."""


class Notifier:
    """Tells systemd how the service is. Without a manager, or when it does not listen, every call does nothing.

    Safe to use from several threads. Never raises: a service must not end because nobody wanted to hear of it.
    """

    def __init__(self, address: str = "", watchdog_interval: timedelta | None = None) -> None:
        """Send to this socket: a path, or `@` and an abstract name; with an empty one nothing is sent."""
        # AF_UNIX alone: the vsock of a virtual machine's own manager is meant for no service.
        self._address = address if address.startswith(("/", "@")) else ""
        self._watchdog_interval = watchdog_interval

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Notifier:
        """Return a notifier for the manager that started this process, if one did."""
        return cls(environ.get("NOTIFY_SOCKET", ""), _watchdog_interval(environ))

    @property
    def watchdog_interval(self) -> timedelta | None:
        """Return within which time `alive` has to be called again; None: nobody waits for it."""
        return self._watchdog_interval

    def ready(self, status: str) -> None:
        """Tell that the start, or a reload, is over."""
        self._send("READY=1", _status(status))

    def status(self, text: str) -> None:
        """Tell a person what is going on."""
        self._send(_status(text))

    def reloading(self, monotonic_usec: int) -> None:
        """Tell that a reload has begun, and when by CLOCK_MONOTONIC: a reload that was asked for later is another."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={monotonic_usec}")

    def stopping(self, status: str) -> None:
        """Tell that the end has begun."""
        self._send("STOPPING=1", _status(status))

    def alive(self) -> None:
        """Feed the watchdog."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(_PATIENCE_SECONDS)
                sender.sendto("\n".join(lines).encode(), address)
        except OSError:
            # The manager is gone, or does not listen. It finds out by itself what it was not told.
            return


def _watchdog_interval(environ: Mapping[str, str]) -> timedelta | None:
    """Return the interval that the manager set for this process, and not for one that started it."""
    if environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    told = environ.get("WATCHDOG_USEC", "")
    # Longer ones than 15 digits (31 years) are no interval, and no timedelta either.
    if not (told.isascii() and told.isdigit() and len(told) <= 15) or int(told) == 0:  # noqa: PLR2004 - explained above
        return None
    return timedelta(microseconds=int(told))


def _status(text: str) -> str:
    """Return the status on one line: what cannot be seen could end the line, and begin one that says READY=1."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return f"STATUS={shown[:_LONGEST_STATUS]}"
