"""Every channel that ships keeps the promises."""

import pytest

from alerts import harness as abilities
from alerts.conformance import ChannelConformance, LevelConformance
from tests.contract.alerts.harnesses import (
    AlertmanagerHarness,
    AppriseHarness,
    FakeHarness,
    FakeLevelHarness,
    LogHarness,
    WebhookHarness,
)

CONTROLS = ("\x00", "\x1b", "\u202e", "\u200b")


class TestWebhook(ChannelConformance):
    @pytest.fixture
    def harness(self):
        made = WebhookHarness()
        yield made
        made.receiver.close()


class TestAlertmanager(LevelConformance):
    @pytest.fixture
    def harness(self):
        made = AlertmanagerHarness()
        yield made
        made.receiver.close()


class TestLog(ChannelConformance):
    lacks = (abilities.Answers, abilities.Vanishes, abilities.Hangs, abilities.Secret)
    acted_on = CONTROLS  # A log is no chat.

    @pytest.fixture
    def harness(self):
        return LogHarness()


class TestApprise(ChannelConformance):
    lacks = (abilities.Answers, abilities.Hangs)

    @pytest.fixture
    def harness(self):
        return AppriseHarness()


class TestFake(ChannelConformance):
    lacks = (abilities.Hangs, abilities.Secret)

    @pytest.fixture
    def harness(self):
        return FakeHarness()


class TestFakeLevel(LevelConformance):
    lacks = (abilities.Answers, abilities.Hangs, abilities.Secret)

    @pytest.fixture
    def harness(self):
        return FakeLevelHarness()
