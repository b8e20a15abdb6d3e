"""A sweep's report: ``result.nc``, ``sensitivity.csv``, ``summary.txt``, pictures, as bytes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from jaxbandits._plots import encoded, say_logarithmic
from jaxbandits._tables import Table, count_of
from jaxbandits.core.protocol import Status
from jaxbandits.statistics import invisible
from jaxbandits.sweeps.drawing import curves
from jaxbandits.sweeps.result import AXES, LEVEL, Curve, SweepResult

if TYPE_CHECKING:
    import xarray


def pictures(result: SweepResult) -> dict[str, bytes]:
    """PNG files by name: ``sensitivity_rho.png`` for every parameter that some policy sweeps alone."""
    by_parameter: dict[str, list[str]] = {}
    for policy in result.policies:
        if len(names := result.parameters(policy)) == 1:
            by_parameter.setdefault(names[0], []).append(policy)
    return {
        f"sensitivity_{name}.png": encoded(say_logarithmic(curves(result, name, policies)), dpi=130)
        for name, policies in by_parameter.items()
    }


# --- the files: equal results are equal bytes, nothing here knows what time it is or where the work was done


def report_files(result: SweepResult) -> dict[str, bytes]:
    """The report's files by name; ``result.nc`` comes last, so that it means all are there."""
    table = sensitivity(result).csv()
    files = {
        "sensitivity.csv": table.encode(),
        "summary.txt": summary(result).encode(),
        **pictures(result),
    }
    return {
        **files,
        "result.nc": bytes(result.data.to_netcdf(engine="scipy", format="NETCDF3_64BIT")),
    }


def sensitivity(result: SweepResult) -> Table:
    """By environment, budget, policy, setting: mean regret, difference to best, intervals."""
    names = [str(name) for name in result.data.coords if name not in (*AXES, "policy")]
    numbers = ("regret", "low", "high", "difference", "difference_low", "difference_high")
    rows = []
    for (environment, budget), policy in itertools.product(result.cells(), result.policies):
        curve = result.curve(policy, environment, budget)
        of_setting = [getattr(curve.regret, end).values for end in ("value", "low", "high")]
        of_setting += [curve.apart[end].values for end in ("difference", "low", "high")]
        for i in range(curve.indistinguishable.size):
            values = (
                curve.parameters[name][i] if name in curve.parameters else None for name in names
            )
            ends = (x[i] for x in of_setting)
            at = (environment, result.data["budget"].values[budget], policy)
            rows.append([*at, *values, *ends, i == curve.best, bool(curve.indistinguishable[i])])
    return Table(
        ["environment", "budget", "policy", *names, *numbers, "best", "indistinguishable"], rows
    )


def summary(result: SweepResult) -> str:
    """The report in words: the best value of every policy in every case, and how sure that is."""
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
        randomness = "the instances were drawn at random; intervals are about other such instances"
        fewest = min(task.instance_ids.size for task in tasks)
    else:
        randomness = "the instances are given; intervals are about other runs on them, and not about other instances"
        fewest = min(task.replicate_ids.size for task in tasks)
    unseen = invisible(fewest, spec.over)
    lines = [
        spec.title or "Sweep",
        f"{plan.lanes:,} runs; seed {spec.seed}; {randomness}.",
        "Regret is the pseudo-regret at the end of the clock. All settings met the same world: differences are paired.",
        f"All intervals of differences, in all cases, hold at once with {100 * LEVEL:.0f} % confidence. "
        "A difference is clear, or clearly worse, if its interval leaves out 0.",
        f"{unseen[0].upper()}{unseen[1:]}.",
    ]
    for status in (Status.ROUND_CAP, Status.CAPACITY, Status.INVALID):
        if count := int((result.data["status"].values == status).sum()):
            lines.append(
                f"Note: {count} runs ended by {status.name.lower()}, so their regret is not comparable."
            )
    return lines


def _cell(result: SweepResult, environment: str, budget: int) -> str:
    task = result.plan.layouts[environment, budget].tasks[0]
    value = result.data["budget"].values[budget]
    amount = (
        ""
        if np.isnan(value)
        else f", {value:,.6g}" + " rounds" * (task.constraint.clock_name == "rounds")
    )
    if result.plan.spec.budgets is not None:
        amount = f", budget {value:,.6g}"
    shape = f"{count_of(task.instance_ids.size, 'instance')} × {count_of(task.replicate_ids.size, 'replicate')}"
    return f"{environment}{amount} ({shape})"


def _about(curve: Curve) -> list[str]:
    mean, low, high = (
        float(part[curve.best])
        for part in (curve.regret.value, curve.regret.low, curve.regret.high)
    )
    regret = f"regret {mean:,.5g}" + (f" ({low:,.5g} to {high:,.5g})" if np.isfinite(low) else "")
    doubts = [
        f"    {text.split(': ', 1)[1]}"
        for text in curve.warnings
        if text.startswith(("heavy tail", "few units"))
    ]
    if curve.indistinguishable.size == 1:
        return [f"{curve.policy}: {regret}", *doubts]
    lines = [f"{curve.policy}: {curve.recommendation()}; {regret}", *doubts]
    worst = int(np.argmax(curve.regret.value.values))
    if not curve.indistinguishable[worst]:
        values = ", ".join(f"{name} = {x[worst]:.3g}" for name, x in curve.parameters.items())
        lines.append(f"    worst is {values}: {_written(curve.apart.isel(setting=worst))}")
    if curve.at_edge:
        lines.append(
            f"    the best {' and '.join(curve.at_edge)} is at the edge of the grid: extend it"
        )
    return lines


def _written(apart: xarray.Dataset) -> str:
    """A difference with its interval: ``+1.9 (+0.4 to +3.2)``."""
    value, low, high = (float(apart[end]) for end in ("difference", "low", "high"))
    return f"{value:+,.4g} ({low:+,.4g} to {high:+,.4g})"


def _against(result: SweepResult, curves: list[Curve], environment: str, budget: int) -> list[str]:
    """Every policy against the one with the least regret, each at its own best value."""
    if len(curves) < 2 or not curves[0].has_intervals:
        return []
    best = min(curves, key=lambda curve: float(curve.regret.value[curve.best]))
    lines = []
    for curve in (curve for curve in curves if curve is not best):
        apart = result.difference(curve, best, environment, budget)
        by = f"{_written(apart)}, {'' if apart['clear'] else 'not '}clear"
        by = "the same in every run" if apart["low"] == apart["high"] == 0 else by
        lines.append(f"{curve.policy} minus {best.policy}, each at its best: {by}")
    return lines


def _everywhere(result: SweepResult) -> list[str]:
    """Values that are among the indistinguishable ones in every environment and with every budget."""
    if len(result.cells()) < 2:
        return []
    lines = [f"In all {len(result.cells())} cases at once:"]
    for policy in result.policies:
        curves = [result.curve(policy, *cell) for cell in result.cells()]
        # Values of several parameters have no common axis to compare cases on.
        if not curves[0].has_intervals or len(curves[0].parameters) != 1:
            continue
        ((name, x),) = curves[0].parameters.items()
        common = np.sort(x[np.logical_and.reduce([curve.indistinguishable for curve in curves])])
        text = ", ".join(f"{value:.3g}" for value in common)
        lines.append(
            f"  {policy}: not clearly worse than the best in any: {name} = {text}"
            if common.size
            else f"  {policy}: every value of {name} is clearly worse than the best in some"
        )
        means = np.array([curve.regret.value.values for curve in curves])
        bests = means.min(axis=1)
        if (bests > 0).all():
            above = 100 * (means / bests[:, None] - 1).max(axis=0)
            safest = int(np.argmin(above))
            lines.append(
                f"    {name} = {x[safest]:.3g} is at most {above[safest]:.0f} % above the best mean in any"
            )
    return lines if len(lines) > 1 else []
