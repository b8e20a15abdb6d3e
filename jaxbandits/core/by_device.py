"""A constant that is another one on another kind of device, known when a program is lowered for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir


def by_device(*, cpu: float, other: float) -> jax.Array:
    """``cpu`` in a program for CPU, else ``other``: ``f32[]``. No branch is compiled."""
    return _by_device.bind(cpu=float(cpu), other=float(other))  # type: ignore[no-untyped-call]


def _here(cpu: float, other: float) -> jax.Array:
    return jnp.float32(cpu if jax.default_backend() == "cpu" else other)


def _lowering(which: str) -> Callable[..., Any]:
    return lambda context, **values: [mlir.ir_constant(np.float32(values[which]))]


_by_device = Primitive("by_device")
_by_device.def_impl(_here)
_by_device.def_abstract_eval(lambda **_: ShapedArray((), np.dtype(np.float32)))
mlir.register_lowering(_by_device, _lowering("other"))
mlir.register_lowering(_by_device, _lowering("cpu"), platform="cpu")
