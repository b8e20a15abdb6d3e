"""ε-first with a budget (Tran-Thanh, Chapman, Munoz de Cote, Rogers, Jennings: ε-first policies for budget-limited
multi-armed bandits, AAAI 2010)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.arm_totals import ArmTotals
from jaxbandits.policies.base.mixture import fewest, left
from jaxbandits.policies.base.ties import largest


class EpsilonFirstState(NamedTuple):
    """Statistics, what there was to spend, and whether the last pull was one of exploration."""

    learnt: ArmStatistics
    budget: Total  # B, as the view of round 1 told it
    exploring: jax.Array  # bool[]


@pytree
class EpsilonFirst(ArmTotals):
    """ε-first: pull the arms in turn until εB is spent, then play :math:`\\arg\\max_k \\bar r_k / \\bar c_k`.

    The estimates are frozen when exploration ends. Exact ties at random. B is what the constraint says is left before
    round 1, so it needs a constraint that tells (a total budget).

    Args:
        epsilon: ε in (0, 1], default 0.1 (the BTS paper's comparison, from memory). The loss is of order B^⅔ for
            ε ∝ B^(−⅓).
        online: True to keep learning after exploration; default False.

    Raises:
        InputError: before anything runs, for ε outside (0, 1], or an environment with several resources.

    Does not leap: it reads what is left.

    Source: AAAI 2010.

    Deviations: costs are random and estimated (the original knows them), so phase 2 plays the best ratio instead of
    filling the knapsack. An arm that exploration did not reach is not played while another has an estimate.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.EpsilonFirst().epsilon
        0.1
    """

    epsilon: Any = leaf(default=0.1, above=0, at_most=1)
    online: bool = static(default=False)

    def init(self, spec: FiniteSpec) -> EpsilonFirstState:
        """Nothing known."""
        return EpsilonFirstState(super().init(spec), ticks.zero(), jnp.bool_(True))

    def update(self, state: EpsilonFirstState, key: jax.Array, observation: Observation) -> EpsilonFirstState:
        """Learn from a pull of exploration; from every pull if ``online``."""
        learnt = super().update(state.learnt, key, observation)
        return state._replace(learnt=select_tree(state.exploring | self.online, learnt, state.learnt))

    def select(self, state: EpsilonFirstState, key: jax.Array, view: View) -> tuple[EpsilonFirstState, jax.Array]:
        """In turn, or greedily."""
        money = left(view)
        budget = select_tree(view.round == 1, money, state.budget)
        spent = ticks.to_float(ticks.minus(budget, money))
        exploring = spent < self.epsilon * ticks.to_float(budget)
        in_turn = fewest(state.learnt.pulls, view.available)
        arm = jnp.where(exploring, in_turn, largest(self.ratio(state.learnt), key, view))
        return EpsilonFirstState(state.learnt, budget, exploring), arm

    def ratio(self, learnt: ArmStatistics) -> jax.Array:
        """r̄/c̄; +∞ while no cost was seen, −∞ for an arm never pulled."""
        reward, cost = jax.lax.optimization_barrier((ticks.to_float(learnt.reward), ticks.to_float(learnt.cost)))
        seen = jnp.where(cost > 0, reward / cost, jnp.inf)
        return jnp.where(learnt.pulls > 0, seen, -jnp.inf)
