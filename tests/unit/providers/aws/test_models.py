"""What the SDK is told of EC2 is what it would have known of these requests, and nothing more."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3.session
import botocore.session
import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape

from providers.aws import MutatingRequestError, hooks
from providers.aws.hooks import TERMINATING, AllowList
from providers.aws.models import OPERATIONS, Models, models

WHOLE = Loader().load_service_model("ec2", "service-2")


@pytest.fixture(scope="module")
def reader() -> Models:
    return models()


@pytest.fixture(scope="module")
def ours(reader: Models) -> Mapping[str, Any]:
    return reader.load_service_model("ec2", "service-2")


def described(model: Mapping[str, object]) -> ServiceModel:
    return ServiceModel(model, "ec2")


def test_every_request_that_a_session_may_send_is_known(ours):
    named = {
        name
        for value in vars(hooks).values()
        if isinstance(value, frozenset)
        for name in value
        if isinstance(name, str) and name.startswith("ec2:")
    }

    assert {f"ec2:{name}" for name in OPERATIONS} == named
    assert set(described(ours).operation_names) == OPERATIONS


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_a_request_is_described_as_the_sdk_describes_it(ours, operation):
    assert ours["operations"][operation] == WHOLE["operations"][operation]
    for place in ("input_shape", "output_shape"):
        one, other = (getattr(described(model).operation_model(operation), place) for model in (ours, WHOLE))
        assert drawn(one, frozenset()) == drawn(other, frozenset())


def drawn(shape: Shape | None, above: frozenset[str]) -> object:
    """Return everything that a shape is made of."""
    if shape is None or shape.name in above:
        return shape and shape.name
    parts: dict[str, Shape] = dict(getattr(shape, "members", {}))
    parts |= {name: getattr(shape, name) for name in ("member", "key", "value") if hasattr(shape, name)}
    inside = {name: drawn(part, above | {shape.name}) for name, part in parts.items()}
    return shape.name, shape.type_name, shape.serialization, shape.metadata, inside


def test_what_else_a_description_says_is_kept(ours):
    assert {key: ours[key] for key in WHOLE if key not in {"operations", "shapes"}} == {
        key: WHOLE[key] for key in WHOLE if key not in {"operations", "shapes"}
    }
    assert len(ours["shapes"]) < len(WHOLE["shapes"]) / 4


def test_it_is_read_once_for_all_sessions(ours):
    assert models().load_service_model("ec2", "service-2") is ours


def test_other_services_and_other_files_are_left_alone(reader):
    for service, kind in (("sts", "service-2"), ("ec2", "paginators-1")):
        assert reader.load_service_model(service, kind) == Loader().load_service_model(service, kind)


def test_a_client_has_a_method_for_each_request_and_no_other(reader):
    core = botocore.session.Session()
    core.register_component("data_loader", reader)
    client = boto3.session.Session(botocore_session=core).client(
        "ec2", region_name="us-east-1", aws_access_key_id="FAKE", aws_secret_access_key="FAKE"
    )

    assert set(client.meta.method_to_api_mapping.values()) == OPERATIONS
    assert not hasattr(client, "modify_instance_attribute")


def test_the_folders_of_the_configuration_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "ec2" / "2099-01-01"
    folder.mkdir(parents=True)
    newer = {**WHOLE, "metadata": {**WHOLE["metadata"], "apiVersion": "2099-01-01"}}
    (folder / "service-2.json").write_text(json.dumps(newer), encoding="utf-8")
    monkeypatch.setenv("AWS_DATA_PATH", os.pathsep.join((str(tmp_path), "/nowhere")))

    read = models.__wrapped__()

    assert read.load_service_model("ec2", "service-2")["metadata"]["apiVersion"] == "2099-01-01"


def test_a_reader_without_further_folders_reads_the_sdks(ours):
    assert Models(()).load_service_model("ec2", "service-2") == ours


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("stop_instances", {"InstanceIds": ["i-1"]}),
        ("create_tags", {"Resources": ["i-1"], "Tags": []}),
        ("delete_tags", {"Resources": ["i-1"]}),
        ("modify_instance_attribute", {"InstanceId": "i-1", "DisableApiTermination": {"Value": False}}),
        ("request_spot_instances", {}),
        ("run_instances", {"MinCount": 1, "MaxCount": 1}),
    ],
)
def test_a_client_that_knows_every_request_is_guarded_all_the_same(operation: str, request_: dict[str, Any]):
    """The allow-list does not lean on what is left out."""
    client = boto3.session.Session().client(
        "ec2",
        region_name="us-east-1",
        aws_access_key_id="FAKE",
        aws_secret_access_key="FAKE",
        endpoint_url="http://127.0.0.1:9",
    )
    AllowList(TERMINATING).attach(client)

    with pytest.raises(MutatingRequestError):
        getattr(client, operation)(**request_)
