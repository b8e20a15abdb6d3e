"""The time and checks of a clock, the periods of a time zone, and forecasts of requests."""

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
_HOUR = 3600.0
_TRUST = 0.02  # requests that the level is worth before any came


class Clock:
    """A clock whose readings never go back; implausible readings are refused.

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
        """The clock's reading, if it is a time before the year 5138."""
        shown, may_be = self._source(), "a clock that gives seconds, at most 1e11 in size"
        now = shown if type(shown) is float else number("clock", shown, may_be)
        if not abs(now) <= 1e11:
            raise bad("clock", now, may_be)
        return now

    def read(self, last: float | None, trust: int) -> float:
        """The time, not before the ``last`` event; any is believed if ``trust`` has changed."""
        now, passed = self.reading(), time.monotonic()
        if trust != self._trust:
            self._before, self._trust = None, trust
        if last is not None:
            ahead = min(now - last, 0.0) if self._before is None else now - last
            if self._before is not None and self._system:
                ahead = now - self._before[0] - (passed - self._before[1])
            if abs(ahead) > self._tolerance:
                off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} what it can be"
                must = f"within {self._tolerance:g} s; if it is right, call resume()"
                raise Misuse(f"clock: {now:.0f} given, {off}; it must be {must}")
        self._before = now, passed
        return now if last is None else max(now, last)


def zone_of(argument: str, name: Any) -> ZoneInfo:
    """A time zone by its name."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError, AttributeError):  # no such zone is a KeyError
        raise bad(argument, name, "the name of a time zone, such as 'Europe/Berlin'") from None


def period(every: float | str, zone: ZoneInfo, start: float, now: float) -> tuple[float, float]:
    """(begin, end) of the period that contains a time, see :class:`Budget`."""
    if not isinstance(every, str):
        number = math.floor((now - start) / every)
        return start + number * every, start + (number + 1) * every
    if every == "ever":
        return start, math.inf
    date = datetime.datetime.fromtimestamp(now, zone).date()
    if every == "month":
        first = date.replace(day=1)
        after = (first + datetime.timedelta(days=31)).replace(day=1)
    else:
        days = 1 if every == "day" else 7
        number = (date.toordinal() - 1) // days  # the first day was a Monday
        first = datetime.date.fromordinal(number * days + 1)
        after = first + datetime.timedelta(days=days)
    begin, end = (
        datetime.datetime(x.year, x.month, x.day, tzinfo=zone).timestamp() for x in (first, after)
    )
    return begin, end


class Forecast:
    """A forecast of requests: a table of the hours of a day, times a level.

    The level is requests that came over those expected; older hours count half as much after a day.
    When an hour is over its entry moves half-way to what came, divided by the level.
    """

    def __init__(self, start: float, state: Sequence[Any] | None):
        self._start, self._before = start, dict[int, float]()
        past: Sequence[Any] = state or (None, 0.0, 0.0, [1.0] * 24)
        self.slot, self._arrivals, self._expected, table = past
        self.table = list(table)

    def plain(self) -> list[Any]:
        """The state as plain JSON, without the requests of the current hour."""
        return [self.slot, self._arrivals, self._expected, self.table]

    def place(self, now: float) -> float:
        """Hours since the start."""
        return (now - self._start) / _HOUR + 1e-9

    def _until(self, place: float) -> float:
        """Requests that the table expects before this place."""
        if (slot := math.floor(place)) not in self._before:
            days, rest = divmod(slot, 24)
            self._before[slot] = days * math.fsum(self.table) + math.fsum(self.table[:rest])
        return self._before[slot] + (place - slot) * self.table[slot % 24]

    def move(self, slot: int, arrivals: int, now: float) -> None:
        """Begin another hour, after so many requests in the current one."""
        # The first hour is not whole: nothing is expected of the part that was over
        if self.slot is None:
            self.slot, self._expected = slot, self._until(slot) - self._until(self.place(now))
        for over in range(self.slot, min(slot, self.slot + 48)):
            expected, came = self.table[over % 24], arrivals if over == self.slot else 0
            fade, due = 0.5 ** (1 / 24), self._expected + expected
            level = (self._arrivals + came + _TRUST) / (due + _TRUST)
            self._arrivals = fade * (self._arrivals + came)
            self._expected = fade * due
            self.table[over % 24] += 0.5 * (came / level - expected)
        self.slot, self._before = slot, {}

    def ahead(
        self, periods: Sequence[tuple[float, float]], now: float, arrivals: int
    ) -> list[list[int]]:
        """Expected requests, at least 1, until each period ends and in all of it, after so many."""
        place = self.place(now)
        until = self._until(place)
        due = self._expected + until - self._until(math.floor(place))
        level = (self._arrivals + arrivals + _TRUST) / (due + _TRUST)
        ends = [[self._until(self.place(x)) for x in period] for period in periods]
        rows = [last - until for _, last in ends], [last - first for first, last in ends]
        return [[min(max(round(level * x), 1), 1 << 30) for x in row] for row in rows]
