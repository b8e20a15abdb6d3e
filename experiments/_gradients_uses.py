"""What gradients are for: tuning, worst instances, sensitivity maps."""

from __future__ import annotations

import numpy as np

import jaxbandits as jb
from experiments._gradients_world import KEY, OMEGA
from experiments.common import BLUE, GREEN, GREY, VERMILION, Options, Row, figure, save, verdict
from jaxbandits.environments import FiniteArms, random_bernoulli
from jaxbandits.gradients import adversarial, exact
from jaxbandits.policies import MUCB, BudgetedThompson, OmegaUCB, SoftElim
from jaxbandits.tune import random_problem, tune

GRID = 2.0 ** np.linspace(-6, 1.5, 16)  # Figure 4's 2⁻⁶ … 2¹ at twice the density
FAMILIES = {"S-Br-50": ("bernoulli", "1/4"), "S-Bt-50": ("beta", "1/8")}


def tuned(options: Options) -> list[Row]:
    """ρ of ω-UCB by gradient, beside the best of a 16-value grid."""
    rows: list[Row] = []
    picture, axes = figure(1, 2, (11, 4.4))
    arms, budget = (50, 1.5e5) if not options.quick else (10, 400.0)
    sizes = options.pick((6, 16, 16, 16), (8, 20, 60, 200), (8, 20, 100, 400))
    steps, each, on_grid, fresh = sizes
    slots = {"slots": 64} if options.quick else {}
    for axis, (name, (family, best)) in zip(axes, FAMILIES.items(), strict=True):
        if options.quick and family != "beta":
            axis.set_axis_off()
            continue
        found = tune(
            OmegaUCB(rho=1.0),
            random_problem(family, arms, budget),
            wrt="rho",
            key=KEY,
            steps=steps,
            instances=each,
            grid=GRID,
            grid_instances=on_grid,
            fresh=fresh,
            **slots,
        )
        print("\n".join(f"  {name}: {line}" for line in found.lines()), flush=True)
        assert found.best is not None and found.over_best is not None
        gain, share = found.over_best, found.rounds[0] / found.rounds[1]
        where = name if not options.quick else f"{name} (K = {arms}, B = {budget:g}·min c)"
        note = f"paired, 95 % interval [{gain.low:.4g}, {gain.high:.4g}] on {fresh} fresh instances"
        rows += [
            Row(
                f"tuned: {where}: ρ",
                f"{best} is good (Figure 4)",
                f"{found.values['rho']:.4g}",
                "",
                "unclear",
                f"best of 16 grid values: {found.best['rho']:.4g}; start 1",
            ),
            Row(
                f"tuned: {where}: regret of the best grid value − tuned",
                "≥ 0 within its interval",
                f"{gain.mean:.4g}",
                f"{(gain.high - gain.low) / 3.92:.3g}",
                verdict(gain.high >= 0),
                note,
            ),
            Row(
                f"tuned: {where}: regret of the start − tuned",
                "> 0",
                f"{found.over_start.mean:.4g}",
                f"{(found.over_start.high - found.over_start.low) / 3.92:.3g}",
                verdict(found.over_start.low > 0 or (None if found.over_start.high > 0 else False)),
                "ρ = 1; paired",
            ),
            Row(
                f"tuned: {where}: rounds of the tuning / of the grid",
                "≤ 0.25",
                f"{share:.3f}",
                "",
                verdict(share <= 0.25),
                " and ".join(f"{n:.3g} rounds in {t:.0f} s" for n, t in zip(found.rounds, found.seconds, strict=True)),
            ),
            Row(
                f"tuned: {where}: seconds of the tuning",
                "≤ 300",
                f"{found.seconds[0]:.0f}",
                "",
                verdict(found.seconds[0] <= 300),
                "compile included",
            ),
        ]
        axis.errorbar(
            found.grid[:, 0],
            found.grid_regrets,
            1.96 * found.grid_errors,
            color=GREY,
            marker="s",
            capsize=2,
            label=f"grid, {on_grid} instances",
        )
        axis.errorbar(
            [found.values["rho"]],
            [found.regret[0]],
            [[found.regret[0] - found.regret[1]], [found.regret[2] - found.regret[0]]],
            color=VERMILION,
            marker="D",
            capsize=4,
            zorder=4,
            label=f"tuned, {fresh} fresh instances",
        )
        for i, rho in enumerate(found.path[:, 0]):
            axis.axvline(
                rho,
                color=BLUE,
                alpha=0.15 + 0.6 * i / len(found.path),
                linewidth=1,
                label="path (darker: later)" if i == len(found.path) - 1 else None,
            )
        axis.set(xscale="log", xlabel="ρ", ylabel="mean regret at full budget", title=where)
    save(picture, options.out / "tuned.png", legend=axes[1:], columns=3)
    return rows


def worst(options: Options) -> list[Row]:
    """Worst instances of ω-UCB, BTS and m-UCB, each simulated again, beside random instances."""
    arms, budget = options.pick((3, 15.0), (3, 50.0), (5, 100.0))
    steps, runs, check = options.pick((15, 100, 1000), (40, 256, 4000), (80, 512, 20_000))
    constraint = jb.TotalBudget(budget, last_pull="counts")
    rivals = {"ω-UCB": OMEGA, "BTS": BudgetedThompson(), "m-UCB": MUCB()}
    random = random_bernoulli(KEY, 200, arms)
    clipped = FiniteArms.bernoulli(*(np.clip(x, 0.05, 0.95) for x in random.values()))
    rows, found = [], {}
    picture, axes = figure(1, 3, (13, 4.2))
    for axis, (name, policy) in zip(axes, rivals.items(), strict=True):
        got = adversarial.search(
            policy, constraint, arms=arms, key=KEY, restarts=6, steps=steps, replicates=runs, check=check, slots=128
        )
        usual = got.start
        if not options.quick:
            at_random = jb.simulate(policy, clipped, constraint, key=KEY, replicates=50, marks=1)
            usual = at_random.regret.values[0, ..., -1].mean(axis=1)
        found[name] = got
        shown = "; ".join(f"({r:.2f}, {c:.2f})" for r, c in zip(got.mean_reward[0], got.mean_cost[0], strict=True))
        rows.append(
            Row(
                f"worst: {name}, K = {arms}, B = {budget:g}: largest regret found",
                "",
                f"{got.objective[0]:.4g}",
                f"{got.standard_error[0]:.2g}",
                "unclear",
                f"simulated again on {check} fresh runs (the search claimed {got.claimed[0]:.4g}); arms (μ^r, μ^c): "
                f"{shown}; mean of {usual.size} random instances {usual.mean():.3g}, their largest {usual.max():.3g}",
            )
        )
        rows.append(
            Row(
                f"worst: {name}: regret found − largest of {usual.size} random instances",
                "> 0",
                f"{got.objective[0] - usual.max():.3g}",
                f"{got.standard_error[0]:.2g}",
                verdict(bool(got.objective[0] - 2 * got.standard_error[0] > usual.max())),
                "6 restarts",
            )
        )
        axis.plot(got.path, color=BLUE, alpha=0.5, linewidth=1)
        axis.axhline(got.objective[0], color=VERMILION, linestyle="--", label="worst, simulated again")
        axis.axhline(usual.max(), color=GREEN, linestyle=":", label="largest of random instances")
        axis.axhline(usual.mean(), color=GREY, linestyle="-.", label="mean of random instances")
        axis.set(xlabel="step of the ascent", ylabel="regret", title=f"{name}, {arms} arms, B = {budget:g}")
    save(picture, options.out / "worst.png", legend=axes[:1], columns=3)
    if not options.quick:
        for one, other in (("ω-UCB", "BTS"), ("m-UCB", "ω-UCB")):
            got = adversarial.search(
                rivals[one],
                constraint,
                arms=arms,
                key=KEY,
                against=rivals[other],
                restarts=6,
                steps=steps,
                replicates=runs,
                check=check,
                slots=128,
            )
            rows.append(
                Row(
                    f"worst: largest regret of {one} − {other} found",
                    "",
                    f"{got.objective[0]:.4g}",
                    f"{got.standard_error[0]:.2g}",
                    "unclear",
                    f"paired, fresh runs; μ^r {np.round(got.mean_reward[0], 2)}, μ^c {np.round(got.mean_cost[0], 2)}",
                )
            )
    return rows


def maps(options: Options) -> list[Row]:
    """Exact regret and its sensitivity over the means of two arms."""
    points = options.pick(13, 25, 41)
    axis = np.linspace(0.06, 0.94, points)
    x, y = (v.ravel() for v in np.meshgrid(axis, axis))
    pair = np.stack([x, y], axis=1)
    horizon = jb.Horizon(options.pick(20, 30, 50))
    rewards = FiniteArms.bernoulli(pair, np.full_like(pair, 0.5))
    first = exact.estimate(SoftElim(theta=0.5), rewards, horizon, wrt="mean_reward")
    high = np.linspace(0.5, 0.95, points)
    x2, y2 = (v.ravel() for v in np.meshgrid(high, high))
    costs = FiniteArms.bernoulli(np.broadcast_to([0.6, 0.4], pair.shape), np.stack([x2, y2], axis=1))
    second = exact.estimate(OMEGA, costs, jb.TotalBudget(3.0, last_pull="counts"), wrt="mean_cost")
    picture, axes = figure(2, 2, (10, 8.6))
    for row, (found, grid, name, labels) in enumerate(
        (
            (first, axis, f"SoftElim θ = ½, {horizon.rounds} rounds", ("μ₁", "μ₂")),
            (second, high, "ω-UCB ρ = ¼, B = 3, μ^r = (0.6, 0.4)", ("μ^c₁", "μ^c₂")),
        )
    ):
        slope = found.gradient["mean_reward" if row == 0 else "mean_cost"][0, :, 0].reshape(points, points)
        for column, (values, title, colours) in enumerate(
            (
                (found.value[0].reshape(points, points), "regret", "viridis"),
                (slope, f"∂ regret / ∂ {labels[0]}", "PuOr"),
            )
        ):
            at = axes[2 * row + column]
            most = np.abs(values).max()
            limits = {"vmin": -most, "vmax": most} if column else {}
            mesh = at.pcolormesh(grid, grid, values, cmap=colours, shading="nearest", rasterized=True, **limits)
            at.grid(False)
            at.set(xlabel=labels[0], ylabel=labels[1], title=f"{name}: {title}", aspect="equal")
            picture.colorbar(mesh, ax=at, shrink=0.85)
    save(picture, options.out / "maps.png")
    across = np.diff(first.value[0].reshape(points, points), axis=1) / (axis[1] - axis[0])
    by = first.gradient["mean_reward"][0, :, 0].reshape(points, points)
    smooth = np.abs(x.reshape(points, points)[:, 1:] - y.reshape(points, points)[:, 1:]) > 3 * (axis[1] - axis[0])
    gap = np.abs(across - (by[:, 1:] + by[:, :-1]) / 2)[smooth].max() / np.abs(by).max()
    return [
        Row(
            "maps: largest difference of ∂R/∂μ₁ and slopes of R on the grid",
            "small",
            f"{gap:.3g}",
            "",
            verdict(bool(gap < 0.05)),
            "share of the largest gradient, away from the kink; yes: below 5 %",
        ),
        Row(
            "maps: largest |∂R/∂μ₁| of SoftElim",
            "",
            f"{np.abs(by).max():.4g}",
            "",
            "unclear",
            "beside the kink μ₁ = μ₂",
        ),
        Row(
            "maps: largest |∂R/∂μ^c₁| of ω-UCB",
            "",
            f"{np.abs(second.gradient['mean_cost'][0, :, 0]).max():.4g}",
            "",
            "unclear",
            "beside the kink of equal ratios",
        ),
    ]
