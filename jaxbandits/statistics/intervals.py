"""Means over replicates with their t-intervals, and paired differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.core.errors import InputError
from jaxbandits.statistics.sample import check_level, moments, paired

if TYPE_CHECKING:
    import xarray


def mean_interval(x: xarray.DataArray, *, average_instances: bool = False, level: float = 0.95) -> xarray.Dataset:
    """Mean over the axis ``replicate`` and its t-interval, for every entry of the other axes.

    With R replicates, mean x̄ᵢ and sample variance s²ᵢ of instance i:

    * one instance: x̄ᵢ ± t(R − 1) · √(s²ᵢ / R);
    * the average of I given instances: (Σᵢ x̄ᵢ) / I ± t(ν) · √(Σᵢ s²ᵢ / R) / I, with Welch and Satterthwaite's degrees
      of freedom ν = (R − 1) (Σ s²ᵢ)² / Σ (s²ᵢ)². The spread between instances does not enter: they are not a sample.

    Args:
        x: an array with an axis ``replicate`` (and ``instance``), such as ``result.regret``; any units.
        average_instances: average over the axis ``instance`` too.
        level: coverage of each single interval, in (0, 1).

    Returns:
        A dataset of ``mean``, ``low`` and ``high`` in the units of ``x``. With one replicate there is no interval:
        ``low`` and ``high`` are NaN.

    Raises:
        InputError: an axis is missing, or ``level`` is not in (0, 1).

    Example:
        >>> import numpy as np, xarray
        >>> x = xarray.DataArray([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]], dims=("instance", "replicate"))
        >>> mean_interval(x)["mean"].values.tolist()
        [2.0, 5.0]
        >>> whole = mean_interval(x, average_instances=True)
        >>> [round(float(whole[name]), 3) for name in ("mean", "low", "high")]
        [3.5, 2.258, 4.742]
    """
    import xarray
    from scipy import stats

    needed = ("replicate", "instance") if average_instances else ("replicate",)
    for axis in needed:
        if axis not in x.dims:
            raise InputError(f"x: an array with axes {tuple(x.dims)} given; it must have an axis {axis!r}")
    check_level("level", level)
    rest = [axis for axis in x.dims if axis not in needed]
    sample = x.transpose("instance", "replicate", *rest) if average_instances else x.transpose("replicate", *rest)
    values = np.asarray(sample.values, float)
    found = moments(values if average_instances else values[None])
    half = found.error * stats.t.ppf(0.5 + level / 2, found.freedom)
    like = sample.isel({axis: 0 for axis in needed}, drop=True)
    mean, low, high = (like.copy(data=part) for part in (found.mean, found.mean - half, found.mean + half))
    made = xarray.Dataset({"mean": mean, "low": low, "high": high})
    return made.assign_attrs(level=level, **x.attrs)


def paired_difference(
    x: xarray.DataArray, y: xarray.DataArray, *, average_instances: bool = False, level: float = 0.95
) -> xarray.Dataset:
    """:func:`mean_interval` of x − y, run by run: run r of ``x`` and run r of ``y`` met the same world.

    Args:
        x: an array with an axis ``replicate`` (and ``instance``).
        y: the same runs under another policy; an axis that only one of them has is repeated in the other.
        average_instances: as in :func:`mean_interval`.
        level: as in :func:`mean_interval`.

    Returns:
        A dataset of ``mean``, ``low``, ``high``, and ``clear``: whether the interval leaves out 0.

    Raises:
        InputError: the replicates or instances of the two are not the same.

    Example:
        >>> import xarray
        >>> x = xarray.DataArray([5.0, 7.0, 9.0], dims="replicate")
        >>> difference = paired_difference(x, x - 1)
        >>> float(difference["mean"]), bool(difference["clear"])
        (1.0, True)
    """
    made = mean_interval(paired(x, y), average_instances=average_instances, level=level)
    return made.assign(clear=(made["low"] > 0) | (made["high"] < 0))
