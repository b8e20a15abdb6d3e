"""What all experiments share: the command line's options, rows of summary.csv, one look per policy, figures."""

from __future__ import annotations

import csv
import dataclasses
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import xarray
from matplotlib.ticker import EngFormatter, MaxNLocator

from jaxbandits.statistics import dominance

COLUMNS = ("item", "published", "measured", "standard_error", "verdict", "note")

# Okabe and Ito's palette, distinguishable with any colour vision (yellow is left out, it is too pale for lines).
BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
)
GREY = "#777777"

# One look per policy in all experiments: colour, marker, dashes.
LOOKS: dict[str, tuple[str, str, Any]] = {
    "SUAK": (BLUE, "o", "-"),
    "OPS, a = 3": (VERMILION, "s", "-"),
    "OPS, a = 2.4": (ORANGE, "D", "--"),
    "OPS, a = 2": (PINK, "v", ":"),
    "PDS": (BLACK, "X", "-."),
    "USS, λ = 9": (GREEN, "^", "-"),
    "USS, λ = 5": (SKY, "P", "--"),
    "pacer": (PINK, "*", "-"),
    "fluid oracle": (GREY, "d", "--"),
    "ω-UCB, ρ = 1/4": (BLUE, "o", "-"),
    "ω-UCB, ρ = 1": (BLUE, "^", "--"),
    "ω*-UCB, ρ = 1/4": (SKY, "s", "-"),
    "ω*-UCB, ρ = 1": (SKY, "v", "--"),
    "BTS": (VERMILION, "D", "-"),
    "m-UCB": (GREEN, "P", "-"),
    "c-UCB": (ORANGE, "X", "-"),
    "i-UCB": (PINK, "*", "-"),
    "b-greedy": (BLACK, "d", ":"),
    "Budget-UCB": (GREY, "<", "--"),
    "UCB-SC+": (GREY, ">", "-."),
    "RCB-I": (BLUE, "o", "-"),
    "RCB-AIR": (VERMILION, "s", "-"),
    "ω-UCB, K arms": (GREEN, "^", "--"),
    "ω-UCB, increasing": (ORANGE, "D", "--"),
    "RCB": (BLUE, "o", "-"),
    "UCB-V (reward)": (PINK, "s", "-"),
    "UCB-V (ratio)": (ORANGE, "D", "-"),
    "ω-UCB": (GREEN, "^", "--"),
    "ω*-UCB": (SKY, "v", "--"),
}
_SPARE = [(c, m, d) for d in ("-", "--") for c, m in zip((BLUE, VERMILION, GREEN, PINK, ORANGE), "osv^D", strict=True)]


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line said.

    Attributes:
        quick, full: at most one is set; with neither, an experiment takes a size in between.
        only: the one item to run, or None.
        out: an existing folder for pictures and summary.csv.
        data: the folder of real data files, which may be missing.
    """

    quick: bool = False
    full: bool = False
    only: str | None = None
    out: Path = Path("jaxbandits-out")
    data: Path = Path("../shared/data")

    def pick(self, quick: Any, usual: Any, full: Any) -> Any:
        """The value for this size."""
        return quick if self.quick else full if self.full else usual


class Row(NamedTuple):
    """A line of summary.csv; ``verdict`` (is the published statement true here?) is yes, no or unclear."""

    item: str
    published: str
    measured: str
    standard_error: str
    verdict: str
    note: str = ""


def write_summary(out: Path, rows: Iterable[Row]) -> None:
    """Write ``summary.csv``."""
    rows = list(rows)
    assert all(row.verdict in ("yes", "no", "unclear") for row in rows), "a verdict is yes, no or unclear"
    with (out / "summary.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def mean_se(samples: Any, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and its standard error along an axis."""
    x = np.asarray(samples, float)
    return x.mean(axis), x.std(axis, ddof=1) / np.sqrt(x.shape[axis])


def verdict(holds: bool | None) -> str:
    """yes, no, or (None) unclear."""
    return "unclear" if holds is None else "yes" if holds else "no"


def is_above(samples: Any, level: float = 0.0, errors: float = 2.0) -> bool | None:
    """Is the mean of the samples above ``level`` by ``errors`` standard errors? None if neither above nor below."""
    mean, se = mean_se(samples)
    return None if abs(mean - level) <= errors * se else bool(mean > level)


def ranking(item: str, samples: dict[str, Any], note: str = "") -> Row:
    """Mean regrets from least to largest, ``<`` where neighbours differ clearly, ``≈`` where not.

    ``samples`` [run] of the policies in the same worlds; paired t-tests, Holm's correction over all pairs, at 5 %.
    """
    runs = xarray.DataArray(
        np.stack([np.asarray(x, float) for x in samples.values()]),
        dims=("setting", "replicate"),
        coords={"setting": list(samples)},
    )
    clear = dominance(runs, over="replicate")["clear"]
    order = [str(name) for name in runs["setting"].values[np.argsort(runs.mean("replicate").values)]]
    text = order[0]
    for before, after in itertools.pairwise(order):
        text += f" {'<' if bool(clear.sel(setting=before, against=after)) else '≈'} {after}"
    return Row(item, "", text, "", "unclear", f"Holm over all pairs, 5 %, paired{f'; {note}' if note else ''}")


def look(name: str) -> dict[str, Any]:
    """Colour, marker and dashes of a policy's curve."""
    colour, marker, dashes = LOOKS.get(name) or _SPARE[sum(map(ord, name)) % len(_SPARE)]
    return {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4.5, "linewidth": 1.5}


def curve(axis: Any, x: np.ndarray, samples: np.ndarray, name: str, *, spread: bool = False) -> None:
    """A mean over axis 0 with its 95 % interval, or with one standard deviation of the samples (``spread``)."""
    mean, se = mean_se(samples)
    half = np.std(samples, axis=0, ddof=1) if spread else 1.96 * se
    every = max(1, len(x) // 8)
    axis.plot(x, mean, label=name, markevery=every, **look(name))
    axis.fill_between(x, mean - half, mean + half, color=look(name)["color"], alpha=0.15, linewidth=0)


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


def save(picture: Any, path: Path, legend: Iterable[Any] = (), columns: int = 4) -> None:
    """Write a PNG; ``legend`` holds the axes whose labels are listed under the panels, each once."""
    labels: dict[str, Any] = {}
    for axis in legend:
        handles, names = axis.get_legend_handles_labels()
        labels |= {name: handle for handle, name in zip(handles, names, strict=True) if name not in labels}
    if labels:
        picture.legend(labels.values(), labels, loc="outside lower center", ncols=columns, frameon=False)
    picture.savefig(path, dpi=130)
    plt.close(picture)
