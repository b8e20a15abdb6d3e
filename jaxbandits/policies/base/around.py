"""What policies around another policy share: everything but the choice is the inner policy's."""

from __future__ import annotations

from typing import ClassVar

import jax

from jaxbandits.core.protocol import Observation, Policy
from jaxbandits.core.pytrees import Pytree
from jaxbandits.core.specs import FiniteSpec


class Around(Policy):
    """A policy for finitely many arms around another one, its field ``policy``; a subclass writes :meth:`select`."""

    policy: Policy

    plays: ClassVar[type] = FiniteSpec

    def check(self, spec: FiniteSpec) -> None:
        """The inner policy's."""
        self.policy.check(spec)

    def init(self, spec: FiniteSpec) -> Pytree:
        """The inner policy's state."""
        return self.policy.init(spec)

    def blank_action(self, spec: FiniteSpec) -> Pytree:
        """The inner policy's."""
        return self.policy.blank_action(spec)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """The inner policy learns."""
        return self.policy.update(state, key, observation)

    def status(self, state: Pytree) -> jax.Array:
        """The inner policy's."""
        return self.policy.status(state)
