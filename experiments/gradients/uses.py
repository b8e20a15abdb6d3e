"""What gradients are for: tuning and worst instances."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

import jaxbandits as jb
from experiments.common.figures import figure, save
from experiments.common.looks import BLUE, GREEN, GREY, VERMILION
from experiments.common.rows import Row, above_zero, mean_se, row
from experiments.common.running import Options, kept
from experiments.gradients.world import KEY, OMEGA
from jaxbandits.environments import FiniteArms, random_bernoulli
from jaxbandits.gradients import adversarial
from jaxbandits.policies import MUCB, BudgetedThompson, OmegaUCB
from jaxbandits.tuning import search
from jaxbandits.tuning.problems import random_problem

GRID = 2.0 ** np.linspace(-6, 1.5, 16)  # Figure 4's 2⁻⁶ … 2¹ at twice the density
BLIND = (20_261_101, 20_261_102, 20_261_103, 20_261_104, 20_261_105, 20_261_106)  # seeds first used for this row
MARGIN = 0.1  # of the tuned regret: "not worse" means by no more than this
FAMILIES = {"S-Br-50": ("bernoulli", "1/4"), "S-Bt-50": ("beta", "1/8")}


def tuned(options: Options) -> list[Row]:
    """ρ of ω-UCB by gradient, beside the best of a 16-value grid, with several keys that no choice was made on."""
    rows: list[Row] = []
    picture, axes = figure(1, 2, (11, 4.4))
    arms, budget = (50, 1.5e5) if not options.quick else (10, 400.0)
    steps, each, on_grid, fresh = options.pick((6, 16, 16, 16), (8, 20, 60, 200), (8, 20, 100, 400))
    sizes = {"steps": steps, "instances": each, "grid_instances": on_grid, "fresh": fresh}
    sizes |= {"slots": 64} if options.quick else {}
    for axis, (name, (family, best)) in zip(axes, FAMILIES.items(), strict=True):
        if options.quick and family != "beta":
            axis.set_axis_off()
            continue
        found = [_descent(name, family, arms, budget, key, sizes, options) for key in BLIND[: options.pick(1, 2, 6)]]
        where = name if not options.quick else f"{name} (K = {arms}, B = {budget:g}·min c)"
        rows += _told(f"tuned: {where}", found, best, fresh)
        _draw_tuned(axis, found[0], on_grid, fresh)
        axis.set(xscale="log", xlabel="ρ", ylabel="mean regret at full budget", title=where)
    save(picture, options.out / "tuned.png", legend=axes[1:], columns=3)
    return rows


class Descent(NamedTuple):
    """What is told and drawn of one :class:`~jaxbandits.tuning.Tuned`."""

    rho: np.ndarray
    best: np.ndarray  # of the grid
    over_best: np.ndarray  # mean gain over it
    over_start: np.ndarray
    regret: np.ndarray  # mean, low, high
    rounds: np.ndarray  # of the tuning, of the grid
    seconds: np.ndarray
    path: np.ndarray
    grid: np.ndarray
    grid_regrets: np.ndarray
    grid_errors: np.ndarray


def _descent(
    name: str, family: str, arms: int, budget: float, key: int, sizes: dict[str, int], options: Options
) -> Descent:
    """One key's, from the output folder if it was played before."""
    problem, policy = random_problem(family, arms, budget), OmegaUCB(rho=1.0)
    depends_on = [policy, inspect.getsource(search), f"{family} {arms} {budget} {sizes}", GRID]

    def make() -> dict[str, np.ndarray]:
        found = search.tune(policy, problem, wrt="rho", key=jax.random.key(key), grid=GRID, **sizes)
        print("\n".join(f"  {name}, key {key}: {line}" for line in found.lines()), flush=True)
        assert found.best and found.over_best
        numbers = (
            *(found.values["rho"], found.best["rho"], found.over_best.mean, found.over_start.mean),
            *(found.regret, found.rounds, found.seconds),
            *(found.path, found.grid, found.grid_regrets, found.grid_errors),
        )
        return {field: np.asarray(x, float) for field, x in zip(Descent._fields, numbers, strict=True)}

    return Descent(**kept(options, f"tuned_{name}_{key}", depends_on, make))


def _told(item: str, found: list[Descent], best: str, fresh: int) -> list[Row]:
    rhos = ", ".join(f"{each.rho:.3g}" for each in found)
    on_grid = "best grid value " + ", ".join(f"{each.best:.3g}" for each in found) + "; start 1"
    over_best = np.array([each.over_best / each.regret[0] for each in found])
    over_start = np.array([each.over_start / each.regret[0] for each in found])
    share = max(each.rounds[0] / each.rounds[1] for each in found)
    seconds = max(each.seconds[0] for each in found)
    many = f"{len(found)} keys, {fresh} fresh instances each"
    return [
        row(f"{item}: ρ", rhos, published=f"{best} is good (Figure 4)", note=f"{on_grid}; {many}"),
        gain(f"{item}: (regret of the best grid value − tuned) / tuned", over_best, -MARGIN, many),
        gain(f"{item}: (regret of the start − tuned) / tuned", over_start, 0.0, many),
        row(f"{item}: rounds of the tuning / of the grid", share, published="≤ 0.25", holds=share <= 0.25,
            note="the largest of all keys", digits=".3f"),
        row(f"{item}: seconds of the tuning", seconds, published="≤ 300", holds=seconds <= 300,
            note="the largest of all keys, compile included", digits=".0f"),
    ]  # fmt: skip


def gain(item: str, gains: np.ndarray, level: float, note: str) -> Row:
    """Is the mean gain above ``level``? One gain for each key; t-interval over the keys, at 95 %."""
    if gains.size < 2:
        return row(item, gains.mean(), published=f"> {level:g}", note=f"{note}; one key shows nothing")
    mean, se = mean_se(gains)
    half = float(stats.t.isf(0.025, gains.size - 1) * se)
    low, high = float(mean) - half, float(mean) + half
    holds = True if low > level else False if high < level else None
    each = ", ".join(f"{x:.3f}" for x in gains)
    note = f"{note}: {each}; 95 % interval {low:.3f} to {high:.3f}"
    return row(item, mean, se, published=f"> {level:g}", holds=holds, note=note, digits=".3f")


def _draw_tuned(axis: Any, found: Descent, on_grid: int, fresh: int) -> None:
    style = {"color": GREY, "marker": "s", "capsize": 2, "label": f"grid, {on_grid} instances"}
    axis.errorbar(found.grid[:, 0], found.grid_regrets, 1.96 * found.grid_errors, **style)
    mean, low, high = found.regret
    style = {"color": VERMILION, "marker": "D", "capsize": 4, "label": f"tuned, {fresh} fresh instances"}
    axis.errorbar([float(found.rho)], [mean], [[mean - low], [high - mean]], zorder=4, **style)
    for i, rho in enumerate(found.path[:, 0]):
        label = "path (darker: later)" if i == len(found.path) - 1 else None
        axis.axvline(rho, color=BLUE, alpha=0.15 + 0.6 * i / len(found.path), linewidth=1, label=label)


def worst(options: Options) -> list[Row]:
    """Worst instances of ω-UCB, BTS and m-UCB, each simulated again, beside random instances."""
    arms, budget = options.pick((3, 15.0), (3, 50.0), (5, 100.0))
    steps, runs, check = options.pick((15, 100, 1000), (40, 256, 4000), (80, 512, 20_000))
    constraint = jb.TotalBudget(budget, last_pull="counts")
    sizes = {"arms": arms, "restarts": 6, "steps": steps, "replicates": runs, "check": check, "slots": 128}
    rivals: dict[str, Any] = {"ω-UCB": OMEGA, "BTS": BudgetedThompson(), "m-UCB": MUCB()}
    random = random_bernoulli(KEY, 200, arms)
    clipped = FiniteArms.bernoulli(*(np.clip(x, 0.05, 0.95) for x in random.values()))
    rows = []
    picture, axes = figure(1, 3, (13, 4.2))
    for axis, (name, policy) in zip(axes, rivals.items(), strict=True):
        got = adversarial.search(policy, constraint, key=KEY, **sizes)
        usual = got.start
        if not options.quick:
            at_random = jb.simulate(policy, clipped, constraint, key=KEY, replicates=50, marks=1)
            usual = at_random.regret.values[0, ..., -1].mean(axis=1)
        rows += _found(f"worst: {name}, K = {arms}, B = {budget:g}", f"worst: {name}", got, usual, check)
        axis.plot(got.path, color=BLUE, alpha=0.5, linewidth=1)
        axis.axhline(got.objective[0], color=VERMILION, linestyle="--", label="worst, simulated again")
        axis.axhline(usual.max(), color=GREEN, linestyle=":", label="largest of random instances")
        axis.axhline(usual.mean(), color=GREY, linestyle="-.", label="mean of random instances")
        axis.set(xlabel="step of the ascent", ylabel="regret", title=f"{name}, {arms} arms, B = {budget:g}")
    save(picture, options.out / "worst.png", legend=axes[:1], columns=3)
    for one, other in () if options.quick else (("ω-UCB", "BTS"), ("m-UCB", "ω-UCB")):
        got = adversarial.search(rivals[one], constraint, key=KEY, against=rivals[other], **sizes)
        means = f"μ^r {np.round(got.mean_reward[0], 2)}, μ^c {np.round(got.mean_cost[0], 2)}"
        item, note = f"worst: largest regret of {one} − {other} found", f"paired, fresh runs; {means}"
        rows.append(row(item, got.objective[0], got.standard_error[0], note=note))
    return rows


def _found(item: str, short: str, got: adversarial.Worst, usual: np.ndarray, check: int) -> list[Row]:
    regret, error = got.objective[0], got.standard_error[0]
    shown = "; ".join(f"({r:.2f}, {c:.2f})" for r, c in zip(got.mean_reward[0], got.mean_cost[0], strict=True))
    note = (
        f"simulated again on {check} fresh runs (the search claimed {got.claimed[0]:.4g}); arms (μ^r, μ^c): {shown}; "
    )
    note += f"mean of {usual.size} random instances {usual.mean():.3g}, their largest {usual.max():.3g}"
    beyond = f"{short}: regret found − largest of {usual.size} random instances"
    return [
        row(f"{item}: largest regret found", regret, error, note=note),
        row(beyond, regret - usual.max(), error, published="> 0", holds=above_zero(regret - usual.max(), error),
            note="6 restarts", digits=".3g"),
    ]  # fmt: skip
