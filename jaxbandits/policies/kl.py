"""UCB-SC and KL-UCB-SC, with and without plus.

Source: Watanabe, Komiyama, Nakamura, Kudo: KL-UCB-based policy for budgeted multi-armed bandits
with stochastic action costs, IEICE E100-A(11), 2017; UCB-SC: a fast variant, IEICE E101-A(3), 2018.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxbandits.core.arm_statistics import Arms
from jaxbandits.core.pytrees import pytree
from jaxbandits.policies.base import IndexPolicy

STEPS = 5
"""Newton steps of :func:`steepest`.

Three leave an error of ln θ above 1e-5 in 7 % of random states of arms (n from 1 to 10⁵, means of
all kinds, θ < 1e12), four in hardly any; five leave less than 1e-8 in all; float32 alone costs
about 1e-6.
"""

_LARGEST = 1e30  # an index above it is this: float32 ends near 3e38
_TINY = 1e-30  # in place of a mean reward of 0, whose logarithm the start needs


def exploration(arms: Arms) -> jax.Array:
    """ln(t/n_k), as ln(1 + (t − n)/n): no logarithm near 1 cancels.

    The difference is exact below 2²⁴; above, it may round to 0, and it is 1 at least, for an arm
    had t − 1 pulls.
    """
    return jnp.log1p(jnp.maximum(arms.t - arms.n, 1) / arms.n)


@pytree
class UCBSCPlus(IndexPolicy):
    """UCB-SC+: the largest ratio r/c in a disc around (c̄, r̄); the Pinsker form of KL-UCB-SC+.

    .. math:: \\frac{\\bar r_k + a_k \\bar c_k}{\\bar c_k - a_k \\bar r_k}, \\qquad
        a_k = \\sqrt{\\frac{\\beta_k}{\\bar r_k^2 + \\bar c_k^2 - \\beta_k}}, \\qquad
        \\beta_k = \\frac{\\ln(t/n_k)}{2 n_k};

    +∞ if c̄² ≤ β. No parameter. Leaps: the disc of an arm that rests only grows.

    Source: Heyden et al., KDD 2024, Table 2.

    Deviations: t is the round to be decided, as printed (the reference code counts completed
    rounds), and +∞ at equality too, where the code divides by zero.

    Example:
        >>> from jaxbandits.policies import UCBSCPlus, scores
        >>> scores(UCBSCPlus(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.8, 2.86]
    """

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        return steepest_in_disc(arms, exploration(arms))


@pytree
class UCBSC(IndexPolicy):
    """UCB-SC, without plus: :class:`UCBSCPlus` with ln t in place of ln(t/n), hence wider.

    So :math:`\\beta_k = \\ln t / (2 n_k)`. No parameter. Leaps: the disc of an arm that rests only
    grows.

    Source: the naming of KL-UCB and KL-UCB+; the paper could not be read.

    Example:
        >>> from jaxbandits.policies import UCBSC, scores
        >>> scores(UCBSC(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [1.11, 20.96]
    """

    rests: ClassVar[bool] = True

    def score(self, arms: Arms) -> jax.Array:
        return steepest_in_disc(arms, jnp.log(arms.t))


@pytree
class KLUCBSCPlus(IndexPolicy):
    """KL-UCB-SC+: the largest ratio that is consistent with the data.

    .. math:: \\sup \\{ r/c : n_k [ d(\\bar r_k, r) + d(\\bar c_k, c) ] \\le \\ln(t/n_k) \\},

    d the Kullback-Leibler divergence of Bernoulli laws; +∞ while no cost was seen. For outcomes
    within [0, 1] it is valid and conservative. No parameter. Scan only: the set of an arm that
    rests only grows, but in float32 the index may fall all the same, on rare states by more than a
    percent.

    Source: IEICE 2017, of which only the abstract could be read: the definition is reconstructed
    from it, from UCB-SC+ (its Pinsker form) and from the naming of KL-UCB and KL-UCB+.

    Deviations: an index above 1e30 counts as 1e30. In float32 the index is right to 2·10⁻⁴, mostly
    to 10⁻⁵.

    Example:
        >>> from jaxbandits.policies import KLUCBSCPlus, scores
        >>> scores(KLUCBSCPlus(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [0.8, 2.49]
    """

    rounding: ClassVar[float] = 2.0**-14

    def score(self, arms: Arms) -> jax.Array:
        return not_refuted(arms, exploration(arms))


@pytree
class KLUCBSC(IndexPolicy):
    """KL-UCB-SC, without plus: :class:`KLUCBSCPlus` with ln t in place of ln(t/n), hence wider.

    .. math:: \\sup \\{ r/c : n_k [ d(\\bar r_k, r) + d(\\bar c_k, c) ] \\le \\ln t \\},

    d the Kullback-Leibler divergence of Bernoulli laws; +∞ while no cost was seen. No parameter.
    Scan only, as with plus.

    Source: as :class:`KLUCBSCPlus`; a ln ln t on the right, which the paper may have, is left out.

    Deviations: an index above 1e30 counts as 1e30.

    Example:
        >>> from jaxbandits.policies import KLUCBSC, scores
        >>> scores(KLUCBSC(), pulls=[90, 10], reward=[45, 4], cost=[60, 5], round=101).round(2).tolist()
        [1.1, 4.46]
    """

    rounding: ClassVar[float] = 2.0**-14

    def score(self, arms: Arms) -> jax.Array:
        return not_refuted(arms, jnp.log(arms.t))


def steepest_in_disc(arms: Arms, exploration: jax.Array) -> jax.Array:
    """Largest ratio within radius² ``exploration``/(2n) of (c̄, r̄); +∞ if it reaches c = 0."""
    reward, cost = arms.mean_reward, arms.mean_cost
    beta = exploration / (2 * arms.n)
    a = jnp.sqrt(beta / (reward * reward + cost * cost - beta))
    below = cost - a * reward
    return jnp.where((cost * cost > beta) & (below > 0), (reward + a * cost) / below, jnp.inf)


def not_refuted(arms: Arms, exploration: jax.Array) -> jax.Array:
    """sup{r/c : n [d(r̄, r) + d(c̄, c)] ≤ ``exploration``}; +∞ while no cost was seen."""
    means = arms.mean_reward, arms.reward_rest / arms.n, arms.mean_cost, arms.cost_rest / arms.n
    return jnp.where(arms.cost > 0, steepest(*means, exploration / arms.n), jnp.inf)


def steepest(
    reward: jax.Array, no_reward: jax.Array, cost: jax.Array, no_cost: jax.Array, level: jax.Array
) -> jax.Array:
    """The largest θ = r/c with D = d(r̄, r) + d(c̄, c) ≤ ``level`` (above 0), for c̄ > 0, elementwise.

    The least D on the line r = θc is a *convex* function of ln θ, and its slope is s = (r − r̄)/(1
    − r) = (c̄ − c)/(1 − c) at the cheapest point (the two are equal there). So Newton's method in
    ln θ converges from every start, from above after one step, and each step costs one square root
    and a few logarithms. Its start is the ratio of the outer ends of two Wilson intervals, which is
    a little above the result, or else below it where D is all but linear.
    """
    reward, z2 = jnp.maximum(reward, _TINY), 2 * level
    above = z2 / 2 + jnp.sqrt(z2) * jnp.sqrt(reward * no_reward + z2 / 4)
    below = z2 / 2 + jnp.sqrt(z2) * jnp.sqrt(cost * no_cost + z2 / 4)
    excess = jnp.log1p(above / reward) - jnp.log1p(z2) + jnp.log1p(below / cost)  # ln θ − ln(r̄/c̄)
    for _ in range(STEPS):
        slope, divergence = _cheapest(reward, no_reward, cost, no_cost, excess)
        excess = jnp.clip(excess - (divergence - level) / slope, 1e-12, 140.0)
    half = jnp.exp(excess / 2)
    return jnp.minimum((reward * half) * (half / cost), _LARGEST)


def _cheapest(
    reward: jax.Array, no_reward: jax.Array, cost: jax.Array, no_cost: jax.Array, excess: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(s, D) at the cheapest point of the line of slope θ = (r̄/c̄) e^excess.

    s solves (1 − κ)s² + (1 − c̄ + κ(1 − r̄))s = c̄ − κr̄ with κ = 1/θ. Its discriminant is written
    as a sum of squares, and D as four logarithms of the order of s, so that nothing cancels when
    all is small.
    """
    half = jnp.exp(-excess / 2)  # its square may be smaller than any float32
    inverse = jnp.clip(cost / reward * half * half, 1e-36, 1e18)
    gap = -cost * jnp.expm1(-excess)  # c̄ − κr̄
    # κ(1 + r̄) − (1 + c̄); near r̄ = c̄ = 1 from the differences to 1
    near_one = ((no_reward - no_cost) - gap) / reward - gap
    middle = jnp.where(reward > 0.5, near_one, inverse * (1 + reward) - (1 + cost))
    root = jnp.sqrt(middle * middle + 4 * inverse * no_reward * no_cost)
    s = jnp.minimum(2 * gap / (no_cost + inverse * no_reward + root), cost)
    c = (reward + s) * inverse / (1 + s)
    of_reward = jnp.log1p(s) - reward * jnp.log1p(s / reward)  # d(r̄, r)
    of_cost = no_cost * jnp.log1p(-jnp.minimum(s, 1 - 2.0**-24)) + cost * jnp.log1p(
        s * jnp.maximum(1 - c, 0) / c
    )
    return s, of_reward + of_cost
