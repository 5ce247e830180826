"""The log of a long-running process: one way for everybody's lines, and nothing on it that must not be there."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import json
import logging
import os
import re
import resource
import select
import socket
import subprocess
import sys
import threading
import time
import tty
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from apscheduler.schedulers.background import BackgroundScheduler

from reaperd.config import LogFormat
from reaperd.report.logs import Logger, build_logger, configure_logs, log_context

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
KEY_ID = "AKIAIOSFODNN7EXAMPLE"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    root = logging.getLogger()
    before = list(root.handlers), root.level, sys.excepthook, threading.excepthook, sys.unraisablehook
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], level, sys.excepthook, threading.excepthook, sys.unraisablehook = before
    root.setLevel(level)
    structlog.reset_defaults()


def configured(stream: io.StringIO, format_: LogFormat | str = "json", **environ: str) -> Logger:
    return configure_logs(format_=format_, now=lambda: NOW, stream=stream, environ=environ)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def only(stream: io.StringIO) -> dict[str, object]:
    told = lines(stream)
    assert len(told) == 1, stream.getvalue()
    return told[0]


# ---------------------------------------------------------------- events


def test_an_event_is_one_line_of_json_with_its_time_level_and_fields(stream: io.StringIO):
    configured(stream).info("pass_finished", seconds=1.5, scopes=("aws/us-east-1",), reason=None, format=LogFormat.AUTO)

    assert only(stream) == {
        "timestamp": "2026-01-10T12:00:00.000Z",
        "level": "info",
        "event": "pass_finished",
        "seconds": 1.5,
        "scopes": ["aws/us-east-1"],
        "reason": None,
        "format": "auto",
    }
    assert list(only(stream))[:3] == ["timestamp", "level", "event"]


@pytest.mark.parametrize(
    ("format_", "stream", "is_json"),
    [
        ("auto", io.StringIO(), True),
        ("auto", Terminal(), False),
        ("json", Terminal(), True),
        ("console", io.StringIO(), False),
        (LogFormat.CONSOLE, io.StringIO(), False),
    ],
)
def test_it_is_json_unless_a_person_watches_or_somebody_asked_otherwise(
    format_: str, stream: io.StringIO, is_json: bool
):
    configured(stream, format_).info("started")

    assert stream.getvalue().startswith("{") is is_json


@pytest.mark.parametrize(
    ("stream", "environ", "coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_only_a_terminal_that_wants_it_gets_colours(stream: io.StringIO, environ: dict[str, str], coloured: bool):
    configured(stream, "console", **environ).info("started")

    assert ("\x1b[" in stream.getvalue()) is coloured


def test_a_format_that_does_not_exist_is_an_error(stream: io.StringIO):
    with pytest.raises(ValueError, match="xml"):
        configured(stream, "xml")


def test_what_is_bound_is_on_every_line_of_the_thread_and_gone_afterwards(stream: io.StringIO):
    logger = configured(stream)
    with log_context(pass_id="p-1", provider="aws"), log_context(region="us-east-1"):
        logger.info("scope_listed")
        logging.getLogger("botocore.retries").warning("again")
    logger.info("idle")

    listed, library, idle = lines(stream)
    bound = {"pass_id": "p-1", "provider": "aws", "region": "us-east-1"}
    assert bound.items() <= listed.items()
    assert bound.items() <= library.items()
    assert idle.keys() == {"timestamp", "level", "event"}


def test_another_threads_binding_is_not_ours(stream: io.StringIO):
    logger = configured(stream)
    with log_context(pass_id="p-1"):
        other = threading.Thread(target=lambda: logger.info("elsewhere"))
        other.start()
        other.join()

    assert "pass_id" not in only(stream)


@pytest.mark.parametrize("text", ["two\nlines", "\r\n", "\x1b[2J", "\u2028", "\x7f", "\udc80", "\x00", "ü€"])
def test_no_text_breaks_a_line_of_json_or_reaches_a_terminal(stream: io.StringIO, text: str):
    configured(stream).warning("termination_failed", detail=text, nested={"name": [text]})

    raw = stream.getvalue()
    assert raw.count("\n") == 1
    assert raw[:-1].isascii()
    assert raw[:-1].isprintable()
    assert (only(stream)["detail"], only(stream)["nested"]) == (text, {"name": [text]})


def test_text_of_strangers_is_made_visible_to_a_person(stream: io.StringIO):
    forged = "i-1\n2026-01-10T12:00:00.000Z [info     ] all_is_well\x1b[2J\u202e"
    configured(stream, "console").warning("leak_found", name=forged, tags={"Name": "a\x1bb"}, odd=Path("a\nb"))

    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().rstrip("\n").isprintable()
    assert re.search(r"i-1\\+n2026.*\\+x1b\[2J\\+u202e", stream.getvalue())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, b"\xff", {1, 2}, object])
def test_whatever_the_value_the_line_is_json(stream: io.StringIO, value: object):
    configured(stream).info("odd", value=value)

    assert "NaN" not in stream.getvalue()
    assert only(stream)["event"] == "odd"


class Untold:
    def __str__(self) -> str:
        raise RuntimeError


def test_a_value_that_cannot_be_told_does_not_end_the_pass(stream: io.StringIO):
    turned: list[object] = []
    turned.append(turned)
    configured(stream).info("odd", value=Untold(), deep=turned)

    assert only(stream)["value"] == "<Untold>"


def test_a_huge_text_is_cut(stream: io.StringIO):
    configured(stream).info("odd", value="x" * 10_000_000)

    assert len(stream.getvalue()) < 9_000
    assert "10,000,000 characters" in stream.getvalue()


# ---------------------------------------------------------------- secrets


def test_secrets_are_taken_out_of_fields_and_of_what_lies_in_them(stream: io.StringIO):
    configured(stream).error(
        "delivery_failed",
        detail=f"refused {KEY_ID}",
        password="hunter2",
        pin_token=1234,
        channel={"url": "https://hooks.slack.com/services/T0/B0/XXX", "api_key": ["hunter2"], "name": "ops"},
        instance_id="i-0abc",
    )

    told = only(stream)
    assert "hunter2" not in stream.getvalue()
    assert KEY_ID not in stream.getvalue()
    assert (told["password"], told["pin_token"], told["instance_id"]) == ("[redacted]", "[redacted]", "i-0abc")
    assert told["channel"] == {"url": "https://hooks.slack.com/[redacted]", "api_key": "[redacted]", "name": "ops"}


def broken() -> None:
    hunter = "s3cr3t-in-a-local"
    msg = f"AWS was not found with {KEY_ID}\nover {len(hunter)} lines"
    raise LookupError(msg)


@pytest.mark.parametrize("format_", ["json", "console"])
def test_a_trace_shows_where_and_neither_secrets_nor_variables(stream: io.StringIO, format_: str):
    logger = configured(stream, format_)
    try:
        broken()
    except LookupError:
        logger.exception("pass_failed")

    told = stream.getvalue()
    assert "LookupError" in told
    assert "test_logs.py" in told
    assert "s3cr3t-in-a-local" not in told.replace('hunter = "s3cr3t-in-a-local"', "")
    assert KEY_ID not in told


def test_a_trace_is_structured_in_json(stream: io.StringIO):
    logger = configured(stream)
    try:
        try:
            broken()
        except LookupError as error:
            raise RuntimeError from error
    except RuntimeError as error:
        logger.error("pass_failed", exc_info=error)  # noqa: TRY400 - another way to say it

    exception = only(stream)["exception"]
    assert isinstance(exception, list)
    assert [each["exc_type"] for each in exception] == ["RuntimeError", "LookupError"]
    assert exception[1]["exc_value"] == "AWS was not found with [redacted]\nover 17 lines"
    assert exception[1]["frames"][-1]["name"] == "broken"
    assert not any(frame.get("locals") for each in exception for frame in each["frames"])


def forged() -> None:
    msg = "x\n2026-01-10T12:00:00.000Z [info     ] all_is_well\x1b[2J"
    raise ValueError(msg)


def test_a_line_of_a_trace_cannot_pass_for_an_event(stream: io.StringIO):
    logger = configured(stream, "console")
    try:
        forged()
    except ValueError:
        logger.exception("pass_failed")

    head, *trace = stream.getvalue().splitlines()
    assert "pass_failed" in head
    assert trace
    assert all(line.startswith("    ") and line.isprintable() for line in trace)


# ---------------------------------------------------------------- libraries


def test_what_libraries_log_takes_the_same_way(stream: io.StringIO):
    configured(stream)
    logging.getLogger("urllib3.connectionpool").warning("Retrying after %s: %s", 3, "password=hunter2\nx")

    assert only(stream) == {
        "timestamp": "2026-01-10T12:00:00.000Z",
        "level": "warning",
        "event": "library_log",
        "logger": "urllib3.connectionpool",
        "message": "Retrying after 3: password=[redacted]\nx",
    }


def test_libraries_are_heard_at_warning_and_above(stream: io.StringIO):
    configured(stream)
    chatty = logging.getLogger("botocore.endpoint")
    chatty.setLevel(logging.DEBUG)
    try:
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, 35, logging.ERROR, 99):
            chatty.log(level, "at %s", level)
    finally:
        chatty.setLevel(logging.NOTSET)

    assert [(line["level"], line["message"]) for line in lines(stream)] == [
        ("warning", "at 30"),
        ("warning", "at 35"),
        ("error", "at 40"),
        ("critical", "at 99"),
    ]


def test_a_library_that_logs_wrongly_is_heard_all_the_same(stream: io.StringIO, capsys: pytest.CaptureFixture[str]):
    configured(stream)
    logging.getLogger("odd").error("%d of %d", "no number")  # noqa: PLE1206 - that is the point

    assert only(stream)["message"] == "%d of %d"
    assert capsys.readouterr().err == ""


def test_a_warning_takes_the_same_way(stream: io.StringIO):
    with warnings.catch_warnings():
        configured(stream)
        warnings.simplefilter("always")
        warnings.warn("datetime.utcnow() is deprecated", DeprecationWarning, stacklevel=1)

    told = only(stream)
    assert (told["logger"], told["level"]) == ("py.warnings", "warning")
    assert "utcnow" in str(told["message"])


def test_a_logger_from_structlog_itself_takes_the_same_way(stream: io.StringIO):
    configured(stream)
    structlog.get_logger().error("told", password="hunter2")

    assert only(stream)["password"] == "[redacted]"


def test_a_job_that_raises_is_told_as_json(stream: io.StringIO):
    configured(stream)
    scheduler = BackgroundScheduler(timezone=UTC)
    scheduler.add_job(broken, name="reconcile")
    scheduler.start()
    until = time.monotonic() + 20
    while "library_log" not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.01)
    scheduler.shutdown()

    # It takes a while, in which threads of earlier tests may have something to say.
    of_its_own = [line for line in lines(stream) if line.get("logger") == "apscheduler.executors.default"]
    assert len(of_its_own) == 1, stream.getvalue()
    (told,) = of_its_own
    assert told["level"] == "error"
    assert "reconcile" in str(told["message"])
    assert told["exception"][0]["exc_type"] == "LookupError"  # type: ignore[index]
    assert "s3cr3t-in-a-local" not in stream.getvalue()
    assert KEY_ID not in stream.getvalue()


def test_an_error_that_nobody_caught_takes_the_same_way(stream: io.StringIO):
    configured(stream)
    thread = threading.Thread(target=broken, name="stray")
    thread.start()
    thread.join()
    try:
        broken()
    except LookupError as error:
        sys.excepthook(type(error), error, error.__traceback__)

    first, second = lines(stream)
    assert (first["event"], first["level"], first["thread"]) == ("uncaught_exception", "critical", "stray")
    assert (second["event"], second["level"]) == ("uncaught_exception", "critical")
    assert KEY_ID not in stream.getvalue()


def test_what_a_finalizer_raises_takes_the_same_way(stream: io.StringIO):
    class Fragile:
        def __del__(self) -> None:
            message = f"with {KEY_ID}"
            raise LookupError(message)

    configured(stream)
    Fragile()

    line = only(stream)
    assert (line["event"], line["level"]) == ("unraisable_exception", "error")
    assert KEY_ID not in stream.getvalue()


def test_a_second_setting_up_replaces_the_first(stream: io.StringIO):
    other = Terminal()
    configured(other)
    configured(stream)
    logging.getLogger("any").warning("once")

    assert len(lines(stream)) == 1
    assert other.getvalue() == ""


# ---------------------------------------------------------------- the stream


def into(descriptor: int) -> io.TextIOWrapper:
    return os.fdopen(descriptor, "w", encoding="utf-8", closefd=False)


def test_two_threads_never_share_a_line():
    reader, writer = os.pipe()
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))

    def talk(name: str) -> None:
        for number in range(50):
            # More than a pipe takes whole, and all together less than waits for a reader that comes too slowly.
            logger.info("told", name=name, number=number, filler=[name * 1_100] * 4)

    read: list[bytes] = []

    def drain() -> None:
        while data := os.read(reader, 4_096):
            read.append(data)

    drains = threading.Thread(target=drain)
    drains.start()
    talkers = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
    for talker in talkers:
        talker.start()
    for talker in talkers:
        talker.join()
    os.close(writer)
    drains.join()
    os.close(reader)

    told = [json.loads(line) for line in b"".join(read).splitlines()]
    assert len(told) == 200
    assert all(set("".join(line["filler"])) == {line["name"]} for line in told)


def test_a_line_is_one_write():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.settimeout(5)
        build_logger(as_json=False, now=lambda: NOW, stream=into(theirs.fileno())).info("told", why="x" * 3_000)

        assert ours.recv(65_536).endswith(b"\n")
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_a_reader_that_went_away_ends_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))

    logger.info("told")
    os.close(writer)
    logger.info("told")


def test_a_full_disk_ends_nothing():
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        os.write(descriptor, b"x")

    build_logger(as_json=True, now=lambda: NOW, stream=into(descriptor)).info("told")

    os.close(descriptor)


def test_half_a_line_does_not_spoil_the_next_one(tmp_path: Path):
    path = tmp_path / "log"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with path.open("w") as file:
        logger = build_logger(as_json=True, now=lambda: NOW, stream=file)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
        logger.info("told", filler="x" * 7_000)
        logger.info("told")
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        logger.info("well again")

    half, loss, after = path.read_text().splitlines()
    assert len(half) == 4_096
    assert (json.loads(loss)["event"], json.loads(loss)["lines"]) == ("log_lines_lost", 2)
    assert json.loads(after)["event"] == "well again"


def test_a_pipe_that_somebody_made_non_blocking_gets_whole_lines():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))
    # Sixteen pages are room in a pipe: one of them is left.
    os.write(writer, b"x" * 15 * 4096)

    logger.info("told", filler="x" * 7_000)
    logger.info("well again")

    told = read_until(reader, b"well again").lstrip(b"x").splitlines()
    assert [json.loads(line)["event"] for line in told] == ["told", "well again"]
    os.close(writer)
    os.close(reader)


def test_a_closed_stream_ends_nothing():
    closed = io.StringIO()
    logger = build_logger(as_json=True, now=lambda: NOW, stream=closed)
    closed.close()

    logger.info("told")


# ---------------------------------------------------------------- a stream that takes nothing for now


def filled(writer: int) -> int:
    """Fill a pipe, a socket or a terminal to the last byte; return how many it took. It stays as it was: blocking."""
    os.set_blocking(writer, False)
    taken = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            taken += os.write(writer, b"." * 512)
    with contextlib.suppress(BlockingIOError):
        while True:
            taken += os.write(writer, b".")
    os.set_blocking(writer, True)
    return taken


def read_until(reader: int, wanted: bytes) -> bytes:
    read = b""
    ends_at = time.monotonic() + 10
    while wanted not in read or not read.endswith(b"\n"):
        assert time.monotonic() < ends_at, read[-500:]
        if select.select([reader], [], [], 0.05)[0]:
            read += os.read(reader, 65_536)
    return read


@pytest.fixture(params=["pipe", "socket", "terminal"])
def stalled(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Give both ends of what nobody reads, full."""
    if request.param == "socket":
        reading, writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        reader, writer = reading.detach(), writing.detach()
    else:
        reader, writer = os.pipe() if request.param == "pipe" else os.openpty()
    if request.param == "terminal":
        tty.setraw(writer)
    filled(writer)
    before = set(threading.enumerate())
    yield reader, writer
    os.close(reader)
    # Whoever still waits for it would go on with the next file of that number.
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    os.close(writer)


def test_a_stream_that_nobody_reads_holds_nobody_up(stalled: tuple[int, int]):
    _, writer = stalled
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))
    began = time.monotonic()

    for number in range(1_000):
        logger.info("told", number=number)

    assert time.monotonic() - began < 3
    assert os.get_blocking(writer)


def test_what_was_told_meanwhile_is_read_later_in_order(stalled: tuple[int, int]):
    reader, writer = stalled
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))

    for number in range(100):
        logger.info("told", number=number)

    told = read_until(reader, b'"number": 99').lstrip(b".").splitlines()
    assert [json.loads(line)["number"] for line in told] == list(range(100))


def test_what_was_lost_is_counted_where_it_is_missing(stalled: tuple[int, int]):
    reader, writer = stalled
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))
    for number in range(400):
        logger.info("told", number=number, filler="x" * 6_000)

    read = read_until(reader, b"log_lines_lost")
    logger.info("well again")
    read += read_until(reader, b"well again")

    *kept, loss, after = [json.loads(line) for line in read.lstrip(b".").splitlines()]
    assert [line["number"] for line in kept] == list(range(len(kept)))
    assert 100 < len(kept) < 400
    assert (loss["event"], loss["level"], loss["lines"]) == ("log_lines_lost", "warning", 400 - len(kept))
    assert after["event"] == "well again"


def test_a_stream_that_was_stuck_is_waited_for_again_once_it_is_well():
    reader, writer = os.pipe()
    filled(writer)
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))
    logger.info("told")
    read_until(reader, b"told")

    for number in range(50):
        logger.info("again", number=number)
        # It is out when the call returns: nothing is lost with a process that is killed now.
        assert f'"number": {number}'.encode() in os.read(reader, 65_536)

    os.close(writer)
    os.close(reader)


def test_a_logger_that_is_gone_leaves_no_thread():
    reader, writer = os.pipe()
    before = set(threading.enumerate())
    logger = build_logger(as_json=True, now=lambda: NOW, stream=into(writer))
    logger.info("told")
    started = set(threading.enumerate()) - before

    del logger
    gc.collect()

    for thread in started:
        thread.join(10)
    assert len(started) == 1
    assert set(threading.enumerate()) <= before
    os.close(writer)
    os.close(reader)


# ---------------------------------------------------------------- the journal, and the end of a process

PROGRAM = """
import logging, os, sys
from datetime import datetime, UTC
from reaperd.report.logs import configure_logs
logger = configure_logs(format_=sys.argv[1], now=lambda: datetime(2026, 1, 10, tzinfo=UTC), stream=sys.stderr,
                        environ=os.environ)
logger.info("started")
logging.getLogger("botocore").warning("twice\\nsaid")
try:
    raise ValueError("two\\nlines")
except ValueError:
    logger.exception("pass_failed")
logger.critical("lost")
"""

LAST_WORDS = 'logger.critical("last words"); print("ended", flush=True)'


def program(format_: str, stderr: int, **environ: str) -> int:
    command = [sys.executable, "-c", PROGRAM, format_]
    return subprocess.run(command, stderr=stderr, env={**os.environ, **environ}, timeout=60, check=False).returncode


def journal_of(descriptor: int) -> str:
    about = os.fstat(descriptor)
    return f"{about.st_dev}:{about.st_ino}"


def read_all(descriptor: int) -> list[str]:
    os.set_blocking(descriptor, False)
    return os.read(descriptor, 1_000_000).decode().splitlines()


@pytest.fixture(params=["pipe", "socket"])
def journal(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    if request.param == "pipe":
        reader, writer = os.pipe()
        yield reader, writer
        os.close(reader)
        os.close(writer)
        return
    reading, writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with reading, writing:
        yield reading.fileno(), writing.fileno()


def test_the_journal_gets_the_priority_before_each_line(journal: tuple[int, int]):
    reader, writer = journal
    code = program("auto", writer, JOURNAL_STREAM=journal_of(writer))

    read = read_all(reader)
    assert code == 0
    assert [line[:3] for line in read] == ["<6>", "<4>", "<3>", "<2>"]
    events = [json.loads(line[3:]) for line in read]
    assert [event["event"] for event in events] == ["started", "library_log", "pass_failed", "lost"]


def test_the_journal_gets_it_before_each_line_of_a_trace_too(journal: tuple[int, int]):
    reader, writer = journal
    program("console", writer, JOURNAL_STREAM=journal_of(writer))

    read = read_all(reader)
    assert len(read) > 6
    assert all(re.match(r"<[2346]>\S|<3> {4}", line) for line in read)


def test_another_stream_than_the_journal_gets_none(journal: tuple[int, int]):
    reader, writer = journal
    program("json", writer, JOURNAL_STREAM="1:2")
    program("json", writer)

    assert all(line.startswith("{") for line in read_all(reader))


@pytest.mark.parametrize("format_", ["json", "console"])
def test_a_broken_stderr_does_not_change_how_a_process_ends(format_: str):
    reader, writer = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)

    codes = [program(format_, writer), program(format_, full)]

    os.close(writer)
    os.close(full)
    assert codes == [0, 0]


@pytest.mark.parametrize("format_", ["json", "console"])
def test_a_process_whose_log_nobody_reads_ends_all_the_same(format_: str):
    reader, writer = os.pipe()
    filled(writer)

    code = program(format_, writer)

    os.close(writer)
    os.close(reader)
    assert code == 0


def test_what_waits_at_the_end_is_written_if_it_can_be():
    reader, writer = os.pipe()
    filled(writer)
    command = [sys.executable, "-c", PROGRAM.replace('logger.critical("lost")', LAST_WORDS), "json"]
    with subprocess.Popen(command, stderr=writer, stdout=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stdout is not None
        process.stdout.read(5)

        told = read_until(reader, b"last words")

        assert process.wait(60) == 0
    assert told.lstrip(b".").startswith(b"{")
    os.close(reader)
