"""Requests in flight and budgets that renew: who wins under delay and in batches, who gets most out
of 30 days.

    python -m experiments service [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: delay, renewing.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments.common import (
    Experiment,
    Options,
    Row,
    Summary,
    difference_row,
    mean_row,
    ranking,
    simulated,
    swept,
)
from experiments.figures import figure, intervals, look, save
from experiments.suak import LOG, load_log
from jaxbandits.environments import Batched, Delayed, FiniteArms, FixedDelay, TableDelay
from jaxbandits.policies import MUCB, BudgetedThompson, EvenPace, InFlight, OmegaUCB, PricePacer


@jb.pytree
class Herd(OmegaUCB):
    """ω-UCB that ignores its open requests: all that wait go the same way."""

    def select_while_open(self, state: Any, key: Any, view: Any, open: Any) -> Any:
        return self.select(state, key, view)


POLICIES: dict[str, Any] = {
    "ω-UCB, ρ = 1/4": OmegaUCB(rho=0.25),
    "BTS": BudgetedThompson(),
    "m-UCB": MUCB(),
    "ω-UCB, herd": Herd(rho=0.25),
}


def delay(options: Options) -> list[Row]:
    """The regret at the end of a budget, against the delay and against the size of a batch."""
    budget, instances, runs = options.pick((40.0, 2, 2), (2000.0, 4, 5), (4000.0, 10, 20))
    kinds = {
        "delay": options.pick([0], [0, 10, 100, 1000, 10_000], [0, 10, 100, 1000, 10_000]),
        "batch": options.pick([1], [1, 10, 100, 1000], [1, 10, 100, 1000]),
    }
    names = list(POLICIES)[: options.pick(1, None, None)]
    # means drawn uniformly, the same at every size
    reward, cost = np.random.default_rng(26).random((2, 10, 10))[
        :, :instances, : options.pick(4, 10, 10)
    ]
    arms = FiniteArms.bernoulli(reward, 0.05 + 0.95 * cost)
    # with a fixed delay one outcome is due after each round: one place for arrivals is enough
    worlds = {
        f"delay {n}": Delayed(arms, FixedDelay(n), room=n + 1, arrivals=1) for n in kinds["delay"]
    }
    worlds |= {
        f"batch {n}": Delayed(arms, Batched(n), room=n, arrivals=None)
        for n in kinds["batch"]
        if n > 1
    }
    policies = {name.replace("1/4", "¼"): InFlight(POLICIES[name]) for name in names}
    fields = {"policies": policies, "constraint": jb.TotalBudget([budget], last_pull="counts")}
    data = swept(options, "delay", environments=worlds, replicates=runs, seed=26, **fields)
    reward, cost = arms.values()
    best = (reward / cost).max(axis=-1)[:, None] * budget
    share = {
        at: x / best
        for at, x in zip(
            worlds, data["regret"].values[:, :, 0, :, :, -1].swapaxes(0, 1), strict=True
        )
    }
    share["batch 1"] = share["delay 0"]  # the same world
    rows = Summary()
    picture, axes = figure(1, 2, (11, 4.6))
    for axis, (kind, numbers) in zip(axes, kinds.items(), strict=True):
        # [policy, run]
        means = {number: share[f"{kind} {number}"].mean(axis=1) for number in numbers}
        for number, samples in means.items():
            for name, x in zip(names, samples, strict=True):
                note = f"share of the best reward; budget {budget:g}, {instances} instances, {runs} runs"
                rows.mean(f"delay: {name}, {kind} {number}: regret", x, digits=".4f", note=note)
            of_policy = dict(zip(names, samples, strict=True))
            rows.append(ranking(f"delay: ranking at {kind} {number}", of_policy))
        for k, name in enumerate(names):
            x = np.arange(len(numbers)) + 0.06 * (k - 2)
            intervals(
                axis,
                x,
                np.stack([regret[k] for regret in means.values()]),
                label=name,
                capsize=2,
                **look(name),
            )
        axis.set_xticks(range(len(numbers)), [f"{x:,}" for x in numbers])
        axis.set(ylabel="regret, share of the best reward", ylim=(0, None))
    axes[0].set(xlabel="delay, rounds", title="Outcomes come late")
    axes[1].set(xlabel="size of a batch, rounds", title="Outcomes come in batches")
    title = f"Ten Bernoulli arms, budget {budget:,.0f}: who wins while requests are in flight"
    save(picture, options.out / "delay.png", title, legend=axes[:1], columns=5)
    return rows


# Thirty days of a budget that renews daily: routing prompts to four LLMs under the traffic of a
# real week.
LATE = 5.0  # requests, on average
CAP = 0.99  # dearer answers are cut off, as a limit on tokens does: so much is held for a request
TRAFFIC = "traffic/traffic_share.csv"


class Month(NamedTuple):
    """Arms, traffic and money of the days that are played."""

    arms: FiniteArms
    bound: np.ndarray  # of each arm, as a share of the unit
    unit: float  # dollars
    requests: np.ndarray  # [instance = budget, slot]
    expected: np.ndarray
    dollars: np.ndarray  # a day, [instance]

    @property
    def days(self) -> int:
        return self.requests.shape[1] // 24


def models(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """The four language models of the data, or four synthetic ones like them."""
    if path.exists():
        return load_log(path)[1]
    rng = np.random.default_rng(0)
    means = ((0.79, 3e-5), (0.92, 5e-4), (0.927, 9e-4), (0.934, 1.5e-2))
    return [(rng.binomial(1, q, 500) * 1.0, c * rng.gamma(2.0, 0.5, 500)) for q, c in means]


def week(path: Path) -> np.ndarray:
    """Shares of a week's traffic by hour, ``[7 · 24]``: a mean of regions, or a plain day."""
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
    """Days of an hourly forecast, and traffic that was busier or quieter than expected."""
    days, a_day = options.pick((3, 60), (30, 500), (30, 4000))
    a_request = np.array(
        options.pick([6e-4], [1e-4, 6e-4, 3e-3], [5e-5, 1e-4, 3e-4, 6e-4, 1e-3, 3e-3])
    )
    logs = [(r, np.minimum(c, np.quantile(c, CAP))) for r, c in models(options.data / LOG)]
    unit = max(float(cost.max()) for _, cost in logs)
    shares = np.tile(week(options.data / TRAFFIC), -(-days // 7))[: 24 * days]
    expected = np.rint(shares * 7 * a_day).astype(int)
    rng = np.random.default_rng(30)
    busy = np.repeat(rng.lognormal(-0.02, 0.2, days), 24)
    requests = rng.poisson(shares * 7 * a_day * busy)
    return Month(
        FiniteArms.empirical([[(r, c / unit) for r, c in logs]] * a_request.size),
        np.array([min(float(c.max()) / unit * 1.000001, 1.0) for _, c in logs]),
        unit,
        np.tile(requests, (a_request.size, 1)),
        np.tile(expected, (a_request.size, 1)),
        a_request * a_day,
    )


class Outcome(NamedTuple):
    """Results of one policy, ``[budget, run]``."""

    quality: np.ndarray  # per request
    of_best: np.ndarray  # quality as a share of r*
    money: np.ndarray  # share spent
    skipped: np.ndarray  # share of the requests
    violation: float
    best: np.ndarray  # r*


def renewing(options: Options) -> list[Row]:
    """Judged quality a request, the share of the money spent, and of requests turned away."""
    scenario, runs = month(options), options.pick(2, 6, 20)
    day, greedy = scenario.dollars[:, None] / scenario.unit, PricePacer(start=0.0)
    outcomes = {
        "PricePacer": _outcome(options, "PricePacer", scenario, PricePacer(), day, [24], runs)
    }
    if not options.quick:
        # An hour may have 2.5 times its even share
        caps = np.concatenate([day, 2.5 * day / 24], axis=1)
        rivals: dict[str, tuple[Any, np.ndarray, list[int]]] = {
            "even pace": (EvenPace(greedy), day, [24]),
            "spend until gone": (greedy, day, [24]),
            "ω-UCB, ρ = 1/4": (OmegaUCB(rho=0.25), day, [24]),
            "caps per hour": (PricePacer(start=0.0, budgets=2), caps, [24, 1]),
        }
        outcomes |= {
            name: _outcome(options, name, scenario, *rival, runs) for name, rival in rivals.items()
        }
    _picture(options, scenario, outcomes)
    requests, rows = int(scenario.requests[0].sum()), Summary()
    for name, x in outcomes.items():
        note = "exact; 0: never overspent"
        rows.add(f"renewing: violation, {name}", x.violation, note=note, holds=x.violation <= 0)
        for i, dollars in enumerate(scenario.dollars):
            at = f"at {dollars:g} $"
            note = f"{dollars:g} $ a day, {requests} requests in {scenario.days} days, {runs} runs"
            rows += [
                mean_row(f"renewing: {name}, quality {at}", x.quality[i], digits=".4f", note=note),
                mean_row(f"renewing: {name}, share spent {at}", x.money[i], digits=".4f"),
                mean_row(f"renewing: {name}, skipped {at}", x.skipped[i], digits=".4f"),
            ]
    for (name, x), (i, dollars) in itertools.product(
        list(outcomes.items())[1:], enumerate(scenario.dollars)
    ):
        item = f"renewing: PricePacer − {name} at {dollars:g} $"
        gain = outcomes["PricePacer"].quality[i] - x.quality[i]
        rows.append(difference_row(item, gain, "paired over runs; ± is 1.96 standard errors"))
    return rows


def _outcome(
    options: Options,
    name: str,
    scenario: Month,
    policy: Any,
    amount: np.ndarray,
    every: list[int],
    runs: int,
) -> Outcome:
    """Results of a policy; of several budgets, the first one's spending counts."""
    law = TableDelay.geometric(LATE, lost=0.001, instances=scenario.dollars.size)
    world = Delayed(
        scenario.arms, law, room=256, arrivals=4, patience=400, groups=(None,) * len(every)
    )
    constraint = jb.Renewing(
        amount=amount, every=every, requests=scenario.requests, expected=scenario.expected
    )
    in_flight = InFlight(policy, bound=scenario.bound)
    keywords: dict[str, Any] = {"key": jax.random.key(30), "replicates": runs, "marks": [1.0]}
    result, _ = simulated(options, f"renewing {name}", in_flight, world, constraint, **keywords)
    quality, skips = (
        x.values[0, ..., -1] / scenario.requests[0].sum()
        for x in (result.reward, result.count("skips"))
    )
    money = (
        result.spent.values[0, ..., -1, 0]
        * scenario.unit
        / (scenario.dollars[:, None] * scenario.days)
    )
    best = result.best_rate
    return Outcome(
        quality, quality / best[:, None], money, skips, float(result.violation.max()), best
    )


def _picture(options: Options, scenario: Month, outcomes: dict[str, Outcome]) -> None:
    picture, axes = figure(1, 3, (15, 4.8))
    at = np.arange(scenario.dollars.size)
    for k, (name, x) in enumerate(outcomes.items()):
        style = look(name) | {"linestyle": "-", "capsize": 2, "label": name}
        for axis, values in zip(axes, x[:3], strict=True):
            intervals(axis, at + 0.07 * (k - 2), values, **style)
    best = outcomes["PricePacer"].best
    axes[0].plot(at, best, color="black", linewidth=3, alpha=0.35, label="best mixture r*")
    titles = ("Quality", "Against the best fixed mixture", "Money")
    labels = ("judged quality per request", "share of r*", "share of the money spent")
    for axis, title, label in zip(axes, titles, labels, strict=True):
        axis.set_xticks(at, [f"{x:g} $" for x in scenario.dollars])
        axis.set(xlabel="budget a day", ylabel=label, ylim=(0, 1.05), title=title)
    requests = int(scenario.requests[0].sum())
    title = f"{scenario.days} days of a daily budget: {requests:,} prompts to four LLMs, "
    title += f"outcomes {LATE:g} requests late"
    save(picture, options.out / "renewing.png", title, legend=axes[:1], columns=6)


EXPERIMENT = Experiment.of("service", (delay, renewing))
