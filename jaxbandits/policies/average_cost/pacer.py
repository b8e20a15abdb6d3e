"""A primal-dual pacer: a price on the resource, moved by online mirror descent."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Observation, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.mixture import MixturePolicy, alone, bounds, left


@cache
def _mirror_descent() -> Any:
    # optax takes a quarter as long to import as this whole package; one object, or each new one would be compiled.
    import optax

    return optax.sgd(1e-3)


class PacerState(NamedTuple):
    """Statistics, the price, and the optimiser's own state."""

    learnt: ArmStatistics
    price: jax.Array  # f32[]: λ
    optimiser: Any
    left: Total  # what was left when this policy last acted
    round: jax.Array  # i32[]: when that was; 0: never


@pytree
class Pacer(MixturePolicy):
    """Play the arm with the largest optimistic reward net of its optimistic cost at the current price λ:

    .. math:: \\arg\\max_k \\ \\mu^U_k - \\lambda\\, \\rho^L_k / c \\quad \\text{(the null arm has 0)},

    and let the price follow the spending: after each of its own actions λ descends along
    :math:`g = (c - \\text{cost}) / c` and is clipped to [0, 1], where the optimal price of the fluid LP lies. The
    radius is :math:`\\sqrt{a \\ln t / N}`. ``Guarded(Pacer(...))`` keeps the anytime constraint. The guard's skips do
    not move the price: they save just as much as was overspent, so that with them no price would look too low.

    Args:
        c: the bound on the average cost, in (0, 1].
        a: constant of the radius, above 0; default 1.
        optimiser: an optax gradient transformation; ``optax.sgd(η)`` is Euclidean mirror descent (None: η = 10⁻³).
            Static: keep one object, or each new one is compiled.

    Raises:
        InputError: before anything runs, for values outside their ranges, an environment without null arm or with
            several resources.

    Source: dual mirror descent for online allocation (Balseiro, Lu, Mirrokni, Operations Research 2023) with the
    optimistic estimates of bandits with knapsacks; no paper of this project states it in this form.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.Pacer(c=0.1).a
        1.0
    """

    c: Any = leaf(above=0, at_most=1)
    a: Any = leaf(default=1.0, above=0)
    optimiser: Any = static(default=None)

    def init(self, spec: FiniteSpec) -> PacerState:
        """Price 0."""
        price = jnp.float32(0)
        descent = self.optimiser or _mirror_descent()
        return PacerState(arm_statistics.empty(spec.arms), price, descent.init(price), ticks.zero(), jnp.int32(0))

    def update(self, state: PacerState, key: jax.Array, observation: Observation) -> PacerState:
        """Book the pull."""
        return state._replace(learnt=super().update(state.learnt, key, observation))

    def plan(self, state: PacerState, view: View) -> tuple[PacerState, Mixture]:
        """Move the price, then play the best arm at it."""
        now = left(view)  # since the last action it grew by c − cost, and by c for every round skipped by a guard
        skipped = (view.round - state.round - 1).astype(jnp.float32)
        slope = ticks.to_float(ticks.minus(now, state.left)) / self.c - skipped
        descent = self.optimiser or _mirror_descent()
        step, optimiser = descent.update(jnp.where(state.round > 0, slope, 0.0), state.optimiser, state.price)
        price = jnp.clip(state.price + step, 0.0, 1.0)
        state = state._replace(price=price, optimiser=optimiser, left=now, round=view.round)

        arms = state.learnt.pulls.shape[0]
        at = bounds(state.learnt, self.a, jnp.log(view.round.astype(jnp.float32)))
        net = jnp.where(view.available, at.reward_high - price * at.cost_low / self.c, -jnp.inf)
        net = jnp.append(net, 0.0)
        ids = jax.lax.iota(jnp.int32, arms + 1)
        return state, alone(jnp.min(jnp.where(net == jnp.max(net), ids, arms + 1)))
