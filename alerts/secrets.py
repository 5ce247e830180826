"""Secrets of channels, from where they are kept. They are read each time, so that a new one needs no restart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from alerts.errors import DeliveryError

LONGEST = 4_096
"""Bytes. A longer file is not a secret but a mistake."""

Secret = Callable[[], bytes]


def from_file(path: Path) -> Secret:
    """Return what reads a secret from a file, without the blanks around it."""

    def read() -> bytes:
        try:
            with path.open("rb") as file:
                return _checked(file.read(LONGEST + 1).strip(), str(path))
        except OSError as error:
            message = f"the secret in {path} cannot be read: {error.strerror or type(error).__name__}"
            raise DeliveryError(message) from error

    return read


def from_environment(name: str, environment: Mapping[str, str]) -> Secret:
    """Return what reads a secret from a variable, without the blanks around it."""

    def read() -> bytes:
        return _checked(environment.get(name, "").strip().encode("utf-8", "surrogateescape"), f"the variable {name}")

    return read


def _checked(secret: bytes, where: str) -> bytes:
    if not secret or len(secret) > LONGEST:
        message = f"{where} holds no secret of 1 to {LONGEST} bytes"
        raise DeliveryError(message)
    return secret
