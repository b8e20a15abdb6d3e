"""``python -m benchmarks.bad_input [--area TEXT] [--quick]``: bad input of every kind, and how it was answered.

Prints how many cases were tried and passed in each area, then every failure; exit 1 if there is one.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time

from benchmarks.bad_input.trial import all_cases, failure, table
from jaxbandits._cli.command_line import Parser, parse_or_leave

_MEMORY = 8 << 30


def main(given: list[str] | None = None) -> int:
    """The command line."""
    parser = Parser(prog="python -m benchmarks.bad_input", description=__doc__)
    parser.add_argument("--area", metavar="TEXT", default="", help="only areas that hold this text")
    parser.add_argument("--quick", action="store_true", help="every tenth case")
    parser.add_argument("--slow", action="store_true", help="name the ten cases that took longest")
    options = parse_or_leave(parser, given)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        # what asks for far too much shall fail here, and not by the machine's memory
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))

    cases = [case for case in all_cases() if options.area in case.area][:: 10 if options.quick else 1]
    results, took = [], []
    for case in cases:
        began = time.perf_counter()
        results.append((case, failure(case)))
        took.append((time.perf_counter() - began, f"{case.area}: {case.name}"))
    print("\n".join(table(results)))
    if options.slow:
        print("\n".join(f"{seconds:6.1f} s  {name}" for seconds, name in sorted(took)[:-11:-1]))
    print(f"{sum(seconds for seconds, _ in took):.0f} s")
    return 1 if any(said for _, said in results) else 0


if __name__ == "__main__":
    sys.exit(main())
