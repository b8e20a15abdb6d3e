"""Budget-UCB (Xia, Ding, Zhang, Yu, Qin: Budgeted bandit problems with continuous random costs, ACML 2015; as restated
in Heyden et al., KDD 2024, Table 2)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.index import IndexPolicy
from jaxbandits.policies.budget.ratio import radius


def index(arms: Arms, epsilon: jax.Array, least: jax.Array) -> jax.Array:
    """r̄/c̄ + (ε/c̄)(1 + min(r̄ + ε, 1)/max(c̄ − ε, λ)); +∞ while no cost was seen, or where both bounds are 0."""
    upper = jnp.minimum(arms.mean_reward + epsilon, 1)
    lower = jnp.maximum(arms.mean_cost - epsilon, least)
    ratio = arms.reward / arms.cost + epsilon / arms.mean_cost * (1 + upper / lower)
    return jnp.where((arms.cost > 0) & (lower > 0), ratio, jnp.inf)


def least_mean_cost(arms: Arms) -> jax.Array:
    """λ̂ = min_k c̄_k over the arms pulled so far (of one lane, ``[K]``), for every arm."""
    seen = jnp.where(arms.n > 0, arms.mean_cost, jnp.inf)
    return jnp.broadcast_to(jnp.min(seen, axis=-1, keepdims=True), seen.shape)


@pytree
class BudgetUCB(IndexPolicy):
    """Budget-UCB with a given λ.

    .. math:: \\frac{\\bar r_k}{\\bar c_k} + \\frac{\\varepsilon_k}{\\bar c_k} \\left(1 +
        \\frac{\\min(\\bar r_k + \\varepsilon_k, 1)}{\\max(\\bar c_k - \\varepsilon_k, \\lambda)}\\right), \\qquad
        \\varepsilon_k = \\sqrt{f \\ln(t-1) / n_k};

    +∞ while no cost was seen. Leaps: with λ given, the index reads its own arm and rises with t.

    Args:
        min_cost: λ ≥ 0, a lower bound on the mean costs, per instance ``[1, instance]``. **An oracle** in the published
            experiments: the reference code hands the true min_k μ^c_k to the policy at every step. With 0 the index is
            +∞ while c̄ ≤ ε.
        factor: f ≥ 0, default 2 (the reference code; from memory also the original); Table 2 prints 1.

    Deviations: ln(t − 1) as printed; the reference code takes ln(t − 2).

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.25], [0.5, 0.75]])
        >>> _, cost = arms.values()
        >>> policy = jb.policies.BudgetUCB(min_cost=np.nanmin(cost, axis=1)[None, :])  # the oracle, in plain sight
        >>> policy.min_cost.tolist(), policy.factor
        ([[0.25, 0.5]], 2.0)
    """

    min_cost: Any = leaf(at_least=0, at_most=1)
    factor: Any = leaf(default=2.0, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        """r̄/c̄ + (ε/c̄)(1 + min(r̄ + ε, 1)/max(c̄ − ε, λ))."""
        return index(arms, radius(jnp.sqrt(self.factor), arms), self.min_cost)


@pytree
class EstimatedBudgetUCB(IndexPolicy):
    """Budget-UCB without an oracle: as :class:`BudgetUCB` with :math:`\\hat\\lambda = \\min_k \\bar c_k`.

    Args:
        factor: f ≥ 0, default 2.

    Does not leap: λ̂ reads the other arms' costs, and an index falls when λ̂ rises.

    Source: ours, with the estimate that UCB-BV2 uses.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.EstimatedBudgetUCB().factor
        2.0
    """

    factor: Any = leaf(default=2.0, at_least=0)

    def score(self, arms: Arms) -> jax.Array:
        """The same, λ̂ = min c̄."""
        return index(arms, radius(jnp.sqrt(self.factor), arms), least_mean_cost(arms))
