"""Reads what /metrics showed, in the words in which the cases speak of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import product
from types import MappingProxyType

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Samples = Mapping[Labels, float]

_OF_TERMINATIONS = "requested unknown spared already_gone confirmed_gone protected denied invalid_id deferred failed"
EVERY: Mapping[str, Mapping[str, Iterable[str]]] = {
    "terminations_total": {"provider": ["aws"], "outcome": _OF_TERMINATIONS.split()},
    "passes_total": {"kind": ["reconcile", "audit"], "outcome": ["complete", "refused", "deferred", "error"]},
}
"""Of these counters: every value of every label. Written out, not imported."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of /metrics."""

    at: datetime
    text: str

    def of(self, name: str) -> Samples:
        """Return the samples of one metric; none of one that is absent."""
        return samples(self.text).get(name, {})

    def counters(self) -> tuple[str, ...]:
        """Return the names of the counters."""
        return tuple(name for name in samples(self.text) if name.endswith("_total"))


@cache
def samples(text: str) -> Mapping[str, Samples]:
    """Return our own samples, by the name without its prefix and by labels."""
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("reaperd_"):
                name = sample.name.removeprefix("reaperd_")
                found.setdefault(name, {})[frozenset(sample.labels.items())] = sample.value
    return MappingProxyType(found)


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric from scrape to scrape, as `name` or `name{label=value,…}`. Labels that are not told may be any."""

    series: str
    scrapes: Sequence[Scrape]

    def told_like(self, expected: object) -> object:
        """Return what was seen, in the form in which something else was expected."""
        for form, tell in _FORMS.items():
            if isinstance(expected, str) and (match := re.fullmatch(form, expected)):
                return tell(self, match)
        return self._number()

    @property
    def _name(self) -> str:
        return self.series.partition("{")[0]

    def _samples(self, scrape: Scrape) -> Samples:
        wanted = {tuple(pair.split("=")) for pair in self.series.rstrip("}").partition("{")[2].split(",") if pair}
        return {labels: value for labels, value in scrape.of(self._name).items() if wanted <= labels}

    def _number(self) -> object:
        return _sum(self._samples(self.scrapes[-1]))

    def _more(self, _: re.Match[str]) -> object:
        first, last = (_sum(self._samples(scrape)) for scrape in (self.scrapes[0], self.scrapes[-1]))
        # Of a counter that was not there, nobody can say by how much it rose.
        return f"+{last - first}" if isinstance(first, int) and isinstance(last, int) else f"from {first} to {last}"

    def _unchanged(self, _: re.Match[str]) -> object:
        first, last = (self._samples(scrape) for scrape in (self.scrapes[0], self.scrapes[-1]))
        return "unchanged" if first and first == last else f"from {dict(first)} to {dict(last)}"

    def _at_least(self, match: re.Match[str]) -> object:
        number = self._number()
        return match[0] if isinstance(number, int) and number >= int(match[1]) else number

    def _ago(self, _: re.Match[str]) -> object:
        number = self._number()
        return f"{self.scrapes[-1].at.timestamp() - number:.0f} s ago" if isinstance(number, int | float) else number

    def _complete(self, _: re.Match[str]) -> object:
        every = EVERY[self._name]
        found = self._samples(self.scrapes[-1])
        wanted = {frozenset(zip(every, values, strict=True)) for values in product(*every.values())}
        if set(found) != wanted:
            return f"{len(found)} series of {len(wanted)}"
        return f"a series for each {' and '.join(every)}, all {' or '.join(sorted({f'{v:g}' for v in found.values()}))}"


_FORMS: Mapping[str, Callable[[Reading, re.Match[str]], object]] = {
    r"\+\d+": Reading._more,
    r"unchanged": Reading._unchanged,
    r"at least (\d+)": Reading._at_least,
    r"\d+ s ago": Reading._ago,
    r"a series for each .*": Reading._complete,
}
"""Anything else (a number, `absent`) is held against the number of the last scrape."""


def _sum(found: Samples) -> object:
    if not found:
        return "absent"
    total = sum(found.values())
    return int(total) if total.is_integer() else total
