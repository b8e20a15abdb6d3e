"""Read the arms of budgeted bandits from a CSV file or a data frame, whose columns the user names.

pandas reads the cells. What a file does not say is asked in one line; rows that may be no arms, or
one arm twice, are refused with the option that decides. See docs/arms-files.md.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import hashlib
import io
import itertools
import lzma
import math
import re
import shlex
import sys
import unicodedata
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.apps.comparison import arms_table as nouns
from jaxbandits.apps.comparison.arms_table import ArmsTable, FloatArray
from jaxbandits.apps.comparison.number_style import NumberStyle
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
    "time": "time date day timestamp",
}
AS = {"arm": "name", "clicks": "pulls", "spent": "cost", "conversions": "reward"}
ROLES = (*PLAIN, "cost2", "over", *AS)
KINDS = {
    "counts": ("name", "pulls", "reward", "cost"),
    "means": ("name", "mean_reward", "mean_cost"),
    "log": ("name", "reward", "cost"),
}
NUMERIC = ("pulls", "reward", "cost", "mean_reward", "mean_cost", "cost2")
_NOTHING = ("", "-", "--", "–", "—")
_UNKNOWN = ("na", "n/a", "#n/a", "nan", "null", "none", "(none)")
_YES = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_PACKED: Mapping[bytes, Any] = {b"\x1f\x8b\x08": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
_GUESSES = {  # how titles of numbers often begin, for the question
    "pulls": r"cli[ck]|kli|pull|visit|sess|request|impr",
    "reward": r"conv|konv|order|purch|sale|lead|result|reward|score",
    "cost": r"cost|co[uû]t|kos[tz]|ausg|spen|spes|amount|gast|custo|dépen",
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
_DATE = re.compile(
    r"(?i)\d{1,4}[-./]\d{1,2}(?:[-./]\d{0,4})?(?:[T ].*)?|\d{8}"
    r"|\w{3,9}\.? \d.*|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
)
_ROUNDED = r"(?i)\d(?:[.,]\d+)?e\+\d\d|(?=\d{15,}$)\d+?0{6,}"  # of ids
_COST, _SCORE = (
    re.compile(rf"(?i){x}[\s_:|.-]+(.+)|(.+?)[\s_:|.-]+{x}")
    for x in (r"(?:total[_ ])?cost", "(?:score|reward)")
)
_MAY_BE, _SHARE = "a finite number of at least 0", 0.99  # of its bound, which the largest mean has
_CLOSE, _MANY = 5e-4, 1000  # of a sum, relative to it; cells that tell the decimal sign


@dataclass
class _Sheet:
    """Cells below a header, texts or a frame's floats; the index says in which line a row stands."""

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
    changes: list[str] = field(default_factory=list)  # those that change a number

    def without(self, rows: Any, why: str) -> None:
        """Leave these rows out, and tell of them."""
        if rows.any():
            self.changes.append(f"{self.lines(rows)} {why}")
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
    sheet = _sheet_of(source, columns or {}, wide, encoding)
    if wide:
        _melt(sheet, drop)
    else:
        _find_roles(sheet)
        _leave_out(sheet, drop, {n for role in NUMERIC for n in sheet.at.get(role, ())})
    rows = _rows(sheet, decimal)
    _check(rows, wide)
    return _table(rows, wide, limits)


# --- Cells


def _sheet_of(source: Any, columns: Mapping[str, Any], wide: bool, encoding: str | None) -> _Sheet:
    """The cells below the header: the first line that has all columns that are needed."""
    import pandas as pd

    if hasattr(source, "columns"):
        frame = source.reset_index() if any(x is not None for x in source.index.names) else source
        titles = [str(x).strip() for x in frame.columns]
        cells = frame.set_axis(range(frame.shape[1]), axis=1)
        # Its floats stay as they are, what is missing is an empty cell
        for n, column in cells.items():
            is_float = column.dtype.kind == "f"
            text = column.astype(object).where(column.notna(), "").map(lambda x: str(x).strip())
            cells[n] = column.astype(np.float64) if is_float else text
        return _Sheet("data frame", titles, cells.set_axis(np.arange(len(cells)) + 1), columns)
    name, content, text = _text_of(source, encoding)
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
    _, _, _, end, sign, row = min(tries)
    stream, names = io.StringIO(text, newline=""), range(len(row) + 1)
    for _ in range(end):
        next(stream)
    options: dict[str, Any] = {"header": None, "index_col": False, "sep": sign, "dtype": object}
    options |= {"na_filter": False, "skipinitialspace": True, "skip_blank_lines": False}
    try:
        with warnings.catch_warnings(action="error"):
            cells = pd.read_csv(stream, names=names, **options).fillna("")
    except pd.errors.EmptyDataError:
        cells = pd.DataFrame(columns=names, dtype=object)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as problem:
        what = f"number of cells: more than {len(row)}, as in the header"
        what = "not readable as CSV" if "inside string" in str(problem) else what
        raise InputError(f"{name}: {what} ({' '.join(str(problem).split())})") from None
    cells.index = np.arange(len(cells)) + end + 1
    if '"' in text and len(cells):  # a cell may have several lines
        cells.index += sum(cells[n].str.count("\n") for n in cells).cumsum().to_numpy()
    if len(cells) and any(x in text for x in (f" {sign}", " \n", " \r", ' "', "\xa0", "\t")):
        cells = cells.apply(lambda column: column.str.strip())
    if (over := cells.pop(len(row)) != "").any():
        place = f"{name}, line {cells.index[over][0]}, number of cells"
        raise bad(place, len(row) + 1, f"at most {len(row)}, as in the header")
    titles, digest = [x.strip() for x in row], hashlib.sha256(content).hexdigest()
    return _Sheet(name, titles, cells, columns, digest, str(source))


def _text_of(path: Any, encoding: str | None) -> tuple[str, bytes, str]:
    """What messages call the file, its bytes, and its text."""
    source = line(" ".join(str(path).split()))
    try:
        content = packed = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        for start, module in _PACKED.items():
            packed = module.decompress(content) if content.startswith(start) else packed
    except (OSError, EOFError, ValueError, TypeError, zlib.error, lzma.LZMAError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise bad("arms file", str(path), f"a CSV file that can be read ({reason})") from None
    is_wide = packed.startswith((b"\xff\xfe", b"\xfe\xff"))
    for name in [encoding] if encoding else ["utf-16"] if is_wide else ["utf-8-sig", "cp1252"]:
        with contextlib.suppress(ValueError, LookupError):
            text = packed.decode(name)
            if "\0" not in text and text[:2] != "PK" and text.lstrip()[:1] not in ("[", "{", "<"):
                return source, content, text
    must = "text in UTF-8, UTF-16 or Latin-1, saved as CSV (or say --encoding; of a workbook give the data frame)"
    raise bad("encoding" if encoding else "arms file", encoding or source, must)


def _is_text(column: pd.Series) -> bool:
    return column.dtype != np.float64


def _empty(column: pd.Series) -> np.ndarray:
    """Of each row whether nothing stands there."""
    return (column.isin(_NOTHING) if _is_text(column) else column.isna()).to_numpy()


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
    roles = (*KINDS[sheet.kind], "instance", "time", "cost2", "over")
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
            samples[title] = [x for x in map(str, sheet.cells[n].iloc[:500].unique()) if x]
    joined = {x: y if isinstance(y, str) else "+".join(y) for x, y in sheet.columns.items()}
    given = {AS.get(role, role): title for role, title in joined.items()}
    free = [title for title in samples if title not in given.values()]
    numbers = [x for x in free if any(map(_is_number, {*samples[x][:3]} - {*_NOTHING}))]
    words = [title for title in free if title not in numbers]
    guess = {"name": max(words, key=lambda title: len(samples[title]), default="…")}
    for patterns in (_GUESSES, dict.fromkeys(_GUESSES, "")):
        for role, pattern in patterns.items():
            left = [x for x in numbers if x not in guess.values()]
            likely = [x for x in left if re.search(pattern, x, re.IGNORECASE)]
            guess |= {role: likely[0]} if likely and role not in guess else {}
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


class _Cell(NamedTuple):
    """A cell as it reads with a decimal point, and with a decimal comma; NaN if it does not."""

    point: float = math.nan
    comma: float = math.nan
    sign: str = ""  # a currency or %
    first: bool = False  # it stands before the number


def _cell(text: str) -> _Cell:
    parts = _CELL.fullmatch(text)
    if parts is None or bool(parts[1]) != bool(parts[8]) or (parts[3] and parts[6]):
        return _Cell()
    below = -1.0 if parts[1] or {parts[2], parts[4], parts[7]} & {"-", "−"} else 1.0
    (core, e, power), values = parts[5].casefold().partition("e"), list[float]()
    for decimal in ".,":
        whole, _, rest = core.strip().partition(decimal)
        if _GROUPED.fullmatch(whole) and not e:
            whole = re.sub(rf"[.,{_BLANKS}]", "", whole)
        is_read = ((whole or "0") + (rest or "0")).isdecimal()
        values.append(below * float(f"{whole or 0}.{rest or 0}{e}{power}") if is_read else math.nan)
    return _Cell(values[0], values[1], (parts[3] or parts[6] or "").upper(), bool(parts[3]))


def _is_number(text: str) -> bool:
    return bool(_CELL.fullmatch(text)) or text.casefold() in _YES


def _numbers(sheet: _Sheet, decimal: str | None) -> tuple[dict[str, FloatArray], NumberStyle]:
    """The columns of numbers by role, NaN where there is none, and how they are written.

    Most cells are plain, and pandas reads them. The others, and those with a point, which may stand
    between thousands, are read one by one, each text once.
    """
    import pandas as pd

    values, odd = dict[str, FloatArray](), dict[str, dict[str, _Cell]]()
    shown, either, signs = dict[str, str](), "", dict[str, tuple[str, _Cell]]()
    for role in filter(sheet.at.__contains__, NUMERIC):
        column, odd[role] = sheet.cells[sheet.at[role][0]], {}
        values[role] = pd.to_numeric(column, errors="coerce").to_numpy(np.float64)
        if not _is_text(column):
            continue
        some = np.r_[
            np.flatnonzero(np.nan_to_num(values[role], posinf=0) % 1)[:_MANY],
            : min(_MANY, len(column)),
        ]
        pointed = column if decimal == "," else column.iloc[some]
        pointed = pointed[pointed.str.contains(".", regex=False)]
        strange = column[np.isnan(values[role]) & ~_empty(column)]
        odd[role] = {text: _cell(text) for x in (strange, pointed) for text in x.unique()}
        for text, cell in odd[role].items():
            point, comma = (x == x and (role != "pulls" or x % 1 == 0) for x in cell[:2])
            if cell.point != cell.comma and point != comma:
                shown["." if point else ","] = text
            elif cell.point != cell.comma:
                either = text if point else either
    if decimal is None and len(shown) > 1:
        both = f"{quoted(shown['.'])} has a decimal point, {quoted(shown[','])} a comma"
        raise sheet.error(f"{both}; say --decimal . or --decimal ,")
    if decimal is None and either and not shown:
        raise sheet.error(f"{quoted(either)} reads in two ways; say --decimal . or --decimal ,")
    if decimal is None and "," in shown:
        return _numbers(sheet, ",")  # which reads every point
    for role, cells in odd.items():
        read = {text: cell.comma if decimal == "," else cell.point for text, cell in cells.items()}
        column = sheet.cells[sheet.at[role][0]]
        if read:
            known = column.map(read).to_numpy(np.float64)
            values[role] = np.where(column.isin(list(read)), known, values[role])
        percent = {text for text, cell in cells.items() if cell.sign == "%"}
        values[role] = _checked(sheet, role, values[role], read, percent)
        signs |= {cell.sign: (text, cell) for text, cell in cells.items() if cell.sign not in "%"}
    if len(signs) > 1:
        names = " and ".join(map(quoted, sorted(signs)))
        raise sheet.error(f"amounts in {names}; it must be one currency")
    sign, (text, cell) = next(iter(signs.items()), ("", ("", _Cell(first=True))))
    apart, between = bool(re.search(r"\d\s\D|\D\s\d", text)), "." if decimal == "," else ""
    return values, NumberStyle(sign, cell.first, apart, decimal or ".", between)


def _checked(
    sheet: _Sheet, role: str, values: FloatArray, read: Mapping[str, float], percent: set[str]
) -> FloatArray:
    """A column in the unit of its title: right and wrong, percent, micros, cents; no rate."""
    column, title = sheet.cells[sheet.at[role][0]], sheet.title(role)
    counts = sheet.kind == "counts"
    words = {x for x, value in read.items() if value != value and x.casefold() not in _UNKNOWN}
    if words and "reward" in role and _YES.keys() >= {*map(str.casefold, words)}:
        right = column.map({text: _YES[text.casefold()] for text in words})
        values, words = np.where(column.isin(words), right.to_numpy(np.float64), values), set()
    if percent and (counts or "cost" in role or (values[~column.isin(percent)] > 0).any()):
        words |= percent
    wrong = np.isinf(values) | (values < 0) & (not counts or role == "pulls")
    wrong |= (np.floor(values) < values) & (role == "pulls")
    wrong |= column.isin(words).to_numpy()
    if wrong.any():
        must = "a whole number of pulls" if role == "pulls" else _MAY_BE
        place = f"{sheet.source}, line {column.index[wrong][0]}, column {brief(title, 60)}"
        raise bad(place, column[wrong].iloc[0], f"{must} (or say --decimal)")
    if counts and re.search(_OF_ONE, title.replace("_", " ")):
        raise bad("columns", f"{role}={title}", "a total of all pulls, no mean, rate or percent")
    parts = [x for x in re.findall(r"[a-z]+|[¢%]", title.lower()) if x in _PARTS]
    if role != "pulls" and (units := [_PARTS[x] for x in parts] or [100.0] * bool(percent)):
        sheet.changes.append(f"{quoted(title)} is divided by {units[0]:,.0f}")
        values = values / units[0]
    return values


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
    spent2: FloatArray | None
    style: NumberStyle
    time: np.ndarray | None = None


def _rows(sheet: _Sheet, decimal: str | None) -> _Rows:
    """The rows that count, with their numbers."""
    import pandas as pd

    numbers, style = _numbers(sheet, decimal)
    kind, size, names = sheet.kind, len(sheet.cells), sheet.texts("name")
    pulls = numbers.get("pulls", np.ones(size))
    for role, constant in sheet.constant.items():
        numbers[role] = constant * np.nan_to_num(pulls)
        sheet.changes.append(f"every pull costs {constant:g} ({role}), as --columns says")
    value, spent = (numbers[x if kind != "means" else f"mean_{x}"] for x in ("reward", "cost"))
    spent2 = numbers.get("cost2")
    if kind == "counts":
        if not np.min([pulls, value, spent]) >= 0:
            pulls, value, spent = _filled(sheet, pulls, value, spent)
        if spent2 is not None:
            spent2 = np.where(np.isnan(pulls), np.nan, np.nan_to_num(spent2))
    elif kind == "log":
        spent = spent if spent2 is None else np.where(np.isnan(spent2), np.nan, spent)
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
    time = _times(sheet, style) if "time" in sheet.at else None
    return _Rows(sheet, code, arms, pulls, value, spent, spent2, style, time)


def _leave_out(sheet: _Sheet, drop: Sequence[str], numeric: set[int]) -> None:
    """Without what the user drops and rows without numbers; a total or no name is refused."""
    for n in [n for n in sheet.cells if n not in numeric and not _is_text(sheet.cells[n])]:
        sheet.cells[n] = sheet.cells[n].map("{:.15g}".format).replace("nan", "")  # a frame's floats
    texts = [n for n in sheet.cells if _is_text(sheet.cells[n])]
    names = sheet.at.get("name", ())
    for text in map(str.strip, drop):
        same = [
            (sheet.cells[n] == text).to_numpy() if text else _empty(sheet.cells[n])
            for n in (*names[-1:], *(n for n in texts if n not in numeric))
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
    sheet.changes += [f"{sheet.lines(rows)} {text}" for text, rows in told.items() if rows.any()]
    return [np.where(unknown, np.nan, np.nan_to_num(x)) for x in amounts]


# --- Guards: rows that are sums, and rows or names that cannot be told apart


def _check(rows: _Rows, wide: bool) -> None:
    """Refuse what may be another number than it looks."""
    sheet, code, kind, time = rows.sheet, rows.code, rows.sheet.kind, rows.time
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
        if time is not None and (time == time.astype("datetime64[D]")).all():
            days = {*zip(code.tolist(), time.tolist(), strict=True)}
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
    for n in (*sheet.unused(), *sheet.at.get("time", ())):
        column, title = frame[n], sheet.titles[n]
        texts, over = {*map(str, column.unique())} - {*_NOTHING}, shlex.quote(f"over={title}")
        varies, is_amount = column.groupby(code).nunique().max() > 1, all(map(_is_number, texts))
        is_time = n in sheet.at.get("time", ())
        if is_time or (not is_amount and all(map(_DATE.fullmatch, texts))):
            if (none := _empty(column) & (np.bincount(code)[code] > 1)).any():
                say = f"leave it out, or say --columns {over}"
                raise sheet.error(f"no {quoted(title)}, perhaps a total: {say}", none)
        elif varies:
            is_grid = column.groupby(code).agg(frozenset).nunique() == 1
            if is_grid or not is_amount or re.search(r"(?i)(?:^|[\s_-])(?:id|nr|no)\b", title):
                apart = shlex.quote(f"name={title}+{sheet.title('name')}")
                differ = f"{quoted(title)} ({brief(', '.join(sorted(texts)), 60)})"
                say = f"with --columns {apart} they are arms of their own, with {over} they are summed"
                raise sheet.error(f"rows of one name differ in {differ}: {say}")


def _times(sheet: _Sheet, style: NumberStyle) -> np.ndarray | None:
    """datetime64[us], UTC where the cells say so; the day before the month as the column shows."""
    import pandas as pd

    column = sheet.cells[sheet.at["time"][0]].astype(object)
    texts = column.mask(_empty(column), None)
    times = pd.to_datetime(texts, format="ISO8601", utc=True, errors="coerce")
    if (times.isna() & texts.notna()).any():
        numbers = pd.to_numeric(texts, errors="coerce")
        days = texts.str.extract(r"^(\d{1,2})([./-])(\d{1,2})\2\d{2,4}").dropna()
        first, second = (pd.to_numeric(days[x]).max() for x in (0, 2))
        is_european = (days[1] == ".").any() or (style.decimal == "," and second <= 12)
        day_first = len(days) > 0 and bool(first > 12 or is_european)
        if numbers.min() > 9e8:  # seconds, or parts of them, since 1970
            power = int(math.log10(numbers.max() / 9e8) // 3)
            times = pd.to_datetime(numbers, unit=("s", "ms", "us", "ns")[min(power, 3)], utc=True)
        else:
            options: dict[str, Any] = {"format": "mixed", "dayfirst": day_first}
            times = pd.to_datetime(texts, utc=True, errors="coerce", **options)
        if (wrong := times.isna() & texts.notna()).any():
            if "time" in sheet.columns:
                must = f"days or times; {texts[wrong].iloc[0]!r} is none"
                raise bad("columns", f"time={sheet.title('time')}", must)
            del sheet.at["time"]
            return None
        if len(days) and not day_first and second <= 12:
            sheet.notes.append(f"{quoted(texts[days.index[0]])} read with the month first")
    return times.dt.tz_localize(None).to_numpy().astype("datetime64[us]")


# --- A table of requests


def _melt(sheet: _Sheet, drop: Sequence[str]) -> None:
    """Make of a row for each request a log, arm by arm: row j of each is one request."""
    import pandas as pd

    columns: dict[str, dict[str, int]] = {"cost": {}, "score": {}, "": {}}
    for n in [n for n in sheet.cells if not _is_text(sheet.cells[n])]:  # a frame's
        sheet.cells[n] = sheet.cells[n].map("{:.17e}".format).replace("nan", "")
    known = {*sheet.titles}
    for n, title in enumerate(sheet.titles):
        words = (("cost", _COST.fullmatch(title)), ("score", _SCORE.fullmatch(title)))
        what, found = next((pair for pair in words if pair[1]), ("", None))
        arm = next(filter(None, found.groups())).strip(" ()[]") if found else title
        head = sheet.cells[n].iloc[:1000]
        filled, known = head[~_empty(head)], known | {arm}
        is_read = not _is_text(head) or 2 * sum(map(_is_number, filled)) > len(filled)
        if title and is_read and not {title, arm} & {*drop}:
            if arm in columns[what]:
                tell = f"two columns tell the {what or 'score'} of {quoted(arm)}; --drop one"
                raise sheet.error(tell)
            columns[what][arm] = n
    every = {role: str(given) for role, given in sheet.columns.items()}
    for role, given in every.items():
        if role not in ("cost", "cost2") or not _is_number(given) or float(given) <= 0:
            must = "cost or cost2 with wide, a number: what every request costs"
            raise bad("columns", f"{role}={given}", must)
    costs, worded, bare = columns.values()
    scores = worded if len(worded) > 1 else bare | worded
    costs = {} if "cost" in every else costs
    if costs:
        scores = {arm: n for arm, n in scores.items() if arm in costs or arm in worded}
    lacking = {*scores} ^ {*costs} if "cost" not in every else set()
    if len(scores) < 2 or lacking:
        of = f" ({quoted(min(lacking))} lacks one)" if lacking else ""
        must = f"columns of scores and of costs, as gpt4 and gpt4_cost, for two arms or more{of}"
        raise sheet.error(f"it must have {must}; or say --columns cost=1: every request costs 1")
    numeric = [*scores.values(), *costs.values()]
    _leave_out(sheet, [text for text in drop if text not in known], {*numeric})
    cells = sheet.cells[numeric]
    lacks = cells.apply(lambda x: _empty(x) | x.astype(str).str.casefold().isin(_UNKNOWN))
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
    sheet.columns, sheet.constant = {}, {role: float(given) for role, given in every.items()}


# --- From rows to instances: sums, means, bounds, and the arms that cannot be played


class _Arm(NamedTuple):
    """One arm's rows, and its means per pull."""

    instance: str
    name: str
    every: np.ndarray  # its rows
    rows: np.ndarray  # those whose numbers are known
    totals: tuple[float, float, float]  # pulls, value, spent
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
    instances, kept_out = list[nouns.Instance](), list[nouns.KeptOut]()
    for name, group in groups.items():
        arms = [arm for arm in group if not arm.reason]
        if len(group) == 1:
            raise bad(f"{sheet.source}, instance {quoted(name)}, number of arms", 1, "2 or more")
        instances += [_instance(rows, arms, bounds)] if len(arms) > 1 else []
        for arm in group:
            if arm.reason or len(arms) == 1:
                place = int(sheet.cells.index[arm.every[0]])
                reason = arm.reason or "alone in its instance"
                kept_out.append(nouns.KeptOut(name, arm.name, place, reason))
    kept_out.sort(key=lambda arm: (arm.reason.startswith("alone"), arm.line))
    if not instances:
        out, must = kept_out[0], "two arms must have pulls, and a mean cost above 0"
        raise sheet.error(f"line {out.line}, arm {quoted(out.arm)}: {out.reason}; {must}")
    if kind == "counts" and len(rows.arms) < len(rows.code):
        sheet.notes.append(f"{len(rows.code):,} rows summed to {len(rows.arms):,} arms")
    if kind == "log" and (gaps := np.isnan(rows.value + rows.spent)).any():
        sheet.changes.append(f"without reward or cost, gaps: {sheet.lines(gaps)}")
    for out in kept_out[:5]:
        sheet.changes.append(f"kept out, {out.reason}: {quoted(out.arm)} (line {out.line})")
    sheet.changes += [f"kept out: {len(kept_out) - 5:,} more"] if len(kept_out) > 5 else []
    if limits[0] is None and bounds[0] > 1:
        sheet.notes.append(f"rewards go above 1: their bound is {bounds[0]:.6g}")
    return ArmsTable(
        kind=kind,
        instances=tuple(instances),
        notes=(*sheet.changes, *sheet.notes),
        reward_unit="conversions" if is_count else brief(reward, 40),
        cost_unit="spent" if kind == "counts" else "cost",
        sha256=sheet.sha256,
        pull_unit=pull,
        style=rows.style,
        kept_out=tuple(sorted(kept_out, key=lambda arm: arm.line)),
        changes=len(sheet.changes),
        path=sheet.path,
        cost2_unit="" if rows.spent2 is None else sheet.title("cost2") or f"{pull}s",
        wide=wide,
    )


def _arm(rows: _Rows, pair: tuple[str, str], at: np.ndarray, pull: str) -> _Arm:
    """The arm of these rows, or why it cannot be played."""
    sheet, columns = rows.sheet, [x[at] for x in (rows.pulls, rows.value, rows.spent)]
    missing = [np.isnan(x) for x in columns]
    known = ~np.any(missing, axis=0)
    columns = [x[known] for x in columns]
    pulls, value, spent = totals = tuple(math.fsum(x.tolist()) for x in columns)
    arm = _Arm(*pair, at, at[known], totals)  # type: ignore[arg-type]
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
        means = [(float(getattr(arm, name)), int(arm.every[0])) for arm in arms]
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
            raise rows.sheet.error(
                f"{arm} is above its bound {say}", np.arange(len(rows.code)) == i
            )
    return bounds[0], bounds[1]


def _instance(rows: _Rows, arms: Sequence[_Arm], bounds: tuple[float, float]) -> nouns.Instance:
    """The instance of these arms, with its evidence."""
    is_log, evidence = rows.sheet.kind == "log", nouns.Evidence()
    every_bound: float | tuple[float, ...] = bounds[1]
    costs, log = np.array([arm.cost for arm in arms]), list[tuple[FloatArray, FloatArray]]()
    if is_log:
        log = [(rows.value[arm.rows], rows.spent[arm.rows]) for arm in arms]
    if rows.spent2 is not None:  # its bound is that of this instance's arms
        second = [rows.spent2[arm.rows] for arm in arms]
        means = [x.sum() / rows.pulls[arm.rows].sum() for x, arm in zip(second, arms, strict=True)]
        largest = float(max(x.max() for x in second) if log else max(means) / _SHARE) or 1.0
        costs, every_bound = np.stack([costs, means], axis=1), (bounds[1], largest)
        log = [(r, np.stack([c, x], axis=1)) for (r, c), x in zip(log, second, strict=False)]
    if rows.sheet.kind != "means":
        pulled, value, spent = (_fixed([arm.totals[n] for arm in arms]) for n in range(3))
        whole = bool(((value % 1 == 0) & (value <= pulled)).all())
        whole = all(bool(((r == 0) | (r == 1)).all()) for r, _ in log) if log else whole
        several = not log and any(arm.rows.size > 1 for arm in arms)
        daily = tuple(_daily(rows, arm) for arm in arms) if several else None
        every = _pulls(rows, arms) if log else None
        evidence = nouns.Evidence(rows.sheet.kind, pulled, value, spent, whole, daily, every)
    return nouns.Instance(
        name=arms[0].instance,
        arms=tuple(arm.name for arm in arms),
        mean_reward=_fixed([arm.reward for arm in arms]),
        mean_cost=_fixed(costs),
        reward_bound=bounds[0],
        cost_bound=every_bound,
        log=tuple((_fixed(r), _fixed(c)) for r, c in log) or None,
        evidence=evidence,
    )


def _daily(rows: _Rows, arm: _Arm) -> nouns.Daily:
    """Rows of one day summed; those without a day stand at the end, each for itself."""
    day = np.full(arm.rows.size, np.datetime64("NaT", "D"))
    if rows.time is not None:
        day = rows.time[arm.rows].astype("datetime64[D]")
    dated = ~np.isnat(day)
    days, place = np.unique(day[dated], return_inverse=True)
    columns = [column[arm.rows] for column in (rows.pulls, rows.value, rows.spent)]
    sums = [np.concatenate([np.bincount(place, x[dated], days.size), x[~dated]]) for x in columns]
    return nouns.Daily(np.concatenate([days, day[~dated]]), *map(_fixed, sums))


def _pulls(rows: _Rows, arms: Sequence[_Arm]) -> nouns.Pulls:
    """All rows of these arms, in time order; a row without a time stays behind the one above."""
    number = np.full(len(rows.code), -1)
    for i, arm in enumerate(arms):
        number[arm.every] = i
    at, time = np.flatnonzero(number >= 0), rows.time
    if time is not None:
        dated = np.maximum.accumulate(np.where(np.isnat(time[at]), -1, np.arange(at.size)))
        earliest = np.datetime64(np.iinfo(np.int64).min + 1, "us")
        at = at[np.argsort(np.where(dated < 0, earliest, time[at][dated]), kind="stable")]
    value, spent = _fixed(rows.value[at]), _fixed(rows.spent[at])
    return nouns.Pulls(number[at], value, spent, None if time is None else time[at])


def _fixed(values: Any) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
