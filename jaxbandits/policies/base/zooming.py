"""What zooming policies share: a growing set of active points, each with a confidence ball.

A point is activated where no ball reaches; a policy is a radius and an index.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import covering
from jaxbandits._numerics.covering import Balls, Span
from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Environment, Observation, Policy, Status, View
from jaxbandits.core.specs import ContinuumSpec, to_ticks, to_units
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total

EVERYWHERE = 2 * ticks.ONE  # the radius of a point that was not played yet: its ball holds [0, 1]


class Active(NamedTuple):
    """The active points of one lane, in order of activation; slots from ``count`` on are empty."""

    count: jax.Array  # type: ignore[assignment]  # i32[]
    phase: jax.Array  # i32[]: 1, 2, …
    point: jax.Array  # i32[M]: ticks
    pulls: jax.Array  # i32[M]
    reward: Total  # [M]
    cost: Total  # [M]
    radius: jax.Array  # i32[M]: of the ball, in ticks; 0 in empty slots
    index: jax.Array  # type: ignore[assignment]  # f32[M]: +∞ before the first pull, −∞ in empty slots
    below: Span  # the only places where a hole can be: what the ball of the last point gave up,
    above: Span  # on its two sides
    full: jax.Array  # bool[]: one more point was needed than there are slots


class ZoomingPolicy(Policy):
    """Activate a uniformly random uncovered point, if there is one; then play the active point of largest index.

    A point x is covered if an active y has ``|x − y|`` < E(y)/L; a point that was never played has E = +∞ and index +∞.
    Ties go to the point activated first. At most one point is activated a round.

    Attributes:
        phased: True for phases i = 1, 2, … of 2^{i−1} rounds; at the start of each, all active points are forgotten.
        rests: True if :meth:`radius` never grows with n, and radius and value of a point read their arguments only:
            then many rounds may be played at once. A capability: see :mod:`jaxbandits.core.capabilities`.

    A subclass has the fields ``lipschitz`` (L, leaf) and ``capacity`` (static) and the methods :meth:`radius` and
    :meth:`value`. If more than ``capacity`` points are needed, the lane ends with ``Status.CAPACITY``; with a larger
    capacity it plays the same rounds up to there.
    """

    plays: ClassVar[type] = ContinuumSpec
    phased: ClassVar[bool] = True
    rests: ClassVar[bool] = False
    lipschitz: Any
    capacity: int

    @abstractmethod
    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        """E after n ≥ 1 pulls of a point, in units of the index (f32)."""
        raise NotImplementedError

    @abstractmethod
    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        """The index u of a point with these means (f32)."""
        raise NotImplementedError

    @abstractmethod
    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        """Host: the function of the point whose slope L must bound; means ``[instance, point]``."""
        raise NotImplementedError

    # --- the protocol ------------------------------------------------------------------------------------------

    def check(self, spec: ContinuumSpec) -> None:
        """See :meth:`Policy.check`."""
        if isinstance(self.capacity, bool) or not isinstance(self.capacity, int) or not 1 <= self.capacity <= 1 << 16:
            raise bad(f"{type(self).__name__}.capacity", self.capacity, "a whole number from 1 to 65536")

    def check_known_budget(self) -> None:
        """Of a radius √(8 ln(B/λ) + ln 4): B at least λ, for below it there may be no root.

        Raises:
            InputError: a smaller budget.
        """
        budget, lam = np.broadcast_arrays(np.asarray(self.budget), np.asarray(self.lam))  # type: ignore[attr-defined]
        if (short := budget < lam).any():
            raise bad(f"{type(self).__name__}.budget", float(budget[short][0]), "at least lam")

    def init(self, spec: ContinuumSpec) -> Active:
        """No active point."""
        return _empty(self.capacity, jnp.int32(1))

    def blank_action(self, spec: ContinuumSpec) -> jax.Array:
        """A point."""
        return jnp.float32(0)

    def update(self, state: Active, key: jax.Array, observation: Observation) -> Active:
        """Add reward and cost to the point's totals; its ball shrinks. A point that is not active teaches nothing."""
        seen, point = observation.feedback, to_ticks(observation.action)
        mine = (state.point == point) & (state.radius > 0)
        at = _first(mine)
        pulls, old = state.pulls[at] + 1, state.radius[at]
        reward = ticks.add(Total(state.reward.whole[at], state.reward.part[at]), seen.reward)
        cost = ticks.add(Total(state.cost.whole[at], state.cost.part[at]), seen.cost)
        radius, index = evaluate(self, pulls, reward, cost, state.phase)

        def put(new: jax.Array, all: jax.Array) -> jax.Array:
            return jnp.where(mine, new, all)

        played = mine[at]
        return state._replace(
            pulls=put(pulls, state.pulls),
            reward=Total(put(reward.whole, state.reward.whole), put(reward.part, state.reward.part)),
            cost=Total(put(cost.whole, state.cost.whole), put(cost.part, state.cost.part)),
            radius=put(radius, state.radius),
            index=put(index, state.index),
            below=_if(played, Span(jnp.maximum(point - old + 1, 0), point - radius), state.below),
            above=_if(played, Span(point + radius, jnp.minimum(point + old - 1, ticks.ONE)), state.above),
        )

    def select(self, state: Active, key: jax.Array, view: View) -> tuple[Active, jax.Array]:
        """The next point, activated now if a hole is open."""
        if self.phased:
            phase = 32 - jax.lax.clz(view.round)
            fresh = _empty(self.capacity, phase)
            state = jax.tree.map(lambda a, b: jnp.where(phase != state.phase, a, b), fresh, state)
        balls = Balls(state.point - state.radius, state.point + state.radius)
        new, needed = uncovered_point(balls, state.below, state.above, key, view.round)
        here = (jax.lax.iota(jnp.int32, self.capacity) == state.count) & needed
        full = needed & (state.count >= self.capacity)
        index = jnp.where(here, jnp.inf, state.index)
        point = jnp.where(here, new, state.point)
        best = _first(index == jnp.max(index))
        state = state._replace(
            count=state.count + jnp.any(here),
            point=point,
            radius=jnp.where(here, EVERYWHERE, state.radius),
            index=index,
            below=covering.nothing(),
            above=covering.nothing(),
            full=full,
        )
        return state, to_units(point[best])

    def status(self, state: Active) -> jax.Array:
        """``Status.CAPACITY`` once a point is needed for which there is no slot."""
        return jnp.where(state.full, jnp.int32(Status.CAPACITY), jnp.int32(Status.RUNNING))

    def warnings(self, environment: Environment) -> list[str]:
        """L smaller than the largest slope of what it must bound, as far as a grid shows."""
        slopes = getattr(environment, "slopes", None)
        if slopes is None:
            return []
        largest = slopes(self.target)
        given = np.asarray(self.lipschitz, np.float64)
        # Means are whole ticks, so slopes on the grid are off by some 2·10⁻⁴ of a unit.
        short = np.broadcast_to(given, (given.shape[0], largest.size)) < largest * 0.995 - 5e-4
        if not short.any():
            return []
        setting, instance = np.argwhere(short)[0]
        value = np.broadcast_to(given, short.shape)[setting, instance]
        return [
            f"{type(self).__name__}.lipschitz: {value:g} is below the largest slope {largest[instance]:g} found on a "
            f"grid in instance {instance} ({int(short.any(axis=0).sum())} of {largest.size} instances): balls reach "
            "further than the theory allows, so the best point may never be tried"
        ]


def _first(flags: jax.Array) -> jax.Array:
    """Number of the first flag that is set, or the last slot."""
    return jnp.min(jnp.where(flags, jax.lax.iota(jnp.int32, flags.shape[0]), flags.shape[0] - 1))


def evaluate(
    policy: ZoomingPolicy, pulls: jax.Array, reward: Total, cost: Total, phase: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(radius of the ball in ticks, index) of points with these totals, of any one shape.

    The one place where both are computed; broadcasts and a barrier make it the same elementwise program everywhere (see
    :func:`jaxbandits.policies.base.index.evaluate`).
    """
    n, r, c = pulls.astype(jnp.float32), ticks.to_float(reward), ticks.to_float(cost)
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, n.shape), policy)
    i = jnp.broadcast_to(phase.astype(jnp.float32), n.shape)
    wide, n, r, c, i = jax.lax.optimization_barrier((wide, n, r, c, i))
    e = wide.radius(n, i)
    ball = jnp.minimum(jnp.ceil(e / wide.lipschitz * ticks.ONE), np.float32(EVERYWHERE))
    return ball.astype(jnp.int32), wide.value(r / n, c / n, e)


def uncovered_point(
    balls: Balls, below: Span, above: Span, key: jax.Array, round: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """A uniformly random point of two disjoint spans that no ball holds (ticks), and whether there is one."""
    first = covering.first_hole(balls, below), covering.first_hole(balls, above)
    below, above = Span(first[0], below.high), Span(first[1], above.high)
    needed = (below.low <= below.high) | (above.low <= above.high)
    # In a batch without holes, the loops of what follows do not run.
    many = covering.holes(balls, below), covering.holes(balls, above)
    word = streams.policy_words(key, round, Role.EXPLORE)[0]
    number = streams.below(word, jnp.maximum(many[0] + many[1], 1))
    low = number < many[0]
    lower = covering.pick(balls, below, jnp.where(needed & low, number, -1))
    upper = covering.pick(balls, above, jnp.where(needed & ~low, number - many[0], -1))
    return jnp.where(low, lower, upper), needed


def _if(condition: jax.Array, yes: Span, no: Span) -> Span:
    return Span(jnp.where(condition, yes.low, no.low), jnp.where(condition, yes.high, no.high))


def _empty(capacity: int, phase: jax.Array) -> Active:
    zeros = jnp.zeros((capacity,), jnp.int32)
    return Active(
        count=jnp.int32(0),
        phase=phase,
        point=zeros,
        pulls=zeros,
        reward=ticks.zero((capacity,)),
        cost=ticks.zero((capacity,)),
        radius=zeros,
        index=jnp.full((capacity,), -jnp.inf, jnp.float32),
        below=covering.whole(),
        above=covering.nothing(),
        full=jnp.bool_(False),
    )
