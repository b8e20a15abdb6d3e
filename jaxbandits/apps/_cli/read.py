"""``jaxbandits read``: how an arms file is read, and the command to compare policies on it."""

from __future__ import annotations

import argparse
import functools
import math
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from jaxbandits.apps._cli.compare import FORMATS, READING_TABLE, READING_TYPES
from jaxbandits.apps._cli.console import Parser, say
from jaxbandits.tools import Table, count_of, line

if TYPE_CHECKING:
    from jaxbandits.apps.comparison import ArmsTable
    from jaxbandits.statistics import Estimate

_ARMS_SHOWN = 40
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

    reading = {x: y for x, y in vars(arguments).items() if x not in ("file", "job")}
    table = read_arms(arguments.file, **reading)
    instances, arms = table.instances, sum(len(instance.arms) for instance in table.instances)
    several = f", {count_of(len(instances), 'instance')}" if len(instances) > 1 else ""
    head = [f"read {arguments.file}: {table.kind}{several}, {arms:,} arms"]
    head += [f"  {note}" for note in table.notes]
    arms_shown, has_intervals = _arms(table)
    footnote = "(no intervals: totals or means alone do not show how certain they are)"
    if has_intervals:
        kinds = "Wilson's for rates of counts, else Student's t over days or rows"
        footnote = f"(in brackets: 95 % intervals, each by itself: {kinds})"
    budget, options = _budget(table), [x for x in argv[1:] if x != "--"]
    options.remove(arguments.file)
    command = ["jaxbandits", "compare", "--arms", line(arguments.file), *options]
    command += ["--budget", budget, "--policies", "omega_ucb,bts,m_ucb"]
    go_on = f"{footnote}\ngo on with:\n  {shlex.join(command)}"
    say("\n\n".join(["\n".join(map(line, head)), arms_shown, go_on]))
    return 0


def _arms(table: ArmsTable) -> tuple[str, bool]:
    """The arms with what was counted of them, and their means; and whether there are intervals."""
    from jaxbandits.apps.comparison.intervals import estimates
    from jaxbandits.apps.comparison.numerals import count, money

    several, result = len(table.instances) > 1, table.reward_unit
    header = ["instance"] * several + ["arm"]
    header += [f"{table.pull_unit}s", result, "spent"] * (table.kind != "means")
    header += [f"{result} per {table.pull_unit}", f"cost per {table.pull_unit}"]
    header += [f"cost per {table.result}"]
    rows, sums, lows = list[list[str]](), dict[str, list[tuple[float, ...]]](), list[float]()
    for instance in table.instances:
        share = "{:.2%}".format if instance.evidence.whole else money
        unit = instance.currency or table.cost_unit
        for arm, (rate, *prices) in enumerate(estimates(instance)):
            totals = instance.evidence.totals(arm) or ()
            sums.setdefault(unit, []).append(totals)
            lows.append(rate.low)
            cells = [*map(count, totals[:2]), *(money(x, unit) for x in totals[2:])]
            cells += [_with_ends(rate, share)]
            cells += [_with_ends(x, functools.partial(money, unit=unit)) for x in prices]
            rows.append([instance.name] * several + [instance.arms[arm], *cells])
    shown, more = rows[:_ARMS_SHOWN], len(rows) - _ARMS_SHOWN
    for unit, every in sums.items() if table.kind != "means" and not table.wide else ():
        pulls, value, spent = map(math.fsum, zip(*every, strict=True))
        blank = [""] * several
        shown.append(["in all", *blank, count(pulls), count(value), money(spent, unit)])
    rest = f"\n… and {count_of(more, 'more arm')}, counted in all" if more > 0 else ""
    return Table(header, shown).text() + rest, any(map(math.isfinite, lows))


def _with_ends(estimate: Estimate, spell: Callable[[float], str]) -> str:
    """``2.50% (1.90% to 3.30%)``; a dash for what is infinite."""
    value, low, high = (
        spell(x) if math.isfinite(x) else "∞" if x > 0 else "–"
        for x in (estimate.value, estimate.low, estimate.high)
    )
    return value + (f" ({low} to {high})" if not math.isnan(estimate.low) else "")


def _budget(table: ArmsTable) -> str:
    """What the arms of the widest instance cost in the file, in two digits."""
    widest = max(table.instances, key=lambda instance: len(instance.arms))
    price, totals = float(widest.mean_cost.mean()), widest.evidence.totals(slice(None))
    spent = 0.0 if totals is None else totals[2]
    if table.wide:  # as if one arm had answered all
        spent /= len(widest.arms)
    budget = min(spent or 1000 * price, _PULLS_SUGGESTED * price)
    digits = 1 - math.floor(math.log10(budget))  # never in powers of ten
    return f"{round(budget, digits):.{max(digits, 0)}f}"
