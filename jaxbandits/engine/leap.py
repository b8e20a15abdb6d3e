"""The leap engine: many pulls of one leader at once, the same bits as the scan engine.

An index policy that *rests* (see :class:`~jaxbandits.policies.IndexPolicy`) changes the score of the arm just pulled,
and the others' only upwards and slowly. So while the leader's own score stays above a ceiling on all others, it is
pulled again, and nothing needs K scores a round. One macro-step of a lane:

1. *an ordinary round*, the very one of the scan engine: exact scores, ties, initial pulls. It fixes the leader.
2. *the ceiling*: the largest score of any other arm at a later round, which bounds it at all rounds until then.
3. *blocks*: the leader's next h outcomes are known by address; prefix sums give its totals after 1 … h pulls, exactly;
   the longest prefix is accepted in which its score clears the ceiling (with a margin for rounding) and the clock
   reaches neither its end nor the next mark. As long as blocks are accepted whole, the ceiling serves the next one.

How long the leap is — the *gear* — is a guess at speed and changes no bit: the mean length of a lead is estimated from
what was accepted, and the gear with the best predicted rounds per second is taken for the next chunk.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import stats, ticks
from jaxbandits.engine import scan
from jaxbandits.engine.scan import Carry, Lane
from jaxbandits.environments.finite import FiniteArms
from jaxbandits.policies.index import IndexPolicy, evaluate
from jaxbandits.protocol import Constraint, Environment, Policy, Status, at_instance, select_tree
from jaxbandits.stats import Statistics
from jaxbandits.ticks import Total

MARGIN = np.float32(2.0**-20)  # a resting float32 score may fall by up to 1.9e-7 from one round to the next


class Gear(NamedTuple):
    """How far a macro-step may leap: at most ``blocks`` blocks of ``length`` pulls; no block means ordinary rounds."""

    length: int
    blocks: int
    steps: int  # macro-steps (or ordinary rounds) between two looks at the marks


GEARS = (Gear(0, 0, 8), Gear(16, 1, 4), Gear(64, 3, 4))


class Lead(NamedTuple):
    """What a lane leaps under."""

    ceiling: jax.Array  # f32[]: no other arm's score exceeds it …
    until: jax.Array  # i32[]: … up to this round
    alive: jax.Array  # bool[]


def why_not(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Why these cannot leap, or None if they can."""
    if not isinstance(policy, IndexPolicy) or not policy.rests:
        return (
            f"{type(policy).__name__} does not declare a score that rests (an arm's score must read its own "
            "statistics and the round only, and never fall while the arm is not pulled)"
        )
    if not isinstance(environment, FiniteArms):
        return f"{type(environment).__name__} does not give the outcomes of an arm by address (FiniteArms does)"
    if not constraint.additive:
        return f"{type(constraint).__name__} must see every round"
    return None


def lead(environment: FiniteArms, lane: Lane, carry: Carry, horizon: jax.Array) -> Lead:
    """The ceiling over the arm that was pulled last."""
    policy, memory = lane.policy, carry.memory
    assert isinstance(policy, IndexPolicy)
    learnt = stats.record(memory.policy, memory.action, memory.feedback.reward, memory.feedback.cost)
    t = memory.ledger.rounds + 1
    until = t + jnp.minimum(horizon, jnp.maximum(t >> 2, 8))
    scores = evaluate(policy, stats.as_floats(learnt, until))
    others = jax.lax.iota(jnp.int32, scores.shape[0]) != memory.action
    present = carry.fixed.available & others  # type: ignore[operator]
    scores = jnp.where(learnt.pulls == 0, jnp.inf, scores)
    ceiling = jnp.max(jnp.where(present, scores, -jnp.inf))
    clock = lane.constraint.clock(memory.ledger)
    alive = (memory.status == Status.RUNNING) & ~ticks.reached(clock, carry.goal) & (ceiling < jnp.inf)
    return Lead(ceiling, until, alive)


def block(environment: FiniteArms, lane: Lane, carry: Carry, lead: Lead, length: int) -> tuple[Carry, Lead, jax.Array]:
    """Accept as many of the leader's next ``length`` pulls as are certainly right; also how many."""
    policy, memory, ledger = lane.policy, carry.memory, carry.memory.ledger
    assert isinstance(policy, IndexPolicy)
    arm, world = memory.action, at_instance(environment, lane.row)
    key = jax.random.wrap_key_data(carry.fixed.world_key, impl="threefry2x32")
    steps = jax.lax.iota(jnp.int32, length)

    # The leader's statistics before each of the pulls: known, pending, and the block's own earlier outcomes.
    outcomes = jax.vmap(world.outcome, in_axes=(None, None, 0))(key, arm, memory.environment[arm] + steps)
    pulled = jax.lax.optimization_barrier(outcomes)
    spreads = tuple(ticks.spread(x) for x in pulled) if policy.spreads else (None, None)
    sums = jax.tree.map(lambda x: jnp.cumsum(x, dtype=jnp.int32), (*pulled, *spreads))
    known = _leader(policy, memory, arm)
    earlier = jax.tree.map(lambda total, x: total - x, sums, (*pulled, *spreads))
    totals = [
        None if total is None else ticks.add(_wide(total, length), before)
        for total, before in zip(known[1:], earlier, strict=True)
    ]
    mine = Statistics(known[0] + steps, *totals)  # type: ignore[arg-type]
    rounds = ledger.rounds + 1 + steps
    scores = evaluate(policy, stats.as_floats(mine, rounds))

    # The clock after each pull, as the constraint would see it.
    reward_sum, cost_sum = sums[0], sums[1]
    after = ledger._replace(
        rounds=rounds,
        reward=ticks.add(_wide(ledger.reward, length), reward_sum),
        spent=ticks.add(_wide(ledger.spent, length), cost_sum),
    )
    inside = ~ticks.reached(lane.constraint.clock(after), _wide(carry.goal, length)) & (rounds < lane.cap)
    sure = scores > lead.ceiling + jnp.abs(lead.ceiling) * MARGIN
    right = sure & inside & (rounds <= lead.until)
    accepted = jnp.min(jnp.where(right, length, steps))
    accepted = jnp.where(lead.alive, accepted, 0)
    carry = select_tree(accepted > 0, _book(world, carry, sums, pulled, accepted), carry)
    return carry, lead._replace(alive=lead.alive & (accepted == length)), accepted


def _book(world: FiniteArms, carry: Carry, sums: tuple, pulled: tuple, accepted: jax.Array) -> Carry:
    """The lane after ``accepted`` ≥ 1 pulls: the last one is still to be learnt, as after an ordinary round."""
    memory, ledger = carry.memory, carry.memory.ledger
    arm, last = memory.action, jnp.maximum(accepted - 1, 0)
    reward, cost, reward_spread, cost_spread = (None if x is None else x[last] for x in sums)
    pending = tuple(x[last] for x in pulled)
    ids = jax.lax.iota(jnp.int32, memory.policy.pulls.shape[0]) == arm

    def put(total: Total | None, x: jax.Array | None) -> Total | None:
        return None if total is None else ticks.add(total, jnp.where(ids, x, 0))  # type: ignore[arg-type]

    learnt = stats.record(memory.policy, arm, memory.feedback.reward, memory.feedback.cost)
    policy = Statistics(
        learnt.pulls + jnp.where(ids, last, 0),
        put(learnt.reward, reward - pending[0]),  # type: ignore[operator,arg-type]
        put(learnt.cost, cost - pending[1]),  # type: ignore[operator,arg-type]
        put(learnt.reward_spread, None if reward_spread is None else reward_spread - ticks.spread(pending[0])),
        put(learnt.cost_spread, None if cost_spread is None else cost_spread - ticks.spread(pending[1])),
    )
    ledger = ledger._replace(
        rounds=ledger.rounds + accepted,
        reward=ticks.add(ledger.reward, reward),  # type: ignore[arg-type]
        spent=ticks.add(ledger.spent, cost),  # type: ignore[arg-type]
        expected_reward=ticks.add(ledger.expected_reward, world.mean_reward[arm] * accepted),
        expected_spent=ticks.add(ledger.expected_spent, world.mean_cost[arm] * accepted),
    )
    return carry._replace(
        memory=memory._replace(
            policy=policy,
            environment=memory.environment + jnp.where(ids, accepted, 0),
            ledger=ledger,
            feedback=type(memory.feedback)(*pending),
        )
    )


def _leader(policy: IndexPolicy, memory: scan.Memory, arm: jax.Array) -> tuple:
    """The leader's pulls and totals, the pending outcome included (scalars)."""
    known, feedback = memory.policy, memory.feedback

    def get(total: Total | None, x: jax.Array) -> Total | None:
        return None if total is None else ticks.add(Total(total.whole[arm], total.part[arm]), x)

    return (
        known.pulls[arm] + 1,
        get(known.reward, feedback.reward),
        get(known.cost, feedback.cost),
        get(known.reward_spread, ticks.spread(feedback.reward)),
        get(known.cost_spread, ticks.spread(feedback.cost)),
    )


def _wide(total: Total, length: int) -> Total:
    return Total(jnp.broadcast_to(total.whole, (length,)), jnp.broadcast_to(total.part, (length,)))


class Gauge(NamedTuple):
    """What the engine knows of the batch's pace: the mean number of further pulls of a leader."""

    mean_lead: jax.Array  # f32[]


def gauge() -> Gauge:
    """Before anything was seen: leads are short at the start of a run."""
    return Gauge(jnp.float32(1.0))


def chunk(
    environment: Environment, lanes: Lane, carry: Carry, gauge: Gauge, rounds: jax.Array
) -> tuple[Carry, Gauge]:
    """Some macro-steps of all lanes, in the gear that promises most."""
    assert isinstance(environment, FiniteArms)
    arms = environment.spec.arms

    def ordinary(gear: Gear, now: Carry) -> tuple[Carry, jax.Array]:
        def round(_: jax.Array, state: tuple) -> tuple:
            before, stays, moves = state
            after = jax.vmap(partial(scan.step, environment))(lanes, before)
            ran = after.memory.ledger.rounds > before.memory.ledger.rounds
            same = after.memory.action == before.memory.action
            return after, stays + _count(ran & same), moves + _count(ran & ~same)

        zero = jnp.float32(0)
        now, stays, moves = jax.lax.fori_loop(jnp.int32(0), jnp.int32(gear.steps), round, (now, zero, zero))
        return now, stays / (moves + 1)

    def leaping(gear: Gear, now: Carry) -> tuple[Carry, jax.Array]:
        def macro(_: jax.Array, state: tuple) -> tuple:
            before, gained, failed = state
            begun = jax.vmap(partial(scan.step, environment))(lanes, before)
            reach = jnp.int32(gear.length * gear.blocks)
            under = jax.vmap(partial(lead, environment), in_axes=(0, 0, None))(lanes, begun, reach)
            after, under, pulls = _blocks(environment, lanes, begun, under, gear)
            return after, gained + pulls, failed + _count((begun.memory.status == Status.RUNNING) & ~under.alive)

        zero = jnp.float32(0)
        now, gained, failed = jax.lax.fori_loop(jnp.int32(0), jnp.int32(gear.steps), macro, (now, zero, zero))
        return now, gained / (failed + 1)

    branches = [partial(leaping if gear.blocks else ordinary, gear) for gear in GEARS]
    carry, seen = jax.lax.switch(_best_gear(gauge.mean_lead, arms), branches, carry)
    return carry, Gauge(0.75 * gauge.mean_lead + 0.25 * seen)


def _blocks(environment: FiniteArms, lanes: Lane, carry: Carry, under: Lead, gear: Gear) -> tuple:
    """Blocks until most lanes have stopped."""
    slots = under.alive.shape[0]

    def more(state: tuple) -> jax.Array:
        done, _, now, _ = state
        return (done < gear.blocks) & (_count(now.alive) * 2 >= slots)

    def one(state: tuple) -> tuple:
        done, carry, now, gained = state
        carry, now, accepted = jax.vmap(partial(block, environment, length=gear.length))(lanes, carry, now)
        return done + 1, carry, now, gained + jnp.sum(accepted.astype(jnp.float32))

    _, carry, under, gained = jax.lax.while_loop(more, one, (jnp.int32(0), carry, under, jnp.float32(0)))
    return carry, under, gained


def _count(flags: jax.Array) -> jax.Array:
    return jnp.sum(flags.astype(jnp.float32))


def _best_gear(mean_lead: jax.Array, arms: int) -> jax.Array:
    """The gear with the most rounds per predicted nanosecond, for geometric leads of that mean.

    The costs are those of one lane on one CPU core. They steer speed only.
    """
    ordinary, ceiling, pull = 60 + 2.5 * arms, 20 + 2.0 * arms, 5.0
    speeds = []
    for gear in GEARS:
        if not gear.blocks:
            speeds.append(jnp.float32(1 / ordinary))
            continue
        reach = gear.length * gear.blocks
        gained = mean_lead * -jnp.expm1(reach * jnp.log1p(-1 / (mean_lead + 1)))
        tried = jnp.minimum(gear.blocks, 1 + 2 * mean_lead / gear.length)
        speeds.append((1 + gained) / (ordinary + ceiling + tried * gear.length * pull))
    return jnp.argmax(jnp.stack(speeds)).astype(jnp.int32)
