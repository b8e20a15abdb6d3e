"""The two families of continua in the B-Zoom paper's experiments (Trovò et al., ECAI 2016, §4)."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import numbers
from jaxbandits.environments.continuum.noise import Bernoulli, NoNoise
from jaxbandits.environments.continuum.world import Continuum

_SHARPNESS = 500.0
_STEEPEST = float(np.sqrt(2 * _SHARPNESS / math.e))  # largest slope of exp(−500 u²)


def _bump(x: jax.Array, centre: jax.Array) -> jax.Array:
    return jnp.exp(-_SHARPNESS * jnp.square(x - centre))


def _rising(x: jax.Array, p: Any) -> jax.Array:
    return 0.95 + 0.05 * x


def _valley(x: jax.Array, p: Any) -> jax.Array:
    return p["lam"] + 0.2 * (1 - _bump(x, p["centre"]))


def _hill(x: jax.Array, p: Any) -> jax.Array:
    return p["peak"] * _bump(x, p["centre"])


def _constant(x: jax.Array, p: Any) -> jax.Array:
    return p["cost"]


def cost_valley(centre: Any, lam: Any) -> Continuum:
    """Table 1: μ_r(x) = 0.95 + 0.05x, μ_c(x) = λ + (1 − exp(−500(x − x̃)²))/5, both Bernoulli.

    Args:
        centre: x̃ in [0, 1], ``[instance]``.
        lam: λ in (0, 0.8], the smallest mean cost, scalar or ``[instance]``.

    Raises:
        InputError: values out of range, or shapes that do not fit.

    Example:
        >>> import jaxbandits as jb
        >>> world = jb.environments.cost_valley([0.25, 0.5], lam=0.1)
        >>> world.best_points().round(2).tolist()
        [0.25, 0.5]
    """
    x, level = _instances("centre", centre, 0, 1), _instances("lam", lam, 0, 0.8)
    if (level == 0).any():
        raise bad("lam", 0.0, "above 0")
    if level.size not in (1, x.size):
        raise bad("lam", level.shape, f"one number, or [{x.size}] (one per instance)")
    return Continuum.of(
        _rising,
        _valley,
        lipschitz_reward=0.05,
        lipschitz_cost=0.2 * _STEEPEST,
        parameters={"centre": x, "lam": np.broadcast_to(level, x.shape)},
    )


def reward_hill(centre: Any, peak: Any = 0.2, cost: Any = 0.5) -> Continuum:
    """Table 2: Bernoulli rewards with μ_r(x) = peak · exp(−500(x − x̃)²), and one fixed cost without noise.

    Args:
        centre: x̃ in [0, 1], ``[instance]``.
        peak: the largest mean reward, in (0, 1].
        cost: what every pull costs, in (0, 1].

    Raises:
        InputError: values out of range.

    Example:
        >>> import jaxbandits as jb
        >>> jb.environments.reward_hill([0.3]).best_points().round(2).tolist()
        [0.3]
    """
    x, height, price = (
        _instances("centre", centre, 0, 1),
        _instances("peak", peak, 0, 1),
        _instances("cost", cost, 0, 1),
    )
    for name, value in (("peak", height), ("cost", price)):
        if value.size != 1 or (value == 0).any():
            raise bad(name, value.tolist(), "one number in (0, 1]")
    return Continuum.of(
        _hill,
        _constant,
        lipschitz_reward=float(height[0]) * _STEEPEST,
        lipschitz_cost=0.0,
        parameters={
            name: np.broadcast_to(v, x.shape) for name, v in (("centre", x), ("peak", height), ("cost", price))
        },
        reward_noise=Bernoulli(),
        cost_noise=NoNoise(),
    )


def _instances(name: str, value: Any, low: float, high: float) -> np.ndarray:
    array = np.atleast_1d(numbers(name, value))
    wrong = ~((array >= low) & (array <= high))
    if array.ndim != 1 or array.size == 0 or wrong.any():
        raise bad(name, array[wrong].tolist()[:3] or array.shape, f"numbers from {low:g} to {high:g}, [instance]")
    return array
