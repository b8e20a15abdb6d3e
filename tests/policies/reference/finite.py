"""Float64 NumPy twins of the policies for a budget that draw, written from the papers and the specification.

Sources: P-omega = ``papers/omega_ucb.txt`` (omega-UCB paper); SPEC = ``ALGORITHMS.md``, 0, A.3, A.6.
Everything is recomputed from the raw state on each call; nothing is optimised. ``t`` is the 1-based index of
the round about to be decided, so ``t - 1`` rounds are completed (SPEC 0).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def argmax_set(scores: FloatArray) -> frozenset[int]:
    """All indices that attain the maximum, ``inf`` included (SPEC 0 breaks ties at random, hence a set)."""
    best = max(float(s) for s in scores)
    return frozenset(k for k, s in enumerate(scores) if float(s) == best)


def omega_interval(n: float, mean: float, k_z: float) -> tuple[float, float]:
    """Interval of P-omega Theorem 1 on [0, 1], ``k_z = z^2 * eta``; returns ``(lower, upper)``.

    With m = 0, M = 1: A = n + k_z, B = 2 n mean + k_z, C = n mean^2. The upper root is
    B/2A + sqrt(B^2/4A^2 - C/A) with the discriminant expanded by hand; the lower root comes from Vieta
    (product of the roots = C/A), which has no cancellation and is exactly 0 if and only if mean is 0.
    """
    a = n + k_z
    upper = (n * mean + 0.5 * k_z) / a + math.sqrt(k_z) / a * math.sqrt(n * mean * (1.0 - mean) + 0.25 * k_z)
    if mean == 0.0:
        return 0.0, min(upper, 1.0)
    lower = (n * mean * mean / a) / upper
    return lower, min(upper, 1.0)


class _Policy:
    """Counts and sums shared by all twins; ``rounds`` is the number of completed rounds."""

    def __init__(self, K: int) -> None:
        self.K = K
        self.n: IntArray = np.zeros(K, dtype=np.int64)
        self.sum_r: FloatArray = np.zeros(K, dtype=np.float64)
        self.sum_c: FloatArray = np.zeros(K, dtype=np.float64)
        self.rounds = 0

    @property
    def t(self) -> int:
        """1-based index of the round about to be decided (SPEC 0)."""
        return self.rounds + 1

    def unpulled(self) -> list[int]:
        """Arms without a completed pull, ascending."""
        return [k for k in range(self.K) if self.n[k] == 0]

    def initial_arm(self) -> int | None:
        """Next arm of the "once each" initialisation in index order, or None (SPEC 0)."""
        rest = self.unpulled()
        return rest[0] if rest else None

    def update(self, arm: int, reward: float, cost: float) -> None:
        """Record one completed round."""
        self.n[arm] += 1
        self.sum_r[arm] += reward
        self.sum_c[arm] += cost
        self.rounds += 1


class BudgetedThompson(_Policy):
    """BTS: Beta(1 + successes, 1 + failures) for reward and for cost (P-omega App. B Table 2; SPEC A.3).

    The random draws come from outside: posterior samples to ``decide``, Bernoulli trials to ``update``.
    """

    def __init__(self, K: int) -> None:
        super().__init__(K)
        self.s_r: IntArray = np.zeros(K, dtype=np.int64)
        self.f_r: IntArray = np.zeros(K, dtype=np.int64)
        self.s_c: IntArray = np.zeros(K, dtype=np.int64)
        self.f_c: IntArray = np.zeros(K, dtype=np.int64)

    def posterior(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Beta parameters ``(alpha_r, beta_r, alpha_c, beta_c)``, each of length K."""
        a_r, b_r, a_c, b_c = (1.0 + x.astype(np.float64) for x in (self.s_r, self.f_r, self.s_c, self.f_c))
        return a_r, b_r, a_c, b_c

    def decide(self, theta_r: FloatArray, theta_c: FloatArray) -> int:
        """First maximiser of ``theta_r / theta_c`` (a zero denominator counts as inf)."""
        best, arm = -math.inf, 0
        for k in range(self.K):
            ratio = float(theta_r[k]) / float(theta_c[k]) if float(theta_c[k]) > 0.0 else math.inf
            if ratio > best:
                best, arm = ratio, k
        return arm

    @staticmethod
    def _trial(value: float, b: int | None) -> int:
        """0/1 outcome of the Bernoulli(value) trial ``b``; a value of exactly 0 or 1 is used as is."""
        if value == 0.0 or value == 1.0:
            if b is not None and int(b) != int(value):
                raise ValueError("a Bernoulli trial of an exact 0 or 1 must return that value")
            return int(value)
        if b is None:
            raise ValueError("a fractional outcome needs its Bernoulli trial")
        return int(b)

    def update(self, arm: int, reward: float, cost: float, b_r: int | None = None, b_c: int | None = None) -> None:
        """Record one completed round; ``b_r``, ``b_c`` are the Bernoulli(reward), Bernoulli(cost) trials."""
        trial_r, trial_c = self._trial(reward, b_r), self._trial(cost, b_c)
        super().update(arm, reward, cost)
        self.s_r[arm] += trial_r
        self.f_r[arm] += 1 - trial_r
        self.s_c[arm] += trial_c
        self.f_c[arm] += 1 - trial_c


class BGreedyDecision(NamedTuple):
    """Outcome of ``BGreedy.decide``: ``arm`` is the lowest-index member of ``maximisers`` unless explored."""

    arm: int
    maximisers: frozenset[int]
    explored: bool


class BGreedy(_Policy):
    """b-greedy: explore with probability min(1, a K / (t - 1)), else max sum r / (sum c + 1e-10) (A.6)."""

    def __init__(self, K: int, a: float = 1.0) -> None:
        super().__init__(K)
        self.a = a

    def probability(self) -> float:
        """Probability of a uniformly random arm in round t; 1 in round 1 (no completed round)."""
        return 1.0 if self.rounds == 0 else min(1.0, self.a * self.K / self.rounds)

    def greedy_scores(self) -> FloatArray:
        """``sum r / (sum c + 1e-10)`` per arm."""
        return np.array([float(r) / (float(c) + 1e-10) for r, c in zip(self.sum_r, self.sum_c, strict=True)])

    def decide(self, explore_uniform: float, arm_uniform: float) -> BGreedyDecision:
        """Initial arm if any; else explore iff ``explore_uniform < probability()``, then floor(u K)."""
        first = self.initial_arm()
        if first is not None:
            return BGreedyDecision(first, frozenset({first}), False)
        if explore_uniform < self.probability():
            arm = min(math.floor(arm_uniform * self.K), self.K - 1)
            return BGreedyDecision(arm, frozenset({arm}), True)
        ties = argmax_set(self.greedy_scores())
        return BGreedyDecision(min(ties), ties, False)
