"""Run a sweep: the blocks that are missing are played, here or by an executor, and each is saved when it is there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax

from jaxbandits._engine.resources import usual_workers
from jaxbandits._reports.unfinished import unfinished
from jaxbandits.core import machine
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import whole_number
from jaxbandits.sweeps.blocks import decode
from jaxbandits.sweeps.dispatch import Dispatch, Player
from jaxbandits.sweeps.elsewhere import Elsewhere
from jaxbandits.sweeps.here import Here
from jaxbandits.sweeps.log import Log, no_note
from jaxbandits.sweeps.plan import Block, SweepPlan, make_plan
from jaxbandits.sweeps.report import write_report
from jaxbandits.sweeps.spec import Sweep
from jaxbandits.sweeps.store import Folder
from jaxbandits.sweeps.surface import SweepResult, gather

Place = str | os.PathLike[str]
Notice = Callable[[str], None]


def sweep(
    spec: Sweep,
    out: Place | None = None,
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
        executor: who plays: anything with ``submit(function, *args) -> future``, such as
            :class:`~jaxbandits.sweeps.Processes`, a ``dask.distributed.Client``, a ``submitit.AutoExecutor`` or a
            ``concurrent.futures.ProcessPoolExecutor`` that spawns. Only this process writes. None: this process plays.
        devices: without an executor: where to run, default all local devices.
        workers: without an executor: threads that run lanes, default one per device; on CPU at least one per core.
        progress: show a bar with blocks, lanes, rate and time left on stderr.
        notice: is told what is odd and was mended, such as a corrupt block that is computed anew.

    Returns:
        The labelled results.

    Raises:
        InputError: naming what is wrong with the spec, or how it differs from what the folder was begun with.
        StorageError: a file could not be written; what was finished before is intact.
        UnfinishedError: blocks failed three times, or the executor ended; what was finished is kept in the folder.

    Example:
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> found = jb.sweep(jb.Sweep(
        ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0]), environments=arms,
        ...     constraint=jb.TotalBudget(20.0, last_pull="counts"), replicates=8, engine="scan"))
        >>> found.data["regret"].dims
        ('setting', 'environment', 'budget', 'instance', 'replicate', 'mark')
    """
    team = _Team(executor, devices, workers, progress, notice)
    plan = make_plan(spec, team.platform)
    if out is None:
        kept: dict[int, bytes] = {}
        Dispatch(plan, team.player(plan), kept.__setitem__, no_note, progress, notice).run(plan.blocks)
        result = gather(plan, lambda number: decode(kept[number]))
    else:
        folder = Folder(out)
        with folder.alone():
            log = team.fill(plan, folder, plan.blocks)
            result = _report(plan, folder, log)
    for line in unfinished(result.data["status"].values):
        notice(line)
    return result


def play_shard(
    spec: Sweep,
    out: Place,
    shard: tuple[int, int],
    *,
    executor: Any = None,
    devices: Sequence[Any] | None = None,
    workers: int | None = None,
    progress: bool | str = False,
    notice: Notice = warnings.warn,
) -> None:
    """Play one part of several of a sweep into a folder of its own; :func:`finish` puts the folders together.

    Args:
        shard: which, and of how many: (0, 4) to (3, 4).
        spec, out, executor, devices, workers, progress, notice: as in :func:`sweep`, which raises the same errors.

    Example:
        >>> import jaxbandits as jb, tempfile
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> spec = jb.Sweep(policies=jb.policies.UCB1(), environments=arms, replicates=4, engine="scan",
        ...     constraint=jb.TotalBudget(20.0, last_pull="counts"), block_seconds=1e-5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     parts = [f"{folder}/part-{number}" for number in range(2)]
        ...     for number, part in enumerate(parts):
        ...         play_shard(spec, part, (number, 2))
        ...     found = finish(spec, f"{folder}/all", parts)
        >>> found.data["regret"].sizes["replicate"]
        4
    """
    number, count = shard
    whole_number("shard: count", count, 1, 2**20)
    whole_number("shard: number", number, 0, count - 1)
    team = _Team(executor, devices, workers, progress, notice)
    plan, folder = make_plan(spec, team.platform), Folder(out)
    with folder.alone():
        log = team.fill(plan, folder, plan.blocks[number::count])
        log.note("end", peak_memory_bytes=machine.peak_memory())


def finish(spec: Sweep, out: Place, parts: Sequence[Place], *, notice: Notice = warnings.warn) -> SweepResult:
    """Take the blocks of several folders into one, and write the report. Nothing is played.

    Args:
        spec: the sweep that the folders hold parts of.
        out: the folder to finish: a new one, or one that holds some of the blocks.
        parts: the other folders; they stay as they are.
        notice: is told of corrupt blocks.

    Returns:
        The labelled results.

    Raises:
        InputError: blocks are missing, or a folder holds another sweep.
        StorageError: a file could not be written.

    Example:
        >>> import jaxbandits as jb, tempfile
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> spec = jb.Sweep(policies=jb.policies.UCB1(), environments=arms, replicates=2, engine="scan",
        ...     constraint=jb.TotalBudget(20.0, last_pull="counts"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     play_shard(spec, f"{folder}/part", (0, 1))
        ...     finish(spec, f"{folder}/all", [f"{folder}/part"]).data["regret"].sizes["replicate"]
        2
    """
    plan, folder = make_plan(spec), Folder(out)
    with folder.alone():
        left = {block.number for block in _missing(plan, folder, plan.blocks, notice)}
        for part in map(Folder, parts):
            part.check(plan)
            good, broken = part.sound()
            for path, wrong in broken.items():
                notice(f"{path}: it {wrong}; the block is not taken")
            for number in sorted(good & left):
                folder.put(number, part.content(number))
            left -= good
        if left:
            raise InputError(
                f"parts: {len(left)} of {len(plan.blocks)} blocks are in none of the folders (the first is block "
                f"{min(left)}); they must be played before, or by a run on {os.fspath(out)!r}, which has the others"
            )
        return _report(plan, folder, Log(folder.path))


class _Team:
    """Who plays: the devices of this process, or an executor."""

    def __init__(
        self, executor: Any, devices: Sequence[Any] | None, workers: int | None, progress: bool | str, notice: Notice
    ):
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise bad("executor", executor, "an object with submit(function, *args) -> future")
        for name, value in (("devices", devices), ("workers", workers)):
            if executor is not None and value is not None:
                raise bad(name, value, "left out: the executor has workers of its own")
        if workers is not None:
            whole_number("workers", workers, 1, 4096)
        self._devices = list(devices) if devices is not None else jax.local_devices()
        self._executor, self._workers = executor, workers or usual_workers(self._devices)
        self._progress, self._notice = progress, notice
        self.platform = self._devices[0].platform
        if link := getattr(executor, "dashboard_link", None):  # Dask has one
            notice(f"dashboard: {link}")

    def player(self, plan: SweepPlan) -> Player:
        """For one go at the blocks of a plan."""
        if self._executor is not None:
            return Elsewhere(self._executor, plan)
        return Here(plan, self._devices, self._workers)

    def fill(self, plan: SweepPlan, folder: Folder, blocks: Sequence[Block]) -> Log:
        """Play those of the blocks that the folder lacks."""
        log = Log(folder.path)
        while missing := _missing(plan, folder, blocks, self._notice):  # again: one may have been harmed since
            player = self.player(plan)
            log.note("start", missing=len(missing), **player.about())
            Dispatch(plan, player, folder.put, log.note, self._progress, self._notice).run(missing)
        return log


def _missing(plan: SweepPlan, folder: Folder, blocks: Sequence[Block], notice: Notice) -> list[Block]:
    """Those of the blocks that are not there; the folder is begun, or held against the plan."""
    folder.open(plan)
    there, broken = folder.sound(remove=True)
    for path, wrong in broken.items():
        notice(f"{path}: it {wrong}; the block is computed anew")
    return [block for block in blocks if block.number not in there]


def _report(plan: SweepPlan, folder: Folder, log: Log) -> SweepResult:
    """Results and report of a folder that has all blocks."""
    result = gather(plan, folder.get)
    for name, content in write_report(result).items():
        folder.write(name, content)
    log.note("end", peak_memory_bytes=machine.peak_memory())
    return result
