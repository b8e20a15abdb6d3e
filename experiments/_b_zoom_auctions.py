"""Bidding in the iPinYou test log of campaign 2997: the arm is the bid, the cost the market price of what is won."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common import BLACK, BLUE, GREEN, ORANGE, PINK, VERMILION, Options, Row, figure, mean_se, save, verdict
from jaxbandits.environments import LoggedAuctions
from jaxbandits.policies import UCB1, UCBBV1, OmegaUCB, OnPoints, SinglePhaseBZoom, SinglePhaseZooming

NAME, LOW, HIGH, POINTS = "2997_test.csv.gz", 20, 300, 15


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(clicks, market prices, predicted click probabilities) of a log with these three columns."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.reader(file))
    if rows[0] != ["click", "market_price", "pctr"]:
        raise SystemExit(f"{path}: columns {rows[0]}; they must be click, market_price, pctr")
    table = np.array(rows[1:], float)
    return table[:, 0], table[:, 1], table[:, 2]


def auctions(options: Options) -> list[Row]:
    """Clicks and predicted clicks bought with an eighth of the test set's cost, bids from 20 to 300."""
    path = options.data / "ipinyou" / NAME
    if not path.exists():
        print(f"  auctions: skipped, {path} is not there")
        return []
    clicks, price, predicted = read(path)
    share = options.pick(1 / 256, 1 / 16, 1 / 8)
    budget = float(price.sum() / HIGH * share)
    runs = options.pick(6, 20, 50)
    rows: list[Row] = []
    picture, axes = figure(1, 3, (13.5, 4.4))
    for number, (kind, gain) in enumerate(
        (("click", clicks), ("predicted click / its largest", predicted / predicted.max()))
    ):
        world = LoggedAuctions.of(price, gain, low=LOW, high=HIGH, top=HIGH)
        reward, cost = (x[0] for x in world.values())
        ratio = reward / cost
        lam = float(cost.min())
        x = np.linspace(0, 1, ratio.size)
        slope = float(np.abs(np.diff(ratio)).max() / (x[1] - x[0]))
        bids = np.arange(LOW, HIGH + 1)
        axes[0].plot(
            bids, ratio / ratio.max(), color=(BLUE, VERMILION)[number], linestyle=("-", "--")[number], label=kind
        )
        points = ((np.arange(POINTS) + 0.5) / POINTS).astype(np.float32)
        policies: dict[str, Any] = {
            "B-Zoom": SinglePhaseBZoom(budget=budget, lam=lam, lipschitz=slope),
            "Zooming": SinglePhaseZooming(
                budget=budget, lam=lam, lipschitz=float(np.abs(np.diff(reward)).max() / (x[1] - x[0]))
            ),
            "UCB-BV1": OnPoints(UCBBV1(min_cost=lam), points=points),
            "UCB1": OnPoints(UCB1(), points=points),
            "ω-UCB": OnPoints(OmegaUCB(rho=0.25), points=points),
        }
        result = jb.simulate(
            list(policies.values()),
            world,
            jb.TotalBudget(budget, last_pull="forfeits"),
            key=jax.random.key(7),
            replicates=runs,
            marks=1,
        )
        profit = result.reward.values[:, 0, :, -1]
        best = ratio.max() * budget
        grid = ratio[np.clip((points * ratio.size).astype(int), 0, ratio.size - 1)].max() * budget
        note = f"{kind}; budget {budget:.0f} = {share:g} of the log's cost, λ = {lam:.4f}, L = {slope:.3g}, {runs} runs"
        rows.append(
            Row(
                f"auctions: best fixed bid, {kind}",
                "",
                f"{best:.5g}",
                "",
                "unclear",
                f"bid {bids[ratio.argmax()]}; {note}",
            )
        )
        rows.append(
            Row(
                f"auctions: best of the {POINTS} points, {kind}",
                "",
                f"{grid / best:.4f}",
                "",
                "unclear",
                "share of the best fixed bid",
            )
        )
        for name, values in zip(policies, profit, strict=True):
            mean, se = mean_se(values / best)
            rows.append(
                Row(
                    f"auctions: {name}, {kind}",
                    "",
                    f"{mean:.4f}",
                    f"{se:.2g}",
                    "unclear",
                    "share of the best fixed bid's profit",
                )
            )
        width = (1 / lam) * (1 + 1 / lam) * np.sqrt(8 * np.log(budget / lam) + np.log(4))
        needed = (width / slope) ** 2
        rounds = float(result.rounds.values[0, 0, :, -1].mean())
        rows.append(
            Row(
                f"auctions: pulls until B-Zoom's first ball is smaller than [0, 1], {kind}",
                "",
                f"{needed:.3g}",
                "",
                verdict(bool(needed < rounds)),
                f"its runs last {rounds:.3g} rounds; yes: it can move at all",
            )
        )
        colours = (BLUE, VERMILION, GREEN, ORANGE, PINK)
        for place, (values, colour) in enumerate(zip(profit, colours, strict=True)):
            box = axes[number + 1].boxplot(
                [values / best], positions=[place], whis=(0, 100), patch_artist=True, widths=0.6
            )
            box["boxes"][0].set(facecolor=colour, alpha=0.5)
            box["medians"][0].set(color="black")
        axes[number + 1].axhline(grid / best, color=BLACK, linestyle=":", linewidth=1)
        axes[number + 1].set_xticks(range(len(policies)), list(policies), rotation=30)
        axes[number + 1].set(title=f"reward: {kind}", ylabel="profit / best fixed bid's", ylim=(0, 1.25))
    axes[0].set(xlabel="bid", ylabel="reward per cost / its best", title="What a bid buys")
    axes[0].legend(frameon=False)
    picture.suptitle(f"iPinYou campaign 2997, {runs} runs; dotted: the best of the {POINTS} points")
    save(picture, options.out / "auctions.png")
    return rows
