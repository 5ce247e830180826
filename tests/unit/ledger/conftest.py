from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reaperd.ledger.ledger import Ledger, open_ledger

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


def open_at(path: Path, **changes: str) -> Ledger:
    arguments = {"deployment": "prod-a", "owner_tag": "reaperd:owner"} | changes
    return open_ledger(path, now=NOW, **arguments)


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with open_at(path) as opened:
        yield opened
