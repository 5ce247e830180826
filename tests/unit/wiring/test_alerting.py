"""Channels out of settings: what can never work is bad configuration, and what is secret is read for each use."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from alerts.errors import DeliveryError
from alerts.model import Severity
from providers.model import Scope
from reaperd.clock import SystemClock
from reaperd.config import Settings
from reaperd.delivery.line import AnyLine, LevelLine, Line
from reaperd.errors import ConfigError
from reaperd.report.logs import build_logger
from reaperd.wiring.alerting import build_lines, build_ping, build_watch, unreadable
from tests.support.receiver import Receiver
from tests.unit.config.writing import file, loaded

CLOCK = SystemClock()


def settings(*channels: str, more: str = "") -> Settings:
    return loaded(file(more=more + "".join(f"[[alerts.channels]]\n{channel}\n" for channel in channels)))


def lines(*channels: str) -> tuple[AnyLine, ...]:
    return build_lines(settings(*channels), CLOCK, build_logger(as_json=True, now=CLOCK.now, stream=io.StringIO()))


def test_each_type_is_the_kind_of_channel_that_it_is():
    made = lines('type = "log"', 'type = "webhook"\nurl = "http://a"', 'type = "alertmanager"\nurl = "http://a"')

    assert [type(line) for line in made] == [Line, Line, LevelLine]
    assert [line.make().name for line in made] == ["log", "webhook", "alertmanager"]


def test_who_keeps_track_himself_gets_no_messages_and_severities_are_kept():
    watch = build_watch(
        settings('type = "log"\nmin_severity = "info"', 'type = "alertmanager"\nname = "am"\nurl = "http://a"')
    )

    assert [(one.name, one.min_severity) for one in watch.policy.audiences] == [("log", Severity.INFO)]
    assert [one.name for one in watch.levels] == ["am"]
    assert watch.providers == {"aws"}
    assert watch.scopes == {Scope("aws", "us-east-1")}


def test_a_channel_whose_library_is_missing_is_bad_configuration_with_the_command_that_helps(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("reaperd.wiring.alerting.find_spec", lambda _: None)

    with pytest.raises(ConfigError, match=r"alerts\.channels\.0: Apprise is not installed: pip install 'reaperd\[n"):
        lines('type = "apprise"\nurl = "mailto://a"')


def test_an_address_that_is_none_is_bad_configuration_and_is_not_repeated():
    with pytest.raises(ConfigError) as caught:
        lines('type = "webhook"\nurl = "http://host/s3cret\u200b"')

    assert "alerts.channels.0.url" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_what_stands_in_files_is_read_for_each_use(tmp_path: Path):
    url, secret = tmp_path / "url", tmp_path / "secret"
    (line,) = lines(f'type = "webhook"\nurl_file = "{url}"\nsecret_file = "{secret}"')
    with pytest.raises(DeliveryError, match="cannot be read"):
        line.make()
    with Receiver() as first, Receiver() as second:
        secret.write_text("one\n")
        for receiver in (first, second):
            url.write_text(f"{receiver.url}/hook\n")
            _send(line)

        assert (len(first.requests), len(second.requests)) == (1, 1)


def test_a_variable_holds_what_is_secret_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (line,) = lines('type = "webhook"\nurl_env = "HOOK"\nsecret_env = "SECRET"')
    with Receiver() as receiver:
        monkeypatch.setenv("HOOK", f"{receiver.url}/hook")
        monkeypatch.setenv("SECRET", "one")
        _send(line)

        assert receiver.requests[0].headers["x-reaperd-signature"]


def test_every_file_and_variable_that_cannot_be_used_is_named(tmp_path: Path):
    (tmp_path / "no-url").write_text("nonsense")
    found = unreadable(
        settings(
            f'type = "webhook"\nurl_file = "{tmp_path}/missing"\nsecret_file = "{tmp_path}/gone"',
            f'type = "alertmanager"\nurl_file = "{tmp_path}/no-url"',
            'type = "webhook"\nname = "env"\nurl_env = "NOT_SET"',
            'type = "log"',
            more=f'[alerts]\nping_url_file = "{tmp_path}/ping"\n',
        )
    )

    assert [text.partition(":")[0] for text in found] == [
        "alerts.ping_url_file",
        "alerts.channels.0.url_file",
        "alerts.channels.0.secret_file",
        "alerts.channels.1.url_file",
        "alerts.channels.2.url_env",
    ]


def test_without_a_file_nobody_is_called():
    assert build_ping(settings(), CLOCK) is None


def _send(line: AnyLine) -> None:
    from alerts.conformance import firing  # noqa: PLC0415 - it asks for its assertions to be rewritten

    assert isinstance(line, Line)
    line.make().send((firing(),))
