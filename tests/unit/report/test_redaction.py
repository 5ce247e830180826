"""What is taken out of a text, and what has to stay in it."""

from __future__ import annotations

import secrets
import string

import pytest

from reaperd.report.redaction import REDACTED, names_a_secret, redacted, redacted_under

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
# Put together, so that whoever looks for keys in this file finds none.
KEY = "PRIVATE" + " KEY"
TOKEN = "IQoJb3JpZ2luX2VjEJr" + "aB3/xY9+" * 40 + "=="
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"the key {KEY_ID} is not known", f"the key {REDACTED} is not known"),
        (f"ASIA{KEY_ID[4:]}, expired", f"{REDACTED}, expired"),
        (f"signed with {SECRET_KEY}", f"signed with {REDACTED}"),
        (f"'{SECRET_KEY}'", f"'{REDACTED}'"),
        (f"and {TOKEN} too", f"and {REDACTED} too"),
        (JWT, REDACTED),
        ("Authorization: Basic dXNlcjpodW50ZXIy", f"Authorization: {REDACTED}"),
        (f"authorization={TOKEN}\nnext", f"authorization={REDACTED}\nnext"),
        (
            f"{{'Authorization': b'AWS4-HMAC-SHA256 Credential={KEY_ID}/x, Signature=ab', 'Host': 'h'}}",
            f"{{'Authorization': {REDACTED}, 'Host': 'h'}}",
        ),
        ('{"Proxy-Authorization": "Basic eHg6eXk=", "A": 1}', f'{{"Proxy-Authorization": {REDACTED}, "A": 1}}'),
        ("('authorization', 'Bearer abc.def-123')", f"('authorization', 'Bearer {REDACTED}')"),
        ("bearer  s3cr3t-t0ken refused", f"bearer {REDACTED} refused"),
        ("http://ann:hunter2@proxy:3128/x", f"http://ann:{REDACTED}@proxy:3128/x"),
        ("postgresql://ann:p@ss@db/fleet", f"postgresql://ann:{REDACTED}@db/fleet"),
        ("https://t0ken@host.example/x", f"https://{REDACTED}@host.example/x"),
        ("POST https://hooks.slack.com/services/T0/B0/x failed", f"POST https://hooks.slack.com/{REDACTED} failed"),
        ("https://hooks.example.org/reaperd", f"https://hooks.example.org/{REDACTED}"),
        ("https://discord.com/api/webhooks/1/abc", f"https://discord.com/{REDACTED}"),
        ("https://hc-ping.com/0b1fb1f2-0dcb-4c4c-9b57-8a1b2c3d4e5f", f"https://hc-ping.com/{REDACTED}"),
        (
            "https://api.telegram.org/bot12345678:AAE-xYz_0123456789/sendMessage",
            f"https://api.telegram.org/{REDACTED}/sendMessage",
        ),
        (
            "HTTPSConnectionPool(host='hooks.slack.com'): Max retries exceeded with url: /services/T0/B0/x (c)",
            f"HTTPSConnectionPool(host='hooks.slack.com'): Max retries exceeded with url: /{REDACTED} (c)",
        ),
        (
            "https://sts.amazonaws.com/?X-Amz-Credential=ab&X-Amz-Signature=cd&X-Amz-Date=2026",
            f"https://sts.amazonaws.com/?X-Amz-Credential={REDACTED}&X-Amz-Signature={REDACTED}&X-Amz-Date=2026",
        ),
        ("aws_secret_access_key = short", f"aws_secret_access_key = {REDACTED}"),
        ("password=hunter2, user=ann", f"password={REDACTED}, user=ann"),
        ("password: hunter2", f"password: {REDACTED}"),
        ("""{"db_password": "a\\"b, c", "user": "ann"}""", f"""{{"db_password": {REDACTED}, "user": "ann"}}"""),
        ("X-Amz-Security-Token: 0123456789abcdef", f"X-Amz-Security-Token: {REDACTED}"),
        ("api_key='abc' and api-key=abc", f"api_key={REDACTED} and api-key={REDACTED}"),
        (
            f"<SecretAccessKey>ab</SecretAccessKey><SessionToken>{TOKEN}</SessionToken>",
            f"<SecretAccessKey>{REDACTED}</SecretAccessKey><SessionToken>{REDACTED}</SessionToken>",
        ),
        (f"-----BEGIN RSA {KEY}-----\n{TOKEN}\n-----END RSA {KEY}-----!", f"{REDACTED}!"),
        ("xoxb-1234567890-abcdef and ghp_abcdefghijklmnopqrstuvwxyz", f"{REDACTED} and {REDACTED}"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, shown: str):
    assert redacted(text) == shown
    assert redacted(shown) == shown


def test_whatever_key_was_drawn_is_taken_out():
    letters = string.ascii_letters + string.digits + "/+"
    drawn = ["aA1" + "".join(secrets.choice(letters) for _ in range(37)) for _ in range(500)]

    assert [key for key in drawn if key in redacted(f"made with {key}.")] == []


@pytest.mark.parametrize(
    "text",
    [
        "i-0abc i-0123456789abcdef0 vol-0123456789abcdef0 sir-abcd1234",
        "sha256:" + "0123456789abcdef" * 4,
        "0123456789abcdef0123456789abcdef01234567",
        "5f2b1e9c-7a80-4b60-9a56-1c0d7c1b2a33",
        "5f2b1e9c7a804b609a561c0d7c1b2a33",
        "aws/us-east-1/i-0123456789abcdef0",
        "arn:aws:iam::123456789012:role/reaperd-reaper",
        "assumed-role/Reaperd/AROAIOSFODNN7EXAMPLE",
        "An error occurred (ExpiredToken) when calling GetCallerIdentity: The security token included is expired",
        "An error occurred (UnauthorizedOperation): You are not authorized. Encoded authorization failure message: x",
        "InvalidClientTokenId: The security token included in the request is invalid",
        "credentials: none were found",
        "https://ec2.us-east-1.amazonaws.com/",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html",
        "https://console.example.org/instances/i-0123456789abcdef0",
        "connecting to http://127.0.0.1:9745/metrics",
        "/usr/lib/python3/dist-packages/botocore/credentials.py",
        "AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/token",
        "reaperd:worker-id=w-17 tag_key=reaperd:owner",
        "2026-01-10T12:00:00.000Z",
        "registry 4f7c, epoch 7, plan 12 of 40",
        "",
    ],
)
def test_what_a_log_is_read_for_stays(text: str):
    assert redacted(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "secret", "client_secret", "SecretAccessKey", "token", "sessionToken", "AWS_SESSION_TOKEN", "password",
        "db_passwd", "passphrase", "credential", "credentials", "Authorization", "key", "api_key", "apiKey",
        "privatekey", "access-key", "Set-Cookie",
    ],
)  # fmt: skip
def test_a_name_that_says_secret_hides_its_value(name: str):
    assert names_a_secret(name)
    assert redacted_under(name, "hunter2") == REDACTED


@pytest.mark.parametrize(
    "name",
    ["instance_id", "digest", "plan_digest", "monkey", "keyboard", "tag_key", "url_file", "token_path", "detail"],
)
def test_other_names_hide_nothing(name: str):
    assert redacted_under(name, "hunter2") == "hunter2"


@pytest.mark.parametrize(
    "value", ["leak/aws/us-east-1/i-1", "breaker_open", "providers[0].account", "reconcile.interval"]
)
def test_the_key_of_an_alert_or_a_setting_stays(value: str):
    assert redacted_under("key", value) == value


def test_the_key_of_an_alert_is_looked_at_all_the_same():
    assert redacted_under("key", f"leak/{KEY_ID}") == f"leak/{REDACTED}"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["a", "secret", "a.", "token=", 'key="', "://", "x:", "Bearer ", "eyJ", "<token>", "\\"]
)
def test_no_text_takes_long(piece: str):
    redacted(piece * (60_000 // len(piece)))
