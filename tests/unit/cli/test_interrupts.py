"""Ctrl-C ends a command wherever Python was when it came."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from reaperd.cli.interrupts import AGAIN_SECONDS

PROGRAM = """\
import os, signal, sys, time
from reaperd.cli.interrupts import interrupt_surely

class Fragile:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

{before}
interrupt_surely()
print(signal.getsignal(signal.SIGINT), flush=True)
{interrupted}
try:
    time.sleep(30)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
IN_A_FINALIZER = "Fragile()"
WHERE_IT_IS_RAISED = "import threading; threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()"


def ended(interrupted: str, before: str = "") -> tuple[subprocess.CompletedProcess[str], float]:
    program = PROGRAM.format(interrupted=interrupted, before=before)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    return done, time.monotonic() - began


@pytest.mark.parametrize("where", [IN_A_FINALIZER, WHERE_IT_IS_RAISED])
def test_it_ends_what_waits(where: str):
    done, seconds = ended(where)

    assert done.stdout.endswith("interrupted\n")
    assert seconds < 15
    # It shows that the first one was lost, and is no part of what is promised.
    assert ("Exception ignored in" in done.stderr) == (where == IN_A_FINALIZER)


def test_it_is_raised_once_where_once_is_enough():
    done, _ = ended(WHERE_IT_IS_RAISED)

    assert done.returncode == 0
    assert done.stderr == ""
    assert AGAIN_SECONDS > 1


def test_a_signal_that_is_ignored_stays_ignored():
    # As a shell leaves it to what it runs in the background.
    done, _ = ended("sys.exit(0)", before="signal.signal(signal.SIGINT, signal.SIG_IGN)")

    assert done.stdout == f"{signal.SIG_IGN}\n"
