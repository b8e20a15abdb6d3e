"""Intervals of a mean that hold their level with few and with skewed units: Student's t, corrected for skewness."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxbandits.statistics.sample import by_blocks, moments
from jaxbandits.statistics.student import t_quantile

_CAUTIOUS = 0.95


class MeanParts(NamedTuple):
    """Of the mean of the strata's means, ``[…]`` each.

    Attributes:
        mean, error, freedom: as in :class:`~jaxbandits.statistics.sample.Moments`.
        skew: a, the skewness of the mean itself; of one stratum that of the sample over √n.
    """

    mean: np.ndarray
    error: np.ndarray
    freedom: np.ndarray
    skew: np.ndarray


def mean_parts(values: np.ndarray) -> MeanParts:
    """Of ``[stratum, unit, …]``; strata of fewer than 3 units have no skewness to speak of, and count as symmetric."""
    found = by_blocks(_mean_parts, values.reshape(*values.shape[:2], -1))
    return MeanParts(*(part.reshape(values.shape[2:]) for part in found))


def _mean_parts(values: np.ndarray) -> MeanParts:
    centre = moments(values)
    strata, count = values.shape[:2]
    third = np.zeros(centre.mean.shape)
    if count > 2:
        cubes = ((values - values.mean(axis=1, keepdims=True)) ** 3).sum(axis=1)
        third = cubes.sum(axis=0) / count / ((count - 1) * (count - 2)) / strata**3
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(centre.error > 0, third / centre.error**3, 0.0)
    return MeanParts(*centre, skew)


def corrected(critical: np.ndarray, skew: np.ndarray) -> np.ndarray:
    """The value of (x̄ − μ)/se that Hall's transformation takes to ``critical``:

    .. math:: g^{-1}(y) = \\frac3a \\Big[\\big(1 + a (y - a/6)\\big)^{1/3} - 1\\Big],
              \\quad g(T) = T + \\tfrac13 a T^2 + \\tfrac1{27} a^2 T^3 + \\tfrac16 a.

    g is increasing, and removes the skewness of T (about −2a) to first order. a is taken a twentieth smaller than
    ``skew``: measured, samples of two clusters cover more than 98 % without that, and others 92 % and more with it.
    """
    skewed = np.abs(skew) > 1e-9
    a = np.where(skewed, _CAUTIOUS * skew, 1.0)
    return np.where(skewed, 3 / a * (np.cbrt(1 + a * (critical - a / 6)) - 1), critical)


def mean_ends(values: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and the ends of its interval, from ``[stratum, unit, …]``; NaN with one unit in a stratum.

    x̄ − se · g⁻¹(± t(ν)) with :func:`corrected`, ν Welch and Satterthwaite's degrees of freedom. The third cumulant of
    the mean is the sum of the strata's, as its variance is.

    Source: Hall (1992), On the removal of skewness by transformation.
    """
    parts = mean_parts(values)
    half = t_quantile(0.5 + level / 2, parts.freedom)
    low, high = (parts.mean - corrected(y, parts.skew) * parts.error for y in (half, -half))
    return parts.mean, low, high
