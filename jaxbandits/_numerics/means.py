"""Means that depend on a context, for environments and for oracles."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits._numerics.arrays import inner_product
from jaxbandits.core.checks import in_float32, refuse
from jaxbandits.core.pytrees import leaf, pytree


class Means:
    """Means of an arm given the context of a request. Leaves carry a leading instance axis.

    Write :meth:`at`. What lies outside of [0, 1] is clipped by the world.

    Example:
        Who comes at a distance is served badly.

        >>> import jax.numpy as jnp
        >>> import jaxbandits as jb
        >>> @jb.pytree
        ... class Near(jb.environments.Means):
        ...     place: object = jb.leaf(core=2)                                # [K, d], one more axis of instances
        ...     def at(self, context, arm):
        ...         return jnp.exp(-jnp.sum((context - self.place[arm]) ** 2))[None]
        >>> law = jb.environments.Gaussian(2)
        >>> world = jb.environments.ContextualArms.of(
        ...     Near(jnp.array([[[0.0, 0.0], [1.0, 1.0]]])), jb.environments.LinearMeans.of([[0.5, 0.0, 0.0]] * 2), law)
        >>> world.values()[0].round(2).tolist()
        [[0.34, 0.17]]
    """

    @abstractmethod
    def at(self, context: jax.Array, arm: jax.Array) -> jax.Array:
        """Means of ``arm``, ``f32[1]`` or (costs) ``f32[J]``, at its context row ``f32[d]``."""


@pytree
class LinearMeans(Means):
    """θ₀ + ⟨θ, x⟩.

    Args:
        theta: ``[instance, K, J, 1 + d]``, the constant first; K = 1: one θ for all arms. Use
            :meth:`of`.
    """

    theta: Any = leaf(core=3)

    @classmethod
    def of(cls, theta: Any, resources: int | None = None) -> LinearMeans:
        """From θ of each arm ``[K, 1 + d]``, or ``[K, J, 1 + d]`` if ``resources`` says J.

        One θ for all arms has K = 1; it is for contexts with a row for each arm. Instances stand
        before all.

        Example:
            >>> import jaxbandits as jb
            >>> jb.environments.LinearMeans.of([[0.5, 0.1, -0.2], [0.4, 0.0, 0.3]]).theta.shape
            (1, 2, 1, 3)
        """
        table = in_float32("theta", theta)
        core = 2 if resources is None else 3
        wrong = table.ndim not in (core, core + 1) or table.shape[-1] < 2 or 0 in table.shape
        wrong = wrong or resources not in (None, table.shape[-2])
        must = f"[K, 1 + d]; [K, {resources or 'J'}, 1 + d] of J resources; instances before them"
        refuse("theta", f"shape {table.shape}", wrong, must)
        table = table if table.ndim > core else table[None]
        return cls(table if resources is not None else table[..., None, :])

    def linear(self, context: jax.Array, arm: jax.Array) -> jax.Array:
        """θ₀ + ⟨θ, x⟩, ``f32[J]``, the same bits in every program."""
        theta = self.theta[jnp.minimum(arm, self.theta.shape[0] - 1)]
        theta, context = jax.lax.optimization_barrier((theta, context))
        return theta[:, 0] + inner_product(theta[:, 1:], context[None])

    def at(self, context: jax.Array, arm: jax.Array) -> jax.Array:
        return self.linear(context, arm)


@pytree
class LogisticMeans(LinearMeans):
    """1 / (1 + exp(−θ₀ − ⟨θ, x⟩)).

    Args:
        theta: as of :class:`LinearMeans`.

    Example:
        >>> import jax.numpy as jnp
        >>> import jaxbandits as jb
        >>> float(jb.environments.LogisticMeans(jnp.ones((1, 1, 3))).at(jnp.array([0.5, -1.5]), jnp.int32(0))[0])
        0.5
    """

    def at(self, context: jax.Array, arm: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(self.linear(context, arm))
