"""The one verb: checks at the door, then lanes through the engine, then a labelled result."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits import machine
from jaxbandits.engine import pool
from jaxbandits.errors import bad
from jaxbandits.layout import Layout, check_count, lay_out, ledger_of
from jaxbandits.layout import label as label
from jaxbandits.layout import mark_shares as mark_shares
from jaxbandits.layout import settle as settle
from jaxbandits.numbers import numbers, refuse_beyond_memory
from jaxbandits.progress import Progress, check_progress, progress_of
from jaxbandits.protocol import Constraint, Environment, Policy, Status
from jaxbandits.result import Result, join_settings

_DEVICE_SLOTS = 1 << 14
_STATES = 8  # copies of a lane's state while a program runs, at most (measured: sweeps stay below)
_SHARE_OF_MEMORY = 0.5  # of what is free
_CACHE = (
    3 << 18
)  # bytes of state that a core keeps at hand (measured: 1,360 arms, 16 slots 2.2 µs a round, 128 slots 4.4)


def simulate(
    policies: Policy | Sequence[Policy],
    environment: Environment,
    constraint: Constraint,
    *,
    key: Any,
    replicates: int | Sequence[int] = 1,
    marks: int | Sequence[float] | np.ndarray = 50,
    engine: str = "auto",
    max_rounds: int | None = None,
    instance_ids: Sequence[int] | None = None,
    instance_names: Sequence[str] | None = None,
    slots: int | None = None,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    progress: bool | Progress = False,
) -> Result:
    """Play every policy setting on every instance, ``replicates`` times, until the constraint ends each lane.

    All policies and settings meet the same world: the n-th pull of an arm in (instance, replicate) gives the same
    outcome whoever pulls it, so differences between policies are paired. No result depends on ``slots``, ``chunk``,
    ``devices``, on the other lanes, or (but for the choice of columns) on ``marks``.

    Args:
        policies: one policy or a list. A leaf may carry extra leading axes: ``[setting]`` or ``[setting, instance]``.
        environment: the world, of one or more instances.
        constraint: the accountant, e.g. ``TotalBudget(500.0, last_pull="counts")``.
        key: ``jax.random.key(seed)``.
        replicates: how many independent runs of each (setting, instance), or their ids.
        marks: how many points of the clock to record at (log-spaced shares, the last is exactly 1), or the shares.
        engine: ``"scan"`` runs any policy round by round; ``"leap"`` runs index policies whose scores rest, many
            rounds at a time, with the same bits; ``"auto"`` leaps where it can.
        max_rounds: end a lane after this many rounds at the latest. Default: what no lane should need, from the
            instance's budget and cheapest arm.
        instance_ids: ids of the instances for the addresses of draws, default 0, 1, …; give them to run a part of a
            batch with the very numbers that it has in the whole.
        instance_names: labels of the instances, default the ids.
        slots: lanes in flight per worker; default as many as are fast and fit into half of the free memory.
        chunk: rounds between two looks at the marks.
        devices: where to run, default all local devices of the default backend; on CPU one worker per core.
        progress: show a bar with the time left, and say when something is compiled; or a
            :class:`~jaxbandits.progress.Progress` that several calls share.

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
    slots, places = check_count("slots", slots), _places(devices)
    check_progress(progress)
    layout = lay_out(
        policies,
        environment,
        constraint,
        key=key,
        replicates=replicates,
        marks=marks,
        engine=engine,
        max_rounds=max_rounds,
        instance_ids=instance_ids,
        instance_names=instance_names,
        chunk=chunk,
        at_once=True,
    )
    _check_slots(slots, layout)
    workers = usual_workers(places)
    runs = sum(task.order.size for task in layout.tasks)
    records = [pool.Record(task.order.size) for task in layout.tasks]
    queues = [
        pool.Queue(task, slots or usual_slots(task, min(workers, task.order.size), places), record.put)
        for task, record in zip(layout.tasks, records, strict=True)
    ]
    names = [type(policy).__name__ for policy in layout.policies]
    with progress_of(progress, len(queues), runs) as shown:
        # All at once, so that one policy compiles while another one plays.
        pool.Run(queues, shown.start(names, runs)).finish(places, min(workers, runs))
    parts = [_result(record, layout, number, constraint) for number, record in enumerate(records)]
    result = join_settings(parts)
    _warn_of_unfinished(result)
    return result


def _places(devices: Any) -> list[Any]:
    """The devices to run on.

    Raises:
        InputError: something that is no device of this process, or none at all.
    """
    if devices is None:
        return jax.local_devices()
    try:
        found = list(devices)
    except TypeError:
        found = []
    if not found or not all(isinstance(x, jax.Device) and x.process_index == jax.process_index() for x in found):
        raise bad("devices", devices, "a list of devices of this process, such as jax.local_devices()")
    return found


def _check_slots(slots: int | None, layout: Layout) -> None:
    if slots is None:
        return
    tried = min(slots, 64)
    for task in layout.tasks:
        refuse_beyond_memory("slots", slots, pool.state_bytes(task, tried) / tried * slots)


def usual_workers(places: Sequence[Any]) -> int:
    """One per device; on CPU at least one per core that this process may use."""
    if places[0].platform != "cpu":
        return len(places)
    return max(len(places), machine.cores())


def usual_slots(task: pool.Task, workers: int, places: Sequence[Any]) -> int:
    """Lanes in flight per worker: as many as are fast, but no more than there are, nor than fit into memory."""
    fast = _DEVICE_SLOTS
    if places[0].platform == "cpu":
        fast = min(task.engine.CPU_SLOTS, _power_of_two(_CACHE // pool.memory_bytes(task)))
    wanted = min(fast, 1 << (-(-task.order.size // workers) - 1).bit_length())
    here = -(-workers // len(places))  # workers that share a device's memory
    lane = _STATES * pool.state_bytes(task, wanted) / wanted
    fit = int(_SHARE_OF_MEMORY * memory_left(places[0]) / (here * lane))
    return min(wanted, _power_of_two(fit))


def _power_of_two(most: int) -> int:
    """The largest one that is at most ``most``, but at least 1."""
    return 1 << max(most.bit_length() - 1, 0)


def memory_left(device: Any) -> int:
    """Free memory of a device, in bytes; of a CPU, that of the machine."""
    told = device.memory_stats() or {}
    if "bytes_limit" in told:
        return int(told["bytes_limit"] - told.get("bytes_in_use", 0))
    return machine.free_memory()


def grid(policy: type[Policy], **values: Any) -> Policy:
    """Settings that are all combinations of the given values, the last one varying fastest.

    Example:
        >>> import jaxbandits as jb
        >>> jb.grid(jb.policies.OmegaUCB, rho=[0.25, 1.0]).rho.tolist()
        [0.25, 1.0]
    """
    axes = np.meshgrid(*(numbers(name, value).ravel() for name, value in values.items()), indexing="ij")
    return policy(**{name: axis.ravel() for name, axis in zip(values, axes, strict=True)})


def _result(record: pool.Record, layout: Layout, number: int, constraint: Constraint) -> Result:
    task, settings = layout.tasks[number], layout.settings[number]
    shape = layout.lane_shape(task)

    def laid_out(x: np.ndarray) -> np.ndarray:
        return x.reshape(*shape, *x.shape[1:])

    return Result(
        ledger={name: laid_out(x) for name, x in ledger_of(record.rows, task.constraint).items()},
        ended=laid_out(record.status),
        final={name: laid_out(x) for name, x in record.final.items()},
        best_rate=layout.best_rate,
        settings=settings,
        instances=layout.names,
        replicates=tuple(int(i) for i in task.replicate_ids),
        marks=tuple(float(s) for s in layout.shares),
        about={
            "policies": list(settings),
            "environment": type(task.environment).__name__,
            "constraint": described(constraint),
            "engine": task.engine.__name__.rsplit(".", 1)[-1],
            "why_scan": task.why_scan,
            "clock": task.constraint.clock_name,
            "key": task.root.tolist(),
            "instance_ids": task.instance_ids.tolist(),
            "max_rounds": task.cap.tolist(),
            "jax": jax.__version__,
        },
    )


def described(owner: Any) -> dict[str, Any]:
    """A dataclass as JSON: its class, and its fields."""
    fields = {f.name: getattr(owner, f.name) for f in dataclasses.fields(owner)}
    plain = {k: np.asarray(v).tolist() if np.size(v) <= 10_000 else "…" for k, v in fields.items() if v is not None}
    return {"class": type(owner).__name__, **plain}


_REASONS = {
    Status.ROUND_CAP: "max_rounds came before the end of the clock",
    Status.CAPACITY: "a growing set is full: their regret stops early and is not comparable; rerun with more capacity",
    Status.INVALID: "the policy asked for an action that the environment does not have, or a score was NaN",
}


def _warn_of_unfinished(result: Result) -> None:
    good = (Status.EXHAUSTED, Status.HORIZON)
    for status in Status:
        lanes = int((result.ended == status).sum())
        if status not in good and lanes:
            warnings.warn(
                f"{lanes} of {result.ended.size} lanes ended with status {status.name.lower()} "
                f"({_REASONS.get(status, 'unexpected')}); see result.status",
                stacklevel=3,
            )
