"""How figures are drawn and written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import EngFormatter, MaxNLocator

from experiments.common.looks import look
from experiments.common.rows import mean_se


def curve(axis: Any, x: np.ndarray, samples: np.ndarray, name: str, *, spread: bool = False) -> None:
    """A mean over axis 0 with its 95 % interval, or with one standard deviation of the samples (``spread``)."""
    mean, se = mean_se(samples)
    half = np.std(samples, axis=0, ddof=1) if spread else 1.96 * se
    every = max(1, len(x) // 8)
    axis.plot(x, mean, label=name, markevery=every, **look(name))
    axis.fill_between(x, mean - half, mean + half, color=look(name)["color"], alpha=0.15, linewidth=0)


def intervals(axis: Any, x: Any, samples: Any, **style: Any) -> None:
    """Means over the last axis of ``samples`` [x, run] with their 95 % intervals."""
    mean, se = mean_se(samples, axis=-1)
    axis.errorbar(x, mean, 1.96 * se, **style)


def boxes(axis: Any, samples: Iterable[Any], colours: Iterable[str]) -> None:
    """A box for each of several samples: quartiles, and whiskers to the ends."""
    values = list(samples)
    shown = axis.boxplot(values, positions=range(len(values)), whis=(0, 100), patch_artist=True, widths=0.6)
    for box, median, colour in zip(shown["boxes"], shown["medians"], colours, strict=True):
        box.set(facecolor=colour, alpha=0.5)
        median.set(color="black")


def figure(lines: int, columns: int, size: tuple[float, float]) -> tuple[Any, np.ndarray]:
    """(picture, axes ``[lines·columns]``) in the project's style."""
    picture, axes = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    return picture, axes.ravel()


def count_rounds(axis: Any) -> None:
    """Ticks such as 500k and 2M along x."""
    axis.xaxis.set_major_locator(MaxNLocator(6))
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))


def save(picture: Any, path: Path, title: str = "", *, legend: Iterable[Any] = (), columns: int = 4) -> None:
    """Write a PNG; ``legend`` holds the axes whose labels are listed under the panels, each once."""
    if title:
        picture.suptitle(title)
    labels: dict[str, Any] = {}
    for axis in legend:
        handles, names = axis.get_legend_handles_labels()
        labels |= {name: handle for handle, name in zip(handles, names, strict=True) if name not in labels}
    if labels:
        picture.legend(labels.values(), labels, loc="outside lower center", ncols=columns, frameon=False)
    picture.savefig(path, dpi=130)
    plt.close(picture)
