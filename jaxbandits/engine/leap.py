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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import stats, ticks
from jaxbandits.engine import scan
from jaxbandits.engine.scan import Carry, Lane
from jaxbandits.environments.finite import FiniteArms
from jaxbandits.policies.index import IndexPolicy, evaluate
from jaxbandits.protocol import (
    Constraint,
    Environment,
    Feedback,
    Ledger,
    Policy,
    Status,
    at_instance,
    select_tree,
)
from jaxbandits.stats import Statistics
from jaxbandits.ticks import Total

MARGIN = np.float32(2.0**-20)  # a resting float32 score may fall by up to 1.9e-7 from one round to the next


CPU_SLOTS = 64  # lanes in flight per core: few, so that the queue refills them and the last ones run nearly alone
LENGTH = 32  # pulls in a block
GEARS = (0, 1, 2, 4, 8)  # most blocks after an ordinary round
_STEPS = 4  # macro-steps between two looks at the marks


class Lead(NamedTuple):
    """A lane while its leader leaps: scalars only, so that a block costs the same for any number of arms."""

    ceiling: jax.Array  # f32[]: no other arm's score exceeds it …
    until: jax.Array  # i32[]: … up to this round
    alive: jax.Array  # bool[]: may leap on
    known: Statistics  # [1]: the leader's statistics, the pending outcome included
    pending: Feedback  # its last outcome, which the policy has still to learn, as after an ordinary round
    ledger: Ledger


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


def begin(lane: Lane, carry: Carry, horizon: jax.Array) -> Lead:
    """The ceiling over the arm that was pulled last, and that arm's statistics."""
    policy, memory = lane.policy, carry.memory
    assert isinstance(policy, IndexPolicy)
    learnt = stats.record(memory.policy, memory.action, memory.feedback.reward, memory.feedback.cost)
    t = memory.ledger.rounds + 1
    until = t + jnp.minimum(horizon, jnp.maximum(t >> 2, 8))
    scores = jnp.where(learnt.pulls == 0, jnp.inf, evaluate(policy, stats.as_floats(learnt, until)))
    others = jax.lax.iota(jnp.int32, scores.shape[0]) != memory.action
    ceiling = jnp.max(jnp.where(carry.fixed.available & others, scores, -jnp.inf))  # type: ignore[operator]
    clock = lane.constraint.clock(memory.ledger)
    alive = (memory.status == Status.RUNNING) & ~ticks.reached(clock, carry.goal) & (ceiling < jnp.inf)
    known = jax.tree.map(lambda x: x[memory.action][None], learnt)
    return Lead(ceiling, until, alive, known, memory.feedback, memory.ledger)


def block(environment: FiniteArms, lane: Lane, carry: Carry, lead: Lead) -> tuple[Lead, jax.Array]:
    """Accept as many of the leader's next pulls as are certainly right; also how many."""
    policy, ledger, known = lane.policy, lead.ledger, lead.known
    assert isinstance(policy, IndexPolicy)
    arm, world = carry.memory.action, at_instance(environment, lane.row)
    key = jax.random.wrap_key_data(carry.fixed.world_key, impl="threefry2x32")
    steps = jax.lax.iota(jnp.int32, LENGTH)

    # What the pulls bring, and prefix sums of it. Without the barrier XLA draws everything anew for every sum.
    drawn = jax.vmap(world.outcome, in_axes=(None, None, 0))(key, arm, known.pulls + steps)
    reward, cost = jax.lax.optimization_barrier(drawn)
    outcomes = _outcomes(reward, cost, policy.spreads)
    sums = jax.tree.map(lambda x: jnp.cumsum(x, dtype=jnp.int32), outcomes)
    reward_sum, cost_sum = sums.reward, sums.cost

    before = _plus(known, jax.tree.map(jnp.subtract, sums, outcomes))
    rounds = ledger.rounds + 1 + steps
    scores = evaluate(policy, stats.as_floats(before, rounds))
    margin = jnp.where(jnp.isfinite(lead.ceiling), jnp.abs(lead.ceiling) * MARGIN, 0)  # −∞: no other arm
    sure = scores > lead.ceiling + margin

    # The clock after each pull, as the constraint would see it.
    after = ledger._replace(
        rounds=rounds,
        reward=ticks.add(_wide(ledger.reward), reward_sum),
        spent=ticks.add(_wide(ledger.spent), cost_sum),
    )
    inside = ~ticks.reached(lane.constraint.clock(after), _wide(carry.goal)) & (rounds < lane.cap)
    accepted = jnp.min(jnp.where(sure & inside & (rounds <= lead.until), LENGTH, steps))
    accepted = jnp.where(lead.alive, accepted, 0)
    last = jnp.maximum(accepted - 1, 0)
    gained = jax.tree.map(lambda x: jnp.where(accepted > 0, x[last], 0), sums)
    ledger = ledger._replace(
        rounds=ledger.rounds + accepted,
        reward=ticks.add(ledger.reward, gained.reward),
        spent=ticks.add(ledger.spent, gained.cost),
        expected_reward=ticks.add(ledger.expected_reward, world.mean_reward[arm] * accepted),
        expected_spent=ticks.add(ledger.expected_spent, world.mean_cost[arm] * accepted),
    )
    return Lead(
        lead.ceiling,
        lead.until,
        lead.alive & (accepted == LENGTH),
        _plus(known, jax.tree.map(lambda x: x[None], gained)),
        select_tree(accepted > 0, Feedback(reward[last], cost[last]), lead.pending),
        ledger,
    ), accepted


def finish(carry: Carry, lead: Lead) -> Carry:
    """The lane as ordinary rounds would have left it."""
    memory, pending = carry.memory, lead.pending
    last = _outcomes(pending.reward[None], pending.cost[None], lead.known.reward_spread is not None)
    learnt = _plus(lead.known, jax.tree.map(jnp.negative, last))
    mine = jax.lax.iota(jnp.int32, memory.environment.shape[0]) == memory.action
    policy = jax.tree.map(lambda one, all: jnp.where(mine, one, all), learnt, memory.policy)
    pulls = jnp.where(mine, lead.known.pulls, memory.environment)
    played = memory._replace(policy=policy, environment=pulls, ledger=lead.ledger, feedback=pending)
    return carry._replace(memory=select_tree(lead.ledger.rounds > memory.ledger.rounds, played, memory))


def _outcomes(reward: jax.Array, cost: jax.Array, spreads: bool) -> Statistics:
    """What each pull adds to its arm's statistics, in ticks."""
    squares = (ticks.spread(reward), ticks.spread(cost)) if spreads else (None, None)
    return Statistics(jnp.ones_like(reward), reward, cost, *squares)  # type: ignore[arg-type]


def _plus(known: Statistics, more: Statistics) -> Statistics:
    """Statistics ``[1]`` and ticks ``[h]``, or ``[1]``, added."""

    def put(total: Total | None, x: Any) -> Total | None:
        if total is None:
            return None
        return ticks.add(Total(*(jnp.broadcast_to(limb, x.shape) for limb in total)), x)

    pulls = known.pulls + more.pulls
    return Statistics(pulls, *(put(a, b) for a, b in zip(known[1:], more[1:], strict=True)))  # type: ignore[arg-type]


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
    under = jax.vmap(begin, in_axes=(0, 0, None))(lanes, carry, blocks * LENGTH)
    first = _count(under.alive)

    def more(state: tuple[jax.Array, Lead, jax.Array]) -> jax.Array:
        done, now, _ = state
        alive = _count(now.alive)
        return (done < blocks) & (alive > 0) & (2 * alive >= first)

    def one(state: tuple[jax.Array, Lead, jax.Array]) -> tuple[jax.Array, Lead, jax.Array]:
        done, now, gained = state
        now, accepted = jax.vmap(partial(block, environment))(lanes, carry, now)
        return done + 1, now, gained + jnp.sum(accepted.astype(jnp.float32))

    _, under, gained = jax.lax.while_loop(more, one, (jnp.int32(0), under, jnp.float32(0)))
    ended = _count((carry.memory.status == Status.RUNNING) & ~under.alive)
    return jax.vmap(finish)(carry, under), gained, ended


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
