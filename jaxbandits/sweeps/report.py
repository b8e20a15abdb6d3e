"""The report of a sweep: ``result.nc``, ``sensitivity.csv``, ``summary.txt`` and pictures, as bytes.

Equal results are equal bytes: nothing here knows what time it is or where the work was done.
"""

from __future__ import annotations

import numpy as np

from jaxbandits._files.csv_text import csv_text
from jaxbandits.core.protocol import Status
from jaxbandits.statistics import invisible
from jaxbandits.sweeps.curve import LEVEL, Curve
from jaxbandits.sweeps.surface import SweepResult, rows


def write_report(result: SweepResult) -> dict[str, bytes]:
    """All files of the report by name; ``result.nc`` comes last, so that its presence means that all are there."""
    from jaxbandits.sweeps.pictures import pictures

    table = rows(result)
    sensitivity = csv_text(list(table[0]), (row.values() for row in table))
    files = {"sensitivity.csv": sensitivity.encode(), "summary.txt": summary(result).encode(), **pictures(result)}
    return {**files, "result.nc": bytes(result.data.to_netcdf(engine="scipy", format="NETCDF3_64BIT"))}


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
    if spec.over == "instance":
        what = "the instances were drawn at random; intervals are about other such instances"
    else:
        what = "the instances are given; intervals are about other runs on them, and not about other instances"
    ended = result.data["status"].values
    odd = [(status.name.lower(), int((ended == status).sum())) for status in Status]
    odd = [(name, count) for name, count in odd if count and name not in ("exhausted", "horizon")]
    return [
        spec.title or "Sweep",
        f"{plan.lanes:,} runs; seed {spec.seed}; {what}.",
        "Regret is the pseudo-regret at the end of the clock. All settings met the same world: differences are paired.",
        f"What is called clearly worse is so with {100 * LEVEL:.0f} % confidence for all values of a policy at once, "
        "case by case.",
        f"{_capital(invisible(_fewest(result), spec.over))}.",
        *(f"Note: {count} runs ended by {name}, so their regret is not comparable." for name, count in odd),
    ]


def _fewest(result: SweepResult) -> int:
    """Units behind the means of the case with fewest."""
    tasks = [layout.tasks[0] for layout in result.plan.layouts.values()]
    return min(t.instance_ids.size if result.plan.spec.over == "instance" else t.replicate_ids.size for t in tasks)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _cell(result: SweepResult, environment: str, budget: int) -> str:
    layout = result.plan.layouts[environment, budget]
    task = layout.tasks[0]
    value = result.data["budget"].values[budget]
    amount = "" if np.isnan(value) else f", {value:,.6g} {'rounds' if task.constraint.clock_name == 'rounds' else ''}"
    if result.plan.spec.budgets is not None:
        amount = f", budget {value:,.6g}"
    count, runs = task.instance_ids.size, task.replicate_ids.size
    shape = f"{count} instance{'s' * (count > 1)} × {runs} replicate{'s' * (runs > 1)}"
    return f"{environment}{amount.rstrip()} ({shape})"


def _about(curve: Curve) -> list[str]:
    mean, low, high = (part[curve.best] for part in curve.regret)
    interval = f" ({low:,.5g} to {high:,.5g})" if np.isfinite(low) else ""
    carried = [
        f"    {text.split(': ', 1)[1]}" for text in curve.warnings if text.startswith(("heavy tail", "few units"))
    ]
    if curve.regret[0].size == 1:
        return [f"{curve.policy}: regret {mean:,.5g}{interval}", *carried]
    lines = [f"{curve.policy}: {curve.recommendation()}; regret {mean:,.5g}{interval}", *carried]
    worst = int(np.argmax(curve.regret[0]))
    if curve.units > 1 and not curve.indistinguishable[worst]:
        values = ", ".join(f"{name} = {x[worst]:.3g}" for name, x in curve.parameters.items())
        lines.append(
            f"    worst is {values}: {curve.apart[0][worst]:+,.4g} "
            f"({curve.apart[1][worst]:+,.4g} to {curve.apart[2][worst]:+,.4g})"
        )
    if curve.at_edge:
        lines.append(f"    the best {' and '.join(curve.at_edge)} is at the edge of the grid: extend it")
    return lines


def _against(result: SweepResult, curves: list[Curve], environment: str, budget: int) -> list[str]:
    """Every policy against the one with the least regret, each at its own best value."""
    if len(curves) < 2 or curves[0].units < 2:
        return []
    best = min(curves, key=lambda curve: float(curve.regret[0][curve.best]))
    lines = []
    for curve in curves:
        if curve is not best:
            apart = result.difference(curve, best, environment, budget)
            mean, low, high = (float(apart[part]) for part in ("mean", "low", "high"))
            clear = "" if low > 0 or high < 0 else ", not clear"
            apart_by = f"{mean:+,.4g} ({low:+,.4g} to {high:+,.4g}){clear}"
            if low == high == 0:
                apart_by = "the same in every run"
            lines.append(f"{curve.policy} minus {best.policy}, each at its best: {apart_by}")
    return lines


def _everywhere(result: SweepResult) -> list[str]:
    """Values that are among the indistinguishable ones in every environment and with every budget."""
    if len(result.cells()) < 2:
        return []
    lines = [f"In all {len(result.cells())} cases at once:"]
    for policy in result.policies:
        curves = [result.curve(policy, *cell) for cell in result.cells()]
        if curves[0].units < 2 or len(curves[0].parameters) != 1:
            continue
        ((name, x),) = curves[0].parameters.items()
        kept = np.sort(x[np.logical_and.reduce([curve.indistinguishable for curve in curves])])
        text = ", ".join(f"{value:.3g}" for value in kept)
        lines.append(
            f"  {policy}: not clearly worse than the best in any: {name} = {text}"
            if kept.size
            else f"  {policy}: every value of {name} is clearly worse than the best in some"
        )
        bests = np.array([curve.regret[0][curve.best] for curve in curves])
        if (bests > 0).all():
            above = 100 * (np.array([curve.regret[0] for curve in curves]) / bests[:, None] - 1).max(axis=0)
            least = int(np.argmin(above))
            lines.append(f"    {name} = {x[least]:.3g} is at most {above[least]:.0f} % above the best mean in any")
    return lines if len(lines) > 1 else []
