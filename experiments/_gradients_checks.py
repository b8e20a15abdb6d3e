"""Estimators against exact gradients: z-values, errors against samples, and the bias of those that have one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import stats

from experiments._gradients_world import (
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
from experiments.common import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION, Options, Row, figure, save, verdict
from jaxbandits.gradients import Estimate, exact, policy_score, score_function, smoothed, straight_through


def unbiased(options: Options) -> list[Row]:
    """All unbiased estimators on all instances and constraints: one Bonferroni test at 1 %."""
    found: dict[str, np.ndarray] = {}
    given: dict[str, Any] = {"key": KEY, "replicates": runs(options), **SLOTS}
    for constraint, accountant in CONSTRAINTS.items():
        for policy, (chosen, wrt) in POLICIES.items():
            if options.quick and (policy == "soft ω-UCB" or "forfeits" in constraint):
                continue
            name = f"{policy}, {constraint}"
            got = score_function.estimate(chosen, instances(), accountant, **given)
            found[f"score_function: {name}"] = z_values(got, truth(policy, constraint), MEANS)
            if wrt:
                got = policy_score.estimate(chosen, instances(), accountant, wrt=wrt, **given)
                found[f"policy_score: {name}"] = z_values(got, truth(policy, constraint), wrt)
        if not options.quick:
            many = {**given, "directions": runs(options)}
            got = smoothed.estimate(OMEGA, instances(), accountant, wrt="rho", sigma=SIGMA, **many)
            found[f"smoothed: ω-UCB, {constraint}"] = z_values(got, smoothed_truth(constraint), ("rho",))
    count = sum(z.size for z in found.values())
    limit = float(stats.norm.isf(0.005 / count))
    rows = [
        Row(
            f"unbiased: {name}",
            f"|z| < {limit:.2f}",
            f"{np.abs(z).max():.2f}",
            "",
            verdict(bool(np.abs(z).max() < limit)),
            f"largest of {z.size}; root mean square {np.sqrt((z**2).mean()):.2f}",
        )
        for name, z in found.items()
    ]
    every = np.concatenate(list(found.values()))
    rows.append(
        Row(
            "unbiased: largest |z| of all",
            f"< {limit:.2f}",
            f"{np.abs(every).max():.2f}",
            "",
            verdict(bool(np.abs(every).max() < limit)),
            f"Bonferroni at 1 % over {count} comparisons; {runs(options)} runs on each of {INSTANCES} instances; "
            f"root mean square {np.sqrt((every**2).mean()):.3f}",
        )
    )
    return rows


def z_values(got: Estimate, must: Estimate, names: tuple[str, ...]) -> np.ndarray:
    """(estimate − exact) / standard error of all gradients and of the value."""
    parts = [(got.gradient[n] - must.gradient[n]) / got.standard_error[n] for n in names]
    return np.concatenate([x.ravel() for x in [*parts, (got.value - must.value) / got.standard_error["value"]]])


def errors(options: Options) -> list[Row]:
    """Root mean square error against the number of runs, beside the exact value."""
    sizes = options.pick([64, 1024], [64, 256, 1024, 4096], [64, 256, 1024, 4096, 16384])
    constraint = "horizon 12"
    lines: dict[str, tuple[Any, str, str, dict[str, Any], str, str]] = {
        "score_function, leave one out": (score_function, "ω-UCB", MEANS[0], {"baseline": "leave_one_out"}, BLUE, "o"),
        "score_function, no baseline": (score_function, "ω-UCB", MEANS[0], {"baseline": "none"}, SKY, "s"),
        "policy_score, self-play": (policy_score, "SoftElim", "theta", {"baseline": "self_play"}, VERMILION, "^"),
        "policy_score, no baseline": (policy_score, "SoftElim", "theta", {"baseline": "none"}, ORANGE, "v"),
        "smoothed": (smoothed, "ω-UCB", "rho", {"sigma": SIGMA}, GREEN, "D"),
        "straight_through": (straight_through, "SoftElim", "theta", {}, PINK, "X"),
    }
    picture, axes = figure(1, 2, (11, 4.6))
    rows = []
    for name, (estimator, policy, wrt, extra, colour, marker) in lines.items():
        must = (smoothed_truth(constraint) if estimator is smoothed else truth(policy, constraint)).gradient[wrt]
        scale = np.sqrt((must**2).mean())
        rms, one = [], []
        for size in sizes:
            more = extra | ({"directions": size} if estimator is smoothed else {})
            got = estimator.estimate(
                POLICIES[policy][0],
                instances(),
                CONSTRAINTS[constraint],
                wrt=wrt,
                key=KEY,
                replicates=size,
                **more,
                **SLOTS,
            )
            rms.append(np.sqrt(((got.gradient[wrt] - must) ** 2).mean()) / scale)
            one.append((got.gradient[wrt].ravel()[0], got.standard_error[wrt].ravel()[0]))
        dashes = "--" if estimator is straight_through else "-"
        axes[0].loglog(sizes, rms, color=colour, marker=marker, linestyle=dashes, label=name)
        slope = np.polyfit(np.log(sizes), np.log(rms), 1)[0]
        biased = estimator is straight_through
        rows.append(
            Row(
                f"errors: {name}: slope of log error over log runs",
                "" if biased else "−0.5",
                f"{slope:.2f}",
                "",
                "unclear" if biased else verdict(bool(abs(slope + 0.5) < 0.15)),
                f"error at {sizes[-1]} runs: {rms[-1]:.2%} of the gradient's size"
                + ("; biased" if biased else "; yes: within 0.15"),
            )
        )
        if name in ("policy_score, self-play", "straight_through"):
            mean, se = np.array(one).T
            axes[1].errorbar(
                np.array(sizes) * (1.06 if biased else 1),
                mean,
                1.96 * se,
                color=colour,
                marker=marker,
                linestyle=dashes,
                capsize=3,
                label=name,
            )
    axes[0].set(
        xlabel="runs on every instance",
        ylabel="rms error / rms gradient",
        title=f"{INSTANCES} random instances, horizon 12",
    )
    axes[1].axhline(
        truth("SoftElim", constraint).gradient["theta"][0, 0], color="#000000", linestyle=":", label="exact"
    )
    axes[1].set(xscale="log", xlabel="runs", ylabel="d regret / d θ", title="SoftElim, one instance (95 % intervals)")
    save(picture, options.out / "errors.png", legend=axes, columns=4)
    return rows


def bias(options: Options) -> list[Row]:
    """The bias of straight-through by its temperature, and of smoothing by σ, as shares of the gradient's size."""
    rows = []
    given: dict[str, Any] = {"key": KEY, "replicates": runs(options), **SLOTS}
    for constraint in list(CONSTRAINTS)[: 1 if options.quick else 2]:
        must = truth("SoftElim", constraint).gradient["theta"]
        for relax in (0.3, 1.0, 3.0):
            got = straight_through.estimate(
                ELIM, instances(), CONSTRAINTS[constraint], wrt="theta", relax=relax, **given
            )
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
    return Row(item, "", f"{level:.3f}", f"{np.sqrt((se**2).mean()) / scale:.3f}", "unclear", note)
