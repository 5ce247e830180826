"""What the image is made of, as far as reading it tells."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from reaperd import __version__
from tests.docs.pages import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
PRUNE = ROOT / "deploy" / "image" / "prune.py"
LXML = ("__init__.py", "etree.cpython-311.so", "_elementpath.cpython-311.so", "objectify.cpython-311.so", "etree_api.h")
PACKAGES = ("reaperd", "providers", "registry", "alerts")


def pins(name: str) -> dict[str, str]:
    """Return the version of each distribution that is locked, all of them with a hash."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    entries = re.findall(r"^([a-z0-9-]+)==(\S+)((?: ;[^\\\n]*)? \\\n(?:    --hash=\S+(?: \\)?\n)+)", text, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^[a-z]", text, re.MULTILINE))
    return {found: version for found, version, _hashes in entries}


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(PRUNE))


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Give an environment with some services, some files beside them, a parser and pip."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    folders = [f"botocore/data/{name}/2016-11-15" for name in ("ec2", "sts", "sso", "sso-oidc", "signin", "s3")]
    folders += [f"botocore/data/{name}/2017-01-01" for name in ("organizations", "pricing")]
    folders += ["lxml/html", "lxml/includes"]
    for folder in (*folders, "boto3/data/ec2", "boto3/data/s3", "boto3/examples", "pip", "pip-26.3.dist-info"):
        (packages / folder).mkdir(parents=True)
    for name in LXML:
        (packages / "lxml" / name).touch()
    (packages / "botocore" / "data" / "endpoints.json").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip3").touch()
    (tmp_path / "bin" / "reaperd").touch()
    return tmp_path


def test_the_runtime_is_locked_and_the_lock_fits_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = pins("run.txt")
    wanted = [Requirement(text) for text in project["dependencies"]]

    assert [str(each) for each in wanted if locked.get(each.name) not in each.specifier] == []


def test_what_builds_the_wheel_is_locked():
    (backend,) = (
        Requirement(text)
        for text in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    )

    assert pins("build.txt")[backend.name] in backend.specifier


def test_the_image_says_which_version_it_is():
    assert f'org.opencontainers.image.version="{__version__}"' in DOCKERFILE


def test_it_runs_as_a_number_with_a_command_that_no_shell_stands_in_front_of():
    lines = DOCKERFILE.splitlines()

    assert "USER 65532:65532" in lines
    assert 'ENTRYPOINT ["reaperd"]' in lines
    assert 'CMD ["run"]' in lines


def test_every_service_that_the_code_calls_stays_in_the_image(script: dict[str, Any]):
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "demo" not in path.parts]
    called = {
        name
        for path in sources
        for name in re.findall(r"\bclient\(\s*\"([a-z0-9-]+)\"", path.read_text(encoding="utf-8"))
    }

    assert {"ec2", "sts"} <= called
    assert called <= script["SERVICES"]


def test_what_is_not_called_is_taken_out_and_all_else_stays(script: dict[str, Any], environment: Path):
    script["prune"](environment)

    left = {path.relative_to(environment).as_posix() for path in environment.rglob("*")}
    assert [name for name in left if "s3" in name or "pip" in name or "examples" in name] == []
    assert "lib/python3.11/site-packages/botocore/data/endpoints.json" in left
    assert "lib/python3.11/site-packages/boto3/data/ec2" in left
    parser = {name.rpartition("/")[2] for name in left if "/lxml/" in name}
    assert parser == {"__init__.py", "etree.cpython-311.so", "_elementpath.cpython-311.so"}
    assert "bin/reaperd" in left


def test_no_image_is_made_of_an_sdk_that_does_not_know_a_service(script: dict[str, Any], environment: Path):
    (environment / "lib/python3.11/site-packages/botocore/data/sts/2016-11-15").rmdir()
    (environment / "lib/python3.11/site-packages/botocore/data/sts").rmdir()

    with pytest.raises(SystemExit, match="has no sts"):
        script["prune"](environment)
