"""Exact totals of float32 numbers, for what wrappers of policies add up round by round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import ticks
from jaxbandits.core.ticks import Total

_LARGEST = np.float32(2.0**24)


def add(total: Total, x: jax.Array) -> Total:
    """``total + x``, x rounded to 2⁻²⁴ and cut to ±2²⁴; nothing else is ever rounded."""
    x = jnp.clip(x.astype(jnp.float32), -_LARGEST, _LARGEST)
    whole = jnp.floor(x)
    part = jnp.rint((x - whole) * ticks.ONE).astype(jnp.int32)  # up to 2²⁴: plus carries it
    return ticks.plus(total, Total(whole.astype(jnp.int32), part))


def reported(name: str, total: Total) -> dict[str, jax.Array]:
    """The total's two limbs as named final values."""
    return {f"{name}_whole": total.whole, f"{name}_part": total.part}


def read(final: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Host: what :func:`reported` gave, float64."""
    return ticks.to_units(ticks.join(Total(final[f"{name}_whole"], final[f"{name}_part"])))  # type: ignore[arg-type]
