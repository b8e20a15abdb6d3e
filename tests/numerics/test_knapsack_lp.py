"""The knapsack LPs against scipy's linprog and against brute force in float64."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from jaxbandits._numerics import knapsack_lp as lp
from tests.policies.reference.knapsack import lp_pair

EPS = float(np.finfo(np.float32).eps)


def highs(mu, rows, limits):
    """(value, solution) by scipy; +inf if unbounded."""
    solution = linprog(-mu, A_ub=rows, b_ub=limits, bounds=(0, None), method="highs")
    return (-solution.fun, solution.x) if solution.status == 0 else (np.inf, None)


def random_lps(seed, count, arms):
    rng = np.random.default_rng(seed)
    draws = (rng.random((count, arms)), rng.random((count, arms)), rng.uniform(0.02, 1.0, count))
    return [x.astype(np.float32) for x in draws]


best_mixture = jax.jit(lp.best_mixture)


@pytest.mark.parametrize("arms", [1, 2, 3, 8, 40])
def test_one_resource_against_linprog_and_float64(arms):
    mu, rho, c = random_lps(arms, 300, arms)
    best = jax.jit(jax.vmap(lp.best_mixture))(mu, rho, c)
    host = lp.fluid_values(*(x.astype(np.float64) for x in (mu, rho, c)), np.ones(300))
    for i in range(300):
        m, r, limit = mu[i].astype(float), rho[i].astype(float), float(c[i])
        value, _ = highs(m, np.stack([r, np.ones(arms)]), [limit, 1.0])
        assert host[i] == pytest.approx(value, abs=1e-12)
        # float32: a few roundings of numbers up to 1
        assert float(best.value[i]) == pytest.approx(value, abs=4 * EPS)
        pi = np.zeros(arms + 1)
        pi[int(best.low[i])] += 1 - float(best.weight[i])
        pi[int(best.high[i])] += float(best.weight[i])
        assert pi @ np.append(m, 0) == pytest.approx(value, abs=8 * EPS)
        assert pi @ np.append(r, 0) <= limit + 8 * EPS


def test_exact_ties_go_to_a_single_arm_then_to_the_lowest_index():
    def choice(mu, rho, c=0.5):
        best = best_mixture(jnp.array(mu, jnp.float32), jnp.array(rho, jnp.float32), jnp.float32(c))
        ref = lp_pair(mu, rho, c)
        assert (int(best.high), int(best.low)) == (ref.high if ref.high >= 0 else ref.low, ref.low)
        return int(best.high), int(best.low), float(best.weight)

    # The pair (0, 1) has the same value
    assert choice([1.0, 1.0, 1.0], [0.9, 0.3, 0.3]) == (1, 1, 1.0)
    assert choice([0.75, 0.75], [0.75, 0.75]) == (0, 2, pytest.approx(2 / 3))
    assert choice([0.0, 0.0], [0.25, 0.75]) == (0, 0, 1.0)
    assert choice([0.5], [0.5]) == (0, 0, 1.0)  # a cost of exactly c is below


@pytest.mark.parametrize(("arms", "largest"), [(2, 9), (7, 9), (100, 10_000)])
def test_the_choice_is_that_of_all_pairs_but_for_rounding(arms, largest):
    """Bounds clipped to [0, 1], costs of exactly c; few pulls, so lines of arms coincide."""
    rng = np.random.default_rng(arms)
    pulls = rng.integers(1, largest, (1000, arms))
    mean = rng.binomial(pulls, rng.random((2, 1000, arms))) / pulls
    radius = np.where(rng.random((1000, 1)) < 0.5, 0.3 / np.sqrt(pulls), 0)
    mu, rho = (
        np.minimum(mean[0] + radius, 1).astype(np.float32),
        np.maximum(mean[1] - radius, 0).astype(np.float32),
    )
    c = (rng.integers(1, 9, 1000) / 8).astype(np.float32)
    allowed = rng.random((1000, arms + 1)) < 0.9
    best = jax.device_get(jax.jit(jax.vmap(lp.best_mixture))(mu, rho, c, allowed))
    both_allowed = allowed[:, :, None] & allowed[:, None, :]
    table = np.where(both_allowed, jax.vmap(lp.vertices)(mu, rho, c), -np.inf).reshape(1000, -1)
    feasible = np.isfinite(table.max(1))
    np.testing.assert_array_equal(np.isfinite(best.value), feasible)
    np.testing.assert_array_equal(best.high[~feasible], arms + 1)
    np.testing.assert_allclose(best.value[feasible], table.max(1)[feasible], rtol=0, atol=EPS)
    order = np.sort(table, axis=1)
    clear = np.flatnonzero(feasible & (order[:, -1] > order[:, -2] + 2 * EPS))
    assert clear.size > 200
    np.testing.assert_array_equal(
        (best.high * (arms + 1) + best.low)[clear], table.argmax(1)[clear]
    )


def test_host_values_of_padded_instances_and_of_several_resources():
    reward = np.array([[0.45, 0.7, 0.8], [0.5, np.nan, 0.9]])
    cost = np.array([[0.3, 0.75, 0.8], [0.25, np.nan, 0.75]])
    one = np.ones(2)
    values = lp.fluid_values(reward, cost, np.array([0.5, 0.5]), one)
    np.testing.assert_allclose(values, [0.59, 0.7], atol=1e-15)
    np.testing.assert_allclose(
        lp.fluid_values(reward, cost[..., None], np.full((2, 1), 0.5), one), values, atol=1e-15
    )
    twice = np.stack([cost, cost], axis=-1)
    np.testing.assert_allclose(
        lp.fluid_values(reward, twice, np.full((2, 2), 0.5), one), values, atol=1e-12
    )
    np.testing.assert_allclose(
        lp.fluid_values(reward, cost, np.array([6.0, 5.0])), [9.0, 10.0], atol=1e-12
    )
