"""Numbers and times as people write them: decimal commas, thousands, currencies, percent, days."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxbandits._tables import NARROW, NumberStyle
from jaxbandits.apps.comparison._reading.columns import COSTS, MONEY, Question, pattern, role_words
from jaxbandits.apps.comparison._reading.sheet import LONG, Column, Sheet
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.core.checks import InputError, bad, quoted

# What a cell holds: a number; nothing, which a file of counts writes for 0; a word for "not known";
# something else; a number below 0.
NUMBER, NOTHING, UNKNOWN, BAD, NEGATIVE = range(5)

MAY_BE = "a finite number of at least 0"
_PARTS = {"micro": 1_000_000, "cent": 100, "¢": 100}
_NO_CURRENCY = ("", "%", "micro", "micros", "cent", "cents", "¢", "utc", "gmt")
_NOTHING = re.compile(r"[-–—−]*|- -|\(none\)")
_UNKNOWN = re.compile(pattern("unknown"))
_TRUE, _FALSE = re.compile(pattern("true")), re.compile(pattern("false"))
_THOUSANDS = re.compile(pattern("thousands"), re.IGNORECASE)
_PLAIN = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPACES = "\u00a0\u202f\u2009\u2007 "
_QUOTES = "'’‘´`"
_SYMBOL = rf"(?:[A-Z]{{1,3}}\$|{pattern('currency')}|{MONEY})"
_DRESSED = re.compile(
    rf"(?P<below>[-−])?(?P<first>{_SYMBOL})?[{_SPACES}]*(?P<under>[-−])?\+?"
    rf"(?P<core>[\d.,{_QUOTES}{_SPACES}]*\d[.,]?(?:[eE][+-]?\d+)?|[-–—]+)"
    rf"[{_SPACES}]*(?P<last>{_SYMBOL}|%)?",
    re.ASCII | re.IGNORECASE,
)
# Below 0, as accountants and SAP write it
_IN_BRACKETS = re.compile(r"\((.*\d.*)\)|([^-−]*\d)[-−]")
_GROUPED = re.compile(rf"\d{{1,3}}(([{_SPACES}]\d{{3}})+|([{_QUOTES}]\d{{3}})+)", re.ASCII)
_GROUPS = {
    ",": re.compile(r"\d{1,3}(,\d{3})+|\d{1,2}(,\d{2})*,\d{3}", re.ASCII),  # the second as in India
    ".": re.compile(r"\d{1,3}(\.\d{3})+", re.ASCII),
}
_BETWEEN = re.compile(rf"(?<=\d)[.,{_QUOTES}{_SPACES}](?=\d{{3}}(?!\d))")


class Numbers(NamedTuple):
    """One column."""

    values: FloatArray  # [N]; NaN where there is no number
    state: np.ndarray  # int8 [N]: NUMBER, NOTHING, UNKNOWN, BAD or NEGATIVE
    # Bool [N], whether a percent sign stood there (the value is divided by 100)
    percent: np.ndarray
    symbols: frozenset[str]  # the currencies in the column


class _Cell(NamedTuple):
    """What is left of a cell without its dress."""

    core: str
    symbol: str = ""
    percent: bool = False
    sign: int = 1


def read_numbers(
    columns: Sequence[Column], counts: Sequence[bool], separator: str, decimal: str | None = None
) -> tuple[list[Numbers], NumberStyle, str]:
    """All columns, read alike; how the file writes; a note where the decimal sign is no sure point.

    The decimal sign is the one by which fewer cells cannot be read; of two such that by which all
    numbers of clicks (``counts``) are whole; else a comma between semicolons, and a point.
    """
    custom = "," if separator == ";" else "."
    if decimal is None:
        plain = [
            _plain_column(x, whole or custom == ",")
            for x, whole in zip(columns, counts, strict=True)
        ]
        if all(numbers is not None for numbers in plain):
            return [x for x in plain if x is not None], NumberStyle(decimal=custom), ""
    cells = [{text: _undressed(text) for text in column.texts} for column in columns]
    tries = {}
    for point in decimal or (custom, ".,".replace(custom, "")):
        read = [_column(*column, point) for column in zip(columns, cells, strict=True)]
        unread = sum(int((numbers.state == BAD).sum()) for numbers in read)
        whole = [
            (x.values % 1 > 0).any() for x, is_count in zip(read, counts, strict=True) if is_count
        ]
        tries[point] = unread, any(whole), read
    point = min(tries, key=lambda sign: tries[sign][:2])
    sure = len({unread for unread, *_ in tries.values()}) > 1 or decimal is not None
    for column in cells if not sure else ():  # 1.234 and 1,234 in one column
        texts = {sign: text for text, x in column.items() if x for sign in ".," if sign in x.core}
        if len(texts) > 1:
            must = "of one decimal sign: mend them, or say --decimal …"
            raise bad("numbers", ", ".join(texts.values()), must)
    dressed = [(text, cell) for column in cells for text, cell in column.items() if cell]
    return tries[point][2], _style(dressed, point), _note(dressed, point, sure)


def _plain_column(column: Column, is_whole: bool) -> Numbers | None:
    """A column of plain numbers and empty cells, at the speed of NumPy; None if it is another."""
    signs = set().union(*column.texts)
    if not signs <= set("0123456789.eE+-") or (is_whole and "." in signs):
        return None
    empty = column.texts == ""
    try:
        values = np.where(empty, "nan", column.texts).astype(np.float64)
    except ValueError:  # two points
        return None
    if not (np.isfinite(values) | empty).all() or np.signbit(values[~empty]).any():
        return None
    state = np.where(empty, NOTHING, NUMBER).astype(np.int8)
    percent = np.zeros(len(column.code), bool)
    return Numbers(values[column.code], state[column.code], percent, frozenset())


def plain_number(text: str) -> float | None:
    """A finite number >= 0 in plain form, or None."""
    return value if _PLAIN.fullmatch(text) and math.isfinite(value := float(text)) else None


def is_number(text: str) -> bool:
    """Whether the cell is a number in any dress."""
    cell = _undressed(text)
    return cell is not None and bool(cell.core.strip("-–—"))


def is_yes_or_no(text: str) -> bool:
    """Whether the cell is a word for true or false."""
    return bool(_TRUE.fullmatch(text.casefold()) or _FALSE.fullmatch(text.casefold()))


def is_nothing(text: str) -> bool:
    """Whether the cell is empty, or says that there is nothing or nothing known."""
    return bool(_NOTHING.fullmatch(text)) or _UNKNOWN.fullmatch(text.casefold()) is not None


def _undressed(text: str) -> _Cell | None:
    """None if it is no number in any dress."""
    if _PLAIN.fullmatch(text):
        return _Cell(text.removeprefix("+"))
    inner = _IN_BRACKETS.fullmatch(text[:400])
    if not (parts := _DRESSED.fullmatch(inner[1] or inner[2] if inner else text[:400])):
        return None
    core, behind = parts["core"].strip(_SPACES), parts["last"] or ""
    whole = re.split(r"[.,]", core)[0]
    if _GROUPED.fullmatch(whole):  # what can only stand between thousands goes
        core = re.sub(rf"[{_SPACES}{_QUOTES}]", "", whole) + core[len(whole) :]
    below = bool(inner or parts["below"] or parts["under"]) and core.strip("-–—") != ""
    symbol = parts["first"] or behind.replace("%", "")
    return _Cell(core, symbol, behind == "%", -1 if below else 1)


def _column(column: Column, cells: dict[str, _Cell | None], point: str) -> Numbers:
    words = [
        text.casefold() for text, cell in cells.items() if cell is None and not is_nothing(text)
    ]
    yes_or_no = bool(words) and all(map(is_yes_or_no, words))
    yes_or_no = yes_or_no and all(cell.core in ("0", "1") for cell in cells.values() if cell)
    rows = list[tuple[float, int, bool]]()
    for text, cell in cells.items():
        if cell is not None:
            rows.append(_value(cell, point))
        elif is_nothing(text):
            rows.append((math.nan, NOTHING if _NOTHING.fullmatch(text) else UNKNOWN, False))
        elif yes_or_no:
            rows.append((float(bool(_TRUE.fullmatch(text.casefold()))), NUMBER, False))
        else:
            rows.append((math.nan, BAD, False))
    values, state, percent = np.array(rows, np.float64).reshape(-1, 3).T[:, column.code]
    symbols = frozenset(cell.symbol for cell in cells.values() if cell and cell.symbol)
    return Numbers(values, state.astype(np.int8), percent.astype(bool), symbols)


def _value(cell: _Cell, point: str) -> tuple[float, int, bool]:
    if not cell.core.strip("-–—"):
        return math.nan, NOTHING, False
    whole, sign, rest = cell.core.partition(point)
    between = "," if point == "." else "."
    if between in whole and _GROUPS[between].fullmatch(whole) and whole[0] != "0":
        whole = whole.replace(between, "")
    value = plain_number(whole + ("." if sign else "") + rest)
    if value is None or between in whole:
        return math.nan, BAD, False
    value = (value / 100 if cell.percent else value) * cell.sign or 0.0  # never -0.0
    return value, NEGATIVE if value < 0 else NUMBER, cell.percent


def _style(cells: Sequence[tuple[str, _Cell]], point: str) -> NumberStyle:
    """As the first cell with a currency, and the first with thousands, are written."""
    text, symbol = next(((text, cell.symbol) for text, cell in cells if cell.symbol), ("", ""))
    before, _, behind = text.partition(symbol) if symbol else ("", "", "")
    first = not any(map(str.isdigit, before))
    apart = (behind[:1] if first else before[-1:]) in (*_SPACES,)
    signs = (sign[0] for text, _ in cells for sign in _BETWEEN.finditer(text) if sign[0] != point)
    thousands = next(signs, "").translate(NARROW)
    return NumberStyle(symbol, first, apart, decimal=point, thousands=thousands)


def _note(cells: Sequence[tuple[str, _Cell]], point: str, sure: bool) -> str:
    """Examples of numbers that another decimal sign would have made other numbers of."""
    signs = [(text, cell) for text, cell in cells if set(cell.core) & {".", ","}]
    if not signs or (sure and point == "."):
        return ""
    ends = (signs[0], signs[-1])
    examples = [f"{quoted(text)} is {abs(_value(cell, point)[0]):.10g}" for text, cell in ends]
    either = "" if sure else f" (if not: --decimal {',' if point == '.' else '.'})"
    sign = "commas" if point == "," else "points"
    return f"decimal {sign}: {', '.join(dict.fromkeys(examples))}{either}"


# --- Days and times: ISO, days in numbers, English months, seconds since 1970.

Times = NDArray[np.datetime64]

_NO_TIME = ("", "na", "n/a", "null", "none", "nan", "-", "--", "nat")
_SHORT = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(?:\d{4}|\d\d)(?: .*)?", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d*)?", re.ASCII)
_ISO = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?)?", re.ASCII)
_AROUND = re.compile(
    r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +|\s*(?:Z|UTC|GMT)$", re.IGNORECASE
)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y",
         "%d %b %y", "%b %d %Y", "%B %d %Y")  # fmt: skip
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y")


def read_times(column: Column, custom: bool = False) -> tuple[Times | None, str]:
    """datetime64[us], NaT for what is empty, UTC where the cells say so; and a note. None: no time.

    A day before the month or after it: as some cell of the column shows; else the day first where
    that is the ``custom``, as the note says.
    """
    if len(column.texts) > LONG and _ISO.fullmatch(column.texts[0]):
        from pandas import to_datetime  # at ten times the speed

        with contextlib.suppress(ValueError):
            times = to_datetime(column.texts, format="ISO8601", utc=True).tz_localize(None)
            return times.to_numpy().astype("datetime64[us]")[column.code], ""
    if all(map(_ISO.fullmatch, column.texts)):
        with contextlib.suppress(ValueError):  # the 31st of February
            texts = [text.removesuffix("Z") for text in column.texts]
            return np.array(texts, "datetime64[us]")[column.code], ""
    bare = {text: re.sub("[,.]? ", " ", _AROUND.sub("", text)) for text in column.texts}
    short = {text: parts for text, x in bare.items() if (parts := _SHORT.fullmatch(x))}
    month_shown = any(int(parts[3]) > 12 for parts in short.values())
    day_shown = any(int(parts[1]) > 12 or parts[2] == "." for parts in short.values())
    day_first = day_shown or (custom and not month_shown)
    order = "%d{0}%m{0}" if day_first else "%m{0}%d{0}"
    days = [order.format(sign) + year for sign in "./-" for year in ("%Y", "%y")]
    formats = [day + clock for clock in _CLOCKS for day in (*days, *_DAYS)] + [*_MONTHS]
    time = {text: _time(x, formats) for text, x in bare.items() if text.lower() not in _NO_TIME}
    if wrong := [text for text, moment in time.items() if moment is None]:
        forms = "2024-03-31, 31/03/2024, Mar 31, 2024"
        return None, f"{wrong[0][:40]!r} is no date or time that is known ({forms})"
    note = ""
    if short and not (day_shown or month_shown):
        text, first = next(iter(short)), "day" if day_first else "month"
        note = f"{text!r} read with the {first} first: {time[text]:%Y-%m-%d}"
    moments = [time.get(text) for text in column.texts]
    return np.array(moments, "datetime64[us]")[column.code], note


def _time(text: str, formats: list[str]) -> datetime | None:
    """The time written so; the format that fits comes first from then on: the next cell is alike."""
    if _NUMBER.fullmatch(text) and len(text) != 8:
        value = float(text[:40])
        for unit in (1.0, 1e3, 1e6, 1e9):  # s, ms, µs, ns since 1970: 1998 to 2128
            if 9e8 <= value / unit <= 5e9:
                seconds = timedelta(microseconds=round(value / unit * 1e6))
                return datetime(1970, 1, 1) + seconds
        return None
    with contextlib.suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    for n, form in enumerate(formats):
        with contextlib.suppress(ValueError):
            time = datetime.strptime(text, form)
            formats.insert(0, formats.pop(n))
            return time
    return None


# --- The columns of numbers of a file: units of titles, rates made to totals, one currency.


class Amounts(NamedTuple):
    """The numbers of the rows, [N] each."""

    values: dict[str, FloatArray]  # of each role, NaN where there is none; in units of the title
    state: dict[str, np.ndarray]  # of each role: NUMBER and so on
    style: NumberStyle  # how they are written
    totals: tuple[str, ...] = ()  # roles of totals in the file, neither worked out nor means

    def only(self, rows: np.ndarray) -> Amounts:
        """Those of these rows only."""
        values, state = ({role: x[rows] for role, x in numbers.items()} for numbers in self[:2])
        return self._replace(values=values, state=state)


def read_amounts(sheet: Sheet, decimal: str | None) -> Amounts:
    """All columns of numbers; two currencies, and units that are not known, are problems."""
    columns, roles = sheet.columns, sheet.columns.numeric()
    cells, counts = [sheet.cells[i] for i in roles.values()], [role == "clicks" for role in roles]
    read, style, note = read_numbers(cells, counts, sheet.separator, decimal)
    sheet.changes += [note] if note else []
    values, state = dict[str, FloatArray](), dict[str, np.ndarray]()
    for role, numbers in zip(roles, read, strict=True):
        # Percent among totals, or beside other numbers, cannot be read.
        bare = np.isin(numbers.state, (NUMBER, NEGATIVE)) & (numbers.values != 0) & ~numbers.percent
        is_total = role in ("clicks", "spent", "conversions") and role not in columns.rates
        is_bad = numbers.percent & (is_total | bare.any())
        values[role], state[role] = (
            _in_unit(sheet, role, numbers),
            np.where(is_bad, BAD, numbers.state),
        )
    for role in columns.rates:
        total = values[role] * np.nan_to_num(values["clicks"])
        is_whole = role == "conversions" and not columns.is_value
        values[role] = np.rint(total) if is_whole else np.nan_to_num(total)
        rate, pulls = (quoted(sheet.titles[columns.at[x]]) for x in (role, "clicks"))
        sheet.changes.append(f"{role} worked out: {rate} × {pulls}{', rounded' * is_whole}")
    for role, constant in columns.constant.items():
        values[role] = constant * values.get("clicks", np.ones(len(sheet.line)))
        second = " of a second cost" if role == "cost2" else ""
        unit = f"every {columns.pull_unit} costs {constant:g}"
        sheet.changes.append(f"{unit}{second}, as --columns says")
    symbols = sorted({symbol for numbers in read for symbol in numbers.symbols})
    if len(symbols) > 1 and "currency" not in columns.at:
        names = " and ".join(map(quoted, symbols))
        sheet.problems.append(
            InputError(f"{sheet.source}: amounts in {names}; it must be one currency")
        )
    totals = [x for x in values if x not in columns.rates and columns.kind != "means"]
    return Amounts(values, state, _with_currency(style, sheet), tuple(totals))


def _in_unit(sheet: Sheet, role: str, numbers: Numbers) -> FloatArray:
    """The values in the unit of the title, and a note if that changes them."""
    columns, at = sheet.columns, sheet.columns.numeric()[role]
    title, text, percent = columns.keyed[at], quoted(sheet.titles[at]), bool(numbers.percent.any())
    is_word = any(title.keys[0] in words for words in role_words().values())
    is_named = role in columns.named.values()
    is_money = (role in COSTS or columns.is_value) and not is_word
    if title.bracket and (is_money or _THOUSANDS.fullmatch(title.bracket)) and not is_named:
        problem = bad(
            f"{sheet.source}, title {text}", title.bracket, "a unit that is known, as USD or cents"
        )
        way = {"columns": {role: sheet.titles[at]}}, "takes the numbers as they are"
        sheet.problems.append(Question(str(problem), way))
    parts, effect = _PARTS.get(title.unit.removesuffix("s"), 1), ""
    is_share = role in ("conversions", "mean_reward") and not (
        columns.plain or percent or title.unit
    )
    if parts > 1:
        effect = f"divided by {parts:,}"
    elif title.unit == "%" and not percent:
        parts, effect = 100, "in percent"
    elif is_share and title.is_any("rate") and np.nanmax(numbers.values, initial=0) > 1:
        parts, effect = 100, "read in percent, for a rate is at most 1"
    sheet.changes += [f"{text} is {effect}"] if effect else []
    return numbers.values / parts if effect else numbers.values


def _with_currency(style: NumberStyle, sheet: Sheet) -> NumberStyle:
    """The currency of a title or of a column of its own, where the numbers have none."""
    codes = {text for text in sheet.of("currency").texts if not is_nothing(text)}
    units = [*(codes if len(codes) == 1 else ()), *(sheet.columns.unit(role) for role in COSTS)]
    units = [unit for unit in units if unit not in _NO_CURRENCY]
    if style.symbol or not units:
        return style
    apart = units[0][-1:].isalpha()
    return replace(style, symbol=units[0][:8], symbol_first=not apart, symbol_apart=apart)


def check_cells(sheet: Sheet, amounts: Amounts, kind: str) -> np.ndarray:
    """Note every cell that cannot be read, row by row; the rows that can be used, bool [N]."""
    at = sheet.columns.at
    refunds = ("spent", "conversions") if kind == "counts" else ()  # sums must be at least 0
    wrong = {
        role: (state == BAD) | ((state == NEGATIVE) & (role not in refunds))
        for role, state in amounts.state.items()
    }
    wrong |= {x: sheet.of(x).equal("") for x in ("name", "instance") if x in at}
    odd = np.any(list(wrong.values()), axis=0) | np.isin(sheet.line, list(sheet.wide))
    for i in np.flatnonzero(odd).tolist():
        if (line := sheet.line[i]) in sheet.wide:
            must = f"at most {len(sheet.titles)}, as in the header"
            place = sheet.place(i, "number of cells")
            sheet.problems.append(bad(place, sheet.wide[line], must))
        for role in (role for role, rows in wrong.items() if rows[i]):
            text, must = sheet.of(role).row(i), MAY_BE if role in amounts.state else "a name"
            if text[:1].isdigit() and set(text) & {",", "."}:
                must += f" (decimal sign: {amounts.style.decimal!r})"
            if text.endswith("%"):
                must += " (percent beside numbers, or of an amount)"
            sheet.problems.append(bad(sheet.cell(i, role), text, must))
    # Results of two kinds, and amounts of two currencies, have no sum.
    with_results = np.nan_to_num(amounts.values.get("conversions", np.zeros(len(odd)))) > 0
    for role, rows, option, column, effect in (
        ("result_kind", with_results, "conversions", "conversions", "takes them as they are"),
        ("currency", np.ones(len(odd), bool), "instance", "currency", "plays each by itself"),
    ):
        texts = [x for x in sheet.of(role).only(np.flatnonzero(rows)).texts if not is_nothing(x)]
        if len(texts) > 1 and at.get("instance") != at[role]:
            names = " and ".join(map(quoted, texts[:3]))
            text = (
                f"{sheet.source}, column {sheet.label(role)}: {names} given; it must be one of them"
            )
            way = {"columns": {option: sheet.titles[at[column]]}}, effect
            sheet.problems.append(Question(text, way))
    return ~odd
