"""docs/going-live.md in the order in which it is read: files to write, commands to type, and what each has to show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

PAGE = "docs/going-live.md"
FIRST = "| Type | Look for | Otherwise |"

_ITEM = re.compile(
    r"^<!-- file: (?P<path>\S+) -->\n\n```toml\n(?P<text>.*?)^```$"
    r"|^```console\n\$ (?P<typed>.*?)\n```$"
    r"|^\| `(?P<command>[^`]+)` \| (?P<look>[^|]*)\|[^|]*\|$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class File:
    """What a file is to hold from here on."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Typed:
    """A command, and the words that are looked for in what it prints."""

    command: str
    looked_for: tuple[str, ...] = ()


def steps(page: str) -> Iterator[File | Typed]:
    """Yield everything that the reader does."""
    for found in _ITEM.finditer(page):
        if found["path"]:
            yield File(found["path"], found["text"])
        elif found["typed"]:
            yield Typed(found["typed"])
        else:
            # Of `denied`, `protected` and the like the last column tells; that of a status is in the first words.
            yield Typed(found["command"], tuple(re.findall(r"`([^`]+)`", found["look"])))
