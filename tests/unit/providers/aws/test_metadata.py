"""Which machine this is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from providers.aws import own_instance_id


class Imds(ThreadingHTTPServer):
    """EC2's metadata service, version 2."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.token_status = 200
        self.body = b"i-0abc\n"
        self.asked: list[tuple[str, str, str | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Imds

    def do_PUT(self) -> None:
        self._answer(self.server.token_status, b"token")

    def do_GET(self) -> None:
        self._answer(200, self.server.body)

    def _answer(self, status: int, body: bytes) -> None:
        self.server.asked.append((self.command, self.path, self.headers.get("x-aws-ec2-metadata-token")))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def imds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Imds]:
    with Imds() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}/")
        yield server
        server.shutdown()
        thread.join()


def test_tells_the_id_of_this_machine(imds: Imds) -> None:
    assert own_instance_id() == "i-0abc"
    assert imds.asked == [("PUT", "/latest/api/token", None), ("GET", "/latest/meta-data/instance-id", "token")]


def test_asks_nothing_without_a_token(imds: Imds) -> None:
    imds.token_status = 403

    assert own_instance_id() is None
    assert [method for method, _, _ in imds.asked] == ["PUT"]


@pytest.mark.parametrize("status", [400, 500])
def test_a_metadata_service_that_fails_tells_nothing(imds: Imds, status: int) -> None:
    imds.token_status = status

    assert own_instance_id() is None


@pytest.mark.parametrize("body", [b"", b"<html>sign in</html>"])
def test_what_is_no_id_is_none(imds: Imds, body: bytes) -> None:
    imds.body = body

    assert own_instance_id() is None


def test_a_metadata_service_that_is_switched_off_is_not_asked(imds: Imds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    assert own_instance_id() is None
    assert imds.asked == []


def test_a_machine_outside_of_ec2_has_no_id(monkeypatch: pytest.MonkeyPatch) -> None:
    with Imds() as gone:
        port = gone.server_address[1]
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{port}/")

    assert own_instance_id() is None


def test_an_endpoint_that_is_none_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "not a url")

    assert own_instance_id() is None
