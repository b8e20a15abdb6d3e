"""Means over replicates with their intervals, and paired differences.

Replicates are independent runs, so they are what a standard error counts; instances are given, not sampled, so
averaging over them says nothing about other instances. All policies meet the same world (common random numbers):
compare them by :func:`paired_difference`, whose interval is that of the differences run by run, mostly narrower.

    from jaxbandits.statistics import mean_interval, paired_difference
    mean_interval(result.regret)                                  # per instance
    mean_interval(result.regret, average_instances=True)          # every instance weighs the same
    paired_difference(result.reward.sel(setting=a), result.reward.sel(setting=b))
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.errors import InputError, bad

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
    if not 0 < level < 1:
        raise bad("level", level, "a number in (0, 1)")
    runs = x.sizes["replicate"]
    mean = x.mean("replicate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one replicate: no variance, hence NaN
        variance = x.var("replicate", ddof=1)
    freedom: xarray.DataArray = xarray.full_like(variance, runs - 1.0)
    error = np.sqrt(variance / runs)
    if average_instances:
        total, squares = variance.sum("instance", skipna=False), (variance**2).sum("instance", skipna=False)
        freedom = xarray.where(squares > 0, (runs - 1.0) * total**2 / squares.where(squares > 0, 1.0), runs - 1.0)
        error = np.sqrt(total / runs) / x.sizes["instance"]
        mean = mean.mean("instance")
    half = error * stats.t.ppf(0.5 + level / 2, freedom) if runs > 1 else error * np.nan
    made = xarray.Dataset({"mean": mean, "low": mean - half, "high": mean + half})
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
    for axis in ("replicate", "instance"):
        pair = [list(part[axis].values) for part in (x, y) if axis in part.dims]
        if len(pair) == 2 and pair[0] != pair[1]:
            raise InputError(f"y: other labels on the axis {axis!r} given; it must have those of x, to be paired")
    made = mean_interval(x - y, average_instances=average_instances, level=level)
    return made.assign(clear=(made["low"] > 0) | (made["high"] < 0))
