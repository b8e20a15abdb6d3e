"""`jb.rollout`: `simulate`'s bits in every setting; to jit, vmap and differentiate."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import as_floats
from jaxbandits.policies import (
    RCB,
    RCUCB,
    ArmIncreasing,
    BudgetedThompson,
    Guarded,
    OmegaUCB,
    SinglePhaseBZoom,
    SoftElim,
)
from tests.contract.worlds import KEY, world

COUNTS = jb.TotalBudget([6.0, 9.0, 7.0], last_pull="counts")


def continuum() -> jb.environments.Continuum:
    return jb.environments.Continuum.of(
        lambda x, p: 0.5 + 0.3 * x,
        lambda x, p: 0.3 + 0.6 * (x - p["best"]) ** 2,
        parameters={"best": [0.2, 0.7]},
        lipschitz_reward=0.3,
        lipschitz_cost=1.0,
    )


def censored() -> jb.environments.RowArms:
    rng = np.random.default_rng(3)
    arms = [[(rng.random(9), rng.random(9)) for _ in range(2)] for _ in range(2)]
    return jb.environments.row_arms(
        arms,
        limits=[0.25, 0.5, 1.0],
        cost=jb.environments.Linear(0.3),
        penalty=jb.environments.Constant(0.2),
    )


ROWS: dict[str, tuple[Any, Any, Any]] = {
    "budget": (BudgetedThompson(), lambda: world("bernoulli"), COUNTS),
    "average cost": (
        Guarded(OmegaUCB(rho=0.5)),
        lambda: world("null_arm"),
        jb.AverageCost(c=0.6, rounds=20),
    ),
    "reservoir": (ArmIncreasing(RCB(), beta=1.0), lambda: world("reservoir"), COUNTS),
    "continuum": (
        SinglePhaseBZoom(budget=9.0, lam=0.3, lipschitz=[[3.0, 30.0]]),
        continuum,
        jb.Horizon(20),
    ),
    "censored": (RCUCB("legal"), censored, jb.Horizon([15, 25])),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.quick_rows("budget")
def test_the_bits_of_simulate(name: str) -> None:
    policy, make, constraint = ROWS[name]
    environment, row, length = make(), 1, 40
    marks = np.arange(1, 21) / 20
    result = jb.simulate(
        policy, environment, constraint, key=KEY, replicates=3, marks=marks, engine="scan"
    )

    @jax.jit
    def lane(replicate: jax.Array) -> jb.Trajectory:
        ids = {"instance": row, "replicate": replicate}
        return jb.rollout(policy, environment, constraint, key=KEY, rounds=length, **ids)

    lanes = jax.vmap(lane)(jnp.arange(3))
    assert (np.asarray(lanes.status[:, -1]) == result.ended[0, row]).all()
    assert not lanes.played[:, -1].any()
    for r in range(3):
        rounds_played = int(lanes.played[r].sum())
        assert (
            rounds_played == result.ledger["rounds"][0, row, r, -1]
            and lanes.played[r, :rounds_played].all()
        )
        for mark in range(20):  # every account at every mark is the account after that round
            rounds = int(result.ledger["rounds"][0, row, r, mark])
            for total in ("reward", "spent", "expected_reward"):
                booked = ticks.join(
                    jax.tree.map(lambda x, r=r, n=rounds: x[r, n - 1], getattr(lanes.ledger, total))
                )
                assert booked == result.ledger[total][0, row, r, mark], (total, mark)
        brought = np.asarray(lanes.outcome.reward[r], np.int64)
        assert not brought[rounds_played:].any()
        if not isinstance(constraint, jb.TotalBudget):
            assert brought.sum() == ticks.join(
                jax.tree.map(lambda x, r=r: x[r, -1], lanes.ledger.reward)
            )
        if name in ("budget", "reservoir"):
            arms = result.final["pulls"].shape[-1]
            pulls = np.bincount(np.asarray(lanes.action[r, :rounds_played]), minlength=arms)
            assert (pulls == result.final["pulls"][0, row, r]).all()


@pytest.mark.integration
def test_traced_parameters_and_keys_give_the_bits_of_plain_ones() -> None:
    arms, limit = world("bernoulli"), jb.TotalBudget(5.0, last_pull="forfeits")

    @jax.jit
    def play(rho: jax.Array, key: jax.Array) -> jb.Trajectory:
        return jb.rollout(OmegaUCB(rho=rho), arms, limit, key=key, rounds=20)

    for rho in (0.25, 1.0):
        plain = jb.rollout(OmegaUCB(rho=rho), arms, limit, key=KEY, rounds=20)
        traced = play(jnp.float32(rho), KEY)
        for a, b in zip(jax.tree.leaves(plain), jax.tree.leaves(traced), strict=True):
            assert np.array_equal(a, b)
    rhos = jnp.array([0.25, 1.0])
    both = jax.vmap(lambda rho: play(rho, KEY))(rhos)
    assert np.array_equal(both.action[1], traced.action)


@pytest.mark.integration
def test_a_score_can_be_differentiated_along_a_rollout() -> None:
    """d/dθ Σ log π(a_t | …) from a rollout's states and actions, by hand and jax.grad."""
    arms, limit = world("bernoulli"), jb.Horizon(8)

    def log_likelihood(theta: jax.Array) -> jax.Array:
        policy = SoftElim(theta=theta)
        lane = jb.rollout(policy, arms, limit, key=KEY, rounds=8, instance=1)
        held = jax.tree.map(jax.lax.stop_gradient, lane)
        views = jb.View(
            jnp.arange(1, 9), None, jnp.broadcast_to(jnp.array([True, True, True, False]), (8, 4))
        )

        def log_probability(state: Any, action: jax.Array, view: jb.View) -> jax.Array:
            return jax.nn.log_softmax(policy.logits(as_floats(state, view.round), view.available))[
                action
            ]

        return jnp.sum(jax.vmap(log_probability)(held.state, held.action, views))

    at, step = jnp.float32(0.5), np.float32(2.0**-8)
    slope = float(jax.jit(jax.grad(log_likelihood))(at))
    lower, upper = (
        jb.rollout(SoftElim(theta=x), arms, limit, key=KEY, rounds=8, instance=1)
        for x in (at - step, at + step)
    )
    assert np.array_equal(lower.action, upper.action), (
        "the key decides otherwise between the two: take another step"
    )
    above, below = (float(jax.jit(log_likelihood)(x)) for x in (at + step, at - step))
    assert abs(slope) > 0.1 and abs((above - below) / (2 * step) - slope) < 0.02 * abs(slope)


def test_what_does_not_fit_is_refused_in_one_line() -> None:
    arms, limit = world("bernoulli"), jb.Horizon(5)
    with pytest.raises(jb.InputError, match="2 settings given; it must be one"):
        jb.rollout(OmegaUCB(rho=[0.25, 1.0]), arms, limit, key=KEY, rounds=5)
    with pytest.raises(jb.InputError, match="instance: 3 given"):
        jb.rollout(OmegaUCB(), arms, limit, key=KEY, rounds=5, instance=3)
    with pytest.raises(jb.InputError, match="rounds: 0 given"):
        jb.rollout(OmegaUCB(), arms, limit, key=KEY, rounds=0)
    with pytest.raises(jb.InputError, match=r"OmegaUCB\.rho"):
        jb.rollout(OmegaUCB(rho=-1.0), arms, limit, key=KEY, rounds=5)
    with pytest.raises(jb.InputError, match="key"):
        jb.rollout(OmegaUCB(), arms, limit, key=7, rounds=5)
