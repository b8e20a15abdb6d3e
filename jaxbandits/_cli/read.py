"""``jaxbandits read``: what was understood of an arms file, and the command to go on with."""

from __future__ import annotations

import argparse
import math
import shlex

from jaxbandits._cli.arms_options import FORMATS, add_arms_options, arms_options, as_typed
from jaxbandits._cli.columns import aligned
from jaxbandits._cli.command_line import Parser, as_option, say
from jaxbandits.comparison.arms_file import read_arms
from jaxbandits.comparison.arms_table import ArmsTable, Instance
from jaxbandits.comparison.estimates import DAYS, ROWS, WILSON, Estimate, estimates
from jaxbandits.comparison.evidence import NumberStyle
from jaxbandits.core.errors import InputError
from jaxbandits.core.printable import line

_MOST_INSTANCES, _MOST_ARMS = 6, 40
_MOST_PULLS = 100_000  # that the suggested budget pays for


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits read",
        description="Show what was understood of an arms file: arms, means with intervals, what was left out and why.",
        epilog=f"{FORMATS}\nExample:\n  jaxbandits read ads.csv --columns name=Campaign,cost=Kosten\n",
        must=("file",),
    )
    made.add_argument("file", nargs="?", metavar="FILE", help="the arms, a CSV file (see below); - for standard input")
    add_arms_options(made)
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; the exit code is 0."""
    try:
        table = read_arms(arguments.file, **arms_options(arguments))
    except InputError as problem:
        raise as_option(problem, arguments) from None
    sizes = [len(instance.arms) for instance in table.instances]
    many = f", {len(sizes):,} instances" if len(sizes) > 1 else ""
    lines = [
        f"read {line(arguments.file)}: {table.kind}{many}, {sum(sizes):,} arms",
        *(f"  {line(n)}" for n in table.notes),
    ]
    for instance in table.instances[:_MOST_INSTANCES]:
        lines += ["", *_instance(table, instance, _MOST_ARMS // min(len(sizes), _MOST_INSTANCES))]
    if len(sizes) > _MOST_INSTANCES:
        lines += ["", f"… and {len(sizes) - _MOST_INSTANCES:,} more instances"]
    lines += ["", *_intervals(table), *_next(table, arguments)]
    say("\n".join(lines))
    return 0


def _instance(table: ArmsTable, instance: Instance, most: int) -> list[str]:
    evidence, style = instance.evidence, table.style
    pull, result = table.pull_unit, line(table.reward_unit)
    one = {"conversions": "conversion"}.get(result, result)
    counted = evidence is not None and evidence.clicks is not None
    head = ["arm", *([f"{pull}s", result, table.cost_unit] if counted else [])]
    cells = [[*head, f"{result} per {pull}", f"cost per {pull}", f"cost per {one}"]]
    percent = evidence is not None and evidence.whole
    for arm, (name, found) in enumerate(zip(instance.arms[:most], estimates(instance)[:most], strict=True)):
        cells.append([line(name), *_totals(table, instance, arm), *_means(style, *found, percent=percent)])
    if counted and evidence is not None and evidence.clicks is not None:
        cells.append(["in all", *_totals(table, instance, None)])
    more = len(instance.arms) - most
    title = [f"{line(instance.name)}:"] if len(table.instances) > 1 else []
    return [
        *title,
        *aligned(cells, left=(0,)),
        *([f"… and {more:,} more arms, which the last line counts"] if more > 0 else []),
    ]


def _totals(table: ArmsTable, instance: Instance, arm: int | None) -> list[str]:
    evidence, style = instance.evidence, table.style
    if evidence is None or evidence.clicks is None or evidence.value is None or evidence.spent is None:
        return []
    at = slice(None) if arm is None else slice(arm, arm + 1)
    clicks, value, spent = (float(x[at].sum()) for x in (evidence.clicks, evidence.value, evidence.spent))
    return [style.count(clicks), style.count(value), style.money(spent)]


def _means(style: NumberStyle, reward: Estimate, cost: Estimate, per: Estimate, percent: bool) -> list[str]:
    def rate(value: float) -> str:
        return style.number(100 * value, 2) if percent else style.number(value, _decimals(value))

    sign = " %" if percent else ""
    return [_with_ends(reward, rate, sign), _with_ends(cost, style.money), _with_ends(per, style.money)]


def _decimals(value: float) -> int:
    return 2 if value >= 1 or value == 0 else min(2 - math.floor(math.log10(value)), 9)


def _with_ends(found: Estimate, written: object, sign: str = "") -> str:
    """``2.50 % (1.90 to 3.30)``; a dash for what is infinite."""
    assert callable(written)
    mean, low, high = (
        written(x) if math.isfinite(x) else "∞" if x > 0 else "–" for x in (found.mean, found.low, found.high)
    )
    return f"{mean}{sign}" + (f" ({low} to {high})" if not math.isnan(found.low) else "")


def _intervals(table: ArmsTable) -> list[str]:
    """Which intervals stand in brackets."""
    found = {x.how for i in table.instances for of_arm in estimates(i) for x in of_arm if not math.isnan(x.low)}
    names = [name for name in (WILSON, ROWS, DAYS) if name in found]
    if not names:
        return ["(no intervals: totals and means alone do not say how sure they are)"]
    return [f"(in brackets: 95 % intervals, each by itself: {'; '.join(names)})"]


def _next(table: ArmsTable, arguments: argparse.Namespace) -> list[str]:
    """The command that goes on from here, with what the file's arms cost as its budget."""
    widest = max(table.instances, key=lambda instance: len(instance.arms))
    price = float(widest.mean_cost.mean())
    spent = None if widest.evidence is None or widest.evidence.spent is None else float(widest.evidence.spent.sum())
    budget = min(spent or 1000 * price, _MOST_PULLS * price)
    file = line(arguments.file)
    path = shlex.quote(file) if file == arguments.file else "FILE"
    command = f"jaxbandits compare --arms {path}{as_typed(arguments)} --budget {_round(budget)}"
    return ["go on with:", f"  {command} --policies omega_ucb,bts,m_ucb"]


def _round(value: float) -> str:
    """Two digits that count, never in powers of ten.

    Example:
        >>> _round(1234.5), _round(0.01234)
        ('1200', '0.012')
    """
    digits = 1 - math.floor(math.log10(value))
    return f"{round(value, digits):.{max(digits, 0)}f}"
