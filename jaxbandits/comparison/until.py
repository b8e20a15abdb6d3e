"""Play until it is clear: when to stop, what is clear then, and a bound of what one run can earn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jaxbandits.comparison.posterior import LARGEST_UNIFORM, CountPosterior
from jaxbandits.core.checks import InputError, bad, whole_number
from jaxbandits.statistics import ClearPairs, clear_pairs

if TYPE_CHECKING:
    from jaxbandits.comparison.plan import ComparisonPlan

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
        return instance.reward_bound * _least_of(np.log1p(reward.max() * np.expm1(_SLOPES)), float(plan.rounds), _RARE)
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


def _least_of(kappa: FloatArray, spent: float, rare: float) -> float:
    found = ((kappa * spent + rare) / _SLOPES).min()
    if not np.isfinite(found):
        raise InputError("bound: an arm may earn at almost no cost, so that there is no bound of what a run earns")
    return float(found)


# --- When to stop, and what is clear then


UNTIL = ("clear", "best")
CLAIMS = ("any", "most runs", "average")
LEVEL = 0.95
_LOOKS, _LEAST, _MOST = 40, 20, 250  # looks at most, unless a batch would be smaller or larger than that


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

    @staticmethod
    def checked(until: Any, claim: Any, max_runs: Any, runs: Any) -> StoppingRule | None:
        """From arguments; None where ``until`` is.

        Raises:
            InputError: naming the argument.
        """
        for name, value, known in (("until", until, UNTIL), ("claim", claim, CLAIMS)):
            if value not in known and not (name == "until" and value is None):
                raise bad(name, value, " or ".join(map(repr, known)))
        if until is None:
            if max_runs is not None:
                raise bad("max_runs", max_runs, "left out without until")
            if claim != "any":
                raise bad("claim", claim, "left out without until")
            return None
        if runs is not None:
            raise bad("runs", runs, "left out with until (max_runs says how many at most)")
        return StoppingRule(
            until, claim, 1000 if max_runs is None else whole_number("max_runs", max_runs, 2, 2**32 - 1)
        )

    def check(self, plan: ComparisonPlan) -> None:
        """Whether there is something to compare, and a bound of what a run may earn."""
        if len(plan.settings) < 2:
            raise bad("until", self.what, "left out with one setting: there is nothing to compare it with")
        most_earned(plan)

    def batch(self, runs: int) -> int:
        """Runs between two looks."""
        return min(runs, max(_LEAST, min(_MOST, -(-runs // _LOOKS))))

    def reached(self, pairs: ClearPairs) -> bool:
        """Whether that is clear which shall be."""
        clear = ahead(pairs, self.claim)
        if self.what == "best":
            return bool((clear | np.eye(len(clear), dtype=bool)).all(axis=1).any())
        return bool((clear | clear.T | np.eye(len(clear), dtype=bool)).all())


def ahead(pairs: ClearPairs, claim: str) -> np.ndarray:
    """Whether the row is clearly ahead of the column, ``bool[setting, setting]``."""
    most, average = (part.values > 0 for part in pairs)
    return most | average if claim == "any" else most if claim == "most runs" else average


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
        return {
            "until": self.rule.what,
            "claim": self.rule.claim,
            "max_runs": self.rule.max_runs,
            "runs": self.runs,
            "looks": self.looks,
            "reached": self.reached,
            "bound": self.bound,
            "clear_after": {
                name: part.values.tolist() for name, part in zip(("most_runs", "average"), self.pairs, strict=True)
            },
        }


def look(plan: ComparisonPlan, rule: StoppingRule, earned: np.ndarray, looks: int) -> Clearness:
    """What is clear by now, from what each run earned on average over the instances, ``[setting, run]``."""
    import xarray

    bound = most_earned(plan)
    labels = {"setting": list(plan.settings)}
    pairs = clear_pairs(xarray.DataArray(earned, dims=("setting", "replicate"), coords=labels), bound, level=LEVEL)
    beyond = int((earned > bound).any(axis=0).sum())
    return Clearness(rule, pairs, bound, earned.shape[1], looks, rule.reached(pairs), beyond)
