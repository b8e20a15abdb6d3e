"""From the text of an arms file to its cells: which sign separates them, and which line is the header."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxbandits.comparison._reading.columns import Asked, Columns, plain_columns
from jaxbandits.comparison._reading.decoding import decoded
from jaxbandits.comparison._reading.misses import no_columns
from jaxbandits.comparison._reading.source import read_arms_bytes
from jaxbandits.comparison._reading.usual import usual_columns
from jaxbandits.comparison._reading.words import key
from jaxbandits.core.errors import InputError, shown
from jaxbandits.core.printable import brief
from jaxbandits.core.printable import line as on_one_line

_SHOWN_OF_A_PATH = 160
_MOST_ROWS = 1_000_000
_HEADER_WITHIN, _HEADER_CELLS = 60, 10_000  # rows and cells: how far down the header is looked for
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

_AS_TEXT = re.compile(r'^="(.*)"$', re.DOTALL)

Row = tuple[int, tuple[str, ...]]


@dataclass(frozen=True)
class Sheet:
    """Cells of a CSV file, without the blanks around them and without blank lines.

    Attributes:
        source: the path on one line, for messages.
        titles: of the columns, as in the file.
        columns: what the columns are.
        rows: for each row below the header its line number (1-based; the last line of a row that spans several) and its
            cells: as many as titles, more only if the surplus has content.
        gaps: line numbers of rows that stand below a blank line.
        separator: "," or ";", a tab or "|".
        notes: what was read in another way than as the plain form, or left out.
        sha256: of the bytes that were read.
    """

    source: str
    titles: tuple[str, ...]
    columns: Columns
    rows: tuple[Row, ...]
    gaps: frozenset[int]
    separator: str
    notes: tuple[str, ...]
    sha256: str

    def label(self, role: str) -> str:
        """What messages call the column of a role: the role, or the file's own title where that says something else."""
        at = {**self.columns.at, **self.columns.numeric()}[role]
        own = self.titles[at]
        return role if (self.columns.plain and role != "clicks") or key(own) == key(role) else brief(own, 60)


def read_sheet(path: str | os.PathLike[str], asked: Asked, encoding: str | None = None) -> Sheet:
    """Read a CSV file with a header.

    Raises:
        InputError: the file cannot be read, is not CSV, has no header of an arms file, or no rows below it.
    """
    content = read_arms_bytes(path)
    source = on_one_line(" ".join(str(path).split()))
    if len(source) > _SHOWN_OF_A_PATH:
        source = f"…{source[-_SHOWN_OF_A_PATH:]}"
    text, notes = decoded(content, source, encoding)
    sheet = _sheet(text, source, asked)
    return replace(sheet, notes=(*notes, *sheet.notes), sha256=hashlib.sha256(content).hexdigest())


def _sheet(text: str, source: str, asked: Asked) -> Sheet:
    if not text.strip(', ;\t|\r\n"'):
        raise InputError(f"{source}: the file is empty; it must have a header line and rows of arms")
    if text.lstrip()[0] in "[{<":
        raise InputError(f"{source}: not readable as CSV: it begins like JSON or HTML; save the table as CSV")
    heads = {sign: _head(text, sign) for sign in _SEPARATORS}
    finds: list[Callable[[Sequence[str]], Columns | None]] = [lambda cells: usual_columns(cells, asked)]
    if asked.empty:
        finds.insert(0, lambda cells: plain_columns(cells, source))
    for find in finds:
        for sign, (rows, _) in heads.items():
            for at, cells in enumerate(rows):
                if columns := find(cells):
                    return _below(text, sign, at, columns, source)
    if (unwrapped := _unwrapped(text, heads[","][0])) is not None:
        return _sheet(unwrapped, source, asked)
    if (problem := heads[","][1]) and all(max(map(len, rows), default=0) < 2 for rows, _ in heads.values()):
        raise _not_csv(source, *problem)
    raise no_columns([rows for rows, _ in heads.values()], source, asked)


def _head(text: str, sign: str) -> tuple[list[list[str]], tuple[int, str] | None]:
    """The first rows that are not blank, and (line, what is wrong) where they cannot be read further."""
    reader, rows, total = _reader(text, sign), list[list[str]](), 0
    try:
        for cells in itertools.islice(reader, _HEADER_WITHIN):
            if any(stripped := [cell.strip() for cell in cells]):
                rows.append(stripped)
                total += len(cells)
                if total > _HEADER_CELLS:
                    break
    except csv.Error as error:
        return rows, (reader.line_num, str(error))
    return rows, None


def _reader(text: str, sign: str) -> Any:
    # strict, because otherwise one stray quote swallows the rest of the file without a word
    return csv.reader(io.StringIO(text, newline=None), strict=True, skipinitialspace=True, delimiter=sign)


def _not_csv(source: str, line: int, what: str) -> InputError:
    """Text that is no CSV."""
    return InputError(f"{source}, line {line}: not readable as CSV: {what}")


def _unwrapped(text: str, rows: Sequence[Sequence[str]]) -> str | None:
    """The text without the quotes around every line, where there are such; some programs write files twice."""
    if (
        not rows
        or any(len(cells) != 1 for cells in rows)
        or not any(sign in c[0] for sign in _SEPARATORS for c in rows)
    ):
        return None
    if not all(line[:1] == line[-1:] == '"' for line in text.splitlines()[:_HEADER_WITHIN] if line.strip()):
        return None
    try:
        return "\n".join(cells[0] if cells else "" for cells in _reader(text, ","))
    except csv.Error:
        return None


def _below(text: str, sign: str, at: int, columns: Columns, source: str) -> Sheet:
    """The sheet whose header is the ``at``-th row that is not blank."""
    reader = _reader(text, sign)
    try:
        read = [
            (reader.line_num, [cell.strip() for cell in cells]) for cells in itertools.islice(reader, _MOST_ROWS + 1)
        ]
    except csv.Error as error:
        raise _not_csv(source, reader.line_num, str(error)) from None
    if len(read) > _MOST_ROWS:
        raise InputError(f"{source}: more than {_MOST_ROWS:,} rows; a log of more says the same as means or counts")
    blank = [not any(cells) for _, cells in read]
    gaps = frozenset(read[i + 1][0] for i, is_blank in enumerate(blank[:-1]) if is_blank)
    filled = [row for row, is_blank in zip(read, blank, strict=True) if not is_blank]
    above, (_, header), lines = filled[:at], filled[at], filled[at + 1 :]
    if not lines:
        raise InputError(f"{source}: there is a header but no rows; it must have at least two arms")
    if '="' in text:  # so some programs keep spreadsheets from reading a cell as a number
        lines = [(line, [_AS_TEXT.sub(r"\1", cell) for cell in cells]) for line, cells in lines]
    titles = tuple(" ".join(cell.split()) for cell in header)
    rows = tuple((line, _fitted(cells, len(titles))) for line, cells in lines)
    notes: tuple[str, ...] = (f"{_SEPARATORS[sign]} separate the cells",) if sign != "," else ()
    if above:
        said = shown(" / ".join(" ".join(filter(None, cells)) for _, cells in above))
        many = f"lines {above[0][0]} to {above[-1][0]}" if len(above) > 1 else f"line {above[0][0]}"
        notes += (f"{many} above the header skipped: {said}",)
    return Sheet(source, titles, columns, rows, gaps, sign, notes, "")


def _fitted(cells: Sequence[str], width: int) -> tuple[str, ...]:
    """Blank cells added or taken away at the end to reach `width`; cells with content stay."""
    used = max((i + 1 for i, cell in enumerate(cells) if cell), default=0)
    return (*cells[:used], *[""] * (width - used))
