"""The machine that was measured on."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.candidates import custodian_version

_SHOWN = ("boto3", "botocore", "lxml", "urllib3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a figure has to be read with."""

    processors: str
    memory_gb: int
    python: str
    libraries: str
    load_average: float
    """Over the last minute: above the number of processors, the times are not worth much."""


def this_machine() -> Machine:
    """Return the one that this runs on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    versions = {name: _version(name) for name in _SHOWN} | {"c7n": custodian_version()}
    return Machine(
        processors=f"{os.cpu_count()} processors ({_model()})",
        memory_gb=round(memory / 2**30),
        python=platform.python_version(),
        libraries=", ".join(f"{name} {number}" for name, number in versions.items() if number),
        load_average=round(os.getloadavg()[0], 1),
    )


def _model() -> str:
    found = re.search("model name\\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return found[1].strip() if found else platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
