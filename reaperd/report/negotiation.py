"""Which of the two text formats a scraper wants. Pure.

Not left to prometheus_client 0.26: it ignores weights, writes the version that a client sent into its own answer, and
calls OpenMetrics `text/plain` when the client named no version.
"""

from __future__ import annotations

from collections.abc import Iterator

_OPENMETRICS = "application/openmetrics-text"
_PLAIN = ("text/plain", "text/*", "*/*")
_VERSIONS = ("", "1.0.0")
"""What is written; OpenMetrics 0.0.1 is another format."""


def prefers_openmetrics(accept: str) -> bool:
    """Say whether an Accept header prefers OpenMetrics 1.0 to plain text. In doubt it is plain."""
    openmetrics = max((weight for kind, version, weight in _wishes(accept) if _is_ours(kind, version)), default=0.0)
    plain = max((weight for kind, _, weight in _wishes(accept) if kind in _PLAIN), default=0.0)
    return openmetrics > 0 and openmetrics >= plain


def _is_ours(kind: str, version: str) -> bool:
    return kind == _OPENMETRICS and version in _VERSIONS


def _wishes(accept: str) -> Iterator[tuple[str, str, float]]:
    for entry in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        told = dict(part.split("=", 1) for part in parameters if "=" in part)
        yield kind, told.get("version", "").strip('"'), _weight(told.get("q", "1"))


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
