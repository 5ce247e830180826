"""Where a report is drawn: a width, with or without colour.

Whatever a report says is data: it is made visible, and never read as markup.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from reaperd.report.visible import visible

PLAIN_WIDTH = 80
"""How wide a page is where nobody's terminal says otherwise."""

NARROWEST = 40
"""A page is no narrower than this, whatever a terminal says of itself."""

LABEL_WIDTH = 12
_GAP = "  "
_NARROW = 8
"""A column is not folded to less."""
_WHOLE = 24
"""What is shorter is kept on one line while there is anything else to fold: ids are there to be copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A page of text, filled from the top."""

    width: int = PLAIN_WIDTH
    colour: bool = False
    _text: io.StringIO = field(default_factory=io.StringIO)

    def line(self, text: str = "", style: str = "", *, indent: int = 0) -> None:
        """Add a paragraph, folded between words, but not within `a command`: that is copied whole."""
        fold = _around_commands if "`" in text else self._folded
        for folded in fold(visible(text), self.width - indent):
            self._put(" " * indent + folded, style)

    def command(self, text: str, *, indent: int = 4) -> None:
        """Add something to be copied: never folded, so that it is copied whole."""
        self._put(" " * indent + visible(text), "bold")

    def labelled(self, label: str, text: str, style: str = "", *, width: int = LABEL_WIDTH) -> None:
        """Add a paragraph with its name in front, in a column so wide."""
        front = label.ljust(width)
        for folded in self._folded(visible(text), self.width - width):
            self._put(front + folded, style)
            front = " " * width

    def rows(
        self,
        header: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Sequence[int] = (),
        below: Sequence[Sequence[str]] = (),
    ) -> None:
        """Add a table. Nothing is cut off: what does not fit goes on in the next line. An empty header is left out.

        `below` holds the paragraphs that stand under each row.
        """
        # Not rich's table: it takes seconds for a few thousand machines.
        shown = [tuple(visible(text) for text in row) for row in rows]
        headers = [tuple(header)] if any(header) else []
        widths = self._widths([*headers, *shown])
        for place, row in enumerate((*headers, *shown), start=1 - len(headers)):
            cells = [self._folded(text, width) for text, width in zip(row, widths, strict=True)]
            for number in range(max(map(len, cells))):
                parts = [
                    _padded(cell[number] if number < len(cell) else "", width, to_the_right=column in right)
                    for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
                ]
                self._put(_GAP + _GAP.join(parts), "" if place else "bold")
            for paragraph in below[place - 1] if below and place else ():
                self.line(paragraph, indent=2 * len(_GAP))

    def text(self) -> str:
        """Return what was drawn."""
        return self._text.getvalue()

    def _widths(self, rows: Sequence[Sequence[str]]) -> list[int]:
        """Return how wide each column is. The first one, which names the machine, is folded last."""
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        room = self.width - len(_GAP) * len(widths)
        for first, least in ((0, _WHOLE), (1, _NARROW), (0, _NARROW)):
            while sum(widths) > room and max(widths[first:], default=0) > least:
                widest = widths.index(max(widths[first:]), first)
                widths[widest] = max(least, widths[widest] - (sum(widths) - room))
        return widths

    def _folded(self, text: str, width: int) -> list[str]:
        if cell_len(text) <= width:
            return [text]
        lines = Text(text).wrap(_MEASURE, width, overflow="fold")
        return [line.plain.rstrip() for line in lines]

    def _put(self, text: str, style: str) -> None:
        shown = text.rstrip()
        if not self.colour or not style:
            self._text.write(f"{shown}\n")
            return
        console = Console(
            file=self._text,
            force_terminal=True,
            color_system="standard",
            legacy_windows=False,
            # What the environment says was judged by whoever chose the width and the colour.
            _environ={},
        )
        console.print(Text(shown, style), soft_wrap=True)


_MEASURE = Console(file=io.StringIO(), width=PLAIN_WIDTH, _environ={})


_WORD_OR_COMMAND = re.compile(r"[^\s`]*`[^`]+`[^\s`]*|\S+")


def _around_commands(text: str, width: int) -> list[str]:
    lines = [""]
    for word in _WORD_OR_COMMAND.findall(text):
        pieces = [word] if "`" in word else chop_cells(word, width)
        for piece in pieces:
            if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(piece) > width:
                lines.append("")
            lines[-1] += f" {piece}" if lines[-1] else piece
    return lines


def _padded(text: str, width: int, *, to_the_right: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if to_the_right else text + blanks
