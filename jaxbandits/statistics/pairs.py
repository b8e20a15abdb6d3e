"""Who beats whom, with an error rate that holds for the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.checks import InputError
from jaxbandits.statistics.estimates import check_level, moments, paired, t_quantile, units

if TYPE_CHECKING:
    import xarray


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values: rejecting where they are ≤ α makes any false rejection at most α
    likely.

    The i-th smallest of m is multiplied by m − i + 1, then raised to the largest before it, at most
    1. Valid under any dependence of the tests.

    Args:
        p: p-values, any shape; NaN (no test) stays NaN and does not count.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure.

    Example:
        >>> import numpy as np
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    finite = np.isfinite(p)
    ordered = np.argsort(p[finite], kind="stable")
    steps = p[finite][ordered] * np.arange(finite.sum(), 0, -1)
    values = np.empty(ordered.size)
    values[ordered] = np.minimum(np.maximum.accumulate(steps), 1.0)
    adjusted[finite] = values
    return adjusted


def dominance(
    x: xarray.DataArray, *, among: str = "setting", over: str, level: float = 0.95
) -> xarray.Dataset:
    """Every setting against every other by paired t-tests of the means, with Holm's control over
    all pairs.

    With one stratum it is :func:`scipy.stats.ttest_rel`, with several given instances Welch and
    Satterthwaite's. Since all pairs are counted, "the winner against the rest" may be read off,
    though the winner was found by looking.

    Args:
        x: an array with the axes ``among`` and ``over`` (and perhaps ``instance``, ``replicate``),
            no others, such as ``result.regret.isel(mark=-1)``.
        among: the axis whose entries are compared.
        over: what was sampled, ``"instance"`` or ``"replicate"`` (see
            :mod:`jaxbandits.statistics`).
        level: the chance that no pair is wrongly called clear.

    Returns:
        A dataset over ``(among, against)``: ``difference`` (mean of row − column), ``p``
        (two-sided), ``adjusted`` (Holm's, over all pairs), ``clear`` (adjusted ≤ 1 − level),
        ``larger`` and ``smaller`` (the row is clearly larger, or smaller, than the column). The
        diagonal has p = 1.

    Raises:
        InputError: missing or further axes, fewer than two units, an argument out of its range.

    Example:
        >>> import numpy as np, xarray
        >>> noise = np.random.default_rng(0).normal(size=40)
        >>> x = xarray.DataArray([noise, noise + 1, noise + 1], dims=("setting", "instance"))
        >>> dominance(x, over="instance")["larger"].values.astype(int).tolist()
        [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    """
    import xarray
    from scipy.special import stdtr

    check_level("level", level)
    sample = units(x, over)
    if sorted(map(str, sample.dims)) != sorted(("stratum", "unit", among)):
        raise InputError(
            f"x: an array with axes {tuple(x.dims)} given; it must have {among!r} and {over!r} only"
        )
    values = np.asarray(sample.transpose(among, "stratum", "unit").values, float)
    if values.shape[2] < 2:
        raise InputError(f"x: 1 {over} given; it must have 2 or more, or there is nothing to test")
    count = values.shape[0]
    difference, p = np.zeros((count, count)), np.ones((count, count))
    for row in range(count - 1):
        apart = np.moveaxis(values[row] - values[row + 1 :], 0, -1)  # [stratum, unit, column]
        mean, error, freedom, _ = moments(apart)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(mean == 0, 0.0, np.abs(mean) / error)
        difference[row, row + 1 :], p[row, row + 1 :] = mean, 2 * stdtr(freedom, -t)
    upper = np.triu_indices(count, 1)
    adjusted = np.ones_like(p)
    adjusted[upper] = holm(p[upper])
    for both in (p, adjusted):
        both.T[upper] = both[upper]
    difference = difference - difference.T
    clear = adjusted <= 1 - level
    parts = {"difference": difference, "p": p, "adjusted": adjusted, "clear": clear}
    parts |= {"larger": clear & (difference > 0), "smaller": clear & (difference < 0)}
    attrs = {"level": level, **x.attrs}
    return xarray.Dataset(
        {name: square(x, among, part) for name, part in parts.items()}, attrs=attrs
    )


def square(x: xarray.DataArray, among: str, values: np.ndarray) -> xarray.DataArray:
    """Values ``[row, column]`` of every entry of an axis against every other, with the labels of
    ``x``.
    """
    import xarray

    labels = (
        {name: list(x[among].values) for name in (among, "against")} if among in x.coords else {}
    )
    return xarray.DataArray(values, dims=(among, "against"), coords=labels)


# --- How many more runs until a difference is clear

_MOST = 1 << 50  # runs: more are as good as never


def runs_needed(
    x: xarray.DataArray, y: xarray.DataArray, *, over: str, level: float = 0.95, power: float = 0.8
) -> xarray.Dataset:
    """How many runs (or random instances) a paired comparison needs, if the difference is what it
    now seems to be.

    The least n for which the two-sided paired t-test at 1 − ``level`` finds the difference with
    probability ``power``, its mean and spread being those seen. With m units now, mean d, standard
    error e and α = 1 − ``level``,

    .. math:: \\big(t_{1-\\alpha/2}(\\nu) + t_{\\mathrm{power}}(\\nu)\\big)\\, e \\sqrt{m/n} \\le |d|,

    where ν grows with n as it does from one unit to m. A difference that is clear already needs no
    more. Planned on an uncertain d, n is uncertain too: ``least`` and ``most`` are the n for the
    ends of the ``level`` interval of d.

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
    mean, error, freedom, _ = moments(values)
    half, size = error * t_quantile(0.5 + level / 2, freedom), np.abs(mean)

    def sample_size(difference: np.ndarray) -> np.ndarray:
        """Least n ≥ 2 with the power, by bisection."""

        def has_power(n: np.ndarray) -> np.ndarray:
            then = freedom / (now - 1) * (n - 1)
            apart = -t_quantile((1 - level) / 2, then) - t_quantile(1 - power, then)
            return (difference > 0) & (apart * (error * np.sqrt(now)) <= difference * np.sqrt(n))

        low, high = np.ones(mean.shape), np.full(mean.shape, float(_MOST))
        possible = has_power(high)
        while (high - low > 1).any():
            # Halves the logarithm first
            middle = np.maximum(np.floor(np.sqrt(low * high)), low + 1)
            good, below = has_power(middle), np.minimum(middle, high - 1)
            low, high = np.where(good, low, below), np.where(good, np.minimum(middle, high), high)
        return np.where(possible, high, np.inf)

    needed, clear = sample_size(size), size > half
    parts = {
        "now": np.full(mean.shape, float(now)),
        "needed": needed,
        "more": np.where(clear, 0.0, np.maximum(needed - now, 1.0)),
        "least": sample_size(size + half),
        "most": np.where(clear, sample_size(np.maximum(size - half, 0)), np.inf),
    }
    like = sample.isel(stratum=0, unit=0, drop=True)
    attrs = {"level": level, "power": power}
    return xarray.Dataset(
        {name: like.copy(data=value) for name, value in parts.items()}, attrs=attrs
    )
