"""The manifests through the tools that an operator uses, and the pod that comes out, run."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.rulebook import Form, rulebook
from tests.docs.markdown import files, read
from tests.docs.pages import ROOT
from tests.e2e.needs import run
from tests.e2e.tools import Tools, tools
from tests.support.daemon import Daemon
from tests.support.ec2 import FaultyEc2
from tests.support.processes import Crew
from tests.support.site import Site
from tests.unit.deploy.manifests import CHART, KUBERNETES, container, mounts, pod

pytestmark = pytest.mark.timeout(300)

OVERLAYS = ("rehearsal", "enforce", "irsa", "pod-identity", "once")
SCHEDULE = "schedule=*/5 * * * *"
ENFORCING = 'mode = "enforce"\n'
EVERYTHING = (
    "podMonitor.enabled=true",
    "podMonitor.labels.release=prometheus",
    "prometheusRule.enabled=true",
    "prometheusRule.labels.release=prometheus",
    "registry.supplementalGroups[0]=2000",
    "imagePullSecrets[0].name=pull",
    "nodeSelector.disk=fast",
    "tolerations[0].operator=Exists",
    "env[0].name=TICKETS_HOOK",
    "env[0].value=https://hooks.example.org/x",
    "envFrom[0].secretRef.name=alerts",
    "networkPolicy.extraEgress[0].ports[0].port=9093",
    "ledger.storageClassName=fast",
)
CHARTS = {
    "as it comes": (),
    "with everything": EVERYTHING,
    "as a job": (SCHEDULE,),
    "with a volume": ("ledger.existingClaim=x",),
}


@pytest.fixture(scope="module")
def kit() -> Tools:
    return tools()


def kustomized(kit: Tools, overlay: str) -> str:
    return run((kit.kubectl, "kustomize", KUBERNETES / "overlays" / overlay))


def templated(kit: Tools, *values: str, release: str = "reaperd", fails: bool = False) -> str:
    given = [word for value in values for word in ("--set", value)]
    return run((kit.helm, "template", release, CHART, "--namespace", "reaperd", *given), fails=fails)


def validate(kit: Tools, text: str, folder: Path) -> str:
    """Validate strictly, and return what is said of resources that Kubernetes itself does not have."""
    path = folder / "rendered.yaml"
    path.write_text(text, encoding="utf-8")
    return run((kit.python, "-m", "kubernetes_validate", "--strict", "--quiet", path))


def resources(text: str) -> dict[str, dict[str, Any]]:
    """Return what was rendered, by kind; no kind comes twice but the claims, of which the ledger's counts."""
    found = [document for document in yaml.safe_load_all(text) if document]
    return {each["kind"]: each for each in found if not each["metadata"]["name"].startswith("fleet-")}


# ------------------------------------------------------------------ they render, and Kubernetes knows every word


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubernetes_knows_every_word_of_an_overlay(kit: Tools, overlay: str, tmp_path: Path):
    validate(kit, kustomized(kit, overlay), tmp_path)


@pytest.mark.parametrize("name", CHARTS)
def test_kubernetes_knows_every_word_of_the_chart(kit: Tools, name: str, tmp_path: Path):
    validate(kit, templated(kit, *CHARTS[name]), tmp_path)


def test_a_misspelt_word_would_be_found(kit: Tools, tmp_path: Path):
    wrong = kustomized(kit, "rehearsal").replace("readOnlyRootFilesystem", "readOnlyRootFileSystem")

    with pytest.raises(AssertionError, match="readOnlyRootFileSystem"):
        validate(kit, wrong, tmp_path)


def test_the_models_of_the_operator_take_what_is_for_it(kit: Tools, tmp_path: Path):
    rendered = {"overlay": kustomized(kit, "irsa"), "chart": templated(kit, *EVERYTHING)}
    for name, text in rendered.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "wrong").write_text(rendered["overlay"].replace("interval: 30s", "interval: thirty"), encoding="utf-8")
    files = [tmp_path / name for name in ("overlay", "chart", "wrong")]

    overlay, chart, wrong = run((kit.python, Path(__file__).with_name("operator_models.py"), *files)).splitlines()

    assert set(overlay.split()) == set(chart.split()) == {"PodMonitor", "PrometheusRule"}
    assert wrong.startswith("wrong: ")
    assert "interval" in wrong


def test_helm_finds_nothing_to_say(kit: Tools):
    assert "0 chart(s) failed" in run((kit.helm, "lint", "--strict", CHART))


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("replicaCount=2", "replicaCount"),
        ("replicas=1", "additional properties 'replicas' not allowed"),
        ("registry.path=/x", "additional properties 'path' not allowed"),
        ("registry.existingClaim=", "existingClaim"),
        ("schedule=hourly", "schedule"),
        ("registry.mountPath=/elsewhere", "registry.path must lie in /elsewhere"),
        ("config=deployment", "config is no TOML"),
        ('config=http.listen="127.0.0.1:9745"', "the probes come from outside of the pod"),
        ('config=http.listen="0.0.0.0:9745"\nstate_dir="/tmp"', "state_dir must be"),
    ],
)
def test_the_chart_refuses(kit: Tools, value: str, said: str):
    assert said in templated(kit, value, fails=True)


# ------------------------------------------------------------------ what comes out


def test_the_chart_and_the_base_come_to_the_same_pod(kit: Tools):
    ours, theirs = (resources(text) for text in (kustomized(kit, "rehearsal"), templated(kit)))
    name = ours["ConfigMap"]["metadata"]["name"]

    assert json.loads(json.dumps(pod(ours["Deployment"])).replace(name, "reaperd")) == pod(theirs["Deployment"])
    assert theirs["Deployment"]["spec"]["strategy"] == ours["Deployment"]["spec"]["strategy"]
    assert theirs["PersistentVolumeClaim"]["spec"] == ours["PersistentVolumeClaim"]["spec"]


def test_the_chart_and_the_overlay_come_to_the_same_job(kit: Tools):
    ours, theirs = (resources(text) for text in (kustomized(kit, "once"), templated(kit, SCHEDULE)))
    name = ours["ConfigMap"]["metadata"]["name"]

    assert "Deployment" not in {**ours, **theirs}
    assert json.loads(json.dumps(pod(ours["CronJob"])).replace(name, "reaperd")) == pod(theirs["CronJob"])
    assert theirs["CronJob"]["spec"]["schedule"] == ours["CronJob"]["spec"]["schedule"]


def test_every_change_of_the_configuration_is_a_change_of_the_pod(kit: Tools):
    overlays = [
        resources(kustomized(kit, overlay))["ConfigMap"]["metadata"]["name"] for overlay in ("rehearsal", "enforce")
    ]
    charts = [
        resources(templated(kit, *given))["Deployment"]["spec"]["template"]["metadata"]["annotations"]
        for given in (
            (),
            (f'config={ENFORCING.strip()}\nhttp.listen="0.0.0.0:9745"\nregistry.path="/var/lib/fleet/r"',),
        )
    ]

    assert overlays[0] != overlays[1]
    assert charts[0] != charts[1]


def test_the_overlay_of_the_documentation_renders_and_is_yours(kit: Tools, tmp_path: Path):
    (tmp_path / "kustomization.yaml").write_text(files(read("docs/install.md"))["kustomization.yaml"], encoding="utf-8")
    own = (KUBERNETES / "base" / "reaperd.toml").read_text(encoding="utf-8").replace("prod-eu", "prod-us")
    (tmp_path / "reaperd.toml").write_text(own, encoding="utf-8")
    (tmp_path / "reaperd").symlink_to(ROOT)

    rendered = run((kit.kubectl, "kustomize", tmp_path))

    validate(kit, rendered, tmp_path)
    found = resources(rendered)
    assert container(found["Deployment"])["image"] == "images.example.org/platform/reaperd:0.1.0"
    assert found["ConfigMap"]["data"] == {"reaperd.toml": own}
    assert "222222222222" in json.dumps(found["ServiceAccount"])
    assert "PodMonitor" in found


def test_credentials_come_with_the_service_account_or_from_the_agent_of_the_node(kit: Tools):
    by_role, by_agent = (resources(kustomized(kit, overlay)) for overlay in ("irsa", "pod-identity"))
    key = "eks.amazonaws.com/role-arn"

    assert by_role["ServiceAccount"]["metadata"]["annotations"][key].startswith("arn:aws:iam::")
    assert "annotations" not in by_agent["ServiceAccount"]["metadata"]
    assert "169.254.170.23/32" in json.dumps(by_agent["NetworkPolicy"])
    assert "169.254.170.23/32" not in json.dumps(by_role["NetworkPolicy"])


def test_the_rules_in_the_chart_are_those_that_the_command_prints(kit: Tools):
    printed = yaml.safe_load(rulebook(Form.PROMETHEUS_RULE))

    assert resources(templated(kit, *EVERYTHING))["PrometheusRule"]["spec"] == printed["spec"]
    assert resources(kustomized(kit, "irsa"))["PrometheusRule"]["spec"] == printed["spec"]


# ------------------------------------------------------------------ what comes out runs


@pytest.fixture
def site(tmp_path: Path, crew: Crew) -> Any:
    """Give a host whose deployment is the one of the manifests."""
    with FaultyEc2(account="111111111111", shutdown_s=0) as cloud:
        made = Site(folder=tmp_path, cloud=cloud, crew=crew, deployment="prod-eu")
        made.set_up()
        yield made


def variables(site: Site, rendered: dict[str, dict[str, Any]], workload: dict[str, Any]) -> dict[str, str]:
    """Lay out what the pod mounts, in a folder of the test, and return the environment that says where that is."""
    (site.folder / "etc").mkdir()
    for name, text in rendered["ConfigMap"]["data"].items():
        (site.folder / "etc" / name).write_text(text, encoding="utf-8")
    assert set(mounts(workload)) == {"config", "ledger", "registry", "tmp"}
    moved = {"state_dir": str(site.state), "registry.path": str(site.registry)}
    given = {each["name"]: each["value"] for each in container(workload).get("env", ())}
    return {**site.environment(moved), **given, "REAPERD_CONFIG": str(site.folder / "etc" / "reaperd.toml")}


@pytest.mark.parametrize("made_by", ["kustomize", "helm"])
def test_the_daemon_of_the_manifests_reaps_and_answers_its_probes(kit: Tools, made_by: str, site: Site):
    if made_by == "kustomize":
        rendered = resources(kustomized(kit, "enforce"))
    else:
        config = site.folder / "values.toml"
        config.write_text((KUBERNETES / "overlays/enforce/reaperd.toml").read_text(encoding="utf-8"), encoding="utf-8")
        rendered = resources(run((kit.helm, "template", "reaperd", CHART, "--set-file", f"config={config}")))
    workload = rendered["Deployment"]
    tracked, orphan = site.tracked(), site.orphan()
    # What a test changes: less time, and a port that nobody else has.
    quicker = {"REAPERD_RECONCILE__INTERVAL": "1s", "REAPERD_HTTP__LISTEN": "127.0.0.1:0"}

    env = {**variables(site, rendered, workload), **quicker}
    assert site.crew is not None
    daemon = Daemon(site.crew.warm(*container(workload)["args"], env=env, cwd=site.folder))
    daemon.until(lambda: site.accepted())
    probes = {key: value["httpGet"]["path"] for key, value in container(workload).items() if key.endswith("Probe")}
    answers = {key: urllib.request.urlopen(f"{daemon.url}{path}", timeout=10).status for key, path in probes.items()}
    result, seconds = daemon.stop(signal.SIGTERM)

    assert site.accepted() == [orphan]
    assert site.cloud.state_of(tracked) == "running"
    assert answers == {"startupProbe": 200, "livenessProbe": 200, "readinessProbe": 200}
    assert result.code == 0
    assert seconds < pod(workload)["terminationGracePeriodSeconds"]


def test_a_job_confirms_from_run_to_run_and_never_without_the_ledger_of_the_run_before(kit: Tools, site: Site):
    rendered = resources(kustomized(kit, "once"))
    workload = rendered["CronJob"]
    rendered["ConfigMap"]["data"]["reaperd.toml"] = ENFORCING + rendered["ConfigMap"]["data"]["reaperd.toml"]
    site.orphan()
    env = variables(site, rendered, workload)
    assert site.crew is not None

    forgetful = []
    for run_number in range(4):
        elsewhere = {**env, "REAPERD_STATE_DIR": str(site.folder / f"lost-{run_number}")}
        forgetful.append(site.crew.warm(*container(workload)["args"], env=elsewhere, cwd=site.folder).wait().code)
    reaped_without = site.accepted()
    for _ in range(3):
        site.crew.warm(*container(workload)["args"], env=env, cwd=site.folder).wait()
        site.later(minutes=5)

    assert forgetful == [0, 0, 0, 0]
    assert reaped_without == []
    assert len(site.accepted()) == 1
