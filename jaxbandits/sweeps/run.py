"""Run a sweep: the blocks that are missing through the pool, each saved when its last lane has ended."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import pool
from jaxbandits._engine.booking import ledger_of
from jaxbandits._engine.resources import usual_slots, usual_workers
from jaxbandits._reports.progress import Bar
from jaxbandits._reports.unfinished import unfinished
from jaxbandits.core import machine
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Ledger
from jaxbandits.core.numbers import whole_number
from jaxbandits.sweeps import processes
from jaxbandits.sweeps.log import Log
from jaxbandits.sweeps.plan import Block, SweepPlan, Unit, make_plan
from jaxbandits.sweeps.report import write_report
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.sweeps.store import Folder, StorageError
from jaxbandits.sweeps.surface import SweepResult, gather

Arrays = Mapping[str, np.ndarray]


def sweep(
    spec: Sweep,
    out: str | os.PathLike[str] | None = None,
    *,
    devices: Sequence[Any] | None = None,
    workers: int | None = None,
    progress: bool = False,
    notice: Callable[[str], None] = warnings.warn,
) -> SweepResult:
    """Play everything that ``spec`` says, and go on where an earlier run stopped.

    Args:
        spec: the sweep.
        out: a folder for blocks, results and report; the same call again continues it, also on other devices or with
            another number of processes. None keeps everything in memory.
        devices: where to run, default all local devices.
        workers: threads that run lanes, default one per device; on CPU at least one per core.
        progress: show a bar with blocks, rate and time left on stderr.
        notice: is told what is odd, such as a corrupt block that is computed anew.

    Returns:
        The labelled results; in several processes those of process 0, in the others the same from the folder.

    Raises:
        InputError: naming what is wrong with the spec, or how it differs from what the folder was begun with.
        StorageError: a file could not be written; what was finished before is intact.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> found = jb.sweep(jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]), environments=arms,
        ...     constraint=jb.TotalBudget(20.0, last_pull="counts"), replicates=8, engine="scan"))
        >>> found.data["regret"].dims
        ('setting', 'environment', 'budget', 'instance', 'replicate', 'mark')
    """
    if workers is not None:
        whole_number("workers", workers, 1, 4096)
    devices = list(devices) if devices is not None else jax.local_devices()
    plan = make_plan(spec, devices[0].platform)
    local = LocalWorkers(devices, workers or usual_workers(devices), progress)
    if out is None:
        if jax.process_count() > 1:
            raise bad("out", out, "a folder that all processes share")
        kept: dict[int, Arrays] = {}
        local.work(plan, plan.blocks, kept.__setitem__, NullLog())
        result = gather(plan, kept.get)
    else:
        result = _on_disk(plan, Folder(out), local, notice)
    for line in unfinished(result.data["status"].values):
        notice(line)
    return result


def _on_disk(plan: SweepPlan, folder: Folder, local: LocalWorkers, notice: Callable[[str], None]) -> SweepResult:
    first = jax.process_index() == 0
    if jax.process_count() > 1:
        processes.check_same(plan.identity)
    with folder.alone() if first else contextlib.nullcontext():
        missing = _missing(plan, folder, notice)
        log = Log(folder.path, jax.process_index())
        while missing:
            share = missing[jax.process_index() :: jax.process_count()]
            log.note("start", missing=len(missing), blocks=len(share), processes=jax.process_count(), **local.about())
            local.work(plan, share, folder.put, log)
            processes.wait_until(functools.partial(_all_there, folder, frozenset(block.number for block in missing)))
            missing = _missing(plan, folder, notice)  # a block may have been harmed since
        result = gather(plan, folder.get)
        if first:
            for name, content in write_report(result).items():
                folder.write(name, content)
        log.note("end", peak_memory_bytes=machine.peak_memory())
        processes.meet("the report is written")
        return result


def _all_there(folder: Folder, numbers: frozenset[int]) -> bool:
    return numbers <= folder.listed()


def _missing(plan: SweepPlan, folder: Folder, notice: Callable[[str], None]) -> list[Block]:
    """What process 0 finds missing; it opens the folder, and all processes are told."""
    problem_found: InputError | StorageError | None = None
    flags = None
    if jax.process_index() == 0:
        try:
            folder.open(plan)
            there, broken = folder.sound(remove=True)
            for path, wrong in broken.items():
                notice(f"{path}: it {wrong}; the block is computed anew")
            flags = np.array([block.number not in there for block in plan.blocks])
        except (InputError, StorageError) as problem:
            problem_found = problem
    if jax.process_count() > 1:
        flags = processes.agree(flags, len(plan.blocks))
        if flags is None and problem_found is None:
            raise InputError("out: process 0 cannot use the folder, and says why")
        if problem_found is None:
            folder.check(plan)
    if problem_found is not None:
        raise problem_found
    assert flags is not None
    return [block for block, missing in zip(plan.blocks, flags, strict=True) if missing]


class NullLog:
    """A log of nothing."""

    def note(self, event: str, **values: Any) -> None:
        """Nothing."""


class LocalWorkers:
    """The devices and threads of this process."""

    def __init__(self, devices: Sequence[Any], workers: int, progress: bool):
        self.devices, self.workers, self.progress = devices, workers, progress

    def about(self) -> dict[str, Any]:
        """For the log."""
        return {"devices": len(self.devices), "platform": self.devices[0].platform, "workers": self.workers}

    def work(
        self, plan: SweepPlan, blocks: Sequence[Block], put: Callable[[int, Arrays], None], log: Log | NullLog
    ) -> None:
        """Run the lanes of these blocks and hand each block on when it is complete."""
        all_rounds, began = sum(block.rounds for block in blocks), time.perf_counter()
        finished = len(plan.blocks) - len(blocks)
        with Bar(self.progress, all_rounds) as bar:

            def deliver(block: Block, arrays: Arrays) -> None:
                nonlocal finished
                put(block.number, arrays)
                log.note("block", number=block.number, lanes=int(block.lanes.size), seconds=block.seconds)
                finished += 1

            queues, weights = [], []
            for unit in plan.units:
                mine = [block for block in blocks if block.unit is unit]
                if mine:
                    queues.append(self._queue(unit, mine, deliver))
                    weights.append(sum(block.rounds for block in mine) / queues[-1].total)

            def report(work: float, done: int) -> None:
                rounds = sum(queue.work * weight for queue, weight in zip(queues, weights, strict=True))
                pace = f"{rounds / max(time.perf_counter() - began, 1e-9):.2g} rounds/s" if rounds else "compiling"
                bar.show(f"{finished}/{len(plan.blocks)} blocks, {pace}", rounds)

            lanes = sum(queue.total for queue in queues)
            report(0.0, 0)
            pool.Run(queues, report).finish(self.devices, max(1, min(self.workers, lanes)))

    def _queue(self, unit: Unit, blocks: Sequence[Block], deliver: Callable[[Block, Arrays], None]) -> pool.Queue:
        slots = usual_slots(unit.task, self.workers, self.devices)
        task = dataclasses.replace(unit.task, order=np.concatenate([block.lanes for block in blocks]))
        return pool.Queue(task, slots, BlockAssembler(unit, blocks, deliver).put)


class BlockAssembler:
    """Puts the lanes of a unit that have ended into their blocks, and hands on the blocks that are complete."""

    def __init__(self, unit: Unit, blocks: Sequence[Block], deliver: Callable[[Block, Arrays], None]):
        self._unit, self._deliver = unit, deliver
        self._lock = threading.Lock()
        self._block_of = np.full(unit.task.order.size, -1)
        self._row_of = np.zeros(unit.task.order.size, np.int64)
        self._blocks = list(blocks)
        for at, block in enumerate(blocks):
            self._block_of[block.lanes] = at
            self._row_of[block.lanes] = np.arange(block.lanes.size)
        self._left = [block.lanes.size for block in blocks]
        self._open: dict[int, tuple[Ledger, np.ndarray]] = {}

    def put(self, numbers: np.ndarray, rows: Ledger, status: np.ndarray, final: Mapping[str, np.ndarray]) -> None:
        """Lanes that have ended, from any worker."""
        for at, store in self._filled(numbers, rows, status):
            block, (ledger, ended) = self._blocks[at], store
            self._deliver(block, {**ledger_of(ledger, self._unit.task.constraint), "ended": ended.astype(np.int8)})

    def _filled(
        self, numbers: np.ndarray, rows: Ledger, status: np.ndarray
    ) -> list[tuple[int, tuple[Ledger, np.ndarray]]]:
        complete = []
        with self._lock:
            for at in np.unique(self._block_of[numbers]):
                part = self._block_of[numbers] == at
                if at not in self._open:
                    make = pool.partial_empty(self._blocks[at].lanes.size)
                    self._open[at] = (jax.tree.map(make, rows), make(status))
                to = self._row_of[numbers[part]]
                jax.tree.map(lambda into, x: into.__setitem__(to, x[part]), self._open[at], (rows, status))  # noqa: B023
                self._left[at] -= int(part.sum())
                if self._left[at] == 0:
                    complete.append((int(at), self._open.pop(at)))
        return complete
