"""The fleet of the story, to be played with: an embedded AWS that stays until it is told to go."""

from __future__ import annotations

import shlex
import signal
import socket
import threading
from pathlib import Path
from types import FrameType

from reaperd.clock import SystemClock
from reaperd.demo.cloud import EmbeddedAws
from reaperd.demo.story import Say, Stage, populate
from reaperd.errors import ReaperdError


class FolderUnusableError(ReaperdError):
    """The folder could not be made. Nothing was changed."""

    def __init__(self, folder: Path, cause: str) -> None:
        """Name the folder and what stood in the way."""
        super().__init__(f"{folder} cannot be made ({cause}): name a folder that does not exist yet")


def serve(folder: Path, say: Say) -> None:
    """Make a folder with a configuration, a registry and the variables to use them; serve its AWS until a signal.

    The folder stays.

    Raises:
        FolderUnusableError: if it exists, or cannot be made.
    """
    try:
        folder.mkdir()
    except OSError as error:
        raise FolderUnusableError(folder, error.strerror or str(error)) from error
    asked = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        asked.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    home = folder.absolute()
    with EmbeddedAws() as aws:
        populate(Stage(home, aws, SystemClock().now(), say))
        variables = {
            **aws.environment,
            "REAPERD_CONFIG": str(home / "reaperd.toml"),
            # The usual one may be that of a real daemon on this machine.
            "REAPERD_HTTP__LISTEN": f"127.0.0.1:{_free_port()}",
        }
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        (home / "env").write_text("".join(lines), encoding="utf-8")
        say(f"An embedded AWS with ten machines runs until Ctrl-C. In another terminal:\n\n    . {folder}/env\n")
        asked.wait()
    say("The embedded AWS is gone.")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as tried:
        port: int = tried.getsockname()[1]
        return port
