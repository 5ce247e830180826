"""What each condition of a termination says of one machine, in figures, and what ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reaperd.core.explain import LISTED, Explanation, Presence, Requirement
from reaperd.core.model import KeepReason, ReapPolicy, RefusalReason
from reaperd.core.reap import Judgement
from reaperd.core.tracking import Tracked
from reaperd.report.parts import many, span, told_time
from reaperd.report.remedies import ENDS_THE_HOLD, REFUSED, Whereabouts

_PRESENCE: Mapping[Presence, str] = {
    Presence.LISTED: "it is listed, with our tag",
    Presence.GONE: "it is listed as terminated",
    Presence.NOT_OURS: "its ownership tag has another value",
    Presence.ABSENT: "a complete listing does not have it",
    Presence.UNLISTED: "it is there, but a complete listing by our tag does not have it",
    Presence.UNPROVED: "a complete listing does not have it, and that it is gone is not proved",
    Presence.UNKNOWN: "its scope was not listed whole, so that it is not there proves nothing",
}

Fact = Callable[[Judgement, Explanation, ReapPolicy], str]


def detail_of(requirement: Requirement, told: Explanation, policy: ReapPolicy) -> str:
    """Return how things stand, met or not."""
    about = requirement.about
    if about == LISTED:
        return _PRESENCE[told.presence]
    if about == RefusalReason.BREAKER_OPEN:
        return _breaker(told, policy)
    if about in _FACTS_BY_NAME:
        return _FACTS_BY_NAME[about](told.judgement, told, policy) if told.judgement is not None else "not judged"
    return requirement.detail


def remedy_of(requirement: Requirement, where: Whereabouts, digest: str | None) -> str:
    """Return what ends what is in the way; empty when nothing is, or nobody can. `digest` as for `commands_of`."""
    if requirement.met is not False:
        return ""
    for reason, text in ENDS_THE_HOLD.items():
        if requirement.about == reason:
            return text
    return "; ".join(commands_of(requirement, where, digest))


def commands_of(requirement: Requirement, where: Whereabouts, digest: str | None) -> tuple[str, ...]:
    """Return what to type to end what is in the way; nothing where words say it.

    `digest` names the recorded plan that the machine is in; None when there is none.
    """
    remedies = (remedy for refusal, remedy in REFUSED.items() if requirement.about == refusal)
    return next((remedy.typed(where, digest) for remedy in remedies), ())


# ---------------------------------------------------------------- the machine


def _account(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    instance = mine.verdict.instance
    account = f"account {instance.account}" if instance.account else "its account was not told"
    return f"{account}, and that is not the configured one" if instance.foreign_account else account


def _transition(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    return f"its state is {mine.verdict.instance.state}"


def _tracked(mine: Judgement, told: Explanation, policy: ReapPolicy) -> str:
    if isinstance(mine.tracking, Tracked):
        worker = mine.tracking.worker
        beat = f", heartbeat {span(told.now - worker.heartbeat_at)} ago" if worker.heartbeat_at else ""
        limit = ""
        if worker.instance_id is None:
            limit = f"; without an instance id it protects for {span(policy.launching_ttl)} (registry.launching_ttl)"
        elif policy.heartbeat_ttl is not None:
            limit = f" (registry.heartbeat_ttl {span(policy.heartbeat_ttl)})"
        return f"the row of {worker.worker_id}, {worker.state}, accounts for it{beat}{limit}"
    orphan = mine.verdict.orphan
    return f"no live row accounts for it: {orphan}" if orphan is not None else "no live row accounts for it for certain"


def _ambiguous(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    doubt = KeepReason.AMBIGUOUS_WORKER in mine.holds
    return mine.verdict.detail if doubt else "no live row of its worker or id names another machine"


def _registry(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    tag = mine.verdict.instance.registry_id
    if tag is None:
        return "it has no registry tag"
    other = KeepReason.FOREIGN_REGISTRY in mine.holds
    return f"its registry tag is {tag}, {'another registry' if other else 'ours'}"


def _never(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    held = KeepReason.NEVER_LIST in mine.holds
    return "it is in reconcile.never, or reaperd runs on it" if held else "it is not in reconcile.never"


def _protect(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    return "it carries the protect tag" if mine.verdict.instance.protect else "it carries no protect tag"


def _managed(mine: Judgement, _told: Explanation, _policy: ReapPolicy) -> str:
    by = mine.verdict.instance.managed_by
    return f"it is managed by {by}" if by is not None else "nothing is known that would launch it again"


def _answer(reason: KeepReason) -> Fact:
    """Return what tells one answer of the cloud from the others."""

    def told_of(mine: Judgement, told: Explanation, policy: ReapPolicy) -> str:
        if not mine.again or told.intent is None:
            return "it was not requested before"
        intent = told.intent
        answer = str(intent.outcome) if intent.outcome is not None else "no answer was recorded"
        code = f" ({intent.error_code})" if intent.error_code else ""
        if reason not in mine.holds:
            return f"the last answer is another or old enough: {answer}"
        again = told_time(intent.requested_at + policy.stuck_after)
        return f"requested at {told_time(intent.requested_at)}: {answer}{code}; again from {again}"

    return told_of


def _grace(mine: Judgement, _told: Explanation, policy: ReapPolicy) -> str:
    return f"its age is {span(mine.verdict.age)}, and it has to be older than {span(policy.launch_grace)}"


def _looks(mine: Judgement, _told: Explanation, policy: ReapPolicy) -> str:
    seen, needed = mine.verdict.confirmations, policy.confirm_passes
    looks = f"{many(needed, 'complete look')} in a row" if needed > 1 else many(needed, "complete look")
    if not seen:
        return f"a live row accounts for it, or may, so no look counts; it takes {looks} without one"
    in_a_row = " in a row" if seen > 1 else ""
    text = f"{many(seen, 'complete look')}{in_a_row} found it untracked, counting this moment; it takes {needed}"
    left = needed - seen
    return text if left <= 0 else f"{text}: {left} more, at least {span(policy.look_spacing)} apart"


def _vanished(mine: Judgement, _told: Explanation, policy: ReapPolicy) -> str:
    since = mine.sighting.vanished_at
    if since is None:
        return "no row of it vanished"
    return f"its row is gone since {told_time(since)}, and it is held for {span(policy.vanish_grace)}"


FACTS: Mapping[KeepReason, Fact] = {
    KeepReason.FOREIGN_ACCOUNT: _account,
    KeepReason.IN_TRANSITION: _transition,
    KeepReason.TRACKED: _tracked,
    KeepReason.AMBIGUOUS_WORKER: _ambiguous,
    KeepReason.FOREIGN_REGISTRY: _registry,
    KeepReason.NEVER_LIST: _never,
    KeepReason.PROTECT_TAG: _protect,
    KeepReason.MANAGED: _managed,
    KeepReason.ALREADY_REQUESTED: _answer(KeepReason.ALREADY_REQUESTED),
    KeepReason.PROTECTED: _answer(KeepReason.PROTECTED),
    KeepReason.DENIED: _answer(KeepReason.DENIED),
    KeepReason.INVALID_ID: _answer(KeepReason.INVALID_ID),
    KeepReason.FAILED: _answer(KeepReason.FAILED),
    KeepReason.LAUNCH_GRACE: _grace,
    KeepReason.UNCONFIRMED: _looks,
    KeepReason.ROW_VANISHED: _vanished,
}
_FACTS_BY_NAME: Mapping[str, Fact] = {str(reason): fact for reason, fact in FACTS.items()}


# ---------------------------------------------------------------- the pass


def _breaker(told: Explanation, policy: ReapPolicy) -> str:
    reading, limits = told.breaker, policy.breaker
    if reading is None:
        return "not judged"
    if reading.tripped:
        return f"with this machine: {reading.tripped}"
    return (
        f"{many(reading.candidates, 'candidate')} with this machine (max_per_pass {limits.max_per_pass}), "
        f"{reading.in_window} in the last hour (max_per_hour {limits.max_per_hour})"
    )
