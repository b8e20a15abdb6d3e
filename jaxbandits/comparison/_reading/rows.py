"""From cells to rows that count: what is skipped, what is a sum, what may be added.

A row that is no arm is skipped only where it is certain; where it is not, the file is refused with the option that
decides (``--drop``, ``--keep``, ``--sum``).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxbandits.comparison._reading.columns import Columns, pull_unit, samples
from jaxbandits.comparison._reading.numbers import (
    NEGATIVE,
    NOTHING,
    NUMBER,
    UNKNOWN,
    Amounts,
    check_cells,
    is_nothing,
    is_number,
    read_amounts,
)
from jaxbandits.comparison._reading.sheet import Problems, Sheet, lines_of
from jaxbandits.comparison._reading.times import Times, read_times
from jaxbandits.comparison._reading.titles import best_match, rank_of, titles_of
from jaxbandits.comparison.arms_table import FloatArray, NumberStyle
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
_ROUNDING = 5e-4  # of a sum


@dataclass(frozen=True)
class Choices:
    """What the user decided of rows: texts of cells whose rows are dropped, or are arms whatever they sum; add rows?"""

    drop: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    add: bool = False


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with a name each; N of them, in file order.

    Attributes:
        sheet: the same rows as cells, for messages.
        columns, style: what the columns are, how numbers are written.
        instance, arm: [N].
        clicks: float64 [N], pulls that the row sums; 1 for means and logs.
        value: float64 [N], what they brought (means: the mean reward); NaN where a mean or a pull has none.
        spent: float64 [N], what they cost (means: the mean cost); NaN as above.
        time: datetime64[us] [N], or None.
        ads: the Facebook file's own means, (reward, cost) [N] each; None for other files.
    """

    sheet: Sheet
    columns: Columns
    style: NumberStyle
    instance: list[str]
    arm: list[str]
    clicks: FloatArray
    value: FloatArray
    spent: FloatArray
    time: Times | None = None
    ads: tuple[FloatArray, FloatArray] | None = None

    def where(self, row: int, role: str) -> str:
        """The place of a cell, for messages."""
        label = self.sheet.label(role) if role in self.sheet.position else role
        return f"{self.sheet.source}, line {self.sheet.line[row]}, column {label}"

    def text(self, row: int, role: str) -> str:
        """The cell itself; empty if there is no such column."""
        return self.sheet.cells[self.sheet.position[role]][row] if role in self.sheet.position else ""


@dataclass(frozen=True)
class Notes:
    """What the user is told: what changes a number, and what else."""

    changes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def __add__(self, more: Notes) -> Notes:
        return Notes(self.changes + more.changes, self.others + more.others)


def read_rows(
    sheet: Sheet, default_name: str, decimal: str | None, choices: Choices, problems: Problems
) -> tuple[Rows, Notes]:
    """The rows of a file of means, counts or pulls, and notes; ``problems`` then holds what cannot be used."""
    sheet, notes = _without_extras(sheet, choices)
    amounts = read_amounts(sheet, decimal, problems)
    keep, told = _without_sums(sheet, amounts, choices, problems)
    notes += told + Notes(amounts.changes)
    found = np.flatnonzero(check_cells(sheet, amounts, keep, problems))
    sheet, amounts = sheet.only(found.tolist()), amounts.only(found)
    columns, told = _of_kind(sheet, amounts)
    notes += told
    (clicks, value, spent), told = _filled(columns.kind, sheet, amounts)
    notes += told
    if columns.is_value and columns.kind != sheet.columns.kind:  # then the reward may be a number of successes
        columns = replace(columns, is_value=not ((value % 1 == 0) & (value <= clicks)).all())
    arms, told = _names(sheet)
    instances = _instances(sheet, default_name)
    when = sheet.cells[columns.at["time"]] if "time" in columns.at else []
    time, note = read_times(when, _day_first(amounts.style)) if when else (None, "")
    _check_names(sheet, columns, instances, arms, when if time is not None else [], choices, problems)
    if note:
        notes += Notes((), (f"column {sheet.label('time')}: {note}",))
    made = Rows(sheet, columns, amounts.style, instances, arms, clicks, value, spent, time)
    return made, notes + told


def _day_first(style: NumberStyle) -> bool:
    return style.decimal == "," or style.symbol in _DAY_FIRST


# --- Rows that are no arms, whatever their numbers say.


def _without_extras(sheet: Sheet, choices: Choices) -> tuple[Sheet, Notes]:
    """Without the header once more, a second table, remarks below the table, and what the user drops."""
    numeric, notes, rows = set(sheet.columns.numeric().values()), list[str](), list(range(len(sheet.line)))
    again = {i for i, cell in enumerate(sheet.cells[0]) if cell == sheet.titles[0] and sheet.row(i) == sheet.titles}
    if again:
        notes.append(f"{_lines(sheet, sorted(again))} skipped: the header once more")
        rows = [i for i in rows if i not in again]
    for n, i in enumerate(rows):
        if n and sheet.line[i] in sheet.gaps and _is_header(sheet, rows[n:]):
            notes.append(f"lines {sheet.line[i]} to {sheet.line[rows[-1]]} skipped: another table")
            rows = rows[:n]
            break
    below = []
    while len(rows) > 1 and _is_remark(sheet, rows[-1], numeric):
        below.append(rows.pop())
    if below:
        notes.append(f"{_lines(sheet, below[::-1])} below the table skipped: no numbers")
    dropped = _dropped(sheet, choices.drop, numeric)
    if dropped:
        notes.append(f"{_lines(sheet, sorted(dropped))} dropped, as --drop says")
        rows = [i for i in rows if i not in dropped]
    return sheet.only(rows), Notes((), tuple(notes))


def _dropped(sheet: Sheet, texts: Iterable[str], numeric: set[int]) -> set[int]:
    """Rows with one of these texts: as a name if there is such a name (or none), else in any column of words."""
    found, name = set[int](), sheet.columns.at["name"]
    for text in texts:
        named = not text or text in sheet.cells[name]
        columns = [name] if named else [n for n in range(len(sheet.cells)) if n not in numeric]
        found |= {i for n in columns for i, cell in enumerate(sheet.cells[n]) if cell == text}
    return found


def _is_header(sheet: Sheet, rows: Sequence[int]) -> bool:
    """Whether another header stands here, perhaps behind lines of one cell, with a row below it."""
    filled = [i for i in rows if sum(map(bool, sheet.row(i))) > 1]
    return len(filled) > 1 and not any(map(is_number, sheet.row(filled[0])))


def _is_remark(sheet: Sheet, i: int, numeric: set[int]) -> bool:
    cells = sheet.row(i)
    return not any(cells[n] for n in numeric) and (sum(map(bool, cells)) < 2 or sheet.line[i] in sheet.gaps)


def _lines(sheet: Sheet, rows: Sequence[int] | np.ndarray) -> str:
    return lines_of([sheet.line[i] for i in rows])


# --- Sums. One rule: a row that is called a total and adds up is skipped; one that is called so, or adds up, but not
# both, is asked about.


def _without_sums(sheet: Sheet, amounts: Amounts, choices: Choices, problems: Problems) -> tuple[np.ndarray, Notes]:
    """Which rows are neither totals nor without a name, bool [N]; ``problems`` then has those that may be totals."""
    columns, count = sheet.columns, len(sheet.line)
    names = sheet.cells[columns.at["name"]]
    own = [names, *(sheet.cells[n] for n in _text_columns(sheet))]
    words = set[str]().union(*own)
    totals = {text for text in words if TOTAL.fullmatch(text)} - choices.keep
    called, kept = np.zeros(count, bool), np.zeros(count, bool)
    for which, texts in ((called, totals), (kept, words & choices.keep)):
        for cells in own if texts else ():
            which |= np.fromiter((cell in texts for cell in cells), bool, count)
    roles = () if columns.kind == "means" else ("clicks", "spent", "cost", "conversions", "reward")
    sums = np.array([np.nan_to_num(amounts.values[role]) for role in roles if role in amounts.values])
    others = ~(called | kept)
    looks_like = _sums_of_others(sums, others)
    looks_like |= _sums_of_below(sums, names, others) if columns.kind == "counts" else set()
    keep, skipped, doubt = ~called, list[int](), list[int]()
    for i in np.flatnonzero(called).tolist():
        (skipped if _adds_up(sums, own, called, i) else doubt).append(i)
    for i in (i for i in range(count) if not called[i] and columns.kind != "means" and not names[i].strip("-–—")):
        empty = all(is_nothing(sheet.cells[n][i]) for n in columns.numeric().values())
        if empty or i in looks_like:
            skipped.append(i)
            looks_like.discard(i)
        elif not names[i]:
            doubt.append(i)
        keep[i] = keep[i] and bool(names[i]) and i not in skipped
    doubt += sorted(looks_like)
    if doubt:
        problems.note(_asked(sheet, own, doubt, called))
    if not skipped:
        return keep, Notes()
    named = ", ".join(dict.fromkeys(shown(names[i] or "no name") for i in skipped[:3]))
    return keep, Notes((f"{_lines(sheet, sorted(skipped))} skipped: totals ({named})",))


def _text_columns(sheet: Sheet) -> list[int]:
    """Columns other than the name that hold words: what a row speaks of, such as a device, a window, a campaign."""
    used = {sheet.columns.at["name"], *sheet.columns.numeric().values()}
    found = []
    for n, title in enumerate(sheet.titles):
        words = dict.fromkeys(sheet.cells[n]) if title and n not in used else ()
        if any(not is_nothing(word) for word in words) and not any(map(is_number, list(words)[:2000])):
            found.append(n)
    return found


def _same(total: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Of each column whether it is the same but for rounding, and something at all."""
    near = np.abs(total - found) <= _ROUNDING * np.abs(found)
    return np.asarray(near.all(axis=0) & (total > 0).any(axis=0))


def _adds_up(sums: np.ndarray, texts: Sequence[Sequence[str]], called: np.ndarray, i: int) -> bool:
    """Is this row the sum of all others, of those that share its name or another text, or of those next to it?"""
    if not len(sums):
        return False
    others, totals = np.flatnonzero(~called).tolist(), np.flatnonzero(called).tolist()
    scopes = [[j for j in others if of[j] == of[i]] for of in texts if of[i] and not TOTAL.fullmatch(of[i])]
    if len(scopes) > 1:
        scopes.append(sorted(set.intersection(*map(set, scopes))))
    above = max((j for j in totals if j < i), default=-1)
    below = min((j for j in totals if j > i), default=len(called))
    scopes += [others, list(range(above + 1, i)), list(range(i + 1, below))]
    return any(of and _same(sums[:, i], sums[:, of].sum(axis=1)) for of in scopes)


def _sums_of_others(sums: np.ndarray, rows: np.ndarray) -> set[int]:
    """Rows that are the sum of all others, of two at least that are not empty, in two columns at least."""
    filled = rows & (sums > 0).any(axis=0) if len(sums) else rows
    if len(sums) < 2 or filled.sum() < 3:
        return set()
    rest = (sums * rows).sum(axis=1, keepdims=True) - sums
    return set(np.flatnonzero(_same(sums, rest) & ((sums > 0).sum(axis=0) > 1) & rows).tolist())


def _sums_of_below(sums: np.ndarray, names: Sequence[str], rows: np.ndarray) -> set[int]:
    """Rows that are the sum of the two or more rows below them, all of other names: a campaign above its ads."""
    at, found = np.flatnonzero(rows), set[int]()
    own = sums[:, at]
    growing = next((n for n in range(len(own)) if (own[n] > 0).all()), None)
    if len(sums) < 2 or len(at) < 3 or growing is None:
        return found
    before = np.concatenate([np.zeros((len(own), 1)), np.cumsum(own, axis=1)], axis=1)
    first = np.arange(len(at) - 2)
    reached = np.searchsorted(before[growing], (before[growing, first + 1] + own[growing, first]) * (1 - 1e-9))
    for stop in (reached - 1, reached, reached + 1):
        fits = (stop >= first + 3) & (stop <= len(at))
        start, end = first[fits], stop[fits]
        same = _same(own[:, start], before[:, end] - before[:, start + 1])
        for i, j in zip(start[same].tolist(), end[same].tolist(), strict=True):
            if len({names[k] for k in at[i:j]}) == j - i:
                found.add(int(at[i]))
    return found


def _asked(sheet: Sheet, texts: Sequence[Sequence[str]], doubt: Sequence[int], called: np.ndarray) -> InputError:
    i, names = doubt[0], texts[0]
    text = next((of[i] for of in texts if TOTAL.fullmatch(of[i])), names[i])
    why = "is called a total, and is not the sum of other rows" if called[i] else "is the sum of other rows"
    why = why if names[i] or called[i] else "has no name"
    more = f" (and {len(doubt) - 1:,} more such rows)" if len(doubt) > 1 else ""
    options = [text] if called[i] or not names[i] else list(dict.fromkeys(names[j] for j in doubt))[:6]
    drop = " ".join(f"--drop {shlex.quote(x)}" for x in options)
    keep = f"; {' '.join(f'--keep {shlex.quote(x)}' for x in options)} plays it as an arm" if names[i] else ""
    return InputError(f"{sheet.source}, line {sheet.line[i]}: {shown(text)} {why}{more}; {drop} leaves it out{keep}")


# --- What a file is, and what its empty cells mean.


def _of_kind(sheet: Sheet, amounts: Amounts) -> tuple[Columns, Notes]:
    """A file of counts whose every row is one pull is a log; a log whose rows count pulls is of counts."""
    columns, at = sheet.columns, sheet.columns.at
    most = max(Counter(sheet.cells[at["name"]]).values(), default=0)
    if columns.kind == "counts" and most > 1 and "clicks" in at and (amounts.values["clicks"] == 1).all():
        log = replace(columns, kind="log", is_value=False, pull_unit="row")
        return log, Notes((), ("every row is one pull: read as a log",))
    if columns.kind != "log":
        return columns, Notes()
    if "clicks" in at:
        clicks, own = amounts.values["clicks"], shown(sheet.titles[at["clicks"]])
        if most == 1 and (clicks > 1).any():
            _check_price(sheet)
            counts = replace(columns, kind="counts", is_value=True, pull_unit=pull_unit(columns.title["clicks"]))
            return counts, Notes((f"read as counts, for {own} counts pulls and no arm has two rows",))
        if (clicks > 1).any() and (amounts.values["reward"] > 1).any():
            option = shlex.quote(f"clicks={sheet.titles[at['clicks']]}")
            raise InputError(
                f"{sheet.source}: {own} is above 1, and names have several rows: if it counts a row's pulls, say "
                f"--columns {option}; if a row is one pull, leave that column out of the file"
            )
    if columns.given_log:
        return columns, Notes()
    if most == 1:
        raise InputError(
            f"{sheet.source}: no name has two rows, so this is no log, and no column is known to count pulls. "
            f"The columns are {samples(sheet.titles, [sheet.row(i) for i in (0, 1)[: len(sheet.line)]])}. Say "
            "--columns clicks=… (what counts pulls), or mean_reward=… and mean_cost=… if the numbers are per pull"
        )
    if most > 1 and _is_table(sheet):
        raise InputError(
            f"{sheet.source}: every name has one row for each {'day' if 'time' in at else 'kind'}: is a row one pull, "
            "or does a column count pulls? Say --columns clicks=… (1: every row is one pull)"
        )
    return columns, Notes()


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
    names = sheet.cells[sheet.columns.at["name"]]
    if "time" in sheet.columns.at:
        days = sheet.cells[sheet.columns.at["time"]]
        return not any(map(_HAS_CLOCK.search, days)) and len(set(zip(names, days, strict=True))) == len(names)
    for n in _text_columns(sheet):
        words = set(sheet.cells[n])
        if 1 < len(words) < 10 and len(words) * len(set(names)) == len(names):
            return len(set(zip(names, sheet.cells[n], strict=True))) == len(names)
    return False


_HAS_CLOCK = re.compile(r"\d:\d\d|^\d{10,}|^\d{1,6}(\.\d+)?$")  # a clock, seconds since 1970, or a round


def _filled(kind: str, sheet: Sheet, amounts: Amounts) -> tuple[tuple[FloatArray, FloatArray, FloatArray], Notes]:
    """Clicks, value and spent of all rows, and notes. In a file of counts what is empty is 0, but not what pulls cost;
    NaN is not known."""
    values, state, ones = amounts.values, amounts.state, np.ones(len(sheet.line))
    value = next(values[role] for role in ("conversions", "reward", "mean_reward") if role in values)
    spent = next(values[role] for role in ("spent", "cost", "mean_cost") if role in values)
    if kind == "log":
        of = next(state[role] for role in ("reward", "conversions") if role in state)
        empty, given = np.isin(of, (NOTHING, UNKNOWN)), of == NUMBER
        if empty.sum() > given.sum() > 0 and not (value[given] == 0).any():
            note = f"{empty.sum():,} empty rewards read as 0: most are empty, and none is 0"
            return (ones, np.where(empty, 0.0, value), spent), Notes((note,))
    if kind != "counts":
        return (ones, value, spent), Notes()
    unknown = np.any([x == UNKNOWN for x in state.values()], axis=0)
    for role in {"spent", "spent rate", "cost"} & state.keys():  # pulls that nobody priced are not free
        unknown |= (state[role] == NOTHING) & (np.nan_to_num(values["clicks"]) > 0)
    changes: tuple[str, ...] = ()
    for role, x in state.items():
        if (empty := ~unknown & (x == NOTHING)).any() and not role.endswith(" rate"):
            changes += (f"{role} empty in {_lines(sheet, np.flatnonzero(empty))}: read as 0",)
    if (refunds := np.any([x == NEGATIVE for x in state.values()], axis=0)).any():
        changes += (f"below 0 in {_lines(sheet, np.flatnonzero(refunds))}: summed as it is",)
    if unknown.any():
        changes += (f"{_lines(sheet, np.flatnonzero(unknown))} not summed: a number is not known",)
    clicks, value, spent = (np.where(unknown, np.nan, np.nan_to_num(x)) for x in (values["clicks"], value, spent))
    return (clicks, value, spent), Notes(changes)


# --- Names.


def _instances(sheet: Sheet, default_name: str) -> list[str]:
    """The instances' names; tests of variants count as instances only where there are several, of two variants each."""
    at, names = sheet.columns.at.get("instance"), sheet.cells[sheet.columns.at["name"]]
    if at is None:
        return [default_name] * len(names)
    named = [cell or default_name for cell in sheet.cells[at]]
    variants = Counter(test for test, _ in set(zip(named, names, strict=True)))
    alone = sheet.columns.by_test and (len(variants) < 2 or min(variants.values()) < 2)
    return [default_name] * len(names) if alone else named


def _names(sheet: Sheet) -> tuple[list[str], Notes]:
    """The arms' names; where an ad's name stands in several campaigns, with the campaign's before it."""
    at, names, over = sheet.columns.at["name"], sheet.cells[sheet.columns.at["name"]], list[str]()
    for level in sheet.columns.levels:
        pairs = list(zip(sheet.cells[level], names, strict=True))
        if len(set(pairs)) > len(set(names)):
            names = [f"{parent} / {own}" if parent else own for parent, own in pairs]
            over.append(shown(sheet.titles[level]))
    if not over:
        return names, Notes()
    note = f"{shown(sheet.titles[at])} repeats over {' and '.join(over)}: an arm is {shown(names[0])}"
    return names, Notes((), (note,))


def _check_names(
    sheet: Sheet, columns: Columns, instances: Sequence[str], arms: Sequence[str], when: Sequence[str],
    choices: Choices, problems: Problems,
) -> None:  # fmt: skip
    """Rows of one arm and time are added only if nothing else tells them apart, or the user says so."""
    if columns.kind == "means" or choices.add:
        return
    if columns.kind == "log":  # other words in a log tell of a pull, but experiments are problems of their own
        tests = best_match(titles_of(sheet.titles), ("test",), columns.used())
        if tests is not None and len(set(zip(instances, arms, sheet.cells[tests], strict=True))) > len(
            set(zip(instances, arms, strict=True))
        ):
            problems.note(_differing(sheet, "names stand in several", tests))
        return
    keys = list(zip(instances, arms, when or [""] * len(arms), strict=True))
    if len(set(keys)) == len(keys):
        return
    groups = defaultdict[tuple[str, str, str], list[int]](list)
    for i, key in enumerate(keys):
        groups[key].append(i)
    several = [rows for rows in groups.values() if len(rows) > 1]
    used = columns.used() - (set() if when else {columns.at.get("time", -1)})
    for n, title in enumerate(sheet.titles):
        cells = sheet.cells[n]
        differ = next((of for of in several if len({cells[i] for i in of}) > 1), None) if n not in used else None
        if differ is None or not title:
            continue
        # Numbers that every arm repeats, such as windows of 7 and 30 days, tell rows apart as words do.
        each = {tuple(sorted(cells[i] for i in of)) for of in several}
        repeats = len(each) == 1 and len(several) > 1 and len(set(*each)) == len(differ)
        if repeats or not any(map(is_number, cells[:2000])):
            texts = brief(", ".join(dict.fromkeys(cells[i] for i in differ)), 60)
            problems.note(
                _differing(sheet, f"{shown(arms[differ[0]])} has several rows that differ in", n, f" ({texts})")
            )
            return


def _differing(sheet: Sheet, what: str, n: int, texts: str = "") -> InputError:
    title = sheet.titles[n]
    say = " or ".join(f"--columns {shlex.quote(f'{role}={title}')}" for role in ("name", "instance"))
    return InputError(f"{sheet.source}: {what} {shown(title)}{texts}; --sum adds them, {say} keeps them apart")


def unit_of_rewards(rows: Rows) -> str:
    """What rewards are counted in: the file's own word, where it is not in plain form."""
    columns, sheet = rows.columns, rows.sheet
    role = next((role for role in ("conversions", "reward") if role in columns.at), "")
    if columns.kind == "counts" and (not columns.plain or columns.is_value):
        if role and not columns.title[role].is_any(rank_of()["rate"]):
            return brief(sheet.titles[columns.at[role]], 40)
        return "value" if columns.is_value else "conversions"
    if columns.kind == "log" and not columns.plain:
        return brief(sheet.titles[columns.at[role]], 40)
    return "reward" if columns.kind in ("means", "log") else "conversions"
