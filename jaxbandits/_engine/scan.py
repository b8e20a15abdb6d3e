"""The scan engine: one ``step`` a round for a batch of lanes, frozen lanes masked, recorded at marks.

``play`` is one round of one lane, ``step`` the same for a lane that may have ended or wait at a mark; only ``chunk``
has a batch axis.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._engine.booking import book, open_ledger
from jaxbandits._engine.rows import at_instance
from jaxbandits.core import streams, ticks
from jaxbandits.core.ledger import Ledger, Outcome
from jaxbandits.core.protocol import Constraint, Environment, Observation, Policy, Status, View
from jaxbandits.core.pytrees import Pytree, select_tree
from jaxbandits.core.streams import Domain
from jaxbandits.core.ticks import Total

CPU_SLOTS = 256  # lanes in flight per core: enough to make XLA's cost per operation small, few enough for its cache


class Lane(NamedTuple):
    """Who plays what: the constants of one lane."""

    row: jax.Array  # i32[]: row of the environment's tables
    instance: jax.Array  # u32[]: instance id, part of every address
    replicate: jax.Array  # u32[]
    policy: Policy  # leaves of one setting
    constraint: Constraint  # leaves of one instance
    marks: Total  # [M]: where on the clock to record
    cap: jax.Array  # i32[]: most rounds


class Fixed(NamedTuple):
    """What is computed once when a lane starts."""

    world_key: jax.Array  # u32[2]
    policy_key: jax.Array  # u32[2]
    available: jax.Array | None  # bool[K]


class LaneState(NamedTuple):
    """What a round reads and writes."""

    policy: Pytree
    environment: Pytree
    ledger: Ledger
    action: Pytree
    feedback: Pytree
    empty: jax.Array  # bool[]
    status: jax.Array  # i32[]


class Carry(NamedTuple):
    """The state of one lane."""

    fixed: Fixed
    state: LaneState
    rows: jax.Array  # i32[M, F]: the packed ledger at each mark, 0 where nothing was written
    next_mark: jax.Array  # i32[]
    goal: Total  # the next mark


def start(environment: Environment, lane: Lane, root: jax.Array) -> Carry:
    """A lane before its first round. ``root`` is the root key's words, ``u32[2]``."""
    spec = environment.spec
    key = streams.lane_key(jax.random.wrap_key_data(root, impl="threefry2x32"), lane.instance, lane.replicate)
    world = at_instance(environment, lane.row)
    fixed = Fixed(
        world_key=jax.random.key_data(streams.domain_key(key, Domain.WORLD)),
        policy_key=jax.random.key_data(streams.domain_key(key, Domain.POLICY)),
        available=world.available(),
    )
    world_state, action = world.start(), lane.policy.blank_action(spec)
    _, outcome, feedback, _ = jax.eval_shape(world.pull, world_state, action, key, jnp.int32(1))
    ledger = open_ledger(lane.constraint, outcome)
    state = LaneState(
        policy=lane.policy.init(spec),
        environment=world_state,
        ledger=ledger,
        action=action,
        feedback=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), feedback),
        empty=jnp.bool_(True),
        status=jnp.int32(Status.RUNNING),
    )
    rows = jnp.zeros((lane.marks.whole.shape[0], pack(ledger).shape[0]), jnp.int32)
    return Carry(fixed, state, rows, jnp.int32(0), Total(lane.marks.whole[0], lane.marks.part[0]))


def play(environment: Environment, lane: Lane, fixed: Fixed, state: LaneState) -> tuple[LaneState, Outcome]:
    """One round of a running lane, and what its action brought."""
    constraint, ledger = lane.constraint, state.ledger
    view = View(ledger.rounds + 1, constraint.view(ledger), fixed.available)  # type: ignore[arg-type]
    observation = Observation(view, state.action, state.feedback, state.empty)
    policy_key = jax.random.wrap_key_data(fixed.policy_key, impl="threefry2x32")
    world_key = jax.random.wrap_key_data(fixed.world_key, impl="threefry2x32")

    learnt, action = lane.policy.step(state.policy, policy_key, observation)
    world = at_instance(environment, lane.row)
    world_state, outcome, feedback, empty = world.pull(state.environment, action, world_key, view.round)
    charged = book(constraint, ledger, outcome)

    status = status_after(lane, charged)
    played = LaneState(learnt, world_state, charged, action, feedback, empty, status)

    # A round that could not be played leaves everything as it was, except the status that says why.
    verdict = verdict_of(lane.policy, learnt)
    verdict = jnp.where(outcome.valid | (verdict != Status.RUNNING), verdict, jnp.int32(Status.INVALID))
    happened = verdict == Status.RUNNING
    kept = select_tree(happened, played, state)
    return kept._replace(status=jnp.where(happened, status, verdict)), outcome


def verdict_of(policy: Policy, state: Pytree) -> jax.Array:
    """The status that the policy asks for; INVALID for a number that is none."""
    status = policy.status(state)
    return jnp.where((status >= 0) & (status <= max(Status)), status, jnp.int32(Status.INVALID))


def status_after(lane: Lane, ledger: Ledger) -> jax.Array:
    """The status of a lane whose last round is booked in ``ledger``."""
    status = jnp.where(ledger.rounds >= lane.cap, jnp.int32(Status.ROUND_CAP), jnp.int32(Status.RUNNING))
    constraint = lane.constraint
    # A lane waits at the last mark, the end of the clock: whatever `ended` says, it must not wait for ever.
    over = constraint.ended(ledger) | ticks.reached(constraint.clock(ledger), constraint.end())
    return jnp.where(over, jnp.int32(constraint.ends_with), status)


def may_play(lane: Lane, carry: Carry, ledger: Ledger, status: jax.Array) -> jax.Array:
    """Has the lane neither ended nor reached its next mark?"""
    return (status == Status.RUNNING) & ~ticks.reached(lane.constraint.clock(ledger), carry.goal)


def step(environment: Environment, lane: Lane, carry: Carry) -> Carry:
    """One round, unless the lane has ended or waits at a mark."""
    runs = may_play(lane, carry, carry.state.ledger, carry.state.status)
    played, _ = play(environment, lane, carry.fixed, carry.state)
    return carry._replace(state=select_tree(runs, played, carry.state))


def pack(ledger: Ledger) -> jax.Array:
    """A ledger as one vector ``i32[F]``."""
    return jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(ledger)])


def record(lane: Lane, carry: Carry) -> Carry:
    """Write the ledger at the last of the marks that were reached since the last call.

    One row a call keeps this cheap. Marks passed at the same moment share its values: :func:`unpack` fills them in.
    """
    ledger, last = carry.state.ledger, lane.marks.whole.shape[0] - 1
    passed = jnp.sum(ticks.reached(lane.constraint.clock(ledger), lane.marks), dtype=jnp.int32)
    at = jnp.maximum(passed - 1, 0)
    row = jnp.where(passed > carry.next_mark, pack(ledger), carry.rows[at])
    goal = jnp.minimum(passed, last)
    return carry._replace(
        rows=carry.rows.at[at].set(row, mode="promise_in_bounds"),
        next_mark=passed,
        goal=Total(lane.marks.whole[goal], lane.marks.part[goal]),
    )


def unpack(rows: np.ndarray, final: Ledger) -> Ledger:
    """Host: ledgers ``[lane, mark]`` from packed rows ``i32[lane, M, F]`` and the final ledgers ``[lane]``.

    A mark without a row of its own was passed together with a later one, or never, if the lane ended before: it gets
    the next row that was written, else the final ledger.
    """
    leaves, structure = jax.tree.flatten(final)
    flat = np.concatenate([x.reshape(x.shape[0], -1) for x in leaves], axis=1)
    filled, following = np.empty_like(rows), flat
    for mark in reversed(range(rows.shape[1])):
        written = (rows[:, mark] != 0).any(axis=-1)  # every written row has at least one round
        following = np.where(written[:, None], rows[:, mark], following)
        filled[:, mark] = following
    sizes = np.cumsum([int(np.prod(x.shape[1:])) for x in leaves])[:-1]
    parts = np.split(filled, sizes, axis=-1)
    shaped = [p.reshape(*filled.shape[:2], *x.shape[1:]) for p, x in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


class TunerState(NamedTuple):
    """The scan engine has nothing to learn about its pace."""


def tuner(slots: int) -> TunerState:
    """See :class:`TunerState`."""
    return TunerState()


def chunk(
    environment: Environment, lanes: Lane, carry: Carry, tuner: TunerState, rounds: jax.Array
) -> tuple[Carry, TunerState]:
    """``rounds`` rounds of every lane, ``[slot]``."""
    one = jax.vmap(partial(step, environment))
    return jax.lax.fori_loop(jnp.int32(0), rounds, lambda _, c: one(lanes, c), carry), tuner
