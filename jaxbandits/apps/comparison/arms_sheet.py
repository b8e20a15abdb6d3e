"""From a CSV file or a data frame to columns of cells, and from cells to numbers.

What a file does not say is asked, never guessed: which column is what, and the decimal sign.
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
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits._tables import NumberStyle, line
from jaxbandits.core.checks import InputError, bad, brief, quoted

PLAIN = {  # titles that need no name, by what they are
    "name": ("name", "arm"),
    "pulls": ("pulls", "clicks"),
    "reward": ("reward", "conversions", "conversion"),
    "cost": ("cost", "spent", "spend"),
    "mean_reward": ("mean reward", "reward mean"),
    "mean_cost": ("mean cost", "cost mean"),
    "instance": ("instance",),
    "time": ("time", "date", "day", "timestamp"),
}
KINDS = {
    "counts": ("name", "pulls", "reward", "cost"),
    "means": ("name", "mean_reward", "mean_cost"),
    "log": ("name", "reward", "cost"),
}
AS = {"arm": "name", "clicks": "pulls", "spent": "cost", "conversions": "reward"}
ROLES = (*PLAIN, "cost2", "over", *AS)
NUMERIC = ("pulls", "reward", "cost", "mean_reward", "mean_cost", "cost2")
NOTHING = frozenset({"", "-", "--", "–", "—"})
MAY_BE = "a finite number of at least 0"

_HEADER_WITHIN = 60  # rows
_PACKED: Mapping[bytes, Any] = {b"\x1f\x8b\x08": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
_UNSEEN = dict.fromkeys((0xAD, *range(0x200B, 0x2010), 0x2060, 0xFEFF))
_GUESSES = {  # how titles of numbers often begin, for the question
    "pulls": r"cli[ck]|kli|pull|visit|sess|request|impr",
    "reward": r"conv|konv|order|purch|sale|lead|result|reward|score",
    "cost": r"cost|co[uû]t|kos[tz]|ausg|spen|spes|amount|gast|custo|dépen",
}
SIGN = (  # of a currency
    r"(?:[A-Z]{0,3}[$£¥₠-⃀]|kr\.?|zł|Kč|Ft|Rs\.?|AED|ARS|AUD|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EUR|GBP|HKD|HUF"
    r"|IDR|ILS|INR|JPY|KRW|MXN|MYR|NOK|NZD|PEN|PHP|PLN|RON|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR)"
)
_BLANKS = r"'’ \u00a0\u2009\u202f"  # between thousands
_CELL = re.compile(
    rf"(\()?([-−+]?)\s*({SIGN})?\s*([-−+]?)((?:\d[\d.,{_BLANKS}]*|[.,]\d+)(?:e[+-]?\d+)?)"
    rf"\s*({SIGN}|%)?(-?)(\))?",
    re.ASCII | re.IGNORECASE,
)
_GROUPED = re.compile(
    rf"[1-9]\d{{0,2}}([.,{_BLANKS}])\d{{3}}(?:\1\d{{3}})*|[1-9]\d?(?:,\d\d)+,\d{{3}}", re.ASCII
)
_SIMPLE = re.compile(r"\d{1,15}|(?:\d*\.\d{1,2}|\d*\.\d{4,}|0\.\d+)(?:e-?\d+)?", re.ASCII)
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
UNKNOWN = {"na", "n/a", "#n/a", "nan", "null", "none", "(none)"}
_YES = {"true": 1, "yes": 1, "ja": 1, "y": 1, "false": 0, "no": 0, "nein": 0, "n": 0}
_OF_ONE = re.compile(
    r"\b(?:per|pro|par|por|avg|average|durchschn|mean|rate|e?cp[a-z]|ctr|rpm|epc|roas|roi|acos)\b|ø|%",
    re.IGNORECASE,
)
_PARTS = {"micro": 1e6, "micros": 1e6, "cent": 100.0, "cents": 100.0, "¢": 100.0}
_NO_UNIT = re.compile(
    r"\b(?:thousands?|millions?|tsd|mio|pence)\b|\(k\)|(?-i:GBp|GBX)|\b000s?\b|\bk[$€£]",
    re.IGNORECASE,
)


@dataclass
class Sheet:
    """Columns of N cells below a header."""

    source: str  # what messages call it
    titles: list[str]
    cells: list[np.ndarray]  # of each column texts without blanks around, or a frame's floats
    line: np.ndarray  # [N], where each row stands
    columns: Mapping[str, Any]  # as the user named them
    sha256: str | None = None
    path: str | None = None
    kind: str = "log"
    at: dict[str, tuple[int, ...]] = field(default_factory=dict)  # the columns of each role
    constant: dict[str, float] = field(default_factory=dict)  # what every pull costs
    notes: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)  # those that change a number

    def only(self, rows: np.ndarray, why: str) -> None:
        """Keep these rows, bool [N], and tell of the others."""
        if not rows.all():
            self.changes.append(f"{self.lines(~rows)} {why}")
            self.line, self.cells = self.line[rows], [column[rows] for column in self.cells]

    def lines(self, rows: np.ndarray) -> str:
        """``line 3``, ``lines 3, 5``, of these rows."""
        found = self.line[rows].tolist()
        more = f" and {len(found) - 5:,} more" if len(found) > 5 else ""
        return f"line{'s' * (len(found) > 1)} {', '.join(map(str, found[:5]))}{more}"

    def texts(self, role: str) -> np.ndarray:
        """The cells of a role as texts; those of several columns as ``a / b``."""
        first, *more = (self.cells[n] for n in self.at[role])
        for column in more:
            first = first + " / " + column
        return first if first.dtype == object else np.array([f"{x:.15g}" for x in first], object)

    def unused(self) -> list[int]:
        """Columns with a title and no role."""
        used = {"", *(self.titles[n] for n in itertools.chain(*self.at.values()))}
        return [n for n, title in enumerate(self.titles) if title not in used]

    def error(self, text: str, row: Any = None) -> InputError:
        """The error of this file, or of a row of it."""
        return InputError(
            f"{self.source}{'' if row is None else f', line {self.line[row]}'}: {text}"
        )


def passes(column: np.ndarray, test: Callable[[Any], Any]) -> np.ndarray:
    """Of each row whether its cell passes a test, which every text is put to once; bool [N]."""
    found = {x: bool(test(x)) for x in dict.fromkeys(column.tolist())}
    return np.fromiter(map(found.__getitem__, column.tolist()), bool, len(column))


def is_empty(column: np.ndarray) -> np.ndarray:
    """Of each row whether nothing stands there, bool [N]."""
    is_text = column.dtype == object
    return np.any([column == x for x in NOTHING], axis=0) if is_text else np.isnan(column)


def key(text: str) -> str:
    """The text without what the eye does not tell apart: case, blanks, forms of accents, zero width."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_UNSEEN).casefold().split())


def read_sheet(source: Any, columns: Mapping[str, Any], wide: bool, encoding: str | None) -> Sheet:
    """The cells below the header: the first line that has all columns that are needed."""
    if hasattr(source, "columns"):
        return _of_frame(source, columns)
    name, content, text = _text_of(source, encoding)
    tries = list[tuple[Any, ...]]()
    for sign in ",;\t|":
        with contextlib.suppress(InputError):
            for end, row in itertools.islice(_rows(text, sign, ""), _HEADER_WITHIN):
                if (filled := len(row) - row.count("")) > 1:
                    found = wide or bool(_roles(row, columns)[2])
                    tries.append((not found, end if found else -filled, -filled, end, sign, row))
                    if found:
                        break
    if not text.strip(', ;\t|\r\n"'):
        raise InputError(f"{name}: the file is empty; it must have a header and rows of arms")
    if not tries:
        list(_rows(text, ",", name))  # is it CSV at all?
        raise InputError(
            f"{name}: no line has several cells; it must have a header and rows of arms"
        )
    _, _, _, end, sign, titles = min(tries)
    rows, lines, width = list[list[str]](), list[int](), len(titles)
    for at, row in _rows(text, sign, name):
        if at > end:
            if len(row) != width and "".join(row[width:]).strip():
                place = f"{name}, line {at}, number of cells"
                raise bad(place, len(row), f"at most {width}, as in the header")
            rows.append(row if len(row) == width else row[:width] + [""] * (width - len(row)))
            lines.append(at)
    cells = [np.array([*map(str.strip, column)], object) for column in zip(*rows, strict=True)]
    cells = cells or [np.array([], object)] * width
    digest = hashlib.sha256(content).hexdigest()
    return Sheet(
        name, [*map(str.strip, titles)], cells, np.array(lines, int), columns, digest, str(source)
    )


def _of_frame(frame: Any, columns: Mapping[str, Any]) -> Sheet:
    """A pandas data frame; its floats stay as they are, what is missing is an empty cell."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    cells = []
    for n in range(frame.shape[1]):
        column = frame.iloc[:, n]
        if column.dtype.kind == "f":
            cells.append(column.to_numpy(np.float64, na_value=np.nan))
        else:
            texts = column.map(lambda x: str(x).strip()).to_numpy(object).copy()
            texts[column.isna().to_numpy()] = ""
            cells.append(texts)
    titles = [str(title).strip() for title in frame.columns]
    return Sheet("data frame", titles, cells, np.arange(len(frame)) + 1, columns)


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


def _rows(text: str, sign: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Lines and cells of all rows. Strict, for a stray quote would swallow the rest of the file."""
    opened = io.StringIO(text, newline="")
    reader = csv.reader(opened, strict=True, delimiter=sign, skipinitialspace=True)
    try:
        for row in reader:
            if "".join(row).strip():
                yield reader.line_num, row
    except csv.Error as error:
        place = f"{source}, line {reader.line_num}"
        raise InputError(f"{place}: not readable as CSV: {error}") from None


# --- Which column is what


def _roles(
    titles: Sequence[str], columns: Mapping[str, Any]
) -> tuple[dict[str, tuple[int, ...]], dict[str, float], list[str], str]:
    """The columns of each role, what every pull costs, the kinds of files that this may be, and what
    of the user's is not there.
    """
    at, constant, keys = dict[str, tuple[int, ...]](), dict[str, float](), [*map(key, titles)]
    for role, given in columns.items():
        whole = isinstance(given, str) and (key(given) in keys or "+" not in given)
        parts = [given] if whole else given.split("+") if isinstance(given, str) else given
        same = [[n for n, x in enumerate(titles) if x.strip() == part.strip()] for part in parts]
        same = [
            x or [n for n, y in enumerate(keys) if y == key(part)]
            for x, part in zip(same, parts, strict=True)
        ]
        if all(len(x) == 1 for x in same):
            at[AS.get(role, role)] = tuple(x[0] for x in same)
        elif whole and not same[0] and _NUMBER.fullmatch(given) and float(given) > 0:
            constant[AS.get(role, role)] = float(given)
        else:
            return at, constant, [], f"{role}={given}"
    used = {*itertools.chain(*at.values())}
    for n, text in enumerate(keys):
        for role, plain in PLAIN.items():
            is_free = role not in constant and used.isdisjoint(at.get(role, ()))
            if text.replace("_", " ") in plain and n not in used and is_free:
                at[role] = (*at.get(role, ()), n)
    has = at.keys() | constant.keys()
    return at, constant, [*filter(lambda kind: has.issuperset(KINDS[kind]), KINDS)], ""


def find_roles(sheet: Sheet) -> None:
    """Tell the sheet which columns are what, and what kind of file it is.

    Raises:
        InputError: that is not known, or two columns may be one thing.
    """
    at, sheet.constant, kinds, problem = _roles(sheet.titles, sheet.columns)
    if problem or not kinds:
        raise _question(sheet, problem)
    if not sheet.line.size:
        raise sheet.error("there is a header but no rows; it must have at least two arms")
    if one_each := sheet.constant.pop("pulls", 0):  # every row is a pull
        kinds = ["log"] * ("log" in kinds and one_each == 1)
    elif "counts" in kinds:
        kinds.remove("log")
    if len(kinds) != 1:
        raise sheet.error(
            f"the header fits {' and '.join(kinds) or 'no kind'}; say --columns, what is what"
        )
    sheet.kind = kinds[0]
    for role in (*KINDS[sheet.kind], "instance", "time", "cost2", "over"):
        if role in at:
            sheet.at[role] = at[role]
            if len(at[role]) > 1 and not {role, *(x for x in AS if AS[x] == role)} & {
                *sheet.columns
            }:
                either = " or ".join(quoted(sheet.titles[n]) for n in at[role])
                raise sheet.error(
                    f"is {either} the {role}? Say --columns {role}=… (a title that stands once)"
                )


def _question(sheet: Sheet, problem: str) -> InputError:
    """What the columns are, with three samples each, and the command with a guess in each place."""
    samples = dict[str, list[str]]()
    for title, column in zip(sheet.titles, sheet.cells, strict=True):
        if title:
            samples[title] = [x for x in map(str, dict.fromkeys(column[:500].tolist())) if x]
    seen = [
        f"{quoted(brief(title, 60))} ({brief(', '.join(x[:3]), 60)})"
        for title, x in samples.items()
    ]
    joined = {x: y if isinstance(y, str) else "+".join(y) for x, y in sheet.columns.items()}
    given = {AS.get(role, role): title for role, title in joined.items()}
    free = {title: x for title, x in samples.items() if title not in given.values()}
    numbers = [title for title, x in free.items() if any(map(is_number, {*x[:3]} - NOTHING))]
    words = [title for title in free if title not in numbers]
    guess = {"name": max(words, key=lambda title: len(free[title]), default="…")}
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
    if _SIMPLE.fullmatch(text):  # most are, and these take no time
        return _Cell(float(text), math.nan if "." in text else float(text))
    parts = _CELL.fullmatch(text)
    if parts is None or bool(parts[1]) != bool(parts[8]) or (parts[3] and parts[6]):
        return _Cell()
    below = -1.0 if parts[1] or {parts[2], parts[4], parts[7]} & {"-", "−"} else 1.0
    point, comma = _value(parts[5], "."), _value(parts[5], ",")
    return _Cell(below * point, below * comma, (parts[3] or parts[6] or "").upper(), bool(parts[3]))


def _value(core: str, decimal: str) -> float:
    core, e, power = core.casefold().partition("e")
    whole, _, rest = core.strip().partition(decimal)
    if (groups := _GROUPED.fullmatch(whole)) and not e:
        whole = re.sub(rf"[.,{_BLANKS}]", "", groups[0])
    is_read = ((whole or "0") + (rest or "0")).isdecimal()
    return float(f"{whole or '0'}.{rest or '0'}{e}{power}") if is_read else math.nan


def is_number(text: str) -> bool:
    """Whether a cell is a number in any dress, or yes or no."""
    return bool(_CELL.fullmatch(text)) or text.casefold() in _YES


def read_numbers(
    sheet: Sheet, at: Mapping[str, int], decimal: str | None
) -> tuple[dict[str, np.ndarray], NumberStyle]:
    """The columns at these places, NaN where there is no number, and how they are written.

    Raises:
        InputError: a cell is no number, below 0, or in percent where it may not be; a unit is not
            known; the decimal sign, or the currency, is not one.
    """
    texts = {
        role: {text: _cell(text) for text in dict.fromkeys(sheet.cells[n].tolist())}
        for role, n in at.items()
        if sheet.cells[n].dtype == object
    }
    decimal = decimal or _decimal(sheet, texts)
    values, moneys = dict[str, np.ndarray](), dict[str, tuple[str, _Cell]]()
    for role, n in at.items():
        cells, title, column = texts.get(role, {}), sheet.titles[n], sheet.cells[n]
        dressed = {text: cell for text, cell in cells.items() if cell.sign}
        read = {text: cell.point if decimal == "." else cell.comma for text, cell in cells.items()}
        words = {text for text in read if read[text] != read[text] and text not in NOTHING}
        words = {text for text in words if text.casefold() not in UNKNOWN}
        if words and "reward" in role and _YES.keys() >= {*map(str.casefold, words)}:
            read |= {text: float(_YES[text.casefold()]) for text in words}
            words = set()
        if cells:
            column = np.fromiter(map(read.__getitem__, column.tolist()), np.float64, len(column))
        percent = {text for text, cell in dressed.items() if cell.sign == "%"}
        if percent and (
            sheet.kind == "counts"
            or "cost" in role
            or len(percent) < np.count_nonzero([*read.values()])
        ):
            words |= percent
        wrong = np.isinf(column) | (column < 0) & (sheet.kind != "counts" or role == "pulls")
        wrong |= (np.floor(column) < column) & (role == "pulls")
        wrong |= passes(sheet.cells[n], words.__contains__) if words else False
        if wrong.any():
            i, more = int(np.argmax(wrong)), int(wrong.sum()) - 1
            must = "a whole number of pulls" if role == "pulls" else MAY_BE
            must += f" (decimal sign: {decimal!r})" + f" (and {more:,} more such cells)" * (
                more > 0
            )
            place = f"{sheet.source}, line {sheet.line[i]}, column {brief(title, 60)}"
            raise bad(place, sheet.cells[n][i], must)
        if sheet.kind == "counts" and _OF_ONE.search(title.replace("_", " ")):
            raise bad(
                "columns", f"{role}={title}", "a total of all pulls, no mean, rate or percent"
            )
        if _NO_UNIT.search(title):
            raise sheet.error(f"the unit of {quoted(title)} is not known")
        units = [
            _PARTS[x]
            for x in re.findall(r"[a-z]+|¢", title.lower())
            if x in _PARTS and role != "pulls"
        ]
        if percent or units or ("%" in title and sheet.kind != "counts"):
            unit = units[0] if units else 100.0
            column = column / unit
            sheet.changes.append(f"{quoted(title)} is divided by {unit:,.0f}")
        values[role] = column
        moneys |= {cell.sign: (text, cell) for text, cell in dressed.items() if cell.sign != "%"}
    if len(moneys) > 1:
        names = " and ".join(map(quoted, sorted(moneys)))
        raise sheet.error(f"amounts in {names}; it must be one currency")
    sign, (text, cell) = next(iter(moneys.items()), ("", ("", _Cell(first=True))))
    apart = bool(re.search(r"\d\s\D|\D\s\d", text))
    return values, NumberStyle(sign, cell.first, apart, decimal, "." if decimal == "," else "")


def _decimal(sheet: Sheet, texts: Mapping[str, Mapping[str, _Cell]]) -> str:
    """The decimal sign of the file: the one by which cells can be read, and pulls are whole."""
    shown, either = dict[str, str](), ""
    for role, cells in texts.items():
        for text, cell in cells.items():
            if cell.point != cell.comma:
                fits = (cell.point, cell.comma)
                point, comma = (x == x and (role != "pulls" or x % 1 == 0) for x in fits)
                if point != comma:
                    shown["." if point else ","] = text
                either = text if point and comma else either
    if len(shown) > 1:
        signs = f"{quoted(shown['.'])} has a decimal point, {quoted(shown[','])} a comma"
        raise sheet.error(f"{signs}; say --decimal . or --decimal ,")
    if either and not shown:
        raise sheet.error(f"{quoted(either)} reads in two ways; say --decimal . or --decimal ,")
    return next(iter(shown), ".")
