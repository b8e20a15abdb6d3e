"""Beta draws from random words, for Thompson sampling: no key, no loop until acceptance, float32.

With X ~ Gamma(a) and Y ~ Gamma(b) independent, X / (X + Y) ~ Beta(a, b). Each gamma variate is the quantile transform
of a normal, log(X / a) = s Q(z, s) with s = a**-0.5, where Q is smooth and replaced by a polynomial. The error of the
law is derived and measured in docs/beta-laws.md.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

WORDS_PER_DRAW = 2
"""uint32 words that one Beta draw consumes: one threefry2x32 block."""


def fast_width(draws: int) -> int:
    """How many Beta draws to make side by side where so many are wanted.

    XLA on CPU takes vectors of 16 and does a rest of 5 to 15 one by one, each as dear as 16 together: 128 lanes of
    K = 8, 10 and 16 arms took 20, 156 and 29 µs a round, K = 10 padded to 16 takes 25 (one core; docs/benchmarks.md).
    Beyond some hundred draws the rest no longer matters.

    Example:
        >>> [fast_width(draws) for draws in (2, 8, 10, 16, 18, 28, 200)]
        [8, 8, 16, 16, 18, 32, 200]
    """
    if draws <= 8:
        return 8
    return draws + -draws % 16 if draws < 16 or (draws % 16 >= 5 and draws < 128) else draws


_Z_SCALE = 6.8  # the polynomial's range of z; Box-Muller reaches sqrt(2 * 33 * log 2) = 6.764

# Q(z, s) = sum_ij _Q[i][j] (z / _Z_SCALE)**i (2 s - 1)**j, see docs/beta-laws.md.
_Q: tuple[tuple[float, ...], ...] = (
    (
        -0.1710828,
        -0.1797754,
        -0.01269841,
        -0.003594026,
        0.0005057393,
        0.0001033131,
        6.061426e-05,
        8.474928e-06,
        -4.356469e-05,
    ),
    (
        7.042327,
        0.4965753,
        0.2705431,
        0.01841188,
        0.0004983207,
        -0.0007457763,
        0.0004859361,
        -0.0005697052,
        -0.0001738459,
    ),
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

_OCTANT = 2.0**-29 * np.pi / 4


@jax.jit
def _log_gamma_over_shape(z: jax.Array, shape: jax.Array) -> jax.Array:
    """log(X / shape) for the Gamma(shape) variate X with P(shape, X) = Phi(z).

    z: float32, |z| <= 6.8.  shape: float32, >= 1 (below 1 the polynomial extrapolates and the law is wrong).
    Dimensionless float32, increasing in z.
    """
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
    """Two independent standard normals from two uint32 words (Box-Muller), |z| <= 6.764.

    radius = sqrt(-2 log((w0 + 1/2) / 2**32)); the angle is (w1 mod 2**29 + 1/2) / 2**29 of the first octant,
    and the top three bits of w1 choose the octant, so that two short Taylor polynomials serve as sine and
    cosine (error below 4e-7).
    """
    radius = jnp.sqrt(-2 * jnp.log((w0.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)))
    low = lax.convert_element_type(w1 & np.uint32(0x1FFFFFFF), jnp.int32).astype(jnp.float32)
    angle = (low + 0.5) * np.float32(_OCTANT)
    x = angle * angle
    sine = angle * (1 + x * (np.float32(-1 / 6) + x * (np.float32(1 / 120) + x * np.float32(-1 / 5040))))
    cosine = 1 + x * (-0.5 + x * (np.float32(1 / 24) + x * (np.float32(-1 / 720) + x * np.float32(1 / 40320))))
    swap = (w1 & np.uint32(1 << 29)) != 0
    first = radius * jnp.where(swap, sine, cosine)
    second = radius * jnp.where(swap, cosine, sine)
    first = jnp.where((w1 & np.uint32(1 << 30)) != 0, -first, first)
    second = jnp.where((w1 & np.uint32(1 << 31)) != 0, -second, second)
    return first, second


def beta_from_words(words: jax.Array, a: ArrayLike | jax.Array, b: ArrayLike | jax.Array) -> jax.Array:
    """One Beta(a, b) draw per pair of words, elementwise.

    words: uint32[WORDS_PER_DRAW, ...], independent and uniform.  a, b: int32 or float32 counts in [1, 1e7],
    not necessarily whole, broadcastable against words[0].  Returns float32 of the broadcast shape, in (0, 1];
    the density is x**(a - 1) (1 - x)**(b - 1) / B(a, b).  CDF error and speed: see docs/beta-laws.md.
    """
    shape_a = jnp.asarray(a, jnp.float32)
    shape_b = jnp.asarray(b, jnp.float32)
    z_a, z_b = _normal_pair(words[0], words[1])
    z_a, z_b, shape_a, shape_b = jnp.broadcast_arrays(z_a, z_b, shape_a, shape_b)
    log_odds = _log_gamma_over_shape(z_b, shape_b) - _log_gamma_over_shape(z_a, shape_a)
    return shape_a / (shape_a + shape_b * jnp.exp(log_odds))
