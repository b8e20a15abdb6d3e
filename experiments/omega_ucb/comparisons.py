"""Statements that the ω-UCB experiment tests, by kind: each gives a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray
from scipy import stats

from experiments.common.rows import Row, row
from experiments.omega_ucb.play import Curves
from experiments.omega_ucb.specs import SHOWN
from jaxbandits.statistics import bootstrap_difference, dominance, holm, runs_needed, simultaneous_band
from jaxbandits.statistics.sample import moments, units

TENTH, MIDDLE, END = SHOWN


def less(
    item: str, published: str, low: xarray.DataArray, high: xarray.DataArray, over: str, note: str = "paired"
) -> Row:
    """Is the mean of ``low`` below that of ``high``? yes or no if the 95 % bootstrap interval of the paired difference
    leaves out 0, else unclear, with what would be needed to tell."""
    low, high = xarray.align(low, high, join="inner")
    found = bootstrap_difference(high, low, over=over)
    mean, left, right = (float(found[part]) for part in ("mean", "low", "high"))
    holds = None if left <= 0 <= right else left > 0
    low_mean, high_mean = (float(x.mean()) for x in (low, high))
    details = f"{note}; {low_mean:.5g} against {high_mean:.5g}; 95 % interval {left:.4g} to {right:.4g}"
    if bool((high == low).all()):
        holds, details = False, f"equal, run by run; {low_mean:.5g}"
    elif holds is None:
        details += f"; {more(high, low, over)}"
    error = standard_error(high - low, over)
    return row(item, mean, error, published=published, holds=holds, note=details, digits=".5g")


def somewhere(item: str, found: Curves, above: str, below: str) -> Row:
    """Is the regret of ``above`` the larger at some share up to 0.1 B? From a band of the paired difference that holds
    at all those shares at once, at 95 %."""
    apart = (found.regret[above] - found.regret[below]).sel(mark=slice(None, TENTH))
    band = simultaneous_band(apart, over=found.over)
    at = int(band["low"].values.argmax())
    holds = True if bool((band["low"] > 0).any()) else False if bool((band["high"] < 0).all()) else None
    mean, low, high = (float(band[part][at]) for part in ("mean", "low", "high"))
    note = f"at {float(band['mark'][at]):.2g} B; band at 95 % for all shares: {low:.4g} to {high:.4g}"
    error = standard_error(apart.isel(mark=at), found.over)
    return row(item, mean, error, published="may be > 0 for small budgets", holds=holds, note=note)


def standard_error(x: xarray.DataArray, over: str) -> float:
    return float(moments(np.asarray(units(x, over).values, float)).error)


def more(x: xarray.DataArray, y: xarray.DataArray, over: str) -> str:
    needed = float(runs_needed(x, y, over=over)["needed"])
    what = "instances" if over == "instance" else "runs of each campaign"
    return f"about {float(f'{needed:.2g}'):,.0f} {what} would tell" if needed < 1e7 else "no number of runs would tell"


def best(item: str, published: str, found: Curves, share: float, name: str, others: Sequence[str]) -> Row:
    """Has ``name`` less regret than all others? Paired t-tests on the runs that the two have, Holm's correction over
    the others, at 5 %."""
    mine = found.at(share, name)
    gaps = {other: found.at(share, other) - mine for other in others}
    p = dict(zip(others, holm(np.array([_p(found.at(share, name, o), found.over) for o in others])), strict=True))
    behind = [o for o in others if not (p[o] <= 0.05 and float(gaps[o].mean()) > 0)]
    better = [o for o in behind if p[o] <= 0.05]
    nearest = min(others, key=lambda o: float(found.at(share, o).mean()))
    holds = False if better else None if behind else True
    parts = [f"{name}: {float(mine.mean()):.5g}; measured: regret of the best other ({nearest}) − it"]
    if better:
        parts.append(f"clearly less regret: {', '.join(better)}")
    for other in (o for o in behind if o not in better):
        worse = (gaps[other] > 0).values
        parts.append(f"not clear: {other} (p = {p[other]:.2g}, more regret in {worse.sum()} of {worse.size} runs)")
    if holds is None and len(behind) <= 2:
        parts.append(more(*xarray.align(found.at(share, behind[0]), mine, join="inner"), found.over))
    lead = gaps[nearest]
    return row(item, lead.mean(), standard_error(lead, found.over), published=published, holds=holds,
               note="; ".join(parts), digits=".5g")  # fmt: skip


def _p(two: xarray.DataArray, over: str) -> float:
    return float(dominance(two, among="policy", over=over)["p"][0, 1])


def statistic(
    item: str,
    published: str,
    function: Callable[..., Any],
    samples: Sequence[xarray.DataArray],
    holds: Callable[..., bool | None],
    note: str,
    over: str = "instance",
) -> Row:
    """A function of the means of several curves of the same worlds, with its bootstrap interval over ``over``."""
    other = "replicate" if over == "instance" else "instance"
    values = [np.asarray(x.mean(other).values, float) for x in samples]

    def of_means(*parts: np.ndarray, axis: int = -1) -> np.ndarray:
        return function(*(part.mean(axis=axis) for part in parts))

    found = stats.bootstrap(
        values, of_means, paired=True, vectorized=True, n_resamples=2000, method="percentile",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    low, high = found.confidence_interval
    note += f"; 95 % interval {low:.3g} to {high:.3g}"
    return row(item, of_means(*values), found.standard_error, published=published, holds=holds(low, high), note=note)


def above(level: float) -> Callable[[float, float], bool | None]:
    """yes if the interval is above the level, no if below."""
    return lambda low, high: True if low > level else False if high < level else None


def below(level: float) -> Callable[[float, float], bool | None]:
    """yes if the interval is below the level, no if above."""
    return lambda low, high: True if high < level else False if low > level else None


def log_ratio(top: xarray.DataArray, bottom: xarray.DataArray, over: str) -> tuple[float, float]:
    """ln of the ratio of two means of the same worlds, and its standard error by the delta method."""
    top, bottom = xarray.align(top, bottom, join="inner")
    high, low = float(top.mean()), float(bottom.mean())
    return float(np.log(high / low)), standard_error(top / high - bottom / low, over)


def growth(middle: Any, end: Any) -> Any:
    """Local exponent of the mean regret in the budget, over the last half decade."""
    return np.log(end / middle) / np.log(END / MIDDLE)


def bend(tenth: Any, middle: Any, end: Any) -> Any:
    """Growth in the last half decade over that in the one before: 1 on a straight line over ln B, more if convex."""
    return (end - middle) / (middle - tenth)
