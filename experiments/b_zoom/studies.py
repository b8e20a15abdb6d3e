"""What the B-Zoom paper leaves open, from the ball's scale to bidding; and an independent loop."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import jaxbandits as jb
from experiments import common
from experiments.b_zoom import tables
from experiments.b_zoom.tables import STATISTICS, design, inside, play_cells, table_sizes
from experiments.common import (
    OURS,
    Options,
    Row,
    Summary,
    above_zero,
    all_of,
    is_above,
    mean_row,
    mean_se,
    row,
    swept,
)
from experiments.figures import figure, intervals, name_ticks, save
from experiments.rcb import best_ratio_alone
from jaxbandits import policies as p
from jaxbandits._plots import BLACK, BLUE, GREEN, GREY, PINK, VERMILION
from jaxbandits.core import ticks
from jaxbandits.environments import Continuum, LoggedAuctions, cost_valley


def scale(options: Options) -> list[Row]:
    """The scale of a ball (E/L), the quantity that Table 1 counts, and the reading of Zooming."""
    plan = design(*table_sizes(options), seed=1)
    world = plan.valleys()
    ratio = plan.slope()
    lemma = (0.05 + 0.2 * np.sqrt(1000 / math.e)) / plan.lam**2
    # What "the same radius as B-Zoom" would mean for Zooming
    factor = (1 / plan.lam) * (1 + 1 / plan.lam)
    readings: dict[str, Any] = {
        "BZ, L = 1 (no rescaling)": plan.b_zoom(np.ones_like(plan.lam)),
        "BZ, L = largest slope of the ratio": None,
        "BZ, L' = (L_r + L_c)/λ²": plan.b_zoom(lemma, 64),
        "Z, E as printed for BZ, L = slope of the ratio": plan.zooming(ratio, factor),
        "Z, E as printed for BZ, L = slope of the reward": plan.zooming(0.05, factor),
        "Z, E without λ, L = slope of the reward": None,
        "Z, E without λ, L = slope of the ratio": plan.zooming(ratio),
    }
    rows = []
    for i, (name, policy) in enumerate(readings.items()):
        column = name.split(",")[0]
        run = f"scale {i}"
        cells = (
            tables.table1_cells(options)[1][column]
            if policy is None
            else play_cells(options, run, policy, world, plan)
        )
        full = f"; {cells.full} lanes full" if cells.full else ""
        for quantity, samples in (("pulls", cells.pulls), ("Σ reward", cells.reward)):
            rows.append(_fit(f"scale: {name}, {quantity}", column, samples, options, full))
    return rows


def _fit(item: str, column: str, samples: np.ndarray, options: Options, full: str) -> Row:
    """How many cells of a column of Table 1 lie within 3 standard errors of these samples."""
    budgets, lambdas, _ = table_sizes(options)
    value, error = tables.thousands(samples)
    z = []
    for b, k in np.ndindex(len(budgets), len(lambdas)):
        cells = [tables.TABLE1.get((budgets[b], lambdas[k], s, column)) for s in STATISTICS]
        if None not in cells:
            printed = np.array(cells, float)
            z.append(tables.distance(printed, value[:, b, k], error[:, b, k], 1.0))
    if not z:
        return row(item, "", note="no published budget at this size")
    by_row = ", ".join(str(n) for n in (np.abs(z) <= 3).sum(axis=0))
    note = f"m, Q1, Q2, mean: {by_row} of {len(z)}; median |z| {np.median(np.abs(z)):.1f}{full}"
    return inside(item, z, note, "all cells")


def growth(options: Options) -> list[Row]:
    """Regret against B on log-log axes, with local exponents, beside (d + 1)/(d + 2)."""
    usual = (1_000, 4_000, 16_000, 64_000)
    budgets = options.pick((500, 1_000, 2_000), usual, (*usual, 256_000, 1_024_000))
    instances = options.pick(20, 40, 40)
    plan = design(budgets, (0.5,), instances, seed=3)
    world, lam = plan.valleys(), plan.lam[None]
    phases = p.BZoom(lam=lam, lipschitz=plan.slope()[None], capacity=tables.CAPACITY)
    finite = play_cells(
        options, "growth grid", p.UCBBV1(min_cost=lam), world.at((np.arange(15) + 0.5) / 15), plan
    )
    regrets = {
        "B-Zoom, single phase": play_cells(
            options, "growth B-Zoom", plan.b_zoom(), world, plan
        ).regret,
        "B-Zoom, phases": play_cells(options, "growth phases", phases, world, plan).regret,
        "UCB-BV1, grid of 15": plan.best(world) - finite.reward,  # against the whole continuum
    }
    picture, axes = figure(1, 2, (11.5, 4.6))
    x = np.array(budgets, float)
    rows = Summary()
    for (name, regret), colour, marker in zip(
        regrets.items(), (BLUE, VERMILION, GREEN), "os^", strict=True
    ):
        mean, se = mean_se(regret[:, 0], axis=-1)
        style = {
            "color": colour,
            "marker": marker,
            "markersize": 5,
            "linewidth": 1.5,
            "label": name,
        }
        axes[0].errorbar(x, mean, 1.96 * se, **style)
        local = np.diff(np.log(np.maximum(regret[:, 0], 1e-9).mean(axis=-1))) / np.diff(np.log(x))
        error = np.hypot(se[1:] / mean[1:], se[:-1] / mean[:-1]) / np.diff(np.log(x))
        axes[1].errorbar(np.sqrt(x[1:] * x[:-1]), local, 1.96 * error, **style)
        rows += _exponents(name, budgets, local, error)
        if name == "B-Zoom, phases":
            # Lost of the best point's profit, [budget, instance]
            share = regret[:, 0] / plan.best(world)[:, 0]
            (first, last), spread = (
                share[[0, -1]].mean(axis=-1),
                share[[0, -1]].std(axis=-1, ddof=1),
            )
            difference_error = float(np.hypot(*spread)) / np.sqrt(share.shape[1])
            item = (
                f"growth: share of the profit that {name} loses, B = {budgets[0]} and {budgets[-1]}"
            )
            text, holds = f"{first:.3f} and {last:.3f}", above_zero(first - last, difference_error)
            statement, note = "converges to the optimum", "yes: falls, by 2 s.e."
            rows.add(item, text, difference_error, published=statement, holds=holds, note=note)
    levels = (
        (0.6, "3/5 (d = 1/2: a smooth peak)", "--"),
        (2 / 3, "2/3 (d = 1)", ":"),
        (1.0, "1 (linear)", "-"),
    )
    for value, text, dash in levels:
        axes[1].axhline(value, color=GREY, linestyle=dash, linewidth=1, label=text)
    axes[0].set(
        xscale="log",
        yscale="log",
        xlabel="budget B",
        ylabel="regret",
        title="Regret: mean and 95 % interval",
    )
    axes[1].set(
        xscale="log", xlabel="budget B", ylabel="local exponent", title="d log regret / d log B"
    )
    title = f"λ = 0.5, {instances} instances a budget"
    save(picture, options.out / "growth.png", title, legend=axes[1:], columns=3)
    return rows


def _exponents(
    name: str, budgets: tuple[int, ...], local: np.ndarray, error: np.ndarray
) -> list[Row]:
    reference, note = "0.6 (d = 1/2), 0.667 (d = 1)", "asymptotic upper bound, λ = 0.5"
    rows = Summary()
    for i, value in enumerate(local):
        item = f"growth: local exponent of {name}, B = {budgets[i]} to {budgets[i + 1]}"
        rows.add(item, value, error[i], published=reference, note=note, digits=".3f")
    if not name.startswith("B-Zoom"):
        return rows
    error_of_fall = np.hypot(error[-1], error[0])
    item, text = f"growth: exponent of {name} falls with B", f"{local[0]:.3f} to {local[-1]:.3f}"
    falls = local[-1] < local[0] - 2 * error_of_fall
    note = "first and last interval; yes: by 2 s.e."
    return [
        *rows,
        row(item, text, error_of_fall, published="towards (d + 1)/(d + 2)", holds=falls, note=note),
    ]


SIZES = (2, 4, 8, 16, 32, 64)
LOOKS = {"UCB-BV1": (GREEN, "^"), "ω-UCB": (PINK, "D"), "its best point, known": (BLACK, "x")}


def grids(options: Options) -> list[Row]:
    """The best fixed grid in hindsight: UCB-BV1 and ω-UCB on K equal steps, against B-Zoom."""
    budget, instances = options.pick(1_000, 20_000, 100_000), options.pick(20, 40, 100)
    plan = design((budget,), (0.1, 0.5), instances, seed=4)
    world = plan.valleys()
    optimum = plan.best(world)
    zoom = play_cells(options, "grids B-Zoom", plan.b_zoom(), world, plan).reward / optimum
    shares: dict[str, list[np.ndarray]] = {name: [] for name in LOOKS}  # of the best point's profit
    policies = {"UCB-BV1": p.UCBBV1(min_cost=plan.lam[None]), "ω-UCB": p.OmegaUCB(rho=0.25)}
    for k in SIZES:
        finite = world.at((np.arange(k) + 0.5) / k)
        for name, policy in policies.items():
            shares[name].append(
                play_cells(options, f"grids {name} {k}", policy, finite, plan).reward / optimum
            )
        shares["its best point, known"].append(plan.best(finite) / optimum)
    picture, axes = figure(1, 2, (11.5, 4.4))
    rows = Summary()
    for j, (axis, lam) in enumerate(zip(axes, (0.1, 0.5), strict=True)):
        for name, values in shares.items():
            colour, marker = LOOKS[name]
            x = np.stack(values)[:, 0, j]  # [size, instance]
            intervals(
                axis, SIZES, x, color=colour, marker=marker, markersize=5, linewidth=1.5, label=name
            )
            best = int(np.argmax(x.mean(axis=-1)))
            note = f"shares of the best point's profit; the best grid has {SIZES[best]} points "
            note += f"({x[best].mean():.3f}), B-Zoom {zoom[0, j].mean():.3f}; yes: B-Zoom above"
            item = f"grids: B-Zoom − {name} on the best grid, λ = {lam:g}"
            ahead = zoom[0, j] - x[best]
            rows.mean(item, ahead, holds=is_above(ahead), note=note, digits=".4f")
        mean, se = mean_se(zoom[0, j])
        axis.axhline(mean, color=BLUE, linewidth=1.5, label="B-Zoom")
        axis.axhspan(mean - 1.96 * se, mean + 1.96 * se, color=BLUE, alpha=0.15, linewidth=0)
        axis.set(
            xscale="log",
            xlabel="points of the grid",
            title=f"λ = {lam:g}",
            ylabel="profit / (B · best ratio)",
        )
        name_ticks(axis, SIZES)
    title = f"Fixed grids in hindsight, B = {budget:,}: mean and 95 % interval over {instances} instances"
    save(picture, options.out / "grids.png", title, legend=axes[:1])
    return rows


def trees(options: Options) -> list[Row]:
    """HOO and StoOO with ratio rewards beside B-Zoom and a random point."""
    budget, instances = options.pick(300, 5_000, 20_000), options.pick(10, 30, 50)
    plan = design((budget,), (0.5,), instances, seed=5)
    world, slope, lam = plan.valleys(), plan.slope()[None], plan.lam[None]
    policies: dict[str, Any] = {
        "B-Zoom, single phase": plan.b_zoom(),
        "B-Zoom, phases": p.BZoom(lam=lam, lipschitz=slope, capacity=tables.CAPACITY),
        "HOO": p.HOO(lam=lam, nu=slope, depth=6),
        "StoOO": p.StoOO(lam=lam, nu=slope / 2, horizon=plan.budget[None] / lam, capacity=96),
        "UCB1, 10 random points": p.OnPoints(p.UCB1(), points=plan.points[None, :, :10]),
    }
    rows, shares = Summary(), {}
    for name, policy in policies.items():
        shares[name] = (
            play_cells(options, f"trees {name}", policy, world, plan).reward / plan.best(world)
        )[0, 0]
        note = "share of the best point's"
        rows.mean(f"trees: profit of {name}", shares[name], note=note, digits=".4f")
    for name in ("HOO", "StoOO"):
        ahead, note = shares["B-Zoom, single phase"] - shares[name], "paired; yes: B-Zoom above"
        rows.mean(f"trees: B-Zoom − {name}", ahead, holds=is_above(ahead), note=note, digits=".4f")
    return rows


# --- bidding in the iPinYou test log of campaign 2997: the arm is the bid, the cost the market price of what is won
LOG, LOW, HIGH, POINTS = "ipinyou/2997_test.csv.gz", 20, 300, 15
BIDS = np.arange(LOW, HIGH + 1)
GRID = ((np.arange(POINTS) + 0.5) / POINTS).astype(np.float32)


def auctions(options: Options) -> list[Row]:
    """Clicks and predicted clicks for an eighth of the test set's cost, bids from 20 to 300."""
    # A click or none, the market price, the predicted probability of a click
    clicks, price, predicted = np.loadtxt(options.data / LOG, delimiter=",", skiprows=1).T
    share = options.pick(1 / 256, 1 / 16, 1 / 8)
    budget, runs = float(price.sum() / HIGH * share), options.pick(6, 20, 50)
    rows: list[Row] = []
    rewards = {"click": clicks, "predicted click / its largest": predicted / predicted.max()}
    for kind, gain in rewards.items():
        world = LoggedAuctions.of(price, gain, low=LOW, high=HIGH, top=HIGH)
        reward, cost = (x[0] for x in world.values())
        ratio, lam = reward / cost, float(cost.min())
        slope, of_reward = (
            float(np.abs(np.diff(y)).max() * (BIDS.size - 1)) for y in (ratio, reward)
        )
        policies: dict[str, Any] = {
            "B-Zoom": p.SinglePhaseBZoom(budget=budget, lam=lam, lipschitz=slope),
            "Zooming": p.SinglePhaseZooming(budget=budget, lam=lam, lipschitz=of_reward),
            "UCB-BV1": p.OnPoints(p.UCBBV1(min_cost=lam), points=GRID),
            "UCB1": p.OnPoints(p.UCB1(), points=GRID),
            "ω-UCB": p.OnPoints(p.OmegaUCB(rho=0.25), points=GRID),
        }
        name, limit = f"auctions {kind.split()[0]}", jb.TotalBudget(budget, last_pull="forfeits")
        fields = {"policies": policies, "constraint": limit}
        data = swept(options, name, environments=world, replicates=runs, seed=7, **fields)
        best = ratio.max() * budget
        grid = (
            ratio[np.clip((GRID * ratio.size).astype(int), 0, ratio.size - 1)].max() * budget / best
        )
        profit = dict(zip(policies, data["reward"].values[:, 0, 0, 0, :, -1] / best, strict=True))
        bid, budget_text = BIDS[ratio.argmax()], f"{budget:.0f} = {share:g} of the log's cost"
        note = (
            f"bid {bid}; {kind}; budget {budget_text}, λ = {lam:.4f}, L = {slope:.3g}, {runs} runs"
        )
        unit = "share of the best fixed bid"
        needed = (
            (1 / lam) * (1 + 1 / lam) * np.sqrt(8 * np.log(budget / lam) + np.log(4)) / slope
        ) ** 2
        item = f"auctions: pulls until B-Zoom's first ball is smaller than [0, 1], {kind}"
        rounds = float(data["rounds"].values[0, 0, 0, 0, :, -1].mean())
        lasts = f"its runs last {rounds:.3g} rounds; yes: it can move at all"
        rows += [
            row(f"auctions: best fixed bid, {kind}", best, digits=".5g", note=note),
            row(f"auctions: best of the {POINTS} points, {kind}", grid, digits=".4f", note=unit),
            *(
                mean_row(f"auctions: {x}, {kind}", profit[x], digits=".4f", note=f"{unit}'s profit")
                for x in profit
            ),
            row(item, needed, holds=needed < rounds, digits=".3g", note=lasts),
        ]
    return rows


def lemmas(options: Options) -> list[Row]:
    """Lemma 2 (the best point alone), Lemma 3 (clean phases) and Lemma 5 (how long a budget lasts)."""
    instances = options.pick(40, 200, 500)
    gap, _ = best_ratio_alone(instances)
    scope = f"the worst of {instances} instances of four arms, exact"
    rows = Summary(
        [row("lemmas: R₁ over μ_r(x*)/μ_c(x*)", gap, published="≤ 2", holds=gap <= 2, note=scope)]
    )
    phases, lanes = options.pick((6, 100), (8, 400), (10, 4000))
    unclean, largest_gap, active = _in_phases(phases, lanes)
    for phase, wrong in enumerate(unclean, start=1):
        lower, upper = common.clopper_pearson(wrong, lanes)
        note = f"{wrong} of {lanes} lanes; yes: the one-sided 95 % bound {upper:.2g} is below"
        item = f"lemmas: unclean phases {phase}"
        holds = common.between(lower, upper, 0.0, 4.0**-phase)
        rows.add(item, wrong / lanes, published=f"≤ {4.0**-phase:.2g}", holds=holds, note=note)
    item = "lemmas: μ(x*) − μ(x_t) over 3E_t(x_t)"
    at = f"the worst round of {lanes} lanes of {phases} phases"
    rows.add(item, largest_gap, published="≤ 1 (Step 2)", holds=bool(largest_gap <= 1), note=at)
    first, last = phases // 2, phases - 1
    lengths = 2.0 ** np.array([first, last])
    mean, se = mean_se(active[:, [first, last]])
    step = np.log(lengths[1] / lengths[0])
    slope, error = np.log(mean[1] / mean[0]) / step, float(np.hypot(*(se / mean))) / step
    bound = 1 - np.log(np.log(lengths[1]) / np.log(lengths[0])) / step
    item = f"lemmas: exponent of the active points in the rounds of a phase, {lengths[0]:g} to {lengths[1]:g}"
    at = f"{mean[0]:.3g} and {mean[1]:.3g} points; yes: at most that of t/ln t, by 2 s.e.; λ = 0.5"
    holds = above_zero(bound - slope, error)
    rows.add(item, slope, error, published=f"≤ {bound:.2f} (§3.1)", holds=holds, note=at)
    delta = 0.05
    for lam in (0.1, 0.5, 0.9):
        for budget in (100, 1000):
            # Step 3 with δ = B^(−1/(d+2)) and d = 1, the largest there is on [0, 1]
            chance = stats.binom.cdf(budget - 1, math.floor(2 * budget / lam**2), lam)
            bound = budget ** (-1 / 3)
            item = f"lemmas: P(t_a > 6B/(λ²(d + 2))), λ = {lam:g}, B = {budget}"
            note = "exact, d = 1, costs of 0 or 1 with mean λ; with a smaller d it is less"
            rows.add(
                item, chance, published=f"≤ {bound:.2g}", holds=bool(chance <= bound), note=note
            )
    for lam in (0.1, 0.5, 0.9):
        for budget in (100, 1000):
            spread = (1 - lam) / lam * math.sqrt(math.log(1 / delta))
            rounds = math.floor((math.sqrt(budget / lam) + spread) ** 2)
            chance = stats.binom.cdf(budget - 1, rounds, lam)  # the budget lasts longer
            item = f"lemmas: P(rounds > bound of Lemma 5), λ = {lam:g}, B = {budget}"
            note = (
                "exact, costs of 0 or 1 with mean λ, δ = 0.05; the proof's range of a cost is 1 − λ"
            )
            rows.add(item, chance, published=f"≤ {delta:g}", holds=bool(chance <= delta), note=note)
    return rows


def _in_phases(phases: int, lanes: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Of phases: lanes with a ratio outside its radius, the largest gap in radii, active points."""
    rounds, lam = 2**phases - 1, 0.5
    world = cost_valley([0.3], lam=lam)
    policy = p.BZoom(
        lam=lam, lipschitz=float(world.slopes(lambda reward, cost: reward / cost)[0]), capacity=256
    )
    limit, number = jb.TotalBudget(float(rounds), last_pull="forfeits"), np.arange(1, rounds + 1)
    phase = np.floor(np.log2(number)).astype(int)  # from 0
    means = world.values()
    best = float((means[0] / means[1]).max())

    def lane_summary(replicate: Any) -> Any:
        lane = jb.rollout(
            policy, world, limit, key=jax.random.key(3), rounds=rounds, replicate=replicate
        )
        state = lane.state
        parameters = jax.tree.map(lambda table: jnp.asarray(table)[0], world.parameters)
        means = world.means_with(state.point.astype(jnp.float32) / ticks.ONE, parameters)
        reward, cost = (x.astype(jnp.float32) for x in means)
        ratio = ticks.to_float(state.reward) / jnp.maximum(
            lam * state.pulls, ticks.to_float(state.cost)
        )
        radius = policy.radius(
            n=state.pulls.astype(jnp.float32), phase=state.phase[:, None].astype(jnp.float32)
        )
        outside = (jnp.abs(ratio - reward / cost) > radius) & (state.pulls > 0)
        is_played = state.point == jnp.rint(lane.action * ticks.ONE).astype(jnp.int32)[:, None]
        gaps = jnp.where(
            is_played & (state.pulls > 0) & lane.played[:, None],
            (best - reward / cost) / (3 * radius),
            0,
        )
        return (
            jnp.zeros(phases, jnp.int32).at[phase].add(jnp.any(outside, axis=1)),
            jnp.max(gaps),
            state.count[2 ** np.arange(1, phases + 1) - 2],
        )

    wrong, gaps, active = jax.jit(lambda ids: jax.lax.map(lane_summary, ids, batch_size=100))(
        jnp.arange(lanes)
    )
    return np.asarray((wrong > 0).sum(axis=0)), float(gaps.max()), np.asarray(active, float)


def _mean_reward(x: jax.Array, parameters: Any) -> jax.Array:
    return 0.5 + 0.5 * x


def _mean_cost(x: jax.Array, parameters: Any) -> jax.Array:
    return parameters["lam"] + (1 - parameters["lam"]) * x


def worst(options: Options) -> list[Row]:
    """§4's worst case for Zooming: the point of the best reward is that of the worst ratio."""
    budget, runs = options.pick(2_000.0, 50_000.0, 500_000.0), options.pick(10, 40, 100)
    lams = np.array([0.25, 0.125, 0.0625])
    limit = jb.TotalBudget(budget, last_pull="forfeits")
    steep = Continuum.of(
        _mean_reward,
        _mean_cost,
        lipschitz_reward=0.5,
        lipschitz_cost=1 - lams,
        parameters={"lam": lams},
        remembered=tables.CAPACITY,
    )
    ratio = steep.slopes(lambda reward, cost: reward / cost)[None]
    known: dict[str, Any] = {"budget": budget, "lam": lams[None], "capacity": tables.CAPACITY}
    policies: dict[str, Any] = {
        "BZ": p.SinglePhaseBZoom(lipschitz=ratio, **known),
        "Z": p.SinglePhaseZooming(lipschitz=0.5, **known),
    }
    fields = {"policies": policies, "constraint": limit, "replicates": runs}
    data = swept(options, "worst Z", environments=steep, seed=9, **fields)
    profits = data["reward"].values[:, 0, 0, ..., -1]
    shares = profits[1] / profits[0].mean(axis=1, keepdims=True)  # [λ, run]
    return _falls("worst: profit of Zooming over B-Zoom's", "λ", lams, shares)


def _falls(item: str, parameter: str, at: np.ndarray, shares: np.ndarray) -> list[Row]:
    """Does a share fall in ever worse cases? yes: each below the one before, by 2 s.e."""
    mean, se = mean_se(shares, axis=1)
    steps = [
        above_zero(mean[i] - mean[i + 1], np.hypot(se[i], se[i + 1])) for i in range(len(at) - 1)
    ]
    text = ", ".join(f"{x:.3f} at {value:g}" for x, value in zip(mean, at, strict=True))
    note = f"by {parameter}; yes: falls from each to the next, by 2 s.e."
    return [
        row(
            item,
            text,
            f"{se.max():.2g}",
            published="arbitrarily worse",
            holds=all_of(steps),
            note=note,
        )
    ]


# --- B-Zoom by a loop that shares nothing with the library: random numbers, instances, covering test and slope ----
ROOM = 96  # points; a lane that needs more ends there, and is counted


def independent(options: Options) -> list[Row]:
    """The BZ column of Table 1 by the library and by an independent loop, cell by cell."""
    if importlib.util.find_spec("numba") is None:
        print("b_zoom independent: skipped, numba is not installed", flush=True)
        return [row("independent", "skipped", note="numba is not installed")]
    budgets, lambdas, instances = table_sizes(options)
    groups, (references, reference_errors) = 2, tables.thousands(tables.bz_alone(options).pulls)
    rows, to_ours, to_printed, printed_to_ours = Summary(), [], [], []
    for b, k in np.ndindex(len(budgets), len(lambdas)):
        pulls, full = _by_loop(budgets[b], lambdas[k], groups, instances)
        # the error is that of a statistic of one group
        value, spread = (
            f(pulls).mean(axis=-1) / 1e3 for f in (tables.statistics, tables.standard_errors)
        )
        for s, name in enumerate(STATISTICS):
            reference, error = references[s, b, k], reference_errors[s, b, k]
            z_reference = (value[s] - reference) / np.sqrt(spread[s] ** 2 / groups + error**2)
            to_ours.append(z_reference)
            note = f"thousands of pulls; {groups} times {instances} instances; "
            note += f"ours {reference:.5g}, {z_reference:+.1f} s.e. away"
            printed = tables.TABLE1.get((budgets[b], lambdas[k], name, "BZ"))
            if printed is not None:
                z_printed = (value[s] - printed) / np.sqrt(
                    spread[s] ** 2 * (1 + 1 / groups) + 1 / 12
                )
                to_printed.append(z_printed)
                printed_to_ours.append(
                    float(tables.distance(np.asarray(printed), reference, error, 1.0))
                )
                note += f"; printed {printed:g}, {z_printed:+.1f} s.e. away"
            item = f"independent B={budgets[b]} λ={lambdas[k]:g} BZ {name}" + (
                f"; {full} lanes full" if full else ""
            )
            rows.add(item, value[s], spread[s] / groups**0.5, note=note, digits=".5g")
    summary = [inside("independent: within 3 s.e. of ours", to_ours, "both random", OURS)]
    if to_printed:
        item = "within 3 s.e. of the printed cells of BZ"
        summary.append(inside(f"independent: independent {item}", to_printed, "BZ alone"))
        summary.append(inside(f"independent: ours {item}", printed_to_ours, "BZ alone"))
    return [*summary, *rows]


def _by_loop(budget: int, lam: float, groups: int, instances: int) -> tuple[np.ndarray, int]:
    """Pulls ``[group, instance]`` of the independent loop, and how many lanes filled their room."""
    from experiments.b_zoom.loop import b_zoom  # needs Numba

    rng = np.random.default_rng([31, budget, round(1000 * lam)])
    centres, seeds = rng.random((groups, instances)), rng.integers(2**31, size=(groups, instances))
    pulls, full = np.zeros(centres.shape), 0
    for place, centre in np.ndenumerate(centres):
        pulls[place], points = b_zoom(
            budget, lam, steepest(centre, lam), centre, ROOM, int(seeds[place])
        )
        full += points == ROOM
    print(f"  independent, B = {budget}, λ = {lam:g}: {pulls.sum():.3g} rounds", flush=True)
    return pulls, full


def steepest(centre: float, lam: float) -> float:
    """The largest slope of μ_r/μ_c, on a fine grid."""
    x = np.linspace(0, 1, 200_001)
    ratio = (0.95 + 0.05 * x) / (lam + (1 - np.exp(-500 * (x - centre) ** 2)) / 5)
    return float(np.abs(np.diff(ratio)).max() * 200_000)
