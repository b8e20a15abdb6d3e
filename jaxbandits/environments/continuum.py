"""Continua of arms, [0, 1]: functions, the B-Zoom paper's families, and bids in logged auctions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, per_instance
from jaxbandits._provenance import remembered
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, in_float32, numbers, refuse, whole_number
from jaxbandits.core.protocol import Environment, Feedback, Outcome, Pulled
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import ContinuumSpec, point_of_ticks, to_ticks
from jaxbandits.core.tables import alike, check_unit
from jaxbandits.environments.finite import FiniteArms
from jaxbandits.environments.noise import Bernoulli, Noise, NoNoise

# --- The two families of continua in the B-Zoom paper's experiments (Trovò et al., ECAI 2016, §4)

_SHARPNESS = 500.0
_STEEPEST = float(np.sqrt(2 * _SHARPNESS / math.e))  # largest slope of exp(−500 u²)


def _bump(x: jax.Array, centre: jax.Array) -> jax.Array:
    return jnp.exp(-_SHARPNESS * jnp.square(x - centre))


def _rising(x: jax.Array, p: Any) -> jax.Array:
    return 0.95 + 0.05 * x


def _valley(x: jax.Array, p: Any) -> jax.Array:
    return p["lam"] + 0.2 * (1 - _bump(x, p["centre"]))


def _hill(x: jax.Array, p: Any) -> jax.Array:
    return p["peak"] * _bump(x, p["centre"])


def _constant(x: jax.Array, p: Any) -> jax.Array:
    return p["cost"]


@remembered
def cost_valley(centre: Any, lam: Any) -> Continuum:
    """Table 1: μ_r(x) = 0.95 + 0.05x, μ_c(x) = λ + (1 − exp(−500(x − x̃)²))/5, both Bernoulli.

    Args:
        centre: x̃ in [0, 1], ``[instance]``.
        lam: λ in (0, 0.8], the smallest mean cost, scalar or ``[instance]``.

    Example:
        >>> import jaxbandits as jb
        >>> world = jb.environments.cost_valley([0.25, 0.5], lam=0.1)
        >>> world.best_points().round(2).tolist()
        [0.25, 0.5]
    """
    x, level = _instances("centre", centre, 0, 1), _instances("lam", lam, 0, 0.8)
    refuse("lam", level, level == 0, "above 0")
    misfit = level.size not in (1, x.size)
    refuse("lam", level.shape, misfit, f"one number, or [{x.size}] (one per instance)")
    return Continuum.of(
        _rising,
        _valley,
        lipschitz_reward=0.05,
        lipschitz_cost=0.2 * _STEEPEST,
        parameters={"centre": x, "lam": np.broadcast_to(level, x.shape)},
    )


@remembered
def reward_hill(centre: Any, peak: Any = 0.2, cost: Any = 0.5) -> Continuum:
    """Table 2: Bernoulli rewards, μ_r(x) = peak · exp(−500(x − x̃)²), and a constant cost.

    Args:
        centre: x̃ in [0, 1], ``[instance]``.
        peak: the largest mean reward, in (0, 1].
        cost: what every pull costs, in (0, 1].

    Example:
        >>> import jaxbandits as jb
        >>> jb.environments.reward_hill([0.3]).best_points().round(2).tolist()
        [0.3]
    """
    parameters = {"centre": _instances("centre", centre, 0, 1)}
    for name, value in (("peak", peak), ("cost", cost)):
        number = _instances(name, value, 0, 1)
        wrong = number.size != 1 or number[0] == 0
        refuse(name, number.tolist(), wrong, "one number in (0, 1]")
        parameters[name] = np.broadcast_to(number, parameters["centre"].shape)
    return Continuum.of(
        _hill,
        _constant,
        lipschitz_reward=float(parameters["peak"][0]) * _STEEPEST,
        lipschitz_cost=0.0,
        parameters=parameters,
        cost_noise=NoNoise(),
    )


def _instances(name: str, value: Any, low: float, high: float) -> np.ndarray:
    array = np.atleast_1d(numbers(name, value))
    wrong = ~((array >= low) & (array <= high))
    if array.ndim != 1 or array.size == 0 or wrong.any():
        must = f"numbers from {low:g} to {high:g}, [instance]"
        raise bad(name, array[wrong].tolist()[:3] or array.shape, must)
    return array


# --- A continuum seen on a grid, on the host: means of many points, the best of them, the largest slope

_CELLS = 2048
_FINER = 3  # times that the neighbourhood of the best point is looked at 16 times closer


def points(instances: int) -> np.ndarray:
    """The grid for checking functions and finding the best point, ``[instance, point]``."""
    return np.broadcast_to(np.linspace(0, 1, _CELLS + 1), (instances, _CELLS + 1))


@partial(jax.jit, static_argnames="as_ticks")
def evaluate_points(world: Any, points: jax.Array, as_ticks: bool) -> tuple[jax.Array, jax.Array]:
    """Both means at ``points[instance, point]``, in ticks or as the functions return them."""

    def at_point(instance: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        if as_ticks:
            return instance.means_with(x, instance.parameters)
        reward = instance.reward_function(x, instance.parameters)
        cost = instance.cost_function(x, instance.parameters)
        return jnp.asarray(reward, jnp.float32), jnp.asarray(cost, jnp.float32)

    return jax.vmap(jax.vmap(at_point, in_axes=(None, 0)))(world, points)


def ratio(reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """μ_r/μ_c; −∞ where nothing is paid."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(cost > 0, reward / cost, -np.inf)


def best(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The point of the largest value, ``[instance]`` from ``[instance, point]``."""
    return np.take_along_axis(points, np.argmax(values, axis=1)[:, None], axis=1)[:, 0]


def slopes(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Largest slope of ``values[instance, point]`` between neighbours of ``x[point]``."""
    return np.max(np.abs(np.diff(values, axis=1)) / np.diff(x.astype(np.float64)), axis=1)


# --- Every point of [0, 1] may be played, rewards and costs vary smoothly with it

Function = Callable[[jax.Array, Any], jax.Array]

_SLACK = 2e-3  # of a slope: what float32 differences on the grid may be off


class Visited(NamedTuple):
    """The most recent points, each with the address of its outcomes; slots are reused in turn."""

    point: jax.Array  # i32[C]: ticks; −1: none
    since: jax.Array  # i32[C]: the round in which the point was first played
    pulls: jax.Array  # i32[C]
    mean_reward: jax.Array  # i32[C]: ticks
    mean_cost: jax.Array  # i32[C]
    entered: jax.Array  # i32[]: points that were ever written here


class Points(Environment):
    """An environment whose actions are points of [0, 1]."""

    @property
    def spec(self) -> ContinuumSpec:
        return ContinuumSpec()

    def refuses(self, action: Any) -> str | None:
        point = getattr(action, "dtype", None) in (np.float32, np.float64) and action.shape == ()
        return None if point else "a point of [0, 1], float32[]"


@pytree
class Continuum(Points):
    """Every point x of [0, 1] is an arm with mean reward μ_r(x) and mean cost μ_c(x) in [0, 1].

    The n-th outcome of a point that was first pulled in round t is one address (t, n), with one
    uniform for the reward and one for the cost. The ``remembered`` points that were new last are
    counted so; one that was forgotten and is pulled again is new. Build one with :meth:`of`. Points
    are used to a resolution of 2⁻²⁴.
    """

    parameters: ArrayLike = leaf()  # {name: f32[I, …]}
    lipschitz_reward: ArrayLike = leaf()  # f32[I]
    lipschitz_cost: ArrayLike = leaf()  # f32[I]
    reward_function: Function = static()
    cost_function: Function = static()
    reward_noise: Noise = static(default=Bernoulli())
    cost_noise: Noise = static(default=Bernoulli())
    remembered: int = static(default=64)

    addressed: ClassVar[bool] = True

    @staticmethod
    def of(
        mean_reward: Function,
        mean_cost: Function,
        *,
        lipschitz_reward: Any,
        lipschitz_cost: Any,
        parameters: Mapping[str, Any] | None = None,
        reward_noise: Noise | None = None,
        cost_noise: Noise | None = None,
        remembered: int = 64,
    ) -> Continuum:
        """A continuum from two functions.

        Args:
            mean_reward, mean_cost: jax functions ``f(x, parameters)`` of one point (``f32[]``) and
                one instance's parameters, with values in [0, 1]. One function, one compilation:
                define them once.
            lipschitz_reward, lipschitz_cost: L_r, L_c ≥ 0, Lipschitz constants, scalar or
                ``[instance]``. Checked on a grid, with a warning if a steeper place is found. They
                reach no policy.
            parameters: named numbers ``[instance, …]``; without any there is one instance.
            reward_noise, cost_noise: ``Bernoulli()`` (default), ``Beta(κ)`` or ``NoNoise()``, see
                :mod:`jaxbandits.environments.noise`.
            remembered: how many different points are counted at once. Policies that play at most so
                many points at a time can be played many rounds at once.

        Raises:
            InputError: at :func:`~jaxbandits.simulate`, functions that leave [0, 1] on a grid.

        Example:
            >>> import jaxbandits as jb
            >>> world = jb.environments.Continuum.of(
            ...     lambda x, p: 0.5 + 0.4 * x, lambda x, p: p["floor"] + 0.5 * x * x,
            ...     lipschitz_reward=0.4, lipschitz_cost=1.0, parameters={"floor": [0.1, 0.2]})
            >>> world.instances, world.best_points().round(3).tolist()
            (2, [0.078, 0.151])
        """
        parameters = {} if parameters is None else parameters
        is_named = isinstance(parameters, Mapping)
        refuse("parameters", parameters, not is_named, "named numbers, {name: [instance, …]}")
        named = {name: in_float32(f"parameters[{name!r}]", x) for name, x in parameters.items()}
        shapes = {name: x.shape for name, x in named.items()}
        lengths = {shape[:1] for shape in shapes.values()}
        wrong = len(lengths) > 1 or () in lengths or (0,) in lengths
        refuse("parameters", shapes, wrong, "arrays [instance, …] of one length")
        (instances,) = next(iter(lengths), (1,))
        slopes = {"lipschitz_reward": lipschitz_reward, "lipschitz_cost": lipschitz_cost}
        for name, x in slopes.items():
            slopes[name] = per_instance(name, in_float32(name, x), instances)
        return Continuum(
            parameters=named,
            **slopes,
            reward_function=mean_reward,
            cost_function=mean_cost,
            reward_noise=reward_noise or Bernoulli(),
            cost_noise=cost_noise or Bernoulli(),
            remembered=remembered,
        )

    def at(self, points: Any) -> FiniteArms:
        """The finite Bernoulli bandit of some points: arm k of instance i is ``points[i, k]``.

        For policies of finitely many arms on a grid, and for the leap engine. The worlds differ: an
        outcome belongs to (arm, pull) there and to the round here.
        """
        must = "Bernoulli() (or use OnPoints(policy, points) on the continuum itself)"
        for name, noise in (("reward_noise", self.reward_noise), ("cost_noise", self.cost_noise)):
            refuse(name, noise, not isinstance(noise, Bernoulli), must)
        x = numbers("points", points).astype(np.float32)
        fits = x.ndim > 0 and x.size > 0 and x.shape[:-1] in ((), (self.instances,))
        refuse("points", x.shape, not fits, f"an array [K] or [{self.instances}, K]")
        refuse("points", x, ~((x >= 0) & (x <= 1)), "in [0, 1]")
        at = np.broadcast_to(x, (self.instances, x.shape[-1]))
        return FiniteArms.bernoulli(*self.means_at(at))

    def start(self) -> Visited:
        none = jnp.zeros((self.remembered,), jnp.int32)
        return Visited(none - 1, none, none, none, none, jnp.int32(0))

    def means(self, point: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(μ_r, μ_c) of a point in whole ticks, for the instance of this lane."""
        parameters = jax.tree.map(lambda row: row[()], self.parameters)
        return self.means_with(point, parameters)

    def means_with(self, point: jax.Array, parameters: Any) -> tuple[jax.Array, jax.Array]:
        """(μ_r, μ_c) of a point in whole ticks, for these parameters."""
        # The barrier keeps the compiler from merging a user's formula with what surrounds it.
        point, parameters = jax.lax.optimization_barrier((point, parameters))
        values = self.reward_function(point, parameters), self.cost_function(point, parameters)
        reward, cost = jax.lax.optimization_barrier(values)
        return self.reward_noise.mean(_whole(reward)), self.cost_noise.mean(_whole(cost))

    def pull(self, state: Visited, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        valid = (action >= 0) & (action <= 1)
        x = to_ticks(jnp.where(valid, action, 0.0))
        ids = jax.lax.iota(jnp.int32, self.remembered)
        at = jnp.min(jnp.where(state.point == x, ids, self.remembered))
        is_old = at < self.remembered
        # A point that is new takes the slot of the one that was new longest ago.
        at = jnp.where(is_old, at, state.entered % self.remembered)
        new_reward, new_cost = self.means(point_of_ticks(x))
        mean_reward = jnp.where(is_old, state.mean_reward[at], new_reward)
        mean_cost = jnp.where(is_old, state.mean_cost[at], new_cost)
        since, n = jnp.where(is_old, state.since[at], round), jnp.where(is_old, state.pulls[at], 0)
        reward, cost = self.outcome(key, since, n, mean_reward, mean_cost)
        slot = zip((x, since, n + 1, mean_reward, mean_cost), state[:-1], strict=True)
        after = [jnp.where(ids == at, new, all) for new, all in slot]
        outcome = Outcome(reward, cost, mean_reward, mean_cost, events={}, valid=valid)
        visited = Visited._make([*after, state.entered + ~is_old])
        return visited, outcome, Feedback(reward, cost), jnp.bool_(False)

    def outcome(
        self,
        key: jax.Array,
        since: jax.Array,
        n: jax.Array,
        mean_reward: jax.Array,
        mean_cost: jax.Array,
    ) -> tuple[jax.Array, jax.Array]:
        """(reward, cost) in ticks of pull ``n`` + 1 of a point first pulled at ``since``."""
        words = streams.words(key, since, n)
        reward = self.reward_noise.outcome(mean_reward, words[0])
        return reward, self.cost_noise.outcome(mean_cost, words[1])

    def check(self) -> None:
        """Check on a grid: an error if values leave [0, 1], a warning if slopes exceed bounds."""
        whole_number("remembered", self.remembered, 1, 4096)
        self.reward_noise.check()
        self.cost_noise.check()
        grid = points(self.instances).astype(np.float32)
        x, raw = grid[0], evaluate_points(self, grid, False)
        stated = {"reward": self.lipschitz_reward, "cost": self.lipschitz_cost}
        for (name, bound), values in zip(stated.items(), raw, strict=True):
            bound, values = np.asarray(bound, np.float64), np.asarray(values, np.float64)
            wrong = ~((values >= -1e-6) & (values <= 1 + 1e-6))
            for i, k in np.argwhere(wrong)[:1]:
                place = f"mean_{name}: {values[i, k]:g} at x = {x[k]:g} in instance {i}"
                raise InputError(f"{place}; it must be in [0, 1] everywhere")
            wrong = ~(np.isfinite(bound) & (bound >= 0))
            refuse(f"lipschitz_{name}", bound, wrong, "finite and at least 0")
            slope = slopes(values, x)
            steep = slope > bound * (1 + _SLACK) + _SLACK
            if steep.any():
                i = int(np.argmax(slope - bound))
                warnings.warn(
                    f"lipschitz_{name}: {bound[i]:g} given for instance {i}, but the mean {name} has a slope of "
                    f"{slope[i]:g} on a grid ({int(steep.sum())} of {steep.size} instances)",
                    stacklevel=4,
                )

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means on 2049 points, finer around each instance's best ratio and best reward."""
        x = points(self.instances)
        parts = [self.means_at(x)]
        for best_of in (ratio, lambda reward, cost: reward):
            at, width = best(x, best_of(*parts[0])), 1 / _CELLS
            for _ in range(_FINER):
                near = np.clip(at[:, None] + width * np.linspace(-1, 1, 33), 0, 1)
                parts.append(self.means_at(near))
                at, width = best(near, best_of(*parts[-1])), width / 16
        reward, cost = zip(*parts, strict=True)
        return np.concatenate(reward, axis=1), np.concatenate(cost, axis=1)

    def best_points(self) -> np.ndarray:
        """The point with the best ratio μ_r/μ_c on a grid of 2049 points, ``f64[instance]``."""
        x = points(self.instances)
        return best(x, ratio(*self.means_at(x)))

    def slopes(self, of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """The largest slope of ``of(mean_reward, mean_cost)`` on a grid, ``f64[instance]``.

        Example:
            >>> import jaxbandits as jb
            >>> world = jb.environments.cost_valley([0.3], lam=0.5)
            >>> world.slopes(lambda reward, cost: reward / cost).round(1).tolist()
            [11.6]
        """
        x = points(self.instances)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = of(*self.means_at(x))
        return slopes(values, x[0])

    def means_at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Host: true mean reward and cost of points ``[instance, point]``, ``f64`` of that shape."""
        reward, cost = evaluate_points(self, np.asarray(points, np.float32), True)
        return ticks.to_units(reward), ticks.to_units(cost)


def _whole(mean: jax.Array) -> jax.Array:
    rounded = jnp.rint(jnp.asarray(mean, jnp.float32) * ticks.ONE)
    return jnp.clip(rounded, 0, ticks.ONE).astype(jnp.int32)


# --- Bidding in logged second-price auctions: the arm is the bid; the price is paid only if the bid wins

_MOST_PRICES = 1 << 14


@pytree
class LoggedAuctions(Points):
    """Auctions drawn from a log: an arm is a bid, which wins if it is at least the market price.

    A point x of [0, 1] is the whole bid low + ⌊x (high − low + 1)⌋ (at most ``high``). A win costs
    the market price and earns the logged reward (a click, or its predicted probability); a loss
    costs and earns nothing. Costs are in units of the highest price. Round t draws the same auction
    for every policy. Build one with :meth:`of`.
    """

    price: ArrayLike = leaf(integer=True)  # i32[I, R]: market prices, whole units
    reward: ArrayLike = leaf(integer=True)  # i32[I, R]: ticks
    cost: ArrayLike = leaf(integer=True)  # i32[I, P]: ticks that a price costs
    mean_reward: ArrayLike = leaf(integer=True)  # i32[I, P]: of each bid 0 … P − 1, in ticks
    mean_cost: ArrayLike = leaf(integer=True)  # i32[I, P]
    low: ArrayLike = leaf(integer=True)  # i32[I]
    high: ArrayLike = leaf(integer=True)  # i32[I]

    @classmethod
    def of(
        cls,
        price: Any,
        reward: Any,
        *,
        low: int = 0,
        high: int | None = None,
        top: int | None = None,
    ) -> Self:
        """A world of one instance from one log of auctions.

        Args:
            price: market price of every auction, whole numbers from 0 to 16383, ``[R]``.
            reward: what winning it earns, in [0, 1], ``[R]``. (Scale a predicted probability by
                its largest value.)
            low, high: the range of bids, whole numbers; by default 0 and the highest price.
            top: the price that costs 1; default the highest price or bid.

        Example:
            >>> from jaxbandits.environments import LoggedAuctions
            >>> log = LoggedAuctions.of(price=[10, 20, 40], reward=[1.0, 0.0, 1.0], low=5)
            >>> reward, cost = log.values()
            >>> log.instances, reward.shape, round(float(reward[0, -1]), 3), round(float(cost[0, -1]), 3)
            (1, (1, 36), 0.667, 0.583)
        """
        p, r = alike((1,), "[auctions], at least one", price=price, reward=reward)
        refuse("price", p, ~((p >= 0) & (p < _MOST_PRICES) & (p == np.rint(p))), "0, 1, … or 16383")
        check_unit("reward", r, rows=True)
        low = whole_number("low", low, 0, _MOST_PRICES - 1)
        highest = int(p.max()) if high is None else whole_number("high", high, 0, _MOST_PRICES - 1)
        must = "whole numbers with 0 ≤ low ≤ high ≤ 16383"
        refuse("low, high", (low, highest), low > highest, must)
        most = max(int(p.max()), highest, 1)
        unit = most if top is None else whole_number("top", top, 1, _MOST_PRICES - 1)
        refuse("top", unit, unit < most, "at least the highest price and bid, and at most 16383")
        whole, gain = p.astype(np.int32), ticks.from_units(r).astype(np.int32)
        levels = np.arange(unit + 1)
        cost = ticks.from_units(levels / unit)
        # A bid wins every auction whose price is not above it, and pays that price: sums run over
        # prices.
        earned = np.cumsum(np.bincount(whole, weights=gain, minlength=unit + 1))
        paid = np.cumsum(np.bincount(whole, weights=cost[whole], minlength=unit + 1))
        means = np.rint(earned / p.size), np.rint(paid / p.size)
        fields = whole, gain, cost, *means, low, highest
        return cls(*(np.asarray(x).astype(np.int32)[None] for x in fields))

    def start(self) -> tuple[()]:
        return ()

    def bid(self, point: jax.Array) -> jax.Array:
        """The bid, a whole number, of a point of [0, 1]."""
        width = self.high[()] - self.low[()] + 1
        return jnp.minimum(self.low[()] + (((to_ticks(point) >> 8) * width) >> 16), self.high[()])

    def pull(self, state: tuple[()], action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        valid = (action >= 0) & (action <= 1)
        bid = self.bid(jnp.where(valid, action, 0.0))
        row = streams.below(streams.words(key, round, 0)[0], self.price.shape[0])
        price = self.price[row]
        won = price <= bid
        reward = jnp.where(won, self.reward[row], 0)
        cost = jnp.where(won, self.cost[price], 0)
        means, wins = (self.mean_reward[bid], self.mean_cost[bid]), won.astype(jnp.int32)
        outcome = Outcome(reward, cost, *means, {"wins": wins}, valid)
        return state, outcome, Feedback(reward, cost), jnp.bool_(False)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of every bid; NaN outside of an instance's range."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        bids = np.arange(int(low.min()), int(high.max()) + 1)
        inside = (bids >= low[:, None]) & (bids <= high[:, None])
        reward, cost = ticks.to_units(self.mean_reward), ticks.to_units(self.mean_cost)
        return np.where(inside, reward[:, bids], np.nan), np.where(inside, cost[:, bids], np.nan)
