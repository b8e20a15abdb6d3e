"""What gradients are for: tuning and worst instances."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxbandits as jb
from experiments.common.figures import figure, save
from experiments.common.looks import BLUE, GREEN, GREY, VERMILION
from experiments.common.rows import Row, row
from experiments.common.running import Options
from experiments.gradients.world import KEY, OMEGA
from jaxbandits.environments import FiniteArms, random_bernoulli
from jaxbandits.gradients import adversarial
from jaxbandits.policies import MUCB, BudgetedThompson, OmegaUCB
from jaxbandits.tuning.problems import random_problem
from jaxbandits.tuning.search import tune
from jaxbandits.tuning.tuned import Tuned

GRID = 2.0 ** np.linspace(-6, 1.5, 16)  # Figure 4's 2⁻⁶ … 2¹ at twice the density
FAMILIES = {"S-Br-50": ("bernoulli", "1/4"), "S-Bt-50": ("beta", "1/8")}


def tuned(options: Options) -> list[Row]:
    """ρ of ω-UCB by gradient, beside the best of a 16-value grid."""
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
        problem = random_problem(family, arms, budget)
        found = tune(OmegaUCB(rho=1.0), problem, wrt="rho", key=KEY, grid=GRID, **sizes)
        print("\n".join(f"  {name}: {line}" for line in found.lines()), flush=True)
        where = name if not options.quick else f"{name} (K = {arms}, B = {budget:g}·min c)"
        rows += _told(f"tuned: {where}", found, best, fresh)
        _draw_tuned(axis, found, on_grid, fresh)
        axis.set(xscale="log", xlabel="ρ", ylabel="mean regret at full budget", title=where)
    save(picture, options.out / "tuned.png", legend=axes[1:], columns=3)
    return rows


def _told(item: str, found: Tuned, best: str, fresh: int) -> list[Row]:
    assert found.best is not None and found.over_best is not None
    gain, start, share = found.over_best, found.over_start, found.rounds[0] / found.rounds[1]
    took = " and ".join(f"{n:.3g} rounds in {t:.0f} s" for n, t in zip(found.rounds, found.seconds, strict=True))
    on_grid = f"best of 16 grid values: {found.best['rho']:.4g}; start 1"
    interval = f"paired, 95 % interval [{gain.low:.4g}, {gain.high:.4g}] on {fresh} fresh instances"
    errors = [f"{(x.high - x.low) / 3.92:.3g}" for x in (gain, start)]
    faster = start.low > 0 or (None if start.high > 0 else False)
    return [
        row(f"{item}: ρ", found.values["rho"], published=f"{best} is good (Figure 4)", note=on_grid),
        row(f"{item}: regret of the best grid value − tuned", gain.mean, errors[0], published="≥ 0 within its interval",
            holds=gain.high >= 0, note=interval),
        row(f"{item}: regret of the start − tuned", start.mean, errors[1], published="> 0", holds=faster,
            note="ρ = 1; paired"),
        row(f"{item}: rounds of the tuning / of the grid", share, published="≤ 0.25", holds=share <= 0.25, note=took,
            digits=".3f"),
        row(f"{item}: seconds of the tuning", found.seconds[0], published="≤ 300", holds=found.seconds[0] <= 300,
            note="compile included", digits=".0f"),
    ]  # fmt: skip


def _draw_tuned(axis: Any, found: Tuned, on_grid: int, fresh: int) -> None:
    style = {"color": GREY, "marker": "s", "capsize": 2, "label": f"grid, {on_grid} instances"}
    axis.errorbar(found.grid[:, 0], found.grid_regrets, 1.96 * found.grid_errors, **style)
    mean, low, high = found.regret
    style = {"color": VERMILION, "marker": "D", "capsize": 4, "label": f"tuned, {fresh} fresh instances"}
    axis.errorbar([found.values["rho"]], [mean], [[mean - low], [high - mean]], zorder=4, **style)
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
        row(beyond, regret - usual.max(), error, published="> 0", holds=regret - 2 * error > usual.max(),
            note="6 restarts", digits=".3g"),
    ]  # fmt: skip
