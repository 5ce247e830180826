"""What docs/alerting.md shows is so."""

import json
import time
import tomllib

from alerts.conformance import firing
from alerts.looks import DELAYED
from alerts.model import Cause, Kind
from alerts.webhook import event, signature
from reaperd.config import ChannelTable
from tests.docs.markdown import anchors, blocks, read

PAGE = read("docs/alerting.md")


def test_the_receiver_accepts_what_is_signed_and_nothing_else():
    (example,) = blocks(PAGE, "python")
    defined = {}
    exec(example.text, defined)
    accepts = defined["is_from_reaperd"]
    now = int(time.time())
    header = signature(b"secret", b"{}", now)

    assert accepts(b"secret", b"{}", header)
    assert not accepts(b"secret", b"{ }", header)
    assert not accepts(b"other", b"{}", header)
    assert not accepts(b"secret", b"{}", signature(b"secret", b"{}", now - 400))
    assert not any(accepts(b"secret", b"{}", wrong) for wrong in ("", "t=x,v1=0", f"t={now}", "v1=0"))


def test_the_event_that_is_shown_has_the_fields_of_a_real_one():
    (example,) = blocks(PAGE, "json")
    shown, real = json.loads(example.text), event(firing(), "prod-eu")

    assert set(shown) == set(real)
    assert set(shown["data"]) == set(real["data"])
    assert shown["data"]["summary"] == real["data"]["summary"]


def test_every_example_of_the_configuration_is_a_channel():
    tables = [tomllib.loads(block.text)["alerts"]["channels"][0] for block in blocks(PAGE, "toml")]

    assert [str(ChannelTable.model_validate(table).type) for table in tables] == [
        "log",
        "alertmanager",
        "webhook",
        "apprise",
    ]


def test_every_kind_of_message_and_every_delayed_cause_is_named():
    assert [kind for kind in Kind if f"| {kind} |" not in PAGE] == []
    assert [cause for cause in DELAYED if f"`{cause}`" not in PAGE] == []


def test_every_cause_has_its_place_in_the_runbook():
    known = anchors(read("docs/runbook.md")) | {
        cause for cause in Cause if f'<a id="{cause}"></a>' in read("docs/runbook.md")
    }

    assert [cause for cause in Cause if cause not in known] == []
