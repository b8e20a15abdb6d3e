"""All plots: one set of colours, markers and dashes, distinct for all colour vision and in grey.

This module imports matplotlib, through its objects only (no pyplot), and is itself imported when a
picture is drawn.
"""

from __future__ import annotations

import functools
import io
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from jaxbandits._tables import NARROW, in_greek

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe and Ito's palette; yellow is left out, it is too pale for lines.
BLUE, VERMILION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#777777"
COLOURS = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def ink() -> str:
    """The colour of text and axes: black, or what a dark style has."""
    return str(mpl.rcParams["text.color"])


def nth_look(number: int) -> tuple[str, str, Any]:
    """Colour, marker and dashes of a plot's n-th curve, n from 0."""
    return (*COLOURS[:6], ink())[number % 7], MARKERS[number % 8], DASHES[number % 5]


class Picture(Figure):
    """A figure without a window; a notebook displays it as a cell's result, without pyplot."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        return encoded(self, dpi=100)


def encoded(figure: Figure, form: str = "png", dpi: int = 150) -> bytes:
    """A figure as the bytes of a PNG, PDF or SVG file; equal figures give equal bytes.

    A PDF holds its fonts as TrueType (journals refuse matplotlib's default, Type 3); an SVG needs
    none.
    """
    file, undated = io.BytesIO(), {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "jaxbandits"}):
        figure.savefig(file, format=form, dpi=dpi, metadata=undated.get(form))
    return file.getvalue()


# --- For print


def say_logarithmic(figure: Figure) -> Figure:
    """Mark logarithmic axes in their labels, also in labels that panels share."""
    across, up = ({getattr(axes, f"get_{x}scale")() for axes in figure.axes} for x in "xy")
    shared: Any = figure  # its labels have no public names
    texts = [(x, kinds) for x, kinds in ((shared._supxlabel, across), (shared._supylabel, up)) if x]
    for axes in figure.axes:
        texts += [(axes.xaxis.label, {axes.get_xscale()}), (axes.yaxis.label, {axes.get_yscale()})]
    for text, kinds in texts:
        if text.get_text() and kinds == {"log"} and "log" not in text.get_text():
            text.set_text(f"{text.get_text()}, log scale")
    return figure


def set_key(figure: Figure, handles: Sequence[Any], labels: Sequence[str], size: int = 9) -> None:
    """Set one legend below the panels, in as many columns as fit; the figure grows by its rows."""
    for legend in list(figure.legends):
        legend.remove()
    width, height = figure.get_size_inches()
    longest = max(map(len, labels), default=1)
    across = max(1, min(len(labels), int(width / (size * (0.055 + 0.0088 * longest)))))
    below: dict[str, Any] = {"loc": "outside lower center", "ncols": across, "columnspacing": 1.2}
    lines = [x[0] if isinstance(x, ErrorbarContainer) else x for x in handles]
    figure.legend(lines, labels, frameon=False, fontsize=size, handlelength=2.6, **below)
    figure.set_size_inches(width, height + 0.021 * size * -(-len(labels) // across))


def resized(figure: Figure, width: float) -> Figure:
    """Resize the figure to ``width`` inches, with text of 7 and 8 points."""
    old, height = figure.get_size_inches()
    tall = max(min(height * width / old, 0.8 * width * len(figure.axes)), 2.2)
    figure.set_size_inches(width, tall)
    for legend in list(figure.legends):
        handles = [x for x in legend.legend_handles if x is not None]
        set_key(figure, handles, [text.get_text() for text in legend.get_texts()], size=7)
    grids = [(axes, grid) for axes in figure.axes if (grid := axes.get_gridspec()) is not None]
    room = {figure._suptitle: width}  # type: ignore[attr-defined]
    share = {axes: len(axes.get_subplotspec().colspan) / grid.ncols for axes, grid in grids}  # type: ignore[union-attr]
    room |= {axes.title: width * share[axes] - 0.5 for axes, _ in grids}
    room |= {axes.xaxis.label: width * share[axes] - 0.5 for axes, _ in grids}
    room |= {axes.yaxis.label: tall / grid.nrows - 0.5 for axes, grid in grids}
    for text in figure.findobj(Text):
        if text in room and text.get_text():
            # Inches: a letter of 8 points
            text.set_text(_wrapped(text.get_text(), int(room[text] / 0.062)))
        text.set_fontsize(8)
    keys: list[Any] = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
    for text in (text for legend in keys for text in legend.get_texts()):
        text.set_fontsize(7)
    for axes in figure.axes:
        axes.tick_params(which="both", labelsize=7)
    for line in (line for part in [*figure.axes, *keys] for line in part.get_lines()):
        line.set(linewidth=0.7 * line.get_linewidth(), markersize=0.7 * line.get_markersize())
    return figure


def _wrapped(text: str, width: int) -> str:
    """Lines of at most so many letters; what stands in parentheses stays together."""
    whole = re.sub(r"\([^()]*\)", lambda part: re.sub(r"\s", "\u00a0", part[0]), text)
    return textwrap.fill(whole, width).replace("\u00a0", " ")


def short_names(names: Sequence[str]) -> list[str]:
    """Short legend labels: for each policy only the parameters in which its settings differ.

    Numbers have three digits if these tell the settings apart. A single setting has all of its own.

    Example:
        >>> short_names(["OmegaUCB(rho=0.0345028)", "OmegaUCB(rho=1)", "MUCB(alpha=0.0625)"])
        ['OmegaUCB, ρ = 0.0345', 'OmegaUCB, ρ = 1', 'MUCB']
    """
    parts = [re.fullmatch(r"(\w+)[( ](\w+=[^()]+?)\)?", name) for name in names]
    fields = [dict(x.split("=", 1) for x in part[2].split(", ")) if part else {} for part in parts]
    firsts = [part[1] if part else name for part, name in zip(parts, names, strict=True)]
    labels = []
    for first, of in zip(firsts, fields, strict=True):
        mine = [x for other, x in zip(firsts, fields, strict=True) if other == first]
        apart = [x for x in of if len(names) == 1 or any(other.get(x) != of[x] for other in mine)]
        labels.append(", ".join([first, *(f"{name} = {_rounded(of[name])}" for name in apart)]))
    return [in_greek(x) for x in (labels if len(set(labels)) == len(set(names)) else names)]


def _rounded(number: str) -> str:
    try:
        return f"{float(number):.3g}"
    except ValueError:
        return number


def _plain(text: str, limit: int = 200) -> str:
    """Text for a picture: at most ``limit`` letters, missing glyphs escaped, no formula."""
    letters = text.translate(NARROW)
    drawable = (
        x if x.isascii() or _has(ord(x)) else x.encode("unicode_escape").decode() for x in letters
    )
    text, half = "".join(drawable), (limit - 1) // 2
    text = text if len(text) <= limit else f"{text[: limit - 1 - half]}…{text[-half:]}"
    return text.replace("$", r"\$")


def _labels(names: Sequence[str], limit: int) -> list[str]:
    """The names as `_plain` has them, with a number where different ones would be cut to one text.

    Example:
        >>> _labels(["spring sale a, north", "spring sale b, north", "winter"], 12)
        ['spring…north', 'spri…orth, 2', 'winter']
    """
    labels = list[str]()
    for name in names:
        label, number = _plain(name, limit), 1
        while any(label == one and name != of for one, of in zip(labels, names, strict=False)):
            number += 1
            label = f"{_plain(name, limit - len(f', {number}'))}, {number}"
        labels.append(label)
    return labels


@functools.cache
def _has(letter: int) -> bool:
    """Whether the font of the pictures has this letter."""
    return bool(get_font(findfont(FontProperties())).get_char_index(letter))


# --- Curves


def line_chart(
    x: np.ndarray,
    names: Sequence[str],
    parts: Sequence[np.ndarray],
    *,
    title: str,
    across: str,
    up: str,
    axes: Axes | None = None,
) -> Figure:
    """Curves that start at the origin, with bands around them.

    Every curve has its own colour, marker and dashes, so that it can be told apart in grey too.

    Args:
        x: where the curves were measured, ``[mark]``.
        names: of the curves.
        parts: mean, low and high, ``[curve, mark]`` each; NaN bounds draw no band.
        title, across, up: what stands over the picture, along x and along y, with units.
        axes: of another figure, to draw into; it gets the legend, too.
    """
    is_new = axes is None
    figure: Any = None if axes is None else axes.get_figure()
    if axes is None:
        figure, axes = empty_figure()
    x = np.concatenate([[0.0], x])
    middles, lows, highs = (np.pad(part, ((0, 0), (1, 0))) for part in parts)
    apart, count = max(1, (x.size - 1) // 8), len(names)
    for number, (name, middle, low, high) in enumerate(
        zip(names, middles, lows, highs, strict=True)
    ):
        colour, marker, dashes = nth_look(number)
        style = {"color": colour, "linestyle": dashes, "marker": marker, "label": _plain(name)}
        style |= {"lw": 1.8, "ms": 5} if is_new else {}
        # markers of several curves side by side rather than one over the other
        every = (min(x.size - 1, 1 + number * apart // count), apart)
        axes.plot(x, middle, **style, markevery=every)
        if np.isfinite(low).all() and np.isfinite(high).all():
            axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    # Letters, half as wide as high; a title may be a tenth wider than the axes
    size = 10 if is_new else axes.title.get_fontsize()
    room = figure.get_size_inches()[0] * axes.get_position().width * 72 / size
    axes.set_title(_wrapped(_plain(title), int(2.2 * room)), fontsize=size)
    axes.set_xlabel(_plain(across))
    axes.set_ylabel(_plain(up))
    axes.set_xlim(0, x[-1] * 1.01)
    lowest = min(np.min(middles), np.nanmin(lows))  # bands may be missing, but not at the origin
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if lowest < 0 else 0.0)
    axes.grid(alpha=0.3, linewidth=0.6)
    order = np.argsort(-middles[:, -1], kind="stable")
    lines = axes.get_lines()[-count:]
    labels = _labels(names, 60)
    # From top to bottom as the curves end
    keys = ([lines[i] for i in order], [labels[i] for i in order])
    if is_new:
        set_key(figure, *keys)
    else:
        axes.legend(*keys, frameon=False, handlelength=3.0)
    return figure


# --- Ticks at the values of a grid, as many as fit


def tick_values(values: np.ndarray, log: bool, share: float) -> np.ndarray:
    """Some values, at least ``share`` of the axis apart: the ends, and evenly spaced if possible.

    Example:
        >>> tick_values(np.array([0.25, 0.5, 1.0, 2.0, 4.0]), log=True, share=0.4).tolist()
        [0.25, 1.0, 4.0]
        >>> tick_values(np.array([1.0, 1.01, 9.0]), log=False, share=0.1).tolist()
        [1.0, 9.0]
    """
    grid = np.unique(values[np.isfinite(values)])
    places = np.log(grid) if log else grid
    if grid.size < 2:
        return grid
    places = (places - places[0]) / (places[-1] - places[0])
    for step in (x for x in range(1, grid.size) if (grid.size - 1) % x == 0):
        if (np.diff(places[::step]) >= share).all():
            return grid[::step]
    return grid[[0, -1]]


def is_log(values: np.ndarray) -> bool:
    """Whether a grid is more evenly spaced on a logarithmic axis: any that doubles is.

    Example:
        >>> is_log(np.array([0.25, 0.5, 1.0, 2.0])), is_log(np.array([1.0, 2.0, 3.0, 4.0]))
        (True, False)
    """
    grid = np.unique(values[np.isfinite(values)])
    if grid.size < 3 or grid[0] <= 0:
        return bool(grid.size == 2 and grid[0] > 0 and grid[1] >= 8 * grid[0])
    steps = np.diff(np.log(grid)), np.diff(grid)
    return bool(np.std(steps[0]) / np.mean(steps[0]) < np.std(steps[1]) / np.mean(steps[1]))


def label_grid(axis: Any, values: np.ndarray, *, log: bool, share: float = 0.13) -> None:
    """Ticks of a scaled axis at grid values only; a label takes ``share`` of its length."""
    positions = tick_values(np.asarray(values, float), log, share)
    axis.set_ticks(positions, [f"{value:.3g}" for value in positions])
    axis.set_minor_locator(NullLocator())


def plain_numbers(axis: Any) -> None:
    """Logarithmic ticks at 1, 2 and 5 times a power of ten, as plain numbers; none between."""
    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator())


def empty_figure(height: float = 4.8) -> tuple[Figure, Any]:
    """A figure of one panel, and its axes."""
    figure = Picture(figsize=(8, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
