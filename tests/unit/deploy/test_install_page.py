"""docs/install.md shows what the tests run."""

from __future__ import annotations

import re
import shlex

from tests.docs.markdown import blocks, files, read
from tests.e2e.containers import LOCKED_UP
from tests.unit.deploy.manifests import DAEMON, JOB, container, manifest, mounts, settings

PAGE = "docs/install.md"


def docker_run() -> list[str]:
    """Return the words of the command that starts the daemon."""
    typed = [line for block in blocks(read(PAGE), "console") for line in block.text.splitlines()]
    (line,) = (line for line in typed if line.startswith("$ docker run --detach"))
    return shlex.split(line)[3:]


def test_the_container_of_the_page_is_locked_up_as_the_tested_one_is():
    assert set(LOCKED_UP) <= set(docker_run())


def test_the_container_of_the_page_has_the_mounts_of_a_pod():
    given = {
        tuple(word.removeprefix("--volume=").split(":")[1:]) for word in docker_run() if word.startswith("--volume=")
    }
    pod = {
        (mount["mountPath"], *(["ro"] if mount.get("readOnly") else [])) for mount in mounts(manifest(DAEMON)).values()
    }

    assert given == pod - {("/tmp",)}


def test_the_listening_address_of_the_page_is_the_one_of_the_manifests(tmp_path):
    base = settings(tmp_path, read("deploy/kubernetes/base/reaperd.toml"))

    assert f'listen = "{base.http.listen}"' in read(PAGE)


def test_the_overlay_of_the_page_is_a_rehearsal():
    overlay = files(read(PAGE))["kustomization.yaml"]

    assert re.findall(r"overlays/(\S+)", overlay) == ["rehearsal"]


def test_the_page_and_the_manifest_say_that_a_job_needs_the_ledger():
    text = " ".join(read("deploy/kubernetes/" + JOB).replace("#", "").split())

    assert "It needs the ledger's volume" in text
    assert "needs the ledger's volume just as much" in " ".join(read(PAGE).split())
    assert container(manifest(JOB))["args"] == ["once"]
