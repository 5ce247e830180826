"""The kinds of value that a key can hold: what is accepted, and the sentence for what is not.

No message repeats a text that could be a secret under the wrong key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, NoReturn
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from reaperd.config.durations import format_duration, parse_duration
from reaperd.config.raw import list_or_none, table_or_none


@dataclass(frozen=True, slots=True)
class Label:
    """How the reference page calls a kind of value."""

    text: str


@dataclass(frozen=True, slots=True)
class Secret:
    """Marks a value that is never printed whole."""


def _refuse(sentence: str) -> NoReturn:
    # Always a ValueError: pydantic collects those, while a TypeError would end the validation at the first.
    raise ValueError(sentence)


def _duration(value: object) -> timedelta:
    match value:
        case timedelta():
            return value
        case str():
            return parse_duration(value)
        case int() | float() if not isinstance(value, bool):
            _refuse('a bare number is not a duration: write the unit too, in quotes, like "90s" or "15m"')
        case _:
            _refuse('must be a duration in quotes, like "90s", "15m" or "1h30m"')


def _at_least(shortest: timedelta) -> Callable[[timedelta], timedelta]:
    def check(value: timedelta) -> timedelta:
        if value < shortest:
            _refuse(f'must be at least "{format_duration(shortest)}"')
        return value

    return check


def _at_most(longest: timedelta) -> Callable[[timedelta], timedelta]:
    def check(value: timedelta) -> timedelta:
        if value > longest:
            _refuse(f'must be at most "{format_duration(longest)}"')
        return value

    return check


def _above_zero(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        _refuse('must be longer than "0s"')
    return value


def _matching(form: str, sentence: str) -> Callable[[object], str]:
    """Return a check of the whole text: `$` would let a trailing line break pass."""
    compiled = re.compile(form, re.ASCII)

    def check(value: object) -> str:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            _refuse(sentence)
        return value

    return check


def _account(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        _refuse('an account is a string: put it in quotes, like "012345670123" (a number would lose a leading zero)')
    return _matching(r"[0-9]{12}", 'must be the 12 digits of an AWS account, in quotes, like "012345670123"')(value)


_REGION = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)


def _regions(value: object) -> tuple[str, ...] | Literal["auto"]:
    if value == "auto":
        return "auto"
    entries = list_or_none(value)
    if entries is None:
        _refuse('must be a list of regions, like ["us-east-1", "eu-west-1"], or "auto"')
    regions = tuple(str(region) for region in entries)
    if not regions:
        _refuse('must name at least one region, or be "auto"')
    if "auto" in regions:
        _refuse('write regions = "auto", without a list')
    return _named_regions(regions)


def _split(value: object) -> tuple[str, ...]:
    entries = list_or_none(value)
    if not entries:
        _refuse('must be a list of regions, like ["us-east-1"]')
    return _named_regions(tuple(str(region) for region in entries))


def _named_regions(regions: tuple[str, ...]) -> tuple[str, ...]:
    if odd := [place for place, region in enumerate(regions) if _REGION.fullmatch(region) is None]:
        _refuse(f"entry {odd[0]} is not the name of a region, like us-east-1")
    if twice := [region for place, region in enumerate(regions) if region in regions[:place]]:
        _refuse(f"names {twice[0]} twice")
    return regions


def _path(value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value).isprintable():
        _refuse("must be a path in quotes")
    path = Path(value)
    if not path.is_absolute():
        _refuse("must be an absolute path: a service has no folder of its own to start from")
    return path


def _url(value: object) -> str:
    sentence = 'must be a URL, like "https://hooks.example.org/reaperd"'
    text = _matching(r"[a-z][a-z0-9+.-]*://\S+", sentence)(value)
    try:
        _ = urlsplit(text).port
    except ValueError:
        _refuse(sentence)
    return text


def is_http_url(text: str) -> bool:
    """Return True for an http or https URL that names a host."""
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _http_url(value: object) -> str:
    text = _url(value)
    if not is_http_url(text):
        _refuse("must be an http or https URL")
    return text


_LISTEN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})", re.ASCII)
_LAST_PORT = 65_535
LONGEST_LEASE = timedelta(hours=1)
"""What claims to run for longer was written by a clock that was wrong, and is not waited for."""


def address_of(listen: str) -> tuple[str, int] | None:
    """Return host and port, or None for the empty text.

    Raises:
        ValueError: if it is neither.
    """
    if not listen:
        return None
    found = _LISTEN.fullmatch(listen)
    if found is None or int(found["port"]) > _LAST_PORT:
        _refuse('must be "host:port", like "127.0.0.1:9745" or "[::]:9745", or "" to switch it off')
    return found["host"].strip("[]"), int(found["port"])


def _listen(value: object) -> str:
    text = _matching(r".*", 'must be "host:port" on one line')(value)
    address_of(text)
    return text


def _date(value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(_matching(r"\d{4}-\d\d-\d\d", "")(value))
    except ValueError:
        _refuse("must be a date, like 2026-12-31")


def _price(value: object) -> object:
    if table_or_none(value) is not None:
        _refuse('is cut at its dots: put the whole name of the type in quotes, like "m5.large" = 0.096')
    return value


_NAME = _matching(
    r"[a-z][a-z0-9-]{0,30}", "must be 1 to 31 lower-case letters, digits and dashes, starting with a letter"
)
_PLUGIN = _matching(r"[a-z][a-z0-9._-]*", 'must be "aws" or the name of an entry point, in lower case')
# A list as JSON in a variable would be one id that no machine has, and hold nothing.
_INSTANCE = _matching(r"[^\s\[\]{}\"',]+", "must be an instance id: no blanks, quotes or brackets")
_TEXT = _matching(r".*\S.*", "must not be blank")
_GLOB = _matching(r".*\S.*", 'must be a pattern, like "bastion-*"')
_ROLE = _matching(r"arn:[a-z-]+:iam::[0-9]{12}:role/\S+", 'must be the ARN of a role: "arn:aws:iam::…:role/…"')
_VARIABLE = _matching(
    # Every variable that begins so is a setting.
    r"(?!(?i:REAPERD_))[A-Za-z_][A-Za-z0-9_]{0,99}",
    "must be the name of a variable, like ALERT_HOOK: letters, digits and _, and not beginning with REAPERD_",
)
_PRICED = _matching(
    r"[^\s/]([^/\t\r\n]*[^\s/])?(/[^\s/]([^/\t\r\n]*[^\s/])?){0,2}",
    'must be an instance type, like "m5.large", "aws/m5.large" or "aws/eu-west-1/m5.large"',
)
_TAG_KEY = _matching(
    # A * or ? in a tag filter is a wildcard to EC2: it would match other people's machines.
    r"(?!(?i:aws:))[A-Za-z0-9_.:/=+@-]{1,128}",
    'must be a tag key: 1 to 128 letters, digits and _.:/=+@- (no blank, no wildcard), not starting with "aws:"',
)

Duration = Annotated[timedelta, Label("duration"), BeforeValidator(_duration)]
PositiveDuration = Annotated[Duration, AfterValidator(_above_zero)]
Interval = Annotated[Duration, AfterValidator(_at_least(timedelta(seconds=1)))]
LeaseTime = Annotated[Interval, AfterValidator(_at_most(LONGEST_LEASE))]
Name = Annotated[str, Label("name"), PlainValidator(_NAME)]
PluginType = Annotated[str, Label("name"), PlainValidator(_PLUGIN)]
InstanceId = Annotated[str, Label("string"), PlainValidator(_INSTANCE)]
Text = Annotated[str, Label("string"), PlainValidator(_TEXT)]
Glob = Annotated[str, Label("glob"), PlainValidator(_GLOB)]
TagKey = Annotated[str, Label("tag key"), PlainValidator(_TAG_KEY)]
Account = Annotated[str, Label("string of 12 digits"), PlainValidator(_account)]
RoleArn = Annotated[str, Label("ARN"), PlainValidator(_ROLE)]
Regions = Annotated[tuple[str, ...] | Literal["auto"], Label('list of strings, or `"auto"`'), PlainValidator(_regions)]
SplitRegions = Annotated[tuple[str, ...], Label("list of strings"), PlainValidator(_split)]
Variable = Annotated[str, Label("name of a variable"), PlainValidator(_VARIABLE)]
AbsolutePath = Annotated[Path, Label("absolute path"), PlainValidator(_path)]
SecretText = Annotated[Text, Secret()]
SecretUrl = Annotated[str, Label("URL"), Secret(), PlainValidator(_url)]
HttpUrl = Annotated[str, Label("URL"), Secret(), PlainValidator(_http_url)]
Listen = Annotated[str, Label("host:port"), PlainValidator(_listen)]
Day = Annotated[date, Label("date"), PlainValidator(_date)]
Count = Annotated[int, Label("whole number"), Field(strict=True, ge=0)]
PositiveCount = Annotated[int, Label("whole number"), Field(strict=True, ge=1)]
Fraction = Annotated[float, Label("number from 0 to 1"), Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Share = Annotated[float, Label("number above 0, to 1"), Field(strict=True, gt=0, le=1, allow_inf_nan=False)]
Dollars = Annotated[float, Label("number"), Field(strict=True, ge=0, allow_inf_nan=False)]
Priced = Annotated[str, Label("instance type"), PlainValidator(_PRICED)]
Price = Annotated[float, Label("number"), BeforeValidator(_price), Field(strict=True, ge=0, le=10_000)]
