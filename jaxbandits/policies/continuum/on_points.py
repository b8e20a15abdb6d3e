"""Policies of finitely many arms on a continuum: a fixed set of points, each an arm."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree
from jaxbandits.core.specs import ContinuumSpec, FiniteSpec, to_ticks, to_units
from jaxbandits.core.tables import MOST_ARMS


@pytree
class OnPoints(Policy):
    """A policy of K arms that plays K fixed points of a continuum.

    It may end far from the best point however long it plays: its regret is measured against the whole continuum.
    (``Continuum.at(points)`` gives the same K arms as a finite bandit, which leaps.)

    Args:
        inner: any policy for :class:`~jaxbandits.environments.FiniteSpec` whose action is one arm.
        points: distinct points of [0, 1], ``[K]``, ``[setting, K]`` or ``[setting, instance, K]``; rounded to 2⁻²⁴.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for points outside [0, 1] or an inner policy that plays no arms.

    Source: Trovò et al. (ECAI 2016), §4: K ∈ {5, 10, 15} points drawn uniformly at random.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> world = jb.environments.cost_valley([0.3], lam=0.5)
        >>> policy = jb.policies.OnPoints(jb.policies.UCB1(), points=[0.1, 0.3, 0.9])
        >>> budget = jb.TotalBudget(20.0, last_pull="forfeits")
        >>> result = jb.simulate(policy, world, budget, key=jax.random.key(0), marks=1)
        >>> result.settings
        ('OnPoints(UCB1, points=[0.1 0.3 0.9])',)
    """

    inner: Policy = leaf()
    points: Any = leaf(at_least=0, at_most=1, core=1)

    plays: ClassVar[type] = ContinuumSpec

    def _spec(self) -> FiniteSpec:
        return FiniteSpec(arms=int(np.shape(self.points)[-1]))

    def check(self, spec: ContinuumSpec) -> None:
        """See :meth:`Policy.check`."""
        if not isinstance(self.inner, Policy) or not issubclass(FiniteSpec, self.inner.plays):
            raise bad("OnPoints.inner", self.inner, "a policy of finitely many arms")
        if np.ndim(self.points) < 1:
            raise bad("OnPoints.points", self.points, "an array [K], [setting, K] or [setting, instance, K]")
        if np.shape(self.points)[-1] > MOST_ARMS:
            raise bad("OnPoints.points", f"{np.shape(self.points)[-1]} points", f"at most {MOST_ARMS}")
        ordered = np.sort(np.rint(np.asarray(self.points, np.float64) * 2**24), axis=-1)
        if (np.diff(ordered, axis=-1) == 0).any():
            raise InputError("OnPoints.points: two points of a set are equal; they must be distinct")
        self.inner.check(self._spec())

    def init(self, spec: ContinuumSpec) -> Pytree:
        """The inner policy's."""
        return self.inner.init(self._spec())

    def blank_action(self, spec: ContinuumSpec) -> jax.Array:
        """A point."""
        return jnp.float32(0)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """The inner policy learns what its arm brought; a point that is none of the K teaches nothing."""
        mine = to_ticks(self.points) == to_ticks(observation.action)
        told = observation._replace(view=self._inside(observation.view), action=jnp.argmax(mine).astype(jnp.int32))
        learnt = self.inner.update(state, key, told)
        return jax.tree.map(lambda new, old: jnp.where(jnp.any(mine), new, old), learnt, state)

    def status(self, state: Pytree) -> jax.Array:
        """The inner policy's."""
        return self.inner.status(state)

    def _inside(self, view: View) -> View:
        """What the inner policy sees: all points are there."""
        return view._replace(available=jnp.ones(self.points.shape[0], bool))

    def select(self, state: Pytree, key: jax.Array, view: View) -> tuple[Pytree, jax.Array]:
        """The point of the inner policy's arm; −1, which no continuum has, where that is no arm."""
        state, arm = self.inner.select(state, key, self._inside(view))
        inside = (arm >= 0) & (arm < self.points.shape[0])
        point = to_units(to_ticks(self.points[jnp.clip(arm, 0, self.points.shape[0] - 1)]))
        return state, jnp.where(inside, point, -1.0)
