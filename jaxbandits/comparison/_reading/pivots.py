"""Tables as a spreadsheet's pivot writes them: a name stands only in the first of its rows, or above them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxbandits.comparison._reading.breakdown import agree, text_columns
from jaxbandits.comparison._reading.columns import Columns
from jaxbandits.comparison._reading.extras import TOTAL, lines_of
from jaxbandits.comparison._reading.sheet import Row, Sheet
from jaxbandits.comparison.evidence import FloatArray
from jaxbandits.core.errors import shown


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
        found = {i: above for i, above in _blanks(filled, at, labels).items() if i not in grand}
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


def _is_total(texts: Sequence[str]) -> bool:
    """Whether one of the labels is what a total is called."""
    return any(TOTAL.fullmatch(text) for text in texts)


def _blanks(rows: Sequence[Row], at: int, labels: Sequence[int]) -> dict[int, int]:
    """The rows to be filled in this column, each with the row whose name is its; none if it is not that of a pivot."""
    found, seen, last = dict[int, int](), set[tuple[str, ...]](), -1
    for i, (_, cells) in enumerate(rows):
        if cells[at]:
            own = tuple(cells[n] for n in labels if n <= at)
            if own in seen:
                return {}
            seen.add(own)
            last = i
        elif last >= 0 and any(cells[n] for n in labels if n > at) and not _is_total([cells[n] for n in labels]):
            found[i] = last
    return found if len(set(found.values())) > 1 else {}
