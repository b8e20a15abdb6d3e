"""``jaxbandits read``: what was understood of an arms file, and the command to go on with."""

from __future__ import annotations

import argparse
import math
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from jaxbandits.apps._cli.compare import FORMATS, READING_TABLE, READING_TYPES, reading_of
from jaxbandits.apps._cli.console import Parser, named_as_options, option_name, say
from jaxbandits.apps.comparison.number_style import NumberStyle
from jaxbandits.tools import Table, count_of, line

if TYPE_CHECKING:
    from jaxbandits.apps.comparison import ArmsTable, Instance
    from jaxbandits.statistics import Estimate

_INSTANCES_SHOWN, _ARMS_SHOWN = 6, 40
_PULLS_SUGGESTED = 100_000  # that the suggested budget pays for


def parser() -> Parser:
    """The parser of ``read``."""
    about = "Show how an arms file is read: arms, means with intervals, skipped rows and why."
    example = "Example:\n  jaxbandits read ads.csv --columns name=Campaign,cost=Kosten\n"
    table = "file  FILE  the arms, a CSV file (see below); - for standard input\n"
    return Parser("read", about, table + READING_TABLE, READING_TYPES, f"{FORMATS}\n{example}")


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Show the file; the exit code is 0."""
    from jaxbandits.apps.comparison import read_arms
    from jaxbandits.apps.comparison.intervals import interval_names

    with named_as_options({*vars(arguments)}):
        table = read_arms(arguments.file, **reading_of(arguments))
    sizes = [len(instance.arms) for instance in table.instances]
    instances = f", {count_of(len(sizes), 'instance')}" if len(sizes) > 1 else ""
    head = [f"read {arguments.file}: {table.kind}{instances}, {sum(sizes):,} arms"]
    head += [f"  {note}" for note in table.notes]
    parts = ["\n".join(map(line, head))]
    for instance in table.instances[:_INSTANCES_SHOWN]:
        title = f"{line(instance.name)}:\n" if len(sizes) > 1 else ""
        rows = _ARMS_SHOWN // min(len(sizes), _INSTANCES_SHOWN)
        parts.append(title + _instance(table, instance, rows))
    if len(sizes) > _INSTANCES_SHOWN:
        parts.append(f"… and {count_of(len(sizes) - _INSTANCES_SHOWN, 'more instance')}")
    names = ", ".join(dict.fromkeys(name for i in table.instances for name in interval_names(i)))
    footnote = "(no intervals: totals and means alone do not say how sure they are)"
    if names:
        footnote = f"(in brackets: 95 % intervals, each by itself: {names})"
    say("\n\n".join([*parts, f"{footnote}\ngo on with:\n  {_next(table, arguments)}"]))
    return 0


def _instance(table: ArmsTable, instance: Instance, row_limit: int) -> str:
    from jaxbandits.apps.comparison import Evidence
    from jaxbandits.apps.comparison.intervals import estimates

    style, pull, result = table.style, table.pull_unit, table.reward_unit
    evidence = instance.evidence or Evidence()
    singular = {"conversions": "conversion"}.get(result, result)

    def in_all(arm: int | slice) -> list[str]:
        if not (totals := evidence.totals(arm)):
            return []
        return [*map(style.count, totals[:2]), style.money(totals[2])]

    header = ["arm", *([f"{pull}s", result, table.cost_unit] if in_all(0) else [])]
    header += [f"{result} per {pull}", f"cost per {pull}", f"cost per {singular}"]
    header += [f"{table.cost2_unit} per {pull}"] if table.cost2_unit else []
    rows = []
    for arm, (rate, price, per) in enumerate(estimates(instance)[:row_limit]):
        prices = [_with_ends(x, style.money) for x in (price, per)]
        prices += [style.amount(instance.mean_cost[arm, 1])] if table.cost2_unit else []
        cells = _rate(style, rate, evidence.whole), *prices
        rows.append([instance.arms[arm], *in_all(arm), *cells])
    rows += [["in all", *in_all(slice(None))]] if in_all(0) and not table.wide else []
    more = len(instance.arms) - row_limit
    rest = f"\n… and {count_of(more, 'more arm')}, which the last line counts" if more > 0 else ""
    return Table(header, rows).text() + rest


def _rate(style: NumberStyle, estimate: Estimate, percent: bool) -> str:
    if percent:
        return _with_ends(estimate, lambda value: style.number(100 * value, 2), " %")
    return _with_ends(estimate, lambda value: style.number(value, _decimals(value)))


def _decimals(value: float) -> int:
    return 2 if value >= 1 or value == 0 else min(2 - math.floor(math.log10(value)), 9)


def _with_ends(estimate: Estimate, spell: Callable[[float], str], sign: str = "") -> str:
    """``2.50 % (1.90 to 3.30)``; a dash for what is infinite."""
    value, low, high = (
        spell(x) if math.isfinite(x) else "∞" if x > 0 else "–"
        for x in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value}{sign}" + (f" ({low} to {high})" if not math.isnan(estimate.low) else "")


def _next(table: ArmsTable, arguments: argparse.Namespace) -> str:
    """The command that goes on from here, with what the file's arms cost as its budget."""
    from jaxbandits.apps.comparison.names import TWO_COSTS

    widest = max(table.instances, key=lambda instance: len(instance.arms))
    price = float(widest.mean_money.mean())
    paid = None if widest.evidence is None else widest.evidence.spent
    spent = 0.0 if paid is None else float(paid.sum())
    if table.wide:  # as if one arm had answered all
        spent /= len(widest.arms)
    budget = min(spent or 1000 * price, _PULLS_SUGGESTED * price)
    digits = 1 - math.floor(math.log10(budget))  # two that count, never in powers of ten
    rounded = f"{round(budget, digits):.{max(digits, 0)}f}"
    policies = "omega_ucb,bts,m_ucb"
    if table.cost2_unit:  # as much of the other as the same pulls take
        rounded += f",{budget / price * float(widest.mean_cost[:, 1].mean()):.2g}"
        policies = ",".join(TWO_COSTS)
    command = ["jaxbandits", "compare", "--arms", line(arguments.file)]
    for name, value in reading_of(arguments).items():
        if name == "columns" and value:
            value = ",".join(f"{role}={title}" for role, title in value.items())
        if isinstance(value, bool):
            command += [option_name(name)] * value
            continue
        # One word, for an empty name, or one of dashes, is no word of its own
        items = value if isinstance(value, list) else [value] * (value is not None)
        command += [f"{option_name(name)}={item}" for item in items]
    return shlex.join([*command, "--budget", rounded, "--policies", policies])
