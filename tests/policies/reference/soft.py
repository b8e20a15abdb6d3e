"""A float64 NumPy twin of a randomised policy, in the form in which the exact oracles ask for a
policy.

Written from the paper (Heyden et al., KDD 2024, Eq. 2): it takes counts before a round and gives
``[1, state, K]``.
"""

from __future__ import annotations

import numpy as np

from jaxbandits.oracles import Choice, Counts


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
