"""``python -m experiments NAME [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]``, or
``--list``.

An experiment is a module or folder here, one for each paper, that offers an ``EXPERIMENT``. It
writes ``summary.csv`` to ``--out``, and the pictures that pages show.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from experiments.common import Experiment, Options
from jaxbandits.apps._cli.console import collect_rarely, keep_programs, listed
from jaxbandits.core.checks import InputError, bad

NAMES = (
    "b_zoom",
    "contexts",
    "drift",
    "gradients",
    "knapsacks",
    "omega_ucb",
    "omega_ucb_tails",
    "rcb",
    "rcucb",
    "service",
    "suak",
)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=__doc__.split("\n\n")[1]
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--list", action="store_true", help="print the names, one per line")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a small version, at most 90 seconds")
    size.add_argument("--full", action="store_true", help="the published size or more")
    parser.add_argument("--only", metavar="ITEM", help="run one item of the experiment")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (default: jaxbandits-out/NAME)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("../shared/data"),
        metavar="DIR",
        help="folder with the real data files",
    )
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(NAMES))
        return 0
    if options.name is None:
        parser.error("NAME: none given; it must be one of " + ", ".join(NAMES))
    start = time.perf_counter()
    collect_rarely()
    keep_programs()
    try:
        experiment = named(options.name)
        out = options.out or Path("jaxbandits-out") / options.name
        experiment.run(Options(options.quick, options.full, options.only, out, options.data))
    except InputError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    print(f"{options.name}: {time.perf_counter() - start:.0f} s, results in {out}")
    return 0


def named(name: str) -> Experiment:
    """The experiment of this name, if there is one."""
    if name not in NAMES:
        raise bad("NAME", name, f"one of {listed(name, NAMES)}")
    return importlib.import_module(f"experiments.{name}").EXPERIMENT


if __name__ == "__main__":
    sys.exit(main())
