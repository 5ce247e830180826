"""The command line. Heavy imports happen inside the commands, so that `--help` answers at once."""

from __future__ import annotations

import click

from reaperd import __version__
from reaperd.cli.garbage import collect_rarely
from reaperd.cli.lazy import LazyGroup
from reaperd.cli.streams import occupy_streams

COMMANDS = {
    "run": "reaperd.cli.run:run",
    "plan": "reaperd.cli.reconcile:plan",
    "once": "reaperd.cli.reconcile:once",
    "audit": "reaperd.cli.audit:audit",
    "status": "reaperd.cli.status:status",
    "health": "reaperd.cli.status:health",
    "history": "reaperd.cli.history:history",
    "explain": "reaperd.cli.history:explain",
    "approve": "reaperd.cli.operators:approve",
    "hold": "reaperd.cli.operators:hold",
    "resume": "reaperd.cli.operators:resume",
    "alerts": "reaperd.cli.alarms:alerts",
    "mute": "reaperd.cli.mutes:mute",
    "unmute": "reaperd.cli.mutes:unmute",
    "registry": "reaperd.cli.registry:registry",
    "quote": "reaperd.cli.quote:quote",
    "types": "reaperd.cli.typelist:types",
    "launch": "reaperd.cli.launch:launch",
    "gate": "reaperd.cli.gate:gate",
    "conformance": "reaperd.cli.conformance:conformance",
    "check-config": "reaperd.cli.check:check_config",
    "doctor": "reaperd.cli.doctor:doctor",
    "rules": "reaperd.cli.rules:rules",
    "iam-policy": "reaperd.cli.iam:iam_policy",
    "demo": "reaperd.cli.demo:demo",
}
"""Where each command is defined: a module, loaded when the command is asked for, and a name in it."""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="reaperd")
def main() -> None:
    """Find cloud machines that nobody tracks, and end them.

    Rehearsal is the default: nothing is terminated before the configuration
    says mode = "enforce".

    \b
    Examples:
      reaperd check-config         is the configuration right?
      reaperd doctor               is everything else right, too?
      reaperd plan                 what would be terminated, and why?
      reaperd hold --reason TEXT   stop every termination, now

    \b
    Exit codes: 0 done; 1 an error; 2 wrong usage; 3 findings; 4 a listing was
    incomplete; 5 a safety stop; 75 another process holds the lease;
    78 bad configuration.
    """
    occupy_streams()
    collect_rarely()
