"""Input validated, and laid out as tasks for the engines."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

import jax
import numpy as np

from jaxbandits._engine import leap, limits, merge, scan
from jaxbandits._engine.dry_run import check_dry_run, check_values
from jaxbandits._engine.marks import mark_shares, mark_totals
from jaxbandits._engine.prepared import prepare
from jaxbandits._engine.tasks import Task
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.numbers import refuse_cycles, refuse_traced, whole_number
from jaxbandits.core.protocol import Constraint, Environment, Policy, Status
from jaxbandits.core.settings import canonicalise, label
from jaxbandits.core.streams import root_key
from jaxbandits.core.user_methods import called

ENGINES = ("auto", "leap", "scan")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Checked input: one task per policy, and what their lanes share.

    Attributes:
        tasks: what the engines run; a lane's number counts (setting, instance, replicate) in C order.
        settings: labels, for each policy one per setting.
        names: labels of the instances.
        shares: the marks as shares of the clock, float64.
        expected: expected rounds of a lane of each instance, float64 ``[instance]``; they steer scheduling only.
        best_rate: best reward per unit of the clock, float64 ``[instance]``.
    """

    tasks: tuple[Task, ...]
    settings: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    shares: np.ndarray
    expected: np.ndarray
    best_rate: np.ndarray

    def lane_shape(self, task: Task) -> tuple[int, int, int]:
        """(settings, instances, replicates) of a task."""
        return task.settings, task.instance_ids.size, task.replicate_ids.shape[-1]


def lay_out(
    policies: Policy | Sequence[Policy],
    environment: Environment,
    constraint: Constraint,
    *,
    key: Any,
    replicates: int | Sequence[int] | np.ndarray = 1,
    marks: int | Sequence[float] | np.ndarray = 50,
    engine: str = "auto",
    max_rounds: int | None = None,
    instance_ids: Sequence[int] | None = None,
    instance_names: Sequence[str] | None = None,
    chunk: int | None = None,
    at_once: bool = False,
) -> Layout:
    """Check everything and compile nothing; arguments and errors are those of :func:`~jaxbandits.simulate`.

    With ``at_once`` the results of all runs must fit into memory together.
    """
    chosen: list[Any] = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    _check_nouns(chosen, environment, constraint)
    called(environment, "check", environment.check)
    check_values(environment)
    limits.check_widths(environment)
    prepared = prepare(constraint, environment)
    root = root_key(key)
    shares = mark_shares(marks)
    kept = shares.size if at_once else 0  # marks whose results are held until the end
    replicate_ids = limits.replicate_ids(replicates, environment, kept)
    ids, names, runs = _instances(environment, instance_ids, instance_names, replicate_ids)
    if not isinstance(engine, str) or engine not in ENGINES:
        raise bad("engine", engine, " or ".join(map(repr, ENGINES)))
    chunk, max_rounds = check_count("chunk", chunk), check_count("max_rounds", max_rounds)

    end = called(prepared, "end", lambda: ticks.join(jax.tree.map(np.asarray, prepared.end())))
    expected, cap = lane_lengths(environment, prepared, end, max_rounds)
    canonical = _canonical(chosen, environment, prepared)
    lanes = sum(settings for _, settings in canonical) * ids.size * runs
    limits.refuse_runs(lanes, runs, environment, kept)
    tasks = []
    for leaves, settings in canonical:
        most = limits.most_rounds(leaves, environment, prepared, end, max_rounds)
        lengths = np.broadcast_to(expected[None, :, None], (settings, ids.size, runs))
        chosen_engine, why = _engine(engine, leaves, environment, prepared, float(lengths.sum()))
        tasks.append(
            Task(
                engine=chosen_engine,
                why_scan=why,
                policy=leaves,
                environment=environment,
                constraint=prepared,
                marks=mark_totals(end, shares),
                root=np.asarray(jax.random.key_data(root)),
                instance_ids=ids,
                replicate_ids=replicate_ids,
                settings=settings,
                cap=np.minimum(cap, most).astype(np.int32),
                chunk=_chunk(chunk, cap, expected, shares),
                order=np.argsort(-lengths.ravel(), kind="stable"),
            )
        )
    return Layout(
        tasks=tuple(tasks),
        settings=tuple(tuple(label(leaves, i) for i in range(settings)) for leaves, settings in canonical),
        names=names,
        shares=shares,
        expected=expected,
        best_rate=_best_rate(prepared, environment),
    )


def _chunk(asked: int | None, cap: np.ndarray, expected: np.ndarray, shares: np.ndarray) -> int:
    """Rounds between two looks at the marks."""
    return min(asked, int(cap.max())) if asked else int(np.clip(expected.mean() / (8 * shares.size), 4, 128))


def _canonical(chosen: list[Policy], environment: Environment, constraint: Constraint) -> list[tuple[Policy, int]]:
    """The policies in canonical form with their settings, each after a dry run."""
    found = [canonicalise(policy, environment.instances, environment.spec) for policy in chosen]
    for leaves, _ in found:
        check_dry_run(leaves, environment, constraint)
        said = called(leaves, "warnings", partial(leaves.warnings, environment))
        if not isinstance(said, (list, tuple)) or not all(isinstance(text, str) for text in said):
            raise bad(f"{type(leaves).__name__}.warnings", said, "a list of lines")
        for text in said:
            warnings.warn(text, stacklevel=5)
    return found


def _instances(
    environment: Environment, ids: Any, names: Any, replicates: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...], int]:
    """Ids and names of the instances, and how many runs each has."""
    ids = limits.instance_ids(np.arange(environment.instances) if ids is None else ids, environment, replicates)
    if ids.size != environment.instances:
        raise InputError(f"instance_ids: {ids.size} ids given; it must be one for each of {environment.instances}")
    found = _names(ids if names is None else names)
    if len(found) != environment.instances:
        raise InputError(
            f"instance_names: {len(found)} names given; it must be one for each of {environment.instances}"
        )
    return ids, found, replicates.shape[-1]


def _names(given: Any) -> tuple[str, ...]:
    try:
        if isinstance(given, (str, bytes)):
            raise TypeError
        names = list(given)
        if not all(isinstance(x, (str, int, np.integer)) and not isinstance(x, bool) for x in names):
            raise TypeError
        return tuple(map(str, names))
    except TypeError:
        raise bad("instance_names", given, "a list of names, one for each instance") from None


def check_count(name: str, value: Any) -> int | None:
    """The value, if it is None or a whole number from 1 to 2³⁰; else raise :class:`InputError`."""
    return None if value is None else whole_number(name, value, 1, 2**30, "2**30")


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
    nouns = [*((policy, "policies") for policy in chosen), (environment, "environment"), (constraint, "constraint")]
    for noun, name in nouns:
        _check_registered(noun, name)
    for noun, name in nouns:
        if forgotten := capabilities.forgotten(noun):
            raise InputError(f"{name}: {forgotten}; it must")
        refuse_traced(name, noun)
    _check_clock(constraint)
    spec = called(environment, "spec", lambda: environment.spec)
    for policy in chosen:
        if not isinstance(getattr(policy, "plays", None), type):
            raise InputError(
                f"policies: {type(policy).__name__} does not say what it `plays`; it must be a class such as FiniteSpec"
            )
        if not isinstance(spec, policy.plays):
            raise InputError(
                f"policies: {type(policy).__name__} plays environments with a {policy.plays.__name__}, "
                f"but {type(environment).__name__} offers a {type(spec).__name__}"
            )


def _best_rate(prepared: Constraint, environment: Environment) -> np.ndarray:
    given = called(prepared, "best_rate", lambda: prepared.best_rate(*environment.values()))
    try:
        rate = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        rate = np.zeros((0, 0))
    if rate.shape != (environment.instances,):
        raise bad(f"{type(prepared).__name__}.best_rate", given, f"{environment.instances} numbers, one per instance")
    return rate


def _check_clock(constraint: Constraint) -> None:
    kind = type(constraint).__name__
    if not isinstance(constraint.ends_with, Status) or constraint.ends_with == Status.RUNNING:
        raise bad(f"{kind}.ends_with", constraint.ends_with, "a Status other than RUNNING, such as Status.HORIZON")
    if constraint.clock_name not in ("spent", "rounds"):
        raise bad(f"{kind}.clock_name", constraint.clock_name, "'spent' or 'rounds'")


def _check_registered(noun: Any, name: str) -> None:
    refuse_cycles(name, noun)
    data = jax.tree.structure(noun).node_data()  # type: ignore[attr-defined]
    if not (data and isinstance(data[1], tuple) and data[1][:1] == (type(noun),)):
        kind = type(noun).__name__
        raise InputError(
            f"{name}: {kind} is not decorated with jaxbandits.pytree; without it jit may take another class's program"
        )


def _engine(
    engine: str, policy: Policy, environment: Environment, constraint: Constraint, rounds: float
) -> tuple[ModuleType, str | None]:
    """The engine for about so many rounds in all, and why it is the scan engine if another one was allowed."""
    if engine == "scan":
        return scan, None
    found = time_parallel(policy, environment, constraint)
    if not isinstance(found, str):
        if engine == "auto" and found.is_short(environment, rounds):
            return scan, f"about {rounds:,.0f} rounds are played sooner than the program of many at once is compiled"
        return found, None
    if engine == "leap":
        raise InputError(f"engine: 'leap' given, but {found}; it must be 'auto' or 'scan'")
    promises = (policy, capabilities.RESTS), (environment, capabilities.ADDRESSED), (constraint, capabilities.ADDITIVE)
    for owner, capability in promises:
        if capabilities.undone(owner, capability):
            reason = capabilities.why_not(owner, capability)
            warnings.warn(f"played round by round, because {reason}", stacklevel=4)
    return scan, found


def time_parallel(policy: Policy, environment: Environment, constraint: Constraint) -> ModuleType | str:
    """The engine that plays many rounds of these at once with the bits of the scan engine, or why none does."""
    for engine in (leap, merge):
        if isinstance(policy, engine.PLAYS):
            reason = engine.why_not(policy, environment, constraint)
            return engine if reason is None else reason
    return f"{type(policy).__name__} {capabilities.RESTS.lacking}"


def lane_lengths(
    environment: Environment, prepared: Constraint, end: np.ndarray, max_rounds: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Expected rounds of each instance (for scheduling only), and its round cap: neither depends on other instances."""
    if prepared.clock_name == "rounds":
        rounds = end / ticks.ONE
        return rounds, _cap(rounds + 1, max_rounds)
    reward, cost = environment.values()
    if environment.resources is not None:
        cost = cost[..., 0]  # the clock is resource 0
    if max_rounds is None and np.nanmin(cost) <= 0:
        raise InputError(
            "environment: an arm with mean cost 0 given; it must be above 0 under a budget, or max_rounds must be given"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        # A learner ends up with the best arm, which may be far cheaper than the average one.
        best = np.argmax(np.nan_to_num(reward / cost, nan=-np.inf), axis=-1)
        rounds = end / ticks.ONE / np.take_along_axis(cost, best[:, None], axis=-1)[:, 0]
        # Far beyond chance: with costs of 0 or 1, even a tiny budget waits 1/c rounds for its first cost.
        longest = 4 * (end / ticks.ONE + 16) / np.nanmin(cost, axis=-1) + 1000
    cap = _cap(longest, max_rounds)
    return np.minimum(rounds, cap), cap


def _cap(rounds: np.ndarray, max_rounds: int | None) -> np.ndarray:
    return np.minimum(rounds if max_rounds is None else np.full(rounds.shape, max_rounds), 2**31 - 2).astype(np.int32)
