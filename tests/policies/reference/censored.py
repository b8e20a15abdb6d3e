"""Float64 NumPy twins of the policies for censored resources, written from the paper and the
specification.

Sources: P-RCUCB = ``papers/rcucb.txt``; SPEC = ``ALGORITHMS.md``, 0, C.1-C.4, F. Every policy keeps
the full list of its rounds and recomputes everything from it on each call; nothing is optimised.
``t`` is the 1-based index of the round about to be decided, so ``t - 1`` rounds are completed (SPEC
0). Arms, limits and ticks are 0-based except that a tick ``k`` stands for the limit ``k / m**depth``.

A round is told as ``(reward, consumption)``; ``consumption=None`` means that the limit was
exceeded, and then the reward is ignored. ``true`` is what feedback (1) of P-RCUCB hides; only
survival ``"literal"`` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FloatArray = NDArray[np.float64]
Pair = tuple[int, int]


def paper_cost(x: float) -> float:
    """``c(x) = x / 10`` (P-RCUCB 5.1)."""
    return x / 10.0


def paper_penalty(x: float) -> float:
    """``lambda(x) = x / 10`` for x <= 0.5 and ``10 x`` above (P-RCUCB 5.1)."""
    return x / 10.0 if x <= 0.5 else 10.0 * x


def paper_limits(m: int = 10) -> FloatArray:
    """Equidistant limits ``1/m, ..., 1`` (P-RCUCB 5.1)."""
    return np.arange(1, m + 1, dtype=np.float64) / m


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


def count(history: Sequence[Round], tau: float, survival: str) -> Counts:
    """Counts of one arm at ``tau`` from all its rounds (P-RCUCB (8), (9); SPEC C.1).

    ``exceeded`` is ``#{C > tau}``: over all rounds with the true C for ``literal``, over all rounds
    with C = inf for an exceeded round for ``infinite``, and over the rounds with limit >= tau for
    ``legal``.
    """
    wide = [r for r in history if r.limit >= tau]
    gain = math.fsum(r.reward - paper_cost(r.seen) for r in wide if r.seen <= tau)
    if survival == "literal":
        exceeded = sum(r.true > tau for r in history)
    else:
        exceeded = sum(r.seen > tau for r in (wide if survival == "legal" else history))
    return Counts(len(wide), len(history), gain, exceeded)


def kaplan_meier(history: Sequence[Round], tau: float) -> float:
    """Product-limit estimate of P(C > tau); an exceeded round is censored at its limit.

    The product runs over the distinct observed consumptions c <= tau of ``1 - events(c) /
    at_risk(c)``. An exceeded round with limit exactly c is at risk at c, since its consumption is
    known to be larger than c. Beyond the last observation the estimate stays flat.
    """
    product = 1.0
    for c in sorted({r.seen for r in history if r.seen <= tau}):
        events = sum(r.seen == c for r in history)
        at_risk = sum((r.seen if math.isfinite(r.seen) else r.limit) >= c for r in history)
        product *= 1.0 - events / at_risk
    return product


class _Estimates:
    """What RCUCB and z-RCUCB share: estimate (10) and confidence length of an arm at a limit.

    ``survival``: ``literal`` uses the true consumption of exceeded rounds, ``infinite`` counts them
    as C = inf, and ``legal`` estimates the tail from the rounds with limit >= tau and replaces
    N_{i,0} by N_{i,tau} in the width. ``kaplan_meier`` (ours; SPEC C.1 names it "a fourth option")
    has the product-limit tail and the literal width.
    """

    log: float

    def __init__(self, n: int, alpha: float, survival: str) -> None:
        self.n, self.alpha, self.survival = n, alpha, survival
        self.history: list[list[Round]] = [[] for _ in range(n)]

    def learn(
        self, arm: int, limit: float, reward: float, seen: float | None, true: float | None
    ) -> None:
        if seen is None:
            told = Round(limit, 0.0, math.inf, math.nan if true is None else float(true))
        else:
            told = Round(limit, float(reward), float(seen), float(seen))
        self.history[arm].append(told)

    def estimate(self, i: int, tau: float) -> float:
        """Estimate (10) of the penalised expected gain; 0 without data (Alg. 1)."""
        c = count(self.history[i], tau, self.survival)
        if c.at_least == 0:
            return 0.0
        tail = c.exceeded / (c.at_least if self.survival == "legal" else c.pulls)
        if self.survival == "kaplan_meier":
            tail = kaplan_meier(self.history[i], tau)
        return c.gain / c.at_least - paper_penalty(tau) * tail

    def width(self, i: int, tau: float) -> float:
        """sqrt(2 a L / N_tau) + lambda sqrt(2 a L / N_0); inf without data."""
        c = count(self.history[i], tau, self.survival)
        second = c.at_least if self.survival == "legal" else c.pulls
        if c.at_least == 0 or second == 0:
            return math.inf
        twice = 2.0 * self.alpha * self.log
        return math.sqrt(twice / c.at_least) + paper_penalty(tau) * math.sqrt(twice / second)


class RCUCB(_Estimates):
    """RCUCB on a finite set of limits (P-RCUCB (8)-(12); SPEC C.1); the last limit is tau_max."""

    def __init__(
        self,
        n: int,
        limits: Sequence[float] | FloatArray,
        alpha: float = 1.0,
        survival: str = "literal",
    ) -> None:
        super().__init__(n, alpha, survival)
        self.limits = [float(x) for x in limits]
        self.t = 1

    def initial_pair(self) -> Pair | None:
        """``(t - 1, last limit)`` in rounds 1..n, then None."""
        return (self.t - 1, len(self.limits) - 1) if self.t <= self.n else None

    def scores(self) -> FloatArray:
        """Index of every pair for round t, ``inf`` for a pair without a round of limit >= tau."""
        self.log = math.log(self.t)
        table = [
            [self.estimate(i, x) + self.width(i, x) for x in self.limits] for i in range(self.n)
        ]
        return np.array(table, dtype=np.float64)

    def update(
        self,
        arm: int,
        limit_index: int,
        reward: float,
        consumption: float | None,
        true: float | None = None,
    ) -> None:
        self.learn(arm, self.limits[limit_index], reward, consumption, true)
        self.t += 1


class ZRCUCB(_Estimates):
    """z-RCUCB (P-RCUCB 4, Alg. 1, (13), (14); SPEC C.2) with estimates backfilled from the arm's
    full history.

    Grid points are integer ticks 1..m**depth of width ``1 / m**depth``. ``capacity`` bounds the
    points of one arm: a cell that is one tick wide, or whose split would pass it, stays. Points
    are processed once per round, ascending, over the grid as it was before (no cascade); only the
    pulled arm's grid can change. ``tau - down(tau)`` is divided by no scale, as printed.
    """

    def __init__(
        self, n: int, alpha: float, m: int, T: int, capacity: int, depth: int, survival: str
    ) -> None:
        super().__init__(n, alpha, survival)
        self.m, self.capacity, self.cells = m, capacity, m**depth
        self.log = math.log(n * T * T / (1.0 / T))
        self._ticks: list[list[int]] = [[self.cells] for _ in range(n)]

    def ticks(self, i: int) -> list[int]:
        """Grid points of arm i in ticks, ascending."""
        return self._ticks[i]

    def down(self, i: int, tick: int) -> int:
        """Next smaller grid tick of arm i, or 0 (printed with <=; SPEC C.2)."""
        return max((k for k in self._ticks[i] if k < tick), default=0)

    def scores(self, i: int) -> FloatArray:
        """Index (13) of arm i at each point of ``ticks(i)``."""
        rows = [(k / self.cells, (k - self.down(i, k)) / self.cells) for k in self._ticks[i]]
        return np.array([self.estimate(i, x) + self.width(i, x) + cell for x, cell in rows])

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
        self, arm: int, tick: int, reward: float, consumption: float | None, true: float
    ) -> None:
        """Record one round at a grid point, then refine that arm's grid (Alg. 1, 4-8)."""
        old = list(self._ticks[arm])
        assert tick in old, f"tick {tick} is not on the grid of arm {arm}"
        self.learn(arm, tick / self.cells, reward, consumption, true)
        grid = set(old)
        for lower, point in zip([0, *old[:-1]], old, strict=True):
            wide = point - lower
            fits = wide > 1 and len(grid) + self.m - 1 <= self.capacity
            if fits and wide / self.cells >= self.width(arm, point / self.cells):
                assert wide % self.m == 0, "a cell is a power of m ticks wide"
                grid.update(lower + k * (wide // self.m) for k in range(1, self.m))
        self._ticks[arm] = sorted(grid)

    def finest(self) -> frozenset[Pair]:
        """All ``(arm, tick)`` with the finest cell and, among those, the largest estimate."""
        points = [(i, k) for i in range(self.n) for k in self._ticks[i]]
        narrow = min(k - self.down(i, k) for i, k in points)
        value = {
            (i, k): self.estimate(i, k / self.cells)
            for i, k in points
            if k - self.down(i, k) == narrow
        }
        return frozenset(pair for pair, x in value.items() if x == max(value.values()))


class _Reduction:
    """Independent virtual arms ``(i, tau)`` (P-RCUCB (7); SPEC C.3)."""

    def __init__(self, n: int, limits: Sequence[float] | FloatArray) -> None:
        self.n, self.m, self.t = n, len(limits), 1
        self.lam = np.array([paper_penalty(float(x)) for x in limits])
        self.payoffs: list[list[list[float]]] = [[[] for _ in limits] for _ in range(n)]

    def payoff(self, limit_index: int, reward: float, consumption: float | None) -> float:
        """``x = R - c(C)`` if observed, ``-lambda(tau)`` if exceeded."""
        if consumption is None:
            return -float(self.lam[limit_index])
        return reward - paper_cost(consumption)

    def update(self, arm: int, limit_index: int, reward: float, consumption: float | None) -> None:
        self.payoffs[arm][limit_index].append(self.payoff(limit_index, reward, consumption))
        self.t += 1


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
        self.factor = 1.0 + self.lam if width == "lambda" else np.ones(self.m)

    def initial_pair(self) -> Pair | None:
        """Virtual arm t - 1 in row-major order in rounds 1..n*m, then None."""
        return divmod(self.t - 1, self.m) if self.t <= self.n * self.m else None

    def scores(self) -> FloatArray:
        """Index of every virtual arm for round t; ``inf`` without an own pull."""
        out = np.full((self.n, self.m), math.inf, dtype=np.float64)
        for (i, j), _ in np.ndenumerate(out):
            if sample := self.payoffs[i][j]:
                radius = math.sqrt(2.0 * self.alpha * math.log(self.t) / len(sample))
                out[i, j] = math.fsum(sample) / len(sample) + self.factor[j] * radius
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
        self.shift = np.full(self.m, self.lam.max()) if scaling == "global" else self.lam
        self.trials: list[list[list[int]]] = [[[] for _ in limits] for _ in range(n)]

    def probability(self, limit_index: int, reward: float, consumption: float | None) -> float:
        """Rescaled payoff y, the success probability of the trial."""
        shift = float(self.shift[limit_index])
        y = (self.payoff(limit_index, reward, consumption) + shift) / (1.0 + shift)
        assert -1e-12 <= y <= 1.0 + 1e-12, "the penalty is smaller than the cost"
        return min(max(y, 0.0), 1.0)

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Beta parameters ``(alpha, beta)``, each ``[n, m]``: 1 + successes, 1 + failures."""
        hits = np.array([[float(sum(x)) for x in row] for row in self.trials])
        tried = np.array([[float(len(x)) for x in row] for row in self.trials])
        return 1.0 + hits, 1.0 + tried - hits

    def values(self, theta: FloatArray) -> FloatArray:
        """The posterior samples, or for ``per_arm`` mapped back to payoffs."""
        return theta if self.scaling == "global" else theta * (1.0 + self.lam) - self.lam

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
    best: Pair
    value: float  # v of the best pair
    gap: float  # to the best pair of another arm


_G1 = {"PosCorr": (0.6, 0.0435), "NegCorr": (-0.6, 0.7963), "Indep": (0.0, -0.3900)}


def instance_G1(instance: str, n: int = 10) -> G1:
    """PosCorr, NegCorr or Indep of SPEC C.4 (ours, not the authors')."""
    kappa, shift = _G1[instance]
    i = np.arange(n, dtype=np.float64)
    return G1(kappa, -0.4 + 0.08 * i + shift, -0.8 + 0.26 * i)


def best_pair_G1(instance: str) -> G1Values:
    """Exact v of G1: Gauss-Hermite in y, closed forms in z (SPEC C.4)."""
    law, tau = instance_G1(instance), paper_limits()
    penalty = np.array([paper_penalty(float(x)) for x in tau], dtype=np.float64)
    z_tau = 0.5 * np.log(2.0 * tau)[None, :] - law.q[:, None]
    y, weight = np.polynomial.hermite_e.hermegauss(120)
    weight = weight / math.sqrt(2.0 * math.pi)
    below = ndtr((z_tau[..., None] - law.kappa * y) / math.sqrt(1.0 - law.kappa**2))
    reward = np.sum(weight * ndtr(law.b[:, None, None] + 0.6 * y) * below, axis=-1)
    consumption = 0.5 * np.exp(2.0 * law.q + 2.0)[:, None] * ndtr(z_tau - 2.0)
    survival = ndtr(-z_tau)
    v = reward - paper_cost(1.0) * consumption - penalty * survival
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(v)), v.shape))
    rest = np.delete(v, i, axis=0)
    return G1Values(v, survival, (i, j), float(v[i, j]), float(v[i, j] - np.max(rest)))
