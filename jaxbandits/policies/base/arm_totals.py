"""Policies whose state is the per-arm totals: empty at first, the observed reward and cost added in every round."""

from __future__ import annotations

from typing import Any, ClassVar

import jax

from jaxbandits.core import arm_statistics
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Observation, Policy
from jaxbandits.core.specs import FiniteSpec


class ArmTotals(Policy):
    """A policy that remembers :class:`~jaxbandits.core.arm_statistics.ArmStatistics` and reads one cost. Write
    ``select``.

    Attributes:
        spreads: True if it reads Σx(1 − x) (``arms.reward_spread``, ``arms.cost_spread``).
    """

    plays: ClassVar[type] = FiniteSpec
    spreads: ClassVar[bool] = False

    def check(self, spec: FiniteSpec) -> None:
        """One cost.

        Raises:
            InputError: if the environment has several resources.
        """
        if spec.resources is not None:
            raise bad("environment", f"{spec.resources} resources", f"one with one cost for {type(self).__name__}")

    def init(self, spec: FiniteSpec) -> Any:
        """Empty statistics."""
        return arm_statistics.empty(spec.arms, spreads=self.spreads)

    def update(self, state: Any, key: jax.Array, observation: Observation) -> Any:
        """Add the observed reward and cost to the arm's totals."""
        feedback = observation.feedback
        return arm_statistics.record(state, observation.action, feedback.reward, feedback.cost)
