"""KUBE and fractional KUBE (Tran-Thanh, Chapman, Rogers, Jennings: Knapsack based optimal policies for budget-limited
multi-armed bandits, AAAI 2012, Alg. 1, Eqs. 6 and 7)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, as_floats
from jaxbandits.core.protocol import View
from jaxbandits.core.pytrees import pytree
from jaxbandits.core.streams import Role
from jaxbandits.policies.base.index import IndexPolicy, evaluate
from jaxbandits.policies.base.mixture import left
from jaxbandits.policies.base.ties import largest


def density(arms: Arms) -> jax.Array:
    """d_k = (r̄ + √(2 ln t / n)) / c̄; +∞ while no cost was seen."""
    upper = arms.mean_reward + jnp.sqrt(2 * jnp.log(arms.t) / arms.n)
    return jnp.where(arms.cost > 0, upper / arms.mean_cost, jnp.inf)


@pytree
class FractionalKUBE(IndexPolicy):
    """Fractional KUBE: the arm with the largest density :math:`d_k = (\\bar r_k + \\sqrt{2 \\ln t / n_k}) / \\bar c_k`.

    No parameter. Leaps: the density reads its own arm and rises with t.

    Source: AAAI 2012, Eqs. 6 and 7.

    Deviations: c̄ in place of costs that the original knows and that do not vary; +∞ while no cost was seen.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.FractionalKUBE().init(jb.environments.FiniteSpec(arms=2)).pulls.tolist()
        [0, 0]
    """

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """(r̄ + √(2 ln t / n)) / c̄."""
        return density(arms)


class Packing(NamedTuple):
    """The greedy packing of the knapsack so far."""

    room: jax.Array  # f32[]: money not yet packed
    units: jax.Array  # f32[]: Σm
    arm: jax.Array  # i32[]: a unit drawn uniformly among those packed


@pytree
class KUBE(IndexPolicy):
    """KUBE: fill the knapsack with what is left of the budget, then draw a unit of it.

    Each arm once; then arms in order of falling density d_k, of each as many units as fit into the rest:
    :math:`m_k = \\lfloor B' / \\bar c_k \\rfloor`, :math:`B' \\leftarrow B' - m_k \\bar c_k`; the next pull is arm k
    with probability :math:`m_k / \\sum_j m_j`. While much is left nearly all units are the densest arm's, so that it
    differs from :class:`FractionalKUBE` only near the end.

    No parameter. Does not leap: it draws, and it reads what is left. Needs a constraint that tells what is left.

    Source: AAAI 2012, Alg. 1.

    Deviations: c̄ in place of known costs, arms without observed cost first; where nothing fits any more the densest arm
    is played (the original stops; here the constraint ends a run).

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.KUBE().init(jb.environments.FiniteSpec(arms=2)).pulls.tolist()
        [0, 0]
    """

    def score(self, arms: Arms) -> jax.Array:
        """The density d_k."""
        return density(arms)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> tuple[ArmStatistics, jax.Array]:
        """Pack greedily, draw one unit."""
        money = left(view)
        arms = as_floats(state, view.round)
        scores, price = evaluate(self, arms), arms.cost / arms.n
        fresh = state.pulls == 0
        densest = largest(scores, key, view, fresh=fresh)

        def fits(room: jax.Array) -> jax.Array:
            return view.available & (price <= room)

        def pack(packed: Packing) -> Packing:
            arm = largest(jnp.where(fits(packed.room), scores, -jnp.inf), key, view)
            units = jnp.maximum(jnp.floor(packed.room / price[arm]), 1)
            total = packed.units + units
            coin = streams.uniform(streams.policy_words(key, view.round, Role.MIX, arm)[0])
            return Packing(
                jax.lax.rem(packed.room, price[arm]), total, jnp.where(coin * total < units, arm, packed.arm)
            )

        empty = Packing(ticks.to_float(money), jnp.float32(0), densest)
        ready = ~jnp.any(view.available & (fresh | (arms.cost <= 0)))
        drawn = jax.lax.while_loop(lambda packed: ready & jnp.any(fits(packed.room)), pack, empty)
        return state, drawn.arm
