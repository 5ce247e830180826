"""Apprise: what counts as delivered, and what is said when it is not there."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from alerts.apprise import AppriseChannel, apprise_channel
from alerts.conformance import HOSTILE, digest, firing
from alerts.errors import ChannelSetupError, DeliveryError
from alerts.model import Kind, Severity
from tests.support.receiver import Receiver

# Apprise's own import of it, up to Python 3.12.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
INSTALLED = importlib.util.find_spec("apprise") is not None
real = pytest.mark.skipif(not INSTALLED, reason="needs the extra reaperd[notify]")


class Answer:
    """A result of Apprise: true or false, with a status."""

    def __init__(self, status):
        self.status = SimpleNamespace(name=status.upper())

    def __bool__(self):
        return self.status.name == "SUCCESS"


class Notifier:
    def __init__(self, *answers):
        self.answers = list(answers)
        self.types = []

    def add(self, servers):
        return True

    def notify(self, body, title="", *, notify_type, body_format, interpret_escapes, timeout):
        self.types.append(notify_type)
        return self.answers.pop(0) if self.answers else True


@pytest.mark.parametrize("status", ["failure", "partial", "timeout", "nomatch"])
def test_whatever_is_not_success_is_a_failure(status):
    channel = AppriseChannel(Notifier(Answer("success"), Answer(status)), deployment="prod-eu")

    with pytest.raises(DeliveryError) as caught:
        channel.send([firing(1), firing(2), firing(3)])

    assert str(caught.value) == f"apprise: Apprise says {status}: the service did not take it"
    assert (caught.value.permanent, caught.value.delivered) == (False, ("id-1",))


def test_an_older_apprise_that_says_no_is_a_failure():
    with pytest.raises(DeliveryError, match="Apprise says failure"):
        AppriseChannel(Notifier(False), deployment="prod-eu").send([firing()])


def test_the_type_follows_the_severity_and_the_kind():
    notifier = Notifier()
    critical = replace(firing(), condition=replace(firing().condition, severity=Severity.CRITICAL))
    resolved = replace(firing(), kind=Kind.RESOLVED)

    AppriseChannel(notifier, deployment="d").send(
        [firing(), critical, resolved, digest(3), replace(digest(3), of=Kind.RESOLVED)]
    )

    assert notifier.types == ["warning", "failure", "success", "failure", "success"]


def test_without_the_library_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['apprise'] = None\n"
        "from alerts.apprise import apprise_channel\n"
        "from alerts.errors import ChannelSetupError\n"
        "try:\n    apprise_channel('json://localhost/token', deployment='d')\n"
        "except ChannelSetupError as error:\n    print(error)\n"
    )

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert told == "channel apprise: Apprise is not installed: pip install 'reaperd[notify]'\n"


@real
def test_a_url_that_apprise_does_not_know_is_refused_without_repeating_it():
    with pytest.raises(ChannelSetupError) as caught:
        apprise_channel("nosuch://token@host", deployment="d")

    assert "nosuch" in str(caught.value)
    assert "token" not in str(caught.value)


@real
def test_the_real_apprise_delivers_hostile_text_as_text():
    with Receiver() as receiver:
        channel = apprise_channel(receiver.url.replace("http", "json", 1) + "/hook", deployment="prod-eu")

        channel.send([firing(n, name=name) for n, name in enumerate(HOSTILE)])

        assert len(receiver.requests) == len(HOSTILE)
        assert not any(b"<script" in request.body for request in receiver.requests)


@real
def test_the_real_apprise_tells_a_failure():
    with Receiver() as receiver:
        receiver.answer(500)
        channel = apprise_channel(receiver.url.replace("http", "json", 1) + "/T0K3N", deployment="prod-eu")

        with pytest.raises(DeliveryError) as caught:
            channel.send([firing()])

        assert "T0K3N" not in str(caught.value)


@real
def test_the_real_apprise_gives_up_in_time():
    with Receiver() as receiver:
        receiver.hang()
        url = receiver.url.replace("http", "json", 1)
        channel = apprise_channel(url, deployment="prod-eu", timeout=timedelta(seconds=0.3))

        with pytest.raises(DeliveryError, match="Apprise says timeout"):
            channel.send([firing()])
