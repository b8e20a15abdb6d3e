"""Worlds for other libraries' learners: an episode is a lane of ``simulate``."""

from __future__ import annotations

import sys
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from jaxbandits.interfaces import Episodes, gymnax_environment
from tests.contract.worlds import KEY, world

ROUNDS = 40
SETTINGS: dict[str, tuple[str, Any]] = {
    "a budget whose last pull forfeits": (
        "bernoulli",
        jb.TotalBudget([6.0, 9.0, 7.0], last_pull="forfeits"),
    ),
    "an average cost, and a null arm": ("null_arm", jb.AverageCost(c=0.6, rounds=20)),
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.integration_rows("a budget whose last pull forfeits")
def test_an_episode_is_a_lane_of_simulate(name: str) -> None:
    """`rollout`'s arms sent one by one: the same account, tick for tick, the same end."""
    kind, constraint = SETTINGS[name]
    environment, policy = world(kind), jb.policies.BudgetedThompson()
    policy = jb.policies.Guarded(policy) if kind == "null_arm" else policy
    lane = jb.rollout(
        policy, environment, constraint, key=KEY, rounds=ROUNDS, instance=1, replicate=7
    )
    episodes = Episodes(environment, constraint, key=KEY)
    # A skip is the null arm
    arms = jnp.where(lane.action == -1, environment.spec.arms, lane.action)

    def step(episode: Any, arm: jax.Array) -> Any:
        after, reward = episodes.step(episode, arm)
        return after, (reward, episodes.observe(after))

    last, (rewards, observations) = jax.jit(
        lambda: jax.lax.scan(step, episodes.begin(1, jnp.uint32(7)), arms)
    )()
    assert bool(last.done) and int(last.lane.status) == int(lane.status[-1])
    chex.assert_trees_all_equal(
        last.ledger._replace(events={}),
        jax.tree.map(lambda x: x[-1], lane.ledger)._replace(events={}),
    )
    rounds = int(last.ledger.rounds)
    assert rounds == int(lane.played.sum()) == int(last.time) < ROUNDS
    assert float(rewards.sum()) == ticks.to_units(ticks.join(last.ledger.reward))
    assert not rewards[rounds:].any()
    assert observations.shape == (ROUNDS, 4 * environment.spec.arms + 2)
    assert bool(((observations >= 0) & (observations <= 1)).all())
    pulls = np.asarray(last.known.pulls)
    arms_played = np.asarray(lane.action)[np.asarray(lane.played)]
    assert np.array_equal(
        pulls, np.bincount(arms_played[arms_played >= 0], minlength=environment.spec.arms)
    )
    width = environment.spec.arms
    exists = np.asarray((environment.arms if kind == "null_arm" else environment).present)[1]
    assert np.allclose(observations[-1, :width], pulls / (1 + pulls))
    assert np.array_equal(observations[-1, 3 * width : 4 * width] > 0, exists)
    assert float(observations[-1, -2]) == 0.0  # nothing of the clock is left


def test_episodes_differ_by_key_and_stay_when_they_have_ended() -> None:
    arms = world("bernoulli")
    episodes = Episodes(arms, jb.Horizon(2), key=KEY)
    starts = jax.jit(jax.vmap(episodes.reset))(jax.random.split(jax.random.key(3), 20))
    assert set(starts.instance.tolist()) == {0, 1, 2} and len(set(starts.replicate.tolist())) == 20
    step, begin = jax.jit(episodes.step), jax.jit(episodes.begin)
    episode = begin(0, 5)
    for _ in range(3):
        episode, _ = step(episode, 0)
    assert int(episode.time) == 2
    assert int(episode.lane.status) == jb.Status.HORIZON
    assert float(episodes.discount(episode)) == 0
    absent, reward = step(begin(1, 0), 3)  # this instance has three arms only
    assert int(absent.lane.status) == jb.Status.INVALID
    assert float(reward) == 0
    assert int(absent.time) == 0


def test_other_worlds_are_refused() -> None:
    with pytest.raises(jb.InputError, match="environment: 'Continuum' given"):
        Episodes(jb.environments.cost_valley([0.5], lam=0.1), jb.Horizon(3), key=KEY)
    with pytest.raises(jb.InputError, match="last_pull: 'x' given"):
        Episodes(world("bernoulli"), jb.TotalBudget(3.0, last_pull="x"), key=KEY)


def test_without_gymnax_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxbandits import interfaces

    interfaces._kind.cache_clear()
    for name in ("gymnax", "gymnax.environments"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(jb.InputError, match="gymnax: it is not installed"):
        gymnax_environment(world("bernoulli"), jb.Horizon(3), key=KEY)
    interfaces._kind.cache_clear()
