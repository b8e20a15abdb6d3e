"""Pictures of a sweep: sensitivity curves, one panel per case, and heat maps for two parameters."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxbandits._reports.grid_ticks import label_grid, plain_numbers, tick_values
from jaxbandits._reports.palette import nth_look
from jaxbandits.sweeps.curve import Curve
from jaxbandits.sweeps.surface import SweepResult

_MOST_PANELS = 24


def pictures(result: SweepResult) -> dict[str, bytes]:
    """PNG files by name: ``sensitivity_rho.png`` for every swept parameter, ``heatmap_POLICY.png`` for every pair."""
    found: dict[str, bytes] = {}
    by_parameter: dict[str, list[str]] = {}
    for policy in result.policies:
        names = result.parameters(policy)
        if len(names) == 1:
            by_parameter.setdefault(names[0], []).append(policy)
        elif len(names) == 2 and _is_grid(result.curve(policy, *result.cells()[0])):
            found[_file_name("heatmap", policy, found)] = _heat_maps(result, policy)
    for name, policies in by_parameter.items():
        found[_file_name("sensitivity", name, found)] = _curves(result, name, policies)
    return found


def _file_name(kind: str, text: str, taken: Iterable[str]) -> str:
    """``KIND_TEXT.png``, as every system allows it; not one that some system takes for one of ``taken``."""
    short = re.sub(r"[^\w.=-]+", "_", text).strip("_")[:60]
    folded = {name.casefold() for name in taken}
    numbered = (f"{kind}_{short}~{n}.png" for n in itertools.count(2))
    names = itertools.chain([f"{kind}_{short}.png"], numbered)
    return next(name for name in names if name.casefold() not in folded)


def _panels(result: SweepResult, width: float, height: float) -> tuple[Any, list[Any], list[tuple[str, int]]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cells = result.cells()[:_MOST_PANELS]
    columns = min(3, len(cells))
    lines = -(-len(cells) // columns)
    figure = Figure(figsize=(max(width * columns, 5.5), height * lines + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = list(np.ravel(figure.subplots(lines, columns, squeeze=False)))
    for axis in axes[len(cells) :]:
        axis.set_visible(False)
    if len(result.cells()) > len(cells):
        figure.text(0.01, 0.01, f"the first {len(cells)} of {len(result.cells())} cases", fontsize=8)
    return figure, axes[: len(cells)], cells


def _title(result: SweepResult, cell: tuple[str, int]) -> str:
    environment, budget = cell
    several = result.data.sizes["budget"] > 1
    return environment + (f", budget {result.data['budget'].values[budget]:,.6g}" if several else "")


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=130, metadata={"Software": None})
    return file.getvalue()


def _curves(result: SweepResult, name: str, policies: list[str]) -> bytes:
    figure, axes, cells = _panels(result, 3.7, 2.8)
    for axis, cell in zip(axes, cells, strict=True):
        curves = [result.curve(policy, *cell) for policy in policies]
        for number, curve in enumerate(curves):
            _one_curve(axis, curve, curve.parameters[name], number)
        x = np.concatenate([curve.parameters[name] for curve in curves])
        log = bool(x.min() > 0 and x.max() / x.min() > 8)
        if log:
            axis.set_xscale("log")
        label_grid(axis.xaxis, x, log=log)
        tops = np.concatenate([curve.regret[0] for curve in curves])
        if tops.min() > 0 and tops.max() / tops.min() > 8:
            axis.set_yscale("log")
            plain_numbers(axis.yaxis)
        axis.set_title(_title(result, cell), fontsize=9)
        axis.grid(alpha=0.3, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(which="both", labelsize=8)
        axis.set_xlabel(name, fontsize=9)
    figure.supylabel("regret at the end [reward]", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    title = (
        "bars: paired 95 % intervals of the difference to the best value, all values at once; filled: not clearly worse"
    )
    figure.suptitle(title if len(axes) > 1 else title.replace("; ", ";\n"), fontsize=8)
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return _png(figure)


def _one_curve(axis: Any, curve: Curve, values: np.ndarray, number: int) -> None:
    order = np.argsort(values)
    x, mean = values[order], curve.regret[0][order]
    colour, marker, dashes = nth_look(number)
    axis.plot(x, mean, color=colour, linestyle=dashes, linewidth=1.3)
    middle, low, high = (part[order] for part in curve.apart)
    if np.isfinite(low).all():
        axis.errorbar(x, mean, [middle - low, high - middle], fmt="none", ecolor=colour, elinewidth=0.9, capsize=2)
    alike = curve.indistinguishable[order]
    look = {"linestyle": "none", "marker": marker, "markersize": 4.5, "color": colour}
    axis.plot(x[~alike], mean[~alike], markerfacecolor="white", **look)
    axis.plot(x[alike], mean[alike], label=curve.policy.replace("$", r"\$"), **look)


def _is_grid(curve: Curve) -> bool:
    first, second = (np.unique(x) for x in curve.parameters.values())
    return first.size * second.size == curve.regret[0].size


def _heat_maps(result: SweepResult, policy: str) -> bytes:
    figure, axes, cells = _panels(result, 4.2, 3.3)
    for axis, cell in zip(axes, cells, strict=True):
        curve = result.curve(policy, *cell)
        (across, x), (up, y) = curve.parameters.items()
        columns, lines = np.unique(x), np.unique(y)
        at = (np.searchsorted(lines, y), np.searchsorted(columns, x))
        regret, alike = np.full((2, lines.size, columns.size), np.nan)
        regret[at], alike[at] = curve.regret[0], curve.indistinguishable
        image = axis.imshow(regret, origin="lower", aspect="auto", cmap="cividis_r")
        figure.colorbar(image, ax=axis, label="regret at the end [reward]")
        line, column = np.nonzero(alike > 0)
        axis.plot(column, line, "o", color="white", markeredgecolor="black", markersize=4, label="not clearly worse")
        axis.plot(at[1][curve.best], at[0][curve.best], "*", color="white", markeredgecolor="black", markersize=11)
        for of, grid in ((axis.xaxis, columns), (axis.yaxis, lines)):
            places = tick_values(np.arange(grid.size, dtype=float), log=False, share=0.12).astype(int)
            of.set_ticks(places, [f"{grid[place]:.3g}" for place in places], fontsize=7)
        axis.set(xlabel=across, ylabel=up)
        axis.set_title(_title(result, cell), fontsize=9)
    figure.suptitle(f"{policy}: star: least regret; dots: not clearly worse than it", fontsize=9)
    return _png(figure)
