"""Cost c(x) of what was consumed, and penalty λ(τ) of a limit that was exceeded: JAX functions that compare by value.

Any JAX function of one float32 array may be used instead. It must be hashable, and each new one compiles anew; two
equal objects of the classes here share one compiled program.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from jaxbandits.core.numbers import float32


@dataclasses.dataclass(frozen=True)
class Linear:
    """x ↦ slope · x. PAR10 with cut-off T is the cost ``Linear(1 / T)`` and the penalty ``Linear(10 / T)``.

    Source: RCUCB paper, §2.5.

    Example:
        >>> from jaxbandits.environments import Linear
        >>> float(Linear(0.5)(3.0))
        1.5
    """

    slope: float

    def __call__(self, x: jax.Array) -> jax.Array:
        """The cost, or the penalty, elementwise (float32)."""
        return jnp.asarray(x, jnp.float32) * float32("Linear.slope", self.slope)


@dataclasses.dataclass(frozen=True)
class FastTrack:
    """λ(τ) = rate · τ for τ ≤ promise, compensation · τ above: who promises a time pays for breaking it.

    Source: RCUCB paper, Example 2 and §5.1 (promise 0.5, compensation 10, rate 1/10: the defaults).

    Example:
        >>> from jaxbandits.environments import FastTrack
        >>> round(float(FastTrack()(0.5)), 6), round(float(FastTrack()(0.6)), 6)
        (0.05, 6.0)
    """

    promise: float = 0.5
    compensation: float = 10.0
    rate: float = 0.1

    def __call__(self, x: jax.Array) -> jax.Array:
        """The penalty of the limit x, elementwise (float32)."""
        x = jnp.asarray(x, jnp.float32)
        names = ("promise", "compensation", "rate")
        promise, compensation, rate = (float32(f"FastTrack.{name}", getattr(self, name)) for name in names)
        return x * jnp.where(x <= promise, rate, compensation)


@dataclasses.dataclass(frozen=True)
class Constant:
    """x ↦ value, whatever the limit; ``Constant(0)`` as cost and penalty leaves the ordinary bandit (Remark 1).

    Example:
        >>> from jaxbandits.environments import Constant
        >>> float(Constant(2.0)(0.3))
        2.0
    """

    value: float

    def __call__(self, x: jax.Array) -> jax.Array:
        """The same value everywhere (float32)."""
        return jnp.full_like(jnp.asarray(x, jnp.float32), float32("Constant.value", self.value))
