"""``jaxbandits audit``: recompute every decision in the file of a live agent."""

from __future__ import annotations

import argparse

from jaxbandits.apps._cli.console import Parser, say
from jaxbandits.tools import count_of, line

_EPILOG = """\
Its policy must be one of jb.policies; for one of your own see jb.live.audit.
The exit code is 1 if a decision differs from the file, or if a budget was exceeded.
"""


def parser() -> Parser:
    """The parser of ``audit``."""
    about = "Repeat every decision in the file of a jb.live.Agent, and check it and the budgets."
    table = "file  FILE  the file of the agent, which may keep running"
    return Parser("audit", about, table, epilog=_EPILOG)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Audit a file; the exit code is 1 if something differs or a period was overspent, else 0."""
    from jaxbandits.apps.live import audit

    report = audit(arguments.file)
    counts = [count_of(report[name], name.removesuffix("s")) for name in ("decisions", "outcomes")]
    lines = [f"audit {line(arguments.file)}: {', '.join(counts)}"]
    lines += map(line, report["problems"] or ["every decision is the one that the file says"])
    if report["before"]:
        lines.append(f"{count_of(report['before'], 'earlier event')} not kept, and not checked")
    for name, periods in report["charged"].items():
        count = count_of(len(periods), "period")
        lines.append(f"{line(name)}: {sum(periods.values()):g} charged in {count}")
    for name, periods in report["overspent"].items():
        over = (f"{x:g} overspent in the period from {begin:.0f}" for begin, x in periods.items())
        lines += [f"{line(name)}: {text}" for text in over]
    say("\n  ".join(lines if report["overspent"] else [*lines, "no period was overspent"]))
    return 1 if report["problems"] or report["overspent"] else 0
