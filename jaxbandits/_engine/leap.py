"""The leap engine: many pulls of one leader at once, with the same bits as the scan engine.

An index policy that *rests* (see :class:`~jaxbandits.policies.IndexPolicy`) changes the score of
the arm just pulled, and the others' only upwards and slowly. So while the leader's own score stays
above a ceiling on all others, it is pulled again, and nothing needs K scores a round. One
macro-step of a lane that is about to decide round t:

1. *aim*: all scores once, at a later round t + d. The largest names the leader; the largest of the
   others is the ceiling, which bounds their scores at all rounds until then.
2. *block*: the leader's next h outcomes are known by address; prefix sums give its totals after 1 …
   h pulls, exactly. The longest prefix is accepted in which its score exceeds the ceiling (with a
   margin for rounding) and the clock reaches neither its end nor the next mark. As long as blocks
   are accepted whole, the ceiling serves the next one.
3. *single step*: if nothing was accepted (a tie, a leader who leads at t + d but not yet at t, a
   pull that ends the lane or passes a mark), the next macro-step has d = 0, breaks ties at random,
   and accepts its first pull untested: an ordinary round, in the same program.
4. *ties*: where the ceiling is +∞ there is no leader, but a tie that each round breaks at random.
   The arms drawn in the coming rounds are known beforehand, so a block of such rounds is simulated
   at once, up to an arm that is drawn when its score is not +∞ (any more, or yet). A macro-step is
   one of leads or of ties, as most lanes want.

How far to aim, d, and how long the blocks are, h, are guesses at speed and change no bit. d belongs
to a lane: it grows while blocks are accepted whole and shrinks when none was. h belongs to the
batch: the mean length of a lead is estimated from what was accepted, and the most predicted rounds
per second win.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._engine import limits
from jaxbandits._engine.scan import (
    Carry,
    Lane,
    at_instance,
    book,
    book_many,
    may_play,
    passes,
    status_after,
    verdict_of,
    view_of,
    wait,
)
from jaxbandits._numerics.arrays import prefix_sums, reduced
from jaxbandits.core import arm_statistics, capabilities, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import (
    Constraint,
    Environment,
    Feedback,
    Ledger,
    Outcome,
    Policy,
    Status,
    View,
)
from jaxbandits.core.pytrees import select_tree, walk
from jaxbandits.core.streams import typed
from jaxbandits.core.ticks import Total
from jaxbandits.environments.finite import AddressedArms
from jaxbandits.policies.base import (
    IndexPolicy,
    evaluate_totals,
    largest,
    safe_round,
    surely_exceeds,
    tie_winners,
)

PLAYS = IndexPolicy
# As in ``scan``; with more lanes the wide program is a tenth faster
CPU_SLOTS, NATIVE_LANES = (32, 128), 512
LENGTHS = (2, 16, 64)  # pulls in a block; 64 outcomes are the most whose sum fits an int32
TIE_ROUNDS = 16  # rounds in a block of ties
_MANY_ARMS = 512  # with more, a block's pulls are scattered, which has no native form but is faster
SHORT = 5e7  # rounds × arms: half a second for scan, whose program compiles in 1 s, this one in 3 (K = 10; two cores)
_FEW = 64  # so few arms do not tie at +∞ for long enough to be worth compiling that
_FURTHEST = 1024  # most rounds to aim ahead
_STEPS = 8  # macro-steps between two looks at the marks


def is_short(environment: Environment, rounds: float) -> bool:
    """Whether ``scan`` simulates so many rounds of all lanes before this engine has compiled."""
    return rounds * environment.spec.arms < SHORT


def why_not(policy: Policy, environment: Environment, constraint: Constraint) -> str | None:
    """Why these cannot run in the leap engine, or None if they can."""
    methods = "blank_action", "update", "select", "step"
    return (
        capabilities.why_not(policy, capabilities.RESTS)
        or capabilities.played_by("leap", policy, IndexPolicy, *methods)
        or capabilities.why_not(policy, capabilities.STEADY)
        or capabilities.why_not(environment, capabilities.ADDRESSED, among=AddressedArms)
        or capabilities.why_not(constraint, capabilities.ADDITIVE)
        or limits.ends_before_its_clock(constraint)
        # A block is of one arm at many rounds: there is no place for a value of each arm.
        or _value_for_each_arm(policy)
        or limits.beyond_a_unit(environment, jax.ShapeDtypeStruct((), jnp.int32))
        or (
            None
            if environment.spec.context is None
            else f"{type(environment).__name__} has contexts"
        )
    )


def _value_for_each_arm(policy: Policy) -> str | None:
    """Which leaf that a score reads has a value for each arm, if one has."""
    assert isinstance(policy, IndexPolicy)
    scoring = jax.eval_shape(lambda policy: policy.scoring(), policy)  # the leaves may be shapes
    of_arms = (leaf.name for leaf in walk(scoring) if leaf.metadata.get("core"))
    return next((f"{name} has a value for each arm" for name in of_arms), None)


# --- the state of a lane that leaps


class LeapPace(NamedTuple):
    """Guesses about a lane's pace, which affect speed only."""

    single: jax.Array  # bool[]: the next macro-step is a single step
    reach: jax.Array  # i32[]: rounds to aim ahead


class LeapState(NamedTuple):
    """A lane during a leap."""

    statistics: ArmStatistics  # [K]: of the policy, the last outcome included
    action: jax.Array  # i32[]: the last one
    feedback: Feedback  # the last outcome, which counts as not yet learnt when the lane leaves
    ledger: Ledger
    status: jax.Array  # i32[]
    pace: LeapPace


class Leader(NamedTuple):
    """A leader and what it must exceed: scalars, so a block costs the same for any K."""

    arm: jax.Array  # i32[]
    ceiling: jax.Array  # f32[]: no other arm's score exceeds it …
    until: jax.Array  # i32[]: … up to this round
    single: jax.Array  # bool[]: accept the first pull untested, and no other
    status: jax.Array  # i32[]: other than RUNNING: the round cannot be simulated
    tied: jax.Array  # bool[]: several scores are +∞
    mean_reward: jax.Array  # i32[]: ticks
    mean_cost: jax.Array  # i32[]
    alive: jax.Array  # bool[]: every pull tried so far was accepted
    statistics: ArmStatistics  # [1]: the leader's statistics
    feedback: Feedback  # the last accepted outcome
    ledger: Ledger  # after the accepted pulls


def enter(carry: Carry, pace: LeapPace) -> LeapState:
    """A lane of the scan engine, its last outcome learnt."""
    now = carry.state
    learnt = arm_statistics.record(now.policy, now.action, now.feedback.reward, now.feedback.cost)
    statistics = select_tree(now.empty, now.policy, learnt)
    return LeapState(statistics, now.action, now.feedback, now.ledger, now.status, pace)


def leave(passing: bool, lane: Lane, carry: Carry, now: LeapState) -> Carry:
    """The lane as ordinary rounds would have left it: the last outcome seen, and not yet learnt.

    With ``passing`` rounds may have passed without any pull.
    """
    before, last = carry.state, now.feedback
    is_last_arm = jax.lax.iota(jnp.int32, now.statistics.pulls.shape[0]) == now.action
    # An ordinary round learns an outcome at the start of the next one, so the last is taken out.
    pending = outcomes_of(last.reward, last.cost, now.statistics.reward_spread is not None)
    successor = before._replace(
        policy=added(
            now.statistics, jax.tree.map(lambda x: jnp.where(is_last_arm, -x, 0), pending)
        ),
        environment=in_run(lane, now.statistics.pulls),
        ledger=now.ledger,
        action=now.action,
        feedback=last,
        empty=jnp.bool_(False),
    )
    advanced = now.ledger.rounds > before.ledger.rounds
    if passing:
        advanced = advanced & (~before.empty | jnp.any(now.statistics.pulls != before.policy.pulls))
        before = before._replace(ledger=now.ledger)
    return carry._replace(
        state=select_tree(advanced, successor, before)._replace(status=now.status)
    )


def in_run(lane: Lane, pulls: jax.Array, arm: jax.Array | None = None) -> jax.Array:
    """The counted pulls that belong to this run, for all arms or for ``arm``."""
    earlier = lane.policy.earlier_pulls()  # type: ignore[attr-defined]
    if earlier is None:
        return pulls
    return pulls - (earlier if arm is None else earlier[arm])


# --- a macro-step of a lane


def aim(
    environment: AddressedArms, lane: Lane, carry: Carry, now: LeapState
) -> tuple[Leader, jax.Array]:
    """The leader and its ceiling; also the arms whose score is +∞, ``bool[K]``."""
    assert isinstance(lane.policy, IndexPolicy)
    policy, statistics, ledger = lane.policy.scoring(), now.statistics, now.ledger
    t, world = ledger.rounds + 1, at_instance(environment, lane.row)
    pulls = in_run(lane, statistics.pulls)
    view = view_of(world, lane.constraint, typed(lane.world_key), carry.available, pulls, ledger)
    taking = policy.admits(statistics, view) & view.available
    fresh, steady = statistics.pulls == 0, policy.steady(statistics, t)
    if world.opening(jnp.int32(0), t, t) is not None:
        # Closing leaves the ceiling too high, which is safe; an arm that opens may exceed it.
        steady = jnp.minimum(steady, jnp.maximum(world.opens_next(pulls, t) - 1, t))
    initial = reduced(jax.lax.bitwise_or, fresh & taking, False)  # type: ignore[operator]
    # Initial pulls are no lead, and beyond `steady` other arms may take part.
    single = now.pace.single | initial | (steady < t)
    until = jnp.where(single, t, jnp.minimum(t + now.pace.reach, steady))
    scores = evaluate_totals(policy, statistics, jnp.where(single, t, safe_round(until)))
    key = typed(lane.policy_key)
    choice = largest(scores, key, view._replace(available=taking), fresh=fresh)
    rivals = taking & (jax.lax.iota(jnp.int32, scores.shape[0]) != choice)  # type: ignore[operator]
    ceiling = reduced(jax.lax.max, jnp.where(rivals, scores, -jnp.inf), -jnp.inf)
    arm = jnp.minimum(choice, scores.shape[0] - 1)
    mean_reward, mean_cost = world.means(arm)
    leader_statistics = jax.tree.map(lambda x: x[arm][None], statistics)

    # As in the scan engine: NaN among the scores or an arm that is none, unless the policy has a
    # status of its own.
    verdict, playable = verdict_of(policy, statistics), (arm == choice) & (mean_cost >= 0)
    verdict = jnp.where(playable | (verdict != Status.RUNNING), verdict, jnp.int32(Status.INVALID))
    runs = may_play(lane, carry, ledger, now.status) & ~waits(environment, world, view)
    # A verdict counts at its own round only: scores at a later round may be NaN, today's not.
    status = jnp.where(runs & single, verdict, now.status)
    alive = runs & (status == Status.RUNNING) & (single | (playable & (ceiling < jnp.inf)))
    tied = runs & (status == Status.RUNNING) & ~initial & (ceiling == jnp.inf)
    leader = Leader(
        arm,
        ceiling,
        until,
        single,
        status,
        tied,
        mean_reward,
        mean_cost,
        alive,
        leader_statistics,
        now.feedback,
        ledger,
    )
    return leader, taking & (scores == jnp.inf)  # type: ignore[operator]


def lead_block(
    environment: AddressedArms, length: int, lane: Lane, carry: Carry, leader: Leader
) -> Leader:
    """Accept as many of the leader's next pulls as ``scan`` would certainly make."""
    assert isinstance(lane.policy, IndexPolicy)
    policy, ledger, statistics = lane.policy.scoring(), leader.ledger, leader.statistics
    world = at_instance(environment, lane.row)
    key = typed(lane.world_key)
    steps = jax.lax.iota(jnp.int32, length)

    # The outcomes, and their prefix sums. Without the barrier XLA draws them anew for every sum.
    number = in_run(lane, statistics.pulls, leader.arm) + steps
    feedbacks = jax.vmap(world.outcome, in_axes=(None, None, 0))(key, leader.arm, number)
    reward, cost = jax.lax.optimization_barrier(feedbacks)
    outcomes = outcomes_of(reward, cost, policy.spreads)
    sums = jax.tree.map(prefix_sums, outcomes)._replace(pulls=1 + steps)

    # The score before a pull decides it: inclusive sums less the pull's own outcome.
    before = added(statistics, jax.tree.map(jnp.subtract, sums, outcomes))
    rounds = ledger.rounds + 1 + steps
    scores = evaluate_totals(policy, before, rounds)
    sure = surely_exceeds(policy, scores, leader.ceiling) & open_before(
        world, leader.arm, number, rounds
    )

    expected = Feedback(sums.pulls * leader.mean_reward, sums.pulls * leader.mean_cost)
    leader, accepted = accept(lane, carry, leader, Feedback(reward, cost), sums, expected, sure)
    gained = jax.tree.map(lambda x: jnp.where(accepted > 0, x[accepted - 1], 0)[None], sums)
    return leader._replace(statistics=added(statistics, gained))


def open_before(
    world: AddressedArms, arm: jax.Array, pulls: jax.Array, rounds: jax.Array
) -> jax.Array:
    """Whether the arm (one, or ``[h]``) is open before each of these pulls, ``bool[h]``."""
    if world.opening(jnp.int32(0), rounds[0], rounds[0]) is None:
        return jnp.ones(rounds.shape, bool)
    return jax.vmap(world.opening)(jnp.broadcast_to(arm, rounds.shape), pulls, rounds)  # type: ignore[arg-type,return-value]


def waits(environment: AddressedArms, world: AddressedArms, view: View) -> jax.Array:
    """Whether no arm is open, so that the round passes without a pull."""
    if not passes(environment, world, jnp.zeros((environment.spec.arms,), jnp.int32)):
        return jnp.bool_(False)
    return ~jnp.any(view.available)


def accept(
    lane: Lane,
    carry: Carry,
    leader: Leader,
    feedbacks: Feedback,
    sums: ArmStatistics,
    expected: Feedback,
    sure: jax.Array,
) -> tuple[Leader, jax.Array]:
    """Book the longest certain prefix of pulls ``[h]`` that reaches neither the end nor a mark."""
    ledger, length = leader.ledger, sure.size
    steps = jax.lax.iota(jnp.int32, length)
    brought = Outcome(*sums[1:3], *expected, events={}, valid=jnp.bool_(True))  # type: ignore[arg-type]
    after = book_many(ledger, brought, 1 + steps)
    # The pull that ends the lane or passes a mark is a single step's: the constraint charges it.
    inside = ~ticks.reached(lane.constraint.clock(after), carry.goal) & (after.rounds < lane.cap)
    sure = jnp.where(leader.single, steps == 0, sure & inside & (after.rounds <= leader.until))
    accepted = jnp.where(leader.alive, jnp.min(jnp.where(sure, length, steps)), 0)
    any_accepted, last = accepted > 0, jnp.maximum(accepted - 1, 0)
    amounts = brought._replace(valid=None)  # type: ignore[arg-type]
    gained = jax.tree.map(lambda x: jnp.where(any_accepted, x[last], 0), amounts)
    ledger = book_many(ledger, gained, accepted)
    feedback = select_tree(
        any_accepted, Feedback(feedbacks.reward[last], feedbacks.cost[last]), leader.feedback
    )
    return leader._replace(
        alive=leader.alive & (accepted == length), feedback=feedback, ledger=ledger
    ), accepted


def stopped_short(leader: Leader) -> jax.Array:
    """Whether the lead ended because the ceiling's last round was reached."""
    return ~leader.single & (leader.ledger.rounds >= leader.until)


def land(lane: Lane, before: LeapState, leader: Leader) -> LeapState:
    """The lane after its blocks."""
    accepted = leader.ledger.rounds - before.ledger.rounds
    is_leader = (jax.lax.iota(jnp.int32, before.statistics.pulls.shape[0]) == leader.arm) & (
        accepted > 0
    )
    statistics = jax.tree.map(
        lambda lead, total: jnp.where(is_leader, lead, total), leader.statistics, before.statistics
    )
    # Aim further if the aim alone ended the lead, less far if nothing was accepted under it.
    reach = before.pace.reach
    further = jnp.minimum(2 * reach, _FURTHEST)
    reach = jnp.where(
        leader.single, reach, jnp.where(accepted == 0, jnp.maximum(reach >> 2, 1), reach)
    )
    reach = jnp.where(leader.alive | stopped_short(leader), further, reach)
    # Under a ceiling of +∞ no block accepts anything: such lanes go on by single steps, or by ties.
    pace = LeapPace((accepted == 0) | (leader.single & (leader.ceiling == jnp.inf)), reach)
    return landed(lane, before, leader, statistics, pace)


def landed(
    lane: Lane, before: LeapState, leader: Leader, statistics: ArmStatistics, pace: LeapPace
) -> LeapState:
    """The lane with these statistics; the constraint charges a single step, maybe the last."""
    advanced = leader.ledger.rounds > before.ledger.rounds
    reward, cost = leader.feedback
    outcome = Outcome(
        reward, cost, leader.mean_reward, leader.mean_cost, events={}, valid=jnp.bool_(True)
    )
    booked = book(lane.constraint, before.ledger, outcome)
    is_single_pull = leader.single & advanced
    ledger = select_tree(is_single_pull, booked, leader.ledger)
    status = jnp.where(is_single_pull, status_after(lane, ledger), leader.status)
    return LeapState(
        statistics,
        jnp.where(advanced, leader.arm, before.action),
        leader.feedback,
        ledger,
        status,
        pace,
    )


def let_pass(environment: AddressedArms, lane: Lane, carry: Carry, now: LeapState) -> LeapState:
    """A lane none of whose arms is open, after a round that passed; all others as they are."""
    world = at_instance(environment, lane.row)
    pulls = in_run(lane, now.statistics.pulls)
    view = view_of(
        world, lane.constraint, typed(lane.world_key), carry.available, pulls, now.ledger
    )
    closed = may_play(lane, carry, now.ledger, now.status) & ~jnp.any(view.available)
    none = jnp.int32(0)
    nothing = Outcome(none, none, none, none, events={}, valid=jnp.bool_(True))
    ledger, status = wait(world, lane, pulls, now.ledger, nothing)
    waited = now._replace(ledger=ledger, status=status)
    return select_tree(closed, waited, now)


def play_ties(
    environment: AddressedArms,
    lane: Lane,
    carry: Carry,
    now: LeapState,
    leader: Leader,
    tied: jax.Array,
) -> LeapState:
    """Rounds in which one of several arms whose score is +∞ is drawn at random; also single steps.

    ``tied`` are the arms whose score is +∞ at the last of these rounds. Of one that is drawn it may
    not be +∞ yet, or no longer after a pull in this very block: its own exact score decides, and
    ends the block. Otherwise the arm would have been drawn without the others too: the first of
    many is the first of fewer.
    """
    assert isinstance(lane.policy, IndexPolicy)
    policy, ledger, pace = lane.policy.scoring(), now.ledger, now.pace
    world = at_instance(environment, lane.row)
    policy_key, world_key = typed(lane.policy_key), typed(lane.world_key)
    leader = leader._replace(alive=jnp.where(leader.single, leader.alive, leader.tied))
    steps = jax.lax.iota(jnp.int32, TIE_ROUNDS)
    rounds = ledger.rounds + 1 + steps
    arms, certain = tie_winners(tied, policy_key, rounds)
    arms = jnp.where(leader.single, leader.arm, jnp.minimum(arms, tied.size - 1))
    # [earlier, later]: outcomes of an arm earlier in this block count when it is drawn again.
    repeats = (arms[:, None] == arms[None, :]) & (steps[:, None] < steps[None, :])

    def so_far(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(repeats, x[:, None], 0), axis=0, dtype=jnp.int32)

    base = jax.tree.map(lambda x: x.at[arms].get(mode="promise_in_bounds"), now.statistics)
    n = in_run(lane, base.pulls, arms) + so_far(jnp.ones_like(steps))
    feedbacks = (
        jax.vmap(world.outcome, in_axes=(None, 0, 0))(world_key, arms, n),
        jax.vmap(world.means)(arms),
    )
    (reward, cost), means = jax.lax.optimization_barrier(feedbacks)
    outcomes = outcomes_of(reward, cost, policy.spreads)
    before = added(base, jax.tree.map(so_far, outcomes))
    sure = evaluate_totals(policy, before, rounds) == jnp.inf
    sure = sure & open_before(world, arms, n, rounds)
    sums, expected = jax.tree.map(prefix_sums, (outcomes, Feedback(*means)))
    leader, accepted = accept(
        lane, carry, leader, Feedback(reward, cost), sums, expected, sure & certain
    )

    def by_arm(x: jax.Array) -> jax.Array:
        x = jnp.where(steps < accepted, x, 0)
        if tied.size > _MANY_ARMS:
            return jnp.zeros(tied.shape, jnp.int32).at[arms].add(x, mode="promise_in_bounds")
        is_arm = arms[:, None] == jax.lax.iota(jnp.int32, tied.size)[None, :]
        return jnp.sum(jnp.where(is_arm, x[:, None], 0), axis=0, dtype=jnp.int32)

    statistics = added(now.statistics, jax.tree.map(by_arm, outcomes))
    shorter = jnp.maximum(jnp.minimum(pace.reach, TIE_ROUNDS) >> 1, 1)
    reach = jnp.where(
        leader.alive | stopped_short(leader), jnp.minimum(2 * pace.reach, TIE_ROUNDS), shorter
    )
    # Lanes that neither tie nor step singly wait out this macro-step with their pace as it was.
    plays = leader.tied | leader.single
    pace = LeapPace(
        jnp.where(plays, accepted == 0, pace.single),
        jnp.where(plays & ~leader.single, reach, pace.reach),
    )
    arm = jnp.where(accepted > 0, arms[accepted - 1], leader.arm)
    return landed(lane, now, leader._replace(arm=arm), statistics, pace)


def outcomes_of(reward: jax.Array, cost: jax.Array, spreads: bool) -> ArmStatistics:
    """What each pull adds to its arm's statistics, in ticks."""
    squares = (ticks.spread(reward), ticks.spread(cost)) if spreads else (None, None)
    return ArmStatistics(jnp.ones_like(reward), reward, cost, *squares)  # type: ignore[arg-type]


def added(statistics: ArmStatistics, more: ArmStatistics) -> ArmStatistics:
    """Statistics and ticks, of shapes that broadcast, added."""

    def put(total: Total | None, x: Any) -> Total | None:
        return None if total is None else ticks.add(total, x)

    pulls = statistics.pulls + more.pulls
    return ArmStatistics(pulls, *(put(a, b) for a, b in zip(statistics[1:], more[1:], strict=True)))  # type: ignore[arg-type]


# --- many lanes


class LeapTuner(NamedTuple):
    """The engine's estimate of the slots' pace."""

    mean_lead: jax.Array  # f32[]: mean number of pulls of a leader
    pace: LeapPace  # [slot]


class _Macro(NamedTuple):
    """A chunk, between two macro-steps."""

    lanes: LeapState  # [slot]
    gained: jax.Array  # f32[]: pulls of leaders so far
    ended: jax.Array  # f32[]: leads that ended so far


def tuner(slots: int) -> LeapTuner:
    """The initial estimate: leads are short at the start of a run."""
    return LeapTuner(
        jnp.float32(1.0), LeapPace(jnp.ones(slots, bool), jnp.full(slots, LENGTHS[-1], jnp.int32))
    )


def chunk(
    environment: Environment, lanes: Lane, carry: Carry, tuner: LeapTuner, rounds: jax.Array
) -> tuple[Carry, LeapTuner]:
    """Some macro-steps of all lanes, ``[slot]``, with the most promising block length."""
    assert isinstance(environment, AddressedArms)
    choice = _best_length(tuner.mean_lead, environment.spec.arms)

    def by_lead(now: _Macro, aimed: Leader, tied: jax.Array) -> _Macro:
        lengths = [partial(_blocks, environment, length, lanes, carry) for length in LENGTHS]
        done = jax.lax.switch(choice, lengths, aimed)
        gained = jnp.sum((done.ledger.rounds - aimed.ledger.rounds).astype(jnp.float32))
        # A lead that the aim alone stopped goes on in the next macro-step, so it has not ended.
        ended = _count(aimed.alive & ~done.alive & ~jax.vmap(stopped_short)(done))
        return _Macro(
            jax.vmap(land)(lanes, now.lanes, done), now.gained + gained, now.ended + ended
        )

    def by_tie(now: _Macro, aimed: Leader, tied: jax.Array) -> _Macro:
        return now._replace(
            lanes=jax.vmap(partial(play_ties, environment))(lanes, carry, now.lanes, aimed, tied)
        )

    def macro(_: jax.Array, now: _Macro) -> _Macro:
        """A macro-step of all lanes, of leads or of ties, as most of them want."""
        if passing:
            now = now._replace(
                lanes=jax.vmap(partial(let_pass, environment))(lanes, carry, now.lanes)
            )
        aimed, tied = jax.vmap(partial(aim, environment))(lanes, carry, now.lanes)
        if environment.spec.arms <= _FEW:
            return by_lead(now, aimed, tied)
        most_tied = 2 * _count(aimed.tied) > _count(aimed.tied | aimed.alive)
        return jax.lax.cond(most_tied, by_tie, by_lead, now, aimed, tied)

    world = at_instance(environment, jnp.int32(0))
    passing = passes(environment, world, jnp.zeros((environment.spec.arms,), jnp.int32))

    begin = _Macro(jax.vmap(enter)(carry, tuner.pace), jnp.float32(0), jnp.float32(0))
    done = jax.lax.fori_loop(jnp.int32(0), jnp.int32(_STEPS), macro, begin)
    # A chunk's own mean is noisy; + 1, since no lead may have ended in it.
    mean = 0.75 * tuner.mean_lead + 0.25 * done.gained / (done.ended + 1)
    return jax.vmap(partial(leave, passing))(lanes, carry, done.lanes), LeapTuner(
        mean, done.lanes.pace
    )


def trial(environment: Environment, lane: Lane, carry: Carry) -> Carry:
    """Everything that a chunk does, once, for one lane, to form the digest of the program."""
    assert isinstance(environment, AddressedArms)
    passing = passes(environment, at_instance(environment, lane.row), carry.state.environment)
    now = enter(carry, jax.tree.map(lambda x: x[0], tuner(1).pace))
    if passing:
        now = let_pass(environment, lane, carry, now)
    leader, tied = aim(environment, lane, carry, now)
    now = land(lane, now, lead_block(environment, LENGTHS[0], lane, carry, leader))
    return leave(passing, lane, carry, play_ties(environment, lane, carry, now, leader, tied))


def _blocks(
    environment: AddressedArms, length: int, lanes: Lane, carry: Carry, leaders: Leader
) -> Leader:
    """A block; further ones of the longest under the same ceiling while few lanes have stopped.

    The more arms, the dearer is a new ceiling, and the more blocks are worth their idle lanes.
    """
    limit = 1 if length < LENGTHS[-1] else 1 + environment.spec.arms // 24
    play = jax.vmap(partial(lead_block, environment, length))
    if limit == 1:
        return play(lanes, carry, leaders)
    first = _count(leaders.alive)

    def more(state: tuple[jax.Array, Leader]) -> jax.Array:
        done, now = state
        return (done < limit) & (2 * _count(now.alive) >= first)

    def next_block(state: tuple[jax.Array, Leader]) -> tuple[jax.Array, Leader]:
        done, now = state
        return done + 1, play(lanes, carry, now)

    return jax.lax.while_loop(more, next_block, (jnp.int32(0), leaders))[1]


def _count(flags: jax.Array) -> jax.Array:
    return jnp.sum(flags.astype(jnp.float32))


def _best_length(mean_lead: jax.Array, arms: int) -> jax.Array:
    """Which of LENGTHS gains most rounds per predicted nanosecond for geometric leads of that mean.

    The costs are those of one lane on one CPU core. They steer speed only.
    """
    aimed, overhead, pull = 30 + 2.5 * arms, 30.0, 6.5
    speeds = []
    for length in LENGTHS:
        # Σ_{k ≤ length} P(lead ≥ k): what a block accepts of a lead of geometric length.
        gained = mean_lead * -jnp.expm1(length * jnp.log1p(-1 / (mean_lead + 1)))
        speeds.append(gained / (aimed + overhead + length * pull))
    return jnp.argmax(jnp.stack(speeds)).astype(jnp.int32)
