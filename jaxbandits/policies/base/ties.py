"""The arm with the largest score, exact ties broken by the round's hash."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams
from jaxbandits.core.protocol import View
from jaxbandits.core.streams import Role


def largest(
    scores: jax.Array, key: jax.Array, view: View, fresh: jax.Array | None = None, arms: int | None = None
) -> jax.Array:
    """The available arm with the largest score, exact ties broken uniformly at random.

    Args:
        scores: ``f32[K]``. If any is NaN, the result is K, which no environment has: the lane ends as invalid.
        key: the policy's key.
        view: the round to be decided.
        fresh: arms that come before all others, in index order (initial pulls).
        arms: K, where ``scores`` (and ``fresh``) are longer; what stands behind the first K is no arm.
    """
    width = scores.shape[0]
    ids = jax.lax.iota(jnp.int32, width)
    order = streams.priorities(streams.policy_words(key, view.round, Role.TIE)[0], width)
    if fresh is not None:
        scores = jnp.where(fresh, jnp.inf, scores)
        order = jnp.where(fresh, ids.astype(jnp.uint32), behind_the_fresh(order))
    keys, padding = sortable(scores), 0 if arms is None else width - arms
    if view.available is not None:
        keys = jnp.where(jnp.pad(view.available, (0, padding)), keys, ABSENT)
    elif padding:
        keys = jnp.where(ids < width - padding, keys, ABSENT)
    best, arm = first_of_largest(keys, order, ids)
    return jnp.where((best != NAN) & (best != ABSENT), arm, width - padding)


ABSENT, NAN = np.int32(-(2**31)), np.int32(2**31 - 1)  # keys below and above those of all numbers


def sortable(scores: jax.Array) -> jax.Array:
    """Int32 keys in the order of the scores (−0 equals 0), NaN above all.

    XLA on CPU reduces whole numbers at least twice as fast as floats, whose maximum must mind NaN.
    """
    bits = jax.lax.bitcast_convert_type(scores, jnp.int32)
    minus_zero = bits == np.int32(-(2**31))  # XLA would drop an addition of 0, which would also make it 0
    turned = bits ^ ((bits >> 31) & np.int32(2**31 - 1))  # negative floats sort the other way round
    return jnp.where(jnp.isnan(scores), NAN, jnp.where(minus_zero, 0, turned))


def first_of_largest(keys: jax.Array, order: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(the largest key, the id of the arm that has it; of several the first in ``order``, then the smallest id)."""
    best, last = jnp.max(keys), np.uint32(0xFFFFFFFF)
    priority = jnp.where(keys == best, jnp.minimum(order, last - 1), last)
    return best, jnp.min(jnp.where(priority == jnp.min(priority), ids, np.int32(2**31 - 1)))


def behind_the_fresh(order: jax.Array) -> jax.Array:
    """Priorities that come after every arm id."""
    return (order >> 1) | jnp.uint32(1 << 31)


def tie_winners(tied: jax.Array, key: jax.Array, rounds: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Whom :func:`largest` would draw in each of these rounds if just the arms ``tied`` shared the largest score.

    One pass over arms and rounds: the arm is found again from its priority.

    Args:
        tied: ``bool[K]``.
        key: the policy's key.
        rounds: ``i32[h]``.

    Returns:
        The arms ``i32[h]``, K for none; and where that is certain (all but one time in 10⁹).
    """
    width = tied.shape[0]
    words = jax.vmap(lambda round: streams.policy_words(key, round, Role.TIE)[0])(rounds)
    ids, last = jax.lax.iota(jnp.uint32, width), np.uint32(0xFFFFFFFF)
    others = jnp.where(tied, jnp.uint32(0), last)
    # Arms before rounds: so it is a minimum of vectors, which XLA on CPU makes twice as fast.
    order = behind_the_fresh(streams.priority(words[None, :], ids[:, None])) | others[:, None]
    priority = jnp.min(order, axis=0)
    both = jnp.stack([streams.arm_at(words, (priority << 1) | bit) for bit in np.arange(2, dtype=np.uint32)])
    both = jnp.minimum(both, width).astype(jnp.int32)
    arms = jnp.min(jnp.where(tied.at[both].get(mode="fill", fill_value=False), both, width), axis=0)
    return arms, priority < last - 1
