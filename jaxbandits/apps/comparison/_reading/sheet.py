"""From the bytes of an arms file to its cells: text, the sign between cells, the header's line.

Of each column every text is kept once, and of each row the number of its text, so that whatever
is asked of cells (is it a number, a word for a total?) is asked once of each text.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import itertools
import lzma
import operator
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits._tables import line as on_one_line
from jaxbandits.apps.comparison._reading.columns import (
    Choices,
    Columns,
    find_columns,
    missing_columns,
    word_key,
)
from jaxbandits.core.checks import InputError, bad, brief, quoted

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_HEAD = 1 << 20  # characters, and
_HEADER_WITHIN = 60  # rows: how far down the header is looked for
LONG = 20_000  # rows from which on pandas reads
_MOST_PROBLEMS = 20
_BLANK = " \u00a0\u2002\u2003"
_INDENTED = re.compile(rf'[\r\n]"?[{_BLANK}]')
_MAY_BE = "text in UTF-8, UTF-16 or Latin-1, saved as CSV (or say --encoding)"
_PACKED: Mapping[bytes, Any] = {b"\x1f\x8b\x08": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
_NO_TEXT = {
    b"PK\x03\x04": "a workbook or a zip file",
    b"\xd0\xcf\x11\xe0": "an old workbook (.xls)",
}


class Refusal(InputError):
    """All that is wrong with a file, so that it is mended in one go."""

    def __init__(self, source: str, problems: Sequence[InputError]) -> None:
        self.source, self.problems = source, tuple(problems)
        lines = [str(problem) for problem in problems]
        if len(problems) > 1:
            more = [f"… and {len(lines) - _MOST_PROBLEMS:,} more"] * (len(lines) > _MOST_PROBLEMS)
            bare = [text.removeprefix(source).lstrip(",: ") for text in lines[:_MOST_PROBLEMS]]
            lines = [f"{source}: {len(lines):,} problems", *bare, *more]
        super().__init__("\n  ".join(lines))


class Column(NamedTuple):
    """The cells of a column."""

    code: np.ndarray  # [N], of each row the number of its text
    texts: np.ndarray  # objects, all different, in order of first appearance

    @classmethod
    def of(cls, cells: Sequence[str] | np.ndarray) -> Column:
        """The column with these cells."""
        return cls(
            *_numbered(cells if isinstance(cells, np.ndarray) else np.array([*cells], object))
        )

    @classmethod
    def same(cls, text: str, rows: int) -> Column:
        """The column that has this text in all rows."""
        return cls(np.zeros(rows, np.int64), np.array([text], object))

    @property
    def every(self) -> np.ndarray:
        """The texts of all rows, objects [N]."""
        return self.texts[self.code]

    def row(self, i: int) -> str:
        """The text of one row."""
        return str(self.texts[self.code[i]])

    def only(self, rows: np.ndarray) -> Column:
        """Those of these rows."""
        code = self.code[rows]
        first = np.full(len(self.texts), len(code))
        first[code[::-1]] = np.arange(len(code))[::-1]  # of several rows the last one stays
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(code))]
        number = np.empty(len(self.texts), np.int64)
        number[order] = np.arange(len(order))
        return Column(number[code], self.texts[order])

    def passes(self, test: Callable[[str], object]) -> np.ndarray:
        """Of each row whether its text passes a test, bool [N]."""
        return np.array([bool(test(text)) for text in self.texts], bool)[self.code]

    def equal(self, *texts: str) -> np.ndarray:
        """Of each row whether its text is one of these, bool [N]."""
        is_equal = np.zeros(len(self.texts), bool)
        for text in texts:
            is_equal |= self.texts == text
        return is_equal[self.code]

    def changed(self, change: Callable[[str], str]) -> Column:
        """With every text changed; texts that become equal are one."""
        texts = list(map(change, self.texts))
        if all(map(operator.is_, texts, self.texts)):
            return self
        new = Column.of(texts)
        return Column(new.code[self.code], new.texts)


def _numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the number of its value, and the values in order of first appearance."""
    if len(values) > LONG:
        from pandas import factorize  # takes a while, which small files need not wait for

        return factorize(values)
    number = {value: n for n, value in enumerate(dict.fromkeys(values.tolist()))}
    code = np.fromiter(map(number.__getitem__, values.tolist()), np.int64, len(values))
    return code, np.array(list(number), object)


def coded(*columns: Column) -> tuple[np.ndarray, int]:
    """Of each row a number that only rows with the same cells share; and how many there are."""
    code, count = columns[0].code, len(columns[0].texts)
    for column in columns[1:]:
        if count == 1:
            code, count = column.code, len(column.texts)
        elif len(column.texts) > 1 and count < len(code):
            code, values = _numbered(code.astype(np.int64) * len(column.texts) + column.code)
            count = len(values)
    return code, count


def rows_by_code(code: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """These rows, those of equal code together, in order of first appearance."""
    order = np.argsort(code[rows], kind="stable")
    ends = np.flatnonzero(np.diff(code[rows][order])) + 1
    groups = np.split(rows[order], ends) if rows.size else []
    return sorted(groups, key=lambda group: int(group[0]))


@dataclass(eq=False)
class Sheet:
    """Cells of a CSV file, without blanks around them and blank lines; N rows below the header."""

    source: str  # the path on one line, for messages
    titles: tuple[str, ...]  # of the columns, as in the file
    columns: Columns
    line: np.ndarray  # [N], the number of each row in the file (its last line, of several)
    cells: list[Column]
    wide: Mapping[int, int]  # how many cells a line has, where there are more than titles
    gaps: np.ndarray  # numbers of lines that stand below a blank line
    separator: str
    sha256: str = ""  # of the bytes that were read
    problems: list[InputError] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)  # notes on what changes a number
    notes: list[str] = field(default_factory=list)  # others

    def of(self, role: str) -> Column:
        """The cells of a role; empty ones if there is no such column."""
        at = self.columns.at.get(role)
        return Column.same("", len(self.line)) if at is None else self.cells[at]

    def row(self, i: int) -> tuple[str, ...]:
        """The cells of a row."""
        return tuple(column.row(i) for column in self.cells)

    def only(self, rows: np.ndarray) -> Sheet:
        """The sheet with these rows only, in this order."""
        if len(rows) == len(self.line):
            return self
        return replace(
            self, line=self.line[rows], cells=[column.only(rows) for column in self.cells]
        )

    def label(self, role: str) -> str:
        """What messages call a role's column: the role, or a title that says something else."""
        text = self.titles[self.columns.at[role]] if role in self.columns.at else role
        is_plain = self.columns.plain and role != "clicks"
        return role if is_plain or word_key(text) == word_key(role) else brief(text, 60)

    def place(self, row: int, place: str) -> str:
        """A place of the file, for messages."""
        return f"{self.source}, line {self.line[row]}, {place}"

    def cell(self, row: int, role: str) -> str:
        """The place of a cell, for messages."""
        return self.place(row, f"column {self.label(role)}")

    def lines(self, rows: Iterable[int]) -> str:
        """``line 3``, ``lines 3, 5`` or ``lines 3, 5, 8, 9, 12 and 4 more``, of these rows."""
        return _lines([self.line[i] for i in rows])


def _lines(lines: Sequence[int]) -> str:
    more = f" and {len(lines) - 5:,} more" if len(lines) > 5 else ""
    return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:5]))}{more}"


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The file's bytes, or those of standard input."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        must = f"a CSV file that can be read ({reason})"
        raise bad("arms file", str(path), must) from None


def decoded(content: bytes, source: str, encoding: str | None = None) -> tuple[str, str]:
    """The text, and a note where it is not UTF-8. ``encoding`` is what the user says it is."""
    if encoding is not None:
        try:
            return content.decode(encoding), f"read as {codecs.lookup(encoding).name}"
        except (LookupError, ValueError, TypeError):
            must = f"the encoding of {source}, such as utf-8, cp1251 or shift_jis"
            raise bad("encoding", encoding, must) from None
    for start, kind in _NO_TEXT.items():
        if content.startswith(start):
            raise bad("arms file", source, f"{_MAY_BE}; this is {kind}")
    tries = {"utf-8-sig": "", "cp1252": "read as Latin-1 (Windows-1252), for it is not UTF-8"}
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        tries = {"utf-16": "read as UTF-16"}
    elif content.startswith(codecs.BOM_UTF8) or 0 in content[:4096]:
        tries.pop("cp1252")
    for name, note in tries.items():
        with contextlib.suppress(UnicodeDecodeError):
            text = content.decode(name)
            if "\0" not in text[:4096]:
                return text, note
    raise bad("arms file", source, _MAY_BE)


def _text_of(
    path: str | os.PathLike[str], content: bytes, encoding: str | None
) -> tuple[str, str, str]:
    """What messages call the file, its text, and a note on that."""
    source = on_one_line(" ".join(str(path).split()))
    for start, module in _PACKED.items():
        if content.startswith(start):
            try:
                content = module.decompress(content)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as problem:
                must = f"a {module.__name__} file that is whole ({problem})"
                raise bad("arms file", source, must) from None
    text, note = decoded(content, source, encoding)
    if not text.strip(', ;\t|\r\n"'):
        raise InputError(
            f"{source}: the file is empty; it must have a header line and rows of arms"
        )
    if text.lstrip()[0] in "[{<":
        reason = "it begins like JSON or HTML; save the table as CSV"
        raise InputError(f"{source}: not readable as CSV: {reason}")
    return source, text, note


def read_table(path: str | os.PathLike[str], content: bytes, encoding: str | None = None) -> Sheet:
    """A CSV file whose first line of several cells has the titles, whatever they are."""
    source, text, note = _text_of(path, content, encoding)
    first = list[tuple[int, int, str]]()
    for sign in _SEPARATORS:
        rows = ((line, cells) for line, cells in _head(text, sign) if sum(map(bool, cells)) > 1)
        first += [(line, -len(cells), sign) for line, cells in itertools.islice(rows, 1)]
    if not first:
        raise InputError(f"{source}: no line has several cells; it must have a header line")
    line, _, sign = min(first)
    head = [row for row in _head(text, sign) if row[0] <= line]
    sheet = _below(text, sign, head, Columns("log", {}, plain=True), source)
    sheet.notes[:0] = [note] if note else []
    return replace(sheet, sha256=hashlib.sha256(content).hexdigest())


def read_sheet(
    path: str | os.PathLike[str], content: bytes, choices: Choices, encoding: str | None = None
) -> Sheet:
    """A CSV file; InputError if it cannot be read, or has no header of an arms file, or no rows."""
    source, text, note = _text_of(path, content, encoding)
    heads = {sign: _head(text, sign) for sign in _SEPARATORS}
    for sign, head in heads.items():
        for n, (_, cells) in enumerate(head):
            if columns := find_columns(cells, choices, source):
                sheet = _below(text, sign, head[: n + 1], columns, source)
                sheet.notes[:0] = [note] if note else []
                # A column in which nothing stands is none.
                filled = zip(sheet.titles, sheet.cells, strict=True)
                titles = [title if any(column.texts) else "" for title, column in filled]
                if not columns.plain and not (columns := find_columns(titles, choices, source)):
                    firsts = [sheet.row(i) for i in range(min(len(sheet.line), 2))]
                    raise missing_columns([[titles, *firsts]], source, choices)
                return replace(sheet, columns=columns, sha256=hashlib.sha256(content).hexdigest())
    for _ in _rows(text, ",", source):  # is it CSV at all?
        pass
    rows = [[cells for _, cells in head] for head in heads.values()]
    raise missing_columns(rows, source, choices)


def _rows(text: str, sign: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Lines and cells of all rows, also blank ones."""
    # From bytes, for a buffer of text takes four of them a character; strict, because otherwise
    # one stray quote swallows the rest of the file without a word.
    lines = io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline=None)
    reader = csv.reader(lines, strict=True, skipinitialspace=True, delimiter=sign)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        place = f"{source}, line {reader.line_num}"
        raise InputError(f"{place}: not readable as CSV: {error}") from None


def _head(text: str, sign: str) -> list[tuple[int, list[str]]]:
    """The first rows that are not blank, as far as they can be read."""
    rows = []
    with contextlib.suppress(InputError):
        for line, row in itertools.islice(_rows(text[:_HEAD], sign, ""), _HEADER_WITHIN):
            rows += [(line, [cell.strip() for cell in row])]
    return [(line, row) for line, row in rows if any(row)]


def _by_pandas(text: str, sign: str, start: int, width: int) -> list[np.ndarray] | None:
    """The columns below a line of a long file that is written simply; None of another one."""
    is_odd = '"' in text or "\0" in text or ("\r" in text and "\r" in text.replace("\r\n", "\n"))
    if is_odd or text.count("\n") < LONG:
        return None
    from pandas import RangeIndex, errors, read_csv

    options: dict[str, Any] = {
        "sep": sign,
        "header": None,
        "names": range(width),
        "skiprows": start,
    }
    options |= {"keep_default_na": False, "na_filter": False, "skip_blank_lines": False}
    try:
        table = read_csv(io.BytesIO(text.encode()), dtype=object, **options)
    except (errors.ParserError, UnicodeError):
        return None
    # Where the first row has more cells than there are names, they make an index.
    return [table[n].to_numpy() for n in table] if isinstance(table.index, RangeIndex) else None


def _below(
    text: str, sign: str, head: list[tuple[int, list[str]]], columns: Columns, source: str
) -> Sheet:
    """The sheet whose header is the last row of this head."""
    start, header = head[-1]
    width, wide = len(header), dict[int, int]()
    texts: Any = _by_pandas(text, sign, start, width)
    if texts is not None:
        line = np.arange(start + 1, start + 1 + len(texts[0]))
    else:
        rows = itertools.dropwhile(lambda row: row[0] <= start, _rows(text, sign, source))
        lines, every = list[int](), list[tuple[str, ...]]()
        for n, row in rows:
            if any(map(str.strip, row[width:])):
                wide[n] = len(row)
            lines.append(n)
            # No lists: the collector of garbage would walk through all of them.
            every.append((*row[:width], *[""] * (width - len(row))))
        line, texts = np.array(lines), [*zip(*every, strict=True)] or [()] * width
    cells = [Column.of(column).changed(str.strip) for column in texts]
    blank = np.all([column.equal("") for column in cells], axis=0)
    if blank.all():
        must = "it must have at least two arms"
        raise InputError(f"{source}: there is a header but no rows; {must}")
    titles = tuple(" ".join(cell.split()) for cell in header)
    sheet = Sheet(source, titles, columns, line, cells, wide, line[1:][blank[:-1]], sign)
    sheet = sheet.only(np.flatnonzero(~blank))
    sheet.notes += [f"{_SEPARATORS[sign]} separate the cells"] if sign != "," else []
    if len(head) > 1:
        above = quoted(" / ".join(" ".join(filter(None, row)) for _, row in head[:-1]))
        sheet.notes.append(f"{_lines([n for n, _ in head[:-1]])} above the header skipped: {above}")
    if columns.at.get("name") == 0 and _INDENTED.search(text):
        raw = re.split(r"\r\n|\r|\n", text)
        indented = [raw[n - 1].lstrip('"')[:1] in {*_BLANK} for n in sheet.line]
        if not all(indented) and any(indented):
            place = f"line {sheet.line[indented.index(True)]}"
            reason = (
                "its name is indented, as below a sum: leave the rows of one level, not indented"
            )
            sheet.problems.append(InputError(f"{source}, {place}: {reason}"))
    return sheet
