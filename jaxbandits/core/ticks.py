"""Exact money: whole ticks and two-limb totals.

A reward, cost or consumption is a whole number of *ticks*, one tick being 2⁻²⁴ of the bound that
the environment states. One outcome is an int32 of at most ``ONE`` = 2²⁴ ticks in size. A running
total is a :class:`Total`: the whole units and the ticks left over, both int32, so 2³¹ units fit and
no sum ever rounds. Integer sums are associative: a prefix sum over a block of outcomes gives the
very bits that one-by-one adding gives.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

BITS = 24
ONE = 1 << BITS
_MASK = ONE - 1
_TICK = np.float32(2.0**-BITS)


class Total(NamedTuple):
    """Exactly ``whole + part · 2⁻²⁴`` units; 0 ≤ part < 2²⁴, so ``whole`` carries the sign."""

    whole: jax.Array  # i32[...]
    part: jax.Array  # i32[...]


def zero(shape: tuple[int, ...] = ()) -> Total:
    """The empty total, of any shape."""
    return Total(jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.int32))


def add(total: Total, ticks: jax.Array) -> Total:
    """``total + ticks``, ``ticks`` of size below 2³¹ − 2²⁴ (some 126 full outcomes at once)."""
    part = total.part + ticks
    return Total(total.whole + (part >> BITS), part & _MASK)


def plus(a: Total, b: Total) -> Total:
    """Sum of two totals."""
    part = a.part + b.part
    return Total(a.whole + b.whole + (part >> BITS), part & _MASK)


def minus(a: Total, b: Total) -> Total:
    """Difference of two totals, exact: floats would cancel here."""
    part = a.part - b.part
    return Total(a.whole - b.whole + (part >> BITS), part & _MASK)


def count(n: jax.Array) -> Total:
    """The total of ``n`` whole units."""
    return Total(n, 0 * n)  # NumPy in, NumPy out: on the host nothing compiles


def times(ticks: jax.Array, n: jax.Array) -> Total:
    """``ticks · n`` exactly, for 0 ≤ ticks ≤ 2²⁴ and 0 ≤ n < 2³¹."""
    # The 55-bit product is built from 12-bit by 16-bit pieces, each of which fits an int32.
    high, low = ticks >> 12, ticks & 0xFFF  # ticks = high·2¹² + low
    result = zero(jnp.broadcast_shapes(jnp.shape(ticks), jnp.shape(n)))
    for shift in (0, 16):
        piece = (n >> shift) & 0xFFFF
        for digits, place in ((low, shift), (high, shift + 12)):
            product = digits * piece  # ≤ 2¹²·2¹⁶ < 2³¹ in units of 2^place ticks
            if place >= BITS:
                result = Total(result.whole + (product << (place - BITS)), result.part)
            else:
                keep = BITS - place
                whole, part = product >> keep, (product & ((1 << keep) - 1)) << place
                result = plus(result, Total(whole, part))
    return result


def quotient(total: Total, n: jax.Array) -> jax.Array:
    """⌊total / n⌋ in ticks, exact; 0 ≤ total ≤ n units, 1 ≤ n < 2³¹. Long division by bits."""
    rest, by = total.whole.astype(jnp.uint32), n.astype(jnp.uint32)
    digits = jnp.zeros_like(rest)
    for bit in range(BITS, -1, -1):
        if bit < BITS:
            rest = 2 * rest + ((total.part >> bit) & 1).astype(jnp.uint32)
        fits = rest >= by
        digits = 2 * digits + fits.astype(jnp.uint32)
        rest = jnp.where(fits, rest - by, rest)
    return digits.astype(jnp.int32)


def reached(total: Total, goal: Total) -> jax.Array:
    """``total ≥ goal``."""
    return (total.whole > goal.whole) | ((total.whole == goal.whole) & (total.part >= goal.part))


def exceeds(total: Total, goal: Total) -> jax.Array:
    """``total > goal``."""
    return (total.whole > goal.whole) | ((total.whole == goal.whole) & (total.part > goal.part))


def smaller(a: Total, b: Total) -> Total:
    """The smaller of two totals, elementwise."""
    take_a = reached(b, a)
    return Total(jnp.where(take_a, a.whole, b.whole), jnp.where(take_a, a.part, b.part))


def larger(a: Total, b: Total) -> Total:
    """The larger of two totals, elementwise."""
    take_a = reached(a, b)
    return Total(jnp.where(take_a, a.whole, b.whole), jnp.where(take_a, a.part, b.part))


def to_float(total: Total) -> jax.Array:
    """Units as float32, rounded once: scaling by 2⁻²⁴ is exact, so only the final sum rounds."""
    return total.whole.astype(jnp.float32) + total.part.astype(jnp.float32) * _TICK


def ticks_to_float(ticks: jax.Array) -> jax.Array:
    """One outcome's ticks as float32 units (exact for 0 … 2²⁴)."""
    return ticks.astype(jnp.float32) * _TICK


def spread(x: jax.Array) -> jax.Array:
    """``x(1 − x)`` of an outcome to a tick, 0 for x ∈ {0, 1}; shape, unit as ``x`` (ticks)."""
    y = ONE - x
    xh, xl, yh, yl = x >> 12, x & 0xFFF, y >> 12, y & 0xFFF
    middle = xh * yl + xl * yh + ((xl * yl) >> 12)
    return xh * yh + ((middle + (1 << 11)) >> 12)


# --- host side (NumPy int64) -----------------------------------------------------------------------------------


def from_units(units: np.typing.ArrayLike) -> np.ndarray:
    """Nearest whole ticks of values in units, as int64. Raises nothing: ranges are checked before."""
    return np.rint(np.asarray(units, np.float64) * ONE).astype(np.int64)


def floor_from_units(units: np.typing.ArrayLike) -> np.ndarray:
    """Ticks rounded down, as for budgets and limits: no more is granted than was given."""
    return np.floor(np.asarray(units, np.float64) * ONE).astype(np.int64)


def to_units(ticks: np.typing.ArrayLike) -> np.ndarray:
    """Ticks (any integer) as float64 units."""
    return np.asarray(ticks, np.float64) / ONE


def split(ticks: np.ndarray) -> Total:
    """Host int64 ticks as a :class:`Total` of NumPy int32 arrays."""
    ticks = np.asarray(ticks, np.int64)
    return Total((ticks >> BITS).astype(np.int32), (ticks & _MASK).astype(np.int32))  # type: ignore[arg-type]


def join(total: Total) -> np.ndarray:
    """A :class:`Total` as host int64 ticks."""
    return (np.asarray(total.whole, np.int64) << BITS) + np.asarray(total.part, np.int64)
