"""The gallery: short scripts that a stranger copies. The site executes them; so does the integration series."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import matplotlib as mpl
import matplotlib.style
import pytest

import jaxbandits as jb
from jaxbandits._reports.palette import COLOURS

FOLDER = Path(__file__).resolve().parent.parent / "docs/gallery"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"))
NAMES = [path.stem for path in SCRIPTS]
LONGEST, MOST_SECONDS = 60, 20.0
RUN = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.show = lambda: None
runpy.run_path(sys.argv[1], run_name="__main__")
for number in plt.get_fignums():
    figure = plt.figure(number)
    figure.savefig(f"{sys.argv[2]}/{number}.png", dpi=80)
    for axes in figure.axes:
        drawn = bool(axes.lines or axes.collections or axes.patches or axes.containers)
        assert drawn and axes.get_ylabel() + axes.get_xlabel(), f"an empty panel, or one without labels: {axes}"
"""


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
    assert re.search(r"\?", title) and len(rule) >= len(title) and set(rule) == {"="} and empty == "" and rest
    said = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert "subplots" in said and "show" in said and re.search(r"ylabel|yticklabels", text(path))
    closing = text(path).rsplit("# %%\n", 1)[1]
    assert all(line.startswith("#") for line in closing.splitlines()), "it must end with a sentence on what one sees"
    assert len(closing.split()) >= 12


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_each_uses_what_is_public(path: Path) -> None:
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert not re.search(r"(^|\.)_", f"{node.module}.{alias.name}"), f"{node.module}.{alias.name}"
                if (node.module or "").startswith("jaxbandits"):
                    package = sys.modules[node.module or ""]
                    assert alias.name in getattr(package, "__all__", ()), f"{node.module}.{alias.name}"
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
def test_each_runs_alone_and_in_time(path: Path, tmp_path: Path) -> None:
    began = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", RUN, str(path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    seconds = time.perf_counter() - began
    assert ran.returncode == 0, ran.stderr[-2000:]
    pictures = list(tmp_path.glob("*.png"))
    assert pictures and all(picture.stat().st_size > 8_000 for picture in pictures)
    assert seconds <= MOST_SECONDS, f"{seconds:.1f} s"
