"""Means with their intervals, and paired differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.statistics.doubts import doubts_of, told
from jaxbandits.statistics.means import mean_ends
from jaxbandits.statistics.sample import check_axes, check_level, paired, units

if TYPE_CHECKING:
    import xarray


def mean_interval(
    x: xarray.DataArray, *, over: str = "replicate", average_instances: bool = False, level: float = 0.95
) -> xarray.Dataset:
    """Mean over what was sampled and its interval, for every entry of the other axes.

    With R replicates, mean x̄ᵢ and sample variance s²ᵢ of instance i:

    * one instance: x̄ᵢ ± t(R − 1) · √(s²ᵢ / R);
    * the average of I given instances: (Σᵢ x̄ᵢ) / I ± t(ν) · √(Σᵢ s²ᵢ / R) / I, with Welch and Satterthwaite's degrees
      of freedom ν = (R − 1) (Σ s²ᵢ)² / Σ (s²ᵢ)². The spread between instances does not enter: they are not a sample.

    Both ± t are then corrected for the skewness of the sample, as in :func:`mean`.

    Args:
        x: an array with the axis ``over``, such as ``result.regret``; any units.
        over: what was sampled. ``"instance"``: the instances, each with the mean of its runs, are one sample.
        average_instances: over ``"replicate"``: average over the axis ``instance`` too.
        level: coverage of each single interval, in (0, 1).

    Returns:
        A dataset of ``mean``, ``low`` and ``high`` in the units of ``x``. With one unit there is no interval: ``low``
        and ``high`` are NaN. Its attribute ``warnings`` says where an interval may not hold its level.

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

    check_axes(x, over, *(("instance",) if average_instances else ()))
    check_level("level", level)
    apart = over == "replicate" and "instance" in x.dims and not average_instances
    sample = units(x.rename(instance="each instance") if apart else x, over)
    like = sample.isel(stratum=0, unit=0, drop=True)
    values = np.asarray(sample.values, float)
    parts = zip(("mean", "low", "high"), mean_ends(values, level), strict=True)
    made = xarray.Dataset({name: like.copy(data=part) for name, part in parts})
    made = made.rename({"each instance": "instance"}) if apart else made
    doubtful = told(doubts_of(values.reshape(*values.shape[:2], -1), over, "mean", level))
    return made.assign_attrs({**x.attrs, "level": level, "warnings": doubtful})


def paired_difference(
    x: xarray.DataArray,
    y: xarray.DataArray,
    *,
    over: str = "replicate",
    average_instances: bool = False,
    level: float = 0.95,
) -> xarray.Dataset:
    """:func:`mean_interval` of x − y, run by run: run r of ``x`` and run r of ``y`` met the same world.

    Args:
        x: an array with the axis ``over``.
        y: the same runs under another policy; an axis that only one of them has is repeated in the other.
        over, average_instances, level: as in :func:`mean_interval`.

    Returns:
        A dataset of ``mean``, ``low``, ``high``, and ``clear``: whether the interval leaves out 0.

    Raises:
        InputError: labels on an axis that both have are not the same.

    Example:
        >>> import xarray
        >>> x = xarray.DataArray([5.0, 7.0, 9.0], dims="replicate")
        >>> difference = paired_difference(x, x - 1)
        >>> float(difference["mean"]), bool(difference["clear"])
        (1.0, True)
    """
    made = mean_interval(paired(x, y), over=over, average_instances=average_instances, level=level)
    return made.assign(clear=(made["low"] > 0) | (made["high"] < 0))
