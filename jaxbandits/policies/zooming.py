"""Zooming policies: a growing set of active points, each with a confidence ball.

A point is activated where no ball reaches; a policy is a radius and an index.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import covering
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits._numerics.covering import Balls, Span
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, refuse, whole_number
from jaxbandits.core.protocol import Chosen, Environment, Observation, Policy, Status, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree, static
from jaxbandits.core.specs import ContinuumSpec, FiniteSpec, point_of_ticks, to_ticks
from jaxbandits.core.streams import Role
from jaxbandits.core.tables import MOST_ARMS
from jaxbandits.core.ticks import Total
from jaxbandits.policies.wrappers import Around

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


class PointPolicy(Policy):
    """A policy whose actions are points of [0, 1]."""

    plays: ClassVar[type] = ContinuumSpec

    def blank_action(self, spec: ContinuumSpec) -> jax.Array:
        return jnp.float32(0)


class ZoomingPolicy(PointPolicy):
    """Activates a random uncovered point, if any; pulls the active point with the largest index.

    A point x is covered if an active y has ``|x − y|`` < E(y)/L; a point that was never played has
    E = +∞ and index +∞. Ties go to the point activated first. At most one point is activated a
    round.

    Attributes:
        phased: True for phases i = 1, 2, … of 2^{i−1} rounds; at the start of each, all active
            points are forgotten.
        rests: True if :meth:`radius` never grows with n, and radius and value of a point read their
            arguments only: then many rounds may be played at once. A capability: see
            :mod:`jaxbandits.core.capabilities`.

    A subclass has the fields ``lipschitz`` (L, leaf) and ``capacity`` (static) and the methods
    :meth:`radius` and :meth:`value`. If more than ``capacity`` points are needed, the lane ends
    with ``Status.CAPACITY``; with a larger capacity it plays the same rounds up to there.
    """

    phased: ClassVar[bool] = True
    rests: ClassVar[bool] = False
    lipschitz: ArrayLike
    capacity: int

    @abstractmethod
    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        """E after n ≥ 1 pulls of a point, in units of the index (f32)."""

    @abstractmethod
    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        """The index u of a point with these means (f32)."""

    @abstractmethod
    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        """Host: the function of the point whose slope L bounds; means ``[instance, point]``."""

    def check(self, spec: ContinuumSpec) -> None:
        whole_number(f"{type(self).__name__}.capacity", self.capacity, 1, 1 << 16)

    def init(self, spec: ContinuumSpec) -> Active:
        return _empty(self.capacity, jnp.int32(1))

    def update(self, state: Active, key: jax.Array, observation: Observation) -> Active:
        """Add reward and cost to the point's totals and shrink its ball, if it is active."""
        feedback, point = observation.feedback, to_ticks(observation.action)
        is_point = (state.point == point) & (state.radius > 0)
        at = _first(is_point)
        pulls, old = state.pulls[at] + 1, state.radius[at]
        totals = jax.tree.map(lambda x: x[at], (state.reward, state.cost))
        reward, cost = map(ticks.add, totals, (feedback.reward, feedback.cost))
        radius, index = radius_and_index(self, pulls, reward, cost, state.phase)
        slots = state.pulls, state.reward, state.cost, state.radius, state.index
        slots = select_tree(is_point, (pulls, reward, cost, radius, index), slots)
        below = Span(jnp.maximum(point - old + 1, 0), point - radius)
        above = Span(point + radius, jnp.minimum(point + old - 1, ticks.ONE))
        spans = select_tree(is_point[at], (below, above), (state.below, state.above))
        return Active(state.count, state.phase, state.point, *slots, *spans, full=state.full)

    def select(self, state: Active, key: jax.Array, view: View) -> Chosen:
        if self.phased:
            phase = 32 - jax.lax.clz(view.round)
            state = select_tree(phase != state.phase, _empty(self.capacity, phase), state)
        balls = Balls(state.point - state.radius, state.point + state.radius)
        new, needed = uncovered_point(balls, state.below, state.above, key, view.round)
        enters = (jax.lax.iota(jnp.int32, self.capacity) == state.count) & needed
        state = state._replace(
            count=state.count + jnp.any(enters),
            point=jnp.where(enters, new, state.point),
            radius=jnp.where(enters, EVERYWHERE, state.radius),
            index=jnp.where(enters, jnp.inf, state.index),
            below=covering.empty_span(),
            above=covering.empty_span(),
            full=needed & (state.count >= self.capacity),
        )
        return state, point_of_ticks(state.point[_first(state.index == jnp.max(state.index))])

    def status(self, state: Active) -> jax.Array:
        return jnp.where(state.full, jnp.int32(Status.CAPACITY), jnp.int32(Status.RUNNING))

    def warnings(self, environment: Environment) -> list[str]:
        """Warn if L is smaller than a slope that it must bound, as found on a grid."""
        slopes = getattr(environment, "slopes", None)
        if slopes is None:
            return []
        largest = slopes(self.target)
        bound, claim = np.asarray(self.lipschitz, np.float64), "is below the largest slope"
        # Means are whole ticks, so slopes on the grid are off by some 2·10⁻⁴ of a unit.
        wrong = bound < largest * 0.995 - 5e-4
        so = "balls reach further than the theory allows, so the best point may never be tried"
        return misfits(f"{type(self).__name__}.lipschitz", bound, largest, wrong, claim, so)


def misfits(
    name: str, bound: np.ndarray, extremes: np.ndarray, wrong: np.ndarray, claim: str, so: str
) -> list[str]:
    """At most one line, for a bound ``[setting, 1 or instance]`` that a grid refutes."""
    if not wrong.any():
        return []
    setting, instance = np.argwhere(wrong)[0]
    place = f"in instance {instance} ({int(wrong.any(axis=0).sum())} of {extremes.size} instances)"
    given = np.broadcast_to(bound, wrong.shape)[setting, instance]
    return [f"{name}: {given:g} {claim} {extremes[instance]:g} found on a grid {place}: {so}"]


def too_large(name: str, lam: Any, environment: Environment) -> list[str]:
    """A line if a stated lower bound on mean costs is above a true mean cost."""
    lowest = np.nanmin(np.asarray(environment.values()[1], np.float64), axis=-1)
    bound, claim = np.asarray(lam, np.float64), "is above the smallest mean cost"
    so = "it must be a lower bound, or cheap points look worse than they are"
    return misfits(name, bound, lowest, bound > lowest * (1 + 1e-5), claim, so)


def _first(flags: jax.Array) -> jax.Array:
    """Number of the first flag that is set, or the last slot."""
    return jnp.min(jnp.where(flags, jax.lax.iota(jnp.int32, flags.shape[0]), flags.shape[0] - 1))


def radius_and_index(
    policy: ZoomingPolicy, pulls: jax.Array, reward: Total, cost: Total, phase: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(radius of the ball in ticks, index) of points with these totals, of any one shape.

    The one place where both are computed; broadcasts and a barrier make it the same elementwise
    program everywhere (see :func:`jaxbandits.policies.base.evaluate_arms`).
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
    """(a uniform point, in ticks, of two disjoint spans outside all balls; whether one exists)."""
    first = covering.first_hole(balls, below), covering.first_hole(balls, above)
    below, above = Span(first[0], below.high), Span(first[1], above.high)
    needed = (below.low <= below.high) | (above.low <= above.high)
    # In a batch without holes, the loops of what follows do not run.
    counts = covering.holes(balls, below), covering.holes(balls, above)
    word = streams.policy_words(key, round, Role.EXPLORE)[0]
    number = streams.below(word, jnp.maximum(counts[0] + counts[1], 1))
    low = number < counts[0]
    lower = covering.nth_hole_point(balls, below, jnp.where(needed & low, number, -1))
    upper = covering.nth_hole_point(balls, above, jnp.where(needed & ~low, number - counts[0], -1))
    return jnp.where(low, lower, upper), needed


def _empty(capacity: int, phase: jax.Array) -> Active:
    zeros, zero = jnp.zeros((capacity,), jnp.int32), ticks.zero((capacity,))
    index = jnp.full((capacity,), -jnp.inf, jnp.float32)
    slots = zeros, zeros, zero, zero, zeros, index  # point, pulls, reward, cost, radius, index
    spans = covering.whole_span(), covering.empty_span()
    return Active(jnp.int32(0), phase, *slots, *spans, full=jnp.bool_(False))


# --- The zooming algorithm, with phases and without: an index of the reward alone, and a radius that knows the budget

_LN4 = float(np.log(4))


class _RewardZooming(ZoomingPolicy):
    """u = r̄ + 2E, whatever the radius."""

    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        return mean_reward + 2 * radius

    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        return mean_reward


class _SinglePhase(ZoomingPolicy):
    """One phase, radius ∝ √((8 ln(B/λ) + ln 4)/n); B ≥ λ, below which no root may exist."""

    budget: ArrayLike
    lam: ArrayLike

    phased: ClassVar[bool] = False

    def check(self, spec: ContinuumSpec) -> None:
        super().check(spec)
        budget, lam = np.broadcast_arrays(np.asarray(self.budget), np.asarray(self.lam))
        refuse(f"{type(self).__name__}.budget", budget, budget < lam, "at least lam")


@pytree
class Zooming(_RewardZooming):
    """The zooming algorithm for rewards only, in phases of 2^{i−1} rounds.

    .. math:: E(x) = \\sqrt{8 i / (2 + n)}, \\qquad u(x) = \\bar r + 2 E(x).

    Args:
        lipschitz: L > 0, Lipschitz constant of the mean reward; balls have radius E/L.
        capacity: most active points of a phase.

    Source: Kleinberg, Slivkins, Upfal, *Multi-armed bandits in metric spaces* (STOC 2008).

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.Zooming(lipschitz=4.0)
        >>> round(float(policy.radius(n=6.0, phase=4.0)), 3)
        2.0
    """

    lipschitz: ArrayLike = leaf(above=0)
    capacity: int = static(default=64)

    rests: ClassVar[bool] = True

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        return jnp.sqrt(8 * phase / (2 + n))


@pytree
class SinglePhaseZooming(_SinglePhase, _RewardZooming):
    """Zooming as in the B-Zoom paper's experiments: one phase, B-Zoom's radius, costs ignored.

    .. math:: E(x) = s \\sqrt{\\frac{8 (\\ln B - \\ln\\lambda) + \\ln 4}{n}}, \\qquad u(x) = \\bar r + 2 E(x).

    Args:
        budget: B > 0, known in advance.
        lam: λ > 0, a lower bound on the mean cost (B/λ guesses the number of rounds).
        lipschitz: L > 0; balls have radius E/L.
        scale: s > 0. The text says "the same radius" as B-Zoom's, s = (1/λ)(1 + 1/λ); the published
            numbers fit s = 1, the width that the reward alone needs, which is the default.
        capacity: most active points.

    Source: Trovò et al. (ECAI 2016), §4.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.SinglePhaseZooming(budget=50_000.0, lam=0.5, lipschitz=0.05)
        >>> round(float(policy.radius(n=100.0, phase=1.0)), 3)
        0.967
    """

    budget: ArrayLike = leaf(above=0)
    lam: ArrayLike = leaf(above=0)
    lipschitz: ArrayLike = leaf(above=0)
    scale: ArrayLike = leaf(default=1.0, above=0)
    capacity: int = static(default=64)

    rests: ClassVar[bool] = True

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        return self.scale * jnp.sqrt((8 * (jnp.log(self.budget) - jnp.log(self.lam)) + _LN4) / n)


# --- B-Zoom (Trovò, Paladino, Restelli, Gatti, ECAI 2016): zooming on the ratio of reward and cost


class _RatioZooming(ZoomingPolicy):
    """u = r̄ / max(λ, c̄) + 2E, whatever the radius."""

    lam: ArrayLike

    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        return mean_reward / jnp.maximum(self.lam, mean_cost) + 2 * radius

    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        return mean_reward / mean_cost

    def warnings(self, environment: Environment) -> list[str]:
        """Warn if λ is above the least mean cost or L below the ratio's slope, on a grid."""
        lines = too_large(f"{type(self).__name__}.lam", self.lam, environment)
        return lines + super().warnings(environment)


@pytree
class BZoom(_RatioZooming):
    """B-Zoom in phases of rounds 2^{i−1} … 2^i − 1; each phase starts without active points.

    .. math:: E(x) = \\frac1\\lambda \\Big(1 + \\frac1\\lambda\\Big) \\sqrt{\\frac{8 i + \\ln 4}{n}}, \\qquad
        u(x) = \\frac{\\bar r}{\\max(\\lambda, \\bar c)} + 2 E(x).

    Args:
        lam: λ in (0, 1], a known lower bound on the mean cost.
        lipschitz: L > 0, Lipschitz constant of μ_r/μ_c; at most (L_r + L_c)/λ² (Lemma 1). Balls
            have radius E/L.
        capacity: most active points of a phase.

    Source: Algorithm 1.

    Deviations: the paper assumes L = 1 "after rescaling"; here the ball's radius is E/L. Points are
    whole ticks of 2⁻²⁴.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.BZoom(lam=0.5, lipschitz=11.7)
        >>> round(float(policy.radius(n=100.0, phase=10.0)), 3)
        5.413
    """

    lam: ArrayLike = leaf(above=0, at_most=1)
    lipschitz: ArrayLike = leaf(above=0)
    capacity: int = static(default=64)

    rests: ClassVar[bool] = True

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        return (1 / self.lam) * (1 + 1 / self.lam) * jnp.sqrt((8 * phase + _LN4) / n)


@pytree
class SinglePhaseBZoom(_SinglePhase, _RatioZooming):
    """B-Zoom as in the paper's experiments: one phase, and a radius that depends on the budget.

    .. math:: E(x) = \\frac1\\lambda \\Big(1 + \\frac1\\lambda\\Big)
        \\sqrt{\\frac{8 (\\ln B - \\ln \\lambda) + \\ln 4}{n}}, \\qquad
        u(x) = \\frac{\\bar r}{\\max(\\lambda, \\bar c)} + 2 E(x).

    Args:
        budget: B > 0, known in advance.
        lam: λ in (0, 1], a known lower bound on the mean cost.
        lipschitz: L > 0, Lipschitz constant of μ_r/μ_c; balls have radius E/L.
        capacity: most active points.

    Source: §4.

    Deviations: as for :class:`BZoom`.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.SinglePhaseBZoom(budget=50_000.0, lam=0.5, lipschitz=11.7)
        >>> round(float(policy.radius(n=1.0, phase=1.0)), 4)
        58.014
    """

    budget: ArrayLike = leaf(above=0)
    lam: ArrayLike = leaf(above=0, at_most=1)
    lipschitz: ArrayLike = leaf(above=0)
    capacity: int = static(default=64)

    rests: ClassVar[bool] = True

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        spread = 8 * (jnp.log(self.budget) - jnp.log(self.lam)) + _LN4
        return (1 / self.lam) * (1 + 1 / self.lam) * jnp.sqrt(spread / n)


# --- Policies of finitely many arms on a continuum: a fixed set of points, each an arm


@pytree
class OnPoints(Around):
    """A policy for K arms, used on K fixed points of a continuum.

    It may end far from the best point however long it plays: its regret is measured against the
    whole continuum. (``Continuum.at(points)`` gives the same K arms as a finite bandit, which
    leaps.)

    Args:
        policy: any policy for :class:`~jaxbandits.environments.FiniteSpec` whose action is one arm.
        points: distinct points of [0, 1], ``[K]``, ``[setting, K]`` or ``[setting, instance, K]``;
            rounded to 2⁻²⁴.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for points outside [0, 1] or an inner policy
            that plays no arms.

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

    policy: Policy = leaf()
    points: ArrayLike = leaf(at_least=0, at_most=1, core=1)

    plays: ClassVar[type] = ContinuumSpec

    def inside(self, spec: ContinuumSpec) -> FiniteSpec:
        return FiniteSpec(arms=int(np.shape(self.points)[-1]))

    def check(self, spec: ContinuumSpec) -> None:
        if not isinstance(self.policy, Policy) or not issubclass(FiniteSpec, self.policy.plays):
            raise bad("OnPoints.policy", self.policy, "a policy of finitely many arms")
        count = np.shape(self.points)[-1]
        refuse("OnPoints.points", f"{count} points", count > MOST_ARMS, f"at most {MOST_ARMS}")
        ordered = np.sort(np.rint(np.asarray(self.points, np.float64) * 2**24), axis=-1)
        if (np.diff(ordered, axis=-1) == 0).any():
            raise InputError("OnPoints.points: two points of a set are equal; they must differ")
        super().check(spec)

    def blank_action(self, spec: ContinuumSpec) -> jax.Array:
        return jnp.float32(0)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """The inner policy learns its arm's outcome; points that are not arms are ignored."""
        is_point = to_ticks(self.points) == to_ticks(observation.action)
        arm = jnp.argmax(is_point).astype(jnp.int32)
        seen = observation._replace(view=self._view(observation.view), action=arm)
        return select_tree(jnp.any(is_point), self.policy.update(state, key, seen), state)

    def _view(self, view: View) -> View:
        """What the inner policy sees: all points are there."""
        return view._replace(available=jnp.ones(self.points.shape[0], bool))

    def select(self, state: Pytree, key: jax.Array, view: View) -> Chosen:
        """The point of the inner policy's arm; −1, which is not in a continuum, if it has none."""
        state, arm = self.policy.select(state, key, self._view(view))
        nearest = jnp.clip(arm, 0, self.points.shape[0] - 1)
        point = point_of_ticks(to_ticks(self.points[nearest]))
        return state, jnp.where(arm == nearest, point, -1.0)
