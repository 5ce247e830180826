"""What becomes of the rows of another book."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from registry.errors import RegistryImportError
from registry.importing import from_cedana, read_csv, read_json
from registry.model import Worker, WorkerState

ROW = {"worker_id": "w-1", "provider": "aws", "region": "us-east-1", "state": "running"}
HEADER = "worker_id,provider,region,state"


def problems(read, *arguments) -> tuple[str, ...]:
    with pytest.raises(RegistryImportError) as caught:
        read(*arguments)
    return caught.value.problems


def cedana(**columns: object) -> dict[str, object]:
    """Return a row as gorm names its columns."""
    facts = {"id": 7, "cedana_id": "c-7", "allocated_id": "i-7", "provider": "aws", "region": "us-east-1"}
    return (
        facts | {"state": "running", "created_at": "2024-03-01 10:00:00.123456789+00:00", "deleted_at": None} | columns
    )


def one(row) -> Worker:
    (worker,) = from_cedana([row]).workers
    return worker


class TestOurOwn:
    def test_a_table_is_read_by_its_columns_in_any_order(self):
        header = "state,region,provider,worker_id,instance_id,heartbeat_at"
        table = f"{header}\nrunning,us-east-1,aws,w-1,i-1,2026-01-10T12:00:00Z\n"

        (worker,) = read_csv(table).workers

        beat = datetime(2026, 1, 10, 12, tzinfo=UTC)
        assert worker == Worker(
            worker_id="w-1",
            provider="aws",
            region="us-east-1",
            instance_id="i-1",
            state=WorkerState.RUNNING,
            heartbeat_at=beat,
        )

    def test_a_zone_is_taken_over_where_the_book_has_one(self):
        (told,) = read_csv(f"{HEADER},zone\nw-1,aws,us-east-1,running,us-east-1a\n").workers
        (empty,) = read_csv(f"{HEADER},zone\nw-1,aws,us-east-1,running,\n").workers
        (silent,) = read_json(json.dumps([ROW])).workers

        assert (told.zone, empty.zone, silent.zone) == ("us-east-1a", None, None)

    def test_a_zone_that_only_looks_like_one_is_refused(self):
        (problem,) = problems(read_csv, f"{HEADER},zone\nw-1,aws,us-east-1,running,us-east-1a \n")

        assert "zone" in problem

    def test_what_kept_a_spreadsheet_from_reading_a_formula_is_taken_back(self):
        (worker,) = read_csv(f"{HEADER},model\n'-w,aws,us-east-1,running,'plain\n").workers

        assert (worker.worker_id, worker.model) == ("-w", "'plain")

    def test_a_list_and_what_registry_list_prints_are_read_alike(self):
        told = {"kind": "registry", "workers": [{**ROW, "instance_id": None, "unreadable": ["created_at"]}]}

        assert read_json(json.dumps(told)) == read_json(json.dumps([ROW]))

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"worker_id": ""}, "no worker_id"),
            ({"region": None}, "no region"),
            ({"state": "Running"}, "'Running' is none of"),
            ({"instanceId": "i-1"}, "'instanceId'"),
            ({"instance_id": 17}, "is no text: 17"),
            ({"created_at": "yesterday"}, "'yesterday' is no time"),
            ({"worker_id": " w-1"}, "has blanks around it"),
        ],
        ids=str,
    )
    def test_a_row_that_cannot_be_used_refuses_the_book(self, change, told):
        (problem,) = problems(read_json, json.dumps([ROW | change]))

        assert problem.startswith("row 1: ")
        assert told in problem

    def test_every_row_that_is_wrong_is_named(self):
        found = problems(
            read_csv, f"{HEADER}\nw-1,aws,us-east-1,up\nw-2,aws,us-east-1,running\nw-3,,us-east-1,running\n"
        )

        assert [problem.partition(":")[0] for problem in found] == ["line 2", "line 4"]

    @pytest.mark.parametrize("header", ["worker_id,provider,region", f"{HEADER},instance"])
    def test_a_table_without_a_column_or_with_a_strange_one_is_refused(self, header):
        assert "column" in " ".join(problems(read_csv, header + "\n"))

    @pytest.mark.parametrize("text", ["", "{", "7", "[7]", '{"rows": []}'])
    def test_what_is_no_list_of_rows_is_refused(self, text):
        assert len(problems(read_json, text)) == 1

    def test_a_line_with_more_cells_than_columns_is_refused(self):
        (problem,) = problems(read_csv, f"{HEADER}\nw-1,aws,us-east-1,running,i-1\n")

        assert "more cells than columns" in problem

    def test_a_worker_that_is_there_twice_is_refused(self):
        assert problems(read_json, json.dumps([ROW, ROW])) == ("worker 'w-1' is there more than once",)


class TestCedana:
    def test_a_running_instance_is_a_running_worker(self):
        assert one(cedana()) == Worker(
            worker_id="c-7",
            provider="aws",
            region="us-east-1",
            instance_id="i-7",
            state=WorkerState.RUNNING,
            created_at=datetime(2024, 3, 1, 10, 0, 0, 123456, tzinfo=UTC),
        )

    @pytest.mark.parametrize(
        ("state", "becomes"),
        [
            ("pending", WorkerState.RUNNING),
            ("stopping", WorkerState.DRAINING),
            ("shutting-down", WorkerState.DRAINING),
            ("terminated", WorkerState.TERMINATED),
            ("rebooting", WorkerState.RUNNING),
            ("", WorkerState.RUNNING),
        ],
    )
    def test_a_state_protects_unless_it_is_known_not_to(self, state, becomes):
        assert one(cedana(state=state)).state is becomes

    def test_a_deleted_row_is_not_live_whatever_its_state(self):
        deleted = cedana(deleted_at="2024-03-02 10:00:00+00:00")

        assert one(deleted).state is WorkerState.TERMINATED
        assert "Deleted there: 1." in " ".join(from_cedana([deleted]).remarks)

    def test_an_instance_without_a_machine_is_launching(self):
        assert one(cedana(allocated_id="")).state is WorkerState.LAUNCHING
        assert one(cedana(allocated_id="", state="terminated")).state is WorkerState.TERMINATED

    def test_without_an_id_of_cedana_the_number_of_the_row_is_the_worker(self):
        assert one(cedana(cedana_id="")).worker_id == "cedana-7"

    def test_two_rows_of_one_machine_both_stay(self):
        told = from_cedana([cedana(), cedana(id=8, cedana_id="c-8", deleted_at="2024-03-02 10:00:00+00:00")])

        assert [(row.instance_id, row.state.is_live) for row in told.workers] == [("i-7", True), ("i-7", False)]
        assert any("named by 2 rows" in remark for remark in told.remarks)

    @pytest.mark.parametrize("gpus", ["{not json", '{"Gpus":[{"Name":"A10G"}]}'])
    def test_gpus_are_left_out_and_said_to_be(self, gpus):
        told = from_cedana([cedana(gp_us=gpus)])

        assert told.workers == (one(cedana()),)
        assert any("GPUs" in remark for remark in told.remarks)

    def test_the_keys_of_its_json_are_read_too(self):
        row = {"ID": 7, "allocated_id": "i-7", "provider": "aws", "Region": "us-east-1", "state": "running", "GPU": ""}

        assert one(row | {"CreatedAt": "2024-03-01T10:00:00Z", "DeletedAt": None}).worker_id == "cedana-7"

    @pytest.mark.parametrize(
        ("deleted", "live"),
        [
            ("0001-01-01T00:00:00Z", True),
            ("0001-01-01 00:00:00+00:00", True),
            ({"Time": "0001-01-01T00:00:00Z", "Valid": False}, True),
            ({"Time": "2024-03-02T10:00:00Z", "Valid": False}, True),
            ("some time ago", True),
            ("2024-03-02 10:00:00.123456789+00:00", False),
            ({"Time": "2024-03-02T10:00:00Z", "Valid": True}, False),
        ],
        ids=str,
    )
    def test_a_time_that_go_has_not_set_deletes_nothing(self, deleted, live):
        told = from_cedana([cedana(deleted_at=deleted)])

        assert [row.state.is_live for row in told.workers] == [live]
        assert any("Deleted there: 1" in remark for remark in told.remarks) == (not live)

    def test_an_instance_without_a_region_refuses_the_book(self):
        assert problems(from_cedana, [cedana(region="")]) == ("instance 7: its region '' is blank",)
