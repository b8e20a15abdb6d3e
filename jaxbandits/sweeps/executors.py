"""Who may play a sweep besides this process: worker processes of this machine, and the workers of Dask."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from jaxbandits.core import checks
from jaxbandits.core.checks import InputError, bad, brief, whole_number


@contextlib.contextmanager
def shared_programs() -> Iterator[dict[str, str]]:
    """Variables of the environment for workers on this machine, so that not all of them compile the same.

    They name the folder of programs that this process has, or else a new one that goes away in the end.
    """
    config: Any = jax.config
    with contextlib.ExitStack() as made:
        seconds = config.jax_persistent_cache_min_compile_time_secs
        if not (folder := config.jax_compilation_cache_dir):
            new = tempfile.TemporaryDirectory(prefix="jaxbandits-programs-", ignore_cleanup_errors=True)
            folder, seconds = made.enter_context(new), 0.0
        yield {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": str(seconds)}


# --- worker processes ------------------------------------------------------------------------------------------

_START = """\
import os, sys
if cores := set(map(int, sys.argv[1].split(","))) if sys.argv[1] else None:
    os.sched_setaffinity(0, cores)
from jaxbandits.sweeps.executors import serve
serve()"""


class WorkerDied(RuntimeError):
    """A worker process ended with work in hand."""


class Processes:
    """An executor of worker processes on this machine. A context manager: leaving it ends them.

    Unlike those of :class:`concurrent.futures.ProcessPoolExecutor`, a process that dies takes only its own work along
    and is replaced; each has its own share of the cores (on Linux); a script needs no ``if __name__ == "__main__"``;
    and they end at once if this process does, however it ends.

    Args:
        count: how many.

    Example:
        >>> with Processes(1) as processes:
        ...     processes.submit(sum, [1, 2, 3]).result()
        6
    """

    def __init__(self, count: int):
        self._count = whole_number("count", count, 1, 4096)
        self._threads = ThreadPoolExecutor(count)  # each waits for the answer of one process
        self._idle = list(range(count))[::-1]  # numbers of the processes that have no call
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._lock, self._closed = threading.Lock(), False
        self._programs = contextlib.ExitStack()
        self._variables = self._programs.enter_context(shared_programs())

    def __enter__(self) -> Processes:
        return self

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Call it in one of the processes."""
        return self._threads.submit(self._call, pickle.dumps((function, args)))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            children = list(self._children.values())
        for child in children:
            child.kill()
        self._threads.shutdown(cancel_futures=True)
        for child in children:
            child.communicate()  # closes its pipes and waits for its end
        self._programs.close()

    def _call(self, call: bytes) -> Any:
        number = self._idle.pop()
        try:
            child = self._child(number)
            assert child.stdin is not None and child.stdout is not None
            try:
                child.stdin.write(pickle.dumps(call))
                child.stdin.flush()
                value, problem = pickle.load(child.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                self._children.pop(number, None)  # the next call starts another one
                child.kill()
                child.communicate()
                code = child.returncode
                how = f"was killed (signal {-code})" if code < 0 else f"ended ({code})"
                raise WorkerDied(f"worker process {child.pid} {how}") from None
        finally:
            self._idle.append(number)
        if problem is not None:
            raise RuntimeError(problem)
        return value

    def _child(self, number: int) -> subprocess.Popen[bytes]:
        """The process of this number: the one that runs, or a new one."""
        with self._lock:
            if self._closed:
                raise WorkerDied("the worker processes were ended")
            if number not in self._children:
                cores = checks.part_of_cores(number, self._count)
                path = os.pathsep.join(part or os.getcwd() for part in sys.path)
                self._children[number] = subprocess.Popen(
                    [sys.executable, "-c", _START, ",".join(map(str, cores))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **self._variables, **own_gpu(number, self._count), "PYTHONPATH": path},
                    process_group=0 if os.name == "posix" else None,  # Ctrl-C is for the caller
                )
            return self._children[number]


def own_gpu(number: int, count: int, driver: str = "/proc/driver/nvidia/gpus") -> dict[str, str]:
    """Variables that give one of ``count`` workers a GPU of those that this process may see, or a share of one."""
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    if told is None:
        with contextlib.suppress(OSError):
            told = ",".join(str(gpu) for gpu in range(len(os.listdir(driver))))
    if not (seen := [gpu for gpu in (told or "").split(",") if gpu]):
        return {}
    sharing = -(-count // len(seen))
    share = {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.75 / sharing:.2f}"} if sharing > 1 else {}
    return {"CUDA_VISIBLE_DEVICES": seen[number % len(seen)], **share}


def serve() -> None:
    """In a worker process: do calls from standard input until it ends, which is when the caller does."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a spec prints must not get among the answers

    def answer(call: bytes) -> None:
        try:
            function, args = pickle.loads(call)
            content = pickle.dumps((function(*args), None))
        except Exception as problem:  # an exception of another's may not be pickled
            content = pickle.dumps((None, f"{type(problem).__name__}: {problem}"))
        answers.write(content)
        answers.flush()

    player = ThreadPoolExecutor(1)  # this thread only listens: so that the end of the caller is heard at once
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            player.submit(answer, pickle.load(sys.stdin.buffer))
    os._exit(0)


# --- engines by name, as ``--on`` gives them -------------------------------------------------------------------

NAMES = "processes:N, dask:tcp://HOST:PORT or dask:local:N"
_PATIENCE = "10s"  # for a scheduler that does not answer


@contextlib.contextmanager
def open_engine(name: str) -> Iterator[Any]:
    """An executor for :func:`~jaxbandits.sweep`, as long as the context lasts.

    Args:
        name: ``processes:N``; ``dask:tcp://HOST:PORT``, a scheduler that runs; or ``dask:local:N``, a Dask cluster of
            so many processes on this machine.

    Raises:
        InputError: there is no such engine, its package is not installed, or it does not answer.

    Example:
        >>> with open_engine("processes:1") as executor:
        ...     executor.submit(max, 2, 3).result()
        3
    """
    match = re.fullmatch(r"(processes|dask:local):([1-9]\d{0,3})|dask:(\w+://.+:\d{1,5})", name, re.ASCII)
    if match is None:
        raise bad("executor", name, NAMES)
    kind, count, where = match.groups()
    if kind == "processes":
        with Processes(int(count)) as processes:
            yield processes
        return
    try:
        import distributed
    except ImportError:
        raise InputError(f"executor: {name!r} given; it needs Dask: pip install 'jaxbandits[dask]'") from None
    with contextlib.ExitStack() as held:
        if where is None:
            each: dict[str, Any] = {"threads_per_worker": max(1, checks.cores() // int(count))}
            each["env"] = held.enter_context(shared_programs())
            local = distributed.LocalCluster(n_workers=int(count), dashboard_address=":0", **each)
            where = held.enter_context(local)
        try:
            client = distributed.Client(where, timeout=_PATIENCE)
        except (OSError, TimeoutError, ValueError) as problem:
            raise bad("executor", name, f"the address of a Dask scheduler that runs ({brief(problem)})") from None
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.close(timeout=2)
