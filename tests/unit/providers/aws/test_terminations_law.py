"""What is told of many machines is true, whatever a cloud that does what EC2 documents answers in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from providers.aws import AwsOptions, AwsTerminator, aws_lister
from providers.aws.hooks import TERMINATING
from providers.aws.session import AwsSessions
from providers.errors import (
    InstanceNotFoundError,
    TerminateError,
    UnknownResultError,
)
from providers.model import InstanceRef
from reaperd.clock import ManualClock
from tests.support.ec2 import FaultyEc2

REGION = "us-east-1"
COUNT = 8
LOOK, END = "DescribeInstances", "TerminateInstances"
FAULTS: tuple[dict[str, Any], ...] = (
    {"kind": "drop"},
    {"kind": "lost_reply"},
    {"kind": "malformed"},
    {"kind": "truncated"},
    {"kind": "html"},
    {"kind": "missing_set"},
    {"kind": "stale"},
    {"kind": "ignored"},
    {"code": "InternalError"},
    {"code": "InternalError", "applied": True},
    {"code": "Unavailable", "applied": True},
    {"code": "RequestLimitExceeded"},
    {"code": "ExpiredToken"},
    {"code": "UnauthorizedOperation", "message": "You may not: i-3"},
    {"code": "UnauthorizedOperation"},
    {"code": "OperationNotPermitted", "message": "The instance 'i-2' may not be terminated."},
    {"code": "OperationNotPermitted", "message": "The instance 'i-2' may not be terminated.", "applied": True},
    {"code": "InvalidInstanceID.NotFound", "message": "The instance IDs 'i-1, i-4' do not exist"},
    {"code": "InvalidInstanceID.NotFound"},
)


@dataclass
class Scene:
    """A cloud with a few machines, and those who end them."""

    cloud: FaultyEc2
    terminator: AwsTerminator
    lister: Any
    options: AwsOptions

    def fill(self, odd: dict[int, str]) -> None:
        """Start over with fresh machines, some of them odd."""
        with self.cloud.gateway.lock:
            self.cloud.world.machines.clear()
        self.cloud.clear_faults()
        self.cloud.clear_requests()
        self.cloud.gateway.observers.clear()
        for number in range(COUNT):
            what = odd.get(number, "")
            self.cloud.add_instance(
                instance_id=f"i-{number}",
                owner="prod",
                worker=f"w-{number}",
                az=f"{REGION}{'b' if what == 'elsewhere' else 'a'}",
                protected=what == "protected",
                spot={"spot": "one-time", "again": "persistent"}.get(what),
            )


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with pytest.MonkeyPatch.context() as patch, FaultyEc2(shutdown_s=None) as cloud:
        for name, value in {"AWS_ACCESS_KEY_ID": "AKIAFAKE", "AWS_SECRET_ACCESS_KEY": "FAKE"}.items():
            patch.setenv(name, value)
        options = AwsOptions(
            name="aws",
            deployment="prod",
            account=cloud.world.account,
            regions=(REGION,),
            endpoint_url=cloud.url,
            max_attempts=1,
        )
        clock = ManualClock(cloud.now())
        terminator = AwsTerminator(options, AwsSessions(options, allowed=TERMINATING), clock=clock)
        yield Scene(cloud, terminator, aws_lister(options, clock=clock), options)


def _tag(number: int, key: str, value: str) -> Callable[[FaultyEc2], None]:
    def act(cloud: FaultyEc2) -> None:
        with suppress(LookupError):
            machine = cloud.instance(f"i-{number}")
            cloud.change(f"i-{number}", tags={**machine.tags, key: value})

    return act


def _gone(number: int) -> Callable[[FaultyEc2], None]:
    def act(cloud: FaultyEc2) -> None:
        with suppress(LookupError):
            cloud.remove(f"i-{number}")

    return act


NUMBERS = st.integers(0, COUNT - 1)
CHANGES = st.one_of(
    st.builds(_tag, NUMBERS, st.just("reaperd:protect"), st.just("")),
    st.builds(_tag, NUMBERS, st.just("reaperd:owner"), st.just("somebody")),
    st.builds(_tag, NUMBERS, st.just("reaperd:worker-id"), st.just("w-other")),
    st.builds(_gone, NUMBERS),
)
TRIED = settings(
    max_examples=60,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@dataclass
class Case:
    """What is odd, what goes wrong and what changes in between, and who is needed after all."""

    odd: dict[int, str]
    struck: list[tuple[str, dict[str, Any], int]]
    changes: list[tuple[str, int, Callable[[FaultyEc2], None]]]
    refused: set[int]

    def __post_init__(self) -> None:
        self.granted: list[set[str]] = []
        self.counts = {LOOK: 0, END: 0}

    @property
    def is_blurred(self) -> bool:
        """Whether the cloud shows what is not so, or does not do what it says."""
        return any(fault.get("kind") in {"stale", "ignored"} for _, fault, _ in self.struck)

    def play(self, scene: Scene) -> Mapping[InstanceRef, TerminateError | None]:
        """Ask for the end of what a listing showed."""
        scene.fill(self.odd)
        seen = list(scene.lister.list_owned())
        scene.cloud.clear_requests()
        for action, fault, call in self.struck:
            scene.cloud.fault(action=action, call=call, **fault)
        for action in (LOOK, END):
            scene.cloud.on(action, partial(self._happen, scene.cloud))
        return scene.terminator.terminate_many(seen, permitted=self._permitted)

    def _happen(self, cloud: FaultyEc2, request: Any) -> None:
        self.counts[request.action] += 1
        for action, call, change in self.changes:
            if (action, call) == (request.action, self.counts[request.action]):
                change(cloud)

    def _permitted(self, refs: Sequence[InstanceRef]) -> Collection[InstanceRef]:
        let = [ref for ref in refs if int(ref.instance_id[2:]) not in self.refused]
        self.granted.append({ref.instance_id for ref in let})
        return let

    def is_true(self, error: TerminateError | None, state: str, *, named: bool) -> bool:
        """Say whether what was told of a machine can be, given its state and whether any request named it."""
        match error:
            case None:
                return named and (state in {"shutting-down", "absent"} or self.is_blurred)
            case UnknownResultError():
                return named
            case InstanceNotFoundError():
                return state == "absent" or any("NotFound" in fault.get("code", "") for _, fault, _ in self.struck)
            case _:
                # A certain no. A look that is not of this moment may show a machine running that has ended.
                return state != "shutting-down" or self.is_blurred


CASES = st.builds(
    Case,
    odd=st.dictionaries(NUMBERS, st.sampled_from(("protected", "elsewhere", "spot", "again")), max_size=3),
    struck=st.lists(st.tuples(st.sampled_from((LOOK, END)), st.sampled_from(FAULTS), st.integers(1, 3)), max_size=3),
    changes=st.lists(st.tuples(st.sampled_from((LOOK, END)), st.integers(1, 3), CHANGES), max_size=3),
    refused=st.sets(NUMBERS, max_size=2),
)


@given(CASES)
@TRIED
def test_what_is_told_of_each_is_true_and_nothing_is_named_without_leave(scene: Scene, case: Case) -> None:
    answers = case.play(scene)

    requests = [set(exchange.request.listed("InstanceId")) for exchange in scene.cloud.terminate_requests()]
    # Leave, then the request, for exactly those: three times at the most, and no other way.
    assert requests == [each for each in case.granted if each]
    assert len(requests) <= 3
    assert {ref.instance_id for ref in answers} == {f"i-{number}" for number in range(COUNT)}
    for ref, error in answers.items():
        state = scene.cloud.state_of(ref.instance_id)
        event(f"{type(error).__name__}: {state}")
        assert case.is_true(error, state, named=any(ref.instance_id in request for request in requests)), (ref, error)
