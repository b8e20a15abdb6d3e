"""Index policies: one class, one method ``score``; initial pulls, ties, argmax and statistics are inherited."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeGuard, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import arm_statistics
from jaxbandits.core.arm_statistics import Arms, ArmStatistics
from jaxbandits.core.by_device import by_device
from jaxbandits.core.capabilities import own_method
from jaxbandits.core.protocol import View
from jaxbandits.core.user_methods import one_for_each_arm
from jaxbandits.policies.base.arm_totals import ArmTotals
from jaxbandits.policies.base.ties import largest

P = TypeVar("P", bound="IndexPolicy")
NEVER = np.int32(2**31 - 1)  # a round that does not come
# Off CPU a square root may be off by 1 and a quotient by 2 units in the last place instead of half a one (CUDA's
# sqrt.approx and div.full), and need not grow with what they are taken of. What that does to a score is kept off by a
# margin so many times as large, and what it does to ln t before a difference of nearly equal numbers by `beyond`.
COARSER = 4.0
_LATER = 2.0**-18  # of ln t


class IndexPolicy(ArmTotals):
    """Pull each arm once in index order, then the arm with the largest :meth:`score`; exact ties at random.

    Attributes:
        spreads: True if the score reads Σx(1 − x) (``arms.reward_spread``, ``arms.cost_spread``).
        rests: True if an arm's score depends on its own statistics and t only, and never falls while the arm rests. A
            capability: it counts where it is declared, and a subclass with another score must declare it again (see
            :mod:`jaxbandits.core.capabilities`).
        rounding: by how much of itself a float32 score that rests may fall all the same, times two; the leap engine
            keeps this distance. 2⁻²⁰ covers formulas of some twenty operations (measured: 1.9·10⁻⁷).
    """

    rests: ClassVar[bool] = False
    rounding: ClassVar[float] = 2.0**-20

    @abstractmethod
    def score(self, arms: Arms) -> jax.Array:
        """The index of every arm, elementwise in ``arms`` (float32); +∞ forces a pull."""
        raise NotImplementedError

    def admits(self, state: ArmStatistics, view: View) -> jax.Array:
        """Which arms take part in this round, ``bool[K]``: all that exist. (One that does not exist never does.)"""
        return view.available

    def steady(self, state: ArmStatistics, round: jax.Array) -> jax.Array:
        """A round up to which :meth:`admits` and :meth:`status` say what they say at ``round``, ``i32[]``.

        If the arms' totals change, but not which arms were pulled. A policy with an ``admits`` of its own must tell, or
        no engine plays many of its rounds at once; a round before ``round`` says that nothing is known.
        """
        return jnp.int32(NEVER)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> tuple[ArmStatistics, jax.Array]:
        """The arm with the largest index, of those that take part."""
        view = view._replace(available=self.admits(state, view) & view.available)
        scores = evaluate_totals(self, state, view.round)
        return state, largest(scores, key, view, fresh=state.pulls == 0)

    def select_while_open(
        self, state: ArmStatistics, key: jax.Array, view: View, open: jax.Array
    ) -> tuple[ArmStatistics, jax.Array]:
        """Open pulls count at their arm's current means (:func:`~jaxbandits.core.arm_statistics.counted`)."""
        if not isinstance(state, ArmStatistics):
            return self.select(state, key, view)
        return state, self.select(arm_statistics.counted(state, open), key, view)[1]


_BY_SCORE = "init", "blank_action", "update", "select", "step", "admits", "steady", "status", "summary"


def chooses_by_score(policy: object) -> TypeGuard[IndexPolicy]:
    """Is it an index policy of which nothing but the score is its own, so that others may ask for that alone?"""
    return isinstance(policy, IndexPolicy) and own_method(policy, IndexPolicy, *_BY_SCORE) is None


def evaluate(policy: IndexPolicy, arms: Arms) -> jax.Array:
    """The one place where a score is computed.

    XLA may compile one formula to different bits in different surroundings, because it moves arithmetic through
    broadcasts. Here every input is first broadcast to the full shape, and a barrier keeps the compiler from looking
    behind it: what follows is the same elementwise program for every engine and batch.
    """
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, arms.n.shape), policy)
    wide, arms = jax.lax.optimization_barrier((wide, arms))
    return one_for_each_arm(policy, "score", wide.score(arms), arms.n.shape)


def evaluate_totals(policy: IndexPolicy, totals: ArmStatistics, round: jax.Array) -> jax.Array:
    """:func:`evaluate` of exact totals, ``[K]``; ``round`` is a scalar or ``[K]``.

    Only what was broadcast stands behind the barrier. Whole numbers become floats by exact products and one rounding,
    wherever the compiler puts that, and on GPU what stands behind a barrier is written to memory and read again.
    """
    wide, at = jax.tree.map(lambda x: jnp.broadcast_to(x, totals.pulls.shape), (policy, round.astype(jnp.float32)))
    wide, at = jax.lax.optimization_barrier((wide, at))
    scores = wide.score(arm_statistics.as_floats(totals, at))
    return one_for_each_arm(policy, "score", scores, totals.pulls.shape)


def beyond(round: jax.Array) -> jax.Array:
    """On CPU ``round``; elsewhere a later one (``i32[]``) at which no score that rests is below its value at ``round``.

    But for the margin of :func:`clears`. If the square root in ε falls by a unit in the last place, an index such as
    :math:`(\\bar r + \\epsilon)/(\\bar c - \\epsilon)` may fall by any share of itself. ε reads ln t: where ln t is
    larger by 2⁻¹⁸ of itself, ε is larger by 2⁻¹⁹, sixteen units.
    """
    t = round.astype(jnp.float32)
    later = round + 1 + jnp.ceil(_LATER * t * jnp.log(t)).astype(jnp.int32)
    return jnp.where(by_device(cpu=1.0, other=0.0) > 0, round, jnp.where(later > round, later, round))


def clears(policy: IndexPolicy, score: jax.Array, ceiling: jax.Array) -> jax.Array:
    """Is a score above a ceiling on the others by more than rounding may hide? −∞: there are no others."""
    return score > ceiling + jnp.where(jnp.isfinite(ceiling), jnp.abs(ceiling) * margin(policy), 0)


def margin(policy: IndexPolicy) -> jax.Array:
    """By how much of itself a score that rests may fall on this kind of device, times two."""
    return policy.rounding * by_device(cpu=1.0, other=COARSER)


def evaluate_state(policy: IndexPolicy, state: Any, round: jax.Array | int) -> jax.Array:
    """Scores of a state at a round, ``f32[K]``: to look inside a policy."""
    return evaluate_totals(policy, state, jnp.asarray(round, jnp.int32))
