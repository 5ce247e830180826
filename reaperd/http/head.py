"""The head of a request, read strictly: a proxy before us must not find another end of the request than we do."""

from __future__ import annotations

import re
from io import BufferedIOBase

# RFC 9112: no blank before the colon, no line that goes on with the one before it, no bare CR.
_FIELD = re.compile(rb"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[^\r\n\0]*)\r?\n")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_FRAMING = (b"content-length", b"transfer-encoding")


class Head:
    """Hands on the lines that the library reads from a client, and remembers them: it forgives what we must not."""

    def __init__(self, source: BufferedIOBase) -> None:
        """Nothing is read yet."""
        self._source = source
        self._lines: list[bytes] = []

    def readline(self, limit: int = -1) -> bytes:
        """Read one line."""
        line = self._source.readline(limit)
        self._lines.append(line)
        return line

    def is_sound(self) -> bool:
        """Say whether what was read has one meaning, as a head of a request, an empty line being its end."""
        fields = [_FIELD.fullmatch(line) for line in self._lines if line not in {b"\r\n", b"\n", b""}]
        found = [(field["name"].lower(), field["value"].rstrip(b" \t")) for field in fields if field is not None]
        framing = [(name, value) for name, value in found if name in _FRAMING]
        if len(found) < len(fields) or len(framing) > 1:
            return False
        return all(name != b"content-length" or _LENGTH.fullmatch(value) for name, value in framing)
