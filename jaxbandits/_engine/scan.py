"""The scan engine: one round of one lane, a lane from start to end, and its exact account.

:func:`play` is one round, :func:`step` the same for a lane that may have ended or wait at a mark;
only :func:`chunk` has a batch axis. The other engines stand on what is here: they simulate many
rounds at once and leave what ``step`` would.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.lanes import lanes_last
from jaxbandits.core import ticks
from jaxbandits.core.checks import cpu_line
from jaxbandits.core.protocol import (
    NEVER,
    Constraint,
    Environment,
    Ledger,
    Observation,
    Outcome,
    Policy,
    Status,
    View,
    post,
)
from jaxbandits.core.pytrees import Pytree, T, pytree, select_tree
from jaxbandits.core.streams import typed
from jaxbandits.core.ticks import Total


class Row:
    """An instance's slice of a table: ``row[arm]`` gathers one number, never the slice."""

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


@pytree
class KnownWorld:
    """A world of this package's code alone, for digests: jax keeps the trace of its pulls."""

    environment: Any

    def __getattr__(self, name: str) -> Any:
        if name == "environment":  # not there yet: it is being copied
            raise AttributeError(name)
        return getattr(self.environment, name)

    def pull(self, *args: Any) -> Any:
        """The environment's pull."""
        rows = jax.tree.leaves(self.environment)
        return _pull(
            jax.tree.map(lambda row: row._table, self.environment), rows[0]._instance, *args
        )


@jax.jit
def _pull(environment: Environment, instance: jax.Array, *args: Any) -> Any:
    return at_instance(environment, instance).pull(*args)


# --- the account of a lane: opened, booked round by round, read on the host


class Account(NamedTuple):
    """What is recorded of a lane at a mark."""

    ledger: Ledger
    clock: Total  # written with it, and not computed again from many lanes: the method is one lane's, with its leaves
    record: Mapping[str, jax.Array]  # of the world's summary, what was asked for beside


def account(world: Environment, lane: Lane, state: Pytree, ledger: Ledger) -> Account:
    """The account of one lane, its world in this state."""
    summary = world.summary(state) if lane.record else {}
    return Account(
        ledger, lane.constraint.clock(ledger), {name: summary[name] for name in lane.record or ()}
    )


def _equal_rows(leaves: Sequence[np.ndarray]) -> np.ndarray:
    """Of each row ``[instance]`` of these leaves, a number that equal rows share."""
    count = len(leaves[0])
    rows = [np.ascontiguousarray(leaf).reshape(count, -1).view(np.uint8) for leaf in leaves]
    return np.unique(np.concatenate(rows, 1), axis=0, return_inverse=True)[1].reshape(count)


def ledger_of(rows: Account, constraint: Constraint, instance: np.ndarray) -> dict[str, np.ndarray]:
    """Exact accounts by name, int64 ``[lane, mark(, resource)]``, from rows ``[lane, mark]``.

    ``instance`` is the row of each lane in the constraint's leaves, ``[lane]``.
    """
    booked = rows.ledger
    ledger = {"rounds": np.asarray(booked.rounds, np.int64)}
    for name in ("reward", "spent", "expected_reward", "expected_spent"):
        ledger[name] = ticks.join(getattr(booked, name))
    ledger |= {f"event:{name}": np.asarray(x, np.int64) for name, x in booked.events.items()}
    ledger |= {f"audit:{name}": ticks.join(x) for name, x in booked.audit.items()}
    ledger |= {f"record:{name}": np.asarray(x, np.int64) for name, x in rows.record.items()}
    ledger["clock"] = ticks.join(rows.clock)
    expected = np.empty_like(ledger["clock"])
    # Instances with equal leaves together, the others one by one: leaves [instance] beside accounts
    # [lane, mark] would broadcast.
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, constraint))
    kind = _equal_rows(leaves)[instance] if leaves else np.zeros_like(instance)
    order = np.argsort(kind, kind="stable")
    in_order = {name: x[order] for name, x in ledger.items()} if kind.any() else ledger
    edges = np.flatnonzero(np.diff(kind[order], prepend=-1, append=-1))
    for start, stop in itertools.pairwise(edges.tolist()):
        row = instance[order[start]]
        row_constraint = jax.tree.unflatten(structure, [leaf[row] for leaf in leaves])
        expected[order[start:stop]] = row_constraint.expected_clock(
            {name: x[start:stop] for name, x in in_order.items()}
        )
    return ledger | {"expected_clock": expected}


def open_ledger(constraint: Constraint, outcome: Outcome) -> Ledger:
    """The account before round 1; ``outcome`` gives shapes and event names only."""
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
    """Book one round, charged by the constraint; rounds are always counted here."""
    return constraint.charge(ledger, outcome)._replace(rounds=ledger.rounds + 1)


def book_many(ledger: Ledger, sums: Outcome, rounds: jax.Array) -> Ledger:
    """Book several rounds below the end of an *additive* constraint, as :func:`book` would.

    Args:
        ledger: the account before them.
        sums: their outcomes, summed (ticks that fit an int32: of 64 rounds at most); arrays give
            several accounts.
        rounds: how many they are, of the shape of ``sums``.
    """
    return post(ledger, sums)._replace(rounds=ledger.rounds + rounds)


# --- a lane, and one round of it


# Lanes in flight per core: of a native program as few as fit into its first cache, otherwise enough
# to make XLA's cost per operation small.
CPU_SLOTS = 32, 128
# Up to so many, a native round has the lanes last: ten arms alone fill no vector. Short vectors
# are full with fewer.
FEW_ARMS = 64 if "avx512f" in cpu_line("flags") else 32
NATIVE_LANES = 1 << 31  # that a worker may have: for more, a program is not native


class Lane(NamedTuple):
    """The constants of one lane: policy, constraint, keys and row of the environment."""

    row: jax.Array  # i32[]: row of the environment's tables
    # u32[2]: of the address (root key, instance id, replicate id), see :mod:`core.streams`
    world_key: jax.Array
    policy_key: jax.Array  # u32[2]
    policy: Policy  # leaves of one setting
    constraint: Constraint  # leaves of one instance
    marks: Total  # [M]: where on the clock to record
    cap: jax.Array  # i32[]: most rounds
    # Names of what is recorded at marks: a structure without leaves
    record: Mapping[str, None] | None = None


class LaneState(NamedTuple):
    """The state that a round reads and writes."""

    policy: Pytree  # the policy's state, the last outcome not yet learnt
    environment: Pytree
    ledger: Ledger
    action: Pytree  # of the last round
    feedback: Pytree  # … and what the policy sees of it in the next
    empty: jax.Array  # bool[]: there is nothing to learn from it
    status: jax.Array  # i32[]
    context: jax.Array | None  # of the last round; None in a world without contexts


class Carry(NamedTuple):
    """The state of one lane."""

    available: jax.Array | None  # bool[K]: the arms that exist, looked up once
    state: LaneState  # after the last round
    rows: jax.Array  # i32[M, F]: the packed account at each mark, 0 where nothing was written
    next_mark: jax.Array  # i32[]: how many marks are passed
    goal: Total  # where the next mark is: the lane waits there until its row is written


def start_lane(environment: Environment, lane: Lane) -> Carry:
    """A lane before its first round."""
    spec = environment.spec
    world = at_instance(environment, lane.row)
    world_state, action = world.start(), lane.policy.blank_action(spec)
    _, outcome, feedback, _ = jax.eval_shape(
        world.pull, world_state, action, typed(lane.world_key), jnp.int32(1)
    )
    ledger = open_ledger(lane.constraint, outcome)
    state = LaneState(
        policy=lane.policy.init(spec),
        environment=world_state,
        ledger=ledger,
        action=action,
        feedback=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), feedback),
        empty=jnp.bool_(True),
        status=jnp.int32(Status.RUNNING),
        context=world.context(typed(lane.world_key), jnp.int32(1)),
    )
    rows = jnp.zeros(
        (lane.marks.whole.shape[0], pack(account(world, lane, world_state, ledger)).size), jnp.int32
    )
    return Carry(
        world.available(), state, rows, jnp.int32(0), Total(lane.marks.whole[0], lane.marks.part[0])
    )


def view_of(
    world: Environment,
    constraint: Constraint,
    key: jax.Array,
    available: Any,
    state: Pytree,
    ledger: Ledger,
) -> View:
    """The policy's view of the next round; the only place that computes ``available``.

    ``world`` is one instance with its ``state`` and key, ``available`` the arms that it has.
    """
    round = ledger.rounds + 1
    if (open_ := world.open(state, round)) is not None:
        available = available & open_
    return View(round, constraint.view(ledger), available, world.context(key, round))  # type: ignore[arg-type]


def play(
    environment: Environment, lane: Lane, available: Any, state: LaneState
) -> tuple[LaneState, Outcome]:
    """Simulate one round of a running lane; returns the new state and the outcome."""
    constraint, ledger = lane.constraint, state.ledger
    world, world_key = at_instance(environment, lane.row), typed(lane.world_key)
    view = view_of(world, constraint, world_key, available, state.environment, ledger)
    observation = Observation(view, state.action, state.feedback, state.empty, state.context)

    learnt, action = lane.policy.step(state.policy, typed(lane.policy_key), observation)
    # A policy may give a plain number for an action.
    action = jax.tree.map(lambda x, last: jnp.asarray(x, last.dtype), action, state.action)
    world_state, outcome, feedback, empty = world.pull(
        state.environment, action, world_key, view.round
    )
    charged = book(constraint, ledger, outcome)

    status = status_after(lane, charged)
    successor = LaneState(
        learnt, world_state, charged, action, feedback, empty, status, view.context
    )

    # A round that is not valid leaves everything as it was, except the status that says why.
    # The policy's own status comes first: a full set is CAPACITY, also if the action that it chose
    # then is none.
    verdict = verdict_of(lane.policy, learnt)
    verdict = jnp.where(
        outcome.valid | (verdict != Status.RUNNING), verdict, jnp.int32(Status.INVALID)
    )
    happened = verdict == Status.RUNNING
    result = select_tree(happened, successor, state)._replace(
        status=jnp.where(happened, status, verdict)
    )
    if passes(environment, world, state.environment):
        any_open = jnp.any(view.available)
        nothing = jax.tree.map(jnp.zeros_like, outcome)
        passed, status = wait(world, lane, state.environment, ledger, nothing)
        # The last outcome is still to be learnt.
        result = select_tree(any_open, result, state._replace(ledger=passed, status=status))
        outcome = select_tree(any_open, outcome, nothing)
    return result, outcome


def passes(environment: Environment, world: Environment, state: Pytree) -> bool:
    """Whether rounds can pass without an open arm; False if policies may skip rounds anyway."""
    return world.open(state, jnp.int32(1)) is not None and not getattr(
        environment.spec, "may_skip", False
    )


def wait(
    world: Environment, lane: Lane, state: Pytree, ledger: Ledger, nothing: Outcome
) -> tuple[Ledger, jax.Array]:
    """Account and status after a round with no open arm; the lane ends if none reopens."""
    passed = book(lane.constraint, ledger, nothing)
    reopens = world.opens_next(state, ledger.rounds + 1) < NEVER
    status = jnp.where(reopens, status_after(lane, passed), jnp.int32(Status.CLOSED))
    return select_tree(reopens, passed, ledger), status


def verdict_of(policy: Policy, state: Pytree) -> jax.Array:
    """The status that the policy asks for; INVALID if it is not a valid status."""
    status = policy.status(state)
    return jnp.where((status >= 0) & (status <= max(Status)), status, jnp.int32(Status.INVALID))


def status_after(lane: Lane, ledger: Ledger) -> jax.Array:
    """The status of a lane whose last round is booked in ``ledger``."""
    status = jnp.where(
        ledger.rounds >= lane.cap, jnp.int32(Status.ROUND_CAP), jnp.int32(Status.RUNNING)
    )
    constraint = lane.constraint
    # A lane waits at the last mark, the end of the clock: whatever `ended` says, it must not wait
    # for ever.
    over = constraint.ended(ledger) | ticks.reached(constraint.clock(ledger), constraint.end())
    return jnp.where(over, jnp.int32(constraint.ends_with), status)


def may_play(lane: Lane, carry: Carry, ledger: Ledger, status: jax.Array) -> jax.Array:
    """Whether the lane has neither ended nor reached its next mark."""
    return (status == Status.RUNNING) & ~ticks.reached(lane.constraint.clock(ledger), carry.goal)


def step(environment: Environment, lane: Lane, carry: Carry) -> Carry:
    """One round, unless the lane has ended or waits at a mark."""
    runs = may_play(lane, carry, carry.state.ledger, carry.state.status)
    successor, _ = play(environment, lane, carry.available, carry.state)
    return carry._replace(state=select_tree(runs, successor, carry.state))


def pack(account: Account) -> jax.Array:
    """An account as one vector ``i32[F]``."""
    return jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(account)])


def record_mark(environment: Environment, lane: Lane, carry: Carry) -> Carry:
    """Write the account at the last of the marks that were reached since the last call.

    One row a call keeps this cheap. Marks passed at the same moment share its values:
    :func:`unpack` fills them in.
    """
    world, state = at_instance(environment, lane.row), carry.state
    last = lane.marks.whole.shape[0] - 1
    now = account(world, lane, state.environment, state.ledger)
    passed = jnp.sum(ticks.reached(now.clock, lane.marks), dtype=jnp.int32)
    at = jnp.maximum(passed - 1, 0)
    row = jnp.where(passed > carry.next_mark, pack(now), carry.rows[at])
    goal = jnp.minimum(passed, last)
    return carry._replace(
        rows=carry.rows.at[at].set(row, mode="promise_in_bounds"),
        next_mark=passed,
        goal=Total(lane.marks.whole[goal], lane.marks.part[goal]),
    )


def unpack(rows: np.ndarray, final: Account) -> Account:
    """Host: accounts ``[lane, mark]`` from rows ``i32[lane, M, F]`` and final accounts ``[lane]``.

    A mark without a row of its own was passed together with a later one, or never, if the lane
    ended before: it gets the next row that was written, else the final account.
    """
    leaves, structure = jax.tree.flatten(final)
    flat = np.concatenate([x.reshape(x.shape[0], -1) for x in leaves], axis=1)
    lanes, marks, _ = rows.shape
    # The number of the row that each mark gets; an account begins with the rounds, at least one.
    written = np.where(rows[..., 0] != 0, np.arange(marks), marks)
    taken = np.minimum.accumulate(written[:, ::-1], axis=1)[:, ::-1]
    taken = taken + (marks + 1) * np.arange(lanes)[:, None]
    known = np.concatenate([rows, flat[:, None]], axis=1).reshape(-1, flat.shape[1])
    filled = known.take(taken.ravel(), axis=0).reshape(rows.shape)
    sizes = np.cumsum([int(np.prod(x.shape[1:])) for x in leaves])[:-1]
    parts = np.split(filled, sizes, axis=-1)
    shaped = [p.reshape(lanes, marks, *x.shape[1:]) for p, x in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


# --- what the driver asks of an engine


def trial(environment: Environment, lane: Lane, carry: Carry) -> Carry:
    """Everything that a chunk does, once, for one lane, to form the digest of the program."""
    return step(environment, lane, carry)


def tuner(slots: int) -> tuple[()]:
    """No estimate of the pace: this engine needs none."""
    return ()


def chunk(
    environment: Environment, lanes: Lane, carry: Carry, tuner: tuple[()], rounds: jax.Array
) -> tuple[Carry, tuple[()]]:
    """``rounds`` rounds of every lane, ``[slot]``."""
    step_lanes = jax.vmap(partial(step, environment))
    return jax.lax.fori_loop(jnp.int32(0), rounds, lambda _, c: step_lanes(lanes, c), carry), tuner


def native_chunk(
    environment: Environment, lanes: Lane, carry: Carry, tuner: tuple[()], rounds: jax.Array
) -> tuple[Carry, tuple[()]]:
    """:func:`chunk` with the order of axes of a native function: few arms, lanes last."""
    if getattr(environment.spec, "arms", FEW_ARMS + 1) > FEW_ARMS:
        return chunk(environment, lanes, carry, tuner, rounds)
    last: Callable[[Any], Any] = partial(jax.tree.map, lambda x: jnp.moveaxis(x, 0, -1))
    first: Callable[[Any], Any] = partial(jax.tree.map, lambda x: jnp.moveaxis(x, -1, 0))
    constants, at_first = last(lanes), last(carry)

    def step_last(_: jax.Array, state: LaneState) -> LaneState:
        now = at_first._replace(state=state)
        return lanes_last(step)(environment, constants, now).state  # type: ignore[no-any-return]

    state = jax.lax.fori_loop(jnp.int32(0), rounds, step_last, at_first.state)
    return carry._replace(state=first(state)), tuner
