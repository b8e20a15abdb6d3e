"""Bayes-optimal play of two Bernoulli arms, by backward dynamic programming over the posterior."""

from __future__ import annotations

import numpy as np

from jaxbandits.core.errors import bad
from jaxbandits.core.numbers import whole_number


def bayes_optimal_reward(rounds: int, prior: tuple[float, float] = (1.0, 1.0)) -> float:
    """The largest expected total reward of any policy in ``rounds`` rounds of two Bernoulli arms.

    V_t(s₁, f₁, s₂, f₂) = max_k [ p_k (1 + V_{t+1}(s_k + 1)) + (1 − p_k) V_{t+1}(f_k + 1) ],
    p_k = (α + s_k)/(α + β + s_k + f_k), where both means are drawn from Beta(α, β).

    Args:
        rounds: T, from 1 to 400 (memory T³).
        prior: (α, β), both above 0.

    Returns:
        The expected total reward, float64.

    Raises:
        InputError: another size or prior.

    Example:
        >>> from jaxbandits import oracles
        >>> round(oracles.bayes_optimal_reward(10), 6)
        6.021786
    """
    whole_number("rounds", rounds, 1, 400)
    alpha, beta = prior
    if not (alpha > 0 and beta > 0):
        raise bad("prior", prior, "two numbers above 0")
    # value[n1, s1, s2] after t rounds, n2 = t − n1; entries with s1 > n1 or s2 > n2 mean nothing and are never used
    value = np.zeros((rounds + 1, rounds + 1, rounds + 1))
    for t in reversed(range(rounds)):
        n1 = np.arange(t + 1)[:, None, None]
        s1, s2 = np.arange(t + 1)[None, :, None], np.arange(t + 1)[None, None, :]
        p1 = (alpha + s1) / (alpha + beta + n1)
        p2 = (alpha + s2) / (alpha + beta + (t - n1))
        here = value[: t + 1, : t + 1, : t + 1]
        first = p1 * (1 + value[1 : t + 2, 1 : t + 2, : t + 1]) + (1 - p1) * value[1 : t + 2, : t + 1, : t + 1]
        second = p2 * (1 + value[: t + 1, : t + 1, 1 : t + 2]) + (1 - p2) * here
        value = np.maximum(first, second)
        value = np.pad(value, (0, 1))
    return float(value[0, 0, 0])


def bayes_optimal_regret(rounds: int, prior: tuple[float, float] = (1.0, 1.0)) -> float:
    """T · E max(μ₁, μ₂) minus :func:`bayes_optimal_reward`: the least Bayes regret that is possible.

    Example:
        >>> from jaxbandits import oracles
        >>> round(oracles.bayes_optimal_regret(10), 6)
        0.644881
    """
    from scipy import stats

    law = stats.beta(*prior)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    x = (nodes + 1) / 2
    best = 1 - float((weights / 2 * law.cdf(x) ** 2).sum())  # E max = 1 − ∫ F²
    return rounds * best - bayes_optimal_reward(rounds, prior)
