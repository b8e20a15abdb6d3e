"""Thirty days of a budget that renews daily: routing prompts to four LLMs under the traffic of a real week."""

from __future__ import annotations

import csv
import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.figures import figure, intervals, save
from experiments.common.looks import BLUE, GREEN, GREY, ORANGE, VERMILION
from experiments.common.rows import Row, mean_row, mean_se, row
from experiments.common.running import Options, kept
from experiments.suak.llms import FILE, load
from jaxbandits.environments import Delayed, FiniteArms, TableDelay
from jaxbandits.policies import EvenPace, InFlight, OmegaUCB, PricePacer

KEY = jax.random.key(30)
LATE = 5.0  # requests, on average
CAP = 0.99  # dearer answers are cut off, as a limit on tokens does: so much is held for a request
TRAFFIC = "traffic/traffic_share.csv"
GREEDY = "spend until gone"
LOOK = {
    "PricePacer": (BLUE, "o"),
    "even pace": (GREEN, "s"),
    "caps per hour": (ORANGE, "D"),
    GREEDY: (VERMILION, "v"),
    "ω-UCB, ρ = 1/4": (GREY, "^"),
}


@dataclasses.dataclass(frozen=True)
class Month:
    """What is played."""

    names: list[str]
    arms: FiniteArms
    bound: np.ndarray  # of each arm, as a share of the unit
    unit: float  # dollars
    requests: np.ndarray  # [instance = budget, slot]
    expected: np.ndarray
    dollars: np.ndarray  # a day, [instance]


def models(path: Path) -> tuple[list[str], list[tuple[np.ndarray, np.ndarray]]]:
    """The four language models of the data, or four made up like them."""
    if path.exists():
        return load(path)
    rng = np.random.default_rng(0)
    means = {"cheap": (0.79, 3e-5), "fair": (0.92, 5e-4), "good": (0.927, 9e-4), "dear": (0.934, 1.5e-2)}
    return list(means), [(rng.binomial(1, q, 500) * 1.0, c * rng.gamma(2.0, 0.5, 500)) for q, c in means.values()]


def week(path: Path) -> np.ndarray:
    """Shares of a week's traffic by hour, ``[7 · 24]``: the mean over regions, or a plain day seven times."""
    if not path.exists():
        hours = 1.2 + np.sin(2 * np.pi * (np.arange(24) - 9) / 24)
        return np.tile(hours / hours.sum() / 7, 7)
    table = np.zeros((7, 24))
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.reader(file):
            if line and line[-1][0].isdigit():
                *_, day, hour, share = line
                table[int(float(day)) - 1, int(float(hour))] += float(share)
    return table.ravel() / table.sum()


def month(options: Options) -> Month:
    """Days of an hourly forecast, and the traffic that came: days are busier or quieter than expected."""
    days, a_day = options.pick((3, 60), (30, 500), (30, 4000))
    a_request = np.array(options.pick([6e-4], [1e-4, 6e-4, 3e-3], [5e-5, 1e-4, 3e-4, 6e-4, 1e-3, 3e-3]))
    names, logs = models(options.data / FILE)
    logs = [(r, np.minimum(c, np.quantile(c, CAP))) for r, c in logs]
    unit = max(float(cost.max()) for _, cost in logs)
    shares = np.tile(week(options.data / TRAFFIC), -(-days // 7))[: 24 * days]
    expected = np.rint(shares * 7 * a_day).astype(int)
    rng = np.random.default_rng(30)
    busy = np.repeat(rng.lognormal(-0.02, 0.2, days), 24)
    requests = rng.poisson(shares * 7 * a_day * busy)
    instances = a_request.size
    return Month(
        names,
        FiniteArms.empirical([[(r, c / unit) for r, c in logs]] * instances),
        np.array([min(float(c.max()) / unit * 1.000001, 1.0) for _, c in logs]),
        unit,
        np.tile(requests, (instances, 1)),
        np.tile(expected, (instances, 1)),
        a_request * a_day,
    )


def renewing(options: Options) -> list[Row]:
    """Judged quality a request, the money that was spent, and what was turned away."""
    it, runs = month(options), options.pick(2, 6, 20)
    greedy = PricePacer(start=0.0)
    once: dict[str, Any] = {
        "PricePacer": PricePacer(),
        "even pace": EvenPace(greedy),
        GREEDY: greedy,
        "ω-UCB, ρ = 1/4": OmegaUCB(rho=0.25),
    }
    if options.quick:
        once = {name: once[name] for name in ("PricePacer",)}
    day = it.dollars[:, None] / it.unit
    played = {name: _kept(options, name, it, policy, day, [24], runs) for name, policy in once.items()}
    if not options.quick:
        caps = np.concatenate([day, 2.5 * day / 24], axis=1)  # an hour may have 2.5 times its even share
        greedy = PricePacer(start=0.0, budgets=2)
        played["caps per hour"] = _kept(options, "caps per hour", it, greedy, caps, [24, 1], runs)
    return _told(options, it, played, runs)


def _kept(
    options: Options, name: str, it: Month, policy: Any, amount: np.ndarray, every: list[int], runs: int
) -> dict[str, np.ndarray]:
    depends_on = [policy, repr(policy), amount, it.requests, it.expected, it.bound, runs, repr(every)]
    place = list(LOOK).index(name)
    return kept(options, f"renewing {place}", depends_on, partial(_play, it, policy, amount, every, runs))


def _play(it: Month, policy: Any, amount: np.ndarray, every: list[int], runs: int) -> dict[str, np.ndarray]:
    """Reward, money of the first budget and skips a run, ``[budget, run]``; the largest violation; r*."""
    law = TableDelay.geometric(LATE, lost=0.001, instances=it.dollars.size)
    world = Delayed(it.arms, law, room=256, arrivals=4, patience=400, groups=(None,) * len(every))
    result = jb.simulate(
        InFlight(policy, bound=it.bound),
        world,
        jb.Renewing(amount=amount, every=every, requests=it.requests, expected=it.expected),
        key=KEY,
        replicates=runs,
        marks=[1.0],
    )
    return {
        "reward": result.reward.values[0, ..., -1],
        "spent": result.spent.values[0, ..., -1, 0],
        "skips": result.count("skips").values[0, ..., -1],
        "violation": np.array(result.violation.max()),
        "best": result.best_rate,
    }


def _told(options: Options, it: Month, played: dict[str, dict[str, np.ndarray]], runs: int) -> list[Row]:
    rounds, rows, quality = int(it.requests[0].sum()), [], {}
    days = it.requests.shape[1] // 24
    for name, found in played.items():
        quality[name] = found["reward"] / rounds  # [budget, run]
        money = found["spent"] * it.unit / (it.dollars[:, None] * days)
        skips, violation = found["skips"] / rounds, float(found["violation"])
        rows.append(
            row(f"renewing: violation, {name}", violation, note="exact; 0: never overspent", holds=violation <= 0)
        )
        for i, dollars in enumerate(it.dollars):
            note = f"{dollars:g} $ a day, {rounds} requests in {days} days, {runs} runs"
            rows.append(
                mean_row(f"renewing: {name}, quality at {dollars:g} $", quality[name][i], digits=".4f", note=note)
            )
            rows.append(mean_row(f"renewing: {name}, share spent at {dollars:g} $", money[i], digits=".4f"))
            rows.append(mean_row(f"renewing: {name}, skipped at {dollars:g} $", skips[i], digits=".4f"))
    for name in played:
        if name != "PricePacer":
            for i, dollars in enumerate(it.dollars):
                gap = quality["PricePacer"][i] - quality[name][i]
                mean, se = mean_se(gap)
                note = "paired over runs; ± is 1.96 standard errors"
                rows.append(
                    row(
                        f"renewing: PricePacer − {name} at {dollars:g} $",
                        f"{mean:+.4f}",
                        f"±{1.96 * se:.4f}",
                        note=note,
                    )
                )
    _picture(options, it, quality, played, rounds)
    return rows


def _picture(
    options: Options,
    it: Month,
    quality: dict[str, np.ndarray],
    played: dict[str, dict[str, np.ndarray]],
    rounds: int,
) -> None:
    picture, axes = figure(1, 3, (15, 4.8))
    at = np.arange(it.dollars.size)
    days, best = it.requests.shape[1] // 24, played["PricePacer"]["best"]
    for k, name in enumerate(quality):
        colour, marker = LOOK[name]
        style = {"color": colour, "marker": marker, "capsize": 2, "label": name, "markersize": 5}
        x = at + 0.07 * (k - 2)
        intervals(axes[0], x, quality[name], linestyle="-", **style)
        intervals(axes[1], x, quality[name] / best[:, None], linestyle="-", **style)
        spent = played[name]["spent"] * it.unit / (it.dollars[:, None] * days)
        intervals(axes[2], x, spent, linestyle="-", **style)
    axes[0].plot(at, best, color="black", linewidth=3, alpha=0.35, label="best mixture r*")
    for axis, label in zip(
        axes, ("judged quality per request", "share of r*", "share of the money spent"), strict=True
    ):
        axis.set_xticks(at, [f"{x:g} $" for x in it.dollars])
        axis.set(xlabel="budget a day", ylabel=label)
        axis.set_ylim(0, 1.05)
    axes[0].set_title("Quality")
    axes[1].set_title("Against the best fixed mixture")
    axes[2].set_title("Money")
    title = f"{days} days of a daily budget: {rounds:,} prompts to four LLMs, outcomes {LATE:g} requests late"
    save(picture, options.out / "renewing.png", title, legend=axes[:1], columns=6)
