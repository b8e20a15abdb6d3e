"""``jaxbandits demo``: the main job on the shipped sample, and the command for files of one's own."""

from __future__ import annotations

import argparse
import shlex
from importlib import resources
from pathlib import Path

import jaxbandits
from jaxbandits._cli import compare
from jaxbandits._cli.console import Parser, say
from jaxbandits.core.checks import bad, brief

_CHOSEN = ["--budget", "300", "--policies", "omega_ucb,bts,m_ucb", "--rho", "0.0625,0.25,1", "--runs", "200"]


def parser() -> Parser:
    """Of the command's options."""
    made = Parser(
        prog="jaxbandits demo", description="Compare three policies on the shipped ads; half a minute the first time."
    )
    made.add_argument("--out", default="jaxbandits-demo", metavar="DIR", help="folder to write to (jaxbandits-demo)")
    made.add_argument("--examples", metavar="DIR", help="copy the example specs of sweeps there, and do nothing else")
    return made


def run(arguments: argparse.Namespace, given: list[str]) -> int:
    """Do the job, as ``jaxbandits compare`` does."""
    if arguments.examples is not None:
        say(f"written: {', '.join(map(str, copy_examples(Path(arguments.examples))))}")
        return 0
    with resources.as_file(resources.files("jaxbandits") / "data" / "sample_ads.csv") as sample:
        command = ["compare", "--arms", str(sample), *_CHOSEN, "--out", arguments.out]
        say(f"$ {shlex.join(['jaxbandits', *command])}\n")
        chosen = compare.parser().parse(command[1:])
        chosen.job = "compare"
        return compare.run(chosen, command)


def copy_examples(folder: Path) -> list[Path]:
    """The example specs into a folder.

    Raises:
        InputError: one of them is there already, or the folder cannot be written to.
    """
    package = Path(jaxbandits.__file__).parent
    places = package / "data" / "examples", package.parent / "docs" / "examples"  # installed; a checkout
    written = []
    for example in sorted(next(place for place in places if place.is_dir()).glob("*.py")):
        there = folder / example.name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open(there, "x", encoding="utf-8") as file:
                file.write(example.read_text(encoding="utf-8"))
        except OSError as problem:
            raise bad("--examples", str(folder), f"a folder to write {example.name} to ({brief(problem)})") from None
        written.append(there)
    return written
