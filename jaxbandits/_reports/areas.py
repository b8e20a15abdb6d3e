"""Stacked areas: where money goes as a budget grows. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._reports.palette import BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FILLS = (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, "#F0E442")
"""Okabe and Ito's palette, yellow too, as areas have edges; neighbours differ in lightness."""

_LONGEST = 24


@dataclass(frozen=True, eq=False)
class Panel:
    """One stack.

    Attributes:
        title: over it.
        names: of the parts, from the bottom.
        heights: ``[n, part]`` at each x.
        rest: name of the last part if it stands for several, which is drawn in grey; else empty.
    """

    title: str
    names: tuple[str, ...]
    heights: np.ndarray
    rest: str = ""


def stacked(
    x: np.ndarray,
    panels: Sequence[Panel],
    *,
    across: str,
    up: str,
    written: Callable[[float], str] | None = None,
    narrow: bool = False,
) -> bytes:
    """Stacked areas that begin in the origin, every part named at its right end, as the bytes of a PNG file.

    Args:
        x: ``[n]``.
        panels: one picture each, side by side, at most six.
        across, up: what runs along x and y.
        written: how numbers along the axes are written.
        narrow: one panel below the other, for a phone.

    Example:
        >>> import numpy as np
        >>> stacked(np.arange(1, 3), [Panel("", ("a", "b"), np.ones((2, 2)))], across="budget", up="money")[1:4]
        b'PNG'
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 1 if len(panels) == 1 or narrow else 2 if len(panels) in (2, 4) else 3
    rows = math.ceil(len(panels) / columns)
    size = (8.0, 4.8) if len(panels) == 1 and not narrow else (4.2 * columns, 2.9 * rows + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    for number, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, number + 1)
        _stack(axes, x, panel, small=len(panels) > 1 or narrow)
        _numbers(axes, written)
    figure.supxlabel(_plain(across), fontsize=10)
    figure.supylabel(_plain(up), fontsize=10)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    return file.getvalue()


def _stack(axes: Axes, x: np.ndarray, panel: Panel, small: bool) -> None:
    heights = np.vstack([np.zeros(panel.heights.shape[1]), panel.heights])
    tops = np.cumsum(heights, axis=1)
    across = np.concatenate([[0.0], x])
    colours = [FILLS[i % len(FILLS)] for i in range(len(panel.names))]
    if panel.rest:
        colours[-1] = GREY
    for part, colour in enumerate(colours):
        below = tops[:, part - 1] if part else np.zeros(len(across))
        axes.fill_between(across, below, tops[:, part], color=colour, edgecolor="white", linewidth=0.8)
    axes.set_xlim(0, x[-1])
    top = max(float(tops[-1, -1]), 1e-300)
    axes.set_ylim(0, top)
    axes.set_title(_plain(panel.title), fontsize=9 if small else 10)
    axes.spines[["top", "right"]].set_visible(False)
    middles = tops[-1] - heights[-1] / 2
    gap = tops[-1, -1] * (0.095 if small else 0.055)
    for name, colour, middle, at in zip(panel.names, colours, middles, _apart(middles, gap, tops[-1, -1]), strict=True):
        # As a line of its own: an annotation's arrow takes matplotlib ten times as long.
        axes.plot((1, 1.035), (middle / top, at / top), transform=axes.transAxes, color=colour, lw=1.2, clip_on=False)
        axes.text(
            1.04, at / top, _plain(_short(name)), transform=axes.transAxes, fontsize=7.5 if small else 9, va="center"
        )


def _apart(wanted: np.ndarray, gap: float, most: float) -> np.ndarray:
    """Places in the same order, at least ``gap`` apart, near those that are wanted and below ``most`` if they fit.

    Example:
        >>> _apart(np.array([0.0, 0.1, 5.0]), 1.0, 5.0).tolist(), _apart(np.array([4.9, 5.0]), 1.0, 5.0).tolist()
        ([0.0, 1.0, 5.0], [4.0, 5.0])
    """
    places = np.array(wanted, float)
    for i in range(1, places.size):
        places[i] = max(places[i], places[i - 1] + gap)
    for i in range(places.size - 1, -1, -1):
        places[i] = min(places[i], most - gap * (places.size - 1 - i))
    return places


def _numbers(axes: Axes, written: Callable[[float], str] | None) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        if written is not None:
            axis.set_major_formatter(FuncFormatter(lambda value, _: _plain(written(value))))
    axes.tick_params(labelsize=8)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _plain(text: Any) -> str:
    return str(text).replace("$", r"\$")
