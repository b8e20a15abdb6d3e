"""Routing prompts to four LLMs under a budget of dollars per request."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import optax

import jaxbandits as jb
from experiments.common.figures import figure, intervals, save
from experiments.common.looks import BLACK, GREEN, GREY, ORANGE, SKY, VERMILION, look
from experiments.common.rows import Row, mean_se, row
from experiments.common.running import Options
from experiments.suak.play import KEY, violation
from jaxbandits.environments import FiniteArms, WithNullArm
from jaxbandits.policies import SUAK, FluidOracle, Guarded, OnePhase, Pacer, UCBSimplex

FILE = "llm_routing/paretobandit_k4.csv"
DOLLARS = np.array([2e-5, 1e-4, 3e-4, 6e-4, 1e-3, 3e-3, 1e-2])  # budgets per request
DESCENT = optax.sgd(1e-3)


def load(path: Path) -> tuple[list[str], list[tuple[np.ndarray, np.ndarray]]]:
    """(models, (rewards, dollars) of each over the prompts that were judged)."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    models = [name.removeprefix("reward__") for name in rows[0] if name.startswith("reward__")]
    columns = [[np.array([float(row[f"{kind}__{m}"]) for row in rows]) for kind in ("reward", "cost")] for m in models]
    return models, [(reward, cost) for reward, cost in columns]


def routing(options: Options) -> list[Row]:
    """Judged quality a request against dollars a request, for learners and for the best fixed mixture."""
    path = options.data / FILE
    if not path.exists():
        print(f"suak routing: skipped, {path} is not there")
        return [row("routing", "skipped", note=f"{path} is not there; see --data")]
    models, logs = load(path)
    bound = max(float(cost.max()) for _, cost in logs)  # dollars of one unit of cost
    arms = FiniteArms.empirical([[(r, c / bound) for r, c in logs]] * DOLLARS.size)
    rounds, runs = options.pick((10_000, 4), (50_000, 10), (200_000, 20))
    c = DOLLARS / bound
    reward, cost = arms.values()
    policies = learners(c, rounds, reward, cost)
    result = jb.simulate(
        list(policies.values()),
        WithNullArm(arms),
        jb.AverageCost(c=c, rounds=rounds),
        key=KEY,
        replicates=runs,
        marks=[1.0],
        slots=-(-runs * DOLLARS.size // 2),
    )
    earned = result.reward.values[..., -1] / rounds  # [policy, budget, run]
    _picture(options, models, logs, list(policies), earned, result.best_rate, rounds)
    rows = [violation("routing", float(result.violation.max()), "all policies")]
    for k, name in enumerate(policies):
        for dollars, best, x in zip(DOLLARS, result.best_rate, earned[k], strict=True):
            mean, se = mean_se(x / best)
            note = f"T = {rounds}, r* = {best:.4f} judged quality a request; {runs} runs"
            item = f"routing: {name}, share of r* at {dollars:g} $ a request"
            rows.append(row(item, mean, f"{se:.1g}", note=note, digits=".4f"))
    return rows


def learners(c: np.ndarray, rounds: int, reward: np.ndarray, cost: np.ndarray) -> dict[str, Any]:
    """The policies, each told every budget."""
    c = c[None]
    return {
        "SUAK": SUAK(c=c),
        "OPS, a = 3": Guarded(OnePhase(c=c, horizon=rounds)),
        "OPS, a = 0.001": Guarded(OnePhase(c=c, horizon=rounds, a=0.001)),
        "USS, λ = 9": Guarded(UCBSimplex(c=c)),
        "USS, λ = 0.1": Guarded(UCBSimplex(c=c, lam=0.1)),
        "pacer": Guarded(Pacer(c=c, a=0.001, optimiser=DESCENT)),
        "fluid oracle": Guarded(FluidOracle(reward[None], cost[None], c=c)),
    }


def _picture(
    options: Options,
    models: list[str],
    logs: list[tuple[np.ndarray, np.ndarray]],
    names: list[str],
    earned: np.ndarray,
    best: np.ndarray,
    rounds: int,
) -> None:
    picture, axes = figure(1, 2, (12, 5.2))
    own = {"OPS, a = 0.001": (ORANGE, "D"), "USS, λ = 0.1": (SKY, "P")}
    for k, name in enumerate(names):
        style = look(name)
        if name in own:
            style |= {"color": own[name][0], "marker": own[name][1], "linestyle": "--"}
        for axis, values in ((axes[0], earned[k]), (axes[1], earned[k] / best[:, None])):
            intervals(axis, DOLLARS, values, label=name, capsize=2, **style)
    axes[0].plot(DOLLARS, best, color=BLACK, linewidth=3, alpha=0.35, label="best fixed mixture r*")
    colours = (VERMILION, GREEN, GREY, SKY)
    for model, (reward, cost), colour in zip(models, logs, colours, strict=True):
        axes[0].scatter(cost.mean(), reward.mean(), color=colour, edgecolor=BLACK, zorder=5, s=60)
        offset, side = {"mistral": ((-6, 10), "right"), "gemini-2.5-flash": ((6, 10), "left")}.get(
            model if "flash" in model else model.split("-")[0], ((0, 10), "center")
        )
        at = (cost.mean(), reward.mean())
        axes[0].annotate(model, at, offset, textcoords="offset points", fontsize=8, ha=side)
    axes[0].set(xscale="log", xlabel="budget, $ per request", ylabel="judged quality per request", ylim=(0, 1.1))
    axes[1].set(xscale="log", xlabel="budget, $ per request", ylabel="share of r*", ylim=(0, 1.05))
    axes[0].set_xlim(1.2e-5, 3.5e-2)
    axes[0].set_title("Quality (dots: one model alone, at its mean cost)")
    axes[1].set_title("Against the best fixed mixture")
    title = f"Routing 3,559 prompts to four LLMs, resampled, T = {rounds:,}"
    save(picture, options.out / "routing.png", title, legend=axes[:1])
