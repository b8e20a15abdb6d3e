"""Random numbers for policies, one per arm, addressed by round, role and arm.

A policy's key is the same in every round, so ``jax.random.normal(key)`` is always the same number.
Here a draw is a pure function of (key, round, role, arm): further arms change none, nor does the
order in which things are drawn. A role says what is drawn for; take :attr:`Role.USER
<jaxbandits.core.streams.Role>` = 34, 36, 38, … up to 62 (a draw owns its role and the next one).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta as laws
from jaxbandits.core import streams
from jaxbandits.core.checks import bad
from jaxbandits.core.streams import Role

__all__ = ["Role", "beta", "gamma", "key", "normal", "uniform"]

_MOST = 1e7  # shapes: what the law of a draw was measured up to


def key(key: jax.Array, round: jax.Array, role: int, arm: jax.Array | int = 0) -> jax.Array:
    """A key for :mod:`jax.random` at this round, role and arm, for any other distribution.

    ``jax.vmap`` it over the arms: a draw of shape ``(K,)`` with one key is another one in a table
    of more columns.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxbandits import draws
        >>> own, round, arms = jax.random.key(0), 5, jnp.arange(3)
        >>> keys = jax.vmap(lambda arm: draws.key(own, round, draws.Role.USER, arm))(arms)
        >>> jax.vmap(jax.random.laplace)(keys).shape
        (3,)
    """
    return streams.typed(streams.policy_words(key, round, role, arm))


def _words(key: jax.Array, round: jax.Array, role: int, arms: int) -> tuple[jax.Array, jax.Array]:
    """Two words for each arm, ``u32[arms]`` each."""
    ids = jax.lax.iota(jnp.uint32, arms)
    words = jax.vmap(lambda arm: streams.policy_words(key, round, role, arm))(ids)
    return words[:, 0], words[:, 1]


def _of_arms(wide: jax.Array, arms: int) -> jax.Array:
    """The first ones of more draws than there are arms, all of which are made (see ``fast_width``)."""
    # XLA on CPU would make those alone that are taken; what a reduction ends with it stores.
    if wide.shape[0] == arms:
        return wide
    first = jax.lax.iota(jnp.int32, 2) == 0
    return jnp.max(jnp.where(first[None, :], wide[:, None], -jnp.inf), axis=1)[:arms]


def _open_uniform(word: jax.Array) -> jax.Array:
    """In (0, 1)."""
    middle = (word.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)
    return jnp.minimum(middle, np.float32(1 - 2.0**-24))


def uniform(key: jax.Array, round: jax.Array, role: int, arms: int) -> jax.Array:
    """Uniform in [0, 1), multiples of 2⁻²⁴, ``f32[arms]``.

    Example:
        >>> import jax
        >>> from jaxbandits import draws
        >>> [round(float(u), 3) for u in draws.uniform(jax.random.key(0), 5, draws.Role.USER, 2)]
        [0.867, 0.163]
    """
    return streams.uniform(_words(key, round, role, arms)[0])


def normal(key: jax.Array, round: jax.Array, role: int, arms: int, *, pair: bool = False) -> Any:
    """Standard normal by Box and Muller, ``f32[arms]``, at most 6.77 in size; ``pair``: two each.

    Example:
        >>> import jax
        >>> from jaxbandits import draws
        >>> first, second = draws.normal(jax.random.key(0), 5, 1, 3, pair=True)
        >>> round(float(first[2]), 6), round(float(second[2]), 6)
        (0.431511, -0.218356)
    """
    width = laws.fast_width(arms)
    first, second = laws._normal_pair(*_words(key, round, role, width))
    return (first[:arms], second[:arms]) if pair else first[:arms]


def beta(key: jax.Array, round: jax.Array, role: int, a: Any, b: Any) -> jax.Array:
    """Beta(a, b) for each arm, ``f32[K]``, as in Thompson sampling.

    Args:
        key, round: what ``select`` got, and ``view.round``.
        role: what it is drawn for; the draw owns ``role + 1``, too.
        a, b: shapes above 0 and at most 10⁷, ``[K]``. Whole numbers (int32) are fastest.

    Raises:
        InputError: shapes out of range, where they are known; where they are traced the draw is
            NaN.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxbandits import draws
        >>> theta = draws.beta(jax.random.key(0), 5, 1, jnp.full(3, 3), jnp.full(3, 5))
        >>> round(float(theta[2]), 6)
        0.448868
    """
    (a, b), arms = _shapes(a=a, b=b)
    width = laws.fast_width(arms)
    words = jnp.stack(_words(key, round, role, width))
    wide = [jnp.pad(x, (0, width - arms), constant_values=1) for x in (a, b)]
    if all(jnp.issubdtype(x.dtype, jnp.integer) for x in (a, b)):
        values = laws.beta_from_words(words, *wide)
    else:
        z = laws._normal_pair(words[0], words[1])
        small = _words(key, round, role + 1, width)
        odds = [_log_gamma(*x) for x in zip(z, wide, small, strict=True)]
        (shape_a, log_a), (shape_b, log_b) = odds
        values = shape_a / (shape_a + shape_b * jnp.exp(log_b - log_a))
    return jnp.where((a > 0) & (b > 0), _of_arms(values, arms), jnp.nan)


def gamma(key: jax.Array, round: jax.Array, role: int, shape: Any, rate: Any = 1.0) -> jax.Array:
    """Gamma(shape) / rate for each arm, ``f32[K]``; arguments and errors as for :func:`beta`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxbandits import draws
        >>> round(float(draws.gamma(jax.random.key(0), 5, 1, jnp.full(3, 4.0))[2]), 5)
        4.55532
    """
    (shape,), arms = _shapes(shape=shape)
    width = laws.fast_width(arms)
    z, _ = laws._normal_pair(*_words(key, round, role, width))
    small, _ = _words(key, round, role + 1, width)
    larger, log = _log_gamma(z, jnp.pad(shape, (0, width - arms), constant_values=1), small)
    values = _of_arms(larger * jnp.exp(log), arms) / jnp.asarray(rate, jnp.float32)
    return jnp.where(shape > 0, values, jnp.nan)


def _log_gamma(z: jax.Array, shape: jax.Array, word: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(s, ln(X/s)) of X ~ Gamma(shape); s = shape, or shape + 1 below 1."""
    # Below 1: X = Gamma(shape + 1) · U^(1/shape)
    shape = shape.astype(jnp.float32)
    larger = jnp.where(shape < 1, shape + 1, shape)
    less = jnp.where(shape < 1, jnp.log(_open_uniform(word)) / shape, 0)
    return larger, laws._log_gamma_over_shape(z, larger) + less


def _shapes(**shapes: Any) -> tuple[list[jax.Array], int]:
    """Shapes as arrays of one size, checked where they are known."""
    for name, value in shapes.items():
        if not isinstance(value, jax.core.Tracer):
            numbers = np.asarray(value, np.float64)
            if not ((numbers > 0) & (numbers <= _MOST)).all():
                raise bad(name, value, "above 0 and at most 10⁷")
    arrays = [jnp.asarray(x) for x in shapes.values()]
    arms = max(x.shape[0] if x.ndim else 0 for x in arrays)
    if not arms or any(x.ndim > 1 for x in arrays):
        given = [list(x.shape) for x in arrays]
        raise bad(" and ".join(shapes), given, "[K], one number for each arm")
    return [jnp.broadcast_to(x, (arms,)) for x in arrays], arms
