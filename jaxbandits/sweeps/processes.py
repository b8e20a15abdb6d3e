"""Worker processes on this machine, each on cores of its own; one that dies is replaced."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import Any, BinaryIO

from jaxbandits.core.machine import part_of_cores
from jaxbandits.core.numbers import whole_number
from jaxbandits.sweeps.compiled import shared_programs

AT_ONCE = 2  # calls that a process has: while one ends, the lanes of the next fill its slots
_START = """\
import os, sys
if cores := set(map(int, sys.argv[1].split(","))) if sys.argv[1] else None:
    os.sched_setaffinity(0, cores)
from jaxbandits.sweeps.processes import serve
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
        self._lock = threading.RLock()
        self._waiting: deque[tuple[Future[Any], bytes]] = deque()
        self._children: dict[int, _Child] = {}  # by their number, once they were needed
        self._closed = False
        self._programs = contextlib.ExitStack()
        self._variables = self._programs.enter_context(shared_programs())

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Call it in one of the processes."""
        if self._closed:
            raise RuntimeError("the worker processes were ended")
        future: Future[Any] = Future()
        self._waiting.append((future, pickle.dumps((function, args))))
        self._hand_out()
        return future

    def close(self) -> None:
        """End the processes, whatever they do."""
        with self._lock:
            self._closed = True
            for future, _ in self._waiting:
                if future.cancel():
                    future.set_running_or_notify_cancel()  # those who wait for it are told
            self._waiting.clear()
            for child in self._children.values():
                child.end()
        self._programs.close()

    def _hand_out(self) -> None:
        """What waits to the process that has least to do."""
        with self._lock:
            while self._waiting and not self._closed:
                number = min(range(self._count), key=self._busy)
                if self._busy(number) >= AT_ONCE:
                    return
                if number not in self._children or self._children[number].dead:
                    self._children[number] = _Child(
                        part_of_cores(number, self._count), self._variables, self._lock, self._hand_out
                    )
                future, call = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    self._children[number].call(future, call)

    def _busy(self, number: int) -> int:
        child = self._children.get(number)
        return 0 if child is None or child.dead else len(child.futures)


class _Child:
    """One process: calls go in by its standard input, answers come out by its standard output."""

    def __init__(
        self, cores: Sequence[int], variables: Mapping[str, str], lock: threading.RLock, free: Callable[[], None]
    ):
        path = os.pathsep.join(part or os.getcwd() for part in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, ",".join(map(str, cores))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **variables, "PYTHONPATH": path},
            process_group=0 if os.name == "posix" else None,  # Ctrl-C is for the caller
        )
        self.futures: dict[int, Future[Any]] = {}
        self.dead = False
        self._calls, self._lock, self._free = 0, lock, free
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        for work in (self._listen, self._speak):
            threading.Thread(target=work, daemon=True).start()

    def call(self, future: Future[Any], call: bytes) -> None:
        """Send a call."""
        self._calls += 1
        self.futures[self._calls] = future
        self._out.put(pickle.dumps((self._calls, call)))

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def _speak(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while content := self._out.get():
                self._process.stdin.write(content)
                self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                number, value, problem = pickle.load(self._process.stdout)
                _answer(self.futures.pop(number), value, problem)
                self._free()
        self.end()
        with self._lock:
            self.dead, left = True, list(self.futures.values())
        self._out.put(b"")
        how = self._process.returncode
        text = f"worker process {self._process.pid} " + (f"was killed (signal {-how})" if how < 0 else f"ended ({how})")
        for future in left:
            _answer(future, None, WorkerDied(text))
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._free()


def _answer(future: Future[Any], value: Any, problem: BaseException | None) -> None:
    with contextlib.suppress(InvalidStateError):
        if problem is None:
            future.set_result(value)
        else:
            future.set_exception(problem)


def serve() -> None:
    """In a worker process: do calls from standard input until it ends, which is when the caller does."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a spec prints must not get among the answers
    calls = sys.stdin.buffer
    alone = threading.Lock()
    threads = ThreadPoolExecutor(AT_ONCE)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            number, call = pickle.load(calls)
            threads.submit(_do, number, call, answers, alone)
    os._exit(0)


def _do(number: int, call: bytes, answers: BinaryIO, alone: threading.Lock) -> None:
    value, problem = None, None
    try:
        function, args = pickle.loads(call)
        value = function(*args)
        content = pickle.dumps((number, value, None))
    except Exception as found:
        problem = RuntimeError(f"{type(found).__name__}: {found}")  # an exception of another's may not be pickled
        content = pickle.dumps((number, None, problem))
    with alone:
        answers.write(content)
        answers.flush()
