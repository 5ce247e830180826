"""Listening, threads, and clients that keep us waiting."""

from __future__ import annotations

import resource
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog

from reaperd.errors import HttpError, PortTakenError
from reaperd.http.basic_auth import BasicAuth
from reaperd.http.connection import Guest, House, attend
from reaperd.http.server import WORKERS, HttpServer, host_and_port
from reaperd.http.web_config import WebConfigFile
from tests.unit.http.conftest import HOST, SOON, Authority, Running, asked, drained, secure, until

STALLED = 200


# ---------------------------------------------------------------- where to listen


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:9745", ("127.0.0.1", 9745)),
        ("[::1]:9745", ("::1", 9745)),
        ("[::]:9745", ("::", 9745)),
        (":9745", ("", 9745)),
        ("metrics.example.org:1", ("metrics.example.org", 1)),
    ],
)
def test_an_address_is_a_host_and_a_port(listen, address):
    assert host_and_port(listen) == address


@pytest.mark.parametrize("listen", ["", "9745", "a:b", "a:65536", "::1:9745", " a:1", "http://a:1", "a:1\n"])
def test_any_other_address_is_refused_with_an_example(listen):
    with pytest.raises(HttpError, match=r"it is not host:port\. Write it like 127\.0\.0\.1:9745\.$"):
        host_and_port(listen)


def test_a_free_port_is_taken_and_told(serve: Callable[..., Running]):
    running = serve()

    assert running.server.address == (HOST, running.port)
    assert running.port > 0
    assert running.events[0] | {"host": HOST, "port": running.port, "tls": False} == running.events[0]


def test_the_loopback_of_ipv6_is_listened_on(serve: Callable[..., Running]):
    running = serve(listen="[::1]:0")

    with socket.create_connection(("::1", running.port), timeout=SOON) as sock:
        sock.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b"200 OK" in drained(sock)


def test_a_taken_port_is_told_with_the_command_that_finds_who_has_it(serve: Callable[..., Running]):
    taken = serve().port

    with pytest.raises(PortTakenError) as told:
        serve(listen=f"{HOST}:{taken}")

    assert str(told.value) == (
        f"http.listen {HOST}:{taken}: another process listens there. See which one with: ss -ltnp 'sport = :{taken}'. "
        "Stop it, or set another http.listen."
    )


@pytest.mark.parametrize(
    ("listen", "detail"),
    [("192.0.2.1:0", "that is no address of this machine"), ("no-such-host.invalid:0", "no address is known of")],
)
def test_an_address_that_is_not_ours_is_told(serve: Callable[..., Running], listen, detail):
    with pytest.raises(HttpError, match=detail):
        serve(listen=listen)


def test_a_server_that_was_not_started_has_no_address_and_stops(site: Running):
    server = HttpServer(f"{HOST}:0", site.desk, None, None)

    server.stop()
    with pytest.raises(RuntimeError, match="was not started"):
        _ = server.address


# ---------------------------------------------------------------- the end


def test_it_stops_quickly_with_clients_in_every_state(serve: Callable[..., Running]):
    before, switching = set(threading.enumerate()), sys.getswitchinterval()
    running = serve()
    entered, leave = threading.Event(), threading.Event()
    running.desk.before = lambda: (entered.set(), leave.wait(SOON))
    with ExitStack() as stack:
        silent, half, asking = (stack.enter_context(running.connect()) for _ in range(3))
        half.sendall(b"GET /met")
        asking.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert entered.wait(SOON)

        began = time.monotonic()
        threading.Timer(0.2, leave.set).start()
        running.server.stop()
        took = time.monotonic() - began

        assert took < 2
        assert drained(silent) == drained(half) == b""
    until(lambda: not {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("http-")})
    assert sys.getswitchinterval() == pytest.approx(switching)


def test_a_port_is_free_again_after_the_end(serve: Callable[..., Running]):
    first = serve()
    port = first.port
    first.ask("/healthz")

    first.server.stop()

    assert serve(listen=f"{HOST}:{port}").ask("/healthz").status == 200


def test_its_threads_keep_no_process_alive(site: Running):
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("http-"))


# ---------------------------------------------------------------- clients that keep us waiting


def stalled(running: Running, stack: ExitStack, said: bytes) -> list[socket.socket]:
    clients = [stack.enter_context(running.connect()) for _ in range(STALLED)]
    for client in clients:
        if said:
            try:
                client.sendall(said)
            except OSError:
                continue  # it was shown out already, which is the point
    return clients


@pytest.mark.parametrize("said", [b"", b"G", b"GET /metrics HTTP/1.1\r\nX: "], ids=["silent", "a byte", "half"])
def test_stalled_clients_do_not_hold_up_a_scrape(site: Running, said):
    with ExitStack() as stack:
        stalled(site, stack, said)

        began = time.monotonic()
        assert site.ask("/metrics").status == 200
        assert time.monotonic() - began < 2


@pytest.mark.parametrize("said", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"], ids=["silent", "a byte", "half"])
def test_stalled_handshakes_do_not_hold_up_a_scrape(serve: Callable[..., Running], tls_file: Path, ca: Authority, said):
    running = serve(tls_file)
    with ExitStack() as stack:
        stalled(running, stack, said)

        began = time.monotonic()
        assert asked(secure(running, ca.trust()), "/metrics").status == 200
        assert time.monotonic() - began < 2


def test_the_longest_waited_for_gives_up_its_place(site: Running):
    with ExitStack() as stack:
        clients = []
        for number in range(WORKERS):
            clients.append(stack.enter_context(site.connect()))
            clients[-1].sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert b"200 OK" in clients[-1].recv(65536), number

        assert clients[0].recv(1) == b""
        for client in clients[1:]:
            client.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            assert b"200 OK" in client.recv(65536)


class SlowToReturn(socket.socket):
    """Its thread gets its turn again long after what it sent has arrived, as under load."""

    clock = 1.0

    def sendall(self, *sent: Any) -> None:
        super().sendall(*sent)
        self.clock += 100.0


def test_a_client_is_waited_for_since_its_answer_was_made(site: Running):
    with socket.create_server((HOST, 0)) as listener:
        theirs = socket.create_connection(listener.getsockname(), timeout=SOON)
        accepted, _ = listener.accept()
    with theirs, SlowToReturn(fileno=accepted.detach()) as sock:
        guest = Guest(sock, since=0.0)
        log = structlog.get_logger(logger_factory=structlog.ReturnLogger)
        web = WebConfigFile(None, log)
        house = House(desk=site.desk, web=web, auth=BasicAuth(), log=log, monotonic=lambda: sock.clock)
        theirs.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        theirs.shutdown(socket.SHUT_WR)

        attend(guest, house)

        sock.close()
        assert b"200 OK" in drained(theirs)
        assert (guest.since, sock.clock) == (1.0, 101.0)


def test_a_client_whose_answer_is_being_made_is_not_shown_out(site: Running):
    entered, leave = threading.Event(), threading.Event()
    site.desk.before = lambda: (entered.set(), leave.wait(SOON))
    with ExitStack() as stack:
        asking = stack.enter_context(site.connect())
        asking.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert entered.wait(SOON)

        stalled(site, stack, b"")
        leave.set()

        assert b"reaperd_leader 1.0" in drained(asking)


def test_a_client_that_does_not_read_its_answer_holds_up_nobody(site: Running):
    site.desk.page = b"x" * 20_000_000
    with ExitStack() as stack:
        for _ in range(WORKERS * 2):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((HOST, site.port))
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")

        assert site.ask("/healthz").status == 200


def test_a_client_that_hangs_up_costs_no_thread(site: Running):
    for said in (b"", b"GET", b"GET /metrics HTTP/1.1\r\n\r\n") * WORKERS:
        with site.connect() as client:
            client.sendall(said)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    assert site.ask("/healthz").status == 200
    assert [event for event in site.events if event["level"] == "error"] == []


def test_a_process_without_file_descriptors_answers_once_it_has_some_again(site: Running):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        # More than threads: the kernel keeps a descriptor ready for each that waits to accept.
        clients = [stack.enter_context(socket.socket()) for _ in range(WORKERS + 4)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            answered = [was_answered(client, site.port) for client in clients]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        assert False in answered
        assert site.ask("/healthz").status == 200
    assert [event for event in site.events if event["level"] == "error"] == []


def was_answered(client: socket.socket, port: int) -> bool:
    client.settimeout(0.3)
    try:
        client.connect((HOST, port))
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        return b"200 OK" in drained(client)
    except OSError:
        return False


def test_a_scrape_does_not_wait_for_another_one(site: Running):
    entered, leave = threading.Event(), threading.Event()
    site.desk.before = lambda: (entered.set(), leave.wait(SOON))
    with site.connect() as slow:
        slow.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert entered.wait(SOON)

        assert site.ask("/healthz").status == 200
        leave.set()
        assert b"reaperd_leader" in drained(slow)


def test_a_client_of_plain_http_is_told_that_the_port_speaks_tls(serve: Callable[..., Running], tls_file: Path):
    running = serve(tls_file)

    reply = running.ask("/metrics")

    assert (reply.status, reply.body) == (400, "this port speaks TLS: use https\n")


def test_a_scrape_over_tls_is_answered_over_one_connection(
    serve: Callable[..., Running], tls_file: Path, ca: Authority
):
    connection = secure(serve(tls_file), ca.trust())

    for _ in range(3):
        connection.request("GET", "/metrics")
        assert connection.getresponse().read() == b"reaperd_leader 1.0\n"
    connection.close()


def test_an_old_version_of_tls_is_refused(serve: Callable[..., Running], tls_file: Path, ca: Authority):
    old = ca.trust()
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    tls_file.write_text(tls_file.read_text().replace("}", ", min_version: TLS13}"))

    with pytest.raises((ssl.SSLError, ConnectionError)):
        asked(secure(serve(tls_file), old), "/metrics")
