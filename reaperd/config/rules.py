"""What spans several keys. Judged on plain tables, so that these problems are found beside all the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import chain

from providers.identity import loosely
from providers.model import TagKeys
from reaperd.config.durations import format_duration, parse_duration
from reaperd.config.fields import is_http_url
from reaperd.config.raw import Plain, list_or_none, table_or_none
from reaperd.config.tables import ReconcileTable, RegistryTable
from reaperd.errors import Problem

_MATCHERS = ("provider", "account", "region", "instance_id", "instance_type", "name", "tags")
_DEFAULT_TAGS = TagKeys()
_BUSY_TIMEOUT: timedelta = RegistryTable.model_fields["busy_timeout"].default
_DEADLINE: timedelta = ReconcileTable.model_fields["deadline"].default


def broken_rules(settings: Plain) -> tuple[Problem, ...]:
    """Return every broken rule."""
    return tuple(chain.from_iterable(rule(settings) for rule in _RULES))


def _tag_keys_differ(settings: Plain) -> Iterator[Problem]:
    given = _table(settings, "tags")
    taken: dict[str, str] = {}
    for name in ("owner", "worker", "model", "protect", "registry"):
        # Loosely, because the protect tag is.
        key = loosely(str(given.get(name, getattr(_DEFAULT_TAGS, name))))
        if key in taken:
            yield Problem(f"tags.{name}", f"is the same tag key as tags.{taken[key]}")
        taken.setdefault(key, name)


def _provider_is_there(settings: Plain) -> Iterator[Problem]:
    if settings.get("providers") in ([], ()):
        yield Problem("providers", "needs at least one [[providers]] table")


def _provider_names_differ(settings: Plain) -> Iterator[Problem]:
    yield from _repeated(_tables(settings, "providers"), "name", "is the name of")


def _accounts_differ(settings: Plain) -> Iterator[Problem]:
    """Two tables over one account would list the same machine twice, once under a name that no row knows."""
    taken: dict[tuple[object, object], str] = {}
    for path, table in _aws(settings):
        account = table.get("account")
        pair = (str(account), str(table.get("endpoint_url")))
        if account is not None and pair in taken:
            yield Problem(f"{path}.account", f"is the account of {taken[pair]} too: one table per account")
        taken.setdefault(pair, path)


def _enforcing_is_pinned(settings: Plain) -> Iterator[Problem]:
    if settings.get("mode") != "enforce":
        return
    for path, table in _aws(settings):
        if table.get("account") is None:
            yield Problem(f"{path}.account", 'is required for mode = "enforce": name the account that may be acted on')


def _role_fits(settings: Plain) -> Iterator[Problem]:
    for path, table in _aws(settings):
        role, account = table.get("role_arn"), table.get("account")
        if table.get("external_id") is not None and role is None:
            yield Problem(f"{path}.external_id", "has no effect without role_arn")
        if isinstance(role, str) and isinstance(account, str) and f"::{account}:" not in role:
            yield Problem(f"{path}.role_arn", "is a role of another account than the one in `account`")


def _channels_have_a_target(settings: Plain) -> Iterator[Problem]:
    for path, channel in _channels(settings):
        kind, url = channel.get("type"), channel.get("url")
        targets = [key for key in ("url", "url_file", "url_env") if channel.get(key) is not None]
        if kind == "log":
            yield from (Problem(f"{path}.{target}", "has no effect on a log channel") for target in targets)
        elif kind in {"webhook", "alertmanager", "apprise"} and len(targets) != 1:
            yield Problem(path, f'type = "{kind}" needs one of url, url_file and url_env')
        if kind in {"webhook", "alertmanager"} and isinstance(url, str) and "://" in url and not is_http_url(url):
            yield Problem(f"{path}.url", "must be an http or https URL")


def _secrets_have_a_use(settings: Plain) -> Iterator[Problem]:
    for path, channel in _channels(settings):
        given = [key for key in ("secret_file", "secret_env") if channel.get(key) is not None]
        if channel.get("type") in {"log", "alertmanager", "apprise"}:
            wrong = "has no effect on a channel that is no webhook: only that is signed"
            yield from (Problem(f"{path}.{key}", wrong) for key in given)
        elif len(given) > 1:
            yield Problem(path, "has one secret: either secret_file or secret_env")


def _channel_names_differ(settings: Plain) -> Iterator[Problem]:
    named = [(path, {"name": channel.get("name") or channel.get("type")}) for path, channel in _channels(settings)]
    yield from _repeated(named, "name", "is the name (the type, where none is set) of")


def _ignore_matches_something(settings: Plain) -> Iterator[Problem]:
    for path, entry in _tables(_table(settings, "audit"), "ignore", "audit."):
        if not any(entry.get(key) for key in _MATCHERS):
            yield Problem(path, f"would ignore everything: give at least one of {', '.join(_MATCHERS)}")


def _registry_is_waited_for_less_than_a_pass(settings: Plain) -> Iterator[Problem]:
    """Left as it is, it is excused: a pass is ended at its deadline all the same, it only cannot say so well."""
    waits = _duration(_table(settings, "registry").get("busy_timeout"))
    ends = _duration(_table(settings, "reconcile").get("deadline")) or _DEADLINE
    if waits is not None and waits != _BUSY_TIMEOUT and waits >= ends:
        text = f'must be shorter than reconcile.deadline, which is "{format_duration(ends)}": the pass ends there'
        yield Problem("registry.busy_timeout", text)


_RULES: tuple[Callable[[Plain], Iterator[Problem]], ...] = (
    _tag_keys_differ,
    _provider_is_there,
    _provider_names_differ,
    _accounts_differ,
    _enforcing_is_pinned,
    _role_fits,
    _registry_is_waited_for_less_than_a_pass,
    _channels_have_a_target,
    _secrets_have_a_use,
    _channel_names_differ,
    _ignore_matches_something,
)


def _repeated(tables: Sequence[tuple[str, Plain]], key: str, sentence: str) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for path, table in tables:
        value = table.get(key)
        if isinstance(value, str) and value in taken:
            yield Problem(f"{path}.{key}", f"{sentence} {taken[value]} too")
        if isinstance(value, str):
            taken.setdefault(value, path)


def _aws(settings: Plain) -> list[tuple[str, Plain]]:
    return [(path, table) for path, table in _tables(settings, "providers") if table.get("type") == "aws"]


def _channels(settings: Plain) -> list[tuple[str, Plain]]:
    return _tables(_table(settings, "alerts"), "channels", "alerts.")


def _duration(value: object) -> timedelta | None:
    """Return a duration as the file or a model gives it; None when it is none, which is told elsewhere."""
    if isinstance(value, timedelta):
        return value
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _table(above: Plain, key: str) -> Plain:
    return table_or_none(above.get(key)) or {}


def _tables(above: Plain, key: str, prefix: str = "") -> list[tuple[str, Plain]]:
    entries = map(table_or_none, list_or_none(above.get(key)) or ())
    return [(f"{prefix}{key}.{place}", entry) for place, entry in enumerate(entries) if entry is not None]
