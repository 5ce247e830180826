"""A body comes out as it was put in, whole, or not at all."""

from __future__ import annotations

import gzip
import zlib

import pytest

from providers.aws.errors import UnreadablePageError
from providers.aws.gzipped import unpacked

PLAIN = b"<a>text</a>" * 100
PACKED = gzip.compress(PLAIN)


@pytest.mark.parametrize("coding", [None, "", " ", "identity", "Identity"])
def test_what_is_not_packed_is_given_as_it_is(coding: str | None) -> None:
    assert unpacked(PLAIN, coding) == PLAIN


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "x-gzip", " gzip "])
def test_what_is_packed_is_unpacked(coding: str) -> None:
    assert unpacked(PACKED, coding) == PLAIN


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_what_nobody_asked_for_is_refused(coding: str) -> None:
    with pytest.raises(UnreadablePageError):
        unpacked(PACKED, coding)


@pytest.mark.parametrize("kept", range(len(PACKED)))
def test_no_beginning_of_it_passes_for_the_whole(kept: int) -> None:
    with pytest.raises(UnreadablePageError):
        unpacked(PACKED[:kept], "gzip")


@pytest.mark.parametrize("more", [b"\0", b"garbage", PACKED], ids=["nul", "garbage", "another"])
def test_nothing_may_follow_its_end(more: bytes) -> None:
    with pytest.raises(UnreadablePageError):
        unpacked(PACKED + more, "gzip")


def test_another_text_than_the_one_that_was_packed_is_noticed() -> None:
    changed = PACKED[:-8] + bytes([PACKED[-8] ^ 1]) + PACKED[-7:]

    with pytest.raises(UnreadablePageError):
        unpacked(changed, "gzip")


@pytest.mark.parametrize("body", [PLAIN, zlib.compress(PLAIN)], ids=["plain", "zlib"])
def test_what_only_says_that_it_is_gzip_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadablePageError):
        unpacked(body, "gzip")


def test_what_grows_beyond_all_measure_is_not_unpacked() -> None:
    with pytest.raises(UnreadablePageError):
        unpacked(PACKED, "gzip", limit=len(PLAIN) - 1)


def test_what_is_just_not_too_large_is_unpacked() -> None:
    assert unpacked(PACKED, "gzip", limit=len(PLAIN)) == PLAIN
