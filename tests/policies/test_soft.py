"""Soft policies: draws of the softmax, and the index policy that a cold one is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import jaxbandits as jb
from jaxbandits.policies import OmegaUCB, SoftElim, SoftIndex

KEY = jax.random.key(3)
BUDGET = jb.TotalBudget(4.0, last_pull="counts")


def test_draws_follow_the_softmax() -> None:
    """SoftElim's first draws are uniform; a frozen state has its probabilities (χ², 1e-4)."""
    policy, spec = SoftElim(theta=jnp.float32(0.5)), jb.environments.FiniteSpec(arms=3)
    state = policy.init(spec)
    full = jb.core.ticks.Total
    later = state._replace(
        pulls=jnp.array([9, 4, 2], jnp.int32),
        reward=full(jnp.array([5, 2, 0], jnp.int32), jnp.zeros(3, jnp.int32)),
    )
    runs = 20_000
    for now, must in ((state, np.full(3, 1 / 3)), (later, None)):
        view = jb.View(jnp.int32(7), None, jnp.ones(3, bool))

        def draw(run: jax.Array, now=now, view=view) -> jax.Array:
            return policy.select(
                now, jax.random.wrap_key_data(jnp.stack([run, run]), impl="threefry2x32"), view
            )[1]

        arms = np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(runs, dtype=jnp.uint32)))
        if must is None:
            mean = np.array([5 / 9, 2 / 4, 0 / 2])
            weight = np.exp(-2 * (mean.max() - mean) ** 2 * np.array([9, 4, 2]) / 0.25)
            must = weight / weight.sum()
        assert stats.chisquare(np.bincount(arms, minlength=3), runs * must).pvalue > 1e-4


def test_a_cold_softmax_is_the_index_policy() -> None:
    arms = jb.environments.random_beta(jax.random.key(0), 4, 5)
    hard = jb.simulate(OmegaUCB(rho=0.25), arms, BUDGET, key=KEY, replicates=3, marks=1)
    soft = jb.simulate(
        SoftIndex(OmegaUCB(rho=0.25), 1e-6), arms, BUDGET, key=KEY, replicates=3, marks=1
    )
    assert (hard.final["pulls"] == soft.final["pulls"]).all()
