from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws
from mypy_boto3_ec2 import EC2Client

from tests.unit.providers.aws.canned import CannedAws


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the developer's own AWS set-up reaches a test."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def one_canned() -> Iterator[CannedAws]:
    with CannedAws() as aws:
        yield aws


@pytest.fixture
def canned(one_canned: CannedAws) -> Iterator[CannedAws]:
    """The same server for all, so that the SDK's clients, which are dear, can be kept."""
    one_canned.reset()
    yield one_canned
    one_canned.reset()


@pytest.fixture
def moto_ec2() -> Iterator[EC2Client]:
    with mock_aws():
        yield boto3.client("ec2", "us-east-1")
