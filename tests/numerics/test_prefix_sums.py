"""Prefix sums by parts are those of the plain definition, for every length and for negative numbers."""

import jax
import numpy as np
import pytest

from jaxbandits._numerics.arrays import prefix_sums


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 32, 64, 65])
def test_prefix_sums(n):
    x = np.random.default_rng(n).integers(-(2**24), 2**24, (5, n)).astype(np.int32)
    x[0] = 2**24  # the largest outcomes
    assert np.array_equal(jax.vmap(prefix_sums)(x), np.cumsum(x, axis=1, dtype=np.int32))
