"""Intervals of quantiles from order statistics: they hold for every continuous law."""

from __future__ import annotations

import numpy as np


def quantile_ends(values: np.ndarray, q: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval of the ``q`` quantile, ``[place]`` each, from ``[unit, place]``.

    With x₍₁₎ ≤ … ≤ x₍ₙ₎ and π_r = P(Binomial(n, q) ≤ r − 1) = P(x₍ᵣ₎ > quantile), an end that lies above the
    quantile with probability β is (1 − λ) x₍ᵣ₎ + λ x₍ᵣ₊₁₎, π_r ≤ β < π₍ᵣ₊₁₎, with

    .. math:: \\lambda = \\Big(1 + \\frac{r (1-q)(\\pi_{r+1} - \\beta)}{(n-r)\\, q\\, (\\beta - \\pi_r)}\\Big)^{-1}.

    Where no order statistic is far enough out, the end is −∞ or ∞: n values cannot tell.

    Source: Nyblom (1992), Note on interpolated order statistics; for the median Hettmansperger and Sheather (1986).
    """
    ordered = np.sort(values, axis=0)
    low, high = (_end(ordered, q, share) for share in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def _end(ordered: np.ndarray, q: float, beta: float) -> np.ndarray:
    from scipy import stats

    count = ordered.shape[0]
    above = stats.binom.cdf(np.arange(-1, count + 1), count, q)  # π_0 … π_{n+1}
    r = int(np.searchsorted(above, beta, side="right")) - 1
    if r == 0:
        return np.full(ordered.shape[1:], -np.inf)
    if r == count:
        return np.full(ordered.shape[1:], np.inf)
    ratio = r * (1 - q) * (above[r + 1] - beta) / ((count - r) * q * max(beta - above[r], 1e-300))
    weight = 1 / (1 + ratio)
    return (1 - weight) * ordered[r - 1] + weight * ordered[r]
