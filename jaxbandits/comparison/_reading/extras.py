"""Rows of an arms file that are no arms: totals, notes below the table, a header once more, a second table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from jaxbandits.comparison._reading.numbers import is_nothing, is_number
from jaxbandits.comparison._reading.sheet import Row, Sheet
from jaxbandits.comparison.evidence import FloatArray
from jaxbandits.core.errors import shown

_TOTAL = re.compile(
    r"(?:(?:grand|overall|report|account|filtered|campaign|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sum|total g[eé]n[eé]ral|total geral|totale|totaal|totalt|suma|somme|soma|summe|gesamt|insgesamt"
    r"|gesamt(?:summe|ergebnis|wert)e?|eindtotaal|razem|итого|всего|合計|合计|总计)"
    r"(?:\s*[:;(/–-].*|\s+(?:all|of|for|general|ger(?:al|)|account|campaigns?|rows?)\b.*)?"
    r"|(?:results from|ergebnisse (?:aus|von)|résultats de|resultados de|risultati di) \d+ .*",
    re.IGNORECASE,
)
_MOST_LINES = 5


def lines_of(lines: Sequence[int]) -> str:
    """``line 3``, ``lines 3, 5`` or ``lines 3, 5, 8, 9, 12 and 4 more``."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    more = f" and {len(lines) - _MOST_LINES:,} more" if len(lines) > _MOST_LINES else ""
    return f"lines {', '.join(map(str, lines[:_MOST_LINES]))}{more}"


def without_extras(sheet: Sheet, numeric: Sequence[int]) -> tuple[list[Row], tuple[str, ...]]:
    """The rows that may be arms, and notes on the others. ``numeric`` are the positions of numbers."""
    header = sheet.titles
    notes = []
    rows = [row for row in sheet.rows if row[1] != header]
    if len(rows) < len(sheet.rows):
        again = [line for line, cells in sheet.rows if cells == header]
        notes.append(f"{lines_of(again)} skipped: the header once more")
    for i, (line, cells) in enumerate(rows):
        filled = sum(map(bool, cells))
        if (
            i
            and line in sheet.gaps
            and filled > 1
            and not any(is_number(cells[n]) for n in numeric)
            and _other(cells, numeric)
        ):
            notes.append(f"lines {line} to {rows[-1][0]} skipped: another table begins below, {_quoted(cells)}")
            rows = rows[:i]
            break
    below = []
    while len(rows) > 1 and _is_remark(rows[-1], sheet, numeric):
        below.append(rows.pop())
    if below:
        text = " / ".join(" ".join(filter(None, cells)) for _, cells in reversed(below))
        notes.append(f"{lines_of([line for line, _ in reversed(below)])} below the table skipped: {shown(text)}")
    name = sheet.columns.at["name"]
    if len(rows) > 2 and not rows[0][1][name] and _other(rows[0][1], numeric):
        notes.append(f"line {rows[0][0]} skipped: no numbers below the header, {_quoted(rows[0][1])}")
        rows = rows[1:]
    return rows, tuple(notes)


def _other(cells: Sequence[str], numeric: Sequence[int]) -> bool:
    """Words where numbers should stand."""
    return all(not is_number(cells[n]) for n in numeric) and any(cells[n] and not is_nothing(cells[n]) for n in numeric)


def _is_remark(row: Row, sheet: Sheet, numeric: Sequence[int]) -> bool:
    line, cells = row
    filled = sum(map(bool, cells))
    return not any(cells[n] for n in numeric) and (filled < 2 or line in sheet.gaps)


def _quoted(cells: Iterable[str]) -> str:
    return shown(" ".join(filter(None, cells)))


def totals(rows: Sequence[Row], name: int, words: Sequence[int], sums: Sequence[FloatArray]) -> list[int]:
    """Which rows sum others: by what they are called, or because their numbers do.

    Args:
        rows: of the table.
        name: position of the names.
        words: positions of other cells that are no numbers, such as the day.
        sums: columns of which a total is the sum, such as clicks and spent; float64 [N] each.
    """
    found, last = [], len(rows) - 1
    whole = [float(np.nansum(values)) for values in sums]
    for i, (_, cells) in enumerate(rows):
        own, at_end = cells[name], i in (0, last)
        if own and not at_end and ":" not in own:
            continue
        label = own or next((cells[n] for n in words if _TOTAL.fullmatch(cells[n])), "")
        if _TOTAL.fullmatch(label) or _is_sum(i, sums, whole):
            found.append(i)
    return found


def _is_sum(row: int, sums: Sequence[FloatArray], whole: Sequence[float]) -> bool:
    """Whether each column's number is the sum of at least two others above 0."""
    if len(sums) < 2 or len(sums[0]) < 3:
        return False
    for values, total in zip(sums, whole, strict=True):
        others = total - values[row]
        if not (values[row] > 0 and abs(values[row] - others) <= 0.005 * others):
            return False
    return bool((sums[0] > 0).sum() > 2)
