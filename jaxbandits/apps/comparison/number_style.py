"""Numbers and money as an arms file writes them."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
