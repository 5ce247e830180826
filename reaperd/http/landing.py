"""The page at `/`, for a person who followed a link. It has no script and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from reaperd.report.visible import visible

_SHOWN = (
    ("deployment", "Deployment"),
    ("mode", "Mode"),
    ("leader", "Leader"),
    ("readiness", "Ready"),
    ("last_look", "Last complete look"),
)

_LINKS = (
    ("/metrics", "metrics, for Prometheus"),
    ("/api/v1/status", "status, as JSON; for a person: <code>reaperd status</code>"),
    ("/healthz", "whether the scheduler progresses"),
    ("/readyz", "whether the daemon does its work"),
)

_PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>reaperd</title></head>
<body>
<h1>reaperd {version}</h1>
<table>
{rows}
</table>
<ul>
{links}
</ul>
</body>
</html>
"""


def landing_page(status: Mapping[str, object]) -> str:
    """Return the page. Every text in it is escaped, whoever wrote it."""
    links = "\n".join(f'<li><a href="{path}">{path}</a>: {what}</li>' for path, what in _LINKS)
    return _PAGE.format(version=_text(status.get("version", "")), rows="\n".join(_rows(status)), links=links)


def _rows(status: Mapping[str, object]) -> Iterator[str]:
    for key, name in _SHOWN:
        if key in status:
            yield f'<tr><th scope="row">{name}</th><td>{_told(status[key])}</td></tr>'


def _told(value: object) -> str:
    match value:
        case None:
            return "not known"
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return "<br>".join(f"{_text(key)}: {_told(inner)}" for key, inner in value.items()) or "none yet"
        case _:
            return _text(value)


def _text(value: object) -> str:
    return escape(visible(str(value)))
