"""The exact covering oracle of zooming in one dimension: which points of [0, 1] no ball covers.

Points are whole ticks 0 … 2²⁴, and so are centres and radii. A ball is the open interval ``(left,
right)`` of ticks: it holds ``left + 1 … right − 1``. Everything is an int32 comparison, so no
rounding decides whether a point is covered.

Centres and radii of M balls are swept without sorting them: from a point, the furthest right end
among the balls that hold it is the next point to ask about. A stretch that one ball holds, the
common case, costs one look at the M balls, any other one look for each ball of the shortest chain
that covers it. The loops below end at once in a batch in which no lane has further to go.

Source: Trovò et al., *Budgeted multi-armed bandit in continuous action space* (ECAI 2016), §3.1,
Theorem 1.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks


class Balls(NamedTuple):
    """Open intervals of ticks; one with ``right ≤ left + 1`` is empty."""

    left: jax.Array  # i32[M]
    right: jax.Array  # i32[M]


class Span(NamedTuple):
    """The points ``low … high``, both included; none if ``low > high``. Ticks."""

    low: jax.Array  # i32[]
    high: jax.Array  # i32[]


def whole_span() -> Span:
    """The span of all points of [0, 1]."""
    return Span(jnp.int32(0), jnp.int32(ticks.ONE))


def empty_span() -> Span:
    """The span without any point."""
    return Span(jnp.int32(0), jnp.int32(-1))


def _reach(balls: Balls, point: jax.Array) -> jax.Array:
    """The furthest right end of a ball that covers ``point``; −1 if none does."""
    return jnp.max(jnp.where((balls.left < point) & (point < balls.right), balls.right, -1))


def first_hole(balls: Balls, span: Span) -> jax.Array:
    """The first point of the span that no ball covers; a point beyond ``span.high`` if none."""

    def further(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # A ball is open, so its right end is the next point that it does not hold: ask about that
        # one.
        point, _ = state
        reach = _reach(balls, point)
        return jnp.maximum(point, reach), reach < 0

    def goes_on(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        point, stuck = state
        return (point <= span.high) & ~stuck

    start = further((jnp.asarray(span.low), jnp.bool_(False)))  # the only look that most calls need
    return jax.lax.while_loop(goes_on, further, start)[0]


def _stretch(balls: Balls, span: Span, point: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(where the next stretch begins, how many points of this one no ball holds)."""
    # A stretch is what the furthest ball holds from ``point`` on. Without such a ball it is a hole,
    # which ends with the left end of the next one, for a ball is open, or with the span.
    reach = _reach(balls, point)
    next_left = jnp.min(jnp.where(balls.left >= point, balls.left, span.high))
    hole_end, in_hole = jnp.minimum(next_left, span.high), reach < 0
    return jnp.where(in_hole, hole_end + 1, reach), jnp.where(in_hole, hole_end + 1 - point, 0)


def holes(balls: Balls, span: Span) -> jax.Array:
    """How many points of the span no ball covers."""

    def advance(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        point, count = state
        beyond, size = _stretch(balls, span, point)
        return beyond, count + size

    return jax.lax.while_loop(
        lambda s: s[0] <= span.high, advance, (jnp.asarray(span.low), jnp.int32(0))
    )[1]


def nth_hole_point(balls: Balls, span: Span, number: jax.Array) -> jax.Array:
    """The uncovered point of the span after ``number`` < :func:`holes` other uncovered ones."""
    # With a negative number nothing is looked for (and the result means nothing).

    def advance(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        point, remaining = state
        beyond, size = _stretch(balls, span, point)
        is_here = remaining < size  # −1 then ends the loop
        after = jnp.where(is_here, point + remaining, beyond)
        return after, jnp.where(is_here, -1, remaining - size)

    def goes_on(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        return (state[1] >= 0) & (state[0] <= span.high)

    return jax.lax.while_loop(goes_on, advance, (jnp.asarray(span.low), number))[0]
