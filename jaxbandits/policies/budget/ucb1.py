"""UCB1: optimism about the reward, blind to the cost (Auer, Cesa-Bianchi, Fischer, Machine Learning 47, 2002)."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import pytree
from jaxbandits.policies.base.index import IndexPolicy


@pytree
class UCB1(IndexPolicy):
    """UCB1: :math:`\\bar r_k + \\sqrt{2 \\ln t / n_k}`; costs are ignored.

    No parameter. Leaps: the index reads its own arm and rises with t.

    Source: Auer, Cesa-Bianchi and Fischer 2002, Fig. 1; as run in the B-Zoom paper, §4.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCB1().init(jb.environments.FiniteSpec(arms=2)).pulls.tolist()
        [0, 0]
    """

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """r̄ + √(2 ln t / n)."""
        return arms.mean_reward + jnp.sqrt(2 * jnp.log(arms.t) / arms.n)
