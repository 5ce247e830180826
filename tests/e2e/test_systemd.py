"""The units that ship, under a systemd that was booted for them, with the wheel installed as the page says."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from registry.sqlite.admin import create
from tests.docs.markdown import read
from tests.e2e.installed import ARRIVES, lines_of
from tests.e2e.machine import Machine
from tests.e2e.needs import programs
from tests.support.ec2 import FaultyEc2
from tests.support.processes import ROOT, until

pytestmark = pytest.mark.timeout(300)

EAST, WEST = "us-east-1", "eu-west-1"
ACCOUNT, KEY = "222222222222", "AKIAOFTHEFILEFAKE000"
"""Only the credentials of the file are of this account."""
FLEET = 5000
"""Who writes the registry: another user than the service's."""
REGISTRY = "/var/lib/fleet/registry.db"
CONFIG = "/etc/reaperd/reaperd.toml"
CREDENTIALS = "/etc/reaperd/aws-credentials"
UNITS = (
    "reaperd.service",
    "reaperd-once.service",
    "reaperd-once.timer",
    "reaperd-audit.service",
    "reaperd-audit.timer",
    "reaperd-doctor.service",
)
ELSEWHERE = "[Service]\nEnvironment=AWS_EC2_METADATA_SERVICE_ENDPOINT={url}\n"

SETTINGS = """\
deployment = "prod"
mode = "enforce"
[registry]
path = "{registry}"
[reconcile]
interval = "1s"
confirm_passes = 1
[audit]
max_age = "1h"
[http]
listen = "127.0.0.1:0"
[[providers]]
name = "aws"
type = "aws"
account = "{account}"
regions = ["{region}"]
endpoint_url = "{url}"
"""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine with a configuration, a registry and a cloud."""

    machine: Machine
    cloud: Any
    since: str
    """When the test began, for the journal."""

    def configure(self, **more: str) -> None:
        values = {"registry": REGISTRY, "account": ACCOUNT, "region": EAST, "url": self.cloud.url, **more}
        self.machine.write(CONFIG, SETTINGS.format_map(values))
        self.machine.run("systemd-tmpfiles", "--create", "reaperd.conf")

    def as_fleet(self, *command: str) -> None:
        """Run a command as the control plane."""
        who = (f"--reuid={FLEET}", f"--regid={self.group}", "--clear-groups")
        self.machine.run("setpriv", *who, *command)

    @property
    def group(self) -> str:
        return self.machine.run("getent", "group", "reaperd-readers").stdout.split(":")[2]

    def drop_in(self, unit: str, text: str) -> None:
        self.machine.write(f"/etc/systemd/system/{unit}.d/test.conf", text)
        self.machine.systemctl("daemon-reload")

    def elsewhere(self, **more: str) -> list[str]:
        """Let all services have these variables, too, and return them."""
        given = [f"{name}={value}" for name, value in more.items()]
        lines = "".join(f"Environment={each}\n" for each in given)
        for unit in UNITS:
            if unit.endswith(".service"):
                self.drop_in(unit, ELSEWHERE.format(url=self.cloud.url) + lines)
        return given

    def orphan(self, region: str = EAST, worker: str = "w-orphan") -> str:
        return self.stranger(region=region, owner="prod", worker=worker)

    def stranger(self, region: str = EAST, **fields: Any) -> str:
        """Start a machine that is not ours."""
        made: str = self.cloud.add_instance(region=region, account=ACCOUNT, **fields)
        return made

    def reaps(self) -> None:
        """Wait until one more orphan is gone."""
        gone = self.orphan()
        until(lambda: gone in self.cloud.terminated_ids(), 30)

    def journal(self, unit: str = "reaperd") -> list[dict[str, Any]]:
        """Return the events of a unit in this test."""
        said = self.machine.run("journalctl", "--output=cat", f"--unit={unit}", f"--since={self.since}").stdout
        return [json.loads(line) for line in said.splitlines() if line.startswith("{")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.journal() if event["event"] == name]

    def get(self, path: str) -> str:
        until(lambda: self.events("http_listening"))
        port = self.events("http_listening")[-1]["port"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            text: str = answer.read().decode()
            return text

    def main_pid(self) -> int:
        return int(self.machine.shows("reaperd", "MainPID"))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
def host(machine: Machine) -> Iterator[Host]:
    """Give a host on which nothing has run yet."""
    with FaultyEc2(shutdown_s=0) as cloud:
        cloud.add_access_key(KEY, ACCOUNT)
        machine.write(CREDENTIALS, f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = secret\n", 0o600)
        made = Host(machine, cloud, machine.run("date", "+%F %T.%6N").stdout.strip())
        made.elsewhere()
        made.configure()
        machine.run("install", "-d", "-m", "2750", "-o", str(FLEET), "-g", "reaperd-readers", "/var/lib/fleet")
        create(machine.files / REGISTRY.lstrip("/"), "prod")
        machine.run("chown", f"{FLEET}:reaperd-readers", REGISTRY)
        machine.run("chmod", "0640", REGISTRY)
        yield made
        machine.systemctl("disable", "--now", *UNITS)
        machine.systemctl("reset-failed")
        machine.run("rm", "-rf", "/var/lib/reaperd", "/var/lib/private/reaperd", "/var/lib/fleet", CREDENTIALS)


def test_the_page_gives_a_manual_page_and_completion(machine: Machine):
    programs("man", packages="man-db")
    for line in lines_of("comfort"):
        machine.types(line, ARRIVES)

    completed = (
        "source /etc/bash_completion.d/reaperd; COMP_WORDS=(reaperd pla) COMP_CWORD=1; _reaperd_completion reaperd"
    )
    assert machine.run("bash", "-c", f"{completed}; echo $COMPREPLY").stdout == "plan\n"
    found = machine.run("env", "PATH=/usr/local/bin:/usr/bin:/bin", "man", "--where", "reaperd").stdout
    # Where the link leads.
    assert found == "/opt/reaperd/share/man/man1/reaperd.1\n"


def test_another_build_of_the_same_version_takes_the_place_of_the_first(machine: Machine):
    (row,) = re.findall(r"^\| take a newer version.*$", read("docs/install.md"), re.MULTILINE)
    install, again, restart = re.findall(r"`([^`]+)`", row)[1:]
    (module,) = (machine.files / "opt/reaperd/lib").glob("python3.*/site-packages/reaperd/__init__.py")
    text = module.read_text(encoding="utf-8")
    module.write_text(text + "# an older build\n", encoding="utf-8")

    machine.types(install, ARRIVES)
    machine.types(f"{install} {again}", ARRIVES)

    assert module.read_text(encoding="utf-8") == text
    assert restart == "systemctl restart reaperd"


def test_whoever_types_the_page_has_a_daemon_that_rehearses(host: Host):
    host.machine.run("rm", "-rf", "/var/lib/fleet", CONFIG, CREDENTIALS)
    host.machine.write(
        f"{ARRIVES}/credentials", f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = secret\n"
    )
    elsewhere = host.elsewhere(AWS_ENDPOINT_URL=host.cloud.url, REAPERD_HTTP__LISTEN=f"127.0.0.1:{free_port()}")
    given = host.stranger(owner="prod-eu", worker="w-lost")
    (configure,) = (line for line in lines_of("installing") if CONFIG in line)
    *starting, status = lines_of("starting")

    for line in (configure, *lines_of("registry"), *lines_of("existing registry"), *lines_of("credentials"), *starting):
        host.machine.types(line, ARRIVES)
    until(lambda: host.events("pass_finished"), 60)

    said = host.machine.run("env", *elsewhere, "sh", "-c", status).stdout
    assert "prod-eu: REHEARSING" in said
    assert host.events("pass_finished")[0]["outcome"] == "complete"
    assert host.machine.run("stat", "--format=%U:%G %a", REGISTRY).stdout == "fleet:reaperd-readers 640\n"
    assert host.machine.shows("reaperd", "UnitFileState") == "enabled"
    assert host.cloud.state_of(given) == "running"


def test_systemd_finds_nothing_wrong_with_the_units_and_they_are_confined(machine: Machine):
    paths = [f"/etc/systemd/system/{unit}" for unit in UNITS]
    services = [path for path in paths if path.endswith(".service")]

    assert machine.run("systemd-analyze", "verify", "--man=no", *paths).stderr == ""
    assert machine.run("systemd-analyze", "security", "--offline=true", "--threshold=12", *services).returncode == 0


def test_systemd_takes_every_drop_in_of_the_page(host: Host):
    page = (ROOT / "systemd" / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)

    for each in shown:
        host.drop_in("reaperd.service", each)
        said = host.machine.run("systemd-analyze", "verify", "--man=no", "/etc/systemd/system/reaperd.service")

        assert said.stderr == "", each
    assert len(shown) > 3


def test_it_reaps_what_a_registry_that_it_cannot_write_does_not_know(host: Host):
    kept = host.orphan(worker="w-1")
    row = ("w-1", "--provider", "aws", "--region", EAST, "--instance-id", kept, "--state", "running")
    host.as_fleet("reaperd", "registry", "add", *row, "--path", REGISTRY)
    beside = host.machine.run("ls", "/var/lib/fleet").stdout.split()
    gone = host.orphan()

    host.machine.systemctl("start", "reaperd")
    until(lambda: host.cloud.terminated_ids(), 30)

    assert beside == ["registry.db"]
    assert host.cloud.terminated_ids() == [gone]
    assert host.cloud.state_of(kept) == "running"
    assert host.machine.run("ls", "/var/lib/fleet").stdout.split() == beside
    assert host.machine.run("stat", "--format=%a %U", "/var/lib/private/reaperd").stdout.split() == ["700", "reaperd"]
    # Of the cloud's metrics and the process's own: ProcSubset=pid would take the latter away.
    assert re.search(r"^process_resident_memory_bytes \d", host.get("/metrics"), re.MULTILINE)


def test_a_frozen_daemon_is_ended_by_the_watchdog_and_another_goes_on(host: Host):
    host.drop_in("reaperd.service", ELSEWHERE.format(url=host.cloud.url) + "WatchdogSec=2s\nRestartSec=100ms\n")
    host.machine.systemctl("start", "reaperd")
    host.reaps()
    frozen = host.main_pid()

    host.machine.run("kill", "-STOP", str(frozen))
    until(lambda: host.machine.shows("reaperd", "NRestarts") == "1", 30)

    host.reaps()
    assert host.main_pid() != frozen
    assert host.machine.shows("reaperd", "ActiveState") == "active"


def test_a_good_configuration_is_taken_over_and_a_bad_one_fails_the_reload_and_changes_nothing(host: Host):
    host.machine.systemctl("start", "reaperd")
    pid = host.main_pid()

    host.configure(region=WEST)
    good = host.machine.systemctl("reload", "reaperd", check=False)
    until(lambda: host.events("config_reloaded"))
    gone = host.orphan(WEST)
    until(lambda: gone in host.cloud.terminated_ids(), 30)
    host.configure(region="")
    bad = host.machine.systemctl("reload", "reaperd", check=False)
    until(lambda: host.events("config_rejected"))

    assert good == 0
    assert bad != 0
    assert "\nreaperd_config_last_reload_successful 0.0\n" in host.get("/metrics")
    assert host.main_pid() == pid


def test_a_start_with_a_bad_configuration_is_not_tried_again(host: Host):
    host.configure(region="")

    started = host.machine.systemctl("start", "reaperd", check=False)

    assert started != 0
    # Not `auto-restart`.
    assert host.machine.shows("reaperd", "SubState") == "failed"
    assert host.machine.shows("reaperd", "ExecMainStatus") == "78"
    assert host.machine.shows("reaperd", "NRestarts") == "0"


def test_a_stop_in_the_middle_of_a_pass_ends_with_0(host: Host):
    host.cloud.fault("hang", region=EAST, action="DescribeInstances")
    host.machine.systemctl("start", "reaperd")
    until(lambda: host.cloud.requests(action="DescribeInstances"), 30)
    asked_at = time.monotonic()

    host.machine.systemctl("stop", "reaperd")

    assert time.monotonic() - asked_at < 12
    assert host.machine.shows("reaperd", "ExecMainStatus") == "0"
    assert host.machine.shows("reaperd", "Result") == "success"


def test_a_pass_from_the_timer_reaps_and_a_leak_fails_the_audit(host: Host):
    gone = host.orphan()
    host.machine.systemctl("start", "reaperd")

    host.machine.systemctl("start", "reaperd-once.timer")
    stopped = host.machine.shows("reaperd", "ActiveState")
    due = host.machine.shows("reaperd-once.timer", "NextElapseUSecRealtime")
    host.machine.systemctl("start", "reaperd-once.service")
    host.stranger(age_s=90_000, name="somebody's")
    audited = host.machine.systemctl("start", "reaperd-audit.service", check=False)

    assert (stopped, due != "") == ("inactive", True)
    assert host.cloud.terminated_ids() == [gone]
    assert audited != 0
    assert host.machine.shows("reaperd-audit", "ExecMainStatus") == "3"


def test_without_a_file_of_credentials_it_runs_and_refuses(host: Host):
    host.machine.run("rm", CREDENTIALS)
    host.orphan()

    host.machine.systemctl("start", "reaperd")
    until(lambda: host.events("pass_finished"), 30)

    assert host.machine.shows("reaperd", "ActiveState") == "active"
    assert host.events("pass_finished")[0]["reason"] == "wrong_account"
    assert host.cloud.mutating_requests() == []


def test_the_doctor_finds_what_the_daemon_may_not_read_although_root_may(host: Host):
    fine = host.machine.systemctl("start", "reaperd-doctor", check=False)
    host.machine.run("chmod", "0600", REGISTRY)
    denied = host.machine.systemctl("start", "reaperd-doctor", check=False)

    said = host.machine.run("journalctl", "--output=cat", "--unit=reaperd-doctor", f"--since={host.since}").stdout
    assert (fine, denied) == (0, 1)
    assert "cannot open it for" in said, said


def test_root_pulls_the_brake_of_the_running_daemon_and_lets_go_of_it(host: Host):
    host.machine.systemctl("start", "reaperd")
    host.reaps()

    host.machine.run("reaperd", "hold", "--reason", "a test")
    kept = host.orphan()
    until(lambda: any(event.get("reason") == "reap_hold" for event in host.events("pass_finished")), 30)
    held = host.cloud.state_of(kept)
    host.machine.run("reaperd", "resume")

    until(lambda: kept in host.cloud.terminated_ids(), 30)
    assert held == "running"


def test_a_pass_that_root_runs_keeps_its_lease_although_the_daemon_cannot_see_its_process(host: Host):
    host.machine.systemctl("start", "reaperd")
    host.reaps()
    host.machine.systemctl("stop", "reaperd")
    host.cloud.clear_requests()
    host.cloud.fault("hang", region=EAST, action="DescribeInstances")
    # A /proc of its own, as the unit's: the one that nspawn gives has another id of the boot.
    options = ("--property=ProtectProc=invisible", f"--setenv=AWS_SHARED_CREDENTIALS_FILE={CREDENTIALS}")
    host.machine.run("systemd-run", "--unit=by-hand", *options, "/opt/reaperd/bin/reaperd", "once")
    until(lambda: host.cloud.requests(action="DescribeInstances"), 30)

    host.machine.systemctl("start", "reaperd")
    until(lambda: len(host.events("started")) == 2, 30)
    taken = [event["event"] for event in host.journal() if event["event"] in {"lease_taken", "standing_by"}]
    host.machine.systemctl("stop", "by-hand")

    assert taken == ["lease_taken", "standing_by"]
