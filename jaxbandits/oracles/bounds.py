"""Closed-form regret bounds of the papers, as functions that :func:`jax.grad` differentiates.

Written in ``jax.numpy`` for one instance; the dtype is that of the input (give float64 arrays under
a scoped ``jax.enable_x64(True)`` for float64). A bound says what cannot be exceeded: it is often
far above the regret itself, and its gradient says where the *bound* falls, not where the regret
does.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from jaxbandits._numerics import knapsack_lp

_BLOCK = 1 << 14


def omega_pulls(
    rho: jax.Array, mean_reward: jax.Array, mean_cost: jax.Array, tau: int
) -> jax.Array:
    """ω-UCB, Theorem 4: a bound on the expected pulls of every suboptimal arm before round τ.

    .. math:: 1 + n_k^*(\\tau) + \\xi(\\tau, \\rho), \\quad n_k^* = \\frac{8 \\rho \\ln \\tau}{\\delta_k^2}
        \\max\\Big(\\frac{\\mu_k^r}{1 - \\mu_k^r}, \\frac{1 - \\mu_k^c}{\\mu_k^c}\\Big), \\quad
        \\delta_k = \\frac{\\Delta_k}{\\Delta_k + 1/\\mu_k^c},

    ξ = (τ − K)(2 − √(1 − τ^{−ρ})) − Σ_{t=K+1}^{τ} √(1 − t^{−ρ}).

    Args:
        rho: ρ > 0.
        mean_reward, mean_cost: μ^r in [0, 1), μ^c in (0, 1], ``[K]``.
        tau: τ > K, a Python integer.

    Returns:
        ``[K]``; 0 for the best arm, of which the theorem says nothing.

    Source: Heyden et al., KDD 2024, Theorem 4, with η = 1, as for Bernoulli arms.
    """
    gap, best = _ratio_gaps(mean_reward, mean_cost)
    delta = jnp.where(best, 1.0, gap / (gap + 1 / mean_cost))
    worst = jnp.maximum(mean_reward / (1 - mean_reward), (1 - mean_cost) / mean_cost)
    initial = 8 * rho * math.log(tau) / (delta * delta) * worst
    arms = gap.shape[0]
    later = (tau - arms) * (2 - jnp.sqrt(1 - tau ** (-rho))) - _root_sum(rho, arms + 1, tau)
    return jnp.where(best, 0.0, 1 + initial + later)


def omega_regret_at(
    rho: jax.Array, mean_reward: jax.Array, mean_cost: jax.Array, tau: int
) -> jax.Array:
    """ω-UCB, Theorem 5: a bound on the regret with budget B.

    .. math:: \\sum_k \\Delta_k (1 + n_k^*(\\tau_B) + \\xi(\\tau_B, \\rho)) + \\frac{2 \\mu_1^r}{\\mu_1^c}, \\qquad
        \\tau_B = \\lfloor 2B / \\min_k \\mu_k^c \\rfloor.

    Args:
        rho, mean_reward, mean_cost: as in :func:`omega_pulls`.
        tau: τ_B, a Python integer: as a step function of the smallest mean cost it has no
            derivative.

    Source: Theorem 5.

    Deviations: without the term 𝒳(B) Σ_k Δ_k, as the paper states only that 𝒳(B) is O((B/μ_min)
    exp(−B μ_min / 2)).
    """
    gap, _ = _ratio_gaps(mean_reward, mean_cost)
    pulls = omega_pulls(rho, mean_reward, mean_cost, tau)
    return jnp.sum(gap * pulls) + 2 * jnp.max(mean_reward / mean_cost)


def rcucb_regret(
    alpha: jax.Array, values: jax.Array, penalties: jax.Array, rounds: int
) -> jax.Array:
    """RCUCB, Theorem 1 without its negative term: a bound on the regret after T rounds.

    .. math:: \\sum_{i,\\tau} \\Delta_{i\\tau} u_{i\\tau}, \\quad
        u = \\frac{8 \\alpha (1 + \\lambda(\\tau))^2 \\ln T}{\\Delta^2} + 1
        + \\frac{8}{\\ln\\frac{\\alpha+1}{2}} \\Big(\\frac{\\alpha+1}{\\alpha-1}\\Big)^2.

    Args:
        alpha: α > 1.
        values: v_{iτ}, ``[n, m]``, limits increasing.
        penalties: λ(τ), ``[m]``.
        rounds: T.

    Source: Bengs and Hüllermeier, Machine Learning 2023, Theorem 1.

    Deviations: the second sum has the factor P(A_ε), which has no closed form; the first alone is a
    bound, too.
    """
    gap = jnp.max(values) - values
    log = math.log(rounds)
    rest = 1 + 8 / jnp.log((alpha + 1) / 2) * ((alpha + 1) / (alpha - 1)) ** 2
    safe = jnp.where(gap > 0, gap, 1.0)
    pulls = 8 * alpha * (1 + penalties[None, :]) ** 2 * log / safe
    return jnp.sum(jnp.where(gap > 0, pulls + gap * rest, 0.0))


def suak_regret(
    mean_reward: jax.Array, mean_cost: jax.Array, c: jax.Array, rounds: int
) -> jax.Array:
    """SUAK, Theorem 3.2: a bound on the regret after T rounds with average cost at most c.

    .. math:: \\sum_i \\frac{432\\, r^* \\big(\\frac{\\delta_i + 1}{\\delta_i}\\big)^2 \\ln T}
        {\\delta_{\\min} \\Delta_{\\min,i}^2} + \\frac{241\\, K r^* \\ln T}{c\\, \\delta_{\\min}^2}
        + \\frac{3 \\pi^2 r^*}{\\delta_{\\min}^2} + 2 \\pi^2 K^2,

    δ_i = ``|ρ_i − c|``, Δ_{min,i} the smallest reward gap of a suboptimal base that holds arm i, r*
    the LP's value. With a gap of 0 the bound is +∞.

    Args:
        mean_reward, mean_cost: μ and ρ of the real arms, ``[K]``; no ρ may equal c.
        c: bound on the average cost.
        rounds: T.

    Deviations: a base counts only if its own optimum plays both members; otherwise it repeats a
    smaller base, and its gap would be that one's, possibly 0.

    Source: Theorem 3.2, Eq. (11).

    Example:
        >>> import jax.numpy as jnp
        >>> bound = suak_regret(jnp.array([0.45, 0.7, 0.8]), jnp.array([0.3, 0.75, 0.8]), jnp.float32(0.5), 500_000)
        >>> bool(bound > 500_000)
        True
    """
    arms = mean_reward.shape[0]
    table = knapsack_lp.vertices(mean_reward, mean_cost, c)
    best = jnp.max(table)
    mu = knapsack_lp.with_null(mean_reward)
    # A pair that plays its dear member
    both = (mu[:, None] > mu[None, :]) | jnp.eye(arms + 1, dtype=bool)
    gap = jnp.where(both & jnp.isfinite(table) & (table < best), best - table, jnp.inf)
    smallest_gap = jnp.minimum(jnp.min(gap, axis=0), jnp.min(gap, axis=1))[:arms]
    cost_gap = jnp.abs(mean_cost - c)
    smallest = jnp.min(cost_gap)
    log = math.log(rounds)
    gaps = smallest * smallest_gap * smallest_gap
    first = jnp.sum(432 * best * ((cost_gap + 1) / cost_gap) ** 2 * log / gaps)
    second = 241 * arms * best * log / (c * smallest * smallest)
    third = 3 * math.pi**2 * best / (smallest * smallest)
    return first + second + third + 2 * math.pi**2 * arms * arms


def _ratio_gaps(mean_reward: jax.Array, mean_cost: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(Δ_k = max μ^r/μ^c − μ^r_k/μ^c_k, whether k is the best arm)."""
    ratio = mean_reward / mean_cost
    best = jnp.arange(ratio.shape[0]) == jnp.argmax(ratio)
    return jnp.where(best, 0.0, jnp.max(ratio) - ratio), best


def _root_sum(rho: jax.Array, first: int, last: int) -> jax.Array:
    """Σ_{t=first}^{last} √(1 − t^{−ρ}), block by block."""
    blocks = max(-(-(last - first + 1) // _BLOCK), 1)
    steps = jnp.arange(_BLOCK)

    def add(total: jax.Array, block: jax.Array) -> tuple[jax.Array, None]:
        t = (first + block * _BLOCK + steps).astype(total.dtype)
        inside = t <= last
        root = jnp.sqrt(1 - jnp.where(inside, jnp.maximum(t, 2), 2.0) ** (-rho))
        return total + jnp.sum(jnp.where(inside & (t > 1), root, 0.0)), None

    zero = jnp.zeros((), jnp.result_type(rho, jnp.float32))
    return jax.lax.scan(add, zero, jnp.arange(blocks))[0]
