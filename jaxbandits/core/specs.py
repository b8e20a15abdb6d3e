"""What a policy may know of the world it will play: one small static value per kind of environment."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks

SKIP = -1
"""The action of a round that is sat out, where the environment has one: nothing is played, nothing is paid."""


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


@dataclasses.dataclass(frozen=True)
class DelayedSpec(Spec):
    """What a policy must know of a world whose outcomes arrive later.

    Attributes:
        inner: the spec of the world itself.
        room: how many requests may be open at once.
        groups: for each budget the arms that it pays for; None: all.

    Example:
        >>> from jaxbandits.environments import DelayedSpec, FiniteSpec
        >>> DelayedSpec(FiniteSpec(arms=2), room=8).scope().tolist()
        [[True, True]]
    """

    inner: FiniteSpec
    room: int
    groups: tuple[tuple[int, ...] | None, ...] = (None,)

    @property
    def arms(self) -> int:
        """K."""
        return self.inner.arms

    def scope(self) -> np.ndarray:
        """Which budget pays for which arm, ``bool[d, K]``."""
        ids = np.arange(self.arms)
        return np.stack([np.full(self.arms, True) if g is None else np.isin(ids, g) for g in self.groups])


class Arrivals(NamedTuple):
    """What a learner sees after a round: the outcomes that arrived, in order, ``i32[M]`` each, and how many there are.

    A request that is given up (``lost``) tells nothing; its cost stays what it may have been at most.
    """

    number: jax.Array  # i32[]
    round: jax.Array  # the round in which it was decided
    arm: jax.Array
    reward: jax.Array  # ticks
    cost: jax.Array  # ticks
    lost: jax.Array  # 0 or 1
