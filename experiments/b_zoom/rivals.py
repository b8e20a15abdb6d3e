"""B-Zoom beside what else plays a continuum: fixed grids in hindsight, tree searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.b_zoom import play
from experiments.common.figures import boxes, figure, intervals, save
from experiments.common.looks import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, VERMILION
from experiments.common.rows import Row, is_above, mean_row, mean_se
from experiments.common.running import Options
from jaxbandits.environments import Continuum
from jaxbandits.policies import HOO, UCB1, UCBBV1, BZoom, OmegaUCB, OnPoints, StoOO

SIZES = (2, 4, 8, 16, 32, 64)
LOOKS = {"UCB-BV1": (GREEN, "^"), "ω-UCB": (PINK, "D"), "its best point, known": (BLACK, "x")}


def possible(world: Any, plan: play.Design) -> np.ndarray:
    """Profit of the best point, ``[budget, λ, instance]``."""
    reward, cost = world.values()
    return ((reward / cost).max(axis=1) * plan.budget).reshape(plan.shape)


def grids(options: Options) -> list[Row]:
    """The best fixed grid in hindsight: UCB-BV1 and ω-UCB on K equally spaced points, against B-Zoom."""
    budget, instances = options.pick(1_000, 20_000, 100_000), options.pick(20, 40, 100)
    plan = play.design((budget,), (0.1, 0.5), instances, seed=4)
    world = play.table1_world(plan)
    zoom = play.simulate(play.b_zoom(plan, play.ratio_slope(world)), world, plan.budget, plan.shape).reward
    zoom = zoom / possible(world, plan)
    shares = _on_grids(world, plan)
    picture, axes = figure(1, 2, (11.5, 4.4))
    rows = []
    for j, lam in enumerate((0.1, 0.5)):
        for name, values in shares.items():
            colour, marker = LOOKS[name]
            x = values[:, 0, j]  # [size, instance]
            intervals(axes[j], SIZES, x, color=colour, marker=marker, markersize=5, linewidth=1.5, label=name)
            best = int(np.argmax(x.mean(axis=-1)))
            note = f"shares of the best point's profit; the best grid has {SIZES[best]} points "
            note += f"({x[best].mean():.3f}), B-Zoom {zoom[0, j].mean():.3f}; yes: B-Zoom above"
            item, ahead = f"grids: B-Zoom − {name} on the best grid, λ = {lam:g}", zoom[0, j] - x[best]
            rows.append(mean_row(item, ahead, holds=is_above(ahead), note=note, digits=".4f"))
        mean, se = mean_se(zoom[0, j])
        axes[j].axhline(mean, color=BLUE, linewidth=1.5, label="B-Zoom")
        axes[j].axhspan(mean - 1.96 * se, mean + 1.96 * se, color=BLUE, alpha=0.15, linewidth=0)
        axes[j].set(xscale="log", xlabel="points of the grid", title=f"λ = {lam:g}", ylabel="profit / (B · best ratio)")
        axes[j].set_xticks(SIZES, [str(k) for k in SIZES])
        axes[j].minorticks_off()
    title = f"Fixed grids in hindsight, B = {budget:,}: mean and 95 % interval over {instances} instances"
    save(picture, options.out / "grids.png", title, legend=axes[:1])
    return rows


def _on_grids(world: Continuum, plan: play.Design) -> dict[str, np.ndarray]:
    """Shares of the best point's profit, ``[size, budget, λ, instance]``."""
    profits: dict[str, list[np.ndarray]] = {name: [] for name in LOOKS}
    policies = {"UCB-BV1": UCBBV1(min_cost=plan.lam[None]), "ω-UCB": OmegaUCB(rho=0.25)}
    for k in SIZES:
        finite = world.at((np.arange(k) + 0.5) / k)
        for name, policy in policies.items():
            profits[name].append(play.simulate(policy, finite, plan.budget, plan.shape).reward)
        profits["its best point, known"].append(possible(finite, plan))
    return {name: np.stack(found) / possible(world, plan) for name, found in profits.items()}


def trees(options: Options) -> list[Row]:
    """HOO and StoOO with ratio rewards beside B-Zoom and a random point."""
    budget, instances = options.pick(300, 5_000, 20_000), options.pick(10, 30, 50)
    plan = play.design((budget,), (0.5,), instances, seed=5)
    world = play.table1_world(plan)
    slope, lam = play.ratio_slope(world), plan.lam[None]
    policies: dict[str, Any] = {
        "B-Zoom, single phase": play.b_zoom(plan, slope),
        "B-Zoom, phases": BZoom(lam=lam, lipschitz=slope[None], capacity=play.CAPACITY),
        "HOO": HOO(lam=lam, nu=slope[None], depth=6),
        "StoOO": StoOO(lam=lam, nu=slope[None] / 2, horizon=plan.budget[None] / lam, capacity=96),
        "UCB1, 10 random points": OnPoints(UCB1(), points=plan.points[None, :, :10]),
    }
    rows, shares = [], {}
    for name, policy in policies.items():
        cells = play.simulate(policy, world, plan.budget, plan.shape)
        play.say(f"trees: {name}", cells)
        shares[name] = (cells.reward / possible(world, plan))[0, 0]
        note = "share of the best point's"
        rows.append(mean_row(f"trees: profit of {name}", shares[name], note=note, digits=".4f"))
    for name in ("HOO", "StoOO"):
        ahead, note = shares["B-Zoom, single phase"] - shares[name], "paired; yes: B-Zoom above"
        rows.append(mean_row(f"trees: B-Zoom − {name}", ahead, holds=is_above(ahead), note=note, digits=".4f"))
    picture, axes = figure(1, 1, (7.5, 4.2))
    boxes(axes[0], shares.values(), (BLUE, VERMILION, PINK, ORANGE, GREY))
    axes[0].set_xticks(range(len(shares)), [name.replace(", ", ",\n") for name in shares])
    axes[0].set(ylabel="profit / (B · best ratio)", title=f"λ = 0.5, B = {budget:,}, {instances} instances")
    save(picture, options.out / "trees.png")
    return rows
