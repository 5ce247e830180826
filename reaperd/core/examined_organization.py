"""Whether an organization has accounts that nobody looks into. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from providers.examination import NO_ORGANIZATION, Member, Organization, Trouble
from reaperd.core.examined_clouds import UNAUTHORIZED
from reaperd.core.findings import Finding, Grade, Subject, many

ACCOUNTS_NAMED = 20
"""So many accounts are named; of the others their number is told."""
_SCOPE = "organization"


def judge_organizations(
    answers: Sequence[Organization | Trouble], accounts: Mapping[str, str | None]
) -> Iterator[Finding]:
    """Yield what is to be said of the accounts that have no table; nothing when nobody was asked.

    `accounts` has the account of each table, None where nobody knows it.
    """
    told = [answer for answer in answers if isinstance(answer, Organization)]
    members = {member.account: member for organization in told for member in organization.members}
    if told:
        missing = [members[account] for account in sorted(members.keys() - set(accounts.values()))]
        unknown = [name for name, account in accounts.items() if account is None]
        yield _without_a_table(missing, len(members), unknown) if missing else _all_have_one(len(members))
    elif answers:
        yield _not_compared([answer for answer in answers if isinstance(answer, Trouble)])


def _all_have_one(number: int) -> Finding:
    return _said(f"{many(number, 'active account')}, each with a table")


def _without_a_table(missing: Sequence[Member], number: int, unknown: Sequence[str]) -> Finding:
    named = ", ".join(_called(member) for member in missing[:ACCOUNTS_NAMED])
    more = f" and {len(missing) - ACCOUNTS_NAMED:,} more" if len(missing) > ACCOUNTS_NAMED else ""
    text = f"accounts without a table, in which no pass looks ({len(missing):,} of {number:,} active): {named}{more}"
    if unknown:
        text += f". One may be that of {', '.join(map(repr, unknown))}, whose account is not known"
    return Finding(
        subject=Subject.ACCOUNT,
        grade=Grade.WARNING,
        scope=_SCOPE,
        text=text,
        remedy="Add a [[providers]] table for each in which the fleet runs; for the others there is nothing to do.",
    )


def _called(member: Member) -> str:
    return f"{member.name} ({member.account})" if member.name else member.account


def _not_compared(troubles: Sequence[Trouble]) -> Finding:
    """Return that nothing is known, and why: what could be mended first, then a no, then that there is none."""
    denied = [trouble for trouble in troubles if trouble.code in UNAUTHORIZED]
    broken = [trouble for trouble in troubles if trouble.code not in {*UNAUTHORIZED, NO_ORGANIZATION}]
    if broken:
        return _said(f"not known whether it has accounts without a table: {broken[0]}")
    if denied:
        who = "its management account and delegated administrators alone are told"
        return _said(f"not known whether it has accounts without a table: {who} ({denied[0].code})")
    return _said("there is none, and so no account without a table")


def _said(text: str) -> Finding:
    return Finding(subject=Subject.ACCOUNT, grade=Grade.OK, scope=_SCOPE, text=text)
