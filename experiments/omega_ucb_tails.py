"""The distribution of ω-UCB's regret by ρ: what the mean of 100 instances does not show.

    python -m experiments omega_ucb_tails [--quick|--full] [--only ITEM] [--out DIR]

Items: one for each setting of the ω-UCB paper (S-Br-10 to S-Bt-100: 16 values of ρ, and m-UCB, at
the paper's budget and at a tenth of it), ``above`` (K = 10, five values of ρ, ten times the
budget), ``BTS``, ``others`` (ω*-UCB, and on Bernoulli arms the paper's other competitors),
``seldom`` (policies that the paper does not play; S-Br-10, a tenth of the budget), and ``tails``
(tails.csv and the pictures, of all that the others play). What was played is kept in ``DIR/runs``
and not played again with the same ``--out``, so a run may be cut into pieces.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from matplotlib.ticker import NullFormatter
from scipy import stats

import jaxbandits as jb
from experiments.common import Experiment, Options, Row, Summary, between, beyond, row, simulated
from experiments.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    VERMILION,
    figure,
    name_ticks,
    save,
)
from experiments.omega_ucb.play import LAWS, STEPS, TWO, fraction, paper_policies
from experiments.omega_ucb.play import RHOS as PAPERS
from experiments.omega_ucb.play import SETTINGS as OF_PAPER
from jaxbandits import policies as p
from jaxbandits._tables import Table
from jaxbandits.environments import FiniteArms
from jaxbandits.statistics import cvar, mean, median, quantile, tail_share

RHOS = 2.0 ** np.linspace(-6, 1.5, 16)
FIVE = 2.0 ** np.arange(-4, 1)  # for ten times the paper's budget
WIDTHS = (10, 50, 100)
SETTINGS = tuple(f"{law}-{arms}" for law in LAWS for arms in WIDTHS)
BLOCK = 200
REST = ("c-UCB", "i-UCB", "b-greedy", "Budget-UCB", "UCB-SC+")  # of the paper's competitors
SELDOM: dict[str, Any] = {  # not played in the paper
    "UCB-SC": p.UCBSC(),
    "KL-UCB-SC+": p.KLUCBSCPlus(),
    "KL-UCB-SC": p.KLUCBSC(),
    "UCB-B2": p.UCBB2(),
    "UCB-BV2": p.UCBBV2(),
    "KUBE": p.KUBE(),
    "fractional KUBE": p.FractionalKUBE(),
    "MRCB, L = 1": p.MRCB(pulls=1),
    "MRCB, L = 2": p.MRCB(pulls=2),
}
COSTLY = 0.05  # a wrong arm is a costly one if its ratio is this much below the best one's


@dataclasses.dataclass(frozen=True)
class Job:
    """A policy with all its settings, in one setting of the paper, at one budget."""

    setting: str  # the paper's name, S-Br-10 to S-Bt-100
    policy: str  # ω-UCB, ω*-UCB, another name of the ω-UCB experiment or of SELDOM
    decade: int  # the budget, in powers of ten over the paper's 1.5·10⁵ · min μ^c: −1, 0 or 1

    @property
    def rhos(self) -> tuple[float, ...]:
        """Values of ρ; NaN for a policy without."""
        of_omega = FIVE if self.decade > 0 else RHOS
        return tuple(
            map(
                float,
                {"ω-UCB": of_omega, "ω*-UCB": TWO, "ω-UCB, two ρ": TWO}.get(self.policy, [np.nan]),
            )
        )

    def learner(self, world: FiniteArms, options: Options) -> Any:
        """The policy, with all its settings."""
        of_rho = {"ω-UCB": p.OmegaUCB, "ω*-UCB": p.OmegaStarUCB}.get(self.policy)
        if of_rho:
            return of_rho(rho=np.array(self.rhos, np.float32))
        return (paper_policies(world, options) | SELDOM)[self.policy]

    def blocks(self, options: Options) -> int:
        """How many blocks of instances are played."""
        if self.policy in ("ω-UCB", "ω-UCB, two ρ"):
            above = 8 if self.setting == "S-Br-10" else 2
            return options.pick(
                1, 1, above if self.decade > 0 else 8 if self.setting.endswith("-100") else 16
            )
        if self.policy == "m-UCB":
            return options.pick(1, 1, 8 if self.decade == 0 else 4)
        return options.pick(1, 1, 2 if self.policy == "ω*-UCB" else 1)


class Outcomes(NamedTuple):
    """Results of all runs of a job, ``[setting, instance]``; rounds and seconds in total."""

    regret: np.ndarray  # pseudo-regret when the budget is spent, units of reward
    # Was more than half of the budget spent on one arm that is not the best (a lock-in)?
    wrong: np.ndarray
    costly: np.ndarray  # and is that arm's ratio at least 5 % below the best one's?
    rounds: float
    seconds: float


@functools.cache
def outcomes(job: Job, options: Options) -> Outcomes:
    """All blocks of a job; those that the output folder has are not played again."""
    blocks = [_block(job, block, options) for block in range(job.blocks(options))]
    runs, costs = zip(*blocks, strict=True)
    cost = {quantity: sum(entry[quantity] for entry in costs) for quantity in ("rounds", "seconds")}
    regret, wrong, costly = (np.concatenate(x, axis=1) for x in zip(*runs, strict=True))
    return Outcomes(regret, wrong, costly, **cost)


def _block(
    job: Job, block: int, options: Options
) -> tuple[tuple[np.ndarray, ...], dict[str, float]]:
    setting = OF_PAPER[job.setting]
    count = options.pick(40, 100, 100 if job.policy == "BTS" else BLOCK)
    assert setting.draw is not None
    world = setting.draw(jax.random.key(21_000 + block), instances=count, arms=setting.arms)
    reward, cost = world.values()
    budget = options.pick(2e3, STEPS, STEPS) * 10.0**job.decade * cost.min(axis=1)
    name = f"{job.setting} {job.policy} {job.decade} {block}"
    constraint = jb.TotalBudget(budget, last_pull="counts")
    keywords: dict[str, Any] = {"key": jax.random.key(22_000 + block), "marks": 1}
    result, effort = simulated(
        options, name, job.learner(world, options), world, constraint, **keywords
    )
    wrong, costly = lock_ins(result.final["pulls"][:, :, 0], reward, cost)
    return (result.regret.values[:, :, 0, -1], wrong, costly), effort


def lock_ins(
    pulls: np.ndarray, reward: np.ndarray, cost: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(most money on one wrong arm; on a costly one), ``[setting, instance]``, from pulls."""
    ratio = reward / cost
    spent = pulls * cost
    dominant = spent.argmax(axis=-1)
    alone = spent.max(axis=-1) > 0.5 * spent.sum(axis=-1)
    dominant_ratio = np.take_along_axis(
        np.broadcast_to(ratio, spent.shape), dominant[..., None], axis=-1
    )[..., 0]
    best = ratio.max(axis=-1)
    return alone & (dominant_ratio < best), alone & (dominant_ratio <= (1 - COSTLY) * best)


RESAMPLES, LEVEL, WORST = 1000, 0.95, 0.01
CRITERIA = {
    "mean": "least mean",
    "median": "least median",
    "q99": "least 99 % quantile",
    "worst": "least worst 1 %",
}


def resampled(count: int, seed: int = 0) -> np.ndarray:
    """How often each of ``count`` instances is in each resample, ``[resample, instance]``."""
    picks = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    return np.stack([np.bincount(pick, minlength=count) for pick in picks]).astype(np.int32)


def criteria(values: np.ndarray, times: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics of regrets ``[instance]`` of which instance i occurs ``times[:, i]`` times (rows
    of equal sums).

    These are mean, median, q99, ``worst`` (mean of the worst 1 %) and ``tail_share`` (what these
    carry of the mean).
    """
    order = np.argsort(values)
    x, times = values[order], times[:, order]
    upto, count = np.cumsum(times, axis=-1), int(times[0].sum())
    total = times.astype(float) @ x
    measures = {"mean": total / count}
    for name, share in (("median", 0.5), ("q99", 0.99)):
        # The least value below or at which a share of the sample lies
        place = (upto < share * count).sum(axis=-1)
        measures[name] = x[np.minimum(place, x.size - 1)]
    worst = max(1, round(WORST * count))
    inside = np.diff(np.maximum(upto - (count - worst), 0), axis=-1, prepend=0)
    measures["worst"] = inside.astype(float) @ x / worst
    measures["tail_share"] = worst * measures["worst"] / np.where(total == 0, 1, total)
    return measures


def run_statistics(regret: np.ndarray, wrong: np.ndarray, costly: np.ndarray) -> dict[str, Any]:
    """By name, (value, low, high) of the runs of one setting of a policy, with 95 % intervals.

    Mean, quantiles, worst 1 % and what these carry are those of ``jaxbandits.statistics``; shares
    of runs have Clopper and Pearson's intervals, exact ones. ``half`` is the least number of runs
    that together carry half of the mean, and ``warned`` what is doubtful about the mean.
    """
    over: dict[str, Any] = {"over": "instance"}
    of_mean = mean(regret, **over)
    quantiles = (quantile(regret, 0.9, **over), quantile(regret, 0.99, **over))
    worst = cvar(regret, WORST, **over), tail_share(regret, WORST, **over)
    estimates = (of_mean, median(regret, **over), *quantiles, *worst)
    measures: dict[str, Any] = {
        name: (x.value, x.low, x.high) for name, x in zip(NAMES, estimates, strict=False)
    }
    for name, hits in (("lock_in", wrong), ("costly_lock_in", costly)):
        low, high = stats.binomtest(int(hits.sum()), hits.size).proportion_ci(LEVEL)
        measures[name] = (float(hits.mean()), float(low), float(high))
    measures["half"] = 1 + int((np.cumsum(np.sort(regret)[::-1]) < regret.sum() / 2).sum())
    measures["warned"] = ", ".join(line.split(":")[0] for line in of_mean.warnings)
    return measures


def not_worse(regret: np.ndarray) -> dict[str, tuple[int, np.ndarray]]:
    """By criterion, of regrets ``[setting, instance]``: (the setting with the least value, which
    settings are not clearly worse).

    Clearly: the bootstrap of the difference, paired by instance, is above 0 at 5 % for all settings
    together (Bonferroni).
    """
    times = np.concatenate([np.ones((1, regret.shape[1]), np.int32), resampled(regret.shape[1])])
    by_setting = [criteria(x, times) for x in regret]
    survivors = {}
    for criterion in CRITERIA:
        # [setting, the sample and its resamples]
        values = np.array([measures[criterion] for measures in by_setting])
        best = int(values[:, 0].argmin())
        gaps = np.quantile(
            values[:, 1:] - values[best, 1:], (1 - LEVEL) / max(1, len(regret) - 1), axis=1
        )
        survivors[criterion] = best, gaps <= 0
    return survivors


def groups(values: np.ndarray, size: int) -> np.ndarray:
    """Means of consecutive groups of ``size`` instances, ``[..., group]``, whole ones only."""
    count = values.shape[-1] // size
    return values[..., : count * size].reshape(*values.shape[:-1], count, size).mean(axis=-1)


NAMES = ("mean", "median", "q90", "q99", "worst", "tail_share", "lock_in", "costly_lock_in")


def row_of(measures: dict[str, Any]) -> list[Any]:
    """The numbers in the order of :func:`header`."""
    return [number for name in NAMES for number in measures[name]] + [
        measures["half"],
        measures["warned"],
    ]


def header() -> list[str]:
    """Names of the columns of :func:`row_of`."""
    return [f"{name}{end}" for name in NAMES for end in ("", "_low", "_high")] + ["half", "warned"]


LINES = {
    "mean": (VERMILION, "s", "-", "mean"),
    "median": (BLUE, "o", "-", "median"),
    "q99": (BLACK, "^", "--", "99 % quantile"),
}


@functools.cache
def _summaries(job: Job, options: Options) -> tuple[dict[str, Any], ...]:
    results = outcomes(job, options)
    return tuple(
        run_statistics(*x) for x in zip(results.regret, results.wrong, results.costly, strict=True)
    )


def _numbers(job: Job, name: str, options: Options) -> np.ndarray:
    """(value, low, high) of a statistic, each ``[ρ]``."""
    return np.array([measures[name] for measures in _summaries(job, options)]).T


def _group(options: Options) -> int:
    """How many instances a published mean has."""
    return options.pick(10, 50, 100)


def tables(jobs: Sequence[Job], options: Options) -> list[Row]:
    """Write tails.csv and best.csv; rows of the best ρ for each criterion."""
    lines: list[list[Any]] = []
    best: list[list[Any]] = []
    rows = Summary()
    for job in jobs:
        regret = outcomes(job, options).regret
        place = [job.setting, job.policy, STEPS * 10.0**job.decade]
        group_means = groups(regret, _group(options))
        ends = np.stack([group_means.min(axis=1), group_means.max(axis=1)], axis=1).tolist()
        counts = least_in(group_means, job.rhos)
        for rho, measures, count, end in zip(
            job.rhos, _summaries(job, options), counts, ends, strict=True
        ):
            lines.append(
                [
                    *place,
                    rho,
                    regret.shape[1],
                    *row_of(measures),
                    *count,
                    group_means.shape[1],
                    *end,
                ]
            )
        if job.policy != "ω-UCB":
            continue
        for criterion, (lowest, among) in not_worse(regret).items():
            survivors = [rho for rho, is_in in zip(job.rhos, among, strict=True) if is_in]
            text = " ".join(f"{rho:.4g}" for rho in survivors)
            gap: list[Any] = [None] * 3
            if criterion == "mean":
                difference = mean(
                    regret[job.rhos.index(0.25)] - regret[job.rhos.index(0.5)], over="instance"
                )
                gap = [difference.value, difference.low, difference.high]
            best.append(
                [*place, criterion, job.rhos[lowest], survivors[0], survivors[-1], text, *gap]
            )
            note = f"not clearly worse, paired bootstrap, Bonferroni at 5 %: {text}; {regret.shape[1]} instances"
            item = f"{job.setting}, {place[2]:g} · min μ^c: ρ of the {CRITERIA[criterion]}"
            rows.add(item, f"{job.rhos[lowest]:.4g}", note=note)
    axes = ["setting", "policy", "budget"]
    count_columns = ["least_in", "least_in_of_eight", "groups", "group_least", "group_most"]
    difference_columns = [f"quarter_minus_half{end}" for end in ("", "_low", "_high")]
    files: list[tuple[str, list[str], list[Any]]] = [
        ("tails", [*axes, "rho", "instances", *header(), *count_columns], lines),
        (
            "best",
            [
                *axes,
                "criterion",
                "best_rho",
                "from_rho",
                "to_rho",
                "not_worse",
                *difference_columns,
            ],
            best,
        ),
    ]
    for name, columns, table in files:
        (options.out / f"{name}.csv").write_text(
            Table(columns, table).csv(digits=5), encoding="utf-8"
        )
    return rows


def least_in(means: np.ndarray, rhos: Sequence[float]) -> list[tuple[int, int | None]]:
    """Of how many groups each ρ has the least of ``means``: of all ρ, and of powers of two."""
    of_all = np.bincount(means.argmin(axis=0), minlength=len(rhos))
    eight = [i for i, rho in enumerate(rhos) if rho in PAPERS]
    of_eight = (
        np.bincount(means[eight].argmin(axis=0), minlength=len(eight)) if eight else np.empty(0)
    )
    return [
        (int(n), int(of_eight[eight.index(i)]) if i in eight else None)
        for i, n in enumerate(of_all)
    ]


def by_rho(options: Options, settings: Sequence[str] = SETTINGS) -> None:
    """A panel for each setting: mean, median and 99 % quantile against ρ at the paper's budget."""
    columns = min(3, len(settings))
    picture, axes = figure(
        len(settings) // columns, columns, (4.2 * columns, 3.6 * len(settings) // columns)
    )
    for axis, setting in zip(axes, settings, strict=True):
        for name, (colour, marker, dashes, label) in LINES.items():
            middle, low, high = _numbers(Job(setting, "ω-UCB", 0), name, options)
            axis.plot(RHOS, middle, dashes, color=colour, marker=marker, markersize=4, label=label)
            axis.fill_between(
                RHOS, low, np.minimum(high, 1e9), color=colour, alpha=0.18, linewidth=0
            )
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
    """Means of 100 instances beside that of all; what the worst 1 % carry; lock-ins."""
    widths = WIDTHS[: options.pick(1, 3, 3)]
    picture, axes = figure((len(widths) + 1) // 2, 2, (10.5, 3.9 * ((len(widths) + 1) // 2)))
    for axis, arms in zip(axes, widths, strict=False):
        job = Job(f"S-Br-{arms}", "ω-UCB", 0)
        regret = outcomes(job, options).regret
        group_means = groups(regret, _group(options))
        style = {
            "color": ORANGE,
            "markersize": 4,
            "alpha": 0.6,
            "label": f"mean of {_group(options)} instances",
        }
        axis.plot(np.repeat(RHOS, group_means.shape[1]), group_means.ravel(), "o", **style)
        _bars(
            axis, job, "mean", options, color=BLACK, marker="s", label="mean of all, 95 % interval"
        )
        axis.set(title=f"S-Br-{arms}, {regret.shape[1]:,} instances", yscale="log", xlabel="ρ")
        _rho_axis(axis)
        low_end, high_end = axis.get_ylim()
        axis.yaxis.set_major_formatter("{x:,g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_yticks(
            [t for t in (200, 500, 1000, 2000, 5000, 10_000, 20_000) if low_end < t < high_end]
        )
        axis.set_ylabel("mean regret at B")
    last = axes[len(widths)]
    for arms, colour, marker in zip(widths, (BLUE, VERMILION, GREEN), "os^", strict=False):
        for name, dashes, caption in (
            ("tail_share", "-", "worst 1 %, share of the mean"),
            ("lock_in", "--", "lock-in"),
        ):
            middle = 100 * _numbers(Job(f"S-Br-{arms}", "ω-UCB", 0), name, options)[0]
            label = f"K = {arms}: {caption}"
            last.plot(RHOS, middle, dashes, color=colour, marker=marker, markersize=4, label=label)
    last.set(title="What carries the mean", xlabel="ρ", ylabel="%", ylim=(0, 60))
    _rho_axis(last)
    title = "Bernoulli arms, the paper's budget: what a mean of 100 instances can show"
    save(picture, options.out / "tails_lottery.png", title, legend=[axes[0], last], columns=2)


def by_budget(options: Options) -> None:
    """Mean and lock-ins against ρ for three budgets, K = 10."""
    picture, axes = figure(2, 3, (12.5, 7.4))
    budgets = (
        (-1, GREEN, "^", "a tenth of B"),
        (0, BLUE, "o", "B, the paper's"),
        (1, PINK, "D", "ten times B"),
    )
    for column, law in enumerate(LAWS):
        for decade, colour, marker, label in budgets:
            job = Job(f"{law}-10", "ω-UCB", decade)
            _bars(axes[column], job, "mean", options, color=colour, marker=marker, label=label)
            _bars(
                axes[3 + column],
                job,
                "lock_in",
                options,
                100,
                color=colour,
                marker=marker,
                label=label,
            )
        axes[column].set(title=f"{law}-10", yscale="log")
        axes[3 + column].set(xlabel="ρ", ylim=(0, None))
        for axis in (axes[column], axes[3 + column]):
            _rho_axis(axis)
    axes[0].set_ylabel("mean regret")
    axes[3].set_ylabel("runs locked in on a wrong arm, %")
    save(
        picture,
        options.out / "tails_by_budget.png",
        "Ten arms, three budgets (95 % intervals)",
        legend=axes[:1],
    )


def _bars(axis: Any, job: Job, name: str, options: Options, scale: float = 1, **style: Any) -> None:
    middle, low, high = scale * _numbers(job, name, options)
    axis.errorbar(
        job.rhos,
        middle,
        [middle - low, high - middle],
        markersize=4,
        capsize=2,
        linewidth=1.3,
        **style,
    )


def _rho_axis(axis: Any) -> None:
    axis.set_xscale("log", base=2)
    name_ticks(axis, PAPERS, map(fraction, PAPERS))


def _seconds(jobs: Sequence[Job], options: Options) -> list[Row]:
    rows = Summary()
    for job in jobs:
        results = outcomes(job, options)
        text = f"{results.regret.shape[1]} instances, {results.rounds:.3g} rounds"
        rows.add(
            f"{job.setting}, {job.policy}, decade {job.decade}: seconds", results.seconds, note=text
        )
    return rows


JOBS = {
    **{
        s: [Job(s, policy, decade) for policy in ("ω-UCB", "m-UCB") for decade in (0, -1)]
        for s in SETTINGS
    },
    "above": [Job(f"{law}-10", "ω-UCB", 1) for law in LAWS],
    "BTS": [*(Job(setting, "BTS", 0) for setting in SETTINGS), Job("S-Br-10", "BTS", -1)],
    "others": [
        *(Job(f"S-Br-{arms}", policy, 0) for policy in REST for arms in WIDTHS),
        # on Bernoulli arms ω*-UCB is ω-UCB
        *(Job(f"{law}-{arms}", "ω*-UCB", 0) for law in ("S-GBr", "S-Bt") for arms in WIDTHS),
    ],
    "seldom": [
        Job("S-Br-10", policy, -1) for policy in ("c-UCB", "i-UCB", "b-greedy", "UCB-SC+", *SELDOM)
    ],
}


def tails(options: Options) -> list[Row]:
    """Tables and pictures of everything; of one setting in a quick run."""
    settings = options.pick(SETTINGS[:1], SETTINGS, SETTINGS)
    by_rho(options, settings)
    lottery(options)
    if not options.quick:
        by_budget(options)
    names = options.pick(settings, JOBS, JOBS)
    return tables([job for name in names for job in JOBS[name]], options)


def paired_differences(options: Options) -> list[Row]:
    """Differences of regret at B, paired by instance, for the page of the paper."""
    rows = Summary()
    for arms in options.pick(WIDTHS[:1], WIDTHS, WIDTHS):
        quarter, unit = outcomes(Job(f"S-Br-{arms}", "ω-UCB, two ρ", 0), options).regret
        bts = outcomes(Job(f"S-Br-{arms}", "BTS", 0), options).regret[0]
        for name, difference in (
            ("ω-UCB, ρ = 1", unit - quarter),
            ("BTS", bts - quarter[: bts.size]),
        ):
            interval = mean(difference, over="instance")
            item = f"larger: S-Br-{arms}: regret of {name} − ω-UCB, ρ = 1/4 at B"
            holds = beyond(interval.low, interval.high)
            note = f"95 % interval; {difference.size} new instances, paired"
            error = f"{interval.low:.0f} to {interval.high:.0f}"
            rows.add(
                item, interval.value, error, published="> 0", holds=holds, note=note, digits=".0f"
            )
    if options.quick:
        return rows
    quarter = outcomes(Job("S-Bt-100", "ω-UCB, two ρ", 0), options).regret[0]
    theirs = outcomes(Job("S-Bt-100", "m-UCB", 0), options).regret[0]
    shared = min(quarter.size, theirs.size)
    quarter, theirs = quarter[:shared], theirs[:shared]
    times = resampled(shared)
    low, high = np.quantile((times @ theirs) / (times @ quarter), (0.025, 0.975))
    item = "larger: S-Bt-100: regret of m-UCB / ω-UCB, ρ = 1/4 at B"
    statement = "comparable (4/5 to 5/4)"
    note = f"95 % bootstrap interval; {shared} new instances, paired"
    error = f"{low:.3g} to {high:.3g}"
    holds, ratio = between(low, high, 0.8, 1.25), theirs.sum() / quarter.sum()
    return [
        *rows,
        row(item, ratio, error, published=statement, holds=holds, note=note, digits=".3g"),
    ]


EXPERIMENT = Experiment(
    "omega_ucb_tails",
    {**{name: functools.partial(_seconds, jobs) for name, jobs in JOBS.items()}, "tails": tails},
    not_in_quick=(*SETTINGS[1:], "above", "BTS", "others", "seldom"),
)
