"""Bidding in the iPinYou test log of campaign 2997: the arm is the bid, the cost the market price of what is won."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.figures import boxes, figure, save
from experiments.common.looks import BLACK, BLUE, GREEN, ORANGE, PINK, VERMILION
from experiments.common.rows import Row, mean_row, row
from experiments.common.running import Options
from jaxbandits.core.errors import bad
from jaxbandits.environments import LoggedAuctions
from jaxbandits.policies import UCB1, UCBBV1, OmegaUCB, OnPoints, SinglePhaseBZoom, SinglePhaseZooming

NAME, LOW, HIGH, POINTS = "2997_test.csv.gz", 20, 300, 15
BIDS = np.arange(LOW, HIGH + 1)
GRID = ((np.arange(POINTS) + 0.5) / POINTS).astype(np.float32)
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PINK)


def read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(clicks, market prices, predicted click probabilities) of a log with these three columns."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.reader(file))
    if rows[0] != ["click", "market_price", "pctr"]:
        raise bad(str(path), ",".join(rows[0]), "a table with the columns click, market_price, pctr")
    table = np.array(rows[1:], float)
    return table[:, 0], table[:, 1], table[:, 2]


class Played(NamedTuple):
    """Runs on one kind of reward."""

    ratio: np.ndarray  # reward per cost, [bid]
    lam: float  # the least cost of a bid
    slope: float  # largest slope of the ratio
    grid: float  # the best of the points, share of the best fixed bid
    profit: dict[str, np.ndarray]  # [run], shares of the best fixed bid's
    rounds: float  # of B-Zoom


def play(price: np.ndarray, gain: np.ndarray, budget: float, runs: int) -> Played:
    """All policies on one kind of reward."""
    world = LoggedAuctions.of(price, gain, low=LOW, high=HIGH, top=HIGH)
    reward, cost = (x[0] for x in world.values())
    ratio, lam = reward / cost, float(cost.min())
    step = 1 / (BIDS.size - 1)
    slope, slope_of_reward = (float(np.abs(np.diff(y)).max() / step) for y in (ratio, reward))
    policies: dict[str, Any] = {
        "B-Zoom": SinglePhaseBZoom(budget=budget, lam=lam, lipschitz=slope),
        "Zooming": SinglePhaseZooming(budget=budget, lam=lam, lipschitz=slope_of_reward),
        "UCB-BV1": OnPoints(UCBBV1(min_cost=lam), points=GRID),
        "UCB1": OnPoints(UCB1(), points=GRID),
        "ω-UCB": OnPoints(OmegaUCB(rho=0.25), points=GRID),
    }
    constraint = jb.TotalBudget(budget, last_pull="forfeits")
    result = jb.simulate(list(policies.values()), world, constraint, key=jax.random.key(7), replicates=runs, marks=1)
    best = ratio.max() * budget
    grid = ratio[np.clip((GRID * ratio.size).astype(int), 0, ratio.size - 1)].max() * budget
    profit = dict(zip(policies, result.reward.values[:, 0, :, -1] / best, strict=True))
    return Played(ratio, lam, slope, grid / best, profit, float(result.rounds.values[0, 0, :, -1].mean()))


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
    rewards = {"click": clicks, "predicted click / its largest": predicted / predicted.max()}
    for (kind, gain), axis, colour, dashes in zip(rewards.items(), axes[1:], COLOURS, ("-", "--"), strict=False):
        played = play(price, gain, budget, runs)
        axes[0].plot(BIDS, played.ratio / played.ratio.max(), color=colour, linestyle=dashes, label=kind)
        rows += _told(kind, played, budget, f"{budget:.0f} = {share:g} of the log's cost", runs)
        boxes(axis, played.profit.values(), COLOURS)
        axis.axhline(played.grid, color=BLACK, linestyle=":", linewidth=1)
        axis.set_xticks(range(len(played.profit)), list(played.profit), rotation=30)
        axis.set(title=f"reward: {kind}", ylabel="profit / best fixed bid's", ylim=(0, 1.25))
    axes[0].set(xlabel="bid", ylabel="reward per cost / its best", title="What a bid buys")
    axes[0].legend(frameon=False)
    title = f"iPinYou campaign 2997, {runs} runs; dotted: the best of the {POINTS} points"
    save(picture, options.out / "auctions.png", title)
    return rows


def _told(kind: str, played: Played, budget: float, of: str, runs: int) -> list[Row]:
    lam, slope, best = played.lam, played.slope, played.ratio.max() * budget
    note = f"bid {BIDS[played.ratio.argmax()]}; {kind}; budget {of}, λ = {lam:.4f}, L = {slope:.3g}, {runs} runs"
    share = "share of the best fixed bid"
    rows = [
        row(f"auctions: best fixed bid, {kind}", best, digits=".5g", note=note),
        row(f"auctions: best of the {POINTS} points, {kind}", played.grid, digits=".4f", note=share),
    ]
    for name, x in played.profit.items():
        rows.append(mean_row(f"auctions: {name}, {kind}", x, digits=".4f", note=f"{share}'s profit"))
    width = (1 / lam) * (1 + 1 / lam) * np.sqrt(8 * np.log(budget / lam) + np.log(4))
    needed = (width / slope) ** 2
    item = f"auctions: pulls until B-Zoom's first ball is smaller than [0, 1], {kind}"
    note = f"its runs last {played.rounds:.3g} rounds; yes: it can move at all"
    return [*rows, row(item, needed, holds=needed < played.rounds, digits=".3g", note=note)]
