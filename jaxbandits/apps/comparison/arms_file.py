"""Read the arms of budgeted bandits from a CSV file or a data frame, whose columns the user names.

pandas reads the cells. What a file does not say is asked in one line; rows that may be no arms, or
one arm twice, are refused with the option that decides. See docs/arms-files.md.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import itertools
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped,unused-ignore]

from jaxbandits.apps.comparison import numerals, titles
from jaxbandits.apps.comparison.arms_table import ArmsTable, Daily, Evidence, FloatArray, Instance
from jaxbandits.apps.comparison.numerals import NOTHING, UNKNOWN, YES
from jaxbandits.apps.comparison.titles import AMOUNTS, KINDS, PLAIN, ROLES, folded, option, role_of
from jaxbandits.core import InputError, bad
from jaxbandits.tools import brief, line, quoted, refuse

_PARTS = {"micro": 1e6, "micros": 1e6, "cent": 100.0, "cents": 100.0, "¢": 100.0, "%": 100.0}
_TOTAL = re.compile(
    r"(?i)(?:(?:grand|overall|report|account|campaign|filtered|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sums?|summe|gesamt\w*|insgesamt|somme|suma|totale|totaal|razem|average|avg|mean)"
    r"(?:\s*[.:;,(/–—-].*|\s+(?:all|of|for|general|account|campaigns?|rows?|last|this)\b.*)?"
    r"|.*[\s:–-](?:sub-?)?(?:totals?|sum|summe|gesamt)"
)
_ROUNDED = r"(?i)\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}"  # of ids
_WORD = r"((?:total[_ ])?cost|score|reward)"  # beside an arm's name
_OF_ARM = re.compile(rf"(?i){_WORD}[\s_:|.-]+(.+)|(.+?)[\s_:|.-]+{_WORD}")
_THOUSANDS = r"(?i)\(\s*(?:in )?(?:000s?|k|thousands?|tsd)\b[^)]*\)|\bin thousands\b"
_SHARE, _CLOSE = 0.99, 5e-4  # of its bound, which the largest mean has; of a sum, relative to it
_COUNTED = 10  # whole numbers, one of them above this, are no means
_PULLS = r"(?:^|[ ._])(click|impression|view|visit|session|request|user)s\b"


@dataclass
class _Sheet:
    """Texts below a header; the index says in which line a row stands."""

    source: str  # what messages call it
    titles: list[str]
    cells: pd.DataFrame  # its columns are numbers, in the order of the titles
    sha256: str | None = None
    path: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)  # as the user named them
    kind: str = "log"
    at: Mapping[str, Sequence[int]] = field(default_factory=dict)  # the columns of each role
    constant: Mapping[str, float] = field(default_factory=dict)  # of every pull
    notes: list[str] = field(default_factory=list)

    def note(self, rows: Any, text: str) -> None:
        """Add a note about these rows, if there are any."""
        if rows.any():
            lines = brief(", ".join(map(str, self.cells.index[rows])), 40)
            self.notes.append(f"line{'s' * (',' in lines)} {lines} {text}")

    def leave_out(self, rows: Any, why: str) -> None:
        self.note(rows, why)
        self.cells = self.cells[~rows]

    def title(self, role: str) -> str:
        return "+".join(self.titles[n] for n in self.at.get(role, ()))

    def texts(self, role: str) -> pd.Series:
        """The cells of a role; those of several columns as ``a / b``."""
        return functools.reduce(lambda x, y: x + " / " + y, (self.cells[n] for n in self.at[role]))

    def empty(self, columns: Iterable[int]) -> np.ndarray:
        """Whether the cell is empty, for each row and these columns."""
        return self.cells[[*columns]].isin(NOTHING).to_numpy()

    def unused(self) -> list[tuple[str, pd.Series]]:
        """Columns without a role, with their titles."""
        used = {"", *(self.titles[n] for n in itertools.chain(*self.at.values()))}
        return [(x, self.cells[n]) for n, x in enumerate(self.titles) if x not in used]

    def refuse(self, rows: Any, text: str) -> None:
        """Raise the error of the first of these rows, if there are any."""
        if np.any(rows):
            raise InputError(f"{self.source}, line {self.cells.index[np.argmax(rows)]}: {text}")

    def error(self, text: str) -> InputError:
        return InputError(f"{self.source}: {text}")


def read_arms(
    source: Any,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    drop: Sequence[str] = (),
    wide: bool = False,
    decimal: str | None = None,
    encoding: str | None = None,
) -> ArmsTable:
    """Read arms from a file of means, counts (reward / pulls, cost / pulls) or a log (averages).

    In a file of counts the rows of a name are summed (days); in a log each row is a pull. Arms
    without pulls or cost are left out, with a note. One pair of bounds divides the file's rewards and
    costs into [0, 1]: the largest value (log), or 1, or the largest mean / 0.99 where that is above.
    If columns are not known the error lists them, with a command that has a guess for each.

    Args:
        source: a CSV file, ``-`` for standard input, or a pandas data frame.
        columns: the titles of name, pulls, reward and cost (counts; without pulls a log), or name,
            mean_reward and mean_cost; perhaps instance, time, and over (what rows of an arm are
            summed over). ``"Campaign+Ad"`` names an arm by both. A number as cost is what every
            pull costs; ``pulls="1"``: a row is a pull. ``conversions``: a reward of at most 1.
        drop: rows of this name, or else with this cell, are left out; with wide also columns.
        wide: a row is a request on which all arms were tried; an arm has a column of rewards and
            one of costs (``gpt4`` and ``gpt4_cost``).
        decimal: the decimal sign, "." or ","; None: the one by which all cells can be read.
        encoding: of the file's text; None for UTF-8, and for UTF-16 with its mark.

    Example:
        >>> import pandas
        >>> ads = pandas.DataFrame({"Ad": ["a", "b"], "clicks": [10, 20], "Kosten": ["5,50 €", "8 €"], "Sales": [1, 2]})
        >>> table = read_arms(ads, columns={"name": "Ad", "reward": "Sales", "cost": "Kosten"})
        >>> table.instances[0].mean_cost.tolist(), table.cost_unit
        ([0.55, 0.4], '€')
    """
    refuse("decimal", decimal, decimal not in (None, ".", ","), "'.' or ','")
    is_list = not isinstance(drop, str) and all(isinstance(text, str) for text in drop)
    refuse("drop", drop, not is_list, "a list of names or cells ('' for rows without a name)")
    pairs: Any = (columns or {}).items()
    named = {x: y if isinstance(y, (list, tuple)) else [y] for x, y in pairs}
    for role, given in named.items():
        refuse("columns", role, role not in ROLES, f"one of {', '.join(PLAIN)}, conversions")
        are_titles = given and all(isinstance(x, str) and x.strip() for x in given)
        refuse("columns", given, not are_titles, f"the title of the column that is {role}")
    is_frame = hasattr(source, "columns")
    sheet = _of_frame(source) if is_frame else _of_file(source, named, wide, encoding)
    sheet.columns = {x: "+".join(y) for x, y in named.items()}
    if wide:
        _melt(sheet, drop)
    else:
        sheet.at, sheet.constant, sheet.kind, key = _roles(sheet.titles, named)
        if not sheet.kind:
            said = {"encoding": [encoding], "decimal": [decimal], "drop": drop}
            raise _question(sheet, key, said)
        must = f"left out, as these are read: {', '.join(KINDS[sheet.kind])}"
        refuse("columns", f"{key}={sheet.columns.get(key)}", bool(key), must)
        _leave_out(sheet, drop, {n for role in AMOUNTS for n in sheet.at.get(role, ())})
    rows = _rows(sheet, decimal)
    _check(sheet, rows)
    return _table(sheet, rows, wide)


def _of_frame(source: Any) -> _Sheet:
    """A data frame, all cells as texts; its floats as none could be written with thousands."""
    frame = source.reset_index() if any(x is not None for x in source.index.names) else source

    def text(value: Any) -> str:
        if not isinstance(value, (float, np.floating)):
            return str(value).strip()
        return f"{value:.0f}" if value % 1 == 0 else f"{value:.17e}"

    cells = frame.set_axis(range(frame.shape[1]), axis=1).astype(object)
    cells = cells.where(cells.notna(), "").map(text).set_axis(np.arange(len(cells)) + 1)
    return _Sheet("data frame", [str(x).strip() for x in frame.columns], cells)


def _of_file(path: Any, columns: Mapping[str, Any], wide: bool, encoding: str | None) -> _Sheet:
    """The cells below the header: the first line that has all columns that are needed."""
    name = line(" ".join(str(path).split()))
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise bad("arms file", str(path), f"a CSV file that can be read ({reason})") from None
    usual = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding or usual)
    except (ValueError, LookupError):
        must = "CSV text in UTF-8 (else give --encoding, such as cp1252; for a workbook pass a data frame)"
        raise bad("encoding" if encoding else "arms file", encoding or name, must) from None
    tries = list[tuple[int, str, list[str]]]()
    for sign in "\t,;|":
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True)
        with contextlib.suppress(csv.Error):
            for row in itertools.islice(filter("".join, reader), 60):
                tries += [(reader.line_num, sign, row)] * (len(row) - row.count("") > 1)
    if not tries:
        raise InputError(f"{name}: no line has several cells, as a header has")
    known = [x for x in tries if wide or _roles(x[2], columns)[2]]
    end, sign, row = min(known) if known else max(tries, key=lambda x: len(x[2]) - x[2].count(""))
    # Lines above as empty ones, so that pandas counts those of the file
    below = "\n" * end + "".join(io.StringIO(text, newline="").readlines()[end:])
    options: dict[str, Any] = {"header": None, "index_col": False, "sep": sign, "dtype": object}
    options |= {"na_filter": False, "skipinitialspace": True, "skip_blank_lines": False}
    try:
        cells = pd.read_csv(io.StringIO(below), names=range(len(row) + 1), **options).iloc[end:]
    except pd.errors.ParserError as problem:
        what = f"not readable as CSV with as many cells as in the header, {len(row)}"
        raise InputError(f"{name}: {what} ({' '.join(str(problem).split())})") from None
    cells = cells.set_axis(cells.index + 1).fillna("").apply(lambda x: x.str.strip())
    if (over := cells.pop(len(row)) != "").any():
        place = f"{name}, line {cells.index[over][0]}, number of cells"
        raise bad(place, len(row) + 1, f"at most {len(row)}, as in the header")
    digest = hashlib.sha256(content).hexdigest()
    return _Sheet(name, [x.strip() for x in row], cells, digest, str(path))


# --- Which column is what


def _roles(header: Sequence[str], columns: Mapping[str, Any]) -> tuple[dict, dict, str, str]:
    """Each role's columns, what every pull has, the kind, and a key that is nowhere, or idle."""
    at, constant, keys = dict[str, list[int]](), dict[str, float](), [*map(folded, header)]
    for key, given in columns.items():
        role, found = ROLES[key], list[list[int]]()
        is_joined = len(given) == 1 and folded(given[0]) not in keys
        number = "1" if role == "pulls" else r"(?=.*[1-9])\d*\.?\d+"
        for part in given[0].split("+") if is_joined else given:
            same = [n for n, x in enumerate(header) if x.strip() == part.strip()]
            found.append(same or [n for n, x in enumerate(keys) if x == folded(part)])
        if all(len(x) == 1 for x in found):
            at[role] = [x[0] for x in found]
        elif any(role in x for x in KINDS.values()) and re.fullmatch(number, "+".join(given)):
            constant[role] = float(given[0])
        else:
            return at, constant, "", key
    named, used = {"over", *at, *constant}, {*itertools.chain(*at.values())}
    for n, title in enumerate(keys):
        role = ROLES.get(title.replace(" ", "_"), "over")
        if role not in named and n not in used:
            at[role] = [*at.get(role, ()), n]
    has = at.keys() | constant.keys() - {"pulls"}  # with pulls=1 every row is one
    kind = next((kind for kind, need in KINDS.items() if has >= {"name", *need}), "")
    roles = ("name", *KINDS.get(kind, ()), "instance", "time", "over")
    at = {role.removeprefix("mean_"): at[role] for role in roles if role in at}  # of means, too
    may_be = {*roles, "pulls"} if kind == "log" else roles  # of which a row is one
    return at, constant, kind, next((x for x in columns if kind and ROLES[x] not in may_be), "")


def _question(sheet: _Sheet, unknown: str, options: Mapping[str, Sequence[Any]]) -> InputError:
    """The error for columns that are not known: what they are, and a command with guesses."""
    top, what = sheet.cells.iloc[:500], "the columns are not known"
    samples = {x: [y for y in top[n].unique() if y] for n, x in enumerate(sheet.titles) if x}
    given = {ROLES[x]: title for x, title in sheet.columns.items() if x != unknown}
    if unknown:
        wrong = quoted(f"{unknown}={sheet.columns[unknown]}")
        what = f"columns: {wrong} given; it must be a title that the file has exactly once"
    more = [option(x, text) for x, texts in options.items() for text in texts if text is not None]
    command = " ".join(["jaxbandits read", shlex.quote(sheet.path or "FILE"), *more])
    guess = titles.guesses(samples, len(top), given)
    return sheet.error(f"{what}. {titles.question(samples, guess, command)}")


def _leave_out(sheet: _Sheet, drop: Sequence[str], numeric: set[int]) -> None:
    """Without what the user drops and rows without numbers; a total or no name is refused."""
    texts, names = [n for n in sheet.cells if n not in numeric], sheet.at.get("name", ())
    for text in dict.fromkeys(map(str.strip, drop)):
        same = sheet.cells[[*names[-1:], *texts]].isin([text] if text else NOTHING).to_numpy()
        by_name = bool(names) and (not text or same[:, 0].any())
        found = same[:, 0] if by_name else same.any(axis=1)
        refuse("drop", text, not found.any(), "a name or a cell of the file")
        sheet.leave_out(found, "dropped, as --drop says")
    sheet.leave_out(sheet.empty(numeric).all(axis=1), "skipped: no numbers")
    if sheet.cells.empty:
        raise sheet.error("there is a header but no rows; it must have at least two arms")
    # The first filled cell of each row; of a log at its ends, for a prompt may begin so
    first = sheet.cells[texts].replace("", np.nan).bfill(axis=1).iloc[:, :1].fillna("")
    first.iloc[1 : -3 if sheet.kind == "log" else 1] = ""
    for _, column in (*sheet.cells[[*names, *sheet.at.get("time", ())]].items(), *first.items()):
        for text in filter(_TOTAL.fullmatch, column.unique()):
            say = f"{option('drop', text)} leaves it out"
            sheet.refuse(column == text, f"{quoted(text)} is a word for a total; {say}")
    nameless = "no name, perhaps a total; --drop '' leaves such rows out"
    sheet.refuse(sheet.empty(names).any(axis=1), nameless)


# --- Numbers


def _numbers(sheet: _Sheet, decimal: str | None) -> dict[str, np.ndarray]:
    """By role, in the decimal sign by which all cells read, pulls as whole numbers; and currencies."""
    columns = {role: sheet.texts(role) for role in AMOUNTS if role in sheet.at}
    every = [(role, text) for role, column in columns.items() for text in column.unique()]
    every = [(role, x) for role, x in every if x not in NOTHING and x.casefold() not in YES]
    in_thousands = re.search(_THOUSANDS, sheet.title("pulls"))

    def reads(sign: str) -> bool:
        values = ((role, numerals.parsed(text, sign)[0]) for role, text in every)
        return all(x == x and (role != "pulls" or x % 1 == 0 or in_thousands) for role, x in values)

    sign = decimal or ("," if reads(",") else ".")
    if not decimal and sign == "," and reads("."):
        sign = "."
        for text in (x for _, x in every if numerals.parsed(x, ".") != numerals.parsed(x, ",")):
            raise sheet.error(f"{quoted(text)} reads in two ways; give --decimal . or --decimal ,")
    numbers, signs = dict[str, np.ndarray](), dict[str, np.ndarray]()
    for role, column in columns.items():
        if role == "reward":
            column = column.map(lambda x: YES.get(x.casefold(), x))
        pointed = column if sign == "." else column.where(column == "")
        plain = pd.to_numeric(pointed, errors="coerce")
        read = {text: numerals.parsed(text, sign) for text in column[plain.isna()].unique()}
        others = column.map({text: value for text, (value, _) in read.items()})
        units = np.array([read.get(text, (0, ""))[1] for text in column], object)
        numbers[role] = _checked(sheet, role, plain.fillna(others).to_numpy(float), units == "%")
        signs[role] = np.where(units == "%", "", units)
    return numbers | {"currency": _currencies(sheet, signs)}


def _currencies(sheet: _Sheet, signs: dict[str, np.ndarray]) -> np.ndarray:
    """The currency of each row: one in an instance, by signs at amounts or a column of codes."""
    own, codes = sheet.at.get("instance", ()), list[int]()
    say = "--columns instance=… by a column that tells them apart, or give a file of each"
    every = [signs[x] for x in ("cost", "reward", "pulls") if x in signs]
    for n, column in sheet.cells.items():
        texts = {*column.unique()} - {*NOTHING}
        if texts and all(re.fullmatch(numerals.SIGN, x) for x in texts) and [n] != sheet.at["name"]:
            every.append(column.where(~column.isin(NOTHING), "").to_numpy())
            if n not in own:
                codes.append(n)
                say = f"--columns {shlex.quote(f'instance={sheet.titles[n]}')} simulates each by itself"
    instance = sheet.texts("instance").to_numpy() if own else np.zeros(len(sheet.cells))
    currency = np.full(len(sheet.cells), "", object)
    for sign in every:
        first = pd.Series(sign).where(sign != "").groupby(instance).transform("first").fillna("")
        other = ((sign != "") & (sign != first)).to_numpy()
        pair = f"{sign[np.argmax(other)]!r} beside {first[np.argmax(other)]!r}"
        sheet.refuse(other, f"{pair} are several currencies; {say}")
        currency = np.where(currency == "", first, currency)
    if len({*currency} - {""}) > 1:
        say = "several currencies: rewards are summed over all; if they are money, give a file of each"
        sheet.refuse(signs.get("reward", np.array("")) != "", say)
        sheet.notes.append(say)
    sheet.at = {**sheet.at, "currency": codes}
    return currency


def _checked(sheet: _Sheet, role: str, values: FloatArray, percent: np.ndarray) -> FloatArray:
    """A column in the unit of its title: percent, micros, cents; no rate."""
    column, title, counts = sheet.texts(role), sheet.title(role), sheet.kind == "counts"
    if counts:  # nothing is none
        sheet.note(none := column.isin(NOTHING).to_numpy(), f"{role} empty: read as 0")
        values = np.where(none, 0.0, values)
    if re.search(_THOUSANDS, title):
        values = 1000 * values
        sheet.notes.append(f"{quoted(title)} is multiplied by 1,000")
    wrong = ~((values >= 0) & np.isfinite(values))
    wrong |= (np.floor(values) < values) & (role == "pulls")
    wrong |= percent & (counts or role == "cost" or (values[~percent] > 0).any())
    if wrong.any():
        must = "a whole number of pulls" if role == "pulls" else "a finite number of at least 0"
        place = f"{sheet.source}, line {column.index[wrong][0]}, column {brief(title, 60)}"
        text, is_unread = column[wrong].iloc[0], np.isnan(values[wrong][0])
        in_other_sign = bool(is_unread and numerals.is_number(text))
        raise bad(place, text, must + " (or give --decimal)" * in_other_sign)
    if counts and titles.OF_ONE.search(title):
        raise bad("columns", f"{role}={title}", "a total, not a mean, rate or percentage")
    units = [_PARTS[x] for x in re.findall(r"[a-z]+|[¢%]", title.lower()) if x in _PARTS]
    unit = 1.0 if role == "pulls" else [*units, 100.0 if percent.any() else 1.0][0]
    if unit != 1:
        sheet.notes.append(f"{quoted(title)} is divided by {unit:,.0f}")
    values = values / unit
    is_count = sheet.kind == "means" and role == "reward" and not (values % 1).any()
    if is_count and values.max() > _COUNTED and role_of(title) != "mean_reward":
        must = "means, not counts (for these give pulls, reward and cost; else call it mean_reward)"
        raise bad("columns", f"mean_reward={title}", must)
    return values


def _rows(sheet: _Sheet, decimal: str | None) -> pd.DataFrame:
    """The rows: instance, name, pulls, reward, cost, time, and the number of each arm."""
    stem = "stdin" if sheet.path == "-" else re.sub(r".*[\\/]|\.\w+$", "", sheet.path or "data")
    told = {x: sheet.texts(x).to_numpy() for x in ("name", "instance", "time") if x in sheet.at}
    usual = {"line": sheet.cells.index, "instance": stem, "pulls": 1.0, "time": ""}
    rows = pd.DataFrame(usual | told | _numbers(sheet, decimal))
    for role in sorted(sheet.constant.keys() - {"pulls"}):
        rows[role.removeprefix("mean_")] = (constant := sheet.constant[role]) * rows["pulls"]
        sheet.notes.append(f"every pull has a {role} of {constant:g}, as --columns says")
    if sheet.kind == "counts" and "cost" in sheet.at:
        unpaid = sheet.empty(sheet.at["cost"]).all(axis=1) & (rows["pulls"] > 0).to_numpy()
        sheet.refuse(unpaid, "pulls, and no cost; write what they cost, or 0")
    rows["arm"] = rows.groupby(["instance", "name"], sort=False).ngroup()
    if unused := ", ".join(title for title, _ in sheet.unused()):
        sheet.notes.append(f"columns not used: {quoted(unused)}")
    return rows


# --- Guards: what may be another number than it looks


def _check(sheet: _Sheet, rows: pd.DataFrame) -> None:
    """Refuse names that look the same, sums, several currencies, and rows that are no pulls or arms."""
    kind, again = sheet.kind, rows["arm"].nunique() < len(rows)
    for role in ("name", "instance"):
        _check_names(sheet, rows[role])
    if kind == "log" and "pulls" not in sheet.constant:
        is_clock = rows["time"].str.contains(r":|^\d{9}").any() or (rows["time"] == "").all()
        is_daily = not is_clock and not rows.duplicated(["arm", "time"]).any()
        if is_daily or not again:
            what = "every name has one row for each day" if again else "no name has two rows"
            say = "Give --columns pulls=… (the column that counts them), or pulls=1"
            raise sheet.error(f"{what}: is a row one pull? {say}")
    twice = rows.duplicated("arm") & (kind == "means")
    sheet.refuse(twice, "an earlier row has this name; names must differ")
    if kind == "counts" and again:
        _check_apart(sheet, rows["arm"])
    if kind == "means":
        return
    written = rows[[x for x in AMOUNTS if x in sheet.at]]
    lacks = [sheet.empty(sheet.at[x]).all(axis=1) for x in written]
    written = written.mask(np.array(lacks).T.reshape(written.shape))
    total = _is_sum(written, kind == "counts")
    if kind == "counts":
        total |= _is_sum(written.groupby(rows["arm"]).sum(min_count=1), False)[rows["arm"]]
    if total.any():
        name = rows["name"][total].iloc[0]
        say = f"{option('drop', name)} leaves out all rows of this name"
        if not total[rows["name"] == name].all():
            say = "leave it out"
        sheet.refuse(total, f"{quoted(name)} is the sum of other rows; {say}")


def _check_names(sheet: _Sheet, column: pd.Series) -> None:
    """Names that look the same, and ids that a spreadsheet rounded, are refused."""
    seen = dict[str, str]()
    for text in column.unique():
        if (other := seen.setdefault(folded(text), text)) != text or text in NOTHING:
            same = f"{text!a} and {other!a} look the same; make them equal, or clearly different"
            sheet.refuse(column == text, f"no {column.name}" if text in NOTHING else same)
        if re.fullmatch(_ROUNDED, text):
            sheet.refuse(column == text, f"{quoted(text)} is an id that a spreadsheet rounded")


def _is_sum(rows: pd.DataFrame, runs: bool) -> np.ndarray:
    """Is a row, in what it has of numbers that differ, the sum of all others, or of a run beside it?"""
    amounts = rows.to_numpy(float).T
    lacks, amounts = np.isnan(amounts), np.nan_to_num(amounts)
    differ = amounts.min(axis=1) < amounts.max(axis=1)
    lacks, amounts = lacks[differ], amounts[differ]
    rest, is_there = amounts.sum(axis=1, keepdims=True) - amounts, amounts > 0
    found = ((np.abs(amounts - rest) <= _CLOSE * rest) | ~is_there).all(axis=0)
    found &= (is_row := is_there.any(axis=0, keepdims=True)).sum() > 2
    # Sums of all rows before never fall, so one place fits: where they lack just what the row has
    kinds = {*map(tuple, lacks.T.tolist())} if runs else set[tuple]()
    for lack, step in itertools.product(kinds, (1, -1)):  # below it, in the reverse order
        x, has = np.concatenate([amounts, is_row])[:, ::step], ~np.array([*lack, True], bool)
        before = np.cumsum(np.pad(x, ((0, 0), (1, 0))), axis=1)
        share = (before[has] / before[has, -1:]).sum(axis=0)
        at = np.searchsorted(share, begin := share[:-1] - np.diff(share))
        at -= (at > 0) & (begin - share[at - 1] < share[at] - begin)
        run = before[:, :-1] - before[:, at]
        is_sum = (np.abs(x - run) <= _CLOSE * run)[has].all(axis=0) & (run[-1] > 1)
        is_sum &= (run[~has] > 0).all(axis=0)  # what the row lacks, those of the run have
        found[::step] |= is_sum & (lack == lacks.T).all(axis=1)[::step]
    return found & (is_there.sum(axis=0) > 1)


def _check_apart(sheet: _Sheet, arm: pd.Series) -> None:
    """Rows of one arm are summed only if nothing but a day tells them apart, or on demand."""
    sheet.refuse(sheet.cells.duplicated(), "identical to an earlier row; leave one out")
    undated = sheet.empty(sheet.at.get("time", ())).any(axis=1) & arm.duplicated(keep=False)
    no_day = f"no {quoted(sheet.title('time'))}, perhaps a total: leave it out, or fill it in"
    sheet.refuse(undated, no_day)
    for title, column in sheet.unused():
        texts, of_arm = {*column.unique()} - {*NOTHING}, column.groupby(arm.to_numpy())
        is_id = titles.IDS.search(title) or not all(map(numerals.is_number, texts))
        is_kind = is_id or of_arm.agg(frozenset).nunique() == 1  # the same ones for each arm
        if is_kind and of_arm.nunique().max() > 1:
            ways = (f"name={title}+{sheet.title('name')}", f"over={title}", f"time={title}")
            say = "{} makes arms of them, {} sums them, {} days".format(*map(shlex.quote, ways))
            differ = f"{quoted(title)} ({brief(', '.join(sorted(texts)), 60)})"
            raise sheet.error(f"rows of one name differ in {differ}: --columns {say}")


def _melt(sheet: _Sheet, drop: Sequence[str]) -> None:
    """Make of a row for each request a log, arm by arm: row j of each is one request."""
    price, unit = numerals.parsed(sheet.columns.get("cost", ""), ".")
    is_price = sheet.columns.keys() == {"cost"} and price > 0 and not unit
    if sheet.columns and not is_price:
        given = ",".join(map("=".join, sheet.columns.items()))
        raise bad("columns", given, "with wide only cost, a number: what every request costs")
    costs, worded, bare = (dict[str, int]() for _ in range(3))
    known = {*sheet.titles}
    for n, title in enumerate(sheet.titles):
        arm, of = title, bare
        if found := _OF_ARM.fullmatch(title):
            arm = (found[2] or found[3]).strip(" ()[]")
            of = costs if (found[1] or found[4]).lower().endswith("cost") else worded
        known |= {arm}
        filled = [x for x in sheet.cells[n].iloc[:1000] if x not in NOTHING]
        numbers = sum(numerals.is_number(x) or x.casefold() in YES for x in filled)
        if title and 2 * numbers > len(filled) and not {title, arm} & {*drop}:
            if arm in of:
                raise sheet.error(f"two columns are of {quoted(arm)} alike; --drop one")
            of[arm] = n
    scores = worded if len(worded) > 1 else bare | worded
    costs = {} if is_price else costs
    if costs:
        scores = {arm: n for arm, n in scores.items() if arm in costs or arm in worded}
    lacking = set[str]() if is_price else {*scores} ^ {*costs}
    if len(scores) < 2 or lacking:
        lack = f" ({quoted(min(lacking))} lacks one)" if lacking else ""
        must = f"columns of scores and of costs, as gpt4 and gpt4_cost, for two arms or more{lack}"
        raise sheet.error(f"it must have {must}; or give --columns cost=1: every request costs 1")
    numeric = [*scores.values(), *costs.values()]
    sheet.at = {"arms": numeric}
    _leave_out(sheet, [text for text in drop if text not in known], {*numeric})
    lacks = sheet.cells[numeric].apply(lambda x: x.str.casefold().isin([*NOTHING, *UNKNOWN]))
    sheet.leave_out(lacks.any(axis=1), "left out: a request without a number of each arm")
    shown = brief(", ".join(quoted(sheet.titles[n]) for n in numeric))
    sheet.notes.append(f"a table of {len(sheet.cells):,} requests: {shown}")
    if unused := ", ".join(title for title, _ in sheet.unused()):
        sheet.notes.append(f"columns not used: {quoted(unused)}")
    names = np.array([*scores], object).repeat(len(sheet.cells))
    parts = [pd.concat([sheet.cells[x[arm]] for arm in scores]) for x in (scores, costs) if x]
    long = dict(enumerate(np.asarray(part) for part in [names, *parts]))
    sheet.cells = pd.DataFrame(long, index=parts[0].index)
    sheet.titles = ["arm", "score" if scores is worded else "reward", "cost"][: len(long)]
    sheet.at = {"name": [0], "reward": [1]} | ({"cost": [2]} if costs else {})
    sheet.columns, sheet.constant = {}, {"pulls": 1.0} | ({"cost": price} if is_price else {})


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


def _table(sheet: _Sheet, rows: pd.DataFrame, wide: bool) -> ArmsTable:
    """The instances of at least two arms that can be played, and what was left out."""
    kind = sheet.kind
    reward = "reward" if kind == "means" else sheet.title("reward") or "reward"
    counted = re.search(_PULLS, sheet.title("pulls").lower())
    pull = counted[1] if counted else "request" if wide else "row" if kind == "log" else "pull"
    is_count = kind == "counts" and folded(reward) in ("conversion", "conversions")
    of_arm = rows.groupby("arm")
    arms = of_arm[["instance", "name", "line", "currency"]].first().join(of_arm[AMOUNTS].sum())
    played = ((arms["pulls"] > 0) & (arms["cost"] > 0)).groupby(arms["instance"]).transform("sum")
    reasons = {f"no {pull}s": arms["pulls"] == 0, "it cost nothing": arms["cost"] == 0}
    reasons["alone in its instance"] = played < 2
    arms["why"] = np.select([*reasons.values()], [*reasons], "")
    out, arms, kept_out = arms[arms["why"] != ""], arms[arms["why"] == ""], list[str]()
    for why, of in out.groupby("why", sort=False):
        each = (f"{quoted(x)} (line {at})" for x, at in zip(of["name"], of["line"], strict=True))
        kept_out.append(brief(f"left out, {why}: {', '.join(each)}"))
    if arms.empty:
        raise sheet.error(
            f"{'; '.join(kept_out)}; two arms must have pulls and a mean cost above 0"
        )
    bounds = list[float]()
    for x in ("reward", "cost"):
        means, largest = arms[x] / arms["pulls"], of_arm[x].max()[arms.index]
        if kind != "counts":  # rounding may lift the mean of equal values above them
            means = np.minimum(means, largest)
        arms, top, arm = arms.assign(**{f"mean_{x}": means}), float(means.max()), means.idxmax()
        is_bounded = x == "reward" and (is_count or "conversions" in sheet.columns)
        if is_bounded and top > 1 and kind != "log":
            what = f"arm {quoted(arms['name'][arm])} has {top} conversions a pull, above the bound of 1"
            sheet.refuse(rows["arm"] == arm, f"{what}; --columns reward=… has no such bound")
        is_small = x == "cost" and bool(sheet.columns) and 0 < top < 0.1
        of_means = top / _SHARE if top > 1 or is_small else 1.0
        bounds.append(float(largest.max()) or 1.0 if kind == "log" else of_means)
    if kind == "counts" and of_arm.ngroups < len(rows):
        sheet.notes.append(f"{len(rows):,} rows summed to {of_arm.ngroups:,} arms")
    problems = arms.groupby("instance", sort=False)
    instances = tuple(_instance(kind, of, rows, bounds) for _, of in problems)
    notes, cost = (*sheet.notes, *kept_out), "spent" if kind == "counts" else "cost"
    currency = " or ".join(dict.fromkeys(i.currency for i in instances if i.currency))
    units = "conversions" if is_count else brief(reward, 40), currency or cost
    return ArmsTable(kind, instances, notes, *units, sheet.sha256, pull, sheet.path, wide)


def _instance(kind: str, arms: pd.DataFrame, rows: pd.DataFrame, bounds: list[float]) -> Instance:
    """The instance of these arms, with its evidence."""
    log, evidence = None, Evidence()
    if kind != "means":
        own = rows[rows["arm"].isin(arms.index)]
        counted, is_summed = own if kind == "log" else arms, len(own) > len(arms)
        whole = ((counted["reward"] % 1 == 0) & (counted["reward"] <= counted["pulls"])).all()
        days = {*own["time"]} - {*NOTHING} if kind == "counts" else set[str]()
        if days:
            own = own.groupby(["arm", "time"], as_index=False)[AMOUNTS].sum()
        each = [[x[name].to_numpy() for name in AMOUNTS] for _, x in own.groupby("arm")]
        if kind == "log":
            log = tuple((reward, cost) for _, reward, cost in each)
        daily = tuple(Daily(*x) for x in each) if kind == "counts" and is_summed else None
        pulled, value, spent = (arms[x].to_numpy() for x in AMOUNTS)
        evidence = Evidence(kind, pulled, value, spent, bool(whole), daily, len(days))
    names = str(arms["instance"].iloc[0]), tuple(arms["name"])
    reward, cost = (arms[f"mean_{x}"].to_numpy() for x in ("reward", "cost"))
    currency = str(arms["currency"].iloc[0])
    return Instance(*names, reward, cost, bounds[0], bounds[1], log, evidence, currency)
