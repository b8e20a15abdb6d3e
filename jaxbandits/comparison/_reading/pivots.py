"""Tables as a spreadsheet's pivot writes them: a name stands only in the first of its rows, or above them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison._reading.breakdown import agree, text_columns
from jaxbandits.comparison._reading.columns import Columns
from jaxbandits.comparison._reading.extras import TOTAL, lines_of
from jaxbandits.comparison._reading.problems import Problems
from jaxbandits.comparison._reading.sheet import Row, Sheet
from jaxbandits.comparison.evidence import FloatArray
from jaxbandits.core.errors import bad, shown

_MOST_NESTED = 10_000  # rows of a pivot, which people read
_CENT = 0.0051  # by which each part may have been rounded


def refilled(
    sheet: Sheet, rows: Sequence[Row], words: Sequence[int], sums: Sequence[FloatArray]
) -> tuple[list[Row], tuple[str, ...]]:
    """The rows with names (campaigns, instances) that stand only in the first row of each written into the others.

    It is so where no name stands twice, at least two names have blanks below them, the blank rows have a label of their
    own to the right, and no two rows then have the same labels; rows that are totals stay as they are.

    Args:
        sheet: the table, for its columns and titles.
        rows: of it.
        words: positions of cells that are neither names nor numbers, such as the day.
        sums: columns of which a total is the sum; float64 [N] each.
    """
    columns, filled, notes = sheet.columns, list(rows), tuple[str, ...]()
    if columns.plain or columns.kind == "means":
        return filled, notes
    labels = text_columns(rows, [columns.at["name"], *words], columns.at.get("time"))
    values = np.nan_to_num(np.array(sums))
    grand = set(np.flatnonzero(agree(values, values.sum(axis=1, keepdims=True) - values)).tolist()) if sums[1:] else ()
    for at in sorted(set(_outer(columns)) & set(labels)):
        found = {i: above for i, above in _blanks(filled, at, labels, _coarser(columns, at)).items() if i not in grand}
        for i, above in found.items():
            line, cells = filled[i]
            filled[i] = line, (*cells[:at], filled[above][1][at], *cells[at + 1 :])
        if found:
            lines = lines_of([rows[i][0] for i in found])
            notes += (f"{shown(sheet.titles[at])} blank in {lines}: as in the row above, as a pivot table is",)
    own = [key for _, cells in filled if not _is_total(key := [cells[n] for n in labels])]
    return (filled, notes) if len(set(map(tuple, own))) == len(own) else (list(rows), ())


def _outer(columns: Columns) -> tuple[int, ...]:
    return *columns.levels, *(columns.at[role] for role in ("name", "instance") if role in columns.at)


def _coarser(columns: Columns, at: int) -> Sequence[int]:
    """The names that are coarser than the one in this column."""
    finest_first = (columns.at["name"], *columns.levels)
    return finest_first[finest_first.index(at) + 1 :] if at in finest_first else ()


def _is_total(texts: Sequence[str]) -> bool:
    """Whether one of the labels is what a total is called."""
    return any(TOTAL.fullmatch(text) for text in texts)


def _blanks(rows: Sequence[Row], at: int, labels: Sequence[int], outer: Sequence[int]) -> dict[int, int]:
    """The rows to be filled in this column, each with the row whose name is its; none if it is not that of a pivot.

    ``outer`` are the positions of coarser names.
    """
    found, seen, last = dict[int, int](), set[tuple[str, ...]](), -1
    for i, (_, cells) in enumerate(rows):
        if cells[at]:
            own = tuple(cells[n] for n in labels if n <= at)
            if own in seen:
                return {}
            seen.add(own)
            last = i
        elif last >= 0 and any(cells[n] for n in labels if n > at) and not _is_total([cells[n] for n in labels]):
            if any(cells[n] != rows[last][1][n] for n in outer):
                return {}  # of another campaign than the row above: it has no such name
            found[i] = last
    return found if len(set(found.values())) > 1 else {}


def check_nested(sheet: Sheet, rows: Sequence[tuple[Row, int]], sums: Sequence[FloatArray], problems: Problems) -> None:
    """``problems`` then has a compact pivot: every name of its top is the sum of the rows below it, down to the next.

    Args:
        sheet: the table.
        rows: of it that are no totals, each with its position in ``sums``.
        sums: columns of which a total is the sum; float64 [N] each.
        problems: of the file.
    """
    if sheet.columns.kind != "counts" or sheet.columns.plain or sheet.columns.constant or len(rows) > _MOST_NESTED:
        return
    values = np.nan_to_num(np.array(sums))[:, [i for _, i in rows]].T.tolist()
    ends, tops = _ends(values), list[int]()
    i = 0
    while i < len(rows):
        tops.append(i)
        i = ends[i]
    parts = [sum(map(any, values[top + 1 : ends[top]])) for top in tops]
    if not all(parts) or sum(part > 1 for part in parts) < 2:  # two arms of the same numbers are no sum
        return
    (line, cells), last = rows[tops[0]][0], rows[ends[tops[0]] - 1][0][0]
    may_be = f"an arm, not the sum of the lines down to {last}: show the pivot in tabular form, with labels repeated"
    problems.note(
        bad(f"{sheet.source}, line {line}, column {sheet.label('name')}", cells[sheet.columns.at["name"]], may_be)
    )


def _ends(values: Sequence[Sequence[float]]) -> list[int]:
    """For each row the position behind the rows below it that it sums; behind itself if it sums none."""
    ends = list(range(1, len(values) + 1))
    for i in reversed(range(len(values))):
        found, j, parts = [0.0] * len(values[i]), i + 1, 0
        while j < len(values) and all(x <= y + _CENT * parts for x, y in zip(found, values[i], strict=True)):
            found, parts = [x + y for x, y in zip(found, values[j], strict=True)], parts + 1
            j = ends[j]
            if sum(values[i]) > 0 and all(abs(x - y) <= _CENT * parts for x, y in zip(found, values[i], strict=True)):
                while j < len(values) and not any(values[j]):
                    j += 1
                ends[i] = j
                break
    return ends
