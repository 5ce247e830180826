"""What may not be seen on /metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.scenarios.evidence import Evidence
from tests.scenarios.laws.reading import numbered, owner
from tests.scenarios.scraped import Scrape

_THERE = frozenset({"pending", "running", "stopped"})
"""The states of a machine that counts: it is neither gone nor going."""


def names_what_is_gone(evidence: Evidence) -> Iterator[str]:
    """A page is made of what there is: no line of it tells of a machine that there is no more."""
    for number, one in numbered(evidence):
        here = {machine.instance_id for machine in one.after.machines}
        ever = {m.instance_id for earlier in evidence.passes[:number] for m in earlier.before.machines}
        for name in sorted(ever - here):
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", one.scraped[1].text):
                yield f"after pass {number} the metrics still name {name}"


def begins_a_counter_at_one(evidence: Evidence) -> Iterator[str]:
    """A counter that comes up with its first event is taken by Prometheus for one that never rose."""
    for earlier, later in pairwise(page for one in evidence.passes for page in one.scraped):
        for name in later.counters():
            new = set(later.of(name)) - set(earlier.of(name))
            yield from (f"{name} of {dict(labels)} was not there before it counted" for labels in new)


def counts_what_is_not_ours(evidence: Evidence) -> Iterator[str]:
    """The machines of a complete look are counted as ours by their tag alone, and those of nobody else are."""
    for number, one in numbered(evidence):
        if one.reap is None or one.reap.census is None:
            continue
        ours = Counter(m.region for m in one.before.machines if owner(m) == evidence.owner and m.state in _THERE)
        counted = _by_region(one.scraped[1], "owned_instances")
        if counted != {region: ours[region] for region in counted}:
            yield f"pass {number} counts {counted} of {dict(ours)}"
        told = [c.data["owned"] for c in one.reap.conditions if "owned" in c.data]
        yield from (f"pass {number} tells the breaker of {owned}" for owned in told if owned > ours.total())


def _by_region(page: Scrape, name: str) -> dict[str, int]:
    return {dict(labels)["region"]: int(value) for labels, value in page.of(name).items()}
