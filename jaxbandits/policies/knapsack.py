"""Policies for a known budget: a fixed split, ε-first, KUBE and MRCB."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, as_floats
from jaxbandits.core.checks import bad, whole_number
from jaxbandits.core.protocol import Chosen, Observation, View
from jaxbandits.core.pytrees import leaf, pytree, select_tree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import (
    ABSENT,
    ArmTotals,
    IndexPolicy,
    Plan,
    check_for_each_arm,
    evaluate_arms,
    fewest,
    first_of_largest,
    largest,
    money_left,
    sortable,
)
from jaxbandits.policies.ucb import hoeffding_radius, ratio_of

_LARGEST, _SUM = 15, 30  # powers of two: the largest weight, and what no sum of weights is above


@pytree
class FixedSplit(Plan):
    """Draws arm k with probability :math:`w_k / \\sum_j w_j` in each round, without learning.

    With :math:`w_k \\propto b_k / \\mu^c_k` arm k gets the share :math:`b_k` of the money on
    average; with all weight on one arm it is played for ever. Shares are those among the arms that
    are open; while none of weight above 0 is, all that are open have the same. Weights count to
    2⁻¹⁵ of the largest (with K above 2¹⁵ arms to K · 2⁻³⁰). One draw a round, addressed by the
    round (role ``MIX``); an arm of weight 0, as one that does not exist, changes none.

    Args:
        weights: w ≥ 0, ``[K]`` (per instance ``[1, instance, K]``), not all 0 among the arms that
            exist.

    Plays with any number of resources. Does not leap, as it keeps no statistics; it costs little in
    the scan engine.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.6, 0.4, 0.5], [1.0, 1.0, 1.0])
        >>> result = jb.simulate(
        ...     jb.policies.FixedSplit([3.0, 0.0, 1.0]), arms, jb.Horizon(400), key=jax.random.key(0), marks=1)
        >>> result.pulls.values.ravel().tolist()
        [305, 0, 95]
    """

    weights: ArrayLike = leaf(at_least=0, at_most=2.0**100, core=1)

    def check(self, spec: Any) -> None:
        check_for_each_arm("FixedSplit.weights", self.weights, spec)
        if not np.any(self.weights, axis=-1).all():
            raise bad("FixedSplit.weights", self.weights, "not all 0")

    def select(self, state: jax.Array, key: jax.Array, view: View) -> Chosen:
        whole = self._whole(view)
        sums = jnp.cumsum(whole, dtype=jnp.int32)
        number = streams.below(streams.policy_words(key, view.round, Role.MIX)[0], sums[-1])
        ids = jax.lax.iota(jnp.int32, whole.shape[0])
        return state, jnp.min(jnp.where(sums > number, ids, whole.shape[0]))

    def log_probabilities(self, state: jax.Array, view: View) -> jax.Array:
        """ln p of every arm, ``f32[K]``."""
        whole = self._whole(view)
        return jnp.log(whole / jnp.sum(whole))

    def _whole(self, view: View) -> jax.Array:
        """The weights as integers, whose sums do not depend on the number of arms."""
        weights = jnp.where(view.available, jnp.asarray(self.weights), 0)
        weights = jnp.where(jnp.any(weights > 0), weights, view.available.astype(jnp.float32))
        largest = 2 ** min(_LARGEST, _SUM - (weights.shape[0] - 1).bit_length())
        return jnp.rint(weights / jnp.max(weights) * largest).astype(jnp.int32)


# --- ε-first with a budget (Tran-Thanh, Chapman, Munoz de Cote, Rogers, Jennings, AAAI 2010)


class EpsilonFirstState(NamedTuple):
    """Statistics, the initial budget, and whether the last pull was exploration."""

    learnt: ArmStatistics
    budget: Total  # B, as the view of round 1 told it; of several resources [d + 1]
    exploring: jax.Array  # bool[]


@pytree
class EpsilonFirst(ArmTotals):
    """ε-first: pulls arms in turn until εB is spent, then argmax :math:`\\bar r_k / \\bar c_k`.

    The estimates are frozen when exploration ends. Exact ties at random. B is what the constraint
    says is left before round 1, so it needs a constraint that tells (a total budget).

    Args:
        epsilon: ε in (0, 1], default 0.1 (the BTS paper's comparison, from memory). The loss is of
            order B^⅔ for ε ∝ B^(−⅓).

    Source: AAAI 2010.

    Deviations: costs are random and estimated (the original knows them), so phase 2 plays the best
    ratio instead of filling the knapsack. An arm that exploration did not reach is not played while
    another has an estimate.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.EpsilonFirst().epsilon
        0.1
    """

    epsilon: ArrayLike = leaf(default=0.1, above=0, at_most=1)

    def init(self, spec: FiniteSpec) -> EpsilonFirstState:
        return EpsilonFirstState(super().init(spec), ticks.zero(), jnp.bool_(True))

    def update(
        self, state: EpsilonFirstState, key: jax.Array, observation: Observation
    ) -> EpsilonFirstState:
        return select_tree(state.exploring, super().update(state, key, observation), state)

    def select(self, state: EpsilonFirstState, key: jax.Array, view: View) -> Chosen:
        money = money_left(view)
        budget = select_tree(view.round == 1, money, state.budget)
        spent = ticks.to_float(ticks.minus(budget, money))
        exploring = spent < self.epsilon * ticks.to_float(budget)
        in_turn = fewest(state.learnt.pulls, view.available)
        arm = jnp.where(exploring, in_turn, largest(self.ratio(state.learnt), key, view))
        return EpsilonFirstState(state.learnt, budget, exploring), arm

    def ratio(self, learnt: ArmStatistics) -> jax.Array:
        """r̄/c̄; +∞ while no cost was seen, −∞ for an arm never pulled."""
        sums = ticks.to_float(learnt.reward), ticks.to_float(learnt.cost)
        ratio = ratio_of(*jax.lax.optimization_barrier(sums))
        return jnp.where(learnt.pulls > 0, ratio, -jnp.inf)


# --- KUBE and fractional KUBE (Tran-Thanh, Chapman, Rogers, Jennings, AAAI 2012)


def density(arms: Arms) -> jax.Array:
    """d_k = (r̄ + √(2 ln t / n)) / c̄; +∞ while no cost was seen."""
    upper = arms.mean_reward + jnp.sqrt(2 * jnp.log(arms.t) / arms.n)
    return jnp.where(arms.cost > 0, upper / arms.mean_cost, jnp.inf)


@pytree
class FractionalKUBE(IndexPolicy):
    """Fractional KUBE: the largest :math:`d_k = (\\bar r_k + \\sqrt{2 \\ln t / n_k}) / \\bar c_k`.

    No parameter. Leaps: the density reads its own arm and rises with t.

    Source: AAAI 2012, Eqs. 6 and 7.

    Deviations: c̄ in place of costs that the original knows and that do not vary; +∞ while no cost
    was seen.

    Example:
        >>> from jaxbandits.policies import FractionalKUBE, scores
        >>> scores(FractionalKUBE(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [1.23, 2.72]
    """

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        return density(arms)


class Packing(NamedTuple):
    """The greedy packing of the knapsack so far."""

    room: jax.Array  # f32[]: money not yet packed
    units: jax.Array  # f32[]: Σm
    arm: jax.Array  # i32[]: a unit drawn uniformly among those packed


@pytree
class KUBE(IndexPolicy):
    """KUBE: fills the knapsack of the remaining budget greedily, then draws one unit of it.

    Each arm once; then arms in order of falling density d_k, of each as many units as fit into the
    rest: :math:`m_k = \\lfloor B' / \\bar c_k \\rfloor`, :math:`B' \\leftarrow B' - m_k \\bar c_k`;
    the next pull is arm k with probability :math:`m_k / \\sum_j m_j`. While much is left nearly all
    units are the densest arm's, so that it differs from :class:`FractionalKUBE` only near the end.

    No parameter. Does not leap: it draws, and it reads what is left. Needs a constraint that tells
    what is left.

    Source: AAAI 2012, Alg. 1.

    Deviations: c̄ in place of known costs, arms without observed cost first; where nothing fits any
    more the densest arm is played (the original stops; here the constraint ends a run).

    Example:
        >>> from jaxbandits.policies import KUBE, scores
        >>> scores(KUBE(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [1.23, 2.72]
    """

    def score(self, arms: Arms) -> jax.Array:
        return density(arms)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> Chosen:
        arms = as_floats(state, view.round)
        scores, price = evaluate_arms(self, arms), arms.cost / arms.n
        fresh = state.pulls == 0
        densest = largest(scores, key, view, fresh=fresh)

        def fits(room: jax.Array) -> jax.Array:
            return view.available & (price <= room)

        def pack(packed: Packing) -> Packing:
            arm = largest(jnp.where(fits(packed.room), scores, -jnp.inf), key, view)
            units = jnp.maximum(jnp.floor(packed.room / price[arm]), 1)
            total, room = packed.units + units, jax.lax.rem(packed.room, price[arm])
            coin = streams.uniform(streams.policy_words(key, view.round, Role.MIX, arm)[0])
            return Packing(room, total, jnp.where(coin * total < units, arm, packed.arm))

        empty = Packing(ticks.to_float(money_left(view)), jnp.float32(0), densest)
        ready = ~jnp.any(view.available & (fresh | (arms.cost <= 0)))
        packing = jax.lax.while_loop(lambda packed: ready & jnp.any(fits(packed.room)), pack, empty)
        return state, packing.arm


# --- MRCB (Xia, Qin, Ma, Yu, Liu, IJCAI 2016): several arms a round

_FEW = 8  # so few are found one by one: XLA on CPU sorts each lane on its own, which took 40 times as long at L = 2
_MOST = 120  # arms in a set: what a total can take in one addition


@pytree
class MRCB(ArmTotals):
    """MRCB: pulls the set of L arms with the largest ratio of summed bounds.

    .. math:: \\max_{|S| = L} \\frac{\\sum_{k \\in S} \\min(\\bar r_k + \\varepsilon_k, 1)}
        {\\sum_{k \\in S} \\max(\\bar c_k - \\varepsilon_k, 0)}, \\qquad
        \\varepsilon_k = \\alpha \\sqrt{\\ln(t-1) / n_k},

    t counting rounds, each with L pulls. The set is found by Dinkelbach's method: the top L of U_k
    − θL_k, then θ as their ratio, until θ stands still. Where L arms or more have a lower cost
    bound of 0 the ratio is +∞: L of those, at random. At first the arms not yet pulled, L a round
    in index order, filled up from arm 0. With L = 1 it is :class:`~jaxbandits.policies.MUCB`.

    Args:
        pulls: L from 1 to 120, at most the number of arms of the smallest instance (else its lanes
            end as invalid).
        alpha: α ≥ 0, default 2⁻⁴, that of m-UCB.

    Does not leap: its action is a set. A result's regret is against the best single arm;
    :func:`jaxbandits.oracles.optimum.best_set_rate` gives the best rate of a set.

    Source: IJCAI 2016, of which only the abstract could be read; the rest is from memory, as is α.
    """

    pulls: int = static(default=2)
    alpha: ArrayLike = leaf(default=2.0**-4, at_least=0)

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        whole_number("MRCB.pulls", self.pulls, 1, min(spec.arms, _MOST))

    def blank_action(self, spec: FiniteSpec) -> jax.Array:
        return jnp.zeros((self.pulls,), jnp.int32)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> Chosen:
        width = state.pulls.shape[0]
        available, ids = view.available, jax.lax.iota(jnp.int32, width)
        upper, lower = self.bounds(state, view.round)
        order = streams.priorities(streams.policy_words(key, view.round, Role.TIE)[0], width)

        def top(value: jax.Array, order: jax.Array) -> jax.Array:
            """The L largest, smaller ``order`` first among equals, absent arms last."""
            if self.pulls > _FEW:
                keys = (jnp.where(available, -value, jnp.inf), order, ids)
                return jax.lax.sort(keys, num_keys=2)[2][: self.pulls]
            rest, arms = jnp.where(available, sortable(value), ABSENT), []
            for _ in range(self.pulls):
                arms.append(first_of_largest(rest, order, ids)[1])
                rest = jnp.where(ids == arms[-1], ABSENT, rest)
            return jnp.stack(arms)

        def ratio(arms: jax.Array) -> jax.Array:
            return jnp.sum(upper[arms]) / jnp.sum(lower[arms])

        free = available & (lower <= 0)
        endless = jnp.sum(free, dtype=jnp.int32) >= self.pulls
        first = top(jnp.where(endless, free.astype(jnp.float32), upper), order)

        def improve(tried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            rate = ratio(tried[0])
            return top(upper - rate * lower, order), rate

        # Dinkelbach's method: the best set for the ratio of the last one, while that ratio grows
        best, _ = jax.lax.while_loop(
            lambda tried: ~endless & (ratio(tried[0]) > tried[1]), improve, (first, jnp.float32(-1))
        )
        fresh = available & (state.pulls == 0)
        starting = top(fresh.astype(jnp.float32), ids.astype(jnp.uint32))
        return state, jnp.where(jnp.any(fresh), starting, best)

    def bounds(self, state: ArmStatistics, round: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(U, L): min(r̄ + ε, 1) and max(c̄ − ε, 0), ``f32[K]``; 1 and 0 for an arm never pulled."""
        arms = jax.lax.optimization_barrier(as_floats(state, round))
        epsilon = jnp.where(arms.n > 0, hoeffding_radius(self.alpha, arms), jnp.inf)
        upper = jnp.where(arms.n > 0, jnp.minimum(arms.mean_reward + epsilon, 1), 1.0)
        lower = jnp.where(arms.n > 0, jnp.maximum(arms.mean_cost - epsilon, 0), 0.0)
        return upper, lower
