"""What holds of every answer, whatever was asked."""

from __future__ import annotations

from typing import Any

from tests.integration.shape import check_pass
from tests.support.processes import Result
from tests.support.site import SECRETS


def document_of(result: Result, code: int, outcome: str, reason: str | None = None) -> dict[str, Any]:
    """Return the JSON of a pass that ended so; everything that every pass promises is checked on the way."""
    assert result.code == code, f"exit {result.code}\n{result.out}\n{result.err}"
    harmless(result)
    document = result.json
    check_pass(document)
    assert (document["outcome"], document["reason"]) == (outcome, reason), document["detail"]
    assert result.events[-1]["event"] == "pass_finished"
    return document


def complete(result: Result, code: int = 0) -> dict[str, Any]:
    """Return the JSON of a complete pass."""
    return document_of(result, code, "complete")


def refused(result: Result, code: int, reason: str) -> dict[str, Any]:
    """Return the JSON of a refused pass."""
    return document_of(result, code, "refused", reason)


def deferred(result: Result, reason: str) -> dict[str, Any]:
    """Return the JSON of a deferred pass."""
    return document_of(result, 1, "deferred", reason)


def harmless(result: Result) -> None:
    """Raise AssertionError when it shows a secret, or what only a programmer can read."""
    said = result.out + result.err
    assert not [secret for secret in SECRETS if secret in said]
    assert "Traceback" not in said, result.err


def reasons(document: dict[str, Any]) -> dict[str, str]:
    """Return the reason of each verdict by instance id."""
    return {verdict["instance_id"]: verdict["reason"] for verdict in document["verdicts"]}


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of each termination by instance id."""
    return {outcome["instance_id"]: outcome["outcome"] for outcome in document["outcomes"]}
