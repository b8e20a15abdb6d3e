"""The rule to stop: what must be clear, after how many runs one looks, and what a run can earn,
which it must know.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits.apps.comparison.arms_table import money_cost
from jaxbandits.apps.comparison.worlds import CountPosterior, LogPosterior
from jaxbandits.core import InputError
from jaxbandits.statistics import ClearPairs

if TYPE_CHECKING:
    from jaxbandits.apps.comparison.plan import ComparisonPlan

UNTIL = ("clear", "best")
CLAIMS = ("any", "most runs", "average")
# Looks at most, unless a batch would be smaller or larger than that.
_LOOKS, _SMALLEST_BATCH, _LARGEST_BATCH = 40, 20, 250
_RARE = 6 * math.log(10)  # −ln of the chance of more
_SLOPES = np.geomspace(1e-6, 8.0, 240)  # θ


@dataclasses.dataclass(frozen=True)
class StoppingRule:
    """When to stop."""

    until: str  # "clear" (every pair) or "best" (one setting against every other)
    claim: str = "any"  # which must be clear: "any", "most runs" or "average"
    max_runs: int = 1000  # at most

    def batch(self, runs: int) -> int:
        """Runs between two looks."""
        return min(runs, max(_SMALLEST_BATCH, min(_LARGEST_BATCH, -(-runs // _LOOKS))))

    def is_reached(self, pairs: ClearPairs) -> bool:
        """Whether that is clear which shall be."""
        clear = ahead(pairs, self.claim) | np.eye(pairs.most.shape[0], dtype=bool)
        return bool(clear.all(axis=1).any() if self.until == "best" else (clear | clear.T).all())


def ahead(pairs: ClearPairs, claim: str) -> np.ndarray:
    """Whether the row is clearly ahead of the column, ``bool[setting, setting]``."""
    most_runs, average = (part.values > 0 for part in pairs)
    return {"any": most_runs | average, "most runs": most_runs, "average": average}[claim]


def most_earned(plan: ComparisonPlan) -> float:
    """No run earns more than this, averaged over the instances, in the file's unit of reward, but
    once in a million.

    With independent rewards and costs in [0, 1] of their bounds, of means r_k and c_k, for every θ
    > 0 there is the least κ with (1 + r_k (e^θ − 1)) (1 − c_k (1 − e^−κ)) ≤ 1 for all arms. Then
    exp(θ R − κ C) is a supermartingale under every policy, R and C being what was earned and spent
    so far. So P(R > b) ≤ ε for b = (κ C + ln(1/ε)) / θ, C the budget and one cost more; the best θ
    is taken. Where the two depend on each other, as in rows of a log, the root of that is one
    (Cauchy and Schwarz), hence 2 ln(1/ε). Over T rounds it is C = T and κ = max_k ln(1 + r_k (e^θ −
    1)). Where means are drawn, the largest reward and the least cost that may be drawn are taken;
    of a log, whose rows have weights of their own in each run, the best ratio of any row.

    Raises:
        InputError: an arm may earn at no cost, so that there is no bound.
    """
    bounds = [_most_of(plan, row) for row in range(len(plan.table.instances))]
    for instance, bound in zip(plan.table.instances, bounds, strict=True):
        if not math.isfinite(bound):
            earner = "a row" if plan.table.kind == "log" else "an arm"
            name = f"instance {instance.name!r}"
            raise InputError(
                f"{name}: {earner} earns at no cost, so that no bound of a run is known"
            )
    return float(np.mean(bounds))


def _most_of(plan: ComparisonPlan, row: int) -> float:
    """The bound of one instance."""
    instance, rounds = plan.table.instances[row], plan.spending.rounds
    posterior = plan.worlds.posterior and plan.worlds.posterior.instances[row]
    # Of several costs the money alone bounds what is earned.
    spent = float(money_cost(plan.spending.scaled_budgets([instance]))[0]) + 1
    rare = _RARE * (1 + (plan.worlds.noise == "empirical"))
    reward, cost = instance.scaled_mean_reward, money_cost(instance.scaled_mean_cost)
    if isinstance(posterior, CountPosterior):
        rewards, costs, _ = posterior.extremes()
        reward, cost = np.minimum(rewards / instance.reward_bound, 1), costs / instance.cost_bound
    with np.errstate(divide="ignore", invalid="ignore"):
        if rounds is not None:
            reward = np.ones(1) if isinstance(posterior, LogPosterior) else reward
            kappa = np.log1p(reward.max() * np.expm1(_SLOPES))
            spent, rare = float(rounds), _RARE
        elif isinstance(posterior, LogPosterior):
            ratios = (r / money_cost(c) for r, c in posterior.rows)
            best = max(float(np.nan_to_num(x, nan=0.0, posinf=np.inf).max()) for x in ratios)
            return best * spent * float(np.ravel(instance.cost_bound)[0])
        else:  # no κ is enough where 1 or more is needed
            needed = 1 - 1 / (1 + reward * np.expm1(_SLOPES)[:, None])
            needed = needed / np.maximum(cost, 1e-300)
            kappa = np.where(needed < 1, -np.log1p(-needed), np.inf).max(axis=1)
    return instance.reward_bound * float(((kappa * spent + rare) / _SLOPES).min())
