"""Differentiable analysis: estimators held against exact gradients, tuning, worst instances, maps of
sensitivity.

    python -m experiments gradients [--quick|--full] [--only ITEM] [--out DIR]

Items: monte_carlo, unbiased, errors, bias, tuned, worst, maps. No published work differentiates
budgeted regret: ``published`` holds digits computed apart from this project, or what the theory
says.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

import jaxbandits as jb
from experiments import worst_instances
from experiments.common import Experiment, Options, Row, Summary, above_zero, beyond, mean_se, row
from experiments.figures import BLUE, GREEN, GREY, ORANGE, PINK, SKY, VERMILION, figure, save
from jaxbandits import oracles
from jaxbandits.environments import FiniteArms, random_bernoulli
from jaxbandits.gradients import (
    GradientEstimate,
    exact,
    policy_score,
    score_function,
    smoothed,
    straight_through,
)
from jaxbandits.gradients.estimates import certain
from jaxbandits.policies import MUCB, UCB1, BudgetedThompson, OmegaUCB, SoftElim, SoftIndex
from jaxbandits.tuning import random_problem

KEY = jax.random.key(20240611)
MEANS = ("mean_reward", "mean_cost")
INSTANCES = 24
SIGMA = 0.5
SLOTS = {"slots": 256}  # one program for any number of runs

OMEGA = OmegaUCB(rho=0.25)
ELIM = SoftElim(theta=0.5)
SOFT = SoftIndex(OMEGA, temperature=0.5)
CONSTRAINTS: dict[str, jb.Constraint] = {
    "horizon 12": jb.Horizon(12),
    "budget 3, last pull counts": jb.TotalBudget(3.0, last_pull="counts"),
    "budget 2.5, last pull forfeits": jb.TotalBudget(2.5, last_pull="forfeits"),
}
POLICIES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "ω-UCB": (OMEGA, ()),
    "SoftElim": (ELIM, ("theta",)),
    "soft ω-UCB": (SOFT, ("temperature", "rho")),
}


@functools.cache
def instances() -> FiniteArms:
    """Two Bernoulli arms; costs of at least 0.6: a budget of 3 seldom needs 24 rounds."""
    rng = np.random.default_rng(24)
    return FiniteArms.bernoulli(
        rng.uniform(0.15, 0.85, (INSTANCES, 2)), rng.uniform(0.6, 0.95, (INSTANCES, 2))
    )


@functools.cache
def truth(policy: str, constraint: str) -> GradientEstimate:
    """The exact value and gradient of all instances."""
    learner, wrt = POLICIES[policy]
    return exact.estimate(learner, instances(), CONSTRAINTS[constraint], wrt=MEANS + wrt)


@functools.cache
def smoothed_truth(constraint: str) -> GradientEstimate:
    """The exact smoothed gradient of ω-UCB by ρ, steps located to 4 % of ε's deviation."""
    limit: Any = CONSTRAINTS[constraint]
    clock: dict[str, Any] = {"rounds": 12}
    if isinstance(limit, jb.TotalBudget):
        clock = {"rounds": 24, "budget": limit.budget, "last_pull": limit.last_pull}
    return exact_smoothed(OMEGA, instances(), clock, SIGMA, width=4e-2)


def exact_smoothed(
    omega: OmegaUCB, arms: FiniteArms, clock: dict[str, Any], sigma: float, width: float
) -> GradientEstimate:
    """The exact gradient by ρ of the smoothed regret of ω-UCB, which ``smoothed`` estimates without
    bias. The regret is a step function of ε in ρ e^{σε}.

    Its steps ε_j are found by bisection of −5 … 5, to ``width``. Then R_σ = Σ_j R_j (Φ(ε_{j+1}) −
    Φ(ε_j)) and ∂R_σ/∂ ln ρ = Σ_j (R_j − R_{j−1}) φ(ε_j)/σ.
    """
    reward, cost = arms.values()
    # Regret [I] by a digest of all decisions of the policy: values of ρ that decide alike share one
    values: dict[bytes, np.ndarray] = {}

    @functools.cache
    def decisions(epsilon: float) -> bytes:
        perturbed = dataclasses.replace(omega, rho=float(omega.rho) * math.exp(sigma * epsilon))
        ends = oracles.play_out(exact.choice_of(perturbed), reward.shape[1], **clock, costs=True)
        digest = hashlib.sha256(
            b"".join(x.tobytes() for x in (*ends.counts, ends.last, ends.weight))
        ).digest()
        if digest not in values:
            values[digest] = oracles.evaluate(ends, reward, cost).regret
        return digest

    intervals = [(float(a), float(b)) for a, b in itertools.pairwise(np.linspace(-5, 5, 65))]
    value, slope = (x * values[decisions(-5.0)] for x in (1.0, 0.0))
    while intervals:
        a, b = intervals.pop()
        if decisions(a) != decisions(b):
            if b - a >= width:
                intervals += [(a, (a + b) / 2), ((a + b) / 2, b)]
                continue
            jump = values[decisions(b)] - values[decisions(a)]
            value += jump * stats.norm.sf((a + b) / 2)
            slope += jump * stats.norm.pdf((a + b) / 2) / sigma
    return certain(value[None], {"rho": slope[None] / float(omega.rho)})


RUNS = (1000, 4000, 40_000)  # on every instance, by size


SUSPECT = (
    3.5  # beyond it the normal law is not trusted for the means of a few ten thousand skew terms
)
AGAIN = jax.random.key(20261122)


def unbiased(options: Options) -> list[Row]:
    """All unbiased estimators in all cases; beyond 3.5 errors they play again with another key."""
    rows, all_z, repeated = [], [], []
    for name, play in _plays(options).items():
        z = play(KEY)
        replayed = play(AGAIN)[np.abs(z) > SUSPECT] if (np.abs(z) > SUSPECT).any() else np.empty(0)
        rows.append(agreement(f"unbiased: {name}", z, replayed))
        all_z.append(z)
        repeated.append(replayed)
    whole = agreement(
        "unbiased: largest |z| of all", np.concatenate(all_z), np.concatenate(repeated)
    )
    size = f"{options.pick(*RUNS)} runs on each of {INSTANCES} instances"
    return [*rows, whole._replace(note=f"{whole.note}; {size}")]


def _plays(options: Options) -> dict[str, Callable[[Any], np.ndarray]]:
    """By name, z-values of all comparisons as a function of the key."""
    plays: dict[str, Callable[[Any], np.ndarray]] = {}
    sizes: dict[str, Any] = {"replicates": options.pick(*RUNS), **SLOTS}
    for constraint in CONSTRAINTS:
        for policy, (_, wrt) in POLICIES.items():
            if options.quick and (policy == "soft ω-UCB" or "forfeits" in constraint):
                continue
            kinds = {"score_function": (score_function, MEANS), "policy_score": (policy_score, wrt)}
            for name, (estimator, names) in kinds.items():
                if names:
                    play = functools.partial(_z_values, estimator, policy, constraint, names, sizes)
                    plays[f"{name}: {policy}, {constraint}"] = play
        if not options.quick:
            smoothing = {**sizes, "directions": options.pick(*RUNS), "sigma": SIGMA}
            play = functools.partial(_z_values, smoothed, "ω-UCB", constraint, ("rho",), smoothing)
            plays[f"smoothed: ω-UCB, {constraint}"] = play
    return plays


def _z_values(
    estimator: Any,
    policy: str,
    constraint: str,
    wrt: tuple[str, ...],
    sizes: dict[str, Any],
    key: Any,
) -> np.ndarray:
    """(estimate − exact) / standard error, of all gradients and of the value."""
    learner = POLICIES[policy][0]
    estimate = estimator.estimate(
        learner, instances(), CONSTRAINTS[constraint], wrt=wrt, key=key, **sizes
    )
    target = smoothed_truth(constraint) if estimator is smoothed else truth(policy, constraint)
    z_gradients = [
        (estimate.gradient[name] - target.gradient[name]) / estimate.standard_error[name]
        for name in wrt
    ]
    return np.concatenate(
        [
            x.ravel()
            for x in [
                *z_gradients,
                (estimate.value - target.value) / estimate.standard_error["value"],
            ]
        ]
    )


def agreement(item: str, z: np.ndarray, replayed: np.ndarray) -> Row:
    """yes: no comparison is beyond 3.5 errors, or those that are pass a Bonferroni test at 1 % when
    played with another key.

    So no verdict leans on the normal law's tail beyond 3.5, which a skew sum reaches more often.
    """
    largest = np.abs(z).max()
    note = f"largest of {z.size}; root mean square {np.sqrt((z**2).mean()):.2f}"
    statement, holds = f"|z| ≤ {SUSPECT}, or not again", True
    if replayed.size:
        limit = float(stats.norm.isf(0.005 / replayed.size))
        holds = bool((np.abs(replayed) < limit).all())
        note += f"; beyond {SUSPECT}: {replayed.size}, with another key " + ", ".join(
            f"{x:.2f}" for x in replayed
        )
        note += f" (allowed {limit:.2f})"
    return row(item, largest, published=statement, holds=holds, note=note, digits=".2f")


class ErrorCurve(NamedTuple):
    """An estimator whose error is drawn over the number of runs."""

    estimator: Any
    policy: str
    wrt: str
    extra: dict[str, Any]
    colour: str
    marker: str

    def estimate(self, constraint: str, size: int) -> GradientEstimate:
        """From ``size`` runs on every instance."""
        keywords = self.extra | ({"directions": size} if self.estimator is smoothed else {}) | SLOTS
        keywords |= {"wrt": self.wrt, "key": KEY, "replicates": size}
        return self.estimator.estimate(
            POLICIES[self.policy][0], instances(), CONSTRAINTS[constraint], **keywords
        )


CURVES = {
    "score_function, leave one out": ErrorCurve(
        score_function, "ω-UCB", MEANS[0], {"baseline": "leave_one_out"}, BLUE, "o"
    ),
    "score_function, no baseline": ErrorCurve(
        score_function, "ω-UCB", MEANS[0], {"baseline": "none"}, SKY, "s"
    ),
    "policy_score, self-play": ErrorCurve(
        policy_score, "SoftElim", "theta", {"baseline": "self_play"}, VERMILION, "^"
    ),
    "policy_score, no baseline": ErrorCurve(
        policy_score, "SoftElim", "theta", {"baseline": "none"}, ORANGE, "v"
    ),
    "smoothed": ErrorCurve(smoothed, "ω-UCB", "rho", {"sigma": SIGMA}, GREEN, "D"),
    "straight_through": ErrorCurve(straight_through, "SoftElim", "theta", {}, PINK, "X"),
}


def errors(options: Options) -> list[Row]:
    """Root mean square error against the number of runs, beside the exact value."""
    sizes = np.array(options.pick([64, 1024], [64, 256, 1024, 4096], [64, 256, 1024, 4096, 16384]))
    constraint, rows = "horizon 12", Summary()
    picture, axes = figure(1, 2, (11, 4.6))
    for name, curve in CURVES.items():
        exact_estimate = (
            smoothed_truth(constraint)
            if curve.estimator is smoothed
            else truth(curve.policy, constraint)
        )
        target = exact_estimate.gradient[curve.wrt]
        estimates = [curve.estimate(constraint, int(size)) for size in sizes]
        rms = [
            np.sqrt(((estimate.gradient[curve.wrt] - target) ** 2).mean() / (target**2).mean())
            for estimate in estimates
        ]
        biased = curve.estimator is straight_through
        style = {
            "color": curve.colour,
            "marker": curve.marker,
            "linestyle": "--" if biased else "-",
            "label": name,
        }
        axes[0].loglog(sizes, rms, **style)
        item = f"errors: {name}: slope of log error over log runs"
        slope = np.polyfit(np.log(sizes), np.log(rms), 1)[0]
        note = f"error at {sizes[-1]} runs: {rms[-1]:.2%} of the gradient's size"
        if biased:
            rows.add(item, slope, note=f"{note}; biased", digits=".2f")
        else:
            close, note = abs(slope + 0.5) < 0.15, f"{note}; yes: within 0.15"
            rows.add(item, slope, published="−0.5", holds=close, note=note, digits=".2f")
        if name in ("policy_score, self-play", "straight_through"):
            mean = np.array([x.gradient[curve.wrt].ravel()[0] for x in estimates])
            se = np.array([x.standard_error[curve.wrt].ravel()[0] for x in estimates])
            axes[1].errorbar(sizes * (1.06 if biased else 1), mean, 1.96 * se, capsize=3, **style)
    title = f"{INSTANCES} random instances, horizon 12"
    axes[0].set(xlabel="runs on every instance", ylabel="rms error / rms gradient", title=title)
    level = truth("SoftElim", constraint).gradient["theta"][0, 0]
    axes[1].axhline(level, color="#000000", linestyle=":", label="exact")
    axes[1].set(
        xscale="log",
        xlabel="runs",
        ylabel="d regret / d θ",
        title="SoftElim, one instance (95 % intervals)",
    )
    save(picture, options.out / "errors.png", legend=axes, columns=4)
    return rows


def bias(options: Options) -> list[Row]:
    """Bias of straight-through by temperature, of smoothing by σ, as shares of the gradient."""
    rows = []
    sampling: dict[str, Any] = {"key": KEY, "replicates": options.pick(*RUNS), **SLOTS}
    for constraint in list(CONSTRAINTS)[: 1 if options.quick else 2]:
        target = truth("SoftElim", constraint).gradient["theta"]
        for relax in (0.3, 1.0, 3.0):
            world, accountant = instances(), CONSTRAINTS[constraint]
            estimate = straight_through.estimate(
                ELIM, world, accountant, wrt="theta", relax=relax, **sampling
            )
            gap, se = estimate.gradient["theta"] - target, estimate.standard_error["theta"]
            rows.append(
                _bias_row(
                    f"bias: straight_through, SoftElim, {constraint}, relax = {relax:g}",
                    gap,
                    se,
                    target,
                )
            )
        for sigma in (0.1, 0.3, 1.0):
            gap = _smoothed_gradient(constraint, sigma) - target
            rows.append(
                _bias_row(
                    f"bias: smoothing, SoftElim, {constraint}, σ = {sigma:g}", gap, 0 * gap, target
                )
            )
    return rows


def _smoothed_gradient(constraint: str, sigma: float) -> np.ndarray:
    """E[R′(θ e^{σε}) e^{σε}], exactly but for a 15-point Gauss–Hermite rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    total = np.zeros((1, INSTANCES))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        factor = float(np.exp(sigma * node))
        perturbed = dataclasses.replace(ELIM, theta=ELIM.theta * factor)
        estimate = exact.estimate(perturbed, instances(), CONSTRAINTS[constraint], wrt="theta")
        total += weight * factor * estimate.gradient["theta"]
    return total


def _bias_row(item: str, gap: np.ndarray, se: np.ndarray, target: np.ndarray) -> Row:
    scale = np.sqrt((target**2).mean())
    right_sign = (np.sign(target + gap) == np.sign(target)).mean()
    level = np.sqrt(max(float((gap**2 - se**2).mean()), 0.0)) / scale
    note = f"rms bias / rms gradient over {gap.size} instances, noise removed"
    note += f"; sign right in {right_sign:.0%}; mean {gap.mean():+.3g}"
    return row(item, level, f"{np.sqrt((se**2).mean()) / scale:.3f}", note=note, digits=".3f")


# By θ: the regret of 200 rounds and its standard error, computed apart from this project
RUNS_200 = {
    0.25: (8.63, 0.07),
    0.5: (4.73, 0.04),
    0.75: (5.53, 0.02),
    1.0: (7.24, 0.02),
    2.0: (12.86, 0.02),
}


def monte_carlo(options: Options) -> list[Row]:
    """SoftElim for 200 rounds on (0.6, 0.4) and (0.4, 0.6), simulated; UCB1 beside it."""
    runs = options.pick(500, 4000, 20_000)
    arms = FiniteArms.bernoulli([[0.6, 0.4], [0.4, 0.6]], np.ones((2, 2)))
    rows = Summary()
    for policy, published in (
        (
            SoftElim(theta=np.array(list(RUNS_200))),
            {f"SoftElim θ = {theta:g}": x for theta, x in RUNS_200.items()},
        ),
        (UCB1(), {"UCB1": (9.98, 0.02)}),
    ):
        result = jb.simulate(policy, arms, jb.Horizon(200), key=KEY, replicates=runs, marks=1)
        for i, (name, (published_mean, error)) in enumerate(published.items()):
            mean, se = mean_se(result.regret.values[i, ..., -1].ravel())
            z = abs(mean - published_mean) / np.hypot(se, error)
            item = f"monte_carlo: {name}, n = 200, regret"
            note = f"{2 * runs} runs; |z| = {z:.1f}, yes: below 3"
            reference = f"{published_mean} ± {error}"
            rows.add(
                item, mean, f"{se:.3f}", published=reference, holds=z < 3, note=note, digits=".3f"
            )
    return rows


def maps(options: Options) -> list[Row]:
    """Exact regret and its sensitivity over the means of two arms."""
    points = options.pick(13, 25, 41)
    low, high = np.linspace(0.06, 0.94, points), np.linspace(0.5, 0.95, points)
    horizon = jb.Horizon(options.pick(20, 30, 50))
    # all pairs of values, ``[pair, 2]``, the first running fastest
    pair, costs = (
        np.stack([x.ravel() for x in np.meshgrid(axis, axis)], axis=1) for axis in (low, high)
    )
    rewards = FiniteArms.bernoulli(pair, np.full_like(pair, 0.5))
    first = exact.estimate(SoftElim(theta=0.5), rewards, horizon, wrt="mean_reward")
    spending = FiniteArms.bernoulli(np.broadcast_to([0.6, 0.4], pair.shape), costs)
    second = exact.estimate(
        OMEGA, spending, jb.TotalBudget(3.0, last_pull="counts"), wrt="mean_cost"
    )
    regret, by_reward, by_cost = (
        x.reshape(points, points)
        for x in (
            first.value[0],
            first.gradient["mean_reward"][0, :, 0],
            second.gradient["mean_cost"][0, :, 0],
        )
    )
    picture, axes = figure(2, 2, (10, 8.6))
    soft, ours = f"SoftElim θ = ½, {horizon.rounds} rounds", "ω-UCB ρ = ¼, B = 3, μ^r = (0.6, 0.4)"
    _map(picture, axes[0], low, regret, f"{soft}: regret", ("μ₁", "μ₂"))
    _map(picture, axes[1], low, by_reward, f"{soft}: ∂ regret / ∂ μ₁", ("μ₁", "μ₂"), signed=True)
    _map(
        picture,
        axes[2],
        high,
        second.value[0].reshape(points, points),
        f"{ours}: regret",
        ("μ^c₁", "μ^c₂"),
    )
    _map(
        picture, axes[3], high, by_cost, f"{ours}: ∂ regret / ∂ μ^c₁", ("μ^c₁", "μ^c₂"), signed=True
    )
    save(picture, options.out / "maps.png")
    steepest, gap = np.abs(by_reward).max(), _gap(low, regret, by_reward)
    return [
        row("maps: largest difference of ∂R/∂μ₁ and slopes of R on the grid", gap, published="small", digits=".3g",
            holds=gap < 0.05, note="share of the largest gradient, away from the kink; yes: below 5 %"),
        row("maps: largest |∂R/∂μ₁| of SoftElim", steepest, note="beside the kink μ₁ = μ₂"),
        row("maps: largest |∂R/∂μ^c₁| of ω-UCB", np.abs(by_cost).max(), note="beside the kink of equal ratios"),
    ]  # fmt: skip


def _map(
    picture: Any, axis: Any, grid: np.ndarray, values: np.ndarray, title: str, labels: tuple[str, str], *,
    signed: bool = False,
) -> None:  # fmt: skip
    limit = np.abs(values).max()
    shades = {"cmap": "PuOr", "vmin": -limit, "vmax": limit} if signed else {"cmap": "viridis"}
    mesh = axis.pcolormesh(grid, grid, values, shading="nearest", rasterized=True, **shades)
    axis.grid(False)
    axis.set(xlabel=labels[0], ylabel=labels[1], title=title, aspect="equal")
    picture.colorbar(mesh, ax=axis, shrink=0.85)


def _gap(grid: np.ndarray, regret: np.ndarray, slope: np.ndarray) -> float:
    """Largest difference of ∂/∂μ₁ and slopes between neighbours, away from the kink μ₁ = μ₂."""
    step = grid[1] - grid[0]
    across = np.diff(regret, axis=1) / step
    x, y = np.meshgrid(grid, grid)
    smooth = np.abs(x[:, 1:] - y[:, 1:]) > 3 * step
    return np.abs(across - (slope[:, 1:] + slope[:, :-1]) / 2)[smooth].max() / np.abs(slope).max()


GRID = 2.0 ** np.linspace(-6, 1.5, 16)  # Figure 4's 2⁻⁶ … 2¹ at twice the density
# Seeds first used for this row
BLIND = (20_261_101, 20_261_102, 20_261_103, 20_261_104, 20_261_105, 20_261_106)
MARGIN = 0.1  # of the tuned regret: "not worse" means by no more than this
FAMILIES = {"S-Br-50": ("bernoulli", "1/4"), "S-Bt-50": ("beta", "1/8")}


def tuned(options: Options) -> list[Row]:
    """ρ of ω-UCB by gradient, beside the best of a 16-value grid, with several fresh keys."""
    rows: list[Row] = []
    picture, axes = figure(1, 2, (11, 4.4))
    arms, budget = (50, 1.5e5) if not options.quick else (10, 400.0)
    steps, per_step, on_grid, fresh = options.pick(
        (6, 16, 16, 16), (8, 20, 60, 200), (8, 20, 100, 400)
    )
    sizes = {"steps": steps, "instances": per_step, "grid_instances": on_grid, "fresh": fresh}
    sizes |= {"slots": 64} if options.quick else {}
    for axis, (name, (family, best)) in zip(axes, FAMILIES.items(), strict=True):
        if options.quick and family != "beta":
            axis.set_axis_off()
            continue
        problem, tunings = random_problem(family, arms, budget), []
        for key in BLIND[: options.pick(1, 2, 6)]:
            tuning = jb.tune(
                OmegaUCB(rho=1.0), problem, wrt="rho", key=jax.random.key(key), grid=GRID, **sizes
            )
            print("\n".join(f"  {name}, key {key}: {line}" for line in tuning.lines()), flush=True)
            tunings.append(tuning)
        label = name if not options.quick else f"{name} (K = {arms}, B = {budget:g}·min c)"
        rows += _tuning_rows(f"tuned: {label}", tunings, best, fresh)
        _draw_tuned(axis, tunings[0], on_grid, fresh)
        axis.set(xscale="log", xlabel="ρ", ylabel="mean regret at full budget", title=label)
    save(picture, options.out / "tuned.png", legend=axes[1:], columns=3)
    return rows


def _tuning_rows(item: str, tunings: list[Any], best: str, fresh: int) -> list[Row]:
    rhos = ", ".join(f"{tuning.tuned['rho']:.3g}" for tuning in tunings)
    on_grid = (
        "best grid value "
        + ", ".join(f"{tuning.best['rho']:.3g}" for tuning in tunings)
        + "; start 1"
    )
    over_best = np.array([tuning.over_best.value / tuning.fresh_regrets[0] for tuning in tunings])
    over_start = np.array([tuning.over_start.value / tuning.fresh_regrets[0] for tuning in tunings])
    share = max(tuning.rounds[0] / tuning.rounds[1] for tuning in tunings)
    seconds = max(tuning.seconds[0] for tuning in tunings)
    keys = f"{len(tunings)} keys, {fresh} fresh instances each"
    return [
        row(f"{item}: ρ", rhos, published=f"{best} is good (Figure 4)", note=f"{on_grid}; {keys}"),
        gain(f"{item}: (regret of the best grid value − tuned) / tuned", over_best, -MARGIN, keys),
        gain(f"{item}: (regret of the start − tuned) / tuned", over_start, 0.0, keys),
        row(f"{item}: rounds of the tuning / of the grid", share, published="≤ 0.25", holds=share <= 0.25,
            note="the largest of all keys", digits=".3f"),
        row(f"{item}: seconds of the tuning", seconds, published="≤ 300", holds=seconds <= 300,
            note="the largest of all keys, compile included", digits=".0f"),
    ]  # fmt: skip


def gain(item: str, gains: np.ndarray, level: float, note: str) -> Row:
    """Is the mean gain above ``level``? One gain for each key; t-interval over the keys, at 95 %."""
    if gains.size < 2:
        return row(
            item, gains.mean(), published=f"> {level:g}", note=f"{note}; one key shows nothing"
        )
    mean, se = mean_se(gains)
    half = float(stats.t.isf(0.025, gains.size - 1) * se)
    low, high = float(mean) - half, float(mean) + half
    listing = ", ".join(f"{x:.3f}" for x in gains)
    note = f"{note}: {listing}; 95 % interval {low:.3f} to {high:.3f}"
    return row(
        item,
        mean,
        se,
        published=f"> {level:g}",
        holds=beyond(low, high, level),
        note=note,
        digits=".3f",
    )


def _draw_tuned(axis: Any, tuning: Any, on_grid: int, fresh: int) -> None:
    style = {"color": GREY, "marker": "s", "capsize": 2, "label": f"grid, {on_grid} instances"}
    axis.errorbar(tuning.grid[:, 0], tuning.grid_regrets, 1.96 * tuning.grid_errors, **style)
    mean, low, high = tuning.regret.value, tuning.regret.low, tuning.regret.high
    style = {
        "color": VERMILION,
        "marker": "D",
        "capsize": 4,
        "label": f"tuned, {fresh} fresh instances",
    }
    axis.errorbar(
        [float(tuning.values["rho"])], [mean], [[mean - low], [high - mean]], zorder=4, **style
    )
    for i, rho in enumerate(tuning.path[:, 0]):
        label = "path (darker: later)" if i == len(tuning.path) - 1 else None
        axis.axvline(
            rho, color=BLUE, alpha=0.15 + 0.6 * i / len(tuning.path), linewidth=1, label=label
        )


def worst(options: Options) -> list[Row]:
    """Worst instances of ω-UCB, BTS and m-UCB, each simulated again, beside random instances."""
    arms, budget = options.pick((3, 15.0), (3, 50.0), (5, 100.0))
    steps, runs, check = options.pick((15, 100, 1000), (40, 256, 4000), (80, 512, 20_000))
    constraint = jb.TotalBudget(budget, last_pull="counts")
    sizes = {
        "arms": arms,
        "restarts": 6,
        "steps": steps,
        "replicates": runs,
        "check": check,
        "slots": 128,
    }
    rivals: dict[str, Any] = {"ω-UCB": OMEGA, "BTS": BudgetedThompson(), "m-UCB": MUCB()}
    random = random_bernoulli(KEY, 200, arms)
    clipped = FiniteArms.bernoulli(*(np.clip(x, 0.05, 0.95) for x in random.values()))
    rows = Summary()
    picture, axes = figure(1, 3, (13, 4.2))
    for axis, (name, policy) in zip(axes, rivals.items(), strict=True):
        search = worst_instances.search(policy, constraint, key=KEY, **sizes)
        usual = search.start
        if not options.quick:
            at_random = jb.simulate(policy, clipped, constraint, key=KEY, replicates=50, marks=1)
            usual = at_random.regret.values[0, ..., -1].mean(axis=1)
        rows += _worst_rows(
            f"worst: {name}, K = {arms}, B = {budget:g}", f"worst: {name}", search, usual, check
        )
        axis.plot(search.path, color=BLUE, alpha=0.5, linewidth=1)
        axis.axhline(
            search.objective[0], color=VERMILION, linestyle="--", label="worst, simulated again"
        )
        axis.axhline(usual.max(), color=GREEN, linestyle=":", label="largest of random instances")
        axis.axhline(usual.mean(), color=GREY, linestyle="-.", label="mean of random instances")
        axis.set(
            xlabel="step of the ascent",
            ylabel="regret",
            title=f"{name}, {arms} arms, B = {budget:g}",
        )
    save(picture, options.out / "worst.png", legend=axes[:1], columns=3)
    for learner, rival in () if options.quick else (("ω-UCB", "BTS"), ("m-UCB", "ω-UCB")):
        search = worst_instances.search(
            rivals[learner], constraint, key=KEY, against=rivals[rival], **sizes
        )
        means = f"μ^r {np.round(search.mean_reward[0], 2)}, μ^c {np.round(search.mean_cost[0], 2)}"
        item = f"worst: largest regret of {learner} − {rival} found"
        note = f"paired, fresh runs; {means}"
        rows.add(item, search.objective[0], search.standard_error[0], note=note)
    return rows


def _worst_rows(
    item: str, short: str, search: worst_instances.Worst, usual: np.ndarray, check: int
) -> list[Row]:
    regret, error = search.objective[0], search.standard_error[0]
    arms = "; ".join(
        f"({r:.2f}, {c:.2f})"
        for r, c in zip(search.mean_reward[0], search.mean_cost[0], strict=True)
    )
    note = f"simulated again on {check} fresh runs (the search claimed {search.claimed[0]:.4g}); "
    note += f"arms (μ^r, μ^c): {arms}; mean of {usual.size} random instances {usual.mean():.3g}, "
    note += f"their largest {usual.max():.3g}"
    excess = f"{short}: regret found − largest of {usual.size} random instances"
    return [
        row(f"{item}: largest regret found", regret, error, note=note),
        row(excess, regret - usual.max(), error, published="> 0", holds=above_zero(regret - usual.max(), error),
            note="6 restarts", digits=".3g"),
    ]  # fmt: skip


EXPERIMENT = Experiment.of(
    "gradients",
    (monte_carlo, unbiased, errors, bias, tuned, worst, maps),
    not_in_quick=("errors", "unbiased", "bias", "tuned", "worst"),  # minutes at any size
)
