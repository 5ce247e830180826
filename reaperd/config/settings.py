"""The whole file as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from providers.model import TagKeys
from reaperd.config.fields import AbsolutePath, Label, Name, Price, Priced
from reaperd.config.rules import broken_rules
from reaperd.config.tables import (
    AlertsTable,
    AuditTable,
    HttpTable,
    LeaseTable,
    LedgerTable,
    LogTable,
    ProviderTable,
    ReconcileTable,
    RegistryTable,
    Table,
    TagsTable,
)
from reaperd.core.model import Mode

DEFAULT_STATE_DIR = Path("/var/lib/reaperd")
RULE_BROKEN = "rule_broken"
"""The type of the one error that stands for all broken rules."""


class Settings(Table):
    """What concerns the whole. Everything else stands in a table of its own."""

    deployment: Name
    """The value of the ownership tag. Compared exactly; a name that is valid as a tag or label on every cloud."""
    mode: Mode = Mode.DRY_RUN
    """Whether orphans are terminated (`enforce`) or only shown (`dry-run`). The environment can only ask for less."""
    state_dir: AbsolutePath = DEFAULT_STATE_DIR
    """The folder of `ledger.db`, on a local disk. When not set: `$STATE_DIRECTORY`, as systemd sets it."""
    tags: TagsTable = TagsTable()
    registry: RegistryTable
    reconcile: ReconcileTable = ReconcileTable()
    lease: LeaseTable = LeaseTable()
    ledger: LedgerTable = LedgerTable()
    audit: AuditTable = AuditTable()
    prices: Annotated[Mapping[Priced, Price], Label("table of numbers")] = Field(default_factory=dict)
    """US dollars an hour: `"m5.large" = 0.096`. `"PROVIDER/TYPE"` and `"PROVIDER/REGION/TYPE"` hold before `"TYPE"`."""
    alerts: AlertsTable = AlertsTable()
    http: HttpTable = HttpTable()
    log: LogTable = LogTable()
    providers: tuple[ProviderTable, ...]

    @property
    def enforcing(self) -> bool:
        """True when the file asks for terminations."""
        return self.mode is Mode.ENFORCE

    @property
    def ledger_path(self) -> Path:
        """Return where the ledger is."""
        return self.state_dir / "ledger.db"

    @property
    def tag_keys(self) -> TagKeys:
        """Return the tag keys as the providers take them."""
        return self.tags.keys

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        if broken := broken_rules(self.model_dump()):
            text = "; ".join(str(problem) for problem in broken)
            raise PydanticCustomError(RULE_BROKEN, "{text}", {"text": text})
        return self


NEED_A_RESTART = (
    "deployment",
    "state_dir",
    "tags.owner",
    "registry.path",
    "http.listen",
    "http.web_config_file",
    "log.format",
)
"""What a running daemon began with and cannot change: whose ledger it is, where it listens, how it logs."""


def needs_restart(old: Settings, new: Settings) -> tuple[str, ...]:
    """Return the keys that differ and that a running daemon cannot take over."""
    return tuple(key for key in NEED_A_RESTART if _value(old, key) != _value(new, key))


def _value(settings: Settings, dotted: str) -> object:
    value: object = settings
    for part in dotted.split("."):
        value = getattr(value, part)
    return value
