"""RCB study: regret against the budget, local exponents, known against unknown budget."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from experiments.rcb.play import BETAS, Curve, Lanes, Point, increasing, join, play, sampled
from experiments.common import GREY, Options, Row, figure, look, save, verdict
from jaxbandits.policies import arms_to_sample

NAMES = {"RCB": ("RCB-I", "RCB-AIR"), "ω-UCB": ("ω-UCB, K arms", "ω-UCB, increasing")}
# ten to the …: the last budget with many runs, and the last one of all, by β
MANY = {"RCB": {0.5: 5.0, 1.0: 5.0, 2.0: 4.0}, "ω-UCB": {0.5: 4.0, 1.0: 4.0, 2.0: 3.5}}
LAST = {"RCB": {0.5: 6.0, 1.0: 5.0, 2.0: 4.5}, "ω-UCB": {0.5: 4.0, 1.0: 4.0, 2.0: 3.5}}
ROUNDS = {0.5: 8.5, 1.0: 5.6, 2.0: 4.6}  # most rounds that a unit of budget pays for (measured)
_SIMILAR, _CHEAP = 1.3, 32  # what costs less than compiling another program: so many times the arms, so many arms


def _powers(low: float, high: float) -> list[float]:
    """Budgets in half decades, three digits."""
    return [float(f"{10**e:.3g}") for e in np.arange(low, high + 0.1, 0.5)]


def sizes(formula: str, beta: float, options: Options) -> list[tuple[float, int]]:
    """(budget, replicates)."""
    if options.quick:
        return [(b, 40) for b in _powers(2.0, 3.0)]
    many, few = options.pick(0, 200, 1000), options.pick(0, 40, 100)
    border, last = MANY[formula][beta], LAST[formula][beta]
    if not options.full:
        border, last = border - 1, border - 0.5
    return [(b, many if b <= 10**border * 1.01 else few) for b in _powers(3.0, last)]


@functools.cache
def curves(formula: str, options: Options) -> dict[float, dict[str, Curve]]:
    """By β, by rule."""
    known_name, any_name = NAMES[formula]
    points = [Point(beta, b, n) for beta in BETAS for b, n in sizes(formula, beta, options)]
    found: dict[float, list[Lanes]] = {beta: [] for beta in BETAS}
    for together in _alike(points, options):
        lanes = play(known_name, together, lambda beta, budget: sampled(formula, budget, beta), options)[0]
        for point, x in zip(together, lanes, strict=True):
            found[point.beta].append(x)
    grown = _increasing(formula, any_name, options)
    return {
        beta: {known_name: join(found[beta], passed=False), any_name: join(grown[beta], passed=True)} for beta in BETAS
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


def _increasing(formula: str, name: str, options: Options) -> dict[float, list[Lanes]]:
    """The arm-increasing rule does not know B: one run serves all smaller budgets."""
    found: dict[float, list[Lanes]] = {beta: [] for beta in BETAS}
    calls: dict[Any, tuple[list[Point], list[float]]] = {}
    for beta in BETAS:
        given = sizes(formula, beta, options)
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


def regret(options: Options) -> list[Row]:
    """Regret on log-log axes, and local exponents beside those of the bounds."""
    picture, axes = figure(2, 3, (12.5, 8))
    rows: list[Row] = []
    for column, beta in enumerate(BETAS):
        top, bottom = axes[column], axes[3 + column]
        for formula in NAMES:
            for name, curve in curves(formula, options)[beta].items():
                top.errorbar(curve.budget, curve.mean, 1.96 * curve.se, label=name, **look(name))
                middle, slope, se = curve.exponents()
                bottom.errorbar(middle, slope, 1.96 * se, label=name, **look(name))
                rows += _levels(name, beta, curve)
                if formula == "RCB":
                    rows += _exponents(name, beta, curve)
        one = curves("RCB", options)[beta]["RCB-I"]
        upper, lower = bound_exponents(beta, one.budget, "RCB-I")
        line = one.mean[0] * (one.budget / one.budget[0]) ** lower
        top.plot(one.budget, line, color=GREY, ls=":", label="slope of the lower bound")
        bottom.axhline(lower, color=GREY, ls=":")
        bottom.plot(one.budget, upper, color=GREY, ls="--", label="local slope of RCB-I's upper bound")
        top.set(xscale="log", yscale="log", xlabel="budget B", ylabel="regret", title=f"β = {beta:g}")
        bottom.set(xscale="log", xlabel="budget B", ylabel="local exponent d ln R / d ln B")
    picture.suptitle("Regret B·ρ* − reward, mean and 95 % interval (ρ* = 2, λ = 0.1)")
    save(picture, options.out / "regret.png", legend=[axes[0], axes[3]])
    return rows


def _levels(name: str, beta: float, curve: Curve) -> list[Row]:
    rows = []
    for i, budget in enumerate(curve.budget):
        note = f"{curve.runs[i]:.0f} runs; R/(Bρ*) = {curve.mean[i] / (2 * budget):.3f}"
        if np.isfinite(curve.opened[i]):
            note += f"; {curve.opened[i]:.0f} arms"
        if name.startswith("RCB") and np.isfinite(curve.infinite[i]):
            note += f", infinite index in {100 * curve.infinite[i]:.0f} % of pulls"
        item = f"regret: {name}, β = {beta:g}, B = {budget:g}"
        rows.append(Row(item, "", f"{curve.mean[i]:.4g}", f"{curve.se[i]:.2g}", "unclear", note))
    return rows


def _exponents(name: str, beta: float, curve: Curve) -> list[Row]:
    """Does the local exponent fall with B, and has it come down to that of the upper bound?"""
    middle, slope, se = curve.exponents()
    upper, lower = bound_exponents(beta, middle, name)
    rows = []
    for i, budget in enumerate(middle):
        below = None if abs(slope[i] - upper[i]) <= 2 * se[i] else bool(slope[i] < upper[i])
        item = f"exponent: {name}, β = {beta:g}, B ≈ {budget:.3g}"
        published = f"≤ {upper[i]:.3f} (upper bound), ≥ {lower:.3f} (lower)"
        note = "yes: below the upper bound's own local exponent"
        rows.append(Row(item, published, f"{slope[i]:.3f}", f"{se[i]:.2g}", verdict(below), note))
    fall, error = slope[0] - slope[-1], float(np.hypot(se[0], se[-1]))
    holds = None if abs(fall) <= 2 * error else bool(fall > 0)
    item, note = f"exponent: {name}, β = {beta:g}: it falls with B", f"first minus last of {len(middle)}"
    return [*rows, Row(item, "> 0", f"{fall:.3f}", f"{error:.2g}", verdict(holds), note)]


def known(options: Options) -> list[Row]:
    """Known against unknown budget: regret of the increasing rule over that of K arms, at equal B."""
    rows: list[Row] = []
    picture, axes = figure(1, 3, (12.5, 4.4))
    for axis, beta in zip(axes, BETAS, strict=True):
        for formula, (i, air) in NAMES.items():
            both = curves(formula, options)[beta]
            ratio, error = _ratio(both[air], both[i])
            axis.errorbar(both[i].budget, ratio, 1.96 * error, label=f"{air} / {i}", **look(air))
            rows += [
                _priced(f"known: {air} / {i}, β = {beta:g}, B = {b:g}", x, se)
                for b, x, se in zip(both[i].budget, ratio, error, strict=True)
            ]
        axis.axhline(1, color=GREY, lw=1)
        axis.set(xscale="log", xlabel="budget B", ylabel="ratio of regrets", title=f"β = {beta:g}")
    picture.suptitle("What it costs not to know the budget: unknown over known, 95 % interval")
    save(picture, options.out / "known.png", legend=axes[:1])
    return rows


def _ratio(top: Curve, bottom: Curve) -> tuple[np.ndarray, np.ndarray]:
    assert np.array_equal(top.budget, bottom.budget)
    ratio = top.mean / bottom.mean
    return ratio, ratio * np.hypot(top.se / top.mean, bottom.se / bottom.mean)


def _priced(item: str, ratio: Any, se: Any) -> Row:
    holds = None if abs(ratio - 1) <= 2 * se else bool(ratio > 1)
    note = "not paired; the bounds differ by a logarithm at most"
    return Row(item, "> 1", f"{ratio:.3f}", f"{se:.2g}", verdict(holds), note)
