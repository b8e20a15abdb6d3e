"""Lanes through slots: a queue of lanes, and workers that keep a fixed number of slots busy.

One compiled program serves any number of lanes: a slot whose lane has ended takes the next lane from the queue, so
memory does not grow with the number of lanes, and a lane that ends early costs nothing. A worker is a thread with its
own slots on one device; it fetches lanes by the batch, and the device hands them out to slots as these become idle.
Since every draw is addressed, it does not matter which slot, worker or device runs a lane.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import drive, scan
from jaxbandits._engine.blanks import SEATS_PER_SLOT, blank, blank_shapes
from jaxbandits._engine.call_length import CallLength
from jaxbandits._engine.seats import Seats
from jaxbandits._engine.tasks import Task
from jaxbandits.core.ledger import Ledger

# One thread traces at a time: Python's work, which two threads would only do more slowly.
_TRACING = threading.Lock()
# Programs compile side by side, each of them once: whoever wants the same one waits for it.
_COMPILING: dict[Any, threading.Lock] = {}


class Record:
    """What came out of all lanes of a task: filled by the workers' calls of :meth:`put`.

    Attributes:
        rows: the ledger at each mark, i32[lane, mark]; None before the first lane ended.
        status: i32[lane].
        final: final values of the environment, [lane, …].
    """

    def __init__(self, lanes: int):
        self._lanes, self._lock = lanes, threading.Lock()
        self.rows: Ledger | None = None
        self.status = np.zeros(lanes, np.int32)
        self.final: dict[str, np.ndarray] = {}

    def put(self, numbers: np.ndarray, rows: Ledger, status: np.ndarray, final: dict[str, np.ndarray]) -> None:
        """Note these lanes, which have ended."""
        with self._lock:
            if self.rows is None:
                make = partial_empty(self._lanes)
                self.rows, self.final = jax.tree.map(make, rows), {name: make(x) for name, x in final.items()}
            store = (self.rows, self.status, self.final)
            jax.tree.map(lambda into, x: into.__setitem__(numbers, x), store, (rows, status, final))


Put = Callable[[np.ndarray, Ledger, np.ndarray, dict[str, np.ndarray]], None]


class Queue:
    """The lanes of one task in line, served by any number of workers.

    Args:
        task: what is played; its ``order`` says which lanes, the longest first. :meth:`add` brings more.
        slots: lanes in flight per worker.
        put: takes in the lanes that have ended, ``put(numbers, rows, status, final)``; workers call it, also two at a
            time.

    Attributes:
        total, done: lanes there are, lanes that have ended.
        workers: how many serve it now.
    """

    def __init__(self, task: Task, slots: int, put: Put):
        self.task, self.slots, self.put = task, slots, put
        self.total = task.order.size
        self.done = self.workers = 0
        self._order, self._next = task.order, 0
        self._lock = threading.Lock()
        self._shares: dict[int, float] = {}
        # Here and not by the workers: another thread, or another device, would trace it anew.
        seats = task.lanes(np.zeros(SEATS_PER_SLOT * slots, np.int64))
        self._shapes = blank_shapes(slots, task.environment, seats, task.root)

    @property
    def waiting(self) -> bool:
        """Are there lanes that no worker has taken?"""
        return self._next < self._order.size

    def add(self, lanes: np.ndarray) -> None:
        """More lanes at the end of the line; a worker that serves it takes them too."""
        with self._lock:
            self._order, self._next = np.concatenate([self._order[self._next :], lanes]), 0
            self.total += lanes.size

    @property
    def work(self) -> float:
        """Lanes' worth of work that is done."""
        return self.done + sum(self._shares.values())

    def _take(self, idle: int, waits: int, free: int) -> np.ndarray:
        """Lanes for the ``idle`` slots; and ahead, if there is room, as many as make a fair part of what is left.

        Args:
            idle: slots that no lane of this worker waits for.
            waits: lanes that this worker has in line: they are part of its fair part.
            free: seats.
        """
        with self._lock:
            fair = (self._order.size - self._next) // (2 * max(self.workers, 1))
            wanted = min(max(idle, fair - waits, 0), free)
            numbers = self._order[self._next : self._next + wanted]
            self._next += numbers.size
            return numbers

    def serve(self, number: int, device: Any, stop: threading.Event) -> None:
        """Run lanes until none waits and those begun have ended, or until ``stop``; for worker ``number``."""
        task, slots = self.task, self.slots
        environment = jax.device_put(task.environment, device)
        root = jax.device_put(task.root, device)
        seats = Seats(task, SEATS_PER_SLOT * slots, device)
        line = np.zeros(0, np.int64)  # seats whose lanes wait for a slot
        seat_in = np.full(slots, -1)  # by slot
        left: list[tuple[np.ndarray, drive.EndedLane]] = []  # what stays of lanes that have ended
        pool: drive.Pool | None = None
        call = CallLength(task.chunk)
        while not stop.is_set():
            free = seats.free
            taken = self._take(int((seat_in < 0).sum()) - line.size, line.size, free.size)
            free = free[: taken.size]
            line = np.concatenate([line, free])
            if free.size:
                seats.take(free, taken)
            if (seats.lane_of < 0).all():
                if not left:
                    break
                self._keep(number, left)
                continue  # look again: whoever took them may have brought more lanes
            padded = np.zeros(seats.lane_of.size, np.int32)
            padded[: line.size] = line
            # A turn for waiting lanes costs about as much as a chunk, a visit for new ones several.
            quota = slots // 8 if self.waiting else slots - 1
            limits = drive.CallLimits(*(np.int32(x) for x in (call.chunk, call.chunks, slots // 16, quota)))  # type: ignore[arg-type]
            given = environment, seats.lanes, root, padded, np.int32(line.size)
            began = time.perf_counter()
            if pool is None:
                pool = self._prepared(device, given, limits, stop)
            if stop.is_set():  # while this one waited for another one's compiling
                break
            pool, report = drive.compiled(device.platform)(task.engine, *given, pool, limits)
            self._keep(number, left)  # while the device plays
            seat_in = np.asarray(pool.seat)
            call.learn(time.perf_counter() - began, int(report.chunks))
            line = line[int(report.begun) :]
            ended = seats.lane_of >= 0
            ended[line] = ended[seat_in[seat_in >= 0]] = False
            if ended.any():
                left.append(seats.leave(pool.outcome, ended))
            self._shares[number] = float(report.share) + sum(numbers.size for numbers, _ in left)
        self._keep(number, left)

    def _prepared(self, device: Any, given: tuple, limits: drive.CallLimits, stop: threading.Event) -> drive.Pool:
        """A pool of empty slots, and the program that is going to play them compiled."""
        engine = self.task.engine
        with _TRACING:
            # its memory is going to be written: no alias
            pool = jax.device_put(blank(engine, self.slots, self._shapes), device, may_alias=False)
            if stop.is_set():
                return pool
            lowered = drive.compiled(device.platform).lower(engine, *given, pool, limits)
            shapes = [(x.shape, x.dtype) for x in jax.tree.leaves((given, pool))]
            program = device, engine, jax.tree.structure((given, pool)), *shapes
            compiling = _COMPILING.setdefault(program, threading.Lock())
        with compiling:
            if not stop.is_set():
                lowered.compile()
        return pool

    def _keep(self, worker: int, left: list[tuple[np.ndarray, drive.EndedLane]]) -> None:
        """Hand over what stays of lanes; nothing is left."""
        while left:
            numbers, outcome = left.pop()
            rows, last, status, final = jax.tree.map(lambda x, n=numbers.size: np.asarray(x)[:n], outcome)
            self.put(numbers, scan.unpack(rows, last), status, final)
            with self._lock:
                self.done += numbers.size
                self._shares[worker] -= numbers.size


class Run:
    """Workers, threads that each serve one queue after the other."""

    def __init__(self, queues: Sequence[Queue], report: Callable[[float, int], None]):
        self.queues = queues
        self._report = report
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._failure: BaseException | None = None

    def finish(self, devices: Sequence[Any], workers: int) -> None:
        """Run all lanes; on Ctrl-C the workers stop at their next look, and KeyboardInterrupt goes on."""
        threads = [
            threading.Thread(target=self._work, args=(number, devices[number % len(devices)]), daemon=True)
            for number in range(workers)
        ]
        # Wait for events, not for threads: a join that Ctrl-C interrupts marks a running thread as ended (Python 3.11),
        # and a process that ends while a worker compiles aborts.
        self._left = [threading.Event() for _ in threads]
        try:
            for thread in threads:
                thread.start()
            while not all(left.wait(0.1) for left in self._left):
                self._report(sum(queue.work for queue in self.queues), sum(queue.done for queue in self.queues))
        except BaseException:
            self._stop.set()
            for thread, left in zip(threads, self._left, strict=True):
                if thread.ident is not None:  # it was started
                    left.wait()
            raise
        if self._failure is not None:
            raise self._failure
        total = sum(queue.total for queue in self.queues)
        self._report(float(total), total)

    def _work(self, number: int, device: Any) -> None:
        try:
            with jax.default_device(device):
                while (queue := self._choose()) is not None:
                    queue.serve(number, device, self._stop)
                    with self._lock:
                        queue.workers -= 1
        except BaseException as failure:  # handed to the caller's thread
            self._failure = failure
            self._stop.set()
        finally:
            self._left[number].set()

    def _choose(self) -> Queue | None:
        """The first of the queues with fewest workers: so different workers compile different programs."""
        with self._lock:
            open_ = [queue for queue in self.queues if queue.waiting]
            if self._stop.is_set() or not open_:
                return None
            chosen = min(open_, key=lambda queue: queue.workers)
            chosen.workers += 1
            return chosen


def partial_empty(total: int) -> Callable[[np.ndarray], np.ndarray]:
    """Makes a host array for all lanes from a part of them."""
    return lambda part: np.zeros((total, *part.shape[1:]), part.dtype)
