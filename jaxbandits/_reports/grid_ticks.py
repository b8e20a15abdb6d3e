"""Ticks at the values of a grid, as many as fit."""

from __future__ import annotations

from typing import Any

import numpy as np


def tick_values(values: np.ndarray, log: bool, share: float) -> np.ndarray:
    """Some of the values, at least ``share`` of the axis apart: the ends, and evenly spaced ones between them.

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
    for step in range(1, grid.size):
        chosen = np.arange(0, grid.size, step)
        if chosen[-1] == grid.size - 1 and (np.diff(places[chosen]) >= share).all():
            return grid[chosen]
    kept = [0]  # no even step does: each that is far enough from the last one, and from the end
    for i in range(1, grid.size - 1):
        if places[i] - places[kept[-1]] >= share and places[-1] - places[i] >= share:
            kept.append(i)
    return grid[[*kept, grid.size - 1]]


def label_grid(axis: Any, values: np.ndarray, *, log: bool, share: float = 0.13) -> None:
    """Ticks of a matplotlib axis (``axes.xaxis``) at values of a grid, written as plain numbers; none between them.

    Args:
        axis: after its scale was set.
        values: of the grid.
        log: whether its scale is logarithmic.
        share: of the axis's length that a label takes.
    """
    from matplotlib.ticker import NullLocator

    shown = tick_values(np.asarray(values, float), log, share)
    axis.set_ticks(shown, [f"{value:.3g}" for value in shown])
    axis.set_minor_locator(NullLocator())


def plain_numbers(axis: Any) -> None:
    """Ticks of a logarithmic axis at 1, 2 and 5 times a power of ten, written as plain numbers; none between them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator())
