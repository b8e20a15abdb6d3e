"""Run a sweep: missing blocks run here or by an executor, and each is saved when done."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import json
import os
import pickle
import platform
import sys
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import pool
from jaxbandits._engine.scan import ledger_of
from jaxbandits._progress import Bar, unfinished
from jaxbandits._provenance import processor_name, versions
from jaxbandits.core import checks
from jaxbandits.core.checks import InputError, bad, brief, door, quoted, whole_number
from jaxbandits.result import UTC
from jaxbandits.sweeps.result import SweepResult, gather
from jaxbandits.sweeps.spec import (
    Block,
    Sweep,
    SweepPlan,
    first_difference,
    make_plan,
    run_spec,
    source_of,
)
from jaxbandits.sweeps.store import Folder, Note, block_name, decode, encode, read_logs

Answer = dict[str, Any]  # "worker": who; "name" with the checksum, and "content"; or "refused": why
Notice = Callable[[str], None]
Put = Callable[[Mapping[int, bytes]], None]  # keeps finished blocks, by number


class UnfinishedError(RuntimeError):
    """Some blocks could not be simulated; the finished ones are saved."""


@door
def sweep(
    spec: Sweep,
    out: str | os.PathLike[str] | None = None,
    *,
    executor: Any = None,
    workers: int | None = None,
    progress: bool | str | None = None,
    notice: Notice = warnings.warn,
) -> SweepResult:
    """Simulate a sweep, continuing where an earlier run stopped.

    Args:
        spec: the sweep.
        out: a folder for blocks and results; repeating the call continues the sweep, also on
            other devices or with another executor. None keeps everything in memory.
        executor: where to run: a ``dask.distributed.Client``, such as
            :func:`~jaxbandits.sweeps.open_engine` gives, or anything with ``submit(function, *args)
            -> concurrent.futures.Future``. Only this process writes. None: in this process, on
            all its devices.
        workers: without an executor: threads that run lanes, default one per device; on CPU at
            least one per core.
        progress: show a bar with blocks, lanes, rate and time left on stderr; None: after two
            seconds, on a terminal and in a notebook.
        notice: called with a line for each repaired problem, such as a damaged block.

    Returns:
        The labelled results.

    Raises:
        InputError: naming what is wrong with the spec, or how it differs from the sweep in the
            folder.
        StorageError: a file could not be written; what was finished before is intact.
        UnfinishedError: blocks failed three times, a worker would compute other bits, or the
            executor ended; finished blocks are kept in the folder.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> result = jb.sweep(jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]), environments=arms,
        ...     constraint=jb.TotalBudget(20.0, last_pull="counts"), replicates=8, engine="scan"))
        >>> result.data["regret"].dims
        ('setting', 'environment', 'budget', 'instance', 'replicate', 'mark')
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise bad("executor", executor, "an object with submit(function, *args) -> future")
    if executor is not None and workers is not None:
        raise bad("workers", workers, "left out: the executor has its own workers")
    if workers is not None:
        whole_number("workers", workers, 1, 4096)
    folder = None if out is None else Folder(out)
    plan = make_plan(spec, _kind_of_device(folder, executor))
    if link := getattr(executor, "dashboard_link", None):  # Dask has one
        notice(f"dashboard: {link}")
    dispatch = functools.partial(Dispatch, plan, executor, workers, notice)
    if folder is None:
        contents, notes = dict[int, bytes](), list[dict[str, Any]]()

        def noted(event: str, **values: Any) -> None:
            notes.append({"time": time.time(), "event": event, **values})

        dispatch(plan.blocks, contents.update, noted).run(progress)
        result = gather(plan, lambda number: decode(contents[number]), _facts([notes]))
    else:
        with folder.alone():
            folder.open(plan)
            note, good = folder.log(), _without_damage(folder, notice)
            if missing := [block for block in plan.blocks if block.number not in good]:
                dispatch(missing, folder.put, note).run(progress)
            files = folder.listed()
            facts = _facts(read_logs(folder.path))
            result = gather(plan, lambda number: decode(folder.get(number, files)), facts)
            folder.write("sensitivity.csv", result.sensitivity().csv().encode())
            # Last: it says that all is there
            netcdf = result.data.to_netcdf(engine="scipy", format="NETCDF3_64BIT")
            folder.write("result.nc", bytes(netcdf))
            note("end", peak_memory_bytes=checks.peak_memory())
    for line in unfinished(result.data["status"].values):
        notice(line)
    return result


def _kind_of_device(folder: Folder | None, executor: Any) -> str:
    """Of a sweep: it belongs to the bytes, so who plans, collects or finishes one need not have it."""
    if folder is not None and folder.has_sweep():
        return folder.manifest()["identity"]["versions"]["platform"]
    if executor is None:
        return jax.default_backend()
    try:
        return str(executor.submit(kind_of_device).result())
    except Exception:  # who takes no work is told of when blocks are handed out
        return jax.default_backend()


def _without_damage(folder: Folder, notice: Notice) -> frozenset[int]:
    """Numbers of the blocks whose checksum is right; the others are removed, with a notice."""
    good, damaged = folder.sound()
    for path in damaged:
        wrong = "its bytes do not fit the checksum in its name"
        notice(f"{path}: {wrong}; the block is recomputed")
        path.unlink()
    return good


def _facts(logs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """When, how long and on which processors blocks were simulated, from the logs of all runs."""
    runs = [notes for notes in logs if notes and notes[0].get("event") == "start"]
    if not runs:
        return {}
    processors = dict.fromkeys(notes[0].get("processor", "") for notes in runs)
    seconds = sum(notes[-1]["time"] - notes[0]["time"] for notes in runs)
    when = time.strftime(UTC, time.gmtime(runs[0][0]["time"]))
    return {"when": when, "seconds": seconds, "processor": ", ".join(filter(None, processors))}


# --- who plays: the threads of this process, which get all blocks at once, or the workers of an executor --------


def block_job(block: Block, in_line: int) -> pool.Job:
    """A block as a job of the pool, whose future gives an :data:`Answer`."""
    task = block.unit.task

    def store(accounts: pool.JobAccounts) -> Answer:
        # A block keeps its lanes in the order of play
        rows = np.searchsorted(np.sort(block.lanes), block.lanes)
        ledger, status = jax.tree.map(lambda x: x[rows], (accounts.rows, accounts.status))
        arrays = ledger_of(ledger, task.constraint, task.places(block.lanes)[1])
        content = encode({**arrays, "ended": status.astype(np.int8)})
        name = block_name(block.number, content)
        return {"worker": worker_name(), "name": name, "content": content}

    return pool.Job(task, block.lanes, block.rounds, in_line, store)


def kind_of_device() -> str:
    """In a worker: the kind of its devices."""
    return jax.default_backend()


def worker_name() -> str:
    """A readable name of this process: ``host:4711``."""
    return f"{platform.node()}:{os.getpid()}"


# --- hand blocks out, check what comes back, and keep it -------------------------------------------------------

_TRIES = 3
_LOOK = 0.1  # seconds between two looks at the bar


class Dispatch:
    """Distributes blocks to workers; each is waiting, running, saved or given up."""

    def __init__(
        self,
        plan: SweepPlan,
        executor: Any,
        workers: int | None,
        notice: Notice,
        blocks: Sequence[Block],
        put: Put,
        note: Note,
    ) -> None:
        self.plan, self.put, self.note, self.notice = plan, put, note, notice
        # A Dask client would answer an equal call from its memory, and its futures are not Python's.
        is_dask = hasattr(executor, "get_executor")
        self.executor = executor.get_executor(pure=False) if is_dask else executor
        self.threads: pool.Workers | None = None
        about: dict[str, Any] = {"executor": type(executor).__name__}
        if executor is None:
            devices = jax.local_devices()
            if (kind := jax.default_backend()) != plan.platform:
                missing = f"{len(blocks)} of {len(plan.blocks)} blocks are missing"
                must = f"begun on {plan.platform!r}: they must run there, or in another folder"
                raise InputError(f"devices: of kind {kind!r}; {missing}, which were {must}")
            count = workers or pool.usual_workers(devices)
            self.threads = pool.Workers(devices, count)
            about = {"devices": len(devices), "platform": kind, "workers": count}
            about["processor"] = processor_name()
        note("start", missing=len(blocks), **about)
        self.request = request_of(plan) if self.threads is None else None
        self.waiting, self.under_way = deque(_in_order(blocks)), dict[Future[Answer], Block]()
        self.failures, self.given_up = Counter[int](), list[tuple[int, str]]()  # by block, and why
        self.workers = set[str]()  # that have answered
        self.finished, self.lanes, self.rounds = len(plan.blocks) - len(blocks), 0, 0.0
        self.began, self.every = time.perf_counter(), sum(block.rounds for block in blocks)

    def run(self, progress: bool | str | None = None) -> None:
        """Run all blocks; raise UnfinishedError at the end if some could not be run."""
        with Bar(progress, self.every) as bar:
            try:
                while self.waiting or self.under_way:
                    self.hand_out()
                    self.take_in()
                    self.show(bar)
            finally:
                for future in self.under_way:
                    future.cancel()
                if self.threads is not None:  # an executor is its owner's to close
                    self.threads.close()
        if self.given_up:
            number, reason = min(self.given_up)
            amount = f"{len(self.given_up)} blocks" if len(self.given_up) > 1 else "one block"
            raise self.unfinished(f"{amount} failed {_TRIES} times: {self.name(number)}: {reason}")

    def hand_out(self) -> None:
        # Two blocks for each worker that was heard of, and some for those that were not; the threads
        # of this process get all at once.
        room = max(16 + 2 * len(self.workers) - len(self.under_way), 0)
        count = len(self.waiting) if self.threads is not None else min(len(self.waiting), room)
        batch = [self.waiting.popleft() for _ in range(count)]
        try:
            if self.threads is not None:
                jobs = [block_job(block, block.unit.task.order.size) for block in batch]
                futures: Any = self.threads.submit(jobs)
            else:
                futures = [self.executor.submit(play_block, self.request, x.number) for x in batch]
        except Exception as problem:
            reason = f"the executor accepts no work ({_error_line(problem)})"
            raise self.unfinished(reason) from problem
        self.under_way.update(zip(futures, batch, strict=True))

    def take_in(self) -> None:
        """Save the blocks that returned intact; retry the others, or give them up."""
        whole, faulty = list[tuple[Block, Answer]](), list[tuple[Block, Answer, str]]()
        for future in concurrent.futures.wait(self.under_way, _LOOK, "FIRST_COMPLETED").done:
            block = self.under_way.pop(future)
            answer, reason = _answer_of(future)
            # A worker's word is not taken for it: the bytes must have the checksum that it named.
            if answer.get("name") == block_name(block.number, answer.get("content", b"")):
                whole.append((block, answer))
            else:
                faulty.append((block, answer, reason))
        self.put({block.number: answer["content"] for block, answer in whole})
        for block, answer in whole:
            self.workers.add(answer["worker"])
            lanes = int(block.lanes.size)
            self.finished, self.lanes = self.finished + 1, self.lanes + lanes
            self.rounds += block.rounds
            work = {"lanes": lanes, "rounds": block.rounds, "seconds": block.seconds}
            self.note("block", number=block.number, worker=answer["worker"], **work)
        for block, answer, reason in faulty:
            if "lost" in answer or "refused" in answer:
                raise self.unfinished(reason)
            self.failures[block.number] += 1
            tries = self.failures[block.number]
            self.note("failed", number=block.number, tries=tries, why=reason)
            if tries < _TRIES:
                self.waiting.appendleft(block)
                continue
            self.given_up.append((block.number, reason))
            self.notice(f"{self.name(block.number)} failed {tries} times and is left out: {reason}")

    def show(self, bar: Bar) -> None:
        """Show blocks, lanes and pace, unfinished blocks included."""
        done = max(self.rounds, self.threads.work if self.threads is not None else 0.0)
        pace = f"{done / (time.perf_counter() - self.began):.2g} rounds/s" if done else "compiling"
        blocks = f"{self.finished}/{len(self.plan.blocks)} blocks"
        bar.show(f"{blocks}, {self.lanes:,} lanes, {pace}", done)

    def unfinished(self, text: str) -> UnfinishedError:
        """The error, with the number of finished blocks."""
        all_of = len(self.plan.blocks)
        return UnfinishedError(f"{text}; {self.finished} of {all_of} blocks are finished")

    def name(self, number: int) -> str:
        """A readable name of a block."""
        return f"block {number} ({self.plan.blocks[number].unit.name})"


def _answer_of(future: Future[Answer]) -> tuple[Answer, str]:
    """The answer of a future, and the reason if it cannot be used."""
    try:
        answer = future.result()
    except concurrent.futures.CancelledError as problem:  # not by us
        return {"lost": True}, f"the executor has lost its work ({_error_line(problem)})"
    except Exception as problem:
        return {}, _error_line(problem)
    if "refused" in answer:
        return answer, f"worker {answer['worker']} must not run it: {answer['refused']}"
    return answer, "came with bytes whose checksum is not that in its name"


def _in_order(blocks: Sequence[Block]) -> list[Block]:
    """Units with long blocks first, so that the workers end together."""
    # One block of each unit comes before all others: so different workers compile different
    # programs. Then the blocks of one unit in turn: so the lanes of the next fill the slots that
    # the last leaves.
    units: dict[str, list[Block]] = {}
    for block in blocks:
        units.setdefault(block.unit.name, []).append(block)
    ordered = sorted(units.values(), key=lambda unit: -max(block.seconds for block in unit))
    return [unit[0] for unit in ordered] + [block for unit in ordered for block in unit[1:]]


def _error_line(problem: BaseException) -> str:
    """An exception in one line."""
    return f"{type(problem).__name__}: {brief(problem, 300)}".rstrip(": ")


# --- what is sent to another process, and what it does with it -------------------------------------------------
#
# A request is made of plain values only (numbers, text, bytes), so that a worker with another
# version can read it, and say so. The spec in it is source, or was pickled by value.

_ARRIVING = threading.Lock()  # one spec at a time
_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def request_of(plan: SweepPlan) -> dict[str, Any]:
    """What a worker needs: the spec's source, or a pickle of it for this Python only."""
    form, content = "source", source_of(plan.spec)
    if content is None:
        try:
            import cloudpickle as pickler
        except ImportError:
            pickler = pickle
        try:
            form, content = _PYTHON, pickler.dumps(plan.spec)
        except Exception as problem:
            must = "be made of values that can be pickled, or come from a file (jaxbandits sweep SPEC.py)"
            reason = f"cannot be sent to another process ({_error_line(problem)})"
            raise InputError(f"spec: {reason}; it must {must}") from None
    return {"identity": json.dumps(plan.identity), "how": form, "spec": content}


def play_block(request: dict[str, Any], number: int) -> Answer:
    """In a worker: run this block and return its bytes, or why this worker must not run it."""
    try:
        with _ARRIVING:
            _refuse_other_versions(request)
            plan, workers = _resident(request["identity"], request["how"], request["spec"])
            unit = plan.blocks[number].unit
            in_line = -(-unit.task.order.size // unit.blocks)
            (future,) = workers.submit([block_job(plan.blocks[number], in_line)])
        return future.result()
    except InputError as problem:
        return {"worker": worker_name(), "refused": brief(problem, 400)}


def _refuse_other_versions(request: dict[str, Any]) -> None:
    """Refuse to play for other versions, before anything of the spec is touched: bits could differ."""
    local = {**versions(), "platform": jax.default_backend()}
    origin = json.loads(request["identity"])["versions"]
    if request["how"] != "source":
        local["python"], origin["python"] = _PYTHON, request["how"]
    if difference := first_difference(local, origin):
        name, value, expected = difference
        must = f"it must be {quoted(expected)}, as where the sweep began"
        raise InputError(f"its {name} is {quoted(value)}; {must}")


@functools.lru_cache(maxsize=1)
def _resident(identity: str, form: str, spec: Any) -> tuple[SweepPlan, pool.Workers]:
    """The sweep's plan and workers in this process, kept between calls with their programs."""
    loaded: Sweep = run_spec(*spec) if form == "source" else pickle.loads(spec)
    devices = jax.local_devices()
    plan = make_plan(loaded)
    sent, local = json.loads(identity), json.loads(json.dumps(plan.identity))
    if difference := first_difference(local, sent):  # it draws numbers without a seed, say
        place, now, then = difference
        must = f"it must be {quoted(then)}, as where the sweep began"
        raise InputError(f"{place}: {quoted(now)} here; {must}")
    threads = pool.usual_workers(devices)
    # No more than Dask gave this process
    if "distributed" in sys.modules and devices[0].platform == "cpu":
        from distributed import get_worker

        with contextlib.suppress(ValueError):  # it is none of Dask's
            threads = min(get_worker().state.nthreads, threads)
    return plan, pool.Workers(devices, threads)
