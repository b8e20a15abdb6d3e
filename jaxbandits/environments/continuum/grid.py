"""A continuum seen on a grid, on the host: means of many points, the best of them, the largest slope."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

CELLS = 2048
"""Cells of the grid on which functions are checked and the best point is looked for."""

FINER = 3
"""Times that the neighbourhood of the best point is looked at 16 times closer."""


def points(instances: int) -> np.ndarray:
    """The points of the grid, f64 ``[instance, point]``."""
    return np.broadcast_to(np.linspace(0, 1, CELLS + 1), (instances, CELLS + 1))


@partial(jax.jit, static_argnames="as_ticks")
def evaluate(world: Any, points: jax.Array, as_ticks: bool) -> tuple[jax.Array, jax.Array]:
    """Both means of a continuum at ``points`` ``[instance, point]``, in ticks or as the functions give them."""

    def at_point(instance: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        if as_ticks:
            return instance.means_with(x, instance.parameters)
        reward, cost = (f(x, instance.parameters) for f in (instance.reward_function, instance.cost_function))
        return jnp.asarray(reward, jnp.float32), jnp.asarray(cost, jnp.float32)

    return jax.vmap(jax.vmap(at_point, in_axes=(None, 0)))(world, points)


def ratio(reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """μ_r/μ_c; −∞ where nothing is paid."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(cost > 0, reward / cost, -np.inf)


def best(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The point of the largest value, ``[instance]`` from ``[instance, point]``."""
    return np.take_along_axis(points, np.argmax(values, axis=1)[:, None], axis=1)[:, 0]


def slopes(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The largest slope of ``values`` ``[instance, point]`` between neighbours of ``x`` ``[point]``."""
    return np.max(np.abs(np.diff(values, axis=1)) / np.diff(x.astype(np.float64)), axis=1)
