"""Trees compared leaf by leaf, with a sentence that names the first leaf that is wrong."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.testing.bits import ulps_apart

ULPS = 4
"""Units in the last place by which a program that is compiled otherwise may be off."""


def same_shapes(must: Any, got: Any, what: str) -> None:
    """Of one structure, with leaves of the same shapes and types."""
    here, there = str(jax.tree.structure(must)), str(jax.tree.structure(got))
    assert here == there, f"{what} has structure {there}; it must be {here}"
    named = jax.tree_util.tree_leaves_with_path(must)
    for (path, a), b in zip(named, jax.tree.leaves(got), strict=True):
        old, new = f"{jnp.result_type(a)}{list(jnp.shape(a))}", f"{b.dtype}{list(b.shape)}"
        assert old == new, f"{what}{jax.tree_util.keystr(path)} is {new}; it must be {old}"


def equal(must: Any, got: Any, what: str) -> None:
    """Equal to the bit, but that one NaN is like another."""
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(must), jax.tree.leaves(got), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        assert same, f"{what}{jax.tree_util.keystr(path)} is {b}; it must be {a}"


def close(must: Any, got: Any, what: str) -> None:
    """Floats within :data:`ULPS` units in the last place, all else equal."""
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(must), jax.tree.leaves(got), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        close = (ulps_apart(a, b) <= ULPS).all() if a.dtype == np.float32 else np.array_equal(a, b)
        assert close, f"{what}{jax.tree_util.keystr(path)} is {b}; it must be {a}"
