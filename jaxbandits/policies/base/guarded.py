"""A wrapper that skips rounds in which a pull could overspend."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.policies.base.around import Around


@pytree
class Guarded(Around):
    """Skip the round if even a pull that costs ``max_cost`` would break the constraint; else the inner policy acts.

    Under :class:`~jaxbandits.AverageCost` that is the rule Sc(t−1) + 1 > c·t ⇒ skip, in exact ticks. A skipped round
    changes nothing in the inner policy but its view of the round number.

    Args:
        policy: the policy to guard.
        max_cost: the largest cost of one pull, in (0, 1], default 1.

    Raises:
        InputError: before anything runs, if the environment has no null arm to rest with, or the constraint does not
            tell what is left.

    Source: the "skip" wrapper of the SUAK paper's baselines.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.WithNullArm(jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.4, 0.8]))
        >>> policy = jb.policies.Guarded(jb.policies.OnePhase(c=0.5, horizon=40))
        >>> constraint = jb.AverageCost(c=0.5, rounds=40)
        >>> result = jb.simulate(policy, arms, constraint, key=jax.random.key(0), marks=2)
        >>> float(result.violation.max())
        0.0
    """

    policy: Policy = leaf()
    max_cost: Any = leaf(default=1.0, above=0, at_most=1)

    def check(self, spec: FiniteSpec) -> None:
        """Needs a way to sit a round out."""
        if not spec.null_arm:
            raise bad("environment", "no null arm", "wrapped as WithNullArm(arms) for Guarded")
        super().check(spec)

    def select(self, state: Pytree, key: jax.Array, view: View) -> tuple[Pytree, Pytree]:
        """Skip, or let the inner policy act."""
        if view.left is None:
            raise InputError(
                "constraint: one that does not tell what is left given; it must be TotalBudget or AverageCost"
            )
        most = jnp.ceil(self.max_cost * ticks.ONE).astype(jnp.int32)
        needed = ticks.add(ticks.zero(), most)
        skip = jnp.any(ticks.exceeds(needed, view.left))
        acted, action = self.policy.select(state, key, view)
        return select_tree(skip, state, acted), jnp.where(skip, jnp.int32(SKIP), action)
