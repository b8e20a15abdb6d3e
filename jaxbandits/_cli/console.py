"""The command ``jaxbandits``: ``read`` (:mod:`~jaxbandits._cli.read`), ``compare`` (:mod:`~jaxbandits._cli.compare`),
``demo`` (:mod:`~jaxbandits._cli.demo`), ``sweep`` and ``status`` (:mod:`~jaxbandits._cli.sweep`), ``tune``
(:mod:`~jaxbandits._cli.tune`).
``jaxbandits compare --help`` lists everything."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from jaxbandits._cli import interrupt
from jaxbandits._cli.command_line import Parser, complain, nearest, typed
from jaxbandits._cli.programs import keep_programs
from jaxbandits.core.errors import InputError

# Of each job: what it is for, and the module with a function that makes its parser and one that does it.
_JOBS = {
    "read": ("show what was understood of an arms file", "jaxbandits._cli.read", "parser", "run"),
    "compare": ("which policy spends a budget best", "jaxbandits._cli.compare", "parser", "run"),
    "demo": ("compare on the sample that is shipped", "jaxbandits._cli.demo", "parser", "run"),
    "sweep": ("regret over grids of parameters, kill-safe", "jaxbandits._cli.sweep", "sweep_parser", "run_sweep"),
    "status": ("what is done of a sweep, what is left", "jaxbandits._cli.sweep", "status_parser", "run_status"),
    "tune": ("find a policy's parameter by gradient descent", "jaxbandits._cli.tune", "parser", "run"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (nothing could be written), 2 (bad input) or 130 (Ctrl-C).

    Args:
        argv: the arguments, default those of the process.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # it is closed, or is not Python's own
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        interrupt.ready()
        return _run(given)
    except InputError as problem:
        complain(problem)
        return 2
    except KeyboardInterrupt as stop:
        # an interrupted comparison knows how far it came
        done = f"{stop.done} of {stop.runs} runs" if hasattr(stop, "done") and hasattr(stop, "runs") else "no run"
        print(f"interrupted: {done} finished; nothing was written", file=sys.stderr, flush=True)
        return 130


def _run(given: list[str]) -> int:
    job = given[0] if given else None
    if job is None or job.startswith("-"):
        _top_parser().parse(given)
        raise InputError(f"{'|'.join(_JOBS)}: missing; it must be given")
    if job not in _JOBS:
        raise InputError(f"{typed(job)}: unknown command{nearest(job, _JOBS)}; it must be one of {', '.join(_JOBS)}")
    _, module, make, run = _JOBS[job]
    found: Any = importlib.import_module(module)
    arguments = getattr(found, make)().parse(given[1:])
    arguments.job = job
    keep_programs()
    return getattr(found, run)(arguments, given)


def _top_parser() -> Parser:
    from jaxbandits import __version__

    width = max(map(len, _JOBS))
    parser = Parser(
        prog="jaxbandits",
        usage=f"jaxbandits {'|'.join(_JOBS)} …",
        description="Simulate bandits whose arms cost something.",
        epilog="\n".join(
            ["commands (each has --help):", *(f"  {job:{width}}  {about[0]}" for job, about in _JOBS.items())]
        ),
    )
    parser.add_argument("--version", action="version", version=f"jaxbandits {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
