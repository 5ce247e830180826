"""The world of one case: a cloud, a registry, a ledger, and one clock for all of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

from reaperd.clock import ManualClock
from reaperd.config.durations import parse_duration
from tests.scenarios.case import Tree, Variant, base, start
from tests.scenarios.evidence import IntentRow, Moment
from tests.scenarios.registry_file import LIVE, RegistryFile
from tests.support.ec2 import ApiRequest, FaultyEc2
from tests.support.ec2.lax import ignore_filters

Rows = list[dict[str, str | None]]


class SharedClock(ManualClock):
    """The clock of the program. The cloud's time moves along with it."""

    def __init__(self, cloud: FaultyEc2) -> None:
        super().__init__(cloud.now())
        self._cloud = cloud

    def advance(self, by: timedelta) -> None:
        """Let time pass everywhere."""
        super().advance(by)
        self._cloud.advance(by.total_seconds())


class Stage:
    """What a case finds when it begins, and the hand that changes it."""

    def __init__(self, variant: Variant, folder: Path) -> None:
        self.variant = variant
        self.folder = folder
        self._base = base()
        self.cloud = FaultyEc2(
            account=variant.world.get("account", self._base["account"]), now=start(), **self._cloud()
        )
        self.registry = RegistryFile(folder / "fleet")
        self.ledger = folder / "state" / "ledger.db"
        self.errors: list[Exception] = []
        """What the world itself stumbled over, in threads of the server."""
        self.moments: list[Moment] = []
        """What stood when a terminate came in."""

    def __enter__(self) -> Self:
        self.cloud.start()
        world = self.variant.world
        self._lay_out_registry(world.get("registry", {}))
        for machine in self._machines():
            self.cloud.add_instance(**machine)
        for region, lengths in world.get("pages", {}).items():
            self.cloud.set_pages(region, lengths)
        for fault in world.get("faults", ()):
            self.cloud.fault(**fault)
        if world.get("filters") == "ignored":
            ignore_filters(self.cloud, self._base["regions"])
        self.cloud.on("TerminateInstances", self._guarded(self._watch))
        for hook in world.get("meanwhile", ()):
            self._hook(hook)
        return self

    def __exit__(self, *_: object) -> None:
        self.registry.unlock()
        self.cloud.close()

    def clock(self) -> SharedClock:
        """Return a clock that begins with the cloud's time, as one of a new process."""
        return SharedClock(self.cloud)

    # ---------------------------------------------------------------- settings

    def settings_file(self) -> Path:
        """Write the settings and return where they are."""
        settings = self._base["settings"] | self.variant.world.get("settings", {})
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items() if value is not None]
        lines += [
            f"state_dir = {json.dumps(str(self.ledger.parent))}",
            f"registry.path = {json.dumps(str(self.registry.path))}",
            "[[providers]]",
            'name = "aws"',
            'type = "aws"',
            f"account = {json.dumps(self._base['account'])}",
            f"regions = {json.dumps(self._base['regions'])}",
            f"endpoint_url = {json.dumps(self.cloud.url)}",
            "[[alerts.channels]]",
            'type = "log"',
        ]
        path = self.folder / "reaperd.toml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    # ---------------------------------------------------------------- what is there at the beginning

    def _cloud(self) -> Tree:
        return {"regions": self._base["regions"]} | self.variant.world.get("cloud", {})

    def _lay_out_registry(self, registry: Tree) -> None:
        rows = [self._row(row) for given in registry.get("rows", ()) for row in _unfolded(given)]
        whose = self._base["registry"]
        self.registry.lay_out(whose["deployment"], whose["registry_id"], rows, registry.get("journal", "wal"))
        if "file" in registry:
            self.registry.break_as(registry["file"])

    def _row(self, given: Tree) -> dict[str, str | None]:
        row = self._base["row"] | given
        now = self.cloud.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "worker_id": row["worker"],
            "provider": "aws",
            "region": row["region"],
            "instance_id": row["instance"],
            "state": row["state"],
            "created_at": row.get("created_at", now),
            "updated_at": now,
        }

    def _machines(self) -> Iterator[Tree]:
        for given in self.variant.world.get("machines", ()):
            for machine in _unfolded(given):
                facts = self._base["machine"] | machine
                facts["instance_id"] = facts.pop("id")
                facts["age_s"] = parse_duration(facts.pop("age")).total_seconds()
                facts.pop("true_age", None)
                yield facts

    def true_ages(self) -> Mapping[str, timedelta]:
        """Return how old the machines are of which the case says so."""
        told = [machine for machine in self.variant.world.get("machines", ()) if "true_age" in machine]
        return {machine["id"]: parse_duration(machine["true_age"]) for machine in told}

    # ---------------------------------------------------------------- what happens to it

    def sent(self) -> tuple[tuple[str, str], ...]:
        """Return kind and key of every message that was put into the outbox, oldest first. Nobody takes any out."""
        if not self.ledger.exists():
            return ()
        with closing(sqlite3.connect(self.ledger)) as db:
            rows = db.execute("SELECT record FROM outbox ORDER BY seq").fetchall()
        told = [json.loads(record) for (record,) in rows]
        return tuple((one["kind"], one["condition"]["key"]) for one in told)

    def change(self, changes: list[Tree]) -> None:
        """Let things happen."""
        for change in changes:
            (verb, what), *more = change.items()
            self._verbs()[verb](what, **dict(more))

    def _verbs(self) -> Mapping[str, Callable[..., Any]]:
        return {
            "row": lambda row: self.registry.insert(self._row(row)),
            "set": lambda machines: [self.cloud.change(name, **fields) for name, fields in machines.items()],
            "tag": lambda machines: [self._tag(name, tags) for name, tags in machines.items()],
            "remove": lambda names: [self.cloud.remove(name) for name in names],
            "fault": lambda fault: self.cloud.fault(**fault),
            "heal": lambda _: self.cloud.clear_faults(),
            "lock": self._lock,
            "unlock": lambda _: self.registry.unlock(),
            "commit": lambda what: self.registry.commit() if what == "registry" else self._write_ledger(_ACT),
            "break": lambda _: self._write_ledger(_BREAK),
            "repair": lambda _: self._write_ledger(_REPAIR),
        }

    def _tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        self.cloud.change(instance_id, tags=self.cloud.instance(instance_id).tags | dict(tags))

    def _lock(self, _: str, **how: float) -> None:
        self.registry.lock(how.get("for"))

    def _write_ledger(self, statement: str) -> None:
        with closing(sqlite3.connect(self.ledger, isolation_level=None)) as db:
            db.execute(statement)

    def _hook(self, hook: Tree) -> None:
        """Let something happen once, when a request of this kind has come in and is not answered yet."""
        fires = {
            "listing": lambda request: "MaxResults" in request.params and request.region == "us-east-1",
            "second look": lambda request: request.names(hook["of"]),
            "terminate": lambda request: request.names(hook["of"]),
        }[hook["at"]]
        done: list[bool] = []

        def fire(request: ApiRequest) -> None:
            if not done and fires(request):
                done.append(True)
                self.change(hook["do"])

        self.cloud.on("TerminateInstances" if hook["at"] == "terminate" else "DescribeInstances", self._guarded(fire))

    def _guarded(self, observer: Callable[[ApiRequest], None]) -> Callable[[ApiRequest], None]:
        return partial(self._caught, observer)

    def _caught(self, observer: Callable[[ApiRequest], None], request: ApiRequest) -> None:
        try:
            observer(request)
        except Exception as error:  # noqa: BLE001 - a thread of the server: the case fails with it at its end
            self.errors.append(error)

    # ---------------------------------------------------------------- what can be seen of it

    def _watch(self, request: ApiRequest) -> None:
        """Write down what stands at the moment at which a terminate comes in."""
        open_intents = {intent.instance_id for intent in self.intents() if intent.closed_as is None}
        rows = self.registry.rows()
        for instance_id in request.listed("InstanceId"):
            self.moments.append(
                Moment(
                    instance_id=instance_id,
                    named_along=len(request.listed("InstanceId")) - 1,
                    intent_on_disk=instance_id in open_intents,
                    live_row=any(row["instance_id"] == instance_id and row["state"] in LIVE for row in rows),
                    machine=self.cloud.instance(instance_id),
                    first_seen=self.first_seen().get(instance_id),
                    now=self.cloud.now(),
                )
            )

    def intents(self) -> tuple[IntentRow, ...]:
        """Return the intents in the ledger, oldest first."""
        statement = "SELECT instance_id, outcome, closed_as, requested_at FROM intents ORDER BY intent_id"
        return tuple(IntentRow(*row) for row in self._read_ledger(statement))

    def first_seen(self) -> Mapping[str, datetime]:
        """Return when the ledger says that each machine was first seen."""
        rows = self._read_ledger("SELECT instance_id, first_seen_at FROM sightings")
        return {row[0]: datetime.fromisoformat(row[1]) for row in rows}

    def _read_ledger(self, statement: str) -> list[tuple[Any, ...]]:
        if not self.ledger.exists():
            return []
        with closing(sqlite3.connect(self.ledger, isolation_level=None)) as db:
            return db.execute(statement).fetchall()


_ACT = (
    "INSERT INTO operator_acts (at, act, by_whom, reason, data, previous_hash, hash)"
    " VALUES ('', 'note', 'another process', '', '{}', '', '')"
)
_BREAK = "CREATE TRIGGER full BEFORE INSERT ON intents BEGIN SELECT RAISE(ABORT, 'no space left on device'); END"
_REPAIR = "DROP TRIGGER full"


def _unfolded(given: Tree) -> Iterator[Tree]:
    """Yield what a pattern stands for; anything else stands for itself."""
    if "from" not in given:
        yield given
        return
    rest = {key: value for key, value in given.items() if key not in _PATTERN}
    for number in range(given["from"], given["to"] + 1):
        counted = {one: given[many] % number for many, one in _ONES.items() if many in given}
        yield rest | counted


_ONES = {"ids": "id", "workers": "worker", "instances": "instance"}
_PATTERN = frozenset({*_ONES, "from", "to"})
