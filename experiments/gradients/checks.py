"""Estimators against exact gradients: z-values, errors against samples, and the bias of those that have one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

from experiments.common.figures import figure, save
from experiments.common.looks import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION
from experiments.common.rows import Row, row
from experiments.common.running import Options
from experiments.gradients.world import (
    CONSTRAINTS,
    ELIM,
    INSTANCES,
    KEY,
    MEANS,
    OMEGA,
    POLICIES,
    SIGMA,
    SLOTS,
    instances,
    runs,
    smoothed_truth,
    truth,
)
from jaxbandits.gradients import Estimate, exact, policy_score, score_function, smoothed, straight_through

SUSPECT = 3.5  # beyond it the normal law is not trusted for the means of a few ten thousand skew terms
AGAIN = jax.random.key(20261122)


def unbiased(options: Options) -> list[Row]:
    """All unbiased estimators on all instances and constraints. What is beyond 3.5 errors is played again, blind."""
    rows, every, repeated = [], [], []
    for name, play in _plays(options).items():
        z = play(KEY)
        again = play(AGAIN)[np.abs(z) > SUSPECT] if (np.abs(z) > SUSPECT).any() else np.empty(0)
        rows.append(judged(f"unbiased: {name}", z, again))
        every.append(z)
        repeated.append(again)
    whole = judged("unbiased: largest |z| of all", np.concatenate(every), np.concatenate(repeated))
    size = f"{runs(options)} runs on each of {INSTANCES} instances"
    return [*rows, whole._replace(note=f"{whole.note}; {size}")]


def _plays(options: Options) -> dict[str, Callable[[Any], np.ndarray]]:
    """By name, z-values of all comparisons as a function of the key."""
    plays: dict[str, Callable[[Any], np.ndarray]] = {}
    sizes: dict[str, Any] = {"replicates": runs(options), **SLOTS}
    for constraint in CONSTRAINTS:
        for policy, (_, wrt) in POLICIES.items():
            if options.quick and (policy == "soft ω-UCB" or "forfeits" in constraint):
                continue
            plays[f"score_function: {policy}, {constraint}"] = functools.partial(_of_score, policy, constraint, sizes)
            if wrt:
                plays[f"policy_score: {policy}, {constraint}"] = functools.partial(
                    _of_policy, policy, constraint, sizes
                )
        if not options.quick:
            many = {**sizes, "directions": runs(options)}
            plays[f"smoothed: ω-UCB, {constraint}"] = functools.partial(_of_smoothing, constraint, many)
    return plays


def _of_score(policy: str, constraint: str, sizes: dict[str, Any], key: Any) -> np.ndarray:
    got = score_function.estimate(POLICIES[policy][0], instances(), CONSTRAINTS[constraint], key=key, **sizes)
    return z_values(got, truth(policy, constraint), MEANS)


def _of_policy(policy: str, constraint: str, sizes: dict[str, Any], key: Any) -> np.ndarray:
    chosen, wrt = POLICIES[policy]
    got = policy_score.estimate(chosen, instances(), CONSTRAINTS[constraint], wrt=wrt, key=key, **sizes)
    return z_values(got, truth(policy, constraint), wrt)


def _of_smoothing(constraint: str, sizes: dict[str, Any], key: Any) -> np.ndarray:
    got = smoothed.estimate(OMEGA, instances(), CONSTRAINTS[constraint], wrt="rho", sigma=SIGMA, key=key, **sizes)
    return z_values(got, smoothed_truth(constraint), ("rho",))


def judged(item: str, z: np.ndarray, again: np.ndarray) -> Row:
    """yes: nothing beyond 3.5 errors, or what was is inside a Bonferroni test at 1 % when played with another key.

    So no verdict leans on the normal law's tail beyond 3.5, which a skew sum reaches more often.
    """
    most, note = np.abs(z).max(), f"largest of {z.size}; root mean square {np.sqrt((z**2).mean()):.2f}"
    said, holds = f"|z| ≤ {SUSPECT}, or not again", True
    if again.size:
        limit = float(stats.norm.isf(0.005 / again.size))
        holds = bool((np.abs(again) < limit).all())
        note += f"; beyond {SUSPECT}: {again.size}, with another key " + ", ".join(f"{x:.2f}" for x in again)
        note += f" (allowed {limit:.2f})"
    return row(item, most, published=said, holds=holds, note=note, digits=".2f")


def z_values(got: Estimate, must: Estimate, names: tuple[str, ...]) -> np.ndarray:
    """(estimate − exact) / standard error of all gradients and of the value."""
    parts = [(got.gradient[n] - must.gradient[n]) / got.standard_error[n] for n in names]
    return np.concatenate([x.ravel() for x in [*parts, (got.value - must.value) / got.standard_error["value"]]])


class Line(NamedTuple):
    """An estimator whose error is drawn over the number of runs."""

    estimator: Any
    policy: str
    wrt: str
    extra: dict[str, Any]
    colour: str
    marker: str

    @property
    def biased(self) -> bool:
        return self.estimator is straight_through

    def estimate(self, constraint: str, size: int) -> Estimate:
        """From ``size`` runs on every instance."""
        more = self.extra | ({"directions": size} if self.estimator is smoothed else {}) | SLOTS
        policy, world = POLICIES[self.policy][0], instances()
        return self.estimator.estimate(
            policy, world, CONSTRAINTS[constraint], wrt=self.wrt, key=KEY, replicates=size, **more
        )


LINES = {
    "score_function, leave one out": Line(score_function, "ω-UCB", MEANS[0], {"baseline": "leave_one_out"}, BLUE, "o"),
    "score_function, no baseline": Line(score_function, "ω-UCB", MEANS[0], {"baseline": "none"}, SKY, "s"),
    "policy_score, self-play": Line(policy_score, "SoftElim", "theta", {"baseline": "self_play"}, VERMILION, "^"),
    "policy_score, no baseline": Line(policy_score, "SoftElim", "theta", {"baseline": "none"}, ORANGE, "v"),
    "smoothed": Line(smoothed, "ω-UCB", "rho", {"sigma": SIGMA}, GREEN, "D"),
    "straight_through": Line(straight_through, "SoftElim", "theta", {}, PINK, "X"),
}


def errors(options: Options) -> list[Row]:
    """Root mean square error against the number of runs, beside the exact value."""
    sizes = np.array(options.pick([64, 1024], [64, 256, 1024, 4096], [64, 256, 1024, 4096, 16384]))
    constraint, rows = "horizon 12", []
    picture, axes = figure(1, 2, (11, 4.6))
    for name, line in LINES.items():
        exactly = smoothed_truth(constraint) if line.estimator is smoothed else truth(line.policy, constraint)
        must = exactly.gradient[line.wrt]
        found = [line.estimate(constraint, int(size)) for size in sizes]
        rms = [np.sqrt(((got.gradient[line.wrt] - must) ** 2).mean() / (must**2).mean()) for got in found]
        style = {"color": line.colour, "marker": line.marker, "linestyle": "--" if line.biased else "-", "label": name}
        axes[0].loglog(sizes, rms, **style)
        rows.append(_slope(f"errors: {name}: slope of log error over log runs", sizes, rms, line.biased))
        if name in ("policy_score, self-play", "straight_through"):
            mean, se = (np.array([x[line.wrt].ravel()[0] for x in of])
                        for of in ([x.gradient for x in found], [x.standard_error for x in found]))  # fmt: skip
            axes[1].errorbar(sizes * (1.06 if line.biased else 1), mean, 1.96 * se, capsize=3, **style)
    title = f"{INSTANCES} random instances, horizon 12"
    axes[0].set(xlabel="runs on every instance", ylabel="rms error / rms gradient", title=title)
    level = truth("SoftElim", constraint).gradient["theta"][0, 0]
    axes[1].axhline(level, color="#000000", linestyle=":", label="exact")
    axes[1].set(xscale="log", xlabel="runs", ylabel="d regret / d θ", title="SoftElim, one instance (95 % intervals)")
    save(picture, options.out / "errors.png", legend=axes, columns=4)
    return rows


def _slope(item: str, sizes: np.ndarray, rms: list[float], biased: bool) -> Row:
    slope = np.polyfit(np.log(sizes), np.log(rms), 1)[0]
    note = f"error at {sizes[-1]} runs: {rms[-1]:.2%} of the gradient's size"
    if biased:
        return row(item, slope, note=f"{note}; biased", digits=".2f")
    close, note = abs(slope + 0.5) < 0.15, f"{note}; yes: within 0.15"
    return row(item, slope, published="−0.5", holds=close, note=note, digits=".2f")


def bias(options: Options) -> list[Row]:
    """The bias of straight-through by its temperature, and of smoothing by σ, as shares of the gradient's size."""
    rows = []
    given: dict[str, Any] = {"key": KEY, "replicates": runs(options), **SLOTS}
    for constraint in list(CONSTRAINTS)[: 1 if options.quick else 2]:
        must = truth("SoftElim", constraint).gradient["theta"]
        for relax in (0.3, 1.0, 3.0):
            world, accountant = instances(), CONSTRAINTS[constraint]
            got = straight_through.estimate(ELIM, world, accountant, wrt="theta", relax=relax, **given)
            gap, se = got.gradient["theta"] - must, got.standard_error["theta"]
            rows.append(_bias_row(f"bias: straight_through, SoftElim, {constraint}, relax = {relax:g}", gap, se, must))
        for sigma in (0.1, 0.3, 1.0):
            gap = _smoothed_gradient(constraint, sigma) - must
            rows.append(_bias_row(f"bias: smoothing, SoftElim, {constraint}, σ = {sigma:g}", gap, 0 * gap, must))
    return rows


def _smoothed_gradient(constraint: str, sigma: float) -> np.ndarray:
    """E[R′(θ e^{σε}) e^{σε}], exactly but for a 15-point Gauss–Hermite rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    total = np.zeros((1, INSTANCES))
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        factor = float(np.exp(sigma * node))
        there = dataclasses.replace(ELIM, theta=ELIM.theta * factor)
        found = exact.estimate(there, instances(), CONSTRAINTS[constraint], wrt="theta")
        total += weight * factor * found.gradient["theta"]
    return total


def _bias_row(item: str, gap: np.ndarray, se: np.ndarray, must: np.ndarray) -> Row:
    scale = np.sqrt((must**2).mean())
    same = (np.sign(must + gap) == np.sign(must)).mean()
    level = np.sqrt(max(float((gap**2 - se**2).mean()), 0.0)) / scale
    note = f"rms bias / rms gradient over {gap.size} instances, noise removed"
    note += f"; sign right in {same:.0%}; mean {gap.mean():+.3g}"
    return row(item, level, f"{np.sqrt((se**2).mean()) / scale:.3f}", note=note, digits=".3f")
