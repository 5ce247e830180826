"""Every link inside the project leads somewhere, and every command that a page names exists."""

import re
from collections.abc import Iterator

import click
import pytest

from reaperd.cli import main
from tests.docs.markdown import anchors, blocks, every_page, links, name_of, read, spans
from tests.docs.pages import ROOT

PAGES = [name_of(page) for page in every_page()]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file_and_its_heading(name):
    inside = [link for link in links(read(name)) if "://" not in link and not link.startswith("mailto:")]

    assert [link for link in inside if not leads_somewhere(name, link)] == []


def leads_somewhere(name: str, link: str) -> bool:
    target, _, anchor = link.partition("#")
    path = (ROOT / name).parent / target if target else ROOT / name
    if not path.exists():
        return False
    return not anchor or anchor in anchors(path.read_text(encoding="utf-8"))


def test_the_index_leads_to_every_page():
    pages = {name.removeprefix("docs/") for name in PAGES if name.startswith("docs/")} - {"README.md"}

    assert pages - set(links(read("docs/README.md"))) == set()


@pytest.mark.parametrize("name", PAGES)
def test_every_make_target_that_is_named_exists(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))

    assert [target for target in named_after("make", name) if target not in targets] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_command_that_is_named_exists(name):
    wrong = [words for words in commands_of(name) if not exists(words)]

    assert wrong == []


def commands_of(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the words after `reaperd` in code spans and console blocks."""
    text = read(name)
    typed = [line for block in blocks(text, "console") for line in block.text.splitlines() if line.startswith("$ ")]
    for line in (*spans(text), *(line.removeprefix("$ ") for line in typed)):
        if line.startswith("reaperd "):
            yield tuple(line.split()[1:])


def exists(words: tuple[str, ...]) -> bool:
    group: click.Command = main
    for word in words:
        if not isinstance(group, click.Group) or not re.fullmatch(r"[a-z][a-z-]+", word):
            return True
        command = group.get_command(click.Context(group), word)
        if command is None:
            return False
        group = command
    return True


def named_after(program: str, name: str) -> list[str]:
    """Return the first word after a program in code spans and console blocks."""
    text = read(name)
    typed = [line.removeprefix("$ ") for block in blocks(text, "console") for line in block.text.splitlines()]
    found = [re.match(rf"{program} (?:[A-Z]+=\S+ )*([a-z][\w-]*)", line) for line in (*spans(text), *typed)]
    return [match[1] for match in found if match]
