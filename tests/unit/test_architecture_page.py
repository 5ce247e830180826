"""The architecture page names the layers that import-linter enforces, in the same order."""

import re
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "architecture.md").read_text()


def _contract(identity: str) -> list[str]:
    settings = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == identity)
    return [name.strip() for layer in layers for name in layer.split("|")]


def _section(title: str) -> str:
    return _PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _described(title: str) -> dict[str, str]:
    parts = re.split(r"^### `(\w+)`$", _section(title), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_page_describes_the_layers_of_the_contract_in_its_order():
    assert list(_described("Inside `reaperd`, from the outside in")) == _contract("application-layers")


def test_the_page_describes_the_packages_of_the_contract():
    assert sorted(_described("The packages")) == sorted(_contract("packages"))


@pytest.mark.parametrize("layer", _contract("application-layers"))
def test_the_picture_shows_every_layer(layer):
    picture = _PAGE.split("```")[1]

    assert re.search(rf"(?<!\w){layer}(?!\w)", picture)


@pytest.mark.parametrize("layer", _contract("application-layers"))
def test_each_layer_is_told_what_it_must_not_know(layer):
    assert re.search(r"\bmust\s+not\b", _described("Inside `reaperd`, from the outside in")[layer])


@pytest.mark.parametrize("page", sorted(path.name for path in (_ROOT / "docs").rglob("*.md")))
def test_a_link_to_another_page_leads_somewhere(page):
    path = next((_ROOT / "docs").rglob(page))
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text())

    assert [target for target in targets if not (path.parent / target).exists()] == []
