"""Worlds that are a table: what each of K arms brought and cost on each of N requests, all cells
known.

A round is a request, one row of the table. Which one depends on the round alone, so all policies
meet the same request in the same round, and whoever rests lets it pass.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, in_float32, numbers, whole_number
from jaxbandits.core.protocol import Environment, Feedback, Outcome
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Domain
from jaxbandits.core.tables import check_unit, fits, ticks32
from jaxbandits.environments.finite import refuses_but_one_arm

_MOST_ROWS = 2**30
_SWAPS = (
    48  # rounds of the shuffle behind a random order; orders of six rows pass a χ² test with 24
)

# --- Which request comes in which round


class RowOrder:
    """Which row of a table a round meets.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class OneRowForTwo(jb.environments.RowOrder):
        ...     def row(self, key, round, rows):
        ...         return (round - 1) // 2 % rows
        >>> world = jb.environments.RequestTable.of([[0.5], [0.9], [0.1]], [[0.2]] * 3, OneRowForTwo())
        >>> world.rows(jax.random.key(0), rounds=7).tolist()
        [0, 0, 1, 1, 2, 2, 0]
    """

    @abstractmethod
    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        """The row of this round, ``i32[]`` from 0 to ``rows`` − 1; ``key`` is the world's."""

    def check(self, rows: int) -> None:
        """Raise :class:`InputError` on an order that no table of so many rows has."""


@pytree
class DrawnRows(RowOrder):
    """A row drawn uniformly each round, with replacement: requests without end, independent of each
    other.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import DrawnRows, RequestTable
        >>> RequestTable.of([[0.5]] * 6, [[0.2]] * 6, DrawnRows()).rows(jax.random.key(0), rounds=12).tolist()
        [0, 5, 1, 2, 0, 1, 3, 1, 2, 2, 4, 0]
    """

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        return streams.below(streams.words(key, round, 0)[0], rows)


@pytree
class RowsInOrder(RowOrder):
    """The rows as they stand, again and again: a log in the order of its time.

    Every replicate meets the same rows, so replicates differ by a policy's own draws alone.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import RequestTable, RowsInOrder
        >>> RequestTable.of([[0.5]] * 3, [[0.2]] * 3, RowsInOrder()).rows(jax.random.key(0), rounds=7).tolist()
        [0, 1, 2, 0, 1, 2, 0]
    """

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        return (round - 1) % rows


@pytree
class ShuffledRows(RowOrder):
    """Every row once, in a random order of its own for each replicate; after the last one all
    again, in a new order.

    Args:
        parts: numbers of rows of parts that follow one another, each shuffled by itself, such as
            those of a training and a test split; default one part.

    Nothing is stored: the row at a place is found by the shuffle *swap or not*, 48 rounds of

    .. math:: x \\leftarrow k_r - x \\bmod n \\quad \\text{if } F_r(\\max(x,\\, k_r - x \\bmod n)) = 1,

    k and F keyed by the address (world, pass, part). Source: Hoang, Morris, Rogaway, An enciphering
    scheme based on a card shuffle, CRYPTO 2012, Figure 1.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, for parts that are no positive whole numbers
            with the sum N.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import RequestTable, ShuffledRows
        >>> world = RequestTable.of([[0.5, 0.9]] * 6, [[0.1, 0.8]] * 6, ShuffledRows(parts=(4, 2)))
        >>> world.rows(jax.random.key(0), rounds=12).tolist()
        [2, 0, 3, 1, 4, 5, 0, 3, 2, 1, 5, 4]
    """

    parts: tuple[int, ...] | None = static(default=None)

    def check(self, rows: int) -> None:
        if self.parts is not None:
            sizes = [whole_number("parts", size, 1, rows) for size in self.parts]
            if sum(sizes) != rows:
                raise bad("parts", self.parts, f"numbers whose sum is that of the rows, {rows}")

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        sizes = np.array(self.parts or (rows,), np.int32)
        ends = np.cumsum(sizes).astype(np.int32)
        tour, place = (round - 1) // rows, (round - 1) % rows
        part = jnp.sum((ends <= place).astype(jnp.int32), dtype=jnp.int32)
        first = jnp.asarray(ends - sizes)[part]
        words = streams.words(key, tour, 1 + part)
        return first + permuted(place - first, jnp.asarray(sizes)[part], words)


def permuted(place: jax.Array, n: jax.Array, words: jax.Array) -> jax.Array:
    """The image of ``place`` under the random permutation of 0 … n − 1 that two words make,
    ``i32[]``.
    """
    n = n.astype(jnp.uint32)

    def swap(r: Any, x: jax.Array) -> jax.Array:
        r = jnp.asarray(r, jnp.uint32)  # without jit a plain number
        partner = (streams.priority(words[0], r) % n + n - x) % n
        coin = streams.priority(words[1] ^ (r * np.uint32(0x61C88647)), jnp.maximum(x, partner))
        return jnp.where(coin >> 31 > 0, partner, x)

    # A loop, not written out: that takes half as long to compile, and runs as fast.
    return jax.lax.fori_loop(0, _SWAPS, swap, place.astype(jnp.uint32)).astype(jnp.int32)


def checked_features(features: Any, lead: tuple[int, ...] | None) -> np.ndarray:
    """Float32 features ``[N, d]`` or ``[N, K, d]``; ``lead`` are the axes that must come first, if
    any must.
    """
    table = in_float32("features", features)
    before = 1 if lead is None else len(lead)
    if (
        table.ndim not in (before + 1, before + 2)
        or 0 in table.shape
        or (lead and table.shape[:before] != lead)
    ):
        must = "[N, d] or [N, K, d]" if lead is None else f"{list(lead)} first, then [d] or [K, d]"
        raise InputError(f"features: shape {table.shape} given; it must be {must}")
    if not np.isfinite(table).all():
        raise bad("features", float(table[~np.isfinite(table)][0]), "finite")
    return table


# --- The table


@pytree
class RequestTable(Environment):
    """N requests × K arms: a table of rewards and costs, all of which are known, such as quality
    and dollars of models.

    The arm of a round brings and costs what stands in its cell of the round's row, so arms are as
    dependent as they are in the data. Build one with :meth:`of`. A row is met in the same round
    whatever the policy does; a null arm or a skip (:class:`~jaxbandits.environments.WithNullArm`)
    lets it pass.

    Regret is against the means of the whole table. Played round by round, since the n-th pull of an
    arm has no address of its own.

    Args:
        reward, cost: ``i32[instance, N, K]`` in ticks.
        mean_reward, mean_cost: of their columns, ``i32[instance, K]`` in ticks.
        order: which row comes in which round: :class:`DrawnRows`, :class:`ShuffledRows` or
            :class:`RowsInOrder`.
        features: ``f32[instance, N, d]`` or ``f32[instance, N, K, d]``: contexts; None: there are
            none. The regret is against the best mixture all the same, so it is below 0 where a
            policy gains by them.

    Example:
        Two models, the second right where the first is wrong: half of the requests each, but not
            the same half.

        >>> import jax
        >>> import jaxbandits as jb
        >>> quality, dollars = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], [[0.01, 0.05]] * 4
        >>> world = jb.environments.RequestTable.of(quality, dollars, jb.environments.ShuffledRows())
        >>> always = [jb.policies.FixedSplit([1.0, 0.0]), jb.policies.FixedSplit([0.0, 1.0])]
        >>> result = jb.simulate(always, world, jb.Horizon(4), key=jax.random.key(0), replicates=3, marks=1)
        >>> result.reward.values.squeeze().tolist()                      # every request once: no chance in it
        [[2.0, 2.0, 2.0], [2.0, 2.0, 2.0]]
        >>> [world.rows(jax.random.key(0), rounds=4, replicate=i).tolist() for i in range(3)]
        [[2, 0, 3, 1], [1, 3, 0, 2], [1, 0, 3, 2]]
    """

    reward: ArrayLike = leaf()
    cost: ArrayLike = leaf()
    mean_reward: ArrayLike = leaf()
    mean_cost: ArrayLike = leaf()
    order: RowOrder = leaf(default=DrawnRows())
    features: ArrayLike = leaf(default=None)

    @classmethod
    def of(
        cls, reward: Any, cost: Any, order: RowOrder | None = None, features: Any = None
    ) -> Self:
        """A table of numbers in [0, 1].

        Args:
            reward: ``[N, K]`` or ``[instance, N, K]``, a value for every arm on every request.
            cost: same shape. Divide dollars by the largest cell.
            order: default :class:`DrawnRows`.
            features: what is known of each request before it is decided, ``[N, d]``, or ``[N, K,
                d]`` with a row for each arm; instances before them if ``reward`` has them. They are
                the context of a round.

        Raises:
            InputError: shapes that differ, values outside [0, 1] or not finite, an arm whose mean
                rounds to no tick.
        """
        r, c = numbers("reward", reward), numbers("cost", cost)
        if r.shape != c.shape or r.ndim not in (2, 3) or 0 in r.shape:
            shapes = f"reward, cost: shapes {r.shape} and {c.shape} given"
            raise InputError(f"{shapes}; both must be [N, K] or [instance, N, K]")
        r, c = (x[None] if x.ndim == 2 else x for x in (r, c))
        fits("reward, cost", r.shape)
        if r.shape[1] > _MOST_ROWS:
            raise bad("reward, cost", f"{r.shape[1]} rows", "at most 2**30")
        for name, x in (("reward", r), ("cost", c)):
            for column in np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]):
                check_unit(name, column, rows=True)
        reward_ticks, cost_ticks = ticks32(r), ticks32(c)
        means = [
            np.rint(x.mean(axis=1, dtype=np.float64)).astype(np.int32)
            for x in (reward_ticks, cost_ticks)
        ]
        if features is not None:
            features = checked_features(features, np.shape(reward)[:-1])
            features = features if np.ndim(reward) == 3 else features[None]
        return cls(reward_ticks, cost_ticks, means[0], means[1], order or DrawnRows(), features)

    @property
    def spec(self) -> FiniteSpec:
        arms = int(self.mean_reward.shape[-1])
        several = len(self.mean_cost.shape) - len(self.mean_reward.shape)
        resources = int(self.mean_cost.shape[-1]) if several else None
        if self.features is None:
            return FiniteSpec(arms, resources)
        # Of whole tables, ``[instance, N, …]``, or of one instance's, ``[N, …]``, as the runner
        # reads them.
        return FiniteSpec(
            arms, resources, context=tuple(self.features.shape[len(self.reward.shape) - 1 :])
        )

    def check(self) -> None:
        self.order.check(int(self.reward.shape[-2]))

    def refuses(self, action: Any) -> str | None:
        return refuses_but_one_arm(action)

    def start(self) -> jax.Array:
        """Pull counts, ``i32[K]``."""
        return jnp.zeros((self.spec.arms,), jnp.int32)

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array | None:
        """The features of the round's row, if there are any."""
        if self.features is None:
            return None
        return self.features[self.order.row(key, round, int(self.reward.shape[-2]))]

    def pull(
        self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[jax.Array, Outcome, Feedback, jax.Array]:
        width = self.spec.arms
        arm = jnp.clip(action, 0, width - 1)
        row = self.order.row(key, round, int(self.reward.shape[-2]))
        reward, cost = self.reward[row, arm], self.cost[row, arm]
        outcome = Outcome(
            reward, cost, self.mean_reward[arm], self.mean_cost[arm], {}, valid=arm == action
        )
        hit = (jax.lax.iota(jnp.int32, width) == arm).astype(jnp.int32)
        return state + hit, outcome, Feedback(reward, cost), jnp.bool_(False)

    def summary(self, state: jax.Array) -> dict[str, jax.Array]:
        return {"pulls": state}

    @property
    def present(self) -> np.ndarray:
        """``bool[instance, K]``: a table has all of its arms."""
        return np.ones(self.mean_reward.shape, bool)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        return ticks.to_units(self.mean_reward), ticks.to_units(self.mean_cost)

    def prices(self) -> np.ndarray | None:
        """Of arms that cost the same in all rows."""
        cost = np.asarray(self.cost, np.int64)
        return np.where((cost == cost[:, :1]).all(axis=1), cost[:, 0], 0)

    def rows(
        self, key: jax.Array, rounds: int, replicate: int = 0, instance: int = 0
    ) -> np.ndarray:
        """Host: the rows that a lane of :func:`~jaxbandits.simulate` meets, ``i64[rounds]``, to
        play others on them.

        Args:
            key: the one that ``simulate`` got.
            rounds: how many.
            replicate, instance: whose.
        """
        self.check()
        lane = streams.domain_key(
            streams.lane_key(streams.root_key(key), instance, replicate), Domain.WORLD
        )
        number = int(self.reward.shape[-2])
        all_rounds = jnp.arange(
            1, 1 + whole_number("rounds", rounds, 1, _MOST_ROWS), dtype=jnp.int32
        )
        return np.asarray(_rows(self.order, lane, all_rounds, number), np.int64)


@partial(jax.jit, static_argnums=3)
def _rows(order: RowOrder, key: jax.Array, rounds: jax.Array, rows: int) -> jax.Array:
    return jax.vmap(lambda round: order.row(key, round, rows))(rounds)
