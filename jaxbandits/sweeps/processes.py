"""Several processes, on one host or many, through :mod:`jax.distributed`: who am I, and what do we agree on.

Each process takes every n-th of the blocks that are missing and puts them into one shared folder. Lanes never talk to
each other, so no array ever travels between processes: what is shared is the list of missing blocks, at the start, and
one meeting at the end. If a process dies, jax's heartbeat ends the others, and the same command continues.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxbandits.core.errors import InputError, bad


def join(coordinator: str, processes: int | None = None, process: int | None = None) -> None:
    """Join the other processes; to be called before anything else of jax is.

    Args:
        coordinator: HOST:PORT of process 0, or ``"auto"`` under Slurm, Open MPI, Kubernetes or on a TPU, which say
            everything themselves.
        processes: how many there are.
        process: the number of this one, from 0.

    Raises:
        InputError: a number is missing, or they could not meet.
    """
    if coordinator == "auto":
        jax.distributed.initialize()
        return
    if not 0 < coordinator.rfind(":") < len(coordinator) - 1:
        raise bad("coordinator", coordinator, "HOST:PORT of process 0, or auto")
    if processes is None or processes < 1:
        raise bad("processes", processes, "the number of processes, at least 1")
    if process is None or not 0 <= process < processes:
        raise bad("process", process, f"a whole number from 0 to {processes - 1}")
    try:
        jax.distributed.initialize(coordinator, processes, process)
    except RuntimeError as problem:
        raise InputError(
            f"coordinator: {coordinator!r} given; the processes could not meet there ({problem})"
        ) from None


def check_same(identity: Any) -> None:
    """Raise :class:`InputError` unless this process has the sweep of process 0."""
    from jax.experimental import multihost_utils

    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
    mine = np.frombuffer(digest, np.uint8).astype(np.int32)
    if (np.asarray(multihost_utils.broadcast_one_to_all(mine)) != mine).any():
        raise InputError("spec: not that of process 0; it must be the same in all processes, versions included")


def agree(flags: np.ndarray | None, size: int) -> np.ndarray | None:
    """Process 0's flags, ``bool[size]``, in every process; None if process 0 gives None, because it cannot go on."""
    from jax.experimental import multihost_utils

    mine = np.zeros(size + 1, np.int32)
    if flags is not None:
        mine = np.concatenate([flags, [True]]).astype(np.int32)
    told = np.asarray(multihost_utils.broadcast_one_to_all(mine))
    return told[:-1].astype(bool) if told[-1] else None


def wait_until(ready: Callable[[], bool], seconds: float = 0.5) -> None:
    """Look again and again. (A collective would do, but is made to wait for milliseconds and not for hours.)"""
    while not ready():
        time.sleep(seconds)


def meet(name: str) -> None:
    """Go on when all processes are here; soon, that is."""
    from jax.experimental import multihost_utils

    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)
