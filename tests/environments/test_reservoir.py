"""Reservoirs of arms: the law of the ratio, tables, samplers and their promises, and the regret."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.core import ticks
from jaxbandits.environments import Reservoir, uniform_outcome
from jaxbandits.policies import RCB, SampledArms, rcb_i

KEY = jax.random.key(90)
FORFEITS = "forfeits"


def reservoir(capacity: int = 24, instances: int = 2, **changes: Any) -> Reservoir:
    return Reservoir.ratio(jax.random.key(5), instances=instances, capacity=capacity, **changes)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_the_ratio_law(beta: float) -> None:
    arms = Reservoir.ratio(
        jax.random.key(1), instances=8, capacity=1, beta=beta, best_ratio=1.6, least_cost=0.2
    )
    reward, cost = arms.first_arms(5000)
    ratio, count = (reward / cost).ravel(), reward.size
    for share in (0.01, 0.1, 0.5, 0.9):
        chance = share**beta
        error = np.sqrt(chance * (1 - chance) / count)
        assert abs((ratio > 1.6 * (1 - share)).mean() - chance) < 3.5 * error
    assert ratio.max() <= 1.6 * (1 + 1e-6)
    assert cost.min() >= 0.2 - 1e-7
    assert cost.max() <= 1
    assert reward.max() <= 1
    # Uniform on [0, 1], whatever the ratio
    place = (cost.ravel() - 0.2) / (np.minimum(1, 1 / ratio) - 0.2)
    assert abs(place.mean() - 0.5) < 3.5 / np.sqrt(12 * count)
    assert abs(np.corrcoef(place, ratio)[0, 1]) < 3.5 / np.sqrt(count)


def test_arms_do_not_depend_on_capacity_batch_or_count() -> None:
    large, small = reservoir(4096).first_arms(4096), reservoir(3).first_arms(3)
    assert all(np.array_equal(a[:, :3], b) for a, b in zip(large, small, strict=True))
    single = reservoir(3).take([1]).first_arms(700)
    assert all(np.array_equal(a[1:2, :700], b) for a, b in zip(large, single, strict=True))
    assert np.unique(large[0]).size > 8000, "arms and instances differ"


def test_uniform_outcomes_have_their_mean() -> None:
    means = jnp.asarray([0, 1, 2**20, 2**23, 2**24 - 5, 2**24], jnp.int32)
    words = jax.random.bits(jax.random.key(0), (20_000,))
    x = np.asarray(
        jax.vmap(lambda m: jax.vmap(lambda w: uniform_outcome(m, w))(words))(means), np.float64
    )
    assert x.min() >= 0 and x.max() <= ticks.ONE
    error = np.maximum(x.std(axis=1) / np.sqrt(x.shape[1]), 1e-9)
    assert (np.abs(x.mean(axis=1) - np.asarray(means)) / error < 3.5).all()


def test_the_regret_is_against_the_supremum() -> None:
    arms = reservoir(instances=3)
    result = jb.simulate(
        rcb_i(60.0, 1.0), arms, jb.TotalBudget(60.0, last_pull=FORFEITS), key=KEY, marks=2
    )
    assert result.best_rate == pytest.approx([2.0] * 3, rel=1e-6)
    spent, reward = (ticks.to_units(result.ledger[f"expected_{x}"]) for x in ("clock", "reward"))
    np.testing.assert_allclose(result.regret.values, 2.0 * spent - reward, rtol=1e-6)


def test_a_table_and_a_sampler() -> None:
    table = Reservoir.empirical([0.1, 0.8, 0.3], [0.5, 0.4, 1.0], KEY, instances=2, capacity=300)
    reward, cost = table.first_arms(300)
    rows = {
        (round(float(r), 6), round(float(c), 6))
        for r, c in zip(reward.ravel(), cost.ravel(), strict=True)
    }
    assert rows == {(0.1, 0.5), (0.8, 0.4), (0.3, 1.0)}
    assert table.values()[0][0] / table.values()[1][0] == pytest.approx([2.0, 2.0])
    assert table.values()[1].min() < 0.41

    def sampler(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.random.uniform(key), jnp.float32(0.5)

    arms = Reservoir.sampled(sampler, KEY, instances=2, capacity=9, best_ratio=2.0, least_cost=0.5)
    arms.check()
    assert arms.first_arms(9)[1].tolist() == [[0.5] * 9] * 2
    result = jb.simulate(
        SampledArms(RCB(), 9), arms, jb.TotalBudget(20.0, last_pull=FORFEITS), key=KEY, marks=1
    )
    assert set(result.status.values.ravel()) == {"exhausted"}


def test_no_mean_of_a_reservoir_is_above_one() -> None:
    for best in (2.0, 1e3, 1e6, 9e6):
        arms = Reservoir.ratio(KEY, instances=1, capacity=4, best_ratio=best, least_cost=1 / best)
        assert all(np.nanmax(x) <= 1 for x in arms.values())


def play(arms: Reservoir) -> jb.Result:
    limit = jb.TotalBudget(10.0, last_pull=FORFEITS)
    return jb.simulate(SampledArms(RCB(), 2), arms, limit, key=KEY)


@pytest.mark.integration
def test_a_sampler_that_breaks_its_promise() -> None:
    def arms(sampler: Any, **changes: Any) -> Reservoir:
        fields = {"instances": 2, "capacity": 4, "best_ratio": 1.0, "least_cost": 0.5} | changes
        return Reservoir.sampled(sampler, KEY, **fields)

    half = jnp.float32(0.5)
    with pytest.raises(jb.InputError, match=r"sampler: .* arm 0 of instance 0 means"):
        play(arms(lambda key: (half, jnp.float32(1.5))))
    with pytest.raises(jb.InputError, match=r"arm 0 of instance 0 0\.25; .* mean cost"):
        play(arms(lambda key: (half / 4, half / 2)))
    with pytest.raises(jb.InputError, match=r"arm 0 of instance 0 1; .* ratio"):
        play(arms(lambda key: (half, half), best_ratio=0.5))
