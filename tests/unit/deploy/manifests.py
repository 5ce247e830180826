"""The manifests as they are written: what can be asked of them without kubectl and helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from reaperd.config import Settings, load
from tests.docs.pages import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
CHART = ROOT / "deploy" / "helm" / "reaperd"
NAME = {"app.kubernetes.io/name": "reaperd"}
DAEMON = "base/deployment.yaml"
JOB = "overlays/once/cronjob.yaml"


def manifest(name: str) -> dict[str, Any]:
    """Return the one document of a file below `deploy/kubernetes`."""
    (document,) = manifests(KUBERNETES / name)
    return document


def manifests(path: Path) -> list[dict[str, Any]]:
    """Return every document of a file."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def template(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the template of the pods of a Deployment or a CronJob."""
    spec = workload["spec"]
    if workload["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: dict[str, Any] = spec["template"]
    return found


def pod(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the pod of a Deployment or a CronJob."""
    found: dict[str, Any] = template(workload)["spec"]
    return found


def container(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the one container of a Deployment or a CronJob."""
    (found,) = pod(workload)["containers"]
    one: dict[str, Any] = found
    return one


def mounts(workload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is mounted, by the name of its volume."""
    return {mount["name"]: mount for mount in container(workload)["volumeMounts"]}


def values() -> dict[str, Any]:
    """Return the chart's values."""
    (found,) = manifests(CHART / "values.yaml")
    return found


def settings(folder: Path, text: str) -> Settings:
    """Return what a configuration comes to in a pod, where no variable changes it."""
    path = folder / "reaperd.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, {})
