"""What must not reach a log: credentials, wherever they stand in a text or under a name.

Errors of libraries quote what they were given: headers, URLs, answers of a token service. Whatever looks like a secret
is taken out, at the price of a word too many now and then. Ids, digests, ARNs and paths stay: without them a log says
nothing.
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_STEMS = "secret|token|passw(?:or)?d|passphrase|credential|authorization|cookie|signature"
_KEYS = "(?:api|access|secret|private|account|master|signing|encryption)[_-]?key"
_NAME = re.compile(rf"{_STEMS}|{_KEYS}", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_HARMLESS = re.compile(r"(?:^|_)tag_key$|(?:file|path)$", re.IGNORECASE)
"""The key of a tag is no secret, and the path of a file that holds one is what a person needs."""
_POINTER = re.compile(r"[A-Za-z_]+(?:[./\[][\w./:*\[\]-]*)?", re.ASCII)
"""`leak/aws/us-east-1/i-1` and `providers[0].account`: what our own events have under the name `key`."""


def names_a_secret(name: str) -> bool:
    """Say whether a field, a header or a parameter of this name holds something that nobody may read."""
    if _HARMLESS.search(name):
        return False
    return _NAME.search(name) is not None or any(word.lower() in {"key", "keys"} for word in _WORD.findall(name))


def redacted_under(name: str, text: str) -> str:
    """Return the text as it may be shown under a name."""
    pointer = name == "key" and _POINTER.fullmatch(text) is not None
    return REDACTED if text and names_a_secret(name) and not pointer else redacted(text)


def redacted(text: str) -> str:
    """Return the text without what looks like a secret."""
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


# ---------------------------------------------------------------- URLs

_IDENTIFIER = re.compile(r"[a-z]{1,8}-[0-9a-f]{8,17}")
_LONG = re.compile(r"(?=[^/]*[0-9])(?=[^/]*[A-Za-z])[\w:~-]{16,}", re.ASCII)


def _url(found: re.Match[str]) -> str:
    """Return a URL without its password, and without the path where the path is the password."""
    scheme, host, path = found["scheme"], _without_userinfo(found["host"]), found["path"]
    if "hook" in f"{host}{path}".lower() and path not in {"", "/"}:
        return f"{scheme}{host}/{REDACTED}"
    return f"{scheme}{host}{'/'.join(map(_segment, path.split('/')))}"


def _without_userinfo(host: str) -> str:
    userinfo, at, place = host.rpartition("@")
    if not at:
        return place
    user, colon, _ = userinfo.partition(":")
    return f"{user}:{REDACTED}@{place}" if colon else f"{REDACTED}@{place}"


def _segment(segment: str) -> str:
    secret = _LONG.fullmatch(segment) is not None and _IDENTIFIER.fullmatch(segment) is None
    return REDACTED if secret else segment


# ---------------------------------------------------------------- names with a value


def _pair(found: re.Match[str]) -> str:
    return f"{found['front']}{REDACTED}" if names_a_secret(found["name"]) else found[0]


def _random(found: re.Match[str]) -> str:
    """Take out what was drawn at random: a path, a word or a hexadecimal digest has not all three kinds of letters."""
    text = found[0]
    kinds = (str.isupper, str.islower, str.isdigit)
    return REDACTED if all(any(map(kind, text)) for kind in kinds) else text


# Every repetition is bounded, or begins only once in a word: a text of megabytes must not cost minutes. What was taken
# out once is left alone, so blanks before it are held on to (`{0,9}+`).
_QUOTED = r"""b?"(?:[^"\\]|\\.)*"|b?'(?:[^'\\]|\\.)*'"""
_BARE = r"""(?!\[redacted\])[^\s,;&)}\]<"']+"""
_SECRET_NAME = rf"(?P<name>[\w.-]{{0,40}}(?:{_STEMS}|{_KEYS})[\w.-]{{0,40}})"
_STRONG_NAME = r"(?P<name>\w{0,40}(?:passw(?:or)?d|passphrase|secret))"
_IS = r"""["']?\s{0,9}(?:=|:(?=\s{0,9}(?:b?["']|\S{16})))\s{0,9}+"""
"""After a colon only what is quoted or long: `credentials: none were found` is prose."""
_AUTHORIZATION = r"""(?P<front>\b(?:proxy-)?authorization["']?\s{0,9}[:=]\s{0,9}+)"""
_HEADER = rf"(?:{_QUOTED}|(?!\[redacted\])[^\r\n]+)"
_URL = r"""(?P<scheme>\b[a-z][a-z0-9+.-]{0,30}://)(?P<host>[^\s/"'<>?#]*)(?P<path>[^\s"'<>?#,;)]*)"""
_PRIVATE_KEY = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"

_RULES = (
    (re.compile(_PRIVATE_KEY, re.DOTALL), REDACTED),
    (re.compile(f"{_AUTHORIZATION}{_HEADER}", re.IGNORECASE), rf"\g<front>{REDACTED}"),
    (re.compile(r"""AWS4-HMAC-SHA256\s[^\r\n"']+"""), REDACTED),
    (re.compile(r"\b(bearer|basic)\s{1,9}[\w.~+/=-]{8,}", re.IGNORECASE | re.ASCII), rf"\1 {REDACTED}"),
    (re.compile(_URL, re.IGNORECASE), _url),
    # urllib3 tells host and path apart.
    (re.compile(r"(with url: )/(?!\[redacted\])\S+"), rf"\1/{REDACTED}"),
    (re.compile(rf"(?P<front><{_SECRET_NAME}>)[^<]+", re.IGNORECASE), _pair),
    (re.compile(rf"(?P<front>(?<![\w.-]){_SECRET_NAME}{_IS})(?:{_QUOTED}|{_BARE})", re.IGNORECASE), _pair),
    (re.compile(rf"(?P<front>(?<![\w.-]){_STRONG_NAME}\s{{0,9}}:\s{{0,9}}+){_BARE}", re.IGNORECASE), _pair),
    (re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9/+=_-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])"), _random),
    (re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{100,}={0,2}"), _random),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", re.ASCII), REDACTED),
    (re.compile(r"\b(?:xox[a-z]-[\w-]{10,}|gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,})", re.ASCII), REDACTED),
)
