from __future__ import annotations

import getpass
import os
import socket

import pytest

from tests.unit.cli.running import Place

ME = f"{os.environ.get('SUDO_USER') or getpass.getuser()}@{socket.gethostname()}"


@pytest.fixture
def place(tmp_path, monkeypatch) -> Place:
    for variable in [name for name in os.environ if name.startswith("REAPERD_") or name == "STATE_DIRECTORY"]:
        monkeypatch.delenv(variable)
    made = Place(tmp_path)
    made.configure()
    return made


@pytest.fixture
def me() -> str:
    return ME
