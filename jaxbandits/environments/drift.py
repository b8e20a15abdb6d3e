"""Worlds that change: segments of rounds, each a world of its own, and means that move by a law.

A draw keeps its address (arm, n): the same uniform, sent through the law of the round's segment. So all policies meet
the same world, and a change of the means changes no other draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.constraints import Horizon, TotalBudget
from jaxbandits.core import streams
from jaxbandits.core.checks import InputError, bad, numbers, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Outcome
from jaxbandits.core.pytrees import Pytree, leaf, pytree
from jaxbandits.environments.finite import AroundWorld, FiniteArms

_MOST_ROUND = 2**30
_MOST_PRICE = 2.0**26  # means are whole ticks, so no ratio of their differences is larger


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
    """A world that changes at stated rounds: in each segment the arms of a world of its own.

    Build one with :meth:`of` from whole worlds, or with :meth:`bernoulli` from a table of means, such as the paths of
    :mod:`jaxbandits.environments.drift` make it. The last segment has no end. The n-th pull of an arm is one address
    whatever the segment: the same uniform, sent through the law of the round. With one segment it plays that world's
    own bits.

    A result's ``regret`` is against the best that could be done by one who knows the means of every round,
    ``fixed_regret`` against the best arm of all the run (:meth:`benchmarks`). Played round by round: nothing that
    changes with the round can be leapt.

    Args:
        segments: the worlds, leaves ``[instance, segment, …]``.
        starts: ``i32[instance, segment]``, the first round of each; the first is 1.

    Raises:
        InputError: at :func:`~jaxbandits.simulate`, if an instance's arms are not the same in all segments.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> before = jb.environments.FiniteArms.bernoulli([0.5, 0.8], [0.5, 0.5])
        >>> after = jb.environments.FiniteArms.bernoulli([0.5, 0.1], [0.5, 0.5])
        >>> world = jb.environments.Piecewise.of([before, after], at=[101])
        >>> knows = jb.policies.Schedule(*world.best_schedule(jb.Horizon(200)))
        >>> result = jb.simulate([knows, jb.policies.UCB1()], world, jb.Horizon(200), key=jax.random.key(0), marks=1)
        >>> result.regret.values.ravel().round(1).tolist()                              # 80 + 50 could be had
        [0.0, 21.2]
    """

    segments: Environment = leaf()
    starts: ArrayLike = leaf(integer=True)

    @staticmethod
    def of(worlds: Sequence[Environment], at: Any = ()) -> Piecewise:
        """Worlds one after the other.

        Args:
            worlds: of one class, with leaves of the same shapes: as many instances and arms (laws of one kind).
            at: the first rounds of all but the first, ``[segment − 1]`` or ``[instance, segment − 1]``, increasing
                from 2 on.

        Raises:
            InputError: worlds that differ in more than numbers; rounds that do not increase, or too few or many.
        """
        given = list(worlds) if isinstance(worlds, (list, tuple)) else []
        if not given or not all(isinstance(world, Environment) for world in given):
            raise bad("worlds", worlds, "a list of environments")
        kinds = {(jax.tree.structure(w), *(np.shape(x) for x in jax.tree.leaves(w))) for w in given}
        if len(kinds) != 1:
            raise bad("worlds", [type(w).__name__ for w in given], "of one class, with leaves of the same shapes")
        stacked = jax.tree.map(lambda *x: np.stack(x, axis=1), *given)
        return Piecewise(stacked, _starts(at, given[0].instances, len(given)))

    @staticmethod
    def bernoulli(mean_reward: Any, mean_cost: Any, at: Any = None, every: int | None = None) -> Piecewise:
        """Rewards and costs 0 or 1 whose means are a table, one row for each segment.

        Args:
            mean_reward: μ^r in [0, 1], ``[segment, K]`` or ``[instance, segment, K]``.
            mean_cost: μ^c, the same shape, or one that broadcasts to it, as ``[K]`` for costs that stay.
            at: the first rounds of all segments but the first.
            every: instead of ``at``, the length of a segment in rounds (1: means that move every round).

        Raises:
            InputError: shapes that do not fit, values outside [0, 1], neither or both of ``at`` and ``every``.

        Example:
            >>> from jaxbandits.environments import Piecewise, drift
            >>> world = Piecewise.bernoulli(drift.linear([0.2, 0.8], [0.8, 0.2], steps=7), [0.5, 0.5], every=100)
            >>> world.starts.tolist(), world.spec.arms
            ([[1, 101, 201, 301, 401, 501, 601]], 2)
        """
        r, c = numbers("mean_reward", mean_reward), numbers("mean_cost", mean_cost)
        fits = all(n in (1, m) for n, m in zip(c.shape[::-1], r.shape[::-1], strict=False)) and c.ndim <= r.ndim
        if r.ndim not in (2, 3) or 0 in r.shape or not fits:
            given = f"mean_reward, mean_cost: shapes {r.shape} and {c.shape} given"
            raise InputError(f"{given}; they must be [segment, K] or [instance, segment, K] (costs may be fewer)")
        if (at is None) == (every is None):
            raise InputError("at, every: one of the two must be given")
        r, c = (np.broadcast_to(x, r.shape)[None] if r.ndim == 2 else np.broadcast_to(x, r.shape) for x in (r, c))
        instances, segments, arms = r.shape
        if every is not None:
            at = 1 + whole_number("every", every, 1, _MOST_ROUND) * np.arange(1, segments, dtype=np.int64)
        flat = FiniteArms.bernoulli(r.reshape(-1, arms), c.reshape(-1, arms))
        stacked = jax.tree.map(lambda x: x.reshape(instances, segments, *x.shape[1:]), flat)
        return Piecewise(stacked, _starts(at, instances, segments))

    @property
    def world(self) -> Environment:
        """The worlds of all segments, leaves ``[instance, segment, …]``."""
        return self.segments

    @property
    def spec(self) -> Any:
        """The same in all segments."""
        return self.segments.spec

    def _each(self) -> Environment:
        """Host: every (instance, segment) as an instance."""
        return jax.tree.map(lambda x: np.asarray(x).reshape(-1, *x.shape[2:]), self.segments)

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Host: mean reward and mean cost, ``[instance, segment, action]``."""
        shape = np.shape(self.starts)
        reward, cost = (x.reshape(*shape, *x.shape[1:]) for x in self._each().values())
        return reward, cost

    def check(self) -> None:
        """The worlds, and that no arm comes or goes."""
        self._each().check()
        there = ~np.isnan(self._tables()[0])
        if (there != there[:, :1]).any():
            raise bad("segments", "arms that come or go", "the same arms in all segments of an instance")

    def _at(self, segment: Any) -> Environment:
        return jax.tree.map(lambda row: _Now(row, segment), self.segments)

    def segment(self, round: jax.Array) -> jax.Array:
        """The segment that a round lies in, ``i32[]``: the last that has begun, found by halving."""
        low, high = jnp.int32(0), jnp.int32(self.starts.shape[0] - 1)
        for _ in range((self.starts.shape[0] - 1).bit_length()):
            middle = (low + high + 1) // 2
            begun = self.starts[middle] <= round
            low, high = jnp.where(begun, middle, low), jnp.where(begun, high, middle - 1)
        return low

    def available(self) -> jax.Array | None:
        """See :meth:`Environment.available`: the same in all segments."""
        return self._at(jnp.int32(0)).available()

    def start(self) -> Pytree:
        return self._at(jnp.int32(0)).start()

    def summary(self, state: Pytree) -> dict[str, jax.Array]:
        return self._at(jnp.int32(0)).summary(state)

    def pull(
        self, state: Pytree, action: Pytree, key: jax.Array, round: jax.Array
    ) -> tuple[Pytree, Outcome, Pytree, jax.Array]:
        """Play the world of the round's segment."""
        return self._at(self.segment(round)).pull(state, action, key, round)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The most that an action brings in any segment on average, and the least that it costs.

        What is built on these (the cap of rounds) holds in all segments. No regret is: see :meth:`benchmarks`.
        """
        reward, cost = self._tables()
        return reward.max(axis=1), cost.min(axis=1)

    def benchmarks(self, constraint: Constraint, clock: np.ndarray) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
        """Host: the most that could be gained by the time the clock is ``clock``, and its slope there.

        ``"moving"``: by one who knows the means of every round. For a horizon :math:`\\sum_{t \\le T} \\max_k
        \\mu^r_k(t)`. For a budget B the value of the linear program

        .. math:: \\max_{j,\\,n \\ge 0} \\sum_{s,k} n_{sk}\\, \\mu^r_{sk} \\quad\\text{with}\\quad
            \\sum_{s,k} n_{sk}\\, \\mu^c_{sk} \\le B, \\qquad \\sum_k n_{sk} = L_s \\ (s < j), \\quad
            \\sum_k n_{jk} \\le L_j,

        :math:`n_{sk}` pulls of arm k in segment s of :math:`L_s` rounds, the run ending in segment j: time passes only
        by playing, so waiting for better rounds costs what the cheapest arm costs; nothing where the worlds have a null
        arm. ``"fixed"``: by the best single arm. The slope (for a budget the price λ of money, dual to it) carries the
        value from a mark to where a lane was recorded, so who plays the best arms at that price all along has the
        regret 0, whatever the costs that were drawn.

        Args:
            constraint: prepared. For others than :class:`~jaxbandits.Horizon` and :class:`~jaxbandits.TotalBudget`
                with one cost the values are NaN, and so are regrets.
            clock: in units, ``[instance, mark]``.
        """
        reward, cost = self._tables()
        money = isinstance(constraint, TotalBudget)
        if not (money or isinstance(constraint, Horizon)) or self.resources is not None:
            unknown = np.full(clock.shape, np.nan)
            return {"moving": (unknown, unknown), "fixed": (unknown, unknown)}
        found: dict[str, list[list[tuple[float, float]]]] = {"moving": [], "fixed": []}
        for i, start in enumerate(np.asarray(self.starts, np.int64)):
            there = ~np.isnan(reward[i, 0])
            r, c = reward[i][:, there], cost[i][:, there]
            # With rounds as the clock every pull costs one, and nobody can do better than the best of each round.
            one, best = (c, _budgeted) if money else (np.ones_like(r), _by_round)
            found["moving"].append([best(start, r, one, at)[:2] for at in clock[i]])
            found["fixed"].append(
                [max(_alone(start, r[:, k], one[:, k], at) for k in range(r.shape[1])) for at in clock[i]]
            )
        tables = {name: np.asarray(x, np.float64) for name, x in found.items()}
        return {name: (x[..., 0], x[..., 1]) for name, x in tables.items()}

    def best_schedule(self, constraint: Constraint) -> tuple[np.ndarray, np.ndarray]:
        """Host: what the benchmark ``"moving"`` plays, for :class:`~jaxbandits.policies.Schedule`.

        From which round on, and which arm: ``[1, instance, change]`` each. The constraint as
        :func:`~jaxbandits.simulate` takes it: a :class:`~jaxbandits.Horizon`, or a :class:`~jaxbandits.TotalBudget`
        with one cost.
        """
        if not isinstance(constraint, (Horizon, TotalBudget)) or self.resources is not None:
            raise bad("constraint", type(constraint).__name__, "a Horizon, or a TotalBudget with one cost")
        reward, cost = self._tables()
        money = isinstance(constraint, TotalBudget)
        given = constraint.budget if isinstance(constraint, TotalBudget) else constraint.rounds
        amount = np.broadcast_to(np.asarray(given, np.float64), (self.instances,))
        plans = []
        for i, start in enumerate(np.asarray(self.starts, np.int64)):
            r, c = np.where(np.isnan(reward[i]), -np.inf, reward[i]), np.nan_to_num(cost[i], nan=1.0)
            arms = r.argmax(axis=1)
            plans.append(_budgeted(start, r, c, float(amount[i]))[2] if money else list(zip(start, arms, strict=True)))
        longest = max(map(len, plans))
        filled = [plan + [plan[-1]] * (longest - len(plan)) for plan in plans]
        at, arms = np.moveaxis(np.asarray(filled, np.int64), -1, 0)
        return at[None], arms[None]


def _starts(at: Any, instances: int, segments: int) -> np.ndarray:
    """First rounds ``i32[instance, segment]`` from those of all segments but the first."""
    given = numbers("at", at) if np.size(at) else np.zeros((0,))
    if given.ndim not in (1, 2) or given.shape[-1] != segments - 1 or given.shape[:-1] not in ((), (instances,)):
        must = f"[{segments - 1}] or [{instances}, {segments - 1}], one for each segment but the first"
        raise InputError(f"at: shape {np.shape(at)} given; it must be {must}")
    first = np.concatenate([np.ones((*given.shape[:-1], 1)), given], axis=-1)
    if ((np.diff(first) < 1) | (given != np.rint(given)) | ~(given <= _MOST_ROUND)).any():
        raise bad("at", at, "increasing whole numbers from 2 to 2**30")
    return np.broadcast_to(first, (instances, segments)).astype(np.int32)


# --- What could be gained: of one instance, on the host. ``start`` [S], rewards and costs of a pull [S, K], a clock.


def _lengths(start: np.ndarray) -> np.ndarray:
    return np.append(np.diff(start), np.inf)


def _alone(start: np.ndarray, reward: np.ndarray, cost: np.ndarray, clock: float) -> tuple[float, float]:
    """(gained, slope) of one arm, ``[S]``, played until it has cost ``clock``."""
    gained = spent = 0.0
    for r, c, length in zip(reward, cost, _lengths(start), strict=True):
        if c > 0 and (clock - spent) / c <= length:
            return gained + (clock - spent) / c * r, r / c
        if not np.isfinite(length):  # it never costs that much
            return (np.inf if r > 0 else gained), 0.0
        gained, spent = gained + length * r, spent + length * c
    raise AssertionError("the last segment has no end")


def _by_round(start: np.ndarray, reward: np.ndarray, cost: np.ndarray, clock: float) -> tuple[float, float]:
    """(gained, slope) with the best arm of each round."""
    return _alone(start, reward.max(axis=1), cost[:, 0], clock)


def _budgeted(
    start: np.ndarray, reward: np.ndarray, cost: np.ndarray, budget: float
) -> tuple[float, float, list[tuple[int, int]]]:
    """(value, price λ, plan) of the program of :meth:`Piecewise.benchmarks`; a plan is (from round, arm), …

    For a run that ends in segment j the dual is one number: :math:`h_j(\\lambda) = \\lambda B + \\sum_{s<j} L_s
    g_s(\\lambda) + L_j g_j(\\lambda)^+` with :math:`g_s(\\lambda) = \\max_k \\mu^r_{sk} - \\lambda \\mu^c_{sk}`, least
    at the value. The bounds of all j are seen at once at any price; at the one where the largest is least, few of them
    are above the best value.
    """
    lengths, segments = _lengths(start), np.arange(len(start))
    least = np.cumsum(lengths[:-1] * np.where(np.isfinite(reward), cost, np.inf)[:-1].min(axis=1))
    ends = 1 + int(np.searchsorted(least, budget, side="right"))  # so many segments may be the last one

    def bounds(price: float) -> tuple[np.ndarray, np.ndarray]:
        """(h_j, what is spent), for every j."""
        arms = (reward - price * cost).argmax(axis=1)
        worth, price_of = (reward - price * cost)[segments, arms], cost[segments, arms]
        own = np.zeros((2, len(start)))
        np.multiply(lengths, [worth, price_of], where=worth > 1e-12, out=own)
        before = np.cumsum(lengths[:-1] * np.stack([worth, price_of])[:, :-1], axis=1)
        value, spent = np.pad(before, ((0, 0), (1, 0))) + own
        return (price * budget + value)[:ends], spent[:ends]

    low, high = 0.0, _MOST_PRICE
    for _ in range(60):
        middle = (low + high) / 2
        value, spent = bounds(middle)
        low, high = (middle, high) if spent[value.argmax()] > budget else (low, middle)
    value, _ = bounds(high)
    best = (-np.inf, 0.0, 0)
    for j in np.argsort(-value):
        if value[j] <= best[0]:
            break
        best = max(best, (*_ending(lengths, reward, cost, budget, int(j)), int(j)))
    return best[0], best[1], _plan(start, lengths, reward, cost, budget, best[1], best[2])


def _ending(lengths: np.ndarray, reward: np.ndarray, cost: np.ndarray, budget: float, j: int) -> tuple[float, float]:
    """(value, price) if the run ends in segment j, where it may rest."""
    r = np.concatenate([reward[: j + 1], np.full((j + 1, 1), -np.inf)], axis=1)
    c = np.concatenate([cost[: j + 1], np.zeros((j + 1, 1))], axis=1)
    r[j, -1] = 0.0
    size = lengths[: j + 1].copy()
    if not np.isfinite(size[j]):  # longer than the money lasts is long enough
        size[j] = 4 * (budget + 1) / max(c[j][c[j] > 0].min(initial=1.0), 2.0**-24)

    def arms(price: float) -> np.ndarray:
        return (r - price * c).argmax(axis=1)

    def spends(chosen: np.ndarray) -> float:
        return float(size @ c[np.arange(j + 1), chosen])

    low, high = 0.0, _MOST_PRICE
    if spends(arms(low)) <= budget:
        price = low
    else:
        for _ in range(200):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if spends(arms(middle)) > budget else (low, middle)
        dear, cheap = arms(low), arms(high)
        at = int(np.argmax(np.abs(c[np.arange(j + 1), dear] - c[np.arange(j + 1), cheap])))
        apart = c[at, dear[at]] - c[at, cheap[at]]
        price = (r[at, dear[at]] - r[at, cheap[at]]) / apart if apart > 0 else high  # the very price of the exchange
    return float(price * budget + size @ (r - price * c).max(axis=1)), float(price)


def _plan(
    start: np.ndarray, lengths: np.ndarray, reward: np.ndarray, cost: np.ndarray, budget: float, price: float, j: int
) -> list[tuple[int, int]]:
    """Who is played from which round on: of arms that are worth the same at this price first the cheap one, as long as
    the money then lasts to the end of segment j."""
    net = reward - price * cost
    tied = net >= net.max(axis=1, keepdims=True) - 1e-9
    cheap = np.where(tied, cost, np.inf).argmin(axis=1)
    dear = np.where(tied, cost, -np.inf).argmax(axis=1)
    each = np.arange(len(start))
    extra = budget - lengths[:j] @ cost[each[:j], cheap[:j]]
    plan: list[tuple[int, int]] = []
    for s in each:
        plan.append((int(start[s]), int((cheap if s < j else dear)[s])))
        more = cost[s, dear[s]] - cost[s, cheap[s]]
        if s < j and more > 0 and extra > 0:
            rounds = int(min(lengths[s], extra // more))
            extra -= rounds * more
            if rounds:
                plan.append((int(start[s] + lengths[s]) - rounds, int(dear[s])))
                if rounds == lengths[s]:
                    plan.pop(-2)
    return plan


# --- Paths of means, for :meth:`Piecewise.bernoulli`: float64 ``[step, K]``, or ``[instance, step, K]``


def _ends(low: Any, high: Any, names: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    a, b = numbers(names[0], low), numbers(names[1], high)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise InputError(f"{names[0]}, {names[1]}: shapes {a.shape} and {b.shape} given; both [K] or [instance, K]")
    return a[..., None, :], b[..., None, :]


def linear(first: Any, last: Any, steps: int) -> np.ndarray:
    """Means that move evenly from ``first`` to ``last``, ``[K]`` or ``[instance, K]``.

    Example:
        >>> from jaxbandits.environments import drift
        >>> drift.linear([0.2, 0.5], [0.6, 0.5], steps=3).tolist()
        [[0.2, 0.5], [0.4, 0.5], [0.6, 0.5]]
    """
    a, b = _ends(first, last, ("first", "last"))
    share = np.linspace(0, 1, whole_number("steps", steps, 2, _MOST_ROUND))[:, None]
    return a * (1 - share) + b * share


def sinusoidal(low: Any, high: Any, steps: int, period: float, phase: Any = 0.0) -> np.ndarray:
    """Means that swing between ``low`` and ``high``: step j has :math:`\\tfrac{l+h}{2} + \\tfrac{h-l}{2}
    \\sin 2\\pi(j/\\text{period} + \\text{phase})`.

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
    a, b = _ends(low, high, ("low", "high"))
    if not period > 0:
        raise bad("period", period, "a number of steps above 0")
    step = np.arange(whole_number("steps", steps, 1, _MOST_ROUND))[:, None]
    swing = np.sin(2 * np.pi * (step / period + numbers("phase", phase)))
    return (a + b) / 2 + (b - a) / 2 * swing


def random_walk(key: jax.Array, start: Any, size: float, steps: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Means that walk: each step is uniform in [−size, size], and the walk is reflected at ``low`` and ``high``.

    The step is addressed by (key, instance, step, arm): longer walks, more arms or instances change none of the others.

    Args:
        key: of the steps.
        start: ``[K]`` or ``[instance, K]``, in [low, high].
        size: the largest step, at least 0.
        steps: how many rows, the start included.
        low, high: the bounds.

    Raises:
        InputError: a start outside of the bounds, bounds that are none.

    Example:
        >>> import jax
        >>> from jaxbandits.environments import drift
        >>> path = drift.random_walk(jax.random.key(0), [0.5, 0.5], size=0.1, steps=200, low=0.2, high=0.8)
        >>> path.shape, bool((path >= 0.2).all() and (path <= 0.8).all()), float(abs(path[1:] - path[:-1]).max()) <= 0.1
        ((200, 2), True, True)
    """
    begin, steps = numbers("start", start), whole_number("steps", steps, 1, _MOST_ROUND)
    if begin.ndim not in (1, 2) or not low < high or not ((begin >= low) & (begin <= high)).all():
        raise bad("start", start, f"[K] or [instance, K], within [low, high] = [{low:g}, {high:g}]")
    if not 0 <= size <= high - low:
        raise bad("size", size, "from 0 to high − low")
    wide, root = np.atleast_2d(begin), streams.root_key(key)

    def words(instance: jax.Array, step: jax.Array, arm: jax.Array) -> jax.Array:
        return streams.words(streams.at(root, instance, 0), step, arm)[0]

    places = np.meshgrid(*(np.arange(n, dtype=np.uint32) for n in (wide.shape[0], steps, wide.shape[1])), indexing="ij")
    drawn = np.asarray(jax.vmap(words)(*(jnp.asarray(x.ravel()) for x in places)), np.float64)
    moves = size * (2 * (drawn.reshape(places[0].shape) + 0.5) * 2.0**-32 - 1)
    moves[:, 0] = 0
    path, span = np.cumsum(moves, axis=1) + wide[:, None, :] - low, high - low
    folded = path % (2 * span)
    path = low + np.where(folded > span, 2 * span - folded, folded)
    return np.clip(path, low, high).reshape(*begin.shape[:-1], steps, begin.shape[-1])
