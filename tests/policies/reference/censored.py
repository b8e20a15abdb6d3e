"""Float64 NumPy twins of the policies for censored resources, written from the paper and the
specification.

Sources: P-RCUCB = ``papers/rcucb.txt``; SPEC = ``ALGORITHMS.md``, 0, C.1-C.4, F. Every policy keeps
the full list of its rounds and recomputes everything from it on each call; nothing is optimised.
``t`` is the 1-based index of the round about to be decided, so ``t - 1`` rounds are completed (SPEC
0). Arms, limits and ticks are 0-based except that a tick ``k`` stands for the limit ``tau_max * k /
m**depth``.

A round is told as ``(reward, consumption)``; ``consumption=None`` means that the limit was
exceeded, and then the reward is ignored. ``true`` is what feedback (1) of P-RCUCB hides; only
survival ``"literal"`` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FloatArray = NDArray[np.float64]
Function = Callable[[float], float]
Pair = tuple[int, int]
Survival = Literal["literal", "legal", "infinite"]


def paper_cost(x: float) -> float:
    """``c(x) = x / 10`` (P-RCUCB 5.1)."""
    return x / 10.0


def paper_penalty(x: float) -> float:
    """``lambda(x) = x / 10`` for x <= 0.5 and ``10 x`` above (P-RCUCB 5.1)."""
    return x / 10.0 if x <= 0.5 else 10.0 * x


def paper_limits(m: int = 10) -> FloatArray:
    """Equidistant limits ``1/m, ..., 1`` (P-RCUCB 5.1)."""
    return np.arange(1, m + 1, dtype=np.float64) / m


def argmax_pairs(scores: FloatArray) -> frozenset[Pair]:
    """All ``(arm, limit index)`` that attain the maximum, ``inf`` included (SPEC 0)."""
    best = float(np.max(scores))
    return frozenset((int(i), int(j)) for i, j in np.argwhere(scores == best))


class Round(NamedTuple):
    """One completed round of one arm; ``seen = inf`` where the limit was exceeded."""

    limit: float
    reward: float
    seen: float
    true: float


class Counts(NamedTuple):
    """``N_{i,tau}``, ``N_{i,0}``, ``G_{i,tau}`` and ``S_{i,tau}`` of SPEC C.1."""

    at_least: int
    pulls: int
    gain: float
    exceeded: int


def make_round(limit: float, reward: float, consumption: float | None, true: float | None) -> Round:
    """One observation as it is stored."""
    if consumption is None:
        return Round(limit, 0.0, math.inf, math.nan if true is None else float(true))
    return Round(limit, float(reward), float(consumption), float(consumption))


def count(history: Sequence[Round], tau: float, cost: Function, survival: str) -> Counts:
    """Counts of one arm at ``tau`` from all its rounds (P-RCUCB (8), (9); SPEC C.1).

    ``exceeded`` is ``#{C > tau}``: over all rounds with the true C for ``literal``, over all rounds
    with C = inf for an exceeded round for ``infinite``, and over the rounds with limit >= tau for
    ``legal``.
    """
    wide = [r for r in history if r.limit >= tau]
    gain = math.fsum(r.reward - cost(r.seen) for r in wide if r.seen <= tau)
    if survival == "literal":
        exceeded = sum(r.true > tau for r in history)
    else:
        exceeded = sum(r.seen > tau for r in (wide if survival == "legal" else history))
    return Counts(len(wide), len(history), gain, exceeded)


def kaplan_meier(history: Sequence[Round], tau: float) -> float:
    """Product-limit estimate of P(C > tau); a round whose limit was exceeded is censored at that
    limit.

    The product runs over the distinct observed consumptions c <= tau of ``1 - events(c) /
    at_risk(c)``. An exceeded round with limit exactly c is at risk at c, since its consumption is
    known to be larger than c. Beyond the last observation the estimate stays flat (it is never set
    to 0 there).
    """
    product = 1.0
    for c in sorted({r.seen for r in history if r.seen <= tau}):
        events = sum(r.seen == c for r in history)
        at_risk = sum((r.seen if math.isfinite(r.seen) else r.limit) >= c for r in history)
        product *= 1.0 - events / at_risk
    return product


def _width(alpha: float, log: float, lam: float, at_least: int, pulls: int, survival: str) -> float:
    """sqrt(2 a L / N_tau) + lambda sqrt(2 a L / N_0); ``legal``: N_tau twice; inf unpulled."""
    second = at_least if survival == "legal" else pulls
    if at_least == 0 or second == 0:
        return math.inf
    return math.sqrt(2.0 * alpha * log / at_least) + lam * math.sqrt(2.0 * alpha * log / second)


class _Pairs:
    """What the twins on a finite set of limits share; the last limit is tau_max."""

    def __init__(self, n: int, limits: Sequence[float] | FloatArray) -> None:
        self.n = n
        self.limits = np.asarray(limits, dtype=np.float64)
        self.m = int(self.limits.size)
        self.lam = np.array([paper_penalty(float(x)) for x in self.limits])
        self.rounds = 0

    @property
    def t(self) -> int:
        """1-based index of the round about to be decided (SPEC 0)."""
        return self.rounds + 1

    def initial_pair(self) -> Pair | None:
        raise NotImplementedError

    def scores(self) -> FloatArray:
        raise NotImplementedError

    def choices(self) -> frozenset[Pair]:
        """Pairs among which round t is drawn: the initial pair, or all maximisers of the index."""
        first = self.initial_pair()
        return frozenset({first}) if first is not None else argmax_pairs(self.scores())


class RCUCB(_Pairs):
    """RCUCB on a finite set of limits (P-RCUCB (8)-(12); SPEC C.1); the last limit is tau_max.

    ``survival``: ``literal`` uses the true consumption of exceeded rounds, ``infinite`` counts them
    as C = inf, and ``legal`` estimates the tail from the rounds with limit >= tau and replaces
    N_{i,0} by N_{i,tau} in the width.
    """

    def __init__(
        self,
        n: int,
        limits: Sequence[float] | FloatArray,
        alpha: float = 1.0,
        survival: str = "literal",
    ) -> None:
        super().__init__(n, limits)
        self.alpha = alpha
        self.survival = survival
        self.history: list[list[Round]] = [[] for _ in range(n)]

    def initial_pair(self) -> Pair | None:
        """``(t - 1, last limit)`` in rounds 1..n, then None."""
        return (self.rounds, self.m - 1) if self.rounds < self.n else None

    def counts(self, i: int, j: int) -> Counts:
        """``N_{i,tau}, N_{i,0}, G, S`` of arm i at limit j."""
        return count(self.history[i], float(self.limits[j]), paper_cost, self.survival)

    def tail(self, i: int, j: int) -> float:
        """Estimate of P(C_i > tau_j); nan without data."""
        c = self.counts(i, j)
        base = c.at_least if self.survival == "legal" else c.pulls
        return c.exceeded / base if base else math.nan

    def gain(self, i: int, j: int) -> float:
        """Estimate (8) of the expected gain; nan without data."""
        c = self.counts(i, j)
        return c.gain / c.at_least if c.at_least else math.nan

    def width(self, i: int, j: int) -> float:
        """Confidence length at round t; inf without data."""
        c = self.counts(i, j)
        return _width(self.alpha, math.log(self.t), self.lam[j], c.at_least, c.pulls, self.survival)

    def estimate(self, i: int, j: int) -> float:
        """Estimate (10) of the penalised expected gain; nan without data."""
        return self.gain(i, j) - self.lam[j] * self.tail(i, j)

    def scores(self) -> FloatArray:
        """Index of every pair for round t, ``inf`` for a pair without a round of limit >= tau.

        Rounds 1..n are decided by ``initial_pair``, not by these scores.
        """
        out = np.full((self.n, self.m), math.inf, dtype=np.float64)
        for i in range(self.n):
            for j in range(self.m):
                width = self.width(i, j)
                if math.isfinite(width):
                    out[i, j] = self.estimate(i, j) + width
        return out

    def update(
        self,
        arm: int,
        limit_index: int,
        reward: float,
        consumption: float | None,
        true: float | None = None,
    ) -> None:
        """Record one completed round; ``consumption=None`` means exceeded."""
        limit = float(self.limits[limit_index])
        self.history[arm].append(make_round(limit, reward, consumption, true))
        self.rounds += 1


class RCUCBKaplanMeier(RCUCB):
    """RCUCB with the Kaplan-Meier tail; ours, not the paper's (SPEC C.1 only names it "a fourth
    option").

    Only P(C > tau) changes: it is the product-limit estimate from all rounds of the arm, censored
    at their limits. G/N_{i,tau} is (8), and the width is the literal one, with N_{i,0} under the
    penalty term; no theory says that this width covers the Kaplan-Meier error. Without censoring
    the policy equals ``literal``.
    """

    def __init__(self, n: int, limits: Sequence[float] | FloatArray, alpha: float = 1.0) -> None:
        super().__init__(n, limits, alpha, "kaplan-meier")

    def counts(self, i: int, j: int) -> Counts:
        """As in RCUCB; ``exceeded`` of rounds with limit >= tau, not used here."""
        return count(self.history[i], float(self.limits[j]), paper_cost, "legal")

    def tail(self, i: int, j: int) -> float:
        """Kaplan-Meier estimate of P(C_i > tau_j); nan without a pull."""
        return kaplan_meier(self.history[i], float(self.limits[j])) if self.history[i] else math.nan


class ZRCUCB:
    """z-RCUCB (P-RCUCB 4, Alg. 1, (13), (14); SPEC C.2) with estimates backfilled from the arm's
    full history.

    Grid points are integer ticks 1..m**depth of width ``tau_max / m**depth``. ``capacity``
    bounds the points of one arm: a cell that is one tick wide, or whose split would pass it, stays. Points
    are processed once per round, ascending, over the grid as it was before (no cascade); only the
    pulled arm's grid can change. An unpulled pair has v = 0, width inf. ``tau - down(tau)`` is
    divided by no scale, as printed.
    """

    def __init__(
        self,
        n: int,
        tau_max: float = 1.0,
        alpha: float = 1.01,
        m: int = 2,
        delta: float | None = None,
        T: int = 1000,
        capacity: int = 64,
        *,
        depth: int,
        survival: str = "literal",
        cost: Function = paper_cost,
        penalty: Function = paper_penalty,
    ) -> None:
        self.n = n
        self.tau_max = tau_max
        self.alpha = alpha
        self.m = m
        self.delta = 1.0 / T if delta is None else delta
        self.T = T
        self.capacity = capacity
        self.cells = m**depth
        self.survival = survival
        self.cost = cost
        self.penalty = penalty
        self.log = math.log(n * T * T / self.delta)
        self.history: list[list[Round]] = [[] for _ in range(n)]
        self._ticks: list[list[int]] = [[self.cells] for _ in range(n)]

    def tau(self, tick: int) -> float:
        """Limit of a tick."""
        return self.tau_max * tick / self.cells

    def ticks(self, i: int) -> tuple[int, ...]:
        """Grid points of arm i in ticks, ascending."""
        return tuple(self._ticks[i])

    def down(self, i: int, tick: int) -> int:
        """Next smaller grid tick of arm i, or 0 (printed with <=; SPEC C.2)."""
        return max((k for k in self._ticks[i] if k < tick), default=0)

    def cell(self, i: int, tick: int) -> float:
        """``tau - down(tau)``."""
        return self.tau_max * (tick - self.down(i, tick)) / self.cells

    def counts(self, i: int, tick: int) -> Counts:
        """``N, N_0, G, S`` of arm i at any tick, by definitions (8) and (9) over the whole history."""
        return count(self.history[i], self.tau(tick), self.cost, self.survival)

    def estimate(self, i: int, tick: int) -> float:
        """Estimate (10); 0 without data (initialisation of Alg. 1)."""
        c = self.counts(i, tick)
        if c.at_least == 0:
            return 0.0
        base = c.at_least if self.survival == "legal" else c.pulls
        return c.gain / c.at_least - self.penalty(self.tau(tick)) * c.exceeded / base

    def width(self, i: int, tick: int) -> float:
        """Confidence length with ``L = ln(n T^2 / delta)``; inf without data."""
        c = self.counts(i, tick)
        return _width(
            self.alpha, self.log, self.penalty(self.tau(tick)), c.at_least, c.pulls, self.survival
        )

    def scores(self, i: int) -> FloatArray:
        """Index (13) of arm i at each point of ``ticks(i)``."""
        return np.array(
            [self.estimate(i, k) + self.width(i, k) + self.cell(i, k) for k in self._ticks[i]],
            dtype=np.float64,
        )

    def choices(self) -> frozenset[Pair]:
        """All ``(arm, tick)`` that maximise the index; an unpulled arm has inf."""
        table = {
            (i, k): float(s)
            for i in range(self.n)
            for k, s in zip(self._ticks[i], self.scores(i), strict=True)
        }
        best = max(table.values())
        return frozenset(pair for pair, score in table.items() if score == best)

    def update(
        self,
        arm: int,
        tick: int,
        reward: float,
        consumption: float | None,
        true: float | None = None,
    ) -> None:
        """Record one round at a grid point, then refine that arm's grid (Alg. 1, 4-8)."""
        assert tick in self._ticks[arm], f"tick {tick} is not on the grid of arm {arm}"
        self.history[arm].append(make_round(self.tau(tick), reward, consumption, true))
        self._refine(arm)

    def _refine(self, i: int) -> None:
        old = list(self._ticks[i])
        grid = set(old)
        for lower, tick in zip([0, *old[:-1]], old, strict=True):
            ticks_wide = tick - lower
            fits = ticks_wide > 1 and len(grid) + self.m - 1 <= self.capacity
            if fits and self.tau_max * ticks_wide / self.cells >= self.width(i, tick):
                if ticks_wide % self.m:
                    raise AssertionError("a cell is a power of m ticks wide")
                grid.update(lower + k * (ticks_wide // self.m) for k in range(1, self.m))
        self._ticks[i] = sorted(grid)

    def finest(self) -> frozenset[Pair]:
        """All ``(arm, tick)`` with the finest cell and, among those, the largest estimate."""
        points = [(i, k) for i in range(self.n) for k in self._ticks[i]]
        narrow = min(k - self.down(i, k) for i, k in points)
        tied = [(i, k) for i, k in points if k - self.down(i, k) == narrow]
        best = max(self.estimate(i, k) for i, k in tied)
        return frozenset((i, k) for i, k in tied if self.estimate(i, k) == best)


class _Reduction(_Pairs):
    """Independent virtual arms ``(i, tau)`` (P-RCUCB (7); SPEC C.3)."""

    def __init__(self, n: int, limits: Sequence[float] | FloatArray) -> None:
        super().__init__(n, limits)
        self.payoffs: list[list[list[float]]] = [[[] for _ in range(self.m)] for _ in range(n)]

    def payoff(self, limit_index: int, reward: float, consumption: float | None) -> float:
        """``x = R - c(C)`` if observed, ``-lambda(tau)`` if exceeded."""
        return (
            reward - paper_cost(consumption)
            if consumption is not None
            else -float(self.lam[limit_index])
        )

    def update(self, arm: int, limit_index: int, reward: float, consumption: float | None) -> None:
        """Record one completed round; ``consumption=None`` means exceeded."""
        self.payoffs[arm][limit_index].append(self.payoff(limit_index, reward, consumption))
        self.rounds += 1


class UCBReduction(_Reduction):
    """UCB on the virtual arms: ``mean + f sqrt(2 alpha ln t / T)``, f = 1 + lambda(tau) or 1 (SPEC
    C.3).

    Rounds 1..n*m play each virtual arm once. Neither source gives that order; here all limits of
    arm 0 ascending, then arm 1, and so on.
    """

    def __init__(
        self,
        n: int,
        limits: Sequence[float] | FloatArray,
        alpha: float = 1.0,
        width: str = "lambda",
    ) -> None:
        super().__init__(n, limits)
        self.alpha = alpha
        self.width = width

    def initial_pair(self) -> Pair | None:
        """Virtual arm t - 1 in row-major order in rounds 1..n*m, then None."""
        return divmod(self.rounds, self.m) if self.rounds < self.n * self.m else None

    def scores(self) -> FloatArray:
        """Index of every virtual arm for round t; ``inf`` without an own pull."""
        out = np.full((self.n, self.m), math.inf, dtype=np.float64)
        for i in range(self.n):
            for j in range(self.m):
                sample = self.payoffs[i][j]
                if sample:
                    factor = 1.0 + float(self.lam[j]) if self.width == "lambda" else 1.0
                    radius = math.sqrt(2.0 * self.alpha * math.log(self.t) / len(sample))
                    out[i, j] = math.fsum(sample) / len(sample) + factor * radius
        return out


class ThompsonReduction(_Reduction):
    """Beta(1, 1) Thompson sampling on the virtual arms, Bernoulli trial on the rescaled payoff
    (SPEC C.3).

    ``global``: ``y = (x + lambda_max) / (1 + lambda_max)`` with lambda_max the largest penalty over
    the limits. ``per_arm``: ``y = (x + lambda(tau)) / (1 + lambda(tau))``; the sample is mapped
    back before the argmax. No initial rounds. The draws come from outside: posterior samples to
    ``values``, the trial to ``trial``.
    """

    def __init__(
        self, n: int, limits: Sequence[float] | FloatArray, scaling: str = "global"
    ) -> None:
        super().__init__(n, limits)
        self.scaling = scaling
        self.trials: list[list[list[int]]] = [[[] for _ in range(self.m)] for _ in range(n)]

    def scale(self, limit_index: int) -> float:
        """The lambda by which payoffs at this limit are shifted."""
        return float(np.max(self.lam)) if self.scaling == "global" else float(self.lam[limit_index])

    def probability(self, limit_index: int, reward: float, consumption: float | None) -> float:
        """Rescaled payoff y, the success probability of the trial."""
        shift = self.scale(limit_index)
        y = (self.payoff(limit_index, reward, consumption) + shift) / (1.0 + shift)
        assert -1e-12 <= y <= 1.0 + 1e-12, (
            "the payoff is not in [-lambda, 1]; the penalty is smaller than the cost"
        )
        return min(max(y, 0.0), 1.0)

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Beta parameters ``(alpha, beta)``, each ``[n, m]``: 1 + successes, 1 + failures."""
        a = np.array([[1.0 + sum(x) for x in row] for row in self.trials], dtype=np.float64)
        b = np.array(
            [[1.0 + len(x) - sum(x) for x in row] for row in self.trials], dtype=np.float64
        )
        return a, b

    def values(self, theta: FloatArray) -> FloatArray:
        """The posterior samples, or for ``per_arm`` mapped back to payoffs."""
        sample = np.asarray(theta, dtype=np.float64)
        return sample if self.scaling == "global" else sample * (1.0 + self.lam) - self.lam

    def trial(self, arm: int, limit_index: int, y: int) -> None:
        """Record the 0 or 1 of a round's trial."""
        self.trials[arm][limit_index].append(int(y))


class G1(NamedTuple):
    """SPEC C.4: C = exp(2 (z + q_i)) / 2, R = Phi(b_i + 0.6 y), corr(z, y) = kappa."""

    kappa: float
    q: FloatArray
    b: FloatArray


class G1Values(NamedTuple):
    """``[n, m]``: v = reward - E[c(C) 1{C<=tau}] - lambda(tau) survival; and the best pair."""

    v: FloatArray
    survival: FloatArray  # P(C > tau)
    reward: FloatArray  # E[R 1{C <= tau}]
    consumption: FloatArray  # E[C 1{C <= tau}]
    best: Pair
    value: float  # v of the best pair
    gap: float  # to the best pair of another arm


_G1 = {"PosCorr": (0.6, 0.0435), "NegCorr": (-0.6, 0.7963), "Indep": (0.0, -0.3900)}


def instance_G1(instance: str, n: int = 10) -> G1:
    """PosCorr, NegCorr or Indep of SPEC C.4 (ours, not the authors')."""
    kappa, shift = _G1[instance]
    i = np.arange(n, dtype=np.float64)
    return G1(kappa, -0.4 + 0.08 * i + shift, -0.8 + 0.26 * i)


def best_pair_G1(
    instance: str, limits: Sequence[float] | FloatArray | None = None, nodes: int = 120
) -> G1Values:
    """Exact v of G1: Gauss-Hermite in y, closed forms in z (SPEC C.4)."""
    law = instance_G1(instance)
    tau = paper_limits() if limits is None else np.asarray(limits, dtype=np.float64)
    penalty = np.array([paper_penalty(float(x)) for x in tau], dtype=np.float64)
    z_tau = 0.5 * np.log(2.0 * tau)[None, :] - law.q[:, None]
    y, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / math.sqrt(2.0 * math.pi)
    below = ndtr((z_tau[..., None] - law.kappa * y) / math.sqrt(1.0 - law.kappa**2))
    reward = np.sum(weight * ndtr(law.b[:, None, None] + 0.6 * y) * below, axis=-1)
    consumption = 0.5 * np.exp(2.0 * law.q + 2.0)[:, None] * ndtr(z_tau - 2.0)
    survival = ndtr(-z_tau)
    v = reward - paper_cost(1.0) * consumption - penalty * survival
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(v)), v.shape))
    rest = np.delete(v, i, axis=0)
    return G1Values(
        v, survival, reward, consumption, (i, j), float(v[i, j]), float(v[i, j] - np.max(rest))
    )
