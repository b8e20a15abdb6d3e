"""Tables of docs/reproductions/b_zoom.md."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator

from experiments.b_zoom.play import COLUMNS, TABLE2
from experiments.b_zoom.published import STATISTICS
from experiments.common.pages import found, statements, table

_BUDGETS = (50_000, 100_000, 500_000)
_LAMBDAS = (0.05, 0.1, 0.25, 0.5)


def _cells(begin: str, columns: Iterable[str], statistic: str, digits: str) -> Iterator[str]:
    """``published / measured (distance in s.e.)``; what is more than three away stands out."""
    for name in columns:
        each = found("b_zoom", f"{begin} {name} {statistic}")
        (apart,) = re.findall(r"([+-][\d.]+) s\.e\. between", each.note)
        value = float(each.measured)
        text = f"{value:{digits}}" if value < 1000 else f"{value:.0f}"
        yield f"{each.published} / {f'**{text}**' if each.verdict == 'no' else text} ({apart})".replace("-", "−")


def _by_statistic(head: str, columns: Iterable[str], groups: Iterable[tuple[str, str]], digits: str) -> Iterator[str]:
    """A row for each statistic of each group ``(label, begin)``; the group's first row bears its label."""
    lines = (
        [label if s == STATISTICS[0] else "", s, *_cells(begin, columns, s, digits)]
        for label, begin in groups
        for s in STATISTICS
    )
    return table([head, "", *columns], lines)


def _table1(budget: int) -> Iterator[str]:
    """Table 1 at one budget, thousands of pulls."""
    groups = ((f"{lam:g}", f"table1 B={budget} λ={lam:g}") for lam in _LAMBDAS)
    return _by_statistic(f"B = {budget:,}, λ", COLUMNS, groups, ".3g")


def _table2(reading: str) -> Iterator[str]:
    """Table 2 by one reading of the reward, thousands."""
    groups = ((f"{b:,}", f"table2 {reading} B={b}") for b in _BUDGETS)
    return _by_statistic(f"{reading}, B", TABLE2, groups, ".1f")


_AGREEMENT = {
    "Table 2, the reward's peak 0.1 (fitted)": "table2 peak 0.1: within 3 s.e., Σ reward, all cells",
    "Table 2, peak 0.2 (printed)": "table2 printed peak 0.2: within 3 s.e., Σ reward, all cells",
    "Table 1, counted as pulls": "table1: within 3 s.e., pulls, all cells",
    **{f"… column {name}": f"table1: within 3 s.e., pulls, column {name}" for name in COLUMNS},
    "Table 1, counted as Σ reward": "table1: within 3 s.e., Σ reward, all cells",
    "its UCB1 columns, had UCB1 seen equal rewards": (
        "table1 if UCB1 saw equal rewards: within 3 s.e., B/c̄ pulls, all cells"
    ),
}


def _agreement() -> Iterator[str]:
    """How many printed cells are met."""
    rows = ((said, found("b_zoom", item)) for said, item in _AGREEMENT.items())
    lines = ([said, each.measured, *each.note.removeprefix("largest ").split("; so many outside by chance: ")]
             for said, each in rows)  # fmt: skip
    return table(["cells within 3 s.e.", "", "largest distance", "chance of so many outside"], lines)


_SCALES = {
    "BZ, L = largest slope of the ratio": "BZ, ball radius E/L, L = largest slope of μ_r/μ_c",
    "BZ, L = 1 (no rescaling)": "BZ, L = 1 (as printed, no rescaling)",
    "BZ, L' = (L_r + L_c)/λ²": "BZ, L' = (L_r + L_c)/λ² (Lemma 1)",
    "Z, E without λ, L = slope of the reward": "Z, E without the factors of λ, L = slope of the reward",
    "Z, E as printed for BZ, L = slope of the reward": "Z, E as printed for BZ, L = slope of the reward",
    "Z, E as printed for BZ, L = slope of the ratio": "Z, E as printed for BZ, L = slope of the ratio",
    "Z, E without λ, L = slope of the ratio": "Z, E without the factors of λ, L = slope of the ratio",
}


def _scale() -> Iterator[str]:
    """How many cells of its column each reading meets."""
    lines = []
    for name, said in _SCALES.items():
        pulls, reward = (found("b_zoom", f"scale: {name}, {what}") for what in ("pulls", "Σ reward"))
        (median,) = re.findall(r"median \|z\| ([\d.]+)", pulls.note)
        full = re.findall(r"; (\d+) lanes full", pulls.note)
        more = f" ({int(full[0]):,} of 1,200 runs fill their points)" if full else ""
        lines.append([said, f"{pulls.measured}{more}", median, reward.measured])
    return table(["reading", "cells within 3 s.e., as pulls", "median \\|z\\|", "as Σ reward"], lines)


def _independent(budget: int) -> Iterator[str]:
    """BZ by the library, by the independent loop, and as printed: thousands of pulls."""
    lines = []
    for lam in _LAMBDAS:
        cells = []
        for statistic in STATISTICS:
            each = found("b_zoom", f"independent B={budget} λ={lam:g} BZ {statistic}")
            ours, apart, printed = re.findall(r"ours ([\d.]+), ([+-][\d.]+) s\.e\. away; printed (\d+)", each.note)[0]
            cells.append(f"{float(each.measured):.4g} / {float(ours):.4g} ({apart}) / {printed}")
        lines.append([f"{lam:g}", *cells])
    return table([f"B = {budget:,}, λ", *STATISTICS], lines)


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "b_zoom, agreement": _agreement,
    "b_zoom, claims": functools.partial(statements, "b_zoom", "claim: "),
    "b_zoom, scale": _scale,
    **{f"b_zoom, table 1, {b}": functools.partial(_table1, b) for b in _BUDGETS},
    **{f"b_zoom, table 2, {x}": functools.partial(_table2, x) for x in ("printed peak 0.2", "peak 0.1")},
    **{f"b_zoom, independent, {b}": functools.partial(_independent, b) for b in _BUDGETS},
}
