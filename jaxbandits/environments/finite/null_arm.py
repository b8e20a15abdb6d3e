"""The null arm: a way to sit a round out."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.ledger import Outcome
from jaxbandits.core.protocol import Environment, Feedback
from jaxbandits.core.pytrees import leaf, pytree, select_tree
from jaxbandits.core.specs import SKIP, FiniteSpec
from jaxbandits.core.tables import is_arm
from jaxbandits.environments.finite.arms import FiniteArms


@pytree
class WithNullArm(Environment):
    """Arms and, as arm number K, a known null arm: reward 0, cost 0. A skip (arm −1) does the same.

    Both are rounds: the clock of rounds goes on. Neither teaches anything, so the observation is empty. They differ in
    what is reported: ``event:null`` counts plays of arm K, ``event:skips`` counts skips.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.4, 0.8])
        >>> jb.environments.WithNullArm(arms).spec.null_arm
        True
    """

    arms: FiniteArms = leaf()

    @property
    def spec(self) -> FiniteSpec:
        """The spec of the arms, with a null arm."""
        inner = self.arms.spec
        return FiniteSpec(inner.arms, inner.resources, null_arm=True)

    def check(self) -> None:
        """Checks the arms."""
        self.arms.check()

    def refuses(self, action: Any) -> str | None:
        """See :meth:`Environment.refuses`: one arm a round."""
        return None if is_arm(action) and action.shape == () else "one arm, int32[]"

    def largest(self, action: Any) -> tuple[int, int]:
        """As the arms."""
        return self.arms.largest(action)

    def available(self) -> jax.Array | None:
        """The real arms that exist."""
        return self.arms.available()

    def start(self) -> Any:
        """The arms' state."""
        return self.arms.start()

    def pull(
        self, state: Any, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[Any, Outcome, Feedback, jax.Array]:
        """Play an arm, the null arm (K), or skip (−1)."""
        skip, null = action == SKIP, action == self.spec.arms
        rests = skip | null
        pulled, outcome, feedback, _ = self.arms.pull(state, jnp.where(rests, 0, action), key, round)
        nothing = jax.tree.map(jnp.zeros_like, outcome)._replace(valid=jnp.bool_(True))
        outcome = select_tree(rests, nothing, outcome)
        events = dict(outcome.events) | {"skips": skip.astype(jnp.int32), "null": null.astype(jnp.int32)}
        outcome = outcome._replace(events=events)
        told = select_tree(rests, jax.tree.map(jnp.zeros_like, feedback), feedback)
        return select_tree(rests, state, pulled), outcome, told, rests

    def summary(self, state: Any) -> dict[str, jax.Array]:
        """``pulls`` of the real arms."""
        return self.arms.summary(state)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of the arms, and 0, 0 for the null arm."""
        reward, cost = self.arms.values()
        pad = [(0, 0)] * reward.ndim
        pad[1] = (0, 1)
        return np.pad(reward, pad), np.pad(cost, pad + [(0, 0)] * (cost.ndim - reward.ndim))
