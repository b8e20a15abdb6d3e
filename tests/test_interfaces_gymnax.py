"""gymnax's interface, held by gymnax's own wrappers and by a learner that nobody here wrote."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from tests.contract.worlds import KEY, world

gymnax = pytest.importorskip("gymnax", reason="gymnax is not installed: pip install '.[gymnax]'")
BUDGET = jb.TotalBudget(6.0, last_pull="forfeits")


def step(env: object, key: jax.Array, state: object, arm: jax.Array, params: object) -> tuple:
    """One ``done``, whether this is gymnax 0.0.9 or 1.0."""
    observation, after, reward, *ends, info = env.step(key, state, arm, params)
    return observation, after, reward, jnp.stack(ends).any(axis=0), info


def test_it_is_an_environment_of_gymnax() -> None:
    from gymnax.environments import environment, spaces

    env = jb.interfaces.gymnax_environment(world("bernoulli"), BUDGET, key=KEY)
    params = env.default_params
    assert isinstance(env, environment.Environment)
    assert isinstance(env.action_space(params), spaces.Discrete)
    assert env.num_actions == env.action_space(params).n == 4 and env.name == "BudgetedBandit"
    space = env.observation_space(params)
    keys = jax.random.split(jax.random.key(0), 8)
    observation, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    assert observation.shape == (8, *space.shape)
    assert observation.dtype == space.dtype
    assert bool(space.contains(observation[0]))
    with_null = jb.interfaces.gymnax_environment(
        world("null_arm"), jb.AverageCost(c=0.6, rounds=9), key=KEY
    )
    assert with_null.num_actions == world("null_arm").spec.arms + 1
    arms = jnp.zeros(8, jnp.int32)
    observation, after, reward, done, info = jax.vmap(
        lambda *arguments: step(env, *arguments, params)
    )(jax.random.split(jax.random.key(1), 8), states, arms)
    assert jax.tree.structure(after) == jax.tree.structure(states)
    assert done.dtype == bool
    assert reward.dtype == jnp.float32
    assert np.array_equal(info["cost"], ticks.to_float(after.ledger.spent))
    assert np.array_equal(info["discount"], 1.0 * ~done)


def test_episodes_end_and_begin_again_with_exact_accounts() -> None:
    """Random arms: what gymnax's steps sum up to is the ledger; a reset opens a new one."""
    env = jb.interfaces.gymnax_environment(
        world("bernoulli"), jb.TotalBudget(3.0, last_pull="counts"), key=KEY
    )
    params, (first, second) = env.default_params, jax.random.split(jax.random.key(1))
    _, start = env.reset(first, params)

    def play_step(state: object, key: jax.Array) -> object:
        arm_key, ours = jax.random.split(key)
        _, after, reward, done, _ = step(
            env, ours, state, jax.random.randint(arm_key, (), 0, 2), params
        )
        return after, (after.ledger.reward, after.ledger.rounds, after.replicate, reward, done)

    _, (total, rounds, replicate, reward, done) = jax.jit(
        lambda: jax.lax.scan(play_step, start, jax.random.split(second, 120))
    )()
    ends = np.flatnonzero(done)
    # The state after an end is a new episode's
    assert ends.size >= 3 and (np.asarray(rounds)[ends] == 0).all()
    assert len(set(np.asarray(replicate)[ends].tolist())) == ends.size
    earned, money = np.asarray(reward, np.float64), ticks.to_units(ticks.join(total))
    for before, end in itertools.pairwise(ends):
        assert earned[before + 1 : end].sum() == money[end - 1]


@pytest.mark.integration
def test_a_learner_from_elsewhere_learns_to_spend() -> None:
    """PPO of rejax: what it earns of a budget is clearly more than arms at random do."""
    rejax = pytest.importorskip(
        "rejax", reason="rejax, a library of learners for gymnax, is not installed"
    )
    from rejax.evaluate import evaluate

    arms = jb.environments.FiniteArms.bernoulli(
        [[0.8, 0.3, 0.5], [0.3, 0.8, 0.5]], [[0.4, 0.8, 0.9], [0.8, 0.4, 0.9]]
    )
    env = jb.interfaces.gymnax_environment(
        arms, jb.TotalBudget(12.0, last_pull="counts"), key=KEY, max_rounds=60
    )
    if hasattr(env, "is_truncated"):  # gymnax 1.0; rejax 0.1.3 takes the steps of 0.0.9
        from gymnax.wrappers.compat import LegacyStepAPIWrapper

        class Legacy(LegacyStepAPIWrapper):
            def __deepcopy__(
                self, memo: object
            ) -> object:  # rejax copies what it is given; the wrapper cannot be copied
                return self

        env = Legacy(env)
    learner = rejax.get_algo("ppo").create(
        env=env, num_envs=32, num_steps=64, num_epochs=4, num_minibatches=8, total_timesteps=65_536,
        learning_rate=2e-3, gamma=0.999, eval_freq=65_536, skip_initial_evaluation=True,
    )  # fmt: skip
    trained, _ = jax.jit(learner.train)(jax.random.PRNGKey(0))

    def returns(act: object) -> np.ndarray:
        return np.asarray(evaluate(act, jax.random.PRNGKey(1), env, env.default_params, 400)[1])

    learnt = returns(learner.make_act(trained))
    blind = returns(lambda observation, key: jax.random.randint(key, (), 0, 3))
    gain = jb.statistics.mean(learnt - blind, over="episode")
    assert gain.low > 1.0, (learnt.mean(), blind.mean(), gain)
