"""``python -m experiments NAME [--quick|--full] [--only ITEM] [--out DIR] [--data DIR]``, or ``--list``.

An experiment is a module of this folder with a function ``run(options)``; names with a leading ``_`` or ``data_`` are
its helpers. It writes at least one PNG and ``summary.csv`` to ``--out``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from experiments.common import Options

_HELPERS = ("_", "data_", "common")


def names() -> list[str]:
    """All experiments."""
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith(_HELPERS))


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.split("\n\n")[1])
    parser.add_argument("name", nargs="?", choices=names(), metavar="NAME", help=", ".join(names()))
    parser.add_argument("--list", action="store_true", help="print the names, one per line")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small, at most 90 seconds")
    size.add_argument("--full", action="store_true", help="the published size or more")
    parser.add_argument("--only", metavar="ITEM", help="one item of the experiment")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: jaxbandits-out/NAME)")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="DIR", help="real data files")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(names()))
        return 0
    if given.name is None:
        parser.error("NAME: none given; it must be one of " + ", ".join(names()))
    out = given.out or Path("jaxbandits-out") / given.name
    out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    importlib.import_module(f"experiments.{given.name}").run(
        Options(given.quick, given.full, given.only, out, given.data)
    )
    print(f"{given.name}: {time.perf_counter() - began:.0f} s, results in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
