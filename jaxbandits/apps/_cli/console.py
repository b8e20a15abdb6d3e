"""The command ``jaxbandits``, and what the project's commands share: a parser whose errors are one line, and printing.

A command line is checked in this order: names of options, values that are missing, options that are missing, then each
value by its converter. Converters only turn text into values; the library checks their range.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gc
import importlib
import itertools
import math
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from jaxbandits._tables import line
from jaxbandits.core import checks
from jaxbandits.core.checks import InputError, quoted

_MISSING = "the following arguments are required: "  # argparse's words


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InputError and prints no usage."""

    def __init__(self, **options: Any):
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, exit_on_error=False, **options)

    def add_choice(self, name: str, known: Sequence[str], about: str, default: str | None = None) -> None:
        """An option that takes one of some names."""
        self.add_argument(name, type=one_of(known), metavar="|".join(known), help=about, default=default)

    def parse(self, given: Sequence[str]) -> argparse.Namespace:
        """The values; ``--help`` and ``--version`` print and leave by SystemExit(0).

        Raises:
            InputError: naming the argument.
        """
        known = self._option_string_actions
        named = given[: given.index("--")] if "--" in given else given
        for name in (part.partition("=")[0] for part in named):
            if name.startswith("--") and name not in known:  # before argparse tells what else is missing
                raise InputError(f"{line(name)}: unknown option{nearest(name, known)} (see {self.prog} --help)")
        try:
            arguments, left = self.parse_known_args(given)
        except argparse.ArgumentError as problem:
            self.error(f"{(problem.argument_name or '').split('/')[-1]}: {problem.message}".removeprefix(": "))
        if left := [part for part in left if part != "--"]:
            raise InputError(f"{quoted(left[0])}: not expected here (see {self.prog} --help)")
        return arguments

    def error(self, message: str) -> NoReturn:
        """Raise it as an InputError."""
        if message.startswith(_MISSING):
            message = f"{message.removeprefix(_MISSING)}: missing; it must be given"
        raise InputError(message)

    def print_help(self, file: Any = None) -> None:
        """Print the help; quietly, if nobody reads it to the end."""
        say(self.format_help().rstrip("\n"))


def nearest(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` where one of the known names is like this one."""
    spelt = {text.lower().replace("-", "_"): text for text in known}
    near = difflib.get_close_matches(name.lower().replace("-", "_"), spelt, n=1, cutoff=0.4)
    return f"; did you mean {spelt[near[0]]}?" if near else ""


def listed(name: str, known: Collection[str]) -> str:
    """The known names, and which of them was probably meant."""
    return f"{', '.join(known)}{nearest(name, known)}"


# --- Converters


def refused(text: object, may_be: str) -> argparse.ArgumentTypeError:
    """The error of a converter, for it to raise."""
    return argparse.ArgumentTypeError(f"{quoted(text)} given; it must be {may_be}")


def number(*, above: float = -math.inf, most: float = math.inf, may_be: str = "") -> Callable[[str], float]:
    """A converter to a finite number, perhaps in a range."""
    ends = [f"above {above:g}"] * math.isfinite(above) + [f"at most {most:g}"] * math.isfinite(most)
    may_be = may_be or " ".join(["a finite number", *" and ".join(ends).split()])

    def convert(text: str) -> float:
        with contextlib.suppress(ValueError):
            if "_" not in text and math.isfinite(value := float(text)) and above < value <= most:
                return value
        raise refused(text, may_be)

    return convert


def numbers(text: str) -> list[float]:
    """A converter to numbers, separated by commas."""
    each, values = number(), list[float]()
    for part in text.split(","):
        try:
            values.append(each(part))
        except argparse.ArgumentTypeError:
            must = f"numbers, separated by commas, and not {quoted(text)}"
            raise refused(part, must) from None
    return values


def whole(least: int | None = None, most: int | None = None) -> Callable[[str], int]:
    """A converter to a whole number, perhaps in a range."""
    ends = "" if least is None else f" of at least {least}" if most is None else f" from {least} to {most:,}"

    def convert(text: str) -> int:
        with contextlib.suppress(ValueError):
            value = int(text)
            if (least is None or value >= least) and (most is None or value <= most):
                return value
        raise refused(text, f"a whole number{ends}")

    return convert


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """A converter that takes one of some names."""
    known = tuple(names)

    def convert(text: str) -> str:
        if text not in known:
            raise refused(text, f"one of {listed(text, known)}")
        return text

    return convert


# --- Printing, and the names of options


def say(text: str) -> None:
    """Print to stdout; a reader that has gone away, as ``head`` does, ends the printing and not the work."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # what is still to come, and what Python flushes at its end, goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def complain(problem: object) -> None:
    """Print an error to stderr: one line, or a first line and one indented line for each of several problems."""
    first, *more = (line(" ".join(part.split())) for part in str(problem).split("\n"))
    text = "\n".join([f"jaxbandits: error: {first}", *(f"  {part}" for part in more)])
    print(text, file=sys.stderr, flush=True)


def option(parameter: str) -> str:
    """``--min-cost`` for ``min_cost``."""
    return f"--{parameter.replace('_', '-')}"


OTHERWISE = {"average_cost": "constraint", "wrt": "parameter", "executor": "on"}
"""Options that are not called as the argument of the library is."""


@contextlib.contextmanager
def named_as_options(options: Collection[str]) -> Iterator[None]:
    """Errors of the library, ``runs: 0 given; …``, as those of a command with these, ``--runs: 0 given; …``."""
    try:
        yield
    except InputError as problem:
        name, colon, rest = str(problem).partition(":")
        own = name.rpartition(".")[2]  # a policy's parameter is told as OmegaUCB.rho
        own = OTHERWISE.get(own, own)
        if own not in options:
            raise
        raise InputError(f"{option(own)}{colon}{rest}") from None


def unwritten(problem: OSError) -> int:
    """Say it; the exit code."""
    complain(f"--out: could not be written ({problem})")
    return 1


# --- Compiled programs are kept from one command to the next, in jax's persistent compilation cache
#
# Only commands use it: a library call never touches jax's global configuration (docs/benchmarks.md has the line for
# your own code).


VARIABLE = "JAXBANDITS_CACHE"
_MOST_BYTES = 1 << 29  # a program of an engine takes 50 to 200 kB


def keep_programs() -> None:
    """Keep what this process compiles, and take what earlier ones kept.

    Off with ``JAXBANDITS_CACHE=off``; another value is the folder. Whoever has told jax of a folder
    (``JAX_COMPILATION_CACHE_DIR``) keeps it. A folder that cannot be made is not used; entries that cannot be read are
    ignored and compiled anew.
    """
    import jax

    from jaxbandits._engine import programs

    if getattr(jax.config, "jax_compilation_cache_dir", None) or (folder := programs_folder()) is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _prune(folder)
    except OSError:
        return
    programs.FOLDER = folder
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Each of some dozen small programs takes 30 ms to compile, and 1 ms to read.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache entry")


def programs_folder() -> Path | None:
    """Where programs are kept: a folder for this kind of processor and this jax; None if they are not to be kept."""
    import jax

    told, caches = os.environ.get(VARIABLE, ""), os.environ.get("XDG_CACHE_HOME", "")
    if told.lower() in ("off", "false", "no", "0"):
        return None
    base = told or f"{caches if os.path.isabs(caches) else '~/.cache'}/jaxbandits"
    # XLA makes its CPU code for one kind of processor, and jax's own key does not tell them apart.
    return Path(base).expanduser() / "programs" / f"{checks.processor()}-jax-{jax.__version__}"


def _prune(folder: Path) -> None:
    """Drop the entries that were written first until those that stay take half of what may be kept."""
    found = sorted(((entry.stat(), entry) for entry in folder.iterdir()), key=lambda pair: -pair[0].st_mtime)
    sizes = itertools.accumulate(state.st_size for state, _ in found)  # of the newest n
    if sum(state.st_size for state, _ in found) > _MOST_BYTES:
        for size, (_, entry) in zip(sizes, found, strict=True):
            if size > _MOST_BYTES // 2:
                with contextlib.suppress(OSError):
                    entry.unlink()


# --- The command


# Of each job: what it is for, and the module with a function that makes its parser and one that does it.
_JOBS = {
    "read": ("show what was understood of an arms file", "jaxbandits.apps._cli.read", "parser", "run"),
    "compare": ("which policy spends a budget best", "jaxbandits.apps._cli.compare", "parser", "run"),
    "demo": ("compare on the sample that is shipped", "jaxbandits.apps._cli.compare", "demo_parser", "run_demo"),
    "sweep": ("regret over grids of parameters, kill-safe", "jaxbandits.apps._cli.sweep", "sweep_parser", "run_sweep"),
    "status": ("what is done of a sweep, what is left", "jaxbandits.apps._cli.sweep", "status_parser", "run_status"),
    "audit": ("is the log of a live agent what it decided", "jaxbandits.apps._cli.audit", "parser", "run"),
    "tune": ("find a policy's parameter by gradient descent", "jaxbandits.apps._cli.tune", "parser", "run"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (nothing could be written), 2 (bad input) or 130 (Ctrl-C).

    ``argv`` are the arguments, default those of the process.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # it is closed, or is not Python's own
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    before, report = signal.getsignal(signal.SIGINT), sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is KeyboardInterrupt else report(lost)  # it comes again
    if before is signal.default_int_handler and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _CtrlC())
    try:
        return _run(given)
    except InputError as problem:
        complain(problem)
        return 2
    except KeyboardInterrupt as stop:
        # an interrupted comparison knows how far it came
        done = f"{stop.done} of {stop.runs} runs" if hasattr(stop, "done") and hasattr(stop, "runs") else "no run"
        print(f"interrupted: {done} finished; nothing was written", file=sys.stderr, flush=True)
        return 130
    finally:
        sys.unraisablehook = report
        if isinstance(signal.getsignal(signal.SIGINT), _CtrlC):
            signal.signal(signal.SIGINT, before)
        gc.freeze()  # else Python looks through all of jax several times on its way out, for half a second


class _CtrlC:
    """Ctrl-C as Python has it, but remembered: jax calls Python from C in places that drop every exception.

    The next step of a progress bar raises it again.
    """

    came = False

    def __call__(self, *_: object) -> None:
        self.came = True
        raise KeyboardInterrupt


def _run(given: list[str]) -> int:
    from jaxbandits import __version__

    job = given[0] if given else None
    if job is None or job.startswith("-"):
        commands = [f"  {name:7}  {about}" for name, (about, *_) in _JOBS.items()]
        parser = Parser(
            prog="jaxbandits",
            usage=f"jaxbandits {'|'.join(_JOBS)} …",
            description="Simulate bandits whose arms cost something.",
            epilog="\n".join(["commands (each has --help):", *commands]),
        )
        parser.add_argument("--version", action="version", version=f"jaxbandits {__version__}")
        parser.parse(given)
        raise InputError(f"{'|'.join(_JOBS)}: missing; it must be given")
    if job not in _JOBS:
        raise InputError(f"{line(job)}: unknown command{nearest(job, _JOBS)}; it must be one of {', '.join(_JOBS)}")
    _, module, make, run = _JOBS[job]
    found: Any = importlib.import_module(module)
    arguments = getattr(found, make)().parse(given[1:])
    arguments.job = job
    keep_programs()
    return getattr(found, run)(arguments, given)


if __name__ == "__main__":
    sys.exit(main())
