"""From the bytes of an arms file to its cells: text, the sign between cells, the line of the header."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import itertools
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from jaxbandits._tables import line as on_one_line
from jaxbandits.apps.comparison._reading.columns import Asked, Columns, Texts, find_columns, key, missing_columns
from jaxbandits.core.checks import InputError, bad, brief, shown

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_HEAD = 1 << 20  # characters, and
_HEADER_WITHIN = 60  # rows: how far down the header is looked for
MANY = 20_000  # rows from which on pandas reads
_MOST_TOLD = 20
_AS_TEXT = re.compile(r'^="(.*)"$', re.DOTALL)  # so some programs keep a spreadsheet from reading a cell as a number
_BLANKS = [before + blank for before in ("\n", "\r", '\n"', '\r"') for blank in " \u00a0\u2002\u2003"]  # of an indent
_MAY_BE = "text in UTF-8, UTF-16 or Latin-1, saved as CSV (or say --encoding)"
_NO_TEXT = ((b"PK\x03\x04", "a workbook or a zip file"), (b"\xd0\xcf\x11\xe0", "an old workbook (.xls)"))


class Question(InputError):
    """What the file does not say, and the options of `read_arms` that would: each with what it does."""

    def __init__(self, what: str, ways: Sequence[tuple[Mapping[str, Any], str]]) -> None:
        super().__init__(what)
        self.ways = ways


class Refusal(InputError):
    """All that is wrong with a file."""

    def __init__(self, source: str, problems: Sequence[InputError]) -> None:
        self.source, self.problems = source, tuple(problems)
        super().__init__(_together(source, list(map(str, problems))))


def _together(source: str, texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    told = [text.removeprefix(f"{source}, ").removeprefix(f"{source}: ") for text in texts[:_MOST_TOLD]]
    told += [f"… and {len(texts) - _MOST_TOLD:,} more"] if len(texts) > _MOST_TOLD else []
    return "\n  ".join([f"{source}: {len(texts):,} problems", *told])


@dataclass
class Report:
    """What the user is told of a file: problems all together, so that they are mended in one go; and notes."""

    problems: list[InputError] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)  # notes on what changes a number
    others: list[str] = field(default_factory=list)

    def tell(self, source: str) -> None:
        """Raise all problems together, if there are any."""
        if self.problems:
            raise Refusal(source, self.problems)


@dataclass(frozen=True)
class Sheet:
    """Cells of a CSV file, without the blanks around them and without blank lines; N rows below the header."""

    source: str  # the path on one line, for messages
    titles: tuple[str, ...]  # of the columns, as in the file
    columns: Columns
    line: np.ndarray  # [N], the number of each row in the file (the last line of a row that spans several)
    cells: list[Texts]  # of each column its texts [N]
    wide: Mapping[int, int]  # how many cells a line has, where there are more than titles
    gaps: frozenset[int]  # line numbers of rows that stand below a blank line
    separator: str
    indent: np.ndarray  # [N], blanks before each row, where the name stands first and is indented; else 0
    sha256: str = ""  # of the bytes that were read
    report: Report = field(default_factory=Report)

    def of(self, role: str) -> Texts:
        """The cells of a role; empty ones if there is no such column."""
        at = self.columns.at.get(role)
        return np.full(len(self.line), "", object) if at is None else self.cells[at]

    def row(self, i: int) -> tuple[str, ...]:
        """The cells of the ``i``-th row."""
        return tuple(cells[i] for cells in self.cells)

    def only(self, rows: np.ndarray) -> Sheet:
        """The sheet with these rows only, in this order."""
        if len(rows) == len(self.line):
            return self
        return replace(self, line=self.line[rows], indent=self.indent[rows], cells=[of[rows] for of in self.cells])

    def note(self, problem: InputError) -> None:
        """Keep it for :meth:`Report.tell`."""
        self.report.problems.append(problem)

    def label(self, role: str) -> str:
        """What messages call the column of a role: the role, or the file's own title where that says something else."""
        own = self.titles[self.columns.at[role]] if role in self.columns.at else role
        return role if (self.columns.plain and role != "clicks") or key(own) == key(role) else brief(own, 60)

    def where(self, row: int, what: str) -> str:
        """A place of the file, for messages."""
        return f"{self.source}, line {self.line[row]}, {what}"

    def cell(self, row: int, role: str) -> str:
        """The place of a cell, for messages."""
        return self.where(row, f"column {self.label(role)}")

    def lines(self, rows: Iterable[int]) -> str:
        """``line 3``, ``lines 3, 5`` or ``lines 3, 5, 8, 9, 12 and 4 more``, of these rows."""
        return _lines([self.line[i] for i in rows])


def _lines(lines: Sequence[int]) -> str:
    more = f" and {len(lines) - 5:,} more" if len(lines) > 5 else ""
    return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:5]))}{more}"


def coded(*columns: Texts) -> tuple[np.ndarray, int]:
    """Of each row a number that only rows with the same cells share; and how many there are."""
    code, many = numbered(columns[0])
    for cells in columns[1:]:
        if len(many) == len(code):
            break
        own, words = numbered(cells)
        code, many = numbered(code * len(words) + own)
    return code, len(many)


def numbered(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each cell the number of its text, and the texts, in order of first appearance."""
    if len(cells) > MANY:
        from pandas import factorize  # takes a while, which small files need not wait for

        return factorize(cells)
    place = {text: n for n, text in enumerate(dict.fromkeys(cells.tolist()))}
    texts = np.empty(len(place), cells.dtype)
    texts[:] = list(place)
    return np.fromiter(map(place.__getitem__, cells.tolist()), np.int64, len(cells)), texts


def which(cells: Texts, test: Callable[[str], object]) -> np.ndarray:
    """Of each cell whether its text passes a test, which is asked once of each text."""
    code, texts = numbered(cells)
    return np.fromiter((bool(test(text)) for text in texts), bool, len(texts))[code]


def grouped(code: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """These rows, those of equal code together, in order of first appearance."""
    own = code[rows]
    order = np.argsort(own, kind="stable")
    groups = np.split(rows[order], np.flatnonzero(np.diff(own[order])) + 1) if rows.size else []
    return sorted(groups, key=lambda group: int(group[0]))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The file's bytes, or those of standard input."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise bad("arms file", str(path), f"a CSV file that can be read ({reason})") from None


def read_sheet(path: str | os.PathLike[str], content: bytes, asked: Asked, encoding: str | None = None) -> Sheet:
    """A CSV file with a header; InputError if it cannot be read, has no header of an arms file, or no rows."""
    source = on_one_line(" ".join(str(path).split()))
    packed = content.startswith(b"\x1f\x8b")
    try:
        text, note = decoded(gzip.decompress(content) if packed else content, source, encoding)
    except (OSError, EOFError, zlib.error) as problem:
        raise bad("arms file", source, f"a gzip file that is whole ({problem})") from None
    sheet = _sheet(text, source, asked)
    sheet.report.others[:0] = [note] if note else []
    return replace(sheet, sha256=hashlib.sha256(content).hexdigest())


def decoded(content: bytes, source: str, encoding: str | None = None) -> tuple[str, str]:
    """The text, and a note where it is not UTF-8. ``encoding`` is what the user says it is."""
    if encoding is not None:
        try:
            return content.decode(encoding), f"read as {codecs.lookup(encoding).name}"
        except (LookupError, ValueError, TypeError):
            raise bad("encoding", encoding, f"the encoding of {source}, such as utf-8, cp1251 or shift_jis") from None
    for start, what in _NO_TEXT:
        if content.startswith(start):
            raise bad("arms file", source, f"{_MAY_BE}; this is {what}")
    zeros = content[:4096:2].count(0), content[1:4096:2].count(0)
    tries = {"utf-8-sig": "", "cp1252": "read as Latin-1 (Windows-1252), for it is not UTF-8"}
    if content.startswith(codecs.BOM_UTF8):
        tries.pop("cp1252")
    elif content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        tries = {"utf-16": "read as UTF-16"}
    elif any(zeros):
        tries = {"utf-16-be" if zeros[0] > zeros[1] else "utf-16-le": "read as UTF-16"}
    for name, told in tries.items():
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(name), told
    raise bad("arms file", source, _MAY_BE)


def _sheet(text: str, source: str, asked: Asked) -> Sheet:
    if not text.strip(', ;\t|\r\n"'):
        raise InputError(f"{source}: the file is empty; it must have a header line and rows of arms")
    if text.lstrip()[0] in "[{<":
        raise InputError(f"{source}: not readable as CSV: it begins like JSON or HTML; save the table as CSV")
    heads = {sign: [row for row in _rows(text, sign, "")[1] if any(row)] for sign in _SEPARATORS}
    for sign, rows in heads.items():
        for at, cells in enumerate(rows):
            if columns := find_columns(cells, asked, source):
                if long := _below_by_pandas(text, sign, at, columns, source):
                    return _without_empty(long, asked)
                sheet = _without_empty(_below(*_rows(text, sign, source), sign, at, columns, source), asked)
                indented = sheet.columns.at.get("name") == 0 and any(x in text for x in _BLANKS)
                return _with_indent(sheet, text) if indented else sheet
    # Some programs write files twice: then every line is one cell in quotes.
    wrapped = all(len(cells) == 1 for cells in heads[","]) and text.strip()[0] == text.strip()[-1] == '"'
    if wrapped and any(sign in cells[0] for sign in _SEPARATORS for cells in heads[","]):
        return _sheet("\n".join(map("".join, _rows(text, ",", source)[1])), source, asked)
    _rows(text, ",", source)  # is it CSV at all?
    raise missing_columns(list(heads.values()), source, asked)


def _without_empty(sheet: Sheet, asked: Asked) -> Sheet:
    """With other columns than those in which nothing stands, where there are others; a name must not be empty."""
    used = {role: at for role, at in sheet.columns.at.items() if not any(sheet.cells[at])}
    if not used or sheet.columns.plain:
        return sheet
    titles = ["" if at in used.values() else text for at, text in enumerate(sheet.titles)]
    if columns := find_columns(titles, asked, sheet.source):
        return replace(sheet, columns=columns)
    if "name" in used and "name" not in asked:
        rows = [sheet.row(i) for i in range(min(len(sheet.line), 2))]
        raise missing_columns([[titles, *rows]], sheet.source, asked)
    return sheet


def _with_indent(sheet: Sheet, text: str) -> Sheet:
    lines = re.split(r"\r\n|\r|\n", text)
    heads = [lines[at - 1].lstrip('"') for at in sheet.line]
    return replace(sheet, indent=np.array([len(head) - len(head.lstrip(" \u00a0\u2002\u2003")) for head in heads]))


def _rows(text: str, sign: str, source: str) -> tuple[list[int], list[tuple[str, ...]]]:
    """Lines and cells of all rows; without a source the first rows, as far as they can be read."""
    # strict, because otherwise one stray quote swallows the rest of the file without a word
    text = text if source else text[:_HEAD]
    reader = csv.reader(io.StringIO(text, newline=None), strict=True, skipinitialspace=True, delimiter=sign)
    line, rows, most = list[int](), list[tuple[str, ...]](), None if source else _HEADER_WITHIN
    bare = (lambda cell: _AS_TEXT.sub(r"\1", cell.strip())) if '="' in text else str.strip
    try:
        for row in itertools.islice(reader, most):
            line.append(reader.line_num)
            rows.append(tuple(map(bare, row)))  # no lists: the collector of garbage would walk through all of them
    except csv.Error as error:
        if source:
            raise InputError(f"{source}, line {reader.line_num}: not readable as CSV: {error}") from None
    return line, rows


def _below_by_pandas(text: str, sign: str, at: int, columns: Columns, source: str) -> Sheet | None:
    """The same as `_below` of a long file that is written simply: no quotes, blanks around cells, or ragged rows."""
    odd = ('"', "\0", f"{sign} ", f" {sign}", "\n ", " \n", "\u00a0", "\n\n")
    if text.count("\n") < MANY:
        return None
    text = text.replace("\r\n", "\n").rstrip("\n") + "\n"
    if "\r" in text or (sign != "\t" and "\t" in text) or any(x in text for x in odd):
        return None
    lines, every = _rows(text, sign, "")
    filled = [i for i, row in enumerate(every) if any(row)]
    width, line, content = len(every[filled[at]]), lines[filled[at]], text.encode()
    ends = np.flatnonzero((found := np.frombuffer(content, np.uint8)) == ord("\n"))
    signs = np.searchsorted(np.flatnonzero(found == ord(sign)), ends)
    if (np.diff(signs[line - 1 :]) != width - 1).any() or f"\n{sign * (width - 1)}\n" in text or width < 2:
        return None
    from pandas import read_csv  # takes a while

    body, plain = io.BytesIO(content[ends[line - 1] + 1 :]), {"keep_default_na": False, "na_filter": False}
    frame = read_csv(body, sep=sign, header=None, dtype=object, quoting=csv.QUOTE_NONE, **plain)
    head = _below(lines[: filled[at] + 2], every[: filled[at] + 2], sign, at, columns, source)
    number, cells = np.arange(line + 1, line + 1 + len(frame)), [frame[n].to_numpy() for n in range(width)]
    return replace(head, line=number, cells=cells, wide={}, gaps=frozenset(), indent=np.zeros(len(frame)))


def _below(line: list[int], every: list[tuple[str, ...]], sign: str, at: int, columns: Columns, source: str) -> Sheet:
    """The sheet whose header is the ``at``-th row that is not blank."""
    filled = [i for i, row in enumerate(every) if any(row)]
    above, header, below = filled[:at], every[filled[at]], filled[at + 1 :]
    if not below:
        raise InputError(f"{source}: there is a header but no rows; it must have at least two arms")
    gaps = frozenset(line[i] for i in below if not any(every[i - 1]))
    rows, width, wide = [every[i] for i in below], len(header), dict[int, int]()
    if set(map(len, rows)) != {width}:
        wide = {line[i]: len(every[i]) for i in below if any(every[i][width:])}
        rows = [row[:width] + ("",) * (width - len(row)) for row in rows]
    cells = [np.array(of, object) for of in zip(*rows, strict=True)]
    titles = tuple(" ".join(cell.split()) for cell in header)
    sheet = Sheet(
        source, titles, columns, np.array([line[i] for i in below]), cells, wide, gaps, sign, np.zeros(len(below))
    )
    sheet.report.others += [f"{_SEPARATORS[sign]} separate the cells"] if sign != "," else []
    if above:
        said = shown(" / ".join(" ".join(filter(None, every[i])) for i in above))
        sheet.report.others.append(f"{_lines([line[i] for i in above])} above the header skipped: {said}")
    return sheet
