"""The pool: jobs go in, exact accounts come out; threads keep a fixed number of slots busy.

One compiled program serves any number of lanes: a slot whose lane has ended takes the next lane in
line, so memory does not grow with the number of lanes, and a lane that ends early costs nothing. A
worker is a thread with slots of its own on one device; it fetches lanes by the batch, and the
device hands them out to slots as these become idle. While the last lanes of a job end, the first
ones of the next run already. Since every draw is addressed, it does not matter which slot,
worker or device runs a lane.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import operator
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

from jaxbandits._engine import driver, programs, scan
from jaxbandits._engine.driver import RunBuffer, Task, blank
from jaxbandits.core import checks
from jaxbandits.core.fingerprint import PROGRAM
from jaxbandits.core.protocol import Environment

_SECONDS_PER_CALL = 0.3  # how often the host looks: progress, lanes, Ctrl-C


class CallLength:
    """Chunks of a call, and how many rounds each has; no result depends on either.

    How long a round takes is not known before one was run: the first call runs one, the next more.
    """

    def __init__(self, full_length: int):
        self._full_length = full_length  # of a chunk
        self.chunk, self.chunks = 1, 1  # length and number for the next call

    def learn(self, seconds: float, chunks: int) -> None:
        """Record that a call took so many seconds for so many chunks, compilation excluded."""
        # Too long: half as much. Quick: more rounds a chunk until that is full, then more chunks.
        if seconds > 2 * _SECONDS_PER_CALL:
            if self.chunks > 1:
                self.chunks //= 2
            else:
                self.chunk = max(self.chunk // 2, 1)
        elif seconds < _SECONDS_PER_CALL and chunks >= self.chunks:
            growth = int(np.clip(_SECONDS_PER_CALL / max(seconds, 1e-3), 2, 64))
            if self.chunk < self._full_length:
                rounds = 2 * growth * self.chunk
                self.chunk = min(rounds, self._full_length)
                growth = max(rounds // self._full_length, 1)
            self.chunks = min(growth * self.chunks, 1 << 20)


# --- how many workers and slots: what the devices and their memory allow ---------------------------------------


# States of the lanes of a native program and of a plain one, and the fewest lanes. (Native, LinUCB,
# K = 10, d = 26: 58 kB a lane, 8 lanes have 1.15 times the speed of 32; K = 50, d = 5: 14 kB, 32 have
# 1.1 times that of 8. Plain, RCB-AIR that leaps, K = 1,024: 32 lanes have twice the speed of 128.)
_STATE_BYTES, _LEAST_LANES = (1 << 19, 1 << 20), 8
_DEVICE_SLOTS = 1 << 17  # a launch costs the same for a thousand lanes as for a hundred thousand
# One runs while the host serves the other; with few lanes they only hinder each other (an H100,
# million rounds a second by one and by two: 1,024 lanes 15 and 9, 2¹⁴ 163 and 163, 2¹⁷ 342 and 558).
_WORKERS_PER_DEVICE, _ENOUGH_FOR_TWO = 2, 1 << 14
# Copies of a lane's state while a program runs, at most. CPU: measured, sweeps stay below. Others:
# what the compiler reserves for the cases of `python -m benchmarks.ahead_of_time`, which fails if
# one takes more.
STATES = {"cpu": 8.0, "gpu": 3.0, "tpu": 15.0}
_SHORT = 64  # rounds of a lane
_SHARE_OF_MEMORY = 0.5  # of what is free


def usual_workers(devices: Sequence[Any], lanes: int = 1 << 31) -> int:
    """Two for a device with enough lanes, else one; on CPU at least one per core."""
    if devices[0].platform != "cpu":
        is_enough = lanes >= _ENOUGH_FOR_TWO * len(devices)
        return min((_WORKERS_PER_DEVICE if is_enough else 1) * len(devices), lanes)
    return min(max(len(devices), checks.cores()), lanes)


def usual_slots(
    task: Task, workers: int, devices: Sequence[Any], lanes: int = 0, native: bool = True
) -> int:
    """Concurrent lanes per worker: as many as are fast, exist, and fit into memory.

    ``lanes`` are those that there are at a time, 0 for all of the task; ``workers`` share them.
    """
    on_cpu = devices[0].platform == "cpu"
    # Where lanes are handed out all the time, that is dearer than what falls out of the cache.
    wide = not native or is_short(task)
    fast = task.engine.CPU_SLOTS[wide] if on_cpu else _DEVICE_SLOTS
    if on_cpu and not is_short(task):
        few = _power_of_two(_STATE_BYTES[wide] // task.shapes.state_bytes)
        fast = min(fast, max(few, _LEAST_LANES))
    # Powers of two, so that few programs are compiled, and no more slots than lanes.
    share = -(-(lanes or task.order.size) // workers)
    slots = min(fast, 1 << (share - 1).bit_length())
    sharers = -(-workers // len(devices))  # workers that share a device's memory
    lane = STATES.get(devices[0].platform, STATES["tpu"]) * task.shapes.bytes(slots) / slots
    fit = int(_SHARE_OF_MEMORY * memory_left(devices[0]) / (sharers * lane))
    return min(slots, _power_of_two(fit))


def is_short(task: Task) -> bool:
    """Whether assigning its lanes to slots takes longer than simulating them."""
    return task.rounds < _SHORT * task.order.size


def _power_of_two(limit: int) -> int:
    """The largest power of two that is at most ``limit``, but at least 1."""
    return 1 << max(limit.bit_length() - 1, 0)


def memory_left(device: Any) -> int:
    """Free memory of a device, in bytes; of a CPU, that of the machine."""
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    return checks.available_memory()


# --- jobs ------------------------------------------------------------------------------------------------------


class JobAccounts(NamedTuple):
    """The accounts of a job's lanes in the order of their numbers, in whatever order they ran."""

    rows: scan.Account  # at each mark, i32[lane, mark]
    status: np.ndarray  # i32[lane]
    final: dict[str, np.ndarray]  # final values of environment and policy, [lane, …]


class Job(NamedTuple):
    """Some lanes of a task, whose accounts are delivered together."""

    task: Task  # jobs of the very same task share programs and slots
    lanes: np.ndarray  # lane numbers, the longest first, none of them in another open job
    work: float = 0.0  # what they count in `Workers.work`; 0: one each
    # Lanes of the task that there are at a time, in all jobs together; 0: those of this one
    in_line: int = 0
    # What the thread that completes the accounts does with them; its result is the future's.
    store: Callable[[JobAccounts], Any] = lambda accounts: accounts


class _OpenJob:
    """A job whose lanes have not all ended."""

    def __init__(self, lanes: np.ndarray, store: Callable[[JobAccounts], Any]):
        self._lanes, self._store = np.sort(lanes), store
        self.lanes_left = self._lanes.size
        self._outcome: driver.EndedLane | None = None
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()  # it cannot be cancelled, so that setting its result never fails

    def take(self, numbers: np.ndarray, part: driver.EndedLane) -> None:
        """Store the accounts of these lanes, which have ended."""
        if self._outcome is None:
            size = self._lanes.size
            self._outcome = jax.tree.map(lambda x: np.zeros((size, *x.shape[1:]), x.dtype), part)
        rows = np.searchsorted(self._lanes, numbers)
        jax.tree.map(lambda into, x: into.__setitem__(rows, x), self._outcome, part)
        self.lanes_left -= numbers.size

    def answer(self) -> None:
        """Pass the accounts of all lanes to ``store``, and its result to the job's future."""
        assert self._outcome is not None
        rows, last, status, final = self._outcome
        try:
            accounts = JobAccounts(scan.unpack(rows, last), status, final)  # type: ignore[arg-type]
            self.future.set_result(self._store(accounts))
        except Exception as problem:
            self.future.set_exception(problem)


# --- a queue: the lanes of a task, and the workers that serve it -----------------------------------------------

# One thread traces at a time: Python's work, which two threads would only do more slowly.
_TRACING = threading.Lock()
# Programs compile side by side, each of them once: whoever wants the same one waits for it.
_COMPILING: dict[Any, threading.Lock] = {}

# What compiled, and of native programs that have no such form, why: each is tried once a process.
_PROGRAMS: dict[Any, Callable[..., Any] | str] = {}
# Small states whose slots are all empty, for the next call: bringing one to a device takes
# milliseconds of Python. By worker, program and shapes, so nobody else has the same one.
_SPARES: dict[Any, driver.Pool] = {}
_SPARES_KEPT, _SPARE_BYTES = 8, 1 << 24


class _Program(NamedTuple):
    """:func:`driver.advance`, compiled."""

    play: Callable[..., Any]
    slots: int


class Queue:
    """The queued lanes of one task, served by any number of workers.

    Each has ``slots(is the program native?)``; ``lanes`` are what a worker may have to run.
    """

    def __init__(self, task: Task, slots: Callable[[bool], int], lanes: int = 1 << 31):
        self.task, self.lanes, self._slots = task, lanes, cache(slots)
        self.why_plain: str | None = None  # what the compiler said of the native form
        self.stop = threading.Event()  # set it, and the workers leave at their next look
        # Lanes there are, that have ended; workers that serve it now
        self.total = self.done = self.workers = 0
        self.expected = 0.0  # the work of all lanes, as their jobs say it
        self._line = np.zeros(0, np.int64)  # lanes that no worker has taken, the next one first
        self._jobs: dict[int, _OpenJob] = {}
        self._job_count = 0  # jobs so far
        self._job_of = np.full(np.prod(task.shape), -1, np.int32)
        self._lock = threading.Lock()
        self._programs: dict[Any, _Program] = {}  # those that are compiled, by device
        # By worker: lanes' worth of work that is done, but not counted in `done`
        self._shares: dict[int, float] = {}

    def add(self, job: Job) -> Future[Any]:
        """Append lanes to the queue; workers that already serve it take them too."""
        opened = _OpenJob(job.lanes, job.store)
        with self._lock:
            self._jobs[self._job_count] = opened
            self._job_of[job.lanes] = self._job_count
            self._job_count += 1
            self._line = np.concatenate([self._line, job.lanes])
            self.total += job.lanes.size
            self.expected += job.work or job.lanes.size
        return opened.future

    def fail(self, problem: BaseException) -> None:
        """Fail every open job with this exception; the workers stop."""
        self.stop.set()
        with self._lock:
            jobs, self._jobs = self._jobs, {}
        for job in jobs.values():
            job.future.set_exception(problem)

    @property
    def waiting(self) -> bool:
        """Whether there are lanes that no worker has taken."""
        return self._line.size > 0 and not self.stop.is_set()

    @property
    def work(self) -> float:
        """Work done so far, in lanes."""
        return self.done + sum(self._shares.values())

    def take(self, idle: int, waits: int, free: int) -> np.ndarray:
        """Lanes for the ``idle`` slots, plus a fair share of the rest if there are ``free`` seats.

        The lanes that this worker has in line, ``waits``, are of its part.
        """
        with self._lock:
            # Long lanes are shared with others to the end; few rounds are not worth many visits.
            parts = self.workers if is_short(self.task) else 2 * self.workers
            fair = self._line.size // max(parts, 1)
            count = min(max(idle, fair - waits, 0), free)
            numbers, self._line = self._line[:count], self._line[count:]
            return numbers

    def serve(self, number: int, device: Any) -> None:
        """Run lanes as worker ``number`` until none waits and all have ended, or until ``stop``."""
        task, stop = self.task, self.stop
        environment = jax.device_put(task.environment, device)
        program = self._prepared(device, environment)
        slots = program.slots
        spare = number, device, task.engine, slots, task.shapes
        pool = _SPARES.pop(spare, None) or self._blank(device, slots)
        seats = RunBuffer(task, driver.seats_for(slots), device)
        line = np.zeros(0, np.int64)  # seats whose lanes wait for a slot
        seat_in = np.full(slots, -1)  # by slot
        # What stays of lanes that have ended
        remains: list[tuple[np.ndarray, driver.EndedLane]] = []
        call = CallLength(task.chunk)
        while not stop.is_set():
            free = seats.free
            new_lanes = self.take(int((seat_in < 0).sum()) - line.size, line.size, free.size)
            free = free[: new_lanes.size]
            line = np.concatenate([line, free])
            if free.size:
                seats.take(free, new_lanes)
            if (seats.lane_of < 0).all():
                if not remains:
                    self._spare(spare, pool)
                    break
                self._keep(number, remains)
                continue  # look again: whoever took them may have brought more lanes
            padded = np.zeros(seats.lane_of.size, np.int32)
            padded[: line.size] = line
            arguments = environment, seats.lanes, padded, np.int32(line.size)
            limits, began = self._limits(call, slots), time.perf_counter()
            pool, report = program.play(*arguments, pool, limits)
            self._keep(number, remains)  # while the device works
            seat_in = jax.device_get(pool.seat)
            call.learn(time.perf_counter() - began, int(report.chunks))
            line = line[int(report.starts) :]
            # A lane has ended if it has a seat, but is neither in line nor in a slot.
            ended = seats.lane_of >= 0
            ended[line] = ended[seat_in[seat_in >= 0]] = False
            if ended.any():
                remains.append(seats.leave(pool.outcome, ended))
            self._shares[number] = float(report.share) + sum(numbers.size for numbers, _ in remains)
        self._keep(number, remains)

    def _limits(self, call: CallLength, slots: int) -> driver.CallLimits:
        """How far the next call runs."""
        # A turn for waiting lanes costs about as much as a chunk, a visit for new ones several.
        quota = slots // 8 if self.waiting else slots - 1
        fields = call.chunk, call.chunks, slots // 16, quota
        return driver.CallLimits(*map(np.int32, fields))  # type: ignore[arg-type]

    def _spare(self, key: Any, pool: driver.Pool) -> None:
        """Keep a state whose lanes have all ended."""
        if self.task.shapes.bytes(pool.seat.size) <= _SPARE_BYTES:
            _SPARES[key] = pool
            for oldest in list(_SPARES)[:-_SPARES_KEPT]:
                _SPARES.pop(oldest, None)  # another thread may have taken it

    def _blank(self, device: Any, slots: int) -> driver.Pool:
        """The state of empty slots."""
        with _TRACING:
            # its memory is going to be written: no alias
            return jax.device_put(blank(self.task, slots), device, may_alias=False)

    def _prepared(self, device: Any, environment: Environment) -> _Program:
        """The compiled program: the native one on a CPU, where there is one."""
        if device not in self._programs:
            few = self.lanes <= self.task.engine.NATIVE_LANES
            natives = (True, False) if few and driver.may_be_native(device.platform) else (False,)
            self._programs[device] = next(
                filter(None, (self._compiled(device, environment, native) for native in natives))
            )
        return self._programs[device]

    def _compiled(self, device: Any, environment: Environment, native: bool) -> _Program | None:
        """The program, or None if it should be native and cannot be."""
        digest, engine, slots = self.task.program, self.task.engine, self._slots(native)
        seats, zero, place = driver.seats_for(slots), np.int32(0), SingleDeviceSharding(device)
        key = programs.FOLDER, device, native, engine, slots, self.task.shapes

        def shapes() -> tuple[Any, ...]:
            return (
                environment,
                driver.constant_shapes(self.task, seats, device),
                np.zeros(seats, np.int32),
                zero,
                jax.tree.map(
                    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
                    blank(self.task, slots),
                ),
                driver.CallLimits(zero, zero, zero, zero),  # type: ignore[arg-type]
            )

        def play(*takes: Any) -> Any:
            with PROGRAM(digest):
                return driver.compiled(device.platform)(engine, native, *takes)

        def lowered() -> tuple[Any, Any]:
            takes = shapes()
            if (stored := self._stored_program(device, native, takes)) is not None:
                return stored, stored.lower(*takes)
            with PROGRAM(digest):
                return play, driver.compiled(device.platform).lower(engine, native, *takes)

        # Threads trace one after the other, and compile side by side, each program once.
        with _COMPILING.setdefault(key, threading.Lock()):
            if self.stop.is_set():
                return _Program(play, slots)
            if key not in _PROGRAMS:
                try:
                    with _TRACING:
                        _PROGRAMS[key], program = lowered()
                    program.compile()
                except (driver.NoNativeForm, jax.errors.JaxRuntimeError) as problem:
                    _PROGRAMS.pop(key, None)
                    if not native:
                        raise
                    _PROGRAMS[key] = str(problem).partition("\n")[0].strip()
            found = _PROGRAMS[key]
        if isinstance(found, str):
            self.why_plain = found
            return None
        return _Program(found, slots)

    def _stored_program(self, device: Any, native: bool, takes: tuple) -> Any:
        """The same program from its file, or None if it has none."""
        task, options = self.task, driver.options(device.platform)
        nouns, engine = (task.policy, task.environment, task.constraint), task.engine.__name__
        file = programs.file_of(nouns, device, engine, native, options, takes)
        if file is None:
            return None
        zero = np.int32(0)
        gives = takes[4], driver.Report(zero, zero, zero)  # type: ignore[arg-type]
        function = partial(driver.advance, task.engine, native)
        return programs.stored_program(file, function, takes, gives, 4, options)

    def _keep(self, worker: int, remains: list[tuple[np.ndarray, driver.EndedLane]]) -> None:
        """Hand what stays of ended lanes to their jobs, and empty the list."""
        while remains:
            numbers, outcome = remains.pop()
            outcome = jax.tree.map(lambda x, n=numbers.size: x[:n], jax.device_get(outcome))
            jobs, complete = self._job_of[numbers], []
            with self._lock:
                for job in map(int, np.unique(jobs)):
                    if (opened := self._jobs.get(job)) is None:  # the queue has failed
                        continue
                    opened.take(
                        numbers[jobs == job],
                        jax.tree.map(lambda x, of_job=jobs == job: x[of_job], outcome),
                    )
                    if opened.lanes_left == 0:
                        complete.append(self._jobs.pop(job))
                self.done += numbers.size
                self._shares[worker] -= numbers.size
            for opened in complete:  # without the lock: to store a job takes long
                opened.answer()


# --- the workers -----------------------------------------------------------------------------------------------


class Workers:
    """Threads of this process that run jobs. A context manager; on exit all threads stop.

    A thread starts when there is a lane for it, serves one queue after the other and ends when no
    lane waits; queues stay, so that jobs that come later find their programs compiled. At most
    ``count`` threads take the devices in turn, each with so many ``slots`` (default
    :func:`usual_slots`).
    """

    def __init__(self, devices: Sequence[Any], count: int, slots: int | None = None):
        self.devices, self.count = list(devices), count
        self._slots = slots
        self._changed = threading.Condition()
        self._queues: dict[int, Queue] = {}  # by the identity of their task
        self._idle = list(range(count))  # numbers of the threads that do not run
        self._closed = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, jobs: Sequence[Job]) -> list[Future[Any]]:
        """Start all jobs, one task compiling while another runs; returns a future for each."""
        futures = []
        with self._changed:
            for job in jobs:
                is_new = id(job.task) not in self._queues
                futures.append(self._queue(job).add(job))
                self._begin(int(is_new))  # it compiles while the shapes of the next one are found
            self._begin(len(self._idle))
        return futures

    def _begin(self, count: int) -> None:
        """Start at most ``count`` threads for lanes that wait."""
        while (
            count > 0 and self._idle and not self._closed and (queue := self._choose()) is not None
        ):
            # Code of the user's is traced there, too, and may read a ContextVar
            context, number = contextvars.copy_context(), self._idle.pop(0)
            threading.Thread(
                target=context.run, args=(self._work, number, queue), daemon=True
            ).start()
            count -= 1

    def wait(
        self, futures: Sequence[Future[Any]], report: Callable[[float, int], None]
    ) -> list[Any]:
        """The results of these futures; ``report(work, ended lanes)`` is called every 0.1 s."""
        while True:
            done, pending = concurrent.futures.wait(
                futures, 0.1, concurrent.futures.FIRST_EXCEPTION
            )
            report(self.work, sum(queue.done for queue in self._queues.values()))
            for future in done:
                future.result()  # raises what went wrong
            if not pending:
                return [future.result() for future in futures]

    @property
    def work(self) -> float:
        """Work done so far, unfinished lanes included, in the units of :attr:`Job.work`."""
        with self._changed:
            return sum(queue.expected * queue.work / queue.total for queue in self._queues.values())

    @property
    def why_plain(self) -> str | None:
        """Why one of the tasks has no native program, or None if all have one."""
        return next((x.why_plain for x in self._queues.values() if x.why_plain), None)

    def close(self) -> None:
        """Stop, and wait for the threads: a process that ends while one compiles aborts."""
        with self._changed:
            self._closed = True
            for queue in self._queues.values():
                queue.fail(concurrent.futures.CancelledError("the workers were stopped"))
            while len(self._idle) < self.count:
                self._changed.wait(0.1)

    def _queue(self, job: Job) -> Queue:
        """The queue of the job's task, a new one for a task that has none."""
        queue = self._queues.get(id(job.task))
        if queue is None:
            lanes = job.in_line or job.lanes.size
            workers = min(self.count, lanes)

            def slots(native: bool) -> int:
                of = job.task, workers, self.devices, lanes, native
                # Not one: XLA moves factors through an axis of one, and other bits would come of it.
                return max(self._slots or usual_slots(*of), 2)

            queue = self._queues[id(job.task)] = Queue(job.task, slots, -(-lanes // workers))
        return queue

    def _choose(self) -> Queue | None:
        """The first queue with fewest workers: different workers compile different programs."""
        waiting = [queue for queue in self._queues.values() if queue.waiting]
        choice = min(waiting, key=operator.attrgetter("workers"), default=None)
        if choice is not None:
            choice.workers += 1
        return choice

    def _work(self, number: int, queue: Queue | None) -> None:
        """What a thread does: it serves one queue after the other, until no lane waits."""
        device = self.devices[number % len(self.devices)]
        # The program itself takes small arrays of the host: jax.device_put costs milliseconds of
        # Python for a batch.
        with jax.default_device(device), jax.transfer_guard("allow"):
            while queue is not None:
                failure: BaseException | None = None
                try:
                    queue.serve(number, device)
                except BaseException as problem:  # it goes to whoever waits for the jobs
                    failure = problem
                with self._changed:
                    queue.workers -= 1
                    if failure is not None:
                        # Another worker may have failed, and the task have a new queue since.
                        if self._queues.get(id(queue.task)) is queue:
                            del self._queues[id(queue.task)]
                        queue.fail(failure)
                    queue = self._choose()
                    if queue is None:
                        self._idle.append(number)
                        self._changed.notify_all()
