"""Basic auth against bcrypt hashes.

bcrypt is slow on purpose: a scrape each few seconds must not pay for it each time, and a stranger who guesses must not
take all the threads.
"""

from __future__ import annotations

import base64
import hashlib
import os
import threading
from collections.abc import Mapping
from enum import Enum, auto

import bcrypt

_LONGEST_PASSWORD = 72
"""bcrypt reads no further."""
_REMEMBERED = 100
_COMPARING = 4
"""So many threads may be busy with passwords that were not seen before."""


class Admission(Enum):
    """What is said to a caller."""

    ADMITTED = auto()
    REFUSED = auto()
    BUSY = auto()
    """Too many unknown passwords at once: this one was not looked at."""


class BasicAuth:
    """Compares passwords, and remembers which were right by a digest that only this process can make."""

    def __init__(self) -> None:
        """Remember nothing."""
        self._key = os.urandom(32)
        self._right: frozenset[bytes] = frozenset()
        self._places = threading.BoundedSemaphore(_COMPARING)
        self._comparing = threading.Lock()

    def admits(self, header: str, users: Mapping[str, bytes]) -> Admission:
        """Say whether an Authorization header is that of one of the users, given with their hashes."""
        told = _told(header)
        if told is None:
            return Admission.REFUSED
        user, password = told
        digest = self._digest(user, users.get(user, b""), password)
        if user in users and digest in self._right:
            return Admission.ADMITTED
        if not self._places.acquire(blocking=False):
            return Admission.BUSY
        try:
            right = self._compared(user, password, users)
        finally:
            self._places.release()
        if not right:
            return Admission.REFUSED
        self._remember(digest)
        return Admission.ADMITTED

    def _compared(self, user: str, password: bytes, users: Mapping[str, bytes]) -> bool:
        # An unknown user takes as long as a known one: how long it took must not tell which users there are.
        hashed = users.get(user) or next(iter(users.values()))
        with self._comparing:
            same = bcrypt.checkpw(password[:_LONGEST_PASSWORD], hashed)
        return same and user in users and len(password) <= _LONGEST_PASSWORD

    def _remember(self, digest: bytes) -> None:
        with self._comparing:
            kept = self._right if len(self._right) < _REMEMBERED else frozenset[bytes]()
            self._right = kept | {digest}

    def _digest(self, user: str, hashed: bytes, password: bytes) -> bytes:
        digest = hashlib.blake2b(key=self._key)
        for part in (user.encode(), hashed, password):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()


def _told(header: str) -> tuple[str, bytes] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon and b"\0" not in password else None
    except ValueError:
        return None
