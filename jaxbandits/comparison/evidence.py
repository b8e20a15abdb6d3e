"""What an arms file says of its arms before anything is divided: counts, days, pulls, and how it writes numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Daily:
    """One arm's rows of a file of counts, in time order; rows of one day are summed.

    Attributes:
        day: datetime64[D] [N], the day that a row speaks of (the first of a week or month); NaT where the file has no
            dates, and every row stands for itself.
        clicks: float64 [N], pulls.
        value: float64 [N], conversions or whatever is the reward.
        spent: float64 [N], in the file's currency.
    """

    day: NDArray[np.datetime64]
    clicks: FloatArray
    value: FloatArray
    spent: FloatArray


@dataclass(frozen=True, eq=False)
class Pulls:
    """The rows of a log of one instance, in time order where the file has times, else in that of the file.

    Attributes:
        arm: int64 [N], the position of the row's arm among the instance's arms.
        reward: float64 [N]; NaN where the file has none (a gap: such a row is in no mean).
        cost: float64 [N]; NaN as above.
        time: datetime64[us] [N] (UTC where the file gives an offset), NaT where a row has none; None for a file without
            times.
    """

    arm: NDArray[np.int64]
    reward: FloatArray
    cost: FloatArray
    time: NDArray[np.datetime64] | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the file says of one instance's arms: totals, never divided by a bound and without any prior.

    Attributes:
        kind: ``"means"``, ``"counts"``, ``"log"`` or ``"facebook"``.
        clicks: float64 [K], pulls of each arm: clicks (counts, Facebook; sessions or impressions where
            :attr:`~jaxbandits.comparison.ArmsTable.pull_unit` says so) or complete rows (log). None for means. 0 only
            where a prior keeps an arm that has none.
        value: float64 [K], the total reward: conversions, revenue, rewards. None for means.
        spent: float64 [K], the total cost. None for means.
        whole: every reward is a count of what a pull brings at most once: value is whole and at most clicks (log: all
            rewards are 0 or 1), so that a binomial law fits; False for means and for revenue.
        daily: of each arm its rows day by day; None where no arm has more than one row, and for logs and means.
        pulls: the log's rows in time order; None unless the file is a log.
    """

    kind: str
    clicks: FloatArray | None
    value: FloatArray | None
    spent: FloatArray | None
    whole: bool = False
    daily: tuple[Daily, ...] | None = None
    pulls: Pulls | None = None


@dataclass(frozen=True)
class NumberStyle:
    """How the file writes its numbers, so that answers can be written alike.

    Attributes:
        symbol: the currency as the file has it (``"$"``, ``"€"``, ``"CHF"``); empty where it names none.
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
        """With so many decimals, and thousands apart (by what suits the decimal sign, if the file shows nothing)."""
        return self.written(f"{value:,.{decimals}f}")

    def written(self, plain: str) -> str:
        """Numbers with decimal points, and commas between thousands, as the file would write them."""
        between = self.thousands or (" " if self.decimal == "," else ",")
        return plain.translate({ord(","): between, ord("."): self.decimal})

    def count(self, value: float) -> str:
        """A number of clicks or conversions: whole where it is whole, else with two decimals at most."""
        return self.number(value, 0 if float(value).is_integer() else 2)

    def plus_minus(self, mean: float, half: float, sign: str = "") -> str:
        """``12.34 ± 0.56``, two digits of the half width; without one the mean alone. ``sign="+"`` shows a plus."""
        if math.isnan(half):
            return self.written(f"{mean:{sign},.5g}")
        decimals = 2 if half == 0 else min(max(1 - math.floor(math.log10(half)), 0), 9)
        return self.written(f"{mean:{sign},.{decimals}f} ± {half:,.{decimals}f}")

    def money(self, value: float) -> str:
        """An amount with the file's currency: two decimals, more for an amount below 0.1 (three digits that count)."""
        decimals = 2 if not 0 < abs(value) < 0.1 else min(2 - int(np.floor(np.log10(abs(value)))), 12)
        apart = " " if self.symbol and self.symbol_apart else ""
        amount = self.number(value, decimals)
        return f"{self.symbol}{apart}{amount}" if self.symbol_first else f"{amount}{apart}{self.symbol}"
