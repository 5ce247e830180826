"""A receiver of alerts on the loopback: keeps what it is sent, and fails, hangs or drips when it is told to."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DRIP_SECONDS = 0.02
DRIPS = 200
"""So many bytes, and then the connection is closed: a client that waits for each of them shall end, too."""


@dataclass(frozen=True)
class Received:
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes


class Receiver:
    """An HTTP server in a thread, on a free port; HTTPS with a context. Answers 200 until it is told otherwise."""

    def __init__(self, tls=None):
        self.requests: list[Received] = []
        self.closing = threading.Event()
        self._status, self._headers, self._text, self._after = 200, (), "", 0
        self.behaviour = "answer"
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.receiver = self
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def answer(self, status, *, headers=(), text="", after=0):
        """Answer so, once so many requests were taken."""
        self._status, self._headers, self._text = status, tuple(headers), text
        self._after = len(self.requests) + after
        self.behaviour = "answer"

    def hang(self):
        """Take a request, and say nothing until the end."""
        self.behaviour = "hang"

    def drip(self, where="headers"):
        """Begin an answer, and send a byte now and then of its `headers` or its `body`, for some seconds."""
        self.behaviour = f"drip {where}"

    def flood(self):
        """Answer with a body that never ends, as fast as it is read."""
        self.behaviour = "flood"

    def babble(self):
        """Answer with what is no HTTP."""
        self.behaviour = "babble"

    def close(self):
        """Let nobody listen here."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply_to(self, number):
        """Return status, headers and text for the request with this number, from 1."""
        if number <= self._after:
            return 200, (), ""
        return self._status, self._headers, self._text


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    receiver: Receiver

    def handle_error(self, request, client_address):
        """Say nothing: whoever gave up in time is what the tests want."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self):
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver.requests.append(Received(self.command, self.path, headers, body))
        getattr(self, receiver.behaviour.replace(" ", "_"))(receiver)

    def do_GET(self):
        self.do_POST()

    def answer(self, receiver):
        status, headers, text = receiver.reply_to(len(receiver.requests))
        body = text.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def hang(self, receiver):
        receiver.closing.wait()

    def drip_headers(self, receiver):
        self._drip(receiver, b"HTTP/1.1 200 OK\r\nX-Long: ")

    def drip_body(self, receiver):
        self._drip(receiver, self._start(receiver) + b"Content-Length: 60000\r\n\r\n")

    def _start(self, receiver):
        status, _, _ = receiver.reply_to(len(receiver.requests))
        return f"HTTP/1.1 {status} As Told\r\n".encode()

    def _drip(self, receiver, start):
        self.wfile.write(start)
        for _ in range(DRIPS):
            if receiver.closing.wait(DRIP_SECONDS):
                break
            self.wfile.write(b"x")

    def flood(self, receiver):
        self.wfile.write(self._start(receiver) + b"\r\n")
        while not receiver.closing.is_set():
            self.wfile.write(b"x" * 65_536)

    def babble(self, receiver):
        self.wfile.write(b"220 mail.example.org ESMTP\r\n")

    def log_message(self, *_):
        """Keep the tests' output clean."""
