"""Read the arms of budgeted bandits from a CSV file or a data frame, whose columns the user names.

Plain titles need no names; rows that may be no arms, or one arm twice, are refused with the option
that decides. See docs/arms-files.md.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxbandits._tables import NumberStyle
from jaxbandits.apps.comparison.arms_sheet import (
    MAY_BE,
    NOTHING,
    NUMERIC,
    ROLES,
    SIGN,
    UNKNOWN,
    Sheet,
    find_roles,
    is_empty,
    is_number,
    key,
    passes,
    read_numbers,
    read_sheet,
)
from jaxbandits.apps.comparison.arms_table import (
    NO_EVIDENCE,
    ArmsTable,
    Daily,
    Evidence,
    FloatArray,
    Instance,
    KeptOut,
    Pulls,
)
from jaxbandits.core.checks import bad, brief, positive_number, quoted

_SHARE = 0.99  # of its bound, which the largest mean of a file of means or counts has
_TOTAL = re.compile(
    r"(?:(?:grand|overall|report|account|campaign|filtered|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sums?|summe|gesamt\w*|insgesamt|somme|suma|totale|totaal|razem|average|avg|mean)"
    r"(?:\s*[.:;,(/–—-].*|\s+(?:all|of|for|general|account|campaigns?|rows?|last|this)\b.*)?"
    r"|.*[\s:–-](?:sub-?)?(?:totals?|sum|summe|gesamt)",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{1,4}[-./]\d{1,2}(?:[-./]\d{0,4})?(?:[T ].*)?|\d{8}|\w{3,9}\.? \d.*"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    re.ASCII | re.IGNORECASE,
)
_TEST = re.compile(r"(?:experiment|test)(?:[ _](?:name|id))?")
_ID = re.compile(r"(?:^|[\s_-])(?:id|nr|no)\b", re.IGNORECASE)
_ROUNDED = re.compile(r"\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}", re.IGNORECASE)  # of ids
_COST, _SCORE = (
    re.compile(rf"{x}[\s_:|.-]+(.+)|(.+?)[\s_:|.-]+{x}", re.IGNORECASE)
    for x in (r"(?:total[_ ])?cost", "(?:score|reward)")
)


def read_arms(
    source: Any,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    drop: Sequence[str] = (),
    wide: bool = False,
    decimal: str | None = None,
    encoding: str | None = None,
    reward_max: float | None = None,
    cost_max: float | None = None,
) -> ArmsTable:
    """Read arms: means as given, counts (reward / pulls and cost / pulls), or a log's averages.

    In a file of counts the rows of a name are summed (days); in a log each row is a pull, and one
    without reward or cost is a gap. Arms without pulls or cost are kept out, and told. The bounds
    that divide rewards and costs into [0, 1], where none is given, are one pair for the file: 1, or
    the largest value (log) or the largest mean / 0.99 where that is above 1.

    Args:
        source: a CSV file (or one packed by gzip, bzip2 or xz), ``-`` for standard input, or a
            pandas data frame.
        columns: the titles of name, pulls, reward and cost (counts; without pulls a log), or name,
            mean_reward and mean_cost; perhaps instance, time, cost2 (a second cost), and over (what
            rows of an arm are summed over). Several titles, ``"Campaign+Ad"``, name arms together.
            A number as cost or cost2 is what every pull costs; ``pulls="1"``: every row is a pull.
            ``conversions`` is a reward that a pull brings once at most.
        drop: rows of this name, or else with this cell, are left out; with wide columns, too.
        wide: the file is a table of requests: a row is one, that all arms were tried on; an arm has
            a column of what it brought, and one of what that cost (``gpt4`` and ``gpt4_cost``).
        decimal: the decimal sign, "." or ","; None to tell it from the numbers.
        encoding: of the file's text; None to tell UTF-8, UTF-16 and Latin-1 apart.
        reward_max: bound of the rewards in the user's unit per pull.
        cost_max: the same for costs.

    Raises:
        InputError: columns are not known (the message has all of them, and a command); a cell is
            not what it must be; a row may be a total; rows or names cannot be told apart.

    Example:
        >>> import pandas
        >>> ads = pandas.DataFrame({"Ad": ["a", "b"], "clicks": [10, 20], "Kosten": ["5,50 €", "8 €"], "Sales": [1, 2]})
        >>> table = read_arms(ads, columns={"name": "Ad", "reward": "Sales", "cost": "Kosten"})
        >>> table.instances[0].mean_cost.tolist(), table.style.money(5.5)
        ([0.55, 0.4], '5,50 €')
    """
    bounds = [
        value if value is None else positive_number(f"{name}_max (--{name}-max)", value)
        for name, value in (("reward", reward_max), ("cost", cost_max))
    ]
    if decimal not in (None, ".", ","):
        raise bad("decimal", decimal, "'.' or ','")
    if isinstance(drop, str) or not all(isinstance(text, str) for text in drop):
        raise bad("drop", drop, "a list of names or cells ('' for rows without a name)")
    for role, title in (columns or {}).items():
        if role not in ROLES:
            raise bad("columns", role, f"one of {', '.join(ROLES)}")
        if not title or not all(isinstance(x, str) and x.strip() for x in [title, *title][-1:]):
            raise bad("columns", title, f"the title of the column that is {role}")
    sheet = read_sheet(source, columns or {}, wide, encoding)
    if wide:
        _melt(sheet, drop)
    else:
        find_roles(sheet)
        numeric = {n for role in NUMERIC for n in sheet.at.get(role, ())}
        _leave_out(sheet, drop, numeric)
    return _table(_rows(sheet, decimal, wide), bounds)


class _Rows(NamedTuple):
    """N rows with a name each, in file order."""

    sheet: Sheet
    code: np.ndarray  # [N], the number of each row's arm
    arms: list[tuple[str, str]]  # of each number the instance and the name
    pulls: FloatArray  # [N], that the row sums; 1 for means and logs
    value: FloatArray  # [N], what they brought; NaN where it is not known
    spent: FloatArray  # [N], what they cost; NaN as above
    style: NumberStyle
    units: tuple[str, str, str]  # of a pull, of rewards, of a second cost
    is_count: bool  # a pull brings 1 at most
    spent2: FloatArray | None
    time: np.ndarray | None


def _rows(sheet: Sheet, decimal: str | None, wide: bool) -> _Rows:
    """The rows that count, with their numbers."""
    kind, at = sheet.kind, {role: sheet.at[role][0] for role in NUMERIC if role in sheet.at}
    numbers, style = read_numbers(sheet, at, decimal)
    names, size = sheet.texts("name"), len(sheet.line)
    pulls = numbers.get("pulls", np.ones(size))
    for role, constant in sheet.constant.items():
        numbers[role] = constant * np.nan_to_num(pulls)
        sheet.changes.append(f"every pull costs {constant:g} ({role}), as --columns says")
    value, spent = (numbers[x if kind != "means" else f"mean_{x}"] for x in ("reward", "cost"))
    spent2 = numbers.get("cost2")
    if kind == "counts":
        title = sheet.titles[at["pulls"]]
        if (
            "pulls" not in sheet.columns
            and "clicks" not in sheet.columns
            and pulls.max() <= 1 > pulls.min()
        ):
            say = f"--columns pulls={title} (it counts pulls) or pulls=1 (every row is one)"
            raise sheet.error(f"{quoted(title)} is never above 1; say {say}")
        if not (np.min([pulls, value, spent]) >= 0):
            pulls, value, spent = _filled(sheet, at, pulls, value, spent)
        spent2 = (
            None if spent2 is None else np.where(np.isnan(pulls), np.nan, np.nan_to_num(spent2))
        )
    elif kind == "log":
        spent = spent if spent2 is None else np.where(np.isnan(spent2), np.nan, spent)
        filled = value[~np.isnan(value)]
        if (
            filled.size < size
            and filled.min(initial=np.inf) > 0
            and (2 * filled.size < size or np.ptp(filled) == 0)
        ):
            raise sheet.error(
                f"{sheet.lines(np.isnan(value))}: no reward, and no reward is 0; write the 0s"
            )
    stem = "stdin" if sheet.path == "-" else re.sub(r".*[\\/]|\.\w+$", "", sheet.path or "data")
    instance = sheet.texts("instance") if "instance" in sheet.at else np.full(size, stem, object)
    pairs = list(zip(instance.tolist(), names.tolist(), strict=True))
    number = {pair: n for n, pair in enumerate(dict.fromkeys(pairs))}
    code = np.fromiter(map(number.__getitem__, pairs), np.int64, size)
    time = _times(sheet, style) if "time" in sheet.at else None
    _check_names(sheet, instance, names)
    if kind != "means":
        amounts = [value, spent] if kind == "log" else [pulls, value, spent]
        _refuse_sums(sheet, names, code, wide, np.array([x for x in amounts if x.min() < x.max()]))
    reward = "reward" if kind == "means" else sheet.titles[sheet.at["reward"][0]]
    is_count = kind == "counts" and key(reward) in ("conversion", "conversions")
    reward = "conversions" if is_count else brief(reward, 40)
    pull = "request" if wide else "row" if kind == "log" else "pull"
    if wide and "cost" in sheet.constant and reward == "reward" and value.max() > 1:
        name = names[int(np.argmax(value))]
        say = f"--drop {shlex.quote(name)}, or call each column of scores as {name}_score"
        raise sheet.error(f"{quoted(name)} goes above 1, and may be no score: {say}")
    if kind == "counts" and re.fullmatch(r"[a-z ]+s", title := sheet.titles[at["pulls"]].lower()):
        pull = title[:-1]
    if sheet.columns:
        used = [
            f"{role} = {quoted(sheet.titles[n])}" for role, found in sheet.at.items() for n in found
        ]
        sheet.notes.append(f"columns: {', '.join(used)}")
    if (unused := sheet.unused()) or len(number) < size or kind == "log":
        _check_apart(sheet, code, len(number) < size, time)
    if unused:
        sheet.notes.append(
            f"columns not used: {quoted(', '.join(sheet.titles[n] for n in unused))}"
        )
    units = pull, reward, sheet.titles[at["cost2"]] if "cost2" in at else f"{pull}s"
    is_count |= "conversions" in sheet.columns
    return _Rows(sheet, code, [*number], pulls, value, spent, style, units, is_count, spent2, time)


def _leave_out(sheet: Sheet, drop: Sequence[str], numeric: set[int]) -> None:
    """Without what the user drops, the header once more, and rows without any number; a row that is
    called a total in its name or first cell, or that has no name, is refused.
    """
    for n, column in enumerate(sheet.cells):
        if n not in numeric and column.dtype != object:  # a frame's
            sheet.cells[n] = np.array(["" if x != x else f"{x:.15g}" for x in column], object)
    texts = [n for n in range(len(sheet.cells)) if sheet.cells[n].dtype == object]
    if texts:
        again = np.all([sheet.cells[n] == sheet.titles[n] for n in texts], axis=0)
        if again.any():
            sheet.only(~again, "skipped: the header once more")
    names = sheet.at.get("name", ())[-1:]
    for text in map(str.strip, drop):
        places = (*names, *(set(texts) - numeric))
        same = [sheet.cells[n] == text if text else is_empty(sheet.cells[n]) for n in places]
        by_name = bool(names) and (same[0].any() or not text)
        found = same[0] if by_name else np.any(same or [[False]], axis=0)
        if not found.any():
            raise bad("drop", text, "a name or a cell of the file")
        sheet.only(~found, "dropped, as --drop says")
    if (blank := np.all([is_empty(sheet.cells[n]) for n in numeric], axis=0)).any():
        sheet.only(~blank, "skipped: no numbers")
    size = len(sheet.line)
    if not size:
        raise sheet.error("no row is left; it must have at least two arms")
    first, edge = np.full(size, "", object), np.arange(size)
    looked_at = [(sheet.cells[n], edge) for n in sheet.at.get("name", ())]
    for n in texts:
        first = np.where(first == "", sheet.cells[n], first)
    if sheet.kind == "log":  # a prompt may begin so
        edge = edge[[0, *range(max(size - 3, 1), size)]]
    for column, rows in (*looked_at, (first, edge)):
        if (total := passes(column[rows], _TOTAL.fullmatch)).any():
            i = int(rows[np.argmax(total)])
            say = f"--drop {shlex.quote(column[i])} leaves it out"
            raise sheet.error(f"{quoted(column[i])} is called a total; {say}", i)
    for n in names:
        if (nameless := is_empty(sheet.cells[n])).any():
            say = "--drop '' leaves such rows out"
            raise sheet.error(f"no name, perhaps a total; {say}", int(np.argmax(nameless)))


def _filled(sheet: Sheet, at: Mapping[str, int], *amounts: FloatArray) -> list[FloatArray]:
    """Counts: an empty cell is 0, but not what pulls cost; NaN where a number is not known."""
    empty = {role: is_empty(sheet.cells[n]) for role, n in at.items()}
    unknown = empty.get("cost", False) & (np.nan_to_num(amounts[0]) > 0)
    for role, column in zip(("pulls", "reward", "cost"), amounts, strict=True):
        unknown = unknown | (np.isnan(column) & ~empty.get(role, np.isnan(column)))
    told = {f"{role} empty: read as 0": rows & ~unknown for role, rows in empty.items()}
    told["below 0: summed as it is"] = np.any([x < 0 for x in amounts], axis=0)
    told["not summed: a number is not known"] = unknown
    for text, rows in told.items():
        sheet.changes += [f"{sheet.lines(rows)} {text}"] if rows.any() else []
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in amounts]


# --- Guards: rows that are sums, and rows or names that cannot be told apart


def _refuse_sums(
    sheet: Sheet, names: np.ndarray, code: np.ndarray, wide: bool, amounts: np.ndarray
) -> None:
    """A row that is the sum of all others, of those of its name, or of those next to it."""
    if len(amounts) < 2 or amounts.shape[1] < 3:
        return
    amounts = np.nan_to_num(amounts)
    filled, several = (amounts > 0).any(axis=0), (amounts > 0).sum(axis=0) > 1

    def is_rest(of: np.ndarray, mean: bool) -> np.ndarray:
        found, count = several & (np.bincount(of, filled)[of] > 2), np.bincount(of)[of] - 1
        for column in amounts:
            rest = (np.bincount(of, column)[of] - column) / (count if mean else 1)
            found &= (np.abs(column - rest) <= 5e-4 * np.abs(rest)) | ((column == 0) & (not mean))
        return found

    sums = is_rest(np.zeros_like(code), False)
    for mean in (False, True)[: wide + (wide or sheet.kind == "counts")]:
        of_names = is_rest(code, mean)
        if np.bincount(code, of_names).all() and not (mean and of_names.all()):
            sums = sums | of_names  # every name has such a row
    until = np.cumsum(np.pad(amounts, ((0, 0), (1, 0))), axis=1)
    large = (amounts > 0).all(axis=0) & (amounts[0] >= 30) & (sheet.kind == "counts")
    for i in np.flatnonzero(large).tolist():
        for start, sign in ((i, -1), (i + 1, 1)):
            apart = np.abs(sign * (until - until[:, [start]]) - amounts[:, [i]])
            reach = np.flatnonzero((apart <= 5e-4 * amounts[:, [i]]).all(axis=0))
            sums[i] |= bool((np.abs(reach - start) > 1).any())
    if sums.any():
        i = int(np.argmax(sums))
        say = f"--drop {shlex.quote(names[i])} leaves out all rows of this name"
        raise sheet.error(
            f"{quoted(names[i])} is the sum{' or mean' * wide} of other rows; {say}", i
        )


def _check_names(sheet: Sheet, *columns: np.ndarray) -> None:
    """Names that look the same, and ids that a spreadsheet rounded, are refused."""
    for column in columns:
        seen = dict[str, str]()
        for text in dict.fromkeys(column.tolist()):
            if (other := seen.setdefault(key(text), text)) != text or text in NOTHING:
                reason = f"and {other!a} look the same; write them alike, or apart"
                raise sheet.error(
                    f"{text!a} {reason}" if text else "no instance", int(np.argmax(column == text))
                )
            if _ROUNDED.fullmatch(text):
                raise sheet.error(
                    f"{quoted(text)} is an id that a spreadsheet rounded; it must be whole"
                )


def _check_apart(sheet: Sheet, code: np.ndarray, again: bool, time: np.ndarray | None) -> None:
    """Rows of one arm are summed only if nothing but a day tells them apart, or on demand."""
    unused = sheet.unused()
    for n in unused:
        texts, title = {*sheet.cells[n].tolist()} - NOTHING, sheet.titles[n]
        is_test = bool(_TEST.fullmatch(key(title)))
        if len(texts) > 1 and (is_test or all(re.fullmatch(SIGN, text) for text in texts)):
            each = shlex.quote(f"instance={title}")
            reason = f"several {'tests' if is_test else 'currencies'} stand in {quoted(title)}"
            raise sheet.error(f"{reason}: with --columns {each} each is played by itself")
    if sheet.kind == "log" and sheet.at and "pulls" not in sheet.columns:
        reason = "" if again else "no name has two rows"
        if again and time is not None:
            days, arms = len(np.unique(time)), int(code.max()) + 1
            is_table = days * arms == len(code) or (time == time.astype("datetime64[D]")).all()
            cells = set(zip(code.tolist(), time.tolist(), strict=True)) if is_table else ()
            reason = "every name has one row for each day" * (len(cells) == len(code))
        if reason:
            say = "--columns pulls=… (what counts them), or pulls=1"
            raise sheet.error(f"{reason}: is a row one pull? Say {say}")
    if not again or sheet.kind == "log":
        return
    if sheet.kind == "means":
        i = int(np.flatnonzero(np.diff(np.sort(code)) == 0)[0])
        name = sheet.texts("name")[code == np.sort(code)[i]][0]
        raise bad(f"{sheet.source}, name", name, "another name, for several rows have this one")
    import pandas as pd  # takes a while, which small files need not wait for

    frame = pd.DataFrame(dict(enumerate(sheet.cells)))
    arm, dates = pd.Series(code), dict[int, bool]()
    if (twice := frame.duplicated().to_numpy()).any():
        raise sheet.error(
            "equal to a row above in every cell; leave one out", int(np.argmax(twice))
        )
    for n in (*unused, *sheet.at.get("time", ())):
        column, title, texts = frame[n], sheet.titles[n], {*sheet.cells[n].tolist()} - NOTHING
        varies, is_amount = column.groupby(arm).nunique().max() > 1, all(map(is_number, texts))
        if not is_amount and all(map(_DATE.fullmatch, texts)):
            dates[n] = varies
            if (none := is_empty(sheet.cells[n]) & (np.bincount(code)[code] > 1)).any():
                say = f"leave it out, or say --columns {shlex.quote(f'over={title}')}"
                raise sheet.error(
                    f"no {quoted(title)}, perhaps a total: {say}", int(np.argmax(none))
                )
        elif n in unused and varies:
            is_grid = column.groupby(arm).agg(frozenset).nunique() == 1
            if is_grid or not is_amount or _ID.search(title):
                name = "+".join(sheet.titles[x] for x in sheet.at["name"])
                apart, over = (shlex.quote(x) for x in (f"name={title}+{name}", f"over={title}"))
                raise sheet.error(
                    f"rows of one name differ in {quoted(title)} ({brief(', '.join(sorted(texts)), 60)}): with "
                    f"--columns {apart} they are arms of their own, with {over} they are summed"
                )
    ends = [n for n, varies in dates.items() if not varies and frame[n].nunique() == 1]
    if ends and any(dates.values()):
        title = sheet.titles[ends[0]]
        over = shlex.quote(f"over={title}")
        raise sheet.error(
            f"rows of one name have one {quoted(title)}; if they do not overlap, --columns {over}"
        )


def _times(sheet: Sheet, style: NumberStyle) -> np.ndarray | None:
    """datetime64[us], UTC where the cells say so; the day before the month as the column shows."""
    import pandas as pd

    n = sheet.at["time"][0]
    texts = pd.Series(sheet.cells[n]).mask(is_empty(sheet.cells[n]))
    times = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    if (times.isna() & texts.notna()).any():
        numbers = pd.to_numeric(texts, errors="coerce")
        days = texts.str.extract(r"^(\d{1,2})([./-])(\d{1,2})\2\d{2,4}").dropna()
        first, second = days[0].astype(int).max(), days[2].astype(int).max()
        day_first = len(days) > 0 and (
            first > 12 or (days[1] == ".").any() or (style.decimal == "," and second <= 12)
        )
        if numbers.min() > 9e8:  # seconds, or parts of them, since 1970
            power = 3 * int(math.log10(numbers.max() / 9e8) // 3)
            times = pd.to_datetime(
                numbers, unit={0: "s", 3: "ms", 6: "us"}.get(power, "ns"), utc=True
            )
        else:
            times = pd.to_datetime(
                texts, format="mixed", dayfirst=bool(day_first), utc=True, errors="coerce"
            )
        if (wrong := times.isna() & texts.notna()).any():
            if "time" in sheet.columns:
                raise bad(
                    "columns",
                    f"time={sheet.titles[n]}",
                    f"days or times; {texts[wrong].iloc[0]!r} is none",
                )
            del sheet.at["time"]
            return None
        if len(days) and not day_first and second <= 12:
            sheet.notes.append(f"{quoted(days.index.map(texts)[0])} read with the month first")
    return times.dt.tz_localize(None).to_numpy().astype("datetime64[us]")


# --- A table of requests


def _melt(sheet: Sheet, drop: Sequence[str]) -> None:
    """Make of a row for each request a log, arm by arm: row j of each is one request."""
    columns: dict[str, dict[str, int]] = {"cost": {}, "score": {}, "": {}}
    for n, title in enumerate(sheet.titles):
        parts, what = _COST.fullmatch(title), "cost"
        if parts is None:
            parts, what = _SCORE.fullmatch(title), "score"
        arm, what = (
            (next(filter(None, parts.groups())).strip(" ()[]"), what) if parts else (title, "")
        )
        head = sheet.cells[n][:1000]
        filled = ~is_empty(head)
        is_read = (
            head.dtype != object or 2 * (passes(head, is_number) & filled).sum() > filled.sum()
        )
        if title and is_read and not {title, arm} & {*drop}:
            if arm in columns[what]:
                raise sheet.error(
                    f"two columns tell the {what or 'score'} of {quoted(arm)}; --drop one"
                )
            columns[what][arm] = n
    every = {role: str(given) for role, given in sheet.columns.items()}
    for role, given in every.items():
        if role not in ("cost", "cost2") or not is_number(given) or float(given) <= 0:
            raise bad(
                "columns",
                f"{role}={given}",
                "cost or cost2 with wide, a number: what every request costs",
            )
    costs, worded, bare = columns.values()
    known = {*sheet.titles, *(arm for arms in columns.values() for arm in arms)}
    scores = worded if len(worded) > 1 else bare | worded
    if "cost" in every:
        costs = {}
    elif costs:
        scores = {arm: n for arm, n in scores.items() if arm in costs or arm in worded}
    lacking = {*scores} ^ {*costs} if "cost" not in every else set()
    if len(scores) < 2 or lacking:
        of = f" ({quoted(min(lacking))} lacks one)" if lacking else ""
        must = "a column of scores and one of costs, as gpt4 and gpt4_cost, for two arms or more"
        raise sheet.error(
            f"it must have {must}{of}; or say --columns cost=1: every request costs 1"
        )
    numeric = {*scores.values(), *costs.values()}
    known |= {
        arm
        for title in sheet.titles
        for p in (_COST, _SCORE)
        if (x := p.fullmatch(title))
        for arm in x.groups()
    }
    _leave_out(sheet, [text for text in drop if text not in known], numeric)
    for n in numeric:
        if sheet.cells[n].dtype != object:  # a frame's, as texts that read in one way
            texts = ["" if x != x else f"{x:.17e}" for x in sheet.cells[n]]
            sheet.cells[n] = np.array(texts, object)
    whole = np.all(
        [passes(sheet.cells[n], lambda x: x.casefold() not in NOTHING | UNKNOWN) for n in numeric],
        axis=0,
    )
    sheet.only(whole, "left out: a request without a number of each arm")
    titles = [sheet.titles[n] for n in (*scores.values(), *costs.values())]
    sheet.notes.append(
        f"a table of {len(sheet.line):,} requests: {brief(', '.join(map(quoted, titles)))}"
    )
    if unused := [x for x in sheet.titles if x and x not in titles]:
        sheet.notes.append(f"columns not used: {quoted(', '.join(unused))}")
    cells = [np.array([*scores], object).repeat(len(sheet.line))]
    for found in (scores, costs) if costs else (scores,):
        cells.append(np.concatenate([sheet.cells[found[arm]] for arm in scores]))
    sheet.titles = ["arm", "score" if scores is worded else "reward", "cost"][: len(cells)]
    sheet.cells, sheet.line, sheet.columns = cells, np.tile(sheet.line, len(scores)), {}
    sheet.at = {role: (n,) for n, role in enumerate(("name", "reward", "cost")[: len(cells)])}
    sheet.constant = {role: float(given) for role, given in every.items()}


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


class _Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    every: np.ndarray  # its rows
    rows: np.ndarray  # those whose numbers are known
    totals: tuple[float, float, float] = (0.0, 0.0, 0.0)  # pulls, value, spent
    reward: float = math.nan
    cost: float = math.nan
    reason: str = ""  # why it cannot be played


def _table(rows: _Rows, limits: Sequence[float | None]) -> ArmsTable:
    """The instances of at least two arms that can be played, and what was left out."""
    sheet, kind, groups = rows.sheet, rows.sheet.kind, dict[str, list[_Arm]]()
    order = np.argsort(rows.code, kind="stable")
    ends = np.flatnonzero(np.diff(rows.code[order])) + 1
    for pair, at in zip(rows.arms, np.split(order, ends), strict=True):
        groups.setdefault(pair[0], []).append(_arm(rows, pair, at))
    bounds = _bounds(rows, [arm for x in groups.values() for arm in x if not arm.reason], limits)
    instances, kept_out = list[Instance](), list[KeptOut]()
    for name, group in groups.items():
        arms = [arm for arm in group if not arm.reason and arm.cost / bounds[1] > 0]
        if len(group) == 1:
            raise bad(f"{sheet.source}, instance {quoted(name)}, number of arms", 1, "2 or more")
        if len(arms) > 1:
            instances.append(_instance(rows, arms, bounds))
        for arm in group:
            is_small = arm.reason == "" and not arm.cost / bounds[1] > 0
            reason = arm.reason or "its cost is too small" * is_small or "alone in its instance"
            if arm.reason or is_small or len(arms) == 1:
                kept_out.append(KeptOut(name, arm.name, int(sheet.line[arm.every[0]]), reason))
    kept_out.sort(key=lambda arm: (arm.reason.startswith("alone"), arm.line))
    if not instances:
        line, reason, must = kept_out[0].line, kept_out[0].reason, "pulls, and a mean cost above 0"
        raise sheet.error(
            f"line {line}, arm {quoted(kept_out[0].arm)}: {reason}; two arms must have {must}"
        )
    if kind == "counts" and len(rows.arms) < len(sheet.line):
        sheet.notes.append(f"{len(sheet.line):,} rows summed to {len(rows.arms):,} arms")
    if kind == "log" and (gaps := np.isnan(rows.value + rows.spent)).any():
        sheet.changes.append(f"without reward or cost, gaps: {sheet.lines(gaps)}")
    for out in kept_out[:5]:
        sheet.changes.append(f"kept out, {out.reason}: {quoted(out.arm)} (line {out.line})")
    sheet.changes += [f"kept out: {len(kept_out) - 5:,} more"] if len(kept_out) > 5 else []
    if limits[0] is None and bounds[0] > 1:
        sets = "(--reward-max sets another)"
        sheet.notes.append(f"rewards go above 1: their bound is {bounds[0]:.6g} {sets}")
    return ArmsTable(
        kind=kind,
        instances=tuple(instances),
        notes=(*sheet.changes, *sheet.notes),
        reward_unit=rows.units[1],
        cost_unit="spent" if kind == "counts" else "cost",
        sha256=sheet.sha256,
        pull_unit=rows.units[0],
        style=rows.style,
        kept_out=tuple(sorted(kept_out, key=lambda arm: arm.line)),
        changes=len(sheet.changes),
        path=sheet.path,
        cost2_unit="" if rows.spent2 is None else rows.units[2],
        wide=rows.units[0] == "request" and kind == "log",
    )


def _arm(rows: _Rows, pair: tuple[str, str], at: np.ndarray) -> _Arm:
    """The arm of these rows, or why it cannot be played."""
    sheet, columns = rows.sheet, [x[at] for x in (rows.pulls, rows.value, rows.spent)]
    missing = [np.isnan(x) for x in columns]
    known = ~np.any(missing, axis=0)
    arm = _Arm(*pair, at, at[known])
    if not known.any():
        reason = "no reward" if missing[1].any() else "no cost"
        return arm._replace(reason=reason if sheet.kind != "counts" else "a number is not known")
    columns = [x[known] for x in columns]
    pulls, value, spent = (math.fsum(x.tolist()) for x in columns)
    if min(value, spent) < 0:  # refunds may make a row negative, not an arm
        place = f"{sheet.source}, line {sheet.line[at[0]]}, arm {quoted(arm.name)} in all"
        raise bad(place, min(value, spent), MAY_BE)
    if pulls == 0:
        return arm._replace(reason=f"no {rows.units[0]}s")
    reward, cost = value / pulls, spent / pulls
    if sheet.kind != "counts":  # rounding may lift the mean of equal values above them
        reward, cost = (float(min(np.mean(x), np.max(x))) for x in columns[1:])
    reason = "it cost nothing" * (cost == 0) or "its cost is too large" * math.isinf(cost / _SHARE)
    return arm._replace(totals=(pulls, value, spent), reward=reward, cost=cost, reason=reason)


def _bounds(
    rows: _Rows, arms: Sequence[_Arm], limits: Sequence[float | None]
) -> tuple[float, float]:
    """Of rewards and costs: the user's, or one pair for the file; see :func:`read_arms`."""
    sheet, kind, bounds = rows.sheet, rows.sheet.kind, list[float]()
    named = bool(sheet.columns) or rows.units[0] == "request"
    is_amount = kind == "log" or (not rows.is_count and (kind == "counts" or named))
    for name, column, limit in zip(
        ("reward", "cost"), (rows.value, rows.spent), limits, strict=True
    ):
        means = [(float(getattr(arm, name)), arm.every[0]) for arm in arms]
        if kind == "log":
            at = np.concatenate([arm.rows for arm in arms]) if arms else np.array([], int)
            means = [(float(column[i]), i) for i in at[np.argsort(-column[at], kind="stable")[:1]]]
        top, i = max(means, key=lambda pair: pair[0], default=(0.0, 0))
        is_own = (
            (top > 1 and is_amount) if name == "reward" else top > 1 or (named and 0 < top < 0.1)
        )
        bounds.append(limit or ((top if kind == "log" else top / _SHARE) if is_own else 1.0))
        if top > bounds[-1]:
            mean = "" if kind == "log" else "mean "
            excess = f"{mean}{name} {top} is above its bound {bounds[-1]}"
            arm = rows.arms[rows.code[i]][1]
            raise sheet.error(f"arm {quoted(arm)}: {excess}; raise {name}_max (--{name}-max)", i)
    return bounds[0], bounds[1]


def _instance(rows: _Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of these arms, with its evidence."""
    kind, (bound, cost_bound), evidence = rows.sheet.kind, bounds, NO_EVIDENCE
    costs, log = np.array([arm.cost for arm in arms]), list[tuple[FloatArray, FloatArray]]()
    if kind == "log":
        log = [(rows.value[arm.rows], rows.spent[arm.rows]) for arm in arms]
    every_bound: Any = cost_bound
    if rows.spent2 is not None:  # its bound is that of this instance's arms
        second = [rows.spent2[arm.rows] for arm in arms]
        pulls = [rows.pulls[arm.rows].sum() for arm in arms]
        means = np.array([x.sum() / n for x, n in zip(second, pulls, strict=True)])
        largest = max(x.max() for x in second) if log else means.max() / _SHARE
        costs, every_bound = np.stack([costs, means], axis=1), (cost_bound, float(largest) or 1.0)
        log = [(r, np.stack([c, x], axis=1)) for (r, c), x in zip(log, second, strict=False)]
    if kind != "means":
        pulled, value, spent = (_fixed([arm.totals[n] for arm in arms]) for n in range(3))
        whole = bool(((value % 1 == 0) & (value <= pulled)).all())
        if log:
            whole = all(np.isin(r, (0, 1)).all() for r, _ in log)
        several = not log and any(arm.rows.size > 1 for arm in arms)
        daily = tuple(_daily(rows, arm) for arm in arms) if several else None
        every = _pulls(rows, arms) if log else None
        evidence = Evidence(kind, pulled, value, spent, whole, daily, every)
    return Instance(
        name=arms[0].instance,
        arms=tuple(arm.name for arm in arms),
        mean_reward=_fixed([arm.reward for arm in arms]),
        mean_cost=_fixed(costs),
        reward_bound=bound,
        cost_bound=every_bound,
        log=tuple((_fixed(r), _fixed(c)) for r, c in log) or None,
        evidence=evidence,
    )


def _daily(rows: _Rows, arm: _Arm) -> Daily:
    """Rows of one day summed; those without a day stand at the end, each for itself."""
    day = np.full(arm.rows.size, np.datetime64("NaT", "D"))
    if rows.time is not None:
        day = rows.time[arm.rows].astype("datetime64[D]")
    dated = ~np.isnat(day)
    days, place = np.unique(day[dated], return_inverse=True)
    columns = [column[arm.rows] for column in (rows.pulls, rows.value, rows.spent)]
    sums = [np.concatenate([np.bincount(place, x[dated], days.size), x[~dated]]) for x in columns]
    return Daily(np.concatenate([days, day[~dated]]), *map(_fixed, sums))


def _pulls(rows: _Rows, arms: Sequence[_Arm]) -> Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    number = np.full(len(rows.code), -1)
    for i, arm in enumerate(arms):
        number[arm.every] = i
    at = np.flatnonzero(number >= 0)
    if rows.time is not None:
        times = rows.time[at]
        dated = np.maximum.accumulate(np.where(np.isnat(times), -1, np.arange(at.size)))
        earliest = np.datetime64(np.iinfo(np.int64).min + 1, "us")
        at = at[np.argsort(np.where(dated < 0, earliest, times[dated]), kind="stable")]
    time = None if rows.time is None else rows.time[at]
    return Pulls(number[at], _fixed(rows.value[at]), _fixed(rows.spent[at]), time)


def _fixed(values: ArrayLike) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
