"""Index policies: one class, one method ``score``; initial pulls, ties, argmax and statistics are inherited."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import stats, streams
from jaxbandits.policies.arm_totals import ArmTotals
from jaxbandits.protocol import View
from jaxbandits.stats import Arms, Statistics
from jaxbandits.streams import Role

P = TypeVar("P", bound="IndexPolicy")
NEVER = np.int32(2**31 - 1)  # a round that does not come


class IndexPolicy(ArmTotals):
    """Pull each arm once in index order, then the arm with the largest :meth:`score`; exact ties at random.

    Attributes:
        spreads: True if the score reads Σx(1 − x) (``arms.reward_spread``, ``arms.cost_spread``).
        rests: True if an arm's score depends on its own statistics and t only, and never falls while the arm rests. A
            capability: it counts where it is declared, and a subclass with another score must declare it again (see
            :mod:`jaxbandits.capabilities`).
        rounding: by how much of itself a float32 score that rests may fall all the same, times two; the leap engine
            keeps this distance. 2⁻²⁰ covers formulas of some twenty operations (measured: 1.9·10⁻⁷).
    """

    rests: ClassVar[bool] = False
    rounding: ClassVar[float] = 2.0**-20

    @abstractmethod
    def score(self, arms: Arms) -> jax.Array:
        """The index of every arm, elementwise in ``arms`` (float32); +∞ forces a pull."""
        raise NotImplementedError

    def admits(self, state: Statistics, view: View) -> jax.Array:
        """Which of the available arms take part in this round, ``bool[K]``: all of them."""
        return view.available

    def steady(self, state: Statistics, round: jax.Array) -> jax.Array:
        """A round up to which :meth:`admits` and :meth:`trouble` say what they say at ``round``, ``i32[]``.

        If the arms' totals change, but not which arms were pulled. A policy with an ``admits`` of its own must tell, or
        no engine plays many of its rounds at once; a round before ``round`` says that nothing is known.
        """
        return jnp.int32(NEVER)

    def select(self, state: Statistics, key: jax.Array, view: View) -> tuple[Statistics, jax.Array]:
        """The arm with the largest index, of those that take part."""
        view = view._replace(available=self.admits(state, view))
        scores = evaluate(self, stats.as_floats(state, view.round))
        return state, largest(scores, key, view, fresh=state.pulls == 0)


def evaluate(policy: IndexPolicy, arms: Arms) -> jax.Array:
    """The one place where a score is computed.

    XLA may compile one formula to different bits in different surroundings, because it moves arithmetic through
    broadcasts. Here every input is first broadcast to the full shape, and a barrier keeps the compiler from looking
    behind it: what follows is the same elementwise program for every engine and batch.
    """
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, arms.n.shape), policy)
    wide, arms = jax.lax.optimization_barrier((wide, arms))
    return wide.score(arms)


def clears(policy: IndexPolicy, score: jax.Array, ceiling: jax.Array) -> jax.Array:
    """Is a score above a ceiling on the others by more than rounding may hide? −∞: there are no others."""
    return score > ceiling + jnp.where(jnp.isfinite(ceiling), jnp.abs(ceiling) * policy.rounding, 0)


def largest(scores: jax.Array, key: jax.Array, view: View, fresh: jax.Array | None = None) -> jax.Array:
    """The available arm with the largest score, exact ties broken uniformly at random.

    Args:
        scores: ``f32[K]``. If any is NaN, the result is K, which no environment has: the lane ends as invalid.
        key: the policy's key.
        view: the round to be decided.
        fresh: arms that come before all others, in index order (initial pulls).
    """
    width = scores.shape[0]
    ids = jax.lax.iota(jnp.int32, width)
    order = streams.priorities(streams.policy_words(key, view.round, Role.TIE)[0], width)
    if fresh is not None:
        scores = jnp.where(fresh, jnp.inf, scores)
        order = jnp.where(fresh, ids.astype(jnp.uint32), behind_the_fresh(order))
    keys = sortable(scores)
    if view.available is not None:
        keys = jnp.where(view.available, keys, ABSENT)
    best, arm = first_of_largest(keys, order, ids)
    return jnp.where((best != _NAN) & (best != ABSENT), arm, width)


ABSENT, _NAN = np.int32(-(2**31)), np.int32(2**31 - 1)  # keys below and above those of all numbers


def sortable(scores: jax.Array) -> jax.Array:
    """Int32 keys in the order of the scores (−0 equals 0), NaN above all.

    XLA on CPU reduces whole numbers at least twice as fast as floats, whose maximum must mind NaN.
    """
    bits = jax.lax.bitcast_convert_type(scores, jnp.int32)
    minus_zero = bits == np.int32(-(2**31))  # XLA would drop an addition of 0, which would also make it 0
    turned = bits ^ ((bits >> 31) & np.int32(2**31 - 1))  # negative floats sort the other way round
    return jnp.where(jnp.isnan(scores), _NAN, jnp.where(minus_zero, 0, turned))


def first_of_largest(keys: jax.Array, order: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(the largest key, the id of the arm that has it; of several the first in ``order``, then the smallest id)."""
    best, last = jnp.max(keys), np.uint32(0xFFFFFFFF)
    place = jnp.where(keys == best, jnp.minimum(order, last - 1), last)
    return best, jnp.min(jnp.where(place == jnp.min(place), ids, np.int32(2**31 - 1)))


def behind_the_fresh(order: jax.Array) -> jax.Array:
    """Priorities that come after every arm id."""
    return (order >> 1) | jnp.uint32(1 << 31)


def lots(tied: jax.Array, key: jax.Array, rounds: jax.Array) -> tuple[jax.Array, jax.Array]:
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
    place = jnp.min(order, axis=0)
    both = jnp.stack([streams.arm_at(words, (place << 1) | bit) for bit in np.arange(2, dtype=np.uint32)])
    both = jnp.minimum(both, width).astype(jnp.int32)
    arms = jnp.min(jnp.where(tied.at[both].get(mode="fill", fill_value=False), both, width), axis=0)
    return arms, place < last - 1


def evaluate_state(policy: IndexPolicy, state: Any, round: jax.Array | int) -> jax.Array:
    """Scores of a state at a round, ``f32[K]``: to look inside a policy."""
    return evaluate(policy, stats.as_floats(state, jnp.asarray(round, jnp.int32)))
