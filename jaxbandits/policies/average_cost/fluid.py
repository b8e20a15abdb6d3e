"""The best fixed mixture: what a policy that knows the true means would do."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture, best_mixture
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.mixture import MixturePolicy, and_null


@pytree
class FluidOracle(MixturePolicy):
    """Draw every round from the solution of the fluid LP at the *true* means: max ⟨μ, π⟩ s.t. ⟨ρ, π⟩ ≤ c.

    Its mean reward a round is r* and its mean cost at most c, but its path strays above c·t:
    ``Guarded(FluidOracle(...))`` keeps the anytime constraint and shows what that costs.

    Args:
        mean_reward: μ, ``[K]`` (per instance ``[1, instance, K]``).
        mean_cost: ρ, same shape.
        c: the bound on the average cost, in (0, 1].

    Raises:
        InputError: before anything runs, for means outside [0, 1], c outside (0, 1], an environment without null arm or
            with several resources.

    Source: the LP relaxation of bandits with knapsacks; SUAK paper, Eq. (2).

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.FluidOracle([0.45, 0.7, 0.8], [0.3, 0.75, 0.8], c=0.5).c
        0.5
    """

    mean_reward: Any = leaf(at_least=0, at_most=1, core=1)
    mean_cost: Any = leaf(at_least=0, at_most=1, core=1)
    c: Any = leaf(above=0, at_most=1)

    def plan(self, state: ArmStatistics, view: View) -> tuple[ArmStatistics, Mixture]:
        """The LP at the true means."""
        allowed = and_null(view.available)
        return state, best_mixture(jnp.asarray(self.mean_reward), jnp.asarray(self.mean_cost), self.c, allowed)
