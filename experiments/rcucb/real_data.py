"""Real data in the RCUCB experiment: solvers with run times (ASlib), random forests with training times (Ames)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.common.figures import figure, save
from experiments.common.rows import Row, mean_se, row
from experiments.common.running import Options
from experiments.data_ames import DEFAULT_OUT
from experiments.rcucb import solvers
from experiments.rcucb.play import BASELINES, POLICIES, simulate
from experiments.rcucb.report import COLOUR_OF, band, difference, estimate
from jaxbandits.environments import Linear, row_arms
from jaxbandits.policies import RCUCB

KEY = jax.random.key(7)
SETTINGS: dict[str, Any] = {
    "RCUCB legal": POLICIES["RCUCB legal"],
    "RCUCB legal α=0.03": RCUCB("legal", alpha=0.03),
    **{name: POLICIES[name] for name in ("RCUCB Kaplan-Meier", *BASELINES)},
}


def par10(result: jb.Result, cutoffs: np.ndarray) -> np.ndarray:
    """Mean PAR10 in seconds of the rounds up to every mark, and of those since mark −2: ``[instance, replicate, 2]``.

    With c(x) = x/10 and λ(τ) = τ, in cut-offs, gain = solved − 0.1 A − B and spent = A + B, where A is the time of
    solved rounds and B the limits of the others: A = (spent + gain − solved)/0.9. An unsolved round costs 10 cut-offs.
    """
    rounds, failed = result.rounds.values[0], result.count("censored").values[0]
    solved = rounds - failed
    seconds = (result.spent.values[0] + result.reward.values[0] - solved) / 0.9
    total = (seconds + 10 * failed) * cutoffs[:, None, None]
    late = (total[..., -1] - total[..., -2]) / (rounds[..., -1] - rounds[..., -2])
    return np.stack([total[..., -1] / rounds[..., -1], late], axis=-1)


def aslib(options: Options) -> list[Row]:
    """Algorithm selection: solver and limit for a random instance; PAR10 against single best and virtual best."""
    if not (options.data / "aslib").is_dir():
        return [row("ASlib", "skipped", note=f"no {options.data}/aslib; give --data")]
    names = list(solvers.SCENARIOS)[:: options.pick(5, 1, 1)]
    scenarios = [solvers.read(options.data, name) for name in names]
    world = row_arms([s.rows() for s in scenarios], limits=np.arange(1, 6) / 5, cost=Linear(0.1), penalty=Linear(1.0))
    rounds, replicates = options.pick((2_000, 4), (20_000, 20), (100_000, 20))
    cutoffs = np.array([s.cutoff for s in scenarios])
    table = {}  # by policy, [scenario, replicate, 2]
    for name, policy in list(SETTINGS.items())[: options.pick(1, 7, 7)]:
        result = simulate(policy, world, rounds, replicates, [0.8, 1.0], key=KEY, names=names)
        table[name] = par10(result, cutoffs)
    rows = []
    for i, (s, (arm, limit, _)) in enumerate(zip(scenarios, world.best_pair(), strict=True)):
        note = f"{len(s.solvers)} solvers, {len(s.times)} instances, T = {rounds}, 5 limits"
        best = np.where(s.times[:, arm] <= limit, s.times[:, arm], 10.0).mean() * s.cutoff
        pair = f"PAR10 of the best pair of the game ({s.solvers[arm]}, {limit:g} of the cut-off)"
        for what, x in (("single best PAR10", s.single_best), ("virtual best PAR10", s.virtual_best), (pair, best)):
            rows.append(row(f"ASlib {s.name} {what}, s", x, note=note, digits=".1f"))
        for name, of_name in table.items():
            for j, when in enumerate(("all rounds", "last fifth")):
                rows.append(estimate(f"ASlib {s.name} PAR10 {name}, {when}, s", "", of_name[i, :, j], note))
    _draw_aslib(options, scenarios, table)
    return rows


def _draw_aslib(options: Options, scenarios: list[solvers.Scenario], table: dict[str, np.ndarray]) -> None:
    picture, axes = figure(1, len(scenarios), (2.6 * len(scenarios) + 2, 4.2))
    for i, (axis, s) in enumerate(zip(axes, scenarios, strict=True)):
        for k, (name, x) in enumerate(table.items()):
            mean, se = mean_se(x[i, :, 1] / s.single_best, axis=0)
            axis.bar(k, mean, yerr=1.96 * se, color=COLOUR_OF[name], width=0.8, label=name)
        axis.axhline(1, color="black", lw=1)
        axis.axhline(s.virtual_best / s.single_best, color="black", lw=1, ls=":")
        axis.set_title(s.name.removesuffix("-2016"), fontsize=9)
        axis.set_xticks([])
    axes[0].set_ylabel("PAR10 / single best, last fifth")
    title = "ASlib: PAR10 of solver and limit chosen online (line: single best, dotted: virtual best)"
    save(picture, options.out / "aslib.png", title, legend=axes[:1])


def ames(options: Options) -> list[Row]:
    """Fig. 5: random-forest configurations on Ames housing, replayed from the table of ``experiments.data_ames``."""
    path = next((p for p in (options.out / DEFAULT_OUT.name, DEFAULT_OUT) if p.exists()), None)
    if path is None:
        note = "make the table first: python -m experiments.data_ames (10 minutes)"
        print(f"rcucb fig5: skipped; {note}")
        return [row("Fig. 5 Ames", "skipped", note=note)]
    table = np.load(path)
    seconds, arms = table["seconds"], list(zip(table["reward"], table["seconds"], strict=True))
    low, high = np.quantile(seconds[:, 0], (0.25, 0.75))  # every configuration run once
    limits = np.linspace(low, high, 10)
    scale = float(limits[-1])
    world = row_arms([arms], limits=limits, cost=Linear(1 / scale), penalty=Linear(10 / scale))
    rounds, replicates = 2 * world.spec.pairs, options.pick(10, 100, 100)
    picture, (axis,) = figure(1, 1, (7, 4.6))
    note = f"{len(arms)} of 672 configurations × {seconds.shape[1]} splits, T = 2nm = {rounds}; our times"
    rows, gains = [], {}
    for name in [n for n in list(SETTINGS)[: options.pick(1, 7, 7)] if "0.03" not in n]:
        result = simulate(SETTINGS[name], world, rounds, replicates, np.arange(1, 41) / 40, key=KEY)
        gain = result.reward.values[0, 0]
        band(axis, np.asarray(result.marks) * rounds, gain, name)
        published = {"RC": 0.0589, "TS": 0.2843, "UC": 0.2853}[name[:2]]
        share = result.count("censored").values[0, 0, :, -1] / rounds
        rows.append(estimate(f"Fig. 5 share over the limit {name}", published, share, note))
        gains[name] = gain[:, -1]
        rows.append(estimate(f"Fig. 5 cumulative gain {name}", "", gains[name], note))
    axis.set(xlabel="round", ylabel="cumulative gain")
    title = f"Fig. 5: Ames random forests, {replicates} replicates, bands of 95 %"
    save(picture, options.out / "fig5.png", title, legend=[axis])
    for name, x in list(gains.items())[2:]:
        rows.append(difference(f"Fig. 5 {name} earns less than RCUCB legal", "yes", x - gains["RCUCB legal"], note))
    return rows
