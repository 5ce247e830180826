"""The registry as a SQLite file. Here the reading side; writers import `registry.sqlite.writer`, which is heavier."""

from registry.sqlite.reader import SqliteRegistry, verify

__all__ = ["SqliteRegistry", "verify"]
