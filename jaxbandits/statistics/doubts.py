"""When no interval can hold its level: what is doubtful about a sample, by name and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxbandits.statistics.means import MeanParts, mean_parts
from jaxbandits.statistics.sample import by_blocks, moments
from jaxbandits.statistics.student import t_quantile

FEW, TOP, HALF = 10, 0.02, 0.5
_SKEWED, _SKEWED_MEAN = (
    2.7,
    0.25,
)  # of the sample (fewer units show less of it), and of its mean: seldom above for Exp(1)


class Doubt(NamedTuple):
    """Something doubtful about some of several samples.

    Attributes:
        name: by which it is known.
        size: how bad it is, ``[place]``; above 0 where it is so.
        text: what to say of the sample at a place.
    """

    name: str
    size: np.ndarray
    text: Callable[[int], str]


def told(doubts: Sequence[Doubt]) -> tuple[str, ...]:
    """A line for each that there is: its name, and what is to be said of the worst sample."""
    lines = []
    for doubt in doubts:
        found, many = int((doubt.size > 0).sum()), doubt.size.size
        if found:
            several = f" (the worst of {found:,} such among {many:,})" if found > 1 else f" (1 among {many:,})"
            lines.append(f"{doubt.name}: {doubt.text(int(np.argmax(doubt.size)))}{several if many > 1 else ''}")
    return tuple(lines)


def doubts_of(values: np.ndarray, over: str, what: str, level: float = 0.95) -> list[Doubt]:
    """All that may be doubtful about the interval of a mean, from ``[stratum, unit, place]``.

    * *few units*: 10 or fewer (beyond one in each stratum), or two in each of several strata, where a skewed law cannot
      be told from a symmetric one;
    * *heavy tail*: the top 2 % of the units (one at least) carry more than half of the mean;
    * *one unit decides*: without it, the mean moves by more than the whole width of the interval that is left;
    * *skewed*: the skewness of the sample, and of its mean, are more than samples of an exponential law mostly have.
    """
    parts = mean_parts(values)
    return [
        _few(values, over),
        heavy_tail(values, over, what),
        _one_decides(values, over, what, level),
        _skewed(values, parts, over, what),
    ]


def _few(values: np.ndarray, over: str) -> Doubt:
    strata, count, places = values.shape
    each = f" of each of {strata}" if strata > 1 else ""
    few, pairs = strata * (count - 1) < FEW, strata > 1 and count == 2
    text = f"{count} {many(over, count)}{each} are too few for an interval that holds its level; take {FEW + 1} or more"
    if pairs and not few:
        text = f"{count} {many(over, count)}{each} show no skewness, which the interval then ignores; take 3 or more"
    return Doubt("few units", np.full(places, float(few or pairs)), lambda place: text)


def heavy_tail(values: np.ndarray, over: str, what: str = "mean") -> Doubt:
    """Whether the top 2 % of the units carry more than half of the mean, from ``[stratum, unit, place]``.

    With several given instances only what a unit has beyond the median of its own instance counts as carried by it.
    """
    number = values.shape[0] * values.shape[1]
    top = math.ceil(TOP * number)

    def carried(part: np.ndarray) -> tuple[np.ndarray]:
        size = np.abs(part)
        beyond = size if len(part) == 1 else np.maximum(size - np.median(size, axis=1, keepdims=True), 0)
        largest = np.partition(beyond.reshape(number, -1), number - top, axis=0)[number - top :].sum(axis=0)
        whole = size.sum(axis=(0, 1))
        return (np.divide(largest, whole, out=np.zeros_like(whole), where=whole > 0),)

    (share,) = by_blocks(carried, values)

    def text(place: int) -> str:
        carry = "carry" if top > 1 else "carries"
        part = f"{top} of {number:,} {many(over)} {carry} {share[place]:.0%}"
        return f"{part} of this {what}: more {many(over)} will move it"

    return Doubt("heavy tail", np.where((share > HALF) & (number > 1), share, 0.0), text)


def _one_decides(values: np.ndarray, over: str, what: str, level: float) -> Doubt:
    count = values.shape[1]

    def moved(part: np.ndarray) -> tuple[np.ndarray]:
        strata, (_, error, freedom) = len(part), moments(part)
        apart = part - part.mean(axis=1, keepdims=True)
        variance = part.var(axis=1, ddof=1, keepdims=True)
        left = np.maximum(((count - 1) * variance - apart**2 * count / (count - 1)) / (count - 2), 0)
        others = np.maximum(error**2 * strata**2 - variance / count, 0)
        width = 2 * t_quantile(0.5 + level / 2, np.maximum(freedom - 1, 1)) * np.sqrt(others + left / (count - 1))
        far = np.abs(apart) / (count - 1)
        # rounding leaves a trace of variance where all others are equal
        ratio = far / np.maximum(width, 1e-12 * np.maximum(far, 1e-300))
        return (np.where(error > 0, ratio.max(axis=(0, 1)), 0.0),)

    size = by_blocks(moved, values)[0] if count > 2 else np.zeros(values.shape[2])
    text = f"without one of the {many(over)} the {what} would move by more than the whole width of its interval"
    return Doubt("one unit decides", np.where(size > 1, size, 0.0), lambda place: text)


def _skewed(values: np.ndarray, parts: MeanParts, over: str, what: str) -> Doubt:
    number = values.shape[0] * values.shape[1]
    skew = np.abs(parts.skew) * math.sqrt(number)
    size = np.where((skew > _SKEWED * number / (number + 2.5)) & (np.abs(parts.skew) > _SKEWED_MEAN), skew, 0.0)

    def text(place: int) -> str:
        seen = f"skewness {skew[place]:.1f} over {number:,} {many(over)}"
        return f"{seen}: an interval of the {what} may miss more often than it says"

    return Doubt("skewed", size, text)


def no_end(low: np.ndarray, high: np.ndarray, count: int, over: str, q: float, level: float) -> Doubt:
    """Whether a quantile has no lower or upper end, for the sample is too small."""
    outer = min(q, 1 - q)
    needed = math.ceil(math.log((1 - level) / 2) / math.log1p(-outer) - 1e-9)
    text = f"{count:,} {many(over, count)} cannot bound the {q:g} quantile on both sides; {needed:,} can"
    return Doubt("no end", (np.isinf(low) | np.isinf(high)).astype(float), lambda place: text)


def few_in_tail(count: int, tail: float, over: str, places: int) -> Doubt:
    """Whether the tail holds 10 units or fewer."""
    text = (
        f"{tail:.2g} of {count:,} {many(over, count)} are {count * tail:.3g}: too few for an interval that holds its "
        f"level; take {math.ceil((FEW + 1) / tail):,}"
    )
    return Doubt("few in the tail", np.full(places, float(count * tail <= FEW)), lambda place: text)


def tail_doubts(values: np.ndarray, tail: float, over: str, level: float) -> list[Doubt]:
    """All that may be doubtful about the mean of the largest share ``tail``, from ``[unit, place]``."""
    count, places = values.shape
    largest = np.sort(values, axis=0)[count - math.ceil(count * tail - 1e-9) :]
    found = doubts_of(largest[None], over, "mean of the tail", level)
    return [few_in_tail(count, tail, over, places), *(doubt for doubt in found if doubt.name != "few units")]


def many(over: str, count: int = 2) -> str:
    """What the units are called: ``runs``, ``instances``."""
    return ("run" if over == "replicate" else over) + "s" * (count != 1)


def invisible(count: int, over: str = "replicate") -> str:
    """What n units cannot show, in words: with probability 95 % they hold none of what happens less often than 3/n.

    Example:
        >>> invisible(1000)
        'disasters rarer than 3 in 1,000 are invisible in 1,000 runs'
    """
    return f"disasters rarer than 3 in {count:,} are invisible in {count:,} {many(over, count)}"
