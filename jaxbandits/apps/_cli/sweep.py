"""``jaxbandits sweep SPEC.py --out DIR`` and ``jaxbandits status DIR``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from jaxbandits.apps._cli.console import Parser, complain, named_as_options, say, whole_in
from jaxbandits.core import InputError, bad
from jaxbandits.tools import line

_EPILOG = """\
SPEC.py is a Python file that sets `sweep` to a jaxbandits.Sweep; docs/examples/sweep_rho.py is one.
The same command again continues where it stopped, also after a kill, on other devices or with another --on.

Where a sweep runs: in this process, or with --on
  processes:4                four processes on this machine (Dask: pip install '.[dask]')
  dask:tcp://HOST:8786       the workers of a Dask scheduler that runs (on Slurm, Kubernetes, SSH, …)
"""


def sweep_parser() -> Parser:
    """The parser of ``sweep``."""
    command = Parser(
        prog="jaxbandits sweep",
        description="Simulate every policy, setting, environment and budget of a spec; save block by block.",
        epilog=_EPILOG,
    )
    add = command.add_argument
    add("spec", metavar="SPEC.py", help="a file that sets `sweep` to a jaxbandits.Sweep")
    add("--out", metavar="DIR", help="folder of blocks, results and report")
    add("--dry-run", action="store_true", help="print lanes, memory and expected time; run nothing")
    add("--on", metavar="ENGINE", help="where to run (default: this process), see below")
    add(
        "--workers",
        type=whole_in(1, 4096),
        metavar="N",
        help="threads that run lanes (one per device, or per core)",
    )
    add(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="a bar on stderr (default: on a terminal)",
    )
    return command


def status_parser() -> Parser:
    """The parser of ``status``."""
    command = Parser(
        prog="jaxbandits status",
        description="Report what is done of a sweep, what is left, and how long that will take.",
    )
    command.add_argument("folder", metavar="DIR", help="what was --out")
    return command


def run_sweep(arguments: argparse.Namespace, argv: list[str]) -> int:
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
    state = (
        f"finished blocks are in {line(out)}, the same command continues"
        if out
        else "nothing was written"
    )
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
        say(
            f"{summary(result)}\nwritten: {line(out)}/ (result.nc, sensitivity.csv, summary.txt, pictures)"
        )
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


def run_status(arguments: argparse.Namespace, argv: list[str]) -> int:
    """The command ``status``."""
    say("\n".join(status_lines(Path(arguments.folder))))
    return 0


def status_lines(path: Path) -> list[str]:
    """What is done of a sweep, what is left, and how long that will take at the pace of the latest
    run.
    """
    from jaxbandits.sweeps.store import Folder, read_logs

    folder = Folder(path)
    blocks = folder.manifest()["blocks"]
    done, damaged = folder.sound()
    waiting = [block for number, block in enumerate(blocks) if number not in done]
    total, rest = (sum(block["seconds"] for block in part) for part in (blocks, waiting))
    lines = [
        f"{line(str(path))}: {len(done)} of {len(blocks)} blocks done, {1 - rest / total:.0%} of the work"
    ]
    lines += [f"damaged, will be computed anew: {line(str(file))}" for file in damaged]
    if not waiting:
        report = (path / "result.nc").exists()
        return [
            *lines,
            "finished: summary.txt says what was found"
            if report
            else "the report is still to be written",
        ]
    for name in dict.fromkeys(block["of"] for block in waiting):
        of_it = [number for number, block in enumerate(blocks) if block["of"] == name]
        lines.append(
            f"  {line(name)}: {sum(number in done for number in of_it)} of {len(of_it)} blocks"
        )
    runs = [notes for notes in read_logs(path) if any(note["event"] == "block" for note in notes)]
    if runs:
        block_notes = [note for note in runs[-1] if note["event"] == "block"]
        seconds = max(block_notes[-1]["time"] - runs[-1][0]["time"], 1e-3)
        names = sorted({note["worker"] for note in block_notes})
        for name in names if len(names) > 1 else ():
            of_worker = [note for note in block_notes if note["worker"] == name]
            lanes, rounds = (
                sum(note[quantity] for note in of_worker) for quantity in ("lanes", "rounds")
            )
            lines.append(
                f"  worker {line(name)}: {len(of_worker)} blocks, {lanes:,} lanes, {rounds / seconds:.2g} rounds/s"
            )
        # Expected work of one core, done per second
        pace = sum(note["seconds"] for note in block_notes) / seconds
        lines.append(f"time left: about {_duration(rest / pace)} at the pace of the latest run")
    else:
        lines.append("time left: unknown before the first block of a run is done")
    return [
        *lines,
        "a run works on it now"
        if folder.in_use()
        else "no run works on it now; the same command continues",
    ]


def _duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
