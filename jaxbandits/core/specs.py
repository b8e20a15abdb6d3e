"""What a policy may know of the world it will play: one small static value per kind of environment."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks


class Spec:
    """What a policy may know of its world; a spec of your own is any frozen dataclass, with this as its base or not.

    Attributes:
        resources: None for one cost (a scalar), d for a cost vector ``[d]``.
    """

    resources: int | None = None


@dataclasses.dataclass(frozen=True)
class ContinuumSpec(Spec):
    """What a policy for a continuum must know: an action is a point of [0, 1] (``f32[]``).

    Example:
        >>> from jaxbandits.environments import ContinuumSpec
        >>> ContinuumSpec()
        ContinuumSpec()
    """


def to_ticks(point: jax.Array) -> jax.Array:
    """A point of [0, 1] (f32) as whole ticks (i32)."""
    return jnp.rint(point * ticks.ONE).astype(jnp.int32)


def to_units(point: jax.Array) -> jax.Array:
    """Ticks (i32) as a point of [0, 1] (f32), exactly."""
    return point.astype(jnp.float32) * np.float32(1 / ticks.ONE)


@dataclasses.dataclass(frozen=True)
class FiniteSpec(Spec):
    """What a policy for finitely many arms must know.

    Attributes:
        arms: K.
        resources: None for one cost (a scalar), d for a cost vector ``[d]``.
        null_arm: True if arm number K may be played too: it gives and costs nothing (so does a skip, arm −1).

    Example:
        >>> from jaxbandits.environments import FiniteSpec
        >>> FiniteSpec(arms=10)
        FiniteSpec(arms=10, resources=None, null_arm=False)
    """

    arms: int
    resources: int | None = None
    null_arm: bool = False

    @property
    def cost_shape(self) -> tuple[int, ...]:
        """Shape of one pull's cost."""
        return () if self.resources is None else (self.resources,)
