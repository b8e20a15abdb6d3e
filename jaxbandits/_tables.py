"""One table, for the terminal, a page and a file; and the few ways in which all texts write numbers
and words.

It stands on nothing, so that the process that draws pictures starts quickly.
"""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
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

    def text(self) -> str:
        """Lines for a terminal, two blanks between columns."""
        rows = [[line(str(x)) for x in row] for row in (self.header, *self.rows) if len(row)]
        widths = [
            max(len(row[column]) for row in rows if column < len(row))
            for column in range(len(rows[0]))
        ]
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
            digits: of a float; nine are more than the order of a sum can change. NaN and None are
                empty cells, booleans are yes and no, and text is made fit for a spreadsheet. None:
                every cell stands as it is.
            line_end: what ends a line.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator=line_end)
        writer.writerow(self.header)
        writer.writerows(
            self.rows
            if digits is None
            else ([_in_csv(x, digits) for x in row] for row in self.rows)
        )
        return text.getvalue()


MOST_ROWS = 30  # of a table in a notebook, of estimates on a terminal


class Shown:
    """What a notebook shows as its ``repr``, one line, over the rows of :meth:`_shown_rows`."""

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
GREEK = dict(zip(_LATIN.split(), "αβγδεζηθκλμνξπρστφχψω", strict=True))


def in_greek(text: str) -> str:
    """Names of parameters as papers write them.

    Example:
        >>> in_greek("OmegaUCB(rho=0.25)"), in_greek("lambda_"), in_greek("alpha_reward")
        ('OmegaUCB(ρ=0.25)', 'λ', 'alpha_reward')
    """
    return re.sub(r"\b([a-z]+?)_?\b", lambda word: GREEK.get(word[1], word[0]), text)


def count_of(count: int, singular: str, plural: str = "") -> str:
    """``1 run``, ``1,200 runs``; ``plural`` for a noun whose plural has no s."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def span(values: Any) -> str:
    """Numbers in a few words: each of up to four, else the ends.

    Example:
        >>> span([0.5, 0.25]), span(range(30))
        ('0.5, 0.25', '0 to 29')
    """
    flat = [x for x in values if not math.isnan(x)]
    if len(flat) <= 4:
        return ", ".join(f"{x:.4g}" for x in flat)
    return f"{min(flat):.4g} to {max(flat):.4g}"


def _digits_of(half: float) -> str:
    """The format of two digits of a half width."""
    return f",.{2 if half == 0 else min(max(1 - math.floor(math.log10(half)), 0), 9)}f"


@dataclass(frozen=True)
class NumberStyle:
    """How the file writes its numbers, so that answers can be written alike.

    Attributes:
        symbol: the currency as the file has it (``"$"``, ``"€"``, ``"CHF"``); empty where it names
            none.
        symbol_first: whether it stands before the number.
        symbol_apart: whether a space stands between.
        decimal: ``"."`` or ``","``.
        thousands: what stands between thousands in the file; empty where none was seen.

    Example:
        >>> NumberStyle("€", symbol_first=False, symbol_apart=True, decimal=",", thousands=".").money(1234.5)
        '1.234,50 €'
        >>> NumberStyle("$").money(1234567), NumberStyle().count(1300.0), NumberStyle().money(0.0123)
        ('$1,234,567.00', '1,300', '0.0123')
    """

    symbol: str = ""
    symbol_first: bool = True
    symbol_apart: bool = False
    decimal: str = "."
    thousands: str = ""

    def number(self, value: float, decimals: int) -> str:
        """With ``decimals`` and thousands apart, as in the file or by its decimal sign."""
        return self.written(f"{value:,.{decimals}f}")

    def written(self, plain: str) -> str:
        """Numbers with decimal points, and commas between thousands, as the file would write them."""
        between = self.thousands or (" " if self.decimal == "," else ",")
        return plain.translate({ord(","): between, ord("."): self.decimal})

    def count(self, value: float) -> str:
        """A number of clicks or conversions: whole, or else with two decimals at most."""
        return self.number(value, 0 if float(value).is_integer() else 2)

    def amount(self, value: float) -> str:
        """A mean number of results or pulls: three digits that count."""
        size = abs(value)
        return self.number(value, 0 if size >= 100 or size == 0 else 1 if size >= 1 else 2)

    def plus_minus(self, value: float, half: float) -> str:
        """``12.34 ± 0.56``, two digits of the half width; without one the value alone."""
        if math.isnan(half):
            return self.written(f"{value:,.5g}")
        form = _digits_of(half)
        return self.written(f"{value:{form}} ± {half:{form}}")

    def interval(self, value: float, low: float, high: float) -> str:
        """``+12.3 (−0.4 to +25.1)``, as many decimals as show two digits of half its width."""
        if math.isnan(low):
            return self.written(f"{value:+{_digits_of(abs(value) / 10)}}").replace("-", "−")
        form = _digits_of((high - low) / 2)
        text = f"{value:+{form}} ({low:+{form}} to {high:+{form}})"
        return self.written(text).replace("-", "−")

    def money(self, value: float, cents: bool = True) -> str:
        """Amount with currency: two decimals (``cents``: if whole too), 3 digits below 0.1."""
        decimals = (
            2 if not 0 < abs(value) < 0.1 else min(2 - math.floor(math.log10(abs(value))), 12)
        )
        amount = self.number(value, decimals if cents or not float(value).is_integer() else 0)
        apart = " " if self.symbol and self.symbol_apart else ""
        return (
            f"{self.symbol}{apart}{amount}"
            if self.symbol_first
            else f"{amount}{apart}{self.symbol}"
        )


# --- Text of others: names from files stay mere text on a terminal and in a spreadsheet.

# A spreadsheet takes what follows for a formula at the start of a cell, or behind a semicolon,
# which separates cells in many countries.
_FORMULA = re.compile(r"(^|;)(\s*'*\s*)([=+\-@＝＋－＠])")


# Spaces of other widths are spaces
NARROW = dict.fromkeys((*range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")


def line(text: str) -> str:
    """``text`` with control and invisible characters written out, as Python does it."""
    text = text.translate(NARROW)
    return "".join(
        x if x.isprintable() or x == "\u00a0" else x.encode("unicode_escape").decode() for x in text
    )


def cell(value: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula; what is no text stays as it is."""
    return _FORMULA.sub(r"\1'\2\3", line(value)) if isinstance(value, str) else value
