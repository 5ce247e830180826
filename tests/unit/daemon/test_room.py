"""What a pass took and let go of is the kernel's again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """\
from pathlib import Path
from threading import Thread

from reaperd.daemon.room import give_back

kept = []

def look():
    machines = [bytearray(2_000) for _ in range(50_000)]
    # What lives on keeps the heap from being cut at its end.
    kept.append(machines.pop())

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // 2**20

for _ in range(2):
    thread = Thread(target=look)
    thread.start()
    thread.join()
before = resident()
give_back()
print(before, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps house in its own way")
def test_what_threads_that_are_gone_took_is_given_back():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)

    before, after = map(int, done.stdout.split())

    assert before - after > 50
