"""boto3 clients and environments that talk to a test cloud and nothing else."""

from __future__ import annotations

import os
from collections import defaultdict
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config

ACCESS_KEY = "AKIATEST"
_NOWHERE = "http://127.0.0.1:1"
_BEFORE_SEND = "before-send"

# A client takes botocore 40 ms to build and a test asks for one, so they are lent out and pointed at the cloud.
_idle: dict[str, list[Any]] = defaultdict(list)


class Clients:
    """Lends clients of one cloud until it is closed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lent: dict[str, tuple[Any, list[Any] | None]] = {}

    def client(
        self,
        service: str,
        region: str,
        *,
        access_key: str = ACCESS_KEY,
        attempts: int = 1,
        timeout: float = 5.0,
        **config: Any,
    ) -> Any:
        """Return a boto3 client that tries so often; `config` is botocore's. The same question, the same client."""
        asked = repr((service, region, access_key, attempts, timeout, sorted(config.items())))
        if asked not in self._lent:
            retries = {"mode": "standard", "total_max_attempts": attempts}
            options = {"connect_timeout": timeout, "read_timeout": timeout, "retries": retries} | config
            # Retries draw on a quota that a client keeps: those that retry are made anew.
            idle = _idle[asked] if attempts == 1 else None
            lent = idle.pop() if idle else _make(service, region, access_key, Config(**options))
            lent.meta.events.register(_BEFORE_SEND, self._redirect, unique_id=_BEFORE_SEND)
            self._lent[asked] = (lent, idle)
        return self._lent[asked][0]

    def _redirect(self, request: Any, **_: Any) -> None:
        path = urlsplit(request.url)._replace(scheme="", netloc="").geturl()
        request.url = self._url + path

    def close(self) -> None:
        """Close the connections and take the clients back."""
        while self._lent:
            _, (lent, idle) = self._lent.popitem()
            lent.meta.events.unregister(_BEFORE_SEND, unique_id=_BEFORE_SEND)
            lent.close()
            if idle is not None:
                idle.append(lent)

    def environment(self, region: str) -> dict[str, str]:
        """Return the variables that point a subprocess at the cloud, and nothing of the caller's AWS setup."""
        return {
            "AWS_ENDPOINT_URL": self._url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def _make(service: str, region: str, access_key: str, config: Config) -> Any:
    return _session().client(
        service,
        region_name=region,
        endpoint_url=_NOWHERE,
        aws_access_key_id=access_key,
        aws_secret_access_key="secret",
        config=config,
    )


@cache
def _session() -> boto3.Session:
    """One session, so that botocore reads its models once."""
    return boto3.Session()
