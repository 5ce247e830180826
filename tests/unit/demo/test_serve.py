"""`demo --serve` makes its folder, or says why not. That it serves is shown by docs/quickstart.md and its test."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from reaperd.cli.demo import demo


@pytest.mark.parametrize(
    ("folder", "cause"), [("taken", "File exists"), ("nowhere/below", "No such file or directory")]
)
def test_a_folder_that_cannot_be_made_is_named_and_nothing_is_changed(tmp_path, monkeypatch, folder, cause):
    monkeypatch.chdir(tmp_path)
    Path("taken").mkdir()

    done = CliRunner().invoke(demo, ["--serve", folder])

    assert done.exit_code == 1
    assert f"{folder} cannot be made ({cause}): name a folder that does not exist yet" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]
