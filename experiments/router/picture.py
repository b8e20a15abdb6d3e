"""Quality over dollars: the frontier of mixtures as a line, routers as points with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import mean_se
from experiments.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION, figure, save
from experiments.router.programs import ceiling, frontier

LOOKS = {
    "ParetoBandit": (VERMILION, "o"),
    "linear, shown all": (BLUE, "^"),
    "longer prompts to the dearer": (SKY, "v"),
    "UCB-Simplex": (GREEN, "s"),
    "pacer": (PINK, "*"),
    "explore 50, then commit": (ORANGE, "D"),
    "cap": (GREY, "X"),
    "price tiers": (BLACK, "<"),
    "LiteLLM adaptive": (SKY, "p"),
    "r − λc": (ORANGE, "P"),
}


def draw_picture(
    path: Path, study: Any, learners: Mapping[str, Any], contextual: Mapping[str, Any]
) -> None:
    """Left: quality over dollars of all routers; right: their gain on the best mixture."""
    quality, dollars = study.test.means
    picture, (left_axis, right_axis) = figure(1, 2, (13, 5.6))
    line = np.geomspace(dollars.min(), dollars.max() * 1.3, 200)
    mixtures = frontier(quality, dollars, line)
    wide = {"color": BLACK, "linewidth": 3, "alpha": 0.4}
    left_axis.plot(line, mixtures, label="fixed mixtures", **wide)
    best = [ceiling(study.test.quality, study.test.dollars, float(x)) for x in line[::8]]
    left_axis.plot(
        line[::8], best, color=GREY, linestyle=":", label="best choice for every request"
    )
    for x, y, name in zip(
        dollars, quality, ("Llama-3.1-8B", "Mistral-Large", "Gemini-2.5-Pro"), strict=True
    ):
        left_axis.scatter(x, y, s=70, color=BLACK, zorder=5)
        below = -14 if x < dollars.max() else 8
        left_axis.annotate(
            name, (x, y), (0, below), textcoords="offset points", ha="center", fontsize=8
        )
    right_axis.axhline(0, **wide)
    for name, points in contextual.items():
        gap, low, high, paid = np.array(points).T
        mean, half = gap + frontier(quality, dollars, paid), np.maximum([gap - low, high - gap], 0)
        _points(left_axis, right_axis, name, paid, mean, gap, half)
    for name, record in learners.items():
        if name in LOOKS:
            paid, (mean, error) = record.dollars.mean(1), mean_se(record.quality, axis=1)
            gap = mean - frontier(quality, dollars, paid)
            _points(left_axis, right_axis, name, paid, mean, gap, np.tile(1.96 * error, (2, 1)))
    left_axis.set(
        xscale="log", xlabel="dollars a request", ylabel="judged quality", ylim=(0.77, 0.975)
    )
    right_axis.set(
        xscale="log",
        xlabel="dollars a request",
        ylabel="quality less the best fixed mixture's",
        ylim=(-0.06, 0.05),
    )
    left_axis.set_title("Quality over dollars, seven budgets")
    right_axis.set_title("The same, less the line; 95 % intervals (cap: down to −0.12)")
    save(picture, path, legend=[left_axis], columns=5)


def _points(
    left_axis: Any, right_axis: Any, name: str, paid: Any, mean: Any, gap: Any, half: Any
) -> None:
    colour, marker = LOOKS[name]
    style: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": "none", "label": name}
    style |= {"markersize": 6, "capsize": 2}
    left_axis.errorbar(paid, mean, half, **style)
    right_axis.errorbar(paid, gap, half, **style)
