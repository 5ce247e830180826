"""What a PromQL expression names: its selectors. Not a parser: promtool is one, in tests/e2e."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SELECTOR = re.compile(r"\b(?P<name>[a-zA-Z_:][\w:]*)\s*\{(?P<inside>[^}]*)\}")
_MATCHER = re.compile(r'(?P<label>\w+)\s*(?P<sign>=~|!~|!=|=)\s*"(?P<value>[^"]*)"')
_BARE = re.compile(r"\breaperd_\w+\b(?!\s*\{)")


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a label."""

    label: str
    sign: str
    value: str

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values that it names; of a pattern, its alternatives."""
        return tuple(self.value.split("|")) if "~" in self.sign else (self.value,)


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric and the conditions on its labels."""

    name: str
    matchers: tuple[Matcher, ...]


def selectors(expr: str) -> Iterator[Selector]:
    """Yield every selector with braces."""
    for found in _SELECTOR.finditer(expr):
        matchers = _MATCHER.finditer(found["inside"])
        yield Selector(found["name"], tuple(Matcher(m["label"], m["sign"], m["value"]) for m in matchers))


def bare(expr: str) -> list[str]:
    """Return metrics of ours that are named without a selector: they would speak of every job."""
    return _BARE.findall(expr)
