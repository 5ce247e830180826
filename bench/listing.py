"""reaperd's listing alone, with everything that proves it whole: what a pass of the daemon asks the clouds."""

from __future__ import annotations

import os

from bench.looks import asked, take
from reaperd.cli.garbage import collect_rarely
from reaperd.clock import SystemClock
from reaperd.config import load
from reaperd.wiring.clouds import build_lister

if __name__ == "__main__":
    _asked = asked()
    # As every command does.
    collect_rarely()
    _lister = build_lister(load(_asked.config, os.environ), SystemClock())
    take(lambda: [each.ref.instance_id for each in _lister.list_owned().instances], _asked)
