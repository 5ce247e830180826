"""The environment of the process, as a case wants it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

_FAKE = {
    "AWS_ACCESS_KEY_ID": "AKIATEST",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def host(variables: Mapping[str, str]) -> Iterator[None]:
    """Run a block with fake AWS credentials and these variables, and with nothing of the developer's own set-up."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AWS_", "REAPERD_"))]:
            patch.delenv(name)
        for name, value in {**_FAKE, **variables}.items():
            patch.setenv(name, value)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
