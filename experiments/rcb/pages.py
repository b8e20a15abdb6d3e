"""Tables of docs/reproductions/rcb.md."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np

from experiments.common.pages import cell, cell_if_there, found, summary, table
from experiments.common.rows import Row
from experiments.rcb.play import BETAS

_FRACTION = {0.5: "½", 1.0: "1", 2.0: "2"}
_NAMES = ("RCB-I", "RCB-AIR", "ω-UCB, K arms", "ω-UCB, increasing")
_BUDGETS = (1_000, 3_160, 10_000, 31_600, 100_000, 316_000, 1_000_000)


def _regret() -> Iterator[str]:
    """Regret against the budget."""
    lines = (
        [
            f"{name}, β = {_FRACTION[beta]}",
            *(cell_if_there("rcb", f"regret: {name}, β = {beta:g}, B = {float(b):g}") for b in _BUDGETS),
        ]
        for beta in BETAS
        for name in _NAMES
    )
    return table(["", *(f"B = {b:,}" for b in _BUDGETS)], lines)


def _exponents() -> Iterator[str]:
    """Local exponents, each with its bound's own."""
    middles = [float(np.sqrt(a * b)) for a, b in itertools.pairwise(_BUDGETS)]
    lines = []
    for beta in BETAS:
        for name in _NAMES[:2]:
            begin = f"exponent: {name}, β = {beta:g}"
            steps = [summary("rcb").get(f"{begin}, B ≈ {b:.3g}") for b in middles]
            lower = re.findall(r"≥ ([\d.]+)", steps[0].published)[0]  # type: ignore[union-attr]
            falls = found("rcb", f"{begin}: it falls with B")
            shown = f"{name}, β = {_FRACTION[beta]} (lower {float(lower):.2f})"
            cells = [_step(each) if each else "" for each in steps]
            lines.append([shown, *cells, f"{cell(falls, digits='.3f')}, {falls.verdict}"])
    head = ["", *(f"B ≈ {b:,.0f}" for b in middles), "falls from first to last by"]
    return table(head, lines)


def _step(each: Row) -> str:
    (bound,) = re.findall(r"≤ ([\d.]+)", each.published)
    return f"{cell(each, digits='.3f')} [{float(bound):.2f}] {each.verdict}"


def _infinite() -> Iterator[str]:
    """Share of pulls of arms whose index was infinite."""
    lines = []
    for beta in BETAS:
        for name in _NAMES[:2]:
            rows = [summary("rcb").get(f"regret: {name}, β = {beta:g}, B = {float(b):g}") for b in _BUDGETS]
            shares = [re.findall(r"infinite index in (\d+ %)", each.note) if each else [] for each in rows]
            if any(shares):
                lines.append([f"{name}, β = {_FRACTION[beta]}", *(x[0] if x else "" for x in shares)])
    return table(["", *(f"B = {b:,}" for b in _BUDGETS)], lines)


def _far() -> Iterator[str]:
    """Regret beyond the budgets of ``regret``, a hundred reservoirs each."""
    head = ["", "B", "regret", "pulls with an infinite index", "exponent since the budget before [bound's]"]
    return table(head, _far_lines())


def _far_lines() -> Iterator[list[str]]:
    exponents = {  # by policy, β and the budget at the end of the step
        _place(each.item, 10**0.25): each for each in summary("rcb").values() if each.item.startswith("far: exponent")
    }
    for each in summary("rcb").values():
        if not each.item.startswith("far: regret"):
            continue
        policy, beta, budget = place = _place(each.item)
        infinite = re.findall(r"infinite index in (\d+ %)", each.note)
        slope = _step(exponents[place]) if place in exponents else ""
        name = f"{policy}, β = {_FRACTION[beta]}"
        yield [name, f"{budget:,}", cell(each), infinite[0] if infinite else "", slope]


def _place(item: str, times: float = 1.0) -> tuple[str, float, int]:
    """Policy, β, and the budget times a factor, to the half decade."""
    found = re.fullmatch(r"far: \w+: (.+), β = ([\d.]+), B [=≈] (.+)", item)
    assert found
    half = round(2 * np.log10(float(found[3]) * times))
    return found[1], float(found[2]), int(float(f"{10 ** (half / 2):.3g}"))


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "rcb, regret": _regret,
    "rcb, exponents": _exponents,
    "rcb, infinite": _infinite,
    "rcb, far": _far,
}
