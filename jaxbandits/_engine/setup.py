"""Turns the user's input into tasks for the engines; checks everything, compiles nothing."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine import driver, leap, limits, merge, scan, stated
from jaxbandits._engine.driver import Task
from jaxbandits._engine.scan import at_instance
from jaxbandits.constraints import Horizon, pays_for_the_clock
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.capabilities import ADDITIVE, ADDRESSED, RESTS, undone
from jaxbandits.core.checks import (
    InputError,
    as_played,
    bad,
    called,
    in_a_line,
    numbers,
    refuse_traced,
    user_method,
    whole_number,
)
from jaxbandits.core.fingerprint import bring_up_to_date, is_users, traced
from jaxbandits.core.protocol import (
    Constraint,
    Environment,
    Feedback,
    Ledger,
    Observation,
    Outcome,
    Policy,
    Possible,
    Status,
    View,
    unknown,
)
from jaxbandits.core.pytrees import check_static, leaf_fields
from jaxbandits.core.settings import Settings, labels_of, refuse_twice
from jaxbandits.core.streams import Domain, domain_key, lane_key, root_key

ENGINES = ("auto", "kernel", "leap", "scan")
_MOST_SETS = 20_000
F = TypeVar("F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Layout:
    """Checked input: one task per policy, and what their lanes share."""

    tasks: tuple[Task, ...]
    settings: tuple[tuple[str, ...], ...]  # labels, for each policy one per setting
    names: tuple[str | int, ...]  # of the instances
    shares: np.ndarray  # f64[mark]: the marks as shares of the clock
    expected: np.ndarray  # f64[instance]: rounds of a lane; they steer scheduling only
    means: Means  # of all actions, see Environment.values
    best_rates: tuple[np.ndarray, ...]  # f64[instance] of each task: reward per unit of the clock
    benchmarks: Mapping[str, Possible]  # of a world that changes, see Environment.benchmarks

    def possible(self, instance: np.ndarray, clock: np.ndarray, benchmark: str) -> np.ndarray:
        """What a benchmark of a changing world could have earned, ``[lane, mark]`` in units.

        ``instance`` is each lane's, ``clock`` in ticks, ``[lane, mark]``.
        """
        return self.benchmarks[benchmark](instance, ticks.to_units(clock))


def _moves_its_own(function: F) -> F:
    """A user's ``jax.transfer_guard`` is about the user's arrays, not about ours."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        with jax.transfer_guard("allow"):
            return function(*args, **options)

    return guarded  # type: ignore[return-value]


@_moves_its_own
def lay_out(
    policies: Policy | Settings | Sequence[Policy | Settings],
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
    record: Sequence[str] = (),
    at_once: bool = False,
    platform: str | None = None,
) -> Layout:
    """Check everything, compile nothing; arguments and errors as :func:`~jaxbandits.simulate`.

    With ``at_once`` the results of all runs must fit into memory together. ``platform`` is that of
    the devices, None: jax's default.
    """
    platform = platform or jax.default_backend()
    entries: list[Any] = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    refuse_traced("replicates", replicates)
    kinds = [entry.shapes if isinstance(entry, Settings) else entry for entry in entries]
    check_nouns(kinds, environment, constraint)
    called(environment, "check", environment.check)
    means = mean_tables(environment)
    limits.check_spec(environment.spec)
    ready = prepare_constraint(constraint, environment)
    root = root_key(key)
    shares = mark_shares(marks)
    if engine not in ENGINES:
        raise bad("engine", engine, " or ".join(map(repr, ENGINES)))
    chunk, max_rounds = check_count("chunk", chunk), check_count("max_rounds", max_rounds)

    end = called(ready, "end", lambda: ticks.join(jax.tree.map(np.asarray, ready.end())))
    expected, cap = lane_lengths(environment, means, ready, end, max_rounds)
    settings, rounds_of = [], []
    for policy in entries:
        checked = Settings.of(policy, environment.instances, environment.spec)
        rounds_of.append(check_dry_run(checked.shapes, environment, ready))
        for text in called(
            checked.shapes, "warnings", functools.partial(checked.policy.warnings, environment)
        ):
            warnings.warn(text, stacklevel=5)
        settings.append(checked)
    # Settings were checked when they were made, and may be simulated beside themselves
    refuse_twice([x for x, given in zip(settings, entries, strict=True) if x is not given])
    only_arm = getattr(environment.spec, "arms", 0) == means[0].shape[1] == 1
    if only_arm and environment.instances > 1:
        nothing = "instances of one arm each given, so there is no choice"
        warnings.warn(
            f"environment: {environment.instances} {nothing} and no regret; tables must be [instance, arm]",
            stacklevel=5,
        )
    record, recorded_bytes = check_record(record, environment)
    marks_held = shares.size if at_once else 0
    replicate_ids = limits.replicate_ids(
        replicates,
        environment,
        sum(policy_settings.count for policy_settings in settings),
        marks_held,
        recorded_bytes,
    )
    ids = limits.instance_ids(instance_ids, environment, replicate_ids)
    # Rounds between two looks at the marks.
    rounds = (
        min(chunk, int(cap.max()))
        if chunk
        else int(np.clip(expected.mean() / (8 * shares.size), 4, 128))
    )
    at = mark_totals(end, shares)
    in_units = ticks.to_units(ticks.join(at))
    benchmarks = (
        called(environment, "benchmarks", lambda: environment.benchmarks(ready, in_units)) or {}
    )
    if not benchmarks and not stated.means_are_stated(environment, means):
        stated.warn_of(environment, "all lanes", 5)
    tasks, sizes = [], []
    for policy_settings, program in zip(settings, rounds_of, strict=True):
        leaves, structure = jax.tree.flatten((policy_settings.shapes, environment))
        like = (jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x)) for x in leaves)
        action = _action_of(program, structure, *like)
        limit = limits.most_rounds(
            policy_settings.shapes, environment, action, means, ready, end, max_rounds
        )
        sizes.append(_set_size(action, environment, means, ready))
        lengths = np.broadcast_to(
            expected[None, :, None], (policy_settings.count, ids.size, replicate_ids.shape[-1])
        )
        chosen_engine, scan_reason = _engine(
            engine, policy_settings.shapes, environment, ready, float(lengths.sum())
        )
        if program is not None and chosen_engine is not scan:
            program += program_of(chosen_engine, policy_settings.shapes, environment, ready)
        world = environment
        if chosen_engine is scan and not benchmarks:
            world = stated.beside_its_means(environment, means, action)
        tasks.append(
            Task(
                engine=chosen_engine,
                why_scan=scan_reason,
                policy_settings=policy_settings,
                environment=world,
                constraint=ready,
                marks=at,
                root=np.asarray(jax.random.key_data(root)),
                instance_ids=ids,
                replicate_ids=replicate_ids,
                cap=np.minimum(cap, limit).astype(np.int32),
                chunk=rounds,
                order=np.argsort(-lengths.ravel(), kind="stable"),
                rounds=float(lengths.sum()),
                record=record,
                program=program,
            )
        )
        if engine == "kernel" or (engine == "auto" and platform == "gpu"):
            tasks[-1] = _in_one_kernel(engine, tasks[-1], chunk, expected.mean() / shares.size)
    if engine == "kernel" and platform == "cpu":
        warnings.warn(
            "engine: 'kernel' on a CPU is interpreted and slow; it is for tests", stacklevel=5
        )
    scanned = [task for task in tasks if engine == "auto" and task.engine is scan]
    promises: list[Any] = [(task.policy_settings.shapes, RESTS) for task in scanned]
    promises += [(environment, ADDRESSED), (ready, ADDITIVE)] if scanned else []
    void = [capabilities.why_not(*promise) for promise in promises if undone(*promise)]
    for reason in dict.fromkeys(void):
        warnings.warn(f"engine: runs round by round, because {reason}", stacklevel=5)
    if len(set(sizes)) > 1:
        several = " and ".join(map(str, sorted(set(sizes))))
        warnings.warn(
            f"regret: sets of {several} arms are measured against the best set of their own size, so "
            "it does not rank these policies; rank by result.reward",
            stacklevel=5,
        )
    if benchmarks and max(sizes) > 1:  # they are of one arm a round
        benchmarks = {"moving": unknown}
    if benchmarks:
        # Over the whole run; what could be gained by a mark the functions say.
        whole = benchmarks["moving"](np.arange(environment.instances), in_units)[:, -1]
        rates = dict.fromkeys(sizes, whole / in_units[:, -1])
    else:
        rates = {size: _best_rate(ready, means, size) for size in set(sizes)}
    return Layout(
        tasks=tuple(tasks),
        settings=labels_of(settings),
        names=tuple(ids.tolist()) if instance_names is None else _names(instance_names, ids),
        shares=shares,
        expected=expected,
        means=means,
        best_rates=tuple(rates[size] for size in sizes),
        benchmarks=benchmarks,
    )


def check_record(record: Any, environment: Environment) -> tuple[tuple[str, ...], float]:
    """Names in the world's summary to record at marks beside the account, and their bytes."""
    names = (record,) if isinstance(record, str) else tuple(record)
    if not names:
        return names, 0.0
    world = at_instance(jax.tree.map(jnp.asarray, environment), jnp.int32(0))
    summary = jax.eval_shape(lambda: world.summary(world.start()))
    whole = {name: x for name, x in summary.items() if x.dtype == jnp.int32}
    if missing := [name for name in names if name not in whole]:
        must = (
            f"one of {', '.join(whole)}"
            if whole
            else f"left out: {type(environment).__name__} reports none"
        )
        raise bad("record", missing[0], must)
    return names, 8.0 * sum(float(np.prod(whole[name].shape)) for name in names)


def check_count(name: str, value: Any) -> int | None:
    """The value, if it is None or a whole number from 1 to 2³⁰; else raise :class:`InputError`."""
    return None if value is None else whole_number(name, value, 1, 2**30, "2**30")


# --- the marks: at which shares of the clock a lane's account is recorded


def mark_shares(marks: int | Sequence[float] | np.ndarray) -> np.ndarray:
    """Increasing shares of the clock that end in 1: a number of them from 0.1 %, or as given."""
    if (number := limits.count_unless_list("marks", marks)) is not None:
        if number > 10_000:
            raise bad("marks", marks, "from 1 to 10000, or the shares themselves")
        shares = np.geomspace(1e-3, 1.0, number) if number != 1 else np.ones(1)
        shares[-1] = 1.0
        return shares
    may_be = "a number of marks, or increasing shares in (0, 1] that end in 1"
    shares = numbers("marks", marks, may_be)
    if (
        shares.ndim != 1
        or shares.size < 1
        or not (shares > 0).all()
        or shares[-1] != 1
        or (np.diff(shares) <= 0).any()
    ):
        raise bad("marks", marks, may_be)
    return shares


def mark_totals(end: np.ndarray, shares: np.ndarray) -> ticks.Total:
    """Where on the clock the marks are, ``[instance, mark]``."""
    # At 0 no round is over yet
    at = np.maximum(np.floor(end[:, None] * shares[None, :]).astype(np.int64), 1)
    at[:, -1] = end
    return ticks.split(at)


# --- the three nouns, each by itself


def prepare_constraint(constraint: Constraint, environment: Environment) -> Constraint:
    """The constraint with leaves ``[instance, …]``."""
    kind, instances = type(constraint).__name__, environment.instances
    for field in leaf_fields(constraint):
        value = getattr(constraint, field.name)
        left_out = value is None and field.default is None
        if {"above", "at_least", "at_most"} & set(field.metadata) and not left_out:
            as_played(f"{kind}.{field.name}", value, field.metadata)
    ready = called(constraint, "prepare", lambda: constraint.prepare(environment))
    for path, leaf in jax.tree_util.tree_leaves_with_path(ready):
        if np.shape(leaf)[:1] != (instances,):
            name = getattr(path[0], "name", path[0])
            must = f"it must have one row for each of {instances} instances"
            raise InputError(f"{kind}.prepare: {name} has shape {np.shape(leaf)}; {must}")
    return ready


def check_nouns(policies: list[Any], environment: Environment, constraint: Constraint) -> None:
    if not policies:
        raise InputError("policies: none given; it must be a policy or a list of them")
    example = {
        Policy: "a policy (an instance of a @jb.pytree class, such as OmegaUCB(rho=0.25))",
        Environment: "an environment, such as FiniteArms.bernoulli(...)",
        Constraint: "a constraint, such as TotalBudget(500.0, last_pull='counts')",
    }
    nouns: list[Any] = [("policies", policy, Policy) for policy in policies]
    nouns += [("environment", environment, Environment), ("constraint", constraint, Constraint)]
    for name, noun, kind in nouns:
        if not isinstance(noun, kind):
            raise bad(name, noun, example[kind])
        data = jax.tree.structure(noun).node_data()  # type: ignore[attr-defined]
        if not (data and isinstance(data[1], tuple) and data[1][:1] == (type(noun),)):
            raise InputError(
                f"{name}: {type(noun).__name__} is not decorated with @jb.pytree; without it jit may run the program "
                "of another class"
            )
        check_static(noun)
        if forgotten := capabilities.forgotten(noun):
            raise InputError(f"{name}: {forgotten}; it must")
        refuse_traced(name, noun)
    of = type(constraint).__name__
    if not isinstance(constraint.ends_with, Status) or constraint.ends_with == Status.RUNNING:
        raise bad(
            f"{of}.ends_with",
            constraint.ends_with,
            "a Status other than RUNNING, such as Status.HORIZON",
        )
    if constraint.clock_name not in ("spent", "rounds"):
        raise bad(f"{of}.clock_name", constraint.clock_name, "'spent' or 'rounds'")
    spec = called(environment, "spec", lambda: environment.spec)
    for policy in policies:
        if not isinstance(spec, policy.plays):
            raise InputError(
                f"policies: {type(policy).__name__} is for environments with a {policy.plays.__name__}, "
                f"but {type(environment).__name__} has a {type(spec).__name__}"
            )


Means = tuple[np.ndarray, np.ndarray]  # of rewards and costs, [instance, action] and perhaps [d]


def mean_tables(environment: Environment) -> Means:
    """The true means of all actions, computed once per call, since they may be large tables.

    Raises:
        InputError: there is no instance, or not a row for each.
    """
    kind = type(environment).__name__
    whole_number(
        f"{kind}.instances", called(environment, "instances", lambda: environment.instances), 1
    )
    means: Any = called(environment, "values", lambda: tuple(map(np.asarray, environment.values())))
    reward, cost = called(
        environment, "values", lambda: [x.astype(np.float64, copy=False) for x in means]
    )
    if (
        reward.ndim != 2
        or reward.shape[0] != environment.instances
        or cost.shape[:2] != reward.shape
    ):
        raise InputError(
            f"{kind}.values: shapes {reward.shape} and {cost.shape} given; they must be "
            f"[instance, action], with {environment.instances} instances"
        )
    return means


def _action(policy: Policy, environment: Environment) -> Any:
    """The shapes of an action."""
    return jax.eval_shape(lambda nouns: nouns[0].blank_action(nouns[1].spec), (policy, environment))


@functools.cache
def _action_of(program: str | None, structure: Any, *shapes: Any) -> Any:
    """The same, found once for each program; None: this package's code alone."""
    return _action(*structure.unflatten(shapes))


def _set_size(action: Any, environment: Environment, means: Means, constraint: Constraint) -> int:
    """How many arms a round has, where rounds are an end: money alone is best spent on one arm."""
    if pays_for_the_clock(constraint) or means[0].shape[1] != getattr(
        environment.spec, "arms", None
    ):
        return 1
    return int(np.prod(action.shape)) if isinstance(action, jax.ShapeDtypeStruct) else 1


def _best_rate(ready: Constraint, means: Means, size: int) -> np.ndarray:
    """The constraint's ``best_rate`` of sets of so many arms, each set an action."""
    reward, cost = means
    if too_many := math.comb(reward.shape[1], size) > max(_MOST_SETS, reward.shape[1]):
        # The best of all is enough where nobody asks what it costs.
        reward = np.sort(np.nan_to_num(reward, nan=-np.inf), axis=1)[:, -size:].sum(axis=1)[:, None]
        cost = cost[:, :1]
    elif size > 1:
        sets = np.array(list(itertools.combinations(range(reward.shape[1]), size)))
        reward, cost = reward[:, sets].sum(axis=2), cost[:, sets].sum(axis=2)
    rate = called(ready, "best_rate", lambda: np.asarray(ready.best_rate(reward, cost), np.float64))
    if rate.shape != (len(reward),):
        raise bad(
            f"{type(ready).__name__}.best_rate", rate, f"{len(reward)} numbers, one per instance"
        )
    return np.full_like(rate, np.nan) if too_many and not isinstance(ready, Horizon) else rate


def _names(labels: Any, ids: np.ndarray) -> tuple[str | int, ...]:
    """Labels of the instances, none for two ids: numbers where all are numbers, else text."""
    plain = isinstance(labels, (list, tuple, np.ndarray)) and all(
        isinstance(x, (str, int, np.integer)) for x in labels
    )
    if not plain:
        raise bad("instance_names", labels, "a list of names, one for each instance")
    if len(labels) != ids.size:
        raise InputError(
            f"instance_names: {len(labels)} names given; it must be one for each of {ids.size}"
        )
    kind = int if all(isinstance(x, (int, np.integer)) for x in labels) else str
    names: tuple[str | int, ...] = tuple(kind(x) for x in labels)
    if len(set(zip(names, ids.tolist(), strict=True))) > len(set(names)):
        twice = next(name for name in names if names.count(name) > 1)
        raise bad("instance_names", twice, "given to one instance only")
    return names


# --- a dry run of one round on shapes alone: a mistake in a user's method is one line, and nothing is compiled


# Programs, structures and shapes: values do not matter, a sweep has many
_PASSED: set[tuple[Any, ...]] = set()


def check_dry_run(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Check one round of one lane if it contains user code, once per program and process.

    The policy has shapes for leaves (:attr:`Settings.shapes`). Gives the digest of the round, or
    None: of what is all this package's, its tests have run the round.
    """
    program, failed = None, None
    if has_user_code := any(map(is_users, (policy, environment, constraint))):
        bring_up_to_date(policy, environment, constraint)
        try:
            program = program_of(scan, policy, environment, constraint)
        except Exception as problem:  # reported below, by the method where it is
            failed = problem
    leaves, structure = jax.tree.flatten((policy, environment, constraint))
    round_key = (program, structure, *((jnp.shape(x), jnp.result_type(x)) for x in leaves))
    if round_key not in _PASSED:
        blank = _trace(
            policy, "blank_action", lambda policy: policy.blank_action(environment.spec), policy
        )
        if (may_be := environment.refuses(blank)) is not None:
            dtypes = (
                ", ".join(f"{x.dtype}{list(x.shape)}" for x in jax.tree.leaves(blank)) or "no array"
            )
            kinds = type(policy).__name__, type(environment).__name__
            raise InputError(
                f"{kinds[0]}.blank_action: an action of {dtypes} given; for {kinds[1]} it must be {may_be}"
            )
        if has_user_code:
            _play_a_round(policy, blank, environment, constraint)
        if failed is not None:
            raise failed
        _PASSED.add(round_key)
    return program


def program_of(
    engine: driver.Engine, policy: Policy, environment: Environment, constraint: Constraint
) -> str:
    """The digest of what an engine does with one lane: :mod:`jaxbandits.core.fingerprint`."""

    def shapes(tree: Any, lead: int) -> Any:
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(np.shape(x)[lead:], jax.dtypes.result_type(x)), tree
        )

    words, marks = jax.ShapeDtypeStruct((2,), jnp.uint32), ticks.Total(_i32(1), _i32(1))
    world = shapes(environment, 0)
    # jax keeps the trace of a world of this package, so the next policy does not trace it again.
    if engine is scan and jax.tree.leaves(world) and not is_users(environment):
        world = scan.KnownWorld(world)
    nouns = policy, shapes(constraint, 1)
    lane: Any = scan.Lane(_i32(), words, words, *nouns, marks, _i32())  # type: ignore[arg-type]
    return traced(functools.partial(driver.lane_trial, engine), world, lane)


def _i32(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


_FLAG: Any = jax.ShapeDtypeStruct((), jnp.bool_)
_CHEX = re.compile(
    r".*failed: (Error in .*: )?trees (\(arrays\) )?0 and 1 (do not match|differ)", re.IGNORECASE
)


def _play_a_round(
    policy: Policy, blank: Any, environment: Environment, constraint: Constraint
) -> None:
    one_constraint = jax.tree.map(lambda x: jnp.asarray(x[0]), constraint)
    world = at_instance(jax.tree.map(jnp.asarray, environment), jnp.int32(0))
    key, spec = jax.random.key(0), environment.spec

    state = _trace(policy, "init", lambda p: p.init(spec), policy)
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            name = f"{type(policy).__name__}.init: state{jax.tree_util.keystr(path)}"
            must = (
                "numbers; update and select receive a key, "
                "from which jax.random.fold_in(key, view.round) makes a key for the round"
            )
            raise bad(name, "a jax key", must)
    start = _trace(environment, "start", lambda: world.start())
    pulled = _trace(
        environment, "pull", lambda s, a: world.pull(s, a, key, jnp.int32(1)), start, blank
    )
    outcome, feedback = _check_pulled(environment, pulled, start)
    budget = _check_accounts(constraint, one_constraint, outcome)
    available = _trace(environment, "available", lambda: world.available())
    opening = _trace(environment, "open", world.open, start, _i32())
    if opening is not None:
        _same(environment, "open", "bool[K]", opening, available)
        later = _trace(environment, "opens_next", world.opens_next, start, _i32())
        _same(environment, "opens_next", "int32[]", later, _i32())
    context = _trace(environment, "context", lambda: world.context(key, jnp.int32(1)))
    shape = getattr(spec, "context", None)
    said = None if shape is None else f"float32{list(shape)}"
    must_be = None if shape is None else jax.ShapeDtypeStruct(tuple(shape), jnp.float32)
    _same(environment, "context", f"what spec.context says, {said}", context, must_be)
    view = View(_i32(), budget, available, context)
    observation = Observation(view, blank, feedback, _FLAG, context)
    updated = _trace(
        policy, "update", lambda p, s, o: p.update(s, key, o), policy, state, observation
    )
    _same(policy, "update", "a state like that of init", updated, state)
    selected = _trace(policy, "select", lambda p, s, v: p.select(s, key, v), policy, state, view)
    like = "(state, action) like those of init and blank_action"
    _same(policy, "select", like, selected, (state, blank))
    status = _trace(policy, "status", lambda p, s: p.status(s), policy, state)
    _same(policy, "status", "int32[]", status, _i32())

    finals = [
        (environment, _trace(environment, "summary", world.summary, start)),
        (policy, _trace(policy, "summary", lambda p, s: p.summary(s), policy, state)),
    ]
    for owner, values in finals:
        if not isinstance(values, dict):
            raise bad(f"{type(owner).__name__}.summary", values, "a dict of arrays by name")
    if twice := sorted(set(finals[0][1]) & set(finals[1][1])):  # one would hide the other's values
        raise bad(
            f"{type(policy).__name__}.summary",
            twice[0],
            f"another name: {type(environment).__name__} has it",
        )


def _whose(environment: Environment) -> Environment:
    """The outermost of worlds around a world whose class is not this package's; else the outermost."""
    world: Any = environment
    while world is not None and not is_users(type(world)):
        world = getattr(world, "world", None)
    return environment if world is None else world


def _check_pulled(environment: Environment, pulled: Any, start: Any) -> tuple[Outcome, Any]:
    """What ``pull`` gave; its outcome and feedback."""
    owner, parts = _whose(environment), "(state, Outcome, feedback, empty)"
    if not isinstance(pulled, tuple) or len(pulled) != 4 or not isinstance(pulled[1], Outcome):
        raise InputError(
            f"{type(owner).__name__}.pull: a {type(pulled).__name__} given; it must be {parts}"
        )
    _, outcome, feedback, _ = pulled
    cost = _i32() if environment.resources is None else _i32(environment.resources)
    outcome_shapes = Outcome(
        _i32(), cost, _i32(), cost, {name: _i32() for name in outcome.events}, _FLAG
    )
    feedback_shapes = (
        jax.tree.map(lambda x: _i32(*x.shape), feedback)
        if isinstance(feedback, Feedback)
        else feedback
    )
    expected = start, outcome_shapes, feedback_shapes, _FLAG
    _same(owner, "pull", f"{parts} in int32 ticks of 2**-24", pulled, expected)
    return outcome, feedback


def _check_accounts(constraint: Constraint, lane_constraint: Constraint, outcome: Outcome) -> Any:
    """A round booked; what the view of the constraint says may be spent."""
    total, spent = jax.eval_shape(lambda: (ticks.zero(), ticks.zero(outcome.cost.shape)))
    events = {name: _i32() for name in outcome.events}
    audit = _trace(constraint, "audit", lambda: lane_constraint.audit())
    ledger = Ledger(_i32(), total, spent, total, spent, events, audit)
    charged = _trace(constraint, "charge", lane_constraint.charge, ledger, outcome)
    _same(constraint, "charge", "a ledger like the one before", charged, ledger)
    for method, label, like in (("clock", "a Total", total), ("ended", "bool[]", _FLAG)):
        given = _trace(constraint, method, getattr(lane_constraint, method), ledger)
        _same(constraint, method, label, given, like)

    # Host code, called with accounts of zeros: a missing name is an error now, not at the end.
    names = ["rounds", "reward", "expected_reward", "clock", *(f"event:{x}" for x in events)]
    accounts = {
        name: np.zeros((1, 1), np.int64) for name in [*names, *(f"audit:{x}" for x in audit)]
    }
    accounts |= {
        name: np.zeros((1, 1, *outcome.cost.shape), np.int64)
        for name in ("spent", "expected_spent")
    }
    clock = called(constraint, "expected_clock", lambda: lane_constraint.expected_clock(accounts))
    if np.shape(clock) != (1, 1):
        label = f"an array of shape {np.shape(clock)} for accounts of shape (1, 1)"
        raise bad(
            f"{type(constraint).__name__}.expected_clock", label, "one number for each account"
        )
    return _trace(constraint, "view", lane_constraint.view, ledger)


def _trace(owner: object, method: str, call: Callable[..., Any], *args: Any) -> Any:
    try:
        return jax.eval_shape(call, *args)
    except InputError:
        raise
    except Exception as problem:
        name = user_method(owner, method, problem)
        raise InputError(
            f"{name}: fails when traced for one lane: {in_a_line(problem)}"
        ) from problem


def _same(owner: object, method: str, label: str, tree: Any, template: Any) -> None:
    """Refuse what has not the structure, the shapes and the dtypes that it must have."""
    import chex  # type: ignore[import-untyped,unused-ignore]  # here: it takes a tenth of a second

    try:
        chex.assert_trees_all_equal_shapes_and_dtypes(tree, template)
    except AssertionError as problem:
        message = _CHEX.sub("given and wanted differ", " ".join(str(problem).split()))
        message = message.replace("tree 0", "given").replace("tree 1", "wanted")
        raise InputError(
            f"{type(owner).__name__}.{method}: it must give {label}; {message[:400]}"
        ) from None


# --- which engine simulates a task


def _engine(
    engine: str, policy: Policy, environment: Environment, constraint: Constraint, rounds: float
) -> tuple[driver.Engine, str | None]:
    """The engine for so many rounds in all, and why it is scan if another one was allowed."""
    if engine in ("scan", "kernel"):  # a kernel runs the scan's rounds
        return scan, None
    candidate = time_parallel(policy, environment, constraint)
    if not isinstance(candidate, str):
        if engine == "auto" and candidate.is_short(environment, rounds):
            return (
                scan,
                f"about {rounds:,.0f} rounds are simulated before a program for many at once would compile",
            )
        arms = getattr(environment.spec, "arms", 1)
        least, most = getattr(policy, "leaps_from", 1), getattr(policy, "leaps_up_to", arms)
        if engine == "auto" and not least <= arms <= most:
            name, many = type(policy).__name__, "many" if arms > most else "few"
            return scan, f"{name} changes its leader too often with so {many} arms"
        return candidate, None
    if engine == "leap":
        raise InputError(f"engine: 'leap' given, but {candidate}; it must be 'auto' or 'scan'")
    return scan, candidate


def _in_one_kernel(engine: str, task: Task, chunk: int | None, between: float) -> Task:
    """The task for the kernel engine, if asked for, or if faster on a GPU and supported."""
    from jaxbandits._engine import kernel  # when it is asked for: what it stands on may be gone

    if engine == "auto" and not kernel.is_faster(task):
        return task
    if (lacking := kernel.why_not(task)) is not None:
        if engine == "kernel":
            raise InputError(
                f"engine: 'kernel' given, but {lacking}; it must be 'auto', 'leap' or 'scan'"
            )
        why_scan = task.why_scan or lacking
        return dataclasses.replace(task, why_scan=why_scan) if task.engine is scan else task
    rounds = min(chunk or kernel.rounds_between(between), int(task.cap.max()))
    return dataclasses.replace(task, engine=kernel, chunk=rounds, why_scan=None)


def time_parallel(
    policy: Policy, environment: Environment, constraint: Constraint
) -> driver.TimeParallel | str:
    """The engine that simulates many of these rounds at once, to scan's bits, or why none can."""
    for engine in (leap, merge):
        if isinstance(policy, engine.PLAYS):
            reason = engine.why_not(policy, environment, constraint)
            return engine if reason is None else reason
    return f"{type(policy).__name__} {RESTS.lacking}"


def lane_lengths(
    environment: Environment,
    means: Means,
    ready: Constraint,
    end: np.ndarray,
    max_rounds: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Expected rounds of each instance (for scheduling only), and its round cap."""
    rounds = end / ticks.ONE if ready.clock_name == "rounds" else getattr(ready, "rounds", None)
    if rounds is not None:
        return rounds, _cap(rounds + 1, max_rounds)
    reward, cost = means
    if environment.resources is not None:
        cost = cost[..., 0]  # the clock is resource 0
    if (free := cost <= 0).any() and (max_rounds is None or (reward[free] > 0).any()):
        raise InputError(
            "environment: an arm with mean cost 0 given; it must be above 0 under a budget, where its reward per unit "
            "of money would be infinite (if its reward is 0 too, give max_rounds)"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        # A learner ends up with the best arm, which may be far cheaper than the average one.
        best = np.argmax(np.nan_to_num(reward / cost, nan=-np.inf), axis=-1)
        rounds = end / ticks.ONE / np.take_along_axis(cost, best[:, None], axis=-1)[:, 0]
        # Far more than chance needs: with costs of 0 or 1, a tiny budget waits 1/c rounds for one.
        longest = (
            4 * (end / ticks.ONE + 16) / np.nanmin(cost, axis=-1) + 1000 + environment.idle_rounds
        )
    cap = _cap(longest, max_rounds)
    return np.minimum(rounds, cap), cap


def _cap(rounds: np.ndarray, max_rounds: int | None) -> np.ndarray:
    return np.minimum(
        rounds if max_rounds is None else np.full(rounds.shape, max_rounds), 2**31 - 2
    ).astype(np.int32)


# --- one lane by itself: for ``rollout`` and for episodes of other libraries


@_moves_its_own
def prepared(
    policy: Policy, environment: Environment, constraint: Constraint, max_rounds: int | None
) -> tuple[Constraint, Policy, np.ndarray, str | None]:
    """Host: constraint, policy's leaves ``[1 or instance, …]``, round caps, program digest.

    Of a policy whose leaves are traced nothing can be checked: they are only cast.
    """
    if not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(policy)):
        key = jax.random.key(0)
        (task,) = lay_out(
            policy, environment, constraint, key=key, max_rounds=max_rounds, engine="scan"
        ).tasks
        if task.settings != 1:
            raise InputError(
                f"policy: {task.settings} settings given; it must be one (see jax.vmap for several)"
            )
        return task.constraint, jax.tree.map(lambda x: x[0], task.policy), task.cap, task.program

    ready = prepare_constraint(constraint, environment)
    end = ticks.join(jax.tree.map(np.asarray, ready.end()))
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(jnp.shape(x), jnp.float32), policy)
    means = mean_tables(environment)
    action = _action(shapes, environment)
    limit = limits.most_rounds(shapes, environment, action, means, ready, end, max_rounds)
    _, cap = lane_lengths(environment, means, ready, end, max_rounds)

    def cast(x: Any) -> jax.Array:
        return jnp.asarray(
            x, jnp.float32 if jnp.issubdtype(jnp.result_type(x), jnp.floating) else jnp.int32
        )[None]

    return ready, jax.tree.map(cast, policy), np.minimum(cap, limit).astype(np.int32), None


def lane_of(
    constraint: Constraint,
    policy: Policy,
    cap: np.ndarray,
    root: jax.Array,
    instance: Any,
    replicate: Any,
) -> scan.Lane:
    """The constants of a lane; the key ``root``, ``instance`` and ``replicate`` may be traced."""
    lane_constraint = jax.tree.map(lambda x: jnp.asarray(x)[instance], constraint)
    key = lane_key(root, jnp.asarray(instance, jnp.uint32), jnp.asarray(replicate, jnp.uint32))
    return scan.Lane(
        row=jnp.asarray(instance, jnp.int32),
        world_key=jax.random.key_data(domain_key(key, Domain.WORLD)),
        policy_key=jax.random.key_data(domain_key(key, Domain.POLICY)),
        policy=jax.tree.map(lambda x: jnp.asarray(x)[instance if x.shape[0] > 1 else 0], policy),
        constraint=lane_constraint,
        marks=jax.tree.map(lambda x: x[None], lane_constraint.end()),
        cap=jnp.asarray(cap)[instance],
    )
