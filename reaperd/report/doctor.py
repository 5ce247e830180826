"""The findings of an examination, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence

from reaperd.core.findings import CONFIG, Finding, Grade, counted
from reaperd.report.document import Document
from reaperd.report.paper import Paper
from reaperd.report.parts import many
from reaperd.report.remedies import REFUSED, Whereabouts, naming_its_configuration, option
from reaperd.report.sheet import sheet

COLUMNS = ("subject", "grade", "text", "remedy", "scope")

_SHOWN = {Grade.OK: "ok", Grade.WARNING: "warn", Grade.FAILURE: "FAIL"}
_STYLES = {Grade.OK: "", Grade.WARNING: "yellow", Grade.FAILURE: "bold red"}
_FRONT = 19
"""The widest grade and the widest subject, each with its gap."""
_OURSELVES = "reaperd doctor"


def draw_findings(findings: Sequence[Finding], paper: Paper, where: Whereabouts) -> None:
    """Draw each finding with its remedy below it, and the sum last."""
    for finding in findings:
        label = f"{_SHOWN[finding.grade]:<4}  {finding.subject}"
        text = f"{finding.scope}: {finding.text}" if finding.scope else finding.text
        paper.labelled(label, text, _STYLES[finding.grade], width=_FRONT)
        advice, commands = remedy_of_finding(finding, where)
        if advice:
            paper.line(advice, indent=6)
        for command in commands:
            paper.command(command, indent=8)
    paper.line()
    number = counted(findings)
    bad = Grade.FAILURE if number[Grade.FAILURE] else Grade.OK
    paper.line(
        f"{number[Grade.OK]:,} ok, {many(number[Grade.WARNING], 'warning')}, {many(number[Grade.FAILURE], 'failure')}",
        _STYLES[bad],
    )


def findings_document(findings: Sequence[Finding], where: Whereabouts) -> Document:
    """Return the findings as JSON data."""
    return {"kind": "doctor", "findings": [_entry(finding, where) for finding in findings]}


def findings_sheet(findings: Sequence[Finding], where: Whereabouts) -> str:
    """Return one line for every finding."""
    return sheet(COLUMNS, [_entry(finding, where) for finding in findings])


def _entry(finding: Finding, where: Whereabouts) -> Document:
    advice, commands = remedy_of_finding(finding, where)
    return {
        "subject": str(finding.subject),
        "grade": str(finding.grade),
        "text": finding.text,
        "remedy": " ".join([*filter(None, [advice]), *(f"`{command}`" for command in commands)]),
        "scope": finding.scope,
    }


def remedy_of_finding(finding: Finding, where: Whereabouts) -> tuple[str, tuple[str, ...]]:
    """Return what to do and what to type; that of the refusal, where the finding has nothing nearer."""
    if finding.remedy or finding.commands or finding.reason is None:
        advice = naming_its_configuration(finding.remedy, where)
        return advice, tuple(command.replace(CONFIG, option(where)) for command in finding.commands)
    remedy = REFUSED[finding.reason]
    typed = remedy.typed(where, None)
    return remedy.advice, tuple(command for command in typed if not command.startswith(_OURSELVES))
