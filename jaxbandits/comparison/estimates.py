"""How sure a file is of its arms' means: 95 % intervals of rates, of means over rows, of ratios over days."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jaxbandits.comparison.arms_table import Instance
from jaxbandits.comparison.evidence import FloatArray
from jaxbandits.statistics.student import t_quantile

_LEVEL = 0.95
_Z = 1.959963984540054  # the normal law's quantile at 0.975
_LEAST_DAYS = 3
WILSON, ROWS, DAYS = "Wilson's score interval", "Student's t over the rows", "Student's t over the days"


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        mean: may be infinite (cost per result of an arm without results).
        low, high: NaN where the file cannot say (totals alone tell nothing of a cost's spread).
        how: which interval it is; empty where there is none.
    """

    mean: float
    low: float = math.nan
    high: float = math.nan
    how: str = ""


def wilson(successes: float, trials: float) -> Estimate:
    """Of a rate x/n: (x + z²/2 ± z·√(x(n−x)/n + z²/4)) / (n + z²), z = 1.96; within [0, 1] for every x.

    Example:
        >>> found = wilson(5, 100)
        >>> f"{found.mean} in [{found.low:.4f}, {found.high:.4f}]"
        '0.05 in [0.0215, 0.1118]'
    """
    if trials <= 0:
        return Estimate(math.nan)
    half = _Z * math.sqrt(max(successes * (trials - successes) / trials, 0) + _Z**2 / 4)
    middle, whole = successes + _Z**2 / 2, trials + _Z**2
    low, high = max((middle - half) / whole, 0.0), min((middle + half) / whole, 1.0)
    return Estimate(successes / trials, low if successes else 0.0, high, WILSON)


def ratio(above: FloatArray, below: FloatArray, how: str) -> Estimate:
    """Of Σaᵢ/Σbᵢ over n ≥ 3 rows or days: r ± t·√(n/(n−1)·Σ(aᵢ − r·bᵢ)²)/Σbᵢ, never below 0; with b = 1 that of a mean.

    Example:
        >>> found = ratio(np.array([1.0, 2.0, 3.0]), np.ones(3), ROWS)
        >>> f"{found.mean} in [{found.low:.4f}, {found.high:.4f}]"
        '2.0 in [0.0000, 4.4841]'
    """
    n, whole = len(above), math.fsum(below)
    if whole <= 0:
        return Estimate(math.inf if math.fsum(above) > 0 else math.nan)
    mean = math.fsum(above) / whole
    if n < _LEAST_DAYS:
        return Estimate(mean)
    error = math.sqrt(n / (n - 1) * float(((above - mean * below) ** 2).sum())) / whole
    half = float(t_quantile(0.5 + _LEVEL / 2, n - 1)) * error
    return Estimate(mean, max(mean - half, 0.0), mean + half, how)


def estimates(instance: Instance) -> list[tuple[Estimate, Estimate, Estimate]]:
    """Of each arm: reward per pull, cost per pull, cost per reward; as in the file, without prior.

    Example:
        >>> from jaxbandits.comparison.evidence import Evidence
        >>> counts = Evidence("counts", np.array([100.0, 9.0]), np.array([5.0, 0.0]), np.array([50.0, 9.0]), whole=True)
        >>> ads = Instance("ads", ("a", "b"), np.array([0.05, 0]), np.array([0.5, 1]), 1.0, 1.0, None, counts)
        >>> [[round(x.mean, 3) for x in of_arm] for of_arm in estimates(ads)]
        [[0.05, 0.5, 10.0], [0.0, 1.0, inf]]
    """
    return [_estimate(instance, arm) for arm in range(len(instance.arms))]


def _estimate(instance: Instance, arm: int) -> tuple[Estimate, Estimate, Estimate]:
    evidence = instance.evidence
    if evidence is None or evidence.clicks is None or evidence.value is None or evidence.spent is None:
        return _of_means(instance, arm)
    clicks, value, spent = (float(x[arm]) for x in (evidence.clicks, evidence.value, evidence.spent))
    if not clicks:  # the prior alone
        return _of_means(instance, arm)
    if instance.log is not None:
        values, costs = instance.log[arm]
        parts, how = (np.ones_like(values), values, costs), ROWS
    elif evidence.daily is not None:
        daily = evidence.daily[arm]
        parts, how = (daily.clicks, daily.value, daily.spent), DAYS
    else:
        parts, how = (np.array([clicks]), np.array([value]), np.array([spent])), ""
    rate = wilson(value, clicks) if evidence.whole else ratio(parts[1], parts[0], how)
    price, per_result = ratio(parts[2], parts[0], how), ratio(parts[2], parts[1], how)
    if math.isnan(per_result.low) and evidence.whole and spent > 0:
        # the cost as it is, the rate's interval turned round
        ends = spent / clicks / rate.high, spent / clicks / rate.low if rate.low else math.inf
        per_result = Estimate(per_result.mean, *ends, WILSON)
    return rate, price, per_result


def _of_means(instance: Instance, arm: int) -> tuple[Estimate, Estimate, Estimate]:
    reward, cost = float(instance.mean_reward[arm]), float(instance.mean_cost[arm])
    return Estimate(reward), Estimate(cost), Estimate(cost / reward if reward else math.inf)
