"""RCB study: regret against the budget, local exponents, known against unknown budget."""

from __future__ import annotations

import numpy as np

from experiments.common.figures import figure, save
from experiments.common.looks import GREY, look
from experiments.common.rows import OURS, Row, above_zero, row
from experiments.common.running import Options
from experiments.rcb.curves import NAMES, Curve, bound_exponents, curves
from experiments.rcb.play import BETAS


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
    title = "Regret B·ρ* − reward, mean and 95 % interval (ρ* = 2, λ = 0.1)"
    save(picture, options.out / "regret.png", title, legend=[axes[0], axes[3]])
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
        rows.append(row(item, curve.mean[i], curve.se[i], note=note))
    return rows


def _exponents(name: str, beta: float, curve: Curve) -> list[Row]:
    """Does the local exponent fall with B, and has it come down to that of the upper bound?"""
    middle, slope, se = curve.exponents()
    upper, lower = bound_exponents(beta, middle, name)
    rows, note = [], "yes: below the upper bound's own local exponent"
    for i, budget in enumerate(middle):
        item = f"exponent: {name}, β = {beta:g}, B ≈ {budget:.3g}"
        said = f"≤ {upper[i]:.3f} (upper bound), ≥ {lower:.3f} (lower)"
        holds = above_zero(upper[i] - slope[i], se[i])
        rows.append(row(item, slope[i], se[i], published=said, holds=holds, note=note, digits=".3f"))
    fall, error = slope[0] - slope[-1], np.hypot(se[0], se[-1])
    item, note = f"exponent: {name}, β = {beta:g}: it falls with B", f"first minus last of {len(middle)}"
    holds = above_zero(fall, error)
    return [*rows, row(item, fall, error, published=OURS, holds=holds, note=note, digits=".3f")]


def far(options: Options) -> list[Row]:
    """Regret, and local exponents of RCB, at budgets beyond those of ``regret``, with a tenth of its runs."""
    rows: list[Row] = []
    for formula in NAMES:
        for beta, found in curves(formula, options, far=True).items():
            for name, curve in found.items():
                rows += _levels(name, beta, curve) + (_exponents(name, beta, curve)[:-1] if formula == "RCB" else [])
            rows += _ratios(formula, beta, found)
    return [each._replace(item=f"far: {each.item}") for each in rows]


def known(options: Options) -> list[Row]:
    """Known against unknown budget: regret of the increasing rule over that of K arms, at equal B."""
    rows: list[Row] = []
    picture, axes = figure(1, 3, (12.5, 4.4))
    for axis, beta in zip(axes, BETAS, strict=True):
        for formula, (i, air) in NAMES.items():
            both = curves(formula, options)[beta]
            ratio, error = _ratio(both[air], both[i])
            axis.errorbar(both[i].budget, ratio, 1.96 * error, label=f"{air} / {i}", **look(air))
            rows += [told._replace(item=f"known: {told.item}") for told in _ratios(formula, beta, both)]
        axis.axhline(1, color=GREY, lw=1)
        axis.set(xscale="log", xlabel="budget B", ylabel="ratio of regrets", title=f"β = {beta:g}")
    title = "What it costs not to know the budget: unknown over known, 95 % interval"
    save(picture, options.out / "known.png", title, legend=axes[:1])
    return rows


def _ratios(formula: str, beta: float, both: dict[str, Curve]) -> list[Row]:
    """Regret of the rule that does not know the budget over that of the one that does."""
    (i, air), rows = NAMES[formula], []
    note = "yes: above 1; not paired; the bounds differ by a logarithm at most"
    for b, x, se in zip(both[i].budget, *_ratio(both[air], both[i]), strict=True):
        item, holds = f"{air} / {i}, β = {beta:g}, B = {b:g}", above_zero(x - 1, se)
        rows.append(row(item, x, se, published=OURS, holds=holds, note=note, digits=".3f"))
    return rows


def _ratio(top: Curve, bottom: Curve) -> tuple[np.ndarray, np.ndarray]:
    assert np.array_equal(top.budget, bottom.budget)
    ratio = top.mean / bottom.mean
    return ratio, ratio * np.hypot(top.se / top.mean, bottom.se / bottom.mean)
