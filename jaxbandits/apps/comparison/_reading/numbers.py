"""Numbers and times as people and their programs write them: decimal commas, thousands, currencies, percent, days."""

from __future__ import annotations

import contextlib
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxbandits._tables import NARROW, NumberStyle
from jaxbandits.apps.comparison._reading.columns import CODES, COSTS, SIGNS, Texts, rank_of
from jaxbandits.apps.comparison._reading.sheet import MANY, Sheet, numbered
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.core.checks import bad, brief, shown

# What a cell holds: a number; nothing, which a file of counts writes for 0; a word for "not known"; something else; a
# number below 0.
NUMBER, NOTHING, UNKNOWN, BAD, NEGATIVE = range(5)

MAY_BE = "a finite number of at least 0"
_PARTS = {"micro": 1_000_000, "cent": 100, "¢": 100}
_NO_CURRENCY = ("", "%", "micro", "micros", "cent", "cents", "¢", "thousand", "utc", "gmt")
_NOTHING = re.compile(r"[-–—−]*|- -|\(none\)")
_UNKNOWN = re.compile(
    r"n/?a|n\.?a\.|nan|null|none|nil|nv|n\.v\.|k\. ?a\.|#n/a|#nv|#n/d|#na|#div/0!|<na>|\\n|\?|\.|∅"
    r"|unknown|missing|undefined|not available|\(not set\)|\(null\)"
)
_TRUE = re.compile(r"true|yes|y|t|ja|oui|s[ií]|sim|wahr|vrai|success|succeeded|passe?d?|won|win|converted|correct")
_FALSE = re.compile(r"false|no|n|f|nein|non|n[aã]o|falsch|faux|failure|failed|fail|lost|loss|not converted|incorrect")
_PLAIN = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPACES = "\u00a0\u202f\u2009\u2007 "
_QUOTES = "'’‘´`"
_NAMES = rf"R\$|kr\.?|zł|Kč|Ft|lei|руб\.?|Fr\.|Rs\.?|TL|RM|Rp\.?|S/\.?|{CODES}"
_MONEY = rf"(?:[A-Z]{{1,3}}\$|[{SIGNS}]|{_NAMES})"
_DRESSED = re.compile(
    rf"(?P<below>[-−])?(?P<first>{_MONEY})?[{_SPACES}]*(?P<under>[-−])?\+?"
    rf"(?P<core>[\d.,{_QUOTES}{_SPACES}]*\d[.,]?(?:[eE][+-]?\d+)?|[-–—]+)"
    rf"[{_SPACES}]*(?P<scale>[kKmM](?![A-Za-z]))?[{_SPACES}]*(?P<last>{_MONEY}|%)?",
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
    columns: Sequence[Texts], counts: Sequence[bool], separator: str, decimal: str | None = None
) -> tuple[list[Numbers], NumberStyle, str]:
    """All columns, read alike; how the file writes; a note where the decimal sign is a comma, or only custom tells it.

    A sign is decimal where two stand in one number (the last), or where it cannot stand between thousands. Where no
    cell tells, numbers of clicks (``counts``) are whole, and a comma is decimal between semicolons.
    """
    if decimal is None and separator == ",":
        fast = [_plain_column(cells, is_count) for cells, is_count in zip(columns, counts, strict=True)]
        if all(one is not None for one in fast):
            return [one for one in fast if one is not None], NumberStyle(), ""
    cells = [{text: _undressed(text) for text in dict.fromkeys(of)} for of in columns]
    votes, guess = (Counter[str](), "") if decimal else _votes(cells, counts)
    custom = guess or ("," if separator == ";" else ".")
    point = decimal or ("," if votes[","] > votes["."] else "." if votes else custom)
    read = [_column(of, own, point) for of, own in zip(columns, cells, strict=True)]
    every = [(text, cell) for of in cells for text, cell in of.items() if cell]
    return read, _style(every, point), _note(every, point, sure=bool(votes or decimal))


def _plain_column(cells: Texts, is_count: bool) -> Numbers | None:
    """A column of plain numbers and empty cells only, at the speed of NumPy; None if it is another one."""
    text = "\n".join(cells)
    if not set(text) <= set("0123456789.eE+-\n") or (is_count and "." in text):
        return None
    empty = cells == ""
    try:
        values = np.where(empty, "nan", cells).astype(np.float64)
    except ValueError:  # two dots
        return None
    if not (np.isfinite(values) | empty).all() or np.signbit(values[~empty]).any():
        return None
    return Numbers(values, np.where(empty, NOTHING, NUMBER).astype(np.int8), np.zeros(len(cells), bool), {})


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
    if not (found := _DRESSED.fullmatch(inner[1] or inner[2] if inner else text)):
        return None
    core, behind = found["core"].strip(_SPACES), found["last"] or ""
    grouped = _GROUPED.fullmatch(whole := re.split(r"[.,]", core)[0])  # what can only stand between thousands goes
    core = re.sub(rf"[{_SPACES}{_QUOTES}]", "", whole) + core[len(whole) :] if grouped else core
    below = bool(inner or found["below"] or found["under"]) and core.strip("-–—") != ""
    scale = {"k": 1e3, "m": 1e6}.get((found["scale"] or "").lower(), 1.0)
    return _Cell(core, found["first"] or behind.replace("%", ""), behind == "%", -scale if below else scale)


def _votes(cells: Sequence[dict[str, _Cell | None]], counts: Sequence[bool]) -> tuple[Counter[str], str]:
    """How many cells show which decimal sign, and the one that numbers of clicks speak for."""
    votes, guess = Counter[str](), ""
    for of, is_count in zip(cells, counts, strict=True):
        unclear = dict[str, str]()
        for text, core in ((text, cell.core) for text, cell in of.items() if cell):
            last = max(".,", key=core.rfind)  # the sign that stands last in the number
            signs, other = core.count(".") + core.count(","), "," if last == "." else "."
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
            raise bad("numbers", ", ".join(unclear.values()), "of one decimal sign: mend them, or say --decimal …")
    return votes, guess


def _column(texts: Texts, cells: dict[str, _Cell | None], point: str) -> Numbers:
    words = [text.casefold() for text, cell in cells.items() if cell is None and not is_nothing(text)]
    yes_or_no = bool(words) and all(_TRUE.fullmatch(word) or _FALSE.fullmatch(word) for word in words)
    yes_or_no = yes_or_no and all(cell.core in ("0", "1") for cell in cells.values() if cell)
    known, symbols = dict[str, tuple[float, int, bool]](), dict[str, str]()
    for text, cell in cells.items():
        known[text] = _NO_NUMBER
        if cell is not None:
            known[text] = _value(cell, point)
            symbols |= {cell.symbol: symbols.get(cell.symbol, text)} if cell.symbol else {}
        elif is_nothing(text):
            known[text] = math.nan, NOTHING if _NOTHING.fullmatch(text) else UNKNOWN, False
        elif yes_or_no:
            known[text] = float(bool(_TRUE.fullmatch(text.casefold()))), NUMBER, False
    values, state, percent = np.array([known[text] for text in texts], np.float64).reshape(-1, 3).T
    return Numbers(values, state.astype(np.int8), percent.astype(bool), symbols)


_NO_NUMBER = math.nan, BAD, False


def _value(cell: _Cell, point: str) -> tuple[float, int, bool]:
    if not cell.core.strip("-–—"):
        return math.nan, NOTHING, False
    whole, sign, rest = cell.core.partition(point)
    between = "," if point == "." else "."
    if between in whole and _GROUPS[between].fullmatch(whole) and whole[0] != "0":
        whole = whole.replace(between, "")
    text = whole + ("." if sign else "") + rest
    value = float(text) if _PLAIN.fullmatch(text) else math.nan
    if not math.isfinite(value):
        return _NO_NUMBER
    value = (value / 100 if cell.percent else value) * cell.factor or 0.0  # never -0.0
    return value, NEGATIVE if value < 0 else NUMBER, cell.percent


def _style(cells: Sequence[tuple[str, _Cell]], point: str) -> NumberStyle:
    """As the first cell with a currency, and the first with thousands, are written."""
    text, symbol = next(((text, cell.symbol) for text, cell in cells if cell.symbol), ("", ""))
    before, _, behind = text.partition(symbol) if symbol else ("", "", "")
    first = not any(map(str.isdigit, before))
    apart = (behind[:1] if first else before[-1:]) in (*_SPACES,)
    signs = (found[0] for text, _ in cells for found in _BETWEEN.finditer(text) if found[0] != point)
    return NumberStyle(symbol, first, apart, decimal=point, thousands=next(signs, "").translate(NARROW))


def _note(cells: Sequence[tuple[str, _Cell]], point: str, sure: bool) -> str:
    """Examples of numbers that another decimal sign would have made other numbers of."""
    signs = [(text, cell) for text, cell in cells if set(cell.core) & {".", ","}]
    if not signs or (sure and point == "."):
        return ""
    told = [f"{shown(text)} is {abs(_value(cell, point)[0]):.10g}" for text, cell in (signs[0], signs[-1])]
    either = "" if sure else f" (if not: --decimal {',' if point == '.' else '.'})"
    return f"decimal {'commas' if point == ',' else 'points'}: {', '.join(dict.fromkeys(told))}{either}"


# --- Days and times: ISO, days in numbers, English months, seconds since 1970, rounds.

Times = NDArray[np.datetime64]

_NO_TIME = ("", "na", "n/a", "null", "none", "nan", "-", "--", "nat")
_SHORT = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(?:\d{4}|\d\d)(?: .*)?", re.ASCII)
_ROUND = re.compile(r"\d{1,9}(\.\d*)?", re.ASCII)  # of rounds
_ISO = re.compile(r"(?:\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?)?", re.ASCII)
_AROUND = re.compile(r"^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +|\s*(?:Z|UTC|GMT)$", re.IGNORECASE)
_EPOCHS = ((9e8, 5e9, 1.0), (9e11, 5e12, 1e3), (9e14, 5e15, 1e6), (9e17, 5e18, 1e9))  # s, ms, µs, ns: 1998 to 2128
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %y", "%b %d %Y",
    "%B %d %Y",
)  # fmt: skip
_MONTHS = ("%Y-%m", "%Y/%m", "%b %Y", "%B %Y")


def read_times(cells: Texts, custom: bool = False) -> tuple[Times | None, str]:
    """datetime64[us], NaT for what is empty, UTC where the cells say so; and a note. None if a cell is no time.

    A day before the month or after it: as some cell of the column shows; else the day first where that is the
    ``custom``, as the note says. Numbers that are no date (rounds, weeks) order the rows: each a day of its own.
    """
    code, texts = numbered(cells)
    if all(map(_ISO.fullmatch, texts)):
        bare_texts = [text.removesuffix("Z") for text in texts]
        with contextlib.suppress(ValueError):  # the 31st of February
            if len(texts) <= MANY:
                return np.array(bare_texts, "datetime64[us]")[code], ""
            from pandas import to_datetime

            return to_datetime(bare_texts, format="ISO8601").to_numpy().astype("datetime64[us]")[code], ""
    bare = {text: re.sub("[,.]? ", " ", _AROUND.sub("", text)) for text in dict.fromkeys(cells)}
    short = {text: found for text, own in bare.items() if (found := _SHORT.fullmatch(own))}
    month_shown = any(int(found[3]) > 12 for found in short.values())
    day_shown = any(int(found[1]) > 12 or found[2] == "." for found in short.values())
    day_first = day_shown or (custom and not month_shown)
    order = "%d{0}%m{0}" if day_first else "%m{0}%d{0}"
    days = [order.format(sign) + year for sign in "./-" for year in ("%Y", "%y")]
    formats = [day + clock for clock in _CLOCKS for day in (*days, *_DAYS)] + [*_MONTHS]
    known = {text: _read(own, formats) for text, own in bare.items()}
    if wrong := [text for text, time in known.items() if time is None and text.lower() not in _NO_TIME]:
        if all(x.lower() in _NO_TIME or _ROUND.fullmatch(x) for x in bare):
            return _ordered(cells), f"{wrong[0][:40]!r} is read as a number that orders the rows"
        return None, f"{wrong[0][:40]!r} is no date or time that is known (2024-03-31, 31/03/2024, Mar 31, 2024)"
    note = ""
    if short and not (day_shown or month_shown):
        example = next(iter(short))
        note = f"{example!r} read with the {'day' if day_first else 'month'} first: {known[example]:%Y-%m-%d}"
    return np.array([known[text] for text in cells], dtype="datetime64[us]"), note


def _ordered(cells: Texts) -> Times:
    numbers = np.array([float(x) if _ROUND.fullmatch(x) else np.nan for x in cells])
    days = np.unique(numbers, return_inverse=True)[1].astype("datetime64[D]").astype("datetime64[us]")
    return np.where(np.isnan(numbers), np.datetime64("NaT", "us"), days)


def _read(text: str, formats: list[str]) -> datetime | None:
    """The time that is written so; the format that fits comes first from then on, for the next cell is alike."""
    if re.fullmatch(r"\d+(\.\d*)?", text, re.ASCII) and len(text) != 8:
        value = float(text[:40])
        unit = next((unit for low, high, unit in _EPOCHS if low <= value <= high), None)
        return None if unit is None else datetime(1970, 1, 1) + timedelta(microseconds=round(value / unit * 1e6))
    with contextlib.suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    for n, form in enumerate(formats):
        with contextlib.suppress(ValueError):
            found = datetime.strptime(text, form)
            formats.insert(0, formats.pop(n))
            return found
    return None


# --- The columns of numbers of a file: units of their titles, rates made to totals, one currency.


class Amounts(NamedTuple):
    """The numbers of the rows, [N] each."""

    values: dict[str, FloatArray]  # of each role, NaN where there is none; units of the title are taken into account
    state: dict[str, np.ndarray]  # of each role: NUMBER and so on
    style: NumberStyle  # how they are written
    totals: tuple[str, ...] = ()  # roles of totals that stand in the file, neither worked out nor means

    def only(self, rows: np.ndarray) -> Amounts:
        """Those of these rows only."""
        values, state = ({role: of[rows] for role, of in found.items()} for found in self[:2])
        return Amounts(values, state, self.style, self.totals)


def read_amounts(sheet: Sheet, decimal: str | None) -> Amounts:
    """All columns of numbers; two currencies in one file, and units that are not known, are problems of the sheet."""
    columns, roles, changes = sheet.columns, sheet.columns.numeric(), sheet.report.changes
    beside = list({at for of in columns.terms.values() for _, at in of if isinstance(at, int)})
    counts = [role == "clicks" and role not in columns.rates for role in roles] + [False] * len(beside)
    texts = [sheet.cells[i] for i in (*roles.values(), *beside)]
    read, style, note = read_numbers(texts, counts, sheet.separator, decimal)
    changes += [note] if note else []
    of_term = dict(zip(beside, read[len(roles) :], strict=True))
    by_role = {x: _joined(sheet, x, _without_percent(x, of), of_term) for x, of in zip(roles, read, strict=False)}
    values = {role: _scaled(sheet, role, of) for role, of in by_role.items()}
    totals = [role for role in values if role not in columns.rates] if columns.kind != "means" else []
    of_clicks = "clicks" in values and "conversions" in totals
    if of_clicks and (columns.unit("conversions") == "%" or by_role["conversions"].percent.any()):
        values["conversions"] = np.rint(values["conversions"] * values["clicks"])
        totals.remove("conversions")
        changes.append(f"conversions worked out: {shown(sheet.titles[columns.at['conversions']])} × clicks, rounded")
    _complete(sheet, values)
    if "currency" not in columns.at:
        each = [(x, symbol, text) for x, of in by_role.items() for symbol, text in of.symbols.items()]
        seen = [(int(np.argmax(sheet.of(x) == text)), x, symbol) for x, symbol, text in each]
        firsts = {symbol: (row, role) for row, role, symbol in sorted(seen, reverse=True)}
        _check_one(sheet, firsts, "one currency for all rows")
    state = {role: numbers.state for role, numbers in by_role.items()}
    return Amounts(values, state, _with_currency(style, sheet), tuple(totals))


def _joined(sheet: Sheet, role: str, numbers: Numbers, beside: dict[int, Numbers]) -> Numbers:
    """With its terms: what one of them lacks is not known; but in a sum that is no cost an empty cell is 0."""
    values, state = numbers.values, numbers.state
    if not (terms := sheet.columns.terms.get(role)):
        return numbers
    for sign, term in terms:
        right = np.full_like(values, term)
        if isinstance(term, int):
            right, other = beside[term].values, beside[term].state
            for i in np.flatnonzero(other == BAD).tolist():
                title = brief(sheet.titles[term], 60)
                sheet.note(bad(sheet.where(i, f"column {title}"), sheet.cells[term][i], MAY_BE))
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
    return numbers._replace(values=values, state=np.where(known & ~np.isfinite(values), np.int8(UNKNOWN), state))


def _scaled(sheet: Sheet, role: str, numbers: Numbers) -> FloatArray:
    """The values in the unit of the title, and a note if that changes them."""
    columns, at = sheet.columns, sheet.columns.numeric()[role]
    title, unit, is_rate = columns.title.get(role), columns.unit(role), role in columns.rates
    is_price = role in COSTS or (role == "clicks" and is_rate)
    is_money = (is_price or columns.is_value) and role not in columns.given
    own, values, percent = shown(sheet.titles[at]), numbers.values, bool(numbers.percent.any())
    if title is not None and title.bracket and is_money and not any(title.key in words for words in rank_of().values()):
        option = shlex.quote(f"{'price' if is_rate else role}={sheet.titles[at]} / …")
        must = f"a unit that is known; say --columns {option} (100 divides by 100, 1 takes the numbers as they are)"
        sheet.note(bad(f"{sheet.source}, title {own}", title.bracket, must))
    is_share = role in ("conversions", "mean_reward") and not (columns.plain or percent or unit)
    parts, factor, how = _PARTS.get(unit.removesuffix("s")), 1, ""
    if any(isinstance(of, float) for _, of in columns.terms.get(role, ())):
        return values  # with a number in it, an expression takes the numbers as they are
    if parts:
        how = f"divided by {parts:,}"
    elif unit == "thousand" and not any(text[-1:] in ("k", "K") for text in sheet.cells[at]):
        parts, factor, how = 1, 1000, "in thousands"
    elif unit == "%" and not percent:
        parts, how = 100, "in percent"
    elif is_share and title is not None and title.is_any(rank_of()["rate"]) and np.nanmax(values, initial=0) > 1:
        parts, how = 100, "read in percent, for a rate is at most 1"
    sheet.report.changes += [f"{own} is {how}"] if how else []
    return values * factor / parts if parts else values


def _without_percent(role: str, numbers: Numbers) -> Numbers:
    """Percent among clicks and costs, or beside other numbers, cannot be read."""
    amounts = ~numbers.percent & np.isin(numbers.state, (NUMBER, NEGATIVE)) & (numbers.values != 0)
    if role not in ("clicks", "spent") and not amounts.any():
        return numbers
    state = np.where(numbers.percent, np.int8(BAD), numbers.state)
    return numbers._replace(state=state, percent=np.zeros_like(numbers.percent))


def _complete(sheet: Sheet, values: dict[str, FloatArray]) -> None:
    """Work out the totals that the file does not have, but rates for, or a constant cost."""
    columns = sheet.columns
    for role, (sign, beside) in columns.rates.items():
        rate, other = values[role], np.nan_to_num(values[beside])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = other * rate if sign == "*" else other / rate
        whole = role == "clicks" or (not columns.is_value and role == "conversions")
        found = np.where((other == 0) | ~np.isfinite(found), 0.0, found)
        values[role] = np.rint(found) if whole else found
        title, by = shown(sheet.titles[columns.at[role]]), shown(sheet.titles[columns.at[beside]])
        made = f"{title} × {by}" if sign == "*" else f"{by} / {title}"
        sheet.report.changes.append(f"{role} worked out: {made}{', rounded' if whole else ''}")
    for role, constant in columns.constant.items():
        values[role] = constant * values.get("clicks" if columns.kind == "counts" else "", np.ones(len(sheet.line)))
        second = " of a second cost" if role == "cost2" else ""
        sheet.report.changes.append(f"every {columns.pull_unit} costs {constant:g}{second}, as --columns says")


def _with_currency(style: NumberStyle, sheet: Sheet) -> NumberStyle:
    """The currency of a title or of a column of its own, where the numbers have none."""
    codes = {cell for cell in set(sheet.of("currency")) if not is_nothing(cell)}
    units = [sheet.columns.unit(role) for role in (*COSTS, *sheet.columns.rates)]
    named = [unit for unit in (*(codes if len(codes) == 1 else ()), *units) if unit not in _NO_CURRENCY]
    if style.symbol or not named:
        return style
    apart = named[0][-1:].isalpha()
    return replace(style, symbol=named[0][:8], symbol_first=not apart, symbol_apart=apart)


def check_cells(sheet: Sheet, amounts: Amounts, kind: str) -> np.ndarray:
    """Note every cell that cannot be read, row by row; the rows that can be used, bool [N]."""
    at, refunds = sheet.columns.at, ("spent", "conversions") if kind == "counts" else ()  # sums must be at least 0
    wrong = {role: (of == BAD) | ((of == NEGATIVE) & (role not in refunds)) for role, of in amounts.state.items()}
    wrong |= {role: sheet.of(role) == "" for role in ("name", "instance") if role in at}
    odd = np.any(list(wrong.values()), axis=0) | np.isin(sheet.line, list(sheet.wide))
    for i in np.flatnonzero(odd).tolist():
        if (line := sheet.line[i]) in sheet.wide:
            may_be = f"at most {len(sheet.titles)}, as in the header"
            sheet.note(bad(sheet.where(i, "number of cells"), sheet.wide[line], may_be))
        for role in (role for role, of in wrong.items() if of[i]):
            text, may_be = sheet.of(role)[i], MAY_BE if role in amounts.state else "a name"
            if text[:1].isdigit() and set(text) & {",", "."}:
                may_be += f" (decimal sign: {amounts.style.decimal!r})"
            if text.endswith("%"):
                may_be += " (percent beside numbers, or of an amount)"
            sheet.note(bad(sheet.cell(i, role), text, may_be))

    def firsts(role: str, rows: np.ndarray) -> dict[str, tuple[int, str]]:
        own = sheet.of(role)
        return {x: (int(np.argmax(rows & (own == x))), role) for x in set(own[rows]) if not is_nothing(x)}

    if "result_kind" in at:
        option = shlex.quote(brief(f"conversions={sheet.titles[at['conversions']]}", 60))
        say = f"results of two kinds are not compared; --columns {option} takes them as they are"
        _check_one(sheet, firsts("result_kind", ~odd & (np.nan_to_num(amounts.values["conversions"]) > 0)), say)
    if "currency" in at and at.get("instance") != at["currency"]:
        option = shlex.quote(f"instance={sheet.titles[at['currency']]}")
        _check_one(sheet, firsts("currency", odd | True), f"--columns {option} plays each by itself")
    return ~odd


def _check_one(sheet: Sheet, first: Mapping[str, tuple[int, str]], say: str) -> None:
    """Amounts of two currencies, and results of two kinds, have no sum. ``first``: row and role where each stands."""
    above, *others = sorted(first.items(), key=lambda item: item[1]) or [("", (0, ""))]
    for _, (row, role) in others:
        may_be = f"{shown(brief(above[0], 40))} as in line {sheet.line[above[1][0]]} ({say})"
        sheet.note(bad(sheet.cell(row, role), brief(sheet.of(role)[row], 40), may_be))
