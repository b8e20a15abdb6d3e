"""The driver of the pool: jobs go in, exact accounts come out; threads keep a fixed number of slots
busy.

One compiled program serves any number of lanes: a slot whose lane has ended takes the next lane in
line, so memory does not grow with the number of lanes, and a lane that ends early costs nothing. A
worker is a thread with slots of its own on one device; it fetches lanes by the batch, and the
device hands them out to slots as these become idle. While the last lanes of a job end, the first
ones of the next are played already. Since every draw is addressed, it does not matter which slot,
worker or device runs a lane.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import operator
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits._engine import driver, programs, scan
from jaxbandits._engine.driver import SEATS_PER_SLOT, RunBuffer, Task, blank
from jaxbandits.core import checks
from jaxbandits.core.fingerprint import PROGRAM
from jaxbandits.core.protocol import Status

_SECONDS_PER_CALL = 0.3  # how often the host looks: progress, lanes, Ctrl-C


class CallLength:
    """Chunks of a call, and how many rounds each has; no result depends on either.

    A round may take long, and nobody knows before one was played: so the first call plays one, the
    next ones more.
    """

    def __init__(self, full_length: int):
        self._full_length = full_length  # of a chunk
        self.chunk, self.chunks = 1, 1  # length and number for the next call

    def learn(self, seconds: float, chunks: int) -> None:
        """A call took so many seconds for so many chunks, its compiling not counted."""
        if seconds > 2 * _SECONDS_PER_CALL:
            if self.chunks > 1:
                self.chunks //= 2
            else:
                self.chunk = max(self.chunk // 2, 1)
        elif seconds < _SECONDS_PER_CALL and chunks >= self.chunks:
            if self.chunk == self._full_length:
                self.chunks = min(2 * self.chunks, 1 << 20)
            else:
                growth = _SECONDS_PER_CALL / max(seconds, 1e-3)
                self.chunk = min(int(np.clip(growth, 4, 64)) * self.chunk, self._full_length)


# --- how many workers and slots: what the devices and their memory allow ---------------------------------------


_DEVICE_SLOTS = 1 << 17  # a launch costs the same for a thousand lanes as for a hundred thousand
# One plays while the host serves the other; with few lanes they only hinder each other (an H100,
# million rounds a second by one and by two: 1,024 lanes 15 and 9, 2¹⁴ 163 and 163, 2¹⁷ 342 and 558).
_WORKERS_PER_DEVICE, _ENOUGH_FOR_TWO = 2, 1 << 14
# Copies of a lane's state while a program runs, at most. CPU: measured, sweeps stay below. Others:
# what the compiler reserves for the cases of `python -m benchmarks.ahead_of_time`, which fails if
# one takes more.
STATES = {"cpu": 8.0, "gpu": 3.0, "tpu": 15.0}
_SHARE_OF_MEMORY = 0.5  # of what is free
# Bytes of state that a core keeps at hand (measured: 1,360 arms, 16 slots 2.2 µs a round, 128 slots
# 4.4).
_CACHE = 3 << 18


def usual_workers(devices: Sequence[Any], lanes: int = 1 << 31) -> int:
    """Two per device that has lanes enough, else one; on CPU at least one per core that this
    process may use. No more than there are lanes.
    """
    if devices[0].platform != "cpu":
        is_enough = lanes >= _ENOUGH_FOR_TWO * len(devices)
        return min((_WORKERS_PER_DEVICE if is_enough else 1) * len(devices), lanes)
    return min(max(len(devices), checks.cores()), lanes)


def usual_slots(task: Task, workers: int, devices: Sequence[Any], lanes: int = 0) -> int:
    """Lanes in flight per worker: as many as are fast, but no more than there are, nor than fit
    into memory.

    ``lanes`` are those that there are at a time, 0 for all of the task; ``workers`` share them.
    """
    fast = _DEVICE_SLOTS
    if devices[0].platform == "cpu":
        fast = min(task.engine.CPU_SLOTS, _power_of_two(_CACHE // driver.lane_bytes(task)))
    share = -(-(lanes or task.order.size) // workers)
    slots = min(fast, 1 << (share - 1).bit_length())
    sharers = -(-workers // len(devices))  # workers that share a device's memory
    lane = STATES.get(devices[0].platform, STATES["tpu"]) * driver.state_bytes(task, slots) / slots
    fit = int(_SHARE_OF_MEMORY * memory_left(devices[0]) / (sharers * lane))
    return min(slots, _power_of_two(fit))


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
    """What came out of the lanes of a job, in the order of their numbers, however they were played."""

    rows: scan.Account  # at each mark, i32[lane, mark]
    status: np.ndarray  # i32[lane]
    final: dict[str, np.ndarray]  # final values of environment and policy, [lane, …]


class Job(NamedTuple):
    """Some lanes of a task, which are answered together."""

    task: Task  # jobs of the very same task share programs and slots
    lanes: np.ndarray  # lane numbers, the longest first, none of them in another open job
    work: float = 0.0  # what they count in `Workers.work`; 0: one each
    in_line: int = (
        0  # lanes of the task that there are at a time, in all jobs together; 0: those of this one
    )
    # What is done with the accounts, by the thread that completes them; the job's future gives what
    # this gives.
    store: Callable[[JobAccounts], Any] = lambda accounts: accounts


class _OpenJob:
    """A job whose lanes have not all ended."""

    def __init__(self, lanes: np.ndarray, store: Callable[[JobAccounts], Any]):
        self._lanes, self._store = np.sort(lanes), store
        self.lanes_left = self._lanes.size
        self._accounts: JobAccounts | None = None
        self.future: Future[Any] = Future()
        self.future.set_running_or_notify_cancel()  # it cannot be cancelled, so that setting its result never fails

    def take(self, numbers: np.ndarray, part: JobAccounts) -> None:
        """These lanes have ended."""
        if self._accounts is None:
            size = self._lanes.size
            self._accounts = jax.tree.map(lambda x: np.zeros((size, *x.shape[1:]), x.dtype), part)
        rows = np.searchsorted(self._lanes, numbers)
        jax.tree.map(lambda into, x: into.__setitem__(rows, x), self._accounts, part)
        self.lanes_left -= numbers.size

    def answer(self) -> None:
        """All lanes have ended: their accounts go to ``store``, and what it gives to whoever waits."""
        assert self._accounts is not None
        try:
            self.future.set_result(self._store(self._accounts))
        except Exception as problem:
            self.future.set_exception(problem)


# --- a queue: the lanes of a task, and the workers that serve it -----------------------------------------------

# One thread traces at a time: Python's work, which two threads would only do more slowly.
_TRACING = threading.Lock()
# Programs compile side by side, each of them once: whoever wants the same one waits for it.
_COMPILING: dict[Any, threading.Lock] = {}

# Where few lanes of a batch are left, they may go on in fewer slots: bits do not change, but
# another program is compiled. So that begins when this process has lost as much time to idle slots
# of the wide one.
_FEWER = 4  # a quarter of the slots
_FEWEST = 8
_COMPILES = 2.0  # seconds
_LONG = 0.2  # seconds of a batch before it may move: to fetch the other program takes some 25 ms
# By program: seconds in which a quarter of its slots would have done
_WAITED: dict[Any, float] = defaultdict(float)


def _gathered(batch: driver.Batch, rows: np.ndarray, slots: int, device: Any) -> driver.Batch:
    """The lanes in these rows of a batch, in ``slots`` slots."""
    at = np.resize(rows, slots)
    # The tuner may hold numbers that all slots share.
    carry, tuner = jax.tree.map(lambda x: x[at] if x.ndim else x, jax.device_get(batch))
    status = np.where(np.arange(slots) < rows.size, carry.state.status, np.int32(Status.HORIZON))
    carry = carry._replace(state=carry.state._replace(status=status))
    return jax.device_put(driver.Batch(carry, tuner), device, may_alias=False)


class Queue:
    """The lanes of one task in line, served by any number of workers, each with so many ``slots``.

    With ``batches`` a worker plays as many lanes as it has slots to their ends before it takes
    others, by the smaller program; otherwise a slot whose lane has ended takes the next one.
    """

    def __init__(self, task: Task, slots: int, batches: bool = False):
        self.task, self.slots, self.batches = task, slots, batches
        self.stop = threading.Event()  # set it, and the workers leave at their next look
        self.total = self.done = self.workers = (
            0  # lanes there are, that have ended; workers that serve it now
        )
        self.expected = 0.0  # the work of all lanes, as their jobs say it
        self._line = np.zeros(0, np.int64)  # lanes that no worker has taken, the next one first
        self._jobs: dict[int, _OpenJob] = {}
        self._job_count = 0  # jobs so far
        self._job_of = np.full(np.prod(task.shape), -1, np.int32)
        self._lock = threading.Lock()
        self._programs: dict[Any, Callable[..., Any]] = {}  # those that are compiled
        self._shares: dict[
            int, float
        ] = {}  # by worker: lanes' worth of work that is done, but not counted in `done`
        # Here and not by the workers: another thread, or another device, would trace it anew.
        self._shapes = task.blank_shapes(slots, slots if batches else SEATS_PER_SLOT * slots)

    def add(self, job: Job) -> Future[Any]:
        """More lanes at the end of the line; a worker that serves it takes them too."""
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
        """Give every open job this problem for its answer; the workers leave."""
        self.stop.set()
        with self._lock:
            jobs, self._jobs = self._jobs, {}
        for job in jobs.values():
            job.future.set_exception(problem)

    @property
    def waiting(self) -> bool:
        """Are there lanes that no worker has taken?"""
        return self._line.size > 0 and not self.stop.is_set()

    @property
    def work(self) -> float:
        """Lanes' worth of work that is done."""
        return self.done + sum(self._shares.values())

    def take(self, idle: int, waits: int, free: int) -> np.ndarray:
        """Lanes for the ``idle`` slots; and ahead, if there are ``free`` seats, a fair part of what
        is left.

        The lanes that this worker has in line, ``waits``, are of its part.
        """
        with self._lock:
            fair = self._line.size // (2 * max(self.workers, 1))
            count = min(max(idle, fair - waits, 0), free)
            numbers, self._line = self._line[:count], self._line[count:]
            return numbers

    def serve(self, number: int, device: Any) -> None:
        """Run lanes until none waits and those begun have ended, or until ``stop``; for worker
        ``number``.
        """
        (self._serve_batches if self.batches else self._serve_line)(number, device)

    def _serve_batches(self, number: int, device: Any) -> None:
        environment = jax.device_put(self.task.environment, device)
        empty: driver.Batch | None = None  # memory for the state of the next lanes
        call = CallLength(self.task.chunk)
        while not self.stop.is_set() and (numbers := self._take_batch()).size:
            empty = self._play_batch(number, device, environment, numbers, empty, call)

    def _play_batch(
        self,
        number: int,
        device: Any,
        environment: Any,
        numbers: np.ndarray,
        empty: driver.Batch | None,
        call: CallLength,
    ) -> driver.Batch | None:
        """Lanes from their starts to their ends; the last ones of many go on in fewer slots, where
        that pays.
        """
        task, slots, fresh, running = self.task, self.slots, True, numbers.size
        lanes = driver.constants(task, np.resize(numbers, slots), device)
        batch, program, program_key, seconds = empty, None, None, 0.0
        while running and not self.stop.is_set():
            fewer = slots // _FEWER
            narrows = device.platform == "cpu" and fewer >= _FEWEST
            # The call returns when few are left: what the idle slots cost is known from then on.
            quota = slots - fewer - 1 if narrows and running > fewer else slots - 1
            limits = driver.CallLimits(*map(np.int32, (call.chunk, call.chunks, 0, quota)))  # type: ignore[arg-type]
            arguments = environment, lanes, np.int32(numbers.size), np.bool_(fresh)
            before = running
            if batch is None:
                state = self._blank(device)
                batch = driver.Batch(state.carry, state.tuner)
            if program is None:
                program, program_key = self._prepared(device, arguments, batch, limits)
            if self.stop.is_set():  # while this one waited for another one's compiling
                return empty
            began = time.perf_counter()  # compiled by now: only what is played counts as waited
            batch, outcome, report = program(*arguments, batch, limits)
            running, fresh = int(report.running), False
            call_seconds = time.perf_counter() - began
            seconds += call_seconds
            call.learn(call_seconds, int(report.chunks))
            self._shares[number] = float(report.share)
            if narrows and before <= fewer:
                _WAITED[program_key] += call_seconds
            if slots == self.slots:
                empty = batch
            if not (narrows and 0 < running <= fewer):
                continue
            if _WAITED[program_key] < _COMPILES or seconds < _LONG:
                continue
            runs = jax.device_get(batch.carry.state.status)[: numbers.size] == Status.RUNNING
            self._keep_ended(number, numbers, ~runs, outcome)
            batch = _gathered(batch, np.flatnonzero(runs), fewer, device)
            numbers, slots, program = numbers[runs], fewer, None
            lanes = driver.constants(task, np.resize(numbers, slots), device)
        self._shares[number] = float(numbers.size)
        self._keep_ended(
            number,
            numbers,
            jax.device_get(outcome.status)[: numbers.size] != Status.RUNNING,
            outcome,
        )
        return empty

    def _keep_ended(
        self, number: int, numbers: np.ndarray, ended: np.ndarray, outcome: driver.EndedLane
    ) -> None:
        if (at := np.flatnonzero(ended)).size:
            outcome = jax.tree.map(lambda x: x[at], jax.device_get(outcome))
            self._keep(number, [(numbers[at], outcome)])

    def _take_batch(self) -> np.ndarray:
        """Lanes for all slots of a worker: a batch takes as long with a few lanes as with many."""
        with self._lock:
            numbers, self._line = self._line[: self.slots], self._line[self.slots :]
            return numbers

    def _serve_line(self, number: int, device: Any) -> None:
        task, slots, stop = self.task, self.slots, self.stop
        environment = jax.device_put(task.environment, device)
        seats = RunBuffer(task, SEATS_PER_SLOT * slots, device)
        line = np.zeros(0, np.int64)  # seats whose lanes wait for a slot
        seat_in = np.full(slots, -1)  # by slot
        remains: list[
            tuple[np.ndarray, driver.EndedLane]
        ] = []  # what stays of lanes that have ended
        pool: driver.Pool | None = None
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
                    break
                self._keep(number, remains)
                continue  # look again: whoever took them may have brought more lanes
            padded = np.zeros(seats.lane_of.size, np.int32)
            padded[: line.size] = line
            # A turn for waiting lanes costs about as much as a chunk, a visit for new ones several.
            quota = slots // 8 if self.waiting else slots - 1
            fields = call.chunk, call.chunks, slots // 16, quota
            limits = driver.CallLimits(*map(np.int32, fields))  # type: ignore[arg-type]
            arguments = environment, seats.lanes, padded, np.int32(line.size)
            if pool is None:
                pool = self._blank(device)
                program, _ = self._prepared(device, arguments, pool, limits)
            if stop.is_set():  # while this one waited for another one's compiling
                break
            began = time.perf_counter()
            pool, report = program(*arguments, pool, limits)
            self._keep(number, remains)  # while the device plays
            seat_in = jax.device_get(pool.seat)
            call.learn(time.perf_counter() - began, int(report.chunks))
            line = line[int(report.starts) :]
            ended = seats.lane_of >= 0
            ended[line] = ended[seat_in[seat_in >= 0]] = False
            if ended.any():
                remains.append(seats.leave(pool.outcome, ended))
            self._shares[number] = float(report.share) + sum(numbers.size for numbers, _ in remains)
        self._keep(number, remains)

    def _blank(self, device: Any) -> driver.Pool:
        """The state of empty slots."""
        with _TRACING:
            # its memory is going to be written: no alias
            return jax.device_put(
                blank(self.task.engine, self.slots, self._shapes), device, may_alias=False
            )

    def _prepared(
        self, device: Any, arguments: tuple, state: Any, limits: driver.CallLimits
    ) -> tuple[Any, Any]:
        """The program that plays this state, compiled, and the key under which the queue holds it."""
        engine = self.task.engine
        shapes = [(x.shape, x.dtype) for x in jax.tree.leaves((arguments, state))]
        key = device, engine, self.task.program, jax.tree.structure((arguments, state)), *shapes
        if key in self._programs:
            return self._programs[key], key

        def program(*takes: Any) -> Any:
            with PROGRAM(self.task.program):
                return driver.compiled(device.platform, self.batches)(engine, *takes)

        # Threads trace one after the other, and compile side by side, each program once.
        with _TRACING:
            if self.stop.is_set():
                return program, key
            if (stored := self._stored_program(device, (*arguments, state, limits))) is not None:
                program, lowered = stored, stored.lower(*arguments, state, limits)
            else:
                with PROGRAM(self.task.program):
                    lowered = driver.compiled(device.platform, self.batches).lower(
                        engine, *arguments, state, limits
                    )
            compiling = _COMPILING.setdefault(key, threading.Lock())
        with compiling:
            if not self.stop.is_set():
                lowered.compile()
        self._programs[key] = program
        return program, key

    def _stored_program(self, device: Any, takes: tuple) -> jax.stages.Wrapped | None:
        """The same program from its file, or None if it has none."""
        task, options, pool = self.task, driver.options(device.platform), takes[-2]
        nouns = task.policy, task.environment, task.constraint
        if (file := programs.file_of(nouns, device, task.engine.__name__, options, takes)) is None:
            return None
        zero = np.int32(0)
        gives: Any = pool, driver.Report(zero, zero, zero)  # type: ignore[arg-type]
        if self.batches:
            gives = pool, self._shapes[1], driver.BatchReport(zero, zero, zero)  # type: ignore[arg-type]
        function = driver.play_batch if self.batches else driver.advance
        return programs.stored_program(
            file, function, task.engine, takes, gives, len(takes) - 2, options
        )

    def _keep(self, worker: int, remains: list[tuple[np.ndarray, driver.EndedLane]]) -> None:
        """Hand what stays of ended lanes to their jobs, and empty the list."""
        while remains:
            numbers, outcome = remains.pop()
            rows, last, status, final = jax.tree.map(
                lambda x, n=numbers.size: x[:n], jax.device_get(outcome)
            )
            accounts = JobAccounts(scan.unpack(rows, last), status, final)
            jobs, complete = self._job_of[numbers], []
            with self._lock:
                for job in map(int, np.unique(jobs)):
                    if (opened := self._jobs.get(job)) is None:  # the queue has failed
                        continue
                    opened.take(
                        numbers[jobs == job],
                        jax.tree.map(lambda x, of_job=jobs == job: x[of_job], accounts),
                    )
                    if opened.lanes_left == 0:
                        complete.append(self._jobs.pop(job))
                self.done += numbers.size
                self._shares[worker] -= numbers.size
            for opened in complete:  # without the lock: to store a job takes long
                opened.answer()


# --- the workers -----------------------------------------------------------------------------------------------


class Workers:
    """Threads of this process that play jobs. A context manager: leaving it stops them, whatever
    they do.

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
        """Begin to play jobs, all at once: so one task compiles while another one plays. A future
        for each.
        """
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
        """The results of all these futures; every 0.1 s ``report(work, lanes that have ended)`` is
        called.
        """
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
        """Work that is done, that of unfinished lanes too, in the units of :attr:`Job.work`."""
        with self._changed:
            return sum(queue.expected * queue.work / queue.total for queue in self._queues.values())

    def close(self) -> None:
        """Stop, and wait until the threads have: a process that ends while one of them compiles
        aborts.
        """
        with self._changed:
            self._closed = True
            for queue in self._queues.values():
                queue.fail(concurrent.futures.CancelledError("the workers were stopped"))
            while len(self._idle) < self.count:
                self._changed.wait(0.1)

    def _queue(self, job: Job) -> Queue:
        queue = self._queues.get(id(job.task))
        if queue is None:
            lanes = job.in_line or job.lanes.size
            slots = self._slots or usual_slots(
                job.task, min(self.count, lanes), self.devices, lanes
            )
            batches = lanes <= slots * self.count or job.task.is_short
            queue = self._queues[id(job.task)] = Queue(job.task, slots, batches)
        return queue

    def _choose(self) -> Queue | None:
        """The first of the queues with fewest workers: so different workers compile different
        programs.
        """
        waiting = [queue for queue in self._queues.values() if queue.waiting]
        choice = min(waiting, key=operator.attrgetter("workers"), default=None)
        if choice is not None:
            choice.workers += 1
        return choice

    def _work(self, number: int, queue: Queue | None) -> None:
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
                        # Another worker may have failed before, and the task have been given to a
                        # new queue since.
                        if self._queues.get(id(queue.task)) is queue:
                            del self._queues[id(queue.task)]
                        queue.fail(failure)
                    queue = self._choose()
                    if queue is None:
                        self._idle.append(number)
                        self._changed.notify_all()
