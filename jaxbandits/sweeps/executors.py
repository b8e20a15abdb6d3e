"""Executors for sweeps besides this process: Dask workers, local or remote."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from typing import Any

import jax

from jaxbandits.core import checks
from jaxbandits.core.checks import InputError, bad, brief


@contextlib.contextmanager
def shared_programs() -> Iterator[dict[str, str]]:
    """Environment variables with which local workers share a folder of programs, old or new."""
    config: Any = jax.config
    with contextlib.ExitStack() as stack:
        seconds = config.jax_persistent_cache_min_compile_time_secs
        if not (folder := config.jax_compilation_cache_dir):
            new = tempfile.TemporaryDirectory(prefix="jaxbandits-", ignore_cleanup_errors=True)
            folder, seconds = stack.enter_context(new), 0.0
        least = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": str(seconds)}
        yield {"JAX_COMPILATION_CACHE_DIR": folder, **least}


# --- workers of this machine -----------------------------------------------------------------------------------

# What a worker runs before all else. Its name is its number among all, also after it died and was
# replaced.
_PRELOAD = """\
from jaxbandits.sweeps.executors import pin_worker
def dask_setup(worker):
    pin_worker(int(worker.name), {count})
"""


def pin_worker(number: int, count: int) -> None:
    """Give this process, one of ``count``, its cores and GPUs; the caller handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cores := checks.part_of_cores(number, count):
        # Of this thread, and so of all that it and jax start from now on
        os.sched_setaffinity(0, cores)
    os.environ.update(own_gpu(number, count))


def own_gpu(number: int, count: int, driver: str = "/proc/driver/nvidia/gpus") -> dict[str, str]:
    """Environment variables that give one of ``count`` workers a GPU, or a share of one."""
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    if devices is None:
        with contextlib.suppress(OSError):
            devices = ",".join(str(gpu) for gpu in range(len(os.listdir(driver))))
    if not (gpus := [gpu for gpu in (devices or "").split(",") if gpu]):
        return {}
    sharing = -(-count // len(gpus))
    share = {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.75 / sharing:.2f}"} if sharing > 1 else {}
    return {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)], **share}


# --- engines by name, as ``--on`` gives them -------------------------------------------------------------------

NAMES = "processes:N or dask:tcp://HOST:PORT"
_PATIENCE = "10s"  # for a scheduler that does not answer


@contextlib.contextmanager
def open_engine(name: str) -> Iterator[Any]:
    """A context manager with a Dask client, an executor for :func:`~jaxbandits.sweep`.

    Args:
        name: ``processes:N``, a Dask cluster of so many processes on this machine, each with its
            share of the cores, in a script under ``if __name__ == "__main__":``; or
            ``dask:tcp://HOST:PORT``, a scheduler that runs.

    Raises:
        InputError: there is no such engine, Dask is not installed, or its scheduler does not
            answer.

    Example:
        >>> with open_engine("processes:1") as executor:
        ...     executor.submit(max, 2, 3).result()
        3
    """
    match = re.fullmatch(r"processes:([1-9]\d{0,3})|dask:(\w+://.+:\d{1,5})", name, re.ASCII)
    if match is None:
        raise bad("executor", name, NAMES)
    count, address = int(match[1] or 0), match[2]
    try:
        import distributed
    except ImportError:
        needs = "it needs Dask: pip install '.[dask]'"
        raise InputError(f"executor: {name!r} given; {needs}") from None
    with contextlib.ExitStack() as held:
        if count:
            threads, preload = max(1, checks.cores() // count), _PRELOAD.format(count=count)
            options: dict[str, Any] = {"threads_per_worker": threads, "preload": preload}
            options |= {"memory_limit": None, "env": held.enter_context(shared_programs())}
            # A death is told by who plays anew
            options |= {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
            address = held.enter_context(distributed.LocalCluster(n_workers=count, **options))
        try:
            client = distributed.Client(address, timeout=_PATIENCE)
        except (OSError, TimeoutError, ValueError) as problem:
            may_be = f"the address of a Dask scheduler that runs ({brief(problem)})"
            raise bad("executor", name, may_be) from None
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.close(timeout=2)
