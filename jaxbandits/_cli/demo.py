"""``jaxbandits demo``: the main job on the shipped sample, and the command for files of one's own."""

from __future__ import annotations

import argparse
import shlex
from importlib import resources

from jaxbandits._cli import compare
from jaxbandits._cli.console import Parser, say

_CHOSEN = ["--budget", "300", "--policies", "omega_ucb,bts,m_ucb", "--rho", "0.0625,0.25,1", "--runs", "200"]


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits demo",
        description="Compare three policies on the shipped ads; some ten seconds the first time.",
    )
    made.add_argument("--out", default="jaxbandits-demo", metavar="DIR", help="folder to write to (jaxbandits-demo)")
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job, as ``jaxbandits compare`` does."""
    with resources.as_file(resources.files("jaxbandits") / "data" / "sample_ads.csv") as sample:
        command = ["compare", "--arms", str(sample), *_CHOSEN, "--out", arguments.out]
        say(f"$ {shlex.join(['jaxbandits', *command])}\n")
        chosen = compare.parser().parse(command[1:])
        chosen.job = "compare"
        return compare.run(chosen, command)
