"""``jaxbandits sweep SPEC.py --out DIR``: run a sweep."""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
from typing import Any

from jaxbandits.apps._cli.console import Parser, complain, say
from jaxbandits.apps._cli.status import duration
from jaxbandits.core import InputError
from jaxbandits.tools import line, refuse, whole_number

_EPILOG = """\
SPEC.py is a Python file that sets `sweep` to a jaxbandits.Sweep; docs/examples/sweep_rho.py is one.
Repeat the command to continue where it stopped, also after a kill, on other devices or with another --on.

Where a sweep runs: in this process, or with --on
  processes:4                four processes on this machine (Dask: pip install '.[dask]')
  dask:tcp://HOST:8786       the workers of a Dask scheduler that runs (on Slurm, Kubernetes, SSH, …)
"""
_OPTIONS = """\
spec  SPEC.py  a file that sets `sweep` to a jaxbandits.Sweep
--out  DIR  folder for blocks and results
--dry-run  -  print lanes, memory and expected time; run nothing
--on  ENGINE  where to run (default: this process), see below
--workers  N  threads that run lanes (one per device, or per core)
--progress  -  a bar on stderr (default: on a terminal)
"""


def parser() -> Parser:
    """The parser of ``sweep``."""
    about = "Simulate all policies, settings, environments and budgets of a spec, saving blocks."
    more: Any = {"workers": {"type": int}, "progress": {"action": argparse.BooleanOptionalAction}}
    return Parser("sweep", about, _OPTIONS, more, _EPILOG)


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """Run a sweep; the exit code is 0, or 1 if something could not be simulated or written."""
    from jaxbandits.sweeps import StorageError, UnfinishedError, open_engine, sweep
    from jaxbandits.sweeps.spec import load_spec, make_plan
    from jaxbandits.tools import usual_progress

    out = arguments.out
    if not out and not arguments.dry_run:
        raise InputError("--out: required (or --dry-run)")
    if arguments.workers is not None:
        whole_number("--workers", arguments.workers, 1, 4096)
        # Before its workers start
        refuse("--workers", arguments.workers, arguments.on is not None, "left out with --on")
    state = "nothing was written"
    if out:
        state = f"finished blocks are in {line(out)}, the same command continues"
    try:
        spec = load_spec(arguments.spec)
        if arguments.dry_run:
            say("\n".join(_forecast(make_plan(spec), arguments)))
            return 0
        options = {"workers": arguments.workers, "progress": usual_progress(arguments.progress)}
        engine = contextlib.nullcontext() if arguments.on is None else open_engine(arguments.on)
        with engine as executor:
            notice = functools.partial(complain, kind="note")
            result = sweep(spec, out, executor=executor, notice=notice, **options)
        say(f"{result.best_values().text()}\nwritten: {line(out)}/ (result.nc, sensitivity.csv)")
        return 0
    except (StorageError, UnfinishedError) as problem:
        complain(problem.strerror if isinstance(problem, OSError) else f"{problem}; {state}")
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; {state}", file=sys.stderr)
        return 130


def _forecast(plan: Any, arguments: argparse.Namespace) -> list[str]:
    from jaxbandits.sweeps.spec import forecast
    from jaxbandits.sweeps.store import Folder

    done: frozenset[int] = frozenset()
    if arguments.out and (folder := Folder(arguments.out)).has_sweep():
        folder.check(plan)
        done, _ = folder.sound()
    about = forecast(plan, arguments.workers, done)
    rounds = sum(block.rounds for block in plan.blocks)
    settings = sum(task.settings for task in next(iter(plan.layouts.values())).tasks)
    return [
        f"{len(plan.spec.named_policies())} policies with {settings} settings × {len(plan.layouts)} environments and "
        f"budgets × instances × {plan.spec.replicates} replicates = {plan.lanes:,} lanes, about {rounds:.3g} rounds",
        f"{len(plan.blocks)} blocks" + (f", {len(done)} of them done" if done else ""),
        f"{about.programs} programs to compile, {about.workers} workers",
        f"memory: at most {about.memory / 2**20:,.0f} MiB (it does not grow with rounds)",
        f"time: about {duration(about.seconds)} (from speeds on two cores of an AMD EPYC; the machine may differ)",
    ]
