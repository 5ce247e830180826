"""The JSON of `once` and `plan`, as the contract has it: exact keys, types and words. Written out, not imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

Check = Callable[[Any, str], None]


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


REFUSALS = words(
    "ledger_unusable not_leader clock deadline wrong_account listing_incomplete registry_unusable "
    "registry_identity registry_mismatch reap_hold breaker_open"
)
DEFERRALS = words(
    "throttled credentials_expired stopping not_leader reap_hold deadline ledger_unusable registry_unusable "
    "registry_identity"
)
KEEPS = words(
    "foreign_account in_transition tracked ambiguous_worker foreign_registry never_list protect_tag managed "
    "already_requested protected denied invalid_id failed launch_grace unconfirmed row_vanished"
)
TERMINATES = words("unregistered anonymous retired launch_abandoned heartbeat_expired superseded")
OUTCOMES = words(
    "would_terminate requested unknown spared already_gone confirmed_gone protected denied invalid_id deferred failed"
)
SPARES = words("tracked_now changed reap_hold not_leader stopping")
CAUSES = words(
    "leak termination_failed termination_protected termination_denied termination_stuck invalid_id managed_orphan "
    "protected_orphan ambiguous_worker foreign_registry foreign_account row_vanished owned_out_of_scope "
    "heartbeats_stopped breaker_open registry_unusable registry_identity registry_mismatch wrong_account "
    "listing_incomplete ledger_unusable clock deadline blind late"
)


def check_pass(document: Any) -> None:
    """Raise AssertionError unless this is the document of a reconcile pass."""
    PASS(document, "$")
    _agrees(document)


def is_a(*kinds: type) -> Check:
    def check(value: Any, at: str) -> None:
        assert type(value) in kinds, f"{at}: {value!r}"

    return check


def one_of(*words: str) -> Check:
    def check(value: Any, at: str) -> None:
        assert value in words, f"{at}: {value!r}"

    return check


def like(pattern: str) -> Check:
    def check(value: Any, at: str) -> None:
        assert isinstance(value, str), f"{at}: {value!r}"
        assert re.fullmatch(pattern, value), f"{at}: {value!r}"

    return check


def maybe(inner: Check) -> Check:
    def check(value: Any, at: str) -> None:
        if value is not None:
            inner(value, at)

    return check


def many(inner: Check) -> Check:
    def check(value: Any, at: str) -> None:
        assert type(value) is list, f"{at}: {value!r}"
        for number, entry in enumerate(value):
            inner(entry, f"{at}[{number}]")

    return check


def table(**keys: Check) -> Check:
    def check(value: Any, at: str) -> None:
        assert type(value) is dict, f"{at}: {value!r}"
        assert list(value) == list(keys), f"{at}: {list(value)}"
        for key, inner in keys.items():
            inner(value[key], f"{at}.{key}")

    return check


def a_time(value: Any, at: str) -> None:
    like(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")(value, at)
    datetime.fromisoformat(value)


def a_condition_key(value: Any, at: str) -> None:
    cause, _, place = value.partition("/")
    one_of(*CAUSES)(cause, at)
    assert not place or len(place.split("/")) in {2, 3}, f"{at}: {value!r}"


TEXT = is_a(str)
NUMBER = is_a(int)
PLACE = {"provider": like("[a-z0-9-]+"), "region": like("[a-z0-9-]+"), "instance_id": like("i-[0-9a-f]+")}

PASS = table(
    kind=one_of("reconcile"),
    pass_id=like("[0-9a-f]{32}"),
    mode=one_of("dry-run", "enforce"),
    started_at=a_time,
    finished_at=a_time,
    outcome=one_of("complete", "refused", "deferred", "error"),
    reason=maybe(one_of(*REFUSALS, *DEFERRALS)),
    also=many(one_of(*REFUSALS)),
    detail=TEXT,
    coverage=many(
        table(
            scope=like(r"[a-z0-9-]+/([a-z0-9-]+|\*)"),
            account=maybe(like(r"\d{12}")),
            ok=is_a(bool),
            instances=NUMBER,
            pages=NUMBER,
            seconds=is_a(int, float),
            error_code=maybe(TEXT),
            detail=TEXT,
        )
    ),
    registry=maybe(table(registry_id=TEXT, epoch=NUMBER, rows=NUMBER, live=NUMBER)),
    plan_digest=maybe(like("sha256:[0-9a-f]{64}")),
    verdicts=many(
        table(
            **PLACE,
            worker_id=maybe(TEXT),
            state=one_of("pending", "running", "stopping", "stopped", "shutting-down", "unknown"),
            verdict=one_of("keep", "terminate"),
            reason=one_of(*KEEPS, *TERMINATES),
            age_seconds=maybe(NUMBER),
            confirmations=NUMBER,
            confirmations_needed=NUMBER,
            instance_type=maybe(TEXT),
            cost_per_hour_usd=maybe(is_a(int, float)),
            first_seen_at=maybe(a_time),
            last_tracked_at=maybe(a_time),
            detail=TEXT,
        )
    ),
    outcomes=many(table(**PLACE, outcome=one_of(*OUTCOMES), reason=maybe(TEXT), error_code=maybe(TEXT), detail=TEXT)),
    missing=many(table(worker_id=TEXT, **{key: maybe(check) for key, check in PLACE.items()})),
    conditions=many(table(key=a_condition_key, severity=one_of("info", "warning", "critical"), data=is_a(dict))),
)


def _agrees(document: Mapping[str, Any]) -> None:
    """Raise AssertionError when two parts of it contradict each other."""
    assert document["started_at"] <= document["finished_at"]
    reasons = {"refused": REFUSALS, "deferred": DEFERRALS}.get(document["outcome"], (None,))
    assert document["reason"] in reasons, document["reason"]
    terminations = [v for v in document["verdicts"] if v["verdict"] == "terminate"]
    assert (document["plan_digest"] is None) is (not terminations)
    for verdict in document["verdicts"]:
        assert verdict["reason"] in (TERMINATES if verdict["verdict"] == "terminate" else KEEPS)
    for outcome in document["outcomes"]:
        if outcome["outcome"] == "spared":
            assert outcome["reason"] in SPARES
    if document["outcome"] == "refused" and document["reason"] not in {"reap_hold", "breaker_open"}:
        assert document["verdicts"] == []
        assert document["plan_digest"] is None
