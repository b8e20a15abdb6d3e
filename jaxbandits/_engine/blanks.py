"""The state of a worker that has not begun, and how much memory it takes."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine import drive, scan
from jaxbandits._engine.tasks import Task
from jaxbandits.core.protocol import Environment

SEATS_PER_SLOT = 4  # lanes that a worker holds, for each in flight: a visit for new lanes costs milliseconds of Python


def blank_shapes(
    slots: int, environment: Environment, lanes: scan.Lane, root: jax.Array | np.ndarray
) -> tuple[scan.Carry, drive.EndedLane]:
    """The shapes of the state of some slots, and of the outcomes of the seats that ``lanes`` has."""
    carry = jax.eval_shape(_begin_all, environment, lanes, root)
    outcome = jax.eval_shape(drive.outcomes, environment, lanes, carry)
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((slots, *x.shape[1:]), x.dtype), carry), outcome


def blank(engine: ModuleType, slots: int, shapes: tuple[scan.Carry, drive.EndedLane]) -> drive.Pool:
    """The state of a worker that has not begun."""
    carry, outcome = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return drive.Pool(carry, jnp.full(slots, -1, jnp.int32), engine.tuner(slots), outcome)


def _begin_all(environment: Environment, lanes: scan.Lane, root: jax.Array) -> scan.Carry:
    # A function with a name: jax keeps the trace of one, and would trace a lambda anew for every worker.
    return jax.vmap(partial(scan.start, environment), in_axes=(0, None))(lanes, root)


def lane_bytes(task: Task) -> int:
    """What a round of one lane reads and writes, in bytes."""
    carry, _ = blank_shapes(1, task.environment, task.lanes(np.zeros(1, np.int64)), task.root)
    return tree_bytes(carry.state)


def state_bytes(task: Task, slots: int) -> int:
    """Memory of a worker with so many slots: state, constants and outcomes, in bytes."""
    lanes = task.lanes(np.zeros(SEATS_PER_SLOT * slots, np.int64))
    return tree_bytes((blank_shapes(slots, task.environment, lanes, task.root), lanes))


def tree_bytes(tree: Any) -> int:
    """Memory of all arrays, or shapes of arrays, in a tree."""
    return sum(int(np.prod(x.shape)) * np.dtype(x.dtype).itemsize for x in jax.tree.leaves(tree))
