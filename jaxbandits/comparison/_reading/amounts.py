"""The columns of numbers of an arms file: units of their titles, rates made to totals, one currency."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxbandits.comparison._reading.columns import COSTS
from jaxbandits.comparison._reading.numbers import BAD, NEGATIVE, NUMBER, Numbers, is_nothing, read_numbers
from jaxbandits.comparison._reading.problems import Problems
from jaxbandits.comparison._reading.sheet import Row, Sheet
from jaxbandits.comparison._reading.words import rank_of
from jaxbandits.comparison.evidence import FloatArray, NumberStyle
from jaxbandits.core.errors import bad, shown
from jaxbandits.core.printable import brief

MAY_BE = "a finite number of at least 0"
_PARTS = {"micro": 1_000_000, "cent": 100, "¢": 100}
_NO_CURRENCY = ("%", "micro", "micros", "cent", "cents", "¢", "thousand", "utc", "gmt")


@dataclass(frozen=True, eq=False)
class Amounts:
    """The numbers of the rows, [N] each.

    Attributes:
        values: of each role, float64, NaN where there is none; percent and micros of the title are taken into account.
        state: of each role, see :mod:`~jaxbandits.comparison._reading.numbers`.
        texts: of each role, the cells.
        style: how they are written.
        notes: how they were read.
        symbols: the roles whose cells have a currency.
    """

    values: dict[str, FloatArray]
    state: dict[str, np.ndarray]
    texts: dict[str, list[str]]
    style: NumberStyle
    notes: tuple[str, ...]
    symbols: frozenset[str] = frozenset()

    def dressed(self, roles: Sequence[str]) -> bool:
        """Whether one of these columns is in a currency."""
        return not self.symbols.isdisjoint(roles)


def read_amounts(sheet: Sheet, rows: Sequence[Row], decimal: str | None, problems: Problems) -> Amounts:
    """All columns of numbers; ``problems`` then holds two currencies in one file."""
    columns = sheet.columns
    numeric = columns.numeric()
    texts = {role: [cells[i] for _, cells in rows] for role, i in numeric.items()}
    counts = [role == "clicks" for role in numeric]
    read, style, notes = read_numbers(list(texts.values()), counts, sheet.separator, decimal)
    by_role = {role: _without_percent(role, numbers) for role, numbers in zip(numeric, read, strict=True)}
    values = {role: numbers.values for role, numbers in by_role.items()}
    for role, numbers in by_role.items():
        unit = columns.unit(role)
        shown_title = shown(sheet.titles[numeric[role]])
        if parts := _PARTS.get(unit.removesuffix("s")):
            values[role] = values[role] / parts
            notes += (f"{shown_title} is divided by {parts:,}",)
        elif unit == "thousand" and not any(text[-1:] in ("k", "K") for text in texts[role]):
            values[role] = values[role] * 1000
            notes += (f"{shown_title} is in thousands",)
        elif unit == "%" and not numbers.percent.any():
            values[role] = values[role] / 100
            notes += (f"{shown_title} is in percent",)
        elif _must_be_percent(sheet, role, numbers, unit):
            values[role] = values[role] / 100
            notes += (f"{shown_title} is read in percent, for a rate is at most 1",)
        if role == "conversions" and (unit == "%" or numbers.percent.any()) and "clicks" in values:
            values[role] = np.rint(values[role] * values["clicks"])
            notes += (f"conversions worked out: {shown_title} × clicks, rounded",)
    _one_currency(sheet, rows, by_role, problems)
    style = _with_currency(style, sheet, rows)
    state = {role: numbers.state for role, numbers in by_role.items()}
    symbols = frozenset(role for role, numbers in by_role.items() if numbers.symbols or columns.unit(role))
    return _completed(Amounts(values, state, texts, style, notes, symbols), sheet)


def _without_percent(role: str, numbers: Numbers) -> Numbers:
    """Percent of what, among clicks, costs, or results that are numbers? Such cells cannot be read."""
    amounts = ~numbers.percent & np.isin(numbers.state, (NUMBER, NEGATIVE)) & (numbers.values != 0)
    if not (role in ("clicks", "spent") or (role in ("conversions", "cost") and amounts.any())):
        return numbers
    return replace(
        numbers, state=np.where(numbers.percent, np.int8(BAD), numbers.state), percent=numbers.percent & False
    )


def _must_be_percent(sheet: Sheet, role: str, numbers: Numbers, unit: str) -> bool:
    """Whether these are rates of conversion, and some of them more than one conversion for each pull."""
    title = sheet.columns.title.get(role)
    is_rate = title is not None and any(word in rank_of()["rate"] for word in (title.key, *title.others))
    rates = is_rate and role in ("conversions rate", "mean_reward") and not sheet.columns.plain
    return rates and not unit and not numbers.percent.any() and bool(np.nanmax(numbers.values, initial=0) > 1)


def _completed(amounts: Amounts, sheet: Sheet) -> Amounts:
    """With the totals that the file does not have, but rates for, or a constant cost."""
    values, notes = dict(amounts.values), amounts.notes
    for role, (_, beside, how) in sheet.columns.rates.items():
        rate, other = values.pop(f"{role} rate"), np.nan_to_num(values[beside])
        with np.errstate(divide="ignore", invalid="ignore"):
            found = other * rate if how == "times" else other / rate
        whole = role == "clicks" or (not sheet.columns.is_value and role == "conversions")
        found = np.where(other == 0, 0.0, np.where(np.isfinite(found), found, 0.0))
        values[role] = np.rint(found) if whole else found
        title = shown(sheet.titles[sheet.columns.rates[role][0]])
        by = shown(sheet.titles[sheet.columns.at[beside]]) if beside in sheet.columns.at else beside
        made = f"{title} × {by}" if how == "times" else f"{by} / {title}"
        notes += (f"{role} worked out: {made}{', rounded' if whole else ''}",)
    for role, constant in sheet.columns.constant.items():
        pulls = values["clicks"] if role == "spent" else np.ones_like(next(iter(values.values())))
        values[role] = constant * pulls
        notes += (f"every {sheet.columns.pull_unit} costs {constant:g}, as --columns says",)
    return replace(amounts, values=values, notes=notes)


def _one_currency(sheet: Sheet, rows: Sequence[Row], by_role: dict[str, Numbers], problems: Problems) -> None:
    """Amounts of two currencies have no sum; they may stand in two instances."""
    seen: dict[str, tuple[int, str]] = {}
    for role, numbers in by_role.items():
        for symbol, row in numbers.symbols.items():
            if symbol not in seen or row < seen[symbol][0]:
                seen[symbol] = row, role
    at = sheet.columns.at.get("currency")
    if at is None:
        return _tell(sheet, rows, seen, "", problems)
    codes: dict[str, tuple[int, str]] = {}
    for row, (_, cells) in enumerate(rows):
        if not is_nothing(cells[at]):
            codes.setdefault(cells[at], (row, "currency"))
    if sheet.columns.at.get("instance") != at:
        option = shlex.quote(f"instance={sheet.titles[at]}")
        _tell(sheet, rows, codes, f" (--columns {option} plays each by itself)", problems)


def _tell(sheet: Sheet, rows: Sequence[Row], seen: dict[str, tuple[int, str]], option: str, problems: Problems) -> None:
    (first, (row, _)), *others = sorted(seen.items(), key=lambda item: item[1][0]) or [("", (0, ""))]
    for _, (other, role) in others:
        line, cells = rows[other]
        text = cells[{**sheet.columns.at, **sheet.columns.numeric()}[role]]
        may_be = f"in one currency for all rows, and line {rows[row][0]} has {shown(first)}{option}"
        problems.note(bad(f"{sheet.source}, line {line}, column {sheet.label(role)}", text, may_be))


def _with_currency(style: NumberStyle, sheet: Sheet, rows: Sequence[Row]) -> NumberStyle:
    """The currency of a title or of a column of its own, where the numbers have none."""
    if style.symbol:
        return style
    columns = sheet.columns
    at = columns.at.get("currency")
    codes = {cells[at] for _, cells in rows if not is_nothing(cells[at])} if at is not None else set()
    named = codes.pop() if len(codes) == 1 else ""
    priced = (*COSTS, *(f"{role} rate" for role in columns.rates))
    units = [columns.title[role].unit for role in priced if role in columns.title]
    named = named or next((unit for unit in units if unit and unit not in _NO_CURRENCY), "")
    apart = named[-1:].isalpha()
    return replace(style, symbol=named[:8], symbol_first=not apart, symbol_apart=apart)


def check_cells(
    sheet: Sheet, rows: Sequence[Row], amounts: Amounts, keep: np.ndarray, problems: Problems
) -> np.ndarray:
    """Note every cell that cannot be read, row by row; the rows that can be used, bool [N]."""
    at, width = sheet.columns.at, len(sheet.titles)
    roles = list(amounts.state)
    refunds = ("spent", "conversions") if sheet.columns.kind == "counts" else ()  # their sums must be at least 0
    states = (BAD, NEGATIVE)
    wrong = (
        np.stack([np.isin(amounts.state[r], states[: 1 if r in refunds else 2]) for r in roles], axis=1) & keep[:, None]
    )
    names = [role for role in ("name", "instance") if role in at and not (role == "instance" and sheet.columns.by_test)]
    odd = {
        i
        for i, (_, cells) in enumerate(rows)
        if keep[i] and (len(cells) > width or not all(cells[at[r]] for r in names))
    }
    found = sorted(odd | set(np.flatnonzero(wrong.any(axis=1)).tolist()))
    for i in found:
        line, cells = rows[i]
        where = f"{sheet.source}, line {line}"
        if len(cells) > width:
            problems.note(bad(f"{where}, number of cells", len(cells), f"at most {width}, as in the header"))
        for role in names:
            if not cells[at[role]]:
                problems.note(bad(f"{where}, column {sheet.label(role)}", "", "a name"))
        for role in (roles[j] for j in np.flatnonzero(wrong[i])):
            text = amounts.texts[role][i]
            decimal = f" (decimal sign: {amounts.style.decimal!r})" if _has_sign(text) else ""
            percent = " (percent beside numbers, or of an amount)" if text.endswith("%") else ""
            problems.note(bad(f"{where}, column {sheet.label(role)}", text, MAY_BE + decimal + percent))
    usable = keep.copy()
    usable[found] = False
    return usable


def _has_sign(text: str) -> bool:
    return text[:1].isdigit() and ("," in text or "." in text) and text.count(",") + text.count(".") < 3


def check_results(sheet: Sheet, rows: Sequence[Row], amounts: Amounts, keep: np.ndarray, problems: Problems) -> None:
    """``problems`` then has results of several kinds, such as link clicks and purchases, which are not compared."""
    if (at := sheet.columns.at.get("result_kind")) is None:
        return
    own = sheet.columns.at["conversions"]
    kinds: dict[str, int] = {}
    for i in np.flatnonzero(keep & (np.nan_to_num(amounts.values["conversions"]) > 0)).tolist():
        line, cells = rows[i]
        if not is_nothing(cells[at]):
            kinds.setdefault(cells[at], line)
    if len(kinds) > 1:
        (first, above), (other, line) = list(kinds.items())[:2]
        others = [*sheet.columns.others.get("conversions", ()), own]
        options = [f"--columns {shlex.quote(brief(f'conversions={sheet.titles[i]}', 60))}" for i in (others[0], own)]
        instead = f"{options[0]} takes another column, " if others[0] != own else ""
        may_be = f"{shown(brief(first, 40))} as in line {above}: results of two kinds are not compared"
        where = f"{sheet.source}, line {line}, column {sheet.label('result_kind')}"
        problems.note(bad(where, brief(other, 40), f"{may_be} ({instead}{options[1]} takes them as they are)"))
