"""Studies around RCUCB: number of limits and arms, α, and the simple regret of z-RCUCB."""

from __future__ import annotations

import numpy as np

from experiments.rcucb.play import POLICIES, play
from experiments.rcucb.report import COLOUR_OF, STAND_IN, difference, estimate, figure
from experiments.common import Options, Row, mean_se
from jaxbandits.environments import g1
from jaxbandits.environments.g1 import G1_NAMES
from jaxbandits.policies import RCUCB, ZRCUCB, fine_limits


def sizes(options: Options) -> list[Row]:
    """Regret against the number of limits, and of arms."""
    rounds, replicates = options.pick((500, 4), (10_000, 10), (50_000, 20))
    counts = options.pick((5, 10), (5, 10, 20, 40), (5, 10, 20, 40))
    names = ("RCUCB literal", "RCUCB legal", "UCB width 1+λ", "UCB width 1")
    note = f"T = {rounds}; {STAND_IN}"
    rows = []
    axes, save = figure(options, "sizes", 2, 3, size=(12, 6.5))
    for line, what in zip(axes, ("limits", "arms"), strict=True):
        worlds = [g1(**{what: n}) for n in counts]
        for name in names:
            runs = [play(POLICIES[name], world, rounds, replicates, marks=1) for world in worlds]
            regret = np.array([run.regret[0, :, :, -1] for run in runs])
            for i, instance in enumerate(G1_NAMES):
                mean, se = mean_se(regret[:, i], axis=1)
                look = {"marker": "o", "ms": 3, "capsize": 2, "color": COLOUR_OF[name]}
                line[i].errorbar(counts, mean, 1.96 * se, label=name, **look)
                for n, x in zip(counts, regret[:, i], strict=True):
                    rows.append(estimate(f"{n} {what}, {instance}: regret {name}", "", x, note))
        for axis, instance in zip(line, G1_NAMES, strict=True):
            axis.set(title=instance, xlabel=f"number of {what}", xscale="log", ylim=(0, None))
            axis.set_xticks(counts, [str(n) for n in counts])
            axis.minorticks_off()
        line[0].set_ylabel(f"regret at T = {rounds:,}")
    save("Number of limits and of arms, stand-in G1 (ours), 95 % intervals", legend=[axes[0, 0]])
    return rows


def alpha(options: Options) -> list[Row]:
    """Regret of RCUCB against α."""
    rounds, replicates = options.pick((1_500, 8), (20_000, 20), (100_000, 30))
    values = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0])
    note = f"T = {rounds}; {STAND_IN}"
    rows = []
    (axes,), save = figure(options, "alpha", 1, 3, size=(12, 4))
    for survival, name in (("literal",) * 2, ("legal",) * 2, ("kaplan_meier", "Kaplan-Meier")):
        run = play(RCUCB(survival, alpha=values), g1(), rounds, replicates, marks=1)
        for i, instance in enumerate(G1_NAMES):
            mean, se = mean_se(run.regret[:, i, :, -1], axis=1)
            style = "--" if survival == "kaplan_meier" else "-"
            look = {"marker": "o", "ms": 3, "capsize": 2, "color": COLOUR_OF[f"RCUCB {name}"], "ls": style}
            axes[i].errorbar(values, mean, 1.96 * se, label=f"RCUCB {name}", **look)
            axes[i].set(title=instance, xlabel="α", xscale="log", yscale="log")
            for a, x in zip(values, run.regret[:, i, :, -1], strict=True):
                rows.append(estimate(f"α = {a:g}, {instance}: regret RCUCB {name}", "", x, note))
    axes[0].set_ylabel(f"regret at T = {rounds:,}")
    save("Sweep over α, stand-in G1 (ours), 95 % intervals", legend=axes[:1])
    return rows


def zoom(options: Options) -> list[Row]:
    """Simple regret of z-RCUCB against T: the pseudo-regret of the round after T, in which it plays what it returns."""
    usual, full = (1_000, 3_000, 10_000, 30_000), (1_000, 3_000, 10_000, 30_000, 100_000)
    horizons, replicates, depth = options.pick(((300, 1_000), 4, 5), (usual, 20, 6), (full, 30, 6))
    world = g1(limits=fine_limits(depth).tolist())
    note = f"{2**depth} limits in the finest grid; {STAND_IN}"
    rows = []
    table = np.zeros((3, len(horizons), replicates))
    for j, horizon in enumerate(horizons):
        marks = [horizon / (horizon + 1), 1.0]
        run = play(ZRCUCB("legal", horizon=horizon), world, horizon + 1, replicates, marks=marks)
        table[:, j] = run.regret[0, :, :, 1] - run.regret[0, :, :, 0]
    (axes,), save = figure(options, "zoom", 1, 3, size=(12, 4))
    for i, instance in enumerate(G1_NAMES):
        mean, se = mean_se(table[i], axis=1)
        axes[i].errorbar(horizons, mean, 1.96 * se, marker="o", ms=3, color=COLOUR_OF["RCUCB legal"], capsize=2)
        axes[i].set(title=instance, xlabel="T", xscale="log", ylim=(0, None))
        for t, x in zip(horizons, table[i], strict=True):
            rows.append(estimate(f"z-RCUCB legal, {instance}: simple regret at T = {t}", "", x, note))
        item = f"z-RCUCB {instance}: simple regret falls from T = {horizons[0]} to {horizons[-1]}"
        rows.append(difference(item, "falls with T (Theorem 2)", table[i, -1] - table[i, 0], note))
    axes[0].set_ylabel("simple regret")
    save("z-RCUCB (legal, α = 1.01, m = 2, δ = 1/T), stand-in G1 (ours), 95 % intervals")
    return rows
