"""``jaxbandits sweep SPEC.py --out DIR`` and ``jaxbandits status DIR``."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from jaxbandits._cli.command_line import Parser, complain, refused, say, whole
from jaxbandits._files.files import path_of
from jaxbandits._reports.progress import usual_progress
from jaxbandits.core.errors import InputError, bad, shown
from jaxbandits.core.printable import brief, line
from jaxbandits.sweeps.log import is_number

_EPILOG = """\
SPEC.py is a Python file that sets `sweep` to a jaxbandits.Sweep; docs/examples/sweep_rho.py is one.
The same command again continues where it stopped, also after a kill, on other devices or with another --on.

Who plays: this process, or with --on
  processes:4                four processes on this machine
  dask:tcp://HOST:8786       the workers of a Dask scheduler that runs
  dask:local:4               a Dask cluster of four processes on this machine
  slurm[:NAME=VALUE,...]     jobs of Slurm, options as for submitit.AutoExecutor
Without any coordinator (a Slurm array, an indexed job of Kubernetes), a folder each, then all together:
  jaxbandits sweep SPEC.py --out part-$I --shard $I/16
  jaxbandits sweep SPEC.py --finish DIR part-*
"""


def sweep_parser() -> Parser:
    """Of the options of ``sweep``."""
    made = Parser(
        must=("spec",),
        prog="jaxbandits sweep",
        description="Play every policy, setting, environment and budget of a spec; save block by block.",
        epilog=_EPILOG,
    )
    add = made.add_argument
    add("spec", nargs="?", metavar="SPEC.py", help="a file that sets `sweep` to a jaxbandits.Sweep")
    add("parts", nargs="*", default=[], metavar="PART", help="with --finish: folders whose blocks are taken")
    add("--out", metavar="DIR", help="folder of blocks, results and report")
    add("--dry-run", action="store_true", help="print lanes, memory and expected time; run nothing")
    add("--on", metavar="ENGINE", help="who plays (default: this process), see below")
    add("--shard", type=_shard, metavar="I/N", help="only every N-th block, from block I on (0 to N - 1); no report")
    add("--finish", metavar="DIR", help="take the blocks of PART ... into DIR and write the report; run nothing")
    add("--workers", type=whole(1, 4096), metavar="N", help="threads that run lanes (one per device, or per core)")
    add("--progress", action=argparse.BooleanOptionalAction, help="a bar on stderr (default: on a terminal)")
    return made


def status_parser() -> Parser:
    """Of the options of ``status``."""
    made = Parser(
        must=("folder",),
        prog="jaxbandits status",
        description="Say what is done of a sweep, what is left, and how long that will take.",
    )
    made.add_argument("folder", nargs="?", metavar="DIR", help="what was --out")
    return made


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    if not match or int(match[1]) >= int(match[2]):
        raise refused(text, "I/N with I from 0 to N - 1, such as 0/16")
    return int(match[1]), int(match[2])


def _check(arguments: argparse.Namespace) -> None:
    """Whether the options fit together."""
    given = {name: getattr(arguments, name[2:]) for name in ("--out", "--on", "--shard", "--finish", "--workers")}
    if arguments.out is None and arguments.finish is None and not arguments.dry_run:
        raise InputError("--out: missing; it must be given (or --finish, or --dry-run)")
    for name in ("--out", "--finish"):
        if given[name] is not None and not given[name].strip():
            raise bad(name, given[name], "the name of a folder")
    if arguments.parts and arguments.finish is None:
        raise InputError(
            f"{shown(arguments.parts[0])}: not expected here without --finish (see jaxbandits sweep --help)"
        )
    for one, other in (
        *(("--finish", name) for name in ("--out", "--on", "--shard", "--workers")),
        ("--on", "--workers"),
    ):
        if given[one] is not None and given[other] is not None:
            raise bad(other, given[other], f"left out with {one}")


def run_sweep(arguments: argparse.Namespace, given: list[str]) -> int:
    """The command ``sweep``; the exit code is 0, or 1 if something could not be played or written."""
    from jaxbandits.sweeps.dispatch import UnfinishedError
    from jaxbandits.sweeps.plan import make_plan
    from jaxbandits.sweeps.spec_file import read_spec, run_spec
    from jaxbandits.sweeps.store import StorageError

    text = read_spec(arguments.spec)
    _check(arguments)
    out = arguments.out if arguments.finish is None else arguments.finish
    kept = f"finished blocks are in {line(out)}, the same command continues" if out else "nothing was written"
    try:
        spec = run_spec(arguments.spec, text, _notice)
        if arguments.dry_run:
            say("\n".join(_forecast(make_plan(spec), arguments)))
        else:
            say("\n".join(_play(spec, out, arguments)))
        return 0
    except StorageError as problem:
        complain(str(problem.strerror))
        return 1
    except UnfinishedError as problem:
        complain(f"{problem}; {kept}")
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; {kept}", file=sys.stderr)
        return 130
    except InputError as problem:
        names = {"out": "--finish" if arguments.finish else "--out", "workers": "--workers", "executor": "--on"}
        name, colon, rest = str(problem).partition(":")
        raise InputError(f"{names.get(name, name)}{colon}{rest}") from None


def _play(spec: Any, out: str, arguments: argparse.Namespace) -> list[str]:
    """What the command says at the end."""
    from jaxbandits.sweeps.engines import open_engine
    from jaxbandits.sweeps.report import summary
    from jaxbandits.sweeps.run import finish, play_shard, sweep

    written = f"\nwritten: {line(out)}/ (result.nc, sensitivity.csv, summary.txt, pictures)"
    if arguments.finish is not None:
        return [summary(finish(spec, out, arguments.parts, notice=_notice)).removesuffix("\n"), written]
    shown_ = usual_progress(arguments.progress)
    with open_engine(arguments.on) if arguments.on is not None else contextlib.nullcontext() as executor:
        options = {"executor": executor, "workers": arguments.workers, "progress": shown_, "notice": _notice}
        if arguments.shard is not None:
            play_shard(spec, out, arguments.shard, **options)
            return [f"shard {arguments.shard[0]}/{arguments.shard[1]} is done: {line(out)}/"]
        return [summary(sweep(spec, out, **options)).removesuffix("\n"), written]


def _notice(text: str) -> None:
    print(f"jaxbandits: note: {line(text)}", file=sys.stderr, flush=True)


def _forecast(plan: Any, arguments: argparse.Namespace) -> list[str]:
    from jaxbandits.sweeps.plan import forecast
    from jaxbandits.sweeps.store import Folder

    done: frozenset[int] = frozenset()
    if arguments.out is not None and (folder := Folder(arguments.out)).begun():
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


def run_status(arguments: argparse.Namespace, given: list[str]) -> int:
    """The command ``status``."""
    from jaxbandits.sweeps.store import Folder

    say("\n".join(status_lines(Folder(path_of("DIR", arguments.folder)))))
    return 0


def status_lines(folder: Any, clock: Callable[[], float] = time.time) -> list[str]:
    """What is done of a sweep, what is left, and how long that will take at the pace of the latest run."""
    from jaxbandits.sweeps.log import read_logs

    blocks = folder.manifest()["blocks"]
    done, broken = folder.sound()
    left = [block for number, block in enumerate(blocks) if number not in done]
    total, rest = (sum(block["seconds"] for block in part) for part in (blocks, left))
    lines = [f"{line(str(folder.path))}: {len(done)} of {len(blocks)} blocks done, {1 - rest / total:.0%} of the work"]
    lines += [f"corrupt, will be computed anew: {line(str(path))} (it {wrong})" for path, wrong in broken.items()]
    working = folder.in_use()
    report = (folder.path / "result.nc").exists()
    if not left:
        return [*lines, "finished: summary.txt says what was found" if report else "the report is still to be written"]
    by_unit: dict[str, list[int]] = {}
    for number, block in enumerate(blocks):
        by_unit.setdefault(block["of"], []).append(number)
    for name, numbers in by_unit.items():
        ready = sum(number in done for number in numbers)
        if ready < len(numbers):
            lines.append(f"  {brief(name)}: {ready} of {len(numbers)} blocks")
    runs = [notes for notes in read_logs(folder.path) if any(_is_block(note) for note in notes)]
    if not runs:
        lines.append("time left: unknown before the first block of a run is done")
    else:
        lines += _by_worker(runs[-1])
        lines.append(f"time left: about {duration(rest / _pace(runs[-1]))} at the pace of the latest run")
    lines.append(
        f"a run works on it now ({working})" if working else "no run works on it now; the same command continues"
    )
    return lines


def _is_block(note: dict[str, Any]) -> bool:
    return note["event"] == "block" and is_number(note.get("seconds")) and note["seconds"] > 0


def _pace(notes: list[dict[str, Any]]) -> float:
    """Expected seconds of one core's work done per second, by all workers of a run."""
    done = [note for note in notes if _is_block(note)]
    return sum(note["seconds"] for note in done) / max(done[-1]["time"] - notes[0]["time"], 1e-3)


def _by_worker(notes: list[dict[str, Any]]) -> list[str]:
    """What each of several workers of a run did."""
    workers: dict[str, list[dict[str, Any]]] = {}
    for note in filter(_is_block, notes):
        workers.setdefault(str(note.get("worker", "")), []).append(note)
    lines = []
    for name, done in sorted(workers.items()) if len(workers) > 1 else ():
        lanes, rounds = (sum(n[x] for n in done if is_number(n.get(x))) for x in ("lanes", "rounds"))
        pace = rounds / max(done[-1]["time"] - notes[0]["time"], 1e-3)
        lines.append(f"  worker {brief(name, 80)}: {len(done)} blocks, {lanes:,.0f} lanes, {pace:.2g} rounds/s")
    return lines


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if not seconds < 1e9:
        return "30 years or more"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
