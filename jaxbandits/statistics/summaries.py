"""Mean, median, quantile, mean of the worst, and what the worst carry: each with its interval and its warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.core.errors import bad
from jaxbandits.statistics.doubts import Doubt, doubts_of, few_in_tail, no_end, tail_doubts, told
from jaxbandits.statistics.means import mean_ends
from jaxbandits.statistics.order import quantile_ends
from jaxbandits.statistics.sample import check_level, labelled, units

if TYPE_CHECKING:
    import xarray

Ends = tuple[np.ndarray, np.ndarray, np.ndarray, list[Doubt]]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number of a law, estimated from units that were sampled.

    Attributes:
        value, low, high: the estimate and its interval, in the units of what was given: floats, or arrays over the axes
            that were not sampled. NaN where there is no interval, ±∞ where the sample has no end for it.
        units: how many were sampled; what happens more rarely than 3 in so many is likely in none of them.
        warnings: lines that begin with the name of what is doubtful (see :mod:`jaxbandits.statistics`); mostly none.
    """

    value: Any
    low: Any
    high: Any
    units: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        if np.ndim(self.value):
            return f"{self.value.size} estimates from {self.units} units each"
        return f"{self.value:.5g} ({self.low:.5g} to {self.high:.5g})"


def mean(x: xarray.DataArray | np.ndarray, *, over: str = "instance", level: float = 0.95) -> Estimate:
    """Mean, with Student's t interval corrected for the skewness of the sample.

    x̄ − se · g⁻¹(± t), g Hall's transformation; with several given instances Welch and Satterthwaite's t. It holds its
    level for tame laws from 10 units on (docs/how-often-right.md shows how well); it warns where it may not.

    Args:
        x: a labelled array such as ``result.regret``, or a plain one with one axis: the units.
        over: the axis that was sampled. Over ``"instance"`` each instance counts with the mean of its runs; over
            ``"replicate"`` given instances weigh the same; any other axis is as it is. All further axes stay.
        level: coverage of each single interval, in (0, 1).

    Raises:
        InputError: a missing axis, or an argument out of its range.

    Source: Hall (1992), On the removal of skewness by transformation.

    Example:
        >>> import numpy as np
        >>> found = mean(np.random.default_rng(0).exponential(size=100))
        >>> found.low < 1 < found.high, found.units, found.warnings
        (True, 100, ())
    """

    def ends(values: np.ndarray) -> Ends:
        return (*mean_ends(values, level), doubts_of(values, over, "mean", level))

    return _estimated(x, over, level, ends)


def median(x: xarray.DataArray | np.ndarray, *, over: str = "instance", level: float = 0.95) -> Estimate:
    """:func:`quantile` at ½: of the typical unit.

    Example:
        >>> import numpy as np
        >>> found = median(np.arange(41.0))
        >>> found.value, round(found.low, 1), round(found.high, 1)
        (20.0, 13.8, 26.2)
    """
    return quantile(x, 0.5, over=over, level=level)


def quantile(x: xarray.DataArray | np.ndarray, q: float, *, over: str = "instance", level: float = 0.95) -> Estimate:
    """The value that a share ``q`` of the units are below, with an interval from order statistics.

    The interval holds for every continuous law, heavy tails too. A sample has no upper end for the 0.99 quantile before
    it has 368 units (level 95 %): then ``high`` is ∞, with the warning ``no end``. Runs on several given instances
    (``over="replicate"``) are pooled: a quantile of a run on one of them, drawn at random.

    Args:
        x, over, level: as in :func:`mean`.
        q: in (0, 1).

    Example:
        >>> import numpy as np
        >>> found = quantile(np.arange(401.0), 0.9)
        >>> found.value, round(found.low, 1), round(found.high, 1)
        (360.0, 348.3, 371.7)
    """
    check_level("q", q)

    def ends(values: np.ndarray) -> Ends:
        pooled = _pooled(values)
        low, high = quantile_ends(pooled, q, level)
        doubts = [no_end(low, high, pooled.shape[0], over, q, level)]
        return np.quantile(pooled, q, axis=0), low, high, doubts

    return _estimated(x, over, level, ends)


def cvar(x: xarray.DataArray | np.ndarray, tail: float, *, over: str = "instance", level: float = 0.95) -> Estimate:
    """Conditional value at risk: the mean of the largest share ``tail`` of the units.

    With the quantile v at 1 − tail it is v + E(x − v)₊ / tail. The largest are the worst of a regret; of a reward take
    −x. The interval is that of the mean of v + (xᵢ − v)₊ / tail, whose error is of the same size to first order.

    Args:
        x, over, level: as in :func:`mean`; runs on several given instances are pooled.
        tail: in (0, 1), such as 0.01.

    Source: Rockafellar, Uryasev (2000), Optimization of conditional value-at-risk.

    Example:
        >>> import numpy as np
        >>> cvar(np.arange(1.0, 101.0), 0.1).value
        95.5
    """
    check_level("tail", tail)

    def ends(values: np.ndarray) -> Ends:
        pooled = _pooled(values)
        return (*mean_ends(_beyond(pooled, tail)[None], level), tail_doubts(pooled, tail, over, level))

    return _estimated(x, over, level, ends)


def tail_share(
    x: xarray.DataArray | np.ndarray, tail: float, *, over: str = "instance", level: float = 0.95
) -> Estimate:
    """What part of the sum the largest share ``tail`` of the units carry: tail · :func:`cvar` / mean.

    0.74 for ``tail = 0.02``: two of a hundred units carry 74 % of the mean, and a new sample has another mean. The
    interval is that of ln(T / (1 − T)), T the share: of the mean of tᵢ = (tail · zᵢ − T xᵢ) / (x̄ T (1 − T)), z as in
    :func:`cvar` (delta method), taken back to T. NaN where T is not between 0 and 1.

    Args:
        x: as in :func:`mean`, of one sign, such as a regret.
        tail, over, level: as in :func:`cvar`.

    Example:
        >>> import numpy as np
        >>> round(tail_share(np.r_[np.ones(98), 100.0, 179.0], 0.02).value, 2)
        0.74
    """
    check_level("tail", tail)

    def ends(values: np.ndarray) -> Ends:
        pooled = _pooled(values)
        parts, centre = tail * _beyond(pooled, tail), pooled.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = parts.mean(axis=0) / centre
            inner = np.where((share > 0) & (share < 1), share, 0.5)
            spread = (parts - share * pooled) / centre / (inner * (1 - inner))
        _, low, high = mean_ends(spread[None], level)
        odds = np.log(inner / (1 - inner))
        low, high = (np.where(inner == share, 1 / (1 + np.exp(-odds - end)), np.nan) for end in (low, high))
        doubts = [
            few_in_tail(pooled.shape[0], tail, over, pooled.shape[1]),
            *doubts_of(pooled[None], over, "mean", level),
        ]
        return share, low, high, doubts

    return _estimated(x, over, level, ends)


def _pooled(values: np.ndarray) -> np.ndarray:
    """``[unit, place]`` of all strata together."""
    return values.reshape(-1, values.shape[-1])


def _beyond(values: np.ndarray, tail: float) -> np.ndarray:
    """v + (x − v)₊ / tail, ``[unit, place]``; its mean is that of the largest share ``tail``, a part of a unit too."""
    count = values.shape[0]
    at = min(int(np.floor(count * tail + 1e-9)), count - 1)
    v = np.sort(values, axis=0)[count - 1 - at]
    return v + np.maximum(values - v, 0) / tail


def _estimated(x: Any, over: str, level: float, ends: Callable[[np.ndarray], Ends]) -> Estimate:
    """Of ``[stratum, unit, place]`` by ``ends``, with the labels of the axes that are left."""
    check_level("level", level)
    sample = units(labelled(x, over), over)
    values = np.asarray(sample.values, float)
    if values.shape[1] == 0 or not np.isfinite(values).all():
        raise bad("x", "no unit" if values.shape[1] == 0 else "NaN or infinity", "finite numbers, of one unit or more")
    value, low, high, doubts = ends(values.reshape(*values.shape[:2], -1))
    like = sample.isel(stratum=0, unit=0, drop=True)

    def shaped(part: np.ndarray) -> Any:
        return like.copy(data=part.reshape(like.shape)) if like.ndim else float(part[0])

    return Estimate(shaped(value), shaped(low), shaped(high), values.shape[0] * values.shape[1], told(doubts))
