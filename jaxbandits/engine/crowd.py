"""The crowd engine: a leap for hundreds of arms whose scores lie close together. The same bits as the scan engine.

With many arms an index policy seldom pulls one leader for long: the best few take turns. What
:mod:`~jaxbandits.engine.leap` does for one leader is done here for a group. A macro-step of a lane:

1. *an ordinary round*, the very one of the scan engine: exact scores, initial pulls, statuses.
2. *the group*: all scores once, at a later round. The ``GROUP`` largest are the group, the next one is the ceiling: no
   arm outside exceeds it at any round until then, since a resting score never falls. Nor may a new arm join before.
3. *rounds of the group*: exact scores of its arms only, ties as ever, as long as the best clears the ceiling (with a
   margin for rounding) and the lane reaches neither its end nor the next mark.
4. *more ordinary rounds*, if that does not serve most lanes: initial pulls, or more scores of +∞ than a group holds.

A round then costs ``GROUP`` scores instead of K.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import stats, streams
from jaxbandits.engine import scan
from jaxbandits.engine.scan import Carry, Lane
from jaxbandits.environments.reservoir import Reservoir
from jaxbandits.environments.reservoir_laws import INVALID
from jaxbandits.policies.index import (
    ABSENT,
    IndexPolicy,
    behind_the_fresh,
    clears,
    evaluate,
    first_of_largest,
    score_of,
    sortable,
)
from jaxbandits.policies.many_arms import NEVER, ManyArms
from jaxbandits.protocol import (
    Constraint,
    Environment,
    Feedback,
    Ledger,
    Outcome,
    Policy,
    View,
    at_instance,
    book,
    own_method,
    select_tree,
)
from jaxbandits.stats import Statistics
from jaxbandits.streams import Role

CPU_SLOTS = 256
GROUP = 32
_FEW = 2 * GROUP  # up to so many arms the scan engine is as fast
_ROUNDS = 128  # most rounds of a group before all scores are taken again
_REACH = 160  # rounds ahead that the ceiling holds for
_ORDINARY = 48  # more ordinary rounds where most lanes are stuck
_BISECTIONS = 26
_STEPS = 4  # macro-steps between two looks at the marks


class Fast(NamedTuple):
    """A lane between ordinary rounds: what a fast round reads and writes besides the statistics of the arms."""

    ledger: Ledger
    status: jax.Array  # i32[]
    arm: jax.Array  # i32[]: pulled last
    feedback: Feedback  # of that pull
    before: Statistics  # []: that arm's statistics without it
    alive: jax.Array  # bool[]


class Crowd(NamedTuple):
    """All scores, once."""

    known: Statistics  # [K]: the last outcome learnt
    until: jax.Array  # i32[]
    ids: jax.Array  # i32[GROUP]: arms with the largest scores at ``until``; −1: none
    ceiling: jax.Array  # f32[]: no other exceeds it
    stuck: jax.Array  # bool[]: the lane runs, but only by ordinary rounds


def why_not(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Why these cannot be played by this engine, or None if they can."""
    inside = policy.policy if isinstance(policy, ManyArms) else policy
    if not isinstance(inside, IndexPolicy) or not inside.rests:
        return f"{type(inside).__name__} does not declare a score that rests"
    assert isinstance(policy, IndexPolicy)
    admits = () if isinstance(policy, ManyArms) else ("admits",)  # which tell how long what they admit holds
    if (reason := own_method(policy, IndexPolicy, "init", "update", "select", *admits)) is not None:
        return reason
    if not isinstance(environment, Reservoir):
        return f"{type(environment).__name__} is no Reservoir"
    if environment.capacity <= _FEW:
        return f"{environment.capacity} arms are few"
    if not constraint.additive:
        return f"{type(constraint).__name__} must see every round"
    return None


# --- all scores, once ------------------------------------------------------------------------------------------


def look(lane: Lane, carry: Carry) -> tuple[Crowd, Fast]:
    """The group and its ceiling."""
    policy, memory = lane.policy, carry.memory
    assert isinstance(policy, IndexPolicy)
    learnt = stats.record(memory.policy, memory.action, memory.feedback.reward, memory.feedback.cost)
    known = select_tree(memory.empty, memory.policy, learnt)
    t = memory.ledger.rounds + 1
    taking = policy.admits(known, View(t, lane.constraint.view(memory.ledger), carry.fixed.available))
    steady = policy.steady(known, t) if isinstance(policy, ManyArms) else jnp.int32(NEVER)
    until = jnp.minimum(t + _REACH, steady)

    scores = evaluate(policy, stats.as_floats(known, jnp.maximum(until, t)))
    scores = jnp.where(taking, scores, -jnp.inf)  # type: ignore[arg-type]
    ids, ceiling = few_largest(scores)
    fresh = jnp.any(taking & (known.pulls == 0))  # type: ignore[operator]
    runs = scan.may_play(lane, carry, memory.ledger, memory.status)
    alive = runs & ~fresh & (until >= t) & (ceiling < jnp.inf) & ~jnp.any(jnp.isnan(scores))
    before = jax.tree.map(lambda x: x[memory.action], memory.policy)
    crowd = Crowd(known, until, ids, ceiling, runs & ~alive)
    return crowd, Fast(memory.ledger, memory.status, memory.action, memory.feedback, before, alive)


def few_largest(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(ids of the largest scores, ``i32[GROUP]``, −1 in places left over; a bound on all others).

    Without a sort, which is slow: a level that at most ``GROUP`` scores exceed is found by bisection of the floats as
    ordered whole numbers, and who exceeds it is read off bit masks of 32 arms each. If more than ``GROUP`` scores tie
    at the top, there are no ids, and the bound is that top. Scores below 0 count as 0.
    """
    keys = jax.lax.bitcast_convert_type(jnp.where(scores > 0, scores, 0.0), jnp.int32)  # no −0, whose bits are negative

    def halve(_: jax.Array, span: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = span  # more than GROUP scores exceed `low`, at most GROUP exceed `high`
        middle = low + (high - low) // 2
        few = jnp.sum(keys > middle, dtype=jnp.int32) <= GROUP
        return jnp.where(few, low, middle), jnp.where(few, middle, high)

    _, level = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.int32(-1), jnp.max(keys)))
    words = -(-scores.shape[0] // 32)
    above = jnp.pad((keys > level).astype(jnp.uint32), (0, 32 * words - scores.shape[0])).reshape(words, 32)
    masks = jnp.sum(above << jax.lax.iota(jnp.uint32, 32)[None, :], axis=1, dtype=jnp.uint32)
    counts = jax.lax.population_count(masks).astype(jnp.int32)
    upto = jnp.cumsum(counts, dtype=jnp.int32)
    place = jax.lax.iota(jnp.int32, GROUP)
    word = jnp.sum(upto[None, :] <= place[:, None], axis=1, dtype=jnp.int32)
    row = jnp.minimum(word, words - 1)
    bit = _nth_bit(masks[row], place - (upto - counts)[row])
    ids = jnp.where(word < words, 32 * row + bit, -1)
    return ids, jax.lax.bitcast_convert_type(level, jnp.float32)


def _nth_bit(mask: jax.Array, n: jax.Array) -> jax.Array:
    """Position of the n-th (from 0) set bit."""
    at = jnp.zeros_like(n)
    for width in (16, 8, 4, 2, 1):
        low = jax.lax.population_count((mask >> at.astype(jnp.uint32)) & jnp.uint32((1 << width) - 1)).astype(jnp.int32)
        skip = n >= low
        at, n = at + jnp.where(skip, width, 0), n - jnp.where(skip, low, 0)
    return at


def leave(carry: Carry, known: Statistics, fast: Fast) -> Carry:
    """The lane as ordinary rounds would have left it: its last outcome is not learnt yet."""
    m = carry.memory
    policy = jax.tree.map(lambda all, one: all.at[fast.arm].set(one, mode="promise_in_bounds"), known, fast.before)
    played = m._replace(
        policy=policy,
        environment=known.pulls,
        ledger=fast.ledger,
        action=fast.arm,
        feedback=fast.feedback,
        empty=jnp.bool_(False),
        status=fast.status,
    )
    return carry._replace(memory=select_tree(fast.ledger.rounds > m.ledger.rounds, played, m))


# --- one fast round --------------------------------------------------------------------------------------------


def pull(
    environment: Reservoir, lane: Lane, carry: Carry, fast: Fast, arm: jax.Array, known: Statistics, sure: jax.Array
) -> tuple[Fast, Statistics]:
    """Play ``arm`` if that is ``sure``, as the scan engine would; also the arm's statistics ``[]`` afterwards."""
    world = at_instance(environment, lane.row)
    key = jax.random.wrap_key_data(carry.fixed.world_key, impl="threefry2x32")
    mean_reward, mean_cost = world.means(arm)
    sure = sure & (mean_cost != INVALID)
    reward, cost = world.outcome(key, arm, known.pulls)
    outcome = Outcome(reward, cost, mean_reward, mean_cost, {}, sure)
    ledger = book(lane.constraint, fast.ledger, outcome)
    status = scan.status_after(lane, ledger)
    goes_on = scan.may_play(lane, carry, ledger, status)
    played = Fast(ledger, status, arm, Feedback(reward, cost), known, goes_on)
    row = jax.tree.map(lambda x: x[None], known)
    after = jax.tree.map(lambda x: x[0], stats.record(row, jnp.int32(0), reward, cost))
    return select_tree(sure, played, fast._replace(alive=jnp.bool_(False))), select_tree(sure, after, known)


def _order(carry: Carry, round: jax.Array, ids: jax.Array) -> jax.Array:
    """The priorities by which :meth:`IndexPolicy.select` breaks ties when no arm is fresh."""
    key = jax.random.wrap_key_data(carry.fixed.policy_key, impl="threefry2x32")
    return behind_the_fresh(streams.priority(streams.policy_words(key, round, Role.TIE)[0], ids))


def group_round(
    environment: Reservoir, lane: Lane, carry: Carry, crowd: Crowd, state: tuple[Fast, Statistics]
) -> tuple[Fast, Statistics]:
    """One round in which an arm of the group is best; ``state`` holds the group's statistics ``[GROUP]``."""
    policy = lane.policy
    assert isinstance(policy, IndexPolicy)
    fast, group = state
    t = fast.ledger.rounds + 1
    scores = evaluate(policy, stats.as_floats(group, t))
    keys = jnp.where(crowd.ids >= 0, sortable(scores), ABSENT)
    best, arm = first_of_largest(keys, _order(carry, t, crowd.ids), crowd.ids)
    sure = fast.alive & (t <= crowd.until) & clears(policy, score_of(best), crowd.ceiling)  # false if a score is NaN
    mine = crowd.ids == arm
    known = jax.tree.map(lambda x: jnp.sum(jnp.where(mine, x, 0), dtype=jnp.int32), group)
    fast, after = pull(environment, lane, carry, fast, jnp.where(sure, arm, 0), known, sure)
    return fast, jax.tree.map(lambda all, one: jnp.where(mine & sure, one, all), group, after)


# --- a batch of lanes ------------------------------------------------------------------------------------------


class Gauge(NamedTuple):
    """This engine learns nothing about its pace."""


def gauge(slots: int) -> Gauge:
    """See :class:`Gauge`."""
    return Gauge()


def chunk(environment: Environment, lanes: Lane, carry: Carry, gauge: Gauge, rounds: jax.Array) -> tuple[Carry, Gauge]:
    """Some macro-steps of all lanes, ``[slot]``."""
    assert isinstance(environment, Reservoir)

    ordinary = jax.vmap(partial(scan.step, environment))

    def macro(_: jax.Array, now: Carry) -> Carry:
        now = ordinary(lanes, now)
        crowds, fast = jax.vmap(look)(lanes, now)
        stuck, alive = (jnp.sum(x, dtype=jnp.int32) for x in (crowds.stuck, fast.alive))
        now = jax.lax.cond(alive > 0, lambda: _groups(environment, lanes, now, crowds, fast), lambda: now)
        more = jnp.where(stuck > alive, jnp.int32(_ORDINARY), 0)
        return jax.lax.fori_loop(jnp.int32(0), more, lambda _, c: ordinary(lanes, c), now)

    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(_STEPS), macro, carry), gauge


def _groups(environment: Reservoir, lanes: Lane, carry: Carry, crowds: Crowd, fast: Fast) -> Carry:
    places = jnp.maximum(crowds.ids, 0)
    group = jax.tree.map(lambda x: jnp.take_along_axis(x, places, axis=1), crowds.known)
    one = jax.vmap(partial(group_round, environment))
    fast, group = _while_most_live(lambda state: one(lanes, carry, crowds, state), (fast, group))

    def back(all: jax.Array, ids: jax.Array, some: jax.Array) -> jax.Array:
        return all.at[jnp.where(ids >= 0, ids, all.shape[0])].set(some, mode="drop")

    known = jax.tree.map(lambda x, y: jax.vmap(back)(x, crowds.ids, y), crowds.known, group)
    return jax.vmap(leave)(carry, known, fast)


def _while_most_live(one: Callable[[Any], Any], state: Any) -> Any:
    """Rounds until half of the lanes that began have stopped; the state's first entry says who lives."""
    first = jnp.sum(state[0].alive, dtype=jnp.int32)

    def more(now: tuple[jax.Array, Any]) -> jax.Array:
        alive = jnp.sum(now[1][0].alive, dtype=jnp.int32)
        return (now[0] < _ROUNDS) & (alive > 0) & (2 * alive >= first)

    return jax.lax.while_loop(more, lambda now: (now[0] + 1, one(now[1])), (jnp.int32(0), state))[1]
