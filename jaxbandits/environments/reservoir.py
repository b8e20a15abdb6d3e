"""Infinitely many arms: arm j is a function of (instance key, j), so none is stored."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, per_instance, positive
from jaxbandits._provenance import remembered
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import InputError, bad, in_float32, refuse, whole_number
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.tables import MOST_ARMS, alike, check_unit, ticks32
from jaxbandits.environments.finite import AddressedArms
from jaxbandits.environments.noise import coin

# --- Laws: from (instance key, arm) to the arm's means, and from a mean and 32 bits to an outcome

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
    return coin(mean, word)


def uniform_outcome(mean: jax.Array, word: jax.Array) -> jax.Array:
    """Uniform on the widest interval around ``mean`` within [0, 1], a whole number of ticks.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments import uniform_outcome
        >>> uniform_outcome(jnp.int32(2**22), jnp.array([0, 2**32 - 1], jnp.uint32)).tolist()
        [0, 8388608]
    """
    half = jnp.minimum(mean, ticks.ONE - mean)
    return mean - half + streams.below(word, 2 * half + 1)


class ReservoirLaw:
    """The distribution of a reservoir's arms. Leaves have a leading instance axis."""

    @abstractmethod
    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(mean reward, mean cost) of one instance's arm, in ticks; cost −1: no such arm."""

    @abstractmethod
    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Host: mean (reward, cost), ``[instance, 2]``: a best-ratio arm and a cheapest arm."""

    def check(self, reservoir: Reservoir, tried: int) -> None:
        """Raise :class:`InputError` if one of the first ``tried`` arms violates stated bounds."""


def _draw(key: Words, arm: jax.Array) -> Words:
    return streams.once(*streams.threefry2x32(key, (arm.astype(jnp.uint32), jnp.uint32(0))))


@pytree
class RatioLaw(ReservoirLaw):
    """ρ = ρ*(1 − U^{1/β}), cost mean uniform on [λ, min(1, 1/ρ)], reward mean ρ times that.

    Both means are whole ticks, the reward's rounded down. No product feeds a sum here: fused or not,
    the bits are the same on a CPU.
    """

    beta: ArrayLike = leaf()  # f32[I]
    best_ratio: ArrayLike = leaf()  # f32[I]
    least_cost: ArrayLike = leaf()  # i32[I]: ticks

    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, second = _draw(key, arm)
        inputs = (streams.uniform(first), self.beta[()], self.best_ratio[()])
        u, beta, best = jax.lax.optimization_barrier(inputs)
        ratio = best * (1 - jnp.power(u, 1 / beta))
        highest = jnp.minimum(np.float32(ticks.ONE) / ratio, ticks.ONE).astype(jnp.int32)
        lowest = self.least_cost[()]
        cost = lowest + streams.below(second, jnp.maximum(highest - lowest, 0) + 1)
        reward = jnp.floor(ratio * cost.astype(jnp.float32)).astype(jnp.int32)
        return jnp.minimum(reward, ticks.ONE), cost

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        best = np.asarray(self.best_ratio, np.float64)
        lowest = ticks.to_units(self.least_cost)
        cost = np.stack([(lowest + np.minimum(1, 1 / best)) / 2, lowest], axis=1)
        return np.minimum(cost * best[:, None], 1), cost  # λ in ticks may lie above 1/ρ*


@pytree
class SamplerLaw(ReservoirLaw):
    """Arms whose means are a user's JAX function of a key."""

    best_ratio: ArrayLike = leaf()  # f32[I]
    least_cost: ArrayLike = leaf()  # f32[I]
    sampler: Sampler = static()

    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        words = jax.lax.optimization_barrier(jnp.stack(_draw(key, arm)))
        reward, cost = self.sampler(jax.random.wrap_key_data(words, impl="threefry2x32"))
        reward, cost = (jnp.asarray(x, jnp.float32).reshape(()) for x in (reward, cost))
        fine = (reward >= 0) & (reward <= 1) & (cost >= 0) & (cost <= 1)  # false for NaN
        in_units = (jnp.where(fine, x, 0) for x in (reward, cost))
        reward, cost = (jnp.rint(x * ticks.ONE).astype(jnp.int32) for x in in_units)
        return reward, jnp.where(fine, cost, INVALID)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        lowest = np.asarray(self.least_cost, np.float64)[:, None]
        cost = np.broadcast_to(lowest, (lowest.shape[0], 2))
        return cost * np.asarray(self.best_ratio, np.float64)[:, None], cost

    def check(self, reservoir: Reservoir, tried: int) -> None:
        reward, cost = reservoir.first_arms(tried)
        lowest = np.asarray(self.least_cost, np.float64)[:, None]
        best = np.asarray(self.best_ratio, np.float64)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = reward / cost
        name, rate = getattr(self.sampler, "__name__", "sampler"), "mean reward to mean cost"
        for wrong, values, must in (
            (cost < 0, cost, "means that are finite and in [0, 1]"),
            (cost < lowest - _SLACK, cost, "a mean cost of at least least_cost"),
            (ratio > best + _SLACK, ratio, f"a ratio of {rate} of at most best_ratio"),
        ):
            for i, j in np.argwhere(wrong)[:1]:
                value = "means outside [0, 1]" if cost[i, j] < 0 else f"{values[i, j]:g}"
                given = f"sampler: {name} gives arm {j} of instance {i} {value}"
                raise InputError(f"{given}; it must give {must}")


@pytree
class TableLaw(ReservoirLaw):
    """Arms whose means are rows of a table, drawn uniformly with replacement."""

    reward: ArrayLike = leaf()  # i32[I, R]: ticks
    cost: ArrayLike = leaf()  # i32[I, R]

    def means(self, key: Words, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        row = streams.below(_draw(key, arm)[0], self.reward.shape[-1])
        return self.reward[row], self.cost[row]

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        reward, cost = ticks.to_units(self.reward), ticks.to_units(self.cost)
        ends = np.stack([(reward / cost).argmax(axis=1), cost.argmin(axis=1)], axis=1)
        return np.take_along_axis(reward, ends, axis=1), np.take_along_axis(cost, ends, axis=1)


# --- The reservoir

_A_TICK = f"at least a tick, {1 / ticks.ONE:.7g}"
_TRIED = 256  # arms of every instance that a user's sampler is tried on, before anything runs


@pytree
class Reservoir(AddressedArms):
    """A reservoir of infinitely many arms, of which a policy can use the first ``capacity``.

    The means of arm j are a pure function of (instance key, j): nothing is stored, and a larger
    capacity leaves the earlier arms as they are. Only pull counts are stored. All policies for
    finitely many arms accept a reservoir; the rules of :mod:`jaxbandits.policies.many_arms`
    determine which of its arms they use.

    The regret is measured against the reservoir's supremum ρ* of the ratio μ^r/μ^c, which no arm
    need attain.

    Build one with :meth:`ratio`, :meth:`sampled` or :meth:`empirical`.
    """

    law: ReservoirLaw = leaf()
    words: ArrayLike = leaf()  # u32[I, 2]: the instances' keys
    capacity: int = static()
    outcomes: OutcomeLaw = static(default=bernoulli_outcome)

    addressed: ClassVar[bool] = True

    @staticmethod
    @remembered
    def ratio(
        key: Any,
        *,
        instances: int,
        capacity: int,
        beta: Any = 1.0,
        best_ratio: Any = 2.0,
        least_cost: Any = 0.1,
        outcomes: OutcomeLaw = bernoulli_outcome,
    ) -> Reservoir:
        """Arms with ratios :math:`\\rho = \\rho^* (1 - U^{1/\\beta})`, so P(ρ > ρ* − ε) = (ε/ρ*)^β.

        The mean cost is uniform on [λ, min(1, 1/ρ)], the mean reward ρ times that.

        Args:
            key: ``jax.random.key(seed)``; instance i's arms are addressed by (key, i, arm).
            instances: number of independent reservoirs.
            capacity: the most arms that can be pulled.
            beta: β > 0, scalar or ``[instance]``; the larger, the rarer are good arms.
            best_ratio: ρ* > 0, scalar or ``[instance]``.
            least_cost: λ in (0, 1], at most 1/ρ*, scalar or ``[instance]``.
            outcomes: the law of a reward or cost given its mean: :func:`bernoulli_outcome` (the
                default), :func:`uniform_outcome`, or a function of (mean in ticks, 32 random bits)
                that gives ticks.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> arms = jb.environments.Reservoir.ratio(jax.random.key(0), instances=100, capacity=32, beta=1.0)
            >>> arms.spec, arms.instances
            (FiniteSpec(arms=32, resources=None, null_arm=False, context=None), 100)
        """
        words = _instance_words(key, instances)
        b = _positive("beta", beta, instances)
        best = _positive("best_ratio", best_ratio, instances)
        lowest = _positive("least_cost", least_cost, instances)
        if (wrong := (lowest > 1) | (lowest * best > 1)).any():
            limit = min(1.0, 1 / best[wrong][0])
            must = f"at most {limit:g}, the smaller of 1 and 1/best_ratio"
            raise bad("least_cost", float(lowest[wrong][0]), must)
        for name, x in (("least_cost", lowest), ("best_ratio", best)):
            refuse(name, x, ticks.from_units(np.minimum(x, 1)) < 1, _A_TICK)
        law = RatioLaw(b.astype(np.float32), best.astype(np.float32), ticks32(lowest))
        return Reservoir(law, words, _capacity(capacity), outcomes)

    @staticmethod
    @remembered
    def sampled(
        sampler: Sampler,
        key: Any,
        *,
        instances: int,
        capacity: int,
        best_ratio: Any,
        least_cost: Any,
        outcomes: OutcomeLaw = bernoulli_outcome,
    ) -> Reservoir:
        """Arms from your own JAX function of a key.

        Args:
            sampler: a JAX function of a key that gives an arm's (mean reward, mean cost), floats in
                [0, 1]; called with the key of (instance, arm).
            key, instances, capacity, outcomes: as in :meth:`ratio`.
            best_ratio: the supremum ρ* of the ratios, which regret is measured against, scalar or
                ``[instance]``.
            least_cost: λ > 0, a lower bound on the mean costs, scalar or ``[instance]``.

        Raises:
            InputError: before anything runs of ``simulate``, if one of the first arms breaks what
                was promised. (A later arm with means outside [0, 1] ends its lane as invalid.)

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> def sampler(key):
            ...     reward, cost = jax.random.uniform(key, (2,))
            ...     return reward, 0.5 + 0.5 * cost
            >>> arms = jb.environments.Reservoir.sampled(
            ...     sampler, jax.random.key(0), instances=3, capacity=16, best_ratio=2.0, least_cost=0.5)
            >>> [x.shape for x in arms.first_arms(5)]
            [(3, 5), (3, 5)]
        """
        words = _instance_words(key, instances)
        best = _positive("best_ratio", best_ratio, instances)
        lowest = _positive("least_cost", least_cost, instances)
        refuse("least_cost", lowest, lowest * ticks.ONE < 1, _A_TICK)
        law = SamplerLaw(best.astype(np.float32), lowest.astype(np.float32), sampler)
        return Reservoir(law, words, _capacity(capacity), outcomes)

    @staticmethod
    @remembered
    def empirical(
        mean_reward: Any,
        mean_cost: Any,
        key: Any,
        *,
        instances: int,
        capacity: int,
        outcomes: OutcomeLaw = bernoulli_outcome,
    ) -> Reservoir:
        """Arms drawn with replacement from a table of means ``[row]``, of real data, say."""
        words = _instance_words(key, instances)
        reward, cost = alike((1,), "[row], rows ≥ 1", mean_reward=mean_reward, mean_cost=mean_cost)
        for name, x, low in (("mean_reward", reward, 0.0), ("mean_cost", cost, 0.5 / ticks.ONE)):
            must = f"finite and in {'[0' if low == 0 else '(0'}, 1]"
            refuse(name, x, ~((x >= low) & (x <= 1)), must)
            check_unit(name, x)
        rows = (np.broadcast_to(ticks32(x), (instances, x.size)) for x in (reward, cost))
        return Reservoir(TableLaw(*rows), words, _capacity(capacity), outcomes)

    def with_capacity(self, capacity: int) -> Reservoir:
        """The same arms, of which the first ``capacity``, from 1 to 2²⁴, may be pulled."""
        return dataclasses.replace(self, capacity=_capacity(capacity))

    def take(self, instances: Sequence[int]) -> Reservoir:
        rows = np.asarray(instances)
        return jax.tree.map(lambda x: np.asarray(x)[rows], self)

    def first_arms(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean reward and cost of the first ``count`` arms, float64 ``[instance, arm]``."""
        reward, cost = _first_arms(jax.tree.map(jnp.asarray, self), count)
        return ticks.to_units(reward), ticks.to_units(cost)

    @property
    def spec(self) -> FiniteSpec:
        return FiniteSpec(arms=self.capacity)

    @property
    def instances(self) -> int:
        return int(self.words.shape[0])

    def check(self) -> None:
        """Check that the first arms of every instance satisfy the stated bounds."""
        self.law.check(self, min(self.capacity, _TRIED))

    def available(self) -> jax.Array:
        return jnp.ones((self.capacity,), bool)

    def means(self, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.law.means((self.words[0], self.words[1]), arm)

    def outcome(self, key: jax.Array, arm: jax.Array, n: jax.Array) -> tuple[jax.Array, jax.Array]:
        reward, cost = self.means(arm)
        words = streams.words(key, n, arm)
        return self.outcomes(reward, words[0]), self.outcomes(cost, words[1])

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arms ``[instance, 2]``: one with the supremum ratio, and one with the least cost."""
        return self.law.extremes()


@jax.jit(static_argnames="count")
def _first_arms(reservoir: Reservoir, count: int) -> tuple[jax.Array, jax.Array]:
    arms = jax.lax.iota(jnp.int32, count)

    def of_instance(law: ReservoirLaw, words: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.vmap(lambda arm: law.means((words[0], words[1]), arm))(arms)

    return jax.vmap(of_instance)(reservoir.law, reservoir.words)


def _instance_words(key: Any, instances: Any) -> np.ndarray:
    """The instances' keys, ``u32[I, 2]``."""
    root = streams.root_key(key)
    ids = jnp.arange(whole_number("instances", instances, 1, 2**32, "2**32"), dtype=jnp.uint32)
    return np.asarray(jax.vmap(streams.words, in_axes=(None, 0, None))(root, ids, 0))


def _capacity(capacity: Any) -> int:
    return whole_number("capacity", capacity, 1, MOST_ARMS, "2**24")


def _positive(name: str, value: Any, instances: int) -> np.ndarray:
    """``value`` as float64 ``[instance]``, every number finite and above 0."""
    array = positive(name, value)
    in_float32(name, array)
    return per_instance(name, array, instances)
