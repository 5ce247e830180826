"""What is asked of EC2 for one machine, and whether a machine is what was asked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from providers.aws.capacity_errors import place_of
from providers.aws.launch_options import NAME_TAG, AwsLaunchOptions
from providers.aws.network import Place
from providers.aws.options import AwsOptions
from providers.aws.translate import RawInstance
from providers.aws.userdata import UserDataError, rendered
from providers.capacity import Kind, Offer, WorkerSpec
from providers.errors import InvalidSpecError, ProviderSetupError
from providers.identity import loosely

if TYPE_CHECKING:
    from mypy_boto3_ec2.literals import InstanceTypeType, ResourceTypeType
    from mypy_boto3_ec2.type_defs import (
        IamInstanceProfileSpecificationTypeDef,
        RunInstancesRequestTypeDef,
        TagSpecificationTypeDef,
    )

_WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/=+@-]{0,63}")
"""What both a client token (64 ASCII characters) and a tag can be, and no filter takes for a pattern."""
_PROFILE_ARN = re.compile(r"arn:[\w-]+:iam::\d{12}:instance-profile/.+", re.ASCII)
_ARN = "arn:"
_MAX_MODEL = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One machine, as it was asked for and found to be possible."""

    worker_id: str
    offer: Offer
    spec: WorkerSpec
    user_data: str

    @property
    def place(self) -> str:
        """Return how a message about it begins."""
        return place_of(self.worker_id, self.offer)


def checked_order(worker_id: str, offer: Offer, spec: WorkerSpec) -> Order:
    """Return what is to be launched.

    Raises:
        InvalidSpecError: if the cloud could not take it. Nothing was sent.
    """
    for code, (complaint, fine) in _checks(worker_id, offer, spec).items():
        if not fine:
            raise _invalid(worker_id, offer, code, complaint)
    try:
        user_data = rendered(spec.user_data, spec.env)
    except UserDataError as error:
        raise _invalid(worker_id, offer, error.code, str(error)) from error
    return Order(worker_id=worker_id, offer=offer, spec=spec, user_data=user_data)


def _checks(worker_id: str, offer: Offer, spec: WorkerSpec) -> Mapping[str, tuple[str, bool]]:
    profile = spec.instance_profile
    return {
        "worker_id": (
            "a worker id has 1 to 64 of A-Z a-z 0-9 . _ : / = + @ - and begins with a letter or digit",
            _WORKER_ID.fullmatch(worker_id) is not None,
        ),
        "offer": ("the offer names no type or no region", bool(offer.instance_type and offer.region)),
        "model": (f"a model has at most {_MAX_MODEL} characters", len(spec.model) <= _MAX_MODEL),
        "instance_profile": (
            f"{profile!r} is no instance profile's ARN. A role is none; name the profile that holds it",
            not profile.startswith(_ARN) or _PROFILE_ARN.fullmatch(profile) is not None,
        ),
    }


def _invalid(worker_id: str, offer: Offer, code: str, complaint: str) -> InvalidSpecError:
    return InvalidSpecError(f"{place_of(worker_id, offer)}: {complaint}", error_code=code)


def run_request(
    order: Order, *, image: str, network: Place, options: AwsOptions, how: AwsLaunchOptions
) -> RunInstancesRequestTypeDef:
    """Return the request. The same order with the same image and network gives the same request, every time.

    So nothing of the moment is in it, no time and no host: EC2 compares it with what came with this token before.
    """
    request: RunInstancesRequestTypeDef = {
        "ImageId": image,
        "InstanceType": cast("InstanceTypeType", order.offer.instance_type),
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": order.worker_id,
        # A worker that ends itself is gone: stopped it would stay and bill.
        "InstanceInitiatedShutdownBehavior": "terminate",
        "TagSpecifications": _tag_specifications(order, options, how),
    }
    if order.offer.kind is Kind.SPOT:
        # One-time: nothing that would launch again. No limit of the price: the current one is the offer.
        request["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
        }
    if network.subnet is not None:
        request["SubnetId"] = network.subnet
    elif order.offer.zone:
        request["Placement"] = {"AvailabilityZone": order.offer.zone}
    if network.groups:
        request["SecurityGroupIds"] = list(network.groups)
    if order.spec.instance_profile:
        request["IamInstanceProfile"] = _profile(order.spec.instance_profile)
    if order.user_data:
        # As text: the SDK encodes it.
        request["UserData"] = order.user_data
    return request


def require_own_tags_kept(options: AwsOptions, how: AwsLaunchOptions) -> None:
    """Raise ProviderSetupError if a tag of the operator's would stand in for one of ours, or protect every machine."""
    keys = options.tags
    ours = {keys.owner, keys.worker, keys.model, keys.protect, keys.registry, how.role_tag, NAME_TAG}
    names = set(map(loosely, ours))
    taken = sorted(key for key in how.extra_tags if loosely(key) in names)
    if taken:
        msg = f"provider {options.name!r}: extra_tags: {', '.join(taken)} is written by the launch itself, or never"
        raise ProviderSetupError(msg)


def _tag_specifications(order: Order, options: AwsOptions, how: AwsLaunchOptions) -> list[TagSpecificationTypeDef]:
    pairs = tags_of(order, options, how)
    kinds: list[ResourceTypeType] = ["instance", "volume", "network-interface"]
    if order.offer.kind is Kind.SPOT:
        kinds.append("spot-instances-request")
    return [
        {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in pairs.items()]} for kind in kinds
    ]


def tags_of(order: Order, options: AwsOptions, how: AwsLaunchOptions) -> dict[str, str]:
    """Return the tags that every resource of the launch carries."""
    keys = options.tags
    optional = {keys.model: order.spec.model, keys.registry: how.registry_id or ""}
    return {
        **how.extra_tags,
        NAME_TAG: f"{options.deployment}-{order.worker_id}",
        how.role_tag: how.role,
        keys.owner: options.deployment,
        keys.worker: order.worker_id,
        **{key: value for key, value in optional.items() if value},
    }


def _profile(name: str) -> IamInstanceProfileSpecificationTypeDef:
    return {"Arn": name} if name.startswith(_ARN) else {"Name": name}


def differences(order: Order, raw: RawInstance) -> str:
    """Return how this machine is another one than was asked for, as far as a machine shows; empty when it is that."""
    placement = raw.fields.get("Placement")
    is_spot = raw.fields.get("InstanceLifecycle") == "spot"
    found = {
        "type": (raw.fields.get("InstanceType"), order.offer.instance_type),
        "zone": (placement.get("AvailabilityZone") if isinstance(placement, Mapping) else None, order.offer.zone),
        "kind": (str(Kind.SPOT if is_spot else Kind.ON_DEMAND), str(order.offer.kind)),
        "image": (raw.fields.get("ImageId"), order.spec.image),
    }
    # What was not asked for may be anything.
    return ", ".join(
        f"its {what} is {has}, not {wanted}" for what, (has, wanted) in found.items() if wanted and has != wanted
    )
