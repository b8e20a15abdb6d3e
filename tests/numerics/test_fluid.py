"""Fluid optima over samples of requests, against a general solver and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import jaxbandits as jb
from jaxbandits._numerics import fluid
from jaxbandits.environments import ContextualArms, Gaussian

Z, N = 1.959964, 400


def requests(seed: int, resources: int, low: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """400 requests of three arms; rewards from ``low`` on, so that some are worth no cost."""
    rng = np.random.default_rng(seed)
    return low + rng.uniform(0, 1, (N, 3)), rng.uniform(0.05, 1, (N, 3, resources))


def solved(reward: np.ndarray, cost: np.ndarray, budget: np.ndarray) -> tuple[float, np.ndarray]:
    """(max E r with E c ≤ b, its prices) by a general solver; a request may be left."""
    n, k = reward.shape
    table = np.vstack([cost.reshape(n * k, -1).T, np.kron(np.eye(n), np.ones(k))])
    limits = np.append(n * budget, np.ones(n))
    found = optimize.linprog(-reward.ravel(), table, limits, method="highs")
    return -found.fun / n, -found.ineqlin.marginals[: budget.size]


def gains(
    reward: np.ndarray, cost: np.ndarray, budget: np.ndarray, price: np.ndarray
) -> np.ndarray:
    """⟨λ, b⟩ + [max r − ⟨λ, c⟩]₊ of each request, in loops."""
    nets = [
        [r - sum(p * x for p, x in zip(price, c, strict=True)) for r, c in zip(*row, strict=True)]
        for row in zip(reward, cost, strict=True)
    ]
    return np.array([max(0.0, *row) + float(price @ budget) for row in nets])


def without_context(
    reward: np.ndarray, cost: np.ndarray, budget: np.ndarray
) -> tuple[float, np.ndarray]:
    """(value, net reward of each request) of the best mixture at the mean rewards and costs."""
    mean, paid = reward.mean(0), cost.mean(0)
    found = optimize.linprog(
        -mean, np.vstack([paid.T, np.ones(3)]), np.append(budget, 1.0), method="highs"
    )
    price = -found.ineqlin.marginals[: budget.size]
    return -found.fun, (reward - cost @ price) @ found.x


CASES = {
    "one": (1, np.array([0.08]), 0.0),
    "two": (2, np.array([0.1, 0.15]), 0.0),
    # Four of ten rewards are less than nothing
    "losses": (1, np.array([0.05]), -0.4),
}


@pytest.mark.parametrize("case", CASES)
def test_a_dual_bounds_what_any_policy_gains_and_meets_it_at_its_price(case: str) -> None:
    resources, budget, low = CASES[case]
    reward, cost = requests(1, resources, low)
    value, price = solved(reward, cost, budget)
    rows = fluid.dual(reward, cost, budget, price)
    np.testing.assert_allclose(rows, gains(reward, cost, budget, price), atol=1e-12)
    assert abs(rows.mean() - value) < 1e-9
    assert rows.min() >= price @ budget  # a request that is not worth its price is left
    assert (rows == price @ budget).mean() > 0.3
    for factor in (0.0, 0.5, 2.0, 10.0):
        assert fluid.dual(reward, cost, budget, factor * price).mean() > value


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seeds", [(1, 2), (2, 1)])
def test_values_are_of_the_sample_that_the_prices_have_not_seen(
    case: str, seeds: tuple[int, int]
) -> None:
    """Both samples in both orders, so that the first is once the richer and once the poorer one."""
    resources, budget, low = CASES[case]
    samples = [requests(seed, resources, low) for seed in seeds]
    poor = seeds.index(2)
    samples[poor] = 0.7 * samples[poor][0], samples[poor][1]
    first_value, price = solved(*samples[0], budget)
    found = fluid.context_value(samples, budget)
    np.testing.assert_allclose(found.price, price, rtol=1e-2)
    contextual = gains(*samples[1], budget, price).mean()
    assert abs(contextual / first_value - 1) > 0.1  # the two samples can be told apart
    assert abs(found.contextual - contextual) < 1e-3
    assert found.contextual >= solved(*samples[1], budget)[0] - 1e-6
    fixed, nets = without_context(*samples[1], budget)
    assert abs(found.fixed - fixed) < 1e-9
    # The interval reaches from the smaller of both samples' values to the larger
    values = contextual - fixed, first_value - without_context(*samples[0], budget)[0]
    error = (gains(*samples[1], budget, price) - nets).std() / np.sqrt(N)
    assert abs(values[0] - values[1]) > 3 * error
    assert min(values) - Z * error > 0
    assert abs(found.low - (min(values) - Z * error)) < 1e-3
    assert abs(found.high - (max(values) + Z * error)) < 1e-3


@pytest.mark.parametrize("seeds", [(1, 2), (2, 1)])
def test_with_money_as_the_clock_the_rule_is_tried_on_the_other_sample(
    seeds: tuple[int, int],
) -> None:
    samples = [requests(seed, 1) for seed in seeds]
    poor = seeds.index(2)
    samples[poor] = 0.5 * samples[poor][0], samples[poor][1]
    found = fluid.context_value(samples, None)

    def ratio(at: float, reward: np.ndarray, cost: np.ndarray) -> float:
        arm = (reward - at * cost[..., 0]).argmax(axis=1)
        rows = np.arange(len(reward))
        return float(reward[rows, arm].sum() / cost[rows, arm, 0].sum())

    best = []
    for sample in samples:
        at = 0.0
        for _ in range(100):
            at = ratio(at, *sample)
        best.append(at)
    tried = ratio(best[0], *samples[1])
    fixed = (samples[1][0].mean(0) / samples[1][1][..., 0].mean(0)).max()
    assert tried < best[1] - 1e-4
    assert abs(found.contextual - best[1]) < 1e-9
    assert abs(found.fixed - fixed) < 1e-12
    assert abs((tried - fixed - found.low) - (found.high - (best[1] - fixed))) < 1e-9
    assert found.low < tried - fixed < found.value < found.high


@pytest.mark.parametrize("money", [True, False])
def test_a_world_takes_prices_and_values_from_contexts_of_their_own(money: bool) -> None:
    theta = np.random.default_rng(3).normal(size=(2, 3, 3))
    world = ContextualArms.logistic(theta[0], theta[1], Gaussian(2))
    first, second = world.sampled(N), world.sampled(N, 1 + N)
    every = world.sampled(2 * N)[0]
    np.testing.assert_array_equal(every[:, N:], second[0])  # none is in both
    assert np.unique(every).size == every.size
    limit = jb.TotalBudget(40.0, last_pull="counts") if money else jb.AverageCost(c=0.45, rounds=99)
    found = world.value_of_context(limit, N)[0]
    samples = [(r[0], c[0]) for r, c in (first, second)]
    if money:  # the rule of the first sample, and the best one of the second
        best = fluid.best_ratio(samples[1][0], samples[1][1][..., 0])
        other = fluid.best_ratio(samples[0][0], samples[0][1][..., 0])
        assert abs(found.contextual - best) < 1e-9 < abs(best - other)
        return
    budget = np.array([0.45])
    first_value, price = solved(*samples[0], budget)
    value = gains(*samples[1], budget, price).mean()
    assert abs(found.contextual - value) < 1e-4 < abs(value - first_value)
