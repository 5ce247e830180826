"""An AWS that lives in this process: moto behind loopback HTTP, with a switch that makes one region fail.

The only home of moto, and beside providers.aws the only one of boto3: here it plays the control plane's part.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

# Read by moto when it is imported: the images that it knows of take two seconds to load, and nobody asks for them.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

import boto3
from moto.backends import get_backend
from moto.moto_api._internal import mock_random
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

Environ = dict[str, Any]

SEED = 1
"""Every new AWS gives its machines the same ids, so that what a page shows is what its reader sees."""
StartResponse = Callable[[str, list[tuple[str, str]]], object]

ACCOUNT = "123456789012"
"""The account that moto answers with."""

KEYS = {
    "AWS_ACCESS_KEY_ID": "demo",
    "AWS_SECRET_ACCESS_KEY": "demo",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Credentials that open nothing anywhere else, and no question to a metadata service."""

_DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Response><Errors><Error><Code>UnauthorizedOperation</Code>"
    b"<Message>You are not authorized to perform this operation: a service control policy denies it.</Message>"
    b"</Error></Errors><RequestID>demo</RequestID></Response>"
)


class EmbeddedAws:
    """EC2 and STS on a loopback port, from `with` to its end."""

    def __init__(self) -> None:
        """Bind a free port; nothing answers before the `with`."""
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        mock_random.seed(SEED)
        self._inner = DomainDispatcherApplication(create_backend_app)
        self._denied: frozenset[str] = frozenset()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="aws", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what a process needs to take this for AWS."""
        return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}"}

    def deny(self, *regions: str) -> None:
        """Refuse every request to these regions from now on; to no region: none."""
        self._denied = frozenset(regions)

    def launch(self, region: str, tags: Mapping[str, str], *, launched_at: datetime, instance_type: str) -> str:
        """Start a machine as a control plane would, and return its id. The launch time is set back by hand."""
        client = boto3.client(
            "ec2",
            region_name=region,
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        )
        answer: Any = client.run_instances(
            ImageId="ami-0123456789abcdef0",
            InstanceType=instance_type,  # type: ignore[arg-type]
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[
                {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
            ],
        )
        instance_id: str = answer["Instances"][0]["InstanceId"]
        self._set_launch_time(region, instance_id, launched_at)
        return instance_id

    def _set_launch_time(self, region: str, instance_id: str, launched_at: datetime) -> None:
        instance: Any = get_backend("ec2")[ACCOUNT][region].get_instance(instance_id)
        text = launched_at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        instance.launch_time = text
        for interface in instance.nics.values():
            interface.attach_time = text

    def _answer(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        authorization = str(environ.get("HTTP_AUTHORIZATION", ""))
        if any(f"/{region}/ec2/" in authorization for region in self._denied):
            start_response("403 Forbidden", [("Content-Type", "text/xml;charset=UTF-8")])
            return [_DENIED]
        answered: Iterable[bytes] = self._inner(environ, start_response)
        return answered
