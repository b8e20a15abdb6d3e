"""Money and traffic of an agent: what budgets grant, for how long, for whom, what was charged, what arms cost."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from jaxbandits.apps.live.clock import Periods, zone_of
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad, numbers, positive_number


@dataclasses.dataclass(frozen=True)
class Budget:
    """An amount of money that renews.

    Attributes:
        amount: what each period grants, in the money of the arms' bounds.
        every: the length of a period: ``"day"``, ``"week"`` (from Monday) or ``"month"`` of the calendar in ``zone``;
            or a number of seconds, whose periods begin at multiples of it since the agent's ``start``.
        arms: the names of the arms that it pays for; None: all, also those that join later.
        carry_over: is what is left at the end of a period added to the next one? Else it is lost.
        name: for messages and reports.
        zone: the time zone of days, weeks and months, by its name.

    Example:
        >>> import jaxbandits as jb
        >>> jb.live.Budget(amount=20.0, every="day", zone="Europe/Berlin").name
        'budget'
    """

    amount: float
    every: float | str
    arms: tuple[str, ...] | None = None
    carry_over: bool = False
    name: str = "budget"
    zone: str = "UTC"

    def check(self, unit: float, arms: Sequence[str]) -> None:
        """Raise :class:`InputError` on what is no budget for these arms; ``unit`` is the money of a unit of cost."""
        positive_number(f"{self.name}.amount", self.amount)
        Periods(self.every, self.zone, 0.0, self.name)
        if not self.amount / unit * ticks.ONE >= 1 or self.amount / unit >= 2**30:
            raise bad(f"{self.name}.amount", self.amount, f"from {unit / ticks.ONE:.3g} to {unit * 2**30:.3g}")
        for name in self.arms or ():
            if name not in arms:
                raise bad(f"{self.name}.arms", name, f"one of {', '.join(arms)}")


@dataclasses.dataclass(frozen=True)
class Traffic:
    """How many requests are expected, for policies that pace: ``PricePacer`` and ``EvenPace`` cannot do without.

    Attributes:
        expected: requests in each slot of a cycle (the 24 hours of a day, say), whole numbers. The first slot begins at
            the agent's ``start``, which is midnight of Thursday, 1 January 1970, by default.
        slot: length of a slot in seconds; periods of budgets in seconds must be multiples of it.
        zone: the time zone by whose clocks slots are counted, by its name.

    Example:
        >>> import jaxbandits as jb
        >>> sum(jb.live.Traffic(expected=[10] * 8 + [60] * 16, slot=3600.0).expected)
        1040
    """

    expected: Sequence[int]
    slot: float = 3600.0
    zone: str = "UTC"

    def check(self, budgets: Sequence[Budget]) -> None:
        """Raise :class:`InputError` on what is no traffic."""
        table = numbers("traffic.expected", list(self.expected))
        wrong = ~(np.isfinite(table) & (table >= 0) & (table == np.rint(table)) & (table < 2**30))
        if table.ndim != 1 or not table.size or wrong.any():
            raise bad("traffic.expected", self.expected, "a list of whole numbers of at least 0")
        positive_number("traffic.slot", self.slot)
        zone_of("traffic.zone", self.zone)
        for budget in budgets:
            if not isinstance(budget.every, str) and (slots := budget.every / self.slot) != round(slots):
                raise bad("traffic.slot", self.slot, f"a divisor of the period of {budget.name}, {budget.every:g} s")


_KEPT = 1000  # periods that are reported; a carried total needs none of them


class Account:
    """What one budget grants and what was charged to it, in whole ticks: the one place where money is counted."""

    def __init__(self, budget: Budget, start: float, unit: float):
        self.budget = budget
        self.periods = Periods(budget.every, budget.zone, start)
        self.amount = math.floor(budget.amount / unit * ticks.ONE)
        self.begun: int | None = None  # the period of the first decision, or since the terms changed
        self.brought = 0  # what was granted before that period, as far as it is carried over
        self.charged: Counter[int] = Counter()  # by period: costs that are known, and what is held
        self.total = 0  # all that was ever charged
        self.granted_then: Counter[int] = Counter()  # of periods under other terms: the most that they were granted

    def granted(self, now: float) -> int:
        """What may be charged by now: in this period, or in all so far if it carries over."""
        if self.budget.carry_over and self.begun is not None:
            return self.brought + self.amount * (self.periods.at(now) - self.begun + 1)
        return self.amount

    def paid(self, now: float) -> int:
        """What was charged: in this period, or in all so far if it carries over."""
        return self.total if self.budget.carry_over else self.charged[self.periods.at(now)]

    def left(self, now: float) -> int:
        """What may still be spent; below 0: what was overspent."""
        return self.granted(now) - self.paid(now)

    def decided(self, now: float) -> None:
        """A decision was made."""
        self.begun = self.periods.at(now) if self.begun is None else self.begun

    def charge(self, time: float, amount: int) -> None:
        """Charge to the period of that time, which may be over."""
        period = self.periods.at(time)
        self.charged[period] += amount
        self.total += amount
        if len(self.charged) > _KEPT:
            self.granted_then.pop(oldest := min(self.charged), None)
            del self.charged[oldest]

    def _grant(self, period: int) -> int:
        return self.granted_then.get(period, self.amount)

    def overspent(self, now: float) -> dict[int, int]:
        """By how much periods paid more than they were granted, by the terms of their time."""
        if self.budget.carry_over:
            return {self.periods.at(now): -self.left(now)} if self.left(now) < 0 else {}
        return {period: over for period, paid in self.charged.items() if (over := paid - self._grant(period)) > 0}

    def plain(self) -> list[Any]:
        """Its state as JSON."""
        return [self.begun, self.brought, self.total, sorted(self.charged.items()), sorted(self.granted_then.items())]

    def take(self, plain: list[Any]) -> None:
        """The state that :meth:`plain` gave."""
        self.begun, self.brought, self.total, *kept = plain
        self.charged, self.granted_then = (Counter(dict(x)) for x in kept)

    def follow(
        self, before: Account | None, old: Sequence[tuple[float, int]], new: Sequence[tuple[float, int]], now: float
    ) -> None:
        """Take over what was paid under other terms, and what is held: by the old account, and by this one.

        What the running period paid, the one that runs now has paid; so what is left changes by what the two amounts
        differ in, and by no more. What is held is charged to the period of its request.
        """
        at = self.periods.at
        if before is not None and before.begun is not None:
            settled = Counter(before.charged)
            for time, amount in old:
                settled[before.periods.at(time)] -= amount
            for period, amount in settled.items():
                running = period == before.periods.at(now)
                into = at(now) if running else min(at(before.periods.begin(period)), at(now))
                self.charged[into] += amount
                granted = before.charged[period] if before.budget.carry_over else before._grant(period)
                if into < at(now):
                    self.granted_then[into] += granted  # what was carried over was granted, too
                elif running:  # what it paid under the larger grant was not overspent
                    self.granted_then[into] = max(granted, self.amount)
            self.total, self.begun = before.total - sum(amount for _, amount in old), at(now)
        for time, amount in new:
            self.charge(time, amount)
        if before is not None and before.budget.carry_over and self.budget.carry_over:
            self.brought = before.granted(now) - before.amount
        else:
            self.brought = self.total - self.charged[at(now)]


class Pace:
    """Where in its traffic an agent is."""

    def __init__(self, traffic: Traffic, start: float, at: Sequence[Any] | None = None):
        self._zone, self._start, self._slot = ZoneInfo(traffic.zone), start, traffic.slot
        self._table = [int(x) for x in traffic.expected]
        self._before = [0, *itertools.accumulate(self._table)]
        self.at = at or (None, 0)  # the slot of the last decision, and how many were made in it

    def _place(self, now: float) -> int:
        # what a clock on the wall there shows, so that its day has 24 hours on every day
        shift = datetime.datetime.fromtimestamp(now, self._zone).utcoffset() or datetime.timedelta()
        seconds = now + shift.total_seconds() - self._start
        return math.floor(seconds / self._slot + 1e-9)  # where a period begins with a slot, it does after rounding too

    def _seen(self, slot: int) -> int:
        return self.at[1] if slot == self.at[0] else 0

    def decided(self, now: float) -> None:
        """A decision was made."""
        slot = self._place(now)
        self.at = slot, self._seen(slot) + 1

    def _expected(self, slot: int) -> int:
        """Requests in all slots before this one."""
        cycles, rest = divmod(slot, len(self._table))
        return cycles * self._before[-1] + self._before[rest]

    def ahead(self, accounts: Sequence[Account], now: float) -> tuple[np.ndarray, np.ndarray]:
        """Requests that are expected until each period ends, this one included, and in all of it; at least 1."""
        slot = self._place(now)
        here = max(self._expected(slot + 1) - self._expected(slot) - self._seen(slot), 0)
        left, total = [], []
        for account in accounts:
            period = account.periods.at(now)
            first, last = (self._place(account.periods.begin(period + more)) for more in (0, 1))
            left.append(self._expected(max(last, slot + 1)) - self._expected(slot + 1) + here)
            total.append(self._expected(last) - self._expected(first))
        wide = np.array([[min(max(x, 1), 1 << 30) for x in row] for row in (left, total)], np.int32)
        return wide[0], wide[1]


_ENOUGH = 4096  # costs in a histogram; then all counts are halved, so that old prices are forgotten


@dataclasses.dataclass
class Arm:
    """What is known of an arm on the host, in whole ticks: exact sums, and a histogram of its costs."""

    name: str
    bound: int
    active: bool = True
    pulls: int = 0
    cost: int = 0
    cost2: int = 0  # Σ cost²
    rewarded: int = 0  # outcomes whose reward is known
    reward: int = 0
    reward2: int = 0
    lost: int = 0
    above: int = 0  # outcomes that cost more than the bound
    seen: dict[int, int] = dataclasses.field(default_factory=dict)  # costs, by eighths of powers of two

    def learn(self, reward: int | None, cost: int) -> None:
        """One outcome."""
        self.pulls, self.cost, self.cost2 = self.pulls + 1, self.cost + cost, self.cost2 + cost * cost
        self.above += cost > self.bound
        if reward is not None:
            self.rewarded, self.reward = self.rewarded + 1, self.reward + reward
            self.reward2 += reward * reward
        wide = cost << 3
        length = wide.bit_length()
        place = length << 3 | (wide >> (length - 4) & 7) if cost else 0
        self.seen[place] = self.seen.get(place, 0) + 1
        if sum(self.seen.values()) >= _ENOUGH:
            self.seen = {place: count // 2 for place, count in sorted(self.seen.items()) if count > 1}

    def mean_cost(self) -> int:
        """Rounded up; the bound where nothing is known."""
        return -(-self.cost // self.pulls) if self.pulls else self.bound

    def held(self, hold: float | str, most: int = ticks.ONE) -> int:
        """What a request holds: the bound, or this quantile of its costs, rounded up by at most an eighth.

        A quantile needs so many costs that one of them is expected above it, else it is the bound as well.
        """
        known = 0 if isinstance(hold, str) else sum(self.seen.values())
        if isinstance(hold, str) or known * (1 - hold) < 1:
            return self.bound
        beyond = 0
        for place in sorted(self.seen, reverse=True):
            beyond += self.seen[place]
            if beyond > known * (1 - hold):
                break
        length, eighth = place >> 3, place & 7
        return min((((9 + eighth) << (length - 4)) - 1) >> 3, most) if place else 0


def mean_of(n: int, total: int, squares: int, scale: float) -> tuple[float | None, float | None]:
    """The mean of n numbers of ticks, and its standard error; ``scale`` is what a tick is."""
    if not n:
        return None, None
    variance = (squares - total * total / n) / (n - 1) if n > 1 else None
    return scale * total / n, None if variance is None else scale * math.sqrt(max(variance, 0.0) / n)
