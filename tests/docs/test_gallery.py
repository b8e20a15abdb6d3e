"""The gallery: short scripts that a stranger copies; `make docs` executes them."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.style
import pytest

import jaxbandits as jb
from jaxbandits._plots import COLOURS

FOLDER = Path(__file__).resolve().parents[2] / "docs/gallery"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"))
NAMES = [path.stem for path in SCRIPTS]
LONGEST = 75


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_there_are_enough() -> None:
    assert len(SCRIPTS) >= 15
    papers = {name.removeprefix("plot_paper_") for name in NAMES if name.startswith("plot_paper_")}
    assert papers == {"omega_ucb", "rcucb", "b_zoom", "suak", "rcb"}
    assert (FOLDER / "GALLERY_HEADER.rst").is_file()


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_each_is_short_has_a_title_and_draws(path: Path) -> None:
    lines = text(path).splitlines()
    assert len(lines) <= LONGEST and max(map(len, lines)) <= 120
    tree = ast.parse(text(path))
    title, rule, empty, *rest = (ast.get_docstring(tree) or "").splitlines()
    assert re.search(r"\?", title)
    assert len(rule) >= len(title)
    assert set(rule) == {"="}
    assert empty == ""
    assert rest
    attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert (
        "subplots" in attributes
        and "show" in attributes
        and re.search(r"ylabel|yticklabels", text(path))
    )
    closing = text(path).rsplit("# %%\n", 1)[1]
    assert all(line.startswith("#") for line in closing.splitlines()), (
        "it must end with a sentence on what one sees"
    )
    assert len(closing.split()) >= 12


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_each_uses_what_is_public(path: Path) -> None:
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert not re.search(r"(^|\.)_", f"{node.module}.{alias.name}"), (
                    f"{node.module}.{alias.name}"
                )
                if (node.module or "").startswith("jaxbandits"):
                    package = importlib.import_module(node.module or "")
                    assert alias.name in getattr(package, "__all__", ()), (
                        f"{node.module}.{alias.name}"
                    )
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_"), node.attr
            if isinstance(node.value, ast.Name) and node.value.id == "jb":
                assert node.attr in dir(jb), node.attr


def test_the_style_is_that_of_all_pictures() -> None:
    """Colours of palette.py, in its order, and no two looks the same in grey."""
    with mpl.style.context("jaxbandits.pictures"):
        cycle = mpl.rcParams["axes.prop_cycle"].by_key()
    assert [f"#{x.removeprefix('#')}" for x in cycle["color"]] == list(COLOURS)
    assert len(set(zip(cycle["color"], cycle["linestyle"], strict=True))) == len(COLOURS)
    assert cycle["linestyle"][:4] == ["-", "--", "-.", ":"]
