"""How figures look, are drawn and written: the same in all experiments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from experiments.common import mean_se
from jaxbandits._plots import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION

# One look per policy in all experiments: colour, marker, dashes. Dashed are those that may lie on
# others.
_LOOKS = """
SUAK: blue o - | OPS, a = 3: vermilion s - | OPS, a = 2.4: orange D -- | OPS, a = 2: pink v :
OPS, a = 0.001: orange D -- | PDS: black X -. | USS, λ = 9: green ^ - | USS, λ = 5: sky P --
USS, λ = 0.1: sky P -- | pacer: pink * - | fluid oracle: grey d -- | ω-UCB, ρ = 1/4: blue o -
ω-UCB, ρ = 1: blue ^ -- | ω*-UCB, ρ = 1/4: sky s - | ω*-UCB, ρ = 1: sky v -- | BTS: vermilion D -
m-UCB: green P - | c-UCB: orange X - | i-UCB: pink * - | b-greedy: black d : | Budget-UCB: grey < --
UCB-SC+: grey > -. | ω-UCB, herd: grey v -- | RCB-I: blue o - | RCB-AIR: vermilion s -
ω-UCB, K arms: green ^ -- | ω-UCB, increasing: orange D -- | RCUCB literal: vermilion o -
RCUCB legal: blue s - | RCUCB infinite: orange v -- | RCUCB Kaplan-Meier: green ^ --
UCB width 1+λ: grey P - | UCB width 1: black X - | TS global: pink * - | TS per arm: sky d -
PricePacer: blue o - | even pace: green s - | caps per hour: orange D -
spend until gone: vermilion v - | PD-BwK, rad: orange D -- | PD-BwK, ω: vermilion o -
UCB-BwK, rad: sky v -- | UCB-BwK, ω: blue s - | Thompson LP: green ^ - | mirror descent, ω: pink * -
LagrangeBwK: grey X -. | LP oracle: black d :
"""
COLOURS = {"black": BLACK, "blue": BLUE, "green": GREEN, "grey": GREY, "orange": ORANGE}
COLOURS |= {"pink": PINK, "sky": SKY, "vermilion": VERMILION}
_ENTRIES = (
    entry.strip().rsplit(": ", 1)
    for line in _LOOKS.strip().splitlines()
    for entry in line.split(" | ")
)
LOOKS: dict[str, list[str]] = {name: style.split() for name, style in _ENTRIES}


def look(name: str) -> dict[str, Any]:
    """Colour, marker and dashes of a policy's curve."""
    colour, marker, dashes = LOOKS[name]
    style = {"color": COLOURS[colour], "marker": marker, "linestyle": dashes}
    return style | {"markersize": 4.5, "linewidth": 1.5}


def curve(
    axis: Any, x: np.ndarray, samples: np.ndarray, name: str, *, spread: bool = False
) -> None:
    """A mean over axis 0 with its 95 % interval, or one standard deviation (``spread``)."""
    mean, se = mean_se(samples)
    half = np.std(samples, axis=0, ddof=1) if spread else 1.96 * se
    every = max(1, len(x) // 8)
    axis.plot(x, mean, label=name, markevery=every, **look(name))
    axis.fill_between(
        x, mean - half, mean + half, color=look(name)["color"], alpha=0.15, linewidth=0
    )


def intervals(axis: Any, x: Any, samples: Any, **style: Any) -> None:
    """Means over the last axis of ``samples`` [x, run] with their 95 % intervals."""
    mean, se = mean_se(samples, axis=-1)
    axis.errorbar(x, mean, 1.96 * se, **style)


def boxes(axis: Any, samples: Iterable[Any], colours: Iterable[str]) -> None:
    """A box for each of several samples: quartiles, and whiskers to the ends."""
    values = list(samples)
    artists = axis.boxplot(
        values, positions=range(len(values)), whis=(0, 100), patch_artist=True, widths=0.6
    )
    for box, median, colour in zip(artists["boxes"], artists["medians"], colours, strict=True):
        box.set(facecolor=colour, alpha=0.5)
        median.set(color="black")


def figure(lines: int, columns: int, size: tuple[float, float]) -> tuple[Any, np.ndarray]:
    """(picture, axes ``[lines·columns]``) in the project's style."""
    picture, axes = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    return picture, axes.ravel()


def name_ticks(axis: Any, x: Any, names: Iterable[str] | None = None) -> None:
    """Ticks at these places and no others, also on a logarithmic axis; without names, the numbers."""
    axis.set_xticks(x, [f"{value:g}" for value in x] if names is None else list(names))
    axis.minorticks_off()


def save(
    picture: Any, path: Path, title: str = "", *, legend: Iterable[Any] = (), columns: int = 4
) -> None:
    """Write a PNG; ``legend`` holds the axes whose labels are listed under the panels, each once."""
    if title:
        picture.suptitle(title)
    labels: dict[str, Any] = {}
    for axis in legend:
        handles, names = axis.get_legend_handles_labels()
        labels |= {
            name: handle for handle, name in zip(handles, names, strict=True) if name not in labels
        }
    if labels:
        picture.legend(
            labels.values(), labels, loc="outside lower center", ncols=columns, frameon=False
        )
    picture.savefig(path, dpi=130)
    plt.close(picture)
