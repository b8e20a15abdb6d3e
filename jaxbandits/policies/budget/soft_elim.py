"""SoftElim (Boutilier, Hsu, Kveton, Mladenov, Szepesvari, Zaheer: Differentiable bandit exploration, NeurIPS 2020)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.randomised import RandomisedPolicy


@pytree
class SoftElim(RandomisedPolicy):
    """SoftElim: arms are eliminated softly, the sooner the surer it is that they are not the best.

    .. math:: p_k \\propto \\exp\\Big(-\\frac{2 (\\bar r_{\\max} - \\bar r_k)^2\\, n_k}{\\theta^2}\\Big), \\qquad
        \\bar r_{\\max} = \\max_j \\bar r_j,

    with the mean of an arm without pulls taken as 1, so that such an arm has exponent 0. Costs are ignored: under a
    budget it plays for the reward of a pull.

    Args:
        theta: θ > 0: how soft. The authors tune it by gradient; the default 1 is ours.

    Source: arXiv 2002.06772 (p_k as restated there for tuning; the mean of an arm without pulls is our choice).

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4], [1.0, 1.0])
        >>> result = jb.simulate(
        ...     jb.policies.SoftElim(theta=0.5), arms, jb.Horizon(20), key=jax.random.key(0), replicates=2, marks=1)
        >>> int(result.pulls.sum())
        40
    """

    theta: Any = leaf(default=1.0, above=0)

    reads_costs: ClassVar[bool] = False

    def logits(self, arms: Arms, available: jax.Array) -> jax.Array:
        """−2 (max r̄ − r̄)² n / θ²."""
        mean = jnp.where(arms.n > 0, arms.mean_reward, 1)
        gap = jnp.max(jnp.where(available, mean, -jnp.inf)) - mean
        return jnp.where(available, -2 * gap * gap * arms.n / (self.theta * self.theta), -jnp.inf)
