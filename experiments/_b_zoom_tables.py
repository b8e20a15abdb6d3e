"""Tables 1 and 2 and Figure 1 of the B-Zoom paper, cell by cell, and what the paper concludes from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments import _b_zoom_play as play
from experiments import _b_zoom_published as published
from experiments.common import BLUE, GREEN, GREY, ORANGE, VERMILION, Options, Row, figure, mean_se, save, verdict

COLOUR = {"BZ": BLUE, "Z": VERMILION, "BV1": GREEN, "UCB1": ORANGE}
PULLS, REWARD = "pulls", "Σ reward"


def table1(options: Options) -> list[Row]:
    """Every cell of Table 1, counted as pulls and as rewards; claims about it."""
    plan, cells = play.table1(options)
    budgets, lambdas, _ = play.sizes(options)
    rows: list[Row] = []
    shares = {}
    for what in (PULLS, REWARD):
        samples = np.stack([_samples(cells[name], what) for name in play.COLUMNS])  # [column, budget, λ, instance]
        value, error = published.statistics(samples) / 1e3, published.errors(samples) / 1e3
        z = {}
        for b, budget in enumerate(budgets):
            for k, lam in enumerate(lambdas):
                printed = published.TABLE1.get((budget, lam))
                for s, statistic in enumerate(published.STATISTICS):
                    for c, name in enumerate(play.COLUMNS):
                        here = value[s, c, b, k], error[s, c, b, k]
                        row = _cell(
                            f"table1 B={budget} λ={lam:g} {name} {statistic}",
                            printed[s][c] if printed else None,
                            *here,
                            1.0,
                            what,
                        )
                        z[statistic, name, b, k] = row[1]
                        if what == PULLS:
                            rows.append(row[0])
        shares[what] = z
    rows += (
        _shares("table1", shares, options)
        + _alike(plan, budgets, lambdas, options)
        + _claims(cells, budgets, lambdas, options)
    )
    seconds = sum(c.seconds for c in cells.values())
    total = sum(c.pulls.sum() for c in cells.values())
    note = f"{total:.3g} rounds; " + ", ".join(f"{name} {c.seconds:.0f} s" for name, c in cells.items())
    rows.append(
        Row(
            "table1: seconds, compile included",
            "",
            f"{seconds:.0f}",
            "",
            verdict(seconds <= 900),
            f"yes: at most 900; {note}",
        )
    )
    full = sum(c.full for c in cells.values())
    rows.append(
        Row(
            "table1: lanes that filled their capacity",
            "0",
            str(full),
            "",
            verdict(full == 0),
            f"{play.CAPACITY} points",
        )
    )
    _heat(options, plan, cells, shares[PULLS], budgets, lambdas)
    return rows


def _samples(cells: play.Cells, what: str) -> np.ndarray:
    return cells.pulls if what == PULLS else cells.reward


def _cell(item: str, printed: float | None, value: float, error: float, unit: float, note: str) -> tuple[Row, float]:
    if printed is None:
        return Row(
            item, "", f"{value:.4g}", f"{error:.2g}", "unclear", f"{note}, thousands; not a published budget"
        ), np.nan
    z = float(published.distance(np.asarray(printed, float), np.asarray(value), np.asarray(error), unit))
    note = f"{note}, thousands; {z:+.1f} s.e. between them"
    return Row(item, f"{printed:g}", f"{value:.5g}", f"{error:.2g}", verdict(abs(z) <= 3), note), z


def _shares(item: str, by_reading: dict[str, dict[Any, float]], options: Options) -> list[Row]:
    """Cells within 3 standard errors: in all, by column, by statistic."""
    rows = []
    for what, z in by_reading.items():
        groups: dict[str, list[float]] = {"all cells": list(z.values())}
        for key, value in z.items():
            groups.setdefault(f"column {key[1]}", []).append(value)
            groups.setdefault(f"row {key[0]}", []).append(value)
        for name, values in groups.items():
            known = np.abs([v for v in values if np.isfinite(v)])
            if not known.size:
                continue
            inside = int((known <= 3).sum())
            rows.append(
                Row(
                    f"{item}: within 3 s.e., {what}, {name}",
                    "all",
                    f"{inside} of {known.size}",
                    "",
                    verdict(inside == known.size),
                    f"largest {known.max():.1f} s.e.",
                )
            )
    return rows


def _alike(plan: play.Design, budgets: Any, lambdas: Any, options: Options) -> list[Row]:
    """The UCB1 columns as they would be if all rewards were alike, so that UCB1 pulled its K points in turn.

    B/c̄ pulls, c̄ the mean cost of the points, and the spread that costs of 0 and 1 give them.
    """
    rng, z = np.random.default_rng(3), {}
    _, cost = play.table1_world(plan).means_at(plan.points)
    for size in play.SIZES:
        name = f"UCB1-{size}"
        mean, spread = cost[:, :size].mean(axis=1), (cost * (1 - cost))[:, :size].mean(axis=1)
        pulls = plan.budget / mean + rng.normal(size=mean.size) * np.sqrt(plan.budget * spread / mean**3)
        samples = pulls.reshape(plan.shape)
        value, error = published.statistics(samples) / 1e3, published.errors(samples) / 1e3
        for s, statistic in enumerate(published.STATISTICS):
            for b, budget in enumerate(budgets):
                for k, lam in enumerate(lambdas):
                    row = published.TABLE1.get((budget, lam))
                    printed = row[s][play.COLUMNS.index(name)] if row else None
                    z[statistic, name, b, k] = _cell("", printed, value[s, b, k], error[s, b, k], 1.0, PULLS)[1]
    return _shares("table1 if UCB1 saw equal rewards", {"B/c̄ pulls": z}, options)


def _claims(cells: dict[str, play.Cells], budgets: Any, lambdas: Any, options: Options) -> list[Row]:
    """The paper's conclusions, on measured pulls."""
    value = {n: published.statistics(c.pulls) for n, c in cells.items()}  # [statistic, budget, λ]
    others = [n for n in play.COLUMNS if n != "BZ"]
    rows = []
    for s, statistic in ((0, "m"), (1, "Q1")):
        best = value["BZ"][s] >= np.max([value[n][s] for n in others], axis=0)
        rows.append(
            Row(
                f"claim: {statistic} of BZ is the best",
                "in most cells (Q1 at B = 5·10⁴: λ ≤ 0.1)",
                f"{int(best.sum())} of {best.size}",
                "",
                verdict(bool(best.mean() > 0.5)),
                _where(~best, budgets, lambdas),
            )
        )
        gain = (value["BZ"][s] / np.max([value[n][s] for n in others], axis=0) - 1).mean(axis=1)
        text = ", ".join(f"{100 * g:.1f} % at {b:g}" for g, b in zip(gain, budgets, strict=True))
        rows.append(
            Row(
                f"claim: lead of BZ in {statistic} grows with B",
                "≈ 1 % to more than 10 %",
                text,
                "",
                verdict(bool((np.diff(gain) > 0).all())),
                "over the best other column, mean over λ",
            )
        )
    for one, other, text in (
        ("BZ", "Z", "BZ − Z"),
        ("BZ", "UCB1-5", "BZ − UCB1-5"),
        ("BZ", "UCB1-15", "BZ − UCB1-15"),
        ("BV1-5", "BZ", "BV1-5 − BZ"),
        ("BV1-10", "BZ", "BV1-10 − BZ"),
        ("BV1-15", "BZ", "BV1-15 − BZ"),
    ):
        ratio = cells[one].pulls / cells[other].pulls - 1
        mean, se = mean_se(ratio, axis=-1)
        above, below = mean > 2 * se, mean < -2 * se
        holds = True if above.all() else False if below.any() else None
        rows.append(
            Row(
                f"claim: mean profit, {text}",
                "> 0 in all cells",
                f"above in {int(above.sum())}, below in {int(below.sum())} of {mean.size}",
                f"{se.max():.2g}",
                verdict(holds),
                f"paired by instance, 2 s.e.; up to {100 * (value[one][3] / value[other][3] - 1).max():.0f} % of means",
            )
        )
    best = value["BV1-15"][2] >= np.max([value[n][2] for n in play.COLUMNS], axis=0)
    rows.append(
        Row(
            "claim: BV1-15 has the best median",
            "in most cells",
            f"{int(best.sum())} of {best.size}",
            "",
            verdict(bool(best.mean() > 0.5)),
            _where(~best, budgets, lambdas),
        )
    )
    if 0.1 in lambdas:
        k = lambdas.index(0.1)
        for b, budget in enumerate(budgets):
            spread = {
                n: np.subtract(*np.quantile(c.pulls[b, k], [0.75, 0.25])) / np.median(c.pulls[b, k])
                for n, c in cells.items()
            }
            narrow = spread["BZ"] <= min(spread[n] for n in play.COLUMNS if n.startswith("BV1"))
            text = ", ".join(f"{n} {100 * x:.1f} %" for n, x in spread.items())
            rows.append(
                Row(
                    f"claim: compact distribution of BZ, λ = 0.1, B = {budget}",
                    "extremely low variance",
                    text,
                    "",
                    verdict(bool(narrow)),
                    "interquartile range over median; yes: narrower than every BV1",
                )
            )
    return rows


def _where(misses: np.ndarray, budgets: Any, lambdas: Any) -> str:
    cells = [f"B={budgets[b]} λ={lambdas[k]:g}" for b, k in np.argwhere(misses)]
    return "not in " + "; ".join(cells) if cells else "in all cells"


def _heat(options: Options, plan: Any, cells: Any, z: dict[Any, float], budgets: Any, lambdas: Any) -> None:
    """Distances of all cells of Table 1 as one picture."""
    if not np.isfinite(list(z.values())).any():
        return
    picture, axes = figure(1, 4, (13, 5.2))
    for axis, statistic in zip(axes, published.STATISTICS, strict=True):
        grid = np.array(
            [[z[statistic, n, b, k] for n in play.COLUMNS] for b in range(len(budgets)) for k in range(len(lambdas))]
        )
        shown = axis.imshow(np.clip(grid, -6, 6), cmap="PuOr", vmin=-6, vmax=6, aspect="auto")
        for (i, j), value in np.ndenumerate(grid):
            axis.text(
                j, i, f"{value:.0f}", ha="center", va="center", fontsize=7, color="white" if abs(value) > 4 else "black"
            )
        axis.set(title=statistic, xticks=range(len(play.COLUMNS)))
        axis.set_xticklabels(play.COLUMNS, rotation=60, fontsize=8)
        axis.set_yticks(range(grid.shape[0]))
        labels = [f"B = {b:,}, λ = {lam:g}" for b in budgets for lam in lambdas]
        axis.set_yticklabels(labels if axis is axes[0] else [], fontsize=8)
        axis.grid(False)
    picture.colorbar(shown, ax=list(axes), label="(measured − published) / s.e. of the difference", extend="both")
    picture.suptitle("Table 1: distance of every cell in standard errors, counted as pulls")
    save(picture, options.out / "table1.png")


def figure1(options: Options) -> list[Row]:
    """Figure 1: box plots at λ = 0.1. The caption says B = 500,000, the text B = 100,000: both."""
    _, cells = play.table1(options)
    budgets, lambdas, _ = play.sizes(options)
    shown = [b for b in budgets if b >= 100_000] or list(budgets[-2:])
    picture, axes = figure(1, len(shown), (6.2 * len(shown), 4.4))
    for axis, budget in zip(axes, shown, strict=True):
        b, k = budgets.index(budget), lambdas.index(0.1)
        data = [cells[n].pulls[b, k] / 1e3 for n in play.COLUMNS]
        boxes = axis.boxplot(data, whis=(0, 100), patch_artist=True, tick_labels=play.COLUMNS, widths=0.6)
        for box, name in zip(boxes["boxes"], play.COLUMNS, strict=True):
            box.set(facecolor=COLOUR[name.split("-")[0]], alpha=0.5)
        for line in boxes["medians"]:
            line.set(color="black")
        flat = budget / (0.1 + 0.2) / 1e3
        axis.axhline(flat, color=GREY, linestyle=":", linewidth=1, label="pulls off the valley")
        axis.legend(frameon=False, fontsize=8, loc="upper left")
        axis.set(title=f"B = {budget:,}", ylabel="pulls (thousands)", yscale="log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.tick_params(axis="x", rotation=45)
        axis.tick_params(axis="y", which="minor", labelsize=7)
    picture.suptitle("Pulls over instances at λ = 0.1: box = quartiles, whiskers = all")
    save(picture, options.out / "figure1.png")
    rows = []
    for budget in shown:
        b, k = budgets.index(budget), lambdas.index(0.1)
        for name in play.COLUMNS:
            q = np.quantile(cells[name].pulls[b, k], [0, 0.25, 0.5, 0.75, 1]) / 1e3
            rows.append(
                Row(
                    f"figure1 B={budget} {name}",
                    "picture only",
                    " ".join(f"{x:.4g}" for x in q),
                    "",
                    "unclear",
                    "min, quartiles, max of pulls in thousands",
                )
            )
    return rows


def table2(options: Options) -> list[Row]:
    """Table 2 as printed (peak 0.2) and with half the peak, which fits; Zooming knows the true slope."""
    rows: list[Row] = []
    budgets, _, _ = play.sizes(options)
    for reading, peak in (("printed peak 0.2", play.PRINTED_PEAK), ("peak 0.1", play.FITTED_PEAK)):
        slope = peak * float(np.sqrt(1000 / np.e))
        _, cells = play.table2(options, peak, slope)
        z = {}
        for c, name in enumerate(play.TABLE2):
            value, error = (f(cells[name].reward[:, 0]) / 1e3 for f in (published.statistics, published.errors))
            for b, budget in enumerate(budgets):
                printed = published.TABLE2.get(budget)
                for s, statistic in enumerate(published.STATISTICS):
                    row, z[statistic, name, b, 0] = _cell(
                        f"table2 {reading} B={budget} {name} {statistic}",
                        printed[s][c] if printed else None,
                        value[s, b],
                        error[s, b],
                        0.1,
                        "Σ reward",
                    )
                    rows.append(row)
        rows += _shares(f"table2 {reading}", {"Σ reward": z}, options)
        for b, budget in enumerate(budgets):
            low = published.statistics(cells["Z"].reward[b, 0])[0]
            best = max(published.statistics(cells[n].reward[b, 0])[0] for n in play.TABLE2[1:])
            rows.append(
                Row(
                    f"table2 {reading} B={budget}: m of Z is the highest",
                    "yes",
                    f"{low / 1e3:.3g} against {best / 1e3:.3g}",
                    "",
                    verdict(bool(low > best)),
                    "thousands",
                )
            )
    return rows
