"""The settings: what the file and the environment may say, and the only home of pydantic.

`load(path, env)` returns frozen `Settings` or raises `reaperd.errors.ConfigError` with every problem at once.
"""

from reaperd.config.advice import misfits, warnings
from reaperd.config.durations import format_duration, parse_duration
from reaperd.config.loading import DEFAULT_PATH, config_path, load, load_for_the_brake
from reaperd.config.settings import NEED_A_RESTART, Settings, needs_restart
from reaperd.config.tables import (
    AlertsTable,
    AuditTable,
    AwsProviderTable,
    BreakerTable,
    ChannelTable,
    ChannelType,
    HttpTable,
    IgnoreTable,
    LeaseTable,
    LedgerTable,
    LogFormat,
    LogTable,
    PluginProviderTable,
    ProviderTable,
    ReconcileTable,
    RegistryTable,
    TagsTable,
)
from reaperd.core.model import Mode

__all__ = [
    "DEFAULT_PATH",
    "NEED_A_RESTART",
    "AlertsTable",
    "AuditTable",
    "AwsProviderTable",
    "BreakerTable",
    "ChannelTable",
    "ChannelType",
    "HttpTable",
    "IgnoreTable",
    "LeaseTable",
    "LedgerTable",
    "LogFormat",
    "LogTable",
    "Mode",
    "PluginProviderTable",
    "ProviderTable",
    "ReconcileTable",
    "RegistryTable",
    "Settings",
    "TagsTable",
    "config_path",
    "format_duration",
    "load",
    "load_for_the_brake",
    "misfits",
    "needs_restart",
    "parse_duration",
    "warnings",
]
