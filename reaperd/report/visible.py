"""Text of strangers, made harmless before a person sees it.

Names, tags and error messages come from clouds. An escape sequence in one could clear a screen, or write a line of its
own; a direction override could make one machine look like another. What cannot be seen is therefore spelled out.
"""

from __future__ import annotations

from unicodedata import normalize

_FORMULA = ("=", "+", "-", "@")


def visible(text: str) -> str:
    r"""Return the text on one line, with everything that is not printable as `\n`, `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def clipped(text: str, limit: int = 256) -> str:
    """Return the beginning of a text that somebody made too long; EC2 allows 256 characters in a name."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def visible_lines(text: str) -> str:
    """Return text of our own that may have several lines, each of them made visible."""
    return "\n".join(visible(line) for line in text.split("\n"))


def cell(value: object) -> str:
    """Return a value as one cell of a table that may be opened in a spreadsheet: never a formula, never a new line.

    `registry import` takes back the quote, and that one only.
    """
    if not isinstance(value, str):
        return "" if value is None else str(value)
    shown = visible(value)
    # Nearly all begin with a letter or a digit.
    return shown if shown[:1].isalnum() or not _may_be_a_formula(shown) else f"'{shown}"


def _may_be_a_formula(text: str) -> bool:
    """Say whether a spreadsheet might calculate with it: it skips blanks, and some read wide signs as narrow ones."""
    return normalize("NFKC", text).lstrip().lstrip("'").lstrip().startswith(_FORMULA)
