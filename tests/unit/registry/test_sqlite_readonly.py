"""Opening a SQLite file without a trace of the reader, whatever its journal and whoever may write it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from registry.model import RegistryFault
from registry.sqlite_readonly import ReadOnlyOpenError, read_apart, read_only, read_whole

ROOT = Path(__file__).parents[3]
NOBODY = 65534
SHORT = timedelta(milliseconds=50)


def written(path: Path, journal: str, rows: int = 3) -> sqlite3.Connection:
    """Return the open connection of the writer."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute(f"PRAGMA journal_mode={journal}")
    writer.execute("CREATE TABLE t (id TEXT PRIMARY KEY NOT NULL, filler TEXT NOT NULL) STRICT")
    insert(writer, *(f"w-{number}" for number in range(rows)))
    return writer


def insert(writer: sqlite3.Connection, *ids: str) -> None:
    writer.execute("BEGIN IMMEDIATE")
    writer.executemany("INSERT INTO t VALUES (?, ?)", [(each, "x" * 200) for each in ids])
    writer.execute("COMMIT")


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM t NOT INDEXED").fetchone()[0])


def count_in(path: Path, timeout: timedelta = SHORT) -> int:
    return read_whole(path, timeout, count)


def files(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.parent.iterdir()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "fleet"
    folder.mkdir()
    return folder / "file.db"


@pytest.fixture
def closed_wal(path: Path) -> Path:
    written(path, "wal").close()
    return path


def count_without_permission_to_write(path: Path) -> str:
    """Return what a user reads who may write neither the file nor its folder, in a process of its own."""
    if os.access(path.parent, os.X_OK):
        for each in (*path.parent.iterdir(), path.parent):
            each.chmod(each.stat().st_mode & ~0o222)
    code = (
        "import os, sys; from datetime import timedelta; from pathlib import Path\n"
        "from registry.sqlite_readonly import ReadOnlyOpenError, read_whole\n"
        # Root may write everything, whatever the modes say.
        f"if os.getuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "def count(connection): return connection.execute('SELECT count(*) FROM t').fetchone()[0]\n"
        "try: print(read_whole(Path(sys.argv[1]), timedelta(milliseconds=50), count))\n"
        "except ReadOnlyOpenError as error: print(error)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    fault, _, _ = answer.stdout.strip().partition(": ")
    return fault


@pytest.mark.parametrize("journal", ["wal", "delete", "truncate", "persist"])
def test_a_closed_file_is_read_and_left_as_it_was(path, journal):
    written(path, journal).close()
    before = files(path)

    assert count_in(path) == 3
    assert files(path) == before


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_file_with_a_living_writer_is_read_with_its_last_commit(path, journal):
    with closing(written(path, journal)) as writer:
        insert(writer, "late")

        assert count_in(path) == 4


def test_an_empty_wal_that_was_left_over_is_nothing(closed_wal):
    closed_wal.with_name("file.db-wal").touch()
    before = files(closed_wal)

    assert count_in(closed_wal) == 3
    assert files(closed_wal) == before


def test_the_wal_of_a_killed_writer_is_read_and_neither_checkpointed_nor_removed(path):
    kill_a_writer(path, "wal", "")
    before = files(path)

    assert count_in(path) == 300
    assert {name: before[name] for name in ("file.db", "file.db-wal")}.items() <= files(path).items()


def kill_a_writer(path: Path, journal: str, last_words: str) -> None:
    code = (
        "import os, sys; from pathlib import Path; from tests.unit.registry.test_sqlite_readonly import written\n"
        f"writer = written(Path(sys.argv[1]), {journal!r}, 300)\n{last_words}\nos._exit(9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False, capture_output=True, cwd=ROOT)
    assert killed.returncode == 9, killed.stderr


def test_a_write_that_broke_off_half_way_is_damage_and_stays_for_a_writer_to_undo(path):
    kill_a_writer(
        path,
        "delete",
        "writer.execute('PRAGMA cache_size=1'); writer.execute('BEGIN'); writer.execute('DELETE FROM t')",
    )
    before = files(path)

    with pytest.raises(ReadOnlyOpenError) as refused:
        count_in(path)

    assert refused.value.fault is RegistryFault.DAMAGED
    assert "half-way" in refused.value.detail
    assert files(path) == before


class TestWithoutPermissionToWrite:
    @pytest.fixture
    def path(self):
        # Not below tmp_path: every pytest that starts makes that private again.
        with TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            yield Path(folder) / "file.db"
            Path(folder).chmod(0o755)

    def test_a_wal_file_whose_writer_stopped_and_took_the_wal_along(self, closed_wal):
        assert count_without_permission_to_write(closed_wal) == "3"

    def test_a_wal_file_whose_writer_lives(self, path):
        with closing(written(path, "wal")):
            assert count_without_permission_to_write(path) == "3"

    def test_a_wal_file_whose_writer_was_killed(self, path):
        kill_a_writer(path, "wal", "")

        assert count_without_permission_to_write(path) == "300"

    def test_a_wal_without_its_index_is_refused_rather_than_left_out(self, path):
        kill_a_writer(path, "wal", "")
        path.with_name("file.db-shm").unlink()

        assert count_without_permission_to_write(path) == RegistryFault.PERMISSION

    def test_a_wal_whose_index_a_writer_is_about_to_make(self, path):
        with closing(written(path, "wal")):
            # By another process: closing the file here would drop the writer's locks.
            code = "import sys; open(sys.argv[1], 'r+b').write(bytes(136))"
            subprocess.run([sys.executable, "-c", code, f"{path}-shm"], check=True)

            assert count_without_permission_to_write(path) == RegistryFault.CHANGED_WHILE_READ

    def test_a_file_with_a_rollback_journal(self, path):
        written(path, "delete").close()

        assert count_without_permission_to_write(path) == "3"

    def test_a_file_that_may_not_be_read(self, closed_wal):
        closed_wal.chmod(0o000)

        assert count_without_permission_to_write(closed_wal) == RegistryFault.PERMISSION

    def test_a_folder_that_may_not_be_searched(self, closed_wal):
        closed_wal.parent.chmod(0o600)

        assert count_without_permission_to_write(closed_wal) == RegistryFault.PERMISSION


@pytest.mark.parametrize(
    "name", ["with space", "what?", "a#b", "100%41", "semi;colon&mode=rwc", "grün", "-dash", "'quote'"]
)
def test_any_name_is_read_as_it_stands(path, name):
    named = path.with_name(name)
    written(named, "wal").close()

    assert count_in(named) == 3


def test_a_path_that_begins_with_two_slashes_is_no_host_name(closed_wal):
    assert count_in(Path(f"/{closed_wal}")) == 3


def test_a_symbolic_link_is_followed_to_the_wal_beside_its_target(path, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with closing(written(path, "wal")):
        assert count_in(link) == 3


class TestFaults:
    def fault(self, path: Path) -> RegistryFault:
        before = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
        with pytest.raises(ReadOnlyOpenError) as refused:
            count_in(path)
        assert before == (sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else [])
        return refused.value.fault

    def test_missing(self, path):
        assert self.fault(path) is RegistryFault.MISSING

    def test_a_folder_of_its_path_is_missing(self, path):
        assert self.fault(path / "x" / "y.db") is RegistryFault.MISSING

    def test_a_link_to_nothing(self, path):
        path.symlink_to(path.with_name("gone.db"))

        assert self.fault(path) is RegistryFault.MISSING

    def test_a_link_to_itself(self, path):
        path.symlink_to(path)

        assert self.fault(path) is RegistryFault.NOT_A_FILE

    def test_a_folder(self, path):
        path.mkdir()

        assert self.fault(path) is RegistryFault.NOT_A_FILE

    def test_a_named_pipe_does_not_hang(self, path):
        os.mkfifo(path)

        assert self.fault(path) is RegistryFault.NOT_A_FILE

    def test_a_device(self):
        with pytest.raises(ReadOnlyOpenError) as refused:
            count_in(Path("/dev/null"))

        assert refused.value.fault is RegistryFault.NOT_A_FILE

    def test_a_name_that_no_file_can_have(self, path):
        assert self.fault(path.with_name("x" * 300)) is RegistryFault.NOT_A_FILE
        assert self.fault(path.with_name("a\0b")) is RegistryFault.NOT_A_FILE

    def test_zero_bytes(self, path):
        path.touch()

        assert self.fault(path) is RegistryFault.EMPTY_FILE

    @pytest.mark.parametrize(
        "content", [b"x", b"not a database, but a text\n" * 100, bytes(4096), b"SQLite format 3\0"]
    )
    def test_garbage(self, path, content):
        path.write_bytes(content)

        assert self.fault(path) is RegistryFault.NOT_A_DATABASE

    @pytest.mark.parametrize("journal", ["wal", "delete"])
    def test_cut_off(self, path, journal):
        written(path, journal, 300).close()
        os.truncate(path, path.stat().st_size // 2)

        assert self.fault(path) is RegistryFault.DAMAGED

    def test_an_exclusive_writer_with_a_rollback_journal(self, path):
        with closing(written(path, "delete")) as writer:
            writer.execute("BEGIN EXCLUSIVE")

            assert self.fault(path) is RegistryFault.LOCKED

    def test_an_exclusive_writer_with_a_wal_hides_nothing(self, path):
        with closing(written(path, "wal")) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            writer.execute("DELETE FROM t")

            assert count_in(path) == 3

    def test_an_error_of_the_block_is_translated(self, closed_wal):
        with pytest.raises(ReadOnlyOpenError, match="no such table"), read_only(closed_wal, SHORT) as connection:
            connection.execute("SELECT * FROM nowhere")


class TestAWriterInBetween:
    def fault(self, path: Path, disturb: Callable[[], object]) -> RegistryFault:
        with pytest.raises(ReadOnlyOpenError) as refused:
            self.read(path, disturb)
        return refused.value.fault

    def read(self, path: Path, disturb: Callable[[], object]) -> None:
        with read_only(path, SHORT) as connection:
            count(connection)
            disturb()

    def test_a_commit_and_close_throws_the_reading_away(self, closed_wal):
        fault = self.fault(closed_wal, lambda: add_and_close(closed_wal, "late"))

        assert fault is RegistryFault.CHANGED_WHILE_READ

    def test_a_writer_that_only_opened_it_throws_the_reading_away(self, closed_wal):
        with closing(sqlite3.connect(closed_wal)) as writer:
            fault = self.fault(closed_wal, lambda: count(writer))

        assert fault is RegistryFault.CHANGED_WHILE_READ

    @pytest.mark.parametrize("journal", ["wal", "delete"])
    def test_another_file_in_its_place_throws_the_reading_away(self, path, journal):
        written(path, journal).close()
        other = path.with_name("other.db")
        written(other, journal, 9).close()

        fault = self.fault(path, lambda: other.replace(path))

        assert fault is RegistryFault.CHANGED_WHILE_READ

    @pytest.mark.parametrize("error", [sqlite3.DatabaseError(), ReadOnlyOpenError(RegistryFault.BAD_ROW, "torn")])
    def test_what_looks_like_damage_then_is_not_called_so(self, closed_wal, error):
        def disturb() -> None:
            add_and_close(closed_wal, "late")
            raise error

        assert self.fault(closed_wal, disturb) is RegistryFault.CHANGED_WHILE_READ

    def test_a_wal_that_went_is_why_an_opening_failed(self, path):
        def disturb() -> None:
            path.with_name("file.db-wal").unlink()
            raise opening_error(path)

        with closing(written(path, "wal")):
            assert self.fault(path, disturb) is RegistryFault.CHANGED_WHILE_READ

    def test_a_commit_to_the_wal_is_not_why_something_is_wrong(self, path):
        with closing(written(path, "wal")) as writer:

            def disturb() -> None:
                insert(writer, "late")
                raise ReadOnlyOpenError(RegistryFault.BAD_ROW, "a row is bad")

            assert self.fault(path, disturb) is RegistryFault.BAD_ROW

    def test_the_reading_starts_again(self, closed_wal):
        intruders = ["one", "two"]

        def work(connection: sqlite3.Connection) -> int:
            seen = count(connection)
            if intruders:
                add_and_close(closed_wal, intruders.pop())
            return seen

        assert read_whole(closed_wal, SHORT, work) == 5

    def test_it_gives_up_when_that_never_ends(self, closed_wal):
        def work(connection: sqlite3.Connection) -> None:
            add_and_close(closed_wal, f"late-{count(connection)}")

        with pytest.raises(ReadOnlyOpenError) as refused:
            read_whole(closed_wal, SHORT, work)

        assert refused.value.fault is RegistryFault.CHANGED_WHILE_READ


class TestReadingApart:
    @pytest.mark.parametrize("journal", ["wal", "delete", "truncate", "persist"])
    def test_a_writer_commits_at_once_while_it_is_read(self, path, journal):
        with closing(written(path, journal)) as writer:
            writer.execute("PRAGMA busy_timeout = 0")

            def work(connection: sqlite3.Connection) -> tuple[int, int]:
                before = count(connection)
                insert(writer, "late")
                return before, count(connection)

            assert read_apart(path, SHORT, work) == (3, 3)
            assert count_in(path) == 4

    def test_a_writer_that_comes_and_goes_does_not_spoil_it(self, closed_wal):
        def work(connection: sqlite3.Connection) -> int:
            add_and_close(closed_wal, "late")
            return count(connection)

        assert read_apart(closed_wal, SHORT, work) == 3

    def test_a_writer_waits_for_whoever_reads_too_much_to_copy(self, path):
        with closing(written(path, "delete")) as writer:
            writer.execute("PRAGMA busy_timeout = 0")

            def work(connection: sqlite3.Connection) -> int:
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    insert(writer, "late")
                writer.execute("ROLLBACK")
                return count(connection)

            assert read_apart(path, SHORT, work, at_most=path.stat().st_size - 1) == 3

    def test_it_leaves_the_file_as_it_was(self, closed_wal):
        before = files(closed_wal)

        assert read_apart(closed_wal, SHORT, count) == 3
        assert files(closed_wal) == before

    def test_what_is_wrong_with_the_copy_is_told_like_what_is_wrong_with_the_file(self, closed_wal):
        with pytest.raises(ReadOnlyOpenError, match="no such table") as refused:
            read_apart(closed_wal, SHORT, lambda copy: copy.execute("SELECT * FROM nowhere"))
        assert refused.value.fault is RegistryFault.DAMAGED

    def test_an_exclusive_writer_is_waited_for_and_then_told(self, path):
        with closing(written(path, "delete")) as writer:
            writer.execute("BEGIN EXCLUSIVE")

            with pytest.raises(ReadOnlyOpenError) as refused:
                read_apart(path, SHORT, count)
        assert refused.value.fault is RegistryFault.LOCKED


def test_a_second_hard_link_is_refused_because_the_wal_stands_beside_the_first(path, tmp_path):
    written(path, "wal").close()
    other = tmp_path / "elsewhere.db"
    os.link(path, other)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        insert(writer, "w-new")

        with pytest.raises(ReadOnlyOpenError) as caught:
            count_in(other)

    assert caught.value.fault is RegistryFault.ALONE


def test_a_file_that_is_mounted_by_itself_is_refused(closed_wal, tmp_path):
    alone = tmp_path / "alone here.db"
    alone.touch()
    code = (
        "from datetime import timedelta; from pathlib import Path\n"
        "from registry.sqlite_readonly import ReadOnlyOpenError, read_whole\n"
        "try: read_whole(Path(r'%s'), timedelta(seconds=1), lambda c: None); print('read')\n"
        "except ReadOnlyOpenError as error: print(error.fault)"
    )
    script = 'mount --bind "$1" "$2" && exec "$3" -c "$4"'
    arguments = [str(closed_wal), str(alone), sys.executable, code % alone]
    run = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "_", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if "Operation not permitted" in run.stderr:
        pytest.skip("this machine lets nobody mount in a namespace of their own")

    assert (run.stdout.strip(), run.stderr) == ("alone", "")


def opening_error(path: Path) -> sqlite3.Error:
    with pytest.raises(sqlite3.OperationalError, match="unable to open") as error:
        sqlite3.connect(path / "nowhere")
    return error.value


def add_and_close(path: Path, *ids: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        insert(writer, *ids)


def test_reading_does_not_drop_the_locks_of_a_writer_in_the_same_process(path):
    with closing(written(path, "delete")) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ReadOnlyOpenError):
            count_in(path)

        assert count_in_another_process(path) == RegistryFault.LOCKED


def count_in_another_process(path: Path) -> str:
    code = (
        "import sys; from pathlib import Path; from registry.sqlite_readonly import ReadOnlyOpenError\n"
        "from tests.unit.registry.test_sqlite_readonly import count_in\n"
        "try: print(count_in(Path(sys.argv[1])))\n"
        "except ReadOnlyOpenError as error: print(error.fault)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()
