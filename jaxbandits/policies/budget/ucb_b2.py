"""UCB-B2 (Cayci, Eryilmaz, Srikant: Budget-constrained bandits over general cost and reward distributions, AISTATS
2020), as coded in Heyden et al., KDD 2024."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.index import IndexPolicy

_WIDTH, _BONUS = 2.01, 1.4  # the reference code's constants


def variance(total: jax.Array, rest: jax.Array, spread: jax.Array | None, n: jax.Array) -> jax.Array:
    """V̂: the sample variance with n − 1, as (n x̄(1 − x̄) − Σx(1 − x)) / (n − 1); ¼ below two pulls."""
    squares = jnp.maximum(total * rest / n - spread, 0)  # type: ignore[operator]
    return jnp.where(n < 2, 0.25, squares / jnp.maximum(n - 1, 1))


@pytree
class UCBB2(IndexPolicy):
    """UCB-B2: empirical-Bernstein radii of reward and cost around the ratio.

    .. math:: \\hat\\rho_k + 1.4\\, \\frac{\\varepsilon_k + \\hat\\rho_k \\eta_k}{\\bar c_k}, \\qquad
        \\hat\\rho_k = \\frac{\\bar r_k}{\\max(\\bar c_k, \\lambda)}, \\qquad
        \\varepsilon_k, \\eta_k = \\sqrt{2 \\hat V_k L / n_k} + 3 L / n_k, \\quad L = 2.01 \\ln(t - 1),

    with the sample variance of the reward in ε and of the cost in η; +∞ unless η_k < c̄_k. Leaps: the index reads its
    own arm and rises with t.

    Args:
        min_cost: λ ≥ 0 in the denominator of ρ̂. Default 0: no oracle. The reference code hands the true min_k μ^c_k to
            the policy, per instance ``[1, instance]``.

    Deviations: the guard compares the cost radius η with the mean *cost*; the reference code compares it with the mean
    reward.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBB2().min_cost
        0.0
    """

    min_cost: Any = leaf(default=0.0, at_least=0, at_most=1)

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """ρ̂ + 1.4(ε + ρ̂η)/c̄."""
        over_n = _WIDTH * jnp.log(jnp.maximum(arms.t - 1, 1)) / arms.n  # L/n
        reward_variance = variance(arms.reward, arms.reward_rest, arms.reward_spread, arms.n)
        cost_variance = variance(arms.cost, arms.cost_rest, arms.cost_spread, arms.n)
        epsilon = jnp.sqrt(2 * reward_variance * over_n) + 3 * over_n
        eta = jnp.sqrt(2 * cost_variance * over_n) + 3 * over_n
        ratio = arms.mean_reward / jnp.maximum(arms.mean_cost, self.min_cost)
        bonus = _BONUS * (epsilon + ratio * eta) / arms.mean_cost
        return jnp.where(eta < arms.mean_cost, ratio + bonus, jnp.inf)
