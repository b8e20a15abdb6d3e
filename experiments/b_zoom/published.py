"""What the B-Zoom paper prints, rows re-aligned (the text of Table 1 lost one row label in three of four blocks)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from experiments.common.rows import Row, row

STATISTICS = ("m", "Q1", "Q2", "mean")

# Thousands, by (budget, λ): rows m, Q1, Q2, mean; columns BZ, Z, UCB-BV1 and UCB1 with 5, 10, 15 points.
TABLE1: dict[tuple[int, float], list[list[int]]] = {
    (50000, 0.05): [
        [203, 199, 198, 199, 199, 198, 199, 198],
        [212, 200, 200, 203, 204, 201, 207, 203],
        [215, 201, 204, 215, 213, 206, 216, 209],
        [217, 212, 266, 236, 216, 215, 216, 211],
    ],
    (50000, 0.1): [
        [170, 165, 165, 165, 166, 165, 166, 166],
        [175, 166, 167, 168, 172, 167, 168, 169],
        [180, 167, 173, 184, 192, 171, 174, 174],
        [181, 173, 230, 224, 219, 178, 176, 176],
    ],
    (50000, 0.25): [
        [113, 110, 110, 111, 110, 110, 110, 111],
        [117, 111, 111, 112, 118, 111, 112, 112],
        [119, 111, 114, 129, 144, 112, 114, 115],
        [119, 115, 134, 139, 142, 115, 115, 115],
    ],
    (50000, 0.5): [
        [72, 71, 71, 71, 71, 71, 71, 71],
        [73, 71, 71, 72, 74, 71, 72, 72],
        [74, 71, 72, 77, 85, 72, 73, 73],
        [74, 74, 78, 80, 83, 73, 73, 73],
    ],
    (100000, 0.05): [
        [413, 397, 398, 398, 400, 397, 397, 398],
        [428, 400, 400, 405, 414, 400, 410, 411],
        [442, 401, 408, 429, 459, 413, 432, 423],
        [442, 426, 542, 554, 520, 427, 436, 426],
    ],
    (100000, 0.1): [
        [347, 331, 330, 332, 332, 332, 332, 332],
        [362, 333, 334, 336, 342, 334, 337, 341],
        [372, 334, 345, 386, 430, 341, 353, 348],
        [374, 351, 463, 476, 494, 353, 353, 352],
    ],
    (100000, 0.25): [
        [232, 221, 221, 221, 221, 221, 222, 221],
        [242, 222, 223, 224, 236, 223, 225, 226],
        [246, 222, 231, 263, 311, 225, 231, 230],
        [247, 230, 275, 284, 301, 230, 231, 231],
    ],
    (100000, 0.5): [
        [145, 142, 142, 143, 143, 142, 142, 142],
        [150, 143, 143, 143, 147, 143, 143, 144],
        [152, 143, 144, 161, 171, 144, 146, 145],
        [152, 147, 156, 164, 168, 146, 146, 146],
    ],
    (500000, 0.05): [
        [2129, 1995, 1995, 1997, 1998, 1996, 1994, 1995],
        [2249, 2001, 2002, 2037, 2083, 2001, 2042, 2060],
        [2368, 2005, 2050, 2999, 2654, 2088, 2155, 2123],
        [2376, 2111, 3383, 4372, 4022, 2171, 2162, 2146],
    ],
    (500000, 0.1): [
        [1923, 1661, 1662, 1664, 1666, 1662, 1664, 1664],
        [2120, 1666, 1667, 1682, 1788, 1667, 1687, 1707],
        [2308, 1669, 1700, 2201, 3076, 1675, 1757, 1769],
        [2267, 1725, 2457, 2758, 3082, 1756, 1769, 1768],
    ],
    (500000, 0.25): [
        [1360, 1107, 1109, 1110, 1109, 1108, 1110, 1109],
        [1432, 1111, 1111, 1187, 1248, 1112, 1115, 1124],
        [1471, 1112, 1142, 1599, 1743, 1123, 1145, 1142],
        [1461, 1142, 1343, 1554, 1608, 1153, 1152, 1149],
    ],
    (500000, 0.5): [
        [784, 712, 713, 713, 714, 713, 713, 712],
        [807, 714, 715, 718, 800, 715, 716, 719],
        [821, 715, 730, 874, 928, 722, 729, 729],
        [816, 724, 808, 845, 890, 735, 730, 731],
    ],
}

# Thousands, by budget: rows m, Q1, Q2, mean; columns Z and UCB1 with 5, 10, 15 points.
TABLE2: dict[int, list[list[float]]] = {
    50_000: [[0.7, 0.0, 0.0, 0.0], [1.4, 0.0, 0.0, 1.5], [2.0, 0.1, 2.9, 5.7], [1.9, 2.2, 3.4, 4.7]],
    100_000: [[2.6, 0.0, 0.0, 0.0], [4.0, 0.0, 0.4, 2.4], [4.7, 0.3, 5.7, 11.7], [5.0, 4.6, 7.2, 9.3]],
    500_000: [[43.3, 0.0, 0.0, 0.0], [48.6, 0.0, 8.0, 27.2], [53.2, 14.7, 46.3, 70.7], [51.9, 32.3, 48.6, 60.1]],
}


def in_table1(budget: int, lam: float, statistic: int, column: int) -> float | None:
    """A cell of Table 1; None: not a published one."""
    rows = TABLE1.get((budget, lam))
    return rows[statistic][column] if rows else None


def statistics(samples: np.ndarray) -> np.ndarray:
    """(m, Q1, Q2, mean) over the last axis, as the first axis."""
    quartiles = np.quantile(samples, [0.0, 0.25, 0.5], axis=-1)
    return np.concatenate([quartiles, samples.mean(axis=-1)[None]])


def errors(samples: np.ndarray, draws: int = 400) -> np.ndarray:
    """Standard errors of :func:`statistics` by a bootstrap over instances (too small for the minimum)."""
    rng = np.random.default_rng(0)
    picks = rng.integers(0, samples.shape[-1], (draws, samples.shape[-1]))
    return np.std([statistics(samples[..., pick]) for pick in picks], axis=0, ddof=1)


def distance(published: np.ndarray, measured: np.ndarray, error: np.ndarray, unit: float) -> np.ndarray:
    """How many standard errors lie between a published and a measured number.

    Both come from as many random instances, so the difference has √2 times our error; a printed number is rounded to
    ``unit``, which adds unit²/12.
    """
    return (measured - published) / np.sqrt(2 * error**2 + unit**2 / 12)


def inside(item: str, z: Any, note: str, published: str = "all") -> Row:
    """How many distances are at most 3 standard errors; yes: all but what chance would leave out (5 %)."""
    size = np.abs(z)
    count = int((size <= 3).sum())
    chance = float(stats.binom.sf(size.size - count - 1, size.size, 2 * stats.norm.sf(3)))
    note = f"{note}; so many outside by chance: {chance:.2g}"
    return row(item, f"{count} of {size.size}", published=published, holds=chance > 0.05, note=note)
