"""RCB study: regret at several budgets, as curves with local exponents."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.common.rows import mean_se
from experiments.common.running import Options
from experiments.rcb.play import BETAS, Lanes, Point, increasing, play, sampled
from jaxbandits.policies import arms_to_sample

NAMES = {"RCB": ("RCB-I", "RCB-AIR"), "ω-UCB": ("ω-UCB, K arms", "ω-UCB, increasing")}
# ten to the …: the last budget with many runs, and the last one of all, by β
MANY = {"RCB": {0.5: 5.0, 1.0: 5.0, 2.0: 4.0}, "ω-UCB": {0.5: 4.0, 1.0: 4.0, 2.0: 3.5}}
LAST = {"RCB": {0.5: 6.0, 1.0: 5.0, 2.0: 4.5}, "ω-UCB": {0.5: 4.0, 1.0: 4.0, 2.0: 3.5}}
# ten to the …: where ``far`` begins, the last budget of ``regret``, and where it ends
FAR = {"RCB": {1.0: (5.0, 5.5), 2.0: (4.5, 5.0)}, "ω-UCB": {0.5: (4.0, 5.0), 1.0: (4.0, 5.0), 2.0: (3.5, 4.5)}}
ROUNDS = {0.5: 8.5, 1.0: 5.6, 2.0: 4.6}  # most rounds that a unit of budget pays for (measured)
_SIMILAR, _CHEAP = 1.3, 32  # what costs less than compiling another program: so many times the arms, so many arms


class Curve(NamedTuple):
    """Regret at several budgets, ascending."""

    budget: np.ndarray
    mean: np.ndarray
    se: np.ndarray
    runs: np.ndarray
    infinite: np.ndarray  # mean share; NaN at a budget that was only passed
    opened: np.ndarray

    def exponents(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(geometric mid budget, d ln R / d ln B between neighbours, its standard error by the delta method).

        Neighbours are taken as independent: for marks of one run, which are positively correlated, that is too wide.
        """
        step = np.diff(np.log(self.budget))
        slope = np.diff(np.log(self.mean)) / step
        relative = self.se / self.mean
        return np.sqrt(self.budget[1:] * self.budget[:-1]), slope, np.hypot(relative[1:], relative[:-1]) / step


def join(parts: Sequence[Lanes], *, passed: bool) -> Curve:
    """Several runs as one curve, with the marks on the way if ``passed``; the most replicates count."""
    rows: dict[float, tuple[float, ...]] = {}
    for lanes in sorted(parts, key=lambda part: len(part.regret)):
        mean, se = mean_se(lanes.regret)
        last = len(lanes.budget) - 1
        for i in range(0 if passed else last, last + 1):
            ends = [float(x.mean()) if i == last else np.nan for x in (lanes.infinite, lanes.opened)]
            rows[float(f"{lanes.budget[i]:.3g}")] = (float(mean[i]), float(se[i]), len(lanes.regret), *ends)
    budgets = np.array(sorted(rows))
    return Curve(budgets, *np.array([rows[b] for b in budgets]).T)


def _powers(low: float, high: float) -> list[float]:
    """Budgets in half decades, three digits."""
    return [float(f"{10**e:.3g}") for e in np.arange(low, high + 0.1, 0.5)]


def sizes(formula: str, beta: float, options: Options, far: bool = False) -> list[tuple[float, int]]:
    """(budget, replicates)."""
    if far:
        if beta not in FAR[formula]:
            return []
        low, high = (x - options.pick(2.0, 1.0, 0.0) for x in FAR[formula][beta])
        return [(b, options.pick(20, 40, 100)) for b in _powers(low, high)]
    if options.quick:
        return [(b, 40) for b in _powers(2.0, 3.0)]
    many, few = options.pick(0, 200, 1000), options.pick(0, 40, 100)
    border, last = MANY[formula][beta], LAST[formula][beta]
    if not options.full:
        border, last = border - 1, border - 0.5
    return [(b, many if b <= 10**border * 1.01 else few) for b in _powers(3.0, last)]


@functools.cache
def curves(formula: str, options: Options, far: bool = False) -> dict[float, dict[str, Curve]]:
    """By β, by rule; ``far``: at budgets beyond, with fewer runs, for the β that have some."""
    known_name, any_name = NAMES[formula]
    points = [Point(beta, b, n) for beta in BETAS for b, n in sizes(formula, beta, options, far)]
    found: dict[float, list[Lanes]] = {beta: [] for beta in BETAS}
    for together in _alike(points, options):
        lanes = play(known_name, together, lambda beta, budget: sampled(formula, budget, beta), options)[0]
        for point, x in zip(together, lanes, strict=True):
            found[point.beta].append(x)
    grown = _increasing(formula, any_name, options, far)
    return {
        beta: {known_name: join(found[beta], passed=False), any_name: join(grown[beta], passed=True)}
        for beta in BETAS
        if found[beta]
    }


def _alike(points: list[Point], options: Options) -> list[list[Point]]:
    """Points that want about as many arms are played together: what the widest needs costs all of them."""
    if options.quick:
        return [points]
    groups: list[list[Point]] = []
    widest = 0
    for point in sorted(points, key=lambda point: -arms_to_sample(point.budget, point.beta)):
        arms = arms_to_sample(point.budget, point.beta)
        if not groups or (arms < widest / _SIMILAR and widest > _CHEAP):
            groups.append([])
            widest = arms
        groups[-1].append(point)
    return groups


def _increasing(formula: str, name: str, options: Options, far: bool) -> dict[float, list[Lanes]]:
    """The arm-increasing rule does not know B: one run serves all smaller budgets."""
    found: dict[float, list[Lanes]] = {beta: [] for beta in BETAS}
    calls: dict[Any, tuple[list[Point], list[float]]] = {}
    for beta in BETAS:
        given = sizes(formula, beta, options, far)
        for replicates in sorted({n for _, n in given}):
            budgets = [b for b, n in given if n >= replicates]
            shares = [b / budgets[-1] for b in budgets[:-1]] + [1.0]
            together = None if options.quick else (beta, replicates)
            points, _ = calls.setdefault(together, ([], shares))
            points.append(Point(beta, budgets[-1], replicates))
    for points, shares in calls.values():
        lanes = play(
            name,
            points,
            lambda beta, budget: increasing(formula, beta),
            options,
            shares=shares,
            rounds=max(ROUNDS[point.beta] for point in points),
        )[0]
        for point, x in zip(points, lanes, strict=True):
            found[point.beta].append(x)
    return found


def bound_exponents(beta: float, budget: np.ndarray, policy: str) -> tuple[np.ndarray, float]:
    """(local exponent of the upper bound with its logarithms, exponent of the lower bound).

    RCB-I: √B ln B (β < 1), √B ln²B (β = 1), B^{β/(1+β)} ln B (β > 1); RCB-AIR: ln²B times √B (β < 1) or B^{β/(1+β)}.
    """
    power = 0.5 if beta < 1 else beta / (1 + beta)
    logs = 2 if policy == "RCB-AIR" or beta == 1 else 1
    return power + logs / np.log(budget), beta / (1 + beta)
