"""Changing environments: segments of rounds, each an environment, and paths of means.

A draw keeps its address (arm, n): the same uniform, sent through the law of the round's segment. So
all policies meet the same world, and a change of the means changes no other draw.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.core import streams
from jaxbandits.core.checks import bad, numbers, refuse, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Possible, Pulled, unknown
from jaxbandits.core.pytrees import Pytree, leaf, pytree
from jaxbandits.core.tables import alike
from jaxbandits.environments.closing import Stocked, exchanges, first_rounds
from jaxbandits.environments.finite import AroundWorld, FiniteArms

_MOST_ROUND = 2**30


class _Now:
    """A leaf ``[segment, …]`` as it is in one segment, read lazily like the runner's own rows."""

    def __init__(self, row: Any, segment: jax.Array):
        self._row, self._segment = row, segment

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._row.shape[1:])

    def __getitem__(self, index: Any) -> jax.Array:
        index = index if isinstance(index, tuple) else (index,)
        return self._row[(self._segment, *index)]


@pytree
class Piecewise(AroundWorld):
    """Means that change at given rounds: each segment of rounds has its own environment.

    Build one with :meth:`of` from whole worlds, or with :meth:`bernoulli` from a table of means,
    such as the paths of :mod:`jaxbandits.environments.drift`. The last segment has no end. The n-th
    pull of an arm has one address in every segment: the same uniform, with the law of the round.
    With one segment the bits are those of that world.

    A result's ``regret`` is against an oracle that knows the means of every round and whose pulls
    cost as much on average, ``fixed_regret`` against the best arm of the whole run
    (:meth:`benchmarks`). Simulated round by round: the leap engine needs constant means.

    Args:
        segments: the worlds, leaves ``[instance, segment, …]``; an instance's arms stay the same.
        starts: ``i32[instance, segment]``, the first round of each; the first is 1.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> before = jb.environments.FiniteArms.bernoulli([0.5, 0.8], [0.5, 0.5])
        >>> after = jb.environments.FiniteArms.bernoulli([0.5, 0.1], [0.5, 0.5])
        >>> world = jb.environments.Piecewise.of([before, after], at=[101])
        >>> knows = jb.policies.Schedule(*world.best_schedule(jb.Horizon(200)))
        >>> policies, limit = [knows, jb.policies.UCB1()], jb.Horizon(200)
        >>> result = jb.simulate(policies, world, limit, key=jax.random.key(0), replicates=8, marks=2)
        >>> result.regret.values[:, 0, 0, -1].round(1).tolist()                         # 80 + 50 could be had
        [0.0, 21.2]
    """

    segments: Environment = leaf()
    starts: ArrayLike = leaf(integer=True)

    @classmethod
    def of(cls, worlds: Sequence[Environment], at: Any = ()) -> Self:
        """These environments, one after the other.

        Args:
            worlds: of one class, with leaves of the same shapes: as many instances, arms, laws of
                one kind.
            at: the first rounds of all but the first, increasing from 2 on, ``[segment − 1]`` or
                with instances before them.
        """
        segments = list(worlds) if isinstance(worlds, (list, tuple)) else []
        fits = bool(segments) and all(isinstance(world, Environment) for world in segments)
        refuse("worlds", worlds, not fits, "a list of environments")
        kinds = {(jax.tree.structure(w), *map(np.shape, jax.tree.leaves(w))) for w in segments}
        names = [type(w).__name__ for w in segments]
        refuse("worlds", names, len(kinds) != 1, "of one class, with leaves of the same shapes")
        stacked = jax.tree.map(lambda *x: np.stack(x, axis=1), *segments)
        return cls(stacked, first_rounds(at, segments[0].instances, len(segments)))

    @classmethod
    def bernoulli(
        cls, mean_reward: Any, mean_cost: Any, at: Any = None, every: int | None = None
    ) -> Self:
        """Bernoulli rewards and costs whose means are a table with a row for each segment.

        Args:
            mean_reward: μ^r in [0, 1], ``[segment, K]`` or ``[instance, segment, K]``.
            mean_cost: μ^c, the same shape, or one that broadcasts to it, as ``[K]`` for costs that
                stay.
            at: the first rounds of all segments but the first.
            every: instead of ``at``, the length of a segment in rounds (1: means that move every
                round).

        Example:
            >>> from jaxbandits.environments import Piecewise, drift
            >>> world = Piecewise.bernoulli(drift.linear([0.2, 0.8], [0.8, 0.2], steps=7), [0.5, 0.5], every=100)
            >>> world.starts.tolist(), world.spec.arms
            ([[1, 101, 201, 301, 401, 501, 601]], 2)
        """
        r, c = numbers("mean_reward", mean_reward), numbers("mean_cost", mean_cost)
        with contextlib.suppress(ValueError):
            c = np.broadcast_to(c, r.shape)
        alike((2, 3), "[segment, K] or [instance, segment, K]", mean_reward=r, mean_cost=c)
        refuse("at, every", (at, every), (at is None) == (every is None), "one of the two")
        instances, segments, arms = r.shape if r.ndim == 3 else (1, *r.shape)
        if every is not None:
            length = whole_number("every", every, 1, _MOST_ROUND)
            at = 1 + length * np.arange(1, segments, dtype=np.int64)
        flat = FiniteArms.bernoulli(r.reshape(-1, arms), c.reshape(-1, arms))
        stacked = jax.tree.map(lambda x: x.reshape(instances, segments, *x.shape[1:]), flat)
        return cls(stacked, first_rounds(at, instances, segments))

    @property
    def world(self) -> Environment:
        return self.segments

    @property
    def spec(self) -> Any:
        return self.segments.spec

    def _by_segment(self) -> Environment:
        """Host: every (instance, segment) as an instance."""
        return jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), self.segments)

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Host: mean reward and mean cost, ``[instance, segment, action]``."""
        shape = np.shape(self.starts)
        reward, cost = (x.reshape(*shape, *x.shape[1:]) for x in self._by_segment().values())
        return reward, cost

    def prices(self) -> np.ndarray | None:
        prices = self._by_segment().prices()
        if prices is None:
            return None
        of_segments = prices.reshape(*np.shape(self.starts), *prices.shape[1:])
        return np.where((of_segments == of_segments[:, :1]).all(axis=1), of_segments[:, 0], 0)

    def check(self) -> None:
        self._by_segment().check()
        exists = ~np.isnan(self._tables()[0])
        must = "the same arms in all segments of an instance"
        refuse("segments", "arms that come or go", (exists != exists[:, :1]).any(), must)

    def _at(self, segment: Any) -> Environment:
        return jax.tree.map(lambda row: _Now(row, segment), self.segments)

    def segment(self, round: jax.Array) -> jax.Array:
        """The segment that contains a round, ``i32[]``, by bisection."""
        low, high = jnp.int32(0), jnp.int32(self.starts.shape[0] - 1)
        for _ in range((self.starts.shape[0] - 1).bit_length()):
            middle = (low + high + 1) // 2
            has_begun = self.starts[middle] <= round
            low, high = jnp.where(has_begun, middle, low), jnp.where(has_begun, high, middle - 1)
        return low

    def available(self) -> jax.Array | None:
        return self._at(jnp.int32(0)).available()

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array | None:
        # Then the program is as if there were no such thing
        if getattr(self.spec, "context", None) is None:
            return None
        return self._at(self.segment(round)).context(key, round)

    def start(self) -> Pytree:
        return self._at(jnp.int32(0)).start()

    def summary(self, state: Pytree) -> dict[str, jax.Array]:
        return self._at(jnp.int32(0)).summary(state)

    def pull(self, state: Pytree, action: Pytree, key: jax.Array, round: jax.Array) -> Pulled:
        return self._at(self.segment(round)).pull(state, action, key, round)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest mean reward and the smallest mean cost of an action over all segments.

        They bound quantities such as the cap on rounds. Regret does not use them: see
        :meth:`benchmarks`.
        """
        reward, cost = self._tables()
        return reward.max(axis=1), cost.min(axis=1)

    def benchmarks(self, constraint: Constraint, clock: np.ndarray) -> Mapping[str, Possible]:
        """Host: the most that could be earned for what the pulls of a lane cost on average.

        ``"moving"``: by an oracle that knows every round's means. For a horizon :math:`\\sum_{t \\le
        T} \\max_k \\mu^r_k(t)`. For money the value V(x) of the linear program

        .. math:: \\max_{j,\\,n \\ge 0} \\sum_{s,k} n_{sk}\\, \\mu^r_{sk} \\quad\\text{with}\\quad
            \\sum_{s,k} n_{sk}\\, \\mu^c_{sk} \\le x, \\qquad \\sum_k n_{sk} = L_s \\ (s < j),
            \\quad \\sum_k n_{jk} \\le L_j,

        :math:`n_{sk}` pulls of arm k in segment s of :math:`L_s` rounds, the run ending in segment
        j: time passes only by playing, so waiting for better rounds costs what the cheapest arm
        costs; nothing where the worlds have a null arm. ``"fixed"``: by the best single arm, played
        until it has cost x on average.

        A regret takes V at the lane's own x, the mean costs of its pulls in sum. Those pulls are
        one solution of the program: no lane of any policy has a regret below 0, in worlds with a
        null arm or without. V(B) bounds what a budget brings if costs are certain, and in the mean,
        up to the last pull, if there is a null arm, since V is concave then. Without one V is
        convex where a better segment comes into reach, and luck with random costs reaches it: mean
        rewards may exceed V(B), but not the mean of V(x). So lanes that were lucky are measured by
        more; where that is more for one policy than for another, ``regret`` warns, and
        ``result.reward`` ranks.

        Args:
            constraint: prepared. For others than :class:`~jaxbandits.Horizon` and
                :class:`~jaxbandits.TotalBudget` with one cost the values are NaN, and so are
                regrets; with contexts ``"moving"`` is known for a horizon alone.
            clock: that of the marks; V needs none of them.
        """
        money = isinstance(constraint, TotalBudget)
        if not isinstance(constraint, (Horizon, TotalBudget)) or self.resources is not None:
            return {"moving": unknown, "fixed": unknown}
        reward, cost = self._tables()
        # With rounds as the clock every pull costs one, and nobody can do better than the best of
        # each round.
        price, best = (cost, _budgeted) if money else (np.ones_like(cost), _by_round)
        fixed = functools.partial(self._benchmark, _best_alone, reward, price)
        if getattr(self.spec, "context", None) is None:
            moving = functools.partial(self._benchmark, best, reward, price)
            return {"moving": moving, "fixed": fixed}
        # Who sees contexts earns more than the best of the mean rewards.
        found = None if money else self._best_by_context()
        if found is None:
            return {"moving": unknown, "fixed": fixed}
        rewards, exact = found[0][..., None], found[1]
        seen = functools.partial(self._benchmark, _by_round, rewards, np.ones_like(rewards))
        errors = {} if exact else {"moving_error": unknown, "fixed_error": unknown}
        return {"moving": seen, "fixed": fixed, **errors}

    def _best_by_context(self) -> tuple[np.ndarray, bool] | None:
        """(mean reward of each context's best arm ``[instance, segment]``, exact?), or None."""
        segments: Any = self._by_segment()
        while isinstance(segments, AroundWorld) and not isinstance(segments, Stocked):
            segments = segments.world
        if not hasattr(segments, "value_tables"):
            return None
        tables = segments.value_tables()
        best = np.nanmax(tables[-1][0], axis=2).mean(axis=1)
        return best.reshape(np.shape(self.starts)), len(tables) == 1

    def _benchmark(
        self,
        best: Callable[..., np.ndarray],
        reward: np.ndarray,
        price: np.ndarray,
        instance: np.ndarray,
        clock: np.ndarray,
    ) -> np.ndarray:
        """A benchmark of ``instance[lane]`` at ``clock[lane, mark]``, both in units."""
        values = np.full(clock.shape, np.nan)
        for i in np.unique(instance):
            start, lanes = np.asarray(self.starts[i], np.int64), instance == i
            exists = ~np.isnan(reward[i, 0])
            at, place = np.unique(clock[lanes], return_inverse=True)
            value = best(start, reward[i][:, exists], price[i][:, exists], at)
            known = np.where(np.isfinite(value), value, np.nan)
            values[lanes] = known[place].reshape(-1, clock.shape[1])
        return values

    def best_schedule(self, constraint: Constraint) -> tuple[np.ndarray, np.ndarray]:
        """Host: the schedule of ``"moving"`` at V(B), for :class:`~jaxbandits.policies.Schedule`.

        From which round on, and which arm: ``[1, instance, change]`` each. The constraint as
        :func:`~jaxbandits.simulate` takes it: a :class:`~jaxbandits.Horizon`, or a
        :class:`~jaxbandits.TotalBudget` with one cost.
        """
        if not isinstance(constraint, (Horizon, TotalBudget)) or self.resources is not None:
            must = "a Horizon, or a TotalBudget with one cost"
            raise bad("constraint", type(constraint).__name__, must)
        reward, cost = self._tables()
        money = isinstance(constraint, TotalBudget)
        limit = constraint.budget if isinstance(constraint, TotalBudget) else constraint.rounds
        amount = np.broadcast_to(np.asarray(limit, np.float64), (self.instances,))
        plans = []
        for i, start in enumerate(np.asarray(self.starts, np.int64)):
            ids = np.flatnonzero(~np.isnan(reward[i, 0]))
            r, c = reward[i][:, ids], cost[i][:, ids]
            best = zip(start, r.argmax(axis=1), strict=True)
            plan = _plan(start, r, c, float(amount[i])) if money else best
            plans.append([(at, ids[arm]) for at, arm in plan])
        longest = max(map(len, plans))
        filled = [plan + [plan[-1]] * (longest - len(plan)) for plan in plans]
        at, arms = np.moveaxis(np.asarray(filled, np.int64), -1, 0)
        return at[None], arms[None]


# --- What could be gained: of one instance, on the host. ``start`` [S], rewards and costs of a pull [S, K], clocks [x]


def _lengths(start: np.ndarray) -> np.ndarray:
    return np.append(np.diff(start), np.inf)


def _ratios(reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(reward > 0, reward / np.where(reward > 0, cost, 1), 0.0)


def _alone(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, clock: np.ndarray
) -> np.ndarray:
    """What one arm, ``[S]``, brings until it has cost ``clock``."""
    spent, gained = (np.append(0, np.cumsum(_lengths(start)[:-1] * x[:-1])) for x in (cost, reward))
    last = np.searchsorted(spent, clock, side="right") - 1
    more = clock - spent[last]
    with np.errstate(invalid="ignore"):
        return gained[last] + more * _ratios(reward, cost)[last]


def _by_round(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, clock: np.ndarray
) -> np.ndarray:
    """What the best arm of each round brings."""
    return _alone(start, reward.max(axis=1), cost[:, 0], clock)


def _best_alone(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, clock: np.ndarray
) -> np.ndarray:
    """What the best single arm brings."""
    arms = zip(reward.T, cost.T, strict=True)
    return np.max([_alone(start, r, c, clock) for r, c in arms], axis=0)


class _Ending(NamedTuple):
    """What can be gained by runs that end in one segment: a broken line, where it can be the most."""

    segment: int
    spent: np.ndarray  # [corner], increasing
    gained: np.ndarray  # [corner]
    price: np.ndarray  # [corner − 1]: λ, what one more unit of money gains


def _endings(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, limit: float
) -> Iterator[_Ending]:
    """The lines whose maximum is V of :meth:`Piecewise.benchmarks`, to a clock of ``limit``."""
    # At a price λ all exchanges are made that gain more than λ a unit. If the run ends in segment
    # j, only prices from ρ_j, the best ratio in j, to ρ_{j−1} can be those of V: at a lower one
    # segment j is played to its end and going on is as good, at a higher one it is not played and
    # ending in j − 1 is as good.
    length, rows = _lengths(start)[:-1], np.arange(len(start))
    cheapest, ratio = np.lexsort((-reward, cost))[:, 0], _ratios(reward, cost)
    all_cheap = (length * x[rows, cheapest][:-1] for x in (cost, reward))
    spent, gained = (np.append(0, np.cumsum(x)) for x in all_cheap)
    price, money, segment = exchanges(length, reward[:-1], cost[:-1])
    best = ratio.max(axis=1)
    filling = np.where(ratio >= best[:, None], cost + reward, -np.inf).argmax(axis=1)
    for j in rows[spent <= limit]:
        before = segment < j
        prices, more = price[before], money[before]
        x = spent[j] + np.append(0, np.cumsum(more))
        y = gained[j] + np.append(0, np.cumsum(more * prices))
        last = np.count_nonzero(prices > best[j])
        first = min(last, np.count_nonzero(prices > best[j - 1])) if j else 0
        if j < len(length):
            end = x[last] + length[j] * cost[j, filling[j]]
            top = y[last] + length[j] * reward[j, filling[j]]
        else:
            end = max(x[last], limit) + 1
            top = y[last] + (end - x[last]) * best[j]
        line = (np.append(x[first : last + 1], end), np.append(y[first : last + 1], top))
        yield _Ending(int(j), *line, np.append(prices[first:last], best[j]))


def _budgeted(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, clock: np.ndarray
) -> np.ndarray:
    """V(x) at every x of ``clock``, increasing."""
    value = np.full(clock.shape, -np.inf)
    for _, spent, gained, price in _endings(start, reward, cost, clock.max(initial=0)):
        # where one line ends the next begins, but for rounding
        last = np.searchsorted(clock, spent[-1] * (1 + 1e-9), side="right")
        window = slice(np.searchsorted(clock, spent[0]), last)
        corner = np.searchsorted(spent, clock[window], side="right") - 1
        with np.errstate(invalid="ignore"):
            line = gained[corner] + np.append(price, 0)[corner] * (clock[window] - spent[corner])
        value[window] = np.fmax(value[window], line)
    return value


def _plan(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, budget: float
) -> list[tuple[int, int]]:
    """The solution of V(B): (from round, arm), …."""
    # Of arms equal at its price the cheap one first, if the money lasts into the last segment.
    best, price, j = -np.inf, 0.0, 0
    for line in _endings(start, reward, cost, budget):
        at = np.clip(np.searchsorted(line.spent, budget), 1, line.price.size)
        more = min(budget, line.spent[-1]) - line.spent[at - 1]
        value = line.gained[at - 1] + line.price[at - 1] * more
        if line.spent[0] <= budget and value > best:
            best, price, j = value, line.price[at - 1], line.segment
    lengths = _lengths(start)
    net = reward - price * cost
    tied = net >= net.max(axis=1, keepdims=True) - 1e-9
    cheap = np.where(tied, cost, np.inf).argmin(axis=1)
    dear = np.where(tied, cost, -np.inf).argmax(axis=1)
    rows = np.arange(len(start))
    extra = budget - lengths[:j] @ cost[rows[:j], cheap[:j]]
    plan: list[tuple[int, int]] = []
    for s in rows:
        plan.append((int(start[s]), int((cheap if s < j else dear)[s])))
        more = cost[s, dear[s]] - cost[s, cheap[s]]
        # What the cheap arms leave of the budget buys whole rounds of the dearer one, last in its
        # segment.
        if s < j and more > 0 and extra > 0:
            rounds = int(min(lengths[s], extra // more))
            extra -= rounds * more
            if rounds:
                plan.append((int(start[s] + lengths[s]) - rounds, int(dear[s])))
                if rounds == lengths[s]:
                    plan.pop(-2)
    return plan


# --- Paths of means, for :meth:`Piecewise.bernoulli`: float64 ``[step, K]``, or ``[instance, step, K]``


def linear(first: Any, last: Any, steps: int) -> np.ndarray:
    """Means that move linearly from ``first`` to ``last``, ``[K]`` or ``[instance, K]``.

    Example:
        >>> from jaxbandits.environments import drift
        >>> drift.linear([0.2, 0.5], [0.6, 0.5], steps=3).tolist()
        [[0.2, 0.5], [0.4, 0.5], [0.6, 0.5]]
    """
    a, b = (x[..., None, :] for x in alike((1, 2), "[K] or [instance, K]", first=first, last=last))
    share = np.linspace(0, 1, whole_number("steps", steps, 2, _MOST_ROUND))[:, None]
    return a * (1 - share) + b * share


def sinusoidal(low: Any, high: Any, steps: int, period: float, phase: Any = 0.0) -> np.ndarray:
    """Means that oscillate between ``low`` and ``high``.

    Step j has mean
    :math:`\\tfrac{l+h}{2} + \\tfrac{h-l}{2} \\sin 2\\pi(j/\\text{period} + \\text{phase})`.

    Args:
        low, high: ``[K]`` or ``[instance, K]``.
        steps: how many.
        period: in steps, above 0.
        phase: a share of the period, a number or one for each arm.

    Example:
        >>> from jaxbandits.environments import drift
        >>> drift.sinusoidal([0.2], [0.6], steps=5, period=4).round(3).ravel().tolist()
        [0.4, 0.6, 0.4, 0.2, 0.4]
    """
    a, b = (x[..., None, :] for x in alike((1, 2), "[K] or [instance, K]", low=low, high=high))
    refuse("period", period, not period > 0, "a number of steps above 0")
    step = np.arange(whole_number("steps", steps, 1, _MOST_ROUND))[:, None]
    swing = np.sin(2 * np.pi * (step / period + numbers("phase", phase)))
    return (a + b) / 2 + (b - a) / 2 * swing


def random_walk(
    key: jax.Array, start: Any, size: float, steps: int, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Random walks of means with steps uniform in [−size, size], reflected at ``low`` and ``high``.

    The step is addressed by (key, instance, step, arm): longer walks, more arms or instances change
    none of the others.

    Args:
        key: of the steps.
        start: ``[K]`` or ``[instance, K]``, in [low, high].
        size: the largest step, at least 0.
        steps: how many rows, the start included.
        low, high: the bounds.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import drift
        >>> path = drift.random_walk(jax.random.key(0), [0.5, 0.5], size=0.1, steps=200, low=0.2, high=0.8)
        >>> path.shape, bool((path >= 0.2).all() and (path <= 0.8).all()), float(abs(path[1:] - path[:-1]).max()) <= 0.1
        ((200, 2), True, True)
    """
    begin, steps = numbers("start", start), whole_number("steps", steps, 1, _MOST_ROUND)
    fits = begin.ndim in (1, 2) and low < high and ((begin >= low) & (begin <= high)).all()
    must = f"[K] or [instance, K], within [low, high] = [{low:g}, {high:g}]"
    refuse("start", begin.tolist(), not fits, must)
    refuse("size", size, not 0 <= size <= high - low, "from 0 to high − low")
    wide, root = np.atleast_2d(begin), streams.root_key(key)

    def words(instance: jax.Array, step: jax.Array, arm: jax.Array) -> jax.Array:
        return streams.words(streams.at(root, instance, 0), step, arm)[0]

    shape = wide.shape[0], steps, wide.shape[1]
    places = jnp.asarray(np.indices(shape, np.uint32).reshape(3, -1))
    bits = np.asarray(jax.vmap(words)(*places), np.float64).reshape(shape)
    moves = size * (2 * (bits + 0.5) * 2.0**-32 - 1)
    moves[:, 0] = 0
    path, span = np.cumsum(moves, axis=1) + wide[:, None, :] - low, high - low
    folded = path % (2 * span)
    path = low + np.where(folded > span, 2 * span - folded, folded)
    return np.clip(path, low, high).reshape(*begin.shape[:-1], steps, begin.shape[-1])
