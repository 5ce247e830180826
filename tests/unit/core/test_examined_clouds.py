"""What is said of a provider that was examined."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

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
from providers.model import Scope, ScopeFailure
from reaperd.core.examined_clouds import (
    Wishes,
    broke_off,
    cannot_be_examined,
    judge_provider,
    listed_twice,
    no_longer_listed,
)
from reaperd.core.findings import Finding, Grade, Subject, counted
from reaperd.core.model import RefusalReason
from tests.support.worlds import EAST, SECOND, WEST, broken, machine, ref, whole

DENIED = Trouble(code="UnauthorizedOperation", detail="no")
FAR = Scope("aws", "ap-south-1")
REGIONS = frozenset({EAST.region, WEST.region, FAR.region})


def scope(*answers: Answer, **other: Any) -> ScopeExamination:
    """Return a region that was listed whole, with a machine for each answer."""
    probes = tuple(
        Probe(ref=ref(f"i-{number}"), answer=answer, trouble=None if answer is Answer.ALLOWED else DENIED)
        for number, answer in enumerate(answers)
    )
    facts: dict[str, Any] = {
        "coverage": whole(EAST, clock_skew=SECOND, instances=len(answers)),
        "owned": tuple(machine(f"i-{number}") for number in range(len(answers))),
        "probes": probes,
    }
    return ScopeExamination(**(facts | other))


def failed(at: Scope = EAST, failure: ScopeFailure = ScopeFailure.LISTING, **other: Any) -> ScopeExamination:
    return ScopeExamination(coverage=broken(at, failure, **other))


def found(*scopes: ScopeExamination, **other: Any) -> Examination:
    facts: dict[str, Any] = {
        "name": "aws",
        "account": "111111111111",
        "caller": "arn:aws:iam::111111111111:role/reaperd",
        "enabled": REGIONS,
        "scopes": scopes,
    }
    return Examination(**(facts | other))


def wishes(**other: Any) -> Wishes:
    facts: dict[str, Any] = {
        "enforcing": True,
        "discovering": False,
        "deployment": "prod-a",
        "owner_tag": "reaperd:owner",
    }
    return Wishes(**(facts | other))


def judged(examination: Examination, **wished: Any) -> list[Finding]:
    return list(judge_provider(examination, wishes(**wished)))


def about(subject: Subject, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.subject is subject]


def only(subject: Subject, findings: list[Finding]) -> Finding:
    (finding,) = about(subject, findings)
    return finding


def test_an_account_in_which_all_is_well_has_no_warning():
    findings = judged(found(scope(Answer.ALLOWED, Answer.ALLOWED)))

    assert counted(findings) == {Grade.OK: 5}
    assert [finding.subject for finding in findings] == [
        Subject.ACCOUNT,
        Subject.REGIONS,
        Subject.LISTING,
        Subject.CLOCK,
        Subject.PERMISSIONS,
    ]


# ---------------------------------------------------------------- the account


def test_the_account_is_told_with_who_we_are():
    text = only(Subject.ACCOUNT, judged(found())).text

    assert text == "111111111111, as arn:aws:iam::111111111111:role/reaperd"


@pytest.mark.parametrize(
    ("account", "text"), [(None, "it has no accounts"), ("111111111111", "111111111111")], ids=["none", "unnamed"]
)
def test_a_cloud_that_says_less_is_told_with_less(account: str | None, text: str):
    assert only(Subject.ACCOUNT, judged(found(account=account, caller=None))).text == text


def test_another_account_fails_and_nothing_else_is_said():
    trouble = Trouble(code=WRONG_ACCOUNT, detail="the credentials belong to 2, not to 1")

    (finding,) = judged(found(trouble=trouble))

    assert (finding.grade, finding.text) == (Grade.FAILURE, "the credentials belong to 2, not to 1")
    assert finding.reason is RefusalReason.WRONG_ACCOUNT


def test_an_identity_that_cannot_be_had_fails_with_the_code():
    (finding,) = judged(found(trouble=Trouble(code="no_credentials", detail="Unable to locate credentials")))

    assert finding.text == "who we are there cannot be proved: no_credentials: Unable to locate credentials"
    assert finding.reason is RefusalReason.WRONG_ACCOUNT


def test_a_code_without_words_is_told_alone():
    (finding,) = judged(found(trouble=Trouble(code="http_503")))

    assert finding.text.endswith("proved: http_503")


# ---------------------------------------------------------------- regions


def left_out(**facts: Any) -> list[Finding]:
    findings = judged(found(left_out=(LeftOut(scope=WEST, **facts),)))
    return [finding for finding in about(Subject.REGIONS, findings) if finding.scope == str(WEST)]


def test_machines_of_ours_where_no_pass_looks_fail():
    (finding,) = left_out(instances=7, owned=2)

    assert finding.grade is Grade.FAILURE
    assert finding.text.startswith("2 machines of ours")
    assert "'eu-west-1'" in finding.remedy


def test_what_of_ours_was_seen_before_an_error_fails_all_the_same():
    (finding,) = left_out(instances=7, owned=1, trouble=DENIED)

    assert (finding.grade, finding.text.startswith("1 machine of ours")) == (Grade.FAILURE, True)


def test_machines_of_others_where_no_pass_looks_are_a_warning():
    (finding,) = left_out(instances=7)

    assert finding.grade is Grade.WARNING
    assert "7 machines, none with reaperd:owner = prod-a" in finding.text


def test_a_left_out_region_that_cannot_be_looked_at_is_a_warning():
    (finding,) = left_out(trouble=DENIED)

    assert finding.grade is Grade.WARNING
    assert "not known: UnauthorizedOperation: no" in finding.text


def test_an_empty_region_that_is_left_out_is_not_told():
    assert left_out() == []


def test_the_regions_are_counted_with_those_that_need_a_thought():
    others = (LeftOut(scope=WEST, instances=1), LeftOut(scope=FAR))

    told = about(Subject.REGIONS, judged(found(scope(), left_out=others)))[-1]

    assert (told.grade, told.text) == (
        Grade.OK,
        "1 of 3 enabled regions configured; 1 other to think about",
    )


def test_a_configured_region_that_is_not_enabled_is_none_of_the_enabled():
    findings = judged(found(scope(), failed(WEST), enabled=frozenset({EAST.region})))

    assert only(Subject.REGIONS, findings).text == "1 of 1 enabled region configured; no other holds a machine"


def test_regions_that_are_found_are_counted():
    assert only(Subject.REGIONS, judged(found(), discovering=True)).text == "auto: 3 enabled regions"


@pytest.mark.parametrize(
    ("discovering", "grade", "reason"),
    [(True, Grade.FAILURE, RefusalReason.LISTING_INCOMPLETE), (False, Grade.WARNING, None)],
)
@pytest.mark.parametrize("code", ["UnauthorizedOperation", "http_503"])
def test_regions_that_cannot_be_had_fail_where_they_are_to_be_found(
    code: str, discovering: bool, grade: Grade, reason: RefusalReason | None
):
    examination = found(enabled=None, enabled_trouble=Trouble(code=code))

    finding = only(Subject.REGIONS, judged(examination, discovering=discovering))

    assert (finding.grade, finding.reason) == (grade, reason)
    assert ("ec2:DescribeRegions" in finding.remedy) is (code == "UnauthorizedOperation")
    assert finding.remedy


def test_a_cloud_without_regions_says_nothing_of_them():
    assert about(Subject.REGIONS, judged(found(enabled=None))) == []


# ---------------------------------------------------------------- listing and clock


def test_a_whole_listing_is_told_with_its_size():
    finding = only(Subject.LISTING, judged(found(scope(Answer.ALLOWED))))

    assert (finding.grade, finding.text) == (Grade.OK, "1 machine of ours, listed whole in 0.0 s")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (ScopeFailure.LISTING, RefusalReason.LISTING_INCOMPLETE),
        (ScopeFailure.WRONG_ACCOUNT, RefusalReason.WRONG_ACCOUNT),
        (ScopeFailure.DEADLINE, RefusalReason.DEADLINE),
    ],
)
def test_a_listing_that_is_not_whole_is_what_a_pass_is_refused_with(failure: ScopeFailure, reason: RefusalReason):
    finding = only(Subject.LISTING, judged(found(failed(failure=failure, detail="why"))))

    assert (finding.grade, finding.reason) == (Grade.FAILURE, reason)
    assert finding.text == "it was not listed whole (AuthFailure: why)"


def empty(*regions: str) -> tuple[ScopeExamination, ...]:
    return tuple(ScopeExamination(coverage=whole(Scope("aws", region), instances=0)) for region in regions)


def test_many_regions_without_a_machine_of_ours_share_a_line():
    findings = judged(found(scope(Answer.ALLOWED), *empty("r-1", "r-2", "r-3", "r-4"), failed(WEST)))

    assert [finding.scope for finding in about(Subject.LISTING, findings)] == [str(EAST), str(WEST), "aws"]
    assert about(Subject.LISTING, findings)[-1].text == "no machine of ours in 4 other regions, each listed whole"
    assert [finding.scope for finding in about(Subject.PERMISSIONS, findings)] == [str(EAST)]


def test_a_few_regions_without_a_machine_of_ours_have_a_line_each():
    findings = judged(found(*empty("r-1", "r-2", "r-3")))

    assert [finding.scope for finding in about(Subject.LISTING, findings)] == ["aws/r-1", "aws/r-2", "aws/r-3"]
    assert [finding.scope for finding in about(Subject.PERMISSIONS, findings)] == ["aws/r-1", "aws/r-2", "aws/r-3"]


def test_an_empty_region_with_a_trouble_keeps_its_line():
    odd = ScopeExamination(coverage=whole(WEST, instances=0), trouble=Trouble(code="dry_run_unheeded"))

    findings = judged(found(*empty("r-1", "r-2", "r-3", "r-4"), odd))

    assert str(WEST) in [finding.scope for finding in about(Subject.PERMISSIONS, findings)]


def test_a_listing_that_is_not_allowed_names_the_permission():
    finding = only(Subject.LISTING, judged(found(failed(error_code="UnauthorizedOperation"))))

    assert "ec2:DescribeInstances" in finding.remedy


def test_a_region_that_is_not_enabled_is_told_as_that():
    finding = only(Subject.LISTING, judged(found(failed(), enabled=frozenset({WEST.region}))))

    assert finding.text.startswith("this region is not enabled in the account")
    assert "Enable it" in finding.remedy


def test_nothing_is_asked_of_a_region_that_was_not_listed():
    assert about(Subject.PERMISSIONS, judged(found(failed()))) == []


@pytest.mark.parametrize(
    ("skew", "grade"),
    [
        (timedelta(0), Grade.OK),
        (timedelta(seconds=60), Grade.OK),
        (timedelta(seconds=61), Grade.FAILURE),
        (timedelta(seconds=-61), Grade.FAILURE),
    ],
)
def test_a_clock_may_be_a_minute_off(skew: timedelta, grade: Grade):
    findings = judged(found(scope(coverage=whole(EAST, clock_skew=skew), probes=(), owned=())))

    finding = only(Subject.CLOCK, findings)
    assert finding.grade is grade
    assert (finding.reason is RefusalReason.CLOCK) is (grade is Grade.FAILURE)


def test_one_wrong_clock_leaves_no_good_word_for_the_others():
    findings = judged(found(scope(), failed(WEST, clock_skew=timedelta(minutes=9))))

    finding = only(Subject.CLOCK, findings)
    assert (finding.scope, finding.grade) == (str(WEST), Grade.FAILURE)
    assert "540 s" in finding.text


def test_without_a_date_nothing_is_said_of_the_clock():
    assert about(Subject.CLOCK, judged(found(failed()))) == []


# ---------------------------------------------------------------- permissions


def test_without_a_machine_of_ours_nothing_was_asked_and_nothing_is_wrong():
    finding = only(Subject.PERMISSIONS, judged(found(scope())))

    assert (finding.grade, finding.text) == (Grade.OK, "not asked: there is no machine of ours to ask about")


def test_a_cloud_that_does_not_heed_the_question_is_a_warning():
    finding = only(Subject.PERMISSIONS, judged(found(scope(trouble=Trouble(code="dry_run_unheeded")))))

    assert finding.grade is Grade.WARNING
    assert "dry_run_unheeded" in finding.text


def test_how_many_were_asked_about_is_told():
    asked = scope(Answer.ALLOWED, Answer.ALLOWED, owned=tuple(machine(f"i-{n}") for n in range(1200)))

    finding = only(Subject.PERMISSIONS, judged(found(asked)))

    assert finding.text == "2 could be terminated (DryRun; 2 of 1,200 machines of ours asked about, oldest first)"


@pytest.mark.parametrize(("enforcing", "grade"), [(True, Grade.FAILURE), (False, Grade.WARNING)])
def test_owned_but_not_reapable_fails_where_it_is_enforced(enforcing: bool, grade: Grade):
    findings = judged(found(scope(*[Answer.DENIED] * 5, Answer.ALLOWED)), enforcing=enforcing)

    denied, allowed = about(Subject.PERMISSIONS, findings)
    assert denied.grade is grade
    assert denied.text == (
        "5 of 6 asked about are owned but not reapable (UnauthorizedOperation): i-0, i-1, i-2 and 2 more"
    )
    assert "reaperd:owner = prod-a" in denied.remedy
    assert allowed.text.startswith("1 could be terminated")


def test_up_to_three_machines_are_named_without_a_number():
    finding = only(Subject.PERMISSIONS, judged(found(scope(*[Answer.DENIED] * 3))))

    assert finding.text.endswith(": i-0, i-1, i-2")


def test_a_denial_without_a_code_is_told_as_one():
    probe = Probe(ref=ref(), answer=Answer.DENIED)

    assert "(denied)" in only(Subject.PERMISSIONS, judged(found(scope(probes=(probe,))))).text


def test_termination_protection_is_a_warning():
    finding = only(Subject.PERMISSIONS, judged(found(scope(Answer.PROTECTED))))

    assert (finding.grade, "termination protection" in finding.text) == (Grade.WARNING, True)


def test_an_unclear_answer_is_a_warning_with_what_was_said():
    finding = only(Subject.PERMISSIONS, judged(found(scope(Answer.UNCLEAR))))

    assert finding.grade is Grade.WARNING
    assert finding.text == "whether i-0 may be terminated is not clear: UnauthorizedOperation: no"


def test_a_question_that_was_taken_for_the_request_fails_in_any_mode():
    finding = only(Subject.PERMISSIONS, judged(found(scope(Answer.TAKEN)), enforcing=False))

    assert finding.grade is Grade.FAILURE
    assert "i-0 may be ending" in finding.text


def test_a_machine_that_went_meanwhile_is_no_word_worth():
    assert about(Subject.PERMISSIONS, judged(found(scope(Answer.GONE)))) == []


@pytest.mark.parametrize(
    ("enforcing", "is_vital", "grade"),
    [(True, True, Grade.FAILURE), (False, True, Grade.WARNING), (True, False, Grade.WARNING)],
)
def test_what_is_missing_on_the_way_to_a_termination_is_told(enforcing: bool, is_vital: bool, grade: Grade):
    shortfall = Shortfall(permission="ec2:DescribeFleets", without="they stay", trouble=DENIED, is_vital=is_vital)

    told = about(Subject.PERMISSIONS, judged(found(scope(shortfalls=(shortfall,))), enforcing=enforcing))[0]

    assert (told.grade, told.text) == (grade, "ec2:DescribeFleets is denied: they stay")
    assert told.remedy == "Allow ec2:DescribeFleets to the role of reaperd."


def test_what_is_not_clear_on_the_way_to_a_termination_is_a_warning():
    throttled = Trouble(code="RequestLimitExceeded", detail="slow down")
    shortfall = Shortfall(permission="ec2:DescribeFleets", without="they stay", trouble=throttled)

    told = about(Subject.PERMISSIONS, judged(found(scope(shortfalls=(shortfall,)))))[0]

    assert (told.grade, told.commands) == (Grade.WARNING, ("reaperd doctor{config}",))
    assert "RequestLimitExceeded: slow down" in told.text


def test_questions_that_were_cut_short_are_told_beside_what_was_answered():
    cut = scope(Answer.ALLOWED, trouble=Trouble(code="deadline", detail="the time was up"))

    warned, fine = about(Subject.PERMISSIONS, judged(found(cut)))

    assert (warned.grade, fine.grade) == (Grade.WARNING, Grade.OK)
    assert "deadline" in warned.text


# ---------------------------------------------------------------- providers that are no examination


@pytest.mark.parametrize(
    ("finding", "grade"),
    [
        (cannot_be_examined("gcp", "nimbus"), Grade.WARNING),
        (broke_off("gcp", "KeyError: 'x'"), Grade.FAILURE),
        (no_longer_listed(WEST), Grade.FAILURE),
        (listed_twice("a and b are the same account 1 in r"), Grade.FAILURE),
    ],
    ids=["skipped", "broke-off", "dropped", "twice"],
)
def test_what_is_said_without_an_examination_has_a_remedy(finding: Finding, grade: Grade):
    assert finding.grade is grade
    assert finding.remedy
