"""z-RCUCB: RCUCB for limits anywhere in (0, τ_max], by refining a grid of limits per arm (§4 of the RCUCB paper)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams
from jaxbandits.core.censored_specs import CensoredSpec, PairAction
from jaxbandits.core.errors import bad
from jaxbandits.core.protocol import Observation, Status, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.streams import Role
from jaxbandits.policies.base.index import evaluate
from jaxbandits.policies.censored.rcucb import (
    PairPolicy,
    Pairs,
    Sums,
    as_floats,
    check_survival,
    estimate,
    of_limits,
    pair_ids,
    record,
    start,
    width,
)
from jaxbandits.policies.censored.survival import SURVIVALS


class Zoom(NamedTuple):
    """What z-RCUCB remembers: the sums at every point of the finest grid, and how fine each arm's own grid is."""

    sums: Sums
    cell: jax.Array  # i32[n·m]: width, in finest cells, of the cell of the arm's grid that the point lies in
    full: jax.Array  # bool[]: a cell of the finest grid should have been split


class ZoomPairs(NamedTuple):
    """The float32 values that the score reads, ``[n·m]`` each."""

    pairs: Pairs
    cell: jax.Array  # τ − down(τ), in user units

    @property
    def n(self) -> jax.Array:
        """N_{i,τ}."""
        return self.pairs.n


def fine_limits(depth: int, m: int = 2, tau_max: float = 1.0) -> np.ndarray:
    """The finest grid of z-RCUCB: m^depth equally spaced limits in (0, τ_max], to give to an environment.

    Example:
        >>> fine_limits(2).tolist()
        [0.25, 0.5, 0.75, 1.0]
    """
    cells = m**depth
    return np.arange(1, cells + 1) / cells * tau_max


@pytree
class ZRCUCB(PairPolicy):
    """z-RCUCB: each arm starts with the one limit τ_max and splits a cell of its grid once it is known well enough.

    .. math:: \\hat v_{i,\\tau} + c_{i,\\tau} + (\\tau - \\mathrm{down}_i(\\tau)), \\qquad
        c_{i,\\tau} = \\sqrt{\\frac{2 \\alpha L}{N_{i,\\tau}}} + \\lambda(\\tau) \\sqrt{\\frac{2 \\alpha L}{N_{i,0}}},
        \\quad L = \\ln \\frac{n T^2}{\\delta},

    down_i(τ) the next smaller point of arm i's grid, or 0; c = ∞ for an arm never pulled. After a pull of arm i every
    point with τ − down(τ) ≥ c gets its m − 1 points between, all at once (no cascade). The environment's limits are the
    finest grid, m^depth equally spaced ones (:func:`fine_limits`): N, G and the survival counts are kept at all of
    them, so new points have the arm's whole history, exactly. If a cell of the finest grid should be split the lane
    ends with status CAPACITY; with more limits it replays the same prefix.

    From round T + 1 on the recommended pair is played: that of the finest cell, on a tie of largest v̂ (lowest arm and
    limit if tied still). So with ``Horizon(T + 1)`` the regret of the last round is the simple regret.

    Args:
        survival: see :class:`~jaxbandits.policies.RCUCB`.
        horizon: T ≥ 1.
        alpha: α > 1, default 1.01 (not published).
        delta: δ in (0, 1), default 1/T.
        m: a split makes m cells, m ≥ 2, default 2 (not published).

    Raises:
        InputError: before anything runs: m, a δ or an α out of range, limits that are no such grid, and as RCUCB.

    Source: §4, Algorithm 1, Eqs. (13)–(14).

    Deviations: down(τ) is strictly smaller (printed with ≤, which would be τ itself).

    Example:
        >>> import jaxbandits as jb
        >>> from jaxbandits.policies import ZRCUCB, fine_limits
        >>> policy = ZRCUCB("legal", horizon=1000)
        >>> state = policy.init(jb.environments.g1(limits=fine_limits(5)).spec)
        >>> state.cell.shape, int(state.cell[0])
        ((320,), 32)
    """

    survival: str = static()
    horizon: Any = leaf(at_least=1, integer=True)
    alpha: Any = leaf(default=1.01, above=1)
    delta: Any = leaf(default=None, above=0, at_most=1)
    m: int = static(default=2)

    def check(self, spec: CensoredSpec) -> None:
        """Checks the survival estimate, m, and that the limits are the finest grid."""
        spec.check()
        check_survival(self, spec)
        if not isinstance(self.m, int) or self.m < 2:
            raise bad("m", self.m, "a whole number of at least 2")
        limits, cells = np.asarray(spec.limits), len(spec.limits)
        power = cells
        while power % self.m == 0:
            power //= self.m
        even = np.arange(1, cells + 1) / cells * spec.tau_max
        if power != 1 or not np.allclose(limits, even, rtol=1e-9, atol=0):
            raise bad("limits", spec.limits, f"{self.m}**depth equally spaced ones up to tau_max (fine_limits)")

    def init(self, spec: CensoredSpec) -> Zoom:
        """Every arm's grid is {τ_max}."""
        check_survival(self, spec)
        cells = jnp.full((spec.pairs,), len(spec.limits), jnp.int32)
        return Zoom(start(spec, SURVIVALS[self.survival]), cells, jnp.bool_(False))

    def pairs(self, state: Zoom, available: jax.Array | None = None) -> ZoomPairs:
        """Values of every point of the finest grid, on the arm's own grid or not; n counts the available arms."""
        spec = state.sums.spec
        arms = jnp.int32(spec.arms) if available is None else jnp.sum(available, dtype=jnp.int32)
        horizon = self.horizon.astype(jnp.float32) if hasattr(self.horizon, "astype") else np.float32(self.horizon)
        delta = 1 / horizon if self.delta is None else self.delta
        log = jnp.log(arms.astype(jnp.float32)) + 2 * jnp.log(horizon) - jnp.log(delta)
        step = np.float32(spec.tau_max / len(spec.limits))
        return ZoomPairs(as_floats(state.sums, SURVIVALS[self.survival], log), state.cell.astype(jnp.float32) * step)

    def update(self, state: Zoom, key: jax.Array, observation: Observation) -> Zoom:
        """Add the round, then refine the grid of its arm."""
        action = observation.action
        sums = record(state.sums, SURVIVALS[self.survival], action, observation.feedback)
        state = Zoom(sums, state.cell, state.full)
        spec = sums.spec
        row, limit_index = state.cell.reshape(spec.arms, -1)[action.arm], jnp.arange(len(spec.limits), dtype=jnp.int32)
        points = self.pairs(state, observation.view.available)
        values = jax.tree.map(lambda x: x.reshape(spec.arms, -1)[action.arm], points)
        wide = _row_width(self, values)
        due = jnp.where(values.n > 0, values.cell >= wide, False)
        upper = (limit_index // row + 1) * row - 1  # the grid point that stands for the cell
        split = due[upper]
        finer = jnp.where(split & (row > 1), row // self.m, row)
        arm, _ = pair_ids(spec)
        cell = jnp.where(arm == action.arm, jnp.tile(finer, spec.arms), state.cell)
        return Zoom(sums, cell, state.full | jnp.any(split & (row == 1)))

    def score(self, points: ZoomPairs) -> jax.Array:
        """The index (13), +∞ for an arm never pulled."""
        pairs = points.pairs
        return jnp.where(pairs.n > 0, estimate(pairs) + width(pairs, self.alpha) + points.cell, jnp.inf)

    def scores(self, state: Zoom, available: jax.Array | None = None) -> jax.Array:
        """The index of every point, ``f32[n·m]``; −∞ for points that are not on the arm's grid, and absent arms."""
        scores = evaluate(self, self.pairs(state, available))  # type: ignore[arg-type]
        return jnp.where(on_grid(state) & _exists(state, available), scores, -jnp.inf)

    def recommend(self, state: Zoom, available: jax.Array | None = None) -> PairAction:
        """The pair of the finest cell, on a tie of the largest v̂."""
        pairs = self.pairs(state, available).pairs
        best = jnp.where(pairs.n > 0, estimate(pairs), 0.0)
        finest = on_grid(state) & (state.cell == jnp.min(state.cell)) & _exists(state, available)
        pair = jnp.argmax(jnp.where(finest, best, -jnp.inf)).astype(jnp.int32)
        limits = len(state.sums.spec.limits)
        return PairAction(pair // limits, pair % limits)

    def select(self, state: Zoom, key: jax.Array, view: View) -> tuple[Zoom, PairAction]:
        """The pair with the largest index up to round T, the recommended one after."""
        spec = state.sums.spec
        limits = len(spec.limits)
        scores = self.scores(state, view.available)
        pair = _largest(scores, _order(spec, streams.policy_words(key, view.round, Role.TIE)[0]))
        final, over = self.recommend(state, view.available), view.round > self.horizon
        return state, PairAction(
            jnp.where(over, final.arm, pair // limits), jnp.where(over, final.limit, pair % limits)
        )

    def status(self, state: Zoom) -> jax.Array:
        """CAPACITY once a cell of the finest grid should have been split."""
        return jnp.where(state.full, jnp.int32(Status.CAPACITY), jnp.int32(Status.RUNNING))


def on_grid(state: Zoom) -> jax.Array:
    """Which points are on their arm's own grid, ``bool[n·m]``."""
    _, limit_index = pair_ids(state.sums.spec)
    return (limit_index + 1) % state.cell == 0


def _exists(state: Zoom, available: jax.Array | None) -> jax.Array:
    arms, limits = state.sums.spec.arms, len(state.sums.spec.limits)
    present = jnp.ones((arms,), bool) if available is None else available
    return jnp.broadcast_to(present[:, None], (arms, limits)).reshape(-1)


def _row_width(policy: ZRCUCB, values: ZoomPairs) -> jax.Array:
    values = jax.lax.optimization_barrier(values)
    return width(values.pairs, policy.alpha)


def _order(spec: CensoredSpec, word: jax.Array) -> jax.Array:
    # A random order of points by (arm, limit in ticks): the same whatever the number of limits.
    arm, _ = pair_ids(spec)
    tag = of_limits(spec, spec.limit_ticks).astype(np.uint32) * np.uint32(0x85EBCA77) ^ (
        arm.astype(np.uint32) * np.uint32(0x9E3779B1)
    )
    x = word ^ tag
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def _largest(scores: jax.Array, order: jax.Array) -> jax.Array:
    # As policies.base.ties.largest, with the order given; a NaN makes it n·m, which no environment has.
    pairs = jax.lax.iota(jnp.int32, scores.shape[0])
    tied = scores == jnp.max(scores)
    first = jnp.min(jnp.where(tied, order, jnp.uint32(0xFFFFFFFF)))
    return jnp.min(jnp.where(tied & (order == first), pairs, scores.shape[0]))
