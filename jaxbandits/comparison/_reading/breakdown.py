"""Tables broken down by a second column: the rows of an arm that sum its others."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from jaxbandits.comparison._reading.numbers import is_number
from jaxbandits.comparison._reading.sheet import Row
from jaxbandits.comparison.evidence import FloatArray

_ALL = re.compile(  # not "All visitors", which is an audience like others
    r"\(?(?:all|alle|tous|toutes|todos|todas|tutti|tutte|overall)\)?"
    r"(?: (?:the )?(?:devices|ages|age groups|genders|networks|regions|countries|days|platforms|placements|geräte"
    r"|altersgruppen|appareils|âges|dispositivos|edades|idades|dispositivi|età))?\)?",
    re.IGNORECASE,
)
_ROUNDING = 0.005


def agree(total: FloatArray, found: FloatArray) -> np.ndarray:
    """Where the numbers are the same but for rounding; [M, N] columns by rows, one of each row above 0: bool [N]."""
    same = (np.abs(total - found) <= _ROUNDING * found) & (total >= 0)
    return np.asarray(same.all(axis=0) & (total > 0).any(axis=0))


def text_columns(rows: Sequence[Row], words: Sequence[int], time: int | None) -> list[int]:
    """Those of these columns that hold no numbers, and that of the time."""
    cells_of = {n: {cells[n] for _, cells in rows} for n in words}
    return [n for n, own in cells_of.items() if n == time or not any(is_number(text) for text in own)]


def subtotals(
    rows: Sequence[Row],
    key: Sequence[int],
    time: int | None,
    words: Sequence[int],
    sums: Sequence[FloatArray],
    total: re.Pattern[str],
    plain: bool,
) -> set[int]:
    """Rows of an arm whose device, age or day is "Total", "All" or blank, and whose numbers are the sum of its others.

    Args:
        rows: of the table.
        key: positions of the cells that tell arms apart: name, coarser names, instance.
        time: position of the day; None if there is none.
        words: positions of other cells that are no numbers, such as the device or the day.
        sums: columns of which a total is the sum; float64 [N] each.
        total: what a total is called.
        plain: the file is in plain form, where a total must be called so.
    """
    cells_of = {n: {cells[n] for _, cells in rows} for n in words}
    marks = {text for own in cells_of.values() for text in own if total.fullmatch(text)}
    marks |= {text for own in cells_of.values() for text in own if len(sums) > 1 and not plain and _ALL.fullmatch(text)}
    texts = text_columns(rows, words, time)
    marked = [n for n in reversed(words) if n not in key and (marks | {""}) & cells_of[n]]
    found, values = set[int](), np.array(sums)
    for n in marked if len(sums) else ():
        day = [time] if time is not None else []
        # within one network, day or age first, then within the arm
        for within in ([*key, *day, *texts], [*key, *day, *marked], [*key, *day], key):
            left = [i for i in range(len(rows)) if i not in found and rows[i][1][key[0]]]
            found |= _of_column(rows, left, [k for k in dict.fromkeys(within) if k != n], n, values, marks, plain)
    return found


def _of_column(
    rows: Sequence[Row],
    left: Sequence[int],
    within: Sequence[int],
    column: int,
    values: FloatArray,
    marks: Collection[str],
    plain: bool,
) -> set[int]:
    """Of rows that agree in ``within``, those with a mark (or blank) in this column that sum the others."""
    text = [rows[i][1][column] for i in left]
    called, blank = np.array([x in marks for x in text], bool), np.array([not x for x in text], bool)
    ids: dict[tuple[str, ...], int] = {}
    which = np.array([ids.setdefault(tuple(rows[i][1][k] for k in within), len(ids)) for i in left], np.int64)
    own = np.nan_to_num(values[:, left])
    found = set[int]()
    # one other row, or one column, says too little, unless the cell says it as well
    for marked, others, groups in ((called, ~called, 1), (blank, ~(called | blank), 2)):
        if not marked.any() or (marked is blank and (plain or len(values) < 2)):
            continue
        number = np.bincount(which[others], minlength=len(ids))[which]
        sums = np.array([np.bincount(which[others], of[others], len(ids))[which] for of in own])
        asked = marked & (number >= 1)
        right = asked & agree(own, sums)
        if not (right | (own == 0).all(axis=0))[asked].all():
            continue  # the mark means something else here
        # one other row, or one column, says too little, unless the cell says it as well
        enough = 2 if plain or marked is blank or len(values) < 2 else 1
        several = (number[right] >= enough).any() and len(set(which[right].tolist())) >= groups
        found |= {left[i] for i in np.flatnonzero(right).tolist()} if several else set()
    return found
