"""What the policies for an average-cost constraint share: statistics, confidence bounds, the draw from a mixture."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture
from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import View
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base.arm_totals import ArmTotals


class MixturePolicy(ArmTotals):
    """A policy whose every round is a draw from at most two actions. Write :meth:`plan`.

    Actions are the arms 0 … K−1, the null arm K, and −1 for a skip. One uniform U a round (role ``MIX``) decides: the
    mixture's costlier member is played if and only if U < its weight.
    """

    @abstractmethod
    def plan(self, state: Any, view: View) -> tuple[Any, Mixture]:
        """(state, mixture) of the coming round."""
        raise NotImplementedError

    def check(self, spec: FiniteSpec) -> None:
        """One cost, and a null arm.

        Raises:
            InputError: if the environment has several resources, or no null arm.
        """
        super().check(spec)
        if not spec.null_arm:
            raise bad("environment", "no null arm", f"wrapped as WithNullArm(arms) for {type(self).__name__}")

    def select(self, state: Any, key: jax.Array, view: View) -> tuple[Any, Pytree]:
        """Draw from the planned mixture."""
        state, view, mine = jax.lax.optimization_barrier((state, view, self))
        state, mixture = mine.plan(state, view)
        uniform = streams.uniform(streams.policy_words(key, view.round, Role.MIX)[0])
        return state, stored(jnp.where(uniform < mixture.weight, mixture.high, mixture.low))


def stored(x: jax.Array) -> jax.Array:
    """``x`` (an int32 scalar), stored: computed once, whoever reads it.

    XLA on CPU repeats a chain of elementwise operations in every kernel that reads its end, here a whole hash in some
    thirty kernels; the end of a reduction is stored instead.
    """
    first = jax.lax.iota(jnp.int32, 2) == 0
    return jnp.max(jnp.where(first, x, jnp.int32(-(2**31))))


class Bounds(NamedTuple):
    """Confidence bounds of mean reward and mean cost, clipped to [0, 1]; ``f32[K]`` each."""

    reward_low: jax.Array
    reward_high: jax.Array
    cost_low: jax.Array
    cost_high: jax.Array


def means(state: ArmStatistics) -> tuple[jax.Array, jax.Array]:
    """(μ̄, ρ̄), ``f32[K]``; 0 for an arm without pulls."""
    n = jnp.maximum(state.pulls, 1).astype(jnp.float32)
    return ticks.to_float(state.reward) / n, ticks.to_float(state.cost) / n


def radius(pulls: jax.Array, a: jax.Array | float, log: jax.Array) -> jax.Array:
    """√(a · log / N), ``f32[K]``; +∞ for an arm without pulls."""
    n = jnp.maximum(pulls, 1).astype(jnp.float32)
    return jnp.where(pulls > 0, jnp.sqrt(a * log / n), jnp.inf)


def bounds(state: ArmStatistics, a: jax.Array | float, log: jax.Array) -> Bounds:
    """μ̄ ± √(a log / N) and ρ̄ ± √(a log / N), clipped to [0, 1]."""
    reward, cost = means(state)
    width = radius(state.pulls, a, log)
    return Bounds(*(jnp.clip(x, 0.0, 1.0) for x in (reward - width, reward + width, cost - width, cost + width)))


def alone(action: jax.Array) -> Mixture:
    """The mixture that plays one action for sure."""
    one = jnp.float32(1)
    return Mixture(one, action, action, one)


def either(condition: jax.Array, yes: Mixture, no: Mixture) -> Mixture:
    """``yes`` where ``condition`` holds, else ``no``."""
    return Mixture(*(jnp.where(condition, a, b) for a, b in zip(yes, no, strict=True)))


def and_null(mask: jax.Array) -> jax.Array:
    """A mask over the arms, extended by the null arm."""
    return jnp.concatenate([mask, jnp.ones((1,), jnp.bool_)])


def fewest(pulls: jax.Array, among: jax.Array) -> jax.Array:
    """The arm with the fewest pulls ``among`` some, the lowest index first; K if there is none."""
    most = jnp.int32(2**31 - 1)
    least = jnp.min(jnp.where(among, pulls, most))
    ids = jax.lax.iota(jnp.int32, pulls.shape[0])
    return jnp.min(jnp.where(among & (pulls == least), ids, pulls.shape[0]))


def first_pulls(state: ArmStatistics, view: View, then: Mixture) -> Mixture:
    """Each arm once in index order, then the given mixture."""
    fresh = (state.pulls == 0) & view.available
    return either(jnp.any(fresh), alone(fewest(state.pulls, fresh)), then)


def left(view: View) -> Total:
    """c·t − Σ_{s<t} c_s, exactly.

    Raises:
        InputError: before anything runs, if the constraint does not tell what is left.
    """
    if view.left is None:
        raise InputError(
            "constraint: it tells nothing of what is left; it must be one that does, such as TotalBudget or AverageCost"
        )
    return view.left


def floor_ticks(c: jax.Array) -> jax.Array:
    """c in whole ticks, rounded down (exact: scaling a float by a power of two does not round)."""
    return jnp.floor(c * ticks.ONE).astype(jnp.int32)


def budget_rate(view: View, c: jax.Array, horizon: jax.Array) -> jax.Array:
    """What is left per round that is left, [cT − Sc(t−1)]⁺ / (T − t + 1)."""
    to_come = jnp.maximum(horizon - view.round, 0)
    budget = ticks.plus(left(view), ticks.times(floor_ticks(c), to_come))
    return jnp.maximum(ticks.to_float(budget), 0.0) / (to_come + 1).astype(jnp.float32)
