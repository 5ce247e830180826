"""The switches in front of launches stand in a file of their own; who switched them, and why, is kept here."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reaperd.ledger.acts import keep_act
from reaperd.ledger.connection import Wanted, check_owner, immediate, open_database, translated
from reaperd.ledger.existing import read


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """What an operator switched."""

    cloud: str
    on: bool
    by: str
    reason: str
    at: datetime


def keep_switch(path: Path, wanted: Wanted, switch: Switch) -> None:
    """Write what was switched into a ledger that is there.

    Raises:
        LedgerUnusableError: if there is no ledger, it cannot be written, or is another deployment's.
    """
    read(path, lambda connection: check_owner(connection, path, wanted.deployment, wanted.owner_tag))
    connection = open_database(path, wanted, switch.at).conn
    act = "gate_on" if switch.on else "gate_off"
    with translated(path), closing(connection), immediate(connection, path):
        keep_act(connection, switch.at, act, switch.by, switch.reason, {"cloud": switch.cloud})
