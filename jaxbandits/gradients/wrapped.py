"""What policies that wrap a policy to watch it share: they act as it does, and report what they saw."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from jaxbandits.core.protocol import Observation, Policy
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.ticks import Total


class Watched(NamedTuple):
    """A policy's state, and totals of what was seen."""

    policy: Pytree
    totals: Total


class Watching(Policy):
    """Acts as its inner ``policy``."""

    policy: Policy

    def check(self, spec: Any) -> None:
        """The inner policy's."""
        self.policy.check(spec)

    def blank_action(self, spec: Any) -> Pytree:
        """The inner policy's."""
        return self.policy.blank_action(spec)

    def status(self, state: Pytree) -> jax.Array:
        """The inner policy's."""
        return self.policy.status(state.policy)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """The inner policy learns."""
        return state._replace(policy=self.policy.update(state.policy, self.own_key(key), observation))

    def own_key(self, key: jax.Array) -> jax.Array:
        """The key that the inner policy sees."""
        return key
