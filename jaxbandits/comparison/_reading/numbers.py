"""Numbers as people and their programs write them: decimal commas, thousands, currencies, percent, nothing at all."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxbandits.comparison._reading.words import CODES, SIGNS
from jaxbandits.comparison.evidence import FloatArray, NumberStyle
from jaxbandits.core.errors import shown

NUMBER, NOTHING, UNKNOWN, BAD, NEGATIVE = range(5)
"""What a cell holds: a number; nothing, which a file of counts writes for 0; a word for "not known"; something else; a
number below 0."""

_NOTHING = re.compile(r"[-–—−]*|- -|\(none\)")
_UNKNOWN = re.compile(
    r"n/?a|n\.?a\.|nan|null|none|nil|nv|n\.v\.|k\. ?a\.|#n/a|#nv|#n/d|#na|#div/0!|<na>|\\n|\?|\.|∅"
    r"|unknown|missing|undefined|not available|\(not set\)|\(null\)"
)
_TRUE = re.compile(
    r"true|yes|y|t|ja|oui|s[ií]|sim|wahr|vrai|verdadero|vero|success|succeeded|passe?d?|won|win|converted|correct"
)
_FALSE = re.compile(
    r"false|no|n|f|nein|non|n[aã]o|nee|falsch|faux|falso|failure|failed|fail|lost|loss|not converted|incorrect|wrong"
)
_PLAIN = re.compile(r"\+?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SPACES = "\u00a0\u202f\u2009\u2007 "
_QUOTES = "'’‘´`"
_NAMES = rf"R\$|kr\.?|zł|Kč|Ft|lei|руб\.?|Fr\.|Rs\.?|TL|RM|Rp\.?|S/\.?|{CODES}"
_MONEY = rf"(?:[A-Z]{{1,3}}\$|[{SIGNS}]|{_NAMES})"
_DRESSED = re.compile(
    rf"(?P<below>[-−])?(?P<first>{_MONEY})?(?P<apart>[{_SPACES}]*)(?P<under>[-−])?\+?"
    rf"(?P<core>[\d.,{_QUOTES}{_SPACES}]*\d[.,]?(?:[eE][+-]?\d+)?|[-–—]+)"
    rf"(?P<between>[{_SPACES}]*)(?P<scale>[kKmM](?![A-Za-z]))?[{_SPACES}]*(?P<last>{_MONEY}|%)?",
    re.ASCII | re.IGNORECASE,
)
_NO_CENTS = re.compile(r"(\d)[.,][-–—]{1,2}(\D*)$", re.ASCII)  # 1.300,- €
_IN_BRACKETS = re.compile(r"\((.*\d.*)\)|([^-−]*\d)[-−]")  # the second as in SAP
_GROUPS = {
    ",": re.compile(r"\d{1,3}(,\d{3})+|\d{1,2}(,\d{2})*,\d{3}", re.ASCII),  # the second as in India
    ".": re.compile(r"\d{1,3}(\.\d{3})+", re.ASCII),
}
_LONGEST = 400


@dataclass(frozen=True, eq=False)
class Numbers:
    """One column.

    Attributes:
        values: float64 [N]; NaN where there is no number.
        state: int8 [N], NUMBER, NOTHING, UNKNOWN or BAD.
        percent: bool [N], whether a percent sign stood there (the value is divided by 100).
        symbols: of each currency in the column the first row that has it.
    """

    values: FloatArray
    state: np.ndarray
    percent: np.ndarray
    symbols: dict[str, int]


@dataclass(frozen=True)
class _Cell:
    """What is left of a cell without its dress."""

    core: str
    symbol: str = ""
    first: bool = True
    apart: bool = False
    percent: bool = False
    below: bool = False
    scale: float = 1.0


def read_numbers(
    columns: Sequence[Sequence[str]], counts: Sequence[bool], separator: str, decimal: str | None = None
) -> tuple[list[Numbers], NumberStyle, tuple[str, ...]]:
    """All columns, read alike.

    A sign is decimal where two stand in one number (the last), or where it cannot stand between thousands. Where no
    cell tells, numbers of clicks are whole, and a comma is decimal between semicolons.

    Args:
        columns: the cells of each.
        counts: whether it counts clicks.
        separator: of the file's cells.
        decimal: "." or ","; None to find out.

    Returns:
        The columns; how the file writes; a note where that was guessed or differs from the plain form.

    Example:
        >>> found, style, notes = read_numbers([["1.300", "7"], ["12,50 €", "-"]], [True, False], ";")
        >>> found[0].values.tolist(), found[1].values.tolist(), style.decimal, notes
        ([1300.0, 7.0], [12.5, nan], ',', ("decimal commas: '12,50 €' is 12.5, '1.300' is 1300",))
    """
    texts = [dict.fromkeys(cells) for cells in columns]
    plain = (
        separator == "," and decimal is None and all(_PLAIN.fullmatch(t) or t == "" for found in texts for t in found)
    )
    cells = [{text: _undressed(text) for text in found} for found in texts]
    votes, guess = _votes(cells, counts)
    point = decimal or ("." if plain and not guess else _decided(votes, guess, separator))
    read = [_column(of, cells_of, point) for of, cells_of in zip(columns, cells, strict=True)]
    style = _style([cell for of in cells for cell in of.values() if cell], point)
    notes = _notes(cells, point, None if decimal else votes)
    if point == "." and not (plain or decimal or votes or guess):
        notes += _dots(cells, counts)
    return read, style, notes


def plain_number(text: str) -> float | None:
    """A finite number >= 0 in plain form, or None."""
    if not _PLAIN.fullmatch(text):
        return None
    return float(text) if math.isfinite(float(text)) else None


def is_number(text: str) -> bool:
    """Whether the cell is a number in any dress."""
    cell = _undressed(text)
    return cell is not None and bool(cell.core.strip("-–—"))


def is_nothing(text: str) -> bool:
    """Whether the cell is empty, or says that there is nothing or nothing known."""
    return bool(_NOTHING.fullmatch(text) or _UNKNOWN.fullmatch(text.casefold()))


def is_unknown(text: str) -> bool:
    """Whether the cell says that a number is not known."""
    return _UNKNOWN.fullmatch(text.casefold()) is not None


def _undressed(text: str) -> _Cell | None:
    """None if it is no number in any dress."""
    if len(text) > _LONGEST:
        return None
    if _PLAIN.fullmatch(text):
        return _Cell(text.removeprefix("+"))
    text = _NO_CENTS.sub(r"\1\2", text)
    inner = _IN_BRACKETS.fullmatch(text)  # so accountants write what is below 0
    if not (found := _DRESSED.fullmatch(inner[1] or inner[2] if inner else text)):
        return None
    before, behind = found["first"] or "", found["last"] or ""
    percent, behind = behind == "%", behind.replace("%", "")
    core = found["core"].strip(_SPACES)
    apart = found["apart"] or not found["core"].startswith(core) if before else not found[0].endswith(core + behind)
    below = bool(inner or found["below"] or found["under"]) and core.strip("-–—") != ""
    scale = {"k": 1e3, "m": 1e6}.get((found["scale"] or "").lower(), 1.0)
    return _Cell(core, before or behind, bool(before), bool(apart and (before or behind)), percent, below, scale)


def _bare(core: str) -> str:
    """Without what can only stand between thousands, if it stands there."""
    if not any(sign in core for sign in _SPACES + _QUOTES):
        return core
    whole = re.split(r"[.,]", core)[0]
    grouped = re.fullmatch(rf"\d{{1,3}}(([{_SPACES}]\d{{3}})+|([{_QUOTES}]\d{{3}})+)", whole, re.ASCII)
    return re.sub(rf"[{_SPACES}{_QUOTES}]", "", whole) + core[len(whole) :] if grouped else core


def _votes(cells: Sequence[dict[str, _Cell | None]], counts: Sequence[bool]) -> tuple[Counter[str], str]:
    """How many cells show which decimal sign, and the one that numbers of clicks speak for."""
    votes, guess = Counter[str](), ""
    for of, is_count in zip(cells, counts, strict=True):
        for cell in of.values():
            core = _bare(cell.core) if cell else ""
            dots, commas = core.count("."), core.count(",")
            if dots and commas:
                votes["." if core.rfind(".") > core.rfind(",") else ","] += 1
            elif dots + commas > 1:
                votes["," if dots else "."] += 1
            elif dots + commas == 1:
                sign = "." if dots else ","
                if not _GROUPS[sign].fullmatch(core) or core.startswith("0"):
                    votes[sign] += 1
                elif is_count:
                    guess = guess or ("," if dots else ".")
    return votes, guess


def _decided(votes: Counter[str], guess: str, separator: str) -> str:
    if votes:
        return "," if votes[","] > votes["."] else "."
    return guess or ("," if separator == ";" else ".")


def _column(texts: Sequence[str], cells: dict[str, _Cell | None], point: str) -> Numbers:
    words = {text: text.casefold() for text in cells if cells[text] is None}
    flags = _are_flags(words.values(), cells.values())
    known: dict[str, tuple[float, int, bool]] = {}
    for text, cell in cells.items():
        if cell is not None:
            known[text] = _value(cell, point)
        elif flags and not is_nothing(text):
            known[text] = (float(_TRUE.fullmatch(words[text]) is not None), NUMBER, False)
        else:
            known[text] = (
                math.nan,
                NOTHING if _NOTHING.fullmatch(text) else UNKNOWN if is_unknown(text) else BAD,
                False,
            )
    found = [known[text] for text in texts]
    dressed = {text: cell.symbol for text, cell in cells.items() if cell and cell.symbol}
    symbols: dict[str, int] = {}
    for row, text in enumerate(texts if dressed else ()):
        if text in dressed:
            symbols.setdefault(dressed[text], row)
    values, state, percent = (np.array([one[i] for one in found]) for i in range(3))
    return Numbers(values.astype(np.float64), state.astype(np.int8), percent.astype(bool), symbols)


def _are_flags(words: Iterable[str], cells: Iterable[_Cell | None]) -> bool:
    """Whether a column says yes or no (or 0 or 1) in every cell that says something."""
    said = [word for word in words if not is_nothing(word)]
    flags = all(_TRUE.fullmatch(word) or _FALSE.fullmatch(word) for word in said)
    return bool(said) and flags and all(cell is None or cell.core in ("0", "1") for cell in cells)


def _value(cell: _Cell, point: str) -> tuple[float, int, bool]:
    if not cell.core.strip("-–—"):
        return math.nan, NOTHING, False
    core, between = _bare(cell.core), "," if point == "." else "."
    whole, sign, rest = core.partition(point)
    if between in whole:
        if not _GROUPS[between].fullmatch(whole):
            return math.nan, BAD, False
        whole = whole.replace(between, "")
    text = whole + ("." if sign else "") + rest
    value = float(text) if _PLAIN.fullmatch(text) else math.nan
    if not math.isfinite(value):
        return math.nan, BAD, False
    value = value / 100 if cell.percent else value * cell.scale
    return (-value, NEGATIVE, cell.percent) if cell.below and value else (value, NUMBER, cell.percent)


def _style(cells: Iterable[_Cell], point: str) -> NumberStyle:
    symbols, between = Counter[tuple[str, bool, bool]](), Counter[str]()
    for cell in cells:
        if cell.symbol:
            symbols[cell.symbol, cell.first, cell.apart] += 1
        whole = cell.core.partition(point)[0]
        between.update(set(re.sub(r"[\d+eE.-]" if point == "." else r"[\d+eE,-]", "", whole)))
    symbol = symbols.most_common(1)[0][0] if symbols else ("", True, False)
    return NumberStyle(*symbol, decimal=point, thousands=between.most_common(1)[0][0] if between else "")


def _dots(cells: Sequence[dict[str, _Cell | None]], counts: Sequence[bool]) -> tuple[str, ...]:
    """A warning where a dot may stand between thousands, and no cell tells that it is decimal."""
    for of, is_count in zip(cells, counts, strict=True):
        for text, cell in of.items():
            if cell and not is_count and _GROUPS["."].fullmatch(core := _bare(cell.core)):
                return (f"decimal points: {shown(re.sub(rf'[{_SPACES}]', ' ', text))} is {core} (if not: --decimal ,)",)
    return ()


def _notes(cells: Sequence[dict[str, _Cell | None]], point: str, votes: Counter[str] | None) -> tuple[str, ...]:
    """An example of each kind of sign that is not in plain form, and a warning where nothing but custom decided."""
    decimals, thousands, rounded = "", "", ""
    for text, cell in (
        (text, cell) for of in cells for text, cell in of.items() if cell and not _PLAIN.fullmatch(text)
    ):
        value, state, percent = _value(cell, point)
        if state != NUMBER or percent or not cell.core.strip("-–—"):
            continue
        example = f"{shown(re.sub(rf'[{_SPACES}]', ' ', text))} is {value:.10g}"
        core = _bare(cell.core)
        if cell.scale != 1:
            rounded = rounded or f"{example}, as far as it was rounded"
        elif "," in core and point == ",":
            decimals = decimals or example
        elif re.search(rf"\d[{_SPACES}{_QUOTES}{',' if point == '.' else '.'}]\d", cell.core):
            thousands = thousands or example
    if point == "," and not thousands:
        plain = (text for of in cells for text in of if "." in text and _PLAIN.fullmatch(text))
        thousands = next((f"{shown(text)} is {text.replace('.', '')}" for text in plain), "")
    ambiguous = votes is not None and not votes and bool(thousands or decimals)
    either = f" (if not: --decimal {',' if point == '.' else '.'})" if ambiguous else ""
    told = [f"decimal commas: {', '.join(filter(None, (decimals, thousands)))}{either}"] if decimals else []
    told += [f"thousands: {thousands}{either}"] if thousands and not decimals else []
    return (*told, *filter(None, [rounded]))
