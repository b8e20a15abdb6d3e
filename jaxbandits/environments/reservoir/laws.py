"""Laws of a reservoir: from (instance key, arm) to the arm's means, and from a mean and 32 bits to an outcome."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams, ticks
from jaxbandits.core.errors import InputError
from jaxbandits.core.pytrees import leaf, pytree, static

Words = tuple[jax.Array, jax.Array]
OutcomeLaw = Callable[[jax.Array, jax.Array], jax.Array]  # (mean in ticks, 32 bits) → ticks
Sampler = Callable[[jax.Array], tuple[jax.Array, jax.Array]]  # key → (mean reward, mean cost)

INVALID = -1  # the mean cost of an arm that a sampler made of no use
_SLACK = 1e-6  # float32 means, rounded to ticks, may pass a stated bound by so much


def bernoulli_outcome(mean: jax.Array, word: jax.Array) -> jax.Array:
    """0 or 1: 1 with probability exactly ``mean`` (ticks).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments import bernoulli_outcome
        >>> bernoulli_outcome(jnp.int32(2**23), jnp.array([0, 2**32 - 1], jnp.uint32)).tolist()
        [16777216, 0]
    """
    return (streams.uniform_ticks(word) < mean).astype(jnp.int32) * ticks.ONE


def uniform_outcome(mean: jax.Array, word: jax.Array) -> jax.Array:
    """Uniform on the widest interval around ``mean`` that [0, 1] holds, a whole number of ticks.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments import uniform_outcome
        >>> uniform_outcome(jnp.int32(2**22), jnp.array([0, 2**32 - 1], jnp.uint32)).tolist()
        [0, 8388608]
    """
    half = jnp.minimum(mean, ticks.ONE - mean)
    return mean - half + streams.below(word, 2 * half + 1)


class FirstArms(Protocol):
    """What a law may ask of its reservoir."""

    def first_arms(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Host: mean reward and mean cost ``[instance, count]`` of the first arms."""


class ReservoirLaw:
    """How a reservoir's arms are distributed. Leaves carry a leading instance axis."""

    @abstractmethod
    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(mean reward, mean cost) of an arm in ticks, one instance; a mean cost of −1: there is no such arm."""
        raise NotImplementedError

    @abstractmethod
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Host: (mean reward, mean cost) ``[instance, 2]`` of an arm with the supremum ratio, and of a cheapest arm."""
        raise NotImplementedError

    def check(self, reservoir: FirstArms, tried: int) -> None:
        """Raise :class:`InputError` if one of the first ``tried`` arms breaks what was promised."""


def _draw(key: Words, arm: jax.Array) -> Words:
    return streams.once(*streams.threefry2x32(key, (arm.astype(jnp.uint32), jnp.uint32(0))))


@pytree
class RatioLaw(ReservoirLaw):
    """ρ = ρ*(1 − U^{1/β}), cost mean uniform on [λ, min(1, 1/ρ)], reward mean ρ times that (rounded down to ticks).

    The mean cost is drawn in whole ticks. No product feeds a sum here: fused or not, on a CPU the bits are the same.
    """

    beta: Any = leaf()  # f32[I]
    best_ratio: Any = leaf()  # f32[I]
    least_cost: Any = leaf()  # i32[I]: ticks

    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`ReservoirLaw`."""
        first, second = _draw(key, arm)
        inputs = (streams.uniform(first), self.beta[()], self.best_ratio[()])
        u, beta, best = jax.lax.optimization_barrier(inputs)
        ratio = best * (1 - jnp.power(u, 1 / beta))
        highest = jnp.minimum(np.float32(ticks.ONE) / ratio, ticks.ONE).astype(jnp.int32)
        least = self.least_cost[()]
        cost = least + streams.below(second, jnp.maximum(highest - least, 0) + 1)
        reward = jnp.floor(ratio * cost.astype(jnp.float32)).astype(jnp.int32)
        return jnp.minimum(reward, ticks.ONE), cost

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """See :class:`ReservoirLaw`."""
        best = np.asarray(self.best_ratio, np.float64)
        least = ticks.to_units(self.least_cost)
        cost = np.stack([(least + np.minimum(1, 1 / best)) / 2, least], axis=1)
        return cost * best[:, None], cost


@pytree
class SamplerLaw(ReservoirLaw):
    """Means from a user's JAX function of a key."""

    best_ratio: Any = leaf()  # f32[I]
    least_cost: Any = leaf()  # f32[I]
    sampler: Sampler = static()

    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`ReservoirLaw`."""
        words = jax.lax.optimization_barrier(jnp.stack(_draw(key, arm)))
        reward, cost = self.sampler(jax.random.wrap_key_data(words, impl="threefry2x32"))
        reward, cost = (jnp.asarray(x, jnp.float32).reshape(()) for x in (reward, cost))
        fine = (reward >= 0) & (reward <= 1) & (cost >= 0) & (cost <= 1)  # false for NaN
        in_ticks = [jnp.rint(jnp.where(fine, x, 0) * ticks.ONE).astype(jnp.int32) for x in (reward, cost)]
        return in_ticks[0], jnp.where(fine, in_ticks[1], INVALID)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """See :class:`ReservoirLaw`."""
        least = np.asarray(self.least_cost, np.float64)[:, None]
        cost = np.broadcast_to(least, (least.shape[0], 2))
        return cost * np.asarray(self.best_ratio, np.float64)[:, None], cost

    def check(self, reservoir: FirstArms, tried: int) -> None:
        """See :class:`ReservoirLaw`."""
        reward, cost = reservoir.first_arms(tried)
        least, best = (np.asarray(x, np.float64)[:, None] for x in (self.least_cost, self.best_ratio))
        name = getattr(self.sampler, "__name__", "sampler")
        with np.errstate(divide="ignore", invalid="ignore"):
            tests = (
                (cost < 0, cost, "means that are finite and in [0, 1]"),
                (cost < least - _SLACK, cost, "a mean cost of at least least_cost"),
                (
                    reward / cost > best + _SLACK,
                    reward / cost,
                    "a ratio of mean reward to mean cost of at most best_ratio",
                ),
            )
        for wrong, values, wanted in tests:
            if wrong.any():
                i, j = (int(x) for x in np.argwhere(wrong)[0])
                given = "means outside [0, 1]" if cost[i, j] < 0 else f"{values[i, j]:g}"
                raise InputError(f"sampler: {name} gives arm {j} of instance {i} {given}; it must give {wanted}")


@pytree
class TableLaw(ReservoirLaw):
    """A row of a table, drawn uniformly with replacement."""

    reward: Any = leaf()  # i32[I, R]: ticks
    cost: Any = leaf()  # i32[I, R]

    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """See :class:`ReservoirLaw`."""
        row = streams.below(_draw(key, arm)[0], self.reward.shape[-1])
        return self.reward[row], self.cost[row]

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """See :class:`ReservoirLaw`."""
        reward, cost = ticks.to_units(self.reward), ticks.to_units(self.cost)
        which = np.stack([(reward / cost).argmax(axis=1), cost.argmin(axis=1)], axis=1)
        return np.take_along_axis(reward, which, axis=1), np.take_along_axis(cost, which, axis=1)
