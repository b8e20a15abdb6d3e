"""Which settings are clearly better, with an error rate for the whole table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.checks import InputError
from jaxbandits.statistics.estimates import check_level, moments, paired, t_quantile, units

if TYPE_CHECKING:
    import xarray


def reach(critical: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """An end's distance from the mean in standard errors; ``skew`` > 0: a long tail on its side."""
    return critical + np.maximum(skew, 0) * (2 * critical**2 + 1) / 3


def critical_value(tail: float, freedom: np.ndarray) -> np.ndarray:
    """The Student quantile that a share ``tail`` exceeds, with reduced freedom (half at 40)."""
    # The spread of a small sample says little of a law with long tails.
    return -t_quantile(tail, freedom * (freedom + 1) / (freedom + 41))


def dominance(
    x: xarray.DataArray, *, among: str = "setting", over: str, level: float = 0.95
) -> xarray.Dataset:
    """Compare all settings pairwise: joint intervals of the differences, and which are clear.

    With m = k(k − 1)/2 pairs, the mean of a paired difference, its standard error e, its skewness a
    and ν degrees of freedom (n − 1; Welch and Satterthwaite's of several given instances), the
    interval is

    .. math:: \\bar d - e \\, r(-a) \\le \\mu \\le \\bar d + e \\, r(a), \\quad
              r(a) = t + \\max(a, 0)\\, \\frac{2 t^2 + 1}{3}, \\quad
              t = t_{1 - \\alpha / 2m}\\Big(\\nu\\,\\frac{\\nu + 1}{\\nu + 41}\\Big).

    That is Johnson's correction of t for skewness on the side where t errs, twice, since a sample
    shows about half of a long tail, and none on the other; fewer degrees of freedom, since the
    spread of a small sample says little of such a law; and Bonferroni's level. A difference is
    clear if its interval leaves out 0. Since all pairs are counted, "the winner against the rest"
    may be read off, though the winner was found by looking. docs/statistics.md has the measured
    rate of false claims, and the samples that cannot hold it.

    Args:
        x: an array with the axes ``among`` and ``over`` (and perhaps ``instance``, ``replicate``),
            no others, such as ``result.regret.isel(mark=-1)``.
        among: the axis whose entries are compared.
        over: what was sampled, ``"instance"`` or ``"replicate"`` (see
            :mod:`jaxbandits.statistics`).
        level: the chance that all intervals hold, and so that no pair is wrongly called clear. For
            one of c tables that belong together, take 1 − 0.05/c.

    Returns:
        A dataset over ``(among, against)``: ``difference`` (mean of row − column), its ``low`` and
        ``high``, NaN of one unit, from which nothing is clear; ``clear``, ``larger`` and
        ``smaller`` (the row is clearly larger, or smaller, than the column).

    Source: Johnson (1978), Modified t tests and confidence intervals for asymmetrical populations.

    Example:
        >>> import numpy as np, xarray
        >>> noise = np.random.default_rng(0).normal(size=40)
        >>> x = xarray.DataArray([noise, noise + 1, noise + 1], dims=("setting", "instance"))
        >>> dominance(x, over="instance")["larger"].values.astype(int).tolist()
        [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """
    import xarray

    check_level("level", level)
    sample = units(x, over)
    if sorted(map(str, sample.dims)) != sorted(("stratum", "unit", among)):
        given = f"an array with axes {tuple(x.dims)} given"
        others = [x for x in x.dims if x not in (among, over, "instance", "replicate")]
        choose = f"; choose one: x.sel({'=…, '.join(map(str, others))}=…)" if others else ""
        raise InputError(f"x: {given}; it must have {among!r} and {over!r} only{choose}")
    values = np.asarray(sample.transpose(among, "stratum", "unit").values, float)
    count = values.shape[0]
    tail = (1 - level) / max(count * (count - 1), 1)
    difference, low, high = np.zeros((3, count, count))
    for row in range(count - 1):
        apart = np.moveaxis(values[row] - values[row + 1 :], 0, -1)  # [stratum, unit, column]
        mean, error, freedom, skew = moments(apart)
        t, after = critical_value(tail, freedom), slice(row + 1, None)
        difference[row, after] = mean
        low[row, after] = mean - error * reach(t, -skew)
        high[row, after] = mean + error * reach(t, skew)
    difference, low, high = difference - difference.T, low - high.T, high - low.T
    parts: dict[str, np.ndarray] = {"difference": difference, "low": low, "high": high}
    parts |= {"clear": (low > 0) | (high < 0), "larger": low > 0, "smaller": high < 0}
    attrs = {"level": level, "over": over, **x.attrs}
    squares = {name: square(x, among, part) for name, part in parts.items()}
    return xarray.Dataset(squares, attrs=attrs)


def square(x: xarray.DataArray, among: str, values: np.ndarray) -> xarray.DataArray:
    """Values ``[row, column]``: each entry of an axis against every other; labels of ``x``."""
    import xarray

    names = (among, "against") if among in x.coords else ()
    labels = {name: list(x[among].values) for name in names}
    return xarray.DataArray(values, dims=(among, "against"), coords=labels)


# --- How many more runs until a difference is clear

_MOST = 1 << 50  # runs: more are as good as never


def runs_needed(
    x: xarray.DataArray, y: xarray.DataArray, *, over: str, level: float = 0.95, power: float = 0.8
) -> xarray.Dataset:
    """How many runs or instances a paired comparison needs to show the present difference.

    The least n for which the interval of :func:`dominance` leaves out 0 with probability ``power``,
    the mean, the spread and the skewness of the difference being those seen. With m units now, mean
    d, standard error e and r, the interval's reach towards 0,

    .. math:: \\big(r(n) + t_{\\mathrm{power}}(\\nu)\\big)\\, e \\sqrt{m/n} \\le |d|,

    where ν grows with n as it does from one unit to m, and the skewness falls. A difference that is
    clear already needs no more. Planned on an uncertain d, n is uncertain too: ``least`` and
    ``most`` are the n for the ends of the interval of d.

    Args:
        x: an array with the axis ``over``.
        y: the same runs under another policy.
        over: what more would be had of, ``"replicate"`` (runs of each given instance) or
            ``"instance"``.
        level: of the interval that shall leave out 0. With k comparisons, take 1 − 0.05/k.
        power: the wanted probability, in (0, 1).

    Returns:
        A dataset of ``now``, ``needed``, ``more`` (0 where the difference is clear now), ``least``
        and ``most``, as floats; inf where the difference is exactly 0, or for ``most`` where its
        interval holds 0.

    Raises:
        InputError: missing axes, labels that differ, fewer than two units, an argument out of its
            range.

    Example:
        >>> import numpy as np, xarray
        >>> d = xarray.DataArray(np.random.default_rng(1).normal(0.5, 2.0, size=40), dims="replicate")
        >>> plan = runs_needed(d, 0 * d, over="replicate")
        >>> bool(plan["more"] > 0), bool(plan["least"] < plan["needed"] < plan["most"])
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
    mean, error, freedom, skew = moments(values)
    size, skew = np.abs(mean), np.where(mean < 0, skew, -skew)  # towards 0
    t = critical_value((1 - level) / 2, freedom)
    beyond, half = (error * reach(t, side) for side in (-skew, skew))

    def has_power(difference: np.ndarray, n: np.ndarray) -> np.ndarray:
        then, shrunk = freedom / (now - 1) * (n - 1), np.sqrt(now / n)
        apart = reach(critical_value((1 - level) / 2, then), skew * shrunk)
        apart = (apart - t_quantile(1 - power, then)) * error
        return (difference > 0) & (apart * shrunk <= difference)

    ends = size, size + beyond, np.maximum(size - half, 0)
    needed, least, most = (_least_number(partial(has_power, x), x.shape) for x in ends)
    clear = size > half
    parts = {
        "now": np.full(mean.shape, float(now)),
        "needed": needed,
        "more": np.where(clear, 0.0, np.maximum(needed - now, 1.0)),
        "least": least,
        "most": np.where(clear, most, np.inf),
    }
    like = sample.isel(stratum=0, unit=0, drop=True)
    variables = {name: like.copy(data=value) for name, value in parts.items()}
    return xarray.Dataset(variables, attrs={"level": level, "power": power})


def _least_number(
    suffices: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
) -> np.ndarray:
    """Least n ≥ 2 that suffices, elementwise, by bisection; inf where none does."""
    low, high = np.ones(shape), np.full(shape, float(_MOST))
    possible = suffices(high)
    while (high - low > 1).any():
        # Halves the logarithm first
        middle = np.maximum(np.floor(np.sqrt(low * high)), low + 1)
        good, below = suffices(middle), np.minimum(middle, high - 1)
        low, high = np.where(good, low, below), np.where(good, np.minimum(middle, high), high)
    return np.where(possible, high, np.inf)
