"""A table for the terminal, a page or a file, and the package's formats of numbers and words.

It stands on nothing, so that the process that draws pictures starts quickly.
"""

from __future__ import annotations

import csv
import html
import io
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple


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

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Lines for a terminal, with two spaces between columns."""
        rows = [
            [line(x if isinstance(x, str) else str(_in_csv(x, 6))) for x in row]
            for row in (self.header, *self.rows)
            if len(row)
        ]
        columns = itertools.zip_longest(*rows, fillvalue="")
        widths = [max(map(len, column)) for column in columns]

        def text(row: list[str]) -> str:
            cells = enumerate(zip(row, widths, strict=False))
            flush = (x.ljust(w) if i in self.left else x.rjust(w) for i, (x, w) in cells)
            return "  ".join(flush).rstrip()

        return "\n".join(map(text, rows))

    def html(self) -> str:
        """A ``<table>``, every cell escaped."""

        def row(cells: Sequence[Any], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(str(x))}</{tag}>' for x in cells)}</tr>"

        return f"<table>{row(self.header, 'th')}{''.join(row(cells, 'td') for cells in self.rows)}</table>"

    def csv(self, digits: int | None = 9, line_end: str = "\n") -> str:
        """The text of a CSV file; equal rows give equal bytes.

        Args:
            digits: of a float; nine are more than the order of a sum can change. NaN and None are
                empty cells, booleans are yes and no, and text is made fit for a spreadsheet. None:
                every cell stands as it is.
            line_end: what ends a line.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator=line_end)
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow(row if digits is None else [_in_csv(x, digits) for x in row])
        return text.getvalue()


MOST_ROWS = 30  # of a table in a notebook, of estimates on a terminal


class Shown:
    """An object that a notebook shows as its one-line ``repr`` above a table of its parts."""

    def _shown_rows(self) -> Table:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        table = self._shown_rows()
        more = len(table.rows) - MOST_ROWS
        rest = f"<p>… {count_of(more, 'more row')}</p>" if more > 0 else ""
        shown = Table(table.header, table.rows[:MOST_ROWS]).html()
        return f"<p>{html.escape(repr(self))}</p>{shown}{rest}"


def _in_csv(value: Any, digits: int) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.{digits}g}"
    return "" if value is None else cell(value)


_LATIN = "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
_GREEK = dict(zip(_LATIN.split(), "αβγδεζηθκλμνξπρστφχψω", strict=True))


def in_greek(text: str) -> str:
    """Names of parameters as papers write them.

    Example:
        >>> in_greek("OmegaUCB(rho=0.25)"), in_greek("lambda_"), in_greek("alpha_reward")
        ('OmegaUCB(ρ=0.25)', 'λ', 'alpha_reward')
    """
    return re.sub(r"\b([a-z]+?)_?\b", lambda word: _GREEK.get(word[1], word[0]), text)


def count_of(count: int, singular: str, plural: str = "") -> str:
    """``1 run``, ``1,200 runs``; give ``plural`` for a noun with an irregular plural."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def span(values: Any) -> str:
    """A short text for numbers: each of up to four, else the smallest and the largest.

    Example:
        >>> span([0.5, 0.25]), span(range(30))
        ('0.5, 0.25', '0 to 29')
    """
    flat = [x for x in values if not math.isnan(x)]
    if len(flat) <= 4:
        return ", ".join(f"{x:.4g}" for x in flat)
    return f"{min(flat):.4g} to {max(flat):.4g}"


# --- Text of others: names from files stay mere text on a terminal and in a spreadsheet.

# A spreadsheet takes what follows for a formula at the start of a cell, or behind a semicolon,
# which separates cells in many countries.
_FORMULA = re.compile(r"(^|;)(\s*'*\s*)([=+\-@＝＋－＠])")


# Spaces of other widths are spaces
NARROW = dict.fromkeys((*range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")


def line(text: str) -> str:
    """``text`` with control and invisible characters escaped, as Python does it."""
    text = text.translate(NARROW)
    odd = (x for x in set(text) if not x.isprintable() and x != "\u00a0")
    return text.translate({ord(x): x.encode("unicode_escape").decode() for x in odd})


def cell(value: Any) -> Any:
    """A CSV cell that no spreadsheet takes for a formula; other values than text are unchanged."""
    return _FORMULA.sub(r"\1'\2\3", line(value)) if isinstance(value, str) else value
