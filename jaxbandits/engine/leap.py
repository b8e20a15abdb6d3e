"""The leap engine: many pulls of one leader at once, the same bits as the scan engine.

An index policy that *rests* (see :class:`~jaxbandits.policies.IndexPolicy`) changes the score of the arm just pulled,
and the others' only upwards and slowly. So while the leader's own score stays above a ceiling on all others, it is
pulled again, and nothing needs K scores a round. One macro-step of a lane that is about to decide round t:

1. *aim*: all scores once, at a later round t + d. The largest names the leader; the largest of the others is the
   ceiling, which bounds their scores at all rounds until then.
2. *block*: the leader's next h outcomes are known by address; prefix sums give its totals after 1 … h pulls, exactly.
   The longest prefix is accepted in which its score clears the ceiling (with a margin for rounding) and the clock
   reaches neither its end nor the next mark. As long as blocks are accepted whole, the ceiling serves the next one.
3. If nothing was accepted (a tie, a leader who leads at t + d but not yet at t, a pull that ends the lane or passes a
   mark), the next macro-step is *careful*: d = 0, ties broken at random, and its first pull is played unseen. That is
   an ordinary round, in the same program.
4. *lots*: where the ceiling is +∞, there is no leader, but a tie that each round breaks by lot. Who is drawn in the
   coming rounds is known beforehand, so a block of such rounds is played at once, up to an arm that is drawn when its
   score is not +∞ (any more, or yet). A macro-step is one of leads or of lots, as most lanes want.

How far to aim, d, and how long the blocks are, h, are guesses at speed and change no bit. d belongs to a lane: it grows
while blocks are accepted whole and shrinks when none was. h belongs to the batch: the mean length of a lead is
estimated from what was accepted, and the most predicted rounds per second win.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import capabilities, stats, ticks
from jaxbandits.engine.scan import Carry, Lane, may_play, status_after
from jaxbandits.environments.finite import AddressedArms
from jaxbandits.policies.index import IndexPolicy, clears, evaluate, largest, lots
from jaxbandits.protocol import (
    Constraint,
    Environment,
    Feedback,
    Ledger,
    Outcome,
    Policy,
    Status,
    View,
    at_instance,
    book,
    book_many,
    select_tree,
)
from jaxbandits.stats import Statistics
from jaxbandits.ticks import Total

PLAYS = IndexPolicy
CPU_SLOTS = 128  # lanes in flight per core: measured, 32 to 256; twice as many at 10⁴ lanes cost 2 %, half as many 8 %
LENGTHS = (2, 16, 64)  # pulls in a block; 64 outcomes are the most whose sum fits an int32
LOTS = 16  # rounds in a block that is drawn by lot
_FEW = 64  # so few arms do not tie at +∞ for long enough to be worth compiling that
_FURTHEST = 1024  # most rounds to aim ahead
_STEPS = 8  # macro-steps between two looks at the marks


class Pace(NamedTuple):
    """How a lane goes on: guesses that steer speed only."""

    careful: jax.Array  # bool[]: the next macro-step is an ordinary round
    reach: jax.Array  # i32[]: rounds to aim ahead


class Flight(NamedTuple):
    """A lane while it leaps."""

    known: Statistics  # [K]: what the policy knows once it has learnt the last outcome
    action: jax.Array  # i32[]
    feedback: Feedback  # the last outcome, which counts as not yet learnt when the lane leaves
    ledger: Ledger
    status: jax.Array  # i32[]
    pace: Pace


class Lead(NamedTuple):
    """A leader and what it must beat: scalars only, so that a block costs the same for any number of arms."""

    arm: jax.Array  # i32[]
    ceiling: jax.Array  # f32[]: no other arm's score exceeds it …
    until: jax.Array  # i32[]: … up to this round
    careful: jax.Array  # bool[]: play the first pull unseen, and no other
    status: jax.Array  # i32[]: other than RUNNING: the round cannot be played
    tied: jax.Array  # bool[]: several scores are +∞
    mean_reward: jax.Array  # i32[]: ticks
    mean_cost: jax.Array  # i32[]
    alive: jax.Array  # bool[]: every pull tried so far was accepted
    known: Statistics  # [1]: the leader's statistics
    feedback: Feedback
    ledger: Ledger


def why_not(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Why these cannot leap, or None if they can."""
    played = "init", "blank_action", "update", "select", "step"
    return (
        capabilities.why_not(policy, capabilities.RESTS)
        or capabilities.played_by("leap", policy, IndexPolicy, *played)
        or capabilities.why_not(policy, capabilities.STEADY)
        or capabilities.why_not(environment, capabilities.ADDRESSED, among=AddressedArms)
        or capabilities.why_not(constraint, capabilities.ADDITIVE)
    )


# --- a lane enters, aims, leaps, leaves ------------------------------------------------------------------------


def enter(carry: Carry, pace: Pace) -> Flight:
    """A lane of the scan engine, its last outcome learnt."""
    m = carry.memory
    learnt = stats.record(m.policy, m.action, m.feedback.reward, m.feedback.cost)
    known = select_tree(m.empty, m.policy, learnt)
    return Flight(known, m.action, m.feedback, m.ledger, m.status, pace)


def leave(carry: Carry, flight: Flight) -> Carry:
    """The lane as ordinary rounds would have left it."""
    m, last = carry.memory, flight.feedback
    mine = jax.lax.iota(jnp.int32, flight.known.pulls.shape[0]) == flight.action
    pending = _outcomes(last.reward, last.cost, flight.known.reward_spread is not None)
    played = m._replace(
        policy=_add(flight.known, jax.tree.map(lambda x: jnp.where(mine, -x, 0), pending)),
        environment=flight.known.pulls,
        ledger=flight.ledger,
        action=flight.action,
        feedback=last,
        empty=jnp.bool_(False),
    )
    moved = flight.ledger.rounds > m.ledger.rounds
    return carry._replace(memory=select_tree(moved, played, m)._replace(status=flight.status))


def aim(environment: AddressedArms, lane: Lane, carry: Carry, flight: Flight) -> tuple[Lead, jax.Array]:
    """The leader and its ceiling; also the arms whose score is +∞, ``bool[K]``."""
    policy, known, ledger = lane.policy, flight.known, flight.ledger
    assert isinstance(policy, IndexPolicy)
    t = ledger.rounds + 1
    view = View(t, lane.constraint.view(ledger), carry.fixed.available)  # type: ignore[arg-type]
    taking = policy.admits(known, view)
    fresh, steady = known.pulls == 0, policy.steady(known, t)
    initial = jnp.any(fresh & taking)  # type: ignore[operator]
    careful = flight.pace.careful | initial | (steady < t)
    until = jnp.where(careful, t, jnp.minimum(t + flight.pace.reach, steady))
    scores = evaluate(policy, stats.as_floats(known, until))
    key = jax.random.wrap_key_data(carry.fixed.policy_key, impl="threefry2x32")
    choice = largest(scores, key, view._replace(available=taking), fresh=fresh)
    others = taking & (jax.lax.iota(jnp.int32, scores.shape[0]) != choice)  # type: ignore[operator]
    ceiling = jnp.max(jnp.where(others, scores, -jnp.inf))
    arm = jnp.minimum(choice, scores.shape[0] - 1)
    mean_reward, mean_cost = at_instance(environment, lane.row).means(arm)
    one = jax.tree.map(lambda x: x[arm][None], known)

    # As in the scan engine: NaN among the scores or an arm that is none, unless the policy knows of other trouble.
    trouble, playable = policy.trouble(known), (arm == choice) & (mean_cost >= 0)
    trouble = jnp.where(playable | (trouble != Status.RUNNING), trouble, jnp.int32(Status.INVALID))
    runs = may_play(lane, carry, ledger, flight.status)
    status = jnp.where(runs & careful, trouble, flight.status)
    alive = runs & (status == Status.RUNNING) & (careful | (playable & (ceiling < jnp.inf)))
    tied = runs & (status == Status.RUNNING) & ~initial & (ceiling == jnp.inf)
    lead = Lead(arm, ceiling, until, careful, status, tied, mean_reward, mean_cost, alive, one, flight.feedback, ledger)
    return lead, taking & (scores == jnp.inf)  # type: ignore[operator]


def block(environment: AddressedArms, length: int, lane: Lane, carry: Carry, lead: Lead) -> Lead:
    """Accept as many of the leader's next pulls as are certainly right."""
    policy, ledger, known = lane.policy, lead.ledger, lead.known
    assert isinstance(policy, IndexPolicy)
    world = at_instance(environment, lane.row)
    key = jax.random.wrap_key_data(carry.fixed.world_key, impl="threefry2x32")
    steps = jax.lax.iota(jnp.int32, length)

    # What the pulls bring, and prefix sums of it. Without the barrier XLA draws everything anew for every sum.
    drawn = jax.vmap(world.outcome, in_axes=(None, None, 0))(key, lead.arm, known.pulls + steps)
    reward, cost = jax.lax.optimization_barrier(drawn)
    outcomes = _outcomes(reward, cost, policy.spreads)
    sums = jax.tree.map(lambda x: jnp.cumsum(x, dtype=jnp.int32), outcomes)

    before = _add(known, jax.tree.map(jnp.subtract, sums, outcomes))
    rounds = ledger.rounds + 1 + steps
    scores = evaluate(policy, stats.as_floats(before, rounds))
    sure = clears(policy, scores, lead.ceiling)

    expected = Feedback(sums.pulls * lead.mean_reward, sums.pulls * lead.mean_cost)
    lead, accepted = _accept(lane, carry, lead, Feedback(reward, cost), sums, expected, sure)
    gained = jax.tree.map(lambda x: jnp.where(accepted > 0, x[accepted - 1], 0)[None], sums)
    return lead._replace(known=_add(known, gained))


def _accept(
    lane: Lane, carry: Carry, lead: Lead, drawn: Feedback, sums: Statistics, expected: Feedback, sure: jax.Array
) -> tuple[Lead, jax.Array]:
    """Book the longest prefix of pulls that are sure and reach neither end nor mark; arrays ``[h]``, sums inclusive."""
    ledger, length = lead.ledger, sure.size
    steps = jax.lax.iota(jnp.int32, length)
    brought = Outcome(*sums[1:3], *expected, events={}, valid=jnp.bool_(True))  # type: ignore[arg-type]
    after = book_many(ledger, brought, 1 + steps)
    inside = ~ticks.reached(lane.constraint.clock(after), carry.goal) & (after.rounds < lane.cap)
    sure = jnp.where(lead.careful, steps == 0, sure & inside & (after.rounds <= lead.until))
    accepted = jnp.where(lead.alive, jnp.min(jnp.where(sure, length, steps)), 0)
    some, last = accepted > 0, jnp.maximum(accepted - 1, 0)
    gained = jax.tree.map(lambda x: jnp.where(some, x[last], 0), brought._replace(valid=None))  # type: ignore[arg-type]
    ledger = book_many(ledger, gained, accepted)
    feedback = select_tree(some, Feedback(drawn.reward[last], drawn.cost[last]), lead.feedback)
    return lead._replace(alive=lead.alive & (accepted == length), feedback=feedback, ledger=ledger), accepted


def stopped_short(lead: Lead) -> jax.Array:
    """Was the ceiling's last round what stopped the lead?"""
    return ~lead.careful & (lead.ledger.rounds >= lead.until)


def land(lane: Lane, flight: Flight, lead: Lead) -> Flight:
    """The lane after its blocks."""
    accepted = lead.ledger.rounds - flight.ledger.rounds
    mine = (jax.lax.iota(jnp.int32, flight.known.pulls.shape[0]) == lead.arm) & (accepted > 0)
    known = jax.tree.map(lambda one, all: jnp.where(mine, one, all), lead.known, flight.known)
    reach = flight.pace.reach
    further = jnp.minimum(2 * reach, _FURTHEST)
    reach = jnp.where(lead.careful, reach, jnp.where(accepted == 0, jnp.maximum(reach >> 2, 1), reach))
    reach = jnp.where(lead.alive | stopped_short(lead), further, reach)
    pace = Pace((accepted == 0) | (lead.careful & (lead.ceiling == jnp.inf)), reach)
    return _landed(lane, flight, lead, known, pace)


def _landed(lane: Lane, flight: Flight, lead: Lead, known: Statistics, pace: Pace) -> Flight:
    # A careful pull may be the last one: the constraint itself books it.
    moved = lead.ledger.rounds > flight.ledger.rounds
    reward, cost = lead.feedback
    outcome = Outcome(reward, cost, lead.mean_reward, lead.mean_cost, events={}, valid=jnp.bool_(True))
    booked = book(lane.constraint, flight.ledger, outcome)
    played = lead.careful & moved
    ledger = select_tree(played, booked, lead.ledger)
    status = jnp.where(played, status_after(lane, ledger), lead.status)
    return Flight(known, jnp.where(moved, lead.arm, flight.action), lead.feedback, ledger, status, pace)


def draw_lots(
    environment: AddressedArms, lane: Lane, carry: Carry, flight: Flight, lead: Lead, tied: jax.Array
) -> Flight:
    """Rounds in which one of several arms whose score is +∞ is drawn by lot; also careful pulls.

    ``tied`` holds the arms whose score is +∞ at the last of these rounds. One that is drawn may not have come so far
    yet, or may have left since it was pulled in this very block: its own exact score tells, and ends the block. Where
    the arm drawn is in order, it would have been drawn without the others too: the first of many is the first of fewer.
    """
    policy, ledger, pace = lane.policy, flight.ledger, flight.pace
    assert isinstance(policy, IndexPolicy)
    world = at_instance(environment, lane.row)
    both = carry.fixed.policy_key, carry.fixed.world_key
    policy_key, world_key = (jax.random.wrap_key_data(x, impl="threefry2x32") for x in both)
    lead = lead._replace(alive=jnp.where(lead.careful, lead.alive, lead.tied))
    steps = jax.lax.iota(jnp.int32, LOTS)
    rounds = ledger.rounds + 1 + steps
    arms, certain = lots(tied, policy_key, rounds)
    arms = jnp.where(lead.careful, lead.arm, jnp.minimum(arms, tied.size - 1))
    again = (arms[:, None] == arms[None, :]) & (steps[:, None] < steps[None, :])  # [earlier, later]

    def so_far(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(again, x[:, None], 0), axis=0, dtype=jnp.int32)

    base = jax.tree.map(lambda x: x.at[arms].get(mode="promise_in_bounds"), flight.known)
    n = base.pulls + so_far(jnp.ones_like(steps))
    drawn = jax.vmap(world.outcome, in_axes=(None, 0, 0))(world_key, arms, n), jax.vmap(world.means)(arms)
    (reward, cost), means = jax.lax.optimization_barrier(drawn)
    outcomes = _outcomes(reward, cost, policy.spreads)
    before = _add(base, jax.tree.map(so_far, outcomes))
    sure = evaluate(policy, stats.as_floats(before, rounds)) == jnp.inf
    sums, expected = jax.tree.map(lambda x: jnp.cumsum(x, dtype=jnp.int32), (outcomes, Feedback(*means)))
    lead, accepted = _accept(lane, carry, lead, Feedback(reward, cost), sums, expected, sure & certain)

    def by_arm(x: jax.Array) -> jax.Array:
        x = jnp.where(steps < accepted, x, 0)
        return jnp.zeros(tied.shape, jnp.int32).at[arms].add(x, mode="promise_in_bounds")

    known = _add(flight.known, jax.tree.map(by_arm, outcomes))
    shorter = jnp.maximum(jnp.minimum(pace.reach, LOTS) >> 1, 1)
    reach = jnp.where(lead.alive | stopped_short(lead), jnp.minimum(2 * pace.reach, LOTS), shorter)
    plays = lead.tied | lead.careful
    pace = Pace(jnp.where(plays, accepted == 0, pace.careful), jnp.where(plays & ~lead.careful, reach, pace.reach))
    arm = jnp.where(accepted > 0, arms[accepted - 1], lead.arm)
    return _landed(lane, flight, lead._replace(arm=arm), known, pace)


def _outcomes(reward: jax.Array, cost: jax.Array, spreads: bool) -> Statistics:
    """What each pull adds to its arm's statistics, in ticks."""
    squares = (ticks.spread(reward), ticks.spread(cost)) if spreads else (None, None)
    return Statistics(jnp.ones_like(reward), reward, cost, *squares)  # type: ignore[arg-type]


def _add(known: Statistics, more: Statistics) -> Statistics:
    """Statistics and ticks, of shapes that broadcast, added."""

    def put(total: Total | None, x: Any) -> Total | None:
        return None if total is None else ticks.add(total, x)

    pulls = known.pulls + more.pulls
    return Statistics(pulls, *(put(a, b) for a, b in zip(known[1:], more[1:], strict=True)))  # type: ignore[arg-type]


# --- many lanes -------------------------------------------------------------------------------------------------


class Gauge(NamedTuple):
    """What the engine knows of the slots' pace."""

    mean_lead: jax.Array  # f32[]: mean number of pulls of a leader
    pace: Pace  # [slot]


def gauge(slots: int) -> Gauge:
    """Before anything was seen: leads are short at the start of a run."""
    return Gauge(jnp.float32(1.0), Pace(jnp.ones(slots, bool), jnp.full(slots, LENGTHS[-1], jnp.int32)))


def chunk(environment: Environment, lanes: Lane, carry: Carry, gauge: Gauge, rounds: jax.Array) -> tuple[Carry, Gauge]:
    """Some macro-steps of all lanes, ``[slot]``, with the length of block that promises most."""
    assert isinstance(environment, AddressedArms)
    flights = jax.vmap(enter)(carry, gauge.pace)
    choice = _best_length(gauge.mean_lead, environment.spec.arms)

    def by_lead(flights: Flight, aimed: Lead) -> tuple[Flight, jax.Array, jax.Array]:
        done = jax.lax.switch(
            choice, [partial(_blocks, environment, length, lanes, carry) for length in LENGTHS], aimed
        )
        gained = jnp.sum((done.ledger.rounds - aimed.ledger.rounds).astype(jnp.float32))
        ended = _count(aimed.alive & ~done.alive & ~jax.vmap(stopped_short)(done))
        return jax.vmap(land)(lanes, flights, done), gained, ended

    def by_lot(flights: Flight, aimed: Lead, tied: jax.Array) -> tuple[Flight, jax.Array, jax.Array]:
        return jax.vmap(partial(draw_lots, environment))(lanes, carry, flights, aimed, tied), zero, zero

    def as_most_want(flights: Flight, aimed: Lead, tied: jax.Array) -> tuple[Flight, jax.Array, jax.Array]:
        most_tied = 2 * _count(aimed.tied) > _count(aimed.tied | aimed.alive)
        return jax.lax.cond(most_tied, by_lot, lambda now, aimed, _: by_lead(now, aimed), flights, aimed, tied)

    def macro(_: jax.Array, state: tuple[Flight, jax.Array, jax.Array]) -> tuple[Flight, jax.Array, jax.Array]:
        flights, gained, ended = state
        aimed, tied = jax.vmap(partial(aim, environment))(lanes, carry, flights)
        few = environment.spec.arms <= _FEW
        flights, more_gained, more_ended = by_lead(flights, aimed) if few else as_most_want(flights, aimed, tied)
        return flights, gained + more_gained, ended + more_ended

    zero = jnp.float32(0)
    flights, gained, ended = jax.lax.fori_loop(jnp.int32(0), jnp.int32(_STEPS), macro, (flights, zero, zero))
    mean = 0.75 * gauge.mean_lead + 0.25 * gained / (ended + 1)
    return jax.vmap(leave)(carry, flights), Gauge(mean, flights.pace)


def _blocks(environment: AddressedArms, length: int, lanes: Lane, carry: Carry, leads: Lead) -> Lead:
    """A block; of the longest kind further ones under the same ceiling, as long as few lanes have stopped.

    The more arms, the dearer is a new ceiling, and the more blocks are worth their idle lanes.
    """
    most = 1 if length < LENGTHS[-1] else _most_blocks(environment.spec.arms)
    play = jax.vmap(partial(block, environment, length))
    if most == 1:
        return play(lanes, carry, leads)
    first = _count(leads.alive)

    def more(state: tuple[jax.Array, Lead]) -> jax.Array:
        done, now = state
        return (done < most) & (2 * _count(now.alive) >= first)

    def one(state: tuple[jax.Array, Lead]) -> tuple[jax.Array, Lead]:
        done, now = state
        return done + 1, play(lanes, carry, now)

    return jax.lax.while_loop(more, one, (jnp.int32(0), leads))[1]


def _most_blocks(arms: int) -> int:
    return 1 + arms // 24


def _count(flags: jax.Array) -> jax.Array:
    return jnp.sum(flags.astype(jnp.float32))


def _best_length(mean_lead: jax.Array, arms: int) -> jax.Array:
    """Which of LENGTHS gains the most rounds per predicted nanosecond, for geometric leads of that mean.

    The costs are those of one lane on one CPU core. They steer speed only.
    """
    aimed, begun, pull = 30 + 2.5 * arms, 30.0, 6.5
    speeds = []
    for length in LENGTHS:
        gained = mean_lead * -jnp.expm1(length * jnp.log1p(-1 / (mean_lead + 1)))
        speeds.append(gained / (aimed + begun + length * pull))
    return jnp.argmax(jnp.stack(speeds)).astype(jnp.int32)
