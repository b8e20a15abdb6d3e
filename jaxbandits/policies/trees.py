"""Tree searches on [0, 1] with ratio rewards: HOO and StoOO, for comparison with zooming.

Both halve cells. A cell of depth h is [i/2^h, (i+1)/2^h], and it is played at its centre (2i +
1)/2^{h+1}, a number from which cell and depth can be read back. The estimate of a cell is r̄/max(λ,
c̄), and every confidence width is scaled by (1/λ)(1 + 1/λ), as in B-Zoom's Lemma 3; with λ = 1 and
costs of 1 both are the algorithms for rewards alone.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import whole_number
from jaxbandits.core.protocol import Chosen, Environment, Observation, Status, View
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import ContinuumSpec, point_of_ticks, to_ticks
from jaxbandits.policies.zooming import PointPolicy, too_large


def centre(depth: jax.Array, number: jax.Array) -> jax.Array:
    """The centre of cell ``number`` at this depth, in ticks; depth at most 23."""
    return (2 * number + 1) << (ticks.BITS - 1 - depth)


def width_factor(lam: jax.Array) -> jax.Array:
    """(1/λ)(1 + 1/λ)."""
    return (1 / lam) * (1 + 1 / lam)


def _ratio(statistics: ArmStatistics, lam: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(r̄/max(λ, c̄), n); the ratio means something where n ≥ 1, and is finite elsewhere."""
    n = statistics.pulls.astype(jnp.float32)
    pulls = jnp.maximum(n, 1)
    return ticks.to_float(statistics.reward) / pulls / jnp.maximum(
        lam, ticks.to_float(statistics.cost) / pulls
    ), n


def _counted(
    statistics: ArmStatistics, cells: jax.Array, reward: jax.Array, cost: jax.Array
) -> ArmStatistics:
    """The statistics with one more pull of each of these ``cells``, a mask over all."""
    reward, cost = (jnp.where(cells, x, 0) for x in (reward, cost))
    return statistics._replace(
        pulls=statistics.pulls + cells,
        reward=ticks.add(statistics.reward, reward),
        cost=ticks.add(statistics.cost, cost),
    )


class _RatioTree(PointPolicy):
    lam: ArrayLike

    def warnings(self, environment: Environment) -> list[str]:
        return too_large(f"{type(self).__name__}.lam", self.lam, environment)


@pytree
class HOO(_RatioTree):
    """Hierarchical optimistic optimisation, truncated at a depth, with ratio rewards.

    .. math:: U_{h,i} = \\frac{\\bar r}{\\max(\\lambda, \\bar c)} + \\frac1\\lambda\\Big(1 + \\frac1\\lambda\\Big)
        \\sqrt{\\frac{2 \\ln t}{n}} + \\nu \\rho^h, \\qquad
        B_{h,i} = \\min\\{U_{h,i}, \\max(B_{h+1,2i}, B_{h+1,2i+1})\\},

    with n, r̄, c̄ over all pulls in the cell, and U = B = +∞ for a cell without pulls. From the
    root, follow the larger B (equal: the left) down to the first cell without pulls or of the last
    depth, and play its centre.

    Args:
        lam: λ in (0, 1], a lower bound on the mean cost.
        nu: ν > 0; ν ρ^h bounds how much the ratio varies in a cell of depth h (L for ρ = ½).
        rho: ρ in (0, 1), default ½.
        depth: last depth, 1 to 14; a state holds 2^{depth+1} cells, and every round looks at all of
            them.

    Source: Bubeck, Munos, Stoltz, Szepesvári, *X-armed bandits* (JMLR 12, 2011), Alg. 1.

    Deviations: truncated at ``depth``; the ratio and the factor in front of the root are ours. ln t
    as in the source.
    """

    lam: ArrayLike = leaf(above=0, at_most=1)
    nu: ArrayLike = leaf(above=0)
    rho: ArrayLike = leaf(default=0.5, above=0, at_most=0.999)
    depth: int = static(default=8)

    def check(self, spec: ContinuumSpec) -> None:
        whole_number("HOO.depth", self.depth, 1, 14)

    def init(self, spec: ContinuumSpec) -> ArmStatistics:
        """Cells in the order (depth, number): cell i of depth h is number 2^h − 1 + i."""
        return arm_statistics.empty(2 ** (self.depth + 1) - 1)

    def update(
        self, state: ArmStatistics, key: jax.Array, observation: Observation
    ) -> ArmStatistics:
        """Count the pull in every cell from the root to the pulled one."""
        feedback, point = observation.feedback, to_ticks(observation.action)
        # The lowest bit of a centre names its depth; below 0 for the point 1, which is none
        depth_of_point = ticks.BITS - 1 - (31 - jax.lax.clz(point & -point))
        last = jnp.minimum(depth_of_point, self.depth)
        cells = jax.lax.iota(jnp.int32, state.pulls.shape[0])
        depth = 31 - jax.lax.clz(cells + 1)
        number = cells + 1 - (1 << depth)
        # The leading bits name the cell
        on_way = (depth <= last) & (point >> (ticks.BITS - depth) == number)
        return _counted(state, on_way, feedback.reward, feedback.cost)

    def bounds(self, state: ArmStatistics, round: jax.Array) -> jax.Array:
        """B of all cells, ``f32[cells]``, in the order of :meth:`init`."""
        mean, n = _ratio(state, self.lam)
        # Cell 2^h − 1 + i has depth h: the leading bit of its number and 1.
        h = (31 - jax.lax.clz(jax.lax.iota(jnp.int32, n.shape[0]) + 1)).astype(jnp.float32)
        wide = jnp.sqrt(2 * jnp.log(round.astype(jnp.float32)) / jnp.maximum(n, 1))
        upper = jnp.where(
            n > 0, mean + width_factor(self.lam) * wide + self.nu * jnp.power(self.rho, h), jnp.inf
        )
        levels = [upper[2**d - 1 : 2 ** (d + 1) - 1] for d in range(self.depth + 1)]
        # From the leaves: B of a cell needs those of its children
        for d in range(self.depth - 1, -1, -1):
            children = levels[d + 1].reshape(-1, 2)
            levels[d] = jnp.minimum(levels[d], jnp.max(children, axis=1))
        return jnp.concatenate(levels)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> Chosen:
        bound = self.bounds(state, view.round)
        depth, number, goes_on = jnp.int32(0), jnp.int32(0), jnp.bool_(True)
        for d in range(self.depth):
            goes_on = goes_on & (state.pulls[2**d - 1 + number] > 0)
            child = 2 ** (d + 1) - 1 + 2 * number
            right_is_better = bound[child + 1] > bound[child]
            number = jnp.where(goes_on, 2 * number + right_is_better, number)
            depth = depth + goes_on
        return state, point_of_ticks(centre(depth, number))


class Leaves(NamedTuple):
    """The leaves of StoOO's tree; slots from ``count`` on are empty."""

    count: jax.Array  # type: ignore[assignment]  # i32[]
    depth: jax.Array  # i32[M]
    number: jax.Array  # i32[M]
    statistics: ArmStatistics  # [M]
    full: jax.Array  # bool[]


@pytree
class StoOO(_RatioTree):
    """Stochastic optimistic optimisation with ratio rewards, on a tree of halved cells.

    .. math:: b = \\frac{\\bar r}{\\max(\\lambda, \\bar c)} + w + \\nu 2^{-h}, \\qquad
        w = \\frac1\\lambda\\Big(1 + \\frac1\\lambda\\Big) \\sqrt{\\frac{\\ln(N^2/\\delta)}{2 n}},

    +∞ for a leaf without pulls. Play the leaf with the largest b (equal: the one that is older) at
    its centre; once ν2^{-h} ≥ w, split it into two leaves without pulls.

    Args:
        lam: λ in (0, 1], a lower bound on the mean cost.
        nu: ν > 0; ν2^{-h} bounds how much the ratio varies in a cell of depth h (L/2 suffices
            around the centre).
        horizon: N > 0, (about) the number of rounds.
        delta: δ in (0, 1].
        capacity: most leaves; if more are needed, the lane ends with ``Status.CAPACITY``.
        depth: cells of this depth are not split any more, 1 to 22.

    Source: Munos, *From bandits to Monte-Carlo tree search* (2014), StoOO, from memory of the
    b-value and the rule of expansion.

    Deviations: the ratio and the factor in front of the root are ours.
    """

    lam: ArrayLike = leaf(above=0, at_most=1)
    nu: ArrayLike = leaf(above=0)
    horizon: ArrayLike = leaf(above=0)
    delta: ArrayLike = leaf(default=0.1, above=0, at_most=1)
    capacity: int = static(default=128)
    depth: int = static(default=16)

    def check(self, spec: ContinuumSpec) -> None:
        whole_number("StoOO.capacity", self.capacity, 1, 1 << 14)
        whole_number("StoOO.depth", self.depth, 1, 22)

    def init(self, spec: ContinuumSpec) -> Leaves:
        zeros = jnp.zeros((self.capacity,), jnp.int32)
        return Leaves(
            jnp.int32(1), zeros, zeros, arm_statistics.empty(self.capacity), jnp.bool_(False)
        )

    def width(self, n: jax.Array) -> jax.Array:
        """w after n ≥ 1 pulls."""
        return width_factor(self.lam) * jnp.sqrt(
            (2 * jnp.log(self.horizon) - jnp.log(self.delta)) / (2 * n)
        )

    def update(self, state: Leaves, key: jax.Array, observation: Observation) -> Leaves:
        """Count the pull in its leaf, and split it if ν 2^−depth is at least :meth:`width`."""
        feedback, point = observation.feedback, to_ticks(observation.action)
        ids = jax.lax.iota(jnp.int32, self.capacity)
        is_leaf = (ids < state.count) & (centre(state.depth, state.number) == point)
        statistics = _counted(state.statistics, is_leaf, feedback.reward, feedback.cost)
        n = jnp.maximum(statistics.pulls, 1).astype(jnp.float32)
        size = self.nu * jnp.exp2(-state.depth.astype(jnp.float32))
        ripe = is_leaf & (size >= self.width(n)) & (state.depth < self.depth)
        splits = jnp.any(ripe)
        # The left child takes the slot of its parent, the right one the first that is free; both
        # forget.
        split = splits & (state.count < self.capacity)
        left_child, new = ripe & split, (ids == state.count) & split
        parent_depth = jnp.sum(jnp.where(ripe, state.depth, 0), dtype=jnp.int32)
        parent_number = jnp.sum(jnp.where(ripe, state.number, 0), dtype=jnp.int32)
        child = left_child | new
        return Leaves(
            count=state.count + split,
            depth=jnp.where(child, parent_depth + 1, state.depth),
            number=jnp.where(child, 2 * parent_number + new, state.number),
            statistics=jax.tree.map(lambda x: jnp.where(child, 0, x), statistics),
            full=state.full | (splits & ~split),
        )

    def bounds(self, state: Leaves) -> jax.Array:
        """b of all leaves, ``f32[M]``; −∞ in empty slots."""
        mean, n = _ratio(state.statistics, self.lam)
        size = self.nu * jnp.exp2(-state.depth.astype(jnp.float32))
        bound = jnp.where(n > 0, mean + self.width(jnp.maximum(n, 1)) + size, jnp.inf)
        return jnp.where(jax.lax.iota(jnp.int32, self.capacity) < state.count, bound, -jnp.inf)

    def select(self, state: Leaves, key: jax.Array, view: View) -> Chosen:
        best = jnp.argmax(self.bounds(state))
        return state, point_of_ticks(centre(state.depth[best], state.number[best]))

    def status(self, state: Leaves) -> jax.Array:
        return jnp.where(state.full, jnp.int32(Status.CAPACITY), jnp.int32(Status.RUNNING))
