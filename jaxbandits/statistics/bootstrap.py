"""Bootstrap intervals and bands that hold for a whole curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.core.errors import InputError
from jaxbandits.core.numbers import whole_number
from jaxbandits.statistics.sample import check_level, moments, paired, units

if TYPE_CHECKING:
    import xarray

_AT_ONCE = 1 << 22  # float64 values of resampled means held at a time


def bootstrap_interval(
    x: xarray.DataArray, *, over: str = "instance", level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> xarray.Dataset:
    """Mean and its bias-corrected and accelerated (BCa) bootstrap interval, for every entry of the other axes.

    Units are resampled with replacement: instances, or the runs of each given instance apart (see
    :mod:`jaxbandits.statistics`). For skewed samples, such as the regrets of random instances, it follows the skew,
    which a t-interval cannot.

    Args:
        x: an array with the axis ``over``, such as ``result.regret``.
        over: ``"instance"`` or ``"replicate"``.
        level: coverage of each single interval, in (0, 1).
        resamples: at least 100.
        seed: of the resampling; the same seed gives the same interval.

    Returns:
        A dataset of ``mean``, ``low`` and ``high`` in the units of ``x``; ``low`` and ``high`` are NaN with one unit
        in a stratum. Units that are all equal give an interval of no width.

    Raises:
        InputError: a missing axis, or an argument out of its range.

    Source: Efron (1987), Better bootstrap confidence intervals; computed by :func:`scipy.stats.bootstrap`.

    Example:
        >>> import numpy as np, xarray
        >>> x = xarray.DataArray(np.random.default_rng(0).exponential(size=(50, 1)), dims=("instance", "replicate"))
        >>> found = bootstrap_interval(x)
        >>> bool(found["low"] < found["mean"] < found["high"])
        True
    """
    _check(level, resamples)
    sample = units(x, over)
    values = np.asarray(sample.values, float)
    centre = moments(values)
    flat = values.reshape(*values.shape[:2], -1)
    low, high = np.repeat(centre.mean.reshape(1, -1), 2, axis=0)
    if values.shape[1] < 2:
        low, high = low * np.nan, high * np.nan
    elif (moving := centre.error.ravel() > 0).any():
        low[moving], high[moving] = _bca(flat[..., moving], level, resamples, seed)
    return _labelled(sample, *(part.reshape(centre.mean.shape) for part in (centre.mean, low, high)), level=level)


def _bca(values: np.ndarray, level: float, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals, ``[place]`` each, from ``[stratum, unit, place]``."""
    from scipy import stats

    def mean(*parts: np.ndarray, axis: int) -> np.ndarray:
        return np.mean([part.mean(axis=axis) for part in parts], axis=0)

    found = stats.bootstrap(
        tuple(values),
        mean,
        n_resamples=resamples,
        batch=max(1, _AT_ONCE // max(1, values[0].size)),
        axis=0,
        confidence_level=level,
        method="BCa",
        rng=np.random.default_rng(seed),
        vectorized=True,
    ).confidence_interval
    return found.low, found.high


def bootstrap_difference(
    x: xarray.DataArray,
    y: xarray.DataArray,
    *,
    over: str = "instance",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> xarray.Dataset:
    """:func:`bootstrap_interval` of x − y, run by run, with ``clear``: whether the interval leaves out 0.

    Example:
        >>> import numpy as np, xarray
        >>> x = xarray.DataArray(np.random.default_rng(0).exponential(size=(50, 1)), dims=("instance", "replicate"))
        >>> bool(bootstrap_difference(x + 0.1 * x, x)["clear"])
        True
    """
    made = bootstrap_interval(paired(x, y), over=over, level=level, resamples=resamples, seed=seed)
    return made.assign(clear=(made["low"] > 0) | (made["high"] < 0))


def simultaneous_band(
    x: xarray.DataArray,
    *,
    along: str | Sequence[str] = "mark",
    over: str = "instance",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> xarray.Dataset:
    """Mean and a band that holds the true mean at **all** places along an axis at once, with probability ``level``.

    The max-t bootstrap: units are resampled with replacement B times; q is the ``level`` quantile over b of

    .. math:: \\max_m \\frac{|\\bar x^{*b}_m - \\bar x_m|}{\\mathrm{se}^{*b}_m},

    and the band is x̄ₘ ± q seₘ. (se* counts as at least ½ seₘ: where only a few units differ from the others, a resample
    without them has se* = 0.) The resample keeps a unit's whole curve, so q takes account of how strongly the places
    along it depend on each other: it is below Bonferroni's, which ignores that.

    Args:
        x: an array with the axes ``over`` and ``along``.
        along: the axis, or axes, over which the band holds together. Entries of other axes have a band each.
        over, level, resamples, seed: as in :func:`bootstrap_interval`.

    Returns:
        A dataset of ``mean``, ``low``, ``high``, and ``critical`` (q, without the axes ``along``). A place where all
        units are equal has a band of no width; with one unit in a stratum, the bounds are NaN.

    Raises:
        InputError: a missing axis, or an argument out of its range.

    Source: Romano, Wolf (2005), Exact and approximate stepdown methods for multiple hypothesis testing (single step).

    Example:
        >>> import numpy as np, xarray
        >>> x = xarray.DataArray(np.random.default_rng(0).normal(size=(40, 5)), dims=("instance", "mark"))
        >>> bool(1.96 < simultaneous_band(x)["critical"] < 3.6)
        True
    """
    _check(level, resamples)
    axes = (along,) if isinstance(along, str) else tuple(along)
    sample = units(x, over)
    for axis in axes:
        if axis not in sample.dims:
            raise InputError(f"x: an array with axes {tuple(x.dims)} given; it must have an axis {axis!r}")
    alone = [axis for axis in sample.dims if axis not in ("stratum", "unit", *axes)]
    sample = sample.transpose("stratum", "unit", *alone, *axes)
    values = np.asarray(sample.values, float)
    centre = moments(values)
    shape = [sample.sizes[axis] for axis in alone]
    largest = _largest_t(values.reshape(*values.shape[:2], -1), resamples, seed)
    largest = largest.reshape(resamples, *shape, -1).max(axis=-1)
    critical = np.quantile(largest, level, axis=0, method="higher")
    half = critical.reshape(*shape, *(1 for _ in axes)) * centre.error
    if values.shape[1] < 2:
        half = half * np.nan
    made = _labelled(sample, centre.mean, centre.mean - half, centre.mean + half, level=level)
    return made.assign(critical=(alone, critical))


def _largest_t(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """|t*| of every resample, ``[resample, place]``, from ``[stratum, unit, place]``; 0 where all units are equal."""
    count, places = values.shape[1:]
    # Constant places must give exactly 0, and centred values keep the variances below from cancelling.
    centred = values - values.mean(axis=1, keepdims=True)
    flat = (values == values[:, :1]).all(axis=1)
    centred[np.broadcast_to(flat[:, None, :], values.shape)] = 0.0
    least = (values.var(axis=1, ddof=1) / count).sum(axis=0) / 4 if count > 1 else np.zeros(places)
    rng = np.random.default_rng(seed)
    found = np.zeros((resamples, places))
    step = max(1, _AT_ONCE // max(count, places))
    for first in range(0, resamples, step):
        some = min(step, resamples - first)
        shift, variance = np.zeros((some, places)), np.zeros((some, places))
        for part in centred:
            weights = rng.multinomial(count, np.full(count, 1 / count), size=some) / count
            mean = weights @ part
            shift += mean
            variance += np.maximum(weights @ part**2 - mean**2, 0) / max(count - 1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(shift) / np.sqrt(np.maximum(variance, least))
        found[first : first + some] = np.where(shift == 0, 0.0, t)
    return found


def _check(level: float, resamples: Any) -> None:
    check_level("level", level)
    whole_number("resamples", resamples, 100)


def _labelled(
    sample: xarray.DataArray, mean: np.ndarray, low: np.ndarray, high: np.ndarray, **attrs: Any
) -> xarray.Dataset:
    import xarray

    like = sample.isel(stratum=0, unit=0, drop=True)
    parts = {"mean": mean, "low": low, "high": high}
    made = xarray.Dataset({name: like.copy(data=value) for name, value in parts.items()})
    return made.assign_attrs(**attrs, **sample.attrs)
