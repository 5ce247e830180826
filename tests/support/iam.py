"""Judges a request by a policy, as AWS documents it: the part of IAM's language that our policies use, and no more.

A request asks for one action on one or more resources; each has to be allowed, and none denied. What is not understood
is an error, so that a policy cannot pass for something that was never judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """What a request is about. `keys` are the condition keys that have a value for it."""

    arn: str
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One call."""

    action: str
    resources: Sequence[Resource] = (Resource("*"),)


def allowed(document: Document, request: Request) -> bool:
    """Return whether a role with this policy, and no other, may do that."""
    if document["Version"] != "2012-10-17":
        message = f"an older language: {document['Version']}"
        raise ValueError(message)
    return all(_judged(document["Statement"], request.action, each) for each in request.resources)


def _judged(statements: Iterable[Document], action: str, resource: Resource) -> bool:
    effects = {statement["Effect"] for statement in statements if _applies(statement, action, resource)}
    if effects - {"Allow", "Deny"}:
        message = f"no effects: {effects}"
        raise ValueError(message)
    return effects == {"Allow"}


def _applies(statement: Document, action: str, resource: Resource) -> bool:
    if set(statement) - {"Sid", "Effect", "Action", "Resource", "Condition"}:
        message = f"not understood: {sorted(statement)}"
        raise ValueError(message)
    return (
        any(_is_like(action, pattern, re.IGNORECASE) for pattern in _several(statement["Action"]))
        and any(_is_like(resource.arn, pattern) for pattern in _several(statement["Resource"]))
        and _holds(statement.get("Condition", {}), resource.keys)
    )


def _is_like(text: str, pattern: str, flags: int = 0) -> bool:
    parts = {"*": ".*", "?": "."}
    return re.fullmatch("".join(parts.get(char, re.escape(char)) for char in pattern), text, flags) is not None


def _several(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


# ---------------------------------------------------------------- conditions

# A key without a value equals nothing, so it satisfies what is negated.
_OPERATORS: Mapping[str, Callable[[str | None, Sequence[str]], bool]] = {
    "StringEquals": lambda value, wanted: value is not None and value in wanted,
    "StringNotEquals": lambda value, wanted: value is None or value not in wanted,
}


def _holds(condition: Document, keys: Mapping[str, str]) -> bool:
    # The names of keys are compared without case, that of a tag within one too; values are not.
    folded = {name.lower(): value for name, value in keys.items()}
    return all(
        _OPERATORS[operator](folded.get(name.lower()), _several(wanted))
        for operator, block in condition.items()
        for name, wanted in block.items()
    )
