"""Infinitely many arms: the rules, their twins, the growing set, and what bad input is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from jaxbandits.core.protocol import Status
from jaxbandits.environments import uniform_outcome
from jaxbandits.policies import (
    RCB,
    ArmIncreasing,
    IndexPolicy,
    LogExploration,
    LogLogExploration,
    OmegaStarUCB,
    OmegaUCB,
    SampledArms,
    SlowLogExploration,
    UCBVRatio,
    UCBVReward,
    arms_to_sample,
    rcb_air,
    rcb_i,
    room_needed,
)
from jaxbandits.policies.base import evaluate_arms, evaluate_state
from jaxbandits.testing import assert_same_results, episode
from tests.environments.test_reservoir import reservoir
from tests.policies.reference import budgeted
from tests.policies.reference import infinite as twins
from tests.policies.reference.budgeted import Floats, Seen
from tests.policies.test_against_twins import SEEN_F, state_f

KEY = jax.random.key(90)
FORFEITS = "forfeits"


# --- the twins ----------------------------------------------------------------------------------------------------

K = 12
TWINS: list[tuple[str, IndexPolicy, Callable[[Seen], Floats], float | None, bool]] = [
    ("rcb-i", SampledArms(RCB(), K), twins.rcb, None, False),
    (
        "rcb-i-low",
        SampledArms(RCB(LogLogExploration()), K),
        lambda s: twins.rcb(s, twins.lower_sequence),
        None,
        True,
    ),
    ("rcb-air", rcb_air(1.0), twins.rcb, 1.0, False),
    (
        "ucb-v-slow",
        SampledArms(UCBVReward(SlowLogExploration()), K),
        lambda s: twins.ucb_v_reward(s, twins.slow_sequence),
        None,
        False,
    ),
    ("ucb-v-ratio", SampledArms(UCBVRatio(), K), twins.ucb_v_ratio, None, True),
    ("ucb-air", ArmIncreasing(UCBVReward(), 1.0), twins.ucb_v_reward, 1.0, False),
    ("ucb-air-ratio", ArmIncreasing(UCBVRatio(), 1.0), twins.ucb_v_ratio, 1.0, True),
    ("omega-air", ArmIncreasing(OmegaUCB(), 1.0), budgeted.omega, 1.0, True),
    ("omega*", SampledArms(OmegaStarUCB(), K), budgeted.omega_star, None, True),
]
ROUNDS, LANES = 300, 2


@pytest.mark.parametrize(
    ("name", "policy", "twin", "beta", "smooth"), TWINS, ids=[row[0] for row in TWINS]
)
@pytest.mark.quick_rows("ucb-v-ratio", "ucb-air")
@pytest.mark.sample_rows("ucb-v-ratio", "ucb-air", "rcb-i", "rcb-air", "omega*")
def test_twins(
    name: str, policy: IndexPolicy, twin: Callable[[Seen], Floats], beta: float | None, smooth: bool
) -> None:
    """Scores to 1e-4 relative away from poles, +∞ where the twin has +∞ but for a pole, decisions
    but for near-ties.

    Near a pole, where the lower bound on the cost is below 0.01, its float32 error of about 1e-7
    decides.
    """
    world = reservoir(outcomes=uniform_outcome) if smooth else reservoir()
    steps = episode(policy, world, jb.Horizon(ROUNDS), KEY, ROUNDS, replicates=LANES)
    table = jax.jit(jax.vmap(jax.vmap(lambda s, t: evaluate_state(policy, s, t))))
    got = np.asarray(table(steps.after, steps.observation.view.round), np.float64)
    action, ids = np.asarray(steps.action)[..., None], np.arange(world.capacity)
    reward, cost = (
        ticks.to_units(x)[..., None] for x in (steps.outcome.reward, steps.outcome.cost)
    )
    brought = [(action == ids) * x for x in (1.0, reward, cost, reward**2, cost**2)]
    t = np.broadcast_to(np.arange(1.0, ROUNDS + 1)[:, None], (LANES, ROUNDS, 1))
    totals = Seen(t, *(np.cumsum(x, axis=1) - x for x in brought))

    size = np.full(ROUNDS, K) if beta is None else twins.joined(ROUNDS, beta)
    inside = ids < size[:, None]
    assert (action[..., 0] < size).all(), "an arm that has not joined"
    fresh = inside & (totals.n == 0)
    starting = fresh.any(-1)
    assert (action[..., 0] == fresh.argmax(-1))[starting].all(), "a new arm is played at once"
    with np.errstate(all="ignore"):
        must = np.where(inside, twin(totals), -np.inf)
        pole = (must > 100) | (got > 100)
        off = inside & ~starting[..., None] & ~pole & ~(np.abs(got / must - 1) < 1e-4)
    assert not off.any(), f"{got[off][0]} and {must[off][0]}"
    must_played, ours, near_pole = (
        np.take_along_axis(x, action, -1)[..., 0] for x in (must, got, pole)
    )
    best = must.max(-1)
    same = (must_played == best) | ((ours == np.inf) & near_pole & (best > 1e4))
    assert (same | (must_played >= best * (1 - 2e-4)))[~starting].all()
    assert size.max() > 8 and (~same & ~starting).sum() < 0.02 * LANES * ROUNDS


@pytest.mark.parametrize(
    ("sequence", "index"), [(LogExploration(), 4.102303), (LogLogExploration(), 4.599499)]
)
def test_the_printed_vectors(sequence: Any, index: float) -> None:
    leaves = jax.tree.map(jnp.float32, RCB(sequence))
    assert float(evaluate_arms(leaves, state_f())[0]) == pytest.approx(index, rel=1e-5)
    twin = twins.log_sequence if isinstance(sequence, LogExploration) else twins.lower_sequence
    assert twins.rcb(SEEN_F, twin)[0] == pytest.approx(index, abs=5.1e-7)


def test_the_lower_end_is_above_the_upper_until_round_2391() -> None:
    t = jnp.arange(2, 3000, dtype=jnp.float32)
    above = np.asarray(LogLogExploration().at(t) > LogExploration(1.0).at(t))
    assert above[t < 2390].all() and not above[t > 2391].any()


# --- how many arms ------------------------------------------------------------------------------------------------


def test_arms_to_sample() -> None:
    assert arms_to_sample([1e3, 1e4, 1e5, 1e6], 1.0).tolist() == [32, 100, 317, 1000]
    assert arms_to_sample([1e4, 1e6], 2.0).tolist() == [465, 10_000]
    assert arms_to_sample([1e4, 1e6], 0.5).tolist() == [10, 32]
    assert (
        arms_to_sample(1.5, 1.0),
        arms_to_sample(1e4, 1.0, 3.0),
        rcb_i(1e4, 1.0, multiplier=0.5).arms,
    ) == (
        2,
        300,
        50,
    )
    for budget in (7.0, 1234.5, 4096.0, 15625.0):
        for beta in (0.3, 0.999, 1.0, 2.0, 3.7):
            assert arms_to_sample(budget, beta) == twins.sampled(budget, beta)
    assert (room_needed(1, 1.0), room_needed(1e6, 2.0)) == (1, 10_000)


@pytest.mark.parametrize("beta", [0.3, 0.5, 1.0, 2.0, 3.5])
def test_a_new_arm_joins_exactly_when_the_rule_says(beta: float) -> None:
    """After round t there are ⌈t^e⌉ arms, t to 2·10⁵; float32 may be t·2⁻¹⁹/e late."""
    t = np.arange(1, 200_001)
    power = t.astype(float) ** twins.exponent(beta) * (1 - 1e-12)
    rule = ArmIncreasing(RCB(), jnp.float32(beta))

    def wants(opened: np.ndarray) -> np.ndarray:
        return np.asarray(
            jax.jit(jax.vmap(rule.may_open))(
                jnp.asarray(opened, jnp.int32), jnp.asarray(t, jnp.int32)
            )
        )

    after = np.ceil(power)
    assert not wants(after).any(), "one arm too many"
    late = ~wants(after - 1)
    assert (after - 1 >= power * (1 - 2.0**-19))[late].all(), "one arm too few"


def test_the_set_is_steady_for_as_long_as_promised() -> None:
    opened = jnp.asarray(np.unique(np.geomspace(1, 2000, 100).astype(int)), jnp.int32)
    state = RCB().init(jb.environments.FiniteSpec(2001))
    ids = jnp.arange(2001)

    def steady(rule: ArmIncreasing, k: jax.Array) -> tuple[jax.Array, jax.Array]:
        until = rule.steady(state._replace(pulls=(ids < k).astype(jnp.int32)), jnp.int32(1))
        return until, rule.may_open(k, jnp.maximum(until, 0))

    for beta in (0.5, 1.0, 2.0):
        until, opens = jax.jit(jax.vmap(steady, in_axes=(None, 0)))(
            ArmIncreasing(RCB(), jnp.float32(beta)), opened
        )
        exact = np.minimum(np.asarray(opened, float) ** (1 / twins.exponent(beta)), 2.0**30)
        assert (np.asarray(until) <= exact).all()
        assert (np.asarray(until) >= (1 - 1e-4) * exact - 3).all()
        assert not np.asarray(opens).any()


# --- the growing set ----------------------------------------------------------------------------------------------


def grow(room: int, budget: float = 60.0) -> jb.Result:
    return jb.simulate(
        ArmIncreasing(RCB(), [0.5, 1.0]), reservoir(room, 4), jb.TotalBudget(budget, last_pull=FORFEITS), key=KEY,
        replicates=2, marks=[0.1, 0.5, 1.0],
    )  # fmt: skip


@pytest.mark.integration
def test_rerun_larger() -> None:
    rooms: list[int] = []

    def run(room: int) -> jb.Result:
        rooms.append(room)
        return grow(room)

    result, room = jb.rerun_larger(run, 8)
    assert rooms in ([8, 16], [8, 16, 32])
    assert room == rooms[-1]
    assert (result.ended == Status.EXHAUSTED).all()
    assert_same_results(
        result_without_room(result),
        result_without_room(grow(64)),
        "as much room as needed, and more",
    )
    with pytest.warns(UserWarning, match="status capacity"):
        _, room = jb.rerun_larger(run, 8, most=15)
    assert room == 8
    with pytest.raises(jb.InputError, match="capacity: 0 given"):
        jb.rerun_larger(run, 0)


def result_without_room(result: jb.Result) -> jb.Result:
    pulls = result.final["pulls"]
    assert not pulls[..., 16:].any()
    return dataclasses.replace(result, final={**result.final, "pulls": pulls[..., :16]})
