"""What a test wants to know of a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import ROOT


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    language: str
    text: str


def every_page() -> tuple[Path, ...]:
    """Return every page of the project."""
    folders = (
        ROOT,
        *(ROOT / "deploy" / name for name in (".", "datasette", "iam")),
        ROOT / "examples",
        ROOT / "tests" / "support",
    )
    return (
        *(page for folder in folders for page in sorted(folder.glob("*.md"))),
        *sorted((ROOT / "docs").rglob("*.md")),
    )


def name_of(page: Path) -> str:
    """Return a page's path in the project."""
    return page.relative_to(ROOT).as_posix()


def read(name: str) -> str:
    """Return a page's text."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str | None = None) -> tuple[Block, ...]:
    """Return the fenced blocks of a page, of one language if it is given."""
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    every = (Block(each[1], each[2]) for each in found)
    return tuple(block for block in every if language in (None, block.language))


def files(text: str) -> Mapping[str, str]:
    """Return the blocks that begin with a comment that names a file, by its name."""
    named = ((re.match(r"# (\S+\.\w+)", block.text), block.text) for block in blocks(text))
    return {found[1]: body for found, body in named if found}


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def spans(text: str) -> tuple[str, ...]:
    """Return the code spans of a page, one line each."""
    return tuple(" ".join(found.split()) for found in re.findall(r"`([^`]+)`", prose(text)))


def links(text: str) -> tuple[str, ...]:
    """Return the targets of a page's links."""
    return tuple(re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)", prose(text)))


def anchors(text: str) -> frozenset[str]:
    """Return the anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
