"""The plots of a sweep: how much worse each value is than the best; regret by budget."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.lines import Line2D

from jaxbandits._files import finished, inches_of
from jaxbandits._numerics.arrays import one_of
from jaxbandits._plots import Picture, ink, is_log, label_grid, nth_look, set_key
from jaxbandits._tables import in_greek
from jaxbandits.core.checks import InputError, bad
from jaxbandits.result import at_ends, join_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxbandits.sweeps.result import SweepResult

_MOST_PANELS = 24
_MARKS = "best value", "not clearly worse", "clearly worse (95 %, jointly)"


class SweepPlots:
    """Plots of a sweep: ``result.plot``."""

    def __init__(self, result: SweepResult):
        self._result = result

    def regret(self, environment: str | None = None, **options: Any) -> Figure:
        """Plot mean regret at the end by budget; by share of the clock if there is one budget.

        Args:
            environment: its name; None: the only one there is.
            **options: as in ``result.plot.regret``; intervals are over ``Sweep.over``. Settings are
                labelled as in ``data["setting"]``.
        """
        found, worlds = self._result, list(self._result.plan.environments)
        place = worlds[0] if environment is None and len(worlds) == 1 else environment
        one_of("environment", place, worlds)
        data, cells = found.data, [cell for cell in found.cells() if cell[0] == place]
        ends = [join_settings([found.results[x, *cell] for x in found.policies]) for cell in cells]
        result = at_ends(ends, data["budget"].values.tolist()) if len(ends) > 1 else ends[0]
        labelled = dataclasses.replace(result, settings=tuple(data["setting"].values.tolist()))
        return labelled.plot.regret(**{"over": found.plan.spec.over} | options)

    def sensitivity(
        self,
        parameter: str | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        width: float | str | None = None,
    ) -> Figure:
        """Plot how much worse each value of a parameter is than the best.

        It shows every policy that sweeps only this parameter, with a panel for each environment and
        budget, at most 24. Bars are the paired intervals of the difference to the best setting of
        the panel, all of the sweep at once. A point is hollow if its whole bar lies above 0, which
        is clearly worse; a star is a policy's best value.

        Args:
            parameter: its name; None: the only one there is.
            path, width: as in ``result.plot.regret``.

        Raises:
            InputError: a parameter that no policy sweeps alone, several of them and none said,
                another ending or width.

        Example:
            >>> import jax
            >>> import jaxbandits as jb
            >>> sweep = jb.sweep(jb.Sweep(
            ...     policies=jb.policies.OmegaUCB(rho=[0.25, 1.0, 4.0]), over="instance", marks=1,
            ...     environments=jb.environments.random_bernoulli(jax.random.key(0), instances=8, arms=3),
            ...     constraint=jb.TotalBudget(20.0, last_pull="counts")))
            >>> figure = sweep.plot.sensitivity(width="column")
            >>> figure.get_size_inches()[0].item(), figure.axes[0].get_xlabel()
            (3.25, 'ρ of OmegaUCB, log scale')
        """
        found, inches = self._result, inches_of(width) or 12.0
        swept = {policy: found.parameters(policy) for policy in found.policies}
        alone = {policy: names[0] for policy, names in swept.items() if len(names) == 1}
        choices = list(dict.fromkeys(alone.values()))
        name = choices[0] if parameter is None and len(choices) == 1 else parameter
        if not choices:
            what = "one alone" if any(swept.values()) else "a parameter"
            raise InputError(f"parameter: no policy here sweeps {what}")
        if name not in choices:
            raise bad("parameter", parameter, f"one of {', '.join(choices)}")
        policies, cells = [x for x, of in alone.items() if of == name], found.cells()[:_MOST_PANELS]
        columns = min(3, len(cells), max(1, int(inches / 2.2)))
        shape = -(-len(cells) // columns), columns
        size = max(3.7 * columns, 5.5), 2.8 * shape[0] + 0.5
        figure = Picture(figsize=size, layout="constrained")
        axes = figure.subplots(*shape, squeeze=False).ravel()
        x = np.concatenate([found.plan.parameters[policy][name] for policy in policies])
        for axis, cell in zip(axes, cells, strict=False):
            draw_case(axis, found, cell, policies, name, log=is_log(x))
            # Inches of a label
            share = 0.42 / (min(3.7, inches / columns) - 0.5)
            label_grid(axis.xaxis, x, log=is_log(x), share=share)
        for axis in axes[len(cells) :]:
            figure.delaxes(axis)
        figure.supylabel("regret above the best (reward)", fontsize=10)
        looks = map(nth_look, range(len(policies) if len(policies) > 1 else 0))
        keys = [Line2D([], [], color=c, linestyle=dash, marker=m, ms=4.5) for c, m, dash in looks]
        dots: dict[str, Any] = {"color": ink(), "linestyle": "none"}
        keys.append(Line2D([], [], marker="*", ms=9, **dots))
        fills = ink(), mpl.rcParams["axes.facecolor"]
        keys += [Line2D([], [], marker="o", ms=4.5, markerfacecolor=x, **dots) for x in fills]
        labels = [policy.replace("$", r"\$") for policy in policies] * (len(policies) > 1)
        set_key(figure, keys, [*labels, *_MARKS])
        return finished(figure, path, width)


def draw_case(
    axis: Any, found: SweepResult, cell: tuple[str, int], policies: list[str], name: str, log: bool
) -> None:
    """Plot differences from the best setting in one environment and budget by a parameter."""
    curves = [found.curve(policy, *cell) for policy in policies]
    best = min(curves, key=lambda curve: float(curve.regret.value[curve.best]))
    from_best = found.cases[cell].isel(against=found.rows(best.policy)[best.best])
    for number, curve in enumerate(curves):
        colour, marker, dashes = nth_look(number)
        apart = from_best.isel(setting=found.rows(curve.policy))
        # Side by side: bars of several policies at one value would hide each other.
        aside, at = number - (len(curves) - 1) / 2, curve.parameters[name]
        x = at * 1.03**aside if log else at + aside * np.ptp(at) / 80
        order, worse = np.argsort(x), apart["larger"].values
        middle, low, high = (apart[end].values for end in ("difference", "low", "high"))
        axis.plot(x[order], middle[order], color=colour, linestyle=dashes, linewidth=1.3)
        bars: dict[str, Any] = {"fmt": "none", "elinewidth": 0.9, "capsize": 2}
        axis.errorbar(x, middle, [middle - low, high - middle], color=colour, **bars)
        look = {"color": colour, "linestyle": "none", "marker": marker, "markersize": 4.5}
        axis.plot(x[worse], middle[worse], markerfacecolor=mpl.rcParams["axes.facecolor"], **look)
        axis.plot(x[~worse], middle[~worse], **look)
        look |= {"marker": "*", "markersize": 11, "markeredgecolor": ink(), "zorder": 3}
        axis.plot(x[curve.best], middle[curve.best], **look)
    axis.axhline(0, color=ink(), linewidth=0.8, zorder=1)
    (environment, budget), budgets = cell, found.data["budget"].values
    at_budget = f", budget {budgets[budget]:,.6g}" if budgets.size > 1 else ""
    level = f"{float(best.regret.value[best.best]):,.4g}"
    axis.set_title(f"{environment}{at_budget}: least regret {level}", fontsize=9)
    of = f" of {policies[0]}" if len(policies) == 1 else ""
    axis.set_xlabel(f"{in_greek(name)}{of}".replace("$", r"\$"), fontsize=9)
    axis.set_xscale("log" if log else "linear")
    axis.grid(alpha=0.3, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(which="both", labelsize=8)
