"""The picture: styles differ, nothing clipped, no pyplot, no early matplotlib."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxbandits as jb
from jaxbandits import _files
from jaxbandits._plots import (
    _labels,
    _plain,
    _wrapped,
    empty_figure,
    encoded,
    is_log,
    line_chart,
    short_names,
)
from jaxbandits.result import pick
from tests.contract.worlds import KEY
from tests.processes import python

X = np.linspace(10, 500, 20)
WORDS = {
    "title": "mean of 19 instances",
    "across": "budget spent (€)",
    "up": "regret (conversions)",
}


def bands(count: int) -> tuple[list[str], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    y = np.sqrt(X) * np.arange(1, count + 1)[:, None]
    names = [f"omega_star_ucb(rho={0.0625 * (i + 1)}) $x_{i}$" for i in range(count)]
    return names, (y, y - 1, y + 1)


def nothing_clipped(figure: Figure) -> None:
    """Legends, titles and labels of a figure lie inside it."""
    figure.draw_without_rendering()
    page, parts = figure.bbox, [*figure.legends]
    assert len(parts) == (figure.axes[0].get_legend() is None)  # else a user's own panels
    for axes in figure.axes:
        last = axes.get_xlim()[1]
        parts += [axes.title, axes.xaxis.label, axes.yaxis.label]
        parts += [x for x in axes.get_xticklabels() if x.get_position()[0] <= last]
    for part in parts:
        box = part.get_window_extent()
        assert page.x0 <= box.x0 and box.x1 <= page.x1, part
        assert page.y0 <= box.y0 and box.y1 <= page.y1, part


@pytest.mark.parametrize("count", [1, 5, 24])
def test_nothing_is_clipped_and_every_curve_differs(count: int) -> None:
    figure = line_chart(X, *bands(count), **WORDS)
    nothing_clipped(figure)
    axes = figure.axes[0]
    assert axes.get_position().width > 0.3
    styles = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines}
    assert len(styles) == len(axes.lines) == count
    assert len({line.get_color() for line in axes.lines}) == min(count, 7)
    assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] >= bands(count)[1][2].max()


def test_one_point_and_missing_intervals_and_the_same_bytes() -> None:
    y, nan = np.array([[3.0]]), np.array([[np.nan]])
    first, again = (
        encoded(line_chart(np.array([100.0]), ["a"], (y, nan, nan), **WORDS)) for _ in range(2)
    )
    assert first.startswith(b"\x89PNG") and first == again


def test_a_curve_below_zero_is_seen_without_bands_too() -> None:
    down, unknown = -np.arange(1.0, 5.0)[None], np.full((1, 4), np.nan)
    figure = line_chart(np.linspace(0.25, 1.0, 4), ["one"], (down, unknown, unknown), **WORDS)
    assert figure.axes[0].get_ylim()[0] <= -4.0


def test_matplotlib_is_not_imported_with_the_package_and_pyplot_never() -> None:
    code = (
        "import sys, jaxbandits, jaxbandits.apps.comparison.plan, jaxbandits.apps._cli.console\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import numpy as np, jaxbandits._plots\n"
        "y = np.ones((1, 2))\n"
        "jaxbandits._plots.encoded(jaxbandits._plots.line_chart(y[0], ['a'], (y, y, y), title='', across='', up=''))\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    python(code)


def test_names_are_cut_in_the_middle_and_never_to_the_same_text() -> None:
    names = [f"Spring campaign {n}, northern region" for n in (1, 2, 3)] * 2 + ["Winter"]
    labels = _labels(names, 24)
    assert len(set(labels)) == 4 and labels[:3] == labels[3:6] and max(map(len, labels)) <= 24
    assert labels[0] == "Spring campa…hern region"
    assert labels[-1] == "Winter"


def test_a_title_does_not_break_in_parentheses() -> None:
    lines = _wrapped("further instances (in doubt: skewed)", 30).split("\n")
    assert lines == ["further instances", "(in doubt: skewed)"]


def test_letters_that_the_font_lacks_are_escapes() -> None:
    assert _plain("Größe, Ελλάδα") == "Größe, Ελλάδα"
    assert _plain("中 $5") == r"\u4e2d \$5"
    assert _plain("4\u202f709\u3000€") == "4 709 €"  # spaces of other widths
    names = [f"夏のセール北海道{n}月" for n in (1, 2)]
    assert len(set(_labels(names, 24))) == 2 and max(map(len, _labels(names, 24))) == 24


@pytest.mark.parametrize(("width", "inches"), [("column", 3.25), ("page", 6.75), (5.5, 5.5)])
@pytest.mark.parametrize("form", ["pdf", "svg", "png"])
def test_a_figure_for_print(tmp_path: Path, form: str, width: float | str, inches: float) -> None:
    paths = [tmp_path / f"{i}.{form}" for i in range(2)]
    for path in paths:
        names = ["MUCB(alpha=0.0625)", "OmegaUCB(ρ=0.0625)", "OmegaUCB(ρ=0.2500)"]
        figure = _files.finished(line_chart(X, names, bands(3)[1], **WORDS), path, width)
    nothing_clipped(figure)
    assert figure.get_size_inches()[0] == inches
    (axes,), (key,) = figure.axes, figure.legends
    assert {text.get_fontsize() for text in (axes.title, axes.xaxis.label, axes.yaxis.label)} == {8}
    assert {text.get_fontsize() for text in (*axes.get_xticklabels(), *key.get_texts())} == {7}
    box = axes.get_window_extent()
    assert box.width > figure.bbox.width / 3 and box.height > figure.bbox.height / 3
    content = paths[0].read_bytes()
    assert content == paths[1].read_bytes()
    if form == "pdf":
        assert b"/FontFile2" in content
        assert b"/Type3" not in content and b"CreationDate" not in content
    assert form != "svg" or (b"<text" not in content and b"<dc:date>" not in content)
    assert content.startswith({"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG"}[form])


def test_axes_say_where_they_are_logarithmic() -> None:
    figure, axes = empty_figure()
    axes.set(xscale="log", xlabel="ρ", yscale="log", ylabel="share (log)")
    second = figure.add_subplot()
    second.set(xlabel="ρ", ylabel="regret")
    figure.supxlabel("all")
    _files.finished(figure)
    labels = [text for part in (axes, second) for text in (part.get_xlabel(), part.get_ylabel())]
    assert labels == ["ρ, log scale", "share (log)", "ρ", "regret"]
    assert figure.get_supxlabel() == "all"
    second.set_xscale("log")
    assert _files.finished(figure).get_supxlabel() == "all, log scale"


@pytest.mark.parametrize("wrong", ["colum", 0, -3.0, 41, True, float("nan"), [3]])
def test_another_width(wrong: object) -> None:
    with pytest.raises(jb.InputError, match=r"^width: .* given"):
        _files.finished(empty_figure()[0], width=wrong)  # type: ignore[arg-type]


def test_another_ending_or_folder(tmp_path: Path) -> None:
    for path, must in ((tmp_path / "a.eps", "a name that ends in .pdf, .svg or .png"), ("b", "a name that ends in"),
                       (tmp_path / "no/a.pdf", "a file that can be written")):  # fmt: skip
        with pytest.raises(jb.InputError, match=f"^path: .* given; it must be {re.escape(must)}"):
            _files.finished(empty_figure()[0], path)


@pytest.mark.integration
def test_every_plot_of_a_result_is_written(tmp_path: Path) -> None:
    arms = jb.environments.random_bernoulli(KEY, instances=3, arms=2)
    limit = jb.TotalBudget(5.0, last_pull="counts")
    policy = jb.policies.OmegaUCB(rho=[0.25, 1.0, 4.0])
    plot = jb.simulate(policy, arms, limit, key=KEY, marks=2, engine="scan").plot
    options = {"environments": arms, "constraint": limit, "over": "instance", "engine": "scan"}
    sweep = jb.sweep(jb.Sweep(policies=policy, **options))  # type: ignore[arg-type]
    drawers = sweep.plot.regret, plot.distribution, sweep.plot.sensitivity
    for number, draw in enumerate(drawers):
        path = tmp_path / f"{number}.pdf"
        assert draw(path=path, width="column").get_size_inches()[0] == 3.25
        assert path.read_bytes().startswith(b"%PDF")
    with pytest.raises(jb.InputError, match=r"^ax: .* left out where path or width is given"):
        plot.regret(over="instance", ax=empty_figure()[1], width="column")
    lines = plot.regret(over="instance").axes[0].get_lines()
    assert "OmegaUCB, ρ = 0.25" in {line.get_label() for line in lines}
    axes = sweep.plot.sensitivity("rho").axes[0]
    curve = sweep.curve("OmegaUCB", sweep.cells()[0][0])
    (star,) = [line for line in axes.get_lines() if line.get_marker() == "*"]
    assert axes.get_xlabel() == "ρ of OmegaUCB, log scale"
    assert star.get_xdata() == [curve.parameters["rho"][curve.best]] and star.get_ydata() == [0]
    line = axes.get_lines()[0]  # a difference is drawn as one
    assert np.allclose(line.get_ydata(), curve.apart["difference"].values)
    with pytest.raises(jb.InputError, match=r"^parameter: 'alpha' given; it must be one of rho"):
        sweep.plot.sensitivity("alpha")
    words = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert words == ["best value", "not clearly worse", "clearly worse (95 %, jointly)"]
    vars(sweep.plan)["parameters"] = {"OmegaUCB": {}}
    with pytest.raises(jb.InputError, match=r"^parameter: no policy here sweeps a parameter$"):
        sweep.plot.sensitivity()
    with pytest.raises(jb.InputError, match=r"^over: not given; it must be 'replicate' or"):
        plot.regret()


def test_labels_say_what_differs_and_a_doubling_grid_is_logarithmic() -> None:
    names = ["OmegaUCB(rho=0.0345028)", "OmegaUCB(rho=0.5)", "MUCB(alpha=0.0625)"]
    assert short_names(names) == ["OmegaUCB, ρ = 0.0345", "OmegaUCB, ρ = 0.5", "MUCB"]
    assert short_names(["OmegaUCB(rho=0.5)"]) == ["OmegaUCB, ρ = 0.5"]
    assert short_names(["a(x=1.00001)", "a(x=1.00002)"]) == ["a(x=1.00001)", "a(x=1.00002)"]
    assert short_names(["In(policy=A(b=1))", "MUCB"]) == ["In(policy=A(b=1))", "MUCB"]
    curved, straight = [[1, 2, 4], [1, 8]], [[1, 2, 3], [0, 1, 2], [1, 2], [0, 8]]
    for grid in curved + straight:
        assert is_log(np.array(grid, float)) is (grid in curved), grid


def test_one_run_has_no_interval_and_no_distribution() -> None:
    arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4]] * 2, [[0.9, 0.3]] * 2)
    result = jb.simulate(jb.policies.MUCB(), arms, jb.Horizon(8), key=KEY, marks=2, engine="scan")
    assert "95" in result.plot.regret("instance").axes[0].get_title()
    alone = pick(result, instances=[0])
    assert alone.plot.regret("replicate").axes[0].get_title() == "1 run, no interval"
    with pytest.raises(jb.InputError, match="'one run of each setting' given; it must be of two"):
        alone.plot.distribution()


def test_the_style_for_a_column() -> None:
    words = WORDS | {"title": "mean of 10 runs, 95 % intervals (in doubt: few units)"}
    for styles, panels in ((["jaxbandits.pictures", "jaxbandits.column"], 1), (["default"], 2)):
        with mpl.style.context(styles):
            look = mpl.rcParams["figure.figsize"], mpl.rcParams["pdf.fonttype"]
            assert panels == 2 or look == ([3.25, 2.4], 42)
            figure = Figure(layout="constrained")
            for axes in figure.subplots(1, panels, squeeze=False)[0]:
                line_chart(X, *bands(2), **words, axes=axes)
            nothing_clipped(figure)
