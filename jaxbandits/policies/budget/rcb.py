"""RCB, the index of RCB-I and RCB-AIR (Li, Xia: Infinitely many-armed bandits with budget constraints, AAAI 2017)."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.exploration import Exploration, LogExploration
from jaxbandits.policies.base.index import IndexPolicy


@pytree
class RCB(IndexPolicy):
    """RCB: optimism in numerator and denominator, with an exploration sequence.

    .. math:: D_i = \\frac{\\min(\\bar r_i + E_i, 1)}{\\max(\\bar c_i - E_i, 0)}, \\qquad
        E_i = \\sqrt{\\frac{\\mathcal{E}_{t-1}}{2 n_i}};

    +∞ where the denominator is 0: until some 𝓔/(2c²) pulls of an arm with mean cost c. Each arm once first.

    RCB-I is ``SampledArms(RCB(), arms=arms_to_sample(budget, beta))``, RCB-AIR ``ArmIncreasing(RCB(), beta)``: see
    :func:`rcb_i` and :func:`rcb_air`.

    Args:
        exploration: 𝓔, default ln t, the upper end of what the theory allows; :class:`LogLogExploration` is the lower.

    Source: Algorithm 1, Eq. (4).

    Deviations: the printed radius is damaged in the text that could be read; the tail exp(−𝓔_{t−1}/2) stated beside it
    forces this form. First pulls in index order.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.RCB(exploration=jb.policies.LogLogExploration()).rests
        True
    """

    exploration: Exploration = leaf(default=LogExploration())

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """min(r̄ + E, 1) / max(c̄ − E, 0)."""
        e = jnp.sqrt(self.exploration.at(arms.t - 1) / (2 * arms.n))
        lower = arms.mean_cost - e
        return jnp.where(lower > 0, jnp.minimum(arms.mean_reward + e, 1) / lower, jnp.inf)
