"""tails.csv, best.csv and the pictures: of all that the other items play."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

from experiments.common.figures import figure, save
from experiments.common.looks import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, VERMILION
from experiments.common.rows import Row, row
from experiments.common.running import Options
from experiments.omega_ucb.specs import RHOS as PAPERS
from experiments.omega_ucb.specs import STEPS, fraction
from experiments.omega_ucb_tails.play import LAWS, RHOS, SETTINGS, WIDTHS, Job, played
from experiments.omega_ucb_tails.spread import CRITERIA, described, groups, header, not_worse, row_of
from jaxbandits._files.csv_text import csv_text
from jaxbandits.statistics import mean

GROUP = 100  # instances of a published mean
LINES = {"mean": (VERMILION, "s", "-"), "median": (BLUE, "o", "-"), "q99": (BLACK, "^", "--")}
LABELS = {"mean": "mean", "median": "median", "q99": "99 % quantile"}

Described = dict[str, Any]  # see spread.described


@functools.cache
def _described(job: Job, options: Options) -> tuple[Described, ...]:
    found = played(job, options)
    return tuple(described(*x) for x in zip(found.regret, found.wrong, found.costly, strict=True))


def tables(jobs: Sequence[Job], options: Options) -> list[Row]:
    """Write tails.csv and best.csv; rows of the best ρ for each criterion."""
    lines: list[list[Any]] = []
    best: list[list[Any]] = []
    rows: list[Row] = []
    for job in jobs:
        regret = played(job, options).regret
        place = [job.setting, job.policy, STEPS * 10.0**job.decade]
        some = groups(regret, options.pick(10, 50, GROUP))
        ends = np.stack([some.min(axis=1), some.max(axis=1)], axis=1).tolist()
        counts = least_in(some, job.rhos)
        for rho, found, count, end in zip(job.rhos, _described(job, options), counts, ends, strict=True):
            lines.append([*place, rho, regret.shape[1], *row_of(found), *count, some.shape[1], *end])
        if job.policy != "ω-UCB":
            continue
        for criterion, (least, among) in not_worse(regret).items():
            kept = [rho for rho, is_in in zip(job.rhos, among, strict=True) if is_in]
            text = " ".join(f"{rho:.4g}" for rho in kept)
            gap: list[Any] = [None] * 3
            if criterion == "mean":
                quarter, half = (regret[job.rhos.index(rho)] for rho in (0.25, 0.5))
                apart = mean(quarter - half)
                gap = [apart.value, apart.low, apart.high]
            best.append([*place, criterion, job.rhos[least], kept[0], kept[-1], text, *gap])
            note = f"not clearly worse, paired bootstrap, Bonferroni at 5 %: {text}; {regret.shape[1]} instances"
            item = f"{job.setting}, {place[2]:g} · min μ^c: ρ of the {CRITERIA[criterion]}"
            rows.append(row(item, f"{job.rhos[least]:.4g}", note=note))
    columns = ["setting", "policy", "budget", "rho", "instances", *header(), "least_in", "least_in_of_eight", "groups"]
    columns += ["group_least", "group_most"]
    (options.out / "tails.csv").write_text(csv_text(columns, lines, digits=5), encoding="utf-8")
    columns = ["setting", "policy", "budget", "criterion", "best_rho", "from_rho", "to_rho", "not_worse"]
    columns += ["quarter_minus_half", "quarter_minus_half_low", "quarter_minus_half_high"]
    (options.out / "best.csv").write_text(csv_text(columns, best, digits=5), encoding="utf-8")
    return rows


def least_in(means: np.ndarray, rhos: Sequence[float]) -> list[tuple[int, int | None]]:
    """For each ρ, in how many groups ``means`` [ρ, group] it is the least of all, and of the paper's powers of two."""
    of_all = np.bincount(means.argmin(axis=0), minlength=len(rhos))
    eight = [i for i, rho in enumerate(rhos) if rho in PAPERS]
    of_eight = np.bincount(means[eight].argmin(axis=0), minlength=len(eight)) if eight else np.empty(0)
    return [(int(n), int(of_eight[eight.index(i)]) if i in eight else None) for i, n in enumerate(of_all)]


def by_rho(options: Options, settings: Sequence[str] = SETTINGS) -> None:
    """A panel for each setting: mean, median and 99 % quantile against ρ at the paper's budget."""
    columns = min(3, len(settings))
    picture, axes = figure(len(settings) // columns, columns, (4.2 * columns, 3.6 * len(settings) // columns))
    for axis, setting in zip(axes, settings, strict=True):
        found = _described(Job(setting, "ω-UCB", 0), options)
        for name, (colour, marker, dashes) in LINES.items():
            middle, low, high = np.array([x[name] for x in found]).T
            axis.plot(RHOS, middle, dashes, color=colour, marker=marker, markersize=4, label=LABELS[name])
            axis.fill_between(RHOS, low, np.minimum(high, 1e9), color=colour, alpha=0.18, linewidth=0)
        axis.axvline(0.25, color=GREY, linestyle=":", linewidth=1, label="the paper's ρ = ¼")
        axis.set(title=setting, yscale="log")
        _rho_axis(axis)
    for axis in axes[-columns:]:
        axis.set_xlabel("ρ")
    for axis in axes[::columns]:
        axis.set_ylabel("regret at B")
    title = "Regret of ω-UCB over random instances, against ρ (bands: 95 % intervals)"
    save(picture, options.out / "tails_by_rho.png", title, legend=axes[:1])


def lottery(options: Options) -> None:
    """What 100 instances show: their means, beside that of all; what the worst 1 % carry; how often a run locks in."""
    widths = WIDTHS[: options.pick(1, 3, 3)]
    picture, axes = figure((len(widths) + 1) // 2, 2, (10.5, 3.9 * ((len(widths) + 1) // 2)))
    for axis, arms in zip(axes, widths, strict=False):
        job = Job(f"S-Br-{arms}", "ω-UCB", 0)
        regret = played(job, options).regret
        some = groups(regret, options.pick(10, 50, GROUP))
        x = np.repeat(RHOS, some.shape[1])
        size = options.pick(10, 50, GROUP)
        axis.plot(x, some.ravel(), "o", color=ORANGE, markersize=4, alpha=0.6, label=f"mean of {size} instances")
        middle, low, high = np.array([each["mean"] for each in _described(job, options)]).T
        error = [middle - low, high - middle]
        style = {"color": BLACK, "marker": "s", "markersize": 4, "capsize": 2, "linewidth": 1.2}
        axis.errorbar(RHOS, middle, error, label="mean of all, 95 % interval", **style)
        axis.set(title=f"S-Br-{arms}, {regret.shape[1]:,} instances", yscale="log", xlabel="ρ")
        _rho_axis(axis)
        low_end, high_end = axis.get_ylim()
        axis.yaxis.set_major_formatter("{x:,g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_yticks([t for t in (200, 500, 1000, 2000, 5000, 10_000, 20_000) if low_end < t < high_end])
        axis.set_ylabel("mean regret at B")
    last = axes[len(widths)]
    for arms, colour, marker in zip(widths, (BLUE, VERMILION, GREEN), "os^", strict=False):
        found = _described(Job(f"S-Br-{arms}", "ω-UCB", 0), options)
        for name, dashes, what in (("tail_share", "-", "worst 1 %, share of the mean"), ("lock_in", "--", "lock-in")):
            label = f"K = {arms}: {what}"
            middle = 100 * np.array([each[name][0] for each in found])
            last.plot(RHOS, middle, dashes, color=colour, marker=marker, markersize=4, label=label)
    last.set(title="What carries the mean", xlabel="ρ", ylabel="%", ylim=(0, 60))
    _rho_axis(last)
    title = "Bernoulli arms, the paper's budget: what a mean of 100 instances can show"
    save(picture, options.out / "tails_lottery.png", title, legend=[axes[0], last], columns=2)


def by_budget(options: Options) -> None:
    """Mean and lock-ins against ρ for three budgets, K = 10."""
    picture, axes = figure(2, 3, (12.5, 7.4))
    budgets = ((-1, GREEN, "^", "a tenth of B"), (0, BLUE, "o", "B, the paper's"), (1, PINK, "D", "ten times B"))
    for column, law in enumerate(LAWS):
        for decade, colour, marker, label in budgets:
            job = Job(f"{law}-10", "ω-UCB", decade)
            several = _described(job, options)
            for axis, name, scale in ((axes[column], "mean", 1.0), (axes[3 + column], "lock_in", 100.0)):
                middle, low, high = scale * np.array([x[name] for x in several]).T
                style = {"color": colour, "marker": marker, "markersize": 4, "capsize": 2, "linewidth": 1.3}
                axis.errorbar(job.rhos, middle, [middle - low, high - middle], label=label, **style)
        axes[column].set(title=f"{law}-10", yscale="log")
        axes[3 + column].set(xlabel="ρ", ylim=(0, None))
        for axis in (axes[column], axes[3 + column]):
            _rho_axis(axis)
    axes[0].set_ylabel("mean regret")
    axes[3].set_ylabel("runs locked in on a wrong arm, %")
    save(picture, options.out / "tails_by_budget.png", "Ten arms, three budgets (95 % intervals)", legend=axes[:1])


def _rho_axis(axis: Any) -> None:
    ticks = 2.0 ** np.arange(-6, 2)
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [fraction(x) for x in ticks])
