"""What a run can earn: a bound that no policy passes but once in a million runs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison.mean_draws import LARGEST_UNIFORM
from jaxbandits.comparison.plan import ComparisonPlan
from jaxbandits.comparison.posterior import CountPosterior
from jaxbandits.core.errors import InputError

FloatArray = NDArray[np.float64]

_RARE = 6 * math.log(10)  # −ln of the chance of more
_SLOPES = np.geomspace(1e-6, 8.0, 240)  # θ


def most_earned(plan: ComparisonPlan) -> float:
    """No run earns more than this, averaged over the instances, in the file's unit of reward, but once in a million.

    With independent rewards and costs in [0, 1] of their bounds, of means r_k and c_k, for every θ > 0 there is the
    least κ with (1 + r_k (e^θ − 1)) (1 − c_k (1 − e^−κ)) ≤ 1 for all arms. Then exp(θ R − κ C) is a supermartingale
    under every policy, R and C being what was earned and spent so far. So P(R > b) ≤ ε for b = (κ C + ln(1/ε)) / θ, C
    the budget and one cost more; the best θ is taken. Where the two depend on each other, as in rows of a log, the root
    of that is one (Cauchy and Schwarz), hence 2 ln(1/ε). Over T rounds it is C = T and κ = max_k ln(1 + r_k (e^θ − 1)).
    Where means are drawn, the largest reward and the least cost that may be drawn are taken; of a log, whose rows have
    weights of their own in each run, the best ratio of any row.

    Raises:
        InputError: an arm may earn at no cost, so that there is no bound.
    """
    return float(np.mean([_of_instance(plan, row) for row in range(len(plan.table.instances))]))


def _of_instance(plan: ComparisonPlan, row: int) -> float:
    instance = plan.table.instances[row]
    if plan.rounds is not None:
        reward, _ = _means(plan, row)
        return instance.reward_bound * _least_of(_per_round(reward), float(plan.rounds), _RARE)
    spent = float(plan.scaled_budgets[row]) + 1
    if plan.posterior is not None and not isinstance(plan.posterior.instances[row], CountPosterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = [np.nan_to_num(r / c, nan=0.0, posinf=np.inf).max() for r, c in instance.log or ()]
        if not np.isfinite(ratios).all():
            raise InputError(
                f"instance {instance.name!r}: a row earns at no cost, so there is no bound of what a run earns"
            )
        return float(max(ratios)) * spent * instance.cost_bound
    return instance.reward_bound * _least_of(
        _per_cost(*_means(plan, row)), spent, _RARE * (1 + (plan.noise == "empirical"))
    )


def _means(plan: ComparisonPlan, row: int) -> tuple[FloatArray, FloatArray]:
    """Largest mean rewards and least mean costs of the arms, over their bounds, ``[K]``."""
    instance = plan.table.instances[row]
    if plan.posterior is not None and isinstance(found := plan.posterior.instances[row], CountPosterior):
        reward, cost = found.quantiles(LARGEST_UNIFORM, 1 - LARGEST_UNIFORM)
        return np.minimum(reward / instance.reward_bound, 1), cost / instance.cost_bound
    if plan.posterior is not None:
        return np.ones(1), np.zeros(1)
    return instance.scaled_mean_reward, instance.scaled_mean_cost


def _per_cost(reward: FloatArray, cost: FloatArray) -> FloatArray:
    """The least κ for each θ; ∞ where there is none."""
    grown = 1 + reward * np.expm1(_SLOPES)[:, None]
    needed = (1 - 1 / grown) / np.maximum(cost, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(needed < 1, -np.log1p(-needed), np.inf).max(axis=1)


def _per_round(reward: FloatArray) -> FloatArray:
    return np.log1p(reward.max() * np.expm1(_SLOPES))


def _least_of(kappa: FloatArray, spent: float, rare: float) -> float:
    found = ((kappa * spent + rare) / _SLOPES).min()
    if not np.isfinite(found):
        raise InputError("bound: an arm may earn at almost no cost, so that there is no bound of what a run earns")
    return float(found)
