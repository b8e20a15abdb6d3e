"""Per-arm statistics: exact totals in, float32 vectors out."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.core import ticks
from jaxbandits.core.ticks import Total


class ArmStatistics(NamedTuple):
    """Statistics of K arms for index policies; ``spread`` totals are None unless requested.

    With d resources all that is of costs is ``[K, d]``, here and in :class:`Arms`. Where pulls
    weigh less than one, their number is a :class:`~jaxbandits.core.ticks.Total`.
    """

    pulls: Any  # i32[K], or a Total [K]
    reward: Total  # [K]
    cost: Total  # [K]
    reward_spread: Total | None  # [K]: Σ r(1 − r)
    cost_spread: Total | None  # [K]: Σ c(1 − c)


class Arms(NamedTuple):
    """The float32 values that a score may read, all of one shape: ``[K]``, or any batch of arms.

    ``reward_rest`` and ``cost_rest`` are n − Σr and n − Σc, taken in ticks before rounding: floats
    would cancel.
    """

    t: jax.Array  # 1-based number of the round being decided
    n: jax.Array  # completed pulls
    reward: jax.Array  # Σ r
    cost: jax.Array  # Σ c
    reward_rest: jax.Array  # n − Σ r
    cost_rest: jax.Array  # n − Σ c
    reward_spread: jax.Array | None  # Σ r(1 − r)
    cost_spread: jax.Array | None  # Σ c(1 − c)

    @property
    def mean_reward(self) -> jax.Array:
        """r̄ = Σr / n."""
        return self.reward / self.n

    @property
    def mean_cost(self) -> jax.Array:
        """c̄ = Σc / n."""
        return self.cost / beside(self.n, self.cost.ndim - self.n.ndim)


def beside(x: Any, axes: int) -> Any:
    """``x`` with ``axes`` new axes of size 1 at the end, to combine per-arm and per-resource."""
    return x.reshape(x.shape + (1,) * axes)


def empty(arms: int, *, resources: int | None = None, spreads: bool = False) -> ArmStatistics:
    """Statistics before the first pull.

    Example:
        >>> from jaxbandits.core import arm_statistics
        >>> arm_statistics.empty(3).cost.whole.shape, arm_statistics.empty(3, resources=2).cost.whole.shape
        ((3,), (3, 2))
    """
    costs = (arms,) if resources is None else (arms, resources)
    spread = (ticks.zero((arms,)), ticks.zero(costs)) if spreads else (None, None)
    pulls = jnp.zeros((arms,), jnp.int32)
    return ArmStatistics(pulls, ticks.zero((arms,)), ticks.zero(costs), *spread)


def record(
    stats: ArmStatistics, arm: jax.Array, reward: jax.Array, cost: jax.Array
) -> ArmStatistics:
    """Add a round's outcomes: scalars, or ``[L]`` for distinct arms; ``cost`` may be ``[…, d]``."""
    ids = jax.lax.iota(jnp.int32, stats.pulls.shape[0])

    def put(total: Total | None, x: jax.Array) -> Total | None:
        return None if total is None else ticks.add(total, _scatter(ids, arm, x))

    return ArmStatistics(
        stats.pulls + _scatter(ids, arm, jnp.ones_like(reward)),
        ticks.add(stats.reward, _scatter(ids, arm, reward)),
        ticks.add(stats.cost, _scatter(ids, arm, cost)),
        put(stats.reward_spread, ticks.spread(reward)),
        put(stats.cost_spread, ticks.spread(cost)),
    )


def together(stats: ArmStatistics, more: ArmStatistics) -> ArmStatistics:
    """The combined statistics of two disjoint sets of pulls."""

    def plus(a: Total | None, b: Total | None) -> Total | None:
        return None if a is None or b is None else ticks.plus(a, b)

    sums = (plus(a, b) for a, b in zip(stats[1:], more[1:], strict=True))  # type: ignore[arg-type]
    return ArmStatistics(stats.pulls + more.pulls, *sums)  # type: ignore[arg-type]


def counted(stats: ArmStatistics, open: jax.Array) -> ArmStatistics:
    """The statistics as if every open pull had its arm's current means, rounded to a tick."""
    # An arm of which nothing is known yet is counted as the worst there may be, reward 0 and cost
    # 1: so that it is not flooded before the first answer.
    n = stats.pulls
    has_pulls = _any_of(n)

    def more(total: Total | None, unseen: int) -> Total | None:
        if total is None:
            return None
        pulled, times = (beside(x, total.part.ndim - open.ndim) for x in (has_pulls, open))
        mean = jnp.where(pulled, mean_in_ticks(total, n), unseen)
        return ticks.plus(total, ticks.times(mean, times))

    pulls = ticks.plus(n, ticks.count(open)) if isinstance(n, Total) else n + open
    spreads = (more(x, 0) for x in (stats.reward_spread, stats.cost_spread))
    reward, cost = more(stats.reward, 0), more(stats.cost, ticks.ONE)
    return ArmStatistics(pulls, reward, cost, *spreads)  # type: ignore[arg-type]


def mean_in_ticks(total: Total, n: Any) -> jax.Array:
    """⌊total / max(n, 1)⌋ of each arm (and resource), 0 ≤ total ≤ n."""
    if not isinstance(n, Total):
        return ticks.quotient(total, beside(jnp.maximum(n, 1), total.whole.ndim - n.ndim))
    axes = total.whole.ndim - n.whole.ndim
    n = Total(beside(jnp.where(_any_of(n), n.whole, 1), axes), beside(n.part, axes))
    rest, digits = total, jnp.zeros_like(total.whole)
    for bit in range(ticks.BITS + 1):  # long division: n need not be whole
        rest = rest if bit == 0 else ticks.plus(rest, rest)
        fits, less = ticks.reached(rest, n), ticks.minus(rest, n)
        digits = 2 * digits + fits.astype(jnp.int32)
        rest = Total(jnp.where(fits, less.whole, rest.whole), jnp.where(fits, less.part, rest.part))
    return digits


def _any_of(n: Any) -> jax.Array:
    return (n.whole > 0) | (n.part > 0) if isinstance(n, Total) else n > 0


def _scatter(ids: jax.Array, arm: jax.Array, x: jax.Array) -> jax.Array:
    # A comparison per arm instead of a scatter: XLA runs scatters one index after the other on CPU.
    if arm.ndim == 0:
        return jnp.where(beside(ids == arm, x.ndim), x[None] if x.ndim else x, 0)
    is_arm = ids[:, None] == arm[None, :]
    return jnp.sum(jnp.where(beside(is_arm, x.ndim - 1), x[None], 0), axis=1, dtype=jnp.int32)


def as_floats(stats: ArmStatistics, round: jax.Array) -> Arms:
    """The exact totals as the float32 vectors that scores read."""

    def optional(total: Total | None) -> jax.Array | None:
        return None if total is None else ticks.to_float(total)

    whole = not isinstance(stats.pulls, Total)
    n = ticks.count(stats.pulls) if whole else stats.pulls
    axes = stats.cost.part.ndim - n.part.ndim
    return Arms(
        t=jnp.broadcast_to(round.astype(jnp.float32), n.part.shape),
        n=stats.pulls.astype(jnp.float32) if whole else ticks.to_float(n),
        reward=ticks.to_float(stats.reward),
        cost=ticks.to_float(stats.cost),
        reward_rest=ticks.to_float(ticks.minus(n, stats.reward)),
        cost_rest=ticks.to_float(ticks.minus(Total(*(beside(x, axes) for x in n)), stats.cost)),
        reward_spread=optional(stats.reward_spread),
        cost_spread=optional(stats.cost_spread),
    )
