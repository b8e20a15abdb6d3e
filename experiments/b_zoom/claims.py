"""What the B-Zoom paper concludes from Table 1, on measured pulls."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from experiments.b_zoom.play import COLUMNS, Cells
from experiments.b_zoom.published import STATISTICS, statistics
from experiments.common.rows import OURS, Row, mean_se, row

RESAMPLES = 400

PAIRS = (("BZ", "Z"), ("BZ", "UCB1-5"), ("BZ", "UCB1-15"), ("BV1-5", "BZ"), ("BV1-10", "BZ"), ("BV1-15", "BZ"))


def claims(cells: dict[str, Cells], budgets: Any, lambdas: Any) -> list[Row]:
    """The paper's conclusions, on measured pulls."""
    samples = {name: cells[name].pulls for name in COLUMNS}
    rows = []
    for statistic in ("m", "Q1"):
        said = "in most cells (Q1 at B = 5·10⁴: λ ≤ 0.1)"
        rows.append(most(f"{statistic} of BZ is the best", said, "BZ", samples, statistic, budgets, lambdas))
        rows += lead_grows(samples, statistic, budgets)
    for one, other in PAIRS:
        rows.append(_mean_profit(one, other, cells))
    said = "in most cells"
    rows.append(most("BV1-15 has the best median", said, "BV1-15", samples, "Q2", budgets, lambdas))
    return rows + (_compact(cells, budgets, lambdas.index(0.1)) if 0.1 in lambdas else [])


def _mean_profit(one: str, other: str, cells: dict[str, Cells]) -> Row:
    mean, se = mean_se(cells[one].pulls / cells[other].pulls - 1, axis=-1)
    limit = stats.norm.isf(0.025 / mean.size)  # for all cells together
    above, below = mean > 2 * se, mean < -limit * se
    text = f"above in {above.sum()}, below in {below.sum()} of {mean.size}"
    apart = 100 * (cells[one].pulls.mean(-1) / cells[other].pulls.mean(-1) - 1).max()
    note = f"paired by instance; above by 2 s.e., below by {limit:.1f} (Bonferroni); up to {apart:.0f} % of means"
    holds = True if above.all() else False if below.any() else None
    item = f"claim: mean profit, {one} − {other}"
    return row(item, text, se.max(), published="> 0 in all cells", holds=holds, note=note)


def resampled(samples: dict[str, np.ndarray], statistic: str) -> dict[str, np.ndarray]:
    """A statistic of every column on bootstrap resamples of the instances, ``[resample, budget, λ]``.

    The columns meet the same instances, so each resample is the same for all. Of a minimum the bootstrap is too sure:
    it holds the smallest value of the sample in 63 % of resamples.
    """
    place, rng = STATISTICS.index(statistic), np.random.default_rng(0)
    count = next(iter(samples.values())).shape[-1]
    picks = rng.integers(0, count, (RESAMPLES, count))
    return {name: np.array([statistics(x[..., pick])[place] for pick in picks]) for name, x in samples.items()}


def _best_other(values: dict[str, np.ndarray], name: str) -> np.ndarray:
    return np.max([x for other, x in values.items() if other != name], axis=0)


def lead_grows(samples: dict[str, np.ndarray], statistic: str, budgets: Any) -> list[Row]:
    """BZ's lead over the best other column, mean over λ: does it grow from the first budget to the last?

    The paper says so of the minimum: "from approximately 1 % to more than 10 %".
    """
    place = STATISTICS.index(statistic)
    point, again = {name: statistics(x)[place] for name, x in samples.items()}, resampled(samples, statistic)
    lead, leads = ((x["BZ"] / _best_other(x, "BZ") - 1).mean(axis=-1) for x in (point, again))
    low, high = np.quantile(leads[:, -1] - leads[:, 0], (0.025, 0.975))
    text = ", ".join(f"{100 * g:.1f} % at {b:g}" for g, b in zip(lead, budgets, strict=True))
    note = "over the best other column, mean over λ; 95 % bootstrap interval"
    note += " (too narrow for a minimum)" if statistic == "m" else ""
    grows = True if low > 0 else False if high < 0 else None
    grown = f"{note} of the last − the first: {100 * low:.1f} to {100 * high:.1f} %"
    said = "grows" if statistic == "m" else OURS
    rows = [row(f"claim: lead of BZ in {statistic} grows with B", text, published=said, holds=grows, note=grown)]
    if statistic != "m":
        return rows
    low, high = np.quantile(leads[:, -1], (0.025, 0.975))
    ten = True if low > 0.1 else False if high < 0.1 else None
    item, note = f"claim: lead of BZ in m at B = {budgets[-1]:g}", f"{note}: {100 * low:.1f} to {100 * high:.1f} %"
    return [*rows, row(item, f"{100 * lead[-1]:.1f} %", published="more than 10 %", holds=ten, note=note)]


def most(
    claim: str, said: str, name: str, samples: dict[str, np.ndarray], statistic: str, budgets: Any, lambdas: Any
) -> Row:
    """Is this column the best in most cells? yes: clearly in more than half; no: clearly not in half or more.

    Clearly: by the 95 % bootstrap interval of its lead over the best other column of the sample.
    """
    place = STATISTICS.index(statistic)
    values, again = {column: statistics(x)[place] for column, x in samples.items()}, resampled(samples, statistic)
    point, leads = (x[name] - _best_other(x, name) for x in (values, again))
    low, high = np.quantile(leads, (0.025, 0.975), axis=0)
    best, not_best = low > 0, high < 0
    misses = "; ".join(f"B={budgets[b]} λ={lambdas[k]:g}" for b, k in np.argwhere(point < 0))
    note = f"{best.sum()} clearly, {not_best.sum()} clearly not; " + (f"not in {misses}" if misses else "in all cells")
    half = best.size / 2
    holds = True if best.sum() > half else False if not_best.sum() >= half else None
    text = f"{(point >= 0).sum()} of {best.size}"
    return row(f"claim: {claim}", text, published=said, holds=holds, note=note)


def _compact(cells: dict[str, Cells], budgets: Any, k: int) -> list[Row]:
    rows = []
    for b, budget in enumerate(budgets):
        pulls = {name: c.pulls[b, k] for name, c in cells.items()}
        spread = {name: float(_spread(x)) for name, x in pulls.items()}
        count = pulls["BZ"].size
        picks = np.random.default_rng(0).integers(0, count, (RESAMPLES, count))
        gaps = np.min([_spread(x[picks]) for name, x in pulls.items() if name.startswith("BV1")], axis=0)
        low, high = np.quantile(gaps - _spread(pulls["BZ"][picks]), (0.025, 0.975))
        text = ", ".join(f"{name} {100 * x:.1f} %" for name, x in spread.items())
        note = "interquartile range over median; yes: below every BV1 by the 95 % bootstrap interval"
        item = f"claim: compact distribution of BZ, λ = 0.1, B = {budget}"
        holds = True if low > 0 else False if high < 0 else None
        rows.append(row(item, text, published="extremely low variance", holds=holds, note=note))
    return rows


def _spread(pulls: np.ndarray) -> np.ndarray:
    low, middle, high = np.quantile(pulls, [0.25, 0.5, 0.75], axis=-1)
    return (high - low) / middle
