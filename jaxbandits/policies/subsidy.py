"""Cheap arms of sufficient quality, safety against a default arm, least shares of each arm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import streams, ticks
from jaxbandits.core.arm_statistics import ArmStatistics
from jaxbandits.core.checks import bad
from jaxbandits.core.protocol import Observation, Policy, View
from jaxbandits.core.pytrees import Pytree, leaf, pytree, select_tree, static
from jaxbandits.core.specs import FiniteSpec
from jaxbandits.core.streams import Role
from jaxbandits.core.ticks import Total
from jaxbandits.policies.base import ArmTotals, check_for_each_arm, check_one_arm, largest
from jaxbandits.policies.soft import posterior_draws
from jaxbandits.policies.wrappers import Choice, WithState


class ArmMeans(NamedTuple):
    """What the formulas read, ``f32[K]`` each."""

    n: jax.Array
    reward: jax.Array  # r̄, 0 before the first pull
    cost: jax.Array  # c̄


def means_of(learnt: ArmStatistics) -> ArmMeans:
    """Sample means, behind a barrier: the same bits in every program."""
    totals = ticks.to_float(learnt.reward), ticks.to_float(learnt.cost)
    reward, cost, n = jax.lax.optimization_barrier((*totals, learnt.pulls.astype(jnp.float32)))
    pulls = jnp.maximum(n, 1)
    return ArmMeans(n, reward / pulls, cost / pulls)


def best_mean(learnt: ArmStatistics, key: jax.Array, view: View) -> jax.Array:
    """The open arm with the largest mean reward, those without pulls first."""
    return largest(means_of(learnt).reward, key, view, fresh=learnt.pulls == 0)


class _KnownCosts(ArmTotals):
    """A policy that may be told what each arm costs."""

    costs: ArrayLike

    def check(self, spec: FiniteSpec) -> None:
        super().check(spec)
        check_for_each_arm(f"{type(self).__name__}.costs", self.costs, spec)

    def prices(self, means: ArmMeans) -> jax.Array:
        """c of every arm, or c̄ if the costs are not known."""
        return means.cost if self.costs is None else jnp.asarray(self.costs)


def cheapest(
    prices: jax.Array, enough: jax.Array, fresh: jax.Array, key: jax.Array, view: View
) -> jax.Array:
    """Each arm once in index order, then the cheapest one good ``enough``, ties at random."""
    starting = jnp.any(fresh & view.available)
    return largest(
        -prices, key, view._replace(available=view.available & (starting | enough)), fresh=fresh
    )


# --- Cost subsidy: the cheapest arm whose mean is at least (1 − α) of the best
# Sinha, Sankararaman, Kazerouni, Avadhanula: Multi-armed bandits with cost subsidy, AISTATS 2021.


@pytree
class CSUCB(_KnownCosts):
    """CS-UCB: of the arms whose upper bound is at least 1 − α of the largest, the cheapest; ties at
    random.

    .. math:: u_k = \\min\\Big(1,\\ \\bar r_k + \\sqrt{2 \\ln T / n_k}\\Big), \\qquad
        \\arg\\min \\{c_k : u_k \\ge (1-\\alpha) \\max_j u_j\\}.

    Each arm once first. A baseline: its regret may be linear in T, for a bound cut at 1 tells
    nothing.

    Args:
        alpha: α in [0, 1], the share of the best mean that may be given up.
        horizon: T ≥ 1.
        costs: c, ``[K]``, where it is known; default c̄, which is learnt.

    Source: AISTATS 2021, and the code of Juneja et al., ICLR 2025.

    Deviations: learnt costs are ours.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.75, 0.9], [0.1, 0.3, 0.8])
        >>> policy = jb.policies.CSUCB(alpha=0.3, horizon=2000, costs=[0.1, 0.3, 0.8])
        >>> result = jb.simulate(policy, arms, jb.Horizon(2000), key=jax.random.key(0), replicates=20, marks=1)
        >>> result.pulls.values.mean((0, 1, 2)).round().astype(int).tolist()    # the second is good enough
        [366, 1633, 1]
    """

    alpha: ArrayLike = leaf(at_least=0, at_most=1)
    horizon: ArrayLike = leaf(at_least=1)
    costs: ArrayLike = leaf(default=None, at_least=0, core=1)

    def upper(self, means: ArmMeans) -> jax.Array:
        """u, ``f32[K]``."""
        n = jnp.maximum(means.n, 1)
        return jnp.where(
            means.n > 0, jnp.minimum(1, means.reward + jnp.sqrt(2 * jnp.log(self.horizon) / n)), 1
        )

    def select(
        self, state: ArmStatistics, key: jax.Array, view: View
    ) -> tuple[ArmStatistics, jax.Array]:
        policy, means = jax.lax.optimization_barrier((self, means_of(state)))
        upper = policy.upper(means)
        best = jnp.max(jnp.where(view.available, upper, -jnp.inf))
        return state, cheapest(
            policy.prices(means), upper >= (1 - policy.alpha) * best, state.pulls == 0, key, view
        )


class Successes(NamedTuple):
    """Statistics, and the successes of the reward trials."""

    learnt: ArmStatistics
    rewards: jax.Array  # i32[K]


@pytree
class CSThompson(_KnownCosts):
    """CS-TS: of the arms whose draw :math:`\\theta_k \\sim \\mathrm{Beta}(1 + S_k, 1 + F_k)` is at
    least 1 − α of the largest, the cheapest; among equal costs the larger draw.

    Each arm once first. A reward in (0, 1) counts as a Bernoulli trial of it, as in
    :class:`~jaxbandits.policies.BudgetedThompson`.

    Args:
        alpha: α in [0, 1], the share of the best mean that may be given up.
        costs: c, ``[K]``, where it is known; default c̄, which is learnt.

    Source: AISTATS 2021, and the code of Juneja et al., ICLR 2025.

    Deviations: learnt costs, rewards between 0 and 1, and the order among equal costs (there at
    random) are ours.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.75, 0.9], [0.1, 0.3, 0.8])
        >>> policy = jb.policies.CSThompson(alpha=0.3, costs=[0.1, 0.3, 0.8])
        >>> result = jb.simulate(policy, arms, jb.Horizon(2000), key=jax.random.key(0), replicates=20, marks=1)
        >>> int(result.pulls.values.mean((0, 1, 2)).argmax())
        1
    """

    alpha: ArrayLike = leaf(at_least=0, at_most=1)
    costs: ArrayLike = leaf(default=None, at_least=0, core=1)

    def init(self, spec: FiniteSpec) -> Successes:
        return Successes(super().init(spec), jnp.zeros((spec.arms,), jnp.int32))

    def update(self, state: Successes, key: jax.Array, observation: Observation) -> Successes:
        word = streams.policy_words(key, observation.view.round, Role.TRIAL)[0]
        is_arm = jax.lax.iota(jnp.int32, state.rewards.shape[0]) == observation.action
        won = is_arm & (streams.uniform_ticks(word) < observation.feedback.reward)
        state = super().update(state, key, observation)
        return state._replace(rewards=state.rewards + won.astype(jnp.int32))

    def draws(self, state: Successes, key: jax.Array, round: jax.Array) -> jax.Array:
        """θ, ``f32[K]``."""
        pulls = state.learnt.pulls
        theta = posterior_draws(key, round, Role.THETA_REWARD, state.rewards, pulls)
        return theta[: pulls.shape[0]]

    def select(self, state: Successes, key: jax.Array, view: View) -> tuple[Successes, jax.Array]:
        theta, policy, means = jax.lax.optimization_barrier(
            (self.draws(state, key, view.round), self, means_of(state.learnt))
        )
        fresh, prices = state.learnt.pulls == 0, policy.prices(means)
        best = jnp.max(jnp.where(view.available, theta, -jnp.inf))
        enough = view.available & (theta >= (1 - policy.alpha) * best)
        cheapest = enough & (prices == jnp.min(jnp.where(enough, prices, jnp.inf)))
        starting = jnp.any(fresh & view.available)
        among = view._replace(available=view.available & (starting | cheapest))
        return state, largest(theta, key, among, fresh=fresh)


# --- PE-CS: find the best arm, then try the cheaper ones against it, one after the other
# Juneja, Joe-Wong, Yağan: Pairwise elimination with instance-dependent guarantees for bandits with
# cost subsidy, ICLR 2025.


class PairwiseState(NamedTuple):
    """Where the elimination stands."""

    learnt: ArmStatistics
    opened: jax.Array  # bool[K]: arms that were ever open
    dropped: jax.Array  # bool[K]: worse than another one (first part), or too bad (second)
    level: jax.Array  # i32[]: ω of the first part, and of ℓ in the second
    tried: jax.Array  # i32[K]: ω of each arm
    best: jax.Array  # i32[]: ℓ; −1 in the first part
    winner: jax.Array  # i32[]: whom to play for good; −1 while that is open


@pytree
class PECS(_KnownCosts):
    """PE-CS: successive elimination until one arm ℓ is left, then every cheaper arm against ℓ,
    cheapest first.

    With :math:`\\Delta = 2^{-\\omega}`, :math:`\\tau_\\omega = \\lceil 2 \\ln(T \\Delta^2) /
    \\Delta^2 \\rceil` and :math:`\\beta_\\omega = \\sqrt{\\ln(T \\Delta^2) / (2 \\tau_\\omega)}`:
    first all that are left are pulled :math:`\\tau_\\omega` times, those with :math:`\\bar r +
    \\beta_\\omega \\le \\max (\\bar r - \\beta_\\omega)` leave, ω grows by 1. Then candidate i is
    pulled to :math:`\\tau_{\\omega_i}`, ℓ to :math:`\\tau_{\\omega'}` with :math:`\\omega' =
    \\min(\\omega_\\ell, \\omega_i + \\kappa)`. It is played for good if

    .. math:: (1-\\alpha)(\\bar r_\\ell + \\beta_{\\omega_i}) < \\bar r_i - \\beta_{\\omega_i},

    and out if :math:`\\bar r_i + \\beta_{\\omega_i} < (1-\\alpha)(\\bar r_\\ell -
    \\beta_{\\omega'})`; else :math:`\\omega_i` grows by 1. If all are out, ℓ is played.

    While the arm that it wants is closed, it plays the open one with the largest mean, and an arm
    that is closed is not compared.

    Args:
        alpha: α in [0, 1], the share of the best mean that may be given up.
        horizon: T ≥ 3. Under a budget B take B / min c.
        costs: c, ``[K]``, where it is known; default c̄, which is learnt.
        kappa: κ ≥ 0, default 5.

    Source: ICLR 2025, by its authors' code.

    Deviations: where :math:`T \\Delta^2` would fall below e (in the code the logarithm becomes
    negative) the first part ends with the largest mean and a candidate that is not decided is out.
    If the cheapest arm is the best the code plays on the arm that was pulled last; here ℓ.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.75, 0.9], [0.1, 0.3, 0.8])
        >>> policy = jb.policies.PECS(alpha=0.3, horizon=20_000, costs=[0.1, 0.3, 0.8])
        >>> result = jb.simulate(policy, arms, jb.Horizon(20_000), key=jax.random.key(0), replicates=20, marks=1)
        >>> int(result.pulls.values.mean((0, 1, 2)).argmax())
        1
    """

    alpha: ArrayLike = leaf(at_least=0, at_most=1)
    horizon: ArrayLike = leaf(at_least=3)
    costs: ArrayLike = leaf(default=None, at_least=0, core=1)
    kappa: ArrayLike = leaf(default=5, integer=True, at_least=0)

    def init(self, spec: FiniteSpec) -> PairwiseState:
        none, nobody = jnp.zeros((spec.arms,), bool), jnp.int32(-1)
        tried = jnp.zeros((spec.arms,), jnp.int32)
        return PairwiseState(super().init(spec), none, none, jnp.int32(0), tried, nobody, nobody)

    def needed(self, level: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(τ, β) of ω, any shape."""
        shrunk = jnp.exp2(-2 * level.astype(jnp.float32))
        log = jnp.log(self.horizon * shrunk)
        tau = jnp.ceil(2 * log / shrunk)
        return tau, jnp.sqrt(log / (2 * tau))

    def select(
        self, state: PairwiseState, key: jax.Array, view: View
    ) -> tuple[PairwiseState, jax.Array]:
        state = state._replace(opened=state.opened | view.available)
        policy, means, available = jax.lax.optimization_barrier(
            (self, means_of(state.learnt), view.available)
        )
        last = jnp.floor(0.5 * jnp.log2(policy.horizon / np.float32(math.e))).astype(jnp.int32)
        prices, ids = policy.prices(means), jax.lax.iota(jnp.int32, available.shape[0])

        def first(among: jax.Array) -> jax.Array:
            """The cheapest, the lowest id first; −1 if there is none."""
            cheapest = among & (prices == jnp.min(jnp.where(among, prices, jnp.inf)))
            arm = jnp.min(jnp.where(cheapest, ids, ids.shape[0]))
            return jnp.where(jnp.any(among), arm, -1)

        state, pull = policy.eliminate(state, means, available, last, first)
        second = (state.best >= 0) & (pull < 0)
        later, rival = policy.compare(state, means, available, prices, last, first)
        state, pull = select_tree(second, later, state), jnp.where(second, rival, pull)
        is_open = jnp.any((ids == pull) & available)
        return state, jnp.where(is_open, pull, best_mean(state.learnt, key, view))

    def eliminate(
        self,
        state: PairwiseState,
        means: ArmMeans,
        available: jax.Array,
        last: jax.Array,
        first: Any,
    ) -> tuple[PairwiseState, jax.Array]:
        """The first part: the state, and whom it wants to pull; −1: nobody."""
        candidates = state.opened & ~state.dropped
        tau, width = self.needed(state.level)
        short = first(candidates & available & (means.n < tau))
        compared = candidates & (means.n >= tau)
        tests = (state.best < 0) & (short < 0) & jnp.any(candidates & available)
        floor = jnp.max(jnp.where(compared, means.reward - width, -jnp.inf))
        worse = compared & (means.reward + width <= floor)
        # At the last level there is nothing left to tell them apart by.
        top = first(
            compared & (means.reward == jnp.max(jnp.where(compared, means.reward, -jnp.inf)))
        )
        ids = jax.lax.iota(jnp.int32, candidates.shape[0])
        survivors = jnp.where(state.level >= last, ids == top, candidates & ~worse)
        alone = jnp.sum(survivors, dtype=jnp.int32) <= 1
        decided = tests & alone
        after = state._replace(
            # Who was dropped may be good enough all the same.
            dropped=jnp.where(
                tests,
                jnp.where(
                    alone, jnp.zeros_like(survivors), state.dropped | (candidates & ~survivors)
                ),
                state.dropped,
            ),
            level=state.level + (tests & ~alone).astype(jnp.int32),
            best=jnp.where(decided, first(survivors), state.best),
        )
        pulled = jnp.where(short >= 0, short, first(survivors & available))
        return after, jnp.where((state.best < 0) & ~decided, pulled, -1)

    def compare(
        self,
        state: PairwiseState,
        means: ArmMeans,
        available: jax.Array,
        prices: jax.Array,
        last: jax.Array,
        first: Any,
    ) -> tuple[PairwiseState, jax.Array]:
        """The second part: the state, and whom it wants to pull."""
        ids = jax.lax.iota(jnp.int32, available.shape[0])
        best = ids == state.best

        def of(table: jax.Array, mask: jax.Array) -> jax.Array:
            return jnp.sum(jnp.where(mask, table, 0))

        dear = of(prices, best)
        cheaper = state.opened & (prices < dear) | (prices == dear) & (ids < state.best)
        # The cheapest arm that may be good enough is tried against the best one, level by level.
        candidates = cheaper & ~state.dropped & state.opened
        arm = first(candidates & available)
        mask = ids == arm
        level = of(state.tried, mask)
        tau, width = self.needed(level)
        # The best arm has more pulls: its width is that of its own level, at most κ above the
        # arm's.
        tau_best, width_best = self.needed(jnp.minimum(state.level, level + self.kappa))
        short, short_best = of(means.n, mask) < tau, of(means.n, best) < tau_best
        share, value, best_value = 1 - self.alpha, of(means.reward, mask), of(means.reward, best)
        wins = share * (best_value + width) < value - width
        out = ~wins & ((value + width < share * (best_value - width_best)) | (level >= last))
        tests = (state.winner < 0) & (arm >= 0) & ~short & ~short_best
        dropped = state.dropped | (mask & tests & out)
        more = tests & ~wins & ~out
        after = state._replace(
            dropped=dropped,
            winner=jnp.where(tests & wins, arm, state.winner),
            tried=state.tried + (mask & more).astype(jnp.int32),
            level=jnp.where(more, jnp.maximum(state.level, level + 1), state.level),
        )
        following = first(candidates & ~dropped & available)
        pull = jnp.where(
            short, arm, jnp.where(short_best, state.best, jnp.where(out, following, arm))
        )
        pull = jnp.where(pull < 0, state.best, pull)
        return after, jnp.where(
            state.winner >= 0, state.winner, jnp.where(arm < 0, state.best, pull)
        )


# --- Conservative exploration: never much worse than a default arm whose mean is known
# Wu, Shariff, Lattimore, Szepesvári: Conservative bandits, ICML 2016.


class ConservativeState(NamedTuple):
    """Statistics, and the arms that were ever open."""

    learnt: ArmStatistics
    opened: jax.Array  # bool[K]


@pytree
class ConservativeUCB(ArmTotals):
    """Conservative UCB: the arm with the largest upper bound, if the guaranteed reward so far
    allows it; else the default, arm 0.

    Arm 0 is the default, its mean :math:`\\mu_0` is known. With :math:`D_k = \\sqrt{\\psi(n_k) /
    n_k}`, :math:`\\theta_k = \\bar r_k + D_k`, :math:`\\lambda_k = \\max(0, \\bar r_k - D_k)` (both
    :math:`\\mu_0` for arm 0; ∞ and 0 without pulls) and :math:`J = \\arg\\max \\theta`, lowest
    index first, J is played if

    .. math:: \\sum_k n_k \\lambda_k + \\lambda_J \\ge (1-\\alpha)\\, \\mu_0\\, t.

    Then with probability 1 − δ the expected reward is at least :math:`(1-\\alpha) \\mu_0 t` in
    every round. Of the rewards themselves nothing is promised. With ζ = K/δ for K arms beside the
    default

    .. math:: \\psi(s) = \\ln \\max(3, \\ln \\zeta) + \\ln(2 e^2 \\zeta)
        + \\frac{\\zeta (1 + \\ln \\zeta)}{(\\zeta - 1) \\ln \\zeta} \\ln \\ln(1 + s);

    the plainer :math:`2 \\ln(K s^3 / \\delta)` where ``wide``.

    With ``cost``, what the default costs, the floor is :math:`(1-\\alpha) \\rho_0` per unit of
    money, :math:`\\rho_0 = \\mu_0 / c_0`: then :math:`\\lambda_k - (1-\\alpha) \\rho_0 \\min(1,
    \\bar c_k + D_k)` in place of λ (:math:`\\alpha \\mu_0` for arm 0), 0 on the right, :math:`J =
    \\arg\\max \\min(1, \\bar r_k + D_k) / \\max(0, \\bar c_k - D_k)` and 2K bounds in place of K.

    While arm 0 is closed J is played.

    Args:
        mean: μ_0 in (0, 1].
        alpha: α in [0, 1], the share that may be given up.
        delta: δ in (0, 1), default 0.05.
        cost: c_0 in (0, 1], under a budget; default None: rounds are what is counted.
        wide: the plainer bound.

    Source: ICML 2016, by two public codings.

    Deviations: costs are ours. Sums are whole ticks, rounded against J.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.5, 0.3, 0.6], [0.5, 0.5, 0.5])
        >>> policy = jb.policies.ConservativeUCB(mean=0.5, alpha=0.1)
        >>> result = jb.simulate(
        ...     policy, arms, jb.Horizon(2000), key=jax.random.key(0), replicates=20, marks=20, record=("pulls",))
        >>> earned = result.linear([0.5, 0.3, 0.6]) / result.rounds             # expected, of every round so far
        >>> bool((earned >= 0.45).all())
        True
    """

    mean: ArrayLike = leaf(above=0, at_most=1)
    alpha: ArrayLike = leaf(at_least=0, at_most=1)
    delta: ArrayLike = leaf(default=0.05, above=0, at_most=1 - 2.0**-10)
    cost: ArrayLike = leaf(default=None, above=0, at_most=1)
    wide: bool = static(default=False)

    def init(self, spec: FiniteSpec) -> ConservativeState:
        return ConservativeState(super().init(spec), jnp.zeros((spec.arms,), bool))

    def psi(self, n: jax.Array, arms: jax.Array) -> jax.Array:
        """ψ(n) for K ``arms`` beside the default."""
        bounds = arms if self.cost is None else 2 * arms
        if self.wide:
            return 2 * (jnp.log(bounds / self.delta) + 3 * jnp.log(n))
        zeta = bounds / self.delta
        log = jnp.log(zeta)
        grows = zeta * (1 + log) / ((zeta - 1) * log) * jnp.log(jnp.log1p(n))
        return jnp.log(jnp.maximum(3, log)) + jnp.log(2 * np.float32(math.e**2) * zeta) + grows

    def bounds(self, means: ArmMeans, arms: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(index whose argmax is J, sure gain over the floor in units of max(1, (1−α)ρ₀))."""
        default, unseen = jax.lax.iota(jnp.int32, means.n.shape[0]) == 0, means.n == 0
        n = jnp.maximum(means.n, 1)
        width = jnp.sqrt(jnp.maximum(self.psi(n, arms), 0) / n)
        high, low = means.reward + width, jnp.maximum(0, means.reward - width)
        if self.cost is None:
            high, low = jnp.where(unseen, jnp.inf, high), jnp.where(unseen, 0, low)
            return jnp.where(default, self.mean, high), jnp.where(default, self.mean, low)
        floor = (1 - self.alpha) * self.mean / self.cost
        net = jnp.where(unseen, -floor, low - floor * jnp.minimum(1, means.cost + width))
        cost_low = jnp.maximum(0, means.cost - width)
        ratio = jnp.where(
            unseen | (cost_low <= 0),
            jnp.inf,
            jnp.minimum(1, high) / jnp.where(cost_low > 0, cost_low, 1),
        )
        net = jnp.where(default, self.alpha * self.mean, net) / jnp.maximum(1, floor)
        return jnp.where(default, self.mean / self.cost, ratio), net

    def select(
        self, state: ConservativeState, key: jax.Array, view: View
    ) -> tuple[ConservativeState, jax.Array]:
        state = state._replace(opened=state.opened | view.available)
        policy, means = jax.lax.optimization_barrier((self, means_of(state.learnt)))
        ids = jax.lax.iota(jnp.uint32, means.n.shape[0])
        arms = jnp.maximum(jnp.sum(state.opened[1:], dtype=jnp.int32), 1).astype(jnp.float32)
        index, net = policy.bounds(means, arms)
        arm = largest(index, key, view, order=ids)
        sure = jnp.floor(net * ticks.ONE).astype(jnp.int32)
        room = total_of(
            sure, state.learnt.pulls + (ids == arm.astype(jnp.uint32)).astype(jnp.int32)
        )
        if policy.cost is None:
            floor = jnp.ceil((1 - policy.alpha) * policy.mean * ticks.ONE).astype(jnp.int32)
            rounds = jnp.sum(state.learnt.pulls, dtype=jnp.int32) + 1
            room = ticks.minus(room, ticks.times(floor, rounds))
        return state, jnp.where((room.whole >= 0) | ~view.available[0], arm, 0)


def total_of(amounts: jax.Array, n: jax.Array) -> Total:
    """Σ_k n_k x_k exactly, x in ticks of at most one unit in size, ``[K]`` each."""
    gained = ticks.times(jnp.maximum(amounts, 0), n)
    deducted = ticks.times(jnp.maximum(-amounts, 0), n)
    parts = ticks.minus(gained, deducted)
    whole, high, low = (
        jnp.sum(x, dtype=jnp.int32) for x in (parts.whole, parts.part >> 12, parts.part & 0xFFF)
    )
    high = high + (low >> 12)  # units of 2⁻¹²
    return Total(whole + (high >> 12), ((high & 0xFFF) << 12) + (low & 0xFFF))


# --- A least share of the pulls for each arm
# Patil, Ghalme, Nair, Narahari: Achieving fairness in the stochastic multi-armed bandit problem,
# AAAI 2020.


class FlooredState(NamedTuple):
    """The inner policy's state, and the pulls of each arm."""

    inner: Pytree
    pulls: jax.Array  # i32[K]


@pytree
class Floored(WithState):
    """The arm that is furthest behind its share, :math:`\\max_k s_k (t-1) - n_k`, if it is behind
    by more than a tolerance; else what the inner policy chooses. Lowest index first.

    t − 1 counts the pulls so far. An arm that is closed falls behind, and is made up for when it
    opens.

    Args:
        policy: any policy for finitely many arms that plays one arm a round.
        share: s ≥ 0, ``[K]``, the least share of the pulls of each arm; at most 1 together.
        tolerance: how many pulls an arm may be behind, at least 0; default 0.

    Source: AAAI 2020.

    Example:
        >>> import jax
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([0.9, 0.2, 0.1], [0.5, 0.5, 0.5])
        >>> policy = jb.policies.Floored(jb.policies.UCB1(), share=[0.0, 0.2, 0.1])
        >>> result = jb.simulate(policy, arms, jb.Horizon(1000), key=jax.random.key(0), marks=1)
        >>> result.pulls.values.ravel().tolist()
        [700, 200, 100]
    """

    policy: Policy = leaf()
    share: ArrayLike = leaf(at_least=0, at_most=1, core=1)
    tolerance: ArrayLike = leaf(default=0.0, at_least=0)

    def check(self, spec: FiniteSpec) -> None:
        check_for_each_arm("Floored.share", self.share, spec)
        if (np.sum(self.share, axis=-1) > 1 + 2.0**-20).any():
            raise bad("Floored.share", self.share, "at most 1 together")
        check_one_arm(self, self.policy, spec)
        super().check(spec)

    def init(self, spec: FiniteSpec) -> FlooredState:
        return FlooredState(self.policy.init(spec), jnp.zeros((spec.arms,), jnp.int32))

    def update(self, state: FlooredState, key: jax.Array, observation: Observation) -> FlooredState:
        is_arm = jax.lax.iota(jnp.int32, state.pulls.shape[0]) == observation.action
        inner = self.policy.update(state.inner, key, observation)
        return FlooredState(inner, state.pulls + is_arm.astype(jnp.int32))

    def behind(self, pulls: jax.Array) -> jax.Array:
        """s (t − 1) − n, ``f32[K]``; exact before it is rounded."""
        share = jnp.floor(jnp.asarray(self.share) * ticks.ONE).astype(jnp.int32)
        due = ticks.times(share, jnp.sum(pulls, dtype=jnp.int32))
        return ticks.to_float(ticks.minus(due, ticks.count(pulls)))

    def decide(
        self, state: FlooredState, key: jax.Array, view: View, choose: Choice
    ) -> tuple[FlooredState, Pytree]:
        inner, arm = choose(state.inner, key, view)
        pulls = state.pulls if choose.open is None else state.pulls + choose.open
        behind = jnp.where(view.available, self.behind(pulls), -jnp.inf)
        forced = jnp.max(behind) > self.tolerance
        inner = select_tree(forced, state.inner, inner)
        return state._replace(inner=inner), jnp.where(
            forced, jnp.argmax(behind).astype(jnp.int32), arm
        )
