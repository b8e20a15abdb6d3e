"""The random numbers from which a run's own means are made: each has an address of its own, as every other draw."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core import streams
from jaxbandits.core.streams import Domain

_AT_ONCE = 1 << 15  # words of one call of the compiled program, so that it is compiled once


def mean_uniforms(seed: int, instance: int, runs: Sequence[int], draw: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Uniforms in (0, 1), odd multiples of 2⁻²⁵, for the means of a file's instance: float64 ``[run, n, 2]``.

    The address of a pair is (seed, instance, run, ``Domain.MEANS``, draw, arm): which other instances, runs, arms or
    policies there are changes none.

    Args:
        seed: of the comparison.
        instance: the instance's number in the file.
        runs: their ids.
        draw: number of the draw, ``[n]``.
        arm: number of the arm, ``[n]``.

    Example:
        >>> import numpy as np
        >>> both = mean_uniforms(0, 3, [0, 1], np.zeros(2, int), np.arange(2))
        >>> alone = mean_uniforms(0, 3, [1], np.zeros(1, int), np.ones(1, int))
        >>> both.shape, bool((both[1, 1] == alone[0, 0]).all())
        ((2, 2, 2), True)
    """
    count, many = len(runs), draw.size
    place = np.empty((3, count, many), np.uint32)
    place[0], place[1], place[2] = np.asarray(runs, np.uint32)[:, None], draw, arm
    flat, total = place.reshape(3, -1), count * many
    root = jax.random.key(seed)
    words = np.empty((total, 2), np.uint32)
    for first in range(0, total, _AT_ONCE):
        part = flat[:, first : first + _AT_ONCE]
        padded = np.zeros((3, _AT_ONCE), np.uint32)
        padded[:, : part.shape[1]] = part
        words[first : first + part.shape[1]] = np.asarray(_words(root, np.uint32(instance), *padded))[: part.shape[1]]
    return ((words >> np.uint32(8)).reshape(count, many, 2) + 0.5) * 2.0**-24


LARGEST_UNIFORM = 1 - 2.0**-25
"""What no number of :func:`mean_uniforms` is above."""


@functools.partial(jax.jit)
def _words(root: jax.Array, instance: jax.Array, run: jax.Array, draw: jax.Array, arm: jax.Array) -> jax.Array:
    def one(run: jax.Array, draw: jax.Array, arm: jax.Array) -> jax.Array:
        key = streams.domain_key(streams.lane_key(root, instance, run), Domain.MEANS)
        return streams.words(key, draw, arm)

    return jax.vmap(one)(run, jnp.asarray(draw), arm)
