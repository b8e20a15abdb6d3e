"""Float64 NumPy twins for infinitely many arms, written from the paper and the specification.

Sources: P-RCB = ``papers/rcb.txt`` (Li, Xia, AAAI 2017); SPEC = ``ALGORITHMS.md`` E. The set of
arms is what is new; an index is a function of what was seen of the arms that have joined. ``t`` is
the 1-based round about to be decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .budgeted import Floats, Seen, or_infinite

Sequence_ = Callable[[Floats], Floats]


def log_sequence(t: Floats) -> Floats:
    """Upper end of the interval that P-RCB Theorem 1 and 3 allow: ln t (SPEC E.1: ln max(t, 2))."""
    return np.log(np.maximum(t, 2))


def lower_sequence(t: Floats) -> Floats:
    """Lower end: 2 ln(4 (log2 t + 1))."""
    return 2.0 * np.log(4.0 * (np.log2(np.maximum(t, 1)) + 1.0))


def slow_sequence(t: Floats) -> Floats:
    """UCB-V(infinity)'s lower end, 2 ln(10 ln t) (SPEC E.4), with t at least 2."""
    return 2.0 * np.log(10.0 * np.log(np.maximum(t, 2)))


def exponent(beta: float) -> float:
    """P-RCB Eq. (5): beta/2 below 1, beta/(1 + beta) from 1 on."""
    return beta / 2.0 if beta < 1.0 else beta / (1.0 + beta)


def sampled(budget: float, beta: float, multiplier: float = 1.0) -> int:
    """SPEC E.2: K = max(2, ceil(multiplier * B^e)), but for rounding of 1e-9."""
    power = multiplier * budget ** exponent(beta)
    nearest = round(power)
    return max(2, nearest if abs(power - nearest) < 1e-9 * power else math.ceil(power))


def joined(rounds: int, beta: float) -> np.ndarray:
    """P-RCB Algorithm 3: if K_{t-1} < t^e, one new arm joins, played now (SPEC E.3)."""
    sizes = [0]
    for t in range(1, rounds + 1):
        # A whole power, but for rounding, is not exceeded
        power = t ** exponent(beta) * (1.0 - 1e-12)
        sizes.append(sizes[-1] + (sizes[-1] < power))
    return np.array(sizes[1:])


def _ratio(upper: Floats, lower: Floats) -> Floats:
    return or_infinite(lower > 0, np.minimum(upper, 1) / lower)


def rcb(s: Seen, sequence: Sequence_ = log_sequence) -> Floats:
    """P-RCB Eq. (4): min(r + E, 1) / max(c - E, 0), E = sqrt(E_{t-1} / (2 T))."""
    e = np.sqrt(sequence(s.t - 1) / (2 * s.n))
    return _ratio(s.mean_r + e, s.mean_c - e)


def _width(s: Seen, total: Floats, squares: Floats, sequence: Sequence_) -> Floats:
    """SPEC E.4: sqrt(2 V E / n) + 3 E / n, V the biased sample variance, E at the current round."""
    variance, e = np.maximum(squares / s.n - (total / s.n) ** 2, 0), sequence(s.t)
    return np.sqrt(2 * variance * e / s.n) + 3 * e / s.n


def ucb_v_reward(s: Seen, sequence: Sequence_ = log_sequence) -> Floats:
    """SPEC E.4 (a): the original's index on rewards, costs ignored."""
    return s.mean_r + _width(s, s.r, s.rr, sequence)


def ucb_v_ratio(s: Seen, sequence: Sequence_ = log_sequence) -> Floats:
    """SPEC E.4 (b): empirical-Bernstein bounds on both means."""
    return _ratio(
        s.mean_r + _width(s, s.r, s.rr, sequence), s.mean_c - _width(s, s.c, s.cc, sequence)
    )
