"""What is said of accounts that have no table."""

from __future__ import annotations

import pytest

from providers.examination import NO_ORGANIZATION, Member, Organization, Trouble
from reaperd.core.examined_organization import judge_organizations
from reaperd.core.findings import Finding, Grade, Subject

OURS, THEIRS, THIRD = "111111111111", "222222222222", "333333333333"
DENIED = Trouble(code="AccessDeniedException", detail="You don't have permissions")
ALONE = Trouble(code=NO_ORGANIZATION)
LATE = Trouble(code="deadline", detail="no answer within 20 s")


def organization(*accounts: str) -> Organization:
    return Organization(members=tuple(Member(account=account, name=f"n{account[0]}") for account in accounts))


def judged(*answers: Organization | Trouble, **accounts: str | None) -> Finding:
    (finding,) = judge_organizations(answers, accounts or {"aws": OURS})
    assert (finding.subject, finding.scope) == (Subject.ACCOUNT, "organization")
    return finding


def test_accounts_without_a_table_are_a_warning_with_their_names():
    finding = judged(organization(OURS, THIRD, THEIRS))

    assert finding.grade is Grade.WARNING
    assert finding.text == (
        "accounts without a table, in which no pass looks (2 of 3 active): n2 (222222222222), n3 (333333333333)"
    )
    assert "[[providers]]" in finding.remedy


def test_an_account_without_a_name_is_told_by_its_id():
    finding = judged(Organization(members=(Member(account=THEIRS),)))

    assert finding.text.endswith("(1 of 1 active): 222222222222")


def test_every_account_with_a_table_is_fine():
    finding = judged(organization(OURS, THEIRS), aws=OURS, research=THEIRS)

    assert (finding.grade, finding.text) == (Grade.OK, "2 active accounts, each with a table")


def test_of_very_many_the_first_are_named_and_the_others_counted():
    finding = judged(organization(*(f"{number:012}" for number in range(23))))

    assert finding.text.count("n0 (") == 20
    assert finding.text.endswith("n0 (000000000019) and 3 more")


def test_as_many_as_are_named_leave_no_more():
    assert "more" not in judged(organization(*(f"{number:012}" for number in range(20)))).text


def test_a_table_whose_account_nobody_knows_may_be_the_one():
    finding = judged(organization(OURS, THEIRS), aws=OURS, dark=None)

    assert finding.text.endswith("n2 (222222222222). One may be that of 'dark', whose account is not known")


def test_where_nothing_is_missing_an_unknown_account_is_no_matter():
    assert judged(organization(OURS), aws=OURS, dark=None).grade is Grade.OK


def test_two_organizations_are_looked_at_together():
    finding = judged(organization(OURS, THEIRS), DENIED, organization(OURS, THIRD), aws=OURS, other=THIRD)

    assert finding.text.endswith("(1 of 3 active): n2 (222222222222)")


def test_one_that_is_told_is_enough():
    assert judged(DENIED, organization(OURS), LATE).text == "1 active account, each with a table"


def test_a_no_is_no_fault_and_says_who_is_told():
    finding = judged(ALONE, DENIED)

    assert finding.grade is Grade.OK
    assert finding.text == (
        "not known whether it has accounts without a table: its management account and delegated administrators alone "
        "are told (AccessDeniedException)"
    )


def test_an_error_is_no_fault_and_is_told_before_a_no():
    finding = judged(DENIED, LATE, ALONE)

    assert finding.grade is Grade.OK
    assert finding.text.endswith("without a table: deadline: no answer within 20 s")


def test_without_an_organization_there_is_nothing_to_compare():
    finding = judged(ALONE, ALONE)

    assert (finding.grade, finding.text) == (Grade.OK, "there is none, and so no account without a table")


@pytest.mark.parametrize("accounts", [{}, {"aws": OURS}])
def test_where_nobody_could_be_asked_nothing_is_said(accounts: dict[str, str | None]):
    assert list(judge_organizations([], accounts)) == []
