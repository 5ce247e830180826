"""The registry file keeps the promises of the ports, in both journal modes."""

import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest

from registry.conformance import LONG_AGO, NOON, RegistryConformance, RegistryUnderTest
from registry.sqlite.admin import create
from registry.sqlite.reader import SqliteRegistry
from registry.sqlite.writer import SqliteRegistryWriter
from registry.times import format_time


class TestSqliteRegistry(RegistryConformance):
    @pytest.fixture(params=["wal", "delete"])
    def registry(self, request, tmp_path):
        path = tmp_path / "registry.db"
        create(path, "prod")
        clock = [NOON]

        def execute(sql: str, *values: str) -> None:
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute(sql, values)

        execute(f"PRAGMA journal_mode = {request.param}")
        return RegistryUnderTest(
            reader=SqliteRegistry(path, timedelta(seconds=1)),
            writer=SqliteRegistryWriter(path, "prod", now=lambda: clock[0]),
            set_now=lambda now: clock.__setitem__(0, now),
            rewind=lambda: execute("UPDATE meta SET updated_at = ?", format_time(LONG_AGO)),
        )
