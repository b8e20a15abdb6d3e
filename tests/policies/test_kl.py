"""KL-UCB-SC+: the index in float32 against its twin, of all kinds of states."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.core import arm_statistics, ticks
from jaxbandits.policies import KLUCBSCPlus, kl
from jaxbandits.policies.base import evaluate_arms
from tests.policies.reference import budgeted as twin
from tests.policies.reference.budgeted import Floats


def states(count: int, seed: int) -> tuple[np.ndarray, ...]:
    """(t, n, Σr, Σc): means of all kinds, 0 and 1 among rewards, 1 among costs."""
    draw = np.random.default_rng(seed)
    n = np.floor(10 ** draw.uniform(0, 5, count)).astype(np.int64)
    t = n + np.ceil(10 ** draw.uniform(0, 5, count)).astype(np.int64)

    def mean(ends: tuple[float, ...]) -> np.ndarray:
        kind, inner = draw.random(count), draw.random(count)
        small = 10 ** draw.uniform(-4, 0, count)
        means = np.select([kind < 0.2, kind < 0.4], [small, 1 - small], inner)
        return np.where(kind > 1 - 0.05 * len(ends), draw.choice(ends, count), means)

    reward, cost = (
        np.floor(n * mean(ends) * ticks.ONE).astype(np.int64) for ends in ((0.0, 1.0), (1.0,))
    )
    return t, n, reward, np.maximum(cost, n * ticks.ONE // 1000 + 1)


def of_float32(t: np.ndarray, n: np.ndarray, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
    totals = (jax.tree.map(jnp.asarray, ticks.split(x)) for x in (reward, cost))
    state = arm_statistics.ArmStatistics(jnp.asarray(n, jnp.int32), *totals, None, None)
    table = jax.jit(
        lambda state, t: evaluate_arms(KLUCBSCPlus(), arm_statistics.as_floats(state, t))
    )
    return np.asarray(table(state, jnp.asarray(t, jnp.int32)), np.float64)


def exact(t: np.ndarray, n: np.ndarray, reward: np.ndarray, cost: np.ndarray) -> Floats:
    r, c = (np.asarray(x / (n * ticks.ONE), np.float64) for x in (reward, cost))
    return twin.steepest(r, c, np.log(t / n) / n)


@pytest.mark.integration
def test_float32_is_the_maximum() -> None:
    """To 2·10⁻⁴ of the twin, which bisects."""
    sample = states(30_000, seed=2)
    expected, got = exact(*sample), of_float32(*sample)
    usual = expected < 1e12
    off = np.abs(got[usual] / expected[usual] - 1)
    assert off.max() < 2e-4, [x[usual][off.argmax()] for x in sample]
    assert usual.mean() > 0.9 and np.quantile(off, 0.999) < 1e-5
    assert (got[~usual] > 1e11).all() and np.isfinite(got).all()


@pytest.mark.parametrize(("t", "n"), [(2**24 + 1, 2**24), (2**27 + 6, 2**27), (2**30, 2**30 - 1)])
def test_an_index_where_t_and_n_are_one_float(t: int, n: int) -> None:
    """Beyond 2²⁴ rounds t − n may round to 0: the index is r̄/c̄ then, or little more, and not NaN."""
    sums = (t, n, 0.6 * n, 0.5 * n, 0.4 * n, 0.5 * n)
    arms = arm_statistics.Arms(*(jnp.full((1,), x, jnp.float32) for x in sums), None, None)
    for policy in (KLUCBSCPlus(), kl.UCBSCPlus()):
        assert float(evaluate_arms(policy, arms)[0]) == pytest.approx(1.2, abs=1e-3)
