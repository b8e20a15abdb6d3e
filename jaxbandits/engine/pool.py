"""Lanes through slots: a queue of lanes, and workers that keep a fixed number of slots busy.

One compiled program serves any number of lanes: a slot whose lane has ended takes the next lane from the queue, so
memory does not grow with the number of lanes, and a lane that ends early costs nothing. A worker is a thread with its
own slots on one device. Since every draw is addressed, it does not matter which slot, worker or device runs a lane.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import ticks
from jaxbandits.engine import drive, scan
from jaxbandits.protocol import Constraint, Environment, Ledger, Policy, Status

_SECONDS_PER_CALL = 0.3  # how often the host looks: progress, refills, Ctrl-C


@dataclasses.dataclass(frozen=True)
class Task:
    """One policy on one environment: everything that the lanes share, as host arrays.

    Policy leaves are ``[setting, 1 or instance, …]``, constraint leaves ``[instance]``, marks ``[instance, mark]``.
    """

    engine: ModuleType
    policy: Policy
    environment: Environment
    constraint: Constraint
    marks: ticks.Total
    root: np.ndarray  # u32[2]
    instance_ids: np.ndarray  # [instance]
    replicate_ids: np.ndarray  # [replicate]
    settings: int
    cap: np.ndarray  # i32[instance]
    chunk: int
    order: np.ndarray  # lane numbers, longest first

    def lanes(self, numbers: np.ndarray) -> scan.Lane:
        """The constants of these lanes; a lane's number counts (setting, instance, replicate) in C order."""
        shape = (self.settings, self.instance_ids.size, self.replicate_ids.size)
        setting, instance, replicate = np.unravel_index(numbers, shape)

        def of_setting(leaf: np.ndarray) -> np.ndarray:
            return leaf[setting, instance if leaf.shape[1] > 1 else 0]

        return scan.Lane(
            row=instance.astype(np.int32),  # type: ignore[arg-type]
            instance=self.instance_ids[instance].astype(np.uint32),  # type: ignore[arg-type]
            replicate=self.replicate_ids[replicate].astype(np.uint32),  # type: ignore[arg-type]
            policy=jax.tree.map(of_setting, self.policy),
            constraint=jax.tree.map(lambda x: x[instance], self.constraint),
            marks=jax.tree.map(lambda x: x[instance], self.marks),
            cap=self.cap[instance],  # type: ignore[arg-type]
        )


@dataclasses.dataclass
class Record:
    """What came out, per lane: the ledger at each mark, the status, the final values."""

    rows: Ledger  # i32[lane, mark]
    status: np.ndarray  # i32[lane]
    final: dict[str, np.ndarray]  # [lane, …]


class Run:
    """The work of one task, shared by its workers."""

    def __init__(self, task: Task, slots: int, report: Callable[[float, int], None]):
        self.task, self.slots = task, slots
        self.total = task.order.size
        self.done = 0
        self.record: Record | None = None
        self._next = 0
        self._lock = threading.Lock()
        self._compiling = threading.Lock()  # or every worker would compile the same program
        self._report = report
        self._shares: dict[int, float] = {}
        self._stop = threading.Event()
        self._failure: BaseException | None = None

    def finish(self, devices: list[Any], workers: int) -> Record:
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
                self._report(self.done + sum(self._shares.values()), self.done)
        except BaseException:
            self._stop.set()
            for thread, left in zip(threads, self._left, strict=True):
                if thread.ident is not None:  # it was started
                    left.wait()
            raise
        if self._failure is not None:
            raise self._failure
        self._report(float(self.total), self.total)
        assert self.record is not None
        return self.record

    def _work(self, number: int, device: Any) -> None:
        try:
            with jax.default_device(device):
                self._fill_and_run(number, device)
        except BaseException as failure:  # handed to the caller's thread
            self._failure = failure
            self._stop.set()
        finally:
            self._left[number].set()

    def _take(self, wanted: int) -> np.ndarray:
        with self._lock:
            numbers = self.task.order[self._next : self._next + wanted]
            self._next += numbers.size
            return numbers

    def _fill_and_run(self, number: int, device: Any) -> None:
        task, slots = self.task, self.slots
        environment = jax.device_put(task.environment, device)
        root = jax.device_put(task.root, device)
        lane_of = np.full(slots, -1)  # -1: idle
        lanes: scan.Lane | None = None
        carry: scan.Carry | None = None
        chunks, first = 1, True
        while not self._stop.is_set():
            taken = self._take(int((lane_of < 0).sum()))
            fresh = np.zeros(slots, bool)
            fresh[np.flatnonzero(lane_of < 0)[: taken.size]] = True
            lane_of[fresh] = taken
            if (lane_of < 0).all():
                break
            if fresh.any():
                lanes = jax.device_put(task.lanes(np.maximum(lane_of, 0)), device)
            assert lanes is not None
            if carry is None:
                carry = jax.device_put(_blank(environment, lanes, root), device)
                gauge = task.engine.gauge()
            idle = lane_of < 0
            # With lanes waiting, come back for them once an eighth of the slots is idle; else run to the end.
            quota = slots // 8 if self._next < self.total else slots - 1
            plan = drive.Plan(*(np.int32(x) for x in (task.chunk, chunks, quota)))  # type: ignore[arg-type]
            began = time.perf_counter()
            with self._compiling if first else contextlib.nullcontext():
                carry, gauge, shares = drive.advance(
                    task.engine, environment, lanes, root, carry, gauge, fresh, idle, plan
                )
            first = False
            status = np.asarray(carry.memory.status)
            took = time.perf_counter() - began
            ended = ~idle & (status != Status.RUNNING)
            if ended.any():
                self._keep(environment, lanes, carry, lane_of, ended)
                lane_of[ended] = -1
            elif took < _SECONDS_PER_CALL:
                chunks = min(2 * chunks, 1 << 20)
            if took > 2 * _SECONDS_PER_CALL:
                chunks = max(chunks // 2, 1)
            self._shares[number] = float(np.asarray(shares)[lane_of >= 0].sum())

    def _keep(
        self,
        environment: Environment,
        lanes: scan.Lane,
        carry: scan.Carry,
        lane_of: np.ndarray,
        ended: np.ndarray,
    ) -> None:
        numbers = lane_of[ended]
        last = jax.tree.map(lambda x: np.asarray(x)[ended], carry.memory.ledger)
        rows = scan.unpack(np.asarray(carry.rows)[ended], last)
        status = np.asarray(carry.memory.status)[ended]
        final = {name: np.asarray(x)[ended] for name, x in drive.summarise(environment, lanes, carry).items()}
        with self._lock:
            if self.record is None:
                make = partial_empty(self.total)
                self.record = Record(jax.tree.map(make, rows), make(status), {k: make(v) for k, v in final.items()})
            store = (self.record.rows, self.record.status, self.record.final)
            jax.tree.map(lambda into, x: into.__setitem__(numbers, x), store, (rows, status, final))
            self.done += numbers.size


def partial_empty(total: int) -> Callable[[np.ndarray], np.ndarray]:
    """Makes a host array for all lanes from a part of them."""
    return lambda part: np.zeros((total, *part.shape[1:]), part.dtype)


def _blank(environment: Environment, lanes: scan.Lane, root: jax.Array) -> scan.Carry:
    shapes = jax.eval_shape(
        lambda e, ls, r: jax.vmap(lambda lane: scan.start(e, lane, r))(ls), environment, lanes, root
    )
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
