"""What was sampled: independent units, in strata; their moments; and the ends of intervals of means and quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.core.checks import InputError, bad

if TYPE_CHECKING:
    import xarray


def t_quantile(p: Any, freedom: Any) -> np.ndarray:
    """x with P(T ≤ x) = p, elementwise; freedom may be infinite (normal), NaN where it is not above 0."""
    from scipy.special import stdtrit  # scipy.stats takes longer to import than a small comparison to play

    return np.where(np.equal(p, 0), -np.inf, stdtrit(freedom, p))


# --- Units and their moments


_AT_ONCE = 1 << 22  # values that a function of a sample copies at a time


class Moments(NamedTuple):
    """Of the mean of the strata's means, ``[…]`` each."""

    mean: np.ndarray
    error: np.ndarray  # its standard error
    freedom: np.ndarray  # Welch and Satterthwaite's, n − 1 with one stratum; NaN with one unit
    skew: np.ndarray  # of the mean itself; with one stratum that of the sample over √n


def units(x: xarray.DataArray, over: str) -> xarray.DataArray:
    """``x`` with its first axes renamed ``(stratum, unit)``.

    Over ``"replicate"`` each instance is a stratum and its runs are the units; over ``"instance"`` there is one
    stratum, whose units are the instances, averaged over their runs. Over any other axis there is one stratum, its
    entries are the units, and all other axes stay.
    """
    check_axes(x, over)
    if over == "replicate":
        made = x.rename(replicate="unit")
        made = made.rename(instance="stratum") if "instance" in x.dims else made.expand_dims("stratum")
    else:
        averaged = x.mean("replicate", skipna=False) if over == "instance" and "replicate" in x.dims else x
        made = averaged.rename({over: "unit"}).expand_dims("stratum")
    return made.drop_vars(("stratum", "unit"), errors="ignore").transpose("stratum", "unit", ...)


def check_axes(x: xarray.DataArray, *axes: str) -> None:
    """Raise :class:`InputError` unless ``x`` is a labelled array with these axes."""
    if not hasattr(x, "dims"):
        raise bad("x", x, "a labelled array (xarray.DataArray), such as result.regret")
    for axis in axes:
        if axis not in x.dims:
            raise InputError(f"x: an array with axes {tuple(x.dims)} given; it must have an axis {axis!r}")


def moments(values: np.ndarray) -> Moments:
    """Of ``[stratum, unit, …]``; strata of fewer than 3 units have no skewness to speak of, and count as symmetric."""
    found = by_blocks(_moments, values.reshape(*values.shape[:2], -1))
    return Moments(*(part.reshape(values.shape[2:]) for part in found))


def _moments(values: np.ndarray) -> Moments:
    strata, count = values.shape[:2]
    one = np.full((strata, *values.shape[2:]), np.nan)  # one unit: no variance
    variance = values.var(axis=1, ddof=1) if count > 1 else one
    total, squares = variance.sum(0), (variance**2).sum(0)
    mean, error = values.mean(axis=(0, 1)), np.sqrt(total / count) / strata
    third = np.zeros(mean.shape)  # the third cumulant of the mean is the sum of the strata's, as its variance is
    if count > 2:
        cubes = ((values - values.mean(axis=1, keepdims=True)) ** 3).sum(axis=1)
        third = cubes.sum(axis=0) / count / ((count - 1) * (count - 2)) / strata**3
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(squares > 0, total**2 / squares, 1.0)
        skew = np.where(error > 0, third / error**3, 0.0)
    return Moments(mean, error, (count - 1) * ratio, skew)


def by_blocks(function: Callable[[np.ndarray], tuple[np.ndarray, ...]], values: np.ndarray) -> list[np.ndarray]:
    """A function of ``[stratum, unit, place]`` that gives arrays ``[place]``, some places at a time: its own copies of
    the values stay small, however large a result is."""
    places = values.shape[2]
    step = max(1, _AT_ONCE // max(1, values.shape[0] * values.shape[1]))
    blocks = [function(values[..., first : first + step]) for first in range(0, max(places, 1), step)]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def paired(x: xarray.DataArray, y: xarray.DataArray) -> xarray.DataArray:
    """x − y, where both met the same runs of the same instances: their labels must be the same."""
    for axis in x.dims:
        if axis in y.dims and list(x[axis].values) != list(y[axis].values):
            raise InputError(f"y: other labels on the axis {axis!r} given; it must have those of x, to be paired")
    return x - y


def check_level(name: str, value: float) -> None:
    """Raise :class:`InputError` unless it is a number in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 < value < 1:
        raise bad(name, value, "a number in (0, 1)")


# --- Ends of an interval of a quantile, from order statistics


def quantile_ends(values: np.ndarray, q: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval of the ``q`` quantile, ``[place]`` each, from ``[unit, place]``.

    With x₍₁₎ ≤ … ≤ x₍ₙ₎ and π_r = P(Binomial(n, q) ≤ r − 1) = P(x₍ᵣ₎ > quantile), an end that lies above the
    quantile with probability β is (1 − λ) x₍ᵣ₎ + λ x₍ᵣ₊₁₎, π_r ≤ β < π₍ᵣ₊₁₎, with

    .. math:: \\lambda = \\Big(1 + \\frac{r (1-q)(\\pi_{r+1} - \\beta)}{(n-r)\\, q\\, (\\beta - \\pi_r)}\\Big)^{-1}.

    Where no order statistic is far enough out, the end is −∞ or ∞: n values cannot tell.

    Source: Nyblom (1992), Note on interpolated order statistics; for the median Hettmansperger and Sheather (1986).
    """
    from scipy import stats

    count, ordered = values.shape[0], np.sort(values, axis=0)
    above = stats.binom.cdf(np.arange(-1, count + 1), count, q)  # π_0 … π_{n+1}

    def end(beta: float) -> np.ndarray:
        r = int(np.searchsorted(above, beta, side="right")) - 1
        if r in (0, count):
            return np.full(values.shape[1:], np.inf if r else -np.inf)
        ratio = r * (1 - q) * (above[r + 1] - beta) / ((count - r) * q * max(beta - above[r], 1e-300))
        weight = 1 / (1 + ratio)
        return (1 - weight) * ordered[r - 1] + weight * ordered[r]

    return end((1 - level) / 2), end((1 + level) / 2)


# --- Ends of an interval of a mean: Student's t, corrected for skewness


_CAUTIOUS = 0.95  # of the skewness: see :func:`corrected`


def corrected(critical: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """The value of (x̄ − μ)/se that Hall's transformation takes to ``critical``:

    .. math:: g^{-1}(y) = \\frac3a \\Big[\\big(1 + a (y - a/6)\\big)^{1/3} - 1\\Big],
              \\quad g(T) = T + \\tfrac13 a T^2 + \\tfrac1{27} a^2 T^3 + \\tfrac16 a.

    g is increasing, and removes the skewness of T (about −2a) to first order. a is taken a twentieth smaller than
    ``skew``: measured, samples of two clusters cover more than 98 % without that, and others 92 % and more with it.
    """
    skewed = np.abs(skew) > 1e-9
    a = np.where(skewed, _CAUTIOUS * skew, 1.0)
    return np.where(skewed, 3 / a * (np.cbrt(1 + a * (critical - a / 6)) - 1), critical)


def mean_ends(values: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and the ends of its interval, from ``[stratum, unit, …]``; NaN with one unit in a stratum.

    x̄ − se · g⁻¹(± t(ν)) with :func:`corrected`, ν Welch and Satterthwaite's degrees of freedom.

    Source: Hall (1992), On the removal of skewness by transformation.
    """
    parts = moments(values)
    half = t_quantile(0.5 + level / 2, parts.freedom)
    low, high = (parts.mean - corrected(y, parts.skew) * parts.error for y in (half, -half))
    return parts.mean, low, high
