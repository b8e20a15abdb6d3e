"""The four definitions: :class:`Environment`, :class:`Policy`, :class:`Constraint`, and what passes between them.

Everything traced here is written for **one lane**: one run of one policy setting on one instance. The runner batches.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import ticks
from jaxbandits.numbers import as_played
from jaxbandits.ticks import Total

T = TypeVar("T")
Pytree = Any


class Status(enum.IntEnum):
    """How a lane ended."""

    RUNNING = 0
    EXHAUSTED = 1  # the budget is spent
    HORIZON = 2  # the last round was played
    ROUND_CAP = 3  # `max_rounds` came first
    CAPACITY = 4  # a growing set is full: rerun with a larger capacity, the prefix stays the same
    INVALID = 5  # the policy asked for something that the environment does not have (or its scores were NaN)


# --- pytree dataclasses ----------------------------------------------------------------------------------------


def leaf(
    *,
    default: Any = dataclasses.MISSING,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    core: int = 0,
    integer: bool = False,
) -> Any:
    """A numeric hyper-parameter: a pytree leaf, hence a batch axis of a sweep and never a reason to recompile.

    Args:
        default: the value if none is given.
        above, at_least, at_most: its range, checked at the door.
        core: rank of one setting's value (0: a scalar, 1: one value per arm).
        integer: int32 instead of float32.
    """
    meta = {"above": above, "at_least": at_least, "at_most": at_most, "core": core, "integer": integer}
    return dataclasses.field(default=default, metadata=meta)


def static(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that changes shapes or code: part of the compiled program, must be hashable."""
    return dataclasses.field(default=default, metadata={"static": True})


@dataclass_transform(field_specifiers=(leaf, static, dataclasses.field), frozen_default=True, eq_default=False)
def pytree(cls: type[T]) -> type[T]:
    """Make ``cls`` a frozen dataclass that jax flattens: fields are leaves unless declared :func:`static`.

    For policies, environments and constraints alike.
    """
    made = dataclasses.dataclass(frozen=True, eq=False)(cls)
    names = [field.name for field in dataclasses.fields(made)]  # type: ignore[arg-type]
    fixed = [f.name for f in dataclasses.fields(made) if f.metadata.get("static", False)]  # type: ignore[arg-type]
    leaves = [name for name in names if name not in fixed]

    def flatten(self: T) -> tuple[tuple, tuple]:
        return tuple(getattr(self, name) for name in leaves), (made, *(getattr(self, name) for name in fixed))

    def flatten_with_keys(self: T) -> tuple[tuple, tuple]:
        children, aux = flatten(self)
        return tuple(zip(map(jax.tree_util.GetAttrKey, leaves), children, strict=True)), aux

    def unflatten(aux: tuple, children: Any) -> T:
        self = object.__new__(made)
        for name, value in (*zip(leaves, children, strict=True), *zip(fixed, aux[1:], strict=True)):
            object.__setattr__(self, name, value)
        return self

    # Not register_dataclass: in jax 0.10 two dataclasses with the same leaves have equal tree structures, so that jit
    # may take the program of one policy for another's. Here the class is part of the structure.
    jax.tree_util.register_pytree_with_keys(made, flatten_with_keys, unflatten, flatten)
    return made


def own_method(policy: object, base: type, *methods: str) -> str | None:
    """Why an engine that plays a kind of policy without calling these methods must not: it has one of its own."""
    for method in methods:
        if getattr(type(policy), method) is not getattr(base, method):
            return f"{type(policy).__name__} has a method {method} of its own, which this engine would not call"
    return None


# --- what passes between them -----------------------------------------------------------------------------------


class View(NamedTuple):
    """What the constraint and the environment let a policy know about the round to be decided."""

    round: jax.Array  # i32[]: 1-based
    left: Total | None = None  # what may still be spent, if the constraint tells; [] or [d]
    available: jax.Array | None = None  # bool[K]: the arms that exist


class Feedback(NamedTuple):
    """What a learner sees of a pull (ticks): ``i32[]`` each; ``i32[L]`` for a set of L arms; costs ``[…, d]``."""

    reward: jax.Array
    cost: jax.Array


class Observation(NamedTuple):
    """What a policy is told before it acts: what was played, what came of it, and the view of the next round.

    ``empty`` means that there is nothing to learn (first round, skipped round); the view is valid all the same.
    """

    view: View
    action: Pytree
    feedback: Pytree
    empty: jax.Array  # bool[]


class Outcome(NamedTuple):
    """What the accountant sees of a round, in ticks. Policies never see it."""

    reward: jax.Array  # i32[]
    cost: jax.Array  # i32[], or i32[d] for d resources
    expected_reward: jax.Array  # i32[]: mean of `reward` given the action
    expected_cost: jax.Array  # as cost
    events: Mapping[str, jax.Array]  # named 0/1 counts of this round (i32[]), summed and reported
    valid: jax.Array  # bool[]: the action was one that the environment has


class Ledger(NamedTuple):
    """The exact account of one lane. Written to the result at every mark."""

    rounds: jax.Array  # i32[]
    reward: Total
    spent: Total
    expected_reward: Total
    expected_spent: Total
    events: Mapping[str, jax.Array]  # i32[]
    audit: Mapping[str, Total]  # what the constraint itself keeps (see AverageCost)


# --- the three nouns -------------------------------------------------------------------------------------------


class Environment:
    """A world of ``instances`` independent problems. Leaves carry a leading instance axis.

    Traced methods are written for one instance and read parameters by indexing: ``self.mean[arm]``, ``self.scale[()]``.
    (The runner puts a :class:`Row` in place of each leaf, so that only what is indexed is ever gathered.)
    """

    @property
    def spec(self) -> Any:
        """A small static value that tells a policy what it will play (arms, limits, …)."""
        raise NotImplementedError

    @property
    def instances(self) -> int:
        """Number of independent problems."""
        return int(jax.tree.leaves(self)[0].shape[0])

    def check(self) -> None:
        """Raise :class:`InputError` on impossible parameters. Called once, at the door, with concrete arrays."""

    def start(self) -> Pytree:
        """The environment's own state at round 1 (pull counts, for one)."""
        raise NotImplementedError

    def available(self) -> jax.Array | None:
        """Which arms this instance has (``bool[K]``), or None where the question has no meaning."""
        return None

    def refuses(self, action: Pytree) -> str | None:
        """Host: None if this can play actions of these shapes and types, else what an action must be."""
        return None

    def largest(self, action: Pytree) -> tuple[int, int]:
        """Host: the largest size of a round's reward, and of its cost (of one resource), in ticks.

        Totals are bounded by it at the door. Say so if it is more than one unit; ``action`` gives shapes only.
        """
        return ticks.ONE, ticks.ONE

    def pull(
        self, state: Pytree, action: Pytree, key: jax.Array, round: jax.Array
    ) -> tuple[Pytree, Outcome, Pytree, jax.Array]:
        """Play ``action``: (new state, outcome for the accountant, feedback for the learner, empty?)."""
        raise NotImplementedError

    def summary(self, state: Pytree) -> dict[str, jax.Array]:
        """Named final values of a lane, for the result."""
        return {}

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Host: mean reward ``[instance, action]`` and mean cost (``[instance, action(, d)]``) of every pure action.

        Float64; NaN where an action is absent.
        """
        raise NotImplementedError


class Policy:
    """A learner. Leaves are its hyper-parameters, methods are pure functions of (state, key, observation).

    Write :meth:`init`, :meth:`update` and :meth:`select`; :meth:`step` is their composition. ``key`` is the same in
    every round: draws are addressed by ``view.round`` (see :mod:`jaxbandits.streams`), so no key is ever split.
    """

    plays: ClassVar[type]  # the Spec class of the environments it can play

    def check(self, spec: Any) -> None:
        """Raise :class:`InputError` on what the ranges of the leaves cannot express. Called at the door."""

    def doubts(self, environment: Environment) -> list[str]:
        """Host: what in these hyper-parameters (``[setting, 1 or instance, …]``) does not fit the true world.

        One line each; ``simulate`` warns and goes on. A policy is never told the truth, but its user may want to know.
        """
        return []

    def init(self, spec: Any) -> Pytree:
        """The state before the first round."""
        raise NotImplementedError

    def blank_action(self, spec: Any) -> Pytree:
        """An action of the right structure, for the first (empty) observation."""
        return jnp.zeros((), jnp.int32)

    def update(self, state: Pytree, key: jax.Array, observation: Observation) -> Pytree:
        """Learn from a non-empty observation."""
        raise NotImplementedError

    def select(self, state: Pytree, key: jax.Array, view: View) -> tuple[Pytree, Pytree]:
        """(state, action) for the round that ``view`` describes."""
        raise NotImplementedError

    def step(self, state: Pytree, key: jax.Array, observation: Observation) -> tuple[Pytree, Pytree]:
        """Learn from the last observation, then act: ``select ∘ update``.

        This is the one place where an empty observation is kept from changing what was learnt.
        """
        learnt = self.update(state, key, observation)
        state = select_tree(observation.empty, state, learnt)
        return self.select(state, key, observation.view)

    def trouble(self, state: Pytree) -> jax.Array:
        """A :class:`Status` other than RUNNING ends the lane (for instance CAPACITY).

        Asked after :meth:`step`: the round in which trouble shows is neither played nor booked.
        """
        return jnp.int32(Status.RUNNING)

    def summary(self, state: Pytree) -> dict[str, jax.Array]:
        """Named final values of a lane, for the result, beside those of :meth:`Environment.summary`."""
        return {}


class Constraint:
    """The accountant: what a round costs, when a lane ends, what the clock is.

    Attributes:
        ends_with: the status of a lane at the end of the clock.
        clock_name: ``"spent"`` or ``"rounds"``.
        additive: True if, while the clock is below its end, :meth:`charge` only adds up (many rounds may be booked at
            once).
    """

    ends_with: ClassVar[Status]
    clock_name: ClassVar[str]
    additive: ClassVar[bool] = False

    def prepare(self, environment: Environment) -> Constraint:
        """Check the user's numbers and give the traced form: leaves ``[instance]``, money in ticks."""
        raise NotImplementedError

    def end(self) -> Total:
        """Where the clock ends."""
        raise NotImplementedError

    def audit(self) -> dict[str, Total]:
        """The constraint's own part of the ledger at the start."""
        return {}

    def view(self, ledger: Ledger) -> Total | None:
        """What a policy may know of what is left."""
        return None

    def charge(self, ledger: Ledger, outcome: Outcome) -> Ledger:
        """Book one round; :func:`post` does the usual part. (The runner itself counts ``rounds``.)"""
        raise NotImplementedError

    def clock(self, ledger: Ledger) -> Total:
        """The time that this constraint measures: money, or rounds."""
        raise NotImplementedError

    def ended(self, ledger: Ledger) -> jax.Array:
        """Is this lane at its end?"""
        return ticks.reached(self.clock(ledger), self.end())

    def expected_clock(self, ledger: Mapping[str, np.ndarray]) -> np.ndarray:
        """Host: the same with outcomes replaced by their conditional means, in ticks."""
        raise NotImplementedError

    def best_rate(self, reward: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """Host: the best reward per unit of the clock, float64 ``[instance]``, from :meth:`Environment.values`."""
        raise NotImplementedError


def open_ledger(constraint: Constraint, outcome: Outcome) -> Ledger:
    """The account before round 1; ``outcome`` gives shapes and event names only (``jax.eval_shape`` of a pull does)."""
    return Ledger(
        rounds=jnp.int32(0),
        reward=ticks.zero(),
        spent=ticks.zero(outcome.cost.shape),
        expected_reward=ticks.zero(),
        expected_spent=ticks.zero(outcome.expected_cost.shape),
        events={name: jnp.int32(0) for name in outcome.events},
        audit=constraint.audit(),
    )


def book(constraint: Constraint, ledger: Ledger, outcome: Outcome) -> Ledger:
    """One round, charged by the constraint and counted by us: a lane's rounds go on whatever a constraint forgets."""
    return constraint.charge(ledger, outcome)._replace(rounds=ledger.rounds + 1)


def post(ledger: Ledger, outcome: Outcome, earns: jax.Array | bool = True) -> Ledger:
    """Add ``outcome`` to the totals; the runner counts the round.

    A pull that does not ``earn`` brings no reward (nor expected reward), but is paid for in full: a constraint that
    never pays more than is left must cap ``spent`` itself, as ``TotalBudget`` does.
    """

    def earned(x: jax.Array) -> jax.Array:
        return jnp.where(earns, x, 0)

    return ledger._replace(
        reward=ticks.add(ledger.reward, earned(outcome.reward)),
        spent=ticks.add(ledger.spent, outcome.cost),
        expected_reward=ticks.add(ledger.expected_reward, earned(outcome.expected_reward)),
        expected_spent=ticks.add(ledger.expected_spent, outcome.expected_cost),
        events={name: ledger.events[name] + happened for name, happened in outcome.events.items()},
    )


# --- helpers of the runner -------------------------------------------------------------------------------------


class Row:
    """One instance's slice of a table, read lazily: ``row[arm]`` gathers one number and never the whole slice."""

    def __init__(self, table: jax.Array, instance: jax.Array):
        self._table, self._instance = table, instance

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the slice."""
        return self._table.shape[1:]

    def __getitem__(self, index: Any) -> jax.Array:
        index = index if isinstance(index, tuple) else (index,)
        return self._table.at[(self._instance, *index)].get(mode="promise_in_bounds")


def at_instance(environment: T, instance: jax.Array) -> T:
    """The environment as one instance sees it."""
    return jax.tree.map(lambda table: Row(table, instance), environment)


def select_tree(condition: jax.Array, yes: T, no: T) -> T:
    """``yes`` where ``condition`` (a scalar) holds, else ``no``, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def map_leaves(owner: T, change: Callable[[str, Any, Mapping[str, Any]], Any]) -> T:
    """A policy with ``change(name, value, metadata)`` in place of every leaf, nested policies included.

    Unlike a tree map it knows each leaf's name and declared range, and accepts what is no array yet.
    """
    values = {}
    for field in dataclasses.fields(owner):  # type: ignore[arg-type]
        value = getattr(owner, field.name)
        if field.metadata.get("static") or value is None:
            continue
        if dataclasses.is_dataclass(value):
            values[field.name] = map_leaves(value, change)
        else:
            values[field.name] = change(f"{type(owner).__name__}.{field.name}", value, field.metadata)
    return dataclasses.replace(owner, **values)  # type: ignore[type-var]


def check_range(name: str, value: Any, meta: Mapping[str, Any]) -> None:
    """Check a leaf's value against the range that it declares, before and after the cast to what is played.

    Raises:
        InputError: naming the leaf, its value and what it may be.
    """
    as_played(name, value, meta)
