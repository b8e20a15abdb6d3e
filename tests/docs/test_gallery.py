"""The gallery: short scripts that a stranger copies; the integration series executes them."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import time
import warnings
from pathlib import Path

import jax
import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import jaxbandits as jb
from jaxbandits._plots import COLOURS

FOLDER = Path(__file__).resolve().parents[2] / "docs/gallery"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"))
NAMES = [path.stem for path in SCRIPTS]
LONGEST = 75
MOST_SECONDS = 40.0  # of processor: 20 on an idle machine, and room for a busy one, where the same takes twice that


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


@pytest.mark.integration
@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_each_draws_in_time(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning, 20 s on an idle machine; every panel has content and words on its axes."""
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    began = time.process_time()
    with mpl.rc_context(), warnings.catch_warnings(), jax.numpy_rank_promotion("allow"):
        warnings.simplefilter("error", UserWarning)
        runpy.run_path(str(path), run_name="__main__")
        seconds = time.process_time() - began
        figures = [plt.figure(number) for number in plt.get_fignums()]
        for number, figure in enumerate(figures):
            figure.savefig(tmp_path / f"{number}.png", dpi=60)
        for axes in (axes for figure in figures for axes in figure.axes):
            assert axes.lines or axes.collections or axes.patches or axes.containers
            assert axes.get_xlabel() or axes.get_ylabel()
    plt.close("all")
    pictures = list(tmp_path.glob("*.png"))
    assert pictures and all(picture.stat().st_size > 5_000 for picture in pictures)
    assert seconds <= MOST_SECONDS, f"{seconds:.1f} s"
