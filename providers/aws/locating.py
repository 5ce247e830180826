"""Looking for single machines of one account by their ids, whatever tags they carry.

"Not found" is said of one account and one region; of the wrong one it would read like "gone". So both are proved, and
nothing but EC2's refusal of that id, or the state `terminated`, is taken for an end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from providers.aws.answers import Answer, answer_of, caller_account
from providers.aws.errors import CALL_ERRORS, MAX_TEXT, BrokenAnswerError, error_code, error_text, is_refusal
from providers.aws.options import AwsOptions
from providers.aws.region import shows_managed
from providers.aws.session import AwsSessions, Ec2
from providers.aws.translate import MalformedAnswerError, Vantage, next_token, owned_instance, raw_instances
from providers.base import Clock
from providers.fanout import Answered, Late, Raised, ask_all
from providers.locating import LOCATING_TIMEOUT
from providers.locations import Gone, Location, NotKnown, There
from providers.model import InstanceRef, OwnedInstance

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import DescribeInstancesRequestTypeDef

AT_ONCE = 100
"""So many ids are named in one request."""
ASKING = LOCATING_TIMEOUT * 0.5
"""After that no region begins another request, so that what was answered by then is told in time."""
WAITING = LOCATING_TIMEOUT * 0.8
"""So long a region is waited for: less than whoever asks several accounts waits for this one."""

_NOT_FOUND = "InvalidInstanceID.NotFound"
_OF_ONE_ID = frozenset({_NOT_FOUND, "InvalidInstanceID.Malformed"})
"""Refusals of a whole request because of some of the ids that it names."""
_NAME = re.compile(r"[\w.-]+")

Found = Mapping[str, Location]


class AwsLocator:
    """Finds machines of the pinned account. Sends nothing but questions."""

    def __init__(self, options: AwsOptions, sessions: AwsSessions, *, clock: Clock) -> None:
        """Keep how to ask; nothing is sent."""
        self._options = options
        self._sessions = sessions
        self._clock = clock

    def locate(self, refs: Collection[InstanceRef], regions: Collection[str]) -> Mapping[InstanceRef, Location]:
        """Return where each of these is; NotKnown of those outside these regions. Never raises."""
        found: dict[InstanceRef, Location] = dict.fromkeys(refs, NotKnown("not in a region that is looked into"))
        wanted: dict[str, list[str]] = defaultdict(list)
        for ref in sorted(refs):
            if ref.provider == self._options.name and ref.region in regions:
                wanted[ref.region].append(ref.instance_id)
        for region, told in self._told(wanted).items():
            found |= {InstanceRef(self._options.name, region, name): where for name, where in told.items()}
        return found

    def _told(self, wanted: Mapping[str, Sequence[str]]) -> Mapping[str, Found]:
        if not wanted:
            return {}
        stops_at = self._clock.monotonic() + ASKING.total_seconds()
        try:
            clients = self._clients(wanted)
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            self._sessions.forget()
            return {region: _nobody_knows(ids, _because(error)) for region, ids in wanted.items()}
        glances = {
            region: _Glance(ec2, self._vantage(region), self._clock, stops_at) for region, ec2 in clients.items()
        }
        calls = [partial(glances[region].at, ids) for region, ids in wanted.items()]
        answers = ask_all(calls, clock=self._clock, timeout=WAITING)
        told = {region: _answered(answer, wanted[region]) for region, answer in zip(wanted, answers, strict=True)}
        if any(isinstance(where, NotKnown) for found in told.values() for where in found.values()):
            self._sessions.forget()
        return told

    def _clients(self, regions: Collection[str]) -> Mapping[str, Ec2]:
        """Return a client for each region, of a session that is proved to be the pinned account's."""
        if self._options.account is None:
            code = "no_account"
            raise BrokenAnswerError(code, "no account is pinned, and another one would not know our machines")
        session = self._sessions.open()
        account = caller_account(session.sts())
        if account != self._options.account:
            code = "wrong_account"
            raise BrokenAnswerError(code, f"the credentials belong to {account}, not to {self._options.account}")
        return {region: session.ec2(region) for region in regions}

    def _vantage(self, region: str) -> Vantage:
        options = self._options
        return Vantage(provider=options.name, region=region, keys=options.tags, account=options.account)


@dataclass(frozen=True, slots=True)
class _Glance:
    """A look at some machines of one region."""

    ec2: Ec2
    vantage: Vantage
    clock: Clock
    stops_at: float

    def at(self, ids: Sequence[str]) -> Found:
        """Return where each of these is."""
        found: dict[str, Location] = {}
        for start in range(0, len(ids), AT_ONCE):
            found |= self._asked(ids[start : start + AT_ONCE])
        return found

    def _asked(self, ids: Sequence[str]) -> Found:
        if self.clock.monotonic() >= self.stops_at:
            return _nobody_knows(ids, "not asked: the time was up")
        request: DescribeInstancesRequestTypeDef = {"InstanceIds": list(ids)}
        if shows_managed(self.ec2):
            request["IncludeManagedResources"] = True
        try:
            return self._read(answer_of(lambda: self.ec2.client.describe_instances(**request)), ids)
        except MalformedAnswerError as error:
            return _nobody_knows(ids, f"malformed answer: {error}")
        except (*CALL_ERRORS, BrokenAnswerError) as error:
            return self._refused(ids, error)

    def _read(self, answer: Answer, ids: Sequence[str]) -> Found:
        rows = list(raw_instances(answer))
        named = [row.instance_id for row in rows]
        if len(set(named)) < len(named) or not set(named) <= set(ids) or next_token(answer) is not None:
            msg = f"asked for {len(ids)} machines, got {', '.join(named)[:MAX_TEXT]}"
            raise MalformedAnswerError(msg)
        # An id that EC2 does not have is refused. One that it passes over in silence may be anywhere.
        found: dict[str, Location] = dict(_nobody_knows(ids, "answered without it"))
        for row in rows:
            seen = owned_instance(row, self.vantage)
            found[row.instance_id] = _where(seen)
        return found

    def _refused(self, ids: Sequence[str], error: Exception) -> Found:
        """Return what a refusal says; where it is one of some ids only, the others are asked about again."""
        code = error_code(error)
        if not is_refusal(error) or code not in _OF_ONE_ID:
            return _nobody_knows(ids, _because(error))
        named = set(_NAME.findall(str(error))) if code == _NOT_FOUND else set[str]()
        absent = named & set(ids)
        if len(ids) == 1:
            of_another = not absent and any(name.startswith("i-") for name in named)
            is_gone = code == _NOT_FOUND and not of_another
            return {ids[0]: Gone() if is_gone else NotKnown(_because(error))}
        if not absent:
            half = len(ids) // 2
            return {**self._asked(ids[:half]), **self._asked(ids[half:])}
        rest = [name for name in ids if name not in absent]
        return {**dict.fromkeys(absent, Gone()), **(self._asked(rest) if rest else {})}


def _where(seen: OwnedInstance) -> Location:
    if seen.state.is_gone and seen.foreign_account:
        return NotKnown("what is terminated is another account's")
    return Gone() if seen.state.is_gone else There(seen.state, seen.owner or None)


def _answered(answer: Answered[Found] | Raised | Late, ids: Sequence[str]) -> Found:
    match answer:
        case Answered(found):
            return found
        case Late():
            return _nobody_knows(ids, "no answer in time")
        case Raised(error):
            return _nobody_knows(ids, f"{type(error).__name__}: {error}")


def _nobody_knows(ids: Sequence[str], detail: str) -> Found:
    return dict.fromkeys(ids, NotKnown(detail))


def _because(error: Exception) -> str:
    return f"{error_code(error)}: {error_text(error)}"
