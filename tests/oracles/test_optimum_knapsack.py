"""Exact dynamic programming of several budgets and rounds: between every policy and the fluid LP."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits._numerics.knapsack_lp import fluid_values
from jaxbandits.oracles.optimum import bernoulli_law, budgeted_optimum, knapsack_optimum
from jaxbandits.policies import (
    DualMirrorDescent,
    FixedSplit,
    KnapsackOracle,
    LagrangeBwK,
    PrimalDualBwK,
    ThompsonLP,
    UCBBwK,
    WilsonBounds,
)

KEY = jax.random.key(3434)


def instances(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Two arms, two resources: μ ``[i, 2]``, c ``[i, 2, 2]``, B ``[i, 2]`` whole, T ``[i]``."""
    rng = np.random.default_rng(seed)
    mu, cost = rng.uniform(0.05, 1, (count, 2)), rng.uniform(0.05, 1, (count, 2, 2))
    return mu, cost, rng.integers(2, 7, (count, 2)).astype(float), rng.integers(6, 15, count)


def optima(mu: np.ndarray, cost: np.ndarray, budget: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    values = []
    for m, c, b, t in zip(mu, cost, budget, rounds, strict=True):
        arms = [bernoulli_law(float(m[k]), c[k].tolist()) for k in range(2)]
        values.append(knapsack_optimum(arms, b.tolist(), int(t), last_pull="counts").value)
    return np.array(values)


def brute(arms: list, spent: np.ndarray, budget: np.ndarray, rounds: int, forfeits: bool) -> float:
    """All histories, by plain recursion."""
    if rounds == 0 or (spent >= budget).any():
        return 0.0
    best = -np.inf
    for law in arms:
        worth = 0.0
        for p, r, c in zip(*law, strict=True):
            earns = not (forfeits and (spent + c > budget).any())
            worth += p * (r * earns + brute(arms, spent + c, budget, rounds - 1, forfeits))
        best = max(best, worth)
    return best


@pytest.mark.parametrize("last_pull", ["counts", "forfeits"])
def test_the_optimum_is_that_of_all_histories(last_pull: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(6):
        arms = [bernoulli_law(float(rng.random()), rng.random(2).tolist()) for _ in range(2)]
        arms[1] = arms[1]._replace(cost=arms[1].cost * [0.5, 0.75])
        budget = rng.uniform(0.6, 2.4, 2)
        exact = knapsack_optimum(arms, budget.tolist(), 4, last_pull=last_pull)
        ticks = np.floor(budget * 2**24) / 2**24
        assert exact.value == pytest.approx(
            brute(arms, np.zeros(2), ticks, 4, last_pull == "forfeits"), abs=1e-12
        )


def test_one_resource_and_many_rounds_are_the_budgeted_optimum() -> None:
    means = [(0.9, 0.8), (0.3, 0.35)]
    budgeted = budgeted_optimum(
        [bernoulli_law(r, c) for r, c in means], 5.0, last_pull="counts"
    ).value
    knapsack = knapsack_optimum(
        [bernoulli_law(r, [c]) for r, c in means], [5.0], 200, last_pull="counts"
    ).value
    assert knapsack == pytest.approx(budgeted, rel=1e-9)
    with pytest.raises(jb.InputError, match=r"\(\(4,\), \(4,\), \(4,\)\) given"):
        knapsack_optimum([bernoulli_law(0.5, 0.5)], [5.0], 4, last_pull="counts")


def players(mu: np.ndarray, cost: np.ndarray) -> list[jb.Policy]:
    return [
        KnapsackOracle(mu[None], cost[None]),
        KnapsackOracle(mu[None], cost[None], update_budgets=False),
        PrimalDualBwK(),
        PrimalDualBwK(bounds=WilsonBounds()),
        UCBBwK(),
        UCBBwK(bounds=WilsonBounds(), update_budgets=True),
        ThompsonLP(),
        ThompsonLP(update_budgets=False),
        LagrangeBwK(),
        DualMirrorDescent(),
        FixedSplit([1.0, 1.0]),
    ]


@pytest.mark.integration
@pytest.mark.rows
def test_every_policy_is_below_the_optimum_and_that_below_the_fluid_program() -> None:
    """Of all instances and of each, by standard errors; learners clearly below."""
    count, runs = 500, 64
    mu, cost, budget, rounds = instances(count, seed=2)
    best, fluid = (
        optima(mu, cost, budget, rounds),
        fluid_values(mu, cost, budget, rounds.astype(float)),
    )
    assert (best <= fluid + 1e-9).all() and (best < 0.97 * fluid).mean() > 0.5
    world = jb.environments.WithNullArm(jb.environments.FiniteArms.bernoulli(mu, cost))
    limit = jb.TotalBudget(budget, last_pull="counts", rounds=rounds)
    result = jb.simulate(players(mu, cost), world, limit, key=KEY, replicates=runs, marks=1)
    assert (result.spent.values[..., -1, :] <= budget[None, :, None, :]).all()
    assert (result.rounds.values[..., -1] <= rounds[None, :, None]).all()
    # the expected reward of what was chosen, given the choices: it varies less than the reward
    reward = result.ledger["expected_reward"][..., -1] / 2.0**24
    above = reward.mean(-1) - best
    error = reward.std(-1, ddof=1) / np.sqrt(runs)
    total = np.sqrt((error**2).sum(-1)) / count
    for name, gap in zip(result.settings, above.mean(-1) / best.mean(), strict=True):
        print(f"{name:60s} {100 * gap:+.1f} % of the optimum")
    assert (above.mean(-1) < 3 * total).all() and (above.mean(-1) < -3 * total)[2:].all(), (
        above.mean(-1),
        total,
    )
    z = np.where(error > 0, above / np.where(error > 0, error, 1), -np.inf)
    assert z.max() < laws.t.isf(0.01 / z.size, runs - 1), z.max()
