"""What all experiments share: options and items, runs on disk, rows of summary.csv, verdicts."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy import stats

import jaxbandits as jb
from jaxbandits._tables import Table
from jaxbandits.apps._cli.console import listed
from jaxbandits.core.checks import bad
from jaxbandits.statistics import dominance


class Row(NamedTuple):
    """A line of summary.csv.

    ``verdict`` (is the published statement true here?) is yes, no, unclear, or "by construction"
    where nothing was tested; ``made_by`` is the experiment's item that gave the row, which the run
    fills in.
    """

    item: str
    published: str
    measured: str
    standard_error: str
    verdict: str
    note: str = ""
    made_by: str = ""


@dataclasses.dataclass(frozen=True)
class Options:
    """The command line's options: quick or full, or with neither a size in between."""

    quick: bool = False
    full: bool = False
    only: str | None = None  # the items to run: those whose names begin so
    out: Path = Path("jaxbandits-out")  # pictures and summary.csv; it exists when an item runs
    data: Path = Path("../shared/data")  # real data files, which may be missing

    def pick(self, quick: Any, usual: Any, full: Any) -> Any:
        """The value for this size."""
        return quick if self.quick else full if self.full else usual

    def run_path(self, name: str) -> Path | None:
        """Where the same command finds a run of this size again; None for a quick one: it is not saved."""
        return (
            None
            if self.quick
            else self.out
            / "runs"
            / ("full" if self.full else "usual")
            / name.replace("/", " over ")
        )


Item = Callable[[Options], list[Row]]


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What a paper's module offers to ``python -m experiments``."""

    name: str
    items: Mapping[str, Item]
    not_in_quick: Collection[str] = ()  # left out by --quick, unless asked for by --only
    # Does the verdict of this row hold at any size? A statement about the published sizes is
    # neither shown nor refuted by smaller ones, so it is unclear without --full.
    any_size: Callable[[Row], bool] = lambda row: True
    # What an item is skipped without, in --data
    needs: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @staticmethod
    def of(name: str, items: Iterable[Item], **fields: Any) -> Experiment:
        """An experiment whose items bear the names of their functions."""
        return Experiment(name, {item.__name__: item for item in items}, **fields)

    def run(self, options: Options) -> list[Row]:
        """Run the chosen items, write summary.csv after each, and give its rows.

        With ``--only``, what other items wrote to the same folder earlier stays in summary.csv.
        """
        if options.only:
            selection = [name for name in self.items if name.startswith(options.only)]
        else:
            selection = [
                name for name in self.items if not (options.quick and name in self.not_in_quick)
            ]
        if not selection:
            raise bad("--only", options.only, f"one of {listed(str(options.only), self.items)}")
        options.out.mkdir(parents=True, exist_ok=True)
        before = options.out / "summary.csv"
        rows = read_summary(before) if options.only and before.is_file() else []
        rows = [line for line in rows if line.made_by in set(self.items) - set(selection)]
        for name in selection:
            missing, start = options.data / self.needs.get(name, ""), time.perf_counter()
            if name in self.needs and not missing.exists():
                print(f"{self.name} {name}: skipped, {missing} is not there", flush=True)
            else:
                for item_row in self.items[name](options):
                    line = item_row._replace(made_by=name)
                    if not (options.full or self.any_size(line)):
                        note = f"{line.note}; not --full".removeprefix("; ")
                        line = line._replace(verdict="unclear", note=note)
                    rows.append(line)
                print(f"{self.name} {name}: {time.perf_counter() - start:.0f} s", flush=True)
            write_summary(options.out, rows)
        return rows


def write_summary(out: Path, rows: Iterable[Row]) -> None:
    """Write ``summary.csv``."""
    text = Table(Row._fields, list(rows)).csv(digits=None, line_end="\r\n")
    (out / "summary.csv").write_text(text, encoding="utf-8", newline="")


def read_summary(path: Path) -> list[Row]:
    """The rows of a ``summary.csv``."""
    with path.open(newline="", encoding="utf-8") as file:
        return [Row(**line) for line in csv.DictReader(file)]


def swept(options: Options, name: str, **spec: Any) -> xarray.Dataset:
    """The data of the :class:`jb.Sweep` of these fields, with its ``seconds`` and ``rounds`` among
    the attributes.

    Its folder is ``OUT/runs/SIZE/NAME``: a sweep that was stopped goes on there, and a finished one
    is only read.
    """
    start = clocks()
    data = jb.sweep(
        jb.Sweep(title=name, **spec), options.run_path(name), progress=sys.stderr.isatty()
    ).data
    return data.assign_attrs(_effort(name, start, data["rounds"].values))


def simulated(
    options: Options, name: str, *setup: Any, **keywords: Any
) -> tuple[jb.Result, dict[str, float]]:
    """:func:`jb.simulate`, saved as ``OUT/runs/SIZE/NAME.npz``; and its seconds and rounds."""
    start, path = clocks(), options.run_path(f"{name}.npz")
    if path and path.is_file():
        result = jb.Result.load(path)
    else:
        result = jb.simulate(*setup, progress=sys.stderr.isatty(), **keywords)
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            result.save(path)
    return result, _effort(name, start, result.ledger["rounds"])


def clocks() -> np.ndarray:
    """(wall clock, processor), seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def _effort(name: str, start: np.ndarray, rounds: np.ndarray) -> dict[str, float]:
    """``seconds`` by the wall clock and of the ``processor`` since ``start``; ``rounds`` played."""
    (seconds, processor), count = clocks() - start, float(np.nansum(rounds[..., -1]))
    print(f"  {name}: {count:.3g} rounds in {seconds:.1f} s", flush=True)
    return {"seconds": float(seconds), "processor": float(processor), "rounds": count}


BY_CONSTRUCTION = "by construction"
OURS = "(ours)"  # in place of a published value, where the question is ours


def row(
    item: str, measured: Any, error: Any = "", *,
    published: Any = "", holds: bool | np.bool_ | str | None = None, note: str = "", digits: str = ".4g",
) -> Row:  # fmt: skip
    """A row; text and whole numbers stand as they are, other numbers are rounded to ``digits``
    (errors to two).

    ``holds``: is the published statement true here? None: unclear, or nothing was published;
    :data:`BY_CONSTRUCTION` where it could not be otherwise. ``note``: the measurement, and when
    the verdict is yes.
    """
    verdict = (
        holds
        if isinstance(holds, str)
        else "unclear"
        if holds is None
        else "yes"
        if holds
        else "no"
    )
    return Row(item, str(published), _text(measured, digits), _text(error, ".2g"), verdict, note)


def mean_row(
    item: str, samples: Any, published: Any = "", *, digits: str = ".5g", **keywords: Any
) -> Row:
    """A :func:`row` whose measured value is the mean of samples."""
    mean, se = mean_se(samples)
    return row(item, mean, se, published=published, digits=digits, **keywords)


class Summary(list[Row]):
    """Rows of an item, each made where it is added."""

    def add(self, *columns: Any, **keywords: Any) -> None:
        """A :func:`row`."""
        self.append(row(*columns, **keywords))

    def mean(self, *columns: Any, **keywords: Any) -> None:
        """A :func:`mean_row`."""
        self.append(mean_row(*columns, **keywords))


def difference_row(item: str, differences: Any, note: str) -> Row:
    """Mean of paired differences with its sign, ± the 95 % of a normal law."""
    mean, se = mean_se(differences)
    return row(item, f"{mean:+.4f}", f"±{1.96 * se:.4f}", note=note)


def ranking(item: str, samples: dict[str, Any], note: str = "") -> Row:
    """Mean regrets from least to largest, ``<`` where neighbours differ clearly, ``≈`` where not.

    ``samples`` [run] of the policies in the same worlds; the intervals of all differences hold at
    once with 95 %.
    """
    runs = xarray.DataArray(
        np.stack([np.asarray(x, float) for x in samples.values()]),
        dims=("setting", "replicate"),
        coords={"setting": list(samples)},
    )
    clear = dominance(runs, over="replicate")["clear"]
    order = [
        str(name) for name in runs["setting"].values[np.argsort(runs.mean("replicate").values)]
    ]
    text = order[0]
    for before, after in itertools.pairwise(order):
        text += f" {'<' if bool(clear.sel(setting=before, against=after)) else '≈'} {after}"
    return row(item, text, note=f"all pairs at once, 95 %, paired{f'; {note}' if note else ''}")


def _text(value: Any, digits: str) -> str:
    return str(value) if isinstance(value, (str, int, np.integer)) else format(float(value), digits)


def mean_se(samples: Any, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and its standard error along an axis."""
    x = np.asarray(samples, float)
    return x.mean(axis), x.std(axis, ddof=1) / np.sqrt(x.shape[axis])


def beyond(low: Any, high: Any, level: float = 0.0) -> bool | None:
    """Does an interval lie above the level? no if below, None if it holds the level."""
    return True if low > level else False if high < level else None


def is_within(value: Any, error: Any, low: float, high: float, errors: float = 2.0) -> bool | None:
    """Between two limits? yes or no if the interval of ``errors`` s.e. is in or out, else None."""
    return between(value - errors * error, value + errors * error, low, high)


def between(low: Any, high: Any, floor: float, ceiling: float) -> bool | None:
    """Does an interval lie between two limits? no if it lies outside, None if it holds one of them."""
    return (
        True
        if floor <= low and high <= ceiling
        else False
        if high < floor or low > ceiling
        else None
    )


def clopper_pearson(hits: int, runs: int, level: float = 0.05) -> tuple[float, float]:
    """Exact one-sided bounds of a probability, each at ``level``."""
    lower = float(stats.beta.ppf(level, hits, runs - hits + 1)) if hits else 0.0
    return lower, float(stats.beta.ppf(1 - level, hits + 1, runs - hits))


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """A statement about several cases: no if one is a no, yes if all are a yes, else unclear."""
    verdicts = [None if answer is None else bool(answer) for answer in answers]
    return False if False in verdicts else None if None in verdicts else True


def above_zero(value: Any, error: Any, errors: float = 2.0) -> bool | None:
    """Is a value above 0 by ``errors`` standard errors? None if neither above nor below."""
    return beyond(value - errors * error, value + errors * error)


def is_above(samples: Any, level: float = 0.0, errors: float = 2.0) -> bool | None:
    """Is the mean above ``level`` by ``errors`` s.e.? None if neither above nor below."""
    mean, se = mean_se(samples)
    return above_zero(mean - level, se, errors)
