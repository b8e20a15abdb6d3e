"""Beta laws: draws from random words for Thompson sampling, and tables of outcomes.

Draws take no key and no loop until acceptance, in float32.

With X ~ Gamma(a) and Y ~ Gamma(b) independent, X / (X + Y) ~ Beta(a, b). Each gamma variate is the
quantile transform of a normal, log(X / a) = s Q(z, s) with s = a**-0.5, where Q is smooth and
replaced by a polynomial. The error of the law is derived and measured in
docs/randomness-and-money.md.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike, NDArray

from jaxbandits.core.checks import bad


def fast_width(draws: int) -> int:
    """How many Beta draws to make side by side where so many are wanted."""
    # XLA on CPU takes vectors of 16 and does a rest of 5 to 15 one by one, each as dear as 16
    # together (docs/benchmarks.md). Beyond some hundred draws the rest no longer matters.
    if draws <= 8:
        return 8
    return draws + -draws % 16 if draws < 16 or (draws % 16 >= 5 and draws < 128) else draws


_Z_SCALE = 6.8  # the polynomial's range of z; Box-Muller reaches sqrt(2 * 33 * log 2) = 6.764

# Q(z, s) = sum_ij _Q[i][j] (z / _Z_SCALE)**i (2 s - 1)**j, see docs/randomness-and-money.md.
# fmt: off
_Q: tuple[tuple[float, ...], ...] = (
    (-0.1710828, -0.1797754, -0.01269841, -0.003594026, 0.0005057393, 0.0001033131,
     6.061426e-05, 8.474928e-06, -4.356469e-05),
    (7.042327, 0.4965753, 0.2705431, 0.01841188, 0.0004983207, -0.0007457763,
     0.0004859361, -0.0005697052, -0.0001738459),
    (-4.065929, -4.492765, -0.6481032, -0.2220174, 0.031309, 0.02571642, -0.0349237, -0.01056633, 0.0182936),
    (2.29557, 4.785603, 2.756952, 0.3847925, 0.09366573, -0.1506613, -0.1144697, 0.05743246, 0.04492961),
    (-0.989408, -2.978491, -2.63692, -0.3520246, -0.6998314, -0.4840525, 1.755837, 0.4290506, -0.8266823),
    (0.1124246, 0.5664078, 0.8559308, -1.737028, -4.598473, 0.01143426, 3.64032, -0.6292679, -1.801318),
    (0.3407999, 2.227438, 1.362993, 1.330341, 19.53243, 11.74242, -23.02162, -6.616462, 10.61586),
    (-0.1430832, -3.056265, -13.62424, -7.67143, 24.07615, 1.484956, -35.98468, 3.766807, 20.3188),
    (-0.224224, -2.113462, 15.06578, 20.35662, -81.42175, -64.86912, 98.80726, 31.64448, -47.88641),
    (-0.637236, 2.446965, 34.50681, 25.51077, -86.17212, 1.252123, 158.8042, -10.43373, -88.37217),
    (0.6856598, 4.741175, -34.92123, -58.10174, 146.323, 130.8708, -190.6388, -61.607, 95.82094),
    (1.406946, 0.3040042, -51.23456, -36.93203, 171.6679, 0.6872236, -319.7464, 9.762084, 173.1144),
    (-0.7931105, -5.303691, 31.29324, 57.60434, -124.793, -115.4339, 171.7782, 53.84779, -88.01757),
    (-1.227333, -1.832559, 40.80311, 28.83573, -159.7674, -8.486415, 291.3416, -0.7852395, -154.7261),
    (0.2996569, 2.016567, -10.27588, -19.91238, 40.83661, 37.76956, -58.35114, -17.60492, 30.18232),
    (0.4027497, 0.8775705, -12.98406, -9.362234, 55.03793, 5.573697, -98.30999, -1.836385, 51.55804),
)
# fmt: on

_OCTANT = 2.0**-29 * np.pi / 4


@jax.jit
def _log_gamma_over_shape(z: jax.Array, shape: jax.Array) -> jax.Array:
    """log(X / shape), f32, of X ~ Gamma(shape) with P(shape, X) = Phi(z); |z| <= 6.8, shape >= 1."""
    s = lax.rsqrt(shape)
    t = z * np.float32(1 / _Z_SCALE)
    v = 2 * s - 1
    q = jnp.zeros_like(t)
    for row in reversed(_Q):
        coefficient = jnp.full_like(v, row[-1])
        for c in reversed(row[:-1]):
            coefficient = coefficient * v + np.float32(c)
        q = q * t + coefficient
    return s * q


@jax.jit
def _normal_pair(w0: jax.Array, w1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normals from two uint32 words (Box-Muller), |z| <= 6.764."""
    # The angle lies in the first octant, and the top three bits of w1 choose the octant: two short
    # Taylor polynomials serve as sine and cosine (error below 4e-7).
    radius = jnp.sqrt(-2 * jnp.log((w0.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)))
    low = lax.convert_element_type(w1 & np.uint32(0x1FFFFFFF), jnp.int32).astype(jnp.float32)
    angle = (low + 0.5) * np.float32(_OCTANT)
    x = angle * angle
    sine = angle * (
        1 + x * (np.float32(-1 / 6) + x * (np.float32(1 / 120) + x * np.float32(-1 / 5040)))
    )
    cosine = 1 + x * (
        -0.5 + x * (np.float32(1 / 24) + x * (np.float32(-1 / 720) + x * np.float32(1 / 40320)))
    )
    swap = (w1 & np.uint32(1 << 29)) != 0
    first = radius * jnp.where(swap, sine, cosine)
    second = radius * jnp.where(swap, cosine, sine)
    first = jnp.where((w1 & np.uint32(1 << 30)) != 0, -first, first)
    second = jnp.where((w1 & np.uint32(1 << 31)) != 0, -second, second)
    return first, second


def beta_from_words(
    words: jax.Array, a: ArrayLike | jax.Array, b: ArrayLike | jax.Array
) -> jax.Array:
    """One Beta(a, b) draw per pair of words ``u32[2, ...]``, elementwise, float32 in (0, 1].

    a, b: counts in [1, 1e7], not necessarily whole, broadcastable against words[0]. CDF error and
    speed: see docs/randomness-and-money.md.
    """
    shape_a = jnp.asarray(a, jnp.float32)
    shape_b = jnp.asarray(b, jnp.float32)
    z_a, z_b = _normal_pair(words[0], words[1])
    z_a, z_b, shape_a, shape_b = jnp.broadcast_arrays(z_a, z_b, shape_a, shape_b)
    log_odds = _log_gamma_over_shape(z_b, shape_b) - _log_gamma_over_shape(z_a, shape_a)
    return shape_a / (shape_a + shape_b * jnp.exp(log_odds))


# --- Tabulated Beta laws: an arm's outcome, in whole ticks, is a piecewise linear function of one uniform word
#
# Knots lie on ``CELLS`` = 1022 fixed cells of [0, 2**32): 1/512 wide for 1/16 <= u <= 15/16, then 32
# cells an octave over 7 octaves towards either end, then 31 equal cells of 2**-16, and two an octave
# in the last 2**-16, down to single words. The lookup is integer arithmetic, the same on every
# device and in every compilation, and the law's mean is an exact integer sum. Its error is derived
# and measured in docs/randomness-and-money.md.

TICK_BITS = 24  # outcomes of tabulated arms are whole ticks, in [0, 2**TICK_BITS]
# A law with two shapes of this size is constant but for 10⁻⁵; SciPy's quantiles end at 10¹⁶.
MOST_SHAPE = 1e9
_MOST_ERROR = 1e-4  # of a table's mean: see docs/randomness-and-money.md
# Of a fraction of a cell: the most for which two uint32 products make ``interpolate`` exact
FRACTION_BITS = 20

# The grid, in words: v = min(w, ~w) < 2**31 has its leading bit at e, clipped to [_E_MIN, _E_MAX];
# cells are 2**(e - _SUB_BITS) words wide, and the two sides mirror each other. In place of the
# outermost cell, v < 2**_TAIL, stand the _TAIL_CELLS of the same grid with e >= 1 and one sub-bit.
_E_MIN = 21
_E_MAX = 28
_SUB_BITS = 5
_TAIL = _E_MIN - _SUB_BITS
_TAIL_CELLS = 2 * _TAIL
_SIDE = ((_E_MAX - _E_MIN) << _SUB_BITS) + (1 << (31 - _E_MAX + _SUB_BITS)) + _TAIL_CELLS - 1

CELLS = 2 * _SIDE  # 1022
KNOTS = CELLS + 1  # cell c lies between knots c and c + 1


def cell_of(word: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(cell, fraction) of uniform words ``u32[...]``: i32 below CELLS, u32 below 2**FRACTION_BITS.

    The pair rises with the word. Gather knots[..., cell] and knots[..., cell + 1], then
    ``interpolate``.
    """
    upper = word >= np.uint32(1 << 31)
    v = jnp.where(upper, ~word, word)
    in_tail, e = v < np.uint32(1 << _TAIL), 31 - lax.clz(v).astype(jnp.int32)
    least, sub_bits = jnp.where(in_tail, 1, _E_MIN), jnp.where(in_tail, 1, _SUB_BITS)
    e = jnp.clip(e, least, _E_MAX)
    width_bits = (e - sub_bits).astype(jnp.uint32)
    side = ((e - least) << sub_bits) + lax.shift_right_logical(v, width_bits).astype(jnp.int32)
    side = jnp.where(in_tail, side, side + (_TAIL_CELLS - 1))
    cell = jnp.where(upper, CELLS - 1 - side, side)
    fraction = lax.shift_left(word, np.uint32(32) - width_bits) >> np.uint32(32 - FRACTION_BITS)
    return cell, fraction


def interpolate(lo: jax.Array, hi: jax.Array, fraction: jax.Array) -> jax.Array:
    """lo + floor((hi - lo) fraction / 2**FRACTION_BITS), int32 ticks 0 <= lo <= hi, exactly."""
    # d = 2**12 p + q: floor(d f / 2**20) = floor((p f + floor(q f / 2**12)) / 2**8); products and
    # sum fit in 32 bits because f < 2**20 and p <= 2**12, with q = 0 where p = 2**12.
    d = (hi - lo).astype(jnp.uint32)
    high = (d >> np.uint32(12)) * fraction
    low = (d & np.uint32(0xFFF)) * fraction
    return lo + ((high + (low >> np.uint32(12))) >> np.uint32(FRACTION_BITS - 12)).astype(jnp.int32)


def quantile_of_word(knots: jax.Array, word: jax.Array) -> jax.Array:
    """T(word), int32[...] ticks, rising in uint32[...] words; knots: a row of ``quantile_table``."""
    cell, fraction = cell_of(word)
    return interpolate(knots[cell], knots[cell + 1], fraction)


def cell_bits() -> NDArray[np.int64]:
    """log2 of the number of words in each cell, int64[CELLS]."""
    tail = np.repeat(np.arange(-1, _TAIL - 1), 2).clip(0)
    octaves = np.repeat(np.arange(_E_MIN, _E_MAX), 1 << _SUB_BITS) - _SUB_BITS
    side = np.full(_SIDE, _E_MAX - _SUB_BITS)
    inner = np.concatenate([tail, np.full((1 << _SUB_BITS) - 1, _TAIL), octaves])
    side[: inner.size] = inner
    return np.concatenate([side, side[::-1]]).astype(np.int64)


def boundaries() -> NDArray[np.float64]:
    """u at each knot, float64[KNOTS], multiples of 2**-32; half a word for unbounded ends."""
    words = np.concatenate([[0.5], np.cumsum(np.left_shift(1, cell_bits()))])
    words[-1] -= 0.5
    return words / 2.0**32


def _log_sigmoid(y: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-np.logaddexp(0.0, -y), np.float64)


_STRIDE = 8  # of the quantiles that are solved for; divides 32, hence every octave


def _exact_knots(alpha: NDArray[np.float64], beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of Beta(alpha[i], beta[i]) at the cell boundaries, float64[i, KNOTS]."""
    # betaincinv costs about 1 us, so only every 8th boundary (and each of the 63 outermost) is
    # solved for. Between them y = log(x / (1 - x)) is a cubic Hermite interpolant in u with the
    # exact slopes, limited to three secants where a solution has underflowed: CDF error 1e-5.
    from scipy import special  # type: ignore[import-untyped,unused-ignore]

    outer = (1 << _SUB_BITS) + _TAIL_CELLS - 1
    u = boundaries()
    v = 1 - u  # exact
    inner = np.arange(outer, CELLS - outer + 1, _STRIDE)
    nodes = np.concatenate([np.arange(outer), inner, np.arange(CELLS - outer + 1, KNOTS)])
    a, b = alpha[:, None], beta[:, None]
    lower, upper = nodes[nodes <= _SIDE], nodes[nodes > _SIDE]
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        x_low = special.betaincinv(a, b, u[lower])
        x_high = special.betaincinv(b, a, v[upper])
        y = np.concatenate([special.logit(x_low), -special.logit(x_high)], axis=1)
        y = np.maximum.accumulate(np.clip(y, -745.0, 745.0), axis=1)
        log_slope = special.betaln(a, b) - a * _log_sigmoid(y) - b * _log_sigmoid(-y)
        slope = np.exp(np.minimum(log_slope, 600.0))
        x = np.empty((alpha.size, KNOTS))
        x[:, nodes] = special.expit(y)
        first = int(np.searchsorted(nodes, outer))
        y, slope = y[:, first : first + inner.size], slope[:, first : first + inner.size]
        h = np.diff(u[inner])
        rise = np.diff(y, axis=1)
        m0 = np.minimum(slope[:, :-1] * h, 3 * rise)
        m1 = np.minimum(slope[:, 1:] * h, 3 * rise)
        for k in range(1, _STRIDE):
            # cells inside one node interval are equally wide, so the parameter is k / _STRIDE
            t = k / _STRIDE
            bend = t * (1 - t) * ((1 - t) * m0 - t * m1 + (2 * t - 1) * rise)
            x[:, inner[:-1] + k] = special.expit(y[:, :-1] + t * rise + bend)
    return x


def _centred(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Interior knots moved by -(h0**2 + h1**2) / 24 x''(u): the mean is right to second order."""
    # At most by a quarter of the smaller neighbouring step, which keeps the knots in order.
    h = np.ldexp(1.0, cell_bits() - 32)
    step = np.diff(x, axis=1)
    slope = step / h
    curvature = 2 * np.diff(slope, axis=1) / (h[:-1] + h[1:])
    move = (h[:-1] ** 2 + h[1:] ** 2) / 24 * curvature
    limit = np.minimum(step[:, :-1], step[:, 1:]) / 4
    out = x.copy()
    out[:, 1:-1] -= np.clip(move, -limit, limit)
    return out


def _mean_ticks(knots: NDArray[np.int32]) -> NDArray[np.float64]:
    """The exact mean of T(U) over all words, in ticks, rounded once; knots int32[i, KNOTS]."""
    # A cell of 2**n words has M = 2**min(n, FRACTION_BITS) equally likely fractions, and for d = hi
    # - lo sum_{j < M} floor(d j / M) = ((d - 1) (M - 1) + gcd(d, M) - 1) / 2: at most 2**56.
    bits = cell_bits()
    m = np.left_shift(np.int64(1), np.minimum(bits, FRACTION_BITS))
    repeats = np.left_shift(np.int64(1), np.maximum(bits - FRACTION_BITS, 0))
    lo = knots[:, :-1].astype(np.int64)
    d = knots[:, 1:] - lo
    gcd = (d | m) & -(d | m)
    total = np.sum(repeats * (m * lo + ((d - 1) * (m - 1) + gcd - 1) // 2), axis=1)
    return np.asarray(total / 2.0**32, np.float64)


def mean_of(alpha: NDArray[np.float64], beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """α/(α + β), where no sum overflows."""
    large, small = np.maximum(alpha, beta), np.minimum(alpha, beta)
    minor = small / large / (1 + small / large)
    return np.where(alpha > beta, 1 - minor, minor)


def _misses_mean(
    mean_ticks: NDArray[np.float64], alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Is the mean of a table not α/(α + β) to 10⁻⁴?"""
    return np.abs(np.ldexp(mean_ticks, -TICK_BITS) - mean_of(alpha, beta)) > _MOST_ERROR


def _with_mean(knots: NDArray[np.int32], target: float) -> NDArray[np.int32]:
    """Knots set to their neighbours, one by one, until the law's mean is ``target`` (ticks)."""
    width = np.ldexp(1.0, cell_bits() - 32)
    weight = np.concatenate([[0.0], (width[:-1] + width[1:]) / 2, [0.0]])
    x = knots.astype(np.float64)
    missing = target - float(_mean_ticks(knots[None])[0])
    inner = range(1, KNOTS - 1)
    for j in reversed(inner) if missing > 0 else inner:
        room = x[j + 1 if missing > 0 else j - 1] - x[j]
        x[j] += np.sign(room) * min(abs(room), abs(missing) / weight[j])
        missing -= np.sign(room) * min(abs(room) * weight[j], abs(missing))
        if missing == 0:
            break
    return np.rint(x).astype(np.int32)


def refuse_inexact(
    argument: str,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    mean_ticks: NDArray[np.float64],
) -> None:
    """Raise :class:`~jaxbandits.core.checks.InputError` if a mean is not α/(α + β) to 10⁻⁴."""
    if (wrong := _misses_mean(mean_ticks, alpha, beta)).any():
        shapes = float(alpha[wrong].flat[0]), float(beta[wrong].flat[0])
        must = "shapes for which a table of the law has the right mean to 1e-4"
        raise bad(argument, shapes, must)


def quantile_table(
    alpha: ArrayLike, beta: ArrayLike
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Host: tabulated Beta laws, (knots ``i32[..., KNOTS]``, exact means ``f64[...]``), in ticks.

    alpha, beta: broadcastable, above 0; accuracy is measured for 1e-3 to 1e3. The mean, not alpha /
    (alpha + beta), is the arm's true one; the two differ by less than 1e-5 unless both shapes are
    below 0.1. About 230 us a law on one core.
    """
    a, b = np.broadcast_arrays(np.asarray(alpha, np.float64), np.asarray(beta, np.float64))
    if not (np.all(np.isfinite(a) & (a > 0)) and np.all(np.isfinite(b) & (b > 0))):
        raise ValueError("shape parameters must be positive and finite")
    flat_a, flat_b = a.ravel(), b.ravel()
    knots = np.empty((flat_a.size, KNOTS), np.int32)
    mean = np.empty(flat_a.size, np.float64)
    for start in range(0, flat_a.size, 256):  # blocks that stay in cache
        rows = slice(start, start + 256)
        x = _centred(np.maximum.accumulate(_exact_knots(flat_a[rows], flat_b[rows]), axis=1))
        ticks: NDArray[Any] = np.rint(np.ldexp(x, TICK_BITS)).astype(np.int32)
        knots[rows] = np.maximum.accumulate(ticks, axis=1)
        mean[rows] = _mean_ticks(knots[rows])
    # Nearly coins, whose jump from 0 to 1 falls between wide cells
    for i in np.flatnonzero(_misses_mean(mean, flat_a, flat_b)):
        knots[i] = _with_mean(knots[i], float(np.ldexp(mean_of(flat_a[i], flat_b[i]), TICK_BITS)))
        mean[i] = _mean_ticks(knots[i][None])[0]
    return knots.reshape(*a.shape, KNOTS), mean.reshape(a.shape)
