"""How events become lines on stderr. The one home of structlog, and the one place that sets up `logging`.

Every line takes the same way, whoever wrote it: the context is merged in, what an exception says is told without the
values of variables, secrets are taken out, and only then it becomes JSON, or text for a person.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import FilteringBoundLogger as Logger
from structlog.typing import Processor

from reaperd.config import LogFormat
from reaperd.report.pen import Pen, descriptor_of
from reaperd.report.redaction import REDACTED, names_a_secret, redacted, redacted_under
from reaperd.report.visible import visible

__all__ = ["Logger", "build_logger", "configure_logs", "log_context"]

_Event = MutableMapping[str, Any]
_ErrorInfo = tuple[type[BaseException], BaseException, TracebackType | None]

_PRIORITIES: Mapping[str, int] = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
"""syslog(3), as sd-daemon(3) has them before a line."""

_LONGEST = 8_000
"""Of one text, in characters: journald cuts a line of more than 48 KiB in two, and a half is no JSON."""
_READ = 64_000
"""So much of a text is looked at for secrets. What is behind it is never shown."""
_DEEPEST = 6
_FRAMES = 30


def build_logger(
    *,
    as_json: bool,
    now: Callable[[], datetime],
    stream: TextIO,
    colour: bool = False,
    least: Literal["info", "warning"] = "info",
) -> Logger:
    """Return a logger for a command that runs once. Nothing else is set up. What is `least` or worse is written."""
    processors = _processors(now, as_json=as_json, colour=colour, prefixed=False)
    return _logger(_pen(stream, processors), processors, least)


def configure_logs(
    *, format_: LogFormat | str, now: Callable[[], datetime], stream: TextIO, environ: Mapping[str, str]
) -> Logger:
    """Set up the logs of a long-running process and return its logger. May be called again, after a reload.

    What libraries log through `logging` at WARNING and above, what they warn of, and exceptions that nobody caught
    or that could not be raised take the same way.
    """
    watched = stream.isatty()
    wanted = LogFormat(format_)
    as_json = not watched if wanted is LogFormat.AUTO else wanted is LogFormat.JSON
    colour = watched and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    processors = _processors(now, as_json=as_json, colour=colour, prefixed=_is_journal(stream, environ))
    pen = _pen(stream, processors)
    # A logger that somebody gets from structlog itself goes no other way.
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=lambda *_: pen,
        cache_logger_on_first_use=False,
    )
    logger = _logger(pen, processors)
    _take_in(logger)
    return logger


def log_context(**fields: str) -> AbstractContextManager[None]:
    """Add fields (pass_id, provider, region) to whatever this thread logs inside the `with`, libraries included."""
    return structlog.contextvars.bound_contextvars(**fields)


def _logger(pen: Pen, processors: list[Processor], least: Literal["info", "warning"] = "info") -> Logger:
    logger: Logger = structlog.wrap_logger(
        pen, processors=processors, wrapper_class=structlog.make_filtering_bound_logger(least)
    )
    return logger


def _pen(stream: TextIO, processors: list[Processor]) -> Pen:
    def lost(lines: int) -> str:
        event: Any = {"event": "log_lines_lost", "lines": lines}
        for processor in processors:
            event = processor(None, "warning", event)
        return str(event)

    return Pen(stream, lost)


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Say whether the stream is the one that systemd connected to the journal: sd-daemon(3), $JOURNAL_STREAM."""
    descriptor = descriptor_of(stream)
    if descriptor is None:
        return False
    try:
        about = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM") == f"{about.st_dev}:{about.st_ino}"


# ---------------------------------------------------------------- the way of an event


def _processors(now: Callable[[], datetime], *, as_json: bool, colour: bool, prefixed: bool) -> list[Processor]:
    def stamped(_logger: object, _method: str, event: _Event) -> _Event:
        moment = now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"timestamp": moment, "level": event.pop("level"), "event": event.pop("event"), **event}

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.ExceptionRenderer(_frames if as_json else _trace),
        _harmless,
        stamped,
        *(_into_json() if as_json else _for_a_person(colour=colour)),
        *([_prefix] if prefixed else []),
    ]


def _into_json() -> list[Processor]:
    return [structlog.processors.JSONRenderer(serializer=_json)]


def _json(event: object, **options: Any) -> str:  # noqa: ANN401 - what json.dumps takes
    """Return pure ASCII on one line, without control characters: it is safe on a terminal too."""
    # DEL is the one that JSON leaves as it is.
    return json.dumps(event, **options).replace("\x7f", "\\u007f")


def _for_a_person(*, colour: bool) -> list[Processor]:
    return [_visible, structlog.dev.ConsoleRenderer(colors=colour)]


_transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False, max_frames=_FRAMES, use_rich=False)
"""The defaults show the values of local variables."""


def _frames(exc_info: _ErrorInfo) -> object:
    return _transform(exc_info)


def _trace(exc_info: _ErrorInfo) -> object:
    return "".join(traceback.format_exception(*exc_info, limit=-_FRAMES)).rstrip("\n")


def _harmless(_logger: object, _method: str, event: _Event) -> _Event:
    return {key: _plain(value, key) for key, value in event.items()}


def _plain(value: object, name: str = "", depth: int = 0) -> object:
    """Return plain data of bounded size without secrets; `name` is what it is called."""
    match value:
        case None | bool():
            return value
        case _ if names_a_secret(name) and not isinstance(value, str):
            return REDACTED
        case int() | float() if isinstance(value, int) or math.isfinite(value):
            return int(value) if isinstance(value, int) else float(value)
        case Mapping() if depth < _DEEPEST:
            return {_text(key): _plain(item, str(key), depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset() if depth < _DEEPEST:
            return [_plain(item, name, depth + 1) for item in value]
        case _:
            return _text(value, name)


def _text(value: object, name: str = "") -> str:
    try:
        told = str(value)
    except Exception:  # noqa: BLE001 - whatever a library hands over: telling of it must not end what it is told of
        return f"<{type(value).__name__}>"
    shown = redacted_under(name, told[:_READ]) if name else redacted(told[:_READ])
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}… ({len(told):,} characters)"


def _visible(_logger: object, _method: str, event: _Event) -> _Event:
    """Make the text of strangers visible: a log is read on terminals too.

    Lines of a trace are set in, so that none of them can pass for an event.
    """
    shown: _Event = {key: visible(value if isinstance(value, str) else repr(value)) for key, value in event.items()}
    trace = event.get("exception")
    if isinstance(trace, str):
        shown["exception"] = "\n".join(f"    {visible(line)}" for line in trace.split("\n"))
    return shown


def _prefix(_logger: object, method: str, text: Any) -> str:  # noqa: ANN401 - what a renderer made, by then
    """Put the priority before every line: the journal takes each for an entry of its own."""
    priority = f"<{_PRIORITIES[method]}>"
    return "\n".join(f"{priority}{line}" for line in text.split("\n"))


# ---------------------------------------------------------------- what others write


class _Intake(logging.Handler):
    """Takes in what libraries log."""

    def __init__(self, logger: Logger) -> None:
        super().__init__(logging.WARNING)
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        level = next(level for level in (50, 40, 30) if record.levelno >= level)
        self._logger.log(
            level, "library_log", logger=record.name, message=_message(record), exc_info=record.exc_info or None
        )


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a library's arguments do not fit its text: the text alone tells enough
        return str(record.msg)


def _take_in(logger: Logger) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_Intake(logger)]
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)

    def uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        logger.critical("uncaught_exception", exc_info=(kind, error, trace))

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            name = "" if args.thread is None else args.thread.name
            info = (args.exc_type, args.exc_value, args.exc_traceback)
            logger.critical("uncaught_exception", thread=name, exc_info=info)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is not None:
            info = (args.exc_type, args.exc_value, args.exc_traceback)
            logger.error("unraisable_exception", message=args.err_msg or "", exc_info=info)

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    # What a finalizer raises is otherwise written to stderr as it is, and waits for it.
    sys.unraisablehook = unraisable
