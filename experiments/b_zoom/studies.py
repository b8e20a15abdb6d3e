"""What the B-Zoom paper leaves open: the ball's scale and readings of Zooming, and how regret grows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.b_zoom import play, published
from experiments.common.figures import figure, save
from experiments.common.looks import BLUE, GREEN, GREY, VERMILION
from experiments.common.rows import Row, mean_se, row
from experiments.common.running import Options
from jaxbandits.policies import UCBBV1, BZoom


def scale(options: Options) -> list[Row]:
    """The two open points, by measurement: the ball's scale (E/L) and what Table 1 counts; Zooming's readings too."""
    plan = play.design(*play.sizes(options), seed=1)
    world = play.table1_world(plan)
    ratio, lemma = play.ratio_slope(world), (0.05 + 0.2 * np.sqrt(1000 / math.e)) / plan.lam**2
    factor = play.width_factor(plan.lam)
    readings: dict[str, tuple[str, Any]] = {
        "BZ, L = 1 (no rescaling)": ("BZ", play.b_zoom(plan, np.ones_like(plan.lam))),
        "BZ, L = largest slope of the ratio": ("BZ", None),
        "BZ, L' = (L_r + L_c)/λ²": ("BZ", play.b_zoom(plan, lemma, 64)),
        "Z, E as printed for BZ, L = slope of the ratio": ("Z", play.zooming(plan, ratio, factor)),
        "Z, E as printed for BZ, L = slope of the reward": ("Z", play.zooming(plan, 0.05, factor)),
        "Z, E without λ, L = slope of the reward": ("Z", None),
        "Z, E without λ, L = slope of the ratio": ("Z", play.zooming(plan, ratio)),
    }
    rows = []
    for name, (column, policy) in readings.items():
        if policy is None:
            cells = play.table1(options)[1][column]
        else:
            cells = play.simulate(policy, world, plan.budget, plan.shape)
            play.say(name, cells)
        full = f"; {cells.full} lanes full" if cells.full else ""
        for what, samples in (("pulls", cells.pulls), ("Σ reward", cells.reward)):
            rows.append(_fit(f"scale: {name}, {what}", column, samples, options, full))
    return rows


def _fit(item: str, column: str, samples: np.ndarray, options: Options, full: str) -> Row:
    """How many cells of a column of Table 1 agree."""
    budgets, lambdas, _ = play.sizes(options)
    value, error = published.statistics(samples) / 1e3, published.errors(samples) / 1e3
    z = []
    for b, k in np.ndindex(len(budgets), len(lambdas)):
        if (budgets[b], lambdas[k]) in published.TABLE1:
            printed = np.array(published.TABLE1[budgets[b], lambdas[k]], float)[:, play.COLUMNS.index(column)]
            z.append(published.distance(printed, value[:, b, k], error[:, b, k], 1.0))
    if not z:
        return row(item, "", note="no published budget at this size")
    by_row = ", ".join(str(n) for n in (np.abs(z) <= 3).sum(axis=0))
    note = f"m, Q1, Q2, mean: {by_row} of {len(z)}; median |z| {np.median(np.abs(z)):.1f}{full}"
    return published.inside(item, z, note, "all cells")


def growth(options: Options) -> list[Row]:
    """Regret against B on log-log axes, with local exponents, beside (d + 1)/(d + 2)."""
    usual = (1_000, 4_000, 16_000, 64_000)
    budgets = options.pick((500, 1_000, 2_000), usual, (*usual, 256_000, 1_024_000))
    instances = options.pick(20, 40, 40)
    plan = play.design(budgets, (0.5,), instances, seed=3)
    picture, axes = figure(1, 2, (11.5, 4.6))
    x = np.array(budgets, float)
    rows = []
    for (name, cells), colour, marker in zip(_grown(plan).items(), (BLUE, VERMILION, GREEN), "os^", strict=True):
        play.say(f"growth: {name}", cells)
        mean, se = mean_se(cells.regret[:, 0], axis=-1)
        style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5, "label": name}
        axes[0].errorbar(x, mean, 1.96 * se, **style)
        local = np.diff(np.log(np.maximum(cells.regret[:, 0], 1e-9).mean(axis=-1))) / np.diff(np.log(x))
        error = np.hypot(se[1:] / mean[1:], se[:-1] / mean[:-1]) / np.diff(np.log(x))
        axes[1].errorbar(np.sqrt(x[1:] * x[:-1]), local, 1.96 * error, **style)
        rows += _exponents(name, budgets, local, error)
    for value, text, dash in (
        (0.6, "3/5 (d = 1/2: a smooth peak)", "--"),
        (2 / 3, "2/3 (d = 1)", ":"),
        (1.0, "1 (linear)", "-"),
    ):
        axes[1].axhline(value, color=GREY, linestyle=dash, linewidth=1, label=text)
    axes[0].set(xscale="log", yscale="log", xlabel="budget B", ylabel="regret", title="Regret: mean and 95 % interval")
    axes[1].set(xscale="log", xlabel="budget B", ylabel="local exponent", title="d log regret / d log B")
    title = f"λ = 0.5, {instances} instances a budget"
    save(picture, options.out / "growth.png", title, legend=axes[1:], columns=3)
    return rows


def _grown(plan: play.Design) -> dict[str, play.Cells]:
    world = play.table1_world(plan)
    slope, lam = play.ratio_slope(world), plan.lam[None]
    phases = BZoom(lam=lam, lipschitz=slope[None], capacity=play.CAPACITY)
    finite = play.simulate(UCBBV1(min_cost=lam), world.at((np.arange(15) + 0.5) / 15), plan.budget, plan.shape)
    return {
        "B-Zoom, single phase": play.simulate(play.b_zoom(plan, slope), world, plan.budget, plan.shape),
        "B-Zoom, phases": play.simulate(phases, world, plan.budget, plan.shape),
        "UCB-BV1, grid of 15": finite._replace(regret=play.against_continuum(world, finite, plan)),
    }


def _exponents(name: str, budgets: tuple[int, ...], local: np.ndarray, error: np.ndarray) -> list[Row]:
    said, note = "0.6 (d = 1/2), 0.667 (d = 1)", "asymptotic upper bound, λ = 0.5"
    rows = []
    for i, value in enumerate(local):
        item = f"growth: local exponent of {name}, B = {budgets[i]} to {budgets[i + 1]}"
        rows.append(row(item, value, error[i], published=said, note=note, digits=".3f"))
    if not name.startswith("B-Zoom"):
        return rows
    both = np.hypot(error[-1], error[0])
    item, text = f"growth: exponent of {name} falls with B", f"{local[0]:.3f} to {local[-1]:.3f}"
    falls, note = local[-1] < local[0] - 2 * both, "first and last interval; yes: by 2 s.e."
    return [*rows, row(item, text, both, published="towards (d + 1)/(d + 2)", holds=falls, note=note)]
