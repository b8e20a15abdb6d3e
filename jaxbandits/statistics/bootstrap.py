"""Bootstrap intervals and bands that cover a whole curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.checks import whole_number
from jaxbandits.statistics import estimates
from jaxbandits.statistics.estimates import Estimate, IntervalEnds, Moments, doubts_of, moments

if TYPE_CHECKING:
    import xarray


_AT_ONCE = 1 << 22  # float64 values of resampled means held at a time
_FEW, _FEW_CURVES = 30, 10  # units in a stratum: with fewer, means and curves are not resampled
_LEAST = 1 / 3  # of a sample's standard error: what a resample's counts as, at least


def bootstrap_interval(
    x: xarray.DataArray, *, over: str, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Mean and its studentised bootstrap interval, for every entry of the other axes.

    Units are resampled with replacement B times: instances, or the runs of each given instance
    apart (see :mod:`jaxbandits.statistics`). With t* = (x̄* − x̄) / se* and its quantiles q over
    the resamples, the interval is from x̄ − q(½ + level/2) se to x̄ − q(½ − level/2) se: it follows
    the skew of the sample and counts that se is uncertain. se* counts as at least a third of se.
    With fewer than 30 units in a stratum resamples have too little spread (half of those of 2 have
    none): there it is the interval of :func:`mean`, Welch and Satterthwaite's.

    Args:
        x, over, level: as in :func:`mean`.
        resamples: at least 100.
        seed: of the resampling; the same seed gives the same interval.

    Returns:
        An :class:`Estimate`; ``low`` and ``high`` are NaN with one unit in a stratum. Units that
        are all equal give an interval of no width.

    Source: Efron (1982), The jackknife, the bootstrap and other resampling plans; Hall (1988),
    Theoretical comparison of bootstrap confidence intervals.

    Example:
        >>> import numpy as np, xarray
        >>> x = xarray.DataArray(np.random.default_rng(0).exponential(size=(50, 1)), dims=("instance", "replicate"))
        >>> estimate = bootstrap_interval(x, over="instance")
        >>> estimate.low < estimate.value < estimate.high
        True
    """
    whole_number("resamples", resamples, 100)

    def ends(values: np.ndarray) -> IntervalEnds:
        plain = estimates.of_means(over, level)(values)
        if values.shape[1] < _FEW:
            return plain
        t, error = studentised(values, resamples, seed), moments(values).error
        t_low, t_high = np.quantile(t, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return plain._replace(low=plain.value - t_high * error, high=plain.value - t_low * error)

    return estimates.interval(x, over, level, ends)


def simultaneous_band(
    x: xarray.DataArray,
    *,
    along: str | Sequence[str] = "mark",
    over: str,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Mean and a band that covers the true mean at **all** places of an axis, at this ``level``.

    The studentised bootstrap of :func:`bootstrap_interval` for curves: a resample keeps a unit's
    whole curve, and the band is from x̄ₘ − q⁺ seₘ to x̄ₘ − q⁻ seₘ, where q⁺ and q⁻ are quantiles
    over the resamples of

    .. math:: \\max_m \\frac{\\bar x^{*b}_m - \\bar x_m}{\\mathrm{se}^{*b}_m} \\quad\\text{and}\\quad
              \\min_m \\frac{\\bar x^{*b}_m - \\bar x_m}{\\mathrm{se}^{*b}_m}

    at ½ + level/2 and ½ − level/2: below Bonferroni's, which ignores how the places depend on each
    other. With fewer than 10 units in a stratum the largest t in size is drawn from normal numbers
    with the correlations of the sample, and made one of Student's t and corrected for skewness at
    each place, as in :func:`mean`.

    Args:
        x: an array with the axes ``over`` and ``along``.
        along: the axis, or axes, over which the band holds together. Entries of other axes have a
            band each.
        over, level, resamples, seed: as in :func:`bootstrap_interval`.

    Returns:
        An :class:`Estimate` of arrays. A place where all units are equal has a band of no width;
        with one unit in a stratum, the bounds are NaN.

    Source: Romano, Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis
    testing (single step).

    Example:
        >>> import numpy as np, xarray
        >>> x = xarray.DataArray(np.random.default_rng(0).normal(size=(40, 5)), dims=("instance", "mark"))
        >>> band, each = (make(x, over="instance") for make in (simultaneous_band, bootstrap_interval))
        >>> bool((band.high - band.low > each.high - each.low).all())
        True
    """
    whole_number("resamples", resamples, 100)
    axes = (along,) if isinstance(along, str) else tuple(along)
    estimates.check_axes(x, *axes)
    length = int(np.prod([x.sizes[axis] for axis in axes]))

    def ends(values: np.ndarray) -> IntervalEnds:
        parts, groups = moments(values), values.shape[2] // length
        if values.shape[1] >= _FEW_CURVES:
            t = studentised(values, resamples, seed).reshape(resamples, groups, -1)
            t_high = np.quantile(t.max(axis=-1), 0.5 + level / 2, axis=0, method="higher")
            t_low = np.quantile(t.min(axis=-1), 0.5 - level / 2, axis=0, method="lower")
            critical = [np.repeat(q, t.shape[-1]) for q in (t_high, t_low)]
        else:
            critical = _normal_ends(values, parts, groups, level, resamples, seed)
        low, high = (parts.mean - q * parts.error for q in critical)
        return IntervalEnds(parts.mean, low, high, doubts_of(values, over, "mean", level))

    # Curves last: the places of one curve then lie side by side.
    return estimates.interval(x.transpose(..., *axes), over, level, ends)


def _normal_ends(
    values: np.ndarray, parts: Moments, groups: int, level: float, resamples: int, seed: int
) -> list[np.ndarray]:
    """Upper and lower critical values, ``[place]``, for curves of few units in a stratum."""
    from scipy.special import ndtr

    strata, count, places = values.shape
    if count < 2:
        return [np.full(places, np.nan)] * 2
    apart = (values - values.mean(axis=1, keepdims=True)).reshape(-1, places)
    scale = parts.error * strata * np.sqrt(count * (count - 1))
    unit = np.divide(apart, scale, out=np.zeros_like(apart), where=scale > 0)
    z = np.abs(np.random.default_rng(seed).normal(size=(resamples, unit.shape[0])) @ unit)
    greatest = z.reshape(resamples, groups, -1).max(axis=-1)
    largest = np.quantile(greatest, level, axis=0, method="higher")
    t = -estimates.t_quantile(ndtr(-np.repeat(largest, places // groups)), parts.freedom)
    return [estimates.corrected(q, parts.skew) for q in (t, -t)]


def studentised(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """t*, ``[resample, place]``, from ``[stratum, unit, place]``; 0 where all units are equal."""
    count, places = values.shape[1:]
    # Constant places must give exactly 0, and centred values keep the variances below from
    # cancelling.
    centred = values - values.mean(axis=1, keepdims=True)
    flat = (values == values[:, :1]).all(axis=1)
    centred[np.broadcast_to(flat[:, None, :], values.shape)] = 0.0
    floor = (values.var(axis=1, ddof=1) / count).sum(axis=0) * _LEAST**2
    rng = np.random.default_rng(seed)
    t_values = np.zeros((resamples, places))
    step = max(1, _AT_ONCE // max(count, places))
    for first in range(0, resamples, step):
        size = min(step, resamples - first)
        shift, variance = np.zeros((size, places)), np.zeros((size, places))
        for part in centred:
            weights = rng.multinomial(count, np.full(count, 1 / count), size=size) / count
            mean = weights @ part
            shift += mean
            variance += np.maximum(weights @ part**2 - mean**2, 0) / (count - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = shift / np.sqrt(np.maximum(variance, floor))
        t_values[first : first + size] = np.where(shift == 0, 0.0, t)
    return t_values
