"""Float64 twins of the anytime-knapsack policies, written from the paper and the specification.

Sources: P-SUAK = ``papers/suak.txt``; SPEC = ``ALGORITHMS.md`` section B. Actions: 0..K-1 real
arms, K the null arm chosen by the policy's own distribution, -1 a skipped round. Each round:
``act(uniform)``, then ``update(action, reward, cost)`` (skips and null plays with 0, 0). ``act``
and ``plan`` leave the state alone; ``update`` derives what it needs from the state before the
round, so a foreign trace can be replayed.

Randomness: every round is a mixture of at most two actions, ``plan() = (first, second, p)``;
``act(uniform)`` plays ``first`` if and only if ``uniform < p``. ``first`` is the costlier member
(cost above c), ``second`` the cheaper one. A round without a choice has ``first == second``, ``p ==
1``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Vector = Sequence[float] | FloatArray

SKIP = -1
TIE = 1e-12  # a later candidate must win by more than this: "equal values" of exact arithmetic stay ties


class LPSolution(NamedTuple):
    """Optimum of the LP; ``high`` is -1 for a single arm, ``low`` -1 if infeasible."""

    value: float
    weights: FloatArray
    high: int
    low: int


class Candidate(NamedTuple):
    """One vertex of the LP: ``w`` on ``high`` (cost > c), ``1 - w`` on ``low`` (cost <= c)."""

    value: float
    high: int
    low: int
    w: float


class Mixture(NamedTuple):
    """Play ``first`` if and only if uniform < p, else ``second``."""

    first: int
    second: int
    p: float


def lp_candidates(
    mu: Vector, rho: Vector, c: float, forbidden: Collection[int] = ()
) -> Iterator[Candidate]:
    """Vertices in preference order: singles 0..K-1, null (K), then pairs (i, j) by i, j."""
    m = [float(x) for x in mu] + [0.0]
    r = [float(x) for x in rho] + [0.0]
    allowed = [i for i in range(len(m)) if i not in forbidden]
    low = [i for i in allowed if r[i] <= c]
    high = [i for i in allowed if r[i] > c]
    for i in low:
        yield Candidate(m[i], -1, i, 0.0)
    for i in high:
        for j in low:
            w = (c - r[j]) / (r[i] - r[j])
            yield Candidate(w * m[i] + (1.0 - w) * m[j], i, j, w)


def lp_pair(mu: Vector, rho: Vector, c: float, forbidden: Collection[int] = ()) -> LPSolution:
    """max <mu, pi> s.t. <rho, pi> <= c on the simplex of K arms and null arm (SPEC B.0; P-SUAK Eq.
    (2)).

    Brute force over singles and pairs; ``weights`` has length K + 1 with the null arm last;
    ``forbidden`` may contain K. Ties within 1e-12: single before pair, then lowest index.
    Infeasible: value -inf, weights 0.
    """
    best: Candidate | None = None
    for candidate in lp_candidates(mu, rho, c, forbidden):
        if best is None or candidate.value > best.value + TIE:
            best = candidate
    weights = np.zeros(len(mu) + 1, dtype=np.float64)
    if best is None:
        return LPSolution(-math.inf, weights, -1, -1)
    weights[best.low] = 1.0 - best.w
    if best.high >= 0:
        weights[best.high] = best.w
    return LPSolution(best.value, weights, best.high, best.low)


class _Knapsack:
    """State shared by all twins: pulls, sums, completed rounds and total cost ``spent`` (Sc).

    With ``skip`` a round is skipped while ``Sc + 1 > c t``, before the base policy (SPEC B; P-SUAK
    Alg. 1 line 4). A skip advances t and changes no other counter of the base policy.
    """

    def __init__(self, K: int, c: float, skip: bool = True) -> None:
        self.K, self.c, self.skip = K, c, skip
        self.n: IntArray = np.zeros(K, dtype=np.int64)
        self.sum_r: FloatArray = np.zeros(K, dtype=np.float64)
        self.sum_c: FloatArray = np.zeros(K, dtype=np.float64)
        self.rounds, self.spent = 0, 0.0

    @property
    def t(self) -> int:
        """1-based index of the round about to be decided; skips and null plays advance it."""
        return self.rounds + 1

    def mean_r(self) -> list[float]:
        """Reward means; 0 without a pull."""
        return (self.sum_r / np.maximum(self.n, 1)).tolist()

    def mean_c(self) -> list[float]:
        """Cost means; 0 without a pull."""
        return (self.sum_c / np.maximum(self.n, 1)).tolist()

    def radius(self, k: int, factor: float, log: float) -> float:
        """``sqrt(factor * log / N_k)``, inf without a pull."""
        return math.sqrt(factor * log / int(self.n[k])) if self.n[k] else math.inf

    def ends(self, factor: float, log: float) -> list[list[float]]:
        """``mu^L, mu^U, rho^L, rho^U`` of the real arms, clipped to [0, 1] (P-SUAK Eqs. (8)-(9))."""
        radii = [self.radius(k, factor, log) for k in range(self.K)]
        return [
            [
                min(max(mean + sign * radius, 0.0), 1.0)
                for mean, radius in zip(means, radii, strict=True)
            ]
            for means in (self.mean_r(), self.mean_c())
            for sign in (-1, 1)
        ]

    def over_limit(self) -> bool:
        """A cost of 1 would break sum cost <= c t (SPEC B, skip wrapper)."""
        return self.spent + 1.0 > self.c * self.t

    def first_unpulled(self) -> int | None:
        """Arms are tried once in index order."""
        return next((k for k in range(self.K) if self.n[k] == 0), None)

    def rate(self, T: int) -> float:
        """Remaining budget per remaining round, (c T - Sc) / (T - t + 1), at least 0 (SPEC B.2)."""
        return max(self.c * T - self.spent, 0.0) / max(T - self.t + 1, 1)

    def base_plan(self) -> Mixture:
        """Mixture of the base policy."""
        raise NotImplementedError

    def plan(self) -> Mixture:
        """Skip, or the base policy's mixture."""
        return Mixture(SKIP, SKIP, 1.0) if self.skip and self.over_limit() else self.base_plan()

    def act(self, uniform: float) -> int:
        """Action of the coming round: ``first`` if and only if ``uniform < p``."""
        first, second, p = self.plan()
        return first if uniform < p else second

    def update(self, action: int, reward: float, cost: float) -> None:
        """Record one completed round; for a skip (-1) or null play (K) reward and cost must be 0."""
        if 0 <= action < self.K:
            self.n[action] += 1
            self.sum_r[action] += reward
            self.sum_c[action] += cost
            self.spent += cost
        else:
            assert reward == cost == 0.0, "skips and null plays have reward 0 and cost 0"
        self.rounds += 1


def _alone(arm: int) -> Mixture:
    return Mixture(arm, arm, 1.0)


def _as_mixture(solution: LPSolution) -> Mixture:
    """The LP's weights as a two-point mixture."""
    if solution.high < 0:
        return _alone(solution.low)
    return Mixture(solution.high, solution.low, float(solution.weights[solution.high]))


class SUAK(_Knapsack):
    """SUAK in the resolved order (P-SUAK 3.2, Alg. 2, Eqs. (4)-(9); SPEC B.1 points 1-7).

    ``T = None`` (default) puts ln t into eps (App. A, Lemma C.3); a horizon ``T`` puts ln T there
    (text of Eqs. (8)-(9)). All other logs are ln t. ``sp``, ``np_`` are S_p, N_p; N_p also counts
    the S_p skips (point 2).
    """

    def __init__(self, K: int, c: float, T: int | None = None) -> None:
        super().__init__(K, c)
        self.T, self.sp, self.np_ = T, 0.0, 0

    def uncertain(self) -> list[int]:
        """Real arms with ``|mean cost - c| <= 7 sqrt(1.5 ln t / N)`` (Eqs. (4)-(5))."""
        rho, log_t = self.mean_c(), math.log(self.t)
        return [
            k for k in range(self.K) if abs(rho[k] - self.c) <= 7.0 * self.radius(k, 1.5, log_t)
        ]

    def branch(self) -> str:
        """Branch of the coming round: "skip_p", "skip_c", "explore" (uncertain arm) or "main"."""
        explores = bool(self.uncertain())
        if explores and self.sp + 1.0 > self.c * self.np_:
            return "skip_p"
        return "skip_c" if self.over_limit() else "explore" if explores else "main"

    def omega(self) -> float:
        """d / (2 + d - c), d the smallest lower bound of a cost gap (Eqs. (6)-(7))."""
        rho, log_t = self.mean_c(), math.log(self.t)
        d = min(abs(rho[k] - self.c) - self.radius(k, 1.5, log_t) for k in range(self.K))
        return d / (2.0 + d - self.c)

    def bounds(self) -> tuple[list[float], list[float]]:
        """``(mu^U, rho^L)`` (Eqs. (8)-(9))."""
        _, upper, lower, _ = self.ends(3.0, math.log(self.t if self.T is None else self.T))
        return upper, lower

    def base(self) -> LPSolution:
        """Optimistic base of the main rule (Alg. 2 lines 23-25)."""
        return lp_pair(*self.bounds(), self.c)

    def spare(self) -> float:
        """``b(t) = c t - Sc(t - 1) - ln t / omega^2`` (Alg. 2 line 26)."""
        return self.c * self.t - self.spent - math.log(self.t) / self.omega() ** 2

    def plan(self) -> Mixture:
        """Mixture of the coming round (Alg. 2 lines 15-35 in the order of SPEC B.1)."""
        branch = self.branch()
        if branch in ("skip_p", "skip_c"):
            return _alone(SKIP)
        if branch == "explore":
            # Fewest pulls, lowest index (point 4)
            return _alone(min(self.uncertain(), key=lambda k: (int(self.n[k]), k)))
        base = self.base()
        if base.high < 0:
            return _alone(base.low)
        means = [*self.mean_c(), 0.0]
        # Line 25 names the costlier member by its mean; rho^L > c selects the same one (SPEC B.1
        # point 6).
        j, k = sorted((base.high, base.low), key=lambda i: means[i], reverse=True)
        w, b = self.omega(), self.spare()
        if b > means[j]:
            return Mixture(j, k, 1.0 - w)
        if b < means[k]:
            return Mixture(j, k, w)
        return Mixture(j, k, min(max((b - means[k]) / (means[j] - means[k]), w), 1.0 - w))

    def update(self, action: int, reward: float, cost: float) -> None:
        """S_p, N_p move only while an arm is uncertain: on pulls and on S_p skips."""
        branch = self.branch()
        super().update(action, reward, cost)
        if branch in ("skip_p", "explore") and 0 <= action < self.K:
            self.sp += cost
            self.np_ += 1
        elif branch == "skip_p":
            self.np_ += 1


class OnePhase(_Knapsack):
    """OPS: optimistic LP on what is left, radius sqrt(a ln T / N) (Alg. 1; SPEC B.2)."""

    def __init__(self, K: int, c: float, T: int, a: float = 3.0, skip: bool = True) -> None:
        super().__init__(K, c, skip)
        self.T, self.a = T, a

    def bounds(self) -> tuple[list[float], list[float]]:
        """``(mu^U, rho^L)``."""
        _, upper, lower, _ = self.ends(self.a, math.log(self.T))
        return upper, lower

    def solution(self) -> LPSolution:
        """LP at the current budget rate."""
        return lp_pair(*self.bounds(), self.rate(self.T))

    def base_plan(self) -> Mixture:
        """Each arm once in index order, then the LP's mixture."""
        arm = self.first_unpulled()
        return _as_mixture(self.solution()) if arm is None else _alone(arm)


class PrimalDualTwoPhase(_Knapsack):
    """PDS: sweeps until the optimal support is identified, then the OPS rule on it (SPEC B.3).

    ``x_star`` holds the identified arms (K = null arm), ``cost_slack`` is "the cost resource is in
    J'"; time always binds because of the null arm, so phase 1 ends when ``len(x_star) + cost_slack
    >= 2``. Time is an inequality in phase 2, so the null arm is its slack even outside ``x_star``.
    """

    def __init__(self, K: int, c: float, T: int, a: float = 2.0, skip: bool = True) -> None:
        super().__init__(K, c, skip)
        self.T, self.a = T, a
        self.x_star: set[int] = set()
        self.cost_slack, self.sweep_pulls = False, 0

    @property
    def phase(self) -> int:
        """1 while identifying, then 2."""
        return 2 if len(self.x_star) + int(self.cost_slack) >= 2 else 1

    def bounds(self) -> list[list[float]]:
        """``mu^L, mu^U, rho^L, rho^U``."""
        return self.ends(self.a, math.log(self.T))

    def tests(self) -> tuple[float, list[float], float]:
        """``(LCB(OPT), [UCB(OPT_-x) for x = 0..K], UCB(OPT_-cost))`` at the nominal c."""
        mu_l, mu_u, rho_l, rho_u = self.bounds()
        opt = lp_pair(mu_l, rho_u, self.c).value
        without = [lp_pair(mu_u, rho_l, self.c, forbidden={x}).value for x in range(self.K + 1)]
        # Objective <mu, pi> - (c - <rho, pi>): upper bounds in it, lower cost bounds in the
        # constraint.
        summed = [m + r for m, r in zip(mu_u, rho_u, strict=True)]
        return opt, without, lp_pair(summed, rho_l, self.c).value - self.c

    def base_plan(self) -> Mixture:
        """Round robin in phase 1, the restricted LP's mixture in phase 2."""
        if self.phase == 1:
            return _alone(self.sweep_pulls % self.K)
        _, upper, lower, _ = self.bounds()
        outside = {k for k in range(self.K) if k not in self.x_star}
        return _as_mixture(lp_pair(upper, lower, self.rate(self.T), forbidden=outside))

    def update(self, action: int, reward: float, cost: float) -> None:
        """Record one round; after each completed phase-1 sweep run the identification tests."""
        phase = self.phase
        super().update(action, reward, cost)
        if phase == 1 and 0 <= action < self.K:
            self.sweep_pulls += 1
            if self.sweep_pulls % self.K == 0:
                opt, without, slack = self.tests()
                self.x_star |= {x for x in range(self.K + 1) if without[x] < opt}
                self.cost_slack = self.cost_slack or slack < opt


class UCBSimplex(_Knapsack):
    """USS: basis of the LP with rewards r + lam eps and empirical costs, then load balancing (SPEC
    B.4).

    Deterministic; ``uniform`` is ignored. ``pair_n``, ``pair_cost`` are n_x, b_x per pair (high,
    low).
    """

    def __init__(self, K: int, c: float, lam: float = 9.0, skip: bool = True) -> None:
        super().__init__(K, c, skip)
        self.lam = lam
        self.pair_n: dict[tuple[int, int], int] = {}
        self.pair_cost: dict[tuple[int, int], float] = {}

    def basis(self) -> LPSolution | None:
        """LP optimum, eps = sqrt(2 ln t / n), rewards not clipped; None if unpulled."""
        if self.first_unpulled() is not None:
            return None
        mu, log_t = self.mean_r(), math.log(self.t)
        boosted = [mu[k] + self.lam * self.radius(k, 2.0, log_t) for k in range(self.K)]
        return lp_pair(boosted, self.mean_c(), self.c)

    def base_plan(self) -> Mixture:
        """Each arm once; then the single arm, or the pair's member by b_x <= c n_x."""
        basis, first = self.basis(), self.first_unpulled()
        if basis is None:
            assert first is not None
            return _alone(first)
        if basis.high < 0:
            return _alone(basis.low)
        pair = (basis.high, basis.low)
        under = self.pair_cost.get(pair, 0.0) <= self.c * self.pair_n.get(pair, 0)
        return _alone(basis.high if under else basis.low)

    def update(self, action: int, reward: float, cost: float) -> None:
        """Record one round; n_x, b_x of the selected pair move on every round that is not a skip."""
        basis = self.basis()
        super().update(action, reward, cost)
        if action != SKIP and basis is not None and basis.high >= 0:
            pair = (basis.high, basis.low)
            self.pair_n[pair] = self.pair_n.get(pair, 0) + 1
            self.pair_cost[pair] = self.pair_cost.get(pair, 0.0) + cost
