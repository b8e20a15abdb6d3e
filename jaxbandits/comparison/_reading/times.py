"""Days and times as logs and reports write them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

_CLOCK = (
    r"(?:[T ,]+(?P<hour>\d{1,2})(?::|h|\.)(?P<minute>\d{2})(?:(?::|\.)(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?"
)
_WEEKDAY, _WORD, _YEAR = r"(?:[^\W\d_]{2,10}\.?,?\s+)?", r"(?P<name>[^\W\d_]{3,12})", r"(?P<year>\d{4}|\d{2})"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text + _CLOCK, re.IGNORECASE)


_ISO = _pattern(r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})")
_BASIC = _pattern(r"(?P<year>(?:19|20)\d{2})(?P<month>\d{2})(?P<day>\d{2})")
_SHORT = _pattern(rf"{_WEEKDAY}(?P<one>\d{{1,2}})(?P<sign>[./-])(?P<two>\d{{1,2}})(?P=sign){_YEAR}")
_NAMED = (
    _pattern(rf"{_WEEKDAY}(?P<day>\d{{1,2}})\.?[ -](?:de )?{_WORD}\.?[ ,-]+(?:de )?{_YEAR}"),
    _pattern(rf"{_WEEKDAY}{_WORD}\.? (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})"),
)
_MONTH = re.compile(rf"(?P<year>\d{{4}})[-/](?P<month>\d{{1,2}})|{_WORD}\.? (?P<later>\d{{4}})")
_EPOCHS = ((9e8, 5e9, 1.0), (9e11, 5e12, 1e3), (9e14, 5e15, 1e6), (9e17, 5e18, 1e9))  # s, ms, µs, ns: 1998 to 2128
_PLAIN = re.compile(r"\d{1,9}(\.\d*)?", re.ASCII)  # of rounds
_ISO_LINES = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?(?:\n|\Z))+", re.ASCII)
_UNTIL = re.compile(r"\s+(?:-|–|to|bis|au|al?)\s+", re.IGNORECASE)
_NONE = ("", "na", "n/a", "null", "none", "nan", "-", "--", "nat")
_MONTHS = {  # by the letters that tell a month apart, in English, German, French, Spanish, Portuguese, Italian, Dutch
    1: "jan ene gen jän", 2: "feb fév fev", 3: "mar mär mrt maa mae", 4: "apr avr abr", 5: "may mai mag mei",
    6: "jun juin giu", 7: "jul juil lug", 8: "aug aoû aou ago", 9: "sep set", 10: "oct okt out ott", 11: "nov",
    12: "dec dez déc dic des",
}  # fmt: skip

Times = NDArray[np.datetime64]


def read_times(cells: Sequence[str], custom: bool = False) -> tuple[Times | None, str]:
    """datetime64[us], NaT for what is empty; UTC where the cells say so. And a note.

    A day before the month or after it: as some cell of the column shows; else the day first where that is the
    ``custom``, as the note says. Numbers that are no date (rounds, weeks) order the rows: each a day of its own.

    Returns:
        None with a note if a cell is no time.

    Example:
        >>> read_times(["13.03.2024", "", "04.03.2024 08:30"])[0].astype(str).tolist()
        ['2024-03-13T00:00:00.000000', 'NaT', '2024-03-04T08:30:00.000000']
        >>> read_times(["03/04/2024"])[1]
        "'03/04/2024' read with the month first: 2024-03-04"
    """
    if _ISO_LINES.fullmatch("\n".join(cells)):
        try:
            return np.array(cells).astype("datetime64[us]"), ""
        except ValueError:  # the 31st of February
            pass
    unique = dict.fromkeys(cells)
    short = {text: found for text in unique if (found := _SHORT.fullmatch(_UNTIL.split(text)[0]))}
    pairs = [(int(found["one"]), int(found["two"])) for found in short.values()]
    month_shown = any(two > 12 for _, two in pairs)
    day_shown = any(one > 12 for one, _ in pairs) or any(found["sign"] == "." for found in short.values())
    day_first = day_shown or (custom and not month_shown)
    known = dict[str, datetime | None]()
    for text in unique:
        try:
            known[text] = None if text.lower() in _NONE else _read(_UNTIL.split(text)[0], day_first)
        except (ValueError, OverflowError):
            if all(x.lower() in _NONE or _PLAIN.fullmatch(x) for x in unique):
                return _ordered(cells), f"{text[:40]!r} is read as a number that orders the rows"
            return None, f"{text[:40]!r} is no date or time; its rows are not ordered"
    note = ""
    if short and not (day_shown or month_shown):
        example = next(iter(short))
        note = f"{example!r} read with the {'day' if day_first else 'month'} first: {known[example]:%Y-%m-%d}"
    return np.array([known[text] for text in cells], dtype="datetime64[us]"), note


def _ordered(cells: Sequence[str]) -> Times:
    numbers = np.array([float(x) if _PLAIN.fullmatch(x) else np.nan for x in cells])
    known = ~np.isnan(numbers)
    day = np.full(numbers.size, np.datetime64("NaT", "D"))
    day[known] = np.unique(numbers[known], return_inverse=True)[1].astype("datetime64[D]")
    return day.astype("datetime64[us]")


def _read(text: str, day_first: bool) -> datetime:
    """Raises ValueError."""
    for pattern in (_ISO, _BASIC, _SHORT, *_NAMED):
        if found := pattern.fullmatch(text):
            return _dated(found.groupdict(), day_first)
    if found := _MONTH.fullmatch(text):
        month = int(found["month"]) if found["month"] else _month_of(found["name"])
        return datetime(int(found["year"] or found["later"]), month, 1)
    value = float(text) if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) and len(text) < 40 else math.nan
    for low, high, unit in _EPOCHS:
        if low <= value <= high:
            return datetime(1970, 1, 1) + timedelta(microseconds=round(value / unit * 1e6))
    raise ValueError(text)


def _dated(found: dict[str, str | None], day_first: bool) -> datetime:
    year = int(found["year"] or 0)
    year += 2000 if year < 100 else 0
    if found.get("one"):
        one, two = int(found["one"] or 0), int(found["two"] or 0)
        day, month = (one, two) if day_first else (two, one)
    else:
        day = int(found["day"] or 0)
        month = _month_of(found["name"] or "") if "name" in found else int(found["month"] or 0)
    hour = int(found["hour"] or 0)
    if half := (found["half"] or "").lower():
        hour = hour % 12 + 12 * half.startswith("p")
    micro = int(((found["fraction"] or "") + "000000")[:6])
    time = datetime(year, month, day, hour, int(found["minute"] or 0), min(int(found["second"] or 0), 59), micro)
    zone = (found["zone"] or "").replace(":", "")
    if zone[:1] in ("+", "-") and zone:
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5] or 0))
        time = time - offset if zone[0] == "+" else time + offset
    return time


def _month_of(name: str) -> int:
    """1 to 12, by name; raises ValueError."""
    for number, starts in _MONTHS.items():
        if any(name.lower().startswith(start) for start in starts.split()):
            return number
    raise ValueError(name)
