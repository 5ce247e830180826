"""Every command looks for garbage rarely."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from reaperd.cli import main


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_command_does_not_look_at_every_page_for_garbage() -> None:
    gc.set_threshold(700, 10, 10)

    ran = CliRunner().invoke(main, ["rules"])

    assert ran.exit_code == 0
    assert gc.get_threshold()[0] >= 10_000
    assert gc.isenabled()
