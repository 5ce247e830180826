"""A body as it was before it was packed, whole and of a bounded size."""

from __future__ import annotations

import zlib

from providers.aws.errors import UnreadablePageError

MAX_BYTES = 128 * 2**20
"""Of one answer. A page of five hundred machines, each with fifteen interfaces of fifty addresses, is not larger."""

_GZIP = 16 + zlib.MAX_WBITS
"""Only gzip's own format, of which zlib compares length and checksum at the end."""
_PLAIN = frozenset({"", "identity"})
_PACKED = frozenset({"gzip", "x-gzip"})


def unpacked(body: bytes, coding: str | None, *, limit: int = MAX_BYTES) -> bytes:
    """Return the body. `coding` is what the Content-Encoding header says; None without one. `limit` is in bytes.

    Raises:
        UnreadablePageError: if it does not end where it says that it ends, has become another on the way, is packed
            in a way that nobody asked for, or is too large.
    """
    way = (coding or "").strip().lower()
    if way in _PLAIN:
        return body
    if way not in _PACKED:
        msg = "it is packed in a way that nobody asked for"
        raise UnreadablePageError(msg)
    unpacking = zlib.decompressobj(_GZIP)
    try:
        whole = unpacking.decompress(body, limit)
    except zlib.error:
        msg = "it is no gzip"
        raise UnreadablePageError(msg) from None
    if not unpacking.eof:
        msg = f"its gzip is cut short, or larger than {limit} bytes"
        raise UnreadablePageError(msg)
    if unpacking.unused_data:
        msg = "there is more after the end of its gzip"
        raise UnreadablePageError(msg)
    return whole
