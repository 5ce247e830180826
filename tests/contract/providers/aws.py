"""A harness of AWS, over moto in this process.

What stands in front of moto counts and breaks the requests of the provider, and sees nothing of the harness's own.
"""

from __future__ import annotations

import io
from functools import cache
from urllib.parse import parse_qs, urlsplit

import boto3
import moto.core.models  # noqa: F401 - before the first session, or it would talk to AWS
from botocore.awsrequest import AWSResponse
from botocore.handlers import BUILTIN_HANDLERS

from providers.aws import AwsOptions, aws_examiner, aws_lister, aws_terminator
from providers.model import InstanceRef, Scope
from reaperd.clock import SystemClock

NAME = "aws"
ACCOUNT = "123456789012"
"""The one that moto gives."""
REGIONS = ("eu-west-1", "us-east-1")
READING = ("Describe", "Get")


class AwsHarness:
    """One account with some regions."""

    owner = "prod"
    unknown_id = "i-0123456789abcdef0"
    more_than_a_page = 6

    def __init__(self, gate, regions):
        self.gate = gate
        self.scopes = tuple(Scope(NAME, region) for region in regions)
        self.options = AwsOptions(
            name=NAME, deployment=self.owner, account=ACCOUNT, regions=regions, page_size=self.more_than_a_page - 1
        )
        self.tag_keys = self.options.tags
        # Once a test, since the SDK takes its time.
        self._lister = aws_lister(self.options, clock=SystemClock())
        self._terminator = aws_terminator(self.options, clock=SystemClock())

    def lister(self):
        return self._lister

    def locator(self):
        return self._lister

    def end(self, ref):
        admin(ref.region).terminate_instances(InstanceIds=[ref.instance_id])

    def auditor(self):
        return self._lister

    def examiner(self):
        return aws_examiner(self.options, clock=SystemClock())

    def terminator(self):
        return self._terminator

    def add_owned(self, scope, *, worker_id="w-1"):
        worker = {self.tag_keys.worker: worker_id} if worker_id else {}
        return self.start(scope, {self.tag_keys.owner: self.owner} | worker)

    def add_foreign(self, scope, *, owner):
        return self.start(scope, {self.tag_keys.owner: owner})

    def add_stranger(self, scope):
        return self.start(scope, {"Name": "somebody else's"})

    def start(self, scope, tags):
        tagged = {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        answer = admin(scope.region).run_instances(
            ImageId="ami-12345678", InstanceType="t3.micro", MinCount=1, MaxCount=1, TagSpecifications=[tagged]
        )
        return InstanceRef(scope.provider, scope.region, answer["Instances"][0]["InstanceId"])

    def exists(self, ref):
        found = admin(ref.region).describe_instances(Filters=[{"Name": "instance-id", "Values": [ref.instance_id]}])
        states = [i["State"]["Name"] for reservation in found["Reservations"] for i in reservation["Instances"]]
        return bool(states) and states[0] not in {"shutting-down", "terminated"}

    def stop(self, ref):
        admin(ref.region).stop_instances(InstanceIds=[ref.instance_id])

    def set_tag(self, ref, key, value):
        if value is None:
            admin(ref.region).delete_tags(Resources=[ref.instance_id], Tags=[{"Key": key}])
            return
        admin(ref.region).create_tags(Resources=[ref.instance_id], Tags=[{"Key": key, "Value": value}])

    def break_listing(self, scope):
        self.gate.closed.add(scope.region)

    def break_second_page(self, scope):
        for _ in range(self.more_than_a_page):
            self.add_owned(scope)
        self.gate.closed_after_a_page.add(scope.region)

    def mutations(self):
        return len(self.gate.mutations)


class Gate:
    """Stands between the provider and moto."""

    def __init__(self):
        self.closed = set()
        self.closed_after_a_page = set()
        self.mutations = []

    def __enter__(self):
        # First, so that it is asked before moto.
        BUILTIN_HANDLERS.insert(0, ("before-send.ec2", self.answer))
        return self

    def __exit__(self, *_exc):
        BUILTIN_HANDLERS.remove(("before-send.ec2", self.answer))

    def answer(self, request, **_more):
        """Return what does not come from moto: refusals, and regions, of which moto has too many to be fast."""
        body = request.body
        asked = parse_qs(body.decode() if isinstance(body, bytes) else body)
        region, action = urlsplit(request.url).netloc.split(".")[1], asked["Action"][0]
        if not action.startswith(READING) and asked.get("DryRun") != ["true"]:
            self.mutations.append(action)
        if action == "DescribeRegions":
            return answered(request.url, 200, ENABLED)
        broken = region in self.closed or (region in self.closed_after_a_page and "NextToken" in asked)
        return answered(request.url, 403, DENIED) if broken and action == "DescribeInstances" else None


# A refusal of the kind that is not worth asking again.
DENIED = "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>"
ENABLED = "".join(
    (
        "<DescribeRegionsResponse><regionInfo>",
        *(f"<item><regionName>{r}</regionName><optInStatus>opted-in</optInStatus></item>" for r in REGIONS),
        "</regionInfo></DescribeRegionsResponse>",
    )
)


def answered(url, status, text):
    return AWSResponse(url, status, {"content-type": "text/xml"}, Raw(text.encode()))


class Raw(io.BytesIO):
    """A body as urllib3 hands it out."""

    def stream(self, **_options):
        yield self.read()


@cache
def admin(region):
    """Return a client of the harness's own, made before any gate."""
    return boto3.session.Session().client(
        "ec2", region_name=region, aws_access_key_id="admin", aws_secret_access_key="admin"
    )
