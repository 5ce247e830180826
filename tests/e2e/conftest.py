"""What needs a program that PyPI does not have: `make e2e` says which."""

from collections.abc import Iterator

import pytest

from tests.e2e.installed import installed
from tests.e2e.machine import Machine, require_machine
from tests.integration.conftest import cloud, crew, moto, moto_site, parent, site
from tests.packaging.conftest import wheel

__all__ = ["cloud", "crew", "machine", "moto", "moto_site", "parent", "site", "wheel"]


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Boot a machine and install as docs/install.md says. One for all: each test leaves it as it was."""
    require_machine()
    with installed(tmp_path_factory.mktemp("machine")) as made:
        yield made
