"""Tables as the text of CSV files: one way to write numbers, yes and no, gaps, and the names of others."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

from jaxbandits.core.printable import cell


def csv_text(
    header: Sequence[str], rows: Iterable[Iterable[Any]], *, digits: int | None = 9, line_end: str = "\n"
) -> str:
    """The text of a CSV file; equal rows are equal bytes.

    Args:
        header: names of the columns.
        rows: cells in the order of the header.
        digits: of a float; nine are more than the order of a sum can change. NaN and None are empty cells, booleans are
            yes and no, and text is made fit for a spreadsheet. None: every cell stands as it is (text of our own only).
        line_end: what ends a line.

    Example:
        >>> print(csv_text(["name", "mean", "clear", "low"], [["=x", 1 / 3, True, float("nan")]]), end="")
        name,mean,clear,low
        '=x,0.333333333,yes,
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerow(header)
    writer.writerows(rows if digits is None else ([_shown(value, digits) for value in row] for row in rows))
    return text.getvalue()


def _shown(value: Any, digits: int) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.{digits}g}"
    return "" if value is None else cell(value)
