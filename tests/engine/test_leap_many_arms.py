"""Leap on reservoirs: scan's bits where arms join, hundreds tie at +∞, sets are full."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits._engine import driver, leap, scan
from jaxbandits.core import streams
from jaxbandits.core.protocol import Constraint, View
from jaxbandits.core.settings import Settings
from jaxbandits.environments import Reservoir, uniform_outcome
from jaxbandits.policies import (
    RCB,
    ArmIncreasing,
    LogExploration,
    LogLogExploration,
    OmegaUCB,
    SampledArms,
    UCBVRatio,
)
from jaxbandits.policies.base import largest, tie_winners
from jaxbandits.testing import assert_same_results

KEY = jax.random.key(33)
ROOM = 96


def reservoir(instances: int = 4, **changes: Any) -> Reservoir:
    return Reservoir.ratio(jax.random.key(2), instances=instances, capacity=ROOM, **changes)


ROWS: list[tuple[str, Any, Reservoir, Constraint]] = [
    (
        "K arms",
        SampledArms(RCB(LogExploration([1.0, 0.1])), 90),
        reservoir(),
        jb.TotalBudget([500.0, 900.0, 0.5, 100.0], last_pull="forfeits"),
    ),
    (
        "increasing",
        ArmIncreasing(RCB(LogExploration([1.0, 0.1])), 1.4),
        reservoir(),
        jb.TotalBudget([700.0, 650.0, 1.0, 600.0], last_pull="counts"),
    ),
    (
        "omega",
        SampledArms(OmegaUCB(rho=[0.02, 1.0]), 96),
        reservoir(),
        jb.Horizon([3000, 1, 500, 2999]),
    ),
    (
        "uniform",
        SampledArms(UCBVRatio(LogExploration([0.3, 0.02])), [[40, 96, 2, 70]]),
        reservoir(outcomes=uniform_outcome),
        jb.TotalBudget(900.0, last_pull="forfeits"),
    ),
]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "policy", "arms", "constraint"), ROWS, ids=[row[0] for row in ROWS]
)
def test_same_bits(
    monkeypatch: Any, name: str, policy: Any, arms: Reservoir, constraint: Constraint
) -> None:
    if name in ("K arms", "omega"):
        monkeypatch.setattr(leap, "_MANY_ARMS", 64)  # their blocks of ties are scattered
    results = [
        jb.simulate(
            policy, arms, constraint, key=KEY, replicates=2, marks=6, engine=engine, slots=16
        )
        for engine in ("scan", "leap")
    ]
    assert [result.about.engine for result in results] == ["scan", "leap"]
    assert results[0].ledger["rounds"].max() > 2000
    assert_same_results(*results, f"{name}: engines scan and leap")


@pytest.mark.integration
def test_a_full_set_is_told_by_both_engines() -> None:
    limit = jb.TotalBudget(2500.0, last_pull="forfeits")
    results = []
    for engine in ("scan", "leap"):
        with pytest.warns(UserWarning, match="status capacity"):
            policy = ArmIncreasing(RCB(), 1.0)
            results.append(
                jb.simulate(policy, reservoir(2), limit, key=KEY, marks=3, engine=engine, slots=16)
            )
    assert (results[0].rounds.values[..., -1] == ROOM**2).all()
    assert_same_results(*results, "engines scan and leap, full sets")


@pytest.mark.integration
def test_ties_are_decided_for_many_rounds_at_a_time() -> None:
    """While hundreds tie at +∞, eight macro-steps play far more rounds than eight."""
    lanes_, world = 4, reservoir()
    leaves = Settings.of(SampledArms(RCB(), ROOM), world.instances, world.spec).policy
    policy = jax.tree.map(
        lambda x: jnp.asarray(np.broadcast_to(x[0, :1], (lanes_, *x.shape[2:]))), leaves
    )
    limit = jb.TotalBudget(50_000.0, last_pull="forfeits").prepare(world)
    limit, world = (jax.tree.map(jnp.asarray, x) for x in (limit, world))
    ids = jnp.arange(lanes_)
    marks = jax.tree.map(lambda x: jnp.asarray(x)[:, None], limit.end())
    root, numbers = np.asarray(jax.random.key_data(KEY)), np.arange(lanes_)
    keys = (
        jnp.asarray(streams.lane_words(root, numbers, numbers, domain)) for domain in streams.Domain
    )
    world_keys, policy_keys, _ = keys
    lanes = scan.Lane(
        ids, world_keys, policy_keys, policy, limit, marks, jnp.full((lanes_,), 2**30, jnp.int32)
    )
    carry = jax.vmap(partial(scan.start_lane, world))(lanes)
    tuner = leap.tuner(lanes_)
    chunk = jax.jit(lambda carry, tuner: leap.chunk(world, lanes, carry, tuner, jnp.int32(1)))
    for _ in range(12 + 6):  # 96 first pulls, one a macro-step; then ties
        carry, tuner = chunk(carry, tuner)
    rounds = np.asarray(carry.state.ledger.rounds)
    assert ((rounds > 96 + 6 * 60) & (rounds <= 96 + 6 * 8 * leap.TIE_ROUNDS)).all()


@pytest.mark.integration
def test_ties_of_many_rounds_follow_the_tie_rule() -> None:
    rng = np.random.default_rng(8)
    key, rounds = jax.random.key(5), jnp.arange(100, 116)
    for width in (2, 3, 33, 700):
        tied = jnp.asarray(rng.random(width) < 0.4).at[1].set(True)
        arms, certain = jax.jit(tie_winners)(tied, key, rounds)
        views = [View(t, None, jnp.ones(width, bool)) for t in rounds]
        expected = [
            int(largest(jnp.where(tied, jnp.inf, 0.0), key, view, jnp.zeros(width, bool)))
            for view in views
        ]
        np.testing.assert_array_equal(arms, expected)
        assert bool(certain.all())
    assert (np.asarray(jax.jit(tie_winners)(jnp.zeros(9, bool), key, rounds)[0]) == 9).all()


@pytest.mark.parametrize(
    "exploration", [LogExploration(), LogExploration(0.1), LogLogExploration()], ids=str
)
def test_exploration_never_falls(exploration: Any) -> None:
    """In float32 at every round up to 2²⁴: an index of +∞ stays so while its arm rests."""
    t = jnp.arange(1, 1 << 24, dtype=jnp.int32)
    leaves = jax.tree.map(jnp.float32, exploration)
    e = np.asarray(
        jax.jit(lambda t: leaves.at(t.astype(jnp.float32)), compiler_options=driver.options("cpu"))(
            t
        )
    )
    assert (np.diff(e) >= 0).all() and e[-1] > e[0]


@pytest.mark.integration
def test_an_arm_that_is_none_ends_its_lane_in_both_engines() -> None:
    def sampler(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """One arm in 400 has no mean: not among the first 256, which are tried, but 322."""
        x = jax.random.uniform(key, (3,))
        return jnp.where(x[0] < 1 / 400, jnp.nan, 0.1 * x[1]), 0.9 + 0.1 * x[2]

    arms = Reservoir.sampled(
        sampler, jax.random.key(1), instances=1, capacity=2000, best_ratio=0.2, least_cost=0.9
    )
    limit = jb.TotalBudget(3000.0, last_pull="counts")
    policy = ArmIncreasing(RCB(LogExploration(0.01)), 9.0)
    results = []
    for engine in ("scan", "leap"):
        with pytest.warns(UserWarning, match="invalid"):
            results.append(
                jb.simulate(policy, arms, limit, key=KEY, replicates=2, engine=engine, slots=2)
            )
    assert ((results[0].final["pulls"] > 0).sum(axis=-1) == 322).all()
    assert_same_results(*results, "engines scan and leap, an arm that is none")
