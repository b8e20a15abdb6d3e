"""``jaxbandits audit``: decide again what the file of a live agent says was decided."""

from __future__ import annotations

import argparse

from jaxbandits._tables import counted, line
from jaxbandits.apps._cli.console import Parser, say


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits audit",
        description="Decide again what the file of jb.live.Agent says was decided, and see whether the money lasted.",
        epilog="Its policy must be one of jb.policies; for one of your own see jb.live.audit.\n"
        "The exit code is 1 if anything is otherwise than the file says, or if a period was overspent.\n",
    )
    made.add_argument("file", metavar="FILE", help="the file of the agent, which may go on meanwhile")
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job; the exit code is 0, or 1 for a file that is not right, or for money that did not last."""
    from jaxbandits.apps.live import audit

    found = audit(arguments.file)
    many = [counted(found[name], name.removesuffix("s")) for name in ("decisions", "outcomes")]
    lines = [f"audit {line(arguments.file)}: {', '.join(many)}"]
    lines += map(line, found["problems"]) if found["problems"] else ["every decision is the one that the file says"]
    if found["before"]:
        lines.append(f"{counted(found['before'], 'earlier event')} not kept, and not checked")
    for name, periods in found["charged"].items():
        lines.append(f"{line(name)}: {sum(periods.values()):g} charged in {counted(len(periods), 'period')}")
    for name, periods in found["overspent"].items():
        lines += [f"{line(name)}: {over:g} overspent in the period from {begin:.0f}" for begin, over in periods.items()]
    say("\n  ".join(lines if found["overspent"] else [*lines, "no period was overspent"]))
    return 1 if found["problems"] or found["overspent"] else 0
