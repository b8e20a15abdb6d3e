"""One table, for the terminal, a page and a file; and the few ways in which all texts write numbers and words."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxbandits.core.checks import cell, line


class Table(NamedTuple):
    """Rows of cells under a header. A row may end before its last columns.

    Attributes:
        header: names of the columns.
        rows: cells, text or numbers, in the order of the header.
        left: columns that are flush left; the others are flush right.

    Example:
        >>> print(Table(("ad", "mean"), (("a", "1"), ("bc", "23")), left=(0,)).text())
        ad  mean
        a      1
        bc    23
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left: Sequence[int] = (0,)

    def text(self) -> str:
        """Lines for a terminal, two blanks between columns."""
        rows = [[line(str(x)) for x in row] for row in (self.header, *self.rows) if len(row)]
        widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(rows[0]))]
        return "\n".join(
            "  ".join(
                text.ljust(width) if column in self.left else text.rjust(width)
                for column, (text, width) in enumerate(zip(row, widths, strict=False))
            ).rstrip()
            for row in rows
        )

    def html(self) -> str:
        """A ``<table>``, every cell escaped."""

        def row(cells: Sequence[Any], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(str(x))}</{tag}>' for x in cells)}</tr>"

        return f"<table>{row(self.header, 'th')}{''.join(row(cells, 'td') for cells in self.rows)}</table>"

    def csv(self, digits: int | None = 9, line_end: str = "\n") -> str:
        """The text of a CSV file; equal rows are equal bytes.

        Args:
            digits: of a float; nine are more than the order of a sum can change. NaN and None are empty cells,
                booleans are yes and no, and text is made fit for a spreadsheet. None: every cell stands as it is.
            line_end: what ends a line.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator=line_end)
        writer.writerow(self.header)
        writer.writerows(self.rows if digits is None else ([_in_csv(x, digits) for x in row] for row in self.rows))
        return text.getvalue()


def _in_csv(value: Any, digits: int) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.{digits}g}"
    return "" if value is None else cell(value)


def counted(count: int, one: str, many: str = "") -> str:
    """``1 run``, ``1,200 runs``; ``many`` where the plural has no s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
