"""Times that stand in several columns: a day and its clock; a day, week or month by number, with its month and year."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison._reading.columns import Columns
from jaxbandits.comparison._reading.sheet import Row
from jaxbandits.comparison._reading.times import Times, month_of, read_times

_SMALL = re.compile(r"(?:[^\W\d]{1,7}\.?[ -]?)?(\d{1,3})", re.ASCII)  # 7, "Q1", "KW 7"
_YEAR = re.compile(r"((?:19|20)\d{2})")
_CLOCK = re.compile(r"\d{1,2}(?::\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?)?", re.IGNORECASE)


def times_of(columns: Columns, rows: Sequence[Row], custom: bool) -> tuple[Times | None, str]:
    """As :func:`~jaxbandits.comparison._reading.times.read_times`, of all columns that make the time together."""
    single, joined = [cells[columns.at["time"]] for _, cells in rows], time_cells(columns, rows)
    time, told = read_times(joined, custom)
    return (time, told) if time is not None or joined == single else read_times(single, custom)


def time_cells(columns: Columns, rows: Sequence[Row]) -> list[str]:
    """The cells of the time: a day with its clock behind it, a number or name with its year and month before it."""
    of = {role: [cells[at] for _, cells in rows] for role, at in columns.at.items() if role in ("time", *columns.whens)}
    cells, clock = of["time"], of.get("clock")
    if clock and all(_CLOCK.fullmatch(text) or not text for text in clock):
        clock = [f"{text}:00" if text.isdigit() else text for text in clock]
        return [f"{cell} {text}".strip() for cell, text in zip(cells, clock, strict=True)]
    numbers, before = _numbers(cells, _SMALL), _before(of.get("year"), of.get("month"))
    if not numbers or not before:
        return cells
    pairs = zip(before, numbers, strict=True)
    return ["" if year is None or number is None else str(100 * year + number) for year, number in pairs]


def _before(year: Sequence[str] | None, month: Sequence[str] | None) -> list[int | None] | None:
    """The year, the month, or both as 202403; None where they cannot be read."""
    years, months = _numbers(year or (), _YEAR), _numbers(month or (), _SMALL)
    if month and not months:
        found = read_times(month)[0]  # a month with its year, such as 2024-03
        if found is None or np.isnat(found).any():
            return None
        return [int(text.replace("-", "")) for text in found.astype("datetime64[M]").astype(str).tolist()]
    if not month or (year and not years):
        return years
    pairs = zip(years or [0] * len(month), months or (), strict=True)
    return [None if y is None or m is None else 100 * y + m for y, m in pairs]


def _numbers(cells: Sequence[str], pattern: re.Pattern[str]) -> list[int | None] | None:
    """Of days, weeks, months or years, None for blanks; None if a cell is neither a number nor a month's name."""
    known: dict[str, int | None] = {"": None}
    for text in dict.fromkeys(cells):
        try:
            found = pattern.fullmatch(text)
            known[text] = int(found[1]) if found else known.get(text) if not text else month_of(text)
        except ValueError:
            return None
    return [known[text] for text in cells] or None
