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
4. *ties*: where the ceiling is +∞, there is no leader, but a tie that each round breaks at random. Who is drawn in the
   coming rounds is known beforehand, so a block of such rounds is played at once, up to an arm that is drawn when its
   score is not +∞ (any more, or yet). A macro-step is one of leads or of ties, as most lanes want.

How far to aim, d, and how long the blocks are, h, are guesses at speed and change no bit. d belongs to a lane: it grows
while blocks are accepted whole and shrinks when none was. h belongs to the batch: the mean length of a lead is
estimated from what was accepted, and the most predicted rounds per second win.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._engine import limits
from jaxbandits._engine.leads import Flight, Lead, Pace, aim, block, enter, land, leave, stopped_short
from jaxbandits._engine.scan import Carry, Lane
from jaxbandits._engine.ties import play_ties
from jaxbandits.core import capabilities
from jaxbandits.core.protocol import Constraint, Environment, Policy
from jaxbandits.core.pytrees import walk
from jaxbandits.environments.finite.arms import AddressedArms
from jaxbandits.policies.base.index import IndexPolicy

PLAYS = IndexPolicy
CPU_SLOTS = 128  # lanes in flight per core: measured, 32 to 256; twice as many at 10⁴ lanes cost 2 %, half as many 8 %
LENGTHS = (2, 16, 64)  # pulls in a block; 64 outcomes are the most whose sum fits an int32
SHORT = 5e7  # rounds × arms: half a second for scan, whose program compiles in 1 s, this one in 3 (K = 10; two cores)
_FEW = 64  # so few arms do not tie at +∞ for long enough to be worth compiling that
_STEPS = 8  # macro-steps between two looks at the marks


def is_short(environment: Environment, rounds: float) -> bool:
    """Are so many rounds, of all lanes together, played round by round before this engine has compiled?"""
    return rounds * environment.spec.arms < SHORT


def why_not(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Why these cannot leap, or None if they can."""
    played = "init", "blank_action", "update", "select", "step"
    return (
        capabilities.why_not(policy, capabilities.RESTS)
        or capabilities.played_by("leap", policy, IndexPolicy, *played)
        or capabilities.why_not(policy, capabilities.STEADY)
        or capabilities.why_not(environment, capabilities.ADDRESSED, among=AddressedArms)
        or capabilities.why_not(constraint, capabilities.ADDITIVE)
        or limits.ends_before_its_clock(constraint)
        or _per_arm(policy)
        or limits.beyond_a_unit(environment, jax.ShapeDtypeStruct((), jnp.int32))
    )


def _per_arm(policy: Policy) -> str | None:
    """Why a policy with values for each arm cannot leap: a block is of one arm, at many rounds."""
    name = next((leaf.name for leaf in walk(policy) if leaf.metadata.get("core")), None)
    return None if name is None else f"{name} has a value for each arm"


# --- many lanes -------------------------------------------------------------------------------------------------


class TunerState(NamedTuple):
    """What the engine knows of the slots' pace."""

    mean_lead: jax.Array  # f32[]: mean number of pulls of a leader
    pace: Pace  # [slot]


def tuner(slots: int) -> TunerState:
    """Before anything was seen: leads are short at the start of a run."""
    return TunerState(jnp.float32(1.0), Pace(jnp.ones(slots, bool), jnp.full(slots, LENGTHS[-1], jnp.int32)))


def chunk(
    environment: Environment, lanes: Lane, carry: Carry, tuner: TunerState, rounds: jax.Array
) -> tuple[Carry, TunerState]:
    """Some macro-steps of all lanes, ``[slot]``, with the length of block that promises most."""
    assert isinstance(environment, AddressedArms)
    flights = jax.vmap(enter)(carry, tuner.pace)
    choice = _best_length(tuner.mean_lead, environment.spec.arms)

    def by_lead(flights: Flight, aimed: Lead) -> tuple[Flight, jax.Array, jax.Array]:
        done = jax.lax.switch(
            choice, [partial(_blocks, environment, length, lanes, carry) for length in LENGTHS], aimed
        )
        gained = jnp.sum((done.ledger.rounds - aimed.ledger.rounds).astype(jnp.float32))
        ended = _count(aimed.alive & ~done.alive & ~jax.vmap(stopped_short)(done))
        return jax.vmap(land)(lanes, flights, done), gained, ended

    def by_tie(flights: Flight, aimed: Lead, tied: jax.Array) -> tuple[Flight, jax.Array, jax.Array]:
        return jax.vmap(partial(play_ties, environment))(lanes, carry, flights, aimed, tied), zero, zero

    def as_most_want(flights: Flight, aimed: Lead, tied: jax.Array) -> tuple[Flight, jax.Array, jax.Array]:
        most_tied = 2 * _count(aimed.tied) > _count(aimed.tied | aimed.alive)
        return jax.lax.cond(most_tied, by_tie, lambda now, aimed, _: by_lead(now, aimed), flights, aimed, tied)

    def macro(_: jax.Array, state: tuple[Flight, jax.Array, jax.Array]) -> tuple[Flight, jax.Array, jax.Array]:
        flights, gained, ended = state
        aimed, tied = jax.vmap(partial(aim, environment))(lanes, carry, flights)
        few = environment.spec.arms <= _FEW
        flights, more_gained, more_ended = by_lead(flights, aimed) if few else as_most_want(flights, aimed, tied)
        return flights, gained + more_gained, ended + more_ended

    zero = jnp.float32(0)
    flights, gained, ended = jax.lax.fori_loop(jnp.int32(0), jnp.int32(_STEPS), macro, (flights, zero, zero))
    mean = 0.75 * tuner.mean_lead + 0.25 * gained / (ended + 1)
    return jax.vmap(leave)(carry, flights), TunerState(mean, flights.pace)


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
