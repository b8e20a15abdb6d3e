"""The picture: styles that differ, nothing clipped, no pyplot, no matplotlib before the first picture."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from jaxbandits._plots import drawn, encoded

X = np.linspace(10, 500, 20)
WORDS = {"title": "mean of 19 instances", "across": "budget spent [€]", "up": "regret [conversions]"}


def bands(count: int) -> tuple[list[str], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    y = np.sqrt(X) * np.arange(1, count + 1)[:, None]
    return [f"omega_star_ucb(rho={0.0625 * (i + 1)}) $x_{i}$" for i in range(count)], (y, y - 1, y + 1)


@pytest.mark.parametrize("count", [1, 5, 24])
def test_nothing_is_clipped_and_every_curve_differs(count: int) -> None:
    figure = drawn(X, *bands(count), **WORDS)
    figure.draw_without_rendering()
    page = figure.bbox
    parts = [figure.legends[0], figure.axes[0].title, figure.axes[0].xaxis.label, figure.axes[0].yaxis.label]
    parts += [text for text in figure.axes[0].get_xticklabels() if text.get_text()]
    for part in parts:
        box = part.get_window_extent()
        assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1, part
    axes = figure.axes[0]
    assert axes.get_position().width > 0.3
    styles = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines}
    assert len(styles) == len(axes.lines) == count
    assert len({line.get_color() for line in axes.lines}) == min(count, 7)
    assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] >= bands(count)[1][2].max()


def test_one_point_and_missing_intervals_and_the_same_bytes() -> None:
    y, nan = np.array([[3.0]]), np.array([[np.nan]])
    one, again = (encoded(drawn(np.array([100.0]), ["a"], (y, nan, nan), **WORDS)) for _ in range(2))
    assert one.startswith(b"\x89PNG") and one == again


def test_a_curve_below_zero_is_seen_without_bands_too() -> None:
    down, unknown = -np.arange(1.0, 5.0)[None], np.full((1, 4), np.nan)
    figure = drawn(np.linspace(0.25, 1.0, 4), ["one"], (down, unknown, unknown), **WORDS)
    assert figure.axes[0].get_ylim()[0] <= -4.0


def test_matplotlib_is_not_imported_with_the_package_and_pyplot_never() -> None:
    code = (
        "import sys, jaxbandits, jaxbandits.apps.comparison.plan, jaxbandits.apps._cli.console\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import numpy as np, jaxbandits._plots\n"
        "y = np.ones((1, 2))\n"
        "jaxbandits._plots.encoded(jaxbandits._plots.drawn(y[0], ['a'], (y, y, y), title='', across='', up=''))\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_another_process_draws_the_same_bytes_and_errors_are_told_here() -> None:
    code = (
        "import sys, numpy as np\n"
        "from jaxbandits.apps.drawing import Drawing, DrawingProcess\n"
        "y = np.ones((1, 2))\n"
        "takes = dict(x=y[0], names=['a'], parts=(y, y, y), title='', across='', up='')\n"
        "with DrawingProcess(apart=True) as pictures:\n"
        "    there = pictures.submit(Drawing('drawn', takes)).result()\n"
        "    assert not {'matplotlib', 'jax'} & set(sys.modules), 'drawn here'\n"
        "    wrong = pictures.submit(Drawing('drawn', takes | {'parts': (y, y)})).exception()\n"
        "    assert isinstance(wrong, ValueError), wrong\n"
        "    pictures._process.kill()\n"
        "    assert pictures.submit(Drawing('drawn', takes)).result() == there == Drawing('drawn', takes).draw()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_names_are_cut_in_the_middle_and_never_to_the_same_text() -> None:
    names = [f"Spring campaign {n}, northern region" for n in (1, 2, 3)] * 2 + ["Winter"]
    labels = _labels(names, 24)
    assert len(set(labels)) == 4 and labels[:3] == labels[3:6] and max(map(len, labels)) <= 24
    assert labels[0] == "Spring campa…hern region"
    assert labels[-1] == "Winter"


def test_letters_that_the_font_lacks_are_escapes() -> None:
    assert _plain("Größe, Ελλάδα") == "Größe, Ελλάδα"
    assert _plain("中 $5") == r"\u4e2d \$5"
