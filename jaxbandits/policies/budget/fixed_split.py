"""A fixed split: what is done without a learner."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core import streams
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role

_LARGEST, _SUM = 15, 30  # what the largest weight becomes, and what no sum of weights is above: powers of two


@pytree
class FixedSplit(Policy):
    """Draw arm k in every round with probability :math:`w_k / \\sum_j w_j`, whatever was seen: a plan, not a learner.

    With :math:`w_k \\propto b_k / \\mu^c_k` arm k gets the share :math:`b_k` of the money on average; with all weight
    on one arm it is played for ever. Weights count to 2⁻¹⁵ of the largest (with K above 2¹⁵ arms to K · 2⁻³⁰).
    One draw a round, addressed by the round (role ``MIX``); an arm of weight 0, as one that does not exist, changes
    none.

    Args:
        weights: w ≥ 0, ``[K]`` (per instance ``[1, instance, K]``), not all 0 among the arms that exist.

    Raises:
        InputError: before anything runs, for negative weights, or an environment with several resources.

    Does not leap, as it keeps no statistics; it costs little in the scan engine.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4, 0.5], [1.0, 1.0, 1.0])
        >>> result = jb.simulate(
        ...     jb.policies.FixedSplit([3.0, 0.0, 1.0]), arms, jb.Horizon(400), key=jax.random.key(0), marks=1)
        >>> result.pulls.values.ravel().tolist()
        [305, 0, 95]
    """

    weights: Any = leaf(at_least=0, core=1)

    plays: ClassVar[type] = FiniteSpec

    def check(self, spec: FiniteSpec) -> None:
        """One cost."""
        if spec.resources is not None:
            raise bad("environment", f"{spec.resources} resources", "one with one cost for FixedSplit")

    def init(self, spec: FiniteSpec) -> jax.Array:
        """Nothing to remember."""
        return jnp.zeros((), jnp.int32)

    def update(self, state: jax.Array, key: jax.Array, observation: Observation) -> jax.Array:
        """Learn nothing."""
        return state

    def select(self, state: jax.Array, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """The first arm at which the weights so far exceed a number drawn below their sum."""
        weights = jnp.where(view.available, jnp.asarray(self.weights), 0)
        # whole numbers, whose sums do not depend on how many arms there are
        largest = 2 ** min(_LARGEST, _SUM - (weights.shape[0] - 1).bit_length())
        whole = jnp.rint(weights / jnp.max(weights) * largest).astype(jnp.int32)
        reached = jnp.cumsum(whole, dtype=jnp.int32)
        number = streams.below(streams.policy_words(key, view.round, Role.MIX)[0], reached[-1])
        ids = jax.lax.iota(jnp.int32, weights.shape[0])
        return state, jnp.min(jnp.where(reached > number, ids, weights.shape[0]))
