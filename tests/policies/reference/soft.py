"""Float64 NumPy twins of randomised policies and of UCB1, in the form in which the exact oracles ask for a policy.

Written from the papers: SoftElim from Boutilier et al. (arXiv 2002.06772), UCB1 from Auer et al. (2002), ω-UCB from
Heyden et al. (KDD 2024, Eq. 2). Each takes counts before a round and gives ``[1 + P, state, K]``.
"""

from __future__ import annotations

import numpy as np

from jaxbandits.oracles import Choice, Counts


def soft_elim(theta: float) -> Choice:
    """p ∝ exp(−2 (max r̄ − r̄)² n / θ²), r̄ = 1 without pulls; and dp/dθ through the score −(2/θ³)(s_a − Σ p s)."""

    def choose(counts: Counts) -> np.ndarray:
        n = counts.pulls.astype(float)
        mean = np.where(n > 0, counts.rewards / np.maximum(n, 1), 1.0)
        s = -2 * (mean.max(axis=1, keepdims=True) - mean) ** 2 * n
        p = np.exp(s / theta**2)
        p /= p.sum(axis=1, keepdims=True)
        return np.stack([p, p * -2 / theta**3 * (s - (p * s).sum(axis=1, keepdims=True))])

    return choose


def ucb1(c: float) -> Choice:
    """r̄ + √(c ln t / n), t = pulls so far, unpulled arms first, ties to the lowest index."""

    def choose(counts: Counts) -> np.ndarray:
        n = counts.pulls
        t = n.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(n > 0, counts.rewards / n + np.sqrt(c * np.log(np.maximum(t, 1)) / n), np.inf)
        return (score.argmax(axis=1)[:, None] == np.arange(n.shape[1])).astype(float)[None]

    return choose


def soft_omega(rho: float, temperature: float) -> Choice:
    """softmax(ω⁺/ω⁻ / temperature), each arm once first, uniformly among +∞."""

    def choose(counts: Counts) -> np.ndarray:
        n, s, c = (x.astype(float) for x in counts)
        z = 2 * rho * np.log(1 + n.sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            half = [np.sqrt(z) / (n + z) * np.sqrt(x * (n - x) / n + z / 4) for x in (s, c)]
            upper, lower = (s + z / 2) / (n + z) + half[0], (c + z / 2) / (n + z) - half[1]
            score = np.where(c > 0, upper / lower, np.inf)
        p = np.zeros_like(n)
        for i in range(len(n)):
            if (n[i] == 0).any():
                p[i, np.flatnonzero(n[i] == 0)[0]] = 1
            elif np.isinf(score[i]).any():
                p[i] = np.isinf(score[i]) / np.isinf(score[i]).sum()
            else:
                e = np.exp((score[i] - score[i].max()) / temperature)
                p[i] = e / e.sum()
        return p[None]

    return choose
