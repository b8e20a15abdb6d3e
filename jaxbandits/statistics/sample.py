"""What was sampled: independent units, in strata if several instances are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import numbers

if TYPE_CHECKING:
    import xarray

_AT_ONCE = 1 << 22  # values


class Moments(NamedTuple):
    """Mean of the strata's means, its standard error, its degrees of freedom (NaN with one unit)."""

    mean: np.ndarray
    error: np.ndarray
    freedom: np.ndarray


def units(x: xarray.DataArray, over: str) -> xarray.DataArray:
    """``x`` with its first axes renamed ``(stratum, unit)``.

    Over ``"replicate"`` each instance is a stratum and its runs are the units; over ``"instance"`` there is one
    stratum, whose units are the instances, averaged over their runs. Over any other axis there is one stratum, its
    entries are the units, and all other axes stay.

    Raises:
        InputError: ``x`` is no labelled array, or has no such axis.
    """
    check_axes(x, over)
    if over == "replicate":
        made = x.rename(replicate="unit")
        made = made.rename(instance="stratum") if "instance" in x.dims else made.expand_dims("stratum")
    else:
        averaged = x.mean("replicate", skipna=False) if over == "instance" and "replicate" in x.dims else x
        made = averaged.rename({over: "unit"}).expand_dims("stratum")
    return made.drop_vars(("stratum", "unit"), errors="ignore").transpose("stratum", "unit", ...)


def labelled(x: Any, over: str) -> xarray.DataArray:
    """``x`` as it is, or a plain array with one axis, along ``over``.

    Raises:
        InputError: anything else.
    """
    import xarray

    if isinstance(x, xarray.DataArray):
        return x
    plain = numbers("x", x, "a labelled array (xarray.DataArray), or numbers along one axis")
    if plain.ndim != 1:
        raise InputError(f"x: a plain array of shape {plain.shape} given; it must be labelled (xarray.DataArray)")
    return xarray.DataArray(plain, dims=(over,))


def check_axes(x: xarray.DataArray, *axes: str) -> None:
    """Whether ``x`` is a labelled array with these axes.

    Raises:
        InputError: it is none, or lacks one.
    """
    if not hasattr(x, "dims"):
        raise bad("x", x, "a labelled array (xarray.DataArray), such as result.regret")
    for axis in axes:
        if axis not in x.dims:
            raise InputError(f"x: an array with axes {tuple(x.dims)} given; it must have an axis {axis!r}")


def moments(values: np.ndarray) -> Moments:
    """Of ``[stratum, unit, …]``; Welch and Satterthwaite's degrees of freedom (n − 1 with one stratum)."""
    strata, count = values.shape[:2]
    one = np.full((strata, *values.shape[2:]), np.nan)  # one unit: no variance
    variance = values.var(axis=1, ddof=1) if count > 1 else one
    total, squares = variance.sum(0), (variance**2).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(squares > 0, total**2 / squares, 1.0)
    return Moments(values.mean(axis=(0, 1)), np.sqrt(total / count) / strata, (count - 1) * ratio)


def by_blocks(function: Callable[[np.ndarray], tuple[np.ndarray, ...]], values: np.ndarray) -> list[np.ndarray]:
    """A function of ``[stratum, unit, place]`` that gives arrays ``[place]``, some places at a time: its own copies of
    the values stay small, however large a result is."""
    places = values.shape[2]
    step = max(1, _AT_ONCE // max(1, values.shape[0] * values.shape[1]))
    blocks = [function(values[..., first : first + step]) for first in range(0, max(places, 1), step)]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


def paired(x: xarray.DataArray, y: xarray.DataArray) -> xarray.DataArray:
    """x − y, where both met the same runs of the same instances.

    Raises:
        InputError: labels on an axis that both have are not the same.
    """
    for axis in x.dims:
        if axis in y.dims and list(x[axis].values) != list(y[axis].values):
            raise InputError(f"y: other labels on the axis {axis!r} given; it must have those of x, to be paired")
    return x - y


def check_level(name: str, value: float) -> None:
    """A number in (0, 1).

    Raises:
        InputError: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating)) or not 0 < value < 1:
        raise bad(name, value, "a number in (0, 1)")
