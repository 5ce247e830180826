"""The accounts that an organization of AWS has, for those who want to know whether one was forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from providers.aws.answers import Answer, answer_of
from providers.aws.errors import CALL_ERRORS, DEADLINE, MALFORMED, BrokenAnswerError, error_code, error_text
from providers.aws.options import AwsOptions
from providers.aws.session import AwsSessions, OrganizationsClient
from providers.base import Clock
from providers.examination import NO_ORGANIZATION, Member, Organization, Trouble

_NOT_IN_USE = "AWSOrganizationsNotInUseException"
_NOTHING_RUNS = frozenset({"CLOSED", "PENDING_ACTIVATION", "PENDING_CLOSURE", "SUSPENDED"})
"""States of an account without machines. One that is not known here may have some."""


class AwsOrganization:
    """Asks with the credentials of one account. Its session can do nothing else with them."""

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock) -> None:
        """Keep how to ask; nothing is sent."""
        self._options = options
        self._sessions = sessions
        self._clock = clock

    def look(self) -> Organization | Trouble:
        """Return the organization with all its accounts, or why they are not known. Never a part of them.

        AWS tells them to the management account and to delegated administrators, and denies the question to others.
        """
        try:
            members = self._members(self._sessions.open().organizations())
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            code = error_code(error)
            return Trouble(code=NO_ORGANIZATION if code == _NOT_IN_USE else code, detail=error_text(error))
        return Organization(members=members)

    def _members(self, client: OrganizationsClient) -> tuple[Member, ...]:
        rows = [row for page in self._pages(client) for row in _rows(page)]
        if not rows:
            # The account that asks is in it.
            raise BrokenAnswerError(MALFORMED, "an organization without an account")
        return tuple(sorted(map(_member, filter(_may_run, rows)), key=lambda member: member.account))

    def _pages(self, client: OrganizationsClient) -> Iterator[Answer]:
        """Yield the pages up to the last. An empty one with a token is not the last."""
        over_at = self._clock.monotonic() + self._options.listing_timeout.total_seconds()
        request: dict[str, str] = {}
        tokens: set[object] = set()
        while True:
            page = answer_of(partial(client.list_accounts, **request), is_xml=False)
            yield page
            token = page.get("NextToken")
            if not isinstance(token, str) or not token:
                return
            if token in tokens:
                code = "repeated_token"
                raise BrokenAnswerError(code, "the same page was announced twice")
            if self._clock.monotonic() > over_at:
                raise BrokenAnswerError(DEADLINE, f"not listed within {self._options.listing_timeout}")
            tokens.add(token)
            request = {"NextToken": token}


def _rows(page: Answer) -> list[object]:
    rows = page.get("Accounts")
    if not isinstance(rows, list):
        raise BrokenAnswerError(MALFORMED, "no list of Accounts")
    return rows


def _may_run(row: object) -> bool:
    # Status is the older name; a newer one takes its place.
    state = row.get("State") or row.get("Status") if isinstance(row, Mapping) else None
    return state not in _NOTHING_RUNS


def _member(row: object) -> Member:
    account = row.get("Id") if isinstance(row, Mapping) else None
    if not isinstance(row, Mapping) or not isinstance(account, str) or not account:
        raise BrokenAnswerError(MALFORMED, "an account without an id")
    name = row.get("Name")
    return Member(account=account, name=name if isinstance(name, str) else "")
