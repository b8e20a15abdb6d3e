"""The picture of a sweep: by how much each value of a parameter is worse than the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from jaxbandits._plots import BLACK, Picture, is_log, label_grid, nth_look, set_key
from jaxbandits._tables import in_greek

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from jaxbandits.sweeps.result import SweepResult

_MOST_PANELS = 24
Values = dict[str, np.ndarray]  # of the parameter, by policy


def curves(result: SweepResult, name: str, policies: list[str], width: float = 12.0) -> Figure:
    """Paired differences to the best setting of a panel, over one parameter of some policies; a panel
    for each environment and budget.

    ``width`` is that of the page, in inches: so many panels stand side by side as have room, three
    at most, and the last line's in its middle.
    """
    cells = result.cells()[:_MOST_PANELS]
    most = min(3, len(cells), max(1, int(width / 2.2)))
    columns = (
        min(range(most, max(most - 2, 0), -1), key=lambda n: -len(cells) % n) if most > 2 else most
    )
    lines = -(-len(cells) // columns)
    figure = Picture(figsize=(max(3.7 * columns, 5.5), 2.8 * lines + 0.5), layout="constrained")
    grid, axes = figure.add_gridspec(lines, 2 * columns), []
    for number in range(len(cells)):
        line, column = divmod(number, columns)
        # The last line's panels stand in its middle.
        first = 2 * column + (-len(cells) % columns) * (line == lines - 1)
        axes.append(figure.add_subplot(grid[line, first : first + 2]))
    if len(result.cells()) > len(cells):
        figure.text(
            0.01, 0.01, f"the first {len(cells)} of {len(result.cells())} cases", fontsize=8
        )
    values = {policy: result.curve(policy, *cells[0]).parameters[name] for policy in policies}
    x = np.concatenate(list(values.values()))
    log, sure = is_log(x), True
    for axis, cell in zip(axes, cells, strict=False):
        sure = _panel(axis, result, cell, values) and sure
        axis.set_xscale("log" if log else "linear")
        # Inches of a label
        label_grid(axis.xaxis, x, log=log, share=0.42 / (min(3.7, width / columns) - 0.5))
        axis.grid(alpha=0.3, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(which="both", labelsize=8)
        axis.set_xlabel(in_greek(name), fontsize=9)
    figure.supylabel("regret above the best (reward)", fontsize=10)
    looks = [nth_look(number) for number in range(len(policies))] if len(policies) > 1 else []
    keys = [Line2D([], [], color=c, linestyle=dash, marker=mark, ms=4.5) for c, mark, dash in looks]
    labels = [policy.replace("$", r"\$") for policy in policies[: len(keys)]]
    keys.append(Line2D([], [], color=BLACK, linestyle="none", marker="*", ms=9))
    labels.append("best value of a policy" if len(policies) > 1 else "best value")
    if sure:
        hollow: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "white"}
        keys.append(Line2D([], [], color=BLACK, ms=4.5, **hollow))
        labels.append("clearly worse (95 %, all at once)")
    set_key(figure, keys, labels)
    return figure


def _panel(axis: Any, result: SweepResult, cell: tuple[str, int], values: Values) -> bool:
    """Draw one case; whether its differences have intervals."""
    case, curves = result.cases[cell], [result.curve(policy, *cell) for policy in values]
    best = min(curves, key=lambda curve: float(curve.regret.value[curve.best]))
    apart = case.isel(against=result.rows(best.policy)[best.best])
    for number, curve in enumerate(curves):
        of_policy = apart.isel(setting=result.rows(curve.policy))
        # Side by side: bars of several policies at one value would hide each other.
        _one_curve(axis, values[curve.policy], of_policy, curve.best, number, (len(curves) - 1) / 2)
    axis.axhline(0, color=BLACK, linewidth=0.8, zorder=1)
    (environment, budget), budgets = cell, result.data["budget"].values
    at_budget = f", budget {budgets[budget]:,.6g}" if budgets.size > 1 else ""
    level = f"{float(best.regret.value[best.best]):,.4g}{', one run' * (not best.has_intervals)}"
    axis.set_title(f"{environment}{at_budget}: least regret {level}", fontsize=9)
    return best.has_intervals


def _one_curve(
    axis: Any, at: np.ndarray, apart: xarray.Dataset, best: int, number: int, middle_number: float
) -> None:
    """Differences ``[setting]`` over values of a parameter, moved by some points where there are
    several curves.
    """
    order, (colour, marker, dashes) = np.argsort(at), nth_look(number)
    middle, low, high = (apart[end].values[order] for end in ("difference", "low", "high"))
    x, chosen, worse = at[order], order == best, apart["larger"].values[order]
    for y in (middle, low, high):  # a moved line does not count for the limits
        axis.update_datalim(np.column_stack([x, np.nan_to_num(y)]))
    aside = ScaledTranslation((number - middle_number) / 24, 0, axis.figure.dpi_scale_trans)
    look: dict[str, Any] = {"color": colour, "transform": axis.transData + aside}
    axis.plot(x, middle, linestyle=dashes, linewidth=1.3, **look)
    if np.isfinite(low).all():
        ends = [middle - low, high - middle]
        axis.errorbar(x, middle, ends, fmt="none", elinewidth=0.9, capsize=2, **look)
    look |= {"linestyle": "none", "marker": marker, "markersize": 4.5}
    axis.plot(x[worse], middle[worse], markerfacecolor="white", **look)
    axis.plot(x[~worse], middle[~worse], **look)
    look |= {"marker": "*", "markersize": 11, "markeredgecolor": BLACK, "zorder": 3}
    axis.plot(x[chosen], middle[chosen], **look)
