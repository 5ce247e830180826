"""A process with pytest and the libraries imported, which forks a child for every run of some tests.

A run of a single file of tests spends most of its time on starting Python and on these imports. Nothing of the tree is
imported here: each child imports it anew, as it stands by then.

`python nursery.py` serves in the tree that is its working directory. A line of JSON with `arguments`, for pytest, and
`timeout`, in seconds, goes in. Another with pytest's exit `code` and what it printed, `output`, comes back; the code is
null when it hung, and below zero when a signal ended it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

SHARED = ("botocore.session", "hypothesis.strategies", "hypothesis.stateful")
"""What takes long to import."""
PUT_UP_WITH = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""That they are imported already."""
STEP_SECONDS = 0.01


def serve() -> None:
    """Answer until nobody asks any more."""
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` writes it
    import pytest  # noqa: F401, PLC0415 - as much as can be is imported once

    for name in SHARED:
        __import__(name)
    for line in sys.stdin:
        asked = json.loads(line)
        code, output = run(asked["arguments"], asked["timeout"])
        print(json.dumps({"code": code, "output": output}), flush=True)  # noqa: T201 - the answer


def run(arguments: Sequence[str], timeout: float) -> tuple[int | None, str]:
    """Run pytest in a child, and return its exit code and what it printed."""
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            _child(arguments, printed.fileno())
        code = _end_of(child, timeout)
        printed.seek(0)
        return code, printed.read().decode(errors="replace")


def _child(arguments: Sequence[str], printed: int) -> None:
    # With a group of its own, so that nothing that it starts outlives it.
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    code = 70
    try:
        import pytest  # noqa: PLC0415

        code = int(pytest.main([*arguments, *PUT_UP_WITH]))
    except BaseException:  # noqa: BLE001 - nobody is there to catch it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_of(child: int, timeout: float) -> int | None:
    until = time.monotonic() + timeout
    ended, status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < until:
        time.sleep(STEP_SECONDS)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return None
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    assert Path("pyproject.toml").exists(), "this is no copy of the tree"
    serve()
