"""Blocks played in this process: threads that keep slots filled, from the lanes of one block to those of the next.

Programs, slots and threads belong to a unit, not to a block: a worker compiles once, and while the last lanes of a
block end, the first ones of the next are played already.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import pool
from jaxbandits._engine.booking import ledger_of
from jaxbandits._engine.resources import usual_slots
from jaxbandits.core.ledger import Ledger
from jaxbandits.sweeps.blocks import block_name, encode
from jaxbandits.sweeps.plan import Block, SweepPlan, Unit

Answer = dict[str, Any]  # "worker": who; "blocks": {number: (name with checksum, bytes)}, or "refused" or "failed": why


class Here:
    """The devices of this process, for the blocks of one plan.

    Args:
        plan: what is played.
        devices: where.
        workers: threads that run lanes.
        block_by_block: whether few blocks come at a time, and not the whole sweep: then fewer slots are full.
    """

    takes_all = True

    def __init__(self, plan: SweepPlan, devices: Sequence[Any], workers: int, block_by_block: bool = False):
        self._plan, self._devices, self._workers, self._block_by_block = plan, devices, workers, block_by_block
        self._lock = threading.Lock()
        self._lines: dict[int, _Line] = {}  # of a unit's first block
        self._idle = list(range(workers))  # numbers of the threads that do not run
        self._closed = False

    def about(self) -> dict[str, Any]:
        """For the log."""
        return {"devices": len(self._devices), "platform": self._devices[0].platform, "workers": self._workers}

    def submit(self, calls: Sequence[Sequence[int]]) -> list[Future[Answer]]:
        """Begin to play blocks; each call is the numbers of blocks that are answered together."""
        begun = [_Call(numbers) for numbers in calls]
        with self._lock:
            for call in begun:
                for number in call.numbers:
                    block = self._plan.blocks[number]
                    self._line(block.unit).add(block, call)
            while self._idle and not self._closed and (line := self._choose()) is not None:
                threading.Thread(target=self._work, args=(self._idle.pop(0), line), daemon=True).start()
        return [call.future for call in begun]

    def seconds_per_call(self, fair: float) -> float:
        """Block by block: a call costs nothing."""
        return 0.0

    def rounds(self) -> float:
        """Rounds that were played, those of unfinished blocks too."""
        with self._lock:
            return sum(line.rounds * line.queue.work / line.queue.total for line in self._lines.values())

    def close(self) -> None:
        """Stop, and wait until the threads have: a process that ends while one of them compiles aborts."""
        with self._lock:
            self._closed = True
            for line in self._lines.values():
                line.stop.set()
        while len(self._idle) < self._workers:
            time.sleep(0.01)

    def _line(self, unit: Unit) -> _Line:
        if unit.first not in self._lines:
            task = unit.task
            if self._block_by_block:
                task = dataclasses.replace(task, order=task.order[: -(-task.order.size // (unit.cuts.size - 1))])
            self._lines[unit.first] = _Line(unit, usual_slots(task, self._workers, self._devices))
        return self._lines[unit.first]

    def _choose(self) -> _Line | None:
        """The first of those with fewest workers: so different workers compile different programs."""
        waiting = [line for line in self._lines.values() if line.queue.waiting and not line.stop.is_set()]
        chosen = min(waiting, key=lambda line: line.queue.workers, default=None)
        if chosen is not None:
            chosen.queue.workers += 1
        return chosen

    def _work(self, number: int, line: _Line | None) -> None:
        device = self._devices[number % len(self._devices)]
        with jax.default_device(device):
            while line is not None:
                problem = None
                try:
                    line.queue.serve(number, device, line.stop)
                except BaseException as found:  # handed to whoever waits for the blocks
                    problem = found
                with self._lock:
                    line.queue.workers -= 1
                    if problem is not None:
                        self._lines = {first: other for first, other in self._lines.items() if other is not line}
                        line.fail(problem)
                    line = self._choose()
                    if line is None:
                        self._idle.append(number)


class _Call:
    """Blocks that are answered together."""

    def __init__(self, numbers: Sequence[int]):
        self.numbers = tuple(numbers)
        self.future: Future[Answer] = Future()
        self._blocks: dict[int, tuple[str, bytes]] = {}

    def give(self, number: int, content: bytes) -> None:
        """A block is complete."""
        self._blocks[number] = block_name(number, content), content
        if len(self._blocks) == len(self.numbers):
            with contextlib.suppress(InvalidStateError):  # nobody waits any more
                self.future.set_result({"worker": worker_name(), "blocks": self._blocks})

    def fail(self, problem: BaseException) -> None:
        """It will never be."""
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(problem)


class _Line:
    """The lanes of a unit's blocks in one queue, and the blocks that are not complete."""

    def __init__(self, unit: Unit, slots: int):
        lanes = unit.task.order.size
        self.stop = threading.Event()
        self.queue = pool.Queue(dataclasses.replace(unit.task, order=unit.task.order[:0]), slots, self._put)
        self.rounds = 0.0
        self._constraint = unit.task.constraint
        self._lock = threading.Lock()
        self._block_of = np.full(lanes, -1)
        self._row_of = np.zeros(lanes, np.int64)
        self._open: dict[int, _OpenBlock] = {}

    def add(self, block: Block, call: _Call) -> None:
        """A block to play; one that is played already is played once, for both."""
        with self._lock:
            if block.number in self._open:
                self._open[block.number].calls.append(call)
                return
            self._open[block.number] = _OpenBlock(block.lanes.size, [call])
            self._block_of[block.lanes] = block.number
            self._row_of[block.lanes] = np.arange(block.lanes.size)
        self.rounds += block.rounds
        self.queue.add(block.lanes)

    def fail(self, problem: BaseException) -> None:
        """None of the blocks will be complete."""
        self.stop.set()
        with self._lock:
            for block in self._open.values():
                for call in block.calls:
                    call.fail(problem)
            self._open = {}

    def _put(self, numbers: np.ndarray, rows: Ledger, status: np.ndarray, final: Mapping[str, np.ndarray]) -> None:
        """Lanes that have ended, from any worker."""
        with self._lock:
            for number in np.unique(self._block_of[numbers]):
                block, part = self._open.get(number), self._block_of[numbers] == number
                if block is None:  # the line failed
                    continue
                block.take(self._row_of[numbers[part]], jax.tree.map(lambda x: x[part], (rows, status)))  # noqa: B023
                if block.left == 0:
                    ledger, ended = block.store
                    accounts = {**ledger_of(ledger, self._constraint), "ended": ended.astype(np.int8)}
                    content = encode(accounts)
                    for call in self._open.pop(number).calls:
                        call.give(int(number), content)


class _OpenBlock:
    """A block whose lanes have not all ended."""

    def __init__(self, lanes: int, calls: list[_Call]):
        self.calls, self.left, self._lanes = calls, lanes, lanes
        self.store: Any = None

    def take(self, rows: np.ndarray, values: Any) -> None:
        """Lanes that have ended."""
        if self.store is None:
            self.store = jax.tree.map(pool.partial_empty(self._lanes), values)
        jax.tree.map(lambda into, x: into.__setitem__(rows, x), self.store, values)
        self.left -= rows.size


def worker_name() -> str:
    """This process, for people: ``host:4711``."""
    return f"{platform.node()}:{os.getpid()}"
