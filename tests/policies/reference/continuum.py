"""Float64 NumPy twins of the policies on [0, 1], written from the papers and the specification.

Sources: P-BZ = ``papers/b_zoom.txt``; SPEC = ``ALGORITHMS.md``, D; HOO: Bubeck et al. 2011, Alg. 1.
Points are exact fractions with denominator 2**24 where a twin must decide whether a point is
covered (SPEC D.5 needs exactness).
"""

from __future__ import annotations

import math
from fractions import Fraction

RESOLUTION = 2**24


class Arm:
    """An active point (P-BZ Alg. 1, lines 13 to 19 and 25 to 29)."""

    def __init__(self, x: int) -> None:
        self.x = x  # numerator over RESOLUTION
        self.n = 0
        self.r = 0.0
        self.c = 0.0
        self.E = math.inf
        self.u = math.inf


def uncovered(balls: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Brute-force sweep (P-BZ, proof of Theorem 1): closed gaps of whole points 0 … RESOLUTION
    outside open balls.

    Balls are sorted by their left end; the furthest right end so far is kept.
    """
    gaps = []
    end = 0  # the first point not known to be covered
    for low, high in sorted(b for b in balls if b[1] > b[0] + 1):
        if low >= end:  # an open ball does not hold its ends
            gaps.append((end, min(low, RESOLUTION)))
        end = max(end, high)
        if end > RESOLUTION:
            break
    if end <= RESOLUTION:
        gaps.append((end, RESOLUTION))
    return [(a, b) for a, b in gaps if a <= b and a <= RESOLUTION]


class ZoomingTwin:
    """What B-Zoom and Zooming share (P-BZ Alg. 1); ``radius`` is the subclass's."""

    phased = True

    def __init__(self, lipschitz: float) -> None:
        self.lipschitz = lipschitz
        self.phase = 0
        self.arms: list[Arm] = []

    def radius(self, n: int) -> float:
        raise NotImplementedError

    def value(self, arm: Arm) -> float:
        return arm.r + 2 * arm.E

    def begin_round(self, t: int) -> None:
        """Phase change (lines 6 to 8)."""
        phase = t.bit_length() if self.phased else 1
        if phase != self.phase:
            self.phase, self.arms = phase, []

    def gaps(self, slack: float = 0.0) -> list[tuple[int, int]]:
        """Where a point must be activated (lines 10 to 12), radii larger by ``slack``."""
        balls = []
        for arm in self.arms:
            if math.isinf(arm.E):
                return []
            radius = Fraction(arm.E / self.lipschitz * (1 + slack)) * RESOLUTION + (
                2 if slack > 0 else -2 if slack else 0
            )
            reach = math.ceil(radius)  # |y − x| < E/L for whole points
            balls.append((arm.x - reach, arm.x + reach))
        return uncovered(balls)

    def activate(self, x: int) -> None:
        self.arms.append(Arm(x))

    def scores(self) -> list[float]:
        return [arm.u for arm in self.arms]

    def update(self, x: int, reward: float, cost: float) -> None:
        """Lines 25 to 29."""
        (arm,) = (a for a in self.arms if a.x == x)
        arm.n += 1
        arm.r += (reward - arm.r) / arm.n
        arm.c += (cost - arm.c) / arm.n
        arm.E = self.radius(arm.n)
        arm.u = self.value(arm)


class BZoomTwin(ZoomingTwin):
    """P-BZ Alg. 1 in phases."""

    def __init__(self, lam: float, lipschitz: float) -> None:
        super().__init__(lipschitz)
        self.lam = lam

    def radius(self, n: int) -> float:
        return 1 / self.lam * (1 + 1 / self.lam) * math.sqrt((8 * self.phase + math.log(4)) / n)

    def value(self, arm: Arm) -> float:
        return arm.r / max(self.lam, arm.c) + 2 * arm.E


class SinglePhaseBZoomTwin(BZoomTwin):
    """P-BZ §4."""

    phased = False

    def __init__(self, budget: float, lam: float, lipschitz: float) -> None:
        super().__init__(lam, lipschitz)
        self.budget = budget

    def radius(self, n: int) -> float:
        inner = 8 * (math.log(self.budget) - math.log(self.lam)) + math.log(4)
        return 1 / self.lam * (1 + 1 / self.lam) * math.sqrt(inner / n)


class ZoomTwin(ZoomingTwin):
    """SPEC D.3, original: radius √(8 i/(2 + n)), index r̄ + 2 radius."""

    def radius(self, n: int) -> float:
        return math.sqrt(8 * self.phase / (2 + n))


class SinglePhaseZoomTwin(ZoomingTwin):
    """SPEC D.3, as run in the paper, with the width scaled."""

    phased = False

    def __init__(self, budget: float, lam: float, lipschitz: float, scale: float) -> None:
        super().__init__(lipschitz)
        self.budget, self.lam, self.scale = budget, lam, scale

    def radius(self, n: int) -> float:
        return self.scale * math.sqrt((8 * math.log(self.budget / self.lam) + math.log(4)) / n)


class Cell:
    """A node of HOO or a leaf of StoOO: the interval [i/2^h, (i + 1)/2^h]."""

    def __init__(self, h: int, i: int) -> None:
        self.h, self.i = h, i
        self.n, self.reward, self.cost = 0, 0.0, 0.0

    @property
    def x(self) -> int:
        return (2 * self.i + 1) * RESOLUTION // 2 ** (self.h + 1)

    def learn(self, reward: float, cost: float) -> None:
        self.n += 1
        self.reward += reward
        self.cost += cost

    def ratio(self, lam: float) -> float:
        return (self.reward / self.n) / max(lam, self.cost / self.n)


class HOOTwin:
    """Bubeck et al. 2011, Alg. 1, truncated; estimate and width as in ``trees.HOO``."""

    def __init__(self, lam: float, nu: float, rho: float, depth: int) -> None:
        self.lam, self.nu, self.rho, self.depth = lam, nu, rho, depth
        self.cells: dict[tuple[int, int], Cell] = {}

    def bound(self, h: int, i: int, t: int) -> float:
        """B of a cell, recursively."""
        cell = self.cells.get((h, i))
        if cell is None:
            return math.inf
        factor = (1 / self.lam) * (1 + 1 / self.lam)
        upper = (
            cell.ratio(self.lam)
            + factor * math.sqrt(2 * math.log(t) / cell.n)
            + self.nu * self.rho**h
        )
        if h == self.depth:
            return upper
        return min(upper, max(self.bound(h + 1, 2 * i, t), self.bound(h + 1, 2 * i + 1, t)))

    def choose(self, t: int) -> tuple[int, list[float]]:
        """The point, and differences of the children's bounds on the way (near-ties)."""
        h, i, gaps = 0, 0, []
        while (h, i) in self.cells and h < self.depth:
            low, high = (self.bound(h + 1, j, t) for j in (2 * i, 2 * i + 1))
            gaps.append(abs(low - high) if math.isfinite(min(low, high)) else math.inf)
            h, i = h + 1, 2 * i + (high > low)
        return Cell(h, i).x, gaps

    def update(self, x: int, reward: float, cost: float) -> None:
        """The played cell and all that hold it; the played one is the one with that centre."""
        last = next(h for h in range(25) if Cell(h, x * 2**h // RESOLUTION).x == x)
        for h in range(last + 1):
            cell = self.cells.setdefault(
                (h, x * 2**h // RESOLUTION), Cell(h, x * 2**h // RESOLUTION)
            )
            cell.learn(reward, cost)


class StoOOTwin:
    """SPEC D.6, on halved cells, estimate and width as in ``trees.StoOO``."""

    def __init__(self, lam: float, nu: float, horizon: float, delta: float) -> None:
        self.lam, self.nu, self.horizon, self.delta = lam, nu, horizon, delta
        self.leaves = [Cell(0, 0)]

    def width(self, n: int) -> float:
        factor = (1 / self.lam) * (1 + 1 / self.lam)
        return factor * math.sqrt(math.log(self.horizon**2 / self.delta) / (2 * n))

    def scores(self) -> list[float]:
        return [
            leaf.ratio(self.lam) + self.width(leaf.n) + self.nu * 0.5**leaf.h
            if leaf.n
            else math.inf
            for leaf in self.leaves
        ]

    def update(self, x: int, reward: float, cost: float) -> None:
        place, leaf = next((k, leaf) for k, leaf in enumerate(self.leaves) if leaf.x == x)
        leaf.learn(reward, cost)
        if self.nu * 0.5**leaf.h >= self.width(leaf.n):
            self.leaves[place] = Cell(leaf.h + 1, 2 * leaf.i)
            self.leaves.append(Cell(leaf.h + 1, 2 * leaf.i + 1))
