"""B-Zoom: zooming on the ratio of reward and cost (Trovò, Paladino, Restelli, Gatti: Budgeted multi-armed bandit in
continuous action space, ECAI 2016)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.protocol import Environment
from jaxbandits.core.pytrees import leaf, pytree, static
from jaxbandits.core.specs import ContinuumSpec
from jaxbandits.policies.base.zooming import ZoomingPolicy

_LN4 = float(np.log(4))


class _RatioZooming(ZoomingPolicy):
    """u = r̄ / max(λ, c̄) + 2E, whatever the radius."""

    lam: Any

    def value(self, mean_reward: jax.Array, mean_cost: jax.Array, radius: jax.Array) -> jax.Array:
        """u."""
        return mean_reward / jnp.maximum(self.lam, mean_cost) + 2 * radius

    def target(self, mean_reward: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
        """The ratio μ_r / μ_c."""
        return mean_reward / mean_cost

    def warnings(self, environment: Environment) -> list[str]:
        """λ above the true smallest mean cost, L below the largest slope of the ratio; as far as a grid shows."""
        return [*too_large(f"{type(self).__name__}.lam", self.lam, environment), *super().warnings(environment)]


def too_large(name: str, lam: Any, environment: Environment) -> list[str]:
    """One line if a stated lower bound ``[setting, 1 or instance]`` on the mean costs is above a true one."""
    least = np.nanmin(np.asarray(environment.values()[1], np.float64), axis=-1)
    given = np.asarray(lam, np.float64)
    given = np.broadcast_to(given, (given.shape[0], least.size))
    wrong = given > least * (1 + 1e-5)
    if not wrong.any():
        return []
    setting, instance = np.argwhere(wrong)[0]
    return [
        f"{name}: {given[setting, instance]:g} is above the smallest mean cost {least[instance]:g} found on a grid in "
        f"instance {instance} ({int(wrong.any(axis=0).sum())} of {least.size} instances): it must be a lower bound, or "
        "cheap points look worse than they are"
    ]


@pytree
class BZoom(_RatioZooming):
    """B-Zoom in phases: phase i covers the rounds 2^{i−1} … 2^i − 1, and at its start all active points are forgotten.

    .. math:: E(x) = \\frac1\\lambda \\Big(1 + \\frac1\\lambda\\Big) \\sqrt{\\frac{8 i + \\ln 4}{n}}, \\qquad
        u(x) = \\frac{\\bar r}{\\max(\\lambda, \\bar c)} + 2 E(x).

    Args:
        lam: λ in (0, 1], a known lower bound on the mean cost.
        lipschitz: L > 0, Lipschitz constant of μ_r/μ_c; at most (L_r + L_c)/λ² (Lemma 1). Balls have radius E/L.
        capacity: most active points of a phase.

    Source: Algorithm 1.

    Deviations: the paper assumes L = 1 "after rescaling"; here the ball's radius is E/L. Points are whole ticks of
    2⁻²⁴.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.BZoom(lam=0.5, lipschitz=11.7)
        >>> round(float(policy.radius(n=100.0, phase=10.0)), 3)
        5.413
    """

    lam: Any = leaf(above=0, at_most=1)
    lipschitz: Any = leaf(above=0)
    capacity: int = static(default=64)

    rests: ClassVar[bool] = True

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        """E."""
        return (1 / self.lam) * (1 + 1 / self.lam) * jnp.sqrt((8 * phase + _LN4) / n)


@pytree
class SinglePhaseBZoom(_RatioZooming):
    """B-Zoom as the paper's experiments run it: one phase, and a radius that knows the budget.

    .. math:: E(x) = \\frac1\\lambda \\Big(1 + \\frac1\\lambda\\Big)
        \\sqrt{\\frac{8 (\\ln B - \\ln \\lambda) + \\ln 4}{n}}, \\qquad
        u(x) = \\frac{\\bar r}{\\max(\\lambda, \\bar c)} + 2 E(x).

    Args:
        budget: B > 0, known in advance.
        lam: λ in (0, 1], a known lower bound on the mean cost.
        lipschitz: L > 0, Lipschitz constant of μ_r/μ_c; balls have radius E/L.
        capacity: most active points.

    Source: §4.

    Deviations: as for :class:`BZoom`.

    Example:
        >>> import jaxbandits as jb
        >>> policy = jb.policies.SinglePhaseBZoom(budget=50_000.0, lam=0.5, lipschitz=11.7)
        >>> round(float(policy.radius(n=1.0, phase=1.0)), 4)
        58.014
    """

    budget: Any = leaf(above=0)
    lam: Any = leaf(above=0, at_most=1)
    lipschitz: Any = leaf(above=0)
    capacity: int = static(default=64)

    phased: ClassVar[bool] = False
    rests: ClassVar[bool] = True

    def check(self, spec: ContinuumSpec) -> None:
        """A budget of at least λ."""
        super().check(spec)
        self.check_known_budget()

    def radius(self, n: jax.Array, phase: jax.Array) -> jax.Array:
        """E."""
        spread = 8 * (jnp.log(self.budget) - jnp.log(self.lam)) + _LN4
        return (1 / self.lam) * (1 + 1 / self.lam) * jnp.sqrt(spread / n)
