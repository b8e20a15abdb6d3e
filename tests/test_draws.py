"""Draws for policies of one's own: addresses, laws, and the same numbers whatever a table's width."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats as laws

import jaxbandits as jb
from jaxbandits import draws
from jaxbandits.core import streams
from jaxbandits.policies.soft import Posterior

KEY = jax.random.key(0)


def test_an_address_is_what_the_page_says() -> None:
    assert jax.random.key_data(draws.key(KEY, 5, 1, 2)).tolist() == [3820967083, 2467704204]
    first, second = draws.normal(KEY, 5, 1, 3, pair=True)
    assert [round(float(x[2]), 6) for x in (first, second)] == [0.431511, -0.218356]
    assert float(draws.beta(KEY, 5, 1, jnp.full(3, 3), jnp.full(3, 5))[2]) == pytest.approx(
        0.448868, abs=1e-6
    )
    assert float(draws.beta(KEY, 5, 1, jnp.full(3, 3.0), jnp.full(3, 5.0))[2]) == pytest.approx(
        0.448868, abs=1e-6
    )
    assert float(draws.gamma(KEY, 5, 1, jnp.full(3, 4.0))[2]) == pytest.approx(4.555321, abs=1e-5)
    assert draws.Role.USER == 34


def test_it_is_the_draw_of_the_built_in_sampler() -> None:
    counts = Posterior(jnp.array([9, 4, 30]), jnp.array([3, 4, 11]), jnp.array([5, 0, 2]))
    theta = jb.policies.BudgetedThompson().draws(counts, KEY, jnp.int32(7))
    roles = (streams.Role.THETA_REWARD, streams.Role.THETA_COST)
    for values, role, hits in zip(theta, roles, counts[1:], strict=True):
        sample = draws.beta(KEY, jnp.int32(7), role, 1 + hits, 1 + counts.pulls - hits)
        np.testing.assert_array_equal(values, sample)


@pytest.mark.parametrize("draw", ["uniform", "normal", "beta", "gamma"])
def test_further_arms_change_no_draw_and_rounds_and_roles_do(draw: str) -> None:
    def sample(arms: int, round: int = 3, role: int = draws.Role.USER) -> np.ndarray:
        shapes = jnp.linspace(0.5, 6.5, 40)[:arms]
        arguments: Any = {
            "uniform": (arms,),
            "normal": (arms,),
            "beta": (shapes, shapes + 1),
            "gamma": (shapes,),
        }[draw]
        return np.asarray(getattr(draws, draw)(KEY, round, role, *arguments))

    np.testing.assert_array_equal(sample(7), sample(40)[:7])
    for changed in (sample(7, round=4), sample(7, role=36)):
        assert (sample(7) != changed).all()


LAWS = {
    "uniform": (lambda t: draws.uniform(KEY, t, 34, 3), lambda arm: laws.uniform()),
    "normal": (lambda t: draws.normal(KEY, t, 34, 3), lambda arm: laws.norm()),
    "beta": (
        lambda t: draws.beta(KEY, t, 34, jnp.array([0.3, 2.0, 700.0]), jnp.array([0.6, 0.5, 90.0])),
        lambda arm: laws.beta([0.3, 2, 700][arm], [0.6, 0.5, 90][arm]),
    ),
    "gamma": (
        lambda t: draws.gamma(KEY, t, 34, jnp.array([0.2, 1.0, 50.0]), 2.0),
        lambda arm: laws.gamma([0.2, 1, 50][arm], scale=0.5),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_that_law(name: str) -> None:
    """Kolmogorov–Smirnov on 20,000 rounds, Bonferroni at 1 % over three arms."""
    draw, law = LAWS[name]
    table = np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(1, 20_001)))
    for arm in range(3):
        assert laws.kstest(table[:, arm], law(arm).cdf).pvalue > 0.01 / 3 / len(LAWS)


def test_shapes_out_of_range_are_named_and_traced_ones_are_no_number() -> None:
    with pytest.raises(jb.InputError, match=r"a: .* above 0 and at most"):
        draws.beta(KEY, 1, 34, np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    with pytest.raises(jb.InputError, match=r"shape: .* \[K\], one number for each arm"):
        draws.gamma(KEY, 1, 34, 2.0)
    traced = jax.jit(lambda a: draws.beta(KEY, 1, 34, a, jnp.ones(2)))(jnp.array([1.0, -1.0]))
    assert np.isnan(np.asarray(traced)).tolist() == [False, True]
