"""Index policies for the reward/cost ratio, greedy and optimistic, and the best-ratio oracle."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxbandits._numerics.arrays import ArrayLike
from jaxbandits.core import streams
from jaxbandits.core.arm_statistics import Arms, ArmStatistics, as_floats
from jaxbandits.core.protocol import Chosen, View
from jaxbandits.core.pytrees import leaf, pytree
from jaxbandits.core.streams import Role
from jaxbandits.policies.base import (
    Exploration,
    IndexPolicy,
    LogExploration,
    Plan,
    evaluate_arms,
    largest,
)

# --- The best arm: what a policy that knows the true means would play for ever


@pytree
class BestRatioOracle(Plan):
    """Pulls :math:`\\arg\\max_k \\mu^r_k / \\mu^c_k`; its pseudo-regret under a total budget is 0.

    No initial pulls, nothing learnt; arms whose ratios float32 cannot tell apart at random. It is
    not quite the best that can be done with a budget: near the end another arm may fit better (see
    :func:`jaxbandits.oracles.optimum.budgeted_optimum`).

    Args:
        mean_reward: μ^r, ``[K]`` (per instance ``[1, instance, K]``).
        mean_cost: μ^c, same shape; an arm of mean cost 0 is the best of all.

    Does not leap, as it keeps no statistics; it costs little in the scan engine.

    Example:
        >>> import jaxbandits as jb
        >>> jb.policies.BestRatioOracle([0.45, 0.7], [0.3, 0.75]).mean_cost
        [0.3, 0.75]
    """

    mean_reward: ArrayLike = leaf(at_least=0, at_most=1, core=1)
    mean_cost: ArrayLike = leaf(at_least=0, at_most=1, core=1)

    def select(self, state: jax.Array, key: jax.Array, view: View) -> Chosen:
        reward, cost = jnp.asarray(self.mean_reward), jnp.asarray(self.mean_cost)
        return state, largest(jnp.where(cost > 0, reward / cost, jnp.inf), key, view)


# --- b-greedy: ε-greedy on the ratio with a falling ε


@pytree
class BGreedy(IndexPolicy):
    """b-greedy (Xia et al., Neurocomputing 258, 2017; reference code of Heyden et al., KDD 2024).

    Each arm once; then with probability :math:`\\varepsilon_t = \\min(1, aK/(t-1))` an arm
    uniformly at random (the greedy one included), else :math:`\\arg\\max_k \\sum r / (\\sum c +
    10^{-10})`, exact ties at random.

    Args:
        a: a ≥ 0, default 1 (the code's; the 2017 paper's own multiplier could not be read).

    Deviations: the schedule is the code's; an absent arm does not count towards K.

    Example:
        >>> from jaxbandits.policies import BGreedy, scores
        >>> scores(BGreedy(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.75, 0.8]
    """

    a: ArrayLike = leaf(default=1.0, at_least=0)

    def score(self, arms: Arms) -> jax.Array:
        return arms.reward / (arms.cost + 1e-10)

    def select(self, state: ArmStatistics, key: jax.Array, view: View) -> Chosen:
        scores, fresh = evaluate_arms(self, as_floats(state, view.round)), state.pulls == 0
        greedy = largest(scores, key, view, fresh=fresh)
        coin = streams.policy_words(key, view.round, Role.EXPLORE)
        arms = jnp.sum(view.available, dtype=jnp.int32)
        at_random = streams.available_arm(coin[1], view.available)
        before = jnp.maximum(view.round - 1, 1).astype(jnp.float32)
        explore = streams.uniform(coin[0]) * before < self.a * arms.astype(jnp.float32)
        starting = jnp.any(fresh & view.available)
        return state, jnp.where(explore & ~starting, at_random, greedy)


# --- ω-UCB and ω*-UCB (Heyden, Arzamasov, Fouché, Böhm, KDD 2024)

_FEW = 30  # pulls below which ω* trusts the Bernoulli variance


def upper_bound(total: jax.Array, rest: jax.Array, n: jax.Array, k: jax.Array) -> jax.Array:
    """ω⁺: the larger root of (n + K)ω² − (2Σx + K)ω + (Σx)²/n = 0, K = η z²."""
    return (total + k / 2 + jnp.sqrt(k) * jnp.sqrt(total * rest / n + k / 4)) / (n + k)


def lower_bound(total: jax.Array, rest: jax.Array, n: jax.Array, k: jax.Array) -> jax.Array:
    """ω⁻: the smaller root, as the product of the roots over the larger. Exactly 0 iff Σx = 0.

    The textbook difference cancels there and has a random sign, in float32 and in float64.
    """
    return (total * total / n) / (total + k / 2 + jnp.sqrt(k) * jnp.sqrt(total * rest / n + k / 4))


def ratio_of(upper: jax.Array, lower: jax.Array) -> jax.Array:
    """U/L of every arm, +∞ if L is not above 0."""
    return jnp.where(lower > 0, upper / lower, jnp.inf)


@pytree
class OmegaUCB(IndexPolicy):
    """ω-UCB: the ratio of an upper bound on the mean reward and a lower bound on the mean cost.

    .. math:: \\frac{\\omega^+_k(\\bar r_k)}{\\omega^-_k(\\bar c_k)}, \\qquad z = \\sqrt{2 \\rho \\ln t},

    where ω± are the Wilson-type roots of the asymmetric interval; +∞ while no cost was observed.

    Args:
        rho: ρ > 0, width of the intervals. ¼ is the paper's recommendation for Bernoulli arms (see
            docs/findings/omega_ucb_tails.md for others), 1 the smallest value with proven
            logarithmic regret.

    Source: §4.1, Eq. (2), Theorems 1 and 3.

    Deviations: the index is +∞ exactly when Σc = 0 (in the reference code rounding decides).

    Example:
        >>> from jaxbandits.policies import OmegaUCB, scores
        >>> scores(OmegaUCB(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.99, 2.23]
    """

    rho: ArrayLike = leaf(default=0.25, above=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        k = 2 * self.rho * jnp.log(arms.t)
        upper = upper_bound(arms.reward, arms.reward_rest, arms.n, k)
        return ratio_of(upper, lower_bound(arms.cost, arms.cost_rest, arms.n, k))


@pytree
class OmegaStarUCB(IndexPolicy):
    """ω*-UCB: ω-UCB with intervals scaled by the estimated variance.

    As :class:`OmegaUCB` with :math:`K = \\eta z^2`, where from 30 pulls on

    .. math:: \\hat\\eta = \\mathrm{clip}\\Big(1 - \\frac{\\sum x(1-x)}{n\\, \\bar x (1-\\bar x)},\\ 0,\\ 1\\Big)

    for rewards and costs apart, and η = 1 before, or if x̄ ∈ {0, 1}.

    Args:
        rho: ρ > 0, default ¼.

    Source: §5.2 and the reference code, whose sample variance (n − 1) over n/(n − 1) · x̄(1 − x̄)
    is the variance with n over x̄(1 − x̄). The form above is the same number without cancellation.

    Deviations: the paper leaves σ̄² undefined; with n − 1 alone Bernoulli data would give n/(n − 1)
    > 1.

    Example:
        >>> from jaxbandits.policies import OmegaStarUCB, scores
        >>> scores(OmegaStarUCB(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.99, 2.23]
    """

    rho: ArrayLike = leaf(default=0.25, above=0)

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        z2 = 2 * self.rho * jnp.log(arms.t)
        k_reward = z2 * _eta(arms.reward_spread, arms.reward, arms.reward_rest, arms.n)
        k_cost = z2 * _eta(arms.cost_spread, arms.cost, arms.cost_rest, arms.n)
        upper = upper_bound(arms.reward, arms.reward_rest, arms.n, k_reward)
        return ratio_of(upper, lower_bound(arms.cost, arms.cost_rest, arms.n, k_cost))


def _eta(spread: jax.Array | None, total: jax.Array, rest: jax.Array, n: jax.Array) -> jax.Array:
    variance = total * rest / n  # n x̄(1 − x̄)
    estimate = jnp.clip(1 - spread / variance, 0, 1)  # type: ignore[operator]
    return jnp.where((n < _FEW) | (variance <= 0), 1.0, estimate)


# --- m-UCB, c-UCB and i-UCB (Xia et al., Neurocomputing 258, 2017; Heyden et al., KDD 2024, Table 2)


def hoeffding_radius(alpha: jax.Array, arms: Arms) -> jax.Array:
    """ε_k = α √(ln(t − 1) / n_k), with ln(max(t − 1, 1))."""
    return alpha * jnp.sqrt(jnp.log(jnp.maximum(arms.t - 1, 1)) / arms.n)


@pytree
class MUCB(IndexPolicy):
    """m-UCB: optimism in the numerator and the denominator.

    .. math:: \\frac{\\min(\\bar r_k + \\varepsilon_k, 1)}{\\max(\\bar c_k - \\varepsilon_k, 0)}, \\qquad
        \\varepsilon_k = \\alpha \\sqrt{\\ln(t-1) / n_k};

    +∞ where the denominator is 0.

    Args:
        alpha: α ≥ 0, default 2⁻⁴ (the reference code's reading of the original's Fig. 3).

    Deviations: ln(t − 1) as printed; the reference code takes ln(t − 2).

    Example:
        >>> from jaxbandits.policies import MUCB, scores
        >>> scores(MUCB(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.79, 0.97]
    """

    alpha: ArrayLike = leaf(default=2.0**-4, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        e = hoeffding_radius(self.alpha, arms)
        return ratio_of(jnp.minimum(arms.mean_reward + e, 1), arms.mean_cost - e)


@pytree
class CUCB(IndexPolicy):
    """c-UCB, optimism in the numerator: :math:`(\\bar r_k + \\varepsilon_k) / \\bar c_k`.

    The index is +∞ until a cost is observed.

    Args:
        alpha: α ≥ 0 in ε = α√(ln(t − 1)/n), default 2⁻³.

    Example:
        >>> from jaxbandits.policies import CUCB, scores
        >>> scores(CUCB(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.79, 0.97]
    """

    alpha: ArrayLike = leaf(default=2.0**-3, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        e = hoeffding_radius(self.alpha, arms)
        return jnp.where(arms.cost > 0, (arms.mean_reward + e) / arms.mean_cost, jnp.inf)


@pytree
class IUCB(IndexPolicy):
    """i-UCB, optimism on the ratio itself: :math:`\\bar r_k / \\bar c_k + \\varepsilon_k`.

    The index is +∞ until a cost is observed.

    Args:
        alpha: α ≥ 0 in ε = α√(ln(t − 1)/n), default 2⁻².

    Example:
        >>> from jaxbandits.policies import IUCB, scores
        >>> scores(IUCB(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.81, 0.97]
    """

    alpha: ArrayLike = leaf(default=2.0**-2, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        e = hoeffding_radius(self.alpha, arms)
        return jnp.where(arms.cost > 0, arms.reward / arms.cost + e, jnp.inf)


# --- Budget-UCB (Xia, Ding, Zhang, Yu, Qin, ACML 2015; Heyden et al., KDD 2024, Table 2)


def index(arms: Arms, epsilon: jax.Array, min_cost: jax.Array) -> jax.Array:
    """r̄/c̄ + (ε/c̄)(1 + min(r̄ + ε, 1)/max(c̄ − ε, λ)); +∞ if c̄ or that max is 0."""
    upper = jnp.minimum(arms.mean_reward + epsilon, 1)
    lower = jnp.maximum(arms.mean_cost - epsilon, min_cost)
    ratio = arms.reward / arms.cost + epsilon / arms.mean_cost * (1 + upper / lower)
    return jnp.where((arms.cost > 0) & (lower > 0), ratio, jnp.inf)


def least_mean_cost(arms: Arms) -> jax.Array:
    """λ̂ = min_k c̄_k over the arms pulled so far (of one lane, ``[K]``), for every arm."""
    means = jnp.where(arms.n > 0, arms.mean_cost, jnp.inf)
    return jnp.broadcast_to(jnp.min(means, axis=-1, keepdims=True), means.shape)


@pytree
class BudgetUCB(IndexPolicy):
    """Budget-UCB with a given λ.

    .. math:: \\frac{\\bar r_k}{\\bar c_k} + \\frac{\\varepsilon_k}{\\bar c_k} \\left(1 +
        \\frac{\\min(\\bar r_k + \\varepsilon_k, 1)}{\\max(\\bar c_k - \\varepsilon_k,
        \\lambda)}\\right), \\qquad \\varepsilon_k = \\sqrt{f \\ln(t-1) / n_k};

    +∞ while no cost was seen. Leaps: with λ given, the index reads its own arm and rises with t.

    Args:
        min_cost: λ ≥ 0, a lower bound on the mean costs, per instance ``[1, instance]``. **An
            oracle** in the published experiments: the reference code hands the true min_k μ^c_k to
            the policy at every step. With 0 the index is +∞ while c̄ ≤ ε.
        factor: f ≥ 0, default 2 (the reference code; from memory also the original); Table 2 prints
            1.

    Deviations: ln(t − 1) as printed; the reference code takes ln(t − 2).

    Example:
        >>> import numpy as np
        >>> import jaxbandits as jb
        >>> arms = jb.environments.FiniteArms.bernoulli([[0.5, 0.4], [0.3, 0.6]], [[0.9, 0.25], [0.5, 0.75]])
        >>> _, cost = arms.values()
        >>> policy = jb.policies.BudgetUCB(min_cost=np.nanmin(cost, axis=1)[None, :])  # the oracle, in plain sight
        >>> policy.min_cost.tolist(), policy.factor
        ([[0.25, 0.5]], 2.0)
    """

    min_cost: ArrayLike = leaf(at_least=0, at_most=1)
    factor: ArrayLike = leaf(default=2.0, at_least=0)

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        return index(arms, hoeffding_radius(jnp.sqrt(self.factor), arms), self.min_cost)


@pytree
class EstimatedBudgetUCB(IndexPolicy):
    """Budget-UCB without an oracle: with :math:`\\hat\\lambda = \\min_k \\bar c_k` for λ.

    Args:
        factor: f ≥ 0, default 2.

    Does not leap: λ̂ reads the other arms' costs, and an index falls when λ̂ rises.

    Source: ours, with the estimate that UCB-BV2 uses.

    Example:
        >>> from jaxbandits.policies import EstimatedBudgetUCB, scores
        >>> scores(EstimatedBudgetUCB(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [2.02, 6.56]
    """

    factor: ArrayLike = leaf(default=2.0, at_least=0)

    def score(self, arms: Arms) -> jax.Array:
        return index(arms, hoeffding_radius(jnp.sqrt(self.factor), arms), least_mean_cost(arms))


# --- UCB1: optimism about the reward, blind to the cost


@pytree
class UCB1(IndexPolicy):
    """UCB1: :math:`\\bar r_k + \\sqrt{2 \\ln t / n_k}`; costs are ignored.

    No parameter. Leaps with up to 32 arms: the index reads its own arm and rises with t. With more
    of them its leader changes every few rounds, and ``engine="auto"`` plays it round by round
    (measured: docs/benchmarks.md).

    Source: Auer, Cesa-Bianchi and Fischer 2002, Fig. 1; as run in the B-Zoom paper, §4.
    """

    rests: ClassVar[bool] = True
    leaps_up_to: ClassVar[int] = 32

    def score(self, arms: Arms) -> jax.Array:
        return arms.mean_reward + jnp.sqrt(2 * jnp.log(arms.t) / arms.n)


# --- UCB-B2 (Cayci, Eryilmaz, Srikant, AISTATS 2020), as coded in Heyden et al., KDD 2024

_WIDTH, _BONUS = 2.01, 1.4  # the reference code's constants


def variance(total: jax.Array, rest: jax.Array, spread: Any, n: jax.Array) -> jax.Array:
    """Sample variance V̂ = (n x̄(1 − x̄) − Σx(1 − x)) / (n − 1); ¼ below two pulls."""
    squares = jnp.maximum(total * rest / n - spread, 0)
    return jnp.where(n < 2, 0.25, squares / jnp.maximum(n - 1, 1))


@pytree
class UCBB2(IndexPolicy):
    """UCB-B2: empirical-Bernstein radii of reward and cost around the ratio.

    .. math:: \\hat\\rho_k + 1.4\\, \\frac{\\varepsilon_k + \\hat\\rho_k \\eta_k}{\\bar c_k}, \\qquad
        \\hat\\rho_k = \\frac{\\bar r_k}{\\max(\\bar c_k, \\lambda)}, \\qquad \\varepsilon_k,
        \\eta_k = \\sqrt{2 \\hat V_k L / n_k} + 3 L / n_k, \\quad L = 2.01 \\ln(t - 1),

    with the sample variance of the reward in ε and of the cost in η; +∞ unless η_k < c̄_k. Leaps:
    the index reads its own arm and rises with t.

    Args:
        min_cost: λ ≥ 0 in the denominator of ρ̂. Default 0: no oracle. The reference code hands the
            true min_k μ^c_k to the policy, per instance ``[1, instance]``.

    Deviations: the guard compares the cost radius η with the mean *cost*; the reference code
    compares it with the mean reward.

    Example:
        >>> from jaxbandits.policies import UCBB2, scores
        >>> scores(UCBB2(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [2.7, inf]
    """

    min_cost: ArrayLike = leaf(default=0.0, at_least=0, at_most=1)

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        over_n = _WIDTH * jnp.log(jnp.maximum(arms.t - 1, 1)) / arms.n  # L/n
        reward_variance = variance(arms.reward, arms.reward_rest, arms.reward_spread, arms.n)
        cost_variance = variance(arms.cost, arms.cost_rest, arms.cost_spread, arms.n)
        epsilon = jnp.sqrt(2 * reward_variance * over_n) + 3 * over_n
        eta = jnp.sqrt(2 * cost_variance * over_n) + 3 * over_n
        ratio = arms.mean_reward / jnp.maximum(arms.mean_cost, self.min_cost)
        bonus = _BONUS * (epsilon + ratio * eta) / arms.mean_cost
        return jnp.where(eta < arms.mean_cost, ratio + bonus, jnp.inf)


# --- UCB-BV1 and UCB-BV2 (Ding, Qin, Zhang, Liu, AAAI 2013, Eqs. 3 and 4)


@pytree
class UCBBV1(IndexPolicy):
    """UCB-BV1: a known lower bound λ on the expected costs.

    .. math:: \\frac{\\bar r_k}{\\bar c_k} + \\frac{(1 + 1/\\lambda)\\, s_k}{\\lambda - s_k}, \\qquad
        s_k = \\sqrt{\\ln(t-1) / n_k};

    +∞ while λ ≤ s_k, or no cost was seen. So each arm is pulled about ln t / λ² times before its
    index is finite (4,900 times for λ = 0.05 at t = 2·10⁵). Leaps, by default with 40 arms or more:
    the index reads its own arm and rises with t.

    Args:
        min_cost: λ in (0, 1], per instance ``[1, instance]``; the true least mean cost is **an
            oracle**.

    Source: AAAI 2013, Eq. 3, through two independent public codings (the original could not be
    opened).

    Deviations: +∞ where λ ≤ s_k; the formula is negative there, which one public coding overlooks.

    Example:
        >>> from jaxbandits.policies import UCBBV1, scores
        >>> scores(UCBBV1(min_cost=0.1), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [inf, inf]
    """

    min_cost: ArrayLike = leaf(above=0, at_most=1)

    rests: ClassVar[bool] = True
    leaps_from: ClassVar[int] = 40  # with fewer, scan is up to 2.4 times as fast

    def score(self, arms: Arms) -> jax.Array:
        s = hoeffding_radius(jnp.ones_like(arms.n), arms)
        below = self.min_cost - s
        ratio = arms.reward / arms.cost + (1 + 1 / self.min_cost) * s / below
        return jnp.where((arms.cost > 0) & (below > 0), ratio, jnp.inf)


@pytree
class UCBBV2(IndexPolicy):
    """UCB-BV2: UCB-BV1 with an estimated lower bound on the costs.

    .. math:: \\frac{\\bar r_k}{\\bar c_k}
        + \\frac{1}{\\lambda_t} \\Big(1 + \\frac{1}{\\lambda_t - s_k}\\Big) s_k, \\qquad
        \\lambda_t = \\min_j \\bar c_j, \\quad s_k = \\sqrt{\\ln(t-1) / n_k};

    +∞ while λ_t ≤ s_k (so for all arms while some arm was never seen to cost anything). No
    parameter.

    Does not leap: λ_t reads the other arms' costs.

    Source: AAAI 2013, Eq. 4, through two independent public codings.

    Example:
        >>> from jaxbandits.policies import UCBBV2, scores
        >>> scores(UCBBV2(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [2.85, inf]
    """

    def score(self, arms: Arms) -> jax.Array:
        s, lowest = hoeffding_radius(jnp.ones_like(arms.n), arms), least_mean_cost(arms)
        below = lowest - s
        ratio = arms.reward / arms.cost + (1 + 1 / below) * s / lowest
        return jnp.where((arms.cost > 0) & (below > 0), ratio, jnp.inf)


# --- The index of UCB-V(∞) and UCB-AIR (Wang, Audibert, Munos, NIPS 2008), adapted in two ways


def bernstein_widths(arms: Arms, e: jax.Array) -> tuple[jax.Array, jax.Array]:
    """√(2 V̂ 𝓔/n) + 3 𝓔/n of reward and cost; V̂ = x̄(1 − x̄) − Σx(1 − x)/n, the biased variance."""

    def width(total: jax.Array, rest: jax.Array, spread: Any) -> jax.Array:
        variance = jnp.maximum(total * rest / arms.n - spread, 0) / arms.n
        return jnp.sqrt(2 * variance * e / arms.n) + 3 * e / arms.n

    of_reward = width(arms.reward, arms.reward_rest, arms.reward_spread)
    return of_reward, width(arms.cost, arms.cost_rest, arms.cost_spread)


@pytree
class UCBVReward(IndexPolicy):
    """The original UCB-V, which ignores costs.

    .. math:: \\bar r_k + \\sqrt{2 \\hat V_k \\mathcal{E}_t / n_k} + 3 \\mathcal{E}_t / n_k

    With :class:`SampledArms` it is UCB-V(∞), with :class:`ArmIncreasing` UCB-AIR. Its horizon under
    a budget is at most B/λ: take ``arms_to_sample(budget / least_cost, beta)`` arms.

    Args:
        exploration: 𝓔, default ln t; the original also allows :class:`SlowLogExploration`.

    Source: §2 as restated in secondary sources; the original's text could not be opened.
    """

    exploration: Exploration = leaf(default=LogExploration())

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        return arms.mean_reward + bernstein_widths(arms, self.exploration.at(arms.t))[0]


@pytree
class UCBVRatio(IndexPolicy):
    """UCB-V for the ratio (ours): empirical-Bernstein bounds above the reward and below the cost.

    .. math:: \\frac{\\min(\\bar r_k + w^r_k, 1)}{\\max(\\bar c_k - w^c_k, 0)}, \\qquad
        w = \\sqrt{2 \\hat V \\mathcal{E}_t / n} + 3 \\mathcal{E}_t / n;

    +∞ where the denominator is 0.

    Args:
        exploration: 𝓔, default ln t.
    """

    exploration: Exploration = leaf(default=LogExploration())

    spreads: ClassVar[bool] = True
    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        of_reward, of_cost = bernstein_widths(arms, self.exploration.at(arms.t))
        return ratio_of(jnp.minimum(arms.mean_reward + of_reward, 1), arms.mean_cost - of_cost)


# --- RCB, the index of RCB-I and RCB-AIR (Li, Xia, AAAI 2017)


@pytree
class RCB(IndexPolicy):
    """RCB: optimism in the numerator and the denominator, with an exploration sequence.

    .. math:: D_i = \\frac{\\min(\\bar r_i + E_i, 1)}{\\max(\\bar c_i - E_i, 0)}, \\qquad
        E_i = \\sqrt{\\frac{\\mathcal{E}_{t-1}}{2 n_i}};

    +∞ where the denominator is 0: until some 𝓔/(2c²) pulls of an arm with mean cost c. Each arm
    once first.

    RCB-I is ``SampledArms(RCB(), arms=arms_to_sample(budget, beta))``, RCB-AIR
    ``ArmIncreasing(RCB(), beta)``: see :func:`rcb_i` and :func:`rcb_air`.

    Args:
        exploration: 𝓔, default ln t, the upper end of what the theory allows;
            :class:`LogLogExploration` is the lower.

    Source: Algorithm 1, Eq. (4).

    Deviations: the printed radius is damaged in the text that could be read; the tail
    exp(−𝓔_{t−1}/2) stated beside it forces this form. First pulls in index order.
    """

    exploration: Exploration = leaf(default=LogExploration())

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        e = jnp.sqrt(self.exploration.at(arms.t - 1) / (2 * arms.n))
        return ratio_of(jnp.minimum(arms.mean_reward + e, 1), arms.mean_cost - e)
