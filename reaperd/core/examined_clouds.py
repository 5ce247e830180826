"""What is to be thought of a provider that was examined. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from providers.examination import (
    WRONG_ACCOUNT,
    Answer,
    Examination,
    LeftOut,
    Probe,
    ScopeExamination,
    Shortfall,
    Trouble,
)
from providers.model import Coverage, Scope, ScopeFailure
from reaperd.core.findings import Finding, Grade, Subject, many
from reaperd.core.model import CLOCK_TOLERANCE, RefusalReason

NAMED = 3
"""So many machines are named; of the others their number is told."""
EMPTY = 3
"""So many regions without a machine of ours have a line of their own; more of them share one."""

UNAUTHORIZED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
"""The codes of a plain no."""
_REFUSED_WITH = {
    ScopeFailure.LISTING: RefusalReason.LISTING_INCOMPLETE,
    ScopeFailure.WRONG_ACCOUNT: RefusalReason.WRONG_ACCOUNT,
    ScopeFailure.DEADLINE: RefusalReason.DEADLINE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the configuration asks of a provider."""

    enforcing: bool
    discovering: bool
    """True when its regions are found at run time."""
    deployment: str
    owner_tag: str


def judge_provider(found: Examination, wishes: Wishes) -> Iterator[Finding]:
    """Yield what is to be said of one provider."""
    yield _account(found)
    if found.trouble is not None:
        return
    yield from _regions(found, wishes)
    empty, others = _apart(found.scopes)
    for each in others:
        yield _listing(each.coverage, found.enabled)
    if empty:
        text = f"no machine of ours in {many(len(empty), 'other region')}, each listed whole"
        yield Finding(subject=Subject.LISTING, grade=Grade.OK, scope=found.name, text=text)
    yield from _clock(found)
    for each in others:
        if each.coverage.ok:
            yield from _permissions(each, wishes)


def cannot_be_examined(name: str, kind: str) -> Finding:
    """Return what is said of a plug-in without the ability."""
    return Finding(
        subject=Subject.ACCOUNT,
        grade=Grade.WARNING,
        scope=name,
        text=f"skipped: the plug-in {kind!r} cannot be examined",
        remedy="See by a look whether it answers.",
        commands=("reaperd plan{config}",),
    )


def broke_off(name: str, what: str) -> Finding:
    """Return what is said of a provider that could not be built, or whose examination did not end well."""
    return Finding(
        subject=Subject.ACCOUNT,
        grade=Grade.FAILURE,
        scope=name,
        text=f"it could not be examined: {what}",
        remedy="Correct its table in [[providers]].",
        commands=("reaperd check-config --show{config}",),
    )


def no_longer_listed(scope: Scope) -> Finding:
    """Return what is said of a scope that was listed once, and that its account has no more."""
    return Finding(
        subject=Subject.LISTING,
        grade=Grade.FAILURE,
        scope=str(scope),
        text="it was listed before and is not enabled any more, so no listing is whole",
        remedy=f'Enable it again; or, if {scope.region!r} is given up, name the regions instead of "auto".',
        reason=RefusalReason.LISTING_INCOMPLETE,
    )


def listed_twice(text: str) -> Finding:
    """Return what is said of two providers that are one account."""
    return Finding(
        subject=Subject.ACCOUNT,
        grade=Grade.FAILURE,
        text=text,
        remedy="Take one of the two tables out of [[providers]], or its regions.",
        reason=RefusalReason.WRONG_ACCOUNT,
    )


def _account(found: Examination) -> Finding:
    trouble = found.trouble
    if trouble is None:
        who = f", as {found.caller}" if found.caller else ""
        text = f"{found.account}{who}" if found.account else "it has no accounts"
        return Finding(subject=Subject.ACCOUNT, grade=Grade.OK, scope=found.name, text=text)
    text = trouble.detail if trouble.code == WRONG_ACCOUNT else f"who we are there cannot be proved: {trouble}"
    return Finding(
        subject=Subject.ACCOUNT,
        grade=Grade.FAILURE,
        scope=found.name,
        text=text,
        reason=RefusalReason.WRONG_ACCOUNT,
    )


def _apart(scopes: Sequence[ScopeExamination]) -> tuple[list[ScopeExamination], list[ScopeExamination]]:
    """Return the regions of which there is nothing to say but that they are empty, if they are many, and all others.

    An account has dozens of them, and what matters would drown.
    """
    empty = [each for each in scopes if each.coverage.ok and not each.owned and each.trouble is None]
    if len(empty) <= EMPTY:
        return [], list(scopes)
    return empty, [each for each in scopes if each not in empty]


# ---------------------------------------------------------------- regions


def _regions(found: Examination, wishes: Wishes) -> Iterator[Finding]:
    if found.enabled_trouble is not None:
        yield _unknown_regions(found.name, found.enabled_trouble, wishes)
    odd = [finding for each in found.left_out if (finding := _left_out(each, wishes)) is not None]
    yield from odd
    if found.enabled is None:
        return
    if wishes.discovering:
        text = f"auto: {many(len(found.enabled), 'enabled region')}"
    else:
        others = "no other holds a machine" if not odd else f"{many(len(odd), 'other')} to think about"
        named = sum(1 for each in found.scopes if each.coverage.scope.region in found.enabled)
        text = f"{named:,} of {many(len(found.enabled), 'enabled region')} configured; {others}"
    yield Finding(subject=Subject.REGIONS, grade=Grade.OK, scope=found.name, text=text)


def _unknown_regions(name: str, trouble: Trouble, wishes: Wishes) -> Finding:
    remedy = "Allow ec2:DescribeRegions to the role of reaperd." if trouble.code in UNAUTHORIZED else ""
    if wishes.discovering:
        return Finding(
            subject=Subject.REGIONS,
            grade=Grade.FAILURE,
            scope=name,
            text=f"the regions of the account cannot be had: {trouble}",
            remedy=remedy or 'End the error, or name the regions instead of "auto".',
            reason=RefusalReason.LISTING_INCOMPLETE,
        )
    return Finding(
        subject=Subject.REGIONS,
        grade=Grade.WARNING,
        scope=name,
        text=f"whether other regions hold machines is not known: {trouble}",
        remedy=remedy or "End the error, and ask again.",
        commands=("reaperd doctor{config}",),
    )


def _left_out(each: LeftOut, wishes: Wishes) -> Finding | None:
    """Return what is to be said of a region that the configuration leaves out; None when there is nothing."""
    name, scope = each.scope.region, str(each.scope)
    if each.owned:
        return Finding(
            subject=Subject.REGIONS,
            grade=Grade.FAILURE,
            scope=scope,
            text=f"{many(each.owned, 'machine')} of ours where no pass looks, so that none is ever terminated",
            remedy=f"Add {name!r} to `regions`, or end what runs there.",
            commands=("reaperd audit{config}",),
        )
    if each.trouble is not None:
        return Finding(
            subject=Subject.REGIONS,
            grade=Grade.WARNING,
            scope=scope,
            text=f"it is left out, and whether it holds machines is not known: {each.trouble}",
            remedy="Switch the region off if nobody uses it, or let the role of reaperd look into it.",
        )
    if each.instances:
        return Finding(
            subject=Subject.REGIONS,
            grade=Grade.WARNING,
            scope=scope,
            text=f"it is left out and holds {many(each.instances, 'machine')}, none with {wishes.owner_tag} = "
            f"{wishes.deployment}",
            remedy="Nothing to do if they are not the fleet's; the audit looks at them.",
            commands=("reaperd audit{config}",),
        )
    return None


# ---------------------------------------------------------------- listing and clock


def _listing(coverage: Coverage, enabled: frozenset[str] | None) -> Finding:
    scope = str(coverage.scope)
    if coverage.failure is None:
        took = f"{coverage.duration.total_seconds():.1f} s"
        text = f"{many(coverage.instances, 'machine')} of ours, listed whole in {took}"
        return Finding(subject=Subject.LISTING, grade=Grade.OK, scope=scope, text=text)
    not_enabled = enabled is not None and coverage.scope.region not in enabled
    what = "this region is not enabled in the account" if not_enabled else "it was not listed whole"
    return Finding(
        subject=Subject.LISTING,
        grade=Grade.FAILURE,
        scope=scope,
        text=f"{what} ({': '.join(part for part in (coverage.error_code, coverage.detail) if part)})",
        remedy=_remedy_of_listing(coverage, not_enabled=not_enabled),
        reason=_REFUSED_WITH[coverage.failure],
    )


def _remedy_of_listing(coverage: Coverage, *, not_enabled: bool) -> str:
    if not_enabled:
        return "Enable it in the account, or take it out of `regions`: until then nothing is terminated anywhere."
    if coverage.error_code in UNAUTHORIZED:
        return "Allow ec2:DescribeInstances to the role of reaperd: until then nothing is terminated anywhere."
    return ""


def _clock(found: Examination) -> Iterator[Finding]:
    """Compare the clocks by the dates of the answers, those of failed listings too."""
    skews = {each.coverage.scope: each.coverage.clock_skew for each in found.scopes}
    known = {scope: abs(skew) for scope, skew in skews.items() if skew is not None}
    for scope, skew in known.items():
        if skew > CLOCK_TOLERANCE:
            yield Finding(
                subject=Subject.CLOCK,
                grade=Grade.FAILURE,
                scope=str(scope),
                text=f"its clock and this machine's differ by {skew.total_seconds():.0f} s",
                reason=RefusalReason.CLOCK,
            )
    if known and max(known.values()) <= CLOCK_TOLERANCE:
        worst = max(known.values()).total_seconds()
        text = f"this machine's is {worst:.0f} s off at the most ({many(len(known), 'region')} asked)"
        yield Finding(subject=Subject.CLOCK, grade=Grade.OK, scope=found.name, text=text)


# ---------------------------------------------------------------- permissions


def _permissions(each: ScopeExamination, wishes: Wishes) -> Iterator[Finding]:
    yield from (_short_of(each.coverage.scope, shortfall, wishes) for shortfall in each.shortfalls)
    if not each.probes:
        yield _not_asked(each)
        return
    asked = f"{len(each.probes):,} of {many(len(each.owned), 'machine')} of ours asked about"
    for answer in Answer:
        probes = [probe for probe in each.probes if probe.answer is answer]
        if probes and answer not in {Answer.ALLOWED, Answer.GONE}:
            yield _not_reapable(each, answer, probes, wishes)
    if each.trouble is not None:
        yield _unclear(str(each.coverage.scope), f"not all could be asked about: {each.trouble}")
    allowed = sum(1 for probe in each.probes if probe.answer is Answer.ALLOWED)
    if allowed:
        text = f"{allowed:,} could be terminated (DryRun; {asked}, oldest first)"
        yield Finding(subject=Subject.PERMISSIONS, grade=Grade.OK, scope=str(each.coverage.scope), text=text)


def _short_of(scope: Scope, shortfall: Shortfall, wishes: Wishes) -> Finding:
    denied = shortfall.trouble.code in UNAUTHORIZED
    fails = denied and shortfall.is_vital and wishes.enforcing
    said = "is denied" if denied else f"is not clear ({shortfall.trouble})"
    remedy = f"Allow {shortfall.permission} to the role of reaperd." if denied else "Ask again later."
    return Finding(
        subject=Subject.PERMISSIONS,
        grade=Grade.FAILURE if fails else Grade.WARNING,
        scope=str(scope),
        text=f"{shortfall.permission} {said}: {shortfall.without}",
        remedy=remedy,
        commands=() if denied else ("reaperd doctor{config}",),
    )


def _not_asked(each: ScopeExamination) -> Finding:
    scope = str(each.coverage.scope)
    if each.trouble is not None:
        return _unclear(scope, f"it was not asked what may be terminated: {each.trouble}")
    text = "not asked: there is no machine of ours to ask about"
    return Finding(subject=Subject.PERMISSIONS, grade=Grade.OK, scope=scope, text=text)


def _unclear(scope: str, text: str) -> Finding:
    return Finding(
        subject=Subject.PERMISSIONS,
        grade=Grade.WARNING,
        scope=scope,
        text=text,
        remedy="Ask again later.",
        commands=("reaperd doctor{config}",),
    )


def _not_reapable(each: ScopeExamination, answer: Answer, probes: Sequence[Probe], wishes: Wishes) -> Finding:
    scope = str(each.coverage.scope)
    which, of = _named(probes), f"of {len(each.probes):,} asked about"
    said = probes[0].trouble
    if answer is Answer.UNCLEAR:
        return _unclear(scope, f"whether {which} may be terminated is not clear: {said}")
    if answer is Answer.PROTECTED:
        return Finding(
            subject=Subject.PERMISSIONS,
            grade=Grade.WARNING,
            scope=scope,
            text=f"{len(probes):,} {of} have termination protection, and are kept: {which}",
            remedy="Switch it off at the cloud if they may go.",
        )
    if answer is Answer.TAKEN:
        return Finding(
            subject=Subject.PERMISSIONS,
            grade=Grade.FAILURE,
            scope=scope,
            text=f"the cloud took the question (DryRun) for the request: {which} may be ending",
            remedy="Look at that machine. Use `endpoint_url` only with a cloud that knows DryRun.",
            commands=("reaperd plan{config}",),
        )
    return Finding(
        subject=Subject.PERMISSIONS,
        grade=Grade.FAILURE if wishes.enforcing else Grade.WARNING,
        scope=scope,
        text=f"{len(probes):,} {of} are owned but not reapable ({said.code if said else answer}): {which}",
        remedy=f"Allow ec2:TerminateInstances on machines with {wishes.owner_tag} = {wishes.deployment} to the role of "
        "reaperd.",
        commands=("reaperd iam-policy --role reaper{config}",),
    )


def _named(probes: Iterable[Probe]) -> str:
    ids = [probe.ref.instance_id for probe in probes]
    more = f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more
