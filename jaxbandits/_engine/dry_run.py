"""A dry run of one round on shapes alone, so that a mistake in a user's method is one clear line and not a traceback.

Nothing is computed or compiled: :func:`jax.eval_shape` runs each method once, and what it gives is held against what
the engines need: structures that do not change, int32 ticks, the right number of values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.rows import at_instance
from jaxbandits.core import ticks
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.ledger import Ledger, Outcome
from jaxbandits.core.numbers import whole_number
from jaxbandits.core.protocol import Constraint, Environment, Feedback, Observation, Policy, View
from jaxbandits.core.user_methods import called, in_a_line, written

# What has passed: structures and shapes. Values do not matter to a dry run, and a sweep calls with many.
_PASSED: set[tuple[Any, ...]] = set()


def check_dry_run(policy: Policy, environment: Environment, constraint: Constraint) -> None:
    """Check one round of one lane; once for each structure (classes, static fields, shapes) in a process.

    Args:
        policy: leaves ``[setting, 1 or instance, …]`` (see ``canonicalise``).
        environment, constraint: leaves ``[instance, …]``.

    Raises:
        InputError: naming the class and the method whose result does not fit.
    """
    leaves, structure = jax.tree.flatten((policy, environment, constraint))
    asked = (structure, *((np.shape(x), jnp.result_type(x)) for x in leaves))
    if asked not in _PASSED:
        try:
            _play_a_round(policy, environment, constraint)
        except InputError:
            raise
        except Exception as problem:  # what a method gave is so odd that it cannot even be looked at
            owners = ", ".join(type(owner).__name__ for owner in (policy, environment, constraint))
            raise InputError(f"{owners}: one of them gives what cannot be played: {in_a_line(problem)}") from problem
        _PASSED.add(asked)


def _trace(owner: object, method: str, call: Callable[..., Any], *args: Any) -> Any:
    try:
        return jax.eval_shape(call, *args)
    except InputError:
        raise
    except (Exception, SystemExit) as problem:
        raise InputError(
            f"{written(owner, method, problem)}: fails when traced for one lane: {in_a_line(problem)}"
        ) from problem


def _play_a_round(policy: Policy, environment: Environment, constraint: Constraint) -> None:
    one_policy = jax.tree.map(lambda x: jnp.asarray(x[0, 0]), policy)
    one_constraint = jax.tree.map(lambda x: jnp.asarray(x[0]), constraint)
    world = at_instance(jax.tree.map(jnp.asarray, environment), jnp.int32(0))
    key, one = jax.random.key(0), jnp.int32(1)
    spec = environment.spec

    available = _trace(environment, "available", lambda: world.available())
    start = _trace(environment, "start", lambda: world.start())
    state = _trace(policy, "init", lambda: one_policy.init(spec))
    blank = _trace(policy, "blank_action", lambda: one_policy.blank_action(spec))
    _playable(policy, "blank_action", environment, blank)
    pulled = _trace(environment, "pull", lambda s, a: world.pull(s, a, key, one), start, blank)
    outcome, feedback = _check_pulled(environment, pulled, start)
    left = _check_accounts(constraint, one_constraint, outcome)

    view = View(jax.ShapeDtypeStruct((), jnp.int32), left, available)  # type: ignore[arg-type]
    observation = Observation(view, blank, feedback, jax.ShapeDtypeStruct((), jnp.bool_))  # type: ignore[arg-type]
    updated = _trace(policy, "update", lambda s, o: one_policy.update(s, key, o), state, observation)
    _same(policy, "update", "the state", updated, state)
    selected = _trace(policy, "select", lambda s, v: one_policy.select(s, key, v), state, view)
    _length(policy, "select", selected, 2, "(state, action)")
    _same(policy, "select", "the state", selected[0], state)
    _check_action(policy, environment, selected[1], blank)
    _flag(policy, "status", _trace(policy, "status", lambda s: one_policy.status(s), state), jnp.int32)
    finals = [
        _trace(environment, "summary", world.summary, start),
        _trace(policy, "summary", one_policy.summary, state),
    ]
    _check_finals(environment, policy, *finals)


def _playable(policy: Policy, method: str, environment: Environment, action: Any) -> None:
    if (may_be := environment.refuses(action)) is not None:
        raise InputError(
            f"{type(policy).__name__}.{method}: an action of {_shown_all(action)} given; "
            f"for {type(environment).__name__} it must be {may_be}"
        )


def _check_action(policy: Policy, environment: Environment, action: Any, blank: Any) -> None:
    """What ``select`` gave: an action for this world, and of the kind that ``blank_action`` announced."""
    _playable(policy, "select", environment, action)
    given, announced = (str(jax.tree.map(_shown, x)) for x in (action, blank))
    if given != announced:
        raise InputError(
            f"{type(policy).__name__}.select: an action of {given} given; it must be of {announced}, as its "
            "blank_action is"
        )


def _check_pulled(environment: Environment, pulled: Any, start: Any) -> tuple[Outcome, Any]:
    """What ``pull`` gave; its outcome and feedback."""
    _length(environment, "pull", pulled, 4, "(state, Outcome, feedback, empty)")
    new_start, outcome, feedback, empty = pulled
    _same(environment, "pull", "the state", new_start, start)
    if not isinstance(outcome, Outcome):
        raise InputError(f"{type(environment).__name__}.pull: gives a {type(outcome).__name__}; it must be an Outcome")
    resources = environment.resources
    of_cost = () if resources is None else (resources,)
    for name, shape in (("reward", ()), ("cost", of_cost), ("expected_reward", ()), ("expected_cost", of_cost)):
        _ticks(environment, f"pull: {name}", getattr(outcome, name), shape)
    for name, count in outcome.events.items():
        _ticks(environment, f"pull: event {name!r}", count, ())
    if isinstance(feedback, Feedback):
        for name, told in feedback._asdict().items():
            _ticks(environment, f"pull: feedback.{name}", told)
    for name, flag in (("valid", outcome.valid), ("empty", empty)):
        if flag.dtype != jnp.bool_ or flag.shape != ():
            raise InputError(f"{type(environment).__name__}.pull: {name} is {_shown(flag)}; it must be bool[]")
    return outcome, feedback


def _check_accounts(constraint: Constraint, one_constraint: Constraint, outcome: Outcome) -> Any:
    """A round booked; what its ``view`` says may be spent."""
    audit = _trace(constraint, "audit", lambda: one_constraint.audit())
    total = jax.eval_shape(ticks.zero)
    spent = jax.eval_shape(lambda: ticks.zero(outcome.cost.shape))
    events = {name: jax.ShapeDtypeStruct((), jnp.int32) for name in outcome.events}
    ledger = Ledger(jax.ShapeDtypeStruct((), jnp.int32), total, spent, total, spent, events, audit)  # type: ignore[arg-type]
    charged = _trace(constraint, "charge", one_constraint.charge, ledger, outcome)
    _same(constraint, "charge", "the ledger", charged, ledger)
    left = _trace(constraint, "view", one_constraint.view, ledger)
    clock = _trace(constraint, "clock", one_constraint.clock, ledger)
    _same(constraint, "clock", "the clock", clock, total)
    _check_expected_clock(constraint, outcome, ledger.audit)
    _flag(constraint, "ended", _trace(constraint, "ended", one_constraint.ended, ledger), jnp.bool_)
    return left


def _check_expected_clock(constraint: Constraint, outcome: Outcome, audit: Any) -> None:
    """Host code, called with accounts of zeros: a name that is not there is told now, not after the last lane."""
    names = "rounds", "reward", "expected_reward", "clock", *(f"event:{x}" for x in outcome.events)
    names += tuple(f"audit:{x}" for x in audit)
    accounts = {name: np.zeros((1, 1), np.int64) for name in names}
    accounts |= {name: np.zeros((1, 1, *outcome.cost.shape), np.int64) for name in ("spent", "expected_spent")}
    given = called(constraint, "expected_clock", lambda: constraint.expected_clock(accounts))
    if np.shape(given) != (1, 1):
        what = f"an array of shape {np.shape(given)} for accounts of shape (1, 1)"
        raise bad(f"{type(constraint).__name__}.expected_clock", what, "one number for each account")


def _check_finals(environment: Environment, policy: Policy, of_world: Any, of_policy: Any) -> None:
    """Two dictionaries of arrays, whose names differ: one would hide the other's values."""
    for owner, given in ((environment, of_world), (policy, of_policy)):
        named = isinstance(given, dict) and all(
            isinstance(name, str) and hasattr(x, "dtype") for name, x in given.items()
        )
        if not named:
            raise bad(f"{type(owner).__name__}.summary", given, "a dict of arrays by name")
    if twice := sorted(set(of_world) & set(of_policy)):
        raise bad(f"{type(policy).__name__}.summary", twice[0], f"another name: {type(environment).__name__} has it")


def _flag(owner: object, method: str, given: Any, dtype: Any) -> None:
    if getattr(given, "dtype", None) != dtype or given.shape != ():
        shown = _shown(given) if hasattr(given, "dtype") else repr(given)[:80]
        raise InputError(f"{type(owner).__name__}.{method}: gives {shown}; it must be {jnp.dtype(dtype).name}[]")


def check_values(environment: Environment) -> None:
    """Are there instances, and two tables of true means with a row for each?

    Raises:
        InputError: naming the class and what it gives instead.
    """
    kind = type(environment).__name__
    whole_number(f"{kind}.instances", called(environment, "instances", lambda: environment.instances), 1)
    given = called(environment, "values", environment.values)
    try:
        reward, cost = (np.asarray(table, np.float64) for table in given)
    except (TypeError, ValueError):
        raise bad(f"{kind}.values", given, "two arrays of numbers, mean rewards and mean costs") from None
    if reward.ndim != 2 or reward.shape[0] != environment.instances or cost.shape[:2] != reward.shape:
        raise InputError(
            f"{kind}.values: shapes {reward.shape} and {cost.shape} given; they must be "
            f"[instance, action], with {environment.instances} instances"
        )


def _shown(x: Any) -> str:
    return f"{x.dtype}{list(x.shape)}"


def _shown_all(tree: Any) -> str:
    return ", ".join(_shown(x) for x in jax.tree.leaves(tree)) or "no array"


def _ticks(owner: object, what: str, x: Any, shape: tuple[int, ...] | None = None) -> None:
    if x.dtype != jnp.int32 or (shape is not None and x.shape != shape):
        raise InputError(
            f"{type(owner).__name__}.{what} is {_shown(x)}; it must be int32, whole ticks of 2**-24 (counts: int32)"
            f"{'' if shape is None else f', of shape {list(shape)}'}"
        )


def _length(owner: object, method: str, given: Any, length: int, what: str) -> None:
    if not isinstance(given, tuple) or len(given) != length:
        raise InputError(
            f"{type(owner).__name__}.{method}: gives a {type(given).__name__}; it must be the tuple {what}"
        )


def _same(owner: object, method: str, what: str, given: Any, wanted: Any) -> None:
    name = f"{type(owner).__name__}.{method}"
    a, b = str(jax.tree.structure(given)), str(jax.tree.structure(wanted))
    if a != b:
        raise InputError(f"{name}: changes the structure of {what}: {a} given; it must be {b}"[:600])
    for x, y in zip(jax.tree.leaves(given), jax.tree.leaves(wanted), strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise InputError(f"{name}: changes {what}: {_shown(x)} given where it was {_shown(y)}")
