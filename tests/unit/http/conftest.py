"""A server with a desk that answers what a test wants, certificates, and clients of every kind."""

from __future__ import annotations

import io
import json
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path

import bcrypt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reaperd.http import Probe
from reaperd.http.server import HttpServer
from reaperd.report.logs import build_logger

HOST = "127.0.0.1"
SOON = 10.0
"""Far longer than anything here takes, and far shorter than a test that hangs."""


@dataclass
class Desk:
    """Answers what it was told to answer."""

    page: bytes = b"reaperd_leader 1.0\n"
    alive: Probe = field(default_factory=lambda: Probe(ok=True, text="ok"))
    ready: Probe = field(default_factory=lambda: Probe(ok=True, text="ok"))
    state: Mapping[str, object] = field(default_factory=lambda: {"mode": "dry-run"})
    accepts: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def metrics(self, accept: str) -> tuple[bytes, str]:
        self.accepts.append(accept)
        self.before()
        return self.page, "text/plain; version=0.0.4; charset=utf-8"

    def health(self) -> Probe:
        return self.alive

    def readiness(self) -> Probe:
        return self.ready

    def status(self) -> Mapping[str, object]:
        return self.state


@dataclass
class Running:
    """A server that runs, with its desk and its log."""

    server: HttpServer
    desk: Desk
    stream: io.StringIO

    @property
    def port(self) -> int:
        return self.server.address[1]

    @property
    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=SOON)

    def ask(self, path: str = "/metrics", method: str = "GET", **headers: str) -> Reply:
        return asked(HTTPConnection(HOST, self.port, timeout=SOON), path, method, headers)

    def raw(self, request: bytes) -> bytes:
        """Send bytes and return everything that comes back until the server closes."""
        with self.connect() as sock:
            sock.sendall(request)
            return drained(sock)


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    body: str


def asked(
    connection: HTTPConnection, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> Reply:
    """Ask one question and close."""
    try:
        connection.request(
            method, path, headers={name.replace("_", "-"): text for name, text in (headers or {}).items()}
        )
        return reply_of(connection.getresponse())
    finally:
        connection.close()


def reply_of(answer: HTTPResponse) -> Reply:
    return Reply(answer.status, dict(answer.headers.items()), answer.read().decode())


def drained(sock: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while chunk := sock.recv(65536):
            found += chunk
    return found


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def hashed(password: str, kind: str = "2b") -> str:
    """Return a cheap hash, always the same one: it stands in the names of tests."""
    return bcrypt.hashpw(password.encode(), f"${kind}$04$abcdefghijklmnopqrstuu".encode()).decode()


def until(true: Callable[[], bool]) -> None:
    """Wait until it is, and no longer than for the deadline."""
    ends_at = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < ends_at, "it did not become true"
        time.sleep(0.005)


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(web_config: Path | None = None, listen: str = f"{HOST}:0") -> Running:
        desk, stream = Desk(), io.StringIO()
        log = build_logger(as_json=True, now=lambda: datetime.now(UTC), stream=stream)
        server = HttpServer(listen, desk, web_config, log)
        server.start()
        running.append(Running(server, desk, stream))
        return running[-1]

    yield start
    for each in running:
        each.server.stop()


@pytest.fixture
def site(serve: Callable[..., Running]) -> Running:
    return serve()


# ---------------------------------------------------------------- certificates


@dataclass(frozen=True)
class Authority:
    """A certificate authority of one test."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def issue(self, name: str, *, file: str | None = None) -> tuple[Path, Path]:
        """Write a certificate for a name and 127.0.0.1, and its key; return both paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = signed(name, key, self.key, self.certificate.subject, ca=False)
        cert_path, key_path = self.folder / f"{file or name}.crt", self.folder / f"{file or name}.key"
        cert_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(private(key))
        return cert_path, key_path

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.path))


def authority(folder: Path, name: str = "ca") -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    made = signed(name, key, key, subject(name), ca=True)
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return Authority(folder, name, key, made)


def signed(
    name: str, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey, issuer: x509.Name, *, ca: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address(HOST))])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()), critical=False)
    )
    return builder.sign(by, hashes.SHA256())


def subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def private(key: ec.EllipticCurvePrivateKey, passphrase: bytes | None = None) -> bytes:
    how = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    return authority(tmp_path)


@pytest.fixture
def tls_file(tmp_path: Path, ca: Authority) -> Path:
    """A web config that asks for TLS, its files beside it."""
    ca.issue("server")
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config: {cert_file: server.crt, key_file: server.key}\n")
    return path


def secure(running: Running, context: ssl.SSLContext) -> HTTPSConnection:
    return HTTPSConnection(HOST, running.port, timeout=SOON, context=context)
