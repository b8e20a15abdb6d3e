"""What the B-Zoom paper concludes from Table 1, on measured pulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.b_zoom import published
from experiments.b_zoom.play import COLUMNS, Cells
from experiments.common.rows import Row, mean_se, row

PAIRS = (("BZ", "Z"), ("BZ", "UCB1-5"), ("BZ", "UCB1-15"), ("BV1-5", "BZ"), ("BV1-10", "BZ"), ("BV1-15", "BZ"))


def claims(cells: dict[str, Cells], budgets: Any, lambdas: Any) -> list[Row]:
    """The paper's conclusions, on measured pulls."""
    value = {n: published.statistics(cells[n].pulls) for n in COLUMNS}  # [statistic, budget, λ]
    rows = []
    for s, statistic in enumerate(("m", "Q1")):
        most = "in most cells (Q1 at B = 5·10⁴: λ ≤ 0.1)"
        rows.append(
            _most(f"{statistic} of BZ is the best", most, "BZ", [value[n][s] for n in COLUMNS], budgets, lambdas)
        )
        gain = (value["BZ"][s] / np.max([value[n][s] for n in COLUMNS if n != "BZ"], axis=0) - 1).mean(axis=1)
        text = ", ".join(f"{100 * g:.1f} % at {b:g}" for g, b in zip(gain, budgets, strict=True))
        rows.append(
            row(f"claim: lead of BZ in {statistic} grows with B", text, published="≈ 1 % to more than 10 %",
                holds=(np.diff(gain) > 0).all(), note="over the best other column, mean over λ")
        )  # fmt: skip
    for one, other in PAIRS:
        mean, se = mean_se(cells[one].pulls / cells[other].pulls - 1, axis=-1)
        above, below = mean > 2 * se, mean < -2 * se
        text = f"above in {above.sum()}, below in {below.sum()} of {mean.size}"
        apart = 100 * (value[one][3] / value[other][3] - 1).max()
        rows.append(
            row(f"claim: mean profit, {one} − {other}", text, se.max(), published="> 0 in all cells",
                holds=True if above.all() else False if below.any() else None,
                note=f"paired by instance, 2 s.e.; up to {apart:.0f} % of means")
        )  # fmt: skip
    median = [value[n][2] for n in COLUMNS]
    rows.append(_most("BV1-15 has the best median", "in most cells", "BV1-15", median, budgets, lambdas))
    return rows + (_compact(cells, budgets, lambdas.index(0.1)) if 0.1 in lambdas else [])


def _most(claim: str, said: str, name: str, values: Any, budgets: Any, lambdas: Any) -> Row:
    """Is this column the best in most cells? ``values`` [column][budget, λ]"""
    best = values[COLUMNS.index(name)] >= np.max(values, axis=0)
    misses = "; ".join(f"B={budgets[b]} λ={lambdas[k]:g}" for b, k in np.argwhere(~best))
    note = f"not in {misses}" if misses else "in all cells"
    return row(f"claim: {claim}", f"{best.sum()} of {best.size}", published=said, holds=best.mean() > 0.5, note=note)


def _compact(cells: dict[str, Cells], budgets: Any, k: int) -> list[Row]:
    rows = []
    for b, budget in enumerate(budgets):
        pulls = {name: c.pulls[b, k] for name, c in cells.items()}
        spread = {n: np.subtract(*np.quantile(x, [0.75, 0.25])) / np.median(x) for n, x in pulls.items()}
        rows.append(
            row(f"claim: compact distribution of BZ, λ = 0.1, B = {budget}",
                ", ".join(f"{n} {100 * x:.1f} %" for n, x in spread.items()), published="extremely low variance",
                holds=spread["BZ"] <= min(x for n, x in spread.items() if n.startswith("BV1")),
                note="interquartile range over median; yes: narrower than every BV1")
        )  # fmt: skip
    return rows
