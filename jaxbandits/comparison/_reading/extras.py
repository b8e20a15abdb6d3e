"""Rows of an arms file that are no arms: totals, notes below the table, a header once more, a second table."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from jaxbandits.comparison._reading.breakdown import subtotals
from jaxbandits.comparison._reading.columns import Columns
from jaxbandits.comparison._reading.numbers import is_nothing, is_number
from jaxbandits.comparison._reading.sheet import Row, Sheet
from jaxbandits.comparison.evidence import FloatArray
from jaxbandits.core.errors import shown

TOTAL = re.compile(  # what a row of totals is called
    r"(?:(?:grand|overall|report|account|filtered|campaign|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sum|total g[eé]n[eé]ral|total geral|totale|totaal|totalt|suma|somme|soma|summe|gesamt|insgesamt"
    r"|gesamt(?:summe|ergebnis|wert)e?|eindtotaal|razem|итого|всего|合計|合计|总计"
    r"|averages?|mean|mittelwert|durchschnitt|moyennes?|promedio|m[eé]dia|gemiddelde)"
    r"(?:\s*[:;(/–-].*|\s+(?:all|of|for|general|ger(?:al|)|account|campaigns?|rows?)\b.*)?"
    r"|(?:results from|ergebnisse (?:aus|von)|résultats de|resultados de|risultati di) \d+ .*",
    re.IGNORECASE,
)
_SUM = (
    r"(?:sub-?)?(?:totals?|sum|totale|totaal|totalt|suma|somme|soma|summe|gesamt(?:summe|ergebnis)?|ergebnis|razem|итого"
    r"|合計|合计)"
)
_OF_OTHERS = re.compile(rf"(?P<of>.+?)[\s:–-]+{_SUM}|{_SUM}[\s:–-]+(?:of\s+|von\s+|de\s+)?(?P<by>.+)", re.IGNORECASE)
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
    for i in range(1, len(rows)):
        if rows[i][0] in sheet.gaps and (at := _table_below(rows, i)):
            notes.append(f"lines {rows[i][0]} to {rows[-1][0]} skipped: another table, {_quoted(rows[at][1])}")
            rows = rows[:i]
            break
    below = []
    while len(rows) > 1 and _is_remark(rows[-1], sheet, numeric):
        below.append(rows.pop())
    if below:
        text = " / ".join(" ".join(filter(None, cells)) for _, cells in reversed(below))
        notes.append(f"{lines_of([line for line, _ in reversed(below)])} below the table skipped: {shown(text)}")
    changes = [line for line, cells in rows if _is_change(cells, numeric)] if sheet.columns.kind == "counts" else []
    if 0 < len(changes) < len(rows):
        left_out = set(changes)
        rows = [row for row in rows if row[0] not in left_out]
        notes.append(f"{lines_of(changes)} skipped: all in percent, so a change or a share")
    name = sheet.columns.at["name"]
    if len(rows) > 2 and not rows[0][1][name] and _other(rows[0][1], numeric):
        notes.append(f"line {rows[0][0]} skipped: no numbers below the header, {_quoted(rows[0][1])}")
        rows = rows[1:]
    return rows, tuple(notes)


def _table_below(rows: Sequence[Row], i: int) -> int:
    """Where below a blank line another header stands, perhaps behind lines of one cell; 0 if none does."""
    while i < len(rows) and sum(map(bool, rows[i][1])) == 1:
        i += 1
    cells = rows[i][1] if i < len(rows) - 1 else ()
    return i if sum(map(bool, cells)) > 1 and not any(is_number(cell) for cell in cells) else 0


def _other(cells: Sequence[str], numeric: Sequence[int]) -> bool:
    """Words where numbers should stand."""
    return all(not is_number(cells[n]) for n in numeric) and any(cells[n] and not is_nothing(cells[n]) for n in numeric)


def _is_remark(row: Row, sheet: Sheet, numeric: Sequence[int]) -> bool:
    line, cells = row
    filled = sum(map(bool, cells))
    return not any(cells[n] for n in numeric) and (filled < 2 or line in sheet.gaps)


def _is_change(cells: Sequence[str], numeric: Sequence[int]) -> bool:
    """Whether all numbers of a row, at least two, are in percent: it compares two rows above, or is a share of all."""
    filled = [cells[n] for n in numeric if not is_nothing(cells[n])]
    return len(filled) > 1 and all(cell.endswith("%") for cell in filled)


def _quoted(cells: Iterable[str]) -> str:
    return shown(" ".join(filter(None, cells)))


def totals(rows: Sequence[Row], columns: Columns, words: Sequence[int], sums: Sequence[FloatArray]) -> list[int]:
    """Which rows sum others: by what they are called, or because their numbers do. In a file in plain form a total must
    be called so and add up.

    Args:
        rows: of the table.
        columns: what its columns are.
        words: positions of cells that are neither names nor numbers, such as the day.
        sums: columns of which a total is the sum, such as clicks and spent; of a file of means the means; float64 [N].
    """
    name, plain, shown_numbers = columns.at["name"], columns.plain, sums
    sums = () if columns.kind == "means" else sums
    labelled = {i for i, (_, cells) in enumerate(rows) if is_blank(cells[name], plain) and _labels(cells, words)}
    labelled |= {i for i, (_, cells) in enumerate(rows) if ":" in cells[name] and TOTAL.fullmatch(cells[name])}
    at = columns.at.get("instance")
    labelled |= _subtotals([(cells[at] if at is not None else "", cells[name]) for _, cells in rows], sums)
    key = [columns.at[role] for role in ("name", "instance") if role in columns.at]
    labelled |= subtotals(rows, [*key, *columns.levels], columns.at.get("time"), words, sums, TOTAL, plain)
    labelled |= _of_runs([cells[name] for _, cells in rows], labelled, sums)
    left = [i for i in range(len(rows)) if i not in labelled]
    for end in (-1, 0):  # at the ends one after the other, as there may be totals of totals
        while len(left) > 1:
            own = rows[left[end]][1][name]
            called, adds_up = TOTAL.fullmatch(own) is not None, _is_sum(left[end], left, sums)
            if len(left) == 2:  # the only arm, and a row that says the same of it
                called = adds_up = called and all(values[left[0]] == values[left[1]] for values in sums)
            is_total = called and adds_up if plain and own else called or adds_up
            if not is_total and (plain or not _is_statistic(left[end], left, own, shown_numbers, columns.kind)):
                break
            labelled.add(left.pop(end))
    return sorted(labelled)


def _of_runs(names: Sequence[str], labelled: Collection[int], sums: Sequence[FloatArray]) -> set[int]:
    """Rows called a total that sum the rows above them, down from the last such row."""
    found, run = set[int](), list[int]()
    for i, own in enumerate(names):
        if i in labelled:
            continue
        if (
            len(run) > 1
            and len(sums) > 1
            and TOTAL.fullmatch(own)
            and all(_agree(of[i], float(np.nansum(of[run]))) for of in sums)
        ):
            found.add(i)
            run = []
        else:
            run.append(i)
    return found


_STATISTICS: dict[str, Callable[..., Any]] = {"median": np.median, "overall": np.sum}


def _is_statistic(row: int, rows: Sequence[int], name: str, columns: Sequence[FloatArray], kind: str) -> bool:
    """Whether this row is called the median, or the whole, of the others, and is it. Of means, the overall one lies
    between them."""
    others, word = [i for i in rows if i != row], name.casefold()
    if word not in _STATISTICS or len(others) < 2 or not columns:
        return False
    if kind == "means" and _STATISTICS[word] is np.sum:
        return all(np.nanmin(of[others]) <= of[row] <= np.nanmax(of[others]) for of in columns)
    return all(_agree(of[row], float(_STATISTICS[word](np.nan_to_num(of[others])))) for of in columns)


def _subtotals(names: Sequence[tuple[str, str]], sums: Sequence[FloatArray]) -> set[int]:
    """Rows such as "A Total" that say what the rows named "A" of the same instance come to; (instance, name) each."""
    found, several, rows = set[int](), False, dict[tuple[str, str], list[int]]()
    for i, (instance, own) in enumerate(names):
        rows.setdefault((instance, own.casefold()), []).append(i)
    for i, (instance, own) in enumerate(names):
        called = _OF_OTHERS.fullmatch(own)
        of = called and (called["of"] or called["by"]).casefold()
        others = rows.get((instance, of), []) if of else []
        if others and sums and all(_agree(values[i], float(np.nansum(values[others]))) for values in sums):
            found.add(i)
            several |= len(others) > 1
    return found if several or len(found) > 1 else set()  # "Total Wine" may be as large as "Wine"


def _agree(total: float, found: float) -> bool:
    return bool(total > 0 and abs(total - found) <= 0.005 * found)


def _labels(cells: Sequence[str], words: Sequence[int]) -> bool:
    return any(TOTAL.fullmatch(cells[n]) for n in words)


def is_blank(name: str, plain: bool) -> bool:
    """Whether a row has no name: its cell is empty or, where the file is not in plain form, a dash."""
    return not (name if plain else name.strip("-–— "))


def label_of(cells: Sequence[str]) -> str:
    """What a row of totals is called."""
    return next((cell for cell in cells if TOTAL.fullmatch(cell)), next(filter(None, cells)))


def _is_sum(row: int, rows: Sequence[int], sums: Sequence[FloatArray]) -> bool:
    """Whether each column's number is the sum of the others; at least two must be above 0."""
    for values in sums:
        others = float(np.nansum(values[rows])) - values[row]
        if not _agree(values[row], others):
            return False
    return len(sums) > 1 and bool((sums[0][rows] > 0).sum() > 2)
