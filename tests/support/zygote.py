"""A process with the whole program imported, which forks a command for everybody who asks.

A cold `python -m reaperd` spends nine tenths of its time on imports and on the SDK's descriptions of AWS. A forked one
is a process of its own all the same: its pid, its environment, its exit code, its threads and its death are what a
cold one's are.

`python -m tests.support.zygote SOCKET` serves until its stdin ends. One connection, one command: a line of JSON with
`argv`, `env`, `cwd`, `out`, `err` and perhaps `crash` and `file_size` goes in, `{"pid": …}` comes back at once and
`{"code": …}` when it has ended, negative for a signal.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import resource
import selectors
import socket
import sys
import tempfile
import threading
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from tests.support.crash import Crash
from tests.support.ec2 import FaultyEc2
from tests.support.site import WEST, Site

PRELOADED = (
    "reaperd.cli.exits",
    "reaperd.cli.operators",
    "reaperd.cli.output",
    "reaperd.cli.reconcile",
    "reaperd.config",
    "reaperd.report.document",
    "reaperd.report.events",
    "reaperd.report.table",
    "reaperd.wiring",
)


def main(path: str) -> None:
    """Serve on a Unix socket."""
    warm_up()
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(path)
        listener.listen(64)
        waiting.register(listener, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        print("ready", flush=True)  # noqa: T201  # the parent waits for it
        while True:
            for key, _ in waiting.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is not listener:
                    _bury(waiting, key)
                elif (command := _born(listener, waiting)) is not None:
                    _let_go(waiting, listener)
                    become(command)


def warm_up() -> None:
    """Import the program and run every step of a pass once, in this process: what is lazy or cached is then there."""
    for module in PRELOADED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder, FaultyEc2() as cloud:
        site = Site(folder=Path(folder), cloud=cloud)
        site.set_up()
        site.tracked()
        site.orphan(WEST)
        os.environ.update(site.environment())
        for command in ("plan", "once"):
            _run(command, "--config", str(site.config), "--format", "json")
    gc.collect()
    gc.freeze()


def _run(*argv: str) -> None:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        importlib.import_module("reaperd.cli").main(argv, standalone_mode=False)


def become(command: dict[str, Any]) -> None:
    """Turn this process into the command. What it was is forgotten."""
    for number, target in ((1, command["out"]), (2, command["err"])):
        file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(command["env"])
    time.tzset()
    os.chdir(command["cwd"])
    sys.argv = ["reaperd", *command["argv"]]
    if "file_size" in command:
        # Writing past it fails as it does on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (command["file_size"], resource.RLIM_INFINITY))
    if command.get("crash"):
        Crash(**command["crash"]).arm()
    _end(_exit_code_of_main())


def _exit_code_of_main() -> int:
    try:
        importlib.import_module("reaperd.cli").main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _end(code: int) -> None:
    """Do what the interpreter does at its end, but for taking everything to pieces, which takes longest here."""
    threading._shutdown()  # waits for threads that are no daemons
    # The command is over; what measures it may write again.
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _born(listener: socket.socket, waiting: selectors.BaseSelector) -> dict[str, Any] | None:
    """Fork for one caller; the child gets the command, the parent None."""
    caller, _ = listener.accept()
    with caller.makefile("r", encoding="utf-8") as lines:
        command: dict[str, Any] = json.loads(lines.readline())
    pid = os.fork()
    if pid == 0:
        caller.close()
        return command
    caller.sendall(json.dumps({"pid": pid}).encode() + b"\n")
    waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, caller))
    return None


def _let_go(waiting: selectors.BaseSelector, listener: socket.socket) -> None:
    """Close what is the zygote's, in its child."""
    for key in list(waiting.get_map().values()):
        if key.data is not None:
            os.close(key.fd)
            key.data[1].close()
    waiting.close()
    listener.close()


def _bury(waiting: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    pid, caller = key.data
    waiting.unregister(key.fileobj)
    os.close(key.fd)
    _, status = os.waitpid(pid, 0)
    with caller:
        try:
            caller.sendall(json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return  # nobody waits any more


if __name__ == "__main__":
    main(sys.argv[1])
