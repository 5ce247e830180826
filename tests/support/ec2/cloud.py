"""An EC2 and STS of our own that can be made to lie, stall and forget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from tests.support.ec2 import dispatch, metadata
from tests.support.ec2.clock import CloudClock
from tests.support.ec2.faults import Fault, FaultKind, Rule
from tests.support.ec2.model import (
    Fleet,
    Image,
    Machine,
    MachineType,
    SecurityGroup,
    SpotPrice,
    SpotRequest,
    Subnet,
    timestamp,
)
from tests.support.ec2.protocol import Answer, ApiRequest
from tests.support.ec2.served import ServedCloud
from tests.support.ec2.world import DEFAULT_REGIONS, ENABLED, Organization, World

DEFAULT_ACCOUNT = "111111111111"
OWNER_TAG = "reaperd:owner"
WORKER_TAG = "reaperd:worker-id"
_UNSET: Any = object()


class FaultyEc2(ServedCloud):
    """EC2 and STS over a world that the test owns.

    `now` stops the clock there; without it the clock runs. `settings` are for `configure`.
    """

    def __init__(
        self,
        *,
        account: str = DEFAULT_ACCOUNT,
        regions: Iterable[str] | Mapping[str, str] = DEFAULT_REGIONS,
        now: datetime | str | None = None,
        port: int = 0,
        **settings: Any,
    ) -> None:
        statuses = regions if isinstance(regions, Mapping) else dict.fromkeys(regions, ENABLED)
        start = datetime.fromisoformat(now) if isinstance(now, str) else now
        clock = CloudClock(start)
        self.world = World(clock, statuses, account)
        super().__init__(_WorldBackend(self.world), clock, port)
        self.configure(**settings)

    def configure(self, **settings: Any) -> None:
        """Change fields of `world.Settings`, or `date_skew_s` (seconds added to Date; None sends none)."""
        own = {name: value for name, value in settings.items() if hasattr(self.world.settings, name)}
        super().configure(**{name: value for name, value in settings.items() if name not in own})
        for name, value in own.items():
            setattr(self.world.settings, name, value)

    # -- time

    def now(self) -> datetime:
        """Return the cloud's time."""
        return self.clock.now()

    def advance(self, seconds: float) -> None:
        """Move the clock; what falls due happens."""
        self._moved(lambda: self.clock.advance(seconds))

    def set_time(self, moment: datetime | str) -> None:
        """Stop the clock at this time; what falls due happens."""
        self._moved(lambda: self.clock.set(datetime.fromisoformat(moment) if isinstance(moment, str) else moment))

    def settle(self) -> None:
        """Finish every boot, stop, end and relaunch that is under way."""
        with self.gateway.lock:
            self.world.settle()

    def _moved(self, move: Callable[[], None]) -> None:
        with self.gateway.lock:
            move()
            self.world.tick()

    # -- machines

    def add_instance(
        self,
        *,
        region: str = "us-east-1",
        instance_id: str | None = None,
        worker: str | None = None,
        owner: str | None = None,
        name: str | None = None,
        tags: Mapping[str, str] | None = None,
        age_s: float = 7200.0,
        launched_at: datetime | str | None = _UNSET,
        attached_at: datetime | str | None = _UNSET,
        account: str | None = None,
        owner_id: str | None = None,
        az: str | None = None,
        spot: str | None = None,
        missing_fields: Iterable[str] = (),
        **fields: Any,
    ) -> str:
        """Add a machine and return its id.

        `launched_at` beats `age_s`; None leaves LaunchTime out, a string is served as it is. The network
        interface was attached then too, unless `attached_at` says when. `spot` ("one-time", "persistent") makes
        a spot request for it. `owner_id` is what the reservation claims, `account` who sees the machine in
        its listing. `fields` are others of model.Machine: state, protected, operator, hidden, instance_type ...
        """
        with self.gateway.lock:
            new_id, serial = self.world.new_id()
            instance_id = instance_id or new_id
            launched = self.now() - timedelta(seconds=age_s) if launched_at is _UNSET else launched_at
            attached = launched if attached_at is _UNSET else attached_at
            account = account or self.world.account
            given = {WORKER_TAG: worker, OWNER_TAG: owner, "Name": name}
            machine = Machine(
                instance_id=instance_id,
                region=region,
                account=account,
                owner_id=owner_id or account,
                serial=serial,
                reservation_id=fields.pop("reservation_id", f"r-{serial:017x}"),
                az=az or f"{region}a",
                launched_at=_text(launched),
                attached_at=_text(attached),
                tags={key: value for key, value in given.items() if value is not None} | dict(tags or {}),
                missing_fields=frozenset(missing_fields),
                **fields,
            )
            self.world.launch(machine, pending=False)
            if spot:
                machine.spot_request_id = self._add_spot_request(machine, spot)
        return instance_id

    def _add_spot_request(self, machine: Machine, kind: str) -> str:
        request_id = f"sir-{self.world.serial():08x}"
        self.world.spot_requests[machine.region, request_id] = SpotRequest(
            request_id=request_id,
            region=machine.region,
            account=machine.account,
            kind=kind,
            instance_id=machine.instance_id,
            created_at=timestamp(self.now()),
        )
        return request_id

    def instances(self, region: str | None = None, account: str | None = None) -> list[Machine]:
        """Return copies of the machines, those terminated and not yet forgotten included."""
        with self.gateway.lock:
            self.world.tick()
            machines = self.world.snapshot().machines.values()
        return [m for m in machines if region in {None, m.region} and account in {None, m.account}]

    def instance(self, instance_id: str, region: str | None = None) -> Machine:
        """Return a copy of one machine; LookupError when there is none."""
        found = [m for m in self.instances(region) if m.instance_id == instance_id]
        if not found:
            raise LookupError(instance_id)
        return found[0]

    def state_of(self, instance_id: str, region: str | None = None) -> str:
        """Return the machine's state, "absent" when there is no such machine."""
        found = [m for m in self.instances(region) if m.instance_id == instance_id]
        return found[0].state if found else "absent"

    def change(self, instance_id: str, region: str | None = None, **fields: Any) -> None:
        """Set fields of a machine behind everyone's back: state, tags, launched_at, protected ..."""
        with self.gateway.lock:
            for machine in self._real(instance_id, region):
                for name, value in fields.items():
                    if not hasattr(machine, name):
                        raise AttributeError(name)
                    setattr(machine, name, _text(value) if name.endswith("_at") else value)

    def set_state(self, instance_id: str, state: str, region: str | None = None) -> None:
        """Put a machine into a state; it stays there. A group or a spot request does not notice."""
        self.change(instance_id, region, state=state)

    def remove(self, instance_id: str, region: str | None = None) -> None:
        """Make a machine vanish."""
        with self.gateway.lock:
            for machine in self._real(instance_id, region):
                del self.world.machines[machine.region, machine.instance_id]

    def _real(self, instance_id: str, region: str | None) -> list[Machine]:
        found = [m for m in self.world.machines.values() if m.instance_id == instance_id and region in {None, m.region}]
        if not found:
            raise LookupError(instance_id)
        return found

    # -- what launches again

    def spot_requests(self, region: str | None = None) -> list[SpotRequest]:
        """Return copies of the spot requests."""
        with self.gateway.lock:
            requests = self.world.snapshot().spot_requests.values()
        return [request for request in requests if region in {None, request.region}]

    def change_spot_request(self, request_id: str, **fields: Any) -> None:
        """Set fields of a spot request: state, kind, instance_id, tags."""
        with self.gateway.lock:
            found = [s for s in self.world.spot_requests.values() if s.request_id == request_id]
            if not found:
                raise LookupError(request_id)
            for name, value in fields.items():
                setattr(found[0], name, value)

    def set_spot_price(
        self, instance_type: str, price: str, *, region: str = "us-east-1", az: str | None = None
    ) -> None:
        """Set the current price of a pool, in dollars an hour."""
        row = SpotPrice(
            region=region,
            az=az or f"{region}a",
            instance_type=instance_type,
            price=price,
            since=timestamp(self.now()),
        )
        pool = (row.region, row.az, row.instance_type)
        with self.gateway.lock:
            others = [p for p in self.world.spot_prices if (p.region, p.az, p.instance_type) != pool]
            self.world.spot_prices = [*others, row]

    def add_fleet(self, *, region: str = "us-east-1", kind: str = "maintain", account: str | None = None) -> str:
        """Add a fleet and return its id; machines belong to it by the tag aws:ec2:fleet-id."""
        with self.gateway.lock:
            fleet_id = f"fleet-{self.world.serial():017x}"
            self.world.fleets[region, fleet_id] = Fleet(
                fleet_id=fleet_id,
                region=region,
                account=account or self.world.account,
                kind=kind,
                created_at=timestamp(self.now()),
            )
        return fleet_id

    def add_type(
        self,
        name: str,
        *,
        vcpus: int = 4,
        memory_mib: int = 16384,
        gpus: Iterable[tuple[str, int]] = (),
        regions: Iterable[str] = ("us-east-1",),
        offered: Iterable[str] | None = None,
    ) -> None:
        """Add a type of machine that these regions describe, and offer unless others are said to."""
        described = frozenset(regions)
        made = MachineType(
            name=name,
            vcpus=vcpus,
            memory_mib=memory_mib,
            gpus=tuple((gpu, count) for gpu, count in gpus),
            described=described,
            offered=described if offered is None else frozenset(offered),
        )
        with self.gateway.lock:
            self.world.types.append(made)

    def interrupt(self, instance_id: str, code: str = "marked-for-termination", *, at: datetime | None = None) -> None:
        """Let the status of a machine's spot request say so, since now or another time; the machine itself stays."""
        with self.gateway.lock:
            (found,) = (s for s in self.world.spot_requests.values() if s.instance_id == instance_id)
            found.status_code, found.status_at = code, timestamp(at or self.now())

    # -- what is launched from, and into

    def add_image(self, image_id: str, *, region: str = "us-east-1", account: str | None = None, **fields: Any) -> None:
        """Add an image; `fields` are others of model.Image: tags, state, created_at."""
        given = {"created_at": self.now()} | fields
        given["created_at"] = _text(given["created_at"])
        with self.gateway.lock:
            owner = account or self.world.account
            self.world.images.append(Image(image_id=image_id, region=region, account=owner, **given))

    def add_subnet(
        self, subnet_id: str, *, az: str = "us-east-1a", vpc_id: str = "vpc-1", tags: Mapping[str, str] | None = None
    ) -> None:
        """Add a subnet in a zone; the region is that of the zone."""
        with self.gateway.lock:
            self.world.subnets[subnet_id] = Subnet(
                subnet_id=subnet_id,
                region=az[:-1],
                account=self.world.account,
                az=az,
                vpc_id=vpc_id,
                tags=dict(tags or {}),
            )

    def add_security_group(
        self,
        group_id: str,
        *,
        region: str = "us-east-1",
        vpc_id: str = "vpc-1",
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Add a security group of a network."""
        group = SecurityGroup(
            group_id=group_id, region=region, account=self.world.account, vpc_id=vpc_id, tags=dict(tags or {})
        )
        with self.gateway.lock:
            self.world.security_groups.append(group)

    # -- accounts and regions

    def add_access_key(self, access_key: str, account: str, arn: str | None = None) -> None:
        """Say whose credentials a key belongs to; all others belong to the default account."""
        self.world.identities[access_key] = (account, arn or f"arn:aws:iam::{account}:user/tester")

    def add_role(self, arn: str, external_id: str | None = None) -> None:
        """Let a role be assumed, with this external id if given. Others answer AccessDenied."""
        self.world.roles[arn] = external_id

    def set_caller_account(self, account: str) -> None:
        """Make the default credentials those of another account."""
        self.world.account = account

    def set_organization(self, accounts: Mapping[str, str], *, readers: Iterable[str] = (DEFAULT_ACCOUNT,)) -> None:
        """Let these accounts be one organization: id -> state. Only the readers are told, and all others denied."""
        shown = tuple(
            {"Id": account, "Name": f"name of {account}", "State": state} for account, state in accounts.items()
        )
        self.world.organization = Organization(accounts=shown, readers=frozenset(readers))

    def set_region(self, region: str, status: str = ENABLED) -> None:
        """Enable a region, or disable it with status not-opted-in. Its machines run on."""
        self.world.regions[region] = status

    def set_own_instance(self, instance_id: str | None, region: str = "us-east-1") -> None:
        """Answer the metadata service (IMDSv2, at this same URL) as on this machine; None: as on no machine."""
        self.world.own_instance = (instance_id, region) if instance_id else None

    def set_pages(self, region: str, lengths: list[int]) -> None:
        """Cut the region's listing into pages of these lengths, 0 included; [] ends that."""
        self.world.page_plans[region] = list(lengths)

    # -- faults and the log

    def _snapshot_for(self, fault: Fault) -> World | None:
        with self.gateway.lock:
            return self.world.snapshot() if fault.kind is FaultKind.STALE else None

    def terminated_ids(self, region: str | None = None) -> list[str]:
        """Return the ids whose real terminate the cloud accepted, in order, as often as it did."""
        return [instance_id for place, instance_id in self.world.accepted if region in {None, place}]

    def clear_requests(self) -> None:
        """Forget what was asked and what was accepted."""
        super().clear_requests()
        self.world.accepted.clear()


class _WorldBackend:
    """The world as the gateway wants it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def account_of(self, access_key: str) -> str:
        found = self._world.identities.get(access_key)
        return found[0] if found else self._world.account

    def answer(self, request: ApiRequest, rule: Rule | None) -> Answer:
        if request.http.path.startswith("/latest/"):
            return metadata.answer(self._world, request.http)
        self._world.tick()
        if rule and rule.fault.kind is FaultKind.STALE:
            return dispatch.answer(rule.snapshot, request)
        if rule and rule.fault.kind is FaultKind.IGNORED:
            return dispatch.answer(self._world, request, {**dispatch.HANDLERS, **dispatch.PRETENCES})
        return dispatch.answer(self._world, request)


def _text(moment: datetime | str | None) -> Any:
    return timestamp(moment) if isinstance(moment, datetime) else moment
