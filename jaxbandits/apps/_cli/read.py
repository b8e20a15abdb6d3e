"""``jaxbandits read``: what was understood of an arms file, and the command to go on with."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Callable

from jaxbandits._tables import NumberStyle, Table, counted, line
from jaxbandits.apps._cli.compare import FORMATS, add_options, reading_of
from jaxbandits.apps._cli.console import Parser, named_as_options, option, say
from jaxbandits.apps.comparison.arms_file import read_arms
from jaxbandits.apps.comparison.arms_table import NO_EVIDENCE, ArmsTable, Instance, estimates, interval_names
from jaxbandits.apps.comparison.options import ReadingOptions
from jaxbandits.apps.comparison.plan import TWO_COST_POLICIES
from jaxbandits.statistics import Estimate

_MOST_INSTANCES, _MOST_ARMS = 6, 40
_MOST_PULLS = 100_000  # that the suggested budget pays for


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits read",
        description="Show what was understood of an arms file: arms, means with intervals, what was left out and why.",
        epilog=f"{FORMATS}\nExample:\n  jaxbandits read ads.csv --columns name=Campaign,cost=Kosten\n",
    )
    made.add_argument("file", metavar="FILE", help="the arms, a CSV file (see below); - for standard input")
    add_options(made, ReadingOptions)
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; the exit code is 0."""
    with named_as_options({*vars(arguments)}):
        table = read_arms(arguments.file, **reading_of(arguments))
    sizes = [len(instance.arms) for instance in table.instances]
    many = f", {counted(len(sizes), 'instance')}" if len(sizes) > 1 else ""
    head = [f"read {arguments.file}: {table.kind}{many}, {sum(sizes):,} arms", *(f"  {note}" for note in table.notes)]
    parts = ["\n".join(map(line, head))]
    for instance in table.instances[:_MOST_INSTANCES]:
        title = f"{line(instance.name)}:\n" if len(sizes) > 1 else ""
        parts.append(title + _instance(table, instance, _MOST_ARMS // min(len(sizes), _MOST_INSTANCES)))
    if len(sizes) > _MOST_INSTANCES:
        parts.append(f"… and {counted(len(sizes) - _MOST_INSTANCES, 'more instance')}")
    names = ", ".join(dict.fromkeys(name for i in table.instances for name in interval_names(i)))
    how = "(no intervals: totals and means alone do not say how sure they are)"
    if names:
        how = f"(in brackets: 95 % intervals, each by itself: {names})"
    say("\n\n".join([*parts, f"{how}\ngo on with:\n  {_next(table, arguments)}"]))
    return 0


def _instance(table: ArmsTable, instance: Instance, most: int) -> str:
    style, pull, result = table.style, table.pull_unit, table.reward_unit
    evidence = instance.evidence or NO_EVIDENCE
    one = {"conversions": "conversion"}.get(result, result)

    def in_all(arm: int | slice) -> list[str]:
        totals = evidence.totals(arm)
        return [style.count(totals[0]), style.count(totals[1]), style.money(totals[2])] if totals else []

    header = ["arm", *([f"{pull}s", result, table.cost_unit] if in_all(0) else [])]
    header += [f"{result} per {pull}", f"cost per {pull}", f"cost per {one}"]
    header += [f"{table.cost2_unit} per {pull}"] if table.cost2_unit else []
    rows = []
    for arm, (name, found) in enumerate(zip(instance.arms[:most], estimates(instance)[:most], strict=True)):
        rate, price, per = found
        known = [_rate(style, rate, evidence.whole), _with_ends(price, style.money), _with_ends(per, style.money)]
        known += [style.amount(instance.mean_cost[arm, 1])] if table.cost2_unit else []
        rows.append([name, *in_all(arm), *known])
    rows += [["in all", *in_all(slice(None))]] if in_all(0) else []
    more = len(instance.arms) - most
    rest = f"\n… and {counted(more, 'more arm')}, which the last line counts" if more > 0 else ""
    return Table(header, rows).text() + rest


def _rate(style: NumberStyle, found: Estimate, percent: bool) -> str:
    if percent:
        return _with_ends(found, lambda value: style.number(100 * value, 2), " %")
    return _with_ends(found, lambda value: style.number(value, _decimals(value)))


def _decimals(value: float) -> int:
    return 2 if value >= 1 or value == 0 else min(2 - math.floor(math.log10(value)), 9)


def _with_ends(found: Estimate, written: Callable[[float], str], sign: str = "") -> str:
    """``2.50 % (1.90 to 3.30)``; a dash for what is infinite."""
    value, low, high = (
        written(x) if math.isfinite(x) else "∞" if x > 0 else "–" for x in (found.value, found.low, found.high)
    )
    return f"{value}{sign}" + (f" ({low} to {high})" if not math.isnan(found.low) else "")


def _next(table: ArmsTable, arguments: argparse.Namespace) -> str:
    """The command that goes on from here, with what the file's arms cost as its budget."""
    widest = max(table.instances, key=lambda instance: len(instance.arms))
    price = float(widest.mean_money.mean())
    spent = None if widest.evidence is None or widest.evidence.spent is None else float(widest.evidence.spent.sum())
    budget = min(spent or 1000 * price, _MOST_PULLS * price)
    digits = 1 - math.floor(math.log10(budget))  # two that count, never in powers of ten
    rounded = f"{round(budget, digits):.{max(digits, 0)}f}"
    policies = "omega_ucb,bts,m_ucb"
    if table.cost2_unit:  # as much of the other as the same pulls take
        rounded += f",{budget / price * float(widest.mean_cost[:, 1].mean()):.2g}"
        policies = ",".join(TWO_COST_POLICIES)
    command = ["jaxbandits", "compare", "--arms", line(arguments.file)]
    for name, value in reading_of(arguments).items():
        if name == "add":
            command += ["--sum"] * value
        elif value not in (None, "published"):
            text = ",".join(f"{role}={title}" for role, title in value.items()) if name == "columns" else value
            text = f"{value:.15g}" if isinstance(value, float) else text
            command += [x for one in (text if isinstance(text, list) else [text]) for x in (option(name), one)]
    return shlex.join([*command, "--budget", rounded, "--policies", policies])
