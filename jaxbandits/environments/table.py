"""Environments from a table of the rewards and costs of K arms on N requests.

A round is a request, one row of the table. Which one depends on the round alone, so all policies
have the same request in the same round, and a policy that skips a round skips its request.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import constraints
from jaxbandits._numerics import fluid
from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits._numerics.fluid import ContextValue
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import in_float32, refuse, whole_number
from jaxbandits.core.protocol import Constraint, Feedback, Outcome, Possible, Pulled
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Domain
from jaxbandits.core.tables import alike, check_unit, fits, ticks32
from jaxbandits.environments.finite import CountedArms, listed

_MOST_ROWS = 2**30
# Rounds of the shuffle behind a random order; orders of six rows pass a χ² test with 24
_SWAPS = 48

# --- Which request comes in which round


class RowOrder:
    """An order of a table's rows, which determines the row of each round.

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

    # Is each round's row drawn from all of them, whatever came before? Else what a pull is expected
    # to earn is what it earns: past rows carry information about future ones.
    independent: ClassVar[bool] = False

    @abstractmethod
    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        """The row of this round, ``i32[]`` from 0 to ``rows`` − 1; ``key`` is the world's."""

    def check(self, rows: int) -> None:
        """Raise :class:`InputError` for an order that does not fit a table of so many rows."""

    def shares(self, rows: int, rounds: int) -> np.ndarray | None:
        """Host: each row's expected share of the rounds, ``[rows]``; None: all are equal."""
        return None


@pytree
class DrawnRows(RowOrder):
    """A row drawn uniformly with replacement in each round: independent requests without end.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import DrawnRows, RequestTable
        >>> RequestTable.of([[0.5]] * 6, [[0.2]] * 6, DrawnRows()).rows(jax.random.key(0), rounds=12).tolist()
        [0, 5, 1, 2, 0, 1, 3, 1, 2, 2, 4, 0]
    """

    independent: ClassVar[bool] = True

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        return streams.below(streams.words(key, round, 0)[0], rows)


@pytree
class RowsInOrder(RowOrder):
    """The rows in the order of the table, repeated: a log in order of time.

    Every replicate has the same rows, so replicates differ only by a policy's own draws. With a
    number of rounds the regret is against the means of the rows that come in them. With money alone
    it is against those of all rows: a run may end after better or worse ones, all policies alike.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import RequestTable, RowsInOrder
        >>> RequestTable.of([[0.5]] * 3, [[0.2]] * 3, RowsInOrder()).rows(jax.random.key(0), rounds=7).tolist()
        [0, 1, 2, 0, 1, 2, 0]
    """

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        return (round - 1) % rows

    def shares(self, rows: int, rounds: int) -> np.ndarray | None:
        passes, rest = divmod(rounds, rows)
        return (passes + (np.arange(rows) < rest)) / rounds if rest else None


@pytree
class ShuffledRows(RowOrder):
    """Every row once in a random order of each replicate, then all again in a new order.

    Nothing is stored: the row at a place is found by the shuffle *swap or not*, 48 rounds of

    .. math:: x \\leftarrow k_r - x \\bmod n \\quad \\text{if } F_r(\\max(x,\\, k_r - x \\bmod n)) = 1,

    k and F keyed by the address (world, pass). Source: Hoang, Morris, Rogaway, An enciphering
    scheme based on a card shuffle, CRYPTO 2012, Figure 1.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import RequestTable, ShuffledRows
        >>> world = RequestTable.of([[0.5, 0.9]] * 6, [[0.1, 0.8]] * 6, ShuffledRows())
        >>> world.rows(jax.random.key(0), rounds=12).tolist()
        [4, 5, 2, 3, 1, 0, 2, 0, 4, 1, 3, 5]
    """

    def row(self, key: jax.Array, round: jax.Array, rows: int) -> jax.Array:
        words = streams.words(key, (round - 1) // rows, 1)
        return permuted((round - 1) % rows, jnp.int32(rows), words)


def permuted(place: jax.Array, n: jax.Array, words: jax.Array) -> jax.Array:
    """The image of ``place``, ``i32[]``, in a permutation of 0 … n − 1 drawn from two words."""
    n = n.astype(jnp.uint32)

    def swap(r: Any, x: jax.Array) -> jax.Array:
        r = jnp.asarray(r, jnp.uint32)  # without jit a plain number
        partner = (streams.priority(words[0], r) % n + n - x) % n
        coin = streams.priority(words[1] ^ (r * np.uint32(0x61C88647)), jnp.maximum(x, partner))
        return jnp.where(coin >> 31 > 0, partner, x)

    # A loop, not written out: that takes half as long to compile, and runs as fast.
    return jax.lax.fori_loop(0, _SWAPS, swap, place.astype(jnp.uint32)).astype(jnp.int32)


def checked_features(features: Any, lead: tuple[int, ...] | None) -> np.ndarray:
    """Float32 features ``[N, d]`` or ``[N, K, d]``; ``lead``: axes required first, if any."""
    table = in_float32("features", features)
    before = 1 if lead is None else len(lead)
    wrong = table.ndim - before not in (1, 2) or 0 in table.shape
    wrong = wrong or (lead is not None and table.shape[:before] != lead)
    must = "[N, d] or [N, K, d]" if lead is None else f"{list(lead)} first, then [d] or [K, d]"
    refuse("features", f"shape {table.shape}", wrong, must)
    refuse("features", table, ~np.isfinite(table), "finite")
    return table


def _means(table: np.ndarray, features: np.ndarray | None) -> np.ndarray:
    """Column means, ``i32[instance, …]`` ticks; over equal features ``i32[instance, N, …]``."""
    if features is None:
        return np.rint(table.mean(axis=1, dtype=np.float64)).astype(np.int32)
    means = np.empty_like(table)
    for into, rows, known in zip(means, table, features, strict=True):
        flat = known.reshape(len(known), -1) + np.float32(0)  # −0 is 0
        _, group = np.unique(flat, axis=0, return_inverse=True)
        sums = np.zeros((group.max() + 1, *rows.shape[1:]))
        np.add.at(sums, group.ravel(), rows)
        counts = np.bincount(group.ravel()).reshape(-1, *[1] * (rows.ndim - 1))
        into[...] = np.rint(sums / counts)[group.ravel()]
    return means


# --- What could be gained by who knows the means of a request before it is decided


def context_values(
    tables: list[tuple[np.ndarray, np.ndarray]], ready: Constraint, order: RowOrder | None = None
) -> list[ContextValue] | None:
    """Host: the value of contexts under a prepared constraint, by instance; None if unknown.

    Args:
        tables: means at contexts, reward ``[instance, N, K]`` and cost ``[instance, N, K, J]``, NaN
            where absent: one that is exact, or two samples.
        order: in which the rows of an exact one come.
    """
    pace = constraints.a_round(ready)
    if pace is None or (
        pace.budget is not None and pace.budget.shape[1] not in (0, tables[0][1].shape[-1])
    ):
        return None
    values = []
    for i in range(len(tables[0][0])):
        pair = [(np.where(np.isnan(r[i]), -np.inf, r[i]), np.nan_to_num(c[i])) for r, c in tables]
        budget = pace.budget[i] if pace.budget is not None else None
        values.append(fluid.context_value(pair, budget, _share(order, pair[0][0], ready, i)))
    return values


def _share(
    order: RowOrder | None, rows: np.ndarray, ready: Constraint, instance: int
) -> np.ndarray | None:
    """How often each of these rows comes in the rounds of a run, if that is known; None: equally."""
    rounds = constraints.rounds_of(ready)
    if order is None or rounds is None:
        return None
    return order.shares(len(rows), int(rounds[instance]))


def context_benchmarks(
    tables: list[tuple[np.ndarray, np.ndarray]],
    constraint: Constraint,
    order: RowOrder | None = None,
) -> Mapping[str, Possible]:
    """Host: ``"moving"`` with contexts, ``"fixed"`` without, both linear in the clock."""
    # Samples have standard errors too; for arguments see :func:`context_values`.
    values, pace = context_values(tables, constraint, order), constraints.a_round(constraint)
    rates = np.full((4, len(tables[0][0])), np.nan)
    if values is not None and pace is not None:
        rows = [[x.contextual, x.fixed, x.error, x.fixed_error] for x in values]
        rates = np.array(rows).T / pace.units
    names = ("moving", "fixed", "moving_error", "fixed_error")[: 2 * len(tables)]
    return {name: partial(_evenly, rate) for name, rate in zip(names, rates, strict=False)}


def _evenly(rate: np.ndarray, instance: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """What could have been gained, ``[lane, mark]``, at a rate for each instance."""
    return rate[instance][:, None] * clock


# --- The table


@pytree
class RequestTable(CountedArms):
    """A table of rewards and costs of K arms on N requests, such as quality and price of models.

    A round has a row, and a pull has the reward and cost of the arm's cell in that row, so arms are
    as dependent as they are in the data. Build one with :meth:`of`. The row of a round does not
    depend on the policy; a null arm or a skip (:class:`~jaxbandits.environments.WithNullArm`) skips
    it.

    Regret is against the means of the whole table; with features it is against an oracle that sees
    them and knows each arm's mean over the rows with equal features (``fixed_regret``: against the
    best mixture that ignores them), see
    :meth:`~jaxbandits.environments.ContextualArms.benchmarks`. Simulated round by round, since the
    n-th pull of an arm has no address of its own.

    Args:
        reward, cost: ``i32[instance, N, K]`` in ticks.
        mean_reward, mean_cost: what a pull is expected to bring and cost, in ticks: of the columns,
            ``i32[instance, K]``; with features of the rows that have the same, ``i32[instance, N,
            K]``; in an order that is not :attr:`~RowOrder.independent` the cells themselves.
        order: which row comes in which round: :class:`DrawnRows`, :class:`ShuffledRows` or
            :class:`RowsInOrder`.
        features: ``f32[instance, N, d]`` or ``f32[instance, N, K, d]``: contexts; None: there are
            none.

    Example:
        Two models, each right on half of the requests, but not on the same half.

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
        """
        r, c = alike((2, 3), "[N, K] or [instance, N, K]", reward=reward, cost=cost)
        r, c = (x.reshape(-1, *x.shape[-2:]) for x in (r, c))
        fits("reward, cost", r.shape)
        refuse("reward, cost", f"{r.shape[1]} rows", r.shape[1] > _MOST_ROWS, "at most 2**30")
        for name, x in (("reward", r), ("cost", c)):
            for column in np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]):
                check_unit(name, column, rows=True)
        reward_ticks, cost_ticks = ticks32(r), ticks32(c)
        if features is not None:
            features = checked_features(features, np.shape(reward)[:-1])
            features = features if np.ndim(reward) == 3 else features[None]
        order = order or DrawnRows()
        means = [reward_ticks, cost_ticks]
        if order.independent:
            means = [_means(x, features) for x in means]
        return cls(reward_ticks, cost_ticks, means[0], means[1], order, features)

    @property
    def spec(self) -> FiniteSpec:
        # Of whole tables, ``[instance, N, …]``, or of one instance's, ``[N, …]``, as the runner
        # reads them.
        axes, costs = len(self.reward.shape), self.cost.shape
        resources = int(costs[-1]) if len(costs) > axes else None
        context = None if self.features is None else tuple(self.features.shape[axes - 1 :])
        return FiniteSpec(int(self.reward.shape[-1]), resources, context=context)

    @property
    def may_wait(self) -> bool:
        """Whether its benchmarks are also valid with a null arm."""
        return self.features is None

    def check(self) -> None:
        self.order.check(int(self.reward.shape[-2]))

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array | None:
        if self.features is None:
            return None
        return self.features[self.order.row(key, round, int(self.reward.shape[-2]))]

    def pull(self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        arm = jnp.clip(action, 0, self.spec.arms - 1)
        row = self.order.row(key, round, int(self.reward.shape[-2]))
        reward, cost = self.reward[row, arm], self.cost[row, arm]
        cell = (row, arm) if self._by_row else (arm,)
        means = self.mean_reward[cell], self.mean_cost[cell]
        outcome = Outcome(reward, cost, *means, {}, valid=arm == action)
        return self.counted(state, arm), outcome, Feedback(reward, cost), jnp.bool_(False)

    @property
    def present(self) -> np.ndarray:
        """``bool[instance, K]``: a table has all of its arms."""
        return np.ones((self.instances, self.spec.arms), bool)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        reward, cost = ticks.to_units(self.mean_reward), ticks.to_units(self.mean_cost)
        return (reward.mean(axis=1), cost.mean(axis=1)) if self._by_row else (reward, cost)

    @property
    def _by_row(self) -> bool:
        """Has each row means of its own?"""
        return len(self.mean_reward.shape) == len(self.reward.shape)

    def benchmarks(
        self, constraint: Constraint, clock: np.ndarray
    ) -> Mapping[str, Possible] | None:
        """Host: with features by contexts (exact), else by row shares if these differ."""
        if self.features is not None:
            return context_benchmarks(self.value_tables(), constraint, self.order)
        tables = [ticks.to_units(x) for x in (self.reward, self.cost)]
        shares = [_share(self.order, x, constraint, i) for i, x in enumerate(tables[0])]
        if any(share is None for share in shares):
            return None
        means = (np.stack(list(map(partial(np.tensordot, axes=1), shares, x))) for x in tables)
        return {"moving": partial(_evenly, constraint.best_rate(*means))}

    def value_tables(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Host: means at the features of each row, ``[instance, N, K]`` and ``[…, J]``."""
        tables = (np.asarray(x) for x in (self.reward, self.cost))
        reward, cost = (ticks.to_units(_means(x, self.features)) for x in tables)
        return [(reward, cost if self.resources is not None else cost[..., None])]

    def cost_steps(self) -> tuple[Any, Any]:
        """Host: from an arm's cells; see :meth:`~jaxbandits.environments.finite.Law.cost_steps`."""
        cost = np.moveaxis(np.asarray(self.cost, np.int64), 1, -1)
        return np.gcd.reduce(cost, axis=-1), cost.max(axis=-1)

    def listed_costs(self) -> np.ndarray | None:
        return listed(self.cost, 0 if self.resources is None else 1)

    def prices(self) -> np.ndarray | None:
        cost = np.asarray(self.cost, np.int64)
        return np.where((cost == cost[:, :1]).all(axis=1), cost[:, 0], 0)

    def rows(
        self, key: jax.Array, rounds: int, replicate: int = 0, instance: int = 0
    ) -> np.ndarray:
        """Host: the rows that a run of :func:`~jaxbandits.simulate` faces, ``i64[rounds]``.

        Args:
            key: that of ``simulate``.
            rounds: how many.
            replicate, instance: of the run.
        """
        self.check()
        lane = streams.lane_key(streams.root_key(key), instance, replicate)
        world = streams.domain_key(lane, Domain.WORLD)
        last = whole_number("rounds", rounds, 1, _MOST_ROWS)
        all_rounds = jnp.arange(1, 1 + last, dtype=jnp.int32)
        number = int(self.reward.shape[-2])
        return np.asarray(_rows(self.order, world, all_rounds, number), np.int64)


@partial(jax.jit, static_argnums=3)
def _rows(order: RowOrder, key: jax.Array, rounds: jax.Array, rows: int) -> jax.Array:
    return jax.vmap(lambda round: order.row(key, round, rows))(rounds)
