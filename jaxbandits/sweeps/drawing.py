"""Pictures of a sweep: regret over a parameter, and every policy at its best in all cases."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._plots import Picture, label_grid, nth_look, plain_numbers
from jaxbandits._tables import in_greek

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxbandits.sweeps.result import Curve, SweepResult

_MOST_PANELS = 24


def curves(result: SweepResult, name: str, policies: list[str], width: float = 12.0) -> Figure:
    """Regret over one parameter of some policies, a panel for each environment and budget, all on
    the same scales.

    ``width`` is that of the page, in inches: so many panels stand side by side as have room, three
    at most.
    """
    cells = result.cells()[:_MOST_PANELS]
    columns = min(3, len(cells), max(1, int(width / 2.2)))
    lines = -(-len(cells) // columns)
    figure = Picture(figsize=(max(3.7 * columns, 5.5), 2.8 * lines + 0.9), layout="constrained")
    axes = list(np.ravel(figure.subplots(lines, columns, squeeze=False)))
    for axis in axes[len(cells) :]:
        axis.set_visible(False)
    if len(result.cells()) > len(cells):
        figure.text(
            0.01, 0.01, f"the first {len(cells)} of {len(result.cells())} cases", fontsize=8
        )
    budgets = result.data["budget"].values
    by_cell = {cell: [result.curve(policy, *cell) for policy in policies] for cell in cells}
    means = [
        np.concatenate([curve.regret.value for curve in of_cell]) for of_cell in by_cell.values()
    ]
    log_up = min(x.min() for x in means) > 0 and any(x.max() / x.min() > 8 for x in means)
    for axis, (environment, budget) in zip(axes, cells, strict=False):
        for number, curve in enumerate(by_cell[environment, budget]):
            _one_curve(axis, curve, curve.parameters[name], number)
        x = np.concatenate([curve.parameters[name] for curve in by_cell[environment, budget]])
        log = bool(x.min() > 0 and x.max() / x.min() > 8)
        if log:
            axis.set_xscale("log")
        # Inches of a label
        label_grid(axis.xaxis, x, log=log, share=0.42 / (min(3.7, width / columns) - 0.5))
        if log_up:
            axis.set_yscale("log")
            plain_numbers(axis.yaxis)
        at_budget = f", budget {budgets[budget]:,.6g}" if budgets.size > 1 else ""
        axis.set_title(environment + at_budget, fontsize=9)
        axis.grid(alpha=0.3, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(which="both", labelsize=8)
        axis.set_xlabel(in_greek(name), fontsize=9)
    figure.supylabel("regret at the end [reward]", fontsize=10)
    between = " " if len(cells) > 1 else "\n"
    figure.suptitle(
        f"bars: difference to the best value, paired, all of the sweep at once (95 %);{between}"
        "hollow: the bar is above the best (dotted), clearly worse; star: recommended",
        fontsize=8,
    )
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _one_curve(axis: Any, curve: Curve, values: np.ndarray, number: int) -> None:
    order = np.argsort(values)
    x, mean = values[order], curve.regret.value.values[order]
    colour, marker, dashes = nth_look(number)
    axis.plot(x, mean, color=colour, linestyle=dashes, linewidth=1.3)
    middle, low, high = (curve.apart[end].values[order] for end in ("difference", "low", "high"))
    if np.isfinite(low).all():
        axis.errorbar(
            x,
            mean,
            [middle - low, high - middle],
            fmt="none",
            ecolor=colour,
            elinewidth=0.9,
            capsize=2,
        )
    # A bar that stays above this line is a value that is clearly worse
    axis.axhline(mean.min(), color=colour, linestyle=":", linewidth=0.8, zorder=1)
    not_worse = curve.indistinguishable[order]
    look = {"linestyle": "none", "marker": marker, "markersize": 4.5, "color": colour}
    axis.plot(x[~not_worse], mean[~not_worse], markerfacecolor="white", **look)
    axis.plot(x[not_worse], mean[not_worse], label=curve.policy.replace("$", r"\$"), **look)
    star = {"marker": "*", "markersize": 11, "markerfacecolor": colour, "markeredgecolor": "black"}
    axis.plot(values[curve.best], curve.regret.value.values[curve.best], zorder=3, **star)


def cases(result: SweepResult) -> Figure:
    """A panel per policy at its best value: how far it is above the best policy of a case."""
    environments = list(dict.fromkeys(environment for environment, _ in result.cells()))
    budgets, policies = result.data["budget"].values, result.policies[:_MOST_PANELS]
    best = np.full((len(policies), len(environments), budgets.size), np.nan)
    values = np.full(best.shape, "", object)
    for row, (environment, budget) in itertools.product(range(len(policies)), result.cells()):
        curve = result.curve(policies[row], environment, budget)
        at = (row, environments.index(environment), budget)
        best[at] = curve.regret.value[curve.best]
        values[at] = "\n".join(
            f"{name} = {x[curve.best]:.3g}" for name, x in curve.parameters.items()
        )
    lowest = best.min(axis=0)
    more = 100 * (best / np.where(lowest > 0, lowest, np.nan) - 1)  # in percent
    scale = max(float(np.nanmax(more, initial=0)), 1.0)
    size = max(3.0, 1.1 * budgets.size) * len(policies) + 1.5, 0.7 * len(environments) + 1.6
    figure = Picture(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(policies), squeeze=False)[0]
    for axis, policy, percents, texts in zip(axes, policies, more, values, strict=True):
        image = axis.imshow(percents, aspect="auto", cmap="cividis_r", vmin=0, vmax=scale)
        for (line, column), text in np.ndenumerate(texts):
            light = not percents[line, column] > scale / 2
            caption = f"{text}\n" * bool(text) + f"+{percents[line, column]:.0f} %"
            axis.text(
                column,
                line,
                caption,
                ha="center",
                va="center",
                fontsize=7,
                color="black" if light else "white",
            )
        axis.set_xticks(range(budgets.size), [f"{budget:,.6g}" for budget in budgets], fontsize=8)
        axis.set_yticks([])
        axis.set(xlabel="budget")
        axis.set_title(policy, fontsize=9)
    axes[0].set_yticks(range(len(environments)), environments, fontsize=8)
    figure.colorbar(image, ax=list(axes), label="% above the least regret")
    figure.suptitle(
        "each policy at its best value, against the policy with the least regret in that case",
        fontsize=9,
    )
    return figure
