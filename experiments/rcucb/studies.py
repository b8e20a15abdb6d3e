"""Studies around RCUCB: number of limits and arms, α, and the simple regret of z-RCUCB."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from experiments.common.figures import figure, save
from experiments.common.rows import Row, above_zero, mean_se, row
from experiments.common.running import Options
from experiments.rcucb.play import POLICIES, play
from experiments.rcucb.report import STAND_IN, dashes, difference, dots, estimate
from jaxbandits.environments import FastTrack, g1
from jaxbandits.environments.censored.g1_settings import G1_NAMES
from jaxbandits.policies import RCUCB, ZRCUCB, fine_limits


def sizes(options: Options) -> list[Row]:
    """Regret against the number of limits, and of arms."""
    rounds, replicates = options.pick((500, 4), (10_000, 10), (50_000, 20))
    counts = options.pick((5, 10), (5, 10, 20, 40), (5, 10, 20, 40))
    names = ("RCUCB literal", "RCUCB legal", "UCB width 1+λ", "UCB width 1")
    note = f"T = {rounds}; {STAND_IN}"
    rows = []
    picture, axes = figure(2, 3, (12, 6.5))
    for line, what in zip(axes.reshape(2, 3), ("limits", "arms"), strict=True):
        worlds = [g1(**{what: n}) for n in counts]
        for name in names:
            runs = [play(POLICIES[name], world, rounds, replicates, marks=1) for world in worlds]
            for i, (axis, instance) in enumerate(zip(line, G1_NAMES, strict=True)):
                regret = [run.regret[0, i, :, -1] for run in runs]
                dots(axis, counts, regret, name, label=name)
                for n, x in zip(counts, regret, strict=True):
                    rows.append(estimate(f"{n} {what}, {instance}: regret {name}", "", x, note))
        for axis, instance in zip(line, G1_NAMES, strict=True):
            axis.set(title=instance, xlabel=f"number of {what}", xscale="log", ylim=(0, None))
            axis.set_xticks(counts, [str(n) for n in counts])
            axis.minorticks_off()
        line[0].set_ylabel(f"regret at T = {rounds:,}")
    title = "Number of limits and of arms, stand-in G1 (ours), 95 % intervals"
    save(picture, options.out / "sizes.png", title, legend=axes[:1])
    return rows


def alpha(options: Options) -> list[Row]:
    """Regret of RCUCB against α."""
    rounds, replicates = options.pick((1_500, 8), (20_000, 20), (100_000, 30))
    values = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0])
    note = f"T = {rounds}; {STAND_IN}"
    rows = []
    picture, axes = figure(1, 3, (12, 4))
    for survival, name in (
        ("literal", "RCUCB literal"),
        ("legal", "RCUCB legal"),
        ("kaplan_meier", "RCUCB Kaplan-Meier"),
    ):
        run = play(RCUCB(survival, alpha=values), g1(), rounds, replicates, marks=1)
        for i, (axis, instance) in enumerate(zip(axes, G1_NAMES, strict=True)):
            regret = run.regret[:, i, :, -1]
            dots(axis, values, regret, name, ls=dashes(name), label=name)
            axis.set(title=instance, xlabel="α", xscale="log", yscale="log")
            for a, x in zip(values, regret, strict=True):
                rows.append(estimate(f"α = {a:g}, {instance}: regret {name}", "", x, note))
    axes[0].set_ylabel(f"regret at T = {rounds:,}")
    save(picture, options.out / "alpha.png", "Sweep over α, stand-in G1 (ours), 95 % intervals", legend=axes[:1])
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
    picture, axes = figure(1, 3, (12, 4))
    for axis, instance, regret in zip(axes, G1_NAMES, table, strict=True):
        dots(axis, horizons, regret, "RCUCB legal")
        axis.set(title=instance, xlabel="T", xscale="log", ylim=(0, None))
        for t, x in zip(horizons, regret, strict=True):
            rows.append(estimate(f"z-RCUCB legal, {instance}: simple regret at T = {t}", "", x, note))
        item = f"z-RCUCB {instance}: simple regret falls from T = {horizons[0]} to {horizons[-1]}"
        rows.append(difference(item, "falls with T (Theorem 2)", regret[-1] - regret[0], note))
    axes[0].set_ylabel("simple regret")
    title = "z-RCUCB (legal, α = 1.01, m = 2, δ = 1/T), stand-in G1 (ours), 95 % intervals"
    save(picture, options.out / "zoom.png", title)
    return rows


def theorem1(options: Options) -> list[Row]:
    """Theorem 1 wants α > 1: the regret at α = 2 beside Σ Δ u, its bound without the part that is subtracted."""
    rounds, replicates = options.pick((1_500, 8), (20_000, 20), (100_000, 20))
    limits, alpha = np.arange(1, 11) / 10, 2.0
    world, penalty = g1(limits=limits.tolist()), np.asarray(FastTrack()(jnp.asarray(limits)))
    run, rows = play(RCUCB("literal", alpha=alpha), world, rounds, replicates, marks=1), []
    for instance, value, regret in zip(G1_NAMES, world.values()[0], run.regret[0, :, :, -1], strict=True):
        bound = regret_bound(value, penalty, alpha, rounds)
        mean, se = mean_se(regret)
        most = rounds * (value.max() - value.min())
        note = f"α = {alpha:g}, T = {rounds}; the worst pair in every round loses {most:.3g}; {STAND_IN}"
        item, said = f"Theorem 1, {instance}: regret of RCUCB literal", f"≤ {bound:.3g}"
        rows.append(row(item, mean, se, published=said, holds=above_zero(bound - mean, se), note=note))
    return rows


def regret_bound(value: np.ndarray, penalty: np.ndarray, alpha: float, rounds: int) -> float:
    """Σ Δ u(T, α) over all pairs (arm, limit); ``value`` [arm · limit], ``penalty`` [limit]."""
    gap = value.max() - value
    widths = np.tile(1 + penalty, gap.size // penalty.size)[gap > 0]
    gap = gap[gap > 0]
    rest = 1 + 8 / np.log((alpha + 1) / 2) * ((alpha + 1) / (alpha - 1)) ** 2
    return float((8 * alpha * widths**2 * np.log(rounds) / gap + gap * rest).sum())
