"""What systemd hears, over real sockets of both kinds."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from reaperd.daemon.notify import Notifier


class Manager:
    """The end of systemd."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.socket.settimeout(5)

    def heard(self) -> list[str]:
        return self.socket.recv(65_536).decode().split("\n")

    def silent(self) -> bool:
        self.socket.setblocking(False)
        try:
            self.socket.recv(65_536)
        except BlockingIOError:
            return True
        return False


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@reaperd-test-{secrets.token_hex(8)}"
    one = Manager(address)
    with closing(one.socket):
        yield one


def told(manager: Manager) -> Notifier:
    return Notifier.from_environment({"NOTIFY_SOCKET": manager.address})


def test_the_start_is_told_with_a_status(manager: Manager):
    told(manager).ready("watching 3 scopes")

    assert manager.heard() == ["READY=1", "STATUS=watching 3 scopes"]


def test_everything_else_is_told_in_the_words_of_the_protocol(manager: Manager):
    notifier = told(manager)

    notifier.status("all is well")
    notifier.reloading(12_345_678)
    notifier.stopping("finishing a pass")
    notifier.alive()

    assert [manager.heard() for _ in range(4)] == [
        ["STATUS=all is well"],
        ["RELOADING=1", "MONOTONIC_USEC=12345678"],
        ["STOPPING=1", "STATUS=finishing a pass"],
        ["WATCHDOG=1"],
    ]


def test_a_status_cannot_say_anything_but_a_status(manager: Manager):
    told(manager).status("aws/us-east-1\nWATCHDOG=trigger\r\n\x1b[31mred\u2028\udc80 end")

    assert manager.heard() == ["STATUS=aws/us-east-1 WATCHDOG=trigger [31mred end"]


def test_a_long_status_still_arrives(manager: Manager):
    told(manager).ready("ü" * 100_000)

    ready, status = manager.heard()
    assert (ready, status) == ("READY=1", f"STATUS={'ü' * 400}")


def test_without_a_manager_nothing_is_sent(manager: Manager):
    notifier = Notifier.from_environment({})

    notifier.ready("ready")
    notifier.alive()

    assert manager.silent()


@pytest.mark.parametrize("address", ["", "relative/path", "vsock:2:1234", "/nowhere/at/all", "@", "/" + "x" * 300])
def test_an_address_where_nobody_listens_is_no_error(address: str):
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": address})

    notifier.ready("ready")
    notifier.stopping("stopping")


def test_a_manager_that_went_away_is_no_error(manager: Manager):
    notifier = told(manager)
    notifier.alive()
    assert manager.heard() == ["WATCHDOG=1"]
    manager.socket.close()

    notifier.alive()
    notifier.stopping("stopping")


def test_a_manager_that_does_not_read_holds_nobody_up_for_ever(manager: Manager):
    notifier = told(manager)
    # The kernel's queue of datagrams is full long before that.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            for _ in range(100_000):
                other.sendto(b"x", manager.socket.getsockname())

    telling = threading.Thread(target=notifier.alive, daemon=True)
    telling.start()
    telling.join(20)

    assert not telling.is_alive()


@pytest.mark.parametrize(
    ("environ", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, timedelta(seconds=30)),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, timedelta(seconds=30)),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getppid())}, None),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": ""}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({"WATCHDOG_USEC": "9" * 40}, None),
    ],
)
def test_the_watchdog_is_fed_only_where_this_process_is_watched(environ: dict[str, str], interval: timedelta | None):
    assert Notifier.from_environment(environ).watchdog_interval == interval
