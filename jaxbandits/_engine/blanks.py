"""The state of a worker that has not begun, and how much memory it takes."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import drive, scan
from jaxbandits._engine.tasks import Task
from jaxbandits.core.protocol import Environment
from jaxbandits.core.pytrees import T

SEATS_PER_SLOT = 4  # lanes that a worker holds, for each in flight: a visit for new lanes costs milliseconds of Python


def blank_shapes(
    slots: int, environment: Environment, lanes: scan.Lane, root: jax.Array | np.ndarray
) -> tuple[scan.Carry, drive.EndedLane]:
    """The shapes of the state of some slots, and of the outcomes of the seats that ``lanes`` has."""
    # Always of one lane, whatever is asked: jax keeps this trace and would trace every other number anew.
    one = _resized(lanes, 1)
    carry = jax.eval_shape(_begin_all, environment, one, root)
    outcome = jax.eval_shape(drive.outcomes, environment, one, carry)
    return _resized(carry, slots), _resized(outcome, lanes.row.shape[0])


def _resized(tree: T, lanes: int) -> T:
    """The shapes of a tree with another number of lanes."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((lanes, *x.shape[1:]), x.dtype), tree)


def blank(engine: ModuleType, slots: int, shapes: tuple[scan.Carry, drive.EndedLane]) -> drive.Pool:
    """The state of a worker that has not begun, as host arrays: on the device each shape would be a program."""
    carry, outcome = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
    return drive.Pool(carry, np.full(slots, -1, np.int32), engine.tuner(slots), outcome)  # type: ignore[arg-type]


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
