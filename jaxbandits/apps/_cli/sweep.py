"""``jaxbandits sweep SPEC.py --out DIR`` and ``jaxbandits status DIR``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from jaxbandits.apps._cli.console import Parser, complain, named_as_options, say
from jaxbandits.core import InputError, bad
from jaxbandits.tools import line, whole_number

_EPILOG = """\
SPEC.py is a Python file that sets `sweep` to a jaxbandits.Sweep; docs/examples/sweep_rho.py is one.
The same command again continues where it stopped, also after a kill, on other devices or with another --on.

Where a sweep runs: in this process, or with --on
  processes:4                four processes on this machine (Dask: pip install '.[dask]')
  dask:tcp://HOST:8786       the workers of a Dask scheduler that runs (on Slurm, Kubernetes, SSH, …)
"""


_OPTIONS = """\
spec  SPEC.py  a file that sets `sweep` to a jaxbandits.Sweep
--out  DIR  folder of blocks, results and report
--dry-run  -  print lanes, memory and expected time; run nothing
--on  ENGINE  where to run (default: this process), see below
--workers  N  threads that run lanes (one per device, or per core)
--progress  -  a bar on stderr (default: on a terminal)
"""


def parser() -> Parser:
    """The parser of ``sweep``."""
    about = "Simulate every policy, setting, environment and budget of a spec; save block by block."
    more: Any = {"workers": {"type": int}, "progress": {"action": argparse.BooleanOptionalAction}}
    return Parser("sweep", about, _OPTIONS, more, _EPILOG)


def status_parser() -> Parser:
    """The parser of ``status``."""
    about = "Report what is done of a sweep, what is left, and how long that will take."
    return Parser("status", about, "folder  DIR  what was --out")


def run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """The command ``sweep``; the exit code is 0, or 1 if something could not be played or written."""
    from jaxbandits.sweeps import StorageError, UnfinishedError, open_engine, sweep
    from jaxbandits.sweeps.report import summary
    from jaxbandits.sweeps.spec import load_spec, make_plan
    from jaxbandits.tools import usual_progress

    out = arguments.out
    if not out and not arguments.dry_run:
        raise InputError("--out: required (or --dry-run)")
    if arguments.on is not None and arguments.workers is not None:
        raise bad("--workers", arguments.workers, "left out with --on")
    if arguments.workers is not None:
        whole_number("--workers", arguments.workers, 1, 4096)
    state = "nothing was written"
    if out:
        state = f"finished blocks are in {line(out)}, the same command continues"
    try:
        with named_as_options({*vars(arguments)}):
            spec = load_spec(arguments.spec)
            if arguments.dry_run:
                say("\n".join(_forecast(make_plan(spec), arguments)))
                return 0
            options = {"workers": arguments.workers, "progress": usual_progress(arguments.progress)}
            engine = contextlib.nullcontext() if arguments.on is None else open_engine(arguments.on)
            with engine as executor:
                result = sweep(spec, out, executor=executor, notice=_notice, **options)
        files = "result.nc, sensitivity.csv, summary.txt, pictures"
        say(f"{summary(result)}\nwritten: {line(out)}/ ({files})")
        return 0
    except (StorageError, UnfinishedError) as problem:
        complain(problem.strerror if isinstance(problem, OSError) else f"{problem}; {state}")
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; {state}", file=sys.stderr)
        return 130


def _notice(text: str) -> None:
    print(f"jaxbandits: note: {line(text)}", file=sys.stderr, flush=True)


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
        f"time: about {_duration(about.seconds)} (from speeds on two cores of an AMD EPYC; the machine may differ)",
    ]


def status_run(arguments: argparse.Namespace, argv: list[str]) -> int:
    """The command ``status``."""
    say("\n".join(status_lines(Path(arguments.folder))))
    return 0


def status_lines(path: Path) -> list[str]:
    """What is done of a sweep, what is left, and how long that will take at the latest pace."""
    from jaxbandits.sweeps.store import Folder, read_logs

    folder = Folder(path)
    blocks = folder.manifest()["blocks"]
    done, damaged = folder.sound()
    waiting = [block for number, block in enumerate(blocks) if number not in done]
    total, rest = (sum(block["seconds"] for block in part) for part in (blocks, waiting))
    share = f"{len(done)} of {len(blocks)} blocks done, {1 - rest / total:.0%} of the work"
    lines = [f"{line(str(path))}: {share}"]
    lines += [f"damaged, will be computed anew: {line(str(file))}" for file in damaged]
    if not waiting:
        if (path / "result.nc").exists():
            return [*lines, "finished: summary.txt says what was found"]
        return [*lines, "the report is still to be written"]
    for name in dict.fromkeys(block["of"] for block in waiting):
        of_it = [number in done for number, block in enumerate(blocks) if block["of"] == name]
        lines.append(f"  {line(name)}: {sum(of_it)} of {len(of_it)} blocks")
    runs = [notes for notes in read_logs(path) if any(note["event"] == "block" for note in notes)]
    if runs:
        block_notes = [note for note in runs[-1] if note["event"] == "block"]
        seconds = max(block_notes[-1]["time"] - runs[-1][0]["time"], 1e-3)
        names = sorted({note["worker"] for note in block_notes})
        for name in names if len(names) > 1 else ():
            of_worker = [note for note in block_notes if note["worker"] == name]
            lanes = sum(note["lanes"] for note in of_worker)
            speed = sum(note["rounds"] for note in of_worker) / seconds
            about = f"{len(of_worker)} blocks, {lanes:,} lanes, {speed:.2g} rounds/s"
            lines.append(f"  worker {line(name)}: {about}")
        # Expected work of one core, done per second
        pace = sum(note["seconds"] for note in block_notes) / seconds
        lines.append(f"time left: about {_duration(rest / pace)} at the pace of the latest run")
    else:
        lines.append("time left: unknown before the first block of a run is done")
    if folder.in_use():
        return [*lines, "a run works on it now"]
    return [*lines, "no run works on it now; the same command continues"]


def _duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
