"""Days and times as logs and reports write them: ISO, days in numbers, English months, seconds since 1970, rounds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison._reading.titles import Texts

Times = NDArray[np.datetime64]

_NONE = ("", "na", "n/a", "null", "none", "nan", "-", "--", "nat")
_SHORT = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(?:\d{4}|\d\d)(?: .*)?", re.ASCII)
_PLAIN = re.compile(r"\d{1,9}(\.\d*)?", re.ASCII)  # of rounds
_ISO_LINES = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?(?:\n|\Z))+", re.ASCII)
_AROUND = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +|\s*(?:Z|UTC|GMT)$", re.IGNORECASE)
_EPOCHS = ((9e8, 5e9, 1.0), (9e11, 5e12, 1e3), (9e14, 5e15, 1e6), (9e17, 5e18, 1e9))  # s, ms, µs, ns: 1998 to 2128
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %b %y",
    "%b %d %Y",
    "%B %d %Y",
)
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y")


def read_times(cells: Texts, custom: bool = False) -> tuple[Times | None, str]:
    """datetime64[us], NaT for what is empty, UTC where the cells say so; and a note. None if a cell is no time.

    A day before the month or after it: as some cell of the column shows; else the day first where that is the
    ``custom``, as the note says. Numbers that are no date (rounds, weeks) order the rows: each a day of its own.
    """
    if _ISO_LINES.fullmatch("\n".join(cells)):
        try:
            return np.array([cell.removesuffix("Z") for cell in cells]).astype("datetime64[us]"), ""
        except ValueError:  # the 31st of February
            pass
    bare = {text: re.sub(r"[,.]?\s+", " ", _AROUND.sub("", text)) for text in dict.fromkeys(cells)}
    short = {text: found for text, own in bare.items() if (found := _SHORT.fullmatch(own))}
    month_shown = any(int(found[3]) > 12 for found in short.values())
    day_shown = any(int(found[1]) > 12 or found[2] == "." for found in short.values())
    day_first = day_shown or (custom and not month_shown)
    order = "%d{0}%m{0}" if day_first else "%m{0}%d{0}"
    days = [order.format(sign) + year for sign in "./-" for year in ("%Y", "%y")]
    formats = [day + clock for clock in _CLOCKS for day in (*days, *_DAYS)] + [*_MONTHS]
    known = dict[str, datetime | None]()
    for text, own in bare.items():
        known[text] = _read(own, formats)
        if known[text] is None and text.lower() not in _NONE:
            if all(x.lower() in _NONE or _PLAIN.fullmatch(x) for x in bare):
                return _ordered(cells), f"{text[:40]!r} is read as a number that orders the rows"
            return None, f"{text[:40]!r} is no date or time that is known (2024-03-31, 31/03/2024, Mar 31, 2024)"
    note = ""
    if short and not (day_shown or month_shown):
        example = next(iter(short))
        note = f"{example!r} read with the {'day' if day_first else 'month'} first: {known[example]:%Y-%m-%d}"
    return np.array([known[text] for text in cells], dtype="datetime64[us]"), note


def _ordered(cells: Texts) -> Times:
    numbers = np.array([float(x) if _PLAIN.fullmatch(x) else np.nan for x in cells])
    known = ~np.isnan(numbers)
    day = np.full(numbers.size, np.datetime64("NaT", "D"))
    day[known] = np.unique(numbers[known], return_inverse=True)[1].astype("datetime64[D]")
    return day.astype("datetime64[us]")


def _read(text: str, formats: list[str]) -> datetime | None:
    """The time that is written so; the format that fits comes first from then on, for the next cell is alike."""
    if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) and len(text) != 8:
        value = float(text[:40])
        unit = next((unit for low, high, unit in _EPOCHS if low <= value <= high), None)
        return None if unit is None else datetime(1970, 1, 1) + timedelta(microseconds=round(value / unit * 1e6))
    try:
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        pass
    for n, form in enumerate(formats):
        try:
            found = datetime.strptime(text, form)
        except ValueError:
            continue
        formats.insert(0, formats.pop(n))
        return found
    return None
