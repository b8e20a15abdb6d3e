"""Exact money: operations against Python's integers; ten million pulls lose no tick."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jaxbandits as jb
from jaxbandits._numerics.arrays import prefix_sums
from jaxbandits.core import ticks
from jaxbandits.core.ticks import ONE, Total


def examples(*rows: tuple) -> Callable:
    """Rows that hypothesis tries in any case."""
    return lambda test: functools.reduce(
        lambda decorated, row: example(*row)(decorated), rows, test
    )


LARGEST = (2**31 - 1) * ONE + (ONE - 1)
SMALLEST = -(2**31) * ONE

outcomes = st.one_of(st.integers(0, ONE), st.sampled_from([0, 1, ONE // 2, ONE - 1, ONE]))
# Sums and differences of two totals in [−HALF, HALF) are totals, the largest one among them
HALF = 2**30 * ONE
totals = st.one_of(
    st.integers(-(2**53), 2**53), st.integers(-HALF, HALF - 1), st.integers(-2 * ONE, 2 * ONE)
)
counts = st.one_of(
    st.integers(0, 2**31 - 1), st.sampled_from([0, 1, 2**16 - 1, 2**16, 2**24, 2**31 - 1])
)
increments = st.one_of(st.integers(-(2**31) + ONE, 2**31 - 1 - ONE), st.integers(-ONE, ONE))


def total(value: int) -> Total:
    return Total(*(jnp.int32(x) for x in ticks.split(np.int64(value))))


def value(total: Total) -> int:
    assert total.whole.dtype == total.part.dtype == jnp.int32
    assert 0 <= int(total.part) < ONE
    return int(total.whole) * ONE + int(total.part)


add, plus, minus = jax.jit(ticks.add), jax.jit(ticks.plus), jax.jit(ticks.minus)
times, spread = jax.jit(ticks.times), jax.jit(ticks.spread)
smaller, larger = jax.jit(ticks.smaller), jax.jit(ticks.larger)
has_reached, exceeds = jax.jit(ticks.reached), jax.jit(ticks.exceeds)
to_float = jax.jit(ticks.to_float)


@given(totals, increments)
@examples(
    (0, 2**31 - 1 - ONE),
    (ONE - 1, 2**31 - 1 - ONE),
    (0, -(2**31) + ONE),
    (-1, 1),
    (ONE - 1, 1),
    (0, -1),
    (LARGEST - ONE, ONE),
    (SMALLEST + ONE, -ONE),
)
def test_add(a: int, x: int) -> None:
    assert value(add(total(a), jnp.int32(x))) == a + x


@given(totals, totals)
@examples(
    (LARGEST - 1, 1),
    (ONE - 1, ONE - 1),
    (-1, 1),
    (SMALLEST, ONE - 1),
    (HALF - 1, HALF - 1),
    (-HALF, -HALF),
)
def test_plus(a: int, b: int) -> None:
    assert value(plus(total(a), total(b))) == a + b


@given(totals, totals)
@examples((0, LARGEST), (SMALLEST, 0), (HALF - 1, -HALF), (ONE, 1), (LARGEST, LARGEST))
def test_minus(a: int, b: int) -> None:
    assert value(minus(total(a), total(b))) == a - b


@given(outcomes, counts)
@examples(
    (ONE, 2**31 - 1), (ONE - 1, 2**31 - 1), (0xFFF, 0xFFFF), (0xFFF000, 0x7FFF0000), (1, 2**31 - 1)
)
def test_times(x: int, n: int) -> None:
    assert value(times(jnp.int32(x), jnp.int32(n))) == x * n


@given(outcomes)
@examples((0,), (1,), (ONE // 2,), (ONE - 1,), (ONE,))
def test_spread_is_the_nearest_tick(x: int) -> None:
    exact = Fraction(x * (ONE - x), ONE)
    assert int(spread(jnp.int32(x))) == int(exact + Fraction(1, 2))  # half rounds up
    if x in (0, ONE):
        assert int(spread(jnp.int32(x))) == 0


@given(totals, totals)
@examples((ONE, ONE), (ONE, ONE - 1), (-1, 0), (ONE + 5, 2 * ONE + 3))
def test_order(a: int, b: int) -> None:
    x, y = total(a), total(b)
    assert value(smaller(x, y)) == min(a, b)
    assert value(larger(x, y)) == max(a, b)
    assert bool(has_reached(x, y)) == (a >= b)
    assert bool(exceeds(x, y)) == (a > b)


@given(st.integers(0, 2**24 * ONE))
@examples((2**24 * ONE,), ((2**24 - 1) * ONE + ONE - 1,), (0,), (1,))
def test_to_float_rounds_once(a: int) -> None:
    ulp = Fraction(float(np.spacing(np.float32(a / ONE))))
    assert abs(Fraction(float(to_float(total(a)))) - Fraction(a, ONE)) <= ulp / 2


@given(totals)
@example(LARGEST)
@example(SMALLEST)
def test_split_and_join_are_inverse(a: int) -> None:
    assert int(ticks.join(ticks.split(np.int64(a)))) == a
    assert value(total(a)) == a


@given(st.floats(0, 2**30))
def test_budgets_round_down(units: float) -> None:
    granted = int(ticks.floor_from_units(units))
    assert Fraction(granted, ONE) <= Fraction(units) < Fraction(granted + 1, ONE)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 32, 64, 65])
def test_prefix_sums_by_parts_are_those_of_the_plain_definition(n: int) -> None:
    x = np.random.default_rng(n).integers(-(2**24), 2**24, (5, n)).astype(np.int32)
    x[0] = 2**24  # the largest outcomes
    assert np.array_equal(jax.vmap(prefix_sums)(x), np.cumsum(x, axis=1, dtype=np.int32))


def test_prefix_sums_of_64_full_outcomes_fit_one_limb() -> None:
    block = jnp.cumsum(jnp.full(64, ONE, jnp.int32), dtype=jnp.int32)
    start = total(5 * ONE + ONE - 1)
    sums = ticks.add(Total(*(jnp.broadcast_to(x, (64,)) for x in start)), block)
    assert ticks.join(sums).tolist() == [6 * ONE - 1 + (i + 1) * ONE for i in range(64)]


@pytest.mark.integration
def test_ten_million_pulls_lose_no_tick() -> None:
    pulls = 10_000_000
    arms = jb.environments.FiniteArms.empirical([[([0.7], [0.2])]])
    result = jb.simulate(
        jb.policies.CUCB(),
        arms,
        jb.Horizon(pulls),
        key=jax.random.key(0),
        marks=1,
        chunk=20_000,
        engine="scan",
    )
    assert result.ledger["rounds"].item() == pulls
    assert result.ledger["spent"].item() == pulls * round(0.2 * 2**24)
    assert result.ledger["reward"].item() == pulls * round(0.7 * 2**24)
    assert result.final["pulls"].item() == pulls


@pytest.mark.slow
def test_ten_million_pulls_in_leaps_lose_no_tick() -> None:
    logs = [([0.7], [0.2]), ([0.1], [0.3])]
    arms = jb.environments.FiniteArms.empirical([logs])
    result = jb.simulate(
        jb.policies.CUCB(),
        arms,
        jb.Horizon(10_000_000),
        key=jax.random.key(0),
        marks=1,
        engine="leap",
    )
    pulls = result.final["pulls"].ravel().tolist()
    assert sum(pulls) == 10_000_000 and min(pulls) > 0
    for name, column in (("reward", 0), ("spent", 1)):
        exact = sum(n * round(log[column][0] * 2**24) for n, log in zip(pulls, logs, strict=True))
        assert result.ledger[name].item() == exact
