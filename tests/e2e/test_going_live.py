"""docs/going-live.md, typed from its first line to its last on a machine with systemd, against moto."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.docs.going_live import PAGE, File, Typed, steps
from tests.docs.markdown import read
from tests.e2e.installed import lines_of
from tests.e2e.machine import Machine
from tests.e2e.test_systemd import CREDENTIALS, UNITS, free_port
from tests.support.processes import until

pytestmark = pytest.mark.timeout(600)

HOME, NEW_PLACE = "eu-west-1", "us-east-1"
REGISTRY = "/var/lib/fleet/registry.db"
KEY = "AKIAOFTHEFILEFAKE000"
LOOKING = ("reaperd status", "reaperd history", "reaperd plan", "reaperd explain", "reaperd alerts")
"""What may be typed again until the daemon has got so far."""


@dataclass(slots=True)
class Reader:
    """Somebody who does what the page says, and keeps what was seen."""

    machine: Machine
    surroundings: list[str]
    known: dict[str, str]
    """What stands on the page for something of the reader's own."""
    exported: str = ""
    told: str = ""
    done: list[str] = field(default_factory=list)

    def does(self, step: File | Typed) -> None:
        if isinstance(step, File):
            self.machine.write(step.path, step.text)
            self.machine.run("systemd-tmpfiles", "--create", "reaperd.conf")
        elif step.command.startswith("export "):
            self.exported = f"{step.command}; "
        else:
            until(lambda: self.sees(step), 120)
            self.done.append(step.command)

    def sees(self, step: Typed) -> bool:
        """Type it, and return whether it shows what is looked for. What changes something has to at once."""
        self.told = self._types(step.command)
        missing = [words for words in step.looked_for if " ".join(words.split()) not in " ".join(self.told.split())]
        assert not missing or step.command.startswith(LOOKING), f"{step.command}: no {missing} in:\n{self.told}"
        if step.command.startswith("reaperd status") and (found := re.search(r"sha256:[0-9a-f]{64}", self.told)):
            self.known["DIGEST"] = found[0]
        return not missing

    def _types(self, command: str) -> str:
        line = command
        for word, meant in self.known.items():
            line = line.replace(word, meant)
        # Nobody sits there to be asked.
        line += " --yes" if line.startswith("reaperd approve") else ""
        done = self.machine.run("env", *self.surroundings, "sh", "-c", self.exported + line, check=False)
        said = done.stdout + done.stderr
        # It would terminate something, it found something, or it says why it does not act.
        assert done.returncode in ({0, 3, 5} if command.startswith((*LOOKING, "reaperd audit")) else {0}), said
        return said


@pytest.fixture
def reader(machine: Machine, moto: Any) -> Iterator[Reader]:
    """Give the reader a fleet of six workers and four machines that nobody tracks, and a daemon that is in a hurry."""
    variables = {
        "AWS_ENDPOINT_URL": moto.url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "REAPERD_HTTP__LISTEN": f"127.0.0.1:{free_port()}",
    }
    hurry = {"REAPERD_RECONCILE__INTERVAL": "1s"}
    for unit in ("reaperd.service", "reaperd-doctor.service"):
        lines = "".join(f"Environment={name}={value}\n" for name, value in {**variables, **hurry}.items())
        machine.write(f"/etc/systemd/system/{unit}.d/test.conf", f"[Service]\n{lines}")
    machine.systemctl("daemon-reload")
    machine.write(CREDENTIALS, f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = secret\n", 0o600)
    for line in lines_of("registry"):
        machine.types(line, "/")
    for number in range(6):
        instance_id = moto.add_instance(region=HOME, owner="prod-eu", worker=f"w-{number}")
        row = f"w-{number} --provider aws --region {HOME} --instance-id {instance_id} --state running --path {REGISTRY}"
        machine.run("runuser", "-u", "fleet", "--", "reaperd", "registry", "add", *shlex.split(row))
    lost = [moto.add_instance(region=HOME, owner="prod-eu", worker=f"w-lost-{number}") for number in range(4)]
    surroundings = [f"{name}={value}" for name, value in {**variables, "COLUMNS": "200"}.items()]
    yield Reader(machine, surroundings, {"INSTANCE_ID": lost[0], "NEEDED": lost[3]})
    machine.systemctl("stop", *UNITS)
    left = ("/var/lib/reaperd", "/var/lib/private/reaperd", "/var/lib/fleet", CREDENTIALS, "/etc/reaperd/wider.toml")
    machine.run("rm", "-rf", *left)


def running(moto: Any, region: str) -> set[str]:
    pages = moto.client("ec2", region).describe_instances()["Reservations"]
    machines = [each for page in pages for each in page["Instances"]]
    return {each["InstanceId"] for each in machines if each["State"]["Name"] == "running"}


def test_whoever_follows_the_page_goes_live_and_nothing_goes_that_was_not_meant_to(reader: Reader, moto: Any):
    before = running(moto, HOME)
    needed = reader.known["NEEDED"]

    for step in steps(read(PAGE)):
        if isinstance(step, File) and "wider" in step.path:
            # The fleet grows into a new place, and loses a machine there.
            moto.add_instance(region=NEW_PLACE, owner="prod-eu", worker="w-far")
        reader.does(step)
        if "systemctl reload reaperd" not in reader.done:
            assert running(moto, HOME) == before
            assert moto.terminate_requests() == []
        if reader.done.count("systemctl reload reaperd") < 2 and "wider" in " ".join(reader.done):
            assert len(running(moto, NEW_PLACE)) == 1

    after = running(moto, HOME)
    assert (len(before), len(after), needed in after) == (10, 7, True)
    assert running(moto, NEW_PLACE) == set()
