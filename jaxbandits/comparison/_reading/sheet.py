"""From the bytes of an arms file to its cells: text, the sign between cells, the line of the header."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import itertools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxbandits.comparison._reading.columns import Asked, Columns, find_columns, key, missing_columns
from jaxbandits.core.checks import InputError, bad, brief, shown
from jaxbandits.core.checks import line as on_one_line

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADER_WITHIN = 60  # rows: how far down the header is looked for
_MOST_TOLD = 20
_AS_TEXT = re.compile(r'^="(.*)"$', re.DOTALL)  # so some programs keep a spreadsheet from reading a cell as a number
_MAY_BE = "text in UTF-8, UTF-16 or Latin-1, saved as CSV (or say --encoding)"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", ""),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_NO_TEXT = ((b"PK\x03\x04", "a workbook or a zip file"), (b"\xd0\xcf\x11\xe0", "an old workbook (.xls)"))


@dataclass(frozen=True)
class Sheet:
    """Cells of a CSV file, without the blanks around them and without blank lines; N rows below the header.

    Attributes:
        source: the path on one line, for messages.
        titles: of the columns, as in the file.
        columns: what the columns are.
        line: [N], the number of each row in the file (the last line of a row that spans several).
        cells: of each column its texts [N].
        wide: how many cells a line has, where there are more than titles.
        gaps: line numbers of rows that stand below a blank line.
        separator: what stands between cells.
        notes: what was read in another way than as the plain form, or left out.
        sha256: of the bytes that were read.
    """

    source: str
    titles: tuple[str, ...]
    columns: Columns
    line: list[int]
    cells: list[list[str]]
    wide: Mapping[int, int]
    gaps: frozenset[int]
    separator: str
    notes: tuple[str, ...]
    sha256: str = ""

    @property
    def position(self) -> dict[str, int]:
        """Of each role the position of its column."""
        return {**self.columns.at, **self.columns.numeric()}

    def row(self, i: int) -> tuple[str, ...]:
        """The cells of the ``i``-th row."""
        return tuple(cells[i] for cells in self.cells)

    def only(self, rows: Sequence[int]) -> Sheet:
        """The sheet with these rows only, in this order."""
        if len(rows) == len(self.line):
            return self
        kept = [[cells[i] for i in rows] for cells in self.cells]
        return replace(self, line=[self.line[i] for i in rows], cells=kept)

    def label(self, role: str) -> str:
        """What messages call the column of a role: the role, or the file's own title where that says something else."""
        own = self.titles[self.position[role]]
        return role if (self.columns.plain and role != "clicks") or key(own) == key(role) else brief(own, 60)


@dataclass
class Problems:
    """The errors of a file, told together so that they are mended in one go."""

    source: str
    found: list[str] = field(default_factory=list)

    def note(self, problem: InputError) -> None:
        """Keep it for :meth:`tell`."""
        self.found.append(str(problem))

    def tell(self) -> None:
        """Raise InputError if there was one: a single one as it was, several with their number in the first line."""
        if len(self.found) == 1:
            raise InputError(self.found[0])
        if self.found:
            own = (f"{self.source}, ", f"{self.source}: ")
            lines = [text.removeprefix(own[0]).removeprefix(own[1]) for text in self.found[:_MOST_TOLD]]
            more = len(self.found) - len(lines)
            lines += [f"… and {more:,} more"] if more else []
            raise InputError("\n  ".join([f"{self.source}: {len(self.found):,} problems", *lines]))


def read_sheet(path: str | os.PathLike[str], asked: Asked, encoding: str | None = None) -> Sheet:
    """Read a CSV file with a header.

    Raises:
        InputError: the file cannot be read, is not CSV, has no header of an arms file, or no rows below it.
    """
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        given = str(path) if isinstance(path, Path) else path
        raise bad("arms file", given, f"a CSV file that can be read ({reason})") from None
    source = on_one_line(" ".join(str(path).split()))
    text, notes = decoded(content, source, encoding)
    sheet = _sheet(text, source, asked)
    return replace(sheet, notes=(*notes, *sheet.notes), sha256=hashlib.sha256(content).hexdigest())


def decoded(content: bytes, source: str, encoding: str | None = None) -> tuple[str, tuple[str, ...]]:
    """The text, and a note where it is not UTF-8. ``encoding`` is what the user says it is.

    Raises:
        InputError: it is no text in an encoding that can be told from the bytes.

    Example:
        >>> decoded("café".encode("latin-1"), "a.csv")
        ('café', ('read as Latin-1 (Windows-1252), for it is not UTF-8',))
    """
    if encoding is not None:
        try:
            return content.decode(encoding), (f"read as {codecs.lookup(encoding).name}",)
        except (LookupError, ValueError):
            raise bad("encoding", encoding, f"the encoding of {source}, such as utf-8, cp1251 or shift_jis") from None
    for start, what in _NO_TEXT:
        if content.startswith(start):
            raise bad("arms file", source, f"{_MAY_BE}; this is {what}")
    zeros = content[:4096:2].count(0), content[1:4096:2].count(0)
    marks = [*_MARKS, (b"", "utf-16-be", "UTF-16")] if zeros[0] > zeros[1] else [*_MARKS, (b"", "utf-16-le", "UTF-16")]
    found = next(((of, name) for mark, of, name in marks if content.startswith(mark) and (mark or any(zeros))), None)
    try:
        if found is not None:
            return content.decode(found[0]), (f"read as {found[1]}",) if found[1] else ()
        return content.decode("utf-8"), ()
    except UnicodeDecodeError:
        if found is not None:
            raise bad("arms file", source, _MAY_BE) from None
    try:
        return content.decode("cp1252"), ("read as Latin-1 (Windows-1252), for it is not UTF-8",)
    except UnicodeDecodeError:
        raise bad("arms file", source, _MAY_BE) from None


def _sheet(text: str, source: str, asked: Asked) -> Sheet:
    if not text.strip(', ;\t|\r\n"'):
        raise InputError(f"{source}: the file is empty; it must have a header line and rows of arms")
    if text.lstrip()[0] in "[{<":
        raise InputError(f"{source}: not readable as CSV: it begins like JSON or HTML; save the table as CSV")
    heads = {sign: _head(text, sign) for sign in _SEPARATORS}
    for plain in (True, False):  # a header in plain form is taken before one in the usual words
        for sign, rows in heads.items():
            for at, cells in enumerate(rows):
                if columns := find_columns(cells, asked, source, plain=plain):
                    return _below(text, sign, at, columns, source)
    if (unwrapped := _unwrapped(text, heads[","])) is not None:
        return _sheet(unwrapped, source, asked)
    _read(text, ",", source)  # is it CSV at all?
    raise missing_columns(list(heads.values()), source, asked)


def _reader(text: str, sign: str) -> Any:
    # strict, because otherwise one stray quote swallows the rest of the file without a word
    return csv.reader(io.StringIO(text, newline=None), strict=True, skipinitialspace=True, delimiter=sign)


def _read(text: str, sign: str, source: str) -> tuple[Sequence[int], list[list[str]]]:
    """Lines and cells of all rows."""
    reader, line, cells = _reader(text, sign), list[int](), list[list[str]]()
    try:
        if '"' not in text:  # then every row is one line
            cells = [list(map(str.strip, row)) for row in reader]
            return range(1, len(cells) + 1), cells
        for row in reader:
            line.append(reader.line_num)
            cells.append([x.strip() for x in row])
    except csv.Error as error:
        raise InputError(f"{source}, line {reader.line_num}: not readable as CSV: {error}") from None
    return line, cells


def _head(text: str, sign: str) -> list[list[str]]:
    """The first rows that are not blank, as far as they can be read."""
    rows, reader = list[list[str]](), _reader(text, sign)
    try:
        for cells in itertools.islice(reader, _HEADER_WITHIN):
            if any(stripped := [cell.strip() for cell in cells]):
                rows.append(stripped)
    except csv.Error:
        pass
    return rows


def _unwrapped(text: str, rows: Sequence[Sequence[str]]) -> str | None:
    """The text without the quotes around every line, where there are such; some programs write files twice."""
    lines = [line for line in text.splitlines()[:_HEADER_WITHIN] if line.strip()]
    wrapped = all(len(cells) == 1 for cells in rows) and all(line[:1] == line[-1:] == '"' for line in lines)
    if not wrapped or not any(sign in cells[0] for sign in _SEPARATORS for cells in rows):
        return None
    return "\n".join(cells[0] if cells else "" for cells in _reader(text, ","))


def _below(text: str, sign: str, at: int, columns: Columns, source: str) -> Sheet:
    """The sheet whose header is the ``at``-th row that is not blank."""
    line, cells = _read(text, sign, source)
    filled = [i for i, row in enumerate(cells) if any(row)]
    above, header, below = filled[:at], cells[filled[at]], filled[at + 1 :]
    if not below:
        raise InputError(f"{source}: there is a header but no rows; it must have at least two arms")
    gaps = frozenset(line[i] for i in below if i and not any(cells[i - 1]))
    rows, width, wide = [cells[i] for i in below], len(header), dict[int, int]()
    if set(map(len, rows)) != {width}:
        wide = {line[i]: len(cells[i]) for i in below if any(cells[i][width:])}
        rows = [row[:width] + [""] * (width - len(row)) for row in rows]
    columns_of_cells = [list(of) for of in zip(*rows, strict=True)]
    if '="' in text:
        columns_of_cells = [[_AS_TEXT.sub(r"\1", cell) for cell in of] for of in columns_of_cells]
    notes: tuple[str, ...] = (f"{_SEPARATORS[sign]} separate the cells",) if sign != "," else ()
    if above:
        said = shown(" / ".join(" ".join(filter(None, cells[i])) for i in above))
        notes += (f"{lines_of([line[i] for i in above])} above the header skipped: {said}",)
    titles = tuple(" ".join(cell.split()) for cell in header)
    return Sheet(source, titles, columns, [line[i] for i in below], columns_of_cells, wide, gaps, sign, notes)


def lines_of(lines: Sequence[int]) -> str:
    """``line 3``, ``lines 3, 5`` or ``lines 3, 5, 8, 9, 12 and 4 more``."""
    more = f" and {len(lines) - 5:,} more" if len(lines) > 5 else ""
    return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:5]))}{more}"
