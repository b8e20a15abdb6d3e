"""Worlds that change: when forgetting begins to pay, what it costs where nothing changes, and which
way to forget.

    python -m experiments drift [--quick|--full] [--only ITEM] [--out DIR]

Items: pays, ways, rho, prices.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from experiments import common
from experiments.common import (
    OURS,
    Experiment,
    Options,
    Row,
    Summary,
    difference_row,
    is_above,
    mean_se,
    simulated,
)
from experiments.figures import figure, intervals, name_ticks, save
from jaxbandits.environments import Delayed, FiniteArms, FixedDelay, Piecewise
from jaxbandits.policies import (
    CUSUM,
    GLR,
    MUCB,
    BudgetedThompson,
    Discounted,
    InFlight,
    OmegaUCB,
    PageHinkley,
    PricePacer,
    Restarting,
    Schedule,
    Windowed,
)

POLICIES: dict[str, Any] = {
    "ω-UCB, ρ = 1/4": OmegaUCB(rho=0.25),
    "BTS": BudgetedThompson(),
    "m-UCB": MUCB(),
}
# Number of arms; a half-life that forgets nothing; a first change that comes after every run's end
ARMS, NEVER, STANDS = (5, 1e9, 10**8)
FIT_SEED, TEST_SEED = (
    35,
    36,
)  # seeds of the worlds that the lines are fitted on, and of those that test them


def changing_arms(seed: int, instances: int, length: float, segments: int) -> Piecewise:
    """Five Bernoulli arms with uniform means (costs from 0.1 on), drawn anew every ``length``
    rounds on average.

    The first change comes within ``length`` rounds, the following ones one in each further stretch,
    at random. The means of a segment do not depend on ``length``.
    """
    rng = np.random.default_rng(seed)
    reward, cost, place = np.moveaxis(rng.random((segments, 3, instances, ARMS)), (1, 2), (0, 1))
    stretch = np.arange(segments - 1) + place[:, : segments - 1, 0]
    rounds = (
        np.full(stretch.shape, STANDS)
        if length == STANDS
        else np.floor(np.minimum(stretch * length, STANDS))
    )
    at = 2 + rounds + np.arange(segments - 1)
    return Piecewise.bernoulli(reward, 0.1 + 0.9 * cost, at=at)


def regret_shares(
    options: Options, name: str, policy: Any, environment: Piecewise, budget: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """(regret as a share of the best reward, rounds) of a run, each ``[setting, instance]``."""
    keywords: dict[str, Any] = {"key": jax.random.key(seed), "marks": 1}
    result, _ = simulated(
        options, name, policy, environment, jb.TotalBudget(budget, last_pull="counts"), **keywords
    )
    share = result.regret.values / (result.ledger["moving:expected_clock"] / 2**24)
    return share[:, :, 0, 0], result.ledger["rounds"][:, :, 0, 0]


# --- The line where forgetting begins to pay


class Line(NamedTuple):
    """The fewest changes from which on one policy at a budget and half-life gains by forgetting."""

    changes: float  # changes in a run of average length; 0 or ∞ where the grid ends before
    low: float  # 95 %, bootstrap over instances
    high: float


def crossing(changes: np.ndarray, excess: np.ndarray) -> float:
    """Below how many changes ``excess`` [change] stays positive; linear in ln changes."""
    below = np.flatnonzero(excess < 0)
    if not below.size:
        return np.inf
    last = int(below[-1])
    if last + 1 == len(changes):
        return 0.0
    share = excess[last] / (excess[last] - excess[last + 1])
    return float(np.exp(np.log(changes[last]) * (1 - share) + np.log(changes[last + 1]) * share))


def line(changes: np.ndarray, excess: np.ndarray) -> Line:
    """The crossing of the means of ``excess`` [change, instance]."""
    rng = np.random.default_rng(0)
    resamples = rng.integers(0, excess.shape[1], (1000, excess.shape[1]))
    crossings = [crossing(changes, excess[:, rows].mean(axis=1)) for rows in resamples]
    low, high = np.quantile(crossings, [0.025, 0.975], method="nearest")
    return Line(crossing(changes, excess.mean(axis=1)), float(low), float(high))


SEGMENTS = 48


def pays(options: Options) -> list[Row]:
    """Regret with a half-life minus that without, over changes in a run × budget × half-life."""
    instances = options.pick(16, 64, 128)
    budgets = options.pick([150.0], [500.0, 2000.0], [500.0, 2000.0, 8000.0])
    halves = np.array(
        options.pick([32, 512], [32, 128, 512, 2048], [32, 128, 512, 2048, 8192]), float
    )
    # Of the budget
    shares = np.array(options.pick([0.5, 8], [0.25, 1, 4, 16], [0.25, 0.5, 1, 2, 4, 8, 16, 32]))
    names = list(POLICIES)[: options.pick(1, 3, 3)]
    forgetting = [Discounted.half_life(POLICIES[name], [*halves, NEVER]) for name in names]
    rows = Summary()
    picture, axes = figure(len(names), len(budgets), (4.6 * len(budgets), 3.5 * len(names)))
    outcomes = {}
    for budget in budgets:
        runs = [
            regret_shares(
                options,
                f"{budget:g}, {n:g}",
                forgetting,
                changing_arms(FIT_SEED, instances, n, SEGMENTS),
                budget,
                FIT_SEED,
            )
            for n in [*(shares * budget), STANDS]
        ]
        shape = (len(runs), len(names), len(halves) + 1, instances)
        outcomes[budget] = [np.stack(x).reshape(shape) for x in zip(*runs, strict=True)]
    for ((p, name), budget), axis in zip(
        itertools.product(enumerate(names), budgets), axes, strict=True
    ):
        regret, rounds = (x[:, p] for x in outcomes[budget])  # [change, half-life, instance]
        excess, length = regret[:, :-1] - regret[:, -1:], float(rounds[:, -1].mean())
        changes = length / (shares * budget)
        case = f"{name}, budget {budget:g}"
        note = f"share of the best possible reward; {instances} instances, one run each, paired"
        for (i, n), (j, h) in itertools.product(enumerate([*changes, 0.0]), enumerate(halves)):
            item = f"pays: {case}, {n:.2g} changes a run, half-life {h:g}: regret − without"
            rows.mean(item, excess[i, j], digits="+.4f", note=note, published=OURS)
        lines = [line(changes, excess[:-1, j]) for j in range(len(halves))]
        for h, threshold in zip(halves, lines, strict=True):
            item = f"pays: {case}: half-life {h:g} pays from … changes a run on"
            ends = "0: from the fewest, inf: never"
            error = f"{threshold.low:.2g} to {threshold.high:.2g}"
            rows.add(
                item,
                threshold.changes,
                error,
                digits=".2g",
                note=f"95 %; {length:.0f} rounds a run; {ends}",
            )
        rows += confirmations(options, name, budget, halves, lines, length, instances)
        draw_map(axis, changes, halves, excess.mean(axis=-1), lines)
        axis.set_title(
            f"{name.replace('1/4', '¼')}, budget {budget:,.0f} (some {length:,.0f} rounds)",
            fontsize=9,
        )
    title = "Forgetting: regret with a half-life minus without, % of the best possible reward (blue: it pays)"
    save(picture, options.out / "pays.png", title)
    return rows


def confirmations(
    options: Options,
    name: str,
    budget: float,
    halves: np.ndarray,
    lines: list[Line],
    length: float,
    instances: int,
) -> list[Row]:
    """In other worlds: does forgetting pay with twice as many changes, and cost with half?"""
    rows = Summary()
    for h, threshold in zip(halves, lines, strict=True):
        if threshold.low <= 0 or threshold.high == np.inf:
            continue
        answers, differences = [], []
        for factor, sign in ((2.0, -1), (0.5, 1)):
            environment = changing_arms(
                TEST_SEED, instances, length / (threshold.changes * factor), SEGMENTS
            )
            policies = Discounted.half_life(POLICIES[name], [h, NEVER])
            regret, _ = regret_shares(
                options,
                f"held {name}, {budget:g}, {h:g}, {factor:g}",
                policies,
                environment,
                budget,
                TEST_SEED,
            )
            mean, se = mean_se(excess := regret[0] - regret[1])
            answers.append(is_above(sign * excess))
            differences.append(f"{mean:+.4f} ± {1.96 * se:.4f} at {threshold.changes * factor:.2g}")
        item = f"held: {name}, budget {budget:g}, half-life {h:g}: pays at twice the line's changes, costs at half"
        note = f"two standard errors, {instances} other worlds of another key"
        rows.add(
            item,
            "; ".join(differences),
            published=f"{threshold.changes:.2g}",
            holds=common.all_of(answers),
            note=note,
        )
    return rows


def draw_map(
    axis: Any, changes: np.ndarray, halves: np.ndarray, excess: np.ndarray, lines: list[Line]
) -> None:
    """One map: changes in a run × half-life, and the line."""
    percent, x, y = 100 * excess.T, np.arange(len(changes) + 1), np.arange(len(halves))
    axis.imshow(percent, cmap="RdBu_r", vmin=-20, vmax=20, origin="lower", aspect="auto")
    for i, j in itertools.product(x, y):
        colour = "white" if abs(percent[j, i]) > 14 else "black"
        axis.text(
            i, j + 0.1, f"{percent[j, i]:+.1f}", ha="center", va="center", fontsize=7, color=colour
        )

    def place(at: float) -> float:
        return float(np.interp(-np.log(max(at, 1e-9)), -np.log(changes), x[:-1]))

    for j, threshold in zip(y, lines, strict=True):
        if 0 < threshold.changes < np.inf:
            axis.plot(
                [place(threshold.low), place(threshold.high)],
                [j - 0.32] * 2,
                color="black",
                linewidth=1,
            )
            axis.plot(place(threshold.changes), j - 0.32, color="black", marker="o", markersize=3)
    axis.grid(False)
    name_ticks(axis, x, [f"{n:.2g}" for n in changes] + ["0"])
    axis.set_yticks(y, [f"{h:,.0f}" for h in halves])
    axis.tick_params(labelsize=8)
    axis.set(xlabel="changes in a run", ylabel="half-life, rounds")


# --- Which way to forget


def ways(options: Options) -> list[Row]:
    """ω-UCB with several ways to forget, over the time between changes."""
    instances, budget = options.pick(8, 64, 256), options.pick(100.0, 2000.0, 2000.0)
    lengths = [
        *options.pick([64], [256, 1024, 4096], [128, 256, 512, 1024, 2048, 4096, 8192]),
        STANDS,
    ]
    # A run's, about
    segments, inner, rounds = (int(6 * budget / lengths[0]), OmegaUCB(rho=0.25), 3.45 * budget)
    policies: dict[str, Any] = {
        "never": inner,
        "half-life 128": Discounted.half_life(inner, 128),
        "half-life 512": Discounted.half_life(inner, 512),
        "half-life 512 pulls": Discounted.half_life(inner, 512, per="pull"),
        # 512 / ln 2: as much remembered as with that half-life
        "window 740": Windowed(inner, window=740),
        "restart, GLR": Restarting(inner, GLR(), explore=0.02),
        "restart the arm, GLR": Restarting(inner, GLR(), explore=0.02, whole=False),
        "restart, GLR, growing": Restarting(
            inner,
            GLR(delta=rounds**-0.5),
            explore=float(np.sqrt(ARMS * np.log(rounds) / rounds)),
            growing=True,
        ),
        "restart, CUSUM": Restarting(inner, CUSUM(threshold=8.0), explore=0.02),
        "restart, Page–Hinkley": Restarting(inner, PageHinkley(threshold=8.0), explore=0.02),
    }
    names = list(policies)[: options.pick(6, None, None)]
    regret = {name: np.zeros((len(lengths), instances)) for name in names}
    rows = Summary()
    for i, n in enumerate(lengths):
        environment = changing_arms(FIT_SEED, instances, n, segments)
        for name in names:
            regret[name][i] = regret_shares(
                options, f"ways {name}, {n}", policies[name], environment, budget, FIT_SEED
            )[0][0]
    limit = jb.TotalBudget(budget, last_pull="counts")
    exact = jb.simulate(
        Schedule(*environment.best_schedule(limit)),
        environment,
        limit,
        key=jax.random.key(FIT_SEED),
        marks=1,
    )
    worst = float(np.abs(exact.regret).max())
    rows.add("ways: regret of who knows all, standing", worst, note="exact", holds=worst == 0)
    picture, axes = figure(1, 1, (8, 4.8))
    dashes = itertools.cycle(["-", "--", ":"])
    for name, samples in regret.items():
        x = np.arange(len(lengths)) + 0.03 * (names.index(name) - 4)
        intervals(
            axes[0],
            x,
            100 * samples,
            label=name,
            capsize=2,
            marker=".",
            linestyle=next(dashes),
            linewidth=1.2,
        )
        for i, n in enumerate(lengths):
            pace = "standing" if n == STANDS else f"a change in {n}"
            note = f"share of the best possible reward; ω-UCB, budget {budget:g}, {instances} instances"
            rows.mean(
                f"ways: {name}, {pace}: regret", samples[i], digits=".4f", note=note, published=OURS
            )
            if name != "never":
                excess = samples[i] - regret["never"][i]
                rows.append(
                    difference_row(f"ways: {name}, {pace}: − never", excess, "paired, 95 %")
                )
    name_ticks(
        axes[0], np.arange(len(lengths)), ["never" if n == STANDS else f"{n:,}" for n in lengths]
    )
    axes[0].set(
        xlabel="rounds between changes", ylabel="regret, % of the best possible", ylim=(0, None)
    )
    save(
        picture,
        options.out / "ways.png",
        f"Ways to forget: ω-UCB, budget {budget:,.0f}",
        legend=axes,
        columns=3,
    )
    return rows


# --- Is a larger ρ the cheaper insurance?


def rho(options: Options) -> list[Row]:
    """ω-UCB over ρ × half-life × time between changes."""
    instances, budget = options.pick(8, 64, 256), options.pick(100.0, 2000.0, 2000.0)
    lengths = [*options.pick([64], [512, 2048], [256, 1024, 4096]), STANDS]
    widths, halves = np.array([1 / 16, 1 / 4, 1, 4]), np.array([128, 512, 2048, NEVER])
    segments = int(6 * budget / lengths[0])
    zipped = np.repeat(widths, len(halves))
    policy = Discounted.half_life(OmegaUCB(rho=zipped), np.tile(halves, len(widths)))
    rows = Summary()
    picture, axes = figure(1, len(lengths), (4 * len(lengths), 4))
    for n, axis in zip(lengths, axes, strict=True):
        environment = changing_arms(FIT_SEED, instances, n, segments)
        regret = regret_shares(options, f"rho, {n}", policy, environment, budget, FIT_SEED)[0]
        regret = regret.reshape(len(widths), len(halves), instances)
        pace = "never" if n == STANDS else f"every {n:,} rounds"
        for j, h in enumerate(halves):
            label = "forgets nothing" if h == NEVER else f"half-life {h:g}"
            x = np.arange(len(widths)) + 0.04 * j
            intervals(axis, x, 100 * regret[:, j], label=label, capsize=2, marker="o", markersize=3)
            for i, width in enumerate(widths):
                item = f"rho: {pace}, ρ = {width:g}, {label}: regret"
                rows.mean(item, regret[i, j], digits=".4f", published=OURS)
        standing, forgetting = regret[:, -1], regret[1, :-1]
        best = int(standing.mean(axis=1).argmin()), int(forgetting.mean(axis=1).argmin())
        note = f"best of {len(widths)} ρ ({widths[best[0]]:g}) − best half-life at ρ = ¼ ({halves[best[1]]:g}); paired"
        rows.append(
            difference_row(
                f"rho: {pace}: ρ alone − forgetting", standing[best[0]] - forgetting[best[1]], note
            )
        )
        name_ticks(axis, np.arange(len(widths)), ["1/16", "1/4", "1", "4"])
        axis.set(
            xlabel="ρ",
            ylabel="regret, % of the best possible",
            ylim=(0, None),
            title=f"changes: {pace}",
        )
    save(
        picture,
        options.out / "rho.png",
        f"ω-UCB, budget {budget:,.0f}: ρ against forgetting",
        legend=axes[:1],
    )
    return rows


# --- A daily budget; the price of the best back end drops to a tenth for a week, and comes back

# Of a request; prices in the dearest one's
QUALITY, PRICE = ((0.55, 0.70, 0.80, 0.95), (0.02, 0.10, 0.30, 1.00))


def prices(options: Options) -> list[Row]:
    """Four weeks of a daily budget: quality of pacers that forget and of one that does not."""
    days, a_day, runs = options.pick((4, 60, 3), (28, 500, 10), (28, 500, 40))
    week, rng = days // 4 * a_day, np.random.default_rng(FIT_SEED)

    def back_ends(factor: float) -> FiniteArms:
        share = rng.gamma(4.0, 0.25, (4, 400)).clip(0.05, 2.5) / 2.5  # tokens of an answer
        cost = np.array(PRICE)[:, None] * share * np.array([1, 1, 1, factor])[:, None]
        correct = [(np.arange(400) < 400 * q).astype(float) for q in QUALITY]
        return FiniteArms.empirical([list(zip(correct, cost, strict=True))])

    usual = back_ends(1.0)
    rng = np.random.default_rng(FIT_SEED)  # the same answers at another price
    cheap = back_ends(0.1)
    moving = Piecewise.of([usual, cheap, usual], at=[week + 1, 2 * week + 1])
    mean = usual.values()[1][0]
    pacer = PricePacer()
    policies: dict[str, Any] = {
        "never": pacer,
        "window, 1 day": Windowed(pacer, window=a_day),
        "window, 3 days": Windowed(pacer, window=3 * a_day),
        "restart the arm, GLR": Restarting(pacer, GLR(), explore=0.01, whole=False),
        "restart the arm, CUSUM": Restarting(
            pacer, CUSUM(threshold=4.0, slack=0.02), explore=0.01, whole=False
        ),
    }
    policies = dict(list(policies.items())[: options.pick(2, None, None)])
    late = Delayed(moving, FixedDelay(5), room=8)
    limit = jb.Renewing(amount=[[0.08 * a_day]], every=[1], requests=[a_day] * days)
    quality: dict[str, np.ndarray] = {}
    for name, policy in policies.items():
        in_flight = InFlight(policy, bound=np.minimum(np.asarray(PRICE) * 1.000001, 1.0))
        marks = np.arange(1, days + 1) / days
        result, _ = simulated(
            options,
            f"prices {name}",
            in_flight,
            late,
            limit,
            key=jax.random.key(FIT_SEED),
            replicates=runs,
            marks=marks,
        )
        # [run, day]
        quality[name] = np.diff(result.reward.values[0, 0], axis=-1, prepend=0) / a_day
    rows = Summary()
    picture, axes = figure(1, 1, (9, 4.4))
    weeks = {name: x.reshape(runs, 4, -1).mean(axis=-1) for name, x in quality.items()}
    for name, x in quality.items():
        intervals(axes[0], np.arange(1, days + 1), x.T, label=name, capsize=2, linewidth=1.2)
        for i in range(4):
            period = ("before", "price at a tenth", "first week after", "second week after")[i]
            note = f"{runs} runs, {a_day} requests a day, 0.08 to spend on each; mean prices {mean.round(3).tolist()}"
            rows.mean(
                f"prices: {name}, {period}: quality", weeks[name][:, i], digits=".4f", note=note
            )
            if name != "never":
                gain = weeks[name][:, i] - weeks["never"][:, i]
                rows.append(
                    difference_row(
                        f"prices: {name}, {period}: − never", gain, "paired over runs, 95 %"
                    )
                )
    axes[0].axvspan(days / 4 + 0.5, days / 2 + 0.5, color="grey", alpha=0.15, linewidth=0)
    axes[0].set(xlabel="day", ylabel="quality of a request")
    title = "A daily budget; in the grey week the best back end costs a tenth"
    save(picture, options.out / "prices.png", title, legend=axes, columns=3)
    return rows


EXPERIMENT = Experiment.of("drift", (pays, ways, rho, prices))
