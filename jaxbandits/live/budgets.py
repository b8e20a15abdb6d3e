"""Money and traffic of an agent: what budgets grant, for how long, for whom, what was charged, what arms cost."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits.constraints import Allowance, BudgetState
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad, numbers, positive_number
from jaxbandits.live.clock import Periods, check_every, local, zone_of


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
        check_every(f"{self.name}.every", self.every)
        zone_of(self.zone, f"{self.name}.zone")
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
        zone_of(self.zone, "traffic.zone")
        for budget in budgets:
            if not isinstance(budget.every, str) and (slots := budget.every / self.slot) != round(slots):
                raise bad("traffic.slot", self.slot, f"a divisor of the period of {budget.name}, {budget.every:g} s")


class Turn(NamedTuple):
    """Where a budget stands at a decision."""

    period: int | None = None  # None: no decision was made
    since: int = 0  # the first round of this period
    begun: int | None = None  # the first period in which a decision was made, or since the terms changed


_KEPT = 1000  # periods that are reported; a carried total needs none of them


class Account:
    """What one budget grants and what was charged to it, in whole ticks: the one place where money is counted."""

    def __init__(self, budget: Budget, start: float, unit: float):
        self.budget = budget
        self.periods = Periods(budget.every, budget.zone, start)
        self.amount = math.floor(budget.amount / unit * ticks.ONE)
        self.turn = Turn()  # at the last decision
        self.brought = 0  # what was granted before the first period of `turn.begun`, as far as it is carried over
        self.charged: dict[int, int] = {}  # by period: costs that are known, and what is held
        self.total = 0  # all that was ever charged

    def turned(self, now: float, round: int) -> Turn:
        """Where it stands if a decision of this round is made now."""
        period, last = self.periods.at(now), self.turn
        return last if period == last.period else Turn(period, round, period if last.begun is None else last.begun)

    def granted(self, period: int, begun: int | None) -> int:
        """What may be charged by then: in that period, or in all so far if it carries over."""
        if self.budget.carry_over and begun is not None:
            return self.brought + self.amount * (period - begun + 1)
        return self.amount

    def paid(self, period: int) -> int:
        """What was charged: in that period, or in all so far if it carries over."""
        return self.total if self.budget.carry_over else self.charged.get(period, 0)

    def left(self, now: float) -> int:
        """What may still be spent; below 0: what was overspent."""
        period = self.periods.at(now)
        return self.granted(period, self.turn.begun) - self.paid(period)

    def charge(self, period: int, amount: int) -> None:
        """Charge to a period, which may be over."""
        self.charged[period] = self.charged.get(period, 0) + amount
        self.total += amount
        if len(self.charged) > _KEPT:
            del self.charged[min(self.charged)]

    def enlarge(self, factor: int, unit: float) -> None:
        """Ticks become so many times as large: what was charged is rounded up, what is granted down."""
        self.amount, self.brought = math.floor(self.budget.amount / unit * ticks.ONE), self.brought // factor
        self.charged = {period: -(-paid // factor) for period, paid in self.charged.items()}
        self.total = -(-self.total // factor)

    def overspent(self) -> dict[int, int]:
        """By how much periods paid more than they were granted."""
        if self.budget.carry_over:
            over = self.total - self.granted(self.turn.period or 0, self.turn.begun)
            return {self.turn.period or 0: over} if over > 0 else {}
        return {period: paid - self.amount for period, paid in self.charged.items() if paid > self.amount}

    def plain(self) -> list[Any]:
        """Its state as JSON."""
        return [self.turn, self.brought, self.total, sorted(self.charged.items())]

    def take(self, plain: list[Any]) -> None:
        """The state that :meth:`plain` gave."""
        turn, self.brought, self.total, charged = plain
        self.turn, self.charged = Turn(*turn), dict(map(tuple, charged))  # type: ignore[arg-type]

    def follow(self, before: Account, now: float) -> dict[int, int]:
        """Take over what was charged under other terms; gives the new number of each old period.

        The period that is running goes on as the one that is running now, so what it paid stays paid.
        """
        at = self.periods.at
        if before.turn.period is None:
            return {}
        old = {*before.charged, before.turn.period, before.periods.at(now)}
        last = before.periods.at(now)
        number = {p: at(now) if p == last else min(at(before.periods.begin(p)), at(now)) for p in old}
        for period, amount in before.charged.items():
            self.charge(number[period], amount)
        self.turn, self.total = Turn(number[before.turn.period], before.turn.since, at(now)), before.total
        carried = before.budget.carry_over and self.budget.carry_over
        # So that what is left changes by what the two amounts differ in, and by no more.
        self.brought = (
            before.granted(last, before.turn.begun) - before.amount if carried else self.total - self.paid_at(now)
        )
        return number

    def paid_at(self, now: float) -> int:
        """What was charged to the period that is running."""
        return self.charged.get(self.periods.at(now), 0)


class Pace:
    """Where in its traffic an agent is."""

    def __init__(self, traffic: Traffic, start: float):
        self._zone, self._start, self._slot = zone_of(traffic.zone, "traffic.zone"), start, traffic.slot
        self._table = [int(x) for x in traffic.expected]
        self._before = [0, *itertools.accumulate(self._table)]
        self.at: tuple[int | None, int] = None, 0  # slot of the last decision, decisions in that slot before it

    def _place(self, now: float) -> int:
        seconds = now - self._start if self._zone.key == "UTC" else local(now, self._zone) - self._start
        return math.floor(
            seconds / self._slot + 1e-9
        )  # a period that begins with a slot begins there after rounding, too

    def turned(self, now: float) -> tuple[int | None, int]:
        """Where it is if a decision is made now."""
        slot = self._place(now)
        return slot, self.at[1] + 1 if slot == self.at[0] else 0

    def _expected(self, slot: int) -> int:
        """Requests in all slots before this one."""
        cycles, rest = divmod(slot, len(self._table))
        return cycles * self._before[-1] + self._before[rest]

    def ahead(self, accounts: Sequence[Account], turns: Sequence[Turn], at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Requests that are expected until each period ends, this one included, and in all of it; at least 1."""
        slot, seen = at
        here = max(self._expected(slot + 1) - self._expected(slot) - seen, 0)
        left, total = [], []
        for account, turn in zip(accounts, turns, strict=True):
            first, last = (self._place(account.periods.begin(turn.period + more)) for more in (0, 1))  # type: ignore[operator]
            left.append(self._expected(max(last, slot + 1)) - self._expected(slot + 1) + here)
            total.append(self._expected(last) - self._expected(first))
        return np.clip(left, 1, 1 << 30).astype(np.int32), np.clip(total, 1, 1 << 30).astype(np.int32)


_MOST = (1 << 55) - 1  # what a total holds


def budget_state(accounts: Sequence[Account], turns: Sequence[Turn] | None = None) -> BudgetState:
    """The accounts in the periods of a decision (default: the last one), as the policy's code takes them."""
    turns = [x.turn for x in accounts] if turns is None else turns
    paid = [x.paid(turn.period or 0) for x, turn in zip(accounts, turns, strict=True)]
    return BudgetState(ticks.split(np.array(paid, np.int64)), *_since_and_carries(accounts, turns))


def allowance(accounts: Sequence[Account], turns: Sequence[Turn], pace: Pace | None, at: Any) -> Allowance | None:
    """What a decision is allowed; None: all that it likes."""
    if not accounts:
        return None
    most = [min(x.granted(t.period or 0, t.begun), _MOST) for x, t in zip(accounts, turns, strict=True)]
    granted = ticks.split(np.array(most, np.int64))
    amount = ticks.split(np.array([x.amount for x in accounts], np.int64))
    since, carries = _since_and_carries(accounts, turns)
    left, total = (None, None) if pace is None else pace.ahead(accounts, turns, at)
    return Allowance(granted.whole, granted.part, granted, amount, since, left, total, carries)  # type: ignore[arg-type]


def _since_and_carries(accounts: Sequence[Account], turns: Sequence[Turn]) -> Any:
    return np.array([x.since for x in turns], np.int32), np.array([x.budget.carry_over for x in accounts], bool)


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
        if reward is not None:
            self.rewarded, self.reward = self.rewarded + 1, self.reward + reward
            self.reward2 += reward * reward
        wide = cost << 3
        length = wide.bit_length()
        place = length << 3 | (wide >> (length - 4) & 7) if cost else 0
        self.seen[place] = self.seen.get(place, 0) + 1
        if sum(self.seen.values()) >= _ENOUGH:
            self.seen = {place: count // 2 for place, count in sorted(self.seen.items()) if count > 1}

    def enlarge(self, factor: int) -> None:
        """Ticks become so many times as large."""
        self.bound, self.cost, self.cost2 = (
            -(-x // y) for x, y in ((self.bound, factor), (self.cost, factor), (self.cost2, factor * factor))
        )
        lower, seen = (factor.bit_length() - 1) << 3, Counter[int]()
        for place, count in self.seen.items():
            seen[max(place - lower, 4 << 3) if place else 0] += count
        self.seen = dict(seen)

    def mean_cost(self) -> int:
        """Rounded up; the bound where nothing is known."""
        return -(-self.cost // self.pulls) if self.pulls else self.bound

    def held(self, hold: float | str) -> int:
        """What a request holds: the bound, or this quantile of its costs, rounded up by at most an eighth.

        A quantile needs so many costs that one of them is expected above it, else it is the bound as well.
        """
        known = sum(self.seen.values())
        if isinstance(hold, str) or known * (1 - hold) < 1:
            return self.bound
        beyond = 0
        for place in sorted(self.seen, reverse=True):
            beyond += self.seen[place]
            if beyond > known * (1 - hold):
                break
        length, eighth = place >> 3, place & 7
        return min((((9 + eighth) << (length - 4)) - 1) >> 3, ticks.ONE) if place else 0


def renumbered(period: int | None, number: dict[int, int]) -> int | None:
    """The new number of a period, if it is known still."""
    return None if period is None else number.get(period, max(number.values()))


def mean_of(n: int, total: int, squares: int, unit: float) -> tuple[float | None, float | None]:
    """The mean of n numbers of ticks, and its standard error."""
    if not n:
        return None, None
    variance = (squares - total * total / n) / (n - 1) if n > 1 else None
    scale = unit / ticks.ONE
    return scale * total / n, None if variance is None else scale * math.sqrt(max(variance, 0.0) / n)
