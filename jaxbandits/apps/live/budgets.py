"""Terms of an agent: budgets, expected traffic, when a back end is set aside; and money as whole numbers."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from jaxbandits.apps.live.clock import Periods, zone_of
from jaxbandits.core.checks import InputError, bad, number, numbers, positive_number, whole_number

# --- Money: whole billionths of the currency, of what is written, so that cents are cents

BILLION = 10**9
MOST = 9 * BILLION * BILLION  # what a whole number of SQLite holds
MOST_COST = 10**6 * BILLION  # of a request: so that sums of them are below that
_MONEY = decimal.Context(prec=60)


def billionths(argument: str, value: Any, down: bool = False, most: int = MOST) -> int:
    """Money as it is written (a float by its ``repr``), rounded up, or ``down``, to whole billionths."""
    try:
        if isinstance(value, (Decimal, str)):
            written = Decimal(value)
        else:
            exact = isinstance(value, int) and not isinstance(value, bool)
            written = Decimal(value if exact else repr(number(argument, value)))
        if written.is_finite() and 0 <= written <= most // BILLION:
            rounding = decimal.ROUND_FLOOR if down else decimal.ROUND_CEILING
            return int(written.scaleb(9, _MONEY).to_integral_value(rounding))
    except decimal.InvalidOperation:
        pass
    raise bad(argument, value, f"an amount of money from 0 to {most / BILLION:g}")


def money(amount: int) -> float:
    """Whole billionths as the float that is written so."""
    return amount / BILLION


# --- What is given


@dataclasses.dataclass(frozen=True)
class Budget:
    """An amount of money that renews.

    Attributes:
        amount: what each period grants, in the money of the arms' bounds; a number, a ``Decimal`` or its text.
        every: the length of a period: ``"day"``, ``"week"`` (from Monday) or ``"month"`` of the calendar in ``zone``;
            or a number of seconds, whose periods begin at multiples of it since the agent's ``start``.
        arms: the names of the arms that it pays for; None: all, also those that join later.
        carry_over: is what is left at the end of a period added to the next one? Else it is lost.
        name: for messages and reports.
        zone: the time zone of days, weeks and months, by its name.
        per: None, one for all; or ``"caller"``, a cap of ``amount`` for each who is named in ``choose(caller=…)``. A
            cap is kept by the ledger, beside the budgets that the policy paces.

    Example:
        >>> import jaxbandits as jb
        >>> jb.live.Budget(amount=20.0, every="day", zone="Europe/Berlin").name
        'budget'
    """

    amount: Any
    every: float | str
    arms: tuple[str, ...] | None = None
    carry_over: bool = False
    name: str = "budget"
    zone: str = "UTC"
    per: str | None = None

    def plain(self, arms: Iterable[str]) -> dict[str, Any]:
        """As JSON, its amount in whole billionths; :class:`InputError` on what is no budget for these arms."""
        if not isinstance(self.name, str) or not self.name:
            raise bad("budget.name", self.name, "text")
        amount = billionths(f"{self.name}.amount", self.amount, down=True)
        if not amount:
            raise bad(f"{self.name}.amount", self.amount, "at least 1e-9")
        if isinstance(self.every, datetime.timedelta):
            raise bad(f"{self.name}.every", self.every, "a number of seconds (total_seconds()), or day, week, month")
        Periods(self.every, self.zone, 0.0, self.name)
        if isinstance(self.arms, str) or not isinstance(self.arms, (Sequence, set, type(None))):
            raise bad(f"{self.name}.arms", self.arms, "a list of names, or None for all")
        for arm in self.arms or ():
            if arm not in arms:
                raise bad(f"{self.name}.arms", arm, f"one of {', '.join(arms)}")
        if self.per not in (None, "caller"):
            raise bad(f"{self.name}.per", self.per, "None or 'caller'")
        if self.per and self.carry_over:
            raise bad(f"{self.name}.carry_over", True, "False where a budget is per caller")
        paid = None if self.arms is None else sorted(self.arms)
        every = self.every if isinstance(self.every, str) else float(self.every)
        return vars(self) | {"amount": amount, "every": every, "arms": paid, "carry_over": bool(self.carry_over)}


@dataclasses.dataclass(frozen=True)
class Traffic:
    """What is expected, for policies that pace. It may be left out: then a day's shape is learnt, hour by hour.

    Only its shape matters for long: its level is scaled by what comes, within tens of requests, and the shape follows
    from one cycle to the next.

    Attributes:
        expected: requests in each slot of a cycle (the 24 hours of a day, say). The first slot begins at the agent's
            ``start``, which is midnight of Thursday, 1 January 1970, by default.
        slot: length of a slot in seconds.
        zone: the time zone by whose clocks slots are counted, by its name.

    Example:
        >>> import jaxbandits as jb
        >>> sum(jb.live.Traffic(expected=[10] * 8 + [60] * 16, slot=3600.0).expected)
        1040
    """

    expected: Sequence[float]
    slot: float = 3600.0
    zone: str = "UTC"

    def plain(self) -> dict[str, Any]:
        """As JSON; :class:`InputError` on what is no traffic."""
        table = numbers("traffic.expected", self.expected)
        if table.ndim != 1 or not table.size or not (np.isfinite(table) & (table >= 0) & (table < 2**30)).all():
            raise bad("traffic.expected", self.expected, "a list of numbers of requests, at least 0")
        if not table.sum():
            raise bad("traffic.expected", self.expected, "of at least one request in all")
        zone_of("traffic.zone", self.zone)
        return {"expected": table.tolist(), "slot": positive_number("traffic.slot", self.slot), "zone": self.zone}


@dataclasses.dataclass(frozen=True)
class Breaker:
    """When an arm is set aside: after so many failures in a row, for a pause; then one request tries it.

    Where that one fails too, the next pause is three times as long. After an outcome the arm serves again.

    Attributes:
        failures: how many in a row.
        pause: seconds of the first pause.
        longest: seconds of the longest one.

    Source: the half-open circuit breaker of M. Nygard, *Release It!* (2007).

    Example:
        >>> import jaxbandits as jb
        >>> [jb.live.Breaker(pause=60.0, longest=1000.0).seconds(trips) for trips in (1, 2, 3, 4)]
        [60.0, 180.0, 540.0, 1000.0]
    """

    failures: int = 3
    pause: float = 300.0
    longest: float = 4 * 3600.0

    def plain(self) -> dict[str, Any]:
        """As JSON; :class:`InputError` on what is none."""
        seconds = {name: positive_number(f"breaker.{name}", getattr(self, name)) for name in ("pause", "longest")}
        return {"failures": whole_number("breaker.failures", self.failures, 1)} | seconds

    def seconds(self, trips: int) -> float:
        """How long the pause is, the first, second, … in a row."""
        return min(self.pause * 3.0 ** min(trips - 1, 100), self.longest)


# --- What is made of it


class Account:
    """What one budget grants, and the numbers of its periods."""

    def __init__(self, plain: Mapping[str, Any], start: float):
        self.id, self.name, self.amount, self.arms = (plain[name] for name in ("id", "name", "amount", "arms"))
        self.carries, self.per_caller = plain["carry_over"], plain["per"] == "caller"
        self.periods = Periods(plain["every"], plain["zone"], start)

    def pays(self, arm: str) -> bool:
        """Does it pay for this arm?"""
        return self.arms is None or arm in self.arms


class Pace:
    """How many requests are to come: a table of a cycle's slots, scaled by what has come.

    The level is (requests seen + 20)/(requests expected + 20), older slots counting half as much a cycle later; 20 is
    how far a forecast is trusted (without one: 0.02 of a slot). When a slot is over its entry moves half-way to what
    was seen, over the level.
    """

    def __init__(self, traffic: Mapping[str, Any] | None, start: float, state: Sequence[Any] | None):
        given = traffic or {"expected": [1.0] * 24, "slot": 3600.0, "zone": "UTC"}
        self._zone, self._start, self._slot = zone_of("zone", given["zone"]), start, given["slot"]
        self._trust = 20.0 if traffic else 0.02
        state = state or [None, 0.0, 0.0, given["expected"]]
        self.slot, self._seen, self._due, self.table = state[0], state[1], state[2], list(state[3])
        self._tabulate()

    def plain(self) -> list[Any]:
        """Its state as JSON, but for what was seen of the slot that is running."""
        return [self.slot, self._seen, self._due, self.table]

    def _tabulate(self) -> None:
        self._before = [0.0, *itertools.accumulate(self.table)]

    def place(self, now: float) -> float:
        """Slots since the start, as a clock on the wall there shows it: so its day has 24 hours on every day."""
        shift = datetime.datetime.fromtimestamp(now, self._zone).utcoffset() or datetime.timedelta()
        return (now + shift.total_seconds() - self._start) / self._slot + 1e-9

    def _until(self, place: float) -> float:
        """What the table expects before this place."""
        slot = math.floor(place)
        cycles, rest = divmod(slot, len(self.table))
        return cycles * self._before[-1] + self._before[rest] + (place - slot) * self.table[rest]

    def level(self, place: float, seen: int) -> float:
        """What comes, over what the table says, when ``seen`` requests of the running slot have come."""
        due = self._until(place) - self._until(math.floor(place))
        return (self._seen + seen + self._trust) / (self._due + due + self._trust)

    def move(self, slot: int, seen: int, now: float) -> None:
        """Another slot begins; the one that was running had so many requests."""
        n = len(self.table)
        if self.slot is None:  # it begins in the midst of one: what came before is not missing
            self.slot, self._due = slot, self._until(slot) - self._until(self.place(now))
        for passed in range(self.slot, min(slot, self.slot + 2 * n)):
            expected, came = self.table[passed % n], seen if passed == self.slot else 0
            level = (self._seen + came + self._trust) / (self._due + expected + self._trust)
            fade = 0.5 ** (1 / n)
            self._seen, self._due = fade * (self._seen + came), fade * (self._due + expected)
            self.table[passed % n] += 0.5 * (came / level - expected)
        self.slot = slot
        self._tabulate()

    def ahead(self, accounts: Sequence[Account], now: float, seen: int) -> list[list[int]]:
        """Requests that are expected until each period ends, this one included, and in all of it; at least 1."""
        place = self.place(now)
        level, until = self.level(place, seen), self._until(place)
        rows: list[list[int]] = [[], []]
        for account in accounts:
            period = account.periods.at(now)
            first, last = (self._until(self.place(account.periods.begin(period + more))) for more in (0, 1))
            for row, expected in zip(rows, (last - until, last - first), strict=True):
                row.append(min(max(round(level * expected), 1), 1 << 30))
        return rows


# --- A histogram of costs, by eighths of powers of two


def place_of(cost: int) -> int:
    """Where in it a cost stands."""
    wide = cost << 3
    length = wide.bit_length()
    return length << 3 | (wide >> (length - 4) & 7) if cost else 0


def quantile(counts: Sequence[tuple[int, int]], share: float, bound: int) -> int:
    """Of (place, count), rounded up by at most an eighth; the bound until a cost is expected above it."""
    costs = sum(count for _, count in counts)
    if costs * (1 - share) < 1:
        return bound
    beyond = 0
    for place, count in sorted(counts, reverse=True):  # noqa: B007 (it is used behind the loop)
        beyond += count
        if beyond > costs * (1 - share):
            break
    length, eighth = place >> 3, place & 7
    return (((9 + eighth) << (length - 4)) - 1) >> 3 if place else 0


def mean_of(n: int, total: float, squares: float) -> tuple[float | None, float | None]:
    """The mean of n numbers, and its standard error."""
    if not n:
        return None, None
    variance = (squares - total * total / n) / (n - 1) if n > 1 else None
    return total / n, None if variance is None else math.sqrt(max(variance, 0.0) / n)


def different(budgets: Any) -> Any:
    """A list of budgets; :class:`InputError` unless they are, and have different names."""
    if isinstance(budgets, (Budget, str)) or not isinstance(budgets, Iterable):
        raise bad("budgets", budgets, "a list of jb.live.Budget")
    for budget in budgets:
        if not isinstance(budget, Budget):
            raise bad("budgets", budget, "a list of jb.live.Budget")
    names = [budget.name for budget in budgets]
    if len(set(names)) < len(names):
        raise InputError(f"budgets: {names} given; it must be a list of different names")
    return budgets
