"""The seats of a worker: whose lane sits where, the lanes' constants on the device, and what stays of them.

On CPU the device reads and writes the host's own memory. Elsewhere only what is new travels: constants of new lanes,
outcomes of lanes that have ended, in pieces whose sizes are powers of two, so that few programs are compiled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.drive import EndedLane
from jaxbandits._engine.scan import Lane
from jaxbandits._engine.tasks import Task
from jaxbandits.core.pytrees import T

_LEAST = 64  # lanes of a piece that travels


class Seats:
    """A number of seats for the lanes of a task, on one device.

    Attributes:
        lane_of: whose lane sits there, -1 for nobody's.
        lanes: their constants on the device, ``[seat]``; None before the first lane came.
    """

    def __init__(self, task: Task, number: int, device: Any, *, near: bool | None = None):
        self.lane_of = np.full(number, -1)
        self.lanes: Lane | None = None
        self._task, self._device = task, device
        self._near = device.platform == "cpu" if near is None else near

    @property
    def free(self) -> np.ndarray:
        """The seats that nobody has."""
        return np.flatnonzero(self.lane_of < 0)

    def take(self, seats: np.ndarray, numbers: np.ndarray) -> None:
        """These lanes, one at least, sit there from now on."""
        self.lane_of[seats] = numbers
        if self._near or self.lanes is None:
            self.lanes = jax.device_put(self._task.lanes(np.maximum(self.lane_of, 0)), self._device)
        else:
            at, of = (_padded(x, self.lane_of.size) for x in (seats, numbers))
            new = self._task.lanes(of)
            self.lanes = _put(self.lanes, *jax.device_put((at, new), self._device))

    def leave(self, outcome: EndedLane, ended: np.ndarray) -> tuple[np.ndarray, EndedLane]:
        """The lanes in the seats that are ``ended``, and what stays of them, and perhaps of more behind them.

        The arrays may still be on their way; ``outcome`` is not needed any more.
        """
        numbers = self.lane_of[ended]
        self.lane_of[ended] = -1
        if self._near:
            return numbers, jax.tree.map(lambda x: np.asarray(x)[ended], outcome)
        at = _padded(np.flatnonzero(ended), ended.size)
        found = _taken(outcome, jax.device_put(at, self._device))
        for x in jax.tree.leaves(found):
            x.copy_to_host_async()
        return numbers, found


def _padded(ids: np.ndarray, most: int) -> np.ndarray:
    """As many as the next power of two, at most ``most``, with the first one again and again."""
    size = min(max(_LEAST, 1 << (ids.size - 1).bit_length()), most)
    return np.concatenate([ids, np.full(size - ids.size, ids[0])]).astype(np.int32)


@partial(jax.jit, donate_argnums=0)
def _put(kept: T, at: jax.Array, new: T) -> T:
    return jax.tree.map(lambda into, x: into.at[at].set(x), kept, new)


@jax.jit
def _taken(outcome: T, at: jax.Array) -> T:
    return jax.tree.map(lambda x: jnp.take(x, at, axis=0), outcome)
