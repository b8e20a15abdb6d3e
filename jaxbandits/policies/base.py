"""Policies of finitely many arms: statistics, choice by scores, index and random policies."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike, by_device, reduced
from jaxbandits.core import arm_statistics, streams, ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics
from jaxbandits.core.capabilities import own_method
from jaxbandits.core.checks import InputError, one_for_each_arm, refuse
from jaxbandits.core.protocol import NEVER, Chosen, Observation, Policy, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total

# --- How the confidence of an index grows with the round


class Exploration:
    """A sequence 𝓔_t ≥ 0, elementwise in t (float32).

    Attributes:
        rests: True if it never falls: a policy's score rests only if its exploration does.
    """

    rests: ClassVar[bool] = False

    @abstractmethod
    def at(self, t: jax.Array) -> jax.Array:
        """𝓔_t, the value at round t."""


@pytree
class LogExploration(Exploration):
    """𝓔_t = a·ln max(t, 2); with a = 1 the largest that the theory of RCB allows.

    Args:
        scale: a > 0, default 1.

    Example:
        >>> from jaxbandits.policies import LogExploration
        >>> round(float(LogExploration(scale=2.0).at(100.0)), 3)
        9.21
    """

    scale: ArrayLike = leaf(default=1.0, above=0)

    rests: ClassVar[bool] = True

    def at(self, t: jax.Array) -> jax.Array:
        return self.scale * jnp.log(jnp.maximum(t, 2))


@pytree
class LogLogExploration(Exploration):
    """𝓔_t = 2 ln(4(log₂ t + 1)), the smallest that RCB's theory allows (above ln t for t < 2,391).

    Example:
        >>> from jaxbandits.policies import LogLogExploration
        >>> round(float(LogLogExploration().at(128.0)), 3)
        6.931
    """

    rests: ClassVar[bool] = True

    def at(self, t: jax.Array) -> jax.Array:
        return 2 * jnp.log(4 * (jnp.log2(jnp.maximum(t, 1)) + 1))


@pytree
class SlowLogExploration(Exploration):
    """𝓔_t = 2 ln(10 ln max(t, 2)), the smallest that Wang, Audibert and Munos allow UCB-V(∞).

    Example:
        >>> from jaxbandits.policies import SlowLogExploration
        >>> round(float(SlowLogExploration().at(100.0)), 2)
        7.66
    """

    rests: ClassVar[bool] = True

    def at(self, t: jax.Array) -> jax.Array:
        return 2 * jnp.log(10 * jnp.log(jnp.maximum(t, 2)))


# --- The arm with the largest score, exact ties broken by the round's hash


def largest(
    scores: jax.Array,
    key: jax.Array,
    view: View,
    fresh: jax.Array | None = None,
    arms: int | None = None,
    order: jax.Array | None = None,
) -> jax.Array:
    """The available arm with the largest score, exact ties broken uniformly at random.

    If any score (``f32[K]``) is NaN, the result is K, which no environment has: the lane ends as
    invalid. Arms that are ``fresh`` come before all others, in index order. Where ``scores`` are
    longer than ``arms``, what stands behind is no arm. ``order`` says who comes first among equals
    (``u32[K]``); by default it is drawn from key and round.
    """
    width = scores.shape[0]
    ids = jax.lax.iota(jnp.int32, width)
    if order is None:
        order = streams.priorities(streams.policy_words(key, view.round, Role.TIE)[0], width)
    if fresh is not None:
        scores = jnp.where(fresh, jnp.inf, scores)
        order = jnp.where(fresh, ids.astype(jnp.uint32), behind_the_fresh(order))
    keys, padding = sortable(scores), 0 if arms is None else width - arms
    if view.available is not None:
        keys = jnp.where(jnp.pad(view.available, (0, padding)), keys, ABSENT)
    elif padding:
        keys = jnp.where(ids < width - padding, keys, ABSENT)
    best, arm = first_of_largest(keys, order, ids)
    return jnp.where((best != NAN) & (best != ABSENT), arm, width - padding)


ABSENT, NAN = np.int32(-(2**31)), np.int32(2**31 - 1)  # keys below and above those of all numbers


def sortable(scores: jax.Array) -> jax.Array:
    """Int32 keys in the order of the scores (−0 equals 0), NaN above all.

    XLA on CPU reduces whole numbers at least twice as fast as floats, whose maximum must mind NaN.
    """
    bits = jax.lax.bitcast_convert_type(scores, jnp.int32)
    # XLA would drop an addition of 0, which would also make it 0
    minus_zero = bits == np.int32(-(2**31))
    turned = bits ^ ((bits >> 31) & np.int32(2**31 - 1))  # negative floats sort the other way round
    return jnp.where(jnp.isnan(scores), NAN, jnp.where(minus_zero, 0, turned))


def first_of_largest(
    keys: jax.Array, order: jax.Array, ids: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(largest key, id of its arm); ties go to the first in ``order``, then the smallest id."""
    best, last = reduced(jax.lax.max, keys, ABSENT), np.uint32(0xFFFFFFFF)
    priority = jnp.where(keys == best, jnp.minimum(order, last - 1), last)
    first = priority == reduced(jax.lax.min, priority, last)
    return best, reduced(jax.lax.min, jnp.where(first, ids, np.int32(2**31 - 1)), 2**31 - 1)


def behind_the_fresh(order: jax.Array) -> jax.Array:
    """Priorities that are larger than every arm id."""
    return (order >> 1) | jnp.uint32(1 << 31)


def tie_winners(tied: jax.Array, key: jax.Array, rounds: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The arm that :func:`largest` would draw in each round if exactly the arms ``tied`` were tied.

    The arms ``i32[h]``, K for none; and where that is certain (all but one time in 10⁹). One pass
    over arms and rounds: the arm is found again from its priority.
    """
    width = tied.shape[0]
    words = jax.vmap(lambda round: streams.policy_words(key, round, Role.TIE)[0])(rounds)
    ids, last = jax.lax.iota(jnp.uint32, width), np.uint32(0xFFFFFFFF)
    untied = jnp.where(tied, jnp.uint32(0), last)
    # Arms before rounds: so it is a minimum of vectors, which XLA on CPU makes twice as fast.
    order = behind_the_fresh(streams.priority(words[None, :], ids[:, None])) | untied[:, None]
    priority = jnp.min(order, axis=0)
    both = jnp.stack(
        [streams.arm_at(words, (priority << 1) | bit) for bit in np.arange(2, dtype=np.uint32)]
    )
    both = jnp.minimum(both, width).astype(jnp.int32)
    arms = jnp.min(jnp.where(tied.at[both].get(mode="fill", fill_value=False), both, width), axis=0)
    return arms, priority < last - 1


# --- Policies that play arms of one cost: with a plan, or with totals of what each arm brought


def check_one_cost(owner: Policy, spec: FiniteSpec) -> None:
    """Refuse an environment whose costs are a vector."""
    costs = f"costs as a vector of length {spec.resources}"
    must = f"one with one cost for {type(owner).__name__}"
    refuse("environment", costs, spec.resources is not None, must)


def check_for_each_arm(argument: str, value: Any, spec: FiniteSpec) -> None:
    """Refuse given numbers whose last axis does not have one for each arm."""
    given = spec.arms if value is None else np.shape(value)[-1]
    refuse(argument, f"{given} numbers", given != spec.arms, f"one for each of {spec.arms} arms")


def check_one_arm(owner: Policy, inner: Policy, spec: FiniteSpec) -> None:
    """Refuse a policy inside another one whose action is a set of arms."""
    name, of_several = f"{type(owner).__name__}.policy", jnp.shape(inner.blank_action(spec)) != ()
    refuse(name, type(inner).__name__, of_several, "one that pulls one arm a round")


class OneCost(Policy):
    """A policy for finitely many arms with one cost."""

    plays: ClassVar[type] = FiniteSpec

    def check(self, spec: FiniteSpec) -> None:
        check_one_cost(self, spec)


class Plan(OneCost):
    """A policy that does not learn. Subclasses define ``select``."""

    def init(self, spec: FiniteSpec) -> jax.Array:
        return jnp.zeros((), jnp.int32)

    def update(self, state: jax.Array, key: jax.Array, observation: Observation) -> jax.Array:
        return state


class ArmTotals(OneCost):
    """A policy with statistics of each arm. Subclasses define ``select``.

    The state is :class:`~jaxbandits.core.arm_statistics.ArmStatistics`, or has them as ``learnt``.

    Attributes:
        spreads: True if it reads Σx(1 − x) (``arms.reward_spread``, ``arms.cost_spread``).
    """

    spreads: ClassVar[bool] = False

    def init(self, spec: FiniteSpec) -> Any:
        return arm_statistics.empty(spec.arms, resources=spec.resources, spreads=self.spreads)

    def update(self, state: Any, key: jax.Array, observation: Observation) -> Any:
        feedback, arm = observation.feedback, observation.action
        before = getattr(state, "learnt", state)
        learnt = arm_statistics.record(before, arm, feedback.reward, feedback.cost)
        return self.with_learnt(state, learnt, arm)

    def with_learnt(self, state: Any, learnt: ArmStatistics, arm: jax.Array | None = None) -> Any:
        """The state with new statistics; ``arm`` is the only one that changed, if known."""
        return learnt if isinstance(state, ArmStatistics) else state._replace(learnt=learnt)

    def with_history(self, state: Any, totals: ArmStatistics) -> Any:
        """The state as if pulls with these totals, ``[K]``, had also been learned."""
        before = getattr(state, "learnt", state)
        return self.with_learnt(state, arm_statistics.together(before, totals))

    def select_while_open(self, state: Any, key: jax.Array, view: View, open: jax.Array) -> Chosen:
        if not isinstance(state, ArmStatistics):
            return self.select(state, key, view)
        return state, self.select(arm_statistics.counted(state, open), key, view)[1]


# --- Index policies: one class, one method ``score``; initial pulls, ties, argmax and statistics are inherited

# Off CPU a square root may be off by 1 and a quotient by 2 units in the last place instead of half
# a one (CUDA's sqrt.approx and div.full), and need not grow with what they are taken of. What that
# does to a score is kept off by a margin so many times as large, and what it does to ln t before a
# difference of nearly equal numbers by `safe_round`.
COARSER = 4.0
_LATER = 2.0**-18  # of ln t


class IndexPolicy(ArmTotals):
    """Pulls each arm once in index order, then the arm with the largest :meth:`score`.

    Exact ties are broken at random.

    Attributes:
        rests: True if an arm's score depends on its own statistics and t only, and never falls
            while the arm rests. A capability: it counts where it is declared, and a subclass with
            another score must declare it again (see :mod:`jaxbandits.core.capabilities`).
        leaps_from, leaps_up_to: with fewer or more arms ``engine="auto"`` does not leap: the leader
            changes too often for that to be faster.
        rounding: by how much of itself a float32 score that rests may fall all the same, times two;
            the leap engine keeps this distance. 2⁻²⁰ covers formulas of some twenty operations
            (measured: 1.9·10⁻⁷).
    """

    rests: ClassVar[bool] = False
    leaps_from: ClassVar[int] = 1
    leaps_up_to: ClassVar[int] = 2**24
    rounding: ClassVar[float] = 2.0**-20

    def scoring(self) -> IndexPolicy:
        """The policy for computing scores: this one without what only :meth:`init` reads."""
        return self

    def earlier_pulls(self) -> jax.Array | None:
        """Pulls in the statistics from before this run, ``i32[K]``; None: there are none."""
        return None

    def own_round(self, round: jax.Array) -> jax.Array:
        """t in the formula: the round, plus earlier rounds of a policy with a history."""
        return round

    @abstractmethod
    def score(self, arms: Arms) -> jax.Array:
        """The index of every arm, elementwise in ``arms`` (float32); +∞ forces a pull."""

    def admits(self, state: ArmStatistics, view: View) -> jax.Array:
        """Arms considered in this round, ``bool[K]``, by default all; absent ones never are."""
        return view.available

    def steady(self, state: ArmStatistics, round: jax.Array) -> jax.Array:
        """The last round in which :meth:`admits` and :meth:`status` certainly are as at ``round``.

        It is ``i32[]``, and holds while the set of pulled arms stays the same. A policy that
        overrides ``admits`` must define it, or no engine simulates many of its rounds at once; a
        value below ``round`` means that nothing is certain.
        """
        return jnp.int32(NEVER)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> Chosen:
        view = view._replace(available=self.admits(state, view) & view.available)
        scores = evaluate_totals(self.scoring(), state, view.round)
        return state, largest(scores, key, view, fresh=state.pulls == 0)


_BY_SCORE = (
    *("init", "blank_action", "update", "select", "step"),
    *("admits", "steady", "status", "summary"),
)


def chooses_by_score(policy: object) -> TypeGuard[IndexPolicy]:
    """Whether an index policy overrides only its score, so that others need only that."""
    return isinstance(policy, IndexPolicy) and own_method(policy, IndexPolicy, *_BY_SCORE) is None


def check_score_inside(owner: Policy, inner: object) -> None:
    """Refuse a policy inside another one that does not choose by its score alone."""
    must = f"an index policy that chooses by its score alone, such as RCB(), inside {type(owner).__name__}"
    refuse("policy", type(inner).__name__, not chooses_by_score(inner), must)


class AroundIndex(IndexPolicy):
    """A policy around an index policy, its field ``policy``, whose formula it uses."""

    policy: IndexPolicy

    @property
    def spreads(self) -> bool:  # type: ignore[override]
        return self.policy.spreads

    @property
    def rests(self) -> bool:  # type: ignore[override]
        return self.policy.rests

    @property
    def leaps_from(self) -> int:  # type: ignore[override]
        return self.policy.leaps_from

    @property
    def leaps_up_to(self) -> int:  # type: ignore[override]
        return self.policy.leaps_up_to

    @property
    def rounding(self) -> float:  # type: ignore[override]
        return self.policy.rounding

    def check(self, spec: FiniteSpec) -> None:
        check_score_inside(self, self.policy)
        super().check(spec)
        self.policy.check(spec)

    def score(self, arms: Arms) -> jax.Array:
        return self.policy.score(arms)


def check_null_arm(owner: Policy, spec: FiniteSpec) -> None:
    """Refuse an environment without a null arm."""
    must = f"wrapped as WithNullArm(arms) for {type(owner).__name__}"
    refuse("environment", "no null arm", not spec.null_arm, must)


def evaluate_arms(policy: IndexPolicy, arms: Arms) -> jax.Array:
    """The one place where a score is computed.

    XLA may compile one formula to different bits in different surroundings, because it moves
    arithmetic through broadcasts. Here every input is first broadcast to the full shape, and a
    barrier keeps the compiler from looking behind it: what follows is the same elementwise program
    for every engine and batch.
    """
    wide = jax.tree.map(lambda x: jnp.broadcast_to(x, arms.n.shape), policy)
    wide, arms = jax.lax.optimization_barrier((wide, arms))
    return one_for_each_arm(policy, "score", wide.score(arms), arms.n.shape)


def evaluate_totals(policy: IndexPolicy, totals: ArmStatistics, round: jax.Array) -> jax.Array:
    """:func:`evaluate_arms` of exact totals, ``[K]``; ``round`` is a scalar or ``[K]``.

    Only what was broadcast stands behind the barrier. Whole numbers become floats by exact products
    and one rounding, wherever the compiler puts that, and on GPU what stands behind a barrier is
    written to memory and read again.
    """
    now = policy.own_round(round).astype(jnp.float32)
    wide, at = jax.tree.map(lambda x: jnp.broadcast_to(x, totals.pulls.shape), (policy, now))
    wide, at = jax.lax.optimization_barrier((wide, at))
    scores = wide.score(arm_statistics.as_floats(totals, at))
    return one_for_each_arm(policy, "score", scores, totals.pulls.shape)


def safe_round(round: jax.Array) -> jax.Array:
    """A round at which no resting score is below its value at ``round``: on CPU ``round`` itself.

    Up to the margin of :func:`surely_exceeds`. If the square root in ε falls by a unit in the
    last place, an index such as :math:`(\\bar r + \\epsilon)/(\\bar c - \\epsilon)` may fall by any
    share of itself. ε reads ln t: where ln t is larger by 2⁻¹⁸ of itself, ε is larger by 2⁻¹⁹,
    sixteen units.
    """
    t = round.astype(jnp.float32)
    later = round + 1 + jnp.ceil(_LATER * t * jnp.log(t)).astype(jnp.int32)
    later = jnp.where(later > round, later, round)
    return jnp.where(by_device(cpu=1.0, accelerator=0.0) > 0, round, later)


def surely_exceeds(policy: IndexPolicy, score: jax.Array, ceiling: jax.Array) -> jax.Array:
    """Whether a score exceeds the others' ceiling (−∞: none) by more than rounding errors."""
    return score > ceiling + jnp.where(jnp.isfinite(ceiling), jnp.abs(ceiling) * margin(policy), 0)


def margin(policy: IndexPolicy) -> jax.Array:
    """Twice the largest relative fall of a resting score on this kind of device."""
    return policy.rounding * by_device(cpu=1.0, accelerator=COARSER)


def evaluate_state(policy: IndexPolicy, state: Any, round: jax.Array | int) -> jax.Array:
    """Scores of a state at a round, ``f32[K]``, to inspect a policy."""
    return evaluate_totals(policy, state, jnp.asarray(round, jnp.int32))


def scores(policy: IndexPolicy, pulls: Any, reward: Any, cost: Any, round: int) -> np.ndarray:
    """The index of every arm, ``[K]``, after ``pulls`` with these sums of 0/1 outcomes.

    Example:
        >>> from jaxbandits.policies import OmegaUCB, scores
        >>> seen = {"pulls": [90, 10], "reward": [45, 4], "cost": [60, 5]}       # the second arm less often
        >>> for rho in (0.25, 1.0):
        ...     print(scores(OmegaUCB(rho=rho), **seen, round=101).round(2).tolist())
        [0.99, 2.23]
        [1.29, 5.15]
    """

    def exact(x: Any) -> Total:
        return jax.tree.map(jnp.asarray, ticks.split(np.asarray(x, np.int64) * ticks.ONE))

    none = exact(np.zeros_like(pulls)) if policy.spreads else None  # Σx(1 − x)
    n = jnp.asarray(pulls, jnp.int32)
    statistics = ArmStatistics(n, exact(reward), exact(cost), none, none)
    return np.asarray(evaluate_state(policy, statistics, round), np.float64)


# --- Randomised policies: an arm is drawn with a probability that is smooth in the policy's parameters

_CHOICE = 32  # the role of these draws


class RandomisedPolicy(ArmTotals):
    """Draws arm k with probability p_k ∝ exp(ℓ_k). Subclasses define :meth:`logits`, which gives ℓ.

    The draw is argmax_k (ℓ_k + G_k) with independent standard Gumbel G_k, addressed by (round,
    arm), so a small change of a parameter changes few draws, and an arm that does not exist changes
    none.

    Attributes:
        reads_costs: False if the logits do not depend on costs; exact values are then far cheaper.
    """

    reads_costs: ClassVar[bool] = True

    @abstractmethod
    def logits(self, arms: Arms, available: jax.Array) -> jax.Array:
        """ℓ, ``[K]``, up to a constant; −∞ for an arm not drawn or not ``available``."""

    def log_probabilities(self, state: ArmStatistics, view: View) -> jax.Array:
        """ln p of every arm at the round that ``view`` describes, ``f32[K]``."""
        arms = arm_statistics.as_floats(state, view.round)
        return jax.nn.log_softmax(self.logits(arms, view.available))

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> Chosen:
        return state, largest(self.perturbed(state, key, view), key, view)

    def perturbed(self, state: ArmStatistics, key: jax.Array, view: View) -> jax.Array:
        """ℓ + G, ``f32[K]``; the arm with the largest value is drawn."""
        arms = arm_statistics.as_floats(state, view.round)
        policy, arms, available = jax.lax.optimization_barrier((self, arms, view.available))
        logits = one_for_each_arm(self, "logits", policy.logits(arms, available), state.pulls.shape)
        return logits + gumbel(key, view.round, state.pulls.shape[0])


_BY_LOGITS = "blank_action", "update", "select", "step", "status", "perturbed", "log_probabilities"


def chooses_by_logits(policy: object) -> TypeGuard[RandomisedPolicy]:
    """Whether a randomised policy overrides only its logits, so that others need only those."""
    is_kind = isinstance(policy, RandomisedPolicy)
    return is_kind and own_method(policy, RandomisedPolicy, *_BY_LOGITS) is None


def gumbel(key: jax.Array, round: jax.Array, arms: int) -> jax.Array:
    """Gumbel draws G = −ln E, ``f32[arms]``, E ~ Exp(1) from 32 bits at address (round, arm)."""
    ids = jax.lax.iota(jnp.uint32, arms)
    word = jax.vmap(lambda arm: streams.policy_words(key, round, _CHOICE, arm)[0])(ids)
    # Small u, the ones that win, are the finest
    u = (word.astype(jnp.float32) + 0.5) * np.float32(2.0**-32)
    return -jnp.log(-jnp.log1p(-jnp.minimum(u, np.float32(1 - 2.0**-24))))


def fewest(pulls: jax.Array, among: jax.Array) -> jax.Array:
    """The arm with the fewest pulls in ``among``, the lowest index if tied; K if there is none."""
    smallest = jnp.min(jnp.where(among, pulls, jnp.int32(2**31 - 1)))
    ids = jax.lax.iota(jnp.int32, pulls.shape[0])
    return jnp.min(jnp.where(among & (pulls == smallest), ids, pulls.shape[0]))


def money_left(view: View) -> Total:
    """c·t − Σ_{s<t} c_s, exactly; InputError if the constraint does not report what is left."""
    if view.left is None:
        must = "it must be one that does, such as TotalBudget or AverageCost"
        raise InputError(f"constraint: it does not report what is left; {must}")
    return view.left
