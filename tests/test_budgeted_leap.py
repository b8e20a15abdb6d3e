"""Budgeted policies that declare a score that rests: it does, in float64 and float32, and leaps to the same bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits import policies
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import Arms
from jaxbandits.policies.base.index import IndexPolicy, evaluate
from tests.contract.committee import RestingCommittee
from tests.test_leap import assert_same, random_states

RESTING: dict[str, IndexPolicy] = {
    "budget_ucb": policies.BudgetUCB(min_cost=np.array([0.0, 0.02, 0.3])),
    "ucb_sc_plus": policies.UCBSCPlus(),
    "ucb_sc": policies.UCBSC(),
    "fractional_kube": policies.FractionalKUBE(),
    "ucb_bv1": policies.UCBBV1(min_cost=np.array([0.05, 0.5])),
    "pd_bwk": policies.PDBwK(c_rad=np.array([0.3, 3.0])),
    "ucb_b2": policies.UCBB2(min_cost=np.array([0.0, 0.1])),
    "ucb1": policies.UCB1(),
}


def later_rounds(n: np.ndarray, seed: int) -> np.ndarray:
    return n + np.floor(10 ** np.random.default_rng(seed).uniform(0, 6, n.size)).astype(np.int64)


@pytest.mark.parametrize("name", RESTING)
def test_scores_rest_in_float64(name: str) -> None:
    """While an arm rests its score never falls as t grows: 10⁵ random states, exact formula in float64."""
    n, reward, cost, reward_spread, cost_spread = random_states(100_000, seed=5)
    t, one = later_rounds(n, 6), ticks.ONE
    with jax.enable_x64(True):
        x = (n, reward / one, cost / one, n - reward / one, n - cost / one, reward_spread / one, cost_spread / one)
        f = [jnp.asarray(v, jnp.float64) for v in x]
        draw = np.random.default_rng(7)
        leaves = jax.tree.map(lambda v: jnp.asarray(draw.choice(np.atleast_1d(v), n.size)), RESTING[name])
        score = jax.jit(lambda t: leaves.score(Arms(t, *f)))
        now = score(jnp.asarray(t, jnp.float64))
        assert float(jnp.isfinite(now).mean()) > 0.1
        for later in (1, 10, 1000):
            then = score(jnp.asarray(t + later, jnp.float64))
            # KL-UCB-SC+ ends Newton's method after five steps and floors a mean reward of 0
            tolerance = 1e-12 * jnp.abs(now)
            assert bool(((then >= now - tolerance) | ~jnp.isfinite(now)).all())
            assert bool((jnp.isfinite(now) | (then == jnp.inf)).all())
            if name != "pd_bwk":
                assert float((then > now).mean()) > 0.1, "it rises with t"


@pytest.mark.parametrize("name", RESTING)
def test_float32_scores_fall_by_less_than_the_margin(name: str) -> None:
    n, *totals = random_states(100_000, seed=8)
    state = arm_statistics.ArmStatistics(
        jnp.asarray(n, jnp.int32), *(jax.tree.map(jnp.asarray, ticks.split(x)) for x in totals)
    )
    policy, draw = RESTING[name], np.random.default_rng(9)
    leaves = jax.tree.map(lambda v: jnp.asarray(draw.choice(np.atleast_1d(v), n.size), jnp.float32), policy)
    t = jnp.asarray(later_rounds(n, 10), jnp.int32)
    score = jax.jit(lambda t: evaluate(leaves, arm_statistics.as_floats(state, t)))
    worst, highest = 0.0, np.asarray(score(t))
    for later in range(1, 40):
        now = np.asarray(score(t + later))
        finite = np.isfinite(highest)
        assert (now[~finite] == np.inf).all()
        fall = (highest[finite] - now[finite]) / np.maximum(np.abs(highest[finite]), 1e-30)
        worst = max(worst, float(fall.max()))
        highest = np.maximum(highest, now)
    print(f"{name}: falls by {worst:.1e} at most, margin {policy.rounding:.1e}")
    assert 0 <= worst < policy.rounding / 2


def test_same_bits() -> None:
    """All of them in one program: each lane is played by the one that its leaf names."""
    arms = jb.environments.random_beta(jax.random.key(3), instances=6, arms=7)
    budget = 600.0 * np.asarray(arms.mean_cost).min(axis=1) / ticks.ONE
    places = [place for place, member in enumerate(RestingCommittee.members().values()) if member.rests]
    committee = RestingCommittee.played_by(np.array(places))
    scan, leap = (
        jb.simulate(
            committee,
            arms,
            jb.TotalBudget(budget, last_pull="counts"),
            key=jax.random.key(11),
            replicates=2,
            marks=5,
            engine=engine,
        )
        for engine in ("scan", "leap")
    )
    assert_same(scan, leap)
    assert len(np.unique(scan.ledger["reward"][..., -1].sum((1, 2)))) == len(places) == len(RESTING)
