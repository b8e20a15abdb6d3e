"""Normal draws of one word by a quantile table: whole numbers, the same in every program."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta
from jaxbandits.core import ticks


def standard_normal(word: jax.Array, clip: float = 6.0) -> jax.Array:
    """A standard normal of 32 random bits, cut off at ±``clip``, elementwise; right to 10⁻⁴.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits._numerics.normal import standard_normal
        >>> words = jnp.array([0, 2**31, int(0.9 * 2**32), 2**32 - 1], jnp.uint32)
        >>> [round(z, 3) for z in standard_normal(words, clip=3.0).tolist()]
        [-3.0, 0.0, 1.282, 3.0]
    """
    whole = beta.quantile_of_word(jnp.asarray(_knots(float(clip))), word)
    return (2 * whole - ticks.ONE).astype(jnp.float32) * np.float32(clip / ticks.ONE)


@cache
def _knots(clip: float) -> np.ndarray:
    """(x + clip) / 2 clip in ticks at the boundaries of the cells."""
    from scipy import special  # type: ignore[import-untyped,unused-ignore]

    x = np.clip(special.ndtri(beta.boundaries()), -clip, clip)
    return np.rint((x + clip) / (2 * clip) * ticks.ONE).astype(np.int32)
