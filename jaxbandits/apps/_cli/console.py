"""The command ``jaxbandits``, and what its subcommands share: one-line errors and printing.

Converters only turn text into values; the library checks their range.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jaxbandits.core import InputError, bad
from jaxbandits.tools import line, nearest, quoted, refuse


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InputError and prints no usage.

    A line of ``table`` is an argument: its name, its value (``A|B``: one of these; ``-``: a
    switch), what it does. ``more`` has by name what else argparse is told. Beside ``--policies``
    every other ``--name 1,2`` is a parameter of theirs, in ``parameters``.
    """

    def __init__(
        self,
        job: str,
        description: str,
        table: str = "",
        more: Mapping[str, Mapping[str, Any]] | None = None,
        epilog: str = "",
    ):
        super().__init__(
            prog=f"jaxbandits {job}".strip(),
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for text in table.splitlines():
            name, metavar, about = text.split("  ", 2)
            own: Any = (more or {}).get(name.lstrip("-"), {})
            if metavar == "-":
                own = {"action": "store_true"} | own
            else:
                choices = metavar.split("|") if "|" in metavar and "type" not in own else None
                own = {"metavar": metavar, "choices": choices} | own
            self.add_argument(name, help=about, **own)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse; an InputError names a wrong argument, and ``--help`` raises SystemExit(0)."""
        argv = [re.sub(r"^(--[\w-]+=--)$", r"\1 ", word) for word in argv]  # else "--" is taken out
        arguments, rest = self.parse_known_args(argv)
        parameters, words = dict[str, list[float]](), iter(rest)
        takes_parameters = hasattr(arguments, "policies")
        for word in words:
            name, equals, value = word.partition("=")
            near = nearest(name, self._option_string_actions) or f" (see {self.prog} --help)"
            if not (takes_parameters and name.startswith("--")):
                raise InputError(f"{line(name)}: unknown argument{near}")
            value = value if equals else next(words, "")
            try:
                parameters[name[2:].replace("-", "_")] = [float(x) for x in value.split(",")]
            except ValueError:
                may_be = f"numbers, separated by commas (a parameter of a policy){near}"
                raise bad(line(name), value, may_be) from None
        if takes_parameters:
            arguments.parameters = parameters
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise an InputError with a one-line message."""
        raise InputError(line(message.removeprefix("argument ")))


def refused(text: object, may_be: str) -> argparse.ArgumentTypeError:
    """The error for a converter to raise."""
    return argparse.ArgumentTypeError(f"{quoted(text)} given; it must be {may_be}")


def listed(name: str, choices: Collection[str]) -> str:
    """The choices, and the one that was probably meant."""
    return f"{', '.join(choices)}{nearest(name, choices)}"


# --- Printing


def say(text: str) -> None:
    """Print to stdout; if the reader stops, as ``head`` does, the work continues silently."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # what is still to come, and what Python flushes at its end, goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def complain(problem: object, kind: str = "error") -> None:
    """Print an error, or a note, to stderr, in one line."""
    text = line(" ".join(str(problem).split()))
    print(f"jaxbandits: {kind}: {text}", file=sys.stderr, flush=True)


def check_folder(out: str, files: Sequence[str], job: str) -> None:
    """Check before the work that ``files`` can be written and replace only results of ``job``."""
    refuse("--out", out, not out.strip(), "the name of a folder")
    try:
        there = (path for path in (Path(out), *Path(out).absolute().parents) if path.exists())
        tempfile.TemporaryFile(dir=next(there)).close()
    except OSError as problem:
        raise bad("--out", out, f"a folder that can be written ({problem})") from None
    writer, existing = "", [name for name in files if (Path(out) / name).exists()]
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # else none of ours
        writer = json.loads((Path(out) / "run.json").read_bytes())["command"].split()[1]
    must = f"another folder: {', '.join(existing)} in it belong to another job"
    refuse("--out", out, bool(existing) and writer != job, must)


# --- Compiled programs are kept from one command to the next, by jax


def keep_programs() -> None:
    """Store what this process compiles, and reuse what earlier ones stored.

    Off with ``JAXBANDITS_CACHE=off``; another value is the folder. A folder that was set for jax
    itself (``JAX_COMPILATION_CACHE_DIR``) stays. Only commands call it.
    """
    import jax

    from jaxbandits.tools import keep_programs_in, processor

    base = os.environ.get("JAXBANDITS_CACHE") or "~/.cache/jaxbandits"
    if base == "off" or getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    # XLA makes its CPU code for one kind of processor, and jax's own key does not tell them apart.
    kind = f"{processor()}-jax-{jax.__version__}"
    folder = Path(base).expanduser() / "programs" / kind
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return
    keep_programs_in(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", 1 << 29)  # bytes; the oldest go
    # Each of some dozen small programs takes 30 ms to compile, and 1 ms to read
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")


def collect_rarely() -> None:
    """Run the garbage collector rarely: scanning all of jax takes a tenth of a short job."""
    gc.set_threshold(100_000, 50, 100)


# --- The command


# Of each job, whose module has a `parser` and a `run`, what it is for
_JOBS = {
    "read": "show how a file of arms is read",
    "compare": "rank policies that spend a budget on the arms of a file",
    "demo": "regret, sensitivity and a gradient in three pictures",
    "sweep": "regret over grids of parameters; resumes after a kill",
    "status": "show the progress of a sweep",
    "audit": "recompute every decision in the file of a live agent",
    "tune": "find a policy's parameter by gradient descent",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command: the exit code is 0, 1 (a file not written), 2 (bad input) or 130 (Ctrl-C)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    collect_rarely()
    for stream in (sys.stdout, sys.stderr):
        # It is closed, or is not Python's own
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _run(arguments)
    except InputError as problem:
        complain(problem)
        return 2
    except OSError as problem:
        complain(f"a file could not be read or written ({problem})")
        return 1
    except KeyboardInterrupt as stop:
        # An interrupted comparison knows how far it came
        done = f"{stop.done} of {stop.runs} runs" if hasattr(stop, "runs") else "no run"  # type: ignore[attr-defined]
        print(f"interrupted: {done} finished; nothing was written", file=sys.stderr, flush=True)
        return 130
    finally:
        gc.freeze()  # else Python looks through all of jax several times on its way out, for half a second


def _run(argv: list[str]) -> int:
    from jaxbandits import __version__

    job = argv[0] if argv else None
    if job is None or job.startswith("-"):
        commands = [f"  {name:7}  {about}" for name, about in _JOBS.items()]
        epilog = "\n".join(["commands (each has --help):", *commands])
        parser = Parser("", "Simulate bandits whose arms cost money.", epilog=epilog)
        parser.usage = f"jaxbandits {'|'.join(_JOBS)} …"
        parser.add_argument("--version", action="version", version=f"jaxbandits {__version__}")
        parser.parse(argv)
        raise InputError(f"{'|'.join(_JOBS)}: a command is required")
    if job not in _JOBS:
        may_be = f"one of {', '.join(_JOBS)}"
        raise InputError(f"{line(job)}: unknown command{nearest(job, _JOBS)}; it must be {may_be}")
    module: Any = importlib.import_module(f"{__package__}.{job}")
    arguments = module.parser().parse(argv[1:])
    arguments.job = job
    if job != "read":  # which compiles nothing, and does not wait for jax
        keep_programs()
    return module.run(arguments, argv)
