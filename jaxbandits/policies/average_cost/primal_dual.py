"""Primal-Dual two-phase: identify the optimal support first, then spend on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture, best_mixture, best_vertex, best_without, vertices
from jaxbandits.core import arm_statistics
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.policies.base.mixture import MixturePolicy, alone, and_null, bounds, budget_rate, either, fewest


class TwoPhaseState(NamedTuple):
    """Statistics, and what has been identified."""

    learnt: ArmStatistics
    support: jax.Array  # bool[K + 1]: X*, the null arm last
    slack: jax.Array  # bool[]: the cost does not bind (J')

    def identified(self) -> jax.Array:
        """Is phase 1 over? |X*| + |J'| ≥ 2."""
        return jnp.sum(self.support, dtype=jnp.int32) + self.slack.astype(jnp.int32) >= 2


@pytree
class PrimalDualTwoPhase(MixturePolicy):
    """Sweep over the arms until the optimal support is known, then One-Phase's rule on the support.

    Phase 1 pulls the arms in turn. After each sweep, arm x (null arm included) joins X* if
    :math:`\\mathrm{UCB}(OPT_{-x}) < \\mathrm{LCB}(OPT)`, where x is forbidden on the left; and the cost is found not to
    bind if that holds for the optimum of :math:`\\langle\\mu,\\pi\\rangle - (c - \\langle\\rho,\\pi\\rangle)`. It ends
    with two findings. UCB takes :math:`(\\mu^U, \\rho^L)`, LCB :math:`(\\mu^L, \\rho^U)`, radius
    :math:`\\sqrt{a \\ln T / N}`. ``Guarded(PrimalDualTwoPhase(...))`` is the SUAK paper's PDS.

    Args:
        c: the bound on the average cost, in (0, 1].
        horizon: T ≥ 1 rounds, which this policy must know.
        a: constant of the radius, above 0; default 2.
        rest: True if phase 2 may always use the null arm (time is an inequality), False if only when it is in X*.

    Raises:
        InputError: before anything runs, for values outside their ranges, an environment without null arm or with
            several resources.

    Source: Li, Sun, Ye: The symmetry between arms and knapsacks, ICML 2021; phase 1 as in Kumar and Kleinberg 2022.

    Deviations: phase 2 and the constant of the radius are from memory of the original, which could not be opened.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.PrimalDualTwoPhase(c=0.5, horizon=1000).a
        2.0
    """

    c: Any = leaf(above=0, at_most=1)
    horizon: Any = leaf(integer=True, at_least=1)
    a: Any = leaf(default=2.0, above=0)
    rest: bool = static(default=True)

    def init(self, spec: FiniteSpec) -> TwoPhaseState:
        """Nothing pulled, nothing identified."""
        return TwoPhaseState(arm_statistics.empty(spec.arms), jnp.zeros((spec.arms + 1,), jnp.bool_), jnp.bool_(False))

    def update(self, state: TwoPhaseState, key: jax.Array, observation: Observation) -> TwoPhaseState:
        """Book the pull; after a complete sweep of phase 1, test what is identified."""
        state = state._replace(learnt=super().update(state.learnt, key, observation))
        state, mine = jax.lax.optimization_barrier((state, self))
        there = observation.view.available
        pulls = state.learnt.pulls
        swept = jnp.all(~there | (pulls == jnp.max(pulls))) & ~state.identified()
        support, slack = mine.tests(state.learnt, and_null(there))
        return state._replace(support=state.support | (swept & support), slack=state.slack | (swept & slack))

    def tests(self, learnt: ArmStatistics, allowed: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(which actions are surely in the support, is the cost surely no binding constraint)."""
        at = bounds(learnt, self.a, jnp.log(self.horizon.astype(jnp.float32)))
        sure = best_mixture(at.reward_low, at.cost_high, self.c, allowed).value
        found = vertices(at.reward_high, at.cost_low, self.c, allowed)
        value, high, low = best_vertex(found)
        ids = jax.lax.iota(jnp.int32, allowed.shape[0])
        # Only a member of the best vertex can lower the optimum by its absence.
        without = jnp.where(ids == high, best_without(found, high), value)
        without = jnp.where(ids == low, best_without(found, low), without)
        unused = best_mixture(at.reward_high + at.cost_high, at.cost_low, self.c, allowed).value - self.c
        return allowed & (without < sure), unused < sure

    def plan(self, state: TwoPhaseState, view: View) -> tuple[TwoPhaseState, Mixture]:
        """Round robin, then the LP on the support."""
        there = view.available
        at = bounds(state.learnt, self.a, jnp.log(self.horizon.astype(jnp.float32)))
        rate = budget_rate(view, self.c, self.horizon)
        # Without null arm, and nothing in the support below the rate, the null arm is the only way out.
        feasible = jnp.any(state.support[:-1] & (at.cost_low <= rate))
        null = jnp.bool_(True) if self.rest else state.support[-1] | ~feasible
        spend = best_mixture(at.reward_high, at.cost_low, rate, jnp.append(state.support[:-1], null))
        return state, either(state.identified(), spend, alone(fewest(state.learnt.pulls, there)))
