"""What is printed of settings."""

from reaperd.config import Settings
from tests.unit.config.writing import AWS, file, loaded

_SECRETS = file(
    provider=f'{AWS}\nrole_arn = "arn:aws:iam::123456789012:role/r"\nexternal_id = "hush1"\nendpoint_url = "http://u:hush2@a:1"',
    more="""
[[providers]]
name = "other"
type = "othercloud"
token = "hush3"
options = { password = "hush4" }
token_file = "/etc/token"
regions = ["r1"]
spot = true
[[alerts.channels]]
type = "webhook"
url = "https://hooks.example.org:8443/services/hush5"
[[alerts.channels]]
type = "apprise"
url = "slack://hush6/hush7"
""",
)


def test_no_secret_is_printed():
    settings = loaded(_SECRETS)

    for shown in (
        str(settings),
        repr(settings),
        str(settings.masked()),
        repr(settings.providers),
        repr(settings.alerts),
    ):
        assert "hush" not in shown


def test_what_helps_to_recognise_a_value_is_printed():
    masked = loaded(_SECRETS).masked()

    assert masked["providers"] == [
        {
            "name": "aws",
            "type": "aws",
            "regions": ["us-east-1"],
            "role_arn": "arn:aws:iam::123456789012:role/r",
            "external_id": "********",
            "endpoint_url": "http://a:1/********",
        },
        {
            "name": "other",
            "type": "othercloud",
            "token": "********",
            "options": "********",
            "token_file": "/etc/token",
            "regions": ["r1"],
            "spot": True,
        },
    ]
    assert masked["alerts"] == {
        "digest_above": 20,
        "escalate_after": "3d",
        "channels": [
            {"type": "webhook", "url": "https://hooks.example.org:8443/********", "min_severity": "warning"},
            {"type": "apprise", "url": "********", "min_severity": "warning"},
        ],
    }


def test_a_local_endpoint_is_printed_whole():
    settings = loaded(file(provider=f'{AWS}\nendpoint_url = "http://127.0.0.1:5000"'))

    assert "http://127.0.0.1:5000'" in repr(settings)


def test_masked_settings_without_secrets_are_valid_settings():
    settings = loaded(file(more='[reconcile]\nlaunch_grace = "90s"'))

    assert Settings.model_validate(settings.masked()) == settings
