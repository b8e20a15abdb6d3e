"""ω-UCB and ω*-UCB (Heyden, Arzamasov, Fouché, Böhm: Budgeted multi-armed bandits with asymmetric confidence
intervals, KDD 2024)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.index import IndexPolicy

_FEW = 30  # pulls below which ω* trusts the Bernoulli variance


def upper_bound(total: jax.Array, rest: jax.Array, n: jax.Array, k: jax.Array) -> jax.Array:
    """ω⁺: the larger root of (n + K)ω² − (2Σx + K)ω + (Σx)²/n = 0, K = η z²."""
    return (total + k / 2 + jnp.sqrt(k) * jnp.sqrt(total * rest / n + k / 4)) / (n + k)


def lower_bound(total: jax.Array, rest: jax.Array, n: jax.Array, k: jax.Array) -> jax.Array:
    """ω⁻: the smaller root, as product of the roots over the larger one. Exactly 0 iff Σx = 0.

    The textbook difference cancels there and has a random sign, in float32 and in float64.
    """
    return (total * total / n) / (total + k / 2 + jnp.sqrt(k) * jnp.sqrt(total * rest / n + k / 4))


def _ratio(upper: jax.Array, lower: jax.Array) -> jax.Array:
    return jnp.where(lower > 0, upper / lower, jnp.inf)


@pytree
class OmegaUCB(IndexPolicy):
    """ω-UCB: the ratio of an upper bound on the mean reward and a lower bound on the mean cost.

    .. math:: \\frac{\\omega^+_k(\\bar r_k)}{\\omega^-_k(\\bar c_k)}, \\qquad z = \\sqrt{2 \\rho \\ln t},

    where ω± are the Wilson-type roots of the asymmetric interval; +∞ while no cost was observed.

    Args:
        rho: ρ > 0, width of the intervals. ¼ is recommended, 1 is the smallest value with proven logarithmic regret.

    Source: §4.1, Eq. (2), Theorems 1 and 3.

    Deviations: the index is +∞ exactly when Σc = 0 (in the reference code rounding decides).

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.OmegaUCB(rho=0.25)
        >>> state = policy.init(jb.environments.FiniteSpec(arms=2))
        >>> state.pulls.tolist()
        [0, 0]
    """

    rho: Any = leaf(default=0.25, above=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """ω⁺(r̄)/ω⁻(c̄)."""
        k = 2 * self.rho * jnp.log(arms.t)
        upper = upper_bound(arms.reward, arms.reward_rest, arms.n, k)
        lower = lower_bound(arms.cost, arms.cost_rest, arms.n, k)
        return _ratio(upper, lower)


@pytree
class OmegaStarUCB(IndexPolicy):
    """ω*-UCB: ω-UCB with intervals scaled by the estimated variance.

    As :class:`OmegaUCB` with :math:`K = \\eta z^2`, where from 30 pulls on

    .. math:: \\hat\\eta = \\mathrm{clip}\\Big(1 - \\frac{\\sum x(1-x)}{n\\, \\bar x (1-\\bar x)},\\ 0,\\ 1\\Big)

    for rewards and costs apart, and η = 1 before, or if x̄ ∈ {0, 1}.

    Args:
        rho: ρ > 0, default ¼.

    Source: §5.2 and the reference code (the paper leaves σ̄² undefined; the code's variance is biased variance over
    x̄(1 − x̄), which is 1 for Bernoulli data). The form above is the same number without cancellation.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.OmegaStarUCB().rho
        0.25
    """

    rho: Any = leaf(default=0.25, above=0)

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """ω*⁺(r̄)/ω*⁻(c̄)."""
        z2 = 2 * self.rho * jnp.log(arms.t)
        k_reward = z2 * _eta(arms.reward_spread, arms.reward, arms.reward_rest, arms.n)
        k_cost = z2 * _eta(arms.cost_spread, arms.cost, arms.cost_rest, arms.n)
        upper = upper_bound(arms.reward, arms.reward_rest, arms.n, k_reward)
        lower = lower_bound(arms.cost, arms.cost_rest, arms.n, k_cost)
        return _ratio(upper, lower)


def _eta(spread: jax.Array | None, total: jax.Array, rest: jax.Array, n: jax.Array) -> jax.Array:
    most = total * rest / n  # n x̄(1 − x̄)
    estimate = jnp.clip(1 - spread / most, 0, 1)  # type: ignore[operator]
    return jnp.where((n < _FEW) | (most <= 0), 1.0, estimate)
