"""Tables of docs/reproductions, made of the rows of a run that stand beside them as CSV files."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.common.rows import Row

DOCS = Path(__file__).resolve().parents[2] / "docs"


@functools.cache
def summary(name: str) -> dict[str, Row]:
    """The rows of ``docs/reproductions/NAME.csv``, by item."""
    with (DOCS / "reproductions" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = [Row(*line) for line in list(csv.reader(file))[1:]]
    return {each.item: each for each in rows}


def found(name: str, item: str) -> Row:
    """A row that must be there.

    Raises:
        LookupError: no such row.
    """
    if item not in summary(name):
        raise LookupError(f"{name}.csv has no row {item!r}")
    return summary(name)[item]


def cell(each: Row, digits: str = ",.0f") -> str:
    """``measured ± standard error``, both in ``digits``."""
    return f"{float(each.measured):{digits}} ± {float(each.standard_error):{digits}}".replace("-", "−")


def cell_if_there(name: str, item: str, digits: str = ",.0f") -> str:
    """:func:`cell`; nothing where that was not played."""
    return cell(found(name, item), digits) if item in summary(name) else ""


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> Iterator[str]:
    """Markdown."""
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for line in lines:
        yield f"| {' | '.join(line)} |"


def statements(name: str, begin: str) -> Iterator[str]:
    """Every statement of rows that so begin: published, measured, verdict, and why."""
    lines = [
        [each.item.removeprefix(begin), each.published, each.measured, f"**{each.verdict}**: {each.note}"]
        for each in summary(name).values()
        if each.item.startswith(begin)
    ]
    return table(["statement", "published", "measured", "verdict"], lines)
