"""Numbers and times as people write them: decimal commas, thousands, currencies, percent, days."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxbandits._tables import NARROW, NumberStyle
from jaxbandits.apps.comparison._reading.columns import COSTS, MONEY, pattern, words
from jaxbandits.apps.comparison._reading.sheet import LONG, Cells, Question, Sheet
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.core.checks import bad, brief, quoted

# What a cell holds: a number; nothing, which a file of counts writes for 0; a word for "not known";
# something else; a number below 0.
NUMBER, NOTHING, UNKNOWN, BAD, NEGATIVE = range(5)

MAY_BE = "a finite number of at least 0"
_PARTS = {"micro": 1_000_000, "cent": 100, "¢": 100}
_NO_CURRENCY = ("", "%", "micro", "micros", "cent", "cents", "¢", "thousand", "utc", "gmt")
_NOTHING = re.compile(r"[-–—−]*|- -|\(none\)")
_UNKNOWN = re.compile(pattern("unknown"))
_TRUE, _FALSE = re.compile(pattern("true")), re.compile(pattern("false"))
_PLAIN = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPACES = "\u00a0\u202f\u2009\u2007 "
_QUOTES = "'’‘´`"
_SYMBOL = rf"(?:[A-Z]{{1,3}}\$|{pattern('currency')}|{MONEY})"
_DRESSED = re.compile(
    rf"(?P<below>[-−])?(?P<first>{_SYMBOL})?[{_SPACES}]*(?P<under>[-−])?\+?"
    rf"(?P<core>[\d.,{_QUOTES}{_SPACES}]*\d[.,]?(?:[eE][+-]?\d+)?|[-–—]+)"
    rf"[{_SPACES}]*(?P<scale>[kKmM](?![A-Za-z]))?[{_SPACES}]*(?P<last>{_SYMBOL}|%)?",
    re.ASCII | re.IGNORECASE,
)
_NO_CENTS = re.compile(r"(\d)[.,][-–—]{1,2}(\D*)$", re.ASCII)  # 1.300,- €
_IN_BRACKETS = re.compile(r"\((.*\d.*)\)|([^-−]*\d)[-−]")  # below 0, as accountants and SAP write it
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
    percent: np.ndarray  # bool [N], whether a percent sign stood there (the value is divided by 100)
    symbols: dict[str, str]  # of each currency in the column the first text that has it


class _Cell(NamedTuple):
    """What is left of a cell without its dress."""

    core: str
    symbol: str = ""
    percent: bool = False
    factor: float = 1.0  # below 0 for a number below 0


def read_numbers(
    columns: Sequence[Cells], counts: Sequence[bool], separator: str, decimal: str | None = None
) -> tuple[list[Numbers], NumberStyle, str]:
    """All columns, read alike; how the file writes; a note where the decimal sign is no sure point.

    A sign is decimal where two stand in one number (the last), or where it cannot stand between
    thousands. Where no cell shows it, numbers of clicks (``counts``) are whole, and a comma is
    decimal between semicolons.
    """
    if decimal is None:
        plain = [_plain_column(*of, separator == ";") for of in zip(columns, counts, strict=True)]
        if all(one is not None for one in plain):
            sign = "," if separator == ";" else "."
            return [one for one in plain if one is not None], NumberStyle(decimal=sign), ""
    cells = [{text: _undressed(text) for text in of.texts} for of in columns]
    votes, guess = (Counter[str](), "") if decimal else _votes(cells, counts)
    custom = guess or ("," if separator == ";" else ".")
    point = decimal or ("," if votes[","] > votes["."] else "." if votes else custom)
    read = [_column(of, own, point) for of, own in zip(columns, cells, strict=True)]
    dressed = [(text, cell) for of in cells for text, cell in of.items() if cell]
    return read, _style(dressed, point), _note(dressed, point, sure=bool(votes or decimal))


def _plain_column(cells: Cells, is_count: bool, is_whole: bool) -> Numbers | None:
    """A column of plain numbers and empty cells, at the speed of NumPy; None if it is another."""
    signs = set().union(*cells.texts)
    if not signs <= set("0123456789.eE+-") or ((is_count or is_whole) and "." in signs):
        return None
    empty = cells.texts == ""
    try:
        values = np.where(empty, "nan", cells.texts).astype(np.float64)
    except ValueError:  # two points
        return None
    if not (np.isfinite(values) | empty).all() or np.signbit(values[~empty]).any():
        return None
    state = np.where(empty, NOTHING, NUMBER).astype(np.int8)
    return Numbers(values[cells.code], state[cells.code], np.zeros(len(cells.code), bool), {})


def plain_number(text: str) -> float | None:
    """A finite number >= 0 in plain form, or None."""
    return value if _PLAIN.fullmatch(text) and math.isfinite(value := float(text)) else None


def is_number(text: str) -> bool:
    """Whether the cell is a number in any dress."""
    cell = _undressed(text)
    return cell is not None and bool(cell.core.strip("-–—"))


def is_nothing(text: str) -> bool:
    """Whether the cell is empty, or says that there is nothing or nothing known."""
    return bool(_NOTHING.fullmatch(text)) or _UNKNOWN.fullmatch(text.casefold()) is not None


def _undressed(text: str) -> _Cell | None:
    """None if it is no number in any dress."""
    if _PLAIN.fullmatch(text):
        return _Cell(text.removeprefix("+"))
    text = _NO_CENTS.sub(r"\1\2", text[:400])
    inner = _IN_BRACKETS.fullmatch(text)
    if not (parts := _DRESSED.fullmatch(inner[1] or inner[2] if inner else text)):
        return None
    core, behind = parts["core"].strip(_SPACES), parts["last"] or ""
    whole = re.split(r"[.,]", core)[0]
    if _GROUPED.fullmatch(whole):  # what can only stand between thousands goes
        core = re.sub(rf"[{_SPACES}{_QUOTES}]", "", whole) + core[len(whole) :]
    below = bool(inner or parts["below"] or parts["under"]) and core.strip("-–—") != ""
    scale = {"k": 1e3, "m": 1e6}.get((parts["scale"] or "").lower(), 1.0)
    symbol = parts["first"] or behind.replace("%", "")
    return _Cell(core, symbol, behind == "%", -scale if below else scale)


def _votes(cells: Sequence[dict[str, _Cell | None]], counts: Sequence[bool]) -> tuple[Counter[str], str]:
    """How many cells show which decimal sign, and the one that numbers of clicks speak for."""
    votes, guess = Counter[str](), ""
    for of, is_count in zip(cells, counts, strict=True):
        unclear = dict[str, str]()
        for text, core in ((text, cell.core) for text, cell in of.items() if cell):
            last = max(".,", key=core.rfind)  # the sign that stands last in the number
            other, signs = "," if last == "." else ".", core.count(".") + core.count(",")
            if other in core:
                votes[last] += 1
            elif signs > 1:
                votes[other] += 1
            elif signs and (not _GROUPS[last].fullmatch(core) or core.startswith("0")):
                votes[last] += 1
            elif signs:
                guess = guess or other * is_count
                unclear.setdefault(last, text)
        if len(unclear) > 1:  # 1.234 and 1,234 in one column
            must = "of one decimal sign: mend them, or say --decimal …"
            raise bad("numbers", ", ".join(unclear.values()), must)
    return votes, guess


def _column(column: Cells, cells: dict[str, _Cell | None], point: str) -> Numbers:
    others = [text.casefold() for text, of in cells.items() if of is None and not is_nothing(text)]
    yes_or_no = bool(others) and all(_TRUE.fullmatch(x) or _FALSE.fullmatch(x) for x in others)
    yes_or_no = yes_or_no and all(cell.core in ("0", "1") for cell in cells.values() if cell)
    known, symbols = list[tuple[float, int, bool]](), dict[str, str]()
    for text, cell in cells.items():
        if cell is not None:
            known.append(_value(cell, point))
            symbols |= {cell.symbol: symbols.get(cell.symbol, text)} if cell.symbol else {}
        elif is_nothing(text):
            known.append((math.nan, NOTHING if _NOTHING.fullmatch(text) else UNKNOWN, False))
        elif yes_or_no:
            known.append((float(bool(_TRUE.fullmatch(text.casefold()))), NUMBER, False))
        else:
            known.append(_NO_NUMBER)
    values, state, percent = np.array(known, np.float64).reshape(-1, 3).T[:, column.code]
    return Numbers(values, state.astype(np.int8), percent.astype(bool), symbols)


_NO_NUMBER = math.nan, BAD, False


def _value(cell: _Cell, point: str) -> tuple[float, int, bool]:
    if not cell.core.strip("-–—"):
        return math.nan, NOTHING, False
    whole, sign, rest = cell.core.partition(point)
    between = "," if point == "." else "."
    if between in whole and _GROUPS[between].fullmatch(whole) and whole[0] != "0":
        whole = whole.replace(between, "")
    value = plain_number(whole + ("." if sign else "") + rest)
    if value is None:
        return _NO_NUMBER
    value = (value / 100 if cell.percent else value) * cell.factor or 0.0  # never -0.0
    return value, NEGATIVE if value < 0 else NUMBER, cell.percent


def _style(cells: Sequence[tuple[str, _Cell]], point: str) -> NumberStyle:
    """As the first cell with a currency, and the first with thousands, are written."""
    text, symbol = next(((text, cell.symbol) for text, cell in cells if cell.symbol), ("", ""))
    before, _, behind = text.partition(symbol) if symbol else ("", "", "")
    first = not any(map(str.isdigit, before))
    apart = (behind[:1] if first else before[-1:]) in (*_SPACES,)
    signs = (of[0] for text, _ in cells for of in _BETWEEN.finditer(text) if of[0] != point)
    thousands = next(signs, "").translate(NARROW)
    return NumberStyle(symbol, first, apart, decimal=point, thousands=thousands)


def _note(cells: Sequence[tuple[str, _Cell]], point: str, sure: bool) -> str:
    """Examples of numbers that another decimal sign would have made other numbers of."""
    signs = [(text, cell) for text, cell in cells if set(cell.core) & {".", ","}]
    if not signs or (sure and point == "."):
        return ""
    examples = [f"{quoted(x)} is {abs(_value(of, point)[0]):.10g}" for x, of in (signs[0], signs[-1])]
    either = "" if sure else f" (if not: --decimal {',' if point == '.' else '.'})"
    sign = "commas" if point == "," else "points"
    return f"decimal {sign}: {', '.join(dict.fromkeys(examples))}{either}"


# --- Days and times: ISO, days in numbers, English months, seconds since 1970, rounds.

Times = NDArray[np.datetime64]

_NO_TIME = ("", "na", "n/a", "null", "none", "nan", "-", "--", "nat")
_SHORT = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(?:\d{4}|\d\d)(?: .*)?", re.ASCII)
_ROUND = re.compile(r"\d{1,9}(\.\d*)?", re.ASCII)  # of rounds
_CLOCK = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?"
_ISO = re.compile(rf"(?:\d{{4}}-\d\d-\d\d(?:{_CLOCK})?)?", re.ASCII)
_AROUND = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +|\s*(?:Z|UTC|GMT)$", re.IGNORECASE)
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %y",
    "%b %d %Y", "%B %d %Y",
)  # fmt: skip
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y")


def read_times(cells: Cells, custom: bool = False) -> tuple[Times | None, str]:
    """datetime64[us], NaT for what is empty, UTC where the cells say so; and a note. None: no time.

    A day before the month or after it: as some cell of the column shows; else the day first where
    that is the ``custom``, as the note says. Numbers that are no date (rounds, weeks) order the
    rows: each a day of its own.
    """
    if len(cells.texts) > LONG and _ISO.fullmatch(cells.texts[0]):
        from pandas import to_datetime  # at ten times the speed

        with contextlib.suppress(ValueError):
            times = to_datetime(cells.texts, format="ISO8601", utc=True).tz_localize(None)
            return times.to_numpy().astype("datetime64[us]")[cells.code], ""
    if all(map(_ISO.fullmatch, cells.texts)):
        with contextlib.suppress(ValueError):  # the 31st of February
            bare_texts = [text.removesuffix("Z") for text in cells.texts]
            return np.array(bare_texts, "datetime64[us]")[cells.code], ""
    bare = {text: re.sub("[,.]? ", " ", _AROUND.sub("", text)) for text in cells.texts}
    short = {text: parts for text, own in bare.items() if (parts := _SHORT.fullmatch(own))}
    month_shown = any(int(parts[3]) > 12 for parts in short.values())
    day_shown = any(int(parts[1]) > 12 or parts[2] == "." for parts in short.values())
    day_first = day_shown or (custom and not month_shown)
    order = "%d{0}%m{0}" if day_first else "%m{0}%d{0}"
    days = [order.format(sign) + year for sign in "./-" for year in ("%Y", "%y")]
    formats = [day + clock for clock in _CLOCKS for day in (*days, *_DAYS)] + [*_MONTHS]
    known = {text: _time(own, formats) for text, own in bare.items()}
    if wrong := [text for text, of in known.items() if of is None and text.lower() not in _NO_TIME]:
        example = f"{wrong[0][:40]!r}"
        if all(x.lower() in _NO_TIME or _ROUND.fullmatch(x) for x in bare):
            rounds = sorted({float(x) for x in bare if _ROUND.fullmatch(x)})
            is_round = [_ROUND.fullmatch(x) is not None for x in cells.texts]
            place = np.searchsorted(rounds, cells.texts[is_round].astype(float))
            ordered = np.full(len(cells.texts), np.datetime64("NaT", "us"))
            ordered[is_round] = place.astype("datetime64[D]")
            return ordered[cells.code], f"{example} is read as a number that orders the rows"
        forms = "2024-03-31, 31/03/2024, Mar 31, 2024"
        return None, f"{example} is no date or time that is known ({forms})"
    note = ""
    if short and not (day_shown or month_shown):
        text, first = next(iter(short)), "day" if day_first else "month"
        note = f"{text!r} read with the {first} first: {known[text]:%Y-%m-%d}"
    return np.array([known[text] for text in cells.texts], "datetime64[us]")[cells.code], note


def _time(text: str, formats: list[str]) -> datetime | None:
    """The time written so; the format that fits comes first from then on: the next cell is alike."""
    if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) and len(text) != 8:
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
        values, state = ({role: x[rows] for role, x in of.items()} for of in self[:2])
        return Amounts(values, state, self.style, self.totals)


def read_amounts(sheet: Sheet, decimal: str | None) -> Amounts:
    """All columns of numbers; two currencies, and units that are not known, are problems."""
    columns, roles = sheet.columns, sheet.columns.numeric()
    terms = [at for of in columns.terms.values() for _, at in of if isinstance(at, int)]
    beside = list(dict.fromkeys(terms))
    counts = [role == "clicks" and role not in columns.rates for role in roles]
    cells = [sheet.cells[i] for i in (*roles.values(), *beside)]
    read, style, note = read_numbers(cells, counts + [False] * len(beside), sheet.separator, decimal)
    sheet.changes += [note] if note else []
    of_term = dict(zip(beside, read[len(roles) :], strict=True))
    numbers = {
        role: _joined(sheet, role, _without_percent(role, of), of_term) for role, of in zip(roles, read, strict=False)
    }
    values = {role: _scaled(sheet, role, of) for role, of in numbers.items()}
    totals = [x for x in values if x not in columns.rates and columns.kind != "means"]
    has_both = "clicks" in values and "conversions" in totals
    if has_both and (columns.unit("conversions") == "%" or numbers["conversions"].percent.any()):
        values["conversions"] = np.rint(values["conversions"] * values["clicks"])
        totals.remove("conversions")
        own = quoted(sheet.titles[columns.at["conversions"]])
        sheet.changes.append(f"conversions worked out: {own} × clicks, rounded")
    _complete(sheet, values)
    if "currency" not in columns.at:
        firsts = dict[str, tuple[int, str]]()
        for role, of in numbers.items():
            for symbol, text in of.symbols.items():
                row = int(np.argmax(sheet.of(role).equal(text)))
                firsts[symbol] = min((row, role), firsts.get(symbol, (row, role)))
        _check_one(sheet, firsts, "one currency for all rows")
    state = {role: of.state for role, of in numbers.items()}
    return Amounts(values, state, _with_currency(style, sheet), tuple(totals))


def _joined(sheet: Sheet, role: str, numbers: Numbers, beside: dict[int, Numbers]) -> Numbers:
    """With its terms: what one lacks is not known; in a sum that is no cost an empty cell is 0."""
    values, state = numbers.values, numbers.state
    if not (terms := sheet.columns.terms.get(role)):
        return numbers
    for sign, term in terms:
        right = np.full_like(values, term)
        if isinstance(term, int):
            right, other = beside[term].values, beside[term].state
            for i in np.flatnonzero(other == BAD).tolist():
                place = sheet.where(i, f"column {brief(sheet.titles[term], 60)}")
                sheet.problems.append(bad(place, sheet.cells[term].row(i), MAY_BE))
            lacks = other == UNKNOWN
            if sign == "+" and role not in COSTS:
                values, right = (np.where(of == NOTHING, 0.0, x) for of, x in ((state, values), (other, right)))
                state = np.where(state == NOTHING, other, state)
            else:
                lacks |= other == NOTHING
            state = np.where(lacks & (state != BAD), np.int8(UNKNOWN), state)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = {"+": np.add, "*": np.multiply, "/": np.divide}[sign](values, right)
    known = np.isin(state, (NUMBER, NEGATIVE))
    values = np.where(known, values, np.nan)
    state = np.where(known & ~np.isfinite(values), np.int8(UNKNOWN), state)
    return numbers._replace(values=values, state=state)


def _scaled(sheet: Sheet, role: str, numbers: Numbers) -> FloatArray:
    """The values in the unit of the title, and a note if that changes them."""
    columns, at = sheet.columns, sheet.columns.numeric()[role]
    title, unit, is_rate = columns.title.get(role), columns.unit(role), role in columns.rates
    own, values, percent = quoted(sheet.titles[at]), numbers.values, bool(numbers.percent.any())
    is_money = role in COSTS or (role == "clicks" and is_rate) or columns.is_value
    bracket = title.bracket if title and not any(title.key in of for of in words().values()) else ""
    if bracket and is_money and role not in columns.named.values():
        option = shlex.quote(f"{'price' if is_rate else role}={sheet.titles[at]} / …")
        say = "100 divides by 100, 1 takes the numbers as they are"
        must = f"a unit that is known; say --columns {option} ({say})"
        sheet.problems.append(bad(f"{sheet.source}, title {own}", bracket, must))
    if any(isinstance(of, float) for _, of in columns.terms.get(role, ())):
        return values  # with a number in it, an expression takes the numbers as they are
    is_share = role in ("conversions", "mean_reward") and not (columns.plain or percent or unit)
    parts, factor, how = _PARTS.get(unit.removesuffix("s"), 1), 1, ""
    if parts > 1:
        how = f"divided by {parts:,}"
    elif unit == "thousand" and not any(text[-1:] in ("k", "K") for text in sheet.cells[at].texts):
        factor, how = 1000, "in thousands"
    elif unit == "%" and not percent:
        parts, how = 100, "in percent"
    elif is_share and title is not None and title.is_any("rate") and np.nanmax(values, initial=0) > 1:
        parts, how = 100, "read in percent, for a rate is at most 1"
    sheet.changes += [f"{own} is {how}"] if how else []
    return values * factor / parts if how else values


def _without_percent(role: str, numbers: Numbers) -> Numbers:
    """Percent among clicks and costs, or beside other numbers, cannot be read."""
    known = np.isin(numbers.state, (NUMBER, NEGATIVE)) & (numbers.values != 0)
    if role not in ("clicks", "spent") and not (known & ~numbers.percent).any():
        return numbers
    state = np.where(numbers.percent, np.int8(BAD), numbers.state)
    return numbers._replace(state=state, percent=np.zeros_like(numbers.percent))


def _complete(sheet: Sheet, values: dict[str, FloatArray]) -> None:
    """Work out the totals that the file does not have, but rates for, or a constant cost."""
    columns = sheet.columns
    for role, (sign, beside) in columns.rates.items():
        rate, other = values[role], np.nan_to_num(values[beside])
        with np.errstate(divide="ignore", invalid="ignore"):
            total = other * rate if sign == "*" else other / rate
        total = np.where((other == 0) | ~np.isfinite(total), 0.0, total)
        is_whole = role == "clicks" or (not columns.is_value and role == "conversions")
        values[role] = np.rint(total) if is_whole else total
        own, by = (quoted(sheet.titles[columns.at[x]]) for x in (role, beside))
        how = f"{own} × {by}" if sign == "*" else f"{by} / {own}"
        sheet.changes.append(f"{role} worked out: {how}{', rounded' if is_whole else ''}")
    for role, constant in columns.constant.items():
        pulls = values["clicks"] if columns.kind == "counts" else np.ones(len(sheet.line))
        values[role] = constant * pulls
        second = " of a second cost" if role == "cost2" else ""
        unit = f"every {columns.pull_unit} costs {constant:g}"
        sheet.changes.append(f"{unit}{second}, as --columns says")


def _with_currency(style: NumberStyle, sheet: Sheet) -> NumberStyle:
    """The currency of a title or of a column of its own, where the numbers have none."""
    codes = {text for text in sheet.of("currency").texts if not is_nothing(text)}
    units = [sheet.columns.unit(role) for role in (*COSTS, *sheet.columns.rates)]
    units = [x for x in (*(codes if len(codes) == 1 else ()), *units) if x not in _NO_CURRENCY]
    if style.symbol or not units:
        return style
    apart = units[0][-1:].isalpha()
    return replace(style, symbol=units[0][:8], symbol_first=not apart, symbol_apart=apart)


def check_cells(sheet: Sheet, amounts: Amounts, kind: str) -> np.ndarray:
    """Note every cell that cannot be read, row by row; the rows that can be used, bool [N]."""
    at = sheet.columns.at
    refunds = ("spent", "conversions") if kind == "counts" else ()  # sums must be at least 0
    wrong = {role: (of == BAD) | ((of == NEGATIVE) & (role not in refunds)) for role, of in amounts.state.items()}
    wrong |= {x: sheet.of(x).equal("") for x in ("name", "instance") if x in at}
    odd = np.any(list(wrong.values()), axis=0) | np.isin(sheet.line, list(sheet.wide))
    for i in np.flatnonzero(odd).tolist():
        if (line := sheet.line[i]) in sheet.wide:
            must = f"at most {len(sheet.titles)}, as in the header"
            place = sheet.where(i, "number of cells")
            sheet.problems.append(bad(place, sheet.wide[line], must))
        for role in (role for role, of in wrong.items() if of[i]):
            text, must = sheet.of(role).row(i), MAY_BE if role in amounts.state else "a name"
            if text[:1].isdigit() and set(text) & {",", "."}:
                must += f" (decimal sign: {amounts.style.decimal!r})"
            if text.endswith("%"):
                must += " (percent beside numbers, or of an amount)"
            sheet.problems.append(bad(sheet.cell(i, role), text, must))

    def firsts(role: str, rows: np.ndarray) -> dict[str, tuple[int, str]]:
        own = np.flatnonzero(rows)
        cells = sheet.of(role).only(own)
        first = own[np.unique(cells.code, return_index=True)[1]].tolist()
        return {x: (i, role) for x, i in zip(cells.texts, first, strict=True) if not is_nothing(x)}

    if "result_kind" in at:
        some = ~odd & (np.nan_to_num(amounts.values["conversions"]) > 0)
        way = {"columns": {"conversions": sheet.titles[at["conversions"]]}}, "takes them as they are"
        _check_one(sheet, firsts("result_kind", some), "results of two kinds are not compared", way)
    if "currency" in at and at.get("instance") != at["currency"]:
        way = {"columns": {"instance": sheet.titles[at["currency"]]}}, "plays each by itself"
        _check_one(sheet, firsts("currency", odd | True), "", way)
    return ~odd


def _check_one(
    sheet: Sheet, first: Mapping[str, tuple[int, str]], why: str, *ways: tuple[Mapping[str, Any], str]
) -> None:
    """Amounts of two currencies, and results of two kinds, have no sum: where each stands first."""
    above, *others = sorted(first.items(), key=lambda item: item[1]) or [("", (0, ""))]
    for _, (row, role) in others:
        must = f"{quoted(brief(above[0], 40))} as in line {sheet.line[above[1][0]]}"
        text = brief(sheet.of(role).row(row), 40)
        problem = bad(sheet.cell(row, role), text, f"{must} ({why})" if why else must)
        sheet.problems.append(Question(str(problem), ways))
