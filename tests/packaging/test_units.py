"""The units of systemd/ hold what is relied on. That they work is for tests/e2e/test_systemd.py to show."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta

import click
import pytest

from reaperd.cli import main
from reaperd.config.tables import ReconcileTable
from reaperd.errors import ExitCode
from tests.packaging.conftest import ROOT

FOLDER = ROOT / "systemd"
SERVICES = sorted(path.name for path in FOLDER.glob("*.service"))
TIMERS = sorted(path.name for path in FOLDER.glob("*.timer"))
DAEMON = "reaperd.service"
_LENGTHS = {"s": 1, "min": 60}


def unit(name: str) -> list[tuple[str, str, str]]:
    """Return section, key and value of every line."""
    section, lines = "", []
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            lines.append((section, key, value))
    return lines


def values(name: str, key: str) -> list[str]:
    return [value for _, found, value in unit(name) if found == key]


def length(text: str) -> timedelta:
    found = re.fullmatch(r"(\d+)(s|min)", text)
    assert found is not None, text
    return timedelta(seconds=int(found[1]) * _LENGTHS[found[2]])


def test_there_is_what_the_page_installs():
    assert SERVICES == ["reaperd-audit.service", "reaperd-doctor.service", "reaperd-once.service", DAEMON]
    assert TIMERS == ["reaperd-audit.timer", "reaperd-once.timer"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_command_line_is_one_of_ours(name):
    lines = [shlex.split(value) for key in ("ExecStart", "ExecReload") for value in values(name, key)]
    ours = [words[1:] for words in lines if words[0] == "/opt/reaperd/bin/reaperd"]

    assert ours != []
    for command, *words in ours:
        found = main.get_command(click.Context(main), command)
        assert found is not None, command
        assert found.make_context(command, words).params["config"].as_posix() == "/etc/reaperd/reaperd.toml"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("Restart", "on-failure"),
        ("RestartPreventExitStatus", str(int(ExitCode.CONFIG))),
        ("ExecReload", "/bin/kill -HUP $MAINPID"),
    ],
)
def test_the_daemon_is_started_watched_reloaded_and_left_alone_as_it_expects(key, value):
    assert value in values(DAEMON, key)


def test_the_daemon_has_more_time_than_it_needs_and_says_itself_when_it_runs():
    (watchdog,), (stop,) = values(DAEMON, "WatchdogSec"), values(DAEMON, "TimeoutStopSec")

    assert values(DAEMON, "Type") == ["notify"]
    assert length(watchdog) >= timedelta(seconds=10)
    assert length(stop) >= timedelta(seconds=30)


@pytest.mark.parametrize("name", [name for name in SERVICES if name != DAEMON])
def test_what_runs_once_may_take_twice_the_deadline_of_a_pass(name):
    deadline = ReconcileTable().deadline
    (given,) = values(name, "TimeoutStartSec")

    assert values(name, "Type") == ["oneshot"]
    assert length(given) >= 2 * deadline


def test_a_pass_that_another_process_does_is_no_failure():
    assert values("reaperd-once.service", "SuccessExitStatus") == [str(int(ExitCode.NOT_LEADER))]


def test_the_timer_ticks_as_often_as_a_pass_is_expected():
    assert ReconcileTable().interval == timedelta(minutes=1)
    assert values("reaperd-once.timer", "OnCalendar") == ["minutely"]


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_the_same_user_with_the_same_limits(name):
    def confined(of: str) -> str:
        text = (FOLDER / of).read_text(encoding="utf-8")
        return text[text.index("# Who it is.") :].partition("\n[Install]")[0].strip()

    assert confined(name) == confined(DAEMON)


@pytest.mark.parametrize(
    "line",
    [
        "DynamicUser=yes",
        "User=reaperd",
        "StateDirectory=reaperd",
        "SupplementaryGroups=reaperd-readers",
        "LoadCredential=aws-credentials:/etc/reaperd/aws-credentials",
        "CapabilityBoundingSet=",
        "NoNewPrivileges=yes",
        # A dump of its memory would hold the credentials.
        "LimitCORE=0",
        "ProcSubset=all",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    ],
)
def test_the_limits_hold_what_is_relied_on(line):
    assert line in [f"{key}={value}" for _, key, value in unit(DAEMON)]


def test_the_group_of_the_units_is_the_one_that_is_made():
    (group,) = values(DAEMON, "SupplementaryGroups")

    assert re.search(rf"^g {group} ", (FOLDER / "sysusers.d" / "reaperd.conf").read_text(), re.MULTILINE)
    assert f" root {group} " in (FOLDER / "tmpfiles.d" / "reaperd.conf").read_text()


@pytest.mark.parametrize("name", [*SERVICES, *TIMERS])
def test_the_page_of_the_units_names_each(name):
    assert f"]({name})" in (FOLDER / "README.md").read_text(encoding="utf-8")
