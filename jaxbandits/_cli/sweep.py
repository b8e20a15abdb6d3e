"""``jaxbandits sweep SPEC.py --out DIR`` and ``jaxbandits status DIR``."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from jaxbandits._cli.command_line import Parser, complain, refused, say, whole
from jaxbandits._files.files import path_of
from jaxbandits.core.errors import InputError, bad
from jaxbandits.core.printable import brief, line
from jaxbandits.sweeps.log import is_number

_EPILOG = """\
SPEC.py is a Python file that sets `sweep` to a jaxbandits.Sweep; docs/examples/sweep_rho.py is one.
The same command again continues where it stopped, also after a kill, on other devices or in more processes.

Several processes that share DIR (start all of them, on one host or many):
  jaxbandits sweep SPEC.py --out DIR --coordinator HOST:PORT --processes 2 --process 0
  jaxbandits sweep SPEC.py --out DIR --coordinator HOST:PORT --processes 2 --process 1
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
    add("--out", metavar="DIR", help="folder of blocks, results and report")
    add("--dry-run", action="store_true", help="print lanes, memory and expected time; run nothing")
    add("--workers", type=whole(1, 4096), metavar="N", help="threads that run lanes (one per device, or per core)")
    add("--progress", action=argparse.BooleanOptionalAction, help="a bar on stderr (default: on a terminal)")
    add("--coordinator", type=_meeting_place, metavar="HOST:PORT",
        help="process 0 of several, or auto (Slurm, Open MPI, TPU)")  # fmt: skip
    add("--processes", type=whole(1, 2**20), metavar="N", help="how many processes there are")
    add("--process", type=whole(0, 2**20), metavar="I", help="the number of this one, from 0")
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


def _meeting_place(text: str) -> str:
    host, _, port = text.rpartition(":")
    if text != "auto" and not (host.strip() and re.fullmatch(r"\d{1,5}", port, re.ASCII) and 0 < int(port) < 2**16):
        raise refused(text, "HOST:PORT of process 0, or auto")
    return text


def _check_processes(arguments: argparse.Namespace) -> None:
    """Whether the options of several processes fit together."""
    numbers = {"--processes": arguments.processes, "--process": arguments.process}
    given = {name: value for name, value in numbers.items() if value is not None}
    if arguments.coordinator is None and given:
        name, value = given.popitem()
        raise bad(name, value, "left out unless --coordinator is given")
    if arguments.coordinator not in (None, "auto"):
        for name, value in numbers.items():
            if value is None:
                raise InputError(f"{name}: missing; with --coordinator it must be given")
        if arguments.process >= arguments.processes:
            raise bad("--process", arguments.process, f"from 0 to {arguments.processes - 1}, one less than --processes")


def run_sweep(arguments: argparse.Namespace, given: list[str]) -> int:
    """The command ``sweep``; the exit code is 0, or 1 if something could not be written."""
    from jaxbandits.sweeps import processes
    from jaxbandits.sweeps.plan import make_plan
    from jaxbandits.sweeps.run import sweep
    from jaxbandits.sweeps.spec_file import read_spec, run_spec
    from jaxbandits.sweeps.store import StorageError

    joined = False
    text = read_spec(arguments.spec)
    _check_processes(arguments)
    if arguments.out is None and not arguments.dry_run:
        raise InputError("--out: missing; it must be given (or --dry-run)")
    if arguments.out is not None and not arguments.out.strip():
        raise bad("--out", arguments.out, "the name of a folder")
    code = 0
    try:
        if arguments.coordinator is not None:
            processes.join(arguments.coordinator, arguments.processes, arguments.process)
            joined = True
        spec = run_spec(arguments.spec, text, _notice)
        if arguments.dry_run:
            say("\n".join(_forecast(make_plan(spec), arguments)))
            return 0
        shown_ = sys.stderr.isatty() if arguments.progress is None else arguments.progress
        result = sweep(spec, arguments.out, workers=arguments.workers, progress=shown_, notice=_notice)
        if _first():
            from jaxbandits.sweeps.report import summary

            say(summary(result).removesuffix("\n"))
            say(f"\nwritten: {line(arguments.out)}/ (result.nc, sensitivity.csv, summary.txt, pictures)")
    except StorageError as problem:
        complain(str(problem.strerror))
        code = 1
    except KeyboardInterrupt:
        kept = f"finished blocks are in {line(arguments.out)}, the same command continues" if arguments.out else ""
        print(f"interrupted; {kept or 'nothing was written'}", file=sys.stderr)
        code = 130
    except InputError as problem:
        named = re.sub(r"^(out|workers|coordinator|processes|process):", r"--\1:", str(problem))
        if not joined:
            raise InputError(named) from None
        complain(named)
        code = 2
    if joined and code:
        sys.stdout.flush()
        os._exit(code)  # the others must not wait for us at the exit: jax ends them when our heartbeat stops
    return code


def _first() -> bool:
    import jax

    return jax.process_index() == 0


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
    pace = _pace([notes for notes in read_logs(folder.path) if any(_is_block(note) for note in notes)])
    if not pace:
        lines.append("time left: unknown before the first block of a run is done")
    else:
        lines.append(f"time left: about {duration(rest / pace)} at the pace of the latest run")
    lines.append(
        f"a run works on it now ({working})" if working else "no run works on it now; the same command continues"
    )
    return lines


def _is_block(note: dict[str, Any]) -> bool:
    return note["event"] == "block" and is_number(note.get("seconds")) and note["seconds"] > 0


def _pace(runs: list[list[dict[str, Any]]]) -> float | None:
    """Expected seconds of one core's work done per second, by all processes of the latest run."""
    if not runs:
        return None
    begun = max(notes[0]["time"] for notes in runs)
    paces = []
    for notes in runs:
        if notes[0]["time"] >= begun - 60:
            done = [note for note in notes if _is_block(note)]
            paces.append(sum(note["seconds"] for note in done) / max(done[-1]["time"] - notes[0]["time"], 1e-3))
    return sum(paces)


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if not seconds < 1e9:
        return "30 years or more"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
