"""A line on stderr that shows a long listing move. Only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reaperd.report.visible import visible

if TYPE_CHECKING:
    from providers.base import Progress
    from providers.model import Scope


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """Give something that takes progress; None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - only where somebody watches
    from rich.text import Text  # noqa: PLC0415

    totals = _Totals()
    with Console(stderr=True).status("asking the clouds") as status:

        def told(scope: Scope, *, pages: int, instances: int) -> None:
            status.update(Text(visible(totals.after(scope, pages, instances))))

        yield told


class _Totals:
    """The sums over all scopes; told from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_scope: dict[Scope, tuple[int, int]] = {}

    def after(self, scope: Scope, pages: int, instances: int) -> str:
        with self._lock:
            self._by_scope[scope] = (pages, instances)
            total = sum(count for _, count in self._by_scope.values())
            return f"listed {total} instances in {len(self._by_scope)} scopes (now {scope}, page {pages})"
