"""Estimates with intervals, and warnings where intervals may cover less.

Every interval of this room takes one way: :func:`interval` brings a labelled array into ``[stratum,
unit, place]``, asks for value, ends and doubts, and puts the labels back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandits._tables import MOST_ROWS, Shown, Table, count_of
from jaxbandits.core.checks import InputError, bad, numbers

if TYPE_CHECKING:
    import xarray


def t_quantile(p: Any, freedom: Any) -> np.ndarray:
    """x with P(T ≤ x) = p, elementwise; freedom ∞: normal; NaN where it is not above 0."""
    # scipy.stats takes longer to import than a small comparison to play
    from scipy.special import stdtrit

    return np.where(np.equal(p, 0), -np.inf, stdtrit(freedom, p))


# --- Units and their moments


_AT_ONCE = 1 << 22  # values that a function of a sample copies at a time


class Moments(NamedTuple):
    """Moments of the mean of the strata's means, ``[…]`` each."""

    mean: np.ndarray
    error: np.ndarray  # its standard error
    freedom: np.ndarray  # Welch and Satterthwaite's, n − 1 with one stratum; NaN with one unit
    skew: np.ndarray  # of the mean itself; with one stratum that of the sample over √n


def units(x: xarray.DataArray, over: str) -> xarray.DataArray:
    """``x`` with its first axes renamed ``(stratum, unit)``, see :func:`mean`."""
    check_axes(x, over)
    if over == "replicate":
        sample = x.rename(replicate="unit")
        strata = "instance" in x.dims
        sample = sample.rename(instance="stratum") if strata else sample.expand_dims("stratum")
    else:
        several = over == "instance" and "replicate" in x.dims
        averaged = x.mean("replicate", skipna=False) if several else x
        sample = averaged.rename({over: "unit"}).expand_dims("stratum")
    return sample.drop_vars(("stratum", "unit"), errors="ignore").transpose("stratum", "unit", ...)


def check_axes(x: xarray.DataArray, *axes: str, name: str = "x") -> None:
    """Raise :class:`InputError` unless ``x`` is a labelled array with these axes."""
    if not hasattr(x, "dims"):
        raise bad(name, x, "a labelled array (xarray.DataArray), such as result.regret")
    for axis in axes:
        if axis not in x.dims:
            given = f"an array with axes {tuple(x.dims)} given"
            raise InputError(f"{name}: {given}; it must have an axis {axis!r}")


def moments(values: np.ndarray) -> Moments:
    """Moments of ``[stratum, unit, …]``; strata of fewer than 3 units count as symmetric."""
    strata, count = values.shape[:2]

    def of(part: np.ndarray) -> tuple[np.ndarray, ...]:
        unknown = np.full((strata, part.shape[2]), np.nan)
        variance = part.var(axis=1, ddof=1) if count > 1 else unknown
        total, squares = variance.sum(0), (variance**2).sum(0)
        mean, error = part.mean(axis=(0, 1)), np.sqrt(total / count) / strata
        # The third cumulant of the mean is the sum of the strata's, as its variance is
        third = np.zeros(mean.shape)
        if count > 2:
            cubes = ((part - part.mean(axis=1, keepdims=True)) ** 3).sum(axis=1)
            third = cubes.sum(axis=0) / count / ((count - 1) * (count - 2)) / strata**3
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(squares > 0, total**2 / squares, 1.0)
            skew = np.where(error > 0, third / error**3, 0.0)
        return mean, error, (count - 1) * ratio, skew

    parts = by_blocks(of, values.reshape(strata, count, -1))
    return Moments(*(x.reshape(values.shape[2:]) for x in parts))


def by_blocks(
    function: Callable[[np.ndarray], tuple[np.ndarray, ...]], values: np.ndarray
) -> list[np.ndarray]:
    """Apply a function of ``[stratum, unit, place]`` to blocks of places; arrays ``[place]``."""
    # Its own copies of the values stay small, however large a result is.
    places = values.shape[2]
    step = max(1, _AT_ONCE // max(1, values.shape[0] * values.shape[1]))
    firsts = range(0, max(places, 1), step)
    blocks = [function(values[..., first : first + step]) for first in firsts]
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]


PAIRED_BY = "environment", "key", "constraint"  # ``attrs`` of every view of a result


def paired(x: xarray.DataArray, y: xarray.DataArray) -> xarray.DataArray:
    """x − y, run by run: run r of ``x`` and run r of ``y`` faced the same world.

    Every estimate of a difference is one of this array: ``mean(paired(x, y), over="replicate")``.

    Args:
        x: a labelled array such as ``result.regret``.
        y: the same runs under another policy; an axis that only one of them has is repeated in the
            other.

    Raises:
        InputError: labels on a common axis differ (xarray alone would keep those that both have),
            or the environments, keys or constraints that views of results carry in ``attrs``.

    Example:
        >>> import xarray
        >>> x = xarray.DataArray([5.0, 7.0, 9.0], dims="replicate")
        >>> str(mean(paired(x, x - 1), over="replicate"))
        '1 (1 to 1)'
    """
    check_axes(x)
    check_axes(y, name="y")
    for axis in x.dims:
        if axis in y.dims and list(x[axis].values) != list(y[axis].values):
            given = f"other labels on the axis {axis!r} given"
            raise InputError(f"y: {given}; it must have those of x, to be paired")
    for name in PAIRED_BY:
        if name in x.attrs and y.attrs.get(name, x.attrs[name]) != x.attrs[name]:
            given = f"runs of another {name} given ({y.attrs[name]})"
            must = f"it must be that of x ({x.attrs[name]}), to be paired"
            raise InputError(f"y: {given}; {must}; y.drop_attrs() pairs them nevertheless")
    return x - y


def check_level(name: str, value: float) -> None:
    """Raise :class:`InputError` unless the value is a number in (0, 1)."""
    is_number = isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise bad(name, value, "a number in (0, 1)")


# --- Ends of an interval of a quantile, from order statistics


def quantile_ends(values: np.ndarray, q: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval for the ``q`` quantile, ``[place]`` each, from ``[unit, place]``.

    With x₍₁₎ ≤ … ≤ x₍ₙ₎ and π_r = P(Binomial(n, q) ≤ r − 1) = P(x₍ᵣ₎ > quantile), an end that lies
    above the quantile with probability β is (1 − λ) x₍ᵣ₎ + λ x₍ᵣ₊₁₎, π_r ≤ β < π₍ᵣ₊₁₎, with

    .. math:: \\lambda = \\Big(1 + \\frac{r (1-q)(\\pi_{r+1} - \\beta)}{(n-r)\\, q\\, (\\beta - \\pi_r)}\\Big)^{-1}.

    Where no order statistic is far enough out, the end is −∞ or ∞: n values cannot tell.

    Source: Nyblom (1992), Note on interpolated order statistics; for the median Hettmansperger and
    Sheather (1986).
    """
    from scipy import stats

    count, ordered = values.shape[0], np.sort(values, axis=0)
    above = stats.binom.cdf(np.arange(-1, count + 1), count, q)  # π_0 … π_{n+1}

    def end(beta: float) -> np.ndarray:
        r = int(np.searchsorted(above, beta, side="right")) - 1
        if r in (0, count):
            return np.full(values.shape[1:], np.inf if r else -np.inf)
        nearer = (count - r) * q * max(beta - above[r], 1e-300)
        weight = 1 / (1 + r * (1 - q) * (above[r + 1] - beta) / nearer)
        return (1 - weight) * ordered[r - 1] + weight * ordered[r]

    return end((1 - level) / 2), end((1 + level) / 2)


# --- Ends of an interval of a mean: Student's t, corrected for skewness


_CAUTIOUS = 0.95  # of the skewness: see :func:`corrected`


def corrected(critical: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """The value of (x̄ − μ)/se that Hall's transformation maps to ``critical``:

    .. math:: g^{-1}(y) = \\frac3a \\Big[\\big(1 + a (y - a/6)\\big)^{1/3} - 1\\Big],
              \\quad g(T) = T + \\tfrac13 a T^2 + \\tfrac1{27} a^2 T^3 + \\tfrac16 a.

    g is increasing, and removes the skewness of T (about −2a) to first order. a is taken a
    twentieth smaller than ``skew``: measured, samples of two clusters cover more than 98 % without
    that, and others 92 % and more with it.
    """
    skewed = np.abs(skew) > 1e-9
    a = np.where(skewed, _CAUTIOUS * skew, 1.0)
    return np.where(skewed, 3 / a * (np.cbrt(1 + a * (critical - a / 6)) - 1), critical)


def mean_ends(values: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and ends of its interval, from ``[stratum, unit, …]``; NaN if a stratum has one unit.

    x̄ − se · g⁻¹(± t(ν)) with :func:`corrected`, ν Welch and Satterthwaite's degrees of freedom.

    Source: Hall (1992), On the removal of skewness by transformation.
    """
    parts = moments(values)
    half = t_quantile(0.5 + level / 2, parts.freedom)
    low, high = (parts.mean - corrected(y, parts.skew) * parts.error for y in (half, -half))
    return parts.mean, low, high


# --- What may be doubtful about an interval

FEW, TOP, HALF, NO_INTERVAL = 10, 0.02, 0.5, "no interval"
# Skewness of the sample (fewer units show less of it), and of its mean: seldom above for Exp(1).
_SKEWED, _SKEWED_MEAN = 2.7, 0.25


class Doubt(NamedTuple):
    """A reason to doubt the intervals of some of several samples."""

    name: str  # by which it is known
    size: np.ndarray  # how bad it is, [place]; 0 where it is not so
    text: Callable[[int], str]  # what to say of the sample at a place: made for the worst one only


def doubt_lines(doubts: Sequence[Doubt]) -> tuple[str, ...]:
    """A line for each doubt: its name, and a remark about the worst sample."""
    lines = []
    for doubt in doubts:
        count, total = int((doubt.size > 0).sum()), doubt.size.size
        if count:
            among = f"{'the worst of ' if count > 1 else ''}{count:,}{' such' * (count > 1)}"
            several = f" ({among} among {total:,})" if total > 1 else ""
            lines.append(f"{doubt.name}: {doubt.text(int(np.argmax(doubt.size)))}{several}")
    return tuple(lines)


def doubts_of(values: np.ndarray, over: str, statistic: str, level: float = 0.95) -> list[Doubt]:
    """All reasons to doubt the interval of a mean, from ``[stratum, unit, place]``."""
    strata, count, places = values.shape
    number, units = strata * count, units_of(over)
    top, sample = math.ceil(TOP * number), f"{number:,} {units}"
    share, influence, skew = by_blocks(lambda part: _signs(part, top, level), values)
    # Few units: fewer than 10 beyond one in each stratum; or two in each of several strata, where a
    # skewed law cannot be told from a symmetric one.
    is_small, pairs = strata * (count - 1) < FEW, strata > 1 and count == 2
    few = np.full(places, float(is_small or pairs))
    unit_text = units_of(over, count) + (f" of each of {strata}" if strata > 1 else "")
    remedy = "show no skewness, which the interval then ignores; take 3 or more"
    if count == 1:
        runs = 'over="replicate" estimates these instances\' runs'
        remedy = runs if over == "instance" else "take more of them"
        unit_text = f"{NO_INTERVAL}: {unit_text};"
    elif is_small:
        remedy = f"are too few for an interval with its stated coverage; take {FEW + 1} or more"
    # Heavy tail: the top 2 % of the units carry more than half of the mean.
    heavy = np.where((share > HALF) & (number > 1), share, 0.0)
    carry = f"of {sample} {'carry' if top > 1 else 'carries'}"
    will_move = f"of this {statistic}: more {units} will move it"
    # One unit decides: without it the mean moves by more than the interval that is left.
    decides = np.where(influence > 1, influence, 0.0)
    alone = f"without one of the {units} the {statistic} would move by more than the whole width of its interval"
    # Skewed: the sample, beyond what few units show, and still its mean.
    of_sample = skew * math.sqrt(number)
    skewed = (of_sample > _SKEWED * number / (number + 2.5)) & (skew > _SKEWED_MEAN)
    odd = np.where(skewed, of_sample, 0.0)
    skew_text = f"over {sample}: an interval of the {statistic} may miss more often than stated"
    return [
        Doubt("few units", few, lambda at: f"{unit_text} {remedy}"),
        Doubt("heavy tail", heavy, lambda at: f"{top} {carry} {share[at]:.0%} {will_move}"),
        Doubt("one unit decides", decides, lambda at: alone),
        Doubt("skewed", odd, lambda at: f"skewness {of_sample[at]:.1f} {skew_text}"),
    ]


def _signs(values: np.ndarray, top: int, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By place: what its ``top`` units carry; the farthest one's influence; the mean's skewness."""
    # Influence: how far the mean moves without that unit, in widths of the interval that is left.
    strata, count, places = values.shape
    number, size = strata * count, np.abs(values)
    # With several given instances only what a unit has beyond the median of its own instance counts
    # as carried by it.
    beyond = size if strata == 1 else np.maximum(size - np.median(size, axis=1, keepdims=True), 0)
    ordered = np.partition(beyond.reshape(number, -1), number - top, axis=0)
    largest = ordered[number - top :].sum(axis=0)
    whole = size.sum(axis=(0, 1))
    share = np.divide(largest, whole, out=np.zeros_like(whole), where=whole > 0)
    _, error, freedom, skew = moments(values)
    influence = np.zeros(places)
    if count > 2:
        apart = values - values.mean(axis=1, keepdims=True)
        variance = values.var(axis=1, ddof=1, keepdims=True)
        rest = (count - 1) * variance - apart**2 * count / (count - 1)
        rest_variance = np.maximum(rest / (count - 2), 0)
        strata_variance = np.maximum(error**2 * strata**2 - variance / count, 0)
        t = t_quantile(0.5 + level / 2, np.maximum(freedom - 1, 1))
        width = 2 * t * np.sqrt(strata_variance + rest_variance / (count - 1))
        far = np.abs(apart) / (count - 1)
        # rounding leaves a trace of variance where all others are equal
        ratio = far / np.maximum(width, 1e-12 * np.maximum(far, 1e-300))
        influence = np.where(error > 0, ratio.max(axis=(0, 1)), 0.0)
    return share, influence, np.abs(skew)


def no_end(
    low: np.ndarray, high: np.ndarray, count: int, over: str, q: float, level: float
) -> Doubt:
    """The doubt that a quantile has no lower or upper end since the sample is too small."""
    outer = min(q, 1 - q)
    needed = math.ceil(math.log((1 - level) / 2) / math.log1p(-outer) - 1e-9)
    text = f"{units_of(over, count)} cannot bound the {q:g} quantile on both sides; {needed:,} can"
    return Doubt("no end", (np.isinf(low) | np.isinf(high)).astype(float), lambda place: text)


def few_in_tail(count: int, places: int, tail: float, over: str) -> Doubt:
    """The doubt that the tail has 10 units or fewer."""
    enough = math.ceil((FEW + 1) / tail)
    shortage = f"{tail:.2g} of {units_of(over, count)} are {count * tail:.3g}: too few"
    text = f"{shortage} for an interval with its stated coverage; take {enough:,}"
    return Doubt("few in the tail", np.full(places, float(count * tail <= FEW)), lambda place: text)


def tail_doubts(values: np.ndarray, tail: float, over: str, level: float) -> list[Doubt]:
    """All reasons to doubt the mean of the largest share ``tail``, from ``[unit, place]``."""
    count, places = values.shape
    largest = np.sort(values, axis=0)[count - math.ceil(count * tail - 1e-9) :]
    doubts = doubts_of(largest[None], over, "mean of the tail", level)
    others = (doubt for doubt in doubts if doubt.name != "few units")
    return [few_in_tail(count, places, tail, over), *others]


def units_of(over: str, count: int | None = None) -> str:
    """The name of units: ``instances``, or ``1,200 runs`` with a count."""
    unit = "run" if over == "replicate" else over
    return f"{unit}s" if count is None else count_of(count, unit)


def invisible(count: int, over: str) -> str:
    """How frequent an event may be that none of n units showed, in words.

    It may have any rate p with (1 − p)ⁿ ≥ 5 %, that is up to 1 − 0.05^(1/n), a little less than
    3/n.

    Example:
        >>> invisible(1000, "replicate")
        'what 1,000 runs did not show may still happen in up to 0.3% of all runs (95% confidence)'
    """
    seldom = f"{100 * (1 - 0.05 ** (1 / count)):.2g}% of all {units_of(over)}"
    return f"what {units_of(over, count)} did not show may still happen in up to {seldom} (95% confidence)"


# --- The one way to an interval


class IntervalEnds(NamedTuple):
    """Value and interval of samples, ``[place]`` each, and doubts about them."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    doubts: list[Doubt]


@dataclass(frozen=True, eq=False)
class Estimate(Shown):
    """An estimate from sampled units, with its interval.

    Attributes:
        value, low, high: the estimate and its interval, in the units of what was given: floats, or
            arrays over the axes that were not sampled. NaN if there is no interval, ±∞ if the
            sample gives no bound.
        units: how many were sampled; an event that none of n units showed may still have a
            probability of up to 3/n (95 % confidence).
        warnings: lines that begin with the name of a doubt (see :mod:`jaxbandits.statistics`);
            usually none.
    """

    value: Any
    low: Any
    high: Any
    units: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        """The number with its interval, or a line for each of the first thirty."""
        header, rows, _ = self._shown_rows()
        why = self._why_no_interval(rows)
        if not np.ndim(self.value):
            return f"{rows[0][-3]} ({why})" if why else _with_interval(rows[0])
        lines = [[*map(_label, row[:-3]), _with_interval(row)] for row in rows[:MOST_ROWS]]
        header = [*header[:-3], "value (low to high)"]
        more = f"\n… {len(rows) - MOST_ROWS:,} more" if len(rows) > MOST_ROWS else ""
        table = Table(header, lines, left=range(len(header))).text()
        return "\n".join(filter(None, (table + more, why)))

    def _why_no_interval(self, rows: Sequence[Sequence[str]]) -> str:
        if not rows or any(row[-1] for row in rows):
            return ""
        texts = (text for x in self.warnings for _, _, text in [x.partition(": ")])
        found = (text for text in texts if text.startswith(NO_INTERVAL))
        return next(found, NO_INTERVAL).partition(" (")[0]  # all are alike in it

    def __repr__(self) -> str:
        rows, doubts = self._shown_rows().rows, [x.partition(":")[0] for x in self.warnings]
        texts = [_with_interval(row) for row in rows[:3]]
        more = f", … {len(rows)} in all" if len(rows) > 3 else ""
        by = "; ".join([count_of(self.units, "unit"), *doubts])
        return f"Estimate({', '.join(texts)}{more}; {self._why_no_interval(rows) or by})"

    def _shown_rows(self) -> Table:
        ends = [np.asarray(x, float) for x in (self.value, self.low, self.high)]
        axes, coords = getattr(self.value, "dims", ()), getattr(self.value, "coords", {})
        columns: list[tuple[str, int, Any]] = []  # of an axis without labels what else is along it
        for number, axis in enumerate(axes):
            others = [name for name, x in coords.items() if x.dims == (axis,)]
            names = [axis] if axis in coords or not others else others
            columns += [(str(name), number, self.value[name].values) for name in names]
        rows = []
        for at in np.ndindex(ends[0].shape):
            place = [labels[at[number]] for _, number, labels in columns]
            rows.append([*place, *("" if np.isnan(x[at]) else f"{x[at]:.5g}" for x in ends)])
        return Table((*(name for name, *_ in columns), "value", "low", "high"), rows)


def _with_interval(row: Sequence[str]) -> str:
    """``12.5 (11 to 14)`` of the last three cells of a row; without ends the value alone."""
    value, low, high = row[-3:]
    return f"{value} ({low} to {high})" if low else value


def _label(x: Any) -> str:
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def interval(
    x: Any, over: str, level: float, ends: Callable[[np.ndarray], IntervalEnds]
) -> Estimate:
    """The estimate that ``ends`` computes from ``[stratum, unit, place]``, with its labels."""
    import xarray

    check_level("level", level)
    if not isinstance(x, xarray.DataArray):
        x = numbers("x", x, "a labelled array (xarray.DataArray), or numbers along one axis")
        if x.ndim != 1:
            given = f"a plain array of shape {x.shape} given"
            raise InputError(f"x: {given}; it must be labelled (xarray.DataArray)")
        x = xarray.DataArray(x, dims=(over,))
    sample = units(x, over)
    strata, count = sample.shape[:2]
    values = np.asarray(sample.values, float)
    if count == 0 or not np.isfinite(values).all():
        raise bad("x", "NaN or infinity" if count else "no unit", "finite numbers, at least one")
    *parts, doubts = ends(values.reshape(strata, count, -1))
    like = sample.isel(stratum=0, unit=0, drop=True)
    labelled: Any = (like.copy(data=part.reshape(like.shape)) for part in parts)
    value, low, high = labelled if like.ndim else map(float, labelled)
    return Estimate(value, low, high, strata * count, doubt_lines(doubts))


def of_means(over: str, level: float) -> Callable[[np.ndarray], IntervalEnds]:
    """A function from samples to means, intervals and doubts, for :func:`mean`."""

    def ends(values: np.ndarray) -> IntervalEnds:
        return IntervalEnds(*mean_ends(values, level), doubts_of(values, over, "mean", level))

    return ends


# --- Mean, median, quantile, mean of the worst, and what the worst carry


def mean(x: xarray.DataArray | np.ndarray, *, over: str, level: float = 0.95) -> Estimate:
    """The mean, with Student's t interval corrected for the skewness of the sample.

    x̄ − se · g⁻¹(± t), g Hall's transformation. Of I given instances with R runs each and variances
    s²ᵢ, se is √(Σᵢ s²ᵢ / R) / I, with Welch and Satterthwaite's t: the spread between instances
    does not count, since they are not a sample. It has its stated coverage for well-behaved
    distributions from 10 units on, and warns where it may not.

    Args:
        x: a labelled array such as ``result.regret``, or a plain one with one axis: the units.
        over: the axis that was sampled. Over ``"instance"`` each instance counts with the mean of
            its runs; over ``"replicate"`` given instances have equal weight; any other axis is used
            as it is. All further axes stay. For the runs of each instance separately, rename its
            axis: ``x.rename(instance="each")``.
        level: coverage of each single interval, in (0, 1).

    Source: Hall (1992), On the removal of skewness by transformation.

    Example:
        >>> import numpy as np
        >>> estimate = mean(np.random.default_rng(0).exponential(size=100), over="run")
        >>> estimate.low < 1 < estimate.high, estimate.units, estimate.warnings
        (True, 100, ())
    """
    return interval(x, over, level, of_means(over, level))


def median(x: xarray.DataArray | np.ndarray, *, over: str, level: float = 0.95) -> Estimate:
    """The median: :func:`quantile` at ½.

    Example:
        >>> median(range(41), over="run").value
        20.0
    """
    return quantile(x, 0.5, over=over, level=level)


def quantile(
    x: xarray.DataArray | np.ndarray, q: float, *, over: str, level: float = 0.95
) -> Estimate:
    """The value below which a share ``q`` of units lie, with an interval from order statistics.

    The interval is valid for every continuous distribution. A sample gives no upper end for the
    0.99 quantile before it has 368 units (level 95 %): then ``high`` is ∞, with the warning ``no
    end``. Runs on several given instances (``over="replicate"``) are pooled: a quantile of a run on
    one of them, drawn at random.

    Args:
        x, over, level: as in :func:`mean`.
        q: in (0, 1).

    Example:
        >>> import numpy as np
        >>> estimate = quantile(np.arange(401.0), 0.9, over="run")
        >>> estimate.value, round(estimate.low, 1), round(estimate.high, 1)
        (360.0, 348.3, 371.7)
    """
    check_level("q", q)

    def ends(values: np.ndarray) -> IntervalEnds:
        pooled = _pooled(values)
        low, high = quantile_ends(pooled, q, level)
        doubt = no_end(low, high, len(pooled), over, q, level)
        return IntervalEnds(np.quantile(pooled, q, axis=0), low, high, [doubt])

    return interval(x, over, level, ends)


def cvar(
    x: xarray.DataArray | np.ndarray, tail: float, *, over: str, level: float = 0.95
) -> Estimate:
    """Conditional value at risk: the mean of the largest share ``tail`` of the units.

    With the quantile v at 1 − tail it is v + E(x − v)₊ / tail. The largest are the worst of a
    regret; of a reward take −x. The interval is that of the mean of v + (xᵢ − v)₊ / tail, whose
    error is of the same size to first order.

    Args:
        x, over, level: as in :func:`mean`; runs on several given instances are pooled.
        tail: in (0, 1).

    Source: Rockafellar, Uryasev (2000), Optimization of conditional value-at-risk.

    Example:
        >>> import numpy as np
        >>> cvar(np.arange(1.0, 101.0), 0.1, over="run").value
        95.5
    """
    check_level("tail", tail)

    def ends(values: np.ndarray) -> IntervalEnds:
        pooled = _pooled(values)
        doubts = tail_doubts(pooled, tail, over, level)
        return IntervalEnds(*mean_ends(_beyond(pooled, tail)[None], level), doubts)

    return interval(x, over, level, ends)


def tail_share(
    x: xarray.DataArray | np.ndarray, tail: float, *, over: str, level: float = 0.95
) -> Estimate:
    """The part of the sum that is due to the largest share ``tail`` of units: tail · cvar / mean.

    The interval is that of ln(T / (1 − T)), T the share: of the mean of tᵢ = (tail · zᵢ − T xᵢ) /
    (x̄ T (1 − T)), z as in :func:`cvar` (delta method), taken back to T. NaN where T is not between
    0 and 1.

    Args:
        x: as in :func:`mean`, of one sign, such as a regret.
        tail, over, level: as in :func:`cvar`.

    Example:
        >>> import numpy as np
        >>> round(tail_share(np.r_[np.ones(98), 100.0, 179.0], 0.02, over="run").value, 2)
        0.74
    """
    check_level("tail", tail)

    def ends(values: np.ndarray) -> IntervalEnds:
        pooled = _pooled(values)
        parts, centre = tail * _beyond(pooled, tail), pooled.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = parts.mean(axis=0) / centre
            inner = np.where((share > 0) & (share < 1), share, 0.5)
            spread = (parts - share * pooled) / centre / (inner * (1 - inner))
        _, low, high = mean_ends(spread[None], level)
        odds = np.log(inner / (1 - inner))
        known = inner == share
        low, high = (np.where(known, 1 / (1 + np.exp(-odds - x)), np.nan) for x in (low, high))
        shortage = few_in_tail(len(pooled), pooled.shape[1], tail, over)
        doubts = [shortage, *doubts_of(pooled[None], over, "mean", level)]
        return IntervalEnds(share, low, high, doubts)

    return interval(x, over, level, ends)


def _pooled(values: np.ndarray) -> np.ndarray:
    """``[unit, place]`` of all strata together."""
    return values.reshape(-1, values.shape[-1])


def _beyond(values: np.ndarray, tail: float) -> np.ndarray:
    """v + (x − v)₊ / tail, ``[unit, place]``: its mean is that of the largest share tail."""
    # The share may end within a unit.
    count = values.shape[0]
    at = min(int(np.floor(count * tail + 1e-9)), count - 1)
    v = np.sort(values, axis=0)[count - 1 - at]
    return v + np.maximum(values - v, 0) / tail
