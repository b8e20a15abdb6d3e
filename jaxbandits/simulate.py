"""The one verb: checks at the door, then lanes through the engine, then a labelled result."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import jax
import numpy as np

from jaxbandits import ticks
from jaxbandits.engine import leap, pool, scan
from jaxbandits.errors import InputError, bad
from jaxbandits.progress import Progress, progress_of
from jaxbandits.protocol import Constraint, Environment, Policy, Status, check_range, map_leaves
from jaxbandits.rehearsal import rehearse
from jaxbandits.result import Result, join_settings
from jaxbandits.streams import root_key

ENGINES = ("auto", "leap", "scan")
_DEVICE_SLOTS = 1 << 14


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
        slots: lanes in flight per worker.
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
    chosen: list[Any] = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    _check_nouns(chosen, environment, constraint)
    environment.check()
    prepared = constraint.prepare(environment)
    root = root_key(key)
    shares = mark_shares(marks)
    replicate_ids = _ids("replicates", range(replicates) if _is_count("replicates", replicates) else replicates)  # type: ignore[arg-type]
    ids = _ids("instance_ids", range(environment.instances) if instance_ids is None else instance_ids)
    if ids.size != environment.instances:
        raise InputError(f"instance_ids: {ids.size} ids given; it must be one for each of {environment.instances}")
    names = tuple(str(x) for x in (ids if instance_names is None else instance_names))
    if len(names) != environment.instances:
        raise InputError(
            f"instance_names: {len(names)} names given; it must be one for each of {environment.instances}"
        )
    if engine not in ENGINES:
        raise bad("engine", engine, " or ".join(map(repr, ENGINES)))
    for name, value in (("slots", slots), ("chunk", chunk), ("max_rounds", max_rounds)):
        if value is not None and (not isinstance(value, (int, np.integer)) or not 1 <= value <= 2**30):
            raise bad(name, value, "a whole number from 1 to 2**30")

    end = ticks.join(jax.tree.map(np.asarray, prepared.end()))
    expected, cap = _lengths(environment, prepared, end, max_rounds)
    reward, cost = environment.values()
    settled = [settle(policy, environment) for policy in chosen]
    for leaves, _ in settled:
        rehearse(leaves, environment, prepared)
    engines = [_engine(engine, policy, environment, prepared) for policy in chosen]
    places = list(devices) if devices is not None else jax.local_devices()
    workers = max(len(places), os.cpu_count() or 1) if places[0].platform == "cpu" else len(places)
    parts = []
    runs = sum(settings for _, settings in settled) * ids.size * replicate_ids.size
    with progress_of(progress, len(chosen), runs) as shown:
        for policy, (leaves, settings), module in zip(chosen, settled, engines, strict=True):
            lanes = np.arange(settings * ids.size * replicate_ids.size)
            lengths = np.broadcast_to(expected[None, :, None], (settings, ids.size, replicate_ids.size))
            task = pool.Task(
                engine=module,
                policy=leaves,
                environment=environment,
                constraint=prepared,
                marks=_mark_totals(end, shares),
                root=np.asarray(jax.random.key_data(root)),
                instance_ids=ids,
                replicate_ids=replicate_ids,
                settings=settings,
                cap=cap,
                chunk=chunk or int(np.clip(expected.mean() / (8 * shares.size), 4, 128)),
                order=lanes[np.argsort(-lengths.ravel(), kind="stable")],
            )
            used = min(workers, lanes.size)
            largest = module.CPU_SLOTS if places[0].platform == "cpu" else _DEVICE_SLOTS
            width = slots or min(largest, 1 << (-(-lanes.size // used) - 1).bit_length())
            run = pool.Run(task, width, shown.start(type(policy).__name__, lanes.size))
            record = run.finish(places, used)
            parts.append(_result(record, task, policy, leaves, reward, cost, shares, names, constraint, used, root))
    result = join_settings(parts)
    _warn_of_unfinished(result)
    return result


def grid(policy: type[Policy], **values: Any) -> Policy:
    """Settings that are all combinations of the given values, the last one varying fastest.

    Example:
        >>> import jaxbandits as jb
        >>> jb.grid(jb.policies.OmegaUCB, rho=[0.25, 1.0]).rho.tolist()
        [0.25, 1.0]
    """
    axes = np.meshgrid(*(np.asarray(v, np.float64).ravel() for v in values.values()), indexing="ij")
    return policy(**{name: axis.ravel() for name, axis in zip(values, axes, strict=True)})


def mark_shares(marks: int | Sequence[float] | np.ndarray) -> np.ndarray:
    """Shares of the clock, float64, increasing, the last exactly 1: ``marks`` log-spaced ones from 0.1 %, or as given.

    Raises:
        InputError: fewer than 1 or more than 10 000 marks, or shares that do not rise to 1.
    """
    if _is_count("marks", marks):
        if not 1 <= marks <= 10_000:  # type: ignore[operator]
            raise bad("marks", marks, "from 1 to 10000, or the shares themselves")
        shares = np.geomspace(1e-3, 1.0, int(marks)) if marks != 1 else np.ones(1)  # type: ignore[arg-type]
        shares[-1] = 1.0
        return shares
    try:
        shares = np.asarray(marks, np.float64)
    except (TypeError, ValueError):
        raise bad("marks", marks, "a number of marks, or increasing shares in (0, 1] that end in 1") from None
    if shares.ndim != 1 or shares.size < 1 or not (shares > 0).all() or shares[-1] != 1 or (np.diff(shares) <= 0).any():
        raise bad("marks", marks, "a number of marks, or increasing shares in (0, 1] that end in 1")
    return shares


def settle(policy: Policy, environment: Environment) -> tuple[Policy, int]:
    """The policy with every leaf a NumPy float32/int32 array ``[setting, 1 or instance, core…]``, and the settings.

    Raises:
        InputError: a leaf whose leading axes fit neither ``[setting]`` nor ``[setting, instance]``.
    """
    policy.check(environment.spec)
    counts: dict[str, int] = {}

    def shape(name: str, value: Any, meta: Mapping[str, Any]) -> np.ndarray:
        check_range(name, value, meta)
        array = np.asarray(value, np.int32 if meta.get("integer") else np.float32)
        lead = array.ndim - meta.get("core", 0)
        if lead == 0:
            array = array[None, None]
        elif lead == 1:
            array = array[:, None]
        elif lead != 2 or array.shape[1] not in (1, environment.instances):
            raise InputError(
                f"{name}: an array of shape {np.shape(value)} given; its leading axes must be [setting] or "
                f"[setting, instance], with {environment.instances} instances"
            )
        counts[name] = array.shape[0]
        return array

    shaped = map_leaves(policy, shape)
    settings = max(counts.values(), default=1)
    for name, count in counts.items():
        if count not in (1, settings):
            raise InputError(
                f"{name}: {count} settings given; it must be 1 or {settings}, as the others (use grid(...) for "
                "combinations)"
            )
    return jax.tree.map(lambda x: np.broadcast_to(x, (settings, *x.shape[1:])), shaped), settings


def label(policy: Any, leaves: Any, setting: int) -> str:
    """A setting's name: the policy and its parameters, e.g. ``OmegaUCB(rho=0.25)``."""
    parts = []
    for field in dataclasses.fields(policy):
        value = getattr(leaves, field.name)
        if value is None:
            continue
        if dataclasses.is_dataclass(value):
            parts.append(label(getattr(policy, field.name), value, setting))
            continue
        if not field.metadata.get("static"):
            values = np.unique(np.asarray(value)[setting])
            value = f"{values[0]:.6g}" if values.size == 1 else "per instance"
        parts.append(f"{field.name}={value}")
    return f"{type(policy).__name__}({', '.join(parts)})" if parts else type(policy).__name__


def _check_nouns(chosen: list[Any], environment: Environment, constraint: Constraint) -> None:
    if not chosen:
        raise InputError("policies: none given; it must be a policy or a list of them")
    for policy in chosen:
        if not isinstance(policy, Policy) or not dataclasses.is_dataclass(policy):
            raise bad("policies", policy, "a policy (an instance of a @jb.pytree class, such as OmegaUCB(rho=0.25))")
    if not isinstance(environment, Environment):
        raise bad("environment", environment, "an environment, such as FiniteArms.bernoulli(...)")
    if not isinstance(constraint, Constraint):
        raise bad("constraint", constraint, "a constraint, such as TotalBudget(500.0, last_pull='counts')")
    for policy in chosen:
        if not isinstance(getattr(policy, "plays", None), type):
            raise InputError(
                f"policies: {type(policy).__name__} does not say what it `plays`; it must be a class such as FiniteSpec"
            )
        if not isinstance(environment.spec, policy.plays):
            raise InputError(
                f"policies: {type(policy).__name__} plays environments with a {policy.plays.__name__}, "
                f"but {type(environment).__name__} offers a {type(environment.spec).__name__}"
            )


def _is_count(name: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        raise bad(name, value, "a whole number of at least 1, or a list")
    if isinstance(value, (int, np.integer)):
        if value < 1:
            raise bad(name, value, "a whole number of at least 1, or a list")
        return True
    return False


def _ids(name: str, values: Any) -> np.ndarray:
    ids = np.asarray(list(values))
    if ids.ndim != 1 or ids.size < 1 or ids.dtype.kind not in "iu" or np.unique(ids).size != ids.size:
        raise bad(name, values, "a list of distinct whole numbers")
    if ids.min() < 0 or ids.max() >= 2**32:
        raise bad(name, values, "a list of whole numbers from 0 to 2**32 - 1")
    return ids.astype(np.uint32)


def _engine(engine: str, policy: Policy, environment: Environment, constraint: Constraint) -> ModuleType:
    if engine == "scan":
        return scan
    reason = leap.why_not(policy, environment, constraint)
    if reason and engine == "leap":
        raise InputError(f"engine: 'leap' given, but {reason}; it must be 'auto' or 'scan'")
    return scan if reason else leap


def _lengths(
    environment: Environment, prepared: Constraint, end: np.ndarray, max_rounds: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Expected rounds of each instance (for scheduling only), and its round cap: neither depends on other instances."""
    if prepared.clock_name == "rounds":
        rounds = end / ticks.ONE
        return rounds, _cap(rounds + 1, max_rounds)
    _, cost = environment.values()
    if getattr(environment.spec, "resources", None) is not None:
        cost = cost[..., 0]  # the clock is resource 0
    if max_rounds is None and np.nanmin(cost) <= 0:
        raise InputError(
            "environment: an arm with mean cost 0 given; it must be above 0 under a budget, or max_rounds must be given"
        )
    with np.errstate(divide="ignore"):
        rounds = end / ticks.ONE / np.nanmean(cost, axis=-1)
        # Far beyond chance: with costs of 0 or 1, even a tiny budget waits 1/c rounds for its first cost.
        longest = 4 * (end / ticks.ONE + 16) / np.nanmin(cost, axis=-1) + 1000
    cap = _cap(longest, max_rounds)
    return np.minimum(rounds, cap), cap


def _cap(rounds: np.ndarray, max_rounds: int | None) -> np.ndarray:
    return np.minimum(rounds if max_rounds is None else np.full(rounds.shape, max_rounds), 2**31 - 2).astype(np.int32)


def _mark_totals(end: np.ndarray, shares: np.ndarray) -> ticks.Total:
    at = np.floor(end[:, None] * shares[None, :]).astype(np.int64)
    at[:, -1] = end
    return ticks.split(at)


def _result(
    record: pool.Record,
    task: pool.Task,
    policy: Policy,
    leaves: Policy,
    reward: np.ndarray,
    cost: np.ndarray,
    shares: np.ndarray,
    names: tuple[str, ...],
    constraint: Constraint,
    workers: int,
    root: Any,
) -> Result:
    shape = (task.settings, task.instance_ids.size, task.replicate_ids.size)

    def laid_out(x: np.ndarray) -> np.ndarray:
        return x.reshape(*shape, *x.shape[1:])

    rows = record.rows
    ledger = {"rounds": np.asarray(rows.rounds, np.int64)}
    for name in ("reward", "spent", "expected_reward", "expected_spent"):
        ledger[name] = ticks.join(getattr(rows, name))
    ledger |= {f"event:{name}": np.asarray(x, np.int64) for name, x in rows.events.items()}
    ledger |= {f"audit:{name}": ticks.join(x) for name, x in rows.audit.items()}
    ledger["clock"] = ticks.join(task.constraint.clock(rows))
    ledger["expected_clock"] = task.constraint.expected_clock(ledger)
    settings = tuple(label(policy, leaves, i) for i in range(task.settings))
    return Result(
        ledger={name: laid_out(x) for name, x in ledger.items()},
        ended=laid_out(record.status),
        final={name: laid_out(x) for name, x in record.final.items()},
        best_rate=task.constraint.best_rate(reward, cost),
        settings=settings,
        instances=names,
        replicates=tuple(int(i) for i in task.replicate_ids),
        marks=tuple(float(s) for s in shares),
        about={
            "policies": list(settings),
            "environment": type(task.environment).__name__,
            "constraint": described(constraint),
            "engine": task.engine.__name__.rsplit(".", 1)[-1],
            "clock": task.constraint.clock_name,
            "key": np.asarray(jax.random.key_data(root)).tolist(),
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
