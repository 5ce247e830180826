"""The same faults and the same log in front of moto's server: state that we did not write.

moto keeps its state per process: there is one such cloud at a time, and a new one starts empty.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # half of the start; read at the import

from moto.ec2.models import ec2_backends
from moto.iam.models import get_account_id_from
from moto.moto_api._internal import moto_api_backend
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.test import EnvironBuilder, run_wsgi_app

from tests.support.ec2.clients import ACCESS_KEY
from tests.support.ec2.clock import CloudClock
from tests.support.ec2.cloud import OWNER_TAG, WORKER_TAG
from tests.support.ec2.faults import Fault, FaultKind, Rule
from tests.support.ec2.protocol import Answer, ApiError, ApiRequest, HttpRequest, error_answer
from tests.support.ec2.served import ServedCloud

NOT_ON_MOTO = frozenset({FaultKind.STALE, FaultKind.IGNORED})
_DROPPED_HEADERS = frozenset({"content-type", "content-length", "date", "server"})
_FORM = "application/x-www-form-urlencoded; charset=utf-8"


class MotoCloud(ServedCloud):
    """moto behind the gateway: every service of moto, with faults for those that speak XML."""

    def __init__(self, *, port: int = 0, **settings: Any) -> None:
        self._moto = _MotoBackend()
        moto_api_backend.reset()
        super().__init__(self._moto, CloudClock(), port)
        self.configure(**settings)

    def configure(self, **settings: Any) -> None:
        """Set `date_skew_s`, or `page_size`: a cap on MaxResults, which moto counts in reservations."""
        self._moto.page_size = settings.pop("page_size", self._moto.page_size)
        super().configure(**settings)

    def add_instance(
        self,
        *,
        region: str = "us-east-1",
        worker: str | None = None,
        owner: str | None = None,
        tags: Mapping[str, str] | None = None,
        age_s: float = 7200.0,
        instance_type: str = "g5.xlarge",
    ) -> str:
        """Launch a machine past the log, let it be so old, and return its id."""
        given = {WORKER_TAG: worker, OWNER_TAG: owner} | dict(tags or {})
        with self.gateway.lock:
            instance_id = self._moto.launch(region, instance_type, {k: v for k, v in given.items() if v is not None})
            age = timedelta(seconds=age_s)
            machine = ec2_backends[get_account_id_from(ACCESS_KEY)][region].get_instance(instance_id)
            machine.launch_time = machine.nics[0].attach_time = datetime.now(UTC).replace(tzinfo=None) - age
        return instance_id

    def _snapshot_for(self, fault: Fault) -> None:
        if fault.kind in NOT_ON_MOTO:
            message = f"moto cannot play {fault.kind}"
            raise ValueError(message)


class _MotoBackend:
    """moto's server, called in the process."""

    def __init__(self) -> None:
        self.page_size: int | None = None
        self._app = DomainDispatcherApplication(create_backend_app)

    def account_of(self, access_key: str) -> str:
        return get_account_id_from(access_key)

    def answer(self, request: ApiRequest, rule: Rule | None) -> Answer:  # it plays no faults
        try:
            return self._call(request.http, self._paged(request).form())
        except Exception as error:  # noqa: BLE001  # whatever goes wrong inside moto is a 500 outside
            return error_answer(request.action, ApiError(repr(error), code="InternalError"))

    def _paged(self, request: ApiRequest) -> ApiRequest:
        if self.page_size is None or request.action != "DescribeInstances":
            return request
        size = min(self.page_size, int(request.params.get("MaxResults", "1000")))
        return request.with_param("MaxResults", str(size))

    def launch(self, region: str, instance_type: str, tags: Mapping[str, str]) -> str:
        params = {"Action": "RunInstances", "Version": "2016-11-15", "MinCount": "1", "MaxCount": "1"}
        params |= {"ImageId": "ami-0b5eea76982371e91", "InstanceType": instance_type}
        params["TagSpecification.1.ResourceType"] = "instance"
        for number, (key, value) in enumerate(tags.items(), start=1):
            params |= {f"TagSpecification.1.Tag.{number}.{name}": v for name, v in (("Key", key), ("Value", value))}
        scope = f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20260110/{region}/ec2/aws4_request, SignedHeaders=x"
        headers = {"Content-Type": _FORM, "Authorization": scope}
        http = HttpRequest(method="POST", path="/", query="", headers=headers, body=b"")
        root = ET.fromstring(self._call(http, urlencode(params if tags else _untagged(params)).encode()).body)
        (found,) = (element.text for element in root.iter() if element.tag.endswith("}instanceId"))
        return str(found)

    def _call(self, http: HttpRequest, body: bytes) -> Answer:
        wanted = EnvironBuilder(
            method=http.method,
            path=http.path,
            query_string=http.query,
            headers=[(name, value) for name, value in http.headers.items() if name.lower() != "content-length"],
            data=body,
        )
        content, status, headers = run_wsgi_app(self._app, wanted.get_environ(), buffered=True)
        code = int(status.split()[0])
        answered = b"".join(content)
        return Answer(
            body=answered,
            status=code,
            content_type=headers.get("Content-Type", "text/xml"),
            headers={name: value for name, value in headers.items() if name.lower() not in _DROPPED_HEADERS},
            error_code=_error_code(answered) if code >= 400 else None,
        )


def _untagged(params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in params.items() if not name.startswith("TagSpecification")}


def _error_code(body: bytes) -> str | None:
    try:
        return next((e.text for e in ET.fromstring(body).iter() if e.tag.endswith("Code")), None)
    except ET.ParseError:
        return None  # JSON, or a page of HTML
