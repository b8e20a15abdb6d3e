"""The best arm: what a policy that knows the true means would play for ever."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.policies.base.ties import largest


@pytree
class BestRatioOracle(Policy):
    """Play :math:`\\arg\\max_k \\mu^r_k / \\mu^c_k` in every round. Its pseudo-regret under a total budget is 0.

    No initial pulls, nothing learnt; arms whose ratios float32 cannot tell apart at random. It is not quite the best
    that can be done with a budget: near the end another arm may fit better (see
    :func:`jaxbandits.oracles.optimum.budgeted_optimum`).

    Args:
        mean_reward: μ^r, ``[K]`` (per instance ``[1, instance, K]``).
        mean_cost: μ^c, same shape; an arm of mean cost 0 is the best of all.

    Raises:
        InputError: before anything runs, for means outside [0, 1], or an environment with several resources.

    Does not leap, as it keeps no statistics; it costs little in the scan engine.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.BestRatioOracle([0.45, 0.7], [0.3, 0.75]).mean_cost
        [0.3, 0.75]
    """

    mean_reward: Any = leaf(at_least=0, at_most=1, core=1)
    mean_cost: Any = leaf(at_least=0, at_most=1, core=1)

    plays: ClassVar[type] = FiniteSpec

    def check(self, spec: FiniteSpec) -> None:
        """One cost, and one mean for each arm."""
        if spec.resources is not None:
            raise bad("environment", f"{spec.resources} resources", "one with one cost for BestRatioOracle")

    def init(self, spec: FiniteSpec) -> jax.Array:
        """Nothing to remember."""
        return jnp.zeros((), jnp.int32)

    def update(self, state: jax.Array, key: jax.Array, observation: Observation) -> jax.Array:
        """Learn nothing."""
        return state

    def select(self, state: jax.Array, key: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """The arm with the best ratio."""
        reward, cost = jnp.asarray(self.mean_reward), jnp.asarray(self.mean_cost)
        return state, largest(jnp.where(cost > 0, reward / cost, jnp.inf), key, view)
