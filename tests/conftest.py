"""How hard laws are tried, wherever they stand, what is run first, and what Ctrl-C does to what tests start.

HYPOTHESIS_PROFILE picks a profile; CI picks its own.
"""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, Phase, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell without job control leaves it to what it runs in the background, and as every process then inherits it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_BY_CHANCE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
"""Whether the first fifty draws are slow, large or mostly of no use is chance, and says nothing about a law."""

settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=_BY_CHANCE)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_BY_CHANCE)
settings.register_profile(
    "mutants",
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=_BY_CHANCE,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow ones: side by side, none of them is then waited for at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
