"""Which parser there is, and what both are held to."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from providers.aws import markup
from providers.aws.errors import UnreadablePageError
from providers.parsers import Parser

WHOLE = b'<?xml version="1.0" encoding="UTF-8"?>\n<a xmlns="urn:a"><b>c</b></a>'

parsers = pytest.mark.parametrize("parser", Parser)


def loaded_anew() -> ModuleType:
    """Return the module as it is when it is imported now, beside the one that everybody has."""
    spec = importlib.util.spec_from_file_location("markup_anew", markup.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lxml_reads_where_it_is() -> None:
    assert loaded_anew().available_parser() is Parser.LXML


def test_the_standard_library_reads_where_lxml_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)

    without = loaded_anew()

    assert without.available_parser() is Parser.STDLIB
    assert without.tree(WHOLE, Parser.STDLIB)[0].text == "c"


@parsers
def test_a_whole_document_has_a_root(parser: Parser) -> None:
    root = markup.tree(WHOLE, parser)

    assert (root.tag, len(root), root[0].text) == ("{urn:a}a", 1, "c")


@parsers
@pytest.mark.parametrize(
    "document",
    [
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<?xml version="1.0"?><!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"  <!-- x --><!DOCTYPE a><a/>",
        b"<?x y?><!DOCTYPE a><a/>",
        b"<!-- x --><a/>",
        b"\xef\xbb\xbf<a/>",
        b"<a/><!DOCTYPE a>",
        b"<a><!DOCTYPE a></a>",
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'.encode("utf-16"),
        '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'.encode("utf-16-le"),
        b"<a>&b;</a>",
        b'<a b="&c;"/>',
        b"<a>",
        b"<a/><b/>",
        b"text",
        b"",
    ],
)
def test_nothing_but_elements_makes_a_document(parser: Parser, document: bytes) -> None:
    with pytest.raises(UnreadablePageError):
        markup.tree(document, parser)


@parsers
def test_a_document_is_in_utf_8_whatever_it_says(parser: Parser) -> None:
    said = '<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>'

    assert markup.tree(said.encode(), parser).text == "é"
    with pytest.raises(UnreadablePageError):
        markup.tree(said.encode("latin-1"), parser)


@parsers
def test_where_it_breaks_is_told_and_not_what_stands_there(parser: Parser) -> None:
    with pytest.raises(UnreadablePageError, match="line 2") as raised:
        markup.tree(b"<a>\n<secret>swordfish</a>", parser)

    assert "secret" not in str(raised.value)
    assert "swordfish" not in str(raised.value)


@parsers
def test_a_very_long_text_is_read(parser: Parser) -> None:
    long = b"x" * 11_000_000

    assert len(markup.tree(b"<a>" + long + b"</a>", parser).text or "") == len(long)


@parsers
def test_a_document_of_great_depth_harms_nobody(parser: Parser) -> None:
    deep = b"<a>" * 100_000 + b"</a>" * 100_000

    try:
        root = markup.tree(deep, parser)
    except UnreadablePageError:
        return
    assert root.tag == "a"
