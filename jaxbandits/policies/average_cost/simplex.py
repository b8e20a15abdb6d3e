"""UCB-Simplex: an optimistic basis of the LP, kept in balance by its own account."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture, best_mixture
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.mixture import MixturePolicy, alone, and_null, first_pulls, floor_ticks, means, radius


class SimplexState(NamedTuple):
    """Statistics, and the account of every pair."""

    learnt: ArmStatistics
    balance: Total  # [K, K + 1]: c n_x − b_x of the pair x = (above c, below c or null)
    above: jax.Array  # i32[]: the pair of the last round; K: there was none
    below: jax.Array  # i32[]


@pytree
class UCBSimplex(MixturePolicy):
    """UCB-Simplex: the basis with the best optimistic reward at *empirical* costs; inside a pair, load balancing.

    .. math:: \\max_\\pi \\sum_k \\big(\\bar r_k + \\lambda \\sqrt{2 \\ln t / n_k}\\big) \\pi_k
        \\ \\text{ s.t. } \\ \\langle \\bar c, \\pi \\rangle \\le c, \\quad \\pi \\in \\Delta_K.

    Each arm once first. A single arm is played. Of a pair x = (j above c, k below c or null), j is played if
    :math:`b_x \\le c\\, n_x`, else k, where :math:`n_x` counts the rounds in which x was selected and :math:`b_x` is
    what they cost. ``Guarded(UCBSimplex(...))`` is the SUAK paper's USS.

    Args:
        c: the bound on the average cost, in (0, 1].
        lam: λ = 1 + 2κ > 0 with κ ≥ ``max |Δμ|/|Δρ|`` known; 9 in the SUAK paper (5 is valid on both its instances).

    Raises:
        InputError: before anything runs, for values outside their ranges, an environment without null arm or with
            several resources.

    Source: Flajolet and Jaillet, arXiv 1510.01800, case "time horizon and one resource" (from memory); λ from the SUAK
    paper, §5.

    Deviations: the original pulls an arm at first until its observed cost is not 0; here once. Rewards are not clipped.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBSimplex(c=0.5).lam
        9.0
    """

    c: Any = leaf(above=0, at_most=1)
    lam: Any = leaf(default=9.0, above=0)

    def init(self, spec: FiniteSpec) -> SimplexState:
        """Nothing pulled, no pair selected."""
        none = jnp.int32(spec.arms)
        return SimplexState(arm_statistics.empty(spec.arms), ticks.zero((spec.arms, spec.arms + 1)), none, none)

    def update(self, state: SimplexState, key: jax.Array, observation: Observation) -> SimplexState:
        """Book the pull, also in its pair's account."""
        cost = jnp.where(_pair(state), -observation.feedback.cost, 0)
        return state._replace(
            learnt=super().update(state.learnt, key, observation), balance=ticks.add(state.balance, cost)
        )

    def plan(self, state: SimplexState, view: View) -> tuple[SimplexState, Mixture]:
        """Step-Simplex, then Step-Load-Balance."""
        arms = state.learnt.pulls.shape[0]
        reward, cost = means(state.learnt)
        there = view.available
        boost = self.lam * radius(jnp.maximum(state.learnt.pulls, 1), 2.0, jnp.log(view.round.astype(jnp.float32)))
        basis = best_mixture(reward + boost, cost, self.c, and_null(there))
        started = ~jnp.any((state.learnt.pulls == 0) & there)
        mixed = started & (basis.high != basis.low)
        state = state._replace(above=jnp.where(mixed, basis.high, arms), below=jnp.where(mixed, basis.low, arms))

        chosen = _pair(state)
        in_debt = jnp.any(chosen & (state.balance.whole < 0))  # b_x > c n_x
        played = jnp.where(mixed & in_debt, basis.low, basis.high)
        balance = ticks.add(state.balance, jnp.where(chosen, floor_ticks(self.c), 0))
        return state._replace(balance=balance), first_pulls(state.learnt, view, alone(played))


def _pair(state: SimplexState) -> jax.Array:
    above = jax.lax.iota(jnp.int32, state.balance.part.shape[0]) == state.above
    below = jax.lax.iota(jnp.int32, state.balance.part.shape[1]) == state.below
    return above[:, None] & below[None, :]
