"""Many rounds in which several scores are +∞, each decided by that round's hash."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxbandits._engine.leads import Flight, Lead, Pace, accept, added, landed, outcomes_of, stopped_short
from jaxbandits._engine.rows import at_instance
from jaxbandits._engine.scan import Carry, Lane
from jaxbandits._numerics.prefix_sums import prefix_sums
from jaxbandits.core.protocol import Feedback
from jaxbandits.environments.finite.arms import AddressedArms
from jaxbandits.policies.base.index import IndexPolicy, evaluate_totals
from jaxbandits.policies.base.ties import tie_winners

TIE_ROUNDS = 16  # rounds in a block of ties


def play_ties(
    environment: AddressedArms, lane: Lane, carry: Carry, flight: Flight, lead: Lead, tied: jax.Array
) -> Flight:
    """Rounds in which one of several arms whose score is +∞ is drawn at random; also careful pulls.

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
    steps = jax.lax.iota(jnp.int32, TIE_ROUNDS)
    rounds = ledger.rounds + 1 + steps
    arms, certain = tie_winners(tied, policy_key, rounds)
    arms = jnp.where(lead.careful, lead.arm, jnp.minimum(arms, tied.size - 1))
    again = (arms[:, None] == arms[None, :]) & (steps[:, None] < steps[None, :])  # [earlier, later]

    def so_far(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(again, x[:, None], 0), axis=0, dtype=jnp.int32)

    base = jax.tree.map(lambda x: x.at[arms].get(mode="promise_in_bounds"), flight.known)
    n = base.pulls + so_far(jnp.ones_like(steps))
    drawn = jax.vmap(world.outcome, in_axes=(None, 0, 0))(world_key, arms, n), jax.vmap(world.means)(arms)
    (reward, cost), means = jax.lax.optimization_barrier(drawn)
    outcomes = outcomes_of(reward, cost, policy.spreads)
    before = added(base, jax.tree.map(so_far, outcomes))
    sure = evaluate_totals(policy, before, rounds) == jnp.inf
    sums, expected = jax.tree.map(prefix_sums, (outcomes, Feedback(*means)))
    lead, accepted = accept(lane, carry, lead, Feedback(reward, cost), sums, expected, sure & certain)

    def by_arm(x: jax.Array) -> jax.Array:
        x = jnp.where(steps < accepted, x, 0)
        return jnp.zeros(tied.shape, jnp.int32).at[arms].add(x, mode="promise_in_bounds")

    known = added(flight.known, jax.tree.map(by_arm, outcomes))
    shorter = jnp.maximum(jnp.minimum(pace.reach, TIE_ROUNDS) >> 1, 1)
    reach = jnp.where(lead.alive | stopped_short(lead), jnp.minimum(2 * pace.reach, TIE_ROUNDS), shorter)
    plays = lead.tied | lead.careful
    pace = Pace(jnp.where(plays, accepted == 0, pace.careful), jnp.where(plays & ~lead.careful, reach, pace.reach))
    arm = jnp.where(accepted > 0, arms[accepted - 1], lead.arm)
    return landed(lane, flight, lead._replace(arm=arm), known, pace)
