"""The laws of the finite arms, draw by draw; bad parameters; sets of arms; random instances."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits._engine.scan import at_instance
from jaxbandits.core import ticks
from jaxbandits.environments import (
    FiniteArms,
    random_bernoulli,
    random_beta,
    random_generalised_bernoulli,
)
from jaxbandits.environments.finite import refuses_but_one_arm
from tests.contract.threefry import threefry
from tests.contract.worlds import KEY, world

DRAWS = 20_000


def draws(
    arms: FiniteArms, arm: int, n: int = DRAWS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and costs of an arm's first n pulls in instance 0, in ticks."""
    key = jax.random.key(seed)
    tables = jax.tree.map(jnp.asarray, arms)
    reward, cost = _draws(tables, jnp.int32(arm), key, n)
    return np.asarray(reward), np.asarray(cost)


def _all(tables: Any, arm: jax.Array, key: jax.Array, n: int) -> Any:
    environment = at_instance(tables, jnp.int32(0))
    return jax.vmap(lambda i: environment.outcome(key, arm, i))(jnp.arange(n, dtype=jnp.int32))


_draws = jax.jit(_all, static_argnames="n")


def uncorrelated(reward: np.ndarray, cost: np.ndarray) -> bool:
    return bool(laws.pearsonr(reward.astype(float), cost.astype(float)).pvalue > 0.01)


def test_a_bernoulli_outcome_is_one_exactly_when_its_word_says_so() -> None:
    arms = FiniteArms.bernoulli([0.3, 0.6], [0.1, 0.7])
    reward, cost = draws(arms, 1, n=300, seed=5)
    key = tuple(jax.random.key_data(jax.random.key(5)).tolist())
    for n in range(300):
        words = threefry(key, (n, 1))
        assert reward[n] == ticks.ONE * ((words[0] >> 8) < round(0.6 * ticks.ONE))
        assert cost[n] == ticks.ONE * ((words[1] >> 8) < round(0.7 * ticks.ONE))


def test_generalised_bernoulli_has_the_weights_given() -> None:
    weights = np.array([[0.1, 0.3, 0.0, 0.4, 0.2]])
    arms = FiniteArms.generalised_bernoulli(weights, weights[:, ::-1])
    reward, cost = draws(arms, 0)
    for x, w in ((reward, weights[0]), (cost, weights[0, ::-1])):
        values, counts = np.unique(x, return_counts=True)
        assert values.tolist() == [j * ticks.ONE // 4 for j in range(5) if w[j] > 0]
        assert laws.chisquare(counts, DRAWS * w[w > 0]).pvalue > 0.01 / 2
    assert uncorrelated(reward, cost)


def test_generalised_bernoulli_states_the_mean_of_what_it_draws() -> None:
    rng = np.random.default_rng(0)
    weights = rng.random((50, 7, 5))
    arms = FiniteArms.generalised_bernoulli(weights, weights)
    shares = weights / weights.sum(-1, keepdims=True)
    assert np.abs(arms.values()[0] - shares @ (np.arange(5) / 4)).max() < 4 / ticks.ONE
    exact = 4 * ticks.ONE - np.asarray(arms.law.reward, np.int64).sum(-1)  # type: ignore[attr-defined]
    assert np.array_equal(exact, 4 * np.asarray(arms.mean_reward, np.int64)), (
        "the mean is exactly that of the law"
    )


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.5, 0.5), (2.0, 5.0), (0.1, 3.0), (40.0, 1.0), (1.0, 1.0)]
)
def test_beta_arms_follow_their_law(alpha: float, beta: float) -> None:
    arms = FiniteArms.beta([alpha], [beta], [beta], [alpha])
    reward, cost = draws(arms, 0)
    for x, law in ((reward, laws.beta(alpha, beta)), (cost, laws.beta(beta, alpha))):
        assert (x >= 0).all() and (x <= ticks.ONE).all()
        # half a tick against the steps at 0 and 1, where these laws have much of their mass
        low, high = law.cdf((x - 0.5) / ticks.ONE), law.cdf((x + 0.5) / ticks.ONE)
        spread_out = low + (high - low) * np.random.default_rng(0).random(x.size)
        assert laws.kstest(spread_out, "uniform").pvalue > 0.01 / 10
    assert uncorrelated(reward, cost)
    reward_mean, cost_mean = (m.item() for m in arms.values())
    assert abs(reward_mean - alpha / (alpha + beta)) < 1e-5
    assert abs(cost_mean - beta / (alpha + beta)) < 1e-5


def test_beta_outcomes_rise_with_their_uniform_and_with_the_parameter() -> None:
    """Monotone in the parameters under common random numbers: what paired comparisons profit from."""
    lower, _ = draws(FiniteArms.beta([2.0], [3.0], [1.0], [1.0]), 0)
    upper, _ = draws(FiniteArms.beta([2.5], [3.0], [1.0], [1.0]), 0)
    assert (upper >= lower).all() and (upper > lower).mean() > 0.99


def test_empirical_rows_stay_together_and_are_equally_likely() -> None:
    rewards, costs = [0.1, 0.2, 0.3, 0.1], [0.5, 0.25, 1.0, 0.9]
    arms = FiniteArms.empirical([[([0.0], [0.1]), (rewards, costs)]])
    reward, cost = draws(arms, 1)
    pairs, counts = np.unique(np.stack([reward, cost]), axis=1, return_counts=True)
    expected = {
        (round(r * ticks.ONE), round(c * ticks.ONE)) for r, c in zip(rewards, costs, strict=True)
    }
    assert {tuple(pair) for pair in pairs.T.tolist()} == expected
    columns = {"arm": ["y", "x", *"yyy"], "cost": [0.5, 0.1, 0.25, 1.0, 0.9]}
    frame = pd.DataFrame(columns | {"reward": [0.1, 0.0, 0.2, 0.3, 0.1], "day": 1})
    jax.tree.map(np.testing.assert_array_equal, FiniteArms.empirical(frame), arms)
    twice = frame.rename(columns={"cost": "cost_0"}).assign(cost_1=frame["cost"], instance=7)
    assert FiniteArms.empirical(twice).spec.resources == 2
    assert laws.chisquare(counts).pvalue > 0.01
    assert arms.values()[0][0, 1] == pytest.approx(np.mean(rewards), abs=1 / ticks.ONE)
    assert (draws(arms, 0)[0] == 0).all()


def pull(arms: Any, action: Any, instance: int = 0) -> Any:
    return _pulled(
        jax.tree.map(jnp.asarray, arms), jnp.asarray(action, jnp.int32), jnp.int32(instance)
    )


@jax.jit
def _pulled(tables: Any, action: jax.Array, instance: jax.Array) -> Any:
    environment = at_instance(tables, instance)
    return environment.pull(environment.start(), action, KEY, jnp.int32(1))


def test_a_set_of_arms_is_one_round_of_several_pulls() -> None:
    arms = world("beta")
    state, outcome, feedback, empty = pull(arms, [3, 0, 2])
    singles = [pull(arms, arm) for arm in (3, 0, 2)]
    assert state.tolist() == [1, 0, 1, 1] and bool(outcome.valid) and not bool(empty)
    assert feedback.reward.tolist() == [int(s[2].reward) for s in singles]
    assert feedback.cost.tolist() == [int(s[2].cost) for s in singles]
    for name in ("reward", "cost", "expected_reward", "expected_cost"):
        assert int(getattr(outcome, name)) == sum(int(getattr(s[1], name)) for s in singles)
    assert not bool(pull(arms, [1, 1])[1].valid), "an arm twice in a set"


@pytest.mark.parametrize(
    ("action", "instance"), [(-1, 0), (4, 0), (2**31 - 1, 0), (-(2**31), 0), (3, 1), (1, 2)]
)
def test_an_action_that_does_not_exist_is_not_valid(action: int, instance: int) -> None:
    assert not bool(pull(world("bernoulli"), action, instance=instance)[1].valid)


def test_the_null_arm_and_a_skip_do_nothing() -> None:
    for action, event in ((4, "null"), (-1, "skips")):
        state, outcome, feedback, empty = pull(world("null_arm"), action)
        assert not state.any() and bool(empty) and bool(outcome.valid)
        assert not any(int(x) for x in (outcome.reward, outcome.cost, *feedback))
        assert {name: int(x) for name, x in outcome.events.items()} == {"null": 0, "skips": 0} | {
            event: 1
        }


def test_absent_arms() -> None:
    reward = [[0.5, np.nan], [0.2, 0.3]]
    cost = [[0.5, -7.0], [0.4, 0.1]]
    present = [[True, False], [True, True]]
    arms = FiniteArms.bernoulli(reward, cost, present)
    values = arms.values()
    assert np.array_equal(np.isnan(values[0]), ~np.array(present))
    assert np.array_equal(np.isnan(values[1]), ~np.array(present))
    assert arms.take([0], arms=1).spec.arms == 1
    with pytest.raises(jb.InputError, match=r"^arms: 1 given"):
        arms.take([0, 1], arms=1)


@pytest.mark.parametrize("make", [random_bernoulli, random_generalised_bernoulli, random_beta])
def test_random_instances_are_addressed(make: Any) -> None:
    small, large = make(KEY, 2, 3), make(KEY, 4, 5)
    # More change not the others
    chex.assert_trees_all_equal(small, jax.tree.map(lambda x: x[:2, :3], large))
    again, different = make(KEY, 2, 3), make(jax.random.key(1), 2, 3)
    assert np.array_equal(small.mean_reward, again.mean_reward)
    assert not np.array_equal(small.mean_reward, different.mean_reward)


def test_random_instances_have_the_laws_of_the_paper() -> None:
    """20,000 arms each; four tests, so Bonferroni at 1 %."""
    arms = random_bernoulli(KEY, 2000, 10)
    reward, cost = (x.ravel() for x in arms.values())
    assert laws.kstest(reward, "uniform").pvalue > 0.01 / 4
    assert laws.kstest((cost - 0.01) / 0.99, "uniform").pvalue > 0.01 / 4
    for mean in (x.ravel() for x in random_generalised_bernoulli(KEY, 2000, 10).values()):
        assert laws.ttest_1samp(mean, 0.5).pvalue > 0.01 / 4


def test_a_subclass_is_made_as_its_parent_is() -> None:
    class Arms(FiniteArms):
        pass

    class Table(jb.environments.RequestTable):
        pass

    class Segments(jb.environments.Piecewise):
        pass

    class Shelf(jb.environments.Stocked):
        pass

    rows, means = [([0.5], [0.25])], np.full((1, 2), 0.5)
    worlds = [
        Arms.bernoulli(means, means),
        Arms.generalised_bernoulli(np.ones((1, 2, 5)), np.ones((1, 2, 5))),
        Arms.beta(means, means, means, means),
        Arms.empirical([rows]),
        Table.of(means, means),
        Segments.bernoulli(np.stack([means[0], means[0]]), np.stack([means[0], means[0]]), at=[9]),
        Shelf.of(FiniteArms.bernoulli(means, means), pulls=3),
    ]
    assert [type(world) for world in worlds] == [Arms, Arms, Arms, Arms, Table, Segments, Shelf]


def test_one_arm_is_one_whole_number() -> None:
    for action, is_one in ((np.int32(1), True), (np.float32(1), False), (np.ones(2, int), False)):
        assert (refuses_but_one_arm(action) is None) == is_one
