"""The manifests hold what they promise, as far as reading them tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.rulebook import JOB as MONITORED
from reaperd import __version__
from reaperd.core.model import Mode
from tests.unit.deploy.manifests import (
    CHART,
    DAEMON,
    JOB,
    KUBERNETES,
    NAME,
    container,
    manifest,
    manifests,
    mounts,
    pod,
    settings,
    template,
    values,
)

WORKLOADS = (DAEMON, JOB)
KUSTOMIZATIONS = sorted(path.relative_to(KUBERNETES).parent for path in KUBERNETES.rglob("kustomization.yaml"))


def configuration(name: str) -> str:
    if name == "chart":
        text: str = values()["config"]
        return text
    return (KUBERNETES / name / "reaperd.toml").read_text(encoding="utf-8")


# ------------------------------------------------------------------ the pod


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_is_one_that_a_restricted_namespace_takes(name: str):
    workload = manifest(name)
    context, inside = pod(workload)["securityContext"], container(workload)["securityContext"]

    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert {kind for volume in pod(workload)["volumes"] for kind in volume} <= {
        "name",
        "configMap",
        "persistentVolumeClaim",
        "emptyDir",
    }


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_runs_as_the_user_of_the_image_and_writes_nothing_but_its_volumes(name: str):
    workload = manifest(name)
    context = pod(workload)["securityContext"]

    assert {context[key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {65532}
    assert container(workload)["securityContext"]["readOnlyRootFilesystem"] is True
    assert {key for key, mount in mounts(workload).items() if not mount.get("readOnly")} == {"ledger", "tmp"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_has_no_token_for_kubernetes(name: str):
    assert pod(manifest(name))["automountServiceAccountToken"] is False
    assert manifest("base/serviceaccount.yaml")["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_registry_is_a_folder_that_nobody_in_the_pod_can_write_or_take_over(name: str):
    workload = manifest(name)
    (volume,) = (volume for volume in pod(workload)["volumes"] if volume["name"] == "registry")

    assert mounts(workload)["registry"]["readOnly"] is True
    assert "subPath" not in mounts(workload)["registry"]
    assert volume["persistentVolumeClaim"]["readOnly"] is True


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_asks_for_what_it_needs_and_its_memory_is_bounded(name: str):
    asked = container(manifest(name))["resources"]

    assert set(asked["requests"]) == {"cpu", "memory"}
    assert set(asked["limits"]) == {"memory"}


def test_there_is_one_daemon_and_it_ends_before_the_next_begins():
    deployment = manifest(DAEMON)

    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert manifest("base/ledger.yaml")["spec"]["accessModes"] == ["ReadWriteOncePod"]


def test_it_is_restarted_on_its_health_and_never_because_the_world_is_not_ready():
    probed = {key: value["httpGet"] for key, value in container(manifest(DAEMON)).items() if key.endswith("Probe")}

    assert {key: get["path"] for key, get in probed.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {get["port"] for get in probed.values()} == {port["name"] for port in container(manifest(DAEMON))["ports"]}


def test_it_gets_the_time_that_it_needs_to_stop():
    assert all(pod(manifest(name))["terminationGracePeriodSeconds"] > 10 for name in WORKLOADS)


def test_the_job_is_the_daemon_with_another_command_and_the_same_ledger():
    job, daemon = container(manifest(JOB)), container(manifest(DAEMON))
    only_a_daemon = {"ports", "startupProbe", "livenessProbe", "readinessProbe"}

    assert (job["args"], daemon["args"]) == (["once"], ["run"])
    assert {**job, "args": 0} == {
        key: value for key, value in {**daemon, "args": 0}.items() if key not in only_a_daemon
    }
    assert pod(manifest(JOB))["volumes"] == pod(manifest(DAEMON))["volumes"]


def test_one_job_ends_before_the_next_begins_and_none_is_tried_again():
    spec = manifest(JOB)["spec"]

    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["backoffLimit"] == 0
    assert pod(manifest(JOB))["restartPolicy"] == "Never"


# ------------------------------------------------------------------ what belongs together


def test_whoever_selects_pods_finds_ours():
    monitor, policy = manifest("components/monitoring/podmonitor.yaml"), manifest("base/networkpolicy.yaml")

    assert all(template(manifest(name))["metadata"]["labels"] == NAME for name in WORKLOADS)
    assert manifest(DAEMON)["spec"]["selector"] == {"matchLabels": NAME}
    assert monitor["spec"]["selector"] == {"matchLabels": NAME}
    assert policy["spec"]["podSelector"] == {"matchLabels": NAME}


def test_the_job_that_the_rules_speak_of_is_the_label_that_the_monitor_takes():
    monitor = manifest("components/monitoring/podmonitor.yaml")

    assert NAME[monitor["spec"]["jobLabel"]] == MONITORED


def test_a_scrape_and_the_policy_name_a_port_that_there_is():
    (there,) = container(manifest(DAEMON))["ports"]
    (scraped,) = manifest("components/monitoring/podmonitor.yaml")["spec"]["podMetricsEndpoints"]
    (let_in,) = manifest("base/networkpolicy.yaml")["spec"]["ingress"][0]["ports"]

    assert {there["name"], scraped["port"], let_in["port"]} == {"http"}


@pytest.mark.parametrize("name", KUSTOMIZATIONS, ids=str)
def test_a_kustomization_names_every_file_of_its_folder_and_no_other(name: Path):
    (told,) = manifests(KUBERNETES / name / "kustomization.yaml")
    patches = [patch["path"] for patch in told.get("patches", ()) if "path" in patch]
    generated = [file for each in told.get("configMapGenerator", ()) for file in each["files"]]
    named = {*told.get("resources", ()), *told.get("components", ()), *patches, *generated}
    there = {path.name for path in (KUBERNETES / name).iterdir()} - {"kustomization.yaml"}

    assert {each for each in named if not each.startswith("..")} == there
    assert [each for each in named if not (KUBERNETES / name / each).exists()] == []


# ------------------------------------------------------------------ the configurations


@pytest.mark.parametrize("name", ["base", "overlays/enforce", "chart"])
def test_a_configuration_and_the_pod_agree_on_every_path_and_on_the_port(name: str, tmp_path: Path):
    made = settings(tmp_path, configuration(name))
    places = {key: Path(mount["mountPath"]) for key, mount in mounts(manifest(DAEMON)).items()}
    (port,) = container(manifest(DAEMON))["ports"]

    assert made.state_dir == places["ledger"]
    assert made.registry.path.parent == places["registry"]
    assert places["config"] == Path("/etc/reaperd")
    assert made.http.address == ("0.0.0.0", port["containerPort"])
    assert made.registry.max_silence is not None


def test_only_what_is_called_enforce_enforces(tmp_path: Path):
    written = {path.parent.relative_to(KUBERNETES).as_posix() for path in KUBERNETES.rglob("*.toml")}
    modes = {name: settings(tmp_path, configuration(name)).mode for name in (*written, "chart")}

    assert modes == {"base": Mode.DRY_RUN, "overlays/enforce": Mode.ENFORCE, "chart": Mode.DRY_RUN}


def test_enforcing_is_the_rehearsal_with_one_line_more(tmp_path: Path):
    rehearsal, enforcing = (settings(tmp_path, configuration(name)) for name in ("base", "overlays/enforce"))

    assert enforcing.model_copy(update={"mode": Mode.DRY_RUN}) == rehearsal


def test_the_chart_comes_with_the_configuration_of_the_base(tmp_path: Path):
    assert settings(tmp_path, configuration("chart")) == settings(tmp_path, configuration("base"))


@pytest.mark.parametrize("overlay", ["irsa", "pod-identity", "once", "rehearsal"])
def test_an_overlay_begins_as_a_rehearsal(overlay: str):
    (told,) = manifests(KUBERNETES / "overlays" / overlay / "kustomization.yaml")

    assert set(told["resources"]) & {"../rehearsal", "../../base"}
    assert "../enforce" not in told["resources"]


# ------------------------------------------------------------------ the chart, and versions


def test_the_chart_refuses_a_second_replica():
    schema = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))

    assert schema["properties"]["replicaCount"]["maximum"] == 1


def test_every_value_of_the_chart_is_in_its_schema_and_nothing_else_is_taken():
    schema = yaml.safe_load((CHART / "values.schema.json").read_text(encoding="utf-8"))

    assert set(schema["properties"]) - {"global"} == set(values())
    assert list(unlike(schema, values())) == []


def unlike(schema: dict[str, Any], there: dict[str, Any], above: str = "") -> list[str]:
    """Return every table whose keys are not those of its schema."""
    wrong = [] if schema["additionalProperties"] is False else [above]
    for key, inner in schema["properties"].items():
        if "properties" in inner:
            wrong += [] if set(inner["properties"]) == set(there[key]) else [f"{above}.{key}"]
            wrong += unlike(inner, there[key], f"{above}.{key}")
    return [each for each in wrong if "serviceAccount.annotations" not in each]


def test_everything_speaks_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    tags = {
        image["newTag"]
        for name in KUSTOMIZATIONS
        for image in manifests(KUBERNETES / name / "kustomization.yaml")[0].get("images", ())
    }

    assert {chart["version"], chart["appVersion"], *tags} == {__version__}
