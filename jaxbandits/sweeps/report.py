"""The report of a sweep: ``result.nc``, ``sensitivity.csv``, ``summary.txt`` and pictures, as bytes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandits._plots import Picture, encoded, label_grid, nth_look, plain_numbers, say_logarithmic
from jaxbandits._tables import Table, counted, in_greek
from jaxbandits.core.protocol import Status
from jaxbandits.statistics import invisible
from jaxbandits.sweeps.result import AXES, LEVEL, Curve, SweepResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 24


def pictures(result: SweepResult) -> dict[str, bytes]:
    """PNG files by name: ``sensitivity_rho.png`` for every parameter that some policy sweeps alone.

    With several environments and budgets also ``cases.png``: every policy at its best, over both.
    """
    by_parameter: dict[str, list[str]] = {}
    for policy in result.policies:
        if len(names := result.parameters(policy)) == 1:
            by_parameter.setdefault(names[0], []).append(policy)
    figures = {f"sensitivity_{name}.png": curves(result, name, policies) for name, policies in by_parameter.items()}
    if result.data.sizes["budget"] > 1 and len({environment for environment, _ in result.cells()}) > 1:
        figures["cases.png"] = _cases(result)
    return {name: encoded(say_logarithmic(figure), dpi=130) for name, figure in figures.items()}


def curves(result: SweepResult, name: str, policies: list[str], width: float = 12.0) -> Figure:
    """Regret over one parameter of some policies, a panel for each environment and budget, all on the same scales.

    ``width`` is that of the page, in inches: so many panels stand side by side as have room, three at most.
    """
    cells = result.cells()[:_MOST_PANELS]
    columns = min(3, len(cells), max(1, int(width / 2.2)))
    lines = -(-len(cells) // columns)
    figure = Picture(figsize=(max(3.7 * columns, 5.5), 2.8 * lines + 0.9), layout="constrained")
    axes = list(np.ravel(figure.subplots(lines, columns, squeeze=False)))
    for axis in axes[len(cells) :]:
        axis.set_visible(False)
    if len(result.cells()) > len(cells):
        figure.text(0.01, 0.01, f"the first {len(cells)} of {len(result.cells())} cases", fontsize=8)
    budgets = result.data["budget"].values
    found = {cell: [result.curve(policy, *cell) for policy in policies] for cell in cells}
    means = [np.concatenate([curve.regret.value for curve in of_cell]) for of_cell in found.values()]
    log_up = min(x.min() for x in means) > 0 and any(x.max() / x.min() > 8 for x in means)
    for axis, (environment, budget) in zip(axes, cells, strict=False):
        for number, curve in enumerate(found[environment, budget]):
            _one_curve(axis, curve, curve.parameters[name], number)
        x = np.concatenate([curve.parameters[name] for curve in found[environment, budget]])
        log = bool(x.min() > 0 and x.max() / x.min() > 8)
        if log:
            axis.set_xscale("log")
        label_grid(axis.xaxis, x, log=log, share=0.42 / (min(3.7, width / columns) - 0.5))  # inches of a label
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
    bars = "bars: paired 95 % intervals of the difference to the best value, all of this sweep at once"
    between = " " if len(cells) > 1 else "\n"
    figure.suptitle(f"{bars};{between}filled: not clearly worse; star: recommended", fontsize=8)
    keys = axes[0].get_legend_handles_labels()
    figure.legend(*keys, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _one_curve(axis: Any, curve: Curve, values: np.ndarray, number: int) -> None:
    order = np.argsort(values)
    x, mean = values[order], curve.regret.value.values[order]
    colour, marker, dashes = nth_look(number)
    axis.plot(x, mean, color=colour, linestyle=dashes, linewidth=1.3)
    middle, low, high = (part.values[order] for part in (curve.apart.value, curve.apart.low, curve.apart.high))
    if np.isfinite(low).all():
        axis.errorbar(x, mean, [middle - low, high - middle], fmt="none", ecolor=colour, elinewidth=0.9, capsize=2)
    alike = curve.indistinguishable[order]
    look = {"linestyle": "none", "marker": marker, "markersize": 4.5, "color": colour}
    axis.plot(x[~alike], mean[~alike], markerfacecolor="white", **look)
    axis.plot(x[alike], mean[alike], label=curve.policy.replace("$", r"\$"), **look)
    star = {"marker": "*", "markersize": 11, "markerfacecolor": colour, "markeredgecolor": "black"}
    axis.plot(values[curve.best], curve.regret.value.values[curve.best], zorder=3, **star)


def _cases(result: SweepResult) -> Figure:
    environments = list(dict.fromkeys(environment for environment, _ in result.cells()))
    budgets, policies = result.data["budget"].values, result.policies[:_MOST_PANELS]
    best = np.full((len(policies), len(environments), budgets.size), np.nan)
    values = np.full(best.shape, "", object)
    for row, (environment, budget) in itertools.product(range(len(policies)), result.cells()):
        curve, at = result.curve(policies[row], environment, budget), (row, environments.index(environment), budget)
        best[at] = curve.regret.value[curve.best]
        values[at] = "\n".join(f"{name} = {x[curve.best]:.3g}" for name, x in curve.parameters.items())
    least = best.min(axis=0)
    more = 100 * (best / np.where(least > 0, least, np.nan) - 1)  # in percent
    most = max(float(np.nanmax(more, initial=0)), 1.0)
    size = max(3.0, 1.1 * budgets.size) * len(policies) + 1.5, 0.7 * len(environments) + 1.6
    figure = Picture(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(policies), squeeze=False)[0]
    for axis, policy, shown, texts in zip(axes, policies, more, values, strict=True):
        image = axis.imshow(shown, aspect="auto", cmap="cividis_r", vmin=0, vmax=most)
        for (line, column), text in np.ndenumerate(texts):
            light = not shown[line, column] > most / 2
            said = f"{text}\n" * bool(text) + f"+{shown[line, column]:.0f} %"
            axis.text(column, line, said, ha="center", va="center", fontsize=7, color="black" if light else "white")
        axis.set_xticks(range(budgets.size), [f"{budget:,.6g}" for budget in budgets], fontsize=8)
        axis.set_yticks([])
        axis.set(xlabel="budget")
        axis.set_title(policy, fontsize=9)
    axes[0].set_yticks(range(len(environments)), environments, fontsize=8)
    figure.colorbar(image, ax=list(axes), label="% above the least regret")
    figure.suptitle("each policy at its best value, against the policy with the least regret in that case", fontsize=9)
    return figure


# --- the files: equal results are equal bytes, nothing here knows what time it is or where the work was done


def write_report(result: SweepResult) -> dict[str, bytes]:
    """All files of the report by name; ``result.nc`` comes last, so that its presence means that all are there."""
    table = sensitivity(result).csv()
    files = {"sensitivity.csv": table.encode(), "summary.txt": summary(result).encode(), **pictures(result)}
    return {**files, "result.nc": bytes(result.data.to_netcdf(engine="scipy", format="NETCDF3_64BIT"))}


def sensitivity(result: SweepResult) -> Table:
    """A row for each environment, budget, policy and setting: mean regret, difference to the best, their intervals."""
    names = [str(name) for name in result.data.coords if name not in (*AXES, "policy")]
    numbers = ("regret", "low", "high", "difference", "difference_low", "difference_high")
    rows = []
    for (environment, budget), policy in itertools.product(result.cells(), result.policies):
        curve = result.curve(policy, environment, budget)
        of_setting = [getattr(x, end).values for x in (curve.regret, curve.apart) for end in ("value", "low", "high")]
        for i in range(curve.indistinguishable.size):
            values = (curve.parameters[name][i] if name in curve.parameters else None for name in names)
            found = (x[i] for x in of_setting)
            at = (environment, result.data["budget"].values[budget], policy)
            rows.append([*at, *values, *found, i == curve.best, bool(curve.indistinguishable[i])])
    return Table(["environment", "budget", "policy", *names, *numbers, "best", "indistinguishable"], rows)


def summary(result: SweepResult) -> str:
    """The findings in words."""
    lines = [*_head(result), ""]
    for environment, budget in result.cells():
        lines.append(_cell(result, environment, budget))
        curves = [result.curve(policy, environment, budget) for policy in result.policies]
        lines += [f"  {line}" for curve in curves for line in _about(curve)]
        lines += [f"  {line}" for line in _against(result, curves, environment, budget)]
        lines.append("")
    return "\n".join([*lines, *_everywhere(result)]).rstrip() + "\n"


def _head(result: SweepResult) -> list[str]:
    spec, plan = result.plan.spec, result.plan
    tasks = [layout.tasks[0] for layout in plan.layouts.values()]
    if spec.over == "instance":
        what = "the instances were drawn at random; intervals are about other such instances"
        fewest = min(task.instance_ids.size for task in tasks)
    else:
        what = "the instances are given; intervals are about other runs on them, and not about other instances"
        fewest = min(task.replicate_ids.size for task in tasks)
    unseen = invisible(fewest, spec.over)
    lines = [
        spec.title or "Sweep",
        f"{plan.lanes:,} runs; seed {spec.seed}; {what}.",
        "Regret is the pseudo-regret at the end of the clock. All settings met the same world: differences are paired.",
        f"All that is called clear, or clearly worse, is so with {100 * LEVEL:.0f} % confidence, in all cases at once "
        "(Holm over all pairs of settings); so do the intervals of differences hold.",
        f"{unseen[0].upper()}{unseen[1:]}.",
    ]
    for status in (Status.ROUND_CAP, Status.CAPACITY, Status.INVALID):
        if count := int((result.data["status"].values == status).sum()):
            lines.append(f"Note: {count} runs ended by {status.name.lower()}, so their regret is not comparable.")
    return lines


def _cell(result: SweepResult, environment: str, budget: int) -> str:
    task = result.plan.layouts[environment, budget].tasks[0]
    value = result.data["budget"].values[budget]
    amount = "" if np.isnan(value) else f", {value:,.6g}" + " rounds" * (task.constraint.clock_name == "rounds")
    if result.plan.spec.budgets is not None:
        amount = f", budget {value:,.6g}"
    shape = f"{counted(task.instance_ids.size, 'instance')} × {counted(task.replicate_ids.size, 'replicate')}"
    return f"{environment}{amount} ({shape})"


def _about(curve: Curve) -> list[str]:
    mean, low, high = (float(part[curve.best]) for part in (curve.regret.value, curve.regret.low, curve.regret.high))
    regret = f"regret {mean:,.5g}" + (f" ({low:,.5g} to {high:,.5g})" if np.isfinite(low) else "")
    told = [f"    {text.split(': ', 1)[1]}" for text in curve.warnings if text.startswith(("heavy tail", "few units"))]
    if curve.indistinguishable.size == 1:
        return [f"{curve.policy}: {regret}", *told]
    lines = [f"{curve.policy}: {curve.recommendation()}; {regret}", *told]
    worst = int(np.argmax(curve.regret.value.values))
    if not curve.indistinguishable[worst]:
        values = ", ".join(f"{name} = {x[worst]:.3g}" for name, x in curve.parameters.items())
        apart, low, high = (float(part[worst]) for part in (curve.apart.value, curve.apart.low, curve.apart.high))
        lines.append(f"    worst is {values}: {apart:+,.4g} ({low:+,.4g} to {high:+,.4g})")
    if curve.at_edge:
        lines.append(f"    the best {' and '.join(curve.at_edge)} is at the edge of the grid: extend it")
    return lines


def _against(result: SweepResult, curves: list[Curve], environment: str, budget: int) -> list[str]:
    """Every policy against the one with the least regret, each at its own best value."""
    if len(curves) < 2 or not curves[0].has_intervals:
        return []
    best = min(curves, key=lambda curve: float(curve.regret.value[curve.best]))
    lines = []
    for curve in (curve for curve in curves if curve is not best):
        apart, clear = result.difference(curve, best, environment, budget)
        by = f"{apart.value:+,.4g} ({apart.low:+,.4g} to {apart.high:+,.4g}), {'' if clear else 'not '}clear"
        by = "the same in every run" if apart.low == apart.high == 0 else by
        lines.append(f"{curve.policy} minus {best.policy}, each at its best: {by}")
    return lines


def _everywhere(result: SweepResult) -> list[str]:
    """Values that are among the indistinguishable ones in every environment and with every budget."""
    if len(result.cells()) < 2:
        return []
    lines = [f"In all {len(result.cells())} cases at once:"]
    for policy in result.policies:
        curves = [result.curve(policy, *cell) for cell in result.cells()]
        if not curves[0].has_intervals or len(curves[0].parameters) != 1:
            continue
        ((name, x),) = curves[0].parameters.items()
        kept = np.sort(x[np.logical_and.reduce([curve.indistinguishable for curve in curves])])
        text = ", ".join(f"{value:.3g}" for value in kept)
        lines.append(
            f"  {policy}: not clearly worse than the best in any: {name} = {text}"
            if kept.size
            else f"  {policy}: every value of {name} is clearly worse than the best in some"
        )
        means = np.array([curve.regret.value.values for curve in curves])
        bests = means.min(axis=1)
        if (bests > 0).all():
            above = 100 * (means / bests[:, None] - 1).max(axis=0)
            least = int(np.argmin(above))
            lines.append(f"    {name} = {x[least]:.3g} is at most {above[least]:.0f} % above the best mean in any")
    return lines if len(lines) > 1 else []
