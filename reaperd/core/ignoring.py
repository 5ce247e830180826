"""The rules by which an operator leaves machines out of an audit, and what became of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from fnmatch import translate
from types import MappingProxyType

from providers.model import AuditedInstance, InstanceRef


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRule:
    """Machines that an operator knows of. All the patterns that are given must match."""

    reason: str
    until: date | None = None
    """The last day on which the rule holds; None: for ever."""
    patterns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Globs by attribute: provider, account, region, instance_id, instance_type, name."""
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Globs by tag key."""


_Texts = Mapping[str, str]


class RuleState(StrEnum):
    """Whether a rule is still good for something."""

    IN_FORCE = "in_force"
    EXPIRED = "expired"
    """Its last day is over. What it left out is told again."""
    UNMATCHED = "unmatched"
    """Everything was looked at, and no machine is meant by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUse:
    """What one sweep found of one rule."""

    number: int
    """Its place in the file, from 1."""
    rule: IgnoreRule
    matched: int
    """Machines that it means, leaks or not: a bastion that is a day old is no leak yet."""
    expired: bool

    def state(self, *, complete: bool) -> RuleState:
        """Return what is to be said of the rule after a sweep that was complete, or was not."""
        if self.expired:
            return RuleState.EXPIRED
        return RuleState.UNMATCHED if complete and not self.matched else RuleState.IN_FORCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignoring:
    """What the rules say of a sweep's machines."""

    by_ref: Mapping[InstanceRef, IgnoreRule] = field(hash=False)
    """The first rule in force that means a machine."""
    uses: tuple[RuleUse, ...]


def match_rules(rules: Sequence[IgnoreRule], instances: Iterable[AuditedInstance], now: datetime) -> Ignoring:
    """Match every machine with every rule."""
    matches = [_matcher(rule) for rule in rules]
    expired = [rule.until is not None and now.date() > rule.until for rule in rules]
    matched = [0] * len(rules)
    by_ref: dict[InstanceRef, IgnoreRule] = {}
    for instance in instances:
        told = _told(instance)
        for number, rule in enumerate(rules):
            if matches[number](told, instance.tags):
                matched[number] += 1
                if not expired[number]:
                    by_ref.setdefault(instance.ref, rule)
    found = zip(rules, matched, expired, strict=True)
    return Ignoring(
        by_ref=by_ref,
        uses=tuple(
            RuleUse(number=number, rule=rule, matched=count, expired=over)
            for number, (rule, count, over) in enumerate(found, start=1)
        ),
    )


def _matcher(rule: IgnoreRule) -> Callable[[_Texts, _Texts], bool]:
    """Return what says by its attributes and tags whether a machine is meant. A rule that names nothing means none."""
    by_attribute, by_tag = _compiled(rule.patterns), _compiled(rule.tags)

    def matches(attributes: _Texts, tags: _Texts) -> bool:
        # A loop, not all() with a generator: this runs once for each machine and rule.
        for key, pattern in by_attribute:
            if not pattern.match(attributes[key]):
                return False
        return all(key in tags and pattern.match(tags[key]) for key, pattern in by_tag)

    return matches if by_attribute or by_tag else _nothing


def _nothing(_attributes: _Texts, _tags: _Texts) -> bool:
    return False


def _compiled(globs: Mapping[str, str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    # Once a sweep: fnmatch itself keeps 256 patterns, and would compile all anew for each machine when there are more.
    return tuple((key, re.compile(translate(glob))) for key, glob in globs.items())


def _told(instance: AuditedInstance) -> _Texts:
    return {
        "provider": instance.ref.provider,
        "account": instance.account or "",
        "region": instance.ref.region,
        "instance_id": instance.ref.instance_id,
        "instance_type": instance.instance_type or "",
        "name": instance.name or "",
    }
