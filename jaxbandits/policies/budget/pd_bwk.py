"""PD-BwK with one resource (Badanidiyuru, Kleinberg, Slivkins: Bandits with knapsacks, JACM 65, 2018)."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import numbers
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.policies.base.index import IndexPolicy


def rad(mean: jax.Array, n: jax.Array, c_rad: jax.Array) -> jax.Array:
    """rad(ν, N) = √(C_rad ν / N) + C_rad / N."""
    return jnp.sqrt(c_rad * mean / n) + c_rad / n


@pytree
class PDBwK(IndexPolicy):
    """PD-BwK, the primal-dual policy, where money is the only resource.

    .. math:: \\frac{\\min(\\bar r_k + \\mathrm{rad}(\\bar r_k, n_k), 1)}
        {\\max(\\bar c_k - \\mathrm{rad}(\\bar c_k, n_k), 0)}, \\qquad
        \\mathrm{rad}(\\nu, N) = \\sqrt{C_{rad}\\, \\nu / N} + C_{rad} / N;

    +∞ where the denominator is 0. With one resource and no horizon the dual weights are one common factor, whose rate
    ε = √(ln d / B) is 0 besides, so nothing of them remains. Leaps: the index does not depend on t at all.

    Args:
        c_rad: C_rad > 0, a constant of order ln(dTm) that the paper leaves open. :meth:`for_budget` gives the value
            that the BTS paper's comparison used, ¼ ln(B K), which needs the budget.

    Source: §2 and §5 of the paper; its radius is rebuilt from the text and its Claim 4.6.

    Example:
        >>> import jaxbandits as jb
        >>> round(float(jb.policies.PDBwK.for_budget(1e4, arms=10).c_rad), 6)
        2.878231
    """

    c_rad: Any = leaf(above=0)

    rests: ClassVar[bool] = True

    @classmethod
    def for_budget(cls, budget: Any, arms: Any) -> PDBwK:
        """With C_rad = ¼ ln(B K), at least 0.1; arrays ``[instance]`` give one value per instance."""
        given = [numbers(name, value) for name, value in (("budget", budget), ("arms", arms))]
        for name, x in zip(("budget", "arms"), given, strict=True):
            if (wrong := ~(np.isfinite(x) & (x > 0))).any():
                raise bad(name, float(x[wrong].flat[0]), "a finite number above 0")
        c_rad = np.maximum(0.25 * np.log(np.multiply(*given)), 0.1)
        return cls(c_rad=c_rad if c_rad.ndim == 0 else np.atleast_2d(c_rad))

    def score(self, arms: Arms) -> jax.Array:
        """min(r̄ + rad(r̄, n), 1) / max(c̄ − rad(c̄, n), 0)."""
        upper = jnp.minimum(arms.mean_reward + rad(arms.mean_reward, arms.n, self.c_rad), 1)
        lower = arms.mean_cost - rad(arms.mean_cost, arms.n, self.c_rad)
        return jnp.where(lower > 0, upper / lower, jnp.inf)
