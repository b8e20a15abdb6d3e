"""How many workers and slots: what the devices and their memory allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxbandits._engine import blanks, tasks
from jaxbandits.core import machine

_DEVICE_SLOTS = 1 << 17  # a launch costs the same for a thousand lanes as for a hundred thousand
_WORKERS_PER_DEVICE = 2  # one plays while the other's host work is done
# Copies of a lane's state while a program runs, at most. CPU: measured, sweeps stay below. Others: what the compiler
# reserves for the cases of `python -m benchmarks.ahead_of_time`, which fails if one takes more.
STATES = {"cpu": 8.0, "gpu": 3.0, "tpu": 15.0}
_SHARE_OF_MEMORY = 0.5  # of what is free
# Bytes of state that a core keeps at hand (measured: 1,360 arms, 16 slots 2.2 µs a round, 128 slots 4.4).
_CACHE = 3 << 18


def usual_workers(devices: Sequence[Any]) -> int:
    """Two per device; on CPU at least one per core that this process may use."""
    if devices[0].platform != "cpu":
        return _WORKERS_PER_DEVICE * len(devices)
    return max(len(devices), machine.cores())


def usual_slots(task: tasks.Task, workers: int, devices: Sequence[Any]) -> int:
    """Lanes in flight per worker: as many as are fast, but no more than there are, nor than fit into memory."""
    fast = _DEVICE_SLOTS
    if devices[0].platform == "cpu":
        fast = min(task.engine.CPU_SLOTS, _power_of_two(_CACHE // blanks.lane_bytes(task)))
    wanted = min(fast, 1 << (-(-task.order.size // workers) - 1).bit_length())
    here = -(-workers // len(devices))  # workers that share a device's memory
    lane = STATES.get(devices[0].platform, STATES["tpu"]) * blanks.state_bytes(task, wanted) / wanted
    fit = int(_SHARE_OF_MEMORY * memory_left(devices[0]) / (here * lane))
    return min(wanted, _power_of_two(fit))


def _power_of_two(most: int) -> int:
    """The largest one that is at most ``most``, but at least 1."""
    return 1 << max(most.bit_length() - 1, 0)


def memory_left(device: Any) -> int:
    """Free memory of a device, in bytes; of a CPU, that of the machine."""
    told = device.memory_stats() or {}
    if "bytes_limit" in told:
        return int(told["bytes_limit"] - told.get("bytes_in_use", 0))
    return machine.free_memory()
