"""A lane that leaps: a leader, what it must beat, and the longest prefix of its pulls that is certain."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._engine.booking import book, book_many
from jaxbandits._engine.rows import at_instance
from jaxbandits._engine.scan import Carry, Lane, may_play, status_after, verdict_of
from jaxbandits._numerics.prefix_sums import prefix_sums
from jaxbandits.core import arm_statistics, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.ledger import Ledger, Outcome
from jaxbandits.core.protocol import Feedback, Status, View
from jaxbandits.core.pytrees import select_tree
from jaxbandits.core.ticks import Total
from jaxbandits.environments.finite.arms import AddressedArms
from jaxbandits.policies.base.index import IndexPolicy, beyond, clears, evaluate_totals
from jaxbandits.policies.base.ties import largest

_FURTHEST = 1024  # most rounds to aim ahead


class Pace(NamedTuple):
    """How a lane goes on: guesses that steer speed only."""

    careful: jax.Array  # bool[]: the next macro-step is an ordinary round
    reach: jax.Array  # i32[]: rounds to aim ahead


class Flight(NamedTuple):
    """A lane while it leaps."""

    known: ArmStatistics  # [K]: what the policy knows once it has learnt the last outcome
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
    known: ArmStatistics  # [1]: the leader's statistics
    feedback: Feedback
    ledger: Ledger


def enter(carry: Carry, pace: Pace) -> Flight:
    """A lane of the scan engine, its last outcome learnt."""
    now = carry.state
    learnt = arm_statistics.record(now.policy, now.action, now.feedback.reward, now.feedback.cost)
    known = select_tree(now.empty, now.policy, learnt)
    return Flight(known, now.action, now.feedback, now.ledger, now.status, pace)


def leave(carry: Carry, flight: Flight) -> Carry:
    """The lane as ordinary rounds would have left it."""
    before, last = carry.state, flight.feedback
    mine = jax.lax.iota(jnp.int32, flight.known.pulls.shape[0]) == flight.action
    pending = outcomes_of(last.reward, last.cost, flight.known.reward_spread is not None)
    played = before._replace(
        policy=added(flight.known, jax.tree.map(lambda x: jnp.where(mine, -x, 0), pending)),
        environment=flight.known.pulls,
        ledger=flight.ledger,
        action=flight.action,
        feedback=last,
        empty=jnp.bool_(False),
    )
    moved = flight.ledger.rounds > before.ledger.rounds
    return carry._replace(state=select_tree(moved, played, before)._replace(status=flight.status))


def aim(environment: AddressedArms, lane: Lane, carry: Carry, flight: Flight) -> tuple[Lead, jax.Array]:
    """The leader and its ceiling; also the arms whose score is +∞, ``bool[K]``."""
    policy, known, ledger = lane.policy, flight.known, flight.ledger
    assert isinstance(policy, IndexPolicy)
    t = ledger.rounds + 1
    view = View(t, lane.constraint.view(ledger), carry.fixed.available)  # type: ignore[arg-type]
    taking = policy.admits(known, view) & view.available
    fresh, steady = known.pulls == 0, policy.steady(known, t)
    initial = jnp.any(fresh & taking)  # type: ignore[operator]
    careful = flight.pace.careful | initial | (steady < t)
    until = jnp.where(careful, t, jnp.minimum(t + flight.pace.reach, steady))
    scores = evaluate_totals(policy, known, jnp.where(careful, t, beyond(until)))
    key = jax.random.wrap_key_data(carry.fixed.policy_key, impl="threefry2x32")
    choice = largest(scores, key, view._replace(available=taking), fresh=fresh)
    others = taking & (jax.lax.iota(jnp.int32, scores.shape[0]) != choice)  # type: ignore[operator]
    ceiling = jnp.max(jnp.where(others, scores, -jnp.inf))
    arm = jnp.minimum(choice, scores.shape[0] - 1)
    mean_reward, mean_cost = at_instance(environment, lane.row).means(arm)
    one = jax.tree.map(lambda x: x[arm][None], known)

    # As in the scan engine: NaN among the scores or an arm that is none, unless the policy has a status of its own.
    verdict, playable = verdict_of(policy, known), (arm == choice) & (mean_cost >= 0)
    verdict = jnp.where(playable | (verdict != Status.RUNNING), verdict, jnp.int32(Status.INVALID))
    runs = may_play(lane, carry, ledger, flight.status)
    status = jnp.where(runs & careful, verdict, flight.status)
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
    outcomes = outcomes_of(reward, cost, policy.spreads)
    sums = jax.tree.map(prefix_sums, outcomes)._replace(pulls=1 + steps)

    before = added(known, jax.tree.map(jnp.subtract, sums, outcomes))
    rounds = ledger.rounds + 1 + steps
    scores = evaluate_totals(policy, before, rounds)
    sure = clears(policy, scores, lead.ceiling)

    expected = Feedback(sums.pulls * lead.mean_reward, sums.pulls * lead.mean_cost)
    lead, accepted = accept(lane, carry, lead, Feedback(reward, cost), sums, expected, sure)
    gained = jax.tree.map(lambda x: jnp.where(accepted > 0, x[accepted - 1], 0)[None], sums)
    return lead._replace(known=added(known, gained))


def accept(
    lane: Lane, carry: Carry, lead: Lead, drawn: Feedback, sums: ArmStatistics, expected: Feedback, sure: jax.Array
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
    return landed(lane, flight, lead, known, pace)


def landed(lane: Lane, flight: Flight, lead: Lead, known: ArmStatistics, pace: Pace) -> Flight:
    # A careful pull may be the last one: the constraint itself books it.
    moved = lead.ledger.rounds > flight.ledger.rounds
    reward, cost = lead.feedback
    outcome = Outcome(reward, cost, lead.mean_reward, lead.mean_cost, events={}, valid=jnp.bool_(True))
    booked = book(lane.constraint, flight.ledger, outcome)
    played = lead.careful & moved
    ledger = select_tree(played, booked, lead.ledger)
    status = jnp.where(played, status_after(lane, ledger), lead.status)
    return Flight(known, jnp.where(moved, lead.arm, flight.action), lead.feedback, ledger, status, pace)


def outcomes_of(reward: jax.Array, cost: jax.Array, spreads: bool) -> ArmStatistics:
    """What each pull adds to its arm's statistics, in ticks."""
    squares = (ticks.spread(reward), ticks.spread(cost)) if spreads else (None, None)
    return ArmStatistics(jnp.ones_like(reward), reward, cost, *squares)  # type: ignore[arg-type]


def added(known: ArmStatistics, more: ArmStatistics) -> ArmStatistics:
    """Statistics and ticks, of shapes that broadcast, added."""

    def put(total: Total | None, x: Any) -> Total | None:
        return None if total is None else ticks.add(total, x)

    pulls = known.pulls + more.pulls
    return ArmStatistics(pulls, *(put(a, b) for a, b in zip(known[1:], more[1:], strict=True)))  # type: ignore[arg-type]
