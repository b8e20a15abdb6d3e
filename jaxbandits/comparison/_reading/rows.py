"""From cells to rows that count: what is skipped, what is a sum, what may be added.

A row that is no arm is skipped only where it is certain; where it is not, the file is refused with the option that
decides (``--drop``, ``--keep``, ``--sum``).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jaxbandits._tables import NumberStyle
from jaxbandits.comparison._reading import numbers
from jaxbandits.comparison._reading.columns import Columns, Texts, best_match, pull_unit, rank_of, samples, titles_of
from jaxbandits.comparison._reading.sheet import Sheet, coded, grouped
from jaxbandits.comparison.arms_table import FloatArray
from jaxbandits.core.checks import InputError, brief, shown

TOTAL = re.compile(  # what a row of totals is called
    r"(?:(?:grand|overall|report|account|filtered|campaign|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sum|total g[eé]n[eé]ral|total geral|totale|totaal|totalt|suma|somme|soma|summe|gesamt|insgesamt"
    r"|gesamt(?:summe|ergebnis|wert)e?|eindtotaal|razem|итого|всего|合計|合计|总计"
    r"|averages?|mean|median|mittelwert|durchschnitt|moyennes?|promedio|m[eé]dia|gemiddelde)"
    r"(?:\s*[:;(/–-].*|\s+(?:all|of|for|general|account|campaigns?|rows?)\b.*)?"
    r"|(?:results from|ergebnisse (?:aus|von)|résultats de|resultados de|risultati di) \d+ .*",
    re.IGNORECASE,
)
_DAY_FIRST = ("£", "GBP", "₹", "INR", "Rs", "Rs.", "AUD", "A$", "NZD", "NZ$", "ZAR", "CHF", "€", "EUR")
_HAS_CLOCK = re.compile(r"\d:\d\d|^\d{10,}|^\d{1,6}(\.\d+)?$")  # a clock, seconds since 1970, or a round
_ROUNDING = 5e-4  # of a sum


class Choices(NamedTuple):
    """What the user decided of rows: texts of cells whose rows are dropped, or are arms whatever they sum; add rows?"""

    drop: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    add: bool = False


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with a name each; N of them, in file order."""

    sheet: Sheet  # the same rows as cells, for messages
    columns: Columns
    style: NumberStyle
    instance: Texts
    arm: Texts
    clicks: FloatArray  # [N], pulls that the row sums; 1 for means and logs
    value: FloatArray  # [N], what they brought (means: the mean reward); NaN where a mean or a pull has none
    spent: FloatArray  # [N], what they cost (means: the mean cost); NaN as above
    time: numbers.Times | None = None
    ads: tuple[FloatArray, FloatArray] | None = None  # the Facebook file's own means, (reward, cost) [N] each


def read_rows(sheet: Sheet, default_name: str, decimal: str | None, choices: Choices) -> Rows:
    """The rows of a file of means, counts or pulls."""
    sheet = _without_extras(sheet, choices)
    amounts = numbers.read_amounts(sheet, decimal)
    keep = _without_sums(sheet, amounts, choices)
    found = np.flatnonzero(numbers.check_cells(sheet, amounts, keep))
    sheet, amounts = sheet.only(found), amounts.only(found)
    columns = _of_kind(sheet, amounts)
    clicks, value, spent = _filled(columns.kind, sheet, amounts)
    if columns.is_value and columns.kind != sheet.columns.kind:  # then the reward may be a number of successes
        columns = replace(columns, is_value=not ((value % 1 == 0) & (value <= clicks)).all())
    instances, arms, time = _instances(sheet, default_name), _names(sheet), None
    if "time" in columns.at:
        day_first = amounts.style.decimal == "," or amounts.style.symbol in _DAY_FIRST
        time, note = numbers.read_times(sheet.of("time"), day_first)
        note = f"column {sheet.label('time')}: {note}" if note else ""
        sheet.report.others += [note] if note else []
        if time is None and columns.kind != "means" and not choices.add and coded(instances, arms)[1] < len(arms):
            say = "write it so, say --columns time=… for another column, or --sum, which takes the rows as they come"
            sheet.note(InputError(f"{sheet.source}, {note}; {say}"))
    if columns.kind != "means" and not choices.add:
        _check_names(sheet, columns, instances, arms)
    return Rows(sheet, columns, amounts.style, instances, arms, clicks, value, spent, time)


# --- Rows that are no arms, whatever their numbers say.


def _without_extras(sheet: Sheet, choices: Choices) -> Sheet:
    """Without the header once more, a second table, remarks below the table, and what the user drops."""
    numeric, notes, name = set(sheet.columns.numeric().values()), sheet.report.others, sheet.of("name")
    again = [i for i in np.flatnonzero(sheet.cells[0] == sheet.titles[0]).tolist() if sheet.row(i) == sheet.titles]
    notes += [f"{sheet.lines(again)} skipped: the header once more"] if again else []
    rows = np.setdiff1d(np.arange(len(sheet.line)), again).tolist()
    for n in [n for n, i in enumerate(rows) if n and sheet.line[i] in sheet.gaps] if sheet.gaps else []:
        # Another header stands here, perhaps behind lines of one cell, with a row below it.
        filled = [i for i in rows[n:] if sum(map(bool, sheet.row(i))) > 1]
        if len(filled) > 1 and not any(map(numbers.is_number, sheet.row(filled[0]))):
            notes.append(f"lines {sheet.line[rows[n]]} to {sheet.line[rows[-1]]} skipped: another table")
            rows = rows[:n]
            break
    below = list[int]()
    while len(rows) > 1 and not any((last := sheet.row(rows[-1]))[n] for n in numeric):
        if sum(map(bool, last)) > 1 and sheet.line[rows[-1]] not in sheet.gaps:
            break
        below.insert(0, rows.pop())
    notes += [f"{sheet.lines(below)} below the table skipped: no numbers"] if below else []
    dropped = np.zeros(len(sheet.line), bool)
    for text in choices.drop:  # a name if there is such a name (or none), else a cell of any column of words
        named = not text or text in name
        words = [name] if named else [cells for n, cells in enumerate(sheet.cells) if n not in numeric]
        dropped |= np.any([cells == text for cells in words], axis=0)
    notes += [f"{sheet.lines(np.flatnonzero(dropped))} dropped, as --drop says"] if dropped.any() else []
    return sheet.only(np.array([i for i in rows if not dropped[i]], np.int64))


# --- Sums. One rule: a row that is called a total and adds up is skipped; one that is called so, or adds up, but not
# both, is asked about.


def _without_sums(sheet: Sheet, amounts: numbers.Amounts, choices: Choices) -> np.ndarray:
    """Which rows are neither totals nor without a name, bool [N]; those that may be totals are a problem."""
    columns, names = sheet.columns, sheet.of("name")
    own = [names, *(sheet.cells[n] for n in _text_columns(sheet))]
    words = set[str]().union(*own)
    totals = {text for text in words if not text[:1].isdigit() and TOTAL.fullmatch(text)} - choices.keep
    called, kept = (
        np.any([_is_any(cells, texts) for cells in own], axis=0) for texts in (totals, words & choices.keep)
    )
    roles = () if columns.kind == "means" else ("clicks", "spent", "cost", "conversions", "reward")
    sums = np.array([np.nan_to_num(amounts.values[role]) for role in roles if role in amounts.values])
    others = ~(called | kept)
    looks_like = _sums_of_others(sums, others)
    looks_like |= _sums_of_below(sums, names, others) if columns.kind == "counts" else set()
    keep, skipped, doubt = ~called, list[int](), list[int]()
    for i in np.flatnonzero(called).tolist():
        (skipped if _adds_up(sums, own, called, i) else doubt).append(i)
    blank = {text for text in set(names) if not text.strip("-–—")} if columns.kind != "means" else set()
    for i in np.flatnonzero(~called & _is_any(names, blank)).tolist():
        if i in looks_like or all(numbers.is_nothing(sheet.cells[n][i]) for n in columns.numeric().values()):
            skipped.append(i)
            looks_like.discard(i)
            keep[i] = False
        elif not names[i]:
            doubt.append(i)
            keep[i] = False
    doubt += sorted(looks_like)
    if doubt:
        sheet.note(_asked(sheet, own, doubt, called))
    if skipped:
        named = ", ".join(dict.fromkeys(shown(names[i] or "no name") for i in skipped[:3]))
        sheet.report.changes.insert(0, f"{sheet.lines(sorted(skipped))} skipped: totals ({named})")
    return keep


def _is_any(cells: Texts, texts: Iterable[str]) -> np.ndarray:
    return np.any([np.zeros(len(cells), bool), *(cells == text for text in texts)], axis=0)


def _text_columns(sheet: Sheet) -> list[int]:
    """Columns other than the name that hold words: what a row speaks of, such as a device, a window, a campaign."""
    used = {sheet.columns.at["name"], *sheet.columns.numeric().values()}
    found = []
    for n, title in enumerate(sheet.titles):
        words = dict.fromkeys(sheet.cells[n]) if title and n not in used else ()
        if any(not numbers.is_nothing(word) for word in words) and not any(map(numbers.is_number, list(words)[:2000])):
            found.append(n)
    return found


def _same(total: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Of each column whether it is the same but for rounding, and something at all."""
    near = np.abs(total - found) <= _ROUNDING * np.abs(found)
    return np.asarray(near.all(axis=0) & (total > 0).any(axis=0))


def _adds_up(sums: np.ndarray, texts: Sequence[Texts], called: np.ndarray, i: int) -> bool:
    """Is this row the sum of all others, of those that share its name or another text, or of those next to it?"""
    if not len(sums):
        return False
    place, totals = np.arange(len(called)), np.flatnonzero(called)
    scopes = [~called & (of == of[i]) for of in texts if of[i] and not TOTAL.fullmatch(of[i])]
    scopes += [np.all(scopes, axis=0)] if len(scopes) > 1 else []
    above, below = max(totals[totals < i], default=-1), min(totals[totals > i], default=len(called))
    scopes += [~called, (place > above) & (place < i), (place > i) & (place < below)]
    return any(of.any() and _same(sums[:, i], sums[:, of].sum(axis=1)) for of in scopes)


def _sums_of_others(sums: np.ndarray, rows: np.ndarray) -> set[int]:
    """Rows that are the sum of all others, of two at least that are not empty, in two columns at least."""
    filled = rows & (sums > 0).any(axis=0) if len(sums) else rows
    if len(sums) < 2 or filled.sum() < 3:
        return set()
    rest = (sums * rows).sum(axis=1, keepdims=True) - sums
    return set(np.flatnonzero(_same(sums, rest) & ((sums > 0).sum(axis=0) > 1) & rows).tolist())


def _sums_of_below(sums: np.ndarray, names: Texts, rows: np.ndarray) -> set[int]:
    """Rows that are the sum of the two or more rows below them, all of other names: a campaign above its ads."""
    at, found = np.flatnonzero(rows), set[int]()
    own = sums[:, at]
    growing = next((n for n in range(len(own)) if (own[n] > 0).all()), None)
    if len(sums) < 2 or len(at) < 3 or growing is None:
        return found
    before = np.concatenate([np.zeros((len(own), 1)), np.cumsum(own, axis=1)], axis=1)
    first = np.arange(len(at) - 2)
    # In a column without zeros the sums of rows below grow, so that one search finds where they reach the row's own.
    reached = np.searchsorted(before[growing], (before[growing, first + 1] + own[growing, first]) * (1 - 1e-9))
    for stop in (reached - 1, reached, reached + 1):
        fits = (stop >= first + 3) & (stop <= len(at))
        start, end = first[fits], stop[fits]
        same = _same(own[:, start], before[:, end] - before[:, start + 1])
        pairs = zip(start[same].tolist(), end[same].tolist(), strict=True)
        found |= {int(at[i]) for i, j in pairs if len({names[k] for k in at[i:j]}) == j - i}
    return found


def _asked(sheet: Sheet, texts: Sequence[Texts], doubt: Sequence[int], called: np.ndarray) -> InputError:
    i, names = doubt[0], texts[0]
    text = next((of[i] for of in texts if TOTAL.fullmatch(of[i])), names[i])
    why = "is called a total, and is not the sum of other rows" if called[i] else "is the sum of other rows"
    why = why if names[i] or called[i] else "has no name"
    more = f" (and {len(doubt) - 1:,} more such rows)" if len(doubt) > 1 else ""
    options = [text] if called[i] or not names[i] else list(dict.fromkeys(names[j] for j in doubt))[:6]
    drop, keep = (" ".join(f"--{option} {shlex.quote(x)}" for x in options) for option in ("drop", "keep"))
    keep = f"; {keep} plays it as an arm" if names[i] else ""
    return InputError(f"{sheet.source}, line {sheet.line[i]}: {shown(text)} {why}{more}; {drop} leaves it out{keep}")


# --- What a file is, and what its empty cells mean.


def _of_kind(sheet: Sheet, amounts: numbers.Amounts) -> Columns:
    """A file of counts whose every row is one pull is a log; a log whose rows count pulls is of counts."""
    columns, at, notes = sheet.columns, sheet.columns.at, sheet.report.others
    most = max(Counter(sheet.of("name")).values(), default=0)
    clicks = amounts.values.get("clicks", np.ones(len(sheet.line)))
    if columns.kind == "counts" and most > 1 and "clicks" in at and (clicks == 1).all():
        notes.append("every row is one pull: read as a log")
        return replace(columns, kind="log", is_value=False, pull_unit="row")
    if columns.kind != "log":
        return columns
    own = sheet.titles[at["clicks"]] if (clicks > 1).any() else ""
    if own and most == 1:
        _check_price(sheet)
        notes.append(f"read as counts, for {shown(own)} counts pulls and no arm has two rows")
        return replace(columns, kind="counts", is_value=True, pull_unit=pull_unit(columns.title["clicks"]))
    said = ""
    if own and (amounts.values["reward"] > 1).any():
        said = f"{shown(own)} is above 1, and names have several rows: if it counts a row's pulls, say --columns "
        said += f"{shlex.quote(f'clicks={own}')}; if a row is one pull, leave that column out of the file"
    elif most == 1 and not columns.given_log:
        said = "no name has two rows, so this is no log, and no column is known to count pulls. The columns are "
        said += f"{samples(sheet.titles, [sheet.row(i) for i in range(min(len(sheet.line), 2))])}. Say --columns "
        said += "clicks=… (what counts pulls), or mean_reward=… and mean_cost=… if the numbers are per pull"
    elif most > 1 and not columns.given_log and _is_table(sheet):
        said = f"every name has one row for each {'day' if 'time' in at else 'kind'}: is a row one pull, or does a "
        said += "column count pulls? Say --columns clicks=… (1: every row is one pull)"
    if said:
        raise InputError(f"{sheet.source}: {said}")
    return columns


def _check_price(sheet: Sheet) -> None:
    """A bare price beside a number of pulls may be that of one or of all."""
    at, cost = sheet.columns.at, sheet.columns.title.get("cost")
    if cost is not None and cost.is_any(("price", "fee", "preis", "prix", "precio", "preco", "prezzo", "prijs")):
        pulls, title = sheet.titles[at["clicks"]], sheet.titles[at["cost"]]
        options = (shlex.quote(f"clicks={pulls},{role}={title}") for role in ("price", "cost"))
        say = " or ".join(f"--columns {option}" for option in options)
        raise InputError(f"{sheet.source}: is {shown(title)} what one pull costs, or all of a row? Say {say}")


def _is_table(sheet: Sheet) -> bool:
    """Whether each name has one row a day, or one for each of a few words, as reports have and logs have not."""
    names = sheet.of("name")
    if "time" in sheet.columns.at:
        days = sheet.of("time")
        return not any(map(_HAS_CLOCK.search, days)) and coded(names, days)[1] == len(names)
    for n in _text_columns(sheet):
        words = len(set(sheet.cells[n]))
        if 1 < words < 10 and words * len(set(names)) == len(names):
            return coded(names, sheet.cells[n])[1] == len(names)
    return False


def _filled(kind: str, sheet: Sheet, amounts: numbers.Amounts) -> Sequence[FloatArray]:
    """Clicks, value and spent of all rows; in a file of counts what is empty is 0, but not what pulls cost. NaN is not
    known."""
    values, state, ones, changes = amounts.values, amounts.state, np.ones(len(sheet.line)), sheet.report.changes
    value = next(values[role] for role in ("conversions", "reward", "mean_reward") if role in values)
    spent = next(values[role] for role in ("spent", "cost", "mean_cost") if role in values)
    if kind == "log":
        of = next(state[role] for role in ("reward", "conversions") if role in state)
        empty, given = np.isin(of, (numbers.NOTHING, numbers.UNKNOWN)), of == numbers.NUMBER
        if empty.sum() > given.sum() > 0 and not (value[given] == 0).any():
            changes.append(f"{empty.sum():,} empty rewards read as 0: most are empty, and none is 0")
            return ones, np.where(empty, 0.0, value), spent
    if kind != "counts":
        return ones, value, spent
    unknown = np.any([x == numbers.UNKNOWN for x in state.values()], axis=0)
    for role in {"spent", "spent rate", "cost"} & state.keys():  # pulls that nobody priced are not free
        unknown |= (state[role] == numbers.NOTHING) & (np.nan_to_num(values["clicks"]) > 0)
    told = {
        f"{x} empty in {{}}: read as 0": ~unknown & (of == numbers.NOTHING)
        for x, of in state.items()
        if " rate" not in x
    }
    told["below 0 in {}: summed as it is"] = np.any([of == numbers.NEGATIVE for of in state.values()], axis=0)
    told["{} not summed: a number is not known"] = unknown
    changes += [text.format(sheet.lines(np.flatnonzero(of))) for text, of in told.items() if of.any()]
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in (values["clicks"], value, spent)]


# --- Names.


def _instances(sheet: Sheet, default_name: str) -> Texts:
    """The instances' names; tests of variants count as instances only where there are several, of two variants each."""
    names, default = sheet.of("name"), np.full(len(sheet.line), default_name, object)
    if "instance" not in sheet.columns.at:
        return default
    named = np.where(sheet.of("instance") == "", default, sheet.of("instance"))
    variants = Counter(test for test, _ in set(zip(named, names, strict=True)))
    alone = sheet.columns.by_test and (len(variants) < 2 or min(variants.values()) < 2)
    return default if alone else named


def _names(sheet: Sheet) -> Texts:
    """The arms' names; where an ad's name stands in several campaigns, with the campaign's before it."""
    names, over = sheet.of("name"), list[str]()
    for level in sheet.columns.levels:
        if coded(sheet.cells[level], names)[1] > coded(names)[1]:
            pairs = zip(sheet.cells[level], names, strict=True)
            names = np.array([f"{parent} / {own}" if parent else own for parent, own in pairs], object)
            over.append(shown(sheet.titles[level]))
    own = shown(sheet.titles[sheet.columns.at["name"]])
    sheet.report.others += [f"{own} repeats over {' and '.join(over)}: an arm is {shown(names[0])}"] if over else []
    return names


def _check_names(sheet: Sheet, columns: Columns, instances: Texts, arms: Texts) -> None:
    """Rows of one arm and time are added only if nothing else tells them apart, or the user says so."""
    if columns.kind == "log":  # other words in a log tell of a pull, but experiments are problems of their own
        tests = best_match(titles_of(sheet.titles), ("test",), columns.used())
        if tests is not None and coded(instances, arms, sheet.cells[tests])[1] > coded(instances, arms)[1]:
            _ask_to_add(sheet, "names stand in several", tests)
        return
    group, many = coded(instances, arms, sheet.of("time"))
    if many == len(group):
        return
    several = [of.tolist() for of in grouped(group, np.arange(len(group))) if len(of) > 1]
    for n in (n for n, title in enumerate(sheet.titles) if title and n not in columns.used()):
        cells = sheet.cells[n]
        differ: list[int] = next((of for of in several if len({cells[i] for i in of}) > 1), [])
        # Numbers that every arm repeats, such as windows of 7 and 30 days, tell rows apart as words do.
        each = {tuple(sorted(cells[i] for i in of)) for of in several}
        repeats = len(each) == 1 and len(several) > 1 and len(set(*each)) == len(differ)
        if differ and (repeats or not any(map(numbers.is_number, cells[:2000]))):
            texts = brief(", ".join(dict.fromkeys(cells[i] for i in differ)), 60)
            _ask_to_add(sheet, f"{shown(arms[differ[0]])} has several rows that differ in", n, f" ({texts})")
            return


def _ask_to_add(sheet: Sheet, what: str, n: int, texts: str = "") -> None:
    title = sheet.titles[n]
    say = " or ".join(f"--columns {shlex.quote(f'{role}={title}')}" for role in ("name", "instance"))
    sheet.note(InputError(f"{sheet.source}: {what} {shown(title)}{texts}; --sum adds them, {say} keeps them apart"))


def unit_of_rewards(rows: Rows) -> str:
    """What rewards are counted in: the file's own word, where it is not in plain form."""
    columns = rows.columns
    usual = "value" if columns.is_value else "conversions" if columns.kind in ("counts", "facebook") else "reward"
    role = next((role for role in ("conversions", "reward") if role in columns.at), "")
    is_rate = not role or (columns.kind == "counts" and columns.title[role].is_any(rank_of()["rate"]))
    if columns.kind not in ("counts", "log") or (columns.plain and not columns.is_value) or is_rate:
        return usual
    return brief(rows.sheet.titles[columns.at[role]], 40)
