"""Studies around the B-Zoom paper: the ball's scale, readings of Zooming, growth of regret, grids, tree searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import _b_zoom_play as play
from experiments import _b_zoom_published as published
from experiments.common import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    VERMILION,
    Options,
    Row,
    figure,
    mean_se,
    save,
    verdict,
)
from jaxbandits.environments import cost_valley
from jaxbandits.policies import HOO, UCB1, UCBBV1, BZoom, OmegaUCB, OnPoints, StoOO


def scale(options: Options) -> list[Row]:
    """The two open points, by measurement: the ball's scale (E/L) and what Table 1 counts; Zooming's readings too."""
    budgets, lambdas, instances = play.sizes(options)
    plan = play.design(budgets, lambdas, instances, seed=1)
    world = play.table1_world(plan)
    ratio, lemma = play.ratio_slope(world), (0.05 + 0.2 * np.sqrt(1000 / np.e)) / plan.lam**2
    factor = play.width_factor(plan.lam)
    ones = np.ones_like(plan.lam)
    readings: dict[str, tuple[str, Any]] = {
        "BZ, L = 1 (no rescaling)": ("BZ", play.b_zoom(plan, ones)),
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
        for what, samples in (("pulls", cells.pulls), ("Σ reward", cells.reward)):
            value, error = published.statistics(samples) / 1e3, published.errors(samples) / 1e3
            z = []
            for b, budget in enumerate(budgets):
                for k, lam in enumerate(lambdas):
                    if (budget, lam) in published.TABLE1:
                        printed = np.array(published.TABLE1[budget, lam])[:, play.COLUMNS.index(column)]
                        z.append(published.distance(printed.astype(float), value[:, b, k], error[:, b, k], 1.0))
            if not z:
                rows.append(Row(f"scale: {name}, {what}", "", "", "", "unclear", "no published budget at this size"))
                continue
            size = np.abs(z)
            inside = int((size <= 3).sum())
            by_row = ", ".join(str(int(x)) for x in (size <= 3).sum(axis=0))
            note = f"m, Q1, Q2, mean: {by_row} of {len(z)}; median |z| {np.median(size):.1f}"
            full = f"; {cells.full} lanes full" if cells.full else ""
            rows.append(
                Row(
                    f"scale: {name}, {what}",
                    "all cells",
                    f"{inside} of {size.size}",
                    "",
                    verdict(inside == size.size),
                    note + full,
                )
            )
    return rows


def growth(options: Options) -> list[Row]:
    """Regret against B on log-log axes, with local exponents, beside (d + 1)/(d + 2)."""
    budgets = options.pick(
        (500, 1_000, 2_000), (1_000, 4_000, 16_000, 64_000), (1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000)
    )
    instances = options.pick(20, 40, 40)
    plan = play.design(budgets, (0.5,), instances, seed=3)
    world = play.table1_world(plan)
    slope = play.ratio_slope(world)
    lam, shape = plan.lam[None], plan.shape
    grid = (np.arange(15) + 0.5) / 15
    played = {
        "B-Zoom, single phase": play.simulate(play.b_zoom(plan, slope), world, plan.budget, shape),
        "B-Zoom, phases": play.simulate(
            BZoom(lam=lam, lipschitz=slope[None], capacity=play.CAPACITY), world, plan.budget, shape
        ),
        "UCB-BV1, grid of 15": play.simulate(UCBBV1(min_cost=lam), world.at(grid), plan.budget, shape),
    }
    finite = played["UCB-BV1, grid of 15"]
    played["UCB-BV1, grid of 15"] = finite._replace(regret=play.against_continuum(world, finite, plan))
    looks = {
        "B-Zoom, single phase": (BLUE, "o"),
        "B-Zoom, phases": (VERMILION, "s"),
        "UCB-BV1, grid of 15": (GREEN, "^"),
    }
    picture, axes = figure(1, 2, (11.5, 4.6))
    x = np.array(budgets, float)
    middle = np.sqrt(x[1:] * x[:-1])
    rows = []
    for name, cells in played.items():
        play.say(f"growth: {name}", cells)
        mean, se = mean_se(cells.regret[:, 0], axis=-1)
        colour, marker = looks[name]
        axes[0].errorbar(x, mean, 1.96 * se, color=colour, marker=marker, markersize=5, linewidth=1.5, label=name)
        logs = np.log(np.maximum(cells.regret[:, 0], 1e-9).mean(axis=-1))
        local = np.diff(logs) / np.diff(np.log(x))
        error = np.hypot(se[1:] / mean[1:], se[:-1] / mean[:-1]) / np.diff(np.log(x))
        axes[1].errorbar(
            middle, local, 1.96 * error, color=colour, marker=marker, markersize=5, linewidth=1.5, label=name
        )
        for i, value in enumerate(local):
            rows.append(
                Row(
                    f"growth: local exponent of {name}, B = {budgets[i]} to {budgets[i + 1]}",
                    "0.6 (d = 1/2), 0.667 (d = 1)",
                    f"{value:.3f}",
                    f"{error[i]:.2g}",
                    "unclear",
                    "asymptotic upper bound, λ = 0.5",
                )
            )
        if name.startswith("B-Zoom"):
            falls = local[-1] < local[0] - 2 * np.hypot(error[-1], error[0])
            rows.append(
                Row(
                    f"growth: exponent of {name} falls with B",
                    "towards (d + 1)/(d + 2)",
                    f"{local[0]:.3f} to {local[-1]:.3f}",
                    f"{np.hypot(error[-1], error[0]):.2g}",
                    verdict(bool(falls)),
                    "first and last interval; yes: by 2 s.e.",
                )
            )
    for value, text, dash in (
        (0.6, "3/5 (d = 1/2: a smooth peak)", "--"),
        (2 / 3, "2/3 (d = 1)", ":"),
        (1.0, "1 (linear)", "-"),
    ):
        axes[1].axhline(value, color=GREY, linestyle=dash, linewidth=1, label=text)
    axes[0].set(xscale="log", yscale="log", xlabel="budget B", ylabel="regret", title="Regret: mean and 95 % interval")
    axes[1].set(xscale="log", xlabel="budget B", ylabel="local exponent", title="d log regret / d log B")
    picture.suptitle(f"λ = 0.5, {instances} instances a budget")
    save(picture, options.out / "growth.png", legend=axes[1:], columns=3)
    return rows


def grids(options: Options) -> list[Row]:
    """The best fixed grid in hindsight: UCB-BV1 and ω-UCB on K equally spaced points, against B-Zoom."""
    budget, instances = options.pick(1_000, 20_000, 100_000), options.pick(20, 40, 100)
    sizes = (2, 4, 8, 16, 32, 64)
    plan = play.design((budget,), (0.1, 0.5), instances, seed=4)
    world = play.table1_world(plan)
    reward, cost = world.values()
    possible = ((reward / cost).max(axis=1) * plan.budget).reshape(plan.shape)
    zoom = play.simulate(play.b_zoom(plan, play.ratio_slope(world)), world, plan.budget, plan.shape).reward / possible
    shares: dict[str, list[np.ndarray]] = {"UCB-BV1": [], "ω-UCB": [], "its best point, known": []}
    for k in sizes:
        points = (np.arange(k) + 0.5) / k
        finite = world.at(points)
        for name, policy in (("UCB-BV1", UCBBV1(min_cost=plan.lam[None])), ("ω-UCB", OmegaUCB(rho=0.25))):
            shares[name].append(play.simulate(policy, finite, plan.budget, plan.shape).reward / possible)
        r, c = finite.values()
        shares["its best point, known"].append(((r / c).max(axis=1) * plan.budget).reshape(plan.shape) / possible)
    picture, axes = figure(1, 2, (11.5, 4.4))
    rows = []
    looks = {"UCB-BV1": (GREEN, "^"), "ω-UCB": (PINK, "D"), "its best point, known": (BLACK, "x")}
    for j, lam in enumerate((0.1, 0.5)):
        for name, values in shares.items():
            mean, se = (np.array(x) for x in zip(*(mean_se(v[0, j]) for v in values), strict=True))
            axes[j].errorbar(
                sizes,
                mean,
                1.96 * se,
                color=looks[name][0],
                marker=looks[name][1],
                markersize=5,
                linewidth=1.5,
                label=name,
            )
            best = int(np.argmax(mean))
            ahead, error = mean_se(zoom[0, j] - values[best][0, j])
            holds = True if ahead > 2 * error else False if ahead < -2 * error else None
            rows.append(
                Row(
                    f"grids: B-Zoom − {name} on the best grid, λ = {lam:g}",
                    "",
                    f"{ahead:.4f}",
                    f"{error:.2g}",
                    verdict(holds),
                    f"shares of the best point's profit; the best grid has {sizes[best]} points ({mean[best]:.3f}), "
                    f"B-Zoom {zoom[0, j].mean():.3f}; yes: B-Zoom above",
                )
            )
        mean, se = mean_se(zoom[0, j])
        axes[j].axhline(mean, color=BLUE, linewidth=1.5, label="B-Zoom")
        axes[j].axhspan(mean - 1.96 * se, mean + 1.96 * se, color=BLUE, alpha=0.15, linewidth=0)
        axes[j].set(xscale="log", xlabel="points of the grid", title=f"λ = {lam:g}", ylabel="profit / (B · best ratio)")
        axes[j].set_xticks(sizes, [str(k) for k in sizes])
        axes[j].minorticks_off()
    picture.suptitle(f"Fixed grids in hindsight, B = {budget:,}: mean and 95 % interval over {instances} instances")
    save(picture, options.out / "grids.png", legend=axes[:1])
    return rows


def trees(options: Options) -> list[Row]:
    """HOO and StoOO with ratio rewards beside B-Zoom and a random point."""
    budget, instances = options.pick(300, 5_000, 20_000), options.pick(10, 30, 50)
    plan = play.design((budget,), (0.5,), instances, seed=5)
    world = cost_valley(plan.centre, plan.lam)
    reward, cost = world.values()
    possible = ((reward / cost).max(axis=1) * plan.budget).reshape(plan.shape)
    slope = play.ratio_slope(world)
    lam, depth = plan.lam[None], 6
    policies: dict[str, Any] = {
        "B-Zoom, single phase": play.b_zoom(plan, slope),
        "B-Zoom, phases": BZoom(lam=lam, lipschitz=slope[None], capacity=play.CAPACITY),
        "HOO": HOO(lam=lam, nu=slope[None], depth=depth),
        "StoOO": StoOO(lam=lam, nu=slope[None] / 2, horizon=plan.budget[None] / lam, capacity=96),
        "UCB1, 10 random points": OnPoints(UCB1(), points=plan.points[None, :, :10]),
    }
    rows, shares = [], {}
    for name, policy in policies.items():
        cells = play.simulate(policy, world, plan.budget, plan.shape)
        play.say(f"trees: {name}", cells)
        shares[name] = (cells.reward / possible)[0, 0]
        mean, se = mean_se(shares[name])
        rows.append(
            Row(f"trees: profit of {name}", "", f"{mean:.4f}", f"{se:.2g}", "unclear", "share of the best point's")
        )
    for name in ("HOO", "StoOO"):
        mean, se = mean_se(shares["B-Zoom, single phase"] - shares[name])
        holds = True if mean > 2 * se else False if mean < -2 * se else None
        rows.append(
            Row(f"trees: B-Zoom − {name}", "", f"{mean:.4f}", f"{se:.2g}", verdict(holds), "paired; yes: B-Zoom above")
        )
    picture, axes = figure(1, 1, (7.5, 4.2))
    colours = (BLUE, VERMILION, PINK, ORANGE, GREY)
    for place, (values, colour) in enumerate(zip(shares.values(), colours, strict=True)):
        box = axes[0].boxplot([values], positions=[place], whis=(0, 100), patch_artist=True, widths=0.6)
        box["boxes"][0].set(facecolor=colour, alpha=0.5)
        box["medians"][0].set(color="black")
    axes[0].set_xticks(range(len(shares)), [name.replace(", ", ",\n") for name in shares])
    axes[0].set(ylabel="profit / (B · best ratio)", title=f"λ = 0.5, B = {budget:,}, {instances} instances")
    save(picture, options.out / "trees.png")
    return rows
