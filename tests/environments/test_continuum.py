"""The continuum: outcomes by address, means, noise, checks; bids in logged auctions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits._engine.scan import at_instance
from jaxbandits._engine.setup import lay_out
from jaxbandits._numerics import beta
from jaxbandits.core import ticks
from jaxbandits.environments import Continuum, LoggedAuctions, cost_valley, reward_hill
from jaxbandits.environments.noise import Beta
from jaxbandits.testing import check_environment

KEY = jax.random.key(9)
POINTS = [jnp.float32(x) for x in (0.0, 0.1, 0.37, 0.5, 0.99, 1.0)]


def line(x: jax.Array, p: Any) -> jax.Array:
    return 0.25 + 0.5 * x


def level(x: jax.Array, p: Any) -> jax.Array:
    return p["level"]


def world(**changes: Any) -> Continuum:
    fields: dict[str, Any] = {
        "lipschitz_reward": 0.5,
        "lipschitz_cost": 0.0,
        "parameters": {"level": [0.3, 0.8]},
    } | changes
    return Continuum.of(line, level, **fields)


@pytest.mark.parametrize("name", ["bernoulli", "beta", "hill", "auctions"])
@pytest.mark.integration_rows("bernoulli", "beta", "hill")
def test_environment_keeps_the_contract(name: str) -> None:
    environment = {
        "bernoulli": world,
        "beta": lambda: world(reward_noise=Beta(2.0), cost_noise=Beta(0.5)),
        "hill": lambda: reward_hill([0.3, 0.9], peak=0.5),
        "auctions": lambda: auctions(low=3),
    }[name]()
    assert check_environment(environment, POINTS, key=KEY, counted=False) < 4


def auctions(**more: Any) -> LoggedAuctions:
    rng = np.random.default_rng(0)
    return LoggedAuctions.of(rng.integers(0, 40, 500), rng.random(500), **more)


def test_the_paper_s_families() -> None:
    """Means by hand at three points, P-BZ §4."""
    x = np.array([[0.3, 0.35, 0.9]])
    reward, cost = cost_valley([0.3], 0.1).means_at(x)
    bump = np.exp(-500 * (x - 0.3) ** 2)
    np.testing.assert_allclose(reward, 0.05 * x + 0.95, atol=2e-7)
    np.testing.assert_allclose(cost, 0.1 + 0.2 * (1 - bump), atol=2e-7)
    reward, cost = reward_hill([0.3]).means_at(x)
    np.testing.assert_allclose(reward, 0.2 * bump, atol=2e-7)
    assert (cost == 0.5).all()


def test_the_best_rate_is_that_of_the_continuum() -> None:
    """Best ratio of the valley: scipy's, to 3e-6; a point of a coarse grid would be off by 1e-4."""
    from scipy.optimize import minimize_scalar

    centre = np.array([0.2173, 0.5, 0.9411])
    reward, cost = cost_valley(centre, 0.05).values()
    for i, c in enumerate(centre):
        optimum = minimize_scalar(
            lambda x, c=c: -(0.95 + 0.05 * x) / (0.05 + 0.2 * (1 - np.exp(-500 * (x - c) ** 2))),
            bounds=(c - 0.02, c + 0.02), method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        assert abs((reward[i] / cost[i]).max() / -optimum.fun - 1) < 3e-6


def test_an_outcome_belongs_to_the_point_and_its_count() -> None:
    """Whatever is played in between; points new in different rounds meet different outcomes."""
    lane, key = at_instance(jax.tree.map(jnp.asarray, world()), jnp.int32(1)), jax.random.key(4)

    @jax.jit
    def play(actions: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(state: Any, inputs: Any) -> Any:
            state, outcome, _, _ = lane.pull(state, inputs[0], key, inputs[1])
            return state, (outcome.reward, outcome.cost)

        return jax.lax.scan(step, lane.start(), (actions, jnp.arange(1, actions.shape[0] + 1)))[1]

    alone = play(jnp.full(200, 0.5))
    mixed = play(jnp.tile(jnp.array([0.5, 0.4, 0.3, 0.2]), 200))
    for a, m in zip(alone, mixed, strict=True):
        np.testing.assert_array_equal(a, m[::4][:200])
    assert (mixed[1][1::4] != mixed[1][2::4]).any()


def test_beta_noise_has_the_law_and_the_mean() -> None:
    """At a tabulated mean the law is Beta (KS distance), between the mean is the stated one."""
    noise = Beta(3.0)
    words = jnp.arange(2**16, dtype=jnp.uint32) * jnp.uint32(2**16) + jnp.uint32(2**15)
    outcomes = jax.jit(jax.vmap(noise.outcome, (None, 0)))
    sample = np.sort(np.asarray(outcomes(jnp.int32(ticks.ONE * 24 // 64), words)) / ticks.ONE)
    exact = laws.beta(3 * 24 / 64, 3 * 40 / 64).cdf(sample)
    assert np.abs(exact - (np.arange(2**16) + 0.5) / 2**16).max() < 5e-4
    for units in (0.0, 0.013, 0.41, 0.7777, 1.0):
        mean = jnp.int32(round(units * ticks.ONE))
        sample = np.asarray(outcomes(mean, words)) / ticks.ONE
        assert abs(sample.mean() - int(noise.mean(mean)) / ticks.ONE) < 2e-4
        assert abs(int(noise.mean(mean)) / ticks.ONE - units) < 3e-5


@pytest.mark.parametrize("kappa", [1e-5, 4.0, 1e9])
def test_noise_of_any_concentration_keeps_its_means(kappa):
    law = Beta(kappa)
    law.check()
    stated = np.arange(0, 65) * (ticks.ONE // 64)
    assert (
        np.abs(np.asarray(law.mean(jnp.asarray(stated, jnp.int32))) - stated).max()
        <= 1e-4 * ticks.ONE
    )


@pytest.mark.parametrize("kappa", [1e10, 1e308, 0.0, np.nan, True, "4"])
def test_noise_beyond_the_tables(kappa):
    with pytest.raises(jb.InputError, match=r"Beta.concentration: "):
        Beta(kappa).check()
    assert beta.MOST_SHAPE == 1e9


def wrong(**more: Any) -> None:
    policy = jb.policies.BZoom(lam=0.3, lipschitz=10.0)
    lay_out(policy, world(**more), jb.TotalBudget(9.0, last_pull="forfeits"), key=KEY)


def test_a_steeper_place_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="lipschitz_reward: 0.1 given for instance 0"):
        wrong(lipschitz_reward=0.1)


def test_points_as_arms() -> None:
    finite = cost_valley([0.2, 0.6], [0.1, 0.5]).at([[0.2, 0.9], [0.1, 0.6]])
    reward, cost = finite.values()
    np.testing.assert_allclose(cost, [[0.1, 0.3], [0.7, 0.5]], atol=1e-6)
    assert reward.shape == (2, 2)


def test_auctions_are_paid_only_if_won() -> None:
    """Means of three bids by hand, and the same auction in the same round whoever bids."""
    log = LoggedAuctions.of([10, 20, 40], [1.0, 0.5, 0.25], low=5, top=50)
    reward, cost = (x[0] for x in log.values())
    np.testing.assert_allclose(
        reward[[9 - 5, 10 - 5, 20 - 5, 40 - 5]], [0, 1 / 3, 0.5, 1.75 / 3], atol=1e-7
    )
    np.testing.assert_allclose(
        cost[[9 - 5, 10 - 5, 20 - 5, 40 - 5]], [0, 10 / 150, 30 / 150, 70 / 150], atol=1e-7
    )
    lane = at_instance(jax.tree.map(jnp.asarray, log), jnp.int32(0))
    bids = [int(lane.bid(jnp.float32(x))) for x in (0.0, 0.5, 0.9999, 1.0)]
    assert bids == [5, 23, 40, 40]

    def both(t: jax.Array) -> Any:
        high, low = (lane.pull((), jnp.float32(x), KEY, t)[1] for x in (1.0, 0.3))
        return high.cost, low.cost

    high, low = (np.asarray(x) for x in jax.jit(jax.vmap(both))(jnp.arange(1, 300)))
    assert ((low == high) | (low == 0)).all() and (low > 0).any() and (low < high).any()
