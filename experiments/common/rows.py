"""Rows of summary.csv, and the rules by which they are judged."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray

from jaxbandits._files.csv_text import csv_text
from jaxbandits.statistics import dominance


class Row(NamedTuple):
    """A line of summary.csv.

    ``verdict`` (is the published statement true here?) is yes, no, unclear, or "by construction" where nothing was
    tested; ``made_by`` is the experiment's item that gave the row, which the run fills in.
    """

    item: str
    published: str
    measured: str
    standard_error: str
    verdict: str
    note: str = ""
    made_by: str = ""


def row(
    item: str,
    measured: Any,
    error: Any = "",
    *,
    published: Any = "",
    holds: bool | np.bool_ | str | None = None,
    note: str = "",
    digits: str = ".4g",
) -> Row:
    """A row; text and whole numbers stand as they are, other numbers are rounded.

    Args:
        item: what was measured.
        measured: a number, written with ``digits``, or a text.
        error: its standard error, written with two digits, or a text.
        published: what the paper says, if anything.
        holds: is that true here? None: unclear, or nothing was published. :data:`BY_CONSTRUCTION` where it could not
            be otherwise.
        note: how it was measured, and when the verdict is yes.
        digits: a format specification.
    """
    return Row(item, str(published), _text(measured, digits), _text(error, ".2g"), verdict(holds), note)


def mean_row(item: str, samples: Any, published: Any = "", *, digits: str = ".5g", **more: Any) -> Row:
    """A :func:`row` whose measured value is the mean of samples."""
    mean, se = mean_se(samples)
    return row(item, mean, se, published=published, digits=digits, **more)


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
    return row(item, text, note=f"Holm over all pairs, 5 %, paired{f'; {note}' if note else ''}")


def _text(value: Any, digits: str) -> str:
    return str(value) if isinstance(value, (str, int, np.integer)) else format(float(value), digits)


def mean_se(samples: Any, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and its standard error along an axis."""
    x = np.asarray(samples, float)
    return x.mean(axis), x.std(axis, ddof=1) / np.sqrt(x.shape[axis])


BY_CONSTRUCTION = "by construction"
OURS = "(ours)"  # in place of what was published, where the question is ours


def verdict(holds: bool | np.bool_ | str | None) -> str:
    """yes, no, or (None) unclear; a text stands for itself."""
    if isinstance(holds, str):
        return holds
    return "unclear" if holds is None else "yes" if holds else "no"


def is_within(value: Any, error: Any, low: float, high: float, errors: float = 2.0) -> bool | None:
    """Does a value lie between two limits? yes if its interval of ``errors`` standard errors lies there, no if the
    interval lies outside, None if it holds a limit: noise alone never makes a yes.
    """
    below, above = value - errors * error, value + errors * error
    return True if low <= below and above <= high else False if above < low or below > high else None


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """A statement about several things: no if one is a no, yes if all are a yes, else unclear."""
    found = [None if each is None else bool(each) for each in answers]
    return False if False in found else None if None in found else True


def above_zero(value: Any, error: Any, errors: float = 2.0) -> bool | None:
    """Is a value above 0 by ``errors`` standard errors? None if neither above nor below."""
    return None if abs(value) <= errors * error else bool(value > 0)


def is_above(samples: Any, level: float = 0.0, errors: float = 2.0) -> bool | None:
    """Is the mean of the samples above ``level`` by ``errors`` standard errors? None if neither above nor below."""
    mean, se = mean_se(samples)
    return above_zero(mean - level, se, errors)


def write_summary(out: Path, rows: Iterable[Row]) -> None:
    """Write ``summary.csv``."""
    text = csv_text(Row._fields, rows, digits=None, line_end="\r\n")
    (out / "summary.csv").write_text(text, encoding="utf-8", newline="")


def read_summary(out: Path, names: Collection[str]) -> list[Row]:
    """The rows of ``summary.csv`` that these items of the experiment gave; none where there is no such file."""
    if not (out / "summary.csv").is_file():
        return []
    with (out / "summary.csv").open(newline="", encoding="utf-8") as file:
        rows = [Row(*line) for line in list(csv.reader(file))[1:]]
    # those of a folder from before the column was there begin with their item's name, mostly
    return [each for each in rows if (each.made_by or re.split(r"[: ]", each.item)[0]) in names]
