"""Continuously many arms: every point of [0, 1] may be played, rewards and costs vary smoothly with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Outcome
from jaxbandits.core.numbers import in_float32, numbers, refuse_beyond_memory
from jaxbandits.core.protocol import Environment, Feedback
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import ContinuumSpec, to_ticks, to_units
from jaxbandits.environments.continuum import grid
from jaxbandits.environments.continuum.noise import Bernoulli, Noise
from jaxbandits.environments.finite.arms import FiniteArms

Function = Callable[[jax.Array, Any], jax.Array]

_SLACK = 2e-3  # of a slope: what float32 differences on the grid may be off


class Visited(NamedTuple):
    """The points that were played last, each with the address of its outcomes; slots are reused in turn."""

    point: jax.Array  # i32[C]: ticks; −1: none
    since: jax.Array  # i32[C]: the round in which the point was first played
    pulls: jax.Array  # i32[C]
    mean_reward: jax.Array  # i32[C]: ticks
    mean_cost: jax.Array  # i32[C]
    entered: jax.Array  # i32[]: points that were ever written here


@pytree
class Continuum(Environment):
    """Every point x of [0, 1] is an arm with mean reward μ_r(x) and mean cost μ_c(x) in [0, 1].

    The n-th outcome of a point that was first played in round t is one address (t, n), with one uniform for the reward
    and one for the cost. The ``remembered`` points that were new last are counted so; one that was forgotten and is
    played again is new. Build one with :meth:`of`. Points are used to a resolution of 2⁻²⁴.
    """

    parameters: Any = leaf()  # {name: f32[I, …]}
    lipschitz_reward: Any = leaf()  # f32[I]
    lipschitz_cost: Any = leaf()  # f32[I]
    reward_function: Function = static()
    cost_function: Function = static()
    reward_noise: Noise = static(default=Bernoulli())
    cost_noise: Noise = static(default=Bernoulli())
    remembered: int = static(default=64)

    addressed: ClassVar[bool] = True

    # --- construction (host) -----------------------------------------------------------------------------------

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
            mean_reward, mean_cost: jax functions ``f(x, parameters)`` of one point (``f32[]``) and one instance's
                parameters, with values in [0, 1]. One function, one compilation: define them once.
            lipschitz_reward, lipschitz_cost: L_r, L_c ≥ 0, Lipschitz constants, scalar or ``[instance]``. Checked on a
                grid, with a warning if a steeper place is found. They reach no policy.
            parameters: named numbers ``[instance, …]``; without any there is one instance.
            reward_noise, cost_noise: ``Bernoulli()`` (default), ``Beta(κ)`` or ``NoNoise()``, see
                :mod:`jaxbandits.environments.continuum.noise`.
            remembered: how many different points are counted at once. Policies that play at most so many points at a
                time can be played many rounds at once.

        Raises:
            InputError: parameters of different lengths or not numeric. At :func:`~jaxbandits.simulate`: functions that
                leave [0, 1] or give NaN on a grid, Lipschitz constants below 0.

        Example:
            >>> import jaxbandits as jb
            >>> world = jb.environments.Continuum.of(
            ...     lambda x, p: 0.5 + 0.4 * x, lambda x, p: p["floor"] + 0.5 * x * x,
            ...     lipschitz_reward=0.4, lipschitz_cost=1.0, parameters={"floor": [0.1, 0.2]})
            >>> world.instances, world.best_points().round(3).tolist()
            (2, [0.078, 0.151])
        """
        parameters = {} if parameters is None else parameters
        if not isinstance(parameters, Mapping):
            raise bad("parameters", parameters, "named numbers, {name: [instance, …]}")
        named = {name: in_float32(f"parameters[{name!r}]", value) for name, value in parameters.items()}
        lengths = {name: x.shape[:1] for name, x in named.items()}
        if len(set(lengths.values())) > 1 or () in lengths.values() or (0,) in lengths.values():
            raise bad("parameters", {k: x.shape for k, x in named.items()}, "arrays [instance, …] of one length")
        instances = next(iter(lengths.values()), (1,))
        slopes = {}
        for name, value in (("lipschitz_reward", lipschitz_reward), ("lipschitz_cost", lipschitz_cost)):
            array = in_float32(name, value)
            if array.shape not in ((), instances):
                raise bad(name, array.shape, f"one number, or [{instances[0]}] (one per instance)")
            slopes[name] = np.broadcast_to(array, instances)
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
        """The finite bandit of some points: arm k of instance i is ``points[i, k]``, with Bernoulli outcomes.

        For policies of finitely many arms on a grid, and for the leap engine. The worlds differ: an outcome belongs to
        (arm, pull) there and to the round here.

        Raises:
            InputError: points outside [0, 1], a shape that is not ``[K]`` or ``[instance, K]``, noise that is not
                Bernoulli.
        """
        for name, noise in (("reward_noise", self.reward_noise), ("cost_noise", self.cost_noise)):
            if not isinstance(noise, Bernoulli):
                raise bad(name, noise, "Bernoulli() (play OnPoints(policy, points) on the continuum itself)")
        x = numbers("points", points).astype(np.float32)
        if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != self.instances) or x.size == 0:
            raise bad("points", np.shape(points), f"an array [K] or [{self.instances}, K]")
        if not ((x >= 0) & (x <= 1)).all():
            raise bad("points", float(x[~((x >= 0) & (x <= 1))].flat[0]), "in [0, 1]")
        return FiniteArms.bernoulli(*self.means_at(np.broadcast_to(x, (self.instances, x.shape[-1]))))

    # --- the protocol ------------------------------------------------------------------------------------------

    @property
    def spec(self) -> ContinuumSpec:
        """Points of [0, 1]."""
        return ContinuumSpec()

    def refuses(self, action: Any) -> str | None:
        """See :meth:`Environment.refuses`: a point."""
        return None if is_point(action) else "a point of [0, 1], float32[]"

    def start(self) -> Visited:
        """No point was played."""
        none = jnp.zeros((self.remembered,), jnp.int32)
        return Visited(none - 1, none, none, none, none, jnp.int32(0))

    def means(self, point: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(μ_r, μ_c) of a point in whole ticks, for the instance of this lane."""
        mine = jax.tree.map(lambda row: row[()], self.parameters)
        return self.means_with(point, mine)

    def means_with(self, point: jax.Array, parameters: Any) -> tuple[jax.Array, jax.Array]:
        """(μ_r, μ_c) of a point in whole ticks, for these parameters."""
        # The barrier keeps the compiler from merging a user's formula with what surrounds it.
        point, parameters = jax.lax.optimization_barrier((point, parameters))
        values = self.reward_function(point, parameters), self.cost_function(point, parameters)
        reward, cost = jax.lax.optimization_barrier(values)
        return self.reward_noise.mean(_whole(reward)), self.cost_noise.mean(_whole(cost))

    def pull(
        self, state: Visited, action: jax.Array, key: jax.Array, round: jax.Array
    ) -> tuple[Visited, Outcome, Feedback, jax.Array]:
        """Play a point."""
        valid = (action >= 0) & (action <= 1)
        x = to_ticks(jnp.where(valid, action, 0.0))
        ids = jax.lax.iota(jnp.int32, self.remembered)
        at = jnp.min(jnp.where(state.point == x, ids, self.remembered))
        known = at < self.remembered
        at = jnp.where(known, at, state.entered % self.remembered)
        new_reward, new_cost = self.means(to_units(x))
        mean_reward = jnp.where(known, state.mean_reward[at], new_reward)
        mean_cost = jnp.where(known, state.mean_cost[at], new_cost)
        since, n = jnp.where(known, state.since[at], round), jnp.where(known, state.pulls[at], 0)
        reward, cost = self.outcome(key, since, n, mean_reward, mean_cost)
        here = ids == at

        def put(new: jax.Array, all: jax.Array) -> jax.Array:
            return jnp.where(here, new, all)

        after = Visited(
            point=put(x, state.point),
            since=put(since, state.since),
            pulls=put(n + 1, state.pulls),
            mean_reward=put(mean_reward, state.mean_reward),
            mean_cost=put(mean_cost, state.mean_cost),
            entered=state.entered + ~known,
        )
        outcome = Outcome(reward, cost, mean_reward, mean_cost, events={}, valid=valid)
        return after, outcome, Feedback(reward, cost), jnp.bool_(False)

    def outcome(
        self, key: jax.Array, since: jax.Array, n: jax.Array, mean_reward: jax.Array, mean_cost: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """(reward, cost) in ticks of the pull that comes after ``n`` others of a point new in round ``since``."""
        words = streams.words(key, since, n)
        return self.reward_noise.outcome(mean_reward, words[0]), self.cost_noise.outcome(mean_cost, words[1])

    # --- host --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """On a grid: values in [0, 1], or an error; slopes at most as stated, or a warning."""
        if (
            isinstance(self.remembered, bool)
            or not isinstance(self.remembered, int)
            or not 1 <= self.remembered <= 4096
        ):
            raise bad("remembered", self.remembered, "a whole number from 1 to 4096")
        refuse_beyond_memory("parameters", f"{self.instances} instances", 64.0 * self.instances * (grid.CELLS + 1))
        self.reward_noise.check()
        self.cost_noise.check()
        x = np.linspace(0, 1, grid.CELLS + 1, dtype=np.float32)
        raw = self._raw(np.broadcast_to(x, (self.instances, x.size)))
        stated = {"reward": self.lipschitz_reward, "cost": self.lipschitz_cost}
        for (name, bound), values in zip(stated.items(), raw, strict=True):
            bound = np.asarray(bound, np.float64)
            wrong = ~((values >= -1e-6) & (values <= 1 + 1e-6))
            if wrong.any():
                i, k = np.argwhere(wrong)[0]
                raise InputError(
                    f"mean_{name}: {values[i, k]:g} at x = {x[k]:g} in instance {i}; it must be in [0, 1] everywhere"
                )
            if not (np.isfinite(bound) & (bound >= 0)).all():
                raise bad(f"lipschitz_{name}", float(bound[~(bound >= 0)].flat[0]), "finite and at least 0")
            slope = grid.slopes(values, x)
            steep = slope > bound * (1 + _SLACK) + _SLACK
            if steep.any():
                i = int(np.argmax(slope - bound))
                warnings.warn(
                    f"lipschitz_{name}: {bound[i]:g} given for instance {i}, but the mean {name} has a slope of "
                    f"{slope[i]:g} on a grid ({int(steep.sum())} of {steep.size} instances)",
                    stacklevel=4,
                )

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means on a grid of 2049 points, refined around the best ratio and the best reward of every instance."""
        x = grid.points(self.instances)
        parts = [self.means_at(x)]
        for best_of in (grid.ratio, lambda reward, cost: reward):
            at, width = grid.best(x, best_of(*parts[0])), 1 / grid.CELLS
            for _ in range(grid.FINER):
                near = np.clip(at[:, None] + width * np.linspace(-1, 1, 33), 0, 1)
                parts.append(self.means_at(near))
                at, width = grid.best(near, best_of(*parts[-1])), width / 16
        reward, cost = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
        return reward, cost

    def best_points(self) -> np.ndarray:
        """The point with the best ratio μ_r/μ_c on a grid of 2049 points, ``f64[instance]``."""
        x = grid.points(self.instances)
        return grid.best(x, grid.ratio(*self.means_at(x)))

    def slopes(self, of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """The largest slope of ``of(mean_reward, mean_cost)`` on a grid, ``f64[instance]``.

        Example:
            >>> import jaxbandits as jb
            >>> world = jb.environments.cost_valley([0.3], lam=0.5)
            >>> world.slopes(lambda reward, cost: reward / cost).round(1).tolist()
            [11.6]
        """
        x = np.linspace(0, 1, grid.CELLS + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = of(*self.means_at(np.broadcast_to(x, (self.instances, x.size))))
        return grid.slopes(values, x)

    def means_at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Host: true mean reward and cost of points ``[instance, point]``, ``f64`` of that shape."""
        reward, cost = grid.evaluate(self, np.asarray(points, np.float32), True)
        return ticks.to_units(reward), ticks.to_units(cost)

    def _raw(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two functions as they are, ``f64[instance, point]``."""
        reward, cost = grid.evaluate(self, np.asarray(points, np.float32), False)
        return np.asarray(reward, np.float64), np.asarray(cost, np.float64)


def is_point(action: Any) -> bool:
    """Is this one float?"""
    return getattr(action, "dtype", None) in (np.float32, np.float64) and action.shape == ()


def _whole(mean: jax.Array) -> jax.Array:
    return jnp.clip(jnp.rint(jnp.asarray(mean, jnp.float32) * ticks.ONE), 0, ticks.ONE).astype(jnp.int32)
