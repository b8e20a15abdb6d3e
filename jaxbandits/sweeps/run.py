"""Run a sweep: the blocks that are missing are played, here or by an executor, and each is saved when it is there."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import json
import math
import os
import pickle
import platform
import sys
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandits._engine import pool
from jaxbandits._engine.scan import ledger_of
from jaxbandits._progress import Bar, unfinished
from jaxbandits.core import checks
from jaxbandits.core.checks import InputError, bad, brief, shown, whole_number
from jaxbandits.sweeps.plan import Block, SweepPlan, make_plan
from jaxbandits.sweeps.report import write_report
from jaxbandits.sweeps.result import SweepResult, gather
from jaxbandits.sweeps.spec import Sweep, by_reference, first_difference, run_spec, source_of, versions
from jaxbandits.sweeps.store import Folder, Note, block_name, decode, encode

Answer = dict[str, Any]  # "worker": who; "name" with the checksum, and "content"; or "refused": why
Notice = Callable[[str], None]
Put = Callable[[int, bytes], None]  # keeps a finished block


class UnfinishedError(RuntimeError):
    """Some blocks could not be played; those that could are kept."""


def sweep(
    spec: Sweep,
    out: str | os.PathLike[str] | None = None,
    *,
    executor: Any = None,
    devices: Sequence[Any] | None = None,
    workers: int | None = None,
    progress: bool | str = False,
    notice: Notice = warnings.warn,
) -> SweepResult:
    """Play everything that ``spec`` says, and go on where an earlier run stopped.

    Args:
        spec: the sweep.
        out: a folder for blocks, results and report; the same call again continues it, also on other devices or with
            another executor. None keeps everything in memory.
        executor: who plays: anything with ``submit(function, *args) -> concurrent.futures.Future``, such as
            :class:`~jaxbandits.sweeps.Processes` or a ``concurrent.futures.ProcessPoolExecutor`` that spawns; or a
            ``dask.distributed.Client``. Only this process writes. None: this process plays.
        devices: without an executor: where to run, default all local devices.
        workers: without an executor: threads that run lanes, default one per device; on CPU at least one per core.
        progress: show a bar with blocks, lanes, rate and time left on stderr.
        notice: is told what is odd and was mended, such as a damaged block that is computed anew.

    Returns:
        The labelled results.

    Raises:
        InputError: naming what is wrong with the spec, or how it differs from what the folder was begun with.
        StorageError: a file could not be written; what was finished before is intact.
        UnfinishedError: blocks failed three times, or a worker would make other bits, or the executor ended; what was
            finished is kept in the folder.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> found = jb.sweep(jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]), environments=arms,
        ...     constraint=jb.TotalBudget(20.0, last_pull="counts"), replicates=8, engine="scan"))
        >>> found.data["regret"].dims
        ('setting', 'environment', 'budget', 'instance', 'replicate', 'mark')
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise bad("executor", executor, "an object with submit(function, *args) -> future")
    for name, value in (("devices", devices), ("workers", workers)):
        if executor is not None and value is not None:
            raise bad(name, value, "left out: the executor has workers of its own")
    places, count = list(devices or ()), 0
    if executor is None:
        places = places or jax.local_devices()
        count = pool.usual_workers(places) if workers is None else whole_number("workers", workers, 1, 4096)
    # The kind of device belongs to the bytes: whoever plans, collects or finishes a sweep need not have it.
    kind = places[0].platform if executor is None else _kind_of_workers(executor)
    if out is not None and Folder(out).begun():
        kind = Folder(out).manifest()["identity"]["versions"]["platform"]
    plan = make_plan(spec, kind)
    if link := getattr(executor, "dashboard_link", None):  # Dask has one
        notice(f"dashboard: {link}")

    def play_blocks(blocks: Sequence[Block], put: Put, note: Note) -> None:
        if executor is None and places[0].platform != kind:
            raise InputError(
                f"devices: of kind {places[0].platform!r}; {len(blocks)} of {len(plan.blocks)} blocks are missing in "
                f"{shown(str(out))}, which was begun on {kind!r}: they must be played there, or in another folder"
            )
        player = on_threads(places, count) if executor is None else on_executor(plan, executor)
        note("start", missing=len(blocks), **player.about)
        Dispatch(plan, player, put, note, notice).run(blocks, progress)

    if out is None:
        kept: dict[int, bytes] = {}
        play_blocks(plan.blocks, kept.__setitem__, lambda event, **values: None)
        result = gather(plan, lambda number: decode(kept[number]))
    else:
        folder = Folder(out)
        with folder.alone():
            folder.open(plan)
            note = folder.log()
            good, damaged = folder.sound()
            for path in damaged:
                notice(f"{path}: its bytes do not fit the checksum in its name; the block is computed anew")
                path.unlink()
            if missing := [block for block in plan.blocks if block.number not in good]:
                play_blocks(missing, folder.put, note)
            result = gather(plan, lambda number: decode(folder.get(number)))
            for name, content in write_report(result).items():
                folder.write(name, content)
            note("end", peak_memory_bytes=checks.peak_memory())
    for line in unfinished(result.data["status"].values):
        notice(line)
    return result


# --- who plays: the threads of this process, or the workers of an executor -------------------------------------


class Player(NamedTuple):
    """Who plays blocks."""

    submit: Callable[[Sequence[Block]], list[Future[Answer]]]
    close: Callable[[], None]
    about: dict[str, Any]  # for the log
    ahead: float  # blocks that are handed out before any is answered
    rounds: Callable[[], float]  # played so far, those of unfinished blocks too


def on_threads(devices: Sequence[Any], workers: int) -> Player:
    """The threads of this process, which get all blocks at once."""
    threads = pool.Workers(devices, workers)

    def submit(blocks: Sequence[Block]) -> list[Future[Answer]]:
        return threads.submit([block_job(block, block.unit.task.order.size) for block in blocks])

    about = {"devices": len(devices), "platform": devices[0].platform, "workers": workers}
    return Player(submit, threads.close, about, math.inf, lambda: threads.work)


def on_executor(plan: SweepPlan, executor: Any) -> Player:
    """The workers of an executor, which its owner closes. What is played of a block is unknown until it is here."""
    # A Dask client would answer an equal call from its memory, and its futures are not Python's.
    to = executor.get_executor(pure=False) if hasattr(executor, "get_executor") else executor
    request = request_of(plan)

    def submit(blocks: Sequence[Block]) -> list[Future[Answer]]:
        return [to.submit(play, request, block.number) for block in blocks]

    return Player(submit, lambda: None, {"executor": type(executor).__name__}, 16, lambda: 0.0)


def block_job(block: Block, in_line: int) -> pool.Job:
    """A block as a job of the pool, whose future gives an :data:`Answer`."""
    task = block.unit.task

    def store(accounts: pool.Accounts) -> Answer:
        rows = np.searchsorted(np.sort(block.lanes), block.lanes)  # a block keeps its lanes in the order of play
        ledger, status = jax.tree.map(lambda x: x[rows], (accounts.rows, accounts.status))
        arrays = ledger_of(ledger, task.constraint, task.places(block.lanes)[1])
        content = encode({**arrays, "ended": status.astype(np.int8)})
        return {"worker": worker_name(), "name": block_name(block.number, content), "content": content}

    return pool.Job(task, block.lanes, block.rounds, in_line, store)


def kind_of_device() -> str:
    """In a worker: what it plays on."""
    return jax.default_backend()


def _kind_of_workers(executor: Any) -> str:
    try:
        return str(executor.submit(kind_of_device).result())
    except Exception:  # who takes no work is told of when blocks are handed out
        return jax.default_backend()


def worker_name() -> str:
    """This process, for people: ``host:4711``."""
    return f"{platform.node()}:{os.getpid()}"


# --- hand blocks out, check what comes back, and keep it -------------------------------------------------------

_TRIES = 3
_LOOK = 0.1  # seconds between two looks at the bar


class Dispatch:
    """One go at the blocks that are missing. A block is waiting, under way, kept, or given up after some tries."""

    def __init__(self, plan: SweepPlan, player: Player, put: Put, note: Note, notice: Notice):
        self._plan, self._player, self._put, self._note, self._notice = plan, player, put, note, notice
        self._waiting: deque[Block] = deque()
        self._under_way: dict[Future[Answer], Block] = {}
        self._tries: Counter[int] = Counter()  # by block: how often it has failed
        self._given_up: list[tuple[int, str]] = []  # block, and why
        self._workers: set[str] = set()  # that have answered
        self._finished = self._lanes = 0
        self._rounds = 0.0  # played

    def run(self, blocks: Sequence[Block], progress: bool | str = False) -> None:
        """Play these blocks; an UnfinishedError if some could not be played, when all others were."""
        self._waiting.extend(_in_order(blocks))
        self._finished = len(self._plan.blocks) - len(blocks)
        began = time.perf_counter()
        with Bar(progress, sum(block.rounds for block in blocks)) as bar:
            try:
                while self._waiting or self._under_way:
                    self._hand_out()
                    for future in concurrent.futures.wait(self._under_way, _LOOK, "FIRST_COMPLETED").done:
                        self._take(self._under_way.pop(future), future)
                    rounds = max(self._rounds, self._player.rounds())
                    pace = f"{rounds / (time.perf_counter() - began):.2g} rounds/s" if rounds else "compiling"
                    blocks_done = f"{self._finished}/{len(self._plan.blocks)} blocks"
                    bar.show(f"{blocks_done}, {self._lanes:,} lanes, {pace}", rounds)
            finally:
                for future in self._under_way:
                    future.cancel()
                self._player.close()
        if self._given_up:
            (first, why), count = min(self._given_up), len(self._given_up)
            which = f"{count} blocks" if count > 1 else "one block"
            raise self._unfinished(f"{which} failed {_TRIES} times: {self._name(first)}: {why}")

    def _hand_out(self) -> None:
        """Keep the workers busy: two blocks for each that was heard of, and some for those that were not."""
        room = self._player.ahead + 2 * len(self._workers) - len(self._under_way)
        blocks = [self._waiting.popleft() for _ in range(int(min(len(self._waiting), max(room, 0))))]
        try:
            self._under_way.update(zip(self._player.submit(blocks), blocks, strict=True))
        except Exception as problem:
            raise self._unfinished(f"the executor takes no work ({_told(problem)})") from problem

    def _take(self, block: Block, future: Future[Answer]) -> None:
        """Keep a block, or have it played again."""
        answer: Answer = {}
        why = "came with bytes whose checksum is not that in its name"
        try:
            answer = future.result()
        except concurrent.futures.CancelledError as problem:  # not by us
            raise self._unfinished(f"the executor has lost its work ({_told(problem)})") from problem
        except Exception as problem:
            why = _told(problem)
        worker, content = str(answer.get("worker", "")), answer.get("content", b"")
        if "refused" in answer:
            raise self._unfinished(f"worker {worker} may not play: {answer['refused']}")
        # A worker's word is not taken for it: a block counts if its bytes have the checksum that the worker named.
        if answer.get("name") != block_name(block.number, content):
            self._fail(block, why)
            return
        self._put(block.number, content)
        self._workers.add(worker)
        self._finished += 1
        self._lanes += block.lanes.size
        self._rounds += block.rounds
        work = {"lanes": int(block.lanes.size), "rounds": block.rounds, "seconds": block.seconds}
        self._note("block", number=block.number, worker=worker, **work)

    def _fail(self, block: Block, why: str) -> None:
        self._tries[block.number] += 1
        self._note("failed", number=block.number, tries=self._tries[block.number], why=why)
        if self._tries[block.number] < _TRIES:
            self._waiting.appendleft(block)
        else:
            self._given_up.append((block.number, why))
            self._notice(f"{self._name(block.number)} failed {_TRIES} times and is left out: {why}")

    def _name(self, number: int) -> str:
        return f"block {number} ({self._plan.blocks[number].unit.name})"

    def _unfinished(self, text: str) -> UnfinishedError:
        return UnfinishedError(f"{text}; {self._finished} of {len(self._plan.blocks)} blocks are finished")


def _in_order(blocks: Sequence[Block]) -> list[Block]:
    """Units with long blocks first, so that the workers end together.

    One block of each unit comes before all others: so different workers compile different programs. Then the blocks of
    one unit in turn: so the lanes of the next fill the slots that the last leaves.
    """
    units: dict[str, list[Block]] = {}
    for block in blocks:
        units.setdefault(block.unit.name, []).append(block)
    ordered = sorted(units.values(), key=lambda unit: -max(block.seconds for block in unit))
    return [unit[0] for unit in ordered] + [block for unit in ordered for block in unit[1:]]


def _told(problem: BaseException) -> str:
    """An exception in one line."""
    return f"{type(problem).__name__}: {brief(problem, 300)}".rstrip(": ")


# --- what is sent to another process, and what it does with it -------------------------------------------------
#
# A request is made of plain values only (numbers, text, bytes), so that a worker with another version can read it, and
# say so. The spec in it is source, or was pickled by value.

_ARRIVING = threading.Lock()  # one spec at a time; and no block is begun twice
_PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def request_of(plan: SweepPlan) -> dict[str, Any]:
    """What a worker needs to know: the spec's source, or what pickles it here and only under this Python."""
    how, content = "source", source_of(plan.spec)
    if content is None:
        try:
            import cloudpickle as pickler
        except ImportError:
            pickler = pickle
        try:
            how, content = _PYTHON, pickler.dumps(plan.spec)
        except Exception as problem:
            raise InputError(
                f"spec: cannot be sent to another process ({type(problem).__name__}: {brief(problem)}); it must be "
                "made of values that can be pickled (the package cloudpickle pickles more), or come from a file "
                "(jaxbandits sweep SPEC.py)"
            ) from None
    return {"identity": json.dumps(plan.identity), "how": how, "spec": content}


def play(request: dict[str, Any], number: int) -> Answer:
    """In a worker: play the block of this number and give its bytes, or say why this worker must not play."""
    try:
        with _ARRIVING:
            _refuse_other_versions(request)
            plan, workers, open_ = _resident(request["identity"], request["how"], request["spec"])
            if number not in open_:
                unit = plan.blocks[number].unit
                in_line = -(-unit.task.order.size // unit.blocks)
                (open_[number],) = workers.submit([block_job(plan.blocks[number], in_line)])
            future = open_[number]
        try:
            return future.result()
        finally:
            open_.pop(number, None)
    except InputError as problem:
        return {"worker": worker_name(), "refused": brief(problem, 400)}


def _refuse_other_versions(request: dict[str, Any]) -> None:
    """Before anything of the spec is touched: this process could make other bits."""
    here, there = {**versions(), "platform": jax.default_backend()}, json.loads(request["identity"])["versions"]
    if request["how"] != "source":
        here["python"], there["python"] = _PYTHON, request["how"]
    if found := first_difference(here, there):
        name, mine, wanted = found
        raise InputError(f"its {name} is {shown(mine)}; it must be {shown(wanted)}, as where the sweep began")


@functools.lru_cache(maxsize=1)
def _resident(identity: str, how: str, spec: Any) -> tuple[SweepPlan, pool.Workers, dict[int, Future[Answer]]]:
    """The sweep in this process, who plays it, and the blocks under way; it stays between calls, and so do programs."""
    found: Sweep = run_spec(*spec) if how == "source" else pickle.loads(spec)
    devices = jax.local_devices()
    plan = make_plan(found)
    sent, mine = json.loads(identity), json.loads(json.dumps(plan.identity))
    if how != "source":  # the code of the caller's main program came along; here no file has it
        sent, mine = by_reference(sent), by_reference(mine)
    if difference := first_difference(mine, sent):  # it draws numbers without a seed, say
        where, now, then = difference
        raise InputError(f"{where}: {shown(now)} here; it must be {shown(then)}, as where the sweep began")
    threads = pool.usual_workers(devices)
    if "distributed" in sys.modules and devices[0].platform == "cpu":  # no more than Dask gave this process
        from distributed import get_worker

        with contextlib.suppress(ValueError):  # it is none of Dask's
            threads = min(get_worker().state.nthreads, threads)
    return plan, pool.Workers(devices, threads), {}
