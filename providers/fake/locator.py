"""Looking into the cloud in memory for single machines, by their ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from providers.locations import Gone, Location, NotKnown, There
from providers.model import InstanceRef, Scope

if TYPE_CHECKING:
    from providers.fake.cloud import FakeCloud


def located(
    cloud: FakeCloud, regions: Collection[str], refs: Collection[InstanceRef]
) -> Mapping[InstanceRef, Location]:
    """Return where each of these machines really is, whatever a listing shows; NotKnown outside these regions."""
    found: dict[InstanceRef, Location] = dict.fromkeys(refs, NotKnown(f"{cloud.name} has {tuple(regions)}"))
    for region in sorted({ref.region for ref in refs if ref.provider == cloud.name and ref.region in regions}):
        fault = cloud.answer_locating(region)
        for ref in (ref for ref in refs if ref.scope == Scope(cloud.name, region)):
            found[ref] = NotKnown(fault.error_code or fault.failure) if fault.is_loud else _located(cloud, ref)
    return found


def _located(cloud: FakeCloud, ref: InstanceRef) -> Location:
    machine = cloud.machine(ref)
    if machine is None or machine.state.is_gone:
        return Gone()
    return There(machine.state, machine.all_tags(cloud.tag_keys).get(cloud.tag_keys.owner))
