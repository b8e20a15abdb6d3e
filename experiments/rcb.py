"""Infinitely many arms with a budget (the RCB paper): the first empirical study of RCB-I and
RCB-AIR.

    python -m experiments rcb [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]

Items: regret, far (budgets beyond, 100 reservoirs each), known, baselines, wrong_beta, multiplier,
exploration, ads, claims (what the text says of optimal play), proof (the steps of Theorem 1's
proof). The paper has theory only, so ``published`` holds the bounds. Instances: ρ* = 2, λ = 0.1,
Bernoulli outcomes unless said, one reservoir for each replicate.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

import jaxbandits as jb
from experiments import common
from experiments.common import (
    OURS,
    Experiment,
    Options,
    Row,
    Summary,
    above_zero,
    is_above,
    mean_row,
    mean_se,
    row,
)
from experiments.figures import GREY, figure, intervals, look, save
from experiments.omega_ucb.ads import read_ads
from jaxbandits.environments import FiniteArms, Reservoir, bernoulli_outcome, uniform_outcome
from jaxbandits.oracles.optimum import budgeted_optimum, independent_law
from jaxbandits.policies import (
    RCB,
    ArmIncreasing,
    LogExploration,
    SampledArms,
    arms_to_sample,
    room_needed,
)

ARMS_KEY, RUN_KEY = jax.random.key(15), jax.random.key(16)
BEST, LEAST = 2.0, 0.1  # ρ*, λ
BETAS = (0.5, 1.0, 2.0)
FORMULAS: dict[str, jb.policies.IndexPolicy] = {
    "RCB": RCB(),
    "UCB-V (reward)": jb.policies.UCBVReward(),
    "UCB-V (ratio)": jb.policies.UCBVRatio(),
    "ω-UCB": jb.policies.OmegaUCB(),
    "ω*-UCB": jb.policies.OmegaStarUCB(),
}
OUTCOMES = {"Bernoulli": bernoulli_outcome, "uniform": uniform_outcome}
SHARES = (0.01, 0.1, 1.0)
ADS_FILE = "facebook/data.csv"


class Point(NamedTuple):
    """A β, a budget, and how many replicates play there."""

    beta: float
    budget: float
    replicates: int


class Lanes(NamedTuple):
    """The runs of a point: arrays ``[replicate, mark]`` or ``[replicate]``."""

    budget: np.ndarray  # [mark]: what may be spent by then
    regret: np.ndarray
    # Share of all pulls made while the pulled arm's index was infinite (RCB, 𝓔 = ln t)
    infinite: np.ndarray
    opened: np.ndarray  # arms pulled

    @property
    def last(self) -> np.ndarray:
        return self.regret[:, -1]


def ruled(
    rule: str, formula: str, budget: Any, believed: Any, multiplier: Any = 1.0
) -> SampledArms | ArmIncreasing:
    """A formula under the arm-increasing rule, or on ``K arms``; UCB-V on rewards is told B/λ."""
    if rule == "increasing":
        return ArmIncreasing(
            FORMULAS[formula],
            np.broadcast_to(believed, (len(np.atleast_2d(believed)), budget.size)),
        )
    horizon = np.asarray(budget) / LEAST if formula == "UCB-V (reward)" else budget
    return SampledArms(
        FORMULAS[formula], np.atleast_2d(arms_to_sample(horizon, believed, multiplier))
    )


def play_points(
    points: Sequence[Point], policy: Callable[[np.ndarray, np.ndarray], Any], options: Options, *,
    outcomes: str = "Bernoulli", shares: Sequence[float] = SHARES, arms: Reservoir | None = None, rounds: float = 7.0,
) -> list[list[Lanes]]:  # fmt: skip
    """Results by setting, then by point. ``policy`` makes a policy, or a list of them, from the
    points' β and budgets, ``[1, instance]`` each.

    Several policies play at once: one compiles while another plays. ``rounds`` is how many a unit
    of budget may pay for: the room of growing sets (doubled if that was not enough).
    """
    counts = [point.replicates for point in points]
    beta = np.repeat([point.beta for point in points], counts)
    budget = np.repeat([point.budget for point in points], counts)
    learners = policy(beta[None, :], budget[None, :])
    if arms is None:
        arms = Reservoir.ratio(
            ARMS_KEY, instances=beta.size, capacity=1, beta=beta, best_ratio=BEST, least_cost=LEAST,
            outcomes=OUTCOMES[outcomes],
        )  # fmt: skip
    constraint = jb.TotalBudget(budget, last_pull="forfeits")
    keywords: dict[str, Any] = {
        "key": RUN_KEY,
        "marks": tuple(shares),
        "slots": 64 if options.quick else None,
    }

    def run(room: int) -> jb.Result:
        world = arms.with_capacity(room)
        return jb.simulate(learners, world, constraint, progress=sys.stderr.isatty(), **keywords)

    result, room = jb.rerun_larger(run, _room(learners, budget, rounds, options), most=1 << 20)
    return _lanes(result, arms.with_capacity(room), budget, np.cumsum([0, *counts]))


def _room(policies: Any, budget: np.ndarray, rounds: float, options: Options) -> int:
    """How many arms to make room for: K, or those that the increasing rule may open."""
    needed = 0
    for policy in policies if isinstance(policies, list) else [policies]:
        if isinstance(policy, SampledArms):
            needed = max(needed, int(np.max(policy.arms)))
            continue
        beta = np.broadcast_to(
            policy.beta, np.broadcast_shapes(np.shape(policy.beta), (1, budget.size))
        )
        pairs = zip(np.tile(budget, len(beta)), beta.ravel(), strict=True)
        needed = max(needed, *(room_needed(rounds * b, x) for b, x in pairs))
    # In a quick run all calls share two programs; else room is a multiple of 8.
    return (
        (128 if needed <= 128 else 320 if needed <= 320 else needed)
        if options.quick
        else -(-needed // 8) * 8
    )


def _lanes(
    result: jb.Result, arms: Reservoir, budget: np.ndarray, ends: np.ndarray
) -> list[list[Lanes]]:
    full = result.ended == jb.Status.CAPACITY
    assert not full.any(), f"{full.sum()} lanes were full"
    _, cost = arms.first_arms(arms.capacity)
    lanes: list[list[Lanes]] = []
    for i in range(len(result.settings)):
        pulls, rounds = result.final["pulls"][i, :, 0], result.ledger["rounds"][i, :, 0, -1]
        needed = np.log(rounds[:, None]) / (2 * cost**2)  # pulls until c̄ > √(ln t / 2n), at the end
        infinite = np.minimum(pulls, needed).sum(axis=1) / pulls.sum(axis=1)
        opened = (pulls > 0).sum(axis=1)
        regret = result.regret.values[i, :, 0]
        spent = budget[:, None] * np.asarray(result.marks)
        lanes.append(
            [
                Lanes(spent[a], regret[a:b], infinite[a:b], opened[a:b])
                for a, b in itertools.pairwise(ends)
            ]
        )
    return lanes


NAMES = {"RCB": ("RCB-I", "RCB-AIR"), "ω-UCB": ("ω-UCB, K arms", "ω-UCB, increasing")}
# ten to the …: the last budget with many runs, and the last one of all, by β
MANY = {"RCB": {0.5: 5.0, 1.0: 5.0, 2.0: 4.0}, "ω-UCB": {0.5: 4.0, 1.0: 4.0, 2.0: 3.5}}
LAST = {"RCB": {0.5: 6.0, 1.0: 5.0, 2.0: 4.5}, "ω-UCB": {0.5: 4.0, 1.0: 4.0, 2.0: 3.5}}
# ten to the …: where ``far`` begins, the last budget of ``regret``, and where it ends
FAR = {
    "RCB": {1.0: (5.0, 5.5), 2.0: (4.5, 5.0)},
    "ω-UCB": {0.5: (4.0, 5.0), 1.0: (4.0, 5.0), 2.0: (3.5, 4.5)},
}
ROUNDS = {0.5: 8.5, 1.0: 5.6, 2.0: 4.6}  # most rounds that a unit of budget pays for (measured)
# What costs less than compiling another program: so many times the arms, so many arms
_SIMILAR, _CHEAP = (1.3, 32)


class Curve(NamedTuple):
    """Regret at several budgets."""

    budget: np.ndarray  # ascending
    mean: np.ndarray
    se: np.ndarray
    runs: np.ndarray
    infinite: np.ndarray  # mean share; NaN at a budget that was only passed
    opened: np.ndarray

    def exponents(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(geometric mid budget, d ln R / d ln B between neighbours, its standard error by the
        delta method).

        Neighbours are taken as independent: for marks of one run, which are positively correlated,
        that is too wide.
        """
        step = np.diff(np.log(self.budget))
        slope = np.diff(np.log(self.mean)) / step
        relative = self.se / self.mean
        return (
            np.sqrt(self.budget[1:] * self.budget[:-1]),
            slope,
            np.hypot(relative[1:], relative[:-1]) / step,
        )


def join(parts: Sequence[Lanes], *, passed: bool) -> Curve:
    """Several runs as one curve, with marks on the way if ``passed``; most replicates count."""
    rows: dict[float, tuple[float, ...]] = {}
    for lanes in sorted(parts, key=lambda part: len(part.regret)):
        mean, se = mean_se(lanes.regret)
        last = len(lanes.budget) - 1
        for i in range(0 if passed else last, last + 1):
            ends = [
                float(x.mean()) if i == last else np.nan for x in (lanes.infinite, lanes.opened)
            ]
            rows[float(f"{lanes.budget[i]:.3g}")] = (
                float(mean[i]),
                float(se[i]),
                len(lanes.regret),
                *ends,
            )
    budgets = np.array(sorted(rows))
    return Curve(budgets, *np.array([rows[b] for b in budgets]).T)


def _powers(low: float, high: float) -> list[float]:
    """Budgets in half decades, three digits."""
    return [float(f"{10**e:.3g}") for e in np.arange(low, high + 0.1, 0.5)]


def schedule(
    formula: str, beta: float, options: Options, far: bool = False
) -> list[tuple[float, int]]:
    """(budget, replicates) of all points of a formula and a β."""
    if far:
        if beta not in FAR[formula]:
            return []
        low, high = (x - options.pick(2.0, 1.0, 0.0) for x in FAR[formula][beta])
        return [(b, options.pick(20, 40, 100)) for b in _powers(low, high)]
    if options.quick:
        return [(b, 40) for b in _powers(2.0, 3.0)]
    border, last = MANY[formula][beta], LAST[formula][beta]
    if not options.full:
        border, last = border - 1, border - 0.5
    dense, sparse = options.pick(None, (200, 40), (1000, 100))
    return [(b, dense if b <= 10**border * 1.01 else sparse) for b in _powers(3.0, last)]


@functools.cache
def regret_curves(
    formula: str, options: Options, far: bool = False
) -> dict[float, dict[str, Curve]]:
    """Curves by β, then by rule. ``far``: larger budgets, fewer runs, for β that have such."""
    known_name, any_name = NAMES[formula]
    points = [Point(beta, b, n) for beta in BETAS for b, n in schedule(formula, beta, options, far)]
    by_beta: dict[float, list[Lanes]] = {beta: [] for beta in BETAS}
    for batch in _batches(points, options):
        lanes = play_points(
            batch, lambda beta, budget: ruled("K arms", formula, budget, beta), options
        )[0]
        for point, x in zip(batch, lanes, strict=True):
            by_beta[point.beta].append(x)
    grown = _increasing(formula, options, far)
    return {
        beta: {
            known_name: join(by_beta[beta], passed=False),
            any_name: join(grown[beta], passed=True),
        }
        for beta in BETAS
        if by_beta[beta]
    }


def _batches(points: list[Point], options: Options) -> list[list[Point]]:
    """Points of about as many arms play together: the arms of the widest one cost all of them."""
    if options.quick:
        return [points]
    groups: list[list[Point]] = []
    widest = 0
    for point in sorted(points, key=lambda point: -arms_to_sample(point.budget, point.beta)):
        arms = arms_to_sample(point.budget, point.beta)
        if not groups or (arms < widest / _SIMILAR and widest > _CHEAP):
            groups.append([])
            widest = arms
        groups[-1].append(point)
    return groups


def _increasing(formula: str, options: Options, far: bool) -> dict[float, list[Lanes]]:
    """The arm-increasing rule does not know B: one run serves all smaller budgets."""
    by_beta: dict[float, list[Lanes]] = {beta: [] for beta in BETAS}
    calls: dict[Any, tuple[list[Point], list[float]]] = {}
    for beta in BETAS:
        pairs = schedule(formula, beta, options, far)
        for replicates in sorted({n for _, n in pairs}):
            budgets = [b for b, n in pairs if n >= replicates]
            shares = [b / budgets[-1] for b in budgets[:-1]] + [1.0]
            batch = None if options.quick else (beta, replicates)
            points, _ = calls.setdefault(batch, ([], shares))
            points.append(Point(beta, budgets[-1], replicates))

    def policy(beta: np.ndarray, budget: np.ndarray) -> Any:
        return ruled("increasing", formula, budget, beta)

    for points, shares in calls.values():
        rounds = max(ROUNDS[point.beta] for point in points)
        lanes = play_points(points, policy, options, shares=shares, rounds=rounds)
        for point, x in zip(points, lanes[0], strict=True):
            by_beta[point.beta].append(x)
    return by_beta


def bound_exponents(beta: float, budget: np.ndarray, policy: str) -> tuple[np.ndarray, float]:
    """(local exponent of the upper bound with its logarithms, exponent of the lower bound).

    RCB-I: √B ln B (β < 1), √B ln²B (β = 1), B^{β/(1+β)} ln B (β > 1); RCB-AIR: ln²B times √B (β <
    1) or B^{β/(1+β)}.
    """
    power = 0.5 if beta < 1 else beta / (1 + beta)
    logs = 2 if policy == "RCB-AIR" or beta == 1 else 1
    return power + logs / np.log(budget), beta / (1 + beta)


def regret(options: Options) -> list[Row]:
    """Regret on log-log axes, and local exponents beside those of the bounds."""
    picture, axes = figure(2, 3, (12.5, 8))
    rows: list[Row] = []
    for column, beta in enumerate(BETAS):
        top, bottom = axes[column], axes[3 + column]
        for formula in list(NAMES)[: 1 if options.quick else None]:
            for name, curve in regret_curves(formula, options)[beta].items():
                top.errorbar(curve.budget, curve.mean, 1.96 * curve.se, label=name, **look(name))
                middle, slope, se = curve.exponents()
                bottom.errorbar(middle, slope, 1.96 * se, label=name, **look(name))
                rows += _levels(name, beta, curve)
                if formula == "RCB":
                    rows += _exponents(name, beta, curve)
        rcb_i = regret_curves("RCB", options)[beta]["RCB-I"]
        upper, lower = bound_exponents(beta, rcb_i.budget, "RCB-I")
        line = rcb_i.mean[0] * (rcb_i.budget / rcb_i.budget[0]) ** lower
        top.plot(rcb_i.budget, line, color=GREY, ls=":", label="slope of the lower bound")
        bottom.axhline(lower, color=GREY, ls=":")
        bottom.plot(
            rcb_i.budget, upper, color=GREY, ls="--", label="local slope of RCB-I's upper bound"
        )
        top.set(
            xscale="log", yscale="log", xlabel="budget B", ylabel="regret", title=f"β = {beta:g}"
        )
        bottom.set(xscale="log", xlabel="budget B", ylabel="local exponent d ln R / d ln B")
    title = "Regret B·ρ* − reward, mean and 95 % interval (ρ* = 2, λ = 0.1)"
    save(picture, options.out / "regret.png", title, legend=[axes[0], axes[3]])
    return rows


def _levels(name: str, beta: float, curve: Curve) -> list[Row]:
    rows = Summary()
    for i, budget in enumerate(curve.budget):
        note = f"{curve.runs[i]:.0f} runs; R/(Bρ*) = {curve.mean[i] / (2 * budget):.3f}"
        if np.isfinite(curve.opened[i]):
            note += f"; {curve.opened[i]:.0f} arms"
        if name.startswith("RCB") and np.isfinite(curve.infinite[i]):
            note += f", infinite index in {100 * curve.infinite[i]:.0f} % of pulls"
        item = f"regret: {name}, β = {beta:g}, B = {budget:g}"
        rows.add(item, curve.mean[i], curve.se[i], note=note)
    return rows


def _exponents(name: str, beta: float, curve: Curve) -> list[Row]:
    """Does the local exponent fall with B, and has it come down to that of the upper bound?"""
    middle, slope, se = curve.exponents()
    upper, lower = bound_exponents(beta, middle, name)
    rows, note = Summary(), "yes: below the upper bound's own local exponent"
    for i, budget in enumerate(middle):
        item = f"exponent: {name}, β = {beta:g}, B ≈ {budget:.3g}"
        statement = f"≤ {upper[i]:.3f} (upper bound), ≥ {lower:.3f} (lower)"
        holds = above_zero(upper[i] - slope[i], se[i])
        rows.add(item, slope[i], se[i], published=statement, holds=holds, note=note, digits=".3f")
    rows.append(_above_the_lower_bound(name, beta, middle, slope, se))
    if name == "RCB-AIR":
        rows += _as_printed(beta, middle, slope, se)
    fall, error = slope[0] - slope[-1], np.hypot(se[0], se[-1])
    item = f"exponent: {name}, β = {beta:g}: it falls with B"
    note = f"first minus last of {len(middle)}"
    holds = above_zero(fall, error)
    return [*rows, row(item, fall, error, published=OURS, holds=holds, note=note, digits=".3f")]


def _above_the_lower_bound(
    name: str, beta: float, middle: np.ndarray, slope: np.ndarray, se: np.ndarray
) -> Row:
    """Theorem 2, any algorithm: is the local exponent nowhere below β/(1+β)? Its constant is free."""
    lower = beta / (1 + beta)
    z = (slope - lower) / se
    i = int(z.argmin())
    item = f"bounds: {name}, β = {beta:g}: least exponent − that of Theorem 2"
    note = f"at B ≈ {middle[i]:.3g}, {z[i]:.1f} s.e.; yes: above by 2 s.e. at each of {len(middle)} budgets"
    holds = above_zero(slope[i] - lower, se[i])
    return row(
        item,
        slope[i] - lower,
        se[i],
        published="≥ 0 (Theorem 2)",
        holds=holds,
        note=note,
        digits=".3f",
    )


def _as_printed(beta: float, middle: np.ndarray, slope: np.ndarray, se: np.ndarray) -> list[Row]:
    """Theorem 3 as printed: B^{β/(1+β)} for β ≤ 1 and √B for β > 1, times ln²B."""
    power = 0.5 if beta > 1 else beta / (1 + beta)
    bound, i = power + 2 / np.log(middle[-1]), len(middle) - 1
    item = f"bounds: RCB-AIR, β = {beta:g}, Theorem 3 as printed, B ≈ {middle[i]:.3g}"
    note = "exponent; yes: below that bound's own local exponent, at the largest budget"
    holds = above_zero(bound - slope[i], se[i])
    return [
        row(item, slope[i], se[i], published=f"≤ {bound:.3f}", holds=holds, note=note, digits=".3f")
    ]


def far(options: Options) -> list[Row]:
    """Regret, and RCB's local exponents, beyond ``regret``'s budgets, with a tenth of its runs."""
    rows: list[Row] = []
    for formula in NAMES:
        for beta, by_rule in regret_curves(formula, options, far=True).items():
            for name, curve in by_rule.items():
                rows += _levels(name, beta, curve) + (
                    _exponents(name, beta, curve)[:-1] if formula == "RCB" else []
                )
            rows += _ratios(formula, beta, by_rule)
    return [line._replace(item=f"far: {line.item}") for line in rows]


def known(options: Options) -> list[Row]:
    """Known against unknown budget: regret of the increasing rule over that of K arms, at equal B."""
    rows: list[Row] = []
    picture, axes = figure(1, 3, (12.5, 4.4))
    for axis, beta in zip(axes, BETAS, strict=True):
        for formula, (i, air) in NAMES.items():
            by_rule = regret_curves(formula, options)[beta]
            ratio, error = _ratio(by_rule[air], by_rule[i])
            axis.errorbar(by_rule[i].budget, ratio, 1.96 * error, label=f"{air} / {i}", **look(air))
            rows += [
                line._replace(item=f"known: {line.item}")
                for line in _ratios(formula, beta, by_rule)
            ]
        axis.axhline(1, color=GREY, lw=1)
        axis.set(xscale="log", xlabel="budget B", ylabel="ratio of regrets", title=f"β = {beta:g}")
    title = "What it costs not to know the budget: unknown over known, 95 % interval"
    save(picture, options.out / "known.png", title, legend=axes[:1])
    return rows


def _ratios(formula: str, beta: float, both: dict[str, Curve]) -> list[Row]:
    """Regret of the rule that does not know the budget over that of the one that does."""
    (i, air), rows = NAMES[formula], Summary()
    note = "yes: above 1; not paired; the bounds differ by a logarithm at most"
    for b, x, se in zip(both[i].budget, *_ratio(both[air], both[i]), strict=True):
        item, holds = f"{air} / {i}, β = {beta:g}, B = {b:g}", above_zero(x - 1, se)
        rows.add(item, x, se, published=OURS, holds=holds, note=note, digits=".3f")
    return rows


def _ratio(top: Curve, bottom: Curve) -> tuple[np.ndarray, np.ndarray]:
    ratio = top.mean / bottom.mean
    return ratio, ratio * np.hypot(top.se / top.mean, bottom.se / bottom.mean)


RULES = {"K arms": "RCB-I", "increasing": "RCB-AIR"}


def _points(options: Options) -> list[Point]:
    """A point for each β, all with the same budget."""
    budget, replicates = options.pick((1e3, 40), (3160.0, 100), (3160.0, 200))
    return [Point(beta, budget, replicates) for beta in BETAS]


def _row(item: str, lanes: Lanes, note: str = "", best: float = 2.0) -> Row:
    share = f"R/(Bρ*) = {lanes.last.mean() / (best * lanes.budget[-1]):.3f}"
    return mean_row(item, lanes.last, note=share + note, digits=".4g")


def _paired(item: str, better: Lanes, worse: Lanes, note: str) -> Row:
    """Is the regret of ``better`` the smaller? Same worlds; a question of ours."""
    gap = worse.last - better.last
    return mean_row(item, gap, OURS, holds=is_above(gap), note=note + "; paired", digits=".4g")


def baselines(options: Options) -> list[Row]:
    """All formulas under both rules, Bernoulli and uniform outcomes."""
    points, rows = _points(options), []
    kinds = options.pick(("Bernoulli",), ("Bernoulli", "uniform"), ("Bernoulli", "uniform"))
    rules = options.pick(("K arms",), tuple(RULES), tuple(RULES))
    for kind in kinds:
        results: dict[tuple[str, str], list[Lanes]] = {}
        skipped = ["ω*-UCB"] if kind == "Bernoulli" else []  # η̂ = 1: it is ω-UCB, to the bit
        skipped += ["UCB-V (ratio)"] if options.quick else []
        for rule in rules:
            # UCB-V on rewards samples five times as many arms, which all that play beside it would
            # pay for.
            formulas = [f for f in FORMULAS if f not in skipped and f != "UCB-V (reward)"]
            for batch in (formulas, ["UCB-V (reward)"]):
                runs = play_points(points, _rules(batch, rule), options, outcomes=kind)
                results |= {
                    (formula, rule): lanes for formula, lanes in zip(batch, runs, strict=True)
                }
        for i, beta in enumerate(BETAS):
            label = f"β = {beta:g}, {kind}"
            for (formula, rule), lanes in results.items():
                rows.append(_row(f"baselines: {formula}, {rule}, {label}", lanes[i]))
            for rule in rules:
                rcb, omega, reward = (
                    results[f, rule][i] for f in ("RCB", "ω-UCB", "UCB-V (reward)")
                )
                rows.append(
                    _paired(
                        f"baselines: RCB − ω-UCB, {rule}, {label}", omega, rcb, "yes: ω is better"
                    )
                )
                item = f"baselines: UCB-V (reward) − RCB, {rule}, {label}"
                note = "costs ignored against costs learnt"
                rows.append(_paired(item, rcb, reward, note))
    return rows


def _rules(formulas: Sequence[str], rule: str) -> Any:
    return lambda beta, budget: [ruled(rule, formula, budget, beta) for formula in formulas]


def wrong_beta(options: Options) -> list[Row]:
    """Believed against true β: both rules of RCB."""
    points, rows, beliefs = _points(options), [], np.array(BETAS)[:, None]
    for rule, name in RULES.items():

        def policy(beta: np.ndarray, budget: np.ndarray, rule: str = rule) -> Any:
            return ruled(rule, "RCB", budget, beliefs)

        lanes = play_points(points, policy, options)
        for i, beta in enumerate(BETAS):
            column = [of_belief[i] for of_belief in lanes]
            for believed, x in zip(BETAS, column, strict=True):
                if believed == beta:
                    rows.append(
                        _row(f"wrong_beta: {name}, true β = {beta:g}, believed {believed:g}", x)
                    )
                    continue
                item = f"wrong_beta: {name}, true β = {beta:g}: believing {believed:g} costs"
                note = f"R = {x.last.mean():.4g} instead of {column[i].last.mean():.4g}"
                rows.append(_paired(item, column[i], x, f"{note}; yes: it costs"))
    return rows


def multiplier(options: Options) -> list[Row]:
    """K = max(2, ⌈m·B^e⌉) for several m."""
    points, rows = _points(options), []
    factors = options.pick(
        np.array([1 / 16, 1 / 4, 1.0]), 2.0 ** np.arange(-6, 2), 2.0 ** np.arange(-6, 2)
    )
    picture, axes = figure(1, 3, (12.5, 4.2))
    for formula, name in (("RCB", "RCB-I"), ("ω-UCB", "ω-UCB, K arms")):

        def policy(beta: np.ndarray, budget: np.ndarray, formula: str = formula) -> Any:
            return ruled("K arms", formula, budget, beta, factors[:, None])

        lanes = play_points(points, policy, options)
        for i, (axis, beta) in enumerate(zip(axes, BETAS, strict=True)):
            column = [of_factor[i] for of_factor in lanes]
            intervals(axis, factors, [x.last for x in column], label=name, **look(name))
            for m, x in zip(factors, column, strict=True):
                k = arms_to_sample(points[i].budget, beta, m)
                rows.append(_row(f"multiplier: {name}, β = {beta:g}, m = {m:g}", x, f"; K = {k}"))
            best = int(np.argmin([x.last.mean() for x in column]))
            item = f"multiplier: {name}, β = {beta:g}: the best m beats m = 1 by"
            at_one = column[list(factors).index(1.0)]
            rows.append(
                _paired(item, column[best], at_one, f"best m = {factors[best]:g} of those tried")
            )
            axis.set(
                xlabel="multiplier m of K", ylabel="regret", title=f"β = {beta:g}", ylim=(0, None)
            )
            axis.set_xscale("log", base=2)
    title = f"The constant that the theory leaves open, B = {points[0].budget:g}, 95 % intervals"
    save(picture, options.out / "multiplier.png", title, legend=axes[:1])
    return rows


def exploration(options: Options) -> list[Row]:
    """Exploration sequences of RCB, under both rules."""
    points, rows = _points(options), []
    scales = {"ln t": 1.0, "ln t / 4": 0.25, "ln t / 16": 0.0625}
    names = list(scales)
    sequences: list[Any] = [LogExploration(np.array(list(scales.values())))]
    if not options.quick:
        names = [*names, "2 ln(4(log₂ t + 1))"]
        sequences = [*sequences, jb.policies.LogLogExploration()]
    for rule, name in RULES.items():

        def policies(true: np.ndarray, budget: np.ndarray, rule: str = rule) -> list[Any]:
            if rule == "K arms":
                return [
                    SampledArms(RCB(sequence), arms_to_sample(budget, true))
                    for sequence in sequences
                ]
            return [ArmIncreasing(RCB(sequence), true) for sequence in sequences]

        by_sequence = dict(zip(names, play_points(points, policies, options), strict=True))
        for i, beta in enumerate(BETAS):
            for sequence, lanes in by_sequence.items():
                rows.append(_row(f"exploration: {name}, β = {beta:g}, 𝓔 = {sequence}", lanes[i]))
                if sequence != "ln t":
                    note = (
                        "smaller than the theory allows"
                        if "/" in sequence
                        else "the lower end of the theory"
                    )
                    item = f"exploration: {name}, β = {beta:g}: 𝓔 = {sequence} beats ln t by"
                    rows.append(_paired(item, lanes[i], by_sequence["ln t"][i], note))
    return rows


def ads(options: Options) -> list[Row]:
    """Arms drawn from all Facebook ads together: a law that has its best arm (no β is true)."""
    table = read_ads(options.data / ADS_FILE)[0]
    reward, cost = (
        np.concatenate([getattr(x, f"mean_{quantity}") for x in table])
        for quantity in ("reward", "cost")
    )
    reward, cost = 0.99 * reward / reward.max(), np.maximum(0.99 * cost / cost.max(), 0.01)
    best = float((reward / cost).max())
    budget, replicates = options.pick((100.0, 20), (300.0, 50), (1e3, 100))
    points, rows = [Point(beta, budget, replicates) for beta in BETAS], []
    arms = Reservoir.empirical(
        reward, cost, ARMS_KEY, instances=len(BETAS) * replicates, capacity=1
    )
    formulas = options.pick(("RCB",), ("RCB", "ω-UCB"), ("RCB", "ω-UCB"))
    note = f"; {reward.size} ads, ρ* = {best:.4g}, B = {budget:g}"
    for rule in options.pick(("K arms",), tuple(RULES), tuple(RULES)):
        lanes = play_points(points, _rules(formulas, rule), options, arms=arms)
        rows += [
            _row(f"ads: {formula}, {rule}, believed β = {beta:g}", x, note, best)
            for formula, by_point in zip(formulas, lanes, strict=True)
            for beta, x in zip(BETAS, by_point, strict=True)
        ]
    return rows


def best_ratio_alone(instances: int) -> tuple[float, float]:
    """Exact worst cases: always the best ratio against the optimum; optimum over (B + 1)ρ."""
    rng, gap, value = np.random.default_rng(17), np.zeros(instances), np.zeros(instances)
    for i in range(instances):
        budget = float(rng.integers(1, 20))
        # An arm costs its size, or nothing
        size, mean = (rng.integers(1, 5, 4) / 4, rng.uniform(0.05, 0.95, (2, 4)))
        laws = [
            independent_law([(1 - r, 0.0), (r, 1.0)], [(1 - c, 0.0), (c, float(s))])
            for (r, c), s in zip(mean.T, size, strict=True)
        ]
        ratio = mean[0] / (mean[1] * size)
        optimum, alone = (
            budgeted_optimum(arms, budget, last_pull="forfeits").value
            for arms in (laws, [laws[int(ratio.argmax())]])
        )
        gap[i], value[i] = (optimum - alone) / ratio.max(), optimum / ((budget + 1) * ratio.max())
    return float(gap.max()), float(value.max())


def claims(options: Options) -> list[Row]:
    """Statements on optimal play and on how long a budget lasts, exactly."""
    instances = options.pick(40, 200, 500)
    gap, value = best_ratio_alone(instances)
    scope = f"the worst of {instances} instances of four arms, B = 1 to 19"
    item = "claims: always the best ratio, distance from the optimum over ρ"
    rows = Summary([row(item, gap, published="≤ 2", holds=gap <= 2, note=scope)])
    rows.add("claims: optimum over (B + 1)ρ*", value, published="< 1", holds=value < 1, note=scope)
    for budget in (200, 400):
        chance = stats.binom.cdf(budget - 1, round(2 * budget / LEAST), LEAST)
        bound = budget / LEAST * np.exp(-budget * LEAST / 2)
        item = f"claims: P(rounds > 2B/λ) of the cheapest arm, B = {budget}"
        note = "exact, costs of 0 or 1 with mean λ = 0.1; of a dearer arm it is less"
        rows.add(item, chance, published=f"≤ {bound:.3g}", holds=bool(chance <= bound), note=note)
    return rows


# --- The proof of Theorem 1, step by step

PROVEN = (0.5, LEAST)  # λ at which its inequalities are tried; they get emptier as λ falls


def eta(lam: float) -> float:
    """η(λ) of Eq. (11)."""
    return lam**2 / (3 + 2 * lam)


def proof(options: Options) -> list[Row]:
    """Eqs. (8), (11), (14), (18), (19), (21) and step S2-1 of the proof of Theorem 1."""
    return [*_in_closed_form(options), *_below_its_ratio(options), *_on_given_arms(options)]


def _in_closed_form(options: Options) -> list[Row]:
    """Eq. (11) on random means; S2-1 and Eq. (21) by quadrature over the law of Δ."""
    rng, rows = np.random.default_rng(18), Summary()
    samples = options.pick(10**5, 10**6, 10**6)
    for lam in PROVEN:
        reward, cost = rng.random(samples), lam + (1 - lam) * rng.random(samples)
        ratio = reward / cost
        gap = (1 / lam - ratio) * rng.random(samples)  # ρ* is at most 1/λ
        radius = eta(lam) * gap
        inside = cost > radius
        worst = ((reward + radius) / (cost - radius) / (ratio + gap / 2))[inside].max()
        note = f"the worst of {samples:,} random means, λ = {lam:g}"
        item = f"proof: right side of (11) over its left side, λ = {lam:g}"
        rows.add(item, worst, published="≤ 1", holds=bool(worst <= 1 and inside.all()), note=note)
    # Δ = ρ* U^{1/β}, U on a grid that is even in its logarithm
    log_u = np.linspace(-80.0, 0.0, 400_001)

    def mean(values: np.ndarray) -> float:
        return float(np.trapezoid(values * np.exp(log_u), log_u))

    for beta in BETAS:
        gap = BEST * np.exp(log_u / beta)

        def regrets(budget: float, gap: np.ndarray = gap) -> float:
            tau = 2 * budget / LEAST
            return mean(np.minimum(10 * np.log(tau) / (eta(LEAST) ** 2 * gap), tau * gap))

        def rarely(k: float, gap: np.ndarray = gap, beta: float = beta) -> float:
            return mean(gap * np.exp((k - 1) * np.log1p(-((gap / (2 * BEST)) ** beta) / 2)))

        # No power: its local exponent comes down to that of ln² at no finite B, so with a constant
        if beta == 1:
            over = max(
                regrets(b) * eta(LEAST) ** 2 * BEST / (10 * np.log(2 * b / LEAST) ** 2)
                for b in 10.0 ** np.arange(2, 17)
            )
            item = "proof: S2-1, β = 1, over 10 ln²τ/(η²ρ*)"
            note = "the largest from B = 10² to 10¹⁶; our constant"
            rows.add(item, over, published="≤ 1", holds=bool(over <= 1), note=note)
        steps: list[Any] = [("(21)", rarely, 1e6, -1 - 1 / beta)]
        steps += [] if beta == 1 else [("S2-1", regrets, 1e14, max(0.0, (1 - beta) / 2))]
        for item, f, low, power in steps:
            slope = np.log(f(10 * low) / f(low)) / np.log(10)
            bound = np.log(np.log(10 * low) / np.log(low)) / np.log(10) + power
            note = f"by quadrature, from {low:g} to {10 * low:g}; yes: at most that of the bound with its logarithms"
            statement, item = f"≤ {bound:.3f}", f"proof: local exponent of {item}, β = {beta:g}"
            rows.add(
                item,
                slope,
                published=statement,
                holds=bool(slope <= bound),
                note=note,
                digits=".3f",
            )
    return rows


def _below_its_ratio(options: Options) -> list[Row]:
    """Eq. (18): how often an arm's index, at one 𝓔, is ever below its ratio."""
    pulls, lanes = options.pick((1_000, 2_000), (10_000, 4_000), (10_000, 4_000))
    rng, t = np.random.default_rng(19), pulls + 1
    rows, n = Summary(), np.arange(1, pulls + 1)
    for name, level in (
        ("ln t", np.log(t)),
        ("2 ln(4(log₂ t + 1))", 2 * np.log(4 * (np.log2(t) + 1))),
    ):
        worst = 0
        for reward, cost in ((0.5, 0.5), (0.9, 0.5), (0.1, 0.2), (0.5, 0.1)):
            misses = 0
            for _ in range(lanes // 200):
                paid, earned = (
                    np.cumsum(rng.random((200, pulls)) < x, axis=1) / n for x in (cost, reward)
                )
                radius = np.sqrt(level / (2 * n))
                top, bottom = np.minimum(earned + radius, 1), np.maximum(paid - radius, 0)
                misses += int((top * cost <= reward * bottom).any(axis=1).sum())
            worst = max(worst, misses)
        lower, upper = common.clopper_pearson(worst, lanes, 0.05 / 4)
        note = f"the worst of four Bernoulli arms, {lanes} runs of {pulls:,} pulls; 95 % for all: {lower:.2g}"
        note += f" to {upper:.2g}"
        item = f"proof: P(an index is ever below its ratio), 𝓔 = {name}"
        holds = common.between(lower, upper, 0.0, 0.5)
        rows.add(item, worst / lanes, published="≤ 1/2 (18)", holds=holds, note=note, digits=".2g")
    return rows


def _on_given_arms(options: Options) -> list[Row]:
    """Eqs. (8) and (19): RCB on twenty arms of a reservoir, for τ_B rounds and for the budget B."""
    instances, budget = options.pick((10, 200.0), (50, 2e3), (200, 1e4))
    arms, lam = 20, 0.5  # for smaller λ the bound (19) is above τ_B for every arm, and says nothing
    tau = 2 * budget / lam
    reservoir = Reservoir.ratio(
        ARMS_KEY, instances=instances, capacity=arms, beta=1.0, best_ratio=BEST, least_cost=lam,
        outcomes=bernoulli_outcome,
    )  # fmt: skip
    world = FiniteArms.bernoulli(*reservoir.first_arms(arms))
    reward, cost = world.values()
    gap = BEST - reward / cost
    keywords: dict[str, Any] = {"key": RUN_KEY, "marks": 1}
    lasts = jb.simulate(RCB(), world, jb.Horizon(int(tau)), **keywords).final["pulls"][0, :, 0]
    spent = jb.simulate(RCB(), world, jb.TotalBudget(budget, last_pull="forfeits"), **keywords)
    regrets = BEST * budget - spent.reward.values[0, :, 0, -1]
    # at Δ_k/2 from ρ* no arm may be: N counts those that are nearer
    nearer = (gap[:, None, :] < gap[:, :, None] / 2).sum(axis=2)
    bound = (2 * np.log(tau) + 5) / (eta(lam) * gap) ** 2 + tau * 2.0**-nearer
    scope = f"{arms} Bernoulli arms of each of {instances} reservoirs, β = 1, λ = {lam:g}, B = {budget:g}"
    worst = (lasts / bound).max()
    share = float((bound < tau).mean())
    right = (gap * lasts).sum(axis=1) + 2 / lam
    return [
        row("proof: pulls in τ_B rounds over the bound (19)", worst, published="≤ 1", holds=bool(worst <= 1),
            note=f"the worst arm; {scope}; for {share:.0%} of the arms the bound is below τ_B"),
        mean_row("proof: regret on given arms over the right side of (8)", regrets / right, published="≤ 1",
                 holds=is_above(-regrets / right, -1.0), note=f"{scope}; without its O(·)",
                 digits=".3f"),
    ]  # fmt: skip


EXPERIMENT = Experiment.of(
    "rcb",
    (regret, far, known, baselines, wrong_beta, multiplier, exploration, ads, claims, proof),
    not_in_quick=("far", "wrong_beta"),
    # a bound's exponent is one of large budgets; what is asked besides names the budget it was
    # asked at
    any_size=lambda row: row.published in ("", OURS) or row.made_by in ("claims", "proof"),
    needs={"ads": ADS_FILE},
)
