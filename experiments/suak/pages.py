"""Tables of docs/reproductions/suak.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from experiments.common.pages import cell, cell_if_there, found, table
from experiments.suak.sweeps import BUDGETS, GAPS


def _regret() -> Iterator[str]:
    """Regret at T of every policy in both figures, and what the first ten runs alone say."""
    lines = []
    for name in ("SUAK", "OPS, a = 3", "OPS, a = 2.4", "OPS, a = 2", "PDS", "USS, λ = 9", "USS, λ = 5"):
        second = found("suak", f"figure2: regret of {name} at T")
        (value, error) = re.findall(r"first 10: ([\d.e+]+) ± ([\d.e+]+)", second.note)[0]
        first = cell_if_there("suak", f"figure1: regret of {name} at T")
        lines.append([name, first, cell(second), f"{float(value):,.0f} ± {float(error):,.0f}"])
    return table(["", "Fig. 1: regret", "Fig. 2: regret", "first 10 runs of 200"], lines)


def _over_c() -> Iterator[str]:
    """Regret of OPS − SUAK over the average cost allowed."""
    found_rows = [found("suak", f"sweep_c: regret of OPS − SUAK, c = {c:g}") for c in BUDGETS]
    head = ["c", *(f"{c:g}" for c in BUDGETS)]
    return table(head, [["regret of OPS − SUAK", *(cell(each) for each in found_rows)]])


def _over_gap() -> Iterator[str]:
    """Regret of both over the smallest cost gap."""
    notes = [found("suak", f"sweep_gap: regret of OPS − SUAK, δ = {gap:g}").note for gap in GAPS]
    lines = [
        [name, *(f"{float(re.findall(rf'{short} ([^,;]+)', note)[0]):,.0f}" for note in notes)]
        for name, short in (("SUAK", "SUAK"), ("OPS, a = 3", "OPS"))
    ]
    return table(["δ", *(f"{gap:g}" for gap in GAPS)], lines)


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "suak, regret": _regret,
    "suak, over c": _over_c,
    "suak, over the gap": _over_gap,
}
