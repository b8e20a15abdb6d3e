"""``simulate``: checks its arguments, runs an engine and labels the result."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import limits, pool
from jaxbandits._engine.scan import ledger_of
from jaxbandits._engine.setup import Layout, check_count, lay_out
from jaxbandits._engine.stated import APART, StatedMeans, warn_of
from jaxbandits._progress import Progress, unfinished
from jaxbandits._provenance import classes_of, maker_of, processor_name, sources_of, versions
from jaxbandits.core import ticks
from jaxbandits.core.checks import bad, door, refuse_beyond_memory, whole_number
from jaxbandits.core.fingerprint import digest_of_arrays
from jaxbandits.core.protocol import Constraint, Environment, Policy, Status
from jaxbandits.core.settings import Settings
from jaxbandits.result import UTC, About, Result, join_settings


@door
def simulate(
    policies: Policy | Settings | Sequence[Policy | Settings],
    environment: Environment,
    constraint: Constraint,
    *,
    key: Any,
    replicates: int | Sequence[int] | np.ndarray = 1,
    marks: int | Sequence[float] | np.ndarray = 50,
    record: Sequence[str] = (),
    engine: str = "auto",
    max_rounds: int | None = None,
    instance_ids: Sequence[int] | None = None,
    instance_names: Sequence[str] | None = None,
    slots: int | None = None,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    progress: bool | str | Progress | None = None,
) -> Result:
    """Simulate every policy setting on every instance, ``replicates`` times.

    The constraint ends each run. All policies and settings face the same world: the n-th pull of an
    arm in (instance, replicate) gives the same outcome for each of them, so differences between
    policies are paired. No result depends on ``slots``, ``chunk``, ``devices``, on other runs, or
    (except for the choice of columns) on ``marks``.

    Args:
        policies: one policy or a list. A leaf may have extra leading axes: ``[setting]`` or
            ``[setting, instance]``. Settings that were checked already (``core.settings.Settings``)
            are used as they are.
        environment: the world, of one or more instances.
        constraint: when runs end, e.g. ``TotalBudget(500.0, last_pull="counts")``.
        key: ``jax.random.key(seed)``.
        replicates: how many independent runs of each (setting, instance), or their ids; or
            ``[instance, replicate]``, separate ids for each instance: then an instance id may occur
            twice, if no (instance id, replicate id) does. So instances that differ between runs can
            be simulated in parts with the draws that they have in the whole.
        marks: how many points of the clock to record at (log-spaced shares, the last is exactly 1),
            or the shares.
        record: what to record at every mark in addition: ``"pulls"``, or another integer that the
            environment reports (see :meth:`Result.recorded`, :meth:`Result.linear`). 8 bytes per
            number.
        engine: ``"scan"`` runs any policy round by round; ``"leap"`` runs index policies whose
            scores rest, many rounds at a time, with the same bits; ``"auto"`` leaps if possible and
            if that repays its longer compilation (``about.why_scan`` says why not); ``"kernel"``
            runs the rounds of ``"scan"`` in one kernel of an NVIDIA GPU.
        max_rounds: end a run after this many rounds at the latest. Default: more than any run
            should need, by budget and cheapest arm. (A limit of yours: ``BudgetAndHorizon``.)
        instance_ids: ids of the instances for the addresses of draws, default 0, 1, …; give them
            to run a part of a batch with the same random numbers as in the whole.
        instance_names: labels of the instances, text or whole numbers; default the ids.
        slots: concurrent runs per worker; default as many as are fast and fit into half of the
            free memory.
        chunk: rounds between checks for marks.
        devices: where to run, default all local devices of the default backend; on CPU one worker
            per core.
        progress: show a bar with the time left; None: after two seconds, on a terminal and in a
            notebook. Or a :class:`~jaxbandits._progress.Progress` that several calls share.

    Returns:
        A :class:`Result` with axes setting, instance, replicate, mark.

    Raises:
        InputError: naming the argument, its value, and what it may be, before anything is compiled.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.4], [0.9, 0.3])
        >>> result = jb.simulate(
        ...     jb.policies.OmegaUCB(rho=0.25), arms, jb.TotalBudget(50.0, last_pull="counts"),
        ...     key=jax.random.key(0), replicates=4, marks=5)
        >>> result.regret.sizes["replicate"], result.status.values.ravel().tolist()
        (4, ['exhausted', 'exhausted', 'exhausted', 'exhausted'])
    """
    began, when = time.perf_counter(), time.strftime(UTC, time.gmtime())
    slots = check_count("slots", slots)
    devices = _devices(devices)
    layout = lay_out(
        policies,
        environment,
        constraint,
        key=key,
        replicates=replicates,
        marks=marks,
        record=record,
        engine=engine,
        max_rounds=max_rounds,
        instance_ids=instance_ids,
        instance_names=instance_names,
        chunk=chunk,
        at_once=True,
        platform=devices[0].platform,
    )
    jobs = [pool.Job(task, task.order) for task in layout.tasks]
    runs = sum(job.lanes.size for job in jobs)
    if slots is not None:  # the one number of this call that can ask for any amount of memory
        tried = min(slots, 64)
        lane = max(task.shapes.bytes(tried) for task in layout.tasks) / tried
        refuse_beyond_memory("slots", slots, lane * slots)
    names = [type(task.policy).__name__ for task in layout.tasks]
    display = progress if isinstance(progress, Progress) else Progress(progress, len(jobs), runs)
    with (
        # A Progress that several calls share stays open.
        contextlib.nullcontext(display) if display is progress else display as bar,
        pool.Workers(devices, pool.usual_workers(devices, runs), slots) as workers,
    ):
        futures = workers.submit(jobs)
        if "xarray" not in sys.modules:  # it takes a second: beside XLA, which needs no Python
            threading.Thread(target=_import_xarray, daemon=True).start()
        answers = workers.wait(futures, bar.start(names, runs))
    origin = origin_of(environment, devices[0].device_kind)
    parts = []
    for number, (task, accounts) in enumerate(zip(layout.tasks, answers, strict=True)):
        instances = task.places(np.arange(task.order.size))[1]
        ledger, whole = ledger_of(accounts.rows, task.constraint, instances), (layout, number)
        parts.append(labelled(ledger, accounts.status, accounts.final, *whole, constraint, origin))
    result = join_settings(parts)
    facts = {"seconds": time.perf_counter() - began, "processor": processor_name()}
    facts |= {"when": when, "why_plain": workers.why_plain}
    result = dataclasses.replace(result, about=dataclasses.replace(result.about, **facts))  # type: ignore[arg-type]
    for line in unfinished(result.ended):
        warnings.warn(f"{line}; see result.status", stacklevel=3)
    if (early := _ended_early(result, layout.tasks[0].constraint)) is not None:
        warnings.warn(early, stacklevel=3)
    return result


def _ended_early(result: Result, ready: Constraint) -> str | None:
    """How many lanes ended by what the clock does not measure, in a line; None if none did."""
    several = getattr(ready, "resources", None) is not None
    if several or limits.ends_before_its_clock(ready) is None:
        return None
    # The benchmark of their regret stands still with the clock.
    is_early = result.ledger["clock"][..., -1] < ticks.join(ready.end())[:, None]
    if not (early := int(((result.ended == ready.ends_with) & is_early).sum())):
        return None
    by = f"{type(ready).__name__}.ended before their clock did"
    see = "their regret means nothing; see result.rounds and result.spent"
    return f"{early} of {is_early.size} lanes ended by {by}: {see}"


def _import_xarray() -> None:
    import xarray

    xarray.Variable((), 0.0)  # the first one looks for dask and others


def _devices(devices: Any) -> list[Any]:
    """Those of this process to run on, checked; default all."""
    if devices is None:
        return jax.local_devices()
    listed = list(devices) if isinstance(devices, Iterable) else []
    own = (isinstance(x, jax.Device) and x.process_index == jax.process_index() for x in listed)
    if not listed or not all(own):
        may_be = "a list of devices of this process, such as jax.local_devices()"
        raise bad("devices", devices, may_be)
    return listed


def origin_of(environment: Environment, device: str) -> dict[str, Any]:
    """Versions, device kind, digest of the world's numbers now: tables may change in place."""
    numbers = digest_of_arrays(("", np.asarray(x)) for x in jax.tree.leaves(environment))
    origin = {**versions(), "python": platform.python_version(), "device": device}
    return {**origin, "instances_digest": numbers, "made_by": maker_of(environment)}


def labelled(
    ledger: Mapping[str, np.ndarray],
    ended: np.ndarray,
    final: Mapping[str, np.ndarray],
    layout: Layout,
    number: int,
    constraint: Constraint,
    origin: Mapping[str, Any],
) -> Result:
    """The result of one task, of its lanes' accounts ``[lane, …]``; ``constraint``: the user's own."""
    task, settings = layout.tasks[number], layout.settings[number]
    instance = task.places(np.arange(task.order.size))[1]
    accounts, world = dict(ledger), task.environment
    if isinstance(world, StatedMeans):
        world = world.inside
        if (apart := accounts.pop(f"event:{APART}")[..., -1] > 0).any():
            first = task.places(np.array([np.argmax(apart)]))
            place = f"{settings[first[0][0]]}, instance {layout.names[first[1][0]]}"
            warn_of(world, f"{int(apart.sum())} of {apart.size} lanes (first: {place})", 4)
    # Where all arms are closed nothing is paid any more, and what is left is lost: time goes on.
    at = ticks.join(task.marks)[instance]
    closed = (ended == Status.CLOSED)[:, None] & (ledger["clock"] < at)
    for name in layout.benchmarks:
        for clock in ("clock", "expected_clock"):
            possible = layout.possible(instance, np.where(closed, at, ledger[clock]), name)
            if name.endswith("_error"):
                possible = np.nan_to_num(possible, nan=-1.0)  # not known, see Result
            if not np.isnan(possible).any():  # else regrets are NaN
                accounts[f"{name}:{clock}"] = ticks.from_units(possible)
    best_rate = layout.best_rates[number]
    if layout.benchmarks and "moving:clock" not in accounts:
        best_rate = np.full_like(best_rate, np.nan)
    several = task.replicate_ids.ndim == 2  # ids of each instance: the axis counts
    shape = task.shape

    def by_lane(x: np.ndarray) -> np.ndarray:
        return x.reshape(*shape, *x.shape[1:])

    return Result(
        ledger={name: by_lane(x) for name, x in accounts.items()},
        ended=by_lane(ended),
        final={name: by_lane(x) for name, x in final.items()},
        best_rate=best_rate,
        settings=settings,
        instances=layout.names,
        replicates=tuple(range(shape[2])) if several else tuple(int(i) for i in task.replicate_ids),
        marks=tuple(float(s) for s in layout.shares),
        about=About(
            parameters=tuple(task.policy_settings.parameters),
            engines=(task.engine.__name__.rsplit(".", 1)[-1],) * len(settings),
            classes=(classes_of(task.policy),) * len(settings),
            why_scan=task.why_scan,
            environment=type(world).__name__,
            constraint=described(constraint),
            clock=task.constraint.clock_name,
            key=tuple(task.root.tolist()),
            instance_ids=tuple(task.instance_ids.tolist()),
            replicate_ids=tuple(task.replicate_ids.tolist()) if several else None,
            max_rounds=tuple(task.cap.tolist()),
            sources=(sources_of([task.policy, world, constraint], task.program),) * len(settings),
            **origin,
        ),
    )


def described(owner: Any) -> dict[str, Any]:
    """A dataclass as JSON: its class and its fields."""
    plain = {"class": type(owner).__name__}
    for field in dataclasses.fields(owner):
        if (x := getattr(owner, field.name)) is not None:
            plain[field.name] = np.asarray(x).tolist() if np.size(x) <= 10_000 else "…"
    return plain


@door
def rerun_larger(
    run: Callable[[int], Result], capacity: int, *, most: int = 1 << 16
) -> tuple[Result, int]:
    """Run with capacity doubled each time until no run ends because a growing set is full.

    A larger capacity changes no draw: runs that were full repeat the same rounds and continue, the
    others are the same to the bit. So the result is that of the largest capacity, in less time if
    few runs need it.

    Args:
        run: simulates with the given capacity, e.g. ``lambda room: jb.simulate(policy,
            arms.with_capacity(room), …)``.
        capacity: the first one to try, at least 1.
        most: the largest capacity; the last result is returned even if sets are still full (with
            the usual warning).

    Returns:
        The result, and its capacity.

    Raises:
        InputError: a capacity that is not a whole number from 1 to ``most``.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.Reservoir.ratio(jax.random.key(0), instances=3, capacity=1)
        >>> def run(room):
        ...     return jb.simulate(jb.policies.rcb_air(beta=1.0), arms.with_capacity(room),
        ...                        jb.TotalBudget(20.0, last_pull="forfeits"), key=jax.random.key(1), marks=1)
        >>> result, room = jb.rerun_larger(run, capacity=4)
        >>> room, set(result.status.values.ravel().tolist())
        (16, {'exhausted'})
    """
    whole_number("capacity", capacity, 1, most)
    while True:
        last = 2 * capacity > most
        with warnings.catch_warnings():
            if not last:
                warnings.filterwarnings("ignore", message=".*lanes ended with status capacity.*")
            result = run(capacity)
        if last or not (result.ended == Status.CAPACITY).any():
            return result, capacity
        capacity *= 2
