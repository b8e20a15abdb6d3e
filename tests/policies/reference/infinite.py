"""Float64 NumPy twins for infinitely many arms, written from the paper and the specification.

Sources: P-RCB = ``papers/rcb.txt`` (Li, Xia, AAAI 2017); SPEC = ``ALGORITHMS.md`` E. The set of arms is what is new: a
twin starts empty, arms join it, and every score is recomputed from the raw observations of the arms that have joined.
``t`` is the 1-based round about to be decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .budgeted import Seen

FloatArray = NDArray[np.float64]
Sequence_ = Callable[[int], float]


def log_sequence(t: int) -> float:
    """Upper end of the interval that P-RCB Theorem 1 and 3 allow: ln t (SPEC E.1: ln max(t, 2))."""
    return math.log(max(t, 2))


def lower_sequence(t: int) -> float:
    """Lower end: 2 ln(4 (log2 t + 1))."""
    return 2.0 * math.log(4.0 * (math.log2(max(t, 1)) + 1.0))


def slow_sequence(t: int) -> float:
    """UCB-V(infinity)'s lower end, 2 ln(10 ln t) (SPEC E.4), with t at least 2."""
    return 2.0 * math.log(10.0 * math.log(max(t, 2)))


def exponent(beta: float) -> float:
    """P-RCB Eq. (5): beta/2 below 1, beta/(1 + beta) from 1 on."""
    return beta / 2.0 if beta < 1.0 else beta / (1.0 + beta)


def sampled(budget: float, beta: float, multiplier: float = 1.0) -> int:
    """SPEC E.2: K = max(2, ceil(multiplier * B^e)); a power within 1e-9 of a whole number is that number."""
    power = multiplier * budget ** exponent(beta)
    nearest = round(power)
    return max(2, nearest if abs(power - nearest) < 1e-9 * power else math.ceil(power))


class _Set:
    """Arms that have joined, with all their observations."""

    def __init__(self) -> None:
        self.rewards: list[list[float]] = []
        self.costs: list[list[float]] = []
        self.rounds = 0

    @property
    def t(self) -> int:
        return self.rounds + 1

    @property
    def size(self) -> int:
        return len(self.rewards)

    def join(self) -> None:
        """One more arm, unpulled."""
        self.rewards.append([])
        self.costs.append([])

    def learn(self, arm: int, reward: float, cost: float) -> None:
        self.rewards[arm].append(reward)
        self.costs[arm].append(cost)
        self.rounds += 1

    def unpulled(self) -> list[int]:
        return [i for i, seen in enumerate(self.rewards) if not seen]

    def index(self, arm: int) -> float:
        raise NotImplementedError

    def scores(self) -> FloatArray:
        """Index of every arm that has joined, +inf for one without a pull."""
        return np.array([self.index(i) if self.rewards[i] else math.inf for i in range(self.size)])


def _ratio(upper: float, lower: float) -> float:
    return min(upper, 1.0) / lower if lower > 0.0 else math.inf


class RCB(_Set):
    """P-RCB Eq. (4): min(r + E, 1) / max(c - E, 0), E = sqrt(E_{t-1} / (2 T))."""

    def __init__(self, sequence: Sequence_ = log_sequence) -> None:
        super().__init__()
        self.sequence = sequence

    def radius(self, arm: int) -> float:
        return math.sqrt(self.sequence(self.t - 1) / (2.0 * len(self.rewards[arm])))

    def index(self, arm: int) -> float:
        e = self.radius(arm)
        return _ratio(float(np.mean(self.rewards[arm])) + e, float(np.mean(self.costs[arm])) - e)


class _UCBV(_Set):
    def __init__(self, sequence: Sequence_ = log_sequence) -> None:
        super().__init__()
        self.sequence = sequence

    def width(self, seen: list[float]) -> float:
        """SPEC E.4: sqrt(2 V E / n) + 3 E / n, V the biased sample variance, E at the current round."""
        e, n = self.sequence(self.t), len(seen)
        return math.sqrt(2.0 * float(np.var(seen)) * e / n) + 3.0 * e / n


class UCBVReward(_UCBV):
    """SPEC E.4 (a): the original's index on rewards, costs ignored."""

    def index(self, arm: int) -> float:
        return float(np.mean(self.rewards[arm])) + self.width(self.rewards[arm])


class UCBVRatio(_UCBV):
    """SPEC E.4 (b): empirical-Bernstein bounds on both means."""

    def index(self, arm: int) -> float:
        upper = float(np.mean(self.rewards[arm])) + self.width(self.rewards[arm])
        return _ratio(upper, float(np.mean(self.costs[arm])) - self.width(self.costs[arm]))


class ByScore(_Set):
    """The index of a policy for a budget (``budgeted.omega``, say) on a set that may grow."""

    def __init__(self, score: Callable[[Seen], FloatArray]) -> None:
        super().__init__()
        self.score = score

    def index(self, arm: int) -> float:
        seen = (np.array(x) for x in (self.rewards[arm], self.costs[arm]))
        sums = [[x.sum(), (x**2).sum()] for x in seen]
        (r, rr), (c, cc) = sums
        s = Seen(*(np.array([float(x)]) for x in (self.t, len(self.rewards[arm]), r, c, rr, cc)))
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.score(s)[0])


class Sampled:
    """P-RCB Algorithm 2: K arms join before round 1; each is pulled once, in order; then the largest index."""

    def __init__(self, inside: _Set, arms: int) -> None:
        self.inside = inside
        for _ in range(arms):
            inside.join()

    def begin(self) -> None:
        """What happens at the beginning of a round, before the choice."""


class Increasing:
    """P-RCB Algorithm 3: at round t, if K_{t-1} < t^e, one new arm joins. SPEC E.3: it is played now."""

    def __init__(self, inside: _Set, beta: float) -> None:
        self.inside, self.beta = inside, beta

    def begin(self) -> None:
        power = self.inside.t ** exponent(self.beta)
        if self.inside.size < power * (1.0 - 1e-12):  # a whole power, but for rounding, is not exceeded
            self.inside.join()
