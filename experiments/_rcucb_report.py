"""Rows, verdicts and figures of the RCUCB experiment."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

STAND_IN = "stand-in G1, ours"
COLOURS = ("#d62728", "#1f77b4", "#ff7f0e", "#2ca02c", "#7f7f7f", "#9467bd", "#8c564b", "#e377c2", "#17becf")
COLUMNS = ("item", "published", "measured", "standard_error", "verdict", "note")


class Row(NamedTuple):
    """A line of summary.csv."""

    item: str
    published: str
    measured: str
    standard_error: str
    verdict: str
    note: str = ""


class Options(NamedTuple):
    """What the command line said; ``size`` is 0 (quick), 1 or 2 (full)."""

    size: int
    only: str | None
    out: Path
    data: Path

    @staticmethod
    def of(given: Any) -> Options:
        """From any object with the flags as attributes."""
        size = 0 if getattr(given, "quick", False) else 2 if getattr(given, "full", False) else 1
        data = getattr(given, "data", None) or "../shared/data"
        out = Path(getattr(given, "out", None) or "jaxbandits-out/rcucb")
        out.mkdir(parents=True, exist_ok=True)
        return Options(size, getattr(given, "only", None), out, Path(data))

    def pick(self, quick: Any, usual: Any, full: Any) -> Any:
        """The value for this size."""
        return (quick, usual, full)[self.size]


def mean_se(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error along an axis."""
    return x.mean(axis=axis), x.std(axis=axis, ddof=1) / np.sqrt(x.shape[axis])


def estimate(item: str, published: Any, values: np.ndarray, note: str) -> Row:
    """A measured mean; with a published number: yes within 3 s.e. or 0.01, else no; without one, unclear."""
    mean, se = (float(v) for v in mean_se(np.asarray(values, float), axis=0))
    verdict = "unclear"
    if published != "":
        verdict = "yes" if abs(mean - float(published)) <= max(3 * se, 0.01) else "no"
    return Row(item, str(published), f"{mean:.6g}", f"{se:.2g}", verdict, note)


def difference(item: str, published: str, values: np.ndarray, note: str = STAND_IN) -> Row:
    """Published: below 0. yes if it is by 2 s.e. (paired), no if above by 2 s.e., else unclear."""
    mean, se = (float(v) for v in mean_se(np.asarray(values, float), axis=0))
    verdict = "yes" if mean < -2 * se else "no" if mean > 2 * se else "unclear"
    return Row(item, published, f"difference {mean:.6g}", f"{se:.2g}", verdict, f"paired; {note}")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """summary.csv."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def figure(
    options: Options, name: str, lines: int, columns: int, size: tuple[float, float]
) -> tuple[Any, Callable[..., None]]:
    """(axes, save(title, legend=axis with the labels, or handles)); the file is ``<out>/<name>.png``."""
    picture, axes = plt.subplots(lines, columns, figsize=size, layout="constrained")
    for axis in np.ravel(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)

    def save(title: str, legend: Any = None, handles: Any = None) -> None:
        picture.suptitle(title)
        handles = legend.get_legend_handles_labels()[0] if legend is not None else handles
        if handles:
            picture.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
        picture.savefig(options.out / f"{name}.png", dpi=130)
        plt.close(picture)

    return axes, save
