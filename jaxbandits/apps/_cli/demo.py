"""``jaxbandits demo``: the package's three uses on the sample ads, in three pictures."""

from __future__ import annotations

import argparse
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import jaxbandits as jb
from jaxbandits import tools
from jaxbandits.apps._cli.console import Parser, check_folder, say

FILES = ("regret.png", "sensitivity.png", "slope.png")
_MONEY, _APART = 300.0, 1.1  # for each group of ads; by which factor θ is moved


def parser() -> Parser:
    """The parser of ``demo``."""
    about = "Regret, sensitivity and a gradient in three pictures, of the ads in the package."
    out = {"out": {"default": "jaxbandits-demo"}}
    return Parser("demo", about, "--out  DIR  folder to write to", out)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Run three studies, with a picture and a few lines each; the exit code is 0."""
    out = Path(arguments.out)
    check_folder(arguments.out, FILES, "demo")
    out.mkdir(parents=True, exist_ok=True)
    arms, budget = _ads()
    say(f"{arms.instances} groups of ads, {_MONEY:g} to spend on each: which policy loses least, how "
        f"much does its parameter matter, which way does the regret fall?\n")  # fmt: skip
    for study in (_regret, _sensitivity, _slope):
        study(arms, budget, out)
    say("\nThe same in Python: README.md. Your own file of ads: jaxbandits compare --help")
    return 0


def _ads() -> tuple[jb.environments.FiniteArms, jb.TotalBudget]:
    """The sample: a group of ads is an instance."""
    from jaxbandits.apps.comparison import finite_arms, read_arms

    table = read_arms(resources.files("jaxbandits") / "data" / "sample_ads.csv")
    money = _MONEY / table.instances[0].cost_bound
    return finite_arms(table.instances), jb.TotalBudget(money, last_pull="counts")


def _regret(arms: jb.environments.FiniteArms, budget: jb.TotalBudget, out: Path) -> None:
    import jax

    some = jb.policies.OmegaUCB(rho=[1 / 16, 1 / 4, 1.0])
    policies = [some, jb.policies.BudgetedThompson(), jb.policies.MUCB()]
    result = jb.simulate(policies, arms, budget, key=jax.random.key(0), replicates=200)
    result.plot.regret("replicate", path=out / FILES[0])
    ends, mean = result.regret[..., -1], jb.statistics.mean
    order = np.argsort(ends.mean(axis=(1, 2)).values)
    best, second = (result.settings[i] for i in order[:2])
    apart = mean(jb.statistics.paired(ends[order[1]], ends[order[0]]), over="replicate")
    say(f"1. {best} has the least mean regret: {mean(ends[order[0]], over='replicate')} conversions "
        f"of a group;\n   {second} has {apart} more (paired, 95 %).    {out / FILES[0]}")  # fmt: skip


def _sensitivity(arms: jb.environments.FiniteArms, budget: jb.TotalBudget, out: Path) -> None:
    from jaxbandits.sweeps import Sweep, sweep

    grid = jb.policies.OmegaUCB(rho=np.geomspace(1 / 64, 4, 9))
    spec = Sweep(policies=grid, environments={"ads": arms}, constraint=budget, over="replicate",
                 replicates=100, marks=1)  # fmt: skip
    found = sweep(spec)
    found.plot.sensitivity(path=out / FILES[1])
    say(f"2. {found.curve('OmegaUCB', 'ads').recommendation()}.    {out / FILES[1]}")


def _slope(arms: jb.environments.FiniteArms, budget: jb.TotalBudget, out: Path) -> None:
    """The estimated slope in θ beside the difference of two runs in the same worlds."""
    import jax

    from jaxbandits.gradients import policy_score
    from jaxbandits.gradients.estimates import mean_and_error

    theta, soft = np.geomspace(0.5, 8.0, 5), jb.policies.SoftElim
    options: dict[str, Any] = {"key": jax.random.key(0), "replicates": 200}
    slope = policy_score.estimate(soft(theta=theta), arms, budget, wrt="theta", **options)
    moved = soft(theta=np.concatenate([theta * _APART, theta / _APART]))
    ends = jb.simulate(moved, arms, budget, marks=1, **options).regret.values[..., -1]
    apart = (ends[:5] - ends[5:]) / (theta * (_APART - 1 / _APART))[:, None, None]
    ways = {
        "score function": (slope.gradient["theta"], slope.standard_error["theta"]),
        "difference on common random numbers": mean_and_error(apart),
    }
    (figure, axes), lines = tools.empty_figure(), []
    for number, (name, (values, errors)) in enumerate(ways.items()):
        (colour, marker, _), middle = tools.nth_look(number), values.mean(axis=1)
        error = np.sqrt((errors**2).sum(axis=1)) / arms.instances
        look = {"color": colour, "fmt": marker, "capsize": 3, "label": name}
        axes.errorbar(theta * (1 + 0.03 * number), middle, 1.96 * error, **look)
        lines.append(f"{middle[1]:.3g} (standard error {error[1]:.2g}; {name})")
    axes.set_title("bars: 95 %, that is 1.96 standard errors", fontsize=10)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="θ of SoftElim", ylabel="slope of the regret in θ (reward)", xscale="log")
    tools.label_grid(axes.xaxis, theta, log=True)
    tools.set_key(figure, *axes.get_legend_handles_labels())
    tools.finished(figure, out / FILES[2])
    say(f"3. Slope of SoftElim's regret at θ = {theta[1]:g}: {lines[0]},\n"
        f"   {lines[1]}.    {out / FILES[2]}")  # fmt: skip
