"""The text that a new machine runs at its first boot, with its variables in it. Pure.

The SDK encodes what it is given once. Whatever comes from here is plain text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

MAX_BYTES = 16 * 1024
"""EC2's limit, before the encoding."""

ENV_FILE = "/etc/reaperd/worker.env"
"""Where a machine without a script of its own finds its variables, in a form that a shell can read."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "zsh"})
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
_BEGINNINGS = (b"#", b"Content-Type:", b"MIME-Version:", b"\x1f\x8b")
"""Of all that cloud-init understands; the last one is gzip."""


class UserDataError(Exception):
    """The text cannot be given to a machine. Stays inside this package."""

    def __init__(self, code: str, detail: str) -> None:
        """Keep our own code, in snake_case."""
        self.code = code
        super().__init__(detail)


def rendered(user_data: str, env: Mapping[str, str]) -> str:
    """Return the text with the variables exported before its first command; empty when there is neither.

    Into a shell script they are written behind its first line. Without a script they become one, which leaves them in
    ENV_FILE for the services of the image. Whoever may describe the machine can read them: they are no place for a
    secret.

    Raises:
        UserDataError: if a name is none, a value cannot be written, the text is no shell script although there are
            variables, it is encoded already, or all of it is longer than EC2 takes.
    """
    _require_plain(user_data)
    text = _with(user_data, "".join(f"export {name}={_quoted(name, env[name])}\n" for name in sorted(env)))
    _require_short(text)
    return text


def _with(user_data: str, exports: str) -> str:
    if not exports:
        return user_data
    if not user_data.strip():
        return _file_of(exports)
    first, newline, rest = user_data.partition("\n")
    if not _is_for_shell(first):
        code = "env_without_script"
        detail = f"env can only be written into a shell script, and user_data begins with {first[:40]!r}"
        raise UserDataError(code, f"{detail}. Begin it with #!/bin/sh, or set the variables in it yourself")
    # On one line with the interpreter nothing can follow, so a script of that line alone gets its end.
    return f"{first}{newline or chr(10)}{exports}{rest}"


def _file_of(exports: str) -> str:
    end = "END_OF_ENV"
    while end in exports:
        end += "_"
    folder = ENV_FILE.rpartition("/")[0]
    return f"#!/bin/sh\numask 077\nmkdir -p {folder}\ncat >{ENV_FILE} <<'{end}'\n{exports}{end}\n"


def _quoted(name: str, value: str) -> str:
    """Return the value as a shell reads it back, whatever is in it: only the quote ends a quotation."""
    if not _NAME.fullmatch(name):
        code = "env_name"
        raise UserDataError(code, f"env: {name!r} is not the name of a variable")
    if "\0" in value:
        code = "env_value"
        raise UserDataError(code, f"env: the value of {name} holds a NUL, which no variable can")
    return "'" + value.replace("'", "'\\''") + "'"


def _is_for_shell(first_line: str) -> bool:
    """Return whether a shell runs the script that begins so: `#!/bin/sh -e`, `#!/usr/bin/env -S bash`."""
    words = first_line.removeprefix("#!").split() if first_line.startswith("#!") else []
    programs = [word.rpartition("/")[2] for word in words if not word.startswith("-") and "=" not in word]
    if programs and programs[0] == "env":
        del programs[0]
    return bool(programs) and programs[0] in _SHELLS


def _require_plain(user_data: str) -> None:
    if not user_data or not _BASE64.fullmatch(user_data):
        return
    try:
        inside = base64.b64decode(user_data, validate=False)
    except binascii.Error:
        return
    if inside.startswith(_BEGINNINGS):
        code = "user_data_encoded"
        raise UserDataError(code, "user_data is base64 already; give the plain text, it is encoded once on its way")


def _require_short(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        code = "user_data_text"
        raise UserDataError(code, f"user_data, or a value of env, is no text: {error.reason}") from error
    if size > MAX_BYTES:
        code = "user_data_too_long"
        detail = f"user_data with env is {size} bytes, and EC2 takes {MAX_BYTES}"
        raise UserDataError(code, f"{detail}. Let a short script fetch the rest")
