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

from jaxbandits._tables import NumberStyle, counted
from jaxbandits.apps.comparison._reading import numbers
from jaxbandits.apps.comparison._reading.columns import (
    COST_OF,
    REWARD_OF,
    Columns,
    best_match,
    pattern,
    samples,
    title,
    titles_of,
    words,
)
from jaxbandits.apps.comparison._reading.sheet import Cells, Question, Sheet, coded
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.core.checks import InputError, brief, quoted

_TOTAL = re.compile(  # what a row of totals is called
    r"(?:(?:grand|overall|report|account|filtered|campaign|all)[ -]?)?(?:sub-?)?"
    rf"(?:{pattern('total')}|{pattern('mean')})"
    r"(?:\s*[:;(/–-].*|\s+(?:all|of|for|general|account|campaigns?|rows?|last|previous|this)\b.*)?"
    rf"|{pattern('results_of')}",
    re.IGNORECASE,
)
# Of the first cell or the day, where "average" may be a quality, too.
_SUM = re.compile(rf"(?!{pattern('mean')}\b)(?:{_TOTAL.pattern})", re.IGNORECASE)
_DAY_FIRST = {"£", "GBP", "₹", "INR", "Rs", "Rs.", "AUD", "A$", "NZD", "NZ$", "ZAR", "CHF", "€", "EUR"}
_HAS_CLOCK = re.compile(r"\d:\d\d|^\d{10,}|^\d{1,6}(\.\d+)?$")  # or seconds since 1970, or a round
_BETWEEN_WORDS = re.compile(r"[\s/:|>_–-]+")  # of a name that may begin with its parent's
_ENDS_IN_TOTAL = re.compile(r"(.+?)[\s:–-]+(?:sub-?)?(?:totals?|sum|summe|gesamt)", re.IGNORECASE)
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}", re.IGNORECASE)  # of ids
_ROUNDING = 5e-4  # of a sum


@dataclass(eq=False)
class Rows:
    """Rows with a name each; N of them, in file order."""

    sheet: Sheet  # the same rows as cells, for messages
    columns: Columns
    style: NumberStyle
    instance: Cells
    arm: Cells
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
    def known(self) -> np.ndarray:
        """Whether all of a row is known, bool [N]."""
        return np.asarray(~np.isnan(self.amounts).any(axis=0))


def read_rows(sheet: Sheet, default_name: str, decimal: str | None, options: Mapping[str, Any]) -> Rows:
    """The rows of a file of means, counts or pulls; ``drop``, ``keep`` and ``add`` as in read_arms."""
    sheet = _without_extras(sheet, options["drop"])
    amounts = numbers.read_amounts(sheet, decimal)
    kept = np.flatnonzero(_without_sums(sheet, amounts, set(options["keep"])))
    sheet, amounts = sheet.only(kept), amounts.only(kept)
    columns = _of_kind(sheet, amounts)
    usable = np.flatnonzero(numbers.check_cells(sheet, amounts, columns.kind))
    sheet, amounts = sheet.only(usable), amounts.only(usable)
    clicks, value, spent = _filled(columns.kind, sheet, amounts)
    spent2 = amounts.values.get("cost2")
    if spent2 is not None and columns.kind == "counts":
        spent2 = np.where(np.isnan(clicks), np.nan, np.nan_to_num(spent2))
    elif spent2 is not None:
        spent = np.where(np.isnan(spent2), np.nan, spent)
    instances, arms, time = sheet.of("instance"), _names(sheet), None
    if "instance" not in columns.at:
        instances = Cells.same(default_name, len(sheet.line))
    asks = columns.kind != "means" and not options["add"]
    if "time" in columns.at:
        day_first = amounts.style.decimal == "," or amounts.style.symbol in _DAY_FIRST
        time, note = numbers.read_times(sheet.of("time"), day_first)
        note = f"column {sheet.label('time')}: {note}" if note else ""
        sheet.notes += [note] if note else []
        if time is None and asks and coded(instances, arms)[1] < len(sheet.line):
            say = "write it so, say --columns time=… for another column, or --sum, which takes the rows as they come"
            sheet.problems.append(InputError(f"{sheet.source}, {note}; {say}"))
    if asks:
        _check_names(sheet, columns, instances, arms)
    return Rows(sheet, columns, amounts.style, instances, arms, clicks, value, spent, time, spent2)


# --- Rows that are no arms, whatever their numbers say.


def _without_extras(sheet: Sheet, drop: Iterable[str]) -> Sheet:
    """Without the header once more, a second table, remarks below, and what the user drops."""
    numeric, name = set(sheet.columns.numeric().values()), sheet.of("name")
    titles = zip(sheet.cells, sheet.titles, strict=True)
    again = np.all([cells.equal(text) for cells, text in titles], axis=0)
    if again.any():
        sheet.notes.append(f"{sheet.lines(np.flatnonzero(again))} skipped: the header once more")
    rows = np.flatnonzero(~again)
    in_row = np.sum([~cells.equal("") for cells in sheet.cells], axis=0)
    gap = np.isin(sheet.line, sheet.gaps)
    for n in np.flatnonzero(gap[rows])[int(gap[rows][:1].sum()) :].tolist():
        # Another header stands here, perhaps behind lines of one cell, with a row below it.
        below = rows[n:][in_row[rows[n:]] > 1]
        if len(below) > 1 and not any(map(numbers.is_number, sheet.row(below[0]))):
            first, last = sheet.line[rows[n]], sheet.line[rows[-1]]
            sheet.notes.append(f"lines {first} to {last} skipped: another table")
            rows = rows[:n]
            break
    has_number = np.any([~sheet.cells[n].equal("") for n in numeric], axis=0)
    end = len(rows)
    while end > 1 and not has_number[rows[end - 1]] and (in_row[rows[end - 1]] == 1 or gap[rows[end - 1]]):
        end -= 1
    if end < len(rows):
        sheet.notes.append(f"{sheet.lines(rows[end:])} below the table skipped: no numbers")
    rows, dropped = rows[:end], np.zeros(len(sheet.line), bool)
    for text in drop:  # a name if there is such a name (or none), else a cell of any column of words
        columns = [name]
        if text and text not in name.texts:
            columns = [cells for n, cells in enumerate(sheet.cells) if n not in numeric]
        dropped |= np.any([cells.equal(text) for cells in columns], axis=0)
    if dropped.any():
        sheet.notes.append(f"{sheet.lines(np.flatnonzero(dropped))} dropped, as --drop says")
    rows = rows[~dropped[rows]]
    if not rows.size:
        raise InputError(f"{sheet.source}: no row is left; it must have at least two arms")
    return sheet.only(rows)


# --- Sums. One rule: a row that is called a total and adds up is skipped; one that is called so, or
# is the sum of what its name or its place says, but not both, is asked about.


def _without_sums(sheet: Sheet, amounts: numbers.Amounts, keep: set[str]) -> np.ndarray:
    """Which rows are neither totals nor nameless, bool [N]; what may be a total is a problem."""
    columns, names, first = sheet.columns, sheet.of("name"), _first_filled(sheet)
    values = [np.nan_to_num(amounts.values[role]) for role in amounts.totals]
    sums = np.array(values).reshape(len(values), len(sheet.line))
    kept = np.zeros(len(sheet.line), bool)
    for text in keep:
        kept |= names.equal(text) | first.equal(text)
    by_name = _says(names, _TOTAL) & ~kept
    said = _says(first, _SUM)
    if first is not sheet.of("time"):
        said |= _says(sheet.of("time"), _SUM)
    said &= ~(kept | by_name)
    nameless = names.which(lambda text: not text.strip("-–—")) & ~(by_name | said | kept)
    nameless &= columns.kind != "means"
    called = by_name | said | nameless
    hidden = _hidden_sums(sheet, sums, ~(called | kept))
    adds_up = _adds_up(sheet, sums, called, hidden)
    if (no := said & ~adds_up).any():
        # A word of which not all rows add up, or are as large as a total, is a category's.
        most = sums[:, ~called].max(axis=1, initial=0, keepdims=True)
        usual = set(first.only(np.flatnonzero(no & ~(sums >= most).all(axis=0))).texts)
        called &= ~(said & first.which(usual.__contains__))
        adds_up = _adds_up(sheet, sums, called, hidden)
    _check_levels(sheet, sums * ~(called | kept))
    cells = [sheet.cells[n] for n in columns.numeric().values()]
    empty = nameless.copy()
    for of in cells if nameless.any() else ():
        empty &= of.which(numbers.is_nothing)
    if doubt := np.flatnonzero((called & ~(adds_up | empty)) | hidden).tolist():
        sheet.problems.append(_asked(sheet, amounts, doubt, called))
    if skipped := np.flatnonzero(adds_up | empty).tolist():
        texts = dict.fromkeys(quoted(names.row(i) or "no name") for i in skipped[:3])
        note = f"{sheet.lines(skipped)} skipped: totals ({', '.join(texts)})"
        sheet.changes.insert(0, note)
    return np.asarray(~called)


def _says(cells: Cells, words: re.Pattern[str]) -> np.ndarray:
    """Of each row whether its text is such a word; none begins with a digit, as ids and times do."""
    texts = enumerate(cells.texts)
    said = [n for n, text in texts if not text[:1].isdigit() and words.fullmatch(text)]
    return np.isin(cells.code, said)


def _first_filled(sheet: Sheet) -> Cells:
    """Of each row the first cell that is not empty."""
    first = sheet.cells[0]
    for cells in sheet.cells[1:]:
        if "" not in first.texts:
            break
        first = Cells.of(np.where(first.every == "", cells.every, first.every).tolist())
    return first


def _text_columns(sheet: Sheet) -> list[int]:
    """Columns other than the name that hold words: a device, a window, a campaign."""
    used = {sheet.columns.at["name"], *sheet.columns.numeric().values()}

    def says(cells: Cells) -> bool:
        nothing = all(map(numbers.is_nothing, cells.texts))
        return not nothing and not any(map(numbers.is_number, cells.texts[:2000]))

    return [n for n, x in enumerate(sheet.titles) if x and n not in used and says(sheet.cells[n])]


def _same(total: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Of each row whether all columns are the same but for rounding, and some column has something."""
    return np.asarray(_near(total, parts).all(axis=0) & (total > 0).any(axis=0))


def _near(total: np.ndarray, parts: np.ndarray) -> np.ndarray:
    return np.asarray((np.abs(total - parts) <= _ROUNDING * np.abs(parts)) | (total == 0))


def _of_groups(sums: np.ndarray, code: np.ndarray, many: int) -> np.ndarray:
    """Of each column the sums of all groups."""
    return np.array([np.bincount(code, of, many) for of in sums]).reshape(len(sums), many)


def _adds_up(sheet: Sheet, sums: np.ndarray, called: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Which of the called rows are the sum of all that are not called totals, of those that share
    its name or other texts, or of those between it and the next total."""
    found, at = np.zeros_like(called), np.flatnonzero(called | hidden)
    if not len(sums) or not called.any():
        return found
    parts, total = sums * ~(called | hidden), sums[:, at]
    until = np.concatenate([np.zeros((len(sums), 1)), np.cumsum(parts, axis=1)], axis=1)
    ends = np.concatenate([[0], at, [len(called)]])
    above, below = until[:, at] - until[:, ends[:-2]], until[:, ends[2:]] - until[:, at]
    found[at] = _same(total, above) | _same(total, below) | _same(total, until[:, -1:])
    columns = [sheet.of("name"), *(sheet.cells[n] for n in _text_columns(sheet))]
    says = np.array([~(of.equal("") | _says(of, _TOTAL)) for of in columns])
    for filled in np.unique(says[:, at], axis=1).T:  # of the columns in which some totals say something
        own, rows = [of for of, yes in zip(columns, filled, strict=True) if yes], np.zeros_like(called)
        rows[at] = (says[:, at] == filled[:, None]).all(axis=0)
        for scope in [[of] for of in own] + [own] * (len(own) > 1):
            code, many = coded(*scope)
            found |= rows & _same(sums, _of_groups(parts, code, many)[:, code])
    return found & called


def _hidden_sums(sheet: Sheet, sums: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows that are the sum, in two columns if there are two, of two or more others that are not
    empty: of all; of all with its name, if every name has such a row; of all of the campaign that
    it is called after; of the names that begin with its own; of the rows indented below it."""
    names, is_log = sheet.of("name"), sheet.columns.kind == "log"
    filled = rows & (sums > 0).any(axis=0)
    wide = filled & ((sums > 0).sum(axis=0) >= min(2, len(sums) + is_log))

    def is_rest(code: np.ndarray, many: int) -> np.ndarray:
        is_sum, three = np.zeros_like(wide), np.bincount(code, filled, many) > 2
        at = np.flatnonzero(wide & three[code])
        for of in sums:  # most rows fall out at the first column
            whole = np.bincount(code, of * filled, many)
            at = at[_near(of[at], whole[code[at]] - of[at])]
        is_sum[at] = True
        return is_sum

    found = is_rest(np.zeros(len(rows), np.int64), 1)
    of_names = is_rest(*coded(names))
    if not is_log and (np.bincount(names.code, of_names) > 0).all():
        found |= of_names
    for cells in (sheet.cells[n] for n in sheet.columns.levels):
        found |= is_rest(*coded(cells)) & (names.every == cells.every)
    own, many = _of_groups(sums * filled, *coded(names)), np.bincount(names.code, filled)
    for parent, children in _families(names).items():
        rest = own[:, children].sum(axis=1, keepdims=True)
        two = (own[:, parent] > 0).sum() >= min(2, len(sums) + is_log)
        if two and many[children].sum() > 1 and _same(own[:, [parent]], rest)[0]:
            found |= wide & (names.code == parent)
    return found | (rows & _sums_of_indented(sums, sheet.indent))


def _families(names: Cells) -> dict[int, list[int]]:
    """Of names that others begin with, as a campaign's ads do, or that end in "total": those."""
    place, children = {text: n for n, text in enumerate(names.texts)}, dict[int, set[int]]()
    for text, n in place.items():
        for cut in _BETWEEN_WORDS.finditer(text):
            if (parent := text[: cut.start()]) in place:
                children.setdefault(place[parent], set()).add(n)
        if (ends := _ENDS_IN_TOTAL.fullmatch(text)) and ends[1] in place:
            children.setdefault(n, set()).add(place[ends[1]])
            children.get(place[ends[1]], set()).discard(n)
    return {parent: sorted(of) for parent, of in children.items()}


def _sums_of_indented(sums: np.ndarray, indent: np.ndarray) -> np.ndarray:
    """Rows that are the sum of the rows indented below them, if all that have such rows are."""
    found, parent, above = np.zeros(len(indent), bool), np.full(len(indent), -1), list[int]()
    if not len(sums) or not (indent != indent[:1]).any():
        return found
    for i, depth in enumerate(indent):
        while above and indent[above[-1]] >= depth:
            above.pop()
        parent[i] = above[-1] if above else -1
        above.append(i)
    inside = parent >= 0
    found[parent[inside]] = True
    rest = _of_groups(sums[:, inside], parent[inside], len(indent))
    return found & _same(sums[:, found], rest[:, found]).all()


def _check_levels(sheet: Sheet, sums: np.ndarray) -> None:
    """Rows of campaigns and of their ads in one column of levels are asked about, if they add up."""
    for n in (n for n in range(len(sheet.titles)) if n not in sheet.columns.used()):
        texts = sheet.cells[n].texts.tolist()
        if len(texts) > 8 or not any(map(_level, texts)):
            continue
        of = dict(zip(texts, _of_groups(sums, *coded(sheet.cells[n])).T, strict=True))
        levels = sorted(filter(_level, texts), key=_level)
        equal = [x for x in levels if any(_same(of[x], of[y]) for y in levels if x != y)]
        if equal:
            others = {x: [y for y in texts if y not in ("", x)] for x in equal}
            ways = [({"drop": of}, f"leaves the rows of {quoted(x)}") for x, of in others.items()]
            why = f"rows of several levels stand in {quoted(sheet.titles[n])}, which add up to the same"
            named = ", ".join(map(quoted, equal))
            sheet.problems.append(Question(f"{sheet.source}: {why} ({named})", ways))


def _level(text: str) -> int:
    """How coarse the rows are that a column of levels calls so, 1 is finest; 0 if it is no level."""
    one = title(text)
    return one.rank("name") if one.rank_name("name") == "ad" else 99 if one.key == "account" else 0


def _asked(sheet: Sheet, amounts: numbers.Amounts, doubt: Sequence[int], called: np.ndarray) -> Question:
    """Whether the first of these rows is a total; all of one kind are answered by one command."""
    names, first, i = sheet.of("name"), _first_filled(sheet), doubt[0]
    doubt = [j for j in doubt if called[j] == called[i] and bool(names.row(j)) == bool(names.row(i))]
    name, text = names.row(i), names.row(i)
    if called[i]:
        text = next((x for x in (name, first.row(i)) if _TOTAL.fullmatch(x)), name)
    more = f" (and {len(doubt) - 1:,} more such rows)" if len(doubt) > 1 else ""
    options = [text] if called[i] and text == name else list(dict.fromkeys(map(names.row, doubt)))
    same = np.flatnonzero(names.which(set(options).__contains__))
    ways: list[tuple[Mapping[str, Any], str]] = []
    if np.isin(same, doubt).all():  # else rows that are arms would go as well
        ways.append(({"drop": options}, "leaves it out"))
    why = "is the sum of other rows"
    if not name.strip("-–—"):
        why, ways = "has no name", [({"drop": options}, "leaves it out")]
        if len(doubt) > 1:
            ways, more = [], f"{more}: a name that stands once for several rows must stand in each"
    else:
        ways.append(({"keep": options}, "plays it as an arm"))
        if called[i]:
            why = "is called a total, and is not the sum of other rows"
            if sheet.columns.kind != "means":
                money = np.nan_to_num(amounts.values[COST_OF[sheet.columns.kind]])
                style = amounts.style
                why += f" ({style.money(money[i])} of {style.money(money.sum())})"
    return Question(f"{sheet.source}, line {sheet.line[i]}: {quoted(text)} {why}{more}", ways)


# --- What a file is, and what its empty cells mean.


def _of_kind(sheet: Sheet, amounts: numbers.Amounts) -> Columns:
    """What the file is, now that its numbers are known: counts of one pull a row are a log."""
    columns, at, names = sheet.columns, sheet.columns.at, sheet.of("name")
    repeats = len(names.texts) < len(names.code)
    clicks = amounts.values.get("clicks", np.ones(len(sheet.line)))
    if columns.kind == "counts" and "clicks" in at and repeats and (clicks == 1).all():
        sheet.notes.append("every row is one pull: read as a log")
        return replace(columns, kind="log", is_value=False, pull_unit="row")
    if columns.kind == "means" or columns.given_log or "clicks" in columns.named.values():
        return columns
    if columns.kind == "counts":
        if columns.pull_unit in ("view", "impression"):
            _check_unknown(sheet, amounts)
        if not repeats or not columns.title["conversions"].is_any("reward"):
            return columns  # else the reward may be one pull's
    own, why = sheet.titles[at["clicks"]] if "clicks" in at else "", ""
    if not repeats:
        why = "no name has two rows, so this is no log"
    elif own and (clicks > 1).any():
        why = f"{quoted(own)} is above 1, and names have several rows"
    elif _is_table(sheet):
        why = f"every name has one row for each {'day' if 'time' in at else 'kind'}"
    if why:
        rows = [sheet.row(i) for i in range(min(len(sheet.line), 2))]
        raise InputError(
            f"{sheet.source}: {why}: is a row one pull, or does a column count pulls? Say --columns "
            "clicks=… (what counts pulls, or 1: every row is one) with cost=… (of all) or price=… "
            "(of one); or mean_reward=… and mean_cost=…. The columns are "
            f"{samples(sheet.titles, rows)}"
        )
    return columns


def _check_unknown(sheet: Sheet, amounts: numbers.Amounts) -> None:
    """Beside impressions, the price of a click and a column that may count clicks are asked about."""
    columns, most = sheet.columns, amounts.values["clicks"]
    least = 0 if columns.is_value else np.nan_to_num(amounts.values["conversions"])
    for n, one in enumerate(titles_of(sheet.titles)):
        if n in columns.used() or not sheet.titles[n]:
            continue
        may_be = one.rank("price") >= 0
        if not one.is_any(*words()):
            (of,), _, _ = numbers.read_numbers([sheet.cells[n]], [True], sheet.separator, amounts.style.decimal)
            between = (least <= of.values) & (of.values <= most)
            may_be = bool((between & (of.values % 1 == 0)).all())
        if may_be:
            pulls = quoted(sheet.titles[columns.at["clicks"]])
            raise InputError(
                f"{sheet.source}: a pull is {pulls} only where nothing counts clicks, and "
                f"{quoted(sheet.titles[n])} may tell of them: say --columns clicks=…"
            )


def _is_table(sheet: Sheet) -> bool:
    """Whether each name has one row a day, or for each of a few words: reports have, logs not."""
    names, times = sheet.of("name"), sheet.of("time")
    if "time" in sheet.columns.at:  # a grid of names and clocks, or rounds, is a table, too
        is_new = coded(names, times)[1] == len(times.code)
        is_daily = is_new and not any(map(_HAS_CLOCK.search, times.texts))
        return is_daily or _is_grid(names, times)
    few = [sheet.cells[n] for n in _text_columns(sheet) if len(sheet.cells[n].texts) < 10]
    return any(_is_grid(names, cells) for cells in few)


def _is_grid(names: Cells, cells: Cells) -> bool:
    """Whether each name has one row for each of several cells."""
    many, others, rows = len(names.texts), len(cells.texts), len(cells.code)
    return others > 1 and many * others == rows and coded(names, cells)[1] == rows


def _filled(kind: str, sheet: Sheet, amounts: numbers.Amounts) -> Sequence[FloatArray]:
    """Clicks, value and spent of all rows; in counts what is empty is 0, but not what pulls cost.
    NaN is not known."""
    values, state, ones = amounts.values, amounts.state, np.ones(len(sheet.line))
    value, spent = (
        next(values[x] for x in (of[kind], of[sheet.columns.kind]) if x in values) for of in (REWARD_OF, COST_OF)
    )
    if kind == "log":
        of = state[REWARD_OF[sheet.columns.kind]]
        empty, given = np.isin(of, (numbers.NOTHING, numbers.UNKNOWN)), of == numbers.NUMBER
        if empty.sum() > given.sum() > 0 and not (value[given] == 0).any():
            note = f"{empty.sum():,} empty rewards read as 0: most are empty, and none is 0"
            sheet.changes.append(note)
            value = np.where(empty, 0.0, value)
    if kind != "counts":
        return ones, value, spent
    clicks = values["clicks"]
    unknown = np.any([x == numbers.UNKNOWN for x in state.values()], axis=0)
    if "spent" in state:  # pulls that nobody priced are not free
        unknown |= (state["spent"] == numbers.NOTHING) & (np.nan_to_num(clicks) > 0)
    notes = {
        f"{x} empty in {{}}: read as 0": ~unknown & (of == numbers.NOTHING)
        for x, of in state.items()
        if x not in sheet.columns.rates
    }
    below = np.any([of == numbers.NEGATIVE for of in state.values()], axis=0)
    notes["below 0 in {}: summed as it is"] = below
    notes["{} not summed: a number is not known"] = unknown
    for text, rows in notes.items():
        sheet.changes += [text.format(sheet.lines(np.flatnonzero(rows)))] if rows.any() else []
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in (clicks, value, spent)]


# --- Names.


def _names(sheet: Sheet) -> Cells:
    """The arms' names; where an ad's name stands in several campaigns, with the campaign's before."""
    names, over = sheet.of("name"), list[str]()
    for level in sheet.columns.levels:
        code, many = coded(sheet.cells[level], names)
        if many > len(names.texts):
            _, first = np.unique(code, return_index=True)
            pairs = [(sheet.cells[level].row(i), names.row(i)) for i in first]
            texts = [f"{parent} / {own}" if parent else own for parent, own in pairs]
            names = Cells.of(np.array(texts, object)[code].tolist())
            over.append(quoted(sheet.titles[level]))
    if over:
        own = quoted(sheet.titles[sheet.columns.at["name"]])
        note = f"{own} repeats over {' and '.join(over)}: an arm is {quoted(names.row(0))}"
        sheet.notes.append(note)
    return names


def _check_names(sheet: Sheet, columns: Columns, instances: Cells, arms: Cells) -> None:
    """Rows of one arm and time are added only if nothing else tells them apart, or on demand."""
    if columns.kind == "log":  # other words tell of a pull, but experiments are problems of their own
        test = best_match(titles_of(sheet.titles), ("test",), columns.used())
        many = coded(instances, arms)[1]
        if test is not None and coded(instances, arms, sheet.cells[test])[1] > many:
            _ask_to_add(sheet, "names stand in several", test)
        return
    _tell_of_equal(sheet, instances, arms)
    arm = Cells(*_few(instances, arms))
    row = Cells(*_few(arm, sheet.of("time")))
    end, has_both = sheet.of("end"), "end" in columns.at and "time" in columns.at
    if has_both and coded(arm, end)[1] < coded(row, end)[1]:
        why = "rows of one name overlap, for they differ only in"
        return _ask_to_add(sheet, why, columns.at["time"])
    for n in (n for n, text in enumerate(sheet.titles) if text and n not in columns.used()):
        cells = sheet.cells[n]
        # Numbers that every arm repeats, such as windows of 7 and 30 days, tell rows apart as words do.
        is_text = not any(map(numbers.is_number, cells.texts[:2000]))
        differ = len(row.texts) < len(row.code) and coded(row, cells)[1] > len(row.texts)
        if (differ and (is_text or _is_grid(row, cells))) or (is_text and _is_grid(arm, cells)):
            texts = brief(", ".join(cells.texts), 60)
            return _ask_to_add(sheet, "rows of one name differ in", n, f" ({texts})")
    return None


def _few(*columns: Cells) -> tuple[np.ndarray, np.ndarray]:
    """Several columns as one, whose texts are only counted."""
    code, many = coded(*columns)
    return code, np.empty(many, object)


def _tell_of_equal(sheet: Sheet, instances: Cells, arms: Cells) -> None:
    """Note ids that a spreadsheet rounded, by which two arms may be one, and rows that are equal."""
    if rounded := [text for text in arms.texts if _ROUNDED.fullmatch(text)]:
        own = quoted(sheet.titles[sheet.columns.at["name"]])
        why = f"{own} holds ids that a spreadsheet rounded, such as {quoted(rounded[0])}"
        sheet.changes.insert(0, f"{why}: ads of one rounded id are one arm here")
    if coded(instances, arms)[1] < len(sheet.line):
        code, many = coded(*sheet.cells)
        if many < len(code):
            _, first, count = np.unique(code, return_index=True, return_counts=True)
            lines = sheet.lines(np.sort(first[count > 1]))
            again = counted(len(code) - many, "row")
            sheet.changes.insert(0, f"{lines}: {again} more equal in every cell, added as well")


def _ask_to_add(sheet: Sheet, why: str, n: int, texts: str = "") -> None:
    apart: Mapping[str, Any] = {"columns": {"instance": sheet.titles[n]}}
    ways = [({"add": True}, "adds them"), (apart, "keeps them apart")]
    sheet.problems.append(Question(f"{sheet.source}: {why} {quoted(sheet.titles[n])}{texts}", ways))


def unit_of_rewards(rows: Rows) -> str:
    """What rewards are counted in: the file's own word, where it is not in plain form."""
    columns = rows.columns
    usual = "conversions" if columns.kind in ("counts", "facebook") else "reward"
    role = next((role for role in ("conversions", "reward") if role in columns.at), "")
    if columns.kind not in ("counts", "log") or not role or role in columns.rates:
        return "value" if columns.is_value else usual
    if columns.plain and not columns.is_value:
        return usual
    return brief(rows.sheet.titles[columns.at[role]], 40)
