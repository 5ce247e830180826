"""TLS and basic auth by the file of the exporter toolkit."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from reaperd.errors import WebConfigError
from reaperd.http.basic_auth import Admission, BasicAuth
from reaperd.http.web_config import read_web_config, uses_tls
from tests.unit.http.conftest import (
    Authority,
    Running,
    asked,
    authority,
    basic,
    hashed,
    private,
    secure,
)

HASH = hashed("s3cret")


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "web.yml"
    path.write_text(text)
    return path


def touched(path: Path, text: str | bytes) -> None:
    """Write a file as an editor does that keeps the inode, at another time."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    later = path.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))


def users(**named: str) -> str:
    return "basic_auth_users:\n" + "".join(f"  {user}: '{hash_}'\n" for user, hash_ in named.items())


def told(path: Path) -> str:
    with pytest.raises(WebConfigError) as error:
        read_web_config(path)
    text = str(error.value)
    assert text.startswith(f"http.web_config_file {path}: ")
    return text


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "{}", "tls_server_config:\n", "http_server_config: {http2: false}\n"]
)
def test_a_file_that_asks_for_nothing_asks_for_nothing(tmp_path: Path, text):
    config = read_web_config(written(tmp_path, text))

    assert (config.context, dict(config.users), dict(config.headers)) == (None, {}, {})


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("tls_server_confg: {}", "tls_server_confg is not known here (known: tls_server_config,"),
        ("tls_server_config: {cert_fil: a}", "tls_server_config.cert_fil is not known here (known: cert_file,"),
        ("tls_server_config: {client_allowed_sans: [a]}", "tls_server_config.client_allowed_sans is not known here"),
        ("tls_server_config: {cipher_suites: [a]}", "tls_server_config.cipher_suites is not known here"),
        ("http_server_config: {http3: true}", "http_server_config.http3 is not known here"),
        ("rate_limit: 3", "rate_limit is not known here"),
        ("tls_server_config: yes", "tls_server_config must be a table"),
        ("tls_server_config: {cert_file: a}", "tls_server_config needs both cert_file and key_file"),
        ("tls_server_config: {key_file: a}", "tls_server_config needs both cert_file and key_file"),
        ("tls_server_config: {cert_file: 7, key_file: a}", "tls_server_config.cert_file must be a path"),
        ("tls_server_config: {cert_file: a, key_file: ''}", "tls_server_config.key_file must be a path"),
        ("tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}", "must be one of TLS12, TLS13"),
        ("tls_server_config: {cert_file: a, key_file: b, min_version: 1.2}", "min_version must be one of"),
        (
            "tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}",
            "min_version is above max_version",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAnyClientCert}",
            "client_auth_type must be one of NoClientCert,",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}",
            "client_ca_file and client_auth_type belong together",
        ),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}",
            "client_ca_file and client_auth_type belong together",
        ),
        ("basic_auth_users: [a]", "basic_auth_users must be a table"),
        ("basic_auth_users: {ann: 7}", "basic_auth_users: names and values must be text: put them in quotes"),
        (f"basic_auth_users: {{1: '{HASH}'}}", "names and values must be text"),
        ("basic_auth_users: {ann: hunter2}", "basic_auth_users.ann must be a bcrypt hash of cost 4 to 16"),
        (f"basic_auth_users: {{ann: '{HASH[:-1]}'}}", "must be a bcrypt hash"),
        (f"basic_auth_users: {{ann: '$2b$31${HASH[7:]}'}}", "must be a bcrypt hash of cost 4 to 16"),
        ("http_server_config: {headers: [a]}", "http_server_config.headers must be a table"),
        ("http_server_config: {headers: {Set-Cookie: a}}", "http_server_config.headers.Set-Cookie cannot be set"),
        ('http_server_config: {headers: {X-Frame-Options: "a\\r\\nX: y"}}', "must be plain text on one line"),
        ("- a", "it must be a table"),
        ("a: [", "it is no YAML (line "),
        ("a: \x01", "it is no YAML"),
        ("a: 2020-13-45", "it is no YAML"),
        ("[" * 5_000, "it is no YAML"),
        ('tls_server_config: {cert_file: "a\\0b", key_file: b}', "tls_server_config.cert_file must be a path"),
    ],
)
def test_what_cannot_be_used_is_told_where_it_stands(tmp_path: Path, text, detail):
    assert detail in told(written(tmp_path, text))


def test_a_password_in_place_of_its_hash_is_not_repeated(tmp_path: Path):
    assert "hunter2" not in told(written(tmp_path, "basic_auth_users: {ann: hunter2}"))


def test_a_missing_or_odd_file_is_told(tmp_path: Path):
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"\xff\xfe\xff")

    assert "it cannot be read: No such file or directory" in told(tmp_path / "none.yml")
    assert "it is no YAML" in told(binary)


def test_a_file_asks_for_tls_or_not_whatever_its_certificates_are(tmp_path: Path):
    assert uses_tls(written(tmp_path, "tls_server_config: {cert_file: none, key_file: none}")) is True
    assert uses_tls(written(tmp_path, users(ann=HASH))) is False
    with pytest.raises(WebConfigError):
        uses_tls(tmp_path / "none.yml")


@pytest.mark.parametrize("broken", ["missing", "garbage", "another's key", "encrypted", "no ca"])
def test_certificates_that_cannot_be_used_are_told(tmp_path: Path, ca: Authority, tls_file: Path, broken):
    key = tmp_path / "server.key"
    match broken:
        case "missing":
            key.unlink()
        case "garbage":
            key.write_text("nothing")
        case "another's key":
            ca.issue("other")
            key.write_bytes((tmp_path / "other.key").read_bytes())
        case "encrypted":
            key.write_bytes(private(ca.key, b"a passphrase"))
        case "no ca":
            (tmp_path / "empty.pem").write_text("")
            more = ", client_ca_file: empty.pem, client_auth_type: RequireAndVerifyClientCert}"
            tls_file.write_text(tls_file.read_text().replace("}", more))

    assert {
        "missing": "a certificate cannot be read",
        "garbage": "cannot be loaded, or do not belong together",
        "another's key": "cannot be loaded, or do not belong together: KEY_VALUES_MISMATCH",
        "encrypted": "tls_server_config.key_file is encrypted",
        "no ca": "cannot be loaded, or do not belong together",
    }[broken] in told(tls_file)


def test_a_server_does_not_start_with_a_bad_file(serve: Callable[..., Running], tmp_path: Path):
    with pytest.raises(WebConfigError):
        serve(written(tmp_path, "rate_limit: 3"))


def test_the_headers_of_the_file_are_on_every_answer_and_win(serve: Callable[..., Running], tmp_path: Path):
    wished = "Strict-Transport-Security: max-age=1, X-Frame-Options: SAMEORIGIN, X-XSS-Protection: ''"
    text = f"http_server_config: {{headers: {{{wished}}}}}"

    headers = serve(written(tmp_path, text)).ask("/nothing").headers

    assert (headers["Strict-Transport-Security"], headers["X-Frame-Options"]) == ("max-age=1", "SAMEORIGIN")
    assert "X-XSS-Protection" not in headers


# ---------------------------------------------------------------- client certificates


@pytest.mark.parametrize(("how", "without"), [("RequireAndVerifyClientCert", False), ("VerifyClientCertIfGiven", True)])
def test_a_client_is_known_by_its_certificate(
    serve: Callable[..., Running], tmp_path: Path, ca: Authority, tls_file: Path, how, without
):
    tls_file.write_text(tls_file.read_text().replace("}", f", client_ca_file: ca.pem, client_auth_type: {how}}}"))
    running = serve(tls_file)
    (tmp_path / "elsewhere").mkdir()
    known, stranger = ca.trust(), ca.trust()
    known.load_cert_chain(*ca.issue("prometheus"))
    stranger.load_cert_chain(*authority(tmp_path / "elsewhere", "other-ca").issue("stranger"))

    assert reached(running, known) is True
    assert reached(running, ca.trust()) is without
    assert reached(running, stranger) is False


def reached(running: Running, context: ssl.SSLContext) -> bool:
    try:
        return asked(secure(running, context), "/metrics").status == 200
    except (ssl.SSLError, ConnectionError):
        return False


# ---------------------------------------------------------------- rotation


def serial_of(running: Running) -> int:
    pem = ssl.get_server_certificate(("127.0.0.1", running.port), timeout=10)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def test_a_certificate_is_rotated_without_a_restart(serve: Callable[..., Running], ca: Authority, tls_file: Path):
    running = serve(tls_file)
    first = serial_of(running)

    ca.issue("server", file="next")
    tls_file.with_name("next.crt").replace(tls_file.with_name("server.crt"))
    tls_file.with_name("next.key").replace(tls_file.with_name("server.key"))

    assert serial_of(running) != first
    assert "web_config_reloaded" in [event["event"] for event in running.events]


def test_half_a_rotation_keeps_the_old_pair_and_is_told_once(
    serve: Callable[..., Running], ca: Authority, tls_file: Path
):
    running = serve(tls_file)
    first = serial_of(running)
    ca.issue("server", file="next")

    tls_file.with_name("next.crt").replace(tls_file.with_name("server.crt"))
    assert [serial_of(running) for _ in range(3)] == [first] * 3
    assert [event["event"] for event in running.events if event["level"] == "error"] == ["web_config_rejected"]

    tls_file.with_name("next.key").replace(tls_file.with_name("server.key"))
    assert serial_of(running) != first


def test_a_bad_change_keeps_what_was_in_force_until_it_is_mended(serve: Callable[..., Running], tmp_path: Path):
    path = written(tmp_path, users(ann=HASH))
    running = serve(path)
    right = {"Authorization": basic("ann", "s3cret")}
    assert running.ask("/metrics").status == 401

    touched(path, "basic_auth_users: {ann: plain")
    assert [running.ask("/metrics").status for _ in range(3)] == [401] * 3
    assert running.ask("/metrics", **right).status == 200
    assert [event["event"] for event in running.events if event["level"] == "error"] == ["web_config_rejected"]

    touched(path, users(ann=hashed("another")))
    assert running.ask("/metrics", **right).status == 401
    path.unlink()
    assert running.ask("/metrics", Authorization=basic("ann", "another")).status == 200


@pytest.mark.parametrize("text", ["", "# nothing\n", "basic_auth_users:\n", "basic_auth_users: {}\n"])
def test_a_password_does_not_vanish_with_what_a_file_holds(serve: Callable[..., Running], tmp_path: Path, text):
    path = written(tmp_path, users(ann=HASH))
    running = serve(path)

    touched(path, text)
    statuses = [running.ask("/metrics").status for _ in range(3)]

    assert statuses == [401] * 3
    (event,) = [event for event in running.events if event["level"] == "error"]
    assert event["event"] == "web_config_rejected"
    assert "it asks for no password any more" in str(event["detail"])
    assert "systemctl restart reaperd" in str(event["detail"])


@pytest.mark.parametrize("text", ["", "tls_server_config:\n", "http_server_config: {http2: false}\n"])
def test_tls_does_not_vanish_with_what_a_file_holds(serve: Callable[..., Running], tls_file: Path, text):
    running = serve(tls_file)
    first = serial_of(running)

    touched(tls_file, text)

    assert [serial_of(running) for _ in range(3)] == [first] * 3
    (event,) = [event for event in running.events if event["level"] == "error"]
    assert event["event"] == "web_config_rejected"
    assert "it asks for no TLS any more" in str(event["detail"])


@pytest.mark.parametrize("type_", ["NoClientCert", "VerifyClientCertIfGiven"])
def test_clients_do_not_become_strangers_with_what_a_file_holds(
    serve: Callable[..., Running], ca: Authority, tls_file: Path, type_
):
    server = f"tls_server_config:\n  cert_file: {tls_file.with_name('server.crt')}\n"
    server += f"  key_file: {tls_file.with_name('server.key')}\n"
    path = tls_file.with_name("clients.yml")
    path.write_text(f"{server}  client_ca_file: {ca.path}\n  client_auth_type: RequireAndVerifyClientCert\n")
    running = serve(path)

    softer = "" if type_ == "NoClientCert" else f"  client_ca_file: {ca.path}\n  client_auth_type: {type_}\n"
    touched(path, server + softer)
    with pytest.raises(OSError):  # noqa: PT011 - reset or refused, as the system has it
        asked(secure(running, ca.trust()), "/metrics")

    (event,) = [event for event in running.events if event["level"] == "error"]
    assert "it asks for no certificates of clients any more" in str(event["detail"])


def test_a_user_may_go_while_another_one_stays(serve: Callable[..., Running], tmp_path: Path):
    path = written(tmp_path, users(ann=HASH, bob=HASH))
    running = serve(path)

    touched(path, users(bob=HASH))

    assert running.ask("/metrics", Authorization=basic("ann", "s3cret")).status == 401
    assert running.ask("/metrics", Authorization=basic("bob", "s3cret")).status == 200


def test_a_file_that_was_emptied_is_in_force_again_once_it_is_mended(serve: Callable[..., Running], tmp_path: Path):
    path = written(tmp_path, users(ann=HASH))
    running = serve(path)
    touched(path, "")
    assert running.ask("/metrics").status == 401

    path.unlink()
    written(tmp_path, users(bob=HASH))

    assert running.ask("/metrics", Authorization=basic("ann", "s3cret")).status == 401
    assert running.ask("/metrics", Authorization=basic("bob", "s3cret")).status == 200


def test_a_certificate_that_a_new_file_names_is_waited_for(
    serve: Callable[..., Running], ca: Authority, tls_file: Path
):
    running = serve(tls_file)
    first = serial_of(running)

    touched(tls_file, "tls_server_config: {cert_file: new.crt, key_file: new.key}")
    assert serial_of(running) == first
    ca.issue("server", file="new")

    assert serial_of(running) != first


# ---------------------------------------------------------------- basic auth


@pytest.fixture
def guarded(serve: Callable[..., Running], tmp_path: Path) -> Running:
    return serve(written(tmp_path, users(ann=HASH, bob=hashed("pä:ss", "2a"))))


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/nothing", "//metrics", "/healthz/"])
def test_nobody_reads_anything_without_a_password(guarded: Running, path):
    reply = guarded.ask(path)

    assert (reply.status, reply.body) == (401, "unauthorized\n")
    assert reply.headers["WWW-Authenticate"] == 'Basic realm="reaperd", charset="UTF-8"'


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_probe_needs_no_password(guarded: Running, path):
    assert guarded.ask(path).status == 200


def test_the_right_password_opens_again_and_again(guarded: Running):
    for user, password in (("ann", "s3cret"), ("bob", "pä:ss")) * 2:
        assert guarded.ask("/metrics", Authorization=basic(user, password)).status == 200


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic !!!",
        "Basic YW5u",
        "Bearer s3cret",
        basic("ann", ""),
        basic("ann", "s3cre"),
        basic("ann", "s3cret "),
        basic("ann", "pä:ss"),
        basic("Ann", "s3cret"),
        basic("carl", "s3cret"),
        basic("", "s3cret"),
        basic("ann", "s3cret\0"),
        basic("ann", "s3cret" + "x" * 100),
        "Basic " + "/w==",
    ],
)
def test_any_other_is_refused(guarded: Running, header):
    assert guarded.ask("/metrics", Authorization=header).status == 401


def test_a_password_beyond_what_bcrypt_reads_is_none(tmp_path: Path):
    longest = "a" * 72
    known = {"ann": hashed(longest).encode()}

    assert BasicAuth().admits(basic("ann", longest), known) is Admission.ADMITTED
    assert BasicAuth().admits(basic("ann", longest + "b"), known) is Admission.REFUSED


@pytest.mark.parametrize(
    "tail", ["z" * 53, "/" * 53, "A" * 53, "." * 21 + "/" + "." * 31], ids=lambda tail: tail[20:24]
)
@pytest.mark.parametrize("prefix", ["2a$16", "2b$04", "2y$10"])
def test_a_hash_that_bcrypt_does_not_take_is_none(tmp_path: Path, prefix, tail):
    assert "basic_auth_users.ann must be a bcrypt hash" in told(written(tmp_path, users(ann=f"${prefix}${tail}")))


@pytest.mark.parametrize("prefix", ["2a", "2b", "2x", "2y"])
def test_every_kind_of_bcrypt_hash_is_read(tmp_path: Path, prefix):
    text = HASH.replace("$2b$", f"${prefix}$")

    (known,) = read_web_config(written(tmp_path, users(ann=text))).users.values()

    assert BasicAuth().admits(basic("ann", "s3cret"), {"ann": known}) is Admission.ADMITTED


class Slow(dict):
    """Users whose hash costs a while: whoever asks for it says so, and waits."""

    def __init__(self, users: dict[str, bytes]) -> None:
        super().__init__(users)
        self.asked = 0

    def values(self):
        self.asked += 1
        return super().values()


def test_a_right_password_is_compared_once_and_a_wrong_one_each_time():
    auth = BasicAuth()
    known = {"ann": HASH.encode()}

    assert auth.admits(basic("ann", "s3cret"), known) is Admission.ADMITTED

    with auth._comparing:
        # Whoever compared would wait here for ever.
        assert auth.admits(basic("ann", "s3cret"), known) is Admission.ADMITTED
        waiting = threading.Thread(target=lambda: auth.admits(basic("ann", "wrong"), known), daemon=True)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)


def test_a_right_password_is_right_for_its_user_and_hash_only():
    auth = BasicAuth()
    auth.admits(basic("ann", "s3cret"), {"ann": HASH.encode()})

    assert auth.admits(basic("ann", "s3cret"), {"ann": hashed("new").encode()}) is Admission.REFUSED
    assert auth.admits(basic("bob", "s3cret"), {"bob": hashed("new").encode()}) is Admission.REFUSED
    assert auth.admits(basic("ann", "s3cret"), {"bob": HASH.encode()}) is Admission.REFUSED


def test_an_unknown_user_costs_a_comparison_too():
    known = Slow({"ann": HASH.encode()})

    assert BasicAuth().admits(basic("carl", "s3cret"), known) is Admission.REFUSED

    assert known.asked == 1


def test_those_who_guess_take_a_few_threads_and_the_others_are_told_to_come_back():
    auth = BasicAuth()
    known = {"ann": HASH.encode()}
    auth.admits(basic("ann", "s3cret"), known)
    found: list[Admission] = []
    with auth._comparing:
        guessing = [
            threading.Thread(
                target=lambda n=n: found.append(auth.admits(basic("ann", f"guess-{n}"), known)), daemon=True
            )
            for n in range(10)
        ]
        for thread in guessing:
            thread.start()
        for thread in guessing:
            thread.join(0.2)
        assert found == [Admission.BUSY] * 6
        assert auth.admits(basic("ann", "s3cret"), known) is Admission.ADMITTED
    for thread in guessing:
        thread.join(10)
    assert sorted(found, key=str) == [Admission.BUSY] * 6 + [Admission.REFUSED] * 4


def test_more_right_passwords_than_are_remembered_stay_right():
    auth = BasicAuth()
    known = {f"user-{n}": HASH.encode() for n in range(120)}

    for user in known:
        assert auth.admits(basic(user, "s3cret"), known) is Admission.ADMITTED
    assert len(auth._right) <= 100


def test_a_guesser_is_told_to_come_back_over_http(guarded: Running):
    # The places of those who guess are taken, as a flood would take them.
    guess = basic("ann", "wrong")
    replies: list[int] = []
    threads = [
        threading.Thread(target=lambda: replies.append(guarded.ask("/metrics", Authorization=guess).status))
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(replies) <= {401, 429}
    assert guarded.ask("/healthz").status == 200
