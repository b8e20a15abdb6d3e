"""Exploration sequences: how the confidence of an index grows with the round."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.pytrees import leaf, pytree


class Exploration:
    """A sequence 𝓔_t ≥ 0, elementwise in t (float32).

    Attributes:
        rests: True if it never falls: a policy's score rests only if its exploration does.
    """

    rests: ClassVar[bool] = False

    @abstractmethod
    def at(self, t: jax.Array) -> jax.Array:
        """𝓔_t."""
        raise NotImplementedError


@pytree
class LogExploration(Exploration):
    """𝓔_t = a·ln max(t, 2): for a = 1 the upper end of what the theory of RCB allows.

    Args:
        scale: a > 0, default 1.

    Example:
        >>> from jaxbandits.policies import LogExploration
        >>> round(float(LogExploration(scale=2.0).at(100.0)), 3)
        9.21
    """

    scale: Any = leaf(default=1.0, above=0)

    rests: ClassVar[bool] = True

    def at(self, t: jax.Array) -> jax.Array:
        """a·ln max(t, 2)."""
        return self.scale * jnp.log(jnp.maximum(t, 2))


@pytree
class LogLogExploration(Exploration):
    """𝓔_t = 2 ln(4(log₂ t + 1)): the lower end of what the theory of RCB allows (above ln t for t < 2,391).

    Example:
        >>> from jaxbandits.policies import LogLogExploration
        >>> round(float(LogLogExploration().at(128.0)), 3)
        6.931
    """

    rests: ClassVar[bool] = True

    def at(self, t: jax.Array) -> jax.Array:
        """2 ln(4(log₂ max(t, 1) + 1))."""
        return 2 * jnp.log(4 * (jnp.log2(jnp.maximum(t, 1)) + 1))


@pytree
class SlowLogExploration(Exploration):
    """𝓔_t = 2 ln(10 ln t): the lower end that Wang, Audibert and Munos allow UCB-V(∞) (t ≥ 2 in the logarithm).

    Example:
        >>> from jaxbandits.policies import SlowLogExploration
        >>> round(float(SlowLogExploration().at(100.0)), 2)
        7.66
    """

    rests: ClassVar[bool] = True

    def at(self, t: jax.Array) -> jax.Array:
        """2 ln(10 ln max(t, 2))."""
        return 2 * jnp.log(10 * jnp.log(jnp.maximum(t, 2)))
