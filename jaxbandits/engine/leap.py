"""The leap engine: many pulls of one leader at once, the same bits as the scan engine.

An index policy that *rests* (see :class:`~jaxbandits.policies.IndexPolicy`) changes the score of the arm just pulled,
and the others' only upwards and slowly. So while the leader's own score stays above a ceiling on all others, it is
pulled again, and nothing needs K scores a round. One macro-step of a lane:

1. *an ordinary round*, the very one of the scan engine: exact scores, ties, initial pulls. It fixes the leader.
2. *the ceiling*: the largest score of any other arm at a later round, which bounds it at all rounds until then.
3. *blocks*: the leader's next h outcomes are known by address; prefix sums give its totals after 1 … h pulls, exactly;
   the longest prefix is accepted in which its score clears the ceiling (with a margin for rounding) and the clock
   reaches neither its end nor the next mark. As long as blocks are accepted whole, the ceiling serves the next one.

How many blocks to try, the *gear*, is a guess at speed and changes no bit: the mean length of a lead is estimated from
what was accepted, and the gear with the most predicted rounds per second is taken for the next chunk. In gear 0 the
engine is the scan engine.
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


LENGTH = 32  # pulls in a block
GEARS = (0, 1, 2, 4, 8)  # most blocks after an ordinary round
_STEPS = 4  # macro-steps between two looks at the marks


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


def block(environment: FiniteArms, lane: Lane, carry: Carry, lead: Lead) -> tuple[Carry, Lead, jax.Array]:
    """Accept as many of the leader's next pulls as are certainly right; also how many."""
    policy, memory, ledger = lane.policy, carry.memory, carry.memory.ledger
    assert isinstance(policy, IndexPolicy)
    arm, world = memory.action, at_instance(environment, lane.row)
    key = jax.random.wrap_key_data(carry.fixed.world_key, impl="threefry2x32")
    steps = jax.lax.iota(jnp.int32, LENGTH)

    # The leader's statistics before each of the pulls: known, pending, and the block's own earlier outcomes.
    outcomes = jax.vmap(world.outcome, in_axes=(None, None, 0))(key, arm, memory.environment[arm] + steps)
    pulled = jax.lax.optimization_barrier(outcomes)
    spreads = tuple(ticks.spread(x) for x in pulled) if policy.spreads else (None, None)
    sums = jax.tree.map(lambda x: jnp.cumsum(x, dtype=jnp.int32), (*pulled, *spreads))
    known = _leader(policy, memory, arm)
    earlier = jax.tree.map(lambda total, x: total - x, sums, (*pulled, *spreads))
    totals = [
        None if total is None else ticks.add(_wide(total), before)
        for total, before in zip(known[1:], earlier, strict=True)
    ]
    mine = Statistics(known[0] + steps, *totals)  # type: ignore[arg-type]
    rounds = ledger.rounds + 1 + steps
    scores = evaluate(policy, stats.as_floats(mine, rounds))

    # The clock after each pull, as the constraint would see it.
    reward_sum, cost_sum = sums[0], sums[1]
    after = ledger._replace(
        rounds=rounds,
        reward=ticks.add(_wide(ledger.reward), reward_sum),
        spent=ticks.add(_wide(ledger.spent), cost_sum),
    )
    inside = ~ticks.reached(lane.constraint.clock(after), _wide(carry.goal)) & (rounds < lane.cap)
    sure = scores > lead.ceiling + jnp.abs(lead.ceiling) * MARGIN
    right = sure & inside & (rounds <= lead.until)
    accepted = jnp.min(jnp.where(right, LENGTH, steps))
    accepted = jnp.where(lead.alive, accepted, 0)
    carry = select_tree(accepted > 0, _book(world, carry, sums, pulled, accepted), carry)
    return carry, lead._replace(alive=lead.alive & (accepted == LENGTH)), accepted


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


def _wide(total: Total) -> Total:
    return Total(jnp.broadcast_to(total.whole, (LENGTH,)), jnp.broadcast_to(total.part, (LENGTH,)))


class Gauge(NamedTuple):
    """What the engine knows of the batch's pace: the mean number of further pulls of a leader."""

    mean_lead: jax.Array  # f32[]


def gauge() -> Gauge:
    """Before anything was seen: leads are short at the start of a run."""
    return Gauge(jnp.float32(1.0))


def chunk(environment: Environment, lanes: Lane, carry: Carry, gauge: Gauge, rounds: jax.Array) -> tuple[Carry, Gauge]:
    """Some macro-steps of all lanes, ``[slot]``, in the gear that promises most."""
    assert isinstance(environment, FiniteArms)
    blocks = _best_gear(gauge.mean_lead, environment.spec.arms)

    def macro(_: jax.Array, state: tuple[Carry, jax.Array, jax.Array]) -> tuple[Carry, jax.Array, jax.Array]:
        before, gained, failed = state
        begun = jax.vmap(partial(scan.step, environment))(lanes, before)
        after, pulls, stopped = jax.lax.cond(
            blocks > 0,
            lambda: _leap(environment, lanes, begun, blocks),
            lambda: (begun, *_leads_seen(before, begun)),
        )
        return after, gained + pulls, failed + stopped

    zero = jnp.float32(0)
    carry, gained, failed = jax.lax.fori_loop(jnp.int32(0), jnp.int32(_STEPS), macro, (carry, zero, zero))
    return carry, Gauge(0.75 * gauge.mean_lead + 0.25 * gained / (failed + 1))


def _leap(environment: FiniteArms, lanes: Lane, carry: Carry, blocks: jax.Array) -> tuple[Carry, jax.Array, jax.Array]:
    """Blocks until most lanes have stopped; also the pulls gained and the leads that ended."""
    under = jax.vmap(partial(lead, environment), in_axes=(0, 0, None))(lanes, carry, blocks * LENGTH)
    first = _count(under.alive)

    def more(state: tuple[jax.Array, Carry, Lead, jax.Array]) -> jax.Array:
        done, _, now, _ = state
        alive = _count(now.alive)
        return (done < blocks) & (alive > 0) & (2 * alive >= first)

    def one(state: tuple[jax.Array, Carry, Lead, jax.Array]) -> tuple[jax.Array, Carry, Lead, jax.Array]:
        done, carry, now, gained = state
        carry, now, accepted = jax.vmap(partial(block, environment))(lanes, carry, now)
        return done + 1, carry, now, gained + jnp.sum(accepted.astype(jnp.float32))

    begin = (jnp.int32(0), carry, under, jnp.float32(0))
    _, carry, under, gained = jax.lax.while_loop(more, one, begin)
    return carry, gained, _count((carry.memory.status == Status.RUNNING) & ~under.alive)


def _leads_seen(before: Carry, after: Carry) -> tuple[jax.Array, jax.Array]:
    """Of one ordinary round: lanes whose leader stayed, lanes whose leader changed."""
    ran = after.memory.ledger.rounds > before.memory.ledger.rounds
    same = after.memory.action == before.memory.action
    return _count(ran & same), _count(ran & ~same)


def _count(flags: jax.Array) -> jax.Array:
    return jnp.sum(flags.astype(jnp.float32))


def _best_gear(mean_lead: jax.Array, arms: int) -> jax.Array:
    """The number of blocks with the most rounds per predicted nanosecond, for geometric leads of that mean.

    The costs are those of one lane on one CPU core. They steer speed only.
    """
    ordinary, ceiling, pull = 60 + 2.5 * arms, 20 + 2.0 * arms, 5.0
    speeds = []
    for blocks in GEARS:
        reach = blocks * LENGTH
        gained = mean_lead * -jnp.expm1(reach * jnp.log1p(-1 / (mean_lead + 1)))
        tried = jnp.minimum(blocks, 1 + 2 * mean_lead / LENGTH)
        cost = ordinary + (ceiling + tried * LENGTH * pull if blocks else 0.0)
        speeds.append((1 + gained) / cost)
    return jnp.asarray(GEARS, jnp.int32)[jnp.argmax(jnp.stack(speeds))]
