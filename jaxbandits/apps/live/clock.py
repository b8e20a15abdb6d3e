"""What time it is, how far that is believed, and where days, weeks and months of a place begin."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable
from zoneinfo import ZoneInfo

import numpy as np

from jaxbandits.apps.live.errors import Misuse
from jaxbandits.core.checks import bad, positive_number

WORDS = ("day", "week", "month")
_LATEST = 1e11  # seconds: the year 5138
_SYSTEM, _GIVEN = 3600.0, 7 * 86400.0  # tolerances


class Clock:
    """Readings that never go back, and a refusal of those that cannot be true.

    The system's clock is held against the time that has passed since this process read it last
    (:func:`time.monotonic`); of a clock that was given nothing is known but the last event.
    """

    def __init__(self, tell: Callable[[], float], tolerance: float | None):
        if not callable(tell):
            raise bad("clock", tell, "a function that gives seconds, such as time.time")
        self._tell, self._system = tell, tell is time.time
        default = _SYSTEM if self._system else _GIVEN
        self._tolerance = default if tolerance is None else positive_number("tolerance", tolerance)
        self._at: tuple[float, float] | None = None  # the last reading that was believed, and time.monotonic() then

    def trust(self) -> None:
        """Take the next reading as the first one is taken: it may be any time later."""
        self._at = None

    def reading(self) -> float:
        """What it shows, if that is a time at all."""
        now = self._tell()
        if isinstance(now, bool) or not isinstance(now, (int, float, np.number)) or not abs(now) <= _LATEST:
            raise bad("clock", now, "a clock that says a number of seconds, at most 1e11 in size")
        return float(now)

    def read(self, last: float) -> float:
        """The time, at least ``last``, that of the last event of any process."""
        now, passed = self.reading(), time.monotonic()
        if math.isfinite(last):
            ahead = min(now - last, 0.0)
            if self._at is not None:
                before, then = self._at
                ahead = now - before - (passed - then) if self._system else now - last
            if abs(ahead) > self._tolerance:
                raise Misuse(
                    f"clock: {now:.0f} given, {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} what it can "
                    f"be; it must be within {self._tolerance:g} s, and if it is right, resume() takes it at its word"
                )
        self._at = now, passed
        return max(now, last)


def zone_of(argument: str, name: str) -> ZoneInfo:
    """A time zone by its name."""
    try:
        if not isinstance(name, str):
            raise TypeError
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError, TypeError):  # ZoneInfoNotFoundError is a KeyError
        raise bad(argument, name, "the name of a time zone, such as 'Europe/Berlin'") from None


class Periods:
    """Numbered stretches of time: so many seconds each since ``start``, or days, weeks and months of a time zone."""

    def __init__(self, every: float | str, zone: str, start: float, name: str = "budget"):
        if not isinstance(every, str):
            positive_number(f"{name}.every", every)
        elif every not in WORDS:
            raise bad(f"{name}.every", every, f"a number of seconds, or one of {', '.join(WORDS)}")
        self._every, self._zone, self._start = every, zone_of(f"{name}.zone", zone), start
        self._last = 0, math.inf, math.inf  # a period that was asked for, its begin and its end

    def at(self, now: float) -> int:
        """The number of the period."""
        if not isinstance(self._every, str):
            return math.floor((now - self._start) / self._every)
        number, begin, end = self._last
        if not begin <= now < end:  # it is asked several times for each request
            date = datetime.datetime.fromtimestamp(now, self._zone).date()
            day = date.toordinal()  # the first one was a Monday
            number = {"day": day, "week": (day - 1) // 7, "month": 12 * date.year + date.month - 1}[self._every]
            self._last = number, self.begin(number), self.begin(number + 1)
        return number

    def begin(self, number: int) -> float:
        """When it begins."""
        if not isinstance(self._every, str):
            return self._start + number * self._every
        if self._every == "month":
            date = datetime.date(number // 12, number % 12 + 1, 1)
        else:
            date = datetime.date.fromordinal(number if self._every == "day" else 7 * number + 1)
        return datetime.datetime(date.year, date.month, date.day, tzinfo=self._zone).timestamp()
