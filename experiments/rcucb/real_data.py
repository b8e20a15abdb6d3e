"""Real data in the RCUCB experiment: solvers with run times (ASlib), random forests with training times (Ames)."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

import jaxbandits as jb
from experiments.rcucb import solvers
from experiments.rcucb.report import COLOUR_OF, dashes, difference, estimate, figure
from experiments.common import Options, Row, mean_se
from experiments.data_ames import DEFAULT_OUT
from jaxbandits.environments import Linear, row_arms
from jaxbandits.policies import RCUCB, ThompsonReduction, UCBReduction

KEY = jax.random.key(7)
SETTINGS: dict[str, Any] = {
    "RCUCB legal": RCUCB("legal"),
    "RCUCB legal α=0.03": RCUCB("legal", alpha=0.03),
    "RCUCB Kaplan-Meier": RCUCB("kaplan_meier"),
    "UCB width 1+λ": UCBReduction("lambda"),
    "UCB width 1": UCBReduction("one"),
    "TS global": ThompsonReduction("global"),
    "TS per arm": ThompsonReduction("per_arm"),
}


def run(policy: Any, world: Any, rounds: int, replicates: int, marks: Any, names: Any) -> jb.Result:
    """One policy on all instances."""
    lanes = world.instances * replicates
    return jb.simulate(
        policy,
        world,
        jb.Horizon(rounds),
        key=KEY,
        replicates=replicates,
        marks=marks,
        instance_names=names,
        slots=min(256, -(-lanes // 2)),
    )


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
        return [Row("ASlib", "", "skipped", "", "unclear", f"no {options.data}/aslib; give --data")]
    names = list(data_aslib.CUTOFFS)[:: options.pick(5, 1, 1)]
    scenarios = [data_aslib.read(options.data, name) for name in names]
    world = row_arms([s.rows() for s in scenarios], limits=np.arange(1, 6) / 5, cost=Linear(0.1), penalty=Linear(1.0))
    rounds, replicates = options.pick((2_000, 4), (20_000, 20), (100_000, 20))
    chosen = dict(list(SETTINGS.items())[: options.pick(1, 7, 7)])
    cutoffs = np.array([s.cutoff for s in scenarios])
    rows, table = [], {}
    for name, policy in chosen.items():
        table[name] = par10(run(policy, world, rounds, replicates, [0.8, 1.0], names), cutoffs)
    for i, s in enumerate(scenarios):
        note = f"{len(s.solvers)} solvers, {len(s.times)} instances, T = {rounds}, 5 limits"
        rows.append(Row(f"ASlib {s.name} single best PAR10, s", "", f"{s.single_best:.1f}", "", "unclear", note))
        rows.append(Row(f"ASlib {s.name} virtual best PAR10, s", "", f"{s.virtual_best:.1f}", "", "unclear", note))
        arm, limit, _ = world.best_pair()[i]
        best = np.where(s.times[:, arm] <= limit, s.times[:, arm], 10.0).mean() * s.cutoff
        what = f"best pair of the game ({s.solvers[arm]}, {limit:g} of the cut-off)"
        rows.append(Row(f"ASlib {s.name} PAR10 of the {what}, s", "", f"{best:.1f}", "", "unclear", note))
        for name, x in table.items():
            for j, when in enumerate(("all rounds", "last fifth")):
                rows.append(estimate(f"ASlib {s.name} PAR10 {name}, {when}, s", "", x[i, :, j], note))
    axes, save = figure(options, "aslib", 1, len(scenarios), size=(2.6 * len(scenarios) + 2, 4.2))
    for i, (axis, s) in enumerate(zip(axes[0], scenarios, strict=True)):
        for k, (name, x) in enumerate(table.items()):
            mean, se = mean_se(x[i, :, 1] / s.single_best, axis=0)
            axis.bar(k, mean, yerr=1.96 * se, color=COLOUR_OF[name], width=0.8, label=name)
        axis.axhline(1, color="black", lw=1)
        axis.axhline(s.virtual_best / s.single_best, color="black", lw=1, ls=":")
        axis.set_title(s.name.removesuffix("-2016"), fontsize=9)
        axis.set_xticks([])
    axes[0, 0].set_ylabel("PAR10 / single best, last fifth")
    save("ASlib: PAR10 of solver and limit chosen online (line: single best, dotted: virtual best)", legend=axes[0, :1])
    return rows


def ames(options: Options) -> list[Row]:
    """Fig. 5: random-forest configurations on Ames housing, replayed from the table of ``experiments.data_ames``."""
    path = next((p for p in (options.out / DEFAULT_OUT.name, DEFAULT_OUT) if p.exists()), None)
    if path is None:
        note = "make the table first: python -m experiments.data_ames (10 minutes)"
        print(f"rcucb fig5: skipped; {note}")
        return [Row("Fig. 5 Ames", "", "skipped", "", "unclear", note)]
    table = np.load(path)
    seconds, reward = table["seconds"], table["reward"]
    low, high = np.quantile(seconds[:, 0], (0.25, 0.75))  # every configuration run once
    limits = np.linspace(low, high, 10)
    scale = float(limits[-1])
    arms = [(r, s) for r, s in zip(reward, seconds, strict=True)]
    world = row_arms([arms], limits=limits, cost=Linear(1 / scale), penalty=Linear(10 / scale))
    rounds, replicates = 2 * world.spec.pairs, options.pick(10, 100, 100)
    chosen = {name: SETTINGS[name] for name in list(SETTINGS)[: options.pick(1, 7, 7)] if "0.03" not in name}
    axes, save = figure(options, "fig5", 1, 1, size=(7, 4.6))
    axis = axes[0, 0]
    note = f"{len(arms)} of 672 configurations × {seconds.shape[1]} splits, T = 2nm = {rounds}; our times"
    rows, gains = [], {}
    for name, policy in chosen.items():
        result = run(policy, world, rounds, replicates, np.arange(1, 41) / 40, None)
        gain = result.reward.values[0, 0]
        mean, se = mean_se(gain, axis=0)
        x = np.asarray(result.marks) * rounds
        axis.plot(x, mean, dashes(name), color=COLOUR_OF[name], label=name)
        axis.fill_between(x, mean - 1.96 * se, mean + 1.96 * se, color=COLOUR_OF[name], alpha=0.2, lw=0)
        published = {"RC": 0.0589, "TS": 0.2843, "UC": 0.2853}[name[:2]]
        share = result.count("censored").values[0, 0, :, -1] / rounds
        rows.append(estimate(f"Fig. 5 share over the limit {name}", published, share, note))
        gains[name] = gain[:, -1]
        rows.append(estimate(f"Fig. 5 cumulative gain {name}", "", gain[:, -1], note))
    axis.set(xlabel="round", ylabel="cumulative gain")
    save(f"Fig. 5: Ames random forests, {replicates} replicates, bands of 95 %", legend=[axis])
    for name, x in list(gains.items())[2:]:
        rows.append(difference(f"Fig. 5 {name} earns less than RCUCB legal", "yes", x - gains["RCUCB legal"], note))
    return rows
