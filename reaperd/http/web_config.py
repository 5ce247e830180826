"""TLS and basic auth, from the file that Prometheus' own exporters take (`--web.config.file` of the exporter toolkit).

What the file asks for and we cannot give is an error: a restriction that is silently absent would be worse.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn, TypeVar

import bcrypt
import yaml

from reaperd.errors import WebConfigError
from reaperd.report.logs import Logger

_TOP = ("tls_server_config", "http_server_config", "basic_auth_users")
_TLS = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version")
_FILES = ("cert_file", "key_file", "client_ca_file")
_HTTP = ("http2", "headers")
_HEADERS = (
    "Content-Security-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Frame-Options",
    "X-XSS-Protection",
)
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}

_HASH = re.compile(r"\$2[abxy]\$(?P<cost>[0-9]{2})\$[./A-Za-z0-9]{53}")
_COSTS = range(4, 17)
"""A cost of 16 takes seconds; beyond, one request would keep a processor for minutes."""

_REMEDY = "docs/metrics.md shows what it may hold"

_Table = Mapping[str, object]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConfig:
    """How to talk to clients, and whom to let in."""

    context: ssl.SSLContext | None = None
    """None: without TLS."""
    users: Mapping[str, bytes] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Hashes by user; empty: everybody is let in."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class WebConfigFile:
    """The file, read again when it or a file that it names has changed: certificates rotate without a restart."""

    def __init__(self, path: Path | None, log: Logger) -> None:
        """Read it; None: neither TLS nor auth. Raises WebConfigError."""
        self._path = path
        self._log = log
        self._reading = threading.Lock()
        # Before the reading: what changes meanwhile is then read once more.
        self._files = () if path is None else _named(path)
        self._stamps = _stamps(self._files)
        self._config = WebConfig() if path is None else read_web_config(path)

    def current(self) -> WebConfig:
        """Return what is in force. What cannot be used changes nothing, and is told once."""
        if self._path is not None and self._reading.acquire(blocking=False):
            # Whoever comes meanwhile takes what is there.
            try:
                self._refresh(self._path)
            finally:
                self._reading.release()
        return self._config

    def _refresh(self, path: Path) -> None:
        if _stamps(self._files) == self._stamps:
            return
        self._files = _named(path)
        self._stamps = _stamps(self._files)
        try:
            found = read_web_config(path)
            _no_weaker(path, found, self._config)
            self._config = found
        except WebConfigError as error:
            self._log.error("web_config_rejected", path=str(path), detail=str(error))
        else:
            self._log.info("web_config_reloaded", path=str(path))


def _no_weaker(path: Path, found: WebConfig, before: WebConfig) -> None:
    """Refuse what takes a lock away: a file that is being written is empty for a while, and half full for another."""
    gone = [what for what, locked in _locks(before).items() if locked and not _locks(found)[what]]
    if gone:
        detail = f"it asks for no {' and no '.join(gone)} any more: what was in force stays"
        raise _unusable(path, detail, "If that is meant: systemctl restart reaperd")


def _locks(config: WebConfig) -> Mapping[str, bool]:
    context = config.context
    return {
        "TLS": context is not None,
        "certificates of clients": context is not None and context.verify_mode is ssl.CERT_REQUIRED,
        "password": bool(config.users),
    }


def uses_tls(path: Path) -> bool:
    """Say whether the file asks for TLS. Reads no certificate. Raises WebConfigError."""
    return bool(_parsed(path).get("tls_server_config"))


def read_web_config(path: Path) -> WebConfig:
    """Return what the file says, its certificates loaded. Raises WebConfigError."""
    reader = _Reader(path)
    tables = reader.known(_parsed(path), "", _TOP)
    tls = reader.table(tables, "tls_server_config", _TLS)
    http = reader.table(tables, "http_server_config", _HTTP)
    named = [reader.file(tls, key) for key in _FILES]
    return WebConfig(
        context=reader.context(tls, *named) if tls else None,
        users=MappingProxyType(dict(reader.users(tables.get("basic_auth_users")))),
        headers=MappingProxyType(dict(reader.headers(http.get("headers")))),
    )


class _Reader:
    """Reads one file, and says of everything that is wrong where it stands."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def known(self, table: _Table, where: str, keys: tuple[str, ...]) -> _Table:
        """Return the table, all its keys known."""
        for key in table:
            if key not in keys:
                dotted = f"{where}.{key}" if where else str(key)
                self.refuse(f"{dotted} is not known here (known: {', '.join(keys)})")
        return table

    def table(self, tables: _Table, name: str, keys: tuple[str, ...]) -> _Table:
        """Return one table of the file, empty when it is absent."""
        value = tables.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(f"{name} must be a table of keys and values")
        return self.known(value, name, keys)

    def file(self, tls: _Table, key: str) -> Path | None:
        """Return a path, relative ones beside the file."""
        value = tls.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value or "\0" in value:
            self.refuse(f"tls_server_config.{key} must be a path")
        return self._path.parent / value

    def context(self, tls: _Table, cert: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext:
        """Return the TLS side of a server."""
        if cert is None or key is None:
            self.refuse("tls_server_config needs both cert_file and key_file")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._choice(tls, "min_version", _VERSIONS, "TLS12")
        context.maximum_version = self._choice(tls, "max_version", _VERSIONS, "TLS13")
        if context.minimum_version > context.maximum_version:
            self.refuse("tls_server_config.min_version is above max_version")
        wanted = self._choice(tls, "client_auth_type", _CLIENT_AUTH, "NoClientCert")
        if (client_ca is None) is not (wanted is ssl.CERT_NONE):
            self.refuse("tls_server_config: client_ca_file and client_auth_type belong together")
        context.set_alpn_protocols(["http/1.1"])
        self._load(context, cert, key, client_ca)
        context.verify_mode = wanted
        return context

    def users(self, value: object) -> Iterable[tuple[str, bytes]]:
        """Yield the users and their hashes."""
        for user, hashed in self._texts(value, "basic_auth_users"):
            if not _is_hash(hashed):
                # The value is not repeated: it may be the password itself.
                self.refuse(
                    f"basic_auth_users.{user} must be a bcrypt hash of cost {_COSTS[0]} to {_COSTS[-1]} "
                    f"(`htpasswd -nBC 10 {user}` prints one)"
                )
            yield user, hashed.encode()

    def headers(self, value: object) -> Iterable[tuple[str, str]]:
        """Yield the headers that every answer gets."""
        for name, text in self._texts(value, "http_server_config.headers"):
            if name not in _HEADERS:
                self.refuse(f"http_server_config.headers.{name} cannot be set (known: {', '.join(_HEADERS)})")
            if text and not (text.isascii() and text.isprintable()):
                self.refuse(f"http_server_config.headers.{name} must be plain text on one line")
            if text:
                yield name, text

    def refuse(self, detail: str) -> NoReturn:
        """Raise the error that says so."""
        raise _unusable(self._path, detail)

    def _texts(self, value: object, where: str) -> Iterable[tuple[str, str]]:
        if value is None:
            return
        if not isinstance(value, dict):
            self.refuse(f"{where} must be a table of names and texts")
        for name, text in value.items():
            if not isinstance(name, str) or not isinstance(text, str):
                self.refuse(f"{where}: names and values must be text: put them in quotes")
            yield name, text

    def _choice(self, tls: _Table, key: str, choices: Mapping[str, T], default: str) -> T:
        value = tls.get(key, default)
        if not isinstance(value, str) or value not in choices:
            self.refuse(f"tls_server_config.{key} must be one of {', '.join(choices)}")
        return choices[value]

    def _load(self, context: ssl.SSLContext, cert: Path, key: Path, client_ca: Path | None) -> None:
        try:
            context.load_cert_chain(cert, key, password=self._ask_nobody)
            if client_ca is not None:
                context.load_verify_locations(client_ca)
        except ssl.SSLError as error:
            why = error.reason or "no certificate in it"
            self.refuse(f"its certificates cannot be loaded, or do not belong together: {why}")
        except OSError as error:
            named = ", ".join(str(file) for file in (cert, key, client_ca) if file is not None)
            self.refuse(f"a certificate cannot be read ({named}): {error.strerror}")

    def _ask_nobody(self) -> NoReturn:
        # Without this, OpenSSL asks on the terminal, and the daemon waits for ever.
        self.refuse("tls_server_config.key_file is encrypted: store it without a passphrase")


def _is_hash(text: str) -> bool:
    found = _HASH.fullmatch(text)
    if found is None or int(found["cost"]) not in _COSTS:
        return False
    # Not every salt of the right form is one, and the one who knows says so only when it compares. Here it does that
    # at the lowest cost, whatever the hash's own.
    cheap = f"{text[:4]}{_COSTS[0]:02}{text[6:]}"
    try:
        bcrypt.checkpw(b"", cheap.encode())
    except ValueError:
        return False
    return True


def _parsed(path: Path) -> _Table:
    try:
        document: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unusable(path, f"it cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A day that no month has is a ValueError of the library's, and so is a byte that is no text.
        raise _unusable(path, f"it is no YAML{_place(error)}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _unusable(path, "it must be a table of keys and values")
    return document


def _named(path: Path) -> tuple[Path, ...]:
    """Return the file and those that it names, as far as it can be read: a broken one is mended there, too."""
    try:
        tls = _parsed(path).get("tls_server_config")
    except WebConfigError:
        return (path,)
    named = [tls.get(key) for key in _FILES] if isinstance(tls, dict) else []
    return (path, *(path.parent / name for name in named if isinstance(name, str) and "\0" not in name))


def _place(error: Exception) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return "" if mark is None else f" (line {mark.line + 1})"


def _unusable(path: Path, detail: str, remedy: str = _REMEDY) -> WebConfigError:
    return WebConfigError(f"http.web_config_file {path}", detail, remedy)


def _stamps(files: Iterable[Path]) -> tuple[object, ...]:
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> object:
    """Return what changes when a file does: a rotated one may be a new file of the same second."""
    try:
        found = file.stat()
    except OSError as error:
        return error.errno
    return found.st_mtime_ns, found.st_ino, found.st_size
