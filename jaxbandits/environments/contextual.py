"""Environments where each request has a context, seen before the decision, that sets the means."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, inner_product
from jaxbandits._numerics.fluid import ContextValue as ContextValue
from jaxbandits._numerics.means import LinearMeans as LinearMeans
from jaxbandits._numerics.means import LogisticMeans as LogisticMeans
from jaxbandits._numerics.means import Means as Means
from jaxbandits._numerics.normal import standard_normal
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import refuse, whole_number
from jaxbandits.core.protocol import Constraint, Feedback, Outcome, Possible, Pulled
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.tables import MOST_ARMS, presence
from jaxbandits.environments.finite import CountedArms, arm_words
from jaxbandits.environments.noise import Bernoulli, Noise
from jaxbandits.environments.table import (
    DrawnRows,
    RowOrder,
    checked_features,
    context_benchmarks,
    context_values,
)

# No arm is pulled so often, so this address is free in the world's key
_CONTEXTS = np.uint32(2**32 - 2)
_MOST_FEATURES = 2**16
SAMPLE = 2**14  # contexts that expectations of a law are taken over, unless one asks for more
_SAMPLE_KEY = 20261125
_COINS = Bernoulli()

# --- Laws of contexts


class ContextLaw:
    """A distribution of contexts: features of a request ``f32[d]``, or of each arm ``f32[K, d]``.

    Leaves carry a leading instance axis, as an environment's do.

    Example:
        Morning and evening take turns.

        >>> import jax.numpy as jnp
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class TwoHours(jb.environments.ContextLaw):
        ...     shape = (1,)
        ...     def draw(self, key, round):
        ...         return (round % 2).astype(jnp.float32)[None]
        >>> means = jb.environments.LinearMeans.of([[0.2, 0.6], [0.5, 0.0]])
        >>> world = jb.environments.ContextualArms.of(means, means, TwoHours())
        >>> world.values()[0].round(2).tolist()
        [[0.5, 0.5]]
    """

    shape: tuple[int, ...]

    @abstractmethod
    def draw(self, key: jax.Array, round: jax.Array) -> jax.Array:
        """The context of this round; ``key`` is for contexts only, the same in every round."""

    def check(self) -> None:
        """Raise :class:`InputError` for invalid parameters."""

    def table(self) -> np.ndarray | None:
        """Host: all contexts, equally likely, ``[instance, N, …]``; None (default): endless."""
        return None


class _Normals(ContextLaw):
    """Laws made of standard normals, ``d`` for all arms or for each of ``arms``."""

    d: int
    arms: int | None

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.d,) if self.arms is None else (self.arms, self.d)

    def check(self) -> None:
        whole_number("d", self.d, 1, _MOST_FEATURES)
        if self.arms is not None:
            whole_number("arms", self.arms, 1, _MOST_FEATURES - 1)

    def normals(self, clip: float, key: jax.Array, round: jax.Array) -> jax.Array:
        """Standard normals clipped at ±``clip``, feature i of arm k at (round, i/2 + 2¹⁶ k)."""
        arms = self.arms or 1
        block = jax.lax.iota(jnp.uint32, (self.d + 1) // 2)
        place = block[None, :] | (jax.lax.iota(jnp.uint32, arms)[:, None] << 16)
        words = jax.vmap(lambda at: streams.words(key, round, at))(place.ravel())
        words = words.reshape(arms, -1)[:, : self.d]
        x = standard_normal(words, clip).reshape(self.shape)
        # Through the choice no compiler moves their constant factor to a later product.
        return jnp.where(jnp.isnan(x), 0, x)


@pytree
class Gaussian(_Normals):
    """Independent standard normal features, clipped at ±3: E x² = 0.995.

    Args:
        d: how many.
        arms: K, for a row for each arm; default one context for all.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import jaxbandits as jb
        >>> jb.environments.Gaussian(3).draw(jax.random.key(0), jnp.int32(1)).round(2)
        Array([-0.48,  0.69,  0.19], dtype=float32)
    """

    d: int = static()
    arms: int | None = static(default=None)

    def draw(self, key: jax.Array, round: jax.Array) -> jax.Array:
        return self.normals(3.0, key, round)


@pytree
class UnitSphere(_Normals):
    """Uniform on the unit sphere.

    Args:
        d: the dimension.
        arms: K, for a row for each arm; default one context for all.

    Example:
        >>> from jaxbandits.environments import UnitSphere
        >>> UnitSphere(3).shape, UnitSphere(3, arms=4).shape
        ((3,), (4, 3))
    """

    d: int = static()
    arms: int | None = static(default=None)

    def draw(self, key: jax.Array, round: jax.Array) -> jax.Array:
        x = self.normals(6.0, key, round)
        length = jnp.sqrt(jnp.maximum(inner_product(x, x), np.float32(1e-30)))
        # Through the choices no compiler makes a reciprocal root, or divides by a broadcast number.
        scale = 1 / jnp.where(jnp.isnan(length), 1, length)
        return x * jnp.where(jnp.isnan(scale), 1, scale)[..., None]


@pytree
class Rows(ContextLaw):
    """Rows of a table, such as the features of logged requests, in a given order.

    Args:
        features: ``[N, d]``, or ``[N, K, d]`` with a row for each arm; use :meth:`of`.
        order: which row comes in which round; default one drawn at random.
    """

    features: ArrayLike = leaf()  # f32[I, N, …]
    order: RowOrder = leaf(default=DrawnRows())

    @classmethod
    def of(cls, features: Any, order: RowOrder | None = None, instances: int = 1) -> Rows:
        """The same table for every instance.

        Example:
            >>> import jaxbandits as jb
            >>> jb.environments.Rows.of([[0.1, 2.0], [0.7, 1.0], [0.4, 0.0]]).shape
            (2,)
        """
        table = checked_features(features, None)
        return cls(np.broadcast_to(table, (instances, *table.shape)).copy(), order or DrawnRows())

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        # Of whole tables, ``[instance, N, …]``, or of one instance's, ``[N, …]``, as the runner
        # reads them.
        return tuple(self.features.shape[(2 if hasattr(self.features, "dtype") else 1) :])

    def check(self) -> None:
        self.order.check(int(self.features.shape[1]))

    def draw(self, key: jax.Array, round: jax.Array) -> jax.Array:
        return self.features[self.order.row(key, round, int(self.features.shape[0]))]

    def table(self) -> np.ndarray:
        return np.asarray(self.features)


# --- The world


@pytree
class ContextualArms(CountedArms):
    """K arms whose mean reward and mean costs depend on the context of the round.

    Build one with :meth:`linear`, :meth:`logistic` or :meth:`of`. The context is a function of
    (world's key, round), an outcome of (world's key, round, arm): the same arm gives the same
    outcome for the same request, so all policies face the same requests. Means are rounded to
    ticks; the rounded value *is* the mean.

    ``regret`` is against an oracle that sees the contexts and knows all means, ``fixed_regret``
    against the best mixture that ignores contexts, so it may be below 0 (:meth:`benchmarks`).
    Simulated round by round.

    Args:
        reward, cost: :class:`Means`; outside of [0, 1] they are clipped (:meth:`clipped` says how
            often).
        contexts: the law of the contexts.
        present: ``bool[instance, K]``.
        noise: the law of an outcome around its mean,
            :class:`~jaxbandits.environments.noise.Bernoulli`,
            :class:`~jaxbandits.environments.noise.Tent` or another.
        resources: None for one cost, J for a vector.

    Example:
        Two arms, the second better where the first feature is above 0; a third of the money for
        both at all times.

        >>> import jax
        >>> import jaxbandits as jb
        >>> world = jb.environments.ContextualArms.linear(
        ...     reward=[[0.5, 0.0, 0.0], [0.5, 0.4, 0.0]], cost=[[0.2, 0.0, 0.0], [0.6, 0.0, 0.0]],
        ...     contexts=jb.environments.UnitSphere(2))
        >>> limit = jb.AverageCost(c=0.3, rounds=2000)
        >>> policies = [jb.policies.ContextualPacer(c=0.3, ridge=4.0), jb.policies.UCBSimplex(c=0.3, lam=0.1)]
        >>> null = jb.environments.WithNullArm(world)
        >>> result = jb.simulate(policies, null, limit, key=jax.random.key(0), replicates=8, marks=1)
        >>> (result.fixed_regret.mean("replicate") / 2000).values.round(2).ravel().tolist()
        [-0.03, 0.03]
    """

    reward: Means = leaf()
    cost: Means = leaf()
    contexts: ContextLaw = leaf()
    present: ArrayLike = leaf()
    noise: Noise = static(default=_COINS)
    resources: int | None = static(default=None)

    @classmethod
    def of(
        cls,
        reward: Means,
        cost: Means,
        contexts: ContextLaw,
        noise: Noise = _COINS,
        resources: int | None = None,
        arms: int | None = None,
        present: Any = None,
    ) -> ContextualArms:
        """Arms with your own mean functions.

        Args:
            reward, cost, contexts, noise, resources: see the class.
            arms: K; default the second axis of the means' first table ``[instance, K, …]``.
            present: which arms exist, ``[K]`` or ``[instance, K]``; default all.
        """
        tables = [x for x in jax.tree.leaves((reward, cost)) if np.ndim(x) >= 2]
        refuse("reward, cost", (reward, cost), not tables, "with a leaf [instance, K, …]")
        instances, width = np.shape(tables[0])[:2]
        shape = instances, whole_number("arms", arms or width, 1, MOST_ARMS)
        return cls(reward, cost, contexts, presence(present, shape).copy(), noise, resources)

    @classmethod
    def linear(
        cls,
        reward: Any,
        cost: Any,
        contexts: ContextLaw,
        noise: Noise = _COINS,
        resources: int | None = None,
        present: Any = None,
    ) -> ContextualArms:
        """Means θ₀ + ⟨θ, x⟩, clipped to [0, 1].

        Args:
            reward: θ, ``[K, 1 + d]`` or ``[instance, K, 1 + d]``, the constant first; K = 1: shared
                by all arms.
            cost: the same, or ``[K, J, 1 + d]`` if ``resources`` says J.
            contexts, noise, resources, present: see the class.
        """
        means, arms = _fitting(LinearMeans, reward, cost, contexts, resources)
        return cls.of(*means, contexts, noise, resources, arms, present)

    @classmethod
    def logistic(
        cls,
        reward: Any,
        cost: Any,
        contexts: ContextLaw,
        noise: Noise = _COINS,
        resources: int | None = None,
        present: Any = None,
    ) -> ContextualArms:
        """Means 1 / (1 + exp(−θ₀ − ⟨θ, x⟩)); arguments as for :meth:`linear`.

        Example:
            >>> import jaxbandits as jb
            >>> theta = [[0.0, 1.0], [-1.0, 0.0]]
            >>> world = jb.environments.ContextualArms.logistic(theta, theta, jb.environments.Gaussian(1))
            >>> world.values()[0].round(2).tolist()
            [[0.5, 0.27]]
        """
        means, arms = _fitting(LogisticMeans, reward, cost, contexts, resources)
        return cls.of(*means, contexts, noise, resources, arms, present)

    @property
    def spec(self) -> FiniteSpec:
        return FiniteSpec(int(self.present.shape[-1]), self.resources, context=self.contexts.shape)

    def check(self) -> None:
        shape = tuple(self.contexts.shape)
        wrong = len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != self.spec.arms)
        must = f"(d,), or ({self.spec.arms}, d) with a row for each arm"
        refuse("contexts", f"shape {shape}", wrong, must)
        if self.resources is not None:
            whole_number("resources", self.resources, 1, 511)
        self.contexts.check()
        self.noise.check()

    def available(self) -> jax.Array:
        return self.present[:]

    def context(self, key: jax.Array, round: jax.Array) -> jax.Array:
        return self.contexts.draw(streams.at(key, _CONTEXTS, 0), round)  # type: ignore[arg-type]

    def means(self, context: jax.Array, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(mean reward ``i32[]``, mean cost ``i32[]`` or ``i32[J]``) at a context, in ticks."""
        row = context if context.ndim == 1 else context[arm]
        reward, cost = (self.noise.mean(x) for x in self._whole(row, arm))
        return reward[0], cost if self.resources is not None else cost[0]

    def _whole(self, row: jax.Array, arm: jax.Array) -> tuple[jax.Array, jax.Array]:
        """What the noise is around, reward ``i32[1]`` and costs ``i32[J]`` in ticks."""
        means = self.reward.at(row, arm), self.cost.at(row, arm)
        return tuple(jnp.rint(jnp.clip(x, 0, 1) * ticks.ONE).astype(jnp.int32) for x in means)  # type: ignore[return-value]

    def pull(self, state: jax.Array, action: jax.Array, key: jax.Array, round: jax.Array) -> Pulled:
        arm = jnp.clip(action, 0, self.spec.arms - 1)
        context = self.context(key, round)
        row = context if context.ndim == 1 else context[arm]
        both = self._whole(row, arm)
        costs = both[1].shape[0]
        words = arm_words(key, round, arm, costs)
        reward = self.noise.outcome(both[0][0], words[0])
        cost = jnp.stack([self.noise.outcome(both[1][j], words[1 + j]) for j in range(costs)])
        means = self.noise.mean(both[0][0]), self.noise.mean(both[1])
        if self.resources is None:
            cost, means = cost[0], (means[0], means[1][0])
        outcome = Outcome(reward, cost, *means, {}, valid=(arm == action) & self.present[arm])
        return self.counted(state, arm), outcome, Feedback(reward, cost), jnp.bool_(False)

    # --- Host: expectations over contexts

    def sampled(self, samples: int = SAMPLE, first: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Host: means at contexts, ``[instance, N, K]`` and ``[instance, N, K, J]``; NaN where absent.

        Args:
            samples: how many contexts of the law; of a table all its rows.
            first: the first of their rounds, under a fixed key.
        """
        table = self.contexts.table()
        arrays = jax.tree.map(jnp.asarray, self)
        rounds = jnp.arange(first, first + samples, dtype=jnp.int32)
        rows = None if table is None else jnp.asarray(table)
        reward, cost = (ticks.to_units(x) for x in _sampled(arrays, rounds, rows))
        exists = np.asarray(self.present)[:, None, :]
        return np.where(exists, reward, np.nan), np.where(exists[..., None], cost, np.nan)

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Means over contexts: exact for a table, else from a fixed sample of 2¹⁴ contexts."""
        reward, cost = (x.mean(axis=1) for x in self.sampled())
        return reward, cost if self.resources is not None else cost[..., 0]

    def clipped(self, samples: int = SAMPLE) -> np.ndarray:
        """Host: the share of (context, arm) pairs whose mean was clipped, ``[instance]``.

        Their means are not those of the formula.

        Example:
            >>> import jaxbandits as jb
            >>> world = jb.environments.ContextualArms.linear([[0.5, 0.3]], [[0.5, 0.0]], jb.environments.Gaussian(1))
            >>> world.clipped().round(2).tolist()
            [0.09]
        """
        reward, cost = self.sampled(samples)
        edge = (reward <= 0) | (reward >= 1) | ((cost <= 0) | (cost >= 1)).any(axis=-1)
        return edge.sum(axis=(1, 2)) / np.isfinite(reward).sum(axis=(1, 2))

    def value_of_context(self, constraint: Constraint, samples: int = 2**16) -> list[ContextValue]:
        """Host: the value of seeing contexts under a constraint, of each instance.

        With rounds as a limit the value of a request, rest allowed,

        .. math:: \\mathrm{OPT} = \\min_{\\lambda \\ge 0}\\ \\langle\\lambda, b\\rangle
            + E_x \\max_k\\,[r(x, k) - \\langle\\lambda, c(x, k)\\rangle]_+, \\qquad b = B/T,

        less that of the best mixture at the mean rewards and costs. T·OPT bounds what any policy
        can earn that does not overspend. With money alone as the clock, ρ* with :math:`E_x \\max_k
        (r - \\rho^* c) = 0`, every request served, less the ratio of the best arm: a policy earns
        at most ρ*(B + 1). If it could skip, it could wait forever for the request with the best
        ratio, so skipping requires a limit on rounds.

        Args:
            constraint: as :func:`~jaxbandits.simulate` takes it: a :class:`~jaxbandits.Horizon`, an
                :class:`~jaxbandits.AverageCost`, a :class:`~jaxbandits.TotalBudget` or
                :class:`~jaxbandits.Renewing`.
            samples: contexts of a law without end, so many for prices and as many again for values.

        Example:
            >>> import jaxbandits as jb
            >>> rows = jb.environments.Rows.of([[0.0], [1.0]])
            >>> world = jb.environments.ContextualArms.linear(
            ...     [[0.3, 0.4], [0.9, -0.1]], [[0.2, 0.0], [0.7, 0.0]], rows)
            >>> value = world.value_of_context(jb.AverageCost(c=0.25, rounds=1000))[0]
            >>> round(value.contextual, 4), round(value.fixed, 4), round(value.value, 4)
            (0.56, 0.535, 0.025)
        """
        order = getattr(self.contexts, "order", None)
        return context_values(self.value_tables(samples), constraint.prepare(self), order) or []

    def value_tables(self, samples: int = SAMPLE) -> list[tuple[np.ndarray, np.ndarray]]:
        """Host: means at all contexts, or at those of two samples."""
        exact = self.contexts.table() is not None
        return [self.sampled(samples)] + ([] if exact else [self.sampled(samples, 1 + samples)])

    def benchmarks(self, constraint: Constraint, clock: np.ndarray) -> Mapping[str, Possible]:
        """Host: ``"moving"`` with contexts, ``"fixed"`` without, see :meth:`value_of_context`.

        Both grow linearly with the clock. NaN under a user's constraint. For a law without end
        they are those of 2¹⁴ contexts, with their standard errors ``"moving_error"`` and
        ``"fixed_error"``.
        """
        order = getattr(self.contexts, "order", None)
        return context_benchmarks(self.value_tables(), constraint, order)


def _fitting(
    kind: type[LinearMeans], reward: Any, cost: Any, contexts: ContextLaw, resources: Any
) -> tuple[tuple[LinearMeans, LinearMeans], int]:
    """Means of this kind whose θ fit the contexts, and the number of arms."""
    means = kind.of(reward), kind.of(cost, resources)
    shapes = [np.shape(x.theta) for x in means]
    rows = contexts.shape[0] if len(contexts.shape) == 2 else None
    arms, width = rows or max(shape[1] for shape in shapes), 1 + contexts.shape[-1]
    must = f"[{arms}, {width}], or one row for all, with as many instances as the other"
    for name, shape in zip(("reward", "cost"), shapes, strict=True):
        wrong = shape[1] not in (1, arms) or (shape[0], shape[-1]) != (shapes[0][0], width)
        refuse(name, f"shape {shape[:2] + shape[3:]} of [instance, K, 1 + d]", wrong, must)
    return means, arms


def sample_contexts(world: ContextualArms, rounds: jax.Array) -> jax.Array:
    """Sampled contexts ``f32[N, …]`` of a law that is not a table, for one instance."""
    key = streams.at(jax.random.key(_SAMPLE_KEY, impl="threefry2x32"), _CONTEXTS, 0)  # type: ignore[arg-type]
    return jax.vmap(world.contexts.draw, in_axes=(None, 0))(key, rounds)


@jax.jit
def _sampled(
    world: ContextualArms, rounds: jax.Array, rows: jax.Array | None
) -> tuple[jax.Array, jax.Array]:
    """Means in ticks, ``i32[instance, N, K]`` and ``i32[instance, N, K, J]``."""
    arms = jax.lax.iota(jnp.int32, world.present.shape[-1])

    def instance(one: ContextualArms, contexts: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        contexts = sample_contexts(one, rounds) if contexts is None else contexts
        of_arms = jax.vmap(one.means, in_axes=(None, 0))
        reward, cost = jax.vmap(of_arms, in_axes=(0, None))(contexts, arms)
        return reward, cost if cost.ndim == 3 else cost[..., None]

    return jax.vmap(instance, in_axes=(0, None if rows is None else 0))(world, rows)
