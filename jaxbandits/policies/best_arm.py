"""Which arm is the best? With a fixed confidence, or for a fixed amount of money."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits._numerics.arrays import ArrayLike, one_of
from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.protocol import Status, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import ArmTotals, money_left
from jaxbandits.policies.subsidy import ArmMeans, best_mean, means_of

SPREADS = ("pulls", "root", "money")
RULES = ("halving", "rejects")


class _Survivors(ArmTotals):
    """Arms leave until one is left, which ends the run. The state has ``learnt`` and ``alive``,
    ``bool[K]``.

    The arms that take part are those that are open in the first round. One that closes stays in the
    comparison with what it has brought; where no other is open, the open arm with the largest mean
    is played.
    """

    def status(self, state: NamedTuple) -> jax.Array:
        """STOPPED when one arm is left."""
        alone = jnp.sum(state.alive, dtype=jnp.int32) == 1  # type: ignore[attr-defined]
        return jnp.where(alone, jnp.int32(Status.STOPPED), jnp.int32(Status.RUNNING))

    def recommend(self, state: NamedTuple, view: View) -> jax.Array:
        """Of the arms that are left the one with the largest mean, the lowest index first."""
        reward = means_of(state.learnt).reward  # type: ignore[attr-defined]
        alive = state.alive | ~jnp.any(state.alive)  # type: ignore[attr-defined]
        return jnp.argmax(jnp.where(alive, reward, -jnp.inf)).astype(jnp.int32)


def prices_of(learnt: ArmStatistics, n: jax.Array) -> jax.Array:
    """ĉ = (Σc + 1)/(n + 1), which is never 0."""
    return jax.lax.optimization_barrier(ticks.to_float(learnt.cost) + 1) / (n + 1)


def arm_of_least(work: jax.Array, among: jax.Array, otherwise: jax.Array) -> jax.Array:
    """The arm of least ``work`` ``among`` some, lowest index on ties; ``otherwise`` if none."""
    arm = jnp.argmin(jnp.where(among, work, jnp.inf)).astype(jnp.int32)
    return jnp.where(jnp.any(among), arm, otherwise)


# --- Fixed confidence
# Kanarios, Zhang, Ying: Cost aware best arm identification, RLC 2024.


class Racing(NamedTuple):
    """Statistics, and the arms that have not left."""

    learnt: ArmStatistics
    alive: jax.Array  # bool[K]
    arms: jax.Array  # i32[]: how many take part; 0 before the first round


@pytree
class ChernoffOverlap(_Survivors):
    """Chernoff-Overlap: pull the arm with the least :math:`n_k \\sqrt{\\hat c_k}`, drop
    arms that are surely not the best, and stop when one arm is left.

    Arm k leaves when, a being the best so far and :math:`m = (n_a \\bar r_a + n_k \\bar r_k) / (n_a
    + n_k)`,

    .. math:: n_a\\, d(\\bar r_a, m) + n_k\\, d(\\bar r_k, m) > \\ln \\frac{2 t (K-1)}{\\delta}, \\qquad
        d(p, q) = p \\ln \\frac pq + (1-p) \\ln \\frac{1-p}{1-q},

    t the pulls so far, and :math:`\\hat c_k = (\\sum c + 1)/(n_k + 1)`. The recommended arm is the
    best by reward with probability at least 1 − δ. Give it a budget or a horizon that is long
    enough: what ends before is not sure.

    Args:
        delta: δ in (0, 1), default 0.1.

    Source: RLC 2024, from memory; for rewards of 0 or 1, and held to be safe for others in [0, 1].

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.8, 0.5, 0.3], [0.9, 0.1, 0.5])
        >>> policy = jb.policies.ChernoffOverlap(delta=0.05)
        >>> result = jb.simulate(policy, arms, jb.Horizon(5000), key=jax.random.key(0), replicates=8, marks=1)
        >>> set(result.status.values.ravel().tolist()), set(result.recommended.values.ravel().tolist())
        ({'stopped'}, {0})
    """

    delta: ArrayLike = leaf(default=0.1, above=0, at_most=1 - 2.0**-10)

    def init(self, spec: FiniteSpec) -> Racing:
        return Racing(super().init(spec), jnp.zeros((spec.arms,), bool), jnp.int32(0))

    def overlap(self, means: ArmMeans, alive: jax.Array) -> jax.Array:
        """Evidence, ``f32[K]``, that an arm is not the best; 0 for the best or if unpulled."""
        ids = jax.lax.iota(jnp.int32, alive.shape[0])
        best = ids == jnp.argmax(jnp.where(alive, means.reward, -jnp.inf))
        n, reward = (jnp.sum(jnp.where(best, x, 0)) for x in (means.n, means.reward))
        pooled = (n * reward + means.n * means.reward) / jnp.maximum(n + means.n, 1)
        sure = n * divergence(reward, pooled) + means.n * divergence(means.reward, pooled)
        return jnp.where(best | (means.n == 0) | (n == 0), 0, sure)

    def select(self, state: Racing, key: jax.Array, view: View) -> tuple[Racing, jax.Array]:
        begins = state.arms == 0
        alive = jnp.where(begins, view.available, state.alive)
        arms = jnp.where(begins, jnp.sum(alive, dtype=jnp.int32), state.arms)
        policy, means = jax.lax.optimization_barrier((self, means_of(state.learnt)))
        pulls = jnp.sum(state.learnt.pulls, dtype=jnp.int32).astype(jnp.float32)
        level = jnp.log(2 * pulls * (arms - 1) / policy.delta)
        alive = alive & ~((pulls > 0) & (policy.overlap(means, alive) > level))
        work = means.n * jnp.sqrt(prices_of(state.learnt, means.n))
        arm = arm_of_least(work, alive & view.available, best_mean(state.learnt, key, view))
        return Racing(state.learnt, alive, arms), arm


def divergence(p: jax.Array, q: jax.Array) -> jax.Array:
    """d(p, q) of two coins; 0 where p = q."""

    def part(p: jax.Array, q: jax.Array) -> jax.Array:
        return jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1) / jnp.where(p > 0, q, 1)), 0)

    return part(p, q) + part(1 - p, 1 - q)


# --- Fixed money
# Li, Cheung: Best arm identification with resource constraints, AISTATS 2024 (SH-RR).
# Audibert, Bubeck, Munos: Best arm identification in multi-armed bandits, COLT 2010.


class Phases(NamedTuple):
    """Statistics, the arms that have not left, and how much of the money is spent."""

    learnt: ArmStatistics
    alive: jax.Array  # bool[K]
    arms: jax.Array  # i32[]: how many take part; 0 before the first round
    budget: Total  # B, as the view of the first round told it
    phase: jax.Array  # i32[]: phases that are over


@pytree
class Elimination(_Survivors):
    """Spend the budget in phases, and after each drop the arms with the smallest means, until one
    is left.

    ``"halving"``: :math:`\\lceil \\log_2 K \\rceil` phases of equal money, half of the arms
    (rounded up) stay. ``"rejects"``: K − 1 phases, one arm leaves after each; with :math:`L =
    \\tfrac12 + \\sum_{i=2}^K 1/i` the first has the share 1/L of the money, the k-th 1/(L(K + 2 −
    k)).

    The next pull is that of the arm that is left with the least :math:`n_k w_k`, w = 1
    (``"pulls"``), :math:`\\sqrt{\\hat c_k}` (``"root"``: the least :math:`\\sum 1/n_k` that money
    buys) or :math:`\\hat c_k` (``"money"``), :math:`\\hat c_k = (\\sum c + 1)/(n_k + 1)`. A phase
    ends when a further pull could cost more than it has left, so that nothing is overspent; what is
    left goes to the next one. Ties at random.

    Args:
        rule: ``"halving"`` or ``"rejects"``.
        spread: ``"root"`` (default), ``"pulls"`` or ``"money"``.
        largest: the largest cost of one pull, in (0, 1], default 1.

    Raises:
        InputError: before anything runs, for another word, or a constraint that does not tell what
            is left.

    Source: ``"halving"`` with ``"pulls"`` is SH-RR, AISTATS 2024; ``"rejects"`` is COLT 2010, from
    memory. Money for rejects, and the other spreads, are ours.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.5, 0.4, 0.3], [0.9, 0.1, 0.5, 0.5])
        >>> budget = jb.TotalBudget(400.0, last_pull="counts")
        >>> result = jb.simulate(
        ...     jb.policies.Elimination("halving"), arms, budget, key=jax.random.key(0), replicates=100, marks=1)
        >>> int((result.recommended.values == 0).sum()), float(result.spent.max()) <= 400
        (100, True)
    """

    rule: str = static(default="halving")
    spread: str = static(default="root")
    largest: ArrayLike = leaf(default=1.0, above=0, at_most=1)

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        one_of("Elimination.rule", self.rule, RULES)
        one_of("Elimination.spread", self.spread, SPREADS)

    def init(self, spec: FiniteSpec) -> Phases:
        none = jnp.zeros((spec.arms,), bool)
        return Phases(super().init(spec), none, jnp.int32(0), ticks.zero(), jnp.int32(0))

    def share(self, phase: jax.Array, arms: jax.Array, width: int) -> jax.Array:
        """Share of the budget spent after ``phase + 1`` phases, ``f32[]``."""
        if self.rule == "halving":
            phases = 32 - jax.lax.clz(jnp.maximum(arms - 1, 1))
            return jnp.minimum((phase + 1).astype(jnp.float32) / phases, 1)
        # In whole ticks: as many terms as there are arms, however many columns a table has.
        i = jax.lax.iota(jnp.int32, width + 1)
        terms = jnp.where(i >= 2, jnp.rint(ticks.ONE / jnp.maximum(i, 1)), 0).astype(jnp.int32)
        whole = ticks.ONE // 2 + jnp.sum(jnp.where(i <= arms, terms, 0), dtype=jnp.int32)
        spent = ticks.ONE + jnp.sum(
            jnp.where((i <= arms) & (i >= arms + 1 - phase), terms, 0), dtype=jnp.int32
        )
        return jnp.where(
            phase + 2 >= arms, 1, spent.astype(jnp.float32) / whole.astype(jnp.float32)
        )

    def select(self, state: Phases, key: jax.Array, view: View) -> tuple[Phases, jax.Array]:
        begins, money = state.arms == 0, money_left(view)
        state = state._replace(
            alive=jnp.where(begins, view.available, state.alive),
            arms=jnp.where(begins, jnp.sum(view.available, dtype=jnp.int32), state.arms),
            budget=select_tree(begins, money, state.budget),
        )
        policy, means = jax.lax.optimization_barrier((self, means_of(state.learnt)))
        spent = ticks.to_float(ticks.minus(state.budget, money))
        budget = ticks.to_float(state.budget)
        width = state.alive.shape[0]
        order = streams.priorities(streams.policy_words(key, view.round, Role.TIE)[0], width)
        ids = jax.lax.iota(jnp.uint32, width)

        def beside(x: jax.Array) -> tuple[jax.Array, jax.Array]:
            return x[:, None], x[None, :]

        # By mean, then by a draw of this round, then by id: no two arms are equal, so as many stay
        # as should.
        (row_order, column_order), (row_id, column_id), (row_mean, column_mean) = (
            beside(x) for x in (order, ids, means.reward)
        )
        before = (row_order < column_order) | ((row_order == column_order) & (row_id < column_id))
        better = (row_mean > column_mean) | ((row_mean == column_mean) & before)

        # A phase is over as soon as one more pull might pass its share of the money.
        def over(now: Phases) -> jax.Array:
            goal = policy.share(now.phase, now.arms, width) * budget
            return (jnp.sum(now.alive, dtype=jnp.int32) > 1) & (spent > goal - policy.largest)

        def eliminate(now: Phases) -> Phases:
            count = jnp.sum(now.alive, dtype=jnp.int32)
            stay = (count + 1) // 2 if self.rule == "halving" else count - 1
            place = jnp.sum(better & now.alive[:, None], axis=0, dtype=jnp.int32)
            return now._replace(alive=now.alive & (place < stay), phase=now.phase + 1)

        state = jax.lax.while_loop(over, eliminate, state)
        price = prices_of(state.learnt, means.n)
        work = (
            means.n
            * {"pulls": jnp.ones_like(price), "root": jnp.sqrt(price), "money": price}[self.spread]
        )
        return state, arm_of_least(
            work, state.alive & view.available, best_mean(state.learnt, key, view)
        )
