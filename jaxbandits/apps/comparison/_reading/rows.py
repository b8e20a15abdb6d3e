"""From cells to rows that count: what is skipped, what is a sum, what may be added.

A row that is no arm is skipped only where it is certain; where it is not, the file is refused with the option that
decides (``--drop``, ``--keep``, ``--sum``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxbandits._tables import NumberStyle, counted
from jaxbandits.apps.comparison._reading import numbers
from jaxbandits.apps.comparison._reading.columns import Columns, Texts, best_match, rank_of, samples, title, titles_of
from jaxbandits.apps.comparison._reading.sheet import Question, Sheet, coded, numbered, which
from jaxbandits.apps.comparison.arms_table import FloatArray
from jaxbandits.core.checks import InputError, brief, shown

TOTAL = re.compile(  # what a row of totals is called
    r"(?:(?:grand|overall|report|account|filtered|campaign|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sum|total g[eé]n[eé]ral|total geral|totale|totaal|totalt|suma|somme|soma|summe|gesamt|insgesamt"
    r"|gesamt(?:summe|ergebnis|wert)e?|eindtotaal|razem|итого|всего|合計|合计|总计"
    r"|[∑Σ]|overall|averages?|avg|mean|median|mittelwert|durchschnitt|moyennes?|promedio|m[eé]dia|gemiddelde)"
    r"(?:\s*[:;(/–-].*|\s+(?:all|of|for|general|account|campaigns?|rows?|last|previous|this)\b.*)?"
    r"|(?:results from|ergebnisse (?:aus|von)|résultats de|resultados de|risultati di) \d+ .*",
    re.IGNORECASE,
)
_DAY_FIRST = ("£", "GBP", "₹", "INR", "Rs", "Rs.", "AUD", "A$", "NZD", "NZ$", "ZAR", "CHF", "€", "EUR")
_HAS_CLOCK = re.compile(r"\d:\d\d|^\d{10,}|^\d{1,6}(\.\d+)?$")  # a clock, seconds since 1970, or a round
_MEAN = re.compile(
    r"(?:averages?|avg|mean|median|mittelwert|durchschnitt|moyennes?|promedio|m[eé]dia|gemiddelde)\b", re.I
)
_BETWEEN_WORDS = re.compile(r"[\s/:|>_–-]+")  # of a name that may begin with its parent's
_ENDS_IN_TOTAL = re.compile(r"(.+?)[\s:–-]+(?:sub-?)?(?:totals?|sum|summe|gesamt)", re.I)
_LETTERS = re.compile(r"[^\n0-9T:Z .,/+_-]")  # in other cells than times
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}", re.IGNORECASE)  # of ids
_ROUNDING = 5e-4  # of a sum


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
    spent2: FloatArray | None = None  # [N], of a second cost; a row in which it is not known is a gap


def read_rows(
    sheet: Sheet, default_name: str, decimal: str | None, drop: Iterable[str], keep: Iterable[str], add: bool
) -> Rows:
    """The rows of a file of means, counts or pulls; ``drop``, ``keep`` and ``add`` as in `read_arms`."""
    sheet = _without_extras(sheet, drop)
    amounts = numbers.read_amounts(sheet, decimal)
    keep = _without_sums(sheet, amounts, set(keep))
    sheet, amounts = sheet.only(np.flatnonzero(keep)), amounts.only(np.flatnonzero(keep))
    columns = _of_kind(sheet, amounts)
    usable = np.flatnonzero(numbers.check_cells(sheet, amounts, columns.kind))
    sheet, amounts = sheet.only(usable), amounts.only(usable)
    clicks, value, spent = _filled(columns.kind, sheet, amounts)
    if (spent2 := amounts.values.get("cost2")) is not None and columns.kind == "counts":
        spent2 = np.where(np.isnan(clicks), np.nan, np.nan_to_num(spent2))
    elif spent2 is not None:
        spent = np.where(np.isnan(spent2), np.nan, spent)
    default = np.full(len(sheet.line), default_name, object)
    instances, arms, time = sheet.of("instance") if "instance" in columns.at else default, _names(sheet), None
    asks = columns.kind != "means" and not add
    if "time" in columns.at:
        day_first = amounts.style.decimal == "," or amounts.style.symbol in _DAY_FIRST
        time, note = numbers.read_times(sheet.of("time"), day_first)
        note = f"column {sheet.label('time')}: {note}" if note else ""
        sheet.report.others += [note] if note else []
        if time is None and asks and coded(instances, arms)[1] < len(arms):
            say = "write it so, say --columns time=… for another column, or --sum, which takes the rows as they come"
            sheet.note(InputError(f"{sheet.source}, {note}; {say}"))
    if asks:
        _check_names(sheet, columns, instances, arms)
    return Rows(sheet, columns, amounts.style, instances, arms, clicks, value, spent, time, spent2=spent2)


# --- Rows that are no arms, whatever their numbers say.


def _without_extras(sheet: Sheet, drop: Iterable[str]) -> Sheet:
    """Without the header once more, a second table, remarks below the table, and what the user drops."""
    numeric, notes, name = set(sheet.columns.numeric().values()), sheet.report.others, sheet.of("name")
    again = [i for i in np.flatnonzero(sheet.cells[0] == sheet.titles[0]).tolist() if sheet.row(i) == sheet.titles]
    notes += [f"{sheet.lines(again)} skipped: the header once more"] if again else []
    rows = np.delete(np.arange(len(sheet.line)), np.array(again, np.int64)).tolist()
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
    for text in drop:  # a name if there is such a name (or none), else a cell of any column of words
        named = not text or text in name
        words = [name] if named else [cells for n, cells in enumerate(sheet.cells) if n not in numeric]
        dropped |= np.any([cells == text for cells in words], axis=0)
    notes += [f"{sheet.lines(np.flatnonzero(dropped))} dropped, as --drop says"] if dropped.any() else []
    rows = [i for i in rows if not dropped[i]]
    if not rows:
        raise InputError(f"{sheet.source}: no row is left; it must have at least two arms")
    return sheet.only(np.array(rows, np.int64))


# --- Sums. One rule: a row that is called a total and adds up is skipped; one that is called so, or is the sum of what
# its name or its place says, but not both, is asked about.


def _without_sums(sheet: Sheet, amounts: numbers.Amounts, keep: set[str]) -> np.ndarray:
    """Which rows are neither totals nor without a name, bool [N]; those that may be totals are a problem."""
    columns, names = sheet.columns, sheet.of("name")
    numeric = [sheet.cells[n] for n in columns.numeric().values()]
    sums = np.array([np.nan_to_num(amounts.values[role]) for role in amounts.totals]).reshape(
        len(amounts.totals), len(names)
    )
    first = _first_filled(sheet)
    kept = _is_any(names, keep) | _is_any(first, keep)
    by_name, nameless = _says_total(names) & ~kept, np.zeros_like(kept)
    said = (_says_total(first, "mean") | _says_total(sheet.of("time"), "mean")) & ~(kept | by_name)
    if columns.kind != "means":
        nameless = which(names, lambda text: not text.strip("-–—")) & ~(by_name | said | kept)
    called = by_name | said | nameless
    parents = [sheet.cells[n] for n in columns.levels]
    looks_like = _sums_of_others(sums, names, parents, ~(called | kept), columns.kind == "log")
    looks_like |= ~(called | kept) & _sums_of_indented(sums, sheet.indent)
    texts = [names, *(sheet.cells[n] for n in _text_columns(sheet))] if called.any() else []
    adds_up = _add_up(sums, texts, called | looks_like) & called
    if (no := said & ~adds_up).any():  # not all of a word add up, or are as large as a total: it is a category's
        most = sums[:, ~called].max(axis=1, initial=0, keepdims=True)
        called &= ~(said & _is_any(first, set(first[no & ~(sums >= most).all(axis=0)])))
        adds_up = _add_up(sums, texts, called | looks_like) & called
    _check_levels(sheet, sums[:, ~(called | kept)], ~(called | kept))
    nothing = nameless.copy()
    for i in np.flatnonzero(nameless).tolist():
        nothing[i] = all(numbers.is_nothing(of[i]) for of in numeric)
    skipped = np.flatnonzero(adds_up | nothing).tolist()
    if doubt := np.flatnonzero((called & ~(adds_up | nothing)) | looks_like).tolist():
        sheet.note(_asked(sheet, amounts, doubt, called))
    if skipped:
        named = ", ".join(dict.fromkeys(shown(names[i] or "no name") for i in skipped[:3]))
        sheet.report.changes.insert(0, f"{sheet.lines(skipped)} skipped: totals ({named})")
    return ~called


def _first_filled(sheet: Sheet) -> Texts:
    """Of each row the first cell that is not empty."""
    first = sheet.cells[0]
    for cells in sheet.cells[1:]:
        if not (first == "").any():
            break
        first = np.where(first == "", cells, first)
    return first


def _says_total(cells: Texts, but: str = "") -> np.ndarray:
    """Which cells are words for totals, or for a mean ``but`` where that is no total."""

    def is_total(text: str) -> bool:
        found = not text[:1].isdigit() and TOTAL.fullmatch(text)
        return bool(found) and not (but and _MEAN.match(text))

    if len(cells) > 1000 and not _LETTERS.search("\n".join(cells)):  # many times, all different
        return np.zeros(len(cells), bool)
    return which(cells, is_total)


def _is_any(cells: Texts, texts: Iterable[str]) -> np.ndarray:
    return np.any([np.zeros(len(cells), bool), *(cells == text for text in texts)], axis=0)


def _text_columns(sheet: Sheet) -> list[int]:
    """Columns other than the name that hold words: what a row speaks of, such as a device, a window, a campaign."""
    used = {sheet.columns.at["name"], *sheet.columns.numeric().values()}

    def says(n: int) -> bool:
        words = list(dict.fromkeys(sheet.cells[n]))
        return not all(map(numbers.is_nothing, words)) and not any(map(numbers.is_number, words[:2000]))

    return [n for n, title in enumerate(sheet.titles) if title and n not in used and says(n)]


def _same(total: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Of each row whether it is the same but for rounding, where it has something at all."""
    near = (np.abs(total - found) <= _ROUNDING * np.abs(found)) | (total == 0)
    return np.asarray(near.all(axis=0) & (total > 0).any(axis=0))


def _add_up(sums: np.ndarray, texts: Sequence[Texts], called: np.ndarray) -> np.ndarray:
    """Which rows are the sum of all that are not called totals, of those that share its name or another text, or of
    those between it and the next total."""
    found, rows = np.zeros_like(called), np.flatnonzero(called)
    if not (len(sums) and rows.size and texts):
        return found
    parts = sums * ~called
    until = np.concatenate([np.zeros((len(sums), 1)), np.cumsum(parts, axis=1)], axis=1)
    ends = np.concatenate([[0], rows, [len(called)]])
    scopes = [until[:, rows] - until[:, ends[:-2]], until[:, ends[2:]] - until[:, rows], until[:, [-1]]]
    found[rows] = np.any([_same(sums[:, rows], rest) for rest in scopes], axis=0)
    usable = np.array([(of != "") & ~_says_total(of) for of in texts], bool)[:, rows]
    patterns, which = np.unique(usable, axis=1, return_inverse=True)
    for n, pattern in enumerate(patterns.T):
        own, at = [of for of, use in zip(texts, pattern, strict=True) if use], rows[which.ravel() == n]
        for scope in [*([of] for of in own), *([own] * (len(own) > 1))]:
            code, many = coded(*scope)
            rest = np.array([np.bincount(code, column, many)[code[at]] for column in parts])
            found[at] |= _same(sums[:, at], rest)
    return found


def _sums_of_others(
    sums: np.ndarray, names: Texts, parents: Sequence[Texts], rows: np.ndarray, is_log: bool
) -> np.ndarray:
    """Rows that are the sum, in two columns if there are two, of two or more others that are not empty: of all; of all
    with its name, if every name has such a row; of all of the campaign that it is called after; of those whose names
    begin with its own, as a campaign's ads do."""
    filled = rows & (sums > 0).any(axis=0)
    wide = filled & ((sums > 0).sum(axis=0) >= min(2, len(sums) + is_log))
    everything = np.zeros(len(names), np.int64)
    found, (code, many) = np.zeros_like(rows), coded(names)
    for of, groups in ((everything, 1), (code, many), *map(coded, parents)):
        total = np.array([np.bincount(of, column * filled, groups)[of] for column in sums]).reshape(sums.shape)
        inside = wide & (np.bincount(of, filled, groups)[of] > 2) & _same(sums, total - sums)
        if of is code:
            inside &= not is_log and bool((np.bincount(of, inside, groups) > 0).all())
        found |= inside if of is everything or of is code else inside & np.any([names == x for x in parents], axis=0)
    own = np.array([np.bincount(code, column * filled, many) for column in sums]).reshape(len(sums), many)
    place = {names[i]: n for n, i in enumerate(np.unique(code, return_index=True)[1])}
    below = dict[str, list[str]]()
    for name in place:
        for cut in _BETWEEN_WORDS.finditer(name):
            if (parent := name[: cut.start()]) in place:
                below.setdefault(parent, []).append(name)
        if (ends := _ENDS_IN_TOTAL.fullmatch(name)) and ends[1] in place:
            below.setdefault(name, []).extend((ends[1], ends[1]))
    for parent, children in below.items():
        rest = own[:, [place[child] for child in dict.fromkeys(children)]].sum(axis=1, keepdims=True)
        at = place[parent]
        if len(children) > 1 and _same(own[:, [at]], rest)[0] and (own[:, at] > 0).sum() >= min(2, len(sums) + is_log):
            found |= wide & (code == at)
    return found


def _sums_of_indented(sums: np.ndarray, indent: np.ndarray) -> np.ndarray:
    """Rows that are the sum of the rows indented below them, if all that have such rows are."""
    found = np.zeros(len(indent), bool)
    if not len(sums) or not (indent != indent[:1]).any():
        return found
    for i in np.flatnonzero(indent[1:] > indent[:-1]).tolist():
        inside = indent[i + 1 :] > indent[i]
        below = np.arange(i + 1, i + 1 + (len(inside) if inside.all() else int(np.argmin(inside))))
        rest = sums[:, below[indent[below] == indent[below].min()]].sum(axis=1, keepdims=True)
        if not (found[i] or _same(sums[:, [i]], rest)[0]):
            return np.zeros_like(found)
        found[i] = True
    return found


def _check_levels(sheet: Sheet, sums: np.ndarray, rows: np.ndarray) -> None:
    """Rows of campaigns and rows of their ads in one column of levels are asked about, if they have one sum."""
    for n in (n for n in range(len(sheet.titles)) if n not in sheet.columns.used()):
        cells = sheet.cells[n]
        if len(set(cells[:2000])) > 8 or not any(map(_level, set(cells[:2000]))):
            continue
        levels = [text for text in sorted(set(cells), key=_level) if _level(text)]
        totals = {text: sums[:, (cells == text)[rows]].sum(axis=1) for text in levels}
        equal = [text for text in levels if any(_same(totals[text], of) for x, of in totals.items() if x != text)]
        if equal:
            others = {text: [x for x in dict.fromkeys(cells) if x not in ("", text)] for text in equal}
            ways = [({"drop": of}, f"leaves the rows of {shown(text)}") for text, of in others.items()]
            what = f"rows of several levels stand in {shown(sheet.titles[n])}, which add up to the same"
            sheet.note(Question(f"{sheet.source}: {what} ({', '.join(map(shown, equal))})", ways))


def _level(text: str) -> int:
    """How coarse the rows are that a column of levels calls so, 1 is finest; 0 if it is no such word."""
    one = title(text)
    return one.rank("name") if one.rank_name("name") == "ad" else 99 if one.key == "account" else 0


def _asked(sheet: Sheet, amounts: numbers.Amounts, doubt: Sequence[int], called: np.ndarray) -> InputError:
    """The question whether the first of these rows is a total; all of one kind are answered by one command."""
    names, i = sheet.of("name"), doubt[0]
    doubt = [j for j in doubt if bool(called[j]) == bool(called[i]) and bool(names[j]) == bool(names[i])]
    text = next((x for x in (names[i], _first_filled(sheet)[i]) if called[i] and TOTAL.fullmatch(x)), names[i])
    more = f" (and {len(doubt) - 1:,} more such rows)" if len(doubt) > 1 else ""
    options = list(dict.fromkeys([text] if called[i] and text == names[i] else [names[j] for j in doubt]))
    whole = np.isin(np.flatnonzero(_is_any(names, options)), doubt).all()  # else rows that are arms would go as well
    role = next((role for role in ("spent", "cost", "mean_cost") if role in amounts.values), "")
    ways: list[tuple[Mapping[str, Any], str]] = []
    why = "is the sum of other rows"
    if not names[i].strip("-–—"):
        why = "has no name"
        ways = [({"drop": options}, "leaves it out")] if len(doubt) == 1 else []
        more += "" if ways else ": a name that stands once for several rows must stand in each"
    else:
        if called[i]:
            of = np.nan_to_num(amounts.values[role]) if role and sheet.columns.kind != "means" else np.zeros(0)
            parts = f" ({amounts.style.money(of[i])} of {amounts.style.money(of.sum())})" if of.size else ""
            why = f"is called a total, and is not the sum of other rows{parts}"
        ways = [({"drop": options}, "leaves it out")] if whole else []
        ways.append(({"keep": options}, "plays it as an arm"))
    return Question(f"{sheet.source}, line {sheet.line[i]}: {shown(text)} {why}{more}", ways)


# --- What a file is, and what its empty cells mean.


def _of_kind(sheet: Sheet, amounts: numbers.Amounts) -> Columns:
    """What the file is, now that its numbers are known: counts whose every row is one pull are a log."""
    columns, at = sheet.columns, sheet.columns.at
    most = max(Counter(sheet.of("name")).values(), default=0)
    clicks = amounts.values.get("clicks", np.ones(len(sheet.line)))
    if columns.kind == "counts" and "clicks" in at and most > 1 and (clicks == 1).all():
        sheet.report.others.append("every row is one pull: read as a log")
        return replace(columns, kind="log", is_value=False, pull_unit="row")
    if columns.kind == "means" or columns.given_log or "clicks" in columns.given:
        return columns
    if columns.kind == "counts":
        if columns.pull_unit in ("view", "impression"):
            _check_unknown(sheet, amounts)
        if most == 1 or not columns.title["conversions"].is_any(rank_of()["reward"]):
            return columns  # else the reward may be one pull's
    own, why = sheet.titles[at["clicks"]] if "clicks" in at else "", ""
    if most == 1:
        why = "no name has two rows, so this is no log"
    elif own and (clicks > 1).any():
        why = f"{shown(own)} is above 1, and names have several rows"
    elif _is_table(sheet):
        why = f"every name has one row for each {'day' if 'time' in at else 'kind'}"
    if why:
        rows = [sheet.row(i) for i in range(min(len(sheet.line), 2))]
        say = "clicks=… (what counts pulls, or 1: every row is one) with cost=… (of all) or price=… (of one); or "
        say += f"mean_reward=… and mean_cost=…. The columns are {samples(sheet.titles, rows)}"
        raise InputError(f"{sheet.source}: {why}: is a row one pull, or does a column count pulls? Say --columns {say}")
    return columns


def _check_unknown(sheet: Sheet, amounts: numbers.Amounts) -> None:
    """Beside impressions the price of a click, and a column that is not known and may count clicks, are asked about."""
    columns, words = sheet.columns, set[str]().union(*rank_of().values())
    least = 0 if columns.is_value else np.nan_to_num(amounts.values["conversions"])
    for n, one in enumerate(titles_of(sheet.titles)):
        may_be = not one.is_any(words) and sheet.titles[n] != ""
        if may_be:
            (found,), _, _ = numbers.read_numbers([sheet.cells[n]], [True], sheet.separator, amounts.style.decimal)
            between = (least <= found.values) & (found.values <= amounts.values["clicks"])
            may_be = bool((between & (found.values % 1 == 0)).all())
        if n not in columns.used() and (may_be or one.rank("price") >= 0):
            said = f"a pull is {shown(sheet.titles[columns.at['clicks']])} only where nothing counts clicks, and "
            said += f"{shown(sheet.titles[n])} may tell of them: say --columns clicks=…"
            raise InputError(f"{sheet.source}: {said}")


def _is_table(sheet: Sheet) -> bool:
    """Whether each name has one row a day, or one for each of a few words, as reports have and logs have not."""
    names, times = sheet.of("name"), sheet.of("time")
    if "time" in sheet.columns.at:  # a grid of names and clocks, or rounds, is a table, too
        one_a_day = not any(map(_HAS_CLOCK.search, times)) and coded(names, times)[1] == len(names)
        return one_a_day or _is_grid(names, times)
    return any(_is_grid(names, sheet.cells[n]) and len(set(sheet.cells[n])) < 10 for n in _text_columns(sheet))


def _is_grid(names: np.ndarray, cells: Texts) -> bool:
    """Whether each name has one row for each of several cells."""
    many = len(numbered(names)[1])
    if len(cells) % many or len(cells) == many:
        return False
    words = len(numbered(cells)[1])
    return 1 < words == len(cells) // many and coded(names, cells)[1] == len(cells)


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
    for role in {"spent", "cost"} & state.keys():  # pulls that nobody priced are not free
        unknown |= (state[role] == numbers.NOTHING) & (np.nan_to_num(values["clicks"]) > 0)
    told = {
        f"{x} empty in {{}}: read as 0": ~unknown & (of == numbers.NOTHING)
        for x, of in state.items()
        if x not in sheet.columns.rates
    }
    told["below 0 in {}: summed as it is"] = np.any([of == numbers.NEGATIVE for of in state.values()], axis=0)
    told["{} not summed: a number is not known"] = unknown
    changes += [text.format(sheet.lines(np.flatnonzero(of))) for text, of in told.items() if of.any()]
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in (values["clicks"], value, spent)]


# --- Names.


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
    _tell_of_equal(sheet, instances, arms)
    arm, (row, many), ends = coded(instances, arms)[0], coded(instances, arms, sheet.of("time")), sheet.of("end")
    if "end" in columns.at and "time" in columns.at and coded(arm, ends)[1] < coded(row, ends)[1]:
        _ask_to_add(sheet, "rows of one name overlap, for they differ only in", columns.at["time"])
        return
    for n in (n for n, text in enumerate(sheet.titles) if text and n not in columns.used()):
        cells, differ = sheet.cells[n], many < len(row) and coded(row, sheet.cells[n])[1] > many
        # Numbers that every arm repeats, such as windows of 7 and 30 days, tell rows apart as words do.
        is_text = not any(map(numbers.is_number, cells[:2000]))
        if (differ and (is_text or _is_grid(row, cells))) or (is_text and _is_grid(arm, cells)):
            texts = brief(", ".join(dict.fromkeys(cells)), 60)
            _ask_to_add(sheet, "rows of one name differ in", n, f" ({texts})")
            return


def _tell_of_equal(sheet: Sheet, instances: Texts, arms: Texts) -> None:
    """Note ids that a spreadsheet rounded, by which two arms may be one, and rows that are equal in every cell."""
    rounded = [name for name in dict.fromkeys(arms) if _ROUNDED.fullmatch(name)]
    if rounded:
        what = f"{shown(sheet.titles[sheet.columns.at['name']])} holds ids that a spreadsheet rounded"
        sheet.report.changes.insert(0, f"{what}, such as {shown(rounded[0])}: ads of one rounded id are one arm here")
    if coded(instances, arms)[1] < len(arms):
        _, first, count = np.unique(coded(*sheet.cells)[0], return_index=True, return_counts=True)
        if (twice := np.sort(first[count > 1])).size:
            again = counted(int(count.sum() - count.size), "row")
            sheet.report.changes.insert(0, f"{sheet.lines(twice)}: {again} more equal in every cell, added as well")


def _ask_to_add(sheet: Sheet, what: str, n: int, texts: str = "") -> None:
    title = sheet.titles[n]
    ways: list[tuple[Mapping[str, Any], str]] = [({"add": True}, "adds them")]
    ways += [({"columns": {"instance": title}}, "keeps them apart")]
    sheet.note(Question(f"{sheet.source}: {what} {shown(title)}{texts}", ways))


def unit_of_rewards(rows: Rows) -> str:
    """What rewards are counted in: the file's own word, where it is not in plain form."""
    columns = rows.columns
    usual = "value" if columns.is_value else "conversions" if columns.kind in ("counts", "facebook") else "reward"
    role = next((role for role in ("conversions", "reward") if role in columns.at), "")
    is_rate = not role or role in columns.rates
    if columns.kind not in ("counts", "log") or (columns.plain and not columns.is_value) or is_rate:
        return usual
    return brief(rows.sheet.titles[columns.at[role]], 40)


# --- The public Facebook ads file: its rows that are arms, by the published rule; with its defect repaired or not.


_ZERO_REWARD_BECOMES = 0.01
_UNREADABLE = "with unreadable cells"


def facebook_rows(sheet: Sheet, repair: bool) -> Rows:
    """The ads that are arms, in file order, with a note on the others; rules in `arms_file.read_arms`."""
    at, dropped, repaired, ads = sheet.columns.at, Counter[str](), 0, list[tuple]()
    lines = zip(sheet.line, zip(*sheet.cells, strict=True), strict=True)
    rows = [(*cells, "one more") if line in sheet.wide else cells for line, cells in lines]
    start, width = at["campaign_id"], at["age"] - at["campaign_id"]
    for i, (cells, campaign) in enumerate(zip(rows, _campaigns(rows, at), strict=True)):
        if _is_shifted(cells, at):
            if not repair or campaign is None:
                dropped[f"shifted {width} columns left" + (", campaign unknown" if repair else "")] += 1
                continue
            cells = (*cells[:start], campaign, *[""] * (width - 1), *cells[start : len(cells) - width])
            repaired += 1
        group = [cells[at[column]] for column in ("campaign_id", "age", "gender")]
        own = [numbers.plain_number(cells[at[column]]) for column in ("clicks", "total_conversion", "spent")]
        if why := _unusable(own) if all(group) and len(cells) <= len(sheet.titles) else _UNREADABLE:
            dropped[why] += 1
            continue
        name = (cells[at["ad_id"]] if "ad_id" in at else "") or f"line {sheet.line[i]}"
        ads.append((i, "/".join(group), name, *own))
    sizes = Counter(ad[1] for ad in ads)
    kept = [ad for ad in ads if sizes[ad[1]] > 1]
    dropped["alone in its group"] = len(ads) - len(kept)
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    how = f" (moved {width} columns right)" if repaired else ""
    why = f" ({reasons})" if reasons else ""
    note = f"{len(rows)} rows read, {repaired} repaired{how}, {dropped.total()} dropped{why}, {len(kept)} arms kept"
    if not kept:
        raise InputError(f"{sheet.source}: no (campaign_id, age, gender) has two usable ads; {note}")
    sheet.report.changes.append(note)
    # the published rule makes every row an arm, also where one ad has several rows
    times = Counter(ad[1:3] for ad in kept)
    names = [f"{ad[2]} (line {sheet.line[ad[0]]})" if times[ad[1:3]] > 1 else ad[2] for ad in kept]
    place, instance, _, *found = (np.array(of) for of in zip(*kept, strict=True))
    clicks, value, spent = found
    means = np.where(value == 0, _ZERO_REWARD_BECOMES, value / clicks), spent / clicks
    arm, instance = np.array(names, object), instance.astype(object)
    return Rows(sheet.only(place), sheet.columns, NumberStyle(), instance, arm, clicks, value, spent, None, means)


def _unusable(own: Sequence[float | None]) -> str:
    """Why these clicks, conversions and costs make no arm, or the empty text."""
    clicks, conversions, spent = own
    if clicks is None or spent is None or conversions is None:
        return _UNREADABLE
    if spent == 0:
        return "with nothing spent"
    if clicks < conversions:
        return "with more conversions than clicks"
    return "with spending but no clicks" if clicks == 0 else ""


def _is_shifted(cells: Sequence[str], at: Mapping[str, int]) -> bool:
    """Whether the age stands in the column of the campaign id, and as many cells are blank at the end."""
    width = at["age"] - at["campaign_id"]
    if width < 1 or any(cells[-width:]):
        return False
    return re.fullmatch(r"\d+\s*-\s*\d+|\d+\+", cells[at["campaign_id"]]) is not None


def _campaigns(rows: Sequence[Sequence[str]], at: Mapping[str, int]) -> list[str | None]:
    """Campaign of every row: its own, or the one above if shifted, unless the one below is another."""
    own = [None if _is_shifted(cells, at) else cells[at["campaign_id"]] or None for cells in rows]

    def carried(ids: list[str | None]) -> list[str | None]:
        latest: str | None = None
        return [latest := latest if i is None else i for i in ids]

    above, below = carried(own), carried(own[::-1])[::-1]
    return [a if b in (None, a) else None for a, b in zip(above, below, strict=True)]
