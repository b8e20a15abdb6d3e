"""How many more runs until a difference is clear."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.errors import InputError
from jaxbandits.statistics.sample import check_level, moments, paired, units
from jaxbandits.statistics.student import t_quantile

if TYPE_CHECKING:
    import xarray

_MOST = 1 << 50


def runs_needed(
    x: xarray.DataArray, y: xarray.DataArray, *, over: str = "replicate", level: float = 0.95, power: float = 0.8
) -> xarray.Dataset:
    """How many runs (or random instances) a paired comparison needs, if the difference is what it now seems to be.

    The least n for which the two-sided paired t-test at 1 − ``level`` finds the difference with probability
    ``power``, its mean and spread being those seen. With m units now, mean d, standard error e and α = 1 − ``level``,

    .. math:: \\big(t_{1-\\alpha/2}(\\nu) + t_{\\mathrm{power}}(\\nu)\\big)\\, e \\sqrt{m/n} \\le |d|,

    where ν grows with n as it does from one unit to m. A difference that is clear already needs no more. Planned on an
    uncertain d, n is uncertain too: ``least`` and ``most`` are the n for the ends of the ``level`` interval of d.

    Args:
        x: an array with the axis ``over``.
        y: the same runs under another policy.
        over: what more would be had of, ``"replicate"`` (runs of each given instance) or ``"instance"``.
        level: of the interval that shall leave out 0. With k comparisons, take 1 − 0.05/k.
        power: the wanted probability, in (0, 1).

    Returns:
        A dataset of ``now``, ``needed``, ``more`` (0 where the difference is clear now), ``least`` and ``most``, as
        floats; inf where the difference is exactly 0, or for ``most`` where its interval holds 0.

    Raises:
        InputError: missing axes, labels that differ, fewer than two units, an argument out of its range.

    Example:
        >>> import numpy as np, xarray
        >>> d = xarray.DataArray(np.random.default_rng(1).normal(0.5, 2.0, size=40), dims="replicate")
        >>> found = runs_needed(d, 0 * d)
        >>> bool(found["more"] > 0), bool(found["least"] < found["needed"] < found["most"])
        (True, True)
    """
    import xarray

    check_level("level", level)
    check_level("power", power)
    sample = units(paired(x, y), over)
    values = np.asarray(sample.values, float)
    now = values.shape[1]
    if now < 2:
        raise InputError(f"x: 1 {over} given; it must have 2 or more, or its spread is unknown")
    mean, error, freedom = moments(values)
    half = error * t_quantile(0.5 + level / 2, freedom)
    size = np.abs(mean)

    def count(difference: np.ndarray) -> np.ndarray:
        return _least(difference, error * np.sqrt(now), freedom / (now - 1), 1 - level, power)

    needed = count(size)
    clear = size > half
    parts = {
        "now": np.full(mean.shape, float(now)),
        "needed": needed,
        "more": np.where(clear, 0.0, np.maximum(needed - now, 1.0)),
        "least": count(size + half),
        "most": np.where(clear, count(np.maximum(size - half, 0)), np.inf),
    }
    like = sample.isel(stratum=0, unit=0, drop=True)
    attrs = {"level": level, "power": power}
    return xarray.Dataset({name: like.copy(data=value) for name, value in parts.items()}, attrs=attrs)


def _least(difference: np.ndarray, spread: np.ndarray, ratio: np.ndarray, alpha: float, power: float) -> np.ndarray:
    """Least n ≥ 2 with the power, by bisection; ``ratio`` is degrees of freedom / (n − 1)."""

    def reached(n: np.ndarray) -> np.ndarray:
        freedom = ratio * (n - 1)
        needed = -t_quantile(alpha / 2, freedom) - t_quantile(1 - power, freedom)
        return (difference > 0) & (needed * spread <= difference * np.sqrt(n))

    low, high = np.ones(np.shape(difference)), np.full(np.shape(difference), float(_MOST))
    possible = reached(high)
    while (high - low > 1).any():
        middle = np.maximum(np.floor(np.sqrt(low * high)), low + 1)  # halves the logarithm first
        good = reached(middle)
        low, high = np.where(good, low, np.minimum(middle, high - 1)), np.where(good, np.minimum(middle, high), high)
    return np.where(possible, high, np.inf)
