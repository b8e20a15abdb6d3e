"""Intervals for the means of a file's arms: rates, costs, and cost per result."""

from __future__ import annotations

import math

import numpy as np

from jaxbandits.apps.comparison.arms_table import FloatArray, Instance
from jaxbandits.statistics import Estimate
from jaxbandits.statistics.estimates import t_quantile

_LEVEL, _LEAST_DAYS = 0.95, 3
_Z = 1.959963984540054  # the normal law's quantile at 0.975


def wilson(successes: float, trials: float) -> Estimate:
    """A rate x/n: (x + z²/2 ± z·√(x(n−x)/n + z²/4)) / (n + z²), z = 1.96; within [0, 1]."""
    if trials <= 0:
        return _alone(math.nan)
    half = _Z * math.sqrt(max(successes * (trials - successes) / trials, 0) + _Z**2 / 4)
    middle, whole = successes + _Z**2 / 2, trials + _Z**2
    low, high = max((middle - half) / whole, 0.0), min((middle + half) / whole, 1.0)
    return Estimate(successes / trials, low if successes else 0.0, high, int(trials), ())


def ratio_estimate(above: FloatArray, below: FloatArray) -> Estimate:
    """r = Σa/Σb over n ≥ 3 rows or days, at least 0: r ± t·√(n/(n−1)·Σ(a − r·b)²)/Σb."""
    n, whole = len(above), math.fsum(below)
    if whole <= 0:
        return _alone(math.inf if math.fsum(above) > 0 else math.nan)
    mean = math.fsum(above) / whole
    if n < _LEAST_DAYS:
        return _alone(mean)
    error = math.sqrt(n / (n - 1) * float(((above - mean * below) ** 2).sum())) / whole
    half = float(t_quantile(0.5 + _LEVEL / 2, n - 1)) * error
    return Estimate(mean, max(mean - half, 0.0), mean + half, n, ())


def _alone(value: float) -> Estimate:
    """A number of which the file does not say how sure it is."""
    return Estimate(value, math.nan, math.nan, 0, ())


def estimates(instance: Instance) -> list[tuple[Estimate, Estimate, Estimate]]:
    """Reward per pull, cost per pull and cost per reward of each arm, from the file, no prior.

    ``low`` and ``high`` are NaN where the file cannot say (totals alone tell nothing of a cost's
    spread).
    """
    return [_estimate(instance, arm) for arm in range(len(instance.arms))]


def _estimate(instance: Instance, arm: int) -> tuple[Estimate, Estimate, Estimate]:
    evidence = instance.evidence
    totals = evidence.totals(arm)
    if totals is None:
        reward, cost = float(instance.mean_reward[arm]), float(instance.mean_cost[arm])
        return _alone(reward), _alone(cost), _alone(cost / reward if reward else math.inf)
    clicks, value, spent = totals
    parts = [np.array([x]) for x in totals]
    if instance.log is not None:
        values, costs = instance.log[arm]
        parts = [np.ones_like(values), values, costs]
    elif evidence.daily is not None:
        daily = evidence.daily[arm]
        parts = [daily.clicks, daily.value, daily.spent]
    rate = wilson(value, clicks) if evidence.whole else ratio_estimate(parts[1], parts[0])
    price, per_result = ratio_estimate(parts[2], parts[0]), ratio_estimate(parts[2], parts[1])
    if math.isnan(per_result.low) and evidence.whole and spent > 0:
        # the cost as it is, the rate's interval turned round
        ends = spent / clicks / rate.high, spent / clicks / rate.low if rate.low else math.inf
        per_result = Estimate(per_result.value, *ends, rate.units, ())
    return rate, price, per_result
