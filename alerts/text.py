"""Text of strangers, made harmless for each kind of receiver.

Names, tags and error messages come from clouds: anybody who may start a machine may write them. In a chat such a name
could call everybody, pretend to be a link or a message of its own; in a log it could write a line. Nothing here relies
on the receiver's escaping, for which every one has other rules: what could be taken for markup is replaced by a
character that looks like it.
"""

# ruff: noqa: RUF001 - characters that look like others are what this is about

from __future__ import annotations

import hashlib

LONGEST = 200
"""Characters of one text of a stranger that anybody is shown."""
CUT = "…"

_LOOKALIKES = str.maketrans(
    {
        "<": "‹",
        ">": "›",
        "&": "＆",
        "@": "＠",
        "#": "＃",
        "*": "∗",
        "~": "∼",
        "`": "ˋ",
        "|": "¦",
        "[": "［",
        "]": "］",
        "{": "｛",
        "}": "｝",
        "\\": "＼",
        "!": "ǃ",
    }
)
"""What starts a mention, a tag, an emphasis, a link, an entity, a placeholder or an escape somewhere."""


def visible(text: str, longest: int = LONGEST) -> str:
    r"""Return the text on one line, cut to a length, with what is not printable as `\n`, `\x1b`, `\u202e`."""
    start = text[: longest + 1]
    shown = start if start.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in start)
    return shown if len(shown) <= longest else shown[: longest - 1] + CUT


def plain(text: str, longest: int = LONGEST) -> str:
    """Return the text for a chat, a mail or a page: visible, and with nothing in it that any of them acts on."""
    shown = visible(text, longest).translate(_LOOKALIKES).replace("://", ":∕∕")
    return "".join(_underscore(shown, place) if char == "_" else char for place, char in enumerate(shown))


def identity(text: str, longest: int = LONGEST) -> str:
    """Return a text that names something: visible, and different for different texts however long they are."""
    shown = visible(text, longest)
    if shown == text:
        return text
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{shown[: longest - len(mark) - 1]}~{mark}"


def _underscore(text: str, place: int) -> str:
    """Return the underscore as it is inside a word, where it is never markup, and a look-alike elsewhere."""
    inside = 0 < place < len(text) - 1 and text[place - 1].isalnum() and text[place + 1].isalnum()
    return "_" if inside else "＿"
