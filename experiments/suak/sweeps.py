"""Sweeps over c and over the gap, and the audit over random instances."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

import jaxbandits as jb
from experiments.common.figures import figure, intervals, save
from experiments.common.looks import look
from experiments.common.rows import Row, all_of, is_above, mean_row, row
from experiments.common.running import Options
from experiments.suak.play import KEY, MEANS, beta_arms, violation
from jaxbandits.environments import FiniteArms, WithNullArm
from jaxbandits.environments.finite.random_instances import uniforms
from jaxbandits.policies import SUAK, FluidOracle, Guarded, OnePhase, Pacer, PrimalDualTwoPhase, UCBSimplex

BUDGETS = np.array([0.15, 0.25, 0.35, 0.45, 0.5, 0.55, 0.65, 0.7, 0.9])
GAPS = np.array([0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3])
SWEPT = ("SUAK", "OPS, a = 3")


def sweep_c(options: Options) -> list[Row]:
    """Regret, skips and violation over c, on the arms of instance 1."""
    mu, rho = (np.broadcast_to(x, (BUDGETS.size, 3)) for x in MEANS[1])
    result, rounds = _sweep(options, mu, rho, BUDGETS)
    _picture(options, "sweep_c", result, BUDGETS, f"Instance 1 with another c, T = {rounds:,}", "c (cost per round)")
    rows = [violation("sweep_c", float(result.violation.max()), "c from 0.15 to 0.9")]
    for c, suak, ops in zip(BUDGETS, *result.realised_regret.values[..., -1], strict=True):
        delta = np.abs(np.array(MEANS[1][1]) - c).min()
        note = f"T = {rounds}, δ_min = {delta:.2g}, SUAK {suak.mean():.4g}; paired"
        rows.append(mean_row(f"sweep_c: regret of OPS − SUAK, c = {c:g}", ops - suak, note=note, digits=".4g"))
    return rows


def sweep_gap(options: Options) -> list[Row]:
    """Regret over δ_min: costs c − δ, c + δ and 0.85, c = 0.5."""
    rho = np.stack([0.5 - GAPS, 0.5 + GAPS, np.full(GAPS.size, 0.85)], axis=1)
    mu = np.stack([0.9 * rho[:, 0], 0.9 * rho[:, 1], np.full(GAPS.size, 0.86)], axis=1)
    result, rounds = _sweep(options, mu, rho, np.full(GAPS.size, 0.5))
    title = f"Costs 0.5 − δ, 0.5 + δ, 0.85 with c = 0.5, T = {rounds:,}"
    _picture(options, "sweep_gap", result, GAPS, title, "smallest cost gap δ", log=True)
    regret = result.realised_regret.values[..., -1]
    fall, item = regret[0, 0] - regret[0, -1], "sweep_gap: regret of SUAK at δ = 0.02 − at 0.3"
    said, holds = "> 0 (the bound falls in δ)", is_above(fall) if options.full else None
    steps = [is_above(a - b) for a, b in itertools.pairwise(regret[0])] if options.full else [None]
    means = ", ".join(f"{x.mean():,.0f}" for x in regret[0])
    rows = [
        violation("sweep_gap", float(result.violation.max()), "δ from 0.02 to 0.3"),
        mean_row(item, fall, said, holds=holds, note=f"T = {rounds}; the ends only", digits=".4g"),
        row(
            "sweep_gap: regret of SUAK falls from each δ to the next",
            means,
            published="the bound does",
            holds=all_of(steps),
            note="yes: each by 2 s.e., no: one rises by 2 s.e.",
        ),
    ]
    for gap, suak, ops in zip(GAPS, *regret, strict=True):
        note = f"SUAK {suak.mean():.4g}, OPS {ops.mean():.4g}; paired"
        rows.append(mean_row(f"sweep_gap: regret of OPS − SUAK, δ = {gap:g}", ops - suak, note=note, digits=".4g"))
    return rows


def _sweep(options: Options, mu: np.ndarray, rho: np.ndarray, c: np.ndarray) -> tuple[jb.Result, int]:
    rounds, runs = options.pick((10_000, 8), (100_000, 20), (200_000, 60))
    policies: list[Any] = [SUAK(c=c[None]), Guarded(OnePhase(c=c[None], horizon=rounds))]
    result = jb.simulate(
        policies,
        beta_arms(mu, rho),
        jb.AverageCost(c=c, rounds=rounds),
        key=KEY,
        replicates=runs,
        marks=10,
        slots=min(270, -(-runs * c.size // 2)),
    )
    return result, rounds


def _picture(
    options: Options, name: str, result: jb.Result, x: np.ndarray, title: str, across: str, log: bool = False
) -> None:
    picture, axes = figure(1, 2, (10, 4.4))
    panels = (
        (axes[0], result.realised_regret.values, "T·r* − Σ reward"),
        (axes[1], result.count("skips").values, "skipped rounds"),
    )
    for axis, values, label in panels:
        for i, policy in enumerate(SWEPT):
            intervals(axis, x, values[i, :, :, -1], label=policy, capsize=2, **look(policy))
        axis.set(xlabel=across, ylabel=label)
        if log:
            axis.set_xscale("log")
            axis.set_xticks(x, [f"{v:g}" for v in x])
            axis.minorticks_off()
        axis.set_ylim(bottom=0)
    axes[0].set_title("Regret at T")
    axes[1].set_title("Skips until T")
    title = f"{title} (mean of {values.shape[2]} runs, 95 % interval)"
    save(picture, options.out / f"{name}.png", title, legend=axes[:1])


def audit(options: Options) -> list[Row]:
    """Largest violation over random instances (2 to 6 arms, c from 0.02 to 1): every round is checked, in ticks."""
    instances, runs, rounds = options.pick((64, 2, 2_000), (256, 4, 20_000), (1024, 8, 8_000))
    began, checked, rows, spread = time.perf_counter(), 0, [], []
    for law in ("Bernoulli",) if options.quick else ("Bernoulli", "quarters", "Beta"):
        arms, c = _random(law, instances)
        for name, policy in _promising(arms, c, rounds, options.quick).items():
            constraint = jb.AverageCost(c=c, rounds=rounds)
            result = jb.simulate(policy, arms, constraint, key=KEY, replicates=runs, marks=[0.1, 0.5, 1], slots=256)
            played = int(result.ledger["rounds"][..., -1].sum())
            worst = int(result.ledger["audit:violation"].max())
            used = result.spent.values[0, :, :, -1].mean(axis=1) / (c * rounds)
            spread.append((f"{name}, {law}", used))
            checked += played
            note = f"{played:.3g} rounds of {instances} instances, {used.mean():.3f} of the budget used; ticks of 2^-24"
            item, held = f"audit: violation of {name}, {law}", worst == 0
            rows.append(row(item, worst, published="0", holds=held, note=note))
    note, done = f"{time.perf_counter() - began:.0f} s", checked >= 10**9 if options.full else None
    rows.append(row("audit: audited rounds", float(checked), published="≥ 1e9", holds=done, note=note))
    picture, axes = figure(1, 1, (8, 0.9 + 0.33 * len(spread)))
    axes[0].boxplot([used for _, used in spread], orientation="horizontal", tick_labels=[n for n, _ in spread])
    axes[0].axvline(1.0, color="#D55E00", linestyle="--", label="the constraint")
    axes[0].invert_yaxis()
    axes[0].set(xlabel="average cost at T / c, over instances", title="Share of the budget used; no round above c·t")
    save(picture, options.out / "audit.png", legend=axes[:1])
    return rows


def _random(law: str, instances: int) -> tuple[WithNullArm, np.ndarray]:
    u = uniforms(KEY, instances, 6, 12)
    present = np.arange(6)[None, :] < 2 + np.floor(5 * u[10, :, :1])
    if law == "Bernoulli":
        arms = FiniteArms.bernoulli(u[0], u[1], present)
    elif law == "quarters":
        arms = FiniteArms.generalised_bernoulli(np.moveaxis(u[:5], 0, -1), np.moveaxis(u[5:10], 0, -1), present)
    else:
        a, b, c, d = 0.05 + 5 * u[:4]
        arms = FiniteArms.beta(a, b, c, d, present)
    return WithNullArm(arms), 0.02 + 0.98 * u[11, :, 0]


def _promising(arms: WithNullArm, c: np.ndarray, rounds: int, quick: bool) -> dict[str, Any]:
    reward, cost = (np.nan_to_num(x[:, :-1]) for x in arms.values())
    policies: dict[str, Any] = {
        "SUAK": SUAK(c=c[None]),
        "OPS": Guarded(OnePhase(c=c[None], horizon=rounds)),
        "USS": Guarded(UCBSimplex(c=c[None])),
        "PDS": Guarded(PrimalDualTwoPhase(c=c[None], horizon=rounds)),
        "pacer": Guarded(Pacer(c=c[None])),
        "fluid oracle": Guarded(FluidOracle(reward[None], cost[None], c=c[None])),
    }
    return {name: policies[name] for name in ("SUAK", "OPS", "USS")} if quick else policies
