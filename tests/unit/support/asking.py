"""What plain boto3 sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection
from typing import Any

from botocore.exceptions import ClientError

from tests.support.ec2 import FaultyEc2


def listed_pages(client: Any, **options: Any) -> list[list[str]]:
    """Return the ids of each page, following the tokens by hand: botocore's paginator has opinions."""
    pages: list[list[str]] = []
    token: dict[str, str] = {}
    while True:
        reply = client.describe_instances(MaxResults=1000, **token, **options)
        pages.append([i["InstanceId"] for r in reply["Reservations"] for i in r["Instances"]])
        if "NextToken" not in reply:
            return pages
        token = {"NextToken": reply["NextToken"]}


def listed(client: Any, **options: Any) -> list[str]:
    """Return the ids of all pages."""
    return [instance_id for page in listed_pages(client, **options) for instance_id in page]


def described(client: Any, instance_id: str, **options: Any) -> dict[str, Any]:
    """Return one instance."""
    (reservation,) = client.describe_instances(InstanceIds=[instance_id], **options)["Reservations"]
    (instance,) = reservation["Instances"]
    return instance


def error_of(call: Callable[..., Any], /, **options: Any) -> tuple[str, int]:
    """Return code and HTTP status of the error that the call raises."""
    try:
        call(**options)
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    message = "no error"
    raise AssertionError(message)


def by_name(name: str, *values: str) -> dict[str, Any]:
    """Return the argument for one filter."""
    return {"Filters": [{"Name": name, "Values": list(values)}]}


def fleet_of(cloud: FaultyEc2, count: int, region: str = "us-east-1") -> list[str]:
    """Add so many machines of ours."""
    return [
        cloud.add_instance(region=region, instance_id=f"i-{n}", worker=f"w-{n}", owner="prod-a")
        for n in range(1, count + 1)
    ]


def bare(cloud: FaultyEc2, path: str, method: str = "GET", **headers: str) -> tuple[int, Mapping[str, str], bytes]:
    """Return status, headers and body of a request that boto3 would not send."""
    with closing(HTTPConnection("127.0.0.1", cloud.server.port, timeout=5)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def dated(reply: dict[str, Any]) -> datetime | None:
    """Return the Date of a boto3 reply."""
    text = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
    return parsedate_to_datetime(text) if text else None
