"""From the cells below the header to rows that count: what is skipped, and what the numbers say."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxbandits.comparison._reading.amounts import Amounts, check_cells, check_results, read_amounts
from jaxbandits.comparison._reading.calendar import time_cells, times_of
from jaxbandits.comparison._reading.columns import Columns
from jaxbandits.comparison._reading.extras import TOTAL, is_blank, label_of, lines_of, totals, without_extras
from jaxbandits.comparison._reading.numbers import NEGATIVE, NOTHING, NUMBER, UNKNOWN, is_number
from jaxbandits.comparison._reading.pivots import check_nested, refilled
from jaxbandits.comparison._reading.problems import Problems
from jaxbandits.comparison._reading.sheet import Row, Sheet
from jaxbandits.comparison._reading.times import Times
from jaxbandits.comparison._reading.usual import pull_unit
from jaxbandits.comparison._reading.words import rank_of, ranks
from jaxbandits.comparison.evidence import FloatArray, NumberStyle
from jaxbandits.core.errors import shown
from jaxbandits.core.printable import brief

_SALES = ("sales", "totalsales", "ventas", "vendas", "vendite")  # money, or a number of sales
_DAY_FIRST = ("£", "GBP", "₹", "INR", "Rs", "Rs.", "AUD", "A$", "NZD", "NZ$", "ZAR", "CHF", "€", "EUR")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with a name each; N of them, in file order.

    Attributes:
        source: the file, for messages.
        columns, style: what the columns are, how numbers are written.
        line, instance, arm: [N].
        clicks: float64 [N], pulls that the row sums; 1 for means and logs.
        value: float64 [N], what they brought (means: the mean reward); NaN where a mean or a pull has none.
        spent: float64 [N], what they cost (means: the mean cost); NaN as above.
        cells: of each role that is a number its texts [N], for messages.
        label: of each role, what messages call its column.
        time: datetime64[us] [N], or None.
        ads: the Facebook file's own means, (reward, cost) [N] each; None for other files.
    """

    source: str
    columns: Columns
    style: NumberStyle
    line: list[int]
    instance: list[str]
    arm: list[str]
    clicks: FloatArray
    value: FloatArray
    spent: FloatArray
    cells: Mapping[str, list[str]]
    label: Mapping[str, str]
    time: Times | None = None
    ads: tuple[FloatArray, FloatArray] | None = None

    def where(self, row: int, role: str) -> str:
        """The place of a cell, for messages."""
        return f"{self.source}, line {self.line[row]}, column {self.label.get(role, role)}"


def read_rows(sheet: Sheet, default_name: str, decimal: str | None, problems: Problems) -> tuple[Rows, tuple[str, ...]]:
    """The rows of a file of means, counts or pulls, and notes on what was skipped or read in a way of its own.

    ``problems`` then holds what cannot be used.
    """
    columns, at = sheet.columns, sheet.columns.at
    numeric = columns.numeric()
    rows, notes = without_extras(sheet, sorted(set(numeric.values())))
    amounts = read_amounts(sheet, rows, decimal, problems)
    sums = [
        amounts.values[role]
        for role in ("clicks", "spent", "cost", "mean_reward", "mean_cost")
        if role in amounts.values
    ]
    words = [i for i in range(len(sheet.titles)) if i != at["name"] and i not in numeric.values()]
    rows, filled = refilled(sheet, rows, words, sums)
    keep, skipped = _kept(sheet, rows, words, sums, problems)
    notes += (*filled, *skipped)
    keep = check_cells(sheet, rows, amounts, keep, problems)
    check_results(sheet, rows, amounts, keep, problems)
    kind, note = _kind(sheet, rows, amounts, keep)
    if kind != columns.kind:
        unit = "row" if kind == "log" else pull_unit(columns.title["clicks"])
        columns = replace(columns, kind=kind, is_value=kind == "counts", pull_unit=unit)
    values, more = _filled(kind, rows, amounts, keep)
    if columns.is_value and _may_count(sheet, kind) and not amounts.dressed(("conversions", "reward")):
        whole = (values[1][keep] % 1 == 0) & (values[1][keep] <= values[0][keep])
        columns = replace(columns, is_value=not whole.all())
    found = np.flatnonzero(keep).tolist()
    notes += (*amounts.notes, *note, *more)
    day_first = amounts.style.decimal == "," or amounts.style.symbol in _DAY_FIRST
    time, told = times_of(columns, [rows[i] for i in found], day_first) if "time" in at else (None, "")
    if told:
        notes += (f"column {sheet.label('time')}: {told}",)
    arms, joined = _names(sheet, [rows[i][1] for i in found])
    made = Rows(
        source=sheet.source,
        columns=columns,
        style=amounts.style,
        line=[rows[i][0] for i in found],
        instance=_instances(sheet, [rows[i][1] for i in found], default_name),
        arm=arms,
        clicks=values[0][found],
        value=values[1][found],
        spent=values[2][found],
        cells={role: [texts[i] for i in found] for role, texts in amounts.texts.items()},
        label={role: sheet.label(role) for role in {**at, **numeric}},
        time=time,
    )
    return made, (*notes, *joined)


def _kept(
    sheet: Sheet, rows: Sequence[Row], words: Sequence[int], sums: Sequence[FloatArray], problems: Problems
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Which rows are neither totals nor without a name, bool [N], and notes on the others."""
    columns, keep, notes = sheet.columns, np.ones(len(rows), bool), tuple[str, ...]()
    if total := totals(rows, columns, words, sums):
        keep[total] = False
        named = ", ".join(shown(label_of(rows[i][1])) for i in total[:2])
        notes += (f"{lines_of([rows[i][0] for i in total])} skipped: a total ({named})",)
    check_nested(sheet, [(row, i) for i, row in enumerate(rows) if keep[i]], sums, problems)
    name = columns.at["name"]
    nameless = [i for i, (_, cells) in enumerate(rows) if keep[i] and is_blank(cells[name], columns.plain)]
    if nameless and columns.kind != "means":
        keep[nameless] = False
        notes += (f"{lines_of([rows[i][0] for i in nameless])} skipped: no name",)
    called = {text for text in {cells[n] for _, cells in rows for n in words} if TOTAL.fullmatch(text)}
    doubt = [line for i, (line, cells) in enumerate(rows) if keep[i] and not called.isdisjoint(cells[n] for n in words)]
    if called and doubt and columns.kind == "counts":
        notes += (f"{lines_of(doubt)} called a total, but not the sum of the arm's other rows: counted like them",)
    return keep, notes


def _may_count(sheet: Sheet, kind: str) -> bool:
    """Whether the reward may be a number of successes, though its title does not say so."""
    known = sheet.columns.title.get("conversions")
    return kind != sheet.columns.kind or (known is not None and known.key in _SALES)


def _kind(sheet: Sheet, rows: Sequence[Row], amounts: Amounts, keep: np.ndarray) -> tuple[str, tuple[str, ...]]:
    """A file of counts whose every row is one click is a log; one in the plain form of a log may be of counts."""
    kind, at = sheet.columns.kind, sheet.columns.at
    if kind == "means" or "clicks" not in at:
        return kind, ()
    when = time_cells(sheet.columns, rows) if "time" in at else [""] * len(rows)
    kept = [(cells[at["name"]], when[i]) for i, (_, cells) in enumerate(rows) if keep[i]]
    clicks = amounts.values["clicks"][keep]
    if kind == "counts":
        if len({name for name, _ in kept}) < len(kept) and (clicks == 1).all():
            return "log", ("every row is one pull: read as a log",)
        return kind, ()
    option = brief(shlex.quote(f"clicks={sheet.titles[at['clicks']]}"), 80)
    own = f"column {shown(sheet.titles[at['clicks']])}"
    reward, title = amounts.values["reward"][keep], sheet.columns.title.get("reward")
    once, several = len(set(kept)) == len(kept), (clicks > 1).any() and (reward > 1).any()
    parts = title is not None and title.key in rank_of()["solved"] and ((reward <= clicks) & (reward % 1 == 0)).all()
    if several and (once or (parts and not sheet.columns.plain)):
        why = "no arm has two rows of one time" if once else f"no {shown(sheet.titles[at['reward']])} is above it"
        notes: tuple[str, ...] = (f"read as counts, for {own} is above 1 and {why}",)
        cost = sheet.columns.title.get("cost")
        if cost is not None and cost.key in ranks()["cost"][-1]:  # a price, of what?
            asked = f"{shown(sheet.titles[at['cost']])} is read as what all of a row's pulls cost"
            notes += (f"{asked}; if it is the price of one, call the column 'price per click'",)
        return "counts", notes
    return kind, (f"{own} not used: a row is one pull (else say --columns {option})",)


def _filled(
    kind: str, rows: Sequence[Row], amounts: Amounts, keep: np.ndarray
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], tuple[str, ...]]:
    """Clicks, value and spent of all rows, and notes. In a file of counts what is empty is 0, but
    not what pulls cost; NaN is not known."""
    notes: tuple[str, ...] = ()
    values, ones = amounts.values, np.ones(len(rows))
    value = values.get("conversions", values.get("reward", values.get("mean_reward")))
    spent = values.get("spent", values.get("cost", values.get("mean_cost")))
    assert value is not None and spent is not None
    if kind == "log":
        value, notes = _zeros_of_a_log(value, amounts, keep)
    if kind != "counts":
        return (ones, value, spent), notes
    unknown = keep & np.any([state == UNKNOWN for state in amounts.state.values()], axis=0)
    for role in {"spent", "spent rate", "cost"} & amounts.state.keys():  # pulls that nobody priced are not free
        unknown |= keep & (amounts.state[role] == NOTHING) & (np.nan_to_num(values["clicks"]) > 0)
    nothing = keep & ~unknown
    for role, state in amounts.state.items():
        empty = nothing & (state == NOTHING)
        if empty.any() and not role.endswith(" rate"):
            notes += (f"{role} empty in {lines_of([rows[i][0] for i in np.flatnonzero(empty).tolist()])}: read as 0",)
    refunds = keep & np.any([state == NEGATIVE for state in amounts.state.values()], axis=0)
    if refunds.any():
        notes += (f"below 0 in {lines_of([rows[i][0] for i in np.flatnonzero(refunds).tolist()])}: summed as it is",)
    if unknown.any():
        notes += (
            f"{lines_of([rows[i][0] for i in np.flatnonzero(unknown).tolist()])} not summed: a number is not known",
        )
    clicks, value, spent = (np.where(unknown, np.nan, np.nan_to_num(x)) for x in (values["clicks"], value, spent))
    return (clicks, value, spent), notes


def _zeros_of_a_log(value: FloatArray, amounts: Amounts, keep: np.ndarray) -> tuple[FloatArray, tuple[str, ...]]:
    """Where most rewards are empty and none is 0, the empty ones are the zeros; else they are not known."""
    state = next(amounts.state[role] for role in ("reward", "conversions") if role in amounts.state)
    empty, given = keep & ((state == NOTHING) | (state == UNKNOWN)), keep & (state == NUMBER)
    if 2 * empty.sum() <= (empty | given).sum() or not given.any() or (value[given] == 0).any():
        return value, ()
    return np.where(empty, 0.0, value), (f"{empty.sum():,} empty rewards read as 0: most are empty, and none is 0",)


def _instances(sheet: Sheet, rows: Sequence[Sequence[str]], default_name: str) -> list[str]:
    """The instances' names; the only test of a file gives it none, nor do tests of one variant each that differ."""
    at, name = sheet.columns.at.get("instance"), sheet.columns.at["name"]
    named = [default_name if at is None else cells[at] or default_name for cells in rows]
    pairs = {(test, cells[name]) for test, cells in zip(named, rows, strict=True)}
    alone = min(Counter(test for test, _ in pairs).values(), default=0) == 1
    differ = len(pairs) == len({variant for _, variant in pairs})
    by_test = sheet.columns.by_test and len(set(named)) > 1 and not (alone and differ)
    return named if by_test or not sheet.columns.by_test else [default_name] * len(rows)


def _summed_over(sheet: Sheet, rows: Sequence[Sequence[str]], names: Sequence[str]) -> tuple[str, ...]:
    """A note on what the rows of an arm differ in where that is no time, such as a device or a test."""
    columns, over = sheet.columns, list[str]()
    if columns.plain or columns.kind != "counts" or "time" in columns.at:
        return ()
    for i in sorted(set(range(len(sheet.titles))) - columns.used()):
        cells = {text for own in rows if (text := own[i])}
        many = len(set(zip((own[i] for own in rows), names, strict=True))) > len(set(names))
        if sheet.titles[i] and len(cells) > 1 and many and not any(is_number(text) for text in cells):
            over.append(f"{shown(sheet.titles[i])} ({len(cells):,} values)")
    return (f"an arm is the sum over {' and '.join(over[:3])}",) if over else ()


def _names(sheet: Sheet, rows: Sequence[Sequence[str]]) -> tuple[list[str], tuple[str, ...]]:
    """The arms' names; where an ad's name stands in several campaigns, with the campaign's before it."""
    name, levels = sheet.columns.at["name"], sheet.columns.levels
    names = [cells[name] for cells in rows]
    over = []
    for level in levels:
        if len({(cells[level], own) for cells, own in zip(rows, names, strict=True)}) > len(set(names)):
            names = [f"{cells[level]} / {own}" if cells[level] else own for cells, own in zip(rows, names, strict=True)]
            over.append(shown(sheet.titles[level]))
    if not over:
        return names, _summed_over(sheet, rows, names)
    return names, (
        *_summed_over(sheet, rows, names),
        f"{shown(sheet.titles[name])} repeats over {' and '.join(over)}: an arm is {shown(names[0])}",
    )
