"""Read the arms of budgeted bandits from a CSV file or a data frame, whose columns the user names.

pandas reads the cells. What a file does not say is asked in one line; rows that may be no arms, or
one arm twice, are refused with the option that decides. See docs/arms-files.md.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import itertools
import math
import re
import shlex
import sys
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.apps.comparison.arms_table import ArmsTable, Daily, Evidence, FloatArray, Instance
from jaxbandits.core import InputError, bad
from jaxbandits.tools import brief, line, positive_number, quoted

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

# Titles that need no name, by what they are; other keys of --columns; what a kind of file must have
PLAIN = {
    "name": "name arm",
    "pulls": "pulls clicks",
    "reward": "reward conversions conversion",
    "cost": "cost spent spend",
    "mean_reward": "mean_reward reward_mean",
    "mean_cost": "mean_cost cost_mean",
    "instance": "instance",
    "time": "time timestamp date day week month",
}
AS = {"arm": "name", "clicks": "pulls", "spent": "cost", "conversions": "reward"}
ROLES = (*PLAIN, "over", *AS)
KINDS = {
    "counts": ("name", "pulls", "reward", "cost"),
    "means": ("name", "mean_reward", "mean_cost"),
    "log": ("name", "reward", "cost"),
}
NUMERIC = ("pulls", "reward", "cost", "mean_reward", "mean_cost")
_NOTHING = ("", "-", "--", "–", "—")
_UNKNOWN = ("na", "n/a", "#n/a", "nan", "null", "none", "(none)")
_YES = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_GUESSES = {  # how titles of numbers often begin, for the question
    "pulls": r"cli[ck]|kli|pull|visit|sess|request|impr",
    "reward": r"conv|konv|order|purch|sale|lead|result|reward|score",
    "cost": r"cost|co[uû]t|kos[tz]|spen|amount|usd|eur",
}
_SIGN = (  # of a currency
    r"(?:[A-Z]{0,3}[$£¥₠-⃀]|kr\.?|zł|Kč|Ft|Rs\.?|AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|HKD|HUF"
    r"|IDR|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PEN|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR)"
)
_BLANKS = r"'’ \u00a0\u2009\u202f"  # between thousands
_CELL = re.compile(
    rf"(\()?([-−+]?)\s*({_SIGN})?\s*([-−+]?)((?:\d[\d.,{_BLANKS}]*|[.,]\d+)(?:e[+-]?\d+)?)\s*({_SIGN}|%)?(-?)(\))?",
    re.ASCII | re.IGNORECASE,
)
_GROUPED = re.compile(
    rf"[1-9]\d{{0,2}}([.,{_BLANKS}])\d{{3}}(?:\1\d{{3}})*|[1-9]\d?(?:,\d\d)+,\d{{3}}", re.ASCII
)
_OF_ONE = r"(?i)\b(?:per|pro|par|por|avg|average|durchschn|mean|rate|e?cp[a-z]|ctr|rpm|epc|roas|roi|acos)\b|ø|%"
_PARTS = {"micro": 1e6, "micros": 1e6, "cent": 100.0, "cents": 100.0, "¢": 100.0, "%": 100.0}
_TOTAL = re.compile(
    r"(?i)(?:(?:grand|overall|report|account|campaign|filtered|all)[ -]?)?(?:sub-?)?"
    r"(?:totals?|sums?|summe|gesamt\w*|insgesamt|somme|suma|totale|totaal|razem|average|avg|mean)"
    r"(?:\s*[.:;,(/–—-].*|\s+(?:all|of|for|general|account|campaigns?|rows?|last|this)\b.*)?"
    r"|.*[\s:–-](?:sub-?)?(?:totals?|sum|summe|gesamt)"
)
_ROUNDED = r"(?i)\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}"  # of ids
_COST, _SCORE = (
    re.compile(rf"(?i){x}[\s_:|.-]+(.+)|(.+?)[\s_:|.-]+{x}")
    for x in (r"(?:total[_ ])?cost", "(?:score|reward)")
)
_MAY_BE, _SHARE = "a finite number of at least 0", 0.99  # of its bound, which the largest mean has
_CLOSE = 5e-4  # of a sum, relative to it


@dataclass
class _Sheet:
    """Texts below a header; the index says in which line a row stands."""

    source: str  # what messages call it
    titles: list[str]
    cells: pd.DataFrame  # its columns are numbers, in the order of the titles
    columns: Mapping[str, Any]  # as the user named them
    sha256: str | None = None
    path: str | None = None
    kind: str = "log"
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)  # the columns of each role
    constant: dict[str, float] = field(default_factory=dict)  # what every pull costs
    notes: list[str] = field(default_factory=list)

    def without(self, rows: Any, why: str) -> None:
        """Leave these rows out, and tell of them."""
        if rows.any():
            self.notes.append(f"{self.lines(rows)} {why}")
            self.cells = self.cells[~rows]

    def lines(self, rows: Any) -> str:
        found = self.cells.index[rows].tolist()
        more = f" and {len(found) - 5:,} more" if len(found) > 5 else ""
        return f"line{'s' * (len(found) > 1)} {', '.join(map(str, found[:5]))}{more}"

    def title(self, role: str) -> str:
        return "+".join(self.titles[n] for n in self.at.get(role, ()))

    def texts(self, role: str) -> pd.Series:
        """The cells of a role; those of several columns as ``a / b``."""
        first, *more = (self.cells[n] for n in self.at[role])
        for column in more:
            first = first + " / " + column
        return first

    def unused(self) -> list[int]:
        used = {"", *(self.titles[n] for n in itertools.chain(*self.at.values()))}
        return [n for n, title in enumerate(self.titles) if title not in used]

    def error(self, text: str, rows: Any = None) -> InputError:
        """The error of this file, or of the first of some rows."""
        place = "" if rows is None else f", line {self.cells.index[int(np.argmax(rows))]}"
        return InputError(f"{self.source}{place}: {text}")


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
        source: a CSV file, ``-`` for standard input, or a pandas data frame.
        columns: the titles of name, pulls, reward and cost (counts; without pulls a log), or name,
            mean_reward and mean_cost; perhaps instance, time, and over (what rows of an arm are
            summed over). Several titles, ``"Campaign+Ad"``, name arms together. A number as cost is
            what every pull costs; ``pulls="1"``: every row is a pull. ``conversions`` is a reward
            that a pull brings once at most.
        drop: rows of this name, or else with this cell, are left out; with wide columns, too.
        wide: the file is a table of requests: a row is one, that all arms were tried on; an arm has
            a column of what it brought, and one of what that cost (``gpt4`` and ``gpt4_cost``).
        decimal: the decimal sign, "." or ","; None: the one by which all cells can be read.
        encoding: of the file's text; None for UTF-8, and for UTF-16 with its mark.
        reward_max: bound of the rewards in the user's unit per pull.
        cost_max: the same for costs.

    Raises:
        InputError: columns are not known (the message has all of them, and a command); a cell is
            not what it must be; a row may be a total; rows or names cannot be told apart.

    Example:
        >>> import pandas
        >>> ads = pandas.DataFrame({"Ad": ["a", "b"], "clicks": [10, 20], "Kosten": ["5,50 €", "8 €"], "Sales": [1, 2]})
        >>> table = read_arms(ads, columns={"name": "Ad", "reward": "Sales", "cost": "Kosten"})
        >>> table.instances[0].mean_cost.tolist(), table.cost_unit
        ([0.55, 0.4], '€')
    """
    stated = {"reward_max": reward_max, "cost_max": cost_max}
    limits = [x if x is None else positive_number(name, x) for name, x in stated.items()]
    if decimal not in (None, ".", ","):
        raise bad("decimal", decimal, "'.' or ','")
    if isinstance(drop, str) or not all(isinstance(text, str) for text in drop):
        raise bad("drop", drop, "a list of names or cells ('' for rows without a name)")
    for role, title in (columns or {}).items():
        if role not in ROLES:
            raise bad("columns", role, f"one of {', '.join(ROLES)}")
        if not title or not all(isinstance(x, str) and x.strip() for x in [title, *title][-1:]):
            raise bad("columns", title, f"the title of the column that is {role}")
    is_frame = hasattr(source, "columns")
    sheet = _of_frame(source) if is_frame else _of_file(source, columns or {}, wide, encoding)
    sheet.columns = columns or {}
    if wide:
        _melt(sheet, drop)
    else:
        _find_roles(sheet)
        _leave_out(sheet, drop, {n for role in NUMERIC for n in sheet.at.get(role, ())})
    rows = _rows(sheet, decimal)
    _check(rows, wide)
    return _table(rows, wide, limits)


# --- Cells


def _of_frame(source: Any) -> _Sheet:
    """A data frame, all cells as texts; its floats as none could be written with thousands."""
    frame = source.reset_index() if any(x is not None for x in source.index.names) else source
    cells = frame.set_axis(range(frame.shape[1]), axis=1).astype(object)

    def text(value: Any) -> str:
        if not isinstance(value, (float, np.floating)):
            return str(value).strip()
        return f"{value:.0f}" if value % 1 == 0 else f"{value:.17e}"

    cells = cells.where(cells.notna(), "").apply(lambda column: column.map(text))
    titles = [str(x).strip() for x in frame.columns]
    return _Sheet("data frame", titles, cells.set_axis(np.arange(len(cells)) + 1), {})


def _of_file(path: Any, columns: Mapping[str, Any], wide: bool, encoding: str | None) -> _Sheet:
    """The cells below the header: the first line that has all columns that are needed."""
    import pandas as pd

    name = line(" ".join(str(path).split()))
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise bad("arms file", str(path), f"a CSV file that can be read ({reason})") from None
    text = _decoded(name, content, encoding)
    tries = list[tuple[Any, ...]]()
    for sign in ",;\t|":
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign, skipinitialspace=True)
        with contextlib.suppress(csv.Error):
            for row in itertools.islice(filter("".join, reader), 60):
                if (filled := len(row) - row.count("")) > 1:
                    found, end = wide or bool(_roles(row, columns)[2]), reader.line_num
                    tries.append((not found, end if found else -filled, -filled, end, sign, row))
                    if found:
                        break
    if not tries:
        what = "no line has several cells" if text.strip(', ;\t|\r\n"') else "the file is empty"
        raise InputError(f"{name}: {what}; it must have a header and rows of arms")
    *_, end, sign, row = min(tries)
    stream = io.StringIO("".join(text.splitlines(keepends=True)[end:]), newline="")
    options: dict[str, Any] = {"header": None, "index_col": False, "sep": sign, "dtype": object}
    options |= {"na_filter": False, "skipinitialspace": True, "skip_blank_lines": False}
    try:
        with warnings.catch_warnings(action="error"):
            cells = pd.read_csv(stream, names=range(len(row) + 1), **options).fillna("")
    except pd.errors.EmptyDataError:
        cells = pd.DataFrame(columns=range(len(row) + 1), dtype=object)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as problem:
        what = f"not readable as CSV with a number of cells as in the header, {len(row)}"
        raise InputError(f"{name}: {what} ({' '.join(str(problem).split())})") from None
    cells = cells.set_axis(np.arange(len(cells)) + end + 1).apply(lambda x: x.str.strip())
    if (over := cells.pop(len(row)) != "").any():
        place = f"{name}, line {cells.index[over][0]}, number of cells"
        raise bad(place, len(row) + 1, f"at most {len(row)}, as in the header")
    titles, digest = [x.strip() for x in row], hashlib.sha256(content).hexdigest()
    return _Sheet(name, titles, cells, columns, digest, str(path))


def _decoded(name: str, content: bytes, encoding: str | None) -> str:
    is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    with contextlib.suppress(ValueError, LookupError):
        text = content.decode(encoding or ("utf-16" if is_wide else "utf-8-sig"))
        if "\0" not in text:
            return text
    must = "text in UTF-8, saved as CSV (say --encoding, such as cp1252; of a workbook give the data frame)"
    raise bad("encoding" if encoding else "arms file", encoding or name, must)


def _empty(column: pd.Series) -> np.ndarray:
    """Of each row whether nothing stands there."""
    return column.isin(_NOTHING).to_numpy()


def _key(text: str) -> str:
    """Without what the eye does not tell apart: case, blanks, forms of accents, zero width."""
    unseen = dict.fromkeys((0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF))
    return " ".join(unicodedata.normalize("NFKC", text).translate(unseen).casefold().split())


# --- Which column is what


def _roles(
    titles: Sequence[str], columns: Mapping[str, Any]
) -> tuple[dict[str, tuple[int, ...]], dict[str, float], list[str], str]:
    """Each role's columns, what every pull costs, possible kinds, and what is not there."""
    at, constant, keys = dict[str, tuple[int, ...]](), dict[str, float](), [*map(_key, titles)]
    for role, given in columns.items():
        whole = isinstance(given, str) and (_key(given) in keys or "+" not in given)
        found = list[list[int]]()
        for part in [given] if whole else given.split("+") if isinstance(given, str) else given:
            same = [n for n, x in enumerate(titles) if x.strip() == part.strip()]
            found.append(same or [n for n, x in enumerate(keys) if x == _key(part)])
        if all(len(x) == 1 for x in found):
            at[AS.get(role, role)] = tuple(x[0] for x in found)
        elif whole and not found[0] and re.fullmatch(r"\d*\.?\d+", given) and float(given) > 0:
            constant[AS.get(role, role)] = float(given)
        else:
            return at, constant, [], f"{role}={given}"
    used = {*itertools.chain(*at.values())}
    for n, text in enumerate(keys):
        for role, plain in PLAIN.items():
            is_free = n not in used and role not in constant and used.isdisjoint(at.get(role, ()))
            if text and text.replace(" ", "_") in plain.split() and is_free:
                at[role] = (*at.get(role, ()), n)
    has = at.keys() | constant.keys()
    return at, constant, [kind for kind, need in KINDS.items() if has.issuperset(need)], ""


def _find_roles(sheet: _Sheet) -> None:
    """Tell the sheet which columns are what, and what kind of file it is; or ask."""
    at, sheet.constant, kinds, problem = _roles(sheet.titles, sheet.columns)
    if problem or not kinds:
        raise _question(sheet, problem)
    if sheet.cells.empty:
        raise sheet.error("there is a header but no rows; it must have at least two arms")
    if one_each := sheet.constant.pop("pulls", 0):  # every row is a pull
        kinds = ["log"] * ("log" in kinds and one_each == 1)
    elif "counts" in kinds:
        kinds.remove("log")
    if len(kinds) != 1:
        fits = " and ".join(kinds) or "no kind"
        raise sheet.error(f"the header fits {fits}; name the columns with --columns")
    sheet.kind, said = kinds[0], {AS.get(role, role) for role in sheet.columns}
    roles = (*KINDS[sheet.kind], "instance", "time", "over")
    sheet.at = {role: at[role] for role in roles if role in at}
    for role, found in sheet.at.items():
        if len(found) > 1 and role not in said:
            either = " or ".join(quoted(sheet.titles[n]) for n in found)
            say = f"Say --columns {role}=… (a title that stands once)"
            raise sheet.error(f"is {either} the {role}? {say}")


def _question(sheet: _Sheet, problem: str) -> InputError:
    """What the columns are, with three samples each, and the command with a guess in each place."""
    samples = {}
    for n, title in enumerate(sheet.titles):
        if title:
            samples[title] = [x for x in sheet.cells[n].iloc[:500].unique() if x]
    joined = {x: y if isinstance(y, str) else "+".join(y) for x, y in sheet.columns.items()}
    given = {AS.get(role, role): title for role, title in joined.items()}
    free = [title for title in samples if title not in given.values()]
    numbers = [x for x in free if any(map(_CELL.fullmatch, {*samples[x][:3]} - {*_NOTHING}))]
    words = [title for title in free if title not in numbers]
    guess = {"name": max(words, key=lambda title: len(samples[title]), default="…")}
    for role, pattern in _GUESSES.items():
        likely = [x for x in numbers if re.search(pattern, x, re.IGNORECASE)]
        guess |= {role: likely[0]} if likely else {}
    pairs = {"name": "…"} | dict.fromkeys(_GUESSES, "…") | guess | given
    pairs |= {AS.get(role, role): "…" for role in [problem.partition("=")[0]] if role}
    said = shlex.quote(",".join(f"{role}={title}" for role, title in pairs.items()))
    what = "which column is what"
    if problem:
        what = f"columns: {quoted(problem)} given; it must be a title of the file, that stands there once"
    seen = [f"{quoted(brief(x, 60))} ({brief(', '.join(y[:3]), 60)})" for x, y in samples.items()]
    return sheet.error(
        f"{what}. The columns are {brief('; '.join(seen), 4000)}. Say it, this is a guess: jaxbandits read "
        f"{shlex.quote(sheet.path or 'FILE')} --columns {said} (without pulls a row is a pull; means are mean_reward "
        "and mean_cost; a number as cost is what every pull costs; a column for each arm: --wide)"
    )


# --- Numbers


def _number(text: str, decimal: str) -> tuple[float, str]:
    """A cell as it reads with this decimal sign, and its currency or %; NaN if it does not."""
    parts = _CELL.fullmatch(text)
    if parts is None or bool(parts[1]) != bool(parts[8]) or (parts[3] and parts[6]):
        return math.nan, ""
    below = -1.0 if parts[1] or {parts[2], parts[4], parts[7]} & {"-", "−"} else 1.0
    core, e, power = parts[5].casefold().partition("e")
    whole, _, rest = core.strip().partition(decimal)
    if _GROUPED.fullmatch(whole) and not e:
        whole = re.sub(rf"[.,{_BLANKS}]", "", whole)
    if not ((whole or "0") + (rest or "0")).isdecimal():
        return math.nan, ""
    return below * float(f"{whole or 0}.{rest or 0}{e}{power}"), (
        parts[3] or parts[6] or ""
    ).upper()


def _decimal(sheet: _Sheet, texts: Mapping[str, Sequence[str]]) -> str:
    """The sign by which all cells can be read, pulls as whole numbers; asked if both can, and differ."""
    every = [(role, text) for role, x in texts.items() for text in x]

    def reads(sign: str) -> bool:
        values = ((role, _number(text, sign)[0]) for role, text in every)
        return all(x == x and (role != "pulls" or x % 1 == 0) for role, x in values)

    if not (every and reads(",")):
        return "."
    if not reads("."):
        return ","
    for _, text in every:
        if _number(text, ".") != _number(text, ","):
            raise sheet.error(f"{quoted(text)} reads in two ways; say --decimal . or --decimal ,")
    return "."


def _numbers(sheet: _Sheet, decimal: str | None) -> tuple[dict[str, FloatArray], str]:
    """The columns of numbers by role, NaN where there is none, and their currency.

    pandas reads what is plain; other texts, and those with a point, are read one by one.
    """
    import pandas as pd

    values, strange, pointed = dict[str, FloatArray](), dict[str, Any](), dict[str, Any]()
    currencies, columns = set[str](), {x: sheet.texts(x) for x in NUMERIC if x in sheet.at}
    for role, column in columns.items():
        values[role] = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
        is_plain = ~np.isnan(values[role]) | _empty(column)
        is_word = column.str.casefold().isin([*_UNKNOWN, *_YES])
        strange[role] = column[~is_plain & ~is_word].unique()
        pointed[role] = column[is_plain & column.str.contains(".", regex=False)].unique()
    both = {role: (*strange[role], *pointed[role]) for role in columns}
    sign = decimal or _decimal(sheet, both)
    for role, column in columns.items():
        texts = both[role] if sign == "," else strange[role]
        read = {text: _number(text, sign) for text in texts}
        if read:
            known = column.map({text: value for text, (value, _) in read.items()})
            values[role] = np.where(column.isin(read), known.to_numpy(np.float64), values[role])
        values[role] = _checked(sheet, role, values[role], read)
        currencies |= {unit for _, unit in read.values() if unit not in ("", "%")}
    if len(currencies) > 1:
        names = " and ".join(map(quoted, sorted(currencies)))
        raise sheet.error(f"amounts in {names}; it must be one currency")
    return values, "".join(currencies)


def _checked(
    sheet: _Sheet, role: str, values: FloatArray, read: Mapping[str, tuple[float, str]]
) -> FloatArray:
    """A column in the unit of its title: right and wrong, percent, micros, cents; no rate."""
    column, title, counts = sheet.texts(role), sheet.title(role), sheet.kind == "counts"
    if "reward" in role:
        right = column.str.casefold().map(_YES).to_numpy(np.float64)
        values = np.where(np.isnan(right), values, right)
    percent = column.isin([text for text, (_, unit) in read.items() if unit == "%"]).to_numpy()
    is_known = _empty(column) | column.str.casefold().isin(_UNKNOWN).to_numpy()
    wrong = np.isnan(values) & ~is_known | np.isinf(values)
    wrong |= (values < 0) & (not counts or role == "pulls")
    wrong |= (np.floor(values) < values) & (role == "pulls")
    if counts or "cost" in role or (values[~percent] > 0).any():
        wrong |= percent
    if wrong.any():
        must = "a whole number of pulls" if role == "pulls" else _MAY_BE
        place = f"{sheet.source}, line {column.index[wrong][0]}, column {brief(title, 60)}"
        raise bad(place, column[wrong].iloc[0], f"{must} (or say --decimal)")
    if counts and re.search(_OF_ONE, title.replace("_", " ")):
        raise bad("columns", f"{role}={title}", "a total of all pulls, no mean, rate or percent")
    parts = [x for x in re.findall(r"[a-z]+|[¢%]", title.lower()) if x in _PARTS]
    units = [_PARTS[x] for x in parts] or [100.0] * bool(percent.any())
    if role == "pulls" or not units:
        return values
    sheet.notes.append(f"{quoted(title)} is divided by {units[0]:,.0f}")
    return values / units[0]


# --- Rows that count


@dataclass
class _Rows:
    """N rows with a name each, in file order."""

    sheet: _Sheet
    code: np.ndarray  # [N], the number of each row's arm
    arms: list[tuple[str, str]]  # of each number the instance and the name
    pulls: FloatArray  # [N], that the row sums; 1 for means and logs
    value: FloatArray  # [N], what they brought; NaN where it is not known
    spent: FloatArray  # [N], what they cost; NaN as above
    currency: str
    time: np.ndarray | None  # [N], texts


def _rows(sheet: _Sheet, decimal: str | None) -> _Rows:
    """The rows that count, with their numbers."""
    import pandas as pd

    numbers, currency = _numbers(sheet, decimal)
    kind, size, names = sheet.kind, len(sheet.cells), sheet.texts("name")
    pulls = numbers.get("pulls", np.ones(size))
    for role, constant in sheet.constant.items():
        numbers[role] = constant * np.nan_to_num(pulls)
        sheet.notes.append(f"every pull costs {constant:g} ({role}), as --columns says")
    value, spent = (numbers[x if kind != "means" else f"mean_{x}"] for x in ("reward", "cost"))
    if kind == "counts" and not np.min([pulls, value, spent]) >= 0:
        pulls, value, spent = _filled(sheet, pulls, value, spent)
    elif kind == "log":
        gaps, known = np.isnan(value), value[~np.isnan(value)]
        are_alike = 2 * gaps.sum() > size or np.ptp(known) == 0
        if gaps.any() and are_alike and (known > 0).all():
            raise sheet.error(f"{sheet.lines(gaps)}: no reward, and none is 0; write the 0s")
    stem = "stdin" if sheet.path == "-" else re.sub(r".*[\\/]|\.\w+$", "", sheet.path or "data")
    instance = sheet.texts("instance") if "instance" in sheet.at else pd.Series(stem, names.index)
    for column in (names, instance):
        _check_names(sheet, column)
    (of, problems), (code, every) = pd.factorize(instance), pd.factorize(names)
    code, both = pd.factorize(of * len(every) + code)
    arms = [(problems[x // len(every)], every[x % len(every)]) for x in both]
    if sheet.columns:
        used = (f"{role} = {quoted(sheet.titles[n])}" for role, x in sheet.at.items() for n in x)
        sheet.notes.append(f"columns: {', '.join(used)}")
    if unused := ", ".join(sheet.titles[n] for n in sheet.unused()):
        sheet.notes.append(f"columns not used: {quoted(unused)}")
    time = sheet.texts("time").to_numpy(str) if "time" in sheet.at else None
    return _Rows(sheet, code, arms, pulls, value, spent, currency, time)


def _leave_out(sheet: _Sheet, drop: Sequence[str], numeric: set[int]) -> None:
    """Without what the user drops and rows without numbers; a total or no name is refused."""
    texts, names = [n for n in sheet.cells if n not in numeric], sheet.at.get("name", ())
    for text in map(str.strip, drop):
        same = [
            (sheet.cells[n] == text).to_numpy() if text else _empty(sheet.cells[n])
            for n in (*names[-1:], *texts)
        ]
        by_name = bool(names) and (same[0].any() or not text)
        found = same[0] if by_name else np.any(same or [[False]], axis=0)
        if not found.any():
            raise bad("drop", text, "a name or a cell of the file")
        sheet.without(found, "dropped, as --drop says")
    blank = np.all([_empty(sheet.cells[n]) for n in numeric], axis=0)
    sheet.without(blank, "skipped: no numbers")
    if not (size := len(sheet.cells)):
        raise sheet.error("no row is left; it must have at least two arms")
    first, edge = [sheet.cells[n] for n in texts[:1]], np.arange(size)
    for n in texts[1:]:  # the first filled cell of each row
        first = [first[0].where(first[0] != "", sheet.cells[n])]
    if sheet.kind == "log":  # a prompt may begin so
        edge = edge[[0, *range(max(size - 3, 1), size)]]
    for column in [*(sheet.cells[n] for n in names), *(x.iloc[edge] for x in first)]:
        if called := [x for x in column.unique() if _TOTAL.fullmatch(x)]:
            at = sheet.cells.index == column.index[column == called[0]][0]
            say = f"--drop {shlex.quote(called[0])} leaves it out"
            raise sheet.error(f"{quoted(called[0])} is called a total; {say}", at)
    for n in names:
        if (nameless := _empty(sheet.cells[n])).any():
            raise sheet.error("no name, perhaps a total; --drop '' leaves such rows out", nameless)


def _filled(sheet: _Sheet, *amounts: FloatArray) -> list[FloatArray]:
    """Counts: an empty cell is 0, but not what pulls cost; NaN where a number is not known."""
    roles, none = ("pulls", "reward", "cost"), np.zeros(len(sheet.cells), bool)
    empty = {x: _empty(sheet.cells[sheet.at[x][0]]) if x in sheet.at else none for x in roles}
    unknown = empty["cost"] & (np.nan_to_num(amounts[0]) > 0)
    for role, column in zip(roles, amounts, strict=True):
        unknown = unknown | (np.isnan(column) & ~empty[role])
    told = {f"{role} empty: read as 0": rows & ~unknown for role, rows in empty.items()}
    told["below 0: summed as it is"] = np.any([x < 0 for x in amounts], axis=0)
    told["not summed: a number is not known"] = unknown
    sheet.notes += [f"{sheet.lines(rows)} {text}" for text, rows in told.items() if rows.any()]
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in amounts]


# --- Guards: rows that are sums, and rows or names that cannot be told apart


def _check(rows: _Rows, wide: bool) -> None:
    """Refuse what may be another number than it looks."""
    sheet, code, kind = rows.sheet, rows.code, rows.sheet.kind
    again = len(rows.arms) < len(code)
    if kind != "means":
        _refuse_sum(rows)
    for n in () if wide else sheet.unused():
        texts, title = {*sheet.cells[n].unique()} - {*_NOTHING}, sheet.titles[n]
        if len(texts) > 1 and all(re.fullmatch(_SIGN, x) for x in texts):
            say = f"with --columns {shlex.quote(f'instance={title}')} each is played by itself"
            raise sheet.error(f"several currencies stand in {quoted(title)}: {say}")
    if kind == "log" and not wide and "pulls" not in sheet.columns:
        reason = "" if again else "no name has two rows"
        if rows.time is not None and not any(re.search(r":|^\d{9}", x) for x in rows.time):
            days = {*zip(code.tolist(), rows.time.tolist(), strict=True)}
            if len(days) == len(code):
                reason = reason or "every name has one row for each day"
        if reason:
            say = "Say --columns pulls=… (what counts them), or pulls=1"
            raise sheet.error(f"{reason}: is a row one pull? {say}")
    if kind == "means" and again:
        name = rows.arms[int(np.argmax(np.bincount(code)))][1]
        raise bad(f"{sheet.source}, name", name, "another name, for several rows have this one")
    if kind == "counts" and again:
        _check_apart(rows)


def _refuse_sum(rows: _Rows) -> None:
    """Refuse a row that is the sum of all others, in every number that differs between rows."""
    every = [np.nan_to_num(x) for x in (rows.pulls, rows.value, rows.spent)]
    amounts = np.array([x for x in every if x.min() < x.max()])
    if len(amounts) < 2 or len(rows.code) < 3:
        return
    rest = amounts.sum(axis=1, keepdims=True) - amounts
    is_sum = ((np.abs(amounts - rest) <= _CLOSE * rest) | (amounts == 0)).all(axis=0)
    is_sum &= (amounts > 0).sum(axis=0) > 1
    if is_sum.any() and (amounts > 0).any(axis=0).sum() > 2:
        name = rows.sheet.texts("name")[is_sum].iloc[0]
        say = f"--drop {shlex.quote(name)} leaves out all rows of this name"
        raise rows.sheet.error(f"{quoted(name)} is the sum of other rows; {say}", is_sum)


def _check_names(sheet: _Sheet, column: pd.Series) -> None:
    """Names that look the same, and ids that a spreadsheet rounded, are refused."""
    seen = dict[str, str]()
    for text in column.unique():
        if (other := seen.setdefault(_key(text), text)) != text or text in _NOTHING:
            what = f"{text!a} and {other!a} look the same; write them alike, or apart"
            raise sheet.error(what if text else "no instance", column == text)
        if re.fullmatch(_ROUNDED, text):
            raise sheet.error(
                f"{quoted(text)} is an id that a spreadsheet rounded; it must be whole"
            )


def _check_apart(rows: _Rows) -> None:
    """Rows of one arm are summed only if nothing but a day tells them apart, or on demand."""
    sheet, frame, code = rows.sheet, rows.sheet.cells, rows.code
    if (twice := frame.duplicated()).any():
        raise sheet.error("equal to a row above in every cell; leave one out", twice)
    for n in sheet.at.get("time", ()):
        if (none := _empty(frame[n]) & (np.bincount(code)[code] > 1)).any():
            title = quoted(sheet.titles[n])
            raise sheet.error(f"no {title}, perhaps a total: leave it out, or fill it in", none)
    for n in sheet.unused():
        column, title = frame[n], sheet.titles[n]
        texts = {*column.unique()} - {*_NOTHING}
        if column.groupby(code).nunique().max() < 2:
            continue
        is_grid = column.groupby(code).agg(frozenset).nunique() == 1
        is_amount = all(map(_CELL.fullmatch, texts)) and not re.fullmatch(
            r"(?i).*\b(id|nr|no)", title
        )
        if is_grid or not is_amount:
            differ = f"{quoted(title)} ({brief(', '.join(sorted(texts)), 60)})"
            apart = shlex.quote(f"name={title}+{sheet.title('name')}")
            say = f"{apart} makes arms of them, {shlex.quote(f'over={title}')} sums them"
            day = shlex.quote(f"time={title}")
            raise sheet.error(
                f"rows of one name differ in {differ}: --columns {say}, {day} if it is a day"
            )


# --- A table of requests


def _melt(sheet: _Sheet, drop: Sequence[str]) -> None:
    """Make of a row for each request a log, arm by arm: row j of each is one request."""
    import pandas as pd

    columns: dict[str, dict[str, int]] = {"cost": {}, "score": {}, "": {}}
    known = {*sheet.titles}
    for n, title in enumerate(sheet.titles):
        words = (("cost", _COST.fullmatch(title)), ("score", _SCORE.fullmatch(title)))
        what, found = next((pair for pair in words if pair[1]), ("", None))
        arm = next(filter(None, found.groups())).strip(" ()[]") if found else title
        head = sheet.cells[n].iloc[:1000]
        filled, known = head[~_empty(head)], known | {arm}
        numbers = sum(bool(_CELL.fullmatch(x)) or x.casefold() in _YES for x in filled)
        if title and 2 * numbers > len(filled) and not {title, arm} & {*drop}:
            if arm in columns[what]:
                tell = f"two columns tell the {what or 'score'} of {quoted(arm)}; --drop one"
                raise sheet.error(tell)
            columns[what][arm] = n
    one_cost = sheet.columns.get("cost", "")
    if {*sheet.columns} - {"cost"} or (one_cost and not _number(one_cost, ".")[0] > 0):
        given = ",".join(f"{role}={title}" for role, title in sheet.columns.items())
        raise bad("columns", given, "cost with wide, a number: what every request costs")
    costs, worded, bare = columns.values()
    scores = worded if len(worded) > 1 else bare | worded
    costs = {} if one_cost else costs
    if costs:
        scores = {arm: n for arm, n in scores.items() if arm in costs or arm in worded}
    lacking = set[str]() if one_cost else {*scores} ^ {*costs}
    if len(scores) < 2 or lacking:
        of = f" ({quoted(min(lacking))} lacks one)" if lacking else ""
        must = f"columns of scores and of costs, as gpt4 and gpt4_cost, for two arms or more{of}"
        raise sheet.error(f"it must have {must}; or say --columns cost=1: every request costs 1")
    numeric = [*scores.values(), *costs.values()]
    _leave_out(sheet, [text for text in drop if text not in known], {*numeric})
    cells = sheet.cells[numeric]
    lacks = cells.apply(lambda x: _empty(x) | x.str.casefold().isin(_UNKNOWN))
    sheet.without(lacks.any(axis=1).to_numpy(), "left out: a request without a number of each arm")
    titles = [sheet.titles[n] for n in numeric]
    shown = brief(", ".join(map(quoted, titles)))
    sheet.notes.append(f"a table of {len(sheet.cells):,} requests: {shown}")
    if unused := ", ".join(x for x in sheet.titles if x and x not in titles):
        sheet.notes.append(f"columns not used: {quoted(unused)}")
    lines, names = sheet.cells.index, np.array([*scores], object).repeat(len(sheet.cells))
    parts = [pd.concat([sheet.cells[x[arm]] for arm in scores]) for x in (scores, costs) if x]
    long = dict(enumerate(np.asarray(part) for part in [names, *parts]))
    sheet.cells = pd.DataFrame(long, index=np.tile(lines, len(scores)))
    sheet.titles = ["arm", "score" if scores is worded else "reward", "cost"][: len(long)]
    sheet.at = {role: (n,) for n, role in enumerate(KINDS["log"][: len(long)])}
    sheet.columns, sheet.constant = {}, {"cost": float(one_cost)} if one_cost else {}


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


class _Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    first: int  # of its rows
    rows: np.ndarray  # those whose numbers are known
    totals: tuple[float, ...]  # pulls, value, spent
    reward: float = math.nan
    cost: float = math.nan
    reason: str = ""  # why it cannot be played


def _table(rows: _Rows, wide: bool, limits: Sequence[float | None]) -> ArmsTable:
    """The instances of at least two arms that can be played, and what was left out."""
    sheet, kind, groups = rows.sheet, rows.sheet.kind, dict[str, list[_Arm]]()
    counted, reward = sheet.title("pulls").lower(), sheet.title("reward") or "reward"
    pull = "request" if wide else "row" if kind == "log" else "pull"
    pull = counted[:-1] if kind == "counts" and re.fullmatch(r"[a-z ]+s", counted) else pull
    is_count = kind == "counts" and _key(reward) in ("conversion", "conversions")
    order = np.argsort(rows.code, kind="stable")
    ends = np.flatnonzero(np.diff(rows.code[order])) + 1
    for pair, at in zip(rows.arms, np.split(order, ends), strict=True):
        groups.setdefault(pair[0], []).append(_arm(rows, pair, at, pull))
    known = [arm for x in groups.values() for arm in x if not arm.reason]
    bounds = _bounds(rows, known, limits, wide, is_count or "conversions" in sheet.columns)
    instances, kept_out = list[Instance](), list[str]()
    for name, group in groups.items():
        arms = [arm for arm in group if not arm.reason]
        if len(group) == 1:
            raise bad(f"{sheet.source}, instance {quoted(name)}, number of arms", 1, "2 or more")
        instances += [_instance(rows, arms, bounds)] if len(arms) > 1 else []
        for arm in group:
            if arm.reason or len(arms) == 1:
                reason, at = arm.reason or "alone in its instance", sheet.cells.index[arm.first]
                kept_out.append(f"kept out, {reason}: {quoted(arm.name)} (line {at})")
    if not instances:
        must = "two arms must have pulls, and a mean cost above 0"
        raise sheet.error(f"{kept_out[0]}; {must}")
    if kind == "counts" and len(rows.arms) < len(rows.code):
        sheet.notes.append(f"{len(rows.code):,} rows summed to {len(rows.arms):,} arms")
    if kind == "log" and (gaps := np.isnan(rows.value + rows.spent)).any():
        sheet.notes.append(f"without reward or cost, gaps: {sheet.lines(gaps)}")
    sheet.notes += kept_out[:5]
    sheet.notes += [f"kept out: {len(kept_out) - 5:,} more"] if len(kept_out) > 5 else []
    if limits[0] is None and bounds[0] > 1:
        sheet.notes.append(f"rewards go above 1: their bound is {bounds[0]:.6g}")
    return ArmsTable(
        kind=kind,
        instances=tuple(instances),
        notes=tuple(sheet.notes),
        reward_unit="conversions" if is_count else brief(reward, 40),
        cost_unit=rows.currency or ("spent" if kind == "counts" else "cost"),
        sha256=sheet.sha256,
        pull_unit=pull,
        path=sheet.path,
        wide=wide,
    )


def _arm(rows: _Rows, pair: tuple[str, str], at: np.ndarray, pull: str) -> _Arm:
    """The arm of these rows, or why it cannot be played."""
    sheet, columns = rows.sheet, [x[at] for x in (rows.pulls, rows.value, rows.spent)]
    missing = [np.isnan(x) for x in columns]
    known = ~np.any(missing, axis=0)
    columns = [x[known] for x in columns]
    pulls, value, spent = totals = tuple(math.fsum(x.tolist()) for x in columns)
    arm = _Arm(*pair, int(at[0]), at[known], totals)
    if not known.any():
        reason = "no reward" if missing[1].any() else "no cost"
        return arm._replace(reason="a number is not known" if sheet.kind == "counts" else reason)
    if min(value, spent) < 0:  # refunds may make a row negative, not an arm
        place = f"{sheet.source}, line {sheet.cells.index[at[0]]}, arm {quoted(arm.name)} in all"
        raise bad(place, min(value, spent), _MAY_BE)
    if pulls == 0:
        return arm._replace(reason=f"no {pull}s")
    reward, cost = value / pulls, spent / pulls
    if sheet.kind != "counts":  # rounding may lift the mean of equal values above them
        reward, cost = (float(min(np.mean(x), np.max(x))) for x in columns[1:])
    return arm._replace(reward=reward, cost=cost, reason="it cost nothing" * (cost == 0))


def _bounds(
    rows: _Rows, arms: Sequence[_Arm], limits: Sequence[float | None], wide: bool, bounded: bool
) -> tuple[float, float]:
    """Of rewards and costs: the user's, or one pair for the file; see :func:`read_arms`."""
    is_log, bounds = rows.sheet.kind == "log", list[float]()
    columns = {"reward": rows.value, "cost": rows.spent}
    for (name, column), limit in zip(columns.items(), limits, strict=True):
        means = [(float(getattr(arm, name)), arm.first) for arm in arms]
        if is_log and arms:
            at = np.concatenate([arm.rows for arm in arms])
            largest = int(at[np.argmax(column[at])])
            means = [(float(column[largest]), largest)]
        top, i = max(means, key=lambda pair: pair[0], default=(0.0, 0))
        is_own = top > 1 and (is_log or name == "cost" or not bounded)
        is_own |= name == "cost" and (bool(rows.sheet.columns) or wide) and 0 < top < 0.1
        bounds.append(limit or ((top if is_log else top / _SHARE) if is_own else 1.0))
        if top > bounds[-1]:
            arm = f"arm {quoted(rows.arms[rows.code[i]][1])}: {'mean ' * (not is_log)}{name} {top}"
            say = f"{bounds[-1]} (--columns {name}=… has none; {name}_max sets it)"
            at_row = np.arange(len(rows.code)) == i
            raise rows.sheet.error(f"{arm} is above its bound {say}", at_row)
    return bounds[0], bounds[1]


def _instance(rows: _Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> Instance:
    """The instance of these arms, with its evidence."""
    evidence, log = Evidence(), list[tuple[FloatArray, FloatArray]]()
    if rows.sheet.kind == "log":
        log = [(rows.value[arm.rows], rows.spent[arm.rows]) for arm in arms]
    if rows.sheet.kind != "means":
        pulled, value, spent = (np.array([arm.totals[n] for arm in arms]) for n in range(3))
        whole = bool(((value % 1 == 0) & (value <= pulled)).all())
        whole = all(bool(((r == 0) | (r == 1)).all()) for r, _ in log) if log else whole
        several = not log and any(arm.rows.size > 1 for arm in arms)
        daily = tuple(_daily(rows, arm) for arm in arms) if several else None
        every = np.concatenate([arm.rows for arm in arms])
        days = 0 if log or rows.time is None else len({*rows.time[every]} - {*_NOTHING})
        evidence = Evidence(rows.sheet.kind, pulled, value, spent, whole, daily, days)
    return Instance(
        name=arms[0].instance,
        arms=tuple(arm.name for arm in arms),
        mean_reward=np.array([arm.reward for arm in arms]),
        mean_cost=np.array([arm.cost for arm in arms]),
        reward_bound=bounds[0],
        cost_bound=bounds[1],
        log=tuple(log) or None,
        evidence=evidence,
    )


def _daily(rows: _Rows, arm: _Arm) -> Daily:
    """Rows of one day summed; without days each row stands for itself."""
    day = arm.rows if rows.time is None else rows.time[arm.rows]
    _, place = np.unique(day, return_inverse=True)
    columns = (rows.pulls, rows.value, rows.spent)
    return Daily(*(np.bincount(place, column[arm.rows]) for column in columns))
