"""Which machine this is, as EC2's own metadata service says."""

from __future__ import annotations

import botocore.session
from botocore.exceptions import BotoCoreError
from botocore.utils import BadIMDSRequestError, IMDSFetcher

TIMEOUT_SECONDS = 1
_INSTANCE_ID = "latest/meta-data/instance-id"
_ENDPOINT = "ec2_metadata_service_endpoint"
_ENDPOINT_MODE = "ec2_metadata_service_endpoint_mode"


def own_instance_id() -> str | None:
    """Return the id of the machine that this runs on; None when that is not EC2, or it does not say.

    Asks once, with a session token (IMDSv2). Honours AWS_EC2_METADATA_DISABLED and AWS_EC2_METADATA_SERVICE_ENDPOINT.
    """
    session = botocore.session.Session()
    settings = {key: session.get_config_variable(key) for key in (_ENDPOINT, _ENDPOINT_MODE)}
    try:
        return _InstanceIdFetcher(timeout=TIMEOUT_SECONDS, config=settings).instance_id()
    except (BotoCoreError, BadIMDSRequestError, _NoAnswerError):
        return None


class _NoAnswerError(Exception):
    """The metadata service is switched off, or did not answer as it should."""


class _InstanceIdFetcher(IMDSFetcher):
    """Botocore's client of the metadata service, asked for something else than credentials."""

    _RETRIES_EXCEEDED_ERROR_CLS = _NoAnswerError

    def instance_id(self) -> str | None:
        # The stubs do not know these two; botocore's own subclasses are built on them.
        token = self._fetch_metadata_token()  # type: ignore[attr-defined]
        if token is None:
            return None
        answer = self._get_request(_INSTANCE_ID, None, token)  # type: ignore[attr-defined]
        text: str = answer.text.strip()
        return text if text.startswith("i-") else None
