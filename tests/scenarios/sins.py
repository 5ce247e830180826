"""Evidence as of a program that sins: each function doctors what was seen, so that a law can be shown to notice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from alerts.model import Cause, Condition, Severity
from providers.model import ScopeFailure
from reaperd.core.model import (
    Keep,
    KeepReason,
    Outcome,
    OutcomeKind,
    PassOutcome,
    Terminate,
    TerminateReason,
    Verdict,
)
from tests.scenarios.evidence import Evidence, IntentRow, Moment, Pass
from tests.support.ec2 import ApiRequest, Exchange, Machine
from tests.support.ec2.protocol import HttpRequest

Sin = Callable[[Evidence], Evidence]
_HTTP = HttpRequest(method="POST", path="/", query="", headers={}, body=b"")


def ends_everything(evidence: Evidence) -> Evidence:
    """Ask for every machine, with no intent, no look at the rows and no thought of its age."""

    def sin(one: Pass) -> Pass:
        asked = [_request(evidence, "TerminateInstances", m.instance_id) for m in one.before.machines]
        names = (m.instance_id for m in one.before.machines if m.instance_id not in one.accepted)
        return replace(one, asked=(*one.asked, *asked), accepted=(*one.accepted, *names))

    machines = [machine for one in evidence.passes for machine in one.before.machines]
    moments = tuple(_moment(evidence, machine) for machine in machines)
    return replace(_in_each(evidence, sin), moments=(*evidence.moments, *moments))


def ends_nothing(evidence: Evidence) -> Evidence:
    return _in_each(evidence, lambda one: replace(one, accepted=()))


def changes_an_attribute(evidence: Evidence) -> Evidence:
    modify = _request(evidence, "ModifyInstanceAttribute", "i-2")
    return _in_each(evidence, lambda one: replace(one, asked=(*one.asked, modify)))


def asks_without_a_name(evidence: Evidence) -> Evidence:
    """Begin with a request, before anybody asked whose credentials these are."""
    early = _request(evidence, "DescribeInstances", "")
    return _in_each(evidence, lambda one: replace(one, asked=(early, *one.asked)))


def hurries_on_when_throttled(evidence: Evidence) -> Evidence:
    throttled = replace(_request(evidence, "TerminateInstances", "i-05"), error_code="RequestLimitExceeded")
    following = _request(evidence, "TerminateInstances", "i-06")
    return _in_each(evidence, lambda one: replace(one, asked=(*one.asked, throttled, following)))


def judges_nothing(evidence: Evidence) -> Evidence:
    return _told(evidence, lambda _: {"verdicts": ()})


def judges_strangers(evidence: Evidence) -> Evidence:
    def sin(one: Pass) -> dict[str, Any]:
        known = one.reap.verdicts[0] if one.reap and one.reap.verdicts else None
        if known is None:
            return {}
        ref = replace(known.ref, instance_id="i-stranger")
        return {"verdicts": (*one.reap.verdicts, replace(known, instance=replace(known.instance, ref=ref)))}

    return _told(evidence, sin)


def tracks_everything(evidence: Evidence) -> Evidence:
    return _judged(evidence, lambda verdict: replace(verdict, call=Keep(KeepReason.TRACKED)))


def tracks_nothing(evidence: Evidence) -> Evidence:
    return _judged(evidence, lambda verdict: replace(verdict, call=Terminate(TerminateReason.UNREGISTERED)))


def adds_an_hour(evidence: Evidence) -> Evidence:
    return _judged(evidence, lambda verdict: replace(verdict, age=(verdict.age or timedelta()) + timedelta(hours=1)))


def reads_no_rows(evidence: Evidence) -> Evidence:
    def sin(one: Pass) -> dict[str, Any]:
        read = one.reap.registry if one.reap else None
        return {"registry": replace(read, workers=())} if read else {}

    return _told(evidence, sin)


def writes_the_registry(evidence: Evidence) -> Evidence:
    def sin(one: Pass) -> Pass:
        return replace(one, disturbed=False, after=replace(one.after, files={"registry.db": "another"}))

    return _in_each(evidence, sin)


def reads_one_page(evidence: Evidence) -> Evidence:
    return _told(evidence, lambda one: {"coverage": tuple(replace(e, pages=1) for e in one.report.coverage)})


def fails_a_scope(evidence: Evidence) -> Evidence:
    """Do and learn what was done and learned, although the listing had a hole."""

    def sin(one: Pass) -> dict[str, Any]:
        failed = (replace(e, failure=ScopeFailure.LISTING, error_code="Test") for e in one.report.coverage)
        return {"coverage": tuple(failed)}

    return _told(evidence, sin)


def refuses(evidence: Evidence) -> Evidence:
    return _told(evidence, lambda _: {"outcome": PassOutcome.REFUSED, "reason": "reap_hold"})


def breaks_off(evidence: Evidence) -> Evidence:
    return replace(_told(evidence, lambda _: {"outcome": PassOutcome.ERROR}), steps_left=1)


def gives_way(evidence: Evidence) -> Evidence:
    """Complete the last pass, whatever stopped the earlier ones."""
    *earlier, last = evidence.passes
    kept = replace(last, report=replace(last.report, outcome=PassOutcome.COMPLETE, reason=None))
    return replace(evidence, passes=(*earlier, kept))


def claims_everything(evidence: Evidence) -> Evidence:
    """Call every machine requested and gone, in each pass anew."""

    def sin(one: Pass) -> dict[str, Any]:
        kinds = (OutcomeKind.REQUESTED, OutcomeKind.CONFIRMED_GONE)
        refs = [verdict.ref for verdict in one.reap.verdicts] if one.reap else []
        told = tuple(Outcome(ref=ref, kind=kind) for ref in refs for kind in kinds)
        return {"outcomes": (*one.reap.outcomes, *told)} if one.reap else {}

    closed = _in_each(evidence, lambda one: replace(one, after=replace(one.after, intents=_closed(one))))
    return _told(closed, sin)


def forgets_everything(evidence: Evidence) -> Evidence:
    return _in_each(evidence, lambda one: replace(one, after=replace(one.after, first_seen={})))


def alerts_on_everything(evidence: Evidence) -> Evidence:
    def sin(one: Pass) -> dict[str, Any]:
        subjects = [f"aws/{m.region}/{m.instance_id}" for m in one.before.machines]
        leaks = tuple(Condition(cause=Cause.LEAK, subject=s, severity=Severity.WARNING) for s in subjects)
        if one.reap is not None:
            return {"conditions": (*one.reap.conditions, *leaks)}
        found = one.report.findings
        return {"findings": replace(found, conditions=(*found.conditions, *leaks))}

    return _told(evidence, sin)


def counts_a_stranger(evidence: Evidence) -> Evidence:
    return _shown(evidence, lambda _, text: re.sub(r"(?m)^(reaperd_owned_instances\{.*\}) .*$", r"\1 99.0", text))


def begins_its_counters_late(evidence: Evidence) -> Evidence:
    def sin(page: int, text: str) -> str:
        return text if page else re.sub(r"(?m)^reaperd_\w+_total.* 0\.0\n", "", text)

    return _shown(evidence, sin)


def labels_its_metrics_with_machines(evidence: Evidence) -> Evidence:
    names = sorted({machine.instance_id for one in evidence.passes for machine in one.before.machines})
    lines = "".join(f'reaperd_leak{{instance_id="{name}"}} 1.0\n' for name in names)
    return _shown(evidence, lambda _, text: text + lines)


SINS: tuple[Sin, ...] = (
    ends_everything,
    ends_nothing,
    changes_an_attribute,
    asks_without_a_name,
    hurries_on_when_throttled,
    judges_nothing,
    judges_strangers,
    tracks_everything,
    tracks_nothing,
    adds_an_hour,
    reads_no_rows,
    writes_the_registry,
    reads_one_page,
    fails_a_scope,
    refuses,
    breaks_off,
    gives_way,
    claims_everything,
    forgets_everything,
    alerts_on_everything,
    counts_a_stranger,
    begins_its_counters_late,
    labels_its_metrics_with_machines,
)


# ---------------------------------------------------------------- doctoring


def _in_each(evidence: Evidence, sin: Callable[[Pass], Pass]) -> Evidence:
    return replace(evidence, passes=tuple(sin(one) for one in evidence.passes))


def _told(evidence: Evidence, sin: Callable[[Pass], dict[str, Any]]) -> Evidence:
    """Change the reports: `sin` gives the fields; those that a sweep does not have are left out."""

    def doctored(one: Pass) -> Pass:
        fields = {name: value for name, value in sin(one).items() if hasattr(one.report, name)}
        return replace(one, report=replace(one.report, **fields))

    return _in_each(evidence, doctored)


def _shown(evidence: Evidence, sin: Callable[[int, str], str]) -> Evidence:
    """Change what /metrics showed before each pass (0) and after it (1)."""

    def doctored(one: Pass) -> Pass:
        before, after = (replace(page, text=sin(number, page.text)) for number, page in enumerate(one.scraped))
        return replace(one, scraped=(before, after))

    return _in_each(evidence, doctored)


def _judged(evidence: Evidence, sin: Callable[[Verdict], Verdict]) -> Evidence:
    return _told(evidence, lambda one: {"verdicts": tuple(map(sin, _verdicts(one)))})


def _verdicts(one: Pass) -> Iterable[Verdict]:
    return one.reap.verdicts if one.reap else ()


def _closed(one: Pass) -> tuple[IntentRow, ...]:
    gone = (IntentRow(m.instance_id, "requested", "confirmed_gone", "") for m in one.before.machines)
    return (*one.after.intents, *gone)


def _request(evidence: Evidence, action: str, instance_id: str) -> Exchange:
    request = ApiRequest(
        number=0,
        at=evidence.began_at,
        region="us-east-1",
        access_key="",
        account="",
        action=action,
        params={"InstanceId.1": instance_id} if instance_id else {},
        http=_HTTP,
    )
    return Exchange(request=request, status=200)


def _moment(evidence: Evidence, machine: Machine) -> Moment:
    return Moment(
        instance_id=machine.instance_id,
        named_along=1,
        intent_on_disk=False,
        live_row=True,
        machine=machine,
        first_seen=None,
        now=evidence.began_at,
    )
