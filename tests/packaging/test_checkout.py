"""What a newcomer finds in the checkout agrees with itself."""

import re

import pytest

from reaperd import __version__
from reaperd.config import load
from tests.packaging.conftest import ROOT, committed_files
from tests.packaging.test_wheel import PROJECT

# In pieces, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a path of one machine": "|".join(("/" + "work/", "/" + "root/", "/" + "home/[a-z]", "/tmp/" + "venv")),
    "the host of a package registry": "|".join(
        host.replace("|", r"\.")
        for host in ("pypi|" + "org", "python" + "hosted", "registry|" + "npmjs", "proxy|" + "golang", "crates|" + "io")
    ),
    "a secret": "|".join(
        ("AKIA(?!.*(?:FAKE|EXAMPLE))" + "[0-9A-Z]{16}", "BEGIN [A-Z ]*" + "PRIVATE KEY", "ghp_" + "[A-Za-z0-9]{36}")
    ),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_committed_file_holds(what):
    pattern = re.compile(FORBIDDEN[what])
    texts = ((path, path.read_text(encoding="utf-8", errors="replace")) for path in committed_files())
    found = [path for path, text in texts if pattern.search(text)]

    assert [path.relative_to(ROOT).as_posix() for path in found] == []


@pytest.mark.parametrize("text", ["see /" + "work/x", "https://" + "pypi" + ".org/simple", "AKIA" + "Q" * 16])
def test_what_is_forbidden_would_be_found(text):
    assert any(re.search(pattern, text) for pattern in FORBIDDEN.values())


def test_there_is_one_version():
    assert PROJECT["version"] == __version__


def test_the_changelog_begins_with_what_is_not_released_and_ends_below_this_version():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert headings[0] == "Unreleased"
    assert headings[1:2] in ([], [__version__])


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "examples").glob("*.toml")))
def test_every_example_is_a_configuration(name):
    assert load(ROOT / "examples" / name, {}).deployment


def test_the_minimal_example_stands_in_the_readme_as_it_is():
    example = (ROOT / "examples" / "reaperd.minimal.toml").read_text(encoding="utf-8")

    assert example in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_target_of_the_makefile_is_phony_and_says_what_it_is_for():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z0-9-]+):.*?(?:## (.+))?$", makefile, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)

    assert [name for name, text in targets if not text] == []
    assert phony is not None
    assert sorted(phony[1].split()) == sorted(name for name, _ in targets)
