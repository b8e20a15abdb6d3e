"""The index of UCB-V(∞) and UCB-AIR (Wang, Audibert, Munos: Algorithms for infinitely many-armed bandits, NIPS 2008),
adapted to costs in two ways."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.exploration import Exploration, LogExploration
from jaxbandits.policies.base.index import IndexPolicy


def width(total: jax.Array, rest: jax.Array, spread: jax.Array | None, n: jax.Array, e: jax.Array) -> jax.Array:
    """√(2 V̂ 𝓔/n) + 3 𝓔/n with V̂ = x̄(1 − x̄) − Σx(1 − x)/n, the biased sample variance."""
    variance = jnp.maximum(total * rest / n - spread, 0) / n  # type: ignore[operator]
    return jnp.sqrt(2 * variance * e / n) + 3 * e / n


@pytree
class UCBVReward(IndexPolicy):
    """UCB-V as in the original: costs are ignored.

    .. math:: \\bar r_k + \\sqrt{2 \\hat V_k \\mathcal{E}_t / n_k} + 3 \\mathcal{E}_t / n_k

    With :class:`SampledArms` it is UCB-V(∞), with :class:`ArmIncreasing` UCB-AIR. Its horizon under a budget is at most
    B/λ: take ``arms_to_sample(budget / least_cost, beta)`` arms.

    Args:
        exploration: 𝓔, default ln t; the original also allows :class:`SlowLogExploration`.

    Source: §2 as restated in secondary sources; the original's text could not be opened.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBVReward().spreads
        True
    """

    exploration: Exploration = leaf(default=LogExploration())

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """r̄ + w_r."""
        e = self.exploration.at(arms.t)
        return arms.mean_reward + width(arms.reward, arms.reward_rest, arms.reward_spread, arms.n, e)


@pytree
class UCBVRatio(IndexPolicy):
    """UCB-V adapted to the ratio (ours): empirical-Bernstein bounds above the reward and below the cost.

    .. math:: \\frac{\\min(\\bar r_k + w^r_k, 1)}{\\max(\\bar c_k - w^c_k, 0)}, \\qquad
        w = \\sqrt{2 \\hat V \\mathcal{E}_t / n} + 3 \\mathcal{E}_t / n;

    +∞ where the denominator is 0.

    Args:
        exploration: 𝓔, default ln t.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.UCBVRatio().rests
        True
    """

    exploration: Exploration = leaf(default=LogExploration())

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """min(r̄ + w_r, 1) / max(c̄ − w_c, 0)."""
        e = self.exploration.at(arms.t)
        upper = arms.mean_reward + width(arms.reward, arms.reward_rest, arms.reward_spread, arms.n, e)
        lower = arms.mean_cost - width(arms.cost, arms.cost_rest, arms.cost_spread, arms.n, e)
        return jnp.where(lower > 0, jnp.minimum(upper, 1) / lower, jnp.inf)
