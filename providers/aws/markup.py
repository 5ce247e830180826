"""The tree of an XML document: by lxml, or where that is not installed by the standard library.

Both are held to the same: whole, well-formed UTF-8 without a document type, or nothing. The fields are taken from
either tree in the same way, so which of the two it was makes a difference in time only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, cast
from xml.etree import ElementTree as ET

from providers.aws.errors import UnreadablePageError
from providers.parsers import Parser

_lxml: Any
try:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types
except ImportError:
    _lxml = None
else:
    _lxml = etree

_ELEMENT_FIRST = re.compile(rb"(<\?xml\s[^<>]*\?>)?\s*<[A-Za-z_]")
"""No document type: nothing else may stand before the first element, and none may come after it. Nor is it in UTF-16,
which expat takes for what it is, whatever it was told."""

_ENDS_OF_BLANKS = (b"<![CDATA[", b"\r")
"""Behind blanks that begin a text, libxml2 takes them for indentation if one of these follows. EC2 writes neither."""

_ENCODING = "utf-8"
"""What the SDK's own parser takes every answer for, whatever the document says."""


class Node(Protocol):
    """An element of either tree."""

    @property
    def tag(self) -> Any:  # noqa: ANN401 - a comment has a function here
        """Return the name, with its namespace in braces."""
        ...

    @property
    def text(self) -> str | None:
        """Return the text before the first child."""
        ...

    def __iter__(self) -> Iterator[Node]:
        """Return the children."""
        ...

    def __getitem__(self, place: int, /) -> Node:
        """Return a child."""
        ...

    def __len__(self) -> int:
        """Return how many children there are."""
        ...


def available_parser() -> Parser:
    """Return the faster one of those that are installed."""
    return Parser.STDLIB if _lxml is None else Parser.LXML


def tree(document: bytes, parser: Parser) -> Node:
    """Return the root of a document.

    Raises:
        UnreadablePageError: if it is not one whole, well-formed document. Its text holds nothing of the document.
    """
    if _ELEMENT_FIRST.match(document) is None:
        msg = "it does not begin as an answer does"
        raise UnreadablePageError(msg)
    return _PARSERS[parser](document)


def any_namespace(names: Iterable[str]) -> tuple[str, ...]:
    """Return these local names as children_named takes them."""
    return tuple(f"{{*}}{name}" for name in names)


def children_named(node: Node, names: tuple[str, ...]) -> Iterable[Node]:
    """Return the children of these names, and where that is no faster, the others too."""
    select: Any = getattr(node, "iterchildren", None)
    return node if select is None else select(*names)


def _by_lxml(document: bytes) -> Node:
    # Comments stay in the tree: taken out, they could take blanks beside them along, and a text would be another.
    parser = _lxml.XMLParser(
        encoding=_ENCODING,
        remove_blank_text=not any(sign in document for sign in _ENDS_OF_BLANKS),
        collect_ids=False,
        huge_tree=True,
        resolve_entities=False,
        no_network=True,
    )
    try:
        root = _lxml.fromstring(document, parser)
    except _lxml.XMLSyntaxError as error:
        line, column = error.position
        msg = f"not well-formed at line {line}, column {column} (libxml2 error {error.code})"
        raise UnreadablePageError(msg) from None
    return cast("Node", root)


def _by_stdlib(document: bytes) -> Node:
    parser = ET.XMLParser(encoding=_ENCODING)  # noqa: S314 - its attacks need a document type, and there is none
    try:
        parser.feed(document)
        return cast("Node", parser.close())
    except ET.ParseError as error:
        line, column = error.position
        msg = f"not well-formed at line {line}, column {column} (expat error {error.code})"
        raise UnreadablePageError(msg) from None


_PARSERS: dict[Parser, Callable[[bytes], Node]] = {Parser.LXML: _by_lxml, Parser.STDLIB: _by_stdlib}
