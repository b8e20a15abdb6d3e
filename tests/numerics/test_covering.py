"""The covering oracle against a brute-force sweep."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxbandits._numerics import covering
from jaxbandits._numerics.covering import Balls, Span
from jaxbandits.core import ticks
from jaxbandits.policies.zooming import uncovered_point
from tests.policies.reference.continuum import uncovered

BALLS = 12
first_hole, holes, pick = (
    jax.jit(f) for f in (covering.first_hole, covering.holes, covering.nth_hole_point)
)

# Coarse numbers, so that ends meet; fine ones, so that gaps of one point occur; and balls that hold
# nothing.
coarse = st.integers(-2, 10).map(lambda k: k * ticks.ONE // 8)
near = st.builds(lambda k, d: k * ticks.ONE // 8 + d, st.integers(-2, 10), st.integers(-2, 2))
ends = st.one_of(coarse, near, st.integers(-ticks.ONE, 2 * ticks.ONE))
balls = st.lists(st.tuples(ends, ends).map(lambda p: (min(p), max(p))), max_size=BALLS)


def arrays(pairs: list[tuple[int, int]]) -> Balls:
    padded = pairs + [(0, 0)] * (BALLS - len(pairs))
    low, high = np.array(padded, np.int32).T
    return Balls(jnp.asarray(low), jnp.asarray(high))


def gaps_within(pairs: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    clipped = [(max(a, low), min(b, high)) for a, b in uncovered(pairs)]
    return [(a, b) for a, b in clipped if a <= b]


@given(balls)
def test_the_whole_interval(pairs: list[tuple[int, int]]) -> None:
    gaps = uncovered(pairs)
    ours = arrays(pairs)
    assert int(holes(ours, covering.whole_span())) == sum(b - a + 1 for a, b in gaps)
    first = int(first_hole(ours, covering.whole_span()))
    assert first == gaps[0][0] if gaps else first > ticks.ONE


@given(balls, ends, ends, st.integers(0, 2**30))
def test_a_span_and_every_point_of_it(
    pairs: list[tuple[int, int]], a: int, b: int, number: int
) -> None:
    low, high = max(min(a, b), 0), min(max(a, b), ticks.ONE)
    gaps, ours, span = (
        gaps_within(pairs, low, high),
        arrays(pairs),
        Span(jnp.int32(low), jnp.int32(high)),
    )
    total = sum(q - p + 1 for p, q in gaps)
    assert int(holes(ours, span)) == total
    first = int(first_hole(ours, span))
    assert first == gaps[0][0] if gaps else first > high
    if total:
        rest = number % total
        for p, q in gaps:
            if rest <= q - p:
                break
            rest -= q - p + 1
        assert int(pick(ours, span, jnp.int32(number % total))) == p + rest


def test_a_hole_between_the_ends_of_an_annulus_is_seen() -> None:
    """Both new ends are covered and a point between is not: the inexact test (SPEC D.5)."""
    unit = ticks.ONE
    ours = arrays(
        [
            (unit // 2 - 100, unit // 2 + 100),
            (unit // 2 + 90, unit // 2 + 200),
            (unit // 2 + 300, unit + 1),
        ]
    )
    annulus = Span(jnp.int32(unit // 2 + 100), jnp.int32(unit // 2 + 400))
    assert int(first_hole(ours, annulus)) == unit // 2 + 200
    assert int(holes(ours, annulus)) == 101


def test_points_are_drawn_uniformly_over_all_gaps() -> None:
    """Two spans, three gaps: shares of 20,000 draws are the gaps' lengths."""
    unit = ticks.ONE
    pairs = [
        (-1, unit // 8),
        (unit // 4, unit // 2),
        (unit // 2 - 5, unit * 3 // 4),
        (unit * 7 // 8, unit + 1),
    ]
    ours, middle = arrays(pairs), jnp.int32(unit // 2)
    spans = Span(jnp.int32(0), middle), Span(middle + 1, jnp.int32(unit))
    rounds = jnp.arange(1, 20_001)
    points, needed = jax.jit(
        jax.vmap(lambda t: uncovered_point(ours, *spans, jax.random.key(3), t))
    )(rounds)
    assert bool(needed.all())
    gaps = uncovered(pairs)
    counts = np.array([((points >= a) & (points <= b)).sum() for a, b in gaps])
    assert counts.sum() == 20_000
    share = np.array([b - a + 1 for a, b in gaps]) / sum(b - a + 1 for a, b in gaps)
    z = (counts / 20_000 - share) / np.sqrt(share * (1 - share) / 20_000)
    assert np.abs(z).max() < 3.5
    a, b = gaps[0]
    inside = np.sort((np.asarray(points)[(points >= a) & (points <= b)] - a) / (b - a))
    worst = np.abs(inside - np.arange(1, inside.size + 1) / inside.size).max()
    assert worst < 1.63 / np.sqrt(inside.size), "Kolmogorov-Smirnov, 1 %"


@pytest.mark.parametrize("pairs", [[], [(-5, ticks.ONE + 1)], [(0, ticks.ONE)]])
def test_ends_of_the_interval(pairs: list[tuple[int, int]]) -> None:
    expected = {0: ticks.ONE + 1, 1: 0, 2: 2}[len(pairs) + (pairs[:1] == [(0, ticks.ONE)])]
    assert int(holes(arrays(pairs), covering.whole_span())) == expected
