"""Exact regret and its sensitivity over the means of two arms, as maps."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxbandits as jb
from experiments.common.figures import figure, save
from experiments.common.rows import Row, row
from experiments.common.running import Options
from experiments.gradients.world import OMEGA
from jaxbandits.environments import FiniteArms
from jaxbandits.gradients import exact
from jaxbandits.policies import SoftElim


def sensitivity(options: Options) -> list[Row]:
    """Exact regret and its sensitivity over the means of two arms."""
    points = options.pick(13, 25, 41)
    low, high = np.linspace(0.06, 0.94, points), np.linspace(0.5, 0.95, points)
    horizon = jb.Horizon(options.pick(20, 30, 50))
    pair = _pairs(low)
    rewards = FiniteArms.bernoulli(pair, np.full_like(pair, 0.5))
    first = exact.estimate(SoftElim(theta=0.5), rewards, horizon, wrt="mean_reward")
    costs = FiniteArms.bernoulli(np.broadcast_to([0.6, 0.4], pair.shape), _pairs(high))
    second = exact.estimate(OMEGA, costs, jb.TotalBudget(3.0, last_pull="counts"), wrt="mean_cost")
    regret, by_reward, by_cost = (
        x.reshape(points, points)
        for x in (first.value[0], first.gradient["mean_reward"][0, :, 0], second.gradient["mean_cost"][0, :, 0])
    )
    picture, axes = figure(2, 2, (10, 8.6))
    soft, ours = f"SoftElim θ = ½, {horizon.rounds} rounds", "ω-UCB ρ = ¼, B = 3, μ^r = (0.6, 0.4)"
    _map(picture, axes[0], low, regret, f"{soft}: regret", ("μ₁", "μ₂"))
    _map(picture, axes[1], low, by_reward, f"{soft}: ∂ regret / ∂ μ₁", ("μ₁", "μ₂"), signed=True)
    _map(picture, axes[2], high, second.value[0].reshape(points, points), f"{ours}: regret", ("μ^c₁", "μ^c₂"))
    _map(picture, axes[3], high, by_cost, f"{ours}: ∂ regret / ∂ μ^c₁", ("μ^c₁", "μ^c₂"), signed=True)
    save(picture, options.out / "maps.png")
    most, gap = np.abs(by_reward).max(), _gap(low, regret, by_reward)
    return [
        row("maps: largest difference of ∂R/∂μ₁ and slopes of R on the grid", gap, published="small", digits=".3g",
            holds=gap < 0.05, note="share of the largest gradient, away from the kink; yes: below 5 %"),
        row("maps: largest |∂R/∂μ₁| of SoftElim", most, note="beside the kink μ₁ = μ₂"),
        row("maps: largest |∂R/∂μ^c₁| of ω-UCB", np.abs(by_cost).max(), note="beside the kink of equal ratios"),
    ]  # fmt: skip


def _pairs(axis: np.ndarray) -> np.ndarray:
    """All pairs of values, ``[pair, 2]``, the first running fastest."""
    return np.stack([x.ravel() for x in np.meshgrid(axis, axis)], axis=1)


def _map(
    picture: Any, axis: Any, grid: np.ndarray, values: np.ndarray, title: str, labels: tuple[str, str], *,
    signed: bool = False,
) -> None:  # fmt: skip
    most = np.abs(values).max()
    shades = {"cmap": "PuOr", "vmin": -most, "vmax": most} if signed else {"cmap": "viridis"}
    mesh = axis.pcolormesh(grid, grid, values, shading="nearest", rasterized=True, **shades)
    axis.grid(False)
    axis.set(xlabel=labels[0], ylabel=labels[1], title=title, aspect="equal")
    picture.colorbar(mesh, ax=axis, shrink=0.85)


def _gap(grid: np.ndarray, regret: np.ndarray, slope: np.ndarray) -> float:
    """Largest difference of the gradient by μ₁ and the slopes between neighbours, away from the kink μ₁ = μ₂."""
    step = grid[1] - grid[0]
    across = np.diff(regret, axis=1) / step
    x, y = np.meshgrid(grid, grid)
    smooth = np.abs(x[:, 1:] - y[:, 1:]) > 3 * step
    return np.abs(across - (slope[:, 1:] + slope[:, :-1]) / 2)[smooth].max() / np.abs(slope).max()
