"""What the reaper decides on, and what it decides. Values only.

The value of a reason is its metric label, its log field and its field in JSON: one word, one spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from alerts.model import Condition
from providers.locations import Location
from providers.model import Coverage, InstanceRef, OwnedInstance, Scope
from reaperd.core.prices import NO_PRICES, Prices
from registry.model import RegistrySnapshot, Worker, WorkerState

WINDOW = timedelta(hours=1)
"""The rolling hour of rule 15."""

CLOCK_TOLERANCE = timedelta(seconds=60)
"""How far a clock may be out (rule 16)."""


class KeepReason(StrEnum):
    """Why one instance is kept. In the order of rule 14: the first that applies is the one that is told."""

    FOREIGN_ACCOUNT = "foreign_account"
    IN_TRANSITION = "in_transition"
    TRACKED = "tracked"
    AMBIGUOUS_WORKER = "ambiguous_worker"
    FOREIGN_REGISTRY = "foreign_registry"
    NEVER_LIST = "never_list"
    PROTECT_TAG = "protect_tag"
    MANAGED = "managed"
    ALREADY_REQUESTED = "already_requested"
    PROTECTED = "protected"
    DENIED = "denied"
    INVALID_ID = "invalid_id"
    FAILED = "failed"
    LAUNCH_GRACE = "launch_grace"
    UNCONFIRMED = "unconfirmed"
    ROW_VANISHED = "row_vanished"


class TerminateReason(StrEnum):
    """Why one instance is an orphan."""

    UNREGISTERED = "unregistered"
    """No row."""
    ANONYMOUS = "anonymous"
    """No row and no worker tag."""
    RETIRED = "retired"
    """Its row is in a terminal state."""
    LAUNCH_ABANDONED = "launch_abandoned"
    HEARTBEAT_EXPIRED = "heartbeat_expired"
    SUPERSEDED = "superseded"
    """The worker's row names another machine, which exists and carries the worker's id."""


class RefusalReason(StrEnum):
    """Why a whole pass stands down. In order: the first that applies is the reason, the rest go into `also`."""

    LEDGER_UNUSABLE = "ledger_unusable"
    NOT_LEADER = "not_leader"
    CLOCK = "clock"
    DEADLINE = "deadline"
    WRONG_ACCOUNT = "wrong_account"
    LISTING_INCOMPLETE = "listing_incomplete"
    REGISTRY_UNUSABLE = "registry_unusable"
    REGISTRY_IDENTITY = "registry_identity"
    REGISTRY_MISMATCH = "registry_mismatch"
    REAP_HOLD = "reap_hold"
    BREAKER_OPEN = "breaker_open"


class OutcomeKind(StrEnum):
    """What became of one termination."""

    WOULD_TERMINATE = "would_terminate"
    REQUESTED = "requested"
    UNKNOWN = "unknown"
    SPARED = "spared"
    ALREADY_GONE = "already_gone"
    CONFIRMED_GONE = "confirmed_gone"
    PROTECTED = "protected"
    DENIED = "denied"
    INVALID_ID = "invalid_id"
    DEFERRED = "deferred"
    FAILED = "failed"


class SparedReason(StrEnum):
    """Why a planned termination was not sent."""

    TRACKED_NOW = "tracked_now"
    CHANGED = "changed"
    REAP_HOLD = "reap_hold"
    NOT_LEADER = "not_leader"
    STOPPING = "stopping"


class DeferReason(StrEnum):
    """Why a pass stopped while acting. Its verdicts and outcomes are kept."""

    THROTTLED = "throttled"
    CREDENTIALS_EXPIRED = "credentials_expired"
    STOPPING = "stopping"
    NOT_LEADER = "not_leader"
    REAP_HOLD = "reap_hold"
    DEADLINE = "deadline"
    LEDGER_UNUSABLE = "ledger_unusable"
    REGISTRY_UNUSABLE = "registry_unusable"
    REGISTRY_IDENTITY = "registry_identity"


# ---------------------------------------------------------------- what was told to the reaper


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerLimits:
    """How big a plan may be (rule 15). 0 means never."""

    max_per_pass: int = 5
    max_fraction: float = 0.5
    fraction_from: int = 4
    """The fraction is judged from so many candidates and tracked machines together."""
    max_per_hour: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReapPolicy:
    """The operator's wishes, as the decision needs them."""

    deployment: str
    scopes: frozenset[Scope]
    """Every one of them must be listed whole."""
    discovering: frozenset[str] = frozenset()
    """Providers whose scopes are found at run time: what was once seen of them stays required."""
    launch_grace: timedelta = timedelta(minutes=15)
    confirm_passes: int = 3
    look_spacing: timedelta = timedelta(seconds=30)
    """Two looks closer than this count as one (half the interval)."""
    stuck_after: timedelta = timedelta(minutes=30)
    never: frozenset[str] = frozenset()
    """Instance ids that are never terminated, as `loosely` reads them; the one that reaperd runs on among them."""
    breaker: BreakerLimits = BreakerLimits()
    launching_ttl: timedelta = timedelta(hours=1)
    vanish_grace: timedelta = timedelta(hours=1)
    heartbeat_ttl: timedelta | None = None
    """None: heartbeats say nothing."""
    max_silence: timedelta | None = None
    """None: a registry may be silent for ever."""
    confirmation_given: bool = False
    """True for a look that leaves no trace (`plan`): confirmations are shown and not waited for."""
    prices: Prices = field(default_factory=lambda: NO_PRICES, hash=False)
    """What machines cost an hour, as far as the operator says. Told with the verdicts, and never judged by."""


# ---------------------------------------------------------------- what the ledger remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What we remember of one owned instance from look to look."""

    first_seen_at: datetime
    last_seen_at: datetime
    confirmations: int = 0
    """In how many consecutive complete looks it was untracked."""
    counted_at: datetime | None = None
    """The look that was last counted; None when none is."""
    tracked_at: datetime | None = None
    """The last look that found it tracked, or in doubt by the row that would track it; None when none did."""
    tracked_by: str | None = None
    """The worker id of that row."""
    vanished_at: datetime | None = None
    """The first look that found its row gone, after it had been tracked."""
    verdict: str = ""
    """`keep/REASON` or `terminate/REASON` of the last look, so that history can tell what changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A termination that was begun and is not confirmed."""

    intent_id: int
    ref: InstanceRef
    requested_at: datetime
    """The latest time it was sent, or was about to be."""
    outcome: OutcomeKind | None
    """None: the process died between writing the intent and writing the answer. Counts as unknown."""
    error_code: str | None = None
    first_requested_at: datetime
    """The first of an unbroken chain of requests for this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryPin:
    """The registry that we have come to know."""

    registry_id: str
    epoch: int
    nonce: str | None
    mismatch_accepted: bool = False
    """True after `registry trust`: its rows need not match the listing, until they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """`reaperd hold`: nothing is terminated until `reaperd resume`."""

    since: datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One plan that a person let through the breaker."""

    digest: str
    refs: frozenset[InstanceRef]
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything of the ledger that a decision needs, as of one moment."""

    sightings: Mapping[InstanceRef, Sighting] = field(default_factory=lambda: MappingProxyType({}))
    looked_at: datetime | None = None
    """The last look that taught us anything; None when nobody knows."""
    intents: Mapping[InstanceRef, Intent] = field(default_factory=lambda: MappingProxyType({}))
    """The open ones; at most one a machine."""
    requests: tuple[datetime, ...] = ()
    """When requests that count in the rolling hour were sent: accepted or of unknown result, not approved ones."""
    pin: RegistryPin | None = None
    """None: no registry is known yet."""
    listed: frozenset[InstanceRef] = frozenset()
    """Machines that we have listed and that a live row names."""
    scopes: frozenset[Scope] = frozenset()
    """Scopes that were ever listed whole and that the configuration has not dropped."""
    brake: Brake | None = None
    approvals: tuple[Approval, ...] = ()


# ---------------------------------------------------------------- what one pass saw


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryTrouble:
    """The registry could not be read; in words, with the next step."""

    detail: str
    late: bool = False
    """True when it had not answered before the pass's time was up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one pass saw, complete or not. `now` was taken before the listing: every age is understated."""

    now: datetime
    instances: tuple[OwnedInstance, ...] = ()
    """Empty unless every scope was listed whole."""
    coverage: tuple[Coverage, ...]
    registry: RegistrySnapshot | RegistryTrouble | None
    """Read after the listing; None when it was not read."""
    memory: Memory = Memory()
    ledger_trouble: str | None = None
    leader: bool = True
    clock_step: timedelta | None = None
    """How far (wall - boot time) moved since the previous pass of this process; None for the first."""
    late: bool = False
    """True when the pass ran past its deadline."""
    located: Mapping[InstanceRef, Location] = field(default_factory=lambda: MappingProxyType({}))
    """Where machines are that were asked for by their ids, because their end was asked for and they are not listed.

    Of one that is not in it nothing is known.
    """


# ---------------------------------------------------------------- what was decided


@dataclass(frozen=True, slots=True)
class Keep:
    """Say that an instance stays."""

    reason: KeepReason


@dataclass(frozen=True, slots=True)
class Terminate:
    """Say that an instance goes, if the pass may act."""

    reason: TerminateReason
    again: bool = False
    """True for a retry or a re-send after `stuck_after`: no candidate of the breaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is decided on one instance, and on which evidence."""

    instance: OwnedInstance
    call: Keep | Terminate
    age: timedelta | None
    """None when neither the provider nor our memory gives a time to count from."""
    confirmations: int
    orphan: TerminateReason | None
    """What it would be terminated for, whatever holds it; None when it is tracked or not judged."""
    ripe: bool = False
    """An orphan that is old enough and sure enough, whatever else holds it."""
    row_vanished: bool = False
    """It was tracked, and its row is gone without a trace."""
    detail: str = ""
    """What the registry says of it, in words."""
    first_seen_at: datetime | None = None
    """The first look of ours that listed it, this one included."""
    tracked_at: datetime | None = None
    """The last look that found it tracked, or in doubt by the row that would track it; None when none did."""
    cost_per_hour_usd: float | None = None
    """What an hour of such a machine costs while it runs; None when no price is configured."""

    @property
    def ref(self) -> InstanceRef:
        """Return the machine's identity."""
        return self.instance.ref

    @property
    def name(self) -> str:
        """Return `keep/REASON` or `terminate/REASON`."""
        return f"{'terminate' if self.terminates else 'keep'}/{self.call.reason}"

    @property
    def terminates(self) -> bool:
        """True when this instance goes."""
        return isinstance(self.call, Terminate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One verdict for every owned instance, all guards agreed. To be carried out."""

    verdicts: tuple[Verdict, ...]
    digest: str | None
    """None when nothing would be terminated."""

    @property
    def terminations(self) -> tuple[Verdict, ...]:
        """Return what is to be terminated, in the order of rule 25: by region, oldest first, then by id."""
        return tuple(sorted((v for v in self.verdicts if v.terminates), key=_order))


def _order(verdict: Verdict) -> tuple[str, str, timedelta, str]:
    oldest_first = -(verdict.age or timedelta(0))
    return (verdict.ref.provider, verdict.ref.region, oldest_first, verdict.ref.instance_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerReading:
    """The numbers that the breaker judged."""

    candidates: int
    """Terminate verdicts without retries, re-sends and approved machines."""
    owned: int
    in_window: int
    """Requests in the rolling hour."""
    tripped: str = ""
    """Which limit, in words; empty when none."""
    limit: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The whole pass stands down: not one termination."""

    reason: RefusalReason
    also: tuple[RefusalReason, ...] = ()
    detail: str = ""
    verdicts: tuple[Verdict, ...] = ()
    """What was judged all the same: with `breaker_open` and `reap_hold` only."""
    digest: str | None = None
    breaker: BreakerReading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one termination."""

    ref: InstanceRef
    kind: OutcomeKind
    reason: str | None = None
    """A SparedReason or a DeferReason; of a failed one `spot_request_not_cancelled` or the cloud's code."""
    error_code: str | None = None
    detail: str = ""


class PassKind(StrEnum):
    """Which of the two jobs."""

    RECONCILE = "reconcile"
    AUDIT = "audit"


class PassOutcome(StrEnum):
    """How a pass ended."""

    COMPLETE = "complete"
    REFUSED = "refused"
    DEFERRED = "deferred"
    ERROR = "error"


class Mode(StrEnum):
    """Rehearsal is the default."""

    DRY_RUN = "dry-run"
    ENFORCE = "enforce"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCensus:
    """What a complete look counted in one scope."""

    owned: int = 0
    """Ours, and neither terminated nor in transition."""
    orphans: int = 0
    """Owned and untracked, whatever holds them."""
    would_terminate: int = 0
    terminating: int = 0
    """Asked for, or maybe asked for, and not confirmed gone."""
    missing: int = 0
    """Live rows whose machine the listing does not have."""
    oldest_orphan_seen_at: datetime | None = None
    """When the orphan that we know longest was first seen; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """What a complete look counted, whatever was decided on it. Metrics are told from it."""

    at: datetime
    scopes: Mapping[Scope, ScopeCensus]
    """Every scope that was listed, and no other."""
    held: Mapping[KeepReason, int]
    """Machines by what holds them; every reason is there."""
    workers: Mapping[WorkerState, int]
    """Rows of the registry; every state is there."""
    epoch: int

    @property
    def total(self) -> ScopeCensus:
        """Return the sum over all scopes."""
        each = self.scopes.values()
        return ScopeCensus(
            owned=sum(one.owned for one in each),
            orphans=sum(one.orphans for one in each),
            would_terminate=sum(one.would_terminate for one in each),
            terminating=sum(one.terminating for one in each),
            missing=sum(one.missing for one in each),
            oldest_orphan_seen_at=min((o.oldest_orphan_seen_at for o in each if o.oldest_orphan_seen_at), default=None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """The one record that metrics, logs, the decision trail, alerts and the CLI are told from."""

    pass_id: str
    mode: Mode
    started_at: datetime
    finished_at: datetime
    outcome: PassOutcome
    reason: str | None
    also: tuple[str, ...] = ()
    detail: str = ""
    coverage: tuple[Coverage, ...] = ()
    registry: RegistrySnapshot | None = None
    digest: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    confirmations_needed: int = 1
    outcomes: tuple[Outcome, ...] = ()
    missing: tuple[Worker, ...] = ()
    """Live rows whose machine is in no complete listing."""
    bad_rows: tuple[Worker, ...] = ()
    """Rows with a time that cannot be read or lies in the future. They protect."""
    conditions: tuple[Condition, ...] = ()
    census: Census | None = None
    """None when this was no complete look: a scope, the registry, the ledger or the clock was not as it should be."""
    brake: Brake | None = None
    """The brake, as it was when this was decided; None too when the ledger could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One pass, as it is kept for auditors. `record` is the pass's JSON object."""

    pass_id: str
    kind: str
    mode: str
    started_at: datetime
    finished_at: datetime
    outcome: str
    reason: str | None
    plan_digest: str | None
    record: str
