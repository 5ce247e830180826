"""Data on stdout, in the format that was asked for."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from reaperd.cli.options import Format

if TYPE_CHECKING:
    from reaperd.config import Settings
    from reaperd.core.findings import Finding
    from reaperd.core.leaks import AuditReport
    from reaperd.core.model import PassReport
    from reaperd.report.document import Document
    from reaperd.report.logs import Logger
    from reaperd.report.paper import Paper
    from reaperd.report.remedies import Whereabouts


def show_pass(report: PassReport, format_: Format, where: Whereabouts, *, everything: bool) -> None:
    """Print one pass."""
    from reaperd.report.document import reconcile_document  # noqa: PLC0415 - heavy
    from reaperd.report.sheet import reconcile_sheet  # noqa: PLC0415
    from reaperd.report.table import draw_pass  # noqa: PLC0415

    match format_:
        case Format.JSON:
            put_json(reconcile_document(report))
        case Format.CSV:
            put(reconcile_sheet(report))
        case Format.TABLE:
            paper = blank_paper()
            draw_pass(report, paper, where, everything=everything)
            put(paper.text())


def show_audit(report: AuditReport, format_: Format, *, everything: bool) -> None:
    """Print one sweep."""
    from reaperd.report.audit_table import draw_audit  # noqa: PLC0415 - heavy
    from reaperd.report.document import audit_document  # noqa: PLC0415
    from reaperd.report.sheet import audit_sheet  # noqa: PLC0415

    match format_:
        case Format.JSON:
            put_json(audit_document(report))
        case Format.CSV:
            put(audit_sheet(report))
        case Format.TABLE:
            paper = blank_paper()
            draw_audit(report, paper, everything=everything)
            put(paper.text())


def show_findings(findings: Sequence[Finding], format_: Format, where: Whereabouts) -> None:
    """Print one examination."""
    from reaperd.report.doctor import draw_findings, findings_document, findings_sheet  # noqa: PLC0415 - heavy

    match format_:
        case Format.JSON:
            put_json(findings_document(findings, where))
        case Format.CSV:
            put(findings_sheet(findings, where))
        case Format.TABLE:
            paper = blank_paper()
            draw_findings(findings, paper, where)
            put(paper.text())


def logger(settings: Settings, format_: Format, *, beside_table: bool) -> Logger | None:
    """Return the log on stderr, or None where it would only say again what the table says.

    That is: to a person at a terminal, and with `beside_table` False to everybody who gets a table.
    """
    from reaperd.clock import SystemClock  # noqa: PLC0415 - heavy
    from reaperd.config import LogFormat  # noqa: PLC0415
    from reaperd.report.logs import build_logger  # noqa: PLC0415

    watched = sys.stderr.isatty()
    if format_ is Format.TABLE and (watched or not beside_table):
        return None
    wanted = settings.log.format
    as_json = not watched if wanted is LogFormat.AUTO else wanted is LogFormat.JSON
    return build_logger(
        as_json=as_json, now=SystemClock().now, stream=sys.stderr, colour=watched and _colours_welcome()
    )


def troubles(least: Literal["info", "warning"] = "warning") -> Logger:
    """Return the log on stderr of a command whose reader has a table, or nothing else to read."""
    from reaperd.clock import SystemClock  # noqa: PLC0415 - heavy
    from reaperd.report.logs import build_logger  # noqa: PLC0415

    watched = sys.stderr.isatty()
    return build_logger(
        as_json=False, now=SystemClock().now, stream=sys.stderr, colour=watched and _colours_welcome(), least=least
    )


def whereabouts(config: Path | None, settings: Settings, *, recorded: bool) -> Whereabouts:
    """Return what the commands that we recommend have to name."""
    from reaperd.report.remedies import Whereabouts  # noqa: PLC0415 - heavy

    return Whereabouts(
        config=None if config is None else str(config),
        ledger=str(settings.ledger_path),
        state_dir=str(settings.state_dir),
        registry=str(settings.registry.path),
        recorded=recorded,
    )


def blank_paper() -> Paper:
    """Return a page as wide as the terminal; where there is none, $COLUMNS or 80 wide, and plain."""
    from reaperd.report.paper import NARROWEST, PLAIN_WIDTH, Paper  # noqa: PLC0415 - heavy

    if sys.stdout.isatty():
        width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns
        return Paper(width=max(width, NARROWEST), colour=_colours_welcome())
    told = os.environ.get("COLUMNS", "")
    return Paper(width=max(int(told), NARROWEST) if told.isascii() and told.isdigit() else PLAIN_WIDTH)


def put_json(document: Document) -> None:
    """Print JSON. It is pure ASCII without control characters, so it is safe on a terminal too."""
    # DEL is the one control character that JSON leaves as it is.
    put(json.dumps(document, indent=2).replace("\x7f", "\\u007f") + "\n")


def put(text: str) -> None:
    """Write to stdout. A reader that had enough is no error: the exit code still tells how the command went."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it ends, and would complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _colours_welcome() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
