"""The merge engine: many pulls of many points at once, with the same bits as the scan engine.

Within a phase, the index of a point that rests does not change at all, and the outcomes of a point
are addressed by its own count. So every point's coming indices are known beforehand, and the
order in which points are pulled (always the largest index) is a merge of known sequences:
**whatever the order, after all pulls from an index above a level θ, each point stands at its first
index ≤ θ.** Totals are exact integers, so their order does not matter either. One macro-step of a
lane:

1. *ordinary rounds*, the very ones of the scan engine: they activate points, change phases, reach
   marks and ends.
2. *a level* θ, from the formula of the radius, to which some thousand pulls should lead.
3. *blocks*: of a point whose index is above θ, the next h outcomes and, by prefix sums, the indices
   after 1 … h pulls; the pulls up to the first index ≤ θ are taken. Until no index is above θ, or
   it takes too long.
4. *the test*: every index is at most θ; the next mark, the last round and the end of the phase lie
   ahead; and the shrunken balls still cover [0, 1] (then they did so all the time, because balls
   only shrink). If it fails, everything of this macro-step is dropped and a level nearer by is
   tried next.

How far a level is away is a guess at speed and changes no bit. After a merge the lane has learnt
its last outcome already, and says so by an empty observation: for a zooming policy that is the same
state.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._engine import limits, scan
from jaxbandits._engine.scan import Carry, Lane, at_instance, book_many
from jaxbandits._numerics import covering
from jaxbandits._numerics.arrays import prefix_sums
from jaxbandits._numerics.covering import Balls
from jaxbandits.core import capabilities, ticks
from jaxbandits.core.protocol import (
    Constraint,
    Environment,
    Ledger,
    Observation,
    Outcome,
    Policy,
    View,
)
from jaxbandits.core.pytrees import select_tree
from jaxbandits.core.streams import typed
from jaxbandits.core.ticks import Total
from jaxbandits.environments.continuum import Continuum
from jaxbandits.policies.zooming import Active, ZoomingPolicy, radius_and_index

PLAYS = ZoomingPolicy
CPU_SLOTS, NATIVE_LANES = (16, 64), 1 << 31  # as in ``scan``
SHORT = 2.5e5  # rounds: a third of a second for scan, whose program compiles in 3 s, this one in 5 (two cores)
LENGTH = 32  # pulls in a block
_ORDINARY = 4  # ordinary rounds of a macro-step
_STEPS = 4  # macro-steps between two looks at the marks
_LEAST, _MOST = 32.0, 1024.0  # pulls that a level is chosen for
_LEVELS = 24  # levels to choose from, each half as far away as the one before


class MergeState(NamedTuple):
    """A lane while points are pulled down to the level; arrays are by slot of the policy, ``[M]``."""

    pulls: jax.Array  # i32[M]
    reward: Total  # [M]
    cost: Total  # [M]
    index: jax.Array  # type: ignore[assignment]  # f32[M]: after these pulls
    ledger: Ledger  # after all of them


class MergeConstants(NamedTuple):
    """What does not change during a macro-step."""

    phase: jax.Array  # i32[]
    since: jax.Array  # i32[M]: address of each point's outcomes
    earlier: jax.Array  # i32[M]: pulls of the point before this phase knew it
    mean_reward: jax.Array  # i32[M]
    mean_cost: jax.Array  # i32[M]
    level: jax.Array  # f32[]: θ; +∞ where this lane waits
    # i32[]: rounds at which it gives up (an index may rise and never come down to θ)
    round_limit: jax.Array


def is_short(environment: Environment, rounds: float) -> bool:
    """Whether ``scan`` simulates so many rounds of all lanes before this engine has compiled."""
    return rounds < SHORT


def why_not(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Why these cannot run in the merge engine, or None if they can."""
    assert isinstance(policy, ZoomingPolicy)
    methods = "init", "blank_action", "update", "select", "step", "status"
    reason = (
        capabilities.why_not(policy, capabilities.RESTS)
        or capabilities.played_by("merge", policy, ZoomingPolicy, *methods)
        or capabilities.why_not(environment, capabilities.ADDRESSED, among=Continuum)
        or capabilities.why_not(constraint, capabilities.ADDITIVE)
        or limits.ends_before_its_clock(constraint)
        or limits.beyond_a_unit(environment, jax.ShapeDtypeStruct((), jnp.float32))
    )
    if reason is not None:
        return reason
    assert isinstance(environment, Continuum)
    if policy.capacity > environment.remembered:
        return (
            f"{type(policy).__name__}.capacity is {policy.capacity}, but {type(environment).__name__} counts the pulls "
            f"of {environment.remembered} points only"
        )
    return None


def begin(
    environment: Continuum, lane: Lane, carry: Carry, target: jax.Array
) -> tuple[Active, MergeConstants, MergeState]:
    """What the lane has learned, and a level that about ``target`` pulls should reach."""
    policy, state = lane.policy, carry.state
    assert isinstance(policy, ZoomingPolicy)
    key = typed(lane.policy_key)
    view = View(state.ledger.rounds + 1)
    learnt = policy.update(
        state.policy, key, Observation(view, state.action, state.feedback, state.empty)
    )
    points: Active = select_tree(state.empty, state.policy, learnt)
    # A lane is merged only from a state without holes: at a hole the next round activates a point.
    balls = Balls(points.point - points.radius, points.point + points.radius)
    open_ = (covering.first_hole(balls, points.below) <= points.below.high) | (
        covering.first_hole(balls, points.above) <= points.above.high
    )
    is_at = state.environment.point[None, :] == points.point[:, None]  # [M, C]
    active = jax.lax.iota(jnp.int32, points.point.shape[0]) < points.count
    remembered = jnp.any(is_at, axis=1)

    # Environment and policy number their points differently: they are matched by the point itself.
    def of(table: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(is_at, table[None, :], 0), axis=1, dtype=jnp.int32)

    clock = lane.constraint.clock(state.ledger)
    rounds_left = jnp.minimum(
        _rounds_left(state.ledger, clock, carry.goal), _until(lane, points) - state.ledger.rounds
    )
    # Short of the mark: a merge that passes it is dropped
    target = jnp.minimum(target, 0.9 * rounds_left)
    # The address of a point is known if it was pulled and the environment remembers it.
    running = scan.may_play(lane, carry, state.ledger, state.status) & ~open_
    ready = (
        running
        & (points.count > 0)
        & jnp.all(~active | (remembered & (points.pulls > 0)))
        & (target >= _LEAST)
    )
    level = jnp.where(ready, _level(policy, points, active, target), jnp.inf)
    visited = state.environment
    constants = MergeConstants(
        phase=points.phase,
        since=of(visited.since),
        earlier=of(visited.pulls) - points.pulls,
        mean_reward=of(visited.mean_reward),
        mean_cost=of(visited.mean_cost),
        level=level,
        round_limit=state.ledger.rounds + 4 * target.astype(jnp.int32),
    )
    return (
        points,
        constants,
        MergeState(points.pulls, points.reward, points.cost, points.index, state.ledger),
    )


def _rounds_left(ledger: Ledger, clock: Total, goal: Total) -> jax.Array:
    """A guess: as many as the clock's pace so far leaves until the next mark."""
    elapsed = ticks.to_float(clock)
    pace = jnp.maximum(elapsed, 1) / jnp.maximum(ledger.rounds.astype(jnp.float32), 1)
    return (ticks.to_float(goal) - elapsed) / pace


def _until(lane: Lane, points: Active) -> jax.Array:
    """The most rounds that may be over after the merge: the round after them is ordinary."""
    policy = lane.policy
    assert isinstance(policy, ZoomingPolicy)
    if not policy.phased:
        return lane.cap - 1
    return jnp.minimum(lane.cap - 1, (jnp.int32(1) << jnp.minimum(points.phase, 30)) - 1)


def _level(
    policy: ZoomingPolicy, points: Active, active: jax.Array, target: jax.Array
) -> jax.Array:
    """θ: u = v + w√(n/n'), so n((w/(θ − v))² − 1) pulls lead a point down to θ."""
    n = jnp.maximum(points.pulls, 1).astype(jnp.float32)
    width = 2 * policy.radius(n, points.phase.astype(jnp.float32))
    value = jnp.where(active, points.index - width, -jnp.inf)
    top = jnp.max(points.index)
    away = jnp.exp2(-jax.lax.iota(jnp.float32, _LEVELS)) * jnp.max(jnp.where(active, width, 0))
    # The lowest level that takes no more pulls than wanted: solved by trying all, each half as far.
    levels = top - away
    room = jnp.maximum(levels[:, None] - value[None, :], 1e-9 * width[None, :])
    steps = jnp.where(active[None, :], n[None, :] * (jnp.square(width[None, :] / room) - 1), 0)
    pulls = jnp.sum(jnp.maximum(steps, 0), axis=1)
    return jnp.min(jnp.where(pulls <= target, levels, jnp.inf))


def pull_top(
    environment: Continuum,
    lane: Lane,
    carry: Carry,
    constants: MergeConstants,
    merge_state: MergeState,
) -> MergeState:
    """Pull the point of the largest index until its index is at most θ, or a block is full."""
    policy = lane.policy
    assert isinstance(policy, ZoomingPolicy)
    key = typed(lane.world_key)
    ids = jax.lax.iota(jnp.int32, merge_state.index.shape[0])
    steps = jax.lax.iota(jnp.int32, LENGTH)
    top = jnp.max(merge_state.index)
    goes_on = _goes_on(constants, merge_state)
    # Any order leads to the same state
    at = jnp.min(jnp.where(merge_state.index == top, ids, ids.shape[0] - 1))
    n = merge_state.pulls[at]
    mean_reward, mean_cost = constants.mean_reward[at], constants.mean_cost[at]
    world = at_instance(environment, lane.row)
    feedbacks = jax.vmap(world.outcome, in_axes=(None, None, 0, None, None))(
        key, constants.since[at], constants.earlier[at] + n + steps, mean_reward, mean_cost
    )
    # Without the barrier XLA draws everything anew for every sum.
    reward, cost = (prefix_sums(x) for x in jax.lax.optimization_barrier(feedbacks))
    before = jax.tree.map(lambda x: x[at], (merge_state.reward, merge_state.cost))
    totals = ticks.add(before[0], reward), ticks.add(before[1], cost)
    _, index = radius_and_index(policy, n + 1 + steps, *totals, constants.phase)
    # The pull after which it stops: the first index that is at most θ, whatever the later ones are.
    last = jnp.min(jnp.where(index <= constants.level, steps, LENGTH - 1))
    is_top = (ids == at) & goes_on
    pulls = jnp.where(goes_on, last + 1, 0)
    earned, paid = jnp.where(goes_on, reward[last], 0), jnp.where(goes_on, cost[last], 0)
    brought = Outcome(
        earned, paid, mean_reward * pulls, mean_cost * pulls, events={}, valid=goes_on
    )

    def put(new: jax.Array, all: jax.Array) -> jax.Array:
        return jnp.where(is_top, new[last], all)

    return MergeState(
        pulls=merge_state.pulls + jnp.where(is_top, pulls, 0),
        reward=jax.tree.map(put, totals[0], merge_state.reward),
        cost=jax.tree.map(put, totals[1], merge_state.cost),
        index=put(index, merge_state.index),
        ledger=book_many(merge_state.ledger, brought, pulls),
    )


def _goes_on(constants: MergeConstants, merge_state: MergeState) -> jax.Array:
    return (jnp.max(merge_state.index) > constants.level) & (
        merge_state.ledger.rounds < constants.round_limit
    )


def finish(
    lane: Lane, carry: Carry, points: Active, constants: MergeConstants, merge_state: MergeState
) -> tuple[Carry, jax.Array, jax.Array]:
    """The lane after the merge, or unchanged; whether it was tried, and whether it is valid."""
    policy, state = lane.policy, carry.state
    assert isinstance(policy, ZoomingPolicy)
    tried = constants.level < jnp.inf
    ledger = merge_state.ledger
    inside = ~ticks.reached(lane.constraint.clock(ledger), carry.goal) & (
        ledger.rounds <= _until(lane, points)
    )
    active = jax.lax.iota(jnp.int32, merge_state.pulls.shape[0]) < points.count
    radius, _ = radius_and_index(
        policy,
        jnp.maximum(merge_state.pulls, 1),
        merge_state.reward,
        merge_state.cost,
        constants.phase,
    )
    radius = jnp.where(active, radius, 0)
    # All or nothing: the order of the pulls is not known, so no part of a merge can be kept.
    done = (
        tried
        & inside
        & (ledger.rounds > state.ledger.rounds)
        & (jnp.max(merge_state.index) <= constants.level)
    )
    # Whether [0, 1] is covered matters to lanes that are done; others ask about no point.
    span = covering.Span(jnp.int32(0), jnp.where(done, ticks.ONE, -1))
    covered = (
        covering.first_hole(Balls(points.point - radius, points.point + radius), span) > ticks.ONE
    )
    holds = done & covered
    visited = state.environment
    more = jnp.where(active, merge_state.pulls - points.pulls, 0)
    is_at = (visited.point[None, :] == points.point[:, None]) & active[:, None]
    added = jnp.sum(jnp.where(is_at, more[:, None], 0), axis=0, dtype=jnp.int32)
    learnt = points._replace(
        pulls=merge_state.pulls,
        reward=merge_state.reward,
        cost=merge_state.cost,
        radius=radius,
        index=merge_state.index,
        below=covering.empty_span(),
        above=covering.empty_span(),
    )
    merged = state._replace(
        policy=learnt,
        environment=visited._replace(pulls=visited.pulls + added),
        ledger=ledger,
        empty=jnp.bool_(True),  # the last outcome is learnt already
    )
    return carry._replace(state=select_tree(holds, merged, state)), tried, holds


class MergeTuner(NamedTuple):
    """The number of pulls for which the next level is chosen, slot by slot."""

    target: jax.Array  # f32[slot]


class _Macro(NamedTuple):
    """A chunk, between two macro-steps."""

    carry: Carry  # [slot]
    target: jax.Array  # f32[slot]: as in MergeTuner


def tuner(slots: int) -> MergeTuner:
    """The first guess for every slot."""
    return MergeTuner(jnp.full((slots,), 256.0, jnp.float32))


def trial(environment: Environment, lane: Lane, carry: Carry) -> Carry:
    """Everything that a chunk does, once, for one lane, to form the digest of the program."""
    assert isinstance(environment, Continuum)
    carry = scan.step(environment, lane, carry)
    points, constants, pulled = begin(environment, lane, carry, tuner(1).target[0])
    return finish(
        lane, carry, points, constants, pull_top(environment, lane, carry, constants, pulled)
    )[0]


def chunk(
    environment: Environment, lanes: Lane, carry: Carry, tuner: MergeTuner, rounds: jax.Array
) -> tuple[Carry, MergeTuner]:
    """Some macro-steps of all lanes, ``[slot]``."""
    assert isinstance(environment, Continuum)
    ordinary = jax.vmap(partial(scan.step, environment))

    def macro(_: jax.Array, state: _Macro) -> _Macro:
        target = state.target
        now = jax.lax.fori_loop(0, _ORDINARY, lambda _, c: ordinary(lanes, c), state.carry)
        learnt, constants, merge_state = jax.vmap(partial(begin, environment))(
            lanes, now, jnp.maximum(target, _LEAST)
        )

        def more(merge_state: MergeState) -> jax.Array:
            return jnp.any(jax.vmap(_goes_on)(constants, merge_state))

        pull = jax.vmap(partial(pull_top, environment))
        merge_state = jax.lax.while_loop(
            more, lambda p: pull(lanes, now, constants, p), merge_state
        )
        now, tried, holds = jax.vmap(finish)(lanes, now, learnt, constants, merge_state)
        grown = jnp.where(holds, jnp.minimum(2 * target, _MOST), jnp.maximum(target / 8, 1))
        # After a failure, simulate as many ordinary rounds as the last attempt wanted.
        return _Macro(now, jnp.where(tried, grown, jnp.minimum(2 * target, _MOST)))

    done = jax.lax.fori_loop(0, _STEPS, macro, _Macro(carry, tuner.target))
    return done.carry, MergeTuner(done.target)
