"""Play until it is clear: when to stop, what is clear then, and a bound of what one run can earn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits.comparison.arms_table import money
from jaxbandits.comparison.worlds import CountPosterior, LogPosterior
from jaxbandits.core.checks import InputError
from jaxbandits.statistics import ClearPairs, clear_pairs

if TYPE_CHECKING:
    from jaxbandits.comparison.plan import ComparisonPlan

UNTIL = ("clear", "best")
CLAIMS = ("any", "most runs", "average")
_LOOKS, _LEAST, _MOST = 40, 20, 250  # looks at most, unless a batch would be smaller or larger than that
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
    return float(np.mean([_most_of(plan, row) for row in range(len(plan.table.instances))]))


def _most_of(plan: ComparisonPlan, row: int) -> float:
    """The bound of one instance."""
    instance = plan.table.instances[row]
    posterior = None if plan.posterior is None else plan.posterior.instances[row]
    # Of several costs the money alone bounds what is earned.
    spent, rare = float(money(plan.scaled_budgets)[row]) + 1, _RARE * (1 + (plan.noise == "empirical"))
    reward, cost = instance.scaled_mean_reward, money(instance.scaled_mean_cost)
    if isinstance(posterior, CountPosterior):
        rewards, costs, _ = posterior.extremes()
        reward, cost = np.minimum(rewards / instance.reward_bound, 1), costs / instance.cost_bound
    if plan.rounds is not None:
        reward = np.ones(1) if isinstance(posterior, LogPosterior) else reward
        kappa, spent, rare = np.log1p(reward.max() * np.expm1(_SLOPES)), float(plan.rounds), _RARE
    elif isinstance(posterior, LogPosterior):
        with np.errstate(divide="ignore", invalid="ignore"):
            best = max(np.nan_to_num(r / money(c), nan=0.0, posinf=np.inf).max() for r, c in posterior.rows)
        if not np.isfinite(best):
            raise InputError(
                f"instance {instance.name!r}: a row earns at no cost, so there is no bound of what a run earns"
            )
        return float(best) * spent * float(np.ravel(instance.cost_bound)[0])
    else:
        needed = (1 - 1 / (1 + reward * np.expm1(_SLOPES)[:, None])) / np.maximum(cost, 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):  # no κ is enough where 1 or more is needed
            kappa = np.where(needed < 1, -np.log1p(-needed), np.inf).max(axis=1)
    found = ((kappa * spent + rare) / _SLOPES).min()
    if not np.isfinite(found):
        raise InputError("bound: an arm may earn at almost no cost, so that there is no bound of what a run earns")
    return instance.reward_bound * float(found)


@dataclass(frozen=True)
class StoppingRule:
    """When to stop.

    Attributes:
        what: ``"clear"`` (every pair) or ``"best"`` (one setting against every other).
        claim: which must be clear: ``"any"``, ``"most runs"`` or ``"average"``.
        max_runs: how many runs are played at most.
    """

    what: str
    claim: str = "any"
    max_runs: int = 1000

    def batch(self, runs: int) -> int:
        """Runs between two looks."""
        return min(runs, max(_LEAST, min(_MOST, -(-runs // _LOOKS))))

    def reached(self, pairs: ClearPairs) -> bool:
        """Whether that is clear which shall be."""
        clear = ahead(pairs, self.claim) | np.eye(pairs.most.shape[0], dtype=bool)
        return bool(clear.all(axis=1).any() if self.what == "best" else (clear | clear.T).all())


def ahead(pairs: ClearPairs, claim: str) -> np.ndarray:
    """Whether the row is clearly ahead of the column, ``bool[setting, setting]``."""
    most, average = (part.values > 0 for part in pairs)
    return {"any": most | average, "most runs": most, "average": average}[claim]


@dataclass(frozen=True, eq=False)
class Clearness:
    """What was clear when the last batch had been played.

    Attributes:
        rule: when to stop.
        pairs: which setting earns clearly more than which, and after how many runs that was clear.
        bound: what a run can earn, averaged over the instances, in the file's unit.
        runs, looks: how many were played, and looked at.
        reached: whether that is clear which should be.
        beyond: runs that earned more than the bound (once in a million); what is more was not counted.
    """

    rule: StoppingRule
    pairs: ClearPairs
    bound: float
    runs: int
    looks: int
    reached: bool
    beyond: int

    @property
    def saved(self) -> int:
        """Runs that were not needed."""
        return self.rule.max_runs - self.runs

    def open_pairs(self, claim: str) -> int:
        """How many pairs are not clear."""
        clear = ahead(self.pairs, claim)
        return int((~(clear | clear.T))[np.triu_indices(len(clear), 1)].sum())

    def about(self) -> dict[str, Any]:
        """Numbers for ``run.json``: for each ordered pair the run after which it was clear, 0 if it is not."""
        after = {"most_runs": self.pairs.most.values.tolist(), "average": self.pairs.average.values.tolist()}
        played = {name: getattr(self, name) for name in ("runs", "looks", "reached", "bound")}
        rule = {"until": self.rule.what, "claim": self.rule.claim, "max_runs": self.rule.max_runs}
        return {**rule, **played, "clear_after": after}


def look(plan: ComparisonPlan, rule: StoppingRule, earned: np.ndarray, looks: int) -> Clearness:
    """What is clear by now, from what each run earned on average over the instances, ``[setting, run]``."""
    import xarray

    bound, labels = most_earned(plan), {"setting": list(plan.settings)}
    pairs = clear_pairs(xarray.DataArray(earned, dims=("setting", "replicate"), coords=labels), bound)
    beyond = int((earned > bound).any(axis=0).sum())
    return Clearness(rule, pairs, bound, earned.shape[1], looks, rule.reached(pairs), beyond)
