"""The promises of the ports, kept by Acme. Run it where reaperd[testing] is installed: `pytest`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from acme_reaperd import REGION, AcmeCloud, AcmeProvider

from providers.capacity import Requirement, WorkerSpec
from providers.conformance import (
    AuditorConformance,
    ListerConformance,
    LocatorConformance,
    ProviderConformance,
    TerminatorConformance,
)
from providers.errors import UnknownLaunchError
from providers.harness import BreaksLaterPages, FillsPages
from providers.locations import Location
from providers.model import AuditSweep, InstanceRef, Inventory, Scope, TagKeys


@dataclass(frozen=True)
class LookOnly:
    """What a rehearsal holds: the provider without its hands."""

    inner: AcmeProvider

    @property
    def name(self) -> str:
        return self.inner.name

    def list_owned(self) -> Inventory:
        return self.inner.list_owned()

    def locate(self, refs: Collection[InstanceRef]) -> Mapping[InstanceRef, Location]:
        return self.inner.locate(refs)

    def audit_instances(self) -> AuditSweep:
        return self.inner.audit_instances()


@dataclass(frozen=True, kw_only=True)
class CountingCloud(AcmeCloud):
    """Acme, with what a test has to see and to break."""

    seen: list[str]

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        with super().changing() as told:
            before = json.dumps(told)
            yield told
            if json.dumps(told) != before:
                self.seen.append("changed")
        if "lose" in self.seen:
            self.seen.remove("lose")
            msg = "connection reset"
            raise UnknownLaunchError(msg)


class AcmeHarness:
    """An inventory that is empty, and what a test does to it."""

    scopes = (Scope("acme", REGION),)
    owner = "prod"
    unknown_id = "acme-999"
    tag_keys = TagKeys()
    wanted = Requirement(model="llama", instance_types=("small", "large"))
    spec = WorkerSpec(model="llama")

    def __init__(self, file: Path) -> None:
        self.cloud = CountingCloud(file=file, seen=[])
        self.save({"prices": {"small": "0.02", "large": "0.16"}, "free": 99, "machines": {}})

    def provider(self) -> AcmeProvider:
        tags = {key: getattr(self.tag_keys, key) for key in TagKeys.__slots__}
        return AcmeProvider("acme", self.cloud, self.owner, tags)

    terminator = provider

    def lister(self) -> LookOnly:
        return LookOnly(self.provider())

    auditor = lister
    locator = lister

    def add_owned(self, scope: Scope, *, worker_id: str | None = "w-1") -> InstanceRef:
        worker = {self.tag_keys.worker: worker_id} if worker_id else {}
        return self.add({self.tag_keys.owner: self.owner} | worker)

    def add_foreign(self, scope: Scope, *, owner: str) -> InstanceRef:
        return self.add({self.tag_keys.owner: owner})

    def add_stranger(self, scope: Scope) -> InstanceRef:
        return self.add({"name": "somebody else's"})

    def add(self, tags: Mapping[str, str]) -> InstanceRef:
        told = self.cloud.read()
        name = f"other-{len(told['machines'])}"
        since = datetime(2026, 1, 10, tzinfo=UTC).isoformat()
        told["machines"][name] = {"power": "on", "type": "small", "since": since, "tags": dict(tags)}
        self.save(told)
        return InstanceRef("acme", REGION, name)

    def exists(self, ref: InstanceRef) -> bool:
        return self.cloud.read()["machines"][ref.instance_id]["power"] != "ending"

    def end(self, ref: InstanceRef) -> None:
        self.change(ref, power="ending")

    def stop(self, ref: InstanceRef) -> None:
        self.change(ref, power="off")

    def set_tag(self, ref: InstanceRef, key: str, value: str | None) -> None:
        tags = dict(self.cloud.read()["machines"][ref.instance_id]["tags"])
        tags.pop(key, None)
        self.change(ref, tags=tags if value is None else tags | {key: value})

    def change(self, ref: InstanceRef, **facts: object) -> None:
        told = self.cloud.read()
        told["machines"][ref.instance_id] |= facts
        self.save(told)

    def break_listing(self, scope: Scope) -> None:
        self.cloud.file.write_text('{"machines": {"vm-1": ', encoding="utf-8")

    def run_out(self) -> None:
        self.save(self.cloud.read() | {"free": 0})

    def lose_answer(self) -> None:
        self.cloud.seen.append("lose")

    def mutations(self) -> int:
        return self.cloud.seen.count("changed")

    def save(self, told: Mapping[str, object]) -> None:
        self.cloud.file.write_text(json.dumps(told), encoding="utf-8")


class Acme:
    """One page holds everything."""

    lacks: ClassVar[tuple[type, ...]] = (BreaksLaterPages, FillsPages)

    @pytest.fixture
    def harness(self, tmp_path: Path) -> AcmeHarness:
        return AcmeHarness(tmp_path / "acme.json")


class TestLister(Acme, ListerConformance):
    pass


class TestTerminator(Acme, TerminatorConformance):
    pass


class TestLocator(Acme, LocatorConformance):
    pass


class TestAuditor(Acme, AuditorConformance):
    pass


class TestProvider(Acme, ProviderConformance):
    pass
