"""UCB-BV1 and UCB-BV2 (Ding, Qin, Zhang, Liu: Multi-armed bandit with budget constraint and variable costs, AAAI 2013,
Eqs. 3 and 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.index import IndexPolicy
from jaxbandits.policies.budget.budget_ucb import least_mean_cost
from jaxbandits.policies.budget.ratio import radius


@pytree
class UCBBV1(IndexPolicy):
    """UCB-BV1: a known lower bound λ on the expected costs.

    .. math:: \\frac{\\bar r_k}{\\bar c_k} + \\frac{(1 + 1/\\lambda)\\, s_k}{\\lambda - s_k}, \\qquad
        s_k = \\sqrt{\\ln(t-1) / n_k};

    +∞ while λ ≤ s_k, or no cost was seen. So each arm is pulled about ln t / λ² times before its index is finite
    (4,900 times for λ = 0.05 at t = 2·10⁵). Leaps: the index reads its own arm and rises with t.

    Args:
        min_cost: λ in (0, 1], per instance ``[1, instance]``; the true least mean cost is **an oracle**.

    Source: AAAI 2013, Eq. 3, through two independent public codings (the original could not be opened).

    Deviations: +∞ where λ ≤ s_k; the formula is negative there, which one public coding overlooks.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBBV1(min_cost=0.5).min_cost
        0.5
    """

    min_cost: Any = leaf(above=0, at_most=1)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """r̄/c̄ + (1 + 1/λ)s/(λ − s)."""
        s = radius(jnp.ones_like(arms.n), arms)
        below = self.min_cost - s
        ratio = arms.reward / arms.cost + (1 + 1 / self.min_cost) * s / below
        return jnp.where((arms.cost > 0) & (below > 0), ratio, jnp.inf)


@pytree
class UCBBV2(IndexPolicy):
    """UCB-BV2: the lower bound on the costs is estimated.

    .. math:: \\frac{\\bar r_k}{\\bar c_k}
        + \\frac{1}{\\lambda_t} \\Big(1 + \\frac{1}{\\lambda_t - s_k}\\Big) s_k, \\qquad
        \\lambda_t = \\min_j \\bar c_j, \\quad s_k = \\sqrt{\\ln(t-1) / n_k};

    +∞ while λ_t ≤ s_k (so for all arms while some arm was never seen to cost anything). No parameter.

    Does not leap: λ_t reads the other arms' costs.

    Source: AAAI 2013, Eq. 4, through two independent public codings.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBBV2().init(jb.environments.FiniteSpec(arms=2)).pulls.tolist()
        [0, 0]
    """

    def score(self, arms: Arms) -> jax.Array:
        """r̄/c̄ + (1/λ_t)(1 + 1/(λ_t − s))s."""
        s, least = radius(jnp.ones_like(arms.n), arms), least_mean_cost(arms)
        below = least - s
        ratio = arms.reward / arms.cost + (1 + 1 / below) * s / least
        return jnp.where((arms.cost > 0) & (below > 0), ratio, jnp.inf)
