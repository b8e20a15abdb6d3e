"""m-UCB, c-UCB and i-UCB: Hoeffding bounds around the ratio (Xia et al., Neurocomputing 258, 2017; as restated in
Heyden et al., KDD 2024, Table 2)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.index import IndexPolicy


def radius(alpha: jax.Array, arms: Arms) -> jax.Array:
    """ε_k = α √(ln(t − 1) / n_k), with ln(max(t − 1, 1))."""
    return alpha * jnp.sqrt(jnp.log(jnp.maximum(arms.t - 1, 1)) / arms.n)


@pytree
class MUCB(IndexPolicy):
    """m-UCB: optimism in numerator and denominator.

    .. math:: \\frac{\\min(\\bar r_k + \\varepsilon_k, 1)}{\\max(\\bar c_k - \\varepsilon_k, 0)}, \\qquad
        \\varepsilon_k = \\alpha \\sqrt{\\ln(t-1) / n_k};

    +∞ where the denominator is 0.

    Args:
        alpha: α ≥ 0, default 2⁻⁴ (the reference code's reading of the original's Fig. 3).

    Deviations: ln(t − 1) as printed; the reference code takes ln(t − 2).

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.MUCB().alpha
        0.0625
    """

    alpha: Any = leaf(default=2.0**-4, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """min(r̄ + ε, 1) / max(c̄ − ε, 0)."""
        e = radius(self.alpha, arms)
        lower = arms.mean_cost - e
        return jnp.where(lower > 0, jnp.minimum(arms.mean_reward + e, 1) / lower, jnp.inf)


@pytree
class CUCB(IndexPolicy):
    """c-UCB: optimism in the numerator: :math:`(\\bar r_k + \\varepsilon_k) / \\bar c_k`, +∞ while no cost was seen.

    Args:
        alpha: α ≥ 0 in ε = α√(ln(t − 1)/n), default 2⁻³.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.CUCB().alpha
        0.125
    """

    alpha: Any = leaf(default=2.0**-3, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """(r̄ + ε) / c̄."""
        e = radius(self.alpha, arms)
        return jnp.where(arms.cost > 0, (arms.mean_reward + e) / arms.mean_cost, jnp.inf)


@pytree
class IUCB(IndexPolicy):
    """i-UCB: optimism on the ratio itself: :math:`\\bar r_k / \\bar c_k + \\varepsilon_k`, +∞ while no cost was seen.

    Args:
        alpha: α ≥ 0 in ε = α√(ln(t − 1)/n), default 2⁻².

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.IUCB().alpha
        0.25
    """

    alpha: Any = leaf(default=2.0**-2, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """r̄ / c̄ + ε."""
        e = radius(self.alpha, arms)
        return jnp.where(arms.cost > 0, arms.reward / arms.cost + e, jnp.inf)
