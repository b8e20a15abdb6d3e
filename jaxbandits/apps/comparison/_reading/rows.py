"""From cells to rows that count: what is skipped, what is a sum, what may be added.

A row that is no arm is skipped only where it is certain; where it is not, the file is refused with
the option that decides (``--drop``, ``--keep``, ``--sum``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxbandits._tables import NumberStyle, count_of
from jaxbandits.apps.comparison._reading import numbers
from jaxbandits.apps.comparison._reading.columns import (
    COST_OF,
    REWARD_OF,
    Columns,
    Question,
    best_match,
    pattern,
    samples,
    title,
)
from jaxbandits.apps.comparison._reading.sheet import LONG, Column, Sheet, coded
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.core.checks import InputError, brief, quoted

_TOTAL = re.compile(  # what a row of totals is called
    r"(?:(?:grand|overall|report|account|filtered|campaign|all)[ -]?)?(?:sub-?)?"
    rf"(?:{pattern('total')}|{pattern('mean')})"
    r"(?:\s*[:;(/–-].*|\s+(?:all|of|for|general|account|campaigns?|rows?|last|previous|this)\b.*)?"
    rf"|{pattern('results_of')}|\D.*[\s:–-](?:sub-?)?(?:totals?|sum|summe|gesamt)",
    re.IGNORECASE,
)
# Of the first cell or the day, where "average" may be a quality, too.
_SUM = re.compile(rf"(?!{pattern('mean')}\b)(?:{_TOTAL.pattern})", re.IGNORECASE)
_DAY_FIRST = {
    "£",
    "GBP",
    "₹",
    "INR",
    "Rs",
    "Rs.",
    "AUD",
    "A$",
    "NZD",
    "NZ$",
    "ZAR",
    "CHF",
    "€",
    "EUR",
}
_HAS_CLOCK = re.compile(r"\d:\d\d|^\d{10,}")  # or seconds since 1970
_BETWEEN_WORDS = re.compile(r"[\s/:|>_–-]+")  # of a name that may begin with its parent's
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}", re.IGNORECASE)  # of ids
_ROUNDING = 5e-4  # of a sum


@dataclass(eq=False)
class ArmRows:
    """Rows with a name each; N of them, in file order."""

    sheet: Sheet  # the same rows as cells, for messages
    columns: Columns
    style: NumberStyle
    instance: Column
    arm: Column
    clicks: FloatArray  # [N], pulls that the row sums; 1 for means and logs
    value: FloatArray  # [N], what they brought (means: the mean); NaN where a mean or pull has none
    spent: FloatArray  # [N], what they cost; NaN as above
    time: numbers.Times | None = None
    spent2: FloatArray | None = None  # [N], of a second cost; a row where it is not known is a gap

    @property
    def amounts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Clicks, value and spent."""
        return self.clicks, self.value, self.spent

    @functools.cached_property
    def complete(self) -> np.ndarray:
        """Whether all numbers of a row are there, bool [N]."""
        return ~(np.isnan(self.clicks) | np.isnan(self.value) | np.isnan(self.spent))


def read_rows(
    sheet: Sheet, default_name: str, decimal: str | None, options: Mapping[str, Any]
) -> ArmRows:
    """The rows of a file of means, counts or pulls; ``drop``, ``keep`` and ``add`` as in read_arms."""
    sheet = _without_extras(sheet, options["drop"])
    amounts = numbers.read_amounts(sheet, decimal)
    no_totals = np.flatnonzero(~_totals(sheet, amounts, options["keep"]))
    sheet, amounts = sheet.only(no_totals), amounts.only(no_totals)
    columns = _of_kind(sheet, amounts)
    usable = np.flatnonzero(numbers.check_cells(sheet, amounts, columns.kind))
    sheet, amounts = sheet.only(usable), amounts.only(usable)
    clicks, value, spent = _filled(columns.kind, sheet, amounts)
    spent2 = amounts.values.get("cost2")
    if spent2 is not None and columns.kind == "counts":
        spent2 = np.where(np.isnan(clicks), np.nan, np.nan_to_num(spent2))
    elif spent2 is not None:
        spent = np.where(np.isnan(spent2), np.nan, spent)
    instances, arms, time = sheet.of("instance"), _arm_names(sheet), None
    if "instance" not in columns.at:
        instances = Column.same(default_name, len(sheet.line))
    asks = columns.kind != "means" and not options["add"]
    if "time" in columns.at:
        day_first = amounts.style.decimal == "," or amounts.style.symbol in _DAY_FIRST
        time, note = numbers.read_times(sheet.of("time"), day_first)
        note = f"column {sheet.label('time')}: {note}" if note else ""
        sheet.notes += [note] if note else []
        if time is None and asks and coded(instances, arms)[1] < len(sheet.line):
            say = "write it so, say --columns time=… for another column, or --sum, which takes the rows as they come"
            sheet.problems.append(InputError(f"{sheet.source}, {note}; {say}"))
    if not options["add"]:
        _check_names(sheet, columns, instances, arms)
    return ArmRows(
        sheet, columns, amounts.style, instances, arms, clicks, value, spent, time, spent2
    )


# --- Rows that are no arms, whatever their numbers say.


def _without_extras(sheet: Sheet, drop: Iterable[str]) -> Sheet:
    """Without the header once more, a second table, remarks below, and what the user drops."""
    numeric, name = set(sheet.columns.numeric().values()), sheet.of("name")
    titles = zip(sheet.cells, sheet.titles, strict=True)
    again = np.all([column.equal(text) for column, text in titles], axis=0)
    if again.any():
        sheet.notes.append(f"{sheet.lines(np.flatnonzero(again))} skipped: the header once more")
    rows = np.flatnonzero(~again)
    width = np.sum([~column.equal("") for column in sheet.cells], axis=0)
    gap = np.isin(sheet.line, sheet.gaps)
    for n in np.flatnonzero(gap[rows])[int(gap[rows][:1].sum()) :].tolist():
        # Another header stands here, perhaps behind lines of one cell, with a row below it.
        below = rows[n:][width[rows[n:]] > 1]
        if len(below) > 1 and not any(map(numbers.is_number, sheet.row(below[0]))):
            first, last = sheet.line[rows[n]], sheet.line[rows[-1]]
            sheet.notes.append(f"lines {first} to {last} skipped: another table")
            rows = rows[:n]
            break
    has_number = np.any([~sheet.cells[n].equal("") for n in numeric], axis=0)
    end = len(rows)
    while (
        end > 1
        and not has_number[rows[end - 1]]
        and (width[rows[end - 1]] == 1 or gap[rows[end - 1]])
    ):
        end -= 1
    if end < len(rows):
        sheet.notes.append(f"{sheet.lines(rows[end:])} below the table skipped: no numbers")
    rows, dropped = rows[:end], np.zeros(len(sheet.line), bool)
    for (
        text
    ) in drop:  # a name if there is such a name (or none), else a cell of any column of words
        columns = [name]
        if text and text not in name.texts:
            columns = [column for n, column in enumerate(sheet.cells) if n not in numeric]
        dropped |= np.any([column.equal(text) for column in columns], axis=0)
    if dropped.any():
        sheet.notes.append(f"{sheet.lines(np.flatnonzero(dropped))} dropped, as --drop says")
    rows = rows[~dropped[rows]]
    if not rows.size:
        raise InputError(f"{sheet.source}: no row is left; it must have at least two arms")
    return sheet.only(rows)


# --- Sums. One rule: a row that is called a total and adds up is skipped; one that is called so, or
# is the sum of what its name or its place says, but not both, is asked about.


def _totals(sheet: Sheet, amounts: numbers.Amounts, keep: Sequence[str]) -> np.ndarray:
    """Which rows are totals or nameless, bool [N]; what may be a total is a problem."""
    names, first, day = sheet.of("name"), sheet.cells[0], sheet.of("time")
    for column in sheet.cells[1:]:  # of each row the first cell that is not empty
        if "" in first.texts:
            first = Column.of(np.where(first.every == "", column.every, first.every))
    values = [np.nan_to_num(amounts.values[role]) for role in amounts.totals]
    sums = np.array(values).reshape(len(values), len(sheet.line))
    arms = names.equal(*keep) | first.equal(*keep)
    nameless = names.passes(lambda text: not text.strip("-–—"))
    nameless &= ~names.equal("") | (sheet.columns.kind != "means")
    called = _says(names, _TOTAL) | nameless | _says(day, _SUM)
    # A word that several rows begin with is a category's.
    called |= _says(first, _SUM) & (np.bincount(first.code)[first.code] == 1)
    called &= ~arms
    hidden = _hidden_sums(sheet, sums, ~(called | arms))
    # It adds up if it is all that are no totals, or those between it and the next total.
    adds_up, at = np.zeros_like(called), np.flatnonzero(called | hidden)
    if len(sums) and called.any():
        until = np.cumsum(sums * ~(called | hidden), axis=1)
        ends = np.concatenate([np.zeros((len(sums), 1)), until[:, at], until[:, -1:]], axis=1)
        for parts in (until[:, -1:], np.diff(ends)[:, :-1], np.diff(ends)[:, 1:]):
            is_same = _near(sums[:, at], parts).all(axis=0) & (sums[:, at] > 0).any(axis=0)
            adds_up[at] |= is_same & called[at]
    _check_levels(sheet)
    empty = nameless & called
    for n in sheet.columns.numeric().values() if empty.any() else ():
        empty &= sheet.cells[n].passes(numbers.is_nothing)
    if doubt := np.flatnonzero((called & ~(adds_up | empty)) | hidden).tolist():
        sheet.problems.append(_question(sheet, amounts, doubt, called))
    if skipped := np.flatnonzero(adds_up | empty).tolist():
        texts = dict.fromkeys(quoted(names.row(i) or "no name") for i in skipped[:3])
        note = f"{sheet.lines(skipped)} skipped: totals ({', '.join(texts)})"
        sheet.changes.insert(0, note)
    return called


def _says(column: Column, words: re.Pattern[str]) -> np.ndarray:
    """Of each row whether its text is such a word; no column of very many texts holds any."""
    if len(column.texts) > LONG:
        return np.zeros(len(column.code), bool)
    return column.passes(words.fullmatch)


def _near(total: np.ndarray, parts: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(total - parts) <= _ROUNDING * np.abs(parts)) | (total == 0))


def _hidden_sums(sheet: Sheet, sums: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows that are the sum, in two columns if there are two, of two or more others that are not
    empty: of all; of all with its name, if every name has such a row; of all of the campaign that
    it is called after; of the names that begin with its own."""
    names, enough = sheet.of("name"), min(2, len(sums) + (sheet.columns.kind == "log"))
    filled = rows & (sums > 0).any(axis=0)
    wide = filled & ((sums > 0).sum(axis=0) >= enough)

    def is_rest(code: np.ndarray, count: int) -> np.ndarray:
        is_sum = np.zeros_like(wide)
        at = np.flatnonzero(wide & (np.bincount(code, filled, count) > 2)[code])
        for column in sums:  # most rows fall out at the first column
            whole = np.bincount(code, column * filled, count)
            at = at[_near(column[at], whole[code[at]] - column[at])]
        is_sum[at] = True
        return is_sum

    hidden = is_rest(np.zeros(len(rows), np.int64), 1)
    of_names = is_rest(*coded(names))
    if sheet.columns.kind != "log" and (np.bincount(names.code, of_names) > 0).all():
        hidden |= of_names
    for column in (sheet.cells[n] for n in sheet.columns.levels):
        hidden |= is_rest(*coded(column)) & (names.every == column.every)
    place, children = {text: n for n, text in enumerate(names.texts)}, dict[int, list[int]]()
    for text, n in place.items():
        for cut in _BETWEEN_WORDS.finditer(text):
            if (parent := place.get(text[: cut.start()])) is not None:
                children.setdefault(parent, []).append(n)
    whole = np.array([np.bincount(names.code, column * filled) for column in sums])
    whole, count = whole.reshape(len(sums), len(names.texts)), np.bincount(names.code, filled)
    for parent, parts in children.items():
        total, rest = whole[:, parent], whole[:, parts].sum(axis=1)
        if count[parts].sum() > 1 and (total > 0).sum() >= enough and _near(total, rest).all():
            hidden |= wide & (names.code == parent)
    return hidden


def _check_levels(sheet: Sheet) -> None:
    """Rows of campaigns and of their ads in one column of levels would be counted twice."""
    for n, column in enumerate(sheet.cells):
        texts = column.texts.tolist()
        if n in sheet.columns.used() or len(texts) > 8:
            continue
        levels = {text: title(text).word("name") for text in texts}
        levels = {text: word for text, word in levels.items() if word[1] == "ad"}
        if len({*levels.values()}) > 1:
            ways = [
                (
                    {"drop": [x for x in texts if x not in ("", text)]},
                    f"leaves the rows of {quoted(text)}",
                )
                for text in levels
            ]
            column_title = quoted(sheet.titles[n])
            reason = f"rows of several levels stand in {column_title}, which would be counted twice"
            sheet.problems.append(Question(f"{sheet.source}: {reason}", *ways))


def _question(
    sheet: Sheet, amounts: numbers.Amounts, doubt: Sequence[int], called: np.ndarray
) -> Question:
    """Whether the first of these rows is a total; all of one kind are answered by one command."""
    names, i = sheet.of("name"), doubt[0]
    doubt = [
        j for j in doubt if called[j] == called[i] and bool(names.row(j)) == bool(names.row(i))
    ]
    more = f" (and {len(doubt) - 1:,} more such rows)" if len(doubt) > 1 else ""
    texts = list(dict.fromkeys(names.row(j) for j in doubt))
    ways: list[tuple[Mapping[str, Any], str]] = [({"drop": texts}, "leaves it out")]
    if not np.isin(np.flatnonzero(names.equal(*texts)), doubt).all():
        ways = []  # rows that are arms would go as well
    reason = "is the sum of other rows"
    if not texts[0].strip("-–—"):
        reason = "has no name"
        if len(doubt) > 1:
            ways, more = [], f"{more}: a name that stands once for several rows must stand in each"
    else:
        ways.append(({"keep": texts}, "plays it as an arm"))
        if called[i]:
            reason = "is called a total, and is not the sum of other rows"
            if sheet.columns.kind != "means":
                money = np.nan_to_num(amounts.values[COST_OF[sheet.columns.kind]])
                style = amounts.style
                reason += f" ({style.money(money[i])} of {style.money(money.sum())})"
    text = f"{sheet.source}, line {sheet.line[i]}: {quoted(texts[0])} {reason}{more}"
    return Question(text, *ways)


# --- What a file is, and what its empty cells mean.


def _of_kind(sheet: Sheet, amounts: numbers.Amounts) -> Columns:
    """What the file is, now that its numbers are known: counts of one pull a row are a log."""
    columns, at, names = sheet.columns, sheet.columns.at, sheet.of("name")
    repeats = len(names.texts) < len(names.code)
    clicks = amounts.values.get("clicks", np.ones(len(sheet.line)))
    if columns.kind == "counts" and repeats and (clicks == 1).all():
        sheet.notes.append("every row is one pull: read as a log")
        return replace(columns, kind="log", is_value=False, pull_unit="row")
    if columns.kind == "means" or columns.is_log or "clicks" in columns.named.values():
        return columns
    if columns.kind == "counts":
        if columns.pull_unit in ("view", "impression"):
            pulls = sheet.titles[at["clicks"]]
            text = f"{sheet.source}: nothing is known to count clicks; is each of {quoted(pulls)} a pull?"
            way = {"columns": {"clicks": pulls}}, "takes it so"
            sheet.problems.append(Question(f"{text} Else say --columns clicks=…", way))
        if not repeats or not columns.keyed[at["conversions"]].is_any("reward"):
            return columns  # else the reward may be one pull's
    pulls, reason = sheet.titles[at["clicks"]] if "clicks" in at else "", ""
    if not repeats:
        reason = "no name has two rows, so this is no log"
    elif pulls and (clicks > 1).any():
        reason = f"{quoted(pulls)} is above 1, and names have several rows"
    elif means := [x for x in sheet.titles if title(x).is_any("price", "rate")]:
        reason = f"{quoted(means[0])} tells of several pulls"
    elif _is_table(sheet):
        reason = f"every name has one row for each {'day' if 'time' in at else 'kind'}"
    if reason:
        rows = [sheet.row(i) for i in range(min(len(sheet.line), 2))]
        raise InputError(
            f"{sheet.source}: {reason}: is a row one pull, or does a column count pulls? Say --columns "
            "clicks=… (what counts pulls, or 1: every row is one) with cost=… (of all) or price=… "
            "(of one); or mean_reward=… and mean_cost=…. The columns are "
            f"{samples(sheet.titles, rows)}"
        )
    return columns


def _is_table(sheet: Sheet) -> bool:
    """Whether each name has one row a day, or for each of a few words: reports have, logs not."""
    names, times = sheet.of("name"), sheet.of("time")
    if "time" in sheet.columns.at:  # a grid of names and clocks, or rounds, is a table, too
        if _is_grid(names, times):
            return True
        is_new = coded(names, times)[1] == len(times.code)
        return is_new and not any(map(_HAS_CLOCK.search, times.texts))
    categories = [column for column in sheet.cells if len(column.texts) < 10]
    return any(_is_grid(names, x) and not any(map(numbers.is_number, x.texts)) for x in categories)


def _is_grid(names: Column, column: Column) -> bool:
    """Whether each name has one row for each of several cells."""
    rows, texts = len(names.code), len(column.texts)
    return texts > 1 and len(names.texts) * texts == rows and coded(names, column)[1] == rows


def _filled(kind: str, sheet: Sheet, amounts: numbers.Amounts) -> Sequence[FloatArray]:
    """Clicks, value and spent of all rows; in counts what is empty is 0, but not what pulls cost.
    NaN is not known."""
    values, state, was = amounts.values, amounts.state, sheet.columns.kind
    value, spent = (
        values[role[kind] if role[kind] in values else role[was]] for role in (REWARD_OF, COST_OF)
    )
    if kind == "log":
        reward = state[REWARD_OF[was]]
        empty, filled = (
            np.isin(reward, (numbers.NOTHING, numbers.UNKNOWN)),
            reward == numbers.NUMBER,
        )
        if empty.sum() > filled.sum() > 0 and not (value[filled] == 0).any():
            note = f"{empty.sum():,} empty rewards read as 0: most are empty, and none is 0"
            sheet.changes.append(note)
            value = np.where(empty, 0.0, value)
    if kind != "counts":
        return np.ones(len(sheet.line)), value, spent
    clicks = values["clicks"]
    unknown = np.any([x == numbers.UNKNOWN for x in state.values()], axis=0)
    if "spent" in state:  # pulls that nobody priced are not free
        unknown |= (state["spent"] == numbers.NOTHING) & (np.nan_to_num(clicks) > 0)
    notes = {
        f"{role} empty in {{}}: read as 0": ~unknown & (x == numbers.NOTHING)
        for role, x in state.items()
        if role not in sheet.columns.rates
    }
    below = np.any([x == numbers.NEGATIVE for x in state.values()], axis=0)
    notes["below 0 in {}: summed as it is"] = below
    notes["{} not summed: a number is not known"] = unknown
    for text, rows in notes.items():
        sheet.changes += [text.format(sheet.lines(np.flatnonzero(rows)))] if rows.any() else []
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in (clicks, value, spent)]


# --- Names.


def _arm_names(sheet: Sheet) -> Column:
    """The arms' names; where an ad's name stands in several campaigns, with the campaign's before."""
    names, over = sheet.of("name"), list[str]()
    for level in sheet.columns.levels:
        code, count = coded(sheet.cells[level], names)
        if count > len(names.texts):
            _, first = np.unique(code, return_index=True)
            pairs = [(sheet.cells[level].row(i), names.row(i)) for i in first]
            texts = [f"{parent} / {name}" if parent else name for parent, name in pairs]
            names = Column.of(np.array(texts, object)[code])
            over.append(quoted(sheet.titles[level]))
    if over:
        column = quoted(sheet.titles[sheet.columns.at["name"]])
        note = f"{column} repeats over {' and '.join(over)}: an arm is {quoted(names.row(0))}"
        sheet.notes.append(note)
    return names


def _check_names(sheet: Sheet, columns: Columns, instances: Column, arms: Column) -> None:
    """Rows of one arm and time are added only if nothing else tells them apart, or on demand."""

    def ask(reason: str, n: int, texts: str = "", effect: str = "adds them") -> None:
        apart = {"columns": {"instance": sheet.titles[n]}}, "keeps them apart"
        text = f"{sheet.source}: {reason} {quoted(sheet.titles[n])}{texts}"
        sheet.problems.append(Question(text, ({"add": True}, effect), apart))

    test = best_match(columns.keyed, ("test",), columns.used())
    if test is not None and len(sheet.cells[test].texts) > 1:
        return ask("several tests stand in", test, effect="takes them as one")
    if columns.kind in ("log", "means"):  # other words tell of a pull
        return None
    if rounded := [text for text in arms.texts if _ROUNDED.fullmatch(text)]:
        name, example = quoted(sheet.titles[columns.at["name"]]), quoted(rounded[0])
        reason = f"{name} holds ids that a spreadsheet rounded, such as {example}"
        sheet.changes.insert(0, f"{reason}: ads of one rounded id are one arm here")
    arm = Column(*_counted(instances, arms))
    row = Column(*_counted(arm, sheet.of("time")))
    if len(arm.texts) < len(arm.code):
        code, count = coded(*sheet.cells)
        if count < len(code):
            _, first, times = np.unique(code, return_index=True, return_counts=True)
            lines = sheet.lines(np.sort(first[times > 1]))
            again = count_of(len(code) - count, "row")
            sheet.changes.insert(0, f"{lines}: {again} more equal in every cell, added as well")
    has_both, ends = {"end", "time"} <= columns.at.keys(), sheet.of("end")
    if has_both and coded(arm, ends)[1] < coded(row, ends)[1]:
        return ask("rows of one name overlap, for they differ only in", columns.at["time"])
    for n in (n for n, text in enumerate(sheet.titles) if text and n not in columns.used()):
        column = sheet.cells[n]
        # Numbers that every arm repeats, such as windows of 7 and 30 days, tell rows apart as words
        # do.
        is_text = not any(map(numbers.is_number, column.texts[:2000]))
        differ = len(row.texts) < len(row.code) and coded(row, column)[1] > len(row.texts)
        if (differ and (is_text or _is_grid(row, column))) or (is_text and _is_grid(arm, column)):
            return ask("rows of one name differ in", n, f" ({brief(', '.join(column.texts), 60)})")
    return None


def _counted(*columns: Column) -> tuple[np.ndarray, np.ndarray]:
    """Several columns as one, whose texts are only counted."""
    code, count = coded(*columns)
    return code, np.empty(count, object)


def unit_of_rewards(rows: ArmRows) -> str:
    """What rewards are counted in: the file's own word, where it is not in plain form."""
    columns = rows.columns
    usual = "conversions" if columns.kind in ("counts", "facebook") else "reward"
    role = next((role for role in ("conversions", "reward") if role in columns.at), "")
    if columns.kind not in ("counts", "log") or not role or role in columns.rates:
        return "value" if columns.is_value else usual
    if columns.plain and not columns.is_value:
        return usual
    return brief(rows.sheet.titles[columns.at[role]], 40)
