"""The most that a budget can earn from known arms: dynamic programs, the best set's rate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxbandits._numerics.arrays import one_of
from jaxbandits.constraints import LAST_PULLS
from jaxbandits.core import ticks
from jaxbandits.core.checks import numbers, refuse, whole_number
from jaxbandits.core.tables import alike

_MOST_LEVELS = 200_000
_MOST_CELLS = 20_000_000


class ArmLaw(NamedTuple):
    """All outcomes of a pull, ``[J]`` each: probabilities, rewards and costs in [0, 1]."""

    probability: np.ndarray
    reward: np.ndarray
    cost: np.ndarray


class Optimum(NamedTuple):
    """The optimal policy for a budget.

    Attributes:
        value: expected total reward from the start.
        values: the same from every level of what is spent, ``f64[levels]``: level j means j · step
            spent.
        choice: an optimal arm at every level, the lowest index among equals, ``i64[levels]``.
        step: the greatest common divisor of all costs.
    """

    value: float
    values: np.ndarray
    choice: np.ndarray
    step: float


def bernoulli_law(mean_reward: float, mean_cost: float | Sequence[float]) -> ArmLaw:
    """Independent rewards and costs of 0 or 1; d mean costs give d resources, ``[J, d]``.

    Example:
        >>> from jaxbandits.oracles.optimum import bernoulli_law
        >>> law = bernoulli_law(0.5, [0.25, 1.0])
        >>> law.probability.tolist(), law.cost.tolist()
        ([0.375, 0.125, 0.375, 0.125], [[0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    """
    costs = np.asarray(mean_cost, np.float64)
    if costs.ndim == 0:
        coins = ([(1 - x, 0.0), (x, 1.0)] for x in (mean_reward, float(costs)))
        return independent_law(*coins)
    means = np.array([mean_reward, *costs])
    outcomes = np.array(list(itertools.product((0.0, 1.0), repeat=means.size)))
    probability = np.where(outcomes > 0, means, 1 - means).prod(axis=1)
    possible = outcomes[probability > 0]
    return ArmLaw(probability[probability > 0], possible[:, 0], possible[:, 1:])


def independent_law(
    reward: Sequence[tuple[float, float]], cost: Sequence[tuple[float, float]]
) -> ArmLaw:
    """The product of two laws, each a list of (probability, value)."""
    pairs = [(p * q, r, c) for p, r in reward for q, c in cost]
    return ArmLaw(*(np.array(x, np.float64) for x in zip(*pairs, strict=True)))


def budgeted_optimum(arms: Sequence[ArmLaw], budget: float, *, last_pull: str) -> Optimum:
    """The largest expected reward of any policy under a total budget with known distributions.

    With b spent, a policy that knows the laws needs to look at nothing else, and

    .. math:: V(b) = \\max_k \\frac{E[r_k 1\\{\\text{earned}\\}] + \\sum_{c > 0} P(c_k = c)\\, V(b + c)}{P(c_k > 0)},
        \\qquad V(b) = 0 \\text{ for } b \\ge B;

    a pull that costs nothing leaves b as it was, so that the same arm is pulled until it costs
    something. Costs are rounded to ticks of 2⁻²⁴; V is computed on multiples of their greatest
    common divisor.

    Args:
        arms: the law of each arm, none of which costs nothing for sure.
        budget: B > 0, rounded down to ticks as by :class:`~jaxbandits.TotalBudget`; at most 200,000
            steps of the common divisor.
        last_pull: ``"counts"`` or ``"forfeits"``, as in :class:`~jaxbandits.TotalBudget`.

    Example:
        A sure thing of cost ½ against a better rate in coins of 1, with ¾ to spend: the last pull
        counts.

        >>> from jaxbandits.oracles.optimum import bernoulli_law, budgeted_optimum, independent_law
        >>> sure = independent_law([(1.0, 0.5)], [(1.0, 0.5)])
        >>> coin = bernoulli_law(0.625, 0.5)
        >>> best = budgeted_optimum([sure, coin], 0.75, last_pull="counts")
        >>> best.value, best.choice.tolist(), best.step
        (1.75, [0, 1], 0.5)
    """
    one_of("last_pull", last_pull, LAST_PULLS)
    whole = int(ticks.floor_from_units(budget))
    refuse("budget", budget, whole < 1, "a number above 0 (at least one tick, 2**-24)")
    laws = [_checked(k, law) for k, law in enumerate(arms)]
    step = math.gcd(*(int(c) for _, _, cost in laws for c in cost))
    levels = -(-whole // step)
    must = f"at most {_MOST_LEVELS} times {step / ticks.ONE:.3g}, the common step of all costs"
    refuse("budget", budget, levels > _MOST_LEVELS, must)
    values, choice = np.zeros(levels), np.zeros(levels, np.int64)
    for level in reversed(range(levels)):
        worth = [_worth(law, level, step, whole, values, last_pull == "forfeits") for law in laws]
        choice[level] = int(np.argmax(worth))
        values[level] = worth[choice[level]]
    return Optimum(float(values[0]), values, choice, step / ticks.ONE)


class KnapsackOptimum(NamedTuple):
    """The optimal policy for several budgets and T rounds.

    Attributes:
        value: expected total reward from the start.
        choice: an optimal arm before every round at every level of what is spent, the lowest index
            among equals, ``i64[T, levels of resource 0, …]``: level i of resource j means i ·
            step_j spent.
        step: of each resource the greatest common divisor of all its costs, ``f64[d]``.
    """

    value: float
    choice: np.ndarray
    step: np.ndarray


def knapsack_optimum(
    arms: Sequence[ArmLaw], budget: Sequence[float], rounds: int, *, last_pull: str
) -> KnapsackOptimum:
    """The largest expected reward of any policy for d budgets, T rounds, known distributions.

    .. math:: V_t(b) = \\max_k E\\big[r_k 1\\{\\text{earned}\\} + V_{t+1}(b + c_k)\\big], \\qquad
        V_t(b) = 0 \\text{ if } b_j \\ge B_j \\text{ for some } j \\text{ or } t > T.

    The exact form of what the fluid LP bounds from above, for few arms, resources and rounds.

    Args:
        arms: the law of each arm, costs ``[J, d]``.
        budget: B > 0, ``[d]``, rounded down to ticks as by :class:`~jaxbandits.TotalBudget`.
        rounds: T.
        last_pull: ``"counts"`` or ``"forfeits"``, as in :class:`~jaxbandits.TotalBudget`.

    Example:
        Two arms that pay from different purses, and four rounds. The dear purse ends the run with
        its second pull, so the better arm is pulled last.

        >>> from jaxbandits.oracles.optimum import bernoulli_law, knapsack_optimum
        >>> arms = [bernoulli_law(0.75, [1.0, 0.0]), bernoulli_law(0.5, [0.0, 1.0])]
        >>> best = knapsack_optimum(arms, [2.0, 3.0], rounds=4, last_pull="counts")
        >>> best.value, best.choice[0, 0, 0].item(), best.choice[3, 1, 2].item()
        (2.5, 0, 0)
    """
    one_of("last_pull", last_pull, LAST_PULLS)
    whole_number("rounds", rounds, 1)
    whole = ticks.floor_from_units(numbers("budget", budget))
    must = "a list of numbers above 0, one for each resource (at least one tick, 2**-24)"
    refuse("budget", np.ravel(budget).tolist(), whole.ndim != 1 or (whole < 1).any(), must)
    laws = [_checked(k, law, whole.size) for k, law in enumerate(arms)]
    step = np.gcd.reduce(np.concatenate([law.cost for law in laws]), axis=0)
    step = np.where(step > 0, step, ticks.ONE)  # a resource that nobody uses
    levels = tuple((-(-whole // step)).tolist())
    must = f"at most {_MOST_CELLS} rounds times levels of what is spent"
    large = rounds * math.prod(levels) > _MOST_CELLS
    refuse("budget, rounds", (list(budget), rounds), large, must)
    spent = np.moveaxis(np.indices(levels), 0, -1) * step
    values, choice = np.zeros(levels), np.zeros((rounds, *levels), np.int64)
    for t in reversed(range(rounds)):
        worth = np.zeros((len(laws), *levels))
        for total, law in zip(worth, laws, strict=True):
            for probability, reward, cost in zip(*law, strict=True):
                after = np.zeros(levels)  # where a budget is spent, nothing comes after
                window = tuple(slice(int(c // s), None) for c, s in zip(cost, step, strict=True))
                remaining = values[window]
                after[tuple(slice(0, n) for n in remaining.shape)] = remaining
                over = (spent + cost > whole).any(axis=-1) & (last_pull == "forfeits")
                total += probability * (np.where(over, 0.0, reward) + after)
        choice[t] = np.argmax(worth, axis=0)
        values = worth.max(axis=0)
    return KnapsackOptimum(float(values.flat[0]), choice, step / ticks.ONE)


def _worth(
    law: ArmLaw, level: int, step: int, budget: int, values: np.ndarray, forfeits: bool
) -> float:
    """The bracket of the formula: one arm at one level, costs in ticks."""
    spent = level * step + law.cost
    earned = np.where(spent <= budget, law.reward, 0.0) if forfeits else law.reward
    after = np.where(spent < budget, values[np.minimum(spent // step, values.size - 1)], 0.0)
    costly = law.cost > 0
    gained = law.probability @ earned + law.probability[costly] @ after[costly]
    return float(gained / law.probability[costly].sum())


def _checked(k: int, law: ArmLaw, resources: int | None = None) -> ArmLaw:
    """The outcomes that are possible, costs in ticks."""
    place, names = f"arms[{k}]", law._fields
    fields = zip(names, law, strict=True)
    probability, reward, cost = (numbers(f"{place}.{name}", x) for name, x in fields)
    shapes = probability.shape, reward.shape, cost.shape
    more = () if resources is None else (resources,)
    fits = probability.ndim == 1 and shapes[1:] == (shapes[0], shapes[0] + more)
    costs = "[J]" if resources is None else f"[J, {resources}]"
    refuse(place, shapes, not fits, f"of shapes [J], [J] and {costs}")
    wrong = (probability < 0).any() or abs(probability.sum() - 1) > 1e-9
    refuse(f"{place}.probability", probability.tolist(), wrong, "at least 0 and sum to 1")
    for name, x in (("reward", reward), ("cost", cost)):
        refuse(f"{place}.{name}", x, ~((x >= 0) & (x <= 1)), "in [0, 1]")
    possible = probability > 0
    whole = ticks.from_units(cost[possible])
    free = resources is None and not whole.any()
    refuse(f"{place}.cost", cost.tolist(), free, "above 0 for some outcome")
    return ArmLaw(probability[possible], reward[possible], whole)


def best_set_rate(
    mean_reward: np.typing.ArrayLike, mean_cost: np.typing.ArrayLike, size: int
) -> float:
    """The largest Σ μ^r / Σ μ^c over all sets of ``size`` arms, by Dinkelbach's method in float64.

    Args:
        mean_reward, mean_cost: μ^r and μ^c > 0, ``[K]``.
        size: from 1 to K.

    Example:
        >>> from jaxbandits.oracles.optimum import best_set_rate
        >>> best_set_rate([0.5, 0.25, 0.75], [0.25, 0.5, 0.5], size=2)
        1.6666666666666667
    """
    reward, cost = alike((1,), "[K]", mean_reward=mean_reward, mean_cost=mean_cost)
    refuse("mean_cost", cost, ~(cost > 0), "above 0")
    whole_number("size", size, 1, reward.size)
    rate, better = -math.inf, 0.0
    while better > rate:
        rate = better
        best = np.argsort(rate * cost - reward, kind="stable")[:size]
        better = float(reward[best].sum() / cost[best].sum())
    return rate
