"""The HTTP server: a fixed number of threads, each of which takes one client after the other.

A thread that accepts also shakes hands, reads and answers, so nobody who connects and stays silent holds up the
others. When the threads run short, the client that has kept us waiting longest gives up its place.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import threading
from pathlib import Path

from reaperd.clock import SystemClock
from reaperd.errors import HttpError, PortTakenError
from reaperd.http.basic_auth import BasicAuth
from reaperd.http.connection import Guest, House, attend
from reaperd.http.desk import Desk
from reaperd.http.turns import Turns
from reaperd.http.web_config import WebConfigFile
from reaperd.report.logs import Logger

WORKERS = 16
"""Also the number of clients at one time: a Prometheus pair, two probes and a person are five."""

_BACKLOG = 1024
"""Of a flood, what is turned away by the kernel comes back after a second, and a scrape with it."""
_PAUSE_SECONDS = 0.1
"""After an accept that failed: the process may be out of file descriptors, which no haste cures."""
_PATIENCE_SECONDS = 2.0
"""For the threads, when the server stops."""

_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]*):(?P<port>[0-9]{1,5})", re.ASCII)
_LAST_PORT = 65_535


class HttpServer:
    """Serves the desk's answers until it is stopped. Its threads keep no process alive."""

    def __init__(self, listen: str, desk: Desk, web_config: Path | None, log: Logger) -> None:
        """Keep what is needed. Nothing is opened yet."""
        self._listen = listen
        self._desk = desk
        self._web_config = web_config
        self._log = log
        self._clock = SystemClock()
        self._listener: socket.socket | None = None
        self._stopping = threading.Event()
        self._threads: tuple[threading.Thread, ...] = ()
        self._guests = _Guests()
        self._turns = Turns()

    def start(self) -> None:
        """Listen and serve.

        Raises:
            PortTakenError: if another process listens there.
            WebConfigError: if the file of TLS and basic auth cannot be used.
            HttpError: if the address cannot be had.
        """
        web = WebConfigFile(self._web_config, self._log)
        house = House(desk=self._desk, web=web, auth=BasicAuth(), log=self._log, monotonic=self._clock.monotonic)
        self._listener = listener = _listening(self._listen)
        self._threads = tuple(
            threading.Thread(target=self._work, args=(listener, house), name=f"http-{number}", daemon=True)
            for number in range(WORKERS)
        )
        self._turns.begin()
        for thread in self._threads:
            thread.start()
        host, port = self.address
        self._log.info("http_listening", host=host, port=port, tls=web.current().context is not None)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port, the port that was had if any was asked for."""
        if self._listener is None:
            msg = "the server was not started"
            raise RuntimeError(msg)
        host, port, *_ = self._listener.getsockname()
        return host, port

    def stop(self) -> None:
        """Accept nobody any more, and end the conversations."""
        self._stopping.set()
        listener, self._listener = self._listener, None
        if listener is None:
            return
        self._turns.end()
        # What is blocked in accept() wakes up by this, not by close().
        _ended(listener)
        listener.close()
        ends_at = self._clock.monotonic() + _PATIENCE_SECONDS
        for thread in self._threads:
            self._guests.show_all_out()
            thread.join(max(ends_at - self._clock.monotonic(), 0))

    # ------------------------------------------------------------ one thread

    def _work(self, listener: socket.socket, house: House) -> None:
        self._turns.hurry()
        while not self._stopping.is_set():
            try:
                sock, _ = listener.accept()
            except OSError as error:
                self._not_accepted(error)
                continue
            try:
                self._receive(sock, house)
            except OSError:
                # It went away, was shown out, or took too long: there is nobody left to tell.
                continue
            except Exception:  # noqa: BLE001 - one client must not cost the server a thread: it is told, and it goes on
                self._log.exception("http_connection_failed")

    def _not_accepted(self, error: OSError) -> None:
        if self._stopping.is_set() or error.errno == errno.ECONNABORTED:
            return
        self._guests.make_room()
        self._stopping.wait(_PAUSE_SECONDS)

    def _receive(self, sock: socket.socket, house: House) -> None:
        context = house.web.current().context
        with sock:
            if context is None:
                self._attend(sock, house)
                return
            # No handshake yet: the guest must be known first, so that it can be shown out in the middle of it.
            with context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False) as wrapped:
                self._attend(wrapped, house)

    def _attend(self, sock: socket.socket, house: House) -> None:
        guest = Guest(sock, self._clock.monotonic())
        self._guests.enter(guest)
        try:
            attend(guest, house)
        finally:
            self._guests.leave(guest)


class _Guests:
    """Who is being served. There are never so many that no thread is left to accept."""

    def __init__(self) -> None:
        self._here: set[Guest] = set()
        self._counting = threading.Lock()

    def enter(self, guest: Guest) -> None:
        """Take one in; the last free thread is not given away."""
        with self._counting:
            self._here.add(guest)
            full = len(self._here) >= WORKERS
        if full:
            self.make_room(spared=guest)

    def leave(self, guest: Guest) -> None:
        """Let one go."""
        with self._counting:
            self._here.discard(guest)

    def make_room(self, spared: Guest | None = None) -> None:
        """Show out whoever has kept us waiting longest."""
        with self._counting:
            waited_for = [guest for guest in self._here if guest is not spared and guest.may_be_shown_out]
            longest = min(waited_for, key=lambda guest: guest.since, default=None)
            if longest is not None:
                longest.show_out()

    def show_all_out(self) -> None:
        """Show everybody out, the answers that are being made included."""
        with self._counting:
            for guest in self._here:
                guest.show_out()


# ---------------------------------------------------------------- where to listen


def host_and_port(listen: str) -> tuple[str, int]:
    """Return what `host:port`, `[::1]:9745` or `:9745` says; no host is every address of the machine.

    Raises:
        HttpError: if it is none of them.
    """
    found = _LISTEN.fullmatch(listen)
    if found is None or int(found["port"]) > _LAST_PORT:
        where, remedy = f"http.listen {listen!r}", "Write it like 127.0.0.1:9745"
        raise HttpError(where, "it is not host:port", remedy)
    return found["host"].strip("[]"), int(found["port"])


def prove_listening(listen: str) -> None:
    """Listen there and stop at once, before anybody could be answered.

    Raises:
        PortTakenError: if another process listens there.
        HttpError: if the address cannot be had.
    """
    _listening(listen).close()


def _listening(listen: str) -> socket.socket:
    host, port = host_and_port(listen)
    where = f"http.listen {listen}"
    try:
        if not host:
            return _everywhere(port)
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except socket.gaierror as error:
        raise HttpError(where, f"no address is known of {host}", "Write an address of this machine") from error
    except OSError as error:
        raise _not_listening(where, port, error) from error


def _everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=_BACKLOG)


def _not_listening(where: str, port: int, error: OSError) -> HttpError:
    match error.errno:
        case errno.EADDRINUSE:
            look = f"See which one with: ss -ltnp 'sport = :{port}'. Stop it, or set another http.listen"
            return PortTakenError(where, "another process listens there", look)
        case errno.EACCES:
            return HttpError(where, "this user may not listen on that port", "Take one above 1023, like 9745")
        case errno.EADDRNOTAVAIL:
            return HttpError(where, "that is no address of this machine", "See which there are with: ip address")
        case _:
            return HttpError(where, os.strerror(error.errno or 0), "Set another http.listen")


def _ended(listener: socket.socket) -> None:
    try:
        listener.shutdown(socket.SHUT_RDWR)
    except OSError:
        # Some systems refuse it for a socket that only listens; they wake accept() up by close().
        return
