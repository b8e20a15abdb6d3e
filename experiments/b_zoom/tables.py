"""Tables 1 and 2 and Figure 1 of the B-Zoom paper, cell by cell."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.b_zoom import play, published
from experiments.b_zoom.claims import claims, most
from experiments.b_zoom.published import STATISTICS
from experiments.common.figures import boxes, figure, save
from experiments.common.looks import BLUE, GREEN, GREY, ORANGE, VERMILION
from experiments.common.rows import Row, row
from experiments.common.running import Options

COLOUR = {"BZ": BLUE, "Z": VERMILION, "BV1": GREEN, "UCB1": ORANGE}
PULLS, REWARD = "pulls", "Σ reward"

Distances = dict[tuple[str, str, int, int], float]  # in standard errors, by statistic, column, budget and λ


def table1(options: Options) -> list[Row]:
    """Every cell of Table 1, counted as pulls and as rewards; claims about it."""
    plan, cells = play.table1(options)
    budgets, lambdas, _ = play.sizes(options)
    rows: list[Row] = []
    distances: dict[str, Distances] = {}
    for what in (PULLS, REWARD):
        columns = [cells[name].pulls if what == PULLS else cells[name].reward for name in play.COLUMNS]
        samples = np.stack(columns)  # [column, budget, λ, instance]
        value, error = published.statistics(samples) / 1e3, published.errors(samples) / 1e3
        z: Distances = {}
        for b, k, s, c in np.ndindex(len(budgets), len(lambdas), len(STATISTICS), len(play.COLUMNS)):
            at, name = (s, c, b, k), play.COLUMNS[c]
            printed = published.in_table1(budgets[b], lambdas[k], s, c)
            item = f"table1 B={budgets[b]} λ={lambdas[k]:g} {name} {STATISTICS[s]}"
            told, z[STATISTICS[s], name, b, k] = _cell(item, printed, value[at], error[at], 1.0, what)
            rows += [told] if what == PULLS else []
        distances[what] = z
    rows += _shares("table1", distances) + _alike(plan, budgets, lambdas) + claims(cells, budgets, lambdas)
    _heat(options, distances[PULLS], budgets, lambdas)
    return rows + _totals(cells)


def _totals(cells: dict[str, play.Cells]) -> list[Row]:
    seconds, full = sum(c.seconds for c in cells.values()), sum(c.full for c in cells.values())
    total = sum(c.pulls.sum() for c in cells.values())
    note = f"yes: at most 900; {total:.3g} rounds; "
    note += ", ".join(f"{name} {c.seconds:.0f} s" for name, c in cells.items())
    item, points = "table1: lanes that filled their capacity", f"{play.CAPACITY} points"
    return [
        row("table1: seconds, compile included", seconds, holds=seconds <= 900, note=note, digits=".0f"),
        row(item, full, published=0, holds=full == 0, note=points),
    ]


def _cell(item: str, printed: float | None, value: Any, error: Any, unit: float, note: str) -> tuple[Row, float]:
    note = f"{note}, thousands"
    if printed is None:
        return row(item, value, error, note=f"{note}; not a published budget"), np.nan
    z = float(published.distance(np.asarray(printed, float), value, error, unit))
    note += f"; {z:+.1f} s.e. between them"
    return row(item, value, error, published=f"{printed:g}", holds=abs(z) <= 3, note=note, digits=".5g"), z


def _shares(item: str, by_reading: dict[str, Distances]) -> list[Row]:
    """Cells within 3 standard errors: in all, by column, by statistic."""
    rows = []
    for what, z in by_reading.items():
        groups: dict[str, list[float]] = {"all cells": list(z.values())}
        for key, value in z.items():
            groups.setdefault(f"column {key[1]}", []).append(value)
            groups.setdefault(f"row {key[0]}", []).append(value)
        for name, values in groups.items():
            if known := [v for v in values if np.isfinite(v)]:
                note = f"largest {np.abs(known).max():.1f} s.e."
                rows.append(published.inside(f"{item}: within 3 s.e., {what}, {name}", known, note))
    return rows


def _alike(plan: play.Design, budgets: Any, lambdas: Any) -> list[Row]:
    """The UCB1 columns as they would be if all rewards were alike, so that UCB1 pulled its K points in turn.

    B/c̄ pulls, c̄ the mean cost of the points, and the spread that costs of 0 and 1 give them.
    """
    rng = np.random.default_rng(3)
    z: Distances = {}
    _, cost = play.table1_world(plan).means_at(plan.points)
    for size in play.SIZES:
        name = f"UCB1-{size}"
        mean, spread = cost[:, :size].mean(axis=1), (cost * (1 - cost))[:, :size].mean(axis=1)
        pulls = plan.budget / mean + rng.normal(size=mean.size) * np.sqrt(plan.budget * spread / mean**3)
        samples = pulls.reshape(plan.shape)
        value, error = published.statistics(samples) / 1e3, published.errors(samples) / 1e3
        for s, b, k in np.ndindex(*value.shape):
            printed = published.in_table1(budgets[b], lambdas[k], s, play.COLUMNS.index(name))
            z[STATISTICS[s], name, b, k] = _cell("", printed, value[s, b, k], error[s, b, k], 1.0, PULLS)[1]
    return _shares("table1 if UCB1 saw equal rewards", {"B/c̄ pulls": z})


def _heat(options: Options, z: Distances, budgets: Any, lambdas: Any) -> None:
    """Distances of all cells of Table 1 as one picture."""
    if not np.isfinite(list(z.values())).any():
        return
    places = list(np.ndindex(len(budgets), len(lambdas)))
    picture, axes = figure(1, 4, (13, 5.2))
    for axis, statistic in zip(axes, STATISTICS, strict=True):
        grid = np.array([[z[statistic, n, b, k] for n in play.COLUMNS] for b, k in places])
        shown = axis.imshow(np.clip(grid, -6, 6), cmap="PuOr", vmin=-6, vmax=6, aspect="auto")
        for (i, j), value in np.ndenumerate(grid):
            colour = "white" if abs(value) > 4 else "black"
            axis.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=7, color=colour)
        axis.set(title=statistic, xticks=range(len(play.COLUMNS)))
        axis.set_xticklabels(play.COLUMNS, rotation=60, fontsize=8)
        axis.set_yticks(range(grid.shape[0]))
        labels = [f"B = {budgets[b]:,}, λ = {lambdas[k]:g}" for b, k in places]
        axis.set_yticklabels(labels if axis is axes[0] else [], fontsize=8)
        axis.grid(False)
    picture.colorbar(shown, ax=list(axes), label="(measured − published) / s.e. of the difference", extend="both")
    title = "Table 1: distance of every cell in standard errors, counted as pulls"
    save(picture, options.out / "table1.png", title)


def figure1(options: Options) -> list[Row]:
    """Figure 1: box plots at λ = 0.1. The caption says B = 500,000, the text B = 100,000: both."""
    _, cells = play.table1(options)
    budgets, lambdas, _ = play.sizes(options)
    k, rows = lambdas.index(0.1), []
    shown = [b for b in budgets if b >= 100_000] or list(budgets[-2:])
    picture, axes = figure(1, len(shown), (6.2 * len(shown), 4.4))
    for axis, budget in zip(axes, shown, strict=True):
        pulls = {name: cells[name].pulls[budgets.index(budget), k] for name in play.COLUMNS}
        boxes(axis, [x / 1e3 for x in pulls.values()], [COLOUR[name.split("-")[0]] for name in pulls])
        axis.set_xticks(range(len(pulls)), list(pulls))
        flat = budget / (0.1 + 0.2) / 1e3
        axis.axhline(flat, color=GREY, linestyle=":", linewidth=1, label="pulls off the valley")
        axis.legend(frameon=False, fontsize=8, loc="upper left")
        axis.set(title=f"B = {budget:,}", ylabel="pulls (thousands)", yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.tick_params(axis="x", rotation=45)
        axis.tick_params(axis="y", which="minor", labelsize=7)
        for name, x in pulls.items():
            ends = " ".join(f"{q:.4g}" for q in np.quantile(x, [0, 0.25, 0.5, 0.75, 1]) / 1e3)
            note = "min, quartiles, max of pulls in thousands"
            rows.append(row(f"figure1 B={budget} {name}", ends, published="picture only", note=note))
    save(picture, options.out / "figure1.png", "Pulls over instances at λ = 0.1: box = quartiles, whiskers = all")
    return rows


def table2(options: Options) -> list[Row]:
    """Table 2 as printed (peak 0.2) and with half the peak, which fits; Zooming knows the true slope."""
    rows: list[Row] = []
    budgets, _, _ = play.sizes(options)
    for reading, peak in (("printed peak 0.2", play.PRINTED_PEAK), ("peak 0.1", play.FITTED_PEAK)):
        _, cells = play.table2(options, peak, peak * float(np.sqrt(1000 / math.e)))
        z: Distances = {}
        for c, name in enumerate(play.TABLE2):
            value, error = (f(cells[name].reward[:, 0]) / 1e3 for f in (published.statistics, published.errors))
            for b, s in np.ndindex(len(budgets), len(STATISTICS)):
                printed = published.TABLE2[budgets[b]][s][c] if budgets[b] in published.TABLE2 else None
                item = f"table2 {reading} B={budgets[b]} {name} {STATISTICS[s]}"
                told, z[STATISTICS[s], name, b, 0] = _cell(item, printed, value[s, b], error[s, b], 0.1, REWARD)
                rows.append(told)
        rows += _shares(f"table2 {reading}", {REWARD: z})
        for b, budget in enumerate(budgets):
            samples = {name: cells[name].reward[b : b + 1] for name in play.TABLE2}
            claim = f"table2 {reading}, B = {budget:,}: m of Z is the highest"
            rows.append(most(claim, "yes", "Z", samples, "m", (budget,), (play.FIXED_COST,)))
    return rows
