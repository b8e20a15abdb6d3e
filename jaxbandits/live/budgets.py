"""Budgets of a service: what they grant, for how long, for whom; and what time it is for each of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import numbers, positive_number
from jaxbandits.core.purses import Allowance


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

    def check(self, unit: float) -> None:
        """Raise :class:`InputError` on what is no budget; ``unit`` is the money of one unit of cost."""
        positive_number(f"{self.name}.amount", self.amount)
        positive_number(f"{self.name}.every", self.every)
        if not self.amount / unit * ticks.ONE >= 1 or self.amount / unit >= 2**30:
            raise bad(f"{self.name}.amount", self.amount, f"from {unit / ticks.ONE:.3g} to {unit * 2**30:.3g}")
        if self.arms is not None and (isinstance(self.arms, str) or not all(isinstance(x, str) for x in self.arms)):
            raise bad(f"{self.name}.arms", self.arms, "names of arms, or None for all")


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


class Periods:
    """Which period each budget is in, and what that allows. Times count from ``start``; they never go back."""

    def __init__(self, budgets: Sequence[Budget], traffic: Traffic | None, start: float, unit: float):
        self.budgets, self.traffic, self.start = tuple(budgets), traffic, start
        self.amounts = [math.floor(budget.amount / unit * ticks.ONE) for budget in budgets]
        self.period: list[int] = [-1] * len(self.budgets)  # of the last decision; −1: none yet
        self.begun: list[int] = [-1] * len(self.budgets)  # the first period in which a decision was made
        self.since: list[int] = [0] * len(self.budgets)
        self.slot, self.seen = -1, 0  # of traffic: the slot of the last decision, and decisions in it before
        self._carries = np.array([budget.carry_over for budget in budgets], bool)
        self._amount = ticks.split(np.array(self.amounts, np.int64))

    def at(self, now: float) -> list[int]:
        """The period of each budget."""
        return [math.floor((now - self.start) / budget.every) for budget in self.budgets]

    def renews(self, number: int, now: float) -> float:
        """When a budget renews next."""
        return self.start + (self.at(now)[number] + 1) * self.budgets[number].every

    def granted(self, number: int, period: int) -> int:
        """What a budget may have paid by then, in ticks: in that period, or in all so far if it carries over."""
        times = period - max(self.begun[number], 0) + 1 if self.budgets[number].carry_over else 1
        return self.amounts[number] * (times if self.begun[number] >= 0 else 1)

    def turn(self, now: float, round: int) -> None:
        """Begin the decision of this round."""
        for j, period in enumerate(self.at(now)):
            if period != self.period[j]:
                self.period[j], self.since[j] = period, round
                if self.begun[j] < 0:
                    self.begun[j] = period
        if self.traffic is not None:
            slot = math.floor((now - self.start) / self.traffic.slot)
            self.seen = self.seen + 1 if slot == self.slot else 0
            self.slot = slot

    def allowance(self) -> Allowance:
        """What the decision that :meth:`turn` began is allowed."""
        whole = [self.granted(j, period) for j, period in enumerate(self.period)]
        granted = ticks.split(np.minimum(np.array(whole, np.int64), (1 << 55) - 1))
        left, total = self._requests()
        return Allowance(
            whole=granted.whole,
            part=granted.part,
            granted=granted,
            amount=self._amount,
            since=np.array(self.since, np.int32),  # type: ignore[arg-type]
            requests=left,  # type: ignore[arg-type]
            total=total,  # type: ignore[arg-type]
            carries=self._carries,  # type: ignore[arg-type]
        )

    def _requests(self) -> tuple[Any, Any]:
        """Expected until each period ends, and in all of it."""
        if self.traffic is None:
            return None, None
        table = self.traffic.expected
        left, total = [], []
        for j, budget in enumerate(self.budgets):
            length = round(budget.every / self.traffic.slot)
            first = self.period[j] * length
            each = [int(table[slot % len(table)]) for slot in range(first, first + length)]
            later = sum(each[self.slot - first + 1 :])
            here = max(each[self.slot - first] - self.seen, 0)
            left.append(max(later + here, 1))
            total.append(max(sum(each), 1))
        return np.array(left, np.int32), np.array(total, np.int32)

    def state(self) -> dict[str, Any]:
        """As plain JSON."""
        return {name: getattr(self, name) for name in ("period", "begun", "since", "slot", "seen")}

    def restore(self, state: dict[str, Any]) -> None:
        """What :meth:`state` gave."""
        for name, value in state.items():
            setattr(self, name, value)


def refuse_unknown_arms(budgets: Sequence[Budget], names: Sequence[str]) -> None:
    """Raise :class:`InputError` if a budget pays for an arm that is not there at the beginning."""
    for budget in budgets:
        for name in budget.arms or ():
            if name not in names:
                raise InputError(f"{budget.name}.arms: {name!r} given; it must be one of {', '.join(names)}")
