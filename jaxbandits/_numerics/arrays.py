"""Arrays: sums and reductions fast in XLA on CPU, constants by device, argument checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.core.checks import InputError, bad, numbers, refuse

if TYPE_CHECKING:
    # Users give numbers, arrays or lists; inside of a compiled program the same field is a traced
    # array.
    ArrayLike = Any
else:
    from numpy.typing import ArrayLike as ArrayLike

_WINDOW = 32


def positive(argument: str, value: Any, may_be: str = "a finite number above 0") -> np.ndarray:
    """``value`` as float64, every number finite and above 0."""
    array = numbers(argument, value, may_be)
    refuse(argument, array, ~(np.isfinite(array) & (array > 0)), may_be)
    return array


def per_instance(
    argument: str, array: np.ndarray, instances: int, core: tuple[int, ...] = ()
) -> np.ndarray:
    """``[instance, *core]`` from an array of that shape or of shape ``core``."""
    shapes = f"one number, or [{instances}]"
    if core:
        shapes = f"[{core[0]}], one for each resource, or [{instances}, {core[0]}]"
    if array.shape not in (core, (instances, *core)):
        given = f"an array of shape {array.shape}" if array.ndim else "one number"
        raise InputError(f"{argument}: {given} given; it must be {shapes} (one per instance)")
    return np.broadcast_to(array, (instances, *core))


def one_of(argument: str, value: Any, names: Iterable[str]) -> None:
    """Refuse a ``value`` that is not one of these names."""
    if not isinstance(value, str) or value not in (names := tuple(names)):
        raise bad(argument, value, " or ".join(map(repr, names)))


def prefix_sums(x: jax.Array) -> jax.Array:
    """``jnp.cumsum(x)`` of ``i32[n]``: inside parts of sixteen (CPU) or eight, then over the parts."""
    # Whole numbers add up to the same bits in any order. On CPU, XLA sums n windows of up to n
    # numbers: 128 rows of 64 took 26 µs, and 4.4 in parts of eight. Parts of sixteen fill the
    # widest vectors: a macro-step of the leap engine takes 0.82 to 0.88 of its time with eight.
    return jax.lax.platform_dependent(
        x, cpu=partial(_sums_by_parts, 16), default=partial(_sums_by_parts, 8)
    )


def _sums_by_parts(size: int, x: jax.Array) -> jax.Array:
    n = x.shape[0]
    parts = jnp.pad(x, (0, -n % size)).reshape(-1, size)
    at, part = jax.lax.iota(jnp.int32, size), jax.lax.iota(jnp.int32, parts.shape[0])
    inside = _sum(jnp.where(at[:, None] <= at[None, :], parts[:, :, None], 0), 1)
    if n <= size:
        return inside[0, :n]
    before = _sum(jnp.where(part[:, None] < part[None, :], inside[:, -1, None], 0), 0)
    return (inside + before[:, None]).reshape(-1)[:n]


def reduced(
    op: Callable[[jax.Array, jax.Array], jax.Array], x: jax.Array, identity: Any
) -> jax.Array:
    """``x[n]`` reduced by max, min, or: an ``op`` for which order and repetition change no bit."""
    # Of more than 32 numbers XLA on CPU makes windows, one number after the other. So halves, which
    # overlap as they may, are joined first: 256 rows of 100 take 3 µs instead of 22. Beyond 16
    # times as many, the program would be longer than it is worth; elsewhere a half is a launch.

    def at_once(x: jax.Array) -> jax.Array:
        return jax.lax.reduce(x, np.asarray(identity, x.dtype), op, (0,))

    def by_halves(x: jax.Array) -> jax.Array:
        n = x.shape[0]
        while _WINDOW < n <= 16 * _WINDOW:
            half = _WINDOW << (((n - 1) // _WINDOW).bit_length() - 1)
            x, n = op(x[:half], x[n - half :]), half
        return at_once(x)

    return jax.lax.platform_dependent(x, cpu=by_halves, default=at_once)


def inner_product(x: jax.Array, y: jax.Array) -> jax.Array:
    """⟨x, y⟩ along the last axis, the same bits in every program: products rounded, then added."""
    # A compiler may fuse a product into its sum, and does so in some programs only. Through a
    # choice it cannot, and none knows that a product is a number. (What is none counts 0.)

    def product(i: int) -> jax.Array:
        rounded = x[..., i] * y[..., i]
        return jnp.where(jnp.isnan(rounded), 0, rounded)

    total = product(0)
    for i in range(1, x.shape[-1]):
        total = total + product(i)
    return total


def _sum(x: jax.Array, axis: int) -> jax.Array:
    return jnp.sum(x, axis=axis, dtype=jnp.int32)


def by_device(*, cpu: float, accelerator: float) -> jax.Array:
    """``cpu`` in a program for CPU, else ``accelerator``: ``f32[]``, a compiled constant."""
    return jax.lax.platform_dependent(
        cpu=lambda: jnp.float32(cpu), default=lambda: jnp.float32(accelerator)
    )
