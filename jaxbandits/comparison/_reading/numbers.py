"""Numbers as people and their programs write them: decimal commas, thousands, currencies, percent, nothing at all."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxbandits.comparison._reading.columns import COSTS
from jaxbandits.comparison._reading.sheet import Problems, Sheet
from jaxbandits.comparison._reading.titles import CODES, SIGNS, is_word, rank_of
from jaxbandits.comparison._reading.titles import title as find_title
from jaxbandits.comparison.arms_table import FloatArray, NumberStyle
from jaxbandits.core.checks import bad, brief, shown

NUMBER, NOTHING, UNKNOWN, BAD, NEGATIVE = range(5)
"""What a cell holds: a number; nothing, which a file of counts writes for 0; a word for "not known"; something else; a
number below 0."""

MAY_BE = "a finite number of at least 0"
_PARTS = {"micro": 1_000_000, "cent": 100, "¢": 100}
_NO_CURRENCY = ("%", "micro", "micros", "cent", "cents", "¢", "thousand", "utc", "gmt")
_PRICED = ("spent", "cost", "mean_cost", "spent rate", "clicks rate")  # roles whose columns are money for sure
_NOTHING = re.compile(r"[-–—−]*|- -|\(none\)")
_UNKNOWN = re.compile(
    r"n/?a|n\.?a\.|nan|null|none|nil|nv|n\.v\.|k\. ?a\.|#n/a|#nv|#n/d|#na|#div/0!|<na>|\\n|\?|\.|∅"
    r"|unknown|missing|undefined|not available|\(not set\)|\(null\)"
)
_TRUE = re.compile(r"true|yes|y|t|ja|oui|s[ií]|sim|wahr|vrai|success|succeeded|passe?d?|won|win|converted|correct")
_FALSE = re.compile(r"false|no|n|f|nein|non|n[aã]o|falsch|faux|failure|failed|fail|lost|loss|not converted|incorrect")
_PLAIN = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_PLAIN_LINES = re.compile(r"(?:(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)?(?:\n|\Z))*", re.ASCII)
_DIGITS = set("0123456789.\n")
_SPACES = "\u00a0\u202f\u2009\u2007 "
_QUOTES = "'’‘´`"
_NAMES = rf"R\$|kr\.?|zł|Kč|Ft|lei|руб\.?|Fr\.|Rs\.?|TL|RM|Rp\.?|S/\.?|{CODES}"
_MONEY = rf"(?:[A-Z]{{1,3}}\$|[{SIGNS}]|{_NAMES})"
_DRESSED = re.compile(
    rf"(?P<below>[-−])?(?P<first>{_MONEY})?(?P<apart>[{_SPACES}]*)(?P<under>[-−])?\+?"
    rf"(?P<core>[\d.,{_QUOTES}{_SPACES}]*\d[.,]?(?:[eE][+-]?\d+)?|[-–—]+)"
    rf"[{_SPACES}]*(?P<scale>[kKmM](?![A-Za-z]))?(?P<between>[{_SPACES}]*)(?P<last>{_MONEY}|%)?",
    re.ASCII | re.IGNORECASE,
)
_NO_CENTS = re.compile(r"(\d)[.,][-–—]{1,2}(\D*)$", re.ASCII)  # 1.300,- €
_IN_BRACKETS = re.compile(r"\((.*\d.*)\)|([^-−]*\d)[-−]")  # below 0, as accountants and SAP write it
_GROUPS = {
    ",": re.compile(r"\d{1,3}(,\d{3})+|\d{1,2}(,\d{2})*,\d{3}", re.ASCII),  # the second as in India
    ".": re.compile(r"\d{1,3}(\.\d{3})+", re.ASCII),
}


@dataclass(frozen=True, eq=False)
class Numbers:
    """One column.

    Attributes:
        values: float64 [N]; NaN where there is no number.
        state: int8 [N]: NUMBER, NOTHING, UNKNOWN, BAD or NEGATIVE.
        percent: bool [N], whether a percent sign stood there (the value is divided by 100).
        symbols: of each currency in the column the first row that has it.
    """

    values: FloatArray
    state: np.ndarray
    percent: np.ndarray
    symbols: dict[str, int]


@dataclass(frozen=True)
class _Cell:
    """What is left of a cell without its dress."""

    core: str
    symbol: str = ""
    first: bool = True
    apart: bool = False
    percent: bool = False
    below: bool = False
    scale: float = 1.0


def read_numbers(
    columns: Sequence[Sequence[str]], counts: Sequence[bool], separator: str, decimal: str | None = None
) -> tuple[list[Numbers], NumberStyle, str]:
    """All columns, read alike.

    A sign is decimal where two stand in one number (the last), or where it cannot stand between thousands. Where no
    cell tells, numbers of clicks are whole, and a comma is decimal between semicolons.

    Args:
        columns: the cells of each.
        counts: whether it counts clicks.
        separator: of the file's cells.
        decimal: "." or ","; None to find out.

    Returns:
        The columns; how the file writes; a note where the decimal sign is a comma, or only custom tells it.

    Example:
        >>> found, style, note = read_numbers([["1.300", "7"], ["12,50 €", "-"]], [True, False], ";")
        >>> found[0].values.tolist(), found[1].values.tolist(), style.decimal, note
        ([1300.0, 7.0], [12.5, nan], ',', "decimal commas: '1.300' is 1300, '12,50 €' is 12.5")
    """
    if decimal is None and separator == ",":
        fast = [_plain_column(cells, is_count) for cells, is_count in zip(columns, counts, strict=True)]
        if all(one is not None for one in fast):
            return [one for one in fast if one is not None], NumberStyle(), ""
    cells = [{text: _undressed(text) for text in dict.fromkeys(of)} for of in columns]
    votes, guess = _votes(cells, counts)
    point = decimal or (
        "," if votes[","] > votes["."] else "." if votes else guess or ("," if separator == ";" else ".")
    )
    read = [_column(of, own, point) for of, own in zip(columns, cells, strict=True)]
    every = [(text, cell) for of in cells for text, cell in of.items() if cell]
    return read, _style([cell for _, cell in every], point), _note(every, point, sure=bool(votes or decimal))


def _plain_column(cells: Sequence[str], is_count: bool) -> Numbers | None:
    """A column of plain numbers and empty cells only, at the speed of NumPy; None if it is another one."""
    text = "\n".join(cells)
    signs = set(text)
    if not (signs <= _DIGITS or _PLAIN_LINES.fullmatch(text)) or (is_count and "." in signs):
        return None
    empty = np.array([not cell for cell in cells], bool)
    try:
        values = np.array([cell or "nan" for cell in cells] if empty.any() else cells).astype(np.float64)
    except ValueError:  # two dots
        return None
    if not (np.isfinite(values) | empty).all():
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
    return bool(_NOTHING.fullmatch(text)) or is_unknown(text)


def is_unknown(text: str) -> bool:
    """Whether the cell says that a number is not known."""
    return _UNKNOWN.fullmatch(text.casefold()) is not None


def _undressed(text: str) -> _Cell | None:
    """None if it is no number in any dress."""
    if _PLAIN.fullmatch(text):
        return _Cell(text.removeprefix("+"))
    text = _NO_CENTS.sub(r"\1\2", text[:400])
    inner = _IN_BRACKETS.fullmatch(text)
    if not (found := _DRESSED.fullmatch(inner[1] or inner[2] if inner else text)):
        return None
    before, behind, core = found["first"] or "", found["last"] or "", found["core"].strip(_SPACES)
    percent, behind = behind == "%", behind.replace("%", "")
    apart = (
        bool(found["apart"]) or not found["core"].startswith(core) if before else not found[0].endswith(core + behind)
    )
    below = bool(inner or found["below"] or found["under"]) and core.strip("-–—") != ""
    scale = {"k": 1e3, "m": 1e6}.get((found["scale"] or "").lower(), 1.0)
    return _Cell(core, before or behind, bool(before), apart and bool(before or behind), percent, below, scale)


def _bare(core: str) -> str:
    """Without what can only stand between thousands, if it stands there."""
    if not any(sign in core for sign in _SPACES + _QUOTES):
        return core
    whole = re.split(r"[.,]", core)[0]
    grouped = re.fullmatch(rf"\d{{1,3}}(([{_SPACES}]\d{{3}})+|([{_QUOTES}]\d{{3}})+)", whole, re.ASCII)
    return re.sub(rf"[{_SPACES}{_QUOTES}]", "", whole) + core[len(whole) :] if grouped else core


def _votes(cells: Sequence[dict[str, _Cell | None]], counts: Sequence[bool]) -> tuple[Counter[str], str]:
    """How many cells show which decimal sign, and the one that numbers of clicks speak for."""
    votes, guess = Counter[str](), ""
    for of, is_count in zip(cells, counts, strict=True):
        for cell in of.values():
            core = _bare(cell.core) if cell else ""
            dots, commas = core.count("."), core.count(",")
            if dots and commas:
                votes["." if core.rfind(".") > core.rfind(",") else ","] += 1
            elif dots + commas > 1:
                votes["," if dots else "."] += 1
            elif dots + commas == 1:
                sign = "." if dots else ","
                if not _GROUPS[sign].fullmatch(core) or core.startswith("0"):
                    votes[sign] += 1
                elif is_count:
                    guess = guess or ("," if dots else ".")
    return votes, guess


def _column(texts: Sequence[str], cells: dict[str, _Cell | None], point: str) -> Numbers:
    words = [text.casefold() for text, cell in cells.items() if cell is None and not is_nothing(text)]
    numbers = [cell for cell in cells.values() if cell is not None]
    yes_or_no = bool(words) and all(_TRUE.fullmatch(word) or _FALSE.fullmatch(word) for word in words)
    yes_or_no = yes_or_no and all(cell.core in ("0", "1") for cell in numbers)
    known: dict[str, tuple[float, int, bool]] = {}
    for text, cell in cells.items():
        if cell is not None:
            known[text] = _value(cell, point)
        elif is_nothing(text):
            known[text] = math.nan, NOTHING if _NOTHING.fullmatch(text) else UNKNOWN, False
        else:
            known[text] = (float(bool(_TRUE.fullmatch(text.casefold()))), NUMBER, False) if yes_or_no else _NO_NUMBER
    found = [known[text] for text in texts]
    dressed = {text: cell.symbol for text, cell in cells.items() if cell and cell.symbol}
    symbols: dict[str, int] = {}
    for row, text in enumerate(texts if dressed else ()):
        if text in dressed:
            symbols.setdefault(dressed[text], row)
    values, state, percent = (np.array([one[i] for one in found]) for i in range(3))
    return Numbers(values.astype(np.float64), state.astype(np.int8), percent.astype(bool), symbols)


_NO_NUMBER = math.nan, BAD, False


def _value(cell: _Cell, point: str) -> tuple[float, int, bool]:
    if not cell.core.strip("-–—"):
        return math.nan, NOTHING, False
    whole, sign, rest = _bare(cell.core).partition(point)
    between = "," if point == "." else "."
    if between in whole and _GROUPS[between].fullmatch(whole):
        whole = whole.replace(between, "")
    text = whole + ("." if sign else "") + rest
    value = float(text) if _PLAIN.fullmatch(text) else math.nan
    if not math.isfinite(value):
        return _NO_NUMBER
    value = value / 100 if cell.percent else value * cell.scale
    return (-value, NEGATIVE, cell.percent) if cell.below and value else (value, NUMBER, cell.percent)


def _style(cells: Sequence[_Cell], point: str) -> NumberStyle:
    symbols, between = Counter[tuple[str, bool, bool]](), Counter[str]()
    for cell in cells:
        if cell.symbol:
            symbols[cell.symbol, cell.first, cell.apart] += 1
        whole = cell.core.partition(point)[0]
        between.update(set(re.sub(r"[\d+eE.-]" if point == "." else r"[\d+eE,-]", "", whole)))
    symbol = symbols.most_common(1)[0][0] if symbols else ("", True, False)
    return NumberStyle(*symbol, decimal=point, thousands=between.most_common(1)[0][0] if between else "")


def _note(cells: Sequence[tuple[str, _Cell]], point: str, sure: bool) -> str:
    """Examples of numbers that another decimal sign would have made other numbers of."""
    signs = [(text, cell) for text, cell in cells if re.search("[.,]", _bare(cell.core))]
    if not signs or (sure and point == "."):
        return ""
    told = [f"{shown(text)} is {_value(cell, point)[0]:.10g}" for text, cell in signs[:1] + signs[1:][-1:]]
    either = "" if sure else f" (if not: --decimal {',' if point == '.' else '.'})"
    return f"decimal {'commas' if point == ',' else 'points'}: {', '.join(dict.fromkeys(told))}{either}"


# --- The columns of numbers of a file: units of their titles, rates made to totals, one currency.


@dataclass(frozen=True, eq=False)
class Amounts:
    """The numbers of the rows, [N] each.

    Attributes:
        values: of each role, float64, NaN where there is none; units of the title are taken into account.
        state: of each role, see :data:`NUMBER` and so on.
        style: how they are written.
        changes: notes on what was divided, multiplied or worked out.
    """

    values: dict[str, FloatArray]
    state: dict[str, np.ndarray]
    style: NumberStyle
    changes: tuple[str, ...]

    def only(self, rows: np.ndarray) -> Amounts:
        """Those of these rows only."""
        if len(rows) == len(next(iter(self.state.values()))):
            return self
        values, state = ({role: of[rows] for role, of in found.items()} for found in (self.values, self.state))
        return replace(self, values=values, state=state)


def read_amounts(sheet: Sheet, decimal: str | None, problems: Problems) -> Amounts:
    """All columns of numbers; ``problems`` then holds two currencies in one file, and units that are not known."""
    columns = sheet.columns
    texts = {role: sheet.cells[i] for role, i in columns.numeric().items()}
    beside = list({at for of in columns.terms.values() for _, at in of if isinstance(at, int)})
    counts = [role == "clicks" for role in texts] + [False] * len(beside)
    read, style, note = read_numbers(
        [*texts.values(), *(sheet.cells[i] for i in beside)], counts, sheet.separator, decimal
    )
    by_role = {role: _without_percent(role, numbers) for role, numbers in zip(texts, read, strict=False)}
    of_term = {i: numbers for i, numbers in zip(beside, read[len(texts) :], strict=True)}
    values = dict[str, FloatArray]()
    changes: tuple[str, ...] = (note,) if note else ()
    for role, numbers in list(by_role.items()):
        by_role[role] = joined = _joined(sheet, role, numbers, of_term, problems)
        values[role], told = _scaled(sheet, role, joined, texts[role], problems)
        changes += told
    results = by_role.get("conversions")
    if results is not None and "clicks" in values and (columns.unit("conversions") == "%" or results.percent.any()):
        values["conversions"] = np.rint(values["conversions"] * values["clicks"])
        changes += (f"conversions worked out: {shown(sheet.titles[columns.at['conversions']])} × clicks, rounded",)
    _one_currency(sheet, by_role, problems)
    state = {role: numbers.state for role, numbers in by_role.items()}
    return _completed(Amounts(values, state, _with_currency(style, sheet), changes), sheet)


def _joined(sheet: Sheet, role: str, numbers: Numbers, beside: dict[int, Numbers], problems: Problems) -> Numbers:
    """With its terms: what one of them lacks is not known; but in a sum that is no cost an empty cell is 0."""
    values, state = numbers.values, numbers.state
    terms = sheet.columns.terms.get(role, ())
    for sign, term in terms:
        right = np.full_like(values, term) if isinstance(term, float) else beside[term].values
        if isinstance(term, int):
            other = beside[term].state
            for i in np.flatnonzero(other == BAD).tolist():
                where = f"{sheet.source}, line {sheet.line[i]}, column {brief(sheet.titles[term], 60)}"
                problems.note(bad(where, sheet.cells[term][i], MAY_BE))
            if sign == "+" and role not in (*COSTS, "spent rate"):
                values, right = (np.where(of == NOTHING, 0.0, x) for of, x in ((state, values), (other, right)))
                state = np.where(state == NOTHING, other, state)
            else:
                state = np.where((other == NOTHING) & (state != BAD), np.int8(UNKNOWN), state)
            state = np.where((other == UNKNOWN) & (state != BAD), np.int8(UNKNOWN), state)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            values = {"+": np.add, "*": np.multiply, "/": np.divide}[sign](values, right)
    if terms:
        known = np.isin(state, (NUMBER, NEGATIVE))
        state = np.where(known & ~np.isfinite(values), np.int8(UNKNOWN), state)
        values = np.where(np.isin(state, (NUMBER, NEGATIVE)), values, np.nan)
    return replace(numbers, values=values, state=state)


def _scaled(
    sheet: Sheet, role: str, numbers: Numbers, texts: Sequence[str], problems: Problems
) -> tuple[FloatArray, tuple[str, ...]]:
    """The values in the unit of the title, and a note if that changes them."""
    columns, at = sheet.columns, sheet.columns.numeric()[role]
    title, named = columns.title.get(role), role.removesuffix(" rate") in columns.given or role in columns.given
    unit, shown_title, values = columns.unit(role), shown(sheet.titles[at]), numbers.values
    if (
        title is not None
        and title.bracket
        and not is_word(title)
        and not named
        and (role in _PRICED or columns.is_value)
    ):
        key = role if role in columns.at else "price"
        option = shlex.quote(f"{key}={sheet.titles[at]}")
        must = f"a unit that is known; --columns {option} takes the numbers as they are (' / 100' behind it divides)"
        problems.note(bad(f"{sheet.source}, title {shown_title}", title.bracket, must))
    terms = columns.terms.get(role, ())
    units = {unit, *(find_title(sheet.titles[of]).unit for sign, of in terms if sign == "+" and isinstance(of, int))}
    if len(units) > 1:
        problems.note(bad("columns", f"{role}: {', '.join(sorted(units))}", "of one unit where columns are added"))
    if any(isinstance(of, float) for _, of in terms):
        return values, ()  # with a number in it, an expression takes the numbers as they are
    if parts := _PARTS.get(unit.removesuffix("s")):
        return values / parts, (f"{shown_title} is divided by {parts:,}",)
    if unit == "thousand" and not any(text[-1:] in ("k", "K") for text in texts):
        return values * 1000, (f"{shown_title} is in thousands",)
    if unit == "%" and not numbers.percent.any():
        return values / 100, (f"{shown_title} is in percent",)
    is_rate = title is not None and title.is_any(rank_of()["rate"]) and not columns.plain
    above = bool(np.nanmax(values, initial=0) > 1) and not numbers.percent.any() and not unit
    if is_rate and role in ("conversions rate", "mean_reward") and above:
        return values / 100, (f"{shown_title} is read in percent, for a rate is at most 1",)
    return values, ()


def _without_percent(role: str, numbers: Numbers) -> Numbers:
    """Percent of what, among clicks, costs, or results that are numbers? Such cells cannot be read."""
    amounts = ~numbers.percent & np.isin(numbers.state, (NUMBER, NEGATIVE)) & (numbers.values != 0)
    if not (role in ("clicks", "spent") or (role in ("conversions", "cost") and amounts.any())):
        return numbers
    state = np.where(numbers.percent, np.int8(BAD), numbers.state)
    return replace(numbers, state=state, percent=np.zeros_like(numbers.percent))


def _completed(amounts: Amounts, sheet: Sheet) -> Amounts:
    """With the totals that the file does not have, but rates for, or a constant cost."""
    values, changes, columns = dict(amounts.values), amounts.changes, sheet.columns
    for role, (at, beside, how) in columns.rates.items():
        rate, other = values.pop(f"{role} rate"), np.nan_to_num(values[beside])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = other * rate if how == "times" else other / rate
        whole = role == "clicks" or (not columns.is_value and role == "conversions")
        found = np.where((other == 0) | ~np.isfinite(found), 0.0, found)
        values[role] = np.rint(found) if whole else found
        title = shown(sheet.titles[at])
        by = shown(sheet.titles[columns.at[beside]]) if beside in columns.at else beside
        made = f"{title} × {by}" if how == "times" else f"{by} / {title}"
        changes += (f"{role} worked out: {made}{', rounded' if whole else ''}",)
    for role, constant in columns.constant.items():
        pulls = values["clicks"] if role == "spent" else np.ones_like(next(iter(values.values())))
        values[role] = constant * pulls
        changes += (f"every {columns.pull_unit} costs {constant:g}, as --columns says",)
    return replace(amounts, values=values, changes=changes)


def _one_currency(sheet: Sheet, by_role: dict[str, Numbers], problems: Problems) -> None:
    """Amounts of two currencies have no sum; they may stand in two instances."""
    at, option, seen = sheet.columns.at.get("currency"), "", dict[str, tuple[int, str]]()
    if at is None:
        for role, numbers in by_role.items():
            for symbol, row in numbers.symbols.items():
                seen[symbol] = min(seen.get(symbol, (row, role)), (row, role))
    elif sheet.columns.at.get("instance") != at:
        for row, cell in enumerate(sheet.cells[at]):
            if not is_nothing(cell):
                seen.setdefault(cell, (row, "currency"))
        option = f" (--columns {shlex.quote(f'instance={sheet.titles[at]}')} plays each by itself)"
    (first, (row, _)), *others = sorted(seen.items(), key=lambda item: item[1][0]) or [("", (0, ""))]
    for _, (other, role) in others:
        text = sheet.cells[sheet.position[role]][other]
        may_be = f"in one currency for all rows, and line {sheet.line[row]} has {shown(first)}{option}"
        problems.note(bad(f"{sheet.source}, line {sheet.line[other]}, column {sheet.label(role)}", text, may_be))


def _with_currency(style: NumberStyle, sheet: Sheet) -> NumberStyle:
    """The currency of a title or of a column of its own, where the numbers have none."""
    if style.symbol:
        return style
    columns, at = sheet.columns, sheet.columns.at.get("currency")
    codes = {cell for cell in sheet.cells[at] if not is_nothing(cell)} if at is not None else set()
    named = codes.pop() if len(codes) == 1 else ""
    units = [columns.unit(role) for role in (*COSTS, *(f"{role} rate" for role in columns.rates))]
    named = named or next((unit for unit in units if unit and unit not in _NO_CURRENCY), "")
    apart = named[-1:].isalpha()
    return replace(style, symbol=named[:8], symbol_first=not apart, symbol_apart=apart)


def check_cells(sheet: Sheet, amounts: Amounts, keep: np.ndarray, problems: Problems) -> np.ndarray:
    """Note every cell that cannot be read, row by row; the rows that can be used, bool [N]."""
    at, width, roles = sheet.columns.at, len(sheet.titles), list(amounts.state)
    refunds = ("spent", "conversions") if sheet.columns.kind == "counts" else ()  # their sums must be at least 0
    wrong = {role: np.isin(amounts.state[role], (BAD,) if role in refunds else (BAD, NEGATIVE)) for role in roles}
    for role in ("name", "instance") if "instance" in at and not sheet.columns.by_test else ("name",):
        wrong[role] = np.array([not cell for cell in sheet.cells[at[role]]], bool)
    odd = np.any(list(wrong.values()), axis=0) | np.isin(sheet.line, list(sheet.wide))
    for i in np.flatnonzero(odd & keep).tolist():
        line, where = sheet.line[i], f"{sheet.source}, line {sheet.line[i]}"
        if line in sheet.wide:
            problems.note(bad(f"{where}, number of cells", sheet.wide[line], f"at most {width}, as in the header"))
        for role in (role for role, of in wrong.items() if of[i]):
            text = sheet.cells[sheet.position[role]][i]
            signs = text[:1].isdigit() and set(text) & {",", "."}
            decimal = f" (decimal sign: {amounts.style.decimal!r})" if signs else ""
            percent = " (percent beside numbers, or of an amount)" if text.endswith("%") else ""
            may_be = MAY_BE + decimal + percent if role in roles else "a name"
            problems.note(bad(f"{where}, column {sheet.label(role)}", text, may_be))
    usable = keep & ~odd
    _check_results(sheet, amounts, usable, problems)
    return usable


def _check_results(sheet: Sheet, amounts: Amounts, keep: np.ndarray, problems: Problems) -> None:
    """Results of several kinds, such as link clicks and purchases, are not compared."""
    if (at := sheet.columns.at.get("result_kind")) is None:
        return
    kinds = dict[str, int]()
    for i in np.flatnonzero(keep & (np.nan_to_num(amounts.values["conversions"]) > 0)).tolist():
        if not is_nothing(sheet.cells[at][i]):
            kinds.setdefault(sheet.cells[at][i], sheet.line[i])
    if len(kinds) > 1:
        (first, above), (other, line) = list(kinds.items())[:2]
        option = shlex.quote(brief(f"conversions={sheet.titles[sheet.columns.at['conversions']]}", 60))
        as_they_are = f"results of two kinds are not compared (--columns {option} takes them as they are)"
        where = f"{sheet.source}, line {line}, column {sheet.label('result_kind')}"
        problems.note(bad(where, brief(other, 40), f"{shown(brief(first, 40))} as in line {above}: {as_they_are}"))
