"""Environments whose outcomes arrive later, and distributions of delays."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import streams
from jaxbandits.core.arm_statistics import beside
from jaxbandits.core.checks import numbers, refuse, whole_number
from jaxbandits.core.protocol import Environment, Pulled
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree, static
from jaxbandits.core.specs import SKIP, Arrivals, DelayedSpec, FiniteSpec
from jaxbandits.environments.finite import AroundWorld, refuses_but_one_arm

# --- How long a request's outcome takes, in rounds: 0 is told before the next round is decided

NEVER = np.int32(1 << 30)  # rounds: no run is that long


class DelayLaw:
    """A distribution of delays; leaves have a leading instance axis, as an environment's do.

    Example:
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class OddRoundsLater(jb.environments.DelayLaw):
        ...     def delay(self, word, round):
        ...         return round % 2
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.9], [0.9, 0.3])
        >>> jb.environments.Delayed(arms, OddRoundsLater(), room=4).instances
        1
    """

    @abstractmethod
    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        """The delay of this round's request, ``i32[]`` from 0 to ``NEVER``, from 32 random bits."""

    def check(self) -> None:
        """Raise :class:`InputError` for invalid parameters."""


@pytree
class FixedDelay(DelayLaw):
    """The same delay for every outcome.

    Args:
        rounds: a whole number from 0 on.
    """

    rounds: int = static(default=0)

    def check(self) -> None:
        whole_number("rounds", self.rounds, 0, int(NEVER) - 1)

    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        return jnp.int32(self.rounds)


@pytree
class Batched(DelayLaw):
    """Batches of ``size`` rounds: decisions see all outcomes of earlier batches, none of their own.

    Args:
        size: a whole number from 1 on.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments import Batched
        >>> [int(Batched(4).delay(jnp.uint32(0), jnp.int32(round))) for round in (1, 2, 3, 4, 5)]
        [3, 2, 1, 0, 3]
    """

    size: int = static(default=1)

    def check(self) -> None:
        whole_number("size", self.size, 1, int(NEVER) - 1)

    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        return (-round) % jnp.int32(self.size)


@pytree
class TableDelay(DelayLaw):
    """P(delay = j) ∝ ``weights[j]``; with probability ``lost`` the outcome never arrives.

    Cut to multiples of 2⁻²⁴, as all chances are.

    Args:
        cumulated: ``i32[instance, J]``; use :meth:`of` or :meth:`geometric`.
    """

    cumulated: ArrayLike = leaf()

    @classmethod
    def of(cls, weights: Any, lost: float = 0.0, instances: int = 1) -> Self:
        """A table of weights, the same for every instance.

        Example:
            >>> from jaxbandits.environments import TableDelay
            >>> TableDelay.of([1, 0, 1]).cumulated.tolist()
            [[8388608, 8388608, 16777216]]
        """
        w = numbers("weights", weights)
        fits = w.ndim == 1 and (np.isfinite(w) & (w >= 0)).all() and w.any()
        refuse("weights", w.tolist(), not fits, "a list of finite numbers of at least 0, not all 0")
        refuse("lost", lost, not 0 <= lost < 1, "at least 0 and below 1")
        w = w / w.max()  # their sum may be beyond all numbers
        share = np.cumsum(w) / w.sum() * (1 - lost)
        table = np.rint(share * (1 << 24)).astype(np.int32)
        return cls(np.broadcast_to(table, (instances, table.size)).copy())

    @classmethod
    def geometric(cls, mean: float, lost: float = 0.0, instances: int = 1) -> Self:
        """P(delay = j) ∝ (mean/(1 + mean))ʲ, cut off below 2⁻²⁴; the mean is at most 1,000."""
        refuse("mean", mean, not 0 <= mean <= 1000, "from 0 to 1000")
        q = mean / (1 + mean)
        length = 1 if q == 0 else int(np.ceil(24 * np.log(2) / -np.log(q))) + 1
        return cls.of(q ** np.arange(length), lost, instances)

    def delay(self, word: jax.Array, round: jax.Array) -> jax.Array:
        table = self.cumulated[:]
        later = jnp.sum((streams.uniform_ticks(word) >= table).astype(jnp.int32), dtype=jnp.int32)
        return jnp.where(later < table.shape[0], later, NEVER)


# --- A world whose outcomes arrive later: many requests are open at once

# No arm is pulled so often, so this address is free in the world's key
_DELAYS = np.uint32(2**32 - 1)
_LAST = np.int32(2**31 - 1)


class Waiting(NamedTuple):
    """Open requests, ``i32[room]`` each; ``[room, d]`` for several costs."""

    due: jax.Array  # the round after which it is told; 0: nobody's place
    round: jax.Array
    arm: jax.Array
    reward: jax.Array
    cost: jax.Array
    lost: jax.Array


class DelayedState(NamedTuple):
    """The state of the inner world, and the open requests."""

    world: Pytree
    waiting: Waiting


@pytree
class Delayed(AroundWorld):
    """Arms whose outcomes arrive later: costs are paid at once, the policy sees them on arrival.

    The cost is charged in the round in which an arm is pulled. Reward *and* cost reach the policy
    together, after a delay of whole rounds: statistics have one count for both, and a cost that is
    known at once beside a reward that is late would bias their ratio. Arrivals come in the order of
    the rounds in which they are due, then of those in which they were decided. The delay of the
    request of round t, if arm k serves it, is a function of (key, t, k).

    An action is an arm, or −1 for a skip, a round without a request (``event:skips``). The policy
    observes :class:`~jaxbandits.core.specs.Arrivals`; wrap a policy for :class:`FiniteSpec` as
    ``InFlight(policy)``.

    Args:
        environment: a world of finitely many arms, of one cost or of several.
        law: the delay, default none.
        room: how many requests may be open at once; one more ends the lane with
            ``Status.CAPACITY``.
        arrivals: M, the most outcomes that arrive after one round; others wait. Default: no limit.
        patience: after how many rounds a missing outcome is reported as lost (``event:lost``).
            Default: never; an outcome that never arrives then keeps its place in ``room`` forever.
        groups: the arms that each of several budgets pays for, None for all: the one cost becomes a
            vector ``[d]``, for :class:`~jaxbandits.Renewing`. A world of several costs has a budget
            for each, and no groups.

    Example:
        >>> from jaxbandits.environments import Batched, Delayed, FiniteArms
        >>> world = Delayed(FiniteArms.bernoulli([0.5, 0.9], [0.9, 0.3]), Batched(4), room=4, groups=(None, (1,)))
        >>> world.spec.scope().tolist(), world.values()[1].tolist()
        ([[True, True], [False, True]], [[[0.8999999761581421, 0.0], [0.30000001192092896, 0.30000001192092896]]])
    """

    environment: Environment = leaf()
    law: DelayLaw = leaf(default=FixedDelay(0))
    room: int = static(default=1)
    arrivals: int | None = static(default=None)
    patience: int | None = static(default=None)
    groups: tuple[tuple[int, ...] | None, ...] = static(default=(None,))

    @property
    def world(self) -> Environment:
        return self.environment

    @property
    def spec(self) -> DelayedSpec:
        return DelayedSpec(self.environment.spec, self.room, self.groups)

    @property
    def resources(self) -> int:
        """The number of costs of the inner world, or of groups, each with its own cost."""
        return self.spec.budgets

    def check(self) -> None:
        inner = self.environment.spec
        wrong = not isinstance(inner, FiniteSpec) or inner.null_arm
        refuse("environment", inner, wrong, "one with finitely many arms and no null arm")
        grouped = any(group is not None for group in self.groups)
        several = inner.resources is not None and self.groups != (None,)
        must = f"(None,): the world has {inner.resources} costs, each with its own budget"
        refuse("groups", self.groups, several, must)
        super().check()
        self.law.check()
        whole_number("room", self.room, 1, 1 << 20)
        for name, value in (("arrivals", self.arrivals), ("patience", self.patience)):
            if value is not None:
                whole_number(name, value, 1, int(NEVER) - 1)
        unnamed = grouped and self.environment.values()[1].shape[-1] != inner.arms
        must = "(None,): single arms of a reservoir cannot be named"
        refuse("groups", self.groups, unnamed, must)
        for group in self.groups:
            wrong = not all(0 <= arm < inner.arms for arm in group or ())
            refuse("groups", group, wrong, f"arms from 0 to {inner.arms - 1}, or None for all")

    def refuses(self, action: Any) -> str | None:
        return refuses_but_one_arm(action)

    def open(self, state: DelayedState, round: jax.Array) -> jax.Array | None:
        return self.environment.open(state.world, round)

    def opens_next(self, state: DelayedState, round: jax.Array) -> jax.Array:
        return self.environment.opens_next(state.world, round)

    def start(self) -> DelayedState:
        nobody, costs = jnp.zeros((self.room,), jnp.int32), self.environment.spec.cost_shape
        waiting = Waiting(*[nobody] * 6)._replace(cost=jnp.zeros((self.room, *costs), jnp.int32))
        return DelayedState(self.environment.start(), waiting)

    def pull(
        self, state: DelayedState, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> Pulled:
        skip = action == SKIP
        arm = jnp.where(skip, 0, action)
        world, outcome, feedback, _ = self.environment.pull(state.world, arm, key, round)
        word = delay_words(key, round, jnp.maximum(arm, 0))[0]
        delay = self.law.delay(word, round)
        patience = NEVER if self.patience is None else np.int32(self.patience)
        lost = (delay > patience).astype(jnp.int32)
        due = round + jnp.minimum(delay, patience)
        request = Waiting(due, round, arm, feedback.reward, feedback.cost, lost)
        waiting, placed = _join(state.waiting, request, ~skip)
        waiting, arrivals = _hand_over(waiting, round, self.arrivals or self.room)
        if self.spec.context is not None:  # made anew: nothing of it waits
            context = jax.vmap(self.environment.context, in_axes=(None, 0))(key, arrivals.round)
            arrivals = arrivals._replace(context=context)

        pays = jnp.any(self.spec.scope() & (np.arange(self.spec.arms) == arm)[None, :], axis=1)
        filled = jnp.arange(arrivals.lost.shape[0]) < arrivals.number
        given_up = jnp.sum(jnp.where(filled, arrivals.lost, 0), dtype=jnp.int32)
        counts = {"skips": skip.astype(jnp.int32), "arrivals": arrivals.number, "lost": given_up}
        nothing = jax.tree.map(jnp.zeros_like, outcome)._replace(valid=jnp.bool_(True))
        outcome = select_tree(skip, nothing, outcome._replace(valid=outcome.valid & placed))
        outcome = outcome._replace(
            cost=jnp.where(pays, outcome.cost, 0),
            expected_cost=jnp.where(pays, outcome.expected_cost, 0),
            events=dict(outcome.events) | counts,
        )
        after = DelayedState(select_tree(skip, state.world, world), waiting)
        return after, outcome, arrivals, arrivals.number == 0

    def summary(self, state: DelayedState) -> dict[str, jax.Array]:
        """The summary of the inner world, and the number of ``open`` requests."""
        open_ = jnp.sum((state.waiting.due > 0).astype(jnp.int32), dtype=jnp.int32)
        return self.environment.summary(state.world) | {"open": open_}

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of the arms, and their costs to each budget ``[instance, action, d]``."""
        reward, cost = self.environment.values()
        if self.environment.spec.resources is not None:
            return reward, cost
        if all(group is None for group in self.groups):
            return reward, np.repeat(cost[..., None], self.resources, axis=-1)
        return reward, np.where(self.spec.scope().T[None], cost[..., None], 0.0)

    def listed_costs(self) -> np.ndarray | None:
        costs, inside = self.environment.listed_costs(), self.environment.spec.resources
        if costs is None or inside is not None or self.resources is None:
            return costs
        return np.repeat(costs[..., None], self.resources, axis=-1)

    def prices(self) -> np.ndarray | None:
        prices = self.environment.prices()
        if prices is None or self.environment.spec.resources is not None:
            return prices
        return np.where(self.spec.scope().T[None], prices[..., None], 0)


def delay_words(key: jax.Array, round: jax.Array, arm: jax.Array) -> jax.Array:
    """64 random bits, ``u32[2]``, for the delay of ``round`` and ``arm``; ``key``: the world's."""
    return streams.words(streams.at(key, _DELAYS, 0), round, arm)  # type: ignore[arg-type]


def _join(waiting: Waiting, request: Waiting, joins: jax.Array) -> tuple[Waiting, jax.Array]:
    """(the requests with one more in the first free place, whether there was such a place)."""
    ids = jax.lax.iota(jnp.int32, waiting.due.shape[0])
    place = jnp.min(jnp.where(waiting.due == 0, ids, _LAST))
    is_place = (ids == place) & joins

    def put(all: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where(beside(is_place, all.ndim - 1), x, all)

    return jax.tree.map(put, waiting, request), (place < _LAST) | ~joins


def _hand_over(waiting: Waiting, round: jax.Array, limit: int) -> tuple[Waiting, Arrivals]:
    """Take out the requests that are due, the earliest first, ``limit`` at most."""
    ids = jax.lax.iota(jnp.int32, limit)

    def ready(waiting: Waiting) -> jax.Array:
        return (waiting.due > 0) & (waiting.due <= round)

    def hand_over_first(carry: tuple[Waiting, Arrivals]) -> tuple[Waiting, Arrivals]:
        waiting, arrivals = carry
        due = jnp.where(ready(waiting), waiting.due, _LAST)
        first = jnp.where(due == jnp.min(due), waiting.round, _LAST)
        is_first = (first == jnp.min(first)) & (first < _LAST)
        is_next = ids == arrivals.number
        chosen = (jnp.where(beside(is_first, x.ndim - 1), x, 0) for x in waiting[1:])
        sums = (jnp.sum(x, axis=0, dtype=jnp.int32) for x in chosen)
        told = zip(sums, arrivals[1:-1], strict=True)
        put = (jnp.where(beside(is_next, all.ndim - 1), x, all) for x, all in told)
        waiting = waiting._replace(due=jnp.where(is_first, 0, waiting.due))
        return waiting, Arrivals(arrivals.number + 1, *put)

    def more(carry: tuple[Waiting, Arrivals]) -> jax.Array:
        return (carry[1].number < limit) & jnp.any(ready(carry[0]))

    empty = (jnp.zeros((limit, *x.shape[1:]), jnp.int32) for x in waiting[1:])
    nothing = Arrivals(jnp.int32(0), *empty)
    return jax.lax.while_loop(more, hand_over_first, (waiting, nothing))
