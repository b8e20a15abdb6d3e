"""Budgets of an agent: what they grant, for how long, for whom, and what was charged to each of their periods."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandits.constraints import Allowance, BudgetState
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad, numbers, positive_number


@dataclasses.dataclass(frozen=True)
class Budget:
    """An amount of money that renews.

    Attributes:
        amount: what each period grants, in the money of the arms' bounds.
        every: the length of a period, in seconds; periods begin at multiples of it since the agent's ``start``.
        arms: the names of the arms that it pays for; None: all, also those that join later.
        carry_over: is what is left at the end of a period added to the next one? Else it is lost.
        name: for messages and reports.

    Example:
        >>> import jaxbandits as jb
        >>> jb.live.Budget(amount=20.0, every=86400.0).name
        'budget'
    """

    amount: float
    every: float
    arms: tuple[str, ...] | None = None
    carry_over: bool = False
    name: str = "budget"

    def check(self, unit: float, arms: Sequence[str]) -> None:
        """Raise :class:`InputError` on what is no budget for these arms; ``unit`` is the money of a unit of cost."""
        positive_number(f"{self.name}.amount", self.amount)
        positive_number(f"{self.name}.every", self.every)
        if not self.amount / unit * ticks.ONE >= 1 or self.amount / unit >= 2**30:
            raise bad(f"{self.name}.amount", self.amount, f"from {unit / ticks.ONE:.3g} to {unit * 2**30:.3g}")
        if isinstance(self.arms, str):
            raise bad(f"{self.name}.arms", self.arms, "names of arms, or None for all")
        for name in self.arms or ():
            if name not in arms:
                raise bad(f"{self.name}.arms", name, f"one of {', '.join(arms)}")


@dataclasses.dataclass(frozen=True)
class Traffic:
    """How many requests are expected, for policies that pace: ``PricePacer`` and ``EvenPace`` cannot do without.

    Attributes:
        expected: requests in each slot of a cycle (the 24 hours of a day, say), whole numbers.
        slot: length of a slot in seconds; periods of budgets must be multiples of it.

    Example:
        >>> import jaxbandits as jb
        >>> sum(jb.live.Traffic(expected=[10] * 8 + [60] * 16, slot=3600.0).expected)
        1040
    """

    expected: Sequence[int]
    slot: float = 3600.0

    def check(self, budgets: Sequence[Budget]) -> None:
        """Raise :class:`InputError` on what is no traffic."""
        table = numbers("traffic.expected", list(self.expected))
        wrong = ~(np.isfinite(table) & (table >= 0) & (table == np.rint(table)) & (table < 2**30))
        if table.ndim != 1 or not table.size or wrong.any():
            raise bad("traffic.expected", self.expected, "a list of whole numbers of at least 0")
        positive_number("traffic.slot", self.slot)
        for budget in budgets:
            slots = budget.every / self.slot
            if slots != round(slots):
                raise bad("traffic.slot", self.slot, f"a divisor of the period of {budget.name}, {budget.every:g} s")


class Account:
    """What one budget grants and what was charged to it, in whole ticks: the one place where money is counted."""

    def __init__(self, budget: Budget, start: float, unit: float):
        self.budget, self.start = budget, start
        self.amount = math.floor(budget.amount / unit * ticks.ONE)
        self.period: int | None = None  # of the last decision
        self.begun: int | None = None  # the first period in which a decision was made
        self.since = 0  # the first round of `period`
        self.charged: dict[int, int] = {}  # by period: costs that are known, and bounds that are held
        self.total = 0  # the sum of `charged`, which grows with every period

    def at(self, now: float) -> int:
        """The number of the period."""
        return math.floor((now - self.start) / self.budget.every)

    def renews(self, now: float) -> float:
        """When the next period begins."""
        return self.start + (self.at(now) + 1) * self.budget.every

    def turn(self, now: float, round: int) -> None:
        """Begin the decision of this round."""
        if (period := self.at(now)) != self.period:
            self.period, self.since = period, round
            self.begun = period if self.begun is None else self.begun

    def granted(self, period: int) -> int:
        """What may be charged by then: in that period, or in all so far if it carries over."""
        if self.budget.carry_over and self.begun is not None:
            return self.amount * (period - self.begun + 1)
        return self.amount

    def paid(self, period: int) -> int:
        """What was charged: in that period, or in all so far if it carries over."""
        return self.total if self.budget.carry_over else self.charged.get(period, 0)

    def left(self, now: float) -> int:
        """What may still be spent."""
        period = self.at(now)
        return self.granted(period) - self.paid(period)

    def charge(self, period: int, amount: int) -> None:
        """Charge to a period, which may be over."""
        self.charged[period] = self.charged.get(period, 0) + amount
        self.total += amount


class Pace:
    """Where in its traffic an agent is."""

    def __init__(self, traffic: Traffic, start: float):
        self.traffic, self.start = traffic, start
        self.slot: int | None = None  # of the last decision
        self.seen = 0  # decisions in that slot before it

    def turn(self, now: float) -> None:
        """Begin a decision."""
        slot = math.floor((now - self.start) / self.traffic.slot)
        self.seen = self.seen + 1 if slot == self.slot else 0
        self.slot = slot

    def ahead(self, accounts: Sequence[Account]) -> tuple[np.ndarray, np.ndarray]:
        """Requests that are expected until each period ends, this one included, and in all of it; at least 1."""
        table, slot = self.traffic.expected, self.slot or 0
        left, total = [], []
        for account in accounts:
            length = round(account.budget.every / self.traffic.slot)
            first = (account.period or 0) * length
            each = [int(table[i % len(table)]) for i in range(first, first + length)]
            here = max(each[slot - first] - self.seen, 0)
            left.append(max(sum(each[slot - first + 1 :]) + here, 1))
            total.append(max(sum(each), 1))
        return np.array(left, np.int32), np.array(total, np.int32)


_MOST = (1 << 55) - 1  # what a total holds


def budget_state(accounts: Sequence[Account]) -> BudgetState:
    """The accounts in the periods of the decision that was begun, as the policy's code takes them."""
    charged = np.array([x.paid(x.period or 0) for x in accounts], np.int64)
    return BudgetState(ticks.split(charged), *_since_and_carries(accounts))


def allowance(accounts: Sequence[Account], pace: Pace | None) -> Allowance | None:
    """What the decision that was begun is allowed; None: all that it likes."""
    if not accounts:
        return None
    granted = ticks.split(np.array([min(x.granted(x.period or 0), _MOST) for x in accounts], np.int64))
    amount = ticks.split(np.array([x.amount for x in accounts], np.int64))
    since, carries = _since_and_carries(accounts)
    left, total = (None, None) if pace is None else pace.ahead(accounts)
    return Allowance(granted.whole, granted.part, granted, amount, since, left, total, carries)  # type: ignore[arg-type]


def _since_and_carries(accounts: Sequence[Account]) -> Any:
    return np.array([x.since for x in accounts], np.int32), np.array([x.budget.carry_over for x in accounts], bool)
