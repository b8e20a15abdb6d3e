"""The zooming algorithm, with phases and without."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import ContinuumSpec
from jaxbandits.policies.base.zooming import ZoomingPolicy

_LN4 = float(np.log(4))


@pytree
class Zooming(ZoomingPolicy):
    """The zooming algorithm for rewards alone, in phases of 2^{i−1} rounds.

    .. math:: E(x) = \\sqrt{8 i / (2 + n)}, \\qquad u(x) = \\bar r + 2 E(x).

    Args:
        lipschitz: L > 0, Lipschitz constant of the mean reward; balls have radius E/L.
        capacity: most active points of a phase.

    Source: Kleinberg, Slivkins, Upfal, *Multi-armed bandits in metric spaces* (STOC 2008).

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.Zooming(lipschitz=4.0)
        >>> round(float(policy.radius(n=6.0, phase=4.0)), 3)
        2.0
    """

    lipschitz: Any = leaf(above=0)
    capacity: int = static(default=64)

    rests: ClassVar[bool] = True

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        """E."""
        return jnp.sqrt(8 * phase / (2 + n))

    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        """u."""
        return mean_reward + 2 * radius

    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        """The mean reward."""
        return mean_reward


@pytree
class SinglePhaseZooming(ZoomingPolicy):
    """Zooming as the B-Zoom paper runs it: one phase, B-Zoom's radius, costs ignored.

    .. math:: E(x) = s \\sqrt{\\frac{8 (\\ln B - \\ln\\lambda) + \\ln 4}{n}}, \\qquad u(x) = \\bar r + 2 E(x).

    Args:
        budget: B > 0, known in advance.
        lam: λ > 0, a lower bound on the mean cost (B/λ guesses the number of rounds).
        lipschitz: L > 0; balls have radius E/L.
        scale: s > 0. The text says "the same radius" as B-Zoom's, s = (1/λ)(1 + 1/λ); the published numbers fit s = 1,
            the width that the reward alone needs, which is the default.
        capacity: most active points.

    Source: Trovò et al. (ECAI 2016), §4.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.SinglePhaseZooming(budget=50_000.0, lam=0.5, lipschitz=0.05)
        >>> round(float(policy.radius(n=100.0, phase=1.0)), 3)
        0.967
    """

    budget: Any = leaf(above=0)
    lam: Any = leaf(above=0)
    lipschitz: Any = leaf(above=0)
    scale: Any = leaf(default=1.0, above=0)
    capacity: int = static(default=64)

    phased: ClassVar[bool] = False
    rests: ClassVar[bool] = True

    def check(self, spec: ContinuumSpec) -> None:
        """A budget of at least λ."""
        super().check(spec)
        self.check_known_budget()

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        """E."""
        return self.scale * jnp.sqrt((8 * (jnp.log(self.budget) - jnp.log(self.lam)) + _LN4) / n)

    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        """u."""
        return mean_reward + 2 * radius

    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        """The mean reward."""
        return mean_reward
