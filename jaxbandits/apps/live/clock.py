"""The time, and how far a clock is believed; the periods of a place; how many requests are to come."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from jaxbandits.apps.live.errors import Misuse
from jaxbandits.core import bad
from jaxbandits.tools import number, positive_number

PERIODS = ("day", "week", "month", "ever")


class Clock:
    """Readings that never go back, and a refusal of those that cannot be true.

    The system's clock is compared with the time that has passed (:func:`time.monotonic`) since this
    process read it last; a clock of the user's with the last event.
    """

    def __init__(self, source: Callable[[], float], tolerance: float | None):
        if not callable(source):
            raise bad("clock", source, "a function that gives seconds, such as time.time")
        self._source, self._system = source, source is time.time
        default = 3600.0 if self._system else 7 * 86400.0
        self._tolerance = default if tolerance is None else positive_number("tolerance", tolerance)
        # The last reading that was believed, time.monotonic() then
        self._before: tuple[float, float] | None = None
        self._trust = 0

    def reading(self) -> float:
        """What the clock shows, if that is a time before the year 5138."""
        shown, may_be = self._source(), "a clock that says seconds, at most 1e11 in size"
        now = shown if type(shown) is float else number("clock", shown, may_be)
        if not abs(now) <= 1e11:
            raise bad("clock", now, may_be)
        return now

    def read(self, last: float | None, trust: int) -> float:
        """The time, never before the ``last`` event of any process.

        Where ``trust`` has changed somebody took the clock at its word: then any later reading is
        believed.
        """
        now, passed = self.reading(), time.monotonic()
        if trust != self._trust:
            self._before, self._trust = None, trust
        if last is not None:
            ahead = min(now - last, 0.0)
            if self._before is not None:
                ahead = now - last
                if self._system:
                    ahead = now - self._before[0] - (passed - self._before[1])
            if abs(ahead) > self._tolerance:
                off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} what it can be"
                must = f"within {self._tolerance:g} s; if it is right, resume() takes its word"
                raise Misuse(f"clock: {now:.0f} given, {off}; it must be {must}")
        self._before = now, passed
        return now if last is None else max(now, last)


def zone_of(argument: str, name: Any) -> ZoneInfo:
    """A time zone by its name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError, AttributeError):  # no such zone is a KeyError
        raise bad(argument, name, "the name of a time zone, such as 'Europe/Berlin'") from None


def period(
    every: float | str, zone: ZoneInfo, start: float, now: float
) -> tuple[int, float, float]:
    """(number, begin, end) of the period in which a time lies: see :class:`Budget`."""
    if not isinstance(every, str):
        number = math.floor((now - start) / every)
        return number, start + number * every, start + (number + 1) * every
    if every == "ever":
        return 0, start, math.inf
    date = datetime.datetime.fromtimestamp(now, zone).date()
    if every == "month":
        number, first = 12 * date.year + date.month, date.replace(day=1)
        after = (first + datetime.timedelta(days=31)).replace(day=1)
    else:
        days = 1 if every == "day" else 7
        number = (date.toordinal() - 1) // days  # the first day was a Monday
        first = datetime.date.fromordinal(number * days + 1)
        after = first + datetime.timedelta(days=days)
    begin, end = (
        datetime.datetime(x.year, x.month, x.day, tzinfo=zone).timestamp() for x in (first, after)
    )
    return number, begin, end


class TrafficForecast:
    """How many requests are to come: a table of the slots of a cycle, times a level.

    The level is (requests that came + 20)/(requests expected + 20), where older slots count half as
    much after a cycle. The 20 is how far a forecast is trusted; without one it is 0.02 of a slot.
    When a slot is over its entry in the table moves half-way to what came, divided by the level.
    """

    def __init__(self, traffic: Any, start: float, state: Sequence[Any] | None):
        shape = traffic or {"expected": [1.0] * 24, "slot": 3600.0, "zone": "UTC"}
        self._zone, self._start, self._length = zone_of("zone", shape["zone"]), start, shape["slot"]
        self._trust = 20.0 if traffic else 0.02
        past: Sequence[Any] = state or (None, 0.0, 0.0, shape["expected"])
        self.slot, self._arrivals, self._expected, table = past
        self.table = list(table)

    def plain(self) -> list[Any]:
        """Its state as JSON has it, without the requests of the slot that is running."""
        return [self.slot, self._arrivals, self._expected, self.table]

    def place(self, now: float) -> float:
        """Slots since the start by the clocks of the zone, on which every day has 24 hours."""
        shift = datetime.datetime.fromtimestamp(now, self._zone).utcoffset() or datetime.timedelta()
        return (now + shift.total_seconds() - self._start) / self._length + 1e-9

    def _until(self, place: float) -> float:
        """Requests that the table expects before this place."""
        slot = math.floor(place)
        cycles, rest = divmod(slot, len(self.table))
        whole = cycles * math.fsum(self.table) + math.fsum(self.table[:rest])
        return whole + (place - slot) * self.table[rest]

    def move(self, slot: int, arrivals: int, now: float) -> None:
        """Another slot begins; so many requests came in the one that was running."""
        n = len(self.table)
        # The first slot is not whole: nothing is expected of the part that was over
        if self.slot is None:
            self.slot, self._expected = slot, self._until(slot) - self._until(self.place(now))
        for over in range(self.slot, min(slot, self.slot + 2 * n)):
            expected, came = self.table[over % n], arrivals if over == self.slot else 0
            fade, due = 0.5 ** (1 / n), self._expected + expected
            level = (self._arrivals + came + self._trust) / (due + self._trust)
            self._arrivals = fade * (self._arrivals + came)
            self._expected = fade * due
            self.table[over % n] += 0.5 * (came / level - expected)
        self.slot = slot

    def ahead(
        self, periods: Sequence[tuple[float, float]], now: float, arrivals: int
    ) -> list[list[int]]:
        """Requests until the end of each period (begin, end), this one included, and in all of it;
        at least 1.

        ``arrivals`` requests have come in the running slot.
        """
        place = self.place(now)
        until = self._until(place)
        due = self._expected + until - self._until(math.floor(place))
        level = (self._arrivals + arrivals + self._trust) / (due + self._trust)
        ends = [[self._until(self.place(x)) for x in period] for period in periods]
        rows = [last - until for _, last in ends], [last - first for first, last in ends]
        return [[min(max(round(level * x), 1), 1 << 30) for x in row] for row in rows]
