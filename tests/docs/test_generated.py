"""What is generated was generated anew after the last change of the code."""

import pytest

from tests.docs.markdown import read
from tests.docs.pages import BLOCKS, ROOT, blocks_of, filled, pages


@pytest.mark.parametrize("name", pages(ROOT))
def test_the_committed_page_is_the_generated_one(name):
    assert read(name) == pages(ROOT)[name], "run `make docs`"


def test_every_block_stands_on_a_page_once():
    found = [block for name in pages(ROOT) for block in blocks_of(read(name))]

    assert sorted(found) == sorted(BLOCKS)


def test_what_stands_around_a_block_is_left_alone():
    page = "before\n<!-- made by `make docs`: why a machine goes -->\nold\n<!-- end -->\nafter\n"

    assert filled(page).startswith("before\n<!-- made by `make docs`: why a machine goes -->\n\n| Reason |")
    assert filled(page).endswith(" |\n\n<!-- end -->\nafter\n")
    assert filled(filled(page)) == filled(page)
