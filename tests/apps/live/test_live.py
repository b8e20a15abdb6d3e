"""Policies one observation at a time: what engineers tripped over."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.environments import FiniteSpec
from jaxbandits.policies import MUCB, Guarded, OmegaUCB

TWO = FiniteSpec(arms=2)


def test_a_state_is_read_for_the_policy_that_learnt_it_and_no_other(tmp_path):
    path, policy = tmp_path / "state.npz", OmegaUCB(rho=0.25)
    jb.live.save(path, policy.init(TWO), policy=policy)
    assert jb.live.load(
        path, policy.init(TWO), policy=OmegaUCB(rho=np.float32(0.25))
    ).pulls.tolist() == [0, 0]
    for stranger in (MUCB(), OmegaUCB(rho=0.5), None):
        with pytest.raises(
            jb.InputError, match=r"^policy: .* it must be OmegaUCB\(rho=0.25\), whose state"
        ):
            jb.live.load(path, policy.init(TWO), policy=stranger)
    jb.live.save(path, policy.init(TWO), policy=None)
    with pytest.raises(
        jb.InputError, match=r"^policy: OmegaUCB\(rho=0.25\) given; it must be None"
    ):
        jb.live.load(path, policy.init(TWO), policy=policy)


def test_a_skip_is_an_empty_round():
    _, observation = jb.live.start(Guarded(MUCB()), FiniteSpec(arms=2, null_arm=True), left=0.5)
    after = jb.live.observe(observation, -1, left=0.75)
    assert bool(after.empty) and int(after.view.round) == 2
    with pytest.raises(
        jb.InputError, match=r"^action: -2 given; it must be an arm from 0 to 1, -1 for a skip"
    ):
        jb.live.observe(observation, -2, left=0.75)


def test_nothing_may_be_available_for_a_while():
    policy = MUCB()
    state, observation = jb.live.start(policy, TWO, available=[False, False])
    after = jb.live.observe(observation, 0, empty=True, available=[False, True])
    assert int(policy.step(state, jax.random.key(0), after)[1]) == 1


def test_a_policy_that_reads_what_is_left_says_so_at_once():
    with pytest.raises(
        jb.InputError, match=r"^left: None given; it must be given in every round: Guarded reads"
    ):
        jb.live.start(Guarded(MUCB()), FiniteSpec(arms=2, null_arm=True))


@pytest.mark.parametrize("name", ["reward", "cost"])
def test_what_is_too_small_for_a_tick_is_not_taken_for_nothing(name):
    _, observation = jb.live.start(MUCB(), TWO)
    with pytest.raises(
        jb.InputError, match=rf"^{name}: 2.9e-08 given; it must be 0, or at least half a tick"
    ):
        jb.live.observe(observation, 0, **{name: 2.9e-8})


def test_observe_may_be_traced():
    policy, key = MUCB(), jax.random.key(0)
    begin = jb.live.start(policy, TWO, left=8.0)

    def step(carry, cost):
        state, arm = policy.step(carry[0], key, carry[1])
        money = 8.0 - cost
        return (state, jb.live.observe(carry[1], arm, reward=cost / 2, cost=cost, left=money)), arm

    costs = np.array([0.25, 0.5, 0.125, 0.75], np.float32)
    (state, after), arms = jax.lax.scan(step, jax.tree.map(jnp.asarray, begin), costs)
    slow, observation = begin
    for cost, arm in zip(costs, arms, strict=True):
        slow, same = policy.step(slow, key, observation)
        assert int(same) == int(arm)
        observation = jb.live.observe(
            observation, same, reward=cost / 2, cost=cost, left=8.0 - cost
        )
    for a, b in zip(
        jax.tree.leaves((state, after)), jax.tree.leaves((slow, observation)), strict=True
    ):
        assert np.array_equal(a, b)


def test_a_further_arm_changes_no_decision_until_it_is_there():
    policy, key, rng = OmegaUCB(), jax.random.key(3), np.random.default_rng(0)
    step = jax.jit(policy.step)
    state, narrow_view = jb.live.start(policy, FiniteSpec(arms=3))
    wide, wide_view = jb.live.widen(policy, state, narrow_view, arms=5)
    for _ in range(20):
        reward, cost = rng.random(2)
        state, arm = step(state, key, narrow_view)
        wide, same = step(wide, key, wide_view)
        assert int(arm) == int(same)
        narrow_view = jb.live.observe(narrow_view, arm, reward=reward, cost=cost)
        wide_view = jb.live.observe(wide_view, same, reward=reward, cost=cost)
    wide_view = jb.live.observe(wide_view, 0, empty=True, available=[True, True, True, True, False])
    assert int(step(wide, key, wide_view)[1]) == 3  # the new one comes first
    with pytest.raises(
        jb.InputError, match=r"^arms: 2 given; it must be a whole number of at least 5"
    ):
        jb.live.widen(policy, wide, wide_view, arms=2)


def test_learning_and_choosing_are_apart():
    """Several requests against one observation: learnt from once, and every request has a round of
    its own.
    """
    policy, key = jb.policies.BudgetedThompson(), jax.random.key(1)
    state, observation = jb.live.start(policy, FiniteSpec(arms=4))
    observation = jb.live.observe(observation, 2, reward=1.0, cost=0.5)
    state = policy.update(state, key, observation)
    assert state.pulls.tolist() == [0, 0, 1, 0]
    arms = []
    for _ in range(8):
        state, arm = policy.select(state, key, observation.view)
        observation = jb.live.observe(observation, arm, empty=True)
        arms.append(int(arm))
    assert state.pulls.tolist() == [0, 0, 1, 0] and len(set(arms)) > 1
