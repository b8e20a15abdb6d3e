"""One-Phase: the optimistic LP on what is left of budget and time."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxbandits._numerics.knapsack_lp import Mixture, best_mixture
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.mixture import MixturePolicy, and_null, bounds, budget_rate, first_pulls


@pytree
class OnePhase(MixturePolicy):
    """One-Phase: each arm once, then every round a draw from the optimistic LP on the rest of budget and time.

    .. math:: \\max_\\pi \\langle \\mu^U, \\pi \\rangle \\ \\text{ s.t. } \\ \\langle \\rho^L, \\pi \\rangle \\le
        \\frac{cT - S_c(t-1)}{T - t + 1}, \\quad \\pi \\in \\Delta_K,

    with :math:`\\mu^U, \\rho^L = \\bar\\mu + \\epsilon, \\bar\\rho - \\epsilon` clipped to [0, 1] and
    :math:`\\epsilon = \\sqrt{a \\ln T / N}`. ``Guarded(OnePhase(...))`` is the SUAK paper's OPS.

    Args:
        c: the bound on the average cost, in (0, 1].
        horizon: T ≥ 1 rounds, which this policy must know.
        a: constant of the radius, above 0: 3 in the SUAK paper (Eqs. (8)–(9)), 2 in Li–Sun–Ye.

    Raises:
        InputError: before anything runs, for values outside their ranges, an environment without null arm or with
            several resources.

    Source: SUAK paper, Algorithm 1; Li, Sun, Ye: The symmetry between arms and knapsacks, ICML 2021.

    Deviations: the LP printed in the SUAK paper lacks the time constraint, without which it always returns the one arm
    with the largest μ^U/ρ^L; in Li–Sun–Ye time is one of the resources, as here. A draw of the null arm is a play, no
    skip.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.Guarded(jb.policies.OnePhase(c=0.5, horizon=10_000)).policy.a
        3.0
    """

    c: Any = leaf(above=0, at_most=1)
    horizon: Any = leaf(integer=True, at_least=1)
    a: Any = leaf(default=3.0, above=0)

    def plan(self, state: ArmStatistics, view: View) -> tuple[ArmStatistics, Mixture]:
        """The LP at the current rate."""
        optimist = bounds(state, self.a, jnp.log(self.horizon.astype(jnp.float32)))
        rate = budget_rate(view, self.c, self.horizon)
        allowed = and_null(view.available)
        return state, first_pulls(state, view, best_mixture(optimist.reward_high, optimist.cost_low, rate, allowed))
