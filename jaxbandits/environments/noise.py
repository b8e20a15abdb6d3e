"""Distributions of an outcome around a computed mean: from one random word to ticks."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics import beta
from jaxbandits.core import streams, ticks
from jaxbandits.core.checks import positive_number, refuse


def coin(mean: jax.Array, word: jax.Array) -> jax.Array:
    """0 or 1 (as ticks): 1 if U < ``mean`` (ticks), with exactly that probability."""
    return (streams.uniform_ticks(word) < mean).astype(jnp.int32) * ticks.ONE


class Noise:
    """A distribution on [0, 1] for each mean; static and hashable, part of the compiled program."""

    def check(self) -> None:
        """Raise :class:`InputError` for invalid parameters."""

    @abstractmethod
    def outcome(self, mean: jax.Array, word: jax.Array) -> jax.Array:
        """An outcome (ticks) of the distribution with this ``mean`` (ticks, 0 … 2²⁴)."""

    def mean(self, mean: jax.Array) -> jax.Array:
        """The exact mean of the simulated distribution (ticks)."""
        return mean


@dataclasses.dataclass(frozen=True)
class Bernoulli(Noise):
    """Outcomes 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments.noise import Bernoulli
        >>> int(Bernoulli().outcome(jnp.int32(2**23), jnp.uint32(2**31 - 1))) == 2**24
        True
    """

    def outcome(self, mean: jax.Array, word: jax.Array) -> jax.Array:
        """1 if U < mean, exactly."""
        return coin(mean, word)


@dataclasses.dataclass(frozen=True)
class NoNoise(Noise):
    """No noise: the outcome is the mean."""

    def outcome(self, mean: jax.Array, word: jax.Array) -> jax.Array:
        return mean


@dataclasses.dataclass(frozen=True)
class Tent(Noise):
    """Uniform around the mean: μ + (2U − 1) min(h, μ, 1 − μ), in whole ticks, with mean μ.

    Args:
        h: the most on either side, in (0, ½].

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits.environments.noise import Tent
        >>> round(int(Tent(h=0.25).outcome(jnp.int32(0.9 * 2**24), jnp.uint32(0.2 * 2**32))) / 2**24, 6)
        0.84
    """

    h: float = 0.25

    def check(self) -> None:
        refuse("Tent.h", self.h, positive_number("Tent.h", self.h) > 0.5, "above 0 and at most 0.5")

    def outcome(self, mean: jax.Array, word: jax.Array) -> jax.Array:
        """A whole number of ticks, drawn uniformly around the mean."""
        half = jnp.minimum(jnp.minimum(mean, ticks.ONE - mean), int(self.h * ticks.ONE))
        return mean - half + streams.below(word, 2 * half + 1)


_MEANS = 64  # laws are tabulated at the means 0, 1/64, …, 1


@dataclasses.dataclass(frozen=True)
class Beta(Noise):
    """Laws Beta(κμ, κ(1 − μ)) for μ = 0, 1/64, …, 1, with interpolated quantiles in between.

    The mean of the law in between is the interpolated mean, so the law's mean is μ within 10⁻⁵.

    Args:
        concentration: κ > 0; the variance is μ(1 − μ)/(κ + 1).
    """

    concentration: float = 10.0

    def check(self) -> None:
        large = positive_number("Beta.concentration", self.concentration) > beta.MOST_SHAPE
        must = f"above 0 and at most {beta.MOST_SHAPE:g}"
        refuse("Beta.concentration", self.concentration, large, must)
        shapes = _shapes(self.concentration)
        means = _tables(float(self.concentration))[1]
        beta.refuse_inexact("Beta.concentration", *shapes, means[1:-1])

    def outcome(self, mean: jax.Array, word: jax.Array) -> jax.Array:
        knots, _ = _tables(float(self.concentration))
        row, share = _row_and_share(mean)
        cell, fraction = beta.cell_of(word)
        table = jnp.asarray(knots)
        low = beta.interpolate(table[row, cell], table[row, cell + 1], fraction)
        high = beta.interpolate(table[row + 1, cell], table[row + 1, cell + 1], fraction)
        return beta.interpolate(low, high, share)

    def mean(self, mean: jax.Array) -> jax.Array:
        """The interpolated means of the tabulated laws."""
        _, means = _tables(float(self.concentration))
        row, share = _row_and_share(mean)
        table = jnp.asarray(means)
        return beta.interpolate(table[row], table[row + 1], share)


def _row_and_share(mean: jax.Array) -> tuple[jax.Array, jax.Array]:
    bits = ticks.BITS - 6
    row = jnp.minimum(mean >> bits, _MEANS - 1)
    share = (mean - (row << bits)) << (beta.FRACTION_BITS - bits)
    return row, jnp.minimum(share, (1 << beta.FRACTION_BITS) - 1).astype(jnp.uint32)


def _shapes(concentration: float) -> tuple[np.ndarray, np.ndarray]:
    share = np.arange(1, _MEANS) / _MEANS
    return concentration * share, concentration * (1 - share)


@cache
def _tables(concentration: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantile knots ``i32[65, KNOTS]``, rising both ways, and means ``i32[65]``, in ticks."""
    tabulated, _ = beta.quantile_table(*_shapes(concentration))
    knots = np.pad(tabulated, ((1, 1), (0, 0)))
    knots[-1] = ticks.ONE
    knots = np.maximum.accumulate(knots, axis=0)
    return knots, np.rint(beta._mean_ticks(knots)).astype(np.int32)
