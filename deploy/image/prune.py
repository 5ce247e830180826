# ruff: noqa: INP001 - a script of the build, and no package
"""Take out of an environment what reaperd never asks for. Part of the image's build.

botocore describes every service of AWS, four hundred of them, in a folder each; reaperd calls few. lxml brings what is
needed to write HTML and to compile against it; here it only parses. pip is there because sqlite-utils can install
plug-ins for itself, from its own command line.

    python3 prune.py /opt/reaperd
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SERVICES = frozenset(
    {
        "ec2",
        "sts",
        # What credentials may come from: `aws sso login`, `aws login`.
        "sso",
        "sso-oidc",
        "signin",
        # Which accounts there are, and what a machine costs.
        "organizations",
        "pricing",
    }
)
"""The services whose descriptions stay. `tests/unit/deploy` holds it to the clients that the code makes."""


def prune(environment: Path) -> int:
    """Take it out and return how many folders that were."""
    (packages,) = environment.glob("lib/python3.*/site-packages")
    unused = [
        *_other_services(packages / "botocore" / "data"),
        *_folders(packages / "boto3" / "data", keep=SERVICES),
        *packages.glob("boto3/examples"),
        *_all_but_the_parser(packages / "lxml"),
        *_pip(environment, packages),
    ]
    for path in unused:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return len(unused)


def _other_services(data: Path) -> list[Path]:
    """Return every service but ours. The files beside them, such as `endpoints.json`, speak of all."""
    missing = [service for service in sorted(SERVICES) if not (data / service).is_dir()]
    if missing:
        # Better no image than one that cannot see a cloud.
        sys.exit(f"{data} has no {', '.join(missing)}: botocore has changed, and so must {Path(__file__).name}")
    return _folders(data, keep=SERVICES)


def _folders(parent: Path, *, keep: frozenset[str]) -> list[Path]:
    return [path for path in sorted(parent.iterdir()) if path.is_dir() and path.name not in keep]


def _all_but_the_parser(lxml: Path) -> list[Path]:
    """Return all of lxml but `etree`, which parses, and `_elementpath`, without which that one does not load."""
    kept = ("__init__.py", "etree.cpython", "_elementpath.cpython")
    return [path for path in sorted(lxml.glob("*")) if not path.name.startswith(kept)]


def _pip(environment: Path, packages: Path) -> list[Path]:
    return [*packages.glob("pip"), *packages.glob("pip-*.dist-info"), *environment.glob("bin/pip*")]


if __name__ == "__main__":
    prune(Path(sys.argv[1]))
