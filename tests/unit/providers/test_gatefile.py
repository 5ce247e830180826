import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from providers.errors import GateFileError
from providers.gatefile import Closure, FileGate

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def gate(tmp_path):
    gate = FileGate(tmp_path / "gate.json")
    gate.turn_on("aws")
    return gate


def test_what_was_switched_off_is_off_and_nothing_else(gate):
    gate.turn_off("aws", reason="leaked key", at=NOW)

    assert not gate.provision_allowed("aws")
    assert gate.provision_allowed("gcp")
    assert gate.closed() == {"aws": Closure(since=NOW, reason="leaked key")}


def test_what_was_switched_on_again_is_on(gate):
    gate.turn_off("aws", reason="r", at=NOW)
    gate.turn_off("gcp", reason="r", at=NOW)

    gate.turn_on("aws")

    assert gate.provision_allowed("aws")
    assert not gate.provision_allowed("gcp")


def test_other_gates_of_the_file_see_it_at_once(gate):
    other = FileGate(gate.path)
    gate.turn_off("aws", reason="r", at=NOW)

    assert not other.provision_allowed("aws")


def test_switching_off_twice_keeps_the_first_time_and_reason(gate):
    gate.turn_off("aws", reason="first", at=NOW)
    gate.turn_off("aws", reason="second", at=NOW + timedelta(days=1))

    assert gate.closed()["aws"] == Closure(since=NOW, reason="first")


def test_a_gate_without_a_file_is_closed_and_says_what_to_type(tmp_path):
    gate = FileGate(tmp_path / "gate.json")

    with pytest.raises(GateFileError, match="reaperd gate on CLOUD"):
        gate.provision_allowed("aws")


def test_switching_off_makes_the_file(tmp_path):
    gate = FileGate(tmp_path / "gate.json")

    gate.turn_off("aws", reason="r", at=NOW)

    assert not gate.provision_allowed("aws")
    assert gate.provision_allowed("gcp")


OFF = {"aws": {"since": NOW.isoformat(), "reason": "r"}}
BROKEN = {
    "empty": "",
    "cut off": '{"version": 1, "off": {"a',
    "not an object": "[]",
    "no version": '{"off": {}}',
    "newer": '{"version": 2, "off": {}}',
    "no list": '{"version": 1}',
    "a list": '{"version": 1, "off": ["aws"]}',
    "no reason": '{"version": 1, "off": {"aws": {"since": "2026-01-01T00:00:00+00:00"}}}',
    "no zone": '{"version": 1, "off": {"aws": {"since": "2026-01-01T00:00:00", "reason": "r"}}}',
    "padded name": json.dumps({"version": 1, "off": {" aws": OFF["aws"]}}),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_no_gate_closes_every_cloud_and_is_not_written_over(gate, text):
    gate.path.write_text(text)

    for ask in (gate.provision_allowed, gate.turn_on):
        with pytest.raises(GateFileError):
            ask("gcp")

    assert gate.path.read_text() == text


def test_a_file_cut_off_anywhere_closes_every_cloud(gate):
    gate.turn_off("aws", reason="r", at=NOW)
    whole = gate.path.read_bytes()

    for length in range(len(whole.rstrip())):
        gate.path.write_bytes(whole[:length])
        with pytest.raises(GateFileError):
            gate.provision_allowed("gcp")


@pytest.mark.parametrize("bad", [b"\xff", b"\x00"], ids=["no text", "zero"])
def test_a_file_of_other_bytes_closes_every_cloud(gate, bad):
    gate.path.write_bytes(bad)

    with pytest.raises(GateFileError):
        gate.provision_allowed("aws")


def test_a_folder_in_the_place_of_the_file_closes_every_cloud(tmp_path):
    with pytest.raises(GateFileError, match="cannot be read"):
        FileGate(tmp_path).provision_allowed("aws")


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(GateFileError, match="was not changed"):
        FileGate(tmp_path / "none" / "gate.json").turn_on("aws")


def test_nothing_is_left_beside_the_file(gate):
    gate.turn_off("aws", reason="r", at=NOW)

    assert list(gate.path.parent.iterdir()) == [gate.path]


def test_the_file_keeps_its_mode_and_may_be_read_by_others_at_first(gate):
    assert gate.path.stat().st_mode & 0o777 == 0o644
    gate.path.chmod(0o640)

    gate.turn_off("aws", reason="r", at=NOW)

    assert gate.path.stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed_and_stays_one(gate, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(gate.path)

    FileGate(link).turn_off("aws", reason="r", at=NOW)

    assert link.is_symlink()
    assert not gate.provision_allowed("aws")


@pytest.mark.parametrize("name", ["", " aws", "aws\n"])
def test_a_name_that_no_cloud_has_is_refused(gate, name):
    before = gate.path.read_text()

    with pytest.raises(ValueError, match="no name of a cloud"):
        gate.turn_off(name, reason="r", at=NOW)

    assert gate.path.read_text() == before


def test_writers_at_the_same_time_lose_nothing_and_readers_see_a_whole_file(gate):
    clouds = [f"c{n}" for n in range(8)]
    done = threading.Event()
    faults = []

    def read():
        while not done.is_set():
            try:
                gate.closed()
            except GateFileError as error:
                faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    writers = [
        threading.Thread(target=gate.turn_off, args=(cloud,), kwargs={"reason": "r", "at": NOW}) for cloud in clouds
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()

    assert sorted(gate.closed()) == clouds
    assert faults == []
