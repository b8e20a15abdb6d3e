"""What all experiments share: the command line's options, rows of summary.csv, one look per policy, figures."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import inspect
import itertools
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
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


Item = Callable[[Options], list[Row]]


def run_items(
    experiment: str,
    items: Mapping[str, Item],
    options: Options,
    *,
    not_in_quick: Collection[str] = (),
    any_size: Callable[[Row], bool] = lambda row: False,
) -> list[Row]:
    """Run the items whose names begin with ``--only`` (without it, all), and write summary.csv after each.

    With ``--only``, what other items wrote to the same folder earlier stays in summary.csv.

    Args:
        experiment: its name, for the line with the seconds.
        items: what there is to run; a row's item begins with its name.
        options: what the command line said.
        not_in_quick: names that ``--quick`` leaves out, unless asked for by ``--only``.
        any_size: does the verdict of this row hold at any size? What others say about the published sizes is neither
            shown nor refuted by smaller ones, so it is unclear without ``--full``.

    Returns:
        All rows of summary.csv.
    """
    chosen = [name for name in items if name.startswith(options.only or "")]
    if not chosen:
        raise SystemExit(f"--only: {options.only} given; it must be one of {', '.join(items)}")
    if options.quick and not options.only:
        chosen = [name for name in chosen if name not in not_in_quick]
    rows = _earlier(options.out / "summary.csv", set(items) - set(chosen)) if options.only else []
    for name in chosen:
        began = time.perf_counter()
        found = items[name](options)
        rows += [row if options.full or any_size(row) else _short(row) for row in found]
        write_summary(options.out, rows)
        print(f"{experiment} {name}: {time.perf_counter() - began:.0f} s", flush=True)
    return rows


def _earlier(path: Path, names: Collection[str]) -> list[Row]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = [Row(*line) for line in list(csv.reader(file))[1:]]
    return [row for row in rows if re.split(r"[: ]", row.item)[0] in names]


def _short(row: Row) -> Row:
    return row._replace(verdict="unclear", note=f"{row.note}; not --full".removeprefix("; "))


def kept(
    options: Options, name: str, depends_on: Iterable[Any], make: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """What ``make`` gives, from ``OUT/runs/name.npz`` if the very same was made there before.

    ``depends_on`` holds all that the numbers depend on and that may change between two runs: arrays; objects, whose
    modules' source counts; anything else by its text. The version of jax counts too.
    """
    state = hashlib.sha256(jax.__version__.encode())
    for thing in depends_on:
        if isinstance(thing, (np.ndarray, jax.Array)):
            state.update(np.ascontiguousarray(thing).tobytes())
        elif isinstance(thing, (str, int, float)):
            state.update(repr(thing).encode())
        else:
            state.update(inspect.getsource(inspect.getmodule(type(thing))).encode())  # type: ignore[arg-type]
    mark = state.hexdigest()
    path = options.out / "runs" / f"{name}.npz".replace(" ", "_").replace("*", "star")
    if path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            if str(stored["mark"]) == mark:
                return {key: stored[key] for key in stored.files if key != "mark"}
    made = make()
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, mark=np.array(mark), **made)  # type: ignore[arg-type]
    return made


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
