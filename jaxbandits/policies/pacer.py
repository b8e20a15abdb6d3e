"""A primal-dual pacer: a price on the resource, moved by online mirror descent."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxbandits import stats, ticks
from jaxbandits.environments.finite import FiniteSpec
from jaxbandits.policies.mixture import Mixture, MixturePolicy, alone, bounds, exists, left
from jaxbandits.protocol import Observation, View, leaf, pytree, static
from jaxbandits.stats import Statistics
from jaxbandits.ticks import Total

_SGD = optax.sgd(1e-3)


class Memory(NamedTuple):
    """Statistics, the price, and the optimiser's own state."""

    arms: Statistics
    price: jax.Array  # f32[]: λ
    optimiser: Any
    left: Total  # what was left when the price last moved


@pytree
class Pacer(MixturePolicy):
    """Play the arm with the largest optimistic reward net of its optimistic cost at the current price λ:

    .. math:: \\arg\\max_k \\ \\mu^U_k - \\lambda\\, \\rho^L_k / c \\quad \\text{(the null arm has 0)},

    and let the price follow the spending: λ descends along :math:`g = (c - \\text{cost}) / c` summed over the rounds
    since the last move, and is clipped to [0, 1], where the optimal price of the fluid LP lies. The radius is
    :math:`\\sqrt{a \\ln t / N}`. ``Guarded(Pacer(...))`` keeps the anytime constraint; the guard's skips lower the
    price as rests do.

    Args:
        c: the bound on the average cost, in (0, 1].
        a: constant of the radius, above 0; default 1.
        optimiser: an optax gradient transformation; ``optax.sgd(η)`` (default, η = 10⁻³) is Euclidean mirror descent.
            Static: keep one object, or each new one is compiled.

    Raises:
        InputError: at the door, for values outside their ranges, an environment without null arm or with several
            resources.

    Source: dual mirror descent for online allocation (Balseiro, Lu, Mirrokni, Operations Research 2023) with the
    optimistic estimates of bandits with knapsacks; no paper of this project states it in this form.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.Pacer(c=0.1).a
        1.0
    """

    c: Any = leaf(above=0, at_most=1)
    a: Any = leaf(1.0, above=0)
    optimiser: optax.GradientTransformation = static(_SGD)

    def init(self, spec: FiniteSpec) -> Memory:
        """Price 0."""
        price = jnp.float32(0)
        return Memory(stats.empty(spec.arms), price, self.optimiser.init(price), ticks.zero())

    def update(self, state: Memory, key: jax.Array, observation: Observation) -> Memory:
        """Book the pull."""
        return state._replace(arms=super().update(state.arms, key, observation))

    def plan(self, state: Memory, view: View) -> tuple[Memory, Mixture]:
        """Move the price, then play the best arm at it."""
        now = left(view)  # it grows by c − cost a round, whatever was done
        slope = ticks.to_float(ticks.minus(now, state.left)) / self.c
        step, optimiser = self.optimiser.update(jnp.where(view.round > 1, slope, 0.0), state.optimiser, state.price)
        price = jnp.clip(state.price + step, 0.0, 1.0)
        state = state._replace(price=price, optimiser=optimiser, left=now)

        arms = state.arms.pulls.shape[0]
        at = bounds(state.arms, self.a, jnp.log(view.round.astype(jnp.float32)))
        net = jnp.where(exists(view, arms), at.reward_high - price * at.cost_low / self.c, -jnp.inf)
        net = jnp.append(net, 0.0)
        ids = jax.lax.iota(jnp.int32, arms + 1)
        return state, alone(jnp.min(jnp.where(net == jnp.max(net), ids, arms + 1)))
