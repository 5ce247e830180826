"""Whoever types what docs/quickstart.md shows sees what it shows."""

import pytest

from tests.docs.markdown import read
from tests.docs.quickstart import PAGE, Step, alike, play, steps, written

PLAYED = "$ echo {}\n1\n$ cat <<END\n> a\n> END\na\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_page_shows_what_its_commands_print():
    text = read(PAGE)

    played = [step for block in play(text) for step in block]

    shown = [step for block in steps(text) for step in block]
    wrong = [
        (old.typed, new.printed) for old, new in zip(shown, played, strict=True) if not alike(old.printed, new.printed)
    ]
    assert wrong == [], "if that is intended: python -m tests.docs.quickstart"


def test_a_block_is_commands_and_what_each_prints():
    ((first, second),) = steps(f"text\n```console\n{PLAYED}```\ntext\n")

    assert (first.command, first.printed) == ("echo {}", "1\n")
    assert (second.command, second.printed) == ("cat <<END\na\nEND", "a\n")


def test_times_and_random_names_do_not_matter_and_all_else_does():
    assert alike("at 2026-01-10 12:00:00 UTC, 1.4 s,  2h 3m", "at 2026-01-11 13:00:01 UTC,\n10.5 s, 4d 5h")
    assert not alike("2 machines", "3 machines")
    assert not alike("terminated i-1", "terminated i-2")


def test_the_page_is_rewritten_only_where_something_else_is_printed():
    page = "a\n```console\n$ one\nat 1.5\n$ two\nold\n```\nb\n"

    after = written(page, [[Step("$ one", "at 2.5\n"), Step("$ two", "new\n")]])

    assert after == "a\n```console\n$ one\nat 1.5\n$ two\nnew\n```\nb\n"
