"""RCB study: baselines, a wrong β, the multiplier of K, the exploration sequence, a reservoir of real ads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.common.figures import figure, intervals, save
from experiments.common.looks import BLUE, GREEN, VERMILION, look
from experiments.common.rows import OURS, Row, is_above, mean_row
from experiments.common.running import Options
from experiments.rcb.play import ARMS_KEY, BETAS, FORMULAS, Lanes, Point, increasing, play, sampled
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.environments import Reservoir
from jaxbandits.policies import RCB, ArmIncreasing, LogExploration, LogLogExploration, SampledArms, arms_to_sample

RULES = {"K arms": "RCB-I", "increasing": "RCB-AIR"}


def _points(options: Options) -> list[Point]:
    """One for each β, all with one budget."""
    budget, replicates = options.pick((1e3, 40), (3160.0, 100), (3160.0, 200))
    return [Point(beta, budget, replicates) for beta in BETAS]


def _row(item: str, lanes: Lanes, note: str = "", best: float = 2.0) -> Row:
    share = f"R/(Bρ*) = {lanes.last.mean() / (best * lanes.budget[-1]):.3f}"
    return mean_row(item, lanes.last, note=share + note, digits=".4g")


def _paired(item: str, better: Lanes, worse: Lanes, note: str) -> Row:
    """Is the regret of ``better`` the smaller? Same worlds. A question of ours: the paper has no numbers."""
    gap = worse.last - better.last
    return mean_row(item, gap, OURS, holds=is_above(gap), note=note + "; paired", digits=".4g")


def _bars(axis: Any, x: Any, lanes: list[Lanes], **style: Any) -> None:
    intervals(axis, x, [one.last for one in lanes], **style)


def baselines(options: Options) -> list[Row]:
    """All formulas under both rules, Bernoulli and uniform outcomes."""
    points, rows = _points(options), []
    kinds = options.pick(("Bernoulli",), ("Bernoulli", "uniform"), ("Bernoulli", "uniform"))
    rules = options.pick(("K arms",), tuple(RULES), tuple(RULES))
    picture, axes = figure(len(kinds), 3, (12.5, 4.2 * len(kinds)))
    for line, kind in enumerate(kinds):
        found: dict[tuple[str, str], list[Lanes]] = {}
        skipped = ["ω*-UCB"] if kind == "Bernoulli" else []  # η̂ = 1: it is ω-UCB, to the bit
        skipped += ["UCB-V (ratio)"] if options.quick else []
        for rule in rules:
            # UCB-V on rewards samples five times as many arms, which all that play beside it would pay for.
            formulas = [f for f in FORMULAS if f not in skipped and f != "UCB-V (reward)"]
            for together in (formulas, ["UCB-V (reward)"]):
                played = play("baselines", points, _rules(together, rule), options, outcomes=kind)
                found |= {(formula, rule): lanes for formula, lanes in zip(together, played, strict=True)}
        for i, beta in enumerate(BETAS):
            where = f"β = {beta:g}, {kind}"
            for (formula, rule), lanes in found.items():
                rows.append(_row(f"baselines: {formula}, {rule}, {where}", lanes[i]))
                colour, shift = look(formula)["color"], -0.12 if rule == "K arms" else 0.12
                face = colour if rule == "K arms" else "white"
                x = list(FORMULAS).index(formula) + shift
                _bars(axes[3 * line + i], [x], [lanes[i]], marker="o", color=colour, mfc=face, ls="none")
            for rule in rules:
                rcb, omega, reward = (found[f, rule][i] for f in ("RCB", "ω-UCB", "UCB-V (reward)"))
                rows.append(_paired(f"baselines: RCB − ω-UCB, {rule}, {where}", omega, rcb, "yes: ω is better"))
                item, note = f"baselines: UCB-V (reward) − RCB, {rule}, {where}", "costs ignored against costs learnt"
                rows.append(_paired(item, rcb, reward, note))
            axes[3 * line + i].set(title=f"β = {beta:g}, {kind} outcomes", ylabel="regret", ylim=(0, None))
            axes[3 * line + i].set_xlim(-0.5, len(FORMULAS) - 0.5)
            axes[3 * line + i].set_xticks(range(len(FORMULAS)), [f.replace(" (", "\n(") for f in FORMULAS], fontsize=8)
    axes[0].plot([], [], "ko", label="K arms")
    axes[0].plot([], [], "o", mec="k", mfc="white", label="arm-increasing rule")
    budget = points[0].budget
    title = f"Regret at B = {budget:g} (Bρ* = {2 * budget:g}), mean and 95 % interval"
    save(picture, options.out / "baselines.png", title, legend=axes[:1])
    return rows


def _rules(formulas: Sequence[str], rule: str) -> Any:
    def policies(beta: np.ndarray, budget: np.ndarray) -> list[Any]:
        if rule == "K arms":
            return [sampled(formula, budget, beta) for formula in formulas]
        return [increasing(formula, beta) for formula in formulas]

    return policies


def wrong_beta(options: Options) -> list[Row]:
    """Believed against true β: both rules of RCB."""
    points, rows, beliefs = _points(options), [], np.array(BETAS)[:, None]
    picture, axes = figure(1, 2, (10, 4.2))

    def know(beta: np.ndarray, budget: np.ndarray) -> SampledArms:
        return sampled("RCB", budget, beliefs)

    def grow(beta: np.ndarray, budget: np.ndarray) -> ArmIncreasing:
        return increasing("RCB", np.broadcast_to(beliefs, (len(BETAS), budget.size)))

    for axis, name, policy in zip(axes, RULES.values(), (know, grow), strict=True):
        lanes = play("wrong β", points, policy, options)
        for i, (beta, colour, mark) in enumerate(zip(BETAS, (BLUE, VERMILION, GREEN), "osD", strict=True)):
            column = [of_belief[i] for of_belief in lanes]
            _bars(axis, BETAS, column, label=f"true β = {beta:g}", color=colour, marker=mark)
            for believed, x in zip(BETAS, column, strict=True):
                if believed == beta:
                    rows.append(_row(f"wrong_beta: {name}, true β = {beta:g}, believed {believed:g}", x))
                    continue
                item = f"wrong_beta: {name}, true β = {beta:g}: believing {believed:g} costs"
                note = f"R = {x.last.mean():.4g} instead of {column[i].last.mean():.4g}"
                rows.append(_paired(item, column[i], x, f"{note}; yes: it costs"))
        axis.set(xscale="log", xlabel="believed β", ylabel="regret", title=name, ylim=(0, None))
        axis.set_xticks(BETAS, [f"{b:g}" for b in BETAS])
        axis.minorticks_off()
    title = f"Sensitivity to a wrong β, B = {points[0].budget:g}, 95 % intervals"
    save(picture, options.out / "wrong_beta.png", title, legend=axes[:1])
    return rows


def multiplier(options: Options) -> list[Row]:
    """K = max(2, ⌈m·B^e⌉) for several m."""
    points, rows = _points(options), []
    factors = options.pick(np.array([1 / 16, 1 / 4, 1.0]), 2.0 ** np.arange(-6, 2), 2.0 ** np.arange(-6, 2))
    picture, axes = figure(1, 3, (12.5, 4.2))
    for formula, name in (("RCB", "RCB-I"), ("ω-UCB", "ω-UCB, K arms")):

        def policy(beta: np.ndarray, budget: np.ndarray, formula: str = formula) -> SampledArms:
            return sampled(formula, budget, beta, factors[:, None])

        lanes = play("multiplier", points, policy, options)
        for i, (axis, beta) in enumerate(zip(axes, BETAS, strict=True)):
            column = [of_factor[i] for of_factor in lanes]
            _bars(axis, factors, column, label=name, **look(name))
            for m, x in zip(factors, column, strict=True):
                k = arms_to_sample(points[i].budget, beta, m)
                rows.append(_row(f"multiplier: {name}, β = {beta:g}, m = {m:g}", x, f"; K = {k}"))
            best = int(np.argmin([x.last.mean() for x in column]))
            item = f"multiplier: {name}, β = {beta:g}: the best m beats m = 1 by"
            at_one = column[list(factors).index(1.0)]
            rows.append(_paired(item, column[best], at_one, f"best m = {factors[best]:g} of those tried"))
            axis.set(xlabel="multiplier m of K", ylabel="regret", title=f"β = {beta:g}", ylim=(0, None))
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
        names, sequences = [*names, "2 ln(4(log₂ t + 1))"], [*sequences, LogLogExploration()]
    for rule, name in RULES.items():

        def policies(true: np.ndarray, budget: np.ndarray, rule: str = rule) -> list[Any]:
            if rule == "K arms":
                return [SampledArms(RCB(sequence), arms_to_sample(budget, true)) for sequence in sequences]
            return [ArmIncreasing(RCB(sequence), true) for sequence in sequences]

        found = dict(zip(names, play("exploration", points, policies, options), strict=True))
        for i, beta in enumerate(BETAS):
            for sequence, lanes in found.items():
                rows.append(_row(f"exploration: {name}, β = {beta:g}, 𝓔 = {sequence}", lanes[i]))
                if sequence != "ln t":
                    note = "smaller than the theory allows" if "/" in sequence else "the lower end of the theory"
                    item = f"exploration: {name}, β = {beta:g}: 𝓔 = {sequence} beats ln t by"
                    rows.append(_paired(item, lanes[i], found["ln t"][i], note))
    return rows


def ads(options: Options) -> list[Row]:
    """Arms drawn from all Facebook ads together: a law that has its best arm (no β is true)."""
    path = options.data / "facebook" / "data.csv"
    if not path.exists():
        print(f"rcb ads: skipped, no {path}", flush=True)
        return []
    table = read_arms(path).instances
    reward, cost = (np.concatenate([getattr(x, f"mean_{what}") for x in table]) for what in ("reward", "cost"))
    reward, cost = 0.99 * reward / reward.max(), np.maximum(0.99 * cost / cost.max(), 0.01)
    best = float((reward / cost).max())
    budget, replicates = options.pick((100.0, 20), (300.0, 50), (1e3, 100))
    points, rows = [Point(beta, budget, replicates) for beta in BETAS], []
    arms = Reservoir.empirical(reward, cost, ARMS_KEY, instances=len(BETAS) * replicates, capacity=1)
    formulas = options.pick(("RCB",), ("RCB", "ω-UCB"), ("RCB", "ω-UCB"))
    note = f"; {reward.size} ads, ρ* = {best:.4g}, B = {budget:g}"
    for rule in options.pick(("K arms",), tuple(RULES), tuple(RULES)):
        lanes = play("ads", points, _rules(formulas, rule), options, arms=arms)
        rows += [
            _row(f"ads: {formula}, {rule}, believed β = {beta:g}", x, note, best)
            for formula, by_point in zip(formulas, lanes, strict=True)
            for beta, x in zip(BETAS, by_point, strict=True)
        ]
    return rows
