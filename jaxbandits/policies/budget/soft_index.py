"""The softmax of any index: a randomised version of every index policy, with the temperature as a parameter."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.core import arm_statistics
from jaxbandits.core.arm_statistics import Arms, ArmStatistics
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Policy
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.policies.base.index import chooses_by_score
from jaxbandits.policies.base.randomised import RandomisedPolicy


@pytree
class SoftIndex(RandomisedPolicy):
    """Draw arm k with probability ∝ exp(score_k / temperature), the scores being those of an index policy.

    Each arm once first, in index order; while some score is +∞, uniformly among those. As the temperature falls to 0
    it becomes the index policy itself, and its expected regret stays smooth in every parameter on the way.

    Args:
        policy: an index policy, e.g. ``OmegaUCB(rho=0.25)``.
        temperature: above 0, in units of the score.

    Raises:
        InputError: before anything runs, for a policy that is no plain index policy.

    Example:
        >>> import jaxbandits as jb
        >>> soft = jb.policies.SoftIndex(jb.policies.OmegaUCB(rho=0.25), temperature=0.1)
        >>> soft.policy.rho, soft.temperature
        (0.25, 0.1)
    """

    policy: Policy = leaf()
    temperature: Any = leaf(above=0)

    def check(self, spec: FiniteSpec) -> None:
        """An index policy inside, that chooses by its score alone."""
        if not chooses_by_score(self.policy):
            raise bad(
                "policy",
                type(self.policy).__name__,
                "an index policy that chooses by its score alone, such as OmegaUCB",
            )
        self.policy.check(spec)

    def init(self, spec: FiniteSpec) -> ArmStatistics:
        """Empty statistics, of the kind that the index reads."""
        return arm_statistics.empty(spec.arms, spreads=type(self.policy).spreads)  # type: ignore[attr-defined]

    def logits(self, arms: Arms, available: jax.Array) -> jax.Array:
        """score / temperature."""
        wide = jax.tree.map(lambda x: jnp.broadcast_to(x, arms.n.shape), self.policy)
        score = wide.score(arms)
        fresh, endless = (arms.n == 0) & available, jnp.isposinf(score) & available
        soft = jnp.where(jnp.any(endless), _among(endless), score / self.temperature)
        first = fresh & (jnp.cumsum(fresh) == 1)
        return jnp.where(available, jnp.where(jnp.any(fresh), _among(first), soft), -jnp.inf)


def _among(arms: jax.Array) -> jax.Array:
    return jnp.where(arms, 0.0, -jnp.inf)
