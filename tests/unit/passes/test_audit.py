from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from providers.events import ProviderEvent, Unheard
from providers.model import AuditSweep, Coverage, InstanceRef, Scope, TagKeys
from reaperd.clock import ManualClock
from reaperd.core.leaks import AuditPolicy, AuditReport
from reaperd.core.model import PassOutcome
from reaperd.passes.audit import Auditor

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
POLICY = AuditPolicy(deployment="prod-a", tags=TagKeys(), max_age=timedelta(hours=24))


class Hanging:
    """A cloud that does not answer before it is let go."""

    name = "hanging"

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def audit_instances(self) -> AuditSweep:
        self.let_go.wait(60)
        return AuditSweep(instances=(), coverage=())


@pytest.fixture
def cloud() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.let_go.set()


def swept(cloud: Hanging, *, deadline: timedelta, stopping: Callable[[], bool]) -> AuditReport:
    clock = ManualClock(NOW)
    return Auditor(auditor=cloud, policy=POLICY, clock=clock, deadline=deadline, stopping=stopping).run()


def test_a_cloud_that_does_not_answer_ends_at_the_deadline(cloud: Hanging):
    report = swept(cloud, deadline=timedelta(0), stopping=lambda: False)

    assert (report.outcome, report.reason) == (PassOutcome.REFUSED, "deadline")
    assert (report.coverage, report.findings.leaks) == ((), ())


def test_a_sweep_ends_when_the_process_is_to_end(cloud: Hanging):
    report = swept(cloud, deadline=timedelta(hours=1), stopping=lambda: True)

    assert (report.outcome, report.reason) == (PassOutcome.DEFERRED, "stopping")


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(hours=2)])
def test_what_is_announced_and_where_that_could_not_be_had_is_told_whatever_the_clock_says(skew: timedelta):
    ref = InstanceRef("aws", "us-east-1", "i-1")
    event = ProviderEvent(ref=ref, fault_code="marked-for-stop", marked_for_termination=False)
    silent = Unheard(scope=Scope("aws", "eu-west-1"), error_code="deadline")

    class Announcing:
        name = "announcing"

        def audit_instances(self) -> AuditSweep:
            coverage = (Coverage(scope=ref.scope, clock_skew=skew),)
            return AuditSweep(instances=(), coverage=coverage, events=(event,), unheard=(silent,))

    report = Auditor(
        auditor=Announcing(),
        policy=POLICY,
        clock=ManualClock(NOW),
        deadline=timedelta(minutes=1),
        stopping=lambda: False,
    ).run()

    assert (report.events, report.unheard) == ((event,), (silent,))
    assert (report.outcome is PassOutcome.COMPLETE) is (skew == timedelta(0))


def test_an_error_nobody_expected_is_not_swallowed():
    class Broken:
        name = "broken"

        def audit_instances(self) -> AuditSweep:
            msg = "nobody expected this"
            raise RuntimeError(msg)

    with pytest.raises(RuntimeError, match="nobody expected"):
        swept(Broken(), deadline=timedelta(hours=1), stopping=lambda: False)  # type: ignore[arg-type]
